/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Portals and sPIN operations of GOAL text; see extension.h.
 *
 * LogGOPSim's documents and programs differ in the order of an operation's parts. So an operation
 * is read as a head, which is fixed, and parts in any order; but handlers come in theirs. The parts
 * of an operation are added when its line has ended, those of handlers before all others.
 */
#include "extension.h"

#include "operations.h"
#include "parts.h"

#include <stdio.h>

/* An operation whose line is read. */
struct reading {
    struct goal_reading at;
    const struct operation *is;
    uint32_t node;    /* its place in the builder */
    unsigned seen;    /* bits of enum part */
    uint64_t reaches; /* of the counter by which it is triggered */
    uint32_t when, counts;
};

enum part {
    PART_PEER,
    PART_TAG,
    PART_CT,
    PART_WHEN,
    PART_FOR,
    PART_BY,
    PART_ONCE,
    PART_LIST,
    PART_HANDLER,
    PART_CPU,
    PART_NIC,
};

static const struct operation {
    const char *word;
    enum goal_type type;
    bool triggered;
    bool portals; /* false: LogGOPSim has it, Portals has not */
} operations[] = {
    {"put", GOAL_PUT, false, true},        {"tput", GOAL_PUT, true, true},
    {"get", GOAL_GET, false, true},        {"tget", GOAL_GET, true, true},
    {"atomic", GOAL_ATOMIC, false, true},  {"tatomic", GOAL_ATOMIC, true, true},
    {"fetch", GOAL_FETCH, false, true},    {"tfetch", GOAL_FETCH, true, true},
    {"swap", GOAL_SWAP, false, true},      {"tswap", GOAL_SWAP, true, true},
    {"cas", GOAL_CAS, false, true},        {"tcas", GOAL_CAS, true, true},
    {"append", GOAL_APPEND, false, true},  {"test", GOAL_TEST, false, true},
    {"count", GOAL_COUNT, false, true},    {"tcount", GOAL_COUNT, true, true},
    {"tappend", GOAL_APPEND, true, false}, {"calcgem5", GOAL_CALC, false, false},
};

static const struct operation *find(const struct goal_word *word)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        if (goal_word_is(word, operations[i].word)) {
            return &operations[i];
        }
    }
    return NULL;
}

bool goal_extension_is(const struct goal_word *word)
{
    return find(word) != NULL;
}

/* ---- Parts ---- */

static struct goal_node *node_of(struct reading *r)
{
    return r->at.b->failed ? NULL : &r->at.b->nodes[r->node];
}

static int read_tag(struct reading *r)
{
    struct goal_scan *s = r->at.s;
    struct goal_node *n = node_of(r);
    uint32_t tag = GOAL_ANY;
    bool any = (goal_kind_of((uint8_t)r->is->type)->has & GOAL_HAS_ANY_TAG) != 0;
    if (!(any && goal_scan_take(s, "-1")) && goal_read_u32(s, GOAL_ANY - 1, "a tag", &tag) != 0) {
        return -1;
    }
    if (n != NULL) {
        n->tag = tag;
    }
    return 0;
}

static int read_when(struct reading *r)
{
    struct goal_scan *s = r->at.s;
    (void)goal_scan_keyword(s, "ct");
    if (goal_read_counter(s, &r->when) != 0) {
        return -1;
    }
    if (!goal_scan_keyword(s, "reaches")) {
        return goal_scan_expected(s, s->at, "\"reaches\"");
    }
    return goal_scan_number(s, INT64_MAX, "what a counter reaches", &r->reaches);
}

static int read_index(struct reading *r, bool cpu)
{
    struct goal_node *n = node_of(r);
    uint32_t at;
    if (goal_read_u32(r->at.s, UINT8_MAX, cpu ? "cpu" : "nic", &at) != 0) {
        return -1;
    }
    if (n != NULL && cpu) {
        n->cpu = (uint8_t)at;
        r->at.b->highest_cpu = n->cpu > r->at.b->highest_cpu ? n->cpu : r->at.b->highest_cpu;
    } else if (n != NULL) {
        n->nic = (uint8_t)at;
        r->at.b->highest_nic = n->nic > r->at.b->highest_nic ? n->nic : r->at.b->highest_nic;
    }
    return 0;
}

