/* SPDX-License-Identifier: BSD-3-Clause */
/* What a life of the soak of births and deaths starts, and what becomes of it; see churn.h. */
#include "churn.h"

#include <dirent.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { EVENTS = 1 << 15, HOLE_PAGE = 4096, SAMPLE_MS = 2000 };
#define KIND ((unsigned)PTL_NI_MATCHING | PTL_NI_PHYSICAL)

unsigned me, life;
ptl_handle_ni_t ni;
ptl_handle_eq_t target_eq;
unsigned char *noise;

static struct {
    uint32_t life, sent, lost; /* lost: the number behind the last that was for the life before */
    uint64_t base, last;       /* ATOMIC: its word before the first; TICKET: the newest */
    bool based, early;
} out[SEATS][LANES];

static uint32_t met[SEATS]; /* the life there that has answered */
static ptl_handle_eq_t origin_eq;
static ptl_handle_md_t source_md, hole_md, reply_md;
static ptl_handle_ct_t counter;
static unsigned char *replies, *holed;
static uint64_t ended, random_state, last_ended;

static size_t reply_room(unsigned k)
{
    return k < 2 ? LONG_MAX_BYTES : SHORT_MAX_BYTES;
}

static size_t reply_at(unsigned k)
{
    return k < 2 ? k * LONG_MAX_BYTES : 2 * LONG_MAX_BYTES + (k - 2) * SHORT_MAX_BYTES;
}

/* ---- failures ---- */

/* For a debugger a process that has failed stays. */
static _Noreturn void leave(int status)
{
    while (getenv("SOAK_GDB") != NULL) {
        sleep(1);
    }
    _exit(status);
}

void fail(const char *format, ...)
{
    char text[1024];
    va_list args;
    bool first = !atomic_exchange(&churn->failed, true);
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "seed %llu, seat %u, life %u (process %d): %s\n", (unsigned long long)seed, me,
            life, (int)getpid(), text);
    if (first) {
        churn_dump(me);
    }
    leave(1);
}

/* ---- starting ---- */

static size_t draw_length(size_t room)
{
    size_t most = (size_t)1 << splitmix_below(&random_state, 23);
    size_t n = splitmix_below(&random_state, most + 1);
    return n < room ? n : room;
}

static struct op *free_op(void)
{
    unsigned from = (unsigned)splitmix_below(&random_state, OPS);
    for (unsigned k = 0; k < OPS; k++) {
        struct op *o = &churn->seat[me].op[(from + k) % OPS];
        if (o->state == 0) {
            return o;
        }
    }
    return NULL;
}

/* Whether the place of a flow's next message has been looked at by its target, or never was used.
 */
static bool place_free(unsigned to, unsigned lane)
{
    uint64_t word = churn->seat[to].checked[me][lane];
    bool known = word >> 24 == churn_checked(out[to][lane].life, life, 0) >> 24;
    uint32_t sent = out[to][lane].sent, open = sent - out[to][lane].lost;
    uint32_t unchecked = (sent - (uint32_t)word) & 0xffffff;
    return open < PLACES || (known && unchecked < PLACES);
}

static ptl_hdr_data_t header_data(const struct op *o)
{
    return o->number | (o->hole ? HOLE : 0) | (out[o->to][o->lane].early ? EARLY_FLOW : 0);
}

static int start_put(struct op *o, ptl_process_t id, void *tag)
{
    unsigned place = o->lane <= HANDLER ? o->number % PLACES : 0;
    o->length = draw_length(o->lane <= HANDLER ? churn_room(place) : LOOSE_BYTES);
    o->hole = o->lane <= HANDLER && o->length > 0 && splitmix_below(&random_state, 32) == 0;
    ptl_size_t at =
        o->hole ? LONG_MAX_BYTES / 2 - o->length / 2 : churn_source(me, life, o->number);
    return PtlPut(o->hole ? hole_md : source_md, at, o->length, PTL_ACK_REQ, id, o->lane,
                  churn_bits(o->target_life, o->lane, me, place, life), 0, tag, header_data(o));
}

