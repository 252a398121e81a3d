/* SPDX-License-Identifier: BSD-3-Clause */
/* Every function behind one signature; see args_call.h. */
#include "args_call.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct args_results args_results;
unsigned char args_from[4096], args_to[4096];

/* ---- The calls ------------------------------------------------------------- */

#define CALL(name_) static int name_(const struct args *a)

CALL(init)
{
    return PtlInit();
}
CALL(fini)
{
    PtlFini();
    return NO_CODE;
}
CALL(abort_waits)
{
    PtlAbort();
    return NO_CODE;
}
CALL(ni_init)
{
    return PtlNIInit(a->iface, a->options, a->pid, NULL, a->limits_out, a->handle_out);
}
CALL(ni_fini)
{
    return PtlNIFini(a->ni);
}
CALL(ni_status)
{
    return PtlNIStatus(a->ni, (ptl_sr_index_t)a->reg, a->status_out);
}
CALL(ni_handle)
{
    return PtlNIHandle(a->any, a->handle_out);
}
CALL(set_map)
{
    return PtlSetMap(a->ni, a->count, a->map_at);
}
CALL(get_map)
{
    return PtlGetMap(a->ni, a->count, a->map_out, a->map_size_out);
}
CALL(pt_alloc)
{
    return PtlPTAlloc(a->ni, a->options, a->eq, a->pt, a->index_out);
}
CALL(pt_free)
{
    return PtlPTFree(a->ni, a->pt);
}
CALL(pt_disable)
{
    return PtlPTDisable(a->ni, a->pt);
}
CALL(pt_enable)
{
    return PtlPTEnable(a->ni, a->pt);
}
CALL(get_uid)
{
    return PtlGetUid(a->ni, a->uid_out);
}
CALL(get_id)
{
    return PtlGetId(a->ni, a->id_out);
}
CALL(get_phys_id)
{
    return PtlGetPhysId(a->ni, a->id_out);
}
CALL(md_bind)
{
    return PtlMDBind(a->ni, a->md_at, a->handle_out);
}
CALL(md_release)
{
    return PtlMDRelease(a->md);
}
CALL(le_append)
{
    return PtlLEAppend(a->ni, a->pt, (const ptl_le_t *)a->me_at, a->list, a->user_ptr,
                       a->handle_out);
}
CALL(me_append)
{
    return PtlMEAppend(a->ni, a->pt, a->me_at, a->list, a->user_ptr, a->handle_out);
}
CALL(le_unlink)
{
    return PtlLEUnlink(a->entry);
}
CALL(me_unlink)
{
    return PtlMEUnlink(a->entry);
}
CALL(le_search)
{
    return PtlLESearch(a->ni, a->pt, (const ptl_le_t *)a->me_at, a->search, a->user_ptr);
}
CALL(me_search)
{
    return PtlMESearch(a->ni, a->pt, a->me_at, a->search, a->user_ptr);
}
CALL(eq_alloc)
{
    return PtlEQAlloc(a->ni, a->count, a->handle_out);
}
CALL(eq_free)
{
    return PtlEQFree(a->eq);
}
CALL(eq_get)
{
    return PtlEQGet(a->eq, a->event_out);
}
CALL(eq_wait)
{
    return PtlEQWait(a->eq, a->event_out);
}
CALL(eq_poll)
{
    return PtlEQPoll(a->eqs_at, a->size, a->timeout, a->event_out, a->which_out);
}
CALL(ct_alloc)
{
    return PtlCTAlloc(a->ni, a->handle_out);
}
CALL(ct_free)
{
    return PtlCTFree(a->ct);
}
CALL(ct_cancel)
{
    return PtlCTCancelTriggered(a->ct);
}
CALL(ct_get)
{
    return PtlCTGet(a->ct, a->value_out);
}
CALL(ct_wait)
{
    return PtlCTWait(a->ct, a->test, a->value_out);
}
CALL(ct_poll)
{
    return PtlCTPoll(a->cts_at, a->tests_at, a->size, a->timeout, a->value_out, a->which_out);
}
CALL(ct_set)
{
    return PtlCTSet(a->ct, a->value);
}
CALL(ct_inc)
{
    return PtlCTInc(a->ct, a->value);
}
CALL(atomic_sync)
{
    return PtlAtomicSync();
}
CALL(triggered_ct_inc)
{
    return PtlTriggeredCTInc(a->ct, a->value, a->move.trigger, a->move.threshold);
}
CALL(triggered_ct_set)
{
    return PtlTriggeredCTSet(a->ct, a->value, a->move.trigger, a->move.threshold);
}
CALL(triggered_me_append)
{
    return PtlTriggeredMEAppend(a->ni, a->pt, a->me_at, a->list, a->user_ptr, a->handle_out,
                                a->move.trigger, a->move.threshold);
}
CALL(triggered_me_unlink)
{
    return PtlTriggeredMEUnlink(a->entry, a->move.trigger, a->move.threshold);
}
CALL(start_bundle)
{
    return PtlStartBundle(a->ni);
}
CALL(end_bundle)
{
    return PtlEndBundle(a->ni);
}
CALL(is_equal)
{
    PtlHandleIsEqual(a->any, a->any2);
    return NO_CODE;
}

