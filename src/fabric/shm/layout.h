/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout of a shared-memory segment. Every NIC has one; its peers map it
 * and write to it.
 *
 *   segment   | header: constants | doorbell line | owner words | stats | slot 0 | slot 1 | ...
 *   stats     the figures of the NIC, for tools; peers do not read them
 *   slot      | sender | channel REQUEST, RESPONSE, ASK: indices | ring | ring |
 *             | ring and cells of asks | first cells | first cells | more cells | more cells |
 *   ring      64-byte lines; a record is one or more of them
 *   cells     packets of payload, handed over in order; a payload of a single one before its record
 *
 * A sender begins with the first cells of a channel. When it has gone round them several times it
 * waits until they are empty, backs the others with memory, and uses all from then on: data that do
 * not fit the cache of one core pass to the other core through the shared cache, several times
 * faster than line by line. Cell i is at i modulo the number of cells in use, which is in
 * `cells_used`. The ASK channel is small, and has no more
 * cells than its first ones.
 *
 * Only the receiver's own segment holds what it receives. docs/architecture.md,
 * invariant set 3, has the life cycles. Slots are sparse: a sender that claims one first backs
 * slot_first() bytes of it with memory.
 */
#ifndef FABRIC_SHM_LAYOUT_H
#define FABRIC_SHM_LAYOUT_H

#include "fabric/fabric.h"

#include <stdatomic.h>

#define SEGMENT_MAGIC 0x4c4545485750494eull
#define SEGMENT_VERSION 8u
#define SLOTS_MAX 448u
#define SLOT_WORDS (SLOTS_MAX / 64)

/* The constants of a segment, written before it has a name. A reader copies them, checks the copy,
 * and uses only that. */
struct segment_info {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t incarnation;
    uint64_t cookie; /* the value at cookie_at in the owner's memory */
    uint64_t cookie_at;
    uint32_t nid, pid;
    int32_t process;
    uint32_t asymmetric; /* the owner takes part in membarrier */
    uint32_t slots, ring_lines, cells, cells_first, cell_size;
    uint32_t own_only;   /* the owner takes messages of others by another fabric only */
    uint64_t slot_bytes; /* bytes of a whole slot */
    uint64_t file_bytes;
    uint64_t pid_namespace; /* namespace in which `process` is a number; 0: not known */
};

struct segment_header {
    struct segment_info info;
    /* core on which a thread of the owner waits: core_word(); the owner writes it */
    _Atomic uint64_t core;

    /* The doorbell line; all processes write it. */
    _Alignas(64) _Atomic uint32_t doorbell;
    _Atomic uint32_t flags; /* SEGMENT_... */
    _Atomic uint64_t bitmap[SLOT_WORDS];

    /* The claimant of each slot: NID << 32 | PID; 0: the slot is free; or OWNER_..., from which the
     * claimant learns that the receiver no longer reads what it writes there. */
    _Alignas(64) _Atomic uint64_t owner[SLOTS_MAX];

    /* One bit for each slot: its sender has sent an ask. The sender sets it before
     * SEGMENT_ASKED. */
    _Alignas(64) _Atomic uint64_t asked[SLOT_WORDS];
};

/* Owner words of slots that cannot be claimed. They are no addresses, as NID 0 has no PIDs. The
 * claimant may still write to the slot; that becomes free when the claimant is gone or, if it has
 * kept the rules, when it has left. */
#define OWNER_BANNED 1u  /* the claimant has broken the rules; or the slot is about to be freed */
#define OWNER_REFUSED 2u /* the receiver has given the connection up, or never made it */
/* for a moment: the receiver probes a claimant that seems dead, and may give the slot back to it */
#define OWNER_ASKED 3u

/* Returns the owner word of a slot that the NIC with this address has claimed. */
static inline uint64_t address_word(uint32_t nid, uint32_t pid)
{
    return (uint64_t)nid << 32 | pid;
}

#define SEGMENT_CLOSED 1u /* the owner has left for good */
/* a sender has found no free slot: the receiver should free those of dead senders */
#define SEGMENT_SWEEP 2u
#define SEGMENT_LEFT 4u  /* a sender has left its slot */
#define SEGMENT_ASKED 8u /* a sender has sent an ask: see `asked` */

/* The core of a waiting thread, counted from 1 (0: none), and the time when it was there. */
#define CORE_BITS 16
#define CORE_TIME_NS 1000000 /* unit of that time, by the host's monotonic clock */
/* an entry so many units old is ignored: the thread sleeps, is stopped, or computes */
#define CORE_FRESH 10u

static inline uint64_t core_word(int core, int64_t now)
{
    return (uint64_t)now / CORE_TIME_NS << CORE_BITS | (uint64_t)(core + 1);
}

