/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket under an SLMP engine; see socket.h. */
#include "fabric/udp/socket.h"

#include "base/cancel.h"
#include "base/forks.h"
#include "base/ip.h"
#include "base/log.h"
#include "fabric/slmp/wire.h"
#include "fabric/udp/connected.h"

#include <netinet/udp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#define UDP_GRO 104
#endif

enum { PATIENCE_MS = 1 };

/* Sets a buffer size: by force, as an administrator may, or else as large as any user may. */
static int grow(int fd, int wanted, int forced, int ordinary, int which)
{
    int have = 0;
    socklen_t size = sizeof(have);
    if (setsockopt(fd, SOL_SOCKET, forced, &wanted, sizeof(wanted)) != 0) {
        setsockopt(fd, SOL_SOCKET, ordinary, &wanted, sizeof(wanted));
    }
    getsockopt(fd, SOL_SOCKET, which, &have, &size);
    return have;
}

static bool set_joining(struct udp_socket *u, int on)
{
    return setsockopt(u->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof(on)) == 0;
}

/* Closes a socket that cannot be used, and writes why. */
static int fail(struct udp_socket *u, int rc, const char *what, uint32_t ip, uint16_t port,
                const char *remedy, struct reason *why)
{
    udp_socket_close(u);
    return reason_say(why, rc, "%s %s:%u: %s%s", what, ip_text(ip).text, port, strerror(-rc),
                      remedy);
}

int udp_socket_open(struct udp_socket *u, uint32_t ip, uint16_t port, int buffers,
                    struct reason *why)
{
    struct sockaddr_in own = ip_socket(ip, port);
    int on = 1;
    *u = (struct udp_socket){
        .fd = forks_open(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))};
    if (u->fd < 0 || (u->batch = calloc(1, sizeof(*u->batch))) == NULL) {
        return fail(u, -errno, "cannot make a UDP socket for", ip, port, log_remedy(errno), why);
    }
    if (bind(u->fd, (struct sockaddr *)&own, sizeof(own)) != 0) {
        const char *remedy = errno == EADDRINUSE      ? "; another process has the port"
                             : errno == EADDRNOTAVAIL ? "; no interface of this machine has it"
                                                      : "";
        return fail(u, -errno, "cannot listen at", ip, port, remedy, why);
    }
    u->receive = grow(u->fd, buffers, SO_RCVBUFFORCE, SO_RCVBUF, SO_RCVBUF);
    grow(u->fd, buffers, SO_SNDBUFFORCE, SO_SNDBUF, SO_SNDBUF);
    u->joins = u->joining = set_joining(u, true);
    setsockopt(u->fd, IPPROTO_IP, IP_RECVERR, &on, sizeof(on));
    on = 0; /* only checks that the option exists; each call passes the length itself */
    u->segments = setsockopt(u->fd, IPPROTO_UDP, UDP_SEGMENT, &on, sizeof(on)) == 0;
    return 0;
}

/* Connects a socket. Returns the longest packet that the system sends there in one piece; 0: not
 * known; -errno: there is no route. */
static int connect_to(int fd, const struct slmp_address *peer)
{
    struct sockaddr_in to = ip_socket(peer->ip, peer->port);
    int mtu;
    socklen_t size = sizeof(mtu);
    int rc = sys_connect(fd, (struct sockaddr *)&to, sizeof(to));
    if (rc != 0) {
        return rc;
    }
    bool known = getsockopt(fd, IPPROTO_IP, IP_MTU, &mtu, &size) == 0 && mtu > UDP_IP_HEADERS;
    return known ? mtu - UDP_IP_HEADERS : 0;
}

int udp_socket_connect(struct udp_socket *u, const struct slmp_address *peer, struct reason *why)
{
    int longest = connect_to(u->fd, peer);
    if (longest < 0) {
        return fail(u, longest, "no way to", peer->ip, peer->port, "", why);
    }
    u->longest = (uint32_t)longest;
    return 0;
}

