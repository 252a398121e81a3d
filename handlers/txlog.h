/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An access log for distributed transactions: every put, get, atomic, fetch and swap of the
 * entry is recorded in host memory by its header handler, and then done as if there were no
 * handlers. At commit time the host reads the log: who has touched what since when.
 *
 *      put, get, ... ──► header handler: record ──► PROCEED: deposit, operation, reply
 *                                          │
 *      handler host memory   | taken | record 0 | record 1 | ... |
 *
 * Messages carry the number of their transaction in the upper half of their match bits
 * (a get has no other place), the entry ignores that half.
 *
 * A record stands in the log before its message has any effect on memory, so what a
 * committing transaction finds is all that can have touched what it used. When the log is
 * full, messages fail rather than go unrecorded.
 */
#ifndef HANDLERS_TXLOG_H
#define HANDLERS_TXLOG_H

#include "portals4.h"
#include "spin.h"

/* Match bits: transaction above, what the entry matches below. */
#define TXLOG_IGNORE UINT64_C(0xffffffff00000000)

static inline ptl_match_bits_t txlog_bits(uint32_t transaction, uint32_t bits)
{
    return (ptl_match_bits_t)transaction << 32 | bits;
}

struct txlog_record {
    uint64_t ready;          /* 1: all of it is there; 2: its transaction has ended */
    uint64_t offset, length; /* of the memory that it touches */
    ptl_process_t source;
    uint32_t transaction;
    uint32_t type; /* PTL_REQUEST_... */
};

/* The handler host memory: this, then the records. */
struct txlog {
    uint64_t taken; /* records that were asked for; more than there are: some were refused */
    uint64_t unused[7];
};

_Static_assert(sizeof(struct txlog) == 64 && sizeof(struct txlog_record) == 40,
               "handlers and host agree on it");

/* HPU memory of the entry: set by the host, constant. */
struct txlog_state {
    uint64_t records;
};

/* txlog_size() is the size of a log of so many records, which begins as zeros at a
 * multiple of 8. */
uint64_t txlog_size(uint64_t records);

/* txlog_handlers() fills in the handlers of a persistent entry that ignores TXLOG_IGNORE. A
 * message for which there is no record left ends with PTL_NI_HANDLER_FAIL and has no
 * effect. *state must last until the entry is appended. */
void txlog_handlers(uint64_t records, void *log, struct txlog_state *state,
                    ptl_handlers_t *handlers);

/* ---- At commit time ---- */

enum txlog_verdict {
    TXLOG_ALONE,
    TXLOG_CONFLICT,  /* another transaction has touched the same bytes, one of the two not by a get
                      */
    TXLOG_OVERFLOWED /* messages were refused, of whatever transaction */
};

/* txlog_judge() tells whether `transaction` may commit, by all records so far; *with is
 * whom it conflicts with. */
enum txlog_verdict txlog_judge(const void *log, uint64_t records, uint32_t transaction,
                               uint32_t *with);

/* txlog_forget() takes the records of a transaction that has ended out of consideration. */
void txlog_forget(void *log, uint64_t records, uint32_t transaction);

/* txlog_reset() empties the log. No message may be under way. */
void txlog_reset(void *log, uint64_t records);

#endif
