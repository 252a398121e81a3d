/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls by their numbers. Those that may wait, that tell the time, or for which others may
 * go on, are made by the functions of this library that have libc's names.
 */
#include "virtual.h"

#include "base/sys.h"

#include <errno.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define AT(type, i) ((type)(uintptr_t)a[i])
#define MAKE(name, of)                                                                             \
    static long make_##name(const long a[6])                                                       \
    {                                                                                              \
        return (long)(of);                                                                         \
    }

/* The kernel's signal sets have 64 bits. */
static const sigset_t *set_of(const void *from, sigset_t *to)
{
    sigemptyset(to);
    if (from != NULL) {
        memcpy(to, from, 8);
    }
    return from != NULL ? to : NULL;
}

// clang-format off
MAKE(read, read((int)a[0], AT(void *, 1), AT(size_t, 2)))
MAKE(readv, readv((int)a[0], AT(const struct iovec *, 1), (int)a[2]))
MAKE(write, write((int)a[0], AT(const void *, 1), AT(size_t, 2)))
MAKE(writev, writev((int)a[0], AT(const struct iovec *, 1), (int)a[2]))
MAKE(recvfrom, recvfrom((int)a[0], AT(void *, 1), AT(size_t, 2), (int)a[3], AT(struct sockaddr *, 4), AT(socklen_t *, 5)))
MAKE(recvmsg, recvmsg((int)a[0], AT(struct msghdr *, 1), (int)a[2]))
MAKE(recvmmsg, recvmmsg((int)a[0], AT(struct mmsghdr *, 1), (unsigned)a[2], (int)a[3], AT(struct timespec *, 4)))
MAKE(sendto, sendto((int)a[0], AT(const void *, 1), AT(size_t, 2), (int)a[3], AT(const struct sockaddr *, 4), (socklen_t)a[5]))
MAKE(sendmsg, sendmsg((int)a[0], AT(const struct msghdr *, 1), (int)a[2]))
MAKE(accept, accept((int)a[0], AT(struct sockaddr *, 1), AT(socklen_t *, 2)))
MAKE(accept4, accept4((int)a[0], AT(struct sockaddr *, 1), AT(socklen_t *, 2), (int)a[3]))
MAKE(connect, connect((int)a[0], AT(const struct sockaddr *, 1), (socklen_t)a[2]))
MAKE(shutdown, shutdown((int)a[0], (int)a[1]))
MAKE(close, close((int)a[0]))
MAKE(splice, splice((int)a[0], AT(off64_t *, 1), (int)a[2], AT(off64_t *, 3), AT(size_t, 4), (unsigned)a[5]))
MAKE(tee, tee((int)a[0], (int)a[1], AT(size_t, 2), (unsigned)a[3]))
MAKE(open, openat(AT_FDCWD, AT(const char *, 0), (int)a[1], (mode_t)a[2]))
MAKE(openat, openat((int)a[0], AT(const char *, 1), (int)a[2], (mode_t)a[3]))
MAKE(flock, flock((int)a[0], (int)a[1]))
MAKE(fcntl, fcntl((int)a[0], (int)a[1], AT(void *, 2)))
MAKE(poll, poll(AT(struct pollfd *, 0), AT(nfds_t, 1), (int)a[2]))
MAKE(select, select((int)a[0], AT(fd_set *, 1), AT(fd_set *, 2), AT(fd_set *, 3), AT(struct timeval *, 4)))
MAKE(epoll_wait, epoll_wait((int)a[0], AT(struct epoll_event *, 1), (int)a[2], (int)a[3]))
MAKE(nanosleep, nanosleep(AT(const struct timespec *, 0), AT(struct timespec *, 1)))
MAKE(clock_gettime, clock_gettime((clockid_t)a[0], AT(struct timespec *, 1)))
MAKE(gettimeofday, gettimeofday(AT(struct timeval *, 0), AT(void *, 1)))
MAKE(time, time(AT(time_t *, 0)))
MAKE(yield, sched_yield())
MAKE(pause, pause())
MAKE(alarm, alarm((unsigned)a[0]))
MAKE(getitimer, getitimer((enum __itimer_which)a[0], AT(struct itimerval *, 1)))
MAKE(setitimer, setitimer((enum __itimer_which)a[0], AT(const struct itimerval *, 1), AT(struct itimerval *, 2)))
MAKE(timerfd_create, timerfd_create((clockid_t)a[0], (int)a[1]))
MAKE(timerfd_settime, timerfd_settime((int)a[0], (int)a[1], AT(const struct itimerspec *, 2), AT(struct itimerspec *, 3)))
MAKE(timerfd_gettime, timerfd_gettime((int)a[0], AT(struct itimerspec *, 1)))
MAKE(wait4, wait4((pid_t)a[0], AT(int *, 1), (int)a[2], AT(struct rusage *, 3)))
MAKE(waitid, waitid((idtype_t)a[0], (id_t)a[1], AT(siginfo_t *, 2), (int)a[3]))
MAKE(kill, kill((pid_t)a[0], (int)a[1]))
MAKE(semop, semop((int)a[0], AT(struct sembuf *, 1), AT(size_t, 2)))
MAKE(semtimedop, semtimedop((int)a[0], AT(struct sembuf *, 1), AT(size_t, 2), AT(const struct timespec *, 3)))
MAKE(msgsnd, msgsnd((int)a[0], AT(const void *, 1), AT(size_t, 2), (int)a[3]))
MAKE(msgrcv, msgrcv((int)a[0], AT(void *, 1), AT(size_t, 2), a[3], (int)a[4]))
MAKE(mq_timedsend, mq_timedsend((mqd_t)a[0], AT(const char *, 1), AT(size_t, 2), (unsigned)a[3], AT(const struct timespec *, 4)))
MAKE(mq_timedreceive, mq_timedreceive((mqd_t)a[0], AT(char *, 1), AT(size_t, 2), AT(unsigned *, 3), AT(const struct timespec *, 4)))
// clang-format on

