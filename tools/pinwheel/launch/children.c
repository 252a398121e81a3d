/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that a launcher or an agent has started; see children.h. */
#include "children.h"

#include "groups.h"
#include "pinwheel/util/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void catch_signals(struct children *c, sigset_t *before)
{
    static const int ending[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof(ending) / sizeof(ending[0]); i++) {
        struct sigaction present;
        sigaction(ending[i], NULL, &present);
        /* a signal that is ignored stays so: nohup, or a shell's background job */
        if (present.sa_handler != SIG_IGN) {
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
    c->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* The launcher needs up to five descriptors for a rank, and the soft limit is often 1024. */
static void raise_descriptor_limit(struct rlimit *before)
{
    getrlimit(RLIMIT_NOFILE, before);
    struct rlimit raised = {before->rlim_max, before->rlim_max};
    setrlimit(RLIMIT_NOFILE, &raised);
}

int children_limit(int free)
{
    int fd = 3; /* descriptors 0 to 2 are open, or will be */
    for (; free > 0; fd++) {
        free -= fcntl(fd, F_GETFD) < 0;
    }
    return fd;
}

/* Opens standard descriptors that are closed, so that no pipe of the launcher gets their
 * numbers. */
static void fill_standard_descriptors(void)
{
    int fd = 0;
    while (fd >= 0 && fd < 3) {
        fd = open("/dev/null", O_RDWR);
    }
    close(fd);
}

int children_open(struct children *c, int count, struct spawn *spawn)
{
    *c = (struct children){.count = count,
                           .groups = calloc((size_t)count, sizeof(*c->groups)),
                           .alive = calloc((size_t)count, sizeof(*c->alive))};
    if (c->groups == NULL || c->alive == NULL) {
        fprintf(stderr, "pinwheel run: no memory for %d processes\n", count);
        return -1;
    }
    fill_standard_descriptors();
    catch_signals(c, &spawn->signal_mask);
    /* orphans become children of this process, which can reap them */
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    raise_descriptor_limit(&spawn->descriptors);
    c->keeper_fd = keeper_start(&c->keeper, groups_kill);
    if (c->signals < 0 || c->keeper_fd < 0) {
        fprintf(stderr, "pinwheel run: cannot start: %s\n",
                strerror(c->signals < 0 ? errno : -c->keeper_fd));
        return -1;
    }
    spawn->keeper = c->keeper_fd;
    return 0;
}

int children_start(struct children *c, const struct spawn *spawn, int rank,
                   const struct spawn_ends *ends, const char **what)
{
    int i = c->started++;
    int rc = spawn_rank(spawn, rank, ends, &c->groups[i], what);
    c->alive[i] = rc == 0;
    c->running += rc == 0;
    return rc;
}

/* Leaders of process groups stay unreaped (groups.h). */
int children_exited(struct children *c, siginfo_t *how)
{
    for (int i = 0; i < c->started; i++) {
        *how = (siginfo_t){0};
        if (c->alive[i] &&
            waitid(P_PID, (id_t)c->groups[i], how, WEXITED | WNOHANG | WNOWAIT) == 0 &&
            how->si_pid != 0) {
            c->alive[i] = false;
            c->running--;
            return i;
        }
    }
    return -1;
}

void children_signal(const struct children *c, int signal)
{
    groups_signal(c->groups, c->started, signal);
}

void children_took(const struct children *c, int signal, pid_t from)
{
    if (signal != SIGCHLD || from == c->keeper) {
        return;
    }
    for (int i = 0; i < c->started; i++) {
        if (c->groups[i] == from) {
            return;
        }
    }
    waitpid(from, NULL, WNOHANG); /* reaps an orphan that a child has left */
}

void children_close(struct children *c)
{
    keeper_dismiss(c->keeper_fd, c->keeper);
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    close(c->signals);
    free(c->groups);
    free(c->alive);
}
