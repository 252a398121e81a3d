/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI-1 server; see pmi_server.h for the protocol and the states.
 *
 * A line is cut into fields in place, then one table says which function
 * answers its command.
 */
#include "boot/pmi_server.h"

#include "boot/pmi_kvs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MAX = 16 };

struct rank {
    enum pmi_state state;
    bool torn;           /* its connection ended, and neither side had said that it would */
    bool spawning;       /* between mcmd=spawn and endcmd */
    int spawns, spawned; /* of one spawn request: commands it has, commands seen */
    size_t line_length;
    char line[PMI_LINE_MAX + 1];
    char *output;
    size_t output_start, output_end, output_capacity;
    char error[160]; /* "" unless the server closed the connection */
};

struct pmi_job {
    int size;
    bool keep_going; /* who is CLOSED holds up no barrier */
    int gone;        /* ranks that are CLOSED */
    int in_barrier;
    int first_gone; /* the first rank that became CLOSED, -1 for none */
    int abort_rank; /* -1: nobody asked */
    int abort_code;
    struct kvs kvs;
    char kvsname[PMI_NAME_MAX];
    struct rank ranks[];
};

struct fields {
    int count;
    struct {
        const char *name, *value;
    } at[FIELDS_MAX];
};

/* ---- Connections ---- */

static void open_barrier(struct pmi_job *job);

static void close_rank(struct pmi_job *job, struct rank *r)
{
    if (r->state == PMI_CLOSED) {
        return;
    }
    if (r->state == PMI_BARRIER) {
        job->in_barrier--;
    }
    r->state = PMI_CLOSED;
    job->gone++;
    if (job->first_gone < 0) {
        job->first_gone = (int)(r - job->ranks);
    }
    open_barrier(job);
}

static void __attribute__((format(printf, 3, 4)))
refuse_connection(struct pmi_job *job, struct rank *r, const char *format, ...)
{
    if (r->state == PMI_CLOSED) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(r->error, sizeof(r->error), format, args);
    va_end(args);
    close_rank(job, r);
}

static bool output_reserve(struct rank *r, size_t length)
{
    if (r->output_capacity - r->output_end >= length) {
        return true;
    }
    size_t queued = r->output_end - r->output_start;
    if (r->output_start > 0) {
        memmove(r->output, r->output + r->output_start, queued);
        r->output_start = 0;
        r->output_end = queued;
    }
    size_t capacity = r->output_capacity != 0 ? r->output_capacity : 512;
    while (capacity - queued < length) {
        capacity *= 2;
    }
    char *output = realloc(r->output, capacity);
    if (output == NULL) {
        return false;
    }
    r->output = output;
    r->output_capacity = capacity;
    return true;
}

/* Queues one line. What travels back from a request is bounded by the length of
 * a line, so the buffer here always holds the reply. */
