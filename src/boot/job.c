/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpinwheel: a process's side of PMI-1; see pinwheel.h.
 *
 * PMI-1 is call and answer: exchange() sends one line and takes one line, over
 * the connection that PMI_FD names. A process without a launcher has the server
 * itself, with one rank, in place of the connection, so that all calls take the
 * same way. An answer is kept in job->answer until the next exchange.
 *
 * A process owns one connection, which cannot be joined twice; `connection`
 * keeps count of that.
 */
#include "pinwheel.h"

#include "boot/pmi_server.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

/* Hydra's answers are below 2 KiB as well. */
enum { LINE_SIZE = 4096, ERROR_SIZE = 512 };

struct pinwheel_job {
    int fd; /* -1: `alone` answers */
    struct pmi_job *alone;
    int rank, size;
    size_t key_size, value_size; /* what the launcher takes, counting the NUL */
    unsigned maps;               /* pinwheel_job_map() calls, equal on all ranks */
    char kvsname[PMI_NAME_MAX];
    char *key;       /* NULL: none */
    size_t received; /* bytes in `input`, which may begin a later line */
    char input[LINE_SIZE];
    char answer[LINE_SIZE];
    char error[ERROR_SIZE];
};

enum { CONNECTION_UNUSED, CONNECTION_IN_USE, CONNECTION_ENDED };
static _Atomic int connection = CONNECTION_UNUSED;

/* What pinwheel_job_error(NULL) gives. */
static _Thread_local char last_error[ERROR_SIZE];

static int __attribute__((format(printf, 3, 4)))
fail(struct pinwheel_job *job, int rc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(job->error, sizeof(job->error), format, args);
    va_end(args);
    return rc;
}

const char *pinwheel_job_error(const struct pinwheel_job *job)
{
    return job != NULL ? job->error : last_error;
}

/* ---- One line there, one line back ---- */

static int wait_for(int fd, short events)
{
    struct pollfd p = {.fd = fd, .events = events};
    return poll(&p, 1, -1) < 0 && errno != EINTR ? -errno : 0;
}

static int broken(struct pinwheel_job *job, int error, const char *doing)
{
    if (error == EBADF) {
        return fail(job, -EBADF,
                    "PMI_FD=%d: no open connection to a launcher; it was closed, or the variable "
                    "was inherited from another program (unset it to run alone)",
                    job->fd);
    }
    return fail(job, -EPIPE, "the launcher went away while this process was %s it: %s", doing,
                error != 0 ? strerror(error) : "connection closed");
}

static int send_all(struct pinwheel_job *job, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = send(job->fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) {
            if (wait_for(job->fd, POLLOUT) != 0) {
                return broken(job, errno, "asking");
            }
        } else if (n < 0 && errno != EINTR) {
            return broken(job, errno, "asking");
        } else if (n > 0) {
            bytes += n;
            length -= (size_t)n;
        }
    }
    return 0;
}

/* Moves the first line of job->input, without its newline, to job->answer. */
static int receive_line(struct pinwheel_job *job)
{
    char *newline;
    while ((newline = memchr(job->input, '\n', job->received)) == NULL) {
        if (job->received == sizeof(job->input)) {
            return fail(job, -EPROTO, "the launcher sent a line longer than %d bytes", LINE_SIZE);
        }
        ssize_t n = read(job->fd, job->input + job->received, sizeof(job->input) - job->received);
        if (n < 0 && errno == EAGAIN) {
            if (wait_for(job->fd, POLLIN) != 0) {
                return broken(job, errno, "waiting for");
            }
        } else if (n == 0 || (n < 0 && errno != EINTR)) {
            return broken(job, n < 0 ? errno : 0, "waiting for");
        } else if (n > 0) {
            job->received += (size_t)n;
        }
    }
    size_t length = (size_t)(newline - job->input);
    memcpy(job->answer, job->input, length);
    job->answer[length] = '\0';
    job->received -= length + 1;
    memmove(job->input, newline + 1, job->received);
    return 0;
}

static int ask_alone(struct pinwheel_job *job, const char *bytes, size_t length)
{
    size_t n;
    pmi_feed(job->alone, 0, bytes, length);
    const char *line = pmi_output(job->alone, 0, &n);
    if (n == 0 || n > sizeof(job->answer)) {
        const char *why = pmi_error(job->alone, 0);
        return fail(job, -EPROTO, "no answer from the job's own server: %s",
                    why != NULL ? why : "unknown reason");
    }
    memcpy(job->answer, line, n - 1);
    job->answer[n - 1] = '\0';
    pmi_output_sent(job->alone, 0, n);
    return 0;
}