static int start_get(struct op *o, ptl_process_t id, unsigned k, void *tag)
{
    o->length = draw_length(o->lane == GET ? reply_room(k) : SHORT_MAX_BYTES);
    o->at = splitmix_below(&random_state,
                           (o->lane == GET ? LONG_MAX_BYTES : LOOSE_BYTES) - o->length + 1);
    memset(replies + reply_at(k), 0, o->length);
    return PtlGet(reply_md, reply_at(k), o->length, id, o->lane,
                  churn_bits(o->target_life, o->lane, me, 0, life), o->at, tag);
}

static int start_atomic(struct op *o, ptl_process_t id, unsigned k, void *tag)
{
    static const uint64_t one = 1;
    ptl_match_bits_t bits = churn_bits(o->target_life, o->lane, me, 0, life);
    ptl_size_t at = NOISE_BYTES; /* there the MD has a word that is 1 */
    memcpy(noise + at, &one, 8);
    o->length = 8;
    if (o->act == ACT_ATOMIC) {
        return PtlAtomic(source_md, at, 8, PTL_ACK_REQ, id, o->lane, bits, 0, tag, header_data(o),
                         PTL_SUM, PTL_UINT64_T);
    }
    memset(replies + reply_at(k), 0xee, 8);
    return PtlFetchAtomic(reply_md, reply_at(k), source_md, at, 8, id, o->lane, bits, 0, tag,
                          header_data(o), PTL_SUM, PTL_UINT64_T);
}

static enum act draw_act(unsigned lane, uint32_t number)
{
    bool first = splitmix_below(&random_state, 2) == 0;
    switch (lane) {
    case GET:
        return ACT_GET;
    case ATOMIC:
        return first && number != 0 ? ACT_ATOMIC : ACT_FETCH;
    case TICKET:
        return ACT_FETCH;
    case LOOSE:
    case SECOND:
        return first ? ACT_GET : ACT_PUT;
    default:
        return ACT_PUT;
    }
}

static bool start(void)
{
    unsigned to = (unsigned)splitmix_below(&random_state, SEATS);
    unsigned lane = (unsigned)splitmix_below(&random_state, LANES);
    uint64_t address = churn->seat[to].address, second = churn->seat[to].second;
    uint32_t target_life = (uint32_t)(address >> 16);
    struct op *o = free_op();
    if (o == NULL || address == 0 || (lane == SECOND && second == 0)) {
        return false;
    }
    if (out[to][lane].life != target_life) {
        memset(&out[to][lane], 0, sizeof(out[to][lane]));
        out[to][lane].life = target_life;
    }
    if (lane <= HANDLER && !place_free(to, lane)) {
        return false;
    }
    unsigned k = (unsigned)(o - churn->seat[me].op);
    ptl_process_t id = {.phys = {NEAR_NID, (ptl_pid_t)(address & 0xffff)}};
    if (lane == SECOND) {
        id = (ptl_process_t){.phys = {FAR_NID, (ptl_pid_t)second}};
    }
    uint32_t number = out[to][lane].sent;
    *o = (struct op){.generation = o->generation + 1,
                     .number = number,
                     .target_life = target_life,
                     .act = (uint8_t)draw_act(lane, number),
                     .lane = (uint8_t)lane,
                     .to = (uint8_t)to,
                     .early = churn->used[address & 0xffff] > 1 && met[to] != target_life,
                     .start_ms = churn_now_ms()};
    out[to][lane].early |= o->early;
    void *tag = (void *)((uintptr_t)o->generation << 8 | k);
    int rc = o->act == ACT_PUT   ? start_put(o, id, tag)
             : o->act == ACT_GET ? start_get(o, id, k, tag)
                                 : start_atomic(o, id, k, tag);
    churn_add(rc == PTL_ABORTED ? C_ABORTED : C_STARTED, 1);
    if (rc == PTL_OK) {
        o->state = ANSWER_DUE | (o->act != ACT_GET ? SEND_DUE : 0);
        out[to][lane].sent++;
    }
    MUST(rc == PTL_OK || rc == PTL_ABORTED, "starting an operation of lane %u gives %d", lane, rc);
    return true;
}

