/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Redundant storage; see raid.h.
 *
 * A handler turns a write message into the parity message in the packet buffer: it replaces the
 * data by the difference, and sets `member` to the number of the data server in the stripe. It
 * reads the old data and writes the new data under one lock. Else two writes to the same place
 * could both compute the difference to the same old data, and the parity would be wrong for ever.
 */
#include "raid.h"

#include "bytes.h"
#include "host_lock.h"
#include "spin_handler.h"

/* A message to either entry of a server; data follow, all within one unit. */
struct raid_message {
    uint64_t offset; /* offset in the server's memory */
    ptl_process_t client;
    uint64_t done_bits;
    /* of a message to a parity server: number in the stripe of the data server that sends it */
    uint32_t member;
    uint32_t unused;
};

_Static_assert(sizeof(struct raid_message) == 32, "clients and servers agree on it");

/* ---- Layout ---- */

static uint32_t servers(const struct raid_layout *l)
{
    return l->data + l->parity;
}

static uint32_t server_of(const struct raid_layout *l, uint64_t stripe, uint32_t member)
{
    return (uint32_t)((stripe + member) % servers(l));
}

static uint32_t member_of(const struct raid_layout *l, uint64_t stripe, uint32_t server)
{
    return (uint32_t)((server + servers(l) - stripe % servers(l)) % servers(l));
}

/* ---- On the NIC ---- */

/* True if a packet is a valid message about one unit. */
static bool is_message(const struct raid_layout *l, const ptl_payload_t *p)
{
    const struct raid_message *m = (const struct raid_message *)p->base;
    if (p->offset != 0 || p->length < sizeof(*m) || m->offset / l->unit >= l->stripes) {
        return false;
    }
    return range_fits(m->offset % l->unit, p->length - sizeof(*m), l->unit);
}

/* Handles a part of a write message that lies in one block, whose lock is held: writes `data` to
 * memory, and replaces it by the difference to the old contents. */
static void store(uint64_t at, uint8_t *data, uint64_t length)
{
    uint8_t old[RAID_BLOCK];
    PtlHandlerDMAFromHostB(at, old, length, PTL_ME_HOST_MEM);
    PtlHandlerDMAToHostB(data, at, length, PTL_ME_HOST_MEM);
    bytes_xor(data, old, length);
}

/* Adds the products of bytes with the coefficient of a table, many bytes at once: a product is the
 * sum of the products of the byte's bits, so each bit adds its product where it is set. */
static void add_products(uint8_t *sum, const uint8_t *data, uint64_t length, const uint8_t *table)
{
    enum { BITS = 8 };
    const unsigned long ones = ~0UL / UINT8_MAX; /* bit 0 of each byte */
    unsigned long product[BITS];
    for (unsigned b = 0; b < BITS; b++) {
        product[b] = b < BITS / 2 ? table[1 << b] : table[16 + (1 << (b - BITS / 2))];
    }
    unsigned long words = (unsigned long)(length / sizeof(struct bytes_register));
    unsigned long done = words * sizeof(struct bytes_register);
    for (unsigned long i = 0; i < words; i++) {
        unsigned long word = ((const struct bytes_register *)data)[i].value, all = 0;
#pragma GCC unroll 8
        for (unsigned b = 0; b < BITS; b++) {
            all ^= (word >> b & ones) * product[b];
        }
        ((struct bytes_register *)sum)[i].value ^= all;
    }
    for (; done < length; done++) {
        sum[done] ^= table[data[done] & 15] ^ table[16 + (data[done] >> 4)];
    }
}

/* At a parity server: adds the difference to memory, multiplied with the help of the table unless
 * that is NULL. The table has the products of the lower and upper halves of bytes. */
static void add(uint64_t at, const uint8_t *data, uint64_t length, const uint8_t *table)
{
    uint8_t sum[RAID_BLOCK];
    PtlHandlerDMAFromHostB(at, sum, length, PTL_ME_HOST_MEM);
    if (table == NULL) {
        bytes_xor(sum, data, length);
    } else {
        add_products(sum, data, length, table);
    }
    PtlHandlerDMAToHostB(sum, at, length, PTL_ME_HOST_MEM);
}

/* Applies the data of a message to memory, block by block. */
static bool update(const ptl_payload_t *p, bool parity, const uint8_t *table)
{
    const struct raid_message *m = (const struct raid_message *)p->base;
    uint8_t *data = p->base + sizeof(*m);
    uint64_t length = p->length - sizeof(*m);
    for (uint64_t done = 0; done < length;) {
        uint64_t at = m->offset + done, n = smaller(length - done, RAID_BLOCK - at % RAID_BLOCK);
        uint64_t lock = at / RAID_BLOCK % RAID_LOCKS * sizeof(uint64_t);
        if (!host_lock(lock, PTL_HANDLER_HOST_MEM, HOST_LOCK_TRIES)) {
            return false;
        }
        if (parity) {
            add(at, data + done, n, table);
        } else {
            store(at, data + done, n);
        }
        host_unlock(lock, PTL_HANDLER_HOST_MEM);
        done += n;
    }
    return true;
}

