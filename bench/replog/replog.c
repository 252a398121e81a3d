/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A replicated log of three processes that handlers keep (replog_handlers.c): what it does while
 * one follower is stopped, beside what it does while all run.
 *
 *      $ build/bench/bench_replog [--wait] [TURNS [RECORDS]]
 *
 * A record is committed when the leader and one follower hold it. The leader's program appends
 * RECORDS in a turn, WINDOW of them before they are committed. Turns with all running and with one
 * follower stopped alternate, and the stopped one gets what it has missed in between, which is not
 * measured. At the end the logs are compared. With --wait the puts of the leader's handlers wait
 * for places, for comparison.
 */
#include "replog.h"

#include <errno.h>
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

enum { WINDOW = 32, MOST_TURNS = 1000, SIDES = 2, INDEX = 4, PATIENCE_S = 50 };

/* What the processes share besides the log. */
struct common {
    _Atomic unsigned arrived;
    ptl_process_t id[REPLOG_RANKS];
    pid_t pid[REPLOG_RANKS];
};

struct member {
    struct common *common;
    unsigned rank;
    ptl_handle_ni_t ni;
    ptl_handle_ct_t ct; /* of what arrives */
};

static struct replog the_log;

__attribute__((format(printf, 1, 2), noreturn)) static void fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("bench_replog: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    _exit(1);
}

