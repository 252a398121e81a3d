/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The driver of the soak of births and deaths; see churn.h.
 *
 *     soak_churn SEED SECONDSs | SEED MINUTESm
 *
 * It begins a process on each seat, kills some and begins others in their places, stops some and
 * lets them go on, and watches that all take turns. In the end no file may be left, and the process
 * on seat 0, which nobody kills, must not have grown by each that it has met. With SOAK_GDB set it
 * prints where all threads are when something has failed.
 */
#include "churn.h"

#include "../own_network.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { TICK_MS = 5, KILL_GAP_MS = 250, KILL_GAP_TURNS = 100, STOP_MS = 600, MINUTE_MS = 60000 };

struct churn *churn;
uint64_t seed;

static struct {
    pid_t process;
    unsigned births;
    uint64_t killed_ms, go_on_ms; /* go_on_ms: 0 unless it is stopped */
    uint64_t turns, moved_ms;
    uint64_t turns_then[SEATS]; /* of the others when its last process was killed */
} at[SEATS];

static char directory[64];
static uint64_t random_state, start_ms;
static unsigned lives;

uint64_t churn_now_ms(void)
{
    return churn->now_ms;
}

/* The driver sleeps for one tick and moves the clock of all on. A machine that stood still for a
 * while (a virtual one that was paused) adds a tenth of a second: nobody was late meanwhile. */
static void tick(void)
{
    enum { MOST_MS = 100 };
    static uint64_t then;
    struct timespec t;
    usleep(TICK_MS * 1000);
    clock_gettime(CLOCK_MONOTONIC, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
    uint64_t gap = then == 0 ? TICK_MS : now - then;
    then = now;
    churn->now_ms += gap < MOST_MS ? gap : MOST_MS;
}

static void begin(unsigned s)
{
    unsigned next = ++lives * LIVES + at[s].births++ % LIVES;
    churn->seat[s].newest[next % LIVES] = next;
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        me = s;
        life = next;
        churn_live();
        exit(0);
    }
    if (child < 0) {
        perror("fork");
        churn->failed = true;
    }
    at[s].process = child;
    at[s].moved_ms = churn_now_ms();
}

static void go_on(unsigned s)
{
    at[s].go_on_ms = 0;
    at[s].moved_ms = churn_now_ms();
    kill(at[s].process, SIGCONT);
}

/* Whether all others have had time to take what the last process of a seat has left behind. The
 * lives of a seat share its places in turn; on a machine that is too busy to run everybody a life
 * would have its places while messages of one long before are still to be taken. */
static bool is_digested(unsigned s)
{
    for (unsigned o = 0; o < SEATS; o++) {
        if (o != s && churn->seat[o].turns < at[s].turns_then[o] + KILL_GAP_TURNS) {
            return false;
        }
    }
    return true;
}

static void replace(unsigned s)
{
    for (unsigned o = 0; o < SEATS; o++) {
        at[s].turns_then[o] = churn->seat[o].turns;
    }
    /* Its address is not yet there if it has only begun: nobody has heard of that life. */
    churn->seat[s].dying = lives * LIVES + LIVES - 1;
    kill(at[s].process, SIGKILL);
    waitpid(at[s].process, NULL, 0);
    at[s].go_on_ms = 0;
    at[s].killed_ms = churn_now_ms();
    churn_add(C_KILLS, 1);
    begin(s);
}

/* What befalls the processes at one tick. */
static void befall(void)
{
    uint64_t now = churn_now_ms();
    unsigned s = 1 + (unsigned)splitmix_below(&random_state, SEATS - 1);
    if (splitmix_below(&random_state, 10) == 0 && now - at[s].killed_ms > KILL_GAP_MS &&
        is_digested(s)) {
        replace(s);
    }
    s = (unsigned)splitmix_below(&random_state, SEATS);
    if (splitmix_below(&random_state, 40) == 0 && at[s].go_on_ms == 0) {
        at[s].go_on_ms = now + 1 + splitmix_below(&random_state, STOP_MS);
        kill(at[s].process, SIGSTOP);
        churn_add(C_STOPS, 1);
    }
}

