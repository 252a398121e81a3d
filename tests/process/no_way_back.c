/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Targets that cannot answer an initiator over shared memory, since they have no descriptor left,
 * or since it has no connection left for them: the initiator is told in time, both logs say why,
 * and the next contact succeeds once there is a way.
 */
#include "lone.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a target tries, as an option: less than any of these tests waits for an end, or more. */
#define SOON "100"
#define LATE "3600000"

/* What goes to standard error from here on, and all of it so far. */
static int log_fd;

static void begin_log(void)
{
    log_fd = memfd_create("log", MFD_CLOEXEC);
    CHECK_EQ(dup2(log_fd, STDERR_FILENO), STDERR_FILENO);
}

static bool is_logged(const char *what)
{
    static char text[65536];
    ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    return strstr(text, what) != NULL;
}

/* Opens with these options; the log is this test's then. */
static void open_with(struct lone *o, const char *connect_ms, const char *peers)
{
    setenv("PINWHEEL_CONNECT_MS", connect_ms, 1);
    setenv("PINWHEEL_SHM_PEERS", peers, 1);
    begin_log();
    lone_open(o);
    lone_show(o);
}

static struct rlimit before;

static void take_descriptors(void)
{
    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
    int first = open("/dev/null", O_RDONLY);
    CHECK(first >= 0);
    close(first);
    struct rlimit none = {(rlim_t)first, before.rlim_max};
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    CHECK(open("/dev/null", O_RDONLY) < 0);
}

static void give_descriptors(void)
{
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
}

static uint64_t count(ptl_handle_ct_t ct)
{
    ptl_ct_event_t v;
    OK(PtlCTGet(ct, &v));
    return v.success;
}

/* More often than the target has connections: whoever learns that it was refused leaves its own. */
PTEST(no_descriptor_is_left, 2)
{
    enum { TRIES = 4 };
    struct lone o;
    open_with(&o, SOON, "2");
    if (rank == 1) {
        take_descriptors();
    }
    BARRIER();
    if (rank == 0) {
        for (unsigned i = 1; i <= TRIES; i++) {
            lone_put(&o, lone_look(1));
            CHECK_EQ(lone_ended(&o, i).failure, i);
        }
        CHECK(is_logged("has refused or ended the connection"));
    }
    BARRIER();
    if (rank == 1) {
        CHECK(is_logged("ulimit -n"));
        CHECK_EQ(count(o.arrived), 0);
        give_descriptors();
    }
    BARRIER();
    if (rank == 0) {
        lone_put(&o, lone_look(1));
        CHECK_EQ(lone_ended(&o, TRIES + 1).success, 1);
    }
    BARRIER();
    CHECK_EQ(count(o.arrived), (uint64_t)rank);
    lone_close(&o);
}

/* Nobody notices anything if there are descriptors again in time. */
PTEST(descriptors_come_back, 2)
{
    struct lone o;
    open_with(&o, LATE, "256");
    if (rank == 1) {
        take_descriptors();
    }
    BARRIER();
    if (rank == 0) {
        lone_put(&o, lone_look(1));
    }
    BARRIER();
    if (rank == 1) {
        for (int i = 0; i < 1000; i++) {
            CHECK_EQ(count(o.arrived), 0);
        }
        give_descriptors();
    }
    BARRIER();
    if (rank == 0) {
        CHECK_EQ(lone_ended(&o, 1).success, 1);
        CHECK(!is_logged("refused"));
    }
    BARRIER();
    CHECK_EQ(count(o.arrived), (uint64_t)rank);
    lone_close(&o);
}

static void run_child(bool waits)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct lone o;
        lone_open(&o);
        lone_put(&o, lone_look(1));
        if (waits) {
            CHECK_EQ(lone_ended(&o, 1).failure, 1);
        }
        kill(getpid(), SIGKILL);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

/* As many as the target has connections are killed, after they were refused and before. */
PTEST(initiators_die_meanwhile, 2)
{
    struct lone o;
    setenv("PINWHEEL_CONNECT_MS", SOON, 1);
    setenv("PINWHEEL_SHM_PEERS", "2", 1);
    if (rank == 1) {
        open_with(&o, SOON, "2");
        take_descriptors();
    }
    BARRIER();
    if (rank == 0) {
        begin_log();
        run_child(true);
        run_child(false);
    }
    BARRIER();
    if (rank == 1) {
        give_descriptors();
    }
    BARRIER();
    if (rank == 0) {
        open_with(&o, LATE, "2");
        lone_put(&o, lone_look(1));
        CHECK_EQ(lone_ended(&o, 1).success, 1);
    }
    BARRIER();
    if (rank == 1) {
        CHECK(count(o.arrived) >= 1); /* and what the second one had sent */
    }
    lone_close(&o);
}

/* Both begin at once: one cannot reach the other, and is not to be answered either. */
PTEST(both_at_once, 2)
{
    struct lone o;
    open_with(&o, SOON, "256");
    if (rank == 1) {
        take_descriptors();
    }
    BARRIER();
    lone_put(&o, lone_look(1 - rank));
    CHECK_EQ(lone_ended(&o, 1).failure, 1);
    BARRIER();
    if (rank == 1) {
        give_descriptors();
    }
    BARRIER();
    lone_put(&o, lone_look(1 - rank));
    CHECK_EQ(lone_ended(&o, 2).success, 1);
    BARRIER();
    CHECK_EQ(count(o.arrived), 1);
    lone_close(&o);
}

/* The initiator has two connections for those that send to it: ranks 1 and 2 have them. */
PTEST(no_connection_is_left, 4)
{
    struct lone o;
    open_with(&o, rank == 3 ? SOON : LATE, "2");
    BARRIER();
    if (rank == 1 || rank == 2) {
        lone_put(&o, lone_look(0));
        CHECK_EQ(lone_ended(&o, 1).success, 1);
    } else if (rank == 0) {
        ptl_ct_event_t v;
        OK(PtlCTWait(o.arrived, 2, &v));
    }
    BARRIER();
    if (rank == 0) {
        lone_put(&o, lone_look(3));
        CHECK_EQ(lone_ended(&o, 1).failure, 1);
    }
    BARRIER();
    if (rank == 3) {
        CHECK(is_logged("PINWHEEL_SHM_PEERS"));
        CHECK_EQ(count(o.arrived), 0);
    } else if (rank == 1) {
        lone_close(&o);
    }
    BARRIER();
    if (rank == 0) {
        for (int i = 0; i < 1000; i++) {
            CHECK_EQ(count(o.arrived), 2); /* which sees that rank 1 has left */
        }
        lone_put(&o, lone_look(3));
        CHECK_EQ(lone_ended(&o, 2).success, 1);
    }
    BARRIER();
    if (rank != 1) {
        lone_close(&o);
    }
}
