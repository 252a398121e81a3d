/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opening a FIFO, and locks of files: flock(), fcntl(), lockf(). Each is tried without waiting, and
 * again when others have done something.
 *
 * A reader of a FIFO has it open without waiting; whether it has a writer says poll(): once there
 * was one, and it is gone, there is POLLHUP. So the reader is a writer itself for a moment.
 */
#include "virtual.h"

#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct opening {
    int folder;
    const char *path;
    int flags, fd, error;
    bool again; /* the descriptor is `fd` already */
};

static int open_now(const struct opening *o, int flags)
{
    return (int)SYS_CALL(SYS_openat, o->folder, o->path, flags | O_NONBLOCK, 0);
}

static short state_of(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return sys_poll(&p, 1, 0) > 0 ? p.revents : 0;
}

static bool has_writer(void *opening)
{
    struct opening *o = opening;
    if (o->fd < 0) {
        o->fd = open_now(o, o->flags);
    }
    if (o->fd < 0 || state_of(o->fd) != 0) {
        return true; /* one has come, and perhaps gone again */
    }
    int writer = open_now(o, O_WRONLY | O_CLOEXEC);
    if (writer >= 0) {
        sys_close(writer);
    }
    if ((state_of(o->fd) & POLLHUP) == 0) {
        return true;
    }
    int fresh = open_now(o, o->flags); /* which has seen no writer yet */
    if (fresh >= 0) {
        SYS_CALL(SYS_dup3, fresh, o->fd, o->flags & O_CLOEXEC);
        sys_close(fresh);
    }
    return false;
}

static bool has_reader(void *opening)
{
    struct opening *o = opening;
    o->fd = open_now(o, o->flags);
    return o->fd != -ENXIO;
}

static int open_fifo(int folder, const char *path, int flags)
{
    struct opening o = {.folder = folder, .path = path, .flags = flags, .fd = -1};
    bool reads = (flags & O_ACCMODE) == O_RDONLY;
    if (reads) {
        o.fd = open_now(&o, flags);
        virtual_stir(); /* a writer may wait for it */
    }
    enum virtual_end end =
        virtual_await_again(reads ? has_writer : has_reader, &o, SIM_NEVER, "a FIFO");
    if (end == VIRTUAL_SIGNAL && o.fd >= 0) {
        sys_close(o.fd);
    }
    if (end == VIRTUAL_SIGNAL || o.fd < 0) {
        errno = end == VIRTUAL_SIGNAL ? EINTR : -o.fd;
        return -1;
    }
    SYS_CALL(SYS_fcntl, o.fd, F_SETFL, flags & ~O_NONBLOCK);
    virtual_stir();
    return o.fd;
}

/* Whether opening a file may wait for who opens its other end. */
static bool waits(int folder, const char *path, int flags)
{
    struct stat s;
    return virtual_in() && path != NULL && (flags & (O_NONBLOCK | O_PATH)) == 0 &&
           (flags & O_ACCMODE) != O_RDWR && fstatat(folder, path, &s, 0) == 0 &&
           S_ISFIFO(s.st_mode);
}

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
    if (waits(folder, path, flags)) {
        return open_fifo(folder, path, flags);
    }
    long fd = SYS_CALL(SYS_openat, folder, path, flags, mode);
    errno = fd < 0 ? (int)-fd : errno;
    return fd < 0 ? -1 : (int)fd;
}

#define MODE_OF(flags)                                                                             \
    ({                                                                                             \
        mode_t mode_ = 0;                                                                          \
        if (((flags) & (O_CREAT | O_TMPFILE)) != 0) {                                              \
            va_list list_;                                                                         \
            va_start(list_, flags);                                                                \
            mode_ = va_arg(list_, mode_t);                                                         \
            va_end(list_);                                                                         \
        }                                                                                          \
        mode_;                                                                                     \
    })

SHOWN int open(const char *path, int flags, ...)
{
    return open_at(AT_FDCWD, path, flags, MODE_OF(flags));
}

