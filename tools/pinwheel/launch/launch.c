/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's loop; see launch.h.
 *
 *     RUNNING --a failure, a signal to us, the time is over--> ENDING
 *     RUNNING --the last rank exited--> LEFT
 *     ENDING --grace over, or a second signal--> KILLING
 *     ENDING, KILLING --the last rank exited--> LEFT
 *     LEFT: processes that ranks left in their groups are ended in the same two
 *           steps; none is alive: done
 *
 * Each round of the loop computes anew from the state of the ranks what it waits for, so it needs
 * no state of its own.
 */
#include "job.h"

#include "base/log.h"
#include "base/random.h"
#include "boot/pmi_server.h"
#include "groups.h"
#include "spawn.h"
#include "wait.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Returns how many ranks have not exited. */
static int running(const struct job *j)
{
    return job_is_away(j) ? hosts_running(&j->hosts) : j->children.running;
}

static int signals_of(const struct job *j)
{
    return job_is_away(j) ? j->hosts.shells.signals : j->children.signals;
}

/* ---- Processes ---- */

/* Learns which ranks have exited. It handles all that a rank has sent to the PMI server before the
 * rank's exit. */
static void hear_exits(struct job *j)
{
    siginfo_t how;
    if (job_is_away(j)) {
        hosts_look(&j->hosts);
    }
    for (int r; !job_is_away(j) && (r = children_exited(&j->children, &how)) >= 0;) {
        while (service_read(&j->pmi, r)) {
        }
        job_take_exit(j, r, how.si_code, how.si_status);
        service_close(&j->pmi, r);
    }
}

static void look_for_exits(struct job *j)
{
    hear_exits(j);
    /* If a rank's end made another rank fail, its connection was closed before that. */
    for (int r = 0; !job_is_away(j) && j->holding && r < j->shown; r++) {
        while (service_read(&j->pmi, r)) {
        }
    }
    job_judge(j);
}

static void take_signal(struct job *j, int signal)
{
    switch (signal) {
    case SIGCHLD:
        look_for_exits(j);
        break;
    case SIGUSR1:
    case SIGUSR2:
        job_signal(j, signal);
        break;
    case SIGTSTP: /* Ctrl-Z in the terminal does not reach the process groups of the ranks */
        job_signal(j, SIGSTOP);
        raise(SIGSTOP);
        job_signal(j, SIGCONT);
        break;
    default: /* SIGINT, SIGTERM, SIGHUP, SIGQUIT */
        hear_exits(j);
        job_say_waiting(j);
        if (!j->judged) {
            j->judged = true;
            j->status = LAUNCH_SIGNAL + signal;
        }
        j->give_up = j->draining;
        if (j->phase == RUNNING) {
            job_end(j, signal);
        } else {
            job_kill(j);
        }
    }
}

static void take_signals(struct job *j)
{
    struct signalfd_siginfo s;
    const struct children *c = job_is_away(j) ? &j->hosts.shells : &j->children;
    while (read(c->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
        children_took(c, (int)s.ssi_signo, (pid_t)s.ssi_pid);
        take_signal(j, (int)s.ssi_signo);
    }
}

/* Makes the pipes of a rank's output, if it gets some; -1 with errno set. */
static int make_output(const struct job *j, int rank, int out[2], int err[2])
{
    const struct launch *l = j->launch;
    if (!job_has_pipes(l)) {
        return 0;
    }
    if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
        return -1;
    }
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    if (l->piped == NULL) {
        return 0;
    }
    int rc = l->piped(l->context, rank, out[0], err[0]);
    out[0] = -1;
    err[0] = -1;
    return rc;
}

static void start_rank(struct job *j, struct spawn *spawn, int rank, int null)
{
    struct process *p = &j->processes[rank];
    int pmi[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, in[2] = {-1, -1};
    bool pump = rank == 0 && isatty(0);
    struct spawn_ends ends = {.in = rank == 0 ? -1 : null, .out = -1, .err = -1};
    const char *what = "making its pipes";
    int rc = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pmi) != 0 ||
        make_output(j, rank, out, err) != 0 || (pump && pipe2(in, O_CLOEXEC) != 0)) {
        rc = -errno;
    } else {
        ends.pmi = pmi[1];
        ends.out = out[1];
        ends.err = err[1];
        if (pump) {
            ends.in = in[0];
            pump_start(&j->pump, in[1]);
        }
        rc = children_start(&j->children, spawn, rank, &ends, &what);
        if (rc == 0 && j->launch->started != NULL) {
            j->launch->started(j->launch->context, rank, (int)j->children.groups[rank]);
        }
    }
    j->pmi.fds[rank] = pmi[0];
    p->out = (struct relay_source){.fd = out[0], .rank = rank};
    p->err = (struct relay_source){.fd = err[0], .rank = rank};
    const int theirs[] = {pmi[1], out[1], err[1], in[0]};
    for (int i = 0; i < 4; i++) {
        if (theirs[i] >= 0) {
            close(theirs[i]);
        }
    }
    j->shown = rank + 1;
    if (rc != 0) {
        job_fail_start(j, rank, -rc, what);
    }
}

