/* SPDX-License-Identifier: BSD-3-Clause */
/* The flame graph of `pinwheel hpu profile`; see profile.h. */
#include "profile.h"

#include "pinwheel/util/plot.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { WIDTH = 1000, BAR = 20, MARGIN = 12, HEAD = 34, LETTER = 7, DEEPEST = 200 };

static const char style[] = ".bar{fill:#e8a33d;stroke:#ffffff}\n"
                            ".even{fill:#d9822b}\n"
                            "text{font:12px sans-serif;fill:#202020}\n"
                            ".title{font-size:14px}\n";

static uint64_t total(const struct hpu_frame *f)
{
    uint64_t sum = f->cycles;
    for (const struct hpu_frame *c = f->child; c != NULL; c = c->next) {
        sum += total(c);
    }
    return sum;
}

/* Returns how many levels of frames are below this one; levels below DEEPEST are not drawn and not
 * counted. */
static int depth(const struct hpu_frame *f, int level)
{
    int most = 0;
    for (const struct hpu_frame *c = f->child; c != NULL && level < DEEPEST; c = c->next) {
        int d = 1 + depth(c, level + 1);
        most = d > most ? d : most;
    }
    return most;
}

static void draw_bar(struct plot *p, const struct hpu_frame *f, double x, double y, double width,
                     uint64_t cycles, int level)
{
    char hint[160];
    snprintf(hint, sizeof(hint), "%.100s: %" PRIu64 " cycles, %" PRIu64 " of its own", f->name,
             cycles, f->cycles);
    svg_hint(&p->svg, level % 2 == 0 ? "bar even" : "bar", x, y, width, BAR - 1, hint);
    plot_name(p, f->name);
    plot_data(p, "%d,%" PRIu64 ",%" PRIu64, level, cycles, f->cycles);
    size_t room = width > LETTER ? (size_t)(width / LETTER) - 1 : 0;
    if (room >= 3) {
        struct svg_point at = {x + 4, y + 14};
        svg_text(&p->svg, "label", at, "%.*s", (int)room, f->name);
    }
}

static void draw_children(struct plot *p, const struct hpu_frame *f, double x, double scale,
                          double base, int level)
{
    for (const struct hpu_frame *c = f->child; c != NULL && level < DEEPEST; c = c->next) {
        uint64_t cycles = total(c);
        double width = scale * (double)cycles;
        draw_bar(p, c, x, base - (level + 1) * BAR, width, cycles, level);
        draw_children(p, c, x, scale, base, level + 1);
        x += width;
    }
}

int hpu_flame_draw(const struct hpu_frame *root, const char *path, const char *function)
{
    struct plot p;
    char title[160];
    uint64_t cycles = total(root);
    double height = HEAD + MARGIN + (double)BAR * depth(root, 0);
    snprintf(title, sizeof(title), "%.100s: %" PRIu64 " cycles", function, cycles);
    int rc = plot_open(
        &p, path, WIDTH, height, title,
        "A flame graph: each bar is a call, as wide as its cycles, on that of its caller.", style);
    if (rc == 0) {
        svg_text(&p.svg, "title", (struct svg_point){MARGIN, 22}, "%s", title);
        plot_data(&p, "function,depth,cycles,own cycles");
        double scale = cycles > 0 ? (WIDTH - 2.0 * MARGIN) / (double)cycles : 0;
        draw_children(&p, root, MARGIN, scale, height - MARGIN, 0);
        rc = plot_close(&p);
    }
    if (rc != 0) {
        fprintf(stderr, "pinwheel hpu profile: %s: %s\n", path, strerror(errno));
    }
    return rc;
}
