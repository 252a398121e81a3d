/* SPDX-License-Identifier: BSD-3-Clause */
/* What ranks write, in the order of virtual time; see lines.h. */
#include "lines.h"

#include "pinwheel/launch/relay.h"

#include "base/array.h"
#include "base/heap.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 65536, EVENTS = 64, LOOK_MS = 100 };

/* A pipe, and what came of it that has no time yet. */
struct source {
    int fd; /* -1: it is over, or there is none */
    uint32_t rank;
    uint8_t stream; /* 0: standard output, 1: error */
    char *bytes;
    size_t length, capacity;
    size_t whole; /* bytes of these that end with a line */
};

/* Some lines of a rank. */
struct piece {
    uint64_t time, serial;
    uint32_t rank;
    uint8_t stream;
    bool labelled;
    char *bytes;
    size_t length;
};

struct lines {
    pthread_mutex_t lock; /* of all but `broken`, which the caller of lines_print() has */
    pthread_t thread;
    int epoll, wake;
    bool label, over;
    bool broken[2], short_of_memory;
    uint32_t ranks;
    uint64_t serial;
    struct piece *pieces; /* a heap */
    size_t count, capacity;
    _Atomic uint32_t **heard; /* by rank */
    struct source source[];   /* two of each rank */
};

static bool piece_before(const struct piece *a, const struct piece *b, const void *of)
{
    if (a->time != b->time) {
        return a->time < b->time;
    }
    return a->rank != b->rank ? a->rank < b->rank : a->serial < b->serial;
}

HEAP_OF(pieces, struct piece, 4, piece_before)

/* ---- reading ---- */

static void end_source(struct source *s)
{
    if (s->fd >= 0) {
        close(s->fd);
        s->fd = -1;
    }
}

/* Reads once, and notes where the last line ends; false: there is nothing now. */
static bool read_once(struct lines *l, struct source *s)
{
    if (s->fd < 0) {
        return false;
    }
    if (!ARRAY_HOLDS(s->bytes, s->length + CHUNK, s->capacity, CHUNK)) {
        l->short_of_memory = true;
        end_source(s);
        return false;
    }
    ssize_t n = read(s->fd, s->bytes + s->length, CHUNK);
    if (n > 0) {
        const char *end = memrchr(s->bytes + s->length, '\n', (size_t)n);
        s->length += (size_t)n;
        s->whole = end != NULL ? (size_t)(end - s->bytes) + 1 : s->whole;
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        end_source(s);
    }
    return n > 0;
}

/* Whether there is something in a pipe. Only then may the rank be told that it was heard: it hands
 * its turn over for that, which is not to depend on real time. */
static bool has_some(const struct source *s)
{
    int bytes = 0;
    return s->fd >= 0 && ioctl(s->fd, FIONREAD, &bytes) == 0 && bytes != 0;
}

static void hear(struct lines *l, uint32_t rank)
{
    for (int i = 0; i < 2; i++) {
        while (read_once(l, &l->source[2 * rank + (uint32_t)i])) {
        }
    }
}

void lines_hear(struct lines *l, uint32_t rank)
{
    pthread_mutex_lock(&l->lock);
    if (has_some(&l->source[2 * rank]) || has_some(&l->source[2 * rank + 1])) {
        atomic_store(l->heard[rank], 1);
        hear(l, rank);
    }
    pthread_mutex_unlock(&l->lock);
}

/* Reads what comes, so that no rank waits for room in a pipe. */
static void *read_all(void *lines)
{
    struct lines *l = lines;
    struct epoll_event events[EVENTS];
    bool over = false;
    while (!over) {
        int n = epoll_wait(l->epoll, events, EVENTS, -1);
        pthread_mutex_lock(&l->lock);
        for (int i = 0; i < n; i++) {
            struct source *s = events[i].data.ptr;
            if (s == NULL) {
                continue;
            }
            if (has_some(s)) {
                atomic_store(l->heard[s->rank], 1);
            }
            read_once(l, s); /* also where the pipe has ended */
        }
        over = l->over;
        pthread_mutex_unlock(&l->lock);
    }
    return NULL;
}

/* ---- lines with their times ---- */

