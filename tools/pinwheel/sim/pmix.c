/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMIx server of a simulated job: `pinwheel sim` in the place of mpirun. The protocol, and the
 * thread that serves it, are libpmix's, which is loaded when a job needs it.
 */
#include "pmix_state.h"

#include "base/library.h"
#include "base/sys.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char library[] = "libpmix.so.2";

const pmix_nspace_t sim_pmix_job = SIM_PMIX_JOB;

struct sim_pmix_library sim_pmix_library;

static const struct library_symbol symbols[] = {
    {"PMIx_server_init", &sim_pmix_library.init},
    {"PMIx_server_finalize", &sim_pmix_library.finalize},
    {"PMIx_server_register_nspace", &sim_pmix_library.register_nspace},
    {"PMIx_server_deregister_nspace", &sim_pmix_library.deregister_nspace},
    {"PMIx_server_register_client", &sim_pmix_library.register_client},
    {"PMIx_server_setup_fork", &sim_pmix_library.setup_fork},
    {"PMIx_generate_regex", &sim_pmix_library.regex},
    {"PMIx_generate_ppn", &sim_pmix_library.ppn},
    {"PMIx_Error_string", &sim_pmix_library.error_string},
};

/* ---- waiting for libpmix ---- */

void sim_pmix_done(pmix_status_t status, void *wait)
{
    struct sim_pmix_wait *w = wait;
    w->status = status;
    atomic_store(&w->done, 1);
    futex_wake(&w->done);
}

pmix_status_t sim_pmix_await(struct sim_pmix_wait *w, pmix_status_t begun)
{
    if (begun != PMIX_SUCCESS) {
        return begun == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : begun;
    }
    while (atomic_load(&w->done) == 0) {
        futex_wait(&w->done, 0, -1);
    }
    return w->status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : w->status;
}

/* ---- the beginning ---- */

static bool load(void)
{
    const char *missing = library_load(library, symbols, sizeof(symbols) / sizeof(symbols[0]));
    if (missing == library) {
        fprintf(stderr,
                "pinwheel sim: the program needs a PMIx server, and PMIx's library cannot be "
                "loaded (%s): install it (Debian: libpmix2)\n",
                dlerror());
    } else if (missing != NULL) {
        fprintf(stderr,
                "pinwheel sim: the program needs a PMIx server, and %s has no %s: install PMIx 4\n",
                library, missing);
    }
    return missing == NULL;
}

static pmix_info_t text(const char *key, const char *value)
{
    pmix_info_t info;
    memset(&info, 0, sizeof(info));
    snprintf(info.key, sizeof(info.key), "%s", key);
    info.value.type = PMIX_STRING;
    info.value.data.string = (char *)value;
    return info;
}

/* Signals are for the launcher: threads of libpmix get none. */
static pmix_status_t begin(void)
{
    sigset_t all, before;
    pmix_info_t info[] = {text(PMIX_SERVER_NSPACE, "pinwheel-sim-server"),
                          text(PMIX_TCP_IF_INCLUDE, "lo")};
    /* What ranks put is kept in this process; files of libpmix's would stay if it was killed. */
    setenv("PMIX_MCA_gds", "hash", 1);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pmix_status_t status =
        sim_pmix_library.init(&sim_pmix_calls, info, sizeof(info) / sizeof(info[0]));
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

/* What ranks have beside libpmix's own variables. Open MPI takes a process for one that runs alone
 * unless it knows its launcher; it asks no other variable of this one, IBM's, which stands for any
 * that serves PMIx and binds processes itself. */
static const char *const given[] = {"JSM_JSRUN_PORT=pinwheel"};
/* What ranks have where the user has not set it: Open MPI makes no folder in /tmp. */
static const char *const chosen[] = {"OMPI_MCA_orte_create_session_dirs=0"};

/* Appends a variable to a list that ends with NULL; takes the string. */
static bool append(char ***list, char *variable)
{
    size_t count = 0;
    while (*list != NULL && (*list)[count] != NULL) {
        count++;
    }
    char **longer = variable != NULL ? realloc(*list, (count + 2) * sizeof(**list)) : NULL;
    if (longer == NULL) {
        free(variable);
        return false;
    }
    longer[count] = variable;
    longer[count + 1] = NULL;
    *list = longer;
    return true;
}

static bool is_set(const char *assignment)
{
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(assignment, "="), assignment);
    return getenv(name) != NULL;
}

