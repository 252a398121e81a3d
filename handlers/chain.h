/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists whose items lie in all ranks: an item stays in the memory of the rank that appends it,
 * and what ties the list together is done by handlers that ask other ranks.
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
 * All ranks may append and read at once; no list is ever locked. The home of list i is rank
 * i modulo the number of ranks.
 */
#ifndef HANDLERS_CHAIN_H
#define HANDLERS_CHAIN_H

#include "portals4.h"
#include "spin.h"

enum { CHAIN_ITEMS = 6 }; /* in an answer, at most */

enum chain_op { CHAIN_APPEND, CHAIN_READ };

/* Links that lead to no item. */
#define CHAIN_END UINT64_C(0) /* in a request to read: begin with the head */
#define CHAIN_LOST UINT64_MAX /* its handler was not told what is behind it */

/* A request: a put of nothing else. Its offset is, of a read, where the answer goes in the
 * initiator's entry for answers. */
struct chain_request {
    uint64_t op;
    uint64_t list;
    uint64_t value; /* to append; or `next` of the answer before, to read on */
};

struct chain_item {
    uint64_t value;
    uint64_t number; /* 0 for the first item that was appended to the list, and so on */
};

/* An answer: a put of all of this. Without items and with `next` unlike CHAIN_END or CHAIN_LOST
 * it says that the next item is just being appended. */
struct chain_answer {
    uint64_t items;
    uint64_t next; /* what to read on from; CHAIN_END: that was all */
    struct chain_item item[CHAIN_ITEMS];
};

/* The memory of a rank: this, the heads of the lists at home here, its own items. */
struct chain_table {
    uint64_t used;    /* items for which there is no room are counted, too */
    uint64_t unknown; /* items of which it is not known whether they are in their list */
};

struct chain_list {
    uint64_t number; /* of the next item */
    uint64_t head;   /* the link to the last one */
};

/* A link is there when `check` is its complement: who gets an item while the link is being
 * written sees that it is not. */
struct chain_node {
    uint64_t link, check;
    struct chain_item item;
};

/* HPU memory of the entry, constant: the host sets all of it, all but `rank` alike in all ranks. */
struct chain_state {
    uint64_t table_bits;  /* match bits of the entries over the tables */
    uint64_t answer_bits; /* match bits of the initiators' entries for answers */
    uint64_t lists;
    uint32_t room; /* items of a rank */
    uint32_t rank, ranks;
    uint32_t unused;
};

/* chain_size() is the length of a rank's table in bytes; 0 if the state makes no sense. */
uint64_t chain_size(const struct chain_state *state);

/* chain_handlers() fills in the handlers of an entry for requests. `table` has chain_size()
 * bytes, zeros at first, at a multiple of 8; an entry without handlers lies over it, for puts
 * and gets of all ranks, with the same portal table index. *state must last until the entry is
 * appended. PTL_ARG_INVALID: the state makes no sense. */
int chain_handlers(const struct chain_state *state, struct chain_table *table,
                   ptl_handlers_t *handlers);

#endif