/* Copies the value of field `name` of the answer; -1 when there is none or it
 * does not fit. */
static int answer_field(const struct pinwheel_job *job, const char *name, char *value, size_t size)
{
    size_t name_length = strlen(name);
    for (const char *at = job->answer; *at != '\0';) {
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

static int parse_int(const char *text, int min, int *number)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || v < min || v > INT_MAX) {
        return -1;
    }
    *number = (int)v;
    return 0;
}

static int answer_number(const struct pinwheel_job *job, const char *name, int *number)
{
    char text[16];
    return answer_field(job, name, text, sizeof(text)) != 0 ? -1 : parse_int(text, INT_MIN, number);
}

/* Sends a request and takes its answer, which must be the command `expected`.
 * Returns the answer's rc= in *rc: 0 if it has none. */
static int __attribute__((format(printf, 4, 5)))
exchange(struct pinwheel_job *job, const char *expected, int *rc, const char *format, ...)
{
    char line[LINE_SIZE], command[64];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    if (n < 0 || (size_t)n >= sizeof(line)) {
        return fail(job, -ENAMETOOLONG, "a request of %d bytes is too long for PMI-1", n);
    }
    int result =
        job->alone != NULL ? ask_alone(job, line, (size_t)n) : send_all(job, line, (size_t)n);
    if (result == 0 && job->alone == NULL) {
        result = receive_line(job);
    }
    if (result != 0) {
        return result;
    }
    if (answer_field(job, "cmd", command, sizeof(command)) != 0 || strcmp(command, expected) != 0) {
        return fail(job, -EPROTO, "the launcher answered \"%.200s\" where cmd=%s was due",
                    job->answer, expected);
    }
    if (answer_number(job, "rc", rc) != 0) {
        *rc = 0;
    }
    return 0;
}

/* ---- Joining and leaving ---- */

static int env_number(struct pinwheel_job *job, const char *name, int min, int *number)
{
    const char *value = getenv(name);
    if (value == NULL) {
        return fail(job, -EINVAL, "PMI_FD is set but %s is not: a launcher sets both", name);
    }
    if (parse_int(value, min, number) != 0) {
        return fail(job, -EINVAL, "%s=%s: must be a whole number of at least %d", name, value, min);
    }
    return 0;
}

static int claim_connection(struct pinwheel_job *job)
{
    int state = CONNECTION_UNUSED;
    if (atomic_compare_exchange_strong(&connection, &state, CONNECTION_IN_USE)) {
        return 0;
    }
    if (state == CONNECTION_IN_USE) {
        return fail(job, -EBUSY, "this process is in a job already; use that one");
    }
    return fail(job, -EALREADY,
                "this process left its job with pinwheel_job_finalize(), which "
                "closed its connection to the launcher; join once per process");
}

static int join(struct pinwheel_job *job)
{
    if (getenv("PMI_FD") == NULL) {
        if (getenv("PMI_PORT") != NULL) {
            return fail(job, -EOPNOTSUPP,
                        "PMI_PORT=%s: PMI-1 through a port is not supported, only through PMI_FD; "
                        "start with `pinwheel run`, or mpiexec without -pmi-port",
                        getenv("PMI_PORT"));
        }
        job->size = 1;
        return pmi_job_create(&job->alone, 1, "alone") != 0 ? fail(job, -ENOMEM, "no memory") : 0;
    }
    int rc = env_number(job, "PMI_FD", 0, &job->fd);
    if (rc == 0) {
        rc = env_number(job, "PMI_SIZE", 1, &job->size);
    }
    if (rc == 0) {
        rc = env_number(job, "PMI_RANK", 0, &job->rank);
    }
    if (rc == 0 && job->rank >= job->size) {
        rc = fail(job, -EINVAL, "PMI_RANK=%d: must be below PMI_SIZE=%d", job->rank, job->size);
    }
    if (rc != 0) {
        job->fd = -1;
        return rc;
    }
    rc = claim_connection(job);
    if (rc != 0) {
        job->fd = -1;
        return rc;
    }
    /* A variable that was inherited by mistake may name any file: look before
     * writing. Programs that this one starts have no business on the
     * connection. */
    struct stat st;
    if (fstat(job->fd, &st) != 0 || !S_ISSOCK(st.st_mode) ||
        fcntl(job->fd, F_SETFD, FD_CLOEXEC) != 0) {
        rc = broken(job, EBADF, "asking");
        job->fd = -1;
        atomic_store(&connection, CONNECTION_UNUSED);
    }
    return rc;
}

