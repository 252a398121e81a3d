/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message for each handler of the library (library.h): its state is what the library's own
 * host side makes, its bytes are such that the handler has work to do.
 */
#include "library.h"

#include "accumulate.h"
#include "allreduce.h"
#include "broadcast.h"
#include "chain.h"
#include "chunk.h"
#include "condread.h"
#include "ftbcast.h"
#include "graph.h"
#include "kvstore.h"
#include "pingpong.h"
#include "pspin.h"
#include "raid.h"
#include "rendezvous.h"
#include "strided.h"
#include "textscan.h"
#include "txlog.h"

#include <string.h>

enum { LENGTH = 400 }; /* of a collective */

static ptl_process_t rank(uint32_t r)
{
    ptl_process_t p = {.phys = {0, 0}};
    p.rank = r;
    return p;
}

/* The state that the host side has made begins HPU memory. */
static void state_made(struct message *m, size_t size)
{
    memcpy(m->state, m->handlers.hpu_initial_state, m->handlers.hpu_initial_length);
    m->state_size = size;
}

/* ---- PsPIN's kernels ---- */

static void copy(struct message *m)
{
    m->name = "copy";
    m->packet_size = 1000;
    pspin_copy_handlers(&m->handlers);
}

static void aggregate(struct message *m)
{
    m->name = "aggregate";
    m->packet_size = 1024;
    memset(m->handler_host, 0, sizeof(struct pspin_sum));
    pspin_aggregate_handlers((struct pspin_sum *)m->handler_host, &m->handlers);
}

static void histogram(struct message *m)
{
    m->name = "histogram";
    m->packet_size = 512;
    memset(m->handler_host, 0, sizeof(struct pspin_histogram));
    for (int i = 1; i < 512; i += 4) {
        m->packet[i] &= 3;
        m->packet[i + 1] = m->packet[i + 2] = 0;
    }
    pspin_histogram_handlers((struct pspin_histogram *)m->handler_host, &m->handlers);
}

static void reduce(struct message *m)
{
    struct pspin_reduce_state state;
    m->name = "reduce";
    m->packet_size = 800;
    m->header.length = 800;
    memset(m->state, 0, pspin_reduce_memory(100));
    pspin_reduce_handlers(100, 1, PTL_HPU_MEM_NONE, (uint64_t *)m->handler_host, &state,
                          &m->handlers);
    state_made(m, pspin_reduce_memory(100));
}

static void filter(struct message *m)
{
    struct pspin_filter_state state;
    m->name = "filter";
    m->packet_size = 1024;
    pspin_filter_start(&state, 32);
    for (int i = 0; i < 1024; i += 96) {
        uint64_t key;
        memcpy(&key, m->packet + i, sizeof(key));
        pspin_filter_add(&state, key);
    }
    memset(m->handler_host, 0, sizeof(struct pspin_kept));
    pspin_filter_handlers(&state, (struct pspin_kept *)m->handler_host, 100, &m->handlers);
    state_made(m, sizeof(state));
}

/* ---- One message ---- */

static void accumulate(struct message *m)
{
    struct accumulate_state state;
    m->name = "accumulate";
    m->packet_size = m->header.length = 2000;
    m->header.offset = 1000;
    for (int i = 0; i < MEMORY; i += 8) { /* numbers of a size that adds up to one */
        m->entry[i + 7] = 0x40;
        m->packet[i % PACKET + 7] = 0x40;
    }
    memset(m->handler_host, 0, sizeof(struct accumulate_locks));
    accumulate_handlers(PTL_SUM, PTL_DOUBLE, NULL, MEMORY,
                        (struct accumulate_locks *)m->handler_host, &state, &m->handlers);
    state_made(m, sizeof(state));
}

static void ping_streamed(struct message *m)
{
    struct pingpong_state state;
    m->name = "pingpong, streamed";
    m->packet_size = m->header.length = 1000;
    pingpong_handlers(PINGPONG_STREAMED, 1000, PACKET, 7, &state, &m->handlers);
    state_made(m, sizeof(state));
}

static void ping_stored(struct message *m)
{
    struct pingpong_state state;
    m->name = "pingpong, stored";
    m->header.length = 10000;
    pingpong_handlers(PINGPONG_STORED, 10000, PACKET, 7, &state, &m->handlers);
    state_made(m, sizeof(state));
}

