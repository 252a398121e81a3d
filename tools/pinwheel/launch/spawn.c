/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starts a rank; see spawn.h. If a step between fork and exec fails, the child reports the step and
 * errno through a pipe, which exec closes.
 */
#include "spawn.h"

#include "pinwheel/util/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

struct failure {
    int error;
    int step;
};

enum step { STEP_FORK, STEP_DESCRIPTORS, STEP_CORE, STEP_ENVIRONMENT, STEP_EXEC };

static const char *const step_names[] = {
    [STEP_FORK] = "fork",
    [STEP_DESCRIPTORS] = "setting up its standard descriptors",
    [STEP_CORE] = "binding it to its core",
    [STEP_ENVIRONMENT] = "setting its environment",
    [STEP_EXEC] = "exec",
};

/* Variables that the launcher sets in every rank. */
static const char *const given[] = {"PMI_FD",           "PMI_RANK",        "PMI_SIZE",
                                    "PINWHEEL_JOB_KEY", "PINWHEEL_JOB_ID", "PINWHEEL_CORE"};

/* Variables of another launcher that has started this one; ranks must not see them. */
static const char *const foreign[] = {"PMI_PORT", "PMI_ID", "PMI_SPAWNED", "PMI_CONTROL_PORT"};

int spawn_reserved(const char *assignment)
{
    size_t length = strcspn(assignment, "=");
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        if (strlen(given[i]) == length && memcmp(given[i], assignment, length) == 0) {
            return 1;
        }
    }
    return 0;
}

static int set_number(const char *name, int number)
{
    char text[16];
    snprintf(text, sizeof(text), "%d", number);
    return setenv(name, text, 1);
}

static int set_environment(const struct spawn *s, int rank, int pmi)
{
    for (int i = 0; i < s->environment_count; i++) {
        if (putenv(s->environment[i]) != 0) {
            return -1;
        }
    }
    for (char **e = s->rank_environment != NULL ? s->rank_environment[rank - s->first] : NULL;
         e != NULL && *e != NULL; e++) {
        if (putenv(*e) != 0) {
            return -1;
        }
    }
    for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++) {
        unsetenv(foreign[i]);
    }
    if (pmi < 0) {
        return 0;
    }
    if (s->home == NULL) {
        unsetenv("PINWHEEL_CORE"); /* the launcher may have it from a job that has started it */
    } else if (set_number("PINWHEEL_CORE", s->home[rank - s->first]) != 0) {
        return -1;
    }
    return set_number("PMI_FD", pmi) != 0 || set_number("PMI_RANK", rank) != 0 ||
                   set_number("PMI_SIZE", s->size) != 0 ||
                   setenv("PINWHEEL_JOB_KEY", s->job_key, 1) != 0 ||
                   setenv("PINWHEEL_JOB_ID", s->job_id, 1) != 0
               ? -1
               : 0;
}

static int set_descriptors(const struct spawn_ends *ends)
{
    const int from[] = {ends->in, ends->out, ends->err};
    for (int to = 0; to < 3; to++) {
        if (from[to] >= 0 && dup2(from[to], to) < 0) {
            return -1;
        }
    }
    return ends->pmi >= 0 ? fcntl(ends->pmi, F_SETFD, 0) : 0;
}

static int bind_core(const cpu_set_t *cores, int index)
{
    cpu_set_t one;
    int wanted = index % CPU_COUNT(cores), core = 0;
    for (;; core++) {
        if (CPU_ISSET(core, cores) && wanted-- == 0) {
            break;
        }
    }
    CPU_ZERO(&one);
    CPU_SET(core, &one);
    return sched_setaffinity(0, sizeof(one), &one);
}

static void __attribute__((noreturn))
run_child(const struct spawn *s, int rank, const struct spawn_ends *ends, pid_t launcher,
          int report)
{
    struct failure f = {0, STEP_FORK};
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != launcher) {
        _exit(126); /* the launcher is gone */
    }
    keeper_tell(s->keeper, getpid()); /* before the program can start other processes */
    if (set_descriptors(ends) != 0) {
        f.step = STEP_DESCRIPTORS;
    } else if (s->cores != NULL && bind_core(s->cores, rank - s->first) != 0) {
        f.step = STEP_CORE;
    } else if (set_environment(s, rank, ends->pmi) != 0) {
        f.step = STEP_ENVIRONMENT;
    } else {
        f.step = STEP_EXEC;
        setrlimit(RLIMIT_NOFILE, &s->descriptors);
        signal(SIGPIPE, SIG_DFL);
        sigprocmask(SIG_SETMASK, &s->signal_mask, NULL);
        execvp(s->argv[0], s->argv);
    }
    f.error = errno;
    if (write(report, &f, sizeof(f)) != (ssize_t)sizeof(f)) {
        _exit(126); /* the launcher sees the exit status instead */
    }
    _exit(127);
}

int spawn_rank(const struct spawn *spawn, int rank, const struct spawn_ends *ends, pid_t *pid,
               const char **what)
{
    int report[2];
    *what = "making its pipes";
    if (pipe2(report, O_CLOEXEC) != 0) {
        return -errno;
    }
    *what = step_names[STEP_FORK];
    pid_t launcher = getpid(), child = fork();
    if (child == 0) {
        run_child(spawn, rank, ends, launcher, report[1]);
    }
    int error = errno;
    close(report[1]);
    if (child < 0) {
        close(report[0]);
        return -error;
    }
    setpgid(child, child); /* the child does it, too: whichever comes first */
    struct failure f;
    ssize_t n;
    do {
        n = read(report[0], &f, sizeof(f));
    } while (n < 0 && errno == EINTR);
    close(report[0]);
    if (n == (ssize_t)sizeof(f)) {
        waitpid(child, NULL, 0);
        *what = step_names[f.step];
        return -f.error;
    }
    *pid = child;
    return 0;
}
