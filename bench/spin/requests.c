/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Services at the target, asked by rank 0 in windows:
 *
 *   kv_get     16 gets of 32-byte values from 1,024 keys           handlers/kvstore
 *   condread   one request: the 8-byte column of those of 16,384 rows of 64 bytes whose key is
 *              the wanted one, 256 of them                         handlers/condread
 *   txlog      64 puts of 64 bytes, each of them logged            handlers/txlog
 *
 * cpu: rank 1's program takes a full event for each request and does what it asks, with data
 * structures of its own: a chained table, a scan, an array of records.
 */
#include "jobs.h"

#include "condread.h"
#include "kvstore.h"
#include "spin_handler.h"
#include "txlog.h"

#include <string.h>

enum {
    GETS = 16,
    KEYS = 1024,
    VALUE = 32,
    ROW = 64,
    ROWS = 16384,
    MATCHES = 256,
    PUTS = 64,
    PUT = 64,
    RECORDS = 1 << 16,
    TRANSACTION = 7
};

static uint8_t *const *const table = &spin.to; /* rank 1: what the requests are about */

/* Requests that the CPU answers land behind it. */
uint8_t *spin_landing(void)
{
    return spin.to + (size_t)2 * SPIN_MESSAGE;
}

int spin_request(uint64_t slot, uint64_t length, ptl_match_bits_t bits)
{
    int code =
        PtlPut(spin.md, slot * SPIN_SLOT, length, PTL_NO_ACK_REQ, self.peer,
               spin.way == WAY_CPU ? LINK_EVENTS : LINK_COUNTED, bits, slot * SPIN_SLOT, NULL, 0);
    return link_ok(code, "PtlPut") ? 0 : -1;
}

static int reply(uint64_t offset, const void *data, uint64_t length)
{
    memcpy(spin.from, data, length);
    int code = PtlPut(spin.md, 0, length, PTL_NO_ACK_REQ, self.peer, LINK_COUNTED, SPIN_ANSWER,
                      offset, NULL, 0);
    return link_ok(code, "PtlPut") ? 0 : -1;
}

int spin_next_event(ptl_event_t *event)
{
    int code = PtlEQWait(self.eq, event);
    if (code != PTL_OK || event->type != PTL_EVENT_PUT || event->ni_fail_type != PTL_NI_OK) {
        return turn_fail("PtlEQWait: %d, an event of type %d, failure %d", code, (int)event->type,
                         (int)event->ni_fail_type);
    }
    return 0;
}

int spin_append_for_cpu(ptl_match_bits_t ignore)
{
    return spin_entry(LINK_EVENTS, 0, SPIN_BITS, ignore, spin_landing(), SPIN_MESSAGE,
                      &spin.arrived, NULL, &spin.entry);
}

/* ---- kv_get ---- */

/* The CPU's table: chains of nodes, by the hash of the key. */
static struct node {
    uint64_t key;
    uint8_t value[VALUE];
    uint32_t next; /* number of a node, 0: none */
} nodes[KEYS + 1];
static uint32_t chains[KEYS];

static void make_value(uint64_t key, uint8_t value[VALUE])
{
    turn_fill(value, VALUE, key);
}

static uint32_t *chain_of(uint64_t key)
{
    return &chains[kvstore_hash(&key, sizeof(key)) % KEYS];
}

static void fill_chains(void)
{
    memset(chains, 0, sizeof(chains));
    for (uint32_t key = 1; key <= KEYS; key++) {
        uint32_t *chain = chain_of(key);
        nodes[key].key = key;
        make_value(key, nodes[key].value);
        nodes[key].next = *chain;
        *chain = key;
    }
}

static int insert(uint64_t key)
{
    /* Through its own NIC, as a client's request would come. */
    uint8_t packet[KV_PACKET], value[VALUE];
    struct kvstore_request r = {.client = self.peer,
                                .bits = SPIN_OVER, /* counted there, its value cut off */
                                .key_length = sizeof(key),
                                .value_length = VALUE,
                                .op = KV_INSERT};
    make_value(key, value);
    uint64_t length = kvstore_request(packet, &r, &key, value);
    int code = PtlHandlersInvoke(spin.entry, packet, length);
    return link_ok(code, "PtlHandlersInvoke") ? link_wait(&spin.arrived, 1) : -1;
}

static int open_store(void)
{
    static struct kvstore_state shape;
    ptl_handlers_t h;
    int code = kvstore_shape(&shape, KEYS, KEYS, sizeof(uint64_t), VALUE, 64, 64, self.packet);
    if (!link_ok(code, "kvstore_shape")) {
        return -1;
    }
    kvstore_format(&shape, *table, spin_landing());
    kvstore_handlers(&shape, spin_landing(), &h);
    if (spin_append(LINK_COUNTED, *table, shape.memory, &h) != 0) {
        return -1;
    }
    for (uint64_t key = 1; key <= KEYS; key++) {
        if (insert(key) != 0) {
            return -1;
        }
    }
    return 0;
}