static long make_ppoll(const long a[6])
{
    sigset_t mask;
    return ppoll(AT(struct pollfd *, 0), AT(nfds_t, 1), AT(const struct timespec *, 2),
                 set_of(AT(const void *, 3), &mask));
}

static long make_pselect(const long a[6])
{
    const void *const *mask_at = AT(const void *const *, 5);
    sigset_t mask;
    return pselect((int)a[0], AT(fd_set *, 1), AT(fd_set *, 2), AT(fd_set *, 3),
                   AT(const struct timespec *, 4),
                   set_of(mask_at != NULL ? *mask_at : NULL, &mask));
}

static long make_epoll_pwait(const long a[6])
{
    sigset_t mask;
    return epoll_pwait((int)a[0], AT(struct epoll_event *, 1), (int)a[2], (int)a[3],
                       set_of(AT(const void *, 4), &mask));
}

static long make_epoll_pwait2(const long a[6])
{
    sigset_t mask;
    return epoll_pwait2((int)a[0], AT(struct epoll_event *, 1), (int)a[2],
                        AT(const struct timespec *, 3), set_of(AT(const void *, 4), &mask));
}

static long make_sigsuspend(const long a[6])
{
    sigset_t mask;
    return sigsuspend(set_of(AT(const void *, 0), &mask));
}

static long make_sigtimedwait(const long a[6])
{
    sigset_t mask;
    return sigtimedwait(set_of(AT(const void *, 0), &mask), AT(siginfo_t *, 1),
                        AT(const struct timespec *, 2));
}

static long make_clock_nanosleep(const long a[6])
{
    int rc = clock_nanosleep((clockid_t)a[0], (int)a[1], AT(const struct timespec *, 2),
                             AT(struct timespec *, 3));
    errno = rc != 0 ? rc : errno;
    return rc != 0 ? -1 : 0;
}

