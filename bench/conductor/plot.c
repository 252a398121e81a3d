/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of a run:
 *
 *   latency by size | bandwidth by size     a line a subject, both axes logarithmic
 *   the handler library's, two a row        likewise, if one of the two was measured
 *   key: the subjects
 *   targets: how far from the limit each is, left of the line is met
 *
 * Shown is the mode in which ours has more rounds.
 */
#include "pinwheel/util/plot.h"
#include "conductor.h"
#include "values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    WIDTH = 1120,
    PANEL_TOP = 96,
    PANEL_HEIGHT = 324,
    ROW_HEIGHT = 400, /* of two panels, with what is written round them */
    PANELS = 6,
    KEY_COLUMNS = 4,
    KEY_LINE = 20,
    TARGET_LINE = 22,
    BAR_LEFT = 560,
    BAR_RIGHT = 990,
    COLOURS = 8
};

static const char style[] =
    ".name { font-size: 14px; font-weight: bold }\n"
    ".limit { stroke: #333; stroke-width: 1.5 }\n"
    ".bound { fill: none; stroke: #333; stroke-width: 1.2; stroke-dasharray: 2 4 }\n"
    ".met { fill: #009e73 }\n"
    ".missed { fill: #d55e00 }\n"
    ".line { stroke-width: 1.6 }\n"
    ".more { stroke-dasharray: 5 3 }\n"
    ".ours { stroke: #111; stroke-width: 3.2 } .ours-fill { fill: #111 }\n";

/* ---- What is drawn ---- */

struct curve {
    int subject;
    int count;
    double x[SIZES_MAX], y[SIZES_MAX];
};

struct panel {
    const char *bench, *title, *unit;
    bool linear; /* the axis of sizes, which may be 0; `bound` is drawn */
    const char *bound;
    enum size_kind kind;
    struct plot_panel at;
    struct curve curve[SUBJECTS_MAX];
    int curves;
};

static const struct panel panel_table[PANELS] = {
    {.bench = "put_latency", .title = "half round trip by message size", .unit = "ns"},
    {.bench = "bandwidth", .title = "bandwidth by message size", .unit = "GB/s"},
    {.bench = "spin/strided", .title = "4 MiB unpacked, by size of a block", .unit = "GB/s"},
    {.bench = "spin/pingpong", .title = "streamed ping-pong, half round trip", .unit = "us"},
    {.bench = "spin/fair",
     .title = "answer of a fast context beside a slow one",
     .unit = "us",
     .linear = true,
     .bound = "one slow handler more than without"},
    {.bench = "spin/overlap", .title = "dgemm's part of the time of a message", .unit = "1"},
};

static void add_point(struct curve *curve, const struct panel *p, uint64_t size, double value)
{
    if (value > 0 && curve->count < SIZES_MAX && (size > 0 || p->linear)) {
        curve->x[curve->count] = (double)size;
        curve->y[curve->count++] = value;
    }
}

static bool is_ours(const struct run *r, int subject)
{
    return r->stages[subject].subject->kind == SUBJECT_OURS;
}

static struct curve make_curve(const struct run *r, const struct panel *p, int subject,
                               enum stats_mode mode)
{
    struct curve curve = {.subject = subject};
    for (int i = 0; i < r->case_count; i++) {
        const struct bench_case *c = &r->cases[i];
        if (strcmp(c->bench->name, p->bench) != 0) {
            continue;
        }
        if (c->subject == subject) {
            add_point(&curve, p, c->size, results_of(r, c, mode).median);
        } else if (!is_ours(r, subject)) {
            add_point(&curve, p, c->size, results_against(r, c, subject, mode).theirs.median);
        }
    }
    return curve;
}

