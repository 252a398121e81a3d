/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an initiator hears, generated: every set of the MD options that choose events and
 * counts, for every call, and for every way in which a message can end at the target. A case
 * sends one message for each kind of acknowledgement that the call has.
 *
 * The permissions UNORDERED, UNRELIABLE and VOLATILE go along, from case to case
 * another set of them: they must change nothing, but for ACK_REQ with UNRELIABLE.
 */
#include "matrix_kit.h"

#include <stdlib.h>
#include <string.h>

enum outcome { SUCCESS, TRUNCATED, DROPPED, PERMISSION, OPERATION, DISABLED, OUTCOMES };
static const char *const outcome_name[OUTCOMES] = {"success",    "truncated", "dropped",
                                                   "permission", "operation", "disabled"};
static const int outcome_fail[OUTCOMES] = {PTL_NI_OK,           PTL_NI_OK,
                                           PTL_NI_DROPPED,      PTL_NI_PERM_VIOLATION,
                                           PTL_NI_OP_VIOLATION, PTL_NI_PT_DISABLED};

static const struct {
    unsigned option;
    char letter;
} choices[] = {{PTL_MD_EVENT_SUCCESS_DISABLE, 'f'}, {PTL_MD_EVENT_SEND_DISABLE, 'n'},
               {PTL_MD_EVENT_CT_SEND, 's'},         {PTL_MD_EVENT_CT_ACK, 'a'},
               {PTL_MD_EVENT_CT_REPLY, 'r'},        {PTL_MD_EVENT_CT_BYTES, 'b'}};
static const unsigned permissions[] = {PTL_MD_UNORDERED, PTL_MD_UNRELIABLE, PTL_MD_VOLATILE};
enum {
    SETS = 1 << COUNT_OF(choices),
    EVENT_CTS = PTL_MD_EVENT_CT_SEND | PTL_MD_EVENT_CT_ACK | PTL_MD_EVENT_CT_REPLY
};

struct md_case {
    enum suite_call call;
    enum outcome outcome;
    unsigned options;
    size_t length;
    bool needs_put; /* of a fetch or swap refused: which permission the entry lacks */
};

static char of_move, of_entry;

/* What a counter must come to. An operation-completed ack of a refused message may count as
 * either. */
struct tally {
    ptl_size_t success, failure, either;
};

static void count(struct tally *t, bool bytes, const struct landing *l, ptl_size_t length)
{
    if (l->fail != PTL_NI_OK) {
        t->failure++;
    } else {
        t->success += bytes ? length : 1;
    }
}

/* A send is counted when its memory is the program's again, which nothing else need wait for. */
static void check_tally(ptl_handle_ct_t ct, const struct tally *t)
{
    uint64_t end = suite_deadline();
    ptl_size_t all = t->success + t->failure + t->either;
    ptl_ct_event_t v;
    do {
        OK(PtlCTGet(ct, &v));
    } while (v.success + v.failure < all && suite_now_ms() < end);
    if (v.success < t->success || v.failure < t->failure || v.success + v.failure != all) {
        FAIL("the counter is {%llu, %llu}, expected {%llu, %llu} and %llu in either",
             (unsigned long long)v.success, (unsigned long long)v.failure,
             (unsigned long long)t->success, (unsigned long long)t->failure,
             (unsigned long long)t->either);
    }
}