static long make_futex(const long a[6])
{
    long rc = virtual_futex(a);
    errno = rc < 0 ? (int)-rc : errno;
    return rc < 0 ? -1 : rc;
}

static long make_exit(const long a[6])
{
    _exit((int)a[0]);
}

static long (*const makers[])(const long a[6]) = {
    [SYS_accept] = make_accept,
    [SYS_accept4] = make_accept4,
    [SYS_alarm] = make_alarm,
    [SYS_clock_gettime] = make_clock_gettime,
    [SYS_clock_nanosleep] = make_clock_nanosleep,
    [SYS_close] = make_close,
    [SYS_connect] = make_connect,
    [SYS_epoll_pwait] = make_epoll_pwait,
    [SYS_epoll_pwait2] = make_epoll_pwait2,
    [SYS_epoll_wait] = make_epoll_wait,
    [SYS_exit_group] = make_exit,
    [SYS_fcntl] = make_fcntl,
    [SYS_flock] = make_flock,
    [SYS_futex] = make_futex,
    [SYS_getitimer] = make_getitimer,
    [SYS_gettimeofday] = make_gettimeofday,
    [SYS_kill] = make_kill,
    [SYS_mq_timedreceive] = make_mq_timedreceive,
    [SYS_mq_timedsend] = make_mq_timedsend,
    [SYS_msgrcv] = make_msgrcv,
    [SYS_msgsnd] = make_msgsnd,
    [SYS_nanosleep] = make_nanosleep,
    [SYS_open] = make_open,
    [SYS_openat] = make_openat,
    [SYS_pause] = make_pause,
    [SYS_poll] = make_poll,
    [SYS_ppoll] = make_ppoll,
    [SYS_pselect6] = make_pselect,
    [SYS_read] = make_read,
    [SYS_readv] = make_readv,
    [SYS_recvfrom] = make_recvfrom,
    [SYS_recvmmsg] = make_recvmmsg,
    [SYS_recvmsg] = make_recvmsg,
    [SYS_rt_sigsuspend] = make_sigsuspend,
    [SYS_rt_sigtimedwait] = make_sigtimedwait,
    [SYS_sched_yield] = make_yield,
    [SYS_select] = make_select,
    [SYS_semop] = make_semop,
    [SYS_semtimedop] = make_semtimedop,
    [SYS_sendmsg] = make_sendmsg,
    [SYS_sendto] = make_sendto,
    [SYS_setitimer] = make_setitimer,
    [SYS_shutdown] = make_shutdown,
    [SYS_splice] = make_splice,
    [SYS_tee] = make_tee,
    [SYS_time] = make_time,
    [SYS_timerfd_create] = make_timerfd_create,
    [SYS_timerfd_gettime] = make_timerfd_gettime,
    [SYS_timerfd_settime] = make_timerfd_settime,
    [SYS_wait4] = make_wait4,
    [SYS_waitid] = make_waitid,
    [SYS_write] = make_write,
    [SYS_writev] = make_writev,
};

bool virtual_call(long number, const long a[6], long *value)
{
    if (number < 0 || (size_t)number >= sizeof(makers) / sizeof(makers[0]) ||
        makers[number] == NULL) {
        return false;
    }
    int error = errno;
    long rc = makers[number](a);
    *value = rc == -1 ? -errno : rc;
    errno = error;
    return true;
}

/* libc's function, which programs call. libportals makes its own calls by instructions, but in
 * builds with sanitizers by this function: no time passes by them. */
SHOWN long syscall(long number, ...)
{
    long a[6], value;
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++) {
        a[i] = va_arg(list, long);
    }
    va_end(list);
    if (CALLED_BY_PORTALS() || !virtual_in() || !virtual_call(number, a, &value)) {
        value = SYS_CALL(number, a[0], a[1], a[2], a[3], a[4], a[5]);
    }
    errno = value < 0 && value >= -4095 ? (int)-value : errno;
    return value < 0 && value >= -4095 ? -1 : value;
}
