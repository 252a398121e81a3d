/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traces of liballprof, the recorder beside LogGOPSim's schedule generator: text, a
 * line a call, fields between colons, times in microseconds.
 *
 *     MPI_Send:START:BUFFER:COUNT:TYPE,SIZE,EXTENT:PEER:TAG:COMM,RANK,RANKS:END
 *
 * The fields between the times are the arguments of the call, each in the form of its type. These
 * traces lack some facts, for which this reader does the following:
 *   - which message a wildcard receive got: the receive stays one from any source; of the receives
 *     of a rank all must have any tag, or none;
 *   - which requests MPI_Waitany, MPI_Waitsome and MPI_Test* completed: such a call is counted as
 *     one that is not understood;
 *   - which ranks are members of a communicator: one of all ranks has them in order, one of a
 *     single rank is MPI_COMM_SELF, others are refused;
 *   - how large a request is: requests are addresses, and those of an array are taken to be 8 bytes
 *     apart, or 4 if with 4 bytes more of them are found.
 * Negative ranks have Open MPI's values: -1 is any source, -2 is MPI_PROC_NULL; in a send both are
 * MPI_PROC_NULL.
 */
#include "pending.h"
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>

/* The arguments of calls, a letter each: b address, n count, t type, p peer, g tag,
 * c communicator, r request, s status, o operation, R root, v counts of the ranks
 * (two fields, address and list), w displacements (two fields). */
static const struct shape {
    const char *name;
    const char *arguments;
    enum mpi_kind kind;
} shapes[] = {
    {"Send", "bntpgc", MPI_K_SEND},
    {"Ssend", "bntpgc", MPI_K_SEND},
    {"Rsend", "bntpgc", MPI_K_SEND},
    {"Bsend", "bntpgc", MPI_K_BSEND},
    {"Recv", "bntpgcs", MPI_K_RECV},
    {"Isend", "bntpgcr", MPI_K_ISEND},
    {"Issend", "bntpgcr", MPI_K_ISEND},
    {"Irsend", "bntpgcr", MPI_K_ISEND},
    {"Irecv", "bntpgcr", MPI_K_IRECV},
    {"Sendrecv", "bntpgbntpgcs", MPI_K_SENDRECV},
    {"Wait", "rs", MPI_K_COMPLETE},
    {"Waitall", "nrs", MPI_K_COMPLETE},
    {"Barrier", "c", MPI_K_COLLECTIVE},
    {"Bcast", "bntRc", MPI_K_COLLECTIVE},
    {"Reduce", "bbntoRc", MPI_K_COLLECTIVE},
    {"Allreduce", "bbntoc", MPI_K_COLLECTIVE},
    {"Scan", "bbntoc", MPI_K_COLLECTIVE},
    {"Exscan", "bbntoc", MPI_K_COLLECTIVE},
    {"Reduce_scatter_block", "bbntoc", MPI_K_COLLECTIVE},
    {"Gather", "bntbntRc", MPI_K_COLLECTIVE},
    {"Scatter", "bntbntRc", MPI_K_COLLECTIVE},
    {"Allgather", "bntbntc", MPI_K_COLLECTIVE},
    {"Alltoall", "bntbntc", MPI_K_COLLECTIVE},
    {"Allgatherv", "bntbvwtc", MPI_K_COLLECTIVE},
    {"Reduce_scatter", "bbvtoc", MPI_K_COLLECTIVE},
    {"Alltoallv", "bvwtbvwtc", MPI_K_COLLECTIVE},
    {"Ibarrier", "cr", MPI_K_COLLECTIVE},
    {"Ibcast", "bntRcr", MPI_K_COLLECTIVE},
    {"Ireduce", "bbntoRcr", MPI_K_COLLECTIVE},
    {"Iallreduce", "bbntocr", MPI_K_COLLECTIVE},
};

/* Calls that do not communicate: their names begin with one of these. A warning names all other
 * calls that are not understood. */
