/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel goal record`: runs a command that starts an MPI program, and loads the recorder into
 * the program (preload.h), with PINWHEEL_TRACE=FOLDER and PINWHEEL_TRACE_CLOCK.
 */
#include "commands.h"
#include "pinwheel/util/preload.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct record_job {
    const char *folder, *clock;
};

static int take_clock(struct args *a, void *clock)
{
    *(const char **)clock = a->value;
    return strcmp(a->value, "real") == 0 || strcmp(a->value, "cpu") == 0
               ? ARGS_GO_ON
               : args_bad(a, "must be real or cpu");
}

static const struct args_option record_options[] = {
    {"-o", "FOLDER", "where to record; must be empty or new (needed)", ARGS_TEXT,
     ARGS_AT(struct record_job, folder)},
    {"--clock", "real|cpu", "what lines count: time, or that of the processor, which ranks share",
     0, ARGS_AT(struct record_job, clock), .take = take_clock},
};

static const struct preload_mpi recorders[] = {
    {"libmpi.so.", "libpinwheel-trace-openmpi.so", "libopenmpi-dev"},
    {"libmpich.so.", "libpinwheel-trace-mpich.so", "libmpich-dev"},
};

enum { RECORDERS = sizeof(recorders) / sizeof(recorders[0]) };

/* True if a folder has no files: those of an older recording would be taken for ranks of this
 * one. */
static bool is_empty(const char *folder)
{
    DIR *d = opendir(folder);
    int entries = 0;
    while (d != NULL && readdir(d) != NULL) {
        entries++;
    }
    if (d != NULL) {
        closedir(d);
    }
    return entries <= 2; /* "." and ".." */
}

static int make_folder(const struct args *a, const char *folder, char *path)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        args_error(a, "-o %s: %s", folder, strerror(errno));
        return -1;
    }
    if (realpath(folder, path) == NULL || access(path, R_OK | W_OK | X_OK) != 0) {
        args_error(a, "-o %s: %s", folder, strerror(errno));
        return -1;
    }
    if (!is_empty(path)) {
        args_error(a, "-o %s: is not empty; a recording needs a folder of its own", folder);
        return -1;
    }
    return 0;
}

int goal_command_record(int argc, char **argv)
{
    struct args a = {.command = "goal record",
                     .operands = "COMMAND [ARGUMENT]...",
                     .summary = "Runs a command that starts an MPI program, and records what the "
                                "program calls.\n`pinwheel goal trace` makes a schedule of it.",
                     ARGS_OPTIONS(record_options)};
    struct record_job job = {NULL, "real"};
    char path[PATH_MAX], *variables[3] = {NULL, NULL, NULL};
    int status = args_parse(&a, argc, argv, &job);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (job.folder == NULL || a.next >= argc) {
        return args_error(&a, "%s",
                          job.folder == NULL ? "-o FOLDER is needed: where to record"
                                             : "which COMMAND? like mpirun -n 4 ./program");
    }
    if (make_folder(&a, job.folder, path) != 0) {
        return 2;
    }
    if (asprintf(&variables[0], "PINWHEEL_TRACE=%s", path) < 0 ||
        asprintf(&variables[1], "PINWHEEL_TRACE_CLOCK=%s", job.clock) < 0) {
        return args_error(&a, "no memory");
    }
    char **words = preload_words(&a, "src/trace", recorders, RECORDERS, variables);
    return words != NULL ? preload_run(&a, words) : 2;
}
