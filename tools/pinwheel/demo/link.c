/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection of a rank with the other rank; see link.h. */
#include "link.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Silence that counts as an error: longer than any pause of a busy machine, and not too long for
 * the user. */
enum { SILENCE_MS = 30000 };

int link_say(const struct demo_link *l, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "pinwheel demo: rank %d: %s\n", l->rank, text);
    return -1;
}

bool link_ok(const struct demo_link *l, int code, const char *call)
{
    static const char *const names[] = {
        [PTL_ARG_INVALID] = "PTL_ARG_INVALID", [PTL_FAIL] = "PTL_FAIL",
        [PTL_IN_USE] = "PTL_IN_USE",           [PTL_LIST_TOO_LONG] = "PTL_LIST_TOO_LONG",
        [PTL_NO_INIT] = "PTL_NO_INIT",         [PTL_NO_SPACE] = "PTL_NO_SPACE",
        [PTL_PT_IN_USE] = "PTL_PT_IN_USE",
    };
    if (code == PTL_OK) {
        return true;
    }
    bool known = code > 0 && code < (int)(sizeof(names) / sizeof(names[0])) && names[code] != NULL;
    link_say(l, "%s gave %d%s%s", call, code, known ? ", " : "", known ? names[code] : "");
    return false;
}

/* ---- Objects ---- */

int link_entry(struct demo_link *l, void *start, uint64_t length, uint64_t bits, unsigned options,
               ptl_handle_ct_t ct, const ptl_handlers_t *handlers, ptl_handle_me_t *me)
{
    ptl_me_t entry = {.start = start,
                      .length = length,
                      .ct_handle = ct,
                      .uid = PTL_UID_ANY,
                      .options = PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | options,
                      .match_id.rank = PTL_RANK_ANY,
                      .match_bits = bits};
    int code =
        PtlMEAppendHandlers(l->ni, LINK_INDEX, &entry, handlers, PTL_PRIORITY_LIST, NULL, me);
    return link_ok(l, code, "PtlMEAppendHandlers") ? 0 : -1;
}

int link_unlink(struct demo_link *l, ptl_handle_me_t me)
{
    int code;
    do {
        code = PtlMEUnlink(me);
    } while (code ==
             PTL_IN_USE); /* its last message was counted, but the NIC still holds the entry */
    return link_ok(l, code, "PtlMEUnlink") ? 0 : -1;
}

int link_md(struct demo_link *l, const void *start, uint64_t length, ptl_handle_ct_t ct,
            ptl_handle_md_t *md)
{
    ptl_md_t range = {.start = (void *)(uintptr_t)start,
                      .length = length,
                      .options = ct != PTL_CT_NONE ? PTL_MD_EVENT_CT_ACK : 0,
                      .eq_handle = PTL_EQ_NONE,
                      .ct_handle = ct};
    return link_ok(l, PtlMDBind(l->ni, &range, md), "PtlMDBind") ? 0 : -1;
}

static int open_interface(struct demo_link *l)
{
    ptl_pt_index_t index;
    ptl_spin_limits_t limits;
    if (!link_ok(l, PtlInit(), "PtlInit") ||
        !link_ok(l,
                 PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL,
                           NULL, &l->ni),
                 "PtlNIInit")) {
        return -1;
    }
    if (pinwheel_job_set_map(l->job, l->ni) != 0) {
        return link_say(l, "%s", pinwheel_job_error(l->job));
    }
    if (!link_ok(l, PtlPTAlloc(l->ni, 0, PTL_EQ_NONE, LINK_INDEX, &index), "PtlPTAlloc") ||
        !link_ok(l, PtlSpinLimits(l->ni, &limits), "PtlSpinLimits") ||
        !link_ok(l, PtlCTAlloc(l->ni, &l->control_ct), "PtlCTAlloc")) {
        return -1;
    }
    l->packet = limits.max_payload_size;
    return 0;
}

int link_open(struct demo_link *l)
{
    ptl_handle_me_t me;
    *l = (struct demo_link){.rank = -1};
    if (pinwheel_job_init(&l->job) != 0) {
        return link_say(l, "%s", pinwheel_job_error(NULL));
    }
    l->rank = pinwheel_job_rank(l->job);
    l->peer.rank = l->rank == 0;
    if (pinwheel_job_size(l->job) != 2) {
        return link_say(l, "this is one of two processes that `pinwheel demo` starts");
    }
    if (open_interface(l) != 0 ||
        link_entry(l, l->inbox, sizeof(l->inbox), BITS_CONTROL, 0, l->control_ct, NULL, &me) != 0 ||
        link_md(l, l->outbox, sizeof(l->outbox), PTL_CT_NONE, &l->control_md) != 0) {
        return -1;
    }
    if (pinwheel_job_barrier(l->job) != 0) {
        return link_say(l, "%s", pinwheel_job_error(l->job));
    }
    return 0;
}

void link_close(struct demo_link *l)
{
    pinwheel_job_barrier(l->job);
    PtlFini();
    pinwheel_job_finalize(l->job);
}

/* ---- Messages ---- */

int link_wait(struct demo_link *l, ptl_handle_ct_t ct, uint64_t test, const char *what)
{
    ptl_ct_event_t value;
    unsigned which;
    int code = PtlCTPoll(&ct, &test, 1, SILENCE_MS, &value, &which);
    if (code == PTL_CT_NONE_REACHED) {
        return link_say(l, "%s: nothing came for %d s", what, SILENCE_MS / 1000);
    }
    if (code == PTL_OK && value.failure != 0) {
        return link_say(l, "%s: %llu failed", what, (unsigned long long)value.failure);
    }
    return link_ok(l, code, "PtlCTPoll") ? 0 : -1;
}

int link_send(struct demo_link *l, const void *message, uint64_t length)
{
    memcpy(l->outbox, message, length);
    return link_ok(l,
                   PtlPut(l->control_md, 0, length, PTL_NO_ACK_REQ, l->peer, LINK_INDEX,
                          BITS_CONTROL, 0, NULL, 0),
                   "PtlPut")
               ? 0
               : -1;
}

int link_receive(struct demo_link *l, void *message, uint64_t length)
{
    if (link_wait(l, l->control_ct, l->received + 1, "the other rank's word") != 0) {
        return -1;
    }
    l->received++;
    memcpy(message, l->inbox, length);
    return 0;
}
