/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that nobody would trust, on live traffic: random images and random states on the RV32
 * cores of a NIC.
 *
 *      rank 0                         rank 1
 *      a message ───────────────────► an entry with handlers of image n   (tests/hpu/strays.h)
 *      its event tells how it ended   ... and so does the event here, and standard error
 *      another message ─────────────► handlers of the library, which do what they should
 *
 * Image n is made of nothing, or of one of the handler library's whose code may have some bits
 * changed; its state, its messages, which may be several at once, and which handlers the entry has,
 * depend on n as well. Whatever it does, the process is there afterwards, memory of others is as it
 * was, and the NIC serves the next message; that of rank 2, if handlers wait for ever, since those
 * of rank 0 wait for theirs. Such a handler is cancelled with its interface.
 *
 * STRAY=N in the environment begins with image N.
 */
#include "kit.h"

#include "chance.h"
#include "live_images.h"
#include "pspin.h"

enum {
    MEMORY = 8192,  /* of the entry */
    MESSAGE = 6000, /* some packets */
    STATE = 4096,
    GUARD = 4096, /* on both sides of what is the entry's */
    USER_HEADER = 64,
    AT_ONCE = 4,  /* messages */
    SESSION = 64, /* images of an interface, which keeps them all */
    GOOD_BITS = 0x600d,
};

/* ---- A message ---- */

struct trial {
    uint64_t number, bits; /* that no handler finds by chance */
    uint32_t length, user_header, state_length, handlers, messages;
    bool get; /* else a put */
};

static struct trial make_trial(uint64_t number)
{
    struct trial t = {.number = number};
    random_state = ~number;
    t.bits = (uint64_t)next_random() << 32;
    t.bits |= next_random();
    t.length = below(3) == 0 ? below(MESSAGE) : below(256);
    t.user_header = below(2) ? below(USER_HEADER) : 0;
    t.state_length = 8 + below(below(2) ? 128 : STATE - 8);
    t.handlers = 1 + below(7);
    t.get = below(8) == 0;
    t.messages = below(2) ? 1 + below(AT_ONCE) : 1;
    return t;
}

/* ---- Both sides ---- */

struct session {
    struct kit k;
    uint8_t *memory, *data;        /* rank 1: a guard, the entry's, a guard; rank 0: what is sent */
    ptl_handle_hpu_mem_t state[3]; /* the middle one is the handlers' */
    ptl_handle_md_t md;
};

/* How messages end, and a word of rank 0 for each that says how many did. */
enum { RETURNED, FAILED, LEFT_MEMORY, LATE, OTHERWISE, WAITS, ENDS };

static int kind_of_end(ptl_ni_fail_t fail)
{
    switch (fail) {
    case PTL_NI_OK:
        return RETURNED;
    case PTL_NI_HANDLER_FAIL:
        return FAILED;
    case PTL_NI_HANDLER_SEGV:
        return LEFT_MEMORY;
    case PTL_NI_HANDLER_TIMEOUT:
        return LATE;
    default:
        return OTHERWISE;
    }
}

enum { GUARD_BYTE = 0xa5, GOOD_LENGTH = 3000 };

static void open_session(struct session *s, int rank, int size)
{
    kit_open(&s->k, rank, size);
    if (rank != 1) {
        s->data = kit_memory(MESSAGE);
        s->md = port_md(&s->k.p, s->data, MESSAGE, PTL_MD_EVENT_SEND_DISABLE, PTL_CT_NONE);
        return;
    }
    s->memory = kit_memory(2 * GUARD + MEMORY);
    memset(s->memory, GUARD_BYTE, 2 * GUARD + MEMORY);
    for (int i = 0; i < 3; i++) {
        OK(PtlHPUAllocMem(s->k.p.ni, STATE, &s->state[i]));
        OK(PtlHPUWrite(s->state[i], 0, s->memory, STATE));
    }
}

/* ---- Ranks 0 and 2 ---- */