static const char *const local_calls[] = {
    "Comm_rank",    "Comm_size", "Comm_group",  "Comm_compare", "Comm_get",    "Comm_set",
    "Comm_test",    "Comm_free", "Group_",      "Type_",        "Op_",         "Info_",
    "Get_",         "Wti",       "Attr_",       "Keyval_",      "Err",         "Address",
    "Buffer_",      "Pack",      "Unpack",      "Pcontrol",     "Initialized", "Finalized",
    "Query_thread", "Is_thread", "Cart_coords", "Cart_rank",    "Cart_get",    "Cart_shift",
    "Cartdim_get",  "Dims_",     "Alloc_mem",   "Free_mem",     "Abort",       "Status_",
};

enum { FIELDS_MOST = 24 };

struct field {
    const char *at;
    size_t length;
};

struct reader {
    struct mpi_trace *t;
    struct mpi_rank *r;
    struct goal_error *error;
    uint64_t line;
    uint64_t start; /* start of the current call, ns */
    uint64_t ended; /* end of the last call, ns */
    struct field fields[FIELDS_MOST];
    int count;
    struct mpi_pending *pending;
    int64_t *worlds; /* communicators of all ranks; the first one is MPI_COMM_WORLD */
    uint64_t world_count, world_room;
};

static int bad_field(const struct reader *d, int i, const char *what)
{
    int length = d->fields[i].length < 60 ? (int)d->fields[i].length : 60;
    return mpi_fail(d->r, d->line, d->error, "field %d must be %s, not \"%.*s\"", i + 1, what,
                    length, d->fields[i].at);
}

/* Splits the line into its fields. Fields beyond the longest call's are dropped. */
static void split(struct reader *d, const char *at, const char *end)
{
    d->count = 0;
    while (d->count < FIELDS_MOST) {
        const char *colon = memchr(at, ':', (size_t)(end - at));
        const char *stop = colon != NULL ? colon : end;
        d->fields[d->count++] = (struct field){at, (size_t)(stop - at)};
        if (colon == NULL) {
            return;
        }
        at = colon + 1;
    }
}

/* Reads one of the numbers that commas separate in field i: the one with index `part`. */
static int number(const struct reader *d, int i, int part, int64_t *value)
{
    const char *at = d->fields[i].at, *end = at + d->fields[i].length;
    for (; part > 0; part--) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        if (comma == NULL) {
            return bad_field(d, i, "numbers with commas between them");
        }
        at = comma + 1;
    }
    bool minus = at < end && *at == '-';
    uint64_t n = 0;
    const char *first = at += minus;
    for (; at < end && *at != ','; at++) {
        if (*at < '0' || *at > '9' || n > INT64_MAX / 10 - 1) {
            return bad_field(d, i, "a whole number");
        }
        n = n * 10 + (uint64_t)(*at - '0');
    }
    if (at == first) {
        return bad_field(d, i, "a whole number");
    }
    *value = minus ? -(int64_t)n : (int64_t)n;
    return 0;
}

/* Reads an address: an unsigned number, which may use all 64 bits. */
static int address(const struct reader *d, int i, uint64_t *value)
{
    uint64_t n = 0;
    for (size_t k = 0; k < d->fields[i].length; k++) {
        unsigned digit = (unsigned)(d->fields[i].at[k] - '0');
        if (digit > 9 || n > (UINT64_MAX - digit) / 10) {
            return bad_field(d, i, "an address");
        }
        n = n * 10 + digit;
    }
    *value = n;
    return 0;
}

/* Reads a time in microseconds, with or without a fraction, and converts it to ns. */
static int time_at(const struct reader *d, int i, uint64_t *ns)
{
    const char *at = d->fields[i].at, *end = at + d->fields[i].length;
    uint64_t n = 0;
    int digits = -1; /* digits of the fraction so far; -1: before the point */
    for (; at < end; at++) {
        if (*at == '.' && digits < 0) {
            digits = 0;
        } else if (*at < '0' || *at > '9' || n > (uint64_t)INT64_MAX / 10000) {
            return bad_field(d, i, "a time in microseconds");
        } else if (digits < 3) {
            n = n * 10 + (uint64_t)(*at - '0');
            digits += digits >= 0;
        }
    }
    for (digits = digits < 0 ? 0 : digits; digits < 3; digits++) {
        n *= 10;
    }
    *ns = n;
    return d->fields[i].length > 0 ? 0 : bad_field(d, i, "a time in microseconds");
}

