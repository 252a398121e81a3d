/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Design notes; for what it is for, see sched.h.
 *
 * - `turn` holds the queues that have calls ready; a queue that has used up its credit goes to the
 *   end. If no queue whose call could begin has credit, all of these get at once as many rounds of
 *   credit as the one needs that needs fewest.
 * - The HPU that has begun a handler also resumes it; it alternates between suspended and new ones.
 *   So the mask holds until the end of a call, and its slot tells its HPU.
 * - Handlers of one context that wait for the NIC take three quarters of an HPU's slots at most, so
 *   that handlers of other contexts can begin there.
 * - An HPU without work spins for SPIN_NS and then sleeps on its own condition, so that a new call
 *   wakes only one HPU, which may run it.
 */
#include "hpu/sched_own.h"

#include "base/sys.h"
#include "hpu/dma.h"

#define QUANTUM_NS 20000 /* credit of a context for a round */
#define SPIN_NS 5000     /* about what it costs to wake a thread */
#define LONE_ROUNDS 64   /* resumptions in a row, with no new call to begin, before an HPU naps */
#define NAP_NS 50000     /* how long such a nap is */
/* slots that handlers of one context may hold while they wait for the NIC, for each slot that is
 * free */
#define OPS_SHARE 3

/* ---- queues ---- */

void hpu_queue_init(struct hpu_queue *q, uint64_t mask)
{
    *q = (struct hpu_queue){.mask = mask, .credit = QUANTUM_NS};
    list_init(&q->ready);
    list_init(&q->turn);
}

bool sched_may_run(const struct hpu_queue *q, unsigned hpu)
{
    return q->mask == 0 ||
           ((q->mask >> hpu & 1) != 0 && q->active < (unsigned)__builtin_popcountll(q->mask));
}

static void dequeue(struct hpu_exec *exec)
{
    struct hpu_queue *q = exec->queue;
    list_remove(&exec->link);
    if (--q->waiting == 0) {
        list_remove(&q->turn);
    }
}

/* Returns how many rounds a queue needs to have credit. */
static int64_t rounds_short(const struct hpu_queue *q)
{
    return q->credit > 0 ? 0 : -q->credit / QUANTUM_NS + 1;
}

static unsigned suspended_on(const struct hpu *h, const struct hpu_queue *of)
{
    unsigned count = 0;
    LIST_EACH(const struct hpu_exec, exec, &h->suspended, link) {
        count += of == NULL || (exec->queue == of && exec->wait == HPU_WAIT_OPS);
    }
    return count;
}

/* Whether a call of the queue leaves enough slots of the HPU to other queues: handlers of one queue
 * that wait for the NIC, for example for a peer that takes no messages, may hold OPS_SHARE times as
 * many slots as are then free. A queue that holds none there may take any that is free. An HPU that
 * begins no call for this reason has suspended handlers to resume, and asks again after that. */
static bool leaves_slots(const struct hpu *h, const struct hpu_queue *q, unsigned free)
{
    unsigned all = (unsigned)__builtin_popcountll(h->slots);
    unsigned most = OPS_SHARE * free; /* less OPS_SHARE, for the slot that the call itself takes */
    if (all - free + 1 + OPS_SHARE <= most) {
        return true; /* so even all handlers together hold no more */
    }
    unsigned own = suspended_on(h, q);
    return own == 0 || own + 1 + OPS_SHARE <= most;
}

/* Returns the queue whose call the HPU is to begin, or NULL. */
static struct hpu_queue *whose_turn(struct hpu *h)
{
    struct hpu_sched *s = h->sched;
    unsigned hpu = h->number, slots = (unsigned)__builtin_popcountll(h->slots);
    unsigned free = slots - suspended_on(h, NULL);
    struct hpu_queue *first = NULL;
    int64_t rounds = INT64_MAX;
    for (struct list *l = s->turn.next; l != &s->turn; l = l->next) {
        struct hpu_queue *q = container_of(l, struct hpu_queue, turn);
        if (sched_may_run(q, hpu) && leaves_slots(h, q, free) && rounds_short(q) < rounds) {
            first = q;
            rounds = rounds_short(q);
            if (rounds == 0) {
                return q;
            }
        }
    }
    for (struct list *l = s->turn.next; first != NULL && l != &s->turn; l = l->next) {
        struct hpu_queue *q = container_of(l, struct hpu_queue, turn);
        if (sched_may_run(q, hpu) && leaves_slots(h, q, free)) {
            q->credit += rounds * QUANTUM_NS;
            q->credit = q->credit < QUANTUM_NS ? q->credit : QUANTUM_NS;
        }
    }
    return first;
}

