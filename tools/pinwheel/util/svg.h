/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An SVG writer: viewers paint shapes and text in the order of the calls. Lengths are pixels, x to
 * the right, y down. The look comes from CSS: `style` has the rules, and `class` the names of
 * classes, with blanks between them. Text may hold any bytes: it is escaped, and bytes that are no
 * UTF-8 become U+FFFD.
 */
#ifndef PINWHEEL_SVG_H
#define PINWHEEL_SVG_H

#include <stddef.h>
#include <stdio.h>

struct svg {
    FILE *to;
};

struct svg_point {
    double x, y;
};

/* svg_open() begins a picture in the file `path`. Viewers that cannot show pictures use `title` and
 * `description`. Returns 0, or -1 with errno set. */
int svg_open(struct svg *s, const char *path, double width, double height, const char *title,
             const char *description, const char *style);

/* svg_close() ends the picture; -1, with errno set, if a part of it could not be written. */
int svg_close(struct svg *s);

void svg_rect(struct svg *s, const char *class, double x, double y, double width, double height);
void svg_line(struct svg *s, const char *class, struct svg_point from, struct svg_point to);
void svg_polyline(struct svg *s, const char *class, const struct svg_point *points, size_t count);
void svg_polygon(struct svg *s, const char *class, const struct svg_point *points, size_t count);
void svg_circle(struct svg *s, const char *class, struct svg_point centre, double radius);

/* svg_text() writes text at `at`, a point on its baseline. The class decides whether that is the
 * start, middle or end of the text. */
void svg_text(struct svg *s, const char *class, struct svg_point at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* svg_text_up() writes text that runs upwards. */
void svg_text_up(struct svg *s, const char *class, struct svg_point at, const char *text);

/* svg_hint() draws a rectangle with a text that viewers show when the pointer is on it. */
void svg_hint(struct svg *s, const char *class, double x, double y, double width, double height,
              const char *text);

#endif
