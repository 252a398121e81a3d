/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns the lines of a recording into calls that can become operations: ranks of communicators
 * become ranks of the program, wildcards become the source and tag of the message that was
 * received, and starts of persistent requests become calls of their own. All checks of a
 * recording's contents are in this file.
 */
#include "trace.h"

#include <inttypes.h>
#include <stdlib.h>

/* ---- The state of resolving a rank ---- */

struct resolver {
    struct mpi_trace *t;
    struct mpi_rank *r;
    struct goal_error *error;
    struct mpi_rank out; /* the calls that were resolved so far */
    /* by communicator number in the file: its number in the trace + 1; 0: none yet */
    uint64_t *comms;
    /* by request that is pending: the call in `out` that started it, + 1 */
    uint64_t *started;
    uint64_t *persistent;        /* by persistent request: the call in `out` that made it, + 1 */
    uint32_t *members;           /* memory for a list of all ranks */
    uint8_t *is_member;          /* by rank: whether it is in that list */
    uint64_t ended[256];         /* by thread: when its last call ended */
    const struct mpi_call *call; /* the call that is being resolved */
};

/* FAIL() sets the error, with the line of the current call, and is -1. */
#define FAIL(d, ...) mpi_fail((d)->r, (d)->call->line, (d)->error, __VA_ARGS__)

static int bad_request(const struct resolver *d, int64_t request)
{
    return FAIL(d, "request %" PRId64 ": a rank with %" PRIu64 " calls numbers them from 0 to less",
                request, d->r->requests);
}

/* Copies a list of members from the line to d->members. Each must be a rank, and none may be there
 * twice. */
static int take_members(struct resolver *d, const int64_t *numbers, uint64_t count)
{
    if (count > d->t->ranks) {
        return FAIL(d, "%" PRIu64 " members of %u ranks", count, d->t->ranks);
    }
    memset(d->is_member, 0, d->t->ranks);
    for (uint64_t i = 0; i < count; i++) {
        if (numbers[i] == MPI_NONE) {
            return FAIL(d, "a communicator with processes that MPI_Init did not start: cannot be "
                           "replayed");
        }
        if (numbers[i] < 0 || numbers[i] >= d->t->ranks || d->is_member[numbers[i]]) {
            return FAIL(d, "member %" PRId64 ": must be one of the %u ranks, once", numbers[i],
                        d->t->ranks);
        }
        d->is_member[numbers[i]] = 1;
        d->members[i] = (uint32_t)numbers[i];
    }
    return d->is_member[d->r->rank] ? 0 : FAIL(d, "rank %u is no member", d->r->rank);
}

static int set_comm(struct resolver *d, int64_t number, uint32_t size, uint32_t split)
{
    int64_t found = mpi_next_comm(d->t, d->members, size, split, d->error);
    if (found < 0) {
        return -1;
    }
    if (number < 0 || (uint64_t)number >= d->r->count + 2 || d->comms[number] != 0) {
        return FAIL(d, "communicator %" PRId64 " is %s", number,
                    number >= 0 && (uint64_t)number < d->r->count + 2 ? "made a second time"
                                                                      : "no number of one");
    }
    d->comms[number] = (uint64_t)found + 1;
    return 0;
}

/* Adds an intercommunicator. The recordings of both groups must give the same list, so the group
 * whose first member is the lower rank comes first. */
static int take_intercomm(struct resolver *d, const int64_t *n, uint64_t count)
{
    int64_t local = n[1];
    if (local < 1 || (uint64_t)local >= count - 2) {
        return FAIL(d, "a local group of %" PRId64 " of %" PRIu64 " members", local, count - 2);
    }
    if (take_members(d, n + 2, count - 2) != 0) {
        return -1;
    }
    uint32_t size = (uint32_t)(count - 2), split = (uint32_t)local;
    if (d->members[split] < d->members[0]) {
        for (uint32_t i = 0; i < size; i++) {
            d->members[i] = (uint32_t)n[2 + (split + i) % size];
        }
        split = size - split;
    }
    return set_comm(d, n[0], size, split);
}

