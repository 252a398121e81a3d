/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of a fabric in one process, above them the least that stands
 * for a NIC, and payloads in one part of memory or many.
 *
 *      from ──► ends[OUT] ── record, cells, or by reference ──► ends[IN] ──► to
 *
 * A message carries the index of its plan and its turn; the plan says what it is made of,
 * where it goes and what must become of it. All is of one thread: whoever takes the lock
 * while the fabric has let go of it is played by the upcall `unlock`.
 */
#ifndef UNIT_FABRIC_FIXTURE_H
#define UNIT_FABRIC_FIXTURE_H

#include "base/fault.h"
#include "fabric/fabric.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#define PACKET 4096
#define INLINE_MOST 1024
#ifndef PIPELINE
#define PIPELINE 8 /* messages of a stream under way */
#endif
#ifndef ENDS
#define ENDS 2 /* a third one may send to IN, too */
#endif

enum { OUT, IN };

/* The fabric, how often nothing may happen in a row, and what passes between two looks. */
static const struct fabric_ops *fabric = &fabric_shm;
static unsigned idle_most = 1000;
static bool turns_tried = true; /* the receiver has some messages wait for their turn */
static void (*between_polls)(void);

static uint64_t number = 88172645463325252u;

static size_t below(size_t n)
{
    number ^= number << 13;
    number ^= number >> 7;
    number ^= number << 17;
    return number % n;
}

static void fill(uint8_t *p, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = below(SIZE_MAX);
        memcpy(p + i, &word, n - i < 8 ? n - i : 8);
    }
}

/* ---- memory, in one part or many ---- */

enum shape { WHOLE, LARGE_PARTS, SMALL_PARTS, SHAPES };

struct memory {
    uint8_t *area;
    size_t size;
    bool in_parts;
    uint8_t *base; /* WHOLE */
    struct vector vector;
    uint64_t skip; /* the payload begins here in the vector */
};

#define BAD_BYTES ((size_t)2 << 20)
static uint8_t *forbidden; /* memory that nobody may touch */
static uint8_t *read_only; /* memory that can be read only */

/* A part of at most `most` bytes; some are empty, lengths of a whole packet are frequent. */
static size_t part_length(enum shape shape, size_t most)
{
    size_t n = shape == SMALL_PARTS ? below(17) : below(4) == 0 ? PACKET : below(9000);
    return n < most ? n : most;
}

/* The parts lie in the area in no order: each is taken from its one end or the other. */
static void cut_into_parts(struct memory *m, enum shape shape, size_t length)
{
    m->skip = below(300);
    size_t rest = m->skip + length + below(100), most = rest / 4 + 16, low = 0, high = m->size;
    struct iovec *parts = calloc(most, sizeof(*parts));
    assert_non_null(parts);
    m->vector.parts = parts;
    while (rest != 0) {
        size_t n = part_length(shape, rest), gap = below(4);
        bool front = below(2) == 0;
        assert_true(m->vector.count < most && low + n + gap <= high);
        parts[m->vector.count++] = (struct iovec){m->area + (front ? low : high - n), n};
        low += front ? n + gap : 0;
        high -= front ? 0 : n + gap;
        rest -= n;
    }
}

static void make_memory(struct memory *m, enum shape shape, size_t length)
{
    memset(m, 0, sizeof(*m));
    m->size = 2 * length + 4 * PACKET;
    m->area = malloc(m->size);
    assert_non_null(m->area);
    memset(m->area, 0xee, m->size);
    m->in_parts = shape != WHOLE;
    m->base = m->area + below(70);
    if (m->in_parts) {
        cut_into_parts(m, shape, length);
    }
}

static void free_memory(struct memory *m)
{
    free((struct iovec *)m->vector.parts);
    free(m->area);
}

/* Copies n bytes of payload to or from the memory; the reference. */
static void touch(struct memory *m, uint8_t *bytes, size_t n, bool write)
{
    uint64_t at = 0, done = 0;
    if (!m->in_parts) {
        memcpy(write ? m->base : bytes, write ? bytes : m->base, n);
        return;
    }
    for (size_t i = 0; i < m->vector.count && done < n; i++) {
        uint8_t *p = m->vector.parts[i].iov_base;
        for (size_t k = 0; k < m->vector.parts[i].iov_len && done < n; k++, at++) {
            if (at >= m->skip) {
                uint8_t *here = bytes + done++;
                *(write ? &p[k] : here) = write ? *here : p[k];
            }
        }
    }
    assert_int_equal(done, n);
}

