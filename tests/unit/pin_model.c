/* SPDX-License-Identifier: BSD-3-Clause */
#include "pin_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include <cmocka.h>

enum {
    THREADS = 3,
    PLACES = 8,
    PINNED_PLACE = PLACES - 1,
    STORES = 24,
    CHOICES = 300,
    STACK = 65536,
    SEEN = 1 << 20
};

/* Of each place the first store that may be seen; of each thread how far it is known to have come.
 */
struct view {
    uint8_t place[PLACES];
    uint8_t use[THREADS];
};

struct store {
    uint64_t value;
    struct view view;
};

struct thread {
    ucontext_t context;
    struct view view;
    uint64_t history; /* of what it has loaded */
    uint32_t steps;   /* how far it is */
    bool ended, blocked;
};

static struct {
    const void *address[PLACES];
    struct store stores[PLACES][STORES];
    uint8_t count[PLACES], used[THREADS]; /* uses of pinned memory by each thread */
    struct view lock_view;
    bool locked;
} memory;

static struct thread thread[THREADS];
static unsigned threads, running;
static ucontext_t scheduler;
static char stacks[THREADS][STACK];
static const char *violation;

/* The choices of this run, and of how many each is one. */
static struct {
    uint16_t taken, of;
} choice[CHOICES];
static unsigned depth, replayed;
static bool pruned;
static uint64_t *seen, states;

const char *model_weak_function;
enum order model_weak_order;
static const struct model *now;

static uint64_t mix(uint64_t h, const void *bytes, size_t n)
{
    const uint8_t *b = bytes;
    for (size_t i = 0; i < n; i++) {
        h = (h ^ b[i]) * 0x100000001b3u;
        h ^= h >> 29;
    }
    return h;
}

/* Has this state been reached before? */
static bool reached(unsigned of)
{
    uint64_t h = mix(0xcbf29ce484222325u, &memory.locked, sizeof(memory.locked));
    h = mix(h, &memory.lock_view, sizeof(memory.lock_view));
    h = mix(h, memory.count, sizeof(memory.count));
    h = mix(h, memory.used, sizeof(memory.used));
    for (unsigned p = 0; p < PLACES; p++) {
        h = mix(h, memory.stores[p], memory.count[p] * sizeof(struct store));
    }
    for (unsigned t = 0; t < threads; t++) {
        h = mix(h, &thread[t].view, sizeof(thread[t].view));
        h = mix(h, &thread[t].history, sizeof(thread[t].history));
        h = mix(h, &thread[t].steps, sizeof(thread[t].steps));
        h = mix(h, &thread[t].ended, 2);
    }
    h = mix(h, &of, sizeof(of)) | 1;
    for (uint64_t i = h % SEEN;; i = (i + 1) % SEEN) {
        if (seen[i] == h) {
            return true;
        }
        if (seen[i] == 0) {
            seen[i] = h;
            assert_true(++states < SEEN / 2);
            return false;
        }
    }
}

/* One of `of` ways to go on. */
static unsigned choose(unsigned of)
{
    if (of == 1) {
        return 0;
    }
    if (depth < replayed) {
        return choice[depth++].taken;
    }
    if (depth == CHOICES) {
        violation = "a run does not end";
        pruned = true;
        return 0;
    }
    choice[depth].taken = 0;
    choice[depth].of = (uint16_t)of;
    depth++;
    return 0;
}

static void stop(void)
{
    thread[running].steps++;
    swapcontext(&thread[running].context, &scheduler);
}

void model_note(const char *what)
{
    if (violation == NULL) {
        violation = what;
    }
}

static unsigned place_of(const void *at)
{
    for (unsigned p = 0; p < PLACES; p++) {
        if (memory.address[p] == at) {
            return p;
        }
    }
    model_note("memory that the model does not know");
    return 0;
}

static void join(struct view *to, const struct view *from)
{
    for (unsigned p = 0; p < PLACES; p++) {
        to->place[p] = from->place[p] > to->place[p] ? from->place[p] : to->place[p];
    }
    for (unsigned t = 0; t < THREADS; t++) {
        to->use[t] = from->use[t] > to->use[t] ? from->use[t] : to->use[t];
    }
}

static enum order weakened(enum order order, const char *who)
{
    return model_weak_function != NULL && order == model_weak_order &&
                   strcmp(model_weak_function, who) == 0
               ? order_relaxed
               : order;
}

static uint64_t loaded(uint64_t value)
{
    thread[running].history = mix(thread[running].history, &value, sizeof(value));
    return value;
}

static uint64_t see(unsigned p, unsigned which, bool acquire)
{
    struct thread *t = &thread[running];
    t->view.place[p] = (uint8_t)which;
    if (acquire) {
        join(&t->view, &memory.stores[p][which].view);
    }
    return loaded(memory.stores[p][which].value);
}

static void append(unsigned p, uint64_t value, bool release, const struct view *handed_on)
{
    struct thread *t = &thread[running];
    unsigned which = memory.count[p]++;
    if (which == STORES) {
        memory.count[p]--;
        model_note("more stores than the model has room for");
        return;
    }
    struct store *s = &memory.stores[p][which];
    memset(s, 0, sizeof(*s));
    s->value = value;
    t->view.place[p] = (uint8_t)which;
    if (handed_on != NULL) {
        join(&s->view, handed_on);
    }
    if (release) {
        join(&s->view, &t->view);
    }
    s->view.place[p] = (uint8_t)which;
}

