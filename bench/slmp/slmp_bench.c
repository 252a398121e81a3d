/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SLMP beside what UDP itself can do: two processes, each bound to a core, that take turns
 * of a few milliseconds for every subject in every round, so that what is compared was
 * measured within moments. Medians over the rounds; ratios are those of one round, and
 * their median. README.md says what the lines mean.
 *
 *     parent  ── turn: work, subject, count ──►  child      a page that both share
 *             ◄─────────── done ───────────────
 */
#include "base/sys.h"
#include "link.h"
#include "raw_udp.h"

#include <getopt.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS_MAX = 101, MANY = 64, FEW = 4 };

enum subject { RAW, SLMP, KEYED, COVERED, LOSSY, LOSSY_JUMBO, JUMBO, SUBJECTS };
enum work { PING, STREAM, RATE, PEERS_FEW, PEERS_MANY, QUIT };

struct page {
    _Atomic unsigned turn, done;
    enum work work;
    enum subject subject;
    unsigned count;
    uint16_t port[2][SUBJECTS]; /* of parent and child */
    uint16_t many;              /* the parent's for MANY */
};

struct line {
    const char *name;
    enum work work;
    enum subject subject;
    unsigned count;
    double per;       /* the worth of one: messages, or bytes */
    const char *unit; /* of the value: us, GB/s, M/s */
    int against;      /* the line of which it is a fraction; -1: none */
    double value[ROUNDS_MAX];
};

enum {
    PING_RAW,
    PING_SLMP,
    PING_KEYED,
    STREAM_RAW,
    STREAM_SLMP,
    STREAM_KEYED,
    STREAM_COVERED,
    STREAM_LOSSY,
    STREAM_JUMBO,
    STREAM_LOSSY_JUMBO,
    RATE_SLMP,
    RATE_KEYED,
    FEW_PEERS,
    MANY_PEERS,
    LINES
};

static struct line lines[LINES] = {
    [PING_RAW] = {"latency 8 B, raw UDP", PING, RAW, 500, 0.5, "us", -1, {0}},
    [PING_SLMP] = {"latency 8 B", PING, SLMP, 500, 0.5, "us", PING_RAW, {0}},
    [PING_KEYED] = {"latency 8 B, job key", PING, KEYED, 500, 0.5, "us", PING_SLMP, {0}},
    [STREAM_RAW] = {"stream 1 MiB, raw UDP", STREAM, RAW, 64, LINK_LARGE, "GB/s", -1, {0}},
    [STREAM_SLMP] = {"stream 1 MiB", STREAM, SLMP, 64, LINK_LARGE, "GB/s", STREAM_RAW, {0}},
    [STREAM_KEYED] =
        {"stream 1 MiB, job key", STREAM, KEYED, 64, LINK_LARGE, "GB/s", STREAM_SLMP, {0}},
    [STREAM_COVERED] = {"stream 1 MiB, payload checksums",
                        STREAM,
                        COVERED,
                        64,
                        LINK_LARGE,
                        "GB/s",
                        STREAM_SLMP,
                        {0}},
    [STREAM_LOSSY] =
        {"stream 1 MiB, 1 % lost", STREAM, LOSSY, 32, LINK_LARGE, "GB/s", STREAM_SLMP, {0}},
    [STREAM_JUMBO] =
        {"stream 1 MiB, jumbo packets", STREAM, JUMBO, 16, LINK_LARGE, "GB/s", STREAM_SLMP, {0}},
    [STREAM_LOSSY_JUMBO] = {"stream 1 MiB, jumbo, 1 % lost",
                            STREAM,
                            LOSSY_JUMBO,
                            16,
                            LINK_LARGE,
                            "GB/s",
                            STREAM_JUMBO,
                            {0}},
    [RATE_SLMP] = {"rate 8 B, windows of 64", RATE, SLMP, 300, LINK_WINDOW, "M/s", -1, {0}},
    [RATE_KEYED] =
        {"rate 8 B, windows of 64, job key", RATE, KEYED, 300, LINK_WINDOW, "M/s", RATE_SLMP, {0}},
    [FEW_PEERS] = {"peers 1 MiB, from 4 peers", PEERS_FEW, SLMP, 64, LINK_LARGE, "GB/s", -1, {0}},
    [MANY_PEERS] =
        {"peers 1 MiB, from 64", PEERS_MANY, SLMP, 64, LINK_LARGE, "GB/s", FEW_PEERS, {0}},
};

static struct page *page;
static bool parent;
static struct raw raw;
static struct link *link_of[SUBJECTS], *many[MANY];
static uint32_t packet = 1472;
static const char *only = ""; /* lines are measured whose name has this */
static struct slmp_key key = {.length = SLMP_KEY_MIN};

