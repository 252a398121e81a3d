/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conductor. Ranks run in windows: all that may happen before the end of a window depends on
 * what is known when it begins, so that it does not matter in which order, or at once, they run.
 *
 *      collect what ranks have sent ─► network, up to the first time at which a rank may run
 *           ▲                                      │ packets, with the time of their arrival
 *           └──── all are idle again ◄── ranks run until their `until` ◄┘
 *
 * Rank r runs until the least of
 *   - the time at which another rank may run, and the least way between hosts more: what that one
 *     sends comes no sooner;
 *   - the time of the network's next event, and a cable more: a packet is known to arrive when it
 *     takes the last cable;
 *   - the time at which it sends, and the least way more, for an answer (fabric/sim/rank.c).
 *
 * Messages enter the network in the order of (time, rank, serial).
 */
#include "conductor.h"

#include "base/array.h"
#include "base/heap.h"
#include "base/sys.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SILENCE_S = 10 };

/* A packet that is to come to a rank. */
struct coming {
    uint64_t time, serial;
    struct sim_packet *packet;
};

static bool coming_before(const struct coming *a, const struct coming *b, const void *of)
{
    return a->time != b->time ? a->time < b->time : a->serial < b->serial;
}

HEAP_OF(coming, struct coming, 4, coming_before)

struct player {
    struct coming *coming; /* a heap */
    size_t count, capacity;
    _Atomic bool exited;
    bool gone; /* nothing happens there any more */
};

struct conductor {
    struct sim_segment *segment;
    char path[64];
    int fd;
    pthread_t thread;
    _Atomic bool stop;
    struct conductor_setup setup;
    struct net_graph graph;
    struct net *net;
    struct player *players;
    struct sim_packet **sent; /* in the network, or about to be; by net_message.ref */
    size_t sent_count, sent_capacity;
    uint32_t *free; /* places of `sent` */
    size_t free_count, free_capacity;
    struct departing {
        uint64_t time;
        uint32_t rank, number;
        struct sim_packet *packet;
    } * departing;
    size_t departing_count, departing_capacity;
    uint64_t serial;
    bool memory_short;
    struct conductor_result result;
};

static struct sim_rank *rank_of(const struct conductor *c, uint32_t rank)
{
    return &c->segment->rank[rank];
}

/* ---- packets ---- */

/* A packet comes to its rank at a time. */
static void announce(struct conductor *c, struct sim_packet *p, uint64_t time)
{
    struct player *to = &c->players[p->to];
    p->time = time;
    if (!ARRAY_ROOM(to->coming, to->count, to->capacity, 16)) {
        c->memory_short = true;
        free(p);
        return;
    }
    struct coming item = {time, c->serial++, p};
    coming_rise(to->coming, to->count++, &item, NULL);
}

/* The network: a packet takes a channel. The last one leads to its host. */
static void taken(void *conductor, uint32_t ref, uint32_t channel, uint64_t now, uint64_t length)
{
    struct conductor *c = conductor;
    if (channel < 2 * c->graph.hosts && channel % 2 == 1) {
        struct sim_packet *p = c->sent[ref];
        uint64_t tail = sim_bytes_ps(p->bytes > 1 ? p->bytes - 1 : 0, c->setup.net.byte);
        c->sent[ref] = NULL;
        announce(c, p, now + c->setup.net.cable + tail);
    }
}

static void left(void *conductor, uint32_t ref, uint64_t time, uint64_t waited)
{
}

static void delivered(void *conductor, uint32_t ref, const struct net_arrival *a, uint64_t now)
{
    struct conductor *c = conductor;
    if (ARRAY_ROOM(c->free, c->free_count, c->free_capacity, 64)) {
        c->free[c->free_count++] = ref;
    }
}

static bool keep(struct conductor *c, struct sim_packet *p, uint32_t *ref)
{
    if (c->free_count != 0) {
        *ref = c->free[--c->free_count];
    } else if (ARRAY_ROOM(c->sent, c->sent_count, c->sent_capacity, 64)) {
        *ref = (uint32_t)c->sent_count++;
    } else {
        return false;
    }
    c->sent[*ref] = p;
    return true;
}

