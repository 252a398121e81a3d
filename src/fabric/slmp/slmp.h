/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMP: messages over datagrams, as an engine that acts only in its calls.
 *
 *      slmp_send ──►┌────────┐──► slmp_output     packets for the network
 *     slmp_input ──►│ engine │──► upcalls         messages that come, messages that have left
 *   slmp_advance ──►└────────┘──► slmp_deadline   when it must be called next
 *
 * The engine has no socket, no clock, no thread and no random numbers of its own:
 * equal calls give equal packets. Times are nanoseconds of one clock of the caller's; if
 * that goes back, the engine takes it as standing still.
 *
 * docs/slmp.md has the packets. A message to any other SLMP peer is sent as in the paper;
 * two engines of this project agree in their first exchange on a session, in which
 *
 *  - a message arrives exactly once while both live; `sent` reports SLMP_UNDELIVERABLE
 *    when that is not known ("at most once"). A peer that waits for an answer notices the other's
 *    death; idle peers send nothing to each other while there is room (room.c);
 *  - messages of one channel begin in the order in which they were sent; their packets
 *    come in any order, or, with config.ordered, in that of their offsets;
 *  - a channel waits for no other: each has a window and buffers of its own;
 *  - buffers are bounded: by config.window packets of each channel and direction, and
 *    config.held_max bytes altogether.
 *
 * Packets may be hostile: one that is not understood only increments a counter. With config.key
 * each packet has a tag that only holders of the key can make, and is taken once; without it, an
 * attacker that can see packets can forge others.
 *
 * Threads: calls of one engine exclude each other; engines know nothing of each other.
 * slmp_input, slmp_advance, slmp_resume, slmp_lost and slmp_close make upcalls. slmp_send and
 * slmp_contact may, too, if another peer gives way: `closed` of that peer, and the ends of its
 * messages. An upcall may call slmp_send only, and from slmp_close nothing; `opened` may also call
 * slmp_leave() for its session, which queues a packet and changes no state.
 */
#ifndef FABRIC_SLMP_H
#define FABRIC_SLMP_H

#include "base/list.h"
#include "key.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

enum {
    SLMP_PORT = 9330,       /* the port of the FPsPIN prototype */
    SLMP_CHANNELS = 3,      /* channels of a session */
    SLMP_HEADER = 10,       /* bytes of the header of the paper */
    SLMP_OVERHEAD = 44,     /* bytes before the payload in a session, without ranges */
    SLMP_HEADER_ROOM = 208, /* the longest packet without payload */
    SLMP_PACKET_MIN = 128,
    SLMP_PACKET_MAX = 65507, /* the longest UDP payload */
    SLMP_WINDOW_MAX = 32768
};

#define SLMP_LENGTH_MAX UINT32_MAX /* longest message, as offsets have 32 bits */
#define SLMP_UNKNOWN UINT64_MAX    /* length of a message of a plain peer that is not complete */
#define SLMP_NEVER INT64_MAX

struct slmp;
struct slmp_packet;
struct slmp_peer;

/* An address is two numbers, which the engine only compares. */
struct slmp_address {
    uint32_t ip; /* host byte order, as port */
    uint16_t port;
};

static inline bool slmp_address_equal(const struct slmp_address *a, const struct slmp_address *b)
{
    return a->ip == b->ip && a->port == b->port;
}

enum slmp_mode {
    SLMP_AUTO,  /* sessions with engines of this project, plain SLMP with other peers */
    SLMP_PLAIN, /* only plain SLMP */
    SLMP_OWN    /* only sessions: packets of plain peers are refused */
};