/* ---- The loop ---- */

/* Descriptors that the launcher needs beside those of each rank: the signals, the keeper, the lock
 * of cores, /dev/null, and briefly the other ends of one rank's connection and pipes. */
enum { SPARE_FDS = 16 };

enum { FD_SIGNALS, FD_OUT, FD_ERR, FD_TERMINAL, FD_INPUT, FD_RANKS, FDS_PER_RANK = 3 };

static int ms_until(int64_t then)
{
    int64_t left = then - now_ms();
    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

/* Handles a failure of poll(): ends the job, and from then on looks often instead of waiting. */
static void cannot_wait(struct job *j, int error)
{
    job_fail(j, 1, "cannot wait for the ranks: poll: %s%s", strerror(error), log_remedy(error));
    j->give_up = j->draining;
    j->fds[FD_SIGNALS].revents = POLLIN;
}

/* Waits until there is something to do, at most `timeout` ms (-1: no limit). */
static void wait_for_work(struct job *j, int timeout)
{
    struct pollfd *f = j->fds;
    bool input =
        job_is_away(j) ? !j->input_closed && j->hosts.input_room > 0 : pump_reads(&j->pump);
    f[FD_SIGNALS] = (struct pollfd){.fd = signals_of(j), .events = POLLIN};
    f[FD_OUT] = (struct pollfd){.fd = relay_empty(&j->out) ? -1 : j->out.out, .events = POLLOUT};
    f[FD_ERR] = (struct pollfd){.fd = relay_empty(&j->err) ? -1 : j->err.out, .events = POLLOUT};
    f[FD_TERMINAL] = (struct pollfd){.fd = input ? STDIN_FILENO : -1, .events = POLLIN};
    f[FD_INPUT] = (struct pollfd){.fd = pump_writes(&j->pump) ? j->pump.to : -1, .events = POLLOUT};
    nfds_t count = FD_RANKS;
    if (job_is_away(j)) {
        bool wanted = j->phase != RUNNING || (!relay_full(&j->out) && !relay_full(&j->err));
        hosts_poll(&j->hosts, f + FD_RANKS, wanted);
        count += 2 * (nfds_t)j->hosts.count;
        int until = ms_until(hosts_deadline(&j->hosts));
        timeout = timeout < 0 || until < timeout ? until : timeout;
    }
    for (int r = 0; !job_is_away(j) && r < j->shown; r++, count += FDS_PER_RANK) {
        struct process *p = &j->processes[r];
        struct pollfd *of = &f[count];
        of[0] = (struct pollfd){.fd = j->pmi.fds[r], .events = service_events(&j->pmi, r)};
        of[1] = (struct pollfd){.fd = relay_full(&j->out) ? -1 : p->out.fd, .events = POLLIN};
        of[2] = (struct pollfd){.fd = relay_full(&j->err) ? -1 : p->err.fd, .events = POLLIN};
    }
    int rc = wait_some(f, f + count, count, timeout);
    if (rc != 0) {
        cannot_wait(j, -rc);
    }
}

/* Reads input for a rank 0 on another host. */
static void read_input(struct job *j)
{
    char bytes[4096];
    size_t room = (size_t)j->hosts.input_room;
    ssize_t n = read(STDIN_FILENO, bytes, room < sizeof(bytes) ? room : sizeof(bytes));
    if (n >= 0 || (errno != EAGAIN && errno != EINTR)) {
        j->input_closed = n <= 0;
        hosts_input(&j->hosts, bytes, n > 0 ? (size_t)n : 0);
    }
}

static void serve_ranks(struct job *j)
{
    for (int r = 0; r < j->shown; r++) {
        const struct pollfd *of = &j->fds[FD_RANKS + FDS_PER_RANK * r];
        if ((of[0].revents & POLLOUT) != 0) {
            service_write(&j->pmi, r);
        }
        if ((of[0].revents & ~POLLOUT) != 0) {
            service_read(&j->pmi, r);
        }
        if (of[1].revents != 0) {
            relay_read(&j->out, &j->processes[r].out);
        }
        if (of[2].revents != 0) {
            relay_read(&j->err, &j->processes[r].err);
        }
    }
}

static void do_work(struct job *j)
{
    const struct pollfd *f = j->fds;
    if (f[FD_TERMINAL].revents != 0 && job_is_away(j)) {
        read_input(j);
    } else if (f[FD_TERMINAL].revents != 0) {
        pump_read(&j->pump, STDIN_FILENO);
    }
    if (f[FD_INPUT].revents != 0) {
        pump_write(&j->pump);
    }
    if (job_is_away(j)) {
        hosts_work(&j->hosts, f + FD_RANKS);
        hosts_look(&j->hosts);
    } else {
        serve_ranks(j);
    }
    if (f[FD_OUT].revents != 0) {
        relay_write(&j->out);
    }
    if (f[FD_ERR].revents != 0) {
        relay_write(&j->err);
    }
    job_judge(j);
    if (f[FD_SIGNALS].revents != 0) {
        take_signals(j);
    }
}

static void run_until_exits(struct job *j)
{
    while (running(j) > 0) {
        int64_t next = j->next_step < j->time_limit ? j->next_step : j->time_limit;
        next = j->doubt_until < next ? j->doubt_until : next;
        wait_for_work(j, next == INT64_MAX ? -1 : ms_until(next));
        do_work(j);
        int64_t now = now_ms();
        if (now >= j->time_limit) {
            j->time_limit = INT64_MAX;
            job_say_waiting(j);
            job_fail(j, LAUNCH_TIMED_OUT, "the job has not ended within %ld s, ending it",
                     j->launch->timeout_seconds);
        }
        if (now >= j->next_step && j->phase == KILLING) {
            fprintf(stderr, "pinwheel run: a rank does not end even after SIGKILL, giving up\n");
            return;
        }
        if (now >= j->next_step) {
            job_kill(j);
        }
    }
}

/* Ends processes that ranks have left in their process groups: lets them end by themselves for a
 * while, then sends SIGTERM, then SIGKILL. */
static void end_leftovers(struct job *j)
{
    int64_t next = now_ms() + LEAVE_MS;
    int left;
    while ((left = groups_alive(j->children.groups, j->children.started)) >= 0 ||
           left == GROUPS_LATER) {
        wait_for_work(j, SCAN_MS);
        do_work(j);
        if (now_ms() < next) {
            continue;
        }
        if (j->phase == RUNNING) {
            job_say_left(left, false);
            job_end(j, SIGTERM);
        } else if (j->phase == ENDING && now_ms() >= j->next_step) {
            job_kill(j);
        } else if (j->phase == KILLING && now_ms() >= j->next_step) {
            job_say_left(left, true);
            return;
        }
    }
    if (left == GROUPS_UNTOLD) {
        job_signal(j, SIGKILL);
    }
}

/* Waits until the agents on other hosts have ended what their ranks left. Only output comes from
 * them now. */
static void end_hosts(struct job *j)
{
    j->draining = true;
    hosts_end(&j->hosts);
    while (!hosts_over(&j->hosts) && !j->give_up) {
        wait_for_work(j, -1);
        do_work(j);
    }
}

static void write_out(struct job *j)
{
    while ((!relay_empty(&j->out) || !relay_empty(&j->err)) && !j->give_up) {
        wait_for_work(j, -1);
        do_work(j);
    }
}

/* Reads all that is in the ranks' pipes now, and writes it. It does not wait for their ends, since
 * a process that has left its group may hold a pipe open for ever. */
static void drain_output(struct job *j)
{
    j->draining = true;
    for (int r = 0; r < j->shown; r++) {
        struct process *p = &j->processes[r];
        while (!j->give_up && (relay_read(&j->out, &p->out) || relay_read(&j->err, &p->err))) {
            if (relay_full(&j->out) || relay_full(&j->err)) {
                write_out(j);
            }
        }
        relay_close(&j->out, &p->out);
        relay_close(&j->err, &p->err);
    }
    write_out(j);
}

/* ---- Set-up ---- */

static void start_ranks(struct job *j, struct spawn *spawn)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int r = 0; r < j->launch->size && j->phase == RUNNING; r++) {
        start_rank(j, spawn, r, null);
    }
    close(null);
}