static int move_as(const struct args *a, enum suite_call call, bool triggered)
{
    struct suite_move m = a->move;
    m.call = call;
    m.triggered = triggered;
    return suite_move(&m);
}

CALL(put)
{
    return move_as(a, CALL_PUT, false);
}
CALL(get)
{
    return move_as(a, CALL_GET, false);
}
CALL(atomic)
{
    return move_as(a, CALL_ATOMIC, false);
}
CALL(fetch)
{
    return move_as(a, CALL_FETCH, false);
}
CALL(swap)
{
    return move_as(a, CALL_SWAP, false);
}
CALL(triggered_put)
{
    return move_as(a, CALL_PUT, true);
}
CALL(triggered_get)
{
    return move_as(a, CALL_GET, true);
}
CALL(triggered_atomic)
{
    return move_as(a, CALL_ATOMIC, true);
}
CALL(triggered_fetch)
{
    return move_as(a, CALL_FETCH, true);
}
CALL(triggered_swap)
{
    return move_as(a, CALL_SWAP, true);
}

const struct args_call args_calls[] = {
    {"PtlInit", init, ALL_KINDS, PTL_OK},
    {"PtlFini", fini, ALL_KINDS, NO_CODE},
    {"PtlAbort", abort_waits, ALL_KINDS, NO_CODE},
    {"PtlNIInit", ni_init, ALL_KINDS, PTL_OK},
    {"PtlNIFini", ni_fini, ALL_KINDS, PTL_OK},
    {"PtlNIStatus", ni_status, ALL_KINDS, PTL_OK},
    {"PtlNIHandle", ni_handle, ALL_KINDS, PTL_OK},
    {"PtlSetMap", set_map, LOGICAL_KINDS, PTL_IGNORED},
    {"PtlGetMap", get_map, LOGICAL_KINDS, PTL_OK},
    {"PtlPTAlloc", pt_alloc, ALL_KINDS, PTL_OK},
    {"PtlPTFree", pt_free, ALL_KINDS, PTL_OK},
    {"PtlPTDisable", pt_disable, ALL_KINDS, PTL_OK},
    {"PtlPTEnable", pt_enable, ALL_KINDS, PTL_OK},
    {"PtlGetUid", get_uid, ALL_KINDS, PTL_OK},
    {"PtlGetId", get_id, ALL_KINDS, PTL_OK},
    {"PtlGetPhysId", get_phys_id, ALL_KINDS, PTL_OK},
    {"PtlMDBind", md_bind, ALL_KINDS, PTL_OK},
    {"PtlMDRelease", md_release, ALL_KINDS, PTL_OK},
    {"PtlLEAppend", le_append, PLAIN_KINDS, PTL_OK},
    {"PtlMEAppend", me_append, MATCHING_KINDS, PTL_OK},
    {"PtlLEUnlink", le_unlink, PLAIN_KINDS, PTL_OK},
    {"PtlMEUnlink", me_unlink, MATCHING_KINDS, PTL_OK},
    {"PtlLESearch", le_search, PLAIN_KINDS, PTL_OK},
    {"PtlMESearch", me_search, MATCHING_KINDS, PTL_OK},
    {"PtlEQAlloc", eq_alloc, ALL_KINDS, PTL_OK},
    {"PtlEQFree", eq_free, ALL_KINDS, PTL_OK},
    {"PtlEQGet", eq_get, ALL_KINDS, PTL_EQ_EMPTY},
    {"PtlEQWait", eq_wait, ALL_KINDS, PTL_OK},
    {"PtlEQPoll", eq_poll, ALL_KINDS, PTL_EQ_EMPTY},
    {"PtlCTAlloc", ct_alloc, ALL_KINDS, PTL_OK},
    {"PtlCTFree", ct_free, ALL_KINDS, PTL_OK},
    {"PtlCTCancelTriggered", ct_cancel, ALL_KINDS, PTL_OK},
    {"PtlCTGet", ct_get, ALL_KINDS, PTL_OK},
    {"PtlCTWait", ct_wait, ALL_KINDS, PTL_OK},
    {"PtlCTPoll", ct_poll, ALL_KINDS, PTL_CT_NONE_REACHED},
    {"PtlCTSet", ct_set, ALL_KINDS, PTL_OK},
    {"PtlCTInc", ct_inc, ALL_KINDS, PTL_OK},
    {"PtlPut", put, ALL_KINDS, PTL_OK},
    {"PtlGet", get, ALL_KINDS, PTL_OK},
    {"PtlAtomic", atomic, ALL_KINDS, PTL_OK},
    {"PtlFetchAtomic", fetch, ALL_KINDS, PTL_OK},
    {"PtlSwap", swap, ALL_KINDS, PTL_OK},
    {"PtlAtomicSync", atomic_sync, ALL_KINDS, PTL_OK},
    {"PtlTriggeredPut", triggered_put, ALL_KINDS, PTL_OK},
    {"PtlTriggeredGet", triggered_get, ALL_KINDS, PTL_OK},
    {"PtlTriggeredAtomic", triggered_atomic, ALL_KINDS, PTL_OK},
    {"PtlTriggeredFetchAtomic", triggered_fetch, ALL_KINDS, PTL_OK},
    {"PtlTriggeredSwap", triggered_swap, ALL_KINDS, PTL_OK},
    {"PtlTriggeredCTInc", triggered_ct_inc, ALL_KINDS, PTL_OK},
    {"PtlTriggeredCTSet", triggered_ct_set, ALL_KINDS, PTL_OK},
    {"PtlTriggeredMEAppend", triggered_me_append, MATCHING_KINDS, PTL_OK},
    {"PtlTriggeredMEUnlink", triggered_me_unlink, MATCHING_KINDS, PTL_OK},
    {"PtlStartBundle", start_bundle, ALL_KINDS, PTL_OK},
    {"PtlEndBundle", end_bundle, ALL_KINDS, PTL_OK},
    {"PtlHandleIsEqual", is_equal, ALL_KINDS, NO_CODE},
};
const int args_call_count = sizeof(args_calls) / sizeof(args_calls[0]);

