/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions and peers. The engine's session with an address is a peer of the NIC. When the session
 * ends, the fabric takes the messages that have come whole, ends the others as UNDELIVERABLE, and
 * tears the peer down: udp_tear_down(). The next session with that address is a new peer.
 */
#include "fabric/udp/peer.h"

#include "base/log.h"
#include "fabric/iface.h"
#include "fabric/udp/channel.h"
#include "fabric/udp/receive.h"
#include "fabric/udp/refusal.h"
#include "fabric/udp/send.h"
#include "fabric/udp/stream.h"
#include "fabric/udp/trust.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_NS 100000000
#define LOW_PIDS 1024u /* the system uses the ports of PIDs below it */

uint16_t udp_port_of(const struct options *o, uint32_t pid)
{
    uint32_t base = (uint32_t)o->number[OPT_UDP_PORT_BASE];
    return (uint16_t)(pid != 0 && pid < LOW_PIDS ? base + pid : pid);
}

uint32_t udp_pid_of(const struct options *o, uint16_t port)
{
    uint32_t base = (uint32_t)o->number[OPT_UDP_PORT_BASE];
    return port > base && port < base + LOW_PIDS ? port - base : port;
}

/* Returns the source of an address. The engine calls it before each session; the uid of the
 * session's peer is set then, too. */
struct slmp_whose udp_whose(void *fabric, const struct slmp_address *a)
{
    struct udp_fabric *f = fabric;
    struct slmp_whose w = {.name = a->ip, .standing = f->keyed ? SLMP_OURS : SLMP_ANYBODYS};
    if (udp_is_local(f, a->ip)) {
        f->owner = udp_owner(a);
        w.name = 1ULL << 32 | f->owner;
        w.standing = f->keyed || f->owner == getuid() ? SLMP_OURS : SLMP_OTHERS;
    }
    return w;
}

/* Whether anything is outstanding between this NIC and a peer, in the fabric or at the NIC. */
static bool in_use(const struct udp_peer *p)
{
    return (udp_state(p) & (RX_BUSY | RX_AWAITS)) != 0 || udp_unacknowledged(p) ||
           p->fabric->setup.up->needs(p->np);
}

bool udp_busy(void *fabric, struct slmp_peer *session)
{
    const struct udp_peer *p = slmp_peer_user(session);
    return p != NULL && in_use(p);
}

static void free_peer(struct udp_peer *p)
{
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        udp_channel_free(p->fabric, &p->channel[c]);
    }
    list_remove(&p->ready);
    list_remove(&p->link);
    p->fabric->dying -= p->dying;
    free(p);
}

static void forget(struct udp_peer *p)
{
    struct udp_fabric *f = p->fabric;
    for (unsigned c = 0; p->np != NULL && c < FABRIC_CLASSES; c++) {
        if (p->channel[c].rx != NULL) {
            f->setup.up->rx_free(p->np, p->channel[c].rx);
        }
    }
    if (p->np != NULL) {
        f->setup.up->peer_down(f->setup.nic, p->np);
    }
    free_peer(p);
}

static bool introduce(struct udp_peer *p)
{
    struct udp_fabric *f = p->fabric;
    p->np = p->source.np = f->setup.up->peer_up(f->setup.nic, &p->address, (struct fabric_peer *)p);
    for (unsigned c = 0; p->np != NULL && c < FABRIC_CLASSES; c++) {
        p->channel[c].rx = f->setup.up->rx_new(p->np, (enum fabric_class)c);
        if (p->channel[c].rx == NULL) {
            return false;
        }
        p->channel[c].rx->held = FABRIC_HELD_NOTHING;
    }
    return p->np != NULL;
}

static struct udp_peer *new_peer(struct udp_fabric *f, const struct slmp_address *a,
                                 uint64_t incarnation)
{
    struct udp_peer *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }
    /* The kernel knows the uid of a peer on this host. A peer of another host with the job's key is
     * of this process's user; of others no uid is known. */
    uint32_t uid = udp_is_local(f, a->ip) ? f->owner : f->keyed ? getuid() : FABRIC_NOBODY;
    p->fabric = f;
    p->at = *a;
    p->address = (struct fabric_address){.nid = a->ip,
                                         .pid = udp_pid_of(f->setup.options, a->port),
                                         .incarnation = incarnation,
                                         .uid = uid,
                                         .ops = &fabric_udp};
    p->source = (struct rx_source){&udp_source, f->setup.up, NULL, f->setup.packet_size};
    list_init(&p->ready);
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        udp_channel_init(&p->channel[c], &p->source, (enum fabric_class)c);
    }
    list_push_back(&f->peers, &p->link);
    return p;
}

