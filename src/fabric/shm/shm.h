/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shared-memory fabric, as its own files see it; README.md says which does what.
 *
 * A connection is a slot in the peer's segment, which this NIC fills, and one in its own segment,
 * which it empties; either may be missing for a while. The NIC's lock guards all of this but the
 * segments themselves.
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
    /* The sender has found that the `run` records at `tail` may be written, one line each and with
     * the same `word`, without looking at the peer or the ring again: send.c. */
    struct record *at; /* the line at `tail` */
    uint64_t tail;
    uint32_t run;  /* how many records that is; 0: the sender must check */
    uint32_t word; /* `word` of the records in the run, without the length of the payload */

    uint64_t head_seen;
    uint64_t line_mask; /* lines of the ring, less one */
    uint8_t *ring;
    /* one bit for each line: it may hold bytes that are neither a record's word nor 0 */
    uint64_t *stale;
    struct channel_index *index; /* NULL: not connected */
    struct cells cells;
    size_t inline_max; /* the longest payload that fits into a record */
    bool all_cells;    /* all cells are in use, or there is no memory for more */
    /* no cell may be used: the first ones are not touched yet, or must become empty before the
     * others are used */
    bool draining;
    uint64_t cells_tail, cells_head_seen;
    /* fabric_tx whose record is written, and whose payload is still being put into cells */
    struct list filling;
    /* fabric_tx whose record is written, and whose payload the peer reads from this process */
    struct list referred;
    bool starved;   /* the last message found no room */
    bool far;       /* cells are slow, since the core of the peer is far away */
    uint32_t slow;  /* one bit for each of the last cells that were timed: it was slow */
    unsigned large; /* large messages since `far` was set */
};

/* The consumer's side of a channel. The message in progress has a copy of its record. */
struct rx_channel {
    /* the line at `head`: of the record in progress, or where the next one will be */
    struct record *at;
    struct record *end; /* the end of the ring */
    uint64_t head;
    struct channel_index *index;  /* NULL: no slot was claimed yet */
    _Atomic uintptr_t *announced; /* where peek() reads `at` and `tag` */
    uint32_t tag;                 /* tag of a record at `at` */
    struct rx_machine m;
    _Atomic uintptr_t unannounced; /* `announced` points here while peek() does not read them */

    uint8_t *ring;
    struct cells cells;
    uint64_t line_mask; /* lines of the ring, less one */
    /* cells given back; cells taken. The NIC keeps those in between */
    uint64_t cells_head, cells_taken;
    uint64_t first_cell; /* first cell of the message in progress */
    /* cells from cells_taken on in which the NIC was shown packets */
    uint64_t cells_seen;
    enum record_mode mode;
    uint32_t lines;
    uint64_t address; /* of the reference */
    uint64_t fetched; /* RECORD_REF: the peer's buffer has the bytes [moved, fetched) */
};

struct shm_peer {
    struct shm_fabric *fabric;
    struct list link;   /* in fabric->peers */
    struct list active; /* in fabric->active, while a tx waits for the peer */
    struct list asking; /* in fabric->asking, while polls look at its asks */
    struct nic_peer *np;
    struct fabric_address address;
    int pidfd; /* -1: probed by its lock instead */
    bool same_process;
    bool dying;      /* no messages are sent to it any more */
    bool broken;     /* it broke the rules: nothing that it wrote is read again */
    bool left;       /* this NIC has left its slot there, which may be another sender's */
    bool references; /* this process can read the peer's memory */
    bool fences;     /* light_barrier() towards it must be a full fence */

    struct segment *remote; /* NULL: no connection to it */
    struct slot *out;
    unsigned out_index;
    _Atomic uint32_t *doorbell; /* the peer's doorbell */
    _Atomic uint64_t *bits;     /* in its doorbell line: the word of its bitmap that has our bit */
    uint64_t bit;               /* our bit in that word */
    uint32_t rung;              /* generation of its doorbell in which this NIC has rung */
    unsigned sent_on;           /* records sent since the last one came */
    struct tx_channel tx[FABRIC_CLASSES];

    struct slot *in; /* NULL: it has no slot in this NIC's segment */
    unsigned in_index;
    unsigned listening_at; /* place in fabric->listening, if its bit is in `known` */
    struct rx_source source;
    struct rx_channel rx[FABRIC_CLASSES];
    bool requests_wait; /* the last look has taken responses, and so left requests in their ring */
    uint8_t *buffer;    /* for packets fetched by reference */
};

struct shm_fabric {
    struct kept kept; /* the memory stays that of a fabric as long as the process lives */
    struct fabric_setup setup;
    struct segment *segment;
    uint64_t cookie;
    struct list peers;
    struct list active, asking;
    unsigned dying;           /* how many peers are to be torn down */
    struct shm_peer *flowing; /* the peer that last got a payload of several cells, or NULL */
    struct shm_peer *by_slot[SLOTS_MAX];
    /* claimants that may still write to the slots that are withheld from them */
    struct fabric_address withheld[SLOTS_MAX];
    /* when a claimant that cannot be reached back is refused; 0: there is none */
    int64_t refuse_at[SLOTS_MAX];
    bool put_off;                          /* some claimant is to be tried again */
    uint64_t full;                         /* incarnation of the last peer that had no free slot */
    struct shm_peer *listening[SLOTS_MAX]; /* peers whose rings every poll looks at */
    unsigned busy_polls;

    /* peek() reads the fields from here to `attention` without the lock. They point into own
     * segments, whose addresses stay readable as long as the process lives. */
    _Atomic(struct segment_header *) header;
    _Atomic unsigned words; /* words of the bitmap that have bits of slots */
    _Atomic unsigned listening_count;
    _Atomic uint64_t known[SLOT_WORDS]; /* bits of the peers that are listened to */
    /* by listening_at: address of the next record's word | its tag */
    _Atomic uintptr_t next[SLOTS_MAX][LARGE_CLASSES];
    _Atomic bool
        /* a message is in progress or being sent, or a peer is dying: peek() then says that poll()
         * is needed */
        attention;

    int epoll_fd, doorbell_fd, ring_fd;
    uint32_t generation;
    int64_t next_probe;
};

/* The objects behind the interface's struct fabric and struct fabric_peer. */
static inline struct shm_fabric *shm_of(struct fabric *f)
{
    return (struct shm_fabric *)f;
}

static inline struct shm_peer *shm_peer_of(struct fabric_peer *p)
{
    return (struct shm_peer *)p;
}

#define FETCH_PACKETS 16

/* Returns the longest payload that a sender puts into a record of a ring. */
static inline size_t inline_most(const struct options *o, uint32_t ring_lines)
{
    size_t most = record_max_lines(ring_lines) * RECORD_LINE - offsetof(struct record, data);
    size_t wanted = (size_t)o->number[OPT_SHM_INLINE];
    return wanted < most ? wanted : most;
}

/* Orders earlier stores to shared memory before later loads from it; invariant set 1. */
static inline void light_barrier(const struct shm_peer *p)
{
    if (unlikely(p->fences)) {
        full_fence();
    } else {
        compiler_fence();
    }
}

/* Set and clear the bit of a slot in this NIC's own bitmap; it is set while polls must look at the
 * slot. */
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

/* doorbell_address() writes the address of the socket on which the owner of a segment listens. */
socklen_t doorbell_address(struct sockaddr_un *address, const struct segment_info *owner);
/* shm_unsent() says whether the peer has not taken all messages for it. */
bool shm_unsent(struct fabric_peer *p);

#endif
