/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast `pinwheel goal run` is.
 *
 *     goal_bench PINWHEEL [--folder DIR] [--rounds N] [CASE...]
 *
 * Each case is a schedule that `pinwheel goal gen` makes in DIR. A round is a run
 * of each of its sizes and, beside it, of a fixed heap that tells how fast the
 * machine is at that moment. Reported are medians of N rounds (7):
 *
 *   CPU      user and system time of the whole process, from exec to exit
 *   events   operations and messages, with --nic events of NICs and network, per second of CPU time
 *   heap     ns for a push and a pop on a binary heap of 131072 events of 16 bytes
 *   memory   highest sum of anonymous and privately dirtied pages that was seen,
 *            looked at every 2 ms, by operation
 *
 * The schedule lies in the page cache: it is read once before.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { WORDS = 12, SIZES = 2, ROUNDS_MOST = 99, HEAP = 131072, HEAP_STEPS = 1000000 };

/* The arguments of `goal gen` and `goal run`; a size takes the place of "N". */
struct bench_case {
    const char *name;
    const char *gen[WORDS];
    const char *run[WORDS];
    uint32_t sizes[SIZES]; /* 0: only one */
    double target;         /* million events per second; 0: none */
};

#define CALCS "--random-calc", "500000", "--seed", "7"
#define LATE "--late", "100000000"

static const struct bench_case cases[] = {
    {"dissemination", {"dissemination", "--size", "1", "--ranks", "N"}, {NULL}, {131072}, 14},
    {"random_calc",
     {"dissemination", "--size", "1", CALCS, "--ranks", "N"},
     {"--calc-unit", "ps"},
     {131072},
     2.5},
    {"threads", {"dissemination", "--size", "1", "--ranks", "N"}, {"--threads", "2"}, {131072}, 0},
    {"loggopsim",
     {"dissemination", "--size", "1", "--ranks", "N"},
     {"--model", "loggopsim"},
     {131072},
     0},
    {"alltoall_forward", {"linear_alltoall", "--ranks", "N"}, {NULL}, {512, 1024}, 5},
    {"alltoall_reverse",
     {"linear_alltoall", "--order", "reverse", "--ranks", "N"},
     {NULL},
     {512, 1024},
     5},
    {"alltoall_shuffled",
     {"linear_alltoall", "--order", "shuffled", "--ranks", "N"},
     {NULL},
     {512, 1024},
     5},
    {"incast_early", {"incast", "--ranks", "N"}, {NULL}, {65537, 131073}, 5},
    {"incast_early_shuffled",
     {"incast", "--order", "shuffled", "--ranks", "N"},
     {NULL},
     {65537, 131073},
     5},
    {"incast_early_any", {"incast", "--any-source", "--ranks", "N"}, {NULL}, {65537, 131073}, 5},
    {"incast_late", {"incast", LATE, "--ranks", "N"}, {NULL}, {65537, 131073}, 5},
    {"incast_late_shuffled",
     {"incast", "--order", "shuffled", LATE, "--ranks", "N"},
     {NULL},
     {65537, 131073},
     5},
    {"incast_late_any",
     {"incast", "--any-source", LATE, "--ranks", "N"},
     {NULL},
     {65537, 131073},
     5},
    {"broadcast", {"binomialtreebcast", "--ranks", "N"}, {NULL}, {4194304}, 0},
    {"nic_broadcast",
     {"binomialtreebcast", "--ranks", "N"},
     {"--nic", "discrete", "--network", "fattree:radix=36,levels=4"},
     {65536, 131072},
     0},
    {"nic_alltoall",
     {"linear_alltoall", "--order", "shuffled", "--ranks", "N"},
     {"--nic", "discrete"},
     {256, 512},
     0},
    {"nic_incast_late_any",
     {"incast", "--any-source", LATE, "--ranks", "N"},
     {"--nic", "discrete", "--network", "fattree:radix=36,levels=4"},
     {65537, 131073},
     0},
};

enum { CASES = sizeof(cases) / sizeof(cases[0]) };

struct bench {
    const char *pinwheel;
    const char *folder;
    int rounds;
};