static void *tag(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

/* How a message ends that is called so; of others nobody wants to know any more. */
static int wait_for(struct session *s, uint64_t number, unsigned ms)
{
    ptl_event_t event;
    unsigned which;
    do {
        int rc = PtlEQPoll(&s->k.p.mdeq, 1, ms * (unsigned)ptest_slow(), &event, &which);
        if (rc == PTL_EQ_EMPTY) {
            return WAITS;
        }
        CHECK_EQ(rc, PTL_OK);
    } while (event.user_ptr != tag(number));
    return kind_of_end(event.ni_fail_type);
}

static void send_good(struct session *s, uint64_t number, bool mine)
{
    ptest_fill(s->data, GOOD_LENGTH, (unsigned)number);
    BARRIER();
    if (mine) {
        const struct kit *k = &s->k;
        OK(PtlPut(s->md, 0, GOOD_LENGTH, PTL_ACK_REQ, k->p.id[1], k->p.pt, GOOD_BITS, 0, NULL, 0));
        CHECK_EQ(wait_for(s, 0, 20000), RETURNED);
    }
    BARRIER();
}

static void try_sending(struct session *s, uint64_t number)
{
    const struct kit *k = &s->k;
    struct trial t = make_trial(number);
    unsigned ended[ENDS] = {0};
    fill_random(s->data, t.length);
    BARRIER();
    for (uint32_t i = 0; i < t.messages; i++) {
        OK(t.get ? PtlGet(s->md, 0, t.length, k->p.id[1], k->p.pt, t.bits, 0, tag(number))
                 : PtlPut(s->md, 0, t.length, PTL_ACK_REQ, k->p.id[1], k->p.pt, t.bits, 0,
                          tag(number), number));
    }
    for (uint32_t i = 0; i < t.messages && ended[WAITS] == 0; i++) {
        ended[wait_for(s, number, live_is_new(number) ? 300 : 20000)]++;
    }
    for (int i = 0; i < ENDS; i++) {
        ptest_show(i, ended[i]);
    }
    BARRIER();
    send_good(s, number, ended[WAITS] == 0);
}

/* Rank 2, which sends if rank 0 cannot: its next message would wait for the one before. */
static void stand_by(struct session *s, uint64_t number)
{
    BARRIER();
    BARRIER();
    send_good(s, number, ptest_look(0, WAITS) != 0);
}

/* ---- Rank 1 ---- */

/* Some states read as formats do, as far as they go. */
static void fill_state(uint8_t *state, size_t length)
{
    static const char text[] = "%%%%%dsuxXcfgeplhz.*0123456789 -+#";
    fill_random(state, length);
    bool reads = state[0] % 4 == 0;
    for (size_t i = 0; i < length && reads; i++) {
        state[i] = (uint8_t)text[state[i] % sizeof(text)];
    }
}

static ptl_handle_me_t append(struct session *s, const struct trial *t)
{
    static uint8_t state[STATE];
    unsigned has = live_make(t->number), wanted = has & t->handlers;
    fill_state(state, t->state_length);
    ptl_handlers_t h = live_handlers(wanted != 0 ? wanted : has);
    h.hpu_mem = s->state[1];
    h.hpu_initial_state = state;
    h.hpu_initial_length = t->state_length;
    h.user_hdr_length = t->user_header;
    return kit_entry(&s->k, s->memory + GUARD, MEMORY, t->bits, 0, PTL_CT_NONE, &h);
}

/* Events of messages that their handlers ended are as many here as at rank 0. Handlers may have
 * sent as well; and the answer to a get overtakes its event. */
static void take_events(struct session *s)
{
    unsigned ended[ENDS] = {0}, which;
    ptl_event_t event;
    uint64_t left = ptest_look(0, FAILED) + ptest_look(0, LEFT_MEMORY) + ptest_look(0, LATE);
    while (PtlEQPoll(&s->k.p.eq, 1, left != 0 ? 10000 * (unsigned)ptest_slow() : 0, &event,
                     &which) != PTL_EQ_EMPTY) {
        if (event.type == PTL_EVENT_PUT || event.type == PTL_EVENT_GET) {
            ended[kind_of_end(event.ni_fail_type)]++;
            left--;
        }
    }
    for (int i = FAILED; i <= LATE; i++) {
        CHECK_EQ(ended[i], ptest_look(0, i));
    }
}

static void check_guards(struct session *s)
{
    static uint8_t bytes[STATE];
    CHECK_BYTES(s->memory, GUARD, GUARD_BYTE);
    CHECK_BYTES(s->memory + GUARD + MEMORY, GUARD, GUARD_BYTE);
    for (int i = 0; i < 3; i += 2) {
        OK(PtlHPURead(s->state[i], 0, bytes, STATE));
        CHECK_BYTES(bytes, STATE, GUARD_BYTE);
    }
}

/* What the library has written says of it what the events do. */
static void check_text(const char *text)
{
    CHECK(ptest_look(0, LEFT_MEMORY) == 0 || strstr(text, " on RV32 ended with SEGV: ") != NULL);
    CHECK(ptest_look(0, LATE) == 0 || strstr(text, " on RV32 ended with TIMEOUT: used ") != NULL);
}

/* The same NIC and the same cores, with handlers that do what they should. */
static void receive_good(struct session *s, uint64_t number)
{
    ptl_handlers_t copy;
    uint8_t *memory = s->memory + GUARD;
    memset(memory, 0, MEMORY);
    pspin_copy_handlers(&copy);
    ptl_handle_me_t entry = kit_entry(&s->k, memory, MEMORY, GOOD_BITS, 0, PTL_CT_NONE, &copy);
    BARRIER();
    BARRIER();
    CHECK_FILL(memory, GOOD_LENGTH, (unsigned)number);
    port_unlink(&s->k.p, entry);
}

static void try_receiving(struct session *s, uint64_t number)
{
    char text[16384];
    struct trial t = make_trial(number);
    begin_capture();
    ptl_handle_me_t entry = append(s, &t);
    BARRIER();
    BARRIER();
    end_capture(text, sizeof(text));
    check_text(text);
    if (ptest_look(0, WAITS) == 0) {
        take_events(s);
        port_unlink(&s->k.p, entry);
    }
    check_guards(s);
    receive_good(s, number);
}

/* ---- Cases ---- */

static void try_images(int rank, int size, uint64_t count)
{
    static const char *const names[ENDS] = {"returned", "FAIL", "SEGV", "TIMEOUT", "other", "wait"};
    struct session s;
    unsigned ends[ENDS] = {0};
    const char *from = getenv("STRAY");
    uint64_t first = from != NULL ? strtoull(from, NULL, 10) : 1;
    CHECK(setenv("PINWHEEL_HPU", "rv32", 1) == 0);
    live_open();
    for (uint64_t n = first; n < first + count;) {
        bool waits = false;
        open_session(&s, rank, size);
        for (int i = 0; i < SESSION && n < first + count && !waits; i++, n++) {
            if (rank == 1) {
                fprintf(stderr, "image %llu\n", (unsigned long long)n);
            }
            (rank == 0 ? try_sending : rank == 1 ? try_receiving : stand_by)(&s, n);
            for (int end = 0; end < ENDS; end++) {
                ends[end] += (unsigned)ptest_look(0, end);
            }
            waits = ptest_look(0, WAITS) != 0;
        }
        port_close(&s.k.p);
    }
    for (int i = 0; i < ENDS && rank == 0; i++) {
        printf("%6u %s\n", ends[i], names[i]);
    }
    /* A corpus that does not reach each of them tries nothing. */
    for (int i = 0; i <= (count >= 500 ? LATE : LEFT_MEMORY); i++) {
        CHECK(ends[i] > 0);
    }
}

PTEST_LIMIT(few, 3, 60)
{
    try_images(rank, size, 64);
}

PTEST_LIMIT(thousand, 3, 1700)
{
    try_images(rank, size, 1000);
}
