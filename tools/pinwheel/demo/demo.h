/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel demo`: the parts of it, and what they tell each other.
 *
 *   demo.c               the options; starts two ranks of itself through launch.h
 *   rank.c               what a rank does: 0 conducts and reports, 1 serves
 *   link.[ch]            the interface, control messages and waiting of a rank
 *   pingpong.c           (a) ping-pong answered in four ways, both halves
 *   scan.c               (b) a file streamed through handlers, both halves
 *   count.c              the plain count of the file that (b) is compared with
 *   report.c             tables and JSON
 *   plot.c, histogram.c  the pictures, through svg.h
 *
 * Functions that return int give 0, or -1 after they have said on stderr what
 * went wrong, unless noted.
 */
#ifndef PINWHEEL_DEMO_H
#define PINWHEEL_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "link.h"
#include "textscan.h"

enum { DEMO_SIZE_MAX = 4 << 20, DEMO_SIZES = 24, DEMO_ROUNDS = 20, DEMO_PATH = 1024 };

enum demo_way { WAY_CPU, WAY_TRIGGERED, WAY_STORED, WAY_STREAMED, WAYS };

extern const char *const demo_way_names[WAYS]; /* for JSON and labels */

struct demo_options {
    const char *file, *out;
    struct textscan_filter filter;
    char words[TEXTSCAN_WORDS][TEXTSCAN_WORD_MAX + 1]; /* as given */
    uint64_t smallest, largest;
    long iterations; /* of a way and size, all rounds together */
    int rounds;
    bool limited; /* stop measuring when it takes too long */
    bool json, quick;
    int cores; /* that the demo may use, and their numbers */
    const char *core_list;
};

/* The messages between the ranks. */
enum demo_kind { DEMO_READY, DEMO_PING, DEMO_SCAN, DEMO_SCANNED, DEMO_END };

struct demo_command {
    enum demo_kind kind;
    enum demo_way way; /* PING: how to answer */
    uint64_t size;     /* PING: of a message */
    uint64_t count;    /* messages */
    uint64_t first;    /* PING: number of the first iteration */
    uint64_t wrong;    /* READY, in answer to END: wrong bytes that rank 1 has seen */
};

/* Half round trips of a way and size. */
struct demo_time {
    double median_ns, low_ns, high_ns; /* of the rounds' medians: median and quartiles */
};

struct demo_row {
    uint64_t bytes;
    struct demo_time way[WAYS];
};

struct demo_pingpong {
    int rows, rounds; /* rounds made */
    long iterations;  /* of a round */
    struct demo_row row[DEMO_SIZES];
    uint64_t checked, wrong; /* bytes */
    char first_wrong[160];   /* "" or where */
};

struct demo_scan {
    uint64_t bytes, message_size, messages;
    double seconds;
    struct textscan_totals nic, host;
    bool equal;
};

/* The subject of a report. */
struct demo_report {
    const struct demo_options *options;
    char machine[320]; /* cores, packet size, fabric: one line */
    uint64_t packet;
    const char *fabric;
    const char *path; /* how payloads travel on it */
    struct demo_pingpong pingpong;
    struct demo_scan scan;
    char pingpong_svg[DEMO_PATH], histogram_svg[DEMO_PATH];
};

/* demo_rank() is what the two ranks run; returns the exit status. */
int demo_rank(const struct demo_options *options);

/* ---- pingpong.c ---- */

struct demo_pattern;
/* demo_pattern() makes the bytes that messages of up to `largest` bytes are made
 * of, the same in both ranks; NULL: no memory. */
struct demo_pattern *demo_pattern(uint64_t largest);
void demo_pattern_free(struct demo_pattern *pattern);
int demo_pingpong(struct demo_link *l, const struct demo_options *options,
                  struct demo_pingpong *result);

/* The other half: a buffer to be pinged, and what answers. */
struct demo_pinged {
    struct demo_pattern *pattern;
    uint8_t *buffer;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    uint64_t wrong;
};
int demo_pinged_open(struct demo_link *l, uint64_t largest, struct demo_pinged *p);
void demo_pinged_close(struct demo_pinged *p);
/* demo_pinged_serve() answers the pings of one command. */
int demo_pinged_serve(struct demo_link *l, struct demo_pinged *p, const struct demo_command *c);

/* ---- scan.c ---- */

int demo_scan(struct demo_link *l, const struct demo_options *options, struct demo_scan *result);
/* demo_scan_serve() is the other half, until it has sent its result. */
int demo_scan_serve(struct demo_link *l, const struct textscan_filter *filter,
                    const struct demo_command *c);

/* ---- count.c ---- */

/* demo_count() reads the file and counts bytes and words. */
int demo_count(const struct demo_options *options, struct textscan_totals *totals);

/* ---- report.c, plot.c, histogram.c ---- */

bool demo_all_right(const struct demo_report *r);
int demo_report_text(const struct demo_report *r);
int demo_report_json(const struct demo_report *r);
/* demo_size_text() writes "64 KiB". */
const char *demo_size_text(uint64_t bytes, char text[32]);
int demo_plot(const struct demo_report *r);
int demo_histogram(const struct demo_report *r);

/* demo_progress() shows a line on stderr if that is a terminal, in place of the
 * last one; NULL clears it. */
void demo_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
