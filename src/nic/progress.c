/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress: who moves the NIC, and when it sleeps. docs/architecture.md, wall 1,
 * has the states and the invariants; this file is its private half.
 *
 * A program thread that polls or waits moves the NIC itself and says so in
 * `polled`. The NIC thread sleeps a lease at a time while that goes on, and
 * takes over when it stops.
 */
#include "nic/nic.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/sys.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#define GLANCES 16         /* looks without the lock between two with it */
#define CLOCK_ROUNDS 16    /* looks with the lock between two at the clock */
#define PROBE_NS 2000000   /* between two waits that forget what was learnt of spinning */
#define YIELD_PROBES 16    /* of these, one forgets what was learnt of yielding */
#define GLIMPSE_NS 5000    /* that a wait stays for cells emptied since it last had the core */
#define INVOKED_NS 5000000 /* between two looks of sleepers at what was invoked and waits */
#define FOLLOW_UPS 16      /* rounds of progress by an HPU between two handlers */
#define REPORT_NS 50000000 /* between two reports of a network on the board */
#define NET_SPIN 10        /* times PINWHEEL_SPIN_US: a wait while packets come from a network */
#define LEAVE_S 10         /* a thread that is to leave its wait does so within that */
#define DRAIN_EMPTY 3      /* looks at nothing before the NIC thread believes it */

/* Changes and rings the bell as a peer would. */
void nic_tell_news(struct nic *nic)
{
    nic->news.due = false;
    if (bell_asleep(atomic_load_explicit(nic->bell, memory_order_relaxed))) {
        atomic_fetch_or(nic->bell, BELL_RUNG);
    }
    futex_wake(nic->bell);
}

bool nic_advance(struct nic *nic)
{
    bool moved = nic->ops->poll(nic->fabric);
    if (rare(nic->net != NULL)) {
        moved |= nic->net_ops->poll(nic->net);
    }
    acks_advance(nic);
    moved |= trigger_run(nic);
    moved |= invoke_advance(nic);
    moved |= peers_advance(nic);
    if (rare(atomic_load_explicit(&nic->attention, memory_order_relaxed)) &&
        list_empty(&nic->busy) && list_empty(&nic->acks_due) && list_empty(&nic->fired) &&
        !invoke_waits(nic)) {
        atomic_store_explicit(&nic->attention, false, memory_order_relaxed);
    }
    return moved;
}

static void wake_thread(struct nic *nic)
{
    if (nic->thread_idle) {
        nic->thread_idle = false;
        eventfd_write(nic->wake_fd, 1);
    }
}

/* Both fabrics are ready for sleep, or none is. */
static bool arm(struct nic *nic, enum bell_kind kind, uint32_t *word)
{
    if (nic->net != NULL && !nic->net_ops->arm(nic->net, kind, word)) {
        return false;
    }
    if (nic->ops->arm(nic->fabric, kind, word)) {
        return true;
    }
    if (nic->net != NULL) {
        nic->net_ops->disarm(nic->net, true);
    }
    return false;
}

static void disarm(struct nic *nic, bool polled)
{
    nic->ops->disarm(nic->fabric, polled);
    if (nic->net != NULL) {
        nic->net_ops->disarm(nic->net, polled);
    }
}

void nic_take_over_asleep(struct nic *nic)
{
    nic_lock(nic);
    if ((atomic_load_explicit(nic->bell, memory_order_relaxed) & BELL_STATE) == BELL_ASLEEP_FD) {
        disarm(nic, true);
        wake_thread(nic);
    }
    nic_unlock(nic);
}

void nic_poll(struct nic *nic)
{
    nic_take_over(nic);
    bool moved = false;
    if (!nic_quiet(nic) && lock_try(&nic->lock)) {
        moved = nic_advance(nic);
        nic_unlock(nic);
    }
    nic_note_poll(nic, moved);
}

/* The time until somebody must look again without being rung, `most_ns` at the
 * most; negative: there is no need. */
static int64_t until_deadline(struct nic *nic, int64_t most_ns)
{
    int64_t deadlines[] = {nic->ops->next_deadline(nic->fabric), peers_deadline(nic),
                           nic->net != NULL ? nic->net_ops->next_deadline(nic->net) : -1};
    for (unsigned i = 0; i < 3; i++) {
        if (deadlines[i] >= 0) {
            int64_t left = deadlines[i] - clock_ns();
            left = left < 0 ? 0 : left;
            most_ns = most_ns < 0 || left < most_ns ? left : most_ns;
        }
    }
    if (!list_empty(&nic->invoked) && (most_ns < 0 || most_ns > INVOKED_NS)) {
        most_ns = INVOKED_NS;
    }
    return most_ns;
}

