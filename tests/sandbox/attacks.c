/* Each word is one attack on the sandbox. Exit 0: it got what it wanted. Exit 1: it was refused. Others: see attacks.py. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char block[1 << 20];
static const char *argument;

static int read_file(void) {
    int fd = open(argument, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, block, sizeof block);
    if (got <= 0) return 1;
    fwrite(block, 1, (size_t)got, stdout);
    return 0;
}

static int write_file(void) {
    if (open(argument, O_WRONLY) >= 0 || open(argument, O_WRONLY | O_CREAT, 0666) >= 0 || mkdir(argument, 0777) == 0) return 0;
    return chmod(argument, 0666) == 0 || unlink(argument) == 0 ? 0 : 1;
}

static int network(void) {
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argument))};
    port.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&port, sizeof port) == 0) return 0;
    port.sin_addr.s_addr = htonl(0xC0000201); /* 192.0.2.1, a documentation address: only the route counts */
    if (sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, (void *)&port, sizeof port) == 1) return 0;
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "kernelwright-test-%s", argument);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&name, size) == 0 ? 0 : 1;
}

static int fork_bomb(void) {
    for (;;) fork();
}

static int a_hundred_children(void) {
    for (int i = 0; i < 100; i++)
        if (fork() == 0) pause();
    return 0;
}

static int kill_parent(void) {
    int signals[] = {SIGTERM, SIGSTOP, SIGKILL, SIGCHLD, SIGSEGV};
    signal(SIGTERM, SIG_IGN), signal(SIGCHLD, SIG_IGN), signal(SIGSEGV, SIG_IGN);
    for (int i = 0; i < 5; i++) kill(getppid(), signals[i]), kill(1, signals[i]);
    kill(-1, SIGTERM);
    return 7;
}

static int trace_parent(void) {
    return ptrace(PTRACE_SEIZE, getppid(), 0, 0) == 0 || ptrace(PTRACE_ATTACH, getppid(), 0, 0) == 0 ? 0 : 1;
}

static int trace_child(void) { /* refused by the filter, not by ownership */
    return ptrace(PTRACE_TRACEME, 0, 0, 0) == 0 ? 0 : 1;
}

static int forge(void) {
    static const char forged[] = "end 0 0 1 1 1 none\n";
    char path[64];
    for (int fd = 3; fd < 1024; fd++) {
        (void)!write(fd, forged, sizeof forged - 1);
        snprintf(path, sizeof path, "/proc/%d/fd/%d", getppid(), fd);
        int copy = open(path, O_WRONLY | O_NONBLOCK);
        if (copy >= 0) (void)!write(copy, forged, sizeof forged - 1);
        copy = (int)syscall(SYS_pidfd_getfd, syscall(SYS_pidfd_open, getppid(), 0), fd, 0);
        if (copy >= 0) (void)!write(copy, forged, sizeof forged - 1);
    }
    snprintf(path, sizeof path, "/proc/%d/mem", getppid());
    if (open(path, O_RDWR) >= 0) return 0;
    struct iovec here = {block, 16}, there = {(void *)0x400000, 16};
    return process_vm_readv(getppid(), &here, 1, &there, 1, 0) > 0 ? 0 : 3;
}