static int read_peer(struct reading *r)
{
    struct goal_node *n = node_of(r);
    uint32_t peer = 0;
    if (goal_read_rank(&r->at, r->is->type == GOAL_APPEND, &peer) != 0) {
        return -1;
    }
    if (n != NULL) {
        n->peer = peer;
    }
    return 0;
}

static int read_size(struct reading *r, const char *what)
{
    struct goal_node *n = node_of(r);
    uint64_t size;
    if (goal_scan_number(r->at.s, INT64_MAX, what, &size) != 0) {
        return -1;
    }
    if (n != NULL) {
        n->size = size;
    }
    return 0;
}

/* Which part a word begins, of those that the operation may have, or -1. */
static int part_of(const struct reading *r, const struct goal_word *w)
{
    const struct goal_kind *kind = goal_kind_of((uint8_t)r->is->type);
    bool append = r->is->type == GOAL_APPEND;
    if ((kind->has & GOAL_HAS_PEER) != 0 && goal_word_is(w, kind->between)) {
        return PART_PEER;
    }
    const struct {
        const char *word;
        enum part part;
        bool may;
    } parts[] = {
        {"tag", PART_TAG, (kind->has & GOAL_HAS_TAG) != 0},
        {"ct", PART_CT, (kind->has & GOAL_MAY_COUNT) != 0},
        {"when", PART_WHEN, r->is->triggered},
        {"for", PART_FOR, r->is->type == GOAL_TEST},
        {"by", PART_BY, r->is->type == GOAL_COUNT},
        {"use_once", PART_ONCE, append},
        {"priority_list", PART_LIST, append},
        {"hh", PART_HANDLER, append},
        {"ph", PART_HANDLER, append},
        {"ch", PART_HANDLER, append},
        {"cpu", PART_CPU, true},
        {"nic", PART_NIC, (kind->has & GOAL_HAS_NIC) != 0},
    };
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i].may && goal_word_is(w, parts[i].word)) {
            return parts[i].part;
        }
    }
    return -1;
}

static int refuse_part(const struct reading *r, const struct goal_word *w)
{
    static const char *const gone[] = {"overflow_list", "mem", "arg1", "arg2", "arg3", "arg4"};
    for (size_t i = 0; i < sizeof(gone) / sizeof(gone[0]); i++) {
        if (goal_word_is(w, gone[i])) {
            return goal_scan_error(r->at.s, w->at,
                                   "\"%s\" has no meaning here: there is no overflow list, and a "
                                   "handler is what it takes and does, without memory or arguments",
                                   gone[i]);
        }
    }
    const struct goal_kind *kind = goal_kind_of((uint8_t)r->is->type);
    char what[256];
    snprintf(what, sizeof(what), "%s%s%s%s%s%s%s\"cpu\"%s or the end of the line",
             kind->between != NULL ? "\"" : "", kind->between != NULL ? kind->between : "",
             kind->between != NULL ? "\", " : "",
             (kind->has & GOAL_HAS_TAG) != 0 ? "\"tag\", " : "",
             (kind->has & GOAL_MAY_COUNT) != 0 ? "\"ct\", " : "",
             r->is->type == GOAL_APPEND ? "\"hh\", \"ph\", \"ch\", \"use_once\", "
             : r->is->triggered         ? "\"when\", "
             : r->is->type == GOAL_TEST ? "\"for\", "
                                        : "",
             r->is->type == GOAL_COUNT ? "\"by\", " : "",
             (kind->has & GOAL_HAS_NIC) != 0 ? ", \"nic\"" : "");
    return goal_scan_expected(r->at.s, w->at, what);
}