static int take_comm(struct resolver *d, int64_t *number)
{
    if (*number == MPI_NONE) {
        return FAIL(d, "uses a communicator that no recorded call has made");
    }
    if (*number < 0 || (uint64_t)*number >= d->r->count + 2 || d->comms[*number] == 0) {
        return FAIL(d, "communicator %" PRId64 " does not exist", *number);
    }
    *number = (int64_t)d->comms[*number] - 1;
    return 0;
}

/* Replaces a rank of a communicator by the rank of the program. `any`: MPI_ANY is allowed, too. */
static int take_peer(struct resolver *d, int64_t *peer, int64_t comm, bool any)
{
    const struct mpi_group *g = d->t->comms[comm].group;
    uint32_t first = 0, size = g->size;
    if (*peer == MPI_NONE || (any && *peer == MPI_ANY)) {
        return 0;
    }
    if (g->split > 0) {
        bool in_first = false;
        for (uint32_t i = 0; i < g->split; i++) {
            in_first |= g->members[i] == d->r->rank;
        }
        first = in_first ? g->split : 0;
        size = in_first ? g->size - g->split : g->split;
    }
    if (*peer < 0 || *peer >= size) {
        return FAIL(d, "rank %" PRId64 " of a communicator of %u", *peer, size);
    }
    *peer = g->members[first + *peer];
    return 0;
}

static int check_tag(struct resolver *d, int64_t tag, bool any)
{
    return (tag >= 0 && tag <= INT32_MAX) || (any && tag == MPI_ANY)
               ? 0
               : FAIL(d, "tag %" PRId64 ": must be from 0 to %d", tag, INT32_MAX);
}

static int check_bytes(struct resolver *d, int64_t bytes)
{
    return bytes >= 0 ? 0 : FAIL(d, "%" PRId64 " bytes", bytes);
}

/* Resolves the four numbers peer, tag, bytes, comm of a message. */
static int take_message(struct resolver *d, int64_t *n, bool receives)
{
    bool nobody = n[0] == MPI_NONE;
    if (take_comm(d, &n[3]) != 0 || take_peer(d, &n[0], n[3], receives) != 0 ||
        check_bytes(d, n[2]) != 0) {
        return -1;
    }
    return nobody ? 0 : check_tag(d, n[1], receives);
}

/* Replaces peer, tag and bytes that a receive asked for by those of the message that it got, `got`
 * (source tag bytes). */
static int take_received(struct resolver *d, int64_t *asked, int64_t comm, const int64_t *got)
{
    int64_t source = got[0];
    if (asked[0] == MPI_NONE) {
        return 0;
    }
    if (d->t->allprof && source == MPI_ANY) { /* liballprof does not record the source */
        return 0;
    }
    if (take_peer(d, &source, comm, false) != 0 || check_tag(d, got[1], false) != 0 ||
        check_bytes(d, got[2]) != 0) {
        return -1;
    }
    if (source == MPI_NONE || (asked[0] != MPI_ANY && asked[0] != source) ||
        (asked[1] != MPI_ANY && asked[1] != got[1])) {
        return FAIL(
            d, "asked rank %" PRId64 ", tag %" PRId64 " and got rank %" PRId64 ", tag %" PRId64,
            asked[0], asked[1], source, got[1]);
    }
    asked[0] = source;
    asked[1] = got[1];
    asked[2] = got[2];
    return 0;
}

/* ---- Resolved calls ---- */

static int put(struct resolver *d, enum mpi_kind kind, const int64_t *numbers, uint32_t count)
{
    struct mpi_call c = *d->call;
    c.kind = kind;
    bool ok = mpi_add_call(&d->out, &c);
    for (uint32_t i = 0; i < count && ok; i++) {
        ok = mpi_add_number(&d->out, numbers[i]);
    }
    return ok ? 0 : FAIL(d, "no memory");
}

