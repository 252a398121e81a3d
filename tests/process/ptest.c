/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The harness of the process tests; see ptest.h.
 *
 * One page (`shared`) is mapped before the first fork and reused by all cases.
 * The parent is the only one who waits for children, so it alone decides how a
 * case ended; children only leave notes in the page. A child that fails leaves
 * with _exit, so that no destructor can hang on what the test broke.
 */
#include "ptest.h"

#include "../own_network.h"
#include "portals4.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_FAILED = 1, EXIT_REFUSED = 3, EXIT_SKIPPED = 77 };

struct place {
    _Atomic(const char *) file;
    atomic_int line;
};

static struct shared {
    atomic_int arrived, generation;
    atomic_bool gone[PTEST_RANKS]; /* returned from the body, or reaped */
    struct place place[PTEST_RANKS];
    _Atomic uint64_t slot[PTEST_RANKS][PTEST_SLOTS];
    char skip[PTEST_RANKS][128];
} * shared;

static struct ptest_case *first, **last = &first;
static const struct ptest_case *current;
static int my_rank;
static void (*spread_ranks)(int ranks, void *life); /* in TWIN, else NULL */
void (*ptest_fence)(void);

void ptest_register(struct ptest_case *c)
{
    *last = c;
    last = &c->next;
}

int ptest_slow(void)
{
    const char *text = getenv("PTEST_SLOWDOWN");
    if (text != NULL && atoi(text) > 0) {
        return atoi(text);
    }
#if defined(__SANITIZE_ADDRESS__) || PTEST_TSAN
    return 4;
#else
    return 1;
#endif
}

uint64_t ptest_now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void ptest_sleep_ms(int ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&t, &t) != 0 && errno == EINTR) {
    }
}

