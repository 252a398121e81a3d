/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel goal gen`: schedules of known patterns, of any number of ranks. */
#include "goal_commands.h"

#include "sim/goal_gen.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    GEN_RANKS,
    GEN_SIZE,
    GEN_RANDOM_CALC,
    GEN_SEED,
    GEN_ROOT,
    GEN_ITERATIONS,
    GEN_CALC,
    GEN_EXTENT,
    GEN_OPEN,
    GEN_SEGMENT,
    GEN_ORDER,
    GEN_ANY_SOURCE,
    GEN_LATE,
    GEN_OUTPUT,
    GEN_TEXT,
    GEN_LIST,
};

static const struct args_option gen_options[] = {
    [GEN_RANKS] = {"--ranks", "N", "ranks (default 16)"},
    [GEN_SIZE] = {"--size", "BYTES", "of a message; of all data in rings (default 8)"},
    [GEN_RANDOM_CALC] = {"--random-calc", "TIME",
                         "a calc of 0 to TIME before each send; ns, or ps in a run that says so"},
    [GEN_SEED] = {"--seed", "N", "of all that is random (default 1)"},
    [GEN_ROOT] = {"--root", "RANK", "of trees, pipelinedring and incast (default 0)"},
    [GEN_ITERATIONS] = {"--iterations", "N", "of exchanges, incast, permutations (default 1)"},
    [GEN_CALC] = {"--calc", "TIME", "computed after each iteration of an exchange (default 0)"},
    [GEN_EXTENT] = {"--extent", "XxY[xZ]", "of a stencil (default: as near to a cube as can be)"},
    [GEN_OPEN] = {"--open", NULL, "exchanges end at the border; default: they wrap around"},
    [GEN_SEGMENT] = {"--segment", "BYTES", "of pipelinedring (default 4096)"},
    [GEN_ORDER] = {"--order", "ORDER",
                   "of receives against arrivals: forward (the default), reverse or shuffled"},
    [GEN_ANY_SOURCE] = {"--any-source", NULL, "incast: receives name no source"},
    [GEN_LATE] = {"--late", "TIME", "incast: receives are posted after a calc of TIME"},
    [GEN_OUTPUT] = {"-o", "FILE", "where to write (needed; with --text default: standard output)"},
    [GEN_TEXT] = {"--text", NULL, "write text, not the binary format"},
    [GEN_LIST] = {"--list", NULL, "print the patterns and the options each takes"},
};

/* Which options only some patterns take. */
static const struct {
    int option;
    unsigned use;
} uses[] = {
    {GEN_ROOT, GOAL_USES_ROOT},   {GEN_ITERATIONS, GOAL_USES_ITERATIONS},
    {GEN_CALC, GOAL_USES_CALC},   {GEN_EXTENT, GOAL_USES_EXTENT},
    {GEN_OPEN, GOAL_USES_OPEN},   {GEN_SEGMENT, GOAL_USES_SEGMENT},
    {GEN_ORDER, GOAL_USES_ORDER}, {GEN_ANY_SOURCE, GOAL_USES_SOURCE},
    {GEN_LATE, GOAL_USES_LATE},
};

enum { USES = sizeof(uses) / sizeof(uses[0]) };

struct gen_job {
    struct goal_wish wish;
    const struct goal_pattern *pattern;
    const char *output;
    bool as_text;
    unsigned used; /* GOAL_USES_ of the options given */
};

static void list_patterns(void)
{
    for (int i = 0; i < goal_pattern_count; i++) {
        printf("%-20s %s\n", goal_patterns[i].name, goal_patterns[i].summary);
        const char *before = "                     with";
        for (int k = 0; k < USES; k++) {
            if ((goal_patterns[i].uses & uses[k].use) != 0) {
                printf("%s %s", before, gen_options[uses[k].option].name);
                before = "";
            }
        }
        fputs(*before == '\0' ? "\n" : "", stdout);
    }
    printf("All take --ranks, --size, --random-calc and --seed.\n");
}

/* ---- Options ---- */

static int read_extent(const struct args *a, uint32_t extent[3])
{
    const char *p = a->value;
    for (int i = 0; i < 3; i++) {
        char *end;
        errno = 0;
        unsigned long n = *p >= '0' && *p <= '9' ? strtoul(p, &end, 10) : 0;
        if (n == 0 || n >= GOAL_ANY || errno != 0) {
            break;
        }
        extent[i] = (uint32_t)n;
        if (*end == '\0') {
            return 0;
        }
        if (*end != 'x') {
            break;
        }
        p = end + 1;
    }
    args_error(a, "--extent %s: must be like 8x4 or 8x4x2", a->value);
    return -1;
}

static int read_order(const struct args *a, enum goal_order *order)
{
    static const char *const names[] = {
        [GOAL_FORWARD] = "forward", [GOAL_REVERSE] = "reverse", [GOAL_SHUFFLED] = "shuffled"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(a->value, names[i]) == 0) {
            *order = (enum goal_order)i;
            return 0;
        }
    }
    args_error(a, "--order %s: must be forward, reverse or shuffled", a->value);
    return -1;
}

static int read_u32(const struct args *a, int option, uint32_t *number)
{
    uint64_t n;
    if (goal_args_u64(a, gen_options[option].name, GOAL_ANY - 1, &n) != 0) {
        return -1;
    }
    *number = (uint32_t)n;
    return 0;
}

static int take_option(const struct args *a, int option, struct gen_job *job)
{
    struct goal_wish *w = &job->wish;
    for (int i = 0; i < USES; i++) {
        job->used |= uses[i].option == option ? uses[i].use : 0;
    }
    switch (option) {
    case GEN_RANKS:
        return read_u32(a, option, &w->ranks);
    case GEN_ROOT:
        return read_u32(a, option, &w->root);
    case GEN_ITERATIONS:
        return read_u32(a, option, &w->iterations);
    case GEN_SIZE:
        return goal_args_u64(a, "--size", UINT64_MAX, &w->size);
    case GEN_RANDOM_CALC:
        return goal_args_u64(a, "--random-calc", UINT64_MAX, &w->random_calc);
    case GEN_SEED:
        return goal_args_u64(a, "--seed", UINT64_MAX, &w->seed);
    case GEN_CALC:
        return goal_args_u64(a, "--calc", UINT64_MAX, &w->calc);
    case GEN_SEGMENT:
        return goal_args_u64(a, "--segment", UINT64_MAX, &w->segment);
    case GEN_LATE:
        return goal_args_u64(a, "--late", UINT64_MAX, &w->late);
    case GEN_EXTENT:
        return read_extent(a, w->extent);
    case GEN_ORDER:
        return read_order(a, &w->order);
    case GEN_OPEN:
        w->open = true;
        return 0;
    case GEN_ANY_SOURCE:
        w->any_source = true;
        return 0;
    case GEN_OUTPUT:
        job->output = a->value;
        return 0;
    default:
        job->as_text |= option == GEN_TEXT;
        return 0;
    }
}

/* ---- Files ---- */

static int write_text(const struct gen_job *job, int fd, struct goal_error *error)
{
    struct goal_stream out;
    if (goal_stream_append(&out, fd) != 0) {
        return goal_fail(error, "no memory");
    }
    int rc = goal_generate_text(job->pattern, &job->wish, &out, error);
    int closed = goal_stream_close(&out);
    return rc == 0 && closed != 0 ? goal_fail(error, "cannot write: %s", strerror(-closed)) : rc;
}

static int generate(const struct gen_job *job, struct goal_error *error)
{
    struct goal_output o;
    if (job->as_text && (job->output == NULL || strcmp(job->output, "-") == 0)) {
        return write_text(job, STDOUT_FILENO, error);
    }
    if (goal_output_open(&o, job->output, error) != 0) {
        return -1;
    }
    int rc = job->as_text ? write_text(job, o.fd, error)
                          : goal_generate(job->pattern, &job->wish, o.fd, error);
    if (rc == 0) {
        return goal_output_commit(&o, error);
    }
    goal_output_discard(&o);
    return -1;
}

static int check_job(const struct args *a, struct gen_job *job, const char *name)
{
    struct goal_error error;
    if (name == NULL) {
        return args_error(a, "which PATTERN? --list prints them");
    }
    job->pattern = goal_pattern_find(name);
    if (job->pattern == NULL) {
        return args_error(a, "%s: no such pattern; --list prints them", name);
    }
    for (int i = 0; i < USES; i++) {
        if ((uses[i].use & job->used & ~job->pattern->uses) != 0) {
            return args_error(a, "%s does not take %s", name, gen_options[uses[i].option].name);
        }
    }
    if (job->output == NULL && !job->as_text) {
        return args_error(a, "-o FILE is needed: where to write");
    }
    return goal_wish_check(job->pattern, &job->wish, &error) == 0 ? 0
                                                                  : args_error(a, "%s", error.text);
}

int goal_command_gen(int argc, char **argv)
{
    struct args a = {.command = "goal gen",
                     .operands = "PATTERN",
                     .summary = "Makes the schedule of a pattern, in LogGOPSim's binary format or "
                                "as text.",
                     .options = gen_options,
                     .count = sizeof(gen_options) / sizeof(gen_options[0]),
                     .argc = argc,
                     .argv = argv,
                     .next = 1};
    struct gen_job job = {.wish = goal_wish_default};
    const char *name = NULL;
    int option;
    while ((option = goal_args_next(&a, &name)) >= 0) {
        if (option == GEN_LIST) {
            list_patterns();
            return 0;
        }
        if (take_option(&a, option, &job) != 0) {
            return 2;
        }
    }
    if (option == ARGS_HELP) {
        return 0;
    }
    if (option == ARGS_BAD || check_job(&a, &job, name) != 0) {
        return 2;
    }
    struct goal_error error;
    if (generate(&job, &error) != 0) {
        fprintf(stderr, "pinwheel goal gen: %s\n", error.text);
        return 1;
    }
    return 0;
}
