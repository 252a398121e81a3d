/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what a NIC makes of messages: a hostile peer that keeps to the rules of rings and
 * cells, has a sending slot and a segment for the answers, and sends what it likes.
 *
 *      hostile peer                                NIC
 *   its segment  ◄── requests, acks, replies ──  initiates, answers
 *                ── any message, any time ──►    indices: plain, in parts, overflow list with
 *                                                flow control, use-once
 *
 * An input is a list of actions, a byte each with its arguments behind it: a message with
 * any header, taking the NIC's own messages out, operations of the NIC, appends, searches,
 * and bytes written anywhere into a ring. Whatever comes, no byte outside the entries and
 * the operations' own memory changes, events name what there is, and the NIC goes on.
 */
#include "fuzz.h"
#include "hostile.h"

#include "nic/message.h"

#include <string.h>
#include <unistd.h>

enum {
    LOOKS = 2,
    ACTIONS_MAX = 64,
    GUARD = 256,
    ROOM = 4096,
    RING = 16, /* lines of each ring */
    CELL = 256,
    PT_PLAIN = 5,
    PT_PARTS,
    PT_OVERFLOW,
    PT_ONCE,
    PT_SELF, /* where the NIC proves that it still serves */
    EVENTS = 4
};

struct input {
    const uint8_t *data;
    size_t size;
};

/* One direction of the hostile peer's way to the NIC. */
struct channel {
    struct channel_index *index;
    uint8_t *ring, *cells;
    uint64_t tail, cells_tail;
};

static ptl_handle_ni_t ni;
static ptl_handle_eq_t eq, flow_eq;
static ptl_handle_ct_t ct;
static ptl_handle_md_t md, parts_md, self_md;
static ptl_process_t self, hostile;
static uint8_t entry_memory[GUARD + ROOM + GUARD], md_memory[GUARD + ROOM + GUARD];
static uint64_t served;
static struct mapping theirs, own; /* the NIC's segment, the hostile peer's */
static struct slot *slot;
static unsigned slot_index;
static struct channel channel[FABRIC_CLASSES];
static uint64_t own_head[FABRIC_CLASSES];
static uint32_t cookies[4]; /* that the NIC's requests had */
static unsigned cookie_count;

static uint8_t next(struct input *in)
{
    if (in->size == 0) {
        return 0;
    }
    in->size--;
    return *in->data++;
}

/* ---- the NIC ---- */

static ptl_me_t entry(void *start, size_t length, unsigned options)
{
    ptl_me_t me = {.start = start,
                   .length = length,
                   .ct_handle = ct,
                   .uid = PTL_UID_ANY,
                   .options = options | PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .ignore_bits = ~0ull};
    return me;
}

static size_t cut(uint8_t *start, ptl_iovec_t parts[3])
{
    parts[0] = (ptl_iovec_t){start, 13};
    parts[1] = (ptl_iovec_t){start + 13, 0};
    parts[2] = (ptl_iovec_t){start + 13, ROOM - 13};
    return 3;
}

static void append(ptl_pt_index_t pt, ptl_list_t list, const ptl_me_t *me)
{
    ptl_handle_me_t handle;
    int code = PtlMEAppend(ni, pt, me, list, NULL, &handle);
    MUST(code == PTL_OK || code == PTL_NO_SPACE || code == PTL_LIST_TOO_LONG);
}

static void append_overflow(void)
{
    ptl_me_t me = entry(entry_memory + GUARD, ROOM, PTL_ME_MANAGE_LOCAL);
    me.min_free = 512;
    append(PT_OVERFLOW, PTL_OVERFLOW_LIST, &me);
}

static void open_entries(void)
{
    ptl_iovec_t parts[3];
    ptl_pt_index_t pt;
    ptl_me_t me = entry(entry_memory + GUARD, ROOM, 0);
    MUST(PtlPTAlloc(ni, 0, eq, PT_PLAIN, &pt) == PTL_OK);
    MUST(PtlPTAlloc(ni, 0, eq, PT_PARTS, &pt) == PTL_OK);
    MUST(PtlPTAlloc(ni, PTL_PT_FLOWCTRL, flow_eq, PT_OVERFLOW, &pt) == PTL_OK);
    MUST(PtlPTAlloc(ni, 0, eq, PT_ONCE, &pt) == PTL_OK);
    MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, PT_SELF, &pt) == PTL_OK);
    append(PT_PLAIN, PTL_PRIORITY_LIST, &me);
    me = entry(parts, cut(entry_memory + GUARD, parts), PTL_IOVEC);
    append(PT_PARTS, PTL_PRIORITY_LIST, &me);
    append_overflow();
    me = entry(entry_memory + GUARD, 300, PTL_ME_USE_ONCE | PTL_ME_NO_TRUNCATE);
    append(PT_ONCE, PTL_PRIORITY_LIST, &me);
    me = entry(entry_memory + GUARD, ROOM, PTL_ME_USE_ONCE);
    append(PT_ONCE, PTL_OVERFLOW_LIST, &me);
    me = entry(&served, sizeof(served), 0);
    me.match_id.phys.nid = self.phys.nid;
    me.match_id.phys.pid = self.phys.pid;
    append(PT_SELF, PTL_PRIORITY_LIST, &me);
}

