/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plots: a picture in SVG, and beside it its data as CSV. A picture has panels with linear or
 * logarithmic axes, readable ticks, lines, bands, marks and keys. Values are in the unit of their
 * axis. Other shapes are drawn by svg.h.
 */
#ifndef PINWHEEL_PLOT_H
#define PINWHEEL_PLOT_H

#include "svg.h"

#include <stdbool.h>

struct plot {
    struct svg svg;
    FILE *data;
};

/* plot_data_path() is the name of the file of a picture's data; false: it has no room. */
bool plot_data_path(const char *path, char *name, size_t size);
/* plot_open() begins the picture `path`, with the CSS classes that all plots have and those of
 * `style`, and the file of its data, of the same name with .csv at its end. Returns 0, or -1 with
 * errno set. plot_close() ends both files; -1, with errno set, if one of them could not be
 * written. */
int plot_open(struct plot *p, const char *path, double width, double height, const char *title,
              const char *description, const char *style);
int plot_close(struct plot *p);

/* plot_data() writes a line of the data file. */
void plot_data(struct plot *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* plot_name() writes a field of the data file in quotes, and a comma. */
void plot_name(struct plot *p, const char *text);

struct plot_axis {
    bool logarithmic;
    double low, high;       /* values at its ends, in `unit` */
    double at_low, at_high; /* pixels */
    const char *unit;
    double scale; /* factor from raw values to `unit` */
};

double plot_place(const struct plot_axis *a, double value);

/* plot_choose_unit() sets the unit of an axis whose raw values are in ns, so that the largest value
 * has few digits. */
void plot_choose_unit(struct plot_axis *a, double most_ns);

/* plot_step() returns a step of 1, 2, 5 or 10 times a power of ten that divides a range by 5 to 12
 * ticks. */
double plot_step(double range);

struct plot_panel {
    double left, right, top, bottom;
    struct plot_axis x, y;
};

/* plot_panel() draws the background of a panel. plot_ticks_x() and plot_ticks_y() draw the ticks of
 * an axis and their numbers: on a logarithmic axis 1, 2 and 5 of each decade, or only 1 if there
 * are many decades. plot_tick_x() draws one tick, with the label `name` unless that is NULL. */
void plot_panel(struct plot *p, const struct plot_panel *panel);
void plot_ticks_x(struct plot *p, const struct plot_panel *panel);
void plot_ticks_y(struct plot *p, const struct plot_panel *panel);
void plot_tick_x(struct plot *p, const struct plot_panel *panel, double value, const char *name);

/* plot_name_x() and plot_name_y() write the title of an axis. */
void plot_name_x(struct plot *p, const struct plot_panel *panel, const char *text);
void plot_name_y(struct plot *p, const struct plot_panel *panel, const char *text);

struct svg_point plot_point(const struct plot_panel *panel, double x, double y);

/* plot_line() draws a line, plot_band() the area between two lines, of `count` points, at most
 * PLOT_POINTS. Their CSS classes are "line" or "band", and `class`. */
enum { PLOT_POINTS = 10000 };
void plot_line(struct plot *p, const struct plot_panel *panel, const char *class, const double *x,
               const double *y, size_t count);
void plot_band(struct plot *p, const struct plot_panel *panel, const char *class, const double *x,
               const double *low, const double *high, size_t count);

/* plot_key() draws a short line of a class at `at`, and the text that explains it. */
void plot_key(struct plot *p, const char *class, struct svg_point at, const char *text);

#endif
