/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 3.11, 3.12: random programs against a model of the two lists and the unexpected messages.
 *
 *   step     put or get, append to either list, unlink, search; each ends before the next
 *   model    arrays in order: first match by walking, offsets, headers, what is posted
 *   compare  the code of each call, and the events of each step: AUTO_FREE in an order of
 *            its own, since it may come before or behind the claimant's AUTO_UNLINK
 */
#include "rule_kit.h"

#include <stdlib.h>
#include <string.h>

enum {
    STEPS = 900,
    SEEDS = 6,
    ENTRIES = 48,
    HEADERS = 256,
    DUE = 512,
    SIZE = 600,
    UNIT = 20,
    BITS = 6
};

struct entry {
    bool linked, used_up; /* neither: free place */
    ptl_list_t list;
    ptl_me_t me;
    ptl_size_t offset;
    ptl_handle_me_t handle;
    int headers;
    unsigned age; /* order of appending */
};

struct header {
    int owner;
    bool get;
    ptl_match_bits_t bits;
    ptl_size_t rlength, mlength, remote_offset, offset;
};

struct due {
    int type, fail, user;
    ptl_size_t rlength, mlength;
    const void *start; /* null: not looked at */
};

static struct {
    struct entry entry[ENTRIES];
    struct header header[HEADERS];
    int headers;
    struct due due[DUE], freed[DUE];
    int due_count, freed_count;
    unsigned age, random;
    bool matching;
} model;

static unsigned char memory[ENTRIES][SIZE], buffer[SIZE];

static unsigned draw(unsigned below)
{
    model.random = model.random * 1664525u + 1013904223u;
    return (model.random >> 8) % below;
}

/* ---- The model ------------------------------------------------------------- */

static void due(struct due d)
{
    if (d.type == PTL_EVENT_AUTO_FREE) {
        model.freed[model.freed_count++] = d;
    } else {
        model.due[model.due_count++] = d;
    }
}

static ptl_size_t room(const struct entry *e, ptl_size_t offset)
{
    return offset < e->me.length ? e->me.length - offset : 0;
}

static bool matches(const struct entry *e, ptl_match_bits_t bits, ptl_size_t length,
                    ptl_size_t remote_offset)
{
    if (!model.matching) {
        return true;
    }
    if (((bits ^ e->me.match_bits) & ~e->me.ignore_bits) != 0) {
        return false;
    }
    ptl_size_t at = e->me.options & PTL_ME_MANAGE_LOCAL ? e->offset : remote_offset;
    return (e->me.options & PTL_ME_NO_TRUNCATE) == 0 ||
           (at <= e->me.length && length <= e->me.length - at);
}

static struct entry *find(ptl_list_t list, ptl_match_bits_t bits, ptl_size_t length,
                          ptl_size_t remote_offset)
{
    struct entry *found = NULL;
    for (int i = 0; i < ENTRIES; i++) {
        struct entry *e = &model.entry[i];
        if (e->linked && e->list == list && matches(e, bits, length, remote_offset) &&
            (found == NULL || e->age < found->age)) {
            found = e;
        }
    }
    return found;
}

static int number_of(const struct entry *e)
{
    return (int)(e - model.entry);
}

static void forget_if_free(struct entry *e)
{
    if (e->used_up && e->headers == 0) {
        if (e->list == PTL_OVERFLOW_LIST) {
            due((struct due){.type = PTL_EVENT_AUTO_FREE, .user = number_of(e)});
        }
        e->used_up = false;
    }
}

static void use_up(struct entry *e)
{
    e->linked = false;
    e->used_up = true;
    due((struct due){.type = PTL_EVENT_AUTO_UNLINK, .user = number_of(e)});
    forget_if_free(e);
}

/* A message arrives: whether it finds an entry, and all that follows. */
static struct entry *arrive(struct header h)
{
    struct entry *e = find(PTL_PRIORITY_LIST, h.bits, h.rlength, h.remote_offset);
    if (e == NULL && (e = find(PTL_OVERFLOW_LIST, h.bits, h.rlength, h.remote_offset)) == NULL) {
        return NULL;
    }
    bool local = (e->me.options & PTL_ME_MANAGE_LOCAL) != 0;
    h.offset = local ? e->offset : h.remote_offset;
    h.mlength = h.rlength < room(e, h.offset) ? h.rlength : room(e, h.offset);
    h.owner = number_of(e);
    due((struct due){.type = h.get ? PTL_EVENT_GET : PTL_EVENT_PUT,
                     .user = h.owner,
                     .rlength = h.rlength,
                     .mlength = h.mlength,
                     .start = h.mlength != 0 ? memory[h.owner] + h.offset : NULL});
    e->offset += local ? h.mlength : 0;
    if (e->list == PTL_OVERFLOW_LIST && (e->me.options & PTL_ME_UNEXPECTED_HDR_DISABLE) == 0) {
        model.header[model.headers++] = h;
        e->headers++;
    }
    bool undercut = local && e->me.min_free != 0 && room(e, e->offset) < e->me.min_free;
    if ((e->me.options & PTL_ME_USE_ONCE) != 0 || undercut) {
        use_up(e);
    }
    return e;
}

