/* SPDX-License-Identifier: BSD-3-Clause */
/* What windows meet at their edges: nothing to do, odd arguments, mistakes, hints, threads. */
#include "parts.h"

#include <pthread.h>

int rank, size;
long bad;

static MPI_Win make(void **base, MPI_Aint bytes, int unit, MPI_Info info)
{
    MPI_Win win;
    MPI_Win_allocate(bytes, unit, info, MPI_COMM_WORLD, base, &win);
    return win;
}

/* ---- Nothing to do ---- */

static void part_proc_null(void)
{
    int *memory, one = 1, got = 7;
    MPI_Request r;
    MPI_Win win = make((void **)&memory, 4 * sizeof(int), sizeof(int), MPI_INFO_NULL);
    MPI_Win_fence(0, win);
    MPI_Put(&one, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win);
    MPI_Get(&got, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win);
    MPI_Accumulate(&one, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM, win);
    MPI_Get_accumulate(&one, 1, MPI_INT, &got, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, MPI_SUM,
                       win);
    MPI_Fetch_and_op(&one, &got, MPI_INT, MPI_PROC_NULL, 0, MPI_SUM, win);
    MPI_Compare_and_swap(&one, &one, &got, MPI_INT, MPI_PROC_NULL, 0, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, MPI_PROC_NULL, 0, win);
    MPI_Win_unlock(MPI_PROC_NULL, win);
    MPI_Win_lock_all(0, win);
    MPI_Rput(&one, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Win_flush(MPI_PROC_NULL, win);
    MPI_Win_unlock_all(win);
    BAD(got != 7, "%d", got);
    MPI_Win_free(&win);
}

static void part_empty(void)
{
    int memory[4] = {0}, one = rank + 1;
    MPI_Win win;
    /* rank 1 has nothing, which is NULL */
    MPI_Win_create(rank == 1 ? NULL : memory, rank == 1 ? 0 : sizeof(memory), sizeof(int),
                   MPI_INFO_NULL, MPI_COMM_WORLD, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&one, 0, MPI_INT, 1, 0, 0, MPI_INT, win);
    MPI_Put(&one, 1, MPI_INT, 0, rank % 4, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    for (int r = 0; rank == 0 && r < size && r < 4; r++) {
        BAD(memory[r] != r + 1, "%d", memory[r]);
    }
    MPI_Win_free(&win);
    void *base;
    win = make(&base, 0, 1, MPI_INFO_NULL); /* of no bytes at all */
    MPI_Win_fence(0, win);
    MPI_Win_fence(0, win);
    MPI_Win_free(&win);
}

/* ---- Addresses ---- */

static void part_bottom(void)
{
    int *memory, a = 10 + rank, b = 20 + rank;
    MPI_Aint at[2];
    MPI_Datatype both;
    MPI_Win win = make((void **)&memory, 4 * sizeof(int), sizeof(int), MPI_INFO_NULL);
    MPI_Get_address(&a, &at[0]);
    MPI_Get_address(&b, &at[1]);
    MPI_Type_create_hindexed(2, (int[]){1, 1}, at, MPI_INT, &both);
    MPI_Type_commit(&both);
    MPI_Win_fence(0, win);
    MPI_Put(MPI_BOTTOM, 1, both, next(), 1, 2, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Type_free(&both);
    BAD(memory[1] != 10 + before() || memory[2] != 20 + before(), "%d %d", memory[1], memory[2]);
    MPI_Win_free(&win);
}

static void part_units(void)
{
    char *memory;
    int unit = rank % 2 == 0 ? 4 : 1, theirs = next() % 2 == 0 ? 4 : 1, value = 77 + rank, got = 0;
    MPI_Win win = make((void **)&memory, 64, unit, MPI_INFO_NULL);
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT, next(), 8 / theirs, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    memcpy(&got, memory + 8, sizeof(got));
    BAD(got != 77 + before(), "%d", got);
    MPI_Win_free(&win);
    /* elements that are not aligned */
    win = make((void **)&memory, 64, 1, MPI_INFO_NULL);
    int one = 1;
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT, next(), 1, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    MPI_Accumulate(&one, 1, MPI_INT, next(), 1, 1, MPI_INT, MPI_SUM, win);
    MPI_Get_accumulate(&one, 1, MPI_INT, &got, 1, MPI_INT, next(), 1, 1, MPI_INT, MPI_SUM, win);
    MPI_Win_fence(0, win);
    BAD(got != value + 1, "%d", got);
    memcpy(&got, memory + 1, sizeof(got));
    BAD(got != 77 + before() + 2, "%d", got);
    MPI_Win_free(&win);
}

/* ---- Operations of each accumulate ---- */

static void part_replace(void)
{
    int64_t *memory, value = 5 + rank, got = -1, three[3] = {1, 2, 3}, was[3];
    MPI_Win win = make((void **)&memory, 64, sizeof(int64_t), MPI_INFO_NULL);
    MPI_Win_lock_all(0, win);
    MPI_Accumulate(&value, 1, MPI_INT64_T, next(), 0, 1, MPI_INT64_T, MPI_REPLACE, win);
    MPI_Get_accumulate(NULL, 0, MPI_INT64_T, &got, 1, MPI_INT64_T, next(), 0, 1, MPI_INT64_T,
                       MPI_NO_OP, win);
    MPI_Win_flush(next(), win);
    BAD(got != value, "%lld", (long long)got);
    MPI_Get_accumulate(three, 3, MPI_INT64_T, was, 3, MPI_INT64_T, next(), 0, 3, MPI_INT64_T,
                       MPI_REPLACE, win);
    MPI_Win_flush(next(), win);
    BAD(was[0] != value || was[1] != 0, "%lld", (long long)was[0]);
    MPI_Fetch_and_op(NULL, &got, MPI_INT64_T, next(), 2, MPI_NO_OP, win);
    MPI_Win_flush(next(), win);
    BAD(got != 3, "%lld", (long long)got);
    MPI_Fetch_and_op(&value, &got, MPI_INT64_T, next(), 2, MPI_REPLACE, win);
    MPI_Win_flush(next(), win);
    BAD(got != 3, "%lld", (long long)got);
    MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
    BAD(memory[2] != 5 + before(), "%lld", (long long)memory[2]);
    MPI_Win_free(&win);
}

/* ---- Mistakes ---- */

/* One epoch in a ring. Each call gives MPI_SUCCESS or, if it must, MPI_ERR_RMA_SYNC. */
static void ring_epoch(MPI_Win win, const int *memory, int post, int start, const int *wrong)
{
    static int value;
    int of_next[] = {next()}, of_before[] = {before()}, flag = 0, gave[4] = {0};
    MPI_Group all, to, from;
    MPI_Win_get_group(win, &all);
    MPI_Group_incl(all, 1, of_next, &to);
    MPI_Group_incl(all, 1, of_before, &from);
    value++;
    gave[0] = class_of(MPI_Win_post(from, post, win));
    if (start != 0) {
        MPI_Barrier(MPI_COMM_WORLD); /* that it was posted is known otherwise */
    }
    gave[1] = class_of(MPI_Win_start(to, start, win));
    if (gave[1] == MPI_SUCCESS) {
        MPI_Put(&value, 1, MPI_INT, next(), 0, 1, MPI_INT, win);
        gave[2] = class_of(MPI_Win_complete(win));
    }
    if (value % 2 == 0) {
        gave[3] = class_of(MPI_Win_wait(win));
    }
    while (value % 2 != 0 && !flag && gave[3] == MPI_SUCCESS) {
        gave[3] = class_of(MPI_Win_test(win, &flag));
    }
    for (int i = 0; i < 4; i++) {
        BAD(gave[i] != wrong[i], "call %d with %d and %d gave class %d", i, post, start, gave[i]);
    }
    BAD(gave[1] == MPI_SUCCESS && memory[0] != value, "%d, not %d", memory[0], value);
    MPI_Group_free(&all);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
}

/* MPI_MODE_NOCHECK at one end is an error, and the next epochs are as they should be. */
static void part_nocheck(void)
{
    static const int right[4], by_post[] = {0, MPI_ERR_RMA_SYNC, 0, MPI_ERR_RMA_SYNC},
                               by_start[] = {0, 0, 0, MPI_ERR_RMA_SYNC};
    int *memory;
    MPI_Win win = make((void **)&memory, 4 * sizeof(int), sizeof(int), MPI_INFO_NULL);
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    for (int i = 0; i < 5; i++) {
        ring_epoch(win, memory, MPI_MODE_NOCHECK, MPI_MODE_NOCHECK, right);
        ring_epoch(win, memory, MPI_MODE_NOCHECK, 0, by_post);
        ring_epoch(win, memory, 0, 0, right);
        ring_epoch(win, memory, 0, MPI_MODE_NOCHECK, by_start);
        ring_epoch(win, memory, 0, 0, right);
    }
    MPI_Win_free(&win);
}

static void part_errors(void)
{
    int *memory, one = 1, got;
    MPI_Win win = make((void **)&memory, 4 * sizeof(int), sizeof(int), MPI_INFO_NULL), again;
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
#define GIVES(call, class)                                                                         \
    do {                                                                                           \
        int rc = class_of(call);                                                                   \
        BAD(rc != (class), "%s gave class %d", #call, rc);                                         \
    } while (0)
    GIVES(MPI_Put(&one, 1, MPI_INT, next(), 0, 1, MPI_INT, win), MPI_ERR_RMA_SYNC);
    GIVES(MPI_Win_unlock(0, win), MPI_ERR_RMA_SYNC);
    GIVES(MPI_Win_complete(win), MPI_ERR_RMA_SYNC);
    GIVES(MPI_Win_wait(win), MPI_ERR_RMA_SYNC);
    GIVES(MPI_Win_flush(0, win), MPI_ERR_RMA_SYNC);
    GIVES(MPI_Win_lock(99, 0, 0, win), MPI_ERR_LOCKTYPE);
    GIVES(MPI_Win_lock(MPI_LOCK_SHARED, size, 0, win), MPI_ERR_RANK);
    MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, win);
    GIVES(MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, win), MPI_ERR_RMA_SYNC);
    GIVES(MPI_Win_lock_all(0, win), MPI_ERR_RMA_SYNC);
    GIVES(MPI_Win_fence(0, win), MPI_ERR_RMA_SYNC);
    GIVES(MPI_Put(&one, 1, MPI_INT, size, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    GIVES(MPI_Put(&one, 1, MPI_INT, -77, 0, 1, MPI_INT, win), MPI_ERR_RANK);
    GIVES(MPI_Put(&one, 1, MPI_INT, next(), 4, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    GIVES(MPI_Put(&one, 1, MPI_INT, next(), -1, 1, MPI_INT, win), MPI_ERR_RMA_RANGE);
    GIVES(MPI_Put(&one, -1, MPI_INT, next(), 0, 1, MPI_INT, win), MPI_ERR_COUNT);
    GIVES(MPI_Put(&one, 1, MPI_DATATYPE_NULL, next(), 0, 1, MPI_INT, win), MPI_ERR_TYPE);
    GIVES(MPI_Accumulate(&one, 1, MPI_INT, next(), 0, 1, MPI_INT, MPI_MAXLOC, win), MPI_ERR_OP);
    GIVES(MPI_Accumulate(&one, 1, MPI_FLOAT, next(), 0, 1, MPI_FLOAT, MPI_BAND, win), MPI_ERR_OP);
    GIVES(MPI_Compare_and_swap(&one, &one, &got, MPI_FLOAT, next(), 0, win), MPI_ERR_TYPE);
    MPI_Win_unlock(next(), win);
    GIVES(MPI_Win_attach(win, memory, 4), MPI_ERR_RMA_FLAVOR);
    MPI_Barrier(MPI_COMM_WORLD);
    BAD(memory[0] != 0 || memory[3] != 0, "what was refused was done");
    MPI_Win_free(&win);
    BAD(win != MPI_WIN_NULL, "a freed handle");
    /* an intercommunicator */
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank % 2 == 0 ? 1 : 0, 5, &inter);
    MPI_Comm_set_errhandler(inter, MPI_ERRORS_RETURN);
    GIVES(MPI_Win_create(NULL, 0, 1, MPI_INFO_NULL, inter, &again), MPI_ERR_COMM);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
#undef GIVES
}

/* ---- Attributes, group, hints, names ---- */

static void part_attributes(void)
{
    int *memory, flag = 0, *number, same;
    void *base;
    MPI_Aint *bytes;
    MPI_Group of_window, of_world;
    MPI_Info info, used;
    char text[MPI_MAX_OBJECT_NAME], value[64] = "";
    static const char *const hints[][2] = {{"same_disp_unit", "true"},
                                           {"accumulate_ordering", "none"},
                                           {"accumulate_ops", "same_op"},
                                           {"no_locks", "true"}};
    MPI_Info_create(&info);
    for (int i = 0; i < 4; i++) {
        MPI_Info_set(info, hints[i][0], hints[i][1]);
    }
    MPI_Win win = make((void **)&memory, 40, 4, info);
    MPI_Info_free(&info); /* right after the call */
    MPI_Win_get_attr(win, MPI_WIN_BASE, &base, &flag);
    BAD(!flag || base != memory, "base");
    MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag);
    BAD(!flag || *bytes != 40, "size");
    MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &number, &flag);
    BAD(!flag || *number != 4, "disp_unit");
    MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &number, &flag);
    BAD(!flag || *number != MPI_WIN_FLAVOR_ALLOCATE, "flavor");
    MPI_Win_get_attr(win, MPI_WIN_MODEL, &number, &flag);
    BAD(!flag || *number != MPI_WIN_UNIFIED, "model");
    MPI_Win_get_group(win, &of_window);
    MPI_Comm_group(MPI_COMM_WORLD, &of_world);
    MPI_Group_compare(of_window, of_world, &same);
    BAD(same != MPI_IDENT, "group");
    MPI_Group_free(&of_window);
    MPI_Group_free(&of_world);
    MPI_Win_get_info(win, &used);
    MPI_Info_get(used, "no_locks", 63, value, &flag);
    BAD(!flag || strcmp(value, "true") != 0, "info: %s", value);
    MPI_Info_free(&used);
    MPI_Win_set_name(win, "ours");
    MPI_Win_get_name(win, text, &flag);
    BAD(strcmp(text, "ours") != 0, "%s", text);
    MPI_Win_free(&win);
}

/* ---- Many, and on other communicators ---- */

static void part_many(void)
{
    enum { AT_A_TIME = 64, TIMES = 10 };
    MPI_Win win[AT_A_TIME];
    int memory[AT_A_TIME], value;
    for (int t = 0; t < TIMES; t++) {
        for (int i = 0; i < AT_A_TIME; i++) {
            memory[i] = -1;
            MPI_Win_create(&memory[i], sizeof(int), sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD,
                           &win[i]);
        }
        for (int i = 0; i < AT_A_TIME; i++) {
            int k = (i * 7 + t) % AT_A_TIME;
            value = 1000 * t + k;
            MPI_Win_fence(0, win[k]);
            MPI_Put(&value, 1, MPI_INT, next(), 0, 1, MPI_INT, win[k]);
            MPI_Win_fence(0, win[k]);
            BAD(memory[k] != value, "%d", memory[k]);
        }
        for (int i = 0; i < AT_A_TIME; i++) {
            MPI_Win_free(&win[(i + t) % AT_A_TIME]);
        }
    }
}

static void ring_on(MPI_Comm comm)
{
    int memory = -1, me, all;
    MPI_Win win;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &all);
    MPI_Win_create(&memory, sizeof(int), sizeof(int), MPI_INFO_NULL, comm, &win);
    MPI_Win_fence(0, win);
    MPI_Put(&me, 1, MPI_INT, (me + 1) % all, 0, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    BAD(memory != (me + all - 1) % all, "%d", memory);
    MPI_Win_free(&win);
}

static void part_comms(void)
{
    MPI_Comm comm;
    MPI_Group world, even;
    int evens[64], n = 0;
    ring_on(MPI_COMM_WORLD);
    ring_on(MPI_COMM_SELF);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    ring_on(comm);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &comm); /* backwards */
    ring_on(comm);
    MPI_Comm_free(&comm);
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &comm);
    ring_on(comm);
    MPI_Comm_free(&comm);
    for (int r = 0; r < size && n < 64; r += 2) {
        evens[n++] = r;
    }
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, n, evens, &even);
    if (rank % 2 == 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, even, 3, &comm);
        ring_on(comm);
        MPI_Comm_free(&comm);
    }
    MPI_Group_free(&even);
    MPI_Group_free(&world);
}

