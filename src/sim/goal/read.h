/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that make and read the forms of a schedule: the check of the binary form, the compiler
 * of text, and the side file of labels and lines. They are for src/sim/goal and the command
 * `pinwheel goal`; code that only walks schedules needs goal.h alone.
 */
#ifndef SIM_GOAL_READ_H
#define SIM_GOAL_READ_H

#include "file.h"

/* A binary schedule begins with a cookie. LogGOPSim with --save-mem destroys the schedule file
 * while it reads it, and marks that by this number in place of the cookie. */
enum { GOAL_COOKIE_SPENT = 2342 };

/* goal_check() checks a binary schedule in memory, of `length` bytes, and sets the members of `g`.
 * Returns 0, or -1 with `error` set. */
int goal_check(struct goal *g, const uint8_t *image, uint64_t length, const char *name,
               struct goal_error *error);

/* ---- Text ---- */

/* The text of a file, mapped; text from a pipe is copied to a temporary file first. */
struct goal_text {
    const char *name;
    const char *at;
    size_t length;
    int fd;
};

/* goal_text_open() opens `path`; "-" is standard input. Returns 0, or -1 with `error` set. It opens
 * binary schedules, too. */
int goal_text_open(struct goal_text *t, const char *path, struct goal_error *error);
int goal_text_open_fd(struct goal_text *t, int fd, const char *name, struct goal_error *error);
void goal_text_close(struct goal_text *t);

/* How many ranks and operations were compiled. */
struct goal_made {
    uint32_t ranks;
    uint64_t nodes;
};

/* goal_compile() compiles text to a binary schedule in the file `bin_fd`, and writes labels and
 * lines to the file `side_fd` unless that is -1. The flags are those of goal_open(). Returns 0, or
 * -1 with `error` set: file, line and column, the line itself with a caret below, and what was
 * expected. */
int goal_compile(const struct goal_text *t, unsigned flags, int bin_fd, int side_fd,
                 struct goal_made *made, struct goal_error *error);

/* ---- The side file ---- */

/* Where the text has an operation; `label` points into the text. */
struct goal_origin {
    const char *label;
    uint64_t line;         /* 0: none */
    uint32_t label_length; /* 0: none */
    uint32_t source;       /* number from goal_side_source(); 0: the first source */
};

struct goal_side_writer {
    int fd;
    uint32_t ranks;
    uint64_t end; /* where the last rank's part ends */
    struct goal_stream table;
    struct goal_stream data;
    char *names; /* names of the sources, one after the other */
    size_t names_length;
};

/* goal_side_open() begins a side file of `ranks` ranks. goal_side_source() adds the name of a text
 * that operations come from, and stores a number for it; it may be called any number of times.
 * goal_side_rank() adds the next rank. goal_side_finish() completes the file when `bin_fd` is
 * complete, and frees the writer; goal_side_discard() only frees it. Each returns 0, or -1 with
 * `error` set. */
int goal_side_open(struct goal_side_writer *w, int fd, uint32_t ranks, struct goal_error *error);
int goal_side_source(struct goal_side_writer *w, const char *name, uint32_t *source,
                     struct goal_error *error);
int goal_side_rank(struct goal_side_writer *w, const struct goal_origin *origins, uint32_t count,
                   struct goal_error *error);
int goal_side_finish(struct goal_side_writer *w, int bin_fd, struct goal_error *error);
void goal_side_discard(struct goal_side_writer *w);

/* goal_side_path() returns the name of the side file of the binary `path`, which the caller frees;
 * NULL if memory is short. */
char *goal_side_path(const char *path);

/* goal_side_load() opens the side file in `fd`, or the file `path` if fd is -1. It returns NULL if
 * there is none or if it belongs to another binary than `g`. */
struct goal_side *goal_side_load(const struct goal *g, const char *path, int fd);
bool goal_side_find(const struct goal_side *side, const struct goal *g, uint32_t rank,
                    uint32_t node, struct goal_place *place);
void goal_side_free(struct goal_side *side);

#endif
