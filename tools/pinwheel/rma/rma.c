/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel rma`: runs a command that starts an MPI program, whose windows are then Pinwheel's
 * (lib/mpi-rma). Variables that the library reads are handed over on the program's own command
 * line, so that they reach all hosts.
 */
#include "rma.h"

#include "pinwheel/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct preload_mpi rma_mpis[RMA_MPIS] = {
    {"libmpi.so.", "libpinwheel-rma-openmpi.so", "libopenmpi-dev"},
    {"libmpich.so.", "libpinwheel-rma-mpich.so", "libmpich-dev"},
};

struct rma_options {
    const char *path;
    bool stats;
};

#define AT(member) ARGS_AT(struct rma_options, member)

static const struct args_option options[] = {
    {"--path", "PATH", "which way operations take: PINWHEEL_RMA_PATH", ARGS_TEXT, AT(path)},
    {"--stats", NULL, "each window is told when it is freed: PINWHEEL_RMA_STATS=1", ARGS_FLAG,
     AT(stats)},
};

extern char **environ;

/* The variables of this process that the program needs, and those of options; NULL: no memory. */
static char **variables_of(const struct rma_options *o)
{
    size_t count = 0, n = 0;
    while (environ[count] != NULL) {
        count++;
    }
    char **variables = calloc(count + 3, sizeof(*variables));
    for (size_t i = 0; variables != NULL && i < count; i++) {
        /* the job's key is secret, and a command line is not */
        if (strncmp(environ[i], "PINWHEEL_", 9) == 0 &&
            strncmp(environ[i], "PINWHEEL_JOB_KEY=", 17) != 0) {
            variables[n++] = environ[i];
        }
    }
    if (variables != NULL && o->path != NULL &&
        asprintf(&variables[n++], "PINWHEEL_RMA_PATH=%s", o->path) < 0) {
        return NULL;
    }
    if (variables != NULL && o->stats) {
        variables[n++] = "PINWHEEL_RMA_STATS=1";
    }
    return variables;
}

int command_rma(int argc, char **argv)
{
    struct args a = {.command = "rma",
                     .operands = "COMMAND [ARGUMENT]... | info",
                     .summary = "Runs a command that starts an MPI program, like mpirun -n 4 "
                                "./program,\nwith the program's windows over Pinwheel. `pinwheel "
                                "rma info` says for which MPIs.\ndocs/mpi-rma.md",
                     ARGS_OPTIONS(options)};
    struct rma_options o = {0};
    if (argc > 1 && strcmp(argv[1], "info") == 0) {
        return rma_command_info(argc - 1, argv + 1);
    }
    int status = args_parse(&a, argc, argv, &o);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (a.next >= argc) {
        return args_error(&a, "which COMMAND? like mpirun -n 4 ./program");
    }
    char **variables = variables_of(&o);
    if (variables == NULL) {
        return args_error(&a, "no memory");
    }
    char **words = preload_words(&a, RMA_FOLDER, rma_mpis, RMA_MPIS, variables);
    return words != NULL ? preload_run(&a, words) : 2;
}
