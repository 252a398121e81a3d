/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits of program threads. A waiting thread moves the NIC itself; when nothing comes it spins,
 * then yields, then sleeps on the doorbell (progress.c), for times that it learns from earlier
 * waits. */
#include "nic/wait.h"

#include "base/killpoint.h"
#include "base/sys.h"
#include "nic/progress.h"

#define GLANCES 16       /* looks without the lock between two with it */
#define CLOCK_ROUNDS 16  /* looks with the lock between two readings of the clock */
#define PROBE_NS 2000000 /* between two waits that ignore what was learned of spinning */
/* one in so many of these waits also ignores what was learned of yielding */
#define YIELD_PROBES 16
/* how long a wait goes on spinning after a look at which peers had emptied its cells */
#define GLIMPSE_NS 5000
/* factor of PINWHEEL_SPIN_US for a wait while packets come from a network */
#define NET_SPIN 10

__thread struct handler_time handler_time __attribute__((tls_model("initial-exec")));

/* One wait of a program thread: it spins, then yields, then sleeps. */
struct patience {
    int64_t spin, yield;  /* how long it may spin, and after that yield */
    int64_t start, quiet; /* when it first read the clock, and when something last happened */
    int64_t silence;      /* how long it slept with nothing happening */
    int64_t stay;         /* how long it may spin because peers empty its cells */
    bool yielded, slept;
    bool probe;      /* it ignores what was learned */
    unsigned aborts; /* calls of PtlAbort when it began */
    struct ni *ni;   /* the interface that it is for; NULL: only the NIC */
    int over;        /* the code that it returns when its time is over */
    bool counted;    /* in ni->waiting */
    struct ct_mark *mark;
};

/* Returns for how long the next wait spins (or yields), by whether that has paid this time. That
 * depends on where the peer runs. If on another core, spinning pays; if on this one, spinning only
 * keeps the peer away, and yielding hands it the core, unless the scheduler has the two in
 * different groups: then only sleeping does. So a wait halves the time of a stage in which its
 * message did not come, and doubles that of the stage in which it came, up to PINWHEEL_SPIN_US and
 * PINWHEEL_YIELD_US. A message after a silence longer than waits that end asleep usually have does
 * not count as success. Since peers move and change, every PROBE_NS a wait may spin for the full
 * time, and every YIELD_PROBES-th of these may yield for it, too. A peer that empties this
 * process's cells rings the doorbell for each few of them if the thread sleeps, which costs both
 * more than waiting does: so as long as it does that, the thread spins on, whatever was learned. */
static int64_t learnt(int64_t before, bool failed, int64_t most)
{
    int64_t next = failed ? before / 2 : before * 2 + 1000;
    return next < most ? next : most;
}

/* Returns how long a wait may spin. It is longer while packets come from a network: an answer from
 * there takes longer, and so does a wake-up. */
static inline __attribute__((always_inline)) int64_t most_spin(const struct nic *nic)
{
    int64_t most = nic->process->options.number[OPT_SPIN_US] * 1000;
    struct fabric *net = nic->net;
    return net != NULL && nic->net_ops->peek(net) ? most * NET_SPIN : most;
}

/* Begins a wait: it spins and yields for the times that earlier waits have learned. One wait every
 * PROBE_NS is a probe: it spins for the full time, or spins and yields for it. */
static struct patience new_patience(struct nic *nic)
{
    const int64_t *limit = nic->process->options.number;
    struct patience p = {
        .spin = atomic_load_explicit(&nic->spin_ns, memory_order_relaxed),
        .yield = atomic_load_explicit(&nic->yield_ns, memory_order_relaxed),
        .aborts = atomic_load_explicit(&nic->process->aborts, memory_order_relaxed),
    };
    if (atomic_load_explicit(&nic->probe_due, memory_order_relaxed)) {
        unsigned probes = atomic_load_explicit(&nic->probes, memory_order_relaxed) + 1;
        atomic_store_explicit(&nic->probes, probes, memory_order_relaxed);
        atomic_store_explicit(&nic->probe_due, false, memory_order_relaxed);
        p.probe = true;
        p.spin = most_spin(nic);
        p.yield = probes % YIELD_PROBES == 0 ? limit[OPT_YIELD_US] * 1000 : p.yield;
    }
    return p;
}

