/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of the SLMP engine, shared by its files:
 *
 *   slmp.c     the calls of slmp.h
 *   peer.c     peers, which of them have something to do, which packet leaves next
 *   room.c     places and memory, and who gives way when they are short
 *   session.c  how two peers come to a session, and how it ends
 *   tx.c       a channel's sending side: packets under way
 *   lost.c     which of them are lost: gaps, timeouts
 *   rx.c       a channel's receiving side: order, duplicates, acknowledgements
 *   plain.c    messages of plain peers, in both directions
 *   auth.c     with a job key: whose packets are taken, and once only
 *   cc.c       round trips, congestion window, pacing
 *   wire.c     packets as bytes
 *
 * A channel (struct slmp_flow) numbers its packets, not its bytes: a packet keeps its
 * number and its bytes when it is sent again. una and next bound what is under way:
 *
 *          una            next        edge         (of the peer)
 *   ─acked──┼──in the ring──┼──allowed──┼──not yet──      next - una <= window
 *
 * On the receiving side base <= cumulative <= top; slot i holds what is known of packet
 * number i modulo window:
 *
 *          base       cumulative        top     base + window
 *   ─taken──┼──all have come──┼──some have──┼──none────┼──refused──
 *                (some are held)
 *
 * A message of which a byte is missing has a packet in [base, base + window), so `window`
 * places are enough for messages that have begun.
 */
#ifndef FABRIC_SLMP_ENGINE_H
#define FABRIC_SLMP_ENGINE_H

#include "mac.h"
#include "slmp.h"
#include "wire.h"

/* Round trips and how fast to send (cc.c). Windows are in packets. */
struct slmp_cc {
    int64_t srtt, rttvar, rto; /* RFC 6298 */
    unsigned backoff;
    int64_t min_now, min_before; /* smallest round trip of this and the last period */
    int64_t period_end;
    double window, threshold, most;
    int64_t round_end, backed_off;
    uint32_t round_acked, round_lost;
    bool watching; /* packets lost are counted since a loss made the window smaller */
    uint32_t watch_acked, watch_lost;
    double window_before, lost_before; /* the window, and the share lost, before that loss */
    /* When a retransmission timeout last cut the congestion window to two packets; 0 if none has
     * since the last acknowledgement came. */
    int64_t collapsed_at;
    double window_collapsed;
    double line;  /* share of the packets that is lost whatever the window */
    int64_t next; /* when the next packet may leave */
    int64_t burst_begun;
    double burst; /* full packets of this burst that have left */
};

/* The time waited for a peer, question by question. Each question has a time in which the peer is
 * to answer it. If more than twice that time has gone by before the asker looks again, the asker
 * was stopped or its clock has jumped: it counts that time once only, since it was not listening,
 * and the answer may have come meanwhile. */
struct slmp_wait {
    int64_t asked, next; /* when the last question was put, and how soon after it the next is due */
    int64_t before;      /* and how long was waited after those before it */
};

static inline int64_t slmp_waited(const struct slmp_wait *w, int64_t now)
{
    int64_t gap = now - w->asked;
    return w->before + (gap > 2 * w->next ? w->next : gap);
}

static inline void slmp_wait_begin(struct slmp_wait *w, int64_t now, int64_t next)
{
    *w = (struct slmp_wait){.asked = now, .next = next};
}

static inline void slmp_wait_on(struct slmp_wait *w, int64_t now, int64_t next)
{
    *w = (struct slmp_wait){.before = slmp_waited(w, now), .asked = now, .next = next};
}

/* A packet under way: in the list of the flow that its state says. */
struct slmp_segment {
    struct list link;
    struct slmp_message *message;
    uint64_t offset;
    uint64_t order; /* of its last transmission among all of the flow */
    int64_t sent_at;
    uint32_t length, cut; /* `cut`: bytes of it that have left in pieces, this time */
    uint8_t state;
    uint32_t most; /* payload of the longest packet that it last left in */
    bool again;    /* was sent more than once */
};
enum { SEGMENT_ACKED, SEGMENT_FLIGHT, SEGMENT_LOST };

/* A packet that has come. */
struct slmp_held {
    uint64_t number; /* of its message */
    uint32_t offset, length, total;
    bool blank;
    uint32_t missing; /* units of it that have not come; only while its slot is not filled */
    size_t size;      /* of all this */
    uint8_t bytes[];  /* `length`; and while some are missing, a bit for each unit that is not */
};
struct slmp_slot {
    bool filled;
    struct slmp_held *held; /* it waits, or is not whole; NULL: it was taken */
};