/* ---- Communicators ---- */

static int add_world(struct reader *d, int64_t handle, int64_t *comm)
{
    if (!ARRAY_ROOM(d->worlds, d->world_count, d->world_room, MPI_ROOM)) {
        return mpi_fail(d->r, d->line, d->error, "no memory");
    }
    d->worlds[d->world_count++] = handle;
    *comm = d->world_count == 1 ? MPI_WORLD : (int64_t)d->world_count;
    if (d->world_count == 1) {
        return 0;
    }
    struct mpi_call made = {.kind = MPI_K_COMM, .line = d->line, .start = d->start};
    bool ok = mpi_add_call(d->r, &made) && mpi_add_number(d->r, *comm);
    for (uint32_t i = 0; i < d->t->ranks && ok; i++) {
        ok = mpi_add_number(d->r, i);
    }
    return ok ? 0 : mpi_fail(d->r, d->line, d->error, "no memory");
}

static int take_comm(struct reader *d, int i, int64_t *comm)
{
    int64_t handle = 0, rank = 0, ranks = 0;
    if (number(d, i, 0, &handle) != 0 || number(d, i, 1, &rank) != 0 ||
        number(d, i, 2, &ranks) != 0) {
        return -1;
    }
    if (ranks == d->t->ranks && rank != d->r->rank) {
        return mpi_fail(d->r, d->line, d->error,
                        "rank %" PRId64
                        " of a communicator of all ranks, and the file is rank %u's: "
                        "one in another order is not understood",
                        rank, d->r->rank);
    }
    for (uint64_t k = 0; k < d->world_count && ranks == d->t->ranks; k++) {
        if (d->worlds[k] == handle) {
            *comm = k == 0 ? MPI_WORLD : (int64_t)k + 1;
            return 0;
        }
    }
    if (ranks == d->t->ranks) {
        return add_world(d, handle, comm);
    }
    if (ranks == 1) {
        *comm = MPI_SELF;
        return 0;
    }
    return mpi_fail(d->r, d->line, d->error,
                    "a communicator of %" PRId64 " of the %u ranks: the trace does not say which",
                    ranks, d->t->ranks);
}

/* ---- Lines ---- */

static int add_completions(struct reader *d, const struct mpi_call *call, uint64_t at,
                           int64_t count)
{
    if (count < 0 || (uint64_t)count > d->r->map_length) {
        return mpi_fail(d->r, d->line, d->error, "%" PRId64 " requests", count);
    }
    return mpi_add_call(d->r, call) && mpi_pending_complete(&d->pending, d->r, at, (uint64_t)count)
               ? 0
               : mpi_fail(d->r, d->line, d->error, "no memory");
}

/* The arguments of a line. A Sendrecv has two messages; index [1] is the second. */
struct said {
    int64_t count[2], size[2], peer[2], tag[2];
    int counts, types, peers, tags, vectors;
    int vector[2]; /* indices of the fields that have lists */
    uint64_t request;
    int64_t comm, root;
};

/* Reads the argument at field *i, of the type `letter`, and moves *i behind it. */
static int take_argument(struct reader *d, char letter, int *i, struct said *s)
{
    int at = *i;
    *i += letter == 'v' || letter == 'w' ? 2 : 1;
    if (*i > d->count - 1) {
        return mpi_fail(d->r, d->line, d->error, "has %d fields, fewer than the call", d->count);
    }
    switch (letter) {
    case 'n':
        return number(d, at, 0, &s->count[s->counts++ & 1]);
    case 't':
        return number(d, at, 1, &s->size[s->types++ & 1]);
    case 'p':
        return number(d, at, 0, &s->peer[s->peers++ & 1]);
    case 'g':
        return number(d, at, 0, &s->tag[s->tags++ & 1]);
    case 'R':
        return number(d, at, 0, &s->root);
    case 'r':
        return address(d, at, &s->request);
    case 'c':
        return take_comm(d, at, &s->comm);
    case 'v':
        s->vector[s->vectors++ & 1] = at + 1;
        return 0;
    default:
        return 0;
    }
}

