/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads the lines of our own recorder. A line has the name of the call, "/THREAD" behind it unless
 * it is the first thread, start and duration in nanoseconds, and the numbers of that kind of call.
 * If the last line does not end with a newline the program was killed while it wrote it, and it is
 * ignored.
 */
#include "trace.h"

#include <inttypes.h>

/* The calls that are no collectives. A line has at least `least` and at most `most` numbers, and
 * `least` plus a multiple of `step` of them. */
static const struct form {
    const char *name;
    enum mpi_kind kind;
    uint32_t least, most, step;
} forms[] = {
    {"Init", MPI_K_INIT, 1, 1, 1},
    {"Finalize", MPI_K_FINALIZE, 0, 0, 1},
    {"Comm", MPI_K_COMM, 2, UINT32_MAX, 1},
    {"Intercomm", MPI_K_INTERCOMM, 4, UINT32_MAX, 1},
    {"Send", MPI_K_SEND, 4, 4, 1},
    {"Bsend", MPI_K_BSEND, 4, 4, 1},
    {"Recv", MPI_K_RECV, 7, 7, 1},
    {"Isend", MPI_K_ISEND, 5, 5, 1},
    {"Irecv", MPI_K_IRECV, 5, 5, 1},
    {"Send_init", MPI_K_SEND_INIT, 5, 5, 1},
    {"Recv_init", MPI_K_RECV_INIT, 5, 5, 1},
    {"Start", MPI_K_START, 0, UINT32_MAX, 1},
    {"Sendrecv", MPI_K_SENDRECV, 10, 10, 1},
    {"Probe", MPI_K_NOTHING, 6, 6, 1},
    {"Mprobe", MPI_K_MPROBE, 6, 6, 1},
    {"Mrecv", MPI_K_NOTHING, 0, 0, 1},
    {"Cancel", MPI_K_NOTHING, 0, 0, 1},
    {"Request_free", MPI_K_NOTHING, 0, 1, 1},
    {"Poll", MPI_K_NOTHING, 1, 1, 1},
    {"Wait", MPI_K_COMPLETE, 0, 4, 4},
    {"Waitany", MPI_K_COMPLETE, 0, 4, 4},
    {"Waitall", MPI_K_COMPLETE, 0, UINT32_MAX, 4},
    {"Waitsome", MPI_K_COMPLETE, 0, UINT32_MAX, 4},
    {"Test", MPI_K_COMPLETE, 0, 4, 4},
    {"Testany", MPI_K_COMPLETE, 0, 4, 4},
    {"Testall", MPI_K_COMPLETE, 0, UINT32_MAX, 4},
    {"Testsome", MPI_K_COMPLETE, 0, UINT32_MAX, 4},
    {"Other", MPI_K_OTHER, 0, 0, 1},
    {"Error", MPI_K_FAILED, 1, 1, 1},
};

/* Numbers that are added up with others must be at most this, so that sums do not wrap. */
#define LARGEST (INT64_MAX / 4)

struct reader {
    struct mpi_rank *r;
    const char *at, *end; /* of the line */
    uint64_t line;
    struct goal_error *error;
};

static int word(struct reader *d, const char **text, size_t *length)
{
    while (d->at < d->end && *d->at == ' ') {
        d->at++;
    }
    *text = d->at;
    while (d->at < d->end && *d->at != ' ') {
        d->at++;
    }
    *length = (size_t)(d->at - *text);
    return *length > 0;
}

static int bad(struct reader *d, const char *what, const char *text, size_t length)
{
    return mpi_fail(d->r, d->line, d->error, "%s, not \"%.*s\"", what,
                    (int)(length < 60 ? length : 60), text);
}

static int number(struct reader *d, const char *text, size_t length, int64_t *value)
{
    size_t i = length > 1 && text[0] == '-';
    int64_t n = 0;
    for (size_t k = i; k < length; k++) {
        if (text[k] < '0' || text[k] > '9' || n > LARGEST / 10 - 1) {
            return bad(d, "must be a whole number", text, length);
        }
        n = n * 10 + (text[k] - '0');
    }
    *value = i > 0 ? -n : n;
    return 0;
}

/* Reads the next word as a number of at least 0; `what` names it in errors. */
static int field(struct reader *d, const char *what, int64_t *value)
{
    const char *text = NULL;
    size_t length = 0;
    if (!word(d, &text, &length)) {
        return mpi_fail(d->r, d->line, d->error, "%s is missing", what);
    }
    if (number(d, text, length, value) != 0) {
        return -1;
    }
    return *value >= 0 ? 0 : bad(d, what, text, length);
}

