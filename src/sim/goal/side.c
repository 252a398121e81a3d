/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The side file of a compiled schedule: labels and lines of its operations.
 *
 *     0   "GOALLBL2"
 *     8   u64 length of the binary, u64 hash of the binary
 *     24  u64 where the names of the sources begin
 *     32  u64 ranks
 *     40  u64 start[ranks + 1]      where the part of each rank begins, and the last ends
 *         the part of a rank:
 *             for each operation { u64 line, u32 source, u32 end of its label }
 *             labels, one after the other
 *         the names, each with a 0 at its end
 *
 * A source is the offset of its name among the names. A label begins where the one before it ends;
 * an operation with an empty label has none, and one with line 0 has no line. The hash shows
 * whether the side file belongs to the binary, and not to an older compilation. The reader trusts
 * no number in the file: each look-up checks the offsets that it uses.
 */
#include "read.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[8] = "GOALLBL2";

struct head {
    char magic[8];
    uint64_t bin_length;
    uint64_t bin_hash;
    uint64_t names;
    uint64_t ranks;
} __attribute__((packed));
_Static_assert(sizeof(struct head) == 40, "layout of the side file");

struct entry {
    uint64_t line;
    uint32_t source;
    uint32_t label_end;
} __attribute__((packed));
_Static_assert(sizeof(struct entry) == 16, "layout of the side file");

typedef uint64_t side_u64 __attribute__((aligned(1)));

struct goal_side {
    void *map;
    size_t length;
    const uint8_t *bytes;
    const side_u64 *starts;
    uint32_t ranks;
    uint64_t names; /* offset of the names, which go to the end of the file; its last byte is 0 */
};

/* A hash of a schedule's bytes, which mixes its words as splitmix64 mixes its state (see
 * util/random.h). */
static uint64_t hash_bytes(const uint8_t *bytes, size_t length)
{
    uint64_t h = length, word;
    for (; length >= 8; bytes += 8, length -= 8) {
        memcpy(&word, bytes, 8);
        h = (h ^ word) * 0xbf58476d1ce4e5b9u;
        h ^= h >> 31;
    }
    word = 0;
    memcpy(&word, bytes, length);
    h = (h ^ word) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

/* ---- Writing ---- */

static int side_failed(struct goal_error *error, int code)
{
    return goal_fail(error, "cannot write the side file of labels: %s", strerror(code));
}

int goal_side_open(struct goal_side_writer *w, int fd, uint32_t ranks, struct goal_error *error)
{
    *w = (struct goal_side_writer){.fd = fd, .ranks = ranks};
    w->end = sizeof(struct head) + 8 * ((uint64_t)ranks + 1);
    if (goal_stream_open(&w->table, fd, sizeof(struct head)) != 0 ||
        goal_stream_open(&w->data, fd, w->end) != 0) {
        goal_side_discard(w);
        return side_failed(error, ENOMEM);
    }
    goal_stream_put(&w->table, &w->end, 8);
    return 0;
}

int goal_side_source(struct goal_side_writer *w, const char *name, uint32_t *source,
                     struct goal_error *error)
{
    size_t at = 0, length = strlen(name) + 1;
    while (at < w->names_length && strcmp(w->names + at, name) != 0) {
        at += strlen(w->names + at) + 1;
    }
    if (at == w->names_length) {
        char *names = at + length <= UINT32_MAX ? realloc(w->names, at + length) : NULL;
        if (names == NULL) {
            return side_failed(error, ENOMEM);
        }
        memcpy(names + at, name, length);
        w->names = names;
        w->names_length = at + length;
    }
    *source = (uint32_t)at;
    return 0;
}

int goal_side_rank(struct goal_side_writer *w, const struct goal_origin *origins, uint32_t count,
                   struct goal_error *error)
{
    uint64_t labels = 0;
    for (uint32_t i = 0; i < count; i++) {
        labels += origins[i].label_length;
        struct entry e = {
            .line = origins[i].line, .source = origins[i].source, .label_end = (uint32_t)labels};
        goal_stream_put(&w->data, &e, sizeof(e));
    }
    for (uint32_t i = 0; i < count; i++) {
        goal_stream_put(&w->data, origins[i].label, origins[i].label_length);
    }
    w->end += sizeof(struct entry) * (uint64_t)count + labels;
    goal_stream_put(&w->table, &w->end, 8);
    if (labels > UINT32_MAX) {
        return goal_fail(error,
                         "the labels of one rank take %llu bytes; the side file has room "
                         "for 4294967295 of them",
                         (unsigned long long)labels);
    }
    int failed = w->data.failed != 0 ? w->data.failed : w->table.failed;
    return failed == 0 ? 0 : side_failed(error, failed);
}

int goal_side_finish(struct goal_side_writer *w, int bin_fd, struct goal_error *error)
{
    struct stat st;
    goal_stream_put(&w->data, w->names, w->names_length);
    free(w->names);
    w->names = NULL;
    int table = goal_stream_close(&w->table), data = goal_stream_close(&w->data);
    if (table != 0 || data != 0) {
        return side_failed(error, table != 0 ? -table : -data);
    }
    if (fstat(bin_fd, &st) != 0) {
        return side_failed(error, errno);
    }
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, bin_fd, 0);
    if (map == MAP_FAILED) {
        return goal_fail(error, "cannot map the schedule for its hash: %s", strerror(errno));
    }
    struct head h = {.bin_length = (uint64_t)st.st_size,
                     .bin_hash = hash_bytes(map, (size_t)st.st_size),
                     .names = w->end,
                     .ranks = w->ranks};
    memcpy(h.magic, magic, sizeof(magic));
    munmap(map, (size_t)st.st_size);
    if (pwrite(w->fd, &h, sizeof(h), 0) != sizeof(h)) {
        return side_failed(error, errno);
    }
    return 0;
}