static void charge(struct hpu_sched *s, struct hpu_queue *q, int64_t ns)
{
    q->credit -= ns;
    if (q->credit <= 0 && q->waiting != 0) {
        list_remove(&q->turn);
        list_push_back(&s->turn, &q->turn);
    }
}

/* ---- one HPU ---- */

static struct hpu_exec *begin_one(struct hpu *h)
{
    struct hpu_queue *q = whose_turn(h);
    if (q == NULL) {
        return NULL;
    }
    struct hpu_exec *exec = container_of(q->ready.next, struct hpu_exec, link);
    exec->slots = h->slots;
    if (!hpu_exec_take(exec)) {
        return NULL; /* all slots of the HPU have suspended handlers */
    }
    dequeue(exec);
    q->active++;
    exec->hpu = h->number;
    exec->charged = q->expected;
    charge(h->sched, q, exec->charged);
    return exec;
}

static struct hpu_exec *resume_one(struct hpu *h)
{
    if (list_empty(&h->suspended)) {
        return NULL;
    }
    struct hpu_exec *exec = container_of(h->suspended.next, struct hpu_exec, link);
    list_remove(&exec->link);
    exec->charged = 0;
    return exec;
}

/* Returns the call that the HPU runs next, or NULL; it alternates between suspended handlers and
 * new calls. */
struct hpu_exec *sched_next(struct hpu *h)
{
    struct hpu_exec *exec = NULL;
    if (h->sched->paused != 0) {
        h->lone = 0;
        return NULL;
    }
    if (h->was_suspended) {
        exec = begin_one(h);
    }
    if (exec == NULL && (exec = resume_one(h)) != NULL) {
        h->lone = h->was_suspended ? h->lone + 1 : 0;
        h->was_suspended = true;
        return exec;
    }
    if (exec == NULL) {
        exec = begin_one(h);
    }
    h->was_suspended = false;
    h->lone = 0;
    return exec;
}

/* Makes progress when the HPU has only suspended handlers: for them to find something new when they
 * are resumed. */
static void push(struct hpu *h)
{
    struct hpu_sched *s = h->sched;
    mutex_give(&s->lock);
    s->ops->idle(s->arg);
    if (h->lone % LONE_ROUNDS == 0) {
        sys_nap(NAP_NS);
    } else {
        sys_yield();
    }
    mutex_take(&s->lock);
}

/* Returns for how much of `passed` the HPU's thread really ran. To ask the kernel costs as much as
 * a short handler, so it does that only for long times. */
static int64_t own_time(struct hpu *h, int64_t passed)
{
    if (passed < QUANTUM_NS) {
        h->since_sample += passed;
        return passed;
    }
    int64_t now = sys_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t used = now - h->sample - h->since_sample;
    h->sample = now;
    h->since_sample = 0;
    return used < 0 ? 0 : used < passed ? used : passed;
}

void sched_ran(struct hpu *h, struct hpu_exec *exec, int code, int64_t took)
{
    struct hpu_sched *s = h->sched;
    struct hpu_queue *q = exec->queue;
    charge(s, q, took - exec->charged);
    if (code == HPU_WAIT) {
        exec->place = HPU_PLACE_SUSPENDED;
        list_push_back(&h->suspended, &exec->link);
        return;
    }
    q->expected += (took - q->expected) / 8;
    q->active--;
    hpu_exec_give(exec);
    exec->place = HPU_PLACE_NOWHERE;
    mutex_give(&s->lock);
    s->ops->done(s->arg, exec, code);
    mutex_take(&s->lock);
}

/* Runs a call until it ends or is suspended. */
static void run_one(struct hpu *h, struct hpu_exec *exec)
{
    struct hpu_sched *s = h->sched;
    exec->place = HPU_PLACE_RUNNING;
    mutex_give(&s->lock);
    int64_t before = clock_ns();
    int code = hpu_exec_run(exec);
    int64_t took = own_time(h, clock_ns() - before);
    mutex_take(&s->lock);
    sched_ran(h, exec, code, took);
}

static void spin(struct hpu *h)
{
    struct hpu_sched *s = h->sched;
    unsigned called = atomic_load_explicit(&h->called, memory_order_relaxed);
    h->spinning = true;
    mutex_give(&s->lock);
    int64_t end = clock_ns() + SPIN_NS;
    while (atomic_load_explicit(&h->called, memory_order_relaxed) == called && clock_ns() < end) {
        cpu_pause();
    }
    mutex_take(&s->lock);
    h->spinning = false;
}