static void fit_axes(struct panel *p)
{
    struct plot_axis *x = &p->at.x, *y = &p->at.y;
    *x = (struct plot_axis){!p->linear, INFINITY, -INFINITY, p->at.left, p->at.right, "", 1};
    *y = (struct plot_axis){true, INFINITY, -INFINITY, p->at.bottom, p->at.top, p->unit, 1};
    for (int k = 0; k < p->curves; k++) {
        for (int i = 0; i < p->curve[k].count; i++) {
            x->low = fmin(x->low, p->curve[k].x[i]);
            x->high = fmax(x->high, p->curve[k].x[i]);
            y->low = fmin(y->low, p->curve[k].y[i]);
            y->high = fmax(y->high, p->curve[k].y[i]);
        }
    }
    double margin = 0.05 * (x->high - x->low) + 1;
    x->low = p->linear ? x->low - margin : x->low / M_SQRT2;
    x->high = p->linear ? x->high + margin : x->high * M_SQRT2;
    y->low /= 1.26;
    y->high *= 1.26;
}

static void fill_panel(const struct run *r, struct panel *p, enum stats_mode mode)
{
    for (int i = 0; i < r->case_count; i++) {
        if (strcmp(r->cases[i].bench->name, p->bench) == 0) {
            p->kind = r->cases[i].bench->sizes;
        }
    }
    for (int s = 0; s < r->subjects; s++) {
        struct curve curve = make_curve(r, p, s, mode);
        if (curve.count > 0) {
            p->curve[p->curves++] = curve;
        }
    }
    fit_axes(p);
}

/* ---- Panels ---- */

static void draw_sizes(struct plot *s, const struct panel *p)
{
    char text[32];
    int step = p->linear ? 1 : (int)ceil(log2(p->at.x.high / p->at.x.low) / 8);
    for (int i = 0; p->linear && i < p->curve[0].count; i++) {
        double size = p->curve[0].x[i];
        plot_tick_x(s, &p->at, size, plan_size_text(p->kind, (uint64_t)size, text));
    }
    for (int e = 0; !p->linear && exp2(e) <= p->at.x.high; e++) {
        if (e % step == 0 && exp2(e) >= p->at.x.low) {
            plot_tick_x(s, &p->at, exp2(e), plan_size_text(p->kind, UINT64_C(1) << e, text));
        }
    }
}

/* Ours is black and thick; the others take colours in the order of the table, dashed
 * when the colours are used up. */
static const char *class_of(const struct run *r, int subject, const char *suffix, char class[48])
{
    if (is_ours(r, subject)) {
        snprintf(class, 48, "ours%s", suffix);
        return class;
    }
    int number = subject - 2 < 0 ? 0 : subject - 2;
    bool more = number >= COLOURS && *suffix == '\0';
    snprintf(class, 48, "c%d%s%s", number % COLOURS, suffix, more ? " more" : "");
    return class;
}

static void draw_curve(struct plot *s, const struct run *r, const struct panel *p,
                       const struct curve *curve)
{
    char class[48];
    for (int i = 0; i < curve->count; i++) {
        plot_data(s, "%s,%s,%.0f,%.6g,%s", p->bench, r->stages[curve->subject].subject->name,
                  curve->x[i], curve->y[i], p->unit);
        svg_circle(&s->svg, class_of(r, curve->subject, "-fill", class),
                   plot_point(&p->at, curve->x[i], curve->y[i]),
                   is_ours(r, curve->subject) ? 4 : 2.6);
    }
    plot_line(s, &p->at, class_of(r, curve->subject, "", class), curve->x, curve->y,
              (size_t)curve->count);
}

/* The most that a call may wait if one handler of the other context is in the way: ours without
 * that context, and its time more. */
static void draw_bound(struct plot *s, const struct panel *p)
{
    enum { STEPS = 40 };
    struct svg_point points[STEPS];
    const struct curve *ours = &p->curve[0];
    size_t count = 0;
    for (int i = 0; i < STEPS; i++) {
        double x = ours->x[ours->count - 1] * i / (STEPS - 1), y = ours->y[0] + x;
        if (y <= p->at.y.high) {
            points[count++] = plot_point(&p->at, x, y);
        }
    }
    svg_polyline(&s->svg, "bound", points, count);
    svg_text(&s->svg, "sub end", (struct svg_point){p->at.right - 8, p->at.bottom - 8},
             "dotted: %s", p->bound);
}

