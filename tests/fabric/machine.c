/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The receive machine (fabric/rx_machine.h) over the loop (loop.c), under a NIC that answers each
 * upcall with anything that it may, by a seed. Three NICs of one process send to each other, both
 * classes. Held of every run:
 *
 *   - headers are asked for in the order in which messages of one peer and class were sent, and
 *     messages end in that order, each once, and nothing is heard of one after its end;
 *   - packets come in order, with their bytes; deposits are where they belong, and nowhere else;
 *   - what ends well is whole; only of a peer that was lost does one end as UNDELIVERABLE, and
 *     what is behind that one does, too;
 *   - without a loss every message ends.
 *
 * Then the same run again, with a peer lost before each of its polls. A table says in which state a
 * message was met by which answer, and in which it was when its peer was lost: none is left out.
 */
#include "loop.h"

#include "../splitmix.h"
#include "base/fault.h"
#include "fabric/rx_machine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { NICS = 3, MESSAGES = 12, PACKET = 64, LONGEST = 6 * PACKET, ROOM = LONGEST + 32 };

/* What a message is, and what became of it; its header has its numbers. */
struct message {
    uint8_t from, to, class, number;
    struct fabric_tx tx;
    uint8_t payload[LONGEST], place[ROOM];
    size_t length, room;
    enum rx_sink sink;
    bool unreadable; /* its sender finds none of it */
    bool sent, decided, torn, ended;
    bool taken;             /* rx_short has done what rx_header does */
    bool waits;             /* the last answer was RX_WAIT */
    unsigned turn;          /* one more than the messages that had ended at the last RX_TURN */
    const uint8_t *packets; /* the first, where it was shown */
    uint64_t seen;          /* bytes that came in packets */
    uint64_t done;          /* bytes of packets that the NIC keeps no more */
    unsigned *met;          /* the last answer to it: how often one was lost after that */
    enum fabric_status status;
};

struct received {
    struct fabric_rx f; /* first */
    enum fabric_class class;
};

/* A connection at one of its ends. */
struct nic_peer {
    struct nic *nic;
    struct fabric_peer *fp;
    uint32_t of;
    struct received *rx[FABRIC_CLASSES];
    unsigned matched[FABRIC_CLASSES], ended[FABRIC_CLASSES]; /* messages */
    bool cut[FABRIC_CLASSES];                                /* one ended as UNDELIVERABLE */
    bool down;
};

static struct nic {
    struct fabric *fabric;
    struct nic_peer peer[NICS];
    bool lost;
} nics[NICS];

static struct message messages[NICS][NICS][FABRIC_CLASSES][MESSAGES];
static uint64_t number;

/* How often each answer was given in each phase, and each was met by a loss. */
enum answer { GO, WAIT, FIRST, KEPT, HEADED, TURN, ANSWERS };
enum { HEADER_FIRST = RX_DONE + 1, PHASES };
static unsigned given[PHASES][ANSWERS], met[PHASES][ANSWERS];
static unsigned torn_headers, cut_ends, kept_back, taken_part, resumed;

static uint64_t below(uint64_t n)
{
    return splitmix_below(&number, n);
}

static enum rx_step say(struct message *m, unsigned phase, enum rx_step step)
{
    static const enum answer of[] = {[RX_GO] = GO,     [RX_WAIT] = WAIT,     [RX_FIRST] = FIRST,
                                     [RX_KEPT] = KEPT, [RX_HEADED] = HEADED, [RX_TURN] = TURN};
    given[phase][of[step]]++;
    m->met = &met[phase][of[step]];
    m->waits = step == RX_WAIT;
    return step;
}

static struct message *message_of(const struct nic_peer *p, const struct fabric_rx *f)
{
    assert_false(p->down || p->nic->lost);
    struct message *m = &messages[f->header[0]][f->header[1]][f->header[2]][f->header[3]];
    assert_true(f->header[0] == p->of && &nics[f->header[1]] == p->nic);
    assert_true(f->header[2] == ((const struct received *)f)->class);
    assert_false(m->ended);
    assert_int_equal(f->length, m->unreadable ? 0 : m->length);
    return m;
}

static struct nic_peer *peer_up(struct nic *nic, const struct fabric_address *a,
                                struct fabric_peer *fp)
{
    struct nic_peer *p = &nic->peer[a->pid];
    *p = (struct nic_peer){.nic = nic, .fp = fp, .of = a->pid};
    return p;
}

