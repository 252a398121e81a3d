/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel hpu gdb`: runs a handler under GDB (src/hpu/rv32/gdb.h). It speaks GDB's protocol over
 * standard input and output, as `target remote | pinwheel hpu gdb ...` expects, or over a socket.
 * The socket is one of this machine only, since everybody who can connect to it controls the
 * handler. All other output goes to stderr.
 */
#include "commands.h"

#include "base/number.h"
#include "hpu/rv32/gdb.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

static const struct args_option gdb_options[] = {
    HPU_SETUP_OPTION_ROWS,
    {"--listen", "WHERE",
     "wait for GDB on a port of 127.0.0.1 (0: any) or, if there is a / in it, on a socket of that "
     "name; default: standard input and output",
     ARGS_TEXT, HPU_AT(own[0])},
};

struct ends {
    int in, out;
};

static long read_link(void *context, void *bytes, size_t room, bool wait)
{
    const struct ends *e = context;
    struct pollfd p = {.fd = e->in, .events = POLLIN};
    int ready;
    do {
        ready = poll(&p, 1, wait ? -1 : 0);
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0) {
        return -1;
    }
    ssize_t n = read(e->in, bytes, room);
    return n < 0 ? 0 : n;
}

static bool write_link(void *context, const void *bytes, size_t size)
{
    const struct ends *e = context;
    const char *at = bytes;
    while (size > 0) {
        ssize_t n = write(e->out, at, size);
        if (n < 0 && errno != EINTR) {
            return false;
        }
        at += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* ---- Sockets ---- */

static int fail(const char *where, const char *why)
{
    fprintf(stderr, "pinwheel hpu gdb: --listen %s: %s\n", where, why);
    return -1;
}

static int listen_port(const char *where)
{
    int64_t port;
    if (!number_read(where, 0, 65535, &port)) {
        return fail(where, "must be a port from 0 to 65535, or a path with a / in it");
    }
    struct sockaddr_in at = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(at);
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, (struct sockaddr *)&at, size) != 0 || listen(fd, 1) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &size) != 0) {
        fail(where, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    fprintf(stderr, "in GDB: target remote 127.0.0.1:%u\n", ntohs(at.sin_port));
    return fd;
}

/* Listens on a Unix socket. No file may have its name yet, and only its owner may connect. */
static int listen_path(const char *where)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(where) >= sizeof(at.sun_path)) {
        return fail(where, "is too long for the name of a socket");
    }
    memcpy(at.sun_path, where, strlen(where) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || fchmod(fd, 0600) != 0 || bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 ||
        listen(fd, 1) != 0) {
        fail(where, strerror(errno));
        if (fd >= 0) {
            close(fd);
        }
        return -1;
    }
    fprintf(stderr, "in GDB: target remote %s\n", where);
    return fd;
}

/* Waits until GDB connects, and returns the connection. */
static int await(const char *where)
{
    bool path = strchr(where, '/') != NULL;
    int listener = path ? listen_path(where) : listen_port(where);
    if (listener < 0) {
        return -1;
    }
    int fd;
    do {
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    } while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        fail(where, strerror(errno));
    }
    close(listener);
    if (path) {
        unlink(where);
    }
    return fd;
}

/* ---- The command ---- */

struct session {
    struct rv32_gdb gdb;
    enum rv32_gdb_end end;
};

static const struct rv32_result *run_core(void *context, struct rv32_core *core,
                                          const struct rv32_call *call)
{
    struct session *s = context;
    s->gdb.core = core;
    s->end = rv32_gdb_call(&s->gdb, call);
    return &core->result;
}

static int debug(struct hpu_job *j, struct args *a)
{
    const char *where = j->own[0];
    struct ends ends = {STDIN_FILENO, STDOUT_FILENO};
    if (hpu_job_open(j, "gdb") != 0) {
        return 1;
    }
    if (where != NULL && (ends.in = ends.out = await(where)) < 0) {
        return 1;
    }
    signal(SIGPIPE, SIG_IGN);
    j->handler.aloud = true;
    struct gdb_link link = {.read = read_link, .write = write_link, .context = &ends};
    struct session session = {
        .gdb = {.image = &j->code.image, .lines = &j->code.lines, .link = &link},
        .end = RV32_GDB_FAILED};
    const struct rv32_result *r = hpu_job_run(j, "gdb", run_core, &session);
    enum rv32_gdb_end end = session.end;
    if (where != NULL) {
        close(ends.in);
    }
    if (r == NULL) {
        return 1;
    }
    if (end == RV32_GDB_FAILED) {
        fprintf(stderr, "pinwheel hpu gdb: no memory\n");
        return 1;
    }
    if (end == RV32_GDB_KILLED) {
        return 0;
    }
    if (end == RV32_GDB_DETACHED || where != NULL) { /* else GDB has told the user */
        struct rv32_error text;
        hpu_job_text(j, r, &text);
        fprintf(stderr, "%s\n", text.text);
    }
    return r->end == RV32_RETURNED ? 0 : 1;
}

int hpu_command_gdb(int argc, char **argv)
{
    struct args a = {
        .command = "hpu gdb",
        .operands = "IMAGE",
        .summary = "Runs one handler, or function, of an image for RV32 under GDB, which finds it "
                   "at its first\ninstruction:\n\n"
                   "    gdb-multiarch -ex 'target remote | pinwheel hpu gdb "
                   "--handler NAME IMAGE' IMAGE",
        ARGS_OPTIONS(gdb_options)};
    return hpu_job_command(&a, argc, argv, debug);
}
