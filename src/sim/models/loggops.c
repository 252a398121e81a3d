/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs the pinwheel model: workers and their windows; see loggops.h. */
#include "loggops.h"

#include "loggops_net.h"
#include "sim/util/reserve.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static void set_parameters(struct loggops *s)
{
    const uint64_t *value = s->in->parameters->value;
    /* 0 with a network, which computes the delay */
    s->L = s->in->network == NULL ? value[SIM_L] / SIM_AS_PER_PS : 0;
    s->o = value[SIM_o] / SIM_AS_PER_PS;
    s->g = value[SIM_g] / SIM_AS_PER_PS;
    s->G = value[SIM_G];
    s->O = value[SIM_O];
    s->S = value[SIM_S];
}

static int set_up_worker(struct worker *w, struct loggops *s, uint32_t number)
{
    const struct goal *g = s->goal;
    w->s = s;
    w->number = number;
    w->first_rank = number * s->ranks_per_worker;
    w->end_rank = w->first_rank + s->ranks_per_worker;
    w->end_rank = w->end_rank < g->ranks ? w->end_rank : g->ranks;
    w->noise = s->in->noise;
    w->queues = s->queues != NULL ? &s->queues[number] : NULL;
    w->active = sim_reserve(s->ranks_per_worker * sizeof(*w->active));
    w->parked = sim_reserve((g->nodes + g->sends + 1) * sizeof(*w->parked));
    w->outbox = calloc(s->workers, sizeof(*w->outbox));
    if (w->active == NULL || w->parked == NULL || w->outbox == NULL ||
        match_pool_init(&w->pool, g->sends + g->recvs) != 0) {
        return -1;
    }
    /* A slot must not be narrower than a picosecond. */
    uint64_t ahead = s->o + s->L;
    s->slots = ahead >= LOGGOPS_SLOTS ? LOGGOPS_SLOTS : 1;
    w->agenda.room = 2 * g->nodes + g->sends;
    return wheel_init(&w->wheel, 2 * g->nodes + g->sends, ahead / s->slots);
}

/* Gives each worker about as many ranks as the others. Without lookahead (o + L = 0) there is only
 * one worker. */
static void share_out(struct loggops *s)
{
    uint32_t threads = s->o + s->L > 0 ? s->in->threads : 1;
    uint32_t ranks = s->goal->ranks;
    s->ranks_per_worker = ranks / threads + (ranks % threads > 0);
    s->workers = ranks / s->ranks_per_worker + (ranks % s->ranks_per_worker > 0);
    s->team.size = s->workers;
}

static int set_up(struct loggops *s)
{
    const struct goal *g = s->goal;
    s->cpus = g->cpus;
    s->nics = g->nics;
    share_out(s);
    s->worker = aligned_alloc(_Alignof(struct worker), s->workers * sizeof(*s->worker));
    if (s->worker == NULL) {
        return -1;
    }
    memset(s->worker, 0, s->workers * sizeof(*s->worker));
    if (s->in->count_queues) {
        s->queues = calloc(s->workers, sizeof(*s->queues));
        if (s->queues == NULL) {
            return -1;
        }
    }
    s->rank_size = sizeof(struct rank) + (s->cpus + 2 * s->nics) * sizeof(uint64_t);
    s->rank_size = (s->rank_size + 63) / 64 * 64;
    s->ranks = sim_reserve(g->ranks * s->rank_size);
    s->node_room = g->map_length / sizeof(struct goal_node) + 1;
    s->lists = sim_reserve(g->ranks * sizeof(*s->lists));
    s->met = sim_reserve(s->node_room * sizeof(*s->met));
    s->ready_at = sim_reserve(s->node_room * sizeof(*s->ready_at));
    if (s->ranks == NULL || s->lists == NULL || s->met == NULL || s->ready_at == NULL) {
        return -1;
    }
    for (uint32_t i = 0; i < s->workers; i++) {
        if (set_up_worker(&s->worker[i], s, i) != 0) {
            return -1;
        }
    }
    return 0;
}

static void tear_down_worker(struct worker *w, const struct loggops *s)
{
    sim_unreserve(w->active, s->ranks_per_worker * sizeof(*w->active));
    sim_unreserve(w->parked, (s->goal->nodes + s->goal->sends + 1) * sizeof(*w->parked));
    for (uint32_t i = 0; w->outbox != NULL && i < s->workers; i++) {
        free(w->outbox[i].events);
    }
    free(w->outbox);
    agenda_free(&w->agenda);
    match_pool_free(&w->pool);
    wheel_free(&w->wheel);
}

