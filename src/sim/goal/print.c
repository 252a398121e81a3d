/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Printing GOAL text; see print.h.
 *
 * The line of a dependency must come after the lines of both its operations, and the lines of a
 * list in the list's order. So it is printed below the operation, of its own two and those of the
 * lines before it in its list, that comes last. A counting sort orders the lines by that operation.
 */
#include "print.h"

#include <stdlib.h>

static void put_text(struct goal_printer *p, const char *text)
{
    goal_stream_put(p->out, text, strlen(text));
}

static void put_number(struct goal_printer *p, uint64_t n)
{
    char digits[20];
    size_t at = sizeof(digits);
    do {
        digits[--at] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    goal_stream_put(p->out, digits + at, sizeof(digits) - at);
}

/* Prints a number; GOAL_ANY as "-1". */
static void put_or_any(struct goal_printer *p, uint32_t n)
{
    if (n == GOAL_ANY) {
        put_text(p, "-1");
    } else {
        put_number(p, n);
    }
}

static void put_label(struct goal_printer *p, uint32_t rank, uint32_t node)
{
    struct goal_place place;
    if (p->labels_of != NULL && goal_locate(p->labels_of, rank, node, &place) &&
        place.label_length > 0) {
        goal_stream_put(p->out, place.label, place.label_length);
        return;
    }
    put_text(p, "l");
    put_number(p, (uint64_t)node + 1);
}

static bool has_label(struct goal_printer *p, uint32_t rank, uint32_t node,
                      const struct goal_node *n)
{
    struct goal_place place;
    return p->labels_of == NULL || (n->depends | n->done_count | n->start_count) != 0 ||
           !goal_locate(p->labels_of, rank, node, &place) || place.label_length > 0;
}

static void put_operation(struct goal_printer *p, uint32_t rank, uint32_t node,
                          const struct goal_node *n)
{
    static const char *const words[] = {"", "send ", "recv ", "calc "};
    if (has_label(p, rank, node, n)) {
        put_label(p, rank, node);
        put_text(p, ": ");
    }
    put_text(p, words[n->type]);
    put_number(p, n->size);
    if (n->type != GOAL_CALC) {
        put_text(p, n->type == GOAL_SEND ? "b to " : "b from ");
        put_or_any(p, n->peer);
        put_text(p, " tag ");
        put_or_any(p, n->tag);
    }
    if (n->cpu != 0) {
        put_text(p, " cpu ");
        put_number(p, n->cpu);
    }
    if (n->nic != 0) {
        put_text(p, " nic ");
        put_number(p, n->nic);
    }
    put_text(p, "\n");
}

/* ---- Dependencies ---- */

static bool reserve(struct goal_printer *p, uint64_t nodes, uint64_t successors)
{
    if (nodes + 2 > p->first_room) {
        free(p->first);
        p->first_room = 2 * (nodes + 2);
        p->first = malloc(p->first_room * sizeof(*p->first));
    }
    if (successors > p->lines_room) {
        free(p->lines);
        p->lines_room = 2 * successors;
        p->lines = malloc(p->lines_room * sizeof(*p->lines));
    }
    if (p->first == NULL || (successors > 0 && p->lines == NULL)) {
        p->first_room = p->first != NULL ? p->first_room : 0;
        p->lines_room = p->lines != NULL ? p->lines_room : 0;
        return false;
    }
    return true;
}

/* Goes through one list. With `count_only` it counts the lines that belong below each operation, in
 * first[operation + 2]; else it puts the lines into their places. */
static void deal(struct goal_printer *p, uint32_t on, const goal_u32 *list, uint32_t count,
                 bool at_start, bool count_only)
{
    uint32_t below = on;
    for (uint32_t i = 0; i < count; i++) {
        below = list[i] > below ? list[i] : below;
        if (count_only) {
            p->first[(uint64_t)below + 2]++;
        } else {
            p->lines[p->first[(uint64_t)below + 1]++] =
                (struct goal_line){.node = list[i], .on = on, .at_start = at_start};
        }
    }
}

static void deal_all(struct goal_printer *p, const struct goal_rank *r, bool count_only)
{
    for (uint32_t i = 0; i < r->node_count; i++) {
        const struct goal_node *n = &r->nodes[i];
        deal(p, i, goal_done(r, n), n->done_count, false, count_only);
        deal(p, i, goal_start(r, n), n->start_count, true, count_only);
    }
}

/* Sorts the lines of a rank: those below operation i are then first[i] to first[i + 1]. */
static void sort_lines(struct goal_printer *p, const struct goal_rank *r)
{
    memset(p->first, 0, ((uint64_t)r->node_count + 2) * sizeof(*p->first));
    deal_all(p, r, true);
    for (uint64_t i = 2; i < (uint64_t)r->node_count + 2; i++) {
        p->first[i] += p->first[i - 1];
    }
    deal_all(p, r, false);
}

static void put_dependency(struct goal_printer *p, uint32_t rank, const struct goal_line *l)
{
    put_label(p, rank, l->node);
    put_text(p, l->at_start ? " irequires " : " requires ");
    put_label(p, rank, l->on);
    put_text(p, "\n");
}

void goal_print_head(struct goal_printer *p, uint32_t ranks)
{
    put_text(p, "num_ranks ");
    put_number(p, ranks);
    put_text(p, "\n");
}

int goal_print_rank(struct goal_printer *p, uint32_t rank, const struct goal_rank *r,
                    uint64_t successors)
{
    if (!reserve(p, r->node_count, successors)) {
        return -1;
    }
    sort_lines(p, r);
    put_text(p, "\nrank ");
    put_number(p, rank);
    put_text(p, " {\n");
    for (uint32_t i = 0; i < r->node_count; i++) {
        put_operation(p, rank, i, &r->nodes[i]);
        for (uint64_t l = p->first[i]; l < p->first[(uint64_t)i + 1]; l++) {
            put_dependency(p, rank, &p->lines[l]);
        }
    }
    put_text(p, "}\n");
    return 0;
}

void goal_printer_free(struct goal_printer *p)
{
    free(p->lines);
    free(p->first);
    *p = (struct goal_printer){.out = p->out};
}
