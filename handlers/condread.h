/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Conditional read: SELECT column FROM table WHERE column op value, executed by the NIC of the
 * table's owner. A handler of the request scans the table in place and sends the selected columns
 * back; nothing else crosses the network.
 *
 *      table     | row | row | row | row | ...       rows of one size, columns at fixed places
 *                   │           │
 *      client    | selected | selected | ...         packed, in order of the rows
 *                                          then: how many rows matched, in hdr_data
 *
 * A handler scans `steps` rows, and then sends the rest of the job to its own NIC as another
 * request: so during the scan of a large table the HPU also runs other handlers. The state is
 * constant, so any number of requests may be in progress.
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

/* A request, as it is sent. Packets must be at least as long as this struct. */
struct condread_request {
    ptl_process_t client;
    /* match bits of the client's entry; its portal table index is the table's */
    uint64_t bits;
    uint64_t offset;        /* offset of the result in that entry */
    uint64_t room;          /* bytes of the result, at most */
    uint64_t tag;           /* 15 bits that the end of the result returns in hdr_data */
    uint64_t first, rows;   /* the rows of the table to scan */
    uint32_t column, width; /* the column that is compared: offset in a row, bytes */
    uint32_t type;          /* type of that column: PTL_INT8_T to PTL_DOUBLE, or CONDREAD_BYTES */
    uint32_t op;
    uint32_t select, select_width; /* the column that is sent: offset in a row, bytes */
    uint8_t value[CONDREAD_VALUE]; /* the value that the column is compared with */
    uint64_t matched;              /* clients set 0; handlers count the rows that matched so far */
};

_Static_assert(sizeof(struct condread_request) == 152, "clients and tables agree on it");

/* condread_end() is the hdr_data of a result's last message: it has the request's tag, and how many
 * rows matched, also those for which there was no room. Other messages of the result have hdr_data
 * 0. Messages may overtake each other: the result has come when the client has received all bytes
 * of the matches for which there was room. */
static inline uint64_t condread_end(uint64_t tag, uint64_t matched)
{
    return UINT64_C(1) << 63 | (tag & 0x7fff) << 48 | matched;
}

/* HPU memory of the entry: the host sets it, and it stays constant. */
struct condread_state {
    uint64_t row, rows; /* bytes of a row; rows of the table */
    uint64_t steps;     /* rows that a handler scans before it hands the rest on */
    uint64_t bits;      /* match bits of the entry itself */
    ptl_process_t self;
    uint64_t packet;
};

/* condread_handlers() fills in the handlers of a persistent entry over a table of `rows` rows of
 * `row` bytes; `self` is this process's id, `bits` the entry's match bits, `packet`
 * max_payload_size. PTL_ARG_INVALID: a row is longer than CONDREAD_ROW or empty, there are 2^48
 * rows or more, steps is 0, or packets are too short. *state must last until the entry is
 * appended. A message that is no valid request, or names rows outside the table or columns
 * outside a row, ends with PTL_NI_HANDLER_FAIL and has no result. */
int condread_handlers(ptl_size_t row, ptl_size_t rows, ptl_size_t steps, ptl_process_t self,
                      ptl_match_bits_t bits, ptl_size_t packet, struct condread_state *state,
                      ptl_handlers_t *handlers);

#endif
