/* SPDX-License-Identifier: BSD-3-Clause */
/* Waits for several descriptors, with time-outs in virtual time: libc's function is asked without
 * waiting, again and again. One that does not wait is a look. */
#include "virtual.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

/* What is waited for, and what libc said. */
struct asking {
    void *fds;
    int count, most, rc, error;
    const sigset_t *mask;
    fd_set *sets[3], wanted[3];
};

/* Asks until something is ready or the time is over. */
static int ask(struct asking *a, bool (*ready)(void *), int64_t ns)
{
    if (ns == 0) {
        ready(a);
        if (a->rc == 0) {
            virtual_look();
            ready(a);
        }
    } else if (virtual_await(ready, a, virtual_after(ns), "a descriptor") == VIRTUAL_SIGNAL) {
        a->rc = -1;
        a->error = EINTR;
    }
    errno = a->rc < 0 ? a->error : errno;
    return a->rc;
}

static bool poll_ready(void *asking)
{
    struct asking *a = asking;
    a->rc = OPENLY(REAL(ppoll)(a->fds, (nfds_t)a->count, &(struct timespec){0, 0}, a->mask));
    a->error = errno;
    return a->rc != 0;
}

static int poll_ns(struct pollfd *fds, nfds_t n, int64_t ns, const sigset_t *mask)
{
    struct asking a = {.fds = fds, .count = (int)n, .mask = mask};
    return ask(&a, poll_ready, ns);
}

SHOWN int poll(struct pollfd *fds, nfds_t n, int ms)
{
    return virtual_in() ? poll_ns(fds, n, ms * 1000000ll, NULL) : OPENLY(REAL(poll)(fds, n, ms));
}

int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t room);
SHOWN int __poll_chk(struct pollfd *fds, nfds_t n, int ms, size_t room)
{
    return poll(fds, n, ms);
}

SHOWN int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *t, const sigset_t *mask)
{
    return virtual_in() ? poll_ns(fds, n, virtual_ns(t), mask)
                        : OPENLY(REAL(ppoll)(fds, n, t, mask));
}

/* ---- select ---- */

static bool select_ready(void *asking)
{
    struct asking *a = asking;
    for (int i = 0; i < 3; i++) {
        if (a->sets[i] != NULL) {
            *a->sets[i] = a->wanted[i];
        }
    }
    a->rc = OPENLY(REAL(pselect)(a->count, a->sets[0], a->sets[1], a->sets[2],
                                 &(struct timespec){0, 0}, a->mask));
    a->error = errno;
    return a->rc != 0;
}

SHOWN int pselect(int n, fd_set *restrict reads, fd_set *restrict writes, fd_set *restrict others,
                  const struct timespec *restrict t, const sigset_t *restrict mask)
{
    if (!virtual_in()) {
        return OPENLY(REAL(pselect)(n, reads, writes, others, t, mask));
    }
    struct asking a = {.count = n, .mask = mask, .sets = {reads, writes, others}};
    for (int i = 0; i < 3; i++) {
        if (a.sets[i] != NULL) {
            a.wanted[i] = *a.sets[i];
        }
    }
    return ask(&a, select_ready, virtual_ns(t));
}

SHOWN int select(int n, fd_set *restrict reads, fd_set *restrict writes, fd_set *restrict others,
                 struct timeval *restrict t)
{
    if (!virtual_in()) {
        return OPENLY(REAL(select)(n, reads, writes, others, t));
    }
    struct timespec wait =
        t != NULL ? (struct timespec){t->tv_sec, t->tv_usec * 1000} : (struct timespec){0, 0};
    return pselect(n, reads, writes, others, t != NULL ? &wait : NULL, NULL);
}

/* ---- epoll ---- */

static bool epoll_ready(void *asking)
{
    struct asking *a = asking;
    a->rc = OPENLY(REAL(epoll_pwait)(a->count, a->fds, a->most, 0, a->mask));
    a->error = errno;
    return a->rc != 0;
}

SHOWN int epoll_pwait(int epoll, struct epoll_event *events, int most, int ms, const sigset_t *mask)
{
    if (!virtual_in()) {
        return OPENLY(REAL(epoll_pwait)(epoll, events, most, ms, mask));
    }
    struct asking a = {.fds = events, .count = epoll, .most = most, .mask = mask};
    return ask(&a, epoll_ready, ms * 1000000ll);
}

SHOWN int epoll_pwait2(int epoll, struct epoll_event *events, int most, const struct timespec *t,
                       const sigset_t *mask)
{
    if (!virtual_in()) {
        return OPENLY(REAL(epoll_pwait2)(epoll, events, most, t, mask));
    }
    struct asking a = {.fds = events, .count = epoll, .most = most, .mask = mask};
    return ask(&a, epoll_ready, virtual_ns(t));
}

SHOWN int epoll_wait(int epoll, struct epoll_event *events, int most, int ms)
{
    return virtual_in() ? epoll_pwait(epoll, events, most, ms, NULL)
                        : OPENLY(REAL(epoll_wait)(epoll, events, most, ms));
}