/* True if the launcher may have as many descriptors as the job needs: for each rank a PMI
 * connection, and two pipes if output is labelled; and SPARE_FDS. */
static bool has_room(const struct launch *l)
{
    struct rlimit limit;
    int needed = children_limit(l->size * (job_has_pipes(l) ? 3 : 1) + SPARE_FDS);
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_max >= (rlim_t)needed) {
        return true;
    }
    fprintf(stderr,
            "pinwheel run: a job of %d ranks%s needs %d file descriptors here, and the hard limit "
            "is %llu: raise it (ulimit -Hn %d), or start fewer ranks%s\n",
            l->size, l->label ? " with --label" : "", needed, (unsigned long long)limit.rlim_max,
            needed, l->piped != NULL ? ", or let them write output themselves (--direct)" : "");
    return false;
}

static int start_here(struct job *j, const char *key, const char *id)
{
    cpu_set_t cores;
    const struct launch *l = j->launch;
    struct spawn spawn = {.argv = l->argv,
                          .environment = l->environment,
                          .environment_count = l->environment_count,
                          .rank_environment = l->rank_environment,
                          .size = l->size,
                          .job_key = key,
                          .job_id = id};
    if (!has_room(l) || children_open(&j->children, l->size, &spawn) != 0) {
        return -1;
    }
    if (l->bind == LAUNCH_BIND_CORE && sched_getaffinity(0, sizeof(cores), &cores) == 0) {
        spawn.cores = &cores;
    } else if (l->bind == LAUNCH_BIND_HOME) {
        cores_claim(&j->cores, l->size);
        spawn.home = j->cores.home;
    }
    start_ranks(j, &spawn);
    return 0;
}

