/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/chain: all ranks append to the same lists and read them meanwhile; in the end every
 * item is in its list once, with a number of its own. And what becomes of requests when an ask is
 * refused: the number, the swap, the items.
 *
 *      rank r ──put──► rank r: handlers ──ask──► tables of all ranks
 */
#include "kit.h"

#include "chain.h"

enum { REQUEST_BITS = 1, TABLE_BITS = 2, ANSWER_BITS = 3 };
enum { LISTS = 4, ITEMS = 24, RANKS = 5, READS = 3 };

struct chains {
    struct kit k;
    struct chain_state state;
    struct chain_table *table;
    struct chain_request *request; /* ITEMS of them */
    struct chain_answer *answer;
    ptl_handle_me_t requests, tables, answers;
    ptl_handle_ct_t came;
    uint64_t asked;
};

static void append_table(struct chains *c, unsigned options)
{
    c->tables =
        kit_entry(&c->k, c->table, chain_size(&c->state), TABLE_BITS, options, PTL_CT_NONE, NULL);
}

static void enter(struct chains *c, int rank, int size, uint32_t room)
{
    ptl_handlers_t h;
    *c = (struct chains){.state = {.table_bits = TABLE_BITS,
                                   .answer_bits = ANSWER_BITS,
                                   .lists = LISTS,
                                   .room = room,
                                   .rank = (uint32_t)rank,
                                   .ranks = (uint32_t)size}};
    kit_open(&c->k, rank, size);
    c->table = kit_memory(chain_size(&c->state));
    c->request = kit_memory(ITEMS * sizeof(*c->request));
    c->answer = kit_memory(sizeof(*c->answer));
    c->came = port_ct(&c->k.p);
    OK(chain_handlers(&c->state, c->table, &h));
    c->requests = kit_entry(&c->k, NULL, 0, REQUEST_BITS, 0, PTL_CT_NONE, &h);
    append_table(c, 0);
    c->answers = kit_entry(&c->k, c->answer, sizeof(*c->answer), ANSWER_BITS, 0, c->came, NULL);
    BARRIER();
}

static void leave(struct chains *c)
{
    BARRIER();
    port_unlink(&c->k.p, c->requests);
    port_unlink(&c->k.p, c->tables);
    port_unlink(&c->k.p, c->answers);
    OK(PtlCTFree(c->came));
    kit_close(&c->k);
}

/* A request to the own NIC, which ends that way. */
static void request(struct chains *c, uint64_t op, uint64_t list, uint64_t value, int fail)
{
    struct chain_request r = {op, list, value};
    kit_put_once(&c->k, &r, sizeof(r), c->k.p.rank, REQUEST_BITS, 0, 0, fail);
    if (fail != PTL_NI_OK) {
        EVENT_FAIL(c->k.p.eq, PTL_EVENT_PUT, fail);
    } else if (op == CHAIN_READ) {
        kit_wait(c->came, ++c->asked);
    }
}

/* The link to item i of a rank. */
static uint64_t link_to(int rank, uint64_t i)
{
    return ((uint64_t)rank << 32 | i) + 1;
}

static uint64_t value_of(int rank, int m)
{
    return (uint64_t)rank * 1000 + (uint64_t)m;
}

static uint64_t list_of(int rank, int m)
{
    return (uint64_t)(rank + m) % LISTS;
}

/* What a list holds; no item is in it twice, and no number. */
struct content {
    uint64_t items;
    bool value[RANKS * 1000], number[RANKS * ITEMS];
};

static void read_list(struct chains *c, uint64_t list, struct content *all)
{
    uint64_t from = CHAIN_END;
    memset(all, 0, sizeof(*all));
    do {
        request(c, CHAIN_READ, list, from, PTL_NI_OK);
        CHECK(c->answer->items <= CHAIN_ITEMS);
        for (uint64_t i = 0; i < c->answer->items; i++) {
            uint64_t value = c->answer->item[i].value, number = c->answer->item[i].number;
            CHECK(value < RANKS * 1000 && !all->value[value]);
            CHECK(number < RANKS * ITEMS && !all->number[number]);
            CHECK_EQ(list_of((int)value / 1000, (int)value % 1000), list);
            all->value[value] = true;
            all->number[number] = true;
            all->items++;
        }
        from = c->answer->next;
    } while (from != CHAIN_END && from != CHAIN_LOST);
    CHECK_EQ(from, CHAIN_END);
}

