/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a slow handler holds up, with HPUs that are threads: of its sender, the messages for its own
 * entry. Every kind of message that handlers see is held by entry 0 until the host says go, and
 * behind it those for entry 1, whose handlers do not wait, pass.
 *
 *      SLOW       its header handler waits for the host
 *      FAST       has handlers that do not, and
 *      USED...    are use-once entries with the handlers of SLOW
 *      HELD       has a payload handler that waits for the host to let it go
 */
#include "handler.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOW, FAST, USED, HELD = USED };
enum { ROUNDS = 6, SMALL = 100, PACKETS = 20000, LONGEST = 300000 };

enum kind { PUT, LARGE_PUT, ATOMIC, FETCH, SWAP, GET, LARGE_GET, KINDS };

static const size_t lengths[KINDS] = {SMALL, PACKETS, 800, 8, 8, SMALL, PACKETS};

static unsigned char source[LONGEST], fetched[ROUNDS][LONGEST], memory[USED + ROUNDS][LONGEST];

/* handler_host_mem */
static struct notes {
    uint64_t go;
    uint64_t begun, active, disorder, bytes;
    uint64_t held, released;
} notes;

#define NOTED(field) __atomic_load_n(&notes.field, __ATOMIC_ACQUIRE)
#define NOTE(field, n) handler_log_add(offsetof(struct notes, field), n)

/* Messages with hdr_data from 1 on come in this order. */
__handler static int slow_header(const ptl_header_t h, void *state)
{
    uint64_t *next = state;
    bool late = h.hdr_data != 0 && h.hdr_data != ++*next;
    if (NOTE(active, 1) != 0 || late) {
        NOTE(disorder, 1);
    }
    NOTE(begun, 1);
    while (NOTE(go, 0) == 0) {
        PtlHandlerYield();
    }
    return PROCESS_DATA;
}

__handler static int slow_completion(ptl_size_t dropped, bool flow_control, void *state)
{
    NOTE(active, UINT64_MAX);
    return SUCCESS;
}

__handler static int fast_payload(const ptl_payload_t p, void *state)
{
    NOTE(bytes, p.length);
    return SUCCESS;
}

__handler static int held_payload(const ptl_payload_t p, void *state)
{
    NOTE(held, 1);
    while (NOTE(released, 0) == 0) {
        PtlHandlerYield();
    }
    return SUCCESS;
}

/* The first message leaves the entry as it is. */
__handler static int pending_once(const ptl_header_t h, void *state)
{
    uint64_t *count = state;
    while (NOTE(go, 0) == 0) {
        PtlHandlerYield();
    }
    return (*count)++ == 0 ? PROCESS_DATA_PENDING : PROCESS_DATA;
}
PTL_HANDLER(slow_header);
PTL_HANDLER(slow_completion);
PTL_HANDLER(fast_payload);
PTL_HANDLER(held_payload);
PTL_HANDLER(pending_once);

static void say_go(void)
{
    __atomic_store_n(&notes.go, 1, __ATOMIC_RELEASE);
}

static void append(struct port *p, uint64_t bits, unsigned options, const ptl_handlers_t *handlers)
{
    ptl_handle_me_t handle;
    ptl_me_t me = port_entry(p, memory[bits], LONGEST,
                             options | PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_UNLINK_DISABLE);
    me.match_bits = bits;
    me.ignore_bits = 0;
    OK(handler_append_code(p, p->pt, &me, handlers, (void *)(uintptr_t)bits, &handle));
}

static ptl_handlers_t slow_handlers(void)
{
    static const uint64_t next = 0;
    return handler_set(slow_header, NULL, slow_completion, &next, sizeof(next), &notes,
                       sizeof(notes));
}

static void open_slow_and_fast(struct port *p)
{
    ptl_handlers_t slow = slow_handlers();
    ptl_handlers_t fast = handler_set(NULL, fast_payload, NULL, NULL, 8, &notes, sizeof(notes));
    append(p, SLOW, 0, &slow);
    append(p, FAST, 0, &fast);
}

static void open_or_skip(struct port *p, unsigned kind, int rank, int size)
{
    port_open(p, kind, rank, size);
    memset(&notes, 0, sizeof(notes));
    memset(memory, 0, sizeof(memory));
    for (size_t i = 0; i < sizeof(source); i++) {
        source[i] = (unsigned char)(i * 7 + i / 251);
    }
    if (!handler_threads(p)) {
        port_close(p);
        ptest_skip("whoever makes progress runs one message of a sender after the other");
    }
}

