/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel reproduce`: runs figures of papers, each value a job of its own, and holds them against
 * what is expected and what the paper says.
 */
#include "reproduce.h"
#include "value.h"

#include "pinwheel/commands.h"
#include "pinwheel/util/args.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct reproduce {
    const char *wanted, *out, *programs;
    bool full, json, list;
    char folder[PATH_MAX]; /* of the programs */
};

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
            enum value_end end =
                value_run(r->folder, fig, &fig->rows[row], way, &f->time[row][way]);
            if (end == VALUE_NONE) {
                return false;
            }
            if (end == VALUE_NOT_HERE) {
                f->missing++;
                break;
            }
            reproduce_judge(f, row, way);
            f->rows += !ran[row];
            ran[row] = true;
        }
    }
    if (terminal) {
        fputs("\r\033[K", stderr);
    }
    return true;
}

/* ---- the command ---- */

static int reproduce_one(struct reproduce *r, const struct figure *fig, struct json *j)
{
    if (!value_find_programs(r->programs, fig, r->folder)) {
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
        /* Of all figures one may be skipped, loudly; who asks for one wants it. */
        bool skipped = f.rows == 0 && strcmp(r->wanted, fig->name) == 0;
        status = reproduce_succeeds(&f) && !skipped ? 0 : 1;
        if (r->json) {
            reproduce_print_json(j, &f);
        } else {
            reproduce_print_table(&f);
            reproduce_print_verdict(&f);
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
        printf("%-5s %-12s %s\n", figures[i]->name, figures[i]->paper, figures[i]->title);
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
        if (is_wanted(&r, figures[i])) {
            any = 1;
            status |= reproduce_one(&r, figures[i], &j);
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
