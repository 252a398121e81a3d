/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Output of many processes on one descriptor, line by line, each line labelled
 * "[rank] " unless the relay is plain.
 *
 *     source (pipe of rank 0) -- unfinished line --+
 *     source (pipe of rank 1) -- unfinished line --+--> queue --> out
 *
 * Only whole lines enter the queue, so lines of two ranks never mix. A last line without newline
 * gets one. A line longer than RELAY_LINE_MAX is cut into pieces, each a labelled line, so that
 * memory is bounded: one such line for each source, and RELAY_QUEUE_MAX plus one read for the
 * queue. While relay_full() is true the launcher does not read the pipes, so the processes that
 * write to them wait.
 */
#ifndef PINWHEEL_RELAY_H
#define PINWHEEL_RELAY_H

#include <stdbool.h>
#include <stddef.h>

enum { RELAY_LINE_MAX = 1 << 20, RELAY_QUEUE_MAX = 1 << 20 };

struct relay {
    int out;
    bool plain;  /* lines get no labels */
    bool broken; /* `out` cannot be written; output is dropped */
    char *queue;
    size_t start, end, capacity;
};

struct relay_source {
    int fd; /* non-blocking; -1: closed */
    int rank;
    char *line;
    size_t length, capacity;
};

/* relay_read() reads once from the source. It returns false when there is nothing to read now, when
 * the source has ended, or when `out` is broken; in the last two cases it closes the source. */
bool relay_read(struct relay *relay, struct relay_source *source);

/* relay_take() is relay_read() for bytes that the launcher received in another way; the source has
 * no descriptor. */
void relay_take(struct relay *relay, struct relay_source *source, const char *bytes, size_t length);

/* relay_close() queues the unfinished line of a source and closes it. */
void relay_close(struct relay *relay, struct relay_source *source);

/* relay_write() writes some of the queue. It does not block if poll() has reported `out` as
 * writable. */
void relay_write(struct relay *relay);

bool relay_full(const struct relay *relay);
bool relay_empty(const struct relay *relay);

void relay_free(struct relay *relay);

#endif
