/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Builder and writer of schedules; see write.h.
 *
 * The lists are a counting sort of the edges. While edges are added each node counts its
 * successors; a prefix sum gives each node the place of its two lists, "requires" first, then
 * "irequires"; then the edges are put into the lists in the order in which they were added.
 * LogGOPSim's compiler has the same order.
 */
#include "write.h"

#include "base/array.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { LEAST = 64 };

uint32_t goal_add(struct goal_builder *b, enum goal_type type, uint64_t size, uint32_t peer,
                  uint32_t tag, uint8_t cpu, uint8_t nic)
{
    if (b->failed || b->count == UINT32_MAX || !ARRAY_ROOM(b->nodes, b->count, b->room, LEAST)) {
        b->failed = true;
        return 0;
    }
    b->nodes[b->count] = (struct goal_node){
        .type = (uint8_t)type, .peer = peer, .size = size, .tag = tag, .cpu = cpu, .nic = nic};
    b->highest_cpu = cpu > b->highest_cpu ? cpu : b->highest_cpu;
    b->highest_nic = nic > b->highest_nic ? nic : b->highest_nic;
    return (uint32_t)b->count++;
}

void goal_add_part(struct goal_builder *b, enum goal_type type, uint64_t size, uint32_t peer,
                   uint32_t tag, bool cycles)
{
    uint8_t highest = b->highest_cpu;
    goal_add(b, type, size, peer, tag, cycles, 0);
    b->highest_cpu = highest;
}

static bool add_edge(struct goal_builder *b, struct goal_edges *edges, uint32_t node, uint32_t on)
{
    if (b->failed || b->done.count + b->start.count >= UINT32_MAX ||
        !ARRAY_ROOM(edges->at, edges->count, edges->room, LEAST)) {
        b->failed = true;
        return false;
    }
    edges->at[edges->count++] = (struct goal_edge){.on = on, .node = node};
    b->nodes[node].depends++;
    return true;
}

void goal_requires(struct goal_builder *b, uint32_t node, uint32_t on)
{
    if (add_edge(b, &b->done, node, on)) {
        b->nodes[on].done_count++;
    }
}

void goal_irequires(struct goal_builder *b, uint32_t node, uint32_t on)
{
    if (add_edge(b, &b->start, node, on)) {
        b->nodes[on].start_count++;
    }
}

static bool is_root(const struct goal_node *n)
{
    return n->depends == 0 && !goal_is_part(n);
}

/* Sets the place of each list, and counts the roots. The first index of a list is set to the list's
 * end: goal_lay_out() fills the list backwards and counts the index down to the first entry. */
static uint64_t place_lists(struct goal_builder *b)
{
    uint64_t roots = 0;
    uint32_t next = 0;
    for (uint64_t i = 0; i < b->count; i++) {
        struct goal_node *n = &b->nodes[i];
        n->done_first = next += n->done_count;
        n->start_first = next += n->start_count;
        roots += is_root(n);
    }
    return roots;
}

int goal_lay_out(struct goal_builder *b, struct goal_rank *rank)
{
    uint64_t edges = b->done.count + b->start.count, roots = b->failed ? 0 : place_lists(b);
    /* ARRAY_ROOM() makes room for one element more than needed, so that an empty array has an
     * address, too */
    if (b->failed || !ARRAY_ROOM(b->nodes, b->count, b->room, LEAST) ||
        !ARRAY_ROOM(b->successors, edges, b->successors_room, LEAST) ||
        !ARRAY_ROOM(b->roots, roots, b->roots_room, LEAST)) {
        return -1;
    }
    for (uint64_t i = b->done.count; i-- > 0;) {
        b->successors[--b->nodes[b->done.at[i].on].done_first] = b->done.at[i].node;
    }
    for (uint64_t i = b->start.count; i-- > 0;) {
        b->successors[--b->nodes[b->start.at[i].on].start_first] = b->start.at[i].node;
    }
    uint32_t *root = b->roots;
    for (uint64_t i = 0; i < b->count; i++) {
        if (is_root(&b->nodes[i])) {
            *root++ = (uint32_t)i;
        }
    }
    *rank = (struct goal_rank){.nodes = b->nodes,
                               .roots = b->roots,
                               .successors = b->successors,
                               .node_count = (uint32_t)b->count,
                               .root_count = (uint32_t)roots};
    return 0;
}

