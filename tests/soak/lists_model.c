/* SPDX-License-Identifier: BSD-3-Clause */
/* What must come of it: sections 3.11 to 3.15, written from the rules; see lists.h. */
#include "lists.h"

#include <stdlib.h>
#include <string.h>

void due_add(struct due_list *list, const struct due *d)
{
    if (list->n == list->room) {
        list->room = list->room == 0 ? 64 : 2 * list->room;
        list->v = realloc(list->v, list->room * sizeof(*d));
        if (list->v == NULL) {
            fail("no memory for %zu events", list->room);
        }
    }
    list->v[list->n++] = *d;
}

/* ---- entries ---- */

/* Where byte `offset` of an entry is; *run: how many lie side by side from there. */
static uint32_t locate(const struct entry *e, uint64_t offset, uint64_t *run)
{
    if (e->parts == 0) {
        *run = e->length - offset;
        return e->start + (uint32_t)offset;
    }
    for (unsigned i = 0; i < e->parts; i++) {
        if (offset < e->part[i].length) {
            *run = e->part[i].length - offset;
            return e->part[i].at + (uint32_t)offset;
        }
        offset -= e->part[i].length;
    }
    fail("the model leaves an entry");
}

uint32_t entry_address(const struct entry *e, uint64_t offset)
{
    uint64_t run;
    return locate(e, offset, &run);
}

static void tell(struct lane *l, const struct entry *e, ptl_event_kind_t type, unsigned disabling,
                 ptl_ni_fail_t fail_type)
{
    struct site *s = site_of(l);
    if (s->has_eq && (e->options & disabling) == 0) {
        struct due d = {.event = {.type = type,
                                  .user_ptr = e->user_ptr,
                                  .pt_index = l->number,
                                  .ni_fail_type = fail_type}};
        due_add(&s->due, &d);
    }
}

/* An entry that is used up says so once, and goes when no header refers to it. */
static void settle(struct lane *l, struct entry *e)
{
    if (e->used_up && !e->told) {
        e->told = true;
        tell(l, e, PTL_EVENT_AUTO_UNLINK, PTL_ME_EVENT_UNLINK_DISABLE, PTL_NI_OK);
    }
    if (e->used_up && e->headers == 0) {
        if (e->list == PTL_OVERFLOW_LIST) {
            tell(l, e, PTL_EVENT_AUTO_FREE, PTL_ME_EVENT_UNLINK_DISABLE, PTL_NI_OK);
        }
        e->used = false;
    }
}

static void count(struct site *s, const struct entry *e, uint64_t bytes)
{
    s->count[e->ct].success += (e->options & PTL_ME_EVENT_CT_BYTES) != 0 ? bytes : 1;
}

static bool fits(const struct entry *e, uint64_t length, uint64_t offset)
{
    if ((e->options & PTL_ME_MANAGE_LOCAL) != 0) {
        offset = e->offset;
    }
    return (e->options & PTL_ME_NO_TRUNCATE) == 0 ||
           (offset <= e->length && length <= e->length - offset);
}

static bool matches(const struct lane *l, const struct entry *e, uint64_t bits, uint64_t length,
                    uint64_t offset)
{
    bool key = !is_matching(l->kind) ||
               (((bits ^ e->bits) & ~e->ignore) == 0 && (e->source < 0 || e->source == l->process));
    return key && fits(e, length, offset);
}

struct entry *model_find(struct lane *l, const struct message *m)
{
    struct site *s = site_of(l);
    struct entry *found = NULL;
    for (ptl_list_t list = PTL_PRIORITY_LIST; list <= PTL_OVERFLOW_LIST && found == NULL; list++) {
        for (unsigned i = 0; i < ENTRIES; i++) {
            struct entry *e = &s->entry[i];
            if (e->used && e->linked && e->list == list &&
                matches(l, e, m->bits, m->length, m->offset) &&
                (found == NULL || e->age < found->age)) {
                found = e;
            }
        }
    }
    return found;
}

/* ---- unexpected headers ---- */

static void tell_overflow(struct lane *l, const struct entry *e, const struct header *h,
                          ptl_event_kind_t type)
{
    struct site *s = site_of(l);
    unsigned disabling = PTL_ME_EVENT_OVER_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE;
    if ((e->options & PTL_ME_EVENT_CT_OVERFLOW) != 0) {
        count(s, e, h->due.event.mlength);
    }
    if (s->has_eq && (type == PTL_EVENT_SEARCH || (e->options & disabling) == 0)) {
        struct due d = h->due;
        d.event.type = type;
        d.event.user_ptr = e->user_ptr;
        d.event.ptl_list = ANY_LIST;
        due_add(&s->due, &d);
    }
}