struct measured {
    double cpu, elapsed; /* seconds */
    uint64_t memory;     /* bytes */
};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ---- The heap ---- */

struct item {
    uint64_t time, value;
};

/* ns for a pop and a push; times are random, as a simulation's might be. */
static double heap_ns(void)
{
    static struct item heap[HEAP];
    uint64_t x = 88172645463325252u, sum = 0;
    for (uint64_t i = 0; i < HEAP; i++) {
        heap[i] = (struct item){i, i}; /* in order, so a heap */
    }
    double begin = seconds();
    for (int n = 0; n < HEAP_STEPS; n++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        struct item new = {heap[0].time + x % HEAP, heap[0].value};
        size_t i = 0;
        for (size_t child = 1; child < HEAP; child = 2 * i + 1) {
            child += child + 1 < HEAP && heap[child + 1].time < heap[child].time;
            if (new.time <= heap[child].time) {
                break;
            }
            heap[i] = heap[child];
            i = child;
        }
        heap[i] = new;
        sum += heap[0].value;
    }
    double ns = (seconds() - begin) * 1e9 / HEAP_STEPS;
    return sum > 0 ? ns : 0;
}

/* ---- Running the command ---- */

static int add_words(const char *const *from, const char **to, int count, const char *size)
{
    for (int i = 0; i < WORDS && from[i] != NULL; i++) {
        to[count++] = strcmp(from[i], "N") == 0 ? size : from[i];
    }
    return count;
}

/* Anonymous and privately dirtied bytes of a process. */
static uint64_t memory_of(pid_t pid)
{
    char path[64], line[256];
    unsigned long long anonymous = 0, kib;
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    FILE *f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        /* Pages that are dirtied in a private mapping of a file are anonymous from then on. */
        if (sscanf(line, "Anonymous: %llu kB", &kib) == 1) {
            anonymous = kib;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return 1024 * anonymous;
}

static pid_t start(const char *const *words, const char *output)
{
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC, 0666);
        if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) {
            _exit(126);
        }
        execv(words[0], (char *const *)(uintptr_t)words);
        _exit(127);
    }
    return pid;
}

/* Runs a command; `watch` looks at its memory, which costs it time. */
static int measure(const char *const *words, const char *output, bool watch, struct measured *m)
{
    int status;
    struct rusage use;
    double begin = seconds();
    pid_t pid = start(words, output);
    m->memory = 0;
    siginfo_t ended = {.si_pid = 0};
    while (watch && waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ended.si_pid == 0) {
        uint64_t now = memory_of(pid);
        m->memory = now > m->memory ? now : m->memory;
        usleep(2000);
    }
    if (pid < 0 || wait4(pid, &status, 0, &use) != pid) {
        perror("goal_bench");
        return -1;
    }
    m->elapsed = seconds() - begin;
    m->cpu = (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
             1e-6 * (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "goal_bench: %s %s %s failed\n", words[0], words[1], words[2]);
        return -1;
    }
    return 0;
}

/* A number from the JSON that a run wrote. */
static uint64_t number_in(const char *path, const char *name)
{
    char line[256], pattern[64];
    uint64_t number = 0;
    FILE *f = fopen(path, "r");
    snprintf(pattern, sizeof(pattern), " \"%s\": %%" SCNu64, name);
    while (f != NULL && number == 0 && fgets(line, sizeof(line), f) != NULL) {
        (void)sscanf(line, pattern, &number);
    }
    if (f != NULL) {
        fclose(f);
    }
    return number;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof(*values), compare);
    return values[count / 2];
}

/* ---- Cases ---- */

struct size_result {
    double cpu[ROUNDS_MOST], elapsed[ROUNDS_MOST], generated;
    uint64_t events, operations, memory;
};

