/* SPDX-License-Identifier: BSD-3-Clause */
/* What messages do, the events that are due, and that nothing else happens; see matrix_kit.h. */
#include "matrix_kit.h"

#include "matrix_model.h"

#include <sched.h>
#include <string.h>

uint64_t matrix_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

unsigned matrix_spread(unsigned kinds, unsigned number)
{
    unsigned each[4], n = 0;
    for (unsigned kind = ML; kind <= NP; kind *= 2) {
        if (kinds & kind) {
            each[n++] = kind;
        }
    }
    return each[number % n];
}

/* ---- What a message does ---------------------------------------------------- */

bool move_puts(enum suite_call call)
{
    return call != CALL_GET;
}

bool move_gets(enum suite_call call)
{
    return call == CALL_GET || call == CALL_FETCH || call == CALL_SWAP;
}

size_t move_limit(const struct scene *s, enum suite_call call)
{
    return call == CALL_PUT || call == CALL_GET ? s->limits.max_msg_size
           : call == CALL_ATOMIC                ? s->limits.max_atomic_size
                                                : s->limits.max_fetch_atomic_size;
}

static void forgive_padding(struct region *r, size_t at, ptl_datatype_t type, size_t element)
{
    for (size_t i = 0; i < element; i++) {
        if (model_padding(type, i)) {
            region_forgive(r, at + i, 1);
        }
    }
}

static void apply(const struct suite_move *m, struct region *put, struct region *get,
                  struct region *entry, const struct landing *l)
{
    size_t element = suite_type_size(m->type);
    for (size_t at = 0; at + element <= l->mlength; at += element) {
        unsigned char target[MODEL_ELEMENT], data[MODEL_ELEMENT];
        region_wanted(entry, l->offset + at, target, element);
        region_wanted(put, m->offset + at, data, element);
        if (move_gets(m->call)) {
            region_expect(get, m->get_offset + at, target, element);
            forgive_padding(get, m->get_offset + at, m->type, element);
        }
        model_apply(m->op, m->type, target, data, m->operand);
        region_expect(entry, l->offset + at, target, element);
        forgive_padding(entry, l->offset + at, m->type, element);
    }
}

void landing_move(const struct suite_move *m, struct region *put, struct region *get,
                  struct region *entry, const struct landing *l)
{
    if (l->fail != PTL_NI_OK || l->mlength == 0) {
        return;
    }
    switch (m->call) {
    case CALL_PUT:
        region_move(entry, l->offset, put, m->offset, l->mlength);
        break;
    case CALL_GET:
        region_move(get, m->offset, entry, l->offset, l->mlength);
        break;
    default:
        apply(m, put, get, entry, l);
    }
}

/* ---- Events ----------------------------------------------------------------- */

static int arrival(enum suite_call call)
{
    switch (call) {
    case CALL_PUT:
        return PTL_EVENT_PUT;
    case CALL_GET:
        return PTL_EVENT_GET;
    case CALL_ATOMIC:
        return PTL_EVENT_ATOMIC;
    default:
        return PTL_EVENT_FETCH_ATOMIC;
    }
}

struct suite_event landing_event(const struct scene *s, const struct suite_move *m,
                                 const struct landing *l)
{
    struct suite_event e = {
        .type = arrival(m->call),
        .fail = l->fail,
        .user_ptr = IS(l->user_ptr),
        .rlength = IS(m->length),
        .mlength = IS(l->mlength),
        .remote_offset = IS(m->remote_offset),
        .uid = IS(s->uid),
        .pt_index = IS(m->pt),
        .list = IS(l->list),
        .initiator = &s->from,
    };
    if (l->mlength != 0) {
        e.start = IS(region_at(l->region, l->offset));
    }
    if (m->call != CALL_GET) {
        e.hdr_data = IS(m->hdr_data);
    }
    if (s->matching) {
        e.match_bits = IS(m->bits);
    }
    if (m->call != CALL_PUT && m->call != CALL_GET) {
        e.op = IS(m->op);
        e.datatype = IS(m->type);
    }
    return e;
}

