/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Attributes in Fortran. All other calls of the MPIs' bindings reach PMPI_X or MPI_X of this
 * library; this one they have of their own, since Fortran gets values where C gets addresses of
 * them. Open MPI's mpi_f08 calls its mpif.h, MPICH's bindings a function of libmpich.
 */
#include "window.h"

#include <dlfcn.h>

/* The value of an attribute that every window has; false: it is another one. */
static bool value_of(const struct window *w, int keyval, MPI_Aint *value)
{
    switch (keyval) {
    case MPI_WIN_BASE:
        *value = (MPI_Aint)(uintptr_t)w->base;
        return true;
    case MPI_WIN_SIZE:
        *value = w->size;
        return true;
    case MPI_WIN_DISP_UNIT:
        *value = w->unit;
        return true;
    case MPI_WIN_CREATE_FLAVOR:
        *value = w->flavor;
        return true;
    case MPI_WIN_MODEL:
        *value = w->model;
        return true;
    default:
        return false;
    }
}

#ifdef OMPI_MAJOR_VERSION
typedef void get_attr(MPI_Fint *win, MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag,
                      MPI_Fint *error);
get_attr pmpi_win_get_attr_, mpi_win_get_attr_;

void pmpi_win_get_attr_(MPI_Fint *win, MPI_Fint *keyval, MPI_Aint *value, MPI_Fint *flag,
                        MPI_Fint *error)
{
    struct window *w = window_of(PMPI_Win_f2c(*win));
    if (w == NULL || !value_of(w, *keyval, value)) {
        get_attr *theirs = (get_attr *)dlsym(RTLD_NEXT, "pmpi_win_get_attr_");
        theirs(win, keyval, value, flag, error);
        return;
    }
    *flag = 1;
    if (error != NULL) {
        *error = MPI_SUCCESS;
    }
}
extern get_attr mpi_win_get_attr_ __attribute__((alias("pmpi_win_get_attr_")));
#else
typedef int get_attr(MPI_Win win, int keyval, void *value, int *flag, int kind);
get_attr MPII_Win_get_attr;

/* Fortran's keyvals are C's and one. */
int MPII_Win_get_attr(MPI_Win win, int keyval, void *value, int *flag, int kind)
{
    struct window *w = window_of(win);
    MPI_Aint is;
    if (w == NULL || !value_of(w, keyval - 1, &is)) {
        get_attr *theirs = (get_attr *)dlsym(RTLD_NEXT, "MPII_Win_get_attr");
        return theirs(win, keyval, value, flag, kind);
    }
    *(MPI_Aint *)value = is;
    *flag = 1;
    return MPI_SUCCESS;
}
#endif