static bool ended(unsigned s)
{
    int status;
    if (at[s].process == 0 || waitpid(at[s].process, &status, WNOHANG) != at[s].process) {
        return at[s].process == 0;
    }
    at[s].process = 0;
    if (status != 0 || churn->seat[s].done == 0) {
        fprintf(stderr, "seed %llu: the process on seat %u ended with %s %d\n",
                (unsigned long long)seed, s, WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
        churn->failed = true;
    }
    return true;
}

/* Whether all have ended; those that are stopped go on when it is time. */
static bool watch(void)
{
    bool all = true;
    uint64_t now = churn_now_ms();
    for (unsigned s = 0; s < SEATS; s++) {
        if (at[s].go_on_ms != 0 && (now >= at[s].go_on_ms || churn->stop)) {
            go_on(s);
        }
        all &= ended(s);
        uint64_t turns = churn->seat[s].turns;
        if (turns != at[s].turns) {
            at[s].turns = turns;
            at[s].moved_ms = now;
        } else if (at[s].process != 0 && now > at[s].moved_ms + QUIET_LIMIT_S * 1000u) {
            fprintf(stderr, "seed %llu: the process on seat %u takes no turns\n",
                    (unsigned long long)seed, s);
            churn->failed = true;
        }
    }
    return all;
}

void churn_dump(unsigned s)
{
    static const char *const lanes[] = {"plain",  "handler", "get",   "atomic",
                                        "ticket", "loose",   "second"};
    const struct seat *a = &churn->seat[s];
    for (unsigned k = 0; k < OPS; k++) {
        const struct op *o = &a->op[k];
        if (o->state != 0) {
            fprintf(stderr,
                    "    seat %u: %s %u to seat %u, life %u (%s), %llu bytes, waits for%s%s since "
                    "%llu ms\n",
                    s, lanes[o->lane], o->number, o->to, o->target_life,
                    churn_lives(o->to, o->target_life) ? "lives" : "dead",
                    (unsigned long long)o->length, (o->state & SEND_DUE) != 0 ? " SEND" : "",
                    (o->state & ANSWER_DUE) != 0 ? " ACK or REPLY" : "",
                    (unsigned long long)(churn_now_ms() - o->start_ms));
        }
    }
}

static void show_where(void)
{
    char command[128];
    for (unsigned s = 0; s < SEATS; s++) {
        churn_dump(s);
        if (at[s].process > 0 && getenv("SOAK_GDB") != NULL) {
            fprintf(stderr, "seat %u, process %d\n", s, (int)at[s].process);
            snprintf(command, sizeof(command),
                     "timeout 60 gdb -p %d -batch -ex 'thread apply all bt' 1>&2",
                     (int)at[s].process);
            if (system(command) != 0) {
                fprintf(stderr, "no gdb\n");
            }
        }
    }
    for (unsigned s = 0; s < SEATS; s++) {
        if (at[s].process > 0) {
            kill(at[s].process, SIGKILL);
            waitpid(at[s].process, NULL, 0);
        }
    }
}

static void report(const char *what)
{
    const _Atomic uint64_t *n = churn->count;
    const struct seat *a = &churn->seat[0];
    printf("%s seed %llu, %llu s: %llu operations started, %llu ended well (%llu MiB), %llu "
           "undeliverable, %llu refused, %llu with a hole; %llu served, %llu of them torn; %llu "
           "processes killed, %llu stopped; %llu interfaces closed over %llu waits; %llu turns of "
           "loose entries; seat 0 has %llu files, %llu mappings, %llu MiB\n",
           what, (unsigned long long)seed, (unsigned long long)((churn_now_ms() - start_ms) / 1000),
           (unsigned long long)n[C_STARTED], (unsigned long long)n[C_GOOD],
           (unsigned long long)n[C_BYTES] >> 20, (unsigned long long)n[C_DEAD],
           (unsigned long long)n[C_REFUSED], (unsigned long long)n[C_HOLES],
           (unsigned long long)n[C_SERVED], (unsigned long long)n[C_TORN],
           (unsigned long long)n[C_KILLS], (unsigned long long)n[C_STOPS],
           (unsigned long long)n[C_CLOSED], (unsigned long long)n[C_ENDED],
           (unsigned long long)n[C_LOOSE], (unsigned long long)a->files,
           (unsigned long long)a->maps, (unsigned long long)a->resident >> 20);
    fflush(stdout);
}

/* ---- what must not grow ---- */

enum { FILES_MORE = 32, MAPS_MORE = 128, MIB_MORE = 48, GROWTH_FROM_MS = 60000 };
static struct least {
    uint64_t files, maps, mib;
} first = {-1ull, -1ull, -1ull}, last = {-1ull, -1ull, -1ull};

static void note_least(struct least *l)
{
    const struct seat *a = &churn->seat[0];
    uint64_t mib = a->resident >> 20;
    if (a->resident != 0) {
        l->files = a->files < l->files ? a->files : l->files;
        l->maps = a->maps < l->maps ? a->maps : l->maps;
        l->mib = mib < l->mib ? mib : l->mib;
    }
}

/* The lowest of the last third against the lowest of the second. */
static bool has_grown(void)
{
    bool grown = last.files > first.files + FILES_MORE || last.maps > first.maps + MAPS_MORE ||
                 last.mib > first.mib + MIB_MORE;
    printf("seat 0 at least: %llu files, %llu mappings, %llu MiB; later %llu, %llu, %llu\n",
           (unsigned long long)first.files, (unsigned long long)first.maps,
           (unsigned long long)first.mib, (unsigned long long)last.files,
           (unsigned long long)last.maps, (unsigned long long)last.mib);
    return grown;
}

/* Whoever opens an interface takes away what the dead have left; then there is nothing. */
static bool something_left(void)
{
    bool left = false;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        ptl_handle_ni_t handle;
        for (unsigned k = 0; k < 2; k++) {
            OK(PtlInit());
            OK(PtlNIInit(PTL_IFACE_DEFAULT + k, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY,
                         NULL, NULL, &handle));
            OK(PtlNIFini(handle));
            PtlFini();
        }
        exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    DIR *d = opendir(directory);
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') {
            char path[512];
            fprintf(stderr, "%s is left\n", e->d_name);
            snprintf(path, sizeof(path), "%s/%s", directory, e->d_name);
            unlink(path);
            left = true;
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    return left || status != 0;
}

static bool set_up(void)
{
    size_t n = NOISE_BYTES + 8 + LONG_MAX_BYTES;
    churn = mmap(NULL, sizeof(*churn), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    noise = malloc(n);
    snprintf(directory, sizeof(directory), "/dev/shm/soak_churn.XXXXXX");
    if (churn == MAP_FAILED || noise == NULL || !own_network() || mkdtemp(directory) == NULL) {
        perror("soak_churn");
        return false;
    }
    random_state = seed;
    for (size_t k = 0; k + 8 <= n; k += 8) {
        uint64_t word = splitmix(&random_state);
        memcpy(noise + k, &word, 8);
    }
    setenv("PINWHEEL_SHM_DIR", directory, 1);
    setenv("PINWHEEL_IFACES", "127.0.0.1,127.0.0.2", 1);
    setenv("PINWHEEL_SEND_QUEUE", "64", 1);
    setenv("PINWHEEL_LINGER_MS", "50", 0);
    setenv("PINWHEEL_LOG", "error", 0); /* stale handles are refused by the thousand */
    /* However slow the machine is: */
    setenv("PINWHEEL_CONNECT_MS", "5000", 0);
    setenv("PINWHEEL_HPU_PATIENCE_MS", "60000", 0);
    setenv("PINWHEEL_UDP_SILENCE_MS", "60000", 0);
    return true;
}

static void run(uint64_t length_ms)
{
    uint64_t told = start_ms = churn_now_ms();
    for (unsigned s = 0; s < SEATS; s++) {
        begin(s);
    }
    for (uint64_t now; (now = churn_now_ms()) - start_ms < length_ms && !churn->failed;) {
        befall();
        watch();
        uint64_t third = (now - start_ms) * 3 / length_ms;
        if (third >= 1) {
            note_least(third == 1 ? &first : &last);
        }
        if (now - told >= MINUTE_MS) {
            told = now;
            report("       ");
        }
        tick();
    }
    churn->stop = true;
    while (!churn->failed && !watch()) {
        tick();
    }
}

int main(int argc, char **argv)
{
    char *unit = NULL;
    uint64_t length = 0;
    if (argc == 3) {
        seed = strtoull(argv[1], NULL, 10);
        length = strtoull(argv[2], &unit, 10);
    }
    if (length == 0 || (strcmp(unit, "s") != 0 && strcmp(unit, "m") != 0)) {
        fprintf(stderr, "usage: %s SEED SECONDSs | SEED MINUTESm\n", argv[0]);
        return 2;
    }
    length *= *unit == 'm' ? MINUTE_MS : 1000;
    if (!set_up()) {
        return 2;
    }
    run(length);
    bool good = !churn->failed;
    if (!good) {
        show_where();
    } else {
        good = !something_left();
        if (length >= GROWTH_FROM_MS && has_grown()) {
            fprintf(stderr, "seat 0 has grown\n");
            good = false;
        }
    }
    if (rmdir(directory) != 0) {
        fprintf(stderr, "%s: %s\n", directory, strerror(errno));
    }
    report(good ? "ok    " : "FAILED");
    return !good;
}