static void __attribute__((format(printf, 3, 4)))
reply(struct pmi_job *job, struct rank *r, const char *format, ...)
{
    char line[2 * PMI_LINE_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(line, sizeof(line) - 1, format, args);
    va_end(args);
    if (r->state == PMI_CLOSED || n < 0) {
        return;
    }
    size_t length = (size_t)n < sizeof(line) - 1 ? (size_t)n : sizeof(line) - 2;
    line[length++] = '\n';
    if (r->output_end - r->output_start + length > PMI_OUTPUT_MAX) {
        refuse_connection(job, r, "it does not read the replies to its requests");
        return;
    }
    if (!output_reserve(r, length)) {
        refuse_connection(job, r, "no memory for a reply");
        return;
    }
    memcpy(r->output + r->output_end, line, length);
    r->output_end += length;
}

/* ---- Commands ---- */

static const char *field(const struct fields *f, const char *name)
{
    for (int i = 0; i < f->count; i++) {
        if (strcmp(f->at[i].name, name) == 0) {
            return f->at[i].value;
        }
    }
    return NULL;
}

/* A field as a number; `fallback` if it is absent or no number. */
static long field_number(const struct fields *f, const char *name, long fallback)
{
    const char *value = field(f, name);
    if (value == NULL || *value == '\0') {
        return fallback;
    }
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    return *end == '\0' && errno == 0 ? number : fallback;
}

/* Whether the request names our key-value space; answers it if not. */
static bool right_kvs(struct pmi_job *job, struct rank *r, const struct fields *f,
                      const char *answer)
{
    const char *name = field(f, "kvsname");
    if (name != NULL && strcmp(name, job->kvsname) == 0) {
        return true;
    }
    reply(job, r, "cmd=%s rc=-1 msg=%s", answer,
          name != NULL ? "unknown_kvsname" : "kvsname_missing");
    return false;
}

static void do_init(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    if (field_number(f, "pmi_version", -1) != 1) {
        reply(job, r,
              "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1 "
              "msg=this_server_speaks_version_1");
        return;
    }
    if (r->state != PMI_BARRIER) {
        r->state = PMI_READY;
    }
    reply(job, r, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
}

static void do_get_maxes(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    reply(job, r, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d", PMI_NAME_MAX, PMI_KEY_MAX,
          PMI_VALUE_MAX);
}

static void do_get_universe_size(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    reply(job, r, "cmd=universe_size size=%d", job->size);
}

static void do_get_appnum(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    reply(job, r, "cmd=appnum appnum=0");
}

static void do_get_my_kvsname(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    reply(job, r, "cmd=my_kvsname kvsname=%s", job->kvsname);
}

static void do_put(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    if (!right_kvs(job, r, f, "put_result")) {
        return;
    }
    const char *key = field(f, "key"), *value = field(f, "value");
    const char *msg = "success";
    if (key == NULL || *key == '\0') {
        msg = "key_missing";
    } else if (value == NULL) {
        msg = "value_missing";
    } else if (strlen(key) >= PMI_KEY_MAX) {
        msg = "key_too_long";
    } else if (strlen(value) >= PMI_VALUE_MAX) {
        msg = "value_too_long";
    } else {
        int rc = kvs_put(&job->kvs, key, value);
        if (rc != 0) {
            msg = rc == -EEXIST ? "duplicate_key" : rc == -ENOSPC ? "too_many_keys" : "no_memory";
        }
    }
    reply(job, r, "cmd=put_result rc=%d msg=%s", strcmp(msg, "success") == 0 ? 0 : -1, msg);
}

static void do_get(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    if (!right_kvs(job, r, f, "get_result")) {
        return;
    }
    const char *key = field(f, "key");
    const char *value = key != NULL ? kvs_get(&job->kvs, key) : NULL;
    if (value != NULL) {
        reply(job, r, "cmd=get_result rc=0 msg=success value=%s", value);
    } else if (key != NULL && strlen(key) < PMI_KEY_MAX) {
        reply(job, r, "cmd=get_result rc=-1 msg=key_%s_not_found value=unknown", key);
    } else {
        reply(job, r, "cmd=get_result rc=-1 msg=%s value=unknown",
              key != NULL ? "key_too_long" : "key_missing");
    }
}

static void do_getbyidx(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    if (!right_kvs(job, r, f, "getbyidx_results")) {
        return;
    }
    long at = field_number(f, "idx", -1);
    if (at < 0 || at >= (long)job->kvs.count) {
        reply(job, r, "cmd=getbyidx_results rc=-1 reason=no_more_keyvals");
        return;
    }
    const struct pair *p = job->kvs.pairs[at];
    reply(job, r, "cmd=getbyidx_results rc=0 nextidx=%ld key=%s val=%s", at + 1, p->key, p->value);
}

/* Lets all out of the barrier if nobody is missing. To answer one may close its connection. */
static void open_barrier(struct pmi_job *job)
{
    int missing = job->size - job->in_barrier - (job->keep_going ? job->gone : 0);
    if (job->in_barrier == 0 || missing > 0) {
        return;
    }
    bool in[PMI_RANKS_MAX];
    job->in_barrier = 0;
    for (int i = 0; i < job->size; i++) {
        in[i] = job->ranks[i].state == PMI_BARRIER;
        job->ranks[i].state = in[i] ? PMI_READY : job->ranks[i].state;
    }
    for (int i = 0; i < job->size; i++) {
        if (in[i]) {
            reply(job, &job->ranks[i], "cmd=barrier_out rc=0");
        }
    }
}

static void do_barrier_in(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    if (r->state == PMI_BARRIER) {
        refuse_connection(job, r, "it entered a barrier that it is in already");
        return;
    }
    r->state = PMI_BARRIER;
    job->in_barrier++;
    open_barrier(job);
}

static void do_finalize(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    if (r->state == PMI_BARRIER) {
        refuse_connection(job, r, "it called finalize while in a barrier");
        return;
    }
    reply(job, r, "cmd=finalize_ack rc=0");
    if (r->state != PMI_CLOSED) {
        r->state = PMI_FINALIZED;
    }
}

static void do_abort(struct pmi_job *job, struct rank *r, const struct fields *f)
{
    if (job->abort_rank < 0) {
        job->abort_rank = (int)(r - job->ranks);
        long code = field_number(f, "exitcode", 1);
        job->abort_code = code < INT32_MIN || code > INT32_MAX ? 1 : (int)code;
    }
    close_rank(job, r);
}

/* Everything a rank may ask, the command its answer bears, and who answers.
 * NULL: refused, this server has no such service. */
static const struct command {
    const char *name, *answer;
    void (*run)(struct pmi_job *job, struct rank *r, const struct fields *f);
} commands[] = {
    {"init", "response_to_init", do_init},
    {"get_maxes", "maxes", do_get_maxes},
    {"get_universe_size", "universe_size", do_get_universe_size},
    {"get_appnum", "appnum", do_get_appnum},
    {"get_my_kvsname", "my_kvsname", do_get_my_kvsname},
    {"put", "put_result", do_put},
    {"get", "get_result", do_get},
    {"getbyidx", "getbyidx_results", do_getbyidx},
    {"barrier_in", "barrier_out", do_barrier_in},
    {"finalize", "finalize_ack", do_finalize},
    {"abort", "abort", do_abort},
    {"spawn", "spawn_result", NULL},
    {"publish_name", "publish_result", NULL},
    {"unpublish_name", "unpublish_result", NULL},
    {"lookup_name", "lookup_result", NULL},
    {"create_kvs", "newkvs", NULL},
    {"destroy_kvs", "kvs_destroyed", NULL},
};

static void run_command(struct pmi_job *job, struct rank *r, const char *name,
                        const struct fields *f)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const struct command *c = &commands[i];
        if (strcmp(c->name, name) != 0) {
            continue;
        }
        if (c->run == NULL) {
            reply(job, r, "cmd=%s rc=-1 msg=not_supported_by_pinwheel_run", c->answer);
        } else if (r->state != PMI_READY && r->state != PMI_BARRIER && c->run != do_init &&
                   c->run != do_abort) {
            reply(job, r, "cmd=%s rc=-1 msg=init_must_come_first", c->answer);
        } else {
            c->run(job, r, f);
        }
        return;
    }
    reply(job, r, "cmd=error rc=-1 msg=unknown_command");
}