void goal_builder_clear(struct goal_builder *b)
{
    b->count = 0;
    b->done.count = 0;
    b->start.count = 0;
    b->failed = false;
    b->highest_cpu = 0;
    b->highest_nic = 0;
}

void goal_builder_free(struct goal_builder *b)
{
    free(b->nodes);
    free(b->done.at);
    free(b->start.at);
    free(b->roots);
    free(b->successors);
    *b = (struct goal_builder){0};
}

/* ---- The file ---- */

static int write_failed(struct goal_error *error, int code)
{
    return goal_fail(error, "cannot write the schedule: %s%s", strerror(code),
                     code == ESPIPE ? "; it must go to a file that can be written anywhere" : "");
}

int goal_writer_open(struct goal_writer *w, int fd, uint32_t ranks, struct goal_error *error)
{
    *w = (struct goal_writer){.fd = fd, .ranks = ranks};
    w->end = GOAL_HEADER - 8 + (uint64_t)GOAL_SPAN * ranks;
    if (goal_stream_open(&w->table, fd, GOAL_HEADER) != 0 ||
        goal_stream_open(&w->data, fd, 8 + w->end) != 0) {
        goal_stream_close(&w->table);
        goal_stream_close(&w->data);
        return write_failed(error, ENOMEM);
    }
    return 0;
}

int goal_writer_rank(struct goal_writer *w, struct goal_builder *b, struct goal_error *error)
{
    struct goal_rank r;
    if (goal_lay_out(b, &r) != 0) {
        return goal_fail(error,
                         "rank %u: its %llu operations and %llu dependencies do not fit memory, or "
                         "are more than 4294967295",
                         w->written, (unsigned long long)b->count,
                         (unsigned long long)(b->done.count + b->start.count));
    }
    uint64_t edges = b->done.count + b->start.count;
    struct goal_span span = {.start = w->end};
    uint32_t counts[2] = {r.node_count, r.root_count};
    goal_stream_put(&w->data, counts, sizeof(counts));
    goal_stream_put(&w->data, r.roots, 4 * (size_t)r.root_count);
    goal_stream_put(&w->data, r.nodes, sizeof(struct goal_node) * r.node_count);
    goal_stream_put(&w->data, r.successors, 4 * edges);
    span.end = w->end += sizeof(counts) + 4 * (uint64_t)r.root_count +
                         sizeof(struct goal_node) * (uint64_t)r.node_count + 4 * edges;
    goal_stream_put(&w->table, &span, sizeof(span));
    w->nodes += b->count;
    w->highest_cpu = b->highest_cpu > w->highest_cpu ? b->highest_cpu : w->highest_cpu;
    w->highest_nic = b->highest_nic > w->highest_nic ? b->highest_nic : w->highest_nic;
    w->written++;
    goal_builder_clear(b);
    int failed = w->data.failed != 0 ? w->data.failed : w->table.failed;
    return failed == 0 ? 0 : write_failed(error, failed);
}

int goal_writer_close(struct goal_writer *w, struct goal_error *error)
{
    struct {
        uint64_t cookie;
        uint32_t ranks;
        uint8_t highest_cpu, highest_nic;
    } __attribute__((packed)) header = {GOAL_COOKIE, w->ranks, w->highest_cpu, w->highest_nic};
    _Static_assert(sizeof(header) == GOAL_HEADER, "what comes before the table of ranks");
    int table = goal_stream_close(&w->table);
    int data = goal_stream_close(&w->data);
    if (table != 0 || data != 0) {
        return write_failed(error, table != 0 ? -table : -data);
    }
    if (w->written != w->ranks) {
        return goal_fail(error, "%u of %u ranks were written", w->written, w->ranks);
    }
    if (pwrite(w->fd, &header, sizeof(header), 0) != (ssize_t)sizeof(header)) {
        return write_failed(error, errno);
    }
    return 0;
}