static void draw_panel(struct plot *s, const struct run *r, const struct panel *p)
{
    const struct plot_panel *at = &p->at;
    plot_panel(s, at);
    svg_text(&s->svg, "name", (struct svg_point){at->left, at->top - 10}, "%s (%s)", p->title,
             p->unit);
    if (p->curves == 0) {
        svg_text(&s->svg, "sub middle",
                 (struct svg_point){(at->left + at->right) / 2, (at->top + at->bottom) / 2},
                 "not measured in this run");
        return;
    }
    draw_sizes(s, p);
    plot_ticks_y(s, at);
    if (p->bound != NULL && p->curve[0].x[0] == 0) {
        draw_bound(s, p);
    }
    for (int k = p->curves - 1; k >= 0; k--) { /* ours comes first in the table: on top */
        draw_curve(s, r, p, &p->curve[k]);
    }
}

/* The panels of a run, filled in and in their places. */
struct picture {
    struct panel panel[PANELS];
    int panels;
};

static bool is_drawn(const struct picture *picture, int subject)
{
    for (int i = 0; i < picture->panels; i++) {
        for (int k = 0; k < picture->panel[i].curves; k++) {
            if (picture->panel[i].curve[k].subject == subject) {
                return true;
            }
        }
    }
    return false;
}

static int key_top(const struct picture *picture)
{
    return PANEL_TOP + picture->panels / 2 * ROW_HEIGHT - 12;
}

static int draw_key(struct plot *s, const struct run *r, const struct picture *picture)
{
    int shown = 0, top = key_top(picture);
    char class[48];
    for (int i = 0; i < r->subjects; i++) {
        if (!is_drawn(picture, i)) {
            continue;
        }
        int line_number = shown / KEY_COLUMNS;
        double x = 70 + shown % KEY_COLUMNS * 260, y = top + line_number * KEY_LINE;
        plot_key(s, class_of(r, i, "", class), (struct svg_point){x, y - 4},
                 r->stages[i].subject->name);
        shown++;
    }
    return top + (shown + KEY_COLUMNS - 1) / KEY_COLUMNS * KEY_LINE;
}

/* ---- Targets ---- */

/* How many times the limit; below 1 is met, whichever way the target points. */
static double excess(const struct target_result *t)
{
    double e = t->at_most ? t->value / t->limit : t->limit / t->value;
    return e < 1.0 / 16 || !isfinite(e) ? 1.0 / 16 : e > 64 ? 64 : e;
}

static double bar_x(double e)
{
    return BAR_LEFT + (log2(e) + 4) / 10 * (BAR_RIGHT - BAR_LEFT);
}

static void draw_targets(struct svg *s, const struct target_result *results, int count, double top)
{
    double y = top + 36;
    double bottom = y + (count - 1) * TARGET_LINE + 10;
    svg_text(s, "name", (struct svg_point){70, top}, "Targets");
    svg_text(s, "sub end", (struct svg_point){bar_x(1) - 40, top}, "met");
    svg_text(s, "sub", (struct svg_point){bar_x(1) + 40, top}, "missed by this factor");
    for (int e = -2; e <= 5; e++) {
        double x = bar_x(exp2(e));
        svg_line(s, "grid", (struct svg_point){x, top + 18}, (struct svg_point){x, bottom});
        svg_text(s, "tick middle", (struct svg_point){x, top + 15}, "%g", exp2(e));
    }
    for (int i = 0; i < count; i++, y += TARGET_LINE) {
        const struct target_result *t = &results[i];
        svg_text(s, "key", (struct svg_point){70, y}, "%s", t->text);
        if (!t->known) {
            svg_text(s, "sub", (struct svg_point){BAR_LEFT, y}, "not measured");
            continue;
        }
        double x = bar_x(excess(t)), one = bar_x(1);
        svg_rect(s, t->met ? "met" : "missed", fmin(x, one), y - 12, fabs(x - one), 14);
        svg_text(s, "tick", (struct svg_point){BAR_RIGHT + 12, y}, "%.3g (%s %.3g)", t->value,
                 t->at_most ? "\u2264" : "\u2265", t->limit);
    }
    svg_line(s, "limit", (struct svg_point){bar_x(1), top + 18},
             (struct svg_point){bar_x(1), bottom});
}

