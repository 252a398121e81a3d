/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loop: a fabric without a network. Messages go from NIC to NIC of one process through lists,
 * as the worst network would bring them:
 *
 *   - The header of a message and each piece of its payload have a delay of their own, so pieces
 *     of one message, messages of several peers, and classes pass each other. Headers of one peer
 *     and class never do.
 *   - Payload is cut at any byte. What the NIC has given back is overwritten at once.
 *   - Some messages find rx_short, though they are here whole, others do not.
 *   - A peer may be lost between any two polls (loop_kill). What has not arrived never will; its
 *     messages are cut, or the network says of each that no more will come.
 *
 * It is a source of the receive machine (fabric/rx_machine.h), and what a new fabric has to do.
 */
#include "loop.h"

#include "../splitmix.h"
#include "base/nic_copy.h"
#include "fabric/rx_machine.h"

#include <stdlib.h>
#include <string.h>

enum { PIECES = 6, DELAY_MOST = 12, FABRICS = 8 }; /* a fabric's PID is its place in `all` */

struct message {
    struct list link;
    struct rx_machine m;
    struct channel *channel;
    uint8_t header[FABRIC_HEADER];
    uint64_t due; /* when its header arrives, and when each piece does, up to the byte `end` */
    struct {
        uint64_t end, due;
    } piece[PIECES];
    enum fabric_status status;
    bool begun, torn; /* torn: no more will come, and its network says so */
    uint8_t *payload;
    uint64_t length, given_back;
};

struct channel {
    struct fabric_rx *rx; /* the one that lasts */
    bool lent;
    struct list messages, ended; /* in the order in which they were sent; over, to be freed */
    uint64_t number, last_due;
};

struct fabric_peer {
    struct list link;
    struct fabric *fabric;
    struct fabric_peer *other; /* the same connection at its other end; NULL: that one is gone */
    struct rx_source source;
    struct channel channel[FABRIC_CLASSES];
    bool lost, says; /* says: its network tells of each message that is torn */
};

struct fabric {
    struct list peers;
    struct fabric_setup setup;
};

static struct fabric *all[FABRICS];
static uint64_t now, number;

static uint64_t below(uint64_t n)
{
    return splitmix_below(&number, n);
}

void loop_seed(uint64_t seed)
{
    number = seed;
}

/* ---- a channel, as a source ---- */

static struct message *message_at(struct list *l)
{
    return container_of(l, struct message, link);
}

static struct message *message_of(struct rx_machine *m)
{
    return container_of(m, struct message, m);
}

/* Bytes that have arrived and have none before them that have not. */
static uint64_t arrived(const struct message *g)
{
    uint64_t end = 0;
    for (unsigned i = 0; i < PIECES && end < g->length && g->piece[i].due <= now; i++) {
        end = g->piece[i].end;
    }
    return end;
}

static struct rx_span loop_here(struct rx_machine *m, bool packets)
{
    struct message *g = message_of(m);
    uint64_t n = arrived(g) - m->moved;
    if (packets && n < g->length - m->moved) {
        n -= n % m->source->packet_size;
    }
    m->status = n == 0 && g->torn ? FABRIC_UNDELIVERABLE : m->status;
    return (struct rx_span){n != 0 ? g->payload + m->moved : NULL, n};
}

/* Overwrites what is given back up to the byte `end`; false: nothing is. */
static bool give_back(struct message *g, uint64_t end)
{
    bool any = end > g->given_back;
    memset(g->payload + g->given_back, 0xdd, any ? end - g->given_back : 0);
    g->given_back = any ? end : g->given_back;
    return any;
}

static bool loop_settle(struct rx_machine *m)
{
    return give_back(message_of(m), m->rx->held < m->moved ? m->rx->held : m->moved);
}

static void loop_pass(struct rx_machine *m, uint64_t n, bool kept)
{
    (void)(kept ? loop_settle(m) : give_back(message_of(m), m->moved));
}

static void leave_channel(struct message *g)
{
    struct channel *c = g->channel;
    c->lent &= g->m.rx != c->rx;
    if (g->begun && g->m.rx != c->rx) {
        g->m.source->up->rx_free(g->m.source->np, g->m.rx);
    }
    list_remove(&g->link);
    list_push_back(&c->ended, &g->link);
}

