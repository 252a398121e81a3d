/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/rendezvous: lengths around the eager limit, receives before and after their
 * messages, wildcards and order, many messages both ways at once; and that a long message
 * arrives while neither program looks.
 */
#include "kit.h"

#include "rendezvous.h"

enum { EAGER = 1000, MANY = 120 };

struct end {
    struct kit k;
    struct rendezvous r;
    ptl_handle_eq_t eq;
    ptl_pt_index_t matching, data;
};

static struct end e;
static const ptl_process_t any = {.rank = PTL_RANK_ANY};

static void open_end(int rank, int size)
{
    memset(&e, 0, sizeof(e));
    kit_open(&e.k, rank, size);
    OK(PtlEQAlloc(e.k.p.ni, 4096, &e.eq));
    OK(PtlPTAlloc(e.k.p.ni, 0, e.eq, 20, &e.matching));
    OK(PtlPTAlloc(e.k.p.ni, 0, e.eq, 21, &e.data));
    size_t early = 400 * EAGER;
    OK(rendezvous_open(&e.r, e.k.p.ni, e.matching, e.data, e.eq, any, EAGER, kit_memory(early),
                       early));
    BARRIER();
}

static void close_end(void)
{
    ptl_event_t event;
    BARRIER();
    while (PtlEQGet(e.eq, &event) == PTL_OK) {
        OK(rendezvous_event(&e.r, &event)); /* a buffer to be appended anew, perhaps */
    }
    kit_close(&e.k);
}

static void wait_for(struct rendezvous_request *q)
{
    while (!q->done) {
        ptl_event_t event;
        unsigned which;
        OK(PtlEQPoll(&e.eq, 1, 20000u * (unsigned)ptest_slow(), &event, &which));
        OK(rendezvous_event(&e.r, &event));
    }
}

static void send(struct rendezvous_request *q, const void *start, size_t length, int to,
                 uint64_t bits)
{
    OK(rendezvous_send(&e.r, q, start, length, e.k.p.id[to], bits));
}

static void receive(struct rendezvous_request *q, void *start, size_t room, int from, uint64_t bits,
                    uint64_t ignore)
{
    OK(rendezvous_receive(&e.r, q, start, room, from < 0 ? any : e.k.p.id[from], bits, ignore));
}

/* ---- One message ---- */

static void one_message(size_t length, size_t room, bool early)
{
    struct rendezvous_request q;
    unsigned char *memory = kit_memory(length > room ? length : room);
    size_t kept = length < room ? length : room;
    if (e.k.p.rank == 0) {
        ptest_fill(memory, length, (unsigned)length);
        if (!early) {
            BARRIER();
        }
        send(&q, memory, length, 1, 5);
        if (early && length <= EAGER) {
            wait_for(&q); /* then it is there */
        } else if (early) {
            ptest_sleep_ms(5); /* then it is announced, most likely */
        }
        if (early) {
            BARRIER();
        }
    } else {
        memset(memory, 0xee, room);
        if (early) {
            BARRIER();
        }
        receive(&q, memory, room, 0, 5, 0);
        if (!early) {
            BARRIER();
        }
    }
    wait_for(&q);
    CHECK_EQ(q.fail, PTL_NI_OK);
    CHECK_EQ(q.length, e.k.p.rank == 0 && early && length <= EAGER ? length : kept);
    if (e.k.p.rank == 1) {
        CHECK_EQ(q.source.rank, 0);
        CHECK_EQ(q.bits, 5);
        CHECK_FILL(memory, kept, (unsigned)length);
        CHECK_BYTES(memory + kept, room - kept, 0xee);
    }
    BARRIER();
    free(memory);
}