/* The target's side of an outcome. */
static void prepare(struct scene *s, const struct md_case *c)
{
    struct region *entry = &region[ENTRY];
    unsigned options = PTL_ME_OP_PUT | PTL_ME_OP_GET;
    if (c->outcome == OPERATION) {
        bool put =
            c->call == CALL_GET || (move_gets(c->call) && move_puts(c->call) && c->needs_put);
        options = put ? PTL_ME_OP_PUT : PTL_ME_OP_GET;
    }
    ptl_me_t me = suite_entry(s, region_start(entry), region_units(entry),
                              options | PTL_ME_EVENT_LINK_DISABLE);
    if (c->outcome == PERMISSION) {
        me.uid = s->uid + 1;
    }
    if (c->outcome == DROPPED) {
        me.match_bits = 1; /* a message for 0 */
        me.ignore_bits = 0;
    }
    if (c->outcome != DROPPED || s->matching) {
        suite_append(s, PTL_PRIORITY_LIST, &me, &of_entry);
    }
    if (c->outcome == DISABLED) {
        OK(PtlPTDisable(s->ni, SUITE_PT));
    }
}

static struct suite_move fill_move(struct scene *s, const struct md_case *c, ptl_handle_ct_t put_ct,
                                   ptl_handle_ct_t get_ct)
{
    struct suite_move m = suite_move_to(s, c->call);
    m.length = c->length;
    m.user_ptr = &of_move;
    m.op = c->call == CALL_SWAP ? PTL_SWAP : PTL_SUM;
    m.type = PTL_UINT64_T;
    if (s->initiator) {
        struct region *put = &region[PUT_SIDE], *get = &region[GET_SIDE];
        ptl_handle_md_t put_md =
            suite_md_with(s, region_start(put), region_units(put), c->options, s->mdeq, put_ct);
        m.get_md =
            suite_md_with(s, region_start(get), region_units(get), c->options, s->mdeq, get_ct);
        m.md = c->call == CALL_GET ? m.get_md : put_md;
    }
    return m;
}

/* The events that these options leave, and what is counted. */
static void initiator(struct scene *s, const struct md_case *c, const struct suite_move *m,
                      const struct landing *l, struct tally *put, struct tally *get)
{
    struct due due = {0};
    bool bytes = (c->options & PTL_MD_EVENT_CT_BYTES) != 0;
    bool told = l->fail != PTL_NI_OK || (c->options & PTL_MD_EVENT_SUCCESS_DISABLE) == 0;
    const unsigned mute = PTL_MD_EVENT_SEND_DISABLE | PTL_MD_EVENT_SUCCESS_DISABLE;
    if (move_puts(m->call) && (c->options & mute) == 0) {
        due_add(&due, send_event(m));
    }
    if (move_puts(m->call) && (c->options & PTL_MD_EVENT_CT_SEND) != 0) {
        put->success += bytes ? m->length : 1; /* to have left is no question of the target */
    }
    if (move_gets(m->call)) {
        if (told) {
            due_add(&due, answer_event(m, l));
        }
        if (c->options & PTL_MD_EVENT_CT_REPLY) {
            count(get, bytes, l, l->mlength);
        }
    } else {
        if (told && m->ack == PTL_ACK_REQ) {
            due_add(&due, answer_event(m, l));
        }
        if ((c->options & PTL_MD_EVENT_CT_ACK) != 0 && m->ack == PTL_OC_ACK_REQ &&
            l->fail != PTL_NI_OK) {
            put->either++;
        } else if ((c->options & PTL_MD_EVENT_CT_ACK) != 0 && m->ack != PTL_NO_ACK_REQ) {
            count(put, bytes && m->ack != PTL_OC_ACK_REQ, l, l->mlength);
        }
    }
    TAKE(s->mdeq, &due);
}

