/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of a simulated job: memory, network, thread, and what it came to. */
#include "base/sys.h"
#include "spans.h"
#include "stats.h"
#include "traffic.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static size_t places_of(const struct coordinator_setup *setup)
{
    return setup->ranks * (1 + (size_t)setup->processes);
}

static struct sim_segment *make_segment(struct coordinator *c)
{
    size_t places = places_of(&c->setup);
    size_t order_at = sizeof(struct sim_segment) + places * sizeof(struct sim_rank);
    size_t spans_at = (order_at + places * sizeof(uint32_t) + 63) / 64 * 64;
    size_t size = spans_at + c->setup.ranks * c->setup.spans * sizeof(struct sim_span);
    c->fd = memfd_create("pinwheel-sim", MFD_CLOEXEC);
    if (c->fd < 0 || ftruncate(c->fd, (off_t)size) != 0) {
        return NULL;
    }
    struct sim_segment *s = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    if (s == MAP_FAILED) {
        return NULL;
    }
    s->size = size;
    s->order_at = order_at;
    s->spans_at = spans_at;
    s->spans = c->setup.spans;
    s->ranks = c->setup.ranks;
    s->processes = c->setup.processes;
    s->used = c->setup.ranks;
    s->packet = c->setup.net.packet;
    s->lookahead = 2 * c->setup.net.cable + c->setup.net.hop;
    s->machine = c->setup.machine;
    for (size_t i = 0; i < c->setup.ranks; i++) { /* a child's is set when it is taken */
        s->rank[i].taken = 1;
        s->rank[i].look_at = s->rank[i].fence = SIM_NEVER;
        s->rank[i].opened = s->rank[i].closed = SIM_NEVER;
    }
    s->magic = SIM_MAGIC;
    snprintf(c->path, sizeof(c->path), "/proc/%d/fd/%d", (int)getpid(), c->fd);
    return s;
}

static bool make_network(struct coordinator *c)
{
    char error[NET_ERROR];
    struct net_hooks own = traffic_hooks;
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

static void free_coordinator(struct coordinator *c)
{
    for (size_t i = 0; c->players != NULL && i < places_of(&c->setup); i++) {
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
    free(c->due);
    free(c->out.rank);
    free(c->sent);
    free(c->free);
    free(c->departing);
    free(c);
}

/* Makes the players, and room for each in every list: twice in the last one, which also has those
 * that end when their turn is over. */
static bool make_players(struct coordinator *c)
{
    size_t n = places_of(&c->setup);
    uint32_t *lists = calloc(4 * n, sizeof(*lists));
    c->players = calloc(n, sizeof(*c->players));
    c->out.rank = lists;
    if (lists == NULL || c->players == NULL) {
        fprintf(stderr, "pinwheel sim: no memory for %u ranks\n", c->setup.ranks);
        return false;
    }
    c->batch.rank = lists + n;
    c->back.rank = lists + 2 * n;
    for (size_t i = 0; i < n; i++) {
        c->players[i].due = c->players[i].dies = SIM_NEVER;
        c->players[i].gone = i >= c->setup.ranks;
    }
    const struct fault_plan *f = &c->setup.faults;
    for (size_t i = 0; i < f->deaths; i++) {
        c->players[f->death[i].rank].dies = f->death[i].time;
    }
    return true;
}

struct coordinator *coordinator_start(const struct coordinator_setup *setup)
{
    struct coordinator *c = calloc(1, sizeof(*c));
    sigset_t all, before;
    if (c == NULL) {
        return NULL;
    }
    c->fd = -1;
    c->setup = *setup;
    if (!make_players(c) || !make_network(c)) {
        free_coordinator(c);
        return NULL;
    }
    c->segment = make_segment(c);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int rc = c->segment != NULL ? pthread_create(&c->thread, NULL, coordinate, c) : ENOMEM;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        fprintf(stderr, "pinwheel sim: cannot start the coordinator of %u ranks: %s\n",
                setup->ranks, strerror(rc));
        free_coordinator(c);
        return NULL;
    }
    return c;
}

const char *coordinator_path(const struct coordinator *c)
{
    return c->path;
}

void coordinator_started(void *coordinator, int rank, int pid)
{
    struct coordinator *c = coordinator;
    atomic_store(&c->players[rank].pid, pid);
}

bool coordinator_killed(void *coordinator, int rank)
{
    struct coordinator *c = coordinator;
    return atomic_load(&c->players[rank].killed);
}

void coordinator_exited(void *coordinator, int rank)
{
    struct coordinator *c = coordinator;
    atomic_store(&c->players[rank].exited, true);
    atomic_fetch_add(&c->exits, 1);
    atomic_fetch_add(&c->segment->came, 1);
    futex_wake(&c->segment->came);
}

static void sum_up(struct coordinator *c)
{
    struct coordinator_result *r = &c->result;
    for (uint32_t i = 0; i < places(c); i++) {
        const struct sim_rank *rank = rank_of(c, i);
        const struct sim_counts *n = &rank->counts;
        uint64_t hpus = sim_hpus_taken(n);
        r->nics |= rank->opened != SIM_NEVER;
        r->end = rank->now > r->end ? rank->now : r->end;
        if (rank->outside_of[0] != '\0' && r->outside++ == 0) {
            r->outside_rank = sim_host(c->segment, i);
            snprintf(r->outside_of, sizeof(r->outside_of), "%.31s", rank->outside_of);
        }
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

void coordinator_end(struct coordinator *c, struct coordinator_result *result)
{
    atomic_store(&c->stop, true);
    atomic_fetch_add(&c->segment->came, 1);
    futex_wake(&c->segment->came);
    pthread_join(c->thread, NULL);
    sum_up(c);
    c->result.stats = stats_take(c);
    c->result.spans = c->setup.spans != 0 ? spans_take(c) : NULL;
    *result = c->result;
    free_coordinator(c);
}
