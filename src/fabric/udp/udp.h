/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The UDP fabric, as its own files see it: Portals messages as messages of SLMP. README.md says
 * which file does what.
 *
 * A fabric has one socket that all comes to and one engine (slmp.h); a class is a channel of a
 * session. On the wire a message is a prefix, the NIC's header and the payload:
 *
 *      | version 1 | status 1 | more 1 | 0 | length 4 | header FABRIC_HEADER | payload ... |
 *
 * `status` is that of fabric.h for the payload: a sender that finds it unreadable at once
 * says so there and sends nothing else; one that finds it later, in blank packets (slmp.h).
 * With `more` it is one of a row: its payload is `length` bytes (network order), and behind it,
 * at the next multiple of UDP_ALIGN, stands the next prefix. Short messages that leave
 * together go in rows, since a packet costs both sides more than a message.
 *
 * The engine is called under the NIC's lock and never lets go of it: what it hands over is
 * put aside as pieces, which point into the buffer that the datagrams came in. Pieces go to
 * the NIC after that, channel by channel, and there the lock may be let go of. A stream of a
 * channel that has STAGED_MOST of them (STAGED_BEHIND) takes no more; the engine keeps what
 * comes then, within its own bounds, and tells the sender to wait.
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
    UDP_AT_MORE = 2, /* in it */
    UDP_AT_LENGTH = 4,
    UDP_HEAD = UDP_PREFIX + FABRIC_HEADER,
    UDP_ALIGN = 64,        /* of packets for the NIC, in memory */
    UDP_FORMAT = 2,        /* the version in the prefix */
    UDP_STREAMS = 8,       /* messages of a channel under way, see stream.c */
    STAGED_MOST = 128,     /* pieces of a channel's first stream */
    STAGED_BEHIND = 16,    /* pieces of each of its other streams */
    BUFFERS_MOST = 64,     /* of UDP_BUFFER bytes, in use at once */
    QUEUED_MOST = 512,     /* messages of a channel that are not acknowledged */
    COPIED_MOST = 1 << 20, /* bytes of unacknowledged messages that were copied */
    UDP_COPY_MOST = 16384, /* bytes of one that is copied; PINWHEEL_SHM_INLINE is no more */
    LOCAL_MOST = 64,       /* addresses of this host that are known */
    UDP_ROW_MOST = UDP_HEAD + UDP_COPY_MOST, /* bytes of a row */
    UDP_PIECES = 256,                        /* spare ones that are kept */
    UDP_BACK_NS = 20000,                     /* a poll within it comes soon: send.c */
    UDP_HABIT = 4,                           /* so often in a row makes a habit: send.c */
    UDP_ACK_NS = 30000 /* the wait of an acknowledgement; with UDP_BACK_NS 50 us */
};

/* The kernel's own look at memory that may not be there is something that sanitizers take for
 * ours: then payload is always copied through nic_copy(). */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UDP_ALWAYS_CAREFUL true
#elif defined(__has_feature)
#define UDP_ALWAYS_CAREFUL (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define UDP_ALWAYS_CAREFUL false
#endif

/* Memory that packets lie in; whoever points into it has a reference. */
struct udp_memory {
    unsigned users;
    bool pooled; /* one of UDP_BUFFER bytes */
    struct list link;
    _Alignas(64) uint8_t bytes[];
};

/* Bytes of a stream, in order. The first piece of a message begins with its prefix. */
struct udp_piece {
    struct list link;
    struct udp_memory *memory;
    const uint8_t *bytes;
    uint32_t length;
    bool first; /* of a message of `total` bytes */
    bool blank; /* the sender could not read them */
    bool torn;  /* no bytes: the rest of the message will not come */
    uint64_t total;
};

/* Memory of packets that the NIC keeps; the last of them ends at byte `end` of the payload. */
struct udp_kept {
    struct list link;
    struct udp_memory *memory;
    uint64_t end;
};

/* The message whose pieces come, the last of its stream. */
struct udp_incoming {
    struct slmp_incoming *open; /* NULL: there is none */
    bool fresh;                 /* its first piece has not come */
    struct udp_memory *row;     /* memory of a row that comes in several packets */
    size_t row_have;            /* bytes of it that have come */
    bool refused;               /* the engine was told to wait with more of it */
};

/* Messages of a channel of which one is in progress; what is in other streams need not wait for it.
 */
struct udp_stream {
    struct list
        link; /* of its channel's streams, in the order of the messages, or of the spare ones */
    uint8_t class;
    /* as the engine hands over */
    struct list pieces;
    unsigned count;
    struct udp_incoming in;
    /* as the NIC takes */
    struct rx_machine m;       /* the message in progress */
    uint32_t used;             /* bytes of the first piece that were taken */
    struct udp_memory *gather; /* memory of a packet that comes in several pieces */
    size_t gathered;           /* bytes of it that have come */
    struct list kept;
    struct udp_kept *keeper; /* for the next one */
};

