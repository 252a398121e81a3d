/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Triggered chains: on each face one that goes through the processes,
 *
 *   kick ──► hop 0 ──► counter of its target ──► hop 1 ──► counter of its target ──► ...
 *
 * each hop a triggered operation on the counter of the entry that the hop before came to,
 * some by way of a second counter. Where faces match, each arrival may append the entry of
 * the next one. A chain knows what every word holds at any time: it is never in two places.
 */
#include "full.h"

#include <string.h>

enum { WORD_SUM, WORD_PUT, WORD_SWAP, WORD_GET, WORDS };

static struct link {
    uint64_t out, back, expected; /* buffers of a hop; what a fetch or swap finds */
    unsigned wants;
} link_[FACES][HOPS_MAX];

static uint64_t words[FACES][WORDS], finally[FACES][WORDS];
static ptl_handle_ct_t arrivals[FACES], relay[FACES], kick[FACES];
static ptl_handle_md_t md[FACES];
static ptl_handle_le_t entry[FACES], idle_entry[FACES];
static unsigned arrived[FACES], to_arrive[FACES], events_due, arrivals_due;

static ptl_me_t describe(unsigned f)
{
    ptl_me_t e;
    memset(&e, 0, sizeof(e));
    e.start = words[f];
    e.length = sizeof(words[f]);
    e.ct_handle = arrivals[f];
    e.uid = PTL_UID_ANY;
    e.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE |
                PTL_ME_EVENT_UNLINK_DISABLE | (plan.chain[f].appended ? PTL_ME_USE_ONCE : 0);
    e.match_id.rank = PTL_RANK_ANY;
    if (!is_logical(f)) {
        e.match_id.phys.nid = PTL_NID_ANY;
        e.match_id.phys.pid = PTL_PID_ANY;
    }
    return e;
}

/* An entry that nothing matches and that a trigger unlinks after the last arrival. */
static void append_idle(unsigned f)
{
    ptl_me_t e = describe(f);
    e.match_bits = 1;
    OK(PtlMEAppend(face[f].ni, LANE_CHAIN, &e, PTL_PRIORITY_LIST, NULL, &idle_entry[f]));
    OK(PtlTriggeredMEUnlink(idle_entry[f], arrivals[f], to_arrive[f]));
}

static void append_first(unsigned f)
{
    ptl_me_t e = describe(f);
    if (is_matching(f)) {
        OK(PtlMEAppend(face[f].ni, LANE_CHAIN, &e, PTL_PRIORITY_LIST, tagged(TAG_CHAIN, f),
                       &entry[f]));
    } else {
        ptl_le_t le = {e.start, e.length, e.ct_handle, e.uid, e.options};
        OK(PtlLEAppend(face[f].ni, LANE_CHAIN, &le, PTL_PRIORITY_LIST, tagged(TAG_CHAIN, f),
                       &entry[f]));
    }
    for (unsigned k = 1; plan.chain[f].appended && k < to_arrive[f]; k++) {
        ptl_handle_me_t later;
        OK(PtlTriggeredMEAppend(face[f].ni, LANE_CHAIN, &e, PTL_PRIORITY_LIST, tagged(TAG_CHAIN, f),
                                &later, arrivals[f], k));
    }
}

/* What a hop finds and leaves behind, in the order of the chain. */
static void follow(unsigned f, unsigned h, uint64_t all[PROCESSES][WORDS])
{
    const struct hop *hop = &plan.chain[f].hop[h];
    struct link *l = &link_[f][h];
    uint64_t *to = all[hop->to];
    l->out = hop->act == ACT_ATOMIC || hop->act == ACT_FETCH ? 1 : (round_number << 8 | h) + 1;
    l->back = 0;
    l->expected = hop->act == ACT_SWAP  ? to[WORD_SWAP]
                  : hop->act == ACT_GET ? 4711ull + hop->to
                                        : to[WORD_SUM];
    if (hop->act == ACT_PUT || hop->act == ACT_SWAP) {
        to[hop->act == ACT_PUT ? WORD_PUT : WORD_SWAP] = l->out;
    } else if (hop->act != ACT_GET) {
        to[WORD_SUM]++;
    }
}

