/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMP: messages over datagrams, as an engine that does nothing by itself.
 *
 *      slmp_send ──►┌────────┐──► slmp_output     packets for the network
 *     slmp_input ──►│ engine │──► upcalls         messages that come, messages that are done
 *   slmp_advance ──►└────────┘──► slmp_deadline   when it wants to be called next
 *
 * The engine has no socket, no clock, no thread and no random numbers of its own:
 * equal calls give equal packets. Times are nanoseconds of one clock of the caller's;
 * one that goes back is taken for standing still.
 *
 * docs/slmp.md has the packets. Towards any SLMP peer a message is sent as the paper
 * says; two engines of this project agree in their first exchange on a session, in which
 *
 *  - a message arrives exactly once while both live; `sent` says SLMP_UNDELIVERABLE when
 *    that is not known ("at most once"). Death is noticed by who waits for an answer;
 *    between idle peers nothing is sent while there is room for others (room.c);
 *  - messages of one channel begin in the order in which they were sent; their packets
 *    come in any order, or, with config.ordered, in that of their offsets;
 *  - a channel waits for no other: each has a window and buffers of its own;
 *  - buffers are bounded: by config.window packets of each channel and direction, and
 *    config.held_max bytes altogether.
 *
 * Whatever arrives may be hostile: what is not understood costs a counter, no more. With
 * config.key every packet bears a tag that only who has the key can make, and is taken
 * once; without, who can see packets can forge them.
 *
 * Threads: calls of one engine exclude each other; engines know nothing of each other.
 * Upcalls come out of slmp_input, slmp_advance, slmp_resume, slmp_lost and slmp_close; `closed`
 * of a peer that gives way, and what ends with it, also out of slmp_send and slmp_contact.
 * They may call slmp_send and nothing else, and not even that from slmp_close; `opened` also
 * slmp_leave() of the session that it is told of, which queues a packet and changes no state.
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
    SLMP_PORT = 9330,       /* that of the FPsPIN prototype */
    SLMP_CHANNELS = 3,      /* of one session */
    SLMP_HEADER = 10,       /* bytes of the header of the paper */
    SLMP_OVERHEAD = 44,     /* bytes before the payload in a session, without ranges */
    SLMP_HEADER_ROOM = 208, /* the longest packet without payload */
    SLMP_PACKET_MIN = 128,
    SLMP_PACKET_MAX = 65507, /* of a UDP payload */
    SLMP_WINDOW_MAX = 32768
};

#define SLMP_LENGTH_MAX UINT32_MAX /* of a message, as the offset's 32 bits have it */
#define SLMP_UNKNOWN UINT64_MAX    /* length of a message that a plain peer has begun */
#define SLMP_NEVER INT64_MAX

struct slmp;
struct slmp_packet;
struct slmp_peer;

/* An address is two numbers to the engine, which compares them. */
struct slmp_address {
    uint32_t ip; /* host byte order, as port */
    uint16_t port;
};

static inline bool slmp_address_equal(const struct slmp_address *a, const struct slmp_address *b)
{
    return a->ip == b->ip && a->port == b->port;
}

enum slmp_mode {
    SLMP_AUTO,  /* sessions with our own, plain SLMP with others */
    SLMP_PLAIN, /* nothing but plain SLMP */
    SLMP_OWN    /* nothing but sessions: packets of plain peers are refused */
};

struct slmp_config {
    enum slmp_mode mode;
    uint64_t incarnation;  /* random; another for each start of a process */
    uint64_t secret;       /* random; from it come the nonces and tokens */
    uint32_t packet_size;  /* longest packet, SLMP_PACKET_MIN to SLMP_PACKET_MAX */
    uint32_t window;       /* packets of a channel under way; a power of two from 16 */
    uint32_t plain_window; /* the same towards a plain peer, fixed; 1 to window */
    uint32_t peers_max;    /* peers known at once */
    size_t held_max;       /* bytes of packets kept because they cannot be delivered yet */
    int64_t rto_initial, rto_min, rto_max;
    int64_t silence;   /* so long nothing from a peer that should answer: it is dead */
    int64_t ack_delay; /* longest wait of an acknowledgement for data to ride on */
    int64_t target;    /* queueing delay that congestion control allows, see cc.c */
    bool cover;        /* checksums of a session cover the payload as well */
    bool ordered;      /* packets of a message are delivered in order, in sessions */
    /* The key of the job, which the engine copies, or NULL. With a key the engine speaks only to
     * peers that have it, so `mode` is SLMP_OWN, and refuses packets that were sent to another
     * address than `self`: the address at which others reach this engine, 0 where it is unknown. */
    const struct slmp_key *key;
    struct slmp_address self;
};

