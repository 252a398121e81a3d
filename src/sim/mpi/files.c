/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds and maps the files of a recording. In a file of our own recorder the first line has the
 * rank and the number of ranks. A file of liballprof begins with a comment that names liballprof,
 * and the rank is the last number in the file's name.
 */
#include "trace.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char own_head[] = "pinwheel-mpi-trace ";
static const char *const allprof_heads[] = {"# htor's PMPI Tracer", "# collprof "};

enum { HEAD = 256 };

/* ---- What the readers share ---- */

int mpi_fail(const struct mpi_rank *r, uint64_t line, struct goal_error *error, const char *format,
             ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    return goal_fail(error, "%s:%" PRIu64 ": %s", r->path, line, text);
}

bool mpi_add_number(struct mpi_rank *r, int64_t number)
{
    if (!ARRAY_ROOM(r->numbers, r->number_count, r->number_room, MPI_ROOM) ||
        r->calls[r->count - 1].count == UINT32_MAX) {
        return false;
    }
    r->numbers[r->number_count++] = number;
    r->calls[r->count - 1].count++;
    return true;
}

bool mpi_add_call(struct mpi_rank *r, const struct mpi_call *call)
{
    if (!ARRAY_ROOM(r->calls, r->count, r->room, MPI_ROOM)) {
        return false;
    }
    r->calls[r->count] = *call;
    r->calls[r->count].first = r->number_count;
    r->calls[r->count++].count = 0;
    return true;
}

/* ---- Which files ---- */

struct found {
    char *path;
    uint64_t rank;
    uint64_t size; /* number of ranks, as the file says; 0: it does not, as with liballprof */
};

struct list {
    struct found *at;
    uint64_t count, room;
    bool own, allprof;
};

static bool starts_with(const char *text, const char *head)
{
    return strncmp(text, head, strlen(head)) == 0;
}

/* Reads the last number in a file's name. */
static bool number_in_name(const char *path, uint64_t *number)
{
    const char *name = strrchr(path, '/') + 1, *end = name + strlen(name);
    while (end > name && (end[-1] < '0' || end[-1] > '9')) {
        end--;
    }
    const char *begin = end;
    while (begin > name && begin[-1] >= '0' && begin[-1] <= '9') {
        begin--;
    }
    *number = begin < end ? strtoull(begin, NULL, 10) : 0;
    return begin < end;
}

static int recognise(struct list *l, struct found *f, const char *head, struct goal_error *error)
{
    int version, end = 0;
    if (starts_with(head, own_head)) {
        if (sscanf(head, "pinwheel-mpi-trace %d %" SCNu64 " %" SCNu64 "%n", &version, &f->rank,
                   &f->size, &end) != 3 ||
            head[end] != '\n' || f->size == 0 || f->size >= GOAL_ANY || f->rank >= f->size) {
            return goal_fail(error, "%s:1: is not \"pinwheel-mpi-trace 1 RANK RANKS\"", f->path);
        }
        if (version != 1) {
            return goal_fail(error, "%s:1: is of version %d; this reads version 1", f->path,
                             version);
        }
        l->own = true;
        return 0;
    }
    for (size_t i = 0; i < sizeof(allprof_heads) / sizeof(allprof_heads[0]); i++) {
        if (starts_with(head, allprof_heads[i])) {
            l->allprof = true;
            return number_in_name(f->path, &f->rank)
                       ? 0
                       : goal_fail(error, "%s: has no rank in its name", f->path);
        }
    }
    return goal_fail(error,
                     "%s: is no recording: neither of Pinwheel (`pinwheel goal record`) nor of "
                     "liballprof",
                     f->path);
}

static int look_at(struct list *l, const char *path, struct goal_error *error)
{
    char head[HEAD + 1] = "";
    if (!ARRAY_ROOM(l->at, l->count, l->room, MPI_ROOM)) {
        return goal_fail(error, "no memory");
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, head, HEAD) : -1;
    int code = errno;
    if (fd >= 0) {
        close(fd);
    }
    if (n < 0) {
        return goal_fail(error, "%s: %s", path, strerror(code));
    }
    head[n] = '\0';
    struct found *f = &l->at[l->count];
    *f = (struct found){.path = strdup(path)};
    if (f->path == NULL) {
        return goal_fail(error, "no memory");
    }
    l->count++;
    return recognise(l, f, head, error);
}

static int read_folder(struct list *l, const char *folder, struct goal_error *error)
{
    DIR *d = opendir(folder);
    if (d == NULL) {
        return goal_fail(error, "%s: %s", folder, strerror(errno));
    }
    int rc = 0;
    for (struct dirent *e = readdir(d); e != NULL && rc == 0; e = readdir(d)) {
        char path[4096];
        if (e->d_name[0] == '.') {
            continue;
        }
        int n = snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
        rc = n > 0 && (size_t)n < sizeof(path)
                 ? look_at(l, path, error)
                 : goal_fail(error, "%s: a name too long for a file", folder);
    }
    closedir(d);
    return rc;
}

