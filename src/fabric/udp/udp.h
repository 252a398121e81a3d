/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP fabric, as its own files see it: Portals messages as messages of SLMP. README.md says
 * which file does what.
 *
 * A fabric has one socket, which receives all packets, and one engine (slmp.h); a class is a
 * channel of a session. On the wire a message is a prefix, the NIC's header and the payload:
 *
 *      | version 1 | status 1 | more 1 | 0 | length 4 | header FABRIC_HEADER | payload ... |
 *
 * `status` is that of the payload, as in fabric.h: a sender that finds the payload unreadable
 * before it sends says so there, and sends no payload; one that finds it later sends blank packets
 * (slmp.h). With `more` the message is one of a row: its payload has `length` bytes (network
 * order), and the next prefix is behind it, at the next multiple of UDP_ALIGN. Short messages that
 * leave together go in rows, since a packet costs both sides more than a message.
 *
 * The engine is called under the NIC's lock, and its upcalls never release that: they put bytes
 * aside as pieces, which point into the buffer of the datagrams. Afterwards the pieces go to the
 * NIC, channel by channel, and the lock may be released. A stream with STAGED_MOST pieces
 * (STAGED_BEHIND for others than the first) takes no more; the engine then keeps packets, within
 * its own bounds, and tells the sender to wait.
 */
#ifndef FABRIC_UDP_UDP_H
#define FABRIC_UDP_UDP_H

#include "base/keep.h"
#include "fabric/rx_machine.h"
#include "fabric/slmp/slmp.h"
#include "fabric/udp/socket.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    UDP_PREFIX = 8,
    UDP_AT_MORE = 2, /* place of `more` in the prefix */
    UDP_AT_LENGTH = 4,
    UDP_HEAD = UDP_PREFIX + FABRIC_HEADER,
    UDP_ALIGN = 64, /* alignment of the NIC's packets in memory */
    UDP_FORMAT = 2, /* version in the prefix */
    /* messages of a channel that may be put together side by side, see stream.c */
    UDP_STREAMS = 8,
    STAGED_MOST = 128,     /* pieces of a channel's first stream */
    STAGED_BEHIND = 16,    /* pieces of each of its other streams */
    BUFFERS_MOST = 64,     /* buffers of UDP_BUFFER bytes in use at once */
    QUEUED_MOST = 512,     /* unacknowledged messages of a channel */
    COPIED_MOST = 1 << 20, /* bytes of unacknowledged messages that were copied */
    /* longest message that is copied; PINWHEEL_SHM_INLINE may not be larger */
    UDP_COPY_MOST = 16384,
    LOCAL_MOST = 64,                         /* addresses of this host that the fabric knows */
    UDP_ROW_MOST = UDP_HEAD + UDP_COPY_MOST, /* longest row */
    UDP_PIECES = 256,                        /* unused pieces that are kept */
    UDP_BACK_NS = 20000,                     /* a poll within this time counts as soon: send.c */
    UDP_HABIT = 4,                           /* so often in a row makes a habit: send.c */
    UDP_ACK_NS = 30000 /* how long an acknowledgement waits; 50 us together with UDP_BACK_NS */
};

/* Sanitizers take the kernel's access to memory that may be missing for an error of the program:
 * with them payload is always copied by nic_copy(). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UDP_ALWAYS_CAREFUL true
#elif defined(__has_feature)
#define UDP_ALWAYS_CAREFUL (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define UDP_ALWAYS_CAREFUL false
#endif

_Static_assert((int)FABRIC_CLASSES <= (int)SLMP_CHANNELS, "a class is a channel of a session");

/* Memory of packets. Each pointer into it is a reference. */
struct udp_memory {
    unsigned users;
    bool pooled; /* it is a buffer of UDP_BUFFER bytes */
    struct list link;
    _Alignas(64) uint8_t bytes[];
};

/* Bytes of a stream, in order. The first piece of a message begins with the message's prefix. */
struct udp_piece {
    struct list link;
    struct udp_memory *memory;
    const uint8_t *bytes;
    uint32_t length;
    bool first; /* first piece of a message of `total` bytes */
    bool blank; /* the sender could not read these bytes */
    bool torn;  /* no bytes: the rest of the message will not come */
    uint64_t total;
};

/* Memory of packets that the NIC keeps; the last of them ends at byte `end` of the payload. */
struct udp_kept {
    struct list link;
    struct udp_memory *memory;
    uint64_t end;
};

/* The incomplete message of a stream, always the last one. */
struct udp_incoming {
    struct slmp_incoming *open; /* NULL: there is none */
    bool fresh;                 /* its first piece was not staged yet */
    struct udp_memory *row;     /* memory of a row that comes in several packets */
    size_t row_have;            /* bytes of the row that have come */
    bool refused;               /* the engine was told to keep more of it */
};

/* Messages of a channel, of which one is in progress. Those in other streams need not wait for
 * it. */
struct udp_stream {
    struct list
        /* in the channel's list of streams, in the order of messages, or in that of spare ones */
        link;
    uint8_t class;
    /* staged by the upcalls of the engine: */
    struct list pieces;
    unsigned count;
    struct udp_incoming in;
    /* taken by the NIC: */
    struct rx_machine m;       /* the message in progress */
    uint32_t used;             /* bytes of the first piece that were taken */
    struct udp_memory *gather; /* memory of a packet that comes in several pieces */
    size_t gathered;           /* bytes of that packet that have come */
    struct list kept;
    struct udp_kept *keeper; /* for the next packet that the NIC keeps */
};