static int descriptors(void) { /* how many it was given beyond the three */
    int count = 0;
    for (int fd = 3; fd < 4096; fd++) count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

static int plant_links(void) {
    if (symlink(argument, "link") || symlink("..", "folder") || mkfifo("fifo", 0666)) return 2;
    int fd = open("sparse", O_CREAT | O_WRONLY, 0666);
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    if (fd < 0 || ftruncate(fd, (off_t)limit.rlim_cur)) return 2;
    if (mkdir("plain", 0777) || (fd = open("plain/file", O_CREAT | O_WRONLY, 0666)) < 0) return 2;
    return write(fd, "honest", 6) == 6 ? 0 : 2;
}

static int flood(void) {
    memset(block, 'x', sizeof block);
    for (;;) (void)!write(1, block, sizeof block);
}

static int loop(void) {
    for (volatile int i = 0;; i = i + 1) continue;
}

static int speak_and_loop(void) {
    printf("said\n");
    return loop();
}

/* A daemon in a session of its own holds the FIFO open; its writer's end is the proof of its death. */
static int outlive(void) {
    int ready[2];
    char byte;
    if (pipe(ready)) return 2;
    if (fork() == 0) {
        setsid();
        if (fork() != 0) _exit(0);
        signal(SIGTERM, SIG_IGN), signal(SIGHUP, SIG_IGN);
        int fd = open("fifo", O_WRONLY);
        if (fd < 0 || write(fd, "r", 1) != 1 || write(ready[1], "r", 1) != 1) _exit(2);
        for (;;) pause();
    }
    return read(ready[0], &byte, 1) == 1 ? 0 : 2;
}

static int outlive_and_wait(void) {
    int failed = outlive();
    for (; !failed;) pause();
    return failed;
}

static int memory(void) {
    for (;;) memset(malloc(sizeof block), 1, sizeof block);
}

static int memory_in_children(void) {
    for (int i = 0; i < 8; i++)
        if (fork() == 0) {
            memset(malloc(40 << 20), 1, 40 << 20);
            for (;;) pause();
        }
    for (;;) pause();
}

static int shared_memory(void) { /* 100 MiB shared with eight children is 100 MiB, not 900 */
    memset(malloc(100 << 20), 1, 100 << 20);
    for (int i = 0; i < 8; i++)
        if (fork() == 0) {
            for (;;) pause();
        }
    struct timespec while_watched = {0, 200000000};
    nanosleep(&while_watched, NULL);
    return 5;
}

static int reserve(void) { /* address space is not memory */
    return mmap(NULL, 1L << 40, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == MAP_FAILED ? 1 : 5;
}

static int fill(int fd) {
    while (write(fd, block, sizeof block) > 0) continue;
    return errno;
}

static int fill_file(void) { /* then waits, so that a watcher has the time to look */
    fill(open(argument, O_CREAT | O_WRONLY, 0666));
    for (;;) pause();
}

static int fill_memory_file(void) {
    for (;;) fill(memfd_create("x", 0));
}

static int big_file(void) { return fill(open("big", O_CREAT | O_WRONLY, 0666)); }

static int many_files(void) {
    for (int i = 0;; i++) {
        char name[32];
        snprintf(name, sizeof name, "file%d", i);
        int fd = open(name, O_CREAT | O_WRONLY, 0666);
        if (fd < 0 || write(fd, block, sizeof block) < 0) pause();
        close(fd);
    }
}

static int nameless_files(void) {
    for (;;) {
        int fd = open("nameless", O_CREAT | O_WRONLY | O_EXCL, 0666);
        unlink("nameless");
        for (int i = 0; i < 16; i++)
            if (write(fd, block, sizeof block) < 0) pause();
    }
}

static int closed_folder(void) { /* files in a folder that nobody may look into any more */
    int fds[64];
    if (mkdir("closed", 0777)) return 2;
    for (int i = 0; i < 64; i++) {
        char name[32];
        snprintf(name, sizeof name, "closed/file%d", i);
        fds[i] = open(name, O_CREAT | O_WRONLY, 0666);
    }
    chmod("closed", 0);
    for (int i = 0; i < 64; i++)
        for (int j = 0; j < 16; j++)
            if (write(fds[i], block, sizeof block) < 0) return 2;
    for (;;) pause();
}

static int remount(void) {
    const char *places[] = {"/", "/usr", "/dev"};
    for (int i = 0; i < 3; i++)
        if (mount(NULL, places[i], NULL, MS_REMOUNT | MS_BIND, NULL) == 0) return 0;
    if (mount("tmpfs", "/tmp", "tmpfs", 0, NULL) == 0 || umount2("/dev/shm", MNT_DETACH) == 0) return 0;
    return syscall(SYS_open_tree, AT_FDCWD, "/usr", 1) >= 0 ? 0 : 1;
}

static int new_user(void) {
    if (unshare(CLONE_NEWUSER) == 0 || unshare(CLONE_NEWNS) == 0) return 0;
    if (syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL) >= 0) return 0;
    struct clone_args arguments = {.flags = CLONE_NEWUSER, .exit_signal = SIGCHLD};
    return syscall(SYS_clone3, &arguments, sizeof arguments) >= 0 ? 0 : 1;
}

static int become_root(void) { return setuid(0) == 0 || setgid(0) == 0 || chroot("/") == 0 ? 0 : 1; }

static int kernel_doors(void) {
    long calls[] = {SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_io_uring_setup, SYS_keyctl, SYS_add_key, SYS_kexec_load};
    for (int i = 0; i < 7; i++)
        if (syscall(calls[i], 0, 0, 0, 0, 0) >= 0 || errno != EPERM) return 0;
    return 1;
}

static int crash(void) { return raise(SIGSEGV); }

static int kill_itself(void) { return raise(SIGKILL); }

static const struct {
    const char *name;
    int (*run)(void);
} attacks[] = {
    {"read", read_file}, {"write", write_file}, {"network", network}, {"fork_bomb", fork_bomb},
    {"children", a_hundred_children}, {"kill_parent", kill_parent}, {"trace_parent", trace_parent},
    {"trace_child", trace_child}, {"forge", forge}, {"descriptors", descriptors}, {"links", plant_links},
    {"flood", flood}, {"loop", loop}, {"speak_and_loop", speak_and_loop}, {"outlive", outlive},
    {"outlive_and_wait", outlive_and_wait}, {"memory", memory}, {"memory_in_children", memory_in_children},
    {"shared_memory", shared_memory}, {"reserve", reserve}, {"fill_file", fill_file},
    {"fill_memory_file", fill_memory_file}, {"big_file", big_file}, {"many_files", many_files},
    {"nameless_files", nameless_files}, {"closed_folder", closed_folder}, {"remount", remount},
    {"new_user", new_user}, {"become_root", become_root}, {"kernel_doors", kernel_doors}, {"crash", crash},
    {"kill_itself", kill_itself},
};

int main(int argc, char **argv) {
    argument = argc > 2 ? argv[2] : "";
    for (size_t i = 0; argc > 1 && i < sizeof attacks / sizeof *attacks; i++)
        if (strcmp(argv[1], attacks[i].name) == 0) return attacks[i].run();
    return 99;
}