/* Sends the message once with each ack; gives how many were sent. */
static int send_all(struct scene *s, const struct md_case *c, struct suite_move m,
                    const struct landing *l, struct tally *put, struct tally *get)
{
    bool acks = c->call == CALL_PUT || c->call == CALL_ATOMIC;
    int sent = 0;
    for (m.ack = PTL_NO_ACK_REQ; m.ack <= (acks ? PTL_OC_ACK_REQ : PTL_NO_ACK_REQ); m.ack++) {
        struct due due = {0};
        if (m.ack == PTL_CT_ACK_REQ && (c->options & EVENT_CTS) == 0) {
            continue; /* an MD without a counter: an error, and tried elsewhere */
        }
        if (m.ack == PTL_ACK_REQ && (c->options & PTL_MD_UNRELIABLE) != 0) {
            if (s->initiator) {
                INVALID(suite_move(&m));
            }
            continue;
        }
        sent++;
        landing_move(&m, &region[PUT_SIDE], &region[GET_SIDE], &region[ENTRY], l);
        if (s->initiator) {
            OK(suite_move(&m));
            initiator(s, c, &m, l, put, get);
        }
        if (s->target && l->fail == PTL_NI_OK) {
            due_add(&due, landing_event(s, &m, l));
            TAKE(s->eq, &due);
        }
    }
    return sent;
}

static void md_body(struct scene *s)
{
    struct md_case fitted = *(const struct md_case *)s->c->data;
    const struct md_case *c = &fitted;
    struct tally put = {0}, get = {0};
    struct watch w;
    if (c->length > move_limit(s, c->call)) {
        fitted.length = move_limit(s, c->call);
    }
    size_t room = c->outcome == TRUNCATED ? c->length / 16 * 8 : c->length;
    struct landing l = {&region[ENTRY],    0,        room, outcome_fail[c->outcome],
                        PTL_PRIORITY_LIST, &of_entry};
    if (l.fail != PTL_NI_OK) {
        l.mlength = 0;
    }
    region_make(&region[PUT_SIDE], PLAIN, c->length, 1);
    region_make(&region[GET_SIDE], PLAIN, c->length, 2);
    region_make(&region[ENTRY], PLAIN, room, 3);
    watch_begin(&w, s);
    ptl_handle_ct_t put_ct = suite_ct(s), get_ct = suite_ct(s);
    struct suite_move m = fill_move(s, c, put_ct, get_ct);
    if (s->target) {
        prepare(s, c);
    }
    STEP();
    int sent = send_all(s, c, m, &l, &put, &get);
    WATCH_END(&w, .drops = l.fail == PTL_NI_DROPPED || l.fail == PTL_NI_PT_DISABLED ? sent : 0,
              .permissions = l.fail == PTL_NI_PERM_VIOLATION ? sent : 0,
              .operations = l.fail == PTL_NI_OP_VIOLATION ? sent : 0);
    if (s->initiator) {
        check_tally(put_ct, &put);
        check_tally(get_ct, &get);
        CHECK_REGION(&region[PUT_SIDE]);
        CHECK_REGION(&region[GET_SIDE]);
    }
    if (s->target) {
        CHECK_REGION(&region[ENTRY]);
    }
}

/* ---- Volatile MDs: the program writes to the buffer right behind the call ---- */

struct volatile_case {
    enum suite_call call;
    size_t length; /* 0: as long as the limit */
};

enum { IN_A_ROW = 20 };

static void volatile_body(struct scene *s)
{
    const struct volatile_case *c = s->c->data;
    struct due due = {0};
    struct watch w;
    size_t most = s->limits.max_volatile_size;
    if (move_limit(s, c->call) < most) {
        most = move_limit(s, c->call);
    }
    size_t length = c->length != 0 && c->length < most ? c->length : most;
    struct region *put = &region[PUT_SIDE], *entry = &region[ENTRY];
    region_make(put, PLAIN, length, 1);
    region_make(entry, PLAIN, IN_A_ROW * length, 2);
    watch_begin(&w, s);
    struct suite_move m = suite_move_to(s, c->call);
    m.length = length;
    m.user_ptr = &of_move;
    m.op = PTL_BXOR;
    m.type = PTL_UINT8_T;
    if (s->initiator) {
        m.md = suite_md(s, region_start(put), length, PTL_MD_VOLATILE);
    }
    if (s->target) {
        suite_target(s, PTL_PRIORITY_LIST, region_start(entry), entry->length, PTL_ME_OP_PUT,
                     &of_entry);
    }
    STEP();
    for (unsigned i = 0; i < IN_A_ROW; i++) {
        m.remote_offset = i * length;
        struct landing l = {entry,     m.remote_offset,   length,
                            PTL_NI_OK, PTL_PRIORITY_LIST, &of_entry};
        region_fill(put, 100 + i);
        landing_move(&m, put, put, entry, &l);
        if (s->initiator) {
            OK(suite_move(&m));
            due_add(&due, send_event(&m));
        }
    }
    if (s->initiator) {
        region_fill(put, 99);
        TAKE(s->mdeq, &due);
    }
    for (unsigned i = 0; s->target && i < IN_A_ROW; i++) {
        m.remote_offset = i * length;
        struct landing l = {entry,     m.remote_offset,   length,
                            PTL_NI_OK, PTL_PRIORITY_LIST, &of_entry};
        due_add(&due, landing_event(s, &m, &l));
        TAKE(s->eq, &due);
    }
    WATCH_END(&w);
    if (s->target) {
        CHECK_REGION(entry);
    }
}

