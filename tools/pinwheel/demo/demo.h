/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel demo`: its files, and the structs that they exchange.
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
 * Functions that return int return 0, or -1 after they have printed on stderr what went wrong,
 * unless noted.
 */
#ifndef PINWHEEL_DEMO_H
#define PINWHEEL_DEMO_H

#include <stdbool.h>
#include <stdint.h>

#include "link.h"
#include "textscan.h"

enum { DEMO_SIZE_MAX = 4 << 20, DEMO_SIZES = 24, DEMO_ROUNDS = 20, DEMO_PATH = 1024 };

enum demo_way { WAY_CPU, WAY_TRIGGERED, WAY_STORED, WAY_STREAMED, WAYS };

extern const char *const demo_way_names[WAYS]; /* names for JSON and labels */

struct demo_options {
    const char *file, *out;
    struct textscan_filter filter;
    char words[TEXTSCAN_WORDS][TEXTSCAN_WORD_MAX + 1]; /* the words as the user gave them */
    uint64_t smallest, largest;
    long iterations; /* for each way and size, all rounds together */
    int rounds;
    bool limited; /* measuring stops when it takes too long */
    bool json, quick;
    int cores; /* number of cores that the demo may use, and their list */
    const char *core_list;
};

/* The messages between the ranks. */
enum demo_kind { DEMO_READY, DEMO_PING, DEMO_SCAN, DEMO_SCANNED, DEMO_END };

struct demo_command {
    enum demo_kind kind;
    enum demo_way way; /* PING: how rank 1 must answer */
    uint64_t size;     /* PING: bytes of a message */
    uint64_t count;    /* number of messages */
    uint64_t first;    /* PING: number of the first iteration */
    uint64_t wrong;    /* READY, in answer to END: how many wrong bytes rank 1 has found */
};

/* Half round-trip times of a way and size. */
struct demo_time {
    double median_ns, low_ns, high_ns; /* median and quartiles of the medians of the rounds */
};

struct demo_row {
    uint64_t bytes;
    struct demo_time way[WAYS];
};

struct demo_pingpong {
    int rows, rounds; /* rows; rounds that were made */
    long iterations;  /* iterations in a round */
    struct demo_row row[DEMO_SIZES];
    uint64_t checked, wrong; /* bytes that were compared, and that were wrong */
    char first_wrong[160];   /* where the first wrong byte was; "": none */
};

struct demo_scan {
    uint64_t bytes, message_size, messages;
    double seconds;
    struct textscan_totals nic, host;
    bool equal;
};

/* What a report shows. */
struct demo_report {
    const struct demo_options *options;
    char machine[320]; /* one line: cores, packet size, fabric */
    uint64_t packet;
    const char *fabric;
    const char *path; /* how payloads travel on this fabric */
    struct demo_pingpong pingpong;
    struct demo_scan scan;
    char pingpong_svg[DEMO_PATH], histogram_svg[DEMO_PATH];
};

/* demo_rank() runs one of the two ranks; it returns the exit status. */
int demo_rank(const struct demo_options *options);

/* ---- pingpong.c ---- */

struct demo_pattern;
/* demo_pattern() makes the bytes that messages of up to `largest` bytes are taken from, the same in
 * both ranks; NULL: memory is short. */
struct demo_pattern *demo_pattern(uint64_t largest);
void demo_pattern_free(struct demo_pattern *pattern);
int demo_pingpong(struct demo_link *l, const struct demo_options *options,
                  struct demo_pingpong *result);

/* Rank 1's side of the ping-pong: the buffer that pings are put into, and the objects that
 * answer. */
struct demo_pinged {
    struct demo_pattern *pattern;
    uint8_t *buffer;
    ptl_handle_ct_t ct;
    ptl_handle_md_t md;
    uint64_t wrong;
};
int demo_pinged_open(struct demo_link *l, uint64_t largest, struct demo_pinged *p);
void demo_pinged_close(struct demo_pinged *p);
/* demo_pinged_serve() answers the pings of one command, in rank 1. */
int demo_pinged_serve(struct demo_link *l, struct demo_pinged *p, const struct demo_command *c);

/* ---- scan.c ---- */

int demo_scan(struct demo_link *l, const struct demo_options *options, struct demo_scan *result);
/* demo_scan_serve() is rank 1's side: it returns when it has sent its result. */
int demo_scan_serve(struct demo_link *l, const struct textscan_filter *filter,
                    const struct demo_command *c);

/* ---- count.c ---- */

/* demo_count() reads the file and counts its bytes and words. */
int demo_count(const struct demo_options *options, struct textscan_totals *totals);

/* ---- report.c, plot.c, histogram.c ---- */

bool demo_all_right(const struct demo_report *r);
int demo_report_text(const struct demo_report *r);
int demo_report_json(const struct demo_report *r);
/* demo_size_text() writes a size such as "64 KiB". */
const char *demo_size_text(uint64_t bytes, char text[32]);
int demo_plot(const struct demo_report *r);
int demo_histogram(const struct demo_report *r);

/* demo_progress() shows a line on stderr in place of the last one, if stderr is a terminal; NULL
 * clears the line. */
void demo_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
