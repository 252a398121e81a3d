/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault-tolerant broadcast; see ftbcast.h. The handler of the first copy of a chunk sets the
 * chunk's bit. The handlers of other copies return DROP; their completion handlers see that bytes
 * were dropped, and ask that the message be not counted.
 */
#include "ftbcast.h"

#include "spin_handler.h"

static uint64_t *seen_bits(struct ftbcast_state *s)
{
    return (uint64_t *)(s + 1);
}

/* True if this is the first copy of a chunk; sets the chunk's bit. */
static bool is_first(struct ftbcast_state *s, uint64_t chunk)
{
    uint64_t *word = &seen_bits(s)[chunk / 64], bit = UINT64_C(1) << chunk % 64, found;
    do {
        /* an atomic read, since other handlers may change the word */
        PtlHandlerFAdd(word, &found, 0);
        if ((found & bit) != 0) {
            return false;
        }
    } while (!PtlHandlerCAS(word, found, found | bit));
    return true;
}

/* Sends a chunk to all neighbours. A neighbour that cannot be reached is no error: the algorithm is
 * made for that. */
static void to_neighbours(const struct ftbcast_state *s, const void *chunk, uint64_t length)
{
    for (uint32_t i = 0; i < s->neighbours; i++) {
        (void)PtlHandlerPutFromDevice(chunk, length, PTL_NO_ACK_REQ, s->neighbour[i], s->bits, 0,
                                      NULL, 0);
    }
}

/* At the root an empty message comes from the program: hdr_data is the number of the chunk to
 * send. */
__handler static int ftbcast_source(const ptl_header_t h, void *state)
{
    struct ftbcast_state *s = state;
    struct {
        struct chunk head;
        uint8_t data[CHUNK_PACKET - sizeof(struct chunk)];
    } c;
    if (h.length != 0) {
        return PROCESS_DATA; /* a copy that a neighbour has sent back */
    }
    if (!s->is_root || h.hdr_data >= chunk_count(s->length, s->data)) {
        return FAIL;
    }
    c.head.offset = h.hdr_data * s->data;
    c.head.length = s->length;
    uint64_t length = smaller(s->data, s->length - c.head.offset);
    (void)is_first(s, h.hdr_data);
    PtlHandlerDMAFromHostB(c.head.offset, c.data, length, PTL_ME_HOST_MEM);
    to_neighbours(s, &c, sizeof(c.head) + length);
    return PROCESS_DATA;
}
PTL_HANDLER(ftbcast_source);

__handler static int ftbcast_chunk(const ptl_payload_t p, void *state)
{
    struct ftbcast_state *s = state;
    const struct chunk *c = (const struct chunk *)p.base;
    if (p.offset != 0 || p.length < sizeof(*c) || c->length != s->length ||
        c->offset % s->data != 0 || c->offset / s->data >= chunk_count(s->length, s->data) ||
        p.length - sizeof(*c) != smaller(s->data, s->length - c->offset)) {
        return FAIL;
    }
    if (s->is_root || !is_first(s, c->offset / s->data)) {
        return DROP;
    }
    to_neighbours(s, p.base, p.length);
    PtlHandlerDMAToHostB(c + 1, c->offset, p.length - sizeof(*c), PTL_ME_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(ftbcast_chunk);

__handler static int ftbcast_completion(ptl_size_t dropped_bytes, bool flow_control_triggered,
                                        void *state)
{
    return dropped_bytes != 0 ? SUCCESS_PENDING : SUCCESS;
}
PTL_HANDLER(ftbcast_completion);

/* ---- Host ---- */

/* Stores the distances to the neighbours, all upwards, each neighbour once; returns their
 * number. */
static uint32_t distances(uint32_t size, uint32_t distance[FTBCAST_NEIGHBOURS])
{
    uint32_t n = 0;
    for (uint64_t step = 1; step < size; step *= 2) {
        uint32_t both[2] = {(uint32_t)step, size - (uint32_t)step};
        for (int i = 0; i < 2; i++) {
            bool there = false;
            for (uint32_t j = 0; j < n; j++) {
                there = there || distance[j] == both[i];
            }
            if (!there) {
                distance[n++] = both[i];
            }
        }
    }
    return n;
}

uint32_t ftbcast_degree(uint32_t size)
{
    uint32_t distance[FTBCAST_NEIGHBOURS];
    return distances(size, distance);
}

uint64_t ftbcast_memory(ptl_size_t length, ptl_size_t packet)
{
    return sizeof(struct ftbcast_state) +
           (chunk_count(length, chunk_data(packet)) + 63) / 64 * sizeof(uint64_t);
}

int ftbcast_handlers(const struct tree_group *group, uint32_t root, ptl_size_t length,
                     ptl_match_bits_t bits, ptl_size_t packet, ptl_handle_hpu_mem_t memory,
                     struct ftbcast_state *state, ptl_handlers_t *handlers)
{
    uint32_t distance[FTBCAST_NEIGHBOURS];
    if (!tree_valid(group, root)) {
        return PTL_ARG_INVALID;
    }
    state->neighbours = distances(group->size, distance);
    for (uint32_t i = 0; i < state->neighbours; i++) {
        uint64_t rank = ((uint64_t)group->rank + distance[i]) % group->size;
        state->neighbour[i] = tree_id(group, (uint32_t)rank);
    }
    state->length = length;
    state->data = chunk_data(packet);
    state->bits = bits;
    state->is_root = group->rank == root;
    *handlers = (ptl_handlers_t){
        .header_handler = ftbcast_source,
        .payload_handler = ftbcast_chunk,
        .completion_handler = ftbcast_completion,
        .hpu_mem = memory,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
    };
    return PTL_OK;
}
