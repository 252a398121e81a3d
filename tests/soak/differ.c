/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random programs of operations, each by itself, in several ways: alone or between two processes,
 * with fast paths, without, and with them on one side. Each must come to what the model of
 * lists.h says, which walks its lists and keeps nothing else; so they all come to the same.
 *
 *     soak_differ FIRST COUNT ROUNDS [--as-is | --keep LANE.ACT,...] WAY...
 *
 * A program is drawn from its seed, FIRST and the COUNT - 1 that follow, and its acts each from the
 * seed and its number. So one that fails is made shorter by leaving out acts while it fails; the
 * line for the rest is printed, with which it can be run again; --as-is leaves it as it is.
 */
#include "children.h"
#include "counters.h"
#include "lists.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ACTS_MAX = 1 << 14, SHORTER_RUNS = 400, PATIENCE_S = 20, SHORTER_PATIENCE_S = 3 };

/* How many processes; which has fast paths: on if its bit is set; how many rounds in a hundred send
 * triggered messages. Processes apart send nothing to themselves. */
static const struct way {
    const char *name;
    unsigned processes, fast, triggers;
    bool apart;
} ways[] = {{"self-on", 1, 1, 15, false},       {"self-off", 1, 0, 15, false},
            {"pair-on", 2, 3, 15, false},       {"pair-off", 2, 0, 15, false},
            {"on-to-off", 2, 1, 15, false},     {"off-to-on", 2, 2, 15, false},
            {"direct-on", 1, 1, 0, false},      {"direct-off", 1, 0, 0, false},
            {"apart-on", 2, 3, 0, true},        {"apart-off", 2, 0, 0, true},
            {"triggered-on", 1, 1, 100, false}, {"triggered-off", 1, 0, 100, false}};
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

static struct shared {
    struct meeting meeting;
    atomic_bool failed;
    bool quiet, dropped[2][ACTS_MAX];
    _Atomic unsigned acts[2], rounds; /* that were begun */
} * shared;
static const struct way *way;
static unsigned rounds, round_number;

void fail(const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (!atomic_exchange(&shared->failed, true) && !shared->quiet) {
        fprintf(stderr, "seed %llu, %s, round %u, process %d: %s\n", (unsigned long long)seed,
                way->name, round_number, me, text);
    }
    _exit(1);
}

static bool is_kept(unsigned number, unsigned act)
{
    if (act >= ACTS_MAX) {
        fail("the program is too long");
    }
    atomic_store(&shared->acts[number], act + 1);
    return !shared->dropped[number][act];
}

/* ---- one program ---- */

static void meet(void)
{
    pthread_barrier_wait(&shared->meeting.meet);
    if (atomic_load(&shared->failed)) {
        _exit(1);
    }
}

static void each_lane(void (*what)(struct lane *l))
{
    for (unsigned i = 0; i < lanes; i++) {
        what(&lane[i]);
    }
}

/* Most rounds go where the one before went: that is what is remembered there. */
static void choose(struct lane *l)
{
    (void)act_begins(l);
    if (round_number == 0 || percent(&l->random, 35)) {
        l->target = (int)splitmix_below(&l->random, processes);
        l->kind = splitmix_below(&l->random, KINDS);
    }
    l->target = way->apart ? 1 - l->process : l->target;
}

static void run(int number)
{
    static const unsigned spices[] = {100, 40, 10};
    me = number;
    lanes = processes = way->processes;
    setenv("PINWHEEL_FASTPATH", (way->fast >> me & 1) != 0 ? "on" : "off", 1);
    setenv("PINWHEEL_LOG", "error", 0); /* what is refused is tried on purpose */
    keeps_act = is_kept;
    spice = spices[seed % 3];
    hushed = seed % 4 == 3;
    open_all(&shared->meeting);
    for (unsigned i = 0; i < lanes; i++) {
        lane[i].triggers = way->triggers;
    }
    for (round_number = 0; round_number < rounds; round_number++) {
        atomic_store(&shared->rounds, round_number + 1);
        each_lane(choose);
        each_lane(change_site);
        meet();
        each_lane(send_messages);
        each_lane(counters_round);
        each_lane(check_initiator);
        meet(); /* all messages have arrived */
        each_lane(check_target);
        meet();
        check_registers();
    }
    meet();
    PtlFini();
}

