/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * foMPI's names for notified access: what a program written for foMPI-NA does, a ring of puts with
 * tags, counts, wildcards and gets, by names of fompi.h only once its window is there.
 */
#include "region.h"

#include "fompi.h"

enum { RANKS = 3, WORDS = 512 };

static int memory[WORDS];

struct window {
    struct ends e;
    struct pw_rma_region *region;
    struct pw_rma_key *keys[RANKS];
    struct fompi_window is;
};

static void window_open(struct window *w, int rank, int size)
{
    ends_open(&w->e, KIND_ML, rank, size);
    w->region =
        region_of(w->e.rma, memory, sizeof(memory), PW_RMA_READ | PW_RMA_WRITE | PW_RMA_NOTIFY);
    key_show(w->region);
    BARRIER();
    for (int r = 0; r < size; r++) {
        w->keys[r] = key_of(w->e.rma, r);
    }
    w->is = (struct fompi_window){w->region, w->keys, size, sizeof(int)};
}

static void window_close(struct window *w)
{
    BARRIER();
    for (int r = 0; r < w->is.ranks; r++) {
        pw_rma_key_close(w->keys[r]);
    }
    BARRIER();
    region_end(w->region);
    ends_close(&w->e);
}

PTEST(ring, RANKS)
{
    struct window w;
    foMPI_Request request, once;
    foMPI_Status status = {0};
    int flag, mine[4] = {rank, 10 + rank, 20 + rank, 30 + rank}, back[4] = {0};
    int next = (rank + 1) % size, previous = (rank + size - 1) % size;
    window_open(&w, rank, size);
    foMPI_Win win = &w.is;

    CHECK_EQ(foMPI_Notify_init(win, previous, 7, 2, &request), foMPI_SUCCESS);
    CHECK_EQ(foMPI_Start(&request), foMPI_SUCCESS);
    CHECK_EQ(foMPI_Test(&request, &flag, &status), foMPI_SUCCESS);
    BARRIER();
    CHECK_EQ(foMPI_Put_notify(mine, 4, foMPI_INT, next, 8, 16, foMPI_BYTE, win, 7), 0);
    CHECK_EQ(foMPI_Put_notify(mine, 4, foMPI_INT, next, 100, 4, foMPI_INT, win, foMPI_ANY_TAG), 0);
    CHECK_EQ(foMPI_Win_flush(next, win), 0);
    CHECK_EQ(foMPI_Rput_notify(mine, 4, foMPI_INT, next, 12, 4, foMPI_INT, win, 7, &once), 0);
    CHECK_EQ(foMPI_Wait(&once, foMPI_STATUS_IGNORE), 0);
    CHECK(once == foMPI_REQUEST_NULL);
    CHECK_EQ(foMPI_Wait(&request, &status), 0);
    CHECK_EQ(status.MPI_SOURCE, previous);
    CHECK_EQ(status.MPI_TAG, 7);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(memory[8 + i], 10 * i + previous);
        CHECK_EQ(memory[12 + i], 10 * i + previous);
        CHECK_EQ(memory[100 + i], 10 * i + previous);
    }
    CHECK_EQ(foMPI_Request_free(&request), 0);

    /* from anybody, with any tag; a get, whose request is asked until it is over */
    CHECK_EQ(foMPI_Notify_init(win, foMPI_ANY_SOURCE, foMPI_ANY_TAG, 1, &request), 0);
    CHECK_EQ(foMPI_Start(&request), 0);
    CHECK_EQ(foMPI_Rget_notify(back, 4, foMPI_INT, next, 8, 4, foMPI_INT, win, 99, &once), 0);
    do {
        CHECK_EQ(foMPI_Test(&once, &flag, foMPI_STATUS_IGNORE), 0);
    } while (!flag);
    CHECK_EQ(foMPI_Wait(&request, &status), 0);
    CHECK_EQ(status.MPI_SOURCE, previous);
    CHECK_EQ(status.MPI_TAG, 99);
    CHECK_EQ(back[3], 30 + rank);
    CHECK_EQ(foMPI_Request_free(&request), 0);
    window_close(&w);
}

PTEST(refused, 1)
{
    struct window w;
    foMPI_Request request;
    int word = 0;
    window_open(&w, rank, size);
    foMPI_Win win = &w.is;
    CHECK_EQ(foMPI_Notify_init(win, 1, 0, 1, &request), EINVAL);
    CHECK_EQ(foMPI_Notify_init(win, -2, 0, 1, &request), EINVAL);
    CHECK_EQ(foMPI_Notify_init(win, 0, FOMPI_TAG_MAX + 1, 1, &request), EINVAL);
    CHECK_EQ(foMPI_Notify_init(win, 0, -1, 1, &request), EINVAL);
    CHECK_EQ(foMPI_Notify_init(win, 0, 0, 0, &request), EINVAL);
    CHECK(request == foMPI_REQUEST_NULL);
    CHECK_EQ(foMPI_Put_notify(&word, 1, foMPI_INT, 1, 0, 1, foMPI_INT, win, 0), EINVAL);
    CHECK_EQ(foMPI_Put_notify(&word, 1, foMPI_INT, 0, -1, 1, foMPI_INT, win, 0), EINVAL);
    CHECK_EQ(foMPI_Put_notify(&word, 1, foMPI_INT, 0, WORDS, 1, foMPI_INT, win, 0), EINVAL);
    CHECK_EQ(foMPI_Put_notify(&word, 1, foMPI_INT, 0, 0, 2, foMPI_INT, win, 0), EINVAL);
    CHECK_EQ(foMPI_Get_notify(&word, -1, foMPI_INT, 0, 0, -1, foMPI_INT, win, 0), EINVAL);
    CHECK_EQ(foMPI_Get_notify(&word, 1, foMPI_INT, 0, 0, 1, foMPI_INT, win, -1), EINVAL);
    CHECK_EQ(foMPI_Win_flush(1, win), EINVAL);
    window_close(&w);
}
