/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The target's side of the lanes WINDOW, FLOW and FORBIDDEN, and the registers.
 *
 * The window is one entry, in one piece or in parts, changed from round to round. What
 * lands in it has places of its own, but for sums and tickets, which are checked in the end.
 * The queues of FLOW are short and looked at now and then only: what they cannot hold is
 * refused, PT_DISABLED tells, PtlPTEnable goes on when they are empty.
 */
#include "full.h"

#include <stdlib.h>
#include <string.h>

enum { FLOW_EVENTS = 3 };

static struct parts window[FACES], flow[FACES];
static ptl_handle_le_t window_entry[FACES], flow_entry[FACES], forbidden_entry[FACES];
static ptl_handle_ct_t window_counter[FACES];
static bool seen[MESSAGES_MAX];
static unsigned expected, arrived;
static ptl_sr_value_t registers[FACES][PTL_SR_LAST];
static uint64_t window_count[FACES]; /* what its counter must be at */
static bool lazy = true;             /* FLOW is looked at seldom */

/* ---- a round begins ---- */

static ptl_handle_le_t append(unsigned f, ptl_pt_index_t pt, struct parts *p, unsigned options,
                              ptl_handle_ct_t ct, enum tag tag)
{
    ptl_me_t e;
    ptl_handle_le_t handle;
    memset(&e, 0, sizeof(e));
    e.start = parts_start(p);
    e.length = parts_count(p);
    e.ct_handle = ct;
    e.uid = PTL_UID_ANY;
    e.options = options | PTL_ME_EVENT_LINK_DISABLE | (p->n > 1 ? PTL_IOVEC : 0);
    e.ignore_bits = ~(ptl_match_bits_t)0;
    if (is_logical(f)) {
        e.match_id.rank = PTL_RANK_ANY;
    } else {
        e.match_id.phys.nid = PTL_NID_ANY;
        e.match_id.phys.pid = PTL_PID_ANY;
    }
    if (is_matching(f)) {
        OK(PtlMEAppend(face[f].ni, pt, &e, PTL_PRIORITY_LIST, tagged(tag, f), &handle));
    } else {
        ptl_le_t le = {e.start, e.length, e.ct_handle, e.uid, e.options};
        OK(PtlLEAppend(face[f].ni, pt, &le, PTL_PRIORITY_LIST, tagged(tag, f), &handle));
    }
    return handle;
}

static void open_window(unsigned f, uint64_t *r)
{
    parts_new(&window[f], WINDOW_BYTES, splitmix_below(r, 2) == 0 ? 1 : PARTS_MAX, r);
    unsigned char *constant = memory(GETS_BYTES);
    for (size_t k = 0; k < GETS_BYTES; k++) {
        constant[k] = pattern(MESSAGES_MAX + me, k);
    }
    parts_write(&window[f], AT_GETS, constant, GETS_BYTES);
    free(constant);
    OK(PtlCTAlloc(face[f].ni, &window_counter[f]));
    window_entry[f] = append(f, LANE_WINDOW, &window[f],
                             PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM |
                                 (plan.counts_bytes[f] ? PTL_ME_EVENT_CT_BYTES : 0),
                             window_counter[f], TAG_WINDOW);
}

void target_open(void)
{
    uint64_t r = seed + 77 * round_number + me;
    memset(seen, 0, sizeof(seen));
    memset(window_count, 0, sizeof(window_count));
    expected = arrived = 0;
    lazy = true;
    for (unsigned i = 0; i < plan.count; i++) {
        const struct message *m = &plan.message[i];
        bool here = m->to == me && (m->lane == LANE_WINDOW || m->lane == LANE_FLOW);
        expected += here;
        if (here && m->lane == LANE_WINDOW) {
            window_count[m->face] += plan.counts_bytes[m->face] ? m->length : 1;
        }
    }
    for (unsigned f = 0; f < FACES; f++) {
        open_window(f, &r);
        parts_new(&flow[f], FLOW_BYTES, splitmix_below(&r, 2) == 0 ? 1 : PARTS_MAX, &r);
        ptl_pt_index_t pt;
        OK(PtlEQAlloc(face[f].ni, FLOW_EVENTS, &face[f].flow_eq));
        OK(PtlPTAlloc(face[f].ni, PTL_PT_FLOWCTRL, face[f].flow_eq, LANE_FLOW, &pt));
        flow_entry[f] =
            append(f, LANE_FLOW, &flow[f], PTL_ME_OP_PUT | PTL_ME_OP_GET, PTL_CT_NONE, TAG_FLOW);
        forbidden_entry[f] =
            append(f, LANE_FORBIDDEN, &flow[f], PTL_ME_OP_GET, PTL_CT_NONE, TAG_FLOW);
        for (int k = 0; k < PTL_SR_LAST; k++) {
            OK(PtlNIStatus(face[f].ni, (ptl_sr_index_t)k, &registers[f][k]));
        }
        shared->tickets[me][f] = 0;
        for (unsigned k = 0; k < PROCESSES; k++) {
            shared->refused[k][me][f] = 0;
        }
    }
}

