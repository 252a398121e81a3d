/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 7c of the sPIN paper: client 0 updates BYTES of a RAID-5 volume, in units of 4096 B round
 * four data servers (ranks 2 to 5), of which each gets its part in one put; rank 1 has the parity.
 * Until the client has all acks.
 *
 *      client ── new ──► data server ── old ⊕ new ──► parity server
 *             ◄── ack ──             ◄──── ack ─────
 *
 *      rdma          programs do it, on whole parts
 *      spin, cycles  handlers do, packet by packet (figure_7c_handlers.c)
 *
 * At the end each server looks at its memory.
 */
#include "figure.h"

#include "bytes.h"
#include "figure_7c_handlers.h"

enum way { RDMA, SPIN, CYCLES };

static const char *const ways[] = {"rdma", "spin", "cycles", NULL};

struct server {
    const struct start *start;
    unsigned long bytes; /* of the update */
    size_t part;         /* bytes of this server's part */
    uint8_t *memory;
};

static size_t part_of(unsigned long bytes, uint32_t rank)
{
    size_t part = 0, servers = STRIPE_RANKS - STRIPE_DATA;
    for (size_t at = 0; at < bytes; at += STRIPE_UNIT) {
        if (at / STRIPE_UNIT % servers == rank - STRIPE_DATA) {
            part += bytes - at < STRIPE_UNIT ? bytes - at : STRIPE_UNIT;
        }
    }
    return part;
}

static uint8_t old_byte(uint32_t rank, size_t i)
{
    return (uint8_t)(i * 5 + i / 256 + rank);
}

static uint8_t new_byte(uint32_t rank, size_t i)
{
    return (uint8_t)(i * 11 + i / 256 + 3 * rank);
}

static uint8_t parity_byte(unsigned long bytes, size_t i, uint8_t (*byte)(uint32_t, size_t))
{
    uint8_t sum = 0;
    for (uint32_t rank = STRIPE_DATA; rank < STRIPE_RANKS; rank++) {
        sum ^= i < part_of(bytes, rank) ? byte(rank, i) : 0;
    }
    return sum;
}

/* ---- the client ---- */

static void client(const struct start *s, unsigned long bytes, enum way way)
{
    ptl_handle_md_t md[STRIPE_RANKS];
    ptl_handle_ct_t acks = counter(s);
    ptl_size_t parts = 0;
    ptl_me_t me = entry(memory(1), 1, STRIPE_DONE, acks);
    figure_expose(s, &me);
    for (uint32_t rank = STRIPE_DATA; rank < STRIPE_RANKS; rank++) {
        size_t part = part_of(bytes, rank);
        uint8_t *data = memory(part);
        for (size_t i = 0; i < part; i++) {
            data[i] = new_byte(rank, i);
        }
        md[rank] = source(s, data, part, PTL_CT_NONE);
        parts += part != 0;
    }
    meet(s);
    uint64_t begin = PtlSimNow();
    for (uint32_t rank = STRIPE_DATA; rank < STRIPE_RANKS; rank++) {
        if (part_of(bytes, rank) != 0) {
            figure_put(md[rank], part_of(bytes, rank), rank, STRIPE_NEW);
        }
    }
    await(acks, parts);
    figure_says(bytes, ways[way], PtlSimNow() - begin);
}

/* ---- servers by handlers ---- */

static void serve_by_handlers(const struct server *v)
{
    static struct stripe_parity state;
    bool data = v->start->rank != STRIPE_PARITY;
    const ptl_handlers_t packets = {.payload_handler = data ? stripe_data : stripe_parity,
                                    .hpu_mem = PTL_HPU_MEM_NONE,
                                    .hpu_initial_state = data ? NULL : &state,
                                    .hpu_initial_length = data ? 0 : sizeof(state)};
    const ptl_handlers_t applied = {.header_handler = stripe_applied, .hpu_mem = PTL_HPU_MEM_NONE};
    ptl_me_t me =
        entry(v->memory, v->part, data ? STRIPE_NEW : STRIPE_DIFFERENCE, counter(v->start));
    figure_receive(v->start, &me, &packets);
    if (data) {
        me = entry(memory(1), 1, STRIPE_APPLIED, counter(v->start));
        figure_receive(v->start, &me, &applied);
    }
    meet(v->start);
}