static void open_nic(void)
{
    ptl_ni_limits_t limits = {.max_entries = 32,
                              .max_unexpected_headers = 4,
                              .max_mds = 8,
                              .max_cts = 8,
                              .max_eqs = 4,
                              .max_pt_index = 63,
                              .max_iovecs = 8,
                              .max_list_size = 32,
                              .max_triggered_ops = 8,
                              .max_msg_size = 1 << 20,
                              .max_atomic_size = 4096,
                              .max_fetch_atomic_size = 4096,
                              .max_volatile_size = 64};
    ptl_iovec_t parts[3];
    MUST(PtlInit() == PTL_OK);
    MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, &limits, NULL,
                   &ni) == PTL_OK);
    MUST(PtlGetPhysId(ni, &self) == PTL_OK);
    hostile.phys.nid = self.phys.nid;
    hostile.phys.pid = HOSTILE_PID;
    MUST(PtlCTAlloc(ni, &ct) == PTL_OK);
    MUST(PtlEQAlloc(ni, 16, &eq) == PTL_OK && PtlEQAlloc(ni, EVENTS, &flow_eq) == PTL_OK);
    open_entries();
    ptl_md_t d = {md_memory + GUARD, ROOM, 0, eq, PTL_CT_NONE};
    MUST(PtlMDBind(ni, &d, &md) == PTL_OK);
    d = (ptl_md_t){parts, cut(md_memory + GUARD, parts), PTL_IOVEC, eq, PTL_CT_NONE};
    MUST(PtlMDBind(ni, &d, &parts_md) == PTL_OK);
    d = (ptl_md_t){NULL, PTL_SIZE_MAX, 0, PTL_EQ_NONE, PTL_CT_NONE};
    MUST(PtlMDBind(ni, &d, &self_md) == PTL_OK);
}

static void check_event(const ptl_event_t *e)
{
    MUST(e->type <= PTL_EVENT_SEARCH);
    if (e->type <= PTL_EVENT_FETCH_ATOMIC_OVERFLOW) {
        MUST(e->ni_fail_type <= PTL_NI_SEGV);
        const uint8_t *first = entry_memory + GUARD;
        MUST(e->mlength <= e->rlength && e->mlength <= ROOM);
        MUST(e->mlength == 0 ||
             ((uint8_t *)e->start >= first && (uint8_t *)e->start + e->mlength <= first + ROOM));
        MUST(e->initiator.phys.pid == HOSTILE_PID && e->pt_index >= PT_PLAIN &&
             e->pt_index <= PT_ONCE);
    } else if (e->type <= PTL_EVENT_ACK) {
        MUST(e->mlength <= ROOM);
    }
}

static void look(void)
{
    ptl_event_t e;
    for (int i = 0; i < LOOKS; i++) {
        for (int code; (code = PtlEQGet(eq, &e)) != PTL_EQ_EMPTY;) {
            MUST(code == PTL_OK || code == PTL_EQ_DROPPED);
            check_event(&e);
        }
    }
}

static void look_at_flow(void)
{
    ptl_event_t e;
    while (PtlEQGet(flow_eq, &e) == PTL_OK) {
        check_event(&e);
        if (e.type == PTL_EVENT_PT_DISABLED) {
            MUST(PtlPTEnable(ni, PT_OVERFLOW) == PTL_OK);
        } else if (e.type == PTL_EVENT_AUTO_FREE) {
            append_overflow();
        }
    }
}

static void check_guards(void)
{
    for (size_t i = 0; i < GUARD; i++) {
        MUST(entry_memory[i] == 0xa5 && entry_memory[GUARD + ROOM + i] == 0xa5);
        MUST(md_memory[i] == 0xa5 && md_memory[GUARD + ROOM + i] == 0xa5);
    }
}