static void put_bytes(struct memory *m, const uint8_t *bytes, size_t n)
{
    touch(m, (uint8_t *)bytes, n, true);
}

static void get_bytes(struct memory *m, uint8_t *bytes, size_t n)
{
    touch(m, bytes, n, false);
}

/* The part in which the payload's byte at `offset` lies. */
static struct iovec *part_of(struct memory *m, uint64_t offset)
{
    uint64_t begin = 0;
    for (size_t i = 0; i < m->vector.count; i++) {
        begin += m->vector.parts[i].iov_len;
        if (m->skip + offset < begin) {
            return (struct iovec *)&m->vector.parts[i];
        }
    }
    fail_msg("no part has byte %llu", (unsigned long long)offset);
    return NULL;
}

/* ---- the least that a fabric needs above it ---- */

/* One message: what is sent, where it goes, and what became of it. */
struct plan {
    struct fabric_tx tx;
    struct memory from, to;
    size_t length, room;
    uint8_t *payload;
    bool bad_source;   /* its end must be FABRIC_SEGV, for its source */
    bool bad_target;   /* its end must be FABRIC_SEGV, for its target */
    bool headed;       /* rx_short decides and goes on */
    bool by_packets;   /* the receiver takes it packet by packet */
    bool taken_back;   /* the sink goes away while it is in use */
    bool in_turn;      /* the receiver takes it when those before it have ended */
    bool unmatched;    /* the receiver does not even say before then whose it is */
    bool wants_first;  /* the receiver decides by the first packet */
    unsigned waits;    /* how often its header waits before that */
    unsigned suspends; /* how often the receiver lets packets of it wait */
    bool is_sent, is_done;
    enum fabric_status sent, done; /* as the two ends were told */
    uint64_t seen;                 /* bytes that came by packets */
};

struct end {
    struct fabric *fabric;
    struct fabric_peer *peer;
    uint32_t pid;
};

struct received {
    struct fabric_rx f; /* first */
    enum fabric_class class;
};

static struct options options;
static struct end ends[ENDS];
static struct plan *plans[PIPELINE];
static uint64_t arrived[FABRIC_CLASSES]; /* messages that ended, by class */
static unsigned unlocks;
static uint64_t incarnations;
static struct fabric_rx *in_progress; /* to be taken back at the second unlock */

static struct plan *plan_of(const struct fabric_rx *f)
{
    uint64_t index;
    memcpy(&index, f->header, sizeof(index));
    assert_true(index < PIPELINE);
    assert_non_null(plans[index]);
    return plans[index];
}

static struct nic_peer *peer_up(struct nic *nic, const struct fabric_address *a,
                                struct fabric_peer *fp)
{
    ((struct end *)nic)->peer = fp;
    return (struct nic_peer *)nic;
}

static void peer_down(struct nic *nic, struct nic_peer *p)
{
    ((struct end *)nic)->peer = NULL;
}

static struct fabric_rx *rx_new(struct nic_peer *p, enum fabric_class class)
{
    struct received *r = calloc(1, sizeof(*r));
    r->class = class;
    return &r->f;
}

static void rx_free(struct nic_peer *p, struct fabric_rx *f)
{
    free(f);
}

static void choose_sink(struct fabric_rx *f)
{
    struct plan *plan = plan_of(f);
    f->sink = plan->by_packets ? RX_PACKETS : RX_DEPOSIT;
    f->base = plan->to.in_parts ? NULL : plan->to.base;
    f->vector = plan->to.in_parts ? &plan->to.vector : NULL;
    f->skip = plan->to.skip;
    f->room = plan->room;
    in_progress = plan->taken_back ? f : NULL;
}

static enum rx_step rx_short(struct nic_peer *p, struct fabric_rx *f, const void *payload)
{
    if (!plan_of(f)->headed) {
        return RX_FIRST;
    }
    choose_sink(f);
    return RX_HEADED;
}

