/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What others send to a process with libpinwheel-rma, on an interface that is played here: bytes of
 * keys, messages to the handlers of pairs, and events of notified messages. The first byte of an
 * input says which. What must hold:
 *
 * - a key, or a message of the socket for memory, that is accepted is what its bytes say, with none
 * of them ignored;
 * - handlers touch the message's range of the region and its packet only, refuse what they do not
 *   know, and leave the old values in the packet;
 * - each notice of a region that is there is kept, and taken the oldest first of those that fit,
 *   as a plain list has them; portal table entries that flow control closed are opened again.
 */
#include "fuzz.h"

#include "../../lib/rma/call.h"
#include "../../lib/rma/inside.h"
#include "../../lib/rma/pairs.h"
#include "spin_handler.h"

#include <string.h>

enum { REGION = 8192, EVENTS_MAX = 64, REGIONS = 3, MODEL = PW_NOTIFY_ROOM + 4 * EVENTS_MAX };

static const uint8_t *input;
static size_t left;

static uint8_t next(void)
{
    return left > 0 ? (left--, *input++) : 0;
}

static uint64_t word(void)
{
    uint64_t w = 0;
    for (int i = 0; i < 8; i++) {
        w = w << 8 | next();
    }
    return w;
}

/* ---- Keys ---- */

static void keys(void)
{
    unsigned char bytes[PW_RMA_KEY], again[PW_RMA_KEY];
    struct key key, same;
    for (unsigned i = 0; i < sizeof(bytes); i++) {
        bytes[i] = next();
    }
    size_t size = next() % 4 == 0 ? next() % (PW_RMA_KEY + 1) : PW_RMA_KEY;
    int rc = wire_read(bytes, size, &key);
    MUST(rc == 0 || rc == -EPROTO || rc == -EBADMSG);
    /* the same with the right beginning and sum, as a forger would send it */
    wire_write(again, &key);
    MUST(rc != 0 || (size == PW_RMA_KEY && memcmp(again, bytes, PW_RMA_KEY) == 0));
    if (rc != -EPROTO) {
        rc = wire_read(again, PW_RMA_KEY, &same);
        MUST(rc != -EPROTO);
        MUST(rc != 0 || (same.length == key.length && same.bits == key.bits &&
                         same.notify_pt == key.notify_pt && same.pt == key.pt));
    }
}

/* What goes over the socket by which memory is handed over. */
static void handed(void)
{
    unsigned char bytes[64], again[64];
    struct ask ask;
    struct answer answer;
    for (unsigned i = 0; i < sizeof(bytes); i++) {
        bytes[i] = next();
    }
    size_t size = next() % 4 == 0 ? next() % sizeof(bytes) : ASK_BYTES;
    if (ask_read(bytes, size, &ask)) {
        ask_write(again, &ask);
        MUST(size == ASK_BYTES && memcmp(again, bytes, ASK_BYTES) == 0);
    }
    struct call_head head; /* and a two-sided message */
    unsigned char message[sizeof(head) + 64];
    memcpy(message, bytes, sizeof(bytes));
    if (next() % 2 == 0) {
        memcpy(&head, message, sizeof(head));
        head.magic = CALL_MAGIC;
        head.version = CALL_VERSION;
        head.slot %= 2 * CALL_SLOTS;
        head.fetches %= 3;
        head.length %= 128;
        memcpy(message, &head, sizeof(head));
    }
    size_t length = next() % (sizeof(message) + 1);
    if (call_read(message, length, &head)) {
        MUST(length == sizeof(head) + head.length && head.slot < CALL_SLOTS);
    }
    size = size == ASK_BYTES ? ANSWER_BYTES : size;
    if (answer_read(bytes, size, &answer)) {
        answer_write(again, &answer);
        MUST(size == ANSWER_BYTES && memcmp(again, bytes, ANSWER_BYTES) == 0 && answer.code <= 0);
    }
}

/* ---- Handlers ---- */

static ptl_header_t header;
static uint8_t region[REGION], before[REGION];

int PtlSpinLimits(ptl_handle_ni_t ni, ptl_spin_limits_t *limits)
{
    (void)ni;
    memset(limits, 0, sizeof(*limits));
    limits->num_hpus = 2;
    return PTL_OK;
}

int PtlHandlerHeader(ptl_header_t *h)
{
    *h = header;
    return PTL_OK;
}

static void in_message(ptl_size_t offset, ptl_size_t length)
{
    MUST(offset >= header.offset && length <= header.length &&
         offset - header.offset <= header.length - length);
}

