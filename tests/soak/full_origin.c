/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The initiator's side: starts this process's messages of the plan in a random order that
 * keeps those on owned elements and their final reading in turn; each of its events comes
 * once, and its counters end where the plan says.
 */
#include "full.h"

#include <stdlib.h>
#include <string.h>

enum { WANT_SEND = 1, WANT_ANSWER = 2, VOLATILE_MAX = 4096 };
#define BYTES_MOST ((size_t)6 << 20) /* under way */

static struct origin {
    unsigned wants;
    bool again;         /* it was refused and is to be sent once more */
    ptl_ni_fail_t fail; /* of its answer */
    struct parts data;  /* what is sent, then what is fetched */
    ptl_handle_md_t own_md;
    unsigned char operand[ELEMENT_MAX], expected[ELEMENTS * ELEMENT_MAX];
} origin[MESSAGES_MAX];

static unsigned mine[MESSAGES_MAX], mine_count, started, ended, to_repeat;
static size_t bytes_under_way;
static ptl_handle_md_t md[FACES][MD_KINDS];
static ptl_handle_ct_t counter[FACES][MD_KINDS];
static uint64_t counted[FACES][MD_KINDS];
/* What this process's elements at others must be. */
static unsigned char model[PROCESSES][FACES][OWNED_BYTES];

static bool fetches(const struct message *m)
{
    return m->act == ACT_FETCH || m->act == ACT_SWAP;
}

static bool is_counted(const struct message *m)
{
    return m->md == MD_COUNTED || m->md == MD_BYTES;
}

/* Messages in random order, but owned elements in that of the plan and read at last. */
static void choose_order(void)
{
    uint64_t r = seed + round_number * PROCESSES + me;
    mine_count = started = ended = to_repeat = 0;
    bytes_under_way = 0;
    for (unsigned i = 0; i < plan.count; i++) {
        if (plan.message[i].from == me) {
            mine[mine_count++] = i;
        }
    }
    unsigned movable = 0;
    while (movable < mine_count && plan.message[mine[movable]].sub != SUB_VERIFY) {
        movable++;
    }
    for (unsigned i = 0; i < movable; i++) {
        unsigned j = (unsigned)splitmix_below(&r, movable), t = mine[i];
        mine[i] = mine[j];
        mine[j] = t;
    }
}

void origin_open(void)
{
    choose_order();
    memset(origin, 0, sizeof(origin));
    memset(model, 0, sizeof(model));
    memset(counted, 0, sizeof(counted));
    for (unsigned f = 0; f < FACES; f++) {
        static const unsigned options[MD_KINDS] = {
            0, PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY,
            PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY | PTL_MD_EVENT_CT_BYTES, PTL_MD_VOLATILE,
            0};
        for (unsigned k = 0; k < MD_PARTS; k++) {
            ptl_md_t d = {NULL, PTL_SIZE_MAX, options[k], face[f].origin_eq, PTL_CT_NONE};
            OK(PtlCTAlloc(face[f].ni, &counter[f][k]));
            d.ct_handle = counter[f][k];
            OK(PtlMDBind(face[f].ni, &d, &md[f][k]));
        }
    }
}

/* ---- starting ---- */

/* What is put into owned elements, and what must come back; moves the model on. */
static void prepare_owned(const struct message *m, struct origin *o, unsigned i)
{
    size_t size = type_size(m->type);
    unsigned char *t = model[m->to][m->face] + (m->at - m->from * OWNED_BYTES);
    uint64_t r = seed ^ (round_number << 20) ^ i;
    bool careful = m->op == PTL_PROD;
    if (splitmix_below(&r, 2) == 0) {
        memcpy(o->operand, t, size);
    } else {
        model_value(o->operand, m->type, (int)splitmix_below(&r, 5) - 2, careful);
    }
    memcpy(o->expected, t, m->length);
    for (size_t k = 0; k < m->length / size; k++) {
        unsigned char value[ELEMENT_MAX];
        model_value(value, m->type, (int)splitmix_below(&r, 5) - 2, careful);
        parts_write(&o->data, k * size, value, size);
        model_apply(t + k * size, value, o->operand, m->op, m->type);
    }
}

