/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel reproduce`: runs figures of papers under `pinwheel sim`, each value a job of its own,
 * and holds them against what is expected and what the paper says.
 */
#include "reproduce.h"

#include "pinwheel/commands.h"
#include "pinwheel/util/args.h"
#include "pinwheel/util/json.h"
#include "pinwheel/util/program.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

struct reproduce {
    const char *wanted, *out, *programs;
    bool full, json, list;
    char folder[PATH_MAX]; /* of the programs */
};

/* ---- one value ---- */

static bool find_programs(struct reproduce *r, const struct figure *f)
{
    char name[PATH_MAX];
    if (r->programs != NULL) {
        return realpath(r->programs, r->folder) != NULL;
    }
    bool found = program_beside(f->alone ? "bench" : "examples", f->program, name, sizeof(name));
    if (found) {
        *strrchr(name, '/') = '\0';
        snprintf(r->folder, sizeof(r->folder), "%s", name);
    }
    return found;
}

static const char *unit_of(const struct figure *f)
{
    return f->unit != NULL ? f->unit : "ps";
}

/* Reads the number before the last unit of what a program has printed. */
static bool read_value(FILE *from, const struct figure *f, uint64_t *ps)
{
    char line[512], last[32];
    bool found = false;
    snprintf(last, sizeof(last), " %s\n", unit_of(f));
    while (fgets(line, sizeof(line), from) != NULL) {
        char *end = strstr(line, last);
        if (f->alone && strcmp(line, "fails\n") == 0) {
            *ps = FIGURE_FAILS;
            found = true;
        }
        while (end != NULL && end > line && end[-1] >= '0' && end[-1] <= '9') {
            end--;
        }
        if (end != NULL && *end >= '0' && *end <= '9') {
            *ps = strtoull(end, NULL, 10);
            found = true;
        }
    }
    return found;
}

static const char *size_of(const struct figure *f)
{
    return f->size != NULL ? f->size : "bytes";
}

/* Runs the job of a value; false after a line that says why there is none. */
static bool run_value(const struct reproduce *r, const struct figure *f,
                      const struct figure_row *row, int way, uint64_t *ps)
{
    char ranks[16], bytes[16], program[PATH_MAX + 32];
    int ends[2], status = -1;
    pid_t child;
    posix_spawn_file_actions_t actions;
    snprintf(ranks, sizeof(ranks), "%" PRIu32, row->ranks);
    snprintf(bytes, sizeof(bytes), "%" PRIu32, row->bytes);
    snprintf(program, sizeof(program), "%s/%s", r->folder, f->program);
    char *simulated[] = {"pinwheel",
                         "sim",
                         "--quiet",
                         "-n",
                         ranks,
                         "--nic",
                         (char *)row->nic,
                         "--handler",
                         "10ns",
                         program,
                         bytes,
                         (char *)f->way[way],
                         NULL};
    char *alone[] = {program, (char *)f->name, ranks, bytes, (char *)f->way[way], NULL};
    if (pipe2(ends, O_CLOEXEC) != 0) {
        fprintf(stderr, "pinwheel reproduce: pipe: %s\n", strerror(errno));
        return false;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int rc = posix_spawn(&child, f->alone ? program : "/proc/self/exe", &actions, NULL,
                         f->alone ? alone : simulated, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    FILE *from = fdopen(ends[0], "re");
    bool found = rc == 0 && from != NULL && read_value(from, f, ps);
    if (from != NULL) {
        fclose(from);
    } else {
        close(ends[0]);
    }
    while (rc == 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    found = found && status == 0;
    if (!found) {
        const char *what = rc != 0                                         ? strerror(rc)
                           : WIFEXITED(status) && WEXITSTATUS(status) == 0 ? "prints none"
                                                                           : "fails";
        fprintf(stderr, "pinwheel reproduce: no %s of figure %s, %s, %u %s, %u ranks: `",
                f->unit != NULL ? f->unit : "time", f->name, f->way[way], row->bytes, size_of(f),
                row->ranks);
        for (char **word = f->alone ? alone : simulated; *word != NULL; word++) {
            fprintf(stderr, "%s%s", *word, word[1] != NULL ? " " : "` ");
        }
        fprintf(stderr, "%s\n", what);
    }
    return found;
}