/* Arms hop h of this process. */
static void arm(unsigned f, unsigned h, ptl_handle_ct_t ct, uint64_t threshold)
{
    const struct hop *hop = &plan.chain[f].hop[h];
    struct link *l = &link_[f][h];
    ptl_size_t out = (ptl_size_t)(uintptr_t)&l->out, back = (ptl_size_t)(uintptr_t)&l->back;
    ptl_process_t to = face[f].id[hop->to];
    void *user = tagged(TAG_CHAIN, h);
    l->wants = hop->act == ACT_FETCH || hop->act == ACT_SWAP ? 2 : 1;
    events_due += l->wants;
    switch (hop->act) {
    case ACT_PUT:
        OK(PtlTriggeredPut(md[f], out, 8, PTL_NO_ACK_REQ, to, LANE_CHAIN, 0, 8 * WORD_PUT, user, h,
                           ct, threshold));
        break;
    case ACT_GET:
        OK(PtlTriggeredGet(md[f], back, 8, to, LANE_CHAIN, 0, 8 * WORD_GET, user, ct, threshold));
        break;
    case ACT_ATOMIC:
        OK(PtlTriggeredAtomic(md[f], out, 8, PTL_NO_ACK_REQ, to, LANE_CHAIN, 0, 8 * WORD_SUM, user,
                              h, PTL_SUM, PTL_UINT64_T, ct, threshold));
        break;
    case ACT_FETCH:
        OK(PtlTriggeredFetchAtomic(md[f], back, md[f], out, 8, to, LANE_CHAIN, 0, 8 * WORD_SUM,
                                   user, h, PTL_SUM, PTL_UINT64_T, ct, threshold));
        break;
    default:
        OK(PtlTriggeredSwap(md[f], back, md[f], out, 8, to, LANE_CHAIN, 0, 8 * WORD_SWAP, user, h,
                            NULL, PTL_SWAP, PTL_UINT64_T, ct, threshold));
    }
}

static void open_face(unsigned f)
{
    const struct chain *c = &plan.chain[f];
    uint64_t all[PROCESSES][WORDS] = {{0}};
    ptl_md_t d = {NULL, PTL_SIZE_MAX, 0, face[f].origin_eq, PTL_CT_NONE};
    memset(words[f], 0, sizeof(words[f]));
    words[f][WORD_GET] = 4711 + me;
    arrived[f] = to_arrive[f] = 0;
    OK(PtlCTAlloc(face[f].ni, &arrivals[f]));
    OK(PtlCTAlloc(face[f].ni, &relay[f]));
    OK(PtlCTAlloc(face[f].ni, &kick[f]));
    OK(PtlMDBind(face[f].ni, &d, &md[f]));
    for (unsigned h = 0; h < c->hops; h++) {
        to_arrive[f] += c->hop[h].to == me;
    }
    arrivals_due += to_arrive[f];
    append_first(f);
    uint64_t here = 0, relayed = 0;
    for (unsigned h = 0; h < c->hops; h++) {
        follow(f, h, all);
        if (c->hop[h].from == me && h == 0) {
            arm(f, h, kick[f], 1);
        } else if (c->hop[h].from == me && c->hop[h].relayed) {
            arm(f, h, relay[f], ++relayed);
            OK(PtlTriggeredCTInc(relay[f], (ptl_ct_event_t){1, 0}, arrivals[f], here));
        } else if (c->hop[h].from == me) {
            arm(f, h, arrivals[f], here);
        }
        here += c->hop[h].to == me;
    }
    memcpy(finally[f], all[me], sizeof(finally[f]));
    finally[f][WORD_GET] = 4711 + me;
    idle_entry[f] = PTL_INVALID_HANDLE;
    if (is_matching(f) && to_arrive[f] > 0) {
        append_idle(f);
    }
    /* What never happens: cancelled, and forgotten with its counter. */
    OK(PtlTriggeredPut(md[f], 0, 8, PTL_NO_ACK_REQ, face[f].id[me], LANE_CHAIN, 0, 0, NULL, 0,
                       arrivals[f], 1000));
    OK(PtlTriggeredGet(md[f], 0, 8, face[f].id[me], LANE_CHAIN, 0, 0, NULL, kick[f], 1000));
    OK(PtlTriggeredCTSet(kick[f], (ptl_ct_event_t){0, 0}, relay[f], 1000));
}

