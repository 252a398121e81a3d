/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * GOAL schedules: what each rank of a parallel program sends, receives and computes, and which of
 * these operations wait for which. docs/goal.md has both formats.
 *
 * All programs that run or analyse a schedule read its binary form, mapped read-only:
 *
 *     0   u64 cookie 4223
 *     8   u32 ranks, u8 highest cpu, u8 highest nic          <- offsets count from byte 8
 *    14   ranks x { u64 start, u64 end }
 *     start of a rank:
 *         u32 nodes, u32 roots, u32 root[roots],
 *         node[nodes] of 39 bytes, u32 successor[]           <- until the rank's end
 *
 * The first `done_count` successors of a node wait for its end ("requires"), the next `start_count`
 * for its start ("irequires"). All numbers are little-endian and need not be aligned: they are read
 * through the packed types below.
 *
 * Invariant: a schedule that goal_open() accepted is one that the compiler could
 * have written, byte for byte. In particular, for every rank and node
 *   - all counts, offsets and successor indices lie within the rank;
 *   - lists lie one after the other, so each successor belongs to one list;
 *   - `depends` is the number of times the node is named in lists, and the roots
 *     are the nodes with none, in ascending order;
 *   - types are those of enum goal_type; peers are ranks (or GOAL_ANY for recv and append);
 *     cpu and nic are at most the highest of the header; a calc has no peer, tag, nic;
 *   - a part is no operation: it lies behind the one that it says more about, with which other
 *     parts may lie in between; it has no lists, is in none, and is no root (operations.h).
 * So code that walks a schedule needs no checks. Dependencies may form cycles, whose nodes never
 * become ready. Nobody may change the file while it is open.
 */
#ifndef SIM_GOAL_H
#define SIM_GOAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { GOAL_COOKIE = 4223, GOAL_HEADER = 14, GOAL_SPAN = 16 };
enum goal_type {
    GOAL_SEND = 1,
    GOAL_RECV = 2,
    GOAL_CALC = 3,
    /* Portals: for simulated NICs only */
    GOAL_PUT = 4,
    GOAL_GET = 5,
    GOAL_ATOMIC = 6,
    GOAL_FETCH = 7,
    GOAL_SWAP = 8,
    GOAL_CAS = 9,
    GOAL_APPEND = 10, /* an entry for messages: peer, whose; tag, with which; size, its memory */
    GOAL_TEST = 11,   /* until counter `tag` has come to `size` */
    GOAL_COUNT = 12,  /* adds `size` to counter `tag` */
    GOAL_OPERATIONS,  /* above all of them */
    /* parts */
    GOAL_HEADER_HANDLER = 32, /* of an append: takes `size` ps, or cycles if `cpu` is 1, and `peer`
                                 of these more for each `tag` bytes of its packet (0: none) */
    GOAL_PAYLOAD_HANDLER = 33,
    GOAL_COMPLETION_HANDLER = 34,
    GOAL_DOES_PUT = 35,      /* of a handler, from its own memory: to `peer`, `size` bytes (0, of a
                                payload handler: its packet), with tag `tag` */
    GOAL_DOES_HOST_PUT = 36, /* the same from the entry's memory */
    GOAL_DOES_WRITE = 37,    /* `size` bytes to the entry's memory (0: as above) */
    GOAL_DOES_COUNT = 38,    /* adds `size` to counter `tag` */
    GOAL_WHEN = 39,          /* the operation is triggered: when counter `tag` comes to `size` */
    GOAL_COUNTS = 40,        /* counter `tag` counts acks, replies, or what an entry has taken */
    GOAL_USE_ONCE = 41,      /* an entry takes one message */
    GOAL_TYPES,              /* above all of them */
};

/* Any source (of a recv, an append) or any tag (of these, or of a send as in LogGOPSim). */
#define GOAL_ANY UINT32_MAX

/* A u32 at any address. */
typedef uint32_t goal_u32 __attribute__((aligned(1)));

/* An operation, in the form that it has in the file. */
struct goal_node {
    uint32_t depends; /* how many times lists of other nodes name this one as a successor */
    uint8_t type;     /* enum goal_type */
    uint32_t peer;    /* rank that it is to or from, or GOAL_ANY */
    uint64_t size;    /* bytes; of a calc its duration: in ns, or in ps with --calc-unit ps */
    uint32_t tag;
    uint8_t cpu;
    uint8_t nic;
    uint32_t done_count;  /* successors that wait for this operation's end */
    uint32_t done_first;  /* index of the first of them in goal_rank.successors */
    uint32_t start_count; /* successors that wait for this operation's start */
    uint32_t start_first; /* always done_first + done_count */
} __attribute__((packed));
_Static_assert(sizeof(struct goal_node) == 39, "a node of the binary format");

