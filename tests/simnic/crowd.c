/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of one sender at handlers of one entry, and what finds no room there. Rank 0 puts to
 * rank 1, whose program prints, in picoseconds from the first put on:
 *
 *      rate N [unordered]      N messages of 8 bytes: when the last one was counted
 *      order                   four messages, the first of which a handler is slow with: when the
 *                              events of all have come, and in what order
 *      hpus N                  N messages of 8 bytes whose sender needs no order: of each event the
 *                              message, its ni_fail_type, and when it has come, from the start of
 * the job on flow PACKETS            a message of so many packets: how its ack ends at the sender;
 * then what its completion handler was told, and the events at its target
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"
#include "spin_handler.h"

enum { BITS = 1, MESSAGES = 4, MOST = 64, PACKET = 4096 };

/* What the completion handler of `flow` was told. */
struct told {
    uint64_t dropped, flow, calls;
};

static uint64_t target[MOST * PACKET / 8];

/* A message whose header data are 1 takes as long as a read of host memory. */
__handler static int crowd_header(const ptl_header_t h, void *state)
{
    uint64_t word;
    (void)state;
    if (h.hdr_data == 1) {
        PtlHandlerDMAFromHostB(0, &word, 8, PTL_ME_HOST_MEM);
    }
    return PROCESS_DATA;
}
PTL_HANDLER(crowd_header);

__handler static int crowd_packet(const ptl_payload_t p, void *state)
{
    (void)p;
    (void)state;
    return SUCCESS;
}
PTL_HANDLER(crowd_packet);

__handler static int crowd_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    struct told *t = state;
    *t = (struct told){dropped, flow_control, t->calls + 1};
    return SUCCESS;
}
PTL_HANDLER(crowd_completion);