__handler static int raid_write_packet(const ptl_payload_t p, void *state)
{
    const struct raid_state *s = state;
    const struct raid_layout *l = &s->layout;
    struct raid_message *m = (struct raid_message *)p.base;
    int result = SUCCESS;
    if (!is_message(l, &p)) {
        return FAIL;
    }
    uint64_t stripe = m->offset / l->unit;
    m->member = member_of(l, stripe, s->server);
    if (m->member >= l->data || !update(&p, false, NULL)) {
        return FAIL; /* in this stripe this server has no data */
    }
    for (uint32_t i = 0; i < l->parity; i++) {
        if (PtlHandlerPutFromDevice(p.base, p.length, PTL_NO_ACK_REQ,
                                    l->server[server_of(l, stripe, l->data + i)], l->parity_bits, 0,
                                    NULL, 0) != PTL_OK) {
            result = FAIL;
        }
    }
    return result;
}
PTL_HANDLER(raid_write_packet);

__handler static int raid_parity_packet(const ptl_payload_t p, void *state)
{
    const struct raid_state *s = state;
    const struct raid_layout *l = &s->layout;
    const struct raid_message *m = (const struct raid_message *)p.base;
    if (!is_message(l, &p) || m->member >= l->data) {
        return FAIL;
    }
    uint32_t member = member_of(l, m->offset / l->unit, s->server);
    if (member < l->data ||
        !update(&p, true, s->by_table ? s->table[member - l->data][m->member] : NULL)) {
        return FAIL;
    }
    return PtlHandlerPutFromDevice(NULL, 0, PTL_NO_ACK_REQ, m->client, m->done_bits, 0, NULL, 0) ==
                   PTL_OK
               ? SUCCESS
               : FAIL;
}
PTL_HANDLER(raid_parity_packet);

/* ---- The server's functions ---- */

int raid_state(const struct raid_layout *layout, uint32_t server, const uint8_t *tables,
               struct raid_state *state)
{
    uint64_t bytes;
    if (layout->data == 0 || layout->data > RAID_DATA || layout->parity == 0 ||
        layout->parity > RAID_PARITY || (tables == NULL && layout->parity != 1) ||
        server >= servers(layout) || layout->unit == 0 || layout->unit % 64 != 0 ||
        __builtin_mul_overflow(layout->unit, layout->stripes, &bytes)) {
        return PTL_ARG_INVALID;
    }
    bytes_zero(state, sizeof(*state));
    bytes_copy(&state->layout, layout, sizeof(*layout));
    state->server = server;
    state->by_table = tables != NULL;
    for (uint32_t p = 0; tables != NULL && p < layout->parity; p++) {
        bytes_copy(state->table[p], tables + (uint64_t)p * layout->data * RAID_TABLE,
                   (uint64_t)layout->data * RAID_TABLE);
    }
    return PTL_OK;
}

static ptl_handlers_t handlers_of(const struct raid_state *state, struct raid_locks *locks,
                                  ptl_payload_handler_t payload)
{
    return (ptl_handlers_t){
        .payload_handler = payload,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
        .handler_host_mem = locks,
        .handler_host_length = sizeof(*locks),
    };
}

void raid_write_handlers(const struct raid_state *state, struct raid_locks *locks,
                         ptl_handlers_t *handlers)
{
    *handlers = handlers_of(state, locks, raid_write_packet);
}

void raid_parity_handlers(const struct raid_state *state, struct raid_locks *locks,
                          ptl_handlers_t *handlers)
{
    *handlers = handlers_of(state, locks, raid_parity_packet);
}

/* ---- The client's functions ---- */

uint64_t raid_place(const struct raid_layout *layout, uint64_t address, uint32_t *server,
                    uint64_t *offset)
{
    uint64_t unit = address / layout->unit, within = address % layout->unit;
    uint64_t stripe = unit / layout->data;
    *server = server_of(layout, stripe, (uint32_t)(unit % layout->data));
    *offset = stripe * layout->unit + within;
    return layout->unit - within;
}

int raid_wait(struct raid_client *c)
{
    ptl_ct_event_t count;
    ptl_size_t test = c->counted;
    unsigned int which;
    int rc = PtlCTPoll(&c->ct, &test, 1, c->timeout_ms, &count, &which);
    return rc == PTL_OK && count.failure != 0 ? PTL_FAIL : rc;
}

/* Sends a message. Each message is counted once by the ack of its server, and once by each parity
 * server. Slots of the staging memory are used again when all messages in them are known to have
 * arrived. */
static int send(struct raid_client *c, uint64_t number, uint32_t server, uint64_t offset,
                const uint8_t *data, uint64_t length)
{
    uint64_t slot = number % c->slots * c->packet;
    struct raid_message *m = (struct raid_message *)(c->staging + slot);
    int rc = slot == 0 ? raid_wait(c) : PTL_OK;
    if (rc != PTL_OK) {
        return rc;
    }
    *m = (struct raid_message){.offset = offset, .client = c->self, .done_bits = c->done_bits};
    bytes_copy(m + 1, data, length);
    rc = PtlPut(c->md, slot, sizeof(*m) + length, PTL_CT_ACK_REQ, c->layout.server[server], c->pt,
                c->layout.write_bits, 0, NULL, 0);
    if (rc == PTL_OK) {
        c->counted += 1 + c->layout.parity;
    }
    return rc;
}

int raid_write(struct raid_client *c, uint64_t address, const void *data, uint64_t length)
{
    const uint8_t *from = data;
    int rc = PTL_OK;
    while (length != 0 && rc == PTL_OK) {
        uint32_t server;
        uint64_t offset, n = smaller(length, c->packet - sizeof(struct raid_message));
        n = smaller(n, raid_place(&c->layout, address, &server, &offset));
        rc = send(c, c->counted / (1 + c->layout.parity), server, offset, from, n);
        address += n;
        from += n;
        length -= n;
    }
    return rc;
}
