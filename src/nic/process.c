/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process, which has the table of NICs. An address space has one, but for tests and the
 * simulator: these have several, and switch between them by a pointer of the thread.
 *
 * A forked child has the parent's memory, and none of its segments, threads or locks: the child
 * forgets the process, and starts anew at its PtlInit. It keeps the process only if that is closed:
 * one that has no users, and in which no thread is in PtlInit or PtlFini. To have no users is not
 * enough, since the last PtlFini counts them down before it closes the NICs, which may take long.
 * So the thread that forks does not wait for PtlFini: it tries space_lock, and if that is free
 * holds it until the child is made.
 */
#include "nic/process.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/sys.h"
#include "nic/ni.h"
#include "nic/nic.h"
#include "nic/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct process *process_space;
__thread struct process *process_thread __attribute__((tls_model("initial-exec")));
_Atomic uint64_t process_epoch = 1;
static struct mutex space_lock;
/* this thread forks, and holds space_lock */
static __thread bool forks_alone __attribute__((tls_model("initial-exec")));
static bool watches_forks;

struct process *process_enter(struct process *p)
{
    struct process *before = process_thread;
    process_thread = p;
    return before;
}

struct process *process_new(void)
{
    return calloc(1, sizeof(struct process));
}

void process_renew(void)
{
    atomic_fetch_add(&process_epoch, 1);
}

void process_free(struct process *p)
{
    for (unsigned i = 0; i < NICS_MAX; i++) {
        free(p->nic_memory[i]);
    }
    for (unsigned i = 0; i < NICS_MAX * NI_KINDS; i++) {
        ni_free_memory(p->ni_memory[i]);
    }
    explicit_bzero(&p->key, sizeof(p->key));
    free(p);
}

int process_set_key(struct process *p, const void *key, size_t length)
{
    struct slmp_key new = {.length = 0};
    if (length != 0 && slmp_key_take(&new, key, length) != 0) {
        return PTL_ARG_INVALID;
    }
    mutex_take(&p->lock);
    p->key = new;
    mutex_give(&p->lock);
    explicit_bzero(&new, sizeof(new));
    return PTL_OK;
}

void process_each_nic(struct process *p, void (*see)(struct nic *))
{
    for (unsigned i = 0; p != NULL && i < NICS_MAX; i++) {
        struct nic *nic = __atomic_load_n(&p->nic_memory[i], __ATOMIC_ACQUIRE);
        if (nic != NULL) {
            see(nic);
        }
    }
}

static void wake_sleepers(struct nic *nic)
{
    nic_lock(nic);
    nic_wake_sleepers(nic);
    nic_unlock(nic);
}

void process_abort(struct process *p)
{
    atomic_fetch_add(&p->aborts, 1);
    /* Not under the process's lock: a thread that closes an NI holds it, and may wait for long. */
    process_each_nic(p, wake_sleepers);
}

static void free_lock(struct nic *nic)
{
    nic->lock = (struct lock){.held = 0};
}

/* Makes the child forget the process. All that the parent had stays allocated, since threads that
 * do not exist in the child may hold its locks. */
static void fork_child(void)
{
    process_each_nic(process_space, place_fork);
    if (process_space != NULL && forks_alone && process_space->users == 0) {
        /* no thread of the parent held it, as no call was in progress */
        process_space->lock = (struct mutex){0};
        process_each_nic(process_space, free_lock);
    } else {
        process_space = NULL;
    }
    process_thread = NULL;
    process_renew();
    fault_fork();
    lock_fork();
    space_lock = (struct mutex){0};
    forks_alone = false;
    fabric_shm.home->forget();
    forks_gate(FORK_CHILD);
}

static void fork_prepare(void)
{
    forks_gate(FORK_PREPARE);
    forks_alone = mutex_try(&space_lock);
    process_each_nic(process_space, place_before_fork);
}

static void fork_parent(void)
{
    if (forks_alone) {
        forks_alone = false;
        mutex_give(&space_lock);
    }
    forks_gate(FORK_PARENT);
}

/* Registered when the library is loaded, since a thread may fork while the first PtlInit runs. */
__attribute__((constructor)) static void watch_forks(void)
{
    watches_forks = pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
}

/* Warns, once in a process, of environment variables that are unknown or have no effect. */
static void warn_of_environment(const struct options *o)
{
    static bool done; /* space_lock guards it */
    char text[256];
    cpu_set_t mine;
    int64_t core = o->number[OPT_CORE];
    for (size_t at = 0; !done && options_unknown(environ, &at, text, sizeof(text));) {
        log_line(LOG_WARN, "%s", text);
    }
    if (!done && core >= 0 && sched_getaffinity(getpid(), sizeof(mine), &mine) == 0 &&
        !CPU_ISSET(core, &mine)) {
        log_line(LOG_WARN,
                 "%s=%" PRId64 " has no effect: this process may not run on that core; take one of "
                 "those that `pinwheel info` lists, or -1 (`pinwheel run --bind none`)",
                 option_table[OPT_CORE].env, core);
    }
    done = true;
}

static int prepare(struct process *p)
{
    static struct options fresh; /* space_lock guards it */
    char error[512];
    if (options_load(&fresh, error, sizeof(error)) != 0) {
        log_line(LOG_ERROR, "%s", error);
        return PTL_FAIL;
    }
    /* Options that are the same are not written again: a thread that is late to leave a closed NIC
     * may be reading them. */
    if (memcmp(&p->options, &fresh, sizeof(fresh)) != 0) {
        p->options = fresh;
    }
    log_set_level((enum log_level)p->options.number[OPT_LOG]);
    warn_of_environment(&p->options);
    int rc = fault_install();
    if (rc != 0) {
        log_line(LOG_ERROR, "cannot install a handler for SIGSEGV: %s", strerror(-rc));
        return PTL_FAIL;
    }
    lock_setup();
    p->asymmetric = p->options.number[OPT_MEMBARRIER] != 0 && membarrier_register() == 0 &&
                    membarrier_all() == 0;
    return PTL_OK;
}

int process_init(void)
{
    if (!watches_forks) {
        return PTL_NO_SPACE; /* pthread_atfork() had no memory */
    }
    mutex_take(&space_lock);
    struct process *p = process_current();
    if (p == NULL) {
        p = process_new();
    }
    int rc = p == NULL ? PTL_NO_SPACE : PTL_OK;
    if (rc == PTL_OK && p->users == 0) {
        rc = prepare(p);
    }
    if (rc == PTL_OK) {
        p->users++;
        if (process_thread == NULL) {
            __atomic_store_n(&process_space, p, __ATOMIC_RELEASE);
        }
    } else if (p != NULL && process_thread == NULL && p != process_space) {
        process_free(p);
    }
    mutex_give(&space_lock);
    return rc;
}

void process_fini(void)
{
    mutex_take(&space_lock);
    struct process *p = process_current();
    if (p != NULL && p->users != 0 && --p->users == 0) {
        mutex_take(&p->lock);
        for (unsigned i = 0; i < NICS_MAX; i++) {
            struct nic *nic = p->nics[i];
            for (unsigned k = 0; nic != NULL && k < NI_KINDS; k++) {
                if (nic->ni[k] != NULL) {
                    ni_close(nic->ni[k]);
                }
            }
            if (nic != NULL) {
                nic_close(nic);
            }
        }
        mutex_give(&p->lock);
        fault_remove();
    }
    mutex_give(&space_lock);
}