void udp_socket_close(struct udp_socket *u)
{
    forks_close(u->fd);
    udp_connected_close(&u->connected);
    free(u->batch);
    *u = (struct udp_socket){.fd = -1};
}

uint16_t udp_socket_port(const struct udp_socket *u)
{
    struct sockaddr_in own = {0};
    socklen_t size = sizeof(own);
    getsockname(u->fd, (struct sockaddr *)&own, &size);
    return ntohs(own.sin_port);
}

int64_t udp_socket_now(const struct udp_socket *u)
{
    return clock_ns();
}

void udp_socket_secrets(struct slmp_config *c)
{
    uint64_t random[2];
    if (sys_getrandom(random, sizeof(random)) != sizeof(random)) {
        random[0] = (uint64_t)clock_ns(); /* needed only on kernels before 3.17 */
        random[1] = (uint64_t)getpid();
    }
    c->incarnation = c->incarnation != 0 ? c->incarnation : random[0];
    c->secret = random[1];
}

/* ---- Receiving ----
 *
 * recvmsg() reports in a control message whether the kernel has joined several datagrams. A plain
 * recvfrom() takes some 0.1 us less, and so does each look that finds nothing. So where packets
 * come one at a time, as answers do, joining is switched off; it is switched on again when several
 * packets wait at once. */

enum {
    ALONE = 1000,    /* after so many packets that came one at a time, joining is switched off */
    CROWDED = 16,    /* so many of these are subtracted for a packet that was not alone */
    CROWD = 4,       /* after so many packets that came with others, joining is switched on */
    SURELY_ONE = 144 /* bytes; two packets of a message that is cut are longer */
};
#define PARTED_NS 1000000000

static void note_refusal(struct udp_socket *u)
{
    u->refused++; /* an earlier packet was refused */
    u->tells = true;
}

/* Asks the kernel to join no more packets. Packets that wait already may be joined: then it
 * switches joining on again. */
static void stop_joining(struct udp_socket *u)
{
    char byte;
    u->alone = 0;
    if (!set_joining(u, false)) {
        return;
    }
    if (sys_recvfrom(u->fd, &byte, 1, MSG_PEEK, NULL, NULL) != -EAGAIN) {
        set_joining(u, true);
        return;
    }
    u->joining = false;
    u->crowd = 0;
    u->parted = clock_ns();
}

static void start_joining(struct udp_socket *u)
{
    u->joining = set_joining(u, true);
    u->alone = u->crowd = 0;
}

/* Whether the engine notices if others were joined to a packet. Behind one that does not end its
 * message, they would look like its payload. */
static bool shows_its_end(const uint8_t *p, size_t length)
{
    return length < SURELY_ONE || ((p[0] & SLMP_EOM >> 8) != 0 && (p[13] & SLMP_PIECE) == 0);
}

static void count_alone(struct udp_socket *u, const uint8_t *p, size_t length, size_t each)
{
    if (length > each || !shows_its_end(p, length)) {
        u->alone = 0;
    } else if (!u->empty) {
        u->alone -= u->alone < CROWDED ? u->alone : CROWDED;
    } else if (++u->alone >= ALONE) {
        stop_joining(u);
    }
}

static ssize_t receive_joined(struct udp_socket *u, void *buffer, struct sockaddr_in *from,
                              size_t *each)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {buffer, UDP_BUFFER};
    struct msghdr m = {.msg_name = from,
                       .msg_namelen = sizeof(*from),
                       .msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    ssize_t length = sys_recvmsg(u->fd, &m, 0);
    if (length < 0) {
        return length;
    }
    *each = (size_t)length;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL; c = CMSG_NXTHDR(&m, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int joined;
            memcpy(&joined, CMSG_DATA(c), sizeof(joined));
            *each = joined > 0 ? (size_t)joined : *each;
        }
    }
    if (u->adapts) {
        count_alone(u, buffer, (size_t)length, *each);
    }
    return length;
}

/* Whether a packet may still consist of several. The kernel decides to join before it puts a packet
 * into the queue, so one may have been on its way there when joining was switched off; a second
 * later none is. */
