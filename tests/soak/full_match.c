/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target's side of the lane MATCH: use-once entries over an overflow list.
 *
 *   message ──► its entry is there: PUT ─────────────────────────────────────► taken
 *         └───► overflow list: PUT ──► entry appended, or search: PUT_OVERFLOW ──► taken
 *
 * On a matching face each message has an entry of its own, by its match bits. Overflow
 * entries there hold many messages, and are used up when too little is left of them. On
 * the other faces entries are all alike: whichever comes first takes the oldest message;
 * overflow entries hold one each. There are always enough of those.
 */
#include "full.h"

#include <stdlib.h>
#include <string.h>

#define OVERFLOW_LENGTH (2 * MATCH_LENGTH_MAX)
enum { ENTRIES_MAX = 2 * MESSAGES_MAX };

/* An entry of the priority or of the overflow list. */
static struct entry {
    struct parts at;
    ptl_handle_le_t handle;
    unsigned face, options;
    unsigned links, unlinks, frees, taken; /* events; messages that came, or were claimed */
    bool claimed, decoy;                   /* decoy: it fits nothing */
} entry[ENTRIES_MAX], overflow[ENTRIES_MAX];

static unsigned entries, overflows, due[MESSAGES_MAX], due_count;
static struct {
    bool landed, taken, searched;
} state[MESSAGES_MAX];
static unsigned expected, taken;
static unsigned searching;                      /* the message that a search is out for, + 1 */
static uint64_t found[FACES], not_found[FACES]; /* searches that left things as they were */
static ptl_handle_ct_t counter[FACES];

/* ---- entries ---- */

static ptl_me_t describe(const struct message *m, struct entry *e, unsigned options)
{
    ptl_me_t me_;
    unsigned i = (unsigned)(m - plan.message);
    memset(&me_, 0, sizeof(me_));
    me_.start = parts_start(&e->at);
    me_.length = parts_count(&e->at);
    me_.ct_handle = counter[m->face];
    me_.uid = PTL_UID_ANY;
    me_.options = options | PTL_ME_OP_PUT | PTL_ME_OP_GET | (e->at.n > 1 ? PTL_IOVEC : 0);
    me_.match_id = face[m->face].id[m->from];
    me_.match_bits = (uint64_t)round_number << 16 | i;
    return me_;
}

static void append(unsigned f, const ptl_me_t *e, ptl_list_t list, void *user,
                   ptl_handle_le_t *handle)
{
    if (is_matching(f)) {
        OK(PtlMEAppend(face[f].ni, LANE_MATCH, e, list, user, handle));
    } else {
        ptl_le_t le = {e->start, e->length, e->ct_handle, e->uid, e->options};
        OK(PtlLEAppend(face[f].ni, LANE_MATCH, &le, list, user, handle));
    }
}

/* Appends the entry of message i, or another one where they are all alike. */
static void append_entry(unsigned i, uint64_t *r)
{
    const struct message *m = &plan.message[i];
    bool matching = is_matching(m->face);
    struct entry *e = &entry[entries++];
    parts_new(&e->at, matching ? m->room : MATCH_LENGTH_MAX,
              1 + (unsigned)splitmix_below(r, 2) * (PARTS_MAX - 1), r);
    e->face = m->face;
    e->options = PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_CT_OVERFLOW |
                 (splitmix_below(r, 2) == 0 ? PTL_ME_EVENT_LINK_DISABLE : 0) |
                 (splitmix_below(r, 4) == 0 ? PTL_ME_EVENT_UNLINK_DISABLE : 0) |
                 (matching ? PTL_ME_MANAGE_LOCAL : 0);
    ptl_me_t me_ = describe(m, e, e->options);
    append(m->face, &me_, PTL_PRIORITY_LIST, tagged(TAG_ENTRY, entries - 1), &e->handle);
}