static int begin_kv(const struct turn_work *work)
{
    int rc;
    if (turn_rank() == 0) {
        memset(spin.to, 0, GETS * VALUE);
        rc = spin_append_answer(0);
        spin.over.expected += spin.way == WAY_HANDLERS ? KEYS : 0;
    } else if (spin.way == WAY_CPU) {
        fill_chains();
        rc = spin_append_for_cpu(0);
    } else {
        rc = open_store();
    }
    return rc != 0 ? rc : spin_ready();
}

static uint64_t key_of(uint64_t get)
{
    return 1 + get * 2654435761u % KEYS;
}

static int ask_values(uint64_t first)
{
    for (uint64_t i = 0; i < GETS; i++) {
        uint64_t key = key_of(first + i);
        const struct kvstore_request r = {.client = self.me,
                                          .bits = SPIN_ANSWER,
                                          .offset = i * VALUE,
                                          .tag = i,
                                          .key_length = sizeof(key),
                                          .op = KV_GET};
        uint64_t length = kvstore_request(spin.from + i * SPIN_SLOT, &r, &key, NULL);
        if (spin_request(i, length, SPIN_BITS) != 0) {
            return -1;
        }
    }
    return link_wait(&spin.answered, GETS);
}

static int answer_get(void)
{
    ptl_event_t event;
    uint64_t key;
    if (spin_next_event(&event) != 0) {
        return -1;
    }
    const struct kvstore_request *r = event.start;
    memcpy(&key, r + 1, sizeof(key));
    uint32_t at = *chain_of(key);
    while (at != 0 && nodes[at].key != key) {
        at = nodes[at].next;
    }
    return at != 0 ? reply(r->offset, nodes[at].value, VALUE) : turn_fail("a key is not there");
}

static int run_kv(const struct turn_work *work, uint64_t iterations)
{
    int rc = 0;
    if (turn_rank() == 1 && spin.way == WAY_HANDLERS) {
        return link_wait(&spin.arrived, iterations * GETS);
    }
    for (uint64_t i = 0; i < iterations && rc == 0; i++) {
        if (turn_rank() == 0) {
            rc = ask_values(i * GETS);
        }
        for (int k = 0; turn_rank() == 1 && k < GETS && rc == 0; k++) {
            rc = answer_get();
        }
    }
    return rc;
}

static int end_kv(const struct turn_work *work, struct turn_result *result)
{
    int rc = 0;
    for (uint64_t i = 0; turn_rank() == 0 && i < GETS && rc == 0; i++) {
        uint8_t wanted[VALUE];
        make_value(key_of((work->count - 1) * GETS + i), wanted);
        rc = memcmp(spin.to + i * VALUE, wanted, VALUE) == 0 ? 0 : turn_fail("a wrong value came");
    }
    return spin_unlink() != 0 ? -1 : rc;
}

/* ---- condread ---- */

struct row {
    int64_t key, value;
    uint8_t rest[ROW - 16];
};

static int begin_condread(const struct turn_work *work)
{
    static struct condread_state state;
    ptl_handlers_t h;
    int rc;
    if (turn_rank() == 0) {
        rc = spin_append_answer(PTL_ME_EVENT_CT_BYTES);
    } else {
        struct row *row = (struct row *)*table;
        for (int64_t i = 0; i < ROWS; i++) {
            row[i] = (struct row){.key = i % (ROWS / MATCHES), .value = i};
        }
        int code = condread_handlers(ROW, ROWS, 1024, self.me, SPIN_BITS, self.packet, &state, &h);
        rc = !link_ok(code, "condread_handlers") ? -1
             : spin.way == WAY_CPU               ? spin_append_for_cpu(0)
                                   : spin_append(LINK_COUNTED, *table, (ptl_size_t)ROWS * ROW, &h);
    }
    return rc != 0 ? rc : spin_ready();
}

static int ask_rows(void)
{
    const int64_t wanted = 5;
    struct condread_request r = {.client = self.me,
                                 .bits = SPIN_ANSWER,
                                 .room = MATCHES * sizeof(int64_t),
                                 .rows = ROWS,
                                 .column = offsetof(struct row, key),
                                 .width = sizeof(int64_t),
                                 .type = PTL_INT64_T,
                                 .op = CONDREAD_EQ,
                                 .select = offsetof(struct row, value),
                                 .select_width = sizeof(int64_t)};
    memcpy(r.value, &wanted, sizeof(wanted));
    memcpy(spin.from, &r, sizeof(r));
    return spin_request(0, sizeof(r), SPIN_BITS) != 0
               ? -1
               : link_wait(&spin.answered, MATCHES * sizeof(int64_t));
}

