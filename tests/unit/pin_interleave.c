/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Firehose's engine in all interleavings: threads of node 0 that ask for buckets of node 1, or pin
 * their own, poll, hold and release; messages in any order; jobs of node 1; pins that are made when
 * they are made; memory that gets other pages at any time. Each state is checked (pin_world.h), no
 * state is without a way on, and from each the end, where everybody has had his turn, can still be
 * reached: nobody waits for ever.
 *
 * A state is reached again from the beginning, by the choices that lead to it; two are the same if
 * all that decides what can follow is.
 *
 * Usage: pin_interleave [all]
 */
#include "pin/engine.h"
#include "pin_world.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { STATES = 400000, EDGES = 8 * STATES, PATH = 200, BUCKETS = 1 << 20 };

/* What a thread does: one range, and what it does then again. */
struct want {
    uint32_t target, page, pages;
};
struct scene {
    uint32_t f, victims, threads, rounds;
    uint32_t da_limit;
    struct want want[3][2];
    struct want forget[2]; /* node, page and pages; once each, at any time */
};

static const struct scene *scene;
static struct world *w;
static bool forgot[2];
static uint32_t turn[3]; /* how many of its rounds a thread has ended */

static struct {
    uint64_t hash;
    uint32_t from; /* the state before it */
    uint8_t choice;
    bool final, good;
} * states;
static struct edge {
    uint32_t from, to;
} * edges;
static uint32_t *buckets, state_count, edge_count;

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
}

static unsigned in_list(const struct list *list, const struct pin_entry *x)
{
    const struct list *at = list->next;
    while (at != list && at != &x->link) {
        at = at->next;
    }
    return at != list;
}

/* Entries in the order of the table, with the place of each in its FIFO by age. */
static uint64_t hash_engine(const struct pin *p)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < p->capacity; i++) {
        const struct pin_entry *x = &p->entries[i];
        if (x->state == FREE) {
            continue;
        }
        uint64_t h = mix(entry_node(x), entry_addr(x)), older = 0;
        h = mix(h, x->state | (uint64_t)x->charged << 8 | (uint64_t)x->peers << 16);
        h = mix(h, entry_word(x) & (WORD_USES | WORD_HIT));
        h = mix(h, x->gone | x->told << 1 | in_list(&p->ask, x) << 2 | in_list(&p->unpin, x) << 3);
        for (uint32_t j = 0; j < p->capacity && x->place != 0; j++) {
            const struct pin_entry *y = &p->entries[j];
            older += y->state == PINNED && y->place != 0 && entry_node(y) == entry_node(x) &&
                     y->word.stamp < x->word.stamp;
        }
        sum += mix(h, older);
    }
    for (uint32_t n = 0; n < p->config.nodes; n++) {
        sum = mix(sum, p->pools[n].used << 16 | p->pools[n].reserved << 8 | p->pools[n].granted);
    }
    return sum;
}

static uint64_t hash_request(const struct world_request *r, const struct pin *p)
{
    uint64_t h = mix(r->state, r->node);
    if (r->state == W_IDLE) {
        return h;
    }
    uint32_t tries = r->r.tries < scene->da_limit ? r->r.tries : scene->da_limit;
    h = mix(h, (uint64_t)r->r.claims << 32 | r->r.victim_count << 16 | r->r.reserved << 8 | tries);
    h = mix(h, (uint64_t)r->r.waiting << 8 | (p->pools[r->node].winner == &r->r));
    for (uint32_t i = 0; i < r->r.count; i++) {
        const struct pin_use *u = &r->r.uses[i];
        h = mix(h, u->entry == NULL ? 0 : 1u + u->fresh + 2u * u->waits);
    }
    for (uint32_t i = 0; i < r->r.victim_count; i++) {
        h = mix(h, entry_addr(r->r.victims[i]));
    }
    return h;
}

