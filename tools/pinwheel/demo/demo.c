/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel demo`: checks its options, then starts itself as two ranks, each on a core of its own,
 * with the same options and the operands "rank CORES LIST": the number and the list of the cores
 * that the demo may use, which a rank that is bound to one of them cannot find out. The ranks do
 * the work (rank.c).
 */
#include "demo.h"
#include "pinwheel/commands.h"
#include "pinwheel/launch/launch.h"
#include "pinwheel/probe.h"
#include "pinwheel/util/args.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* on Debian the package base-files has it */
#define DEFAULT_FILE "/usr/share/common-licenses/GPL-3"
#define DEFAULT_WORDS "the,of,you,license,free,software,work,source,patent,freedom"
enum { ITERATIONS = 1000, QUICK_ITERATIONS = 60, QUICK_ROUNDS = 3 };

static const char demo_summary[] =
    "Starts two processes that talk Portals over Pinwheel, and shows\n"
    "  - ping-pong answered by the CPU, by a triggered put, and by handlers of the NIC that\n"
    "    store and forward or stream the message: times, and every byte compared;\n"
    "  - a file streamed through handlers that build a histogram of its bytes and count\n"
    "    words while it passes, compared with a plain count.\n"
    "Prints tables and draws DIR/pingpong.svg and DIR/histogram.svg. The exit status is 1\n"
    "if any byte or count is wrong.";

/* ---- Values ---- */

static int parse_size(const struct args *a, const char *text, size_t length, uint64_t *size)
{
    char *end;
    errno = 0;
    unsigned long long v = strtoull(text, &end, 10);
    if (length == 0 || text[0] < '0' || text[0] > '9' || end != text + length || errno != 0 ||
        v < 1 || v > DEMO_SIZE_MAX) {
        return args_bad(a, "must be MIN:MAX, two whole numbers from 1 to %d", DEMO_SIZE_MAX);
    }
    *size = v;
    return ARGS_GO_ON;
}

static int take_sizes(struct args *a, void *into)
{
    struct demo_options *o = into;
    const char *colon = strchr(a->value, ':');
    size_t first = strcspn(a->value, ":");
    if (colon == NULL) {
        return args_bad(a, "must be MIN:MAX, for instance 8:262144");
    }
    if (parse_size(a, a->value, first, &o->smallest) != ARGS_GO_ON ||
        parse_size(a, colon + 1, strlen(colon + 1), &o->largest) != ARGS_GO_ON) {
        return 2;
    }
    if (o->smallest > o->largest) {
        return args_bad(a,
                        "MIN must not be larger than MAX; %" PRIu64 ":%" PRIu64 " would be right",
                        o->largest, o->smallest);
    }
    return ARGS_GO_ON;
}

static int parse_word(const struct args *a, struct demo_options *o, const char *list,
                      const char *word, int length)
{
    switch (textscan_add(&o->filter, word, (uint64_t)length)) {
    case TEXTSCAN_ADDED:
        memcpy(o->words[o->filter.count - 1], word, (size_t)length);
        return 0;
    case TEXTSCAN_EMPTY:
        return args_error(a,
                          "--words \"%s\": has an empty word; must be words with a comma "
                          "between two, for instance free,software",
                          list);
    case TEXTSCAN_LONG:
        return args_error(a, "--words %s: the word \"%.*s\" has %d bytes; at most %d are possible",
                          list, length, word, length, TEXTSCAN_WORD_MAX);
    case TEXTSCAN_BYTE:
        return args_error(a, "--words %s: \"%.*s\" is no word; a word has letters and digits only",
                          list, length, word);
    case TEXTSCAN_TWICE:
        return args_error(a,
                          "--words %s: the word \"%.*s\" is listed twice (case does not "
                          "matter)",
                          list, length, word);
    default:
        return args_error(a, "--words %s: more than %d words", list, TEXTSCAN_WORDS);
    }
}

static int parse_words(const struct args *a, struct demo_options *o, const char *list)
{
    memset(&o->filter, 0, sizeof(o->filter));
    memset(o->words, 0, sizeof(o->words));
    for (const char *word = list;; word++) {
        size_t length = strcspn(word, ",");
        if (parse_word(a, o, list, word, length > 100000 ? 100000 : (int)length) != 0) {
            return 2;
        }
        word += length;
        if (*word == '\0') {
            return 0;
        }
    }
}

static int take_words(struct args *a, void *into)
{
    return parse_words(a, into, a->value) == 0 ? ARGS_GO_ON : 2;
}

#define AT(member) ARGS_AT(struct demo_options, member)

static const struct args_option demo_options[] = {
    {"--file", "PATH", "the file to stream (default " DEFAULT_FILE ")", ARGS_TEXT, AT(file)},
    {"--words", "WORD,...", "up to 16 words to count in it, whatever their case",
     .take = take_words},
    {"--sizes", "MIN:MAX", "bytes of a ping, doubled from MIN to MAX (default 8:262144)",
     .take = take_sizes},
    {"--iterations", "N", "pings of each way and size (default 1000, fewer where that takes long)",
     ARGS_NUMBER, AT(iterations), 1, 1000000},
    {"--out", "DIR", "folder for the plots, made if need be (default demo-out)", ARGS_TEXT,
     AT(out)},
    {"--json", NULL, "print JSON in place of tables", ARGS_FLAG, AT(json)},
    {"--quick", NULL, "60 pings of each way and size: a check, no measurement", ARGS_FLAG,
     AT(quick)},
};

static void set_rounds(struct demo_options *o)
{
    o->limited = o->iterations == 0;
    o->rounds = o->quick ? QUICK_ROUNDS : DEMO_ROUNDS;
    if (o->iterations == 0) {
        o->iterations = o->quick ? QUICK_ITERATIONS : ITERATIONS;
    }
    if (o->iterations < o->rounds) {
        o->rounds = (int)o->iterations;
    }
    /* all rounds have equally many iterations, rounded up */
    o->iterations = (o->iterations + o->rounds - 1) / o->rounds * o->rounds;
}

/* ---- Checks before anything starts ---- */

static int check_file(const struct args *a, const struct demo_options *o)
{
    struct stat status;
    if (stat(o->file, &status) != 0) {
        return args_error(a, "--file %s: %s; must be a file that can be read", o->file,
                          strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) {
        return args_error(a, "--file %s: is %s; must be a regular file", o->file,
                          S_ISDIR(status.st_mode) ? "a directory" : "no regular file");
    }
    int file = open(o->file, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        return args_error(a, "--file %s: %s; must be a file that can be read", o->file,
                          strerror(errno));
    }
    close(file);
    return 0;
}

static int make_folder(const struct args *a, const struct demo_options *o)
{
    struct stat status;
    if (strlen(o->out) > DEMO_PATH - 32) {
        return args_error(a, "--out: the path has %zu bytes; at most %d are possible",
                          strlen(o->out), DEMO_PATH - 32);
    }
    if (mkdir(o->out, 0777) != 0 && errno != EEXIST) {
        return args_error(a,
                          "--out %s: cannot be made: %s; must be a folder, or one that can be "
                          "made",
                          o->out, strerror(errno));
    }
    if (stat(o->out, &status) != 0 || !S_ISDIR(status.st_mode)) {
        return args_error(a, "--out %s: is no folder; must be a folder, or one that can be made",
                          o->out);
    }
    if (access(o->out, W_OK | X_OK) != 0) {
        return args_error(a, "--out %s: %s; must be a folder that can be written to", o->out,
                          strerror(errno));
    }
    return 0;
}

/* ---- The start ---- */

static int launch(const struct args *a)
{
    static char program[4096], cores[16], list[256];
    static char operand[] = "rank", demo[] = "demo";
    char **argv = calloc((size_t)a->argc + 5, sizeof(*argv));
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (argv == NULL || length < 0) {
        fprintf(stderr, "pinwheel demo: cannot find its own program: %s\n", strerror(errno));
        free(argv);
        return 1;
    }
    argv[0] = program;
    argv[1] = demo;
    for (int i = 1; i < a->argc; i++) {
        argv[i + 1] = a->argv[i];
    }
    snprintf(cores, sizeof(cores), "%d", probe_cores(list, sizeof(list)));
    argv[a->argc + 1] = operand;
    argv[a->argc + 2] = cores;
    argv[a->argc + 3] = list;
    struct launch l = {.size = 2, .argv = argv, .bind = LAUNCH_BIND_CORE};
    int status = launch_run(&l);
    free(argv);
    return status;
}

static int run(struct args *a, struct demo_options *o)
{
    set_rounds(o);
    bool rank =
        a->next + 3 == a->argc && strcmp(a->argv[a->next], "rank") == 0 && getenv("PMI_FD") != NULL;
    if (a->next < a->argc && !rank) {
        return args_error(a, "%s: takes no operand, only options; see pinwheel demo --help",
                          a->argv[a->next]);
    }
    if (rank) {
        o->cores = atoi(a->argv[a->next + 1]);
        o->core_list = a->argv[a->next + 2];
        return demo_rank(o);
    }
    int rc = check_file(a, o);
    rc = rc == 0 ? make_folder(a, o) : rc;
    return rc == 0 ? launch(a) : rc;
}

int command_demo(int argc, char **argv)
{
    struct args a = {
        .command = "demo", .operands = "", .summary = demo_summary, ARGS_OPTIONS(demo_options)};
    static struct demo_options o = {
        .file = DEFAULT_FILE, .out = "demo-out", .smallest = 8, .largest = 262144};
    int status = parse_words(&a, &o, DEFAULT_WORDS);
    status = status == 0 ? args_parse(&a, argc, argv, &o) : status;
    return status == ARGS_GO_ON ? run(&a, &o) : status;
}