/* ---- The works ---- */

static void wait_for(const struct link *l, uint64_t received)
{
    while (l->received < received) {
        link_turn((struct link *)(uintptr_t)l);
    }
}

static void ping(struct link *l, uint16_t port, unsigned trips)
{
    uint64_t from = l->received;
    l->answer = parent ? ANSWER_NONE : ANSWER_EACH;
    for (unsigned i = 0; i < trips; i++) {
        if (parent) {
            link_send(l, port, 8);
        }
        wait_for(l, from + i + 1);
    }
    while (l->outstanding > 0) {
        link_turn(l);
    }
}

static void stream(struct link *l, uint16_t port, unsigned messages)
{
    uint64_t from = l->received;
    l->answer = ANSWER_NONE;
    for (unsigned i = 0; parent && i < messages; i++) {
        while (l->outstanding >= 4) {
            link_turn(l);
        }
        link_send(l, port, LINK_LARGE);
    }
    while (l->outstanding > 0 || (!parent && l->received < from + messages)) {
        link_turn(l);
    }
}

static void rate(struct link *l, uint16_t port, unsigned windows)
{
    uint64_t from = l->received;
    l->answer = parent ? ANSWER_NONE : ANSWER_WINDOW;
    for (unsigned i = 0; parent && i < windows; i++) {
        for (unsigned k = 0; k < LINK_WINDOW; k++) {
            link_send(l, port, 8);
        }
        wait_for(l, from + i + 1);
    }
    while (l->outstanding > 0 ||
           (!parent && l->received < from + (uint64_t)windows * LINK_WINDOW)) {
        link_turn(l);
    }
}

/* The child is many processes: it looks at those of whose sockets or clocks something
 * is to be had. */
static void turn_many(unsigned peers)
{
    struct pollfd p[MANY];
    for (unsigned i = 0; i < peers; i++) {
        p[i] = (struct pollfd){.fd = many[i]->udp.socket.fd, .events = POLLIN};
    }
    poll(p, peers, 0);
    int64_t now = clock_ns();
    for (unsigned i = 0; i < peers; i++) {
        if ((p[i].revents & POLLIN) != 0 || slmp_deadline(many[i]->engine) <= now) {
            link_turn(many[i]);
        }
    }
}

static void from_many(unsigned peers, unsigned messages)
{
    if (parent) {
        wait_for(many[0], many[0]->received + messages);
        return;
    }
    for (unsigned i = 0; i < messages; i++) {
        link_send(many[i % peers], page->many, LINK_LARGE);
    }
    for (bool busy = true; busy;) {
        turn_many(peers);
        busy = false;
        for (unsigned i = 0; i < peers; i++) {
            busy = busy || many[i]->outstanding > 0;
        }
    }
}

static void do_work(enum work work, enum subject s, unsigned count)
{
    uint16_t port = page->port[parent][s];
    if (work == PEERS_FEW || work == PEERS_MANY) {
        from_many(work == PEERS_FEW ? FEW : MANY, count);
    } else if (s == RAW && work == PING) {
        raw_ping(&raw, parent, count);
    } else if (s == RAW) {
        (parent ? raw_send : raw_receive)(&raw, packet, (uint64_t)count * LINK_LARGE);
    } else if (work == PING) {
        ping(link_of[s], port, count);
    } else {
        (work == STREAM ? stream : rate)(link_of[s], port, count);
    }
}

/* ---- The two processes ---- */

static void bind_to(unsigned core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(core, &set);
    sched_setaffinity(0, sizeof(set), &set);
}

static void open_all(void)
{
    static const struct {
        bool keyed, covered, jumbo;
        unsigned loss;
    } kind[SUBJECTS] = {[KEYED] = {.keyed = true},
                        [COVERED] = {.covered = true},
                        [LOSSY] = {.loss = 100},
                        [LOSSY_JUMBO] = {.loss = 100, .jumbo = true},
                        [JUMBO] = {.jumbo = true}};
    raw_open(&raw);
    page->port[!parent][RAW] = raw_port(&raw);
    for (unsigned s = SLMP; s < SUBJECTS; s++) {
        struct link_options o = {.packet = kind[s].jumbo ? 8972 : packet,
                                 .key = kind[s].keyed ? &key : NULL,
                                 .cover = kind[s].covered,
                                 .loss = kind[s].loss};
        link_of[s] = link_open(&o);
        page->port[!parent][s] = link_port(link_of[s]);
    }
    struct link_options o = {.packet = packet, .peers = MANY};
    for (unsigned i = 0; i < (parent ? 1 : MANY); i++) {
        many[i] = link_open(&o);
    }
    if (parent) {
        page->many = link_port(many[0]);
    }
}