static int by_rank(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static int check_list(const struct list *l, const char *folder, struct goal_error *error)
{
    if (l->count == 0) {
        return goal_fail(error,
                         "%s: has no recording. Did the program call MPI_Init, and was it run by "
                         "`pinwheel goal record`?",
                         folder);
    }
    if (l->own && l->allprof) {
        return goal_fail(error, "%s: has recordings of Pinwheel and of liballprof", folder);
    }
    for (uint64_t i = 0; i < l->count; i++) {
        const struct found *f = &l->at[i];
        if (i > 0 && f->rank == f[-1].rank) {
            return goal_fail(error, "%s: is of rank %" PRIu64 ", as %s is", f->path, f->rank,
                             f[-1].path);
        }
        if (f->rank != i) {
            return goal_fail(error, "%s: rank %" PRIu64 " is missing", folder, i);
        }
        if (l->own && f->size != l->at[0].size) {
            return goal_fail(error, "%s: is of a run of %" PRIu64 " ranks, %s of one of %" PRIu64,
                             f->path, f->size, l->at[0].path, l->at[0].size);
        }
    }
    if (l->own && l->at[0].size != l->count) {
        return goal_fail(error, "%s: rank %" PRIu64 " is missing, of %" PRIu64, folder, l->count,
                         l->at[0].size);
    }
    return 0;
}

int mpi_open(struct mpi_trace *t, const char *folder, struct goal_error *error)
{
    struct list l = {0};
    *t = (struct mpi_trace){0};
    int rc = read_folder(&l, folder, error);
    if (rc == 0) {
        if (l.count > 0) {
            qsort(l.at, l.count, sizeof(*l.at), by_rank);
        }
        rc = check_list(&l, folder, error);
    }
    if (rc == 0) {
        t->ranks = (uint32_t)l.count;
        t->allprof = l.allprof;
        t->paths = calloc(l.count + 1, sizeof(*t->paths));
        t->any_tag = calloc(l.count + 1, 1);
        t->one_tag = calloc(l.count + 1, 1);
        rc = t->paths != NULL && t->any_tag != NULL && t->one_tag != NULL
                 ? 0
                 : goal_fail(error, "no memory");
    }
    for (uint64_t i = 0; i < l.count; i++) {
        if (rc == 0 && t->paths != NULL) {
            t->paths[i] = l.at[i].path;
        } else {
            free(l.at[i].path);
        }
    }
    free(l.at);
    if (rc != 0) {
        free(t->paths);
        free(t->any_tag);
        free(t->one_tag);
    }
    return rc;
}

static void free_group(struct mpi_group *g)
{
    free(g->members);
    free(g->comms);
    free(g);
}

void mpi_close(struct mpi_trace *t)
{
    for (uint32_t i = 0; i < t->ranks; i++) {
        free(t->paths[i]);
    }
    for (int i = 0; i < MPI_GROUP_BUCKETS; i++) {
        for (struct mpi_group *g = t->groups[i], *next; g != NULL; g = next) {
            next = g->next;
            free_group(g);
        }
    }
    for (uint64_t i = 0; i < t->comm_count; i++) {
        free(t->comms[i].steps);
        free(t->comms[i].persistents);
        free(t->comms[i].grown);
    }
    free(t->paths);
    free(t->comms);
    free(t->any_tag);
    free(t->one_tag);
}

/* ---- A rank ---- */

static int map(struct mpi_rank *r, struct goal_error *error)
{
    struct stat s;
    int fd = open(r->path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &s) != 0) {
        int code = errno;
        if (fd >= 0) {
            close(fd);
        }
        return goal_fail(error, "%s: %s", r->path, strerror(code));
    }
    r->map_length = (size_t)s.st_size;
    r->map = s.st_size > 0 ? mmap(NULL, r->map_length, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;
    int code = errno;
    close(fd);
    if (r->map == MAP_FAILED) {
        r->map = NULL;
        return goal_fail(error, "%s: %s", r->path, strerror(code));
    }
    return 0;
}

int mpi_load(struct mpi_trace *t, uint32_t rank, struct mpi_rank *r, struct goal_error *error)
{
    *r = (struct mpi_rank){.rank = rank, .path = t->paths[rank]};
    mpi_forget_seen(t);
    /* room for one number, so that calls without numbers have an address, too */
    if (!ARRAY_HOLDS(r->numbers, 1, r->number_room, MPI_ROOM)) {
        return goal_fail(error, "%s: no memory", r->path);
    }
    if (map(r, error) != 0 ||
        (t->allprof ? mpi_read_allprof(t, r, error) : mpi_read_lines(t, r, error)) != 0) {
        return -1;
    }
    return mpi_resolve(t, r, error);
}

void mpi_unload(struct mpi_rank *r)
{
    if (r->map != NULL) {
        munmap(r->map, r->map_length);
    }
    free(r->calls);
    free(r->numbers);
    *r = (struct mpi_rank){0};
}