static int begin_request(struct resolver *d, int64_t request)
{
    if (request < 0 || (uint64_t)request >= d->r->requests) {
        return bad_request(d, request);
    }
    if (d->started[request] != 0) {
        return FAIL(d, "request %" PRId64 " begins, but has not ended", request);
    }
    d->started[request] = d->out.count; /* the call that was put last, + 1 */
    return 0;
}

static int resolve_nonblocking(struct resolver *d, int64_t *n, uint32_t count)
{
    bool receives = d->call->kind == MPI_K_IRECV;
    if (take_message(d, n + 1, receives) != 0 ||
        put(d, n[1] == MPI_NONE ? MPI_K_NOTHING : d->call->kind, n, count) != 0) {
        return -1;
    }
    return begin_request(d, n[0]);
}

/* Notes that the call that was put last makes a persistent request. */
static int make_persistent(struct resolver *d, int64_t request)
{
    if (request < 0 || (uint64_t)request >= d->r->requests || d->persistent[request] != 0) {
        return bad_request(d, request);
    }
    d->persistent[request] = d->out.count;
    return 0;
}

static int resolve_persistent(struct resolver *d, int64_t *n, uint32_t count)
{
    if (take_message(d, n + 1, d->call->kind == MPI_K_RECV_INIT) != 0 ||
        put(d, d->call->kind, n, count) != 0) {
        return -1;
    }
    return make_persistent(d, n[0]);
}

static int start_message(struct resolver *d, const struct mpi_call *made)
{
    int64_t numbers[5];
    memcpy(numbers, d->out.numbers + made->first, sizeof(numbers));
    enum mpi_kind kind = numbers[1] == MPI_NONE          ? MPI_K_NOTHING
                         : made->kind == MPI_K_SEND_INIT ? MPI_K_ISEND
                                                         : MPI_K_IRECV;
    return put(d, kind, numbers, 5);
}

static int start_collective(struct resolver *d, struct mpi_call made)
{
    struct mpi_call c = *d->call;
    c.kind = MPI_K_COLLECTIVE;
    c.collective = made.collective;
    c.nonblocking = c.persistent = true;
    bool ok = mpi_add_call(&d->out, &c);
    for (uint32_t i = 0; i < made.count && ok; i++) {
        ok = mpi_add_number(&d->out, d->out.numbers[made.first + i]);
    }
    return ok ? 0 : FAIL(d, "no memory");
}

static int resolve_start(struct resolver *d, const int64_t *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (n[i] < 0 || (uint64_t)n[i] >= d->r->requests || d->persistent[n[i]] == 0) {
            return FAIL(d, "request %" PRId64 " begins, and is not persistent", n[i]);
        }
        const struct mpi_call *made = &d->out.calls[d->persistent[n[i]] - 1];
        int rc = made->kind == MPI_K_COLLECTIVE_INIT ? start_collective(d, *made)
                                                     : start_message(d, made);
        if (rc != 0 || begin_request(d, n[i]) != 0) {
            return -1;
        }
        /* The operations of a call that starts several begin one after the other; the first one
         * takes the whole time of the call. */
        struct mpi_call *c = &d->out.calls[d->out.count - 1];
        c->start += i > 0 ? c->took : 0;
        c->took = i > 0 ? 0 : c->took;
    }
    return count > 0 ? 0 : put(d, MPI_K_NOTHING, NULL, 0);
}

static int resolve_complete(struct resolver *d, const int64_t *n, uint32_t count)
{
    for (uint32_t i = 0; i < count; i += 4) {
        if (n[i] < 0 || (uint64_t)n[i] >= d->r->requests) {
            return bad_request(d, n[i]);
        }
        if (d->started[n[i]] == 0) {
            return FAIL(d, "request %" PRId64 " ends, but has not begun", n[i]);
        }
        struct mpi_call *c = &d->out.calls[d->started[n[i]] - 1];
        int64_t *of = d->out.numbers + c->first;
        d->started[n[i]] = 0;
        if (n[i + 1] == MPI_CANCELLED) {
            c->kind = MPI_K_NOTHING;
        } else if (c->kind == MPI_K_IRECV && take_received(d, of + 1, of[4], n + i + 1) != 0) {
            return -1;
        }
    }
    return put(d, MPI_K_COMPLETE, n, count);
}

