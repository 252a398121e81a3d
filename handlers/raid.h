/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Redundant storage in the memory of several servers: RAID-5, or Reed-Solomon with more
 * than one parity. A client writes to a data server; its NIC stores the data and sends the
 * difference to the parity servers, whose NICs apply it and tell the client.
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
 * Differences commute, so writes of any number of clients to one stripe may be under way
 * at once. A write is on all servers when its last done has come.
 */
#ifndef HANDLERS_RAID_H
#define HANDLERS_RAID_H

#include "portals4.h"
#include "spin.h"

enum { RAID_DATA = 16, RAID_PARITY = 4, RAID_SERVERS = RAID_DATA + RAID_PARITY };
enum { RAID_TABLE = 32, RAID_BLOCK = 1024, RAID_LOCKS = 64 };

/* The layout on which all servers and clients agree. */
struct raid_layout {
    ptl_process_t server[RAID_SERVERS]; /* ids of the data + parity servers */
    uint64_t unit;                      /* bytes of a unit, a multiple of 64 */
    uint64_t stripes;                   /* a server's memory is stripes units */
    uint64_t write_bits, parity_bits;   /* match bits of a server's two entries */
    uint32_t data, parity;              /* numbers of members of a stripe */
};

/* HPU memory of both entries of a server: set by the host, constant. */
struct raid_state {
    struct raid_layout layout;
    uint32_t server; /* which of them this one is */
    uint32_t by_table;
    uint8_t table[RAID_PARITY][RAID_DATA][RAID_TABLE]; /* products with c of parity, data */
};

/* The handler host memory of both entries: zeroed before the first write. */
struct raid_locks {
    uint64_t lock[RAID_LOCKS];
};

/* raid_state() describes server number `server`. `tables` are those that ISA-L's
 * ec_init_tables(data, parity, ...) makes of the rows of the generator matrix that give
 * the parities; NULL: parity is the sum (RAID-5), and there is one. PTL_ARG_INVALID: the
 * layout or the number cannot be. */
int raid_state(const struct raid_layout *layout, uint32_t server, const uint8_t *tables,
               struct raid_state *state);

/* raid_write_handlers() fills in the handlers of the entry for clients, which may get from
 * it, too; raid_parity_handlers() those of the entry for the other servers. Both are
 * persistent and over the server's memory. */
void raid_write_handlers(const struct raid_state *state, struct raid_locks *locks,
                         ptl_handlers_t *handlers);
void raid_parity_handlers(const struct raid_state *state, struct raid_locks *locks,
                          ptl_handlers_t *handlers);

/* ---- Client ---- */

/* raid_place() finds the byte `address` of the volume: the server and the offset in its
 * memory. Returns how many bytes follow it there. */
uint64_t raid_place(const struct raid_layout *layout, uint64_t address, uint32_t *server,
                    uint64_t *offset);

/* A client: filled in by the program. The counter counts acknowledgements of `md` and
 * messages at an entry of no length with match bits `done_bits`, both PTL_..._EVENT_CT. */
struct raid_client {
    struct raid_layout layout;
    ptl_process_t self;
    ptl_pt_index_t pt; /* of all entries */
    uint64_t done_bits;
    ptl_handle_md_t md; /* over staging */
    ptl_handle_ct_t ct;
    uint8_t *staging;       /* slots packets */
    uint64_t slots, packet; /* messages under way at most; max_payload_size */
    ptl_time_t timeout_ms;
    uint64_t counted; /* 0; what the counter is to reach */
};

/* raid_write() writes to the volume; the data is on all servers when raid_wait() has
 * returned PTL_OK. Both return PTL_CT_NONE_REACHED when servers did not answer within
 * timeout_ms, PTL_FAIL when one refused, and what PtlPut() and PtlCTPoll() give. */
int raid_write(struct raid_client *c, uint64_t address, const void *data, uint64_t length);
int raid_wait(struct raid_client *c);

#endif
