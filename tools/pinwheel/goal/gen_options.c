/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of `pinwheel goal gen`; see gen_options.h. */
#include "gen_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Values ---- */

static int take_extent(struct args *a, void *into)
{
    uint32_t *extent = into;
    const char *p = a->value;
    for (int i = 0; i < GOAL_SPACE; i++) {
        char *end;
        errno = 0;
        unsigned long n = *p >= '0' && *p <= '9' ? strtoul(p, &end, 10) : 0;
        if (n == 0 || n >= GOAL_ANY || errno != 0) {
            break;
        }
        extent[i] = (uint32_t)n;
        if (*end == '\0') {
            memset(extent + i + 1, 0, sizeof(*extent) * (size_t)(GOAL_SPACE - 1 - i));
            return ARGS_GO_ON;
        }
        if (*end != 'x') {
            break;
        }
        p = end + 1;
    }
    return args_bad(a, "must be like 8x4 or 8x4x2");
}

/* Reads a decimal, in millionths. */
static int take_rate(struct args *a, void *rate)
{
    unsigned __int128 value = 0;
    int decimals = -1;
    const char *p = a->value;
    for (; (*p >= '0' && *p <= '9') || (*p == '.' && decimals < 0 && p > a->value); p++) {
        if (*p == '.') {
            decimals = 0;
            continue;
        }
        value = value * 10 + (unsigned)(*p - '0');
        decimals += decimals >= 0;
        if (decimals > 6 || value > UINT64_MAX) {
            break;
        }
    }
    bool complete = *p == '\0' && p > a->value && decimals != 0;
    for (int i = decimals > 0 ? decimals : 0; complete && i < 6; i++) {
        value *= 10;
    }
    if (!complete || value > UINT64_MAX) {
        return args_bad(
            a, "must be a number like 0.05, with up to 6 decimals, at most 18446744073709");
    }
    *(uint64_t *)rate = (uint64_t)value;
    return ARGS_GO_ON;
}

static int take_allreduce(struct args *a, void *pattern)
{
    static const char prefix[] = "allreduce_";
    const char *names[32];
    int count = 0;
    for (int i = 0; i < goal_pattern_count && count < 32; i++) {
        if (strncmp(goal_patterns[i].name, prefix, strlen(prefix)) == 0) {
            names[count++] = goal_patterns[i].name + strlen(prefix);
        }
    }
    int chosen = args_choose(a, names, count);
    if (chosen < 0) {
        return 2;
    }
    *(const struct goal_pattern **)pattern = goal_pattern_find(names[chosen] - strlen(prefix));
    return ARGS_GO_ON;
}

/* ---- The patterns and their options ---- */

static bool takes(const struct goal_pattern *p, int option)
{
    return (gen_options[option].group & ~p->uses) == 0;
}

/* Lists the options of a pattern, in lines that begin with `indent` blanks. */
static void list_options(const struct goal_pattern *p, int indent)
{
    int column = 0;
    for (int k = 0; k < gen_option_count; k++) {
        int width = 1 + (int)strlen(gen_options[k].name);
        if (gen_options[k].group == 0 || !takes(p, k)) {
            continue;
        }
        if (column == 0 || column + width > 100) {
            column = printf("%s%*s", column == 0 ? "" : "\n", indent, column == 0 ? "with" : "");
        }
        column += printf(" %s", gen_options[k].name);
    }
    fputs(column > 0 ? "\n" : "", stdout);
}

static int list_patterns(struct args *a, void *into)
{
    for (int i = 0; i < goal_pattern_count; i++) {
        printf("%-26s %s\n", goal_patterns[i].name, goal_patterns[i].summary);
        list_options(&goal_patterns[i], 31);
    }
    printf("All take --ranks, --random-calc and --seed.\n");
    return 0;
}

#define AT(member) ARGS_AT(struct gen_job, member)

/* The options. Training options that count bytes or time have a maximum below GOAL_DERIVED, which
 * is no number but means that the value is derived from others. */
