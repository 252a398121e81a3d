/* SPDX-License-Identifier: BSD-3-Clause */
/* Predefined datatypes, and what is kept of derived ones (flatten.c takes them apart). */
#include "flatten.h"

#include <stdlib.h>

struct predefined {
    MPI_Datatype datatype;
    unsigned class;
    enum pw_rma_type basic;
};

/* A type of Fortran or of C++ has the same bytes as one of C. */
static const struct predefined known[] = {
    {MPI_CHAR, CLASS_INTEGER, PW_RMA_INT8},
    {MPI_SIGNED_CHAR, CLASS_INTEGER, PW_RMA_INT8},
    {MPI_UNSIGNED_CHAR, CLASS_INTEGER, PW_RMA_UINT8},
    {MPI_BYTE, CLASS_BYTE, PW_RMA_UINT8},
    {MPI_PACKED, CLASS_OTHER, PW_RMA_UINT8},
    {MPI_CHARACTER, CLASS_OTHER, PW_RMA_UINT8},
    {MPI_WCHAR, CLASS_OTHER, PW_RMA_INT32},
    {MPI_SHORT, CLASS_INTEGER, PW_RMA_INT16},
    {MPI_UNSIGNED_SHORT, CLASS_INTEGER, PW_RMA_UINT16},
    {MPI_INT, CLASS_INTEGER, PW_RMA_INT32},
    {MPI_UNSIGNED, CLASS_INTEGER, PW_RMA_UINT32},
    {MPI_LONG, CLASS_INTEGER, PW_RMA_INT64},
    {MPI_UNSIGNED_LONG, CLASS_INTEGER, PW_RMA_UINT64},
    {MPI_LONG_LONG, CLASS_INTEGER, PW_RMA_INT64},
    {MPI_UNSIGNED_LONG_LONG, CLASS_INTEGER, PW_RMA_UINT64},
    {MPI_INT8_T, CLASS_INTEGER, PW_RMA_INT8},
    {MPI_UINT8_T, CLASS_INTEGER, PW_RMA_UINT8},
    {MPI_INT16_T, CLASS_INTEGER, PW_RMA_INT16},
    {MPI_UINT16_T, CLASS_INTEGER, PW_RMA_UINT16},
    {MPI_INT32_T, CLASS_INTEGER, PW_RMA_INT32},
    {MPI_UINT32_T, CLASS_INTEGER, PW_RMA_UINT32},
    {MPI_INT64_T, CLASS_INTEGER, PW_RMA_INT64},
    {MPI_UINT64_T, CLASS_INTEGER, PW_RMA_UINT64},
    {MPI_AINT, CLASS_INTEGER, PW_RMA_INT64},
    {MPI_OFFSET, CLASS_INTEGER, PW_RMA_INT64},
    {MPI_COUNT, CLASS_INTEGER, PW_RMA_INT64},
    {MPI_FLOAT, CLASS_REAL, PW_RMA_FLOAT},
    {MPI_DOUBLE, CLASS_REAL, PW_RMA_DOUBLE},
    {MPI_LONG_DOUBLE, CLASS_REAL, PW_RMA_LONG_DOUBLE},
    {MPI_C_BOOL, CLASS_LOGICAL, PW_RMA_UINT8},
    {MPI_CXX_BOOL, CLASS_LOGICAL, PW_RMA_UINT8},
    {MPI_C_FLOAT_COMPLEX, CLASS_COMPLEX, PW_RMA_FLOAT_COMPLEX},
    {MPI_C_DOUBLE_COMPLEX, CLASS_COMPLEX, PW_RMA_DOUBLE_COMPLEX},
    {MPI_C_LONG_DOUBLE_COMPLEX, CLASS_COMPLEX, PW_RMA_LONG_DOUBLE_COMPLEX},
    {MPI_CXX_FLOAT_COMPLEX, CLASS_COMPLEX, PW_RMA_FLOAT_COMPLEX},
    {MPI_CXX_DOUBLE_COMPLEX, CLASS_COMPLEX, PW_RMA_DOUBLE_COMPLEX},
    {MPI_CXX_LONG_DOUBLE_COMPLEX, CLASS_COMPLEX, PW_RMA_LONG_DOUBLE_COMPLEX},
    {MPI_INTEGER, CLASS_INTEGER, PW_RMA_INT32},
    {MPI_INTEGER1, CLASS_INTEGER, PW_RMA_INT8},
    {MPI_INTEGER2, CLASS_INTEGER, PW_RMA_INT16},
    {MPI_INTEGER4, CLASS_INTEGER, PW_RMA_INT32},
    {MPI_INTEGER8, CLASS_INTEGER, PW_RMA_INT64},
    {MPI_REAL, CLASS_REAL, PW_RMA_FLOAT},
    {MPI_REAL4, CLASS_REAL, PW_RMA_FLOAT},
    {MPI_DOUBLE_PRECISION, CLASS_REAL, PW_RMA_DOUBLE},
    {MPI_REAL8, CLASS_REAL, PW_RMA_DOUBLE},
    {MPI_COMPLEX, CLASS_COMPLEX, PW_RMA_FLOAT_COMPLEX},
    {MPI_COMPLEX8, CLASS_COMPLEX, PW_RMA_FLOAT_COMPLEX},
    {MPI_DOUBLE_COMPLEX, CLASS_COMPLEX, PW_RMA_DOUBLE_COMPLEX},
    {MPI_COMPLEX16, CLASS_COMPLEX, PW_RMA_DOUBLE_COMPLEX},
    {MPI_LOGICAL, CLASS_LOGICAL, PW_RMA_INT32},
    {MPI_FLOAT_INT, CLASS_PAIR, PW_RMA_FLOAT_INT},
    {MPI_DOUBLE_INT, CLASS_PAIR, PW_RMA_DOUBLE_INT},
    {MPI_LONG_INT, CLASS_PAIR, PW_RMA_LONG_INT},
    {MPI_2INT, CLASS_PAIR, PW_RMA_INT_INT},
    {MPI_SHORT_INT, CLASS_PAIR, PW_RMA_SHORT_INT},
    {MPI_LONG_DOUBLE_INT, CLASS_PAIR, PW_RMA_LONG_DOUBLE_INT},
    {MPI_2INTEGER, CLASS_PAIR, PW_RMA_INT_INT},
    {MPI_2REAL, CLASS_PAIR, PW_RMA_FLOAT_FLOAT},
    {MPI_2DOUBLE_PRECISION, CLASS_PAIR, PW_RMA_DOUBLE_DOUBLE},
};