/* Items m to m + n - 1 of this rank, at once. */
static void append_some(struct chains *c, int m, int n)
{
    struct kit_sender s = kit_sender(&c->k, c->request, ITEMS * sizeof(*c->request));
    for (int i = m; i < m + n; i++) {
        c->request[i] =
            (struct chain_request){CHAIN_APPEND, list_of(c->k.p.rank, i), value_of(c->k.p.rank, i)};
        kit_put(&s, (size_t)i * sizeof(*c->request), sizeof(*c->request), c->k.p.rank, REQUEST_BITS,
                0, 0);
    }
    kit_flush(&s);
    kit_release(&s);
}

static void check_all(struct chains *c, int size)
{
    static struct content all;
    uint64_t items = 0;
    for (uint64_t list = 0; list < LISTS; list++) {
        read_list(c, list, &all);
        for (uint64_t n = 0; n < all.items; n++) {
            CHECK(all.number[n]);
        }
        for (int r = 0; r < size; r++) {
            for (int m = 0; m < ITEMS; m++) {
                CHECK_EQ(all.value[value_of(r, m)], list_of(r, m) == list);
            }
        }
        items += all.items;
    }
    CHECK_EQ(items, size * ITEMS);
    CHECK_EQ(c->table->used, ITEMS);
    CHECK_EQ(c->table->unknown, 0);
}

/* A rank reads while others append, and finds at least what it has appended itself. */
static void all_at_once(int rank, int size)
{
    static struct content all;
    struct chains c;
    enter(&c, rank, size, ITEMS);
    for (int m = 0; m < ITEMS; m += ITEMS / READS) {
        append_some(&c, m, ITEMS / READS);
        read_list(&c, list_of(rank, m), &all);
        for (int i = 0; i < m + ITEMS / READS; i++) {
            CHECK(all.value[value_of(rank, i)] == (list_of(rank, i) == list_of(rank, m)));
        }
    }
    BARRIER();
    check_all(&c, size);
    leave(&c);
}

