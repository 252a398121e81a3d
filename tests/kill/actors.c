/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The three actors of a kill test; see kill.h.
 *
 * Victim and peer are alike: each has a region that the other puts to or gets
 * from, of 2 x KILL_OPS pieces, so that nothing of the first victim's exchange
 * can be taken for the second's. Whatever is told to have succeeded is compared
 * byte by byte; whatever has not must say PTL_NI_UNDELIVERABLE.
 */
#include "kill.h"

#include "portals4.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    BOUND_MS = 10000, /* within which everything outstanding must have ended */
    PIECES = 2 * KILL_OPS,
    PT_EXCHANGE = 0,
    PT_PING = 1,
    PING_MAX = 20000
};

static int me; /* index in stage->ready and stage->place */
static const char *const names[] = {"peer", "bystander", "victim", "second victim"};

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq, mdeq;
static ptl_handle_me_t exchange_entry;
static ptl_handle_md_t source_md, ping_md, quiet_md;
static ptl_handle_ct_t counter;
static unsigned char region[PIECES * KILL_LENGTH_MAX], source[PIECES * KILL_LENGTH_MAX];
static unsigned char ping_in[PING_MAX], ping_out[PING_MAX];

/* What has become of the operations that this process started, and of those
 * that others started here. */
static struct {
    int sends, answers, failed;
} op[PIECES + 2];
static struct {
    int good, failed;
} served[2];
static long pings, echoes, ping_acks;

static _Noreturn void fail(const char *format, ...)
{
    char what[256], text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    int n = snprintf(text, sizeof(text), "    %s: %s\n", names[me], what);
    if (write(STDERR_FILENO, text, (size_t)n) < 0) {
        _exit(2);
    }
    _exit(1);
}

#define OK(call)                                                                                   \
    do {                                                                                           \
        int code_ = (call);                                                                        \
        if (code_ != PTL_OK) {                                                                     \
            fail("%s gives %d (line %d)", #call, code_, __LINE__);                                 \
        }                                                                                          \
    } while (0)

static unsigned char pattern(size_t i, unsigned seed)
{
    return (unsigned char)((seed * 167u + 13u) ^ (unsigned)(i * 7u) ^ (unsigned)(i >> 8));
}

static void fill(unsigned char *b, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        b[i] = pattern(i, seed);
    }
}

static void check(const unsigned char *b, size_t n, unsigned seed, const char *what)
{
    for (size_t i = 0; i < n; i++) {
        if (b[i] != pattern(i, seed)) {
            fail("%s %u: byte %zu of %zu is 0x%02x, not 0x%02x", what, seed, i, n, b[i],
                 pattern(i, seed));
        }
    }
}

/* ---- what both sides of the exchange have ---- */

static ptl_me_t entry(void *start, size_t length)
{
    ptl_me_t e;
    memset(&e, 0, sizeof(e));
    e.start = start;
    e.length = length;
    e.ct_handle = PTL_CT_NONE;
    e.uid = PTL_UID_ANY;
    e.options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_LINK_DISABLE;
    e.match_id.phys.nid = PTL_NID_ANY;
    e.match_id.phys.pid = PTL_PID_ANY;
    e.ignore_bits = ~(ptl_match_bits_t)0;
    return e;
}

static void append_exchange(void)
{
    ptl_me_t e = entry(region, PIECES * scenario->length);
    OK(PtlMEAppend(ni, PT_EXCHANGE, &e, PTL_PRIORITY_LIST, NULL, &exchange_entry));
}

static ptl_handle_md_t bind(void *start, size_t length, unsigned options, ptl_handle_eq_t queue)
{
    ptl_md_t md = {start, length, options, queue, counter};
    ptl_handle_md_t handle;
    OK(PtlMDBind(ni, &md, &handle));
    return handle;
}

static void bind_source(void)
{
    source_md =
        bind(source, PIECES * scenario->length, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY, mdeq);
}

static ptl_process_t address(ptl_pid_t pid)
{
    ptl_process_t id;
    OK(PtlGetPhysId(ni, &id));
    id.phys.pid = pid;
    return id;
}