/* Returns the core on which a thread of another process waits, or -1. That process may have read
 * the clock later than the caller. */
static inline int core_of(uint64_t word, int64_t now)
{
    uint64_t age = (uint64_t)now / CORE_TIME_NS - (word >> CORE_BITS) + 1;
    return age <= CORE_FRESH ? (int)(word & ((1u << CORE_BITS) - 1)) - 1 : -1;
}

#define SEGMENT_HEADER_BYTES 4096u
#define SEGMENT_SLOTS_AT (SEGMENT_HEADER_BYTES + FABRIC_STATS)
_Static_assert(sizeof(struct segment_header) <= SEGMENT_HEADER_BYTES, "header fits its page");
_Static_assert(offsetof(struct segment_header, owner) - offsetof(struct segment_header, doorbell) ==
                   64,
               "doorbell and bitmap share one line");

enum slot_ready { SLOT_UNREADY, SLOT_READY, SLOT_LEFT };

/* The indices of a ring and its cells. They grow without bound, and are masked on use. */
struct channel_index {
    /* The consumer writes these: */
    _Alignas(64) _Atomic uint64_t head; /* lines that it has taken out */
    _Atomic uint64_t cells_head;
    _Atomic uint32_t by_packet; /* its handlers took the last long payload packet by packet */
    /* The producer writes these: */
    _Alignas(64) _Atomic uint64_t cells_tail;
    _Atomic uint32_t want; /* the producer waits until head or cells_head moves */
    /* number of all cells; or 0: only the first ones are in use; changes when all are empty */
    _Atomic uint32_t cells_used;
};

struct slot {
    /* The sender writes these, before `ready`: */
    _Atomic uint32_t ready; /* enum slot_ready */
    uint32_t nid, pid;
    int32_t process;
    uint64_t incarnation;
    uint32_t asymmetric;
    /* The receiver writes this: */
    _Alignas(64) _Atomic uint32_t references; /* the receiver can read the sender's memory */
    struct channel_index channel[FABRIC_CLASSES];
};

#define SLOT_HEADER_BYTES 512u
_Static_assert(sizeof(struct slot) <= SLOT_HEADER_BYTES, "slot header fits");

/* How the payload of a record travels. */
enum record_mode {
    RECORD_PAD = 1, /* no message: the ring wraps after this record */
    RECORD_INLINE,  /* it is in the record */
    RECORD_CELLS,   /* `length` bytes go through the cells */
    RECORD_REF      /* the receiver reads `length` bytes at `address` in the sender's memory */
};

/* word = | mode 4 | inline bytes 16 | lines 8 | tag 2 |. The sender stores it last, which publishes
 * the record. The tag alternates between 1 and 2 from lap to lap: so a word of the last lap, or 0,
 * is no record. */
struct record {
    _Atomic uint32_t word;
    _Atomic uint32_t status; /* sender: the payload is unreadable; receiver: how a REF has ended */
    union {
        uint8_t header[FABRIC_HEADER];
        _Atomic uint64_t words[FABRIC_HEADER / 8];
    };
    union {
        /* RECORD_INLINE: the payload begins here, and continues in the next lines */
        uint8_t data[8];
        uint64_t length;
    };
    uint64_t address; /* RECORD_REF, in the second line */
};

#define RECORD_LINE 64u
_Static_assert(offsetof(struct record, data) == 56, "eight bytes travel in the first line");
_Static_assert(offsetof(struct record, address) == 64, "a reference takes two lines");

#define RECORD_TAG 3u
#define RECORD_BYTES_AT 10
/* In `bytes` of RECORD_CELLS: its only cell was filled before the record. */
#define RECORD_WHOLE 1u

/* Returns the tag of a record that begins at this line; lines are counted without wrapping. */
static inline uint32_t record_tag(uint64_t line, uint64_t line_mask)
{
    return (line & (line_mask + 1)) != 0 ? 2 : 1;
}

static inline uint32_t record_word(enum record_mode mode, size_t bytes, size_t lines, uint32_t tag)
{
    return tag | (uint32_t)lines << 2 | (uint32_t)bytes << RECORD_BYTES_AT | (uint32_t)mode << 26;
}

static inline size_t record_lines(uint32_t word)
{
    return (word >> 2) & 0xff;
}

static inline size_t record_bytes(uint32_t word)
{
    return (word >> RECORD_BYTES_AT) & 0xffff;
}

static inline unsigned record_mode(uint32_t word)
{
    return (word >> 26) & 15;
}

/* Returns the number of lines of a record with `bytes` of payload inside. */
static inline size_t inline_lines(size_t bytes)
{
    return 1 + (bytes > 8 ? (bytes - 8 + RECORD_LINE - 1) / RECORD_LINE : 0);
}

