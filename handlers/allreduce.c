/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Allreduce; see allreduce.h. The slots of a chunk are free when the next round fills them: a child
 * contributes to the next round only when it has the result of this one, and this result is sent
 * after this rank has combined its slots and cleared the counter.
 */
#include "allreduce.h"

#include "chunk.h"
#include "spin_handler.h"

/* The head of a message; the data of a chunk follow. */
struct part {
    uint64_t chunk; /* number of the chunk */
    uint32_t slot;  /* on the way up: the slot at the parent for which the data are */
    uint32_t unused;
};

/* The cache line before the slots of a chunk. `head` lies right before slot 0, so that head and
 * slot can be sent together from where they are. */
struct meeting {
    uint64_t arrived;
    uint64_t unused[5];
    struct part head;
};

_Static_assert(sizeof(struct part) == sizeof(struct chunk), "chunk_data() counts it");
_Static_assert(sizeof(struct meeting) == 64, "slots begin at multiples of 64");

static uint64_t round_up(uint64_t n)
{
    return (n + 63) / 64 * 64;
}

static uint64_t part_length(const struct allreduce_state *s, uint64_t chunk)
{
    return smaller(s->data, s->length - chunk * s->data);
}

static bool is_chunk(const struct allreduce_state *s, uint64_t chunk)
{
    return chunk < chunk_count(s->length, s->data);
}

static struct meeting *meeting_of(struct allreduce_state *s, uint64_t chunk)
{
    uint64_t size = sizeof(struct meeting) + (s->children + 1) * s->slot;
    return (struct meeting *)((uint8_t *)s + round_up(sizeof(*s)) + chunk * size);
}

static uint8_t *slot_of(const struct allreduce_state *s, struct meeting *m, uint32_t slot)
{
    return (uint8_t *)(m + 1) + slot * s->slot;
}

static bool put(const void *data, uint64_t length, ptl_process_t to, uint64_t bits)
{
    return PtlHandlerPutFromDevice(data, length, PTL_NO_ACK_REQ, to, bits, 0, NULL, 0) == PTL_OK;
}

static bool to_children(const struct allreduce_state *s, const void *data, uint64_t length)
{
    bool sent = true;
    for (uint32_t i = 0; i < s->children; i++) {
        sent = put(data, length, s->child[i], s->down) && sent;
    }
    return sent;
}

/* ---- Up the tree ---- */

/* Called when a slot has been filled. The handler that fills the last slot of a chunk combines all
 * slots and sends the result to the parent, or, at the root, down the tree. */
static int arrived(struct allreduce_state *s, struct meeting *m, uint64_t chunk)
{
    uint64_t before = 0, length = part_length(s, chunk);
    uint8_t *sum = slot_of(s, m, 0);
    PtlHandlerFAdd(&m->arrived, &before, 1);
    if (before < s->children) {
        return SUCCESS;
    }
    for (uint32_t i = 1; i <= s->children; i++) {
        combine((ptl_op_t)s->op, (ptl_datatype_t)s->type, sum, slot_of(s, m, i), NULL,
                length / combine_size((ptl_datatype_t)s->type));
    }
    PtlHandlerFAdd(&m->arrived, NULL, -(before + 1));
    m->head.chunk = chunk;
    m->head.slot = s->slot_at_parent;
    bool sent = put(&m->head, sizeof(m->head) + length, s->is_root ? s->self : s->parent,
                    s->is_root ? s->down : s->up);
    return sent ? SUCCESS : FAIL;
}

/* An empty message comes from this rank's program: hdr_data is the number of the chunk to
 * contribute. Other messages are left to the payload handler. */
__handler static int allreduce_own(const ptl_header_t h, void *state)
{
    struct allreduce_state *s = state;
    if (h.length != 0) {
        return PROCESS_DATA;
    }
    if (!is_chunk(s, h.hdr_data)) {
        return FAIL;
    }
    struct meeting *m = meeting_of(s, h.hdr_data);
    PtlHandlerDMAFromHostB(h.hdr_data * s->data, slot_of(s, m, 0), part_length(s, h.hdr_data),
                           PTL_ME_HOST_MEM);
    return arrived(s, m, h.hdr_data) == SUCCESS ? PROCESS_DATA : FAIL;
}
PTL_HANDLER(allreduce_own);

/* True if a packet is one whole chunk of the vector, with its head. */
static bool is_part(const struct allreduce_state *s, const ptl_payload_t *p)
{
    const struct part *part = (const struct part *)p->base;
    return p->offset == 0 && p->length >= sizeof(*part) && is_chunk(s, part->chunk) &&
           p->length == sizeof(*part) + part_length(s, part->chunk);
}

