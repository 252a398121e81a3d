/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 8 in virtual time: threads of one node, on two processors, that put 32 KiB with firehoses
 * for one put only. The engine decides; this file is its caller, with a clock: who polls takes
 * time, who yields sleeps until there is no winner, and messages arrive later.
 */
#include "figure.h"
#include "pin/pin.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* WINDOW: pages, which all may stay pinned (the paper's MAXVICTIM), so that puts do not wait for
 * unpins */
enum { FIREHOSES = 8, WINDOW = 12800, THREADS = 32, PROCESSORS = 2, SECONDS = 6 };
#define COST_POLL (1 * US)
#define SLICE (10000 * US) /* that a thread keeps its processor, while others want it */

enum state { READY, YIELDS, WAITS, PUTS };

struct thread {
    struct pin_request request;
    enum state state;
    bool asked;     /* the request has begun, and gathers */
    uint64_t until; /* WAITS, PUTS: the time at which the answer, the end of the put comes */
    uint64_t random, done;
};

struct machine {
    struct pin *node[2];
    struct thread thread[THREADS];
    unsigned threads;
    uint64_t time, answer_error;
};

static void give_up(const char *what)
{
    fprintf(stderr, "figure: %s\n", what);
    exit(1);
}

/* The move of a thread's request, executed by the peer; returns when its answer is here. */
static uint64_t serve(struct machine *m, struct thread *t)
{
    struct pin_range unpins[FIREHOSES], pins[FIREHOSES], out[4 * FIREHOSES];
    struct pin_serve *s;
    uint64_t time = m->time + 2 * COST_MESSAGE;
    uint32_t u = pin_unpins(&t->request, unpins), n = pin_pins(&t->request, pins);
    if (pin_arrive(m->node[1], 0, t->request.token, unpins, u, pins, n, &s) != 0) {
        give_up("the peer refuses a move");
    }
    while ((s = pin_serve_next(m->node[1])) != NULL) {
        time += s->leave_count > 0 ? COST_UNPIN : 0;
        pin_serve_unpins(s, out);
        uint32_t fresh = pin_serve_pins(s, out);
        time += fresh > 0 ? COST_PIN + fresh * COST_PIN_PAGE : 0;
        if (pin_served(m->node[1], s, 0, out)) {
            pin_serve_free(s);
        }
    }
    return time;
}

static void answered(struct machine *m, struct thread *t)
{
    struct pin_range pins[FIREHOSES];
    struct list ended;
    list_init(&ended);
    uint32_t n = pin_pins(&t->request, pins);
    if (pin_finish(m->node[0], 1, t->request.token, 0, pins, n, &ended) != 0) {
        give_up("an answer to no move");
    }
    for (unsigned i = 0; i < m->threads; i++) {
        struct thread *other = &m->thread[i];
        if (other->state == WAITS && !other->request.sent && other->request.waiting == 0 &&
            !other->request.gathering) {
            other->state = PUTS;
            other->until = m->time + COST_PUT / 2;
        }
    }
}

/* What a thread does with the processor; returns how long. */
static uint64_t act(struct machine *m, struct thread *t)
{
    int step;
    if (!t->asked) {
        uint64_t place = figure_random(&t->random) % (WINDOW / FIREHOSES);
        step = pin_begin(m->node[0], &t->request, 1, place * FIREHOSES * PAGE, FIREHOSES * PAGE);
        t->asked = true;
    } else {
        step = pin_again(m->node[0], &t->request);
    }
    if (step < 0) {
        give_up("no pin");
    }
    if (step == PIN_SENT) {
        t->state = WAITS;
        t->until = serve(m, t);
    } else if (step == PIN_DONE || step == PIN_WAIT) {
        t->state = step == PIN_DONE ? PUTS : WAITS;
        t->until = step == PIN_DONE ? m->time + COST_PUT / 2 : UINT64_MAX;
    } else {
        t->state = step == PIN_YIELD ? YIELDS : READY;
    }
    return COST_POLL;
}

/* Answers that have come, and puts that have ended. */
static void events(struct machine *m)
{
    for (unsigned i = 0; i < m->threads; i++) {
        struct thread *t = &m->thread[i];
        if (t->state == WAITS && t->until <= m->time) {
            answered(m, t);
            t->state = PUTS;
            t->until = m->time + COST_PUT / 2; /* of 32 KiB */
        } else if (t->state == PUTS && t->until <= m->time) {
            pin_release(m->node[0], &t->request);
            t->asked = false;
            t->state = READY;
            t->done++;
        } else if (t->state == YIELDS && !pin_winner(m->node[0], 1)) {
            t->state = READY;
        }
    }
}

static uint64_t next_event(const struct machine *m)
{
    uint64_t next = UINT64_MAX;
    for (unsigned i = 0; i < m->threads; i++) {
        const struct thread *t = &m->thread[i];
        bool waits = t->state == WAITS || t->state == PUTS;
        next = waits && t->until < next ? t->until : next;
    }
    return next;
}

/* The threads that are ready have the processors by turns of a slice. */
static void run(struct machine *m, uint64_t end)
{
    unsigned first = 0;
    uint64_t slice = 0;
    while (m->time < end) {
        uint64_t took = 0;
        unsigned ran = 0;
        events(m);
        for (unsigned i = 0; i < m->threads && ran < PROCESSORS; i++) {
            struct thread *t = &m->thread[(first + i) % m->threads];
            if (t->state == READY) {
                took = act(m, t);
                ran++;
            }
        }
        if (took == 0) {
            took = next_event(m) - m->time;
        }
        m->time += took;
        slice += took;
        if (slice >= SLICE) {
            slice = 0;
            first = (first + PROCESSORS) % m->threads;
        }
    }
}

int figure_8(unsigned threads, const char *way)
{
    static struct machine m;
    uint64_t all = 0, least = UINT64_MAX, most = 0;
    if (threads > THREADS) {
        give_up("too many threads");
    }
    m.threads = threads;
    for (unsigned i = 0; i < 2; i++) {
        struct pin_config c = {.nodes = 2,
                               .self = i,
                               .page = PAGE,
                               .remote = FIREHOSES,
                               .victims = WINDOW,
                               .f = FIREHOSES,
                               .most = FIREHOSES,
                               .da_limit = 30};
        if (pin_open(&c, &m.node[i]) != 0) {
            give_up("no memory");
        }
    }
    for (unsigned i = 0; i < threads; i++) {
        m.thread[i].random = i;
    }
    run(&m, SECONDS * 1000000 * US);
    for (unsigned i = 0; i < threads; i++) {
        uint64_t done = m.thread[i].done;
        all += done;
        least = done < least ? done : least;
        most = done > most ? done : most;
    }
    const struct pin_stats *s = pin_stats(m.node[0]);
    if (strcmp(way, "all") == 0) {
        fprintf(stderr,
                "%u threads: %lu puts, of a thread %lu to %lu; %lu of them declared deadlock, %lu "
                "rollbacks\n",
                threads, (unsigned long)all, (unsigned long)least, (unsigned long)most,
                (unsigned long)s->avoided, (unsigned long)s->rollbacks);
    }
    uint64_t of =
        strcmp(way, "all") == 0 ? all : threads * (strcmp(way, "slowest") == 0 ? least : most);
    printf("%lu ps\n", of > 0 ? (unsigned long)(m.time / of) : 0ul);
    return 0;
}
