/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A second socket, connected to the peer that most packets go to. Packets leave by it, and none
 * come. The kernel then finds the route once, and not for each packet, which saves an eighth of a
 * short packet's time on loopback.
 *
 * It has the address and port of the first socket as its own, so that peers and firewalls cannot
 * tell the two apart, but it takes no packets from the first. A socket that is bound to a multicast
 * group receives only what is sent to the group, and has no source address yet; its first connect()
 * gives it one, for good. The group is 224.0.0.0, which may have no members (RFC 5771): so no
 * packets come by it, the packets of peers stay in order in the one queue of the first socket, and
 * ICMP messages of routers and hosts go to the first socket.
 *
 * The fabric works without it: then all packets leave by the first socket.
 */
#include "fabric/udp/connected.h"

#include "base/forks.h"
#include "base/ip.h"
#include "fabric/udp/socket.h"

enum {
    WON = 64,     /* votes that make a peer the favourite; each call that sends to it is a vote */
    AGAINST = 4,  /* votes that a call to another peer takes away */
    LATER = 10000 /* votes that a peer is set back when connecting to it has failed */
};
#define NOBODYS_GROUP UINT32_C(0xe0000000) /* 224.0.0.0 */

/* Whether packets to `own`, an address of this host, come from that address: then a socket without
 * an address gets this one when it is connected to it. */
static bool is_its_own_source(const struct sockaddr_in *own)
{
    struct sockaddr_in source = {0};
    socklen_t size = sizeof(source);
    int fd = forks_open(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    bool is = fd >= 0 && sys_connect(fd, (const struct sockaddr *)own, sizeof(*own)) == 0 &&
              getsockname(fd, (struct sockaddr *)&source, &size) == 0 &&
              source.sin_addr.s_addr == own->sin_addr.s_addr;
    forks_close(fd);
    return is;
}

static void copy_send_buffer(int from, int to)
{
    int bytes = 0;
    socklen_t size = sizeof(bytes);
    getsockopt(from, SOL_SOCKET, SO_SNDBUF, &bytes, &size);
    bytes /= 2; /* the kernel reports twice the size that was set */
    if (setsockopt(to, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) != 0) {
        setsockopt(to, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
    }
}

/* Gives a socket the address and port of the first one, as its source. */
static bool take_after(int first, int fd)
{
    struct sockaddr_in own = {0};
    socklen_t size = sizeof(own);
    int on = 1, off = 0;
    if (getsockname(first, (struct sockaddr *)&own, &size) != 0 || !is_its_own_source(&own)) {
        return false;
    }
    struct sockaddr_in group = ip_socket(NOBODYS_GROUP, ntohs(own.sin_port));
    /* Sockets with other addresses may have the same port, and connected sockets of their own. */
    return setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
           setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &off, sizeof(off)) == 0 &&
           bind(fd, (struct sockaddr *)&group, sizeof(group)) == 0 &&
           sys_connect(fd, (struct sockaddr *)&own, sizeof(own)) == 0;
}

static bool make(struct udp_connected *l, int first)
{
    int fd = forks_open(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0) {
        return false;
    }
    if (!take_after(first, fd)) {
        forks_close(fd);
        return false;
    }
    copy_send_buffer(first, fd);
    l->fd = fd;
    l->on = true;
    return true;
}

void udp_connected_close(struct udp_connected *l)
{
    if (l->on) {
        forks_close(l->fd);
        l->on = false;
    }
}

void udp_connected_fail(struct udp_connected *l)
{
    udp_connected_close(l);
    l->votes = -LATER;
}

static void lead(struct udp_connected *l, int first)
{
    struct sockaddr_in to = ip_socket(l->often.ip, l->often.port);
    if ((!l->on && !make(l, first)) ||
        sys_connect(l->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        udp_connected_fail(l);
        return;
    }
    l->to = l->often;
}

void udp_connected_count(struct udp_connected *l, int first, const struct slmp_address *to)
{
    if (!slmp_address_equal(to, &l->often)) {
        l->votes -= AGAINST;
        if (l->votes <= 0) {
            l->often = *to;
            l->votes = 1;
        }
    } else if (l->votes < WON && ++l->votes == WON && !udp_connected_leads_to(l, to)) {
        lead(l, first);
    }
}

bool udp_connected_leads_to(const struct udp_connected *l, const struct slmp_address *to)
{
    return l->on && slmp_address_equal(to, &l->to);
}