/* Puts a packet into the network; one of a rank to itself goes as far as to the next switch. */
static void enter(struct conductor *c, struct sim_packet *p)
{
    uint64_t bytes = p->bytes != 0 ? p->bytes : 1;
    uint32_t ref;
    if (p->from == p->to) {
        announce(c, p,
                 p->time + c->segment->lookahead + sim_bytes_ps(bytes - 1, c->setup.net.byte));
        return;
    }
    if (!keep(c, p, &ref)) {
        c->memory_short = true;
        free(p);
        return;
    }
    struct net_message m = {.from = p->from,
                            .to = p->to,
                            .bytes = bytes,
                            .time = p->time,
                            .pace = c->setup.net.byte,
                            .ordered = true,
                            .ref = ref};
    c->memory_short |= net_send(c->net, &m) != 0;
}

static int by_time(const void *a, const void *b)
{
    const struct departing *x = a, *y = b;
    if (x->time != y->time) {
        return x->time < y->time ? -1 : 1;
    }
    if (x->rank != y->rank) {
        return x->rank < y->rank ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Takes what an idle rank has sent. */
static void take_sent(struct conductor *c, uint32_t rank)
{
    struct sim_rank *r = rank_of(c, rank);
    for (uint32_t i = 0; i < r->out_count; i++) {
        const struct sim_packet *out = &r->out[i];
        size_t size = offsetof(struct sim_packet, data) + out->bytes;
        struct sim_packet *p = malloc(size);
        if (p == NULL || out->to >= c->setup.ranks || out->bytes > SIM_PACKET ||
            !ARRAY_ROOM(c->departing, c->departing_count, c->departing_capacity, 64)) {
            c->memory_short = true;
            free(p);
            continue;
        }
        memcpy(p, out, size);
        p->from = rank;
        c->departing[c->departing_count++] = (struct departing){p->time, rank, i, p};
    }
    r->out_count = 0;
}

static void collect(struct conductor *c)
{
    for (uint32_t rank = 0; rank < c->setup.ranks; rank++) {
        take_sent(c, rank);
    }
    qsort(c->departing, c->departing_count, sizeof(*c->departing), by_time);
    for (size_t i = 0; i < c->departing_count; i++) {
        enter(c, c->departing[i].packet);
    }
    c->departing_count = 0;
}

/* ---- turns ---- */

/* A rank that has ended has no NIC any more. */
static void note_end(struct conductor *c, uint32_t rank)
{
    struct sim_rank *r = rank_of(c, rank);
    struct player *p = &c->players[rank];
    if (!p->gone) {
        p->gone = true;
        r->closed = r->closed < r->now ? r->closed : r->now;
        r->next = SIM_NEVER;
        r->fence = SIM_NEVER;
    }
}

static bool is_idle(struct conductor *c, uint32_t rank)
{
    struct sim_rank *r = rank_of(c, rank);
    struct player *p = &c->players[rank];
    if (atomic_load(&p->exited) || atomic_load(&r->left) != 0) {
        note_end(c, rank);
        return true;
    }
    return atomic_load(&r->pid) != 0 && atomic_load(&r->turn) == SIM_IDLE;
}

/* Says that a rank holds all others up. */
static void tell_silence(struct conductor *c, uint32_t rank)
{
    const struct sim_rank *r = rank_of(c, rank);
    if (atomic_load(&r->pid) == 0) {
        fprintf(stderr,
                "pinwheel sim: rank %u has not called PtlNIInit or pinwheel_job_barrier for %d s; "
                "the others wait for it\n",
                rank, SILENCE_S);
    } else {
        fprintf(stderr,
                "pinwheel sim: rank %u (process %u) computes, or waits outside of Portals, since "
                "%d s; virtual time stands at %.3f us\n",
                rank, r->pid, SILENCE_S, (double)r->now / 1e6);
    }
}

/* Waits until no rank runs; false: the job is over. */
static bool await_all(struct conductor *c)
{
    int64_t since = clock_ns();
    bool told = false;
    for (uint32_t rank = 0; rank < c->setup.ranks;) {
        uint32_t came = atomic_load(&c->segment->came);
        if (atomic_load(&c->stop)) {
            return false;
        }
        if (is_idle(c, rank)) {
            rank++;
            continue;
        }
        futex_wait(&c->segment->came, came, 1000000000);
        if (!told && clock_ns() - since > (int64_t)SILENCE_S * 1000000000) {
            told = true;
            tell_silence(c, rank);
        }
    }
    return true;
}

static uint64_t next_of(const struct conductor *c, uint32_t rank)
{
    const struct player *p = &c->players[rank];
    uint64_t next = rank_of(c, rank)->next;
    return p->count != 0 && p->coming[0].time < next ? p->coming[0].time : next;
}

/* When a rank that has ended is to get something: its sender is told instead. */
static void refuse(struct conductor *c, struct sim_packet *p)
{
    c->result.refused++;
    if (p->kind == SIM_REFUSED || c->players[p->from].gone) {
        free(p);
        return;
    }
    uint32_t to = p->from;
    p->kind = SIM_REFUSED;
    p->from = p->to;
    p->to = to;
    announce(c, p, p->time + c->segment->lookahead);
}

static struct sim_packet *pop(struct player *p)
{
    struct sim_packet *first = p->coming[0].packet;
    if (--p->count != 0) {
        struct coming last = p->coming[p->count];
        coming_sink(p->coming, p->count, &last, NULL);
    }
    return first;
}

/* Hands a rank what comes to it before `until`; returns until when it has all. */
static uint64_t hand_over(struct conductor *c, uint32_t rank, uint64_t until)
{
    struct sim_rank *r = rank_of(c, rank);
    struct player *p = &c->players[rank];
    while (p->count != 0 && p->coming[0].time < until) {
        if (r->in_count == SIM_PACKETS) {
            return p->coming[0].time;
        }
        struct sim_packet *packet = pop(p);
        if (p->gone || packet->time >= r->closed) {
            refuse(c, packet);
            continue;
        }
        memcpy(&r->in[r->in_count++], packet, offsetof(struct sim_packet, data) + packet->bytes);
        free(packet);
    }
    return until;
}

static void grant(struct conductor *c, uint32_t rank, uint64_t until)
{
    struct sim_rank *r = rank_of(c, rank);
    uint64_t next = next_of(c, rank);
    if (next >= until) {
        return;
    }
    r->until = hand_over(c, rank, until);
    if (c->players[rank].gone || (r->in_count == 0 && r->next >= r->until)) {
        return;
    }
    atomic_store(&r->turn, SIM_RUN);
    futex_wake(&r->turn);
}

/* All ranks that are left are in a fence: it is over when the last one is there. */
static bool end_fence(struct conductor *c)
{
    uint64_t over = 0;
    bool any = false;
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        const struct sim_rank *r = rank_of(c, i);
        if (c->players[i].gone) {
            continue;
        }
        if (r->fence == SIM_NEVER) {
            return false;
        }
        any = true;
        over = r->now + c->segment->lookahead > over ? r->now + c->segment->lookahead : over;
    }
    for (uint32_t i = 0; any && i < c->setup.ranks; i++) {
        struct sim_rank *r = rank_of(c, i);
        if (!c->players[i].gone) {
            r->fence = SIM_NEVER;
            r->fence_over = over;
            r->fences++;
            r->next = over;
        }
    }
    return any;
}

/* The least two times at which ranks may run, of different ranks. */
struct least {
    uint64_t first, second;
    uint32_t rank; /* of the first */
};

static struct least find_least(const struct conductor *c)
{
    struct least l = {SIM_NEVER, SIM_NEVER, 0};
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        uint64_t next = next_of(c, i);
        if (next < l.first) {
            l = (struct least){next, l.first, i};
        } else if (next < l.second) {
            l.second = next;
        }
    }
    return l;
}

