/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions for the parts that read schedules: the check of binary ones, the
 * compiler of text, and the side file of labels and lines. For src/sim and the
 * command; who only walks schedules needs goal.h alone.
 */
#ifndef SIM_GOAL_READ_H
#define SIM_GOAL_READ_H

#include "file.h"

/* LogGOPSim --save-mem leaves this in place of the cookie, and a destroyed schedule. */
enum { GOAL_COOKIE_SPENT = 2342 };

/* goal_check() checks a binary schedule in memory and sets what `g` says of it.
 * Returns 0, or -1 with `error` set. */
int goal_check(struct goal *g, const uint8_t *image, uint64_t length, const char *name,
               struct goal_error *error);

/* ---- Text ---- */

/* A file's text, mapped; a pipe's is copied to a temporary file first. */
struct goal_text {
    const char *name;
    const char *at;
    size_t length;
    int fd;
};

/* goal_text_open() opens `path` ("-": standard input). Returns 0, or -1 with
 * `error` set. Binary schedules can be opened the same way. */
int goal_text_open(struct goal_text *t, const char *path, struct goal_error *error);
int goal_text_open_fd(struct goal_text *t, int fd, const char *name, struct goal_error *error);
void goal_text_close(struct goal_text *t);

/* The counts of a compilation. */
struct goal_made {
    uint32_t ranks;
    uint64_t nodes;
};

/* goal_compile() compiles text to a binary schedule in the file `bin_fd`, and
 * writes labels and lines to the file `side_fd` unless that is -1. Flags are those
 * of goal_open(). Returns 0, or -1 with `error` set: file, line and column, the
 * line itself with a caret below, what was expected. */
int goal_compile(const struct goal_text *t, unsigned flags, int bin_fd, int side_fd,
                 struct goal_made *made, struct goal_error *error);

/* ---- The side file ---- */

/* Where an operation stands in the text; `label` points into it. */
struct goal_origin {
    const char *label;
    uint64_t line;         /* 0: none */
    uint32_t label_length; /* 0: none */
    uint32_t source;       /* goal_side_source(); 0: the first */
};

struct goal_side_writer {
    int fd;
    uint32_t ranks;
    uint64_t end; /* of the last rank's part */
    struct goal_stream table;
    struct goal_stream data;
    char *names; /* of the sources, one after the other */
    size_t names_length;
};

/* goal_side_open() begins a side file; goal_side_source() names a text that operations
 * came from and gives what stands for it, as often as one likes;
 * goal_side_rank() adds the next rank; goal_side_finish() completes it once
 * `bin_fd` is complete, and frees what the writer holds. Each returns 0 or -1
 * with `error` set; goal_side_discard() only frees. */
int goal_side_open(struct goal_side_writer *w, int fd, uint32_t ranks, struct goal_error *error);
int goal_side_source(struct goal_side_writer *w, const char *name, uint32_t *source,
                     struct goal_error *error);
int goal_side_rank(struct goal_side_writer *w, const struct goal_origin *origins, uint32_t count,
                   struct goal_error *error);
int goal_side_finish(struct goal_side_writer *w, int bin_fd, struct goal_error *error);
void goal_side_discard(struct goal_side_writer *w);

/* The name of the side file of binary `path`; the caller frees it. NULL: no memory. */
char *goal_side_path(const char *path);

/* goal_side_load() opens the side file in `fd` (or of that path, if fd is -1) for
 * `g`; NULL if there is none or it belongs to another binary. */
struct goal_side *goal_side_load(const struct goal *g, const char *path, int fd);
bool goal_side_find(const struct goal_side *side, const struct goal *g, uint32_t rank,
                    uint32_t node, struct goal_place *place);
void goal_side_free(struct goal_side *side);

#endif
