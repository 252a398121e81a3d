/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that a command is to start, and libraries that it is to preload into them. */
#ifndef PINWHEEL_PROGRAM_H
#define PINWHEEL_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

/* program_find() finds a word as a launcher does: as a path if it has a slash, else in the current
 * folder or on PATH. */
bool program_find(const char *word, char *path, size_t size);

/* program_needs() returns which of `count` libraries a program needs, itself or by others: the
 * index of the last one whose name begins so, -1 if none does. It asks the dynamic linker, as ldd
 * does. */
int program_needs(const char *path, const char *const libraries[], size_t count);

/* program_beside() finds a library of ours that goes with the running command: in `folder` of the
 * build tree, or where it is installed. */
bool program_beside(const char *folder, const char *file, char *path, size_t size);

/* program_preload() is "LD_PRELOAD=" with a library before those that are preloaded anyway, to be
 * freed; NULL: no memory. */
char *program_preload(const char *library);

/* program_sanitizer() is, in a build with AddressSanitizer, what programs need that a library is
 * preloaded into: its run time is to take that it is not the first library, and not to look for
 * leaks, for which it would stop threads that wait in virtual time. A variable, to be freed; NULL:
 * there is no need. */
char *program_sanitizer(void);

#endif