static uint64_t hash_world(void)
{
    uint64_t h = mix(hash_engine(w->node[0].pin), hash_engine(w->node[1].pin)), sum = 0;
    for (uint32_t t = 0; t < scene->threads; t++) {
        h = mix(mix(h, turn[t]), hash_request(&w->node[0].requests[t], w->node[0].pin));
    }
    for (uint32_t i = 0; i < WORLD_MESSAGES; i++) {
        const struct world_message *m = &w->message[i];
        if (m->live) {
            uint64_t one = mix(m->reply + 2u * m->revoke + 4u * (m->error == 0), m->to);
            for (uint32_t k = 0; k < m->unpin_count; k++) {
                one = mix(one, m->unpins[k].addr);
            }
            for (uint32_t k = 0; k < m->pin_count; k++) {
                one = mix(one, m->pins[k].addr + 1);
            }
            sum += one;
        }
    }
    for (uint32_t n = 0; n < 2; n++) {
        h = mix(h, w->node[n].jobs[0] != NULL);
        for (uint32_t i = 0; i < 2; i++) {
            h = mix(h, forgot[i] + 2u * w->node[n].forgets[i].live);
        }
        for (uint32_t k = 0; k < WORLD_PAGES; k++) {
            h = mix(h, w->node[n].pinned[k] + 2u * (w->node[n].age[k] - w->node[n].pinned_age[k]));
        }
        const struct pin *p = w->node[n].pin;
        for (const struct list *at = p->serves.next; at != &p->serves; at = at->next) {
            const struct pin_serve *s = container_of(at, struct pin_serve, link);
            uint64_t one = mix(s->running, s->resolved);
            one = mix(one, (uint64_t)s->drop_count << 8 | s->leave_count);
            for (uint32_t k = 0; k < s->pin_count; k++) {
                one = mix(one, s->pins[k].addr);
            }
            h = mix(h, one);
        }
    }
    return mix(h, sum);
}

static bool thread_step(uint32_t t, bool really)
{
    struct world_request *r = &w->node[0].requests[t];
    const struct want *want = &scene->want[t][turn[t] % 2];
    switch (r->state) {
    case W_IDLE:
        if (turn[t] == scene->rounds) {
            return false;
        }
        if (really) {
            world_begin(w, 0, t, want->target, world_page(want->page),
                        (uint64_t)want->pages * WORLD_PAGE);
            assert_true(r->error == 0 || r->error == PIN_RESTART);
        }
        return true;
    case W_POLLS:
        if (really) {
            world_again(w, 0, t);
        }
        return true;
    case W_YIELDS:
        if (pin_winner(w->node[0].pin, r->node)) {
            return false;
        }
        if (really) {
            world_again(w, 0, t);
        }
        return true;
    case W_PINS:
        if (really) {
            world_pin(w, 0, t, 0);
        }
        return true;
    case W_HOLDS:
        if (really) {
            world_release(w, 0, t, false);
            turn[t]++;
        }
        return true;
    case W_WAITS:
        break;
    }
    return false;
}

/* Choices: threads, messages, the jobs of each node, changes of memory, what follows from these. A
 * job is looked for when a message has come or a job or a pin has ended; to look in vain changes
 * nothing. */
enum { THREAD_CHOICES = 3, JOB_CHOICE = THREAD_CHOICES + 8 };
enum {
    FORGET_CHOICE = JOB_CHOICE + 2,
    FOLLOW_CHOICE = FORGET_CHOICE + 2,
    CHOICES = FOLLOW_CHOICE + 2
};

static bool choose(uint32_t choice, bool really)
{
    if (choice < THREAD_CHOICES) {
        return choice < scene->threads && thread_step(choice, really);
    }
    if (choice < JOB_CHOICE) {
        uint32_t m = choice - THREAD_CHOICES;
        bool live = w->message[m].live;
        if (live && really) {
            world_deliver(w, m);
        }
        return live;
    }
    if (choice >= FOLLOW_CHOICE) {
        uint32_t at = choice - FOLLOW_CHOICE;
        bool due = w->node[at].leaving != NULL || pin_gone_due(w->node[at].pin);
        return due && (!really || world_forget_step(w, at));
    }
    if (choice >= FORGET_CHOICE) {
        const struct want *one = &scene->forget[choice - FORGET_CHOICE];
        if (one->pages == 0 || forgot[choice - FORGET_CHOICE]) {
            return false;
        }
        if (really) {
            world_forget(w, one->target, world_page(one->page), one->pages * WORLD_PAGE);
            forgot[choice - FORGET_CHOICE] = true;
        }
        return true;
    }
    uint32_t n = choice - JOB_CHOICE;
    if (w->node[n].jobs[0] != NULL) {
        if (really) {
            world_job_end(w, n, 0, 0);
        }
        return true;
    }
    if (list_empty(&w->node[n].pin->serves)) {
        return false;
    }
    return really ? world_job(w, n, 0) : true;
}