int PtlHandlerDMAFromHostB(ptl_size_t offset, void *local, ptl_size_t length, unsigned int options)
{
    MUST(options == PTL_ME_HOST_MEM);
    in_message(offset, length);
    memcpy(local, region + offset, length);
    return PTL_OK;
}

int PtlHandlerDMAToHostB(const void *local, ptl_size_t offset, ptl_size_t length,
                         unsigned int options)
{
    MUST(options == PTL_ME_HOST_MEM);
    in_message(offset, length);
    memcpy(region + offset, local, length);
    return PTL_OK;
}

static void fill(uint8_t *bytes, size_t length)
{
    uint8_t one = next();
    for (size_t i = 0; i < length; i++) {
        bytes[i] = i % 5 == 0 ? (uint8_t)(one * i) : one;
    }
}

/* The interface brings atomic messages of one packet, whose range lies in the region. */
static void handlers(void)
{
    ptl_handlers_t h;
    MUST(pairs_handlers(0, next(), &h) == PTL_OK);
    MUST(h.hpu_mask != 0 && (h.hpu_mask & (h.hpu_mask - 1)) == 0);
    memset(&header, 0, sizeof(header));
    header.type = (ptl_request_type_t)(next() % 6);
    header.length = (word() & 0xffff) % (ATOMIC_MOST + 1);
    header.length -= next() % 4 != 0 ? header.length % 32 : 0;
    header.offset = word() % (REGION - header.length + 1);
    header.hdr_data =
        next() % 4 == 0 ? word() : pairs_call(next() % 20, PW_RMA_FLOAT_INT + next() % 9);
    fill(region, REGION);
    memcpy(before, region, REGION);
    uint8_t *packet = malloc(header.length + 1); /* exact, for the sanitizer */
    MUST(packet != NULL);
    fill(packet, header.length);
    int code = h.header_handler(header, NULL);
    MUST(code == PROCESS_DATA || code == FAIL);
    ptl_payload_t payload = {header.length, 0, packet};
    if (code == PROCESS_DATA) {
        unsigned op = header.hdr_data & 0xff, type = header.hdr_data >> 8 & 0xff;
        MUST(op >= PW_RMA_REPLACE && op <= PW_RMA_MAXLOC);
        MUST(type >= PW_RMA_FLOAT_INT && type <= PW_RMA_DOUBLE_DOUBLE);
        MUST(h.payload_handler(payload, NULL) == SUCCESS);
        MUST(memcmp(packet, before + header.offset, header.length) == 0);
        MUST(op != PW_RMA_NO_OP || memcmp(region, before, REGION) == 0);
    } else {
        h.payload_handler(payload, NULL); /* it is not called then; it must be safe all the same */
    }
    free(packet);
}

/* ---- Notices ---- */

static ptl_event_t events[EVENTS_MAX];
static unsigned waiting, disabled;

int PtlEQAlloc(ptl_handle_ni_t ni, ptl_size_t count, ptl_handle_eq_t *eq)
{
    (void)ni;
    *eq = 5;
    return count >= PW_NOTIFY_UNSEEN ? PTL_OK : PTL_NO_SPACE;
}

int PtlEQFree(ptl_handle_eq_t eq)
{
    return eq == 5 ? PTL_OK : PTL_ARG_INVALID;
}

int PtlEQGet(ptl_handle_eq_t eq, ptl_event_t *event)
{
    if (eq != 5 || waiting == 0) {
        return PTL_EQ_EMPTY;
    }
    *event = events[0];
    waiting--;
    memmove(events, events + 1, waiting * sizeof(events[0]));
    return PTL_OK;
}

int PtlEQWait(ptl_handle_eq_t eq, ptl_event_t *event)
{
    return PtlEQGet(eq, event);
}

int PtlEQPoll(const ptl_handle_eq_t *eqs, unsigned size, ptl_time_t timeout, ptl_event_t *event,
              unsigned *which)
{
    (void)timeout;
    *which = size - 1;
    return PtlEQGet(eqs[0], event);
}

int PtlPTAlloc(ptl_handle_ni_t ni, unsigned options, ptl_handle_eq_t eq, ptl_pt_index_t wanted,
               ptl_pt_index_t *pt)
{
    (void)ni;
    (void)wanted;
    *pt = 1;
    return (options & PTL_PT_FLOWCTRL) != 0 && eq == 5 ? PTL_OK : PTL_PT_EQ_NEEDED;
}

int PtlPTFree(ptl_handle_ni_t ni, ptl_pt_index_t pt)
{
    (void)ni;
    return pt == 1 ? PTL_OK : PTL_ARG_INVALID;
}