static int64_t bytes(const struct said *s, int i)
{
    int64_t all;
    return s->count[i] < 0 || s->size[i] < 0 ||
                   __builtin_mul_overflow(s->count[i], s->size[i], &all)
               ? -1
               : all;
}

static int add(struct reader *d, const struct mpi_call *call, const int64_t *numbers, int count)
{
    bool ok = mpi_add_call(d->r, call);
    for (int i = 0; i < count && ok; i++) {
        ok = mpi_add_number(d->r, numbers[i]);
    }
    return ok ? 0 : mpi_fail(d->r, d->line, d->error, "no memory");
}

static int add_vector(struct reader *d, const struct said *s, int which)
{
    for (uint32_t k = 0; k < d->t->ranks; k++) {
        int64_t count = 0;
        if (number(d, s->vector[which], (int)k, &count) != 0) {
            return -1;
        }
        if (count < 0 || count > INT32_MAX || s->size[which] < 0 || s->size[which] > INT32_MAX) {
            return bad_field(d, s->vector[which], "counts");
        }
        if (!mpi_add_number(d->r, count * s->size[which])) {
            return mpi_fail(d->r, d->line, d->error, "no memory");
        }
    }
    return 0;
}

static int add_collective(struct reader *d, const struct mpi_call *call, struct said *s)
{
    const struct mpi_collective_form *f = &mpi_collective_forms[call->collective];
    int64_t n[4] = {0}, request = 0;
    int count = 0;
    if (call->nonblocking) {
        if (!mpi_pending_begin(&d->pending, d->r, s->request, &request)) {
            return mpi_fail(d->r, d->line, d->error, "no memory");
        }
        n[count++] = request;
    }
    n[count++] = s->comm;
    if (f->root) {
        n[count++] = s->root;
    }
    if (f->bytes > 0) {
        n[count++] = bytes(s, 0);
    }
    if (s->comm == MPI_SELF && f->vectors > 0) {
        return 0; /* the communicator has one rank, which sends nothing */
    }
    if (add(d, call, n, count) != 0) {
        return -1;
    }
    /* The type behind the list is the list's: the first type may belong to a count before it. */
    if (f->vectors == 1 && s->types == 2) {
        s->size[0] = s->size[1];
    }
    for (int i = 0; i < f->vectors; i++) {
        if (add_vector(d, s, i) != 0) {
            return -1;
        }
    }
    return 0;
}

static int64_t receiver_of(int64_t peer)
{
    return peer < 0 ? MPI_NONE : peer;
}

static int add_known(struct reader *d, const struct shape *shape, struct mpi_call *call)
{
    struct said s = {0};
    int field = 2;
    int64_t request = 0;
    for (const char *letter = shape->arguments; *letter != '\0'; letter++) {
        if (take_argument(d, *letter, &field, &s) != 0) {
            return -1;
        }
    }
    call->kind = shape->kind;
    switch (call->kind) {
    case MPI_K_SEND:
    case MPI_K_BSEND:
        return add(d, call, (int64_t[]){receiver_of(s.peer[0]), s.tag[0], bytes(&s, 0), s.comm}, 4);
    case MPI_K_RECV:
        return add(d, call,
                   (int64_t[]){s.peer[0], s.tag[0], bytes(&s, 0), s.comm, MPI_ANY, MPI_ANY, 0}, 7);
    case MPI_K_ISEND:
    case MPI_K_IRECV:
        if (!mpi_pending_begin(&d->pending, d->r, s.request, &request)) {
            return mpi_fail(d->r, d->line, d->error, "no memory");
        }
        return add(d, call,
                   (int64_t[]){request,
                               call->kind == MPI_K_ISEND ? receiver_of(s.peer[0]) : s.peer[0],
                               s.tag[0], bytes(&s, 0), s.comm},
                   5);
    case MPI_K_SENDRECV:
        return add(d, call,
                   (int64_t[]){receiver_of(s.peer[0]), s.tag[0], bytes(&s, 0), s.peer[1], s.tag[1],
                               bytes(&s, 1), s.comm, MPI_ANY, MPI_ANY, 0},
                   10);
    case MPI_K_COMPLETE:
        return add_completions(d, call, s.request, s.counts > 0 ? s.count[0] : 1);
    default:
        return add_collective(d, call, &s);
    }
}

