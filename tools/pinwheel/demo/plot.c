/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of the ping-pong: two panels over one axis of sizes.
 *
 *      us | half round trip, both axes      a line a way, its quartiles as a band
 *         | logarithmic
 *       x | ratio to the CPU, linear
 *         +----------------------- size
 */
#include "demo.h"
#include "pinwheel/util/svg.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 960,
    HEIGHT = 760,
    LEFT = 86,
    RIGHT = 930,
    TOP = 92,
    MIDDLE = 500, /* the upper panel ends */
    LOWER = 540,  /* the lower one begins */
    BOTTOM = 690
};

static const char style[] =
    "text { font-family: 'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif; font-size: 13px;"
    " fill: #333 }\n"
    ".title { font-size: 20px; font-weight: bold; fill: #111 }\n"
    ".sub { font-size: 12px; fill: #666 }\n"
    ".tick { font-size: 12px; fill: #555 }\n"
    ".middle { text-anchor: middle }\n"
    ".end { text-anchor: end }\n"
    ".paper { fill: #ffffff }\n"
    ".panel { fill: #fbfbfc; stroke: #c9ccd1; stroke-width: 1 }\n"
    ".grid { stroke: #dfe2e6; stroke-width: 1 }\n"
    ".fine { stroke: #eef0f2; stroke-width: 1 }\n"
    ".one { stroke: #8a9099; stroke-width: 1; stroke-dasharray: 2 3 }\n"
    ".key { fill: #ffffff; fill-opacity: 0.92; stroke: #c9ccd1; stroke-width: 1 }\n"
    ".line { fill: none; stroke-width: 2.2; stroke-linejoin: round }\n"
    ".band { fill-opacity: 0.16; stroke: none }\n"
    ".mark { stroke: #ffffff; stroke-width: 1.2 }\n"
    /* colours that people tell apart whatever their eyes; Okabe and Ito */
    ".cpu { stroke: #0072b2 } .cpu-fill { fill: #0072b2 }\n"
    ".triggered { stroke: #e69f00 } .triggered-fill { fill: #e69f00 }\n"
    ".stored { stroke: #009e73 } .stored-fill { fill: #009e73 }\n"
    ".streamed { stroke: #cc3377 } .streamed-fill { fill: #cc3377 }\n";

static const char *const keys[WAYS] = {
    "answered by the CPU",
    "triggered put, set up ahead",
    "handlers, store and forward",
    "handlers, streaming",
};

/* Where values are drawn. */
struct axes {
    double x_low, x_high; /* log2 of the size */
    double y_low, y_high; /* log10 of us, in the upper panel */
    double r_low, r_high; /* ratio, in the lower one */
};

static double scale(double value, double low, double high, double from, double to)
{
    return from + (value - low) / (high - low) * (to - from);
}

static double x_of(const struct axes *a, uint64_t bytes)
{
    return scale(log2((double)bytes), a->x_low, a->x_high, LEFT + 18, RIGHT - 18);
}

static double y_of(const struct axes *a, double ns)
{
    return scale(log10(ns / 1000), a->y_low, a->y_high, MIDDLE, TOP);
}

static double r_of(const struct axes *a, double ratio)
{
    return scale(ratio, a->r_low, a->r_high, BOTTOM, LOWER);
}

static double ratio_at(const struct demo_row *row, int way)
{
    return row->way[way].median_ns / row->way[WAY_CPU].median_ns;
}

static struct axes choose_axes(const struct demo_pingpong *p)
{
    double low = INFINITY, high = 1, r_low = 1, r_high = 1;
    for (int i = 0; i < p->rows; i++) {
        for (int way = 0; way < WAYS; way++) {
            const struct demo_time *t = &p->row[i].way[way];
            low = fmin(low, fmax(t->low_ns, 1));
            high = fmax(high, t->high_ns);
            r_low = fmin(r_low, ratio_at(&p->row[i], way));
            r_high = fmax(r_high, ratio_at(&p->row[i], way));
        }
    }
    struct axes a = {.x_low = log2((double)p->row[0].bytes),
                     .x_high = log2((double)p->row[p->rows - 1].bytes),
                     .y_low = log10(low / 1000) - 0.08,
                     .y_high = log10(high / 1000) + 0.08,
                     .r_low = floor((r_low - 0.05) * 4) / 4,
                     .r_high = ceil((r_high + 0.05) * 4) / 4};
    if (a.x_high - a.x_low < 1) { /* a single size stands in the middle */
        a.x_low -= 1;
        a.x_high += 1;
    }
    return a;
}

