/* SPDX-License-Identifier: BSD-3-Clause */
/* What a life of the soak of births and deaths serves; see churn.h. */
#include "churn.h"
#include "churn_handlers.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

/* Of one life of another seat, or of this one. */
struct flow {
    uint32_t life;
    uint32_t next[PLACES]; /* HANDLER: messages for different entries run beside each other */
};

static struct flow flow[SEATS][LANES][LIVES];
static unsigned char *window[2], *loose_memory;
static uint64_t words[SEATS][LIVES], ticket;
static ptl_handle_me_t fixed[1024], loose;
static unsigned fixed_count;
static ptl_handle_eq_t loose_eq;
static ptl_handle_ct_t counter;
static ptl_handle_hpu_mem_t state;
static bool loose_linked, loose_eq_there, loose_index_there;
static uint64_t served, failed_here, last_success;

enum { CANARY = 0xa5 };

static unsigned char *place_of(unsigned lane, unsigned from, uint32_t from_life, unsigned place)
{
    size_t each = LONG_MAX_BYTES + (PLACES - 1) * SHORT_MAX_BYTES;
    return window[lane] + (from * LIVES + from_life % LIVES) * each +
           (place == 0 ? 0 : LONG_MAX_BYTES + (place - 1) * SHORT_MAX_BYTES);
}

static ptl_me_t entry(void *start, size_t length, ptl_match_bits_t bits, uint64_t ignore)
{
    return (ptl_me_t){.start = start,
                      .length = length,
                      .ct_handle = counter,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE |
                                 PTL_ME_EVENT_CT_COMM,
                      .match_id = {.phys = {PTL_NID_ANY, PTL_PID_ANY}},
                      .match_bits = bits,
                      .ignore_bits = ignore};
}

static void append(unsigned lane, void *start, size_t length, ptl_match_bits_t bits,
                   uint64_t ignore, const ptl_handlers_t *handlers)
{
    ptl_me_t e = entry(start, length, bits, ignore);
    OK(PtlMEAppendHandlers(ni, lane, &e, handlers, PTL_PRIORITY_LIST, NULL, &fixed[fixed_count]));
    fixed_count++;
}

static void *pages(size_t length)
{
    void *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | (me == 0 ? MAP_POPULATE : 0), -1, 0);
    MUST(p != MAP_FAILED, "no memory");
    return p;
}

static void link_loose(void)
{
    ptl_pt_index_t pt;
    for (size_t k = 0; k < LOOSE_BYTES; k++) {
        MUST(loose_memory[k] == CANARY, "byte %zu of an unlinked entry has been written to", k);
    }
    if (!loose_eq_there) {
        OK(PtlEQAlloc(ni, 64, &loose_eq));
        loose_eq_there = true;
    }
    if (!loose_index_there) {
        OK(PtlPTAlloc(ni, 0, loose_eq, LOOSE, &pt));
        loose_index_there = true;
    }
    ptl_me_t e =
        entry(loose_memory, LOOSE_BYTES, churn_bits(life, LOOSE, 0, 0, 0), (1ull << 44) - 1);
    e.ct_handle = PTL_CT_NONE;
    e.options &= ~PTL_ME_EVENT_CT_COMM;
    OK(PtlMEAppend(ni, LOOSE, &e, PTL_PRIORITY_LIST, NULL, &loose));
    loose_linked = true;
}

void target_open(void)
{
    const uint64_t any_life = 0xfffffffcu, any = (1ull << 44) - 1;
    ptl_pt_index_t pt;
    OK(PtlCTAlloc(ni, &counter));
    OK(PtlHPUAllocMem(ni, sizeof(struct churn_state), &state));
    for (unsigned lane = 0; lane < LOOSE; lane++) {
        OK(PtlPTAlloc(ni, 0, target_eq, lane, &pt));
    }
    size_t each = LONG_MAX_BYTES + (PLACES - 1) * SHORT_MAX_BYTES;
    for (unsigned lane = PLAIN; lane <= HANDLER; lane++) {
        window[lane] = pages(SEATS * LIVES * each);
        for (unsigned k = 0; k < SEATS * LIVES * PLACES; k++) {
            unsigned place = k % PLACES, from = k / PLACES / LIVES, l = k / PLACES % LIVES;
            ptl_handlers_t h = place % 2 == 0 ? churn_by_packet : churn_deposited;
            h.hpu_mem = state;
            append(lane, place_of(lane, from, l, place), churn_room(place),
                   churn_bits(life, lane, from, place, l), any_life, lane == PLAIN ? NULL : &h);
        }
    }
    append(GET, noise + churn_source(me, life, 0), LONG_MAX_BYTES, churn_bits(life, GET, 0, 0, 0),
           any, NULL);
    append(TICKET, &ticket, sizeof(ticket), churn_bits(life, TICKET, 0, 0, 0), any, NULL);
    for (unsigned k = 0; k < SEATS * LIVES; k++) {
        append(ATOMIC, &words[k / LIVES][k % LIVES], 8,
               churn_bits(life, ATOMIC, k / LIVES, 0, k % LIVES), any_life, NULL);
    }
    loose_memory = pages(LOOSE_BYTES);
    memset(loose_memory, CANARY, LOOSE_BYTES);
    link_loose();
}

