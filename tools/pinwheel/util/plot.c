/* SPDX-License-Identifier: BSD-3-Clause */
/* Plots; see plot.h. */
#include "plot.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

static const char common_style[] =
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
    ".line { fill: none; stroke-width: 2.2; stroke-linejoin: round }\n"
    ".band { fill-opacity: 0.16; stroke: none }\n"
    ".mark { stroke: #ffffff; stroke-width: 1.2 }\n"
    /* Okabe and Ito's colours, which people with any colour vision can tell apart */
    ".c0 { stroke: #0072b2 } .c0-fill { fill: #0072b2 }\n"
    ".c1 { stroke: #e69f00 } .c1-fill { fill: #e69f00 }\n"
    ".c2 { stroke: #009e73 } .c2-fill { fill: #009e73 }\n"
    ".c3 { stroke: #cc79a7 } .c3-fill { fill: #cc79a7 }\n"
    ".c4 { stroke: #56b4e9 } .c4-fill { fill: #56b4e9 }\n"
    ".c5 { stroke: #d55e00 } .c5-fill { fill: #d55e00 }\n"
    ".c6 { stroke: #b8a800 } .c6-fill { fill: #b8a800 }\n"
    ".c7 { stroke: #777777 } .c7-fill { fill: #777777 }\n";

bool plot_data_path(const char *path, char *name, size_t size)
{
    size_t length = strlen(path);
    length -= length > 4 && strcmp(path + length - 4, ".svg") == 0 ? 4 : 0;
    return snprintf(name, size, "%.*s.csv", (int)length, path) < (int)size;
}

int plot_open(struct plot *p, const char *path, double width, double height, const char *title,
              const char *description, const char *style)
{
    char name[PATH_MAX], both[4096];
    if (!plot_data_path(path, name, sizeof(name))) {
        errno = ENAMETOOLONG;
        return -1;
    }
    snprintf(both, sizeof(both), "%s%s", common_style, style);
    if (svg_open(&p->svg, path, width, height, title, description, both) != 0) {
        return -1;
    }
    p->data = fopen(name, "we");
    if (p->data == NULL) {
        int error = errno;
        svg_close(&p->svg);
        errno = error;
        return -1;
    }
    svg_rect(&p->svg, "paper", 0, 0, width, height);
    return 0;
}

int plot_close(struct plot *p)
{
    int rc = svg_close(&p->svg), error = errno, failed = ferror(p->data);
    if (fclose(p->data) != 0) {
        return -1;
    }
    errno = failed ? EIO : error;
    return failed ? -1 : rc;
}

void plot_data(struct plot *p, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(p->data, format, args);
    va_end(args);
    fputc('\n', p->data);
}

void plot_name(struct plot *p, const char *text)
{
    fputc('"', p->data);
    for (; *text != '\0'; text++) {
        fputs(*text == '"' ? "\"" : "", p->data);
        fputc(*text, p->data);
    }
    fputs("\",", p->data);
}

double plot_place(const struct plot_axis *a, double value)
{
    double part = a->logarithmic ? log(value / a->low) / log(a->high / a->low)
                                 : (value - a->low) / (a->high - a->low);
    return a->at_low + part * (a->at_high - a->at_low);
}

void plot_choose_unit(struct plot_axis *a, double most_ns)
{
    static const struct {
        double ns;
        const char *name;
    } units[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "\xc2\xb5s"}, {1, "ns"}, {1e-3, "ps"}};
    int i = 0;
    while (i < 4 && most_ns < units[i].ns) {
        i++;
    }
    a->unit = units[i].name;
    a->scale = 1 / units[i].ns;
}

double plot_step(double range)
{
    double power = pow(10, floor(log10(range)) - 1); /* the range is 10 to 100 times this */
    double parts = range / power;
    return power * (parts <= 12 ? 1 : parts <= 24 ? 2 : parts <= 60 ? 5 : 10);
}

void plot_panel(struct plot *p, const struct plot_panel *panel)
{
    svg_rect(&p->svg, "panel", panel->left, panel->top, panel->right - panel->left,
             panel->bottom - panel->top);
}