static void open_end(int who, ptl_pid_t pid)
{
    ptl_pt_index_t pt;
    me = who;
    atomic_store(&stage->place[me], "opens");
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, pid, NULL, NULL, &ni));
    OK(PtlEQAlloc(ni, 4096, &eq));
    OK(PtlEQAlloc(ni, 4096, &mdeq));
    OK(PtlCTAlloc(ni, &counter));
    OK(PtlPTAlloc(ni, 0, eq, PT_EXCHANGE, &pt));
    OK(PtlPTAlloc(ni, 0, eq, PT_PING, &pt));
    for (unsigned i = 0; i < PIECES; i++) {
        unsigned char *filled = scenario->get ? region : source;
        fill(filled + i * scenario->length, scenario->length, i);
    }
    append_exchange();
    bind_source();
    ping_md = bind(ping_out, PING_MAX, 0, mdeq);
    quiet_md = bind(ping_in, PING_MAX, 0, PTL_EQ_NONE);
    ptl_me_t e = entry(ping_in, PING_MAX);
    ptl_handle_me_t ignored;
    OK(PtlMEAppend(ni, PT_PING, &e, PTL_PRIORITY_LIST, NULL, &ignored));
}

static void close_end(void)
{
    atomic_store(&stage->place[me], "closes");
    OK(PtlNIFini(ni));
    PtlFini();
    atomic_store(&stage->place[me], "has closed");
}

static size_t ping_length(long i)
{
    static const size_t lengths[] = {8, 1000, PING_MAX};
    return lengths[i % 3];
}

/* One operation of the exchange on piece `i`. */
static void start_op(unsigned i, ptl_pid_t target)
{
    uint64_t at = (i < PIECES ? i : 0) * scenario->length;
    void *cookie = (void *)(uintptr_t)i;
    ptl_process_t to = address(target);
    if (scenario->get) {
        memset(source + at, 0xee, scenario->length);
        OK(PtlGet(source_md, at, scenario->length, to, PT_EXCHANGE, 0, at, cookie));
    } else {
        OK(PtlPut(source_md, at, scenario->length, PTL_ACK_REQ, to, PT_EXCHANGE, 0, at, cookie, i));
    }
}

static void check_fail(const ptl_event_t *e, bool may_fail, const char *what)
{
    if (e->ni_fail_type != PTL_NI_OK && !(may_fail && e->ni_fail_type == PTL_NI_UNDELIVERABLE)) {
        fail("%s with ni_fail_type %d", what, e->ni_fail_type);
    }
}

/* An event of an operation that this process started. */
static void initiator_event(const ptl_event_t *e)
{
    unsigned i = (unsigned)(uintptr_t)e->user_ptr;
    if (i >= PIECES + 2) { /* a ping */
        check_fail(e, false, "a ping's event");
        ping_acks += e->type == PTL_EVENT_ACK;
        return;
    }
    bool live = i >= KILL_OPS && i < PIECES; /* with the second victim */
    check_fail(e, !live, "an operation's event");
    if (e->type == PTL_EVENT_SEND) {
        op[i].sends++; /* good or not: it tells only that the buffer is free */
        return;
    }
    op[i].failed += e->ni_fail_type != PTL_NI_OK;
    op[i].answers++;
    if (e->ni_fail_type == PTL_NI_OK && e->mlength != scenario->length) {
        fail("answer %u: mlength %llu", i, (unsigned long long)e->mlength);
    }
    if (e->ni_fail_type == PTL_NI_OK && e->type == PTL_EVENT_REPLY) {
        check(source + i * scenario->length, scenario->length, i, "reply");
    }
}

