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
#include "conductor.h"
#include "pinwheel/util/svg.h"
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
    "text { font-family: 'DejaVu Sans', 'Helvetica Neue', Arial, sans-serif; font-size: 13px;"
    " fill: #333 }\n"
    ".title { font-size: 20px; font-weight: bold; fill: #111 }\n"
    ".name { font-size: 14px; font-weight: bold }\n"
    ".sub { font-size: 12px; fill: #666 }\n"
    ".tick { font-size: 12px; fill: #555 }\n"
    ".middle { text-anchor: middle }\n"
    ".end { text-anchor: end }\n"
    ".paper { fill: #ffffff }\n"
    ".panel { fill: #fbfbfc; stroke: #c9ccd1; stroke-width: 1 }\n"
    ".grid { stroke: #e3e6ea; stroke-width: 1 }\n"
    ".limit { stroke: #333; stroke-width: 1.5 }\n"
    ".bound { fill: none; stroke: #333; stroke-width: 1.2; stroke-dasharray: 2 4 }\n"
    ".met { fill: #009e73 }\n"
    ".missed { fill: #d55e00 }\n"
    ".line { fill: none; stroke-width: 1.6; stroke-linejoin: round }\n"
    ".more { stroke-dasharray: 5 3 }\n"
    ".ours { stroke: #111; stroke-width: 3.2 } .ours-fill { fill: #111 }\n"
    /* colours that people tell apart whatever their eyes; Okabe and Ito */
    ".c0 { stroke: #0072b2 } .c0-fill { fill: #0072b2 }\n"
    ".c1 { stroke: #e69f00 } .c1-fill { fill: #e69f00 }\n"
    ".c2 { stroke: #009e73 } .c2-fill { fill: #009e73 }\n"
    ".c3 { stroke: #cc79a7 } .c3-fill { fill: #cc79a7 }\n"
    ".c4 { stroke: #56b4e9 } .c4-fill { fill: #56b4e9 }\n"
    ".c5 { stroke: #d55e00 } .c5-fill { fill: #d55e00 }\n"
    ".c6 { stroke: #b8a800 } .c6-fill { fill: #b8a800 }\n"
    ".c7 { stroke: #777777 } .c7-fill { fill: #777777 }\n";

/* ---- What is drawn ---- */

struct curve {
    int subject;
    int count;
    double x[SIZES_MAX], y[SIZES_MAX]; /* log2 of the size, log10 of the value */
};

