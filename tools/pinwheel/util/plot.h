/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pictures of numbers: a picture in SVG, and beside it its data as CSV; panels with axes, linear or
 * logarithmic, ticks that people can read, lines, bands, marks and keys. Values are in the unit of
 * their axis. What a picture draws besides goes through svg.h.
 */
#ifndef PINWHEEL_PLOT_H
#define PINWHEEL_PLOT_H

#include "svg.h"

#include <stdbool.h>

struct plot {
    struct svg svg;
    FILE *data;
};

/* plot_open() begins the picture `path`, with the classes that all pictures have and those of
 * `style`, and the file of its data: of the same name, ending in .csv. 0, or -1 with errno set.
 * plot_close() ends both; -1, with errno set, if any of them was not written. */
int plot_open(struct plot *p, const char *path, double width, double height, const char *title,
              const char *description, const char *style);
int plot_close(struct plot *p);

/* plot_data() writes a line of the data. */
void plot_data(struct plot *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* plot_name() writes a field of a line of the data in quotes, with a comma behind it. */
void plot_name(struct plot *p, const char *text);

struct plot_axis {
    bool logarithmic;
    double low, high;       /* values at its ends, in `unit` */
    double at_low, at_high; /* pixels */
    const char *unit;
    double scale; /* a raw value times this is in `unit` */
};

double plot_place(const struct plot_axis *a, double value);

/* plot_choose_unit() takes the unit in which the largest value, in ns, has few digits; raw values
 * are ns then. */
void plot_choose_unit(struct plot_axis *a, double most_ns);

/* plot_step() is 1, 2, 5 or 10 times a power of ten, so that a range has 5 to 12 ticks. */
double plot_step(double range);

struct plot_panel {
    double left, right, top, bottom;
    struct plot_axis x, y;
};

/* plot_panel() draws the panel's ground. plot_ticks_x() and plot_ticks_y() draw the ticks of an
 * axis and their numbers: of a logarithmic one 1, 2 and 5 of each decade, or with many decades 1.
 * plot_tick_x() draws one, with a name or (NULL) without. */
void plot_panel(struct plot *p, const struct plot_panel *panel);
void plot_ticks_x(struct plot *p, const struct plot_panel *panel);
void plot_ticks_y(struct plot *p, const struct plot_panel *panel);
void plot_tick_x(struct plot *p, const struct plot_panel *panel, double value, const char *name);

/* plot_name_x() and plot_name_y() say what an axis is about. */
void plot_name_x(struct plot *p, const struct plot_panel *panel, const char *text);
void plot_name_y(struct plot *p, const struct plot_panel *panel, const char *text);

struct svg_point plot_point(const struct plot_panel *panel, double x, double y);

/* plot_line() draws a line, plot_band() what lies between two, of `count` points, at most
 * PLOT_POINTS; their class is `class` after "line" and "band". */
enum { PLOT_POINTS = 10000 };
void plot_line(struct plot *p, const struct plot_panel *panel, const char *class, const double *x,
               const double *y, size_t count);
void plot_band(struct plot *p, const struct plot_panel *panel, const char *class, const double *x,
               const double *low, const double *high, size_t count);

/* plot_key() writes what a line of a class stands for; the line begins at `at`. */
void plot_key(struct plot *p, const char *class, struct svg_point at, const char *text);

#endif
