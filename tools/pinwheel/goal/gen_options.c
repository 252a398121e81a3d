/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of `pinwheel goal gen`; see gen_options.h. */
#include "gen_options.h"

#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    GEN_RANKS,
    GEN_SIZE,
    GEN_RANDOM_CALC,
    GEN_SEED,
    GEN_ROOT,
    GEN_RADIX,
    GEN_SEGMENT,
    GEN_REDUCE_RATE,
    GEN_ITERATIONS,
    GEN_CALC,
    GEN_EXTENT,
    GEN_OPEN,
    GEN_ORDER,
    GEN_ANY_SOURCE,
    GEN_LATE,
    GEN_DP,
    GEN_TP,
    GEN_PP,
    GEN_EP,
    GEN_LAYERS,
    GEN_MICROBATCHES,
    GEN_FORWARD,
    GEN_BACKWARD,
    GEN_UPDATE,
    GEN_HIDDEN,
    GEN_SEQUENCE,
    GEN_BATCH,
    GEN_ELEMENT,
    GEN_TOP,
    GEN_ACTIVATIONS,
    GEN_GRADIENTS,
    GEN_EXPERT_GRADIENTS,
    GEN_BUCKET,
    GEN_ALLREDUCE,
    GEN_SCHEDULE,
    GEN_NO_OVERLAP,
    GEN_OUTPUT,
    GEN_TEXT,
    GEN_LIST,
    GEN_OPTIONS,
};

const struct args_option gen_options[] = {
    [GEN_RANKS] = {"--ranks", "N", "ranks (default 16)"},
    [GEN_SIZE] = {"--size", "BYTES",
                  "of a message, of all data of a broadcast or reduction, of a block (default 8)"},
    [GEN_RANDOM_CALC] = {"--random-calc", "TIME",
                         "a calc of 0 to TIME before each send; ns, or ps in a run that says so"},
    [GEN_SEED] = {"--seed", "N", "of all that is random (default 1)"},
    [GEN_ROOT] = {"--root", "RANK", "of trees, rings, incast and outcast (default 0)"},
    [GEN_RADIX] = {"--radix", "K",
                   "of a k-nomial tree (default 4), a barrier or Bruck's all-to-all (2); number of "
                   "chains (1)"},
    [GEN_SEGMENT] = {"--segment", "BYTES",
                     "pieces in which data travel (default: rings and chains 4096, trees all)"},
    [GEN_REDUCE_RATE] = {"--reduce-rate", "TIME",
                         "computed for each byte reduced, up to 6 decimals (default 0)"},
    [GEN_ITERATIONS] = {"--iterations", "N",
                        "of exchanges, incast, outcast, permutations, training (default 1)"},
    [GEN_CALC] = {"--calc", "TIME", "computed after each iteration of an exchange (default 0)"},
    [GEN_EXTENT] =
        {"--extent", "X[xY[xZ[xT]]]",
         "of a stencil (default: as near to a cube as can be) or Swing's torus (a ring)"},
    [GEN_OPEN] = {"--open", NULL, "exchanges end at the border; default: they wrap around"},
    [GEN_ORDER] = {"--order", "ORDER",
                   "of receives against arrivals: forward (the default), reverse or shuffled"},
    [GEN_ANY_SOURCE] = {"--any-source", NULL, "incast: receives name no source"},
    [GEN_LATE] = {"--late", "TIME", "incast: receives are posted after a calc of TIME"},
    [GEN_DP] = {"--dp", "N", "data parallel ranks (default: ranks / tp / pp)"},
    [GEN_TP] = {"--tp", "N", "tensor parallel ranks (default 1)"},
    [GEN_PP] = {"--pp", "N", "stages of the pipeline (default 1)"},
    [GEN_EP] = {"--ep", "N", "expert parallel ranks among the data parallel ones (default 1)"},
    [GEN_LAYERS] = {"--layers", "N", "of the network, a multiple of pp (default 8)"},
    [GEN_MICROBATCHES] = {"--microbatches", "N", "of a step at a rank (default 1)"},
    [GEN_FORWARD] = {"--forward", "TIME", "forward computation of a layer (default 0)"},
    [GEN_BACKWARD] = {"--backward", "TIME", "backward computation (default: twice that)"},
    [GEN_UPDATE] = {"--update", "TIME", "computed at the end of a step (default 0)"},
    [GEN_HIDDEN] = {"--hidden", "N", "width of the network (default 1024)"},
    [GEN_SEQUENCE] = {"--sequence", "N", "tokens of a sequence (default 1024)"},
    [GEN_BATCH] = {"--batch", "N", "sequences of a microbatch (default 1)"},
    [GEN_ELEMENT] = {"--element", "BYTES", "of a number (default 2)"},
    [GEN_TOP] = {"--top", "N", "experts that see each token (default 1)"},
    [GEN_ACTIVATIONS] = {"--activations", "BYTES",
                         "of a microbatch (default: batch x sequence x hidden x element)"},
    [GEN_GRADIENTS] = {"--gradients", "BYTES",
                       "of a layer at a rank (default: 12 hidden^2 element / tp; with ep 4)"},
    [GEN_EXPERT_GRADIENTS] = {"--expert-gradients", "BYTES",
                              "of its experts (default: 8 hidden^2 element / tp)"},
    [GEN_BUCKET] = {"--bucket", "BYTES", "gradients reduced together (default 26214400)"},
    [GEN_ALLREDUCE] = {"--allreduce", "NAME",
                       "ring (the default), recdoub, rabenseifner, swing_latency, ..."},
    [GEN_SCHEDULE] = {"--schedule", "NAME", "of the pipeline: gpipe (the default) or 1f1b"},
    [GEN_NO_OVERLAP] = {"--no-overlap", NULL,
                        "gradients are reduced after the backward computation, not during it"},
    [GEN_OUTPUT] = {"-o", "FILE", "where to write (needed; with --text default: standard output)"},
    [GEN_TEXT] = {"--text", NULL, "write text, not the binary format"},
    [GEN_LIST] = {"--list", NULL, "print the patterns and the options each takes"},
};
const int gen_option_count = GEN_OPTIONS;

