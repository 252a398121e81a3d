/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel goal show`: prints a schedule as text that compiles to the identical bytes, or as JSON;
 * or its statistics, as text or JSON.
 */
#include "commands.h"

#include "pinwheel/util/json.h"

#include "sim/goal/operations.h"
#include "sim/goal/print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct show {
    const char *path;
    bool stats, as_json, compat;
};

#define AT(member) ARGS_AT(struct show, member)

static const struct args_option show_options[] = {
    {"--stats", NULL, "statistics instead of the operations", ARGS_FLAG, AT(stats)},
    {"--json", NULL, "as JSON", ARGS_FLAG, AT(as_json)},
    {"--compat", NULL, "of equal labels in a text keep the first, as LogGOPSim's compiler does",
     ARGS_FLAG, AT(compat)},
};

/* ---- Statistics ---- */

/* The sizes of the operations of one type. The sum of many large ones needs 128 bits. */
struct sizes {
    uint64_t count;
    uint64_t least;
    uint64_t most;
    unsigned __int128 sum;
};

struct stats {
    struct sizes of[GOAL_TYPES]; /* by type */
    uint64_t requires, irequires;
    uint64_t roots;
    uint64_t empty_ranks;
    uint64_t any_source, any_tag; /* receives from any source; receives of any tag */
    uint64_t self_sends;
};

static void add_size(struct sizes *s, uint64_t size)
{
    s->least = s->count == 0 || size < s->least ? size : s->least;
    s->most = size > s->most ? size : s->most;
    s->sum += size;
    s->count++;
}

static void add_rank(struct stats *s, const struct goal *g, uint32_t rank)
{
    struct goal_rank r = goal_rank(g, rank);
    s->roots += r.root_count;
    s->empty_ranks += r.node_count == 0;
    for (uint32_t i = 0; i < r.node_count; i++) {
        const struct goal_node *n = &r.nodes[i];
        if (goal_is_part(n)) {
            continue;
        }
        add_size(&s->of[n->type], n->size);
        s->requires += n->done_count;
        s->irequires += n->start_count;
        s->any_source += n->type == GOAL_RECV && n->peer == GOAL_ANY;
        s->any_tag += n->type == GOAL_RECV && n->tag == GOAL_ANY;
        s->self_sends += n->type == GOAL_SEND && n->peer == rank;
    }
}

static struct stats gather(const struct goal *g)
{
    struct stats s = {0};
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        add_rank(&s, g, rank);
    }
    return s;
}

static const struct {
    enum goal_type type;
    const char *name;
    const char *unit;
} kinds[] = {{GOAL_SEND, "sends", "bytes"},
             {GOAL_RECV, "recvs", "bytes"},
             {GOAL_CALC, "calcs", "ns"},
             {GOAL_PUT, "puts", "bytes"},
             {GOAL_GET, "gets", "bytes"},
             {GOAL_ATOMIC, "atomics", "bytes"},
             {GOAL_FETCH, "fetches", "bytes"},
             {GOAL_SWAP, "swaps", "bytes"},
             {GOAL_CAS, "compare-and-swaps", "bytes"},
             {GOAL_APPEND, "appends", "bytes"},
             {GOAL_TEST, "tests", "counts"},
             {GOAL_COUNT, "counts", "counts"}};

enum { KINDS = sizeof(kinds) / sizeof(kinds[0]), ALWAYS = 3 };

/* Kinds of Portals are named only where there are some. */
static bool is_named(const struct stats *s, int kind)
{
    return kind < ALWAYS || s->of[kinds[kind].type].count > 0;
}

/* Writes a sum, which may have 39 digits. */
static const char *sum_text(unsigned __int128 n, char text[40])
{
    char *p = text + 39;
    *p = '\0';
    do {
        *--p = (char)('0' + (int)(n % 10));
        n /= 10;
    } while (n > 0);
    return p;
}

static int print_stats(const struct goal *g, const struct stats *s)
{
    char sum[40];
    printf("ranks         %u, without operations %" PRIu64 "\n", g->ranks, s->empty_ranks);
    printf("operations    %" PRIu64 ", at most %u a rank, %" PRIu64 " ready at the start\n",
           g->nodes - g->parts, g->most_nodes, s->roots);
    for (int i = 0; i < KINDS; i++) {
        const struct sizes *z = &s->of[kinds[i].type];
        if (!is_named(s, i)) {
            continue;
        }
        printf("  %-11s %" PRIu64, kinds[i].name, z->count);
        if (z->count > 0) {
            printf(", %s %s in all, %" PRIu64 " to %" PRIu64 " each", sum_text(z->sum, sum),
                   kinds[i].unit, z->least, z->most);
        }
        putchar('\n');
    }
    printf("wildcards     %" PRIu64 " recvs of any source, %" PRIu64 " of any tag\n", s->any_source,
           s->any_tag);
    printf("self sends    %" PRIu64 "\n", s->self_sends);
    printf("dependencies  %" PRIu64 " on an end, %" PRIu64 " on a start\n", s->requires,
           s->irequires);
    printf("per rank      %u CPUs, %u NICs\n", g->cpus, g->nics);
    printf("binary        %zu bytes\n", g->map_length);
    return fflush(stdout) != 0 || ferror(stdout) ? -1 : 0;
}

static int print_stats_json(const struct goal *g, const struct stats *s)
{
    struct json j = {.to = stdout};
    json_open_object(&j, NULL);
    json_unsigned(&j, "ranks", g->ranks);
    json_unsigned(&j, "ranks_without_operations", s->empty_ranks);
    json_unsigned(&j, "operations", g->nodes - g->parts);
    json_unsigned(&j, "most_operations_of_a_rank", g->most_nodes);
    json_unsigned(&j, "ready_at_start", s->roots);
    for (int i = 0; i < KINDS; i++) {
        const struct sizes *z = &s->of[kinds[i].type];
        char sum[40];
        if (!is_named(s, i)) {
            continue;
        }
        json_open_object(&j, kinds[i].name);
        json_unsigned(&j, "count", z->count);
        json_string(&j, "unit", kinds[i].unit);
        json_string(&j, "sum", sum_text(z->sum, sum));
        json_unsigned(&j, "least", z->least);
        json_unsigned(&j, "most", z->most);
        json_close_object(&j);
    }
    json_unsigned(&j, "recvs_of_any_source", s->any_source);
    json_unsigned(&j, "recvs_of_any_tag", s->any_tag);
    json_unsigned(&j, "self_sends", s->self_sends);
    json_unsigned(&j, "requires", s->requires);
    json_unsigned(&j, "irequires", s->irequires);
    json_unsigned(&j, "cpus", g->cpus);
    json_unsigned(&j, "nics", g->nics);
    json_unsigned(&j, "binary_bytes", g->map_length);
    json_close_object(&j);
    return json_end(&j);
}

/* ---- The schedule ---- */

static void json_list(struct json *j, const char *name, const goal_u32 *list, uint32_t count)
{
    if (count == 0) {
        return;
    }
    json_open_array(j, name);
    for (uint32_t i = 0; i < count; i++) {
        json_unsigned(j, NULL, list[i]);
    }
    json_close_array(j);
}

static void json_u32_or_any(struct json *j, const char *name, uint32_t n)
{
    json_number(j, name, n == GOAL_ANY ? -1 : (int64_t)n);
}

/* What an operation has besides, and what its handlers take and do. */
static void json_parts(struct json *j, const struct goal_node *n, uint32_t count)
{
    if (count == 0) {
        return;
    }
    json_open_array(j, "parts");
    for (uint32_t i = 1; i <= count; i++) {
        const struct goal_node *p = &n[i];
        unsigned has = goal_kind_of(p->type)->has;
        json_open_object(j, NULL);
        json_string(j, "part", goal_kind_of(p->type)->word);
        if (has == 0 && p->type != GOAL_USE_ONCE) {
            json_unsigned(j, p->cpu != 0 ? "cycles" : "ps", p->size);
            json_unsigned(j, "more", p->peer);
            json_unsigned(j, "for_bytes", p->tag);
        } else if (p->type != GOAL_USE_ONCE && p->type != GOAL_COUNTS) {
            json_unsigned(j, "size", p->size);
        }
        if ((has & GOAL_HAS_PEER) != 0) {
            json_unsigned(j, "peer", p->peer);
        }
        if ((has & (GOAL_HAS_TAG | GOAL_HAS_COUNTER)) != 0) {
            json_unsigned(j, (has & GOAL_HAS_TAG) != 0 ? "tag" : "counter", p->tag);
        }
        json_close_object(j);
    }
    json_close_array(j);
}

static void json_node(struct json *j, struct goal *g, uint32_t rank, uint32_t node)
{
    struct goal_rank r = goal_rank(g, rank);
    const struct goal_node *n = &r.nodes[node];
    struct goal_place place;
    json_open_object(j, NULL);
    if (g->parts != 0) {
        json_unsigned(j, "node", node); /* as lists name it: parts have numbers, too */
    }
    json_string(j, "type", goal_kind_of(n->type)->word);
    json_unsigned(j, "size", n->size);
    unsigned has = goal_kind_of(n->type)->has;
    if ((has & GOAL_HAS_PEER) != 0) {
        json_u32_or_any(j, "peer", n->peer);
        json_u32_or_any(j, "tag", n->tag);
        json_unsigned(j, "nic", n->nic);
    }
    if ((has & GOAL_HAS_COUNTER) != 0) {
        json_unsigned(j, "counter", n->tag);
    }
    json_unsigned(j, "cpu", n->cpu);
    json_parts(j, n, goal_part_count(&r, node));
    json_unsigned(j, "dependencies", n->depends);
    json_list(j, "required_by", goal_done(&r, n), n->done_count);
    json_list(j, "irequired_by", goal_start(&r, n), n->start_count);
    if (goal_locate(g, rank, node, &place)) {
        char *label = strndup(place.label, place.label_length);
        if (place.line > 0) {
            json_unsigned(j, "line", place.line);
        }
        if (label != NULL && place.label_length > 0) {
            json_string(j, "label", label);
        }
        free(label);
    }
    json_close_object(j);
}

static int print_json(struct goal *g)
{
    struct json j = {.to = stdout};
    json_open_object(&j, NULL);
    json_unsigned(&j, "ranks", g->ranks);
    json_open_array(&j, "operations_of_ranks");
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        json_open_array(&j, NULL);
        uint32_t count = goal_rank(g, rank).node_count;
        for (uint32_t node = 0; node < count; node++) {
            if (!goal_is_part(&goal_rank(g, rank).nodes[node])) {
                json_node(&j, g, rank, node);
            }
        }
        json_close_array(&j);
    }
    json_close_array(&j);
    json_close_object(&j);
    return json_end(&j);
}

static int print_text(struct goal *g)
{
    struct goal_stream out;
    struct goal_place place;
    if (goal_stream_append(&out, STDOUT_FILENO) != 0) {
        return -1;
    }
    struct goal_printer p = {.out = &out};
    for (uint32_t rank = 0; rank < g->ranks && p.labels_of == NULL; rank++) {
        if (goal_rank(g, rank).node_count > 0) {
            p.labels_of = goal_locate(g, rank, 0, &place) ? g : NULL;
            break;
        }
    }
    int rc = 0;
    goal_print_head(&p, g->ranks);
    for (uint32_t rank = 0; rank < g->ranks && rc == 0 && out.failed == 0; rank++) {
        struct goal_rank r = goal_rank(g, rank);
        rc = goal_print_rank(&p, rank, &r, goal_successor_count(g, rank));
    }
    goal_printer_free(&p);
    int closed = goal_stream_close(&out);
    errno = rc != 0 ? ENOMEM : -closed;
    return rc != 0 || closed != 0 ? -1 : 0;
}

int goal_command_show(int argc, char **argv)
{
    struct args a = {.command = "goal show",
                     .operands = "SCHEDULE",
                     .summary = "Prints a schedule, binary or text, as text that compiles back to "
                                "the identical\nbytes, as JSON, or its statistics.",
                     ARGS_OPTIONS(show_options)};
    struct show w = {.path = NULL};
    a.operand = &w.path;
    int status = args_parse(&a, argc, argv, &w);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (w.path == NULL) {
        return args_error(&a, "which SCHEDULE? a file, or -");
    }
    struct goal g;
    struct goal_error error;
    if (goal_open(&g, w.path, w.compat ? GOAL_COMPAT : 0, &error) != 0) {
        fprintf(stderr, "pinwheel goal show: %s\n", error.text);
        return 1;
    }
    struct stats s = w.stats ? gather(&g) : (struct stats){0};
    int rc = w.stats && w.as_json ? print_stats_json(&g, &s)
             : w.stats            ? print_stats(&g, &s)
             : w.as_json          ? print_json(&g)
                                  : print_text(&g);
    goal_close(&g);
    if (rc != 0) {
        perror("pinwheel goal show: cannot write");
        return 1;
    }
    return 0;
}