struct suite_event landing_overflow(const struct scene *s, const struct suite_move *m,
                                    const struct landing *l, void *user_ptr)
{
    struct suite_event e = landing_event(s, m, l);
    e.type++; /* each ..._OVERFLOW follows its own kind */
    e.user_ptr = IS(user_ptr);
    return e;
}

struct suite_event send_event(const struct suite_move *m)
{
    return (struct suite_event){.type = PTL_EVENT_SEND, .user_ptr = IS(m->user_ptr)};
}

struct suite_event answer_event(const struct suite_move *m, const struct landing *l)
{
    struct suite_event e = {
        .type = move_gets(m->call) ? PTL_EVENT_REPLY : PTL_EVENT_ACK,
        .fail = l->fail,
        .user_ptr = IS(m->user_ptr),
        .mlength = IS(l->mlength),
    };
    if (l->fail == PTL_NI_OK) {
        e.remote_offset = IS(l->offset);
        e.list = IS(l->list);
    }
    return e;
}

struct suite_event entry_event(const struct scene *s, int type, void *user_ptr)
{
    return (struct suite_event){.type = type, .user_ptr = IS(user_ptr), .pt_index = IS(SUITE_PT)};
}

void due_add(struct due *due, struct suite_event event)
{
    if (due->n == DUE_MAX) {
        FAIL("the case is wrong: more than %d events due", DUE_MAX);
    }
    due->list[due->n].event = event;
    due->list[due->n].taken = due->list[due->n].late = false;
    due->list[due->n++].group = due->group;
}

void due_late(struct due *due, struct suite_event event)
{
    due_add(due, event);
    due->list[due->n - 1].late = true;
}

void due_then(struct due *due)
{
    due->group++;
}

/* The first group that lacks one that is not late; what is late may come until the end. */
static unsigned due_group(const struct due *due)
{
    for (unsigned i = 0; i < due->n; i++) {
        if (!due->list[i].taken && !due->list[i].late) {
            return due->list[i].group;
        }
    }
    return due->group;
}

/* The one that an event must be: of that group, or late; of its type, and of its user_ptr if
 * there are several. */
static int due_find(const struct due *due, const ptl_event_t *e)
{
    int found = -1;
    unsigned group = due_group(due);
    for (unsigned i = 0; i < due->n; i++) {
        const struct suite_event *want = &due->list[i].event;
        bool now = due->list[i].late ? due->list[i].group <= group : due->list[i].group == group;
        if (due->list[i].taken || !now || want->type != e->type) {
            continue;
        }
        if (!want->user_ptr.looked_at || want->user_ptr.value == (uint64_t)e->user_ptr) {
            return (int)i;
        }
        found = found < 0 ? (int)i : found;
    }
    return found;
}

static const struct suite_event *due_first(const struct due *due)
{
    for (unsigned i = 0; i < due->n; i++) {
        if (!due->list[i].taken) {
            return &due->list[i].event;
        }
    }
    return NULL;
}

void due_take(struct scene *s, ptl_handle_eq_t eq, struct due *due, const char *file, int line)
{
    for (unsigned n = due->n; n > 0; n--) {
        ptl_event_t event;
        unsigned which;
        suite_seen(file, line);
        uint64_t now = suite_now_ms(), end = suite_deadline();
        int code = PtlEQPoll(&eq, 1, (ptl_time_t)(end > now ? end - now : 0), &event, &which);
        if (code != PTL_OK) {
            suite_fail(file, line, "PtlEQPoll gives %s; %u events are due, first %s",
                       suite_code_name(code), n, suite_event_name(due_first(due)->type));
        }
        int i = due_find(due, &event);
        if (i < 0) {
            suite_fail(file, line, "a %s event (ni_fail_type %d), expected %s",
                       suite_event_name(event.type), event.ni_fail_type,
                       suite_event_name(due_first(due)->type));
        }
        suite_event_is(s, &event, &due->list[i].event, file, line);
        due->list[i].taken = true;
    }
    due->n = due->group = 0;
}

