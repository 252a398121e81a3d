/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel goal gen`: generates schedules of known patterns, for any number of ranks. */
#include "base/nearest.h"
#include "commands.h"
#include "gen_options.h"

#include <stdio.h>
#include <string.h>

/* ---- Files ---- */

static int generate(void *context, int fd, struct goal_stream *text, struct goal_error *error)
{
    const struct gen_job *job = context;
    return text != NULL ? goal_generate_text(job->pattern, &job->config, text, error)
                        : goal_generate(job->pattern, &job->config, fd, error);
}

/* Lists the patterns whose names contain `name`, for the error about a name that fits several. */
static const char *parts_of(const char *name, char *text, size_t size)
{
    size_t n = 0;
    text[0] = '\0';
    for (int i = 0; i < goal_pattern_count && n < size; i++) {
        if (strstr(goal_patterns[i].name, name) != NULL) {
            n += (size_t)snprintf(text + n, size - n, "%s%s", n == 0 ? "; there is " : ", ",
                                  goal_patterns[i].name);
        }
    }
    return text;
}

static int check_job(const struct args *a, struct gen_job *job, const char *name)
{
    struct goal_error error;
    if (name == NULL) {
        return args_error(a, "which PATTERN? --list prints them");
    }
    job->pattern = goal_pattern_find(name);
    if (job->pattern == NULL) {
        struct nearest near = nearest_to(name, strlen(name));
        for (int i = 0; i < goal_pattern_count; i++) {
            nearest_try(&near, goal_patterns[i].name);
        }
        char text[80], parts[512];
        nearest_text(&near, text);
        return args_error(
            a, "%s: no such pattern; --list prints them%s", name,
            text[0] != '\0' || name[0] == '\0' ? text : parts_of(name, parts, sizeof(parts)));
    }
    if (gen_check_options(a, job) != 0) {
        return 2;
    }
    if (job->output == NULL && !job->as_text) {
        return args_error(a, "-o FILE is needed: where to write");
    }
    return goal_config_check(job->pattern, &job->config, &error) == 0
               ? 0
               : args_error(a, "%s", error.text);
}

int goal_command_gen(int argc, char **argv)
{
    struct args a = {.command = "goal gen",
                     .operands = "PATTERN",
                     .summary = "Makes the schedule of a pattern, in LogGOPSim's binary format or "
                                "as text.",
                     .options = gen_options,
                     .count = gen_option_count};
    struct gen_job job = {.config = goal_config_default};
    const char *name = NULL;
    a.operand = &name;
    int status = args_parse(&a, argc, argv, &job);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (check_job(&a, &job, name) != 0) {
        return 2;
    }
    struct goal_error error;
    if (goal_write(job.output, job.as_text, generate, &job, &error) != 0) {
        fprintf(stderr, "pinwheel goal gen: %s\n", error.text);
        return 1;
    }
    return 0;
}
