/* SPDX-License-Identifier: BSD-3-Clause */
/* The core on which the first thread polls; see place.h. */
#include "nic/place.h"

#include "nic/nic.h"

#include "base/cancel.h"
#include "base/fault.h"
#include "base/sys.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Changes the mask of a thread, if it is `from`. A thread that has ended, or whose cores are gone,
 * needs none. */
static bool change(pid_t thread, const cpu_set_t *from, const cpu_set_t *to)
{
    ERRNO_KEPT;
    cpu_set_t now;
    return sched_getaffinity(thread, sizeof(now), &now) == 0 && CPU_EQUAL(&now, from) &&
           SYS_CALL(SYS_sched_setaffinity, thread, sizeof(*to), to) == 0;
}

void place_open(struct nic *nic)
{
    struct place *p = &nic->place;
    int64_t core = nic->process->options.number[OPT_CORE];
    *p = (struct place){.on = false};
    if (core < 0 || sched_getaffinity(getpid(), sizeof(p->whole), &p->whole) != 0) {
        return;
    }
    CPU_SET((int)core, &p->home);
    p->on = CPU_ISSET((int)core, &p->whole) && CPU_COUNT(&p->whole) > 1;
}

/* Threads of the process, and two. */
static unsigned long count_tasks(void)
{
    ERRNO_KEPT;
    struct stat st;
    return stat("/proc/self/task", &st) == 0 ? st.st_nlink : 0;
}

void place_hold(struct nic *nic)
{
    struct place *p = &nic->place;
    if (p->on && !p->held && fault_thread_id() == getpid()) {
        p->tasks = 0; /* the first look at them finds those that were being made a lease ago, too */
        __atomic_store_n(&p->held, change(0, &p->whole, &p->home), __ATOMIC_RELAXED);
    }
}

/* Gives the whole mask to all threads that took over the home of the first one. */
static void widen_others(const struct place *p)
{
    ERRNO_KEPT;
    int cancel = cancel_off();
    DIR *d = opendir("/proc/self/task");
    for (struct dirent *e; d != NULL && (e = readdir(d)) != NULL;) {
        pid_t thread = (pid_t)strtol(e->d_name, NULL, 10);
        if (thread > 0 && thread != getpid()) {
            change(thread, &p->home, &p->whole);
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    cancel_back(cancel);
}

void place_tend(struct nic *nic)
{
    struct place *p = &nic->place;
    unsigned long tasks = p->held ? count_tasks() : 0;
    if (p->held && tasks != p->tasks) {
        p->tasks = tasks;
        widen_others(p);
    }
}

void place_free(struct nic *nic)
{
    struct place *p = &nic->place;
    if (p->held) {
        change(getpid(), &p->home, &p->whole);
        place_tend(nic);
        __atomic_store_n(&p->held, false, __ATOMIC_RELAXED);
    }
}

void place_before_fork(struct nic *nic)
{
    nic->place.forking = __atomic_load_n(&nic->place.held, __ATOMIC_RELAXED);
}

void place_fork(const struct nic *nic)
{
    if (nic->place.forking) {
        change(0, &nic->place.home, &nic->place.whole);
    }
}
