/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel bench`: checks its options before anything is started. The benchmarks are in bench/.
 */
#include "commands.h"
#include "conductor.h"
#include "pinwheel/util/args.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DEFAULT_ROUNDS 11
#define QUICK_ROUNDS 3
#define DEFAULT_LIMIT 30 /* seconds; the launcher of an MPI needs one or two */
#define TURN_SECONDS 5e-3
#define QUICK_SECONDS 1e-3

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

static int take_names(const struct args *a, const char **names,
                      bool (*known)(const char *name, size_t length))
{
    *names = a->value;
    for (const char *at = a->value;; at++) {
        size_t length = strcspn(at, ",");
        if (!known(at, length)) {
            return args_bad(a, "there is no \"%.*s\"; pinwheel bench --list names all",
                            length > 100 ? 100 : (int)length, at);
        }
        at += length;
        if (*at == '\0') {
            return ARGS_GO_ON;
        }
    }
}

static int take_benches(struct args *a, void *into)
{
    return take_names(a, into, is_bench);
}

static int take_peers(struct args *a, void *into)
{
    return take_names(a, into, is_peer);
}

static int take_sizes(struct args *a, void *into)
{
    struct options_bench *o = into;
    o->size_count = 0;
    for (const char *at = a->value;; at++) {
        char *end;
        errno = 0;
        unsigned long long size = strtoull(at, &end, 10);
        if (*at < '0' || *at > '9' || (*end != ',' && *end != '\0') || errno != 0 || size < 1 ||
            size > TURN_SIZE_MAX) {
            return args_bad(a, "must be whole numbers from 1 to %d, commas between", TURN_SIZE_MAX);
        }
        if (o->size_count == SIZES_MAX) {
            return args_error(a, "--sizes: more than %d sizes", SIZES_MAX);
        }
        o->sizes[o->size_count++] = size;
        at = end;
        if (*at == '\0') {
            return ARGS_GO_ON;
        }
    }
}

static int take_subject(struct args *a, void *into)
{
    struct options_bench *o = into;
    const char *equals = strchr(a->value, '=');
    if (equals == NULL || equals == a->value || equals[1] == '\0') {
        return args_bad(a, "must be NAME=COMMAND");
    }
    if (o->extra_count == EXTRA_MAX) {
        return args_error(a, "--subject: at most %d are possible", EXTRA_MAX);
    }
    o->extra[o->extra_count++] = a->value;
    return ARGS_GO_ON;
}

/* Takes the folder of plug-ins. It must be an absolute path, since mpirun may start its ranks in
 * another folder. */
static int take_plugins(struct args *a, void *into)
{
    struct stat status;
    subject_use_plugins(a->value);
    if (a->value[0] != '/') {
        return args_bad(a, "must begin with /");
    }
    return stat(a->value, &status) == 0 && S_ISDIR(status.st_mode) ? ARGS_GO_ON
                                                                   : args_bad(a, "is no folder");
}

#define AT(member) ARGS_AT(struct options_bench, member)

static const struct args_option bench_options[] = {
    {"--rounds", "N", "turns of each subject at each work (default 11)", ARGS_NUMBER, AT(rounds), 1,
     ROUNDS_MAX},
    {"--bench", "NAME,...", "only these benches (default all; --list names them)", 0, AT(benches),
     .take = take_benches},
    {"--peers", "NAME,...", "only these peers, or none (default all)", 0, AT(peers),
     .take = take_peers},
    {"--sizes", "BYTES,...", "sizes of messages, up to 4194304", .take = take_sizes},
    {"--out", "DIR", "folder for bench.svg, made if need be (default bench-out)", ARGS_TEXT,
     AT(out)},
    {"--json", NULL, "print JSON in place of tables", ARGS_FLAG, AT(json)},
    {"--quick", NULL, "3 rounds of 1 ms, few sizes: a check, no measurement", ARGS_FLAG, AT(quick)},
    {"--prefer", NULL, "root: before all other work (autogroup of nice -20)", ARGS_FLAG,
     AT(prefer)},
    {"--subject", "NAME=COMMAND", "one more peer: a program that takes turns; may be repeated",
     .take = take_subject},
    {"--limit", "SECONDS", "that a subject may take to start, a tenth for a turn (default 30)",
     ARGS_NUMBER, AT(limit), 1, 3600},
    {"--openmpi-plugins", "DIR",
     "Open MPI's portals4 components over Pinwheel (default the build tree's)",
     .take = take_plugins},
    {"--list", NULL, "list benches and subjects, and what is not there", ARGS_FLAG, AT(list)},
};

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
    struct args a = {
        .command = "bench", .operands = "", .summary = bench_summary, ARGS_OPTIONS(bench_options)};
    struct options_bench o = {.out = "bench-out", .limit = DEFAULT_LIMIT};
    int status = args_parse(&a, argc, argv, &o);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (a.next < argc) {
        return args_error(&a, "%s: takes no operand, only options; see pinwheel bench --help",
                          argv[a.next]);
    }
    if (o.list) {
        return list_all();
    }
    o.turn_seconds = o.quick ? QUICK_SECONDS : TURN_SECONDS;
    if (o.rounds == 0) {
        o.rounds = o.quick ? QUICK_ROUNDS : DEFAULT_ROUNDS;
    }
    int rc = make_folder(&a, &o);
    return rc == 0 ? conductor_run(&o) : rc;
}