static enum rx_step rx_header(struct nic_peer *p, struct fabric_rx *f)
{
    assert_int_equal(f->sink, RX_DISCARD);
    assert_null(f->vector);
    if (plan_of(f)->waits != 0) {
        plan_of(f)->waits--;
        return RX_WAIT;
    }
    if (f->first == NULL && f->length != 0 && !f->torn && plan_of(f)->wants_first) {
        return RX_FIRST;
    }
    if (f->first == NULL && f->length != 0 && below(4) == 0) {
        return RX_FIRST;
    }
    bool now_and_then = f->behind && !f->torn && turns_tried && below(8) == 0;
    if (now_and_then || (f->behind && plan_of(f)->in_turn)) {
        f->matched = !plan_of(f)->unmatched;
        return RX_TURN;
    }
    if (f->first != NULL && !f->torn) {
        assert_memory_equal(f->first, plan_of(f)->payload, f->length < PACKET ? f->length : PACKET);
    }
    choose_sink(f);
    return RX_GO;
}

static enum rx_step rx_packet(struct nic_peer *p, struct fabric_rx *f, void *data, uint64_t offset,
                              size_t length)
{
    struct plan *plan = plan_of(f);
    assert_int_equal(offset, plan->seen);
    assert_true(length % PACKET == 0 || offset + length == plan->length);
    assert_true(length != 0 && offset + length <= plan->length);
    assert_memory_equal(data, plan->payload + offset, length);
    f->taken = 0;
    if (plan->suspends != 0) {
        plan->suspends--;
        return RX_WAIT;
    }
    plan->seen += length;
    return RX_GO;
}

static enum rx_step rx_done(struct nic_peer *p, struct fabric_rx *f, enum fabric_status status)
{
    struct plan *plan = plan_of(f);
    uint64_t turn;
    memcpy(&turn, f->header + 8, sizeof(turn));
    assert_int_equal(turn, arrived[((struct received *)f)->class]++);
    assert_false(plan->is_done);
    assert_true(f->length == plan->length || (f->length == 0 && plan->bad_source));
    plan->is_done = true;
    plan->done = status;
    return RX_GO;
}

static void sent(struct nic_peer *p, struct fabric_tx *tx, enum fabric_status status)
{
    struct plan *plan = container_of(tx, struct plan, tx);
    plan->is_sent = true;
    plan->sent = status;
}

/* The NIC takes the vector of a deposit back: nothing of it may be looked at any more. */
static void take_back(struct plan *plan, struct fabric_rx *f)
{
    f->sink = RX_DISCARD;
    plan->to.vector.parts = (struct iovec *)forbidden;
}

static void lock(struct nic *nic)
{
}

/* Whoever waited for the lock has it now. */
static void unlock(struct nic *nic)
{
    unlocks++;
    if (in_progress != NULL && unlocks == 2) {
        take_back(plan_of(in_progress), in_progress);
    }
}

static bool expects(struct nic_peer *p)
{
    return false;
}

static const struct fabric_upcalls upcalls = {.peer_up = peer_up,
                                              .peer_down = peer_down,
                                              .rx_new = rx_new,
                                              .rx_free = rx_free,
                                              .rx_short = rx_short,
                                              .rx_header = rx_header,
                                              .rx_packet = rx_packet,
                                              .rx_done = rx_done,
                                              .sent = sent,
                                              .expects = expects,
                                              .needs = expects,
                                              .lock = lock,
                                              .unlock = unlock};

/* With a PID, or 0 for any. */
static void open_end_at(struct end *e, uint32_t pid)
{
    struct reason why = {""};
    struct fabric_setup setup = {.nic = (struct nic *)e,
                                 .up = &upcalls,
                                 .options = &options,
                                 .nid = 0x7f000001,
                                 .pid = pid,
                                 .incarnation = ++incarnations,
                                 .packet_size = PACKET,
                                 .alone = true};
    if (fabric->open(&setup, &e->fabric, &e->pid, &why) != 0) {
        fail_msg("%s", why.text);
    }
}

static void open_end(struct end *e)
{
    open_end_at(e, 0);
}

static bool poll_both(void)
{
    if (between_polls != NULL) {
        between_polls();
    }
    bool moved = fabric->poll(ends[OUT].fabric);
    return fabric->poll(ends[IN].fabric) || moved;
}

/* ---- one message ---- */

