/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists across ranks; see chain.h. A handler writes an item before the list's head leads to it, and
 * writes the item's link once, after the swap has returned it. So a reader that follows links finds
 * only complete items, and waits for nothing but a link.
 */
#include "chain.h"

#include "bytes.h"
#include "spin_handler.h"

/* How often a handler makes a call to another rank again if that returns PTL_ABORTED, and how often
 * it looks for a link that is not written yet, before it tells the reader to come again. */
enum { TRIES = 16, LOOKS = 64 };

/* ---- Layout ---- */

static uint64_t home_lists(const struct chain_state *s)
{
    return s->lists / s->ranks + (s->lists % s->ranks != 0);
}

static uint64_t list_at(const struct chain_state *s, uint64_t list)
{
    return sizeof(struct chain_table) + list / s->ranks * sizeof(struct chain_list);
}

static uint64_t node_at(const struct chain_state *s, uint64_t i)
{
    return sizeof(struct chain_table) + home_lists(s) * sizeof(struct chain_list) +
           i * sizeof(struct chain_node);
}

static uint64_t link_to(uint64_t rank, uint64_t i)
{
    return (rank << 32 | i) + 1;
}

static ptl_process_t rank_of(uint64_t link)
{
    return (ptl_process_t){.rank = (ptl_rank_t)((link - 1) >> 32)};
}

static uint64_t index_of(uint64_t link)
{
    return (uint32_t)(link - 1);
}

static bool leads_to_item(const struct chain_state *s, uint64_t link)
{
    return link != CHAIN_END && link != CHAIN_LOST && (link - 1) >> 32 < s->ranks &&
           index_of(link) < s->room;
}

static ptl_process_t home_of(const struct chain_state *s, uint64_t list)
{
    return (ptl_process_t){.rank = (ptl_rank_t)(list % s->ranks)};
}

/* ---- Calls to other ranks: after PTL_ABORTED nothing was done, and the handler calls again
 * ---- */

/* Adds n to a word of another rank and stores the old value in *before. After any code but
 * PTL_ABORTED it does not try again, so it never adds twice. */
static int fetch_add(const struct chain_state *s, ptl_process_t to, uint64_t at, uint64_t n,
                     uint64_t *before)
{
    int code = PTL_ABORTED;
    for (unsigned i = 0; i < TRIES && code == PTL_ABORTED; i++) {
        code = PtlHandlerFetchAtomicFromDevice(before, &n, sizeof(n), to, s->table_bits, at, 0,
                                               PTL_SUM, PTL_UINT64_T);
    }
    return code;
}

static int swap(const struct chain_state *s, ptl_process_t to, uint64_t at, uint64_t word,
                uint64_t *before)
{
    int code = PTL_ABORTED;
    for (unsigned i = 0; i < TRIES && code == PTL_ABORTED; i++) {
        code = PtlHandlerSwapFromDevice(before, &word, sizeof(word), to, s->table_bits, at, 0, NULL,
                                        PTL_SWAP, PTL_UINT64_T);
    }
    return code;
}

static int get_node(const struct chain_state *s, uint64_t link, struct chain_node *node)
{
    int code = PTL_ABORTED;
    for (unsigned i = 0; i < TRIES && code == PTL_ABORTED; i++) {
        code = PtlHandlerGetToDevice(node, sizeof(*node), rank_of(link), s->table_bits,
                                     node_at(s, index_of(link)));
    }
    return code;
}

/* ---- Appending ---- */

static void write_link(const struct chain_state *s, uint64_t i, uint64_t link)
{
    uint64_t words[] = {link, ~link};
    PtlHandlerDMAToHostB(words, node_at(s, i), sizeof(words), PTL_HANDLER_HOST_MEM);
}

/* Called when the handler was not told whether its swap was done. The item may be the head of its
 * list, so its link becomes CHAIN_LOST, which tells readers that they cannot go on. A second swap
 * might put the item into the list twice. */