static void strided(struct message *m)
{
    const struct strided_state layout = {.start = 64, .stride = 200, .block = 96, .blocks = 100};
    m->name = "strided";
    m->packet_size = m->header.length = 1000;
    strided_handlers(&layout, MEMORY, &m->handlers);
    state_made(m, sizeof(layout));
}

static void textscan(struct message *m)
{
    static const char text[] = "Handlers count words; a word that a packet cuts is one word. ";
    struct textscan_filter filter = {0};
    static struct textscan_state state;
    m->name = "textscan";
    m->told = sizeof(struct textscan_totals); /* of the edges some bytes do not matter */
    m->packet_size = m->header.length = 3000;
    for (size_t i = 0; i < m->packet_size; i++) {
        m->packet[i] = (uint8_t)text[i % (sizeof(text) - 1)];
    }
    textscan_add(&filter, "word", 4);
    textscan_add(&filter, "handlers", 8);
    memset(m->state, 0, sizeof(state));
    memset(m->handler_host, 0, textscan_host_size(1));
    textscan_handlers(0, &filter, PACKET, PTL_HPU_MEM_NONE, m->handler_host, 1, &state,
                      &m->handlers);
    state_made(m, sizeof(state));
}

static void txlog(struct message *m)
{
    struct txlog_state state;
    m->name = "txlog";
    m->header.length = 100;
    m->header.match_bits = txlog_bits(5, 6);
    m->header_gives = PROCEED;
    memset(m->handler_host, 0, txlog_size(10));
    txlog_handlers(10, m->handler_host, &state, &m->handlers);
    state_made(m, sizeof(state));
}

/* ---- Tables ---- */

static void graph(struct message *m)
{
    struct graph_state state;
    struct graph_record records[20];
    m->name = "graph";
    for (uint32_t i = 0; i < 20; i++) {
        records[i] = (struct graph_record){1000 + i * 7 % 13, i, 100 - i};
    }
    memcpy(m->packet, records, sizeof(records));
    m->packet_size = sizeof(records);
    memset(m->entry, 0xff, 100 * sizeof(uint64_t));
    memset(m->handler_host, 0, graph_frontier_size(100));
    graph_handlers(1000, 100, m->handler_host, &state, &m->handlers);
    state_made(m, sizeof(state));
}

static void condread(struct message *m)
{
    struct condread_state state;
    struct condread_request request = {.client = rank(1),
                                       .room = 1000,
                                       .tag = 3,
                                       .rows = 60,
                                       .width = 1,
                                       .type = PTL_UINT8_T,
                                       .op = CONDREAD_LT,
                                       .select = 8,
                                       .select_width = 24,
                                       .value = {100}};
    m->name = "condread";
    memcpy(m->packet, &request, sizeof(request));
    m->packet_size = sizeof(request);
    condread_handlers(64, 100, 40, rank(0), 9, PACKET, &state, &m->handlers);
    state_made(m, sizeof(state));
}

static void kvstore(struct message *m, enum kvstore_op op, uint32_t steps)
{
    struct kvstore_state shape;
    const struct kvstore_request request = {
        .client = rank(1), .bits = 4, .tag = 77, .key_length = 5, .value_length = 30, .op = op};
    kvstore_shape(&shape, 16, 32, 16, 64, steps, 8, PACKET);
    kvstore_format(&shape, m->entry, m->handler_host);
    m->packet_size =
        kvstore_request(m->packet, &request, "a key", "a value of thirty bytes, just.");
    kvstore_handlers(&shape, m->handler_host, &m->handlers);
    state_made(m, sizeof(shape));
}

static void kv_insert(struct message *m)
{
    m->name = "kvstore, insert";
    kvstore(m, KV_INSERT, 10);
}

static void kv_missing(struct message *m)
{
    m->name = "kvstore, missing";
    kvstore(m, KV_DELETE, 10);
}

/* ---- RAID ---- */

