/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared-memory fabric, as its own files see it; README.md says which does what.
 *
 * A connection is a slot in the peer's segment, which we fill, and a slot in
 * ours, which we empty; either may be missing for a while. All of this is
 * guarded by the NIC's lock, but for what lies in the segments themselves.
 */
#ifndef FABRIC_SHM_SHM_H
#define FABRIC_SHM_SHM_H

#include "base/branch.h"
#include "base/keep.h"
#include "base/sys.h"
#include "fabric/rx_machine.h"
#include "fabric/shm/owner.h"
#include "fabric/shm/segment.h"

#include <sys/socket.h>
#include <sys/un.h>

/* The producer's side of a channel. */
struct tx_channel {
    /* The straight run of records of one line that may leave from `tail` on, each like the one
     * before it: send.c. */
    struct record *at; /* the line at `tail` */
    uint64_t tail;
    uint32_t run;  /* how many; 0: who sends must look */
    uint32_t word; /* theirs, but for the bytes of payload */

    uint64_t head_seen;
    uint64_t line_mask; /* lines of the ring, less one */
    uint8_t *ring;
    uint64_t *stale;             /* a bit by line: it may hold what is neither a word nor 0 */
    struct channel_index *index; /* NULL: not connected */
    struct cells cells;
    size_t inline_max; /* payload that fits a record of the ring */
    bool all_cells;    /* all are in use, or there is no memory for more */
    bool draining;     /* none is free: none was used yet, or the first ones must become empty */
    uint64_t cells_tail, cells_head_seen;
    struct list filling;  /* fabric_tx: record written, payload on its way into cells */
    struct list referred; /* fabric_tx: record written, the peer reads our memory */
    bool starved;         /* the last send found no room */
    bool far;             /* cells are slow: the peer's core is far */
    uint32_t slow;        /* a bit for each of the last cells that were timed */
    unsigned large;       /* large messages since it is far */
};

/* The consumer's side of a channel. The message in progress is a copy of its record. */
struct rx_channel {
    struct record *at;  /* the line at `head`: the record in progress, or where the next will be */
    struct record *end; /* behind the last line of the ring */
    uint64_t head;
    struct channel_index *index;  /* NULL: nobody claimed a slot yet */
    _Atomic uintptr_t *announced; /* where peek() finds `at` and `tag` */
    uint32_t tag;                 /* of a record at `at` */
    struct rx_machine m;
    _Atomic uintptr_t unannounced; /* `announced` points here while there is nobody to tell */

    uint8_t *ring;
    struct cells cells;
    uint64_t line_mask;               /* lines of the ring, less one */
    uint64_t cells_head, cells_taken; /* given back; looked at. Between them: kept by the NIC */
    uint64_t first_cell;              /* of the message in progress */
    uint64_t cells_seen;              /* from cells_taken on: the NIC was shown packets in them */
    enum record_mode mode;
    uint32_t lines;
    uint64_t address; /* of a reference */
    uint64_t fetched; /* RECORD_REF: bytes of [moved, fetched) are in the peer's buffer */
};

struct shm_peer {
    struct shm_fabric *fabric;
    struct list link;   /* fabric->peers */
    struct list active; /* fabric->active, while a tx of ours waits for it */
    struct list asking; /* fabric->asking, while its asks are to be looked at */
    struct nic_peer *np;
    struct fabric_address address;
    int pidfd; /* -1: watched by its lock instead */
    bool same_process;
    bool dying;      /* is no longer sent to */
    bool broken;     /* broke the rules: nothing it wrote is looked at again */
    bool left;       /* we have left our slot there: it may be another sender's */
    bool references; /* we can read its memory */
    bool fences;     /* light barriers towards it must be full fences */

    struct segment *remote; /* NULL: not connected */
    struct slot *out;
    unsigned out_index;
    _Atomic uint32_t *doorbell; /* the peer's doorbell */
    _Atomic uint64_t *bits;     /* in the line of its doorbell: the word of its bitmap */
    uint64_t bit;               /* that has our bit */
    uint32_t rung;              /* generation of its doorbell in which we rang */
    unsigned sent_on;           /* records that left since one came */
    struct tx_channel tx[FABRIC_CLASSES];

