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
    return OPENLY(REAL(poll)(fd, 1, 0)) != 0;
}

static const char *kind_of(int fd)
{
    struct stat s;
    if (fstat(fd, &s) != 0) {
        return "a file";
    }
    return S_ISFIFO(s.st_mode) ? "a pipe" : S_ISSOCK(s.st_mode) ? "a socket" : "a file";
}

bool virtual_fd(int fd, short events)
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
    enum virtual_end end = virtual_await_again(is_ready, &p, SIM_NEVER, kind_of(fd));
    errno = end == VIRTUAL_SIGNAL ? EINTR : error;
    return end == VIRTUAL_HOLDS;
}

ssize_t virtual_done(ssize_t n)
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
    return virtual_fd(fd, POLLIN) ? virtual_done(OPENLY(REAL(read)(fd, to, n))) : -1;
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
    return virtual_fd(fd, POLLIN) ? virtual_done(OPENLY(REAL(readv)(fd, parts, count))) : -1;
}

static bool await_message(int fd, int flags)
{
    return (flags & MSG_DONTWAIT) != 0 || virtual_fd(fd, POLLIN);
}

SHOWN ssize_t recv(int fd, void *to, size_t n, int flags)
{
    return await_message(fd, flags) ? virtual_done(OPENLY(REAL(recv)(fd, to, n, flags))) : -1;
}

SHOWN ssize_t recvfrom(int fd, void *restrict to, size_t n, int flags,
                       struct sockaddr *restrict from, socklen_t *restrict length)
{
    return await_message(fd, flags)
               ? virtual_done(OPENLY(REAL(recvfrom)(fd, to, n, flags, from, length)))
               : -1;
}

SHOWN ssize_t recvmsg(int fd, struct msghdr *m, int flags)
{
    return await_message(fd, flags) ? virtual_done(OPENLY(REAL(recvmsg)(fd, m, flags))) : -1;
}

SHOWN int accept(int fd, struct sockaddr *restrict from, socklen_t *restrict length)
{
    return virtual_fd(fd, POLLIN) ? (int)virtual_done(OPENLY(REAL(accept)(fd, from, length))) : -1;
}

struct messages {
    int fd, flags;
    struct mmsghdr *list;
    unsigned wanted, count;
    int error;
};

/* Receives what there is. */
static bool has_messages(void *messages)
{
    struct messages *m = messages;
    int n = OPENLY(REAL(recvmmsg)(m->fd, m->list + m->count, m->wanted - m->count,
                                  (m->flags & ~MSG_WAITFORONE) | MSG_DONTWAIT, NULL));
    m->error = n < 0 && errno != EAGAIN ? errno : 0;
    m->count += n > 0 ? (unsigned)n : 0;
    return m->error != 0 || m->count == m->wanted ||
           (m->count != 0 && (m->flags & MSG_WAITFORONE) != 0);
}

SHOWN int recvmmsg(int fd, struct mmsghdr *list, unsigned count, int flags, struct timespec *t)
{
    int of = virtual_in() && count != 0 && (flags & MSG_DONTWAIT) == 0 ? fcntl(fd, F_GETFL) : -1;
    if (of < 0 || (of & O_NONBLOCK) != 0) {
        return (int)virtual_done(OPENLY(REAL(recvmmsg)(fd, list, count, flags, t)));
    }
    struct messages m = {fd, flags, list, count, 0, 0};
    enum virtual_end end =
        virtual_await_again(has_messages, &m, virtual_after(virtual_ns(t)), "a socket");
    if (m.count == 0 && (end != VIRTUAL_HOLDS || m.error != 0)) {
        errno = end == VIRTUAL_LATE ? EAGAIN : end == VIRTUAL_SIGNAL ? EINTR : m.error;
        return -1;
    }
    return (int)virtual_done((ssize_t)m.count);
}

SHOWN int accept4(int fd, struct sockaddr *restrict from, socklen_t *restrict length, int flags)
{
    return virtual_fd(fd, POLLIN)
               ? (int)virtual_done(OPENLY(REAL(accept4)(fd, from, length, flags)))
               : -1;
}

/* ---- writes ---- */

/* The output of the rank, which is read in no time. One that writes much at one time lets it be
 * printed meanwhile: it need not be kept until time goes on, and may have no reader. */
