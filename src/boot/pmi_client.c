/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's side of PMI-1; see pmi_client.h.
 *
 * In PMI-1 the rank sends a line and the launcher answers with one: exchange() does both, over the
 * connection that PMI_FD names. A process without a launcher has a PMI-1 server with one rank
 * inside, instead of the connection. The answer stays in `answer` until the next exchange.
 */
#include "boot/pmi_client.h"
#include "base/sys.h"

#include "boot/pmi_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_SIZE = LAUNCHER_VALUE_SIZE };

struct pmi_client {
    int fd; /* the connection; -1: the server `alone` answers */
    struct pmi_job *alone;
    char kvsname[PMI_NAME_MAX];
    size_t received; /* bytes in `input`; those behind the first line belong to later lines */
    char input[LINE_SIZE];
    char answer[LINE_SIZE];
};

/* ---- Exchanges: a line to the server, a line back ---- */

static int wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    int rc = sys_poll(&p, 1, -1);
    return rc < 0 && rc != -EINTR ? rc : 0;
}

static int no_connection(struct launcher *l, int fd)
{
    return launcher_fail(l, -EBADF,
                         "PMI_FD=%d: no open connection to a launcher; it was closed, or the "
                         "variable was inherited from another program (unset it to run alone)",
                         fd);
}

static int broken(struct launcher *l, int error, const char *doing)
{
    if (error == EBADF) {
        return no_connection(l, ((struct pmi_client *)l->state)->fd);
    }
    return launcher_fail(l, -EPIPE, "the launcher went away while this process was %s it: %s",
                         doing, error != 0 ? strerror(error) : "connection closed");
}

static int send_all(struct launcher *l, const char *bytes, size_t length)
{
    struct pmi_client *c = l->state;
    while (length > 0) {
        ssize_t n = sys_sendto(c->fd, bytes, length, MSG_NOSIGNAL, NULL, 0);
        if (n == -EAGAIN) {
            int rc = wait_for(c->fd, POLLOUT);
            if (rc != 0) {
                return broken(l, -rc, "asking");
            }
        } else if (n < 0 && n != -EINTR) {
            return broken(l, (int)-n, "asking");
        } else if (n > 0) {
            bytes += n;
            length -= (size_t)n;
        }
    }
    return 0;
}

/* Moves the first line that was received, without its newline, to `answer`; receives until there is
 * one. */
static int receive_line(struct launcher *l)
{
    struct pmi_client *c = l->state;
    char *newline;
    while ((newline = memchr(c->input, '\n', c->received)) == NULL) {
        if (c->received == sizeof(c->input)) {
            return launcher_fail(l, -EPROTO, "the launcher sent a line longer than %d bytes",
                                 LINE_SIZE);
        }
        ssize_t n = sys_read(c->fd, c->input + c->received, sizeof(c->input) - c->received);
        if (n == -EAGAIN) {
            int rc = wait_for(c->fd, POLLIN);
            if (rc != 0) {
                return broken(l, -rc, "waiting for");
            }
        } else if (n <= 0 && n != -EINTR) {
            return broken(l, (int)-n, "waiting for");
        } else if (n > 0) {
            c->received += (size_t)n;
        }
    }
    size_t length = (size_t)(newline - c->input);
    memcpy(c->answer, c->input, length);
    c->answer[length] = '\0';
    c->received -= length + 1;
    memmove(c->input, newline + 1, c->received);
    return 0;
}

static int ask_alone(struct launcher *l, const char *bytes, size_t length)
{
    struct pmi_client *c = l->state;
    size_t n;
    pmi_feed(c->alone, 0, bytes, length);
    const char *line = pmi_output(c->alone, 0, &n);
    if (n == 0 || n > sizeof(c->answer)) {
        const char *why = pmi_error(c->alone, 0);
        return launcher_fail(l, -EPROTO, "no answer from the job's own server: %s",
                             why != NULL ? why : "this process aborted its job");
    }
    memcpy(c->answer, line, n - 1);
    c->answer[n - 1] = '\0';
    pmi_output_sent(c->alone, 0, n);
    return 0;
}

/* Copies the value of field `name` of the answer; -1 when the answer has no such field or the value
 * does not fit. */
static int answer_field(const struct pmi_client *c, const char *name, char *value, size_t size)
{
    size_t name_length = strlen(name);
    for (const char *at = c->answer; *at != '\0';) {
        at += strspn(at, " ");
        size_t length = strcspn(at, " ");
        if (length > name_length && at[name_length] == '=' && memcmp(at, name, name_length) == 0) {
            length -= name_length + 1;
            if (length >= size) {
                return -1;
            }
            memcpy(value, at + name_length + 1, length);
            value[length] = '\0';
            return 0;
        }
        at += length;
    }
    return -1;
}