int PtlPTEnable(ptl_handle_ni_t ni, ptl_pt_index_t pt)
{
    (void)ni;
    MUST(pt == 1 && disabled == 1);
    disabled = 0;
    return PTL_OK;
}

int PtlMEAppend(ptl_handle_ni_t ni, ptl_pt_index_t pt, const ptl_me_t *me, ptl_list_t list,
                void *user_ptr, ptl_handle_me_t *handle)
{
    (void)ni;
    (void)user_ptr;
    *handle = 9;
    /* the entry for the rest lets nobody do anything */
    MUST(pt == 1 && list == PTL_OVERFLOW_LIST &&
         (me->options & (PTL_ME_OP_PUT | PTL_ME_OP_GET)) == 0);
    return PTL_OK;
}

int PtlMEUnlink(ptl_handle_me_t me)
{
    return me == 9 ? PTL_OK : PTL_ARG_INVALID;
}

static struct pw_rma rma;
static struct rail rail;
static struct pw_rma_region regions[REGIONS];
static bool there[REGIONS];
static struct {
    unsigned region;
    struct pw_notice is;
} model[MODEL];
static unsigned modelled;

/* An event goes to the model when the library looks at it. */
static void come(void)
{
    unsigned r = next() % REGIONS;
    uint8_t how = next();
    if (waiting == EVENTS_MAX || modelled + 2 * EVENTS_MAX > MODEL) {
        return;
    }
    ptl_event_t e = {.match_bits = notify_bits(regions[r].bits) | (next() % 3),
                     .type = how % 3 == 0 ? PTL_EVENT_GET : PTL_EVENT_PUT,
                     .remote_offset = next(),
                     .mlength = next(),
                     .initiator.phys = {next() % 3u, next() % 2u}};
    e.ni_fail_type = how % 16 == 15 ? PTL_NI_SEGV : PTL_NI_OK;
    e.match_bits ^= how % 32 == 30 ? UINT64_C(1) << next() % 64 : 0;
    if (how % 32 == 29 && disabled == 0) {
        disabled = 1;
        e = (ptl_event_t){.type = PTL_EVENT_PT_DISABLED, .ni_fail_type = PTL_NI_PT_DISABLED};
    }
    events[waiting++] = e;
}

static void look(void);

/* So many of one kind that they fill the room. */
static void burst(void)
{
    for (unsigned n = next(); n > 0; n--) {
        unsigned had = waiting;
        come();
        while (waiting > had && waiting < EVENTS_MAX && events[had].type != PTL_EVENT_PT_DISABLED) {
            events[waiting++] = events[had];
        }
        look();
    }
}

static void look(void)
{
    unsigned seen = 0;
    ptl_event_t copy[EVENTS_MAX];
    unsigned had = waiting;
    memcpy(copy, events, sizeof(copy));
    pthread_mutex_lock(&notices_queue(&rail)->lock);
    int rc = notices_look(&rail, 0);
    pthread_mutex_unlock(&notices_queue(&rail)->lock);
    MUST(rc == 0 || rc == -EAGAIN || rc == -ENOBUFS);
    MUST(rc != -EAGAIN || had == 0);
    for (; seen < had - waiting; seen++) {
        const ptl_event_t *e = &copy[seen];
        for (unsigned r = 0; r < REGIONS; r++) {
            if (there[r] && e->ni_fail_type == PTL_NI_OK &&
                e->match_bits >> TAG_BITS == notify_bits(regions[r].bits) >> TAG_BITS) {
                model[modelled].region = r;
                model[modelled++].is =
                    (struct pw_notice){.source = e->initiator,
                                       .tag = (uint32_t)(e->match_bits & PW_NOTIFY_TAG_MAX),
                                       .get = e->type == PTL_EVENT_GET,
                                       .offset = e->remote_offset,
                                       .length = e->mlength};
            }
        }
    }
    MUST(modelled <= PW_NOTIFY_ROOM);
    MUST(rc == -ENOBUFS || waiting == 0);
}

