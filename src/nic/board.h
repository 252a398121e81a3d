/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The board of a NIC: what it tells of itself to other processes, which look at it while
 * it works. `pinwheel nic` is who looks.
 *
 * The NIC writes under its lock, in plain memory that the fabric shares; a reader takes
 * what is there, so that figures of one look may belong to different moments. All of them
 * but those marked grow from the opening of the NIC on.
 */
#ifndef NIC_BOARD_H
#define NIC_BOARD_H

#include "fabric/fabric.h"
#include "portals4.h"

#include <stdint.h>

#define BOARD_VERSION 1u /* another layout is another version */
#define BOARD_KINDS 4    /* of interfaces, by struct ni's kind */

/* Data movements: puts, gets, atomics, fetches (PtlFetchAtomic and PtlSwap). */
enum board_movement { BOARD_PUT, BOARD_GET, BOARD_ATOMIC, BOARD_FETCH, BOARD_MOVEMENTS };

struct nic_board {
    uint32_t version; /* written last: 0 as long as the rest is not there */
    uint32_t index;   /* the interface's number, 0 for PTL_IFACE_DEFAULT */
    int64_t opened;   /* seconds since 1970 */
    char program[32];
    uint32_t open; /* now: bit k for an interface of kind k */
    uint32_t unused;

    uint64_t sent[BOARD_MOVEMENTS], sent_bytes; /* requests of this process, handlers' too */
    uint64_t received[BOARD_MOVEMENTS], received_bytes; /* what they asked for, refused ones too */
    uint64_t registers[BOARD_KINDS][PTL_SR_LAST];       /* of PtlNIStatus(); 0 when it is opened */
    uint64_t malformed;                                 /* messages that made no sense */
    uint64_t waited;                                    /* messages that waited for flow control */
    uint64_t closed;                                    /* entries that flow control closed */
    uint64_t events_lost;                               /* overwritten in full queues */
};

_Static_assert(sizeof(struct nic_board) <= FABRIC_BOARD, "the board fits");

static inline void board_count(uint64_t movements[BOARD_MOVEMENTS], uint64_t *bytes,
                               enum board_movement movement, uint64_t length)
{
    movements[movement]++;
    *bytes += length;
}

#endif
