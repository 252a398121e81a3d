/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An SVG writer: shapes and text in the order of the calls, which is the order
 * they are painted in. Lengths are pixels, x to the right, y down. How things
 * look comes from classes: `style` is CSS, `class` names rules of it, several
 * with blanks between them. Text may hold any bytes: it is escaped, and what is no
 * UTF-8 becomes U+FFFD.
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

/* svg_open() begins a picture in the file `path`. `title` and `description` are
 * for readers that show no pictures. Gives 0, or -1 with errno set. */
int svg_open(struct svg *s, const char *path, double width, double height, const char *title,
             const char *description, const char *style);

/* svg_close() ends the picture; -1, with errno set, if any of it was not written. */
int svg_close(struct svg *s);

void svg_rect(struct svg *s, const char *class, double x, double y, double width, double height);
void svg_line(struct svg *s, const char *class, struct svg_point from, struct svg_point to);
void svg_polyline(struct svg *s, const char *class, const struct svg_point *points, size_t count);
void svg_polygon(struct svg *s, const char *class, const struct svg_point *points, size_t count);
void svg_circle(struct svg *s, const char *class, struct svg_point centre, double radius);

/* svg_text() writes text at a point of its baseline; classes say whether that is
 * its start, middle or end. */
void svg_text(struct svg *s, const char *class, struct svg_point at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* svg_text_up() turns the text to read upwards. */
void svg_text_up(struct svg *s, const char *class, struct svg_point at, const char *text);

/* svg_hint() is svg_rect() with a text that viewers show under the pointer. */
void svg_hint(struct svg *s, const char *class, double x, double y, double width, double height,
              const char *text);

#endif