/* All messages below this number have come, or were lost with the life before. */
static uint32_t come(const struct flow *f, unsigned lane)
{
    uint32_t least = f->next[0];
    for (unsigned row = 1; lane == HANDLER && row < PLACES; row++) {
        uint32_t next = f->next[row] == 0 ? row : f->next[row];
        least = next < least ? next : least;
    }
    return least;
}

/* Whether messages `lost` to `sent` - 1 have come, of which there are some. */
static bool flow_complete(const struct flow *f, unsigned lane, uint32_t lost, uint32_t sent)
{
    if (lane != HANDLER) {
        MUST(f->next[0] <= sent, "lane %u: %u messages, of which %u were sent", lane, f->next[0],
             sent);
        return f->next[0] == sent;
    }
    for (uint32_t n = sent - lost > PLACES ? sent - PLACES : lost; n < sent; n++) {
        if (f->next[n % PLACES] <= n) {
            return false;
        }
    }
    return true;
}

/* A message of a flow: it is the next one, and whole, or its sender is dead or has said that it
 * cannot be read. */
static void check_message(const ptl_event_t *e, unsigned lane, unsigned from, uint32_t its_life)
{
    struct flow *f = &flow[from][lane][its_life % LIVES];
    uint32_t number = (uint32_t)e->hdr_data;
    bool hole = (e->hdr_data & HOLE) != 0;
    if (f->life != its_life) {
        MUST(f->life < its_life, "a message of life %u of seat %u comes after one of life %u",
             its_life, from, f->life);
        *f = (struct flow){.life = its_life};
    }
    unsigned row = lane == HANDLER ? number % PLACES : 0, step = lane == HANDLER ? PLACES : 1;
    uint32_t due = f->next[row] == 0 ? row : f->next[row];
    bool after_lost = f->next[row] == 0 && (e->hdr_data & EARLY_FLOW) != 0;
    MUST(number == due || after_lost,
         "lane %u, message %u of seat %u, life %u comes where %u is due", lane, number, from,
         its_life, due);
    f->next[row] = number + step;
    if (e->ni_fail_type != PTL_NI_OK) {
        MUST((hole && e->ni_fail_type == PTL_NI_SEGV) ||
                 (e->ni_fail_type == PTL_NI_UNDELIVERABLE && !churn_lives(from, its_life)),
             "lane %u, message %u (%llu bytes) of seat %u, life %u, which lives, ends with %d",
             lane, number, (unsigned long long)e->rlength, from, its_life, e->ni_fail_type);
        churn_add(C_TORN, 1);
    } else {
        MUST(!hole, "a source with a hole was read");
        MUST(e->mlength == e->rlength, "%llu bytes of %llu", (unsigned long long)e->mlength,
             (unsigned long long)e->rlength);
    }
    unsigned place = number % PLACES;
    if (lane <= HANDLER && e->ni_fail_type == PTL_NI_OK) {
        const unsigned char *got = place_of(lane, from, its_life, place);
        const unsigned char *want = noise + churn_source(from, its_life, number);
        bool its_own = churn->seat[from].newest[its_life % LIVES] == its_life;
        if (its_own && memcmp(got, want, e->mlength) != 0) {
            size_t k = 0;
            while (got[k] == want[k]) {
                k++;
            }
            size_t left = e->mlength - k < 16 ? e->mlength - k : 16;
            const unsigned char *of = memmem(noise, NOISE_BYTES, got + k, left);
            fail("lane %u, message %u of seat %u, life %u: byte %zu of %llu is 0x%02x, not 0x%02x, "
                 "as in a message from %zd of the noise, which should be from %zu",
                 lane, number, from, its_life, k, (unsigned long long)e->mlength, got[k], want[k],
                 of == NULL ? (ssize_t)-1 : of - noise - (ssize_t)k,
                 churn_source(from, its_life, number));
        }
    }
    churn->seat[me].checked[from][lane] = churn_checked(life, its_life, come(f, lane));
}