static void loop_over(struct rx_machine *m)
{
    struct list *messages = &message_of(m)->channel->messages;
    leave_channel(message_of(m));
    for (struct list *l = messages->next; l != messages; l = l->next) {
        message_at(l)->m.turn = false;
        if (m->status == FABRIC_UNDELIVERABLE) {
            message_at(l)->due = UINT64_MAX; /* what has not begun never will */
            rx_machine_sever(&message_at(l)->m);
        }
    }
}

static const struct rx_source_ops loop_source = {loop_here, loop_pass, loop_settle, loop_over};

/* ---- what arrives ---- */

static void free_ended(struct channel *c)
{
    for (struct list *l; (l = list_pop_front(&c->ended)) != NULL;) {
        free(message_at(l)->payload);
        free(message_at(l));
    }
}

/* Begins with a message; true if it is over with that. */
static bool begin(struct fabric_peer *p, struct message *g, enum fabric_class class, bool first)
{
    struct channel *c = g->channel;
    struct fabric_rx *rx = c->lent ? p->source.up->rx_new(p->source.np, class) : c->rx;
    g->m = (struct rx_machine){.source = &p->source, .status = g->status, .rx = rx};
    g->begun = c->lent = true;
    rx->number = c->number++;
    rx->behind = !first;
    rx->length = g->length;
    memcpy(rx->header, g->header, FABRIC_HEADER);
    enum rx_step step = RX_FIRST;
    if (first && g->status == FABRIC_OK && g->length <= p->source.packet_size &&
        arrived(g) == g->length && below(4) != 0) {
        step = p->source.up->rx_short(p->source.np, rx, g->payload);
    }
    if (rx_machine_short(&g->m, step)) {
        return false;
    }
    leave_channel(g);
    return true;
}

static bool take(struct fabric_peer *p, enum fabric_class class)
{
    struct channel *c = &p->channel[class];
    bool moved = false;
    for (struct list *l = c->messages.next; l != &c->messages;) {
        struct message *g = message_at(l);
        bool first = l == c->messages.next, over = false;
        if (!g->begun) {
            if (g->due > now) {
                break;
            }
            over = begin(p, g, class, first);
            moved = true;
        }
        if (!over && (first || (!g->m.turn && g->m.phase != RX_DONE))) {
            g->m.rx->behind = !first;
            moved |= rx_machine_go_on(&g->m);
            over = g->m.phase == RX_IDLE;
        }
        if (!over && !g->m.rx->matched) {
            break;
        }
        l = over ? c->messages.next : l->next;
    }
    free_ended(c);
    return moved;
}

/* Ends what has begun, in order; true if none of it is left. */
static bool cut(struct fabric_peer *p, enum fabric_class class)
{
    struct list *messages = &p->channel[class].messages;
    while (!list_empty(messages) && message_at(messages->next)->begun) {
        if (p->says || !rx_machine_cut(&message_at(messages->next)->m)) {
            return false;
        }
    }
    return true;
}

/* ---- connections ---- */

static void free_peer(struct fabric_peer *p)
{
    for (struct channel *c = p->channel; c != p->channel + FABRIC_CLASSES; c++) {
        while (!list_empty(&c->messages)) {
            leave_channel(message_at(c->messages.next));
        }
        free_ended(c);
        p->source.up->rx_free(p->source.np, c->rx);
    }
    p->source.up->peer_down(p->fabric->setup.nic, p->source.np);
    if (p->other != NULL) {
        p->other->other = NULL;
    }
    list_remove(&p->link);
    free(p);
}

/* Of what an end has sent only what has arrived counts from now on. */
void loop_kill(struct fabric *f)
{
    for (struct list *l = f->peers.next; l != &f->peers; l = l->next) {
        struct fabric_peer *p = container_of(l, struct fabric_peer, link)->other;
        if (p == NULL || p->lost) {
            continue;
        }
        p->lost = true;
        p->says = below(2) == 0;
        for (struct channel *c = p->channel; c != p->channel + FABRIC_CLASSES; c++) {
            for (struct list *m = c->messages.next; m != &c->messages; m = m->next) {
                struct message *g = message_at(m);
                g->due = g->due > now ? UINT64_MAX : 0;
                g->torn = p->says && arrived(g) != g->length;
                for (unsigned i = 0; i < PIECES; i++) {
                    g->piece[i].due = g->piece[i].due > now ? UINT64_MAX : 0;
                }
            }
        }
    }
}

