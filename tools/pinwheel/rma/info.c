/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel rma info`: for which MPIs there are windows here, and the variables they read. */
#include "rma.h"

#include "pinwheel/util/json.h"
#include "pinwheel/util/program.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

struct info_options {
    bool as_json;
};

static const struct args_option options[] = {
    {"--json", NULL, "print JSON", ARGS_FLAG, ARGS_AT(struct info_options, as_json)},
};

static const char *const names[RMA_MPIS] = {"openmpi", "mpich"};
static const char *const variables[] = {"PINWHEEL_RMA_PATH", "PINWHEEL_RMA_STATS"};
enum { VARIABLES = sizeof(variables) / sizeof(variables[0]) };

static int print_json(void)
{
    struct json j = {.to = stdout};
    char path[PATH_MAX];
    json_open_object(&j, NULL);
    json_open_object(&j, "libraries");
    for (int i = 0; i < RMA_MPIS; i++) {
        bool there = program_beside(RMA_FOLDER, rma_mpis[i].file, path, sizeof(path));
        json_string(&j, names[i], there ? path : "");
    }
    json_close_object(&j);
    json_open_object(&j, "variables");
    for (int i = 0; i < VARIABLES; i++) {
        const char *value = getenv(variables[i]);
        json_string(&j, variables[i], value != NULL ? value : "");
    }
    json_close_object(&j);
    json_close_object(&j);
    return json_end(&j) == 0 ? 0 : 1;
}

int rma_command_info(int argc, char **argv)
{
    struct args a = {.command = "rma info",
                     .operands = "",
                     .summary =
                         "Says for which MPIs there are windows over Pinwheel here, and what "
                         "is set.",
                     ARGS_OPTIONS(options)};
    struct info_options o = {0};
    char path[PATH_MAX];
    int status = args_parse(&a, argc, argv, &o);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (o.as_json) {
        return print_json();
    }
    for (int i = 0; i < RMA_MPIS; i++) {
        bool there = program_beside(RMA_FOLDER, rma_mpis[i].file, path, sizeof(path));
        printf("%-8s %s\n", names[i], there ? path : "none: Pinwheel was built without it");
    }
    for (int i = 0; i < VARIABLES; i++) {
        const char *value = getenv(variables[i]);
        printf("%-19s %s\n", variables[i], value != NULL ? value : "(not set)");
    }
    return 0;
}