/* Returns the number of lines of the longest record: half a ring, so that a pad always leaves room
 * for it, and no more than the word can express. */
static inline size_t record_max_lines(uint32_t ring_lines)
{
    return ring_lines / 2 < 255 ? ring_lines / 2 : 255;
}

/* A ring of asks is short, since each ask waits for its answer. */
#define ASK_LINES 16u
#define ASK_CELLS 2u
/* the classes before FABRIC_ASK have rings and cells of the full size */
#define LARGE_CLASSES FABRIC_ASK

/* Return the lines of a class's ring, the number of its first cells, and that of all its cells. */
static inline uint32_t class_lines(unsigned class, uint32_t ring_lines)
{
    return class == FABRIC_ASK && ring_lines > ASK_LINES ? ASK_LINES : ring_lines;
}

static inline uint32_t class_cells_first(unsigned class, const struct segment_info *g)
{
    return class == FABRIC_ASK ? ASK_CELLS : g->cells_first;
}

static inline uint32_t class_cells(unsigned class, const struct segment_info *g)
{
    return class == FABRIC_ASK ? ASK_CELLS : g->cells;
}

/* Returns the bytes of a slot with such rings and cells, in whole pages. */
static inline uint64_t slot_size(uint64_t ring_lines, uint64_t cells, uint64_t cell_size)
{
    uint64_t asks = class_lines(FABRIC_ASK, (uint32_t)ring_lines) * RECORD_LINE;
    uint64_t bytes = SLOT_HEADER_BYTES + asks + ASK_CELLS * cell_size +
                     LARGE_CLASSES * (ring_lines * RECORD_LINE + cells * cell_size);
    return (bytes + 4095) & ~(uint64_t)4095;
}

/* Returns how many bytes of a slot a sender backs with memory when it claims the slot. */
static inline uint64_t slot_first(const struct segment_info *g)
{
    return slot_size(g->ring_lines, g->cells_first, g->cell_size);
}

static inline uint8_t *slot_ring(struct slot *s, unsigned class, uint32_t ring_lines)
{
    return (uint8_t *)s + SLOT_HEADER_BYTES + class * (uint64_t)ring_lines * RECORD_LINE;
}

/* The cells of asks lie behind their ring; those of the other classes lie behind these. */
static inline uint8_t *slot_cells(struct slot *s, unsigned class, const struct segment_info *g)
{
    uint8_t *asks = slot_ring(s, FABRIC_ASK, g->ring_lines) +
                    class_lines(FABRIC_ASK, g->ring_lines) * (size_t)RECORD_LINE;
    return class == FABRIC_ASK
               ? asks
               : asks + (ASK_CELLS + class * (uint64_t)g->cells_first) * g->cell_size;
}

/* The other cells of a class that has more than the first ones: how many bytes they take, and where
 * they lie in the slot. */
static inline uint64_t more_cells_bytes(const struct segment_info *g)
{
    return (uint64_t)(g->cells - g->cells_first) * g->cell_size;
}

static inline uint64_t more_cells_offset(unsigned class, const struct segment_info *g)
{
    return SLOT_HEADER_BYTES + class_lines(FABRIC_ASK, g->ring_lines) * (uint64_t)RECORD_LINE +
           LARGE_CLASSES * (uint64_t)g->ring_lines * RECORD_LINE +
           (ASK_CELLS + LARGE_CLASSES * (uint64_t)g->cells_first) * g->cell_size +
           class * more_cells_bytes(g);
}

/* The cells of a channel, as sender and receiver both see them. */
struct cells {
    /* `more` points to where the first cells would be if they lay before the others */
    uint8_t *first, *more;
    uint32_t count; /* number of the first cells */
    uint32_t mask;  /* number of cells in use, less one */
    uint32_t size;
};

static inline void cells_attach(struct cells *c, struct slot *s, unsigned class,
                                const struct segment_info *g)
{
    c->count = class_cells_first(class, g);
    c->mask = c->count - 1;
    c->size = g->cell_size;
    c->first = slot_cells(s, class, g);
    c->more = class == FABRIC_ASK
                  ? NULL
                  : (uint8_t *)s + more_cells_offset(class, g) - (uint64_t)c->count * c->size;
}

static inline uint8_t *cell_at(const struct cells *c, uint64_t index)
{
    uint64_t at = index & c->mask;
    return (at < c->count ? c->first : c->more) + at * c->size;
}

/* Returns how many cells, from this one on, follow each other in memory. */
static inline uint64_t cells_in_row(const struct cells *c, uint64_t index)
{
    uint64_t at = index & c->mask;
    return (at < c->count ? c->count : c->mask + 1) - at;
}

#endif