static bool header_matches(const struct lane *l, const struct entry *e, const struct header *h)
{
    const ptl_event_t *v = &h->due.event;
    return matches(l, e, v->match_bits, v->rlength, v->remote_offset);
}

/* Takes header i away and tells `e` of it. */
static struct header claim(struct lane *l, const struct entry *e, size_t i)
{
    struct site *s = site_of(l);
    struct header h = s->header[i];
    memmove(&s->header[i], &s->header[i + 1], (--s->headers - i) * sizeof(h));
    tell_overflow(l, e, &h, h.due.event.type);
    h.owner->headers--;
    settle(l, h.owner);
    return h;
}

static bool is_undercut(const struct entry *e)
{
    uint64_t left = e->offset < e->length ? e->length - e->offset : 0;
    return e->min_free != 0 && left < e->min_free;
}

/* Whether the messages that came before an entry use it up. */
static bool claim_all(struct lane *l, struct entry *e)
{
    struct site *s = site_of(l);
    unsigned both = PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH;
    for (size_t i = 0; i < s->headers;) {
        if (!header_matches(l, e, &s->header[i])) {
            i++;
            continue;
        }
        bool counts = (e->options & both) == both;
        struct header h = claim(l, e, i);
        e->offset += counts ? h.due.event.rlength : 0;
        if ((e->options & PTL_ME_USE_ONCE) != 0 || (counts && is_undercut(e))) {
            return true;
        }
    }
    return false;
}

void model_append(struct lane *l, struct entry *e)
{
    e->used = true;
    if (e->list == PTL_PRIORITY_LIST && claim_all(l, e)) {
        e->used_up = true;
        settle(l, e);
        return;
    }
    e->linked = true;
    e->age = site_of(l)->age++;
    tell(l, e, PTL_EVENT_LINK, PTL_ME_EVENT_LINK_DISABLE, PTL_NI_OK);
}

int model_unlink(struct entry *e)
{
    if (e->used_up) {
        return PTL_ARG_INVALID;
    }
    if (e->headers != 0) {
        return PTL_IN_USE;
    }
    e->used = e->linked = false;
    return PTL_OK;
}

void model_search(struct lane *l, struct entry *e, ptl_search_op_t op)
{
    struct site *s = site_of(l);
    bool once = (e->options & PTL_ME_USE_ONCE) != 0, found = false;
    for (size_t i = 0; i < s->headers && !(once && found);) {
        if (!header_matches(l, e, &s->header[i])) {
            i++;
            continue;
        }
        found = true;
        if (op == PTL_SEARCH_DELETE) {
            claim(l, e, i);
        } else {
            tell_overflow(l, e, &s->header[i++], PTL_EVENT_SEARCH);
        }
    }
    if (!(once && found) && (e->options & PTL_ME_EVENT_CT_OVERFLOW) != 0) {
        s->count[e->ct].failure++;
    }
    if (!found) {
        tell(l, e, PTL_EVENT_SEARCH, 0, PTL_NI_NO_MATCH);
    }
}

/* ---- messages ---- */

static bool writes(const struct message *m)
{
    return m->act != ACT_GET;
}

static bool reads(const struct message *m)
{
    return m->act == ACT_GET || m->act == ACT_FETCH || m->act == ACT_SWAP;
}

/* The padding of long doubles is nobody's. */
static void open_padding(uint8_t *open, unsigned type)
{
    if (type == PTL_LONG_DOUBLE || type == PTL_LONG_DOUBLE_COMPLEX) {
        for (size_t i = 0; i < type_size(type); i += 16) {
            memset(open + i + 10, 1, 6);
        }
    }
}

static void move_element(struct lane *l, const struct message *m, uint32_t at, uint64_t i)
{
    uint8_t *memory = l->memory[l->target] + at, *open = l->open[l->target] + at;
    size_t size = type_size(m->type);
    if (reads(m)) {
        memcpy(l->fetched_model + m->fetched + i, memory, size);
        memcpy(l->fetched_open + m->fetched + i, open, size);
        open_padding(l->fetched_open + m->fetched + i, m->type);
    }
    model_apply(memory, m->bytes + i, m->operand, m->op, m->type);
    if (m->op == PTL_SWAP) {
        memset(open, 0, size);
    }
    open_padding(open, m->type);
}