static void peer_down(struct nic *nic, struct nic_peer *p)
{
    assert_false(p->down);
    p->down = true;
}

static struct fabric_rx *rx_new(struct nic_peer *p, enum fabric_class class)
{
    struct received *r = calloc(1, sizeof(*r));
    assert_non_null(r);
    r->class = class;
    return &r->f;
}

static void rx_free(struct nic_peer *p, struct fabric_rx *f)
{
    free(f);
}

/* It is known whose it is: in its turn. */
static void decide(struct nic_peer *p, struct message *m)
{
    if (!m->decided) {
        assert_int_equal(m->number, p->matched[m->class]++);
        m->decided = true;
    }
}

static void lend(struct fabric_rx *f, struct message *m)
{
    f->sink = m->sink;
    f->base = m->place;
    f->room = m->room;
}

/* The end of a message: the machine says no more of it. */
static void end(struct nic_peer *p, struct fabric_rx *f, struct message *m,
                enum fabric_status status)
{
    assert_true(m->decided);
    assert_int_equal(m->number, p->ended[m->class]++);
    bool is_cut = status == FABRIC_UNDELIVERABLE;
    assert_true(is_cut ? nics[m->from].lost : !p->cut[m->class]);
    assert_true(is_cut || (status == FABRIC_SEGV) == m->unreadable);
    p->cut[m->class] = is_cut;
    m->ended = true;
    m->status = status;
    m->seen = f->sink == RX_PACKETS ? m->seen : 0;
}

static enum rx_step rx_short(struct nic_peer *p, struct fabric_rx *f, const void *payload)
{
    struct message *m = message_of(p, f);
    assert_memory_equal(payload, m->payload, m->length);
    enum rx_step step = (enum rx_step[]){RX_GO, RX_WAIT, RX_FIRST, RX_HEADED}[below(4)];
    if (step == RX_FIRST) {
        return say(m, RX_IDLE, step);
    }
    decide(p, m);
    lend(f, m);
    m->taken = true;
    if (step == RX_GO || step == RX_WAIT) { /* it has its payload */
        memcpy(m->place, payload, m->length < m->room ? m->length : m->room);
        m->sink = RX_DEPOSIT;
    }
    if (step == RX_GO) {
        end(p, f, m, FABRIC_OK);
    }
    return say(m, RX_IDLE, step);
}

static enum rx_step rx_header(struct nic_peer *p, struct fabric_rx *f)
{
    struct message *m = message_of(p, f);
    unsigned phase = f->first != NULL ? HEADER_FIRST : RX_HEADER;
    assert_int_equal(f->sink, RX_DISCARD);
    assert_false(m->taken || (f->torn && m->waits));
    assert_true(f->torn || m->turn <= p->ended[m->class]);
    assert_true(f->torn || m->waits || !p->cut[m->class]);
    if (f->torn) {
        torn_headers += nics[m->from].lost;
        assert_true(nics[m->from].lost || m->unreadable);
        decide(p, m);
        m->torn = true;
        return RX_GO;
    }
    if (f->first != NULL) {
        assert_memory_equal(f->first, m->payload, m->length < PACKET ? m->length : PACKET);
    }
    if (below(3) == 0) {
        return say(m, phase, RX_WAIT);
    }
    if (f->first == NULL && m->length != 0 && below(3) == 0) {
        return say(m, phase, RX_FIRST);
    }
    if (f->behind && below(3) == 0) {
        if (below(2) == 0) {
            decide(p, m);
            f->matched = true;
        }
        m->turn = p->ended[m->class] + 1;
        return say(m, phase, RX_TURN);
    }
    decide(p, m);
    lend(f, m);
    return say(m, phase, RX_GO);
}

/* Packets that are kept are compared when they are given back, in order. */
static void give_back(struct fabric_rx *f, struct message *m)
{
    if (f->held != FABRIC_HELD_NOTHING && m->done < m->seen) {
        uint64_t n = below(m->seen - m->done + 1);
        assert_memory_equal(m->packets + m->done, m->payload + m->done, n);
        m->done += n;
        f->held = m->done == m->seen ? FABRIC_HELD_NOTHING : m->done;
        kept_back += n != 0;
    }
}