static void free_lists(struct lists *l, struct match_pool *pool)
{
    match_release(&l->posted, pool);
    match_release(&l->arrived, pool);
    for (uint32_t i = 0; l->waits != NULL && i < l->waits->queues; i++) {
        free(l->waits->queue[i].early);
    }
    free(l->waits);
}

static void tear_down(struct loggops *s)
{
    for (uint32_t i = 0; s->ranks != NULL && s->lists != NULL && i < s->goal->ranks; i++) {
        if (loggops_rank(s, i)->has_lists) {
            free_lists(&s->lists[i], &s->worker[i / s->ranks_per_worker].pool);
        }
    }
    for (uint32_t i = 0; s->worker != NULL && i < s->workers; i++) {
        tear_down_worker(&s->worker[i], s);
    }
    free(s->worker);
    free(s->queues);
    sim_unreserve(s->ranks, s->goal->ranks * s->rank_size);
    sim_unreserve(s->lists, s->goal->ranks * sizeof(*s->lists));
    sim_unreserve(s->met, s->node_room * sizeof(*s->met));
    sim_unreserve(s->ready_at, s->node_room * sizeof(*s->ready_at));
}

/* ---- Workers ---- */

void loggops_tell_progress(struct worker *w)
{
    const struct sim_input *in = w->s->in;
    uint64_t events = w->completed + w->messages;
    if (in->progress != NULL && w->number == 0 && events - w->told >= SIM_PROGRESS) {
        w->told = events;
        in->progress(in->context, events * w->s->workers);
    }
}

static bool failed(const struct worker *w)
{
    return w->short_of_memory || w->overflow;
}

/* Puts the events that the other workers have made for ranks of this worker into its wheel. */
static void take_in(struct worker *w)
{
    for (uint32_t i = 0; i < w->s->workers; i++) {
        const struct outbox *from = &w->s->worker[i].outbox[w->number];
        for (size_t k = 0; k < from->count; k++) {
            const struct event *e = &from->events[k];
            struct event *to = wheel_place(&w->wheel, wheel_slot(&w->wheel, e->time));
            if (to == NULL) {
                w->short_of_memory = true;
                return;
            }
            *to = *e;
        }
    }
}

/* Returns the first slot in which any worker has events; all workers compute the same. */
static uint64_t agree(const struct loggops *s)
{
    uint64_t slot = NO_SLOT;
    bool stop = false;
    for (uint32_t i = 0; i < s->workers; i++) {
        stop |= s->worker[i].stop;
        slot = s->worker[i].next < slot ? s->worker[i].next : slot;
    }
    return stop ? NO_SLOT : slot;
}

static void run_together(struct worker *w)
{
    struct loggops *s = w->s;
    loggops_begin_all(w);
    for (;;) {
        team_meet(&s->team); /* all outboxes are complete */
        take_in(w);
        w->next = NO_SLOT;
        (void)wheel_next(&w->wheel, &w->next);
        w->stop = failed(w);
        team_meet(&s->team); /* all outboxes were read, and each worker has set `next` and `stop` */
        uint64_t slot = agree(s);
        if (slot == NO_SLOT) {
            return;
        }
        for (uint32_t i = 0; i < s->workers; i++) {
            w->outbox[i].count = 0;
        }
        loggops_window(w, slot);
        loggops_tell_progress(w);
    }
}

static void *thread_main(void *context)
{
    struct worker *w = context;
    int go;
    while ((go = atomic_load_explicit(&w->s->go, memory_order_acquire)) == 0) {
        sched_yield();
    }
    if (go > 0) {
        run_together(w);
    }
    return NULL;
}

/* Runs all workers, the first one in the calling thread. Returns 0 or an error number. */
static int run_team(struct loggops *s)
{
    pthread_t threads[SIM_THREADS_MOST];
    uint32_t made = 1;
    int error = 0;
    while (made < s->workers && error == 0) {
        error = pthread_create(&threads[made], NULL, thread_main, &s->worker[made]);
        made += error == 0;
    }
    atomic_store_explicit(&s->go, error == 0 ? 1 : -1, memory_order_release);
    if (error == 0) {
        run_together(&s->worker[0]);
    }
    for (uint32_t i = 1; i < made; i++) {
        pthread_join(threads[i], NULL);
    }
    return error;
}

static void run_alone(struct worker *w)
{
    uint64_t slot;
    loggops_begin_all(w);
    while (!failed(w) && wheel_next(&w->wheel, &slot)) {
        loggops_window(w, slot);
        loggops_tell_progress(w);
    }
}

struct leaving {
    struct loggops *s;
    struct worker *w;
    struct sim_output *out;
    uint32_t rank;
};

static void leave_recv(void *context, const struct match_entry *e)
{
    struct leaving *l = context;
    l->w->short_of_memory |= sim_leave(l->out, l->rank, e->ref, SIM_LEFT_RECV) != 0;
}

