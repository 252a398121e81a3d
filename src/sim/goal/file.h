/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that schedules are written to. A stream is a buffer in front of a file,
 * written at an offset of its own, so that the table at the head of a schedule
 * and the ranks behind it grow at the same time without either being kept in
 * memory. An output is a file that appears under its name only when it is complete.
 */
#ifndef SIM_GOAL_FILE_H
#define SIM_GOAL_FILE_H

#include "goal.h"

#include <string.h>

enum { GOAL_STREAM_BUFFER = 1 << 18 };

struct goal_stream {
    int fd;
    bool sequential; /* a pipe: written in order, from where it stands */
    int failed;      /* errno of the first write that failed, else 0 */
    uint64_t at;     /* where in the file the buffer begins */
    size_t used;
    uint8_t *buffer;
};

/* goal_stream_open() makes a stream that writes to `fd` from offset `at` on;
 * returns 0 or -ENOMEM. goal_stream_append() opens one for a pipe or terminal. */
int goal_stream_open(struct goal_stream *s, int fd, uint64_t at);
int goal_stream_append(struct goal_stream *s, int fd);

/* goal_stream_flush() writes what is buffered; failures are kept in `failed`. */
void goal_stream_flush(struct goal_stream *s);

/* goal_stream_close() flushes and frees; returns 0 or -errno of the first failure. */
int goal_stream_close(struct goal_stream *s);

/* goal_stream_long() is goal_stream_put() for what does not fit the buffer. */
void goal_stream_long(struct goal_stream *s, const void *data, size_t length);

static inline void goal_stream_put(struct goal_stream *s, const void *data, size_t length)
{
    if (length > GOAL_STREAM_BUFFER - s->used) {
        goal_stream_long(s, data, length);
        return;
    }
    if (length > 0) { /* data may be NULL */
        memcpy(s->buffer + s->used, data, length);
        s->used += length;
    }
}

/* A file that is being written. */
struct goal_output {
    int fd;
    char *path;
    char *partial; /* its name until it is complete; NULL: written in place (a device) */
};

/* goal_output_open() creates the file that becomes `path`. Returns 0, or -1 with
 * `error` set. */
int goal_output_open(struct goal_output *o, const char *path, struct goal_error *error);

/* goal_output_commit() gives the file its name, which replaces an older one;
 * goal_output_discard() removes it. Both close it. Commit returns 0, or -1 with
 * `error` set and the file removed. */
int goal_output_commit(struct goal_output *o, struct goal_error *error);
void goal_output_discard(struct goal_output *o);

/* Writes a schedule: as text into the stream, or, where `text` is NULL, into the file. Returns 0,
 * or -1 with `error` set. */
typedef int goal_writing(void *context, int fd, struct goal_stream *text, struct goal_error *error);

/* goal_write_text() has `write` write text to `fd`. goal_write() has it write a file, as text or
 * not, that appears under the name `path` when it is complete; text without a path, or to "-", goes
 * to standard output (goal_writes_out()). */
int goal_write_text(int fd, goal_writing *write, void *context, struct goal_error *error);
int goal_write(const char *path, bool as_text, goal_writing *write, void *context,
               struct goal_error *error);
static inline bool goal_writes_out(const char *path, bool as_text)
{
    return as_text && (path == NULL || strcmp(path, "-") == 0);
}

/* goal_temporary() opens a file without a name, in TMPDIR or else /var/tmp.
 * Returns the descriptor, or -1 with `error` set. */
int goal_temporary(struct goal_error *error);

/* goal_fail() sets `error` and returns -1. */
int goal_fail(struct goal_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