/* ---- All of it ---- */

static enum stats_mode choose_mode(const struct run *r)
{
    int rounds[MODES] = {0, 0};
    for (int i = 0; i < r->case_count; i++) {
        for (int m = 0; m < MODES; m++) {
            rounds[m] += results_of(r, &r->cases[i], (enum stats_mode)m).count;
        }
    }
    return rounds[MODE_FAR] > rounds[MODE_NEAR] ? MODE_FAR : MODE_NEAR;
}

/* Two panels a row: those of which one was measured, else the first. */
static void make_picture(const struct run *r, struct picture *picture, enum stats_mode mode)
{
    for (int row = 0; row < PANELS; row += 2) {
        struct panel *pair = &picture->panel[picture->panels];
        int rows_above = picture->panels / 2;
        for (int i = 0; i < 2; i++) {
            pair[i] = panel_table[row + i];
            pair[i].at.left = i == 0 ? 70 : 630;
            pair[i].at.right = i == 0 ? 530 : 1090;
            pair[i].at.top = PANEL_TOP + rows_above * ROW_HEIGHT;
            pair[i].at.bottom = pair[i].at.top + PANEL_HEIGHT;
            fill_panel(r, &pair[i], mode);
        }
        bool measured = pair[0].curves + pair[1].curves > 0;
        picture->panels += measured || (row == PANELS - 2 && picture->panels == 0) ? 2 : 0;
    }
}

static void draw_all(struct plot *s, const struct run *r, const struct picture *picture,
                     const struct target_result *results, int count)
{
    svg_text(&s->svg, "title", (struct svg_point){70, 36},
             "Pinwheel beside the machine and its peers");
    svg_text(&s->svg, "sub", (struct svg_point){70, 56}, "%s; medians of %d rounds", r->machine,
             r->rounds_done);
    plot_data(s, "bench,subject,size,median,unit");
    for (int i = 0; i < picture->panels; i++) {
        draw_panel(s, r, &picture->panel[i]);
    }
    draw_targets(&s->svg, results, count, draw_key(s, r, picture) + 30);
}

int report_svg(const struct run *r)
{
    char path[4096];
    struct plot s;
    struct target_result results[TARGETS_MAX];
    enum stats_mode mode = choose_mode(r);
    int count = results_targets(r, results);
    struct picture *picture = calloc(1, sizeof(*picture));
    if (picture == NULL) {
        perror("pinwheel bench");
        return -1;
    }
    make_picture(r, picture, mode);
    int lines = (r->subjects + KEY_COLUMNS - 1) / KEY_COLUMNS;
    int height = key_top(picture) + lines * KEY_LINE + 90 + count * TARGET_LINE;
    snprintf(path, sizeof(path), "%s/bench.svg", r->options->out);
    int rc = plot_open(&s, path, WIDTH, height, "Pinwheel beside the machine and its peers",
                       r->machine, style);
    if (rc == 0) {
        draw_all(&s, r, picture, results, count);
        rc = plot_close(&s);
    }
    if (rc != 0) {
        fprintf(stderr, "pinwheel bench: --out: %s: %s\n", path, strerror(errno));
    }
    free(picture);
    return rc;
}
