/* SPDX-License-Identifier: BSD-3-Clause */
/* The features of the processor that are asked for here. __builtin_cpu_supports() would bring 4.5
 * KB of the compiler's own library along, which knows every feature of every processor. */
#ifndef BASE_CPU_H
#define BASE_CPU_H

#include <stdbool.h>

/* CPUID waits for all instructions before it, and under a hypervisor for that one: ask once. */
bool cpu_has_sse42(void);

/* The kernel must keep the upper halves of the registers, too. */
bool cpu_has_avx(void);

#endif
