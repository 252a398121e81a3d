/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts over UDP beside TCP where nobody has bound the two processes to cores: a ping-pong of SIZE
 * bytes on loopback, in rounds that take turns, within one run.
 *
 *   unpinned [ROUNDS [SIZE [BUSY [CORE CORE]]]]     21 rounds of 16384 bytes, 0 busy processes
 *
 * BUSY processes compute beside them all the time. Two CORES bind the two ranks, for comparison.
 * Each round prints both half round trips (the median of TRIPS), their ratio, and how often the
 * two processes were seen on one core, which tells where the scheduler had put them. At the end
 * the medians over the rounds, and over those that were apart and together, and their means, which
 * count the milliseconds when somebody else had the core.
 */
#include "portals4.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TRIPS = 200, WARM = 20, MOST = 1 << 20, ROUNDS_MOST = 201, INDEX = 1 };

static struct shared {
    _Atomic int ready[2];
    ptl_process_t id[2];
    _Atomic int core[2];
    _Atomic unsigned turn[2];
} * shared;

struct way {
    void (*trip)(int rank);
    double us[ROUNDS_MOST], mean[ROUNDS_MOST], together[ROUNDS_MOST];
};

static unsigned char in[MOST], out[MOST];
static size_t size = 16384;
static int sock;
static ptl_handle_ni_t ni;
static ptl_handle_md_t md;
static ptl_handle_ct_t arrived;
static ptl_size_t count;

static void must(bool good, const char *what)
{
    if (!good) {
        perror(what);
        exit(1);
    }
}
#define OK(call) must((call) == PTL_OK, #call)

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* ---- The two ways ---- */

static void send_all(void)
{
    must(send(sock, out, size, 0) == (ssize_t)size, "send");
}

static void receive_all(void)
{
    must(recv(sock, in, size, MSG_WAITALL) == (ssize_t)size, "recv");
}

static void tcp_trip(int rank)
{
    if (rank == 0) {
        send_all();
    }
    receive_all();
    if (rank == 1) {
        send_all();
    }
}

static void put_all(int rank)
{
    OK(PtlPut(md, 0, size, PTL_NO_ACK_REQ, shared->id[1 - rank], INDEX, 0, 0, NULL, 0));
}

static void udp_trip(int rank)
{
    ptl_ct_event_t event;
    if (rank == 0) {
        put_all(rank);
    }
    OK(PtlCTWait(arrived, ++count, &event));
    if (rank == 1) {
        put_all(rank);
    }
}

static void open_portals(int rank)
{
    ptl_pt_index_t index;
    ptl_handle_me_t entry;
    setenv("PINWHEEL_FABRIC", "udp", 1);
    setenv("PINWHEEL_IFACES", "lo", 1);
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                 &ni));
    OK(PtlGetPhysId(ni, &shared->id[rank]));
    OK(PtlCTAlloc(ni, &arrived));
    OK(PtlPTAlloc(ni, 0, PTL_EQ_NONE, INDEX, &index));
    ptl_le_t le = {.start = in,
                   .length = size,
                   .ct_handle = arrived,
                   .uid = PTL_UID_ANY,
                   .options = PTL_LE_OP_PUT | PTL_LE_EVENT_CT_COMM | PTL_LE_EVENT_COMM_DISABLE |
                              PTL_LE_EVENT_LINK_DISABLE};
    OK(PtlLEAppend(ni, INDEX, &le, PTL_PRIORITY_LIST, NULL, &entry));
    ptl_md_t m = {.start = out,
                  .length = size,
                  .options = PTL_MD_EVENT_SEND_DISABLE,
                  .eq_handle = PTL_EQ_NONE,
                  .ct_handle = PTL_CT_NONE};
    OK(PtlMDBind(ni, &m, &md));
}

/* ---- Rounds ---- */

static void meet(int rank)
{
    unsigned turn = atomic_fetch_add(&shared->turn[rank], 1) + 1;
    while (atomic_load(&shared->turn[1 - rank]) < turn) {
        usleep(50);
    }
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, int n)
{
    double sorted[ROUNDS_MOST > TRIPS ? ROUNDS_MOST : TRIPS];
    memcpy(sorted, values, (size_t)n * sizeof(*values));
    qsort(sorted, (size_t)n, sizeof(*sorted), compare);
    return n > 0 ? sorted[n / 2] : 0;
}

