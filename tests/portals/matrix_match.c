/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Matching, generated: one message and one entry, in every place where the two may meet.
 *
 *   priority   the entry is on the priority list when the message comes
 *   overflow   it is on the overflow list
 *   append     the message has an unexpected header when the entry is appended
 *   search     the same, PTL_SEARCH_ONLY
 *   delete     the same, PTL_SEARCH_DELETE
 *
 * What is tried: match bits and masks; the source, by each of its halves and wildcards;
 * permissions, which count where the message lands but never for a header; lengths, with and
 * without NO_TRUNCATE. Whether an entry matches is worked out here from the rule.
 */
#include "matrix_kit.h"

#include <stdio.h>
#include <stdlib.h>

enum place { PRIORITY, OVERFLOWED, APPEND, SEARCH, DELETE, PLACES };
static const char *const place_name[PLACES] = {"priority", "overflow", "append", "search",
                                               "delete"};

enum whose { RIGHT, WRONG, ANYBODY, WHOSE };
static const char *const whose_name[WHOSE] = {"right", "wrong", "any"};

struct match_case {
    enum place place;
    bool once;
    ptl_match_bits_t bits, match, ignore;
    enum whose nid, pid; /* pid: or the rank */
    enum whose user;
    unsigned options; /* of the entry */
    size_t length, offset;
};

enum { ENTRY_LENGTH = 100, ROOM = 2000 };
static char of_move, of_entry, of_all;

/* ---- The rule ---------------------------------------------------------------- */

static bool bits_match(const struct match_case *c)
{
    for (unsigned i = 0; i < 64; i++) {
        bool ignored = c->ignore >> i & 1;
        if (!ignored && (c->bits >> i & 1) != (c->match >> i & 1)) {
            return false;
        }
    }
    return true;
}

static bool matches(const struct scene *s, const struct match_case *c)
{
    bool source = c->pid != WRONG && (s->logical || c->nid != WRONG);
    bool local = (c->options & PTL_ME_MANAGE_LOCAL) != 0;
    size_t end = (local ? 0 : c->offset) + c->length;
    bool fits = (c->options & PTL_ME_NO_TRUNCATE) == 0 || end <= ENTRY_LENGTH;
    return source && bits_match(c) && fits;
}

/* How a message ends that meets the entry on its way. */
static int refusal(const struct match_case *c)
{
    return c->user == WRONG                    ? PTL_NI_PERM_VIOLATION
           : (c->options & PTL_ME_OP_PUT) == 0 ? PTL_NI_OP_VIOLATION
                                               : PTL_NI_OK;
}

static ptl_me_t make_entry(struct scene *s, const struct match_case *c)
{
    ptl_process_t wrong = suite_bystander(s);
    ptl_me_t me =
        suite_entry(s, region_start(&region[ENTRY]), ENTRY_LENGTH,
                    c->options | PTL_ME_EVENT_CT_OVERFLOW | (c->once ? PTL_ME_USE_ONCE : 0));
    me.match_bits = c->match;
    me.ignore_bits = c->ignore;
    me.uid = c->user == RIGHT ? s->uid : c->user == WRONG ? s->uid + 1 : PTL_UID_ANY;
    if (s->logical) {
        me.match_id.rank = c->pid == RIGHT   ? s->from.rank
                           : c->pid == WRONG ? wrong.rank
                                             : PTL_RANK_ANY;
    } else {
        ptl_nid_t nid = s->from.phys.nid;
        me.match_id.phys.nid = c->nid == RIGHT ? nid : c->nid == WRONG ? nid ^ 1 : PTL_NID_ANY;
        me.match_id.phys.pid = c->pid == RIGHT   ? s->from.phys.pid
                               : c->pid == WRONG ? wrong.phys.pid
                                                 : PTL_PID_ANY;
    }
    return me;
}

/* ---- The message meets the entry on its way ------------------------------------ */

static void send(struct scene *s, struct suite_move *m, const struct landing *l)
{
    struct due due = {0};
    if (s->initiator) {
        OK(suite_move(m));
        due_add(&due, send_event(m));
        due_add(&due, answer_event(m, l));
        TAKE(s->mdeq, &due);
    }
}