/* ---- That nothing else has happened ----------------------------------------- */

void watch_begin(struct watch *w, struct scene *s)
{
    memset(w, 0, sizeof(*w));
    if (s->initiator) {
        w->ct = suite_ct(s);
        w->md = suite_md_with(s, NULL, 0, PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_SEND_DISABLE,
                              PTL_EQ_NONE, w->ct);
    }
    if (s->target) {
        ptl_handle_me_t handle;
        ptl_me_t me = suite_entry(s, NULL, 0, PTL_ME_OP_PUT);
        suite_pt(s, 0, PTL_EQ_NONE, WATCH_PT);
        OK(suite_append_code(s, WATCH_PT, PTL_PRIORITY_LIST, &me, NULL, &handle));
        for (int i = 0; i < PTL_SR_LAST; i++) {
            w->before[i] = suite_status(s, (ptl_sr_index_t)i);
        }
    }
}

static void nothing_in(ptl_handle_eq_t eq, const char *name, const char *file, int line)
{
    ptl_event_t event;
    int code = PtlEQGet(eq, &event);
    if (code != PTL_EQ_EMPTY) {
        suite_fail(file, line, "%s holds a %s event (ni_fail_type %d, mlength %llu), expected none",
                   name, suite_event_name(event.type), event.ni_fail_type,
                   (unsigned long long)event.mlength);
    }
}

void watch_end(struct watch *w, struct scene *s, struct refusals r, const char *file, int line)
{
    suite_step(s, file, line);
    if (s->initiator) {
        OK(PtlPut(w->md, 0, 0, PTL_CT_ACK_REQ, s->to, WATCH_PT, 0, 0, NULL, 0));
        count_comes(w->ct, ++w->fences, "the counter of the last message", file, line);
    }
    suite_step(s, file, line);
    nothing_in(s->mdeq, "the queue of the MDs", file, line);
    nothing_in(s->eq, "the queue of the portal table entry", file, line);
    if (s->target) {
        const int grown[PTL_SR_LAST] = {r.drops, r.permissions, r.operations};
        static const char *const name[PTL_SR_LAST] = {"dropped", "of a permission violation",
                                                      "of an operation violation"};
        for (int i = 0; i < PTL_SR_LAST; i++) {
            int found = suite_status(s, (ptl_sr_index_t)i) - w->before[i];
            if (found != grown[i]) {
                suite_fail(file, line, "%d messages %s, expected %d", found, name[i], grown[i]);
            }
        }
    }
    suite_step(s, file, line); /* what comes next must not be seen by a slower peer */
}

void counted(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure, const char *text,
             const char *file, int line)
{
    ptl_ct_event_t value;
    suite_seen(file, line);
    OK(PtlCTGet(ct, &value));
    if (value.success != success || value.failure != failure) {
        suite_fail(file, line, "%s is {%llu, %llu}, expected {%llu, %llu}", text,
                   (unsigned long long)value.success, (unsigned long long)value.failure,
                   (unsigned long long)success, (unsigned long long)failure);
    }
}

void count_comes(ptl_handle_ct_t ct, ptl_size_t sum, const char *text, const char *file, int line)
{
    ptl_ct_event_t value;
    uint64_t end = suite_deadline();
    suite_seen(file, line);
    do {
        OK(PtlCTGet(ct, &value));
        if (value.success + value.failure >= sum) {
            return;
        }
        sched_yield();
    } while (suite_now_ms() < end);
    suite_fail(file, line, "%s came to {%llu, %llu} only, expected %llu in all", text,
               (unsigned long long)value.success, (unsigned long long)value.failure,
               (unsigned long long)sum);
}
