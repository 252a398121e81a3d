/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process of the PMIx server: libpmix is loaded, the job told to it, and what ranks must have
 * in their environments written to the launcher. Then its threads serve, until the launcher closes
 * its end, or ends.
 *
 * libpmix 4.2.2 touches memory that it has freed when a client is lost in a fence: it may then end
 * by a signal, or stand still. That is why it has a process of its own, of which nothing is
 * expected once a rank is lost.
 */
#include "pmix_state.h"

#include "base/library.h"
#include "base/sys.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

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

static pmix_status_t begin(void)
{
    pmix_info_t info[] = {text(PMIX_SERVER_NSPACE, "pinwheel-sim-server"),
                          text(PMIX_TCP_IF_INCLUDE, "lo")};
    /* What ranks put is kept in this process; files of libpmix's would stay if it was killed. */
    setenv("PMIX_MCA_gds", "hash", 1);
    return sim_pmix_library.init(&sim_pmix_calls, info, sizeof(info) / sizeof(info[0]));
}

/* What ranks have beside libpmix's own variables. Open MPI takes a process for one that runs alone
 * unless it knows its launcher; it asks no other variable of this one, IBM's, which stands for any
 * that serves PMIx and binds processes itself. */
static const char *const given[] = {"JSM_JSRUN_PORT=pinwheel", "PMIX_MCA_gds=hash"};
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

/* Writes the variables of a rank, and an empty one. */
static bool tell(int to, char **variables)
{
    FILE *f = fdopen(dup(to), "w");
    bool told = f != NULL;
    for (char **e = variables; told && *e != NULL; e++) {
        told = fwrite(*e, strlen(*e) + 1, 1, f) == 1;
    }
    told = told && fputc('\0', f) != EOF;
    return f != NULL && fclose(f) == 0 && told;
}

static pmix_status_t tell_environments(const struct sim_pmix *p, int to)
{
    for (int r = 0; r < p->ranks; r++) {
        char **variables = NULL;
        pmix_proc_t proc = {SIM_PMIX_JOB, (pmix_rank_t)r};
        pmix_status_t status = sim_pmix_library.setup_fork(&proc, &variables);
        if (status != PMIX_SUCCESS) {
            return status;
        }
        if (!append_ours(&variables) || !tell(to, variables)) {
            return PMIX_ERR_NOMEM;
        }
        for (char **e = variables; *e != NULL; e++) {
            free(*e);
        }
        free(variables);
    }
    return PMIX_SUCCESS;
}

/* Waits until the launcher has closed its end. */
static void await_end(int from)
{
    char byte;
    while (sys_read(from, &byte, 1) == -EINTR) {
    }
}

void sim_pmix_be_server(struct sim_pmix *p, int to, int from)
{
    sigset_t all;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p->launcher) {
        _exit(1); /* the launcher is gone */
    }
    /* signals are for the launcher: this process ends when that does */
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    if (!load()) {
        _exit(1);
    }
    sim_pmix_serve(p);
    pmix_status_t status = begin();
    status = status == PMIX_SUCCESS ? sim_pmix_tell_job(p) : status;
    status = status == PMIX_SUCCESS ? tell_environments(p, to) : status;
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "pinwheel sim: the PMIx server cannot be started: %s (%d)\n",
                sim_pmix_library.error_string(status), (int)status);
        _exit(1);
    }
    await_end(from);
    struct sim_pmix_wait w = {0};
    sim_pmix_library.deregister_nspace(sim_pmix_job, sim_pmix_done, &w);
    sim_pmix_await(&w, PMIX_SUCCESS);
    sim_pmix_library.finalize();
    _exit(0);
}
