/* SPDX-License-Identifier: BSD-3-Clause */
/* Helpers of the process tests; see port.h. */
#include "port.h"

#include <string.h>
#include <unistd.h>

#define WAIT_MS (10000u * (unsigned)ptest_slow())

/* Slots of the shared page that port_ids() uses. */
enum { SLOT_NID = PTEST_SLOTS - 2, SLOT_PID = PTEST_SLOTS - 1 };

void port_ids(struct port *p)
{
    ptl_process_t mine;
    OK(PtlGetPhysId(p->ni, &mine));
    ptest_show(SLOT_NID, mine.phys.nid);
    ptest_show(SLOT_PID, mine.phys.pid);
    BARRIER();
    for (int r = 0; r < p->size; r++) {
        p->phys[r].phys.nid = (ptl_nid_t)ptest_look(r, SLOT_NID);
        p->phys[r].phys.pid = (ptl_pid_t)ptest_look(r, SLOT_PID);
        p->id[r] = p->phys[r];
        if (port_logical(p)) {
            memset(&p->id[r], 0, sizeof(p->id[r]));
            p->id[r].rank = (ptl_rank_t)r;
        }
    }
    if (port_logical(p)) {
        OK(PtlSetMap(p->ni, (ptl_size_t)p->size, p->phys));
    }
    BARRIER(); /* the slots may be used again */
}

/* The interfaces that are open, for fence(). */
enum { OPEN_MAX = 8 };
static ptl_handle_ni_t open_nis[OPEN_MAX];
static int opened;

/* A call that takes the lock under which a NIC works: what this thread did is
 * before, and what the NIC will do behind. Without a thread sanitizer the
 * barriers make no call, so that nothing helps the NIC on. */
static void fence(void)
{
    for (int i = 0; i < opened && i < OPEN_MAX; i++) {
        ptl_sr_value_t value;
        PtlNIStatus(open_nis[i], PTL_SR_DROP_COUNT, &value);
    }
}

void port_open_with(struct port *p, ptl_interface_t iface, unsigned kind, int rank, int size,
                    const ptl_ni_limits_t *desired)
{
    memset(p, 0, sizeof(*p));
    p->rank = rank;
    p->size = size;
    p->kind = kind;
    OK(PtlInit());
    OK(PtlNIInit(iface, kind, PTL_PID_ANY, desired, &p->limits, &p->ni));
    open_nis[opened++ % OPEN_MAX] = p->ni;
    ptest_fence = PTEST_TSAN ? fence : NULL;
    port_ids(p);
    OK(PtlGetUid(p->ni, &p->uid));
    OK(PtlEQAlloc(p->ni, PORT_EVENTS, &p->eq));
    OK(PtlEQAlloc(p->ni, PORT_EVENTS, &p->mdeq));
    OK(PtlPTAlloc(p->ni, 0, p->eq, PTL_PT_ANY, &p->pt));
    BARRIER();
}

void port_open(struct port *p, unsigned kind, int rank, int size)
{
    port_open_with(p, PTL_IFACE_DEFAULT, kind, rank, size, NULL);
}

void port_close(struct port *p)
{
    BARRIER();
    OK(PtlNIFini(p->ni));
    PtlFini();
}

static ptl_handle_md_t bind(struct port *p, void *start, size_t length, unsigned options,
                            ptl_handle_eq_t eq, ptl_handle_ct_t ct)
{
    ptl_md_t md = {start, length, options, eq, ct};
    ptl_handle_md_t handle;
    OK(PtlMDBind(p->ni, &md, &handle));
    return handle;
}

ptl_handle_md_t port_md(struct port *p, void *start, size_t length, unsigned options,
                        ptl_handle_ct_t ct)
{
    return bind(p, start, length, options, p->mdeq, ct);
}

ptl_handle_md_t port_quiet_md(struct port *p, void *start, size_t length, unsigned options,
                              ptl_handle_ct_t ct)
{
    return bind(p, start, length, options, PTL_EQ_NONE, ct);
}

void port_release(ptl_handle_md_t md)
{
    uint64_t end = ptest_now_ms() + WAIT_MS;
    int code;
    while ((code = PtlMDRelease(md)) == PTL_IN_USE && ptest_now_ms() < end) {
        ptest_sleep_ms(1);
    }
    CHECK_CODE(code, PTL_OK);
}

ptl_handle_ct_t port_ct(struct port *p)
{
    ptl_handle_ct_t ct;
    OK(PtlCTAlloc(p->ni, &ct));
    return ct;
}

void port_wait_ct(ptl_handle_ct_t ct, uint64_t success)
{
    ptl_ct_event_t value;
    ptl_size_t test = success;
    unsigned which;
    OK(PtlCTPoll(&ct, &test, 1, WAIT_MS, &value, &which));
    CHECK_EQ(value.failure, 0);
    CHECK_EQ(value.success, success);
}