/* Frees the parts of a job that was not started. */
static void release(struct job *j)
{
    cores_release(&j->cores);
    service_free(&j->pmi);
    relay_free(&j->out);
    relay_free(&j->err);
    free(j->processes);
    free(j->fds);
}

static void destroy(struct job *j)
{
    if (job_is_away(j)) {
        hosts_close(&j->hosts);
    } else {
        children_close(&j->children);
    }
    release(j);
    pump_stop(&j->pump);
}

int launch_run(const struct launch *launch)
{
    char key[33], id[64], unique[9], hosts[PMI_VALUE_MAX];
    size_t n = (size_t)launch->size;
    size_t ends = launch->hosts != NULL ? 2 * (size_t)launch->hosts->count : FDS_PER_RANK * n;
    struct job j = {.launch = launch,
                    .processes = calloc(n, sizeof(*j.processes)),
                    .fds = calloc(2 * (FD_RANKS + ends), sizeof(*j.fds)),
                    .next_step = INT64_MAX,
                    .doubt_until = INT64_MAX,
                    .time_limit = INT64_MAX,
                    .out = {.out = STDOUT_FILENO},
                    .err = {.out = STDERR_FILENO},
                    .cores = {.lock = -1},
                    .pump = {.to = -1}};
    random_hex(key, 16);
    random_hex(unique, 4);
    snprintf(id, sizeof(id), "pinwheel-%d-%s", (int)getpid(), unique);
    if (job_is_away(&j)) {
        job_describe_hosts(launch->hosts, hosts);
    }
    if (j.processes == NULL || j.fds == NULL ||
        service_open(&j.pmi, launch->size, id, job_is_away(&j) ? hosts : NULL) != 0) {
        fprintf(stderr, "pinwheel run: no memory for a job of %d ranks\n", launch->size);
        return 1;
    }
    if (launch->keep_going) {
        pmi_keep_going(j.pmi.server);
    }
    if (launch->timeout_seconds > 0) {
        j.time_limit = now_ms() + launch->timeout_seconds * 1000;
    }
    if ((job_is_away(&j) ? job_start_away(&j, key, id) : start_here(&j, key, id)) != 0) {
        release(&j);
        return 1;
    }
    run_until_exits(&j);
    if (job_is_away(&j)) {
        end_hosts(&j);
    } else {
        end_leftovers(&j);
    }
    drain_output(&j);
    destroy(&j);
    return j.status;
}