static void put(struct port *p, ptl_handle_md_t md, size_t length, uint64_t bits, uint64_t number)
{
    OK(PtlPut(md, 0, length, PTL_NO_ACK_REQ, p->id[1], p->pt, bits, 0, NULL, number));
}

/* The i-th message of a kind, for the entry with these match bits. */
static void move(struct port *p, enum kind kind, ptl_handle_md_t md, ptl_handle_md_t get_md,
                 uint64_t bits, uint64_t i)
{
    const uint64_t one = 1;
    size_t length = lengths[kind];
    ptl_size_t at = i * LONGEST;
    switch (kind) {
    case ATOMIC:
        OK(PtlAtomic(md, 0, length, PTL_NO_ACK_REQ, p->id[1], p->pt, bits, 0, NULL, i + 1, PTL_BOR,
                     PTL_UINT8_T));
        break;
    case FETCH:
        OK(PtlFetchAtomic(get_md, at, md, 0, length, p->id[1], p->pt, bits, 0, NULL, i + 1, PTL_BOR,
                          PTL_UINT64_T));
        break;
    case SWAP:
        OK(PtlSwap(get_md, at, md, 0, length, p->id[1], p->pt, bits, 0, NULL, i + 1, &one,
                   PTL_CSWAP_NE, PTL_UINT64_T));
        break;
    case GET:
    case LARGE_GET:
        OK(PtlGet(get_md, at, length, p->id[1], p->pt, bits, 0, NULL));
        break;
    default:
        put(p, md, length, bits, i + 1);
    }
}

static bool fetches(enum kind kind)
{
    return kind >= FETCH;
}

/* Takes n events of rank 1, which are of the entries with these match bits. */
static void take_events(struct port *p, unsigned n, uint64_t first, uint64_t last)
{
    ptl_event_t event;
    for (unsigned which; n != 0; n--) {
        OK(PtlEQPoll(&p->eq, 1, 10000, &event, &which));
        CHECK_EQ(event.ni_fail_type, PTL_NI_OK);
        uint64_t entry = (uintptr_t)event.user_ptr;
        CHECK(entry >= first && entry <= last);
    }
}

/* Messages of one kind for one slow entry, or for as many use-once entries: a message for the other
 * entry follows each, and the passing ones are `passing` long. */
static void pass(struct port *p, int sender, enum kind kind, bool once, size_t passing)
{
    if (p->rank == 1) {
        ptl_handlers_t slow = slow_handlers();
        open_slow_and_fast(p);
        for (uint64_t i = 0; once && i < ROUNDS; i++) {
            append(p, USED + i, PTL_ME_USE_ONCE, &slow);
            memcpy(memory[USED + i], source, LONGEST);
        }
        memcpy(memory[SLOW], source, LONGEST);
    }
    BARRIER();
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_md_t md = port_quiet_md(p, source, LONGEST, 0, PTL_CT_NONE);
    ptl_handle_md_t get_md = port_quiet_md(p, fetched, sizeof(fetched), PTL_MD_EVENT_CT_REPLY, ct);
    for (uint64_t i = 0; p->rank == sender && i < ROUNDS; i++) {
        move(p, kind, md, get_md, once ? USED + i : SLOW, once ? 0 : i);
        put(p, md, passing, FAST, 0);
    }
    if (p->rank == 1) {
        take_events(p, ROUNDS, FAST, FAST);
        NO_EVENT(p->eq);
        CHECK_EQ(notes.bytes, ROUNDS * passing);
        say_go();
        take_events(p, ROUNDS, once ? USED : SLOW, once ? USED + ROUNDS : SLOW);
        CHECK_EQ(notes.begun, ROUNDS);
        CHECK_EQ(once ? 0 : notes.disorder, 0);
        NO_EVENT(p->eq);
        CHECK(memcmp(memory[once ? USED : SLOW], source, lengths[kind]) == 0);
    }
    if (p->rank == sender && fetches(kind)) {
        port_wait_ct(ct, ROUNDS);
        CHECK(memcmp(fetched[0], source, lengths[kind]) == 0);
    }
    port_release(md);
    port_release(get_md);
    OK(PtlCTFree(ct));
    BARRIER();
}

