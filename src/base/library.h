/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared libraries that only some programs need, loaded when they are: what libportals links
 * every program loads at its start.
 */
#ifndef BASE_LIBRARY_H
#define BASE_LIBRARY_H

#include <stddef.h>

struct library_symbol {
    const char *name;
    void *to; /* the function pointer that it goes to */
};

/* library_load() loads a library, which stays, out of sight of others, and finds functions in it.
 * NULL, or the name of what is not there: the library's or a function's. */
const char *library_load(const char *library, const struct library_symbol *symbols, size_t count);

#endif
