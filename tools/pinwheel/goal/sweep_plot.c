/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of a sweep: the last finish over the parameter, both linear. The
 * axis of times begins at 0, so that slopes can be compared.
 */
#include "axis.h"
#include "pinwheel/util/svg.h"
#include "sweep.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    WIDTH = 860,
    HEIGHT = 520,
    LEFT = 96,
    RIGHT = 830,
    TOP = 80,
    BOTTOM = 440,
    MARKED_MOST = 60
};

static const char style[] =
    "text { font-family: 'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif; font-size: 13px;"
    " fill: #333 }\n"
    ".title { font-size: 18px; font-weight: bold; fill: #111 }\n"
    ".sub { font-size: 12px; fill: #666 }\n"
    ".tick { font-size: 12px; fill: #555 }\n"
    ".middle { text-anchor: middle }\n"
    ".end { text-anchor: end }\n"
    ".paper { fill: #ffffff }\n"
    ".panel { fill: #fbfbfc; stroke: #c9ccd1; stroke-width: 1 }\n"
    ".grid { stroke: #dfe2e6; stroke-width: 1 }\n"
    ".line { fill: none; stroke: #0072b2; stroke-width: 2.2; stroke-linejoin: round }\n"
    ".mark { fill: #0072b2; stroke: #ffffff; stroke-width: 1.2 }\n";

static void draw_axis(struct svg *s, const struct axis *a, bool across)
{
    double step = axis_step(a->high - a->low);
    double first = (double)(int64_t)(a->low / step) * step;
    for (int i = 0; first + i * step <= a->high + step / 1000; i++) {
        double value = first + i * step, at = axis_place(a, value);
        if (value < a->low - step / 1000) {
            continue;
        }
        if (across) {
            svg_line(s, "grid", (struct svg_point){at, TOP}, (struct svg_point){at, BOTTOM});
            svg_text(s, "tick middle", (struct svg_point){at, BOTTOM + 20}, "%g", value);
        } else {
            svg_line(s, "grid", (struct svg_point){LEFT, at}, (struct svg_point){RIGHT, at});
            svg_text(s, "tick end", (struct svg_point){LEFT - 8, at + 4}, "%g", value);
        }
    }
}

static struct axis value_axis(const struct goal_run *r, const struct sweep_point *points,
                              uint32_t count)
{
    struct axis a = {.at_low = LEFT + 14, .at_high = RIGHT - 14};
    double first = (double)points[0].value, last = (double)points[count - 1].value;
    double low = first < last ? first : last, high = first < last ? last : first;
    if (r->sweep.which == SIM_S) {
        a.unit = "B";
        a.scale = 1;
    } else {
        axis_choose_unit(&a, high / (double)SIM_AS_PER_NS);
        a.scale /= (double)SIM_AS_PER_NS;
    }
    a.low = low * a.scale;
    a.high = high * a.scale;
    if (a.low == a.high) { /* a single value stands in the middle */
        a.low -= 1;
        a.high += 1;
    }
    return a;
}

static struct axis finish_axis(const struct goal_run *r, const struct sweep_point *points,
                               uint32_t count)
{
    struct axis a = {.at_low = BOTTOM, .at_high = TOP};
    uint64_t most = 1;
    for (uint32_t i = 0; i < count; i++) {
        most = points[i].finish > most ? points[i].finish : most;
    }
    axis_choose_unit(&a, (double)most / (double)r->out.ticks_per_ns);
    a.scale /= (double)r->out.ticks_per_ns;
    a.high = (double)most * a.scale * 1.05;
    return a;
}

static void write_head(struct svg *s, const struct goal_run *r)
{
    char text[256] = "";
    size_t length = 0;
    for (int i = 0; i < SIM_PARAMETERS; i++) {
        char value[64];
        if (i == (int)r->sweep.which) {
            continue;
        }
        sim_parameter_format(&r->parameters, (enum sim_parameter)i, value, sizeof(value));
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s %s",
                                   length > 0 ? ", " : "",
                                   sim_parameter_name((enum sim_parameter)i), value);
    }
    svg_text(s, "title", (struct svg_point){LEFT, 36}, "Last finish of %s", goal_run_name(r));
    svg_text(s, "sub", (struct svg_point){LEFT, 58},
             "%" PRIu32 " ranks, %" PRIu64 " operations; %s", r->goal.ranks, r->goal.nodes, text);
}

int goal_sweep_draw(const struct goal_run *r, const struct sweep_point *points, uint32_t count)
{
    struct svg s;
    const char *name = sim_parameter_name(r->sweep.which);
    struct svg_point *line = calloc(count, sizeof(*line));
    if (line == NULL ||
        svg_open(&s, r->svg, WIDTH, HEIGHT, "Sweep of a simulation", r->sweep.text, style) != 0) {
        free(line);
        return -1;
    }
    struct axis x = value_axis(r, points, count), y = finish_axis(r, points, count);
    bool per_byte = r->sweep.which == SIM_G || r->sweep.which == SIM_O;
    char label[48];
    svg_rect(&s, "paper", 0, 0, WIDTH, HEIGHT);
    write_head(&s, r);
    svg_rect(&s, "panel", LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
    draw_axis(&s, &x, true);
    draw_axis(&s, &y, false);
    svg_text(&s, "middle", (struct svg_point){(LEFT + RIGHT) / 2.0, BOTTOM + 48}, "%s (%s%s)", name,
             x.unit, per_byte ? "/B" : "");
    snprintf(label, sizeof(label), "last finish (%s)", y.unit);
    svg_text_up(&s, "middle", (struct svg_point){28, (TOP + BOTTOM) / 2.0}, label);
    for (uint32_t i = 0; i < count; i++) {
        line[i] = (struct svg_point){axis_place(&x, (double)points[i].value * x.scale),
                                     axis_place(&y, (double)points[i].finish * y.scale)};
    }
    svg_polyline(&s, "line", line, count);
    for (uint32_t i = 0; i < count && count <= MARKED_MOST; i++) {
        svg_circle(&s, "mark", line[i], 4);
    }
    free(line);
    return svg_close(&s);
}
