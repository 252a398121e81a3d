/* SPDX-License-Identifier: BSD-3-Clause */
/* How the library was compiled; see build.h. */
#include "base/build.h"

const char *build_compiler(void)
{
#ifdef __clang__
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

bool build_profiled(void)
{
#ifdef PINWHEEL_PROFILED
    return true;
#else
    return false;
#endif
}
