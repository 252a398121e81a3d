/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory in parts, and what should be in it; see matrix_kit.h. */
#include "matrix_kit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 0xa5, PACKET = 4096, FRONT = 64 };

const char *const shape_name[SHAPES] = {"plain", "one",   "small",    "uneven",
                                        "holes", "edges", "backwards"};
struct region region[REGIONS];

/* The length of the next part, `left` bytes before the end. */
static size_t cut(enum shape shape, unsigned index, size_t left, uint64_t *random)
{
    static const size_t edges[] = {PACKET - 1, 1, PACKET + 1, PACKET, PACKET - 2, 3};
    size_t length = left;
    switch (shape) {
    case SMALL:
        length = 1 + matrix_random(random) % 9;
        break;
    case UNEVEN:
        length = 1 + matrix_random(random) % (left / 3 + 1);
        break;
    case HOLES:
        length = index % 3 == 0 ? 0 : 1 + matrix_random(random) % (left / 2 + 1);
        break;
    case EDGES:
        length = edges[index % COUNT_OF(edges)];
        break;
    case BACKWARDS:
        length = left / 4 + 1;
        break;
    default:
        break;
    }
    return length < left ? length : left;
}

static void cut_parts(struct region *r, enum shape shape, uint64_t *random)
{
    size_t left = r->length;
    r->count = 0;
    do {
        bool last = r->count == REGION_PARTS - 2;
        size_t length = last ? left : cut(shape, r->count, left, random);
        r->part[r->count++].iov_len = length;
        left -= length;
    } while (left != 0);
    if (shape == HOLES) {
        r->part[r->count++].iov_len = 0;
    }
}

/* Gives each part its place, with guard bytes round it. */
static void place_parts(struct region *r, enum shape shape, uint64_t *random)
{
    size_t at = FRONT;
    for (unsigned i = 0; i < r->count; i++) {
        unsigned index = shape == BACKWARDS ? r->count - 1 - i : i;
        r->place[index] = at;
        at += r->part[index].iov_len + 1 + matrix_random(random) % 8;
    }
    r->size = at + FRONT;
}

static void reserve(struct region *r)
{
    if (r->size <= r->capacity) {
        return;
    }
    free(r->now);
    free(r->want);
    r->capacity = (r->size + 4095) / 4096 * 4096;
    r->now = aligned_alloc(64, r->capacity);
    r->want = aligned_alloc(64, r->capacity);
    if (r->now == NULL || r->want == NULL) {
        FAIL("no memory for a region of %zu bytes", r->size);
    }
}

enum way { INTO, OUT_OF };

/* Copies between `n` bytes of one of the two copies and a flat buffer. */
static void copy(const struct region *r, unsigned char *arena, size_t at, void *flat, size_t n,
                 enum way way)
{
    size_t begin = 0; /* of the part, in the region */
    if (at + n > r->length) {
        FAIL("the case is wrong: bytes %zu to %zu of a region of %zu", at, at + n, r->length);
    }
    for (unsigned i = 0; i < r->count && n != 0; begin += r->part[i++].iov_len) {
        size_t end = begin + r->part[i].iov_len;
        if (at >= end) {
            continue;
        }
        size_t piece = end - at < n ? end - at : n;
        unsigned char *here = arena + r->place[i] + (at - begin);
        memcpy(way == INTO ? (void *)here : flat, way == INTO ? flat : (void *)here, piece);
        flat = (char *)flat + piece;
        at += piece;
        n -= piece;
    }
}

/* The pattern is written to both copies in pieces. */
void region_fill(struct region *r, unsigned seed)
{
    unsigned char piece[8192];
    uint64_t state = seed + 1000003ull;
    memset(r->now, GUARD, r->size);
    memset(r->want, GUARD, r->size);
    for (size_t at = 0; at < r->length; at += sizeof(piece)) {
        size_t n = r->length - at < sizeof(piece) ? r->length - at : sizeof(piece);
        for (size_t i = 0; i < sizeof(piece); i += sizeof(uint64_t)) {
            uint64_t word = matrix_random(&state);
            memcpy(piece + i, &word, sizeof(word));
        }
        region_put(r, at, piece, n);
    }
}

void region_make(struct region *r, enum shape shape, size_t length, unsigned seed)
{
    uint64_t random = (uint64_t)shape * 1000 + length;
    r->iovec = shape != PLAIN;
    r->length = length;
    cut_parts(r, shape, &random);
    place_parts(r, shape, &random);
    reserve(r);
    for (unsigned i = 0; i < r->count; i++) {
        bool nowhere = shape == HOLES && r->part[i].iov_len == 0 && i % 2 == 0;
        r->part[i].iov_base = nowhere ? NULL : r->now + r->place[i];
    }
    region_fill(r, seed);
}

void region_put(struct region *r, size_t at, const void *bytes, size_t n)
{
    copy(r, r->now, at, (void *)bytes, n, INTO);
    copy(r, r->want, at, (void *)bytes, n, INTO);
}

void region_expect(struct region *r, size_t at, const void *bytes, size_t n)
{
    copy(r, r->want, at, (void *)bytes, n, INTO);
}

void region_wanted(const struct region *r, size_t at, void *bytes, size_t n)
{
    copy(r, r->want, at, bytes, n, OUT_OF);
}

void region_forgive(struct region *r, size_t at, size_t n)
{
    for (unsigned char byte = 0; n != 0; at++, n--) {
        copy(r, r->now, at, &byte, 1, OUT_OF);
        copy(r, r->want, at, &byte, 1, INTO);
    }
}

void region_move(struct region *to, size_t to_at, const struct region *from, size_t from_at,
                 size_t n)
{
    unsigned char piece[8192];
    while (n != 0) {
        size_t step = n < sizeof(piece) ? n : sizeof(piece);
        region_wanted(from, from_at, piece, step);
        region_expect(to, to_at, piece, step);
        from_at += step;
        to_at += step;
        n -= step;
    }
}

/* What lies behind all parts has no address; a part of no length has no byte. */
void *region_at(const struct region *r, size_t at)
{
    for (unsigned i = 0; i < r->count; i++) {
        if (at < r->part[i].iov_len) {
            return r->now + r->place[i] + at;
        }
        at -= r->part[i].iov_len;
    }
    return NULL;
}

void *region_start(struct region *r)
{
    return r->iovec ? (void *)r->part : r->now + r->place[0];
}

ptl_size_t region_units(const struct region *r)
{
    return r->iovec ? r->count : r->length;
}

unsigned region_option(const struct region *r)
{
    return r->iovec ? PTL_IOVEC : 0;
}

/* Where a byte of the arena lies, for the report. */
static void region_name(const struct region *r, size_t at, char *text, size_t size)
{
    size_t begin = 0;
    for (unsigned i = 0; i < r->count; begin += r->part[i++].iov_len) {
        if (at >= r->place[i] && at - r->place[i] < r->part[i].iov_len) {
            snprintf(text, size, "byte %zu of %zu (part %u of %u)", begin + at - r->place[i],
                     r->length, i, r->count);
            return;
        }
    }
    snprintf(text, size, "a byte outside of all parts");
}

void region_check(const struct region *r, const char *text, const char *file, int line)
{
    suite_seen(file, line);
    if (memcmp(r->now, r->want, r->size) == 0) {
        return;
    }
    size_t at = 0;
    while (r->now[at] == r->want[at]) {
        at++;
    }
    char where[128];
    region_name(r, at, where, sizeof(where));
    suite_fail(file, line, "%s of %s is 0x%02x, expected 0x%02x", where, text, r->now[at],
               r->want[at]);
}