static void check(int code, const char *call)
{
    if (code != PTL_OK) {
        fail("%s gave %d", call, code);
    }
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* The n-th time that all meet. Only the library's thread serves a process that waits here. */
static void meet(struct common *c, unsigned n)
{
    c->arrived++;
    while (c->arrived < n * REPLOG_RANKS) {
        usleep(1000);
    }
}

/* ---- A member ---- */

static void add_entry(struct member *m, uint64_t bits, ptl_handlers_t h,
                      ptl_handle_hpu_mem_t memory)
{
    ptl_handle_me_t handle;
    ptl_me_t me = {.ct_handle = m->ct,
                   .uid = PTL_UID_ANY,
                   .options = PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE |
                              PTL_ME_EVENT_SUCCESS_DISABLE | PTL_ME_EVENT_CT_COMM,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .match_bits = bits};
    h.hpu_mem = memory;
    h.handler_host_mem = &the_log;
    h.handler_host_length = sizeof(the_log);
    check(PtlMEAppendHandlers(m->ni, INDEX, &me, &h, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
}

static void open_member(struct member *m, bool waits)
{
    ptl_pt_index_t index;
    ptl_handle_hpu_mem_t memory;
    check(PtlInit(), "PtlInit");
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                    &m->ni),
          "PtlNIInit");
    check(PtlGetPhysId(m->ni, &m->common->id[m->rank]), "PtlGetPhysId");
    m->common->pid[m->rank] = getpid();
    check(PtlPTAlloc(m->ni, 0, PTL_EQ_NONE, INDEX, &index), "PtlPTAlloc");
    check(PtlCTAlloc(m->ni, &m->ct), "PtlCTAlloc");
    meet(m->common, 1);
    struct replog_state s = {.me = m->rank, .nowait = waits ? 0 : PTL_HANDLER_NOWAIT};
    memcpy(s.rank, m->common->id, sizeof(s.rank));
    check(PtlHPUAllocMem(m->ni, sizeof(s), &memory), "PtlHPUAllocMem");
    check(PtlHPUWrite(memory, 0, &s, sizeof(s)), "PtlHPUWrite");
    if (m->rank == 0) {
        add_entry(m, REPLOG_APPEND, replog_append, memory);
        add_entry(m, REPLOG_HELD, replog_held, memory);
    } else {
        add_entry(m, REPLOG_FOLLOW, replog_follow, memory);
    }
    meet(m->common, 2);
}

static void make_record(uint64_t number, uint64_t *record)
{
    for (unsigned i = 0; i < REPLOG_RECORD / sizeof(*record); i++) {
        record[i] = (number + i) * UINT64_C(0x9e3779b97f4a7c15);
    }
}

/* Whether the log has the newest of so many records. */
static void compare(unsigned rank, uint64_t records)
{
    uint64_t first = records > REPLOG_KEPT ? records - REPLOG_KEPT + 1 : 1;
    for (uint64_t i = first; i <= records; i++) {
        uint64_t record[REPLOG_RECORD / sizeof(uint64_t)];
        make_record(i, record);
        if (memcmp(the_log.record[i % REPLOG_KEPT], record, sizeof(record)) != 0) {
            fail("rank %u: record %llu is wrong", rank, (unsigned long long)i);
        }
    }
    if (the_log.disorder != 0) {
        fail("rank %u: %llu records came out of turn", rank, (unsigned long long)the_log.disorder);
    }
}

static void close_member(struct member *m)
{
    meet(m->common, 4);
    check(PtlNIFini(m->ni), "PtlNIFini");
    PtlFini();
}

/* ---- The leader ---- */

static uint64_t held_by(unsigned rank)
{
    return __atomic_load_n(&the_log.held[rank], __ATOMIC_ACQUIRE);
}

static uint64_t committed(void)
{
    uint64_t one = held_by(1), two = held_by(2);
    return one > two ? one : two;
}

static void progress(const struct member *m, double since)
{
    ptl_ct_event_t value;
    check(PtlCTGet(m->ct, &value), "PtlCTGet");
    if (value.failure != 0) {
        fail("%llu messages failed", (unsigned long long)value.failure);
    }
    if (seconds() - since > PATIENCE_S) {
        fail("nothing is committed any more: %llu records are", (unsigned long long)committed());
    }
}

static bool is_stopped(pid_t pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *f = fopen(path, "r");
    if (f == NULL || fscanf(f, "%*d (%*[^)]) %c", &state) != 1) {
        fail("%s cannot be read", path);
    }
    fclose(f);
    return state == 'T';
}

/* Appends records and gives how many were committed in a second. */
static double take_turn(const struct member *m, ptl_handle_md_t md, uint64_t *record,
                        uint64_t *appended, uint64_t records)
{
    double begin = seconds();
    for (uint64_t i = 0; i < records; i++) {
        ++*appended;
        uint64_t place = *appended % WINDOW * REPLOG_RECORD;
        while (committed() + WINDOW <= *appended) {
            progress(m, begin);
        }
        make_record(*appended, record + place / sizeof(*record));
        check(PtlPut(md, place, REPLOG_RECORD, PTL_NO_ACK_REQ, m->common->id[0], INDEX,
                     REPLOG_APPEND, 0, NULL, 0),
              "PtlPut");
    }
    while (committed() < *appended) {
        progress(m, begin);
    }
    return (double)records / (seconds() - begin);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, unsigned n)
{
    qsort(values, n, sizeof(*values), by_value);
    return n % 2 != 0 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

static void lead(struct member *m, unsigned turns, uint64_t records)
{
    static uint64_t record[WINDOW * REPLOG_RECORD / sizeof(uint64_t)];
    static double rate[SIDES][MOST_TURNS];
    ptl_md_t range = {record, sizeof(record), 0, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_handle_md_t md;
    uint64_t appended = 0, refused[SIDES] = {0};
    pid_t follower = m->common->pid[2];
    check(PtlMDBind(m->ni, &range, &md), "PtlMDBind");
    take_turn(m, md, record, &appended, records); /* to warm up */
    for (unsigned turn = 0; turn < SIDES * turns; turn++) {
        unsigned stopped = turn % SIDES;
        for (double begin = seconds(); held_by(1) != appended || held_by(2) != appended;) {
            progress(m, begin);
        }
        if (stopped) {
            kill(follower, SIGSTOP);
            while (!is_stopped(follower)) {
                usleep(100);
            }
        }
        uint64_t before = the_log.refused;
        rate[stopped][turn / SIDES] = take_turn(m, md, record, &appended, records);
        refused[stopped] += the_log.refused - before;
        kill(follower, SIGCONT);
    }
    for (double begin = seconds(); held_by(1) != appended || held_by(2) != appended;) {
        progress(m, begin);
    }
    double all = median(rate[0], turns), one = median(rate[1], turns);
    printf("%u turns of %llu records each, %d before they are committed\n", turns,
           (unsigned long long)records, WINDOW);
    printf("all run:           %8.0f records/s, %.0f to %.0f, %llu puts refused\n", all, rate[0][0],
           rate[0][turns - 1], (unsigned long long)refused[0]);
    printf("one of 3 stopped:  %8.0f records/s, %.0f to %.0f, %llu puts refused\n", one, rate[1][0],
           rate[1][turns - 1], (unsigned long long)refused[1]);
    printf("ratio:             %8.2f\n", one / all);
    fflush(stdout);
}

static int live(struct common *common, unsigned rank, bool waits, unsigned turns, uint64_t records)
{
    struct member m = {.common = common, .rank = rank};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_member(&m, waits);
    if (rank == 0) {
        lead(&m, turns, records);
    }
    meet(common, 3);
    compare(rank, (SIDES * turns + 1) * records);
    close_member(&m);
    return 0;
}

/* A whole number of the command line, `least` to `most`. */
static uint64_t number(const char *text, uint64_t least, uint64_t most)
{
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || value < least ||
        value > most) {
        fprintf(stderr,
                "usage: bench_replog [--wait] [TURNS [RECORDS]]\n"
                "TURNS of each side: 1 to %d, else 11; RECORDS of a turn: 1 to %d, else 20000\n",
                MOST_TURNS, REPLOG_KEPT / 2);
        exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    bool waits = argc > 1 && strcmp(argv[1], "--wait") == 0;
    char **words = argv + 1 + waits;
    int count = argc - 1 - waits;
    unsigned turns = (unsigned)(count > 0 ? number(words[0], 1, MOST_TURNS) : 11);
    uint64_t records = count > 1 ? number(words[1], 1, REPLOG_KEPT / 2) : 20000;
    if (count > 2) {
        number("", 0, 0);
    }
    struct common *common =
        mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (common == MAP_FAILED) {
        fail("no memory to share");
    }
    int failed = 0, status;
    pid_t pid[REPLOG_RANKS];
    for (unsigned r = 0; r < REPLOG_RANKS; r++) {
        pid[r] = fork();
        if (pid[r] == 0) {
            exit(live(common, r, waits, turns, records));
        }
        failed |= pid[r] < 0;
    }
    for (unsigned ended = 0; ended < REPLOG_RANKS; ended++) {
        pid_t who = wait(&status);
        if (who < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
            failed = 1;
            for (unsigned r = 0; r < REPLOG_RANKS; r++) {
                if (pid[r] > 0 && pid[r] != who) {
                    kill(pid[r], SIGKILL);
                }
            }
        }
    }
    return failed;
}
