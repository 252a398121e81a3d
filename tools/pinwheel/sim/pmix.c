/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx in a simulated job: `pinwheel sim` in the place of mpirun. The server is a process of its
 * own (pmix_server.c), which shares memory with this one; here is how it is started and ended, and
 * what the ends of ranks, and its own, mean for the job.
 *
 *      launcher ──fork──► server ──environments of ranks, by a pipe──► launcher
 *      launcher closes the other pipe ──► server ends; it ends with the launcher, too
 */
#include "pmix_state.h"

#include "base/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { END_MS = 2000 };
#define DOUBT_NS INT64_C(200000000)

/* ---- the beginning ---- */

static size_t shared_bytes(int ranks)
{
    return sizeof(struct sim_pmix_shared) + (size_t)ranks;
}

static void free_server(struct sim_pmix *p)
{
    for (int r = 0; p->environment != NULL && r < p->ranks; r++) {
        for (char **e = p->environment[r]; e != NULL && *e != NULL; e++) {
            free(*e);
        }
        free(p->environment[r]);
    }
    if (p->shared != NULL) {
        munmap(p->shared, shared_bytes(p->ranks));
    }
    for (int i = 0; i < 2; i++) {
        int fd = i == 0 ? p->to : p->from;
        if (fd >= 0) {
            close(fd);
        }
    }
    free(p->environment);
    free(p->ended);
    free(p);
}

/* Reads the variables of a rank. */
static bool read_rank(FILE *from, char ***list)
{
    size_t count = 0, size = 0;
    char *variable = NULL;
    while (getdelim(&variable, &size, '\0', from) > 0) {
        char **longer = realloc(*list, (count + 2) * sizeof(**list));
        if (longer == NULL) {
            break;
        }
        *list = longer;
        longer[count] = longer[count + 1] = NULL;
        if (variable[0] == '\0') {
            free(variable);
            return true;
        }
        longer[count++] = variable;
        variable = NULL;
    }
    free(variable);
    return false;
}

static bool read_environments(struct sim_pmix *p)
{
    FILE *from = fdopen(dup(p->from), "r");
    bool whole = from != NULL;
    for (int r = 0; whole && r < p->ranks; r++) {
        whole = read_rank(from, &p->environment[r]);
    }
    if (from != NULL) {
        fclose(from);
    }
    return whole;
}

/* Makes the pipes and the process. */
static bool start_server(struct sim_pmix *p)
{
    int there[2], here[2];
    if (pipe2(there, O_CLOEXEC) != 0) {
        return false;
    }
    p->to = there[1];
    if (pipe2(here, O_CLOEXEC) != 0) {
        close(there[0]);
        return false;
    }
    p->from = here[0];
    p->launcher = getpid();
    fflush(NULL);
    p->server = fork();
    if (p->server == 0) {
        close(there[1]);
        close(here[0]);
        sim_pmix_be_server(p, here[1], there[0]);
    }
    close(there[0]);
    close(here[1]);
    return p->server > 0;
}

