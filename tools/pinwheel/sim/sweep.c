/* SPDX-License-Identifier: BSD-3-Clause */
/* Several runs of one job, with other machines; see sweep.h. */
#include "sweep.h"

#include "base/number.h"
#include "compare.h"
#include "pinwheel/util/json.h"
#include "pinwheel/util/plot.h"
#include "profile.h"
#include "spans.h"
#include "stats.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS = 5 };

/* ---- options ---- */

int sweep_take_nics(struct args *a, void *sweep)
{
    struct sweep *s = sweep;
    static char *words; /* lasts, for the names */
    char error[PROFILE_ERROR], *rest;
    free(words);
    rest = words = strdup(a->value);
    s->nics = 0;
    while (words != NULL && rest != NULL) {
        if (s->nics == SWEEP_NICS) {
            return args_error(a, "--nic %s: takes %d machines at most", a->value, SWEEP_NICS);
        }
        const char *name = strsep(&rest, ",");
        if (profile_find(name, &s->nic[s->nics], error) != 0) {
            return args_error(a, "--nic %s", error);
        }
        s->nic_name[s->nics++] = name;
    }
    return words != NULL ? ARGS_GO_ON : args_error(a, "--nic: no memory");
}

static bool add_value(struct sweep *s, const char *text, char *error)
{
    if (s->values == SWEEP_VALUES) {
        snprintf(error, PROFILE_ERROR, "more than %d values", SWEEP_VALUES);
        return false;
    }
    return profile_parse(s->key, text, &s->value[s->values], error) == 0 && ++s->values != 0;
}

/* Puts values between the two that are there: `count` in all, or all whole ones for 0. */
static bool fill(struct sweep *s, uint64_t count, char *error)
{
    uint64_t first = s->value[0], last = s->value[1],
             way = last > first ? last - first : first - last;
    bool whole = profile_is_number(s->key);
    count = count != 0 ? count : whole ? way + 1 : STEPS;
    if (count < 2 || count > SWEEP_VALUES) {
        snprintf(error, PROFILE_ERROR, "%" PRIu64 " values: must be 2 to %d", count, SWEEP_VALUES);
        return false;
    }
    for (s->values = 0; s->values < count; s->values++) {
        uint64_t step = (uint64_t)((unsigned __int128)way * s->values / (count - 1));
        s->value[s->values] = last > first ? first + step : first - step;
    }
    return true;
}

int sweep_take(struct args *a, void *sweep)
{
    struct sweep *s = sweep;
    const char *is = strchr(a->value, '=');
    char words[512], error[PROFILE_ERROR] = "must be like hpus=1:16, dma_latency=50ns:250ns:5 or "
                                            "hpus=1,2,4";
    bool good =
        is != NULL && is - a->value < (ptrdiff_t)sizeof(s->key) && strlen(is) < sizeof(words);
    s->values = 0;
    if (good) {
        memcpy(s->key, a->value, (size_t)(is - a->value));
        s->key[is - a->value] = '\0';
        snprintf(words, sizeof(words), "%s", is + 1);
        bool range = strchr(words, ':') != NULL;
        char *rest = words, *count = NULL;
        for (unsigned i = 0; good && rest != NULL; i++) {
            char *word = strsep(&rest, range ? ":" : ",");
            if (range && i == 2) {
                count = word;
            } else {
                good = (!range || i < 2) && add_value(s, word, error);
            }
        }
        if (good && range) {
            uint64_t many = 0;
            bool read =
                count == NULL || (number_read_unsigned(count, SWEEP_VALUES, &many) && many > 1);
            if (!read) {
                snprintf(error, sizeof(error), "%s values: must be a number from 2 to %d", count,
                         SWEEP_VALUES);
            }
            good = read && s->values == 2 && fill(s, many, error);
        }
    }
    return good ? ARGS_GO_ON : args_error(a, "--sweep %s: %s", a->value, error);
}

/* ---- runs ---- */

/* What one run came to. */
struct point {
    uint64_t end; /* ps */
    struct stats_use use[STATS_RESOURCES];
    uint64_t shortage, gain;
    struct sim_stats *stats; /* all of it, to compare */
};

static unsigned values_of(const struct sweep *s)
{
    return s->values != 0 ? s->values : 1;
}

static void value_text(const struct sweep *s, unsigned value, char *text, size_t size)
{
    const char *unit = s->values != 0 ? profile_unit(s->key) : "";
    text[0] = '\0';
    if (s->values != 0) {
        snprintf(text, size, "%.9g%s%s", (double)s->value[value] * profile_scale(s->key),
                 unit[0] != '\0' ? " " : "", unit);
    }
}