void chain_open(void)
{
    events_due = arrivals_due = 0;
    for (unsigned f = 0; f < FACES; f++) {
        open_face(f);
    }
}

void chain_kick(void)
{
    for (unsigned f = 0; f < FACES; f++) {
        if (plan.chain[f].hop[0].from == me) {
            note("kick of the chain on face %u, %u hops", f, plan.chain[f].hops);
            OK(PtlCTInc(kick[f], (ptl_ct_event_t){1, 0}));
        }
    }
}

bool chain_done(void)
{
    return events_due == 0 && arrivals_due == 0;
}

void chain_target_event(unsigned f, const ptl_event_t *e)
{
    static const ptl_event_kind_t events[] = {PTL_EVENT_PUT, PTL_EVENT_GET, PTL_EVENT_ATOMIC,
                                              PTL_EVENT_FETCH_ATOMIC, PTL_EVENT_FETCH_ATOMIC};
    const struct chain *c = &plan.chain[f];
    unsigned h = 0, before = 0;
    while (h < c->hops && (c->hop[h].to != me || before++ < arrived[f])) {
        h++;
    }
    MUST(h < c->hops && e->type == events[c->hop[h].act] && e->ni_fail_type == PTL_NI_OK &&
             e->mlength == 8 && (c->hop[h].act == ACT_GET || e->hdr_data == h),
         "face %u: event type %u, ni_fail_type %u as arrival %u of a chain", f, e->type,
         e->ni_fail_type, arrived[f]);
    arrived[f]++;
    arrivals_due--;
    shared->progress++;
}

void chain_origin_event(unsigned f, const ptl_event_t *e)
{
    unsigned h = number_of(e);
    MUST(h < plan.chain[f].hops && link_[f][h].wants > 0 && e->ni_fail_type == PTL_NI_OK,
         "face %u: event type %u, ni_fail_type %u of hop %u", f, e->type, e->ni_fail_type, h);
    struct link *l = &link_[f][h];
    MUST(e->type != PTL_EVENT_REPLY || l->back == l->expected,
         "face %u: hop %u brought %llu, not %llu", f, h, (unsigned long long)l->back,
         (unsigned long long)l->expected);
    l->wants--;
    events_due--;
}

static void close_face(unsigned f)
{
    ptl_ct_event_t value;
    OK(PtlCTGet(arrivals[f], &value));
    MUST(value.success == to_arrive[f] && value.failure == 0,
         "face %u: a chain's counter is at %llu, not %u", f, (unsigned long long)value.success,
         to_arrive[f]);
    MUST(memcmp(words[f], finally[f], sizeof(words[f])) == 0, "face %u: the words of a chain", f);
    OK(PtlCTCancelTriggered(arrivals[f]));
    OK(PtlCTFree(kick[f]));
    OK(PtlCTFree(relay[f]));
    OK(PtlCTFree(arrivals[f]));
    int code;
    while ((code = PtlMDRelease(md[f])) == PTL_IN_USE) {
        pump(false);
    }
    MUST(code == PTL_OK, "PtlMDRelease of a chain gives %d", code);
    code = is_matching(f) ? PtlMEUnlink(entry[f]) : PtlLEUnlink(entry[f]);
    bool used_up = plan.chain[f].appended && to_arrive[f] > 0;
    MUST(code == (used_up ? PTL_ARG_INVALID : PTL_OK), "unlinking a chain's entry gives %d", code);
    MUST(idle_entry[f] == PTL_INVALID_HANDLE || PtlMEUnlink(idle_entry[f]) == PTL_ARG_INVALID,
         "a trigger did not unlink its entry");
}

void chain_close(void)
{
    for (unsigned f = 0; f < FACES; f++) {
        close_face(f);
    }
}
