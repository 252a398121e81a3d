/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network, inside; docs/network-model.md has the rules in the same words.
 *
 *   channel   a link one way: until when it is taken, and when it looks next
 *   vc        a virtual channel of it: what waits for it, oldest first, and the
 *             credit of the buffer behind it. What waits at a host's channel are
 *             messages, each with the age of its next packet
 *   packet    holds buffer space of the virtual channel by which it came, until it has left
 *
 * Invariant (check.c): of a virtual channel that leads to a switch, free bytes, bytes on
 * their way back and bytes of the packets that hold it add up to the buffer.
 */
#ifndef SIM_NET_STATE_H
#define SIM_NET_STATE_H

#include "events.h"
#include "net.h"
#include "sim/util/charges.h"

#define NET_NEVER UINT64_MAX
#define NET_NONE UINT32_MAX

/* Events of one time happen in this order; within a kind by channel or message. */
enum net_event_kind { NET_ENTER, NET_LOOK, NET_DELIVER };

struct net_wait {
    uint64_t age;
    uint64_t serial; /* decides between equals */
    uint32_t ref;    /* packet; at a host's channel the message */
    uint32_t bytes;  /* of the packet, or of the message's next one */
};

/* Buffer space that is known to become free. */
struct net_credit {
    uint64_t time;
    uint32_t bytes;
    uint32_t next; /* index + 1 */
};

struct net_vc {
    struct net_wait *heap;
    uint32_t count, capacity;
    uint64_t free;        /* bytes; of a virtual channel to a host not used */
    uint32_t first, last; /* net_credit on its way, by time; index + 1 */
    bool starved;         /* the first that waits lacks credit */
};

struct net_channel {
    uint64_t busy_until;
    uint64_t look;    /* time of the NET_LOOK that counts, or NET_NEVER */
    uint64_t queued;  /* ps that what waits will take */
    uint64_t busy;    /* ps that it was taken */
    uint32_t waiting; /* packets or messages in its virtual channels */
};

struct net_packet {
    uint64_t age;    /* when it could leave its host */
    uint64_t ready;  /* when it could leave where it is */
    uint64_t serial; /* the order in which packets left their hosts */
    uint32_t message, from, to, bytes;
    uint32_t channel;  /* by which it came; NET_NONE: the packet is free, and `to` is the next */
    uint32_t via;      /* dragonfly: a group on the way */
    uint8_t vc, next;  /* by which it came and will leave */
    uint8_t hops;      /* file: channels between switches; dragonfly: between groups */
    uint8_t dimension; /* torus: in which it moves */
    bool up, crossed;  /* torus: which way it moves; it has passed the dateline */
    uint32_t channels; /* by which it went */
    uint32_t number;   /* of its message's packets */
} __attribute__((aligned(64)));
_Static_assert(sizeof(struct net_packet) == 64, "a cache line");

struct net_transfer {
    struct net_message m;
    uint64_t sent, came; /* bytes */
    struct net_arrival arrival;
    uint64_t serial;
    uint32_t next;  /* index + 1: the next free one; of a pair's last, the next with its hash */
    uint32_t after; /* index + 1: the next one of its pair */
    bool behind;    /* one of its pair comes before it */
    bool here;      /* complete, but behind */
};

struct net {
    const struct net_graph *g;
    struct net_config c;
    struct net_hooks hooks;
    struct net_events events;
    uint64_t now;
    uint32_t vcs; /* of a channel */
    struct net_channel *channels;
    struct net_vc *vc; /* virtual channels of channel 0, of channel 1, ... */
    struct net_packet *packets;
    uint32_t packets_used, packets_free, packets_capacity; /* free: index + 1 */
    uint64_t packets_live;
    struct net_transfer *transfers;
    uint32_t transfers_used, transfers_free, transfers_capacity;
    struct net_credit *credits;
    uint32_t credits_used, credits_free, credits_capacity;
    uint32_t *pairs; /* hash of pairs: the last transfer, index + 1 */
    uint32_t pairs_slots, pairs_count;
    uint64_t serial;               /* of the next packet or message */
    uint64_t full_busy, full_tail; /* of a packet of the largest size */
    struct net_counts counts;
    uint32_t at; /* transfer that is dealt with */
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

/* A sum of times; too late a one is noted. */
static inline uint64_t net_add(struct net *n, uint64_t time, uint64_t more)
{
    uint64_t sum = time + more;
    if (sum > LOGGOPS_LAST) {
        n->overflow = true;
        return LOGGOPS_LAST;
    }
    return sum;
}

/* How long a packet of `bytes` takes a channel, and how far its last byte is behind its first. */
static inline uint64_t net_busy_of(const struct net *n, uint32_t bytes)
{
    return bytes == n->c.packet ? n->full_busy : charges_product(bytes, n->c.byte);
}

static inline uint64_t net_tail_of(const struct net *n, uint32_t bytes)
{
    return bytes == n->c.packet ? n->full_tail : charges_product(bytes - 1, n->c.byte);
}

/* How long a packet that comes to a channel now would wait, as far as is known. */
static inline uint64_t net_load(const struct net *n, uint32_t channel)
{
    const struct net_channel *ch = &n->channels[channel];
    return ch->queued + (ch->busy_until > n->now ? ch->busy_until - n->now : 0);
}

static inline bool net_wait_before(const struct net_wait *a, const struct net_wait *b)
{
    return a->age != b->age ? a->age < b->age : a->serial < b->serial;
}

/* net_wait_push() adds to what waits for a virtual channel; -1 if memory is short. net_wait_drop()
 * removes the first; net_wait_sink() puts the first where it belongs after its age grew. */
int net_wait_push(struct net_vc *vc, const struct net_wait *w);
void net_wait_drop(struct net_vc *vc);
void net_wait_sink(struct net_vc *vc);

/* net_route() chooses the channel by which a packet leaves switch `sw`, and its virtual channel. */
uint32_t net_route(const struct net *n, struct net_packet *p, uint32_t sw);

/* net_pair_join() puts a transfer behind the last of its pair; -1 if memory is short.
 * net_pair_leave() takes it out when it was delivered, and returns the next one + 1. */
int net_pair_join(struct net *n, uint32_t transfer);
uint32_t net_pair_leave(struct net *n, uint32_t transfer);

#endif