static int answer_number(const struct pmi_client *c, const char *name, int *number)
{
    char text[16];
    return answer_field(c, name, text, sizeof(text)) != 0 ? -1
                                                          : launcher_number(text, INT_MIN, number);
}

/* Sends a request and receives its answer, whose command must be `expected`. *rc gets the number of
 * the answer's field rc=, or 0 if it has none. */
static int __attribute__((format(printf, 4, 5)))
exchange(struct launcher *l, const char *expected, int *rc, const char *format, ...)
{
    struct pmi_client *c = l->state;
    char line[LINE_SIZE], command[64];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(line)) {
        return launcher_fail(l, -ENAMETOOLONG, "a request of %d bytes is too long for PMI-1", n);
    }
    int result = c->alone != NULL ? ask_alone(l, line, (size_t)n) : send_all(l, line, (size_t)n);
    if (result == 0 && c->alone == NULL) {
        result = receive_line(l);
    }
    if (result != 0) {
        return result;
    }
    if (answer_field(c, "cmd", command, sizeof(command)) != 0 || strcmp(command, expected) != 0) {
        return launcher_fail(l, -EPROTO, "the launcher answered \"%.200s\" where cmd=%s was due",
                             c->answer, expected);
    }
    if (answer_number(c, "rc", rc) != 0) {
        *rc = 0;
    }
    return 0;
}

/* ---- The requests of a rank ---- */

static int client_put(struct launcher *l, const char *key, const char *value)
{
    struct pmi_client *c = l->state;
    int rc, result = exchange(l, "put_result", &rc, "cmd=put kvsname=%s key=%s value=%s\n",
                              c->kvsname, key, value);
    if (result == 0 && rc != 0) {
        char msg[128];
        if (answer_field(c, "msg", msg, sizeof(msg)) != 0) {
            snprintf(msg, sizeof(msg), "no reason given");
        }
        return launcher_fail(l, -EEXIST, "the launcher refused key \"%s\": %s", key, msg);
    }
    return result;
}

static int client_get(struct launcher *l, const char *key, char *value)
{
    struct pmi_client *c = l->state;
    int rc, result = exchange(l, "get_result", &rc, "cmd=get kvsname=%s key=%s\n", c->kvsname, key);
    if (result == 0 && rc != 0) {
        return launcher_fail(l, -ENOENT, "no rank has put key \"%s\"", key);
    }
    if (result == 0 && answer_field(c, "value", value, LAUNCHER_VALUE_SIZE) != 0) {
        return launcher_fail(l, -EPROTO, "the launcher's answer has no value: \"%.200s\"",
                             c->answer);
    }
    return result;
}

static int client_barrier(struct launcher *l)
{
    int rc, result = exchange(l, "barrier_out", &rc, "cmd=barrier_in\n");
    if (result == 0 && rc != 0) {
        result = launcher_fail(l, -EPROTO, "the launcher refused a barrier: \"%.200s\"",
                               ((struct pmi_client *)l->state)->answer);
    }
    return result;
}

/* The launcher sends no answer to an abort: it ends the processes. */
static int client_abort(struct launcher *l, int code)
{
    struct pmi_client *c = l->state;
    char line[64];
    int n = snprintf(line, sizeof(line), "cmd=abort exitcode=%d\n", code);
    if (c->alone != NULL) {
        pmi_feed(c->alone, 0, line, (size_t)n);
        return 0;
    }
    return send_all(l, line, (size_t)n);
}

static int client_leave(struct launcher *l)
{
    int rc;
    return exchange(l, "finalize_ack", &rc, "cmd=finalize\n");
}

static void client_close(struct launcher *l)
{
    struct pmi_client *c = l->state;
    if (c->fd >= 0) {
        sys_close(c->fd);
    }
    launcher_release(true);
    pmi_job_free(c->alone);
    free(c);
}

static const struct launcher_ops client_ops = {.put = client_put,
                                               .get = client_get,
                                               .barrier = client_barrier,
                                               .abort = client_abort,
                                               .leave = client_leave,
                                               .close = client_close};

/* ---- Joining ---- */

