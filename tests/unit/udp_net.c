/* SPDX-License-Identifier: BSD-3-Clause */
/* A network in memory; see udp_net.h. */
#include "udp_net.h"

#include "base/list.h"
#include "base/nic_copy.h"
#include "fabric/udp/refusal.h"
#include "fabric/udp/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { FIRST_PORT = 40000, PORTS = 16 };

/* A packet on its way: in the inbox of its target, the next one to arrive first. */
struct datagram {
    struct list link;
    int64_t at;
    struct slmp_address from;
    size_t length;
    uint8_t bytes[];
};

static struct {
    int64_t now;
    uint64_t state;
    struct net_faults faults;
    struct net_counts counts;
    bool (*chosen)(const uint8_t *packet, size_t length);
    struct udp_socket *owner[PORTS];
    struct list inbox[PORTS];
} net;

static uint64_t below(uint64_t n)
{
    net.state ^= net.state << 13;
    net.state ^= net.state >> 7;
    net.state ^= net.state << 17;
    return net.state % n;
}

void net_begin(uint64_t seed, const struct net_faults *faults)
{
    memset(&net, 0, sizeof(net));
    net.now = 1000000000;
    net.state = seed | 1;
    net.faults = *faults;
}

void net_set(const struct net_faults *faults)
{
    net.faults = *faults;
}

void net_choose(bool (*lost)(const uint8_t *packet, size_t length))
{
    net.chosen = lost;
}

void net_pass(int64_t ns)
{
    net.now += ns;
}

int64_t net_now(void)
{
    return net.now;
}

struct net_counts net_counts(void)
{
    return net.counts;
}

/* ---- the functions of socket.h ---- */

int udp_socket_open(struct udp_socket *u, uint32_t ip, uint16_t port, int buffers,
                    struct reason *why)
{
    unsigned i = 0;
    while (i < PORTS && (port != 0 ? i + FIRST_PORT != port : net.owner[i] != NULL)) {
        i++;
    }
    if (i == PORTS || net.owner[i] != NULL) {
        return -EADDRINUSE;
    }
    *u = (struct udp_socket){.fd = eventfd(0, EFD_CLOEXEC), .receive = buffers};
    net.owner[i] = u;
    list_init(&net.inbox[i]);
    return 0;
}

static unsigned index_of(const struct udp_socket *u)
{
    unsigned i = 0;
    while (net.owner[i] != u) {
        i++;
    }
    return i;
}

void udp_socket_close(struct udp_socket *u)
{
    if (u->fd >= 0) {
        unsigned i = index_of(u);
        for (struct list *l; (l = list_pop_front(&net.inbox[i])) != NULL;) {
            free(container_of(l, struct datagram, link));
        }
        net.owner[i] = NULL;
        close(u->fd);
    }
    u->fd = -1;
}

uint16_t udp_socket_port(const struct udp_socket *u)
{
    return (uint16_t)(FIRST_PORT + index_of(u));
}

int64_t udp_socket_now(const struct udp_socket *u)
{
    return net.now;
}

void udp_socket_secrets(struct slmp_config *c)
{
    c->secret = 0x1234567 + c->incarnation;
}

bool udp_socket_refusal(struct udp_socket *u, struct slmp_address *who)
{
    u->tells = false;
    return false;
}

ssize_t udp_socket_receive(struct udp_socket *u, void *buffer, struct slmp_address *from,
                           size_t *each)
{
    struct list *inbox = &net.inbox[index_of(u)];
    struct datagram *d =
        list_empty(inbox) ? NULL : container_of(inbox->next, struct datagram, link);
    if (d == NULL || d->at > net.now) {
        errno = EAGAIN;
        return -1;
    }
    ssize_t length = (ssize_t)d->length;
    list_remove(&d->link);
    *from = d->from;
    *each = d->length;
    memcpy(buffer, d->bytes, d->length);
    free(d);
    return length;
}

static void deliver(unsigned to, const struct datagram *packet)
{
    struct datagram *d = malloc(sizeof(*d) + packet->length);
    memcpy(d, packet, sizeof(*d) + packet->length);
    d->at = net.now + net.faults.latency +
            (net.faults.jitter != 0 ? (int64_t)below((uint64_t)net.faults.jitter) : 0);
    if (below(1000) < net.faults.spoilt) {
        d->bytes[below(d->length)] ^= (uint8_t)(1 + below(255));
        net.counts.spoilt++;
    }
    struct list *before = net.inbox[to].prev;
    while (before != &net.inbox[to] && container_of(before, struct datagram, link)->at > d->at) {
        before = before->prev;
    }
    list_insert_after(before, &d->link);
}

static void carry_packet(const struct slmp_address *to, const struct datagram *d)
{
    unsigned port = (unsigned)to->port - FIRST_PORT;
    net.counts.packets++;
    bool lost = port >= PORTS || net.owner[port] == NULL || below(1000) < net.faults.lost;
    if (lost || (net.chosen != NULL && net.chosen(d->bytes, d->length))) {
        net.counts.lost++;
        return;
    }
    deliver(port, d);
    if (below(1000) < net.faults.doubled) {
        net.counts.doubled++;
        deliver(port, d);
    }
}

/* Memory that cannot be read is found out as by the kernel. */
int udp_socket_output(struct udp_socket *u, struct slmp *e, int64_t now, unsigned expected,
                      bool *any, struct udp_failure *failure)
{
    static struct slmp_packet p;
    int rc = 0;
    while (rc == 0 && slmp_output(e, now, &p)) {
        struct datagram *d = malloc(sizeof(*d) + p.length);
        *any = true;
        list_init(&d->link);
        d->from = (struct slmp_address){0x7f000001, udp_socket_port(u)};
        d->length = p.header_length;
        memcpy(d->bytes, p.header, p.header_length);
        for (unsigned i = 0; i < p.parts && rc == 0; i++) {
            if (nic_copy(d->bytes + d->length, p.part[i].iov_base, p.part[i].iov_len) != 0) {
                *failure = (struct udp_failure){p.to, p.length};
                rc = -EFAULT;
            }
            d->length += p.part[i].iov_len;
        }
        if (rc == 0) {
            carry_packet(&p.to, d);
        }
        free(d);
    }
    return rc;
}