/* An event of what others did here. */
static void target_event(const ptl_event_t *e)
{
    if (e->pt_index == PT_PING) {
        check_fail(e, false, "a ping");
        long i = (long)e->hdr_data;
        if (e->mlength != ping_length(i)) {
            fail("ping %ld has %llu bytes", i, (unsigned long long)e->mlength);
        }
        check(ping_in, ping_length(i), (unsigned)i, "ping");
        echoes++;
        if (e->initiator.phys.pid == PID_BYSTANDER && me == 0) {
            OK(PtlPut(quiet_md, 0, ping_length(i), PTL_NO_ACK_REQ, address(PID_BYSTANDER), PT_PING,
                      0, 0, NULL, (ptl_hdr_data_t)i));
        }
        return;
    }
    unsigned i = (unsigned)(e->remote_offset / scenario->length);
    int life = i >= KILL_OPS;
    check_fail(e, life == 0, "a served operation");
    served[life].good += e->ni_fail_type == PTL_NI_OK;
    served[life].failed += e->ni_fail_type != PTL_NI_OK;
    if (e->ni_fail_type == PTL_NI_OK && e->mlength != scenario->length) {
        fail("served operation %u: mlength %llu", i, (unsigned long long)e->mlength);
    }
    if (e->ni_fail_type == PTL_NI_OK && e->type == PTL_EVENT_PUT) {
        if (e->hdr_data != i) {
            fail("put %u carries %llu", i, (unsigned long long)e->hdr_data);
        }
        check(region + i * scenario->length, scenario->length, i, "put");
    }
}

/* Serves what has come; waits a little for it. */
static void pump(void)
{
    ptl_handle_eq_t queues[] = {eq, mdeq};
    ptl_event_t e;
    unsigned which;
    int code = PtlEQPoll(queues, 2, 2, &e, &which);
    for (int n = 0; code == PTL_OK && n < 64; n++) {
        if (which == 0) {
            target_event(&e);
        } else {
            initiator_event(&e);
        }
        code = PtlEQPoll(queues, 2, 0, &e, &which);
    }
    if (code != PTL_OK && code != PTL_EQ_EMPTY) {
        fail("PtlEQPoll gives %d", code);
    }
}

/* Serves until `done` is true; it must be so in time. */
static void await(bool (*done)(int), int argument, const char *what)
{
    uint64_t end = kill_now_ms() + (uint64_t)(BOUND_MS * kill_slow());
    atomic_store(&stage->place[me], what);
    while (!done(argument)) {
        if (kill_now_ms() > end) {
            int sends = 0, answers = 0;
            for (unsigned i = 0; i < PIECES + 2; i++) {
                sends += op[i].sends;
                answers += op[i].answers;
            }
            fail("%s: not within %d ms (%d sends, %d answers; served %d + %d failed, %d + %d; "
                 "%ld pings)",
                 what, BOUND_MS * kill_slow(), sends, answers, served[0].good, served[0].failed,
                 served[1].good, served[1].failed, echoes);
        }
        pump();
    }
}

static bool phase_is(int wanted)
{
    return atomic_load(&stage->phase) >= wanted;
}

/* Every operation of one life has had all its events. */
static bool ops_ended(int life)
{
    for (unsigned i = (unsigned)life * KILL_OPS; i < (unsigned)(life + 1) * KILL_OPS; i++) {
        if (op[i].answers < 1 || (!scenario->get && op[i].sends < 1)) {
            return false;
        }
    }
    return true;
}

static void check_ops(int life)
{
    for (unsigned i = (unsigned)life * KILL_OPS; i < (unsigned)(life + 1) * KILL_OPS; i++) {
        if (op[i].answers != 1 || op[i].sends != !scenario->get) {
            fail("operation %u had %d answers and %d sends", i, op[i].answers, op[i].sends);
        }
    }
}

static void ask(int life, ptl_pid_t target, const char *what)
{
    for (unsigned i = 0; i < KILL_OPS; i++) {
        start_op((unsigned)life * KILL_OPS + i, target);
    }
    await(ops_ended, life, what);
    check_ops(life);
}

static bool all_served(int life)
{
    return served[life].good == KILL_OPS;
}

/* ---- the peer ---- */

static bool entry_free(int unused)
{
    int code = PtlMEUnlink(exchange_entry);
    if (code != PTL_OK && code != PTL_IN_USE) {
        fail("PtlMEUnlink gives %d", code);
    }
    return code == PTL_OK;
}

static bool md_free(int unused)
{
    int code = PtlMDRelease(source_md);
    if (code != PTL_OK && code != PTL_IN_USE) {
        fail("PtlMDRelease gives %d", code);
    }
    return code == PTL_OK;
}