static int find_form(struct reader *d, const char *text, size_t length, struct mpi_call *call,
                     struct form *form)
{
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
        if (strlen(forms[i].name) == length && memcmp(forms[i].name, text, length) == 0) {
            *form = forms[i];
            call->kind = form->kind;
            return 0;
        }
    }
    call->persistent = length > 5 && memcmp(text + length - 5, "_init", 5) == 0;
    size_t name = length - (call->persistent ? 5 : 0);
    if (!mpi_collective_named(text, name, &call->collective, &call->nonblocking) ||
        (call->persistent && call->nonblocking)) {
        return bad(d, "must be the name of a call", text, length);
    }
    call->nonblocking |= call->persistent;
    const struct mpi_collective_form *f = &mpi_collective_forms[call->collective];
    uint32_t fixed = (uint32_t)(call->nonblocking + 1 + f->root + f->bytes);
    *form = (struct form){f->name, MPI_K_COLLECTIVE, fixed, f->vectors > 0 ? UINT32_MAX : fixed, 1};
    call->kind = call->persistent ? MPI_K_COLLECTIVE_INIT : MPI_K_COLLECTIVE;
    return 0;
}

static int head(struct reader *d, struct mpi_call *call, struct form *form)
{
    const char *text = NULL;
    size_t length = 0;
    int64_t thread = 0, start = 0, took = 0;
    if (!word(d, &text, &length)) {
        return mpi_fail(d->r, d->line, d->error, "is empty");
    }
    const char *slash = memchr(text, '/', length);
    if (slash != NULL) {
        if (number(d, slash + 1, length - (size_t)(slash + 1 - text), &thread) != 0) {
            return -1;
        }
        if (thread < 0 || thread > 255) {
            return mpi_fail(d->r, d->line, d->error,
                            "thread %" PRId64 ": a schedule has room for 256", thread);
        }
        length = (size_t)(slash - text);
    }
    if (find_form(d, text, length, call, form) != 0 || field(d, "the start", &start) != 0 ||
        field(d, "the duration", &took) != 0) {
        return -1;
    }
    call->thread = (uint8_t)thread;
    call->start = (uint64_t)start;
    call->took = (uint64_t)took;
    call->line = d->line;
    return 0;
}

static int read_line(struct reader *d)
{
    struct mpi_call call = {0};
    struct form form = {.step = 1};
    const char *text = NULL;
    size_t length = 0;
    int64_t value = 0;
    if (head(d, &call, &form) != 0) {
        return -1;
    }
    if (call.kind == MPI_K_OTHER || call.kind == MPI_K_FAILED) {
        if (!word(d, &text, &length)) {
            return mpi_fail(d->r, d->line, d->error, "the name of the call is missing");
        }
        call.name = text;
        call.name_length = (uint32_t)(length < 60 ? length : 60);
    }
    if (!mpi_add_call(d->r, &call)) {
        return mpi_fail(d->r, d->line, d->error, "no memory");
    }
    while (word(d, &text, &length)) {
        if (number(d, text, length, &value) != 0) {
            return -1;
        }
        if (!mpi_add_number(d->r, value)) {
            return mpi_fail(d->r, d->line, d->error, "no memory");
        }
    }
    uint32_t count = d->r->calls[d->r->count - 1].count;
    if (count < form.least || count > form.most || (count - form.least) % form.step != 0) {
        return mpi_fail(d->r, d->line, d->error, "%s has %u numbers, not %u%s", form.name, count,
                        form.least, form.most == form.least ? "" : " or more");
    }
    return 0;
}

int mpi_read_lines(struct mpi_trace *t, struct mpi_rank *r, struct goal_error *error)
{
    const char *at = r->map, *end = at + r->map_length;
    struct reader d = {.r = r, .line = 1, .error = error};
    const char *newline = at != NULL ? memchr(at, '\n', r->map_length) : NULL;
    while (newline != NULL) {
        at = newline + 1;
        newline = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
        if (newline == NULL) {
            break;
        }
        d.line++;
        d.at = at;
        d.end = newline;
        if (read_line(&d) != 0) {
            return -1;
        }
    }
    r->requests = r->count;
    return 0;
}