/* Sleeps until the bell rings, there is news or the time is over. */
static void sleep_on_bell(struct nic *nic, int64_t timeout_ns, struct ct_mark *mark)
{
    uint32_t word;
    if (!arm(nic, BELL_FUTEX, &word)) {
        nic_unlock(nic);
        return;
    }
    nic->news.due = false;
    nic->waiters++;
    if (mark != NULL) {
        list_push_back(&nic->counting, &mark->link);
    } else {
        nic->news.curious++;
    }
    timeout_ns = until_deadline(nic, timeout_ns);
    lock_give(&nic->lock);
    futex_wait(nic->bell, word, timeout_ns);
    atomic_store_explicit(&nic->polled, true, memory_order_relaxed);
    nic_lock(nic);
    nic->waiters--;
    if (mark != NULL) {
        list_remove(&mark->link);
    } else {
        nic->news.curious--;
    }
    uint32_t bell = atomic_load_explicit(nic->bell, memory_order_relaxed);
    if ((bell & BELL_STATE) == BELL_ASLEEP_FUTEX) {
        disarm(nic, true);
    }
    wake_thread(nic);
    nic_unlock(nic);
}

/* One wait of a program thread: it spins, then yields, then sleeps. */
struct patience {
    int64_t spin, yield;  /* how long it may spin, and yield after that */
    int64_t start, quiet; /* when it began, when something last happened */
    int64_t silence;      /* that it slept through */
    int64_t stay;         /* how long it may spin because peers empty our cells */
    bool yielded, slept;
    bool probe;      /* it forgets what was learnt */
    unsigned aborts; /* calls of PtlAbort when it began */
    struct ni *ni;   /* whose it is, NULL: the NIC's own */
    bool counted;    /* in ni->waiting */
    struct ct_mark *mark;
};

/* What pays depends on where the peer runs. On another core, spinning does; on this
 * one it only keeps the peer away, yielding hands the core over, unless the scheduler
 * has the two in different groups: then only sleeping does. So each stage that did not
 * end a wait gets half the time in the next one, and the one that did gets double, up
 * to PINWHEEL_SPIN_US and PINWHEEL_YIELD_US; but a silence that was longer than those
 * that were slept through is no success. Peers move and change: every PROBE_NS a
 * wait may spin as long as ever again, and every YIELD_PROBES-th of these yield, too.
 * A peer that empties our cells rings for each few of them if we sleep, which costs both of us
 * more than the wait: as long as it does so while we look on, we stay, whatever was learnt. */
static int64_t learnt(int64_t before, bool failed, int64_t most)
{
    int64_t next = failed ? before / 2 : before * 2 + 1000;
    return next < most ? next : most;
}

/* How long a wait may spin. An answer from a network takes longer, and so does it to be woken
 * by one. */
static int64_t most_spin(const struct nic *nic)
{
    int64_t most = nic->process->options.number[OPT_SPIN_US] * 1000;
    return nic->net != NULL && nic->net_ops->peek(nic->net) ? most * NET_SPIN : most;
}

/* Begins a wait with what was learnt; a probe spins, or spins and yields, in full. */
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

