/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens schedules. A binary file is mapped; text is compiled to a temporary file, which is mapped.
 * So code that walks a schedule needs to know the binary form only.
 */
#include "read.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- Files as text ---- */

/* Copies the data from a pipe to a file without a name, and returns the file's descriptor. */
static int copy_pipe(int from, const char *name, struct goal_error *error)
{
    int to = goal_temporary(error);
    struct goal_stream s;
    char buffer[65536];
    ssize_t n;
    if (to < 0) {
        return -1;
    }
    if (goal_stream_open(&s, to, 0) != 0) {
        close(to);
        return goal_fail(error, "%s: no memory", name);
    }
    while ((n = read(from, buffer, sizeof(buffer))) > 0 || (n < 0 && errno == EINTR)) {
        goal_stream_put(&s, buffer, n > 0 ? (size_t)n : 0);
    }
    int read_errno = n < 0 ? errno : 0, rc = goal_stream_close(&s);
    if (read_errno != 0 || rc != 0) {
        close(to);
        return goal_fail(error, "%s: cannot copy it to a temporary file: %s", name,
                         strerror(read_errno != 0 ? read_errno : -rc));
    }
    return to;
}

int goal_text_open_fd(struct goal_text *t, int fd, const char *name, struct goal_error *error)
{
    struct stat st;
    *t = (struct goal_text){.name = name, .fd = fd, .at = ""};
    if (fstat(fd, &st) != 0) {
        return goal_fail(error, "%s: %s", name, strerror(errno));
    }
    if (S_ISDIR(st.st_mode)) {
        return goal_fail(error, "%s: is a folder, not a schedule", name);
    }
    t->length = (size_t)st.st_size;
    if (t->length == 0) {
        return 0;
    }
    void *map = mmap(NULL, t->length, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        return goal_fail(error, "%s: cannot map its %zu bytes: %s", name, t->length,
                         strerror(errno));
    }
    madvise(map, t->length, MADV_SEQUENTIAL);
    t->at = map;
    return 0;
}

int goal_text_open(struct goal_text *t, const char *path, struct goal_error *error)
{
    bool standard = strcmp(path, "-") == 0;
    const char *name = standard ? "standard input" : path;
    struct stat st;
    int fd = standard ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) {
        int code = errno;
        if (fd >= 0) {
            close(fd);
        }
        return goal_fail(error, "%s: cannot open it: %s", name, strerror(code));
    }
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) {
        int copy = copy_pipe(fd, name, error);
        close(fd);
        fd = copy;
        if (fd < 0) {
            return -1;
        }
    }
    if (goal_text_open_fd(t, fd, name, error) != 0) {
        close(fd);
        return -1;
    }
    return 0;
}

void goal_text_close(struct goal_text *t)
{
    if (t->length > 0 && t->at != NULL) {
        munmap((void *)t->at, t->length);
    }
    if (t->fd >= 0) {
        close(t->fd);
    }
    *t = (struct goal_text){.fd = -1};
}

/* ---- Schedules ---- */

static uint64_t cookie_of(const struct goal_text *t)
{
    uint64_t cookie = 0;
    memcpy(&cookie, t->at, t->length < 8 ? t->length : 8);
    return cookie;
}

/* Refuses a file that is neither text nor a schedule, with an error that names its kind. */
static int refuse_others(const struct goal_text *t, struct goal_error *error)
{
    if (cookie_of(t) == GOAL_COOKIE_SPENT) {
        return goal_fail(error,
                         "%s: its cookie is %d: LogGOPSim ran it with --save-mem, which destroys a "
                         "schedule; compile it again",
                         t->name, GOAL_COOKIE_SPENT);
    }
    if (memchr(t->at, '\0', t->length < 4096 ? t->length : 4096) != NULL) {
        return goal_fail(error,
                         "%s: neither GOAL text nor a binary schedule: begins with %" PRIu64
                         ", not with the cookie %d",
                         t->name, cookie_of(t), GOAL_COOKIE);
    }
    return 0;
}