/* Moves the bytes of a message that found its entry. */
static void move(struct lane *l, const struct message *m, const struct entry *e, uint64_t offset,
                 uint64_t length)
{
    uint8_t *memory = l->memory[l->target], *open = l->open[l->target];
    const uint8_t *bytes = m->own ? m->bytes : source + m->source;
    for (uint64_t i = 0, run; i < length; i += run) {
        uint32_t at = locate(e, offset + i, &run);
        run = run < length - i ? run : length - i;
        if (m->act == ACT_PUT) {
            memcpy(memory + at, bytes + i, run);
            memset(open + at, 0, run);
        } else if (m->act == ACT_GET) {
            memcpy(l->fetched_model + m->fetched + i, memory + at, run);
            memcpy(l->fetched_open + m->fetched + i, open + at, run);
        } else {
            for (uint64_t k = 0; k < run; k += type_size(m->type)) {
                move_element(l, m, at + (uint32_t)k, i + k);
            }
        }
    }
}

static ptl_ni_fail_t refuse(const struct lane *l, ptl_sr_index_t reg, ptl_ni_fail_t fail_type)
{
    registers[l->target][l->kind].value[reg]++;
    return fail_type;
}

/* Nothing matches: flow control closes the index. */
static ptl_ni_fail_t drop(struct lane *l)
{
    struct site *s = site_of(l);
    if (!s->flow_control) {
        return refuse(l, PTL_SR_DROP_COUNT, PTL_NI_DROPPED);
    }
    struct due d = {.event = {.type = PTL_EVENT_PT_DISABLED,
                              .pt_index = l->number,
                              .ni_fail_type = PTL_NI_PT_DISABLED}};
    s->enabled = false;
    due_add(&s->due, &d);
    return refuse(l, PTL_SR_DROP_COUNT, PTL_NI_PT_DISABLED);
}

/* Whether the message may, and if not, why. */
static ptl_ni_fail_t admit(struct lane *l, const struct message *m, const struct entry *e)
{
    const struct site *s = site_of(l);
    if (m->lost) {
        return refuse(l, PTL_SR_DROP_COUNT, PTL_NI_DROPPED);
    }
    if (!s->enabled) {
        return refuse(l, PTL_SR_DROP_COUNT, PTL_NI_PT_DISABLED);
    }
    if (e == NULL) {
        return drop(l);
    }
    if (e->foreign_uid) {
        return refuse(l, PTL_SR_PERMISSION_VIOLATIONS, PTL_NI_PERM_VIOLATION);
    }
    if ((writes(m) && (e->options & PTL_ME_OP_PUT) == 0) ||
        (reads(m) && (e->options & PTL_ME_OP_GET) == 0)) {
        return refuse(l, PTL_SR_OPERATION_VIOLATIONS, PTL_NI_OP_VIOLATION);
    }
    return PTL_NI_OK;
}

/* The event of a message at its target. */
static struct due target_event(const struct lane *l, const struct message *m, const struct entry *e,
                               uint64_t offset, uint64_t length)
{
    static const ptl_event_kind_t kinds[] = {[ACT_PUT] = PTL_EVENT_PUT,
                                             [ACT_GET] = PTL_EVENT_GET,
                                             [ACT_ATOMIC] = PTL_EVENT_ATOMIC,
                                             [ACT_FETCH] = PTL_EVENT_FETCH_ATOMIC,
                                             [ACT_SWAP] = PTL_EVENT_FETCH_ATOMIC};
    struct due d = {.event = {.type = kinds[m->act],
                              .user_ptr = e->user_ptr,
                              .hdr_data = m->hdr_data,
                              .match_bits = m->bits,
                              .rlength = m->length,
                              .mlength = length,
                              .remote_offset = m->offset,
                              .pt_index = l->number,
                              .ptl_list = e->list,
                              .atomic_operation = m->op,
                              .atomic_type = m->type},
                    .checked = CHECK_MESSAGE};
    d.checked |= m->act >= ACT_ATOMIC ? CHECK_ATOMIC : 0;
    if (length != 0) {
        d.checked |= CHECK_START;
        d.event.start = (void *)(uintptr_t)entry_address(e, offset);
    }
    return d;
}