/* Where a rank's part begins and ends, counted from byte 8 of the file. */
struct goal_span {
    uint64_t start;
    uint64_t end;
} __attribute__((packed));

/* A schedule. Users read its members; goal_open() and goal_close() write them. */
struct goal {
    const uint8_t *base;           /* points to byte 8 of the file */
    const struct goal_span *spans; /* by rank */
    uint32_t ranks;                /* at least 1 */
    uint32_t cpus;                 /* highest cpu + 1 */
    uint32_t nics;                 /* highest nic + 1 */
    uint64_t nodes;                /* nodes of all ranks together */
    uint64_t sends;
    uint64_t recvs;
    uint64_t calcs;
    uint64_t portals; /* operations of Portals */
    uint64_t parts;
    uint64_t successors; /* successors of all ranks together: the number of dependencies */
    uint32_t most_nodes; /* number of nodes of the rank that has the most */
    /* Private. */
    void *map;
    size_t map_length;
    struct goal_side *side; /* labels and lines; loaded at the first goal_locate() */
    bool side_sought;
    char *path;
    int text_fd;    /* the text that the schedule was compiled from; -1: it was binary */
    unsigned flags; /* the flags that the text was compiled with */
};

/* A rank, seen through pointers into the mapping. */
struct goal_rank {
    const struct goal_node *nodes;
    const goal_u32 *roots;      /* indices of the nodes that wait for nothing */
    const goal_u32 *successors; /* the lists of all nodes of the rank */
    uint32_t node_count;
    uint32_t root_count;
};

/* The text of an error, in one to three lines without a final newline: the file, the place in it,
 * what was found there, and what was expected. */
struct goal_error {
    char text[2048];
};

/* Where the text of a schedule has an operation. `label` has no NUL at its end; length 0: the
 * operation has no label. */
struct goal_place {
    const char *file;
    uint64_t line; /* 0: no line is known, only a label */
    const char *label;
    uint32_t label_length;
};

enum goal_flags {
    GOAL_COMPAT = 1, /* of two equal labels the first counts, as in LogGOPSim's compiler */
};

/* goal_open() opens a schedule. A file that begins with the cookie is mapped and checked in one
 * pass. Any other file is taken for text and first compiled to a temporary file without a name (in
 * TMPDIR, else /var/tmp). Returns 0, or -1 with `error` set and nothing to close. */
int goal_open(struct goal *g, const char *path, unsigned flags, struct goal_error *error);

/* goal_open_image() opens a binary schedule in the caller's memory, which must stay until
 * goal_close(). `name` stands for the file in errors. */
int goal_open_image(struct goal *g, const void *image, size_t length, const char *name,
                    struct goal_error *error);

/* goal_close() unmaps the schedule; pointers into it become invalid. */
void goal_close(struct goal *g);

/* goal_locate() finds where node `node` of rank `rank` was written: in the text that goal_open()
 * compiled, or by the side file FILE.labels beside the binary. Returns false if there is no such
 * file or it belongs to another binary. The first call reads the whole schedule, so this is for
 * error messages and reports. The place is valid until goal_close(). */
bool goal_locate(struct goal *g, uint32_t rank, uint32_t node, struct goal_place *place);

static inline struct goal_rank goal_rank(const struct goal *g, uint32_t rank)
{
    const goal_u32 *p = (const goal_u32 *)(g->base + g->spans[rank].start);
    struct goal_rank r = {.node_count = p[0], .root_count = p[1], .roots = p + 2};
    r.nodes = (const struct goal_node *)(r.roots + r.root_count);
    r.successors = (const goal_u32 *)(r.nodes + r.node_count);
    return r;
}

static inline bool goal_is_part(const struct goal_node *n)
{
    return n->type > GOAL_OPERATIONS;
}

/* goal_part_count() returns how many parts are behind operation `node`. */
static inline uint32_t goal_part_count(const struct goal_rank *r, uint32_t node)
{
    uint32_t i = node + 1;
    while (i < r->node_count && goal_is_part(&r->nodes[i])) {
        i++;
    }
    return i - node - 1;
}

/* goal_successor_count() returns the length of all lists of a rank together. */
static inline uint64_t goal_successor_count(const struct goal *g, uint32_t rank)
{
    struct goal_rank r = goal_rank(g, rank);
    const uint8_t *end = g->base + g->spans[rank].end;
    return (uint64_t)(end - (const uint8_t *)r.successors) / 4;
}

static inline const goal_u32 *goal_done(const struct goal_rank *r, const struct goal_node *n)
{
    return r->successors + n->done_first;
}

static inline const goal_u32 *goal_start(const struct goal_rank *r, const struct goal_node *n)
{
    return r->successors + n->start_first;
}

#endif
