/* SPDX-License-Identifier: BSD-3-Clause */
/* Payload that the receiver reads from the sender's memory (reference.c). */
#ifndef FABRIC_SHM_REFERENCE_H
#define FABRIC_SHM_REFERENCE_H

#include "fabric/shm/shm.h"

/* reference_fetch() copies n bytes, at `from` in the peer's memory, to `to`; reference_deposit()
 * copies n bytes of the message in progress to where its RX_DEPOSIT says. n is not 0. Both release
 * the NIC's lock while they copy, and return how the copy ended. */
enum fabric_status reference_fetch(struct shm_peer *p, void *to, uint64_t from, uint64_t n);
enum fabric_status reference_deposit(struct shm_peer *p, struct rx_channel *r, uint64_t n);

#endif