/* slmp_defaults() gives a configuration for ordinary Ethernet; `incarnation` and
 * `secret` are still the caller's to set. */
struct slmp_config slmp_defaults(void);

enum slmp_status {
    SLMP_OK,            /* sent: all is in the peer's memory; done: delivered */
    SLMP_UNDELIVERABLE, /* sent: may or may not have arrived; done: the rest will not come */
};

/* How a message is sent. */
enum slmp_way {
    SLMP_RELIABLE, /* every packet is acknowledged */
    SLMP_ENDS,     /* plain peers: the first and the last; the others keep the gap */
    SLMP_UNACKED   /* none, whoever the peer is: `sent` says that all have left */
};

/* One message to send. The caller fills the first part and lends the struct and the
 * bytes to the engine until the upcall `sent`. */
struct slmp_message {
    struct slmp_address to;
    uint8_t channel; /* below SLMP_CHANNELS; plain SLMP has no channels and forgets it */
    enum slmp_way way;
    int64_t gap;             /* SLMP_ENDS, SLMP_UNACKED: nanoseconds from packet to packet */
    const void *head, *body; /* the message is the head and then the body */
    uint64_t head_length, body_length; /* of both together SLMP_LENGTH_MAX at most */
    /* Not NULL: it says instead where the bytes of a packet are, in the parts, which are
     * lent until the packet has left. False: they cannot be read; towards a session zeros
     * leave in their place, and the packet says so. */
    bool (*fill)(struct slmp_message *, uint64_t offset, uint32_t length, struct slmp_packet *);

    struct list link; /* from here the engine's */
    uint64_t number;
    uint64_t cut;     /* bytes made into packets */
    uint32_t segment; /* bytes of each packet but the last */
    uint32_t pending; /* packets that are not acknowledged */
    bool whole;       /* all of it was cut */
    bool begun;       /* its first packet was acknowledged */
};

/* One message on its way in, the engine's; valid from `begin` to the end of `done`. */
struct slmp_incoming {
    struct slmp_address from;
    struct slmp_peer *peer;
    uint64_t number; /* 0, 1, 2 ... in a channel of a session; plain: its id */
    uint64_t length; /* SLMP_UNKNOWN until `done` if the peer is plain */
    uint8_t channel;
    bool plain;
    bool blank; /* its sender could not read what comes now, nor what comes after */
    void *user; /* the caller's */

    bool active, waiting; /* from here the engine's */
    uint64_t received;
};

enum slmp_step {
    SLMP_GO,   /* taken */
    SLMP_LATER /* not now: the engine keeps the packet, slmp_resume() offers it again */
};

/* The source of a peer, as the user of the engine knows it: sessions of one source share places and
 * memory. A source of lower standing gives way to one of higher, and never the other way round. */
enum slmp_standing {
    SLMP_OTHERS,   /* somebody else's for certain: half of the places at most */
    SLMP_ANYBODYS, /* not known */
    SLMP_OURS
};
struct slmp_whose {
    uint64_t name; /* of the source; UINT64_MAX is none */
    enum slmp_standing standing;
};