static bool succeeds(void)
{
    pthread_barrierattr_t attr;
    if (pthread_barrierattr_init(&attr) != 0 ||
        pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED) != 0 ||
        pthread_barrier_init(&shared->meeting.meet, &attr, way->processes) != 0) {
        perror("soak_differ");
        exit(2);
    }
    atomic_store(&shared->failed, false);
    pid_t child[2] = {0, 0};
    for (unsigned i = 0; i < way->processes; i++) {
        child[i] = child_begin((int)i, run);
    }
    int status = children_wait(child, way->processes);
    if (WIFSIGNALED(status) && !shared->quiet) {
        fprintf(stderr, "seed %llu, %s: a process ended by signal %d\n", (unsigned long long)seed,
                way->name, WTERMSIG(status));
    }
    return status == 0;
}

/* ---- a shorter one ---- */

static void set_dropped(unsigned first, unsigned n, bool dropped[], bool value)
{
    for (unsigned i = first; i < first + n; i++) {
        dropped[i] = value;
    }
}

/* Leaves out runs of acts of a lane, half as long each time, as long as the program fails. */
static unsigned shorten_lane(unsigned number, unsigned left)
{
    bool *dropped = shared->dropped[number], before[ACTS_MAX];
    unsigned acts = atomic_load(&shared->acts[number]);
    for (unsigned n = acts; n > 0 && left > 0; n /= 2) {
        for (unsigned at = 0; at < acts && left > 0; at += n) {
            unsigned here = at + n < acts ? n : acts - at;
            if (memchr(dropped + at, false, here) == NULL) {
                continue;
            }
            memcpy(before, dropped, sizeof(before));
            set_dropped(at, here, dropped, true);
            left--;
            if (succeeds()) {
                memcpy(dropped, before, sizeof(before));
            }
        }
    }
    return left;
}

static void print_kept(void)
{
    const char *comma = "";
    for (unsigned l = 0; l < way->processes; l++) {
        for (unsigned a = 0; a < atomic_load(&shared->acts[l]); a++) {
            if (!shared->dropped[l][a]) {
                fprintf(stderr, "%s%u.%u", comma, l, a);
                comma = ",";
            }
        }
    }
}

static void shorten(void)
{
    unsigned acts[2] = {atomic_load(&shared->acts[0]), atomic_load(&shared->acts[1])};
    shared->quiet = true;
    patience_s = SHORTER_PATIENCE_S;
    rounds = atomic_load(&shared->rounds); /* what came behind does not matter */
    unsigned left = SHORTER_RUNS;
    for (unsigned l = way->processes; l-- > 0;) {
        atomic_store(&shared->acts[l], acts[l]);
        left = shorten_lane(l, left);
    }
    shared->quiet = false;
    fprintf(stderr, "to run it again: soak_differ %llu 1 %u --keep ", (unsigned long long)seed,
            rounds);
    print_kept();
    fprintf(stderr, " %s\n", way->name);
    (void)succeeds();
}

/* ---- all ---- */

/* Leaves out all but those of a list LANE.ACT,...; false: it is none. */
static bool keep_only(const char *list)
{
    memset(shared->dropped, true, sizeof(shared->dropped));
    for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
        unsigned l, a;
        if (sscanf(at, "%u.%u", &l, &a) != 2 || l > 1 || a >= ACTS_MAX) {
            return false;
        }
        shared->dropped[l][a] = false;
    }
    return true;
}

static const struct way *find_way(const char *name)
{
    for (unsigned i = 0; i < WAYS; i++) {
        if (strcmp(ways[i].name, name) == 0) {
            return &ways[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("soak_differ");
        return 2;
    }
    bool kept = argc > 5 && strcmp(argv[4], "--keep") == 0;
    bool as_is = kept || (argc > 4 && strcmp(argv[4], "--as-is") == 0);
    bool good = argc > 4 && (!kept || keep_only(argv[5]));
    int first_way = kept ? 6 : as_is ? 5 : 4;
    for (int i = first_way; i < argc; i++) {
        good = good && find_way(argv[i]) != NULL;
    }
    if (!good || first_way >= argc) {
        fprintf(stderr, "usage: %s FIRST COUNT ROUNDS [--as-is | --keep LANE.ACT,...] WAY...\n",
                argv[0]);
        return 2;
    }
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    rounds = (unsigned)atoi(argv[3]);
    patience_s = PATIENCE_S;
    for (seed = first; seed < first + count; seed++) {
        for (int i = first_way; i < argc; i++) {
            way = find_way(argv[i]);
            if (!succeeds()) {
                if (!as_is) {
                    shorten();
                }
                return 1;
            }
        }
    }
    return 0;
}
