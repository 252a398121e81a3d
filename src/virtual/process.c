/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes of a program. A forked child is a process of the same rank: it begins at its parent's
 * time, and is the rank's next one to run then. So is one that posix_spawn(), system() or popen()
 * starts.
 */
#include "virtual.h"

#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 2000 };

SHOWN pid_t fork(void)
{
    if (!virtual_in()) {
        pid_t pid = OPENLY(REAL(fork)());
        if (pid == 0) {
            virtual_tsc_off();
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
    pid_t pid = OPENLY(REAL(fork)());
    int error = errno;
    if (pid == 0) {
        virtual_forked_threads();
        virtual_forked_timers();
    }
    sim_clock_forked(c, place, pid > 0 ? (uint32_t)pid : 0, pid == 0);
    if (pid == 0) {
        virtual_trap();
    }
    errno = error;
    return pid;
}

SHOWN pid_t vfork(void)
{
    return fork();
}

/* ---- programs that are started ---- */

typedef int spawn_call(pid_t *restrict, const char *restrict, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *restrict, char *const[], char *const[]);

/* What is started takes a place, as what is forked, and finds it by its number
 * (sim_clock_make()). */
static int spawn(spawn_call *call, pid_t *restrict pid, const char *restrict path,
                 const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *restrict attributes, char *const argv[],
                 char *const env[])
{
    bool tsc = virtual_tsc_off();
    if (!virtual_in()) {
        virtual_strangers |= virtual_clock != NULL;
        int rc = call(pid, path, actions, attributes, argv, env);
        virtual_tsc_on(tsc);
        return rc;
    }
    struct sim_clock *c = virtual_clock;
    struct sim_rank *place = sim_clock_reserve(c);
    pid_t child = 0;
    if (place == NULL) {
        virtual_tsc_on(tsc);
        return EAGAIN;
    }
    int rc = OPENLY(call(&child, path, actions, attributes, argv, env));
    virtual_tsc_on(tsc);
    sim_clock_forked(c, place, rc == 0 ? (uint32_t)child : 0, false);
    if (rc == 0 && pid != NULL) {
        *pid = child;
    }
    return rc;
}

SHOWN int posix_spawn(pid_t *restrict pid, const char *restrict path,
                      const posix_spawn_file_actions_t *actions,
                      const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                      char *const env[restrict])
{
    return spawn(REAL(posix_spawn), pid, path, actions, attributes, argv, env);
}

SHOWN int posix_spawnp(pid_t *restrict pid, const char *restrict file,
                       const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                       char *const env[restrict])
{
    return spawn(REAL(posix_spawnp), pid, file, actions, attributes, argv, env);
}

static int start_shell(pid_t *pid, const char *command, const posix_spawn_file_actions_t *actions,
                       const posix_spawnattr_t *attributes)
{
    char *argv[] = {(char *)"sh", (char *)"-c", (char *)"--", (char *)command, NULL};
    return posix_spawn(pid, "/bin/sh", actions, attributes, argv, environ);
}

SHOWN int system(const char *command)
{
    if (!virtual_in() || command == NULL) {
        return REAL(system)(command);
    }
    struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
    posix_spawnattr_t attributes;
    sigset_t mask, back;
    int status = -1;
    pid_t pid;
    sigaction(SIGINT, &ignore, &interrupt);
    sigaction(SIGQUIT, &ignore, &quit);
    sigemptyset(&mask);
    sigaddset(&mask, SIGCHLD);
    pthread_sigmask(SIG_BLOCK, &mask, &back);
    sigemptyset(&mask);
    if (interrupt.sa_handler != SIG_IGN) {
        sigaddset(&mask, SIGINT);
    }
    if (quit.sa_handler != SIG_IGN) {
        sigaddset(&mask, SIGQUIT);
    }
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &mask);
    posix_spawnattr_setsigmask(&attributes, &back);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    int rc = start_shell(&pid, command, NULL, &attributes);
    posix_spawnattr_destroy(&attributes);
    if (rc == 0) {
        while (wait4(pid, &status, 0, NULL) < 0 && errno == EINTR) {
        }
    } else {
        errno = rc;
    }
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGQUIT, &quit, NULL);
    pthread_sigmask(SIG_SETMASK, &back, NULL);
    return status;
}