void udp_opened(void *fabric, struct slmp_peer *session, const struct slmp_address *a,
                uint64_t incarnation)
{
    struct udp_fabric *f = fabric;
    struct udp_peer *p = new_peer(f, a, incarnation);
    if (p != NULL && !introduce(p)) {
        forget(p);
        p = NULL;
    }
    slmp_peer_set_user(session, p);
    if (p == NULL) {
        log_line(LOG_WARN, "out of memory for a new peer");
        slmp_leave(f->engine, session);
        return;
    }
    p->session = session;
    p->heard = udp_socket_now(&f->socket);
    f->ask_at = p->heard; /* the next poll computes when peers must be asked */
    f->moved = true;
}

void udp_closed(void *fabric, struct slmp_peer *session, const struct slmp_address *a)
{
    struct udp_fabric *f = fabric;
    struct udp_peer *p = slmp_peer_user(session);
    slmp_peer_set_user(session, NULL);
    if (p == NULL) {
        return;
    }
    p->session = NULL;
    p->dying = true;
    f->dying++;
    if (!in_use(p)) {
        /* at once: the next message to this address begins a new session, which must not find this
         * peer */
        forget(p);
        f->moved = true;
        return;
    }
    udp_attend(p);
}

void udp_other_version(void *fabric, const struct slmp_address *a, unsigned theirs, unsigned ours)
{
    struct udp_fabric *f = fabric;
    if (!f->told_version) {
        f->told_version = true;
        log_line(LOG_WARN, "%s", slmp_version_text(a, theirs, ours).text);
    }
}

bool udp_tear_down(struct udp_peer *p)
{
    while (udp_take(p)) {
    }
    udp_cut(p);
    if ((udp_state(p) & RX_BUSY) != 0) {
        return false; /* a handler works on its last message */
    }
    forget(p);
    return true;
}

/* Logs, once, that the table of peers is full of peers in use, none of which can be forgotten to
 * make room for a new one, so that an operation to the new one has to wait. */
static void note_full(struct udp_fabric *f)
{
    if (!f->full_told) {
        f->full_told = true;
        log_line(LOG_WARN,
                 "all %u places for peers over UDP are those of peers in use: one more is waited "
                 "for, PINWHEEL_CONNECT_MS=%lld",
                 f->config.peers_max, (long long)f->setup.options->number[OPT_CONNECT_MS]);
    }
}

enum fabric_connect udp_connect(struct fabric *fabric, uint32_t nid, uint32_t pid,
                                struct reason *why)
{
    struct udp_fabric *f = udp_of(fabric);
    struct slmp_address to = {nid, udp_port_of(f->setup.options, pid)};
    struct slmp_peer *session = slmp_known(f->engine, &to);
    if (session != NULL && slmp_peer_user(session) != NULL) {
        return FABRIC_UP;
    }
    if (!f->open_to_all && !udp_is_local(f, nid)) {
        iface_refuse_beyond(nid, why);
        return FABRIC_NEVER;
    }
    int64_t now = udp_socket_now(&f->socket);
    int rc = slmp_contact(f->engine, now, &to);
    if (rc == -ENOBUFS) {
        note_full(f);
        return FABRIC_LATER; /* the engine asks silent peers whether they live */
    }
    if (rc != 0) {
        return reason_say(why, FABRIC_NEVER, "cannot make contact over UDP: %s", strerror(-rc));
    }
    udp_flush(f, now);
    return slmp_peer_info(f->engine, &to).answered ? FABRIC_SOON : FABRIC_LATER;
}

void udp_tear_down_refused(struct udp_fabric *f)
{
    struct slmp_address who;
    while (udp_socket_refusal(&f->socket, &who)) {
        struct slmp_peer *session = udp_is_local(f, who.ip) ? slmp_known(f->engine, &who) : NULL;
        if (session != NULL) {
            slmp_lost(f->engine, udp_socket_now(&f->socket), session);
        }
    }
}

/* Returns how long a peer may be silent before it is asked. On this host an answer costs little,
 * and the kernel itself gives one for a process that is gone. */
static int64_t patience(struct udp_fabric *f, const struct udp_peer *p)
{
    return udp_is_local(f, p->at.ip) && f->config.silence > 4 * ASK_NS ? ASK_NS
                                                                       : f->config.silence / 4;
}

bool udp_expects(const struct udp_peer *p)
{
    return !p->dying && ((udp_state(p) & RX_AWAITS) != 0 || slmp_incomplete(p->session) ||
                         p->fabric->setup.up->expects(p->np));
}

void udp_ask_silent(struct udp_fabric *f, int64_t now)
{
    f->ask_at = now + f->config.silence / 4;
    LIST_EACH(struct udp_peer, p, &f->peers, link) {
        int64_t wait = patience(f, p);
        if (now - p->heard >= wait && udp_expects(p)) {
            slmp_ask(f->engine, now, p->session);
            p->heard = now;
        }
        f->ask_at = now + wait < f->ask_at ? now + wait : f->ask_at;
    }
}
