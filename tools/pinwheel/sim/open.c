/* SPDX-License-Identifier: BSD-3-Clause */
/* The beginning and the end of a simulated job: memory, network, thread, and what it came to. */
#include "base/sys.h"
#include "hot.h"
#include "shared.h"
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

static uint64_t pages(uint64_t bytes)
{
    return (bytes + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE;
}

static bool make_segment(struct coordinator *c)
{
    struct sim_segment *s = &c->layout;
    size_t places = places_of(&c->setup);
    *s =
        (struct sim_segment){.magic = SIM_MAGIC,
                             .ranks = c->setup.ranks,
                             .processes = c->setup.processes,
                             .per_host = c->setup.per_host,
                             .used = c->setup.ranks,
                             .packet = c->setup.net.packet,
                             .lookahead = 2 * c->setup.net.cable + c->setup.net.hop,
                             .scattered = c->setup.net.routing == NET_ADAPTIVE || c->setup.shuffled,
                             .machine = c->setup.machine,
                             .debugged = c->setup.debugged ? c->setup.debug + 1 : 0,
                             .profiled = c->setup.profile,
                             .hpu_faults = c->setup.faults.hpus,
                             .spans = c->setup.spans};
    memcpy(s->hpu_fault, c->setup.faults.hpu, sizeof(s->hpu_fault));
    s->board_at = pages(sizeof(*s) + places * sizeof(s->address[0]));
    s->ranks_at = s->board_at + pages(sizeof(struct sim_board) + 2 * places * sizeof(uint32_t));
    s->spans_at = s->ranks_at + places * sizeof(struct sim_rank);
    s->spent_at = s->spans_at + s->ranks * sim_spans_bytes(s);
    s->ports_at = s->spent_at + s->ranks * sim_spent_bytes(s);
    s->size = s->ports_at + sim_nodes(s) * sim_port_bytes(s);
    c->used = s->ranks;
    c->fd = memfd_create("pinwheel-sim", MFD_CLOEXEC);
    if (c->fd < 0 || ftruncate(c->fd, (off_t)s->size) != 0) {
        return false;
    }
    void *at = mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, c->fd, 0);
    if (at == MAP_FAILED) {
        return false;
    }
    c->segment = at;
    memcpy(at, s, sizeof(*s));
    for (uint32_t i = 0; s->per_host > 1 && i < sim_nodes(s) * s->per_host; i++) {
        sim_slot_clear(port_of(c, i / s->per_host), i % s->per_host);
    }
    for (uint32_t i = 0; i < places; i++) {
        struct sim_record *r = rank_of(c, i);
        r->look_at = r->fence = r->address.opened = r->address.closed = SIM_NEVER;
        memcpy(&c->segment->address[i], &r->address, sizeof(r->address));
        if (i < s->ranks) { /* a child's is made when its place is taken */
            r->seal = sim_seal(r);
            memcpy(&shared_of(c, i)->record, r, sizeof(*r));
            atomic_store(&shared_of(c, i)->taken, 1);
            atomic_store(&board_of(c)->turn[i], SIM_RUN);
        }
    }
    snprintf(c->path, sizeof(c->path), "/proc/%d/fd/%d", (int)getpid(), c->fd);
    return true;
}

/* Says that a link is none of the network, with some that are. */
static void tell_links(const struct net_graph *g, const struct fault_link *l)
{
    enum { MOST = 8, NAME = 128 };
    char from[NAME], to[NAME];
    fprintf(stderr, "pinwheel sim: --fault \"%s\" at character %zu: is no link of the network;",
            l->name, l->place);
    uint32_t inner = g->channels - 2 * g->hosts, said = 0;
    for (uint32_t i = 0; i < g->channels && said < MOST; i++) {
        net_node_word(g, g->links[i].from, from, sizeof(from));
        net_node_word(g, g->links[i].to, to, sizeof(to));
        bool host = i < 2 * g->hosts;
        if ((host && i % 2 == 0 && i < MOST / 2) || (!host && g->links[i].from < g->links[i].to)) {
            fprintf(stderr, "%s %s-%s", said++ == 0 ? " some of its links are" : ",", from, to);
        }
    }
    fprintf(stderr, " (%u of hosts, %u between switches)\n", g->hosts, inner / 2);
}