void goal_side_discard(struct goal_side_writer *w)
{
    goal_stream_close(&w->table);
    goal_stream_close(&w->data);
    free(w->names);
    w->names = NULL;
}

char *goal_side_path(const char *path)
{
    char *side;
    return asprintf(&side, "%s.labels", path) < 0 ? NULL : side;
}

/* ---- Reading ---- */

static bool check_head(struct goal_side *side, const struct goal *g)
{
    struct head h;
    if (side->length < sizeof(h)) {
        return false;
    }
    memcpy(&h, side->bytes, sizeof(h));
    if (memcmp(h.magic, magic, sizeof(magic)) != 0 || h.bin_length != g->map_length ||
        h.ranks != g->ranks || sizeof(h) + 8 * (h.ranks + 1) > side->length ||
        h.names >= side->length || side->bytes[side->length - 1] != '\0' ||
        h.bin_hash != hash_bytes(g->base - 8, g->map_length)) {
        return false;
    }
    side->ranks = g->ranks;
    side->starts = (const side_u64 *)(side->bytes + sizeof(h));
    side->names = h.names;
    return true;
}

struct goal_side *goal_side_load(const struct goal *g, const char *path, int fd)
{
    struct stat st;
    struct goal_side *side = calloc(1, sizeof(*side));
    int opened = fd < 0 ? open(path, O_RDONLY | O_CLOEXEC) : fd;
    if (side != NULL && opened >= 0 && fstat(opened, &st) == 0 && S_ISREG(st.st_mode) &&
        st.st_size > 0) {
        side->length = (size_t)st.st_size;
        side->map = mmap(NULL, side->length, PROT_READ, MAP_PRIVATE, opened, 0);
        side->map = side->map == MAP_FAILED ? NULL : side->map;
        side->bytes = side->map;
    }
    if (opened >= 0 && opened != fd) {
        close(opened);
    }
    if (side == NULL || side->map == NULL || !check_head(side, g)) {
        goal_side_free(side);
        return NULL;
    }
    return side;
}

bool goal_side_find(const struct goal_side *side, const struct goal *g, uint32_t rank,
                    uint32_t node, struct goal_place *place)
{
    uint64_t count = rank < g->ranks ? goal_rank(g, rank).node_count : 0;
    uint64_t begin = side->starts[rank < g->ranks ? rank : 0];
    uint64_t end = side->starts[rank < g->ranks ? rank + 1 : 0];
    if (node >= count || end > side->length || begin > end ||
        sizeof(struct entry) * count > end - begin) {
        return false;
    }
    const struct entry *entries = (const struct entry *)(side->bytes + begin);
    const char *labels = (const char *)(entries + count);
    uint64_t room = end - begin - sizeof(struct entry) * count;
    uint32_t first = node > 0 ? entries[node - 1].label_end : 0;
    uint32_t last = entries[node].label_end, source = entries[node].source;
    if (first > last || last > room || source >= side->length - side->names ||
        (entries[node].line == 0 && first == last)) {
        return false;
    }
    *place = (struct goal_place){.file = (const char *)side->bytes + side->names + source,
                                 .line = entries[node].line,
                                 .label = labels + first,
                                 .label_length = last - first};
    return true;
}

void goal_side_free(struct goal_side *side)
{
    if (side == NULL) {
        return;
    }
    if (side->map != NULL) {
        munmap(side->map, side->length);
    }
    free(side);
}