/* ---- a figure ---- */

static double off(uint64_t found, uint64_t expected)
{
    if (expected == FIGURE_OPEN || found == expected) {
        return 0;
    }
    if (expected == FIGURE_FAILS || found == FIGURE_FAILS) {
        return 1;
    }
    return (double)found / (double)expected - 1;
}

static void judge(struct found *f, size_t row, int way)
{
    uint64_t expected = f->figure->rows[row].expected[way];
    double by = off(f->time[row][way], expected);
    if (expected == FIGURE_OPEN) {
        return; /* the anchors say whether it is right */
    }
    f->values++;
    f->misses += fabs(by) > FIGURE_TOLERANCE;
    if (f->values == 1 || fabs(by) > fabs(f->worst)) {
        f->worst = by;
        f->worst_row = row;
        f->worst_way = way;
    }
}

static bool run_figure(const struct reproduce *r, struct found *f, bool *ran)
{
    const struct figure *fig = f->figure;
    bool terminal = isatty(STDERR_FILENO) == 1;
    size_t all = 0, done = 0;
    for (size_t row = 0; row < fig->row_count; row++) {
        all += r->full || fig->rows[row].quick ? (size_t)fig->ways : 0;
    }
    for (size_t row = 0; row < fig->row_count; row++) {
        for (int way = 0; way < fig->ways && (r->full || fig->rows[row].quick); way++) {
            if (terminal) {
                fprintf(stderr, "\rfigure %s: %zu of %zu ", fig->name, ++done, all);
            }
            if (!run_value(r, fig, &fig->rows[row], way, &f->time[row][way])) {
                return false;
            }
            judge(f, row, way);
            ran[row] = true;
        }
    }
    if (terminal) {
        fputs("\r\033[K", stderr);
    }
    return true;
}

/* The values of an anchor's row, or of the row with other bytes; NULL: it was not run. */
static const uint64_t *anchor_row(const struct found *f, const struct figure_anchor *a,
                                  uint32_t size)
{
    for (size_t i = 0; i < f->figure->row_count; i++) {
        const struct figure_row *row = &f->figure->rows[i];
        if (f->ran[i] && strcmp(row->nic, a->nic) == 0 && row->ranks == a->ranks &&
            row->bytes == size) {
            return f->time[i];
        }
    }
    return NULL;
}

/* What an anchor's value is; NAN: its row was not run. */
static double anchor_value(const struct found *f, const struct figure_anchor *a)
{
    bool rows = a->kind == ANCHOR_GROWS || a->kind == ANCHOR_SLOWER;
    const uint64_t *row = anchor_row(f, a, a->bytes);
    const uint64_t *other = rows ? anchor_row(f, a, a->base) : row;
    if (row == NULL || other == NULL) {
        return NAN;
    }
    double way = (double)row[a->way], than = (double)other[rows ? a->way : a->than];
    return rows ? way / than - 1 : a->kind == ANCHOR_LESS ? 1 - way / than : than / way - 1;
}

static const char *anchor_verdict(double value, const struct figure_anchor *a)
{
    double tolerance = a->tolerance > 0 ? a->tolerance : ANCHOR_TOLERANCE;
    bool holds =
        a->kind == ANCHOR_SLOWER ? value >= a->wanted : fabs(value - a->wanted) <= tolerance;
    return isnan(value) ? "not run" : holds ? "reproduced" : "MISSED";
}

static bool reproduced(const struct found *f)
{
    bool all = f->misses == 0;
    for (size_t i = 0; i < f->figure->anchor_count; i++) {
        const struct figure_anchor *a = &f->figure->anchors[i];
        all &= strcmp(anchor_verdict(anchor_value(f, a), a), "MISSED") != 0;
    }
    return all;
}

/* ---- what is printed ---- */

static void print_value(const struct figure *f, uint64_t value)
{
    if (value == FIGURE_FAILS || value == FIGURE_OPEN) {
        printf(" %10s", value == FIGURE_FAILS ? "fails" : "-");
    } else {
        printf(" %10.2f", (double)value / (f->unit != NULL ? 1 : 1e3));
    }
}