/* Lets all happen in the network that no rank can change any more. */
static bool step_network(struct conductor *c, struct least *l, uint64_t *event)
{
    *l = find_least(c);
    while (net_next(c->net, event) && *event < l->first) {
        if (net_step(c->net) != 0) {
            c->memory_short = true;
            return false;
        }
        *l = find_least(c);
    }
    if (!net_next(c->net, event)) {
        *event = SIM_NEVER;
    }
    return true;
}

static uint64_t later(uint64_t time, uint64_t by)
{
    return time > SIM_NEVER - by ? SIM_NEVER : time + by;
}

static const char *const waits[] = {[SIM_COMPUTES] = "computes",
                                    [SIM_WAITS] = "waits for an event or a counter",
                                    [SIM_POLLS] = "polls",
                                    [SIM_IN_FENCE] = "is in a barrier"};

/* Nothing will ever happen: says who waits, and ends all. */
static void end_stuck(struct conductor *c)
{
    c->result.stuck = true;
    fprintf(stderr, "pinwheel sim: nothing will happen any more, and ranks wait:\n");
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        const struct sim_rank *r = rank_of(c, i);
        if (!c->players[i].gone) {
            fprintf(stderr, "pinwheel sim:   rank %u %s since %.5f us\n", i, waits[r->waits & 3],
                    (double)r->now / 1e6);
        }
    }
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        if (!c->players[i].gone) {
            kill((pid_t)rank_of(c, i)->pid, SIGKILL);
        }
    }
}