static void tell_header(const struct header *h, int user, bool search)
{
    due((struct due){.type = search   ? PTL_EVENT_SEARCH
                             : h->get ? PTL_EVENT_GET_OVERFLOW
                                      : PTL_EVENT_PUT_OVERFLOW,
                     .user = user,
                     .rlength = h->rlength,
                     .mlength = h->mlength,
                     .start = h->mlength != 0 ? memory[h->owner] + h->offset : NULL});
}

static void take_header(int at)
{
    struct entry *owner = &model.entry[model.header[at].owner];
    memmove(&model.header[at], &model.header[at + 1],
            sizeof(model.header[0]) * (size_t)(model.headers - at - 1));
    model.headers--;
    owner->headers--;
    forget_if_free(owner);
}

static void append_model(struct entry *e)
{
    e->linked = true;
    e->age = model.age++;
    bool counts = (e->me.options & PTL_ME_LOCAL_INC_UH_RLENGTH) != 0;
    for (int i = 0; i < model.headers && e->list == PTL_PRIORITY_LIST;) {
        const struct header h = model.header[i];
        if (!matches(e, h.bits, h.rlength, h.remote_offset)) {
            i++;
            continue;
        }
        tell_header(&h, number_of(e), false);
        e->offset += counts ? h.rlength : 0;
        take_header(i);
        bool undercut = counts && e->me.min_free != 0 && room(e, e->offset) < e->me.min_free;
        if ((e->me.options & PTL_ME_USE_ONCE) != 0 || undercut) {
            use_up(e);
            return;
        }
    }
    due((struct due){.type = PTL_EVENT_LINK, .user = number_of(e)});
}

static void search_model(const struct entry *wanted, ptl_search_op_t op, int user)
{
    bool found = false;
    for (int i = 0; i < model.headers;) {
        const struct header h = model.header[i];
        if (!matches(wanted, h.bits, h.rlength, h.remote_offset)) {
            i++;
            continue;
        }
        found = true;
        tell_header(&h, user, op == PTL_SEARCH_ONLY);
        if (op == PTL_SEARCH_DELETE) {
            take_header(i);
        } else {
            i++;
        }
        if ((wanted->me.options & PTL_ME_USE_ONCE) != 0) {
            return;
        }
    }
    if (!found) {
        due((struct due){.type = PTL_EVENT_SEARCH, .fail = PTL_NI_NO_MATCH, .user = user});
    }
}

/* ---- The library ----------------------------------------------------------- */

static void compare(struct scene *s, const ptl_event_t *e, const struct due *d)
{
    if (d->type == PTL_EVENT_LINK || d->type == PTL_EVENT_AUTO_UNLINK ||
        d->type == PTL_EVENT_AUTO_FREE || d->fail != PTL_NI_OK) {
        EVENT_IS(*e, d->type, .fail = d->fail, .user_ptr = IS(d->user));
        return;
    }
    EVENT_IS(*e, d->type, .user_ptr = IS(d->user), .rlength = IS(d->rlength),
             .mlength = IS(d->mlength));
    CHECK(d->start == NULL || e->start == d->start);
}

static void compare_all(struct scene *s)
{
    int at = 0, freed = 0;
    for (int n = model.due_count + model.freed_count; n > 0; n--) {
        ptl_event_t e;
        OK(PtlEQGet(s->eq, &e));
        if (e.type == PTL_EVENT_AUTO_FREE) {
            CHECK(freed < model.freed_count);
            compare(s, &e, &model.freed[freed++]);
        } else {
            CHECK(at < model.due_count);
            compare(s, &e, &model.due[at++]);
        }
    }
    ptl_event_t e;
    CODE(PtlEQGet(s->eq, &e), PTL_EQ_EMPTY);
    model.due_count = model.freed_count = 0;
}

