/* SPDX-License-Identifier: BSD-3-Clause */
/* What came, compared with what had to; see lists.h. */
#include "lists.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

unsigned patience_s = 120;

static bool time_over(time_t *end)
{
    time_t now = time(NULL);
    *end = *end == 0 ? now + patience_s : *end;
    return now > *end;
}

static void show(char text[256], const ptl_event_t *e)
{
    snprintf(text, 256,
             "type %d, fail %d, user_ptr %p, bits %llx, rlength %llu, mlength %llu, offset %llu, "
             "start %p, list %d, hdr_data %llx",
             e->type, e->ni_fail_type, e->user_ptr, (unsigned long long)e->match_bits,
             (unsigned long long)e->rlength, (unsigned long long)e->mlength,
             (unsigned long long)e->remote_offset, e->start, e->ptl_list,
             (unsigned long long)e->hdr_data);
}

static _Noreturn void differs(const struct lane *l, const char *what, const ptl_event_t *due,
                              const ptl_event_t *e)
{
    char want[256] = "nothing", got[256] = "nothing";
    if (due != NULL) {
        show(want, due);
    }
    if (e != NULL) {
        show(got, e);
    }
    fail("lane %u, %d to %d, kind %u%s: %s\n    due: %s\n    got: %s", l->number, l->process,
         l->target, l->kind, l->triggered ? ", triggered" : "", what, want, got);
}

static void next_event(const struct lane *l, ptl_handle_eq_t eq, const ptl_event_t *due,
                       ptl_event_t *e)
{
    time_t end = 0;
    int code;
    while ((code = PtlEQGet(eq, e)) == PTL_EQ_EMPTY) {
        if (time_over(&end)) {
            differs(l, "an event is missing", due, NULL);
        }
    }
    OK(code);
}

static void no_event(const struct lane *l, ptl_handle_eq_t eq)
{
    ptl_event_t e;
    if (PtlEQGet(eq, &e) != PTL_EQ_EMPTY) {
        differs(l, "one event too many", NULL, &e);
    }
}

static void check_count(const struct lane *l, ptl_handle_ct_t ct, const ptl_ct_event_t *due)
{
    time_t end = 0;
    ptl_ct_event_t now;
    do {
        OK(PtlCTGet(ct, &now));
        if (time_over(&end)) {
            fail("lane %u, %d to %d, kind %u: a counter is {%llu, %llu} and not {%llu, %llu}",
                 l->number, l->process, l->target, l->kind, (unsigned long long)now.success,
                 (unsigned long long)now.failure, (unsigned long long)due->success,
                 (unsigned long long)due->failure);
        }
    } while (now.success != due->success || now.failure != due->failure);
}

static void check_bytes(const struct lane *l, const char *what, const uint8_t *now,
                        const uint8_t *due, const uint8_t *open, size_t n)
{
    if (memcmp(now, due, n) == 0) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (now[i] != due[i] && open[i] == 0) {
            fail("lane %u, %d to %d, kind %u: byte %zu of the %s memory is %02x and not %02x",
                 l->number, l->process, l->target, l->kind, i, what, now[i], due[i]);
        }
    }
}

/* ---- the target ---- */

static bool same_initiator(const struct lane *l, const ptl_event_t *e)
{
    const ptl_process_t *id = &ids[l->process];
    return is_logical(l->kind)
               ? e->initiator.rank == (ptl_rank_t)l->process
               : e->initiator.phys.nid == id->phys.nid && e->initiator.phys.pid == id->phys.pid;
}

static bool same_message(const struct lane *l, const ptl_event_t *due, const ptl_event_t *e)
{
    bool get = due->type == PTL_EVENT_GET || due->type == PTL_EVENT_GET_OVERFLOW;
    return (get || due->hdr_data == e->hdr_data || due->type == PTL_EVENT_SEARCH) &&
           (!is_matching(l->kind) || due->match_bits == e->match_bits) &&
           due->rlength == e->rlength && due->mlength == e->mlength &&
           due->remote_offset == e->remote_offset && e->uid == (ptl_uid_t)geteuid() &&
           (due->ptl_list == ANY_LIST || due->ptl_list == e->ptl_list) && same_initiator(l, e);
}

static void check_target_event(const struct lane *l, const struct due *d, const ptl_event_t *e)
{
    const ptl_event_t *due = &d->event;
    const uint8_t *memory = here + (size_t)l->number * SITE_BYTES;
    if (due->type != e->type || due->ni_fail_type != e->ni_fail_type ||
        due->pt_index != e->pt_index ||
        (due->type != PTL_EVENT_PT_DISABLED && due->user_ptr != e->user_ptr)) {
        differs(l, "another event", due, e);
    }
    if ((d->checked & CHECK_MESSAGE) != 0 && !same_message(l, due, e)) {
        differs(l, "another message", due, e);
    }
    if ((d->checked & CHECK_START) != 0 && e->start != memory + (uintptr_t)due->start) {
        differs(l, "another place", due, e);
    }
    if ((d->checked & CHECK_ATOMIC) != 0 &&
        (due->atomic_operation != e->atomic_operation || due->atomic_type != e->atomic_type)) {
        differs(l, "another operation", due, e);
    }
}

