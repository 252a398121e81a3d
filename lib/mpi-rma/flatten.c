/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Derived datatypes: each is made of others, whose blocks are put one behind the other as its
 * constructor says. Blocks that touch become one. A type's blocks are in the order of its type map,
 * which is that of the elements of an accumulate.
 */
#include "flatten.h"

#include <stdlib.h>

/* Blocks that are being collected. */
struct list {
    struct type_block *blocks;
    size_t count, room, size;
    unsigned class; /* 0: nothing yet */
    enum pw_rma_type basic;
    size_t element;
    bool failed; /* no memory */
};

static void add_block(struct list *l, MPI_Aint at, size_t length)
{
    struct type_block *last = l->count > 0 ? &l->blocks[l->count - 1] : NULL;
    l->size += length;
    if (length == 0 || l->failed) {
        return;
    }
    if (last != NULL && last->at + (MPI_Aint)last->length == at) {
        last->length += length;
        return;
    }
    if (l->count == l->room) {
        size_t room = l->room == 0 ? 8 : 2 * l->room;
        struct type_block *larger = realloc(l->blocks, room * sizeof(*larger));
        if (larger == NULL) {
            l->failed = true;
            return;
        }
        l->blocks = larger;
        l->room = room;
    }
    l->blocks[l->count++] = (struct type_block){at, length};
}

/* Adds `n` elements of a type, the first one at `at`. */
static void add(struct list *l, const struct type *t, MPI_Aint at, MPI_Count n)
{
    if (n <= 0 || t->size == 0) {
        return;
    }
    if (l->class == 0) {
        l->class = t->class;
        l->basic = t->basic;
        l->element = t->element;
    } else if (l->class != t->class || l->basic != t->basic) {
        l->class = CLASS_MIXED;
    }
    if (t->plain) {
        add_block(l, at, t->size * (size_t)n);
        return;
    }
    for (MPI_Count i = 0; i < n && !l->failed; i++) {
        for (size_t b = 0; b < t->count; b++) {
            add_block(l, at + (MPI_Aint)i * t->extent + t->blocks[b].at, t->blocks[b].length);
        }
    }
}

/* ---- Arrays ---- */

enum { DIMENSIONS = 64 };

/* Dimensions of an array, the slowest first, and which indices of each are taken. */
struct array {
    int dimensions;
    MPI_Aint stride[DIMENSIONS]; /* bytes */
    MPI_Count *index[DIMENSIONS], counts[DIMENSIONS];
};

static void add_array(struct list *l, const struct type *t, const struct array *a, int d,
                      MPI_Aint at)
{
    for (MPI_Count i = 0; i < a->counts[d] && !l->failed; i++) {
        MPI_Aint here = at + (MPI_Aint)a->index[d][i] * a->stride[d];
        if (d + 1 == a->dimensions) {
            add(l, t, here, 1);
        } else {
            add_array(l, t, a, d + 1, here);
        }
    }
}

/* Strides of an array of `sizes`. Fortran's first dimension is the fastest. */
static void set_strides(struct array *a, const int *sizes, bool fortran, MPI_Aint extent)
{
    for (int d = a->dimensions - 1; d >= 0; d--) {
        a->stride[d] = extent;
        extent *= sizes[fortran ? a->dimensions - 1 - d : d];
    }
}

static bool own_indices(struct array *a, int d, MPI_Count count)
{
    a->counts[d] = 0;
    a->index[d] = malloc((size_t)(count + 1) * sizeof(MPI_Count));
    return a->index[d] != NULL;
}

static void free_array(struct array *a)
{
    for (int d = 0; d < a->dimensions; d++) {
        free(a->index[d]);
    }
}

static void add_subarray(struct list *l, const struct type *t, const int *i)
{
    struct array a = {.dimensions = i[0]};
    const int *sizes = i + 1, *subsizes = sizes + i[0], *starts = subsizes + i[0];
    bool fortran = starts[i[0]] == MPI_ORDER_FORTRAN;
    set_strides(&a, sizes, fortran, t->extent);
    for (int d = 0; d < a.dimensions && !l->failed; d++) {
        int p = fortran ? a.dimensions - 1 - d : d;
        l->failed = !own_indices(&a, d, subsizes[p]);
        for (MPI_Count k = 0; k < subsizes[p] && !l->failed; k++) {
            a.index[d][a.counts[d]++] = starts[p] + k;
        }
    }
    if (!l->failed && a.dimensions > 0) {
        add_array(l, t, &a, 0, 0);
    }
    free_array(&a);
}