struct sim_pmix *sim_pmix_start(int ranks)
{
    size_t n = (size_t)ranks;
    struct sim_pmix *p = calloc(1, sizeof(*p));
    if (p == NULL) {
        return NULL;
    }
    p->ranks = ranks;
    p->to = p->from = -1;
    p->environment = calloc(n, sizeof(*p->environment));
    p->ended = calloc(n, sizeof(*p->ended));
    void *shared =
        mmap(NULL, shared_bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    p->shared = shared != MAP_FAILED ? shared : NULL;
    if (p->environment == NULL || p->ended == NULL || p->shared == NULL || !start_server(p)) {
        fprintf(stderr, "pinwheel sim: the PMIx server cannot be started: %s\n", strerror(errno));
        free_server(p);
        return NULL;
    }
    if (!read_environments(p)) { /* the server has said why */
        kill(p->server, SIGKILL);
        waitpid(p->server, NULL, 0);
        free_server(p);
        return NULL;
    }
    return p;
}

char ***sim_pmix_environment(struct sim_pmix *p)
{
    return p->environment;
}

/* ---- the job ---- */

void sim_pmix_exited(struct sim_pmix *p, int rank, bool well, bool excused)
{
    p->ended[rank] = well ? SIM_PMIX_ENDED : excused ? SIM_PMIX_DIED : SIM_PMIX_FAILED;
    if (well && atomic_load(&p->shared->state[rank]) != SIM_PMIX_LEFT) {
        atomic_store(&p->shared->missing, true);
    }
}

bool sim_pmix_used(const struct sim_pmix *p)
{
    for (int r = 0; r < p->ranks; r++) {
        if (atomic_load(&p->shared->state[r]) == SIM_PMIX_NEW) {
            return false;
        }
    }
    return true;
}

/* A rank that still is in the job, or -1. */
static int one_inside(const struct sim_pmix *p)
{
    for (int r = 0; r < p->ranks; r++) {
        if (p->ended[r] == SIM_PMIX_RUNS && atomic_load(&p->shared->state[r]) == SIM_PMIX_JOINED) {
            return r;
        }
    }
    return -1;
}

/* Whether the server has ended. */
static bool is_gone(struct sim_pmix *p)
{
    struct pollfd end = {.fd = p->from, .events = POLLIN};
    p->gone = p->gone || (p->from >= 0 && poll(&end, 1, 0) > 0);
    return p->gone;
}

/* Whether the job is to end since the server has ended. It ends by a rank's death, too, which is
 * then what is said; and the launcher may see that death a little later. */
static bool ends_with_server(struct sim_pmix *p)
{
    if (!is_gone(p) || one_inside(p) < 0) {
        return false;
    }
    for (int r = 0; r < p->ranks; r++) {
        if (p->ended[r] == SIM_PMIX_FAILED) {
            return false;
        }
    }
    if (!p->doubted) {
        p->doubted = true;
        sys_nap(DOUBT_NS);
        kill(getpid(), SIGCHLD); /* the launcher looks at all once more */
        return false;
    }
    return true;
}

int sim_pmix_verdict(struct sim_pmix *p, char *why, size_t size)
{
    if (atomic_load(&p->shared->aborted)) {
        int code = p->shared->aborted_code, status = code & 255;
        snprintf(why, size, "rank %d aborted the job with code %d", p->shared->aborted_rank, code);
        return status == 0 && code != 0 ? 1 : status;
    }
    int inside = atomic_load(&p->shared->missing) ? one_inside(p) : -1;
    for (int r = 0; inside >= 0 && r < p->ranks; r++) {
        uint8_t state = atomic_load(&p->shared->state[r]);
        if (p->ended[r] == SIM_PMIX_ENDED && state != SIM_PMIX_LEFT) {
            snprintf(
                why, size,
                "rank %d ended without %s while rank %d is in the job: all ranks of an MPI "
                "program must call both MPI_Init and MPI_Finalize",
                r, state == SIM_PMIX_NEW ? "MPI_Init (PMIx_Init)" : "MPI_Finalize (PMIx_Finalize)",
                inside);
            return 1;
        }
    }
    if (ends_with_server(p)) {
        snprintf(why, size,
                 "the process of the PMIx server (libpmix) has ended while rank %d is in the job",
                 one_inside(p));
        return 1;
    }
    return -1;
}

/* Whether all ranks have left the job as they should: else libpmix may not be in its right mind. */
static bool all_left(const struct sim_pmix *p)
{
    for (int r = 0; r < p->ranks; r++) {
        if (atomic_load(&p->shared->state[r]) != SIM_PMIX_LEFT) {
            return false;
        }
    }
    return true;
}

void sim_pmix_end(struct sim_pmix *p)
{
    struct pollfd end = {.fd = p->from, .events = POLLIN};
    close(p->to);
    p->to = -1;
    if (!is_gone(p) && (!all_left(p) || poll(&end, 1, END_MS) <= 0)) {
        kill(p->server, SIGKILL);
    }
    waitpid(p->server, NULL, 0);
    free_server(p);
}