static void still_serves(void)
{
    static uint64_t number;
    uint64_t from = ++number * 0x9e3779b97f4a7c15ull;
    MUST(PtlPut(self_md, (ptl_size_t)(uintptr_t)&from, 8, PTL_NO_ACK_REQ, self, PT_SELF, 0, 0, NULL,
                0) == PTL_OK);
    for (int i = 0; i < 200000 && served != from; i++) {
        look();
    }
    MUST(served == from);
}

/* ---- the hostile peer ---- */

static void attach(void)
{
    hostile_make(&own, self);
    hostile_open(&theirs, self);
    const struct segment_info *g = &((struct segment_header *)theirs.base)->info;
    slot = hostile_claim(&theirs, self, &slot_index);
    for (unsigned c = 0; c < FABRIC_CLASSES; c++) {
        channel[c] = (struct channel){&slot->channel[c], slot_ring(slot, c, g->ring_lines),
                                      slot_cells(slot, c, g), 0, 0};
        own_head[c] = 0;
    }
    cookie_count = 0;
    memset(cookies, 0, sizeof(cookies));
    atomic_store(&slot->ready, SLOT_READY);
    hostile_tell(&theirs, slot_index);
}

/* Writes a record and publishes it; false if there is no room for it. */
static bool publish(struct channel *c, struct record *r, enum record_mode mode, size_t bytes,
                    const uint8_t *payload)
{
    size_t lines = mode == RECORD_INLINE ? inline_lines(bytes) : mode == RECORD_REF ? 2 : 1;
    uint64_t at = c->tail % RING, head = atomic_load(&c->index->head);
    size_t pad = at + lines > RING ? RING - at : 0;
    if (lines + pad > RING - (c->tail - head)) {
        return false;
    }
    if (pad != 0) {
        struct record *p = (struct record *)(c->ring + at * RECORD_LINE);
        atomic_store(&p->word, record_word(RECORD_PAD, 0, pad, record_tag(c->tail, RING - 1)));
        c->tail += pad;
        at = 0;
    }
    struct record *to = (struct record *)(c->ring + at * RECORD_LINE);
    size_t known = mode == RECORD_INLINE ? offsetof(struct record, data)
                   : mode == RECORD_REF  ? offsetof(struct record, address) + 8
                                         : RECORD_LINE;
    memcpy((uint8_t *)to + 4, (const uint8_t *)r + 4, known - 4);
    if (mode == RECORD_INLINE) {
        memcpy(to->data, payload, bytes);
    }
    size_t inside = mode == RECORD_INLINE ? bytes : 0;
    atomic_store(&to->word, record_word(mode, inside, lines, record_tag(c->tail, RING - 1)));
    c->tail += lines;
    hostile_tell(&theirs, slot_index);
    return true;
}

/* Hands payload over cell by cell, as long as the NIC takes it. */
static void feed(struct channel *c, const uint8_t *payload, size_t n)
{
    for (size_t done = 0; done < n; done += CELL) {
        if (c->cells_tail - atomic_load(&c->index->cells_head) >= 2) {
            look();
        }
        if (c->cells_tail - atomic_load(&c->index->cells_head) >= 2) {
            return;
        }
        size_t here = n - done < CELL ? n - done : CELL;
        memcpy(c->cells + (c->cells_tail & 1) * CELL, payload + done, here);
        atomic_store(&c->index->cells_tail, ++c->cells_tail);
        hostile_tell(&theirs, slot_index);
    }
}

static uint64_t odd_number(uint8_t which, bool offset)
{
    static const uint64_t numbers[16] = {0, 8, 1,   16,   32,   64,   200,        256,
                                         4, 2, 257, 1000, 4090, ROOM, 1ull << 40, ~0ull};
    uint64_t v = numbers[which % 16];
    return offset || which < 128 ? v : v + which % 7;
}

static uint8_t fault(uint8_t byte, uint8_t right, uint8_t modulus)
{
    return byte < 200 ? right : byte % modulus;
}

/* A header of the input's choosing, more often than not one that makes sense. */
static struct message any_header(struct input *in)
{
    struct message m = {.type = next(in) % 9};
    m.ni = fault(next(in), 2, 6);
    m.ack = m.type >= MESSAGE_ACK ? fault(next(in), 0, 12) : next(in) % 5;
    m.pt_index = (uint16_t)(PT_PLAIN + next(in) % 6);
    m.op = next(in) % (PTL_OP_LAST + 1);
    m.datatype = next(in) % (PTL_DATATYPE_LAST + 1);
    uint8_t c = next(in);
    m.cookie = c % 4 == 0 ? 0 : c % 4 == 1 ? c : cookies[c / 4 % 4];
    m.silent = next(in) % 2;
    m.length = odd_number(next(in), false);
    m.remote_offset = odd_number(next(in), true);
    m.match_bits = next(in) % 4;
    m.rank = next(in);
    return m;
}