static int greet(struct launcher *l)
{
    struct pmi_client *c = l->state;
    int rc,
        result = exchange(l, "response_to_init", &rc, "cmd=init pmi_version=1 pmi_subversion=1\n");
    if (result == 0 && rc != 0) {
        return launcher_fail(l, -EPROTO, "the launcher does not speak PMI version 1: \"%.200s\"",
                             c->answer);
    }
    if (result == 0) {
        result = exchange(l, "maxes", &rc, "cmd=get_maxes\n");
    }
    if (result == 0) {
        int key_size, value_size;
        if (answer_number(c, "keylen_max", &key_size) != 0 ||
            answer_number(c, "vallen_max", &value_size) != 0 || key_size < 2 || value_size < 2) {
            return launcher_fail(l, -EPROTO, "the launcher's limits make no sense: \"%.200s\"",
                                 c->answer);
        }
        l->key_size = (size_t)key_size;
        l->value_size = (size_t)value_size;
        result = exchange(l, "my_kvsname", &rc, "cmd=get_my_kvsname\n");
    }
    if (result == 0 && answer_field(c, "kvsname", c->kvsname, sizeof(c->kvsname)) != 0) {
        return launcher_fail(l, -EPROTO, "the launcher names no key-value space: \"%.200s\"",
                             c->answer);
    }
    return result;
}

/* Learns from the launcher whether the ranks are on several hosts: then one of the blocks (first
 * host, number of hosts, ranks of each) has more than one host, or a first host other than 0. A
 * launcher that does not tell is taken to have one host. */
static int learn_hosts(struct launcher *l)
{
    struct pmi_client *c = l->state;
    char text[LAUNCHER_VALUE_SIZE];
    int rc, result = exchange(l, "get_result", &rc, "cmd=get kvsname=%s key=PMI_process_mapping\n",
                              c->kvsname);
    if (result != 0 || rc != 0 || answer_field(c, "value", text, sizeof(text)) != 0) {
        return result;
    }
    for (const char *at = strchr(text + 1, '('); at != NULL; at = strchr(at + 1, '(')) {
        int first, hosts, ranks;
        if (sscanf(at, "(%d,%d,%d)", &first, &hosts, &ranks) == 3 && first + hosts > 1) {
            l->spread = true;
        }
    }
    return 0;
}

/* Begins the protocol over `fd` or, if that is -1, with the server `alone`. The client owns both
 * from here on, also on failure. */
static int start(struct launcher *l, int fd, struct pmi_job *alone)
{
    struct pmi_client *c = calloc(1, sizeof(*c));
    if (c == NULL) {
        pmi_job_free(alone);
        launcher_release(false);
        return launcher_fail(l, -ENOMEM, "no memory");
    }
    c->fd = fd;
    c->alone = alone;
    l->state = c;
    int rc = greet(l);
    if (rc == 0 && alone == NULL && l->size > 1) {
        rc = learn_hosts(l);
    }
    if (rc != 0) {
        client_close(l);
        return rc;
    }
    l->ops = &client_ops;
    return 0;
}

int pmi_client_alone(struct launcher *l)
{
    struct pmi_job *alone;
    int rc = launcher_claim(l);
    if (rc != 0) {
        return rc;
    }
    if (pmi_job_create(&alone, 1, "alone", NULL) != 0) {
        launcher_release(false);
        return launcher_fail(l, -ENOMEM, "no memory");
    }
    l->rank = 0;
    l->size = 1;
    return start(l, -1, alone);
}

static int env_number(struct launcher *l, const char *name, int min, int *number)
{
    const char *value = getenv(name);
    if (value == NULL) {
        return launcher_fail(l, -EINVAL, "PMI_FD is set but %s is not: a launcher sets both", name);
    }
    if (launcher_number(value, min, number) != 0) {
        return launcher_fail(l, -EINVAL, "%s=%s: must be a whole number of at least %d", name,
                             value, min);
    }
    return 0;
}

int pmi_client_join(struct launcher *l)
{
    int fd = -1, rc = env_number(l, "PMI_FD", 0, &fd);
    if (rc == 0) {
        rc = env_number(l, "PMI_SIZE", 1, &l->size);
    }
    if (rc == 0) {
        rc = env_number(l, "PMI_RANK", 0, &l->rank);
    }
    if (rc == 0 && l->rank >= l->size) {
        rc = launcher_fail(l, -EINVAL, "PMI_RANK=%d: must be below PMI_SIZE=%d", l->rank, l->size);
    }
    if (rc == 0) {
        rc = launcher_claim(l);
    }
    if (rc != 0) {
        return rc;
    }
    /* PMI_FD may be inherited by mistake and name any file: it must be a socket before anything is
     * written to it. Programs that this process starts must not inherit the connection. */
    struct stat st;
    if (fstat(fd, &st) != 0 || !S_ISSOCK(st.st_mode) || fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) {
        launcher_release(false);
        return no_connection(l, fd);
    }
    return start(l, fd, NULL);
}
