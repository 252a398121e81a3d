/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists whose items are spread over all ranks: an item stays in the memory of the rank that appends
 * it, and handlers link it into its list by calls to other ranks.
 *
 *      append   at the NIC of the item's rank: a fetch-add at the home of the list numbers the
 *               item, a swap of the list's head there puts it first, and what the swap has found
 *               is the link to the one before
 *      read     at any NIC: the handler gets the items one after the other, each from its rank,
 *               and puts CHAIN_ITEMS of them to the initiator
 *
 *      home of the list      rank 2            rank 0            rank 1
 *      | number | head | ──► | item 2 | ─────► | item 1 | ─────► | item 0 | ──► end
 *
 * All ranks may append and read at the same time; no list is ever locked. The home of list i is
 * rank i modulo the number of ranks.
 */
#ifndef HANDLERS_CHAIN_H
#define HANDLERS_CHAIN_H

#include "portals4.h"
#include "spin.h"

enum { CHAIN_ITEMS = 6 }; /* items in an answer, at most */

enum chain_op { CHAIN_APPEND, CHAIN_READ };

/* Values of a link that lead to no item. */
/* the item is the first of its list; in a request: begin with the head */
#define CHAIN_END UINT64_C(0)
#define CHAIN_LOST UINT64_MAX /* the handler of this item was not told its link */

/* A request: a put of exactly this struct. For a read, the put's offset is where the answer goes in
 * the initiator's entry for answers. */
struct chain_request {
    uint64_t op;
    uint64_t list;
    uint64_t value; /* of an append: the item's value; of a read: `next` of the answer before */
};

struct chain_item {
    uint64_t value;
    uint64_t number; /* 0 for the first item that was appended to the list, and so on */
};

/* An answer: a put of this whole struct in one packet, so max_payload_size is at least its size, or
 * a read ends with PTL_NI_HANDLER_FAIL. If it has no items, and `next` is neither CHAIN_END nor
 * CHAIN_LOST, the next item is being appended at the moment, and the reader asks again. */
struct chain_answer {
    uint64_t items;
    uint64_t next; /* what to send as `value` to read on; CHAIN_END: there are no more items */
    struct chain_item item[CHAIN_ITEMS];
};

/* The memory of a rank: this struct, then the heads of the lists whose home it is, then its own
 * items. */
struct chain_table {
    uint64_t used; /* items that were asked for, also those for which there was no room */
    /* items of which the handler does not know whether they got into their list */
    uint64_t unknown;
};

struct chain_list {
    uint64_t number; /* number of the next item */
    uint64_t head;   /* the link to the item appended last */
};

/* An item in memory. Its link is valid if `check` is the link's complement: so a rank that gets the
 * item while the link is being written sees that it is not complete. */
struct chain_node {
    uint64_t link, check;
    struct chain_item item;
};

/* HPU memory of the entry, constant. The host sets all of it; all fields but `rank` are the same at
 * all ranks. */
struct chain_state {
    uint64_t table_bits;  /* match bits of the entries over the tables */
    uint64_t answer_bits; /* match bits of the initiators' entries for answers */
    uint64_t lists;
    uint32_t room; /* items that a rank has room for */
    uint32_t rank, ranks;
    uint32_t unused;
};

/* chain_size() returns the bytes of a rank's table; 0 if the state is not valid. */
uint64_t chain_size(const struct chain_state *state);

/* chain_handlers() fills in the handlers of an entry for requests. `table` has chain_size()
 * bytes, zeroed, at a multiple of 8. The program also appends an entry without handlers over the
 * table, at the same portal table index, for the accesses of all ranks. *state must last until
 * the entry is appended. PTL_ARG_INVALID: the state is not valid. */
int chain_handlers(const struct chain_state *state, struct chain_table *table,
                   ptl_handlers_t *handlers);

#endif