PTEST(lengths, 2)
{
    const size_t lengths[] = {0, 1, 16, 17, EAGER - 1, EAGER, EAGER + 1, 5000};
    open_end(rank, size);
    for (int early = 0; early < 2; early++) {
        for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
            one_message(lengths[i], lengths[i], early);
            one_message(lengths[i], lengths[i] + 100, early);
            one_message(lengths[i], lengths[i] / 2, early); /* cut off */
        }
        one_message(kit_largest(&e.k), kit_largest(&e.k), early);
        one_message(1 << 20, 1 << 20, early);
    }
    close_end();
}

/* ---- While nobody looks ---- */

PTEST(receiver_is_away, 2)
{
    enum { LENGTH = 300000 };
    struct rendezvous_request q;
    open_end(rank, size);
    unsigned char *memory = kit_memory(LENGTH);
    if (rank == 0) {
        BARRIER();
        ptest_fill(memory, LENGTH, 3);
        send(&q, memory, LENGTH, 1, 1);
        wait_for(&q); /* it was received, and the receiver made no call */
        BARRIER();
    } else {
        receive(&q, memory, LENGTH, 0, 1, 0);
        BARRIER();
        BARRIER();
        CHECK_FILL(memory, LENGTH, 3);
        wait_for(&q);
    }
    close_end();
}

PTEST(sender_is_away, 2)
{
    enum { LENGTH = 300000 };
    struct rendezvous_request q;
    open_end(rank, size);
    unsigned char *memory = kit_memory(LENGTH);
    if (rank == 0) {
        ptest_fill(memory, LENGTH, 3);
        send(&q, memory, LENGTH, 1, 1);
        BARRIER();
        BARRIER();
        wait_for(&q);
    } else {
        BARRIER();
        receive(&q, memory, LENGTH, 0, 1, 0);
        wait_for(&q);
        CHECK_FILL(memory, LENGTH, 3);
        BARRIER();
    }
    close_end();
}

/* ---- Many ---- */

/* Message i from one rank to another: length and tag. The tag's messages are in order. */
static size_t message(int from, int to, int i, uint64_t *tag)
{
    uint64_t r = (uint64_t)(from * 100 + to) * 1000 + (uint64_t)i;
    *tag = splitmix(&r) % 3;
    return splitmix(&r) % 4 == 0 ? splitmix(&r) % 60000 : splitmix(&r) % (2 * EAGER);
}

static unsigned seed_of(int from, int to, int i)
{
    return (unsigned)(from * 7919 + to * 104729 + i);
}

struct transfer {
    struct rendezvous_request q;
    unsigned char *memory;
    size_t length;
    unsigned seed;
};

/* Everybody sends to everybody, also to itself; receives are posted in the order of each
 * sender's messages of a tag, but tag by tag, and some before, some after they came. */
PTEST(everybody, 4)
{
    static struct transfer out[4 * MANY], in[4 * MANY];
    uint64_t tag, r = (uint64_t)rank;
    int posted = 0, sent = 0;
    open_end(rank, size);
    for (int i = 0; i < MANY; i++) {
        for (int to = 0; to < size; to++, sent++) {
            struct transfer *t = &out[sent];
            t->length = message(rank, to, i, &tag);
            t->memory = kit_memory(t->length);
            ptest_fill(t->memory, t->length, seed_of(rank, to, i));
            send(&t->q, t->memory, t->length, to, tag);
        }
        /* a few receives between the sends */
        while (posted < 4 * i && splitmix(&r) % 5 != 0) {
            int n = posted, from = n % size;
            struct transfer *t = &in[posted++];
            t->length = 60000;
            t->memory = kit_memory(t->length);
            receive(&t->q, t->memory, t->length, from, 0, 3); /* any tag: in order of sending */
            t->seed = seed_of(from, rank, n / size);
        }
    }
    while (posted < size * MANY) {
        int n = posted, from = n % size;
        struct transfer *t = &in[posted++];
        t->length = 60000;
        t->memory = kit_memory(t->length);
        receive(&t->q, t->memory, t->length, from, 0, 3);
        t->seed = seed_of(from, rank, n / size);
    }
    for (int n = 0; n < size * MANY; n++) {
        size_t length = message(n % size, rank, n / size, &tag);
        wait_for(&in[n].q);
        CHECK_EQ(in[n].q.fail, PTL_NI_OK);
        CHECK_EQ(in[n].q.length, length);
        CHECK_EQ(in[n].q.bits, tag);
        CHECK_EQ(in[n].q.source.rank, n % size);
        CHECK_FILL(in[n].memory, length, in[n].seed);
        wait_for(&out[n].q);
        CHECK_EQ(out[n].q.fail, PTL_NI_OK);
    }
    close_end();
}

