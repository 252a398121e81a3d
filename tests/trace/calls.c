/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An MPI program that uses what is hard to record: wildcards, any and some of many
 * requests, probes, persistent and cancelled requests, communicators of all kinds,
 * every collective, persistent ones if the MPI has them. It says on standard output what it did, so
 * that a recording can be held against it:
 *
 *     wild SOURCE TAG BYTES    rank 0 received that with wildcards, in this order
 *     any K SOURCE             the K-th that MPI_Waitany returned
 *     expected NAME COUNT ...  messages, bytes and collectives of all ranks
 */
#include <mpi.h>
#if defined(PERSISTENT_MPI)
#define PERSISTENT(name) MPI_##name
enum { IN_ORDER = 1, STARTS = 1 }; /* all that MPICH 4.0 does without failing */
#elif defined(PERSISTENT_MPIX)     /* before MPI 4 */
#include <mpi-ext.h>
#define PERSISTENT(name) MPIX_##name
enum { IN_ORDER = 0, STARTS = 3 };
#else
enum { STARTS = 0 };
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 64, ROOM = 4096 };

static int rank, ranks;
static long sent_messages, sent_bytes;
static char out[ROOM], in[ROOM];
static MPI_Request requests[MOST];

static void count(int bytes)
{
    sent_messages++;
    sent_bytes += bytes;
}

static void say(int bytes, int to, int tag, MPI_Comm comm)
{
    MPI_Send(out, bytes, MPI_BYTE, to, tag, comm);
    count(bytes);
}

/* ---- Wildcards ---- */