/* All are called with `context`; none but the last three may be NULL. */
struct slmp_upcalls {
    void *context;
    /* A session with the peer began, or ended. Each incarnation of a process is another
     * peer: `closed` comes between them, after all its messages were given back. */
    void (*opened)(void *context, struct slmp_peer *, const struct slmp_address *,
                   uint64_t incarnation);
    void (*closed)(void *context, struct slmp_peer *, const struct slmp_address *);
    /* A message begins; `first` is its first packet, which is delivered by `data` as
     * well. Of a plain peer it is the packet that came first, whatever its offset. */
    enum slmp_step (*begin)(void *context, struct slmp_incoming *, const void *first,
                            size_t length);
    /* Bytes of a message, each byte once, in the memory that slmp_input was given or the
     * engine's; not to be used after the call. */
    enum slmp_step (*data)(void *context, struct slmp_incoming *, uint64_t offset,
                           const void *bytes, size_t length);
    /* All its bytes have been delivered; or no more will be. */
    void (*done)(void *context, struct slmp_incoming *, enum slmp_status);
    /* A message is the caller's again. */
    void (*sent)(void *context, struct slmp_message *, enum slmp_status);
    /* Somebody speaks another version of sessions, so that there will be none. With a key he has
     * proved to have it, too. */
    void (*version)(void *context, const struct slmp_address *, unsigned theirs, unsigned ours);
    /* Returns the source of an address that is about to have a session; NULL: an address is a
     * source. */
    struct slmp_whose (*whose)(void *context, const struct slmp_address *);
    /* Tells whether the user of the engine waits for a peer, or has a message of it in progress:
     * then the engine does not end the peer's session to make room for another. NULL stands for a
     * function that always says no. */
    bool (*busy)(void *context, struct slmp_peer *);
};

/* slmp_version_text() is a line about that, with the remedy. */
struct reason slmp_version_text(const struct slmp_address *, unsigned theirs, unsigned ours);

/* slmp_open() makes an engine; NULL if memory is short, for a configuration that cannot be, or with
 * a key where libcrypto.so.3 cannot be used: `why` says which, and the remedy. The upcalls are
 * copied. */
struct slmp *slmp_open(const struct slmp_config *, const struct slmp_upcalls *, struct reason *why);

/* slmp_close() gives back and ends all messages as SLMP_UNDELIVERABLE, tells peers nothing
 * and frees the engine. */
void slmp_close(struct slmp *);

/* slmp_send() takes a message. 0, or without taking it -EMSGSIZE (longer than
 * SLMP_LENGTH_MAX), -EINVAL (channel), -EPERM (without acknowledgements it goes plain,
 * which a key forbids), -ENOMEM or -ENOBUFS (config.peers_max are known and busy). */
int slmp_send(struct slmp *, int64_t now, struct slmp_message *);

/* slmp_lengthen() gives a message that was sent `more` bytes of its body; false: some of it has
 * left. `fill` messages and those without acknowledgement stay as they are. */
bool slmp_lengthen(struct slmp_message *, uint64_t more);

/* slmp_contact() begins a session without a message, if there is none; one that is on its
 * way is asked for again within config.rto_initial, however long nobody has answered. Gives
 * what slmp_send() gives. */
int slmp_contact(struct slmp *, int64_t now, const struct slmp_address *);

/* slmp_leave() tells a peer that its session is over here. The caller closes the engine
 * next, after slmp_output(). */
void slmp_leave(struct slmp *, struct slmp_peer *);

/* slmp_lost() ends the session with a peer that the caller knows to be no more, or the way to one
 * on which it has answered: the next message asks anew. */
void slmp_lost(struct slmp *, int64_t now, struct slmp_peer *);

/* slmp_ask() makes a peer show that it lives, for who waits for more than acknowledgements:
 * one that stays silent for too long is dead. */
void slmp_ask(struct slmp *, int64_t now, struct slmp_peer *);

/* slmp_input() takes one packet. True: it was of a session with its sender; with a key that is
 * proved, without one it is what the packet says. */
bool slmp_input(struct slmp *, int64_t now, const struct slmp_address *from, const void *packet,
                size_t length);

/* One packet to send: its header, with a short payload behind it, and up to two pieces of
 * lent memory, valid until the next call of the engine other than slmp_output
 * and slmp_path. */
