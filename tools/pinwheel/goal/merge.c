/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel goal merge`: merges the schedules of several jobs into one for all their nodes. */
#include "commands.h"

#include "sim/goal/merge.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct merge_job {
    struct args args;
    const char **paths;
    struct goal *parts; /* the schedules, of which the first `opened` are open */
    uint32_t count, opened;
    const char *output, *jobs_file, *placement, *start;
    bool as_text, with_side, compat;
    uint64_t seed, nodes;
    struct goal_merge merge;
};

/* ---- Options ---- */

#define AT(member) ARGS_AT(struct merge_job, member)

static const struct args_option merge_options[] = {
    {"-o", "FILE", "where to write (needed; with --text default: standard output)", ARGS_TEXT,
     AT(output)},
    {"--jobs", "FILE", "also write which nodes each job has, for goal run --jobs", ARGS_TEXT,
     AT(jobs_file)},
    {"--placement", "packed|interleaved|random|FILE",
     "nodes of the jobs: one job after the other (the default), in turn, by lot, or a line for "
     "each job, such as 0-7,12",
     ARGS_TEXT, AT(placement)},
    {"--seed", "N", "of the random placement (1)", ARGS_UNSIGNED, AT(seed)},
    {"--nodes", "N", "nodes there are (as many as needed); the others are idle", ARGS_UNSIGNED,
     AT(nodes), 0, GOAL_ANY - 1},
    {"--start", "T[,T]...", "when each job begins, as a calc counts time (0); a job not named: 0",
     ARGS_TEXT, AT(start)},
    {"--share", NULL, "jobs of a placement FILE may share nodes: each has cpus and tags of its own",
     ARGS_FLAG, AT(merge.share)},
    {"--text", NULL, "write text, not the binary format", ARGS_FLAG, AT(as_text)},
    {"-g", NULL, "also write FILE.labels: labels and lines of the jobs, for reports of a run",
     ARGS_FLAG, AT(with_side)},
    {"--compat", NULL, "of equal labels in a text keep the first, as LogGOPSim's compiler does",
     ARGS_FLAG, AT(compat)},
};

static int take_schedule(struct args *a, void *into)
{
    struct merge_job *job = into;
    job->paths[job->count++] = a->value;
    return ARGS_GO_ON;
}

static bool placed_by_file(const struct merge_job *job)
{
    return strcmp(job->placement, "packed") != 0 && strcmp(job->placement, "interleaved") != 0 &&
           strcmp(job->placement, "random") != 0;
}

static int check_options(struct merge_job *job)
{
    const struct args *a = &job->args;
    if (job->count == 0) {
        return args_error(a, "which schedules? pinwheel goal merge -o FILE SCHEDULE SCHEDULE...");
    }
    if (job->output == NULL && !job->as_text) {
        return args_error(a, "-o FILE is needed: where to write");
    }
    if (job->output != NULL && job->jobs_file != NULL && strcmp(job->output, job->jobs_file) == 0) {
        return args_error(a, "--jobs %s: is the file of the schedule", job->jobs_file);
    }
    if (job->with_side && job->as_text) {
        return args_error(a,
                          "-g: labels and lines stand beside a binary schedule; --text has none");
    }
    if (args_given(a, "--seed") && strcmp(job->placement, "random") != 0) {
        return args_error(a, "--seed: nothing is drawn by lot without --placement random");
    }
    if (job->merge.share && !placed_by_file(job)) {
        return args_error(a,
                          "--share: --placement %s gives each job nodes of its own; a FILE may "
                          "name some twice",
                          job->placement);
    }
    return 0;
}

static int parse(struct merge_job *job, int argc, char **argv)
{
    job->args = (struct args){
        .command = "goal merge",
        .operands = "SCHEDULE...",
        .summary = "Makes one schedule of those of several jobs, text or binary, that run on one "
                   "machine.\nRanks of the new one are nodes; jobs never match each other.",
        .take_operand = take_schedule,
        ARGS_OPTIONS(merge_options),
    };
    job->placement = "packed";
    job->seed = 1;
    job->paths = calloc((size_t)argc, sizeof(*job->paths));
    if (job->paths == NULL) {
        return args_error(&job->args, "no memory");
    }
    int status = args_parse(&job->args, argc, argv, job);
    return status == ARGS_GO_ON ? check_options(job) : status == 0 ? -1 : status;
}

/* ---- The jobs ---- */

static int open_parts(struct merge_job *job, struct goal_error *error)
{
    job->parts = calloc(job->count, sizeof(*job->parts));
    if (job->parts == NULL) {
        return goal_fail(error, "no memory");
    }
    for (; job->opened < job->count; job->opened++) {
        if (goal_open(&job->parts[job->opened], job->paths[job->opened],
                      job->compat ? GOAL_COMPAT : 0, error) != 0) {
            return -1;
        }
    }
    job->merge.parts = job->parts;
    return 0;
}

/* Names each job by its schedule's file, unless its line has a name. */
static int name_jobs(struct merge_job *job, struct goal_error *error)
{
    for (uint32_t i = 0; i < job->count; i++) {
        struct goal_job *j = &job->merge.jobs.job[i];
        if (j->name == NULL && (j->name = strdup(job->paths[i])) == NULL) {
            return goal_fail(error, "no memory");
        }
        for (char *c = j->name; *c != '\0'; c++) {
            *c = (unsigned char)*c < ' ' ? '?' : *c; /* the name becomes part of a line */
        }
    }
    return 0;
}

static int read_starts(struct merge_job *job, struct goal_error *error)
{
    const char *p = job->start;
    for (uint32_t i = 0; p != NULL; i++) {
        char *end;
        errno = 0;
        uint64_t start = *p >= '0' && *p <= '9' ? strtoull(p, &end, 10) : 0;
        if (*p < '0' || *p > '9' || errno != 0 || (*end != ',' && *end != '\0')) {
            return goal_fail(error, "--start %s: must be whole numbers, such as 0,5000",
                             job->start);
        }
        if (i >= job->count) {
            return goal_fail(error, "--start %s: there are only %u jobs", job->start, job->count);
        }
        job->merge.jobs.job[i].start = start;
        p = *end == ',' ? end + 1 : NULL;
    }
    return 0;
}

static int read_placement(struct merge_job *job, struct goal_error *error)
{
    struct goal_merge *m = &job->merge;
    uint32_t most = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        most = job->parts[i].ranks > most ? job->parts[i].ranks : most;
    }
    if (goal_jobs_read(&m->jobs, job->placement, most, error) != 0) {
        return -1;
    }
    if (m->jobs.count != job->count) {
        return goal_fail(error, "%s: has nodes for %u jobs; there are %u", job->placement,
                         m->jobs.count, job->count);
    }
    for (uint32_t i = 0; i < job->count; i++) {
        m->jobs.job[i].has_cpus = false; /* goal_merge_check() assigns them again */
    }
    m->nodes = job->nodes > 0 ? m->nodes : goal_jobs_highest(&m->jobs) + 1;
    return 0;
}

static int place(struct merge_job *job, struct goal_error *error)
{
    struct goal_merge *m = &job->merge;
    m->nodes = (uint32_t)job->nodes;
    int rc;
    if (placed_by_file(job)) {
        rc = read_placement(job, error);
    } else {
        enum goal_spread how = strcmp(job->placement, "packed") == 0        ? GOAL_PACKED
                               : strcmp(job->placement, "interleaved") == 0 ? GOAL_INTERLEAVED
                                                                            : GOAL_SCATTERED;
        rc = goal_merge_spread(m, job->count, how, job->seed, error);
    }
    rc = rc == 0 ? read_starts(job, error) : rc;
    rc = rc == 0 ? name_jobs(job, error) : rc;
    return rc == 0 ? goal_merge_check(m, error) : rc;
}

/* ---- Files ---- */

static int write_text(void *context, int fd, struct goal_stream *text, struct goal_error *error)
{
    return goal_merge_write(context, fd, -1, text, error);
}

static int write_jobs(void *context, int fd, struct goal_stream *text, struct goal_error *error)
{
    goal_jobs_write(context, text);
    return 0;
}

static int open_labels(const struct merge_job *job, struct goal_output *labels,
                       struct goal_error *error)
{
    char *path = goal_side_path(job->output);
    int rc = path != NULL ? goal_output_open(labels, path, error) : goal_fail(error, "no memory");
    free(path);
    return rc;
}

/* Writes all files; each appears only if all are complete. */
static int write_files(struct merge_job *job, struct goal_error *error)
{
    struct goal_output o = {.fd = -1}, side = {.fd = -1}, labels = {.fd = -1};
    bool standard = goal_writes_out(job->output, job->as_text);
    int rc = standard ? 0 : goal_output_open(&o, job->output, error);
    if (rc == 0 && job->jobs_file != NULL) {
        rc = goal_output_open(&side, job->jobs_file, error);
        rc = rc == 0 ? goal_write_text(side.fd, write_jobs, &job->merge.jobs, error) : rc;
    }
    rc = rc == 0 && job->with_side ? open_labels(job, &labels, error) : rc;
    if (rc == 0) {
        int fd = standard ? STDOUT_FILENO : o.fd;
        rc = job->as_text ? goal_write_text(fd, write_text, &job->merge, error)
                          : goal_merge_write(&job->merge, fd, labels.fd, NULL, error);
    }
    rc = rc == 0 && !standard ? goal_output_commit(&o, error) : rc;
    rc = rc == 0 && job->jobs_file != NULL ? goal_output_commit(&side, error) : rc;
    rc = rc == 0 && job->with_side ? goal_output_commit(&labels, error) : rc;
    goal_output_discard(&o);
    goal_output_discard(&side);
    goal_output_discard(&labels);
    return rc;
}

int goal_command_merge(int argc, char **argv)
{
    struct merge_job job = {.paths = NULL};
    struct goal_error error = {.text = ""};
    int status = parse(&job, argc, argv);
    if (status == 0 && (open_parts(&job, &error) != 0 || place(&job, &error) != 0 ||
                        write_files(&job, &error) != 0)) {
        fprintf(stderr, "pinwheel goal merge: %s\n", error.text);
        status = 1;
    }
    goal_merge_free(&job.merge);
    while (job.opened > 0) {
        goal_close(&job.parts[--job.opened]);
    }
    free(job.parts);
    free(job.paths);
    return status > 0 ? status : 0;
}