/* What an option sets, and who takes it (0: all). */
enum kind { SPECIAL, U32, U64, FLAG };

static const struct {
    unsigned use;
    enum kind kind;
    size_t offset;  /* in struct goal_wish */
    uint64_t least; /* value */
} members[GEN_OPTIONS] = {
#define WISH(name) offsetof(struct goal_wish, name)
#define TRAINING(name) offsetof(struct goal_wish, training.name)
    [GEN_RANKS] = {0, U32, WISH(ranks), 0},
    [GEN_SIZE] = {GOAL_USES_SIZE, U64, WISH(size), 0},
    [GEN_RANDOM_CALC] = {0, U64, WISH(random_calc), 0},
    [GEN_SEED] = {0, U64, WISH(seed), 0},
    [GEN_ROOT] = {GOAL_USES_ROOT, U32, WISH(root), 0},
    [GEN_RADIX] = {GOAL_USES_RADIX, U32, WISH(radix), 1},
    [GEN_SEGMENT] = {GOAL_USES_SEGMENT, U64, WISH(segment), 1},
    [GEN_REDUCE_RATE] = {GOAL_USES_REDUCE, SPECIAL, 0, 0},
    [GEN_ITERATIONS] = {GOAL_USES_ITERATIONS, U32, WISH(iterations), 0},
    [GEN_CALC] = {GOAL_USES_CALC, U64, WISH(calc), 0},
    [GEN_EXTENT] = {GOAL_USES_EXTENT, SPECIAL, 0, 0},
    [GEN_OPEN] = {GOAL_USES_OPEN, FLAG, WISH(open), 0},
    [GEN_ORDER] = {GOAL_USES_ORDER, SPECIAL, 0, 0},
    [GEN_ANY_SOURCE] = {GOAL_USES_SOURCE, FLAG, WISH(any_source), 0},
    [GEN_LATE] = {GOAL_USES_LATE, U64, WISH(late), 0},
    [GEN_DP] = {GOAL_USES_TRAINING, U32, TRAINING(data), 1},
    [GEN_TP] = {GOAL_USES_TRAINING, U32, TRAINING(tensor), 1},
    [GEN_PP] = {GOAL_USES_TRAINING, U32, TRAINING(pipeline), 1},
    [GEN_EP] = {GOAL_USES_TRAINING, U32, TRAINING(expert), 1},
    [GEN_LAYERS] = {GOAL_USES_TRAINING, U32, TRAINING(layers), 1},
    [GEN_MICROBATCHES] = {GOAL_USES_TRAINING, U32, TRAINING(microbatches), 1},
    [GEN_FORWARD] = {GOAL_USES_TRAINING, U64, TRAINING(forward), 0},
    [GEN_BACKWARD] = {GOAL_USES_TRAINING, U64, TRAINING(backward), 0},
    [GEN_UPDATE] = {GOAL_USES_TRAINING, U64, TRAINING(update), 0},
    [GEN_HIDDEN] = {GOAL_USES_TRAINING, U64, TRAINING(hidden), 1},
    [GEN_SEQUENCE] = {GOAL_USES_TRAINING, U64, TRAINING(sequence), 1},
    [GEN_BATCH] = {GOAL_USES_TRAINING, U64, TRAINING(batch), 1},
    [GEN_ELEMENT] = {GOAL_USES_TRAINING, U64, TRAINING(element), 1},
    [GEN_TOP] = {GOAL_USES_TRAINING, U64, TRAINING(experts_chosen), 1},
    [GEN_ACTIVATIONS] = {GOAL_USES_TRAINING, U64, TRAINING(activations), 0},
    [GEN_GRADIENTS] = {GOAL_USES_TRAINING, U64, TRAINING(gradients), 0},
    [GEN_EXPERT_GRADIENTS] = {GOAL_USES_TRAINING, U64, TRAINING(expert_gradients), 0},
    [GEN_BUCKET] = {GOAL_USES_TRAINING, U64, TRAINING(bucket), 1},
    [GEN_ALLREDUCE] = {GOAL_USES_TRAINING, SPECIAL, 0, 0},
    [GEN_SCHEDULE] = {GOAL_USES_TRAINING, SPECIAL, 0, 0},
    [GEN_NO_OVERLAP] = {GOAL_USES_TRAINING, FLAG, TRAINING(no_overlap), 0},
#undef WISH
#undef TRAINING
};