static void step_message(struct scene *s, ptl_handle_md_t md)
{
    struct header h = {.get = draw(4) == 0,
                       .bits = draw(BITS),
                       .rlength = draw(4) == 0 ? draw(SIZE) : UNIT * draw(6),
                       .remote_offset = draw(2) == 0 ? 0 : UNIT * draw(SIZE / UNIT)};
    if (model.headers == HEADERS) {
        return;
    }
    if (h.get) {
        OK(PtlGet(md, 0, h.rlength, s->to, SUITE_PT, h.bits, h.remote_offset, NULL));
    } else {
        OK(PtlPut(md, 0, h.rlength, PTL_ACK_REQ, s->to, SUITE_PT, h.bits, h.remote_offset, NULL,
                  0));
    }
    const struct entry *e = arrive(h);
    EXPECT(s->mdeq, h.get ? PTL_EVENT_REPLY : PTL_EVENT_ACK,
           .fail = e != NULL ? PTL_NI_OK : PTL_NI_DROPPED);
    if (h.get) { /* its event may come behind the reply */
        rule_nudge(s, 0);
        ptl_ct_event_t ignored;
        OK(PtlCTGet(s->ct, &ignored));
    }
}

static ptl_me_t draw_entry(struct scene *s, void *start)
{
    unsigned options = PTL_ME_OP_PUT | PTL_ME_OP_GET;
    options |= draw(3) == 0 ? PTL_ME_USE_ONCE : 0;
    options |= draw(5) == 0 ? PTL_ME_UNEXPECTED_HDR_DISABLE : 0;
    if (s->matching) {
        options |= draw(2) ? PTL_ME_MANAGE_LOCAL : 0;
        options |= draw(4) == 0 ? PTL_ME_NO_TRUNCATE : 0;
        if ((options & PTL_ME_MANAGE_LOCAL) != 0 && draw(3) == 0) {
            options |= PTL_ME_LOCAL_INC_UH_RLENGTH;
        }
    }
    ptl_me_t me =
        suite_entry(s, start, UNIT * (draw(3) == 0 ? draw(4) : draw(SIZE / UNIT)), options);
    me.min_free = UNIT * draw(8);
    me.match_bits = draw(BITS);
    me.ignore_bits = draw(8) == 0 ? ~(ptl_match_bits_t)0 : draw(2) ? 0 : draw(4);
    return me;
}

static void step_append(struct scene *s)
{
    int place = 0;
    while (place < ENTRIES && (model.entry[place].linked || model.entry[place].used_up)) {
        place++;
    }
    if (place == ENTRIES) {
        return;
    }
    struct entry *e = &model.entry[place];
    *e = (struct entry){.list = draw(2) == 0 ? PTL_OVERFLOW_LIST : PTL_PRIORITY_LIST,
                        .me = draw_entry(s, memory[place])};
    OK(suite_append_code(s, SUITE_PT, e->list, &e->me, (void *)(long)place, &e->handle));
    append_model(e);
}

static void step_unlink(struct scene *s)
{
    struct entry *e = &model.entry[draw(ENTRIES)];
    if (e->linked) {
        CODE(suite_unlink_code(s, e->handle), e->headers != 0 ? PTL_IN_USE : PTL_OK);
        e->linked = e->headers != 0;
    } else if (e->used_up) {
        INVALID(suite_unlink_code(s, e->handle));
    }
}

static void step_search(struct scene *s)
{
    struct entry wanted = {.me = draw_entry(s, NULL)};
    ptl_search_op_t op = draw(3) == 0 ? PTL_SEARCH_DELETE : PTL_SEARCH_ONLY;
    OK(suite_search_code(s, SUITE_PT, op, &wanted.me, (void *)100));
    search_model(&wanted, op, 100);
}

static void random_program(struct scene *s)
{
    memset(&model, 0, sizeof(model));
    model.random = (unsigned)s->c->number * 7919u + 1;
    model.matching = s->matching;
    ptl_handle_md_t md = rule_md(s, buffer, SIZE);
    for (int i = 0; i < STEPS; i++) {
        unsigned what = draw(20);
        if (what < 8) {
            step_message(s, md);
        } else if (what < 12) {
            step_append(s);
        } else if (what < 19) {
            step_unlink(s);
        } else {
            step_search(s);
        }
        compare_all(s);
    }
}

GENERATE(register_random)
{
    for (int seed = 1; seed <= SEEDS; seed++) {
        suite_add_each((struct suite_case){.rule = "3.12: a random program of messages, appends, "
                                                   "unlinks and searches gives what a model gives",
                                           .body = random_program,
                                           .number = seed},
                       ALL_KINDS, SELF, "random_%d", seed);
    }
}
