/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket under an SLMP engine; see slmp_udp.h. */
#include "slmp_udp.h"

#include "base/sys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/udp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

enum { BATCH = 64, BATCH_BYTES = 65000, BUFFER = 1 << 16, RECEIVES = 64, WANTED = 4 << 20 };
enum { UDP_IP_HEADERS = 28 };

/* Packets to one address that leave in one system call: all of one length, but the last,
 * which may be shorter. */
struct batch {
    struct slmp_packet packet[BATCH + 1];
    struct iovec part[3 * BATCH];
    unsigned count, parts;
    size_t bytes;
};

static struct sockaddr_in socket_address(uint32_t ip, uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(ip)};
}

static void address_text(uint32_t ip, uint16_t port, char text[32])
{
    snprintf(text, 32, "%u.%u.%u.%u:%u", ip >> 24, ip >> 16 & 255, ip >> 8 & 255, ip & 255, port);
}

/* As much as an administrator may have, or as anybody may. */
static int grow(int fd, int forced, int ordinary, int which)
{
    int wanted = WANTED, have = 0;
    socklen_t size = sizeof(have);
    if (setsockopt(fd, SOL_SOCKET, forced, &wanted, sizeof(wanted)) != 0) {
        setsockopt(fd, SOL_SOCKET, ordinary, &wanted, sizeof(wanted));
    }
    getsockopt(fd, SOL_SOCKET, which, &have, &size);
    return have;
}

static int fail(struct slmp_udp *u, char *error, size_t size, const char *what, const char *where,
                const char *remedy)
{
    snprintf(error, size, "%s %s: %s%s", what, where, strerror(errno), remedy);
    slmp_udp_close(u);
    return -1;
}

int slmp_udp_open(struct slmp_udp *u, uint32_t address, uint16_t port,
                  const struct slmp_address *peer, char *error, size_t error_size)
{
    struct sockaddr_in own = socket_address(address, port);
    char text[32];
    int on = 1, mtu;
    socklen_t size = sizeof(mtu);
    *u = (struct slmp_udp){.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    address_text(address, port, text);
    if (u->fd < 0 || (u->buffer = malloc(BUFFER)) == NULL) {
        return fail(u, error, error_size, "cannot make a UDP socket for", text, "");
    }
    if (bind(u->fd, (struct sockaddr *)&own, sizeof(own)) != 0) {
        const char *remedy = errno == EADDRINUSE ? "; another process has the port, name another "
                                                   "with --port, or 0 for any"
                             : errno == EADDRNOTAVAIL ? "; no interface of this machine has it"
                                                      : "";
        return fail(u, error, error_size, "cannot listen at", text, remedy);
    }
    u->receive = grow(u->fd, SO_RCVBUFFORCE, SO_RCVBUF, SO_RCVBUF);
    grow(u->fd, SO_SNDBUFFORCE, SO_SNDBUF, SO_SNDBUF);
    u->joins = setsockopt(u->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) == 0;
    on = 0; /* asks whether the option exists; each call says the length itself */
    u->segments = setsockopt(u->fd, IPPROTO_UDP, UDP_SEGMENT, &on, sizeof(on)) == 0;
    if (peer != NULL) {
        struct sockaddr_in to = socket_address(peer->ip, peer->port);
        address_text(peer->ip, peer->port, text);
        if (connect(u->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
            return fail(u, error, error_size, "no way to", text, "");
        }
        if (getsockopt(u->fd, IPPROTO_IP, IP_MTU, &mtu, &size) == 0 && mtu > UDP_IP_HEADERS) {
            u->longest = (uint32_t)(mtu - UDP_IP_HEADERS);
        }
    }
    return 0;
}

void slmp_udp_close(struct slmp_udp *u)
{
    if (u->fd >= 0) {
        close(u->fd);
    }
    free(u->buffer);
    *u = (struct slmp_udp){.fd = -1};
}

uint16_t slmp_udp_port(const struct slmp_udp *u)
{
    struct sockaddr_in own = {0};
    socklen_t size = sizeof(own);
    getsockname(u->fd, (struct sockaddr *)&own, &size);
    return ntohs(own.sin_port);
}

int slmp_udp_find(const char *host, uint32_t *address, char *error, size_t error_size)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found;
    int r = getaddrinfo(host, NULL, &hints, &found);
    if (r != 0) {
        snprintf(error, error_size, "%s: %s; needed is a host name or an IPv4 address", host,
                 gai_strerror(r));
        return -1;
    }
    *address = ntohl(((struct sockaddr_in *)found->ai_addr)->sin_addr.s_addr);
    freeaddrinfo(found);
    return 0;
}

void slmp_udp_secrets(struct slmp_config *c)
{
    uint64_t random[2];
    if (getrandom(random, sizeof(random), 0) != sizeof(random)) {
        random[0] = (uint64_t)clock_ns(); /* no kernel since 3.17 comes here */
        random[1] = (uint64_t)getpid();
    }
    c->incarnation = random[0];
    c->secret = random[1];
}

/* ---- In ---- */

/* Whether a packet is lost on purpose: each wire packet by itself, however many of them the
 * kernel has joined. */
static bool dropped(struct slmp_udp *u)
{
    u->draw = u->draw * 6364136223846793005u + 1442695040888963407u;
    return u->drop > 0 && (u->draw >> 33) % 10000 < u->drop;
}

/* One datagram, or several of one length that the kernel has joined: how many. */
static unsigned receive(struct slmp_udp *u, struct slmp *e)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct sockaddr_in from;
    struct iovec part = {u->buffer, BUFFER};
    struct msghdr m = {.msg_name = &from,
                       .msg_namelen = sizeof(from),
                       .msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    ssize_t length = recvmsg(u->fd, &m, 0);
    if (length < 0) {
        u->refused += errno == ECONNREFUSED;
        return errno == ECONNREFUSED;
    }
    u->calls_in++;
    size_t each = (size_t)length;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int joined;
            memcpy(&joined, CMSG_DATA(c), sizeof(joined));
            each = joined > 0 ? (size_t)joined : each;
        }
    }
    struct slmp_address a = {ntohl(from.sin_addr.s_addr), ntohs(from.sin_port)};
    int64_t now = clock_ns();
    size_t at = 0;
    unsigned count = 0;
    do {
        count++;
        size_t n = (size_t)length - at < each ? (size_t)length - at : each;
        if (!dropped(u)) {
            slmp_input(e, now, &a, u->buffer + at, n);
        }
        at += n;
    } while (at < (size_t)length);
    return count;
}

