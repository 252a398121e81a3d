/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An access log for distributed transactions. The header handler of each put, get, atomic, fetch
 * and swap at the entry records the access in host memory; then the NIC executes the message as if
 * there were no handlers. At commit time the host reads from the log which transactions have
 * accessed which bytes.
 *
 *      put, get, ... ──► header handler: record ──► PROCEED: deposit, operation, reply
 *                                          │
 *      handler host memory   | taken | record 0 | record 1 | ... |
 *
 * The number of a message's transaction is in the upper half of its match bits, since a get has no
 * other place for it; the entry ignores that half.
 *
 * A record is in the log before its message has any effect on memory. So a transaction that commits
 * finds records of all accesses that can have touched the bytes it used. When the log is full
 * messages fail instead of being left out.
 */
#ifndef HANDLERS_TXLOG_H
#define HANDLERS_TXLOG_H

#include "portals4.h"
#include "spin.h"

/* Match bits: the transaction in the upper half, the bits that the entry matches in the lower
 * half. */
#define TXLOG_IGNORE UINT64_C(0xffffffff00000000)

static inline ptl_match_bits_t txlog_bits(uint32_t transaction, uint32_t bits)
{
    return (ptl_match_bits_t)transaction << 32 | bits;
}

struct txlog_record {
    uint64_t ready;          /* 1: the record is complete; 2: its transaction has ended */
    uint64_t offset, length; /* the bytes of the entry that the message accesses */
    ptl_process_t source;
    uint32_t transaction;
    uint32_t type; /* PTL_REQUEST_... */
};

/* The handler host memory: this, then the records. */
struct txlog {
    /* records that messages have asked for; if the log has fewer, messages were refused */
    uint64_t taken;
    uint64_t unused[7];
};

_Static_assert(sizeof(struct txlog) == 64 && sizeof(struct txlog_record) == 40,
               "handlers and host agree on it");

/* HPU memory of the entry: the host sets it, and it stays constant. */
struct txlog_state {
    uint64_t records;
};

/* txlog_size() returns the bytes of a log of `records` records, which the host zeroes, at a
 * multiple of 8. */
uint64_t txlog_size(uint64_t records);

/* txlog_handlers() fills in the handlers of a persistent entry that ignores TXLOG_IGNORE. When
 * the log is full a message ends with PTL_NI_HANDLER_FAIL and has no effect. *state must last
 * until the entry is appended. */
void txlog_handlers(uint64_t records, void *log, struct txlog_state *state,
                    ptl_handlers_t *handlers);

/* ---- At commit time ---- */

enum txlog_verdict {
    TXLOG_ALONE,
    /* another transaction has accessed the same bytes, and one of the two accesses was no get */
    TXLOG_CONFLICT,
    TXLOG_OVERFLOWED /* messages were refused since the log was full, of whichever transaction */
};

/* txlog_judge() decides whether `transaction` may commit, by all records so far; after
 * TXLOG_CONFLICT *with is the other transaction. */
enum txlog_verdict txlog_judge(const void *log, uint64_t records, uint32_t transaction,
                               uint32_t *with);

/* txlog_forget() marks the records of a transaction that has ended, so that txlog_judge() ignores
 * them. */
void txlog_forget(void *log, uint64_t records, uint32_t transaction);

/* txlog_reset() empties the log. No message may be in progress. */
void txlog_reset(void *log, uint64_t records);

#endif
