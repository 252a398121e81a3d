/* SPDX-License-Identifier: BSD-3-Clause */
/* Portal table entries (pt.c), as the stages of a message see them. */
#ifndef NIC_PT_H
#define NIC_PT_H

#include "nic/objects.h"

/* pt_refuse() disables a portal table entry, for flow control: a message that matched `le`, or none
 * (NULL), has found no room. */
void pt_refuse(struct ni *ni, uint32_t pt_index, const struct le *le);
void pt_release(struct ni *ni, uint32_t pt_index);
/* pt_clear() frees all unexpected headers and entries of a portal table entry. */
void pt_clear(struct pt *pt);

#endif