/* ---- events ---- */

void check_pattern(const unsigned char *bytes, size_t n, unsigned number, const char *what)
{
    for (size_t k = 0; k < n; k++) {
        MUST(bytes[k] == pattern(number, k), "%s %u: byte %zu of %zu is 0x%02x, not 0x%02x", what,
             number, k, n, bytes[k], pattern(number, k));
    }
}

static ptl_event_kind_t event_of(const struct message *m)
{
    static const ptl_event_kind_t events[] = {PTL_EVENT_PUT, PTL_EVENT_GET, PTL_EVENT_ATOMIC,
                                              PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_FETCH_ATOMIC};
    return events[m->act];
}

void target_saw(unsigned f, const ptl_event_t *e, unsigned i)
{
    MUST(i < plan.count, "an event of type %u names message %u", e->type, i);
    const struct message *m = &plan.message[i];
    const ptl_process_t *id = &face[f].id[m->from];
    bool same = is_logical(f) ? id->rank == e->initiator.rank
                              : id->phys.nid == e->initiator.phys.nid &&
                                    id->phys.pid == e->initiator.phys.pid;
    MUST(m->to == me && m->face == f && same && e->ni_fail_type == PTL_NI_OK &&
             (e->type == event_of(m) || e->type == event_of(m) + 1) && e->rlength == m->length &&
             e->pt_index == m->lane && e->remote_offset == m->at,
         "message %u (%s from %u, face %u): event type %u, ni_fail_type %u, rlength %llu, "
         "index %u, offset %llu",
         i, act_name(m->act), m->from, m->face, e->type, e->ni_fail_type,
         (unsigned long long)e->rlength, e->pt_index, (unsigned long long)e->remote_offset);
    MUST(m->act < ACT_ATOMIC || (e->atomic_operation == m->op && e->atomic_type == m->type),
         "message %u: operation %u on type %u", i, e->atomic_operation, e->atomic_type);
}

/* A get carries no number: its offset tells which one it is. */
static unsigned find_get(unsigned f, const ptl_event_t *e)
{
    if (e->remote_offset >= AT_GETS) {
        return (unsigned)((e->remote_offset - AT_GETS) / 8);
    }
    unsigned i = 0;
    while (i < plan.count &&
           !(plan.message[i].sub == SUB_VERIFY && plan.message[i].to == me &&
             plan.message[i].face == f && plan.message[i].at == e->remote_offset)) {
        i++;
    }
    return i;
}

static void served(unsigned f, const ptl_event_t *e)
{
    unsigned i = e->type == PTL_EVENT_GET ? find_get(f, e) : (unsigned)e->hdr_data;
    target_saw(f, e, i);
    MUST(!seen[i] && e->mlength == e->rlength && e->ptl_list == PTL_PRIORITY_LIST,
         "message %u: %s, %llu bytes", i, seen[i] ? "came twice" : "came",
         (unsigned long long)e->mlength);
    seen[i] = true;
    arrived++;
    shared->progress++;
}

void target_event(unsigned f, const ptl_event_t *e)
{
    shared->events++;
    switch (tag_of(e)) {
    case TAG_WINDOW:
    case TAG_FLOW:
        served(f, e);
        break;
    case TAG_CHAIN:
        chain_target_event(f, e);
        break;
    default:
        match_event(f, e);
    }
}

/* Empties the queue of one face's FLOW, and opens it again if it had to close. */
static void look_at_flow(unsigned f)
{
    ptl_event_t e;
    int code;
    while ((code = PtlEQGet(face[f].flow_eq, &e)) == PTL_OK) {
        if (e.type == PTL_EVENT_PT_DISABLED) {
            OK(PtlPTEnable(face[f].ni, LANE_FLOW));
        } else {
            target_event(f, &e);
        }
    }
    MUST(code == PTL_EQ_EMPTY, "PtlEQGet of a queue with flow control gives %d", code);
}

void flow_step(uint64_t *r)
{
    for (unsigned f = 0; f < FACES; f++) {
        if (face[f].flow_eq != 0 && (!lazy || splitmix_below(r, 40) == 0)) {
            look_at_flow(f);
        }
    }
}

