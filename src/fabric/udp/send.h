/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending messages (send.c). */
#ifndef FABRIC_UDP_SEND_H
#define FABRIC_UDP_SEND_H

#include "fabric/udp/udp.h"

enum fabric_send udp_send(struct fabric_peer *, enum fabric_class, struct fabric_tx *);
enum fabric_short udp_send_short(struct fabric_peer *, enum fabric_class, const void *header,
                                 const void *payload, size_t length);
enum fabric_short udp_send_line(struct fabric_peer *, enum fabric_class, const struct fabric_line *,
                                size_t length);
bool udp_unsent(struct fabric_peer *);
/* Whether messages for a peer are not acknowledged yet. */
static inline bool udp_unacknowledged(const struct udp_peer *p)
{
    return p->channel[FABRIC_REQUEST].queued != 0 || p->channel[FABRIC_RESPONSE].queued != 0 ||
           p->channel[FABRIC_ASK].queued != 0;
}
/* udp_sent() is the upcall of the engine for a message that has left. */
void udp_sent(void *fabric, struct slmp_message *, enum slmp_status);
/* udp_flush() sends the packets that the engine has ready. */
void udp_flush(struct udp_fabric *, int64_t now);
void udp_habit_end(struct udp_habit *, int64_t now);
static inline bool udp_is_habit(const struct udp_habit *h)
{
    return h->times >= UDP_HABIT;
}
void udp_spare_free(struct udp_fabric *);

#endif