static enum rx_step rx_packet(struct nic_peer *p, struct fabric_rx *f, void *data, uint64_t offset,
                              size_t length)
{
    struct message *m = message_of(p, f);
    assert_false(m->torn || (p->cut[m->class] && !m->waits));
    resumed += p->cut[m->class];
    assert_int_equal(offset, m->seen);
    assert_true(length != 0 && offset + length <= m->length);
    assert_true(length % PACKET == 0 || offset + length == m->length);
    assert_memory_equal(data, m->payload + offset, length);
    m->packets = (const uint8_t *)data - offset;
    give_back(f, m);
    if (m->waits ? below(8) != 0 : below(2) == 0) {
        f->taken = f->held == FABRIC_HELD_NOTHING ? below(length / PACKET + 1) * PACKET : 0;
        f->taken = f->taken < length ? f->taken : 0;
        taken_part += f->taken != 0;
        m->seen += f->taken;
        m->done += f->taken;
        return say(m, RX_PAYLOAD, RX_WAIT);
    }
    m->seen += length;
    if (f->held == FABRIC_HELD_NOTHING && below(2) == 0) {
        m->done = m->seen;
        return say(m, RX_PAYLOAD, RX_GO);
    }
    f->held = f->held == FABRIC_HELD_NOTHING ? offset : f->held;
    m->done = f->held;
    return say(m, RX_PAYLOAD, RX_KEPT);
}

static enum rx_step rx_done(struct nic_peer *p, struct fabric_rx *f, enum fabric_status status)
{
    struct message *m = message_of(p, f);
    assert_false(f->behind);
    assert_true(m->met != &met[RX_PAYLOAD][WAIT]);
    give_back(f, m);
    if (f->held != FABRIC_HELD_NOTHING || below(3) == 0) {
        return say(m, RX_DONE, RX_WAIT);
    }
    if (f->sink == RX_PACKETS && status == FABRIC_OK) {
        assert_int_equal(m->seen, m->length);
    }
    cut_ends += status == FABRIC_UNDELIVERABLE;
    end(p, f, m, status);
    return say(m, RX_DONE, RX_GO);
}

static const struct fabric_upcalls upcalls = {.peer_up = peer_up,
                                              .peer_down = peer_down,
                                              .rx_new = rx_new,
                                              .rx_free = rx_free,
                                              .rx_short = rx_short,
                                              .rx_header = rx_header,
                                              .rx_packet = rx_packet,
                                              .rx_done = rx_done};

/* ---- runs ---- */

static void send_one(unsigned from, unsigned to, unsigned class, unsigned i)
{
    struct message *m = &messages[from][to][class][i];
    *m = (struct message){.from = (uint8_t)from,
                          .to = (uint8_t)to,
                          .class = (uint8_t) class,
                          .number = (uint8_t)i,
                          .sent = true,
                          .length = below(4) == 0 ? below(3) : below(LONGEST + 1),
                          .sink = (enum rx_sink)below(3)};
    m->room = below(4) == 0 ? below(m->length + 1) : m->length;
    m->unreadable = m->length != 0 && below(8) == 0;
    for (size_t k = 0; k < m->length; k++) {
        m->payload[k] = (uint8_t)below(256);
    }
    memset(m->place, 0xee, ROOM);
    memcpy(m->tx.header, (uint8_t[]){m->from, m->to, m->class, m->number}, 4);
    m->tx.base = m->unreadable ? (void *)1 : m->payload;
    m->tx.length = m->length;
    struct nic_peer *p = &nics[from].peer[to];
    assert_int_equal(fabric_loop.send(p->fp, (enum fabric_class) class, &m->tx), FABRIC_SENT);
}

static void check_place(const struct message *m)
{
    size_t n = m->ended && m->status == FABRIC_OK && m->sink == RX_DEPOSIT ? m->room : 0;
    assert_memory_equal(m->place, m->payload, n);
    bool any = m->sink == RX_DEPOSIT; /* of one that did not end well some may be there */
    for (size_t i = any ? m->room : 0; i < ROOM && m->sent; i++) {
        assert_int_equal(m->place[i], 0xee);
    }
}

static void open_all(uint64_t seed)
{
    struct reason why;
    assert_int_equal(fault_install(), 0);
    loop_seed(seed);
    number = ~seed;
    for (uint32_t i = 0; i < NICS; i++) {
        struct fabric_setup setup = {
            .nic = &nics[i], .up = &upcalls, .pid = i, .packet_size = PACKET};
        nics[i].lost = false;
        assert_int_equal(fabric_loop.open(&setup, &nics[i].fabric, &setup.pid, &why), 0);
        for (uint32_t k = 0; k < i; k++) {
            assert_int_equal(fabric_loop.connect(nics[i].fabric, 0, k, &why), FABRIC_UP);
        }
    }
}