struct slmp_packet {
    struct slmp_address to;
    uint16_t header_length;
    uint8_t parts;
    struct iovec part[2];
    uint32_t length; /* of all */
    uint8_t header[SLMP_HEADER_ROOM];
};

/* slmp_output() gives the next packet to send; false if none is due. */
bool slmp_output(struct slmp *, int64_t now, struct slmp_packet *);

/* slmp_advance() does what is due by the clock; slmp_output() should follow. */
void slmp_advance(struct slmp *, int64_t now);

/* slmp_deadline() says when slmp_advance() or slmp_output() has something to do unless
 * something happens before; a time in the past means now, SLMP_NEVER never. */
int64_t slmp_deadline(const struct slmp *);

/* slmp_resume() offers again what a peer's channel was answered SLMP_LATER for. */
void slmp_resume(struct slmp *, int64_t now, struct slmp_peer *, unsigned channel);

/* slmp_known() gives the peer at an address, NULL if there is none. It is good until its
 * `closed`, or, without a session, until the next call. */
struct slmp_peer *slmp_known(const struct slmp *, const struct slmp_address *);

/* slmp_path() says how long a packet to an address may be, as the system knows: packets
 * are at most so long from now on, and those that are under way go in pieces if they are
 * sent again; a minute later longer ones are tried. That long ones vanish without a word is
 * found out without it. */
void slmp_path(struct slmp *, int64_t now, const struct slmp_address *, uint32_t longest);

/* Something of the caller's that goes with a peer; NULL at first. slmp_ending() is true while
 * a session that is over offers for the last time what it holds. */
void slmp_peer_set_user(struct slmp_peer *, void *user);
void *slmp_peer_user(const struct slmp_peer *);
bool slmp_ending(const struct slmp_peer *);

/* slmp_incomplete() is true while packets of a session are missing behind which others have come.
 */
bool slmp_incomplete(const struct slmp_peer *);

/* slmp_flush() makes acknowledgements that wait for data to ride on due at once. */
void slmp_flush(struct slmp *);

/* Counts of what happened so far. */
struct slmp_counters {
    uint64_t packets_in, packets_out;
    uint64_t messages_in, messages_out; /* complete, or acknowledged */
    uint64_t bytes_in, bytes_out;       /* payload, each byte once */
    uint64_t retransmitted, timeouts;
    uint64_t duplicates;
    /* packets that were dropped, by reason */
    uint64_t malformed; /* too short or long, impossible fields */
    uint64_t corrupt;   /* wrong checksum */
    uint64_t version;   /* a version that is not spoken here */
    uint64_t stale;     /* of a session that is no more, or of none */
    uint64_t beyond;    /* beyond the window */
    uint64_t refused;   /* plain, where sessions are wanted, or the other way round */
    uint64_t no_room;   /* no place to keep it, or for its peer or message */
    uint64_t unsent;    /* answers for which the queue was full, or that were too many */
    uint64_t forged;    /* with a key: no tag, a wrong one, or sent to somebody else */
    uint64_t replayed;  /* with a key: came already, or before too many others */
    uint64_t shortened; /* times that long packets seemed to vanish on a path */
};
const struct slmp_counters *slmp_counters(const struct slmp *);

/* slmp_held() says how many bytes are kept for SLMP_LATER or because something is missing. */
size_t slmp_held(const struct slmp *);

/* How one peer does. */
struct slmp_peer_info {
    bool known, session, plain;
    bool answered; /* a session is being agreed on, and it has answered */
    uint64_t incarnation;
    int64_t heard; /* when a packet of its session came last, or that began */
    int64_t rtt;   /* smoothed; 0: not measured */
    int64_t rto;
    uint32_t window;  /* congestion window, packets, of channel 0 */
    uint32_t flight;  /* packets under way */
    uint32_t segment; /* bytes of payload in a full packet */
    uint64_t retransmitted;
    uint64_t dropped; /* packets of its sessions that were not taken, for whatever reason */
};
struct slmp_peer_info slmp_peer_info(const struct slmp *, const struct slmp_address *);

#endif
