/* SPDX-License-Identifier: BSD-3-Clause */
/* Clocks and sleeps of a program. A look at a clock takes as long as one at nothing, so that a
 * program that waits for a time ends. */
#include "virtual.h"

#include <errno.h>
#include <sched.h>
#include <sys/time.h>
#include <unistd.h>

static struct timespec timespec_of(uint64_t ps, int64_t s)
{
    uint64_t ns = ps / PS_PER_NS;
    return (struct timespec){(time_t)(s + (int64_t)(ns / 1000000000)), (long)(ns % 1000000000)};
}

static bool is_realtime(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI;
}

/* Of a thread that may not let time pass now, too. */
static bool in_simulation(void)
{
    return virtual_clock != NULL && virtual_self != NULL;
}

static struct timespec look_at_clock(clockid_t clock)
{
    if (virtual_in()) {
        virtual_look();
    }
    if (clock == CLOCK_PROCESS_CPUTIME_ID || clock == CLOCK_THREAD_CPUTIME_ID) {
        return timespec_of(virtual_now(), 0);
    }
    return timespec_of(virtual_now(),
                       is_realtime(clock) ? VIRTUAL_REALTIME_S : VIRTUAL_MONOTONIC_S);
}

SHOWN int clock_gettime(clockid_t clock, struct timespec *t)
{
    if (!in_simulation() || clock < 0 || clock > CLOCK_TAI || CALLED_BY_PORTALS()) {
        return OPENLY(REAL(clock_gettime)(clock, t));
    }
    *t = look_at_clock(clock);
    return 0;
}

SHOWN int gettimeofday(struct timeval *restrict t, void *restrict zone)
{
    if (!in_simulation()) {
        return OPENLY(REAL(gettimeofday)(t, zone));
    }
    struct timespec now = look_at_clock(CLOCK_REALTIME);
    *t = (struct timeval){now.tv_sec, now.tv_nsec / 1000};
    return 0;
}

SHOWN time_t time(time_t *t)
{
    if (!in_simulation()) {
        return OPENLY(REAL(time)(t));
    }
    time_t now = look_at_clock(CLOCK_REALTIME).tv_sec;
    if (t != NULL) {
        *t = now;
    }
    return now;
}

SHOWN clock_t clock(void)
{
    if (!in_simulation()) {
        return OPENLY(REAL(clock)());
    }
    sim_clock_break(virtual_clock);
    return (clock_t)(virtual_now() / 1000000);
}

/* ---- sleeps ---- */

static int sleep_until(uint64_t end, struct timespec *left)
{
    if (virtual_sleep(end)) {
        return 0;
    }
    if (left != NULL) {
        *left = timespec_of(end - virtual_clock->now, 0);
    }
    return EINTR;
}

static bool is_time(const struct timespec *t)
{
    return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

SHOWN int clock_nanosleep(clockid_t clock, int flags, const struct timespec *t,
                          struct timespec *left)
{
    if (!virtual_in()) {
        return OPENLY(REAL(clock_nanosleep)(clock, flags, t, left));
    }
    if (!is_time(t)) {
        return EINVAL;
    }
    return (flags & TIMER_ABSTIME) != 0 ? sleep_until(virtual_at(clock, t), NULL)
                                        : sleep_until(virtual_after(virtual_ns(t)), left);
}

SHOWN int nanosleep(const struct timespec *t, struct timespec *left)
{
    if (!virtual_in() || CALLED_BY_PORTALS()) {
        return OPENLY(REAL(nanosleep)(t, left));
    }
    errno = clock_nanosleep(CLOCK_MONOTONIC, 0, t, left) ?: errno;
    return virtual_self->interrupted || !is_time(t) ? -1 : 0;
}

SHOWN int usleep(useconds_t us)
{
    if (!virtual_in()) {
        return OPENLY(REAL(usleep)(us));
    }
    return nanosleep(&(struct timespec){us / 1000000, (long)(us % 1000000) * 1000}, NULL);
}

SHOWN unsigned sleep(unsigned s)
{
    if (!virtual_in()) {
        return OPENLY(REAL(sleep)(s));
    }
    struct timespec left = {0, 0};
    nanosleep(&(struct timespec){s, 0}, &left);
    return (unsigned)left.tv_sec + (left.tv_nsec >= 500000000);
}

SHOWN int sched_yield(void)
{
    if (!virtual_in() || CALLED_BY_PORTALS()) {
        return OPENLY(REAL(sched_yield)());
    }
    virtual_look();
    return 0;
}