/* Of what is under way from the first NIC it is noted how it was met. */
static void lose(void)
{
    loop_kill(nics[0].fabric);
    nics[0].lost = true;
    struct message *m = &messages[0][0][0][0];
    for (; m != &messages[1][0][0][0]; m++) {
        if (m->met != NULL && !m->ended) {
            ++*m->met;
        }
    }
}

/* One run; the first NIC is lost before poll `lost`. Returns how many polls there were until all
 * was over. */
static unsigned run(uint64_t seed, unsigned lost)
{
    unsigned polls = 0, sent = 0, quiet = 0;
    open_all(seed);
    for (; quiet < 100; polls++) {
        assert_true(polls < 100000);
        if (polls == lost) {
            lose();
        }
        for (unsigned from = 0; from < NICS && sent < MESSAGES && polls % 2 == 0; from++) {
            for (unsigned to = 0; to < NICS; to++) {
                for (unsigned c = 0; c < FABRIC_CLASSES && from != to && !nics[from].lost; c++) {
                    if (!nics[from].peer[to].down) {
                        send_one(from, to, c, sent);
                    }
                }
            }
        }
        sent += polls % 2 == 0 && sent < MESSAGES;
        bool moved = sent < MESSAGES;
        for (unsigned i = 0; i < NICS; i++) {
            moved |= !nics[i].lost && fabric_loop.poll(nics[i].fabric);
        }
        quiet = moved ? 0 : quiet + 1;
    }
    return polls;
}

/* All ended that was to end. */
static void check(void)
{
    for (unsigned from = 0; from < NICS; from++) {
        for (unsigned to = 0; to < NICS; to++) {
            const struct nic_peer *p = &nics[to].peer[from];
            for (unsigned c = 0; c < FABRIC_CLASSES && from != to; c++) {
                for (unsigned i = 0; i < MESSAGES; i++) {
                    check_place(&messages[from][to][c][i]);
                }
                assert_true(nics[to].lost || p->ended[c] == p->matched[c]);
                assert_true(nics[to].lost || nics[from].lost || p->ended[c] == MESSAGES);
            }
            assert_true(from == to || nics[to].lost || p->down == nics[from].lost);
        }
    }
}

static void close_all(void)
{
    for (unsigned i = 0; i < NICS; i++) {
        nics[i].lost = true; /* nothing more is to be heard */
    }
    for (unsigned i = 0; i < NICS; i++) {
        fabric_loop.close(nics[i].fabric);
    }
    memset(messages, 0, sizeof(messages));
    fault_remove();
}

static void all_arrives(void **state)
{
    for (uint64_t seed = 0; seed < 300; seed++) {
        run(seed, UINT32_MAX);
        check();
        close_all();
    }
}

static void a_peer_is_lost_at_each_step(void **state)
{
    for (uint64_t seed = 0; seed < 60; seed++) {
        unsigned polls = run(seed, UINT32_MAX) - 100;
        close_all();
        for (unsigned lost = 0; lost < polls; lost++) {
            run(seed, lost);
            check();
            close_all();
        }
    }
}

/* After those two: nothing that may happen has not. */
static void every_answer_was_given(void **state)
{
    static const bool possible[PHASES][ANSWERS] = {
        [RX_IDLE] = {[GO] = true, [WAIT] = true, [FIRST] = true, [HEADED] = true},
        [RX_HEADER] = {[GO] = true, [WAIT] = true, [FIRST] = true, [TURN] = true},
        [HEADER_FIRST] = {[GO] = true, [WAIT] = true, [TURN] = true},
        [RX_PAYLOAD] = {[GO] = true, [WAIT] = true, [KEPT] = true},
        [RX_DONE] = {[GO] = true, [WAIT] = true},
    };
    for (unsigned phase = 0; phase < PHASES; phase++) {
        for (unsigned a = 0; a < ANSWERS; a++) {
            bool stays = phase != RX_IDLE && (phase != RX_DONE || a != GO);
            assert_true((given[phase][a] > 100) == possible[phase][a]);
            assert_true((met[phase][a] > 10) == (possible[phase][a] && stays));
        }
    }
    assert_true(torn_headers > 50 && cut_ends > 100 && kept_back > 100 && taken_part > 100);
    assert_true(resumed > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_arrives),
        cmocka_unit_test(a_peer_is_lost_at_each_step),
        cmocka_unit_test(every_answer_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