static bool is(const struct field *f, const char *name)
{
    return strlen(name) + 4 == f->length && memcmp(f->at + 4, name, f->length - 4) == 0;
}

static int add_by_name(struct reader *d, struct mpi_call *call)
{
    const struct field *f = &d->fields[0];
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        if (is(f, shapes[i].name)) {
            mpi_collective_named(f->at + 4, f->length - 4, &call->collective, &call->nonblocking);
            return add_known(d, &shapes[i], call);
        }
    }
    call->kind = MPI_K_OTHER;
    call->name = f->at;
    call->name_length = (uint32_t)(f->length < 60 ? f->length : 60);
    for (size_t i = 0; i < sizeof(local_calls) / sizeof(local_calls[0]); i++) {
        size_t length = strlen(local_calls[i]);
        if (f->length >= length + 4 && memcmp(f->at + 4, local_calls[i], length) == 0) {
            call->kind = MPI_K_NOTHING;
        }
    }
    return add(d, call, NULL, 0);
}

/* Reads a line. MPI_Init has no start time and MPI_Finalize no end time. */
static int read_line(struct reader *d)
{
    struct mpi_call call = {.line = d->line};
    const struct field *f = &d->fields[0];
    uint64_t start = d->ended, end = 0;
    if (f->length < 5 || memcmp(f->at, "MPI_", 4) != 0 || d->count < 3) {
        return mpi_fail(d->r, d->line, d->error, "must be MPI_FUNCTION:START:ARGUMENTS:END");
    }
    bool init = is(f, "Init") || is(f, "Init_thread"), finalize = is(f, "Finalize");
    if ((!init && time_at(d, 1, &start) != 0) ||
        (!finalize && time_at(d, d->count - 1, &end) != 0)) {
        return -1;
    }
    /* Times are rounded to microseconds, so a call may seem to start before the last one has
     * ended. */
    start = start < d->ended ? d->ended : start;
    end = finalize || end < start ? start : end;
    call.start = init ? end : start;
    call.took = init ? 0 : end - start;
    d->start = call.start;
    d->ended = end;
    if (init || finalize) {
        call.kind = init ? MPI_K_INIT : MPI_K_FINALIZE;
        return add(d, &call, NULL, 0);
    }
    return add_by_name(d, &call);
}

int mpi_read_allprof(struct mpi_trace *t, struct mpi_rank *r, struct goal_error *error)
{
    const char *at = r->map, *end = at + r->map_length;
    struct reader *d = calloc(1, sizeof(*d));
    int rc = 0;
    if (d == NULL) {
        return goal_fail(error, "%s: no memory", r->path);
    }
    *d = (struct reader){.t = t, .r = r, .error = error};
    while (at != NULL && at < end && rc == 0) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (newline == NULL) {
            break; /* a program that was killed has left this line unfinished */
        }
        d->line++;
        const char *stop = newline > at && newline[-1] == '\r' ? newline - 1 : newline;
        if (stop > at && *at != '#') {
            split(d, at, stop);
            rc = read_line(d);
        }
        at = newline + 1;
    }
    r->requests = r->requests > r->count ? r->requests : r->count;
    mpi_pending_free(&d->pending);
    free(d->worlds);
    free(d);
    return rc;
}
