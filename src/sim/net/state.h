/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The internal state of a network; docs/network-model.md has the rules in the same words.
 *
 *   channel   a link one way: until when it is taken, and when it looks next
 *   vc        a virtual channel of it: what waits for it, oldest first, and the
 *             credit of the buffer behind it. What waits at a host's channel are
 *             messages, each with the age of its next packet
 *   packet    holds buffer space of the virtual channel by which it came, until it has left
 *
 * Invariant (check.c): for a virtual channel that leads to a switch, its free bytes, the bytes of
 * credits on their way back, and the bytes of the packets in its buffer add up to the buffer's
 * size.
 */
#ifndef SIM_NET_STATE_H
#define SIM_NET_STATE_H

#include "events.h"
#include "net.h"
#include "sim/util/charges.h"

#define NET_NEVER UINT64_MAX
#define NET_NONE UINT32_MAX

/* Events at the same time happen in the order of their kinds, and within a kind in the order of
 * channels or messages. */
enum net_event_kind { NET_ENTER, NET_LOOK, NET_DELIVER };

struct net_wait {
    uint64_t age;
    uint64_t serial; /* decides between equal ages */
    uint32_t ref;    /* the packet; at a host's channel the message */
    uint32_t bytes;  /* of the packet, or of the message's next packet */
};

/* A credit: buffer space that will become free at a known time. */
struct net_credit {
    uint64_t time;
    uint32_t bytes;
    uint32_t next; /* index + 1 */
};

struct net_vc {
    struct net_wait *heap;
    uint32_t count, capacity;
    uint64_t free;        /* bytes of credit; not used for a virtual channel to a host */
    uint32_t first, last; /* credits that are on their way back, in the order of time: index + 1 */
    bool starved;         /* the first packet that waits lacks credit */
};

struct net_channel {
    uint64_t busy_until;
    uint64_t look;    /* time of the valid NET_LOOK event, or NET_NEVER */
    uint64_t queued;  /* ps for which the packets that wait will take the channel */
    uint64_t busy;    /* ps for which it was busy so far */
    uint32_t waiting; /* packets or messages that wait for its virtual channels */
};

struct net_packet {
    uint64_t age;    /* when it could leave its host */
    uint64_t ready;  /* when it could leave the host or switch where it is */
    uint64_t serial; /* counts packets in the order in which they left their hosts */
    uint32_t message, from, to, bytes;
    /* channel by which it came; NET_NONE: the packet is free, and `to` is the next free one */
    uint32_t channel;
    /* dragonfly: the group by which it goes, besides its own and the destination's */
    uint32_t via;
    uint8_t vc, next; /* virtual channels by which it came, and by which it will leave */
    /* file: channels between switches so far; dragonfly: channels between groups so far */
    uint8_t hops;
    uint8_t dimension; /* torus: the dimension in which it moves */
    /* torus: the direction in which it moves; whether it has passed the dateline */
    bool up, crossed;
    uint32_t channels; /* channels that it has used */
    uint32_t number;   /* its index among its message's packets */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct net_packet) == 64, "a cache line");

struct net_transfer {
    struct net_message m;
    uint64_t sent, came; /* bytes that have left the host; bytes whose arrival is known */
    struct net_arrival arrival;
    uint64_t serial;
    /* index + 1: the next free transfer; of a pair's last transfer the next one with the same
     * hash */
    uint32_t next;
    uint32_t after; /* index + 1: the next transfer of its pair */
    bool behind;    /* an earlier transfer of its pair was not delivered yet */
    bool here;      /* all its bytes have come, but it is `behind` */
};