void check_target(struct lane *l)
{
    struct site *s = site_of(l);
    if (l->target == me) {
        for (size_t i = 0; i < s->due.n; i++) {
            ptl_event_t e;
            next_event(l, s->eq, &s->due.v[i].event, &e);
            check_target_event(l, &s->due.v[i], &e);
        }
        if (s->has_eq) {
            no_event(l, s->eq);
        }
        for (unsigned i = 0; i < SITE_CTS; i++) {
            check_count(l, s->ct[i], &s->count[i]);
        }
        check_bytes(l, "target's", here + (size_t)l->number * SITE_BYTES, l->memory[me],
                    l->open[me], SITE_BYTES);
    }
    s->due.n = 0;
}

/* ---- the initiator ---- */

/* SENDs come in any order, but before the ACK of the same message. */
static void check_send(const struct lane *l, size_t seen, const ptl_event_t *e)
{
    size_t i = seen;
    while (i < l->sends.n && l->sends.v[i].event.user_ptr != e->user_ptr) {
        i++;
    }
    if (i == l->sends.n || e->ni_fail_type != PTL_NI_OK) {
        differs(l, "a strange SEND", seen < l->sends.n ? &l->sends.v[seen].event : NULL, e);
    }
    struct due found = l->sends.v[i];
    l->sends.v[i] = l->sends.v[seen];
    l->sends.v[seen] = found;
}

static void check_answer(const struct lane *l, size_t sends, const struct due *d,
                         const ptl_event_t *e)
{
    const ptl_event_t *due = &d->event;
    if (due->type != e->type || due->user_ptr != e->user_ptr ||
        due->ni_fail_type != e->ni_fail_type || due->mlength != e->mlength ||
        (due->ptl_list != ANY_LIST && due->ptl_list != e->ptl_list) ||
        ((d->checked & CHECK_OFFSET) != 0 && due->remote_offset != e->remote_offset)) {
        differs(l, "another answer", due, e);
    }
    for (size_t i = sends; i < l->sends.n && e->type == PTL_EVENT_ACK; i++) {
        if (l->sends.v[i].event.user_ptr == e->user_ptr) {
            differs(l, "an ACK before its SEND", due, e);
        }
    }
}

static void check_initiator_events(struct lane *l)
{
    size_t sends = 0, answers = 0;
    while (sends < l->sends.n || answers < l->answers.n) {
        ptl_event_t e;
        const struct due *answer = answers < l->answers.n ? &l->answers.v[answers] : NULL;
        next_event(l, l->eq[l->kind], answer != NULL ? &answer->event : &l->sends.v[sends].event,
                   &e);
        if (e.type == PTL_EVENT_SEND) {
            check_send(l, sends++, &e);
        } else if (answer == NULL) {
            differs(l, "one answer too many", NULL, &e);
        } else {
            check_answer(l, sends, answer, &e);
            answers++;
        }
    }
    no_event(l, l->eq[l->kind]);
}

/* Of a message that tells nothing the last byte may still be on its way. */
static void release(ptl_handle_md_t md)
{
    time_t end = 0;
    int code;
    while ((code = PtlMDRelease(md)) == PTL_IN_USE && !time_over(&end)) {
    }
    OK(code);
}

void check_initiator(struct lane *l)
{
    if (l->process == me) {
        check_count(l, l->last_ct[l->kind], &(ptl_ct_event_t){l->lasts[l->kind], 0});
        check_initiator_events(l);
        check_count(l, l->ct[l->kind], &l->count[l->kind]);
        check_bytes(l, "initiator's", l->fetched, l->fetched_model, l->fetched_open, FETCHED_BYTES);
        memcpy(l->fetched, l->fetched_model, FETCHED_BYTES);
        for (unsigned i = 0; i < l->messages; i++) {
            struct message *m = &l->message[i];
            release(m->from.md);
            if (m->act == ACT_FETCH || m->act == ACT_SWAP) {
                release(m->to.md);
            }
            free(m->sent);
        }
    }
    memset(l->fetched_open, 0, FETCHED_BYTES);
    l->sends.n = l->answers.n = 0;
}

void check_registers(void)
{
    for (unsigned kind = 0; kind < KINDS; kind++) {
        for (int i = 0; i < PTL_SR_LAST; i++) {
            ptl_sr_value_t now, due = registers[me][kind].value[i];
            OK(PtlNIStatus(ni[kind], (ptl_sr_index_t)i, &now));
            if (now != due) {
                fail("kind %u: status register %d is %d and not %d", kind, i, now, due);
            }
        }
    }
}