/* ---- ends ---- */

static bool may_end(const struct op *o, int fail_type)
{
    bool dead = !churn_lives(o->to, o->target_life);
    switch (fail_type) {
    case PTL_NI_OK:
        return !o->hole;
    case PTL_NI_SEGV:
        return o->hole;
    case PTL_NI_UNDELIVERABLE:
        return dead || o->early || o->lane == SECOND;
    case PTL_NI_DROPPED:
        return dead || o->lane >= LOOSE;
    case PTL_NI_PT_DISABLED:
        return o->lane >= LOOSE;
    default:
        return false;
    }
}

static void check_answer(const struct op *o, unsigned k, const ptl_event_t *e)
{
    const unsigned char *got = replies + reply_at(k);
    uint64_t value;
    MUST(e->mlength == o->length, "lane %u: %llu bytes of %llu", o->lane,
         (unsigned long long)e->mlength, (unsigned long long)o->length);
    churn_add(C_BYTES, o->length);
    if (o->act == ACT_GET && o->lane == GET) {
        const unsigned char *want = noise + churn_source(o->to, o->target_life, 0) + o->at;
        MUST(memcmp(got, want, o->length) == 0, "a reply of %llu bytes is not what was there",
             (unsigned long long)o->length);
    }
    if (o->act != ACT_FETCH || out[o->to][o->lane].life != o->target_life) {
        return;
    }
    memcpy(&value, got, 8);
    if (o->lane == TICKET) {
        MUST(value >= out[o->to][TICKET].last, "ticket %llu after %llu", (unsigned long long)value,
             (unsigned long long)out[o->to][TICKET].last);
        out[o->to][TICKET].last = value + 1;
    } else {
        if (!out[o->to][ATOMIC].based) {
            out[o->to][ATOMIC].based = true;
            out[o->to][ATOMIC].base = value - o->number;
        }
        MUST(value == out[o->to][ATOMIC].base + o->number,
             "fetch %u%s to seat %u, life %u finds %llu, not %llu; %u sent, %u lost", o->number,
             o->early ? " (early)" : "", o->to, o->target_life, (unsigned long long)value,
             (unsigned long long)(out[o->to][ATOMIC].base + o->number), out[o->to][ATOMIC].sent,
             out[o->to][ATOMIC].lost);
    }
}

static void origin_event(const ptl_event_t *e)
{
    unsigned k = (uintptr_t)e->user_ptr & 0xff;
    MUST(k < OPS, "an event of type %d of no operation", e->type);
    struct op *o = &churn->seat[me].op[k];
    unsigned bit = e->type == PTL_EVENT_SEND ? SEND_DUE : ANSWER_DUE;
    MUST((uintptr_t)e->user_ptr >> 8 == o->generation && (o->state & bit) != 0,
         "an event of type %d too many (lane %u)", e->type, o->lane);
    MUST(may_end(o, e->ni_fail_type) || (bit == SEND_DUE && e->ni_fail_type == PTL_NI_OK),
         "lane %u, message %u (%llu bytes%s) to seat %u, life %u, which %s: event %d has fail type "
         "%d after %llu ms",
         o->lane, o->number, (unsigned long long)o->length, o->hole ? ", with a hole" : "", o->to,
         o->target_life, churn_lives(o->to, o->target_life) ? "lives" : "is dead", e->type,
         e->ni_fail_type, (unsigned long long)(churn_now_ms() - o->start_ms));
    o->state &= (uint8_t)~bit;
    if (bit == SEND_DUE) {
        return;
    }
    ended++;
    if (e->ni_fail_type == PTL_NI_OK) {
        churn_add(C_GOOD, 1);
        met[o->to] = o->lane != SECOND && o->target_life > met[o->to] ? o->target_life : met[o->to];
        check_answer(o, k, e);
    } else {
        bool lost =
            e->ni_fail_type == PTL_NI_UNDELIVERABLE && out[o->to][o->lane].life == o->target_life;
        if (lost && o->number >= out[o->to][o->lane].lost) {
            out[o->to][o->lane].lost = o->number + 1;
        }
        churn_add(e->ni_fail_type == PTL_NI_SEGV            ? C_HOLES
                  : e->ni_fail_type == PTL_NI_UNDELIVERABLE ? C_DEAD
                                                            : C_REFUSED,
                  1);
    }
}