#define AT_ONCE(size_)                                                                             \
    PTEST(all_at_once_##size_, size_)                                                              \
    {                                                                                              \
        all_at_once(rank, size);                                                                   \
    }
AT_ONCE(1)
AT_ONCE(2)
AT_ONCE(3)
AT_ONCE(5)

/* ---- What is not done ---- */

PTEST(refused, 2)
{
    struct chains c;
    ptl_handlers_t h;
    enter(&c, rank, size, 2);
    const struct chain_state bad[] = {
        {.table_bits = 1, .answer_bits = 2, .lists = 1, .room = 1},
        {.table_bits = 1, .answer_bits = 2, .lists = 1, .room = 1, .rank = 2, .ranks = 2},
        {.table_bits = 1, .answer_bits = 2, .room = 1, .ranks = 2},
        {.table_bits = 1, .answer_bits = 1, .lists = 1, .room = 1, .ranks = 2},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        INVALID(chain_handlers(&bad[i], c.table, &h));
    }
    INVALID(chain_handlers(&c.state, NULL, &h));
    for (size_t length = 0; length <= 2 * sizeof(*c.request); length += sizeof(*c.request) / 2) {
        if (length != sizeof(*c.request)) {
            kit_put_once(&c.k, c.request, length, rank, REQUEST_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
            EVENT_FAIL(c.k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        }
    }
    request(&c, CHAIN_APPEND, LISTS, 1, PTL_NI_HANDLER_FAIL);
    request(&c, CHAIN_READ, LISTS, CHAIN_END, PTL_NI_HANDLER_FAIL);
    request(&c, CHAIN_READ + 1, 0, CHAIN_END, PTL_NI_HANDLER_FAIL);
    request(&c, CHAIN_READ, 0, link_to(size, 0), PTL_NI_HANDLER_FAIL);
    request(&c, CHAIN_READ, 0, link_to(rank, 2), PTL_NI_HANDLER_FAIL);
    request(&c, CHAIN_READ, 0, CHAIN_LOST, PTL_NI_HANDLER_FAIL);
    CHECK_BYTES(c.table, chain_size(&c.state), 0);
    BARRIER();
    for (int m = 0; m < 3; m++) { /* the last one finds no room */
        request(&c, CHAIN_APPEND, (uint64_t)rank, value_of(rank, m),
                m < 2 ? PTL_NI_OK : PTL_NI_HANDLER_FAIL);
    }
    request(&c, CHAIN_READ, (uint64_t)rank, CHAIN_END, PTL_NI_OK);
    CHECK_EQ(c.answer->items, 2);
    CHECK_EQ(c.answer->next, CHAIN_END);
    CHECK_EQ(c.answer->item[0].value, value_of(rank, 1));
    CHECK_EQ(c.answer->item[0].number, 1);
    CHECK_EQ(c.answer->item[1].value, value_of(rank, 0));
    leave(&c);
}

/* The home refuses the number: nothing is done. It refuses the swap: nobody knows, and a reader
 * that comes to the item hears that. Rank 0 has both told, and no ask is made twice. */
PTEST(home_refuses, 2)
{
    struct chains c;
    enter(&c, rank, size, 4);
    if (rank == 1) {
        port_unlink(&c.k.p, c.tables);
    }
    BARRIER();
    if (rank == 0) {
        request(&c, CHAIN_APPEND, 1, 7, PTL_NI_HANDLER_FAIL);
        request(&c, CHAIN_READ, 1, CHAIN_END, PTL_NI_HANDLER_FAIL);
        request(&c, CHAIN_READ, 1, link_to(1, 0), PTL_NI_HANDLER_FAIL);
        CHECK_EQ(c.table->unknown, 0);
    }
    BARRIER();
    if (rank == 1) {
        append_table(&c, PTL_ME_USE_ONCE); /* for the number */
    }
    BARRIER();
    if (rank == 0) {
        request(&c, CHAIN_APPEND, 1, 8, PTL_NI_HANDLER_FAIL);
        CHECK_EQ(c.table->unknown, 1);
        request(&c, CHAIN_READ, 1, link_to(0, 1), PTL_NI_OK);
        CHECK_EQ(c.answer->items, 1);
        CHECK_EQ(c.answer->item[0].value, 8);
        CHECK_EQ(c.answer->next, CHAIN_LOST);
    }
    BARRIER();
    if (rank == 1) {
        append_table(&c, 0);
    }
    BARRIER();
    if (rank == 0) {
        request(&c, CHAIN_APPEND, 1, 9, PTL_NI_OK);
        request(&c, CHAIN_READ, 1, CHAIN_END, PTL_NI_OK);
        CHECK_EQ(c.answer->items, 1);
        CHECK_EQ(c.answer->item[0].value, 9);
        CHECK_EQ(c.answer->item[0].number, 1); /* 0 was the lost one's */
        CHECK_EQ(c.answer->next, CHAIN_END);
    }
    leave(&c);
}

/* An item whose link is still to be written, or is half written: the reader is to come again. */
PTEST(link_to_come, 2)
{
    struct chains c;
    enter(&c, rank, size, 1);
    struct chain_node *node =
        (struct chain_node *)((char *)c.table + chain_size(&c.state) - sizeof(*node));
    for (int i = 0; i < 2; i++) {
        *node = (struct chain_node){.link = i == 0 ? 0 : link_to(rank, 0), .item.value = 5};
        BARRIER();
        request(&c, CHAIN_READ, 0, link_to(1 - rank, 0), PTL_NI_OK);
        CHECK_EQ(c.answer->items, 0);
        CHECK_EQ(c.answer->next, link_to(1 - rank, 0));
        BARRIER();
    }
    node->link = CHAIN_END;
    node->check = ~CHAIN_END;
    BARRIER();
    request(&c, CHAIN_READ, 0, link_to(1 - rank, 0), PTL_NI_OK);
    CHECK_EQ(c.answer->items, 1);
    CHECK_EQ(c.answer->item[0].value, 5);
    CHECK_EQ(c.answer->next, CHAIN_END);
    leave(&c);
}