/* Learns from a wait that has ended. A probe that has failed changes nothing. */
static void learn(struct nic *nic, const struct patience *p)
{
    const int64_t *limit = nic->process->options.number;
    int64_t spin_most = most_spin(nic), yield_most = limit[OPT_YIELD_US] * 1000;
    bool spun_in_vain = p->yielded || p->slept;
    if (!spun_in_vain && p->start == 0 && p->spin >= spin_most && !p->probe) {
        return; /* it ended before it read the clock, and there is nothing to learn */
    }
    int64_t now = p->start != 0 ? clock_ns() : 0;
    int64_t slept = atomic_load_explicit(&nic->slept_ns, memory_order_relaxed);
    if (p->slept) {
        slept = slept == 0 ? p->silence : (3 * slept + p->silence) / 4;
        atomic_store_explicit(&nic->slept_ns, slept, memory_order_relaxed);
    }
    /* If the message came only because the scheduler took the core away, spinning was not worth
     * it. */
    bool too_long = p->start != 0 && slept != 0 && now - p->quiet > slept;
    bool yielded_in_vain = p->slept || too_long;
    spun_in_vain |= too_long;
    if (!p->probe || !spun_in_vain) {
        atomic_store_explicit(&nic->spin_ns, learnt(p->spin, spun_in_vain, spin_most),
                              memory_order_relaxed);
    }
    if ((p->yielded || p->slept) && (!p->probe || !yielded_in_vain)) {
        atomic_store_explicit(&nic->yield_ns, learnt(p->yield, yielded_in_vain, yield_most),
                              memory_order_relaxed);
    }
    if (now != 0 && now >= atomic_load_explicit(&nic->probe_at, memory_order_relaxed)) {
        atomic_store_explicit(&nic->probe_at, now + PROBE_NS, memory_order_relaxed);
        atomic_store_explicit(&nic->probe_due, true, memory_order_relaxed);
    }
}

enum { GO_ON = -1 }; /* not a PTL_ code: the wait goes on */

static bool aborted(const struct nic *nic, const struct patience *p)
{
    return atomic_load_explicit(&nic->process->aborts, memory_order_relaxed) != p->aborts;
}

static bool is_closing(const struct patience *p)
{
    return p->ni != NULL && p->ni->closing;
}

/* Whether the wait polls on because it is apart from its peers (place.h). */
static __attribute__((noinline)) bool keeps_apart(struct nic *nic, struct patience *p, int64_t now)
{
    if (!place_leave(nic, now)) {
        return now - p->quiet < place_stay(nic, now);
    }
    p->spin = most_spin(nic);
    atomic_store_explicit(&nic->spin_ns, p->spin, memory_order_relaxed);
    p->quiet = clock_ns(); /* to move to the other core may have taken a while */
    return true;
}

/* Tells virtual time what a wait is for. */
static void tell_wait(struct nic *nic, const struct patience *p)
{
    struct fabric_waits w = {.counter = p->mark != NULL};
    if (p->mark != NULL) {
        w.handle = p->mark->ct->slot.handle;
        w.counted = atomic_load_explicit(&p->mark->ct->success, memory_order_relaxed);
        w.wanted = p->mark->success;
    }
    const struct unexpected_header *oldest = NULL;
    bool any = p->ni != NULL && p->ni->unexpected.opened != 0; /* were there ever headers? */
    for (uint32_t i = 0; any && oldest == NULL && ni_has_pt(p->ni, i); i++) {
        const struct pt *pt = ni_pt(p->ni, i);
        oldest = pt->allocated ? pt->unexpected.first : NULL;
        w.pt = i;
    }
    if (oldest != NULL) {
        w.unmatched = true;
        w.nid = oldest->key.nid;
        w.pid = oldest->key.pid;
        w.bits = oldest->key.bits;
    }
    nic->time->waits_for(nic->fabric, &w);
}

/* bide() of a NIC in virtual time: lets time pass until something has happened. Something may have
 * happened since the caller looked, when the time passed that the program had used. */
static int bide_in_time(struct nic *nic, const struct patience *p, bool (*ready)(void *arg),
                        void *arg, int64_t end)
{
    int64_t left = end < 0 ? -1 : end - nic->now();
    if (end >= 0 && left <= 0) {
        return p->over;
    }
    nic_lock(nic);
    nic->time->settle(nic->fabric);
    bool done = ready(arg);
    if (!done && !is_closing(p) && !aborted(nic, p)) {
        int64_t most = progress_deadline(nic, left);
        tell_wait(nic, p);
        nic->time->wait(nic->fabric, most < 0 ? -1 : nic->now() + most);
    }
    nic_unlock(nic);
    return done ? PTL_OK : GO_ON;
}

/* Reads the clock, and spins on, yields or sleeps, whichever it is time for. Returns the code of
 * the wait, or GO_ON. ready() may take an event, so it is not called again once it has returned
 * true. */
static int bide(struct nic *nic, struct patience *p, bool moved, bool (*ready)(void *arg),
                void *arg, int64_t end)
{
    if (nic->time != NULL) {
        return bide_in_time(nic, p, ready, arg, end);
    }
    int64_t now = clock_ns();
    p->start = p->start == 0 ? now : p->start;
    p->quiet = moved || p->quiet == 0 ? now : p->quiet;
    int64_t left = end < 0 ? -1 : end - now;
    if (end >= 0 && left <= 0) {
        return p->over;
    }
    if (now - p->quiet < (p->stay > p->spin ? p->stay : p->spin)) {
        return GO_ON;
    }
    if (keeps_apart(nic, p, now)) {
        return GO_ON;
    }
    p->stay = 0;
    if (now - p->quiet < p->spin + p->yield) {
        p->yielded = true;
        sys_yield();
        return GO_ON;
    }
    p->slept = true;
    nic_lock(nic);
    bool done = ready(arg), closing = is_closing(p);
    if (done || closing || aborted(nic, p)) {
        nic_unlock(nic);
        return done ? PTL_OK : closing ? PTL_ARG_INVALID : GO_ON;
    }
    nic_sleep_on_doorbell(nic, left, p->mark);
    now = clock_ns();
    p->silence = now - p->quiet;
    p->quiet = now;
    return GO_ON;
}