/* Takes the header that an overflow entry left, or finds that there is none. */
static void take_header(struct scene *s, const struct suite_move *m, const struct landing *l)
{
    struct due due = {0};
    ptl_me_t all = suite_entry(s, NULL, 0, PTL_ME_OP_PUT);
    OK(suite_search_code(s, SUITE_PT, PTL_SEARCH_DELETE, &all, &of_all));
    if (l != NULL) {
        due_add(&due, landing_overflow(s, m, l, &of_all));
    } else {
        struct suite_event none = entry_event(s, PTL_EVENT_SEARCH, &of_all);
        none.fail = PTL_NI_NO_MATCH;
        due_add(&due, none);
    }
    TAKE(s->eq, &due);
}

static void meet_arriving(struct scene *s, const struct match_case *c, struct suite_move *m,
                          struct watch *w)
{
    struct due due = {0};
    ptl_list_t list = c->place == PRIORITY ? PTL_PRIORITY_LIST : PTL_OVERFLOW_LIST;
    size_t at = (c->options & PTL_ME_MANAGE_LOCAL) != 0 ? 0 : c->offset;
    size_t left = at < ENTRY_LENGTH ? ENTRY_LENGTH - at : 0;
    struct landing l = {&region[ENTRY], at,   c->length < left ? c->length : left,
                        PTL_NI_OK,      list, &of_entry};
    l.fail = matches(s, c) ? refusal(c) : PTL_NI_DROPPED;
    l.mlength = l.fail == PTL_NI_OK ? l.mlength : 0;
    if (s->target) {
        ptl_me_t me = make_entry(s, c);
        me.options |= PTL_ME_EVENT_LINK_DISABLE;
        suite_append(s, list, &me, &of_entry);
    }
    STEP();
    send(s, m, &l);
    landing_move(m, &region[PUT_SIDE], &region[PUT_SIDE], &region[ENTRY], &l);
    bool used_up = l.fail == PTL_NI_OK && c->once;
    if (s->target && l.fail == PTL_NI_OK) {
        due_add(&due, landing_event(s, m, &l));
        due_then(&due);
        if (used_up) {
            due_add(&due, entry_event(s, PTL_EVENT_AUTO_UNLINK, &of_entry));
        }
        TAKE(s->eq, &due);
    }
    struct refusals r = {l.fail == PTL_NI_DROPPED, l.fail == PTL_NI_PERM_VIOLATION,
                         l.fail == PTL_NI_OP_VIOLATION};
    watch_end(w, s, r, __FILE__, __LINE__);
    if (s->target && list == PTL_OVERFLOW_LIST) {
        take_header(s, m, l.fail == PTL_NI_OK ? &l : NULL);
        if (used_up) {
            due_add(&due, entry_event(s, PTL_EVENT_AUTO_FREE, &of_entry));
            TAKE(s->eq, &due);
        }
    }
    if (s->target) {
        CHECK_REGION(&region[ENTRY]);
        COUNTED(s->ct, 0, 0); /* CT_OVERFLOW counts where a header is taken */
    }
    watch_end(w, s, r, __FILE__, __LINE__);
}

/* ---- The entry meets the header ------------------------------------------------- */

static void due_found(struct scene *s, const struct match_case *c, struct due *due,
                      const struct suite_move *m, const struct landing *l, bool found)
{
    struct suite_event none = entry_event(s, PTL_EVENT_SEARCH, &of_entry);
    struct suite_event e = landing_overflow(s, m, l, &of_entry);
    none.fail = PTL_NI_NO_MATCH;
    if (c->place == SEARCH) {
        e.type = PTL_EVENT_SEARCH;
    }
    if (found) {
        due_add(due, e);
        due_then(due);
    } else if (c->place != APPEND) {
        due_add(due, none);
    }
    if (c->place == APPEND) {
        int type = found && c->once ? PTL_EVENT_AUTO_UNLINK : PTL_EVENT_LINK;
        due_add(due, entry_event(s, type, &of_entry));
    }
}