struct slmp_config {
    enum slmp_mode mode;
    uint64_t incarnation;  /* random; a new one for each start of a process */
    uint64_t secret;       /* random; nonces and tokens are made from it */
    uint32_t packet_size;  /* longest packet, SLMP_PACKET_MIN to SLMP_PACKET_MAX */
    uint32_t window;       /* packets of a channel that may be under way; a power of two from 16 */
    uint32_t plain_window; /* the same for a plain peer, and fixed; 1 to window */
    uint32_t peers_max;    /* peers known at once */
    /* bytes of packets that may be held because they cannot be delivered yet */
    size_t held_max;
    int64_t rto_initial, rto_min, rto_max;
    int64_t silence;   /* a peer that should answer is dead after so long without a packet */
    int64_t ack_delay; /* how long an acknowledgement may wait for data to be sent with */
    int64_t target;    /* queueing delay that congestion control allows; see cc.c */
    bool cover;        /* checksums of a session cover the payload, too */
    bool ordered;      /* packets of a message are delivered in order, in sessions */
    /* The key of the job, which the engine copies, or NULL. With a key the engine speaks only to
     * peers that have it, so `mode` is SLMP_OWN, and refuses packets that were sent to another
     * address than `self`: the address at which others reach this engine, 0 where it is unknown. */
    const struct slmp_key *key;
    struct slmp_address self;
};

/* slmp_defaults() returns a configuration for ordinary Ethernet; the caller sets `incarnation` and
 * `secret`. */
struct slmp_config slmp_defaults(void);

enum slmp_status {
    /* sent: all bytes are in the peer's memory; done: the message is complete */
    SLMP_OK,
    SLMP_UNDELIVERABLE, /* sent: may or may not have arrived; done: the rest will not come */
};

/* How a message is sent. */
enum slmp_way {
    SLMP_RELIABLE, /* each packet is acknowledged */
    /* to a plain peer: only the first and the last packet are acknowledged; the others leave `gap`
     * apart */
    SLMP_ENDS,
    SLMP_UNACKED /* no packet is acknowledged: `sent` reports that all have left */
};

/* One message to send. The caller fills in the first part, and lends the struct and the bytes to
 * the engine until the upcall `sent`. */
struct slmp_message {
    struct slmp_address to;
    uint8_t channel; /* below SLMP_CHANNELS; ignored by plain SLMP, which has no channels */
    enum slmp_way way;
    int64_t gap;                       /* SLMP_ENDS, SLMP_UNACKED: nanoseconds between packets */
    const void *head, *body;           /* the message is the bytes of head, then those of body */
    uint64_t head_length, body_length; /* together at most SLMP_LENGTH_MAX */
    /* Not NULL: the engine calls it for the bytes of a packet; it sets the parts, which are lent
     * until the packet has left. False: the bytes cannot be read; in a session the packet then
     * carries zeros, and is marked so. */
    bool (*fill)(struct slmp_message *, uint64_t offset, uint32_t length, struct slmp_packet *);

    struct list link; /* from here on for the engine's use */
    uint64_t number;
    uint64_t cut;     /* bytes that were made into packets */
    uint32_t segment; /* bytes of each packet but the last */
    uint32_t pending; /* packets that are not acknowledged */
    bool whole;       /* all of it was cut */
    bool begun;       /* a packet of it was acknowledged */
};

/* One message that is coming. The engine owns it; it is valid from `begin` to the end of `done`. */
struct slmp_incoming {
    struct slmp_address from;
    struct slmp_peer *peer;
    /* 0, 1, 2 ... in a channel of a session; of a plain peer the id in its packets */
    uint64_t number;
    uint64_t length; /* SLMP_UNKNOWN until `done` if the peer is plain */
    uint8_t channel;
    bool plain;
    bool blank; /* the sender could not read the bytes that come now, nor those that follow */
    void *user; /* for the caller's use */

    bool active, waiting; /* from here on for the engine's use */
    uint64_t received;
};

enum slmp_step {
    SLMP_GO, /* the packet was taken */
    /* the packet cannot be taken now: the engine keeps it, and slmp_resume() offers it again */
    SLMP_LATER
};

/* The standing of a source of peers. Sessions of one source share places and memory. A source of
 * lower standing gives way to one of higher standing, and never the other way round. */
enum slmp_standing {
    SLMP_OTHERS,   /* certainly of another user: half of the places at most */
    SLMP_ANYBODYS, /* of an unknown user */
    SLMP_OURS
};
struct slmp_whose {
    uint64_t name; /* of the source; UINT64_MAX is not allowed */
    enum slmp_standing standing;
};

