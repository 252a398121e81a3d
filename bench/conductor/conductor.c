/* SPDX-License-Identifier: BSD-3-Clause */
/* One run of the conductor: the machine made ready, measured, reported. */
#include "conductor.h"
#include "pinwheel/util/keeper.h"

#include "bracket.h"
#include "sessions.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

/* The first two cores that this process may use; how many there are. */
static int choose_cores(int core[2])
{
    cpu_set_t set;
    int found = 0;
    if (sched_getaffinity(0, sizeof(set), &set) != 0) {
        return 0;
    }
    for (int i = 0; i < CPU_SETSIZE && found < 2; i++) {
        if (CPU_ISSET(i, &set)) {
            core[found++] = i;
        }
    }
    if (found == 1) {
        core[1] = core[0];
    }
    return found;
}

static void describe_machine(struct run *r)
{
    struct utsname system;
    char line[256], model[128] = "x86-64";
    FILE *info = fopen("/proc/cpuinfo", "re");
    while (info != NULL && fgets(line, sizeof(line), info) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) == 0 && colon != NULL) {
            snprintf(model, sizeof(model), "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
            break;
        }
    }
    if (info != NULL) {
        fclose(info);
    }
    uname(&system);
    snprintf(r->machine, sizeof(r->machine), "%s, cores %d and %d, Linux %s", model,
             r->settings.core[0], r->settings.core[1], system.release);
}

static bool ours_failed(const struct run *r)
{
    char why[STAGE_WHY];
    for (int i = 0; i < r->complaint_count; i++) {
        const struct subject *s = r->complaints[i].subject;
        bool missing = s->packages != NULL && subject_missing(s, why, sizeof(why)) != 0;
        if ((s->kind == SUBJECT_OURS || s->kind == SUBJECT_BASE) && !missing &&
            !r->complaints[i].unsettled) {
            return true;
        }
    }
    return false;
}

static int report(struct run *r)
{
    int rc = r->options->out != NULL ? report_svg(r) : 0;
    rc |= r->options->json ? report_json(r) : report_text(r);
    return rc != 0 || ours_failed(r) ? 1 : 0;
}

static int measure_all(struct run *r)
{
    pid_t keeper;
    int rc = 0;
    r->settings.keeper = keeper_start(&keeper, sessions_kill);
    if (r->settings.keeper < 0 || (r->two_cores && (rc = bracket_open(r->settings.core)) != 0)) {
        fprintf(stderr, "pinwheel bench: cannot start its own processes and threads: %s\n",
                strerror(rc != 0 ? -rc : -r->settings.keeper));
        return 1;
    }
    rounds_run(r);
    if (r->two_cores) {
        bracket_close();
    }
    keeper_dismiss(r->settings.keeper, keeper);
    return report(r);
}

/* A session of its own has an autogroup of its own, which root may put before all others, if it
 * is asked to; the shell that waits is not part of it. */
static bool prefer_session(void)
{
    int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    bool preferred = group >= 0 && write(group, "-20", 3) == 3;
    if (group >= 0) {
        close(group);
    }
    return preferred;
}

static int run_in_session(struct run *r)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t child = fork();
    if (child < 0) {
        perror("pinwheel bench: fork");
        return 1;
    }
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* Ctrl-C reaches the parent only */
        if (getppid() != parent || setsid() < 0) {
            _exit(1);
        }
        r->settings.prefer = r->options->prefer && prefer_session();
        if (r->options->prefer && !r->settings.prefer) {
            fprintf(stderr, "pinwheel bench: --prefer: the priority of an autogroup cannot be "
                            "changed: not root, or the kernel has none; going on without\n");
        }
        int rc = measure_all(r);
        fflush(NULL);
        _exit(rc);
    }
    int status;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (WIFSIGNALED(status)) {
        fprintf(stderr, "pinwheel bench: killed by signal %d\n", WTERMSIG(status));
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int conductor_run(const struct options_bench *o)
{
    struct run *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        perror("pinwheel bench");
        return 1;
    }
    r->options = o;
    r->settings.start_limit = (double)o->limit;
    r->settings.turn_limit = (double)o->limit / 10;
    int cores = choose_cores(r->settings.core);
    r->two_cores = cores == 2;
    describe_machine(r);
    int rc = plan_make(r);
    rc = rc == 0 ? run_in_session(r) : rc;
    plan_free(r);
    free(r);
    return rc;
}
