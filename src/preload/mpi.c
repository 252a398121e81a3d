/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Open MPI in a simulated rank: its clock is the virtual one. Calls that look at the clock or at
 * memory, and at nothing else, take the time of a look: a program that made them until they found
 * something would hold virtual time up for ever.
 */
#include "pinwheel_sim.h"

#include <dlfcn.h>
#include <stddef.h>

enum { LOOK_NS = 20 };

/* MPI_Win_test() of the osc component for Portals compares two counters, which remote puts set. The
 * window is a pointer in Open MPI. */
static int test(void *window, int *flag)
{
    static int (*original)(void *, int *);
    if (original == NULL) {
        void *library = dlopen("libmpi.so.40", RTLD_LAZY | RTLD_NOLOAD);
        *(void **)&original = dlsym(library, "PMPI_Win_test");
    }
    int rc = original(window, flag);
    if (rc == 0 && *flag == 0) {
        PtlSimCompute(LOOK_NS);
    }
    return rc;
}

static double now(void)
{
    PtlSimCompute(LOOK_NS);
    return (double)PtlSimNow() / 1e12;
}

/* Open MPI's headers are not needed for these. */
PTL_EXPORT double MPI_Wtime(void);
PTL_EXPORT double PMPI_Wtime(void);
PTL_EXPORT int MPI_Win_test(void *window, int *flag);
PTL_EXPORT int PMPI_Win_test(void *window, int *flag);

int MPI_Win_test(void *window, int *flag)
{
    return test(window, flag);
}

int PMPI_Win_test(void *window, int *flag)
{
    return test(window, flag);
}

double MPI_Wtime(void)
{
    return now();
}

double PMPI_Wtime(void)
{
    return now();
}