/* Each kind in its turn, over interfaces of their own. */
static void pass_all(int rank, int size, unsigned kind, int sender, bool once, size_t passing)
{
    for (int k = 0; k < KINDS; k++) {
        struct port p;
        open_or_skip(&p, kind, rank, size);
        pass(&p, sender, (enum kind)k, once, passing);
        port_close(&p);
    }
}

PTEST_MATCHING(passes, 2)
{
    pass_all(rank, size, kind, 0, false, SMALL);
}

PTEST_MATCHING(passes_large, 2)
{
    pass_all(rank, size, kind, 0, false, PACKETS);
}

PTEST_MATCHING(passes_itself, 2)
{
    pass_all(rank, size, kind, 1, false, PACKETS);
}

PTEST_MATCHING(passes_use_once, 2)
{
    pass_all(rank, size, kind, 0, true, SMALL);
}

/* A message comes while one before it, too long to leave, has its handlers in the channel: it waits
 * for its turn, and leaves the channel then, as it would have done at once. */
static void pass_behind(struct port *p, enum kind kind)
{
    if (p->rank == 1) {
        ptl_handlers_t held = handler_set(NULL, held_payload, NULL, NULL, 8, &notes, sizeof(notes));
        open_slow_and_fast(p);
        append(p, HELD, 0, &held);
        memcpy(memory[SLOW], source, LONGEST);
    }
    BARRIER();
    ptl_handle_ct_t ct = port_ct(p);
    ptl_handle_md_t md = port_quiet_md(p, source, LONGEST, 0, PTL_CT_NONE);
    ptl_handle_md_t get_md = port_quiet_md(p, fetched, sizeof(fetched), PTL_MD_EVENT_CT_REPLY, ct);
    if (p->rank == 0) {
        put(p, md, PACKETS, HELD, 0);
        for (uint64_t i = 0; i < 2; i++) {
            move(p, kind, md, get_md, SLOW, i);
            put(p, md, SMALL, FAST, 0);
        }
    }
    if (p->rank == 1) {
        while (NOTED(held) == 0) {
            PtlEQGet(p->eq, &(ptl_event_t){0});
        }
        ptest_sleep_ms(20); /* the others are here by then, or the test shows less */
        __atomic_store_n(&notes.released, 1, __ATOMIC_RELEASE);
        take_events(p, 1, HELD, HELD);
        take_events(p, 2, FAST, FAST);
        NO_EVENT(p->eq);
        say_go();
        take_events(p, 2, SLOW, SLOW);
        CHECK_EQ(notes.begun, 2);
        CHECK_EQ(notes.disorder, 0);
    }
    if (p->rank == 0 && fetches(kind)) {
        port_wait_ct(ct, 2);
        CHECK(memcmp(fetched[0], source, lengths[kind]) == 0);
    }
    port_release(md);
    port_release(get_md);
    OK(PtlCTFree(ct));
    BARRIER();
}

PTEST_MATCHING(passes_behind, 2)
{
    setenv("PINWHEEL_HPU_QUEUE", "4", 1);
    for (int k = 0; k < KINDS; k++) {
        struct port p;
        if (k == LARGE_PUT) {
            continue; /* it is too long as well */
        }
        open_or_skip(&p, kind, rank, size);
        pass_behind(&p, (enum kind)k);
        port_close(&p);
    }
}

/* A message is longer than its entry's share of the buffers: it stays in its channel, and holds its
 * sender, but nobody else. */
PTEST_MATCHING(too_long_to_leave, 3)
{
    struct port p;
    setenv("PINWHEEL_HPU_QUEUE", "4", 1);
    open_or_skip(&p, kind, rank, size);
    if (rank == 1) {
        open_slow_and_fast(&p);
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, source, LONGEST, 0, PTL_CT_NONE);
    if (rank == 0) {
        put(&p, md, LONGEST, SLOW, 1);
        put(&p, md, SMALL, FAST, 0);
    }
    if (rank == 1) {
        while (NOTED(begun) == 0) {
            PtlEQGet(p.eq, &(ptl_event_t){0});
        }
    }
    BARRIER();
    if (rank == 2) {
        put(&p, md, SMALL, FAST, 0);
    }
    if (rank == 1) {
        take_events(&p, 1, FAST, FAST);
        NO_EVENT(p.eq);
        say_go();
        take_events(&p, 1, SLOW, SLOW);
        take_events(&p, 1, FAST, FAST);
        CHECK(memcmp(memory[SLOW], source, LONGEST) == 0);
    }
    port_release(md);
    port_close(&p);
}

