/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner's side of a hand-over (share.h): a thread with a socket that has a name in no file
 * system. It answers whoever is of the same user and knows the token of the keys, one message each,
 * and holds no lock while it waits. The thread's own life is the process's (H3): the kernel writes
 * to a word that a thread has named to it (set_robust_list) when the thread dies.
 */
#include "inside.h"
#include "share.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

enum { GUESTS = 8, NO_DESCRIPTOR_MS = 50 };

struct guest {
    int socket; /* -1: none */
    int64_t until;
};

struct host {
    struct pw_rma *rma;
    int listening, life_fd;
    struct life *life;
    pthread_t thread;
    struct guest guests[GUESTS];
    struct robust_list_head robust;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

uint32_t host_name(struct sockaddr_un *name, uint64_t incarnation)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX; /* a name that begins with zero is in no file system */
    int n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "pinwheel-rma-%016llx",
                     (unsigned long long)incarnation);
    return (uint32_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* ---- Answers ---- */

static void send_answer(int socket, const struct answer *answer, const int *fds, size_t count)
{
    unsigned char bytes[ANSWER_BYTES];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(2 * sizeof(int))];
    } control;
    struct iovec part = {bytes, sizeof(bytes)};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    answer_write(bytes, answer);
    if (count > 0) {
        memset(&control, 0, sizeof(control));
        m.msg_control = &control;
        m.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = SOL_SOCKET;
        c->cmsg_type = SCM_RIGHTS;
        c->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(c), fds, count * sizeof(int));
    }
    KILL_POINT("rma-hands");
    sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    KILL_POINT("rma-handed");
}

/* A descriptor of the same file that cannot write; -1: there is none. */
static int reader_of(int fd)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDONLY | O_CLOEXEC);
}

static void hand_over(struct host *h, int socket, const struct ask *ask)
{
    struct answer answer = {.code = -ESTALE};
    struct pw_rma *rma = h->rma;
    int fds[2] = {-1, h->life_fd};
    pthread_mutex_lock(&rma->lock);
    for (const struct pw_rma_region *r = rma->shared; r != NULL; r = r->next_shared) {
        if (r->bits == ask->bits) {
            answer = (struct answer){0, r->access, r->length};
            fds[0] = (r->access & PW_RMA_WRITE) != 0 ? dup(r->memory.fd) : reader_of(r->memory.fd);
        }
    }
    pthread_mutex_unlock(&rma->lock);
    if (answer.code == 0 && fds[0] < 0) {
        answer.code = -EMFILE;
    }
    send_answer(socket, &answer, fds, answer.code == 0 ? 2 : 0);
    if (fds[0] >= 0) {
        close(fds[0]);
    }
}

/* Takes what a guest asks; false: it has not asked yet. */
static bool serve(struct host *h, int socket)
{
    unsigned char bytes[ASK_BYTES + 1];
    struct ask ask;
    ssize_t n = recv(socket, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n < 0) {
        return errno != EAGAIN && errno != EINTR;
    }
    if (ask_read(bytes, (size_t)n, &ask) && ask.incarnation == h->rma->incarnation &&
        ask.token == h->rma->token) {
        hand_over(h, socket, &ask);
    } else {
        send_answer(socket, &(struct answer){.code = -EPERM}, NULL, 0);
    }
    return true;
}

/* ---- The thread ---- */

static void part(struct guest *g)
{
    if (g->socket >= 0) {
        close(g->socket);
    }
    g->socket = -1;
}

/* Lets a guest in, in place of the oldest if there is no other; false: there is no descriptor. */
static bool admit(struct host *h)
{
    struct ucred who;
    socklen_t size = sizeof(who);
    int socket = accept4(h->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
        return errno != EMFILE && errno != ENFILE && errno != ENOMEM && errno != ENOBUFS;
    }
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.uid != geteuid()) {
        close(socket);
        return true;
    }
    struct guest *g = &h->guests[0];
    for (int i = 1; i < GUESTS; i++) {
        struct guest *other = &h->guests[i];
        if (g->socket >= 0 && (other->socket < 0 || other->until < g->until)) {
            g = other;
        }
    }
    part(g);
    *g = (struct guest){socket, now_ms() + HAND_OVER_MS};
    return true;
}

