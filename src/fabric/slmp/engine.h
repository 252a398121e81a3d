/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The inside of the SLMP engine, shared by its files:
 *
 *   slmp.c     the calls of slmp.h
 *   peer.c     peers, those with work to do, and the next packet to send
 *   room.c     places and memory, and which sessions give way when these are short
 *   session.c  how two peers come to a session, and how it ends
 *   tx.c       a channel's sending side: packets under way
 *   lost.c     which of them are lost: gaps, timeouts
 *   rx.c       a channel's receiving side: order, duplicates, acknowledgements
 *   plain.c    messages of plain peers, in both directions
 *   auth.c     with a job key: which packets are taken, and each only once
 *   cc.c       round trips, congestion window, pacing
 *   wire.c     packets as bytes
 *
 * A channel (struct slmp_flow) numbers its packets, not its bytes: a packet keeps its
 * number and its bytes when it is sent again. una and next bound the packets under way:
 *
 *          una            next        edge         (of the peer)
 *   ─acked──┼──in the ring──┼──allowed──┼──not yet──      next - una <= window
 *
 * On the receiving side base <= cumulative <= top; packet number i has slot i modulo window:
 *
 *          base       cumulative        top     base + window
 *   ─taken──┼──all have come──┼──some have──┼──none────┼──refused──
 *                (some are held)
 *
 * A message that is not complete has a packet in [base, base + window), so `window` places are
 * enough for all messages that have begun.
 */
#ifndef FABRIC_SLMP_ENGINE_H
#define FABRIC_SLMP_ENGINE_H

#include "mac.h"
#include "slmp.h"
#include "wire.h"

/* State of congestion control (cc.c). Windows are in packets. */
struct slmp_cc {
    int64_t srtt, rttvar, rto; /* RFC 6298 */
    unsigned backoff;
    int64_t min_now, min_before; /* the smallest round trip of this period and of the last */
    int64_t period_end;
    double window, threshold, most;
    int64_t round_end, backed_off;
    uint32_t round_acked, round_lost;
    /* an experiment goes on: lost packets are counted since a loss has cut the window */
    bool watching;
    uint32_t watch_acked, watch_lost;
    /* the window, and the share of packets lost, before that cut */
    double window_before, lost_before;
    /* When a retransmission timeout last cut the congestion window to two packets; 0 if none has
     * since the last acknowledgement came. */
    int64_t collapsed_at;
    double window_collapsed;
    double line;  /* share of packets that is lost for other reasons than load */
    int64_t next; /* when the next packet may leave */
    int64_t burst_begun;
    double burst; /* packets of this burst that have left, in full ones */
};

/* The time spent waiting for a peer, question by question. Each question gives the peer some time
 * to answer. If more than twice that time has passed before the engine looks again, the process was
 * stopped or the clock has jumped: the time then counts only once, since the engine did not listen,
 * and the answer may have come meanwhile. */
struct slmp_wait {
    /* when the last question was asked, and how long after it the next one is due */
    int64_t asked, next;
    int64_t before; /* time waited after the questions before the last */
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

/* A packet under way. It is in the flow's list for its state. */
struct slmp_segment {
    struct list link;
    struct slmp_message *message;
    uint64_t offset;
    uint64_t order; /* number of its last transmission, among all of the flow */
    int64_t sent_at;
    uint32_t length, cut; /* `cut`: bytes that have left in pieces, in the current transmission */
    uint8_t state;
    uint32_t most; /* payload of the longest packet or piece in its last transmission */
    bool again;    /* it was sent more than once */
};
enum { SEGMENT_ACKED, SEGMENT_FLIGHT, SEGMENT_LOST };

/* A packet that has come and is held. */
struct slmp_held {
    uint64_t number; /* number of its message */
    uint32_t offset, length, total;
    bool blank;
    /* units of it that have not come yet, while it is being put together from pieces */
    uint32_t missing;
    size_t size; /* bytes of memory of this struct */
    /* `length` bytes; while units are missing, then one bit for each unit that has come */
    uint8_t bytes[];
};
struct slmp_slot {
    bool filled;
    struct slmp_held *held; /* the packet waits, or is not whole; NULL: it was taken */
};

struct slmp_flow {
    struct slmp_peer *peer;
    uint8_t channel;

