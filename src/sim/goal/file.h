/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files that schedules are written to. A stream is a buffer in front of a file, which it writes at
 * an offset of its own: so the table at the head of a schedule and the ranks behind it can be
 * written at the same time, and neither is kept in memory. An output is a file that gets its name
 * only when it is complete.
 */
#ifndef SIM_GOAL_FILE_H
#define SIM_GOAL_FILE_H

#include "goal.h"

#include <string.h>

enum { GOAL_STREAM_BUFFER = 1 << 18 };

struct goal_stream {
    int fd;
    bool sequential; /* for a pipe or terminal: written in order, from the current position on */
    int failed;      /* errno of the first write that failed, else 0 */
    uint64_t at;     /* offset in the file at which the buffer's bytes belong */
    size_t used;
    uint8_t *buffer;
};

/* goal_stream_open() makes a stream that writes to `fd` from offset `at` on;
 * returns 0 or -ENOMEM. goal_stream_append() opens one for a pipe or terminal. */
int goal_stream_open(struct goal_stream *s, int fd, uint64_t at);
int goal_stream_append(struct goal_stream *s, int fd);

/* goal_stream_flush() writes the buffer; if that fails it sets `failed`. */
void goal_stream_flush(struct goal_stream *s);

/* goal_stream_close() flushes and frees the stream; it returns 0, or -errno of the first
 * failure. */
int goal_stream_close(struct goal_stream *s);

/* goal_stream_long() is the part of goal_stream_put() for data that do not fit into the buffer. */
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
    /* the file's name until it is complete; NULL: the path is written in place (a device) */
    char *partial;
};

/* goal_output_open() creates a file under a temporary name, which becomes `path` later. Returns 0,
 * or -1 with `error` set. */
int goal_output_open(struct goal_output *o, const char *path, struct goal_error *error);

/* goal_output_commit() renames the file to its path, where it replaces an older one;
 * goal_output_discard() removes it. Both close it. goal_output_commit() returns 0, or -1 with
 * `error` set and the file removed. */
int goal_output_commit(struct goal_output *o, struct goal_error *error);
void goal_output_discard(struct goal_output *o);

/* A function that writes a schedule: as text to the stream `text`, or, if `text` is NULL, in binary
 * form to the file `fd`. Returns 0, or -1 with `error` set. */
typedef int goal_writing(void *context, int fd, struct goal_stream *text, struct goal_error *error);

/* goal_write_text() calls `write` to write text to `fd`. goal_write() calls it to write a file,
 * text or binary, that gets the name `path` when it is complete; text goes to standard output if
 * there is no path or if it is "-", which goal_writes_out() tells. */
int goal_write_text(int fd, goal_writing *write, void *context, struct goal_error *error);
int goal_write(const char *path, bool as_text, goal_writing *write, void *context,
               struct goal_error *error);
static inline bool goal_writes_out(const char *path, bool as_text)
{
    return as_text && (path == NULL || strcmp(path, "-") == 0);
}

/* goal_temporary() opens a file without a name, in the folder TMPDIR or else /var/tmp. Returns the
 * descriptor, or -1 with `error` set. */
int goal_temporary(struct goal_error *error);

/* goal_fail() sets `error` and returns -1. */
int goal_fail(struct goal_error *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