struct slmp_flow {
    struct slmp_peer *peer;
    uint8_t channel;

    struct list queue;                  /* messages, the first of which is being cut */
    struct list flying;                 /* messages that are cut and not all acknowledged */
    struct slmp_segment *segments;      /* packet i is at i modulo window */
    uint64_t una, next, edge, messages; /* `messages`: the next one's number */
    struct list flight, lost;           /* segments, in order of transmission */
    uint32_t in_flight;
    uint64_t order, acked_order;
    int64_t acked_took;    /* how long the acknowledgement of that one took */
    int64_t rack_at;       /* when the oldest packet before it counts as lost; SLMP_NEVER */
    bool pto_sent;         /* the last packet was sent again since something was acknowledged */
    int64_t progress;      /* when something was acknowledged, or the timeout struck */
    int64_t probe_at;      /* the peer's window is closed: when to ask; SLMP_NEVER */
    bool probe;            /* the next acknowledgement wants an answer */
    unsigned in_vain;      /* timeouts since a packet as long as may be was acknowledged */
    unsigned unanswered;   /* timeouts and probes since the peer was heard */
    struct slmp_wait wait; /* how long was waited after those timeouts and probes */
    uint64_t retransmitted;
    struct slmp_cc cc;

    struct slmp_slot *slots;
    struct slmp_incoming *incoming; /* by message number modulo window */
    uint32_t incoming_active;
    uint64_t base, cumulative, top, begin; /* `begin`: the message that begins next */
    uint32_t held;
    bool begin_waits, data_waits; /* the application said SLMP_LATER */
    uint32_t unacked;             /* packets since the last acknowledgement */
    bool ack_now;
    int64_t ack_at;
    uint32_t stamp;  /* to echo; 0: none */
    uint32_t latest; /* stamp of all that have come; 0: none has */
    int64_t old_at;  /* when something old may be answered again */
    uint64_t told;   /* end of the window last told */
};

/* The parts of one message of a plain peer that have come: sorted, disjoint pieces. */
enum { SLMP_PLAIN_MESSAGES = 8, SLMP_PLAIN_PIECES = 64, SLMP_PLAIN_DONE = 64 };
struct slmp_pieces {
    struct slmp_incoming in;
    uint64_t end; /* SLMP_UNKNOWN until EOM has come */
    int64_t heard;
    unsigned count;
    struct {
        uint64_t first, end;
    } piece[SLMP_PLAIN_PIECES];
};
struct slmp_plain {
    struct slmp_pieces message[SLMP_PLAIN_MESSAGES];
    uint32_t done[SLMP_PLAIN_DONE]; /* ids of the last messages that are complete */
    unsigned done_count;
};

enum slmp_state {
    PEER_IDLE,    /* nothing agreed */
    PEER_HELLO,   /* asked whether it is one of us */
    PEER_OPENING, /* it is, and was sent OPEN */
    PEER_SESSION,
    PEER_PLAIN
};

/* A session's keys, and which of its packets have come: of the last SLMP_REPLAY numbers
 * below `top`, a bit each. One that is older is not taken. */
enum { SLMP_REPLAY = 4096, SLMP_SENT = 256 };
struct slmp_auth {
    struct slmp_session_key *out, *in;
    uint64_t number;          /* of the next packet that leaves */
    uint64_t sent[SLMP_SENT]; /* how the tags of the last ones began, by number */
    uint64_t top;             /* above all that have come */
    uint64_t seen[SLMP_REPLAY / 64];
};

