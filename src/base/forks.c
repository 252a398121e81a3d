/* SPDX-License-Identifier: BSD-3-Clause */
/* Sections that a fork() does not cut, and descriptors that its child closes; see forks.h. */
#include "base/forks.h"

#include <string.h>

enum {
    FDS = 1 << 20 /* the limit of a process's descriptors, unless fs.nr_open was raised */,
    WORD = 64
};

static struct mutex gate; /* the thread that calls fork() holds it until the child is made */
static struct condition left;
static unsigned inside; /* sections that threads are in; a nested one counts again */
/* descriptors that a child closes, a bit each; guarded by `gate`, as is `words` */
static uint64_t noted[FDS / WORD];
static unsigned words; /* words of `noted` in use: behind them no bit was ever set */

/* Per thread: how many sections it is in, and which signals it had blocked before the first one. */
static __thread unsigned depth __attribute__((tls_model("initial-exec")));
static __thread uint64_t before __attribute__((tls_model("initial-exec")));

/* Blocks all signals of the calling thread but those of faults, and takes the gate. A fault whose
 * signal is blocked would kill the process, whatever handler the program has for it. */
static __attribute__((noinline)) void gate_take(void)
{
    sigset_t all, was;
    if (depth++ == 0) {
        sigfillset(&all);
        sigdelset(&all, SIGSEGV);
        sigdelset(&all, SIGBUS);
        sigdelset(&all, SIGFPE);
        sigdelset(&all, SIGILL);
        sys_signal_mask(SIG_SETMASK, &all, &was);
        memcpy(&before, &was, sizeof(before)); /* the kernel's set has 64 bits, glibc's more */
    }
    mutex_take(&gate);
}

static __attribute__((noinline)) void gate_give(void)
{
    mutex_give(&gate);
    if (--depth == 0) {
        sigset_t mask = {0};
        memcpy(&mask, &before, sizeof(before));
        sys_signal_mask(SIG_SETMASK, &mask, NULL);
    }
}

void forks_hold(void)
{
    gate_take();
    inside++;
    depth++; /* so that gate_give() leaves the signals blocked until forks_release() */
    gate_give();
}

void forks_release(void)
{
    gate_take();
    depth--;
    if (--inside == 0) {
        condition_signal(&left);
    }
    gate_give();
}

void forks_take(struct mutex *m)
{
    forks_hold();
    mutex_take(m);
}

void forks_give(struct mutex *m)
{
    mutex_give(m);
    forks_release();
}

int forks_opened(int fd)
{
    if (fd >= FDS) {
        sys_close(fd);
        errno = EMFILE;
        fd = -EMFILE;
    }
    if (fd >= 0) {
        unsigned word = (unsigned)fd / WORD;
        mutex_take(&gate);
        noted[word] |= UINT64_C(1) << fd % WORD;
        words = word < words ? words : word + 1;
        mutex_give(&gate);
    }
    forks_release();
    return fd;
}

void forks_close(int fd)
{
    if (fd >= 0) {
        gate_take();
        noted[fd / WORD] &= ~(UINT64_C(1) << fd % WORD);
        sys_close(fd);
        gate_give();
    }
}

static void close_all(void)
{
    for (unsigned w = 0; w < words; w++) {
        for (; noted[w] != 0; noted[w] &= noted[w] - 1) {
            sys_close((int)(w * WORD) + __builtin_ctzll(noted[w]));
        }
    }
    words = 0;
}

void forks_gate(enum fork_phase phase)
{
    if (phase == FORK_PREPARE) {
        gate_take();
        while (inside != 0) {
            condition_wait(&left, &gate);
        }
        /* wakes another thread that waits to fork: a signal wakes only one */
        condition_signal(&left);
        return;
    }
    if (phase == FORK_CHILD) {
        close_all();
    }
    gate_give();
}