static void say_run(const struct sweep *s, unsigned nic, unsigned value, char *text, size_t size)
{
    char is[64];
    value_text(s, value, is, sizeof(is));
    snprintf(text, size, "%s%s%s%s%s", s->nic_name[nic], is[0] != '\0' ? ", " : "",
             is[0] != '\0' ? s->key : "", is[0] != '\0' ? " " : "", is);
}

/* Runs the job once; what its ranks print on standard output is not wanted. */
static int run_one(struct sweep *s, unsigned nic, unsigned value, struct point *p)
{
    struct sim_machine m = s->nic[nic];
    struct coordinator_result r = {.stuck = false};
    char text[160];
    if (s->values != 0) {
        profile_store(s->key, s->value[value], &m);
    }
    fflush(stdout);
    int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3),
        null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDOUT_FILENO);
    int status = s->run(s->arg, &m, &r);
    dup2(out, STDOUT_FILENO);
    close(out);
    close(null);
    if (status == 0 && r.stats != NULL) {
        p->end = r.end;
        p->shortage = stats_shortage(r.stats);
        p->gain = stats_gain(r.stats);
        stats_use(r.stats, p->use);
        if (s->compare) {
            p->stats = r.stats;
            r.stats = NULL;
        }
    } else {
        say_run(s, nic, value, text, sizeof(text));
        fprintf(stderr, "pinwheel sim: that was the run of %s\n", text);
        status = status != 0 ? status : 1;
    }
    free(r.stats);
    spans_free(r.spans);
    return status;
}

/* ---- what is printed ---- */

static const char *most(const struct point *p, double *part)
{
    unsigned best = 0;
    for (unsigned i = 1; i < STATS_RESOURCES; i++) {
        best = p->use[i].part > p->use[best].part ? i : best;
    }
    *part = p->use[best].part;
    return stats_resource((enum stats_resource)best);
}

static void print_table(const struct sweep *s, const struct point *points)
{
    printf("%16s", s->values != 0 ? s->key : "");
    for (unsigned nic = 0; nic < s->nics; nic++) {
        printf(" %16s (us) %22s", s->nic_name[nic], "taken most");
    }
    printf("\n");
    for (unsigned value = 0; value < values_of(s); value++) {
        char is[64];
        value_text(s, value, is, sizeof(is));
        printf("%16s", is);
        for (unsigned nic = 0; nic < s->nics; nic++) {
            const struct point *p = &points[nic * values_of(s) + value];
            double part;
            const char *what = most(p, &part);
            printf(" %21.5f %14s %5.1f %%", (double)p->end / 1e6, what, 100 * part);
        }
        printf("\n");
    }
}

static int print_json(const struct sweep *s, const struct point *points)
{
    struct json j = {.to = stdout};
    json_open_array(&j, NULL);
    for (unsigned i = 0; i < s->nics * values_of(s); i++) {
        json_open_object(&j, NULL);
        json_string(&j, "nic", s->nic_name[i / values_of(s)]);
        if (s->values != 0) {
            json_unsigned(&j, s->key, s->value[i % values_of(s)]);
        }
        json_unsigned(&j, "time_ps", points[i].end);
        json_unsigned(&j, "shortage_ps", points[i].shortage);
        json_unsigned(&j, "gain_ps", points[i].gain);
        for (unsigned k = 0; k < STATS_RESOURCES; k++) {
            json_real(&j, stats_resource((enum stats_resource)k), points[i].use[k].part);
        }
        json_close_object(&j);
    }
    json_close_array(&j);
    return json_end(&j);
}

/* ---- the picture ---- */

enum { WIDTH = 860, HEIGHT = 520, LEFT = 96, RIGHT = 830, TOP = 90, BOTTOM = 440 };

/* What is varied, with its unit if it has one. */
static void axis_name(const struct sweep *s, char *text, size_t size)
{
    const char *unit = s->values != 0 ? profile_unit(s->key) : "";
    snprintf(text, size, unit[0] != '\0' ? "%s (%s)" : "%s", s->key, unit);
}

/* The head of the data, and a line of them. */
static void draw_head(struct plot *p, const char *name)
{
    char columns[256] = "";
    size_t at = 0;
    for (unsigned k = 0; k < STATS_RESOURCES; k++) {
        at += (size_t)snprintf(columns + at, sizeof(columns) - at, ",%s",
                               stats_resource((enum stats_resource)k));
    }
    plot_data(p, "nic,%s,time (ps)%s", name, columns);
}

