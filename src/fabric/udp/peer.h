/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions and peers: contact, refusal, death (peer.c). */
#ifndef FABRIC_UDP_PEER_H
#define FABRIC_UDP_PEER_H

#include "fabric/udp/udp.h"

void udp_opened(void *fabric, struct slmp_peer *, const struct slmp_address *,
                uint64_t incarnation);
void udp_closed(void *fabric, struct slmp_peer *, const struct slmp_address *);
void udp_other_version(void *fabric, const struct slmp_address *, unsigned theirs, unsigned ours);
/* udp_whose() says that one user of this host is one source, whatever its addresses, and each
 * other host is. udp_busy() is true while anything at all is outstanding with a peer. */
struct slmp_whose udp_whose(void *fabric, const struct slmp_address *);
bool udp_busy(void *fabric, struct slmp_peer *);
enum fabric_connect udp_connect(struct fabric *, uint32_t nid, uint32_t pid, struct reason *why);
/* udp_tear_down() ends a peer whose session is over, if it can be ended. */
bool udp_tear_down(struct udp_peer *);
/* udp_tear_down_refused() ends peers of this host whose port nobody listens at any more. */
void udp_tear_down_refused(struct udp_fabric *);
/* udp_ask_silent() makes peers that we wait for show that they live. */
void udp_ask_silent(struct udp_fabric *, int64_t now);
bool udp_expects(const struct udp_peer *);
/* A PID is a port, but for those below 1024, which begin at PINWHEEL_UDP_PORT_BASE + 1. */
uint16_t udp_port_of(const struct options *, uint32_t pid);
uint32_t udp_pid_of(const struct options *, uint16_t port);

#endif
