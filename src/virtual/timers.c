/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers of a program, in virtual time: alarm(), setitimer(ITIMER_REAL), timer_create(), timerfd.
 * None needs a thread: the clock has the time of the next one, and calls ring() then. A timer's
 * signal is a real one, sent to the thread that takes it; a timerfd is an eventfd that ring()
 * writes to. Timers of processor time are the kernel's.
 *
 * Whoever has the clock has the list.
 */
#include "virtual.h"

#include "base/sys.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/time.h>
#include <sys/timerfd.h>

enum kind { OF_PROCESS, OF_PROGRAM, OF_FILE };

struct timer {
    struct timer *next;
    enum kind kind;
    uint64_t at, every; /* ps; SIM_NEVER: it is not set; 0: once */
    clockid_t clock;
    struct sigevent event;
    int fd;
};

static struct timer process_timer = {.kind = OF_PROCESS, .at = SIM_NEVER};
static struct timer *timers = &process_timer;

/* ---- rings ---- */

/* Whether a thread blocks a signal, as the kernel says. */
static bool blocks(pid_t thread, int signal)
{
    char path[64], text[2048];
    snprintf(path, sizeof(path), "/proc/self/task/%d/status", thread);
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    ssize_t n = fd >= 0 ? sys_read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        sys_close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *at = strstr(text, "SigBlk:");
    return at != NULL && (strtoull(at + 7, NULL, 16) >> (signal - 1) & 1) != 0;
}

/* Sends a timer's signal: to a thread of the simulation that takes it, if there is one. */
static void send_signal(struct sim_clock *c, const struct timer *t, int signal)
{
    siginfo_t info = {.si_signo = signal, .si_code = SI_TIMER};
    info.si_value = t->event.sigev_value;
    bool one = t->kind == OF_PROGRAM && t->event.sigev_notify == SIGEV_THREAD_ID;
    pid_t wanted = one ? t->event._sigev_un._tid : 0;
    for (struct sim_task *to = c->tasks; to != NULL; to = to->next) {
        if (one ? to->thread == wanted : !blocks(to->thread, signal)) {
            SYS_CALL(SYS_rt_tgsigqueueinfo, getpid(), to->thread, signal, &info);
            if (virtual_has_handler(signal)) {
                sim_task_signal(c, to);
            }
            return;
        }
    }
    SYS_CALL(SYS_rt_sigqueueinfo, getpid(), signal, &info);
    sim_clock_wake(c);
}

static void *call(void *timer)
{
    const struct timer *t = timer;
    t->event.sigev_notify_function(t->event.sigev_value);
    return NULL;
}

static void fire(struct sim_clock *c, struct timer *t, uint64_t times)
{
    if (t->kind == OF_PROCESS) {
        send_signal(c, t, SIGALRM);
    } else if (t->kind == OF_FILE) {
        SYS_CALL(SYS_write, t->fd, &times, sizeof(times));
        sim_clock_stir(c);
    } else if (t->event.sigev_notify == SIGEV_THREAD) {
        pthread_t id;
        pthread_attr_t detached;
        pthread_attr_init(&detached);
        pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
        virtual_thread(&id, &detached, call, t);
        pthread_attr_destroy(&detached);
    } else if (t->event.sigev_notify != SIGEV_NONE) {
        send_signal(c, t, t->event.sigev_signo);
    }
}

static void set_ring(struct sim_clock *c)
{
    c->ring_at = SIM_NEVER;
    for (const struct timer *t = timers; t != NULL; t = t->next) {
        c->ring_at = t->at < c->ring_at ? t->at : c->ring_at;
    }
}

void virtual_ring(struct sim_clock *c)
{
    for (struct timer *t = timers; t != NULL; t = t->next) {
        if (t->at <= c->now) {
            uint64_t times = t->every != 0 ? 1 + (c->now - t->at) / t->every : 1;
            t->at = t->every != 0 ? t->at + times * t->every : SIM_NEVER;
            fire(c, t, times);
        }
    }
    set_ring(c);
}

