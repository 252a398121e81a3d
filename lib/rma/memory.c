/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of regions that the library allocates: a memfd whose last page is the control, sealed
 * (H1). Where the process may have none (no descriptor left, a limit on files), it is memory of
 * this process alone, which peers reach by messages.
 */
#include "inside.h"
#include "share.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

size_t memory_size(size_t length)
{
    return (length + SHARE_PAGE - 1) / SHARE_PAGE * SHARE_PAGE + SHARE_PAGE;
}

/* Makes the file; -1: there can be none, -ENOMEM: no memory. */
static int make_file(size_t size)
{
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) != 0 ||
        (most.rlim_cur != RLIM_INFINITY && most.rlim_cur < size)) {
        return -1; /* a longer file would be a signal */
    }
    int fd = memfd_create("pinwheel-rma", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc;
    if (fd < 0) {
        return -1;
    }
    do {
        rc = fallocate(fd, 0, 0, (off_t)size);
    } while (rc != 0 && errno == EINTR);
    KILL_POINT("rma-taken");
    if (rc != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        close(fd);
        return -ENOMEM;
    }
    return fd;
}

static int map(struct memory *m)
{
    m->fd = make_file(m->mapped);
    if (m->fd == -ENOMEM) {
        return -ENOMEM;
    }
    int how = m->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
    void *at = mmap(NULL, m->mapped, PROT_READ | PROT_WRITE, how, m->fd, 0);
    if (at == MAP_FAILED) {
        if (m->fd >= 0) {
            close(m->fd);
        }
        return -ENOMEM;
    }
    m->start = at;
    if (m->fd >= 0) {
        m->control = (struct control *)(m->start + m->mapped - SHARE_PAGE);
    }
    return 0;
}

int memory_take(struct memory *m, size_t length)
{
    if (length > PTRDIFF_MAX / 2) {
        return -ENOMEM;
    }
    *m = (struct memory){.length = length, .mapped = memory_size(length), .fd = -1};
    int ticket = room_enter();
    int rc = room_check(m->mapped);
    if (rc == 0) {
        rc = map(m);
    }
    room_leave(ticket);
    return rc;
}

void memory_free(struct memory *m)
{
    if (m->start != NULL) {
        munmap(m->start, m->mapped);
    }
    if (m->fd >= 0) {
        close(m->fd);
    }
    m->start = NULL;
    m->fd = -1;
}
