/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls of a round, by who has to make them, and the model beside each; see lists.h. */
#include "lists.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- the target ---- */

static void fill_entry(const struct lane *l, const struct entry *e, ptl_me_t *me,
                       ptl_iovec_t parts[PARTS])
{
    uint8_t *memory = here + (size_t)l->number * SITE_BYTES;
    *me = (ptl_me_t){.start = memory + e->start,
                     .length = e->length,
                     .ct_handle = site_of(l)->ct[e->ct],
                     .uid = e->foreign_uid ? (ptl_uid_t)geteuid() + 1
                            : e->own_uid   ? (ptl_uid_t)geteuid()
                                           : PTL_UID_ANY,
                     .options = e->options,
                     .match_bits = e->bits,
                     .ignore_bits = e->ignore,
                     .min_free = e->min_free};
    for (unsigned i = 0; i < e->parts; i++) {
        parts[i] = (ptl_iovec_t){memory + e->part[i].at, e->part[i].length};
    }
    if (e->parts != 0) {
        me->start = parts;
        me->length = e->parts;
    }
    if (is_logical(l->kind)) {
        me->match_id.rank = e->source < 0 ? PTL_RANK_ANY : (ptl_rank_t)e->source;
    } else if (e->source < 0) {
        me->match_id.phys.nid = PTL_NID_ANY;
        me->match_id.phys.pid = PTL_PID_ANY;
    } else {
        me->match_id = ids[e->source];
    }
}

/* The count of the site at which the next triggered append or unlink is due. */
static uint64_t when(struct site *s)
{
    return s->fired + 1 + s->waiting++ / 2;
}

/* Lets the triggered ones of this round happen, one count after another or all by one. */
static void let_happen(struct lane *l, bool at_once)
{
    struct site *s = site_of(l);
    uint64_t n = (s->waiting + 1) / 2;
    for (uint64_t i = 0; i < n && l->target == me; i += at_once ? n : 1) {
        OK(PtlCTInc(s->trigger, (ptl_ct_event_t){at_once ? n : 1, 0}));
    }
    s->fired += n;
    s->waiting = 0;
}

static void append(struct lane *l, bool triggered)
{
    struct site *s = site_of(l);
    struct entry *e = s->entry;
    while (e < s->entry + ENTRIES && e->used) {
        e++;
    }
    if (e == s->entry + ENTRIES) {
        return;
    }
    draw_entry(l, e);
    uint64_t at = triggered ? when(s) : 0;
    if (l->target == me) {
        ptl_me_t m;
        ptl_iovec_t parts[PARTS];
        fill_entry(l, e, &m, parts);
        OK(triggered ? PtlTriggeredMEAppend(ni[l->kind], l->number, &m, e->list, e->user_ptr,
                                            &e->handle, s->trigger, at)
           : is_matching(l->kind)
               ? PtlMEAppend(ni[l->kind], l->number, &m, e->list, e->user_ptr, &e->handle)
               : PtlLEAppend(ni[l->kind], l->number, (const ptl_le_t *)&m, e->list, e->user_ptr,
                             &e->handle));
        memset(parts, 0xaa, sizeof(parts)); /* the library has its own copy */
    }
    model_append(l, e);
}

static void unlink_entry(struct lane *l, struct entry *e)
{
    int due = model_unlink(e);
    if (l->target == me) {
        int code = is_matching(l->kind) ? PtlMEUnlink(e->handle) : PtlLEUnlink(e->handle);
        if (code != due) {
            fail("unlinking gives %d and not %d", code, due);
        }
    }
}

/* Of one that is in use by then nothing comes. Of what is used up the handle may be good until the
 * append before it happens, or not: it is left alone. */
static void unlink_later(struct lane *l, struct entry *e)
{
    struct site *s = site_of(l);
    if (e->used_up) {
        return;
    }
    uint64_t at = when(s);
    if (l->target == me) {
        OK(PtlTriggeredMEUnlink(e->handle, s->trigger, at));
    }
    (void)model_unlink(e);
}

static void unlink_one(struct lane *l, bool triggered)
{
    struct site *s = site_of(l);
    unsigned first = splitmix_below(&l->random, ENTRIES);
    for (unsigned i = 0; i < ENTRIES; i++) {
        struct entry *e = &s->entry[(first + i) % ENTRIES];
        if (e->used) {
            (triggered ? unlink_later : unlink_entry)(l, e);
            return;
        }
    }
}

static void unlink_all(struct lane *l)
{
    struct site *s = site_of(l);
    for (unsigned i = 0; i < ENTRIES; i++) {
        if (s->entry[i].used) {
            unlink_entry(l, &s->entry[i]);
        }
    }
}