/* A probe that failed leaves what was learnt as it was. */
static void learn(struct nic *nic, const struct patience *p)
{
    const int64_t *limit = nic->process->options.number;
    int64_t spin_most = most_spin(nic), yield_most = limit[OPT_YIELD_US] * 1000;
    bool spun_in_vain = p->yielded || p->slept;
    if (!spun_in_vain && p->start == 0 && p->spin >= spin_most && !p->probe) {
        return; /* it was over before anybody looked at the clock */
    }
    int64_t now = p->start != 0 ? clock_ns() : 0;
    int64_t slept = atomic_load_explicit(&nic->slept_ns, memory_order_relaxed);
    if (p->slept) {
        slept = slept == 0 ? p->silence : (3 * slept + p->silence) / 4;
        atomic_store_explicit(&nic->slept_ns, slept, memory_order_relaxed);
    }
    /* A message that came because the scheduler took the core away was not worth it. */
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

enum bide { BIDE_GO_ON, BIDE_READY, BIDE_TIME_OVER, BIDE_CLOSED };

static bool aborted(const struct nic *nic, const struct patience *p)
{
    return atomic_load_explicit(&nic->process->aborts, memory_order_relaxed) != p->aborts;
}

static bool is_closing(const struct patience *p)
{
    return p->ni != NULL && p->ni->closing;
}

/* Looks at the clock and gives the core away if it is time for that. ready() may
 * take what it finds, so it is not asked again once it said yes. */
static enum bide bide(struct nic *nic, struct patience *p, bool moved, bool (*ready)(void *arg),
                      void *arg, int64_t timeout_ns)
{
    int64_t now = clock_ns();
    p->start = p->start == 0 ? now : p->start;
    p->quiet = moved || p->quiet == 0 ? now : p->quiet;
    int64_t left = timeout_ns < 0 ? -1 : timeout_ns - (now - p->start);
    if (timeout_ns >= 0 && left <= 0) {
        return BIDE_TIME_OVER;
    }
    if (now - p->quiet < (p->stay > p->spin ? p->stay : p->spin)) {
        return BIDE_GO_ON;
    }
    p->stay = 0;
    if (now - p->quiet < p->spin + p->yield) {
        p->yielded = true;
        sched_yield();
        return BIDE_GO_ON;
    }
    p->slept = true;
    nic_lock(nic);
    bool done = ready(arg), closing = is_closing(p);
    if (done || closing || aborted(nic, p)) {
        nic_unlock(nic);
        return done ? BIDE_READY : closing ? BIDE_CLOSED : BIDE_GO_ON;
    }
    sleep_on_bell(nic, left, p->mark);
    now = clock_ns();
    p->silence = now - p->quiet;
    p->quiet = now;
    return BIDE_GO_ON;
}

/* Glances until something comes, for about a tenth of a microsecond. */
static void glance(struct nic *nic)
{
    for (int i = 0; i < GLANCES && nic_quiet(nic); i++) {
        load_fence();
    }
}

/* A wait that looked once in vain counts in its NI, which stays for it; the last that it touches
 * of either is the lock. Lock held. */
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
        nic->news.due |= p->ni->closing; /* for who closes it */
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

static int wait_for(struct nic *nic, struct ni *ni, bool (*ready)(void *arg), void *arg,
                    int64_t timeout_ns, int over, struct ct_mark *mark)
{
    struct patience p = new_patience(nic);
    p.mark = mark;
    p.ni = ni;
    bool patient = p.spin != 0 && timeout_ns != 0;
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
        /* The clock costs more than a look. */
        bool look = !patient || round % CLOCK_ROUNDS == 0;
        if (look && nic->ops->flows(nic->fabric)) {
            moved = true;
            p.stay = p.stay != 0 ? most_spin(nic) : GLIMPSE_NS;
        }
        nic_unlock(nic);
        enum bide next = closing ? BIDE_CLOSED : BIDE_GO_ON;
        if (!closing && !look) {
            glance(nic);
        } else if (!closing) {
            next = bide(nic, &p, moved, ready, arg, timeout_ns);
        }
        if (next == BIDE_READY) {
            learn(nic, &p);
            return leave(nic, &p, PTL_OK);
        }
        if (next == BIDE_TIME_OVER) {
            return leave(nic, &p, over);
        }
        if (next == BIDE_CLOSED) {
            return leave(nic, &p, PTL_ARG_INVALID);
        }
        if (aborted(nic, &p)) {
            return leave(nic, &p, PTL_ABORTED);
        }
    }
}

int ni_wait_abort(struct ni *ni, bool (*ready)(void *arg), void *arg, int64_t timeout_ns, int over)
{
    return wait_for(ni->nic, ni, ready, arg, timeout_ns, over, NULL);
}

int ni_wait_mark(struct ni *ni, bool (*ready)(void *arg), void *arg, struct ct_mark *mark)
{
    return wait_for(ni->nic, ni, ready, arg, -1, PTL_FAIL, mark);
}

bool nic_wait(struct nic *nic, bool (*ready)(void *arg), void *arg, int64_t timeout_ns)
{
    int rc;
    do {
        rc = wait_for(nic, NULL, ready, arg, timeout_ns, PTL_FAIL, NULL);
    } while (rc == PTL_ABORTED);
    return rc == PTL_OK;
}

static bool nobody_waits(void *arg)
{
    return ((struct ni *)arg)->waiting == 0;
}

bool ni_end_waits(struct ni *ni)
{
    struct nic *nic = ni->nic;
    nic_lock(nic);
    ni->closing = true;
    nic->news.due = true;
    nic_unlock(nic);
    return nic_wait(nic, nobody_waits, ni, LEAVE_S * 1000000000ll);
}

bool nic_linger(struct nic *nic, bool (*ready)(void *arg), void *arg)
{
    int64_t end = nic->linger_end;
    if (end == 0) {
        end = clock_ns() + nic->process->options.number[OPT_LINGER_MS] * 1000000;
        nic->linger_end = end;
    }
    do {
        if (nic_wait(nic, ready, arg, 1000000)) {
            return true;
        }
    } while (clock_ns() < end);
    return false;
}

/* ---- the NIC thread ---- */

/* Works until nothing is left to do, letting others at the lock in between. */
static void drain(struct nic *nic)
{
    for (int empty = 0; empty < DRAIN_EMPTY && !nic->stop;) {
        empty = nic_advance(nic) ? 0 : empty + 1;
        nic_unlock(nic);
        nic_lock(nic);
    }
}