/* ---- Values ---- */

static int read_extent(const struct args *a, uint32_t extent[GOAL_SPACE])
{
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

/* The value is one of `count` names; returns its number, or -1. */
static int read_name(const struct args *a, const char *option, const char *const names[], int count)
{
    char list[128] = "";
    size_t at = 0;
    for (int i = 0; i < count; i++) {
        if (strcmp(a->value, names[i]) == 0) {
            return i;
        }
        const char *before = i == 0 ? "" : i + 1 < count ? ", " : " or ";
        at += (size_t)snprintf(list + at, sizeof(list) - at, "%s%s", before, names[i]);
        at = at < sizeof(list) ? at : sizeof(list) - 1;
    }
    args_error(a, "%s %s: must be %s", option, a->value, list);
    return -1;
}

/* A decimal, in millionths. */
static int read_rate(const struct args *a, uint64_t *rate)
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
        args_error(a,
                   "--reduce-rate %s: must be a number like 0.05, with up to 6 decimals, at most "
                   "18446744073709",
                   a->value);
        return -1;
    }
    *rate = (uint64_t)value;
    return 0;
}

static int read_allreduce(const struct args *a, const struct goal_pattern **pattern)
{
    static const char prefix[] = "allreduce_";
    const char *names[32];
    int count = 0;
    for (int i = 0; i < goal_pattern_count && count < 32; i++) {
        if (strncmp(goal_patterns[i].name, prefix, strlen(prefix)) == 0) {
            names[count++] = goal_patterns[i].name + strlen(prefix);
        }
    }
    int chosen = read_name(a, "--allreduce", names, count);
    if (chosen < 0) {
        return -1;
    }
    *pattern = goal_pattern_find(names[chosen] - strlen(prefix));
    return 0;
}

