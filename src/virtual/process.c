/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of a program. A forked child is a process of the same rank: it begins at its parent's
 * time, and is the rank's next one to run then. One that is made by other means than fork() is no
 * part of the simulation.
 */
#include "virtual.h"

#include "base/sys.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 2000 };

SHOWN pid_t fork(void)
{
    if (!virtual_in()) {
        pid_t pid = REAL(fork)();
        if (pid == 0) {
            virtual_clock = NULL; /* it is in the midst of what its parent does */
        }
        return pid;
    }
    struct sim_clock *c = virtual_clock;
    struct sim_rank *place = sim_clock_reserve(c);
    if (place == NULL) {
        errno = EAGAIN;
        return -1;
    }
    pid_t pid = REAL(fork)();
    int error = errno;
    if (pid == 0) {
        virtual_forked_threads();
    }
    sim_clock_forked(c, place, pid > 0 ? (uint32_t)pid : 0, pid == 0);
    errno = error;
    return pid;
}

SHOWN pid_t vfork(void)
{
    return fork();
}

SHOWN int posix_spawn(pid_t *restrict pid, const char *restrict path,
                      const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                      char *const env[restrict])
{
    virtual_strangers = true;
    return REAL(posix_spawn)(pid, path, actions, attributes, argv, env);
}

SHOWN int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                       const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                       char *const env[restrict])
{
    virtual_strangers = true;
    return REAL(posix_spawnp)(pid, file, actions, attributes, argv, env);
}

SHOWN FILE *popen(const char *command, const char *mode)
{
    virtual_strangers = true;
    return REAL(popen)(command, mode);
}

/* ---- ends ---- */

SHOWN void _exit(int status)
{
    if (virtual_clock != NULL) {
        sim_clock_leave(virtual_clock);
    }
    SYS_CALL(SYS_exit_group, status);
    __builtin_unreachable();
}

SHOWN void _Exit(int status)
{
    _exit(status);
}

/* ---- waits for children ---- */

struct child_wait {
    pid_t pid;
    int *status, options;
    struct rusage *usage;
    idtype_t type;
    id_t id;
    siginfo_t *info;
    int error;
    pid_t found;
};

static bool has_child(void *wait)
{
    struct child_wait *w = wait;
    w->found = REAL(wait4)(w->pid, w->status, w->options | WNOHANG, w->usage);
    w->error = errno;
    return w->found != 0;
}

SHOWN pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    struct child_wait w = {.pid = pid, .status = status, .options = options, .usage = usage};
    if ((options & WNOHANG) != 0 || !virtual_in()) {
        return REAL(wait4)(pid, status, options, usage);
    }
    enum virtual_end end =
        virtual_await(has_child, &w, SIM_NEVER, virtual_strangers ? "a process" : NULL);
    errno = end == VIRTUAL_SIGNAL ? EINTR : w.error;
    return end == VIRTUAL_SIGNAL ? -1 : w.found;
}

SHOWN pid_t waitpid(pid_t pid, int *status, int options)
{
    return wait4(pid, status, options, NULL);
}

SHOWN pid_t wait(int *status)
{
    return wait4(-1, status, 0, NULL);
}

SHOWN pid_t wait3(int *status, int options, struct rusage *usage)
{
    return wait4(-1, status, options, usage);
}

static bool has_info(void *wait)
{
    struct child_wait *w = wait;
    w->info->si_pid = 0;
    w->found = REAL(waitid)(w->type, w->id, w->info, w->options | WNOHANG);
    w->error = errno;
    return w->found != 0 || w->info->si_pid != 0;
}

SHOWN int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    siginfo_t own;
    struct child_wait w = {
        .type = type, .id = id, .info = info != NULL ? info : &own, .options = options};
    if ((options & WNOHANG) != 0 || !virtual_in()) {
        return REAL(waitid)(type, id, info, options);
    }
    enum virtual_end end =
        virtual_await(has_info, &w, SIM_NEVER, virtual_strangers ? "a process" : NULL);
    errno = end == VIRTUAL_SIGNAL ? EINTR : w.error;
    return end == VIRTUAL_SIGNAL ? -1 : w.found;
}

/* ---- signals ---- */

/* A process that is killed ends at the time at which it is killed, so its end is awaited. */
static void await_end(pid_t pid)
{
    int fd = pidfd_open(pid, 0);
    if (fd >= 0) {
        sys_poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, END_MS);
        sys_close(fd);
    }
}

/* The record of another process of the rank; NULL: it is none. */
static struct sim_rank *find_other(pid_t pid)
{
    const struct sim_segment *s = virtual_clock->segment;
    uint32_t host = sim_host(s, virtual_clock->rank);
    for (uint32_t i = 0; i <= s->processes; i++) {
        struct sim_rank *r = sim_place(s, i == s->processes ? host : sim_child(s, host) + i);
        if (r != virtual_clock->shared && atomic_load(&r->taken) != 0 &&
            atomic_load(&r->pid) == (uint32_t)pid) {
            return r;
        }
    }
    return NULL;
}

/* Another process finds a signal at the time at which it was sent. */
static void note_signal(struct sim_rank *other, int signal)
{
    if (signal == SIGSTOP) {
        atomic_store(&other->stopped, 1);
    } else if (signal == SIGCONT) {
        atomic_store(&other->stopped, 0);
    } else {
        atomic_store(&other->signal, (uint32_t)signal);
    }
}

static void stop_now(void)
{
    REAL(kill)(getpid(), SIGSTOP);
}

SHOWN int raise(int signal)
{
    if (signal != SIGSTOP || !virtual_in()) {
        return REAL(raise)(signal);
    }
    sim_clock_stop(virtual_clock, stop_now);
    return 0;
}

SHOWN int kill(pid_t pid, int signal)
{
    if (pid == getpid() && signal == SIGSTOP) {
        return raise(signal);
    }
    int rc = REAL(kill)(pid, signal);
    int error = errno;
    if (rc == 0 && signal != 0 && virtual_in()) {
        if (signal == SIGKILL && pid > 0) {
            await_end(pid);
        }
        struct sim_rank *other = find_other(pid);
        if (other != NULL) {
            note_signal(other, signal);
        }
        virtual_stir();
    }
    errno = error;
    return rc;
}