static void make_plan(struct plan *plan, size_t length, enum shape from, enum shape to)
{
    memset(plan, 0, sizeof(*plan));
    make_memory(&plan->from, from, length);
    make_memory(&plan->to, to, length);
    plan->payload = malloc(length + 1);
    assert_non_null(plan->payload);
    fill(plan->payload, length);
    put_bytes(&plan->from, plan->payload, length);
    plan->length = plan->room = length;
    plan->tx.base = plan->from.in_parts ? NULL : plan->from.base;
    plan->tx.vector = plan->from.in_parts ? &plan->from.vector : NULL;
    plan->tx.skip = plan->from.skip;
    plan->tx.length = length;
    plan->tx.cursor = (struct vector_cursor){below(9), below(5000)}; /* the fabric's: not ours */
}

static void free_plan(struct plan *plan)
{
    free(plan->payload);
    free_memory(&plan->from);
    free_memory(&plan->to);
}

/* Hands the plan with this index and turn to the fabric of an end; false if that has no room. */
static bool send_plan_from(const struct end *e, enum fabric_class class, uint64_t index,
                           uint64_t turn)
{
    struct plan *plan = plans[index];
    memcpy(plan->tx.header, &index, sizeof(index));
    memcpy(plan->tx.header + 8, &turn, sizeof(turn));
    switch (fabric->send(e->peer, class, &plan->tx)) {
    case FABRIC_FULL:
        return false;
    case FABRIC_SENT:
        plan->is_sent = true;
        plan->sent = plan->tx.fault;
        break;
    case FABRIC_QUEUED:
        break;
    }
    return true;
}

static bool send_plan(enum fabric_class class, uint64_t index, uint64_t turn)
{
    return send_plan_from(&ends[OUT], class, index, turn);
}

/* What must have come of it. Where the target was to be changed, and only there, it was. */
static void check_plan(struct plan *plan)
{
    bool bad = plan->bad_source || plan->bad_target;
    assert_int_equal(plan->done, bad ? FABRIC_SEGV : FABRIC_OK);
    if (!bad) {
        assert_int_equal(plan->sent, FABRIC_OK);
    }
    if (plan->bad_source) {
        assert_int_equal(plan->sent, FABRIC_SEGV);
    }
    if (bad || plan->taken_back) {
        return;
    }
    assert_true(!plan->by_packets || plan->seen == plan->length);
    size_t n = plan->by_packets ? 0 : plan->room < plan->length ? plan->room : plan->length;
    struct memory *to = &plan->to;
    uint8_t *expected = malloc(to->size), *found = malloc(n + 1);
    get_bytes(to, found, n);
    assert_memory_equal(found, plan->payload, n);
    memset(found, 0xee, n);
    put_bytes(to, found, n);
    memset(expected, 0xee, to->size);
    assert_memory_equal(to->area, expected, to->size);
    free(expected);
    free(found);
}

static void finish(struct plan *plan)
{
    for (unsigned idle = 0; !plan->is_sent || !plan->is_done; idle++) {
        idle = poll_both() ? 0 : idle;
        assert_true(idle < idle_most);
    }
}

/* Sends one message, of a class, or of any, and waits for its end. */
static void carry_as(enum fabric_class class, struct plan *plan)
{
    plans[0] = plan;
    unlocks = 0;
    assert_true(send_plan(class, 0, arrived[class]));
    finish(plan);
    check_plan(plan);
}

static void carry(struct plan *plan)
{
    carry_as((enum fabric_class)below(FABRIC_CLASSES), plan);
}

static void carry_sound_one(size_t length)
{
    struct plan plan;
    make_plan(&plan, length, (enum shape)below(SHAPES), (enum shape)below(SHAPES));
    carry(&plan);
    free_plan(&plan);
}

/* The stream goes on: a sound message of each kind after whatever came before. */
static inline void carry_sound_ones(void)
{
    static const size_t lengths[] = {0, 5, 700, 3 * PACKET};
    for (unsigned i = 0; i < 4; i++) {
        carry_sound_one(lengths[i]);
    }
}

/* Two ends; large payloads will go by `way`: "udp", or a way through shared memory, with few
 * cells. */