/* The engine calls all of these with `context`. Only the last three may be NULL. */
struct slmp_upcalls {
    void *context;
    /* A session with the peer has begun, or has ended. Each incarnation of a process is a new peer:
     * `closed` comes between two, after all messages of the first were given back. */
    void (*opened)(void *context, struct slmp_peer *, const struct slmp_address *,
                   uint64_t incarnation);
    void (*closed)(void *context, struct slmp_peer *, const struct slmp_address *);
    /* A message begins. `first` is its first packet, which `data` then delivers, too; of a plain
     * peer it is the packet that has come first, whatever its offset. */
    enum slmp_step (*begin)(void *context, struct slmp_incoming *, const void *first,
                            size_t length);
    /* Delivers bytes of a message, each byte once. They are in the memory passed to slmp_input, or
     * in the engine's, and valid only during the call. */
    enum slmp_step (*data)(void *context, struct slmp_incoming *, uint64_t offset,
                           const void *bytes, size_t length);
    /* All bytes of a message were delivered; or no more will be. */
    void (*done)(void *context, struct slmp_incoming *, enum slmp_status);
    /* The engine gives a message back to the caller. */
    void (*sent)(void *context, struct slmp_message *, enum slmp_status);
    /* A peer greets in another version of sessions, so there will be no session. With a key it has
     * proved to have that. */
    void (*version)(void *context, const struct slmp_address *, unsigned theirs, unsigned ours);
    /* Returns the source of an address that is about to get a session. NULL: each IP address is a
     * source. */
    struct slmp_whose (*whose)(void *context, const struct slmp_address *);
    /* Whether the user of the engine waits for a peer, or has a message of it in progress: then the
     * engine does not end the peer's session to make room for another. NULL is like a function that
     * returns false. */
    bool (*busy)(void *context, struct slmp_peer *);
};

/* slmp_version_text() returns a line for the upcall `version`, with the remedy. */
struct reason slmp_version_text(const struct slmp_address *, unsigned theirs, unsigned ours);

/* slmp_open() makes an engine, and copies the upcalls. NULL: memory is short, the configuration is
 * not possible, or there is a key and libcrypto.so.3 cannot be used; `why` says which, and the
 * remedy. */
struct slmp *slmp_open(const struct slmp_config *, const struct slmp_upcalls *, struct reason *why);

/* slmp_close() ends all messages as SLMP_UNDELIVERABLE, and frees the engine. It tells the peers
 * nothing. */
void slmp_close(struct slmp *);

/* slmp_send() takes a message. 0; or an error, and the message is not taken: -EMSGSIZE (longer than
 * SLMP_LENGTH_MAX), -EINVAL (no such channel), -EPERM (without acknowledgements it would go plain,
 * which a key forbids), -ENOMEM or -ENOBUFS (config.peers_max peers are known and busy). */
int slmp_send(struct slmp *, int64_t now, struct slmp_message *);

/* slmp_lengthen() makes the body of a message `more` bytes longer, after slmp_send(). False: some
 * of the message has left, or it has `fill`, or is sent without acknowledgements. */
bool slmp_lengthen(struct slmp_message *, uint64_t more);

/* slmp_contact() begins a session without a message, if there is none. If the exchange is under way
 * already, the next greeting leaves within config.rto_initial, for however long no answer has come.
 * Returns as slmp_send(). */
int slmp_contact(struct slmp *, int64_t now, const struct slmp_address *);

/* slmp_leave() tells a peer that its session is over. The caller then sends the packets of
 * slmp_output(), and closes the engine. */
void slmp_leave(struct slmp *, struct slmp_peer *);

/* slmp_lost() ends the session with a peer that the caller knows to be dead, or the exchange for
 * one; the next message begins a new exchange. */
void slmp_lost(struct slmp *, int64_t now, struct slmp_peer *);

/* slmp_ask() asks a peer whether it lives, for a caller that waits for more than acknowledgements:
 * a peer that stays silent for too long is dead. */
void slmp_ask(struct slmp *, int64_t now, struct slmp_peer *);

/* slmp_input() takes one packet. True: it was of a session with its sender; that is proved if there
 * is a key, else it is what the packet claims. */
bool slmp_input(struct slmp *, int64_t now, const struct slmp_address *from, const void *packet,
                size_t length);

/* One packet to send: its header, with a short payload behind that, and up to two parts of lent
 * memory. These are valid until the next call of the engine, other than slmp_output and
 * slmp_path. */