static int greet(struct pinwheel_job *job)
{
    int rc, result =
                exchange(job, "response_to_init", &rc, "cmd=init pmi_version=1 pmi_subversion=1\n");
    if (result == 0 && rc != 0) {
        result = fail(job, -EPROTO, "the launcher does not speak PMI version 1: \"%.200s\"",
                      job->answer);
    }
    if (result == 0) {
        result = exchange(job, "maxes", &rc, "cmd=get_maxes\n");
    }
    if (result == 0) {
        int key_size, value_size;
        if (answer_number(job, "keylen_max", &key_size) != 0 ||
            answer_number(job, "vallen_max", &value_size) != 0 || key_size < 2 || value_size < 2) {
            return fail(job, -EPROTO, "the launcher's limits make no sense: \"%.200s\"",
                        job->answer);
        }
        job->key_size = (size_t)key_size;
        job->value_size = (size_t)value_size;
        result = exchange(job, "my_kvsname", &rc, "cmd=get_my_kvsname\n");
    }
    if (result == 0 && answer_field(job, "kvsname", job->kvsname, sizeof(job->kvsname)) != 0) {
        result =
            fail(job, -EPROTO, "the launcher names no key-value space: \"%.200s\"", job->answer);
    }
    return result;
}

static void destroy(struct pinwheel_job *job)
{
    if (job->fd >= 0) {
        close(job->fd);
        atomic_store(&connection, CONNECTION_ENDED);
    }
    pmi_job_free(job->alone);
    free(job->key);
    free(job);
}

int pinwheel_job_init(struct pinwheel_job **out)
{
    *out = NULL;
    struct pinwheel_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        snprintf(last_error, sizeof(last_error), "no memory");
        return -ENOMEM;
    }
    job->fd = -1;
    const char *key = getenv("PINWHEEL_JOB_KEY");
    int rc = 0;
    if (key != NULL && *key != '\0' && (job->key = strdup(key)) == NULL) {
        rc = fail(job, -ENOMEM, "no memory");
    }
    if (rc == 0) {
        rc = join(job);
    }
    if (rc == 0) {
        rc = greet(job);
    }
    if (rc != 0) {
        memcpy(last_error, job->error, sizeof(last_error));
        destroy(job);
        return rc;
    }
    *out = job;
    return 0;
}

int pinwheel_job_finalize(struct pinwheel_job *job)
{
    if (job == NULL) {
        return 0;
    }
    int rc, result = exchange(job, "finalize_ack", &rc, "cmd=finalize\n");
    if (result != 0) {
        memcpy(last_error, job->error, sizeof(last_error));
    }
    destroy(job);
    return result;
}

int pinwheel_job_rank(const struct pinwheel_job *job)
{
    return job->rank;
}

int pinwheel_job_size(const struct pinwheel_job *job)
{
    return job->size;
}

const char *pinwheel_job_key(const struct pinwheel_job *job)
{
    return job->key;
}

/* ---- Key-value space and barrier ---- */

static int check_text(struct pinwheel_job *job, const char *what, const char *text, bool is_key,
                      size_t size)
{
    if (is_key && *text == '\0') {
        return fail(job, -EINVAL, "the key is empty");
    }
    size_t length = strlen(text);
    if (length >= size) {
        return fail(job, -ENAMETOOLONG, "%s \"%.40s...\" has %zu bytes, the launcher takes %zu",
                    what, text, length, size - 1);
    }
    for (const char *c = text; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~' || (is_key && *c == '=')) {
            return fail(job, -EINVAL,
                        "%s \"%.40s\" has byte 0x%02x at %zu, which PMI-1 cannot carry", what, text,
                        (unsigned char)*c, (size_t)(c - text));
        }
    }
    return 0;
}

int pinwheel_job_put(struct pinwheel_job *job, const char *key, const char *value)
{
    int rc, result = check_text(job, "key", key, true, job->key_size);
    if (result == 0) {
        result = check_text(job, "value", value, false, job->value_size);
    }
    if (result == 0) {
        result = exchange(job, "put_result", &rc, "cmd=put kvsname=%s key=%s value=%s\n",
                          job->kvsname, key, value);
    }
    if (result == 0 && rc != 0) {
        char msg[128];
        if (answer_field(job, "msg", msg, sizeof(msg)) != 0) {
            snprintf(msg, sizeof(msg), "no reason given");
        }
        return fail(job, -EEXIST, "the launcher refused key \"%s\": %s", key, msg);
    }
    return result;
}