static void print_table(const struct found *f)
{
    const struct figure *fig = f->figure;
    printf("Figure %s of %s: %s (%s: found, expected, off)\n%-11s %6s %8s", fig->name, fig->paper,
           fig->title, fig->unit != NULL ? fig->unit : "ns", "nic", "ranks", size_of(fig));
    for (int way = 0; way < fig->ways; way++) {
        printf(" %30s", fig->way[way]);
    }
    printf("\n");
    for (size_t i = 0; i < fig->row_count; i++) {
        const struct figure_row *row = &fig->rows[i];
        if (!f->ran[i]) {
            continue;
        }
        printf("%-11s %6" PRIu32 " %8" PRIu32, row->nic, row->ranks, row->bytes);
        for (int way = 0; way < fig->ways; way++) {
            double by = off(f->time[i][way], row->expected[way]);
            print_value(fig, f->time[i][way]);
            print_value(fig, row->expected[way]);
            if (row->expected[way] == FIGURE_OPEN) {
                printf("%9s", "");
            } else {
                printf(" %+5.1f %%%c", 100 * by, fabs(by) > FIGURE_TOLERANCE ? '*' : ' ');
            }
        }
        printf("\n");
    }
}

static void print_verdict(const struct found *f)
{
    const struct figure *fig = f->figure;
    for (size_t i = 0; i < fig->anchor_count; i++) {
        const struct figure_anchor *a = &fig->anchors[i];
        double value = anchor_value(f, a);
        printf("anchor: \"%s\" (%s), here %s, %" PRIu32 " ranks, %" PRIu32 " %s: ", a->says,
               a->source, a->nic, a->ranks, a->bytes, fig->size != NULL ? fig->size : "B");
        if (isnan(value)) {
            printf("not run, --full does\n");
        } else {
            printf("%.1f %%: %s\n", 100 * value, anchor_verdict(value, a));
        }
    }
    const struct figure_row *worst = &fig->rows[f->worst_row];
    printf(
        "figure %s: %s: %zu of %zu values within %.0f %%, the farthest %+.1f %% (%s, %s, %" PRIu32
        " ranks, %" PRIu32 " %s)%s%s\n\n",
        fig->name, reproduced(f) ? "reproduced" : "MISSED", f->values - f->misses, f->values,
        100 * FIGURE_TOLERANCE, 100 * f->worst, fig->way[f->worst_way], worst->nic, worst->ranks,
        worst->bytes, fig->size != NULL ? fig->size : "B",
        !reproduced(f) && fig->why != NULL ? "; " : "",
        !reproduced(f) && fig->why != NULL ? fig->why : "");
}

static void print_json(struct json *j, const struct found *f)
{
    const struct figure *fig = f->figure;
    json_open_object(j, NULL);
    json_string(j, "figure", fig->name);
    json_string(j, "paper", fig->paper);
    json_bool(j, "reproduced", reproduced(f));
    json_real(j, "worst", f->worst);
    json_open_array(j, "values");
    for (size_t i = 0; i < fig->row_count; i++) {
        for (int way = 0; f->ran[i] && way < fig->ways; way++) {
            json_open_object(j, NULL);
            json_string(j, "nic", fig->rows[i].nic);
            json_unsigned(j, "ranks", fig->rows[i].ranks);
            json_unsigned(j, "bytes", fig->rows[i].bytes);
            json_string(j, "way", fig->way[way]);
            json_unsigned(j, fig->unit != NULL ? "found" : "found_ps", f->time[i][way]);
            json_unsigned(j, fig->unit != NULL ? "expected" : "expected_ps",
                          fig->rows[i].expected[way]);
            json_close_object(j);
        }
    }
    json_close_array(j);
    json_open_array(j, "anchors");
    for (size_t i = 0; i < fig->anchor_count; i++) {
        const struct figure_anchor *a = &fig->anchors[i];
        double value = anchor_value(f, a);
        json_open_object(j, NULL);
        json_string(j, "says", a->says);
        json_string(j, "source", a->source);
        json_real(j, "wanted", a->wanted);
        json_real(j, "found", value);
        json_string(j, "verdict", anchor_verdict(value, a));
        json_close_object(j);
    }
    json_close_array(j);
    json_close_object(j);
}

