/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The picture of the scanned file: how often each byte value occurs, as bars coloured by the kind
 * of byte; below it the words, as bars with their counts. All numbers are those of the handlers.
 */
#include "demo.h"
#include "pinwheel/util/plot.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    WIDTH = 960,
    LEFT = 86,
    RIGHT = 930,
    TOP = 100,
    BOTTOM = 400,
    KEY = 452,   /* y of the names of the colours */
    WORDS = 510, /* y of the first word */
    WORD_STEP = 24,
    NAMED = 12 /* so many bars may have their character as a label */
};

static const char style[] =
    ".head { font-weight: bold }\n"
    ".name { font-size: 11px; font-weight: bold; fill: #333 }\n"
    ".wrong { fill: #b00020; font-weight: bold }\n"
    ".word { fill: #0072b2 }\n"
    ".control { fill: #777f8a } .blank { fill: #56b4e9 } .sign { fill: #e69f00 }\n"
    ".digit { fill: #cc3377 } .upper { fill: #005a8c } .lower { fill: #0088cc }\n"
    ".beyond { fill: #009e73 }\n";

static const struct kind {
    const char *class, *name;
} kinds[] = {
    {"control", "control"},     {"blank", "blank, line end"}, {"sign", "sign"},
    {"digit", "digit"},         {"upper", "capital letter"},  {"lower", "small letter"},
    {"beyond", "beyond ASCII"},
};

static const struct kind *kind_of(int byte)
{
    enum { CONTROL, BLANK, SIGN, DIGIT, UPPER, LOWER, BEYOND } kind;
    if (byte == ' ' || (byte >= '\t' && byte <= '\r')) {
        kind = BLANK;
    } else if (byte < 0x20 || byte == 0x7f) {
        kind = CONTROL;
    } else if (byte >= 0x80) {
        kind = BEYOND;
    } else if (byte >= '0' && byte <= '9') {
        kind = DIGIT;
    } else if (byte >= 'A' && byte <= 'Z') {
        kind = UPPER;
    } else {
        kind = byte >= 'a' && byte <= 'z' ? LOWER : SIGN;
    }
    return &kinds[kind];
}

static const char *byte_name(int byte, char text[16])
{
    if (byte == ' ' || byte == '\n' || byte == '\t') {
        snprintf(text, 16, "%s", byte == ' ' ? "space" : byte == '\n' ? "\\n" : "\\t");
    } else if (byte > 0x20 && byte < 0x7f) {
        snprintf(text, 16, "%c", byte);
    } else {
        snprintf(text, 16, "0x%02x", byte);
    }
    return text;
}

static uint64_t largest(const uint64_t *values, unsigned count)
{
    uint64_t most = 0;
    for (unsigned i = 0; i < count; i++) {
        most = values[i] > most ? values[i] : most;
    }
    return most;
}

/* Returns how many byte values the axis has: 128 if the text is ASCII only. */
static int range_of(const uint64_t *bytes)
{
    return largest(bytes + 128, 128) == 0 ? 128 : 256;
}

static double x_of(int byte, int range)
{
    return LEFT + (RIGHT - LEFT) * ((double)byte / range);
}

static void draw_axes(struct svg *s, double top, int range)
{
    double step = fmax(1, plot_step(top));
    for (double v = 0; v <= top; v += step) {
        double y = BOTTOM - (BOTTOM - TOP) * (v / top);
        svg_line(s, "grid", (struct svg_point){LEFT, y}, (struct svg_point){RIGHT, y});
        const char *unit = top >= 1e6 ? "M" : top >= 1e4 ? "k" : "";
        svg_text(s, "tick end", (struct svg_point){LEFT - 8, y + 4}, "%g%s",
                 v / (top >= 1e6   ? 1e6
                      : top >= 1e4 ? 1e3
                                   : 1),
                 v > 0 ? unit : "");
    }
    for (int byte = 0; byte <= range; byte += range / 8) {
        double x = x_of(byte, range);
        svg_line(s, "grid", (struct svg_point){x, BOTTOM}, (struct svg_point){x, BOTTOM + 5});
        svg_text(s, "tick middle", (struct svg_point){x, BOTTOM + 19}, "0x%02x", (unsigned)byte);
    }
    svg_text_up(s, "middle", (struct svg_point){26, (TOP + BOTTOM) / 2.0}, "occurrences");
}

/* True if a bar gets a label: if it is among the NAMED tallest bars and the tallest near by, since
 * labels must not touch. */
static bool is_named(const uint64_t *bytes, int byte, int range)
{
    int taller = 0, apart = range == 128 ? 1 : 6;
    for (int i = 0; i < 256; i++) {
        if (bytes[i] > bytes[byte] || (bytes[i] == bytes[byte] && i < byte)) {
            taller += i >= byte - apart && i <= byte + apart ? NAMED : 1;
        }
    }
    return bytes[byte] != 0 && taller < NAMED;
}

