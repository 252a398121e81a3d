/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the ranks of an agent; see agent_start.h. */
#include "agent_start.h"

#include "boot/pmi_server.h"
#include "launch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

void agent_say(struct agent *a, enum frame_type type, int rank, const void *bytes, size_t length)
{
    if (!a->gone && !frames_put(&a->out, type, a->spawn.first + rank, bytes, length)) {
        a->gone = true; /* memory is too short to tell the launcher: as if it was gone */
    }
}

void agent_say_numbers(struct agent *a, enum frame_type type, int rank, int first, int second,
                       int count)
{
    if (!a->gone && !frames_put_numbers(&a->out, type, a->spawn.first + rank, (uint32_t)first,
                                        (uint32_t)second, count)) {
        a->gone = true;
    }
}

/* Tells the launcher which step of a rank's start has failed, with which errno. */
static void say_failed(struct agent *a, int rank, int error, const char *what)
{
    uint8_t bytes[68];
    uint32_t number = htonl((uint32_t)error);
    size_t length = strnlen(what, sizeof(bytes) - sizeof(number));
    memcpy(bytes, &number, sizeof(number));
    memcpy(bytes + sizeof(number), what, length);
    agent_say(a, FRAME_FAILED, rank, bytes, sizeof(number) + length);
}

bool texts_add(struct texts *t, const struct frame *f)
{
    char **at = reallocarray(t->at, (size_t)t->count + 2, sizeof(*at));
    if (at == NULL) {
        return false;
    }
    t->at = at;
    at[t->count] = strndup((const char *)f->bytes, f->length);
    at[t->count + 1] = NULL;
    return at[t->count++] != NULL;
}

bool texts_set(char **text, const struct frame *f)
{
    free(*text);
    *text = strndup((const char *)f->bytes, f->length);
    return *text != NULL;
}

void texts_free(struct texts *t)
{
    for (int i = 0; i < t->count; i++) {
        free(t->at[i]);
    }
    free(t->at);
}

void close_end(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

static void start_rank(struct agent *a, int i, int null)
{
    int pmi[2] = {-1, -1}, out[2] = {-1, -1}, err[2] = {-1, -1}, in[2] = {-1, -1};
    struct rank *r = &a->ranks[i];
    bool first = a->spawn.first + i == 0;
    const char *what = "making its pipes";
    int rc = 0;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pmi) != 0 ||
        pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0 ||
        (first && pipe2(in, O_CLOEXEC) != 0)) {
        rc = -errno;
    } else {
        struct spawn_ends ends = {first ? in[0] : null, out[1], err[1], pmi[1]};
        rc = children_start(&a->children, &a->spawn, a->spawn.first + i, &ends, &what);
    }
    const int ours[SOURCES] = {pmi[0], out[0], err[0]}, theirs[] = {pmi[1], out[1], err[1], in[0]};
    memcpy(r->fd, ours, sizeof(ours));
    for (int s = 0; s < SOURCES; s++) {
        fcntl(r->fd[s], F_SETFL, O_NONBLOCK);
    }
    for (int s = 0; s < 4; s++) {
        close_end(theirs[s]);
    }
    if (first) {
        a->input = in[1];
        fcntl(a->input, F_SETFL, O_NONBLOCK);
    }
    if (rc == 0) {
        agent_say(a, FRAME_STARTED, i, NULL, 0);
    } else {
        say_failed(a, i, -rc, what);
    }
}

/* Starts the ranks. If one fails it starts no more; the launcher then ends those that run. */
static void start_ranks(struct agent *a)
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int i = 0; i < a->count; i++) {
        for (int s = 0; s < SOURCES; s++) {
            a->ranks[i].fd[s] = -1;
        }
    }
    for (int i = 0; i < a->count; i++) {
        start_rank(a, i, null);
    }
    close(null);
}

static void fail_folder(struct agent *a, int error)
{
    for (int i = 0; i < a->count; i++) {
        say_failed(a, i, error, "chdir");
    }
    a->count = 0;
}

bool agent_start(struct agent *a, const struct frame *f)
{
    uint32_t size = frames_number(f, 0), flags = frames_number(f, 1);
    uint32_t count = flags & ~(FRAME_BIND_CORES | FRAME_BIND_HOMES);
    if (a->ranks != NULL || a->words.count == 0 || a->key == NULL || a->id == NULL || count < 1 ||
        size > PMI_RANKS_MAX || count > size || (uint32_t)f->rank > size - count) {
        return false;
    }
    a->count = (int)count;
    a->ranks = calloc(count, sizeof(*a->ranks));
    struct pollfd *fds = reallocarray(a->fds, fds_room((int)count), sizeof(*fds));
    if (fds != NULL) {
        a->fds = fds;
    }
    struct spawn *s = &a->spawn;
    s->argv = a->words.at;
    s->environment = a->environment.at;
    s->environment_count = a->environment.count;
    s->size = (int)size;
    s->first = f->rank;
    s->job_key = a->key;
    s->job_id = a->id;
    if ((flags & FRAME_BIND_CORES) != 0 && sched_getaffinity(0, sizeof(a->cores), &a->cores) == 0) {
        s->cores = &a->cores;
    } else if ((flags & FRAME_BIND_HOMES) != 0) {
        cores_claim(&a->homes, a->count);
        s->home = a->homes.home;
    }
    if (a->ranks == NULL || fds == NULL || children_open(&a->children, a->count, s) != 0) {
        return false;
    }
    if (a->folder != NULL && chdir(a->folder) != 0) {
        fail_folder(a, errno);
        return true;
    }
    start_ranks(a);
    return true;
}
