/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes what reads schedules. An input that begins with the cookie is a binary
 * one, any other is text.
 *
 * A binary schedule that is accepted is walked from end to end, printed, and what
 * was printed is compiled: that must give the same bytes. Text that compiles must
 * give an acceptable binary; its side file is damaged at one place and asked for
 * every operation.
 */
#include "fuzz.h"

#include "../sim/goal_try.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Texts ask for few ranks: a large number of empty ones is slow, and nothing new. */
enum { TEXT_MAX = 20000 };

/* Touches all that a schedule claims to have. */
static uint64_t walk(const struct goal *g)
{
    uint64_t nodes = 0, roots = 0, sum = 0;
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        struct goal_rank r = goal_rank(g, rank);
        for (uint32_t i = 0; i < r.root_count; i++) {
            MUST(r.roots[i] < r.node_count && r.nodes[r.roots[i]].depends == 0);
            roots++;
        }
        for (uint32_t i = 0; i < r.node_count; i++) {
            const struct goal_node *n = &r.nodes[i];
            MUST(goal_is_part(n) || (n->cpu < g->cpus && n->nic < g->nics));
            MUST(!goal_is_part(n) || i > 0);
            MUST(n->type != GOAL_SEND || n->peer < g->ranks);
            for (uint32_t k = 0; k < n->done_count; k++) {
                MUST(goal_done(&r, n)[k] < r.node_count);
            }
            for (uint32_t k = 0; k < n->start_count; k++) {
                MUST(goal_start(&r, n)[k] < r.node_count);
            }
            sum += n->size;
            nodes++;
        }
    }
    MUST(nodes == g->nodes && roots <= nodes &&
         nodes == g->sends + g->recvs + g->calcs + g->portals + g->parts);
    return sum;
}

static void check_binary(const uint8_t *data, size_t size)
{
    struct goal g;
    struct goal_error error;
    if (goal_open_image(&g, data, size, "input", &error) != 0) {
        MUST(strncmp(error.text, "input: ", 7) == 0);
        return;
    }
    walk(&g);
    goal_close(&g);
    struct bytes given = {.at = (uint8_t *)data, .length = size}, again;
    struct bytes text = try_print(&given);
    MUST(try_compile((char *)text.at, text.length, 0, &again, &error) == 0);
    MUST(again.length == size && memcmp(again.at, data, size) == 0);
    free(text.at);
    free(again.at);
}

/* The side file `fd` of the binary, one of its bytes changed, is asked for all. */
static void check_side(const struct bytes *bin, int fd, uint64_t seed)
{
    struct goal g;
    struct goal_error error;
    struct goal_place p;
    struct bytes side = try_contents(fd);
    uint8_t value = (uint8_t)(seed >> 32);
    uint64_t sum = 0;
    MUST(goal_open_image(&g, bin->at, bin->length, "input", &error) == 0);
    MUST(pwrite(fd, &value, 1, (off_t)(seed % side.length)) == 1);
    struct goal_side *loaded = goal_side_load(&g, "none", fd);
    for (uint32_t rank = 0; rank < g.ranks && loaded != NULL; rank++) {
        uint32_t count = goal_rank(&g, rank).node_count;
        for (uint32_t node = 0; node <= count; node++) {
            if (goal_side_find(loaded, &g, rank, node, &p)) {
                MUST(node < count && p.label_length <= side.length);
                for (uint32_t i = 0; i < p.label_length; i++) {
                    sum += (uint8_t)p.label[i];
                }
            }
        }
    }
    MUST(sum <= 255 * (uint64_t)side.length * (g.nodes + 1)); /* and the sum is used */
    goal_side_free(loaded);
    goal_close(&g);
    free(side.at);
}

static void check_text(const uint8_t *data, size_t size)
{
    struct goal_text t = {.name = "input", .at = (const char *)data, .length = size, .fd = -1};
    struct goal_error error;
    struct goal_made made;
    uint64_t seed = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) {
        seed = (seed ^ data[i]) * 0x100000001b3u;
    }
    int bin_fd = try_memfd(), side_fd = try_memfd();
    if (goal_compile(&t, seed % 2 == 0 ? GOAL_COMPAT : 0, bin_fd, side_fd, &made, &error) != 0) {
        MUST(strlen(error.text) > 8);
    } else {
        struct bytes bin = try_contents(bin_fd);
        check_binary(bin.at, bin.length);
        check_side(&bin, side_fd, seed);
        free(bin.at);
    }
    close(bin_fd);
    close(side_fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t cookie = 0;
    memcpy(&cookie, data, size < 8 ? size : 8);
    if (size >= 8 && cookie == GOAL_COOKIE) {
        check_binary(data, size);
    } else if (size < TEXT_MAX) {
        check_text(data, size);
    }
    return 0;
}