/* A use-once entry is one message's until its handlers have ended. The next one of this sender
 * waits: they may leave the entry where it is, as they do here. */
static void stay(int rank, int size, unsigned kind, size_t length)
{
    struct port p;
    open_or_skip(&p, kind, rank, size);
    if (rank == 1) {
        static const uint64_t zero = 0;
        ptl_handlers_t handlers =
            handler_set(pending_once, NULL, NULL, &zero, sizeof(zero), &notes, sizeof(notes));
        append(&p, USED, PTL_ME_USE_ONCE, &handlers);
        handlers = handler_set(NULL, fast_payload, NULL, NULL, 8, &notes, sizeof(notes));
        ptl_handle_me_t handle;
        ptl_me_t second =
            port_entry(&p, memory[FAST], LONGEST, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
        second.match_bits = USED;
        OK(handler_append_code(&p, p.pt, &second, &handlers, (void *)(uintptr_t)FAST, &handle));
    }
    BARRIER();
    ptl_handle_md_t md = port_quiet_md(&p, source, LONGEST, 0, PTL_CT_NONE);
    for (uint64_t i = 0; rank == 0 && i < 3; i++) {
        put(&p, md, length, USED, i);
    }
    if (rank == 1) {
        NO_EVENT(p.eq);
        say_go();
        ptl_event_t event = EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ((uintptr_t)event.user_ptr, USED);
        CHECK_EQ(event.hdr_data, 1);
        event = EVENT(p.eq, PTL_EVENT_PUT);
        CHECK_EQ((uintptr_t)event.user_ptr, FAST);
        CHECK_EQ(event.hdr_data, 2);
    }
    port_release(md);
    port_close(&p);
}

PTEST_MATCHING(stays_in_its_place, 2)
{
    stay(rank, size, kind, SMALL);
}

PTEST_MATCHING(stays_in_its_place_large, 2)
{
    stay(rank, size, kind, PACKETS);
}

/* A payload that its sender cannot read: no handler sees the message, and the next one is served.
 */
PTEST_MATCHING(unreadable, 2)
{
    enum { PAGE = 4096 };
    struct port p;
    open_or_skip(&p, kind, rank, size);
    unsigned char *half =
        mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(half != MAP_FAILED);
    OK(mprotect(half + 4 * PAGE, 4 * PAGE, PROT_NONE));
    if (rank == 1) {
        open_slow_and_fast(&p);
        say_go();
    }
    BARRIER();
    ptl_handle_md_t bad = port_md(&p, half, 8 * PAGE, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    ptl_handle_md_t md = port_md(&p, source, LONGEST, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
    if (rank == 0) {
        OK(PtlPut(bad, 0, 8 * PAGE, PTL_ACK_REQ, p.id[1], p.pt, SLOW, 0, NULL, 0));
        EVENT_FAIL(p.mdeq, PTL_EVENT_ACK, PTL_NI_SEGV);
        OK(PtlPut(md, 0, PACKETS, PTL_ACK_REQ, p.id[1], p.pt, SLOW, 0, NULL, 0));
        EVENT(p.mdeq, PTL_EVENT_ACK);
    } else {
        EVENT_FAIL(p.eq, PTL_EVENT_PUT, PTL_NI_SEGV);
        CHECK_EQ(EVENT(p.eq, PTL_EVENT_PUT).mlength, PACKETS);
        CHECK(notes.begun == 1 || notes.begun == 2); /* the header may have come alone */
        CHECK_EQ(notes.active, 0);
        CHECK_EQ(notes.disorder, 0);
        CHECK(memcmp(memory[SLOW], source, PACKETS) == 0);
    }
    port_release(bad);
    port_release(md);
    port_close(&p);
    OK(munmap(half, 8 * PAGE));
}

/* The interface is closed while messages of all kinds wait. Who asked for something hears that it
 * was lost. */
PTEST_MATCHING(closed_meanwhile, 2)
{
    struct port p;
    ptl_handle_ni_t other;
    setenv("PINWHEEL_LINGER_MS", "50", 1);
    open_or_skip(&p, kind, rank, size);
    if (rank == 1) {
        open_slow_and_fast(&p);
        /* Keeps the NIC open. */
        OK(PtlNIInit(PTL_IFACE_DEFAULT, kind ^ KIND_MP ^ KIND_NL, PTL_PID_ANY, NULL, NULL, &other));
    }
    BARRIER();
    if (rank == 0) {
        ptl_handle_md_t md = port_md(&p, source, LONGEST, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        ptl_handle_md_t get_md = port_md(&p, fetched, sizeof(fetched), 0, PTL_CT_NONE);
        for (int k = 0; k < KINDS; k++) {
            move(&p, (enum kind)k, md, get_md, SLOW, 0);
        }
        for (int k = FETCH; k < KINDS; k++) {
            EVENT_FAIL(p.mdeq, PTL_EVENT_REPLY, PTL_NI_DROPPED);
        }
        port_release(md);
        port_release(get_md);
        port_close(&p);
        return;
    }
    while (__atomic_load_n(&notes.begun, __ATOMIC_ACQUIRE) == 0) {
        PtlEQGet(p.eq, &(ptl_event_t){0});
    }
    ptest_sleep_ms(20);
    OK(PtlNIFini(p.ni));
    BARRIER(); /* that of port_close() */
    OK(PtlNIFini(other));
    PtlFini();
}

/* Slots of ptest_show(): the target's address, and that all is sent. */
enum { SHOW_NID, SHOW_PID, SHOW_PT, SHOW_SENT };

/* A process of its own that sends one of each kind, and is killed then. */
static _Noreturn void send_and_wait_for_death(void)
{
    struct port p = {0};
    while (ptest_look(1, SHOW_PT) == 0) {
        ptest_sleep_ms(1);
    }
    p.id[1].phys.nid = (ptl_nid_t)ptest_look(1, SHOW_NID);
    p.id[1].phys.pid = (ptl_pid_t)ptest_look(1, SHOW_PID);
    p.pt = (ptl_pt_index_t)(ptest_look(1, SHOW_PT) - 1);
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &p.ni));
    ptl_handle_md_t md = port_quiet_md(&p, source, LONGEST, 0, PTL_CT_NONE);
    ptl_handle_md_t get_md = port_quiet_md(&p, fetched, sizeof(fetched), 0, PTL_CT_NONE);
    for (int k = 0; k < KINDS; k++) {
        move(&p, (enum kind)k, md, get_md, SLOW, 0);
    }
    for (;;) {
        pause();
    }
}

/* Their sender is gone: handlers run for all that had come, replies have nowhere to go. */
PTEST(sender_gone, 2)
{
    struct port p;
    pid_t victim = rank == 0 ? fork() : -1;
    if (victim == 0) {
        send_and_wait_for_death();
    }
    port_open(&p, KIND_MP, rank, size);
    bool threads = handler_threads(&p);
    if (rank == 1 && threads) {
        open_slow_and_fast(&p);
        ptest_show(SHOW_NID, p.id[1].phys.nid);
        ptest_show(SHOW_PID, p.id[1].phys.pid);
        ptest_show(SHOW_PT, p.pt + 1);
        while (NOTED(begun) == 0) {
            PtlEQGet(p.eq, &(ptl_event_t){0});
        }
        ptest_sleep_ms(50); /* for the others to come */
        ptest_show(SHOW_SENT, 1);
    }
    while (rank == 0 && threads && ptest_look(1, SHOW_SENT) == 0) {
        ptest_sleep_ms(1);
    }
    if (rank == 0) {
        CHECK_EQ(kill(victim, SIGKILL), 0);
        CHECK_EQ(waitpid(victim, NULL, 0), victim);
    }
    BARRIER();
    if (rank == 1 && threads) {
        ptl_event_t event;
        unsigned which;
        ptest_sleep_ms(20); /* for the news of the death */
        say_go();
        for (int k = 0; k < KINDS; k++) {
            OK(PtlEQPoll(&p.eq, 1, 20000, &event, &which));
            CHECK(event.ni_fail_type == PTL_NI_OK || event.ni_fail_type == PTL_NI_UNDELIVERABLE);
        }
        NO_EVENT(p.eq);
        CHECK_EQ(notes.active, 0);
    }
    port_close(&p);
    if (!threads) {
        ptest_skip("whoever makes progress runs one message of a sender after the other");
    }
}