static bool append_ours(char ***list)
{
    for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
        if (!append(list, strdup(given[i]))) {
            return false;
        }
    }
    for (size_t i = 0; i < sizeof(chosen) / sizeof(chosen[0]); i++) {
        if (!is_set(chosen[i]) && !append(list, strdup(chosen[i]))) {
            return false;
        }
    }
    return true;
}

static pmix_status_t make_environment(struct sim_pmix *p)
{
    for (int r = 0; r < p->ranks; r++) {
        pmix_proc_t proc = {SIM_PMIX_JOB, (pmix_rank_t)r};
        pmix_status_t status = sim_pmix_library.setup_fork(&proc, &p->environment[r]);
        if (status != PMIX_SUCCESS) {
            return status;
        }
        if (!append_ours(&p->environment[r])) {
            return PMIX_ERR_NOMEM;
        }
    }
    return PMIX_SUCCESS;
}

static void free_server(struct sim_pmix *p)
{
    for (int r = 0; p->environment != NULL && r < p->ranks; r++) {
        for (char **e = p->environment[r]; e != NULL && *e != NULL; e++) {
            free(*e);
        }
        free(p->environment[r]);
    }
    free(p->environment);
    free(p->state);
    free(p->ended);
    free(p);
}

struct sim_pmix *sim_pmix_start(int ranks)
{
    size_t n = (size_t)ranks;
    struct sim_pmix *p = load() ? calloc(1, sizeof(*p)) : NULL;
    if (p == NULL) {
        return NULL;
    }
    p->ranks = ranks;
    p->environment = calloc(n, sizeof(*p->environment));
    p->state = calloc(n, sizeof(*p->state));
    p->ended = calloc(n, sizeof(*p->ended));
    bool begun = false;
    pmix_status_t status = PMIX_ERR_NOMEM;
    if (p->environment != NULL && p->state != NULL && p->ended != NULL) {
        sim_pmix_serve(p);
        status = begin();
        begun = status == PMIX_SUCCESS;
        status = begun ? sim_pmix_tell_job(p) : status;
        status = status == PMIX_SUCCESS ? make_environment(p) : status;
    }
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "pinwheel sim: the PMIx server cannot be started: %s (%d)\n",
                sim_pmix_library.error_string(status), (int)status);
        if (begun) {
            sim_pmix_library.finalize();
        }
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

void sim_pmix_exited(struct sim_pmix *p, int rank, bool well)
{
    atomic_store(&p->ended[rank], well ? SIM_PMIX_ENDED : SIM_PMIX_FAILED);
    if (well && atomic_load(&p->state[rank]) != SIM_PMIX_LEFT) {
        atomic_store(&p->missing, true);
    }
}

bool sim_pmix_used(const struct sim_pmix *p)
{
    for (int r = 0; r < p->ranks; r++) {
        if (atomic_load(&p->state[r]) == SIM_PMIX_NEW) {
            return false;
        }
    }
    return true;
}

/* A rank that still is in the job, or -1. */
static int one_inside(const struct sim_pmix *p)
{
    for (int r = 0; r < p->ranks; r++) {
        if (atomic_load(&p->ended[r]) == SIM_PMIX_RUNS &&
            atomic_load(&p->state[r]) == SIM_PMIX_JOINED) {
            return r;
        }
    }
    return -1;
}

int sim_pmix_verdict(struct sim_pmix *p, char *why, size_t size)
{
    if (atomic_load(&p->aborted)) {
        int code = p->aborted_code, status = code & 255;
        snprintf(why, size, "rank %d aborted the job with code %d", p->aborted_rank, code);
        return status == 0 && code != 0 ? 1 : status;
    }
    int inside = atomic_load(&p->missing) ? one_inside(p) : -1;
    for (int r = 0; inside >= 0 && r < p->ranks; r++) {
        uint8_t state = atomic_load(&p->state[r]);
        if (atomic_load(&p->ended[r]) == SIM_PMIX_ENDED && state != SIM_PMIX_LEFT) {
            snprintf(
                why, size,
                "rank %d ended without %s while rank %d is in the job: all ranks of an MPI "
                "program must call both MPI_Init and MPI_Finalize",
                r, state == SIM_PMIX_NEW ? "MPI_Init (PMIx_Init)" : "MPI_Finalize (PMIx_Finalize)",
                inside);
            return 1;
        }
    }
    return -1;
}

void sim_pmix_end(struct sim_pmix *p)
{
    struct sim_pmix_wait w = {0};
    sim_pmix_library.deregister_nspace(sim_pmix_job, sim_pmix_done, &w);
    sim_pmix_await(&w, PMIX_SUCCESS);
    sim_pmix_library.finalize();
    free_server(p);
}