/* As servers and clients have it: a place, who asks, a word, who sends. */
static void raid(struct message *m, uint32_t server)
{
    static struct raid_state state;
    struct raid_layout layout = {
        .unit = 1024, .stripes = 16, .write_bits = 1, .parity_bits = 2, .data = 2, .parity = 1};
    const struct {
        uint64_t offset;
        ptl_process_t client;
        uint64_t done_bits;
        uint32_t member, unused;
    } head = {.client = rank(9), .done_bits = 5, .offset = 64};
    for (uint32_t i = 0; i < 3; i++) {
        layout.server[i] = rank(i);
    }
    memcpy(m->packet, &head, sizeof(head));
    m->packet_size = sizeof(head) + 500;
    memset(m->handler_host, 0, sizeof(struct raid_locks));
    raid_state(&layout, server, NULL, &state);
    m->handlers.hpu_initial_state = &state;
    m->handlers.hpu_initial_length = sizeof(state);
    state_made(m, sizeof(state));
}

/* Of the three servers each stripe has another one's unit as its parity. */
static void raid_at_data(struct message *m)
{
    m->name = "raid, write";
    raid(m, 0);
    m->handlers.payload_handler = (ptl_payload_handler_t)library_address("raid_write_packet");
}

static void raid_at_parity(struct message *m)
{
    m->name = "raid, parity";
    raid(m, 2);
    m->handlers.payload_handler = (ptl_payload_handler_t)library_address("raid_parity_packet");
}

/* ---- Lists of items in all ranks ---- */

enum { CHAIN_ROOM = 8 };

static struct chain_node *chain_node(void *table, uint64_t i)
{
    return (struct chain_node *)((uint8_t *)table + sizeof(struct chain_table) +
                                 sizeof(struct chain_list)) +
           i;
}

/* The list begins in the peers' memory: the last item appended is item `last` there, each leads to
 * the one before, and `written` of them have their links. */
static void chain(struct message *m, uint64_t op, uint64_t value, uint64_t last, unsigned written)
{
    static struct chain_state state;
    state = (struct chain_state){
        .table_bits = 1, .answer_bits = 2, .lists = 1, .room = CHAIN_ROOM, .rank = 1, .ranks = 2};
    struct chain_request request = {.op = op, .value = value};
    struct chain_list *list = (struct chain_list *)(m->peers + sizeof(struct chain_table));
    *list = (struct chain_list){.number = last + 1, .head = last + 1};
    for (uint64_t i = 0; i <= last; i++) {
        *chain_node(m->peers, i) = (struct chain_node){
            .link = i, .check = i + written > last ? ~i : 0, .item = {100 + i, i}};
    }
    memset(m->handler_host, 0, chain_size(&state));
    memcpy(m->packet, &request, sizeof(request));
    m->header.length = m->user = sizeof(request);
    m->header.offset = MEMORY / 2;
    m->header_gives = DROP;
    chain_handlers(&state, (struct chain_table *)m->handler_host, &m->handlers);
    state_made(m, sizeof(state));
}

static void chain_append(struct message *m)
{
    m->name = "chain, append";
    chain(m, CHAIN_APPEND, 17, 2, 3);
}

static void chain_read(struct message *m)
{
    m->name = "chain, read";
    chain(m, CHAIN_READ, CHAIN_END, CHAIN_ROOM - 1, CHAIN_ROOM);
}

static void chain_read_on(struct message *m)
{
    m->name = "chain, read on";
    chain(m, CHAIN_READ, 2, CHAIN_ROOM - 1, CHAIN_ROOM);
}

static void chain_unlinked(struct message *m)
{
    m->name = "chain, an item without its link";
    chain(m, CHAIN_READ, CHAIN_END, CHAIN_ROOM - 1, 2);
}

/* ---- Rendezvous ---- */

static void rendezvous_match(struct message *m)
{
    const struct rendezvous_match_state state = {.room = 5000, .landing = 17, .index = 3};
    m->name = "rendezvous, match";
    m->header.hdr_data = 1; /* a long message */
    m->header.length = m->user = 16;
    m->header_gives = DROP;
    m->handlers = (ptl_handlers_t){.header_handler =
                                       (ptl_header_handler_t)library_address("rendezvous_match"),
                                   .hpu_initial_state = &state,
                                   .hpu_initial_length = sizeof(state)};
    state_made(m, sizeof(state));
}