/* Whether all ranks that are left only look at nothing, for long, or wait for ever. */
static bool only_looks(const struct conductor *c, uint64_t event)
{
    bool any = false;
    for (uint32_t i = 0; event == SIM_NEVER && i < c->setup.ranks; i++) {
        const struct sim_rank *r = rank_of(c, i);
        bool looks = r->waits == SIM_POLLS && r->silence >= SIM_SILENCE;
        if (c->players[i].count != 0 || (!c->players[i].gone && r->next != SIM_NEVER && !looks)) {
            return false;
        }
        any |= looks;
    }
    return any;
}

/* One window; false: all is over. */
static bool run_window(struct conductor *c)
{
    struct least l;
    uint64_t event;
    collect(c);
    if (!step_network(c, &l, &event) || c->memory_short) {
        return false;
    }
    if (only_looks(c, event)) {
        end_stuck(c);
        return false;
    }
    if (l.first == SIM_NEVER) {
        bool alive = false;
        for (uint32_t i = 0; i < c->setup.ranks; i++) {
            alive |= !c->players[i].gone;
        }
        if (alive && !end_fence(c)) {
            end_stuck(c);
            return false;
        }
        return alive;
    }
    uint64_t cable = later(event, c->setup.net.cable);
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        uint64_t other = later(i == l.rank ? l.second : l.first, c->segment->lookahead);
        grant(c, i, other < cable ? other : cable);
    }
    return true;
}

static void *conduct(void *conductor)
{
    struct conductor *c = conductor;
    while (await_all(c) && run_window(c)) {
    }
    if (c->memory_short) {
        c->result.failed = true;
        fprintf(stderr, net_overflow(c->net)
                            ? "pinwheel sim: a time passes 2^63 - 1 ps, 106 days: the job ends\n"
                            : "pinwheel sim: no memory for the packets of the network\n");
        for (uint32_t i = 0; i < c->setup.ranks; i++) {
            kill((pid_t)rank_of(c, i)->pid, SIGKILL);
        }
    }
    return NULL;
}

/* ---- the run ---- */

static struct sim_segment *make_segment(struct conductor *c)
{
    size_t size = sizeof(struct sim_segment) + c->setup.ranks * sizeof(struct sim_rank);
    c->fd = memfd_create("pinwheel-sim", MFD_CLOEXEC);
    if (c->fd < 0 || ftruncate(c->fd, (off_t)size) != 0) {
        return NULL;
    }
    struct sim_segment *s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    if (s == MAP_FAILED) {
        return NULL;
    }
    s->size = size;
    s->ranks = c->setup.ranks;
    s->packet = c->setup.net.packet;
    s->lookahead = 2 * c->setup.net.cable + c->setup.net.hop;
    s->machine = c->setup.machine;
    for (uint32_t i = 0; i < s->ranks; i++) {
        s->rank[i].fence = s->rank[i].opened = s->rank[i].closed = SIM_NEVER;
    }
    s->magic = SIM_MAGIC;
    snprintf(c->path, sizeof(c->path), "/proc/%d/fd/%d", (int)getpid(), c->fd);
    return s;
}