/* ---- servers by programs ---- */

/* Reads old and new, writes new and the difference, and puts that to the parity server. */
static void serve_data(const struct server *v)
{
    uint8_t *buffer = memory(v->part), *old = memory(v->part);
    ptl_handle_ct_t came = counter(v->start), applied = counter(v->start);
    ptl_handle_md_t md = source(v->start, buffer, v->part, PTL_CT_NONE);
    ptl_me_t me = entry(buffer, v->part, STRIPE_NEW, came);
    figure_expose(v->start, &me);
    me = entry(memory(1), 1, STRIPE_APPLIED, applied);
    figure_expose(v->start, &me);
    meet(v->start);
    if (v->part == 0) {
        return;
    }
    await(came, 1);
    memcpy(old, v->memory, v->part);
    memcpy(v->memory, buffer, v->part);
    bytes_xor(buffer, old, v->part);
    PtlSimTouch(2 * v->part, 2 * v->part);
    check(PtlPut(md, 0, v->part, PTL_NO_ACK_REQ, rank_id(STRIPE_PARITY), INDEX,
                 STRIPE_DIFFERENCE + 16 * (ptl_match_bits_t)v->start->rank, 0, NULL, v->part),
          "PtlPut");
    await(applied, 1);
    figure_put(md, 1, STRIPE_CLIENT, STRIPE_DONE);
}

/* Reads parity and difference, writes parity, and tells the data server. */
static void serve_parity(const struct server *v)
{
    uint8_t *buffer[STRIPE_RANKS];
    uint32_t parts = 0;
    ptl_handle_md_t md = source(v->start, memory(1), 1, PTL_CT_NONE);
    for (uint32_t rank = STRIPE_DATA; rank < STRIPE_RANKS; rank++) {
        size_t part = part_of(v->bytes, rank);
        buffer[rank] = memory(part);
        ptl_me_t me =
            entry(buffer[rank], part, STRIPE_DIFFERENCE + 16 * (ptl_match_bits_t)rank, PTL_CT_NONE);
        figure_expose(v->start, &me);
        parts += part != 0;
    }
    meet(v->start);
    for (; parts != 0; parts--) {
        ptl_event_t e = next_event(v->start);
        uint32_t rank = e.initiator.rank;
        size_t part = part_of(v->bytes, rank);
        bytes_xor(v->memory, buffer[rank], part);
        PtlSimTouch(2 * part, part);
        figure_put(md, 1, rank, STRIPE_APPLIED);
    }
}

static int serve(const struct start *s, unsigned long bytes, enum way way)
{
    bool parity = s->rank == STRIPE_PARITY;
    struct server v = {s, bytes, part_of(bytes, parity ? STRIPE_DATA : s->rank), NULL};
    size_t wrong = 0;
    v.memory = memory(v.part);
    for (size_t i = 0; i < v.part; i++) {
        v.memory[i] = parity ? parity_byte(bytes, i, old_byte) : old_byte(s->rank, i);
    }
    if (way != RDMA) {
        serve_by_handlers(&v);
    } else if (parity) {
        serve_parity(&v);
    } else {
        serve_data(&v);
    }
    meet(s); /* the client has all acks */
    for (size_t i = 0; i < v.part; i++) {
        wrong += v.memory[i] != (parity ? parity_byte(bytes, i, new_byte) : new_byte(s->rank, i));
    }
    if (wrong != 0) {
        fprintf(stderr, "rank %u has %zu wrong bytes\n", s->rank, wrong);
    }
    return wrong != 0;
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long bytes = 0;
    enum way way = (enum way)figure_start(&s, STRIPE_RANKS, argc, argv, ways, &bytes);
    if (s.rank != STRIPE_CLIENT) {
        return finish(&s, serve(&s, bytes, way));
    }
    client(&s, bytes, way);
    meet(&s);
    return finish(&s, 0);
}
