/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Writing schedules: a builder collects the operations of one rank, a writer writes rank after rank
 * to a file. They need memory for the largest rank only.
 *
 *     goal_writer_open(&w, fd, ranks, &error)
 *     for each rank: goal_add(&b, ...), goal_requires(&b, ...), goal_writer_rank(&w, &b, &error)
 *     goal_writer_close(&w, &error)
 */
#ifndef SIM_GOAL_WRITE_H
#define SIM_GOAL_WRITE_H

#include "file.h"

/* A dependency: operation `node` waits for operation `on`. */
struct goal_edge {
    uint32_t on;
    uint32_t node;
};

struct goal_edges {
    struct goal_edge *at;
    uint64_t count;
    uint64_t room;
};

/* The rank that is being built. A zeroed struct is a rank without operations. */
struct goal_builder {
    struct goal_node *nodes;
    uint64_t count;
    uint64_t room;
    struct goal_edges done;  /* "requires" */
    struct goal_edges start; /* "irequires" */
    /* memory ran out, or a count exceeded 32 bits; nothing has been added since */
    bool failed;
    uint8_t highest_cpu;
    uint8_t highest_nic;
    /* What goal_lay_out() makes: the rank's lists as the file has them. */
    uint32_t *roots;
    uint64_t roots_room;
    uint32_t *successors;
    uint64_t successors_room;
};

/* goal_add() adds an operation and returns its index. The caller has checked `peer`; of a calc
 * peer, tag and nic are 0. */
uint32_t goal_add(struct goal_builder *b, enum goal_type type, uint64_t size, uint32_t peer,
                  uint32_t tag, uint8_t cpu, uint8_t nic);

/* goal_add_part() adds a part of the operation that was added last (goal.h). */
void goal_add_part(struct goal_builder *b, enum goal_type type, uint64_t size, uint32_t peer,
                   uint32_t tag, bool cycles);

/* goal_requires() makes `node` wait for the end of `on`, goal_irequires() for its start. Both
 * operations were added before. A dependency that is added twice counts twice. */
void goal_requires(struct goal_builder *b, uint32_t node, uint32_t on);
void goal_irequires(struct goal_builder *b, uint32_t node, uint32_t on);

/* goal_lay_out() makes the roots and the lists of successors, and sets `rank` to them, in the form
 * that the file has. They are valid until the builder is used again. Returns 0, or -1 if memory was
 * short or a count exceeded 32 bits. */
int goal_lay_out(struct goal_builder *b, struct goal_rank *rank);

/* goal_builder_clear() removes the rank's operations and keeps the memory; goal_builder_free()
 * frees the memory. */
void goal_builder_clear(struct goal_builder *b);
void goal_builder_free(struct goal_builder *b);

/* The state of writing a schedule to a file, which must be seekable. */
struct goal_writer {
    int fd;
    uint32_t ranks;
    uint32_t written; /* ranks that were written */
    uint64_t end;     /* where the last rank's part ends, counted from byte 8 */
    uint64_t nodes;
    uint8_t highest_cpu;
    uint8_t highest_nic;
    struct goal_stream table;
    struct goal_stream data;
};

/* goal_writer_open() begins a schedule of `ranks` (at least 1) at the beginning of the file `fd`,
 * which the caller closes. goal_writer_rank() lays out the next rank, writes it and clears the
 * builder. goal_writer_close() completes the file when all ranks were written, and frees the
 * writer; it is called once, also after a failure. Each returns 0, or -1 with `error` set. */
int goal_writer_open(struct goal_writer *w, int fd, uint32_t ranks, struct goal_error *error);
int goal_writer_rank(struct goal_writer *w, struct goal_builder *b, struct goal_error *error);
int goal_writer_close(struct goal_writer *w, struct goal_error *error);

#endif