static void open_ends(const char *way)
{
    struct reason why = {""};
    bool udp = strcmp(way, "udp") == 0;
    fabric = udp ? &fabric_udp : &fabric_shm;
    setenv("PINWHEEL_SHM_LARGE", udp ? "auto" : way, 1);
    setenv("PINWHEEL_SHM_CELLS", "16", 1);
    setenv("PINWHEEL_SHM_CELLS_FIRST", "4", 1);
    setenv("PINWHEEL_LOG", "none", 1);
    assert_int_equal(options_load(&options, why.text, sizeof(why.text)), 0);
    assert_int_equal(options.number[OPT_SHM_INLINE], INLINE_MOST);
    assert_int_equal(fault_install(), 0);
    open_end(&ends[OUT]);
    open_end(&ends[IN]);
    memset(arrived, 0, sizeof(arrived));
}

/* An end gets IN for its peer. */
static inline void connect_end(const struct end *e)
{
    struct reason why = {""};
    enum fabric_connect found = FABRIC_LATER;
    for (unsigned idle = 0; (found == FABRIC_LATER || found == FABRIC_SOON) && idle < idle_most;
         idle++) {
        found = fabric->connect(e->fabric, 0x7f000001, ends[IN].pid, &why);
        poll_both();
    }
    if (found != FABRIC_UP) {
        fail_msg("no connection: %s", why.text);
    }
}

/* Two ends, connected. */
static inline void open_both(const char *way)
{
    open_ends(way);
    connect_end(&ends[OUT]);
    carry_sound_one(0); /* now they have met, and IN has said that it can read memory */
}

static inline void close_both(void)
{
    fabric->close(ends[OUT].fabric);
    fabric->close(ends[IN].fabric);
    fault_remove();
}

/* What can be wrong with memory in parts. */
enum damage { NO_ACCESS, WRAPS, TOO_SHORT, NO_LIST, NO_WRITE, DAMAGES };

static void spoil(struct memory *m, enum damage damage, size_t length)
{
    struct iovec *part = part_of(m, below(length));
    switch (damage) {
    case NO_ACCESS:
        part->iov_base = forbidden + below(4096);
        break;
    case WRAPS:
        part->iov_base = (void *)(UINTPTR_MAX - part->iov_len / 2);
        break;
    case TOO_SHORT:
        m->vector.count = (size_t)(part - m->vector.parts);
        break;
    case NO_LIST:
        free((struct iovec *)m->vector.parts);
        m->vector.parts = NULL;
        break;
    default:
        part->iov_base = read_only;
    }
}

/* Several messages at once, up to PIPELINE, of all lengths and shapes, some bad: each ends in
 * its turn, as it must. */
static inline void stream(unsigned messages, size_t longest)
{
    struct plan in_flight[PIPELINE];
    uint64_t turn = 0, ended = 0;
    arrived[FABRIC_REQUEST] = 0;
    while (ended < messages) {
        while (turn < messages && turn - ended < PIPELINE) {
            struct plan *plan = plans[turn % PIPELINE] = &in_flight[turn % PIPELINE];
            size_t length = 1 + below(below(2) == 0 ? 100 : longest);
            bool bad = below(5) == 0, source = below(2) == 0;
            make_plan(plan, length, bad ? SMALL_PARTS : (enum shape)below(SHAPES),
                      bad ? SMALL_PARTS : (enum shape)below(SHAPES));
            plan->headed = below(3) == 0;
            plan->by_packets = !bad && below(3) == 0;
            plan->bad_source = bad && source;
            plan->bad_target = bad && !source;
            if (bad) {
                spoil(source ? &plan->from : &plan->to, (enum damage)below(NO_WRITE), length);
            }
            if (!send_plan(FABRIC_REQUEST, turn % PIPELINE, turn)) {
                free_plan(plan);
                break;
            }
            turn++;
        }
        poll_both();
        for (struct plan *p; ended < turn && (p = plans[ended % PIPELINE])->is_sent && p->is_done;
             ended++) {
            check_plan(p);
            free_plan(p);
        }
    }
}

/* Memory that is bad in one way and another; for the tests' main(). */
static int set_up(void **state)
{
    forbidden = mmap(NULL, BAD_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    read_only = mmap(NULL, BAD_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return forbidden == MAP_FAILED || read_only == MAP_FAILED ? -1 : 0;
}

static int tear_down(void **state)
{
    return munmap(forbidden, BAD_BYTES) | munmap(read_only, BAD_BYTES);
}

#endif