static bool may_be_joined(const struct udp_socket *u, const uint8_t *p, size_t length)
{
    return u->joins && !shows_its_end(p, length) && clock_ns() - u->parted < PARTED_NS;
}

static ssize_t receive_one(struct udp_socket *u, void *buffer, struct sockaddr_in *from,
                           size_t *each)
{
    socklen_t size = sizeof(*from);
    ssize_t length = sys_recvfrom(u->fd, buffer, UDP_BUFFER, 0, (struct sockaddr *)from, &size);
    if (length < 0) {
        return length;
    }
    *each = (size_t)length;
    u->crowd = u->empty ? 0 : u->crowd + 1;
    if (may_be_joined(u, buffer, (size_t)length)) {
        start_joining(u);
        u->dropped++;
        *each = length = 0; /* counts as lost */
    } else if (u->joins && u->crowd == CROWD) {
        start_joining(u);
    }
    return length;
}

ssize_t udp_socket_receive(struct udp_socket *u, void *buffer, struct slmp_address *address,
                           size_t *each)
{
    NOT_CANCELLED;
    struct sockaddr_in from;
    ssize_t length;
    while ((length = u->joining ? receive_joined(u, buffer, &from, each)
                                : receive_one(u, buffer, &from, each)) == -ECONNREFUSED) {
        note_refusal(u); /* the next packet may be there */
    }
    u->empty = length < 0;
    if (u->empty) {
        return -1;
    }
    u->calls_in++;
    *address = (struct slmp_address){ntohl(from.sin_addr.s_addr), ntohs(from.sin_port)};
    return length;
}

/* ---- Sending ---- */

/* Whether the packet behind the batch can be added to it. */
static bool fits(const struct udp_batch *b, bool segments)
{
    if (b->count == 0) {
        return true;
    }
    const struct slmp_packet *first = &b->packet[0], *last = &b->packet[b->count - 1];
    const struct slmp_packet *p = &b->packet[b->count];
    return segments && b->count < UDP_BATCH && p->to.ip == first->to.ip &&
           p->to.port == first->to.port && last->length == first->length &&
           p->length <= first->length && b->bytes + p->length <= UDP_BATCH_BYTES;
}

static unsigned add_part(struct iovec *part, unsigned parts, const void *bytes, size_t length)
{
    struct iovec *last = parts > 0 ? &part[parts - 1] : NULL;
    if (last != NULL && (const uint8_t *)last->iov_base + last->iov_len == bytes) {
        last->iov_len += length;
        return parts;
    }
    part[parts] = (struct iovec){(void *)(uintptr_t)bytes, length};
    return parts + 1;
}

/* Joins short packets into one part: that costs less than the kernel's work for each part. */
static unsigned list_parts(struct udp_batch *b, struct iovec *part)
{
    unsigned parts = 0;
    uint8_t *row = b->row;
    for (unsigned i = 0; i < b->count; i++) {
        const struct slmp_packet *p = &b->packet[i];
        const uint8_t *header = p->header;
        if (b->count > 1 && p->parts == 0) {
            header = memcpy(row, p->header, p->header_length);
            row += p->header_length;
        }
        parts = add_part(part, parts, header, p->header_length);
        for (unsigned k = 0; k < p->parts; k++) {
            parts = add_part(part, parts, p->part[k].iov_base, p->part[k].iov_len);
        }
    }
    return parts;
}

/* Returns the socket by which packets to an address leave. */
static int way_to(const struct udp_socket *u, const struct slmp_address *to)
{
    return udp_connected_leads_to(&u->connected, to) ? u->connected.fd : u->fd;
}

static ssize_t send_once(struct udp_socket *u, struct udp_batch *b)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control = {0};
    struct iovec part[3 * UDP_BATCH];
    unsigned parts = list_parts(b, part);
    struct sockaddr_in to = ip_socket(b->packet[0].to.ip, b->packet[0].to.port);
    struct msghdr m = {.msg_iov = part, .msg_iovlen = parts};
    int fd = way_to(u, &b->packet[0].to);
    u->calls_out++;
    if (fd == u->fd) {
        m.msg_name = &to;
        m.msg_namelen = sizeof(to);
    } else if (parts == 1 && b->count == 1) {
        return sys_sendto(fd, part->iov_base, part->iov_len, 0, NULL, 0);
    }
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
    return sys_sendmsg(fd, &m, 0);
}

