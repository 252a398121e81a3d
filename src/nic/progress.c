/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Progress: which thread moves the NIC, and when the NIC thread sleeps. docs/architecture.md,
 * invariant set 1, has the states and the invariants; this file is its private half.
 *
 * A program thread that polls or waits moves the NIC itself, and notes that in `polled`. While this
 * goes on the NIC thread sleeps a lease at a time; it takes over when the polling stops.
 */
#include "nic/progress.h"

#include "base/cancel.h"
#include "base/fault.h"
#include "base/forks.h"
#include "base/killpoint.h"
#include "base/sys.h"
#include "base/thread.h"
#include "nic/deliver.h"
#include "nic/peer.h"
#include "nic/process.h"
#include "nic/spin_calls.h"
#include "nic/trigger.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>

#define INVOKED_NS 5000000 /* between two looks of a sleeping thread at invocations that wait */
#define FOLLOW_UPS 16      /* rounds of progress that an HPU makes between two handlers */
/* between two times at which the NIC thread puts a network's figures on the stats page */
#define REPORT_NS 50000000
/* the NIC thread goes to sleep after so many looks in a row that find nothing */
#define DRAIN_EMPTY 3

/* Wakes sleeping threads as a peer would: changes the doorbell, and rings it. */
void nic_wake_sleepers(struct nic *nic)
{
    nic->wakeup.due = false;
    if (nic->time != NULL) {
        nic->time->changed(nic->fabric);
        nic->time->settle(nic->fabric);
        return;
    }
    if (doorbell_asleep(atomic_load_explicit(nic->doorbell, memory_order_relaxed))) {
        atomic_fetch_or(nic->doorbell, DOORBELL_RUNG);
    }
    futex_wake(nic->doorbell);
}

/* Sends acks and operations that have waited for room. Those that make them wait set
 * `attention`. */
static __attribute__((noinline)) bool advance_rest(struct nic *nic)
{
    acks_advance(nic);
    bool moved = !list_empty(&nic->busy) && peers_advance(nic);
    if (list_empty(&nic->busy) && list_empty(&nic->acks_due) && list_empty(&nic->fired) &&
        !invoke_waits(nic)) {
        atomic_store_explicit(&nic->attention, false, memory_order_relaxed);
    }
    return moved;
}

bool nic_advance(struct nic *nic)
{
    bool moved = nic->ops->poll(nic->fabric);
    if (unlikely(nic->net != NULL)) {
        moved |= nic->net_ops->poll(nic->net);
    }
    moved |= trigger_run(nic);
    moved |= invoke_advance(nic);
    bool more = atomic_load_explicit(&nic->attention, memory_order_relaxed);
    return unlikely(more) ? advance_rest(nic) | moved : moved;
}

static void nudge_thread(struct nic *nic)
{
    uint64_t one = 1;
    int cancel = cancel_off();
    sys_write(nic->wake_fd, &one, sizeof(one));
    cancel_back(cancel);
}

static void wake_thread(struct nic *nic)
{
    if (nic->thread_idle) {
        nic->thread_idle = false;
        nudge_thread(nic);
    }
}

/* Makes both fabrics ready for the thread's sleep, or none: then it returns false, and must not
 * sleep. */
