/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The compiler of GOAL text. It passes once over the mapped text; only the rank that is being
 * compiled is in memory. docs/goal.md has the grammar; each function reads one of its parts, the
 * smallest parts first.
 */
#include "base/array.h"
#include "extension.h"
#include "labels.h"
#include "write.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct compiler {
    struct goal_scan s;
    unsigned flags;
    uint32_t ranks;
    uint32_t rank;
    struct goal_builder builder;
    struct goal_labels labels;
    struct goal_origin *origins; /* of the rank's operations */
    uint64_t origins_room;
    bool with_side;
    struct goal_writer writer;
    struct goal_side_writer side;
};

static const char *const reserved[] = {"send", "recv", "calc", "rank", "num_ranks"};

static int no_memory(struct compiler *c)
{
    return goal_fail(c->s.error,
                     "%.512s:%" PRIu64 ": no memory for rank %u of %" PRIu64 " operations so far",
                     c->s.name, c->s.line, c->rank, c->builder.count);
}

/* ---- An operation ---- */

/* Reads "cpu N" or "nic N" if `word` comes next; else changes nothing. */
static inline __attribute__((always_inline)) int read_index(struct goal_scan *s, const char *word,
                                                            uint8_t *index)
{
    uint64_t n;
    if (!goal_scan_keyword(s, word)) {
        *index = 0;
        return 0;
    }
    if (goal_scan_number(s, UINT8_MAX, word, &n) != 0) {
        return -1;
    }
    *index = (uint8_t)n;
    return 0;
}

static inline int read_peer(struct compiler *c, enum goal_type type, uint32_t *peer)
{
    struct goal_scan *s = &c->s;
    uint64_t n;
    goal_scan_blanks(s);
    const char *first = s->at;
    if (type == GOAL_RECV && goal_scan_literal(s, "-1", 2)) {
        *peer = GOAL_ANY;
        return 0;
    }
    if (goal_scan_number(s, UINT64_MAX, type == GOAL_RECV ? "a rank or -1" : "a rank", &n) != 0) {
        return -1;
    }
    if (n >= c->ranks) {
        return goal_scan_error(s, first, "rank %" PRIu64 " does not exist: ranks are 0 to %u", n,
                               c->ranks - 1);
    }
    *peer = (uint32_t)n;
    return 0;
}

static inline int read_tag(struct goal_scan *s, uint32_t *tag)
{
    uint64_t n = 0;
    if (!goal_scan_keyword(s, "tag")) {
        *tag = 0;
        return 0;
    }
    if (goal_scan_take(s, "-1")) {
        *tag = GOAL_ANY;
        return 0;
    }
    if (goal_scan_number(s, UINT32_MAX, "a tag", &n) != 0) {
        return -1;
    }
    *tag = (uint32_t)n;
    return 0;
}

/* Reads the rest of an operation's line, behind its first word, and adds the operation. */
static int read_operation(struct compiler *c, enum goal_type type)
{
    struct goal_scan *s = &c->s;
    uint64_t size;
    uint32_t peer = 0, tag = 0;
    uint8_t cpu, nic = 0;
    if (goal_scan_number(s, UINT64_MAX, type == GOAL_CALC ? "a time" : "a number of bytes",
                         &size) != 0) {
        return -1;
    }
    if (type != GOAL_CALC) {
        if (!goal_scan_take(s, "b")) {
            return goal_scan_expected(s, s->at, "\"b\"");
        }
        if (type == GOAL_SEND ? !goal_scan_keyword(s, "to") : !goal_scan_keyword(s, "from")) {
            return goal_scan_expected(s, s->at, type == GOAL_SEND ? "\"to\"" : "\"from\"");
        }
        if (read_peer(c, type, &peer) != 0 || read_tag(s, &tag) != 0) {
            return -1;
        }
    }
    if (read_index(s, "cpu", &cpu) != 0) {
        return -1;
    }
    if (type != GOAL_CALC && read_index(s, "nic", &nic) != 0) {
        return -1;
    }
    if (!goal_scan_line_end(s)) {
        return goal_scan_expected(s, s->at,
                                  type == GOAL_CALC
                                      ? "\"cpu\" or the end of the line"
                                      : "\"tag\", \"cpu\", \"nic\" (in that order) or the end of "
                                        "the line");
    }
    goal_add(&c->builder, type, size, peer, tag, cpu, nic);
    return c->builder.failed ? no_memory(c) : 0;
}

/* ---- Labels ---- */

/* Adds the label of the operation that will be read next. */
static int define_label(struct compiler *c, const struct goal_word *label)
{
    struct goal_origin *o = &c->origins[c->builder.count];
    for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++) {
        if (goal_word_is(label, reserved[i])) {
            return goal_scan_error(&c->s, label->at, "\"%s\" cannot be a label", reserved[i]);
        }
    }
    uint32_t before = goal_labels_find(&c->labels, label, c->origins);
    if (before != GOAL_NO_NODE) {
        if ((c->flags & GOAL_COMPAT) != 0) {
            return 0;
        }
        return goal_scan_error(&c->s, label->at,
                               "label \"%.*s\" of rank %u stands at line %" PRIu64
                               " already; LogGOPSim's compiler would keep that one, as --compat "
                               "does",
                               (int)(label->length < 64 ? label->length : 64), label->at, c->rank,
                               c->origins[before].line);
    }
    o->label = label->at;
    o->label_length = label->length;
    return goal_labels_add(&c->labels, label->hash, (uint32_t)c->builder.count) ? 0 : no_memory(c);
}

