/* Loaded before the C library: every seed that the program sets becomes another one, and so does the one it does not set.
 * What it draws is then another input, of the same size (other_inputs.py). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>

#define OTHER 0x5EEDu

static void *next(const char *name) { return dlsym(RTLD_NEXT, name); }

void srand(unsigned seed) { ((void (*)(unsigned))next("srand"))(seed ^ OTHER); }
void srandom(unsigned seed) { ((void (*)(unsigned))next("srandom"))(seed ^ OTHER); }
void srand48(long seed) { ((void (*)(long))next("srand48"))(seed ^ (long)OTHER); }

__attribute__((constructor)) static void unset(void) { srand(1), srand48(0); }