static const char *base_name(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

void ptest_seen(const char *file, int line)
{
    atomic_store_explicit(&shared->place[my_rank].file, file, memory_order_relaxed);
    atomic_store_explicit(&shared->place[my_rank].line, line, memory_order_relaxed);
}

void ptest_fail(const char *file, int line, const char *format, ...)
{
    char text[1024], what[768];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    int n = snprintf(text, sizeof(text), "%s:%d: %s: rank %d: %s\n", base_name(file), line,
                     current->name, my_rank, what);
    if (write(STDERR_FILENO, text, (size_t)n) < 0) {
        /* nothing left to tell it to; the exit status still says so */
    }
    _exit(EXIT_FAILED);
}

void ptest_skip(const char *why)
{
    snprintf(shared->skip[my_rank], sizeof(shared->skip[my_rank]), "%s", why);
    _exit(EXIT_SKIPPED);
}

void ptest_check_eq(uint64_t got, uint64_t want, const char *got_text, const char *want_text,
                    const char *file, int line)
{
    if (got != want) {
        ptest_fail(file, line, "%s is %lld (0x%llx), not %s = %lld (0x%llx)", got_text,
                   (long long)got, (unsigned long long)got, want_text, (long long)want,
                   (unsigned long long)want);
    }
}

static const char *code_name(int code)
{
    static const char *const names[] = {"PTL_OK",         "PTL_ARG_INVALID",  "PTL_CT_NONE_REACHED",
                                        "PTL_EQ_DROPPED", "PTL_EQ_EMPTY",     "PTL_FAIL",
                                        "PTL_IGNORED",    "PTL_IN_USE",       "PTL_LIST_TOO_LONG",
                                        "PTL_NO_INIT",    "PTL_NO_SPACE",     "PTL_PID_IN_USE",
                                        "PTL_PT_FULL",    "PTL_PT_EQ_NEEDED", "PTL_PT_IN_USE",
                                        "PTL_ABORTED",    "PTL_INTERRUPTED"};
    return code >= 0 && code <= PTL_INTERRUPTED ? names[code] : "no PTL_ code";
}

void ptest_check_code(int got, int want, const char *text, const char *file, int line)
{
    if (got != want) {
        ptest_fail(file, line, "%s gives %s (%d), not %s", text, code_name(got), got,
                   code_name(want));
    }
}

static void wait_for_all(const char *file, int line)
{
    int generation = atomic_load(&shared->generation);
    if (atomic_fetch_add(&shared->arrived, 1) + 1 == current->nprocs) {
        atomic_store(&shared->arrived, 0);
        atomic_store(&shared->generation, generation + 1);
        return;
    }
    for (int spins = 0; atomic_load(&shared->generation) == generation; spins++) {
        for (int r = 0; r < current->nprocs; r++) {
            /* look again: the rank may have passed this barrier and ended */
            if (atomic_load(&shared->gone[r]) && atomic_load(&shared->generation) == generation) {
                ptest_fail(file, line, "waits at a barrier that rank %d has left out", r);
            }
        }
        if (spins < 50) {
            sched_yield();
        } else {
            struct timespec t = {0, 200000};
            nanosleep(&t, NULL);
        }
    }
}

void ptest_barrier(const char *file, int line)
{
    ptest_seen(file, line);
    if (ptest_fence != NULL) {
        ptest_fence();
    }
    wait_for_all(file, line);
    if (ptest_fence != NULL) {
        ptest_fence();
    }
}

void ptest_show(int slot, uint64_t value)
{
    atomic_store(&shared->slot[my_rank][slot], value);
}

uint64_t ptest_look(int rank, int slot)
{
    return atomic_load(&shared->slot[rank][slot]);
}

static unsigned char pattern(size_t i, unsigned seed)
{
    return (unsigned char)((seed * 167u + 13u) ^ (unsigned)(i * 7u) ^ (unsigned)(i >> 8));
}

void ptest_fill(void *buffer, size_t length, unsigned seed)
{
    unsigned char *b = buffer;
    for (size_t i = 0; i < length; i++) {
        b[i] = pattern(i, seed);
    }
}

void ptest_check_fill(const void *buffer, size_t length, unsigned seed, const char *text,
                      const char *file, int line)
{
    ptest_seen(file, line);
    const unsigned char *b = buffer;
    for (size_t i = 0; i < length; i++) {
        if (b[i] != pattern(i, seed)) {
            ptest_fail(file, line, "byte %zu of %zu of %s is 0x%02x, not 0x%02x", i, length, text,
                       b[i], pattern(i, seed));
        }
    }
}

void ptest_check_bytes(const void *buffer, size_t length, unsigned char value, const char *text,
                       const char *file, int line)
{
    ptest_seen(file, line);
    const unsigned char *b = buffer;
    for (size_t i = 0; i < length; i++) {
        if (b[i] != value) {
            ptest_fail(file, line, "byte %zu of %zu of %s is 0x%02x, not 0x%02x", i, length, text,
                       b[i], value);
        }
    }
}

struct ptest_life {
    struct shared *shared;
    const char *name; /* of the case */
};

/* Of this rank's copy of the harness and of the cases, where there is one for each. */
void ptest_life(const struct ptest_life *life, int rank)
{
    shared = life->shared;
    my_rank = rank;
    for (current = first; strcmp(current->name, life->name) != 0;) {
        current = current->next;
    }
    current->body(rank, current->nprocs, current->kind);
    atomic_store(&shared->gone[rank], true);
}

void ptest_refuse(const char *function)
{
    if (current->own_process == NULL) {
        fprintf(stderr, "%s: rank %d calls %s(), which acts on its whole process: PTEST_OWN\n",
                current->name, my_rank, function);
    }
    _exit(EXIT_REFUSED);
}

_Noreturn static void run_child(const struct ptest_case *c, int rank)
{
    struct ptest_life life = {shared, c->name};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (spread_ranks != NULL) {
        spread_ranks(c->nprocs, &life);
    } else {
        ptest_life(&life, rank);
    }
    exit(0); /* not _exit: leak checkers report at exit */
}

static void kill_all(const pid_t *pids, int n)
{
    for (int i = 0; i < n; i++) {
        if (pids[i] > 0) {
            kill(pids[i], SIGKILL);
        }
    }
    for (int i = 0; i < n; i++) {
        if (pids[i] > 0) {
            waitpid(pids[i], NULL, 0);
        }
    }
}

static void report_hang(const pid_t *pids, const struct ptest_case *c, int limit_s)
{
    fprintf(stderr, "%s: not finished after %d s\n", c->name, limit_s);
    for (int r = 0; r < c->nprocs; r++) {
        const char *file = atomic_load(&shared->place[r].file);
        if (pids[spread_ranks != NULL ? 0 : r] > 0 && !atomic_load(&shared->gone[r])) {
            fprintf(stderr, "    rank %d hangs, last seen at %s:%d\n", r,
                    file != NULL ? base_name(file) : "the start",
                    atomic_load(&shared->place[r].line));
        }
    }
}

enum outcome { PASSED, FAILED, SKIPPED };

/* Takes the end of one child, if there is one; -1 if there is none. */
static int reap(pid_t *pids, const struct ptest_case *c, enum outcome *outcome)
{
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid <= 0) {
        return -1;
    }
    int rank = 0;
    while (rank < c->nprocs && pids[rank] != pid) {
        rank++;
    }
    if (rank == c->nprocs) {
        return 0;
    }
    pids[rank] = 0;
    atomic_store(&shared->gone[rank], true);
    if (WIFSIGNALED(status)) {
        const char *file = atomic_load(&shared->place[rank].file);
        fprintf(stderr, "%s: rank %d died of signal %d (%s), last seen at %s:%d\n", c->name, rank,
                WTERMSIG(status), strsignal(WTERMSIG(status)),
                file != NULL ? base_name(file) : "the start",
                atomic_load(&shared->place[rank].line));
        *outcome = FAILED;
    } else if (WEXITSTATUS(status) == EXIT_REFUSED && c->own_process != NULL) {
        snprintf(shared->skip[0], sizeof(shared->skip[0]), "it %s", c->own_process);
        *outcome = SKIPPED;
    } else if (WEXITSTATUS(status) == EXIT_SKIPPED && *outcome == PASSED) {
        *outcome = SKIPPED;
    } else if (WEXITSTATUS(status) != 0 && WEXITSTATUS(status) != EXIT_SKIPPED) {
        if (WEXITSTATUS(status) != EXIT_FAILED) {
            fprintf(stderr, "%s: rank %d left with exit status %d\n", c->name, rank,
                    WEXITSTATUS(status));
        }
        *outcome = FAILED;
    }
    return 1;
}

