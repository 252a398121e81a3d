/* SPDX-License-Identifier: BSD-3-Clause */
/* Operations of MPI on windows: each is a struct move. */
#include "move.h"

/* Calls whose counts are of type COUNT, which MPICH has twice. */
#define SIDE(name, COUNT) const void *name, COUNT name##_count, MPI_Datatype name##_type
#define TARGET(COUNT) int rank, MPI_Aint disp, COUNT count, MPI_Datatype type
#define ORIGIN ((struct side){(void *)(uintptr_t)origin, origin_count, origin_type})
#define RESULT ((struct side){(void *)(uintptr_t)result, result_count, result_type})

/* Most operations are short and alike, and go the quick way. */
static inline int move(struct window *w, const struct move *m, MPI_Request *request)
{
    int rc = request == NULL ? move_quick(w, m) : MOVE_NOT_QUICK;
    return rc != MOVE_NOT_QUICK ? rc : move_run(w, m, request);
}

#define MOVE(name, kind_, origin_, result_, op_, request, ...)                                     \
    struct window *w = window_of(win);                                                             \
    if (w == NULL) {                                                                               \
        return REAL(name, __VA_ARGS__);                                                            \
    }                                                                                              \
    struct move m = {.call = "MPI_" #name,                                                         \
                     .kind = (kind_),                                                              \
                     .origin = origin_,                                                            \
                     .result = result_,                                                            \
                     .rank = rank,                                                                 \
                     .disp = disp,                                                                 \
                     .count = count,                                                               \
                     .datatype = type,                                                             \
                     .op = (op_)};                                                                 \
    return move(w, &m, request)

#define NOTHING ((struct side){NULL, 0, MPI_DATATYPE_NULL})
#define A_PUT origin, origin_count, origin_type, rank, disp, count, type
#define A_ACC A_PUT, op
#define A_GET_ACC                                                                                  \
    origin, origin_count, origin_type, result, result_count, result_type, rank, disp, count, type, \
        op

/* All calls with counts: once with int, and once with MPI_Count for MPI_Put_c and its like. */
#define CALLS(SUFFIX, COUNT)                                                                       \
    int PMPI_Put##SUFFIX(SIDE(origin, COUNT), TARGET(COUNT), MPI_Win win)                          \
    {                                                                                              \
        MOVE(Put##SUFFIX, MOVE_PUT, ORIGIN, NOTHING, MPI_OP_NULL, NULL, A_PUT, win);               \
    }                                                                                              \
    ALSO_MPI(Put##SUFFIX);                                                                         \
    int PMPI_Rput##SUFFIX(SIDE(origin, COUNT), TARGET(COUNT), MPI_Win win, MPI_Request *request)   \
    {                                                                                              \
        MOVE(Rput##SUFFIX, MOVE_PUT, ORIGIN, NOTHING, MPI_OP_NULL, request, A_PUT, win, request);  \
    }                                                                                              \
    ALSO_MPI(Rput##SUFFIX);                                                                        \
    int PMPI_Get##SUFFIX(void *origin, COUNT origin_count, MPI_Datatype origin_type,               \
                         TARGET(COUNT), MPI_Win win)                                               \
    {                                                                                              \
        MOVE(Get##SUFFIX, MOVE_GET, ORIGIN, NOTHING, MPI_OP_NULL, NULL, A_PUT, win);               \
    }                                                                                              \
    ALSO_MPI(Get##SUFFIX);                                                                         \
    int PMPI_Rget##SUFFIX(void *origin, COUNT origin_count, MPI_Datatype origin_type,              \
                          TARGET(COUNT), MPI_Win win, MPI_Request *request)                        \
    {                                                                                              \
        MOVE(Rget##SUFFIX, MOVE_GET, ORIGIN, NOTHING, MPI_OP_NULL, request, A_PUT, win, request);  \
    }                                                                                              \
    ALSO_MPI(Rget##SUFFIX);                                                                        \
    int PMPI_Accumulate##SUFFIX(SIDE(origin, COUNT), TARGET(COUNT), MPI_Op op, MPI_Win win)        \
    {                                                                                              \
        MOVE(Accumulate##SUFFIX, MOVE_ACCUMULATE, ORIGIN, NOTHING, op, NULL, A_ACC, win);          \
    }                                                                                              \
    ALSO_MPI(Accumulate##SUFFIX);                                                                  \
    int PMPI_Raccumulate##SUFFIX(SIDE(origin, COUNT), TARGET(COUNT), MPI_Op op, MPI_Win win,       \
                                 MPI_Request *request)                                             \
    {                                                                                              \
        MOVE(Raccumulate##SUFFIX, MOVE_ACCUMULATE, ORIGIN, NOTHING, op, request, A_ACC, win,       \
             request);                                                                             \
    }                                                                                              \
    ALSO_MPI(Raccumulate##SUFFIX);                                                                 \
    int PMPI_Get_accumulate##SUFFIX(SIDE(origin, COUNT), void *result, COUNT result_count,         \
                                    MPI_Datatype result_type, TARGET(COUNT), MPI_Op op,            \
                                    MPI_Win win)                                                   \
    {                                                                                              \
        MOVE(Get_accumulate##SUFFIX, MOVE_GET_ACCUMULATE, ORIGIN, RESULT, op, NULL, A_GET_ACC,     \
             win);                                                                                 \
    }                                                                                              \
    ALSO_MPI(Get_accumulate##SUFFIX);                                                              \
    int PMPI_Rget_accumulate##SUFFIX(SIDE(origin, COUNT), void *result, COUNT result_count,        \
                                     MPI_Datatype result_type, TARGET(COUNT), MPI_Op op,           \
                                     MPI_Win win, MPI_Request *request)                            \
    {                                                                                              \
        MOVE(Rget_accumulate##SUFFIX, MOVE_GET_ACCUMULATE, ORIGIN, RESULT, op, request, A_GET_ACC, \
             win, request);                                                                        \
    }                                                                                              \
    ALSO_MPI(Rget_accumulate##SUFFIX)

CALLS(, int);
#ifdef MPI_RMA_LARGE
CALLS(_c, MPI_Count);
#endif

int PMPI_Fetch_and_op(const void *origin, void *result, MPI_Datatype type, int rank, MPI_Aint disp,
                      MPI_Op op, MPI_Win win)
{
    struct window *w = window_of(win);
    if (w == NULL) {
        return REAL(Fetch_and_op, origin, result, type, rank, disp, op, win);
    }
    struct move m = {.call = "MPI_Fetch_and_op",
                     .kind = MOVE_GET_ACCUMULATE,
                     .origin = {(void *)(uintptr_t)origin, 1, type},
                     .result = {result, 1, type},
                     .rank = rank,
                     .disp = disp,
                     .count = 1,
                     .datatype = type,
                     .op = op};
    return move(w, &m, NULL);
}
ALSO_MPI(Fetch_and_op);

int PMPI_Compare_and_swap(const void *origin, const void *compare, void *result, MPI_Datatype type,
                          int rank, MPI_Aint disp, MPI_Win win)
{
    struct window *w = window_of(win);
    if (w == NULL) {
        return REAL(Compare_and_swap, origin, compare, result, type, rank, disp, win);
    }
    struct move m = {.call = "MPI_Compare_and_swap",
                     .kind = MOVE_COMPARE_SWAP,
                     .origin = {(void *)(uintptr_t)origin, 1, type},
                     .result = {result, 1, type},
                     .compare = compare,
                     .rank = rank,
                     .disp = disp,
                     .count = 1,
                     .datatype = type};
    return move(w, &m, NULL);
}
ALSO_MPI(Compare_and_swap);