static void prepare(const struct message *m, struct origin *o, unsigned i)
{
    uint64_t r = seed + round_number + i;
    parts_new(&o->data, (size_t)m->length * (fetches(m) ? 2 : 1),
              m->md == MD_PARTS ? 1 + (unsigned)splitmix_below(&r, PARTS_MAX) : 1, &r);
    if (m->sub == SUB_OWNED) {
        prepare_owned(m, o, i);
    } else if (m->sub == SUB_SUM || m->sub == SUB_TICKET) {
        unsigned char value[ELEMENT_MAX];
        model_value(value, m->type, m->sub == SUB_TICKET ? 1 : (int)(i % 3) + 1, false);
        parts_write(&o->data, 0, value, m->length);
    } else if (m->act != ACT_GET) {
        unsigned char *bytes = memory(m->length);
        for (size_t k = 0; k < m->length; k++) {
            bytes[k] = pattern(i, k);
        }
        parts_write(&o->data, 0, bytes, m->length);
        free(bytes);
    }
    if (m->md == MD_PARTS) {
        ptl_md_t d = {parts_start(&o->data), parts_count(&o->data), o->data.n > 1 ? PTL_IOVEC : 0,
                      face[m->face].origin_eq, PTL_CT_NONE};
        OK(PtlMDBind(face[m->face].ni, &d, &o->own_md));
    }
    shared->bytes += m->length;
}

static void count_expected(const struct message *m)
{
    uint64_t *c = &counted[m->face][m->md];
    uint64_t answer = m->md == MD_BYTES && m->ack != PTL_OC_ACK_REQ ? m->room : 1;
    if (m->act == ACT_GET || fetches(m)) {
        answer = m->md == MD_BYTES ? m->room : 1;
    } else if (m->ack == PTL_NO_ACK_REQ) {
        answer = 0;
    }
    *c += answer + (m->md == MD_COUNTED && m->act != ACT_GET);
}

static void start(unsigned i)
{
    const struct message *m = &plan.message[i];
    struct origin *o = &origin[i];
    struct face *f = &face[m->face];
    bool whole = m->md != MD_PARTS;
    ptl_handle_md_t d = whole ? md[m->face][m->md] : o->own_md;
    ptl_size_t at = whole ? (ptl_size_t)(uintptr_t)o->data.memory : 0, back = at + m->length;
    ptl_process_t to = f->id[m->to];
    ptl_pt_index_t pt = m->lane;
    ptl_match_bits_t bits = (uint64_t)round_number << 16 | i;
    void *user = tagged(TAG_MESSAGE, i);
    note("%s %u to %u, face %u, lane %u, sub %u, %u bytes at %llu, ack %u, md %u, op %u, type %u",
         act_name(m->act), i, m->to, m->face, m->lane, m->sub, m->length, (unsigned long long)m->at,
         m->ack, m->md, m->op, m->type);
    o->wants = m->act == ACT_GET                     ? WANT_ANSWER
               : fetches(m) || m->ack == PTL_ACK_REQ ? WANT_SEND | WANT_ANSWER
                                                     : WANT_SEND;
    switch (m->act) {
    case ACT_PUT:
        OK(PtlPut(d, at, m->length, m->ack, to, pt, bits, m->at, user, i));
        break;
    case ACT_GET:
        OK(PtlGet(d, at, m->length, to, pt, bits, m->at, user));
        break;
    case ACT_ATOMIC:
        OK(PtlAtomic(d, at, m->length, m->ack, to, pt, bits, m->at, user, i, m->op, m->type));
        break;
    case ACT_FETCH:
        OK(PtlFetchAtomic(d, back, d, at, m->length, to, pt, bits, m->at, user, i, m->op, m->type));
        break;
    default:
        OK(PtlSwap(d, back, d, at, m->length, to, pt, bits, m->at, user, i, o->operand, m->op,
                   m->type));
    }
    if (m->md == MD_VOLATILE && m->act == ACT_PUT && m->length <= VOLATILE_MAX) {
        memset(o->data.memory, 0xdb, m->length); /* it is the program's again */
    }
    shared->operations++;
}