struct slmp_packet {
    struct slmp_address to;
    uint16_t header_length;
    uint8_t parts;
    struct iovec part[2];
    uint32_t length; /* bytes of the whole packet */
    uint8_t header[SLMP_HEADER_ROOM];
};

/* slmp_output() returns the next packet to send; false if none is due. */
bool slmp_output(struct slmp *, int64_t now, struct slmp_packet *);

/* slmp_advance() does the work that the clock makes due; the caller then calls slmp_output(). */
void slmp_advance(struct slmp *, int64_t now);

/* slmp_deadline() returns when slmp_advance() or slmp_output() will have work, unless something
 * happens earlier. A time in the past means now, SLMP_NEVER never. */
int64_t slmp_deadline(const struct slmp *);

/* slmp_resume() offers again the packets of a peer's channel that were answered by SLMP_LATER. */
void slmp_resume(struct slmp *, int64_t now, struct slmp_peer *, unsigned channel);

/* slmp_known() returns the peer at an address, NULL if there is none. It is valid until its
 * `closed`; if it has no session, until the next call. */
struct slmp_peer *slmp_known(const struct slmp *, const struct slmp_address *);

/* slmp_path() sets how long packets to an address may be, as the system has reported. Packets that
 * are longer and under way leave in pieces if they are sent again; longer packets are tried after a
 * minute. A path that silently drops long packets is found without this call. */
void slmp_path(struct slmp *, int64_t now, const struct slmp_address *, uint32_t longest);

/* slmp_peer_set_user() stores a pointer of the caller with a peer; NULL at first. slmp_ending() is
 * true while a session that has ended offers its held packets a last time. */
void slmp_peer_set_user(struct slmp_peer *, void *user);
void *slmp_peer_user(const struct slmp_peer *);
bool slmp_ending(const struct slmp_peer *);

/* slmp_incomplete() says whether packets of a session are missing, behind which others have
 * come. */
bool slmp_incomplete(const struct slmp_peer *);

/* slmp_flush() makes acknowledgements that wait for data due at once. */
void slmp_flush(struct slmp *);

/* Counts since the engine was opened. */
struct slmp_counters {
    uint64_t packets_in, packets_out;
    uint64_t messages_in, messages_out; /* complete, or acknowledged */
    uint64_t bytes_in, bytes_out;       /* payload, each byte once */
    uint64_t retransmitted, timeouts;
    uint64_t duplicates;
    /* packets that were dropped, by reason: */
    uint64_t malformed; /* too short or long, impossible fields */
    uint64_t corrupt;   /* wrong checksum */
    uint64_t version;   /* in a version that this engine does not speak */
    uint64_t stale;     /* of a session that has ended, or does not exist */
    uint64_t beyond;    /* beyond the window */
    uint64_t refused;   /* plain, where sessions are required, or the other way round */
    uint64_t no_room;   /* no memory to hold it, or no place for its peer or message */
    uint64_t unsent;    /* answers that were dropped: the queue was full, or they were too many */
    uint64_t forged;    /* with a key: no tag, a wrong one, or sent to another address */
    uint64_t replayed;  /* with a key: the number has come already, or is too old */
    uint64_t shortened; /* times that a path seemed to drop long packets */
};
const struct slmp_counters *slmp_counters(const struct slmp *);

/* slmp_held() returns how many bytes of packets are held, for SLMP_LATER or because others are
 * missing. */
size_t slmp_held(const struct slmp *);

/* The state of one peer. */
struct slmp_peer_info {
    bool known, session, plain;
    bool answered; /* an exchange is under way, and the peer has answered */
    uint64_t incarnation;
    int64_t heard; /* when a packet of its session last came, or the session began */
    int64_t rtt;   /* smoothed round trip; 0: not measured */
    int64_t rto;
    uint32_t window;  /* congestion window of channel 0, in packets */
    uint32_t flight;  /* packets under way */
    uint32_t segment; /* bytes of payload in a full packet */
    uint64_t retransmitted;
    uint64_t dropped; /* packets of its sessions that were dropped, for any reason */
};
struct slmp_peer_info slmp_peer_info(const struct slmp *, const struct slmp_address *);

#endif