static int answer_rows(void)
{
    ptl_event_t event;
    int64_t found[MATCHES], wanted;
    uint64_t count = 0;
    if (spin_next_event(&event) != 0) {
        return -1;
    }
    const struct condread_request *r = event.start;
    const struct row *row = (const struct row *)*table;
    memcpy(&wanted, r->value, sizeof(wanted));
    for (uint64_t i = 0; i < ROWS && count < MATCHES; i++) {
        if (row[i].key == wanted) {
            found[count++] = row[i].value;
        }
    }
    return reply(r->offset, found, count * sizeof(found[0]));
}

static int run_condread(const struct turn_work *work, uint64_t iterations)
{
    int rc = 0;
    for (uint64_t i = 0; i < iterations && rc == 0; i++) {
        rc = turn_rank() == 0 ? ask_rows() : spin.way == WAY_CPU ? answer_rows() : 0;
    }
    return rc != 0 ? rc : turn_rank() == 0 ? spin_say() : spin_hear();
}

static int end_condread(const struct turn_work *work, struct turn_result *result)
{
    int rc = 0;
    for (int64_t i = 0; turn_rank() == 0 && i < MATCHES && rc == 0; i++) {
        int64_t value;
        memcpy(&value, spin.to + i * 8, sizeof(value));
        rc = value == i * (ROWS / MATCHES) + 5 ? 0 : turn_fail("a wrong row came");
    }
    return spin_unlink() != 0 ? -1 : rc;
}

/* ---- txlog ---- */

/* The log: the handlers' own, or of the CPU an array of the same records. */
static _Alignas(64) uint8_t
    log_memory[sizeof(struct txlog) + RECORDS * sizeof(struct txlog_record)];
static uint64_t logged; /* by the CPU */

static int begin_txlog(const struct turn_work *work)
{
    static struct txlog_state state;
    ptl_handlers_t h;
    int rc = 0;
    if (turn_rank() == 1) {
        memset(log_memory, 0, sizeof(log_memory));
        logged = 0;
        txlog_handlers(RECORDS, log_memory, &state, &h);
        rc = spin.way == WAY_CPU ? spin_append_for_cpu(TXLOG_IGNORE)
                                 : spin_entry(LINK_COUNTED, 0, SPIN_BITS, TXLOG_IGNORE, *table,
                                              SPIN_MESSAGE, &spin.arrived, &h, &spin.entry);
    }
    return rc != 0 ? rc : spin_ready();
}

static int put_transaction(void)
{
    for (uint64_t i = 0; i < PUTS; i++) {
        if (spin_request(i, PUT, txlog_bits(TRANSACTION, SPIN_BITS)) != 0) {
            return -1;
        }
    }
    return spin_hear();
}

static int log_one(void)
{
    ptl_event_t event;
    if (spin_next_event(&event) != 0) {
        return -1;
    }
    struct txlog_record *record =
        (struct txlog_record *)(log_memory + sizeof(struct txlog)) + logged++;
    *record = (struct txlog_record){.ready = 1,
                                    .offset = event.remote_offset,
                                    .length = event.mlength,
                                    .source = event.initiator,
                                    .transaction = (uint32_t)(event.match_bits >> 32),
                                    .type = PTL_REQUEST_PUT};
    return 0;
}

static int take_transaction(void)
{
    int rc = 0;
    if (spin.way == WAY_HANDLERS) {
        logged += PUTS;
        rc = link_wait(&spin.arrived, PUTS);
    }
    for (int i = 0; i < PUTS && spin.way == WAY_CPU && rc == 0; i++) {
        rc = log_one();
    }
    if (logged + PUTS > RECORDS) {
        logged = 0;
        txlog_reset(log_memory, RECORDS);
    }
    return rc != 0 ? rc : spin_say();
}

static int run_txlog(const struct turn_work *work, uint64_t iterations)
{
    int rc = 0;
    for (uint64_t i = 0; i < iterations && rc == 0; i++) {
        rc = turn_rank() == 0 ? put_transaction() : take_transaction();
    }
    return rc;
}

static int end_txlog(const struct turn_work *work, struct turn_result *result)
{
    const struct txlog_record *record =
        (const struct txlog_record *)(log_memory + sizeof(struct txlog));
    int rc = 0;
    for (uint64_t i = 0; turn_rank() == 1 && i < logged && rc == 0; i++) {
        bool good = record[i].ready == 1 && record[i].transaction == TRANSACTION &&
                    record[i].offset == i % PUTS * SPIN_SLOT && record[i].length == PUT;
        rc = good ? 0 : turn_fail("record %lu of the log is wrong", (unsigned long)i);
    }
    return spin_unlink() != 0 ? -1 : rc;
}

static const struct turn_duty duties[] = {
    {BENCH_SPIN_KV_GET, NULL, begin_kv, run_kv, end_kv},
    {BENCH_SPIN_CONDREAD, NULL, begin_condread, run_condread, end_condread},
    {BENCH_SPIN_TXLOG, NULL, begin_txlog, run_txlog, end_txlog},
};

const struct spin_family spin_requests = {duties, sizeof(duties) / sizeof(duties[0]),
                                          1u << WAY_HANDLERS | 1u << WAY_CPU};
