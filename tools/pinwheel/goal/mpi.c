/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel goal trace`: turns the recording of an MPI program into a schedule. */
#include "commands.h"
#include "pinwheel/util/json.h"

#include "sim/mpi/goal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct trace_job {
    struct mpi_config config;
    struct mpi_summary summary;
    uint32_t recorded; /* ranks of the recording */
    uint32_t ranks;    /* ranks of the schedule; 0: as many as recorded */
    struct mpi_regular grids;
    const char *regular; /* the smaller recording, which shows that the program is regular */
    const char *input;
    const char *output;
    bool as_text;
    bool as_json;
    bool no_gaps;
};

static int list_algorithms(struct args *a, void *into)
{
    for (int i = 0; i < MPI_COLLECTIVES; i++) {
        printf("%-21s", mpi_collective_forms[i].name);
        for (int k = 0; k < MPI_ALGORITHMS_MOST && mpi_algorithms[i][k].name != NULL; k++) {
            printf("%s %s", k > 0 ? "," : "", mpi_algorithms[i][k].name);
        }
        putchar('\n');
    }
    printf("The first of each is the default.\n");
    return 0;
}

/* ---- Options ---- */

/* Reads a decimal, with at most 9 digits before the point and 9 behind it, as a fraction. */
static int take_scale(struct args *a, void *into)
{
    uint64_t *scale = into;
    const char *p = a->value;
    int digits = 0, places = -1;
    scale[0] = 0;
    scale[1] = 1;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && places < 0); p++) {
        if (*p == '.') {
            places = 0;
            continue;
        }
        digits += places < 0;
        places += places >= 0;
        scale[0] = scale[0] * 10 + (uint64_t)(*p - '0');
        scale[1] *= places >= 0 ? 10 : 1;
        if (digits > 9 || places > 9) {
            break;
        }
    }
    if (*p != '\0' || p == a->value || (digits == 0 && places <= 0)) {
        return args_bad(a, "must be like 2 or 0.25, at most 9 digits on each side");
    }
    return ARGS_GO_ON;
}

static int take_collectives(struct args *a, void *config)
{
    struct goal_error error;
    return mpi_choose(config, a->value, &error) == 0
               ? ARGS_GO_ON
               : args_error(a, "--collectives %s", error.text);
}

static int take_grids(struct args *a, void *grids)
{
    struct goal_error error;
    return mpi_regular_read(grids, a->value, &error) == 0 ? ARGS_GO_ON
                                                          : args_error(a, "--grids %s", error.text);
}

#define AT(member) ARGS_AT(struct trace_job, member)

static const struct args_option trace_options[] = {
    {"-o", "FILE", "where to write (needed; with --text default: standard output)", ARGS_TEXT,
     AT(output)},
    {"--text", NULL, "write text, not the binary format", ARGS_FLAG, AT(as_text)},
    {"--collectives", "C=ALG,...", "how to unroll collectives; ALG alone: all that have it", 0,
     AT(config), .take = take_collectives},
    {"--ranks", "N", "extrapolate to N ranks, a multiple of those recorded", ARGS_UNSIGNED,
     AT(ranks), 0, GOAL_ANY - 1},
    {"--regular", "FOLDER", "extrapolate as a grid: a smaller recording of the same program",
     ARGS_TEXT, AT(regular)},
    {"--grids", "G,G,G", "its ranks, those of this one and of the schedule, like 3x3,4x4,16x16", 0,
     AT(grids), .take = take_grids},
    {"--no-gaps", NULL, "leave out the time between calls", ARGS_FLAG, AT(no_gaps)},
    {"--gap-scale", "X", "multiply it by X, like 0.5 or 2", 0, AT(config.scale),
     .take = take_scale},
    {"--partial", NULL, "take a recording that ends early as far as it goes", ARGS_FLAG,
     AT(config.partial)},
    {"--json", NULL, "print the summary as JSON", ARGS_FLAG, AT(as_json)},
    {"--list", NULL, "print the collectives and their algorithms", .take = list_algorithms},
};

static int check_job(const struct args *a, const struct trace_job *job)
{
    if (job->ranks == 0 && args_given(a, "--ranks")) {
        return args_error(a, "--ranks 0: a schedule has at least 1");
    }
    if (job->input == NULL) {
        return args_error(a, "which FOLDER? one that `pinwheel goal record` has filled");
    }
    if (job->output == NULL && !job->as_text) {
        return args_error(a, "-o FILE is needed: where to write");
    }
    if (args_given(a, "--gap-scale") && job->no_gaps) {
        return args_error(a, "--gap-scale and --no-gaps exclude each other");
    }
    if ((job->regular != NULL) != args_given(a, "--grids")) {
        return args_error(a, "--regular FOLDER and --grids go together: which recording has which "
                             "grid");
    }
    if (job->regular != NULL && job->ranks != 0) {
        return args_error(a, "--ranks and --grids exclude each other: the last grid has the ranks");
    }
    if ((job->ranks != 0 || job->regular != NULL) && job->config.partial) {
        return args_error(a,
                          "%s and --partial exclude each other: what is cut off of one rank would "
                          "be missing in many",
                          job->regular != NULL ? "--grids" : "--ranks");
    }
    return 0;
}

/* ---- The work ---- */

/* A recording that is being turned into a schedule. */
struct turning {
    struct trace_job *job;
    struct mpi_trace trace;
    struct mpi_channels *channels;
};

static int write_schedule(void *context, int fd, struct goal_stream *text, struct goal_error *error)
{
    struct turning *t = context;
    return mpi_schedule(&t->trace, &t->job->config, t->channels, &t->job->summary, fd, text, error);
}

static int choose_blocks(struct trace_job *job, const struct mpi_trace *t, struct goal_error *error)
{
    job->recorded = t->ranks;
    job->ranks = job->ranks == 0 ? t->ranks : job->ranks;
    if (job->ranks % t->ranks != 0) {
        return goal_fail(error,
                         "--ranks %u: must be a multiple of the %u ranks recorded, as these are "
                         "repeated block by block",
                         job->ranks, t->ranks);
    }
    job->config.blocks = job->ranks / t->ranks;
    return 0;
}

/* Shows that the program is regular, by its smaller recording; then the schedule has a grid. */
static int prove(struct trace_job *job, struct mpi_trace *t, struct goal_error *error)
{
    struct mpi_trace small;
    struct mpi_summary ignored;
    if (mpi_open(&small, job->regular, error) != 0) {
        return -1;
    }
    int rc = mpi_survey(&small, &job->config, &ignored, error);
    rc = rc == 0 ? mpi_regular_check(&small, t, &job->grids, error) : rc;
    mpi_close(&small);
    job->config.regular = &job->grids;
    job->ranks = mpi_ranks(t, &job->config);
    return rc;
}

static int turn(struct trace_job *job, struct goal_error *error)
{
    struct turning t = {.job = job};
    if (mpi_open(&t.trace, job->input, error) != 0) {
        return -1;
    }
    int rc = choose_blocks(job, &t.trace, error);
    rc = rc == 0 ? mpi_survey(&t.trace, &job->config, &job->summary, error) : rc;
    rc = rc == 0 && job->regular != NULL ? prove(job, &t.trace, error) : rc;
    rc = rc == 0 ? mpi_balance(&t.trace, &job->config, &t.channels, error) : rc;
    rc = rc == 0 ? goal_write(job->output, job->as_text, write_schedule, &t, error) : rc;
    mpi_channels_free(t.channels);
    mpi_close(&t.trace);
    return rc;
}

/* ---- The summary ---- */

static void warn(const struct mpi_summary *s)
{
    for (int i = 0; i < s->name_count; i++) {
        const struct mpi_name *n = &s->names[i];
        fprintf(stderr,
                "pinwheel goal trace: calls of %s that %s, not in the schedule: %" PRIu64 "\n",
                n->name, n->failed ? "failed" : "are not understood", n->count);
    }
    if (s->incomplete > 0) {
        fprintf(
            stderr,
            "pinwheel goal trace: receives with a wildcard that never completed, so that nobody "
            "knows what they match, not in the schedule: %" PRIu64 "\n",
            s->incomplete);
    }
    if (s->cut > 0) {
        fprintf(stderr,
                "pinwheel goal trace: sends and receives without their other half, not in the "
                "schedule: %" PRIu64 "\n",
                s->cut);
    }
}

static void print_text(const struct trace_job *job, FILE *to)
{
    const struct mpi_summary *s = &job->summary;
    fprintf(to, "recorded      %u ranks, %" PRIu64 " calls", job->recorded, s->calls);
    fprintf(to, s->threads > 1 ? ", up to %" PRIu64 " threads a rank\n" : "\n", s->threads);
    fprintf(to, "messages      %" PRIu64 ", %" PRIu64 " bytes in all\n", s->messages, s->bytes);
    fprintf(to, "collectives  ");
    const char *comma = " ";
    for (int i = 0; i < MPI_COLLECTIVES; i++) {
        if (s->collectives[i] > 0) {
            fprintf(to, "%s%" PRIu64 " %s (%s)", comma, s->collectives[i],
                    mpi_collective_forms[i].name, mpi_algorithms[i][job->config.algorithm[i]].name);
            comma = ", ";
        }
    }
    fprintf(to, "%s\ncommunicators %" PRIu64 "\n", *comma == ' ' ? " none" : "", s->communicators);
    if (job->ranks != job->recorded) {
        fprintf(to, "EXTRAPOLATED  from %u ranks to %u, %s\n", job->recorded, job->ranks,
                job->regular != NULL ? "on a grid; regular at both recorded sizes"
                                     : "block by block, whose borders are not joined");
    }
    fprintf(to, "schedule      %u ranks, %" PRIu64 " operations, %" PRIu64 " ns computed\n",
            job->ranks, s->operations, s->gaps_ns);
}

static int print_json(const struct trace_job *job)
{
    struct json j = {.to = stdout};
    const struct mpi_summary *s = &job->summary;
    json_open_object(&j, NULL);
    json_unsigned(&j, "recorded_ranks", job->recorded);
    json_unsigned(&j, "calls", s->calls);
    json_unsigned(&j, "threads", s->threads);
    json_unsigned(&j, "messages", s->messages);
    json_unsigned(&j, "bytes", s->bytes);
    json_open_object(&j, "collectives");
    for (int i = 0; i < MPI_COLLECTIVES; i++) {
        if (s->collectives[i] > 0) {
            json_unsigned(&j, mpi_collective_forms[i].name, s->collectives[i]);
        }
    }
    json_close_object(&j);
    json_unsigned(&j, "communicators", s->communicators);
    json_unsigned(&j, "ranks", job->ranks);
    json_bool(&j, "extrapolated", job->ranks != job->recorded);
    json_bool(&j, "regular", job->regular != NULL);
    json_unsigned(&j, "operations", s->operations);
    json_unsigned(&j, "computed_ns", s->gaps_ns);
    json_open_object(&j, "not_understood");
    for (int i = 0; i < s->name_count; i++) {
        if (!s->names[i].failed) {
            json_unsigned(&j, s->names[i].name, s->names[i].count);
        }
    }
    json_close_object(&j);
    json_open_object(&j, "failed");
    for (int i = 0; i < s->name_count; i++) {
        if (s->names[i].failed) {
            json_unsigned(&j, s->names[i].name, s->names[i].count);
        }
    }
    json_close_object(&j);
    json_unsigned(&j, "incomplete_receives", s->incomplete);
    json_unsigned(&j, "unfinished_ranks", s->unfinished);
    json_unsigned(&j, "cut", s->cut);
    json_close_object(&j);
    return json_end(&j);
}

int goal_command_trace(int argc, char **argv)
{
    struct args a = {.command = "goal trace",
                     .operands = "FOLDER",
                     .summary = "Turns the recording of an MPI program, or a trace of liballprof, "
                                "into a schedule.\ndocs/goal-trace.md says how.",
                     ARGS_OPTIONS(trace_options)};
    struct trace_job job = {.config = {.scale = {1, 1}}};
    struct goal_error error;
    a.operand = &job.input;
    int status = args_parse(&a, argc, argv, &job);
    if (status != ARGS_GO_ON) {
        return status;
    }
    job.config.gaps = !job.no_gaps;
    if (check_job(&a, &job) != 0) {
        return 2;
    }
    if (turn(&job, &error) != 0) {
        fprintf(stderr, "pinwheel goal trace: %s\n", error.text);
        return 1;
    }
    warn(&job.summary);
    bool text_on_stdout = goal_writes_out(job.output, job.as_text);
    if (job.as_json && !text_on_stdout) {
        return print_json(&job) == 0 ? 0 : 1;
    }
    print_text(&job, text_on_stdout ? stderr : stdout);
    return 0;
}
