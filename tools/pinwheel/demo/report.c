/* SPDX-License-Identifier: BSD-3-Clause */
/* The report of the demo: as tables, or as JSON. */
#include "demo.h"
#include "pinwheel/util/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

bool demo_all_right(const struct demo_report *r)
{
    return r->pingpong.wrong == 0 && r->scan.equal;
}

const char *demo_size_text(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB"};
    size_t unit = 0;
    while (bytes != 0 && bytes % 1024 == 0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 32, "%" PRIu64 " %s", bytes, units[unit]);
    return text;
}

/* Writes a time in us with three significant digits. */
static const char *us_text(double ns, char text[32])
{
    double us = ns / 1000;
    snprintf(text, 32, "%.*f", us < 9.995 ? 2 : us < 99.95 ? 1 : 0, us);
    return text;
}

/* Returns half the distance between the quartiles, in percent of the median. */
static double spread(const struct demo_time *t)
{
    return t->median_ns > 0 ? 50 * (t->high_ns - t->low_ns) / t->median_ns : 0;
}

static const char *spread_text(const struct demo_time *t, char text[16])
{
    if (spread(t) > 99) {
        return ">99%";
    }
    snprintf(text, 16, "%3.0f%%", spread(t));
    return text;
}

/* True if the times of many ways spread so widely that other work on the cores must have disturbed
 * them. */
static bool disturbed(const struct demo_pingpong *p)
{
    int wide = 0;
    for (int i = 0; i < p->rows; i++) {
        for (int way = 0; way < WAYS; way++) {
            wide += spread(&p->row[i].way[way]) > 30;
        }
    }
    return wide > p->rows * WAYS / 4;
}

static double ratio(const struct demo_row *row, int way)
{
    return row->way[WAY_CPU].median_ns > 0 ? row->way[way].median_ns / row->way[WAY_CPU].median_ns
                                           : 0;
}

/* ---- For people ---- */

static void print_pingpong(const struct demo_pingpong *p)
{
    char size[32], us[32], percent[16];
    printf(
        "Ping-pong, answered in four ways. us: half a round trip, median of %d round%s of %ld;\n"
        "\u00b1: half the distance between the quartiles of the rounds; x: ratio to the CPU.\n\n",
        p->rounds, p->rounds == 1 ? "" : "s", p->iterations);
    printf("             by the CPU     triggered put           handlers:               handlers:\n"
           "                            set up ahead            store and forward       streaming\n"
           "      size      us    \u00b1       us    \u00b1     x        us    \u00b1     x"
           "        us    \u00b1     x\n");
    for (int i = 0; i < p->rows; i++) {
        const struct demo_row *row = &p->row[i];
        printf("%10s", demo_size_text(row->bytes, size));
        for (int way = 0; way < WAYS; way++) {
            const struct demo_time *t = &row->way[way];
            printf("%*s%6s %s", way == 0 ? 2 : 3, "", us_text(t->median_ns, us),
                   spread_text(t, percent));
            if (way != WAY_CPU) {
                printf("  %4.2f", ratio(row, way));
            }
        }
        putchar('\n');
    }
    if (disturbed(p)) {
        printf("\nThe rounds differ widely: other work keeps these cores busy.\n");
    }
    printf("\n%" PRIu64 " bytes of answers compared: ", p->checked);
    if (p->wrong == 0) {
        printf("all right.\n");
    } else {
        printf("%" PRIu64 " WRONG, first %s.\n", p->wrong, p->first_wrong);
    }
}

static int bytes_differing(const struct demo_scan *s)
{
    int n = 0;
    for (int i = 0; i < 256; i++) {
        n += s->nic.bytes[i] != s->host.bytes[i];
    }
    return n;
}

static void print_scan(const struct demo_options *o, const struct demo_scan *s)
{
    char size[32];
    printf("\n%s, %" PRIu64 " bytes, streamed through handlers in %" PRIu64
           " message%s of up to %s "
           "(%" PRIu64 " packets)",
           o->file, s->bytes, s->messages, s->messages == 1 ? "" : "s",
           demo_size_text(s->message_size, size), s->nic.packets);
    if (s->bytes > 0 && s->seconds > 0) {
        printf(":\n%.3g ms, %.3g MB/s", s->seconds * 1e3, (double)s->bytes / s->seconds / 1e6);
    }
    printf(".\n\n    %-*s  by handlers  on the host\n", TEXTSCAN_WORD_MAX, "word");
    for (unsigned w = 0; w < o->filter.count; w++) {
        printf("    %-*s  %11" PRIu64 "  %11" PRIu64 "%s\n", TEXTSCAN_WORD_MAX, o->words[w],
               s->nic.words[w], s->host.words[w],
               s->nic.words[w] == s->host.words[w] ? "" : "  WRONG");
    }
    int differing = bytes_differing(s);
    if (s->equal) {
        printf("\nHistogram and words are those of a plain count on the host.\n");
    } else {
        printf("\nWRONG: %d of 256 byte counts differ from a plain count on the host; %" PRIu64
               " of %" PRIu64 " messages came.\n",
               differing, s->nic.messages, s->messages);
    }
}