/* ---- The matrix ------------------------------------------------------------- */

static const char *const rules[OUTCOMES] = {
    "3.10: the MD's options choose the events and counts of a message that arrives",
    "3.10: bytes counted for an answer are those that were moved, of a send all",
    "3.15: a message that finds no entry gives DROPPED in its ack or reply, SEND all the same",
    "3.15: an entry of another user gives PERM_VIOLATION, and nothing at the target",
    "3.15: an entry that does not allow the call gives OP_VIOLATION, nothing at the target",
    "3.7: a disabled portal table entry refuses with PT_DISABLED, and keeps its entries"};

static void *keep(const void *c, size_t size)
{
    void *copy = malloc(size);
    if (copy == NULL) {
        abort();
    }
    return memcpy(copy, c, size);
}

static void add(enum suite_call call, enum outcome outcome, unsigned set)
{
    static unsigned number;
    char letters[COUNT_OF(choices) + 1] = "";
    struct md_case c = {call, outcome, 0, 0, number % 2 == 0};
    for (unsigned i = 0, n = 0; i < COUNT_OF(choices); i++) {
        if (set >> i & 1) {
            c.options |= choices[i].option;
            letters[n++] = choices[i].letter;
        }
    }
    for (unsigned i = 0; i < COUNT_OF(permissions); i++) {
        c.options |= (number >> i & 1) ? permissions[i] : 0;
    }
    size_t large = call == CALL_PUT || call == CALL_GET ? 20000 : 4096;
    c.length = number / 3 % 2 == 0 ? 16 : large;
    suite_add_each(
        (struct suite_case){.rule = rules[outcome], .body = md_body, .data = keep(&c, sizeof(c))},
        matrix_spread(ALL_KINDS, number / 2), SELF | PAIR, "md.%s.%s.%s", suite_call_name[call],
        outcome_name[outcome], set == 0 ? "none" : letters);
    number++;
}

GENERATE(mds)
{
    for (enum suite_call call = CALL_PUT; call < CALL_COUNT; call++) {
        for (enum outcome outcome = 0; outcome < OUTCOMES; outcome++) {
            for (unsigned set = 0; set < SETS; set++) {
                add(call, outcome, set);
            }
        }
    }
    static const size_t lengths[] = {1, 64, 1024, 1025, 4096, 0};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        for (enum suite_call call = CALL_PUT; call <= CALL_ATOMIC; call += CALL_ATOMIC) {
            struct volatile_case c = {call, lengths[i]};
            suite_add_each(
                (struct suite_case){
                    .rule = "3.10: the buffer of a volatile MD may be written behind the call",
                    .body = volatile_body,
                    .data = keep(&c, sizeof(c))},
                ALL_KINDS, SELF | PAIR, "md.volatile.%s.%zu", suite_call_name[call], lengths[i]);
        }
    }
}