static void meet_header(struct scene *s, const struct match_case *c, struct suite_move *m,
                        struct watch *w)
{
    struct due due = {0};
    struct region *over = &region[OVERFLOW_ENTRY];
    struct landing l = {over, c->offset, c->length, PTL_NI_OK, PTL_OVERFLOW_LIST, &of_all};
    if (s->target) {
        suite_target(s, PTL_OVERFLOW_LIST, region_start(over), over->length, PTL_ME_OP_PUT,
                     &of_all);
    }
    STEP();
    send(s, m, &l);
    landing_move(m, &region[PUT_SIDE], &region[PUT_SIDE], over, &l);
    if (s->target) {
        bool found = matches(s, c), search = c->place != APPEND;
        ptl_me_t me = make_entry(s, c);
        due_add(&due, landing_event(s, m, &l));
        TAKE(s->eq, &due);
        if (search) {
            OK(suite_search_code(s, SUITE_PT,
                                 c->place == SEARCH ? PTL_SEARCH_ONLY : PTL_SEARCH_DELETE, &me,
                                 &of_entry));
        } else {
            suite_append(s, PTL_PRIORITY_LIST, &me, &of_entry);
        }
        due_found(s, c, &due, m, &l, found);
        TAKE(s->eq, &due);
        /* a search counts its end as a failure, unless use-once and successful */
        COUNTED(s->ct, found, search && !(c->once && found));
        take_header(s, m, found && c->place != SEARCH ? NULL : &l);
        CHECK_REGION(over);
        CHECK_REGION(&region[ENTRY]);
    }
    WATCH_END(w);
}

static void match_body(struct scene *s)
{
    const struct match_case *c = s->c->data;
    struct watch w;
    region_make(&region[PUT_SIDE], PLAIN, c->length, 1);
    region_make(&region[ENTRY], PLAIN, ENTRY_LENGTH, 2);
    region_make(&region[OVERFLOW_ENTRY], PLAIN, ROOM, 3);
    watch_begin(&w, s);
    struct suite_move m = suite_move_to(s, CALL_PUT);
    m.length = c->length;
    m.remote_offset = c->offset;
    m.bits = c->bits;
    m.hdr_data = 5;
    m.user_ptr = &of_move;
    m.ack = PTL_ACK_REQ;
    if (s->initiator) {
        m.md = suite_md(s, region_start(&region[PUT_SIDE]), c->length, 0);
    }
    if (c->place == PRIORITY || c->place == OVERFLOWED) {
        meet_arriving(s, c, &m, &w);
    } else {
        meet_header(s, c, &m, &w);
    }
}

/* ---- The matrices ----------------------------------------------------------------- */

static const char *place_rule(enum place place)
{
    switch (place) {
    case PRIORITY:
    case OVERFLOWED:
        return "3.12: a message takes an entry of its source whose bits are its own but for the "
               "ignored ones";
    case APPEND:
        return "3.12: an entry appended to the priority list takes the headers that it matches";
    case SEARCH:
        return "3.12: PTL_SEARCH_ONLY tells of the header that an entry matches, and leaves it";
    default:
        return "3.12: PTL_SEARCH_DELETE takes the header that an entry matches";
    }
}

static void add(struct match_case c, const char *rule, unsigned kinds, const char *name)
{
    struct match_case *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        abort();
    }
    for (c.place = 0; c.place < PLACES; c.place++) {
        *copy = c;
        suite_add_each((struct suite_case){.rule = rule != NULL ? rule : place_rule(c.place),
                                           .body = match_body,
                                           .data = copy},
                       kinds, SELF | PAIR, "match.%s.%s.%s", place_name[c.place],
                       c.once ? "once" : "all", name);
        if (c.place + 1 < PLACES && (copy = malloc(sizeof(*copy))) == NULL) {
            abort();
        }
    }
}

