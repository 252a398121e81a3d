/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The peer's side of a hand-over (share.h): the first operation with a key asks the owner of its
 * region for the memory, and maps it. What comes is believed in nothing that could end this process
 * later: the file must be sealed, and long enough.
 *
 * Whatever goes wrong, operations go by messages: the owner is on another host or in another
 * network namespace, is another user, has no descriptor left, is stopped; this process has no
 * descriptor or no address space left. Where the sum of what is mapped would pass the bound, the
 * region is mapped in buckets (bucket.c).
 */
#include "inside.h"
#include "share.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

/* What an owner has sent. */
struct handed {
    struct answer answer;
    int memory, life;
};

static int call_owner(const struct pw_rma_key *key)
{
    struct sockaddr_un name;
    struct timeval patience = {.tv_sec = HAND_OVER_MS / 1000,
                               .tv_usec = HAND_OVER_MS % 1000 * 1000};
    struct ucred who;
    socklen_t size = host_name(&name, key->is.incarnation), room = sizeof(who);
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (s < 0) {
        return -errno;
    }
    if (setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) != 0 ||
        setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) != 0 ||
        connect(s, (struct sockaddr *)&name, size) != 0 ||
        getsockopt(s, SOL_SOCKET, SO_PEERCRED, &who, &room) != 0) {
        int code = -errno;
        close(s);
        return code;
    }
    if (who.uid != geteuid()) {
        close(s);
        return -EPERM;
    }
    return s;
}

/* Takes the descriptors of a message; more or fewer than two are closed. */
static void take_descriptors(struct msghdr *m, struct handed *h)
{
    int fds[8], count = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS) {
            size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
            for (size_t i = 0; i < n && count < 8; i++) {
                memcpy(&fds[count++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
            }
        }
    }
    if (count == 2 && (m->msg_flags & MSG_CTRUNC) == 0) {
        h->memory = fds[0];
        h->life = fds[1];
        return;
    }
    for (int i = 0; i < count; i++) {
        close(fds[i]);
    }
}

static int hear_owner(int s, struct handed *h)
{
    unsigned char bytes[ANSWER_BYTES + 1];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct iovec part = {bytes, sizeof(bytes)};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    ssize_t n;
    do {
        n = recvmsg(s, &m, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        return errno == EAGAIN ? -ETIMEDOUT : -errno;
    }
    take_descriptors(&m, h);
    if (!answer_read(bytes, (size_t)n, &h->answer)) {
        return n == 0 ? -ECONNRESET : -EPROTO;
    }
    if (h->answer.code != 0) {
        return h->answer.code;
    }
    return h->memory >= 0 ? 0 : -EMFILE;
}

/* A file of at least so many bytes that cannot shrink. */
static bool is_sound(int fd, size_t size)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &st) == 0 && st.st_size >= 0 &&
           (size_t)st.st_size >= size;
}

/* Maps the owner's life, once for each peer. The caller has rma->lock. */
static int map_life(struct pw_rma_peer *peer, int fd)
{
    if (peer->life != NULL) {
        return 0;
    }
    if (!is_sound(fd, SHARE_PAGE)) {
        return -EPROTO;
    }
    void *at = mmap(NULL, SHARE_PAGE, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) {
        return -errno;
    }
    peer->life = at;
    return 0;
}

/* Maps the memory of a region. The caller has rma->lock. */
static int map_memory(struct pw_rma_key *key, const struct handed *h)
{
    struct pw_rma *rma = key->peer->rma;
    size_t size = memory_size(key->is.length);
    int protection = PROT_READ | ((key->is.access & PW_RMA_WRITE) != 0 ? PROT_WRITE : 0);
    if (key->is.length > PTRDIFF_MAX / 2 || h->answer.length != key->is.length ||
        h->answer.access != (key->is.access & ALL_ACCESS) || !is_sound(h->memory, size)) {
        return -EPROTO;
    }
    if (rma->mapped + size > rma->map_most) {
        return bucket_open(key, h->memory);
    }
    void *at = mmap(NULL, size, protection, MAP_SHARED, h->memory, 0);
    if (at == MAP_FAILED) {
        return -errno;
    }
    rma->mapped += size;
    key->control = (struct control *)((char *)at + size - SHARE_PAGE);
    key->memory = at;
    key->mapped = size;
    return 0;
}

/* A region of this process is mapped once more, so that it can go before the key. */
static int meet_self(struct pw_rma_key *key)
{
    static struct life always = {1};
    struct pw_rma *rma = key->peer->rma;
    int rc = -ESTALE;
    pthread_mutex_lock(&rma->lock);
    for (const struct pw_rma_region *r = rma->shared; r != NULL; r = r->next_shared) {
        if (r->bits == key->is.bits) {
            rc = map_memory(key, &(struct handed){{0, r->access, r->length}, r->memory.fd, -1});
        }
    }
    pthread_mutex_unlock(&rma->lock);
    key->life = &always;
    return rc;
}

int meet_owner(struct pw_rma_key *key)
{
    if (key->is.incarnation == key->peer->rma->incarnation) {
        return meet_self(key);
    }
    unsigned char bytes[ASK_BYTES];
    struct handed h = {.memory = -1, .life = -1};
    struct ask ask = {key->is.incarnation, key->is.token, key->is.bits};
    int s = call_owner(key);
    if (s < 0) {
        return s;
    }
    ask_write(bytes, &ask);
    int rc = send(s, bytes, sizeof(bytes), MSG_NOSIGNAL) == sizeof(bytes) ? 0 : -EPIPE;
    if (rc == 0) {
        rc = hear_owner(s, &h);
    }
    KILL_POINT("rma-met");
    close(s);
    if (rc == 0) {
        pthread_mutex_lock(&key->peer->rma->lock);
        rc = map_life(key->peer, h.life);
        if (rc == 0) {
            key->life = key->peer->life;
            rc = map_memory(key, &h);
        }
        pthread_mutex_unlock(&key->peer->rma->lock);
    }
    if (h.memory >= 0) {
        close(h.memory);
        close(h.life);
    }
    KILL_POINT("rma-mapped");
    return rc;
}

int meet_whole(struct pw_rma_key *key)
{
    int rc = 0;
    pthread_mutex_lock(&key->peer->rma->lock);
    if (key->handed == NULL) {
        int protection = PROT_READ | ((key->is.access & PW_RMA_WRITE) != 0 ? PROT_WRITE : 0);
        void *at = mmap(NULL, key->mapped, protection, MAP_SHARED, key->fd, 0);
        key->handed = at != MAP_FAILED ? at : NULL;
        rc = at != MAP_FAILED ? 0 : -errno;
    }
    pthread_mutex_unlock(&key->peer->rma->lock);
    return rc;
}

void meet_leave(struct pw_rma_key *key)
{
    if (key->memory == NULL || key->mapped == 0) { /* or the program's own mapping */
        return;
    }
    if (key->handed != NULL) {
        munmap(key->handed, key->mapped);
    }
    if (key->reserved != NULL) {
        bucket_close(key);
    } else {
        munmap(key->memory, key->mapped);
        key->peer->rma->mapped -= key->mapped;
    }
}

void meet_end(struct pw_rma_peer *peer)
{
    if (peer->life != NULL) {
        munmap(peer->life, SHARE_PAGE);
    }
}