/* ---- A table of them ---- */

enum { KNOWN = sizeof(known) / sizeof(known[0]), ROOM = 256 };

static struct {
    MPI_Datatype datatype;
    struct type *type;
} table[ROOM];

static size_t place_of(MPI_Datatype datatype)
{
    return (size_t)((uintptr_t)datatype * UINT64_C(0x9e3779b97f4a7c15) >> 40) % ROOM;
}

/* A type of one block: a pair's has the bytes between its members, too. */
struct type *type_basic(unsigned class, enum pw_rma_type basic, size_t size)
{
    struct type *t = malloc(sizeof(*t) + sizeof(t->blocks[0]));
    if (t != NULL) {
        *t = (struct type){.class = class,
                           .basic = basic,
                           .element = size,
                           .size = size,
                           .extent = (MPI_Aint)size,
                           .high = (MPI_Aint)size,
                           .plain = true,
                           .count = 1};
        t->users = 1;
        t->blocks[0] = (struct type_block){0, size};
    }
    return t;
}

__attribute__((constructor)) static void fill(void)
{
    for (size_t i = 0; i < KNOWN; i++) {
        if (known[i].datatype == MPI_DATATYPE_NULL) {
            continue; /* this MPI was built without that type */
        }
        size_t at = place_of(known[i].datatype);
        while (table[at].type != NULL && table[at].datatype != known[i].datatype) {
            at = (at + 1) % ROOM;
        }
        if (table[at].type == NULL) {
            table[at].datatype = known[i].datatype;
            table[at].type =
                type_basic(known[i].class, known[i].basic, pw_rma_type_size(known[i].basic));
            if (table[at].type != NULL) {
                table[at].type->lasts = true;
            }
        }
    }
}

struct type *type_known(MPI_Datatype datatype)
{
    for (size_t at = place_of(datatype); table[at].type != NULL; at = (at + 1) % ROOM) {
        if (table[at].datatype == datatype) {
            return table[at].type;
        }
    }
    return NULL;
}

/* ---- Derived ones ---- */

static int keyval = MPI_KEYVAL_INVALID;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int delete_type(MPI_Datatype datatype, int key, void *value, void *state)
{
    (void)datatype, (void)key, (void)state;
    type_drop(value);
    return MPI_SUCCESS;
}

static int derived(MPI_Datatype datatype, struct type **type)
{
    int there = 0, rc = MPI_SUCCESS;
    if (keyval == MPI_KEYVAL_INVALID) {
        rc = PMPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, delete_type, &keyval, NULL);
    }
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Type_get_attr(datatype, keyval, type, &there);
    }
    if (rc != MPI_SUCCESS || there) {
        return rc;
    }
    rc = type_flatten(datatype, type);
    if (rc == MPI_SUCCESS && PMPI_Type_set_attr(datatype, keyval, *type) == MPI_SUCCESS) {
        return MPI_SUCCESS;
    }
    return rc;
}

int type_of(MPI_Datatype datatype, const struct type **type)
{
    struct type *t = type_known(datatype);
    if (t != NULL) {
        *type = t;
        return MPI_SUCCESS;
    }
    if (datatype == MPI_DATATYPE_NULL) {
        return MPI_ERR_TYPE;
    }
    pthread_mutex_lock(&lock);
    int rc = derived(datatype, &t);
    if (rc == MPI_SUCCESS) {
        atomic_fetch_add(&t->users, 1);
    }
    pthread_mutex_unlock(&lock);
    *type = t;
    return rc == MPI_SUCCESS || rc == MPI_ERR_NO_MEM ? rc : MPI_ERR_TYPE;
}

void type_drop(const struct type *type)
{
    struct type *t = (struct type *)(uintptr_t)type;
    if (!t->lasts && atomic_fetch_sub(&t->users, 1) == 1) {
        free(t);
    }
}
