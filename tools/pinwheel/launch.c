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
 * The first cause decides the exit status; what follows from it is not judged.
 * What the loop waits for is computed anew each round from the state of the
 * ranks, so there is nothing to keep in step with it.
 */
#include "launch.h"

#include "boot/pmi_server.h"
#include "groups.h"
#include "pump.h"
#include "relay.h"
#include "service.h"
#include "spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    GRACE_MS = 2000, /* from SIGTERM to SIGKILL */
    LEAVE_MS = 100,  /* for what a rank left behind to end by itself */
    STUCK_MS = 5000, /* after SIGKILL; then the kernel does not let a process die */
    SCAN_MS = 10,
};

enum phase { RUNNING, ENDING, KILLING };

struct process {
    bool running;
    struct relay_source out, err;
};

struct job {
    const struct launch *launch;
    struct service pmi;
    struct process *processes;
    pid_t *groups; /* pid and process group of each rank; 0: never started */
    int started, running;
    enum phase phase;
    int status;         /* for the launcher to exit with */
    bool judged;        /* status is final */
    bool draining;      /* nothing is left but output to write */
    bool give_up;       /* and nobody wants it any more */
    int64_t next_step;  /* ms: when the phase goes on by itself; INT64_MAX: not */
    int64_t time_limit; /* ms; INT64_MAX: none */
    struct relay out, err;
    int signals;      /* signalfd */
    struct pump pump; /* from a terminal to rank 0 */
    int keeper_fd;
    pid_t keeper;
    struct pollfd *fds;
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- The end of a job ---- */

static void signal_all(struct job *j, int signal)
{
    groups_signal(j->groups, j->started, signal);
}

/* Begins the end: `signal` now, SIGKILL after the grace. */
static void end_all(struct job *j, int signal)
{
    if (j->phase == RUNNING) {
        j->phase = ENDING;
        j->next_step = now_ms() + GRACE_MS;
        signal_all(j, signal);
        signal_all(j, SIGCONT); /* a stopped process acts on no signal */
    }
}

static void kill_all(struct job *j)
{
    j->phase = KILLING;
    j->next_step = now_ms() + STUCK_MS;
    signal_all(j, SIGKILL);
}

/* The first failure: says why and ends the job with `status`. */
static void __attribute__((format(printf, 3, 4)))
fail_job(struct job *j, int status, const char *format, ...)
{
    if (j->judged) {
        return;
    }
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    fprintf(stderr, "pinwheel run: %s\n", text);
    j->judged = true;
    j->status = status;
    end_all(j, SIGTERM);
}

static void judge_pmi(struct job *j)
{
    int rank, waiting, code;
    if (pmi_aborted(j->pmi.server, &rank, &code)) {
        int status = code & 255;
        fail_job(j, status == 0 && code != 0 ? 1 : status, "rank %d aborted the job with code %d",
                 rank, code);
    } else if (pmi_stuck(j->pmi.server, &rank, &waiting)) {
        fail_job(j, 1,
                 "rank %d left the job while rank %d waits for it in a barrier; all ranks must "
                 "make the same collective calls",
                 rank, waiting);
    }
}

/* ---- Processes ---- */

static void judge_exit(struct job *j, int rank, const siginfo_t *info)
{
    if (info->si_code == CLD_EXITED) {
        if (info->si_status != 0) {
            fail_job(j, info->si_status, "rank %d exited with status %d", rank, info->si_status);
        }
        return;
    }
    const char *name = sigabbrev_np(info->si_status), *meaning = sigdescr_np(info->si_status);
    fail_job(j, LAUNCH_SIGNAL + info->si_status, "rank %d was ended by signal %d (SIG%s, %s)%s",
             rank, info->si_status, name != NULL ? name : "?", meaning != NULL ? meaning : "?",
             info->si_code == CLD_DUMPED ? ", core dumped" : "");
}

/* Looks which ranks have exited. They stay unreaped (groups.h). What a rank said
 * to the server before it exited counts before its exit does. */
static void look_for_exits(struct job *j)
{
    for (int r = 0; r < j->started; r++) {
        siginfo_t info = {0};
        struct process *p = &j->processes[r];
        if (!p->running ||
            waitid(P_PID, (id_t)j->groups[r], &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0) {
            continue;
        }
        p->running = false;
        j->running--;
        while (service_read(&j->pmi, r)) {
        }
        judge_pmi(j);
        judge_exit(j, r, &info);
        service_close(&j->pmi, r);
    }
    judge_pmi(j);
}

static void take_signal(struct job *j, int signal)
{
    switch (signal) {
    case SIGCHLD:
        look_for_exits(j);
        break;
    case SIGUSR1:
    case SIGUSR2:
        signal_all(j, signal);
        break;
    case SIGTSTP: /* the ranks' groups do not hear of the terminal's Ctrl-Z */
        signal_all(j, SIGSTOP);
        raise(SIGSTOP);
        signal_all(j, SIGCONT);
        break;
    default: /* SIGINT, SIGTERM, SIGHUP, SIGQUIT */
        if (!j->judged) {
            j->judged = true;
            j->status = LAUNCH_SIGNAL + signal;
        }
        j->give_up = j->draining;
        if (j->phase == RUNNING) {
            end_all(j, signal);
        } else {
            kill_all(j);
        }
    }
}

/* Reaps a child that is no rank: an orphan of a rank, adopted. */
static void reap_orphan(struct job *j, pid_t pid)
{
    for (int r = 0; r < j->started; r++) {
        if (j->groups[r] == pid) {
            return;
        }
    }
    waitpid(pid, NULL, WNOHANG);
}

static void take_signals(struct job *j)
{
    struct signalfd_siginfo s;
    while (read(j->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
        if (s.ssi_signo == SIGCHLD && (pid_t)s.ssi_pid != j->keeper) {
            reap_orphan(j, (pid_t)s.ssi_pid);
        }
        take_signal(j, (int)s.ssi_signo);
    }
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
        (j->launch->label && (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0)) ||
        (pump && pipe2(in, O_CLOEXEC) != 0)) {
        rc = -errno;
    } else {
        ends.pmi = pmi[1];
        ends.out = out[1];
        ends.err = err[1];
        if (pump) {
            ends.in = in[0];
            pump_start(&j->pump, in[1]);
        }
        rc = spawn_rank(spawn, rank, &ends, &j->groups[rank], &what);
    }
    j->pmi.fds[rank] = pmi[0];
    p->out = (struct relay_source){.fd = out[0], .rank = rank};
    p->err = (struct relay_source){.fd = err[0], .rank = rank};
    fcntl(out[0], F_SETFL, O_NONBLOCK);
    fcntl(err[0], F_SETFL, O_NONBLOCK);
    const int theirs[] = {pmi[1], out[1], err[1], in[0]};
    for (int i = 0; i < 4; i++) {
        if (theirs[i] >= 0) {
            close(theirs[i]);
        }
    }
    j->started = rank + 1;
    const char *program = j->launch->argv[0];
    if (rc == 0) {
        p->running = true;
        j->running++;
    } else if (strcmp(what, "exec") != 0) {
        fail_job(j, 1, "cannot start rank %d: %s: %s%s", rank, what, strerror(-rc),
                 rc == -EMFILE   ? " (see ulimit -n)"
                 : rc == -EAGAIN ? " (see ulimit -u)"
                                 : "");
    } else if (rc == -ENOENT || rc == -ENOTDIR) {
        const char *where = strchr(program, '/') != NULL
                                ? " (or its interpreter is missing)"
                                : " in the folders of PATH; ./ names one of this folder";
        fail_job(j, LAUNCH_NOT_FOUND, "%s: no such program%s", program, where);
    } else {
        fail_job(j, LAUNCH_CANNOT_EXECUTE, "%s: cannot be executed: %s", program, strerror(-rc));
    }
}

/* ---- The loop ---- */

enum { FD_SIGNALS, FD_OUT, FD_ERR, FD_TERMINAL, FD_INPUT, FD_RANKS, FDS_PER_RANK = 3 };

/* Waits until something can be done, at most `timeout` ms (-1: no limit). */
static void wait_for_work(struct job *j, int timeout)
{
    struct pollfd *f = j->fds;
    f[FD_SIGNALS] = (struct pollfd){.fd = j->signals, .events = POLLIN};
    f[FD_OUT] = (struct pollfd){.fd = relay_empty(&j->out) ? -1 : j->out.out, .events = POLLOUT};
    f[FD_ERR] = (struct pollfd){.fd = relay_empty(&j->err) ? -1 : j->err.out, .events = POLLOUT};
    f[FD_TERMINAL] = (struct pollfd){.fd = pump_reads(&j->pump) ? 0 : -1, .events = POLLIN};
    f[FD_INPUT] = (struct pollfd){.fd = pump_writes(&j->pump) ? j->pump.to : -1, .events = POLLOUT};
    for (int r = 0; r < j->started; r++) {
        struct process *p = &j->processes[r];
        struct pollfd *of = &f[FD_RANKS + FDS_PER_RANK * r];
        of[0] = (struct pollfd){.fd = j->pmi.fds[r], .events = service_events(&j->pmi, r)};
        of[1] = (struct pollfd){.fd = relay_full(&j->out) ? -1 : p->out.fd, .events = POLLIN};
        of[2] = (struct pollfd){.fd = relay_full(&j->err) ? -1 : p->err.fd, .events = POLLIN};
    }
    nfds_t count = (nfds_t)(FD_RANKS + FDS_PER_RANK * j->started);
    if (poll(f, count, timeout) < 0) {
        memset(f, 0, count * sizeof(*f)); /* EINTR: nothing is ready */
    }
}

static void do_work(struct job *j)
{
    const struct pollfd *f = j->fds;
    int started = j->started;
    if (f[FD_TERMINAL].revents != 0) {
        pump_read(&j->pump, STDIN_FILENO);
    }
    if (f[FD_INPUT].revents != 0) {
        pump_write(&j->pump);
    }
    for (int r = 0; r < started; r++) {
        const struct pollfd *of = &f[FD_RANKS + FDS_PER_RANK * r];
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
    if (f[FD_OUT].revents != 0) {
        relay_write(&j->out);
    }
    if (f[FD_ERR].revents != 0) {
        relay_write(&j->err);
    }
    judge_pmi(j);
    if (f[FD_SIGNALS].revents != 0) {
        take_signals(j);
    }
}

static int ms_until(int64_t then)
{
    int64_t left = then - now_ms();
    return left < 0 ? 0 : left > 3600000 ? 3600000 : (int)left;
}

static void run_until_exits(struct job *j)
{
    while (j->running > 0) {
        int64_t next = j->next_step < j->time_limit ? j->next_step : j->time_limit;
        wait_for_work(j, next == INT64_MAX ? -1 : ms_until(next));
        do_work(j);
        int64_t now = now_ms();
        if (now >= j->time_limit) {
            j->time_limit = INT64_MAX;
            fail_job(j, LAUNCH_TIMED_OUT, "the job has not ended within %ld s, ending it",
                     j->launch->timeout_seconds);
        }
        if (now >= j->next_step && j->phase == KILLING) {
            fprintf(stderr, "pinwheel run: a rank does not end even after SIGKILL, giving up\n");
            return;
        }
        if (now >= j->next_step) {
            kill_all(j);
        }
    }
}

/* Ends what ranks have left behind in their process groups: first it may go by
 * itself, then SIGTERM, then SIGKILL. */
static void end_leftovers(struct job *j)
{
    int64_t next = now_ms() + LEAVE_MS;
    int left;
    while ((left = groups_alive(j->groups, j->started)) >= 0) {
        wait_for_work(j, SCAN_MS);
        do_work(j);
        if (now_ms() < next) {
            continue;
        }
        if (j->phase == RUNNING) {
            fprintf(stderr, "pinwheel run: rank %d has left processes behind, ending them\n", left);
            end_all(j, SIGTERM);
        } else if (j->phase == ENDING && now_ms() >= j->next_step) {
            kill_all(j);
        } else if (j->phase == KILLING && now_ms() >= j->next_step) {
            fprintf(stderr,
                    "pinwheel run: a process of rank %d does not end even after SIGKILL, "
                    "giving up\n",
                    left);
            return;
        }
    }
    if (left == -2) {
        signal_all(j, SIGKILL); /* no /proc to look at */
    }
}

static void write_out(struct job *j)
{
    while ((!relay_empty(&j->out) || !relay_empty(&j->err)) && !j->give_up) {
        wait_for_work(j, -1);
        do_work(j);
    }
}

/* Takes what is in the pipes now (a process that left its group may hold them
 * open for ever) and writes it all. */
static void drain_output(struct job *j)
{
    j->draining = true;
    for (int r = 0; r < j->started; r++) {
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

static void catch_signals(struct job *j, sigset_t *before)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
        struct sigaction present;
        sigaction(ending[i], NULL, &present);
        if (present.sa_handler != SIG_IGN) { /* nohup, or a shell's background job */
            sigaddset(&set, ending[i]);
        }
    }
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTSTP);
    sigaddset(&set, SIGUSR1);
    sigaddset(&set, SIGUSR2);
    signal(SIGCHLD, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_BLOCK, &set, before);
    j->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void random_hex(char *text, size_t bytes)
{
    unsigned char raw[16];
    while (getrandom(raw, bytes, 0) != (ssize_t)bytes) {
    }
    for (size_t i = 0; i < bytes; i++) {
        snprintf(text + 2 * i, 3, "%02x", raw[i]);
    }
}

/* A rank needs up to five descriptors here, the soft limit is often 1024. */
static void raise_descriptor_limit(struct rlimit *before)
{
    getrlimit(RLIMIT_NOFILE, before);
    struct rlimit raised = {before->rlim_max, before->rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);
}

/* Closed standard descriptors must not become pipes of ours. */
static void fill_standard_descriptors(void)
{
    int fd = 0;
    while (fd >= 0 && fd < 3) {
        fd = open("/dev/null", O_RDWR);
    }
    close(fd);
}

static void start_all(struct job *j, struct spawn *spawn)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int r = 0; r < j->launch->size && j->phase == RUNNING; r++) {
        start_rank(j, spawn, r, null);
    }
    close(null);
}

static void destroy(struct job *j)
{
    groups_dismiss(j->keeper_fd, j->keeper);
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    service_free(&j->pmi);
    relay_free(&j->out);
    relay_free(&j->err);
    free(j->processes);
    free(j->groups);
    free(j->fds);
    pump_stop(&j->pump);
    close(j->signals);
}

int launch_run(const struct launch *launch)
{
    char key[33], id[64], unique[9];
    cpu_set_t cores;
    struct spawn spawn = {.argv = launch->argv,
                          .environment = launch->environment,
                          .environment_count = launch->environment_count,
                          .size = launch->size,
                          .job_key = key,
                          .job_id = id};
    size_t n = (size_t)launch->size;
    struct job j = {.launch = launch,
                    .processes = calloc(n, sizeof(*j.processes)),
                    .groups = calloc(n, sizeof(*j.groups)),
                    .fds = calloc(FD_RANKS + FDS_PER_RANK * n, sizeof(*j.fds)),
                    .next_step = INT64_MAX,
                    .time_limit = INT64_MAX,
                    .out = {.out = STDOUT_FILENO},
                    .err = {.out = STDERR_FILENO},
                    .pump = {.to = -1}};
    fill_standard_descriptors();
    random_hex(key, 16);
    random_hex(unique, 4);
    snprintf(id, sizeof(id), "pinwheel-%d-%s", (int)getpid(), unique);
    if (j.processes == NULL || j.groups == NULL || j.fds == NULL ||
        service_open(&j.pmi, launch->size, id) != 0) {
        fprintf(stderr, "pinwheel run: no memory for a job of %d ranks\n", launch->size);
        return 1;
    }
    if (launch->bind_cores && sched_getaffinity(0, sizeof(cores), &cores) == 0) {
        spawn.cores = &cores;
    }
    catch_signals(&j, &spawn.signal_mask);
    prctl(PR_SET_CHILD_SUBREAPER, 1); /* so that no orphan stays a zombie */
    raise_descriptor_limit(&spawn.descriptors);
    j.keeper_fd = groups_keeper(&j.keeper);
    if (j.signals < 0 || j.keeper_fd < 0) {
        fprintf(stderr, "pinwheel run: cannot start: %s\n",
                strerror(j.signals < 0 ? errno : -j.keeper_fd));
        return 1;
    }
    spawn.keeper = j.keeper_fd;
    if (launch->timeout_seconds > 0) {
        j.time_limit = now_ms() + launch->timeout_seconds * 1000;
    }
    start_all(&j, &spawn);
    run_until_exits(&j);
    end_leftovers(&j);
    drain_output(&j);
    destroy(&j);
    return j.status;
}
