/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI in virtual time. The thread that it has for events of its launcher, which has no part in
 * messages, is in no simulation: its time-outs would be the only thing left to happen in a job that
 * is stuck, and virtual time would go on by hours.
 *
 * What looks at memory, and at nothing else, takes the time of a look: a
 * program that did so until it found something would hold virtual time up for ever.
 */
#include "virtual.h"

#include <dlfcn.h>
#include <stddef.h>

SHOWN int MPI_Win_test(void *window, int *flag);
SHOWN int PMPI_Win_test(void *window, int *flag);

/* MPI_Win_test() of Open MPI's osc component for Portals compares two counters, which puts of
 * others set. A window is a pointer in Open MPI; other MPIs have no function here. */
static int test(void *window, int *flag)
{
    static int (*original)(void *, int *);
    if (original == NULL) {
        void *library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD);
        *(void **)&original = dlsym(library != NULL ? library : RTLD_NEXT, "PMPI_Win_test");
    }
    int rc = original(window, flag);
    if (rc == 0 && *flag == 0 && virtual_in()) {
        virtual_look();
    }
    return rc;
}

int MPI_Win_test(void *window, int *flag)
{
    return test(window, flag);
}

int PMPI_Win_test(void *window, int *flag)
{
    return test(window, flag);
}

SHOWN void *opal_progress_thread_init(const char *name);
SHOWN int opal_progress_thread_finalize(const char *name);

static void *opal(const char *name)
{
    void *library = dlopen("libopen-pal.so.40", RTLD_LAZY | RTLD_NOLOAD);
    return dlsym(library != NULL ? library : RTLD_NEXT, name);
}

void *opal_progress_thread_init(const char *name)
{
    void *(*original)(const char *) = (void *(*)(const char *))opal("opal_progress_thread_init");
    struct sim_task *self = virtual_step_out();
    void *base = original(name);
    virtual_step_in(self);
    return base;
}

int opal_progress_thread_finalize(const char *name)
{
    int (*original)(const char *) = (int (*)(const char *))opal("opal_progress_thread_finalize");
    struct sim_task *self = virtual_step_out();
    int rc = original(name);
    virtual_step_in(self);
    return rc;
}