void plot_tick_x(struct plot *p, const struct plot_panel *panel, double value, const char *name)
{
    double x = plot_place(&panel->x, value);
    svg_line(&p->svg, name != NULL ? "grid" : "fine", (struct svg_point){x, panel->top},
             (struct svg_point){x, panel->bottom});
    if (name != NULL && *name != '\0') {
        svg_text(&p->svg, "tick middle", (struct svg_point){x, panel->bottom + 20}, "%s", name);
    }
}

static void tick_y(struct plot *p, const struct plot_panel *panel, double value, const char *name)
{
    double y = plot_place(&panel->y, value);
    svg_line(&p->svg, name != NULL ? "grid" : "fine", (struct svg_point){panel->left, y},
             (struct svg_point){panel->right, y});
    if (name != NULL) {
        svg_text(&p->svg, "tick end", (struct svg_point){panel->left - 8, y + 4}, "%s", name);
    }
}

typedef void draw_tick(struct plot *p, const struct plot_panel *panel, double value,
                       const char *name);

static void draw_ticks(struct plot *p, const struct plot_panel *panel, const struct plot_axis *a,
                       draw_tick *draw)
{
    char name[32];
    if (!a->logarithmic) {
        double step = plot_step(a->high - a->low), first = ceil(a->low / step - 1e-3);
        for (int i = 0; (first + i) * step <= a->high + step / 1000; i++) {
            snprintf(name, sizeof(name), "%g", (first + i) * step);
            draw(p, panel, (first + i) * step, name);
        }
        return;
    }
    double decades = log10(a->high / a->low);
    for (int decade = (int)floor(log10(a->low)); decade <= log10(a->high); decade++) {
        for (int digit = 1; digit <= 9; digit++) {
            double value = digit * pow(10, decade);
            bool named = digit == 1 || (decades < 3 && (digit == 2 || digit == 5)) || decades < 0.8;
            snprintf(name, sizeof(name), "%g", value);
            if (value >= a->low && value <= a->high) {
                draw(p, panel, value, named ? name : NULL);
            }
        }
    }
}

void plot_ticks_x(struct plot *p, const struct plot_panel *panel)
{
    draw_ticks(p, panel, &panel->x, plot_tick_x);
}

void plot_ticks_y(struct plot *p, const struct plot_panel *panel)
{
    draw_ticks(p, panel, &panel->y, tick_y);
}

void plot_name_x(struct plot *p, const struct plot_panel *panel, const char *text)
{
    svg_text(&p->svg, "middle",
             (struct svg_point){(panel->left + panel->right) / 2, panel->bottom + 48}, "%s", text);
}

void plot_name_y(struct plot *p, const struct plot_panel *panel, const char *text)
{
    svg_text_up(&p->svg, "middle",
                (struct svg_point){panel->left - 60, (panel->top + panel->bottom) / 2}, text);
}

struct svg_point plot_point(const struct plot_panel *panel, double x, double y)
{
    return (struct svg_point){plot_place(&panel->x, x), plot_place(&panel->y, y)};
}

void plot_line(struct plot *p, const struct plot_panel *panel, const char *class, const double *x,
               const double *y, size_t count)
{
    struct svg_point points[PLOT_POINTS];
    char both[64];
    for (size_t i = 0; i < count; i++) {
        points[i] = plot_point(panel, x[i], y[i]);
    }
    snprintf(both, sizeof(both), "line %s", class);
    svg_polyline(&p->svg, both, points, count);
}

void plot_band(struct plot *p, const struct plot_panel *panel, const char *class, const double *x,
               const double *low, const double *high, size_t count)
{
    struct svg_point points[2 * PLOT_POINTS];
    char both[64];
    for (size_t i = 0; i < count; i++) {
        points[i] = plot_point(panel, x[i], high[i]);
        points[2 * count - 1 - i] = plot_point(panel, x[i], low[i]);
    }
    snprintf(both, sizeof(both), "band %s", class);
    svg_polygon(&p->svg, both, points, 2 * count);
}

void plot_key(struct plot *p, const char *class, struct svg_point at, const char *text)
{
    char both[64];
    snprintf(both, sizeof(both), "line %s", class);
    svg_line(&p->svg, both, at, (struct svg_point){at.x + 34, at.y});
    svg_text(&p->svg, "key", (struct svg_point){at.x + 46, at.y + 4.5}, "%s", text);
}