static void open_scene(void)
{
    struct pin_config config = {.nodes = 2,
                                .page = WORLD_PAGE,
                                .f = scene->f,
                                .remote = scene->f,
                                .victims = scene->victims,
                                .most = scene->f,
                                .da_limit = scene->da_limit};
    w = world_open(&config);
    memset(turn, 0, sizeof(turn));
    memset(forgot, 0, sizeof(forgot));
}

static void reach(uint32_t state)
{
    uint8_t path[PATH];
    uint32_t n = 0;
    for (uint32_t s = state; s != 0; s = states[s].from) {
        assert_true(n < PATH);
        path[n++] = states[s].choice;
    }
    open_scene();
    while (n > 0) {
        choose(path[--n], true);
    }
}

/* The number of the present state, a new one perhaps. */
static uint32_t number(uint32_t from, uint8_t choice, bool *fresh)
{
    uint64_t h = hash_world();
    uint32_t at = (uint32_t)(h % BUCKETS);
    for (; buckets[at] != 0; at = (at + 1) % BUCKETS) {
        if (states[buckets[at] - 1].hash == h) {
            *fresh = false;
            return buckets[at] - 1;
        }
    }
    assert_true(state_count < STATES);
    *fresh = true;
    buckets[at] = ++state_count;
    states[state_count - 1].hash = h;
    states[state_count - 1].from = from;
    states[state_count - 1].choice = choice;
    bool final = true;
    for (uint32_t t = 0; t < scene->threads; t++) {
        final &= turn[t] == scene->rounds;
    }
    for (uint32_t i = 0; i < 2; i++) {
        final &= forgot[i] || scene->forget[i].pages == 0;
        final &= !w->node[0].forgets[i].live && !w->node[1].forgets[i].live;
    }
    states[state_count - 1].final = states[state_count - 1].good = final;
    return state_count - 1;
}

static void explore(const struct scene *s)
{
    bool fresh;
    scene = s;
    states = calloc(STATES, sizeof(*states));
    edges = calloc(EDGES, sizeof(*edges));
    buckets = calloc(BUCKETS, sizeof(*buckets));
    assert_true(states != NULL && edges != NULL && buckets != NULL);
    state_count = edge_count = 0;
    open_scene();
    number(0, 0, &fresh);
    world_close(w);
    uint64_t avoided = 0, stolen = 0, restarted = 0;
    for (uint32_t at = 0; at < state_count; at++) {
        bool ways = states[at].final;
        for (uint8_t choice = 0; choice < CHOICES && !states[at].final; choice++) {
            reach(at);
            if (choose(choice, true)) {
                ways = true;
                assert_true(edge_count < EDGES);
                edges[edge_count++] = (struct edge){at, number(at, choice, &fresh)};
            }
            const struct pin_stats *stats = pin_stats(w->node[0].pin);
            avoided = stats->avoided > avoided ? stats->avoided : avoided;
            stolen = stats->stolen > stolen ? stats->stolen : stolen;
            restarted = stats->restarted > restarted ? stats->restarted : restarted;
            world_close(w);
        }
        assert_true(ways); /* else all wait for each other */
    }
    bool more = true;
    while (more) {
        more = false;
        for (uint32_t e = edge_count; e-- > 0;) {
            if (states[edges[e].to].good && !states[edges[e].from].good) {
                states[edges[e].from].good = more = true;
            }
        }
    }
    for (uint32_t at = 0; at < state_count; at++) {
        assert_true(states[at].good); /* else somebody waits for ever */
    }
    print_message("%u states, %u steps; deadlock avoided %lu, replacements hit %lu, restarts %lu\n",
                  state_count, edge_count, (unsigned long)avoided, (unsigned long)stolen,
                  (unsigned long)restarted);
    free(states);
    free(edges);
    free(buckets);
}

/* Two threads that each need more than half of the firehoses. */
static void two_compete(void **state)
{
    explore(
        &(struct scene){2, 2, 2, 2, 2, {{{1, 0, 2}, {1, 2, 1}}, {{1, 1, 2}, {1, 4, 2}}}, {{0}}});
}