static void run_round(struct way *w, int rank, int round)
{
    double took[TRIPS], all = 0;
    int same = 0;
    meet(rank);
    for (int i = 0; i < WARM + TRIPS; i++) {
        double begun = now();
        w->trip(rank);
        int core = sched_getcpu();
        atomic_store(&shared->core[rank], core);
        if (i >= WARM) {
            took[i - WARM] = (now() - begun) / 2;
            all += took[i - WARM];
            same += core == atomic_load(&shared->core[1 - rank]);
        }
    }
    w->us[round] = median(took, TRIPS);
    w->mean[round] = all / TRIPS;
    w->together[round] = (double)same / TRIPS;
}

static void tell(const char *which, const struct way *udp, const struct way *tcp, int rounds,
                 double from, double to)
{
    double ours[ROUNDS_MOST] = {0}, theirs[ROUNDS_MOST] = {0}, ratio[ROUNDS_MOST] = {0};
    double mean[2] = {0};
    int n = 0;
    for (int i = 0; i < rounds; i++) {
        if (udp->together[i] >= from && udp->together[i] <= to) {
            ours[n] = udp->us[i];
            theirs[n] = tcp->us[i];
            mean[0] += udp->mean[i];
            mean[1] += tcp->mean[i];
            ratio[n++] = udp->us[i] / tcp->us[i];
        }
    }
    printf("%-21s %3d rounds: UDP %7.1f us, TCP %6.1f us, ratio %6.2f; means %7.1f, %6.1f\n", which,
           n, median(ours, n), median(theirs, n), median(ratio, n), n > 0 ? mean[0] / n : 0,
           n > 0 ? mean[1] / n : 0);
}

static void rank_main(int rank, int rounds, int core)
{
    static struct way udp = {.trip = udp_trip}, tcp = {.trip = tcp_trip};
    cpu_set_t set;
    CPU_ZERO(&set);
    if (core >= 0) {
        CPU_SET(core, &set);
        must(sched_setaffinity(0, sizeof(set), &set) == 0, "sched_setaffinity");
    }
    open_portals(rank);
    meet(rank);
    for (int i = 0; i < rounds; i++) {
        run_round(&udp, rank, i);
        run_round(&tcp, rank, i);
        if (rank == 0) {
            printf(
                "%3d  UDP %7.1f us (on one core %3.0f %%)  TCP %7.1f us (%3.0f %%)  ratio %.2f\n",
                i, udp.us[i], 100 * udp.together[i], tcp.us[i], 100 * tcp.together[i],
                udp.us[i] / tcp.us[i]);
        }
    }
    if (rank == 0) {
        tell("all", &udp, &tcp, rounds, 0, 1);
        tell("UDP seen apart", &udp, &tcp, rounds, 0, 0.1);
        tell("UDP seen on one core", &udp, &tcp, rounds, 0.9, 1);
    }
    PtlFini();
}

/* ---- Processes ---- */

static void connect_pair(int rank, int listener, const struct sockaddr_in *at)
{
    int on = 1;
    if (rank == 0) {
        sock = accept(listener, NULL, NULL);
    } else {
        sock = socket(AF_INET, SOCK_STREAM, 0);
        must(connect(sock, (const struct sockaddr *)at, sizeof(*at)) == 0, "connect");
    }
    must(sock >= 0 && setsockopt(sock, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0, "socket");
}

_Noreturn static void compute(void)
{
    for (volatile unsigned work = 0;; work++) {
    }
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 21, busy = argc > 3 ? atoi(argv[3]) : 0;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(at);
    size = argc > 2 ? (size_t)atol(argv[2]) : size;
    if (rounds < 1 || rounds > ROUNDS_MOST || size < 1 || size > MOST || busy < 0 || busy > 64) {
        fprintf(stderr, "usage: unpinned [ROUNDS up to %d [BYTES up to %d [BUSY [CORE CORE]]]]\n",
                ROUNDS_MOST, MOST);
        return 2;
    }
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared != MAP_FAILED, "mmap");
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    must(bind(listener, (struct sockaddr *)&at, sizeof(at)) == 0 && listen(listener, 1) == 0 &&
             getsockname(listener, (struct sockaddr *)&at, &length) == 0,
         "listen");
    pid_t child[65];
    for (int i = 0; i <= busy; i++) {
        child[i] = fork();
        must(child[i] >= 0, "fork");
        if (child[i] == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            if (i < busy) {
                compute();
            }
            connect_pair(1, listener, &at);
            rank_main(1, rounds, argc > 5 ? atoi(argv[5]) : -1);
            return 0;
        }
    }
    connect_pair(0, listener, &at);
    rank_main(0, rounds, argc > 5 ? atoi(argv[4]) : -1);
    for (int i = 0; i < busy; i++) {
        kill(child[i], SIGKILL);
    }
    for (int i = 0; i <= busy; i++) {
        waitpid(child[i], NULL, 0);
    }
    return 0;
}