int pinwheel_job_get(struct pinwheel_job *job, const char *key, char *buf, size_t size)
{
    int rc, result = check_text(job, "key", key, true, job->key_size);
    if (result == 0) {
        result = exchange(job, "get_result", &rc, "cmd=get kvsname=%s key=%s\n", job->kvsname, key);
    }
    if (result != 0) {
        return result;
    }
    if (rc != 0) {
        return fail(job, -ENOENT, "no rank has put key \"%s\"", key);
    }
    char value[LINE_SIZE];
    if (answer_field(job, "value", value, sizeof(value)) != 0) {
        return fail(job, -EPROTO, "the launcher's answer has no value: \"%.200s\"", job->answer);
    }
    size_t length = strlen(value);
    if (length >= size) {
        return fail(job, -ERANGE, "the value of key \"%s\" needs %zu bytes, there is room for %zu",
                    key, length + 1, size);
    }
    memcpy(buf, value, length + 1);
    return 0;
}

int pinwheel_job_barrier(struct pinwheel_job *job)
{
    int rc, result = exchange(job, "barrier_out", &rc, "cmd=barrier_in\n");
    if (result == 0 && rc != 0) {
        result = fail(job, -EPROTO, "the launcher refused a barrier: \"%.200s\"", job->answer);
    }
    return result;
}

/* ---- The map from ranks to physical ids ---- */

/* A rank whose interface has no id says so, "-", rather than leave the others
 * in the barrier. */
int pinwheel_job_map(struct pinwheel_job *job, ptl_handle_ni_t ni, ptl_process_t *map)
{
    char key[64], value[64];
    unsigned number = job->maps++;
    ptl_process_t id;
    int code = PtlGetPhysId(ni, &id);
    if (code == PTL_OK) {
        snprintf(value, sizeof(value), "%x:%x", (unsigned)id.phys.nid, (unsigned)id.phys.pid);
    } else {
        snprintf(value, sizeof(value), "-");
    }
    snprintf(key, sizeof(key), "pw-map-%u-%d", number, job->rank);
    int rc = pinwheel_job_put(job, key, value);
    if (rc == 0) {
        rc = pinwheel_job_barrier(job);
    }
    if (rc == 0 && code != PTL_OK) {
        rc = fail(job, -EINVAL, "PtlGetPhysId gave %d for interface handle 0x%x", code,
                  (unsigned)ni);
    }
    for (int r = 0; rc == 0 && r < job->size; r++) {
        snprintf(key, sizeof(key), "pw-map-%u-%d", number, r);
        rc = pinwheel_job_get(job, key, value, sizeof(value));
        unsigned nid, pid;
        if (rc == 0 && strcmp(value, "-") == 0) {
            rc = fail(job, -ENXIO, "rank %d has no physical id: its PtlGetPhysId failed", r);
        } else if (rc == 0 && sscanf(value, "%x:%x", &nid, &pid) != 2) {
            rc = fail(job, -EPROTO, "rank %d published \"%s\", no physical id", r, value);
        } else if (rc == 0) {
            map[r].phys.nid = nid;
            map[r].phys.pid = pid;
        }
    }
    return rc;
}

/* Whether `ni` has exactly this map. */
static int same_map(struct pinwheel_job *job, ptl_handle_ni_t ni, const ptl_process_t *map)
{
    ptl_size_t size = 0;
    ptl_process_t *present = calloc((size_t)job->size, sizeof(*present));
    if (present == NULL) {
        return fail(job, -ENOMEM, "no memory for a map of %d ranks", job->size);
    }
    int rc = 0;
    if (PtlGetMap(ni, (ptl_size_t)job->size, present, &size) != PTL_OK ||
        size != (ptl_size_t)job->size ||
        memcmp(present, map, (size_t)job->size * sizeof(*map)) != 0) {
        rc = fail(job, -EEXIST,
                  "interface handle 0x%x has another map of %llu ranks; it can be set once",
                  (unsigned)ni, (unsigned long long)size);
    }
    free(present);
    return rc;
}

int pinwheel_job_set_map(struct pinwheel_job *job, ptl_handle_ni_t ni)
{
    ptl_process_t *map = calloc((size_t)job->size, sizeof(*map));
    if (map == NULL) {
        return fail(job, -ENOMEM, "no memory for a map of %d ranks", job->size);
    }
    int rc = pinwheel_job_map(job, ni, map);
    if (rc == 0) {
        int code = PtlSetMap(ni, (ptl_size_t)job->size, map);
        if (code == PTL_IGNORED) {
            rc = same_map(job, ni, map);
        } else if (code != PTL_OK) {
            rc = fail(job, -EINVAL,
                      "PtlSetMap gave %d for interface handle 0x%x; it takes logical interfaces",
                      code, (unsigned)ni);
        }
    }
    free(map);
    return rc;
}