/* Makes a piece of the first bytes of a source. */
static void take(struct lines *l, struct source *s, size_t length, uint64_t time)
{
    struct piece p = {.time = time,
                      .serial = l->serial++,
                      .rank = s->rank,
                      .stream = s->stream,
                      .bytes = malloc(length),
                      .length = length};
    if (p.bytes == NULL || !ARRAY_ROOM(l->pieces, l->count, l->capacity, 64)) {
        l->short_of_memory = true;
        free(p.bytes);
    } else {
        memcpy(p.bytes, s->bytes, length);
        pieces_rise(l->pieces, l->count++, &p, NULL);
    }
    memmove(s->bytes, s->bytes + length, s->length - length);
    s->length -= length;
    s->whole = 0;
    if (s->length == 0) {
        free(s->bytes); /* most ranks write little, and there may be thousands */
        s->bytes = NULL;
        s->capacity = 0;
    }
}

static void stamp(struct lines *l, uint32_t rank, uint64_t time, bool ends)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct source *s = &l->source[2 * rank + i];
        if (s->whole != 0) {
            take(l, s, s->whole, time);
        }
        if (s->length > (ends ? 0 : RELAY_LINE_MAX)) {
            take(l, s, s->length, time);
        }
    }
}

void lines_stamp(struct lines *l, uint32_t rank, uint64_t time)
{
    pthread_mutex_lock(&l->lock);
    stamp(l, rank, time, false);
    pthread_mutex_unlock(&l->lock);
}

void lines_take(struct lines *l, uint32_t rank, uint64_t time)
{
    pthread_mutex_lock(&l->lock);
    if (l->heard[rank] != NULL) {
        hear(l, rank);
        atomic_store(l->heard[rank], 0);
    }
    stamp(l, rank, time, false);
    pthread_mutex_unlock(&l->lock);
}

/* ---- writing ---- */

/* Writes bytes to one of our streams; false: nobody reads them, or `stop`. What is left is moved to
 * the front. */
static bool write_some(struct lines *l, int stream, char *bytes, size_t *length, _Atomic bool *stop)
{
    size_t done = 0;
    while (done < *length && !l->broken[stream]) {
        struct pollfd p = {.fd = stream + 1, .events = POLLOUT};
        if (poll(&p, 1, stop != NULL ? LOOK_MS : -1) == 0) {
            if (stop != NULL && atomic_load(stop)) {
                break;
            }
            continue;
        }
        size_t most = *length - done < PIPE_BUF ? *length - done : PIPE_BUF;
        ssize_t n = write(stream + 1, bytes + done, most);
        if (n >= 0) {
            done += (size_t)n;
        } else if (errno != EAGAIN && errno != EINTR) {
            if (errno != EPIPE) {
                fprintf(stderr, "pinwheel sim: cannot write the ranks' output: %s\n",
                        strerror(errno));
            }
            l->broken[stream] = true;
        }
    }
    if (l->broken[stream]) {
        *length = 0;
        return false;
    }
    memmove(bytes, bytes + done, *length - done);
    *length -= done;
    return *length == 0;
}

/* The same piece with a label before each line. */
static bool add_labels(struct piece *p)
{
    char label[16];
    size_t n = (size_t)snprintf(label, sizeof(label), "[%u] ", p->rank), lines = 1, to = 0;
    for (size_t i = 0; i < p->length; i++) {
        lines += p->bytes[i] == '\n';
    }
    char *text = malloc(p->length + lines * (n + 1));
    if (text == NULL) {
        return false;
    }
    for (size_t i = 0; i < p->length; i++) {
        if (i == 0 || p->bytes[i - 1] == '\n') {
            memcpy(text + to, label, n);
            to += n;
        }
        text[to++] = p->bytes[i];
    }
    if (text[to - 1] != '\n') {
        text[to++] = '\n';
    }
    free(p->bytes);
    p->bytes = text;
    p->length = to;
    p->labelled = true;
    return true;
}

/* Takes the first piece if it is to be written now. */
static bool take_first(struct lines *l, uint64_t time, uint32_t rank, struct piece *p)
{
    pthread_mutex_lock(&l->lock);
    bool any = l->count != 0 && (l->pieces[0].time < time ||
                                 (l->pieces[0].time == time && l->pieces[0].rank <= rank));
    if (any) {
        *p = l->pieces[0];
        if (--l->count != 0) {
            struct piece last = l->pieces[l->count];
            pieces_sink(l->pieces, l->count, &last, NULL);
        }
    }
    pthread_mutex_unlock(&l->lock);
    return any;
}

