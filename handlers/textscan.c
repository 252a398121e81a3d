/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Byte histogram and word counts of a text; see textscan.h.
 *
 * No function calls libc, not even those of the host: they have loops instead of memcpy() and
 * memset(). The handler of a packet counts on its own stack, and adds its counts to the shared
 * totals at the end, with one atomic addition for each byte value that occurred: so parallel
 * handlers disturb each other little.
 */
#include "textscan.h"

#include "spin_handler.h"

enum { TOO_LONG = TEXTSCAN_WORD_MAX + 1 };

/* The handler host memory has the totals of the slots, and then the edges of each message. */
static const uint64_t edges_at = TEXTSCAN_SLOTS * sizeof(struct textscan_totals);

static inline uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static const uint8_t word_bytes[256] = {
    ['0' ... '9'] = 1, ['A' ... 'Z'] = 1, ['a' ... 'z'] = 1, [0x80 ... 0xff] = 1};

static inline bool in_word(uint8_t c)
{
    return word_bytes[c] != 0;
}

/* ---- Words and fragments ---- */

static void append(struct textscan_fragment *to, const uint8_t *text, uint64_t length)
{
    if (to->length + length > TEXTSCAN_WORD_MAX) {
        to->length = TOO_LONG;
        return;
    }
    for (uint64_t i = 0; i < length; i++) {
        to->byte[to->length + i] = lower(text[i]);
    }
    to->length = (uint8_t)(to->length + length);
}

static void count_word(const struct textscan_filter *filter, const uint8_t *text, uint64_t length,
                       uint64_t *counts)
{
    uint8_t first = lower(text[0]);
    if (length > TEXTSCAN_WORD_MAX || (filter->lengths >> length & 1) == 0 ||
        (filter->first[first / 64] >> first % 64 & 1) == 0) {
        return; /* no word begins so, as with most words of a text */
    }
    for (uint32_t w = 0; w < filter->count; w++) {
        const struct textscan_fragment *word = &filter->word[w];
        uint64_t same = 0;
        if (word->length != length) {
            continue;
        }
        while (same < length && word->byte[same] == lower(text[same])) {
            same++;
        }
        if (same == length) {
            counts[w]++;
            return;
        }
    }
}

static void count_fragment(const struct textscan_filter *filter, const struct textscan_fragment *f,
                           uint64_t *counts)
{
    if (f->length != 0 && f->length != TOO_LONG) {
        count_word(filter, f->byte, f->length, counts);
    }
}

static void clear(uint64_t *numbers, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        numbers[i] = 0;
    }
}

static void clear_edges(struct textscan_edges *edges)
{
    edges->whole = 1;
    edges->head.length = 0;
    edges->tail.length = 0;
}

void textscan_stretch(const struct textscan_filter *filter, const uint8_t *text, uint64_t length,
                      uint64_t *counts, struct textscan_edges *edges)
{
    uint64_t at = 0, start;
    clear_edges(edges);
    while (at < length && in_word(text[at])) {
        at++;
    }
    append(&edges->head, text, at);
    if (at == length) {
        return;
    }
    edges->whole = 0;
    for (;;) { /* text[at] is not part of a word */
        while (at < length && !in_word(text[at])) {
            at++;
        }
        start = at;
        while (at < length && in_word(text[at])) {
            at++;
        }
        if (at == length) {
            break;
        }
        count_word(filter, text + start, at - start, counts);
    }
    append(&edges->tail, text + start, length - start);
}

void textscan_join(const struct textscan_filter *filter, struct textscan_edges *left,
                   const struct textscan_edges *right, uint64_t *counts)
{
    struct textscan_fragment *open = left->whole ? &left->head : &left->tail;
    append(open, right->head.byte, right->head.length);
    if (right->whole) {
        return; /* the right side has no end of a word: it goes on */
    }
    if (!left->whole) {
        count_fragment(filter, open, counts); /* the word ends here */
    }
    left->whole = 0;
    left->tail = right->tail;
}

void textscan_end(const struct textscan_filter *filter, const struct textscan_edges *edges,
                  uint64_t *counts)
{
    count_fragment(filter, &edges->head, counts);
    if (!edges->whole) {
        count_fragment(filter, &edges->tail, counts);
    }
}

/* ---- Handlers ---- */

__handler int textscan_header(const ptl_header_t h, void *state)
{
    struct textscan_state *s = state;
    if (h.length > TEXTSCAN_PACKETS * s->packet_size) {
        return FAIL;
    }
    s->message = h.hdr_data;
    s->length = h.length;
    return PROCESS_DATA;
}
PTL_HANDLER(textscan_header);

static void add(uint64_t *total, uint64_t n)
{
    if (n != 0) {
        PtlHandlerFAdd(total, NULL, n);
    }
}