static ssize_t say(int fd, const void *from, size_t n)
{
    static size_t said;
    struct sim_clock *c = virtual_clock;
    ssize_t done = OPENLY(REAL(write)(fd, from, n));
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
        return OPENLY(REAL(write)(fd, from, n));
    }
    if (sim_said_by(virtual_clock, fd)) {
        return say(fd, from, n);
    }
    size_t moved = 0;
    do {
        size_t part = n - moved < PIPE_BUF ? n - moved : PIPE_BUF;
        if (!virtual_fd(fd, POLLOUT)) {
            return moved != 0 ? (ssize_t)moved : -1;
        }
        ssize_t now = OPENLY(REAL(write)(fd, (const char *)from + moved, part));
        if (now < 0) {
            return moved != 0 ? (ssize_t)moved : -1;
        }
        moved += (size_t)now;
        virtual_done(now);
        if ((size_t)now < part) {
            break;
        }
    } while (moved < n);
    return (ssize_t)moved;
}

SHOWN ssize_t writev(int fd, const struct iovec *parts, int count)
{
    if (virtual_in() && sim_said_by(virtual_clock, fd)) {
        return OPENLY(REAL(writev)(fd, parts, count));
    }
    return virtual_fd(fd, POLLOUT) ? virtual_done(OPENLY(REAL(writev)(fd, parts, count))) : -1;
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
        ssize_t now =
            OPENLY(REAL(sendto)(fd, from + moved, n - moved, flags | MSG_DONTWAIT, to, length));
        if (now < 0 && (errno != EAGAIN || !virtual_fd(fd, POLLOUT))) {
            return moved != 0 ? (ssize_t)moved : -1;
        }
        moved += now > 0 ? (size_t)now : 0;
        virtual_done(now);
    } while (moved < n);
    return (ssize_t)moved;
}

SHOWN ssize_t sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to,
                     socklen_t length)
{
    if (!virtual_in() || is_launcher(fd) || !may_block(fd, flags)) {
        return virtual_done(OPENLY(REAL(sendto)(fd, from, n, flags, to, length)));
    }
    return send_parts(fd, from, n, flags, to, length);
}

SHOWN ssize_t send(int fd, const void *from, size_t n, int flags)
{
    return sendto(fd, from, n, flags, NULL, 0);
}

SHOWN ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    bool ready = (flags & MSG_DONTWAIT) != 0 || virtual_fd(fd, POLLOUT);
    return ready ? virtual_done(OPENLY(REAL(sendmsg)(fd, m, flags))) : -1;
}

/* ---- from one to another ---- */

/* The kernel moves what it can without waiting. */
struct moves {
    int from, to;
    off64_t *from_at, *to_at;
    size_t n;
    unsigned flags;
    bool tees;
    ssize_t moved;
    int error;
};

static bool has_moved(void *moves)
{
    struct moves *m = moves;
    unsigned flags = m->flags | SPLICE_F_NONBLOCK;
    m->moved = m->tees ? OPENLY(REAL(tee)(m->from, m->to, m->n, flags))
                       : OPENLY(REAL(splice)(m->from, m->from_at, m->to, m->to_at, m->n, flags));
    m->error = errno;
    return m->moved >= 0 || m->error != EAGAIN;
}

static ssize_t move(struct moves *m)
{
    if (virtual_await_again(has_moved, m, SIM_NEVER, "a pipe") == VIRTUAL_SIGNAL) {
        errno = EINTR;
        return -1;
    }
    errno = m->error;
    return virtual_done(m->moved);
}

SHOWN ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t n, unsigned flags)
{
    struct moves m = {from, to, from_at, to_at, n, flags, false, 0, 0};
    return virtual_in() && (flags & SPLICE_F_NONBLOCK) == 0
               ? move(&m)
               : virtual_done(OPENLY(REAL(splice)(from, from_at, to, to_at, n, flags)));
}

SHOWN ssize_t tee(int from, int to, size_t n, unsigned flags)
{
    struct moves m = {from, to, NULL, NULL, n, flags, true, 0, 0};
    return virtual_in() && (flags & SPLICE_F_NONBLOCK) == 0
               ? move(&m)
               : virtual_done(OPENLY(REAL(tee)(from, to, n, flags)));
}

SHOWN int connect(int fd, const struct sockaddr *to, socklen_t length)
{
    return (int)virtual_done(OPENLY(REAL(connect)(fd, to, length)));
}

SHOWN int shutdown(int fd, int how)
{
    return (int)virtual_done(OPENLY(REAL(shutdown)(fd, how)));
}

SHOWN int close(int fd)
{
    if (virtual_in()) {
        virtual_closed(fd);
    }
    return (int)virtual_done(OPENLY(REAL(close)(fd)));
}

/* libc writes what a stream holds by a call of its own. */
SHOWN int fflush(FILE *f)
{
    return (int)virtual_done(REAL(fflush)(f));
}

SHOWN int fclose(FILE *f)
{
    return (int)virtual_done(REAL(fclose)(f));
}
