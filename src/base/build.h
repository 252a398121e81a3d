/* SPDX-License-Identifier: BSD-3-Clause */
/* How the library was compiled. Measured times depend on it, so reports name it. */
#ifndef BASE_BUILD_H
#define BASE_BUILD_H

#include <stdbool.h>

/* build_compiler() returns the compiler's name and version; build_profiled() returns true if the
 * compiler used a profile of an earlier run (cmake/profile.cmake). */
const char *build_compiler(void);
bool build_profiled(void);

#endif