static int descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;
    while (d != NULL && readdir(d) != NULL) {
        n++;
    }
    if (d != NULL) {
        closedir(d);
    }
    return n;
}

static int descriptors_before;

static bool descriptors_closed(int unused)
{
    return descriptors() <= descriptors_before;
}

static bool probes_ended(int unused)
{
    return op[PIECES].answers >= 1 && op[PIECES + 1].answers >= 1;
}

/* After the death: everything that names the victim has ended, nothing is held,
 * and operations to its address are undeliverable. */
static void settle(void)
{
    ptl_ct_event_t value;
    await(entry_free, 0, "the entry that the victim used");
    append_exchange();
    OK(PtlCTGet(counter, &value));
    unsigned asked = scenario->victim_asks ? 0 : KILL_OPS;
    if (value.success + value.failure != asked) {
        fail("the counter is at %llu + %llu failures, not %u", (unsigned long long)value.success,
             (unsigned long long)value.failure, asked);
    }
    start_op(PIECES, PID_VICTIM);
    start_op(PIECES + 1, PID_VICTIM);
    await(probes_ended, 0, "operations to the dead");
    for (unsigned i = PIECES; i < PIECES + 2; i++) {
        if (op[i].failed != op[i].answers) {
            fail("an operation to the dead succeeded");
        }
    }
    await(md_free, 0, "the MD that was used towards the victim");
    bind_source();
    await(descriptors_closed, 0, "the descriptors of the dead victim's connection");
}

static bool bystander_known(int unused)
{
    return echoes >= 2;
}

void run_peer(void)
{
    open_end(0, PID_PEER);
    atomic_store(&stage->ready[0], 1);
    await(bystander_known, 0, "the bystander's first ping");
    descriptors_before = descriptors();
    await(phase_is, PHASE_WORK, "the start");
    if (!scenario->victim_asks) {
        ask(0, PID_VICTIM, "the end of what was outstanding with the victim");
    }
    atomic_store(&stage->asked[0], 1);
    await(phase_is, PHASE_DEAD, "the victim's end");
    settle();
    atomic_store(&stage->settled, 1);
    await(phase_is, PHASE_AGAIN, "the second victim");
    if (scenario->victim_asks) {
        await(all_served, 1, "what the second victim sends");
    } else {
        ask(1, PID_VICTIM, "the exchange with the second victim");
    }
    atomic_store(&stage->asked[1], 1);
    await(phase_is, PHASE_STOP, "the end");
    close_end();
}

/* ---- the victim ---- */

static bool peer_has_asked(int life)
{
    return atomic_load(&stage->asked[life]) != 0;
}

void run_victim(int life)
{
    open_end(2 + life, PID_VICTIM);
    atomic_store(&stage->ready[2 + life], 1);
    await(phase_is, life == 0 ? PHASE_WORK : PHASE_AGAIN, "the start");
    if (scenario->victim_asks) {
        ask(life, PID_PEER, "its exchange");
        for (unsigned i = 0; i < KILL_OPS; i++) {
            if (op[(unsigned)life * KILL_OPS + i].failed != 0) {
                fail("an operation to the live peer failed");
            }
        }
    } else {
        await(all_served, life, "what the peer sends");
    }
    await(peer_has_asked, life, "the peer");
    close_end();
}

/* ---- the bystander ---- */

static bool echoed(int unused)
{
    return echoes >= pings && ping_acks >= pings;
}

void run_bystander(void)
{
    open_end(1, PID_BYSTANDER);
    atomic_store(&stage->ready[1], 1);
    while (!phase_is(PHASE_STOP)) {
        long i = pings;
        fill(ping_out, ping_length(i), (unsigned)i);
        pings++;
        OK(PtlPut(ping_md, 0, ping_length(i), PTL_ACK_REQ, address(PID_PEER), PT_PING, 0, 0,
                  (void *)(uintptr_t)(PIECES + 2), (ptl_hdr_data_t)i));
        await(echoed, 0, "an answer of the peer");
        atomic_store(&stage->rounds, pings);
        usleep(500);
    }
    if (echoes != pings || ping_acks != pings) {
        fail("%ld pings, %ld echoes, %ld acks", pings, echoes, ping_acks);
    }
    close_end();
}
