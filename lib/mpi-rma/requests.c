/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of MPI for operations of ours: generalized requests. Somebody must say when one is over,
 * so the calls of MPI that wait or test look at those that are pending, and do not wait inside the
 * MPI while there are some.
 */
#include "move.h"

#include <stdlib.h>

static struct pending *pending;
static _Atomic unsigned pending_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int query(void *state, MPI_Status *status)
{
    struct pending *p = state;
    PMPI_Status_set_elements(status, MPI_BYTE, 0);
    PMPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    return p != NULL ? p->class : MPI_SUCCESS;
}

static int release(void *state)
{
    free(state);
    return MPI_SUCCESS;
}

static int cancel(void *state, int complete)
{
    (void)state, (void)complete;
    return MPI_SUCCESS; /* it goes on: one-sided operations cannot be cancelled */
}

struct pending *request_make(void)
{
    return calloc(1, sizeof(struct pending));
}

int request_over(struct pending *p, MPI_Request *request)
{
    int rc = PMPI_Grequest_start(query, release, cancel, p, request);
    return rc == MPI_SUCCESS ? PMPI_Grequest_complete(*request) : rc;
}

int request_begun(struct pending *p, MPI_Request *request)
{
    int rc = PMPI_Grequest_start(query, release, cancel, p, request);
    if (rc != MPI_SUCCESS) {
        pw_rma_wait(&p->request);
        free(p);
        return rc;
    }
    p->handle = *request;
    pthread_mutex_lock(&lock);
    p->next = pending;
    pending = p;
    atomic_fetch_add(&pending_count, 1);
    pthread_mutex_unlock(&lock);
    return MPI_SUCCESS;
}

/* Completes what is over. */
static void look(void)
{
    pthread_mutex_lock(&lock);
    for (struct pending **at = &pending; *at != NULL;) {
        struct pending *p = *at;
        bool over = false;
        int rc = pw_rma_test(&p->request, &over);
        if (over) {
            *at = p->next;
            atomic_fetch_sub(&pending_count, 1);
            p->class = class_of(rc);
            PMPI_Grequest_complete(p->handle);
        } else {
            at = &p->next;
        }
    }
    pthread_mutex_unlock(&lock);
}

static bool any(void)
{
    return atomic_load_explicit(&pending_count, memory_order_acquire) != 0;
}

/* Before a call that tests. */
static void look_if_any(void)
{
    if (any()) {
        look();
    }
}

/* A call that waits: `wait` of the MPI if none of ours is pending, or else `test` again and again
 * until `done`. */
#define WAIT(wait, test, done)                                                                     \
    struct idle idle = {0};                                                                        \
    int rc, flag = 0;                                                                              \
    if (!any()) {                                                                                  \
        return wait;                                                                               \
    }                                                                                              \
    for (;;) {                                                                                     \
        look();                                                                                    \
        rc = test;                                                                                 \
        if (rc != MPI_SUCCESS || (done)) {                                                         \
            return rc;                                                                             \
        }                                                                                          \
        job_idle(&idle);                                                                           \
    }

int PMPI_Wait(MPI_Request *request, MPI_Status *status){
    WAIT(real.Wait(request, status), real.Test(request, &flag, status), flag)} ALSO_MPI(Wait);

int PMPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]){
    WAIT(real.Waitall(count, requests, statuses), real.Testall(count, requests, &flag, statuses),
         flag)} ALSO_MPI(Waitall);

int PMPI_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status){
    WAIT(real.Waitany(count, requests, index, status),
         real.Testany(count, requests, index, &flag, status), flag)} ALSO_MPI(Waitany);

int PMPI_Waitsome(int count, MPI_Request requests[], int *done, int indices[],
                  MPI_Status statuses[]){
    WAIT(real.Waitsome(count, requests, done, indices, statuses),
         real.Testsome(count, requests, done, indices, statuses),
         (flag = *done) != 0)} ALSO_MPI(Waitsome);

int PMPI_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    look_if_any();
    return real.Test(request, flag, status);
}
ALSO_MPI(Test);

int PMPI_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    look_if_any();
    return real.Testall(count, requests, flag, statuses);
}
ALSO_MPI(Testall);

int PMPI_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    look_if_any();
    return real.Testany(count, requests, index, flag, status);
}
ALSO_MPI(Testany);

int PMPI_Testsome(int count, MPI_Request requests[], int *done, int indices[],
                  MPI_Status statuses[])
{
    look_if_any();
    return real.Testsome(count, requests, done, indices, statuses);
}
ALSO_MPI(Testsome);

int PMPI_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    look_if_any();
    return real.Request_get_status(request, flag, status);
}
ALSO_MPI(Request_get_status);
