/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The few services of the kernel and the processor that have no libc wrapper:
 * clock, futex, pause and the two fences of docs/architecture.md, wall 1.
 */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static inline int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void cpu_pause(void)
{
    __builtin_ia32_pause();
}

/* Asks for a line that is to be written, sooner than a store would, which waits for the stores
 * before it; at an address that is not there nothing happens. */
static inline void prefetch_write(const void *line)
{
    __asm__ volatile("prefetchw (%0)" : : "r"(line));
}

/* Lets no later load begin before the earlier ones have their values. A loop that
 * looks at a line which another core is about to write would otherwise have dozens of
 * looks under way, which only get into the writer's way. */
static inline void load_fence(void)
{
    __builtin_ia32_lfence();
}

/* futex_wait() sleeps while *word is `value`, `timeout_ns` at most; a negative
 * time-out is none. The word may be shared between processes. */
static inline void futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns)
{
    struct timespec t = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
    syscall(SYS_futex, word, FUTEX_WAIT, value, timeout_ns < 0 ? NULL : &t, NULL, 0);
}

static inline void futex_wake(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static inline void futex_wake_one(_Atomic uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* A fence that orders stores before later loads. A locked instruction on the
 * own stack does on x86 what mfence does, in a third of the time. */
static inline void full_fence(void)
{
    __asm__ volatile("lock; addl $0, -4(%%rsp)" ::: "memory", "cc");
}

static inline void compiler_fence(void)
{
    __asm__ volatile("" ::: "memory");
}

/* membarrier_register() makes this process answer membarrier_all() of others;
 * returns 0 where the kernel can. */
static inline int membarrier_register(void)
{
    return (int)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

static inline int membarrier_all(void)
{
    return (int)syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

/* The same among the threads of this process. */
static inline int membarrier_own_register(void)
{
    return (int)syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

static inline int membarrier_own(void)
{
    return (int)syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

#endif