/* ---- Axes ---- */

static void draw_sizes(struct svg *s, const struct axes *a)
{
    char text[32];
    double octaves = a->x_high - a->x_low;
    int step = octaves > 15.5 ? 2 : 1; /* names of sizes must not touch */
    for (int e = 0; e <= 40; e++) {
        double x = scale(e, a->x_low, a->x_high, LEFT + 18, RIGHT - 18);
        if (x < LEFT || x > RIGHT) {
            continue;
        }
        const char *class = (e - 3) % step == 0 ? "grid" : "fine";
        svg_line(s, class, (struct svg_point){x, TOP}, (struct svg_point){x, MIDDLE});
        svg_line(s, class, (struct svg_point){x, LOWER}, (struct svg_point){x, BOTTOM});
        if ((e - 3) % step == 0) {
            svg_text(s, "tick middle", (struct svg_point){x, BOTTOM + 20}, "%s",
                     demo_size_text(UINT64_C(1) << e, text));
        }
    }
    svg_text(s, "middle", (struct svg_point){(LEFT + RIGHT) / 2.0, BOTTOM + 46}, "message size");
}

static void draw_times(struct svg *s, const struct axes *a)
{
    for (int decade = -3; decade <= 6; decade++) {
        for (int digit = 1; digit <= 9; digit++) {
            double us = digit * pow(10, decade), y = y_of(a, us * 1000);
            bool labelled = digit == 1 || digit == 2 || digit == 5 || a->y_high - a->y_low < 0.8;
            if (y > MIDDLE || y < TOP) {
                continue;
            }
            svg_line(s, labelled ? "grid" : "fine", (struct svg_point){LEFT, y},
                     (struct svg_point){RIGHT, y});
            if (labelled) {
                svg_text(s, "tick end", (struct svg_point){LEFT - 8, y + 4}, "%g", us);
            }
        }
    }
    svg_text_up(s, "middle", (struct svg_point){26, (TOP + MIDDLE) / 2.0},
                "half round trip (\xc2\xb5s)");
}

static void draw_ratios(struct svg *s, const struct axes *a)
{
    double range = a->r_high - a->r_low;
    double step = range <= 1 ? 0.25 : range <= 2 ? 0.5 : range <= 5 ? 1 : ceil(range / 5);
    for (double r = ceil(a->r_low / step) * step; r <= a->r_high + step / 100; r += step) {
        double y = r_of(a, r);
        svg_line(s, "grid", (struct svg_point){LEFT, y}, (struct svg_point){RIGHT, y});
        svg_text(s, "tick end", (struct svg_point){LEFT - 8, y + 4}, "%g", r);
    }
    svg_line(s, "one", (struct svg_point){LEFT, r_of(a, 1)}, (struct svg_point){RIGHT, r_of(a, 1)});
    svg_text_up(s, "middle", (struct svg_point){26, (LOWER + BOTTOM) / 2.0}, "ratio to the CPU");
}

/* ---- Ways ---- */

/* A shape of its own for each, for those who print without colours. */
static void draw_mark(struct svg *s, int way, struct svg_point at)
{
    char class[48];
    double r = 4.6;
    snprintf(class, sizeof(class), "mark %s-fill", demo_way_names[way]);
    switch (way) {
    case WAY_CPU:
        svg_circle(s, class, at, r);
        break;
    case WAY_TRIGGERED:
        svg_rect(s, class, at.x - r + 0.4, at.y - r + 0.4, 2 * r - 0.8, 2 * r - 0.8);
        break;
    case WAY_STORED:
        svg_polygon(s, class,
                    (struct svg_point[]){{at.x, at.y - r - 1},
                                         {at.x + r + 0.6, at.y + r - 0.6},
                                         {at.x - r - 0.6, at.y + r - 0.6}},
                    3);
        break;
    default:
        svg_polygon(s, class,
                    (struct svg_point[]){{at.x, at.y - r - 1.2},
                                         {at.x + r + 1.2, at.y},
                                         {at.x, at.y + r + 1.2},
                                         {at.x - r - 1.2, at.y}},
                    4);
    }
}

