/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel bench`: its options, checked before anything is started. What is
 * measured and how is in bench/.
 */
#include "commands.h"
#include "conductor.h"
#include "pinwheel/util/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    BENCH_ROUNDS,
    BENCH_NAMES,
    BENCH_PEERS,
    BENCH_SIZES,
    BENCH_OUT,
    BENCH_JSON,
    BENCH_QUICK,
    BENCH_PREFER,
    BENCH_SUBJECT,
    BENCH_LIMIT,
    BENCH_PLUGINS,
    BENCH_LIST
};

#define DEFAULT_ROUNDS 11
#define QUICK_ROUNDS 3
#define DEFAULT_LIMIT 30 /* seconds; a launcher of MPI takes one or two */
#define TURN_SECONDS 5e-3
#define QUICK_SECONDS 1e-3

static const struct args_option bench_options[] = {
    [BENCH_ROUNDS] = {"--rounds", "N", "turns of each subject at each work (default 11)"},
    [BENCH_NAMES] = {"--bench", "NAME,...", "only these benches (default all; --list names them)"},
    [BENCH_PEERS] = {"--peers", "NAME,...", "only these peers, or none (default all)"},
    [BENCH_SIZES] = {"--sizes", "BYTES,...", "sizes of messages, up to 4194304"},
    [BENCH_OUT] = {"--out", "DIR", "folder for bench.svg, made if need be (default bench-out)"},
    [BENCH_JSON] = {"--json", NULL, "print JSON in place of tables"},
    [BENCH_QUICK] = {"--quick", NULL, "3 rounds of 1 ms, few sizes: a check, no measurement"},
    [BENCH_PREFER] = {"--prefer", NULL, "root: before all other work (autogroup of nice -20)"},
    [BENCH_SUBJECT] = {"--subject", "NAME=COMMAND",
                       "one more peer: a program that takes turns; may be repeated"},
    [BENCH_LIMIT] = {"--limit", "SECONDS",
                     "that a subject may take to start, a tenth for a turn (default 30)"},
    [BENCH_PLUGINS] = {"--openmpi-plugins", "DIR",
                       "Open MPI's portals4 components over Pinwheel (default the build tree's)"},
    [BENCH_LIST] = {"--list", NULL, "list benches and subjects, and what is not there"},
};

static const char bench_summary[] =
    "Measures Pinwheel beside the limits of this machine and beside other libraries.\n"
    "Each subject is a pair of processes on two cores; they take turns of milliseconds,\n"
    "so that all see the same machine, and a turn counts only if the cores were as far\n"
    "apart after it as before. Prints tables and the project's targets, draws\n"
    "DIR/bench.svg. A peer that is missing, hangs or crashes is reported and left out.\n"
    "The exit status is 1 if Pinwheel itself failed.";

/* ---- Values ---- */

static bool is_bench(const char *name, size_t length)
{
    for (int i = 0; i < bench_table_size; i++) {
        const char *known = bench_table[i].name;
        if (length != 0 && strncmp(known, name, length) == 0 &&
            (known[length] == '\0' || known[length] == '/')) {
            return true;
        }
    }
    return false;
}

static bool is_peer(const char *name, size_t length)
{
    for (int i = 0; i < subject_table_size; i++) {
        const char *known = subject_table[i].name;
        bool chosen =
            subject_table[i].kind == SUBJECT_PEER || subject_table[i].kind == SUBJECT_CLIENT;
        if (chosen && strlen(known) == length && memcmp(known, name, length) == 0) {
            return true;
        }
    }
    return length == 4 && memcmp(name, "none", 4) == 0;
}

static int check_names(const struct args *a, const char *option,
                       bool (*known)(const char *name, size_t length))
{
    for (const char *at = a->value;; at++) {
        size_t length = strcspn(at, ",");
        if (!known(at, length)) {
            return args_error(a, "%s %s: there is no \"%.*s\"; pinwheel bench --list names all",
                              option, a->value, length > 100 ? 100 : (int)length, at);
        }
        at += length;
        if (*at == '\0') {
            return 0;
        }
    }
}

static int parse_sizes(const struct args *a, struct options_bench *o)
{
    o->size_count = 0;
    for (const char *at = a->value;; at++) {
        char *end;
        errno = 0;
        unsigned long long size = strtoull(at, &end, 10);
        if (*at < '0' || *at > '9' || (*end != ',' && *end != '\0') || errno != 0 || size < 1 ||
            size > TURN_SIZE_MAX) {
            return args_error(a, "--sizes %s: must be whole numbers from 1 to %d, commas between",
                              a->value, TURN_SIZE_MAX);
        }
        if (o->size_count == SIZES_MAX) {
            return args_error(a, "--sizes: more than %d sizes", SIZES_MAX);
        }
        o->sizes[o->size_count++] = size;
        at = end;
        if (*at == '\0') {
            return 0;
        }
    }
}

static int add_subject(const struct args *a, struct options_bench *o)
{
    const char *equals = strchr(a->value, '=');
    if (equals == NULL || equals == a->value || equals[1] == '\0') {
        return args_error(a, "--subject %s: must be NAME=COMMAND", a->value);
    }
    if (o->extra_count == EXTRA_MAX) {
        return args_error(a, "--subject: at most %d are possible", EXTRA_MAX);
    }
    o->extra[o->extra_count++] = a->value;
    return 0;
}

/* mpirun starts its ranks elsewhere, so the folder must not depend on ours. */
static int check_folder(const struct args *a, const char *option)
{
    struct stat status;
    if (a->value[0] != '/') {
        return args_error(a, "%s %s: must begin with /", option, a->value);
    }
    if (stat(a->value, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return args_error(a, "%s %s: is no folder", option, a->value);
    }
    return 0;
}

static int parse_option(const struct args *a, int option, struct options_bench *o, bool *list)
{
    switch (option) {
    case BENCH_ROUNDS:
        return args_number(a, "--rounds", 1, ROUNDS_MAX, &o->rounds) != 0 ? 2 : 0;
    case BENCH_NAMES:
        o->benches = a->value;
        return check_names(a, "--bench", is_bench);
    case BENCH_PEERS:
        o->peers = a->value;
        return check_names(a, "--peers", is_peer);
    case BENCH_SIZES:
        return parse_sizes(a, o);
    case BENCH_OUT:
        o->out = a->value;
        return 0;
    case BENCH_JSON:
        o->json = true;
        return 0;
    case BENCH_QUICK:
        o->quick = true;
        return 0;
    case BENCH_PREFER:
        o->prefer = true;
        return 0;
    case BENCH_SUBJECT:
        return add_subject(a, o);
    case BENCH_LIMIT:
        return args_number(a, "--limit", 1, 3600, &o->limit) != 0 ? 2 : 0;
    case BENCH_PLUGINS:
        subject_use_plugins(a->value);
        return check_folder(a, "--openmpi-plugins");
    default:
        *list = true;
        return 0;
    }
}

static int make_folder(const struct args *a, const struct options_bench *o)
{
    struct stat status;
    if (mkdir(o->out, 0777) != 0 && errno != EEXIST) {
        return args_error(a, "--out %s: %s; must be a folder, or one that can be made", o->out,
                          strerror(errno));
    }
    if (stat(o->out, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return args_error(a, "--out %s: is no folder", o->out);
    }
    return 0;
}

static int list_all(void)
{
    char why[256];
    printf("benches:\n");
    for (int i = 0; i < bench_table_size; i++) {
        printf("  %-20s %s (%s)\n", bench_table[i].name, bench_table[i].title, bench_table[i].unit);
    }
    printf("\nsubjects:\n");
    for (int i = 0; i < subject_table_size; i++) {
        const struct subject *s = &subject_table[i];
        int missing = subject_missing(s, why, sizeof(why));
        printf("  %-14s %s%s%s\n", s->name, s->meaning, missing ? "; not there: " : "",
               missing ? why : "");
    }
    return 0;
}

int command_bench(int argc, char **argv)
{
    struct args a = {.command = "bench",
                     .operands = "",
                     .summary = bench_summary,
                     .options = bench_options,
                     .count = sizeof(bench_options) / sizeof(bench_options[0]),
                     .argc = argc,
                     .argv = argv,
                     .next = 1};
    struct options_bench o = {.out = "bench-out", .limit = DEFAULT_LIMIT};
    bool list = false;
    int option;
    while ((option = args_next(&a)) >= 0) {
        int rc = parse_option(&a, option, &o, &list);
        if (rc != 0) {
            return rc;
        }
    }
    if (option != ARGS_END) {
        return option == ARGS_HELP ? 0 : 2;
    }
    if (a.next < argc) {
        return args_error(&a, "%s: takes no operand, only options; see pinwheel bench --help",
                          argv[a.next]);
    }
    if (list) {
        return list_all();
    }
    o.turn_seconds = o.quick ? QUICK_SECONDS : TURN_SECONDS;
    if (o.rounds == 0) {
        o.rounds = o.quick ? QUICK_ROUNDS : DEFAULT_ROUNDS;
    }
    int rc = make_folder(&a, &o);
    return rc == 0 ? conductor_run(&o) : rc;
}
