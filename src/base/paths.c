/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts how often messages take each path, in the library for tests; see paths.h. */
#include "base/paths.h"

#include <stddef.h>

#ifdef PINWHEEL_COUNT_PATHS

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_NAME(name, fast) #name,
#define PATH_FAST(name, fast) fast,
static const char *const names[PATHS_COUNT] = {PATHS(PATH_NAME)};
static const char is_fast[PATHS_COUNT] = {PATHS(PATH_FAST)};
static _Atomic uint64_t counts[PATHS_COUNT];

void path_taken(enum path_name path)
{
    const char *option = is_fast[path] ? getenv("PINWHEEL_FASTPATH") : NULL;
    if (option != NULL && strcmp(option, "off") == 0) {
        fprintf(stderr, "the fast path %s was taken with PINWHEEL_FASTPATH=off\n", names[path]);
        abort();
    }
    atomic_fetch_add_explicit(&counts[path], 1, memory_order_relaxed);
}

/* Tests call this function and declare it themselves. pinwheel_path() returns the name of the i-th
 * path, whether it is a fast path, and how often it was taken; NULL behind the last. */
__attribute__((visibility("default"))) const char *pinwheel_path(unsigned i, int *fast,
                                                                 uint64_t *count);
const char *pinwheel_path(unsigned i, int *fast, uint64_t *count)
{
    if (i >= PATHS_COUNT) {
        return NULL;
    }
    *fast = is_fast[i] != 0;
    *count = atomic_load_explicit(&counts[i], memory_order_relaxed);
    return names[i];
}

#endif
