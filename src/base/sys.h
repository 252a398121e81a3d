/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The services of the kernel and the processor that the library uses: the clock, futexes, pauses,
 * the two fences of docs/architecture.md, invariant set 1, and every system call that can block,
 * yield or wait.
 *
 * A program may define sched_yield(), nanosleep(), read(), ... itself: a run time with user-level
 * threads does, and its versions know nothing of the library's threads. So these calls do not use
 * such symbols: each executes the system call instruction. They return a value or -errno, and leave
 * errno as it is. tests/symbols lists the other symbols that the library takes from outside.
 * Sanitizers must see the calls, and some tests replace them: in their builds libc makes the calls
 * (SYS_BY_LIBC).
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
#include <stdbool.h>
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

/* Turns the result of a libc call into the value, or -errno. */
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
/* SYS_CALL(number, arguments...) executes a system call that no sanitizer needs to see. */
#define SYS_CALL(...) SYS_CALL7(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* SYS(libc's call, number, arguments...) executes a system call that sanitizers must see: by libc
 * in their builds. */
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

/* ERRNO_KEPT, as the first declaration of a function, restores errno when the function returns, so
 * that its caller finds errno unchanged. It is for functions that call libc on behalf of programs,
 * again and again. */
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
/* sys_lock_description() locks the file for its open file description (F_OFD_SETLK), which is
 * independent of flock(), and does not wait. */
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

/* sys_signal_mask() changes the signal mask of the calling thread. As in pthread_sigmask(), the
 * signals that libc uses itself cannot be blocked. */
void sys_signal_mask(int how, const sigset_t *set, sigset_t *before);

/* ---- The clock ---- */

/* Both read the clock by the vDSO. clock_ns() is the monotonic clock; sys_clock_ns() returns -1 if
 * the kernel does not have the clock. */
int64_t sys_clock_ns(clockid_t clock);
int64_t clock_ns(void);

/* ---- The processor ---- */

static inline void cpu_pause(void)
{
    __builtin_ia32_pause();
}

/* Asks the processor for a cache line that the caller is going to write. A store would wait for the
 * stores before it; this does not. At an invalid address nothing happens. */
static inline void prefetch_write(const void *line)
{
    __asm__ volatile("prefetchw (%0)" : : "r"(line));
}

/* Lets no later load begin before the earlier loads have their values. Without it a loop that polls
 * a cache line which another core is about to write would have dozens of loads in flight, and these
 * delay the writing core. */
static inline void load_fence(void)
{
    __builtin_ia32_lfence();
}

/* Orders the stores before it before the loads after it. On x86 an addition with a lock prefix to
 * the own stack does what mfence does, in a third of the time. */
static inline void full_fence(void)
{
    __asm__ volatile("lock; addl $0, -4(%%rsp)" ::: "memory", "cc");
}

static inline void compiler_fence(void)
{
    __asm__ volatile("" ::: "memory");
}

/* ---- Futexes ---- */

/* futex_wait() sleeps while *word is `value`, `timeout_ns` at most; a negative time-out means
 * without end. The word may be shared between processes. futex_wake() wakes all sleepers,
 * futex_wake_one() one. */
void futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns);
/* futex_wait_signal() is futex_wait(); true: a signal handler has run meanwhile. */
bool futex_wait_signal(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns);
void futex_wake(_Atomic uint32_t *word);
void futex_wake_one(_Atomic uint32_t *word);
/* sys_task_state() is the state of a process or thread, in the letter of its file /proc/.../stat;
 * '\0': there is no such file. */
char sys_task_state(const char *path);

/* ---- Barriers of the kernel ---- */

/* membarrier_register() lets other processes' membarrier_all() reach the threads of this process.
 * Both return 0 where the kernel has the call. */
int membarrier_register(void);
int membarrier_all(void);

/* membarrier_own() is such a barrier among the threads of this process only, and needs a
 * registration of its own. */
int membarrier_own_register(void);
int membarrier_own(void);

#endif