/* Sends one of those that were refused again. */
static bool repeat(uint64_t *r)
{
    unsigned first = (unsigned)splitmix_below(r, mine_count);
    for (unsigned k = 0; k < mine_count; k++) {
        unsigned i = mine[(first + k) % mine_count];
        if (origin[i].again) {
            origin[i].again = false;
            to_repeat--;
            start(i);
            return true;
        }
    }
    fail("%u refused messages, none to be found", to_repeat);
}

bool origin_step(uint64_t *r)
{
    if (to_repeat != 0 && splitmix_below(r, 2) == 0) {
        return repeat(r);
    }
    if (started == mine_count) {
        return to_repeat != 0;
    }
    unsigned i = mine[started];
    const struct message *m = &plan.message[i];
    if (bytes_under_way != 0 && bytes_under_way + m->length > BYTES_MOST) {
        return true; /* later */
    }
    started++;
    bytes_under_way += m->length;
    if (is_counted(m)) {
        count_expected(m);
    }
    prepare(m, &origin[i], i);
    start(i);
    return true;
}

bool origin_done(void)
{
    return ended == mine_count;
}

/* ---- events ---- */

static ptl_ni_fail_t expected_fail(const struct message *m)
{
    return m->lane == LANE_NOBODY      ? PTL_NI_DROPPED
           : m->lane == LANE_FORBIDDEN ? PTL_NI_OP_VIOLATION
                                       : PTL_NI_OK;
}

static void check_owned(const struct message *m, const unsigned char *got,
                        const unsigned char *wanted)
{
    size_t size = type_size(m->type);
    for (size_t k = 0; k < m->length; k += size) {
        MUST(model_equal(got + k, wanted + k, m->type),
             "a fetch of type %u, operation %u: element %zu is not what it was", m->type, m->op,
             k / size);
    }
}

/* All that this process's elements have become. */
static void check_all_owned(const struct message *m, const unsigned char *got)
{
    for (unsigned type = 0; type < TYPES; type++) {
        for (size_t k = 0; k < ELEMENTS; k++) {
            size_t at = (size_t)type * ELEMENTS * ELEMENT_MAX + k * type_size(type);
            MUST(model_equal(got + at, model[m->to][m->face] + at, type),
                 "element %zu of type %u at process %u, face %u is wrong in the end", k, type,
                 m->to, m->face);
        }
    }
}

static void check_ticket(const struct message *m, const unsigned char *got)
{
    uint64_t ticket;
    memcpy(&ticket, got, sizeof(ticket));
    MUST(ticket < 64, "ticket %llu was never there", (unsigned long long)ticket);
    uint64_t before = atomic_fetch_or(&shared->tickets[m->to][m->face], 1ull << ticket);
    MUST((before >> ticket & 1) == 0, "ticket %llu was drawn twice", (unsigned long long)ticket);
}

static void check_reply(const struct message *m, struct origin *o)
{
    unsigned char *got = memory(m->length);
    parts_read(&o->data, fetches(m) ? m->length : 0, got, m->length);
    if (m->sub == SUB_OWNED) {
        check_owned(m, got, o->expected);
    } else if (m->sub == SUB_VERIFY) {
        check_all_owned(m, got);
    } else if (m->sub == SUB_TICKET) {
        check_ticket(m, got);
    } else {
        bool constant = m->lane == LANE_WINDOW;
        for (size_t k = 0; k < m->room; k++) {
            unsigned char wanted =
                constant ? pattern(MESSAGES_MAX + m->to, m->at - AT_GETS + k) : 0;
            MUST(got[k] == wanted, "a %s of %u bytes: byte %zu is 0x%02x, not 0x%02x",
                 act_name(m->act), m->length, k, got[k], wanted);
        }
    }
    free(got);
}

