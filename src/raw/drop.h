/* SPDX-License-Identifier: BSD-3-Clause */
/* Giving privileges up. */
#ifndef RAW_DROP_H
#define RAW_DROP_H

/* raw_drop() gives up all capabilities of the calling thread, and threads that it makes later: for
 * good, whatever they execute. 0 or -errno. */
int raw_drop(void);

#endif