void target_event(const ptl_event_t *e)
{
    unsigned lane = e->match_bits >> 44 & 15, from = e->match_bits >> 40 & 15;
    uint32_t its_life = (uint32_t)e->match_bits;
    bool known = e->type == PTL_EVENT_PUT || e->type == PTL_EVENT_GET ||
                 e->type == PTL_EVENT_ATOMIC || e->type == PTL_EVENT_FETCH_ATOMIC;
    MUST(known, "an event of type %d at the target", e->type);
    MUST(e->match_bits >> 48 == (life & 0xffff), "a message for life %u has come to life %u",
         (unsigned)(e->match_bits >> 48), life);
    MUST(lane == e->pt_index && lane < LOOSE && from < SEATS, "lane %u, seat %u", lane, from);
    served += e->ni_fail_type == PTL_NI_OK;
    failed_here += e->ni_fail_type != PTL_NI_OK;
    churn_add(C_SERVED, 1);
    if (e->type != PTL_EVENT_GET) {
        check_message(e, lane, from, its_life);
    } else {
        MUST(e->ni_fail_type == PTL_NI_OK || !churn_lives(from, its_life),
             "a get of seat %u, life %u, which lives, ends with %d", from, its_life,
             e->ni_fail_type);
    }
}

/* Takes away the entry's index, queue or the entry itself while messages for it come, or gives
 * it back. */
static void turn_loose(uint64_t *r)
{
    int rc = PTL_OK;
    switch (splitmix_below(r, 6)) {
    case 0:
        if (loose_eq_there) {
            OK(PtlEQFree(loose_eq));
            loose_eq_there = false;
        }
        break;
    case 1:
        if (loose_index_there) {
            rc = PtlPTDisable(ni, LOOSE);
            MUST(rc == PTL_OK || rc == PTL_ABORTED, "PtlPTDisable gives %d", rc);
        }
        break;
    case 2:
        if (loose_index_there) {
            rc = PtlPTFree(ni, LOOSE);
            MUST(rc == (loose_linked ? PTL_PT_IN_USE : PTL_OK), "PtlPTFree gives %d", rc);
            loose_index_there = loose_linked;
        }
        break;
    case 3:
        if (loose_index_there) {
            OK(PtlPTEnable(ni, LOOSE));
        }
        break;
    default:
        if (!loose_linked) {
            link_loose();
        } else if ((rc = PtlMEUnlink(loose)) == PTL_OK) {
            loose_linked = false;
            memset(loose_memory, CANARY, LOOSE_BYTES);
        }
        MUST(rc == PTL_OK || rc == PTL_IN_USE, "PtlMEUnlink gives %d", rc);
    }
    churn_add(C_LOOSE, 1);
}

void target_turn(uint64_t *r)
{
    ptl_ct_event_t v;
    ptl_event_t e;
    if (splitmix_below(r, 64) == 0) {
        turn_loose(r);
        OK(PtlCTGet(counter, &v));
        MUST(v.success >= last_success, "a counter has gone from %llu to %llu",
             (unsigned long long)last_success, (unsigned long long)v.success);
        last_success = v.success;
    }
    while (loose_eq_there) {
        int rc = PtlEQGet(loose_eq, &e);
        MUST(rc == PTL_OK || rc == PTL_EQ_EMPTY || rc == PTL_EQ_DROPPED, "PtlEQGet gives %d", rc);
        if (rc == PTL_EQ_EMPTY) {
            break;
        }
    }
}

/* Whether what the last life of each seat says that it has sent has come. */
bool target_complete(void)
{
    for (unsigned from = 0; from < SEATS; from++) {
        uint32_t its_life = (uint32_t)(churn->seat[from].address >> 16);
        for (unsigned lane = 0; lane < LOOSE; lane++) {
            struct flow *f = &flow[from][lane][its_life % LIVES];
            uint32_t sent = churn->seat[from].sent[me][lane];
            uint32_t lost = churn->seat[from].lost[me][lane];
            if (lane != GET && sent > lost &&
                (f->life != its_life || !flow_complete(f, lane, lost, sent))) {
                return false;
            }
        }
    }
    return true;
}

void target_close(void)
{
    ptl_ct_event_t v;
    struct churn_state s;
    OK(PtlCTGet(counter, &v));
    MUST(v.success == served && v.failure == failed_here, "%llu + %llu counted, %llu + %llu events",
         (unsigned long long)v.success, (unsigned long long)v.failure, (unsigned long long)served,
         (unsigned long long)failed_here);
    OK(PtlHPURead(state, 0, &s, sizeof(s)));
    MUST(s.headers == s.completions, "%llu header handlers, %llu completion handlers",
         (unsigned long long)s.headers, (unsigned long long)s.completions);
    for (unsigned k = 0; k < fixed_count; k++) {
        OK(PtlMEUnlink(fixed[k]));
    }
    if (loose_linked) {
        OK(PtlMEUnlink(loose));
    }
    OK(PtlHPUFreeMem(state));
    OK(PtlCTFree(counter));
}
