/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A byte histogram and a count of chosen words, taken from a text while it passes
 * the NIC. The program behind it never holds the text.
 *
 *      text      |   message 0   |   message 1   |   message 2   | ...
 *      packets   |  p0 |  p1 |p2 |
 *                 head│...│tail      words inside a packet are counted by its handler
 *                              words over an edge, once the two sides meet
 *
 * Packets of a message may be handled in any order and in parallel. So a packet
 * never waits for its neighbour: its handler counts the words that lie inside
 * and notes the two fragments at the edges. `struct textscan_edges` describes
 * any stretch of text in this way, and two that touch can be joined, in any
 * grouping (textscan_join() is associative): the completion handler joins the
 * packets of its message, the host the messages of the text.
 *
 * A word is a longest possible run of ASCII letters, digits and bytes from 0x80
 * (so that UTF-8 letters do not end one). Case does not matter for ASCII letters.
 *
 * Slots. A stream may have several messages in flight, each at an entry of its
 * own (a slot, with HPU memory of its own); a slot takes one message at a time:
 * the sender waits for the ack of the last one. Totals are kept per slot.
 * Each message says with its hdr_data which one of the text it is.
 */
#ifndef HANDLERS_TEXTSCAN_H
#define HANDLERS_TEXTSCAN_H

#include "portals4.h"
#include "spin.h"

enum {
    TEXTSCAN_WORDS = 16,    /* words of a filter */
    TEXTSCAN_WORD_MAX = 31, /* bytes of one */
    TEXTSCAN_PACKETS = 256, /* packets of one message */
    TEXTSCAN_SLOTS = 4      /* messages in flight */
};

/* A piece of a word, in lower case. TEXTSCAN_WORD_MAX + 1: longer than any word
 * of a filter, the bytes do not matter. */
struct textscan_fragment {
    uint8_t length;
    uint8_t byte[TEXTSCAN_WORD_MAX];
};

/* A stretch of text as its neighbours see it. `whole`: all of it is `head`, the
 * empty text included, which is all zeros but for `whole`. */
struct textscan_edges {
    uint32_t whole;
    struct textscan_fragment head; /* before the first byte that is in no word */
    struct textscan_fragment tail; /* behind the last such byte */
};

struct textscan_filter {
    uint32_t count;
    uint32_t lengths;  /* bit n: a word of n bytes is among them */
    uint64_t first[4]; /* bit c: one that begins with c, in lower case */
    struct textscan_fragment word[TEXTSCAN_WORDS];
};

struct textscan_totals {
    uint64_t bytes[256];
    uint64_t words[TEXTSCAN_WORDS];
    uint64_t packets;
    uint64_t messages;
};

/* HPU memory of a slot. */
struct textscan_state {
    /* set by the host */
    uint64_t packet_size;
    uint64_t totals_at; /* where results go in the handler host memory */
    uint64_t edges_at;
    struct textscan_filter filter;
    /* of the message in progress, by its header handler */
    uint64_t message;
    uint64_t length;
    /* of all messages so far */
    struct textscan_totals totals;
    struct textscan_edges edges[TEXTSCAN_PACKETS];
};

_Static_assert(sizeof(struct textscan_fragment) == 32, "handlers and host agree on it");
_Static_assert(sizeof(struct textscan_edges) == 68, "handlers and host agree on it");

/* ---- Handlers ---- */

int textscan_header(const ptl_header_t h, void *state);
int textscan_payload(const ptl_payload_t p, void *state);
int textscan_completion(ptl_size_t dropped_bytes, bool flow_control_triggered, void *state);

/* ---- For handlers and host ---- */

/* textscan_stretch() describes `length` bytes of text in *edges and adds the
 * words inside to counts[]. */
void textscan_stretch(const struct textscan_filter *filter, const uint8_t *text, uint64_t length,
                      uint64_t *counts, struct textscan_edges *edges);

/* textscan_join() makes *left describe itself followed by *right, and counts the
 * word that this completes. */
void textscan_join(const struct textscan_filter *filter, struct textscan_edges *left,
                   const struct textscan_edges *right, uint64_t *counts);

/* textscan_end() counts the words at the two ends of a text that has no
 * neighbours. */
void textscan_end(const struct textscan_filter *filter, const struct textscan_edges *edges,
                  uint64_t *counts);

/* ---- Host ---- */

enum textscan_refusal {
    TEXTSCAN_ADDED,
    TEXTSCAN_EMPTY,
    TEXTSCAN_LONG,  /* longer than TEXTSCAN_WORD_MAX */
    TEXTSCAN_BYTE,  /* holds a byte that is in no word */
    TEXTSCAN_TWICE, /* is there already, but for the case of letters */
    TEXTSCAN_FULL   /* TEXTSCAN_WORDS are there */
};

/* textscan_add() adds a word of `length` bytes to a filter, which begins as
 * zeros. */
enum textscan_refusal textscan_add(struct textscan_filter *filter, const char *word,
                                   uint64_t length);

/* textscan_host_size() is the size of the handler host memory, zeroed at first,
 * that all slots of a text of `messages` messages share. */
uint64_t textscan_host_size(uint64_t messages);

/* textscan_handlers() fills in the handlers of slot `slot`. `memory` is HPU
 * memory of sizeof(struct textscan_state) bytes for this slot alone, `packet`
 * max_payload_size of PtlSpinLimits(); *state must last until the entry is
 * appended. No message may have more than TEXTSCAN_PACKETS packets: it ends with
 * PTL_NI_HANDLER_FAIL. */
void textscan_handlers(uint64_t slot, const struct textscan_filter *filter, uint64_t packet,
                       ptl_handle_hpu_mem_t memory, void *host, uint64_t messages,
                       struct textscan_state *state, ptl_handlers_t *handlers);

/* textscan_result() puts together what the handlers left in the host memory
 * after the last of `messages` messages. */
void textscan_result(const void *host, uint64_t messages, const struct textscan_filter *filter,
                     struct textscan_totals *result);

#endif