static void draw_data(struct plot *p, const char *nic, double x, const struct point *at)
{
    char parts[256] = "";
    size_t length = 0;
    for (unsigned k = 0; k < STATS_RESOURCES; k++) {
        length +=
            (size_t)snprintf(parts + length, sizeof(parts) - length, ",%.6f", at->use[k].part);
    }
    plot_name(p, nic);
    plot_data(p, "%.9g,%" PRIu64 "%s", x, at->end, parts);
}

/* A machine is a line, over the values, or if none is varied over the machines' places. */
static int draw(const struct sweep *s, const struct point *points)
{
    double x[SWEEP_VALUES], y[SWEEP_VALUES], highest = 0;
    double scale = s->values != 0 ? profile_scale(s->key) : 1;
    double low = s->values != 0 ? (double)s->value[0] * scale : 0;
    double high = s->values != 0 ? (double)s->value[s->values - 1] * scale : 1;
    struct plot p;
    char name[64];
    axis_name(s, name, sizeof(name));
    for (unsigned i = 0; i < s->nics * values_of(s); i++) {
        highest = (double)points[i].end / 1e6 > highest ? (double)points[i].end / 1e6 : highest;
    }
    struct plot_panel panel = {
        LEFT,
        RIGHT,
        TOP,
        BOTTOM,
        {.low = low < high ? low : high,
         .high = low < high ? high : low + (low == high),
         .at_low = LEFT + 14,
         .at_high = RIGHT - 14,
         .unit = "",
         .scale = 1},
        {.high = highest * 1.05, .at_low = BOTTOM, .at_high = TOP, .unit = "us", .scale = 1}};
    if (plot_open(&p, s->svg, WIDTH, HEIGHT, "Sweep of a simulated job", s->key,
                  ".title { font-size: 18px }\n") != 0) {
        return -1;
    }
    svg_text(&p.svg, "title", (struct svg_point){24, 36}, "Time of a job over %s",
             s->values != 0 ? s->key : "machines");
    plot_panel(&p, &panel);
    plot_ticks_y(&p, &panel);
    plot_name_y(&p, &panel, "time (us)");
    if (s->values != 0) {
        plot_ticks_x(&p, &panel);
        plot_name_x(&p, &panel, name);
    }
    draw_head(&p, name);
    for (unsigned nic = 0; nic < s->nics; nic++) {
        char class[16], mark[32];
        snprintf(class, sizeof(class), "c%u", nic);
        snprintf(mark, sizeof(mark), "mark c%u-fill", nic);
        for (unsigned i = 0; i < values_of(s); i++) {
            const struct point *at = &points[nic * values_of(s) + i];
            x[i] = s->values != 0 ? (double)s->value[i] * scale : (nic + 0.5) / s->nics;
            y[i] = (double)at->end / 1e6;
            svg_circle(&p.svg, mark, plot_point(&panel, x[i], y[i]), 4);
            draw_data(&p, s->nic_name[nic], s->values != 0 ? x[i] : 0, at);
        }
        plot_line(&p, &panel, class, x, y, values_of(s));
        plot_key(&p, class, (struct svg_point){LEFT + 150.0 * nic, 76}, s->nic_name[nic]);
    }
    return plot_close(&p);
}

/* What differs between the two runs. */
static int compare_points(const struct sweep *s, const struct point *points)
{
    char names[2][96];
    for (unsigned i = 0; i < 2; i++) {
        say_run(s, i / values_of(s), i % values_of(s), names[i], sizeof(names[i]));
    }
    return compare_stats(names[0], points[0].stats, names[1], points[1].stats, s->json);
}

int sweep_run(struct sweep *s)
{
    unsigned all = s->nics * values_of(s);
    struct point *points = calloc(all, sizeof(*points));
    int status = points != NULL ? 0 : 1;
    for (unsigned i = 0; i < all && status == 0; i++) {
        if (isatty(STDERR_FILENO) == 1) {
            fprintf(stderr, "\rrun %u of %u ", i + 1, all);
        }
        status = run_one(s, i / values_of(s), i % values_of(s), &points[i]);
    }
    if (isatty(STDERR_FILENO) == 1) {
        fputs("\r\033[K", stderr);
    }
    if (status == 0 && s->compare) {
        status = compare_points(s, points);
    } else if (status == 0 && s->json) {
        status = print_json(s, points) != 0;
    } else if (status == 0) {
        print_table(s, points);
    }
    if (status == 0 && s->svg != NULL && draw(s, points) != 0) {
        fprintf(stderr, "pinwheel sim: --svg %s: %s\n", s->svg, strerror(errno));
        status = 1;
    }
    for (unsigned i = 0; points != NULL && i < all; i++) {
        free(points[i].stats);
    }
    free(points);
    return status;
}
