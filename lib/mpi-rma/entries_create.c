/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of MPI that make windows. */
#include "create.h"

static int check(const struct wish *wish)
{
    int inter = 0;
    if (wish->comm == MPI_COMM_NULL) {
        return comm_error(MPI_COMM_WORLD, MPI_ERR_COMM, "%s: MPI_COMM_NULL", wish->call);
    }
    if (PMPI_Comm_test_inter(wish->comm, &inter) != MPI_SUCCESS || inter) {
        return comm_error(wish->comm, MPI_ERR_COMM, "%s: the communicator is an intercommunicator",
                          wish->call);
    }
    if (wish->size < 0) {
        return comm_error(wish->comm, MPI_ERR_SIZE, "%s: size %td", wish->call, wish->size);
    }
    if (wish->disp_unit <= 0) {
        return comm_error(wish->comm, MPI_ERR_DISP, "%s: disp_unit %td", wish->call,
                          wish->disp_unit);
    }
    return MPI_SUCCESS;
}

/* Makes a window of ours, or has the MPI make it by `else_`. */
#define MAKE(else_, win_, base_, ...)                                                              \
    struct wish wish = {__VA_ARGS__};                                                              \
    bool ours;                                                                                     \
    if (real_foreign) {                                                                            \
        return else_;                                                                              \
    }                                                                                              \
    int rc = check(&wish);                                                                         \
    if (rc != MPI_SUCCESS) {                                                                       \
        return rc;                                                                                 \
    }                                                                                              \
    rc = window_make(&wish, win_, base_, &ours);                                                   \
    return rc != MPI_SUCCESS || ours ? rc : else_

int PMPI_Win_create(void *base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm,
                    MPI_Win *win)
{
    void *same;
    MAKE(REAL(Win_create, base, size, disp_unit, info, comm, win), win, &same, "MPI_Win_create",
         MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, info, comm);
}
ALSO_MPI(Win_create);

int PMPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *base,
                      MPI_Win *win)
{
    MAKE(REAL(Win_allocate, size, disp_unit, info, comm, base, win), win, (void **)base,
         "MPI_Win_allocate", MPI_WIN_FLAVOR_ALLOCATE, NULL, size, disp_unit, info, comm);
}
ALSO_MPI(Win_allocate);

int PMPI_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void *base,
                             MPI_Win *win)
{
    MAKE(REAL(Win_allocate_shared, size, disp_unit, info, comm, base, win), win, (void **)base,
         "MPI_Win_allocate_shared", MPI_WIN_FLAVOR_SHARED, NULL, size, disp_unit, info, comm);
}
ALSO_MPI(Win_allocate_shared);

int PMPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win *win)
{
    void *none;
    MAKE(REAL(Win_create_dynamic, info, comm, win), win, &none, "MPI_Win_create_dynamic",
         MPI_WIN_FLAVOR_DYNAMIC, MPI_BOTTOM, 0, 1, info, comm);
}
ALSO_MPI(Win_create_dynamic);

#ifdef MPI_RMA_LARGE
int PMPI_Win_create_c(void *base, MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                      MPI_Win *win)
{
    void *same;
    MAKE(REAL(Win_create_c, base, size, disp_unit, info, comm, win), win, &same, "MPI_Win_create_c",
         MPI_WIN_FLAVOR_CREATE, base, size, disp_unit, info, comm);
}
ALSO_MPI(Win_create_c);

int PMPI_Win_allocate_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm, void *base,
                        MPI_Win *win)
{
    MAKE(REAL(Win_allocate_c, size, disp_unit, info, comm, base, win), win, (void **)base,
         "MPI_Win_allocate_c", MPI_WIN_FLAVOR_ALLOCATE, NULL, size, disp_unit, info, comm);
}
ALSO_MPI(Win_allocate_c);

int PMPI_Win_allocate_shared_c(MPI_Aint size, MPI_Aint disp_unit, MPI_Info info, MPI_Comm comm,
                               void *base, MPI_Win *win)
{
    MAKE(REAL(Win_allocate_shared_c, size, disp_unit, info, comm, base, win), win, (void **)base,
         "MPI_Win_allocate_shared_c", MPI_WIN_FLAVOR_SHARED, NULL, size, disp_unit, info, comm);
}
ALSO_MPI(Win_allocate_shared_c);
#endif
