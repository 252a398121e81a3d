/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that come in another order than they were sent, as links that are down for a while have
 * it with adaptive routes. Rank 0 puts to rank 2, at 20 us of virtual time; printed are, in
 * picoseconds from then on:
 *
 *      plain PACKETS           a message of so many packets for memory: when it is counted
 *      handlers PACKETS USER   the same for handlers, with so many bytes of user header: when it is
 *                              counted, and the offsets in the order in which handlers had them
 *      pair                    two messages of 8 bytes: of each event which message, and when
 *      flow PACKETS            what the ack of a message for handlers says, and of how many bytes
 *
 * The bytes are looked at, in memory or by the handlers.
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"
#include "spin_handler.h"

#include <time.h>

enum { TO = 2, BITS = 1, PACKET = 4096, MOST = 16, BEGIN_US = 20 };

/* What the handlers of a message have seen. */
struct seen {
    uint64_t headers, early, packets, wrong, completions, user;
    uint64_t offset[2 * MOST];
};

static uint8_t bytes[MOST * PACKET], target[MOST * PACKET];

/* The byte at a place of the message. */
static inline uint8_t pattern(uint64_t at)
{
    return (uint8_t)(at * 7 + at / 251);
}

__handler static int routes_header(const ptl_header_t h, void *state)
{
    struct seen *s = state;
    s->headers++;
    s->user = h.user_hdr_length;
    for (uint64_t i = 0; i < h.user_hdr_length; i++) {
        s->wrong += ((const uint8_t *)h.user_hdr)[i] != pattern(i);
    }
    return PROCESS_DATA;
}
PTL_HANDLER(routes_header);

__handler static int routes_packet(const ptl_payload_t p, void *state)
{
    struct seen *s = state;
    s->early += s->headers == 0;
    s->offset[s->packets++ % (2 * MOST)] = p.offset;
    for (uint64_t i = 0; i < p.length; i++) {
        s->wrong += p.base[i] != pattern(s->user + p.offset + i);
    }
    return SUCCESS;
}
PTL_HANDLER(routes_packet);

__handler static int routes_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    struct seen *s = state;
    (void)flow_control;
    s->completions += dropped == 0;
    return SUCCESS;
}
PTL_HANDLER(routes_completion);

static uint64_t since(void)
{
    return PtlSimNow() - UINT64_C(1000000) * BEGIN_US;
}

