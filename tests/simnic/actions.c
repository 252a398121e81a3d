/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One action of the table in docs/sim-nic.md, of 8 bytes, from rank 0 to rank 1 unless it says
 * otherwise. Prints when it showed, in picoseconds from its start (run.sh has them by hand):
 *
 *      put, zero, vector, oneself, atomic      the counter of the entry
 *      send, ack, get, fetch, swap             the event of the memory descriptor
 *      got                                     the event of the entry that the get read
 *      triggered, triggered_atomic             by a counter that the program sets: the entry's
 *      triggered_get                           the same: the event of the memory descriptor
 *      triggered_count                         the same: the counter that is increased
 *      late, search                            an entry that is appended, PtlMESearch(), 2 us later
 *                                              finds the message
 *      calls                                   append, unlink, bind, release, counter calls
 *      reopen                                  PtlNIFini(), PtlNIInit()
 *      invoke                                  PtlHandlersInvoke(): the counter of the entry
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"
#include "spin_handler.h"

enum { BITS = 1, LATER = 2000 };

static uint64_t from[2] = {1}, to[2], before[1];
static struct start s;
static uint64_t begin;
static ptl_handle_ct_t came;
static ptl_handle_eq_t eq;

__handler static int dropping(const ptl_header_t h, void *state)
{
    return DROP;
}
PTL_HANDLER(dropping);

static bool is(const char *name, const char *what)
{
    return strcmp(name, what) == 0;
}

static ptl_handle_me_t append(ptl_list_t list)
{
    ptl_me_t me = entry(to, sizeof(to), BITS, came);
    ptl_handle_me_t handle;
    me.options &= ~PTL_ME_EVENT_SUCCESS_DISABLE;
    check(PtlMEAppend(s.ni, INDEX, &me, list, NULL, &handle), "PtlMEAppend");
    return handle;
}

static ptl_handle_md_t bind(void *start, size_t length, unsigned options)
{
    ptl_md_t range = {start, length, options, eq, PTL_CT_NONE};
    ptl_handle_md_t md;
    check(PtlMDBind(s.ni, &range, &md), "PtlMDBind");
    return md;
}

/* When an event of a kind shows; those before it are passed over. */
static void await_event(ptl_handle_eq_t of, ptl_event_kind_t type)
{
    ptl_event_t event;
    do {
        check(PtlEQWait(of, &event), "PtlEQWait");
    } while (event.type != type);
}

/* An operation that waits for a counter, which the program then increases. */
static void trigger(const char *name, ptl_handle_md_t md, ptl_process_t id)
{
    ptl_handle_ct_t ct = counter(&s), count = counter(&s);
    ptl_ct_event_t one = {1, 0};
    if (is(name, "triggered_get")) {
        check(PtlTriggeredGet(md, 0, 8, id, INDEX, BITS, 0, NULL, ct, 1), "PtlTriggeredGet");
    } else if (is(name, "triggered_atomic")) {
        check(PtlTriggeredAtomic(md, 0, 8, PTL_NO_ACK_REQ, id, INDEX, BITS, 0, NULL, 0, PTL_SUM,
                                 PTL_UINT64_T, ct, 1),
              "PtlTriggeredAtomic");
    } else if (is(name, "triggered_count")) {
        check(PtlTriggeredCTInc(count, one, ct, 1), "PtlTriggeredCTInc");
    } else {
        check(PtlTriggeredPut(md, 0, 8, PTL_NO_ACK_REQ, id, INDEX, BITS, 0, NULL, 0, ct, 1),
              "PtlTriggeredPut");
    }
    check(PtlCTInc(ct, one), "PtlCTInc");
    if (is(name, "triggered_get")) {
        await_event(eq, PTL_EVENT_REPLY);
    } else if (is(name, "triggered_count")) {
        await(count, 1);
    }
}

