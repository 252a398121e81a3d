/* SPDX-License-Identifier: BSD-3-Clause */
/* Network interfaces (ni.c). */
#ifndef NIC_NI_H
#define NIC_NI_H

#include "nic/objects.h"

/* ni_kind_of() returns the index, among the NIs of a NIC, of one with these options. */
static inline unsigned ni_kind_of(unsigned options)
{
    return ((options & PTL_NI_NO_MATCHING) != 0 ? 1u : 0) |
           ((options & PTL_NI_PHYSICAL) != 0 ? 2u : 0);
}
int ni_open(struct nic *nic, unsigned options, const ptl_ni_limits_t *desired, struct ni **ni);
/* ni_free_memory() frees the memory of all NIs of a number, which may be NULL; no thread uses the
 * process any more. */
void ni_free_memory(struct ni *ni);
/* ni_close() lets the operations in flight end for a while, then cuts them off. */
void ni_close(struct ni *ni);
/* ni_set_map() takes over a copy of a map that the caller has checked, unless the NI that has this
 * handle has one. */
int ni_set_map(struct ni *ni, ptl_handle_ni_t handle, uint64_t size, const ptl_process_t *map);

#endif