    struct slot *in; /* NULL: it has no slot with us */
    unsigned in_index;
    unsigned listening_at; /* in fabric->listening, if its bit is in `known` */
    struct rx_source source;
    struct rx_channel rx[FABRIC_CLASSES];
    bool requests_wait; /* the last look took responses, and left requests to the next one */
    uint8_t *buffer;    /* packets fetched by reference */
};

struct shm_fabric {
    struct kept kept; /* its memory is a fabric's for ever */
    struct fabric_setup setup;
    struct segment *segment;
    uint64_t cookie;
    struct list peers;
    struct list active, asking;
    unsigned dying;           /* peers to be torn down */
    struct shm_peer *flowing; /* the last one that got a payload of several cells, or NULL */
    struct shm_peer *by_slot[SLOTS_MAX];
    struct fabric_address withheld[SLOTS_MAX]; /* claimants that may still write to their slots */
    /* When the claimant of a slot, who cannot be reached back, is refused; 0: it is not tried. */
    int64_t refuse_at[SLOTS_MAX];
    bool put_off;  /* there is one who is to be tried again */
    uint64_t full; /* the last peer found without a free slot, by its incarnation */
    struct shm_peer *listening[SLOTS_MAX]; /* the peers whose rings every poll looks at */
    unsigned busy_polls;

    /* From here to `attention` for peek(), which holds no lock. What it points to is in a segment
     * of ours, whose addresses can be read for as long as the process lives. */
    _Atomic(struct segment_header *) header;
    _Atomic unsigned words; /* of the bitmap that our slots use */
    _Atomic unsigned listening_count;
    _Atomic uint64_t known[SLOT_WORDS];               /* the bits of those we listen to */
    _Atomic uintptr_t next[SLOTS_MAX][LARGE_CLASSES]; /* by listening_at: word | its tag */
    _Atomic bool
        attention; /* something is in progress, on its way out or dying: only poll() can tell */

    int epoll_fd, doorbell_fd, ring_fd;
    uint32_t generation;
    int64_t next_probe;
};

/* Behind the interface's struct fabric and struct fabric_peer are these two. */
static inline struct shm_fabric *shm_of(struct fabric *f)
{
    return (struct shm_fabric *)f;
}

static inline struct shm_peer *shm_peer_of(struct fabric_peer *p)
{
    return (struct shm_peer *)p;
}

#define FETCH_PACKETS 16

/* The longest payload that we put into a record of such a ring. */
static inline size_t inline_most(const struct options *o, uint32_t ring_lines)
{
    size_t most = record_max_lines(ring_lines) * RECORD_LINE - offsetof(struct record, data);
    size_t wanted = (size_t)o->number[OPT_SHM_INLINE];
    return wanted < most ? wanted : most;
}

/* Orders what we published before what we look at next; invariant set 1. */
static inline void light_barrier(const struct shm_peer *p)
{
    if (unlikely(p->fences)) {
        full_fence();
    } else {
        compiler_fence();
    }
}

/* The bit of a slot in our own bitmap: set while its rings are to be looked at. */
static inline void set_bit(struct shm_fabric *f, unsigned index)
{
    atomic_fetch_or(&f->segment->header->bitmap[index / 64], 1ull << (index % 64));
}

static inline void clear_bit(struct shm_fabric *f, unsigned index)
{
    atomic_fetch_and(&f->segment->header->bitmap[index / 64], ~(1ull << (index % 64)));
}

/* shm_attend() makes peek() say that there is work, until a poll finds none. */
static inline void shm_attend(struct shm_fabric *f)
{
    atomic_store_explicit(&f->attention, true, memory_order_relaxed);
}

/* doorbell_address() is the socket on which a segment's owner listens for rings. */
socklen_t doorbell_address(struct sockaddr_un *address, const struct segment_info *owner);
/* shm_unsent() is true until the peer has taken all that was sent to it. */
bool shm_unsent(struct fabric_peer *p);

#endif
