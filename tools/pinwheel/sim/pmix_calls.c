/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks ask of the PMIx server. libpmix's thread calls these, and has done the most: it keeps
 * what ranks have put, and calls for a fence when the last rank is in it. All ranks are its
 * clients, so that a fence has nobody else to ask.
 *
 * No virtual time passes here. A rank that waits for an answer keeps its turn; the time of a fence
 * is that of the simulated job's (fabric/sim), in which ranks meet before they ask.
 */
#include "pmix_state.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct sim_pmix *job;

void sim_pmix_serve(struct sim_pmix *p)
{
    job = p;
}

/* The launcher looks at all when one of its processes has ended, or seems to. */
static void wake_launcher(void)
{
    kill(job->launcher, SIGCHLD);
}

static bool is_rank(const pmix_proc_t *proc)
{
    return proc->rank < (pmix_rank_t)job->ranks;
}

static pmix_status_t joined(const pmix_proc_t *proc, void *object, pmix_info_t info[], size_t count,
                            pmix_op_cbfunc_t done, void *arg)
{
    if (!is_rank(proc)) {
        return PMIX_ERR_NOT_SUPPORTED;
    }
    atomic_store(&job->shared->state[proc->rank], SIM_PMIX_JOINED);
    if (atomic_load(&job->shared->missing)) {
        wake_launcher();
    }
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t finalized(const pmix_proc_t *proc, void *object, pmix_op_cbfunc_t done,
                               void *arg)
{
    if (is_rank(proc)) {
        atomic_store(&job->shared->state[proc->rank], SIM_PMIX_LEFT);
    }
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t aborted(const pmix_proc_t *proc, void *object, int status,
                             const char message[], pmix_proc_t procs[], size_t count,
                             pmix_op_cbfunc_t done, void *arg)
{
    if (is_rank(proc) && !atomic_load(&job->shared->aborted)) {
        job->shared->aborted_rank = (int)proc->rank;
        job->shared->aborted_code = status;
        atomic_store(&job->shared->aborted, true);
        wake_launcher();
    }
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                           size_t ninfo, char *data, size_t length, pmix_modex_cbfunc_t done,
                           void *arg)
{
    done(PMIX_SUCCESS, data, length, arg, NULL, NULL);
    return PMIX_SUCCESS;
}

/* libpmix asks for what is not of its own clients, and there is nobody else. */
static pmix_status_t elsewhere(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                               pmix_modex_cbfunc_t done, void *arg)
{
    return PMIX_ERR_NOT_FOUND;
}

static pmix_status_t spawn(const pmix_proc_t *proc, const pmix_info_t info[], size_t ninfo,
                           const pmix_app_t apps[], size_t count, pmix_spawn_cbfunc_t done,
                           void *arg)
{
    fprintf(stderr,
            "pinwheel sim: rank %u asks for more processes (MPI_Comm_spawn): a simulated job has "
            "those that it begins with; start all of them by -n\n",
            (unsigned)proc->rank);
    return PMIX_ERR_NOT_SUPPORTED;
}

/* Events of the library's own are all that ranks can learn. */
static pmix_status_t register_events(pmix_status_t *codes, size_t ncodes, const pmix_info_t info[],
                                     size_t ninfo, pmix_op_cbfunc_t done, void *arg)
{
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t deregister_events(pmix_status_t *codes, size_t ncodes, pmix_op_cbfunc_t done,
                                       void *arg)
{
    return PMIX_OPERATION_SUCCEEDED;
}

pmix_server_module_t sim_pmix_calls = {.client_connected2 = joined,
                                       .client_finalized = finalized,
                                       .abort = aborted,
                                       .fence_nb = fence,
                                       .direct_modex = elsewhere,
                                       .spawn = spawn,
                                       .register_events = register_events,
                                       .deregister_events = deregister_events};