static bool arm(struct nic *nic, enum doorbell_kind kind, uint32_t *word)
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
    if ((atomic_load_explicit(nic->doorbell, memory_order_relaxed) & DOORBELL_STATE) ==
        DOORBELL_ASLEEP_FD) {
        disarm(nic, true);
        wake_thread(nic);
        place_hold(nic);
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

void nic_poll_all(struct nic *nic)
{
    for (unsigned i = 0; i < FABRIC_POLLS_ALL; i++) {
        nic_poll(nic);
    }
}

int64_t progress_deadline(struct nic *nic, int64_t most_ns)
{
    int64_t deadlines[] = {nic->ops->next_deadline(nic->fabric), peers_deadline(nic),
                           nic->net != NULL ? nic->net_ops->next_deadline(nic->net) : -1};
    for (unsigned i = 0; i < 3; i++) {
        if (deadlines[i] >= 0) {
            int64_t left = deadlines[i] - nic->now();
            left = left < 0 ? 0 : left;
            most_ns = most_ns < 0 || left < most_ns ? left : most_ns;
        }
    }
    if (!list_empty(&nic->invoked) && (most_ns < 0 || most_ns > INVOKED_NS)) {
        most_ns = INVOKED_NS;
    }
    return most_ns;
}

void nic_sleep_on_doorbell(struct nic *nic, int64_t timeout_ns, struct ct_mark *mark)
{
    uint32_t word;
    if (!arm(nic, DOORBELL_FUTEX, &word)) {
        nic_unlock(nic);
        return;
    }
    nic->wakeup.due = false;
    nic->waiters++;
    if (mark != NULL) {
        list_push_back(&nic->counting, &mark->link);
    } else {
        nic->wakeup.any_change++;
    }
    timeout_ns = progress_deadline(nic, timeout_ns);
    place_sleeps(nic, true);
    lock_give(&nic->lock);
    PAUSE_POINT("sleeps");
    futex_wait(nic->doorbell, word, timeout_ns);
    atomic_store_explicit(&nic->polled, true, memory_order_relaxed);
    nic_lock(nic);
    place_sleeps(nic, false);
    nic->waiters--;
    if (mark != NULL) {
        list_remove(&mark->link);
    } else {
        nic->wakeup.any_change--;
    }
    uint32_t doorbell = atomic_load_explicit(nic->doorbell, memory_order_relaxed);
    if ((doorbell & DOORBELL_STATE) == DOORBELL_ASLEEP_FUTEX) {
        disarm(nic, true);
    }
    wake_thread(nic);
    nic_unlock(nic);
}

/* ---- the NIC thread ---- */

/* Makes progress until nothing is left to do; other threads may take the lock between two
 * rounds. */
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
    /* The HPU has handlers to run, and the NIC has more to do: another thread is to go on with
     * that. */
    atomic_store_explicit(&nic->attention, true, memory_order_relaxed);
    nic->wakeup.due = true;
    nic->events_due = true;
    nudge_thread(nic);
}

/* ---- timers of handlers, by a timerfd ---- */

static int add_fd(struct nic *nic, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    return sys_epoll_ctl(nic->thread_epoll, EPOLL_CTL_ADD, fd, &event);
}