static void initiate(const char *name, uint32_t rank)
{
    bool vector = is(name, "vector");
    ptl_iovec_t parts[2] = {{from, 3}, {(char *)from + 3, 5}};
    ptl_handle_md_t md = vector ? bind(parts, 2, PTL_IOVEC) : bind(from, sizeof(from), 0);
    ptl_handle_md_t back = bind(before, sizeof(before), 0);
    ptl_process_t id = rank_id(rank);
    begin = PtlSimNow();
    if (is(name, "get") || is(name, "got")) {
        check(PtlGet(md, 0, 8, id, INDEX, BITS, 0, NULL), "PtlGet");
        await_event(eq, PTL_EVENT_REPLY);
    } else if (is(name, "atomic")) {
        check(
            PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, id, INDEX, BITS, 0, NULL, 0, PTL_SUM, PTL_UINT64_T),
            "PtlAtomic");
    } else if (is(name, "fetch")) {
        check(PtlFetchAtomic(back, 0, md, 0, 8, id, INDEX, BITS, 0, NULL, 0, PTL_SUM, PTL_UINT64_T),
              "PtlFetchAtomic");
        await_event(eq, PTL_EVENT_REPLY);
    } else if (is(name, "swap")) {
        check(PtlSwap(back, 0, md, 0, 8, id, INDEX, BITS, 0, NULL, 0, NULL, PTL_SWAP, PTL_UINT64_T),
              "PtlSwap");
        await_event(eq, PTL_EVENT_REPLY);
    } else if (strncmp(name, "triggered", 9) == 0) {
        trigger(name, md, id);
    } else {
        bool acked = is(name, "ack");
        check(PtlPut(md, 0, is(name, "zero") ? 0 : 8, acked ? PTL_ACK_REQ : PTL_NO_ACK_REQ, id,
                     INDEX, BITS, 0, NULL, 0),
              "PtlPut");
        if (acked || is(name, "send")) {
            await_event(eq, acked ? PTL_EVENT_ACK : PTL_EVENT_SEND);
        }
    }
}

static void calls(void)
{
    ptl_ct_event_t value;
    check(PtlMEUnlink(append(PTL_PRIORITY_LIST)), "PtlMEUnlink");
    check(PtlMDRelease(bind(from, 8, 0)), "PtlMDRelease");
    check(PtlCTSet(came, (ptl_ct_event_t){1, 0}), "PtlCTSet");
    check(PtlCTInc(came, (ptl_ct_event_t){1, 0}), "PtlCTInc");
    check(PtlCTWait(came, 2, &value), "PtlCTWait");
}

static void reopen(void)
{
    uint32_t rank = s.rank;
    PtlNIFini(s.ni);
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
                    &s.ni),
          "PtlNIInit");
    s.rank = rank;
}

static void invoke(void)
{
    ptl_me_t me = entry(to, sizeof(to), BITS, came);
    ptl_handlers_t h = {.header_handler = dropping, .hpu_mem = PTL_HPU_MEM_NONE};
    ptl_handle_me_t handle;
    check(PtlMEAppendHandlers(s.ni, INDEX, &me, &h, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    begin = PtlSimNow();
    check(PtlHandlersInvoke(handle, from, 8), "PtlHandlersInvoke");
    await(came, 1);
}

static void serve(const char *name)
{
    ptl_me_t me = entry(to, sizeof(to), BITS, PTL_CT_NONE);
    if (is(name, "late") || is(name, "search")) {
        PtlSimCompute(LATER);
        begin = PtlSimNow();
        if (is(name, "late")) {
            append(PTL_PRIORITY_LIST);
            await_event(s.eq, PTL_EVENT_PUT_OVERFLOW);
        } else {
            check(PtlMESearch(s.ni, INDEX, &me, PTL_SEARCH_ONLY, NULL), "PtlMESearch");
            await_event(s.eq, PTL_EVENT_SEARCH);
        }
    } else if (is(name, "got")) {
        await_event(s.eq, PTL_EVENT_GET);
    } else {
        await(came, 1);
    }
}

int main(int argc, char **argv)
{
    start(&s, 1, 2);
    const char *name = argc == 2 ? argv[1] : "";
    static const char here[] = " send ack get fetch swap calls reopen oneself invoke triggered_get "
                               "triggered_count ";
    came = counter(&s);
    check(PtlEQAlloc(s.ni, 64, &eq), "PtlEQAlloc");
    bool late = is(name, "late") || is(name, "search");
    if (!is(name, "invoke")) {
        append(late ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST);
    }
    meet(&s);
    begin = PtlSimNow();
    char word[32];
    snprintf(word, sizeof(word), " %s ", name);
    uint32_t shows = strstr(here, word) != NULL ? 0 : 1;
    if (is(name, "calls") && s.rank == 0) {
        calls();
    } else if (is(name, "reopen") && s.rank == 0) {
        reopen();
    } else if (is(name, "invoke") && s.rank == 0) {
        invoke();
    } else if (s.rank == 0) {
        initiate(name, is(name, "oneself") ? 0 : 1);
        if (is(name, "oneself")) {
            await(came, 1);
        }
    } else if (shows == 1) {
        serve(name);
    }
    if (s.rank == shows) {
        printf("%llu\n", (unsigned long long)(PtlSimNow() - begin));
    }
    return finish(&s, 0);
}