/* An entry for the same message that is one byte too short and does not truncate. */
static void append_decoy(unsigned i, uint64_t *r)
{
    const struct message *m = &plan.message[i];
    if (!is_matching(m->face) || m->length == 0 || splitmix_below(r, 3) != 0) {
        return;
    }
    struct entry *e = &entry[entries++];
    parts_new(&e->at, m->length - 1, 1, r);
    e->face = m->face;
    e->options = PTL_ME_NO_TRUNCATE | PTL_ME_MANAGE_LOCAL | PTL_ME_EVENT_LINK_DISABLE;
    e->decoy = true;
    ptl_me_t me_ = describe(m, e, e->options);
    append(m->face, &me_, PTL_PRIORITY_LIST, tagged(TAG_ENTRY, entries - 1), &e->handle);
}

static void append_overflow(unsigned f, uint64_t *r)
{
    struct entry *e = &overflow[overflows++];
    parts_new(&e->at, is_matching(f) ? OVERFLOW_LENGTH : MATCH_LENGTH_MAX, 1, r);
    e->face = f;
    ptl_me_t me_;
    memset(&me_, 0, sizeof(me_));
    me_.start = e->at.memory;
    me_.length = e->at.length;
    me_.uid = PTL_UID_ANY;
    me_.ct_handle = PTL_CT_NONE;
    me_.options =
        PTL_ME_OP_PUT | PTL_ME_OP_GET | (is_matching(f) ? PTL_ME_MANAGE_LOCAL : PTL_ME_USE_ONCE);
    me_.match_id.rank = PTL_RANK_ANY;
    if (!is_logical(f)) {
        me_.match_id.phys.nid = PTL_NID_ANY;
        me_.match_id.phys.pid = PTL_PID_ANY;
    }
    me_.ignore_bits = ~(ptl_match_bits_t)0;
    me_.min_free = is_matching(f) ? MATCH_LENGTH_MAX : 0;
    append(f, &me_, PTL_OVERFLOW_LIST, tagged(TAG_OVERFLOW, overflows - 1), &e->handle);
}

/* ---- a round begins ---- */

static bool is_mine(const struct message *m, unsigned f)
{
    return m->to == me && m->lane == LANE_MATCH && m->face == f;
}

static void open_face(unsigned f, uint64_t *r)
{
    size_t bytes = 0;
    unsigned count = 0;
    for (unsigned i = 0; i < plan.count; i++) {
        bytes += is_mine(&plan.message[i], f) ? plan.message[i].length : 0;
        count += is_mine(&plan.message[i], f);
    }
    OK(PtlCTAlloc(face[f].ni, &counter[f]));
    unsigned needed = is_matching(f) ? (unsigned)(bytes / MATCH_LENGTH_MAX) + 2 : count;
    for (unsigned k = 0; k < needed; k++) {
        append_overflow(f, r);
    }
    expected += count;
}

void match_open(void)
{
    uint64_t r = seed + 991 * round_number + me;
    entries = overflows = due_count = expected = taken = searching = 0;
    memset(entry, 0, sizeof(entry));
    memset(overflow, 0, sizeof(overflow));
    memset(state, 0, sizeof(state));
    memset(found, 0, sizeof(found));
    memset(not_found, 0, sizeof(not_found));
    for (unsigned f = 0; f < FACES; f++) {
        open_face(f, &r);
    }
    for (unsigned i = 0; i < plan.count; i++) {
        const struct message *m = &plan.message[i];
        if (m->to == me && m->lane == LANE_MATCH && m->arrival == EARLY) {
            append_entry(i, &r);
        } else if (m->to == me && m->lane == LANE_MATCH) {
            append_decoy(i, &r);
            due[due_count++] = i;
        }
    }
}

/* ---- on the way ---- */

static void search(unsigned i, ptl_search_op_t op)
{
    const struct message *m = &plan.message[i];
    struct entry nowhere = {.at = {.n = 1}};
    ptl_me_t me_ = describe(m, &nowhere, PTL_ME_USE_ONCE | PTL_ME_EVENT_CT_OVERFLOW);
    void *user = tagged(TAG_SEARCH, i);
    searching = i + 1;
    if (is_matching(m->face)) {
        OK(PtlMESearch(face[m->face].ni, LANE_MATCH, &me_, op, user));
    } else {
        ptl_le_t le = {NULL, 0, me_.ct_handle, me_.uid, me_.options};
        OK(PtlLESearch(face[m->face].ni, LANE_MATCH, &le, op, user));
    }
}

