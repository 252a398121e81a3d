/* SPDX-License-Identifier: BSD-3-Clause */
/* NICs (nic.c), opened and closed with the first and the last NI of an interface. */
#ifndef NIC_NIC_H
#define NIC_NIC_H

#include "nic/objects.h"

/* nic_open() opens the NIC of an interface; process lock held. Gives a PTL_ code. Both it and
 * nic_close() have the NIC's lock while they change what others may look at. */
int nic_open(struct process *p, unsigned index, ptl_pid_t pid, struct nic **nic)
    __attribute__((cold));
/* nic_no_memory() tells the log that memory is short for an interface; PTL_NO_SPACE. */
int nic_no_memory(void);
/* nic_peers_most() is how many peers it may have at once. */
unsigned nic_peers_most(const struct nic *nic);
/* nic_close() sends what is queued, then closes; no NI is open. */
void nic_close(struct nic *nic);

#endif