struct udp_channel {
    struct fabric_rx *rx; /* the one that the channel keeps */
    bool lent;            /* a stream has the rx of the channel */
    struct udp_stream stream[UDP_STREAMS];
    struct list streams, spare; /* at least one is in the first list */
    uint64_t messages;          /* that have begun */
    bool refused;               /* the engine was told to wait with a message */
    bool next_refused;          /* the engine was told to wait with the next message */
    bool busy;                  /* a thread is with the NIC, perhaps without the lock */
    /* out */
    unsigned queued;
    size_t copied;
    bool starved; /* a message found no room */
};

struct udp_peer {
    struct udp_fabric *fabric;
    struct list link;  /* fabric->peers */
    struct list ready; /* fabric->ready, while there is something to take */
    struct nic_peer *np;
    struct fabric_address address;
    struct slmp_address at;
    struct slmp_peer *session; /* NULL: it is over */
    struct rx_source source;
    bool dying;
    bool asks;     /* its ASK channel may have something: most never have */
    int64_t heard; /* when it last sent something, or was asked to */
    struct udp_channel channel[FABRIC_CLASSES];
};

/* A message on its way out. */
struct udp_message {
    struct slmp_message m;
    struct list link; /* fabric->spare[large] */
    struct udp_peer *peer;
    struct fabric_tx *tx; /* NULL: its payload is in `copy` */
    bool large;           /* `copy` has UDP_COPY_MOST bytes, else inline_max */
    uint32_t row_most;    /* bytes that it may have in all; 0: nothing may join it */
    uint32_t last;        /* where in it the last prefix stands */
    uint8_t head[UDP_HEAD];
    uint8_t copy[];
};

/* How often in a row one thing was soon followed by another. */
struct udp_habit {
    int64_t since; /* the first has happened, and not yet the second; 0: no */
    unsigned times;
};

struct udp_fabric {
    struct kept kept; /* its memory is a fabric's for ever */
    struct fabric_setup setup;
    uint32_t pid;
    size_t inline_max;
    struct udp_socket socket;
    struct slmp *engine;
    struct slmp_config config;
    int epoll_fd;

    struct list peers, ready;
    unsigned dying;            /* peers to be torn down */
    struct list spare[2];      /* struct udp_message of either size */
    unsigned spares[2];        /* number of spare ones */
    struct udp_message *row;   /* the last message posted, while others may join it */
    struct udp_memory *buffer; /* where the next datagrams go */
    struct list free_buffers, free_pieces;
    unsigned spare_pieces;
    unsigned buffers;  /* made, free ones included */
    uint8_t *outgoing; /* copies of payload, until their packets have left */
    size_t outgoing_at;
    bool careful; /* payload is copied on its way out: somebody's was unreadable */

    int64_t deadline;         /* the engine's, as of its last call */
    int64_t flushed;          /* when it was last asked for packets */
    int64_t flush_took;       /* the time that the last flush took */
    unsigned posted;          /* messages that the engine got since then */
    uint64_t posted_bytes;    /* bytes of the messages posted */
    unsigned expected;        /* packets of the messages posted */
    bool behind;              /* the last poll brought something, and what is due waits */
    struct udp_habit returns; /* whether a poll soon follows a post */
    struct udp_habit polls;   /* whether a poll soon follows one that brought packets */
    bool moved;               /* an upcall of the engine did something for the NIC */
    int64_t ask_at;           /* when silent peers are asked next */
    int64_t hot_until;
    /* These two for peek(), which holds no lock. */
    _Atomic bool hot;       /* the socket is polled */
    _Atomic bool attention; /* something is in progress: only poll() can tell */
    bool armed;             /* the socket is in the epoll */

    bool open_to_all;  /* packets from beyond this host are taken */
    bool keyed;        /* and all of them are proved by the job's key */
    bool told_version; /* the log says that somebody speaks another version */
    bool full_told;    /* the log says that there is no room for one more peer */
    uint32_t local[LOCAL_MOST];
    unsigned locals;
    uint64_t foreign, misshapen; /* packets, messages that were dropped */
    uint64_t unproved;           /* packets without the key, as the engine counts them */
    uint64_t strange;            /* unproved ones that came without a session */
    uint32_t owner;              /* of the socket that udp_whose() was asked about last */
};

/* Behind the interface's struct fabric and struct fabric_peer are these two. */
static inline struct udp_fabric *udp_of(struct fabric *f)
{
    return (struct udp_fabric *)f;
}

static inline struct udp_peer *udp_peer_of(struct fabric_peer *p)
{
    return (struct udp_peer *)p;
}

/* udp_attend() has a peer looked at by the next poll. */
static inline void udp_attend(struct udp_peer *p)
{
    if (list_empty(&p->ready)) {
        list_push_back(&p->fabric->ready, &p->ready);
    }
    atomic_store_explicit(&p->fabric->attention, true, memory_order_relaxed);
}

#endif