static void wildcards(void)
{
    MPI_Status s;
    for (int i = 0; i < 3; i++) {
        if (rank > 0) {
            say(8 * rank + i, 0, 10 + i, MPI_COMM_WORLD);
        }
    }
    for (int i = 0; rank == 0 && i < 3 * (ranks - 1); i++) {
        int bytes;
        MPI_Recv(in, ROOM, MPI_BYTE, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &s);
        MPI_Get_count(&s, MPI_BYTE, &bytes);
        printf("wild %d %d %d\n", s.MPI_SOURCE, s.MPI_TAG, bytes);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void any(void)
{
    MPI_Status s;
    if (rank > 0) {
        say(16, 0, 20, MPI_COMM_WORLD);
        MPI_Recv(in, ROOM, MPI_BYTE, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    for (int i = 0; i < ranks - 1; i++) {
        MPI_Irecv(in + 16 * i, 16, MPI_BYTE, MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &requests[i]);
    }
    for (int i = 0; i < ranks - 1; i++) {
        int which;
        MPI_Waitany(ranks - 1, requests, &which, &s);
        printf("any %d %d\n", i, s.MPI_SOURCE);
        say(4, s.MPI_SOURCE, 100 + i, MPI_COMM_WORLD);
    }
}

/* With MPI_Waitsome, MPI_Testsome, MPI_Testany or MPI_Testall until all have come. */
static void some(int way)
{
    int left = ranks - 1, done, which, flag, indices[MOST];
    MPI_Status statuses[MOST];
    if (rank > 0) {
        say(32, 0, 21 + way, MPI_COMM_WORLD);
        return;
    }
    for (int i = 0; i < left; i++) {
        MPI_Irecv(in + 32 * i, 32, MPI_BYTE, i + 1, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[i]);
    }
    while (left > 0) {
        switch (way) {
        case 0:
            MPI_Waitsome(ranks - 1, requests, &done, indices, statuses);
            left -= done;
            break;
        case 1:
            MPI_Testsome(ranks - 1, requests, &done, indices, MPI_STATUSES_IGNORE);
            left -= done;
            break;
        case 2:
            MPI_Testany(ranks - 1, requests, &which, &flag, MPI_STATUS_IGNORE);
            left -= flag;
            break;
        default:
            MPI_Testall(ranks - 1, requests, &flag, MPI_STATUSES_IGNORE);
            left = flag ? 0 : left;
        }
    }
}

static void probes(void)
{
    MPI_Status s;
    MPI_Message m;
    int flag = 0, bytes;
    if (rank > 0) {
        say(5, 0, 40, MPI_COMM_WORLD);
        say(6, 0, 41, MPI_COMM_WORLD);
        say(7, 0, 42, MPI_COMM_WORLD);
    }
    for (int i = 1; rank == 0 && i < ranks; i++) {
        MPI_Probe(MPI_ANY_SOURCE, 40, MPI_COMM_WORLD, &s);
        MPI_Get_count(&s, MPI_BYTE, &bytes);
        MPI_Recv(in, bytes, MPI_BYTE, s.MPI_SOURCE, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Mprobe(MPI_ANY_SOURCE, 41, MPI_COMM_WORLD, &m, &s);
        MPI_Mrecv(in, ROOM, MPI_BYTE, &m, &s);
        for (flag = 0; !flag;) {
            MPI_Improbe(MPI_ANY_SOURCE, 42, MPI_COMM_WORLD, &flag, &m, &s);
        }
        MPI_Imrecv(in, ROOM, MPI_BYTE, &m, &requests[0]);
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
}

/* ---- Requests of other kinds ---- */

static void persistent(void)
{
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, flag;
    MPI_Send_init(out, 12, MPI_BYTE, right, 50, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in, ROOM, MPI_BYTE, MPI_ANY_SOURCE, 50, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv_init(in, ROOM, MPI_BYTE, MPI_PROC_NULL, 50, MPI_COMM_WORLD, &requests[2]);
    for (int i = 0; i < 5; i++) {
        MPI_Startall(3, requests);
        MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
        MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE); /* not active: true at once */
        count(12);
    }
    MPI_Start(&requests[0]);
    count(12);
    MPI_Recv(in, ROOM, MPI_BYTE, left, 50, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    for (int i = 0; i < 3; i++) {
        MPI_Request_free(&requests[i]);
    }
}

static void odds(void)
{
    static char buffer[ROOM + MPI_BSEND_OVERHEAD];
    int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks, size;
    void *old;
    MPI_Irecv(in, 1, MPI_BYTE, rank, 999, MPI_COMM_WORLD, &requests[0]); /* nobody sends it */
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Buffer_attach(buffer, sizeof(buffer));
    MPI_Bsend(out, 100, MPI_BYTE, right, 60, MPI_COMM_WORLD);
    count(100);
    MPI_Ibsend(out, 50, MPI_BYTE, right, 61, MPI_COMM_WORLD, &requests[0]);
    count(50);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Recv(in, 100, MPI_BYTE, left, 60, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Recv(in, 50, MPI_BYTE, left, 61, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Buffer_detach(&old, &size);
    MPI_Isend(out, 3, MPI_BYTE, right, 62, MPI_COMM_WORLD, &requests[0]);
    count(3);
    MPI_Request_free(&requests[0]);
    MPI_Recv(in, 3, MPI_BYTE, left, 62, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(in, 9, MPI_BYTE, right, 63, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
    count(9);
    MPI_Send(out, 1, MPI_BYTE, MPI_PROC_NULL, 64, MPI_COMM_WORLD);
    MPI_Recv(in, 1, MPI_BYTE, MPI_PROC_NULL, 64, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Isend(out, 2, MPI_BYTE, rank, 65, MPI_COMM_WORLD, &requests[0]);
    count(2);
    MPI_Recv(in, 2, MPI_BYTE, rank, 65, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Issend(out, 2, MPI_BYTE, 0, 65, MPI_COMM_SELF, &requests[0]);
    count(2);
    MPI_Recv(in, 2, MPI_BYTE, MPI_ANY_SOURCE, 65, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
}

/* ---- Communicators ---- */

/* The tags of the world are used again, with other sizes. */
static void ring(MPI_Comm comm, int bytes)
{
    int self, size;
    MPI_Comm_rank(comm, &self);
    MPI_Comm_size(comm, &size);
    MPI_Irecv(in, bytes, MPI_BYTE, (self + size - 1) % size, 10, comm, &requests[0]);
    MPI_Isend(out, bytes, MPI_BYTE, (self + 1) % size, 10, comm, &requests[1]);
    count(bytes);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* The highest rank of a parity: the first of its half. */
static int highest(int parity)
{
    return (ranks - 1) % 2 == parity ? ranks - 1 : ranks - 2;
}

static void communicators(void)
{
    MPI_Comm half, copy, later, square, between;
    MPI_Group all, last;
    int sums[2], size, other;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
    ring(half, 200);
    MPI_Allreduce(&rank, sums, 1, MPI_INT, MPI_SUM, half);
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    ring(copy, 300);
    MPI_Comm_idup(copy, &later, &requests[5]);
    ring(copy, 301);
    MPI_Wait(&requests[5], MPI_STATUS_IGNORE);
    ring(later, 400);
    MPI_Barrier(later);
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, (int[]){ranks - 1}, &last);
    MPI_Comm_create(MPI_COMM_WORLD, last, &square);
    if (square != MPI_COMM_NULL) {
        MPI_Barrier(square);
        MPI_Comm_free(&square);
    }
    MPI_Group_free(&all);
    MPI_Group_free(&last);
    MPI_Cart_create(copy, 1, (int[]){ranks}, (int[]){1}, 0, &square);
    ring(square, 500);
    MPI_Neighbor_allgather(&rank, 1, MPI_INT, sums, 1, MPI_INT, square); /* not understood */
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, highest(1 - rank % 2), 7, &between);
    MPI_Comm_rank(half, &other);
    MPI_Comm_remote_size(between, &size);
    if (other == 0) {
        MPI_Irecv(in, 600, MPI_BYTE, MPI_ANY_SOURCE, 11, between, &requests[0]);
        say(600, size - 1, 10, between);
    }
    MPI_Comm_size(half, &size);
    if (other == size - 1) {
        MPI_Recv(in + 1000, 600, MPI_BYTE, 0, 10, between, MPI_STATUS_IGNORE);
        say(600, 0, 11, between);
    }
    if (other == 0) {
        MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&between);
    MPI_Comm_free(&square);
    MPI_Comm_free(&later);
    MPI_Comm_free(&copy);
    MPI_Comm_free(&half);
}

/* ---- Collectives ---- */

static void collectives(MPI_Comm w)
{
    int counts[MOST], at[MOST], back[MOST], back_at[MOST], total = 0, back_total = 0;
    MPI_Datatype types[MOST];
    for (int i = 0; i < ranks; i++) {
        counts[i] = 3 * i + 1;
        at[i] = total;
        total += counts[i];
        back[i] = 3 * rank + 1;
        back_at[i] = back_total;
        back_total += back[i];
        types[i] = MPI_BYTE;
    }
    int self = counts[rank], root = ranks - 1;
    MPI_Bcast(out, 64, MPI_BYTE, root, w);
    MPI_Reduce(out, in, 16, MPI_INT, MPI_SUM, root, w);
    MPI_Allreduce(MPI_IN_PLACE, in, 32, MPI_INT, MPI_MAX, w);
    MPI_Gather(out, 8, MPI_BYTE, in, 8, MPI_BYTE, root, w);
    MPI_Scatter(out, 8, MPI_BYTE, in, 8, MPI_BYTE, root, w);
    MPI_Allgather(out, 8, MPI_BYTE, in, 8, MPI_BYTE, w);
    MPI_Alltoall(out, 8, MPI_BYTE, in, 8, MPI_BYTE, w);
    MPI_Scan(out, in, 4, MPI_INT, MPI_SUM, w);
    MPI_Exscan(out, in, 4, MPI_INT, MPI_SUM, w);
    MPI_Reduce_scatter_block(out, in, 2, MPI_INT, MPI_SUM, w);
    MPI_Reduce_scatter(out, in, counts, MPI_INT, MPI_SUM, w);
    MPI_Gatherv(out, self, MPI_BYTE, in, counts, at, MPI_BYTE, root, w);
    MPI_Scatterv(out, counts, at, MPI_BYTE, in, self, MPI_BYTE, root, w);
    MPI_Allgatherv(out, self, MPI_BYTE, in, counts, at, MPI_BYTE, w);
    MPI_Alltoallv(out, counts, at, MPI_BYTE, in, back, back_at, MPI_BYTE, w);
    MPI_Alltoallw(out, counts, at, types, in, back, back_at, types, w);
}

static void nonblocking(MPI_Comm w)
{
    static char more[4][ROOM];
    MPI_Ibcast(more[0], 1000, MPI_BYTE, 0, w, &requests[0]);
    MPI_Iallreduce(out, more[1], 10, MPI_INT, MPI_SUM, w, &requests[1]);
    MPI_Ialltoall(out, 4, MPI_BYTE, more[2], 4, MPI_BYTE, w, &requests[2]);
    MPI_Igather(out, 4, MPI_BYTE, more[3], 4, MPI_BYTE, 0, w, &requests[3]);
    MPI_Ibarrier(w, &requests[4]);
    MPI_Wait(&requests[4], MPI_STATUS_IGNORE);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
}

/* Persistent ones: made in one order and, if the MPI does that, started in another, which differs
 * from rank to rank. */
#ifdef PERSISTENT
enum { PERSISTENTS = 17 };

static void persistent_collectives(MPI_Comm w)
{
    static char more[PERSISTENTS][ROOM];
    static int counts[MOST], at[MOST], back[MOST], back_at[MOST]; /* may be read until the end */
    static MPI_Datatype types[MOST];
    MPI_Request never, *r = requests;
    MPI_Info none = MPI_INFO_NULL;
    for (int i = 0; i < ranks; i++) {
        counts[i] = i + 2;
        at[i] = i * (i + 3) / 2;
        back[i] = rank + 2;
        back_at[i] = i * (rank + 2);
        types[i] = MPI_BYTE;
    }
    int self = counts[rank], root = ranks - 1;
    PERSISTENT(Barrier_init)(w, none, &r[0]);
    PERSISTENT(Bcast_init)(more[1], 70, MPI_BYTE, root, w, none, &r[1]);
    PERSISTENT(Reduce_init)(out, more[2], 12, MPI_INT, MPI_SUM, root, w, none, &r[2]);
    PERSISTENT(Allreduce_init)(out, more[3], 14, MPI_INT, MPI_SUM, w, none, &r[3]);
    PERSISTENT(Bcast_init)(more[1], 5, MPI_BYTE, 0, w, none, &never);
    PERSISTENT(Gather_init)(out, 6, MPI_BYTE, more[4], 6, MPI_BYTE, root, w, none, &r[4]);
    PERSISTENT(Scatter_init)(out, 7, MPI_BYTE, more[5], 7, MPI_BYTE, root, w, none, &r[5]);
    PERSISTENT(Allgather_init)(out, 8, MPI_BYTE, more[6], 8, MPI_BYTE, w, none, &r[6]);
    PERSISTENT(Alltoall_init)(out, 9, MPI_BYTE, more[7], 9, MPI_BYTE, w, none, &r[7]);
    PERSISTENT(Scan_init)(out, more[8], 5, MPI_INT, MPI_SUM, w, none, &r[8]);
    PERSISTENT(Exscan_init)(out, more[9], 5, MPI_INT, MPI_SUM, w, none, &r[9]);
    PERSISTENT(Reduce_scatter_block_init)(out, more[10], 3, MPI_INT, MPI_SUM, w, none, &r[10]);
    PERSISTENT(Reduce_scatter_init)(out, more[11], counts, MPI_INT, MPI_SUM, w, none, &r[11]);
    PERSISTENT(Gatherv_init)
    (out, self, MPI_BYTE, more[12], counts, at, MPI_BYTE, root, w, none, &r[12]);
    PERSISTENT(Scatterv_init)
    (out, counts, at, MPI_BYTE, more[13], self, MPI_BYTE, root, w, none, &r[13]);
    PERSISTENT(Allgatherv_init)
    (out, self, MPI_BYTE, more[14], counts, at, MPI_BYTE, w, none, &r[14]);
    PERSISTENT(Alltoallv_init)
    (out, counts, at, MPI_BYTE, more[15], back, back_at, MPI_BYTE, w, none, &r[15]);
    PERSISTENT(Alltoallw_init)
    (out, counts, at, types, more[16], back, back_at, types, w, none, &r[16]);
    for (int start = 0; start < STARTS; start++) {
        for (int i = 0; i < PERSISTENTS; i++) {
            MPI_Start(&r[rank % 2 == 0 || IN_ORDER ? i : PERSISTENTS - 1 - i]);
        }
        MPI_Waitall(PERSISTENTS, r, MPI_STATUSES_IGNORE);
    }
    for (int i = 0; i < PERSISTENTS; i++) {
        MPI_Request_free(&r[i]);
    }
    MPI_Request_free(&never);
}
#else
static void persistent_collectives(MPI_Comm w)
{
    (void)w;
}
#endif

int main(int argc, char **argv)
{
    int level;
    long mine[2], all[2];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 1) {
        MPI_Barrier(MPI_COMM_WORLD); /* who aborts must not end those that have not begun */
    }
    if (ranks < 2 || ranks > MOST || (argc > 1 && strcmp(argv[1], "abort") == 0 && rank == 0)) {
        MPI_Recv(in, 0, MPI_BYTE, ranks > 1 ? 1 : MPI_PROC_NULL, 1, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
        fprintf(stderr, "calls: 2 to %d ranks, and no \"abort\"\n", MOST);
        MPI_Abort(MPI_COMM_WORLD, 3);
    }
    if (argc > 1) { /* rank 0 aborts while the others wait for it */
        if (rank == 1) {
            MPI_Send(out, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
        MPI_Recv(in, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    wildcards();
    any();
    for (int way = 0; way < 4; way++) {
        some(way);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    probes();
    persistent();
    MPI_Barrier(MPI_COMM_WORLD);
    odds();
    communicators();
    collectives(MPI_COMM_WORLD);
    nonblocking(MPI_COMM_WORLD);
    persistent_collectives(MPI_COMM_WORLD);
    mine[0] = sent_messages;
    mine[1] = sent_bytes;
    MPI_Reduce(mine, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        int s = STARTS;
        printf("expected messages %ld bytes %ld barrier %d bcast %d reduce %d allreduce %d "
               "gather %d scatter %d allgather %d alltoall %d scan %d exscan %d "
               "reduce_scatter_block %d reduce_scatter %d gatherv %d scatterv %d allgatherv %d "
               "alltoallv %d\n",
               all[0], all[1], 9 + s, 2 + s, 2 + s, 4 + s, 2 + s, 1 + s, 1 + s, 2 + s, 1 + s, 1 + s,
               1 + s, 1 + s, 1 + s, 1 + s, 1 + s, 2 + 2 * s);
    }
    MPI_Finalize();
    return 0;
}
