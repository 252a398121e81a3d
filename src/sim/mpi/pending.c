/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of pending requests; see pending.h. */
#include "pending.h"

#include "base/hash.h"

#include <stdlib.h>

struct mpi_pending {
    UT_hash_handle hh;
    uint64_t address;
    int64_t number; /* the request's number; -1: it has completed */
};

static struct mpi_pending *find(struct mpi_pending *table, uint64_t address)
{
    struct mpi_pending *p;
    HASH_FIND(hh, table, &address, sizeof(address), p);
    return p;
}

bool mpi_pending_begin(struct mpi_pending **table, struct mpi_rank *r, uint64_t address,
                       int64_t *request)
{
    struct mpi_pending *p = find(*table, address);
    if (p == NULL) {
        p = calloc(1, sizeof(*p));
        if (p == NULL) {
            return false;
        }
        p->address = address;
        HASH_ADD(hh, *table, address, sizeof(address), p);
        if (!hash_added(p)) {
            free(p);
            return false;
        }
    }
    p->number = (int64_t)r->requests++;
    *request = p->number;
    return true;
}

static uint64_t count_found(struct mpi_pending *table, uint64_t at, uint64_t count, uint64_t step)
{
    uint64_t found = 0;
    for (uint64_t i = 0; i < count; i++) {
        const struct mpi_pending *p = find(table, at + i * step);
        found += p != NULL && p->number >= 0;
    }
    return found;
}

bool mpi_pending_complete(struct mpi_pending **table, struct mpi_rank *r, uint64_t address,
                          uint64_t count)
{
    uint64_t step =
        count_found(*table, address, count, 8) >= count_found(*table, address, count, 4) ? 8 : 4;
    bool ok = true;
    for (uint64_t i = 0; i < count && ok; i++) {
        struct mpi_pending *p = find(*table, address + i * step);
        if (p != NULL && p->number >= 0) { /* else the program had MPI_REQUEST_NULL there */
            /* A completion has four numbers: request, source, tag, bytes. The source is unknown: it
             * stays the one that the receive asked for. */
            ok = mpi_add_number(r, p->number) && mpi_add_number(r, MPI_ANY) &&
                 mpi_add_number(r, MPI_ANY) && mpi_add_number(r, 0);
            p->number = -1;
        }
    }
    return ok;
}

void mpi_pending_free(struct mpi_pending **table)
{
    struct mpi_pending *p, *next;
    HASH_ITER(hh, *table, p, next)
    {
        HASH_DEL(*table, p);
        free(p);
    }
}