/* ---- Threads ---- */

static void *on_its_own(void *comm)
{
    for (int i = 0; i < 20; i++) {
        ring_on(*(MPI_Comm *)comm);
    }
    return NULL;
}

static void part_threads(void)
{
    pthread_t other;
    MPI_Comm comms[2];
    int level;
    MPI_Query_thread(&level);
    BAD(level != MPI_THREAD_MULTIPLE, "level %d", level);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[0]);
    MPI_Comm_dup(MPI_COMM_WORLD, &comms[1]);
    pthread_create(&other, NULL, on_its_own, &comms[0]);
    on_its_own(&comms[1]);
    pthread_join(other, NULL);
    MPI_Comm_free(&comms[0]);
    MPI_Comm_free(&comms[1]);
}

/* ---- The MPI's windows beside ours ---- */

static void part_mpi(void)
{
    int *memory, value = 9 + rank, got = 0;
    MPI_Info info;
    MPI_Info_create(&info);
    MPI_Info_set(info, "pinwheel_rma_path", "mpi");
    MPI_Win win = make((void **)&memory, 16, 4, info);
    MPI_Info_free(&info);
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_INT, next(), 1, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    BAD(memory[1] != 9 + before(), "%d", memory[1]);
    MPI_Get(&got, 1, MPI_INT, next(), 1, 1, MPI_INT, win);
    MPI_Win_fence(0, win);
    BAD(got != value, "%d", got);
    MPI_Win_free(&win);
    part_empty(); /* and one of ours */
}

/* Windows that are open when MPI ends. */
static void part_left_open(void)
{
    void *base;
    MPI_Win win = make(&base, 64, 1, MPI_INFO_NULL);
    MPI_Win_fence(0, win);
    MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
}

static const struct part parts[] = {
    {"proc_null", part_proc_null}, {"empty", part_empty},           {"bottom", part_bottom},
    {"nocheck", part_nocheck},     {"units", part_units},           {"replace", part_replace},
    {"errors", part_errors},       {"attributes", part_attributes}, {"many", part_many},
    {"comms", part_comms},         {"threads", part_threads},       {"mpi", part_mpi},
    {"left_open", part_left_open},
};

int main(int argc, char **argv)
{
    int level;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int status = parts_run(parts, sizeof(parts) / sizeof(parts[0]), argc, argv);
    MPI_Finalize();
    return status;
}