int demo_report_text(const struct demo_report *r)
{
    printf("%s\n\n", r->machine);
    print_pingpong(&r->pingpong);
    print_scan(r->options, &r->scan);
    printf("\nDrawn: %s, %s\n", r->pingpong_svg, r->histogram_svg);
    if (fflush(stdout) != 0 || ferror(stdout)) {
        perror("pinwheel demo: cannot write");
        return -1;
    }
    return 0;
}

/* ---- JSON ---- */

static void json_pingpong(struct json *j, const struct demo_pingpong *p)
{
    json_open_object(j, "pingpong");
    json_number(j, "rounds", p->rounds);
    json_number(j, "iterations_per_round", p->iterations);
    json_unsigned(j, "bytes_checked", p->checked);
    json_unsigned(j, "bytes_wrong", p->wrong);
    if (p->wrong != 0) {
        json_string(j, "first_wrong", p->first_wrong);
    }
    json_open_array(j, "rows");
    for (int i = 0; i < p->rows; i++) {
        for (int way = 0; way < WAYS; way++) {
            const struct demo_time *t = &p->row[i].way[way];
            json_open_object(j, NULL);
            json_unsigned(j, "bytes", p->row[i].bytes);
            json_string(j, "way", demo_way_names[way]);
            json_real(j, "half_round_trip_us", t->median_ns / 1000);
            json_real(j, "quartile_1_us", t->low_ns / 1000);
            json_real(j, "quartile_3_us", t->high_ns / 1000);
            json_real(j, "ratio_to_cpu", ratio(&p->row[i], way));
            json_close_object(j);
        }
    }
    json_close_array(j);
    json_close_object(j);
}

static void json_scan(struct json *j, const struct demo_options *o, const struct demo_scan *s)
{
    json_open_object(j, "text");
    json_string(j, "file", o->file);
    json_unsigned(j, "bytes", s->bytes);
    json_unsigned(j, "message_bytes", s->message_size);
    json_unsigned(j, "messages", s->messages);
    json_unsigned(j, "packets", s->nic.packets);
    json_real(j, "seconds", s->seconds);
    json_bool(j, "equal", s->equal);
    json_open_array(j, "words");
    for (unsigned w = 0; w < o->filter.count; w++) {
        json_open_object(j, NULL);
        json_string(j, "word", o->words[w]);
        json_unsigned(j, "by_handlers", s->nic.words[w]);
        json_unsigned(j, "on_host", s->host.words[w]);
        json_close_object(j);
    }
    json_close_array(j);
    json_open_array(j, "histogram");
    for (int i = 0; i < 256; i++) {
        if (s->nic.bytes[i] != 0 || s->host.bytes[i] != 0) {
            json_open_object(j, NULL);
            json_number(j, "byte", i);
            json_unsigned(j, "by_handlers", s->nic.bytes[i]);
            json_unsigned(j, "on_host", s->host.bytes[i]);
            json_close_object(j);
        }
    }
    json_close_array(j);
    json_close_object(j);
}

int demo_report_json(const struct demo_report *r)
{
    struct json j = {.to = stdout};
    json_open_object(&j, NULL);
    json_string(&j, "version", PINWHEEL_VERSION);
    json_open_object(&j, "machine");
    json_number(&j, "processes", 2);
    json_number(&j, "cores_allowed", r->options->cores);
    json_string(&j, "core_list", r->options->core_list);
    json_unsigned(&j, "packet_bytes", r->packet);
    json_string(&j, "fabric", r->fabric);
    json_string(&j, "path", r->path);
    json_close_object(&j);
    json_pingpong(&j, &r->pingpong);
    json_scan(&j, r->options, &r->scan);
    json_open_array(&j, "plots");
    json_string(&j, NULL, r->pingpong_svg);
    json_string(&j, NULL, r->histogram_svg);
    json_close_array(&j);
    json_bool(&j, "verified", demo_all_right(r));
    json_close_object(&j);
    if (json_end(&j) != 0) {
        perror("pinwheel demo: cannot write");
        return -1;
    }
    return 0;
}