/* Waits until the put is to begin; the monotonic clock begins at 1,000 s. */
static void await_begin(void)
{
    struct timespec t = {1000, 1000 * BEGIN_US};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void put(const struct start *s, uint64_t at, uint64_t length, uint64_t hdr, bool ack)
{
    ptl_md_t md = {.start = bytes, .length = sizeof(bytes), .ct_handle = PTL_CT_NONE};
    md.eq_handle = s->eq;
    md.options = PTL_MD_EVENT_SEND_DISABLE;
    static ptl_handle_md_t handle;
    static bool bound;
    if (!bound) {
        check(PtlMDBind(s->ni, &md, &handle), "PtlMDBind");
        bound = true;
    }
    check(PtlPut(handle, at, length, ack ? PTL_ACK_REQ : PTL_NO_ACK_REQ, rank_id(TO), INDEX, BITS,
                 0, NULL, hdr),
          "PtlPut");
}

static void plain(struct start *s, unsigned long packets)
{
    ptl_handle_ct_t came = counter(s);
    ptl_handle_me_t handle;
    ptl_me_t me = entry(target, sizeof(target), BITS, came);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    meet(s);
    await_begin();
    if (s->rank == 0) {
        put(s, 0, packets * PACKET, 0, false);
    } else if (s->rank == TO) {
        await(came, 1);
        uint64_t time = since();
        bool same = memcmp(bytes, target, packets * PACKET) == 0;
        printf("%llu%s\n", (unsigned long long)time, same ? "" : " wrong bytes");
    }
}

static void append_handlers(struct start *s, ptl_handle_ct_t came, uint64_t user,
                            ptl_handle_hpu_mem_t *memory_of)
{
    check(PtlHPUAllocMem(s->ni, sizeof(struct seen), memory_of), "PtlHPUAllocMem");
    ptl_handlers_t h = {.header_handler = routes_header,
                        .payload_handler = routes_packet,
                        .completion_handler = routes_completion,
                        .hpu_mem = *memory_of,
                        .user_hdr_length = user};
    ptl_me_t me = entry(target, sizeof(target), BITS, came);
    ptl_handle_me_t handle;
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, &h, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
}

static void handlers(struct start *s, unsigned long packets, unsigned long user)
{
    ptl_handle_ct_t came = counter(s);
    ptl_handle_hpu_mem_t memory_of;
    struct seen seen;
    append_handlers(s, came, user, &memory_of);
    meet(s);
    await_begin();
    if (s->rank == 0) {
        put(s, 0, packets * PACKET, 0, false);
    } else if (s->rank == TO) {
        await(came, 1);
        printf("%llu", (unsigned long long)since());
        check(PtlHPURead(memory_of, 0, &seen, sizeof(seen)), "PtlHPURead");
        for (uint64_t i = 0; i < seen.packets && i < 2 * MOST; i++) {
            printf(" %llu", (unsigned long long)seen.offset[i]);
        }
        bool right =
            seen.headers == 1 && seen.early == 0 && seen.wrong == 0 && seen.completions == 1;
        printf("%s\n", right ? "" : " wrong");
    }
}

static void pair(struct start *s)
{
    for (unsigned i = 0; i < 2; i++) {
        ptl_me_t me = entry(target + 8 * i, 8, BITS, PTL_CT_NONE);
        ptl_handle_me_t handle;
        me.options |= PTL_ME_USE_ONCE | PTL_ME_EVENT_UNLINK_DISABLE | PTL_ME_EVENT_LINK_DISABLE;
        check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    }
    meet(s);
    await_begin();
    if (s->rank == 0) {
        put(s, 0, 8, 1, false);
        put(s, 8, 8, 2, false);
    }
    for (unsigned i = 0; s->rank == TO && i < 2; i++) {
        ptl_event_t e = next_event(s);
        printf("%llu %llu%s\n", (unsigned long long)e.hdr_data, (unsigned long long)since(),
               (uint8_t *)e.start == target + 8 * (e.hdr_data - 1) ? "" : " wrong entry");
    }
}

static void flow(struct start *s, unsigned long packets)
{
    ptl_handle_hpu_mem_t memory_of;
    append_handlers(s, PTL_CT_NONE, 0, &memory_of);
    meet(s);
    await_begin();
    if (s->rank == 0) {
        ptl_event_t e;
        put(s, 0, packets * PACKET, 0, true);
        check(PtlEQWait(s->eq, &e), "PtlEQWait");
        printf("%s %llu\n", e.ni_fail_type == PTL_NI_DROPPED ? "DROPPED" : "OK",
               (unsigned long long)e.mlength);
    }
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long n = 0, user = 0;
    start(&s, 3, 8);
    for (uint64_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = pattern(i);
    }
    if (argc == 3 && strcmp(argv[1], "plain") == 0 && number(argv[2], 1, MOST, &n)) {
        plain(&s, n);
    } else if (argc == 4 && strcmp(argv[1], "handlers") == 0 && number(argv[2], 1, MOST, &n) &&
               number(argv[3], 0, PACKET, &user)) {
        handlers(&s, n, user);
    } else if (argc == 2 && strcmp(argv[1], "pair") == 0) {
        pair(&s);
    } else if (argc == 3 && strcmp(argv[1], "flow") == 0 && number(argv[2], 1, MOST, &n)) {
        flow(&s, n);
    } else {
        usage(&s, "plain PACKETS|handlers PACKETS USER|pair|flow PACKETS");
    }
    return finish(&s, 0);
}
