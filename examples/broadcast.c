/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One broadcast along a binomial tree, in three forms:
 *
 *      rdma       each program puts all of it to its children when it has come
 *      triggered  triggered puts do, which each program has set up before
 *      streamed   handlers put each packet to the children when it comes (broadcast_stream.c)
 *
 *      $ pinwheel run -n 8 ./broadcast BYTES rdma|triggered|streamed
 *
 * Rank 0 says how long it took, from when its program began to when the last rank had all bytes.
 */
#include "start.h"

#include "broadcast_stream.h"
#include "pinwheel_sim.h"
#include "tree.h"

enum { DATA = 1, LAST = 2, LONGEST = 1 << 24 };

enum form { RDMA, TRIGGERED, STREAMED, FORMS };

static const char *const form_name[FORMS] = {"rdma", "triggered", "streamed"};

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 7 + i / 256);
}

/* The entry for the data, counted by bytes. */
static void receive(const struct start *s, enum form form, uint8_t *data, size_t length,
                    ptl_handle_ct_t came, const struct stream_state *state)
{
    ptl_me_t me = entry(data, length, DATA, came);
    ptl_handlers_t handlers = {.payload_handler = broadcast_stream_packet,
                               .hpu_mem = PTL_HPU_MEM_NONE,
                               .hpu_initial_state = state,
                               .hpu_initial_length = sizeof(*state)};
    ptl_handle_me_t handle;
    me.options |= PTL_ME_EVENT_CT_BYTES;
    if (form == STREAMED) {
        check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
              "PtlMEAppendHandlers");
    } else {
        check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    }
}

/* Sends to all children: the root packet by packet where handlers stream, so that all of them have
 * the first one soon. */
static void send(const struct stream_state *to, ptl_handle_md_t md, size_t length, size_t step)
{
    for (size_t at = 0; at < length; at += step) {
        size_t n = step < length - at ? step : length - at;
        for (uint32_t i = 0; i < to->children; i++) {
            check(PtlPut(md, at, n, PTL_NO_ACK_REQ, to->child[i], INDEX, DATA, at, NULL, 0),
                  "PtlPut");
        }
    }
}

/* One broadcast; returns when this rank had all of it, in ps, and stores when it began. */
static uint64_t broadcast(const struct start *s, enum form form, uint8_t *data, size_t length,
                          uint64_t *begin)
{
    struct tree_group group = {s->rank, s->size, NULL};
    struct stream_state state = {.pt_index = INDEX, .bits = DATA};
    state.children = tree_children(&group, TREE_BINOMIAL, 0, state.child);
    ptl_handle_ct_t came = counter(s);
    ptl_handle_md_t md = source(s, data, length, PTL_CT_NONE);
    if (s->rank != 0) {
        receive(s, form, data, length, came, &state);
    }
    for (uint32_t i = 0; form == TRIGGERED && s->rank != 0 && i < state.children; i++) {
        check(PtlTriggeredPut(md, 0, length, PTL_NO_ACK_REQ, state.child[i], INDEX, DATA, 0, NULL,
                              0, came, length),
              "PtlTriggeredPut");
    }
    meet(s); /* the entries are there */
    *begin = PtlSimNow();
    if (s->rank != 0) {
        await(came, length);
    }
    uint64_t end = PtlSimNow();
    if (s->rank == 0 || form == RDMA) {
        send(&state, md, length, form == STREAMED ? s->packet : length);
    }
    return end;
}

/* The latest time of all ranks, at rank 0. */
static uint64_t latest(const struct start *s, uint64_t *most, ptl_handle_ct_t told)
{
    ptl_handle_md_t md = source(s, most, sizeof(*most), PTL_CT_NONE);
    if (s->rank == 0) {
        await(told, s->size - 1);
    } else {
        check(PtlAtomic(md, 0, sizeof(*most), PTL_NO_ACK_REQ, rank_id(0), INDEX, LAST, 0, NULL, 0,
                        PTL_MAX, PTL_UINT64_T),
              "PtlAtomic");
    }
    return *most;
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long length = 0;
    enum form form = RDMA;
    uint64_t begin, *most = memory(sizeof(*most));
    int wrong = 0;
    start(&s, 2, 0);
    while (form < FORMS && argc > 2 && strcmp(argv[2], form_name[form]) != 0) {
        form++;
    }
    if (argc != 3 || form == FORMS || !number(argv[1], 1, LONGEST, &length)) {
        usage(&s, "BYTES rdma|triggered|streamed    1 to 16777216 bytes");
    }
    uint8_t *data = memory(length);
    ptl_handle_ct_t told = counter(&s);
    ptl_handle_me_t handle;
    ptl_me_t me = entry(most, sizeof(*most), LAST, told);
    check(PtlMEAppend(s.ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    for (size_t i = 0; s.rank == 0 && i < length; i++) {
        data[i] = byte_at(i);
    }
    uint64_t end = broadcast(&s, form, data, length, &begin);
    for (size_t i = 0; i < length; i++) {
        wrong += data[i] != byte_at(i);
    }
    if (wrong != 0) {
        fprintf(stderr, "rank %u has %d wrong bytes\n", s.rank, wrong);
    }
    if (s.rank != 0) {
        *most = end;
    }
    meet(&s); /* what tells of the time shall not be in the way */
    end = latest(&s, most, told);
    if (s.rank == 0) {
        printf("%lu bytes, %s, %u ranks: the last one has them after %llu ps\n", length,
               form_name[form], s.size, (unsigned long long)(end - begin));
    }
    return finish(&s, wrong != 0);
}
