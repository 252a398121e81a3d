/* SPDX-License-Identifier: BSD-3-Clause */
/* What is tried: entries and messages drawn at random, alike at all processes; see lists.h. */
#include "lists.h"

#include <math.h>
#include <string.h>

unsigned spice = 100;
bool hushed;
bool (*keeps_act)(unsigned lane, unsigned act);

bool act_begins(struct lane *l)
{
    unsigned act = l->acts++;
    if (keeps_act == NULL) {
        return true;
    }
    l->random = (seed * 0x9e3779b97f4a7c15u + l->number) * 0xd6e8feb86659fd93u + act;
    (void)splitmix(&l->random);
    return keeps_act(l->number, act);
}

bool percent(uint64_t *state, unsigned chance)
{
    return splitmix_below(state, 100) < chance;
}

/* Lengths at, below and above the borders of records, lines, packets, cells and windows. */
static uint32_t draw_length(uint64_t *r)
{
    static const uint32_t borders[] = {0,    1,    8,    16,   48,    64,    256,    512,
                                       1024, 2048, 4096, 8192, 16384, 65536, 262144, 600000};
    enum { BORDERS = sizeof(borders) / sizeof(borders[0]), USUAL = 9 };
    unsigned kind = splitmix_below(r, 100);
    if (kind < 40) {
        return splitmix_below(r, 300);
    }
    uint32_t border = borders[splitmix_below(r, kind < 85 ? USUAL : BORDERS)];
    uint32_t around = splitmix_below(r, 3);
    return border + around > 0 ? border + around - 1 : 0;
}

/* A mask of options, each with its chance; what is usual is so with little spice, too. */
struct chance {
    unsigned option, percent;
};

static unsigned draw_options(uint64_t *r, const struct chance *c, size_t n)
{
    unsigned options = 0;
    for (size_t i = 0; i < n; i++) {
        unsigned chance = c[i].percent > 90 ? c[i].percent : c[i].percent * spice / 100;
        options |= percent(r, chance) ? c[i].option : 0;
    }
    return options;
}

/* ---- entries ---- */

static unsigned draw_entry_options(uint64_t *r, bool matching)
{
    static const struct chance all[] = {
        {PTL_ME_OP_PUT, 92},
        {PTL_ME_OP_GET, 92},
        {PTL_ME_USE_ONCE, 60},
        {PTL_ME_UNEXPECTED_HDR_DISABLE, 12},
        {PTL_ME_IS_ACCESSIBLE, 10},
        {PTL_ME_EVENT_LINK_DISABLE, 30},
        {PTL_ME_EVENT_COMM_DISABLE, 12},
        {PTL_ME_EVENT_FLOWCTRL_DISABLE, 20},
        {PTL_ME_EVENT_SUCCESS_DISABLE, 12},
        {PTL_ME_EVENT_OVER_DISABLE, 12},
        {PTL_ME_EVENT_UNLINK_DISABLE, 20},
        {PTL_ME_EVENT_CT_COMM, 45},
        {PTL_ME_EVENT_CT_OVERFLOW, 45},
        {PTL_ME_EVENT_CT_BYTES, 40},
        {PTL_ME_ACK_DISABLE, 12},
    };
    static const struct chance of_mes[] = {
        {PTL_ME_MANAGE_LOCAL, 35},
        {PTL_ME_NO_TRUNCATE, 20},
        {PTL_ME_LOCAL_INC_UH_RLENGTH, 25},
    };
    unsigned options = draw_options(r, all, sizeof(all) / sizeof(all[0]));
    if (hushed && percent(r, 80)) {
        options |= PTL_ME_EVENT_CT_COMM | (percent(r, 50) ? PTL_ME_EVENT_CT_BYTES : 0);
    }
    if (matching) {
        options |= draw_options(r, of_mes, sizeof(of_mes) / sizeof(of_mes[0]));
        bool managed = (options & PTL_ME_MANAGE_LOCAL) != 0;
        options |= managed && percent(r, 20) ? PTL_ME_MAY_ALIGN : 0;
    }
    return options;
}

static void draw_parts(uint64_t *r, struct entry *e, unsigned unit)
{
    e->options |= PTL_IOVEC;
    e->parts = 1 + splitmix_below(r, PARTS);
    e->length = 0;
    for (uint32_t i = 0, at = 0; i < e->parts; i++) {
        uint32_t length = percent(r, 15) ? 0 : splitmix_below(r, percent(r, 60) ? 300 : 70000);
        at += splitmix_below(r, 100) / unit * unit;
        e->part[i] = (struct part){at, length / unit * unit};
        at += e->part[i].length;
        e->length += e->part[i].length;
    }
}