static int find_label(struct compiler *c, const struct goal_word *label, uint32_t *node)
{
    *node = goal_labels_find(&c->labels, label, c->origins);
    if (*node != GOAL_NO_NODE) {
        return 0;
    }
    return goal_scan_error(&c->s, label->at,
                           "rank %u has no label \"%.*s\" above this line; labels count in their "
                           "own rank only",
                           c->rank, (int)(label->length < 64 ? label->length : 64), label->at);
}

/* ---- A line ---- */

/* Reads the rest of a line that began with "LABEL requires" or "LABEL irequires". */
static int read_dependency(struct compiler *c, const struct goal_word *label, bool on_start)
{
    struct goal_scan *s = &c->s;
    uint32_t node, on;
    goal_scan_blanks(s);
    struct goal_word other = goal_scan_word(s);
    if (other.length == 0) {
        return goal_scan_expected(s, s->at, "a label");
    }
    if (find_label(c, label, &node) != 0 || find_label(c, &other, &on) != 0) {
        return -1;
    }
    if (!goal_scan_line_end(s)) {
        return goal_scan_expected(s, s->at, "the end of the line");
    }
    if (on_start) {
        goal_irequires(&c->builder, node, on);
    } else {
        goal_requires(&c->builder, node, on);
    }
    return c->builder.failed ? no_memory(c) : 0;
}

static inline enum goal_type operation_of(const struct goal_word *w)
{
    if (w->length != 4) {
        return 0;
    }
    return memcmp(w->at, "send", 4) == 0   ? GOAL_SEND
           : memcmp(w->at, "recv", 4) == 0 ? GOAL_RECV
           : memcmp(w->at, "calc", 4) == 0 ? GOAL_CALC
                                           : 0;
}

/* Reads an operation of Portals; all of its parts stand in its line. */
static int read_extension(struct compiler *c, const struct goal_word *word)
{
    uint64_t first = c->builder.count, line = c->s.line;
    if (goal_extension_read(&c->s, word, c->rank, c->ranks, &c->builder) != 0) {
        return c->builder.failed ? no_memory(c) : -1;
    }
    for (uint64_t i = first + 1; i < c->builder.count; i++) {
        if (!ARRAY_ROOM(c->origins, i, c->origins_room, 64)) {
            return no_memory(c);
        }
        c->origins[i] = (struct goal_origin){.line = line};
    }
    return 0;
}

/* Reads the rest of a line that began with "LABEL:". There may be no blank between the operation's
 * word and its number. */
static int read_labelled(struct compiler *c, const struct goal_word *label)
{
    struct goal_scan *s = &c->s;
    if (define_label(c, label) != 0) {
        return -1;
    }
    goal_scan_blanks(s);
    const char *first = s->at;
    struct goal_word word = goal_scan_word(s);
    if (goal_extension_is(&word)) {
        return read_extension(c, &word);
    }
    s->at = first;
    if (goal_scan_literal(s, "send", 4)) {
        return read_operation(c, GOAL_SEND);
    }
    if (goal_scan_literal(s, "recv", 4)) {
        return read_operation(c, GOAL_RECV);
    }
    if (goal_scan_literal(s, "calc", 4)) {
        return read_operation(c, GOAL_CALC);
    }
    return goal_scan_expected(s, first, "\"send\", \"recv\", \"calc\" or an operation of Portals");
}

/* Reads a line that begins with a word: an operation or a dependency. */
static int read_statement(struct compiler *c)
{
    struct goal_scan *s = &c->s;
    if (!ARRAY_ROOM(c->origins, c->builder.count, c->origins_room, 64)) {
        return no_memory(c);
    }
    c->origins[c->builder.count] = (struct goal_origin){.line = s->line};
    struct goal_word word = goal_scan_word(s);
    enum goal_type type = operation_of(&word);
    if (type != 0) {
        return read_operation(c, type);
    }
    if (goal_scan_take(s, ":")) {
        return read_labelled(c, &word);
    }
    if (goal_scan_take(s, "requires")) {
        return read_dependency(c, &word, false);
    }
    if (goal_scan_take(s, "irequires")) {
        return read_dependency(c, &word, true);
    }
    if (goal_extension_is(&word)) {
        return read_extension(c, &word);
    }
    if (goal_word_is(&word, "rank")) {
        char what[64];
        snprintf(what, sizeof(what), "\"}\" at the end of rank %u", c->rank);
        return goal_scan_expected(s, word.at, what);
    }
    return goal_scan_expected(s, s->at, "\":\", \"requires\" or \"irequires\" after a label");
}

