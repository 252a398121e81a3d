/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks' network, and their turns. */
#include "world.h"

#include "../splitmix.h"

#include <string.h>

enum { ANSWER = MESSAGE_KINDS, PAUSE, REST };

uint64_t world_random(struct world *w, uint64_t bound)
{
    return splitmix_below(&w->random, bound);
}

static bool before(const struct event *a, const struct event *b)
{
    return a->time != b->time ? a->time < b->time : a->order < b->order;
}

static void push(struct world *w, struct event e, uint64_t units)
{
    if (w->events == w->room) {
        w->room = w->room == 0 ? 1024 : 2 * w->room;
        w->heap = realloc(w->heap, w->room * sizeof(*w->heap));
        MUST(w->heap != NULL);
    }
    e.time = w->now + units;
    e.order = w->order++;
    size_t at = w->events++;
    for (; at > 0 && before(&e, &w->heap[(at - 1) / 2]); at = (at - 1) / 2) {
        w->heap[at] = w->heap[(at - 1) / 2];
    }
    w->heap[at] = e;
}

static struct event pop(struct world *w)
{
    struct event first = w->heap[0], last = w->heap[--w->events];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < w->events; at = child) {
        child += child + 1 < w->events && before(&w->heap[child + 1], &w->heap[child]);
        if (!before(&w->heap[child], &last)) {
            break;
        }
        w->heap[at] = w->heap[child];
    }
    w->heap[at] = last;
    return first;
}

static uint64_t latency(struct world *w)
{
    return LATENCY + (w->jitter > 0 ? world_random(w, w->jitter) : 0);
}

/* ---- What the engine asks for ---- */

static int send(void *client, struct event e)
{
    struct node *n = client;
    struct world *w = n->world;
    MUST(e.to < w->size);
    e.from = (uint32_t)(n - w->nodes);
    w->sent[e.kind]++;
    push(w, e, latency(w));
    return 0;
}

static int add(void *client, uint32_t rank, enum sync_word word, uint64_t value)
{
    return send(client, (struct event){
                            .to = rank, .kind = SENT_ADD, .word = (uint8_t)word, .value = value});
}

static int fetch_add(void *client, uint32_t rank, enum sync_word word, uint64_t value)
{
    return send(client, (struct event){
                            .to = rank, .kind = SENT_FETCH, .word = (uint8_t)word, .value = value});
}

static int swap(void *client, uint32_t rank, enum sync_word word, uint64_t compare, uint64_t value)
{
    return send(client, (struct event){.to = rank,
                                       .kind = SENT_SWAP,
                                       .word = (uint8_t)word,
                                       .value = value,
                                       .compare = compare});
}

static int append(void *client, uint32_t rank, enum sync_note note, uint32_t number)
{
    MUST(number < 1u << SYNC_NUMBER_BITS);
    return send(
        client,
        (struct event){.to = rank, .kind = SENT_APPEND, .word = (uint8_t)note, .value = number});
}

static int send_words(void *client, uint32_t rank, unsigned round, const uint64_t *words)
{
    struct event e = {.to = rank, .kind = SENT_WORDS, .word = (uint8_t)round};
    memcpy(e.words, words, sizeof(e.words));
    return send(client, e);
}

static void rest_for(void *client, uint8_t kind, uint64_t units)
{
    struct node *n = client;
    uint32_t rank = (uint32_t)(n - n->world->nodes);
    push(n->world, (struct event){.from = rank, .to = rank, .kind = kind}, units);
}

static void pause_for(void *client, uint64_t units)
{
    rest_for(client, PAUSE, units * LATENCY);
}

static const struct sync_ops ops = {add, fetch_add, swap, append, send_words, pause_for};

void world_rest(struct world *w, uint32_t rank, uint64_t units)
{
    w->nodes[rank].idle = true;
    rest_for(&w->nodes[rank], REST, units);
}

/* ---- What comes ---- */

static void answer(struct world *w, const struct event *e, uint64_t value)
{
    push(w, (struct event){.from = e->to, .to = e->from, .kind = ANSWER, .value = value},
         latency(w));
}

static void come(struct world *w, const struct event *e)
{
    struct node *n = &w->nodes[e->to];
    uint64_t *word = &n->shared[e->word < SYNC_SHARED ? e->word : 0], old = *word;
    switch (e->kind) {
    case SENT_ADD:
        *word += e->value;
        break;
    case SENT_FETCH:
        *word += e->value;
        answer(w, e, old);
        break;
    case SENT_SWAP:
        *word = old == e->compare ? e->value : old;
        answer(w, e, old);
        break;
    case SENT_APPEND:
        MUST(sync_noted(&n->s, e->from, (enum sync_note)e->word, (uint32_t)e->value) == 0);
        break;
    case SENT_WORDS:
        sync_agree(&n->s, e->word, e->words);
        break;
    case REST:
        n->idle = false;
        break;
    default:
        sync_answer(&n->s, e->value);
    }
}

/* Lets a rank go on as far as it can. */
static void turn(struct world *w, uint32_t rank)
{
    struct node *n = &w->nodes[rank];
    while (!n->idle && !sync_poll(&n->s)) {
        MUST(sync_error(&n->s) == 0);
        if (!w->next(w, rank)) {
            n->idle = true;
            w->done++;
        }
    }
}

void world_run(struct world *w, bool (*next)(struct world *w, uint32_t rank))
{
    w->next = next;
    w->done = 0;
    for (uint32_t r = 0; r < w->size; r++) {
        w->nodes[r].idle = false;
        w->nodes[r].step = 0;
    }
    for (uint32_t r = 0; r < w->size; r++) {
        turn(w, r);
    }
    while (w->events > 0) {
        struct event e = pop(w);
        w->now = e.time;
        come(w, &e);
        turn(w, e.to);
    }
    MUST(w->done == w->size);
}

void world_deliver(struct world *w)
{
    while (w->events > 0) {
        struct event e = pop(w);
        w->now = e.time;
        come(w, &e);
    }
}

/* ---- Worlds ---- */

void world_open(struct world *w, uint32_t size, uint32_t id, uint64_t seed, uint64_t jitter)
{
    *w = (struct world){.size = size, .random = seed, .jitter = jitter};
    w->nodes = calloc(size, sizeof(*w->nodes));
    MUST(w->nodes != NULL);
    for (uint32_t r = 0; r < size; r++) {
        struct node *n = &w->nodes[r];
        n->world = w;
        MUST(sync_init(&n->s, &ops, n, n->shared, r, size, id) == 0);
    }
}

void world_close(struct world *w)
{
    for (uint32_t r = 0; r < w->size; r++) {
        sync_fini(&w->nodes[r].s);
    }
    free(w->nodes);
    free(w->heap);
}

void world_count_anew(struct world *w)
{
    memset(w->sent, 0, sizeof(w->sent));
    w->now = 0;
}

uint64_t world_sent(const struct world *w)
{
    uint64_t all = 0;
    for (int k = 0; k < MESSAGE_KINDS; k++) {
        all += w->sent[k];
    }
    return all;
}