void virtual_forked_timers(void)
{
    for (struct timer *t = timers; t != NULL; t = t->next) {
        t->at = SIM_NEVER;
    }
}

/* ---- setting ---- */

static struct timespec left_of(uint64_t ps)
{
    uint64_t ns = (ps + PS_PER_NS - 1) / PS_PER_NS;
    return (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
}

static void get(const struct timer *t, struct itimerspec *to)
{
    uint64_t now = virtual_now();
    *to = (struct itimerspec){.it_interval = left_of(t->every)};
    if (t->at != SIM_NEVER) {
        to->it_value = left_of(t->at > now ? t->at - now : 1);
    }
}

static bool is_time(const struct timespec *t)
{
    return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < 1000000000;
}

static int set(struct timer *t, bool absolute, const struct itimerspec *to)
{
    if (!is_time(&to->it_value) || !is_time(&to->it_interval)) {
        errno = EINVAL;
        return -1;
    }
    bool never = to->it_value.tv_sec == 0 && to->it_value.tv_nsec == 0;
    uint64_t start = virtual_now(), every = virtual_after(virtual_ns(&to->it_interval));
    t->every = every == SIM_NEVER ? 0 : every - start;
    t->at = never      ? SIM_NEVER
            : absolute ? virtual_at(t->clock, &to->it_value)
                       : virtual_after(virtual_ns(&to->it_value));
    set_ring(virtual_clock);
    return 0;
}

static void add(struct timer *t)
{
    t->at = SIM_NEVER;
    t->next = process_timer.next;
    process_timer.next = t;
}

/* ---- of the process ---- */

SHOWN unsigned alarm(unsigned s)
{
    if (!virtual_in()) {
        return OPENLY(REAL(alarm)(s));
    }
    struct itimerspec to = {.it_value = {s, 0}}, was;
    get(&process_timer, &was);
    set(&process_timer, false, &to);
    return (unsigned)was.it_value.tv_sec + (was.it_value.tv_nsec != 0);
}

static struct itimerval in_us(const struct itimerspec *t)
{
    return (struct itimerval){{t->it_interval.tv_sec, t->it_interval.tv_nsec / 1000},
                              {t->it_value.tv_sec, (t->it_value.tv_nsec + 999) / 1000}};
}

SHOWN int getitimer(enum __itimer_which which, struct itimerval *value)
{
    if (!virtual_in() || which != ITIMER_REAL) {
        return OPENLY(REAL(getitimer)(which, value));
    }
    struct itimerspec now;
    get(&process_timer, &now);
    *value = in_us(&now);
    return 0;
}

SHOWN int setitimer(enum __itimer_which which, const struct itimerval *restrict value,
                    struct itimerval *restrict before)
{
    if (!virtual_in() || which != ITIMER_REAL || value == NULL) {
        return OPENLY(REAL(setitimer)(which, value, before));
    }
    struct itimerspec to = {{value->it_interval.tv_sec, value->it_interval.tv_usec * 1000},
                            {value->it_value.tv_sec, value->it_value.tv_usec * 1000}},
                      was;
    get(&process_timer, &was);
    int rc = set(&process_timer, false, &to);
    if (rc == 0 && before != NULL) {
        *before = in_us(&was);
    }
    return rc;
}

/* ---- of the program ---- */

static struct timer *find(const void *id)
{
    struct timer *t = process_timer.next;
    while (t != NULL && t != id) {
        t = t->next;
    }
    return t;
}

SHOWN int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict id)
{
    struct timer *t;
    if (!virtual_in() || clock < 0 || clock == CLOCK_PROCESS_CPUTIME_ID ||
        clock == CLOCK_THREAD_CPUTIME_ID) {
        return OPENLY(REAL(timer_create)(clock, event, id));
    }
    if ((t = calloc(1, sizeof(*t))) == NULL) {
        errno = EAGAIN;
        return -1;
    }
    t->kind = OF_PROGRAM;
    t->clock = clock;
    t->event = (struct sigevent){.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    t->event.sigev_value.sival_ptr = t;
    if (event != NULL) {
        t->event = *event;
    }
    add(t);
    *id = t;
    return 0;
}

SHOWN int timer_settime(timer_t id, int flags, const struct itimerspec *restrict to,
                        struct itimerspec *restrict before)
{
    struct timer *t = virtual_in() ? find(id) : NULL;
    if (t == NULL) {
        return OPENLY(REAL(timer_settime)(id, flags, to, before));
    }
    struct itimerspec was;
    get(t, &was);
    int rc = set(t, (flags & TIMER_ABSTIME) != 0, to);
    if (rc == 0 && before != NULL) {
        *before = was;
    }
    return rc;
}

SHOWN int timer_gettime(timer_t id, struct itimerspec *to)
{
    const struct timer *t = virtual_in() ? find(id) : NULL;
    if (t == NULL) {
        return OPENLY(REAL(timer_gettime)(id, to));
    }
    get(t, to);
    return 0;
}

/* A timer's signal is taken at its time: none is missed. */
SHOWN int timer_getoverrun(timer_t id)
{
    return virtual_in() && find(id) != NULL ? 0 : OPENLY(REAL(timer_getoverrun)(id));
}

static void drop(struct timer *gone)
{
    struct timer *t = timers;
    while (t->next != gone) {
        t = t->next;
    }
    t->next = gone->next;
    free(gone);
    set_ring(virtual_clock);
}

SHOWN int timer_delete(timer_t id)
{
    struct timer *t = virtual_in() ? find(id) : NULL;
    if (t == NULL) {
        return OPENLY(REAL(timer_delete)(id));
    }
    drop(t);
    return 0;
}

/* ---- of descriptors ---- */

static struct timer *find_fd(int fd)
{
    struct timer *t = process_timer.next;
    while (t != NULL && (t->kind != OF_FILE || t->fd != fd)) {
        t = t->next;
    }
    return t;
}

SHOWN int timerfd_create(clockid_t clock, int flags)
{
    if (!virtual_in()) {
        return OPENLY(REAL(timerfd_create)(clock, flags));
    }
    struct timer *t = calloc(1, sizeof(*t));
    int fd = t != NULL ? eventfd(0, ((flags & TFD_NONBLOCK) != 0 ? EFD_NONBLOCK : 0) |
                                        ((flags & TFD_CLOEXEC) != 0 ? EFD_CLOEXEC : 0))
                       : -1;
    if (fd < 0) {
        free(t);
        return -1;
    }
    t->kind = OF_FILE;
    t->clock = clock;
    t->fd = fd;
    add(t);
    return fd;
}

SHOWN int timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *before)
{
    struct timer *t = virtual_in() ? find_fd(fd) : NULL;
    if (t == NULL) {
        return OPENLY(REAL(timerfd_settime)(fd, flags, to, before));
    }
    struct itimerspec was;
    struct pollfd over = {.fd = fd, .events = POLLIN};
    uint64_t times;
    get(t, &was);
    int rc = set(t, (flags & TFD_TIMER_ABSTIME) != 0, to);
    if (rc == 0 && sys_poll(&over, 1, 0) > 0) {
        sys_read(fd, &times, sizeof(times)); /* what the time before came to */
    }
    if (rc == 0 && before != NULL) {
        *before = was;
    }
    return rc;
}

SHOWN int timerfd_gettime(int fd, struct itimerspec *to)
{
    const struct timer *t = virtual_in() ? find_fd(fd) : NULL;
    if (t == NULL) {
        return OPENLY(REAL(timerfd_gettime)(fd, to));
    }
    get(t, to);
    return 0;
}

void virtual_closed(int fd)
{
    struct timer *t = find_fd(fd);
    if (t != NULL) {
        drop(t);
    }
}