static bool make_network(struct conductor *c)
{
    char error[NET_ERROR];
    static const struct net_hooks hooks = {.left = left, .deliver = delivered, .taken = taken};
    struct net_hooks own = hooks;
    own.context = c;
    if (net_graph_open(&c->graph, &c->setup.spec, c->setup.ranks, error) != 0) {
        fprintf(stderr, "pinwheel sim: --network %s\n", error);
        return false;
    }
    c->net = net_open(&c->graph, &c->setup.net, &own);
    if (c->net == NULL) {
        fprintf(stderr, "pinwheel sim: no memory for the network\n");
    }
    return c->net != NULL;
}

static void free_conductor(struct conductor *c)
{
    for (uint32_t i = 0; c->players != NULL && i < c->setup.ranks; i++) {
        for (size_t k = 0; k < c->players[i].count; k++) {
            free(c->players[i].coming[k].packet);
        }
        free(c->players[i].coming);
    }
    for (size_t i = 0; i < c->sent_count; i++) {
        free(c->sent[i]);
    }
    if (c->net != NULL) {
        net_close(c->net);
    }
    net_graph_close(&c->graph);
    if (c->segment != NULL) {
        munmap(c->segment, c->segment->size);
    }
    if (c->fd >= 0) {
        close(c->fd);
    }
    free(c->players);
    free(c->sent);
    free(c->free);
    free(c->departing);
    free(c);
}

struct conductor *conductor_start(const struct conductor_setup *setup)
{
    struct conductor *c = calloc(1, sizeof(*c));
    sigset_t all, before;
    if (c == NULL) {
        return NULL;
    }
    c->fd = -1;
    c->setup = *setup;
    c->players = calloc(setup->ranks, sizeof(*c->players));
    if (!make_network(c)) {
        free_conductor(c);
        return NULL;
    }
    c->segment = make_segment(c);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int rc = c->players != NULL && c->segment != NULL ? pthread_create(&c->thread, NULL, conduct, c)
                                                      : ENOMEM;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        fprintf(stderr, "pinwheel sim: cannot start the conductor of %u ranks: %s\n", setup->ranks,
                strerror(rc));
        free_conductor(c);
        return NULL;
    }
    return c;
}

const char *conductor_path(const struct conductor *c)
{
    return c->path;
}

void conductor_exited(void *conductor, int rank)
{
    struct conductor *c = conductor;
    atomic_store(&c->players[rank].exited, true);
    atomic_fetch_add(&c->segment->came, 1);
    futex_wake(&c->segment->came);
}

static void sum_up(struct conductor *c)
{
    struct conductor_result *r = &c->result;
    for (uint32_t i = 0; i < c->setup.ranks; i++) {
        const struct sim_rank *rank = rank_of(c, i);
        const struct sim_counts *n = &rank->counts;
        uint64_t hpus = 0;
        for (unsigned k = 0; k < SIM_HPUS; k++) {
            hpus += n->hpu[k];
        }
        r->end = rank->now > r->end ? rank->now : r->end;
        r->counts.messages += n->messages;
        r->counts.packets += n->packets;
        r->counts.bytes += n->bytes;
        r->counts.handlers += n->handlers;
        if (n->egress > r->egress) {
            r->egress = n->egress;
            r->egress_rank = i;
        }
        if (n->dma > r->dma) {
            r->dma = n->dma;
            r->dma_rank = i;
        }
        if (hpus > r->hpus) {
            r->hpus = hpus;
            r->hpus_rank = i;
        }
    }
    for (uint32_t i = 0; i < c->graph.channels; i++) {
        if (net_busy(c->net, i) > r->channel) {
            r->channel = net_busy(c->net, i);
            r->channel_number = i;
        }
    }
}

void conductor_end(struct conductor *c, struct conductor_result *result)
{
    atomic_store(&c->stop, true);
    atomic_fetch_add(&c->segment->came, 1);
    futex_wake(&c->segment->came);
    pthread_join(c->thread, NULL);
    sum_up(c);
    *result = c->result;
    free_conductor(c);
}
