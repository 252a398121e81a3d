/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datatypes as blocks of memory. A predefined one is in a table; a derived one is taken apart once,
 * and what comes out is kept as an attribute of the datatype, which the MPI deletes with it.
 */
#ifndef MPI_RMA_TYPES_H
#define MPI_RMA_TYPES_H

#include "window.h"

/* Which operations a basic type has. */
enum type_class {
    CLASS_INTEGER = 1,
    CLASS_REAL = 2,
    CLASS_COMPLEX = 4,
    CLASS_LOGICAL = 8,
    CLASS_BYTE = 16,
    CLASS_PAIR = 32,
    CLASS_OTHER = 64, /* stored and fetched only */
    CLASS_MIXED = 128 /* of a derived type: of several basic ones */
};

struct type_block {
    MPI_Aint at;
    size_t length;
};

struct type {
    _Atomic unsigned users;
    bool lasts; /* a predefined one's, which nobody counts */
    unsigned class;
    enum pw_rma_type basic;
    size_t element; /* bytes of the basic type */
    size_t size;    /* of all blocks together */
    MPI_Aint extent;
    MPI_Aint low, high; /* the bytes of an element that are used, from the first to the last */
    bool plain;         /* elements behind each other are one block */
    size_t count;
    struct type_block blocks[];
};

/* type_of() gives a datatype's blocks, for type_drop(); MPI_ERR_TYPE, MPI_ERR_NO_MEM. */
int type_of(MPI_Datatype datatype, const struct type **type);

/* type_known() gives a predefined one, or NULL. */
struct type *type_known(MPI_Datatype datatype);
void type_drop(const struct type *type);

/* A walk over the blocks of many elements. */
struct walk {
    const struct type *type;
    uint64_t base; /* address or offset of the first element */
    size_t element, block, done;
};

/* walk_left() gives where the walk is and how many bytes go on from there; walk_on() leaves some of
 * them behind. */
static inline size_t walk_left(const struct walk *w, size_t most, uint64_t *at)
{
    const struct type *t = w->type;
    if (t->plain) {
        *at = w->base + w->done;
        return most;
    }
    const struct type_block *b = &t->blocks[w->block];
    *at = w->base + (uint64_t)((MPI_Aint)w->element * t->extent + b->at) + w->done;
    return b->length - w->done < most ? b->length - w->done : most;
}

static inline void walk_on(struct walk *w, size_t bytes)
{
    w->done += bytes;
    if (!w->type->plain && w->done == w->type->blocks[w->block].length) {
        w->done = 0;
        if (++w->block == w->type->count) {
            w->block = 0;
            w->element++;
        }
    }
}

#endif
