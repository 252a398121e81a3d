/* SPDX-License-Identifier: BSD-3-Clause */
/* One end of an exchange; see exchange.h. */
#include "exchange.h"

#include "kill_handlers.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int me; /* index in stage->ready and stage->place */
static const char *const names[] = {"peer", "bystander", "victim", "second victim"};

enum { PARTS_MAX = 6 * PIECES + 1 };

ptl_handle_ni_t ni;
ptl_handle_me_t exchange_entry[PIECES];
ptl_handle_md_t source_md, ping_md;
ptl_handle_ct_t counter;
unsigned char ping_out[PING_MAX];
struct exchange_op op[PIECES + 2];
struct exchange_served served[2];
struct exchange_claim claim[PIECES];
long pings, echoes, ping_acks;

static ptl_handle_eq_t eq, mdeq;
static ptl_handle_md_t quiet_md;
static unsigned char region[PIECES * KILL_LENGTH_MAX];
static unsigned char source[2 * PIECES * KILL_LENGTH_MAX]; /* to send; then what comes back */
static unsigned char ping_in[PING_MAX];
static int claimed[2]; /* messages that came whole */

_Noreturn void fail(const char *format, ...)
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

static unsigned char pattern(size_t i, unsigned seed)
{
    return (unsigned char)((seed * 167u + 13u) ^ (unsigned)(i * 7u) ^ (unsigned)(i >> 8));
}

void fill(unsigned char *b, size_t n, unsigned seed)
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

static bool sends(void)
{
    return scenario->act != KILL_GET && scenario->act != KILL_ASK;
}

static bool in_parts(void)
{
    return scenario->way == WAY_PARTS;
}

bool to_overflow(void)
{
    return scenario->way == WAY_OVERFLOW;
}

/* The same range as parts that cut its pieces anywhere; gives their number. */
static size_t cut(unsigned char *start, size_t length, ptl_iovec_t *parts)
{
    size_t part = scenario->length / 3 + 1, n = 0;
    for (size_t at = 0; at < length; at += part) {
        parts[n++] = (ptl_iovec_t){start + at, length - at < part ? length - at : part};
    }
    return n;
}

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

/* Messages of a dead victim and of its successor may be at their handlers side by side: each
 * message has an entry of its own, with HPU memory of its own. */
static void append_handlers(void)
{
    for (unsigned i = 0; i < PIECES; i++) {
        ptl_me_t e = entry(region, PIECES * scenario->length);
        e.match_bits = i;
        e.ignore_bits = 0;
        OK(PtlMEAppendHandlers(ni, PT_EXCHANGE, &e, &kill_handlers, PTL_PRIORITY_LIST, NULL,
                               &exchange_entry[i]));
    }
}

void append_exchange(void)
{
    if (scenario->way >= WAY_HANDLERS) {
        append_handlers();
        return;
    }
    ptl_iovec_t parts[PARTS_MAX];
    ptl_me_t e = entry(region, PIECES * scenario->length);
    if (in_parts()) {
        e.length = cut(region, e.length, parts);
        e.start = parts;
        e.options |= PTL_IOVEC;
    }
    OK(PtlMEAppend(ni, PT_EXCHANGE, &e, to_overflow() ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST, NULL,
                   &exchange_entry[0]));
}

static ptl_handle_md_t bind(void *start, size_t length, unsigned options, ptl_handle_eq_t queue)
{
    ptl_md_t md = {start, length, options, queue, counter};
    ptl_handle_md_t handle;
    OK(PtlMDBind(ni, &md, &handle));
    return handle;
}

void bind_source(void)
{
    ptl_iovec_t parts[PARTS_MAX];
    unsigned options = PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY;
    size_t length = 2 * PIECES * scenario->length;
    if (in_parts()) {
        source_md = bind(parts, cut(source, length, parts), options | PTL_IOVEC, mdeq);
    } else {
        source_md = bind(source, length, options, mdeq);
    }
}

ptl_process_t address(ptl_pid_t pid)
{
    ptl_process_t id;
    OK(PtlGetPhysId(ni, &id));
    id.phys.pid = pid;
    return id;
}