struct net {
    const struct net_graph *g;
    struct net_config c;
    struct net_hooks hooks;
    struct net_events events;
    uint64_t now;
    uint32_t vcs; /* virtual channels of each channel */
    struct net_channel *channels;
    struct net_vc *vc; /* the virtual channels of channel 0, then those of channel 1, ... */
    struct net_packet *packets;
    /* `packets_free` is the first of a chain: index + 1 */
    uint32_t packets_used, packets_free, packets_capacity;
    uint64_t packets_live;
    struct net_transfer *transfers;
    uint32_t transfers_used, transfers_free, transfers_capacity;
    struct net_credit *credits;
    uint32_t credits_used, credits_free, credits_capacity;
    uint32_t *pairs; /* by hash of (sender, receiver): the last transfer of the pair, index + 1 */
    uint32_t pairs_slots, pairs_count;
    uint64_t serial;               /* serial number of the next packet or message */
    uint64_t full_busy, full_tail; /* busy time and length of a packet of the largest size */
    struct net_counts counts;
    uint32_t at; /* the transfer that is being handled */
    bool short_of_memory, overflow;
};

static inline struct net_vc *net_vc(const struct net *n, uint32_t channel, uint32_t vc)
{
    return &n->vc[(size_t)channel * n->vcs + vc];
}

static inline bool net_from_host(const struct net *n, uint32_t channel)
{
    return channel < 2 * n->g->hosts && channel % 2 == 0;
}

static inline bool net_to_host(const struct net *n, uint32_t channel)
{
    return channel < 2 * n->g->hosts && channel % 2 == 1;
}

/* Adds times. If the sum exceeds the highest time it notes that. */
static inline uint64_t net_add(struct net *n, uint64_t time, uint64_t more)
{
    uint64_t sum = time + more;
    if (sum > LOGGOPS_LAST) {
        n->overflow = true;
        return LOGGOPS_LAST;
    }
    return sum;
}

/* net_busy_of() returns how long a packet of `bytes` takes a channel, net_tail_of() how far its
 * last byte is behind its first. */
static inline uint64_t net_busy_of(const struct net *n, uint32_t bytes)
{
    return bytes == n->c.packet ? n->full_busy : charges_product(bytes, n->c.byte);
}

static inline uint64_t net_tail_of(const struct net *n, uint32_t bytes)
{
    return bytes == n->c.packet ? n->full_tail : charges_product(bytes - 1, n->c.byte);
}

/* net_up_at() returns when a channel carries packets again, or now. One that does not counts as
 * loaded beyond any other. */
#define NET_DOWN_LOAD (UINT64_C(1) << 62)
uint64_t net_up_at(const struct net *n, uint32_t channel);

/* Returns how long a packet that comes to a channel now would wait, as far as known. */
static inline uint64_t net_load(const struct net *n, uint32_t channel)
{
    const struct net_channel *ch = &n->channels[channel];
    if (n->c.downs != 0 && net_up_at(n, channel) > n->now) {
        return NET_DOWN_LOAD;
    }
    return ch->queued + (ch->busy_until > n->now ? ch->busy_until - n->now : 0);
}

static inline bool net_wait_before(const struct net_wait *a, const struct net_wait *b)
{
    return a->age != b->age ? a->age < b->age : a->serial < b->serial;
}

/* net_wait_push() adds a packet to those that wait for a virtual channel; -1 if memory is short.
 * net_wait_drop() removes the first one. net_wait_sink() moves the first one to its place after its
 * age has grown. */
int net_wait_push(struct net_vc *vc, const struct net_wait *w);
void net_wait_drop(struct net_vc *vc);
void net_wait_sink(struct net_vc *vc);

/* net_route() returns the channel by which a packet leaves switch `sw`, and sets its virtual
 * channel. */
uint32_t net_route(const struct net *n, struct net_packet *p, uint32_t sw);

/* net_pair_join() appends a transfer to those of its pair (same sender, same receiver); -1 if
 * memory is short. net_pair_leave() removes one that was delivered, and returns the pair's next
 * one: index + 1, or 0. */
int net_pair_join(struct net *n, uint32_t transfer);
uint32_t net_pair_leave(struct net *n, uint32_t transfer);

#endif
