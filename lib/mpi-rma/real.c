/* SPDX-License-Identifier: BSD-3-Clause */
/* The MPI's own functions, which those of this library stand before. */
#include "window.h"

#ifdef OMPI_MAJOR_VERSION
#define RMA_MPI_LIBRARY "libmpi.so"
#else
#define RMA_MPI_LIBRARY "libmpich.so"
#endif

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

struct real real;
_Atomic uint64_t real_calls;

bool real_foreign;

#define FIND(name) real.name = (__typeof__(real.name))dlsym(RTLD_NEXT, "PMPI_" #name);

/* The MPI that a program calls may be another one than that which this library is for: then the
 * program's own calls go to the program's MPI. */
static bool is_foreign(void)
{
    Dl_info theirs;
    void *init = dlsym(RTLD_DEFAULT, "MPI_Init");
    if (init == NULL || dladdr(init, &theirs) == 0 || theirs.dli_fname == NULL) {
        return false;
    }
    const char *name = strrchr(theirs.dli_fname, '/');
    name = name != NULL ? name + 1 : theirs.dli_fname;
    bool foreign = strncmp(name, "libmpi", 6) == 0 &&
                   strncmp(name, RMA_MPI_LIBRARY, sizeof(RMA_MPI_LIBRARY) - 1) != 0;
    if (foreign) {
        fprintf(stderr,
                "pinwheel rma: this program's MPI is %s, and the library of windows is the one for "
                "%s*: it stays out of the way\n",
                name, RMA_MPI_LIBRARY);
    }
    return foreign;
}

__attribute__((constructor)) static void find(void)
{
    RMA_CALLS(FIND)
    RMA_CALLS_LARGE(FIND)
    real_foreign = is_foreign();
}
