/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing schedules: a builder collects the operations of one rank, a writer puts
 * rank after rank into a file. Memory is that of the largest rank.
 *
 *     goal_writer_open(&w, fd, ranks, &error)
 *     for each rank: goal_add(&b, ...), goal_requires(&b, ...), goal_writer_rank(&w, &b, &error)
 *     goal_writer_close(&w, &error)
 */
#ifndef SIM_GOAL_WRITE_H
#define SIM_GOAL_WRITE_H

#include "file.h"

/* `node` waits for `on`. */
struct goal_edge {
    uint32_t on;
    uint32_t node;
};

struct goal_edges {
    struct goal_edge *at;
    uint64_t count;
    uint64_t room;
};

/* One rank that is being put together. Zeroed is empty. */
struct goal_builder {
    struct goal_node *nodes;
    uint64_t count;
    uint64_t room;
    struct goal_edges done;  /* node requires on */
    struct goal_edges start; /* node irequires on */
    bool failed;             /* memory ran out, or a count 32 bits; nothing was added since */
    uint8_t highest_cpu;
    uint8_t highest_nic;
    /* The layout that goal_lay_out() makes of the rank. */
    uint32_t *roots;
    uint64_t roots_room;
    uint32_t *successors;
    uint64_t successors_room;
};

/* goal_add() adds an operation and returns its index. The caller has checked
 * `peer`; a calc has none (0), no tag and no nic. */
uint32_t goal_add(struct goal_builder *b, enum goal_type type, uint64_t size, uint32_t peer,
                  uint32_t tag, uint8_t cpu, uint8_t nic);

/* goal_requires(): `node` waits for the end of `on`, goal_irequires(): for its
 * start. Both were added before. Once more is once more to wait for. */
void goal_requires(struct goal_builder *b, uint32_t node, uint32_t on);
void goal_irequires(struct goal_builder *b, uint32_t node, uint32_t on);

/* goal_lay_out() makes roots and lists of successors, and returns them in `rank`
 * as they will stand in the file; valid until the builder is used again. Returns
 * 0, or -1 if the builder failed: too large for 32 bits or for memory. */
int goal_lay_out(struct goal_builder *b, struct goal_rank *rank);

/* goal_builder_clear() forgets the rank and keeps the memory;
 * goal_builder_free() gives it back. */
void goal_builder_clear(struct goal_builder *b);
void goal_builder_free(struct goal_builder *b);

/* A schedule that is being written to a file that can be written anywhere. */
struct goal_writer {
    int fd;
    uint32_t ranks;
    uint32_t written; /* ranks */
    uint64_t end;     /* of the last rank, counted from byte 8 */
    uint64_t nodes;
    uint8_t highest_cpu;
    uint8_t highest_nic;
    struct goal_stream table;
    struct goal_stream data;
};

/* goal_writer_open() begins a schedule of `ranks` (at least 1) at the beginning of
 * `fd`, which stays the caller's. goal_writer_rank() lays out the next rank,
 * writes it and clears the builder. goal_writer_close() completes the file, once
 * all ranks were written. Each returns 0, or -1 with `error` set; close (at any
 * time, once) frees what the writer holds. */
int goal_writer_open(struct goal_writer *w, int fd, uint32_t ranks, struct goal_error *error);
int goal_writer_rank(struct goal_writer *w, struct goal_builder *b, struct goal_error *error);
int goal_writer_close(struct goal_writer *w, struct goal_error *error);

#endif