/* Makes an atomic of it that is legal, so that more than its header is looked at. */
static void make_legal(struct message *m, uint8_t how)
{
    static const uint8_t types[] = {PTL_INT8_T, PTL_UINT16_T, PTL_INT32_T, PTL_UINT64_T};
    static const uint8_t sizes[] = {1, 2, 4, 8};
    bool fetch = m->type == MESSAGE_FETCH;
    m->op %= fetch ? PTL_OP_LAST : PTL_SWAP;
    m->datatype = types[how % 4];
    m->length = sizes[how % 4] * (m->op > PTL_SWAP ? 1 : m->length % 32);
    m->ack = fetch || m->cookie == 0 ? PTL_NO_ACK_REQ : PTL_ACK_REQ;
    m->cookie = fetch ? 7 : m->ack == PTL_NO_ACK_REQ ? 0 : m->cookie;
}

static size_t operand_size(const struct message *m)
{
    return m->type == MESSAGE_FETCH && m->op > PTL_SWAP ? m->length : 0;
}

static void send_message(struct input *in)
{
    static uint8_t payload[ROOM];
    struct message m = any_header(in);
    uint8_t how = next(in), fill = next(in);
    bool legal = fill < 160 && (m.type == MESSAGE_ATOMIC || m.type == MESSAGE_FETCH);
    if (legal) {
        make_legal(&m, how);
    }
    unsigned class = m.type >= MESSAGE_ACK ? FABRIC_RESPONSE : FABRIC_REQUEST;
    class = how >= 250 ? 1 - class : class;
    class = how >= 190 && how < 230 ? (unsigned)FABRIC_ASK : class;
    struct record r = {0};
    bool bare = m.type == MESSAGE_GET || m.type == MESSAGE_ACK || m.type >= MESSAGE_ACKS;
    uint64_t n = bare ? 0 : m.length;
    if (legal) {
        n += operand_size(&m);
    } else if (how % 8 == 7) {
        n = odd_number(fill, false);
    } else if (how % 8 >= 4 && m.type == MESSAGE_FETCH) {
        n += odd_number(fill % 8, false); /* an operand, or not quite */
    }
    for (size_t i = 0; i < sizeof(payload); i++) {
        payload[i] = (uint8_t)(fill + i % 5);
    }
    memcpy(r.header, &m, sizeof(m));
    atomic_store(&r.status, how % 32 == 31);
    if (n <= 200) {
        publish(&channel[class], &r, RECORD_INLINE, n, payload);
        return;
    }
    r.length = n;
    r.address = fill % 4 == 0 ? 8 : (uintptr_t)payload;
    bool reference = how / 32 % 2 == 1;
    if (publish(&channel[class], &r, reference ? RECORD_REF : RECORD_CELLS, 0, NULL) &&
        !reference) {
        feed(&channel[class], payload, n < sizeof(payload) ? n : sizeof(payload));
    }
}

/* The slot that the NIC has in the hostile segment, or NULL. */
static struct slot *nic_slot(void)
{
    struct segment_header *h = (struct segment_header *)own.base;
    for (unsigned i = 0; i < 2; i++) {
        if (atomic_load(&h->owner[i]) == ((uint64_t)self.phys.nid << 32 | self.phys.pid)) {
            return (struct slot *)(own.base + SEGMENT_SLOTS_AT + i * h->info.slot_bytes);
        }
    }
    return NULL;
}

/* Takes out what the NIC has sent, and notes the cookies of its requests. */
static void take_out(void)
{
    struct slot *s = nic_slot();
    for (unsigned c = 0; s != NULL && c < FABRIC_CLASSES; c++) {
        uint8_t *ring = slot_ring(s, c, RING);
        for (int n = 0; n < RING; n++) {
            struct record *r = (struct record *)(ring + own_head[c] % RING * RECORD_LINE);
            uint32_t word = atomic_load(&r->word);
            if ((word & RECORD_TAG) != record_tag(own_head[c], RING - 1) ||
                record_lines(word) == 0) {
                break;
            }
            const struct message *m = (const struct message *)r->header;
            if (c == FABRIC_REQUEST && record_mode(word) != RECORD_PAD && m->cookie != 0) {
                cookies[cookie_count++ % 4] = m->cookie;
            }
            own_head[c] += record_lines(word);
            atomic_store(&s->channel[c].head, own_head[c]);
        }
        atomic_store(&s->channel[c].cells_head, atomic_load(&s->channel[c].cells_tail));
    }
}

