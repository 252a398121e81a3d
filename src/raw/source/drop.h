/* SPDX-License-Identifier: BSD-3-Clause */
/* Giving privileges up. */
#ifndef RAW_SOURCE_DROP_H
#define RAW_SOURCE_DROP_H

#include <stdint.h>

/* raw_drop() gives up all capabilities of the calling thread, and threads that it makes later, but
 * those of the bits of `keep` that it has: for good, whatever they execute. 0 or -errno. */
int raw_drop(uint64_t keep);

#endif
