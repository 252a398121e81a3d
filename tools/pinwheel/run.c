/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel run`: what it is told on the command line; launch.c does it. */
#include "args.h"
#include "boot/pmi_server.h"
#include "commands.h"
#include "launch.h"
#include "spawn.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_SIZE, RUN_BIND, RUN_LABEL, RUN_ENV, RUN_TIMEOUT };

static const struct args_option run_options[] = {
    [RUN_SIZE] = {"-n", "N", "number of ranks, 1 to 4096 (default 1)"},
    [RUN_BIND] = {"--bind", "core|none",
                  "rank i on the i-th allowed core, modulo their number "
                  "(default none)"},
    [RUN_LABEL] = {"--label", NULL, "begin each line of output with \"[rank] \""},
    [RUN_ENV] = {"--env", "NAME=VALUE", "set a variable in all ranks; may be repeated"},
    [RUN_TIMEOUT] = {"--timeout", "SECONDS", "end the job, with status 124, if it takes longer"},
};

static const char run_summary[] =
    "Starts N processes of PROGRAM as the ranks of one job and stays until all have\n"
    "ended. They find each other through PMI-1 (PMI_FD, PMI_RANK, PMI_SIZE), and share\n"
    "the secret PINWHEEL_JOB_KEY and the name PINWHEEL_JOB_ID. Rank 0 reads this\n"
    "command's standard input, the others nothing.\n\n"
    "When a rank fails, all others are ended: SIGTERM, after 2 s SIGKILL. The exit\n"
    "status is that of the first failure: the rank's own, 128 + N if signal N ended it,\n"
    "the code of a PMI abort; 124 for the time-out, 126 and 127 if PROGRAM cannot be\n"
    "executed or found, 1 if a rank leaves while others wait for it.";

static int parse_option(const struct args *a, int option, struct launch *l)
{
    long number;
    switch (option) {
    case RUN_SIZE:
        if (args_number(a, "-n", 1, PMI_RANKS_MAX, &number) != 0) {
            return 2;
        }
        l->size = (int)number;
        return 0;
    case RUN_BIND:
        if (strcmp(a->value, "core") != 0 && strcmp(a->value, "none") != 0) {
            return args_error(a, "--bind %s: must be core or none", a->value);
        }
        l->bind_cores = strcmp(a->value, "core") == 0;
        return 0;
    case RUN_LABEL:
        l->label = true;
        return 0;
    case RUN_ENV:
        if (strchr(a->value, '=') == NULL || a->value[0] == '=') {
            return args_error(a, "--env %s: must be NAME=VALUE", a->value);
        }
        if (spawn_reserved(a->value)) {
            return args_error(a, "--env %s: `pinwheel run` itself sets this variable in each rank",
                              a->value);
        }
        l->environment[l->environment_count++] = (char *)(uintptr_t)a->value;
        return 0;
    default:
        return args_number(a, "--timeout", 1, 1000000, &l->timeout_seconds) != 0 ? 2 : 0;
    }
}

static int run(struct args *a, struct launch *l)
{
    int option;
    while ((option = args_next(a)) >= 0) {
        int rc = parse_option(a, option, l);
        if (rc != 0) {
            return rc;
        }
    }
    if (option == ARGS_HELP) {
        return 0;
    }
    if (option == ARGS_BAD) {
        return 2;
    }
    if (a->next >= a->argc) {
        return args_error(a, "no PROGRAM given; it follows the options: "
                             "pinwheel run -n 2 PROGRAM [ARGUMENT]...");
    }
    l->argv = &a->argv[a->next];
    return launch_run(l);
}

int command_run(int argc, char **argv)
{
    struct args a = {.command = "run",
                     .operands = "PROGRAM [ARGUMENT]...",
                     .summary = run_summary,
                     .options = run_options,
                     .count = sizeof(run_options) / sizeof(run_options[0]),
                     .argc = argc,
                     .argv = argv,
                     .next = 1};
    struct launch l = {.size = 1, .environment = calloc((size_t)argc, sizeof(char *))};
    if (l.environment == NULL) {
        return args_error(&a, "no memory");
    }
    int status = run(&a, &l);
    free(l.environment);
    return status;
}