static void leave_message(void *context, const struct match_entry *e)
{
    struct leaving *l = context;
    const struct event *m = &l->w->parked[e->ref - 1];
    uint64_t size = loggops_rank(l->s, m->source)->nodes[m->op].size;
    enum sim_left_kind kind = size > l->s->S || l->s->S == 0 ? SIM_LEFT_SEND : SIM_LEFT_MESSAGE;
    l->w->short_of_memory |= sim_leave(l->out, m->source, m->op, kind) != 0;
}

static uint64_t finish_time(const struct loggops *s, uint32_t rank)
{
    const struct rank *r = loggops_rank(s, rank);
    uint64_t latest = r->has_lists ? s->lists[rank].data_end : 0;
    for (uint32_t cpu = 0; cpu < s->cpus; cpu++) {
        latest = r->clocks[cpu] > latest ? r->clocks[cpu] : latest;
    }
    return latest;
}

/* Notes the operations and messages of a worker's ranks that were left without a partner. */
static void find_left(struct loggops *s, struct worker *w, struct sim_output *out, bool all_done)
{
    for (uint32_t rank = w->first_rank; rank < w->end_rank; rank++) {
        struct leaving l = {s, w, out, rank};
        if (!all_done) {
            loggops_end(w, rank);
        }
        if (loggops_rank(s, rank)->has_lists) {
            match_each(&s->lists[rank].posted, &w->pool, leave_recv, &l);
            match_each(&s->lists[rank].arrived, &w->pool, leave_message, &l);
        }
    }
}

static void add_queue(struct sim_queue_use *sum, const struct sim_queue_use *u)
{
    sum->searches += u->searches;
    sum->hits += u->hits;
    sum->lengths += u->lengths;
    if (u->most > sum->most) { /* workers have ascending ranks, so that the lowest rank wins */
        sum->most = u->most;
        sum->rank = u->rank;
    }
}

static enum sim_end finish(struct loggops *s, struct sim_output *out)
{
    for (uint32_t i = 0; i < s->workers; i++) {
        const struct worker *w = &s->worker[i];
        if (w->overflow) {
            out->has_culprit = true;
            out->culprit_rank = w->overflow_rank;
            out->culprit_node = w->overflow_op;
            return sim_fail(out, "its time would pass 2^63 - 1 ps, which is 106 days");
        }
        out->operations += w->completed;
        out->messages += w->messages;
        if (w->queues != NULL) {
            add_queue(&out->queues.posted, &w->queues->posted);
            add_queue(&out->queues.unexpected, &w->queues->unexpected);
        }
    }
    for (uint32_t rank = 0; rank < s->goal->ranks; rank++) {
        out->finish[rank] = finish_time(s, rank);
    }
    bool all_done = out->operations == s->goal->nodes;
    for (uint32_t i = 0; i < s->workers; i++) {
        find_left(s, &s->worker[i], out, all_done);
        if (s->worker[i].short_of_memory) {
            return sim_no_memory(out);
        }
    }
    return out->left_count > 0 || !all_done ? SIM_STUCK : SIM_DONE;
}

/* Runs the schedule: by the workers or, with a network, by loggops_net_run(). */
static enum sim_end run(struct loggops *s, struct sim_output *out)
{
    if (s->in->network != NULL) {
        struct loggops_net n;
        enum sim_end end;
        if (loggops_net_open(&n, s) != 0) {
            end = sim_no_memory(out);
        } else {
            loggops_net_run(&n);
            end = loggops_net_end(&n, out);
        }
        loggops_net_close(&n);
        return end == SIM_DONE ? finish(s, out) : end;
    }
    if (s->workers == 1) {
        run_alone(&s->worker[0]);
        return finish(s, out);
    }
    int error = run_team(s);
    return error == 0
               ? finish(s, out)
               : sim_fail(out, "cannot start %" PRIu32 " threads: %s", s->workers, strerror(error));
}

enum sim_end loggops_run(const struct sim_input *in, struct sim_output *out)
{
    struct loggops s = {.in = in, .goal = in->goal, .record = in->record};
    enum sim_end end;
    set_parameters(&s);
    if (s.o == 0 && s.goal->most_nodes >= EVENT_NUMBERS / 4) {
        /* Only with o = 0 can a rank send so many messages at the same time (event.h). */
        return sim_fail(out,
                        "a rank has %" PRIu32 " operations; with -o 0 at most %" PRIu32
                        " can be simulated",
                        s.goal->most_nodes, EVENT_NUMBERS / 4 - 1);
    }
    end = set_up(&s) == 0 ? run(&s, out) : sim_no_memory(out);
    tear_down(&s);
    return end;
}