/* The indices of one dimension that one of `processes` has. */
static void distribute(struct array *a, int d, int size, int how, int argument, int processes,
                       int place)
{
    MPI_Count block =
        how == MPI_DISTRIBUTE_NONE ? size
        : how == MPI_DISTRIBUTE_BLOCK
            ? (argument == MPI_DISTRIBUTE_DFLT_DARG ? (size + processes - 1) / processes : argument)
            : (argument == MPI_DISTRIBUTE_DFLT_DARG ? 1 : argument);
    if (how == MPI_DISTRIBUTE_NONE) {
        processes = 1;
        place = 0;
    }
    for (MPI_Count k = 0; k < size; k++) {
        if (k / block % processes == place) {
            a->index[d][a->counts[d]++] = k;
        }
    }
}

static void add_darray(struct list *l, const struct type *t, const int *i)
{
    int rank = i[1], n = i[2], left = rank, places[DIMENSIONS];
    const int *sizes = i + 3, *how = sizes + n, *arguments = how + n, *processes = arguments + n;
    bool fortran = processes[n] == MPI_ORDER_FORTRAN;
    struct array a = {.dimensions = n};
    set_strides(&a, sizes, fortran, t->extent);
    for (int p = n - 1; p >= 0; p--) { /* processes are always numbered as in C */
        places[p] = left % processes[p];
        left /= processes[p];
    }
    for (int d = 0; d < n && !l->failed; d++) {
        int p = fortran ? n - 1 - d : d;
        l->failed = !own_indices(&a, d, sizes[p]);
        if (!l->failed) {
            distribute(&a, d, sizes[p], how[p], arguments[p], processes[p], places[p]);
        }
    }
    if (!l->failed && n > 0) {
        add_array(l, t, &a, 0, 0);
    }
    free_array(&a);
}

/* ---- Constructors ---- */

struct contents {
    int combiner, integers, addresses, datatypes;
    int *i;
    MPI_Aint *a;
    MPI_Datatype *d;
};

/* One that another is made of: its handle is a new one, without attributes. */
static int flatten_old(MPI_Datatype datatype, const struct type **type)
{
    struct type *made = type_known(datatype);
    int rc = made == NULL ? type_flatten(datatype, &made) : MPI_SUCCESS;
    *type = made;
    return rc;
}

static void add_indexed(struct list *l, const struct type *t, const struct contents *c)
{
    int n = c->i[0];
    for (int k = 0; k < n; k++) {
        switch (c->combiner) {
        case MPI_COMBINER_INDEXED:
            add(l, t, c->i[1 + n + k] * t->extent, c->i[1 + k]);
            break;
        case MPI_COMBINER_HINDEXED:
            add(l, t, c->a[k], c->i[1 + k]);
            break;
        case MPI_COMBINER_INDEXED_BLOCK:
            add(l, t, c->i[2 + k] * t->extent, c->i[1]);
            break;
        default: /* hindexed_block */
            add(l, t, c->a[k], c->i[1]);
        }
    }
}

/* Adds what a datatype is made of, if that is one other. */
static int add_contents(struct list *l, const struct type *t, const struct contents *c)
{
    switch (c->combiner) {
    case MPI_COMBINER_DUP:
    case MPI_COMBINER_RESIZED:
        add(l, t, 0, 1);
        break;
    case MPI_COMBINER_CONTIGUOUS:
        add(l, t, 0, c->i[0]);
        break;
    case MPI_COMBINER_VECTOR:
    case MPI_COMBINER_HVECTOR:
        for (int k = 0; k < c->i[0]; k++) {
            add(l, t, k * (c->combiner == MPI_COMBINER_VECTOR ? c->i[2] * t->extent : c->a[0]),
                c->i[1]);
        }
        break;
    case MPI_COMBINER_INDEXED:
    case MPI_COMBINER_HINDEXED:
    case MPI_COMBINER_INDEXED_BLOCK:
    case MPI_COMBINER_HINDEXED_BLOCK:
        add_indexed(l, t, c);
        break;
    case MPI_COMBINER_SUBARRAY:
        add_subarray(l, t, c->i);
        break;
    case MPI_COMBINER_DARRAY:
        add_darray(l, t, c->i);
        break;
    default:
        return MPI_ERR_TYPE;
    }
    return MPI_SUCCESS;
}

static int add_all(struct list *l, const struct contents *c)
{
    int rc = MPI_SUCCESS;
    for (int k = 0; k < c->datatypes && rc == MPI_SUCCESS; k++) {
        const struct type *old;
        rc = flatten_old(c->d[k], &old);
        if (rc != MPI_SUCCESS) {
            break;
        }
        if (c->combiner == MPI_COMBINER_STRUCT) {
            add(l, old, c->a[k], c->i[1 + k]);
        } else {
            rc = add_contents(l, old, c);
        }
        type_drop(old);
    }
    return rc;
}