/* Makes of an entry one that takes any number of small messages and tells of them by counting, as
 * windows of one-sided operations do. */
static void make_window(uint64_t *r, struct entry *e)
{
    unsigned never = PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH | PTL_ME_MAY_ALIGN |
                     PTL_ME_ACK_DISABLE | PTL_IOVEC;
    e->options &= ~(never | (percent(r, 80) ? PTL_ME_USE_ONCE : 0u));
    e->options |= percent(r, 70) ? PTL_ME_EVENT_COMM_DISABLE : 0;
    e->list = PTL_PRIORITY_LIST;
    e->parts = 0;
    e->length = 8 + splitmix_below(r, 2000);
    e->start = splitmix_below(r, SITE_BYTES - e->length) / ELEMENT_MAX * ELEMENT_MAX;
}

/* Makes of an entry one that gathers: each message and each header that came before it moves its
 * offset on, and it stays, so that the messages after them show where it stands. */
static void make_gathering(uint64_t *r, struct entry *e)
{
    e->options &= ~(unsigned)(PTL_ME_USE_ONCE | PTL_IOVEC);
    e->options |= PTL_ME_MANAGE_LOCAL | PTL_ME_LOCAL_INC_UH_RLENGTH;
    e->list = PTL_PRIORITY_LIST;
    e->ignore |= percent(r, 50) ? 3 : 0;
    e->parts = 0;
    e->length = 1000 + splitmix_below(r, 100000);
    e->start = splitmix_below(r, SITE_BYTES - e->length) / ELEMENT_MAX * ELEMENT_MAX;
    e->min_free = splitmix_below(r, 200);
}

void draw_entry(struct lane *l, struct entry *e)
{
    static const ptl_match_bits_t ignored[] = {0, 0, 1, 3, ~0ull, 1ull << 63, 3 | 1ull << 63};
    uint64_t *r = &l->random;
    memset(e, 0, sizeof(*e));
    unsigned unit = percent(r, 75) ? ELEMENT_MAX : 1;
    e->list = percent(r, 45) ? PTL_PRIORITY_LIST : PTL_OVERFLOW_LIST;
    e->options = draw_entry_options(r, is_matching(l->kind));
    e->options |=
        e->list == PTL_OVERFLOW_LIST && percent(r, 25) ? PTL_ME_UNEXPECTED_HDR_DISABLE : 0;
    e->length = percent(r, 70) ? draw_length(r) : splitmix_below(r, 60000);
    e->start = splitmix_below(r, SITE_BYTES - e->length) / unit * unit;
    if (percent(r, 18 * spice / 100)) {
        draw_parts(r, e, unit);
    }
    e->bits = splitmix_below(r, 4) | (percent(r, 10) ? 1ull << 63 : 0);
    e->ignore = ignored[splitmix_below(r, sizeof(ignored) / sizeof(ignored[0]))];
    e->source = percent(r, 50)   ? -1
                : percent(r, 85) ? l->process
                                 : (int)splitmix_below(r, processes);
    e->foreign_uid = percent(r, 4);
    e->own_uid = percent(r, 20);
    e->min_free = percent(r, 40) ? 0 : splitmix_below(r, e->length + 2);
    if (e->length >= 64 && percent(r, 25)) { /* what one message leaves is just enough, or not */
        e->min_free = e->length - (8u << splitmix_below(r, 4));
    }
    if (percent(r, hushed ? 30 : 12)) {
        make_window(r, e);
    } else if (is_matching(l->kind) && percent(r, hushed ? 5 : 10)) {
        make_gathering(r, e);
    }
    e->ct = splitmix_below(r, SITE_CTS);
    e->user_ptr = (void *)(uintptr_t)(++l->names * 8);
}

/* ---- messages ---- */

/* Whether a number is whole and small, so that no type rounds what is computed with it. */
static bool is_tame(const uint8_t *element, unsigned type)
{
    bool pair =
        type == PTL_FLOAT_COMPLEX || type == PTL_DOUBLE_COMPLEX || type == PTL_LONG_DOUBLE_COMPLEX;
    size_t size = type_size(type) / (pair ? 2 : 1);
    for (size_t at = 0; at < type_size(type); at += size) {
        long double wide = 0;
        double d = 0;
        float f = 0;
        memcpy(&wide, element + at, size == sizeof(wide) ? size : 0);
        memcpy(&d, element + at, size == sizeof(d) ? size : 0);
        memcpy(&f, element + at, size == sizeof(f) ? size : 0);
        long double v = size == sizeof(f) ? (long double)f : size == sizeof(d) ? d : wide;
        if (!(fabsl(v) < 1000) || v != truncl(v)) {
            return false;
        }
    }
    return true;
}