/* ---- Lines ---- */

/* Cuts `line` at its blanks into name=value; -1 when it is no such line. */
static int parse_fields(char *line, struct fields *f)
{
    f->count = 0;
    char *rest = line, *word;
    while ((word = strsep(&rest, " ")) != NULL) {
        if (*word == '\0') {
            continue;
        }
        char *equals = strchr(word, '=');
        if (equals == NULL || equals == word || f->count == FIELDS_MAX) {
            return -1;
        }
        *equals = '\0';
        f->at[f->count].name = word;
        f->at[f->count].value = equals + 1;
        f->count++;
    }
    return f->count > 0 ? 0 : -1;
}

/* A spawn request is lines "mcmd=spawn", "name=value"..., "endcmd", repeated
 * totspawns times; it has one answer. */
static void take_spawn_line(struct pmi_job *job, struct rank *r, const char *line)
{
    if (strncmp(line, "totspawns=", 10) == 0) {
        r->spawns = (int)strtol(line + 10, NULL, 10);
    } else if (strcmp(line, "endcmd") == 0) {
        r->spawning = false;
        if (++r->spawned >= r->spawns) {
            r->spawned = 0;
            r->spawns = 0;
            reply(job, r,
                  "cmd=spawn_result rc=-1 errcodes=-1 "
                  "errmsg=spawn_is_not_supported_by_pinwheel_run");
        }
    }
}

static void take_line(struct pmi_job *job, struct rank *r)
{
    for (size_t i = 0; i < r->line_length; i++) {
        unsigned char c = (unsigned char)r->line[i];
        if (c < 0x20 || c > 0x7e) {
            refuse_connection(job, r, "its line %zu bytes long has byte 0x%02x at %zu",
                              r->line_length, c, i);
            return;
        }
    }
    r->line[r->line_length] = '\0';
    if (r->spawning) {
        take_spawn_line(job, r, r->line);
        return;
    }
    if (strcmp(r->line, "mcmd=spawn") == 0) {
        r->spawning = true;
        return;
    }
    if (strncmp(r->line, "cmd=abort", 9) == 0) {
        /* The text that some clients append has blanks in it. */
        char *code = strstr(r->line, "exitcode=");
        char *end = code != NULL ? strchr(code, ' ') : NULL;
        if (end != NULL) {
            *end = '\0';
        }
    }
    struct fields f;
    char start[33];
    snprintf(start, sizeof(start), "%.32s", r->line);
    if (parse_fields(r->line, &f) != 0) {
        refuse_connection(job, r, "its line \"%s%s\" is not made of at most %d name=value fields",
                          start, r->line_length >= sizeof(start) ? "..." : "", FIELDS_MAX);
        return;
    }
    const char *name = field(&f, "cmd");
    if (name == NULL) {
        refuse_connection(job, r, "its line \"%s%s\" has no field cmd=", start,
                          r->line_length >= sizeof(start) ? "..." : "");
        return;
    }
    run_command(job, r, name, &f);
}

