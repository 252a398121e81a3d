/* SPDX-License-Identifier: BSD-3-Clause */
/* The cores on which threads of the program wait; see place.h. */
#include "nic/place.h"

#include "base/cancel.h"
#include "base/fault.h"
#include "base/forks.h"
#include "base/sys.h"
#include "nic/progress.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS 1000000   /* between two looks for a peer that waits on the same core */
#define APART_NS 50000000 /* how long a thread that has left a peer's core tries to stay apart */
#define SLICE_NS 5000000  /* more than the scheduler lets a third process run at a time */
#define SCRAP_NS 50000    /* a thread that had less than this of a core in a lease was held up */

static bool has_mask(pid_t thread, const cpu_set_t *mask)
{
    ERRNO_KEPT;
    cpu_set_t now;
    return sched_getaffinity(thread, sizeof(now), &now) == 0 && CPU_EQUAL(&now, mask);
}

/* Changes the mask of a thread if that is `from`, and returns whether it did. It ignores a thread
 * that has ended, or whose new cores are gone. */
static bool change(pid_t thread, const cpu_set_t *from, const cpu_set_t *to)
{
    return has_mask(thread, from) && SYS_CALL(SYS_sched_setaffinity, thread, sizeof(*to), to) == 0;
}

void place_open(struct nic *nic)
{
    struct place *p = &nic->place;
    int64_t core = nic->process->options.number[OPT_CORE];
    *p = (struct place){.on = false};
    if (sched_getaffinity(getpid(), sizeof(p->whole), &p->whole) != 0 ||
        CPU_COUNT(&p->whole) == 1) {
        return;
    }
    CPU_SET(core, &p->home); /* if the option names no core (-1), this does nothing */
    p->on = CPU_ISSET(core, &p->whole);
    p->leaves = !p->on && nic->process->options.number[OPT_SPIN_US] > 0;
}

void place_hold(struct nic *nic)
{
    struct place *p = &nic->place;
    if (p->on && !p->held && fault_thread_id() == getpid()) {
        p->ran = -1;
        __atomic_store_n(&p->held, change(0, &p->whole, &p->home), __ATOMIC_RELAXED);
    }
}

/* Gives the whole mask to all other threads that have inherited the home of the first one. */
static void widen_others(const struct place *p)
{
    ERRNO_KEPT;
    int cancel = cancel_off();
    forks_hold(); /* a child of the program would keep the folder open */
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
    forks_release();
    cancel_back(cancel);
}

/* Returns for how long the first thread has had a core so far; -1 where the kernel does not say. */
static int64_t first_ran(void)
{
    enum { THREAD = 4, EXACT = 2 };
    return sys_clock_ns((clockid_t)(~(unsigned)getpid() << 3 | THREAD | EXACT));
}

/* Whether the first thread runs or is ready to run, and does not sleep. */
static bool first_is_ready(void)
{
    char path[64];
    snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
    forks_hold(); /* a child of the program would keep the file open */
    char state = sys_task_state(path);
    forks_release();
    return state == 'R';
}

/* Whether the first thread was ready to run, but got no core since the last look. */
static bool is_held_up(struct place *p)
{
    int64_t before = p->ran;
    p->ran = first_ran();
    return before >= 0 && p->ran >= 0 && p->ran - before < SCRAP_NS && first_is_ready();
}

void place_tend(struct nic *nic)
{
    struct place *p = &nic->place;
    if (p->held) {
        widen_others(p);
        p->ran = first_ran();
    }
}

void place_free(struct nic *nic)
{
    struct place *p = &nic->place;
    if (p->held) {
        change(getpid(), &p->home, &p->whole);
        widen_others(p);
        __atomic_store_n(&p->held, false, __ATOMIC_RELAXED);
    }
}

bool place_rest(struct nic *nic)
{
    struct place *p = &nic->place;
    bool at_home = p->held && has_mask(getpid(), &p->home);
    bool held_up = at_home && !p->asleep && is_held_up(p);
    if ((at_home && p->asleep) || held_up) {
        place_tend(nic);
    } else {
        place_free(nic);
    }
    return held_up;
}

void place_sleeps(struct nic *nic, bool asleep)
{
    struct place *p = &nic->place;
    if (p->on && fault_thread_id() == getpid()) {
        p->asleep = asleep;
    }
}

/* Moves the calling thread to one of `cores`: gives it their mask, and at once the whole one again.
 * Forks are held off meanwhile, so neither the thread nor a signal handler in it makes children
 * with the small mask. */
static bool take_to(const cpu_set_t *whole, const cpu_set_t *cores)
{
    forks_hold();
    bool taken = change(0, whole, cores) && change(0, cores, whole);
    forks_release();
    return taken;
}

bool place_leave(struct nic *nic, int64_t now)
{
    struct place *p = &nic->place;
    if (now < atomic_load_explicit(&p->next_look, memory_order_relaxed) || !lock_try(&nic->lock)) {
        return false;
    }
    unsigned core = CPU_SETSIZE;
    cpu_set_t whole = p->whole, others, cores;
    CPU_ZERO(&others);
    SYS_CALL(SYS_getcpu, &core, NULL, NULL);
    atomic_store_explicit(&p->next_look, now + LOOK_NS, memory_order_relaxed);
    nic->ops->home->waits_on(nic->fabric, (int)core, now, &others);
    CPU_OR(&cores, &whole, &others);
    CPU_XOR(&cores, &cores, &others);
    bool met = p->leaves && CPU_ISSET(core, &others), leaves = met && CPU_COUNT(&cores) != 0;
    if (leaves) {
        /* withdraws the note, so that the peer does not leave, too */
        nic->ops->home->waits_on(nic->fabric, -1, now, &others);
    }
    nic_unlock(nic);
    leaves = leaves && take_to(&whole, &cores);
    if (met) {
        atomic_store_explicit(&p->apart, leaves ? now + APART_NS : 0, memory_order_relaxed);
    }
    return leaves;
}

int64_t place_stay(const struct nic *nic, int64_t now)
{
    return now < atomic_load_explicit(&nic->place.apart, memory_order_relaxed) ? SLICE_NS : 0;
}

void place_yield(struct nic *nic)
{
    int64_t now = clock_ns();
    if (!place_leave(nic, now) && place_stay(nic, now) == 0) {
        sys_yield();
    }
}

void place_before_fork(struct nic *nic)
{
    nic->place.forking = __atomic_load_n(&nic->place.held, __ATOMIC_RELAXED);
}

void place_fork(struct nic *nic)
{
    if (nic->place.forking) {
        change(0, &nic->place.home, &nic->place.whole);
    }
}
