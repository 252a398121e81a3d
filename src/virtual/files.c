/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and writes that block: of pipes, sockets, terminals. A descriptor is asked whether it is
 * ready before libc's function is called; what was written is told to others. The connection to the
 * launcher (PMI_FD) and the rank's own output (fabric/sim/said.h) are left alone: whoever is at the
 * other end answers, or reads, in no time.
 */
#include "virtual.h"

#include "fabric/sim/said.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SAY_MOST = 1 << 20 };

static bool is_launcher(int fd)
{
    static int launcher = -2;
    if (launcher == -2) {
        const char *text = getenv("PMI_FD");
        launcher = text != NULL ? atoi(text) : -1;
    }
    return fd == launcher;
}

static bool is_ready(void *fd)
{
    return REAL(poll)(fd, 1, 0) != 0;
}

static const char *kind_of(int fd)
{
    struct stat s;
    if (fstat(fd, &s) != 0) {
        return "a file";
    }
    return S_ISFIFO(s.st_mode) ? "a pipe" : S_ISSOCK(s.st_mode) ? "a socket" : "a file";
}

/* Waits until a descriptor that blocks is ready; false: errno says why. */
static bool await_fd(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    if (!virtual_in() || is_launcher(fd) || is_ready(&p)) {
        return true;
    }
    int error = errno, flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && (flags & O_NONBLOCK) != 0) {
        errno = error;
        return true;
    }
    enum virtual_end end = virtual_await(is_ready, &p, SIM_NEVER, kind_of(fd));
    errno = end == VIRTUAL_SIGNAL ? EINTR : error;
    return end == VIRTUAL_HOLDS;
}

/* Others may go on for what was done to a descriptor. */
static ssize_t done(ssize_t n)
{
    int error = errno;
    if (n >= 0 && virtual_in()) {
        virtual_stir();
    }
    errno = error;
    return n;
}

/* ---- reads ---- */

SHOWN ssize_t read(int fd, void *to, size_t n)
{
    return await_fd(fd, POLLIN) ? done(REAL(read)(fd, to, n)) : -1;
}

ssize_t __read_chk(int fd, void *to, size_t n, size_t room);
SHOWN ssize_t __read_chk(int fd, void *to, size_t n, size_t room)
{
    if (n > room) {
        abort();
    }
    return read(fd, to, n);
}

SHOWN ssize_t readv(int fd, const struct iovec *parts, int count)
{
    return await_fd(fd, POLLIN) ? done(REAL(readv)(fd, parts, count)) : -1;
}

static bool await_message(int fd, int flags)
{
    return (flags & MSG_DONTWAIT) != 0 || await_fd(fd, POLLIN);
}

SHOWN ssize_t recv(int fd, void *to, size_t n, int flags)
{
    return await_message(fd, flags) ? done(REAL(recv)(fd, to, n, flags)) : -1;
}

SHOWN ssize_t recvfrom(int fd, void *restrict to, size_t n, int flags,
                       struct sockaddr *restrict from, socklen_t *restrict length)
{
    return await_message(fd, flags) ? done(REAL(recvfrom)(fd, to, n, flags, from, length)) : -1;
}

SHOWN ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    return await_message(fd, flags) ? done(REAL(recvmsg)(fd, m, flags)) : -1;
}

SHOWN int accept(int fd, struct sockaddr *restrict from, socklen_t *restrict length)
{
    return await_fd(fd, POLLIN) ? (int)done(REAL(accept)(fd, from, length)) : -1;
}

SHOWN int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict length, int flags)
{
    return await_fd(fd, POLLIN) ? (int)done(REAL(accept4)(fd, from, length, flags)) : -1;
}

/* ---- writes ---- */

/* The output of the rank, which is read in no time. One that writes much at one time lets it be
 * printed meanwhile: it need not be kept until time goes on, and may have no reader. */
static ssize_t say(int fd, const void *from, size_t n)
{
    static size_t said;
    struct sim_clock *c = virtual_clock;
    ssize_t done = REAL(write)(fd, from, n);
    int error = errno;
    said += done > 0 ? (size_t)done : 0;
    if (said > SAY_MOST) {
        said = 0;
        c->until = c->now;
        sim_clock_wait(c, c->now, SIM_TASK_TIME, SIM_COMPUTES, false);
    }
    errno = error;
    return done;
}

