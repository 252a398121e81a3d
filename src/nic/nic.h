/* SPDX-License-Identifier: BSD-3-Clause */
/* NICs (nic.c), opened and closed with the first and the last NI of an interface. */
#ifndef NIC_NIC_H
#define NIC_NIC_H

#include "nic/objects.h"

/* nic_open() opens the NIC of an interface; the caller holds the process's lock. Returns a PTL_
 * code. It and nic_close() take the NIC's lock while they change fields that other threads look
 * at. */
int nic_open(struct process *p, unsigned index, ptl_pid_t pid, struct nic **nic)
    __attribute__((cold));
/* nic_no_memory() logs that memory is short for an interface, and returns PTL_NO_SPACE. */
int nic_no_memory(void);
/* nic_peers_most() returns how many peers the NIC may have at once. */
unsigned nic_peers_most(const struct nic *nic);
/* nic_close() sends the operations that are queued, then closes the NIC, which has no open NI. */
void nic_close(struct nic *nic);

#endif
