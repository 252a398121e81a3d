/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcast by the NICs; see broadcast.h. */
#include "broadcast.h"

#include "spin_handler.h"

static int to_children(const struct broadcast_state *s, const void *chunk, uint64_t length)
{
    int result = SUCCESS;
    for (uint32_t i = 0; i < s->children; i++) {
        if (PtlHandlerPutFromDevice(chunk, length, PTL_NO_ACK_REQ, s->child[i], s->bits, 0, NULL,
                                    0) != PTL_OK) {
            result = FAIL; /* the handler still sends to the other children */
        }
    }
    return result;
}

/* At the root an empty message comes from the program: hdr_data is the number of the chunk to
 * send. */
__handler static int broadcast_source(const ptl_header_t h, void *state)
{
    const struct broadcast_state *s = state;
    struct {
        struct chunk head;
        uint8_t data[CHUNK_PACKET - sizeof(struct chunk)];
    } c;
    c.head.offset = h.hdr_data * s->data;
    c.head.length = s->length;
    if (c.head.offset > s->length) {
        return FAIL;
    }
    uint64_t length = smaller(s->data, s->length - c.head.offset);
    PtlHandlerDMAFromHostB(c.head.offset, c.data, length, PTL_ME_HOST_MEM);
    return to_children(s, &c, sizeof(c.head) + length) == SUCCESS ? PROCESS_DATA : FAIL;
}
PTL_HANDLER(broadcast_source);

__handler static int broadcast_chunk(const ptl_payload_t p, void *state)
{
    const struct broadcast_state *s = state;
    const struct chunk *c = (const struct chunk *)p.base;
    if (p.offset != 0 || p.length < sizeof(*c) || c->length != s->length ||
        !range_fits(c->offset, p.length - sizeof(*c), s->length)) {
        return FAIL;
    }
    int result = to_children(s, p.base, p.length);
    PtlHandlerDMAToHostB(p.base + sizeof(*c), c->offset, p.length - sizeof(*c), PTL_ME_HOST_MEM);
    return result;
}
PTL_HANDLER(broadcast_chunk);

/* ---- Host ---- */

int broadcast_handlers(const struct tree_group *group, enum tree_shape shape, uint32_t root,
                       ptl_size_t length, ptl_match_bits_t bits, ptl_size_t packet,
                       struct broadcast_state *state, ptl_handlers_t *handlers)
{
    if (!tree_valid(group, root)) {
        return PTL_ARG_INVALID;
    }
    bool source = group->rank == root;
    state->children = tree_children(group, shape, root, state->child);
    state->length = length;
    state->data = chunk_data(packet);
    state->bits = bits;
    state->unused = 0;
    *handlers = (ptl_handlers_t){
        .header_handler = source ? broadcast_source : NULL,
        .payload_handler = source ? NULL : broadcast_chunk,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
    };
    return PTL_OK;
}

uint64_t broadcast_messages(ptl_size_t length, ptl_size_t packet)
{
    return chunk_count(length, chunk_data(packet));
}

int broadcast_start(ptl_handle_md_t md, ptl_process_t self, ptl_pt_index_t pt,
                    ptl_match_bits_t bits, ptl_size_t length, ptl_size_t packet)
{
    uint64_t chunks = broadcast_messages(length, packet);
    for (uint64_t i = 0; i < chunks; i++) {
        int rc = PtlPut(md, 0, 0, PTL_NO_ACK_REQ, self, pt, bits, 0, NULL, i);
        if (rc != PTL_OK) {
            return rc;
        }
    }
    return PTL_OK;
}