/* Looks without the lock until something comes, for about a tenth of a microsecond. */
static void glance(struct nic *nic)
{
    for (int i = 0; i < GLANCES && nic_quiet(nic); i++) {
        load_fence();
    }
}

/* A wait that has looked once in vain is counted in its NI, which stays open until count_out().
 * After that the thread touches nothing of NI and NIC but the lock, to release it. Lock held. */
static void count_in(struct patience *p)
{
    if (p->ni != NULL && !p->counted) {
        p->ni->waiting++;
        p->counted = true;
    }
}

static void count_out(struct nic *nic, struct patience *p)
{
    if (p->counted) {
        p->ni->waiting--;
        p->counted = false;
        nic->wakeup.due |= p->ni->closing; /* for the thread that closes the NI */
    }
}

static int leave(struct nic *nic, struct patience *p, int rc)
{
    if (p->counted) {
        nic_lock(nic);
        count_out(nic, p);
        nic_unlock(nic);
    }
    return rc;
}

/* Returns when a wait is over; negative: never, 0: after one look. */
static int64_t end_of(const struct nic *nic, int64_t timeout_ns)
{
    return timeout_ns > 0 ? nic->now() + timeout_ns : timeout_ns;
}

static int wait_for(struct nic *nic, struct ni *ni, bool (*ready)(void *arg), void *arg,
                    int64_t end, int over, struct ct_mark *mark)
{
    struct patience p = new_patience(nic);
    PAUSE_POINT("waits");
    p.mark = mark;
    p.ni = ni;
    p.over = over;
    bool patient = p.spin != 0 && end != 0;
    for (unsigned round = 1;; round++) {
        nic_take_over(nic);
        nic_lock(nic);
        bool moved = nic_advance(nic);
        bool done = ready(arg), closing = is_closing(&p);
        if (done) {
            learn(nic, &p);
            count_out(nic, &p);
            nic_unlock(nic);
            return PTL_OK;
        }
        count_in(&p);
        /* To read the clock costs more than a look, so that is rarer. */
        bool look = !patient || round % CLOCK_ROUNDS == 0 || handler_time.over;
        if (look && nic->ops->home->flows(nic->fabric)) {
            moved = true;
            p.stay = p.stay != 0 ? most_spin(nic) : GLIMPSE_NS;
        }
        nic_unlock(nic);
        int rc = closing ? PTL_ARG_INVALID : GO_ON;
        if (!closing && !look) {
            glance(nic);
        } else if (!closing) {
            rc = bide(nic, &p, moved, ready, arg, end);
        }
        if (rc == PTL_OK) {
            learn(nic, &p);
        }
        if (rc == GO_ON && aborted(nic, &p)) {
            rc = PTL_ABORTED;
        }
        if (rc != GO_ON) {
            return leave(nic, &p, rc);
        }
    }
}

int ni_wait_abort(struct ni *ni, bool (*ready)(void *arg), void *arg, int64_t timeout_ns, int over)
{
    int64_t end = end_of(ni->nic, timeout_ns);
    handler_time = (struct handler_time){.end = end > 0 ? end : 0};
    int rc = wait_for(ni->nic, ni, ready, arg, end, over, NULL);
    handler_time = (struct handler_time){.end = 0};
    return rc;
}

int ni_wait_mark(struct ni *ni, bool (*ready)(void *arg), void *arg, struct ct_mark *mark)
{
    return wait_for(ni->nic, ni, ready, arg, -1, PTL_FAIL, mark);
}

bool nic_wait(struct nic *nic, bool (*ready)(void *arg), void *arg, int64_t timeout_ns)
{
    int rc;
    do {
        rc = wait_for(nic, NULL, ready, arg, end_of(nic, timeout_ns), PTL_FAIL, NULL);
    } while (rc == PTL_ABORTED);
    return rc == PTL_OK;
}

void ni_end_waits(struct ni *ni)
{
    struct nic *nic = ni->nic;
    nic_lock(nic);
    ni->closing = true;
    nic->wakeup.due = true;
    nic_unlock(nic);
}

bool nic_linger(struct nic *nic, bool (*ready)(void *arg), void *arg)
{
    int64_t end = nic->linger_end;
    if (end == 0) {
        end = nic->now() + nic->process->options.number[OPT_LINGER_MS] * 1000000;
        nic->linger_end = end;
    }
    do {
        if (nic_wait(nic, ready, arg, 1000000)) {
            return true;
        }
    } while (nic->now() < end);
    return false;
}