bool match_step(uint64_t *r)
{
    if (due_count == 0 || searching != 0) {
        return searching != 0;
    }
    unsigned k = (unsigned)splitmix_below(r, due_count), i = due[k];
    if (plan.message[i].arrival == LATE) {
        due[k] = due[--due_count];
        append_entry(i, r);
    } else {
        search(i, splitmix_below(r, 2) == 0 ? PTL_SEARCH_ONLY : PTL_SEARCH_DELETE);
    }
    return true;
}

bool match_done(void)
{
    return taken == expected && searching == 0;
}

/* ---- events ---- */

/* The message that an event of this lane is about. */
static unsigned number(unsigned f, const ptl_event_t *e)
{
    return (unsigned)(is_matching(f) ? e->remote_offset : e->hdr_data);
}

static void check_bytes(unsigned i, const ptl_event_t *e, const struct entry *direct)
{
    const struct message *m = &plan.message[i];
    if (m->act == ACT_GET || e->mlength == 0) {
        return;
    }
    unsigned char *bytes = memory(e->mlength);
    if (direct != NULL) {
        parts_read(&direct->at, 0, bytes, e->mlength);
    } else {
        memcpy(bytes, e->start, e->mlength);
    }
    check_pattern(bytes, e->mlength, i, "message");
    free(bytes);
}

static void take(unsigned f, const ptl_event_t *e, const struct entry *direct)
{
    unsigned i = number(f, e);
    target_saw(f, e, i);
    const struct message *m = &plan.message[i];
    MUST(!state[i].taken && state[i].landed == (direct == NULL), "message %u: %s", i,
         state[i].taken ? "taken twice" : "its overflow event");
    MUST(e->mlength == (direct != NULL ? m->room : m->length), "message %u: mlength %llu", i,
         (unsigned long long)e->mlength);
    check_bytes(i, e, direct);
    state[i].taken = true;
    taken++;
    shared->progress++;
}

static bool is_overflow(const ptl_event_t *e)
{
    return e->type == PTL_EVENT_PUT_OVERFLOW || e->type == PTL_EVENT_GET_OVERFLOW ||
           e->type == PTL_EVENT_ATOMIC_OVERFLOW || e->type == PTL_EVENT_FETCH_ATOMIC_OVERFLOW;
}

static void entry_event(unsigned f, const ptl_event_t *e)
{
    struct entry *of = &entry[number_of(e)];
    MUST(of->face == f && !of->decoy, "an event of type %u of entry %u", e->type, number_of(e));
    switch (e->type) {
    case PTL_EVENT_LINK:
        MUST(of->taken == 0 && of->unlinks == 0, "LINK after its message");
        of->links++;
        break;
    case PTL_EVENT_AUTO_UNLINK:
        MUST(of->taken == 1, "AUTO_UNLINK before its message");
        of->unlinks++;
        break;
    default:
        of->taken++;
        of->claimed = is_overflow(e);
        shared->late_claims += of->claimed;
        MUST(of->unlinks == 0, "a message after AUTO_UNLINK");
        take(f, e, of->claimed ? NULL : of);
    }
}

static void overflow_event(unsigned f, const ptl_event_t *e)
{
    struct entry *of = &overflow[number_of(e)];
    MUST(of->face == f && of->frees == 0, "an event of type %u of overflow entry %u", e->type,
         number_of(e));
    switch (e->type) {
    case PTL_EVENT_LINK:
        of->links++;
        break;
    case PTL_EVENT_AUTO_UNLINK:
        of->unlinks++;
        break;
    case PTL_EVENT_AUTO_FREE:
        MUST(of->unlinks == 1, "AUTO_FREE before AUTO_UNLINK");
        of->frees++;
        memset(of->at.memory, 0xdb, of->at.length); /* it is the program's again */
        break;
    default: {
        unsigned i = number(f, e);
        target_saw(f, e, i);
        MUST(!is_overflow(e) && e->ptl_list == PTL_OVERFLOW_LIST && !state[i].landed &&
                 !state[i].taken && of->unlinks == 0 && e->mlength == e->rlength,
             "message %u landed: type %u, %llu bytes", i, e->type, (unsigned long long)e->mlength);
        state[i].landed = true;
    }
    }
}

