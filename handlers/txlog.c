/* SPDX-License-Identifier: BSD-3-Clause */
/* Access log for transactions; see txlog.h. */
#include "txlog.h"

#include "bytes.h"
#include "spin_handler.h"

enum { READY = 1, ENDED = 2 };

/* ---- On the NIC ---- */

/* Records an access. The operand of a swap comes first in its payload and touches no memory, so it
 * is not part of the recorded range. */
__handler static int txlog_header(const ptl_header_t h, void *state)
{
    const struct txlog_state *s = state;
    uint64_t number = 0, ready = 0;
    const struct txlog_record record = {.offset = h.offset,
                                        .length = h.length - h.user_hdr_length,
                                        .source = h.source_id,
                                        .transaction = (uint32_t)(h.match_bits >> 32),
                                        .type = h.type};
    PtlHandlerDMAFetchAddB(offsetof(struct txlog, taken), 1, &number, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    if (number >= s->records) {
        return FAIL;
    }
    uint64_t at = sizeof(struct txlog) + number * sizeof(record);
    PtlHandlerDMAToHostB(&record, at, sizeof(record), PTL_HANDLER_HOST_MEM);
    PtlHandlerDMACASB(at + offsetof(struct txlog_record, ready), &ready, READY,
                      PTL_HANDLER_HOST_MEM);
    return PROCEED;
}
PTL_HANDLER(txlog_header);

void txlog_handlers(uint64_t records, void *log, struct txlog_state *state,
                    ptl_handlers_t *handlers)
{
    *state = (struct txlog_state){.records = records};
    *handlers = (ptl_handlers_t){
        .header_handler = txlog_header,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
        .handler_host_mem = log,
        .handler_host_length = txlog_size(records),
    };
}

/* ---- On the host ---- */

uint64_t txlog_size(uint64_t records)
{
    return sizeof(struct txlog) + records * sizeof(struct txlog_record);
}

static struct txlog_record *records_of(const void *log)
{
    return (struct txlog_record *)((uint8_t *)log + sizeof(struct txlog));
}

static uint64_t taken(const void *log)
{
    return __atomic_load_n(&((const struct txlog *)log)->taken, __ATOMIC_ACQUIRE);
}

/* Returns how many records were begun. Those that are not `ready` belong to messages that had no
 * effect yet, which the transaction cannot have seen. */
static uint64_t begun(const void *log, uint64_t records)
{
    return smaller(__atomic_load_n(&((const struct txlog *)log)->taken, __ATOMIC_ACQUIRE), records);
}

static bool counts(const struct txlog_record *r)
{
    return __atomic_load_n(&r->ready, __ATOMIC_ACQUIRE) == READY;
}

/* True if two ranges overlap. Lengths are below 2^63, and a range whose end wraps is not in
 * memory. */
static bool overlap(const struct txlog_record *a, const struct txlog_record *b)
{
    return a->length != 0 && b->length != 0 && a->offset < b->offset + b->length &&
           b->offset < a->offset + a->length;
}

/* True if an access may change memory: any access but a get, also one that fetches. */
static bool changes(const struct txlog_record *r)
{
    return r->type != PTL_REQUEST_GET;
}

enum txlog_verdict txlog_judge(const void *log, uint64_t records, uint32_t transaction,
                               uint32_t *with)
{
    const struct txlog_record *r = records_of(log);
    uint64_t count = begun(log, records);
    for (uint64_t i = 0; i < count; i++) {
        if (r[i].transaction != transaction || !counts(&r[i])) {
            continue;
        }
        for (uint64_t j = 0; j < count; j++) {
            if (counts(&r[j]) && r[j].transaction != transaction && overlap(&r[i], &r[j]) &&
                (changes(&r[i]) || changes(&r[j]))) {
                *with = r[j].transaction;
                return TXLOG_CONFLICT;
            }
        }
    }
    return taken(log) > records ? TXLOG_OVERFLOWED : TXLOG_ALONE;
}

void txlog_forget(void *log, uint64_t records, uint32_t transaction)
{
    struct txlog_record *r = records_of(log);
    uint64_t count = begun(log, records);
    for (uint64_t i = 0; i < count; i++) {
        if (counts(&r[i]) && r[i].transaction == transaction) {
            __atomic_store_n(&r[i].ready, ENDED, __ATOMIC_RELEASE);
        }
    }
}

void txlog_reset(void *log, uint64_t records)
{
    bytes_zero(log, txlog_size(records));
}