static ptl_handle_ct_t serve(struct start *s, ptl_pt_index_t index, const ptl_handlers_t *handlers,
                             bool events)
{
    ptl_handle_ct_t came = counter(s);
    ptl_me_t me = entry(target, sizeof(target), BITS, events ? PTL_CT_NONE : came);
    ptl_handle_me_t handle;
    check(PtlMEAppendHandlers(s->ni, index, &me, handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    return came;
}

static void puts_of(const struct start *s, unsigned long n, unsigned options)
{
    ptl_md_t md = {.start = target, .length = 8, .options = options, .ct_handle = PTL_CT_NONE};
    md.eq_handle = s->eq;
    md.options |= PTL_MD_EVENT_SEND_DISABLE;
    ptl_handle_md_t handle;
    check(PtlMDBind(s->ni, &md, &handle), "PtlMDBind");
    for (unsigned long i = 0; i < n; i++) {
        check(PtlPut(handle, 0, 8, PTL_NO_ACK_REQ, rank_id(1), INDEX, BITS, 0, NULL, i + 1),
              "PtlPut");
    }
}

static void rate(struct start *s, unsigned long n, bool unordered)
{
    ptl_handlers_t h = {.payload_handler = crowd_packet, .hpu_mem = PTL_HPU_MEM_NONE};
    ptl_handle_ct_t came = serve(s, INDEX, &h, false);
    meet(s);
    uint64_t begin = PtlSimNow();
    if (s->rank == 0) {
        puts_of(s, n, unordered ? PTL_MD_UNORDERED : 0);
    } else {
        await(came, n);
        printf("%llu\n", (unsigned long long)(PtlSimNow() - begin));
    }
}

static void order(struct start *s)
{
    ptl_handlers_t h = {.header_handler = crowd_header, .hpu_mem = PTL_HPU_MEM_NONE};
    h.payload_handler = crowd_packet;
    serve(s, INDEX, &h, true);
    meet(s);
    uint64_t begin = PtlSimNow();
    if (s->rank == 0) {
        puts_of(s, MESSAGES, PTL_MD_UNORDERED);
        return;
    }
    uint64_t found[MESSAGES];
    for (int i = 0; i < MESSAGES; i++) {
        found[i] = next_event(s).hdr_data;
    }
    printf("%llu", (unsigned long long)(PtlSimNow() - begin));
    for (int i = 0; i < MESSAGES; i++) {
        printf(" %llu", (unsigned long long)found[i]);
    }
    printf("\n");
}

static void hpus(struct start *s, unsigned long n)
{
    ptl_handlers_t h = {.payload_handler = crowd_packet, .hpu_mem = PTL_HPU_MEM_NONE};
    serve(s, INDEX, &h, true);
    meet(s);
    if (s->rank == 0) {
        puts_of(s, n, PTL_MD_UNORDERED);
        return;
    }
    for (unsigned long i = 0; i < n; i++) {
        ptl_event_t e;
        check(PtlEQWait(s->eq, &e), "PtlEQWait");
        printf("%llu %d %llu\n", (unsigned long long)e.hdr_data, (int)e.ni_fail_type,
               (unsigned long long)PtlSimNow());
    }
}

static void flow(struct start *s, unsigned long packets)
{
    ptl_pt_index_t index;
    ptl_handle_hpu_mem_t memory_of;
    ptl_handle_md_t md;
    struct told told;
    check(PtlPTAlloc(s->ni, PTL_PT_FLOWCTRL, s->eq, PTL_PT_ANY, &index), "PtlPTAlloc");
    check(PtlHPUAllocMem(s->ni, sizeof(told), &memory_of), "PtlHPUAllocMem");
    ptl_handlers_t h = {.payload_handler = crowd_packet, .hpu_mem = memory_of};
    h.completion_handler = crowd_completion;
    serve(s, index, &h, true);
    ptl_md_t all = {.start = target, .length = sizeof(target), .eq_handle = s->eq};
    all.ct_handle = PTL_CT_NONE;
    all.options = PTL_MD_EVENT_SEND_DISABLE;
    check(PtlMDBind(s->ni, &all, &md), "PtlMDBind");
    meet(s);
    if (s->rank == 0) {
        ptl_event_t e;
        check(PtlPut(md, 0, packets * PACKET, PTL_ACK_REQ, rank_id(1), index, BITS, 0, NULL, 0),
              "PtlPut");
        check(PtlEQWait(s->eq, &e), "PtlEQWait");
        printf("ack %d %llu\n", (int)e.ni_fail_type, (unsigned long long)e.mlength);
        return;
    }
    for (unsigned events = 1; events != 0; events--) {
        ptl_event_t e;
        check(PtlEQWait(s->eq, &e), "PtlEQWait");
        printf("event %s %d %llu\n",
               e.type == PTL_EVENT_PT_DISABLED ? "PT_DISABLED"
               : e.type == PTL_EVENT_PUT       ? "PUT"
                                               : "another",
               (int)e.ni_fail_type, (unsigned long long)e.mlength);
        check(PtlHPURead(memory_of, 0, &told, sizeof(told)), "PtlHPURead");
        events += e.type == PTL_EVENT_PUT && told.flow != 0; /* PT_DISABLED comes behind it */
    }
    printf("completion %llu %llu %llu\n", (unsigned long long)told.calls,
           (unsigned long long)told.dropped, (unsigned long long)told.flow);
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long n = 0;
    start(&s, 2, 2);
    if (argc == 2 && strcmp(argv[1], "order") == 0) {
        order(&s);
    } else if (argc >= 3 && strcmp(argv[1], "rate") == 0 && number(argv[2], 1, 10000, &n)) {
        rate(&s, n, argc > 3);
    } else if (argc == 3 && strcmp(argv[1], "hpus") == 0 && number(argv[2], 1, MOST, &n)) {
        hpus(&s, n);
    } else if (argc == 3 && strcmp(argv[1], "flow") == 0 && number(argv[2], 1, MOST, &n)) {
        flow(&s, n);
    } else {
        usage(&s, "rate N [unordered]|order|hpus N|flow PACKETS");
    }
    return finish(&s, 0);
}