/* The side that is ready first goes on acknowledging the last messages of the other. */
static void stay_there(void)
{
    bool peers = page->work == PEERS_FEW || page->work == PEERS_MANY;
    if (peers && !parent) {
        turn_many(MANY);
    } else if (peers || (page->work != QUIT && page->subject != RAW)) {
        link_turn(peers ? many[0] : link_of[page->subject]);
    }
}

static void child_main(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    open_all();
    page->done = 1;
    for (unsigned n = 1;; n++) {
        while (page->turn != n) {
            stay_there();
        }
        if (n == 1) {
            raw_connect(&raw, page->port[0][RAW]);
        } else if (page->work == QUIT) {
            exit(0);
        } else {
            do_work(page->work, page->subject, page->count);
        }
        page->done = n + 1;
    }
}

/* Seconds that it took. */
static double turn(enum work work, enum subject s, unsigned count)
{
    page->work = work;
    page->subject = s;
    page->count = count;
    unsigned n = page->turn + 1;
    page->turn = n;
    int64_t begun = clock_ns();
    do_work(work, s, count);
    double seconds = (double)(clock_ns() - begun) / 1e9;
    while (page->done != n + 1) {
        stay_there();
    }
    return seconds;
}

/* ---- The report ---- */

static int smaller(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *v, unsigned n)
{
    double copy[ROUNDS_MAX];
    memcpy(copy, v, n * sizeof(*v));
    qsort(copy, n, sizeof(*copy), smaller);
    return n % 2 == 1 ? copy[n / 2] : (copy[n / 2 - 1] + copy[n / 2]) / 2;
}

static void report(unsigned rounds)
{
    for (unsigned i = 0; i < LINES; i++) {
        const struct line *l = &lines[i];
        if (strstr(l->name, only) == NULL) {
            continue;
        }
        double ratio[ROUNDS_MAX] = {0};
        printf("%-34s %9.3f %s", l->name, median(l->value, rounds), l->unit);
        if (l->against >= 0 && strstr(lines[l->against].name, only) != NULL) {
            for (unsigned r = 0; r < rounds; r++) {
                ratio[r] = l->value[r] / lines[l->against].value[r];
            }
            printf("%*s %6.2f of it", 5 - (int)strlen(l->unit), "", median(ratio, rounds));
        }
        putchar('\n');
    }
}

static void measure(unsigned round)
{
    for (unsigned i = 0; i < LINES; i++) {
        struct line *l = &lines[(i + round) % LINES];
        if (strstr(l->name, only) == NULL) {
            continue;
        }
        turn(l->work, l->subject, l->count / 8 + 1); /* to be warm */
        double seconds = turn(l->work, l->subject, l->count);
        double all = l->count * l->per;
        l->value[round] = l->work == PING   ? seconds / l->count * l->per * 1e6
                          : l->work == RATE ? all / seconds / 1e6
                                            : all / seconds / 1e9;
    }
}

int main(int argc, char **argv)
{
    unsigned rounds = 11;
    for (int option; (option = getopt(argc, argv, "r:p:l:")) != -1;) {
        if (option == 'r' && atoi(optarg) > 0 && atoi(optarg) <= ROUNDS_MAX) {
            rounds = (unsigned)atoi(optarg);
        } else if (option == 'p' && atoi(optarg) >= 1472 && atoi(optarg) <= SLMP_PACKET_MAX) {
            packet = (uint32_t)atoi(optarg);
        } else if (option == 'l') {
            only = optarg;
        } else {
            fprintf(stderr, "usage: slmp_bench [-r ROUNDS] [-p BYTES OF A PACKET, from 1472] "
                            "[-l TEXT IN A LINE'S NAME]\n");
            return 2;
        }
    }
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        perror("slmp_bench: mmap");
        return 1;
    }
    pid_t child = fork();
    parent = child != 0;
    bind_to(parent ? 0 : 1);
    if (child == 0) {
        child_main();
    }
    open_all();
    while (page->done != 1) {
        sched_yield();
    }
    raw_connect(&raw, page->port[1][RAW]);
    page->turn = 1;
    while (page->done != 2) {
        sched_yield();
    }
    for (unsigned r = 0; r < rounds; r++) {
        measure(r);
    }
    page->work = QUIT;
    page->turn++;
    waitpid(child, NULL, 0);
    report(rounds);
    return 0;
}