/* ---- A rank, and the file ---- */

/* Reads the lines between a rank's braces. */
static int read_lines(struct compiler *c)
{
    struct goal_scan *s = &c->s;
    for (;;) {
        int rc = 0;
        if (goal_scan_line_end(s)) {
            continue;
        }
        if (goal_scan_literal(s, "}", 1)) {
            return 0;
        }
        if (s->at < s->end && goal_is_letter(*s->at)) {
            rc = read_statement(c);
        } else if (s->at < s->end && *s->at == '/') {
            rc = goal_scan_comment(s);
        } else {
            char what[96];
            snprintf(what, sizeof(what),
                     "an operation, a dependency, or \"}\" at the end of rank %u", c->rank);
            rc = goal_scan_expected(s, s->at, what);
        }
        if (rc != 0) {
            return -1;
        }
    }
}

static int read_rank_head(struct compiler *c)
{
    struct goal_scan *s = &c->s;
    char what[64];
    uint64_t n;
    snprintf(what, sizeof(what), "\"rank %u\" (num_ranks is %u)", c->rank, c->ranks);
    if (!goal_scan_literal(s, "rank", 4)) {
        return goal_scan_expected(s, s->at, what);
    }
    goal_scan_blanks(s);
    const char *number = s->at;
    if (goal_scan_number(s, UINT64_MAX, "the number of a rank", &n) != 0) {
        return -1;
    }
    if (n != c->rank) {
        return goal_scan_error(s, number,
                               "expected rank %u, found rank %" PRIu64
                               ": ranks stand in order, each once, from 0 to %u",
                               c->rank, n, c->ranks - 1);
    }
    return goal_scan_take(s, "{") ? 0 : goal_scan_expected(s, s->at, "\"{\"");
}

static int read_rank(struct compiler *c)
{
    if (goal_scan_space(&c->s) != 0 || read_rank_head(c) != 0) {
        return -1;
    }
    if (!goal_labels_begin(&c->labels)) {
        return no_memory(c);
    }
    if (read_lines(c) != 0) {
        return -1;
    }
    uint32_t count = (uint32_t)c->builder.count;
    if (c->with_side && goal_side_rank(&c->side, c->origins, count, c->s.error) != 0) {
        return -1;
    }
    return goal_writer_rank(&c->writer, &c->builder, c->s.error);
}

static int read_ranks(struct compiler *c)
{
    for (c->rank = 0; c->rank < c->ranks; c->rank++) {
        if (read_rank(c) != 0) {
            return -1;
        }
    }
    if (goal_scan_space(&c->s) != 0) {
        return -1;
    }
    if (c->s.at < c->s.end) {
        char what[96];
        snprintf(what, sizeof(what), "the end of the file after rank %u (num_ranks is %u)",
                 c->ranks - 1, c->ranks);
        return goal_scan_expected(&c->s, c->s.at, what);
    }
    return 0;
}

static int read_head(struct compiler *c)
{
    struct goal_scan *s = &c->s;
    uint64_t n;
    if (goal_scan_space(s) != 0) {
        return -1;
    }
    if (!goal_scan_literal(s, "num_ranks", 9)) {
        return goal_scan_expected(s, s->at, "\"num_ranks\"");
    }
    goal_scan_blanks(s);
    const char *number = s->at;
    if (goal_scan_number(s, UINT32_MAX - 1, "a number of ranks", &n) != 0) {
        return -1;
    }
    if (n == 0) {
        return goal_scan_error(s, number, "a schedule has at least one rank");
    }
    c->ranks = (uint32_t)n;
    return 0;
}

int goal_compile(const struct goal_text *t, unsigned flags, int bin_fd, int side_fd,
                 struct goal_made *made, struct goal_error *error)
{
    struct compiler c = {.s = {.at = t->at,
                               .begin = t->at,
                               .end = t->at + t->length,
                               .line = 1,
                               .name = t->name,
                               .error = error},
                         .flags = flags};
    struct goal_error ignored;
    if (read_head(&c) != 0 || goal_writer_open(&c.writer, bin_fd, c.ranks, error) != 0) {
        return -1;
    }
    int rc = 0;
    if (side_fd >= 0) {
        uint32_t first;
        rc = goal_side_open(&c.side, side_fd, c.ranks, error);
        c.with_side = rc == 0;
        rc = rc == 0 ? goal_side_source(&c.side, t->name, &first, error) : rc;
    }
    rc = rc == 0 ? read_ranks(&c) : rc;
    if (goal_writer_close(&c.writer, rc == 0 ? error : &ignored) != 0) {
        rc = -1;
    }
    if (c.with_side && rc == 0) {
        rc = goal_side_finish(&c.side, bin_fd, error);
    } else if (c.with_side) {
        goal_side_discard(&c.side);
    }
    *made = (struct goal_made){.ranks = c.ranks, .nodes = c.writer.nodes};
    goal_builder_free(&c.builder);
    goal_labels_free(&c.labels);
    free(c.origins);
    return rc;
}
