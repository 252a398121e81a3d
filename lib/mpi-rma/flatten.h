/* SPDX-License-Identifier: BSD-3-Clause */
/* Derived datatypes, taken apart by MPI_Type_get_envelope and MPI_Type_get_contents. */
#ifndef MPI_RMA_FLATTEN_H
#define MPI_RMA_FLATTEN_H

#include "types.h"

/* A class of errors of MPI. */
int type_flatten(MPI_Datatype datatype, struct type **type);

/* type_basic() makes one of one block, or NULL. */
struct type *type_basic(unsigned class, enum pw_rma_type basic, size_t size);

#endif