static int resolve_receive(struct resolver *d, int64_t *n)
{
    if (take_message(d, n, true) != 0 || take_received(d, n, n[3], n + 4) != 0) {
        return -1;
    }
    return put(d, n[0] == MPI_NONE ? MPI_K_NOTHING : MPI_K_RECV, n, 4);
}

/* Resolves an MPI_Mprobe line: peer, tag, comm as asked for; source, tag, bytes of the message
 * found. It becomes a receive of that many bytes, since the message is matched then; MPI_Mrecv
 * later only fetches the data. */
static int resolve_mprobe(struct resolver *d, const int64_t *n)
{
    int64_t receive[7] = {n[0], n[1], n[5], n[2], n[3], n[4], n[5]};
    return resolve_receive(d, receive);
}

static int resolve_exchange(struct resolver *d, int64_t *n)
{
    int64_t out[4] = {n[0], n[1], n[2], n[6]}, in[4] = {n[3], n[4], n[5], n[6]};
    if (take_message(d, out, false) != 0 || take_message(d, in, true) != 0 ||
        take_received(d, in, in[3], n + 7) != 0) {
        return -1;
    }
    int64_t both[7] = {out[0], out[1], out[2], in[0], in[1], in[2], out[3]};
    return put(d, MPI_K_SENDRECV, both, 7);
}

static int resolve_collective(struct resolver *d, int64_t *n, uint32_t count)
{
    const struct mpi_collective_form *f = &mpi_collective_forms[d->call->collective];
    int64_t *comm = n + d->call->nonblocking;
    if (take_comm(d, comm) != 0) {
        return -1;
    }
    const struct mpi_group *g = d->t->comms[*comm].group;
    uint32_t fixed = (uint32_t)(1 + d->call->nonblocking + f->root + f->bytes);
    if (g->split > 0) {
        return FAIL(d, "%s between two groups: only messages of intercommunicators are understood",
                    f->name);
    }
    if (f->root && (comm[1] < 0 || comm[1] >= g->size)) {
        return FAIL(d, "root %" PRId64 " of a communicator of %u", comm[1], g->size);
    }
    bool vectors = f->vectors > 0 && (!f->at_root || g->members[comm[1]] == d->r->rank);
    uint64_t want = fixed + (vectors ? (uint64_t)f->vectors * g->size : 0);
    if (count != want) {
        return FAIL(d, "%s has %u numbers, not %" PRIu64, f->name, count, want);
    }
    for (uint32_t i = fixed - (uint32_t)f->bytes; i < count; i++) {
        if (check_bytes(d, n[i]) != 0) {
            return -1;
        }
    }
    if (put(d, d->call->kind, n, count) != 0) {
        return -1;
    }
    if (d->call->persistent) {
        uint64_t number = d->t->comms[*comm].persistents_seen++;
        return mpi_add_number(&d->out, (int64_t)number) ? make_persistent(d, n[0])
                                                        : FAIL(d, "no memory");
    }
    return d->call->nonblocking ? begin_request(d, n[0]) : 0;
}

