/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which senders are on this host, and which users own their sockets (decision 13). The kernel drops
 * packets that come from outside with an address of this host as source. So a packet with such an
 * address is of this host, and the kernel knows the owner of the port that it comes from. This file
 * also logs senders that cannot prove to be of the job.
 */
#include "fabric/udp/trust.h"

#include "base/cancel.h"
#include "base/ip.h"
#include "base/log.h"

#include <ifaddrs.h>
#include <inttypes.h>
#include <stdio.h>

/* The kernel's list is read in pieces, by position: if sockets before the wanted one are closed
 * meanwhile, a look may miss it. */
#define LOOKS 8

void udp_learn_locals(struct udp_fabric *f)
{
    struct ifaddrs *present;
    f->locals = 0;
    forks_hold(); /* a child would keep the socket that libc opens */
    int rc = getifaddrs(&present);
    forks_release();
    if (rc != 0) {
        return; /* loopback and the fabric's own address still count as local */
    }
    for (const struct ifaddrs *a = present; a != NULL && f->locals < LOCAL_MOST; a = a->ifa_next) {
        if (a->ifa_addr != NULL && a->ifa_addr->sa_family == AF_INET) {
            f->local[f->locals++] = ip_of(a->ifa_addr);
        }
    }
    freeifaddrs(present);
}

bool udp_is_local(struct udp_fabric *f, uint32_t ip)
{
    if (ip >> 24 == 127 || ip == f->setup.nid) {
        return true;
    }
    for (unsigned i = 0; i < f->locals; i++) {
        if (f->local[i] == ip) {
            return true;
        }
    }
    return false;
}

/* Looks once through the kernel's list of sockets for the owner of an address and port. */
static uint32_t look_up(const struct slmp_address *a)
{
    FILE *file = fopen("/proc/self/net/udp", "re");
    char line[512];
    uint32_t owner = FABRIC_NOBODY;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        unsigned ip, port, uid;
        /* "sl: local:port remote:port state queues timer retransmissions uid ..." */
        if (sscanf(line, "%*d: %x:%x %*x:%*x %*x %*x:%*x %*x:%*x %*x %u", &ip, &port, &uid) == 3 &&
            port == a->port && ntohl(ip) == a->ip) {
            owner = uid;
            break;
        }
    }
    if (file != NULL) {
        fclose(file);
    }
    return owner;
}

uint32_t udp_owner(const struct slmp_address *a)
{
    ERRNO_KEPT;
    NOT_CANCELLED;
    forks_hold(); /* a child would keep the file open */
    uint32_t owner = FABRIC_NOBODY;
    for (int i = 0; i < LOOKS && owner == FABRIC_NOBODY; i++) {
        owner = look_up(a);
    }
    forks_release();
    return owner;
}

/* Packets of a session are ignored: bits may have changed on the way. */
void udp_unproved(struct udp_fabric *f, const struct slmp_address *from)
{
    const struct slmp_counters *c = slmp_counters(f->engine);
    uint64_t unproved = f->keyed ? c->forged : c->refused, mark = 1;
    if (unproved == f->unproved || slmp_peer_info(f->engine, from).session) {
        f->unproved = unproved;
        return;
    }
    f->unproved = unproved;
    f->strange++;
    while (mark < f->strange) {
        mark *= 10;
    }
    if (mark == f->strange) {
        log_line(LOG_WARN,
                 "packets of the peer at %s:%u are dropped: %s; give all processes of the job the "
                 "same %s (%" PRIu64 " such packets so far)",
                 ip_text(from->ip).text, from->port,
                 f->keyed ? "it cannot prove that it has this job's key"
                          : "it has a job key, or does not speak as this process does, and this "
                            "process has no key",
                 option_table[OPT_JOB_KEY_FILE].env, f->strange);
    }
}