static bool is_floating(unsigned type)
{
    return type == PTL_FLOAT || type == PTL_DOUBLE || type >= PTL_FLOAT_COMPLEX;
}

enum ground { DEFINED, UNTAMED, UNDEFINED };

/* What an atomic would find where it goes: UNTAMED numbers can be replaced, but not computed
 * with; alignment and what lies in several parts are UNDEFINED. */
static enum ground ground_of(struct lane *l, const struct message *m)
{
    const struct entry *e = model_find(l, m);
    uint32_t size = (uint32_t)type_size(m->type);
    enum ground g = DEFINED;
    if (e == NULL) {
        return DEFINED;
    }
    uint64_t offset = (e->options & PTL_ME_MANAGE_LOCAL) != 0 ? e->offset : m->offset;
    for (uint64_t i = 0; i + size <= m->length && offset + i + size <= e->length; i += size) {
        uint32_t at = entry_address(e, offset + i);
        const uint8_t *open = l->open[l->target] + at;
        if (at % size != 0 || entry_address(e, offset + i + size - 1) != at + size - 1) {
            return UNDEFINED;
        }
        bool closed = memchr(open, 1, is_floating(m->type) && size >= 16 ? 10 : size) == NULL;
        if (!closed && !is_floating(m->type)) {
            return UNDEFINED;
        }
        if (is_floating(m->type) && !(closed && is_tame(l->memory[l->target] + at, m->type))) {
            g = UNTAMED;
        }
    }
    return g;
}

/* Small numbers, never 0; of integers, half of the time any bits. */
static void draw_element(uint64_t *r, uint8_t *element, unsigned type)
{
    int number = (1 + (int)splitmix_below(r, 9)) * (percent(r, 50) ? 1 : -1);
    uint64_t bits = splitmix(r);
    model_value(element, type, number, false);
    if (!is_floating(type) && percent(r, 50)) {
        memcpy(element, &bits, type_size(type));
    }
}

static uint32_t atomic_limit(const struct lane *l, const struct message *m)
{
    uint64_t most = m->act == ACT_ATOMIC ? limits[l->kind].max_atomic_size
                                         : limits[l->kind].max_fetch_atomic_size;
    return (uint32_t)(most < OWN_BYTES ? most : OWN_BYTES);
}

static void draw_atomic(struct lane *l, struct message *m)
{
    uint64_t *r = &l->random;
    do {
        m->type = (ptl_datatype_t)splitmix_below(r, PTL_DATATYPE_LAST);
        m->op = (ptl_op_t)splitmix_below(r, PTL_OP_LAST);
    } while (!op_is_legal(m->act, m->op, m->type));
    uint32_t size = (uint32_t)type_size(m->type), most = atomic_limit(l, m) / size;
    uint32_t n = op_has_operand(m->op) ? 1 : splitmix_below(r, percent(r, 60) ? 9 : most + 1);
    n = l->manner != ANY && percent(r, 80) ? 1 : n;
    m->length = (n < most ? n : most) * size;
    m->offset = m->offset / ELEMENT_MAX * ELEMENT_MAX;
    m->own = true;
    for (uint32_t i = 0; i < m->length; i += size) {
        draw_element(r, m->bytes + i, m->type);
    }
    draw_element(r, m->operand, m->type);
    enum ground g = ground_of(l, m);
    if (g == UNTAMED) {
        m->act = ACT_SWAP;
        m->op = PTL_SWAP;
        most = atomic_limit(l, m) / size * size;
        m->length = m->length < most ? m->length : most;
    } else if (g == UNDEFINED) {
        m->act = ACT_PUT;
    }
}

/* The room of the entry that the message would find, or a byte more or less. */
static uint32_t draw_fitting(struct lane *l, const struct message *m)
{
    const struct entry *e = model_find(l, m);
    uint64_t offset = e != NULL && (e->options & PTL_ME_MANAGE_LOCAL) != 0 ? e->offset : m->offset;
    if (e == NULL || offset >= e->length) {
        return m->length;
    }
    uint32_t room = e->length - (uint32_t)offset;
    return room + splitmix_below(&l->random, 4) / 2 - percent(&l->random, 30);
}

static void draw_bytes(struct lane *l, struct message *m)
{
    uint64_t *r = &l->random;
    bool small = l->manner != ANY ? percent(r, 85) : hushed && percent(r, 60);
    m->length = small ? splitmix_below(r, 65) : draw_length(r);
    if (percent(r, 12)) {
        m->length = draw_fitting(l, m);
    }
    m->own = m->act == ACT_PUT && m->length <= OWN_BYTES && percent(r, 50);
    for (uint32_t i = 0; m->own && i < m->length; i++) {
        m->bytes[i] = (uint8_t)splitmix(r);
    }
    m->source = splitmix_below(r, SOURCE_BYTES - m->length);
}