/* Buckets that overlap: pending ones are waited for, replacements are hit. */
static void two_share(void **state)
{
    explore(
        &(struct scene){3, 2, 2, 2, 2, {{{1, 0, 2}, {1, 3, 2}}, {{1, 1, 2}, {1, 0, 1}}}, {{0}}});
}

/* Pins of one's own beside remote ones. */
static void local_and_remote(void **state)
{
    explore(
        &(struct scene){2, 2, 2, 2, 2, {{{0, 0, 2}, {0, 3, 1}}, {{0, 1, 2}, {1, 0, 2}}}, {{0}}});
}

static void three(void **state)
{
    explore(
        &(struct scene){2,
                        2,
                        3,
                        1,
                        1,
                        {{{1, 0, 2}, {1, 0, 1}}, {{1, 1, 2}, {1, 0, 1}}, {{1, 3, 1}, {1, 0, 1}}},
                        {{0}}});
}

/* Memory of the peer changes while it is pinned, used, given up. */
static void forgotten_there(void **state)
{
    explore(&(struct scene){1, 2, 1, 4, 2, {{{1, 0, 1}, {1, 1, 1}}}, {{1, 0, 1}, {1, 1, 1}}});
    explore(&(struct scene){2, 2, 1, 2, 2, {{{1, 0, 1}, {1, 1, 2}}}, {{1, 0, 2}}});
    explore(&(struct scene){
        2, 2, 2, 1, 2, {{{1, 0, 2}, {1, 0, 2}}, {{1, 1, 1}, {1, 1, 1}}}, {{1, 1, 1}}});
}

/* Memory of one's own changes, and that of the peer at once. */
static void forgotten_here(void **state)
{
    explore(&(struct scene){
        2, 2, 2, 1, 2, {{{0, 0, 2}, {0, 0, 2}}, {{0, 1, 2}, {0, 1, 2}}}, {{0, 1, 1}}});
    explore(&(struct scene){
        2, 2, 2, 1, 2, {{{0, 0, 1}, {0, 0, 1}}, {{1, 0, 1}, {1, 0, 1}}}, {{0, 0, 1}, {1, 0, 1}}});
}

/* Two that hold what the other one waits for, both forgotten. */
static void forgotten_crosswise(void **state)
{
    explore(&(struct scene){
        4, 2, 2, 2, 2, {{{1, 0, 1}, {1, 0, 2}}, {{1, 1, 1}, {1, 0, 2}}}, {{1, 0, 2}}});
    explore(&(struct scene){
        4, 2, 2, 2, 2, {{{0, 0, 1}, {0, 0, 2}}, {{1, 0, 2}, {1, 0, 2}}}, {{0, 0, 1}, {1, 0, 2}}});
}

static void three_of_four(void **state)
{
    explore(
        &(struct scene){4,
                        2,
                        3,
                        1,
                        2,
                        {{{1, 0, 3}, {1, 0, 1}}, {{1, 2, 3}, {1, 0, 1}}, {{1, 4, 2}, {1, 0, 1}}},
                        {{0}}});
}

static void two_of_four_twice(void **state)
{
    explore(
        &(struct scene){4, 2, 2, 2, 2, {{{1, 0, 3}, {1, 4, 3}}, {{1, 2, 3}, {1, 6, 2}}}, {{0}}});
}

static void three_local(void **state)
{
    explore(
        &(struct scene){2,
                        3,
                        3,
                        1,
                        2,
                        {{{0, 0, 2}, {0, 0, 1}}, {{0, 1, 3}, {0, 0, 1}}, {{1, 0, 2}, {0, 0, 1}}},
                        {{0}}});
}

int main(int argc, char **argv)
{
    const struct CMUnitTest some[] = {
        cmocka_unit_test(two_compete),      cmocka_unit_test(two_share),
        cmocka_unit_test(local_and_remote), cmocka_unit_test(three),
        cmocka_unit_test(forgotten_there),  cmocka_unit_test(forgotten_here),
    };
    const struct CMUnitTest big[] = {
        cmocka_unit_test(three_of_four),
        cmocka_unit_test(two_of_four_twice),
        cmocka_unit_test(three_local),
        cmocka_unit_test(forgotten_crosswise),
    };
    int rc = cmocka_run_group_tests(some, NULL, NULL);
    return argc > 1 ? rc | cmocka_run_group_tests(big, NULL, NULL) : rc;
}
