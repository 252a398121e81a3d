/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that the ranks of a host share. The first rank makes it, without a name in any file system
 * (memfd), and hands it to the others over a socket whose name is drawn for this window: it gives
 * it only to processes of the same user that know a number which the ranks got over their MPI. Its
 * pages are taken before anybody maps it, so that no rank is killed for want of memory later.
 */
#include "create.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct shared {
    void *start;
    size_t size;
    uint32_t ranks;
    struct part {
        size_t offset;
        MPI_Aint size, disp_unit;
    } parts[];
};

/* What the first rank tells the others. */
struct offer {
    uint64_t secret[2], name;
    uint64_t failed;
};

static void address_of(const struct offer *o, struct sockaddr_un *to, socklen_t *length)
{
    memset(to, 0, sizeof(*to));
    to->sun_family = AF_UNIX;
    int n = snprintf(to->sun_path + 1, sizeof(to->sun_path) - 1, "pinwheel-rma-%016llx",
                     (unsigned long long)o->name);
    *length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int memory_of(size_t size)
{
    int fd = memfd_create("pinwheel-rma", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (ftruncate(fd, (off_t)size) != 0 ||
                    (size > 0 && posix_fallocate(fd, 0, (off_t)size) != 0) ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* ---- From the first rank to the others ---- */

static int listen_at(const struct offer *o, uint32_t ranks)
{
    struct sockaddr_un at;
    socklen_t length;
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    address_of(o, &at, &length);
    if (s >= 0 && (bind(s, (struct sockaddr *)&at, length) != 0 || listen(s, (int)ranks) != 0)) {
        close(s);
        s = -1;
    }
    return s;
}

union control {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
};

static bool give(int to, int fd)
{
    union control control = {0};
    char one = 1;
    struct iovec part = {&one, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &fd, sizeof(fd));
    return sendmsg(to, &message, MSG_NOSIGNAL) == 1;
}

/* Is this a process of the same user that knows the secret? */
static bool may_have(int from, const struct offer *o)
{
    struct ucred who;
    socklen_t length = sizeof(who);
    uint64_t said[2];
    return getsockopt(from, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0 && who.uid == geteuid() &&
           recv(from, said, sizeof(said), 0) == (ssize_t)sizeof(said) &&
           memcmp(said, o->secret, sizeof(said)) == 0;
}

/* Gives the memory to all others; they come for it, or their processes end, and then the job. */
static void give_all(int s, int fd, const struct offer *o, uint32_t others)
{
    while (others > 0) {
        int peer = accept4(s, NULL, NULL, SOCK_CLOEXEC);
        if (peer < 0 && errno != EINTR && errno != ECONNABORTED) {
            return;
        }
        if (peer >= 0) {
            others -= may_have(peer, o) && give(peer, fd);
            close(peer);
        }
    }
}

static int receive(int from)
{
    union control control;
    char one;
    struct iovec part = {&one, 1};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof(control)};
    int fd = -1;
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) == 1) {
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        if (header != NULL && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS) {
            memcpy(&fd, CMSG_DATA(header), sizeof(fd));
        }
    }
    return fd;
}

static int fetch(const struct offer *o)
{
    struct sockaddr_un at;
    socklen_t length;
    int fd = -1, s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    address_of(o, &at, &length);
    if (s >= 0 && connect(s, (struct sockaddr *)&at, length) == 0 &&
        send(s, o->secret, sizeof(o->secret), MSG_NOSIGNAL) == (ssize_t)sizeof(o->secret)) {
        fd = receive(s);
    }
    if (s >= 0) {
        close(s);
    }
    return fd;
}

/* All ranks get the memory, or -1. */
static int exchange(MPI_Comm comm, uint32_t rank, uint32_t ranks, size_t size)
{
    struct offer o = {.failed = 1};
    int fd = -1, s = -1;
    if (rank == 0) {
        fd = memory_of(size);
        if (fd >= 0 && getrandom(&o, sizeof(o), 0) == (ssize_t)sizeof(o)) {
            s = listen_at(&o, ranks);
        }
        o.failed = s < 0;
    }
    PMPI_Bcast(&o, sizeof(o), MPI_BYTE, 0, comm);
    if (o.failed) {
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    if (rank == 0) {
        give_all(s, fd, &o, ranks - 1);
        close(s);
        return fd;
    }
    return fetch(&o);
}

/* ---- Parts ---- */

enum reason shared_make(struct window *w, const struct wish *wish, void **base)
{
    uint32_t ranks = w->ranks->size;
    struct shared *s = calloc(1, sizeof(*s) + ranks * sizeof(s->parts[0]));
    MPI_Aint *all = calloc(ranks, 2 * sizeof(*all)), mine[2] = {wish->size, wish->disp_unit};
    if (s == NULL || all == NULL) {
        free(s);
        free(all);
        return REASON_MEMORY;
    }
    PMPI_Allgather(mine, 2, MPI_AINT, all, 2, MPI_AINT, wish->comm);
    size_t unit =
        info_says(wish->info, "alloc_shared_noncontig", "true") ? (size_t)sysconf(_SC_PAGESIZE) : 1;
    for (uint32_t i = 0; i < ranks; i++) {
        s->parts[i] = (struct part){s->size, all[2 * i], all[2 * i + 1]};
        s->size += ((size_t)all[2 * i] + unit - 1) / unit * unit;
    }
    free(all);
    s->ranks = ranks;
    if (s->size > 0) {
        int fd = exchange(wish->comm, w->ranks->rank, ranks, s->size);
        s->start =
            fd >= 0 ? mmap(NULL, s->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) : MAP_FAILED;
        if (fd >= 0) {
            close(fd);
        }
        if (s->start == MAP_FAILED) {
            free(s);
            return REASON_MEMORY;
        }
    }
    w->shared = s;
    *base = (char *)s->start + s->parts[w->ranks->rank].offset;
    return REASON_NONE;
}

void shared_end(struct shared *s)
{
    if (s != NULL && s->start != NULL) {
        munmap(s->start, s->size);
    }
    free(s);
}

void *shared_part(const struct shared *s, uint32_t rank)
{
    return (char *)s->start + s->parts[rank].offset;
}

/* A rank's part; MPI_PROC_NULL: that of the first rank that has some. */
static int query(struct window *w, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *base)
{
    const struct shared *s = w->shared;
    if (s == NULL) {
        return window_error(w, MPI_ERR_RMA_FLAVOR,
                            "MPI_Win_shared_query: the window is not shared");
    }
    if (rank != MPI_PROC_NULL && (rank < 0 || (uint32_t)rank >= s->ranks)) {
        return window_error(w, MPI_ERR_RANK,
                            "MPI_Win_shared_query: rank %d is none of the window's %u", rank,
                            s->ranks);
    }
    uint32_t i = rank == MPI_PROC_NULL ? 0 : (uint32_t)rank;
    while (rank == MPI_PROC_NULL && i < s->ranks && s->parts[i].size == 0) {
        i++;
    }
    bool some = i < s->ranks;
    *size = some ? s->parts[i].size : 0;
    *disp_unit = some ? s->parts[i].disp_unit : 1;
    *(void **)base = some && s->start != NULL ? (char *)s->start + s->parts[i].offset : NULL;
    return MPI_SUCCESS;
}

int PMPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint *size, int *disp_unit, void *base)
{
    struct window *w = window_of(win);
    MPI_Aint unit = 0;
    if (w == NULL) {
        return REAL(Win_shared_query, win, rank, size, disp_unit, base);
    }
    int rc = query(w, rank, size, &unit, base);
    if (rc == MPI_SUCCESS) {
        *disp_unit = (int)unit;
    }
    return rc;
}
ALSO_MPI(Win_shared_query);

#ifdef MPI_RMA_LARGE
int PMPI_Win_shared_query_c(MPI_Win win, int rank, MPI_Aint *size, MPI_Aint *disp_unit, void *base)
{
    struct window *w = window_of(win);
    return w == NULL ? REAL(Win_shared_query_c, win, rank, size, disp_unit, base)
                     : query(w, rank, size, disp_unit, base);
}
ALSO_MPI(Win_shared_query_c);
#endif
