/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions and peers: how they begin, are refused, and end (peer.c). */
#ifndef FABRIC_UDP_PEER_H
#define FABRIC_UDP_PEER_H

#include "fabric/udp/udp.h"

void udp_opened(void *fabric, struct slmp_peer *, const struct slmp_address *,
                uint64_t incarnation);
void udp_closed(void *fabric, struct slmp_peer *, const struct slmp_address *);
void udp_other_version(void *fabric, const struct slmp_address *, unsigned theirs, unsigned ours);
/* udp_whose() returns the source of an address: each user of this host is one source, for all
 * addresses; and so is each other host. udp_busy() says whether anything is outstanding with a
 * peer. */
struct slmp_whose udp_whose(void *fabric, const struct slmp_address *);
bool udp_busy(void *fabric, struct slmp_peer *);
enum fabric_connect udp_connect(struct fabric *, uint32_t nid, uint32_t pid, struct reason *why);
/* udp_tear_down() ends a peer whose session is over, unless a handler works on its messages; true:
 * the peer is gone. */
bool udp_tear_down(struct udp_peer *);
/* udp_tear_down_refused() ends peers on this host whose port is closed. */
void udp_tear_down_refused(struct udp_fabric *);
/* udp_ask_silent() asks peers from which the NIC waits for something whether they live. */
void udp_ask_silent(struct udp_fabric *, int64_t now);
bool udp_expects(const struct udp_peer *);
/* A PID is a port, except that PIDs below 1024 have the ports from PINWHEEL_UDP_PORT_BASE + 1
 * on. */
uint16_t udp_port_of(const struct options *, uint32_t pid);
uint32_t udp_pid_of(const struct options *, uint16_t port);

#endif
