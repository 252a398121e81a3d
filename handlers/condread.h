/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conditional read: SELECT column FROM table WHERE column op value, done where the table
 * is. The request goes to the NIC of the table's owner, which scans the table in place
 * and sends back what matches; nothing else crosses the network.
 *
 *      table     | row | row | row | row | ...       rows of one size, columns at fixed places
 *                   │           │
 *      client    | selected | selected | ...         packed, in order of the rows
 *                                          then: how many rows matched, in hdr_data
 *
 * A handler scans `steps` rows and then sends the rest of the job to its own NIC, as a
 * request like any other: a scan of a large table leaves the HPU to others in between.
 * The state is constant; any number of requests may be under way.
 */
#ifndef HANDLERS_CONDREAD_H
#define HANDLERS_CONDREAD_H

#include "portals4.h"
#include "spin.h"

enum condread_op {
    CONDREAD_EQ,
    CONDREAD_NE,
    CONDREAD_LT,
    CONDREAD_LE,
    CONDREAD_GT,
    CONDREAD_GE,
    CONDREAD_OPS
};

/* The type of a column: an integer or real type of Portals up to 8 bytes, or bytes, which compare
 * as memcmp() does. */
enum { CONDREAD_BYTES = 255, CONDREAD_VALUE = 64, CONDREAD_ROW = 1024 };

/* A request, as it travels. Packets must have its length. */
struct condread_request {
    ptl_process_t client;
    uint64_t bits;          /* match bits of the client's entry; its index is the table's */
    uint64_t offset;        /* where in the entry the result goes */
    uint64_t room;          /* how much of the result there may be */
    uint64_t tag;           /* 15 bits that come back in hdr_data */
    uint64_t first, rows;   /* the part of the table to scan */
    uint32_t column, width; /* the column that is compared: place in a row, bytes */
    uint32_t type;          /* of it: PTL_INT8_T to PTL_DOUBLE, or CONDREAD_BYTES */
    uint32_t op;
    uint32_t select, select_width; /* the column that is sent */
    uint8_t value[CONDREAD_VALUE]; /* the value that it is compared with */
    uint64_t matched;              /* 0; by handlers: rows that matched so far */
};

_Static_assert(sizeof(struct condread_request) == 152, "clients and tables agree on it");

/* The last message of a result has hdr_data = condread_end(tag, rows that matched); the
 * others have 0. Matches for which there was no room are counted, too. The result is
 * there when as many bytes have come as the matches in the room have. */
static inline uint64_t condread_end(uint64_t tag, uint64_t matched)
{
    return UINT64_C(1) << 63 | (tag & 0x7fff) << 48 | matched;
}

/* HPU memory of the entry: set by the host, constant. */
struct condread_state {
    uint64_t row, rows; /* bytes of a row, rows of the table */
    uint64_t steps;     /* rows that a handler scans */
    uint64_t bits;      /* of the entry itself */
    ptl_process_t self;
    uint64_t packet;
};

/* condread_handlers() fills in the handlers of a persistent entry over a table of `rows`
 * rows of `row` bytes; `self` is this process's id, `bits` the entry's match bits, `packet`
 * max_payload_size. PTL_ARG_INVALID: a row is longer than CONDREAD_ROW or empty, there are
 * 2^48 rows or more, steps is 0, or packets are too short. *state must last until the
 * entry is appended. A request that is none, or leaves the table or the row, ends with
 * PTL_NI_HANDLER_FAIL and has no result. */
int condread_handlers(ptl_size_t row, ptl_size_t rows, ptl_size_t steps, ptl_process_t self,
                      ptl_match_bits_t bits, ptl_size_t packet, struct condread_state *state,
                      ptl_handlers_t *handlers);

#endif
