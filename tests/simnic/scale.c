/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Large runs of the simulated NIC, one a scene:
 *
 *      broadcast BYTES     rank 0's NIC sends to all ranks, along a binomial tree of handlers; each
 *                          rank checks its bytes, and the last one says when it had them, in ps
 *      pingpong ROUNDS     ranks 0 and 1, by the program, with 8 bytes; rank 0 says how long the
 *                          rounds took, in ps
 *      survive BYTES       rank 0's NIC sends to all ranks, along handlers that do not mind that
 * some are dead; each rank that lives checks its bytes and says when it had them, in ps alltoall
 * BYTES      every rank puts to every other; rank 0 says when it had all, in ps
 */
#include "../../examples/start.h"

#include "broadcast.h"
#include "ftbcast.h"
#include "pinwheel_sim.h"

enum { BITS = 1 };

static ptl_handle_me_t append(const struct start *s, ptl_me_t *me)
{
    ptl_handle_me_t handle;
    check(PtlMEAppend(s->ni, INDEX, me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    return handle;
}

static int broadcast(struct start *s, size_t length)
{
    struct tree_group group = {s->rank, s->size, NULL};
    struct broadcast_state state;
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    uint8_t *buffer = memory(length + 1);
    size_t wrong = 0;
    for (size_t i = 0; s->rank == 0 && i < length; i++) {
        buffer[i] = (uint8_t)(i % 251);
    }
    ptl_handle_ct_t came = counter(s);
    ptl_me_t me = entry(buffer, length, BITS, came);
    check(broadcast_handlers(&group, TREE_BINOMIAL, 0, length, BITS, s->packet, &state, &handlers),
          "broadcast_handlers");
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    meet(s);
    if (s->rank == 0) {
        check(broadcast_start(source(s, NULL, 0, PTL_CT_NONE), rank_id(0), INDEX, BITS, length,
                              s->packet),
              "broadcast_start");
    }
    await(came, broadcast_messages(length, s->packet));
    for (size_t i = 0; i < length; i++) {
        wrong += buffer[i] != i % 251;
    }
    if (s->rank == s->size - 1) {
        printf("%llu\n", (unsigned long long)PtlSimNow());
    }
    return wrong != 0;
}

static int survive(struct start *s, size_t length)
{
    struct tree_group group = {s->rank, s->size, NULL};
    struct ftbcast_state state;
    ptl_handle_hpu_mem_t hpu;
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    uint8_t *buffer = memory(length + 1);
    size_t wrong = 0;
    for (size_t i = 0; s->rank == 0 && i < length; i++) {
        buffer[i] = (uint8_t)(i % 251);
    }
    ptl_handle_ct_t came = counter(s);
    ptl_me_t me = entry(buffer, length, BITS, came);
    check(PtlHPUAllocMem(s->ni, ftbcast_memory(length, s->packet), &hpu), "PtlHPUAllocMem");
    check(ftbcast_handlers(&group, 0, length, BITS, s->packet, hpu, &state, &handlers),
          "ftbcast_handlers");
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    meet(s);
    uint64_t begin = PtlSimNow();
    if (s->rank == 0) {
        check(broadcast_start(source(s, NULL, 0, PTL_CT_NONE), rank_id(0), INDEX, BITS, length,
                              s->packet),
              "broadcast_start");
    }
    await(came, broadcast_messages(length, s->packet));
    for (size_t i = 0; i < length; i++) {
        wrong += buffer[i] != i % 251;
    }
    printf("%u %llu from %llu\n", s->rank, (unsigned long long)PtlSimNow(),
           (unsigned long long)begin);
    return wrong != 0;
}

static int pingpong(struct start *s, size_t rounds)
{
    uint64_t *words = memory(2 * sizeof(*words));
    ptl_handle_ct_t came = counter(s);
    ptl_handle_md_t md = source(s, &words[0], 8, PTL_CT_NONE);
    ptl_me_t me = entry(&words[1], 8, BITS, came);
    append(s, &me);
    meet(s);
    uint64_t begin = PtlSimNow();
    for (size_t i = 0; i < rounds && s->rank < 2; i++) {
        words[0] = i + 1;
        for (uint32_t turn = 0; turn < 2; turn++) {
            if (turn == s->rank) {
                check(
                    PtlPut(md, 0, 8, PTL_NO_ACK_REQ, rank_id(1 - s->rank), INDEX, BITS, 0, NULL, 0),
                    "PtlPut");
            } else {
                await(came, i + 1);
            }
        }
    }
    if (s->rank == 0) {
        printf("%llu\n", (unsigned long long)(PtlSimNow() - begin));
    }
    return s->rank < 2 && words[1] != rounds;
}

static int alltoall(struct start *s, size_t length)
{
    uint8_t *from = memory(length), *to = memory(length * s->size);
    ptl_handle_ct_t came = counter(s);
    ptl_handle_md_t md = source(s, from, length, PTL_CT_NONE);
    ptl_me_t me = entry(to, length * s->size, BITS, came);
    size_t wrong = 0;
    memset(from, (int)s->rank + 1, length);
    append(s, &me);
    meet(s);
    for (uint32_t i = 0; i < s->size; i++) {
        check(PtlPut(md, 0, length, PTL_NO_ACK_REQ, rank_id((s->rank + i) % s->size), INDEX, BITS,
                     s->rank * length, NULL, 0),
              "PtlPut");
    }
    await(came, s->size);
    for (size_t i = 0; i < length * s->size; i++) {
        wrong += to[i] != (uint8_t)(i / length + 1);
    }
    if (s->rank == 0) {
        printf("%llu\n", (unsigned long long)PtlSimNow());
    }
    return wrong != 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(struct start *s, size_t number);
    } scenes[] = {{"broadcast", broadcast},
                  {"survive", survive},
                  {"pingpong", pingpong},
                  {"alltoall", alltoall}};
    struct start s;
    unsigned long value = 0;
    start(&s, 1, 0);
    for (size_t i = 0; argc == 3 && i < sizeof(scenes) / sizeof(scenes[0]); i++) {
        if (strcmp(argv[1], scenes[i].name) == 0 && number(argv[2], 0, 1ul << 30, &value)) {
            return finish(&s, scenes[i].run(&s, value));
        }
    }
    usage(&s, "broadcast BYTES|survive BYTES|pingpong ROUNDS|alltoall BYTES");
}