/* The channels that carry nothing for a while; false after a line. */
static bool make_downs(struct coordinator *c)
{
    const struct fault_plan *f = &c->setup.faults;
    c->down = calloc(2 * f->links + 1, sizeof(*c->down));
    for (size_t i = 0; c->down != NULL && i < f->links; i++) {
        uint32_t channel[2];
        if (!net_link_find(&c->graph, f->link[i].name, channel)) {
            tell_links(&c->graph, &f->link[i]);
            return false;
        }
        for (unsigned k = 0; k < 2; k++) {
            c->down[2 * i + k] = (struct net_down){channel[k], f->link[i].from, f->link[i].until};
        }
    }
    c->setup.net.down = c->down;
    c->setup.net.downs = 2 * f->links;
    return c->down != NULL;
}

static bool make_network(struct coordinator *c)
{
    char error[NET_ERROR];
    struct net_hooks own = traffic_hooks;
    uint32_t hosts = (c->setup.ranks + c->setup.per_host - 1) / c->setup.per_host;
    own.context = c;
    if (net_graph_open(&c->graph, &c->setup.spec, hosts, error) != 0) {
        fprintf(stderr, "pinwheel sim: --network %s\n", error);
        return false;
    }
    if (!make_downs(c)) {
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
    if (c->lines != NULL) {
        lines_close(c->lines);
    }
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
    free(c->down);
    if (c->segment != NULL) {
        munmap(c->segment, c->layout.size);
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
    c->setup.per_host = setup->per_host != 0 ? setup->per_host : 1;
    if (!make_players(c) || !make_network(c) ||
        (!setup->direct && (c->lines = lines_open(setup->ranks, setup->label)) == NULL)) {
        free_coordinator(c);
        return NULL;
    }
    bool made = make_segment(c);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int rc = made ? pthread_create(&c->thread, NULL, coordinate, c) : ENOMEM;
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

int coordinator_piped(void *coordinator, int rank, int out, int err)
{
    struct coordinator *c = coordinator;
    struct sim_rank *s = shared_of(c, (uint32_t)rank);
    return lines_add(c->lines, (uint32_t)rank, out, err, &s->heard, s->pipes);
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

/* Has the coordinator's thread look. */
static void wake(struct coordinator *c)
{
    atomic_fetch_add(&board_of(c)->came, 1);
    futex_wake(&board_of(c)->came);
}

void coordinator_exited(void *coordinator, int rank)
{
    struct coordinator *c = coordinator;
    atomic_store(&c->players[rank].exited, true);
    atomic_fetch_add(&c->exits, 1);
    wake(c);
}

static void sum_up(struct coordinator *c)
{
    struct coordinator_result *r = &c->result;
    for (uint32_t i = 0; i < places(c); i++) {
        const struct sim_record *rank = rank_of(c, i);
        struct sim_figures f;
        shared_figures(c, i, &f);
        const struct sim_counts *n = &f.counts;
        uint64_t hpus = sim_hpus_taken(n);
        r->nics |= rank->address.opened != SIM_NEVER;
        r->end = rank->now > r->end ? rank->now : r->end;
        if (rank->outside_of[0] != '\0' && r->outside++ == 0) {
            r->outside_rank = sim_host(&c->layout, i);
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

/* All ranks have ended: a signal ends the command again, also while it waits for who reads. */
static void let_signals(void)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
        sigaddset(&set, ending[i]);
    }
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

void coordinator_end(struct coordinator *c, struct coordinator_result *result)
{
    atomic_store(&c->stop, true);
    wake(c);
    pthread_join(c->thread, NULL);
    let_signals();
    if (c->lines != NULL) {
        lines_close(c->lines); /* before anything is said of the run */
        c->lines = NULL;
    }
    sum_up(c);
    c->result.stats = stats_take(c);
    c->result.hot = c->setup.profile ? hot_take(c) : NULL;
    c->result.spans = c->setup.spans != 0 ? spans_take(c) : NULL;
    *result = c->result;
    free_coordinator(c);
}