const struct args_call *args_find(const char *name)
{
    for (int i = 0; i < args_call_count; i++) {
        if (strcmp(args_calls[i].name, name) == 0) {
            return &args_calls[i];
        }
    }
    return NULL;
}

/* ---- Good arguments -------------------------------------------------------- */

static void fill_outputs(struct args *a)
{
    struct args_results *r = &args_results;
    memset(r, 0x5a, sizeof(*r));
    a->handle_out = &r->handle;
    a->index_out = &r->index;
    a->event_out = &r->event;
    a->value_out = &r->value;
    a->which_out = &r->which;
    a->status_out = &r->status;
    a->uid_out = &r->uid;
    a->id_out = &r->id;
    a->map_out = r->map;
    a->map_size_out = &r->map_size;
    a->limits_out = &r->limits;
}

static void fill_structures(struct scene *s, struct args *a)
{
    a->md_desc = (ptl_md_t){args_from, sizeof(args_from), PTL_MD_EVENT_CT_ACK, s->mdeq, s->mdct};
    a->me_desc = suite_entry(s, args_to, sizeof(args_to),
                             PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE);
    a->md_at = &a->md_desc;
    a->me_at = &a->me_desc;
    a->eqs[0] = s->eq;
    a->eqs[1] = s->mdeq;
    a->cts[0] = s->ct;
    a->cts[1] = s->mdct;
    a->tests[0] = a->tests[1] = 1;
    a->eqs_at = a->eqs;
    a->cts_at = a->cts;
    a->tests_at = a->tests;
    memcpy(a->map, s->phys, sizeof(s->phys));
    a->map_at = a->map;
    a->iovec[0] = (ptl_iovec_t){args_from, 8};
    a->iovec[1] = (ptl_iovec_t){args_from + 16, 8};
}