static void draw_line(struct svg *s, int way, const struct svg_point *points, int count)
{
    char class[48];
    snprintf(class, sizeof(class), "line %s", demo_way_names[way]);
    svg_polyline(s, class, points, (size_t)count);
    for (int i = 0; i < count; i++) {
        draw_mark(s, way, points[i]);
    }
}

static void draw_band(struct svg *s, const struct axes *a, const struct demo_pingpong *p, int way)
{
    struct svg_point band[2 * DEMO_SIZES];
    char class[48];
    for (int i = 0; i < p->rows; i++) {
        const struct demo_time *t = &p->row[i].way[way];
        double x = x_of(a, p->row[i].bytes);
        band[i] = (struct svg_point){x, y_of(a, t->high_ns)};
        band[2 * p->rows - 1 - i] = (struct svg_point){x, y_of(a, t->low_ns)};
    }
    snprintf(class, sizeof(class), "band %s-fill", demo_way_names[way]);
    svg_polygon(s, class, band, (size_t)(2 * p->rows));
}

static void draw_ways(struct svg *s, const struct axes *a, const struct demo_pingpong *p)
{
    struct svg_point times[DEMO_SIZES], ratios[DEMO_SIZES];
    for (int way = 0; way < WAYS; way++) {
        draw_band(s, a, p, way);
    }
    for (int way = 0; way < WAYS; way++) {
        for (int i = 0; i < p->rows; i++) {
            double x = x_of(a, p->row[i].bytes);
            times[i] = (struct svg_point){x, y_of(a, p->row[i].way[way].median_ns)};
            ratios[i] = (struct svg_point){x, r_of(a, ratio_at(&p->row[i], way))};
        }
        draw_line(s, way, times, p->rows);
        if (way != WAY_CPU) {
            draw_line(s, way, ratios, p->rows);
        }
    }
}

static void draw_key(struct svg *s)
{
    double x = LEFT + 16, y = TOP + 16;
    svg_rect(s, "key", x, y, 250, WAYS * 22 + 34);
    for (int way = 0; way < WAYS; way++) {
        double line = y + 20 + way * 22;
        char class[48];
        snprintf(class, sizeof(class), "line %s", demo_way_names[way]);
        svg_line(s, class, (struct svg_point){x + 12, line}, (struct svg_point){x + 46, line});
        draw_mark(s, way, (struct svg_point){x + 29, line});
        svg_text(s, "key-text", (struct svg_point){x + 58, line + 4.5}, "%s", keys[way]);
    }
    svg_text(s, "sub", (struct svg_point){x + 12, y + WAYS * 22 + 24},
             "bands: quartiles of the rounds");
}

int demo_plot(const struct demo_report *r)
{
    const struct demo_pingpong *p = &r->pingpong;
    struct axes a = choose_axes(p);
    struct svg s;
    if (svg_open(&s, r->pingpong_svg, WIDTH, HEIGHT, "Ping-pong between two processes", r->machine,
                 style) != 0) {
        fprintf(stderr, "pinwheel demo: --out: %s: %s\n", r->pingpong_svg, strerror(errno));
        return -1;
    }
    svg_rect(&s, "paper", 0, 0, WIDTH, HEIGHT);
    svg_text(&s, "title", (struct svg_point){LEFT, 38},
             "Ping-pong between two processes, answered in four ways");
    svg_text(&s, "sub", (struct svg_point){LEFT, 60}, "%s", r->machine);
    svg_text(&s, "sub", (struct svg_point){LEFT, 77}, "median of %d rounds of %ld iterations",
             p->rounds, p->iterations);
    svg_rect(&s, "panel", LEFT, TOP, RIGHT - LEFT, MIDDLE - TOP);
    svg_rect(&s, "panel", LEFT, LOWER, RIGHT - LEFT, BOTTOM - LOWER);
    draw_sizes(&s, &a);
    draw_times(&s, &a);
    draw_ratios(&s, &a);
    draw_ways(&s, &a, p);
    draw_key(&s);
    if (svg_close(&s) != 0) {
        fprintf(stderr, "pinwheel demo: --out: %s: %s\n", r->pingpong_svg, strerror(errno));
        return -1;
    }
    return 0;
}
