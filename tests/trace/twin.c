/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What twin.F90 does, in the same order: their recordings must have the same lines.
 * With LARGE the calls that have counts are those of MPI 4 that end in _c.
 *
 * Each call has one outcome, whatever the order of messages: who waits for any of
 * them waits while one is on its way. Values and statuses are checked, so that a
 * recorder that changes them is found out.
 */
#include <mpi.h>
#include <stdio.h>

#ifdef LARGE
typedef MPI_Count count;
typedef MPI_Aint place;
#define CALL(name) MPI_##name##_c
#else
typedef int count;
typedef int place;
#define CALL(name) MPI_##name
#endif

enum { ROOM = 64, MOST = 16 };

static int rank, ranks, next, before;
static double out[ROOM], in[ROOM];

static void check(int holds, int what)
{
    if (!holds) {
        fprintf(stderr, "twin: rank %d: check %d fails\n", rank, what);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
}

static void check_status(const MPI_Status *s, int source, int tag, int doubles, int what)
{
    int got;
    MPI_Get_count(s, MPI_DOUBLE, &got);
    check(s->MPI_SOURCE == source && s->MPI_TAG == tag && got == doubles, what);
}

static void messages(void)
{
    MPI_Request r[2];
    MPI_Status s;
    CALL(Irecv)(in, 5, MPI_DOUBLE, before, 1, MPI_COMM_WORLD, &r[0]);
    CALL(Isend)(out, 5, MPI_DOUBLE, next, 1, MPI_COMM_WORLD, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    check(r[0] == MPI_REQUEST_NULL && in[4] == before + 5, 1);
    CALL(Sendrecv)
    (out, 6, MPI_DOUBLE, next, 2, in, 8, MPI_DOUBLE, before, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
    check_status(&s, before, 2, 6, 2);
    in[0] = rank;
    CALL(Sendrecv_replace)
    (in, 1, MPI_DOUBLE, next, 3, before, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    check(in[0] == before, 3);
    CALL(Send)(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 4, MPI_COMM_WORLD);
    for (int p = 1; p < ranks; p++) { /* a wildcard, and one message that it can get */
        if (rank == 0) {
            CALL(Ssend)(out, 0, MPI_DOUBLE, p, 5, MPI_COMM_WORLD);
            CALL(Recv)(in, ROOM, MPI_DOUBLE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
            check_status(&s, p, 100 + p, p + 1, 4);
        } else if (rank == p) {
            CALL(Recv)(in, 1, MPI_DOUBLE, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            CALL(Send)(out, p + 1, MPI_DOUBLE, 0, 100 + p, MPI_COMM_WORLD);
        }
    }
}

static void completions(void)
{
    MPI_Request r[2];
    MPI_Status s, both[2];
    int index, done, indices[2], flag = 0;
    for (int round = 0; round < 2; round++) { /* the second one's message comes first */
        CALL(Irecv)(in, 8, MPI_DOUBLE, before, 11, MPI_COMM_WORLD, &r[0]);
        CALL(Irecv)(&in[8], 8, MPI_DOUBLE, before, 12, MPI_COMM_WORLD, &r[1]);
        CALL(Send)(out, 2, MPI_DOUBLE, next, 12, MPI_COMM_WORLD);
        if (round == 0) {
            MPI_Waitany(2, r, &index, &s);
            check(index == 1, 11);
        } else {
            MPI_Waitsome(2, r, &done, indices, both);
            check(done == 1 && indices[0] == 1, 12);
            s = both[0];
        }
        check_status(&s, before, 12, 2, 13);
        CALL(Send)(out, 0, MPI_DOUBLE, before, 10, MPI_COMM_WORLD); /* now the first one's */
        CALL(Recv)(in, 0, MPI_DOUBLE, next, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CALL(Send)(out, 3, MPI_DOUBLE, next, 11, MPI_COMM_WORLD);
        MPI_Waitany(2, r, &index, MPI_STATUS_IGNORE);
        check(index == 0, 14);
    }
    CALL(Irecv)(in, 8, MPI_DOUBLE, before, 13, MPI_COMM_WORLD, &r[0]);
    CALL(Isend)(out, 8, MPI_DOUBLE, next, 13, MPI_COMM_WORLD, &r[1]);
    while (!flag) {
        MPI_Testall(2, r, &flag, both);
    }
    check_status(&both[0], before, 13, 8, 15);
    CALL(Recv_init)(in, 4, MPI_DOUBLE, before, 14, MPI_COMM_WORLD, &r[0]);
    CALL(Send_init)(out, 4, MPI_DOUBLE, next, 14, MPI_COMM_WORLD, &r[1]);
    for (int round = 0; round < 3; round++) {
        MPI_Startall(2, r);
        MPI_Waitall(2, r, both);
        check_status(&both[0], before, 14, 4, 16);
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
    CALL(Irecv)(in, 4, MPI_DOUBLE, before, 15, MPI_COMM_WORLD, &r[0]); /* never sent */
    MPI_Cancel(&r[0]);
    MPI_Wait(&r[0], &s);
    MPI_Test_cancelled(&s, &flag);
    check(flag, 17);
}

static void probes(void)
{
    MPI_Status s;
    MPI_Message m;
    MPI_Request r;
    int flag = 0;
    CALL(Isend)(out, 3, MPI_DOUBLE, next, 21, MPI_COMM_WORLD, &r);
    while (!flag) {
        MPI_Iprobe(before, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &s);
    }
    check_status(&s, before, 21, 3, 21);
    CALL(Recv)(in, 3, MPI_DOUBLE, before, 21, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CALL(Isend)(out, 4, MPI_DOUBLE, next, 22, MPI_COMM_WORLD, &r);
    MPI_Mprobe(before, MPI_ANY_TAG, MPI_COMM_WORLD, &m, &s);
    CALL(Mrecv)(in, 4, MPI_DOUBLE, &m, MPI_STATUS_IGNORE);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    check(in[3] == before + 4, 22);
}

/* A message whose place is in its type. */
static void bottom(void)
{
    MPI_Aint at;
    MPI_Datatype type;
    MPI_Get_address(out, &at);
    MPI_Type_create_hindexed(1, (int[]){3}, &at, MPI_DOUBLE, &type);
    MPI_Type_commit(&type);
    CALL(Sendrecv)
    (MPI_BOTTOM, 1, type, next, 31, in, 3, MPI_DOUBLE, before, 31, MPI_COMM_WORLD,
     MPI_STATUS_IGNORE);
    check(in[2] == before + 3, 31);
    MPI_Type_free(&type);
}

static void collectives(void)
{
    count counts[MOST], others[MOST];
    place at[MOST], others_at[MOST];
    MPI_Request r;
    in[0] = 7;
    CALL(Bcast)(in, 3, MPI_DOUBLE, ranks - 1, MPI_COMM_WORLD);
    in[0] = 1;
    CALL(Allreduce)(MPI_IN_PLACE, in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    check(in[0] == ranks, 41);
    in[0] = 1;
    CALL(Reduce)
    (rank == 0 ? MPI_IN_PLACE : in, rank == 0 ? in : NULL, 1, MPI_DOUBLE, MPI_SUM, 0,
     MPI_COMM_WORLD);
    check(rank != 0 || in[0] == ranks, 42);
    CALL(Scan)(out, in, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    CALL(Allgather)(out, 2, MPI_DOUBLE, in, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    check(in[2 * next] == next + 1, 43);
    CALL(Alltoall)(out, 1, MPI_DOUBLE, in, 1, MPI_DOUBLE, MPI_COMM_WORLD);
    for (int p = 0; p < ranks; p++) {
        counts[p] = p + 1;
        at[p] = p * (p + 1) / 2;
        others[p] = rank + 1;
        others_at[p] = p * (rank + 1);
    }
    CALL(Gatherv)
    (out, rank + 1, MPI_DOUBLE, in, counts, at, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    check(rank != 0 || in[at[next]] == next + 1, 44);
    CALL(Scatterv)
    (out, counts, at, MPI_DOUBLE, in, rank + 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    check(in[rank] == at[rank] + rank + 1, 45); /* of rank 0 */
    CALL(Alltoallv)
    (out, counts, at, MPI_DOUBLE, in, others, others_at, MPI_DOUBLE, MPI_COMM_WORLD);
    CALL(Reduce_scatter)(out, in, counts, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    CALL(Ibcast)(in, 9, MPI_DOUBLE, 0, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    CALL(Iallgatherv)
    (out, rank + 1, MPI_DOUBLE, in, counts, at, MPI_DOUBLE, MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    MPI_Ibarrier(MPI_COMM_WORLD, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
}

static void use(MPI_Comm comm)
{
    int here, size;
    MPI_Comm_rank(comm, &here);
    MPI_Comm_size(comm, &size);
    CALL(Sendrecv)
    (out, 2, MPI_DOUBLE, (here + 1) % size, 51, in, 2, MPI_DOUBLE, (here + size - 1) % size, 51,
     comm, MPI_STATUS_IGNORE);
    MPI_Barrier(comm);
    MPI_Comm_free(&comm);
}

static void communicators(void)
{
    MPI_Comm made;
    MPI_Request r;
    MPI_Group group;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &made);
    use(made);
    MPI_Comm_dup(MPI_COMM_WORLD, &made);
    use(made);
    MPI_Comm_idup(MPI_COMM_WORLD, &made, &r);
    MPI_Wait(&r, MPI_STATUS_IGNORE);
    use(made);
    MPI_Cart_create(MPI_COMM_WORLD, 1, (int[]){ranks}, (int[]){1}, 0, &made);
    use(made);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &made);
    use(made);
    MPI_Group_free(&group);
}

int main(void)
{
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    check(ranks > 1 && ranks * (ranks + 1) / 2 <= ROOM && ranks <= MOST, 0);
    next = (rank + 1) % ranks;
    before = (rank + ranks - 1) % ranks;
    for (int i = 0; i < ROOM; i++) {
        out[i] = rank + i + 1;
    }
    messages();
    completions();
    probes();
    bottom();
    collectives();
    communicators();
    MPI_Finalize();
    return 0;
}