const struct args_option gen_options[] = {
    {"--ranks", "N", "ranks (default 16)", ARGS_UNSIGNED, AT(config.ranks), 0, GOAL_ANY - 1},
    {"--size", "BYTES",
     "of a message, of all data of a broadcast or reduction, of a block (default 8)", ARGS_UNSIGNED,
     AT(config.size), .group = GOAL_USES_SIZE},
    {"--random-calc", "TIME",
     "a calc of 0 to TIME before each send; ns, or ps in a run that says so", ARGS_UNSIGNED,
     AT(config.random_calc)},
    {"--seed", "N", "of all that is random (default 1)", ARGS_UNSIGNED, AT(config.seed)},
    {"--root", "RANK", "of trees, rings, incast and outcast (default 0)", ARGS_UNSIGNED,
     AT(config.root), 0, GOAL_ANY - 1, .group = GOAL_USES_ROOT},
    {"--radix", "K",
     "of a k-nomial tree (default 4), a barrier or Bruck's all-to-all (2); number of "
     "chains (1)",
     ARGS_UNSIGNED, AT(config.radix), 1, GOAL_ANY - 1, .group = GOAL_USES_RADIX},
    {"--segment", "BYTES",
     "pieces in which data travel (default: rings and chains 4096, trees all)", ARGS_UNSIGNED,
     AT(config.segment), 1, .group = GOAL_USES_SEGMENT},
    {"--reduce-rate", "TIME", "computed for each byte reduced, up to 6 decimals (default 0)", 0,
     AT(config.reduce_rate), .take = take_rate, .group = GOAL_USES_REDUCE},
    {"--iterations", "N", "of exchanges, incast, outcast, permutations, training (default 1)",
     ARGS_UNSIGNED, AT(config.iterations), 0, GOAL_ANY - 1, .group = GOAL_USES_ITERATIONS},
    {"--calc", "TIME", "computed after each iteration of an exchange (default 0)", ARGS_UNSIGNED,
     AT(config.calc), .group = GOAL_USES_CALC},
    {"--extent", "X[xY[xZ[xT]]]",
     "of a stencil (default: as near to a cube as can be) or Swing's torus (a ring)", 0,
     AT(config.extent), .take = take_extent, .group = GOAL_USES_EXTENT},
    {"--open", NULL, "exchanges end at the border; default: they wrap around", ARGS_FLAG,
     AT(config.open), .group = GOAL_USES_OPEN},
    {"--order", "ORDER", "of receives against arrivals: forward (the default), reverse or shuffled",
     ARGS_CHOICE, AT(config.order), .choices = "forward|reverse|shuffled",
     .group = GOAL_USES_ORDER},
    {"--any-source", NULL, "incast: receives name no source", ARGS_FLAG, AT(config.any_source),
     .group = GOAL_USES_SOURCE},
    {"--late", "TIME", "incast: receives are posted after a calc of TIME", ARGS_UNSIGNED,
     AT(config.late), .group = GOAL_USES_LATE},
    {"--dp", "N", "data parallel ranks (default: ranks / tp / pp)", ARGS_UNSIGNED,
     AT(config.training.data), 1, GOAL_ANY - 1, .group = GOAL_USES_TRAINING},
    {"--tp", "N", "tensor parallel ranks (default 1)", ARGS_UNSIGNED, AT(config.training.tensor), 1,
     GOAL_ANY - 1, .group = GOAL_USES_TRAINING},
    {"--pp", "N", "stages of the pipeline (default 1)", ARGS_UNSIGNED, AT(config.training.pipeline),
     1, GOAL_ANY - 1, .group = GOAL_USES_TRAINING},
    {"--ep", "N", "expert parallel ranks among the data parallel ones (default 1)", ARGS_UNSIGNED,
     AT(config.training.expert), 1, GOAL_ANY - 1, .group = GOAL_USES_TRAINING},
    {"--layers", "N", "of the network, a multiple of pp (default 8)", ARGS_UNSIGNED,
     AT(config.training.layers), 1, GOAL_ANY - 1, .group = GOAL_USES_TRAINING},
    {"--microbatches", "N", "of a step at a rank (default 1)", ARGS_UNSIGNED,
     AT(config.training.microbatches), 1, GOAL_ANY - 1, .group = GOAL_USES_TRAINING},
    {"--forward", "TIME", "forward computation of a layer (default 0)", ARGS_UNSIGNED,
     AT(config.training.forward), 0, GOAL_DERIVED - 1, .group = GOAL_USES_TRAINING},
    {"--backward", "TIME", "backward computation (default: twice that)", ARGS_UNSIGNED,
     AT(config.training.backward), 0, GOAL_DERIVED - 1, .group = GOAL_USES_TRAINING},
    {"--update", "TIME", "computed at the end of a step (default 0)", ARGS_UNSIGNED,
     AT(config.training.update), 0, GOAL_DERIVED - 1, .group = GOAL_USES_TRAINING},
    {"--hidden", "N", "width of the network (default 1024)", ARGS_UNSIGNED,
     AT(config.training.hidden), 1, GOAL_DERIVED - 1, .group = GOAL_USES_TRAINING},
    {"--sequence", "N", "tokens of a sequence (default 1024)", ARGS_UNSIGNED,
     AT(config.training.sequence), 1, GOAL_DERIVED - 1, .group = GOAL_USES_TRAINING},
    {"--batch", "N", "sequences of a microbatch (default 1)", ARGS_UNSIGNED,
     AT(config.training.batch), 1, GOAL_DERIVED - 1, .group = GOAL_USES_TRAINING},
    {"--element", "BYTES", "of a number (default 2)", ARGS_UNSIGNED, AT(config.training.element), 1,
     GOAL_DERIVED - 1, .group = GOAL_USES_TRAINING},
    {"--top", "N", "experts that see each token (default 1)", ARGS_UNSIGNED,
     AT(config.training.experts_chosen), 1, GOAL_DERIVED - 1, .group = GOAL_USES_TRAINING},
    {"--activations", "BYTES", "of a microbatch (default: batch x sequence x hidden x element)",
     ARGS_UNSIGNED, AT(config.training.activations), 0, GOAL_DERIVED - 1,
     .group = GOAL_USES_TRAINING},
    {"--gradients", "BYTES", "of a layer at a rank (default: 12 hidden^2 element / tp; with ep 4)",
     ARGS_UNSIGNED, AT(config.training.gradients), 0, GOAL_DERIVED - 1,
     .group = GOAL_USES_TRAINING},
    {"--expert-gradients", "BYTES", "of its experts (default: 8 hidden^2 element / tp)",
     ARGS_UNSIGNED, AT(config.training.expert_gradients), 0, GOAL_DERIVED - 1,
     .group = GOAL_USES_TRAINING},
    {"--bucket", "BYTES", "gradients reduced together (default 26214400)", ARGS_UNSIGNED,
     AT(config.training.bucket), 1, GOAL_DERIVED - 1, .group = GOAL_USES_TRAINING},
    {"--allreduce", "NAME", "ring (the default), recdoub, rabenseifner, swing_latency, ...", 0,
     AT(config.training.allreduce), .take = take_allreduce, .group = GOAL_USES_TRAINING},
    {"--schedule", "NAME", "of the pipeline: gpipe (the default) or 1f1b", ARGS_CHOICE,
     AT(config.training.order), .choices = "gpipe|1f1b", .group = GOAL_USES_TRAINING},
    {"--no-overlap", NULL, "gradients are reduced after the backward computation, not during it",
     ARGS_FLAG, AT(config.training.no_overlap), .group = GOAL_USES_TRAINING},
    {"-o", "FILE", "where to write (needed; with --text default: standard output)", ARGS_TEXT,
     AT(output)},
    {"--text", NULL, "write text, not the binary format", ARGS_FLAG, AT(as_text)},
    {"--list", NULL, "print the patterns and the options each takes", .take = list_patterns},
};
const int gen_option_count = sizeof(gen_options) / sizeof(gen_options[0]);

int gen_check_options(const struct args *a, const struct gen_job *job)
{
    for (int i = 0; i < gen_option_count; i++) {
        if ((a->given >> i & 1) != 0 && !takes(job->pattern, i)) {
            return args_error(a, "%s does not take %s; --list prints what each pattern takes",
                              job->pattern->name, gen_options[i].name);
        }
    }
    return 0;
}