static int prepare(const struct bench *b, const struct bench_case *c, uint32_t size,
                   const char *file, struct size_result *r)
{
    char number[16], output[512];
    struct measured m;
    const char *words[3 * WORDS] = {b->pinwheel, "goal", "gen"};
    snprintf(number, sizeof(number), "%u", size);
    snprintf(output, sizeof(output), "%s/out.txt", b->folder);
    int count = add_words(c->gen, words, 3, number);
    words[count++] = "-o";
    words[count] = file;
    if (measure(words, output, false, &m) != 0) {
        return -1;
    }
    r->generated = m.elapsed;
    const char *json[3 * WORDS] = {b->pinwheel, "goal", "run", file, "--json"};
    add_words(c->run, json, 5, number);
    if (measure(json, output, true, &m) != 0) {
        return -1;
    }
    r->memory = m.memory;
    r->events = number_in(output, "events");
    r->operations = number_in(output, "operations");
    return 0;
}

static int run_case(const struct bench *b, const struct bench_case *c)
{
    static struct size_result results[SIZES];
    double heap[ROUNDS_MOST], rate[SIZES] = {0};
    char file[SIZES][512], output[512];
    snprintf(output, sizeof(output), "%s/out.txt", b->folder);
    for (int s = 0; s < SIZES && c->sizes[s] != 0; s++) {
        snprintf(file[s], sizeof(file[s]), "%s/%s-%u.bin", b->folder, c->name, c->sizes[s]);
        if (prepare(b, c, c->sizes[s], file[s], &results[s]) != 0) {
            return -1;
        }
    }
    for (int round = 0; round < b->rounds; round++) {
        heap[round] = heap_ns();
        for (int s = 0; s < SIZES && c->sizes[s] != 0; s++) {
            struct measured m;
            const char *words[3 * WORDS] = {b->pinwheel, "goal", "run", file[s]};
            add_words(c->run, words, 4, NULL);
            if (measure(words, output, false, &m) != 0) {
                return -1;
            }
            results[s].cpu[round] = m.cpu;
            results[s].elapsed[round] = m.elapsed;
        }
    }
    for (int s = 0; s < SIZES && c->sizes[s] != 0; s++) {
        struct size_result *r = &results[s];
        double cpu = median(r->cpu, b->rounds);
        rate[s] = (double)r->events / cpu / 1e6;
        printf("%-22s %8u %10" PRIu64 " %8.4f %8.4f %7.2f %7.1f %7.1f", c->name, c->sizes[s],
               r->events, cpu, median(r->elapsed, b->rounds), rate[s],
               (double)r->memory / (double)r->operations, median(heap, b->rounds));
        if (c->target > 0) {
            printf("  %s %g", rate[s] >= c->target ? "meets" : "MISSES", c->target);
        }
        if (s > 0) {
            printf(", per event %.2f of the half size", rate[0] / rate[s]);
        }
        if (strcmp(c->name, "broadcast") == 0) {
            printf("  generated in %.2f s", r->generated);
        }
        putchar('\n');
        fflush(stdout);
        unlink(file[s]);
    }
    return 0;
}

static bool chosen(const struct bench_case *c, char **names, int count)
{
    bool found = count == 0;
    for (int i = 0; i < count; i++) {
        found |= strcmp(names[i], c->name) == 0;
    }
    return found;
}

int main(int argc, char **argv)
{
    struct bench b = {.pinwheel = argc > 1 ? argv[1] : "", .folder = "/tmp", .rounds = 7};
    int next = 2;
    while (next + 1 < argc && argv[next][0] == '-') {
        if (strcmp(argv[next], "--folder") == 0) {
            b.folder = argv[next + 1];
        } else if (strcmp(argv[next], "--rounds") == 0) {
            b.rounds = atoi(argv[next + 1]);
        } else {
            break;
        }
        next += 2;
    }
    if (argc < 2 || b.rounds < 1 || b.rounds > ROUNDS_MOST ||
        (next < argc && argv[next][0] == '-')) {
        fprintf(stderr, "usage: goal_bench PINWHEEL [--folder DIR] [--rounds N] [CASE...]\n");
        return 2;
    }
    printf("%-22s %8s %10s %8s %8s %7s %7s %7s\n", "case", "size", "events", "CPU s", "s", "M/s",
           "B/op", "heap ns");
    for (int i = 0; i < CASES; i++) {
        if (chosen(&cases[i], argv + next, argc - next) && run_case(&b, &cases[i]) != 0) {
            return 1;
        }
    }
    return 0;
}
