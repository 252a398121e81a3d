/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between users and the owner of an interface; see protocol.h. */
#include "raw/serve/protocol.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAITING = 64 };

int serve_send(int socket, const struct serve_head *head, const char *text, int fd)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec v[2] = {{.iov_base = (void *)(uintptr_t)head, .iov_len = sizeof(*head)},
                         {.iov_base = (void *)(uintptr_t)text, .iov_len = strlen(text)}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = 2};
    if (fd >= 0) {
        m.msg_control = control;
        m.msg_controllen = sizeof(control);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        *c = (struct cmsghdr){
            .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
        memcpy(CMSG_DATA(c), &fd, sizeof(fd));
    }
    ssize_t n;
    do {
        n = sendmsg(socket, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n >= 0 ? 0 : -errno;
}

/* Takes one descriptor, and closes what comes beside it. */
static void take_descriptors(struct msghdr *m, int *fd)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        size_t n = c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_RIGHTS
                       ? (c->cmsg_len - CMSG_LEN(0)) / sizeof(int)
                       : 0;
        for (size_t i = 0; i < n; i++) {
            int one;
            memcpy(&one, CMSG_DATA(c) + i * sizeof(int), sizeof(one));
            if (*fd < 0) {
                *fd = one;
            } else {
                close(one);
            }
        }
    }
}

int serve_receive(int socket, struct serve_message *m, int *fd)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    struct iovec v[2] = {{.iov_base = &m->head, .iov_len = sizeof(m->head)},
                         {.iov_base = m->text, .iov_len = sizeof(m->text)}};
    struct msghdr h = {.msg_iov = v, .msg_iovlen = 2};
    ssize_t n;
    if (fd != NULL) {
        *fd = -1;
        h.msg_control = control;
        h.msg_controllen = sizeof(control);
    }
    int again = 2; /* an end that was closed with messages unread is said before what it has sent */
    do {
        n = recvmsg(socket, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    } while (n < 0 && (errno == EINTR || (errno == ECONNRESET && --again > 0)));
    if (n <= 0) {
        return n == 0 || errno == ECONNRESET ? 0 : -errno;
    }
    if (fd != NULL) {
        take_descriptors(&h, fd);
    }
    if ((size_t)n < sizeof(m->head) || (h.msg_flags & MSG_TRUNC) != 0 || m->head.kind == 0 ||
        m->head.kind >= SERVE_KINDS) {
        return -EPROTO;
    }
    m->length = (uint32_t)((size_t)n - sizeof(m->head));
    return 1;
}

static int name(struct sockaddr_un *a, const char *path)
{
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof(a->sun_path)) {
        return -ENAMETOOLONG;
    }
    memcpy(a->sun_path, path, strlen(path));
    return 0;
}

int serve_connect(const char *path)
{
    struct sockaddr_un a;
    int rc = name(&a, path);
    int fd = rc == 0 ? socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : rc;
    if (fd < 0) {
        return rc != 0 ? rc : -errno;
    }
    if (connect(fd, (const struct sockaddr *)&a, sizeof(a)) != 0) {
        rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

int serve_listen(const char *path)
{
    struct sockaddr_un a;
    struct stat s;
    int rc = name(&a, path);
    if (rc != 0) {
        return rc;
    }
    if (lstat(path, &s) == 0 && S_ISSOCK(s.st_mode)) {
        int other = serve_connect(path);
        if (other != -ECONNREFUSED) {
            if (other >= 0) {
                close(other);
            }
            return other >= 0 || other == -EAGAIN ? -EADDRINUSE : other;
        }
        unlink(path);
    }
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return -errno;
    }
    if (bind(fd, (const struct sockaddr *)&a, sizeof(a)) != 0 || chmod(path, 0666) != 0 ||
        listen(fd, WAITING) != 0) {
        rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}