static int resolve_call(struct resolver *d, int64_t *n)
{
    uint32_t count = d->call->count;
    switch (d->call->kind) {
    case MPI_K_COMM:
        if (take_members(d, n + 1, count - 1) != 0 || set_comm(d, n[0], count - 1, 0) != 0) {
            return -1;
        }
        return put(d, MPI_K_NOTHING, NULL, 0);
    case MPI_K_INTERCOMM:
        return take_intercomm(d, n, count) != 0 ? -1 : put(d, MPI_K_NOTHING, NULL, 0);
    case MPI_K_SEND:
    case MPI_K_BSEND:
        if (take_message(d, n, false) != 0) {
            return -1;
        }
        return put(d, n[0] == MPI_NONE ? MPI_K_NOTHING : d->call->kind, n, count);
    case MPI_K_RECV:
        return resolve_receive(d, n);
    case MPI_K_MPROBE:
        return resolve_mprobe(d, n);
    case MPI_K_ISEND:
    case MPI_K_IRECV:
        return resolve_nonblocking(d, n, count);
    case MPI_K_SEND_INIT:
    case MPI_K_RECV_INIT:
        return resolve_persistent(d, n, count);
    case MPI_K_START:
        return resolve_start(d, n, count);
    case MPI_K_COMPLETE:
        return resolve_complete(d, n, count);
    case MPI_K_SENDRECV:
        return resolve_exchange(d, n);
    case MPI_K_COLLECTIVE:
    case MPI_K_COLLECTIVE_INIT:
        return resolve_collective(d, n, count);
    default:
        d->r->finished |= d->call->kind == MPI_K_FINALIZE;
        return put(d, d->call->kind, n, count);
    }
}

static int check_time(struct resolver *d)
{
    uint64_t *ended = &d->ended[d->call->thread];
    if (d->call->start < *ended) {
        return FAIL(d, "starts at %" PRIu64 ", before the call before it ended at %" PRIu64,
                    d->call->start, *ended);
    }
    *ended = d->call->start + d->call->took;
    return 0;
}

/* Adds the communicators that every program has. */
static int first_comms(struct resolver *d)
{
    static const struct mpi_call none;
    d->call = &none;
    for (uint32_t i = 0; i < d->t->ranks; i++) {
        d->members[i] = i;
    }
    if (set_comm(d, MPI_WORLD, d->t->ranks, 0) != 0) {
        return -1;
    }
    d->members[0] = d->r->rank;
    return set_comm(d, MPI_SELF, 1, 0);
}

static int resolve_all(struct resolver *d)
{
    for (uint64_t i = 0; i < d->r->count; i++) {
        d->call = &d->r->calls[i];
        if (check_time(d) != 0 || resolve_call(d, d->r->numbers + d->call->first) != 0) {
            return -1;
        }
    }
    for (uint64_t i = 0; i < d->out.count && !d->t->allprof; i++) {
        struct mpi_call *c = &d->out.calls[i];
        const int64_t *n = d->out.numbers + c->first;
        if (c->kind == MPI_K_IRECV && (n[1] == MPI_ANY || n[2] == MPI_ANY)) {
            c->kind = MPI_K_NOTHING;
            d->r->incomplete++;
        }
    }
    return 0;
}

int mpi_resolve(struct mpi_trace *t, struct mpi_rank *r, struct goal_error *error)
{
    struct resolver d = {.t = t, .r = r, .error = error};
    d.out = (struct mpi_rank){.rank = r->rank, .path = r->path};
    d.comms = calloc(r->count + 2, sizeof(*d.comms));
    d.started = calloc(r->requests + 1, sizeof(*d.started));
    d.persistent = calloc(r->requests + 1, sizeof(*d.persistent));
    d.members = calloc(t->ranks, sizeof(*d.members));
    d.is_member = calloc(t->ranks, 1);
    int rc;
    if (!ARRAY_HOLDS(d.out.numbers, 1, d.out.number_room, MPI_ROOM) || d.comms == NULL ||
        d.started == NULL || d.persistent == NULL || d.members == NULL || d.is_member == NULL) {
        rc = goal_fail(error, "%s: no memory", r->path);
    } else {
        rc = first_comms(&d) != 0 ? -1 : resolve_all(&d);
    }
    free(r->calls);
    free(r->numbers);
    r->calls = d.out.calls;
    r->count = d.out.count;
    r->room = d.out.room;
    r->numbers = d.out.numbers;
    r->number_count = d.out.number_count;
    r->number_room = d.out.number_room;
    free(d.comms);
    free(d.started);
    free(d.persistent);
    free(d.members);
    free(d.is_member);
    return rc;
}