/* ---- turns ---- */

static void check_silence(void)
{
    ptl_ct_event_t v;
    for (unsigned k = 0; k < OPS; k++) {
        const struct op *o = &churn->seat[me].op[k];
        MUST(o->state == 0 || churn_now_ms() - o->start_ms < QUIET_LIMIT_S * 1000u,
             "an operation has not ended");
    }
    OK(PtlCTGet(counter, &v));
    MUST(v.success + v.failure >= last_ended, "a counter has gone back");
    last_ended = v.success + v.failure;
}

static unsigned lines_of(const char *path)
{
    FILE *f = fopen(path, "r");
    unsigned n = 0;
    for (int c; f != NULL && (c = getc(f)) != EOF;) {
        n += c == '\n';
    }
    if (f != NULL) {
        fclose(f);
    }
    return n;
}

/* What this process holds. */
static void sample(void)
{
    unsigned long pages = 0;
    unsigned files = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    DIR *d = opendir("/proc/self/fd");
    if (f == NULL || fscanf(f, "%*s %lu", &pages) != 1 || d == NULL) {
        fail("/proc/self cannot be read");
    }
    fclose(f);
    while (readdir(d) != NULL) {
        files++;
    }
    closedir(d);
    churn->seat[me].resident = pages * 4096;
    churn->seat[me].files = files;
    churn->seat[me].maps = lines_of("/proc/self/maps");
}

static void pump(bool idle)
{
    static uint64_t sampled;
    ptl_handle_eq_t queues[] = {target_eq, origin_eq};
    ptl_event_t e;
    unsigned which;
    int rc;
    if (churn->failed) {
        leave(3);
    }
    uint64_t turn = churn->seat[me].turns++;
    while ((rc = PtlEQPoll(queues, 2, idle ? 2 : 0, &e, &which)) == PTL_OK) {
        which == 0 ? target_event(&e) : origin_event(&e);
        idle = false;
    }
    MUST(rc == PTL_EQ_EMPTY || rc == PTL_ABORTED, "PtlEQPoll gives %d", rc);
    target_turn(&random_state);
    if (turn % 64 == 0) {
        check_silence();
        if (me == 0 && churn_now_ms() - sampled > SAMPLE_MS) {
            sampled = churn_now_ms();
            sample();
        }
    }
}

static bool any_under_way(void)
{
    for (unsigned k = 0; k < OPS; k++) {
        if (churn->seat[me].op[k].state != 0) {
            return true;
        }
    }
    return false;
}

static bool all_are(bool finished)
{
    for (unsigned s = 0; s < SEATS; s++) {
        if (finished ? churn->seat[s].done == 0 : churn->seat[s].quiet == 0) {
            return false;
        }
    }
    return true;
}

static void *pages(size_t length, size_t hole)
{
    unsigned char *p = mmap(NULL, length, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | (me == 0 ? MAP_POPULATE : 0), -1, 0);
    MUST(p != MAP_FAILED, "no memory");
    MUST(hole == 0 || mprotect(p + hole, HOLE_PAGE, PROT_NONE) == 0, "no hole");
    return p;
}

