/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requests of ranks to the PMI-1 server. A line is cut into its fields in place; the table
 * `commands` gives the function that answers its command.
 */
#include "boot/pmi_job.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIELDS_MAX = 16 };

struct fields {
    int count;
    struct {
        const char *name, *value;
    } at[FIELDS_MAX];
};

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

/* Returns the number in field `name`; `fallback` if the field is absent or holds no number. */
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

/* True if the request names this job's key-value space; if not, answers it with an error. */
static bool right_kvs(struct pmi_job *job, struct pmi_rank *r, const struct fields *f,
                      const char *answer)
{
    const char *name = field(f, "kvsname");
    if (name != NULL && strcmp(name, job->kvsname) == 0) {
        return true;
    }
    pmi_reply(job, r, "cmd=%s rc=-1 msg=%s", answer,
              name != NULL ? "unknown_kvsname" : "kvsname_missing");
    return false;
}

static void do_init(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
{
    if (field_number(f, "pmi_version", -1) != 1) {
        pmi_reply(job, r,
                  "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1 "
                  "msg=this_server_speaks_version_1");
        return;
    }
    if (r->state != PMI_BARRIER) {
        r->state = PMI_READY;
    }
    pmi_reply(job, r, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0");
}

static void do_get_maxes(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
{
    pmi_reply(job, r, "cmd=maxes kvsname_max=%d keylen_max=%d vallen_max=%d", PMI_NAME_MAX,
              PMI_KEY_MAX, PMI_VALUE_MAX);
}

static void do_get_universe_size(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
{
    pmi_reply(job, r, "cmd=universe_size size=%d", job->size);
}

static void do_get_appnum(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
{
    pmi_reply(job, r, "cmd=appnum appnum=0");
}

static void do_get_my_kvsname(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
{
    pmi_reply(job, r, "cmd=my_kvsname kvsname=%s", job->kvsname);
}

static void do_put(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
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
    pmi_reply(job, r, "cmd=put_result rc=%d msg=%s", strcmp(msg, "success") == 0 ? 0 : -1, msg);
}

static void do_get(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
{
    if (!right_kvs(job, r, f, "get_result")) {
        return;
    }
    const char *key = field(f, "key");
    const char *value = key != NULL ? kvs_get(&job->kvs, key) : NULL;
    if (value != NULL) {
        pmi_reply(job, r, "cmd=get_result rc=0 msg=success value=%s", value);
    } else if (key != NULL && strlen(key) < PMI_KEY_MAX) {
        pmi_reply(job, r, "cmd=get_result rc=-1 msg=key_%s_not_found value=unknown", key);
    } else {
        pmi_reply(job, r, "cmd=get_result rc=-1 msg=%s value=unknown",
                  key != NULL ? "key_too_long" : "key_missing");
    }
}

static void do_getbyidx(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
{
    if (!right_kvs(job, r, f, "getbyidx_results")) {
        return;
    }
    long at = field_number(f, "idx", -1);
    if (at < 0 || at >= (long)job->kvs.count) {
        pmi_reply(job, r, "cmd=getbyidx_results rc=-1 reason=no_more_keyvals");
        return;
    }
    const struct pair *p = job->kvs.pairs[at];
    pmi_reply(job, r, "cmd=getbyidx_results rc=0 nextidx=%ld key=%s val=%s", at + 1, p->key,
              p->value);
}

static void do_barrier_in(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
{
    if (r->state == PMI_BARRIER) {
        pmi_refuse(job, r, "it entered a barrier that it is in already");
        return;
    }
    r->state = PMI_BARRIER;
    job->in_barrier++;
    pmi_open_barrier(job);
}

static void do_finalize(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
{
    if (r->state == PMI_BARRIER) {
        pmi_refuse(job, r, "it called finalize while in a barrier");
        return;
    }
    pmi_reply(job, r, "cmd=finalize_ack rc=0");
    if (r->state != PMI_CLOSED) {
        r->state = PMI_FINALIZED;
    }
}

static void do_abort(struct pmi_job *job, struct pmi_rank *r, const struct fields *f)
{
    if (job->abort_rank < 0) {
        job->abort_rank = (int)(r - job->ranks);
        long code = field_number(f, "exitcode", 1);
        job->abort_code = code < INT32_MIN || code > INT32_MAX ? 1 : (int)code;
    }
    pmi_close(job, r);
}

/* Every command that a rank may send, the command of its answer, and the function that answers. A
 * NULL function: the server does not offer this service and answers with an error. */
static const struct command {
    const char *name, *answer;
    void (*run)(struct pmi_job *job, struct pmi_rank *r, const struct fields *f);
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

static void run_command(struct pmi_job *job, struct pmi_rank *r, const char *name,
                        const struct fields *f)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const struct command *c = &commands[i];
        if (strcmp(c->name, name) != 0) {
            continue;
        }
        if (c->run == NULL) {
            pmi_reply(job, r, "cmd=%s rc=-1 msg=not_supported_by_pinwheel_run", c->answer);
        } else if (r->state != PMI_READY && r->state != PMI_BARRIER && c->run != do_init &&
                   c->run != do_abort) {
            pmi_reply(job, r, "cmd=%s rc=-1 msg=init_must_come_first", c->answer);
        } else {
            c->run(job, r, f);
        }
        return;
    }
    pmi_reply(job, r, "cmd=error rc=-1 msg=unknown_command");
}

/* ---- Lines ---- */

/* Cuts `line` at its blanks into fields name=value; -1 if one of its words is none. */
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

/* Takes one line of a spawn request. Such a request has lines "mcmd=spawn", "name=value"...,
 * "endcmd", repeated `totspawns` times, and gets one answer. */
static void take_spawn_line(struct pmi_job *job, struct pmi_rank *r, const char *line)
{
    if (strncmp(line, "totspawns=", 10) == 0) {
        r->spawns = (int)strtol(line + 10, NULL, 10);
    } else if (strcmp(line, "endcmd") == 0) {
        r->spawning = false;
        if (++r->spawned >= r->spawns) {
            r->spawned = 0;
            r->spawns = 0;
            pmi_reply(job, r,
                      "cmd=spawn_result rc=-1 errcodes=-1 "
                      "errmsg=spawn_is_not_supported_by_pinwheel_run");
        }
    }
}

void pmi_take_line(struct pmi_job *job, struct pmi_rank *r)
{
    for (size_t i = 0; i < r->line_length; i++) {
        unsigned char c = (unsigned char)r->line[i];
        if (c < 0x20 || c > 0x7e) {
            pmi_refuse(job, r, "its line %zu bytes long has byte 0x%02x at %zu", r->line_length, c,
                       i);
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
        /* Some clients append an error text, which has blanks in it; it is cut off. */
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
        pmi_refuse(job, r, "its line \"%s%s\" is not made of at most %d name=value fields", start,
                   r->line_length >= sizeof(start) ? "..." : "", FIELDS_MAX);
        return;
    }
    const char *name = field(&f, "cmd");
    if (name == NULL) {
        pmi_refuse(job, r, "its line \"%s%s\" has no field cmd=", start,
                   r->line_length >= sizeof(start) ? "..." : "");
        return;
    }
    run_command(job, r, name, &f);
}