struct udp_channel {
    struct fabric_rx *rx; /* the rx that the channel keeps */
    bool lent;            /* a stream has the rx of the channel */
    struct udp_stream stream[UDP_STREAMS];
    struct list streams, spare; /* the first list is never empty */
    uint64_t messages;          /* how many messages have begun */
    bool refused;               /* the engine was told to keep packets */
    bool next_refused;          /* the engine was told to keep the next message */
    bool busy;                  /* a thread works on the channel, perhaps without the lock */
    /* for sending: */
    unsigned queued;
    size_t copied;
    bool starved; /* a message found no room */
};

struct udp_peer {
    struct udp_fabric *fabric;
    struct list link;  /* in fabric->peers */
    struct list ready; /* in fabric->ready, while there is something to take */
    struct nic_peer *np;
    struct fabric_address address;
    struct slmp_address at;
    struct slmp_peer *session; /* NULL: the session is over */
    struct rx_source source;
    bool dying;
    bool asks;     /* its ASK channel may have messages; most peers send none */
    int64_t heard; /* when it last sent a packet, or was asked to */
    struct udp_channel channel[FABRIC_CLASSES];
};

/* A message on its way out. */
struct udp_message {
    struct slmp_message m;
    struct list link; /* in fabric->spare[large] */
    struct udp_peer *peer;
    struct fabric_tx *tx; /* NULL: its payload is in `copy` */
    bool large;           /* `copy` has UDP_COPY_MOST bytes, else inline_max */
    uint32_t row_most;    /* how many bytes it may have with others that join it; 0: none may */
    uint32_t last;        /* place of the last prefix in it */
    uint8_t head[UDP_HEAD];
    uint8_t copy[];
};

/* How often in a row one event was soon followed by another. */
struct udp_habit {
    int64_t since; /* when the first event has happened, if the second has not; else 0 */
    unsigned times;
};

struct udp_fabric {
    struct kept kept; /* the memory stays that of a fabric as long as the process lives */
    struct fabric_setup setup;
    uint32_t pid;
    size_t inline_max;
    struct udp_socket socket;
    struct slmp *engine;
    struct slmp_config config;
    int epoll_fd;

    struct list peers, ready;
    unsigned dying;            /* how many peers are to be torn down */
    struct list spare[2];      /* unused struct udp_message of either size */
    unsigned spares[2];        /* how many of these */
    struct udp_message *row;   /* the last message posted, while others may join it */
    struct udp_memory *buffer; /* buffer for the next datagrams */
    struct list free_buffers, free_pieces;
    unsigned spare_pieces;
    unsigned buffers;  /* how many exist, free ones included */
    uint8_t *outgoing; /* copies of payload that stay until their packets have left */
    size_t outgoing_at;
    bool careful; /* payload is copied when it leaves, since some was unreadable */

    int64_t deadline;         /* deadline of the engine after its last call */
    int64_t flushed;          /* when the engine was last asked for packets */
    int64_t flush_took;       /* the time that the last flush took */
    unsigned posted;          /* messages given to the engine since the last flush */
    uint64_t posted_bytes;    /* bytes of the messages posted */
    unsigned expected;        /* packets of those messages */
    bool behind;              /* the last poll has brought messages, and work that is due waits */
    struct udp_habit returns; /* whether a poll soon follows a post */
    struct udp_habit polls;   /* whether a poll soon follows one that brought packets */
    bool moved;               /* an upcall of the engine has done something for the NIC */
    int64_t ask_at;           /* when silent peers are asked next */
    int64_t hot_until;
    /* peek() reads the next two without the lock. */
    _Atomic bool hot;       /* polls look at the socket */
    _Atomic bool attention; /* anything is in progress: peek() then says that poll() is needed */
    bool armed;             /* the epoll watches the socket */

    bool open_to_all;  /* packets of other hosts are taken */
    bool keyed;        /* there is a job key, which proves all packets */
    bool told_version; /* the log has a line about a peer that speaks another version */
    bool full_told;    /* the log has a line about missing room for one more peer */
    uint32_t local[LOCAL_MOST];
    unsigned locals;
    /* packets of other hosts, and malformed messages, that were dropped */
    uint64_t foreign, misshapen;
    uint64_t unproved; /* packets without the key, by the engine's count */
    uint64_t strange;  /* unproved packets that came without a session */
    uint32_t owner;    /* owner of the socket that udp_whose() was last asked about */
};

/* The objects behind the interface's struct fabric and struct fabric_peer. */
static inline struct udp_fabric *udp_of(struct fabric *f)
{
    return (struct udp_fabric *)f;
}

static inline struct udp_peer *udp_peer_of(struct fabric_peer *p)
{
    return (struct udp_peer *)p;
}

/* udp_attend() has the next poll look at a peer. */
static inline void udp_attend(struct udp_peer *p)
{
    if (list_empty(&p->ready)) {
        list_push_back(&p->fabric->ready, &p->ready);
    }
    atomic_store_explicit(&p->fabric->attention, true, memory_order_relaxed);
}

#endif