struct panel {
    const char *bench, *title, *unit;
    bool linear; /* the axis of sizes, which may be 0; `bound` is drawn */
    const char *bound;
    enum size_kind kind;
    double left, right, top, bottom;
    double x_low, x_high, y_low, y_high;
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
        curve->x[curve->count] = p->linear ? (double)size : log2((double)size);
        curve->y[curve->count++] = log10(value);
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
    p->x_low = p->y_low = INFINITY;
    p->x_high = p->y_high = -INFINITY;
    for (int k = 0; k < p->curves; k++) {
        for (int i = 0; i < p->curve[k].count; i++) {
            p->x_low = fmin(p->x_low, p->curve[k].x[i]);
            p->x_high = fmax(p->x_high, p->curve[k].x[i]);
            p->y_low = fmin(p->y_low, p->curve[k].y[i]);
            p->y_high = fmax(p->y_high, p->curve[k].y[i]);
        }
    }
    double margin = p->linear ? 0.05 * (p->x_high - p->x_low) + 1 : 0.5;
    p->x_low -= margin;
    p->x_high += margin;
    p->y_low -= 0.1;
    p->y_high += 0.1;
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

static double x_of(const struct panel *p, double x)
{
    return p->left + (x - p->x_low) / (p->x_high - p->x_low) * (p->right - p->left);
}

static double y_of(const struct panel *p, double y)
{
    return p->bottom - (y - p->y_low) / (p->y_high - p->y_low) * (p->bottom - p->top);
}

static void draw_size(struct svg *s, const struct panel *p, double at, uint64_t size)
{
    char text[32];
    double x = x_of(p, at);
    svg_line(s, "grid", (struct svg_point){x, p->top}, (struct svg_point){x, p->bottom});
    svg_text(s, "tick middle", (struct svg_point){x, p->bottom + 18}, "%s",
             plan_size_text(p->kind, size, text));
}

static void draw_sizes(struct svg *s, const struct panel *p)
{
    int step = (int)ceil((p->x_high - p->x_low) / 8);
    for (int i = 0; p->linear && i < p->curve[0].count; i++) {
        draw_size(s, p, p->curve[0].x[i], (uint64_t)p->curve[0].x[i]);
    }
    for (int e = (int)ceil(p->x_low); !p->linear && e <= p->x_high; e++) {
        if (e % step == 0) {
            draw_size(s, p, e, UINT64_C(1) << e);
        }
    }
}

static void draw_values(struct svg *s, const struct panel *p)
{
    static const int digits[] = {1, 2, 5};
    for (int decade = (int)floor(p->y_low); decade <= p->y_high; decade++) {
        for (int i = 0; i < 3; i++) {
            double value = digits[i] * pow(10, decade), y = y_of(p, log10(value));
            if (y >= p->top && y <= p->bottom && (p->y_high - p->y_low < 3 || i == 0)) {
                svg_line(s, "grid", (struct svg_point){p->left, y},
                         (struct svg_point){p->right, y});
                svg_text(s, "tick end", (struct svg_point){p->left - 6, y + 4}, "%g", value);
            }
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

static void draw_curve(struct svg *s, const struct run *r, const struct panel *p,
                       const struct curve *curve)
{
    struct svg_point points[SIZES_MAX];
    char class[48], line[64];
    for (int i = 0; i < curve->count; i++) {
        points[i] = (struct svg_point){x_of(p, curve->x[i]), y_of(p, curve->y[i])};
        svg_circle(s, class_of(r, curve->subject, "-fill", class), points[i],
                   is_ours(r, curve->subject) ? 4 : 2.6);
    }
    snprintf(line, sizeof(line), "line %s", class_of(r, curve->subject, "", class));
    svg_polyline(s, line, points, (size_t)curve->count);
}

/* What a waiting time may be if one handler of the other context is in the way: ours without
 * that context, and its time more. */
static void draw_bound(struct svg *s, const struct panel *p)
{
    enum { STEPS = 40 };
    struct svg_point points[STEPS];
    const struct curve *ours = &p->curve[0];
    size_t count = 0;
    for (int i = 0; i < STEPS; i++) {
        double x = ours->x[ours->count - 1] * i / (STEPS - 1);
        double y = y_of(p, log10(pow(10, ours->y[0]) + x));
        if (y >= p->top) {
            points[count++] = (struct svg_point){x_of(p, x), y};
        }
    }
    svg_polyline(s, "bound", points, count);
    svg_text(s, "sub end", (struct svg_point){p->right - 8, p->bottom - 8}, "dotted: %s", p->bound);
}

static void draw_panel(struct svg *s, const struct run *r, const struct panel *p)
{
    svg_rect(s, "panel", p->left, p->top, p->right - p->left, p->bottom - p->top);
    svg_text(s, "name", (struct svg_point){p->left, p->top - 10}, "%s (%s)", p->title, p->unit);
    if (p->curves == 0) {
        svg_text(s, "sub middle",
                 (struct svg_point){(p->left + p->right) / 2, (p->top + p->bottom) / 2},
                 "not measured in this run");
        return;
    }
    draw_sizes(s, p);
    draw_values(s, p);
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

static int draw_key(struct svg *s, const struct run *r, const struct picture *picture)
{
    int shown = 0, top = key_top(picture);
    char class[48], line[64];
    for (int i = 0; i < r->subjects; i++) {
        if (!is_drawn(picture, i)) {
            continue;
        }
        int line_number = shown / KEY_COLUMNS;
        double x = 70 + shown % KEY_COLUMNS * 260, y = top + line_number * KEY_LINE;
        snprintf(line, sizeof(line), "line %s", class_of(r, i, "", class));
        svg_line(s, line, (struct svg_point){x, y - 4}, (struct svg_point){x + 32, y - 4});
        svg_text(s, "key", (struct svg_point){x + 40, y}, "%s", r->stages[i].subject->name);
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
        for (int i = 0; i < 2; i++) {
            pair[i] = panel_table[row + i];
            pair[i].left = i == 0 ? 70 : 630;
            pair[i].right = i == 0 ? 530 : 1090;
            pair[i].top = PANEL_TOP + picture->panels / 2 * ROW_HEIGHT;
            pair[i].bottom = pair[i].top + PANEL_HEIGHT;
            fill_panel(r, &pair[i], mode);
        }
        bool measured = pair[0].curves + pair[1].curves > 0;
        picture->panels += measured || (row == PANELS - 2 && picture->panels == 0) ? 2 : 0;
    }
}

static void draw_all(struct svg *s, const struct run *r, const struct picture *picture,
                     const struct target_result *results, int count)
{
    svg_rect(s, "paper", 0, 0, WIDTH, 4000);
    svg_text(s, "title", (struct svg_point){70, 36}, "Pinwheel beside the machine and its peers");
    svg_text(s, "sub", (struct svg_point){70, 56}, "%s; medians of %d rounds", r->machine,
             r->rounds_done);
    for (int i = 0; i < picture->panels; i++) {
        draw_panel(s, r, &picture->panel[i]);
    }
    draw_targets(s, results, count, draw_key(s, r, picture) + 30);
}

int report_svg(const struct run *r)
{
    char path[4096];
    struct svg s;
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
    int rc = svg_open(&s, path, WIDTH, height, "Pinwheel beside the machine and its peers",
                      r->machine, style);
    if (rc == 0) {
        draw_all(&s, r, picture, results, count);
        rc = svg_close(&s);
    }
    if (rc != 0) {
        fprintf(stderr, "pinwheel bench: --out: %s: %s\n", path, strerror(errno));
    }
    free(picture);
    return rc;
}
