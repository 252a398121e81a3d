/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layout of a shared-memory segment. Every NIC has one; its peers map it
 * and write to it.
 *
 *   segment   | header: constants | doorbell line | owner words | stats | slot 0 | slot 1 | ...
 *   stats     what the NIC tells of itself to whoever looks; peers do not
 *   slot      | who sends | channel REQUEST, RESPONSE, ASK: indices | ring | ring |
 *             | ring and cells of asks | first cells | first cells | more cells | more cells |
 *   ring      64-byte lines; a record is one or more of them
 *   cells     packets of payload, handed over in order; a payload of one before its record
 *
 * A channel begins with its first cells. A sender that has passed several
 * times through them waits until they are empty, backs the rest with memory and uses
 * all from then on: what does not fit the cache of one core passes from core to core
 * through the shared cache, several times faster than line by line. Cell i is then
 * at i modulo the number in use, which `cells_used` says. The ASK channel is small, and has no more
 * cells than its first ones.
 *
 * Only the receiver's own segment holds what it receives. docs/architecture.md,
 * invariant set 3, has the life cycles. Slots are sparse: the sender that claims one has it
 * backed with memory first, up to `slot_first` bytes.
 */
#ifndef FABRIC_SHM_LAYOUT_H
#define FABRIC_SHM_LAYOUT_H

#include "fabric/fabric.h"

#include <stdatomic.h>

#define SEGMENT_MAGIC 0x4c4545485750494eull
#define SEGMENT_VERSION 8u
#define SLOTS_MAX 448u
#define SLOT_WORDS (SLOTS_MAX / 64)

/* Constant from before the segment has a name. Readers copy it, check the copy
 * and use the copy. */
struct segment_info {
    uint64_t magic;
    uint32_t version;
    uint32_t header_bytes;
    uint64_t incarnation;
    uint64_t cookie; /* the value at cookie_at in the owner's memory */
    uint64_t cookie_at;
    uint32_t nid, pid;
    int32_t process;
    uint32_t asymmetric; /* the owner answers membarrier */
    uint32_t slots, ring_lines, cells, cells_first, cell_size;
    uint32_t own_only;   /* the owner's peers come through another fabric */
    uint64_t slot_bytes; /* all of a slot */
    uint64_t file_bytes;
    uint64_t pid_namespace; /* in which `process` is a number; 0: not known */
};

struct segment_header {
    struct segment_info info;
    _Atomic uint64_t core; /* where a thread of the owner waits, written by it: CORE_... */

    /* The doorbell line, written by all. */
    _Alignas(64) _Atomic uint32_t doorbell;
    _Atomic uint32_t flags; /* SEGMENT_... */
    _Atomic uint64_t bitmap[SLOT_WORDS];

    /* The claimant of a slot: NID << 32 | PID, 0 when it is free, or OWNER_...: its claimant sees
     * by it that what it writes there is not looked at any more. */
    _Alignas(64) _Atomic uint64_t owner[SLOTS_MAX];

    /* A bit a slot whose sender has asked, set before SEGMENT_ASKED. */
    _Alignas(64) _Atomic uint64_t asked[SLOT_WORDS];
};

/* The owner words of slots that nobody may have; they are no addresses (PIDs of NID 0 do not
 * exist). The claimant may still write there; the slot is free when it is gone, or if it kept the
 * rules, when it has left. */
#define OWNER_BANNED 1u  /* it broke the rules; or the slot is just about to be freed */
#define OWNER_REFUSED 2u /* the receiver has given the connection up, or never made it */
#define OWNER_ASKED 3u   /* for a moment: who seems to be dead is asked, and may have it again */

/* The owner word of a slot that who has this address has claimed. */
static inline uint64_t address_word(uint32_t nid, uint32_t pid)
{
    return (uint64_t)nid << 32 | pid;
}

#define SEGMENT_CLOSED 1u /* the owner has left for good */
#define SEGMENT_SWEEP 2u  /* a sender found no free slot: the dead ones' are wanted */
#define SEGMENT_LEFT 4u   /* a sender has left its slot */
#define SEGMENT_ASKED 8u  /* a sender has asked: `asked` */

/* The core of a waiting thread, from 1 (0: it tells of none), and when it was there. */
#define CORE_BITS 16
#define CORE_TIME_NS 1000000 /* a unit of the time, of the host's monotonic clock */
#define CORE_FRESH 10u       /* so old is too old: it sleeps, is stopped, or computes */

static inline uint64_t core_word(int core, int64_t now)
{
    return (uint64_t)now / CORE_TIME_NS << CORE_BITS | (uint64_t)(core + 1);
}

/* Returns the core on which a thread of another process waits, or -1. That process may have read
 * the clock later than this one. */
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

/* One ring and its cells: indices grow without bound and are masked on use. */
struct channel_index {
    /* written by the consumer */
    _Alignas(64) _Atomic uint64_t head; /* lines taken out */
    _Atomic uint64_t cells_head;
    _Atomic uint32_t by_packet; /* handlers took the last long payload packet by packet */
    /* written by the producer */
    _Alignas(64) _Atomic uint64_t cells_tail;
    _Atomic uint32_t want;       /* the producer waits for head or cells_head to move */
    _Atomic uint32_t cells_used; /* all cells, or 0: the first ones; changes when all are empty */
};