__handler static int allreduce_child(const ptl_payload_t p, void *state)
{
    struct allreduce_state *s = state;
    const struct part *part = (const struct part *)p.base;
    if (!is_part(s, &p) || part->slot == 0 || part->slot > s->children) {
        return FAIL;
    }
    struct meeting *m = meeting_of(s, part->chunk);
    bytes_copy(slot_of(s, m, part->slot), part + 1, p.length - sizeof(*part));
    return arrived(s, m, part->chunk);
}
PTL_HANDLER(allreduce_child);

/* ---- Down the tree ---- */

__handler static int allreduce_result(const ptl_payload_t p, void *state)
{
    const struct allreduce_state *s = state;
    const struct part *part = (const struct part *)p.base;
    if (!is_part(s, &p)) {
        return FAIL;
    }
    bool sent = to_children(s, p.base, p.length);
    PtlHandlerDMAToHostB(part + 1, part->chunk * s->data, p.length - sizeof(*part),
                         PTL_ME_HOST_MEM);
    return sent ? SUCCESS : FAIL;
}
PTL_HANDLER(allreduce_result);

/* ---- Host ---- */

/* Returns the bytes of a chunk: a multiple of the largest type, so that each chunk has whole
 * elements of any type. */
static uint64_t data_of(const struct allreduce *a)
{
    return chunk_data(a->packet) / COMBINE_LARGEST * COMBINE_LARGEST;
}

static int set_up(const struct allreduce *a, struct allreduce_state *s)
{
    if (!tree_valid(&a->group, 0) || !combine_defined(a->op, a->type) || a->op >= PTL_SWAP ||
        __builtin_mul_overflow(a->count, combine_size(a->type), &s->length)) {
        return PTL_ARG_INVALID;
    }
    s->children = tree_children(&a->group, TREE_BINOMIAL, 0, s->child);
    s->is_root = a->group.rank == 0;
    s->self = tree_id(&a->group, a->group.rank);
    s->parent = s->is_root ? s->self : tree_id(&a->group, tree_parent(&a->group, TREE_BINOMIAL, 0));
    /* A child whose rank is 2^k above its parent's has slot k + 1. */
    s->slot_at_parent = s->is_root ? 0 : (uint32_t)__builtin_ctz(a->group.rank) + 1;
    s->data = data_of(a);
    s->slot = round_up(smaller(s->data, s->length));
    s->up = a->up;
    s->down = a->down;
    s->op = a->op;
    s->type = a->type;
    s->unused = 0;
    return PTL_OK;
}

uint64_t allreduce_memory(const struct allreduce *a)
{
    struct allreduce_state s;
    uint64_t slots, size;
    if (set_up(a, &s) != PTL_OK) {
        return UINT64_MAX;
    }
    slots = sizeof(struct meeting) + (s.children + 1) * s.slot;
    if (__builtin_mul_overflow(chunk_count(s.length, s.data), slots, &size)) {
        return UINT64_MAX;
    }
    return round_up(sizeof(s)) + size;
}

int allreduce_up(const struct allreduce *a, ptl_handle_hpu_mem_t memory,
                 struct allreduce_state *state, ptl_handlers_t *handlers)
{
    int rc = set_up(a, state);
    *handlers = (ptl_handlers_t){
        .header_handler = allreduce_own,
        .payload_handler = allreduce_child,
        .hpu_mem = memory,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
    };
    return rc;
}

int allreduce_down(const struct allreduce *a, struct allreduce_state *state,
                   ptl_handlers_t *handlers)
{
    int rc = set_up(a, state);
    *handlers = (ptl_handlers_t){
        .payload_handler = allreduce_result,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
    };
    return rc;
}

uint64_t allreduce_messages(const struct allreduce *a)
{
    return chunk_count(a->count * combine_size(a->type), data_of(a));
}

int allreduce_start(const struct allreduce *a, ptl_handle_md_t md, ptl_pt_index_t pt)
{
    uint64_t messages = allreduce_messages(a);
    for (uint64_t i = 0; i < messages; i++) {
        int rc = PtlPut(md, 0, 0, PTL_NO_ACK_REQ, tree_id(&a->group, a->group.rank), pt, a->up, 0,
                        NULL, i);
        if (rc != PTL_OK) {
            return rc;
        }
    }
    return PTL_OK;
}