static void rendezvous_source(struct message *m)
{
    const struct rendezvous_source_state state = {.length = 3000, .user = 0xfedcba9876543210};
    m->name = "rendezvous, source";
    m->header.length = m->user = 8;
    m->header_gives = DROP;
    m->handlers = (ptl_handlers_t){.header_handler =
                                       (ptl_header_handler_t)library_address("rendezvous_source"),
                                   .hpu_initial_state = &state,
                                   .hpu_initial_length = sizeof(state)};
    state_made(m, sizeof(state));
}

/* ---- Collectives ---- */

static void put_chunk(struct message *m)
{
    const struct chunk head = {.offset = 0, .length = LENGTH};
    memcpy(m->packet, &head, sizeof(head));
    m->packet_size = m->header.length = sizeof(head) + LENGTH;
}

static void broadcast_root(struct message *m)
{
    struct broadcast_state state;
    m->name = "broadcast, root";
    broadcast_handlers(&(struct tree_group){0, 4, NULL}, TREE_BINOMIAL, 0, LENGTH, 5, PACKET,
                       &state, &m->handlers);
    state_made(m, sizeof(state));
}

static void broadcast_inner(struct message *m)
{
    struct broadcast_state state;
    m->name = "broadcast, inner";
    put_chunk(m);
    broadcast_handlers(&(struct tree_group){2, 4, NULL}, TREE_BINOMIAL, 0, LENGTH, 5, PACKET,
                       &state, &m->handlers);
    state_made(m, sizeof(state));
}

static void ftbcast(struct message *m)
{
    struct ftbcast_state state;
    m->name = "ftbcast";
    put_chunk(m);
    memset(m->state, 0, ftbcast_memory(LENGTH, PACKET));
    ftbcast_handlers(&(struct tree_group){1, 4, NULL}, 0, LENGTH, 5, PACKET, PTL_HPU_MEM_NONE,
                     &state, &m->handlers);
    state_made(m, ftbcast_memory(LENGTH, PACKET));
}

static void ftbcast_root(struct message *m)
{
    struct ftbcast_state state;
    m->name = "ftbcast, root";
    memset(m->state, 0, ftbcast_memory(LENGTH, PACKET));
    ftbcast_handlers(&(struct tree_group){0, 4, NULL}, 0, LENGTH, 5, PACKET, PTL_HPU_MEM_NONE,
                     &state, &m->handlers);
    m->handlers.payload_handler = NULL; /* what it starts has none */
    state_made(m, ftbcast_memory(LENGTH, PACKET));
}

static const struct allreduce sum = {.group = {.size = 2},
                                     .op = PTL_SUM,
                                     .type = PTL_UINT32_T,
                                     .count = LENGTH / 4,
                                     .up = 1,
                                     .down = 2,
                                     .packet = PACKET};

/* Chunk, slot at the parent; the vector's part. */
static void put_part(struct message *m, uint32_t slot)
{
    memset(m->packet, 0, 16);
    m->packet[8] = (uint8_t)slot;
    m->packet_size = 16 + LENGTH;
}

static void allreduce_up_entry(struct message *m)
{
    struct allreduce_state state;
    m->name = "allreduce, up";
    memset(m->state, 0, allreduce_memory(&sum));
    allreduce_up(&sum, PTL_HPU_MEM_NONE, &state, &m->handlers);
    put_part(m, 1);
    state_made(m, allreduce_memory(&sum));
}

static void allreduce_down_entry(struct message *m)
{
    struct allreduce_state state;
    m->name = "allreduce, down";
    allreduce_down(&sum, &state, &m->handlers);
    put_part(m, 0);
    state_made(m, sizeof(state));
}

library_case *const library_cases[] = {copy,
                                       aggregate,
                                       histogram,
                                       reduce,
                                       filter,
                                       accumulate,
                                       ping_streamed,
                                       ping_stored,
                                       strided,
                                       textscan,
                                       txlog,
                                       graph,
                                       condread,
                                       kv_insert,
                                       kv_missing,
                                       raid_at_data,
                                       raid_at_parity,
                                       chain_append,
                                       chain_read,
                                       chain_read_on,
                                       chain_unlinked,
                                       rendezvous_match,
                                       rendezvous_source,
                                       broadcast_root,
                                       broadcast_inner,
                                       ftbcast,
                                       ftbcast_root,
                                       allreduce_up_entry,
                                       allreduce_down_entry,
                                       NULL};