static void open_near(ptl_pid_t pid)
{
    ptl_process_t id;
    OK(PtlInit());
    int rc = PtlNIInit(PTL_IFACE_DEFAULT, KIND, pid, NULL, NULL, &ni);
    if (rc == PTL_PID_IN_USE) {
        rc = PtlNIInit(PTL_IFACE_DEFAULT, KIND, PTL_PID_ANY, NULL, NULL, &ni);
    }
    OK(rc);
    OK(PtlGetPhysId(ni, &id));
    MUST(id.phys.nid == NEAR_NID, "the first interface is %08x", id.phys.nid);
    OK(PtlEQAlloc(ni, EVENTS, &origin_eq));
    OK(PtlEQAlloc(ni, EVENTS, &target_eq));
    OK(PtlCTAlloc(ni, &counter));
    size_t all = reply_at(OPS);
    replies = pages(all, 0);
    holed = pages(LONG_MAX_BYTES + HOLE_PAGE, LONG_MAX_BYTES / 2);
    ptl_md_t d = {noise, NOISE_BYTES + 8, PTL_MD_EVENT_CT_ACK, origin_eq, counter};
    OK(PtlMDBind(ni, &d, &source_md));
    d.start = holed;
    d.length = LONG_MAX_BYTES + HOLE_PAGE;
    OK(PtlMDBind(ni, &d, &hole_md));
    d.start = replies;
    d.length = all;
    d.options = PTL_MD_EVENT_CT_REPLY;
    OK(PtlMDBind(ni, &d, &reply_md));
    target_open();
    churn->used[id.phys.pid]++;
    churn->seat[me].address = (uint64_t)life << 16 | id.phys.pid;
}

static void wind_up(void)
{
    ptl_ct_event_t v;
    closer_end();
    while (any_under_way()) {
        pump(true);
    }
    for (unsigned to = 0; to < SEATS; to++) {
        for (unsigned lane = 0; lane < LANES; lane++) {
            bool last = out[to][lane].life == churn->seat[to].address >> 16;
            churn->seat[me].sent[to][lane] = last ? out[to][lane].sent : 0;
            churn->seat[me].lost[to][lane] = last ? out[to][lane].lost : 0;
        }
    }
    churn->seat[me].quiet = 1;
    uint64_t since = churn_now_ms();
    while (!all_are(false) || !target_complete()) {
        pump(true);
        MUST(!all_are(false) || churn_now_ms() - since < 2 * QUIET_LIMIT_S * 1000u,
             "messages that have ended well did not come");
    }
    churn->seat[me].done = 1;
    while (!all_are(true)) {
        pump(true);
    }
    OK(PtlCTGet(counter, &v));
    MUST(v.success + v.failure == ended, "the counter is at %llu + %llu, %llu operations ended",
         (unsigned long long)v.success, (unsigned long long)v.failure, (unsigned long long)ended);
    target_close();
    OK(PtlMDRelease(source_md));
    OK(PtlMDRelease(hole_md));
    OK(PtlMDRelease(reply_md));
    OK(PtlEQFree(target_eq));
    OK(PtlEQFree(origin_eq));
    OK(PtlNIFini(ni));
    PtlFini();
}

void churn_live(void)
{
    ptl_pid_t pid = (ptl_pid_t)(churn->seat[me].address & 0xffff);
    random_state = seed ^ (uint64_t)life << 32 ^ me;
    bool same = pid != 0 && splitmix_below(&random_state, 2) == 0;
    memset(churn->seat[me].op, 0, sizeof(churn->seat[me].op));
    open_near(same ? pid : PTL_PID_ANY);
    closer_begin();
    while (!churn->stop) {
        bool any = false;
        for (unsigned n = (unsigned)splitmix_below(&random_state, 8); n > 0; n--) {
            any |= start();
        }
        pump(!any);
    }
    wind_up();
}