static void search(struct lane *l)
{
    struct entry e;
    draw_entry(l, &e);
    ptl_search_op_t op = percent(&l->random, 60) ? PTL_SEARCH_DELETE : PTL_SEARCH_ONLY;
    if (l->target == me) {
        ptl_me_t m;
        ptl_iovec_t parts[PARTS];
        fill_entry(l, &e, &m, parts);
        OK(is_matching(l->kind)
               ? PtlMESearch(ni[l->kind], l->number, &m, op, e.user_ptr)
               : PtlLESearch(ni[l->kind], l->number, (const ptl_le_t *)&m, op, e.user_ptr));
    }
    model_search(l, &e, op);
}

static void open_or_close(struct lane *l)
{
    struct site *s = site_of(l);
    bool turn = percent(&l->random, s->enabled ? 4 : 80);
    if (turn && l->target == me) {
        OK(s->enabled ? PtlPTDisable(ni[l->kind], l->number) : PtlPTEnable(ni[l->kind], l->number));
    }
    s->enabled ^= turn;
}

/* Entries that stay would in the end take all messages: now and then they go. */
void change_site(struct lane *l)
{
    if (act_begins(l)) {
        open_or_close(l);
    }
    if (act_begins(l) && percent(&l->random, 25)) {
        unlink_all(l);
    }
    (void)act_begins(l);
    unsigned acts = splitmix_below(&l->random, 8);
    bool triggered = percent(&l->random, 25) && is_matching(l->kind);
    bool at_once = percent(&l->random, 50);
    for (unsigned n = acts; n > 0; n--) {
        if (!act_begins(l)) {
            continue;
        }
        unsigned what = splitmix_below(&l->random, 100);
        if (what < 62) {
            append(l, triggered);
        } else if (what < 80) {
            unlink_one(l, triggered);
        } else if (!triggered) {
            search(l);
        }
    }
    let_happen(l, at_once);
}

/* ---- the initiator ---- */

static void bind_side(struct lane *l, struct side *side, uint8_t *start, uint32_t length)
{
    enum { THREE = 3 };
    uint32_t cut[THREE + 1] = {0, length / 3, length / 2, length};
    ptl_iovec_t parts[THREE];
    ptl_md_t md = {.start = start,
                   .length = length,
                   .options = side->options,
                   .eq_handle = side->eq ? l->eq[l->kind] : PTL_EQ_NONE,
                   .ct_handle = side->ct ? l->ct[l->kind] : PTL_CT_NONE};
    if (side->parts) {
        for (unsigned i = 0; i < THREE; i++) {
            parts[i] = (ptl_iovec_t){start + cut[i], cut[i + 1] - cut[i]};
        }
        md.start = parts;
        md.length = THREE;
        md.options |= PTL_IOVEC;
    }
    OK(PtlMDBind(ni[l->kind], &md, &side->md));
    memset(parts, 0xaa, sizeof(parts));
}

static ptl_process_t target_of(const struct lane *l)
{
    return is_logical(l->kind) ? (ptl_process_t){.rank = (ptl_rank_t)l->target} : ids[l->target];
}

static int start_now(struct lane *l, struct message *m, ptl_pt_index_t pt)
{
    ptl_process_t to = target_of(l);
    switch (m->act) {
    case ACT_PUT:
        return PtlPut(m->from.md, 0, m->length, m->ack, to, pt, m->bits, m->offset, m->user_ptr,
                      m->hdr_data);
    case ACT_GET:
        return PtlGet(m->from.md, 0, m->length, to, pt, m->bits, m->offset, m->user_ptr);
    case ACT_ATOMIC:
        return PtlAtomic(m->from.md, 0, m->length, m->ack, to, pt, m->bits, m->offset, m->user_ptr,
                         m->hdr_data, m->op, m->type);
    case ACT_FETCH:
        return PtlFetchAtomic(m->to.md, 0, m->from.md, 0, m->length, to, pt, m->bits, m->offset,
                              m->user_ptr, m->hdr_data, m->op, m->type);
    default:
        return PtlSwap(m->to.md, 0, m->from.md, 0, m->length, to, pt, m->bits, m->offset,
                       m->user_ptr, m->hdr_data, op_has_operand(m->op) ? m->operand : NULL, m->op,
                       m->type);
    }
}

