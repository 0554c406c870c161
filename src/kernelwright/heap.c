/* Loaded before the C library: a heap that tells nobody how often it was asked.
 *
 * A program that asks for the same blocks again and again gets them from the C library in another order after the first
 * time. Here the lowest free block of a size is always the next one, so that a call which frees what it took finds in the next
 * one exactly what it found in the first; with KW_HEAP_FILL set, each block is filled with a pattern (other_memory.py). */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { SMALLEST = 6, CLASSES = 48 };
#define PATTERN 0xA5

struct head { /* before each block that is handed out */
    char *start;
    size_t size;
    unsigned kind;
};
#define HEAD ((sizeof(struct head) + 15) & ~(size_t)15)

struct heap { /* the free blocks of one size, the lowest first: a binary heap */
    char **at;
    size_t count, room;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct heap unused[CLASSES];
static char *next, *end;
static int filling = -1;

static void *mapped(size_t size) {
    void *got = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return got == MAP_FAILED ? NULL : got;
}

/* One range for everything, handed out from its start upwards. */
static char *fresh(unsigned kind) {
    for (int bits = 43; next == NULL && bits > 34; bits--)
        if ((next = mapped((size_t)1 << bits)) != NULL) end = next + ((size_t)1 << bits);
    size_t size = (size_t)1 << kind;
    if (next == NULL || (size_t)(end - next) < size) return NULL;
    next += size;
    return next - size;
}

static char *take(unsigned kind) {
    struct heap *free_ = &unused[kind];
    if (free_->count == 0) return fresh(kind);
    char *lowest = free_->at[0], *last = free_->at[--free_->count];
    size_t hole = 0, child;
    while ((child = 2 * hole + 1) < free_->count) {
        if (child + 1 < free_->count && free_->at[child + 1] < free_->at[child]) child++;
        if (last <= free_->at[child]) break;
        free_->at[hole] = free_->at[child], hole = child;
    }
    free_->at[hole] = last;
    return lowest;
}

static void give(unsigned kind, char *start) {
    struct heap *free_ = &unused[kind];
    if (free_->count == free_->room) {
        size_t room = free_->room ? 2 * free_->room : 512;
        char **more = mapped(room * sizeof *more);
        if (more == NULL) return; /* the block is lost, which only costs memory */
        if (free_->count) memcpy(more, free_->at, free_->count * sizeof *more), munmap(free_->at, free_->room * sizeof *more);
        free_->at = more, free_->room = room;
    }
    size_t hole = free_->count++;
    for (; hole > 0 && start < free_->at[(hole - 1) / 2]; hole = (hole - 1) / 2) free_->at[hole] = free_->at[(hole - 1) / 2];
    free_->at[hole] = start;
}

static void *block(size_t size, size_t alignment, int fill) {
    if (size > (size_t)1 << 42 || alignment > (size_t)1 << 30) return errno = ENOMEM, NULL;
    size_t room = size + HEAD + alignment;
    unsigned kind = SMALLEST;
    while (((size_t)1 << kind) < room) kind++;
    pthread_mutex_lock(&lock);
    if (filling < 0) filling = getenv("KW_HEAP_FILL") != NULL;
    char *start = take(kind);
    pthread_mutex_unlock(&lock);
    if (start == NULL) return errno = ENOMEM, NULL;
    char *user = (char *)(((uintptr_t)start + HEAD + alignment - 1) & ~(uintptr_t)(alignment - 1));
    struct head *head = (struct head *)(user - HEAD);
    head->start = start, head->size = size, head->kind = kind;
    if (fill && filling) memset(user, PATTERN, size);
    return user;
}

void *malloc(size_t size) { return block(size, 16, 1); }

void free(void *user) {
    if (user == NULL) return;
    struct head *head = (struct head *)((char *)user - HEAD);
    pthread_mutex_lock(&lock);
    give(head->kind, head->start);
    pthread_mutex_unlock(&lock);
}

void *calloc(size_t number, size_t size) {
    size_t all;
    if (__builtin_mul_overflow(number, size, &all)) return errno = ENOMEM, NULL;
    void *user = block(all, 16, 0);
    return user ? memset(user, 0, all) : NULL;
}

void *realloc(void *user, size_t size) {
    if (user == NULL) return malloc(size);
    if (size == 0) return free(user), NULL;
    size_t old = ((struct head *)((char *)user - HEAD))->size;
    void *other = malloc(size);
    if (other != NULL) memcpy(other, user, old < size ? old : size), free(user);
    return other;
}

int posix_memalign(void **out, size_t alignment, size_t size) {
    void *user = block(size, alignment < 16 ? 16 : alignment, 1);
    if (user == NULL) return ENOMEM;
    return *out = user, 0;
}

void *aligned_alloc(size_t alignment, size_t size) { return block(size, alignment < 16 ? 16 : alignment, 1); }
void *memalign(size_t alignment, size_t size) { return aligned_alloc(alignment, size); }
void *valloc(size_t size) { return aligned_alloc(4096, size); }
size_t malloc_usable_size(void *user) { return user ? ((struct head *)((char *)user - HEAD))->size : 0; }
