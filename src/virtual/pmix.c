/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx in a simulated rank. Its fences end in virtual time:
 *
 *      each rank gives libpmix what it has put, and meets the others in the simulated job's fence
 *      when that is over all have given theirs: libpmix's exchange, in real time, waits for nobody
 *
 * A rank keeps its turn while libpmix works for it, here and at the server, so that virtual time
 * stands still. A call that answers later, on libpmix's thread, has answered when it returns: what
 * the rank does meanwhile, how often it looks, must not depend on how long the answer takes.
 */
#include "virtual.h"

#include "base/sys.h"

#include <dlfcn.h>
#include <pmix.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static const char library[] = "libpmix.so.2";

/* The function of libpmix that a function here takes the place of. The program has loaded the
 * library, or could not have called it; perhaps where others do not see it. */
static void *original(const char *name)
{
    void *handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    void *found = handle != NULL ? dlsym(handle, name) : NULL;
    if (found == NULL) {
        fprintf(stderr, "pinwheel sim: %s has no %s: install PMIx 4 (Debian: libpmix2)\n", library,
                name);
        abort();
    }
    return found;
}

#define ORIGINAL(name) ((__typeof__(name) *)original(#name))

/* OUTSIDE(NAME, ARGUMENTS) calls libpmix, which waits for its own thread and for the server, in
 * real time, with the turn held. */
#define OUTSIDE(name, ...)                                                                         \
    ({                                                                                             \
        struct sim_task *self_ = virtual_step_out();                                               \
        __typeof__(name(__VA_ARGS__)) result_ = ORIGINAL(name)(__VA_ARGS__);                       \
        virtual_step_in(self_);                                                                    \
        result_;                                                                                   \
    })

/* ---- waiting for libpmix's thread ---- */

struct answer {
    _Atomic uint32_t came;
    pmix_status_t status;
    size_t number;
};

static void take_answer(struct answer *a, pmix_status_t status, size_t number)
{
    a->status = status;
    a->number = number;
    atomic_store(&a->came, 1);
    futex_wake(&a->came);
}

static void take_status(pmix_status_t status, void *answer)
{
    take_answer(answer, status, 0);
}

static void take_number(pmix_status_t status, size_t number, void *answer)
{
    take_answer(answer, status, number);
}

static void await(struct answer *a)
{
    while (atomic_load(&a->came) == 0) {
        futex_wait(&a->came, 0, -1);
    }
}

/* ---- fences ---- */

static pmix_proc_t self;

static bool is_all(const pmix_proc_t procs[], size_t count)
{
    return procs == NULL || count == 0 || (count == 1 && procs[0].rank == PMIX_RANK_WILDCARD);
}

static bool is_self(const pmix_proc_t procs[], size_t count)
{
    return count == 1 && procs[0].rank == self.rank;
}

/* libpmix's threads wake nobody of the simulation. */
pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t count)
{
    pmix_proc_t own;
    bool strangers = virtual_strangers;
    pmix_status_t status = OUTSIDE(PMIx_Init, &own, info, count);
    virtual_strangers = strangers;
    if (status == PMIX_SUCCESS) {
        self = own;
    }
    if (proc != NULL) {
        *proc = own;
    }
    return status;
}

/* Meets the other ranks, at the time of the last one. What happens at the NIC meanwhile does under
 * its lock. */
static void meet(void)
{
    struct sim_clock *c = virtual_clock;
    struct nic *nic = c->nic;
    if (nic != NULL) {
        c->lock(nic);
    }
    sim_clock_fence(c);
    if (nic != NULL) {
        c->unlock(nic);
    }
}

pmix_status_t PMIx_Fence(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                         size_t ninfo)
{
    struct answer a = {0};
    bool all = is_all(procs, nprocs);
    if (!all && !is_self(procs, nprocs)) {
        fprintf(stderr,
                "pinwheel sim: rank %u: a PMIx fence of %zu ranks: only all ranks of a simulated "
                "job can meet in one\n",
                (unsigned)self.rank, nprocs);
        return PMIX_ERR_NOT_SUPPORTED;
    }
    pmix_status_t status = OUTSIDE(PMIx_Fence_nb, procs, nprocs, info, ninfo, take_status, &a);
    if (all && virtual_in()) {
        meet();
    }
    if (status == PMIX_SUCCESS) {
        await(&a);
        return a.status;
    }
    return status == PMIX_OPERATION_SUCCEEDED ? PMIX_SUCCESS : status;
}

pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                            size_t ninfo, pmix_op_cbfunc_t done, void *arg)
{
    pmix_status_t status = PMIx_Fence(procs, nprocs, info, ninfo);
    if (status == PMIX_ERR_NOT_SUPPORTED) {
        return status;
    }
    done(status, arg);
    return PMIX_SUCCESS;
}

/* ---- calls that answer later ---- */

pmix_status_t PMIx_Register_event_handler(pmix_status_t codes[], size_t ncodes, pmix_info_t info[],
                                          size_t ninfo, pmix_notification_fn_t handler,
                                          pmix_hdlr_reg_cbfunc_t done, void *arg)
{
    struct answer a = {0};
    if (done == NULL) {
        return OUTSIDE(PMIx_Register_event_handler, codes, ncodes, info, ninfo, handler, NULL, arg);
    }
    pmix_status_t status =
        OUTSIDE(PMIx_Register_event_handler, codes, ncodes, info, ninfo, handler, take_number, &a);
    if (status == PMIX_SUCCESS) {
        await(&a);
        done(a.status, a.number, arg);
    }
    return status;
}

pmix_status_t PMIx_Deregister_event_handler(size_t handler, pmix_op_cbfunc_t done, void *arg)
{
    struct answer a = {0};
    if (done == NULL) {
        return OUTSIDE(PMIx_Deregister_event_handler, handler, NULL, arg);
    }
    pmix_status_t status = OUTSIDE(PMIx_Deregister_event_handler, handler, take_status, &a);
    if (status == PMIX_SUCCESS) {
        await(&a);
        done(a.status, arg);
    }
    return status;
}

/* ---- calls that wait for libpmix ---- */

pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t count)
{
    return OUTSIDE(PMIx_Finalize, info, count);
}

pmix_status_t PMIx_Abort(int status, const char message[], pmix_proc_t procs[], size_t count)
{
    return OUTSIDE(PMIx_Abort, status, message, procs, count);
}

pmix_status_t PMIx_Put(pmix_scope_t scope, const char key[], pmix_value_t *value)
{
    return OUTSIDE(PMIx_Put, scope, key, value);
}

pmix_status_t PMIx_Commit(void)
{
    return OUTSIDE(PMIx_Commit);
}

pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[],
                       size_t count, pmix_value_t **value)
{
    return OUTSIDE(PMIx_Get, proc, key, info, count, value);
}

pmix_status_t PMIx_Store_internal(const pmix_proc_t *proc, const char key[], pmix_value_t *value)
{
    return OUTSIDE(PMIx_Store_internal, proc, key, value);
}

pmix_status_t PMIx_Spawn(const pmix_info_t info[], size_t ninfo, const pmix_app_t apps[],
                         size_t count, pmix_nspace_t job)
{
    return OUTSIDE(PMIx_Spawn, info, ninfo, apps, count, job);
}

pmix_status_t PMIx_Publish(const pmix_info_t info[], size_t count)
{
    return OUTSIDE(PMIx_Publish, info, count);
}

pmix_status_t PMIx_Lookup(pmix_pdata_t data[], size_t ndata, const pmix_info_t info[], size_t count)
{
    return OUTSIDE(PMIx_Lookup, data, ndata, info, count);
}

pmix_status_t PMIx_Unpublish(char **keys, const pmix_info_t info[], size_t count)
{
    return OUTSIDE(PMIx_Unpublish, keys, info, count);
}

pmix_status_t PMIx_Connect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                           size_t count)
{
    return OUTSIDE(PMIx_Connect, procs, nprocs, info, count);
}

pmix_status_t PMIx_Disconnect(const pmix_proc_t procs[], size_t nprocs, const pmix_info_t info[],
                              size_t count)
{
    return OUTSIDE(PMIx_Disconnect, procs, nprocs, info, count);
}

pmix_status_t PMIx_Resolve_peers(const char *node, const pmix_nspace_t job, pmix_proc_t **procs,
                                 size_t *count)
{
    return OUTSIDE(PMIx_Resolve_peers, node, job, procs, count);
}

pmix_status_t PMIx_Resolve_nodes(const pmix_nspace_t job, char **nodes)
{
    return OUTSIDE(PMIx_Resolve_nodes, job, nodes);
}