uint64_t model_load(const void *at, enum order order, const char *who)
{
    stop();
    unsigned p = place_of(at), oldest = thread[running].view.place[p];
    unsigned which = oldest + choose(memory.count[p] - oldest);
    order = weakened(order, who);
    return see(p, which, order == order_acquire || order == order_acq_rel);
}

void model_store(void *at, uint64_t value, enum order order, const char *who)
{
    stop();
    append(place_of(at), value, weakened(order, who) == order_release, NULL);
}

int model_cas(void *at, uint64_t *expected, uint64_t value, enum order order, const char *who)
{
    stop();
    unsigned p = place_of(at), last = memory.count[p] - 1u, ways[STORES], n = 0;
    order = weakened(order, who);
    for (unsigned i = thread[running].view.place[p]; i <= last; i++) {
        if (i == last || memory.stores[p][i].value != *expected) {
            ways[n++] = i;
        }
    }
    unsigned which = ways[choose(n)];
    if (memory.stores[p][which].value != *expected) {
        *expected = see(p, which, false);
        return 0;
    }
    struct view from = memory.stores[p][which].view;
    see(p, which, order == order_acquire || order == order_acq_rel);
    append(p, value, order == order_release || order == order_acq_rel, &from);
    return 1;
}

uint64_t model_last(const void *at)
{
    unsigned p = place_of(at);
    return memory.stores[p][memory.count[p] - 1].value;
}

void model_lock(void)
{
    struct thread *t = &thread[running];
    stop();
    while (memory.locked) {
        t->blocked = true;
        stop();
    }
    t->blocked = false;
    memory.locked = true;
    join(&t->view, &memory.lock_view);
}

void model_unlock(void)
{
    join(&memory.lock_view, &thread[running].view);
    memory.locked = false;
}

/* Uses what must be pinned: a plain load that nothing races with. */
void model_use(uint64_t addr)
{
    struct thread *t = &thread[running];
    stop();
    unsigned last = memory.count[PINNED_PLACE] - 1u;
    if (t->view.place[PINNED_PLACE] != last) {
        model_note("a use does not see the last pin or unpin");
    }
    if (memory.stores[PINNED_PLACE][last].value != addr) {
        model_note("a use of memory that is not pinned");
    }
    t->view.use[running] = ++memory.used[running];
}

/* Pins or unpins: after all uses. */
void model_pin(uint64_t addr)
{
    struct thread *t = &thread[running];
    stop();
    for (unsigned i = 0; i < threads; i++) {
        if (t->view.use[i] < memory.used[i]) {
            model_note("a pin or unpin beside a use");
        }
    }
    append(PINNED_PLACE, addr, false, NULL);
}

static void enter(void)
{
    now->script[running]();
    thread[running].ended = true;
    swapcontext(&thread[running].context, &scheduler);
}

static void begin(void)
{
    memset(&memory, 0, sizeof(memory));
    memset(thread, 0, sizeof(thread));
    for (unsigned p = 0; p < now->count; p++) {
        memory.address[p] = now->places[p].address;
        memory.stores[p][0].value = now->places[p].value;
        memory.count[p] = 1;
    }
    memory.stores[PINNED_PLACE][0].value = now->pinned;
    memory.count[PINNED_PLACE] = 1;
    for (unsigned t = 0; t < threads; t++) {
        getcontext(&thread[t].context);
        thread[t].context.uc_stack.ss_sp = stacks[t];
        thread[t].context.uc_stack.ss_size = STACK;
        thread[t].context.uc_link = &scheduler;
        makecontext(&thread[t].context, enter, 0);
    }
    depth = 0;
    pruned = false;
}

static void run_once(void)
{
    begin();
    while (!pruned && violation == NULL) {
        unsigned ready[THREADS], n = 0;
        bool left = false;
        for (unsigned t = 0; t < threads; t++) {
            left |= !thread[t].ended;
            if (!thread[t].ended && !(thread[t].blocked && memory.locked)) {
                ready[n++] = t;
            }
        }
        if (n == 0) {
            if (left) {
                model_note("all wait for the lock");
            }
            now->end();
            return;
        }
        if (n > 1 && depth >= replayed && reached(n)) {
            return;
        }
        running = ready[choose(n)];
        swapcontext(&scheduler, &thread[running].context);
    }
}

const char *model_explore(const struct model *model)
{
    now = model;
    threads = model->script[2] != NULL ? 3 : 2;
    seen = calloc(SEEN, sizeof(*seen));
    assert_non_null(seen);
    states = 0;
    replayed = 0;
    violation = NULL;
    unsigned long runs = 0;
    for (;;) {
        run_once();
        runs++;
        while (depth > 0 && choice[depth - 1].taken + 1 == choice[depth - 1].of) {
            depth--;
        }
        if (violation != NULL || depth == 0) {
            break;
        }
        choice[depth - 1].taken++;
        replayed = depth;
    }
    print_message("%lu runs, %lu states: %s\n", runs, (unsigned long)states,
                  violation != NULL ? violation : "all right");
    free(seen);
    return violation;
}
