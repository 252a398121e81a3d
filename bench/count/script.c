/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scripted socket: the functions of fabric/udp/socket.h in the place of the library's. Nothing
 * is lost, nothing overtakes, a datagram is there as soon as it has left, and the clock goes on
 * by the same step with each datagram, so short that answers come soon and acknowledgements ride
 * on them; so the engine takes the same way each time. What it costs here to carry a datagram, a
 * lock and a copy at either end, stands in the place of the calls to the kernel.
 */
#include "fabric/udp/socket.h"

#include "base/sys.h"
#include "fabric/udp/refusal.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>

enum { SOCKETS = 2, PLACES = 256, LONGEST = 2048, FIRST_PORT = 40000, STEP_NS = 2000 };

/* The NIC thread compares the engine's deadlines with the real clock: none is to be due there. */
#define AHEAD_NS 3600000000000

struct datagram {
    struct slmp_address from;
    size_t length;
    uint8_t bytes[LONGEST];
};

/* The queue of a socket: the datagrams from `taken` to `come`. */
static struct inbox {
    struct udp_socket *owner;
    struct slmp_address at;
    unsigned come, taken;
    struct datagram place[PLACES];
} inboxes[SOCKETS];
static _Atomic int64_t script_now;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a NIC thread may look, too */

static struct inbox *inbox_of(const struct udp_socket *u)
{
    return inboxes[0].owner == u ? &inboxes[0] : &inboxes[1];
}

static struct inbox *inbox_at(const struct slmp_address *a)
{
    for (struct inbox *i = inboxes; i < inboxes + SOCKETS; i++) {
        if (i->owner != NULL && i->at.port == a->port && i->at.ip == a->ip) {
            return i;
        }
    }
    return NULL;
}

int udp_socket_open(struct udp_socket *u, uint32_t ip, uint16_t port, int buffers,
                    struct reason *why)
{
    struct inbox *i = inboxes[0].owner == NULL ? &inboxes[0] : &inboxes[1];
    uint16_t given = (uint16_t)(port != 0 ? port : FIRST_PORT + (i - inboxes));
    struct slmp_address at = {ip, given};
    if (i->owner != NULL || inbox_at(&at) != NULL) {
        return -EADDRINUSE;
    }
    script_now = script_now != 0 ? script_now : clock_ns() + AHEAD_NS;
    *u = (struct udp_socket){.fd = eventfd(0, EFD_CLOEXEC), .receive = buffers};
    i->owner = u;
    i->at = at;
    i->come = i->taken = 0;
    return 0;
}

void udp_socket_close(struct udp_socket *u)
{
    if (u->fd >= 0) {
        close(u->fd);
        inbox_of(u)->owner = NULL;
    }
    u->fd = -1;
}

uint16_t udp_socket_port(const struct udp_socket *u)
{
    return inbox_of(u)->at.port;
}

int64_t udp_socket_now(const struct udp_socket *u)
{
    return script_now;
}

void udp_socket_secrets(struct slmp_config *c)
{
    c->incarnation = c->incarnation != 0 ? c->incarnation : 1;
    c->secret = 2;
}

bool udp_socket_refusal(struct udp_socket *u, struct slmp_address *who)
{
    u->tells = false;
    return false;
}

ssize_t udp_socket_receive(struct udp_socket *u, void *buffer, struct slmp_address *from,
                           size_t *each)
{
    struct inbox *i = inbox_of(u);
    ssize_t length = -1;
    pthread_mutex_lock(&lock);
    if (i->taken != i->come) {
        const struct datagram *d = &i->place[i->taken++ % PLACES];
        *from = d->from;
        *each = d->length;
        length = (ssize_t)d->length;
        memcpy(buffer, d->bytes, d->length);
    }
    pthread_mutex_unlock(&lock);
    errno = length < 0 ? EAGAIN : errno;
    return length;
}

static void carry(const struct inbox *by, const struct slmp_packet *p)
{
    struct inbox *to = inbox_at(&p->to);
    script_now += STEP_NS;
    if (to == NULL || to->come - to->taken == PLACES || p->length > LONGEST) {
        return; /* as good as lost, and the row fails that expects it */
    }
    struct datagram *d = &to->place[to->come++ % PLACES];
    d->from = by->at;
    d->length = p->header_length;
    memcpy(d->bytes, p->header, p->header_length);
    for (unsigned i = 0; i < p->parts; i++) {
        memcpy(d->bytes + d->length, p->part[i].iov_base, p->part[i].iov_len);
        d->length += p->part[i].iov_len;
    }
}

int udp_socket_output(struct udp_socket *u, struct slmp *e, int64_t now, unsigned expected,
                      bool *any, struct udp_failure *failure)
{
    static struct slmp_packet packet;
    while (slmp_output(e, now, &packet)) {
        *any = true;
        pthread_mutex_lock(&lock);
        carry(inbox_of(u), &packet);
        pthread_mutex_unlock(&lock);
    }
    return 0;
}