__handler int textscan_payload(const ptl_payload_t p, void *state)
{
    struct textscan_state *s = state;
    uint32_t bytes[256];
    uint64_t words[TEXTSCAN_WORDS];
    uint64_t packet = p.offset / s->packet_size; /* all packets but the last are full */
    if (packet >= TEXTSCAN_PACKETS) {
        return FAIL;
    }
    clear(words, TEXTSCAN_WORDS);
    for (unsigned i = 0; i < 256; i++) {
        bytes[i] = 0;
    }
    for (uint64_t i = 0; i < p.length; i++) {
        bytes[p.base[i]]++;
    }
    textscan_stretch(&s->filter, p.base, p.length, words, &s->edges[packet]);
    for (unsigned i = 0; i < 256; i++) {
        add(&s->totals.bytes[i], bytes[i]);
    }
    for (unsigned i = 0; i < TEXTSCAN_WORDS; i++) {
        add(&s->totals.words[i], words[i]);
    }
    add(&s->totals.packets, 1);
    return SUCCESS;
}
PTL_HANDLER(textscan_payload);

__handler int textscan_completion(ptl_size_t dropped_bytes, bool flow_control_triggered,
                                  void *state)
{
    struct textscan_state *s = state;
    struct textscan_edges all;
    uint64_t packets = (s->length + s->packet_size - 1) / s->packet_size;
    if (dropped_bytes != 0 || flow_control_triggered) {
        return FAIL; /* packets are missing, so their edges are those of another message */
    }
    clear_edges(&all);
    for (uint64_t i = 0; i < packets; i++) {
        textscan_join(&s->filter, &all, &s->edges[i], s->totals.words);
    }
    s->totals.messages++;
    PtlHandlerDMAToHostB(&s->totals, s->totals_at, sizeof(s->totals), PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAToHostB(&all, s->edges_at + s->message * sizeof(all), sizeof(all),
                         PTL_HANDLER_HOST_MEM);
    return SUCCESS;
}
PTL_HANDLER(textscan_completion);

/* ---- Host ---- */

enum textscan_refusal textscan_add(struct textscan_filter *filter, const char *word,
                                   uint64_t length)
{
    const uint8_t *text = (const uint8_t *)word;
    uint64_t found[TEXTSCAN_WORDS];
    clear(found, TEXTSCAN_WORDS);
    if (length == 0) {
        return TEXTSCAN_EMPTY;
    }
    for (uint64_t i = 0; i < length; i++) {
        if (!in_word(text[i])) {
            return TEXTSCAN_BYTE;
        }
    }
    if (length > TEXTSCAN_WORD_MAX) {
        return TEXTSCAN_LONG;
    }
    count_word(filter, text, length, found);
    for (uint32_t w = 0; w < filter->count; w++) {
        if (found[w] != 0) {
            return TEXTSCAN_TWICE;
        }
    }
    if (filter->count == TEXTSCAN_WORDS) {
        return TEXTSCAN_FULL;
    }
    struct textscan_fragment *to = &filter->word[filter->count++];
    to->length = 0;
    append(to, text, length);
    filter->lengths |= UINT32_C(1) << length;
    filter->first[to->byte[0] / 64] |= UINT64_C(1) << to->byte[0] % 64;
    return TEXTSCAN_ADDED;
}

uint64_t textscan_host_size(uint64_t messages)
{
    return edges_at + messages * sizeof(struct textscan_edges);
}

void textscan_handlers(uint64_t slot, const struct textscan_filter *filter, uint64_t packet,
                       ptl_handle_hpu_mem_t memory, void *host, uint64_t messages,
                       struct textscan_state *state, ptl_handlers_t *handlers)
{
    state->packet_size = packet;
    state->totals_at = slot * sizeof(struct textscan_totals);
    state->edges_at = edges_at;
    state->filter.count = filter->count;
    state->filter.lengths = filter->lengths;
    for (unsigned i = 0; i < 4; i++) {
        state->filter.first[i] = filter->first[i];
    }
    for (unsigned w = 0; w < TEXTSCAN_WORDS; w++) {
        state->filter.word[w] = filter->word[w];
    }
    *handlers = (ptl_handlers_t){
        .header_handler = textscan_header,
        .payload_handler = textscan_payload,
        .completion_handler = textscan_completion,
        .hpu_mem = memory,
        .hpu_initial_state = state,
        /* the rest of the HPU memory is zero at first, and handlers set it */
        .hpu_initial_length = offsetof(struct textscan_state, message),
        .handler_host_mem = host,
        .handler_host_length = textscan_host_size(messages),
    };
}

void textscan_result(const void *host, uint64_t messages, const struct textscan_filter *filter,
                     struct textscan_totals *result)
{
    const struct textscan_totals *slots = host;
    const struct textscan_edges *edges =
        (const struct textscan_edges *)((const uint8_t *)host + edges_at);
    struct textscan_edges all;
    clear(result->bytes, 256);
    clear(result->words, TEXTSCAN_WORDS);
    result->packets = result->messages = 0;
    for (unsigned s = 0; s < TEXTSCAN_SLOTS; s++) {
        for (unsigned i = 0; i < 256; i++) {
            result->bytes[i] += slots[s].bytes[i];
        }
        for (unsigned i = 0; i < TEXTSCAN_WORDS; i++) {
            result->words[i] += slots[s].words[i];
        }
        result->packets += slots[s].packets;
        result->messages += slots[s].messages;
    }
    clear_edges(&all);
    for (uint64_t m = 0; m < messages; m++) {
        textscan_join(filter, &all, &edges[m], result->words);
    }
    textscan_end(filter, &all, result->words);
}
