/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watcher (PW_FIREHOSE_WATCH): a thread that the kernel tells, by events of userfaultfd(2),
 * that pinned memory is unmapped, moved, advised away or copied by fork().
 *
 * Memory is registered before it is pinned, in the mode for write protection: as nothing is ever
 * protected no fault comes, only events. Who unmaps memory waits in the kernel until the watcher
 * has read the event, but no longer. So the watcher first hides all units from hits and raises an
 * alarm, at which other calls wait; then it reads, forgets what the events name, and lowers the
 * alarm. It reads without the lock: who holds the lock may be the one who waits in the kernel.
 */
#include "base/sys.h"
#include "base/thread.h"
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

enum { EVENTS = 16 };

struct watch {
    struct pw_firehose *table;
    int events, stop;
    pthread_t thread;
    _Atomic bool told; /* a range could not be registered, and that was said */
};

static const uint64_t wanted =
    UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;

/* Opens a userfaultfd with these events; a negative errno value. */
static int open_events(uint64_t features)
{
    struct uffdio_api api = {.api = UFFD_API, .features = features};
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fd < 0) {
        return -errno;
    }
    if (ioctl(fd, UFFDIO_API, &api) != 0) {
        int error = errno;
        sys_close(fd);
        return -error;
    }
    return fd;
}

/* Forgets what an event names. The caller holds the lock. */
static void note(struct watch *w, const struct uffd_msg *m)
{
    struct pin *pin = w->table->pin;
    uint64_t when;
    switch (m->event) {
    case UFFD_EVENT_UNMAP:
    case UFFD_EVENT_REMOVE:
        pin_forget(pin, m->arg.remove.start, m->arg.remove.end - m->arg.remove.start, true, &when);
        break;
    case UFFD_EVENT_REMAP:
        pin_forget(pin, m->arg.remap.from, m->arg.remap.len, true, &when);
        pin_forget(pin, m->arg.remap.to, m->arg.remap.len, true, &when);
        break;
    case UFFD_EVENT_FORK:
        /* whoever writes first, parent or child, gets a copy of the page */
        sys_close((int)m->arg.fork.ufd);
        pin_forget(pin, 0, UINT64_MAX, true, &when);
        break;
    default:
        break;
    }
}

static void take_events(struct watch *w)
{
    struct pw_firehose *f = w->table;
    struct uffd_msg messages[EVENTS];
    atomic_fetch_add(&f->alarms, 1);
    pin_hide(f->pin);
    ssize_t n = sys_read(w->events, messages, sizeof(messages));
    mutex_take(&f->lock);
    for (ssize_t i = 0; i < n / (ssize_t)sizeof(messages[0]); i++) {
        note(w, &messages[i]);
    }
    pin_show(f->pin);
    atomic_fetch_sub(&f->alarms, 1);
    /* moves of peers may have waited for the end of the alarm */
    atomic_store_explicit(&f->work, true, memory_order_release);
    firehose_wake(f);
    mutex_give(&f->lock);
}

static void *run(void *argument)
{
    struct watch *w = argument;
    for (;;) {
        struct pollfd wait[] = {{.fd = w->events, .events = POLLIN},
                                {.fd = w->stop, .events = POLLIN}};
        if (sys_poll(wait, 2, -1) < 0) {
            continue;
        }
        if (wait[0].revents & POLLIN) {
            take_events(w);
        } else if (wait[1].revents != 0) {
            return NULL;
        }
    }
}

unsigned firehose_watch_open(struct pw_firehose *f)
{
    struct watch *w = calloc(1, sizeof(*w));
    unsigned watched = PW_FIREHOSE_WATCHED_MEMORY | PW_FIREHOSE_WATCHED_FORK;
    int rc = -ENOMEM;
    if (w != NULL) {
        w->table = f;
        w->stop = eventfd(0, EFD_CLOEXEC);
        w->events = rc = open_events(wanted | UFFD_FEATURE_EVENT_FORK);
        if (rc == -EPERM && (w->events = rc = open_events(wanted)) >= 0) {
            watched = PW_FIREHOSE_WATCHED_MEMORY;
            fprintf(stderr, "firehose: without CAP_SYS_PTRACE the kernel does not tell of fork(): "
                            "call pw_firehose_forget() after it\n");
        }
        rc = rc < 0 ? rc : w->stop < 0 ? -EMFILE : -thread_start(&w->thread, NULL, false, run, w);
    }
    if (rc == 0) {
        f->watch = w;
        return watched;
    }
    fprintf(
        stderr,
        "firehose: pinned memory cannot be watched (userfaultfd: %s): call pw_firehose_forget() "
        "when it goes\n",
        strerror(-rc));
    if (w != NULL) {
        sys_close(w->events);
        sys_close(w->stop);
        free(w);
    }
    return 0;
}

void firehose_watch(struct pw_firehose *f, const struct pw_firehose_region *regions, size_t n)
{
    struct watch *w = f->watch;
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; w != NULL && i < n; i++) {
        uint64_t first = regions[i].addr & ~(page - 1);
        uint64_t end = (regions[i].addr + regions[i].len + page - 1) & ~(page - 1);
        struct uffdio_register range = {.range = {first, end - first},
                                        .mode = UFFDIO_REGISTER_MODE_WP};
        if (ioctl(w->events, UFFDIO_REGISTER, &range) != 0 && !atomic_exchange(&w->told, true)) {
            fprintf(stderr,
                    "firehose: memory at %#llx cannot be watched (userfaultfd: %s): call "
                    "pw_firehose_forget() when it goes\n",
                    (unsigned long long)regions[i].addr, strerror(errno));
        }
    }
}

/* The descriptor is closed before anything else of the table ends: nobody reads it any more, and
 * who unmaps watched memory would wait for ever. */
void firehose_watch_close(struct pw_firehose *f)
{
    struct watch *w = f->watch;
    uint64_t one = 1;
    if (w == NULL) {
        return;
    }
    while (sys_write(w->stop, &one, sizeof(one)) == -EINTR) {
    }
    thread_join(w->thread);
    sys_close(w->events);
    sys_close(w->stop);
    free(w);
    f->watch = NULL;
}