static void draw_bars(struct svg *s, const uint64_t *bytes, double top, int range)
{
    double width = (double)(RIGHT - LEFT) / range;
    for (int byte = 0; byte < range; byte++) {
        char name[16], hint[64];
        double height = (BOTTOM - TOP) * ((double)bytes[byte] / top);
        if (bytes[byte] == 0) {
            continue;
        }
        height = height < 0.6 ? 0.6 : height; /* a single occurrence must still be visible */
        snprintf(hint, sizeof(hint), "%s (0x%02x): %" PRIu64, byte_name(byte, name), (unsigned)byte,
                 bytes[byte]);
        double x = x_of(byte, range);
        svg_hint(s, kind_of(byte)->class, x + 0.08 * width, BOTTOM - height, 0.84 * width, height,
                 hint);
        if (is_named(bytes, byte, range)) {
            const char *class = byte < 4 ? "name" : byte > range - 4 ? "name end" : "name middle";
            svg_text(s, class, (struct svg_point){x + width / 2, BOTTOM - height - 5}, "%s", name);
        }
    }
}

static void draw_key(struct svg *s)
{
    double x = LEFT;
    for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
        svg_rect(s, kinds[k].class, x, KEY - 10, 12, 12);
        svg_text(s, "tick", (struct svg_point){x + 18, KEY}, "%s", kinds[k].name);
        x += 36 + 7.6 * (double)strlen(kinds[k].name);
    }
}

static void draw_words(struct svg *s, const struct demo_options *o, const struct demo_scan *scan)
{
    uint64_t most = largest(scan->nic.words, o->filter.count);
    const double from = LEFT + 130, room = RIGHT - 120 - from;
    svg_text(s, "head", (struct svg_point){LEFT, WORDS - 14}, "Words");
    for (unsigned w = 0; w < o->filter.count; w++) {
        double y = WORDS + w * WORD_STEP;
        double width = most > 0 ? room * ((double)scan->nic.words[w] / (double)most) : 0;
        svg_text(s, "end", (struct svg_point){from - 10, y + 12}, "%s", o->words[w]);
        svg_rect(s, "word", from, y + 1, width, WORD_STEP - 9);
        if (scan->nic.words[w] == scan->host.words[w]) {
            svg_text(s, "tick", (struct svg_point){from + width + 8, y + 12}, "%" PRIu64,
                     scan->nic.words[w]);
        } else {
            svg_text(s, "wrong", (struct svg_point){from + width + 8, y + 12},
                     "%" PRIu64 ", host: %" PRIu64, scan->nic.words[w], scan->host.words[w]);
        }
    }
}

static void draw_titles(struct svg *s, const struct demo_report *r)
{
    const struct demo_scan *scan = &r->scan;
    const char *slash = strrchr(r->options->file, '/');
    char size[32];
    svg_text(s, "title", (struct svg_point){LEFT, 38}, "%.60s, counted while it passed the NIC",
             slash != NULL ? slash + 1 : r->options->file);
    svg_text(s, "sub", (struct svg_point){LEFT, 60},
             "%" PRIu64 " bytes in %" PRIu64 " messages of up to %s, %" PRIu64
             " packets; payload handlers on every packet",
             scan->bytes, scan->messages, demo_size_text(scan->message_size, size),
             scan->nic.packets);
    svg_text(s, scan->equal ? "sub" : "wrong", (struct svg_point){LEFT, 77},
             scan->equal ? "equal to a plain count on the host"
                         : "NOT equal to a plain count on the host");
}

static void write_data(struct plot *p, const struct demo_report *r)
{
    plot_data(p, "byte or word,count");
    for (int byte = 0; byte < 256; byte++) {
        plot_data(p, "0x%02x,%" PRIu64, (unsigned)byte, r->scan.nic.bytes[byte]);
    }
    for (unsigned w = 0; w < r->options->filter.count; w++) {
        plot_name(p, r->options->words[w]);
        plot_data(p, "%" PRIu64, r->scan.nic.words[w]);
    }
}

int demo_histogram(const struct demo_report *r)
{
    const struct demo_scan *scan = &r->scan;
    uint64_t most = largest(scan->nic.bytes, 256);
    int range = range_of(scan->nic.bytes);
    double top = most > 0 ? (double)most * 1.08 : 1;
    struct plot p;
    int rc =
        plot_open(&p, r->histogram_svg, WIDTH, WORDS + r->options->filter.count * WORD_STEP + 24,
                  "Histogram of a file", r->options->file, style);
    if (rc == 0) {
        draw_titles(&p.svg, r);
        svg_rect(&p.svg, "panel", LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP);
        draw_axes(&p.svg, top, range);
        draw_bars(&p.svg, scan->nic.bytes, top, range);
        draw_key(&p.svg);
        draw_words(&p.svg, r->options, scan);
        write_data(&p, r);
        rc = plot_close(&p);
    }
    if (rc != 0) {
        fprintf(stderr, "pinwheel demo: --out: %s: %s\n", r->histogram_svg, strerror(errno));
    }
    return rc;
}