static int read_part(struct reading *r)
{
    struct goal_scan *s = r->at.s;
    struct goal_word w = goal_scan_word(s);
    if (r->is->type == GOAL_APPEND && goal_word_is(&w, "to")) {
        return 0; /* "to priority_list" */
    }
    int part = part_of(r, &w);
    if (part < 0) {
        return refuse_part(r, &w);
    }
    if (part != PART_HANDLER && (r->seen & 1u << part) != 0) {
        return goal_scan_error(s, w.at, "\"%.*s\" stands here twice", (int)w.length, w.at);
    }
    r->seen |= 1u << part;
    switch ((enum part)part) {
    case PART_PEER:
        return read_peer(r);
    case PART_TAG:
        return read_tag(r);
    case PART_CT:
        return goal_read_counter(s, &r->counts);
    case PART_WHEN:
        return read_when(r);
    case PART_FOR:
        return read_size(r, "what a counter reaches");
    case PART_BY:
        return read_size(r, "an increment");
    case PART_HANDLER:
        return goal_read_handler(&r->at, &w,
                                 goal_word_is(&w, "hh")   ? GOAL_HEADER_HANDLER
                                 : goal_word_is(&w, "ph") ? GOAL_PAYLOAD_HANDLER
                                                          : GOAL_COMPLETION_HANDLER);
    case PART_CPU:
    case PART_NIC:
        return read_index(r, part == PART_CPU);
    default:
        return 0;
    }
}

/* ---- Operations ---- */

/* Reads what is behind the operation's word, and adds it. */
static int read_head(struct reading *r)
{
    uint64_t size = 0;
    uint32_t tag = 0;
    bool counter = (goal_kind_of((uint8_t)r->is->type)->has & GOAL_HAS_COUNTER) != 0;
    if (counter ? goal_read_counter(r->at.s, &tag) != 0 : goal_read_bytes(r->at.s, &size) != 0) {
        return -1;
    }
    r->node = goal_add(r->at.b, r->is->type, size, 0, tag, 0, 0);
    return 0;
}

/* The part without which an operation says nothing, by its word. */
static const char *missing(const struct reading *r)
{
    const struct goal_kind *kind = goal_kind_of((uint8_t)r->is->type);
    if (r->is->triggered && (r->seen & 1u << PART_WHEN) == 0) {
        return "\"when\"";
    }
    if ((kind->has & GOAL_HAS_PEER) != 0 && (r->seen & 1u << PART_PEER) == 0) {
        return r->is->type == GOAL_APPEND ? "\"allowed\""
               : kind->between[0] == 't'  ? "\"to\""
               : kind->between[0] == 'f'  ? "\"from\""
                                          : "\"with\"";
    }
    return r->is->type == GOAL_TEST && (r->seen & 1u << PART_FOR) == 0   ? "\"for\""
           : r->is->type == GOAL_COUNT && (r->seen & 1u << PART_BY) == 0 ? "\"by\""
                                                                         : NULL;
}

static int refuse_operation(struct goal_scan *s, const struct goal_word *word)
{
    return goal_scan_error(s, word->at, "%s",
                           goal_word_is(word, "calcgem5")
                               ? "\"calcgem5\" runs code in gem5; write what it takes: calc"
                               : "\"tappend\": Portals appends no entry by a counter; append it "
                                 "before");
}

int goal_extension_read(struct goal_scan *s, const struct goal_word *word, uint32_t rank,
                        uint32_t ranks, struct goal_builder *b)
{
    struct reading r = {.at = {s, rank, ranks, b, 0}, .is = find(word)};
    if (!r.is->portals) {
        return refuse_operation(s, word);
    }
    if (read_head(&r) != 0) {
        return -1;
    }
    for (;;) {
        goal_scan_blanks(s);
        const char *end = s->at;
        uint64_t line = s->line;
        if (!goal_scan_line_end(s)) {
            if (read_part(&r) != 0) {
                return -1;
            }
            continue;
        }
        const char *lacks = missing(&r);
        if (lacks != NULL) {
            s->line = line;
            return goal_scan_expected(s, end, lacks);
        }
        break;
    }
    if (r.is->triggered) {
        goal_add_part(b, GOAL_WHEN, r.reaches, 0, r.when, false);
    }
    if ((r.seen & 1u << PART_CT) != 0) {
        goal_add_part(b, GOAL_COUNTS, 0, 0, r.counts, false);
    }
    if ((r.seen & 1u << PART_ONCE) != 0) {
        goal_add_part(b, GOAL_USE_ONCE, 0, 0, 0, false);
    }
    return b->failed ? -1 : 0;
}