/* ---- the command ---- */

static int reproduce_one(struct reproduce *r, const struct figure *fig, struct json *j)
{
    if (!find_programs(r, fig)) {
        fprintf(stderr,
                "pinwheel reproduce: the program %s is not where Pinwheel was built or installed: "
                "name its folder by --programs DIR\n",
                fig->program);
        return 2;
    }
    bool *ran = calloc(fig->row_count, sizeof(*ran));
    struct found f = {.figure = fig, .ran = ran};
    f.time = calloc(fig->row_count, sizeof(*f.time));
    int status = 1;
    if (ran == NULL || f.time == NULL) {
        fprintf(stderr, "pinwheel reproduce: no memory for figure %s\n", fig->name);
    } else if (run_figure(r, &f, ran)) {
        status = reproduced(&f) ? 0 : 1;
        if (r->json) {
            print_json(j, &f);
        } else {
            print_table(&f);
            print_verdict(&f);
        }
        if (r->out != NULL && reproduce_draw(&f, r->out) != 0) {
            fprintf(stderr, "pinwheel reproduce: --out %s: %s\n", r->out, strerror(errno));
            status = 1;
        }
    }
    free(f.time);
    free(ran);
    return status;
}

static bool is_wanted(const struct reproduce *r, const struct figure *f)
{
    return strcmp(r->wanted, "all") == 0 || strcmp(r->wanted, f->name) == 0 ||
           strcmp(r->wanted, f->paper) == 0;
}

static int list(void)
{
    for (size_t i = 0; i < figure_count; i++) {
        printf("%-5s %-12s %s\n", figures[i].name, figures[i].paper, figures[i].title);
    }
    return 0;
}

#define AT(member) ARGS_AT(struct reproduce, member)

static const struct args_option options[] = {
    {"--full", NULL, "all sizes and numbers of ranks, which takes minutes", ARGS_FLAG, AT(full)},
    {"--out", "DIR", "draw the figures there (SVG), with their data beside them (CSV)", ARGS_TEXT,
     AT(out)},
    {"--programs", "DIR", "where the programs are (default: where Pinwheel was built, installed)",
     ARGS_TEXT, AT(programs)},
    {"--json", NULL, "print JSON", ARGS_FLAG, AT(json)},
    {"--list", NULL, "print which figures there are", ARGS_FLAG, AT(list)},
};

int command_reproduce(int argc, char **argv)
{
    struct reproduce r = {.full = false};
    struct args a = {
        .command = "reproduce",
        .operands = "FIGURE|PAPER|all",
        .summary =
            "Runs figures of papers under `pinwheel sim`, and holds each value against what\n"
            "is expected, and against what the paper says. The exit status is 0 if all are\n"
            "reproduced.",
        .operand = &r.wanted,
        ARGS_OPTIONS(options)};
    int status = args_parse(&a, argc, argv, &r), any = 0;
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (r.list) {
        return list();
    }
    if (r.wanted == NULL) {
        return args_error(&a, "no FIGURE given: one of `pinwheel reproduce --list`, or all");
    }
    if (r.out != NULL && mkdir(r.out, 0777) != 0 && errno != EEXIST) {
        return args_error(&a, "--out %s: %s", r.out, strerror(errno));
    }
    struct json j = {.to = stdout};
    if (r.json) {
        json_open_array(&j, NULL);
    }
    status = 0;
    for (size_t i = 0; i < figure_count; i++) {
        if (is_wanted(&r, &figures[i])) {
            any = 1;
            status |= reproduce_one(&r, &figures[i], &j);
        }
    }
    if (r.json) {
        json_close_array(&j);
        status |= json_end(&j) != 0;
    }
    return any ? status
               : args_error(&a, "%s is no figure: `pinwheel reproduce --list` prints them",
                            r.wanted);
}
