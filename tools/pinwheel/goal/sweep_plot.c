/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of a sweep: the last finish time over the parameter, both linear. The axis of times
 * begins at 0, so that slopes can be compared.
 */
#include "pinwheel/util/plot.h"
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

static const char style[] = ".title { font-size: 18px }\n.mark { fill: #0072b2 }\n";

static struct plot_axis value_axis(const struct goal_run *r, const struct sweep_point *points,
                                   uint32_t count)
{
    struct plot_axis a = {.at_low = LEFT + 14, .at_high = RIGHT - 14};
    double first = (double)points[0].value, last = (double)points[count - 1].value;
    double low = first < last ? first : last, high = first < last ? last : first;
    if (r->sweep.which == SIM_S) {
        a.unit = "B";
        a.scale = 1;
    } else {
        plot_choose_unit(&a, high / (double)SIM_AS_PER_NS);
        a.scale /= (double)SIM_AS_PER_NS;
    }
    a.low = low * a.scale;
    a.high = high * a.scale;
    if (a.low == a.high) { /* with a single value its point is in the middle */
        a.low -= 1;
        a.high += 1;
    }
    return a;
}

static struct plot_axis finish_axis(const struct goal_run *r, const struct sweep_point *points,
                                    uint32_t count)
{
    struct plot_axis a = {.at_low = BOTTOM, .at_high = TOP};
    uint64_t most = 1;
    for (uint32_t i = 0; i < count; i++) {
        most = points[i].finish > most ? points[i].finish : most;
    }
    plot_choose_unit(&a, (double)most / (double)r->out.ticks_per_ns);
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
    struct plot p;
    struct plot_panel panel = {
        LEFT, RIGHT, TOP, BOTTOM, value_axis(r, points, count), finish_axis(r, points, count)};
    const char *name = sim_parameter_name(r->sweep.which);
    bool per_byte = r->sweep.which == SIM_G || r->sweep.which == SIM_O;
    double *x = calloc(2 * (size_t)count, sizeof(*x));
    char label[48];
    if (x == NULL ||
        plot_open(&p, r->svg, WIDTH, HEIGHT, "Sweep of a simulation", r->sweep.text, style) != 0) {
        free(x);
        return -1;
    }
    double *y = x + count;
    write_head(&p.svg, r);
    plot_panel(&p, &panel);
    plot_ticks_x(&p, &panel);
    plot_ticks_y(&p, &panel);
    snprintf(label, sizeof(label), "%s (%s%s)", name, panel.x.unit, per_byte ? "/B" : "");
    plot_name_x(&p, &panel, label);
    plot_data(&p, "%s,last finish (%s)", label, panel.y.unit);
    snprintf(label, sizeof(label), "last finish (%s)", panel.y.unit);
    plot_name_y(&p, &panel, label);
    for (uint32_t i = 0; i < count; i++) {
        x[i] = (double)points[i].value * panel.x.scale;
        y[i] = (double)points[i].finish * panel.y.scale;
        plot_data(&p, "%.15g,%.15g", x[i], y[i]);
    }
    plot_line(&p, &panel, "c0", x, y, count);
    for (uint32_t i = 0; i < count && count <= MARKED_MOST; i++) {
        svg_circle(&p.svg, "mark", plot_point(&panel, x[i], y[i]), 4);
    }
    free(x);
    return plot_close(&p);
}
