/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * futex(), as a system call that a program makes itself. A thread that waits is on a list of its
 * process, in the order in which they came; one of a futex that processes share may also go on
 * without being woken, as the kernel's do. Wakes reach the kernel's sleepers, too.
 *
 * Threads that are in no simulation (libportals', libpmix's) need no virtual time for what they do:
 * where there are such, who waits does so in the kernel first, with the turn, as long as it takes a
 * thread to end that is joined, or LOCK_NS, in which one gives a lock of libc's back.
 */
#include "virtual.h"

#include "base/sys.h"

#include <errno.h>
#include <linux/futex.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOCK_NS = 20000000 };
static const int64_t join_ns = 10000000000;

struct sleeper {
    struct sleeper *next;
    const void *word;
    uint32_t value, bits;
    bool woken, shared, strangers;
};

static struct sleeper *sleepers; /* whoever has the clock has them */

static void enlist(struct sleeper *s)
{
    struct sleeper **last = &sleepers;
    while (*last != NULL) {
        last = &(*last)->next;
    }
    *last = s;
}

static void delist(void *sleeper)
{
    struct sleeper **at = &sleepers, *s = sleeper;
    while (*at != NULL && *at != s) {
        at = &(*at)->next;
    }
    if (*at == s) {
        *at = s->next;
    }
}

static bool is_woken(void *sleeper)
{
    const struct sleeper *s = sleeper;
    const _Atomic uint32_t *word = s->word;
    return s->woken || ((s->shared || s->strangers) && atomic_load(word) != s->value);
}

/* Whether the process has threads that are in no simulation. */
static bool has_strangers(void)
{
    char text[512];
    int fd = sys_open("/proc/self/stat", O_RDONLY | O_CLOEXEC, 0);
    ssize_t n = fd >= 0 ? sys_read(fd, text, sizeof(text) - 1) : -1;
    long threads = 0, tasks = 0;
    if (fd >= 0) {
        sys_close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < 20; field++) { /* the 20th; its name is the 2nd */
        at = strchr(at + 1, ' ');
    }
    threads = at != NULL ? strtol(at, NULL, 10) : 0;
    for (const struct sim_task *t = virtual_clock->tasks; t != NULL; t = t->next) {
        tasks++;
    }
    return threads > tasks;
}

/* The number of a thread is what pthread_join() waits at. */
static bool is_stranger(uint32_t thread)
{
    char path[48];
    for (const struct sim_task *t = virtual_clock->tasks; t != NULL; t = t->next) {
        if ((uint32_t)t->thread == thread) {
            return false;
        }
    }
    snprintf(path, sizeof(path), "/proc/self/task/%u", thread);
    return SYS_CALL(SYS_access, path, F_OK) == 0;
}

/* Waits in the kernel; true: it is over. */
static bool sleep_really(const struct sleeper *s)
{
    int64_t ns = is_stranger(s->value) ? join_ns : LOCK_NS;
    struct timespec most = {ns / 1000000000, ns % 1000000000};
    int operation = FUTEX_WAIT | (s->shared ? 0 : FUTEX_PRIVATE_FLAG);
    return SYS_CALL(SYS_futex, s->word, operation, s->value, &most, NULL, 0) != -ETIMEDOUT;
}

static long sleep_on(struct sleeper *s, uint64_t until)
{
    enum virtual_end end;
    if (atomic_load((const _Atomic uint32_t *)s->word) != s->value) {
        return -EAGAIN;
    }
    s->strangers = has_strangers();
    if (s->strangers && sleep_really(s)) {
        return 0;
    }
    enlist(s);
    pthread_cleanup_push(delist, s);
    end = virtual_await(is_woken, s, until, s->strangers ? "a thread" : NULL);
    pthread_cleanup_pop(1);
    return end == VIRTUAL_HOLDS ? 0 : end == VIRTUAL_LATE ? -ETIMEDOUT : -EINTR;
}

/* Wakes `most` sleepers of a word, and has `moved` more wait for another one. */
static long wake(const void *word, uint32_t bits, long most, const void *to, long moved)
{
    long n = 0, gone = 0;
    for (struct sleeper *s = sleepers; s != NULL; s = s->next) {
        if (s->word != word || s->woken || (s->bits & bits) == 0) {
            continue;
        }
        if (n < most) {
            s->woken = true;
            n++;
        } else if (to != NULL && gone < moved) {
            s->word = to;
            gone++;
        }
    }
    return n + gone;
}

static void told(bool shared)
{
    if (shared) {
        virtual_stir();
    } else {
        virtual_wake();
    }
}

long virtual_futex(const long a[6])
{
    const long all = (int)a[1], command = all & FUTEX_CMD_MASK;
    const bool shared = (all & FUTEX_PRIVATE_FLAG) == 0;
    const void *word = (const void *)a[0], *to = (const void *)a[4];
    const struct timespec *t = (const struct timespec *)a[3];
    const clockid_t clock = (all & FUTEX_CLOCK_REALTIME) != 0 ? CLOCK_REALTIME : CLOCK_MONOTONIC;
    const uint32_t every = FUTEX_BITSET_MATCH_ANY;
    struct sleeper s = {.word = word, .value = (uint32_t)a[2], .bits = every, .shared = shared};
    long n = 0;
    if (command == FUTEX_WAIT) {
        return sleep_on(&s, virtual_after(virtual_ns(t)));
    }
    if (command == FUTEX_WAIT_BITSET) {
        s.bits = (uint32_t)a[5];
        return s.bits == 0 ? -EINVAL : sleep_on(&s, virtual_at(clock, t));
    }
    if (command == FUTEX_WAKE || command == FUTEX_WAKE_BITSET) {
        n = wake(word, command == FUTEX_WAKE ? every : (uint32_t)a[5], a[2], NULL, 0);
    } else if (command == FUTEX_REQUEUE ||
               (command == FUTEX_CMP_REQUEUE &&
                atomic_load((const _Atomic uint32_t *)word) == (uint32_t)a[5])) {
        n = wake(word, every, a[2], to, a[3]);
    }
    long rc = SYS_CALL(SYS_futex, a[0], a[1], a[2] > n ? a[2] - n : 0, a[3], a[4], a[5]);
    told(shared);
    return rc < 0 ? rc : rc + n;
}
