/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Redundant storage in the memory of several servers: RAID-5, or Reed-Solomon with more than one
 * parity. A client writes to a data server. The NIC of that server stores the data and sends the
 * difference to the parity servers; their NICs apply it and notify the client.
 *
 *      client ──write──► data server: old ⊕ new ──difference──► parity: P = P ⊕ c·difference
 *        ▲                                                         │
 *        └───────────────────────── done ──────────────────────────┘  from each parity
 *
 *      server     0     1     2     3         data + parity servers; a unit a stripe
 *      stripe 0 | D0  | D1  | D2  | P0  |
 *      stripe 1 | P0  | D0  | D1  | D2  |     members move by one from stripe to stripe
 *      stripe 2 | D2  | P0  | D0  | D1  |
 *
 * Differences commute, so any number of clients may write to one stripe at the same time. A write
 * is on all servers when the last "done" has come to the client.
 */
#ifndef HANDLERS_RAID_H
#define HANDLERS_RAID_H

#include "portals4.h"
#include "spin.h"

enum { RAID_DATA = 16, RAID_PARITY = 4, RAID_SERVERS = RAID_DATA + RAID_PARITY };
enum { RAID_TABLE = 32, RAID_BLOCK = 1024, RAID_LOCKS = 64 };

/* The layout, which must be the same at all servers and clients. */
struct raid_layout {
    ptl_process_t server[RAID_SERVERS]; /* IDs of the data and parity servers */
    uint64_t unit;                      /* bytes of a unit, a multiple of 64 */
    uint64_t stripes;                   /* stripes; a server's memory has `stripes` units */
    uint64_t write_bits, parity_bits;   /* match bits of a server's two entries */
    uint32_t data, parity;              /* data and parity members of a stripe */
};

/* HPU memory of both entries of a server: the host sets it, and it stays constant. */
struct raid_state {
    struct raid_layout layout;
    uint32_t server; /* number of this server */
    uint32_t by_table;
    /* products with the coefficient of a parity and a data member */
    uint8_t table[RAID_PARITY][RAID_DATA][RAID_TABLE];
};

/* The handler host memory of both entries, zeroed before the first write. */
struct raid_locks {
    uint64_t lock[RAID_LOCKS];
};

/* raid_state() sets the state of server number `server`. `tables` are those that ISA-L's
 * ec_init_tables(data, parity, ...) makes of the rows of the generator matrix for the parities;
 * NULL: there is one parity, and it is the sum (RAID-5). PTL_ARG_INVALID: the layout or the number
 * is not valid. */
int raid_state(const struct raid_layout *layout, uint32_t server, const uint8_t *tables,
               struct raid_state *state);

/* raid_write_handlers() fills in the handlers of the entry to which clients write, and from which
 * they may get; raid_parity_handlers() those of the entry to which other servers send differences.
 * Both entries are persistent, and over the server's memory. */
void raid_write_handlers(const struct raid_state *state, struct raid_locks *locks,
                         ptl_handlers_t *handlers);
void raid_parity_handlers(const struct raid_state *state, struct raid_locks *locks,
                          ptl_handlers_t *handlers);

/* ---- Client ---- */

/* raid_place() finds the server of byte `address` of the volume, and the offset in its memory. It
 * returns how many bytes of the volume follow there. */
uint64_t raid_place(const struct raid_layout *layout, uint64_t address, uint32_t *server,
                    uint64_t *offset);

/* A client, which the program fills in. The counter must count acks of `md` and messages at an
 * entry of length 0 with match bits `done_bits`, both by PTL_..._EVENT_CT options. */
struct raid_client {
    struct raid_layout layout;
    ptl_process_t self;
    ptl_pt_index_t pt; /* portal table index of all entries */
    uint64_t done_bits;
    ptl_handle_md_t md; /* MD over the staging memory */
    ptl_handle_ct_t ct;
    uint8_t *staging;       /* `slots` packets */
    uint64_t slots, packet; /* messages that may be under way; max_payload_size */
    ptl_time_t timeout_ms;
    uint64_t counted; /* 0 at first; the value that the counter must reach */
};

/* raid_write() writes to the volume; the data is on all servers when raid_wait() has returned
 * PTL_OK. Both return PTL_CT_NONE_REACHED if servers have not answered within timeout_ms,
 * PTL_FAIL if a server has refused a message, or what PtlPut() or PtlCTPoll() returned. */
int raid_write(struct raid_client *c, uint64_t address, const void *data, uint64_t length);
int raid_wait(struct raid_client *c);

#endif