void nic_follow_up(struct nic *nic)
{
    for (int round = 0; round < FOLLOW_UPS; round++) {
        if (!nic_advance(nic)) {
            return;
        }
        nic_unlock(nic);
        nic_lock(nic);
    }
    /* There is more, and handlers wait: somebody else is to go on. */
    atomic_store_explicit(&nic->attention, true, memory_order_relaxed);
    nic->news.due = true;
    nic->events_due = true;
    eventfd_write(nic->wake_fd, 1);
}

static int whole_ms(int64_t ns)
{
    return ns < 0 ? -1 : (int)((ns + 999999) / 1000000);
}

/* Has the network's figures put on the board, now and then. */
static void report_net(struct nic *nic)
{
    int64_t now = clock_ns();
    if (nic->net != NULL && now - nic->reported >= REPORT_NS) {
        nic->reported = now;
        nic->net_ops->report(nic->net, &nic->board->net);
    }
}

/* Decides how the NIC thread sleeps next; false: not at all. Lock held. */
static bool settle(struct nic *nic, int *timeout_ms)
{
    uint32_t word;
    uint32_t bell = atomic_load_explicit(nic->bell, memory_order_relaxed);
    report_net(nic);
    /* A program thread sleeps on the bell: it will be there when it rings. But no packet
     * rings it: the socket is for this thread to watch. */
    bool guarded = (bell & BELL_STATE) == BELL_ASLEEP_FUTEX;
    if (guarded && nic->net != NULL && !nic->net_ops->arm(nic->net, BELL_FUTEX, &word)) {
        nic->events_due = true;
        return false;
    }
    /* A thread in a handler comes back to what it works on, which nobody else can take; to try
     * to sleep over that again and again would cost it its core. */
    if (atomic_exchange_explicit(&nic->polled, false, memory_order_relaxed) || nic->unlocked != 0) {
        int64_t lease = nic->process->options.number[OPT_LEASE_US] * 1000;
        *timeout_ms = whole_ms(until_deadline(nic, lease));
        return true;
    }
    if (!guarded && !arm(nic, BELL_FD, &word)) {
        return false;
    }
    nic->thread_idle = true;
    *timeout_ms = whole_ms(until_deadline(nic, -1));
    return true;
}

static void sleep_in_epoll(struct nic *nic, int timeout_ms)
{
    struct epoll_event events[3];
    nic_unlock(nic);
    int n = epoll_wait(nic->thread_epoll, events, 3, timeout_ms);
    nic_lock(nic);
    nic->thread_idle = false;
    for (int i = 0; i < n; i++) {
        if (events[i].data.fd == nic->wake_fd) {
            eventfd_t value;
            eventfd_read(nic->wake_fd, &value);
            continue;
        }
        nic->events_due = true;
        if (nic->net != NULL && events[i].data.fd == nic->net_ops->fd(nic->net)) {
            nic->net_ops->fd_event(nic->net);
        } else {
            nic->ops->fd_event(nic->fabric);
        }
    }
    uint32_t bell = atomic_load_explicit(nic->bell, memory_order_relaxed);
    if ((bell & BELL_STATE) == BELL_ASLEEP_FD) {
        disarm(nic, false);
    }
}

static void *nic_thread(void *arg)
{
    struct nic *nic = arg;
    process_enter(nic->process);
    fault_thread_stack();
    nic_lock(nic);
    while (!nic->stop) {
        int timeout_ms;
        if (!atomic_load_explicit(&nic->polled, memory_order_relaxed) || nic->events_due ||
            nic->stalled) {
            nic->events_due = nic->stalled = false;
            drain(nic);
        }
        if (!nic->stop && settle(nic, &timeout_ms)) {
            sleep_in_epoll(nic, timeout_ms);
        }
    }
    nic_unlock(nic);
    return NULL;
}

static int add_fd(struct nic *nic, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return epoll_ctl(nic->thread_epoll, EPOLL_CTL_ADD, fd, &event);
}

int progress_start(struct nic *nic)
{
    nic->thread_epoll = epoll_create1(EPOLL_CLOEXEC);
    nic->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (nic->thread_epoll < 0 || nic->wake_fd < 0 || add_fd(nic, nic->wake_fd) != 0 ||
        add_fd(nic, nic->ops->fd(nic->fabric)) != 0 ||
        (nic->net != NULL && add_fd(nic, nic->net_ops->fd(nic->net)) != 0)) {
        return -errno;
    }
    /* Signals are the program's; faults of the thread's own must reach it. */
    sigset_t all, before;
    sigfillset(&all);
    fault_keep(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&nic->thread, NULL, nic_thread, nic);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -rc;
}

void progress_stop(struct nic *nic)
{
    nic_lock(nic);
    nic->stop = true;
    eventfd_write(nic->wake_fd, 1);
    nic_unlock(nic);
    pthread_join(nic->thread, NULL);
    close(nic->thread_epoll);
    close(nic->wake_fd);
}
