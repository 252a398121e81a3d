/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pictures of `pinwheel reproduce`: times over bytes, or over ranks, both logarithmic; lines
 * are what was found, circles what was expected.
 */
#include "reproduce.h"

#include "pinwheel/util/plot.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { WIDTH = 860, HEIGHT = 520, LEFT = 96, RIGHT = 830, TOP = 90, BOTTOM = 440, POINTS = 64 };

static const char style[] = ".title { font-size: 18px }\n";

/* Rows of one picture. */
struct group {
    size_t row[POINTS], count;
};

static double x_of(const struct figure *f, size_t row)
{
    return f->by_ranks ? f->rows[row].ranks : f->rows[row].bytes;
}

/* What one of the vertical axis is. */
static double scale(const struct figure *f)
{
    return f->unit != NULL ? 1 : 1e6;
}

static bool together(const struct figure *f, size_t a, size_t b)
{
    const struct figure_row *x = &f->rows[a], *y = &f->rows[b];
    return strcmp(x->nic, y->nic) == 0 && (!f->by_ranks || x->bytes == y->bytes);
}

static struct plot_axis axis_of(double low, double high, double at_low, double at_high)
{
    return (struct plot_axis){true, low / 1.3, high * 1.3, at_low, at_high, "", 1};
}

static struct plot_panel panel_of(const struct found *f, const struct group *g)
{
    double most_x = 0, least_x = 1e18, most_y = 0, least_y = 1e18;
    for (size_t i = 0; i < g->count; i++) {
        double x = x_of(f->figure, g->row[i]);
        most_x = x > most_x ? x : most_x;
        least_x = x < least_x ? x : least_x;
        for (int way = 0; way < f->figure->ways; way++) {
            double values[] = {(double)f->time[g->row[i]][way],
                               (double)f->figure->rows[g->row[i]].expected[way]};
            for (int k = 0; k < 2; k++) {
                if (f->time[g->row[i]][way] == FIGURE_FAILS || values[k] <= 0) {
                    continue;
                }
                double us = values[k] / scale(f->figure);
                most_y = us > most_y ? us : most_y;
                least_y = us < least_y && us > 0 ? us : least_y;
            }
        }
    }
    return (struct plot_panel){LEFT,
                               RIGHT,
                               TOP,
                               BOTTOM,
                               axis_of(least_x, most_x, LEFT, RIGHT),
                               axis_of(least_y, most_y, BOTTOM, TOP)};
}

static void draw_way(struct plot *p, const struct plot_panel *panel, const struct found *f,
                     const struct group *g, int way)
{
    double x[POINTS], y[POINTS];
    char class[16], fill[32];
    snprintf(class, sizeof(class), "c%d", way);
    snprintf(fill, sizeof(fill), "mark c%d-fill", way);
    size_t points = 0;
    for (size_t i = 0; i < g->count; i++) {
        const struct figure_row *r = &f->figure->rows[g->row[i]];
        uint64_t found = f->time[g->row[i]][way], expected = r->expected[way];
        char of[REPRODUCE_OF];
        plot_data(p, "%s,%" PRIu32 ",%s,%s,%" PRIu64 ",%" PRIu64, r->nic, r->ranks,
                  reproduce_of(f->figure, r->bytes, false, of), f->figure->way[way], found,
                  expected);
        if (found == FIGURE_FAILS) {
            continue; /* the line ends before it */
        }
        x[points] = x_of(f->figure, g->row[i]);
        y[points] = (double)found / scale(f->figure);
        if (expected != FIGURE_OPEN && expected != FIGURE_FAILS) {
            svg_circle(&p->svg, fill,
                       plot_point(panel, x[points], (double)expected / scale(f->figure)), 4.5);
        }
        points++;
    }
    plot_line(p, panel, class, x, y, points);
    plot_key(p, class, (struct svg_point){LEFT + 150.0 * way, 76}, f->figure->way[way]);
}

static int draw_group(const struct found *f, const struct group *g, const char *path)
{
    const struct figure *fig = f->figure;
    const struct figure_row *first = &fig->rows[g->row[0]];
    struct plot_panel panel = panel_of(f, g);
    struct plot p;
    char title[160], size[REPRODUCE_OF + 2] = "", of[REPRODUCE_OF];
    if (fig->by_ranks) {
        snprintf(size, sizeof(size), ", %s", reproduce_of(fig, first->bytes, true, of));
    }
    snprintf(title, sizeof(title), "Figure %s of %s: %s", fig->name, fig->paper, fig->title);
    if (plot_open(&p, path, WIDTH, HEIGHT, title, "lines: found; circles: expected", style) != 0) {
        return -1;
    }
    svg_text(&p.svg, "title", (struct svg_point){24, 34}, "%s", title);
    svg_text(&p.svg, "sub", (struct svg_point){24, 54}, "%s%s; lines: found, circles: expected",
             first->nic, size);
    plot_data(&p, "nic,ranks,%s,way,found (%s),expected (%s)", reproduce_size(fig),
              fig->unit != NULL ? fig->unit : "ps", fig->unit != NULL ? fig->unit : "ps");
    plot_panel(&p, &panel);
    plot_ticks_x(&p, &panel);
    plot_ticks_y(&p, &panel);
    plot_name_x(&p, &panel, fig->by_ranks ? "ranks" : reproduce_size(fig));
    plot_name_y(&p, &panel, fig->unit != NULL ? fig->unit : "time (us)");
    for (int way = 0; way < fig->ways; way++) {
        draw_way(&p, &panel, f, g, way);
    }
    return plot_close(&p);
}

int reproduce_draw(const struct found *f, const char *folder)
{
    const struct figure *fig = f->figure;
    for (size_t first = 0; first < fig->row_count; first++) {
        struct group g = {.count = 0};
        char path[1024], more[96] = "", of[REPRODUCE_OF];
        bool drawn = false;
        for (size_t i = 0; i < first; i++) {
            drawn |= together(fig, first, i);
        }
        for (size_t i = first; i < fig->row_count && !drawn; i++) {
            if (together(fig, first, i) && f->ran[i] && g.count < POINTS) {
                g.row[g.count++] = i;
            }
        }
        if (g.count == 0) {
            continue;
        }
        if (fig->by_ranks) {
            snprintf(more, sizeof(more), "-%s-%s", fig->rows[first].nic,
                     reproduce_of(fig, fig->rows[first].bytes, false, of));
        } else if (strcmp(fig->rows[0].nic, fig->rows[fig->row_count - 1].nic) != 0) {
            snprintf(more, sizeof(more), "-%s", fig->rows[first].nic);
        }
        snprintf(path, sizeof(path), "%s/%s-%s%s.svg", folder, fig->paper, fig->name, more);
        if (draw_group(f, &g, path) != 0) {
            return -1;
        }
    }
    return 0;
}