struct slmp_peer {
    struct slmp *engine;
    struct list bucket, all, work;
    bool active; /* it is in the engine's list of those, by `work` */
    int64_t due; /* when to look at it again; see peer.c */
    int64_t touched;
    struct slmp_address address;
    enum slmp_state state;
    bool ending; /* its session is over: what is held is offered once more */
    void *user;
    struct slmp_source *source; /* of its session */
    int64_t heard;              /* when a packet of its session came last, or the session began */
    int64_t used;               /* when a message, or part of one, last went either way */
    bool asked;          /* whether it lives, since then, because room is short; see room.c */
    bool absent;         /* it did not answer, and is not asked any more */
    uint64_t generation; /* its nonces are made from it; another one for each session */
    uint64_t incarnation, nonce;
    uint32_t token_in, token_out; /* the token in the peer's packets, and in ours */
    uint32_t opening;             /* our token of the OPEN under way */
    uint32_t reset;               /* the token of a RESET which has come meanwhile; 0: none */
    uint64_t drawn;               /* with a key: what we drew for this exchange */
    struct slmp_auth *auth;       /* with a key: of the session */
    uint64_t opened_by;           /* the nonce of its OPEN that made the session; 0: ours did */
    uint32_t packet, path;        /* longest packet agreed on; that the path takes */
    uint32_t segment, window;     /* longest payload; packets it takes at first */
    int64_t raise_at;             /* when to try longer packets again; SLMP_NEVER */
    int64_t greet_at;
    unsigned greetings;
    struct slmp_wait greet_wait;
    struct slmp_flow flow[SLMP_CHANNELS];
    unsigned channels; /* from that one on none was used yet: nothing can be due there */
    struct slmp_plain *plain;
    struct list unacked; /* messages sent without acknowledgement */
    int64_t unacked_at;
    uint32_t plain_id;
    uint64_t dropped; /* packets of its sessions */
};

/* slmp_drop() counts a packet of a session that is not taken, by reason and peer. */
static inline void slmp_drop(struct slmp_peer *p, uint64_t *reason)
{
    ++*reason;
    p->dropped++;
}

/* When a path that took short packets only is tried with longer ones again. */
#define SLMP_RAISE_AFTER 60000000000LL

enum {
    SLMP_BUCKETS = 256,
    SLMP_REPLIES = 1024,
    SLMP_REPLY_ROOM = 80,
    SLMP_ANSWERS = 256,
    SLMP_FORGOTTEN = 1024
};

struct slmp_reply {
    struct slmp_address to;
    uint8_t length;
    uint8_t bytes[SLMP_REPLY_ROOM];
};

struct slmp {
    struct slmp_config config;
    struct slmp_upcalls up;
    struct slmp_counters counters;
    struct slmp_mac *mac; /* NULL without a key */
    bool inside; /* a call that holds peers is under way: none may be forgotten by upcalls */
    int64_t now;
    struct list bucket[SLMP_BUCKETS];
    struct list all, active; /* peers; those who have something to do, in turn */
    int64_t due;             /* nothing is before */
    uint32_t peers, burst;   /* `burst`: packets that the first one gave */
    uint64_t drawn;          /* secrets */
    struct list sources;
    uint32_t others; /* sessions of SLMP_OTHERS */
    size_t held;
    /* Peers that were, by a keyed hash of their address: what nonces of strangers are made from,
     * so that an OPEN of one that was forgotten opens nothing, and those of others stay good. */
    uint32_t forgotten[SLMP_FORGOTTEN];
    struct slmp_reply reply[SLMP_REPLIES]; /* a ring */
    unsigned reply_first, reply_count;
    int64_t answer_due[SLMP_ANSWERS]; /* of answers to strangers; see session.c */
};

/* slmp.c */
void slmp_reply(struct slmp *, const struct slmp_address *, struct slmp_wire *);
void slmp_reply_bytes(struct slmp *, const struct slmp_address *, const uint8_t *bytes,
                      size_t length);

static inline const struct slmp_config *slmp_flow_config(const struct slmp_flow *f)
{
    return &f->peer->engine->config;
}

/* Whether it is a plain peer's. */
static inline bool slmp_flow_plain(const struct slmp_flow *f)
{
    return f->peer->state == PEER_PLAIN;
}

/* slmp_peer_flow() takes a channel into use. */
static inline struct slmp_flow *slmp_peer_flow(struct slmp_peer *p, unsigned channel)
{
    p->channels = p->channels > channel ? p->channels : channel + 1;
    return &p->flow[channel];
}

/* The packet number of a segment: the ring says its low bits, una the rest. */
static inline uint64_t slmp_sequence(const struct slmp_flow *f, const struct slmp_segment *s)
{
    uint64_t mask = slmp_flow_config(f)->window - 1;
    return f->una + (((uint64_t)(s - f->segments) - f->una) & mask);
}

static inline struct slmp_segment *slmp_last_segment(const struct list *l)
{
    return list_empty(l) ? NULL : container_of(l->prev, struct slmp_segment, link);
}

static inline int64_t slmp_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The number near `near` that ends in `low`. */
static inline uint64_t slmp_widen(uint64_t near, uint32_t low)
{
    return near + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)near);
}

#endif