bool target_done(void)
{
    return arrived == expected && match_done();
}

/* ---- a round ends ---- */

static void check_put(const struct message *m, unsigned i)
{
    unsigned char *bytes = memory(m->length);
    parts_read(m->lane == LANE_FLOW ? &flow[m->face] : &window[m->face], m->at, bytes, m->length);
    check_pattern(bytes, m->length, i, "what was put by message");
    free(bytes);
}

static void check_sums(unsigned f)
{
    unsigned char sums[TYPES][ELEMENT_MAX] = {{0}}, value[ELEMENT_MAX], now[ELEMENT_MAX];
    uint64_t tickets = 0, drawn;
    for (unsigned i = 0; i < plan.count; i++) {
        const struct message *m = &plan.message[i];
        if (m->to == me && m->face == f && m->sub == SUB_SUM) {
            model_value(value, m->type, (int)(i % 3) + 1, false);
            model_apply(sums[m->type], value, NULL, PTL_SUM, m->type);
        }
        tickets += m->to == me && m->face == f && m->sub == SUB_TICKET;
    }
    for (unsigned t = 0; t < TYPES; t++) {
        parts_read(&window[f], AT_SUMS + (size_t)t * ELEMENT_MAX, now, type_size(t));
        MUST(model_equal(now, sums[t], t), "face %u: the sum of type %u is wrong", f, t);
    }
    parts_read(&window[f], AT_TICKET, &drawn, sizeof(drawn));
    uint64_t all = tickets == 64 ? ~0ull : (1ull << tickets) - 1;
    MUST(drawn == tickets && shared->tickets[me][f] == all,
         "face %u: %llu tickets of %llu were drawn", f, (unsigned long long)drawn,
         (unsigned long long)tickets);
}

static void check_registers(unsigned f)
{
    int64_t wanted[PTL_SR_LAST] = {0};
    for (unsigned i = 0; i < plan.count; i++) {
        const struct message *m = &plan.message[i];
        bool here = m->to == me && m->face == f;
        wanted[PTL_SR_DROP_COUNT] += here && m->lane == LANE_NOBODY;
        wanted[PTL_SR_OPERATION_VIOLATIONS] += here && m->lane == LANE_FORBIDDEN;
    }
    for (unsigned k = 0; k < PROCESSES; k++) {
        wanted[PTL_SR_DROP_COUNT] += (int64_t)shared->refused[k][me][f];
    }
    for (int k = 0; k < PTL_SR_LAST; k++) {
        ptl_sr_value_t value;
        OK(PtlNIStatus(face[f].ni, (ptl_sr_index_t)k, &value));
        MUST((int64_t)value - registers[f][k] == wanted[k],
             "face %u: register %d went from %d to %d, not by %lld", f, k, registers[f][k], value,
             (long long)wanted[k]);
    }
}

static void unlink_entry(unsigned f, ptl_handle_le_t entry)
{
    int code;
    do {
        code = is_matching(f) ? PtlMEUnlink(entry) : PtlLEUnlink(entry);
    } while (code == PTL_IN_USE);
    MUST(code == PTL_OK, "an entry's unlinking gives %d", code);
}

static void close_face(unsigned f)
{
    ptl_ct_event_t value;
    check_sums(f);
    check_registers(f);
    OK(PtlCTGet(window_counter[f], &value));
    MUST(value.success == window_count[f] && value.failure == 0,
         "face %u: the window's counter is at %llu and %llu failures, not %llu", f,
         (unsigned long long)value.success, (unsigned long long)value.failure,
         (unsigned long long)window_count[f]);
    unlink_entry(f, window_entry[f]);
    unlink_entry(f, flow_entry[f]);
    unlink_entry(f, forbidden_entry[f]);
    OK(PtlCTFree(window_counter[f]));
    look_at_flow(f); /* a last PT_DISABLED */
    OK(PtlPTDisable(face[f].ni, LANE_FLOW));
    OK(PtlPTFree(face[f].ni, LANE_FLOW));
    OK(PtlEQFree(face[f].flow_eq));
    face[f].flow_eq = 0;
    parts_free(&window[f]);
    parts_free(&flow[f]);
}

void target_close(void)
{
    lazy = false;
    for (unsigned i = 0; i < plan.count; i++) {
        const struct message *m = &plan.message[i];
        if (m->to == me && (m->lane == LANE_WINDOW || m->lane == LANE_FLOW) && m->sub == SUB_NONE &&
            m->act != ACT_GET) {
            check_put(m, i);
        }
    }
    for (unsigned f = 0; f < FACES; f++) {
        close_face(f);
    }
}