void open_end(int who, ptl_pid_t pid)
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
    OK(PtlPTAlloc(ni, 0, mdeq, PT_ASKING, &pt));
    for (unsigned i = 0; i < PIECES; i++) {
        exchange_entry[i] = PTL_INVALID_HANDLE;
        unsigned char *filled = sends() ? source : region;
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

void close_end(void)
{
    atomic_store(&stage->place[me], "closes");
    OK(PtlNIFini(ni));
    PtlFini();
    atomic_store(&stage->place[me], "has closed");
}

size_t ping_length(long i)
{
    static const size_t lengths[] = {8, 1000, PING_MAX};
    return lengths[i % 3];
}

/* Where the answer to operation `i` goes: a get's to its own piece. */
static size_t back_at(unsigned i)
{
    return ((sends() ? PIECES : 0) + (i < PIECES ? i : 0)) * scenario->length;
}

/* Has a handler ask for piece `i`; an event of its entry tells how that has ended. */
static void start_asking(unsigned i, ptl_process_t target, uint64_t at, uint64_t back)
{
    struct kill_ask s = {target, PT_EXCHANGE, at, scenario->length, back, {0}};
    ptl_handlers_t h = kill_asking;
    h.hpu_initial_state = &s;
    h.handler_host_mem = source;
    h.handler_host_length = sizeof(source);
    ptl_me_t e = entry(NULL, 0);
    e.options |= PTL_ME_EVENT_CT_COMM;
    e.ct_handle = counter;
    ptl_handle_me_t handle;
    OK(PtlMEAppendHandlers(ni, PT_ASKING, &e, &h, PTL_PRIORITY_LIST, (void *)(uintptr_t)i,
                           &handle));
    OK(PtlHandlersInvoke(handle, NULL, 0));
}

/* One operation of the exchange on piece `i`. */
void start_op(unsigned i, ptl_pid_t target)
{
    uint64_t at = (i < PIECES ? i : 0) * scenario->length, back = back_at(i);
    size_t n = scenario->length;
    void *cookie = (void *)(uintptr_t)i;
    ptl_process_t to = address(target);
    memset(source + back, 0xee, n);
    switch (scenario->act) {
    case KILL_PUT:
        OK(PtlPut(source_md, at, n, PTL_ACK_REQ, to, PT_EXCHANGE, i, at, cookie, i));
        break;
    case KILL_GET:
        OK(PtlGet(source_md, back, n, to, PT_EXCHANGE, i, at, cookie));
        break;
    case KILL_ATOMIC: /* to memory that is all zero: the same as a put */
        OK(PtlAtomic(source_md, at, n, PTL_ACK_REQ, to, PT_EXCHANGE, i, at, cookie, i, PTL_SUM,
                     PTL_UINT8_T));
        break;
    case KILL_FETCH:
        OK(PtlFetchAtomic(source_md, back, source_md, at, n, to, PT_EXCHANGE, i, at, cookie, i,
                          PTL_SUM, PTL_UINT8_T));
        break;
    case KILL_SWAP:
        OK(PtlSwap(source_md, back, source_md, at, n, to, PT_EXCHANGE, i, at, cookie, i, NULL,
                   PTL_SWAP, PTL_UINT64_T));
        break;
    case KILL_ASK:
        start_asking(i, to, at, back);
    }
}

/* A reply brings what the piece held before. */
static void check_reply(unsigned i)
{
    const unsigned char *got = source + back_at(i);
    if (!sends()) {
        check(got, scenario->length, i, "reply");
        return;
    }
    for (size_t k = 0; k < scenario->length; k++) {
        if (got[k] != 0) {
            fail("fetch %u: byte %zu is 0x%02x, not 0", i, k, got[k]);
        }
    }
}

static void check_fail(const ptl_event_t *e, bool may_fail, const char *what)
{
    ptl_ni_fail_t lost = e->pt_index == PT_ASKING && scenario->act == KILL_ASK
                             ? PTL_NI_HANDLER_FAIL
                             : PTL_NI_UNDELIVERABLE;
    if (e->ni_fail_type != PTL_NI_OK && !(may_fail && e->ni_fail_type == lost)) {
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
    if (e->ni_fail_type == PTL_NI_OK && scenario->act != KILL_ASK &&
        e->mlength != scenario->length) {
        fail("answer %u: mlength %llu", i, (unsigned long long)e->mlength);
    }
    if (e->ni_fail_type == PTL_NI_OK && (e->type == PTL_EVENT_REPLY || scenario->act == KILL_ASK)) {
        check_reply(i);
    }
}

/* Appends the entry of message `i`, which may have come. */
static void append_claim(unsigned i)
{
    if (claim[i].appended) {
        return;
    }
    claim[i].appended = true;
    ptl_me_t e = entry(region + i * scenario->length, scenario->length);
    e.options |= PTL_ME_USE_ONCE | PTL_ME_MANAGE_LOCAL;
    e.match_bits = i;
    e.ignore_bits = 0;
    OK(PtlMEAppend(ni, PT_EXCHANGE, &e, PTL_PRIORITY_LIST, (void *)(uintptr_t)(i + 1),
                   &claim[i].handle));
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
    if (e->type == PTL_EVENT_AUTO_UNLINK) {
        claim[(uintptr_t)e->user_ptr - 1].unlinked++;
        return;
    }
    unsigned i = (unsigned)(e->remote_offset / scenario->length);
    int life = i >= KILL_OPS;
    bool good = e->ni_fail_type == PTL_NI_OK;
    check_fail(e, life == 0, "a served operation");
    if (good && e->mlength != scenario->length) {
        fail("served operation %u: mlength %llu", i, (unsigned long long)e->mlength);
    }
    if (good && sends()) {
        if (e->hdr_data != i) {
            fail("message %u carries %llu", i, (unsigned long long)e->hdr_data);
        }
        check(region + i * scenario->length, scenario->length, i, "message");
    }
    if (e->user_ptr != NULL) {
        claim[i].taken++;
        claimed[life] += good;
        atomic_fetch_add(&stage->torn, !good);
    }
    if (e->type == PTL_EVENT_PUT || e->type == PTL_EVENT_GET || e->type == PTL_EVENT_ATOMIC ||
        e->type == PTL_EVENT_FETCH_ATOMIC) {
        served[life].good += good;
        served[life].failed += !good;
    }
    if (to_overflow()) {
        append_claim(i);
        if ((i + 1) % KILL_OPS != 0) {
            append_claim(i + 1); /* which may be coming in right now */
        }
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
void await(bool (*done)(int), int argument, const char *what)
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

bool phase_is(int wanted)
{
    return atomic_load(&stage->phase) >= wanted;
}

/* Every operation of one life has had all its events. */
static bool ops_ended(int life)
{
    for (unsigned i = (unsigned)life * KILL_OPS; i < (unsigned)(life + 1) * KILL_OPS; i++) {
        if (op[i].answers < 1 || (sends() && op[i].sends < 1)) {
            return false;
        }
    }
    return true;
}

static void check_ops(int life)
{
    for (unsigned i = (unsigned)life * KILL_OPS; i < (unsigned)(life + 1) * KILL_OPS; i++) {
        if (op[i].answers != 1 || op[i].sends != sends()) {
            fail("operation %u had %d answers and %d sends", i, op[i].answers, op[i].sends);
        }
    }
}

static bool op_ended(int i)
{
    return op[i].answers >= 1;
}

void ask(int life, ptl_pid_t target, const char *what)
{
    unsigned first = (unsigned)life * KILL_OPS;
    for (unsigned i = 0; i < KILL_OPS; i++) {
        start_op(first + i, target);
        if (i == 0 && scenario->way >= WAY_HANDLERS) {
            await(op_ended, (int)first, what); /* from now on references may be sent */
        }
    }
    await(ops_ended, life, what);
    check_ops(life);
}

bool all_served(int life)
{
    return served[life].good == KILL_OPS && (!to_overflow() || claimed[life] == KILL_OPS);
}
