/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel goal run --timeline`: the run as a picture, time to the right.
 *
 *   rank 0  cpu 0      [send]      [calc ]
 *           nic 0 out  [send  ] \          an arrow a message, from the end of its o to its
 *   rank 1  cpu 0               \  [recv]  first byte; requests and replies are dashed
 *           nic 0 in             [recv  ]
 *
 * A rank has a line for each cpu and each side of a nic that it uses.
 */
#include "pinwheel/util/plot.h"
#include "run.h"

#include "sim/report/spans.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { WIDTH = 1240, LEFT = 150, RIGHT = 1210, TOP = 84, LINE = 20, BOX = 14, GAP = 12, FOOT = 62 };

static const char style[] =
    "text { font-size: 12px }\n"
    ".title { font-size: 18px }\n"
    ".lane { font-size: 10px; fill: #666 }\n"
    ".rule { stroke: #c9ccd1; stroke-width: 1 }\n"
    ".calc { fill: #b8bdc4 } .send { fill: #0072b2 } .data { fill: #0072b2 }\n"
    ".request { fill: #56b4e9 } .reply { fill: #56b4e9 } .recv { fill: #e69f00 }\n"
    ".nic { fill-opacity: 0.5 }\n"
    ".box { stroke: #ffffff; stroke-width: 0.6 }\n"
    ".arrow { stroke: #333; stroke-width: 1.1 } .head { fill: #333 }\n"
    ".control { stroke-dasharray: 3 3; stroke: #777 }\n";

/* Where the lines of the picture are: the y of each lane of each rank; 0: the lane is not used. */
struct timeline {
    const struct goal_run *r;
    struct plot plot;
    struct plot_axis x;
    double *y;
    double height;
};

static double *line_of(struct timeline *t, uint32_t rank, enum span_lane lane, uint8_t number)
{
    const struct goal *g = &t->r->goal;
    size_t first = lane == SPAN_CPU ? 0 : lane == SPAN_NIC_OUT ? g->cpus : g->cpus + g->nics;
    return &t->y[(size_t)rank * (g->cpus + 2 * g->nics) + first + number];
}

static double x_of(const struct timeline *t, uint64_t time)
{
    double ns = (double)time / (double)t->r->out.ticks_per_ns;
    return plot_place(&t->x, ns * t->x.scale);
}

/* Marks the lanes that are used, then gives each of them its y. */
static void lay_out(struct timeline *t)
{
    const struct goal *g = &t->r->goal;
    uint32_t lanes = g->cpus + 2 * g->nics;
    for (uint64_t i = 0; i < g->nodes; i++) {
        struct span spans[SPANS_MOST];
        uint32_t rank, op;
        record_find(&t->r->record, i, &rank, &op);
        for (int k = spans_of(&t->r->record, i, spans) - 1; k >= 0; k--) {
            *line_of(t, rank, spans[k].lane, spans[k].number) = 1;
        }
    }
    double y = TOP;
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        y += GAP;
        bool any = false;
        for (uint32_t lane = 0; lane < lanes; lane++) {
            double *at = &t->y[(size_t)rank * lanes + lane];
            if (*at != 0) {
                *at = y;
                y += LINE;
                any = true;
            }
        }
        y += any ? 0 : LINE; /* a rank without operations has a line for its name */
    }
    t->height = y + GAP;
}

static void draw_lines(struct timeline *t)
{
    static const char *const names[] = {
        [SPAN_CPU] = "cpu %u", [SPAN_NIC_OUT] = "nic %u out", [SPAN_NIC_IN] = "nic %u in"};
    const struct goal *g = &t->r->goal;
    const uint32_t counts[SPAN_LANES] = {g->cpus, g->nics, g->nics};
    double y = TOP;
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        y += GAP;
        svg_text(&t->plot.svg, "end", (struct svg_point){LEFT - 70, y + BOX - 2}, "rank %" PRIu32,
                 rank);
        double begin = y;
        for (int lane = 0; lane < SPAN_LANES; lane++) {
            for (uint32_t i = 0; i < counts[lane]; i++) {
                if (*line_of(t, rank, (enum span_lane)lane, (uint8_t)i) == 0) {
                    continue;
                }
                char name[24];
                snprintf(name, sizeof(name), names[lane], i);
                svg_text(&t->plot.svg, "lane end", (struct svg_point){LEFT - 8, y + BOX - 3}, "%s",
                         name);
                svg_line(&t->plot.svg, "rule", (struct svg_point){LEFT, y + BOX / 2.0},
                         (struct svg_point){RIGHT, y + BOX / 2.0});
                y += LINE;
            }
        }
        y += y > begin ? 0 : LINE;
    }
}

static void draw_axis(struct timeline *t)
{
    double step = plot_step(t->x.high);
    for (int i = 0; i * step <= t->x.high + step / 1000; i++) {
        double x = plot_place(&t->x, i * step);
        svg_line(&t->plot.svg, "grid", (struct svg_point){x, TOP},
                 (struct svg_point){x, t->height});
        svg_text(&t->plot.svg, "tick middle", (struct svg_point){x, t->height + 18}, "%g",
                 i * step);
    }
    svg_text(&t->plot.svg, "middle", (struct svg_point){(LEFT + RIGHT) / 2.0, t->height + 42},
             "time (%s)", t->x.unit);
}

static const char *const lane_names[SPAN_LANES] = {"cpu", "nic out", "nic in"};

static void draw_spans(struct timeline *t, uint64_t operation)
{
    struct span spans[SPANS_MOST];
    uint32_t rank, op;
    int count = spans_of(&t->r->record, operation, spans);
    record_find(&t->r->record, operation, &rank, &op);
    for (int i = 0; i < count; i++) {
        const struct span *s = &spans[i];
        char class[32], hint[128], begin[32], end[32];
        double x = x_of(t, s->time), width = x_of(t, s->time + s->length) - x;
        goal_time_text(&t->r->out, s->time, begin);
        goal_time_text(&t->r->out, s->time + s->length, end);
        snprintf(class, sizeof(class), "box %s%s", span_name(s->kind),
                 s->lane == SPAN_CPU ? "" : " nic");
        snprintf(hint, sizeof(hint), "rank %" PRIu32 ", operation %" PRIu32 ": %s, %s to %s ns",
                 rank, op, span_name(s->kind), begin, end);
        plot_data(&t->plot, "%" PRIu32 ",%" PRIu32 ",%s,%s,%u,%s,%s", rank, op, span_name(s->kind),
                  lane_names[s->lane], s->number, begin, end);
        svg_hint(&t->plot.svg, class, x, *line_of(t, rank, s->lane, s->number), fmax(width, 0.5),
                 BOX, hint);
    }
}

/* Returns the point of one end of an arrow. */
static struct svg_point end_of(struct timeline *t, uint64_t operation, enum span_lane lane,
                               uint64_t time)
{
    const struct goal_node *n = record_node(&t->r->record, operation);
    uint32_t rank, op;
    record_find(&t->r->record, operation, &rank, &op);
    double y = *line_of(t, rank, lane, lane == SPAN_CPU ? n->cpu : n->nic);
    return (struct svg_point){x_of(t, time), y + BOX / 2.0};
}

static void draw_arrow(struct timeline *t, const struct flight *f)
{
    bool control = f->kind == SPAN_REQUEST || f->kind == SPAN_REPLY;
    struct svg_point from = end_of(t, f->from, SPAN_CPU, f->leaves);
    struct svg_point to =
        end_of(t, f->to, f->kind == SPAN_REPLY ? SPAN_CPU : SPAN_NIC_IN, f->arrives);
    /* the arrow goes from the edge of one box to that of the other */
    double down = to.y > from.y ? 1 : -1;
    from.y += down * BOX / 2.0;
    to.y -= down * BOX / 2.0;
    double dx = to.x - from.x, dy = to.y - from.y, length = sqrt(dx * dx + dy * dy);
    svg_line(&t->plot.svg, control ? "arrow control" : "arrow", from, to);
    if (length > 0) {
        dx *= 6 / length;
        dy *= 6 / length;
        svg_polygon(&t->plot.svg, "head",
                    (struct svg_point[]){to,
                                         {to.x - dx - dy / 2.4, to.y - dy + dx / 2.4},
                                         {to.x - dx + dy / 2.4, to.y - dy - dx / 2.4}},
                    3);
    }
}

static void draw_key(struct svg *s)
{
    static const char *const keys[][2] = {{"box calc", "calc"},
                                          {"box send", "send, data"},
                                          {"box request", "request, reply"},
                                          {"box recv", "recv"}};
    for (int i = 0; i < 4; i++) {
        double x = 720 + 124 * i;
        svg_rect(s, keys[i][0], x, 50, 22, 11);
        svg_text(s, "sub", (struct svg_point){x + 28, 60}, "%s", keys[i][1]);
    }
}

/* Returns the latest end of any span, also those of nics. */
static uint64_t latest(const struct goal_run *r)
{
    uint64_t most = 1;
    for (uint64_t i = 0; i < r->goal.nodes; i++) {
        struct span spans[SPANS_MOST];
        for (int k = spans_of(&r->record, i, spans) - 1; k >= 0; k--) {
            uint64_t end = spans[k].time + spans[k].length;
            most = end > most ? end : most;
        }
    }
    return most;
}

static void draw(struct timeline *t)
{
    const struct goal_run *r = t->r;
    struct goal_summary s = goal_summarise(&r->goal, &r->out);
    char finish[32];
    goal_time_text(&r->out, s.most, finish);
    plot_data(&t->plot, "rank,operation,what,taken,number,from (ns),to (ns)");
    svg_text(&t->plot.svg, "title", (struct svg_point){24, 36}, "%s", goal_run_name(r));
    svg_text(&t->plot.svg, "sub", (struct svg_point){24, 60},
             "%" PRIu32 " ranks, %" PRIu64 " operations; rank %" PRIu32 " is the last, at %s ns",
             r->goal.ranks, r->goal.nodes, s.last, finish);
    draw_key(&t->plot.svg);
    draw_axis(t);
    draw_lines(t);
    for (uint64_t i = 0; i < r->goal.nodes; i++) {
        draw_spans(t, i);
    }
    for (uint64_t i = 0; i < r->goal.nodes; i++) {
        struct flight flights[FLIGHTS_MOST];
        int count = flights_of(&r->record, i, flights);
        for (int k = 0; k < count; k++) {
            draw_arrow(t, &flights[k]);
        }
    }
}

int goal_timeline_draw(const struct goal_run *r)
{
    const struct goal *g = &r->goal;
    struct timeline t = {.r = r, .x = {.at_low = LEFT, .at_high = RIGHT}};
    t.y = calloc((size_t)g->ranks * (g->cpus + 2 * g->nics), sizeof(*t.y));
    if (t.y == NULL) {
        return -1;
    }
    double ns = (double)latest(r) / (double)r->out.ticks_per_ns;
    plot_choose_unit(&t.x, ns);
    t.x.high = ns * t.x.scale;
    lay_out(&t);
    int status = plot_open(&t.plot, r->timeline, WIDTH, t.height + FOOT, "Timeline of a simulation",
                           r->file, style);
    if (status == 0) {
        draw(&t);
        status = plot_close(&t.plot);
    }
    free(t.y);
    return status;
}