static void lose(const struct chain_state *s, uint64_t i)
{
    write_link(s, i, CHAIN_LOST);
    PtlHandlerDMAFetchAddB(offsetof(struct chain_table, unknown), 1, NULL, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
}

static int append(const struct chain_state *s, const struct chain_request *r)
{
    ptl_process_t home = home_of(s, r->list);
    uint64_t at = list_at(s, r->list), i = 0, before = CHAIN_END;
    struct chain_node node = {.item.value = r->value};
    PtlHandlerDMAFetchAddB(offsetof(struct chain_table, used), 1, &i, PTL_UINT64_T,
                           PTL_HANDLER_HOST_MEM);
    if (i >= s->room || fetch_add(s, home, at + offsetof(struct chain_list, number), 1,
                                  &node.item.number) != PTL_OK) {
        return FAIL;
    }
    PtlHandlerDMAToHostB(&node, node_at(s, i), sizeof(node), PTL_HANDLER_HOST_MEM);
    int code = swap(s, home, at + offsetof(struct chain_list, head), link_to(s->rank, i), &before);
    if (code == PTL_OK) {
        write_link(s, i, before);
    } else if (code != PTL_ABORTED) {
        lose(s, i);
    }
    return code == PTL_OK ? DROP : FAIL;
}

/* ---- Reading ---- */

/* Gets an item with its link. If it returns PTL_OK and *linked is false, the item's handler has not
 * written the link yet. */
static int get_linked(const struct chain_state *s, uint64_t link, struct chain_node *node,
                      bool *linked)
{
    int code = PTL_OK;
    *linked = false;
    for (unsigned i = 0; i < LOOKS && code == PTL_OK && !*linked; i++) {
        if (i != 0) {
            PtlHandlerYield();
        }
        code = get_node(s, link, node);
        *linked = code == PTL_OK && node->check == ~node->link;
    }
    return code;
}

static int read_on(const struct chain_state *s, const ptl_header_t *h,
                   const struct chain_request *r)
{
    struct chain_answer answer;
    bytes_zero(&answer, sizeof(answer));
    answer.next = r->value;
    if (answer.next == CHAIN_END &&
        fetch_add(s, home_of(s, r->list), list_at(s, r->list) + offsetof(struct chain_list, head),
                  0, &answer.next) != PTL_OK) {
        return FAIL;
    }
    while (answer.items < CHAIN_ITEMS && leads_to_item(s, answer.next)) {
        struct chain_node node = {.link = 0};
        bool linked;
        if (get_linked(s, answer.next, &node, &linked) != PTL_OK) {
            return FAIL;
        }
        if (!linked) {
            break;
        }
        answer.item[answer.items++] = node.item;
        answer.next = node.link;
    }
    return PtlHandlerPutFromDevice(&answer, sizeof(answer), PTL_NO_ACK_REQ, h->source_id,
                                   s->answer_bits, h->offset, NULL, r->list) == PTL_OK
               ? DROP
               : FAIL;
}

__handler static int chain_header(const ptl_header_t h, void *state)
{
    const struct chain_state *s = state;
    struct chain_request r;
    if (h.length != sizeof(r) || h.user_hdr_length != sizeof(r)) {
        return FAIL;
    }
    bytes_copy(&r, h.user_hdr, sizeof(r));
    if (r.list >= s->lists) {
        return FAIL;
    }
    if (r.op == CHAIN_APPEND) {
        return append(s, &r);
    }
    bool from = r.value == CHAIN_END || leads_to_item(s, r.value);
    return r.op == CHAIN_READ && from ? read_on(s, &h, &r) : FAIL;
}
PTL_HANDLER(chain_header);

/* ---- The host's functions ---- */

uint64_t chain_size(const struct chain_state *state)
{
    bool sense = state->ranks != 0 && state->rank < state->ranks && state->lists != 0 &&
                 state->lists <= UINT32_MAX && state->table_bits != state->answer_bits;
    return sense ? node_at(state, state->room) : 0;
}

int chain_handlers(const struct chain_state *state, struct chain_table *table,
                   ptl_handlers_t *handlers)
{
    uint64_t length = chain_size(state);
    if (length == 0 || table == NULL) {
        return PTL_ARG_INVALID;
    }
    *handlers = (ptl_handlers_t){
        .header_handler = chain_header,
        .user_hdr_length = sizeof(struct chain_request),
        .hpu_mem = PTL_HPU_MEM_NONE,
        .hpu_initial_state = state,
        .hpu_initial_length = sizeof(*state),
        .handler_host_mem = table,
        .handler_host_length = length,
    };
    return PTL_OK;
}