void args_fill(struct scene *s, const struct args_call *call, struct args *a)
{
    static const unsigned long long operand = 0;
    memset(a, 0, sizeof(*a));
    suite_fill(args_from, sizeof(args_from), 1);
    memset(args_to, 0xa5, sizeof(args_to));
    suite_pt(s, 0, s->eq, FREE_PT);
    a->ni = s->ni;
    a->any = a->any2 = s->ni;
    a->eq = s->mdeq;
    a->ct = s->ct;
    a->md = suite_md(s, args_from, 1024, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY);
    a->entry = suite_target(s, PTL_PRIORITY_LIST, args_to, sizeof(args_to),
                            PTL_ME_OP_PUT | PTL_ME_OP_GET, NULL);
    fill_structures(s, a);
    fill_outputs(a);
    a->iface = PTL_IFACE_DEFAULT;
    a->pid = PTL_PID_ANY;
    a->options = strcmp(call->name, "PtlNIInit") == 0 ? s->options : 0;
    a->count = 2;
    a->pt = strcmp(call->name, "PtlPTAlloc") == 0 ? UNUSED_PT : FREE_PT;
    a->list = PTL_PRIORITY_LIST;
    a->search = PTL_SEARCH_ONLY;
    a->size = 2;
    a->value = (ptl_ct_event_t){0, 0};
    a->move = suite_move_to(s, CALL_PUT);
    a->move.md = a->md;
    a->move.get_md = suite_md(s, args_from + 1024, 1024, PTL_MD_EVENT_CT_REPLY);
    a->move.length = 8;
    a->move.operand = &operand;
    a->move.op = strstr(call->name, "Swap") != NULL ? PTL_CSWAP : PTL_SUM;
    a->move.type = PTL_UINT64_T;
    a->move.trigger = s->ct;
    a->move.threshold = 1000;
}

/* ---- Nothing was done ------------------------------------------------------ */

static void check_alive(struct scene *s, ptl_handle_any_t handle)
{
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    OK(PtlNIHandle(handle, &ni));
    CHECK_EQ(ni, s->ni);
}

static void nothing_done(struct scene *s, const struct args *a)
{
    ptl_ct_event_t value;
    CHECK_BYTES(&args_results, sizeof(args_results), 0x5a);
    NO_EVENT(s->eq);
    NO_EVENT(s->mdeq);
    OK(PtlCTGet(s->ct, &value));
    CHECK_EQ(value.success + value.failure, 0);
    OK(PtlCTGet(s->mdct, &value));
    CHECK_EQ(value.success + value.failure, 0);
    CHECK_FILL(args_from, sizeof(args_from), 1);
    CHECK_BYTES(args_to, sizeof(args_to), 0xa5);
    check_alive(s, s->ni);
    check_alive(s, s->eq);
    check_alive(s, s->mdeq);
    check_alive(s, s->ct);
    check_alive(s, s->mdct);
}

/* ---- The reason was told ---------------------------------------------------- */

/* Makes the call; what the library writes to standard error meanwhile is in `log`. */
static int go_and_listen(const struct args_call *call, const struct args *a, char *log, size_t size)
{
    int file = memfd_create("log", MFD_CLOEXEC), errors = dup(STDERR_FILENO);
    CHECK(file >= 0 && errors >= 0 && dup2(file, STDERR_FILENO) == STDERR_FILENO);
    int code = call->go(a);
    CHECK_EQ(dup2(errors, STDERR_FILENO), STDERR_FILENO);
    ssize_t n = pread(file, log, size - 1, 0);
    log[n < 0 ? 0 : n] = '\0';
    close(file);
    close(errors);
    return code;
}

/* The spoiled parameter as a line may have it: of "PtlEQPoll.first_of_eq_handles.freed" the last
 * word, "handle"; "" where the name of the case is none of those, or where the parameter decides
 * which interface the others are held against, so that another one is wrong. */