/* ---- Out ---- */

static bool fits(const struct batch *b, const struct slmp_packet *p, bool segments)
{
    if (b->count == 0) {
        return true;
    }
    const struct slmp_packet *first = &b->packet[0], *last = &b->packet[b->count - 1];
    return segments && b->count < BATCH && p->to.ip == first->to.ip &&
           p->to.port == first->to.port && last->length == first->length &&
           p->length <= first->length && b->bytes + p->length <= BATCH_BYTES;
}

static void add(struct batch *b)
{
    struct slmp_packet *p = &b->packet[b->count++];
    b->part[b->parts++] = (struct iovec){p->header, p->header_length};
    for (unsigned i = 0; i < p->parts; i++) {
        b->part[b->parts++] = p->part[i];
    }
    b->bytes += p->length;
}

static ssize_t send_once(struct slmp_udp *u, struct batch *b)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control = {0};
    struct sockaddr_in to = socket_address(b->packet[0].to.ip, b->packet[0].to.port);
    struct msghdr m = {
        .msg_name = &to, .msg_namelen = sizeof(to), .msg_iov = b->part, .msg_iovlen = b->parts};
    uint16_t each = (uint16_t)b->packet[0].length;
    if (b->count > 1) {
        m.msg_control = &control;
        m.msg_controllen = sizeof(control);
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        c->cmsg_level = IPPROTO_UDP;
        c->cmsg_type = UDP_SEGMENT;
        c->cmsg_len = CMSG_LEN(sizeof(each));
        memcpy(CMSG_DATA(c), &each, sizeof(each));
    }
    u->calls_out++;
    return sendmsg(u->fd, &m, 0);
}

