/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Printing GOAL text; see print.h.
 *
 * The line of a dependency must come after the lines of both its operations, and the lines of a
 * list in the list's order. So it is printed below the operation, of its own two and those of the
 * lines before it in its list, that comes last. A counting sort orders the lines by that operation.
 */
#include "print.h"

#include "operations.h"

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

/* Prints a time in the largest unit that it is a multiple of. */
static void put_time(struct goal_printer *p, uint64_t n, bool cycles)
{
    put_number(p, cycles || n % 1000 != 0 ? n : n / 1000);
    put_text(p, cycles ? "c" : n % 1000 != 0 ? "ps" : "ns");
}

static void put_bytes(struct goal_printer *p, uint64_t n)
{
    put_text(p, " ");
    put_number(p, n);
    put_text(p, "b");
}

static void put_part(struct goal_printer *p, const struct goal_node *n, bool packet)
{
    put_text(p, " ");
    put_text(p, goal_kind_of(n->type)->word);
    switch (n->type) {
    case GOAL_HEADER_HANDLER:
    case GOAL_PAYLOAD_HANDLER:
    case GOAL_COMPLETION_HANDLER:
        put_text(p, " ");
        put_time(p, n->size, n->cpu != 0);
        if (n->tag != 0) {
            put_text(p, "+");
            put_time(p, n->peer, n->cpu != 0);
            put_text(p, "/");
            put_number(p, n->tag);
            put_text(p, "b");
        }
        break;
    case GOAL_DOES_PUT:
    case GOAL_DOES_HOST_PUT:
    case GOAL_DOES_WRITE:
        if (!packet || n->size != 0) {
            put_bytes(p, n->size);
        }
        if (n->type != GOAL_DOES_WRITE) {
            put_text(p, " to ");
            put_number(p, n->peer);
            put_text(p, " as ");
            put_number(p, n->tag);
        }
        break;
    case GOAL_DOES_COUNT:
    case GOAL_WHEN:
        put_text(p, " ");
        put_number(p, n->tag);
        put_text(p, n->type == GOAL_WHEN ? " reaches " : " by ");
        put_number(p, n->size);
        break;
    case GOAL_COUNTS:
        put_text(p, " ");
        put_number(p, n->tag);
        break;
    default:
        break;
    }
}

static void put_parts(struct goal_printer *p, const struct goal_node *n, uint32_t count)
{
    bool packet = false;
    for (uint32_t i = 1; i <= count; i++) {
        packet = goal_kind_of(n[i].type)->has == 0 ? n[i].type == GOAL_PAYLOAD_HANDLER : packet;
        put_part(p, &n[i], packet);
    }
}

/* Prints what an operation has but for cpu, nic and its parts. */
static void put_fields(struct goal_printer *p, const struct goal_node *n)
{
    const struct goal_kind *kind = goal_kind_of(n->type);
    if ((kind->has & GOAL_HAS_COUNTER) != 0) {
        put_number(p, n->tag);
        put_text(p, n->type == GOAL_TEST ? " for " : " by ");
        put_number(p, n->size);
        return;
    }
    put_number(p, n->size);
    if ((kind->has & GOAL_HAS_PEER) != 0) {
        put_text(p, n->type == GOAL_APPEND ? "b priority_list " : "b ");
        put_text(p, kind->between);
        put_text(p, " ");
        put_or_any(p, n->peer);
        put_text(p, " tag ");
        put_or_any(p, n->tag);
    }
}

static void put_operation(struct goal_printer *p, uint32_t rank, uint32_t node,
                          const struct goal_node *n, uint32_t parts)
{
    if (has_label(p, rank, node, n)) {
        put_label(p, rank, node);
        put_text(p, ": ");
    }
    bool triggered = parts != 0 && n[1].type == GOAL_WHEN;
    put_text(p, triggered ? "t" : "");
    put_text(p, goal_kind_of(n->type)->word);
    put_text(p, " ");
    put_fields(p, n);
    if (n->cpu != 0) {
        put_text(p, " cpu ");
        put_number(p, n->cpu);
    }
    if (n->nic != 0) {
        put_text(p, " nic ");
        put_number(p, n->nic);
    }
    put_parts(p, n, parts);
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
        if (!goal_is_part(&r->nodes[i])) {
            put_operation(p, rank, i, &r->nodes[i], goal_part_count(r, i));
        }
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