static struct match_case any_case(void)
{
    return (struct match_case){.ignore = ~UINT64_C(0),
                               .nid = ANYBODY,
                               .pid = ANYBODY,
                               .user = ANYBODY,
                               .options = PTL_ME_OP_PUT,
                               .length = 24};
}

GENERATE(match_bits)
{
    static const ptl_match_bits_t values[] = {0, ~UINT64_C(0), UINT64_C(0x0123456789abcdef),
                                              UINT64_C(1) << 63, 1};
    static const ptl_match_bits_t ignored[] = {
        0, ~UINT64_C(0), 0xffff, UINT64_C(0xffffffff00000000), UINT64_C(0x8000000000000001)};
    unsigned number = 0;
    for (size_t b = 0; b < COUNT_OF(values); b++) {
        for (size_t m = 0; m < COUNT_OF(values); m++) {
            for (size_t i = 0; i < COUNT_OF(ignored); i++) {
                char name[40];
                struct match_case c = any_case();
                c.bits = values[b];
                c.match = values[m];
                c.ignore = ignored[i];
                c.once = number++ % 2 == 0;
                snprintf(name, sizeof(name), "bits%zu_%zu_ignore%zu", b, m, i);
                add(c, NULL, MATCHING_KINDS, name);
            }
        }
    }
}

GENERATE(match_sources)
{
    for (int once = 0; once < 2; once++) {
        for (enum whose pid = 0; pid < WHOSE; pid++) {
            char name[40];
            struct match_case c = any_case();
            c.once = once != 0;
            c.pid = pid;
            snprintf(name, sizeof(name), "rank_%s", whose_name[pid]);
            add(c, "3.12: on a logical interface the source is a rank, or PTL_RANK_ANY", ML, name);
            for (c.nid = 0; c.nid < WHOSE; c.nid++) {
                snprintf(name, sizeof(name), "nid_%s_pid_%s", whose_name[c.nid], whose_name[pid]);
                add(c, "3.12: PTL_NID_ANY and PTL_PID_ANY are wildcards, each for its own half", MP,
                    name);
            }
        }
    }
}

GENERATE(match_permissions)
{
    static const unsigned ops[] = {PTL_ME_OP_PUT, PTL_ME_OP_GET, 0};
    static const char *const op_name[] = {"put", "get", "none"};
    for (int once = 0; once < 2; once++) {
        for (enum whose user = 0; user < WHOSE; user++) {
            for (size_t i = 0; i < COUNT_OF(ops); i++) {
                char name[40];
                struct match_case c = any_case();
                c.once = once != 0;
                c.user = user;
                c.options = ops[i];
                snprintf(name, sizeof(name), "user_%s_op_%s", whose_name[user], op_name[i]);
                add(c,
                    "3.12: uid and operation are checked on the entry that a message takes, never "
                    "for a header",
                    ALL_KINDS, name);
            }
        }
    }
}

GENERATE(match_lengths)
{
    static const size_t lengths[] = {0, 1, 49, 50, 51, 99, 100, 101, 1500};
    static const size_t offsets[] = {0, 50, 100, 101};
    static const unsigned options[] = {0, PTL_ME_NO_TRUNCATE,
                                       PTL_ME_NO_TRUNCATE | PTL_ME_MANAGE_LOCAL};
    static const char *const option_name[] = {"truncate", "no_truncate", "no_truncate_local"};
    for (size_t o = 0; o < COUNT_OF(options); o++) {
        for (size_t l = 0; l < COUNT_OF(lengths); l++) {
            for (size_t at = 0; at < COUNT_OF(offsets); at++) {
                char name[60];
                struct match_case c = any_case();
                c.options |= options[o];
                c.length = lengths[l];
                c.offset = offsets[at];
                c.once = (l + at) % 2 == 0;
                snprintf(name, sizeof(name), "%s.%zu_at_%zu", option_name[o], lengths[l],
                         offsets[at]);
                add(c,
                    o == 0 ? "3.12: what does not fit is cut, and matches"
                           : "3.12: with NO_TRUNCATE what does not fit does not match",
                    MATCHING_KINDS, name);
            }
        }
    }
}