struct slot {
    /* written by the sender, before `ready` */
    _Atomic uint32_t ready; /* enum slot_ready */
    uint32_t nid, pid;
    int32_t process;
    uint64_t incarnation;
    uint32_t asymmetric;
    /* written by the receiver */
    _Alignas(64) _Atomic uint32_t references; /* it can read the sender's memory */
    struct channel_index channel[FABRIC_CLASSES];
};

#define SLOT_HEADER_BYTES 512u
_Static_assert(sizeof(struct slot) <= SLOT_HEADER_BYTES, "slot header fits");

/* How the payload of a record travels. */
enum record_mode {
    RECORD_PAD = 1, /* nothing: the ring wraps here */
    RECORD_INLINE,  /* in the record */
    RECORD_CELLS,   /* `length` bytes through the cells */
    RECORD_REF      /* `length` bytes at `address` in the sender's memory */
};

/* word = | mode 4 | inline bytes 16 | lines 8 | tag 2 |, published last. The tag is 1
 * and 2 in turn, lap by lap: a word of the lap before, or 0, is no record. */
struct record {
    _Atomic uint32_t word;
    _Atomic uint32_t status; /* sender: payload unreadable; receiver: how a REF ended */
    union {
        uint8_t header[FABRIC_HEADER];
        _Atomic uint64_t words[FABRIC_HEADER / 8];
    };
    union {
        uint8_t data[8]; /* RECORD_INLINE: goes on in the lines that follow */
        uint64_t length;
    };
    uint64_t address; /* RECORD_REF, in the second line */
};

#define RECORD_LINE 64u
_Static_assert(offsetof(struct record, data) == 56, "eight bytes travel in the first line");
_Static_assert(offsetof(struct record, address) == 64, "a reference takes two lines");

#define RECORD_TAG 3u
#define RECORD_BYTES_AT 10
#define RECORD_WHOLE 1u /* as `bytes` of RECORD_CELLS: its only cell was filled before it */

/* The tag of records that begin at this line, counted without wrapping. */
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

/* Lines of a record with `bytes` of payload inside. */
static inline size_t inline_lines(size_t bytes)
{
    return 1 + (bytes > 8 ? (bytes - 8 + RECORD_LINE - 1) / RECORD_LINE : 0);
}

/* The longest record: half a ring, so that padding always leaves room, and
 * what the word can say. */
static inline size_t record_max_lines(uint32_t ring_lines)
{
    return ring_lines / 2 < 255 ? ring_lines / 2 : 255;
}

/* Each ask waits for its answer, so there are never many on their way. */
#define ASK_LINES 16u
#define ASK_CELLS 2u
#define LARGE_CLASSES FABRIC_ASK /* the classes before it have rings and cells of the full size */

/* The lines of a class's ring; its first cells; all of them. */
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

/* The size of a slot with these rings, in whole pages. */
static inline uint64_t slot_size(uint64_t ring_lines, uint64_t cells, uint64_t cell_size)
{
    uint64_t asks = class_lines(FABRIC_ASK, (uint32_t)ring_lines) * RECORD_LINE;
    uint64_t bytes = SLOT_HEADER_BYTES + asks + ASK_CELLS * cell_size +
                     LARGE_CLASSES * (ring_lines * RECORD_LINE + cells * cell_size);
    return (bytes + 4095) & ~(uint64_t)4095;
}

/* Bytes of a slot that are backed with memory when it is claimed. */
static inline uint64_t slot_first(const struct segment_info *g)
{
    return slot_size(g->ring_lines, g->cells_first, g->cell_size);
}

static inline uint8_t *slot_ring(struct slot *s, unsigned class, uint32_t ring_lines)
{
    return (uint8_t *)s + SLOT_HEADER_BYTES + class * (uint64_t)ring_lines * RECORD_LINE;
}

/* The cells of asks come behind their ring, those of the other classes behind these. */
static inline uint8_t *slot_cells(struct slot *s, unsigned class, const struct segment_info *g)
{
    uint8_t *asks = slot_ring(s, FABRIC_ASK, g->ring_lines) +
                    class_lines(FABRIC_ASK, g->ring_lines) * (size_t)RECORD_LINE;
    return class == FABRIC_ASK
               ? asks
               : asks + (ASK_CELLS + class * (uint64_t)g->cells_first) * g->cell_size;
}

/* Where the other cells of a class lie in their slot, if it is one that has more than the first
 * ones, and how many bytes they take. */
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

/* The cells of a channel, as each end sees them. */
struct cells {
    uint8_t *first, *more; /* more: as if it began with the first cells */
    uint32_t count;        /* of the first cells */
    uint32_t mask;         /* number in use, less one */
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

/* How many cells lie one behind the other from that one on. */
static inline uint64_t cells_in_row(const struct cells *c, uint64_t index)
{
    uint64_t at = index & c->mask;
    return (at < c->count ? c->count : c->mask + 1) - at;
}

#endif
