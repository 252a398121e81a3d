/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Relaxations; see graph.h. A vertex is one word, in which the distance is above the parent. The
 * word with the shorter distance is the smaller number, and at equal distance the one with the
 * lower parent. So a relaxation is a minimum, and the order of relaxations does not matter.
 */
#include "graph.h"

#include "bytes.h"
#include "spin_handler.h"

struct frontier {
    uint64_t taken;
    uint64_t unused[7];
    /* a bit for each vertex, in words of 64; then vertices, 4 bytes each */
};

static uint64_t words(uint64_t vertices)
{
    return (vertices + 63) / 64;
}

static uint64_t list_at(uint64_t vertices)
{
    return sizeof(struct frontier) + words(vertices) * sizeof(uint64_t);
}

/* ---- On the NIC ---- */

/* Sets a vertex's bit in the frontier; true if it was clear. */
static bool mark(uint64_t vertex)
{
    uint64_t at = sizeof(struct frontier) + vertex / 64 * sizeof(uint64_t);
    uint64_t bit = UINT64_C(1) << vertex % 64, found = 0, expected;
    do {
        expected = found;
        if ((expected & bit) != 0) {
            return false;
        }
        PtlHandlerDMACASB(at, &found, expected | bit, PTL_HANDLER_HOST_MEM);
    } while (found != expected);
    return true;
}

/* Vertices whose bits were set and that are not in the list yet. They are added together, since a
 * place in the list costs an atomic and a transfer, whether it is for one vertex or for many. */
struct found {
    uint32_t count;
    uint32_t vertex[64];
};

static void list_found(const struct graph_state *s, struct found *f)
{
    uint64_t place = 0;
    if (f->count != 0) {
        PtlHandlerDMAFetchAddB(offsetof(struct frontier, taken), f->count, &place, PTL_UINT64_T,
                               PTL_HANDLER_HOST_MEM);
        PtlHandlerDMAToHostB(f->vertex, list_at(s->vertices) + place * sizeof(f->vertex[0]),
                             f->count * sizeof(f->vertex[0]), PTL_HANDLER_HOST_MEM);
        f->count = 0;
    }
}

static void add_to_frontier(const struct graph_state *s, struct found *f, uint64_t vertex)
{
    if (mark(vertex)) {
        f->vertex[f->count++] = (uint32_t)vertex;
        if (f->count == sizeof(f->vertex) / sizeof(f->vertex[0])) {
            list_found(s, f);
        }
    }
}

static void relax(const struct graph_state *s, struct found *f, const struct graph_record *r)
{
    uint64_t vertex = r->vertex - s->first;
    uint64_t better = (uint64_t)r->distance << 32 | r->parent, found = GRAPH_FAR, expected;
    /* the first swap returns the current word, unless the vertex is reached for the first time */
    do {
        expected = found;
        if (expected <= better) {
            return;
        }
        PtlHandlerDMACASB(vertex * sizeof(found), &found, better, PTL_ME_HOST_MEM);
    } while (found != expected);
    if (graph_distance(expected) > r->distance) {
        add_to_frontier(s, f, vertex);
    }
}

__handler static int graph_packet(const ptl_payload_t p, void *state)
{
    const struct graph_state *s = state;
    const struct graph_record *r = (const struct graph_record *)p.base;
    uint64_t records = p.length / sizeof(*r);
    int result = p.length % sizeof(*r) == 0 ? SUCCESS : FAIL;
    struct found found;
    found.count = 0; /* the rest of the struct need not be cleared */
    for (uint64_t i = 0; i < records; i++) {
        if (r[i].vertex - s->first < s->vertices && r[i].distance != UINT32_MAX) {
            relax(s, &found, &r[i]);
        } else {
            result = FAIL;
        }
    }
    list_found(s, &found);
    return result;
}
PTL_HANDLER(graph_packet);

/* ---- The host's functions ---- */

uint64_t graph_frontier_size(uint64_t vertices)
{
    return list_at(vertices) + vertices * sizeof(uint32_t);
}

int graph_handlers(uint64_t first, uint64_t vertices, void *frontier, struct graph_state *state,
                   ptl_handlers_t *handlers)
{
    if (vertices > UINT32_MAX || first > UINT64_MAX - vertices) {
        return PTL_ARG_INVALID;
    }
    *state = (struct graph_state){first, vertices};
    *handlers = (ptl_handlers_t){
        .payload_handler = graph_packet,
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
        .handler_host_mem = frontier,
        .handler_host_length = graph_frontier_size(vertices),
    };
    return PTL_OK;
}

uint64_t graph_take(void *frontier, uint64_t vertices, uint32_t *taken)
{
    struct frontier *f = frontier;
    uint64_t *bits = (uint64_t *)(f + 1), count = f->taken;
    const uint32_t *list = (const uint32_t *)((uint8_t *)frontier + list_at(vertices));
    for (uint64_t i = 0; i < count; i++) {
        taken[i] = list[i];
        bits[list[i] / 64] &= ~(UINT64_C(1) << list[i] % 64);
    }
    f->taken = 0;
    return count;
}
