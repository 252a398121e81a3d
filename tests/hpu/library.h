/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers of the library, each with a message for it: run natively and by `pinwheel hpu run`
 * (library.c), they must leave the same bytes.
 *
 *      header handler ─► payload handler ─► completion handler    those that there are; memory
 *                                                                 goes on from one to the next
 */
#ifndef LIBRARY_H
#define LIBRARY_H

#include "portals4.h"
#include "spin.h"
#include "spin_handler.h"

enum { MEMORY = 1 << 17, PACKET = 4096 };

/* What a message is made of, and where it comes. */
struct message {
    const char *name; /* of the case */
    ptl_handlers_t handlers;
    ptl_header_t header;      /* user_hdr: `user` bytes at the start of packet[] */
    size_t user, packet_size; /* bytes of packet[] for the header, the payload handler */
    size_t state_size;        /* of HPU memory */
    size_t told;              /* bytes of handler_host[] that mean something; 0: all */
    int header_gives, payload_gives, completion_gives;
    _Alignas(64) uint8_t packet[PACKET];
    _Alignas(64) uint8_t state[MEMORY];
    _Alignas(64) uint8_t entry[MEMORY];        /* PTL_ME_HOST_MEM */
    _Alignas(64) uint8_t handler_host[MEMORY]; /* PTL_HANDLER_HOST_MEM */
    _Alignas(64) uint8_t peers[MEMORY];
};

typedef void library_case(struct message *m);

/* All cases, NULL behind the last one. */
extern library_case *const library_cases[];

/* library_address() is the address of a registered handler of this program. */
void (*library_address(const char *name))(void);

#endif
