/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared libraries that only some programs need, loaded with dlopen() at their first use. If
 * libportals was linked with them instead, every program would load them at its start.
 */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stddef.h>

struct library_symbol {
    const char *name;
    void *to; /* the function pointer that library_load() sets to the address of the function */
};

/* library_load() loads a library for good, with symbols that other libraries do not see, and finds
 * functions in it. It returns NULL, or the name of the library or function that it did not find. */
const char *library_load(const char *library, const struct library_symbol *symbols, size_t count);

/* library_global() finds a symbol as the program's own references do: in a preloaded library too.
 * NULL: there is none. */
void *library_global(const char *name);

#endif