static void parameter_of(const struct scene *s, const struct args_call *call, char *word,
                         size_t size)
{
    const char *from = strchr(s->c->name, '.');
    word[0] = '\0';
    if (from == NULL || strncmp(s->c->name, call->name, strlen(call->name)) != 0 ||
        strncmp(from, ".pair.", 6) == 0 || strncmp(from, ".md_handle.other_", 17) == 0 ||
        strncmp(from, ".ni_handle.other_", 17) == 0) {
        return;
    }
    snprintf(word, size, "%.*s", (int)strcspn(from + 1, "."), from + 1);
    const char *last = strrchr(word, '_');
    if (last != NULL) {
        memmove(word, last + 1, strlen(last));
    }
    size_t n = strlen(word);
    if (n > 4 && word[n - 1] == 's') {
        word[n - 1] = '\0';
    }
}

/* Whoever is refused finds in the log which argument it was. */
static void check_told(const struct scene *s, const struct args_call *call, const char *log)
{
    char word[64];
    if (strstr(s->c->name, ".forked_child") != NULL) {
        return; /* these make one call so often that the log leaves lines out */
    }
    parameter_of(s, call, word, sizeof(word));
    if (strstr(log, " refused: ") == NULL || strcasestr(log, word) == NULL) {
        FAIL("%s: the log says \"%s\", nothing of \"%s\"", s->c->name, log, word);
    }
    bool other = strstr(s->c->name, ".other_interface") != NULL;
    if (other && strstr(s->c->name, "eq_handle") != NULL &&
        strstr(log, "another interface") == NULL) {
        FAIL("%s: the log says \"%s\" of a queue that is there", s->c->name, log);
    }
    if (!other && strstr(s->c->name, ".put_md_handle.") != NULL &&
        strstr(log, "put_md_handle") == NULL) {
        FAIL("%s: the log says \"%s\", not which of the two it is", s->c->name, log);
    }
}

void args_refused(struct scene *s, const struct args_call *call, const struct args *a, int expected)
{
    struct suite_move probe = suite_move_to(s, CALL_PUT);
    int drops = suite_status(s, PTL_SR_DROP_COUNT);
    char log[1024];
    suite_seen(__FILE__, __LINE__);
    int code = go_and_listen(call, a, log, sizeof(log));
    suite_check_code(code, expected, call->name, __FILE__, __LINE__);
    check_told(s, call, log);
    nothing_done(s, a);
    /* the good objects go on working */
    probe.md = suite_md(s, args_from, 8, PTL_MD_EVENT_SEND_DISABLE);
    probe.length = 8;
    probe.ack = PTL_ACK_REQ;
    OK(suite_move(&probe));
    EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(8));
    EXPECT(s->eq, PTL_EVENT_PUT, .mlength = IS(8));
    memset(args_to, 0xa5, 8);
    CHECK_EQ(suite_status(s, PTL_SR_DROP_COUNT), drops);
}

/* ---- Another interface ----------------------------------------------------- */

/* Made once in each process of a crew; PtlFini closes it. */
const struct args_other *args_other(struct scene *s)
{
    static struct args_other other;
    static bool opened;
    if (opened) {
        return &other;
    }
    opened = true;
    ptl_process_t self;
    ptl_pt_index_t pt;
    unsigned options = s->options ^ (PTL_NI_LOGICAL | PTL_NI_PHYSICAL);
    OK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &other.ni));
    OK(PtlGetPhysId(other.ni, &self));
    if (options & PTL_NI_LOGICAL) {
        OK(PtlSetMap(other.ni, 1, &self));
    }
    OK(PtlEQAlloc(other.ni, 8, &other.eq));
    OK(PtlCTAlloc(other.ni, &other.ct));
    OK(PtlPTAlloc(other.ni, 0, other.eq, SUITE_PT, &pt));
    ptl_md_t md = {args_from, 8, 0, other.eq, PTL_CT_NONE};
    OK(PtlMDBind(other.ni, &md, &other.md));
    ptl_me_t me = suite_entry(s, args_to, 8, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    OK(s->matching ? PtlMEAppend(other.ni, pt, &me, PTL_PRIORITY_LIST, NULL, &other.entry)
                   : PtlLEAppend(other.ni, pt, (const ptl_le_t *)&me, PTL_PRIORITY_LIST, NULL,
                                 &other.entry));
    return &other;
}