static struct fabric_peer *new_peer(struct fabric *f, const struct fabric_setup *s)
{
    struct fabric_peer *p = calloc(1, sizeof(*p));
    p->fabric = f;
    struct fabric_address a = {s->nid, s->pid, s->incarnation, 0, false, &fabric_loop};
    p->source = (struct rx_source){&loop_source, f->setup.up, NULL, f->setup.packet_size};
    list_push_back(&f->peers, &p->link);
    p->source.np = f->setup.up->peer_up(f->setup.nic, &a, p);
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        list_init(&p->channel[c].messages);
        list_init(&p->channel[c].ended);
        p->channel[c].rx = f->setup.up->rx_new(p->source.np, (enum fabric_class)c);
    }
    return p;
}

static enum fabric_connect loop_connect(struct fabric *f, uint32_t nid, uint32_t pid,
                                        struct reason *why)
{
    struct fabric_peer *a = new_peer(f, &all[pid]->setup);
    a->other = new_peer(all[pid], &f->setup);
    a->other->other = a;
    return FABRIC_UP;
}

static int loop_open(const struct fabric_setup *setup, struct fabric **f, uint32_t *pid,
                     struct reason *why)
{
    *f = all[setup->pid] = calloc(1, sizeof(**f));
    list_init(&(*f)->peers);
    (*f)->setup = *setup;
    *pid = setup->pid;
    return 0;
}

static void loop_close(struct fabric *f)
{
    loop_kill(f);
    while (!list_empty(&f->peers)) {
        free_peer(container_of(f->peers.next, struct fabric_peer, link));
    }
    free(f);
}

/* ---- what leaves ---- */

static enum fabric_send loop_send(struct fabric_peer *p, enum fabric_class class,
                                  struct fabric_tx *tx)
{
    if (p->other == NULL || p->lost) {
        return FABRIC_SENT; /* nobody will know */
    }
    struct message *g = calloc(1, sizeof(*g));
    struct channel *c = g->channel = &p->other->channel[class];
    g->payload = aligned_alloc(64, (tx->length | 63) + 1);
    int rc = nic_copy(g->payload, tx->base, tx->length);
    g->status = tx->fault = rc == 0 ? FABRIC_OK : FABRIC_SEGV;
    g->length = rc == 0 ? tx->length : 0;
    memcpy(g->header, tx->header, FABRIC_HEADER);
    uint64_t due = now + below(DELAY_MOST), end = 0;
    g->due = c->last_due = due > c->last_due ? due : c->last_due;
    for (unsigned i = 0; end < g->length; i++) {
        end += i == PIECES - 1 || below(4) == 0 ? g->length - end : 1 + below(g->length - end);
        g->piece[i].end = end;
        g->piece[i].due = now + below(DELAY_MOST);
    }
    list_push_back(&c->messages, &g->link);
    return FABRIC_SENT;
}

static bool loop_poll(struct fabric *f)
{
    bool any = false;
    now++;
    for (struct list *l = f->peers.next, *next; l != &f->peers; l = next) {
        struct fabric_peer *p = container_of(l, struct fabric_peer, link);
        bool moved = take(p, FABRIC_RESPONSE);
        moved |= take(p, FABRIC_ASK);
        moved |= take(p, FABRIC_REQUEST);
        next = l->next;
        any |= moved;
        if (p->lost && !moved && cut(p, FABRIC_RESPONSE) && cut(p, FABRIC_ASK) &&
            cut(p, FABRIC_REQUEST)) {
            free_peer(p);
        }
    }
    return any;
}

const struct fabric_ops fabric_loop = {.name = "loop",
                                       .open = loop_open,
                                       .close = loop_close,
                                       .connect = loop_connect,
                                       .send = loop_send,
                                       .poll = loop_poll};