/* The longest packet that the system sends to an address in one piece; 0: not known. */
static uint32_t path_to(const struct slmp_address *a)
{
    struct sockaddr_in to = socket_address(a->ip, a->port);
    int mtu = 0, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof(mtu);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0 ||
        getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &size) != 0) {
        mtu = 0;
    }
    if (fd >= 0) {
        close(fd);
    }
    return mtu > UDP_IP_HEADERS ? (uint32_t)(mtu - UDP_IP_HEADERS) : 0;
}

/* The path has become shorter than the packets of the batch: each goes by itself, for IP to
 * cut, and the engine makes the next ones shorter. */
static void send_apart(struct slmp_udp *u, struct slmp *e, int64_t now, const struct batch *b)
{
    static struct batch one;
    uint32_t longest = path_to(&b->packet[0].to);
    for (unsigned i = 0; i < b->count; i++) {
        one.packet[0] = b->packet[i];
        one.count = one.parts = 0;
        add(&one);
        u->unsent += send_once(u, &one) < 0;
    }
    if (longest > 0) {
        u->narrowed++;
        slmp_path(e, now, &b->packet[0].to, longest);
    }
}

/* A packet that the kernel would not take is one that was lost on the way; only what can
 * never work is an error. */
static int send_batch(struct slmp_udp *u, struct slmp *e, int64_t now, struct batch *b, char *error,
                      size_t error_size)
{
    char text[32];
    while (b->count > 0 && send_once(u, b) < 0) {
        struct pollfd p = {.fd = u->fd, .events = POLLOUT};
        if (errno == EAGAIN) {
            poll(&p, 1, 100);
            continue;
        }
        if (errno == EINTR) {
            continue;
        }
        if ((errno == EMSGSIZE || errno == EINVAL) && b->count > 1) {
            send_apart(u, e, now, b);
            break;
        }
        if (errno == EMSGSIZE || errno == EINVAL || errno == EACCES) {
            address_text(b->packet[0].to.ip, b->packet[0].to.port, text);
            snprintf(error, error_size, "cannot send packets of %u bytes to %s: %s%s",
                     b->packet[0].length, text, strerror(errno),
                     errno == EMSGSIZE ? "; shorter ones may pass, see --packet" : "");
            return -1;
        }
        if (errno == ECONNREFUSED) {
            u->refused++;
        } else {
            u->unsent++;
            u->error = errno;
        }
        break;
    }
    b->count = b->parts = 0;
    b->bytes = 0;
    return 0;
}

/* The engine writes each packet where it belongs in the batch; the first one that does not
 * belong there begins the next. */
static int send_all(struct slmp_udp *u, struct slmp *e, int64_t now, bool *any, char *error,
                    size_t error_size)
{
    static struct batch b;
    while (slmp_output(e, now, &b.packet[b.count])) {
        *any = true;
        if (!fits(&b, &b.packet[b.count], u->segments)) {
            const struct slmp_packet *next = &b.packet[b.count];
            if (send_batch(u, e, now, &b, error, error_size) != 0) {
                return -1;
            }
            b.packet[0] = *next;
        }
        add(&b);
    }
    return send_batch(u, e, now, &b, error, error_size);
}

/* ---- A turn ---- */

static void sleep_until(struct slmp_udp *u, int64_t at)
{
    struct pollfd p = {.fd = u->fd, .events = POLLIN};
    int64_t left = at - clock_ns();
    if (left > 0) {
        struct timespec t = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        ppoll(&p, 1, &t, NULL);
    }
}

int slmp_udp_turn(struct slmp_udp *u, struct slmp *e, int64_t longest, char *error,
                  size_t error_size)
{
    bool any = false;
    unsigned joined = 2;
    /* Joined ones mean that more may wait, which one acknowledgement answers; one alone is
     * answered before the kernel is asked for another. */
    for (int i = 0; i < RECEIVES && joined > 1; i++) {
        joined = receive(u, e);
        any = any || joined > 0;
    }
    int64_t now = clock_ns();
    slmp_advance(e, now);
    if (send_all(u, e, now, &any, error, error_size) != 0) {
        return -1;
    }
    if (!any && longest > 0) {
        int64_t at = slmp_deadline(e), most = now + longest;
        sleep_until(u, at < most ? at : most);
    }
    return 0;
}