/* Where what a message fetches goes: nobody else of the round fetches there. */
static void draw_room(struct lane *l, struct message *m, uint32_t *used)
{
    uint32_t unit = m->act == ACT_GET && percent(&l->random, 40) ? 1 : ELEMENT_MAX;
    m->fetched = (*used + splitmix_below(&l->random, 64) + unit - 1) / unit * unit;
    if (m->fetched + m->length > FETCHED_BYTES) {
        m->fetched = *used;
        m->length = 0;
    }
    *used = m->fetched + m->length;
}

static void draw_side(uint64_t *r, struct side *side, bool fetching)
{
    static const struct chance counting[] = {{PTL_MD_EVENT_CT_SEND, 60},
                                             {PTL_MD_EVENT_CT_REPLY, 60},
                                             {PTL_MD_EVENT_CT_ACK, 70},
                                             {PTL_MD_EVENT_CT_BYTES, 40}};
    static const struct chance other[] = {{PTL_MD_UNORDERED, 15},
                                          {PTL_MD_EVENT_SUCCESS_DISABLE, 12},
                                          {PTL_MD_EVENT_SEND_DISABLE, 15}};
    side->eq = percent(r, 75);
    side->ct = percent(r, 60);
    side->options = draw_options(r, other, fetching ? 2 : 3);
    side->options |= side->ct ? draw_options(r, counting, 4) : 0;
    side->parts = percent(r, 18 * spice / 100);
}

static ptl_ack_req_t draw_ack(uint64_t *r, const struct side *side)
{
    bool counts = side->ct && (side->options & PTL_MD_EVENT_CT_ACK) != 0;
    ptl_ack_req_t ack = (ptl_ack_req_t)splitmix_below(r, PTL_OC_ACK_REQ + 1);
    return ack == PTL_ACK_REQ ? (side->eq ? ack : PTL_NO_ACK_REQ) : counts ? ack : PTL_NO_ACK_REQ;
}

/* A put or an atomic of a round of QUIET or ACKED ones asks for what most of them do. */
static void draw_manner(struct lane *l, struct message *m)
{
    if (l->manner == QUIET && percent(&l->random, 85)) {
        m->from.parts = false;
        m->ack = PTL_NO_ACK_REQ;
    } else if (l->manner == ACKED && percent(&l->random, 85)) {
        m->from.eq = true;
        m->ack = PTL_ACK_REQ;
    }
}

void draw_message(struct lane *l, struct message *m, uint32_t *used)
{
    uint64_t *r = &l->random;
    memset(m, 0, sizeof(*m));
    unsigned act = splitmix_below(r, l->manner == ANY ? 100 : 130);
    m->act = act < 45       ? ACT_PUT
             : act < 65     ? ACT_GET
             : act < 78     ? ACT_ATOMIC
             : act < 88     ? ACT_FETCH
             : act < 100    ? ACT_SWAP
             : act % 3 == 0 ? ACT_ATOMIC
                            : ACT_PUT;
    m->bits = is_matching(l->kind) ? splitmix_below(r, 4) | (percent(r, 10) ? 1ull << 63 : 0)
                                   : splitmix(r);
    m->offset = percent(r, 45)     ? 0
                : l->manner != ANY ? splitmix_below(r, 40) * 16
                : percent(r, 50)   ? splitmix_below(r, 64) * 16
                                   : splitmix_below(r, 70000);
    m->hdr_data = m->act == ACT_GET ? 0 : splitmix(r);
    m->user_ptr = (void *)(uintptr_t)(++l->names * 8);
    m->lost = percent(r, 2);
    if (m->act >= ACT_ATOMIC) {
        draw_atomic(l, m);
    } else {
        draw_bytes(l, m);
    }
    if (m->act != ACT_PUT && m->act != ACT_ATOMIC) {
        draw_room(l, m, used);
    }
    draw_side(r, &m->from, false);
    if (m->act == ACT_FETCH || m->act == ACT_SWAP) {
        draw_side(r, &m->to, true);
    }
    if (m->act == ACT_PUT || m->act == ACT_ATOMIC) {
        m->ack = draw_ack(r, &m->from);
        draw_manner(l, m);
    }
    m->from.options |= m->own && percent(r, 15) ? PTL_MD_VOLATILE : 0;
    m->from.options |= m->ack == PTL_NO_ACK_REQ && percent(r, 8) ? PTL_MD_UNRELIABLE : 0;
}