/* One round; false: the socket was shut. */
static bool round_of(struct host *h, bool *full)
{
    struct pollfd p[GUESTS + 1] = {{.fd = h->listening, .events = *full ? 0 : POLLIN}};
    int wait = *full ? NO_DESCRIPTOR_MS : -1;
    for (int i = 0; i < GUESTS; i++) {
        p[i + 1] = (struct pollfd){.fd = h->guests[i].socket, .events = POLLIN};
        if (h->guests[i].socket >= 0 && wait < 0) {
            wait = HAND_OVER_MS;
        }
    }
    if (poll(p, GUESTS + 1, wait) < 0 && errno != EINTR) {
        return false;
    }
    int64_t now = now_ms();
    for (int i = 0; i < GUESTS; i++) {
        struct guest *g = &h->guests[i];
        if (g->socket >= 0 && ((p[i + 1].revents != 0 && serve(h, g->socket)) || g->until < now)) {
            part(g);
        }
    }
    *full = (p[0].revents & POLLIN) != 0 && !admit(h);
    return (p[0].revents & (POLLHUP | POLLERR | POLLNVAL)) == 0;
}

static void *run(void *owner)
{
    struct host *h = owner;
    bool full = false;
    h->robust = (struct robust_list_head){
        .list = {&h->robust.list},
        .list_op_pending = (struct robust_list *)(void *)&h->life->thread,
    };
    syscall(SYS_set_robust_list, &h->robust, sizeof(h->robust));
    atomic_store(&h->life->thread, (uint32_t)syscall(SYS_gettid));
    while (round_of(h, &full)) {
    }
    atomic_store(&h->life->thread, 0); /* H3 */
    for (int i = 0; i < GUESTS; i++) {
        part(&h->guests[i]);
    }
    return NULL;
}

/* ---- Opening and closing ---- */

static int life_open(struct host *h)
{
    int fd = memfd_create("pinwheel-rma-life", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        return -1;
    }
    void *at = MAP_FAILED;
    if (fallocate(fd, 0, 0, SHARE_PAGE) == 0 &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) == 0) {
        at = mmap(NULL, SHARE_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    h->life = at != MAP_FAILED ? at : NULL;
    h->life_fd = h->life != NULL ? reader_of(fd) : -1;
    close(fd);
    return h->life_fd < 0 ? -1 : 0;
}

static int listen_open(struct host *h)
{
    struct sockaddr_un name;
    socklen_t size = host_name(&name, h->rma->incarnation);
    h->listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return h->listening < 0 || bind(h->listening, (struct sockaddr *)&name, size) != 0
               ? -1
               : listen(h->listening, 64);
}

static int thread_open(struct host *h)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* the thread takes no signal of the program */
    int rc = pthread_create(&h->thread, NULL, run, h);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc != 0 ? -1 : 0;
}

static void host_free(struct host *h)
{
    if (h->listening >= 0) {
        close(h->listening);
    }
    if (h->life_fd >= 0) {
        close(h->life_fd);
    }
    if (h->life != NULL) {
        munmap(h->life, SHARE_PAGE);
    }
    free(h);
}

int host_open(struct pw_rma *rma)
{
    if (rma->host != NULL) {
        return 0;
    }
    struct host *h = calloc(1, sizeof(*h));
    if (h == NULL) {
        return -ENOMEM;
    }
    h->rma = rma;
    h->listening = h->life_fd = -1;
    for (int i = 0; i < GUESTS; i++) {
        h->guests[i].socket = -1;
    }
    if (life_open(h) != 0 || listen_open(h) != 0 || thread_open(h) != 0) {
        int code = errno != 0 ? -errno : -EAGAIN;
        host_free(h);
        return code;
    }
    rma->host = h;
    return 0;
}

void host_close(struct pw_rma *rma)
{
    struct host *h = rma->host;
    if (h != NULL) {
        shutdown(h->listening, SHUT_RDWR);
        pthread_join(h->thread, NULL);
        host_free(h);
        rma->host = NULL;
    }
}