int progress_have_alarm(struct nic *nic)
{
    if (nic->alarm_fd < 0 && nic->time == NULL) {
        int fd = forks_open(
            (int)SYS_CALL(SYS_timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
        int rc = fd < 0 ? fd : add_fd(nic, fd);
        if (rc != 0) {
            forks_close(fd);
            return rc;
        }
        nic->alarm_fd = fd;
    }
    return 0;
}

void progress_wake_at(struct nic *nic, int64_t due)
{
    struct itimerspec at = {.it_value = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000}};
    if (due < 0) {
        at.it_value = (struct timespec){0, 0}; /* disarms it */
    }
    SYS_CALL(SYS_timerfd_settime, nic->alarm_fd, TFD_TIMER_ABSTIME, &at, NULL);
}

/* ---- how the NIC thread sleeps ---- */

static int whole_ms(int64_t ns)
{
    return ns < 0 ? -1 : (int)((ns + 999999) / 1000000);
}

/* Puts the network's figures on the stats page, if the last ones are old. */
static void report_net(struct nic *nic)
{
    int64_t now = clock_ns();
    if (nic->net != NULL && now - nic->reported >= REPORT_NS) {
        nic->reported = now;
        nic->net_ops->report(nic->net, &nic->stats->net);
    }
}

/* Decides how long the NIC thread sleeps next; false: it must not sleep. Lock held. */
static bool settle(struct nic *nic, int *timeout_ms)
{
    uint32_t word;
    uint32_t doorbell = atomic_load_explicit(nic->doorbell, memory_order_relaxed);
    int64_t lease = nic->process->options.number[OPT_LEASE_US] * 1000;
    report_net(nic);
    /* A program thread sleeps on the doorbell, and wakes when a peer rings it. But packets of a
     * network ring nothing, so the NIC thread watches the socket. */
    bool guarded = (doorbell & DOORBELL_STATE) == DOORBELL_ASLEEP_FUTEX;
    if (guarded && nic->net != NULL && !nic->net_ops->arm(nic->net, DOORBELL_FUTEX, &word)) {
        nic->events_due = true;
        return false;
    }
    /* A thread that has released the lock for a handler or a copy comes back to it, and no other
     * thread can do that work. Until then the NIC thread sleeps for a lease: to try again and again
     * would cost that thread its core. */
    if (atomic_exchange_explicit(&nic->polled, false, memory_order_relaxed) || nic->unlocked != 0) {
        place_tend(nic);
        *timeout_ms = whole_ms(progress_deadline(nic, lease));
        return true;
    }
    if (!guarded && !arm(nic, DOORBELL_FD, &word)) {
        return false;
    }
    nic->thread_idle = true;
    *timeout_ms = whole_ms(progress_deadline(nic, place_rest(nic) ? lease : -1));
    return true;
}

static void sleep_in_epoll(struct nic *nic, int timeout_ms)
{
    struct epoll_event events[4];
    nic_unlock(nic);
    int n = sys_epoll_wait(nic->thread_epoll, events, 4, timeout_ms);
    nic_lock(nic);
    nic->thread_idle = false;
    for (int i = 0; i < n; i++) {
        int fd = events[i].data.fd;
        if (fd == nic->wake_fd || fd == nic->alarm_fd) {
            uint64_t value;
            sys_read(fd, &value, sizeof(value));
            nic->events_due |= fd == nic->alarm_fd && timers_advance(nic);
            continue;
        }
        nic->events_due = true;
        if (nic->net != NULL && fd == nic->net_ops->fd(nic->net)) {
            nic->net_ops->fd_event(nic->net);
        } else {
            nic->ops->fd_event(nic->fabric);
        }
    }
    uint32_t doorbell = atomic_load_explicit(nic->doorbell, memory_order_relaxed);
    if ((doorbell & DOORBELL_STATE) == DOORBELL_ASLEEP_FD) {
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

static void close_descriptors(struct nic *nic)
{
    const int of[] = {nic->thread_epoll, nic->wake_fd, nic->alarm_fd};
    for (int i = 0; i < 3; i++) {
        forks_close(of[i]);
    }
}

int progress_start(struct nic *nic)
{
    if (nic->time != NULL) {
        return 0; /* the program's threads move it, in its time */
    }
    nic->thread_epoll = forks_open(epoll_create1(EPOLL_CLOEXEC));
    nic->wake_fd = forks_open(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    int rc = nic->thread_epoll < 0 || nic->wake_fd < 0 ? -errno : add_fd(nic, nic->wake_fd);
    rc = rc ?: add_fd(nic, nic->ops->fd(nic->fabric));
    if (rc == 0 && nic->net != NULL) {
        rc = add_fd(nic, nic->net_ops->fd(nic->net));
    }
    rc = rc ?: -thread_start(&nic->thread, NULL, true, nic_thread, nic);
    if (rc != 0) {
        close_descriptors(nic);
    }
    return rc;
}

void progress_stop(struct nic *nic)
{
    if (nic->time != NULL) {
        return;
    }
    nic_lock(nic);
    nic->stop = true;
    nudge_thread(nic);
    nic_unlock(nic);
    thread_join(nic->thread);
    close_descriptors(nic);
}
