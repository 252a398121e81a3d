/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams and output files; see file.h. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int goal_fail(struct goal_error *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error->text, sizeof(error->text), format, args);
    va_end(args);
    return -1;
}

/* ---- Streams ---- */

int goal_stream_open(struct goal_stream *s, int fd, uint64_t at)
{
    *s = (struct goal_stream){.fd = fd, .at = at, .buffer = malloc(GOAL_STREAM_BUFFER)};
    return s->buffer != NULL ? 0 : -ENOMEM;
}

int goal_stream_append(struct goal_stream *s, int fd)
{
    int rc = goal_stream_open(s, fd, 0);
    s->sequential = true;
    return rc;
}

static void write_all(struct goal_stream *s, const uint8_t *data, size_t length)
{
    while (length > 0 && s->failed == 0) {
        ssize_t n =
            s->sequential ? write(s->fd, data, length) : pwrite(s->fd, data, length, (off_t)s->at);
        if (n < 0) {
            s->failed = errno == EINTR ? 0 : errno;
            continue;
        }
        data += n;
        length -= (size_t)n;
        s->at += (uint64_t)n;
    }
}

void goal_stream_flush(struct goal_stream *s)
{
    write_all(s, s->buffer, s->used);
    s->used = 0;
}

void goal_stream_long(struct goal_stream *s, const void *data, size_t length)
{
    goal_stream_flush(s);
    if (length >= GOAL_STREAM_BUFFER) {
        write_all(s, data, length);
        return;
    }
    memcpy(s->buffer, data, length);
    s->used = length;
}

int goal_stream_close(struct goal_stream *s)
{
    if (s->buffer != NULL) {
        goal_stream_flush(s);
    }
    free(s->buffer);
    s->buffer = NULL;
    return -s->failed;
}

/* ---- Output files ---- */

static int output_failed(struct goal_output *o, struct goal_error *error)
{
    int rc = goal_fail(error, "%s: cannot write it: %s", o->path != NULL ? o->path : "output",
                       strerror(errno));
    goal_output_discard(o);
    return rc;
}

int goal_output_open(struct goal_output *o, const char *path, struct goal_error *error)
{
    struct stat st;
    *o = (struct goal_output){.fd = -1};
    if (strcmp(path, "-") == 0) {
        return goal_fail(error, "-: this must go to a file that can be written anywhere, which "
                                "standard output need not be");
    }
    o->path = strdup(path);
    if (o->path == NULL) {
        return output_failed(o, error);
    }
    if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) {
        o->fd = open(path, O_RDWR | O_CLOEXEC);
        return o->fd >= 0 ? 0 : output_failed(o, error);
    }
    if (asprintf(&o->partial, "%s.%ld.partial", path, (long)getpid()) < 0) {
        o->partial = NULL;
        return output_failed(o, error);
    }
    o->fd = open(o->partial, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    return o->fd >= 0 ? 0 : output_failed(o, error);
}

int goal_output_commit(struct goal_output *o, struct goal_error *error)
{
    if (o->partial != NULL && rename(o->partial, o->path) != 0) {
        return output_failed(o, error);
    }
    int rc = close(o->fd);
    o->fd = -1;
    free(o->partial);
    o->partial = NULL;
    if (rc != 0) {
        return output_failed(o, error);
    }
    goal_output_discard(o);
    return 0;
}

void goal_output_discard(struct goal_output *o)
{
    if (o->fd >= 0) {
        close(o->fd);
    }
    if (o->partial != NULL) {
        unlink(o->partial);
    }
    free(o->partial);
    free(o->path);
    *o = (struct goal_output){.fd = -1};
}

int goal_write_text(int fd, goal_writing *write, void *context, struct goal_error *error)
{
    struct goal_stream out;
    if (goal_stream_append(&out, fd) != 0) {
        return goal_fail(error, "no memory");
    }
    int rc = write(context, -1, &out, error);
    int closed = goal_stream_close(&out);
    return rc == 0 && closed != 0 ? goal_fail(error, "cannot write: %s", strerror(-closed)) : rc;
}

int goal_write(const char *path, bool as_text, goal_writing *write, void *context,
               struct goal_error *error)
{
    struct goal_output o;
    if (goal_writes_out(path, as_text)) {
        return goal_write_text(STDOUT_FILENO, write, context, error);
    }
    if (goal_output_open(&o, path, error) != 0) {
        return -1;
    }
    int rc =
        as_text ? goal_write_text(o.fd, write, context, error) : write(context, o.fd, NULL, error);
    if (rc == 0) {
        return goal_output_commit(&o, error);
    }
    goal_output_discard(&o);
    return -1;
}

int goal_temporary(struct goal_error *error)
{
    const char *folder = getenv("TMPDIR");
    if (folder == NULL || *folder == '\0') {
        folder = "/var/tmp";
    }
    char path[4096];
    if (snprintf(path, sizeof(path), "%s/pinwheel-goal-XXXXXX", folder) >= (int)sizeof(path)) {
        return goal_fail(error, "TMPDIR is too long: %zu bytes", strlen(folder));
    }
    int fd = mkostemp(path, O_CLOEXEC);
    if (fd < 0) {
        return goal_fail(error, "%s: cannot create a temporary file: %s; TMPDIR names the folder",
                         folder, strerror(errno));
    }
    unlink(path);
    return fd;
}