/* MPI_Type_get_contents makes handles of derived types. */
static void free_handles(struct contents *c)
{
    for (int k = 0; k < c->datatypes; k++) {
        int i, a, d, combiner;
        if (PMPI_Type_get_envelope(c->d[k], &i, &a, &d, &combiner) == MPI_SUCCESS &&
            combiner != MPI_COMBINER_NAMED && combiner != MPI_COMBINER_F90_REAL &&
            combiner != MPI_COMBINER_F90_COMPLEX && combiner != MPI_COMBINER_F90_INTEGER) {
            PMPI_Type_free(&c->d[k]);
        }
    }
}

static struct type *finish(struct list *l, MPI_Aint extent)
{
    struct type *t = l->failed ? NULL : malloc(sizeof(*t) + l->count * sizeof(t->blocks[0]));
    if (t == NULL) {
        return NULL;
    }
    *t = (struct type){.class = l->class,
                       .basic = l->basic,
                       .element = l->element,
                       .size = l->size,
                       .extent = extent,
                       .count = l->count};
    t->users = 1;
    for (size_t b = 0; b < l->count; b++) {
        MPI_Aint end = l->blocks[b].at + (MPI_Aint)l->blocks[b].length;
        t->blocks[b] = l->blocks[b];
        t->low = b == 0 || l->blocks[b].at < t->low ? l->blocks[b].at : t->low;
        t->high = b == 0 || end > t->high ? end : t->high;
    }
    t->plain =
        t->count == 0 || (t->count == 1 && t->low == 0 && (size_t)extent == t->blocks[0].length);
    return t;
}

/* Types of Fortran by precision and range. */
static struct type *parametrized(MPI_Datatype datatype, int combiner)
{
    int size = 0;
    PMPI_Type_size(datatype, &size);
    bool real = combiner == MPI_COMBINER_F90_REAL;
    if (combiner == MPI_COMBINER_F90_INTEGER) {
        return type_basic(CLASS_INTEGER,
                          size == 1   ? PW_RMA_INT8
                          : size == 2 ? PW_RMA_INT16
                          : size == 4 ? PW_RMA_INT32
                                      : PW_RMA_INT64,
                          (size_t)size);
    }
    size_t part = real ? (size_t)size : (size_t)size / 2;
    if (part != sizeof(float) && part != sizeof(double)) { /* quadruple precision: not C's */
        return type_basic(CLASS_OTHER, PW_RMA_UINT8, (size_t)size);
    }
    enum pw_rma_type basic = part == sizeof(float) ? (real ? PW_RMA_FLOAT : PW_RMA_FLOAT_COMPLEX)
                                                   : (real ? PW_RMA_DOUBLE : PW_RMA_DOUBLE_COMPLEX);
    return type_basic(real ? CLASS_REAL : CLASS_COMPLEX, basic, (size_t)size);
}

static int take_apart(MPI_Datatype datatype, struct contents *c, struct type **type)
{
    struct list l = {0};
    MPI_Aint lb, extent = 0;
    c->i = calloc((size_t)c->integers + 1, sizeof(int));
    c->a = calloc((size_t)c->addresses + 1, sizeof(MPI_Aint));
    c->d = calloc((size_t)c->datatypes + 1, sizeof(MPI_Datatype));
    int rc = c->i != NULL && c->a != NULL && c->d != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (rc == MPI_SUCCESS) {
        rc = PMPI_Type_get_contents(datatype, c->integers, c->addresses, c->datatypes, c->i, c->a,
                                    c->d);
    }
    if (rc == MPI_SUCCESS) {
        rc = add_all(&l, c);
        free_handles(c);
        PMPI_Type_get_extent(datatype, &lb, &extent);
    }
    if (rc == MPI_SUCCESS && (*type = finish(&l, extent)) == NULL) {
        rc = MPI_ERR_NO_MEM;
    }
    free(l.blocks);
    free(c->i);
    free(c->a);
    free(c->d);
    return rc;
}

int type_flatten(MPI_Datatype datatype, struct type **type)
{
    struct contents c;
    int rc = PMPI_Type_get_envelope(datatype, &c.integers, &c.addresses, &c.datatypes, &c.combiner);
    if (rc != MPI_SUCCESS) {
        return rc;
    }
    switch (c.combiner) {
    case MPI_COMBINER_NAMED: { /* one that the table lacks */
        MPI_Aint lb, extent = 0;
        PMPI_Type_get_extent(datatype, &lb, &extent);
        *type = type_basic(CLASS_OTHER, PW_RMA_UINT8, (size_t)extent);
        break;
    }
    case MPI_COMBINER_F90_REAL:
    case MPI_COMBINER_F90_COMPLEX:
    case MPI_COMBINER_F90_INTEGER:
        *type = parametrized(datatype, c.combiner);
        break;
    default:
        return take_apart(datatype, &c, type);
    }
    return *type != NULL ? MPI_SUCCESS : MPI_ERR_NO_MEM;
}