static void want(void)
{
    unsigned r = next() % REGIONS, i = 0;
    struct pw_notice wanted = {.tag = next() % 4, .source.phys = {next() % 4u, next() % 3u}}, got;
    wanted.tag = wanted.tag == 3 ? PW_NOTIFY_TAG_ANY : wanted.tag;
    wanted.source.phys.nid = wanted.source.phys.nid == 3 ? PTL_NID_ANY : wanted.source.phys.nid;
    wanted.source.phys.pid = wanted.source.phys.pid == 2 ? PTL_PID_ANY : wanted.source.phys.pid;
    if (!there[r]) {
        return;
    }
    for (; i < modelled; i++) {
        const struct pw_notice *m = &model[i].is;
        if (model[i].region == r && (wanted.tag == PW_NOTIFY_TAG_ANY || wanted.tag == m->tag) &&
            (wanted.source.phys.nid == PTL_NID_ANY ||
             wanted.source.phys.nid == m->source.phys.nid) &&
            (wanted.source.phys.pid == PTL_PID_ANY ||
             wanted.source.phys.pid == m->source.phys.pid)) {
            break;
        }
    }
    pthread_mutex_lock(&notices_queue(&rail)->lock);
    bool found = notices_take(&regions[r], &wanted, &got);
    pthread_mutex_unlock(&notices_queue(&rail)->lock);
    MUST(found == (i < modelled));
    if (found) {
        const struct pw_notice *m = &model[i].is;
        MUST(got.tag == m->tag && got.get == m->get && got.offset == m->offset &&
             got.length == m->length && got.source.phys.nid == m->source.phys.nid &&
             got.source.phys.pid == m->source.phys.pid);
        modelled--;
        memmove(&model[i], &model[i + 1], (modelled - i) * sizeof(model[0]));
    }
}

static void forget(unsigned r)
{
    unsigned kept = 0;
    notices_forget(&regions[r]);
    there[r] = false;
    for (unsigned i = 0; i < modelled; i++) {
        if (model[i].region != r) {
            model[kept++] = model[i];
        }
    }
    modelled = kept;
}

static void notices(void)
{
    memset(&rail, 0, sizeof(rail));
    memset(regions, 0, sizeof(regions));
    modelled = waiting = disabled = 0;
    MUST(notices_open(&rail) == PTL_OK && notices_pt(&rail) == 1);
    for (unsigned r = 0; r < REGIONS; r++) {
        regions[r].rma = &rma;
        regions[r].rail = &rail;
        regions[r].bits = word() << (64 - SERIAL_BITS) | (uint64_t)r << ENTRY_BITS;
        there[r] = notices_expect(&regions[r]) == 0;
        MUST(there[r]);
    }
    while (left > 0) {
        uint8_t what = next();
        for (unsigned n = what % 8 == 0 ? next() : 1; n > 0; n--) {
            if (what % 8 < 4) {
                come();
            }
        }
        if (what % 8 == 4 || what % 8 == 5) {
            look();
        } else if (what % 8 == 6) {
            want();
        } else if (what == 7) {
            burst();
        } else if (what == 255 && there[next() % REGIONS]) {
            forget(next() % REGIONS < 1 ? 0 : 1);
            there[0] = there[0] || notices_expect(&regions[0]) == 0;
            there[1] = there[1] || notices_expect(&regions[1]) == 0;
        }
    }
    for (unsigned r = 0; r < REGIONS; r++) {
        if (there[r]) {
            forget(r);
        }
    }
    look();
    MUST(modelled == 0 && disabled == 0);
    notices_close(&rail);
    MUST(rail.notices == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input = data;
    left = size;
    switch (next() % 4) {
    case 0:
        keys();
        break;
    case 3:
        handed();
        break;
    case 1:
        handlers();
        break;
    default:
        notices();
    }
    return 0;
}

/* One input of each kind: a whole key, a handler's message, and some notices. */
size_t fuzz_seed(uint64_t number, uint8_t *data, size_t max)
{
    struct key key = {.incarnation = number * UINT64_C(0x9e3779b97f4a7c15),
                      .length = number,
                      .id.phys = {1, 1},
                      .access = 1 + number % 15,
                      .max_atomic = 4096};
    key.bits = key.incarnation >> 32 << 32 | (number & 0xff) << ENTRY_BITS;
    key.access |= (number & 15) == 7 ? PW_RMA_READ : 0;
    data[0] = (uint8_t)(number % 4);
    if (number % 4 == 0 && max > PW_RMA_KEY) {
        wire_write(data + 1, &key);
        return 1 + PW_RMA_KEY;
    }
    if (number % 4 == 3 && max > ASK_BYTES) {
        ask_write(data + 1, &(struct ask){number, key.incarnation, key.bits});
        return 1 + ASK_BYTES;
    }
    size_t length = max < 600 ? max : 600;
    for (size_t i = 1; i < length; i++) {
        key.incarnation = key.incarnation * UINT64_C(6364136223846793005) + 1442695040888963407u;
        data[i] = (uint8_t)(key.incarnation >> 56);
    }
    return length;
}
