/* SPDX-License-Identifier: BSD-3-Clause */
/* UDP without a protocol; see raw_udp.h. */
#include "raw_udp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

enum { BATCH = 65000, SEGMENTS = 64, AHEAD = 32, CREDIT = 8, BUFFER = 1 << 16 };

static void die(const char *what)
{
    fprintf(stderr, "slmp_bench: raw UDP: %s: %s\n", what, strerror(errno));
    exit(1);
}

void raw_open(struct raw *r)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1, room = 4 << 20;
    r->fd = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (r->fd < 0 || bind(r->fd, (struct sockaddr *)&own, sizeof(own)) != 0 ||
        (r->buffer = malloc(BUFFER)) == NULL) {
        die("cannot open a socket");
    }
    memset(r->buffer, 1, BUFFER);
    if (setsockopt(r->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) != 0) {
        setsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
    }
    setsockopt(r->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on));
}

uint16_t raw_port(const struct raw *r)
{
    struct sockaddr_in own;
    socklen_t size = sizeof(own);
    getsockname(r->fd, (struct sockaddr *)&own, &size);
    return ntohs(own.sin_port);
}

void raw_connect(struct raw *r, uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(r->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        die("connect");
    }
}

static size_t receive(struct raw *r)
{
    for (;;) {
        ssize_t n = recv(r->fd, r->buffer, BUFFER, 0);
        if (n >= 0) {
            return (size_t)n;
        }
        if (errno != EAGAIN && errno != EINTR) {
            die("recv");
        }
    }
}

static void give(struct raw *r, size_t length)
{
    while (send(r->fd, r->buffer, length, 0) < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            die("send");
        }
    }
}

void raw_ping(struct raw *r, bool first, unsigned trips)
{
    for (unsigned i = 0; i < trips; i++) {
        if (first) {
            give(r, 8);
        }
        receive(r);
        if (!first) {
            give(r, 8);
        }
    }
}

static size_t batch_of(uint32_t segment)
{
    size_t count = BATCH / segment;
    count = count > SEGMENTS ? SEGMENTS : count;
    return count > 0 ? count * segment : segment;
}

static void give_batch(struct raw *r, uint32_t segment, size_t length)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control = {0};
    struct iovec part = {r->buffer, length};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    uint16_t each = (uint16_t)segment;
    if (length > segment) {
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = IPPROTO_UDP;
        c->cmsg_type = UDP_SEGMENT;
        c->cmsg_len = CMSG_LEN(sizeof(each));
        memcpy(CMSG_DATA(c), &each, sizeof(each));
    }
    while (sendmsg(r->fd, &m, 0) < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            die("sendmsg");
        }
    }
}

void raw_send(struct raw *r, uint32_t segment, uint64_t bytes)
{
    size_t batch = batch_of(segment);
    uint64_t batches = (bytes + batch - 1) / batch, credits = 0;
    for (uint64_t i = 0; i < batches; i++) {
        for (; i >= AHEAD + credits * CREDIT; credits++) {
            receive(r);
        }
        give_batch(r, segment, batch);
    }
    for (; credits < batches / CREDIT; credits++) {
        receive(r);
    }
}

void raw_receive(struct raw *r, uint32_t segment, uint64_t bytes)
{
    size_t batch = batch_of(segment);
    uint64_t all = (bytes + batch - 1) / batch * batch, credits = 0;
    for (uint64_t got = 0; got < all;) {
        got += receive(r);
        for (; got >= (credits + 1) * CREDIT * batch; credits++) {
            give(r, 1);
        }
    }
}
