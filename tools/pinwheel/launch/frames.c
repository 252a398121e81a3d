/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames between `pinwheel run` and its agents; see frames.h. */
#include "frames.h"

#include "base/array.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { READ_BYTES = 65536, NOISE_MAX = 65536 };

/* Makes room for `length` more bytes at the queue's end. */
static bool reserve(struct frames *q, size_t length)
{
    size_t queued = q->end - q->start;
    if (q->start > 0 && (queued == 0 || q->capacity - q->end < length)) {
        memmove(q->bytes, q->bytes + q->start, queued);
        q->start = 0;
        q->end = queued;
    }
    return ARRAY_HOLDS(q->bytes, q->end + length, q->capacity, 4096);
}

bool frames_append(struct frames *q, const void *bytes, size_t length)
{
    if (length == 0) {
        return true; /* the queue may have no array yet */
    }
    if (!reserve(q, length)) {
        return false;
    }
    memcpy(q->bytes + q->end, bytes, length);
    q->end += length;
    return true;
}

bool frames_put(struct frames *q, enum frame_type type, int rank, const void *bytes, size_t length)
{
    uint8_t head[FRAME_HEAD] = {(uint8_t)type};
    uint16_t r = htons((uint16_t)rank);
    uint32_t l = htonl((uint32_t)length);
    memcpy(head + 2, &r, sizeof(r));
    memcpy(head + 4, &l, sizeof(l));
    if (!reserve(q, sizeof(head) + length)) {
        return false;
    }
    return frames_append(q, head, sizeof(head)) && frames_append(q, bytes, length);
}

bool frames_put_numbers(struct frames *q, enum frame_type type, int rank, uint32_t first,
                        uint32_t second, int count)
{
    uint32_t numbers[2] = {htonl(first), htonl(second)};
    return frames_put(q, type, rank, numbers, (size_t)count * sizeof(numbers[0]));
}

uint32_t frames_number(const struct frame *f, size_t i)
{
    uint32_t number;
    if (f->length < (i + 1) * sizeof(number)) {
        return 0;
    }
    memcpy(&number, f->bytes + i * sizeof(number), sizeof(number));
    return ntohl(number);
}

int frames_get(struct frames *q, struct frame *f)
{
    uint16_t rank;
    uint32_t length;
    const uint8_t *at = q->bytes + q->start;
    size_t have = q->end - q->start;
    if (have < FRAME_HEAD) {
        return 0;
    }
    memcpy(&rank, at + 2, sizeof(rank));
    memcpy(&length, at + 4, sizeof(length));
    length = ntohl(length);
    if (at[0] == 0 || at[0] >= FRAME_TYPES || at[1] != 0 || length > FRAME_MAX) {
        return -EPROTO;
    }
    if (have - FRAME_HEAD < length) {
        return 0;
    }
    *f = (struct frame){(enum frame_type)at[0], ntohs(rank), length, at + FRAME_HEAD};
    q->start += FRAME_HEAD + length;
    return 1;
}

int frames_greeting(struct frames *q, const uint8_t **noise, size_t *noise_length, char rest[64])
{
    static const char greeting[] = FRAMES_GREETING;
    const uint8_t *at = q->bytes + q->start;
    size_t have = q->end - q->start;
    const uint8_t *found = have > 0 ? memmem(at, have, greeting, sizeof(greeting) - 1) : NULL;
    const uint8_t *line = found != NULL ? found + sizeof(greeting) - 1 : NULL;
    const uint8_t *end = line != NULL ? memchr(line, '\n', have - (size_t)(line - at)) : NULL;
    if (end == NULL) {
        return have > NOISE_MAX ? -EPROTO : 0;
    }
    size_t length = (size_t)(end - line);
    if (length >= 64) {
        return -EPROTO;
    }
    memcpy(rest, line, length);
    rest[length] = '\0';
    *noise = at;
    *noise_length = (size_t)(found - at);
    q->start += (size_t)(end + 1 - at);
    return 1;
}

ssize_t frames_read(struct frames *q, int fd)
{
    if (!reserve(q, READ_BYTES)) {
        return -ENOMEM;
    }
    ssize_t n = read(fd, q->bytes + q->end, READ_BYTES);
    if (n < 0) {
        return errno == EINTR ? -EAGAIN : -errno;
    }
    q->end += (size_t)n;
    return n;
}

int frames_write(struct frames *q, int fd)
{
    while (q->start < q->end) {
        ssize_t n = write(fd, q->bytes + q->start, q->end - q->start);
        if (n < 0 && errno != EINTR) {
            return errno == EAGAIN ? 0 : -errno;
        }
        q->start += n > 0 ? (size_t)n : 0;
    }
    return 0;
}

void frames_free(struct frames *q)
{
    free(q->bytes);
    *q = (struct frames){0};
}
