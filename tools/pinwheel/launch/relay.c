/* SPDX-License-Identifier: BSD-3-Clause */
/* Labelled output; see relay.h. */
#include "relay.h"

#include "base/array.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LEAST = 4096 };

static void drop_queue(struct relay *relay)
{
    relay->broken = true;
    relay->start = 0;
    relay->end = 0;
}

static void queue_line(struct relay *relay, int rank, const char *line, size_t length)
{
    char label[16] = "";
    size_t n = relay->plain ? 0 : (size_t)snprintf(label, sizeof(label), "[%d] ", rank);
    if (relay->start > 0 && relay->start == relay->end) {
        relay->start = 0;
        relay->end = 0;
    } else if (relay->start > RELAY_QUEUE_MAX / 2) {
        memmove(relay->queue, relay->queue + relay->start, relay->end - relay->start);
        relay->end -= relay->start;
        relay->start = 0;
    }
    if (relay->broken) {
        return;
    }
    if (!ARRAY_HOLDS(relay->queue, relay->end + n + length + 1, relay->capacity, LEAST)) {
        fprintf(stderr, "pinwheel run: no memory for output of rank %d, it is dropped\n", rank);
        return;
    }
    char *at = relay->queue + relay->end;
    memcpy(at, label, n);
    memcpy(at + n, line, length);
    at[n + length] = '\n';
    relay->end += n + length + 1;
}

/* Appends bytes to the source's unfinished line. If the line would get too long, or memory is
 * short, it first queues the line as it is. */
static void extend_line(struct relay *relay, struct relay_source *s, const char *bytes, size_t n)
{
    if (s->length + n > RELAY_LINE_MAX ||
        !ARRAY_HOLDS(s->line, s->length + n, s->capacity, LEAST)) {
        if (s->length > 0) {
            queue_line(relay, s->rank, s->line, s->length);
        }
        s->length = 0;
        if (s->capacity < n) {
            queue_line(relay, s->rank, bytes, n);
            return;
        }
    }
    memcpy(s->line + s->length, bytes, n);
    s->length += n;
}

void relay_take(struct relay *relay, struct relay_source *s, const char *bytes, size_t length)
{
    const char *end = bytes + length;
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        if (newline == NULL) {
            extend_line(relay, s, bytes, (size_t)(end - bytes));
            return;
        }
        size_t n = (size_t)(newline - bytes);
        if (s->length == 0) {
            queue_line(relay, s->rank, bytes, n);
        } else {
            extend_line(relay, s, bytes, n);
            queue_line(relay, s->rank, s->line, s->length);
            s->length = 0;
        }
        bytes = newline + 1;
    }
}

bool relay_read(struct relay *relay, struct relay_source *source)
{
    char bytes[16384];
    if (source->fd < 0) {
        return false;
    }
    ssize_t n = relay->broken ? 0 : read(source->fd, bytes, sizeof(bytes));
    if (n > 0) {
        relay_take(relay, source, bytes, (size_t)n);
        return true;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return false;
    }
    relay_close(relay, source);
    return false;
}

void relay_close(struct relay *relay, struct relay_source *source)
{
    if (source->length > 0) {
        queue_line(relay, source->rank, source->line, source->length);
    }
    free(source->line);
    source->line = NULL;
    source->length = 0;
    source->capacity = 0;
    if (source->fd >= 0) {
        close(source->fd);
        source->fd = -1;
    }
}

void relay_write(struct relay *relay)
{
    size_t length = relay->end - relay->start;
    if (length == 0) {
        return;
    }
    /* If poll() reports a pipe as writable it takes PIPE_BUF bytes without blocking. */
    length = length < PIPE_BUF ? length : PIPE_BUF;
    ssize_t n = write(relay->out, relay->queue + relay->start, length);
    if (n >= 0) {
        relay->start += (size_t)n;
    } else if (errno != EAGAIN && errno != EINTR) {
        if (errno != EPIPE) {
            fprintf(stderr, "pinwheel run: cannot write the ranks' output: %s\n", strerror(errno));
        }
        drop_queue(relay);
    }
}

bool relay_full(const struct relay *relay)
{
    return relay->end - relay->start >= RELAY_QUEUE_MAX;
}

bool relay_empty(const struct relay *relay)
{
    return relay->start == relay->end;
}

void relay_free(struct relay *relay)
{
    free(relay->queue);
    relay->queue = NULL;
}
