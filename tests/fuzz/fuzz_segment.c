/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes everything that a NIC reads from shared memory.
 *
 * First half of the inputs: a hostile peer of our own uid claims a slot of a live
 * NIC's segment and writes what the input says into rings, cells, indices,
 * identity and the doorbell line, again and again while the NIC looks.
 * Second half: the hostile peer's own segment; its header, then what our channel
 * to it would read. In both the NIC must go on serving itself afterwards.
 *
 * An input is a list of writes: where (1), offset (2), length (1), bytes.
 */
#include "fuzz.h"

#include "hostile.h"

#include <string.h>
#include <unistd.h>

#define TARGET_PT 5
#define LOOKS 3

static ptl_handle_ni_t ni;
static ptl_handle_ct_t ct;
static ptl_handle_md_t md;
static ptl_process_t self;
static uint8_t memory[8192];

static void open_nic(void)
{
    ptl_pt_index_t pt;
    ptl_handle_me_t entry;
    MUST(PtlInit() == PTL_OK);
    MUST(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                   &ni) == PTL_OK);
    MUST(PtlGetPhysId(ni, &self) == PTL_OK);
    MUST(PtlCTAlloc(ni, &ct) == PTL_OK);
    MUST(PtlPTAlloc(ni, 0, PTL_EQ_NONE, TARGET_PT, &pt) == PTL_OK);
    ptl_me_t me = {.start = memory,
                   .length = sizeof(memory),
                   .ct_handle = ct,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_OP_GET | PTL_ME_EVENT_CT_COMM,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .ignore_bits = ~0ull};
    MUST(PtlMEAppend(ni, pt, &me, PTL_PRIORITY_LIST, NULL, &entry) == PTL_OK);
    ptl_md_t all = {NULL, PTL_SIZE_MAX, PTL_MD_EVENT_SEND_DISABLE, PTL_EQ_NONE, PTL_CT_NONE};
    MUST(PtlMDBind(ni, &all, &md) == PTL_OK);
}

static void close_nic(void)
{
    PtlNIFini(ni);
    PtlFini();
}

static void look(void)
{
    ptl_ct_event_t value;
    for (int i = 0; i < LOOKS; i++) {
        MUST(PtlCTGet(ct, &value) == PTL_OK);
    }
}

/* The NIC still serves: a put to itself arrives. What hostile messages counted
 * meanwhile is no concern. */
static void still_serves(void)
{
    static uint64_t number;
    uint64_t from = ++number * 0x9e3779b97f4a7c15ull, to = 0;
    for (int i = 0; i < 200000 && to != from; i++) {
        if (i % 1000 == 0) {
            MUST(PtlPut(md, (ptl_size_t)(uintptr_t)&from, 8, PTL_NO_ACK_REQ, self, TARGET_PT, 0, 64,
                        NULL, 0) == PTL_OK);
        }
        look();
        memcpy(&to, memory + 64, 8);
    }
    MUST(to == from);
}

/* Carries out one write of the input; false at its end. */
static bool next_write(struct mapping *m, uint8_t *slot, size_t slot_bytes, const uint8_t **data,
                       size_t *size)
{
    struct segment_header *h = (struct segment_header *)m->base;
    if (*size < 4) {
        return false;
    }
    const uint8_t *d = *data;
    size_t offset = (size_t)d[1] << 8 | d[2], length = d[3];
    uint8_t *area = slot;
    size_t room = slot_bytes;
    switch (d[0] % 8) {
    case 0: /* the slot's identity and indices */
        room = SLOT_HEADER_BYTES;
        break;
    case 1: /* the doorbell line and the owners */
        area = (uint8_t *)&h->doorbell;
        room = sizeof(*h) - offsetof(struct segment_header, doorbell);
        m->vandalised = true;
        break;
    case 2: /* the start of the ring of requests; of responses, of asks */
        area = slot + SLOT_HEADER_BYTES;
        room = 256;
        break;
    case 3:
        area = slot_ring((struct slot *)slot, 1 + d[3] % 2, h->info.ring_lines % 65536);
        room = 256;
        break;
    default:
        break;
    }
    *data += 4;
    *size -= 4;
    length = length < *size ? length : *size;
    if (area < slot && area < m->base) {
        return true;
    }
    offset %= room;
    length = length < room - offset ? length : room - offset;
    if (area + offset + length <= m->base + m->bytes) {
        memcpy(area + offset, *data, length);
    }
    *data += length;
    *size -= length;
    return true;
}