/* To a pipe that is ready for it PIPE_BUF bytes can be written without waiting. */
SHOWN ssize_t write(int fd, const void *from, size_t n)
{
    struct stat s;
    if (!virtual_in() || is_launcher(fd) || fstat(fd, &s) != 0 || S_ISREG(s.st_mode)) {
        return REAL(write)(fd, from, n);
    }
    if (sim_said_by(virtual_clock, fd)) {
        return say(fd, from, n);
    }
    size_t moved = 0;
    do {
        size_t part = n - moved < PIPE_BUF ? n - moved : PIPE_BUF;
        if (!await_fd(fd, POLLOUT)) {
            return moved != 0 ? (ssize_t)moved : -1;
        }
        ssize_t now = REAL(write)(fd, (const char *)from + moved, part);
        if (now < 0) {
            return moved != 0 ? (ssize_t)moved : -1;
        }
        moved += (size_t)now;
        done(now);
        if ((size_t)now < part) {
            break;
        }
    } while (moved < n);
    return (ssize_t)moved;
}

SHOWN ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (virtual_in() && sim_said_by(virtual_clock, fd)) {
        return REAL(writev)(fd, parts, count);
    }
    return await_fd(fd, POLLOUT) ? done(REAL(writev)(fd, parts, count)) : -1;
}

/* A send to a socket that has room for less blocks in the kernel: without waiting it sends a part.
 */
static bool may_block(int fd, int flags)
{
    int of = fcntl(fd, F_GETFL);
    return (flags & MSG_DONTWAIT) == 0 && of >= 0 && (of & O_NONBLOCK) == 0;
}

static ssize_t send_parts(int fd, const char *from, size_t n, int flags, const struct sockaddr *to,
                          socklen_t length)
{
    size_t moved = 0;
    do {
        ssize_t now = REAL(sendto)(fd, from + moved, n - moved, flags | MSG_DONTWAIT, to, length);
        if (now < 0 && (errno != EAGAIN || !await_fd(fd, POLLOUT))) {
            return moved != 0 ? (ssize_t)moved : -1;
        }
        moved += now > 0 ? (size_t)now : 0;
        done(now);
    } while (moved < n);
    return (ssize_t)moved;
}

SHOWN ssize_t sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to,
                     socklen_t length)
{
    if (!virtual_in() || is_launcher(fd) || !may_block(fd, flags)) {
        return done(REAL(sendto)(fd, from, n, flags, to, length));
    }
    return send_parts(fd, from, n, flags, to, length);
}

SHOWN ssize_t send(int fd, const void *from, size_t n, int flags)
{
    return sendto(fd, from, n, flags, NULL, 0);
}

SHOWN ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    bool ready = (flags & MSG_DONTWAIT) != 0 || await_fd(fd, POLLOUT);
    return ready ? done(REAL(sendmsg)(fd, m, flags)) : -1;
}

SHOWN int connect(int fd, const struct sockaddr *to, socklen_t length)
{
    return (int)done(REAL(connect)(fd, to, length));
}

SHOWN int shutdown(int fd, int how)
{
    return (int)done(REAL(shutdown)(fd, how));
}

SHOWN int close(int fd)
{
    return (int)done(REAL(close)(fd));
}

/* libc writes what a stream holds by a call of its own. */
SHOWN int fflush(FILE *f)
{
    return (int)done(REAL(fflush)(f));
}

SHOWN int fclose(FILE *f)
{
    return (int)done(REAL(fclose)(f));
}

/* ---- locks of files ---- */

struct file_lock {
    int fd, operation, rc;
};

static bool has_lock(void *lock)
{
    struct file_lock *l = lock;
    l->rc = REAL(flock)(l->fd, l->operation | LOCK_NB);
    return l->rc == 0 || errno != EWOULDBLOCK;
}

SHOWN int flock(int fd, int operation)
{
    struct file_lock l = {fd, operation, -1};
    if (!virtual_in() || (operation & LOCK_NB) != 0 || (operation & LOCK_UN) != 0) {
        return (int)done(REAL(flock)(fd, operation));
    }
    if (virtual_await(has_lock, &l, SIM_NEVER, "a lock of a file") == VIRTUAL_SIGNAL) {
        errno = EINTR;
        return -1;
    }
    return l.rc;
}
