/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How what a handler asks for ends when nobody is to do it: asks that cannot leave, since nobody
 * has the address, or not yet; and one that its target refuses.
 */
#include "asking.h"

#include <stdio.h>
#include <unistd.h>

/* What has not left is withdrawn without asking anybody. */
PTEST(nobody_has_the_address, 1)
{
    struct port p;
    setenv("PINWHEEL_CONNECT_MS", "600000", 1);
    open_impatient(&p, KIND_MP, rank, size);
    ptl_process_t nobody = {.phys = {.nid = p.id[0].phys.nid, .pid = 999}};
    ptl_handle_me_t asking = open_asking(&p, nobody, p.pt);
    ask(&p, asking);
    check_ends(0, 1, 0);
    port_unlink(&p, asking);
    port_close(&p);
}

/* Hundreds of addresses that nobody has, more than a NIC remembers: a peer whose only ask was
 * withdrawn is forgotten like any other, and what waits for the next one is sent all the same. */
PTEST(nobody_has_any_of_the_addresses, 1)
{
    enum { ADDRESSES = 300, FIRST = 600 }; /* none that is given to who wants any */
    struct port p;
    setenv("PINWHEEL_CONNECT_MS", "600000", 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "1", 1);
    setenv("PINWHEEL_LINGER_MS", "50", 1);
    port_open(&p, KIND_MP, rank, size);
    for (unsigned i = 0; i < ADDRESSES; i++) {
        ptl_process_t nobody = {.phys = {.nid = p.id[0].phys.nid, .pid = FIRST + i}};
        ptl_handle_me_t asking = open_asking(&p, nobody, p.pt);
        ask(&p, asking);
        port_unlink(&p, asking);
    }
    check_ends(0, ADDRESSES, 0);
    ptl_handle_me_t entry = open_word(&p), asking = open_asking(&p, p.id[0], p.pt);
    for (int i = 0; i < MANY && NOTED(done) == 0; i++) {
        ask(&p, asking);
    }
    CHECK_EQ(NOTED(done), 1);
    port_unlink(&p, asking);
    port_unlink(&p, entry);
    port_close(&p);
}

/* Rank 1's handler asks for what rank 0 is only about to have, and asks again whenever that was
 * withdrawn: it is done once. Nothing of it has left when it is withdrawn for the first times,
 * since there is no rank 0; so it is not chance what becomes of these. */
__handler static int add_one_again(const ptl_header_t h, void *state)
{
    const struct asking *s = state;
    uint64_t one = 1, before = 0;
    int code;
    do {
        code = PtlHandlerFetchAtomicFromDeviceEx(&before, &one, sizeof(one), s->target,
                                                 (ptl_pt_index_t)s->pt, BITS, 0, 0, PTL_SUM,
                                                 PTL_UINT64_T);
        note_end(code);
    } while (code == PTL_ABORTED);
    PtlHandlerDMAToHostB(&before, offsetof(struct notes, before), sizeof(before),
                         PTL_HANDLER_HOST_MEM);
    return DROP;
}
PTL_HANDLER(add_one_again);