/* Puts back what was not written. */
static void put_back(struct lines *l, const struct piece *p)
{
    pthread_mutex_lock(&l->lock);
    pieces_rise(l->pieces, l->count++, p, NULL); /* there was room before */
    pthread_mutex_unlock(&l->lock);
}

static void close_stream(struct lines *l, int stream)
{
    pthread_mutex_lock(&l->lock);
    for (uint32_t i = 0; i < l->ranks; i++) {
        end_source(&l->source[2 * i + (uint32_t)stream]);
    }
    pthread_mutex_unlock(&l->lock);
}

/* Writes a piece; false: some of it was put back. */
static bool write_piece(struct lines *l, struct piece *p, _Atomic bool *stop)
{
    bool was_broken = l->broken[p->stream];
    if (!was_broken && l->label && !p->labelled && !add_labels(p)) {
        l->short_of_memory = true;
    }
    bool all = write_some(l, p->stream, p->bytes, &p->length, stop);
    if (!was_broken && l->broken[p->stream]) {
        close_stream(l, p->stream);
    }
    if (!all && !l->broken[p->stream]) {
        put_back(l, p);
        return false;
    }
    free(p->bytes);
    return true;
}

void lines_print(struct lines *l, uint64_t time, uint32_t rank, _Atomic bool *stop)
{
    struct piece p;
    while (take_first(l, time, rank, &p) && write_piece(l, &p, stop)) {
    }
}

/* ---- begin and end ---- */

struct lines *lines_open(uint32_t ranks, bool label)
{
    struct lines *l = calloc(1, sizeof(*l) + 2 * (size_t)ranks * sizeof(l->source[0]));
    struct epoll_event e = {.events = EPOLLIN};
    if (l == NULL) {
        fprintf(stderr, "pinwheel sim: no memory for the output of %u ranks\n", ranks);
        return NULL;
    }
    *l = (struct lines){.lock = PTHREAD_MUTEX_INITIALIZER,
                        .epoll = epoll_create1(EPOLL_CLOEXEC),
                        .wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK),
                        .label = label,
                        .ranks = ranks,
                        .heard = calloc(ranks, sizeof(*l->heard))};
    for (uint32_t i = 0; i < 2 * ranks; i++) {
        l->source[i] = (struct source){.fd = -1, .rank = i / 2, .stream = i % 2};
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int rc = l->heard == NULL                                       ? ENOMEM
             : l->epoll < 0 || l->wake < 0                          ? errno
             : epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->wake, &e) != 0 ? errno
                                                                    : 0;
    rc = rc == 0 ? pthread_create(&l->thread, NULL, read_all, l) : rc;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        fprintf(stderr, "pinwheel sim: cannot read the output of ranks: %s\n", strerror(rc));
        close(l->epoll);
        close(l->wake);
        free(l->heard);
        free(l);
        return NULL;
    }
    return l;
}

int lines_add(struct lines *l, uint32_t rank, int out, int err, _Atomic uint32_t *heard,
              uint64_t pipes[2])
{
    int fd[2] = {out, err}, rc = 0;
    pthread_mutex_lock(&l->lock);
    l->heard[rank] = heard;
    for (uint32_t i = 0; i < 2; i++) {
        struct source *s = &l->source[2 * rank + i];
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
        struct stat is;
        s->fd = fd[i];
        rc |= fstat(fd[i], &is) | epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd[i], &e);
        pipes[i] = is.st_ino;
    }
    pthread_mutex_unlock(&l->lock);
    return rc;
}

void lines_close(struct lines *l)
{
    uint64_t one = 1;
    pthread_mutex_lock(&l->lock);
    l->over = true;
    pthread_mutex_unlock(&l->lock);
    if (write(l->wake, &one, sizeof(one)) == (ssize_t)sizeof(one)) {
        pthread_join(l->thread, NULL);
    }
    for (uint32_t i = 0; i < l->ranks; i++) {
        hear(l, i);
        stamp(l, i, UINT64_MAX, true);
    }
    lines_print(l, UINT64_MAX, UINT32_MAX, NULL);
    if (l->short_of_memory) {
        fprintf(stderr, "pinwheel sim: no memory for some of the ranks' output, which is lost\n");
    }
    for (uint32_t i = 0; i < 2 * l->ranks; i++) {
        end_source(&l->source[i]);
        free(l->source[i].bytes);
    }
    close(l->epoll);
    close(l->wake);
    free(l->heard);
    free(l->pieces);
    free(l);
}
