/* SPDX-License-Identifier: BSD-3-Clause */
/* An SVG writer; see svg.h. */
#include "svg.h"

#include "utf8.h"

#include <errno.h>
#include <stdarg.h>

static void write_escaped(FILE *to, const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    while (*s != '\0') {
        size_t length = utf8_length(s);
        if (length == 0 || *s < 0x20 || *s == 0x7f) { /* XML allows no control characters */
            fputs("\xef\xbf\xbd", to);
        } else if (*s == '&') {
            fputs("&amp;", to);
        } else if (*s == '<') {
            fputs("&lt;", to);
        } else if (*s == '>') {
            fputs("&gt;", to);
        } else if (*s == '"') {
            fputs("&quot;", to);
        } else {
            fwrite(s, 1, length, to);
        }
        s += length > 0 ? length : 1;
    }
}

int svg_open(struct svg *s, const char *path, double width, double height, const char *title,
             const char *description, const char *style)
{
    s->to = fopen(path, "we");
    if (s->to == NULL) {
        return -1;
    }
    fprintf(s->to,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%g\" height=\"%g\" "
            "viewBox=\"0 0 %g %g\">\n<title>",
            width, height, width, height);
    write_escaped(s->to, title);
    fputs("</title>\n<desc>", s->to);
    write_escaped(s->to, description);
    fprintf(s->to, "</desc>\n<style>\n%s</style>\n", style);
    return 0;
}

int svg_close(struct svg *s)
{
    fputs("</svg>\n", s->to);
    int failed = ferror(s->to);
    if (fclose(s->to) != 0) {
        return -1;
    }
    if (failed) {
        errno = EIO;
    }
    return failed ? -1 : 0;
}

static void open_rect(struct svg *s, const char *class, double x, double y, double width,
                      double height)
{
    fprintf(s->to, "<rect class=\"%s\" x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\"", class,
            x, y, width, height);
}

void svg_rect(struct svg *s, const char *class, double x, double y, double width, double height)
{
    open_rect(s, class, x, y, width, height);
    fputs("/>\n", s->to);
}

void svg_hint(struct svg *s, const char *class, double x, double y, double width, double height,
              const char *text)
{
    open_rect(s, class, x, y, width, height);
    fputs("><title>", s->to);
    write_escaped(s->to, text);
    fputs("</title></rect>\n", s->to);
}

void svg_line(struct svg *s, const char *class, struct svg_point from, struct svg_point to)
{
    fprintf(s->to, "<line class=\"%s\" x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\"/>\n", class,
            from.x, from.y, to.x, to.y);
}

static void write_points(struct svg *s, const char *shape, const char *class,
                         const struct svg_point *points, size_t count)
{
    fprintf(s->to, "<%s class=\"%s\" points=\"", shape, class);
    for (size_t i = 0; i < count; i++) {
        fprintf(s->to, "%s%.2f,%.2f", i > 0 ? " " : "", points[i].x, points[i].y);
    }
    fputs("\"/>\n", s->to);
}

void svg_polyline(struct svg *s, const char *class, const struct svg_point *points, size_t count)
{
    write_points(s, "polyline", class, points, count);
}

void svg_polygon(struct svg *s, const char *class, const struct svg_point *points, size_t count)
{
    write_points(s, "polygon", class, points, count);
}

void svg_circle(struct svg *s, const char *class, struct svg_point centre, double radius)
{
    fprintf(s->to, "<circle class=\"%s\" cx=\"%.2f\" cy=\"%.2f\" r=\"%.2f\"/>\n", class, centre.x,
            centre.y, radius);
}

void svg_text(struct svg *s, const char *class, struct svg_point at, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(s->to, "<text class=\"%s\" x=\"%.2f\" y=\"%.2f\">", class, at.x, at.y);
    write_escaped(s->to, text);
    fputs("</text>\n", s->to);
}

void svg_text_up(struct svg *s, const char *class, struct svg_point at, const char *text)
{
    fprintf(s->to, "<text class=\"%s\" transform=\"translate(%.2f %.2f) rotate(-90)\">", class,
            at.x, at.y);
    write_escaped(s->to, text);
    fputs("</text>\n", s->to);
}
