/* SPDX-License-Identifier: BSD-3-Clause */
/* Tests for the processor features that the library uses. __builtin_cpu_supports() is not used: it
 * links 4.5 KB of the compiler's run time, which detects every feature of every processor. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>

/* Each function executes CPUID, which waits for all earlier instructions and which a hypervisor
 * traps and emulates: callers ask once and keep the answer. */
bool cpu_has_sse42(void);

/* cpu_has_avx() is true if the kernel saves the upper halves of the vector registers, too. */
bool cpu_has_avx(void);

#endif