static void hostile_sender(const uint8_t *data, size_t size)
{
    struct mapping m = {.vandalised = false};
    unsigned index;
    hostile_open(&m, self);
    struct slot *slot = hostile_claim(&m, self, &index);
    size_t bytes = ((struct segment_header *)m.base)->info.slot_bytes;
    atomic_store(&slot->ready, SLOT_READY);
    while (next_write(&m, (uint8_t *)slot, bytes, &data, &size)) {
        hostile_tell(&m, index);
        look();
    }
    atomic_store(&slot->ready, SLOT_LEFT);
    hostile_tell(&m, index);
    look();
    if (!m.vandalised) {
        still_serves();
    }
    hostile_unmap(&m);
}

static void hostile_receiver(const uint8_t *data, size_t size)
{
    struct mapping m = {.vandalised = false};
    hostile_make(&m, self);
    if (size > 2 && data[0] % 2 == 0) { /* else the header stays right */
        size_t at = data[1] % sizeof(struct segment_info);
        m.base[at] ^= data[2];
    }
    ptl_process_t hostile = {.phys = {self.phys.nid, HOSTILE_PID}};
    size_t slot_bytes = ((struct segment_header *)m.base)->info.slot_bytes;
    static uint8_t payload[4096];
    for (int i = 0; i < 4; i++) {
        MUST(PtlPut(md, (ptl_size_t)(uintptr_t)payload, i % 2 ? 8 : 700, PTL_OC_ACK_REQ, hostile,
                    TARGET_PT, 0, 0, NULL, 0) == PTL_OK);
        look();
        next_write(&m, m.base + SEGMENT_SLOTS_AT, slot_bytes, &data, &size);
        look();
    }
    still_serves();
    unlink(m.path);
    hostile_unmap(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    hostile_options();
    if (size == 0) {
        return 0;
    }
    open_nic();
    if (data[0] % 4 != 3) {
        hostile_sender(data + 1, size - 1);
    } else {
        hostile_receiver(data + 1, size - 1);
    }
    close_nic();
    return 0;
}

/* A well-formed put or get, inline or through cells, as a sender would write it. */
size_t fuzz_seed(uint64_t number, uint8_t *data, size_t max)
{
    if (max < 512) {
        return 0;
    }
    size_t n = 0;
    data[n++] = (uint8_t)number;
    struct record r = {0};
    bool cells = number % 3 == 1;
    uint8_t header[FABRIC_HEADER] = {
        [0] = number % 3 == 2 ? 2 : 1, [1] = 2, [2] = 1, [4] = TARGET_PT, [8] = 1,
        [16] = cells ? 200 : 8};
    memcpy(r.header, header, sizeof(header));
    r.length = cells ? 200 : 0x1122334455667788;
    const uint32_t tag = record_tag(0, 1);
    uint32_t word = cells             ? record_word(RECORD_CELLS, 0, 1, tag)
                    : number % 3 == 2 ? record_word(RECORD_INLINE, 0, 1, tag)
                                      : record_word(RECORD_INLINE, 8, 1, tag);
    if (number % 3 == 2) {
        r.header[16] = 100; /* a get of 100 bytes */
    }
    /* Payload first, then the record's body, then its word. */
    if (cells) {
        uint16_t at = offsetof(struct slot, channel) + offsetof(struct channel_index, cells_tail);
        uint8_t tail[] = {0, (uint8_t)(at >> 8), (uint8_t)at, 8, 1, 0, 0, 0, 0, 0, 0, 0};
        memcpy(data + n, tail, sizeof(tail));
        n += sizeof(tail);
    }
    uint8_t where[] = {2, 0, 8, 56};
    memcpy(data + n, where, 4);
    memcpy(data + n + 4, (uint8_t *)&r + 8, 56);
    n += 60;
    uint8_t first[] = {2, 0, 0, 4};
    memcpy(data + n, first, 4);
    memcpy(data + n + 4, &word, 4);
    return n + 8;
}