static enum outcome run_case(const struct ptest_case *c)
{
    pid_t pids[PTEST_RANKS] = {0};
    memset(shared, 0, sizeof(*shared));
    current = c;
    fflush(NULL);
    int processes = spread_ranks != NULL ? 1 : c->nprocs;
    for (int rank = 0; rank < processes; rank++) {
        pids[rank] = fork();
        if (pids[rank] == 0) {
            run_child(c, rank);
        }
        if (pids[rank] < 0) {
            fprintf(stderr, "%s: fork: %s\n", c->name, strerror(errno));
            kill_all(pids, rank);
            return FAILED;
        }
    }
    int limit_s = c->limit_s * ptest_slow();
    uint64_t end = ptest_now_ms() + (uint64_t)limit_s * 1000;
    enum outcome outcome = PASSED;
    for (int left = processes; left > 0;) {
        int got = reap(pids, c, &outcome);
        if (got >= 0) {
            left -= got;
        } else if (ptest_now_ms() > end) {
            report_hang(pids, c, limit_s);
            outcome = FAILED;
        } else {
            ptest_sleep_ms(1);
        }
        if (outcome == FAILED) {
            kill_all(pids, c->nprocs);
            break;
        }
    }
    if (spread_ranks != NULL && c->own_process != NULL && outcome == PASSED) {
        fprintf(stderr, "%s: its row says that it %s, but it calls nothing of that kind\n", c->name,
                c->own_process);
        outcome = FAILED;
    }
    return outcome;
}

static const char *skip_reason(void)
{
    int rank = 0;
    while (rank < PTEST_RANKS - 1 && shared->skip[rank][0] == '\0') {
        rank++;
    }
    return shared->skip[rank];
}

static bool chosen(const struct ptest_case *c, int argc, char **argv)
{
    if (spread_ranks != NULL && c->nprocs == 1) {
        return false;
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], c->name) == 0) {
            return true;
        }
    }
    return argc <= 1;
}

int ptest_run(int argc, char **argv, void (*spread)(int ranks, void *life))
{
    int count[3] = {0};
    spread_ranks = spread;
    if (argc == 2 && strcmp(argv[1], "-l") == 0) {
        for (struct ptest_case *c = first; c != NULL; c = c->next) {
            bool own = spread != NULL && c->own_process != NULL;
            if (spread == NULL || c->nprocs > 1) {
                printf("%s%s%s\n", c->name, own ? " # it " : "", own ? c->own_process : "");
            }
        }
        return 0;
    }
    if (!own_network()) {
        return 1;
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("mmap of the shared page");
        return 1;
    }
    for (struct ptest_case *c = first; c != NULL; c = c->next) {
        if (!chosen(c, argc, argv)) {
            continue;
        }
        uint64_t start = ptest_now_ms();
        enum outcome outcome = run_case(c);
        count[outcome]++;
        static const char *const names[] = {"ok    ", "FAILED", "skip  "};
        printf("%s %s (%d processes, %llu ms)%s%s\n", names[outcome], c->name, c->nprocs,
               (unsigned long long)(ptest_now_ms() - start), outcome == SKIPPED ? ": " : "",
               outcome == SKIPPED ? skip_reason() : "");
        fflush(stdout);
    }
    if (count[PASSED] + count[FAILED] + count[SKIPPED] == 0) {
        fprintf(stderr, "%s: no such case; %s -l lists them\n", argv[1], argv[0]);
        return 1;
    }
    if (count[SKIPPED] > 0) {
        printf("%d skipped\n", count[SKIPPED]);
    }
    printf("%d passed, %d failed\n", count[PASSED], count[FAILED]);
    return count[FAILED] != 0;
}

int main(int argc, char **argv)
{
    return ptest_run(argc, argv, NULL);
}