    struct list queue; /* messages, the first of which is being cut into packets */
    /* messages that are cut into packets, but not all acknowledged */
    struct list flying;
    struct slmp_segment *segments;      /* packet i is at i modulo window */
    uint64_t una, next, edge, messages; /* `messages`: number of the next message */
    /* segments, in order of transmission; those lost in order of their numbers */
    struct list flight, lost;
    uint32_t in_flight;
    uint64_t order, acked_order;
    int64_t acked_took; /* how long the acknowledgement of that packet took */
    int64_t rack_at;    /* when the oldest packet before it counts as lost; or SLMP_NEVER */
    /* since the last acknowledgement of something new, the last packet was sent again */
    bool pto_sent;
    int64_t progress;      /* when something new was last acknowledged, or the timeout expired */
    int64_t probe_at;      /* while the peer's window is closed: when to ask; or SLMP_NEVER */
    bool probe;            /* the next acknowledgement that leaves asks for an answer */
    unsigned in_vain;      /* timeouts since a packet of full length was acknowledged */
    unsigned unanswered;   /* timeouts and probes since a packet of the peer came */
    struct slmp_wait wait; /* time waited after those timeouts and probes */
    uint64_t retransmitted;
    struct slmp_cc cc;

    struct slmp_slot *slots;
    struct slmp_incoming *incoming; /* by message number modulo window */
    uint32_t incoming_active;
    uint64_t base, cumulative, top, begin; /* `begin`: number of the message that begins next */
    uint32_t held;
    bool begin_waits, data_waits; /* the application has returned SLMP_LATER */
    uint32_t unacked;             /* packets received since the last acknowledgement left */
    bool ack_now;
    int64_t ack_at;
    uint32_t stamp;  /* the stamp to echo; 0: none */
    uint32_t latest; /* the latest stamp of all packets that have come; 0: none has */
    int64_t old_at;  /* when an old packet may be answered again */
    uint64_t told;   /* end of the window that the peer was told last */
};

/* One message of a plain peer: the pieces that have come, sorted and disjoint. */
enum { SLMP_PLAIN_MESSAGES = 8, SLMP_PLAIN_PIECES = 64, SLMP_PLAIN_DONE = 64 };
struct slmp_pieces {
    struct slmp_incoming in;
    uint64_t end; /* SLMP_UNKNOWN until a packet with EOM has come */
    int64_t heard;
    unsigned count;
    struct {
        uint64_t first, end;
    } piece[SLMP_PLAIN_PIECES];
};
struct slmp_plain {
    struct slmp_pieces message[SLMP_PLAIN_MESSAGES];
    uint32_t done[SLMP_PLAIN_DONE]; /* ids of the last complete messages */
    unsigned done_count;
};

enum slmp_state {
    PEER_IDLE,    /* no session, and none is being agreed on */
    PEER_HELLO,   /* sent a hello, to find out whether the peer is an engine like this one */
    PEER_OPENING, /* it is, and was sent OPEN */
    PEER_SESSION,
    PEER_PLAIN
};

/* A session's keys, and its replay window: one bit for each of the last SLMP_REPLAY numbers below
 * `top`. A packet with an older number is refused. */
enum { SLMP_REPLAY = 4096, SLMP_SENT = 256 };
struct slmp_auth {
    struct slmp_session_key *out, *in;
    uint64_t number;          /* of the next packet to be sent */
    uint64_t sent[SLMP_SENT]; /* the first bytes of the tags of the last packets sent, by number */
    uint64_t top;             /* above all numbers that have come */
    uint64_t seen[SLMP_REPLAY / 64];
};

struct slmp_peer {
    struct slmp *engine;
    struct list bucket, all, work;
    bool active; /* in the engine's list `active`, by `work` */
    int64_t due; /* when the peer must be looked at again; see peer.c */
    int64_t touched;
    struct slmp_address address;
    enum slmp_state state;
    bool ending; /* its session ends: packets that are held are offered a last time */
    void *user;
    struct slmp_source *source; /* the source that its session belongs to */
    int64_t heard;              /* when a packet of its session last came, or the session began */
    int64_t used;               /* when a message, or a part of one, last left or came */
    bool asked;                 /* was asked whether it lives, since room is short; see room.c */
    bool absent;                /* has not answered that, and is not asked any more */
    uint64_t generation;        /* changes with each session; the peer's nonces are made from it */
    uint64_t incarnation, nonce;
    uint32_t token_in, token_out; /* tokens: in packets of the peer; in packets to it */
    uint32_t opening;             /* the token that this engine has offered in its OPEN */
    uint32_t reset;               /* token of a RESET that has come meanwhile; 0: none */
    uint64_t drawn;               /* with a key: random number of this engine for the exchange */
    struct slmp_auth *auth;       /* with a key: state of the session */
    /* nonce of the peer's OPEN that has begun the session; 0: this engine's OPEN has */
    uint64_t opened_by;
    uint32_t packet, path; /* longest packet agreed on; longest one that the path takes */
    /* longest payload; window of the peer at the beginning, in packets */
    uint32_t segment, window;
    int64_t raise_at; /* when longer packets are tried again; or SLMP_NEVER */
    int64_t greet_at;
    unsigned greetings;
    struct slmp_wait greet_wait;
    struct slmp_flow flow[SLMP_CHANNELS];
    unsigned channels; /* channels from this one on are unused, so nothing is due there */
    struct slmp_plain *plain;
    struct list unacked; /* messages that are sent without acknowledgement */
    int64_t unacked_at;
    uint32_t plain_id;
    uint64_t dropped; /* packets of its sessions that were dropped */
};

/* slmp_drop() counts a packet of a session that is dropped, for the given reason and for the
 * peer. */
static inline void slmp_drop(struct slmp_peer *p, uint64_t *reason)
{
    ++*reason;
    p->dropped++;
}

/* When longer packets are tried again on a path that has dropped them. */
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
    struct slmp_mac *mac; /* NULL: there is no key */
    bool inside;          /* a call that uses peers is in progress: an upcall may not free any */
    int64_t now;
    struct list bucket[SLMP_BUCKETS];
    struct list all, active; /* all peers; those with work, in turn */
    int64_t due;             /* no peer has work due before this */
    uint32_t peers, burst;   /* `burst`: packets in a row of the first active peer */
    uint64_t drawn;          /* count of the secret numbers made */
    struct list sources;
    uint32_t others; /* sessions with standing SLMP_OTHERS */
    size_t held;
    /* Generations of peers that were freed, by a keyed hash of their address. The nonces of
     * strangers are made from them: so an old OPEN of a freed peer opens no session, and the nonces
     * of other strangers stay valid. */
    uint32_t forgotten[SLMP_FORGOTTEN];
    struct slmp_reply reply[SLMP_REPLIES]; /* a ring of answers to be sent */
    unsigned reply_first, reply_count;
    int64_t answer_due[SLMP_ANSWERS]; /* when answers to strangers may leave again; see session.c */
};

/* slmp.c */
void slmp_reply(struct slmp *, const struct slmp_address *, struct slmp_wire *);
void slmp_reply_bytes(struct slmp *, const struct slmp_address *, const uint8_t *bytes,
                      size_t length);

static inline const struct slmp_config *slmp_flow_config(const struct slmp_flow *f)
{
    return &f->peer->engine->config;
}

/* Whether the flow is that of a plain peer. */
static inline bool slmp_flow_plain(const struct slmp_flow *f)
{
    return f->peer->state == PEER_PLAIN;
}

/* slmp_peer_flow() returns a channel, and takes it into use. */
static inline struct slmp_flow *slmp_peer_flow(struct slmp_peer *p, unsigned channel)
{
    p->channels = p->channels > channel ? p->channels : channel + 1;
    return &p->flow[channel];
}

/* Returns the packet number of a segment: its place in the ring gives the low bits, una the
 * rest. */
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

/* Returns the number with these low 32 bits that is nearest to `near`. */
static inline uint64_t slmp_widen(uint64_t near, uint32_t low)
{
    return near + (uint64_t)(int64_t)(int32_t)(low - (uint32_t)near);
}

#endif