/* From any source: each message comes once. */
PTEST(any_source, 4)
{
    static struct transfer t[3 * MANY];
    uint64_t tag;
    open_end(rank, size);
    if (rank != 3) {
        for (int i = 0; i < MANY; i++) {
            t[i].length = 8 + message(rank, 3, i, &tag);
            t[i].memory = kit_memory(t[i].length);
            ptest_fill(t[i].memory, t[i].length, seed_of(rank, 3, i));
            send(&t[i].q, t[i].memory, t[i].length, 3, tag);
        }
        for (int i = 0; i < MANY; i++) {
            wait_for(&t[i].q);
            CHECK_EQ(t[i].q.fail, PTL_NI_OK);
        }
    } else {
        int next[3] = {0};
        for (int i = 0; i < 3 * MANY; i++) {
            t[i].memory = kit_memory(60008);
            receive(&t[i].q, t[i].memory, 60008, -1, 0, 3);
        }
        for (int i = 0; i < 3 * MANY; i++) { /* of each source in the order it sent */
            wait_for(&t[i].q);
            int from = (int)t[i].q.source.rank;
            CHECK(from < 3 && next[from] < MANY);
            CHECK_EQ(t[i].q.length, 8 + message(from, 3, next[from], &tag));
            CHECK_EQ(t[i].q.bits, tag);
            CHECK_FILL(t[i].memory, t[i].q.length, seed_of(from, 3, next[from]));
            next[from]++;
        }
    }
    close_end();
}

/* ---- What goes wrong ---- */

PTEST(failures, 2)
{
    open_end(rank, size);
    struct rendezvous other;
    INVALID(rendezvous_open(&other, e.k.p.ni, e.matching, e.data, e.eq, any, 8, NULL, 1 << 20));
    INVALID(rendezvous_open(&other, e.k.p.ni, e.matching, e.data, e.eq, any, 1024, NULL, 4000));
    if (rank == 0) { /* more than the overflow buffers hold, and nobody receives */
        struct rendezvous_request q;
        unsigned char *memory = kit_memory(EAGER + 1);
        uint64_t arrived = 0;
        do {
            send(&q, memory, EAGER, 1, 9);
            wait_for(&q);
            arrived += q.fail == PTL_NI_OK;
        } while (q.fail == PTL_NI_OK);
        CHECK(arrived > 300);
        CHECK_EQ(q.fail, PTL_NI_DROPPED);
        send(&q, memory, EAGER + 1, 1, 9);
        wait_for(&q);
        CHECK_EQ(q.fail, PTL_NI_DROPPED);
        CHECK_EQ(q.length, 0);
        ptest_show(1, arrived);
        BARRIER();
        BARRIER();
        send(&q, memory, EAGER, 1, 9);
        wait_for(&q);
        CHECK_EQ(q.fail, PTL_NI_OK);
    } else { /* what arrived is received, and that makes room again */
        unsigned char *memory = kit_memory(EAGER);
        struct rendezvous_request q;
        ptl_event_t event;
        BARRIER();
        for (uint64_t i = ptest_look(0, 1); i > 0; i--) {
            receive(&q, memory, EAGER, 0, 9, 0);
            wait_for(&q);
            CHECK_EQ(q.fail, PTL_NI_OK);
        }
        while (PtlEQGet(e.eq, &event) == PTL_OK) {
            OK(rendezvous_event(&e.r, &event));
        }
        BARRIER();
    }
    close_end();
}
