/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of the ping-pong: two panels over one axis of sizes.
 *
 *      us | half round trip, both axes      a line a way, its quartiles as a band
 *         | logarithmic
 *       x | ratio to the CPU, linear
 *         +----------------------- size
 */
#include "pinwheel/util/plot.h"
#include "demo.h"

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
    MIDDLE = 500, /* bottom of the upper panel */
    LOWER = 540,  /* top of the lower panel */
    BOTTOM = 690
};

static const char style[] =
    ".one { stroke: #8a9099; stroke-width: 1; stroke-dasharray: 2 3 }\n"
    ".box { fill: #ffffff; fill-opacity: 0.92; stroke: #c9ccd1; stroke-width: 1 }\n";

static const char *const classes[WAYS] = {"c0", "c1", "c2", "c3"};

static const char *const keys[WAYS] = {
    "answered by the CPU",
    "triggered put, set up ahead",
    "handlers, store and forward",
    "handlers, streaming",
};

static double ratio_at(const struct demo_row *row, int way)
{
    return row->way[way].median_ns / row->way[WAY_CPU].median_ns;
}

/* Chooses the axes: the upper panel has half round trips in us, the lower one ratios to the CPU. */
static void choose_axes(const struct demo_pingpong *p, struct plot_panel *times,
                        struct plot_panel *ratios)
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
    struct plot_axis x = {true,
                          (double)p->row[0].bytes,
                          (double)p->row[p->rows - 1].bytes,
                          LEFT + 18,
                          RIGHT - 18,
                          "B",
                          1};
    if (x.high < 2 * x.low) { /* with a single size its mark is in the middle */
        x.low /= 2;
        x.high *= 2;
    }
    *times = (struct plot_panel){
        LEFT,   RIGHT, TOP,
        MIDDLE, x,     {true, low / 1200, high / 1000 * 1.2, MIDDLE, TOP, "us", 1e-3}};
    *ratios = (struct plot_panel){
        LEFT,
        RIGHT,
        LOWER,
        BOTTOM,
        x,
        {false, floor((r_low - 0.05) * 4) / 4, ceil((r_high + 0.05) * 4) / 4, BOTTOM, LOWER, "", 1}};
}

static void draw_sizes(struct plot *p, const struct plot_panel *times,
                       const struct plot_panel *ratios)
{
    char text[32];
    double octaves = log2(times->x.high / times->x.low);
    int step = octaves > 15.5 ? 2 : 1; /* labels of sizes must not touch */
    for (int e = 0; e <= 40; e++) {
        double x = plot_place(&times->x, exp2(e));
        if (x >= LEFT && x <= RIGHT) {
            bool named = (e - 3) % step == 0;
            plot_tick_x(p, times, exp2(e), named ? "" : NULL);
            plot_tick_x(p, ratios, exp2(e), named ? demo_size_text(UINT64_C(1) << e, text) : NULL);
        }
    }
}

/* ---- Ways ---- */

/* Draws a mark, of another shape for each way, for prints without colours. */
static void draw_mark(struct svg *s, int way, struct svg_point at)
{
    char class[48];
    double r = 4.6;
    snprintf(class, sizeof(class), "mark %s-fill", classes[way]);
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

static void draw_line(struct plot *p, const struct plot_panel *panel, int way, const double *x,
                      const double *y, int count)
{
    plot_line(p, panel, classes[way], x, y, (size_t)count);
    for (int i = 0; i < count; i++) {
        draw_mark(&p->svg, way, plot_point(panel, x[i], y[i]));
    }
}

static void draw_ways(struct plot *plot, const struct demo_pingpong *p,
                      const struct plot_panel *times, const struct plot_panel *ratios)
{
    struct series {
        double median[DEMO_SIZES], low[DEMO_SIZES], high[DEMO_SIZES], ratio[DEMO_SIZES];
    } s[WAYS];
    double x[DEMO_SIZES];
    char class[16];
    plot_data(plot, "way,bytes,median (us),low quartile (us),high quartile (us),ratio to the CPU");
    for (int way = 0; way < WAYS; way++) {
        for (int i = 0; i < p->rows; i++) {
            const struct demo_time *t = &p->row[i].way[way];
            x[i] = (double)p->row[i].bytes;
            s[way].median[i] = t->median_ns / 1000;
            s[way].low[i] = t->low_ns / 1000;
            s[way].high[i] = t->high_ns / 1000;
            s[way].ratio[i] = ratio_at(&p->row[i], way);
            plot_data(plot, "%s,%.0f,%.6g,%.6g,%.6g,%.6g", demo_way_names[way], x[i],
                      s[way].median[i], s[way].low[i], s[way].high[i], s[way].ratio[i]);
        }
        snprintf(class, sizeof(class), "%s-fill", classes[way]);
        plot_band(plot, times, class, x, s[way].low, s[way].high, (size_t)p->rows);
    }
    for (int way = 0; way < WAYS; way++) {
        draw_line(plot, times, way, x, s[way].median, p->rows);
        if (way != WAY_CPU) {
            draw_line(plot, ratios, way, x, s[way].ratio, p->rows);
        }
    }
}

static void draw_key(struct plot *p)
{
    double x = LEFT + 16, y = TOP + 16;
    svg_rect(&p->svg, "box", x, y, 250, WAYS * 22 + 34);
    for (int way = 0; way < WAYS; way++) {
        double line = y + 20 + way * 22;
        plot_key(p, classes[way], (struct svg_point){x + 12, line}, keys[way]);
        draw_mark(&p->svg, way, (struct svg_point){x + 29, line});
    }
    svg_text(&p->svg, "sub", (struct svg_point){x + 12, y + WAYS * 22 + 24},
             "bands: quartiles of the rounds");
}

int demo_plot(const struct demo_report *r)
{
    const struct demo_pingpong *pingpong = &r->pingpong;
    struct plot_panel times, ratios;
    struct plot p;
    choose_axes(pingpong, &times, &ratios);
    int rc = plot_open(&p, r->pingpong_svg, WIDTH, HEIGHT, "Ping-pong between two processes",
                       r->machine, style);
    if (rc == 0) {
        svg_text(&p.svg, "title", (struct svg_point){LEFT, 38},
                 "Ping-pong between two processes, answered in four ways");
        svg_text(&p.svg, "sub", (struct svg_point){LEFT, 60}, "%s", r->machine);
        svg_text(&p.svg, "sub", (struct svg_point){LEFT, 77},
                 "median of %d rounds of %ld iterations", pingpong->rounds, pingpong->iterations);
        plot_panel(&p, &times);
        plot_panel(&p, &ratios);
        draw_sizes(&p, &times, &ratios);
        plot_ticks_y(&p, &times);
        plot_ticks_y(&p, &ratios);
        plot_name_x(&p, &ratios, "message size");
        plot_name_y(&p, &times, "half round trip (\xc2\xb5s)");
        plot_name_y(&p, &ratios, "ratio to the CPU");
        double one = plot_place(&ratios.y, 1);
        svg_line(&p.svg, "one", (struct svg_point){LEFT, one}, (struct svg_point){RIGHT, one});
        draw_ways(&p, pingpong, &times, &ratios);
        draw_key(&p);
        rc = plot_close(&p);
    }
    if (rc != 0) {
        fprintf(stderr, "pinwheel demo: --out: %s: %s\n", r->pingpong_svg, strerror(errno));
    }
    return rc;
}
