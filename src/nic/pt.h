/* SPDX-License-Identifier: BSD-3-Clause */
/* Portal table entries (pt.c), for those whose messages use them. */
#ifndef NIC_PT_H
#define NIC_PT_H

#include "nic/objects.h"

/* pt_refuse() closes a portal table entry to messages, since there is no room for one that matched
 * `le`, or that matched nothing (NULL). */
void pt_refuse(struct ni *ni, uint32_t pt_index, const struct le *le);
void pt_release(struct ni *ni, uint32_t pt_index);
/* pt_clear() drops its unexpected headers and its entries. */
void pt_clear(struct pt *pt);

#endif