/* Maps the binary schedule in `fd`. */
static int map_binary(struct goal *g, int fd, const char *name, struct goal_error *error)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return goal_fail(error, "%s: %s", name, strerror(errno));
    }
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (map == MAP_FAILED) {
        return goal_fail(error, "%s: cannot map its %lld bytes: %s", name, (long long)st.st_size,
                         strerror(errno));
    }
    g->map = map;
    g->map_length = (size_t)st.st_size;
    return goal_check(g, map, g->map_length, name, error);
}

static int open_text(struct goal *g, const struct goal_text *t, unsigned flags,
                     struct goal_error *error)
{
    struct goal_made made;
    if (refuse_others(t, error) != 0) {
        return -1;
    }
    int fd = goal_temporary(error);
    if (fd < 0) {
        return -1;
    }
    int rc = goal_compile(t, flags, fd, -1, &made, error);
    rc = rc == 0 ? map_binary(g, fd, t->name, error) : rc;
    close(fd);
    g->flags = flags;
    g->text_fd = rc == 0 ? dup(t->fd) : -1;
    return rc;
}

int goal_open(struct goal *g, const char *path, unsigned flags, struct goal_error *error)
{
    struct goal_text t = {.name = path, .fd = -1, .at = ""};
    *g = (struct goal){.text_fd = -1};
    if (goal_text_open(&t, path, error) != 0) {
        return -1;
    }
    int rc = t.length >= 8 && cookie_of(&t) == GOAL_COOKIE ? map_binary(g, t.fd, t.name, error)
                                                           : open_text(g, &t, flags, error);
    if (rc == 0 && (g->path = strdup(t.name)) == NULL) {
        rc = goal_fail(error, "%s: no memory", t.name);
    }
    goal_text_close(&t);
    if (rc != 0) {
        goal_close(g);
    }
    return rc;
}

int goal_open_image(struct goal *g, const void *image, size_t length, const char *name,
                    struct goal_error *error)
{
    *g = (struct goal){.text_fd = -1};
    if (goal_check(g, image, length, name, error) != 0) {
        return -1;
    }
    g->map_length = length;
    return 0;
}

void goal_close(struct goal *g)
{
    goal_side_free(g->side);
    if (g->map != NULL) {
        munmap(g->map, g->map_length);
    }
    if (g->text_fd >= 0) {
        close(g->text_fd);
    }
    free(g->path);
    *g = (struct goal){.text_fd = -1};
}

/* ---- Places ---- */

/* Makes the labels and lines of a schedule that was opened as text, at the first goal_locate(): it
 * compiles the text again, this time with a side file. If the text has changed since, the side file
 * does not belong to `g`, and is not loaded. */
static struct goal_side *side_of_text(const struct goal *g)
{
    struct goal_error error = {.text = ""};
    struct goal_made made;
    struct goal_text t = {.fd = -1};
    struct goal_side *side = NULL;
    int text = dup(g->text_fd), bin = goal_temporary(&error), labels = goal_temporary(&error);
    if (text >= 0 && bin >= 0 && labels >= 0 && goal_text_open_fd(&t, text, g->path, &error) == 0 &&
        goal_compile(&t, g->flags, bin, labels, &made, &error) == 0) {
        side = goal_side_load(g, g->path, labels);
    }
    if (t.length > 0) {
        munmap((void *)t.at, t.length);
    }
    for (int i = 0, fds[] = {text, bin, labels}; i < 3; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
    }
    return side;
}

bool goal_locate(struct goal *g, uint32_t rank, uint32_t node, struct goal_place *place)
{
    if (!g->side_sought && g->path != NULL && g->text_fd >= 0) {
        g->side = side_of_text(g);
    } else if (!g->side_sought && g->path != NULL) {
        char *path = goal_side_path(g->path);
        g->side = path != NULL ? goal_side_load(g, path, -1) : NULL;
        free(path);
    }
    g->side_sought = true;
    return g->side != NULL && goal_side_find(g->side, g, rank, node, place);
}