SHOWN int open64(const char *path, int flags, ...)
{
    return open_at(AT_FDCWD, path, flags | O_LARGEFILE, MODE_OF(flags));
}

SHOWN int openat(int folder, const char *path, int flags, ...)
{
    return open_at(folder, path, flags, MODE_OF(flags));
}

SHOWN int openat64(int folder, const char *path, int flags, ...)
{
    return open_at(folder, path, flags | O_LARGEFILE, MODE_OF(flags));
}

int __open_2(const char *path, int flags);
SHOWN int __open_2(const char *path, int flags)
{
    return open_at(AT_FDCWD, path, flags, 0);
}

int __open64_2(const char *path, int flags);
SHOWN int __open64_2(const char *path, int flags)
{
    return open_at(AT_FDCWD, path, flags | O_LARGEFILE, 0);
}

/* ---- locks ---- */

struct file_lock {
    int fd, operation;
    void *arg;
    long rc; /* or -errno */
};

static bool has_flock(void *lock)
{
    struct file_lock *l = lock;
    l->rc = SYS_CALL(SYS_flock, l->fd, l->operation | LOCK_NB);
    return l->rc != -EWOULDBLOCK;
}

static bool has_range(void *lock)
{
    struct file_lock *l = lock;
    l->rc = SYS_CALL(SYS_fcntl, l->fd, l->operation, l->arg);
    return l->rc != -EAGAIN && l->rc != -EACCES;
}

static int take(bool (*has)(void *), struct file_lock *l)
{
    if (virtual_await_again(has, l, SIM_NEVER, "a lock of a file") == VIRTUAL_SIGNAL) {
        l->rc = -EINTR;
    }
    errno = l->rc < 0 ? (int)-l->rc : errno;
    return l->rc < 0 ? -1 : (int)l->rc;
}

SHOWN int flock(int fd, int operation)
{
    struct file_lock l = {fd, operation, NULL, -1};
    return virtual_in() && (operation & (LOCK_NB | LOCK_UN)) == 0
               ? take(has_flock, &l)
               : (int)virtual_done(OPENLY(REAL(flock)(fd, operation)));
}

static int control(int fd, int command, void *arg)
{
    struct file_lock l = {fd, command == F_SETLKW ? F_SETLK : F_OFD_SETLK, arg, -1};
    if (virtual_in() && (command == F_SETLKW || command == F_OFD_SETLKW)) {
        return (int)virtual_done(take(has_range, &l));
    }
    long rc = SYS_CALL(SYS_fcntl, fd, command, arg);
    errno = rc < 0 ? (int)-rc : errno;
    bool frees = command == F_SETLK || command == F_OFD_SETLK;
    return rc < 0 ? -1 : frees ? (int)virtual_done(rc) : (int)rc;
}

#define ARG_OF(last)                                                                               \
    ({                                                                                             \
        va_list list_;                                                                             \
        va_start(list_, last);                                                                     \
        void *arg_ = va_arg(list_, void *);                                                        \
        va_end(list_);                                                                             \
        arg_;                                                                                      \
    })

SHOWN int fcntl(int fd, int command, ...)
{
    void *arg = ARG_OF(command);
    return command == F_GETOWN ? OPENLY(REAL(fcntl)(fd, command, arg)) : control(fd, command, arg);
}

SHOWN int fcntl64(int fd, int command, ...)
{
    void *arg = ARG_OF(command);
    return command == F_GETOWN ? OPENLY(REAL(fcntl)(fd, command, arg)) : control(fd, command, arg);
}

SHOWN int lockf(int fd, int command, off_t length)
{
    if (command != F_LOCK && command != F_ULOCK) {
        return OPENLY(REAL(lockf)(fd, command, length));
    }
    struct flock range = {
        .l_type = command == F_LOCK ? F_WRLCK : F_UNLCK, .l_whence = SEEK_CUR, .l_len = length};
    return control(fd, F_SETLKW, &range);
}

SHOWN int lockf64(int fd, int command, off64_t length)
{
    return lockf(fd, command, length);
}
