/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel goal compile`: GOAL text to LogGOPSim's binary format. */
#include "commands.h"

#include "sim/goal/read.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct compile_job {
    const char *input;
    const char *output;
    bool with_side, compat;
};

#define AT(member) ARGS_AT(struct compile_job, member)

static const struct args_option compile_options[] = {
    {"-o", "FILE", "the binary schedule to write (needed)", ARGS_TEXT, AT(output)},
    {"-g", NULL, "also write FILE.labels: labels and lines, for reports of a run", ARGS_FLAG,
     AT(with_side)},
    {"--compat", NULL, "of equal labels keep the first, as LogGOPSim's compiler does", ARGS_FLAG,
     AT(compat)},
};

static bool same_file(int fd, const char *path)
{
    struct stat a, b;
    return fstat(fd, &a) == 0 && stat(path, &b) == 0 && a.st_dev == b.st_dev &&
           a.st_ino == b.st_ino;
}

static int compile_to(const struct goal_text *t, const struct compile_job *job,
                      struct goal_output *bin, struct goal_output *side, struct goal_error *error)
{
    struct goal_made made;
    if (goal_compile(t, job->compat ? GOAL_COMPAT : 0, bin->fd, job->with_side ? side->fd : -1,
                     &made, error) != 0) {
        return -1;
    }
    if (goal_output_commit(bin, error) != 0 ||
        (job->with_side && goal_output_commit(side, error) != 0)) {
        return -1;
    }
    return 0;
}

static int open_outputs(const struct compile_job *job, struct goal_output *bin,
                        struct goal_output *side, struct goal_error *error)
{
    if (goal_output_open(bin, job->output, error) != 0 || !job->with_side) {
        return bin->fd >= 0 ? 0 : -1;
    }
    char *path = goal_side_path(job->output);
    int rc = path != NULL ? goal_output_open(side, path, error)
                          : goal_fail(error, "%s: no memory", job->output);
    free(path);
    return rc;
}

static int compile(const struct compile_job *job, struct goal_error *error)
{
    struct goal_text t = {.fd = -1};
    struct goal_output bin = {.fd = -1}, side = {.fd = -1};
    if (goal_text_open(&t, job->input, error) != 0) {
        return -1;
    }
    int rc;
    if (same_file(t.fd, job->output)) {
        rc = goal_fail(error, "%s: is the input; -o must name another file", job->output);
    } else {
        rc = open_outputs(job, &bin, &side, error);
        rc = rc == 0 ? compile_to(&t, job, &bin, &side, error) : rc;
    }
    goal_output_discard(&bin);
    goal_output_discard(&side);
    goal_text_close(&t);
    return rc;
}

int goal_command_compile(int argc, char **argv)
{
    struct args a = {.command = "goal compile",
                     .operands = "TEXT",
                     .summary = "Compiles GOAL text (a file, or - for standard input) to "
                                "LogGOPSim's binary\nformat. docs/goal.md has both.",
                     ARGS_OPTIONS(compile_options)};
    struct compile_job job = {0};
    a.operand = &job.input;
    int status = args_parse(&a, argc, argv, &job);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (job.input == NULL || job.output == NULL) {
        return args_error(&a, "%s",
                          job.input == NULL ? "which TEXT? a file, or -"
                                            : "-o FILE is needed: where to write");
    }
    struct goal_error error;
    if (compile(&job, &error) != 0) {
        fprintf(stderr, "pinwheel goal compile: %s\n", error.text);
        return 1;
    }
    return 0;
}