/* The NIC sends something itself. */
static void initiate(struct input *in)
{
    static uint64_t operand[4];
    uint8_t what = next(in), n = next(in);
    ptl_handle_md_t d = what & 8 ? parts_md : md;
    size_t length = 8 * (size_t)(1 + n % 30);
    switch (what % 5) {
    case 0:
        MUST(PtlPut(d, 0, length * 4, what & 16 ? PTL_ACK_REQ : PTL_NO_ACK_REQ, hostile, PT_PLAIN,
                    0, 0, NULL, 0) == PTL_OK);
        break;
    case 1:
        MUST(PtlGet(d, 0, length * 4, hostile, PT_PLAIN, 0, 0, NULL) == PTL_OK);
        break;
    case 2:
        MUST(PtlAtomic(d, 0, length, PTL_ACK_REQ, hostile, PT_PLAIN, 0, 0, NULL, 0, PTL_SUM,
                       PTL_INT64_T) == PTL_OK);
        break;
    case 3:
        MUST(PtlFetchAtomic(d, 2048, d, 0, length, hostile, PT_PLAIN, 0, 0, NULL, 0, PTL_SUM,
                            PTL_INT64_T) == PTL_OK);
        break;
    default:
        MUST(PtlSwap(d, 2048, d, 0, 8, hostile, PT_PLAIN, 0, 0, NULL, 0, operand, PTL_CSWAP,
                     PTL_INT64_T) == PTL_OK);
    }
}

/* The target's program appends and searches. */
static void administrate(struct input *in)
{
    uint8_t what = next(in);
    ptl_pt_index_t pt = what & 1 ? PT_OVERFLOW : PT_ONCE;
    ptl_me_t me = entry(entry_memory + GUARD, what & 2 ? ROOM : 100,
                        (what & 4 ? PTL_ME_USE_ONCE : 0) | (what & 8 ? PTL_ME_MANAGE_LOCAL : 0) |
                            (what & 16 ? PTL_ME_NO_TRUNCATE : 0) |
                            (what & 32 ? PTL_ME_LOCAL_INC_UH_RLENGTH : 0));
    me.min_free = what & 64 ? 64 : 0;
    if (what & 128) {
        MUST(PtlMESearch(ni, pt, &me, what & 2 ? PTL_SEARCH_DELETE : PTL_SEARCH_ONLY, NULL) ==
             PTL_OK);
    } else {
        append(pt, PTL_PRIORITY_LIST, &me);
    }
}

/* Bytes anywhere in the rings and cells of either segment. */
static void vandalise(struct input *in)
{
    uint8_t where = next(in);
    size_t at = (size_t)next(in) << 4, n = next(in) % 8;
    struct slot *s = where & 1 ? nic_slot() : slot;
    for (size_t i = 0; s != NULL && i < n; i++) {
        ((uint8_t *)s)[(where & 2 ? SLOT_HEADER_BYTES : 0) + (at + i) % 4096] = next(in);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    hostile_options();
    memset(entry_memory, 0xa5, sizeof(entry_memory));
    memset(md_memory, 0xa5, sizeof(md_memory));
    served = 0;
    open_nic();
    attach();
    look();
    for (int n = 0; in.size != 0 && n < ACTIONS_MAX; n++) {
        uint8_t action = next(&in);
        if (action < 140) {
            send_message(&in);
        } else if (action < 180) {
            initiate(&in);
            if (action % 2 == 0) {
                take_out();
            }
        } else if (action < 210) {
            take_out();
        } else if (action < 240) {
            administrate(&in);
        } else if (action < 252) {
            look_at_flow();
        } else {
            vandalise(&in);
        }
        look();
        check_guards();
    }
    atomic_store(&slot->ready, SLOT_LEFT);
    hostile_tell(&theirs, slot_index);
    look();
    still_serves();
    check_guards();
    unlink(own.path);
    hostile_unmap(&own);
    hostile_unmap(&theirs);
    PtlNIFini(ni);
    PtlFini();
    return 0;
}

/* Actions that make sense most of the time. */
size_t fuzz_seed(uint64_t number, uint8_t *data, size_t max)
{
    size_t n = 0;
    uint64_t z = number;
    while (n < max && n < 32 + number % 600) {
        z = (z + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
        data[n++] = (uint8_t)(z >> 40);
    }
    return n;
}
