/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The services of the kernel and the processor that the library uses: the clock, futexes, pauses,
 * the two fences of docs/architecture.md, invariant set 1, and every system call that can block,
 * yield or wait.
 *
 * A program may define sched_yield(), nanosleep(), read(), ... itself: a run time with user-level
 * threads does, and its versions know nothing of our threads. So these calls pass the program's
 * symbols by: they are the instruction itself. They return a value or -errno, and leave errno
 * as it is. tests/symbols holds what else the library takes from outside. Sanitizers need
 * to see the calls, and tests to stand in their way: libc makes them there (SYS_BY_LIBC).
 */
#ifndef BASE_SYS_H
#define BASE_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#if defined(PINWHEEL_SYS_BY_LIBC) || defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SYS_BY_LIBC 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SYS_BY_LIBC 1
#endif
#endif
#ifndef SYS_BY_LIBC
#define SYS_BY_LIBC 0
#endif

/* ---- System calls ---- */

/* A call of libc's as one that returns -errno. */
static inline long sys_result(long result)
{
    return result == -1 ? -(long)errno : result;
}

static inline long sys_instruction(long number, long a, long b, long c, long d, long e, long f)
{
#if SYS_BY_LIBC
    int before = errno;
    long result = sys_result(syscall(number, a, b, c, d, e, f));
    errno = before;
#else
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#endif
    return result;
}

#define SYS_CALL7(number, a, b, c, d, e, f, ...)                                                   \
    sys_instruction(number, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))
/* SYS_CALL(number, arguments...) is a call that no sanitizer needs to see. */
#define SYS_CALL(...) SYS_CALL7(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* SYS(libc's call, number, arguments...) is one that it does. */
#if SYS_BY_LIBC
#define SYS(by_libc, ...)                                                                          \
    ({                                                                                             \
        int before_ = errno;                                                                       \
        long result_ = sys_result((long)(by_libc));                                                \
        errno = before_;                                                                           \
        result_;                                                                                   \
    })
#else
#define SYS(by_libc, ...) SYS_CALL(__VA_ARGS__)
#endif

/* ERRNO_KEPT in front of a function's declarations: whoever calls it finds errno as it was.
 * It is for what the library does by libc inside calls that programs make again and again. */
static inline void sys_errno_back(const int *before)
{
    errno = *before;
}
#define ERRNO_KEPT __attribute__((cleanup(sys_errno_back), unused)) const int errno_before = errno

void sys_yield(void);
void sys_nap(int64_t ns);
int sys_open(const char *path, int flags, mode_t mode);
int sys_close(int fd);
ssize_t sys_read(int fd, void *to, size_t n);
ssize_t sys_pread(int fd, void *to, size_t n, off_t at);
ssize_t sys_write(int fd, const void *from, size_t n);
int sys_flock(int fd, int operation);
/* sys_lock_description() locks the file for its open file description, beside what flock() does,
 * and does not wait. */
int sys_lock_description(int fd);
int sys_poll(struct pollfd *fds, nfds_t n, int timeout_ms);
int sys_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms);
int sys_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
ssize_t sys_recvfrom(int fd, void *to, size_t n, int flags, struct sockaddr *from,
                     socklen_t *length);
ssize_t sys_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t sys_sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to,
                   socklen_t length);
ssize_t sys_sendmsg(int fd, const struct msghdr *m, int flags);
int sys_connect(int fd, const struct sockaddr *to, socklen_t length);
ssize_t sys_process_vm_readv(pid_t process, const struct iovec *local, unsigned long locals,
                             const struct iovec *remote, unsigned long remotes);
ssize_t sys_getrandom(void *to, size_t n);

/* The mask of the calling thread. Signals that libc keeps to itself stay open, as in
 * pthread_sigmask(). */
void sys_signal_mask(int how, const sigset_t *set, sigset_t *before);

/* ---- The clock ---- */

/* By the kernel's vDSO, found in the vDSO itself. clock_ns() is the monotonic one; sys_clock_ns()
 * returns -1 where there is no such clock. */
int64_t sys_clock_ns(clockid_t clock);
int64_t clock_ns(void);

/* ---- The processor ---- */

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

/* ---- Futexes ---- */

/* futex_wait() sleeps while *word is `value`, `timeout_ns` at most; a negative
 * time-out is none. The word may be shared between processes. */
void futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns);
void futex_wake(_Atomic uint32_t *word);
void futex_wake_one(_Atomic uint32_t *word);

/* ---- Barriers of the kernel ---- */

/* membarrier_register() makes this process answer membarrier_all() of others;
 * returns 0 where the kernel can. */
int membarrier_register(void);
int membarrier_all(void);

/* The same among the threads of this process. */
int membarrier_own_register(void);
int membarrier_own(void);

#endif