static void end(unsigned i)
{
    const struct message *m = &plan.message[i];
    struct origin *o = &origin[i];
    if (m->lane == LANE_FLOW && o->fail == PTL_NI_PT_DISABLED) {
        o->again = true;
        to_repeat++;
        shared->refused[me][m->to][m->face]++;
        shared->refusals++;
        return;
    }
    bytes_under_way -= m->length;
    if (o->own_md == 0) {
        parts_free(&o->data);
    }
    ended++;
    shared->progress++;
}

void origin_event(unsigned f, const ptl_event_t *e)
{
    unsigned i = number_of(e);
    MUST(i < plan.count && plan.message[i].from == me && plan.message[i].face == f,
         "an event of type %u names operation %u", e->type, i);
    const struct message *m = &plan.message[i];
    struct origin *o = &origin[i];
    bool answer = e->type == PTL_EVENT_ACK || e->type == PTL_EVENT_REPLY;
    unsigned what = answer ? WANT_ANSWER : WANT_SEND;
    bool replies = m->act == ACT_GET || fetches(m);
    MUST((o->wants & what) != 0 && (answer || e->type == PTL_EVENT_SEND) &&
             (!answer || (e->type == PTL_EVENT_REPLY) == replies),
         "event type %u of %s %u was not due", e->type, act_name(m->act), i);
    ptl_ni_fail_t fail_type = e->ni_fail_type;
    bool refused = m->lane == LANE_FLOW && fail_type == PTL_NI_PT_DISABLED;
    MUST(fail_type == expected_fail(m) || refused || (!answer && fail_type == PTL_NI_OK),
         "event type %u of %s %u has ni_fail_type %u", e->type, act_name(m->act), i, fail_type);
    if (answer && fail_type == PTL_NI_OK) {
        MUST(e->mlength == m->room, "%s %u: mlength %llu, not %u", act_name(m->act), i,
             (unsigned long long)e->mlength, m->room);
        if (replies) {
            check_reply(m, o);
        }
    }
    o->wants &= ~what;
    o->fail = answer ? fail_type : o->fail;
    if (o->wants == 0) {
        end(i);
    }
}

/* ---- the end of a round ---- */

static void check_counter(unsigned f, unsigned k)
{
    ptl_ct_event_t value;
    do {
        pump(false);
        OK(PtlCTGet(counter[f][k], &value));
    } while (value.success < counted[f][k] && value.failure == 0);
    MUST((k != MD_COUNTED && k != MD_BYTES) ||
             (value.success == counted[f][k] && value.failure == 0),
         "face %u, MD kind %u: its counter is at %llu and %llu failures, not %llu", f, k,
         (unsigned long long)value.success, (unsigned long long)value.failure,
         (unsigned long long)counted[f][k]);
}

/* The NIC may need a moment to take note that its own buffers are free. */
static void release(ptl_handle_md_t d)
{
    int code;
    while ((code = PtlMDRelease(d)) == PTL_IN_USE) {
        pump(false);
    }
    MUST(code == PTL_OK, "PtlMDRelease gives %d", code);
}

void origin_close(void)
{
    for (unsigned k = 0; k < mine_count; k++) {
        struct origin *o = &origin[mine[k]];
        if (o->own_md != 0) {
            release(o->own_md);
            parts_free(&o->data);
        }
    }
    for (unsigned f = 0; f < FACES; f++) {
        for (unsigned k = 0; k < MD_PARTS; k++) {
            check_counter(f, k);
            release(md[f][k]);
            OK(PtlCTFree(counter[f][k]));
        }
    }
}