/* Those whose value is more than a number. */
static int take_special(const struct args *a, int option, struct gen_job *job)
{
    static const char *const orders[] = {
        [GOAL_FORWARD] = "forward", [GOAL_REVERSE] = "reverse", [GOAL_SHUFFLED] = "shuffled"};
    static const char *const pipelines[] = {[GOAL_GPIPE] = "gpipe", [GOAL_1F1B] = "1f1b"};
    struct goal_wish *w = &job->wish;
    int chosen;
    switch (option) {
    case GEN_EXTENT:
        return read_extent(a, w->extent);
    case GEN_REDUCE_RATE:
        return read_rate(a, &w->reduce_rate);
    case GEN_ALLREDUCE:
        return read_allreduce(a, &w->training.allreduce);
    case GEN_ORDER:
        chosen = read_name(a, "--order", orders, 3);
        w->order = chosen >= 0 ? (enum goal_order)chosen : w->order;
        return chosen >= 0 ? 0 : -1;
    case GEN_SCHEDULE:
        chosen = read_name(a, "--schedule", pipelines, 2);
        w->training.order = chosen >= 0 ? (enum goal_pipeline)chosen : w->training.order;
        return chosen >= 0 ? 0 : -1;
    case GEN_OUTPUT:
        job->output = a->value;
        return 0;
    default:
        job->as_text |= option == GEN_TEXT;
        job->list |= option == GEN_LIST;
        return 0;
    }
}

int gen_take_option(const struct args *a, int option, struct gen_job *job)
{
    const char *name = gen_options[option].name;
    char *member = (char *)&job->wish + members[option].offset;
    uint64_t number;
    job->used |= members[option].use;
    if (members[option].kind == SPECIAL) {
        return take_special(a, option, job);
    }
    if (members[option].kind == FLAG) {
        *(bool *)member = true;
        return 0;
    }
    bool narrow = members[option].kind == U32;
    bool derivable = members[option].use == GOAL_USES_TRAINING; /* GOAL_DERIVED is not a number */
    uint64_t most = narrow ? GOAL_ANY - 1 : derivable ? GOAL_DERIVED - 1 : UINT64_MAX;
    if (args_u64(a, name, most, &number) != 0) {
        return -1;
    }
    if (number < members[option].least) {
        args_error(a, "%s %s: must be %" PRIu64 " or more", name, a->value, members[option].least);
        return -1;
    }
    if (narrow) {
        *(uint32_t *)member = (uint32_t)number;
    } else {
        *(uint64_t *)member = number;
    }
    return 0;
}

/* ---- Who takes which ---- */

static bool takes(const struct goal_pattern *p, int option)
{
    return (members[option].use & ~p->uses) == 0;
}

int gen_check_options(const struct args *a, const struct gen_job *job)
{
    for (int i = 0; i < GEN_OPTIONS; i++) {
        if ((job->used & members[i].use) != 0 && !takes(job->pattern, i)) {
            return args_error(a, "%s does not take %s; --list prints what each pattern takes",
                              job->pattern->name, gen_options[i].name);
        }
    }
    return 0;
}

/* The options of a pattern, in lines that begin with `indent` blanks. */
static void list_options(const struct goal_pattern *p, int indent)
{
    int column = 0;
    for (int k = 0; k < GEN_OPTIONS; k++) {
        int width = 1 + (int)strlen(gen_options[k].name);
        if (members[k].use == 0 || !takes(p, k)) {
            continue;
        }
        if (column == 0 || column + width > 100) {
            column = printf("%s%*s", column == 0 ? "" : "\n", indent, column == 0 ? "with" : "");
        }
        column += printf(" %s", gen_options[k].name);
    }
    fputs(column > 0 ? "\n" : "", stdout);
}

void gen_list_patterns(void)
{
    for (int i = 0; i < goal_pattern_count; i++) {
        printf("%-26s %s\n", goal_patterns[i].name, goal_patterns[i].summary);
        list_options(&goal_patterns[i], 31);
    }
    printf("All take --ranks, --random-calc and --seed.\n");
}
