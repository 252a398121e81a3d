/* SPDX-License-Identifier: BSD-3-Clause */
/* The UDP socket of an SLMP engine; see udp.h. */
#include "udp.h"

#include "base/ip.h"
#include "base/sys.h"
#include "fabric/udp/refusal.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

enum { RECEIVES = 64, WANTED = 4 << 20 };

int slmp_udp_open(struct slmp_udp *u, uint32_t address, uint16_t port,
                  const struct slmp_address *peer, struct reason *why)
{
    *u = (struct slmp_udp){.socket.fd = -1, .buffer = malloc(UDP_BUFFER)};
    if (u->buffer == NULL) {
        return reason_say(why, -1, "out of memory");
    }
    int rc = udp_socket_open(&u->socket, address, port, WANTED, why);
    if (rc == -EADDRINUSE) {
        reason_add(why, 0, ", name another with --port, or 0 for any");
    }
    if (rc == 0 && peer != NULL) {
        rc = udp_socket_connect(&u->socket, peer, why);
    }
    if (rc != 0) {
        slmp_udp_close(u);
    }
    return rc == 0 ? 0 : -1;
}

void slmp_udp_close(struct slmp_udp *u)
{
    udp_socket_close(&u->socket);
    free(u->buffer);
    u->buffer = NULL;
}

int slmp_udp_find(const char *host, uint32_t *address, struct reason *why)
{
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *found;
    int r = getaddrinfo(host, NULL, &hints, &found);
    if (r != 0) {
        return reason_say(why, -1, "%s: %s; needed is a host name or an IPv4 address", host,
                          gai_strerror(r));
    }
    *address = ip_of(found->ai_addr);
    freeaddrinfo(found);
    return 0;
}

/* True if a packet that came is to be lost on purpose. Each packet is drawn for by itself, also if
 * the kernel has joined several. */
static bool dropped(struct slmp_udp *u)
{
    u->draw = u->draw * 6364136223846793005u + 1442695040888963407u;
    return u->drop > 0 && (u->draw >> 33) % 10000 < u->drop;
}

/* Receives one datagram, or several that the kernel has joined; returns how many. */
static unsigned receive(struct slmp_udp *u, struct slmp *e)
{
    struct slmp_address from;
    size_t each, at = 0;
    ssize_t length = udp_socket_receive(&u->socket, u->buffer, &from, &each);
    if (length < 0) {
        return 0;
    }
    int64_t now = clock_ns();
    unsigned count = 0;
    do {
        size_t n = (size_t)length - at < each ? (size_t)length - at : each;
        if (!dropped(u)) {
            slmp_input(e, now, &from, u->buffer + at, n);
        }
        count++;
        at += n;
    } while (at < (size_t)length);
    return count;
}

/* Sends what the engine wants to send. Lost packets are no errors, since the engine sends them
 * again; an error is one that sending again cannot mend. */
static int send_all(struct slmp_udp *u, struct slmp *e, bool *any, struct reason *why)
{
    struct udp_failure f;
    int rc = udp_socket_output(&u->socket, e, clock_ns(), 0, any, &f);
    if (rc != 0) {
        reason_say(why, rc, "cannot send packets of %u bytes to %s:%u: %s%s", f.length,
                   ip_text(f.to.ip).text, f.to.port, strerror(-rc),
                   rc == -EMSGSIZE ? "; shorter ones may pass, see --packet" : "");
    }
    return rc;
}

static void sleep_until(struct slmp_udp *u, int64_t at)
{
    struct pollfd p = {.fd = u->socket.fd, .events = POLLIN};
    int64_t left = at - clock_ns();
    if (left > 0) {
        struct timespec t = {.tv_sec = left / 1000000000, .tv_nsec = left % 1000000000};
        ppoll(&p, 1, &t, NULL);
    }
}

int slmp_udp_turn(struct slmp_udp *u, struct slmp *e, int64_t longest, struct reason *why)
{
    bool any = false;
    unsigned joined = 2;
    /* If the kernel has joined packets more may wait, and one acknowledgement can answer them all;
     * a single packet is answered before the next is received. */
    for (int i = 0; i < RECEIVES && joined > 1; i++) {
        joined = receive(u, e);
        any = any || joined > 0;
    }
    slmp_advance(e, clock_ns());
    if (send_all(u, e, &any, why) != 0) {
        return -1;
    }
    for (struct slmp_address who; u->socket.tells && udp_socket_refusal(&u->socket, &who);) {
    }
    if (!any && longest > 0) {
        int64_t at = slmp_deadline(e), most = clock_ns() + longest;
        sleep_until(u, at < most ? at : most);
    }
    return 0;
}