static void drop_due(unsigned i)
{
    for (unsigned k = 0; k < due_count; k++) {
        if (due[k] == i) {
            due[k] = due[--due_count];
            return;
        }
    }
    fail("search %u found something twice", i);
}

static void search_event(unsigned f, const ptl_event_t *e)
{
    unsigned i = number_of(e);
    MUST(searching == i + 1, "an event of type %u of search %u", e->type, i);
    searching = 0;
    if (is_overflow(e)) {
        drop_due(i);
        shared->late_claims++;
        take(f, e, NULL);
    } else if (e->ni_fail_type == PTL_NI_OK) {
        MUST(e->type == PTL_EVENT_SEARCH && state[number(f, e)].landed, "a search's event");
        found[f]++;
        search(i, PTL_SEARCH_DELETE);
    } else {
        MUST(e->type == PTL_EVENT_SEARCH && e->ni_fail_type == PTL_NI_NO_MATCH,
             "a search ends with %u", e->ni_fail_type);
        not_found[f]++;
    }
}

void match_event(unsigned f, const ptl_event_t *e)
{
    switch (tag_of(e)) {
    case TAG_ENTRY:
        entry_event(f, e);
        break;
    case TAG_OVERFLOW:
        overflow_event(f, e);
        break;
    case TAG_SEARCH:
        search_event(f, e);
        break;
    default:
        fail("an event of type %u with user_ptr %p", e->type, e->user_ptr);
    }
}

/* ---- a round ends ---- */

static void close_entry(struct entry *e)
{
    bool matching = is_matching(e->face);
    int code = matching ? PtlMEUnlink(e->handle) : PtlLEUnlink(e->handle);
    if (e->decoy) {
        MUST(code == PTL_OK && e->taken == 0, "a decoy's unlinking gives %d", code);
    } else {
        unsigned links = (e->options & PTL_ME_EVENT_LINK_DISABLE) != 0 ? 0 : !e->claimed;
        unsigned unlinks = (e->options & PTL_ME_EVENT_UNLINK_DISABLE) != 0 ? 0 : 1;
        MUST(code == PTL_ARG_INVALID && e->taken == 1 && e->links == links && e->unlinks == unlinks,
             "a use-once entry took %u (%s): %u LINK, %u AUTO_UNLINK; its unlinking gives %d",
             e->taken, e->claimed ? "claimed" : "direct", e->links, e->unlinks, code);
    }
    parts_free(&e->at);
}

static void close_overflow(struct entry *e)
{
    bool matching = is_matching(e->face);
    int code = matching ? PtlMEUnlink(e->handle) : PtlLEUnlink(e->handle);
    MUST(e->links == 1 && e->frees == e->unlinks && e->unlinks <= 1 &&
             code == (e->unlinks != 0 ? PTL_ARG_INVALID : PTL_OK),
         "an overflow entry: %u LINK, %u AUTO_UNLINK, %u AUTO_FREE; its unlinking gives %d",
         e->links, e->unlinks, e->frees, code);
    parts_free(&e->at);
}

void match_close(void)
{
    for (unsigned k = 0; k < entries; k++) {
        close_entry(&entry[k]);
    }
    for (unsigned k = 0; k < overflows; k++) {
        close_overflow(&overflow[k]);
    }
    for (unsigned f = 0; f < FACES; f++) {
        ptl_ct_event_t value;
        uint64_t counts = found[f];
        for (unsigned i = 0; i < plan.count; i++) {
            counts += is_mine(&plan.message[i], f);
        }
        OK(PtlCTGet(counter[f], &value));
        MUST(value.success == counts && value.failure == not_found[f],
             "face %u: the entries' counter is at %llu and %llu failures, not %llu and %llu", f,
             (unsigned long long)value.success, (unsigned long long)value.failure,
             (unsigned long long)counts, (unsigned long long)not_found[f]);
        OK(PtlCTFree(counter[f]));
    }
}
