/* SPDX-License-Identifier: BSD-3-Clause */
/* How the library was compiled, which figures depend on and reports therefore name. */
#ifndef BASE_BUILD_H
#define BASE_BUILD_H

#include <stdbool.h>

/* build_compiler() is its name and version; build_profiled() tells whether a profile of how often
 * code runs was used (cmake/profile.cmake). */
const char *build_compiler(void);
bool build_profiled(void);

#endif