/* The message takes the entry: bytes, event, count, header, and what that does to the entry. */
static void take(struct lane *l, const struct message *m, struct entry *e, struct due *answer)
{
    struct site *s = site_of(l);
    bool managed = (e->options & PTL_ME_MANAGE_LOCAL) != 0;
    uint64_t offset = managed ? e->offset : m->offset;
    uint64_t room = offset < e->length ? e->length - offset : 0;
    uint64_t length = m->length < room ? m->length : room;
    length -= m->act >= ACT_ATOMIC ? length % type_size(m->type) : 0;
    move(l, m, e, offset, length);
    e->offset += managed ? length : 0;
    struct due d = target_event(l, m, e, offset, length);
    if ((e->options & PTL_ME_EVENT_CT_COMM) != 0) {
        count(s, e, length);
    }
    if (s->has_eq &&
        (e->options & (PTL_ME_EVENT_COMM_DISABLE | PTL_ME_EVENT_SUCCESS_DISABLE)) == 0) {
        due_add(&s->due, &d);
    }
    if (e->list == PTL_OVERFLOW_LIST && (e->options & PTL_ME_UNEXPECTED_HDR_DISABLE) == 0) {
        if (s->headers == HEADERS) {
            fail("the model is too small for the headers");
        }
        d.event.type++; /* ..._OVERFLOW */
        s->header[s->headers++] = (struct header){e, d};
        e->headers++;
    }
    answer->event.mlength = length;
    answer->event.remote_offset = offset;
    answer->event.ptl_list = e->list;
    answer->checked = CHECK_OFFSET;
    if ((e->options & PTL_ME_USE_ONCE) != 0 || (managed && is_undercut(e))) {
        e->linked = false;
        e->used_up = true;
    }
    settle(l, e);
}

static void count_side(struct lane *l, const struct side *side, unsigned option, uint64_t bytes,
                       bool in_bytes, ptl_ni_fail_t fail_type)
{
    ptl_ct_event_t *c = &l->count[l->kind];
    if (!side->ct || (side->options & option) == 0) {
        return;
    }
    if (fail_type != PTL_NI_OK) {
        c->failure++;
    } else {
        c->success += in_bytes && (side->options & PTL_MD_EVENT_CT_BYTES) != 0 ? bytes : 1;
    }
}

static void model_send(struct lane *l, const struct message *m)
{
    unsigned disabling = PTL_MD_EVENT_SUCCESS_DISABLE | PTL_MD_EVENT_SEND_DISABLE;
    count_side(l, &m->from, PTL_MD_EVENT_CT_SEND, m->length, true, PTL_NI_OK);
    if (m->from.eq && (m->from.options & disabling) == 0) {
        due_add(&l->sends,
                &(struct due){.event = {.type = PTL_EVENT_SEND, .user_ptr = m->user_ptr}});
    }
}

static void model_answer(struct lane *l, const struct message *m, const struct due *d)
{
    const struct side *side = m->act == ACT_FETCH || m->act == ACT_SWAP ? &m->to : &m->from;
    ptl_ni_fail_t fail_type = d->event.ni_fail_type;
    count_side(l, side, reads(m) ? PTL_MD_EVENT_CT_REPLY : PTL_MD_EVENT_CT_ACK, d->event.mlength,
               m->ack != PTL_OC_ACK_REQ, fail_type);
    bool silent = fail_type == PTL_NI_OK && (side->options & PTL_MD_EVENT_SUCCESS_DISABLE) != 0;
    if (side->eq && !silent && (reads(m) || m->ack == PTL_ACK_REQ)) {
        due_add(&l->answers, d);
    }
}

void model_message(struct lane *l, struct message *m)
{
    struct due answer = {.event = {.type = reads(m) ? PTL_EVENT_REPLY : PTL_EVENT_ACK,
                                   .user_ptr = m->user_ptr,
                                   .ptl_list = ANY_LIST}};
    struct entry *e = model_find(l, m);
    answer.event.ni_fail_type = admit(l, m, e);
    bool kept_back = false;
    if (answer.event.ni_fail_type == PTL_NI_OK) {
        kept_back = (e->options & PTL_ME_ACK_DISABLE) != 0;
        take(l, m, e, &answer);
    }
    if (writes(m)) {
        model_send(l, m);
    }
    if (reads(m) || (m->ack != PTL_NO_ACK_REQ && !kept_back)) {
        model_answer(l, m, &answer);
    }
}