ptl_me_t port_entry(struct port *p, void *start, size_t length, unsigned options)
{
    ptl_me_t me;
    memset(&me, 0, sizeof(me));
    me.start = start;
    me.length = length;
    me.ct_handle = PTL_CT_NONE;
    me.uid = PTL_UID_ANY;
    me.options = options;
    if (port_logical(p)) {
        me.match_id.rank = PTL_RANK_ANY;
    } else {
        me.match_id.phys.nid = PTL_NID_ANY;
        me.match_id.phys.pid = PTL_PID_ANY;
    }
    me.ignore_bits = ~(ptl_match_bits_t)0;
    return me;
}

int port_append_code(struct port *p, ptl_pt_index_t pt, const ptl_me_t *me, void *user_ptr,
                     ptl_handle_me_t *handle)
{
    if (port_matching(p)) {
        return PtlMEAppend(p->ni, pt, me, PTL_PRIORITY_LIST, user_ptr, handle);
    }
    ptl_le_t le = {me->start, me->length, me->ct_handle, me->uid, me->options};
    return PtlLEAppend(p->ni, pt, &le, PTL_PRIORITY_LIST, user_ptr, handle);
}

ptl_handle_me_t port_append(struct port *p, const ptl_me_t *me, void *user_ptr)
{
    ptl_handle_me_t handle;
    OK(port_append_code(p, p->pt, me, user_ptr, &handle));
    return handle;
}

int port_unlink_code(struct port *p, ptl_handle_me_t handle)
{
    return port_matching(p) ? PtlMEUnlink(handle) : PtlLEUnlink(handle);
}

void port_unlink(struct port *p, ptl_handle_me_t handle)
{
    uint64_t end = ptest_now_ms() + WAIT_MS;
    int code;
    while ((code = port_unlink_code(p, handle)) == PTL_IN_USE && ptest_now_ms() < end) {
        ptest_sleep_ms(1);
    }
    CHECK_CODE(code, PTL_OK);
}

ptl_handle_me_t port_target(struct port *p, void *start, size_t length, unsigned options,
                            void *user_ptr)
{
    ptl_me_t me = port_entry(p, start, length, options | PTL_ME_EVENT_LINK_DISABLE);
    return port_append(p, &me, user_ptr);
}

int port_status(struct port *p, ptl_sr_index_t index)
{
    ptl_sr_value_t value = -1;
    OK(PtlNIStatus(p->ni, index, &value));
    return value;
}

const char *port_event_name(int type)
{
    static const char *const names[] = {"GET",          "GET_OVERFLOW",
                                        "PUT",          "PUT_OVERFLOW",
                                        "ATOMIC",       "ATOMIC_OVERFLOW",
                                        "FETCH_ATOMIC", "FETCH_ATOMIC_OVERFLOW",
                                        "REPLY",        "SEND",
                                        "ACK",          "PT_DISABLED",
                                        "LINK",         "AUTO_UNLINK",
                                        "AUTO_FREE",    "SEARCH"};
    return type >= 0 && type <= PTL_EVENT_SEARCH ? names[type] : "no event type";
}

ptl_event_t port_event(ptl_handle_eq_t eq, int type, int fail, const char *file, int line)
{
    ptl_event_t event;
    unsigned which;
    ptest_seen(file, line);
    memset(&event, 0xee, sizeof(event));
    int code = PtlEQPoll(&eq, 1, WAIT_MS, &event, &which);
    if (code == PTL_EQ_EMPTY) {
        ptest_fail(file, line, "no %s event came within %u ms", port_event_name(type), WAIT_MS);
    }
    ptest_check_code(code, PTL_OK, "PtlEQPoll", file, line);
    if (event.type != type || event.ni_fail_type != fail) {
        ptest_fail(file, line, "the event is %s with ni_fail_type %d, not %s with %d",
                   port_event_name(event.type), event.ni_fail_type, port_event_name(type), fail);
    }
    return event;
}

void port_no_event(ptl_handle_eq_t eq, const char *file, int line)
{
    ptl_event_t event;
    unsigned which;
    ptest_seen(file, line);
    int code = PtlEQPoll(&eq, 1, 20, &event, &which);
    if (code == PTL_OK || code == PTL_EQ_DROPPED) {
        ptest_fail(file, line, "an unexpected %s event with ni_fail_type %d",
                   port_event_name(event.type), event.ni_fail_type);
    }
    ptest_check_code(code, PTL_EQ_EMPTY, "PtlEQPoll", file, line);
}

bool port_is_from(const struct port *p, const ptl_event_t *event, int rank)
{
    if (port_logical(p)) {
        return event->initiator.rank == p->id[rank].rank;
    }
    return event->initiator.phys.nid == p->id[rank].phys.nid &&
           event->initiator.phys.pid == p->id[rank].phys.pid;
}