/* Sleeps until sched_wake(); the HPU has looked for work and found none. */
static void wait_for_work(struct hpu *h)
{
    h->asleep = true;
    while (h->asleep) {
        condition_wait(&h->work, &h->sched->lock);
    }
}

void *sched_thread(void *arg)
{
    struct hpu *h = arg;
    struct hpu_sched *s = h->sched;
    s->ops->begin(s->arg);
    mutex_take(&s->lock);
    bool spun = false;
    while (!s->stop) {
        if (h->lone != 0) {
            push(h);
        }
        struct hpu_exec *exec = sched_next(h);
        if (exec != NULL) {
            run_one(h, exec);
        } else if (!spun && s->paused == 0) {
            spin(h);
        } else {
            wait_for_work(h);
        }
        spun = exec == NULL && !spun;
    }
    mutex_give(&s->lock);
    return NULL;
}

/* ---- calls ---- */

void sched_wake(struct hpu_sched *s, const struct hpu_queue *q)
{
    bool woken = false;
    if (s->time != NULL) {
        sched_wake_virtual(s, q);
        return;
    }
    for (unsigned i = 0; i < s->hpus && !(woken && q != NULL); i++) {
        struct hpu *h = &s->hpu[i];
        if ((!h->asleep && !h->spinning) || (q != NULL && !sched_may_run(q, i))) {
            continue;
        }
        woken = true;
        if (h->spinning) {
            h->spinning = false;
            atomic_fetch_add_explicit(&h->called, 1, memory_order_relaxed);
        } else {
            h->asleep = false;
            condition_signal(&h->work);
        }
    }
}

static void submit(struct hpu_sched *s, struct hpu_queue *q, struct hpu_exec *exec, bool first)
{
    mutex_take(&s->lock);
    exec->queue = q;
    exec->place = HPU_PLACE_QUEUED;
    if (s->time != NULL) {
        sched_waits_virtual(s, exec);
    }
    list_insert_after(first ? &q->ready : q->ready.prev, &exec->link);
    if (q->waiting++ == 0) {
        list_push_back(&s->turn, &q->turn);
    }
    sched_wake(s, q);
    mutex_give(&s->lock);
}

void hpu_sched_submit(struct hpu_sched *s, struct hpu_queue *q, struct hpu_exec *exec)
{
    submit(s, q, exec, false);
}

void hpu_sched_submit_first(struct hpu_sched *s, struct hpu_queue *q, struct hpu_exec *exec)
{
    submit(s, q, exec, true);
}

static bool withdraw(struct hpu_exec *exec)
{
    if (exec->place != HPU_PLACE_QUEUED) {
        return false;
    }
    dequeue(exec);
    exec->place = HPU_PLACE_NOWHERE;
    return true;
}

bool hpu_sched_withdraw(struct hpu_sched *s, struct hpu_exec *exec)
{
    mutex_take(&s->lock);
    bool taken = withdraw(exec);
    mutex_give(&s->lock);
    return taken;
}

bool hpu_sched_cancel(struct hpu_sched *s, struct hpu_exec *exec)
{
    mutex_take(&s->lock);
    bool taken = withdraw(exec);
    if (exec->place == HPU_PLACE_SUSPENDED) {
        list_remove(&exec->link);
        exec->queue->active--;
        exec->place = HPU_PLACE_NOWHERE;
        mutex_give(&s->lock);
        hpu_dma_end(&exec->dmas, false);
        mutex_take(&s->lock);
        hpu_exec_cancel(exec);
        taken = true;
    }
    mutex_give(&s->lock);
    return taken;
}

bool hpu_sched_runs(struct hpu_sched *s, const struct hpu_exec *exec)
{
    mutex_take(&s->lock);
    bool runs = exec->place != HPU_PLACE_QUEUED && exec->place != HPU_PLACE_SUSPENDED;
    mutex_give(&s->lock);
    return runs;
}

void hpu_sched_end(struct hpu_sched *s, struct hpu_exec *exec)
{
    mutex_take(&s->lock);
    if (exec->place == HPU_PLACE_RUNNING) {
        hpu_exec_end(exec);
    }
    mutex_give(&s->lock);
}

unsigned hpu_queue_waiting(struct hpu_sched *s, const struct hpu_queue *q)
{
    mutex_take(&s->lock);
    unsigned waiting = q->waiting;
    mutex_give(&s->lock);
    return waiting;
}

void hpu_sched_pause(struct hpu_sched *s)
{
    mutex_take(&s->lock);
    s->paused++;
    mutex_give(&s->lock);
}

void hpu_sched_resume(struct hpu_sched *s)
{
    mutex_take(&s->lock);
    s->paused--;
    sched_wake(s, NULL);
    mutex_give(&s->lock);
}
