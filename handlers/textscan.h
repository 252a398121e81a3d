/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers make a byte histogram of a text, and count chosen words in it, while it passes the NIC.
 * The text is never stored in the program's memory.
 *
 *      text      |   message 0   |   message 1   |   message 2   | ...
 *      packets   |  p0 |  p1 |p2 |
 *                 head│...│tail      words inside a packet are counted by its handler
 *                              words over an edge, once the two sides meet
 *
 * The NIC may handle packets of a message in any order and in parallel. So a packet never waits for
 * its neighbour: its handler counts the words inside the packet, and stores the two fragments of
 * words at its edges. `struct textscan_edges` describes any stretch of text in this way. Two
 * stretches that follow each other can be joined, in any grouping, since textscan_join() is
 * associative: the completion handler joins the packets of its message, and the host joins the
 * messages of the text.
 *
 * A word is a longest possible sequence of ASCII letters, digits and bytes from 0x80 on (so that
 * UTF-8 letters do not end a word). The case of ASCII letters is ignored.
 *
 * Slots. A text may have several messages in flight, each at an entry of its own (a slot, with HPU
 * memory of its own). A slot takes one message at a time: the sender waits for the ack of the
 * message before. Totals are kept for each slot. The hdr_data of a message is its number in the
 * text.
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

/* A piece of a word, in lower case. Length TEXTSCAN_WORD_MAX + 1: the piece is longer than any word
 * of a filter, and its bytes are not used. */
struct textscan_fragment {
    uint8_t length;
    uint8_t byte[TEXTSCAN_WORD_MAX];
};

/* The edges of a stretch of text. If `whole` is set the stretch has no byte outside a word, and
 * `head` is all of it; the empty text is all zeros but for `whole`. */
struct textscan_edges {
    uint32_t whole;
    struct textscan_fragment head; /* piece of a word before the first byte that is in no word */
    struct textscan_fragment tail; /* piece of a word behind the last such byte */
};

struct textscan_filter {
    uint32_t count;
    uint32_t lengths;  /* bit n: a word of the filter has n bytes */
    uint64_t first[4]; /* bit c: a word of the filter begins with byte c, in lower case */
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
    /* the next fields are set by the host */
    uint64_t packet_size;
    uint64_t totals_at; /* offset of the slot's totals in the handler host memory */
    uint64_t edges_at;
    struct textscan_filter filter;
    /* the next two are set by the header handler, for the message in progress */
    uint64_t message;
    uint64_t length;
    /* results of all messages of the slot so far */
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

/* textscan_stretch() stores the edges of `length` bytes of text in *edges, and counts the words
 * inside in counts[]. */
void textscan_stretch(const struct textscan_filter *filter, const uint8_t *text, uint64_t length,
                      uint64_t *counts, struct textscan_edges *edges);

/* textscan_join() appends the stretch *right to the stretch *left, and counts the word that this
 * completes. */
void textscan_join(const struct textscan_filter *filter, struct textscan_edges *left,
                   const struct textscan_edges *right, uint64_t *counts);

/* textscan_end() counts the words at the two ends of a whole text. */
void textscan_end(const struct textscan_filter *filter, const struct textscan_edges *edges,
                  uint64_t *counts);

/* ---- Host ---- */

enum textscan_refusal {
    TEXTSCAN_ADDED,
    TEXTSCAN_EMPTY,
    TEXTSCAN_LONG,  /* longer than TEXTSCAN_WORD_MAX */
    TEXTSCAN_BYTE,  /* has a byte that no word can have */
    TEXTSCAN_TWICE, /* the filter has the word already, in whatever case */
    TEXTSCAN_FULL   /* the filter has TEXTSCAN_WORDS words */
};

/* textscan_add() adds a word of `length` bytes to a filter, which is zeroed at first. */
enum textscan_refusal textscan_add(struct textscan_filter *filter, const char *word,
                                   uint64_t length);

/* textscan_host_size() returns the size of the handler host memory that all slots of a text of
 * `messages` messages share, and that the host zeroes before. */
uint64_t textscan_host_size(uint64_t messages);

/* textscan_handlers() fills in the handlers of slot `slot`. `memory` is HPU
 * memory of sizeof(struct textscan_state) bytes for this slot alone, `packet`
 * max_payload_size of PtlSpinLimits(); *state must last until the entry is
 * appended. No message may have more than TEXTSCAN_PACKETS packets: it ends with
 * PTL_NI_HANDLER_FAIL. */
void textscan_handlers(uint64_t slot, const struct textscan_filter *filter, uint64_t packet,
                       ptl_handle_hpu_mem_t memory, void *host, uint64_t messages,
                       struct textscan_state *state, ptl_handlers_t *handlers);

/* textscan_result() adds up what the handlers have left in the host memory, after the last of
 * `messages` messages. */
void textscan_result(const void *host, uint64_t messages, const struct textscan_filter *filter,
                     struct textscan_totals *result);

#endif
