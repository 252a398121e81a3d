/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel sim --timeline`: the run as a picture, as in appendix C of the sPIN paper, time to the
 * right.
 *
 *   rank 0  phase    [exchange         ]       of a program that names some
 *           CPU      [call]
 *           NIC out        [packet out]
 *   rank 1  NIC in              \[match]        a line a packet, from when its first byte leaves to
 *           HPU 0                      [handler]   when its last byte arrives
 *           DMA                        [deposit]
 *
 * A rank has a line for each resource that it uses.
 */
#include "pinwheel/util/plot.h"
#include "spans.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 1240, LEFT = 150, RIGHT = 1210, TOP = 84, LINE = 20, BOX = 14, GAP = 12, FOOT = 62 };

static const char style[] = "text { font-size: 12px }\n"
                            ".title { font-size: 18px }\n"
                            ".lane { font-size: 10px; fill: #666 }\n"
                            ".rule { stroke: #c9ccd1; stroke-width: 1 }\n"
                            ".k0 { fill: #0072b2 } .k1 { fill: #b8bdc4 } .k2 { fill: #56b4e9 }\n"
                            ".k3 { fill: #009e73 } .k4 { fill: #cc79a7 } .k5 { fill: #e69f00 }\n"
                            ".k6 { fill: #f0e442 }\n"
                            ".box { stroke: #ffffff; stroke-width: 0.4 }\n"
                            ".arrow { stroke: #333; stroke-width: 0.8 }\n";

/* Where the lines of the picture are: the y of each line of each rank; 0: it is not used. */
struct timeline {
    const struct sim_spans *s;
    size_t count; /* spans that are drawn */
    struct plot plot;
    struct plot_axis x;
    double (*y)[LANES];
    double height;
};

static double x_of(const struct timeline *t, uint64_t ps)
{
    return plot_place(&t->x, (double)ps / 1e6);
}

static void lay_out(struct timeline *t)
{
    double y = TOP;
    for (size_t i = 0; i < t->count; i++) {
        t->y[t->s->span[i].rank][spans_lane(&t->s->span[i].is)] = 1;
    }
    for (uint32_t rank = 0; rank < t->s->ranks; rank++) {
        bool any = false;
        y += GAP;
        for (unsigned lane = 0; lane < LANES; lane++) {
            if (t->y[rank][lane] != 0) {
                t->y[rank][lane] = y;
                y += LINE;
                any = true;
            }
        }
        y += any ? 0 : LINE; /* a rank that does nothing has a line for its name */
    }
    t->height = y + GAP;
}

static void draw_lines(struct timeline *t)
{
    struct svg *svg = &t->plot.svg;
    double y = TOP;
    for (uint32_t rank = 0; rank < t->s->ranks; rank++) {
        double begin = y += GAP;
        svg_text(svg, "end", (struct svg_point){LEFT - 70, y + BOX - 2}, "rank %" PRIu32, rank);
        for (unsigned lane = 0; lane < LANES; lane++) {
            char name[24];
            if (t->y[rank][lane] == 0) {
                continue;
            }
            spans_lane_name(lane, name, sizeof(name));
            svg_text(svg, "lane end", (struct svg_point){LEFT - 8, y + BOX - 3}, "%s", name);
            svg_line(svg, "rule", (struct svg_point){LEFT, y + BOX / 2.0},
                     (struct svg_point){RIGHT, y + BOX / 2.0});
            y += LINE;
        }
        y += y > begin ? 0 : LINE;
    }
}

static void draw_axis(struct timeline *t)
{
    double step = plot_step(t->x.high - t->x.low);
    for (double at = ceil(t->x.low / step) * step; at <= t->x.high + step / 1000; at += step) {
        double x = plot_place(&t->x, at);
        svg_line(&t->plot.svg, "grid", (struct svg_point){x, TOP},
                 (struct svg_point){x, t->height});
        svg_text(&t->plot.svg, "tick middle", (struct svg_point){x, t->height + 18}, "%g", at);
    }
    svg_text(&t->plot.svg, "middle", (struct svg_point){(LEFT + RIGHT) / 2.0, t->height + 42},
             "time (us)");
}

static void draw_key(struct svg *s, bool phases)
{
    static const char *const keys[][2] = {
        {"box k0", "call"},    {"box k1", "compute"}, {"box k2", "packet out"}, {"box k3", "match"},
        {"box k4", "deposit"}, {"box k5", "handler"}, {"box k6", "phase"}};
    for (int i = 0; i < (phases ? 7 : 6); i++) {
        double x = (phases ? 544 : 640) + 96 * i;
        svg_rect(s, keys[i][0], x, 50, 18, 11);
        svg_text(s, "sub", (struct svg_point){x + 23, 60}, "%s", keys[i][1]);
    }
}

static void draw_span(struct timeline *t, const struct rank_span *s)
{
    unsigned lane = spans_lane(&s->is);
    char class[16], hint[160], name[24];
    double x = x_of(t, s->is.begin), width = x_of(t, s->is.end) - x;
    spans_lane_name(lane, name, sizeof(name));
    snprintf(class, sizeof(class), "box k%u", s->is.what);
    snprintf(hint, sizeof(hint), "rank %" PRIu32 ", %s: %s, %.5f to %.5f us, %" PRIu32 " bytes",
             s->rank, name, spans_what(s), (double)s->is.begin / 1e6, (double)s->is.end / 1e6,
             s->is.bytes);
    svg_hint(&t->plot.svg, class, x, t->y[s->rank][lane], fmax(width, 0.5), BOX, hint);
}

static void draw_packet(struct timeline *t, const struct rank_span *in)
{
    const struct rank_span *out = in->is.what == SIM_SPAN_IN ? spans_sent(t->s, in) : NULL;
    if (out != NULL) {
        double from = t->y[out->rank][LANE_OUT], to = t->y[in->rank][LANE_IN];
        double down = to > from ? BOX : 0;
        svg_line(&t->plot.svg, "arrow", (struct svg_point){x_of(t, out->is.begin), from + down},
                 (struct svg_point){x_of(t, in->is.begin), to + BOX - down});
    }
}

static void write_data(struct timeline *t, const struct rank_span *s)
{
    bool packet = s->is.what == SIM_SPAN_OUT || s->is.what == SIM_SPAN_IN;
    char name[24], what[SIM_NAME], peer[80] = ",,";
    spans_lane_name(spans_lane(&s->is), name, sizeof(name));
    snprintf(what, sizeof(what), "%s", spans_what(s));
    for (char *at = what; *at != '\0'; at++) { /* a program may name its phases as it likes */
        *at = strchr(",\"\r\n", *at) != NULL ? ' ' : *at;
    }
    if (packet) {
        snprintf(peer, sizeof(peer), "%" PRIu32 ",%" PRIu64 ",%" PRIu64, s->is.peer, s->is.message,
                 s->is.offset);
    }
    plot_data(&t->plot, "%" PRIu32 ",%s,%s,%" PRIu64 ",%" PRIu64 ",%s,%" PRIu32, s->rank, name,
              what, s->is.begin, s->is.end, peer, s->is.bytes);
}

static void draw(struct timeline *t, const char *program)
{
    struct svg *svg = &t->plot.svg;
    const struct sim_spans *s = t->s;
    char left[96] = "";
    if (t->count < s->count || s->missed != 0) {
        snprintf(left, sizeof(left), "; the first %zu of %" PRIu64 " spans are drawn", t->count,
                 s->count + s->missed);
    }
    svg_text(svg, "title", (struct svg_point){24, 36}, "%s", program);
    svg_text(svg, "sub", (struct svg_point){24, 60}, "%" PRIu32 " ranks, %.5f us%s", s->ranks,
             (double)s->end / 1e6, left);
    draw_key(svg, s->phases);
    draw_axis(t);
    draw_lines(t);
    plot_data(&t->plot, "rank,resource,what,from (ps),to (ps),peer,message,offset,bytes");
    for (size_t i = 0; i < t->count; i++) {
        draw_span(t, &s->span[i]);
    }
    for (size_t i = 0; i < t->count; i++) {
        draw_packet(t, &s->span[i]);
    }
    for (size_t i = 0; i < s->count; i++) {
        write_data(t, &s->span[i]);
    }
}

int timeline_draw(const struct sim_spans *s, const char *path, const char *program)
{
    struct timeline t = {.s = s, .x = {.at_low = LEFT, .at_high = RIGHT}};
    t.count = s->count < TIMELINE_SPANS ? s->count : TIMELINE_SPANS;
    t.y = calloc(s->ranks, sizeof(*t.y));
    if (t.y == NULL) {
        return -1;
    }
    uint64_t end = 1;
    for (size_t i = 0; i < t.count; i++) {
        end = s->span[i].is.end > end ? s->span[i].is.end : end;
    }
    t.x.low = t.count != 0 ? (double)s->span[0].is.begin / 1e6 : 0;
    t.x.high = (double)end / 1e6;
    lay_out(&t);
    int status = plot_open(&t.plot, path, WIDTH, t.height + FOOT, "Timeline of a simulated job",
                           program, style);
    if (status == 0) {
        draw(&t, program);
        status = plot_close(&t.plot);
    }
    free(t.y);
    return status;
}