/* ---- What the owner calls ---- */

/* What a rank may ask before any rank has put it: how the ranks are laid out,
 * in the notation of MPICH's process managers; as a rule all on one node. */
static int put_presets(struct pmi_job *job, const char *hosts)
{
    char mapping[64];
    snprintf(mapping, sizeof(mapping), "(vector,(0,1,%d))", job->size);
    return kvs_put(&job->kvs, "PMI_process_mapping", hosts != NULL ? hosts : mapping);
}

int pmi_job_create(struct pmi_job **job, int size, const char *kvsname, const char *hosts)
{
    *job = NULL;
    size_t length = strlen(kvsname);
    if (size < 1 || size > PMI_RANKS_MAX || length == 0 || length >= PMI_NAME_MAX ||
        strpbrk(kvsname, " \n") != NULL) {
        return -EINVAL;
    }
    struct pmi_job *j = calloc(1, sizeof(*j) + (size_t)size * sizeof(j->ranks[0]));
    if (j == NULL) {
        return -ENOMEM;
    }
    j->size = size;
    j->first_gone = -1;
    j->abort_rank = -1;
    memcpy(j->kvsname, kvsname, length + 1);
    if (put_presets(j, hosts) != 0) {
        pmi_job_free(j);
        return -ENOMEM;
    }
    *job = j;
    return 0;
}

void pmi_job_free(struct pmi_job *job)
{
    if (job == NULL) {
        return;
    }
    kvs_clear(&job->kvs);
    for (int i = 0; i < job->size; i++) {
        free(job->ranks[i].output);
    }
    free(job);
}

void pmi_feed(struct pmi_job *job, int rank, const void *bytes, size_t length)
{
    struct rank *r = &job->ranks[rank];
    const char *at = bytes, *end = at + length;
    while (at < end && r->state != PMI_CLOSED) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((newline != NULL ? newline : end) - at);
        if (r->line_length + n > PMI_LINE_MAX) {
            refuse_connection(job, r, "it sent a line longer than %d bytes", PMI_LINE_MAX);
            return;
        }
        memcpy(r->line + r->line_length, at, n);
        r->line_length += n;
        at += n;
        if (newline != NULL) {
            at++;
            take_line(job, r);
            r->line_length = 0;
        }
    }
}

void pmi_keep_going(struct pmi_job *job)
{
    job->keep_going = true;
    open_barrier(job);
}

void pmi_rank_gone(struct pmi_job *job, int rank)
{
    struct rank *r = &job->ranks[rank];
    r->torn |= r->state != PMI_CLOSED && r->state != PMI_FINALIZED;
    close_rank(job, r);
}

bool pmi_torn(const struct pmi_job *job, int rank)
{
    return job->ranks[rank].torn;
}

const char *pmi_output(const struct pmi_job *job, int rank, size_t *length)
{
    const struct rank *r = &job->ranks[rank];
    *length = r->output_end - r->output_start;
    return *length > 0 ? r->output + r->output_start : "";
}

void pmi_output_sent(struct pmi_job *job, int rank, size_t length)
{
    struct rank *r = &job->ranks[rank];
    r->output_start += length;
    if (r->output_start >= r->output_end) {
        r->output_start = 0;
        r->output_end = 0;
    }
}

enum pmi_state pmi_state(const struct pmi_job *job, int rank)
{
    return job->ranks[rank].state;
}

const char *pmi_error(const struct pmi_job *job, int rank)
{
    const struct rank *r = &job->ranks[rank];
    return r->error[0] != '\0' ? r->error : NULL;
}

bool pmi_aborted(const struct pmi_job *job, int *rank, int *code)
{
    if (job->abort_rank < 0) {
        return false;
    }
    *rank = job->abort_rank;
    *code = job->abort_code;
    return true;
}

bool pmi_stuck(const struct pmi_job *job, int *gone, int *waiting)
{
    if (job->in_barrier == 0 || job->first_gone < 0 || job->keep_going) {
        return false;
    }
    *gone = job->first_gone;
    *waiting = 0;
    while (job->ranks[*waiting].state != PMI_BARRIER) {
        (*waiting)++;
    }
    return true;
}