/* The streams of popen(). Whoever has the clock has them. */
static struct stream {
    struct stream *next;
    FILE *file;
    pid_t pid;
} * streams;

SHOWN FILE *popen(const char *command, const char *mode)
{
    if (!virtual_in()) {
        virtual_strangers |= virtual_clock != NULL;
        return REAL(popen)(command, mode);
    }
    bool reads = mode[0] == 'r';
    int ends[2], rc;
    posix_spawn_file_actions_t actions;
    struct stream *s = reads || mode[0] == 'w' ? calloc(1, sizeof(*s)) : NULL;
    if (s == NULL || pipe2(ends, O_CLOEXEC) != 0) {
        errno = s == NULL && !reads && mode[0] != 'w' ? EINVAL : errno;
        free(s);
        return NULL;
    }
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[reads], reads);
    rc = start_shell(&s->pid, command, &actions, NULL);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[reads]);
    s->file = rc == 0 ? fdopen(ends[!reads], reads ? "r" : "w") : NULL;
    if (s->file == NULL) {
        close(ends[!reads]);
        free(s);
        errno = rc != 0 ? rc : ENOMEM;
        return NULL;
    }
    if (strchr(mode, 'e') == NULL) {
        fcntl(ends[!reads], F_SETFD, 0);
    }
    s->next = streams;
    streams = s;
    return s->file;
}

SHOWN int pclose(FILE *file)
{
    struct stream **at = &streams, *s;
    int status;
    while (*at != NULL && (*at)->file != file) {
        at = &(*at)->next;
    }
    if ((s = *at) == NULL) {
        return REAL(pclose)(file);
    }
    pid_t pid = s->pid, rc;
    *at = s->next;
    free(s);
    fclose(file);
    while ((rc = wait4(pid, &status, 0, NULL)) < 0 && errno == EINTR) {
    }
    return rc < 0 ? -1 : status;
}

/* ---- ends ---- */

SHOWN void _exit(int status)
{
    if (virtual_clock != NULL) {
        virtual_untrap();
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
    w->found = OPENLY(REAL(wait4)(w->pid, w->status, w->options | WNOHANG, w->usage));
    w->error = errno;
    return w->found != 0;
}

SHOWN pid_t wait4(pid_t pid, int *status, int options, struct rusage *usage)
{
    struct child_wait w = {.pid = pid, .status = status, .options = options, .usage = usage};
    if ((options & WNOHANG) != 0 || !virtual_in()) {
        return OPENLY(REAL(wait4)(pid, status, options, usage));
    }
    enum virtual_end end =
        virtual_await_again(has_child, &w, SIM_NEVER, virtual_strangers ? "a process" : NULL);
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
    w->found = OPENLY(REAL(waitid)(w->type, w->id, w->info, w->options | WNOHANG));
    w->error = errno;
    return w->found != 0 || w->info->si_pid != 0;
}

SHOWN int waitid(idtype_t type, id_t id, siginfo_t *info, int options)
{
    siginfo_t own;
    struct child_wait w = {
        .type = type, .id = id, .info = info != NULL ? info : &own, .options = options};
    if ((options & WNOHANG) != 0 || !virtual_in()) {
        return OPENLY(REAL(waitid)(type, id, info, options));
    }
    enum virtual_end end =
        virtual_await_again(has_info, &w, SIM_NEVER, virtual_strangers ? "a process" : NULL);
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

struct sim_rank *virtual_process(pid_t pid)
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
    OPENLY(REAL(kill)(getpid(), SIGSTOP));
}

SHOWN int raise(int signal)
{
    if (signal != SIGSTOP || !virtual_in()) {
        return OPENLY(REAL(raise)(signal));
    }
    sim_clock_stop(virtual_clock, stop_now);
    return 0;
}

SHOWN int kill(pid_t pid, int signal)
{
    if (pid == getpid() && signal == SIGSTOP) {
        return raise(signal);
    }
    struct sim_rank *other = signal != 0 && virtual_in() ? virtual_process(pid) : NULL;
    if (other != NULL) {
        note_signal(other, signal); /* before it comes: it is from inside of the job */
    }
    int rc = OPENLY(REAL(kill)(pid, signal));
    int error = errno;
    if (rc == 0 && signal != 0 && virtual_in()) {
        if (signal == SIGKILL && pid > 0) {
            await_end(pid);
        }
        virtual_stir();
    }
    errno = error;
    return rc;
}