PTEST(withdrawn_and_asked_again, 2)
{
    enum { WITHDRAWN = 3 };
    struct port p;
    setenv("PINWHEEL_CONNECT_MS", "600000", 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", PATIENCE_MS, 1);
    if (rank == 0) {
        open_alone(&p, PTL_PID_ANY); /* which will be free again */
        ptl_pid_t pid = p.id[0].phys.pid;
        OK(PtlNIFini(p.ni));
        PtlFini();
        ptest_show(SHOW_PID, pid);
        while (ptest_look(1, SHOW_PROCESS) == 0) {
            ptest_sleep_ms(1);
        }
        open_alone(&p, pid);
        ptl_handle_me_t entry = open_word(&p);
        while (ptest_look(1, SHOW_WORD) == 0) {
            PtlEQGet(p.eq, &(ptl_event_t){0});
        }
        CHECK(word >= 1 && word <= ptest_look(1, SHOW_WORD));
        port_unlink(&p, entry);
    } else {
        while (ptest_look(0, SHOW_PID) == 0) {
            ptest_sleep_ms(1);
        }
        open_alone(&p, PTL_PID_ANY);
        ptl_process_t target = {
            .phys = {.nid = p.id[0].phys.nid, .pid = (ptl_pid_t)ptest_look(0, SHOW_PID)}};
        struct asking s = {target, p.pt};
        ptl_handle_me_t asking = open_entry(&p, add_one_again, &s, sizeof(s));
        OK(PtlHandlersInvoke(asking, NULL, 0));
        while (NOTED(withdrawn) < WITHDRAWN) {
            PtlEQGet(p.eq, &(ptl_event_t){0});
        }
        CHECK(NOTED(done) == 0 && NOTED(unknown) == 0);
        ptest_show(SHOW_PROCESS, 1);
        EVENT(p.eq, PTL_EVENT_PUT);
        for (int i = 0; i < MANY && NOTED(done) == 0; i++) {
            ask(&p, asking); /* on a busy machine the first one may end as unknown */
        }
        CHECK(NOTED(done) == 1 && NOTED(other) == 0 && notes.before <= NOTED(unknown));
        ptest_show(SHOW_WORD, 1 + NOTED(unknown));
        port_unlink(&p, asking);
    }
    port_close(&p);
}

enum { SHORT_PACKET = 1024, LONG_PACKET = 4096, LONG_WORDS = 256 /* more than a short packet */ };

struct asking_more {
    struct asking asking;
    uint64_t ones[LONG_WORDS], before[LONG_WORDS];
};

__handler static int add_many(const ptl_header_t h, void *state)
{
    struct asking_more *s = state;
    note_end(PtlHandlerFetchAtomicFromDeviceEx(s->before, s->ones, sizeof(s->ones),
                                               s->asking.target, (ptl_pt_index_t)s->asking.pt, BITS,
                                               0, 0, PTL_SUM, PTL_UINT64_T));
    return DROP;
}
PTL_HANDLER(add_many);

/* What rank 0 cannot do is refused: answers of handlers and of the program come, and the same peer
 * does what it can. */
PTEST(longer_than_its_packets, 2)
{
    static uint64_t memory[LONG_WORDS];
    struct port p;
    char packet[16];
    snprintf(packet, sizeof(packet), "%d", rank == 0 ? SHORT_PACKET : LONG_PACKET);
    setenv("PINWHEEL_PACKET_SIZE", packet, 1);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "3600000", 1); /* it is not patience that ends this */
    port_open(&p, KIND_ML, rank, size);
    struct asking_more more = {.asking = {p.id[0], p.pt}};
    for (int i = 0; i < LONG_WORDS; i++) {
        more.ones[i] = 1;
    }
    ptl_handle_me_t entry;
    if (rank == 0) {
        ptl_me_t me = port_entry(&p, memory, sizeof(memory),
                                 PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                     PTL_ME_EVENT_COMM_DISABLE);
        entry = port_append(&p, &me, NULL);
        BARRIER();
    } else {
        BARRIER();
        entry = open_entry(&p, add_many, &more, sizeof(more));
        ask(&p, entry);
        check_ends(0, 0, 1);
        port_unlink(&p, entry);
        ptl_handle_md_t md =
            port_md(&p, more.ones, sizeof(more.ones), PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        ptl_handle_md_t to = port_md(&p, more.before, sizeof(more.before), 0, PTL_CT_NONE);
        OK(PtlFetchAtomic(to, 0, md, 0, sizeof(more.ones), p.id[0], p.pt, BITS, 0, NULL, 0, PTL_SUM,
                          PTL_UINT64_T));
        EVENT_FAIL(p.mdeq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
        OK(PtlAtomic(md, 0, sizeof(more.ones), PTL_ACK_REQ, p.id[0], p.pt, BITS, 0, NULL, 0,
                     PTL_SUM, PTL_UINT64_T));
        EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, PTL_NI_DROPPED);
        OK(PtlPut(md, 0, sizeof(more.ones), PTL_ACK_REQ, p.id[0], p.pt, BITS, 0, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_ACK); /* it takes several packets */
        port_release(md);
        port_release(to);
        entry = open_asking(&p, p.id[0], p.pt);
        ask(&p, entry);
        check_ends(1, 0, 1);
        CHECK_EQ(notes.before, 1);
    }
    BARRIER();
    for (int i = 0; i < LONG_WORDS && rank == 0; i++) {
        CHECK_EQ(memory[i], i == 0 ? 2 : 1);
    }
    port_unlink(&p, entry);
    port_close(&p);
}