static int start_by_counter(struct lane *l, struct message *m, ptl_pt_index_t pt, uint64_t at)
{
    ptl_process_t to = target_of(l);
    ptl_handle_ct_t ct = l->trigger[l->kind];
    switch (m->act) {
    case ACT_PUT:
        return PtlTriggeredPut(m->from.md, 0, m->length, m->ack, to, pt, m->bits, m->offset,
                               m->user_ptr, m->hdr_data, ct, at);
    case ACT_GET:
        return PtlTriggeredGet(m->from.md, 0, m->length, to, pt, m->bits, m->offset, m->user_ptr,
                               ct, at);
    case ACT_ATOMIC:
        return PtlTriggeredAtomic(m->from.md, 0, m->length, m->ack, to, pt, m->bits, m->offset,
                                  m->user_ptr, m->hdr_data, m->op, m->type, ct, at);
    case ACT_FETCH:
        return PtlTriggeredFetchAtomic(m->to.md, 0, m->from.md, 0, m->length, to, pt, m->bits,
                                       m->offset, m->user_ptr, m->hdr_data, m->op, m->type, ct, at);
    default:
        return PtlTriggeredSwap(m->to.md, 0, m->from.md, 0, m->length, to, pt, m->bits, m->offset,
                                m->user_ptr, m->hdr_data, m->operand, m->op, m->type, ct, at);
    }
}

/* Two messages wait for each count. */
static uint64_t threshold(const struct lane *l, unsigned i)
{
    return l->fired[l->kind] + 1 + i / 2;
}

static void start(struct lane *l, unsigned i)
{
    struct message *m = &l->message[i];
    ptl_pt_index_t pt = m->lost ? NO_PT : l->number;
    uint8_t *fetched = l->fetched + m->fetched;
    if (m->own && (m->sent = malloc(OWN_BYTES)) == NULL) {
        fail("no memory");
    }
    if (m->own) { /* a triggered message reads its bytes later */
        memcpy(m->sent, m->bytes, OWN_BYTES);
        memset(m->sent, 0xdd, l->triggered ? OWN_BYTES : 0);
    }
    bind_side(l, &m->from,
              m->act == ACT_GET ? fetched
              : m->own          ? m->sent
                                : source + m->source,
              m->length);
    if (m->act == ACT_FETCH || m->act == ACT_SWAP) {
        bind_side(l, &m->to, fetched, m->length);
    }
    if (l->triggered) {
        OK(start_by_counter(l, m, pt, threshold(l, i)));
        return;
    }
    OK(start_now(l, m, pt));
    if ((m->from.options & PTL_MD_VOLATILE) != 0 &&
        m->length <= limits[l->kind].max_volatile_size) {
        memset(m->sent, 0x99, m->length);
    }
}

/* Counts what the messages wait for, itself or by one operation that triggers the next. */
static void fire(struct lane *l)
{
    const ptl_ct_event_t one = {1, 0};
    ptl_handle_ct_t ct = l->trigger[l->kind];
    for (unsigned i = 0; i < l->messages; i++) {
        if (l->message[i].own) {
            memcpy(l->message[i].sent, l->message[i].bytes, OWN_BYTES);
        }
    }
    for (unsigned i = 2; i < l->messages; i += 2) {
        OK(l->chained ? PtlTriggeredCTInc(ct, one, ct, threshold(l, i - 1)) : PtlCTInc(ct, one));
    }
    OK(PtlCTInc(ct, one));
}

void send_messages(struct lane *l)
{
    uint32_t used = 0;
    (void)act_begins(l);
    unsigned most = splitmix_below(&l->random, MESSAGES + 1);
    l->triggered = percent(&l->random, l->triggers);
    l->chained = percent(&l->random, 50);
    unsigned manner = splitmix_below(&l->random, 100);
    l->manner = manner < (hushed ? 50 : 25) ? QUIET : manner < 85 ? ANY : ACKED;
    l->messages = 0;
    for (unsigned n = 0; n < most; n++) {
        if (!act_begins(l)) {
            continue;
        }
        unsigned i = l->messages++;
        draw_message(l, &l->message[i], &used);
        if (most > 1) { /* without an order the model could not tell what comes of several */
            l->message[i].from.options &= ~(unsigned)PTL_MD_UNORDERED;
            l->message[i].to.options &= ~(unsigned)PTL_MD_UNORDERED;
        }
        if (l->process == me) {
            start(l, i);
        }
        model_message(l, &l->message[i]);
    }
    l->triggered = l->triggered && l->messages != 0;
    if (l->process == me && l->triggered) {
        fire(l);
    }
    l->fired[l->kind] += l->triggered ? (l->messages + 1) / 2 : 0;
    if (l->process == me) {
        l->lasts[l->kind]++;
        OK(PtlPut(l->last_md[l->kind], 0, 0, PTL_CT_ACK_REQ, target_of(l), LAST_PT, 0, 0, NULL, 0));
    }
}