/* Whether a batch that the kernel has refused may be tried again. */
static bool may_try(struct udp_socket *u, int fd, int error, unsigned attempt)
{
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    if (fd != u->fd && error != EINTR && error != EAGAIN && error != EFAULT) {
        udp_connected_fail(&u->connected); /* the first socket then shows what is wrong */
        return true;
    }
    switch (error) {
    case EINTR:
        return true;
    case ECONNREFUSED:
        note_refusal(u);
        return attempt == 0;
    case EAGAIN:
        return attempt == 0 && sys_poll(&p, 1, PATIENCE_MS) == 1;
    default:
        return false;
    }
}

static bool hopeless(int error)
{
    return error == EMSGSIZE || error == EINVAL || error == EACCES || error == EPERM ||
           error == EFAULT;
}

/* Returns the longest packet that reaches an address in one piece; 0: not known. */
static uint32_t path_to(const struct slmp_address *a)
{
    int fd = forks_open(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    int longest = fd < 0 ? -1 : connect_to(fd, a);
    forks_close(fd);
    return longest > 0 ? (uint32_t)longest : 0;
}

/* Handles a path that has become shorter than the packets of a batch: sends each by itself, for IP
 * to fragment, and has the engine make the next ones shorter. False: the error has another
 * reason. */
static bool send_apart(struct udp_socket *u, struct slmp *e, int64_t now, struct udp_batch *b)
{
    uint32_t longest = path_to(&b->packet[0].to);
    if (longest == 0 || (b->count == 1 && longest >= b->packet[0].length)) {
        return false;
    }
    struct slmp_address to = b->packet[0].to;
    unsigned count = b->count;
    b->count = 1;
    for (unsigned i = 0; i < count; i++) {
        b->packet[0] = b->packet[i];
        u->dropped += send_once(u, b) < 0;
    }
    u->narrowed++;
    slmp_path(e, now, &to, longest);
    return true;
}

static int send_batch(struct udp_socket *u, struct slmp *e, int64_t now, struct udp_batch *b,
                      struct udp_failure *failure)
{
    int rc = 0;
    unsigned count = b->count;
    if (count > 0 && u->adapts) {
        udp_connected_count(&u->connected, u->fd, &b->packet[0].to);
    }
    ssize_t sent;
    for (unsigned attempt = 0; count > 0 && (sent = send_once(u, b)) < 0; attempt++) {
        int error = (int)-sent;
        if (may_try(u, way_to(u, &b->packet[0].to), error, attempt)) {
            continue;
        }
        if ((error == EMSGSIZE || error == EINVAL) && send_apart(u, e, now, b)) {
            break;
        }
        u->dropped += count;
        u->error = error;
        if (hopeless(error)) {
            *failure = (struct udp_failure){b->packet[0].to, b->packet[0].length};
            rc = -error;
        }
        break;
    }
    b->count = 0;
    b->bytes = 0;
    return rc;
}

int udp_socket_output(struct udp_socket *u, struct slmp *e, int64_t now, unsigned expected,
                      bool *any, struct udp_failure *failure)
{
    NOT_CANCELLED;
    struct udp_batch *b = u->batch;
    int rc = 0;
    while (rc == 0 && slmp_output(e, now, &b->packet[b->count])) {
        *any = true;
        if (!fits(b, u->segments)) {
            unsigned next = b->count;
            rc = send_batch(u, e, now, b, failure);
            b->packet[0] = b->packet[next];
        }
        b->bytes += b->packet[b->count++].length;
        if (rc == 0 && b->count == expected) {
            rc = send_batch(u, e, now, b, failure);
        }
    }
    int last = send_batch(u, e, now, b, failure);
    return rc != 0 ? rc : last;
}
