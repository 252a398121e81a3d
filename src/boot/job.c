/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpinwheel: what a program sees of its job; see pinwheel.h. This file checks arguments and makes
 * the map of ranks; launcher.h has the protocols by which the launcher answers.
 */
#include "pinwheel.h"
#include "pinwheel_sim.h"

#include "base/random.h"
#include "boot/launcher.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pinwheel_job {
    struct launcher launcher; /* its `error` holds the text of all errors of the job */
    /* how often pinwheel_job_map() was called, which is the same at all ranks */
    unsigned maps;
    char *key; /* the job key of the ranks; NULL: none */
};

enum { LOOPBACK = 127 };
enum { KEY_MIN = 32, KEY_MAX = 1024 }; /* the lengths that PtlSetJobKey accepts */

/* The text that pinwheel_job_error(NULL) returns: that of a job that could not be joined. */
static _Thread_local char last_error[LAUNCHER_ERROR_SIZE];

const char *pinwheel_job_error(const struct pinwheel_job *job)
{
    return job != NULL ? job->launcher.error : last_error;
}

/* ---- Joining and leaving ---- */

/* Frees a job. If `rc` is an error its text stays in last_error. */
static void destroy(struct pinwheel_job *job, int rc)
{
    if (rc != 0) {
        memcpy(last_error, job->launcher.error, sizeof(last_error));
    }
    free(job->key);
    free(job);
}

/* Gives libportals the job key before the program opens an interface. */
static int give_key(struct pinwheel_job *job)
{
    int rc = PtlInit();
    if (rc == PTL_OK) {
        rc = PtlSetJobKey(job->key, strlen(job->key));
        PtlFini();
    }
    return rc == PTL_OK ? 0 : launcher_fail(&job->launcher, -EINVAL, "PtlInit gave %d", rc);
}

/* Takes the job key of the environment, if there is one, also where all ranks are on one host and
 * could do without. */
static int take_key(struct pinwheel_job *job)
{
    const char *key = getenv("PINWHEEL_JOB_KEY");
    if (key == NULL || *key == '\0') {
        return 0;
    }
    if (strlen(key) < KEY_MIN || strlen(key) > KEY_MAX) {
        return launcher_fail(&job->launcher, -EINVAL,
                             "PINWHEEL_JOB_KEY has %zu characters; a job's key has %d to %d, as "
                             "`openssl rand -hex 16` gives",
                             strlen(key), KEY_MIN, KEY_MAX);
    }
    job->key = strdup(key);
    return job->key != NULL ? 0 : launcher_fail(&job->launcher, -ENOMEM, "no memory");
}

/* Ranks on several hosts talk over UDP, and prove by a job key that they belong together: by the
 * one that the launcher has put into their environment, or by a random one of rank 0. */
static int agree_on_key(struct pinwheel_job *job)
{
    struct launcher *l = &job->launcher;
    char value[LAUNCHER_VALUE_SIZE];
    if (l->rank == 0 && job->key == NULL) {
        random_hex(value, 16);
        job->key = strdup(value);
    }
    if (l->rank == 0 && job->key == NULL) {
        return launcher_fail(l, -ENOMEM, "no memory");
    }
    int rc = l->rank == 0 ? pinwheel_job_put(job, "pw-key", job->key) : 0;
    if (rc == 0) {
        rc = l->ops->barrier(l);
    }
    if (rc == 0) {
        rc = l->ops->get(l, "pw-key", value);
    }
    if (rc == 0 && job->key != NULL && strcmp(job->key, value) != 0) {
        rc = launcher_fail(l, -EPROTO,
                           "PINWHEEL_JOB_KEY of rank %d is not that of rank 0: give all ranks "
                           "the same, or none to any",
                           l->rank);
    }
    if (rc == 0 && job->key == NULL && (job->key = strdup(value)) == NULL) {
        rc = launcher_fail(l, -ENOMEM, "no memory");
    }
    explicit_bzero(value, sizeof(value));
    return rc;
}

int pinwheel_job_init(struct pinwheel_job **out)
{
    *out = NULL;
    struct pinwheel_job *job = calloc(1, sizeof(*job));
    if (job == NULL) {
        snprintf(last_error, sizeof(last_error), "no memory");
        return -ENOMEM;
    }
    int rc = take_key(job);
    if (rc == 0) {
        rc = launcher_join(&job->launcher);
    }
    if (rc == 0 && job->launcher.spread) {
        rc = agree_on_key(job);
        rc = rc == 0 ? give_key(job) : rc;
        if (rc != 0) {
            job->launcher.ops->close(&job->launcher);
        }
    }
    if (rc != 0) {
        destroy(job, rc);
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
    int rc = job->launcher.ops->leave(&job->launcher);
    job->launcher.ops->close(&job->launcher);
    destroy(job, rc);
    return rc;
}

int pinwheel_job_abort(struct pinwheel_job *job, int code)
{
    if (code < 1 || code > 255) {
        return launcher_fail(&job->launcher, -EINVAL,
                             "code %d: must be 1 to 255, a failure's exit status", code);
    }
    return job->launcher.ops->abort(&job->launcher, code);
}

int pinwheel_job_rank(const struct pinwheel_job *job)
{
    return job->launcher.rank;
}

int pinwheel_job_size(const struct pinwheel_job *job)
{
    return job->launcher.size;
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
        return launcher_fail(&job->launcher, -EINVAL, "the key is empty");
    }
    size_t length = strlen(text);
    if (length >= size) {
        return launcher_fail(&job->launcher, -ENAMETOOLONG,
                             "%s \"%.40s...\" has %zu bytes, the launcher takes %zu", what, text,
                             length, size - 1);
    }
    for (const char *c = text; *c != '\0'; c++) {
        if (*c <= ' ' || *c > '~' || (is_key && *c == '=')) {
            return launcher_fail(&job->launcher, -EINVAL,
                                 "%s \"%.40s\" has byte 0x%02x at %zu, which PMI-1 cannot carry",
                                 what, text, (unsigned char)*c, (size_t)(c - text));
        }
    }
    return 0;
}

int pinwheel_job_put(struct pinwheel_job *job, const char *key, const char *value)
{
    struct launcher *l = &job->launcher;
    int rc = check_text(job, "key", key, true, l->key_size);
    if (rc == 0) {
        rc = check_text(job, "value", value, false, l->value_size);
    }
    return rc == 0 ? l->ops->put(l, key, value) : rc;
}

int pinwheel_job_get(struct pinwheel_job *job, const char *key, char *buf, size_t size)
{
    struct launcher *l = &job->launcher;
    char value[LAUNCHER_VALUE_SIZE];
    int rc = check_text(job, "key", key, true, l->key_size);
    if (rc == 0) {
        rc = l->ops->get(l, key, value);
    }
    if (rc != 0) {
        return rc;
    }
    size_t length = strlen(value);
    if (length >= size) {
        return launcher_fail(l, -ERANGE,
                             "the value of key \"%s\" needs %zu bytes, there is room for %zu", key,
                             length + 1, size);
    }
    memcpy(buf, value, length + 1);
    return 0;
}

int pinwheel_job_barrier(struct pinwheel_job *job)
{
    /* In virtual time the barrier is this one; the launcher's is then over as soon as it is asked
     * for. Of ranks that share a host one runs at a time, and so none may wait for the launcher's.
     */
    PtlSimFence();
    if (getenv("PINWHEEL_SIM_PER_HOST") != NULL) {
        return 0;
    }
    return job->launcher.ops->barrier(&job->launcher);
}

/* ---- The map from ranks to physical ids ---- */

/* An ID is published as text, "-" by a rank whose interface has none: the other ranks then get an
 * error and do not wait for it in the barrier. */
enum { ID_TEXT = 18 };    /* the longest one, with what follows it */
enum { ONE_BY_ONE = 64 }; /* ranks of a job, at most, that ask for the ID of each other */

static int take_id(struct pinwheel_job *job, int rank, const char *text, ptl_process_t *id)
{
    struct launcher *l = &job->launcher;
    unsigned nid, pid;
    if (*text == '-') {
        return launcher_fail(l, -ENXIO, "rank %d has no physical id: its PtlGetPhysId failed",
                             rank);
    }
    if (sscanf(text, "%x:%x", &nid, &pid) != 2) {
        return launcher_fail(l, -EPROTO, "rank %d published \"%.40s\", no physical id", rank, text);
    }
    if (l->spread && nid >> 24 == LOOPBACK) {
        return launcher_fail(l, -EADDRNOTAVAIL,
                             "rank %d is at a loopback address, which other hosts do not reach; "
                             "name an interface with PINWHEEL_IFACES",
                             rank);
    }
    id->phys.nid = nid;
    id->phys.pid = pid;
    return 0;
}

static int get_numbered(struct pinwheel_job *job, const char *kind, unsigned number, int rank,
                        char *value, size_t size)
{
    char key[64];
    snprintf(key, sizeof(key), "pw-%s-%u-%d", kind, number, rank);
    return pinwheel_job_get(job, key, value, size);
}

static int put_numbered(struct pinwheel_job *job, const char *kind, unsigned number,
                        const char *value)
{
    char key[64];
    snprintf(key, sizeof(key), "pw-%s-%u-%d", kind, number, job->launcher.rank);
    return pinwheel_job_put(job, key, value);
}

/* Publishes the IDs of the `each` ranks from this one on, in one value. */
static int put_group(struct pinwheel_job *job, unsigned number, int each)
{
    char ids[LAUNCHER_VALUE_SIZE], one[64];
    size_t length = 0;
    int rc = 0, first = job->launcher.rank;
    for (int r = first; rc == 0 && r < first + each && r < job->launcher.size; r++) {
        rc = get_numbered(job, "map", number, r, one, sizeof(one));
        if (rc == 0 && strlen(one) >= ID_TEXT) {
            rc = launcher_fail(&job->launcher, -EPROTO,
                               "rank %d published \"%.40s\", no physical id", r, one);
        }
        if (rc == 0) {
            length += (size_t)snprintf(ids + length, sizeof(ids) - length, "%s,", one);
        }
    }
    return rc == 0 ? put_numbered(job, "maps", number, ids) : rc;
}

/* Takes the IDs of the `each` ranks from `first` on out of one value. */
static int take_group(struct pinwheel_job *job, unsigned number, int first, int each,
                      ptl_process_t *map)
{
    char ids[LAUNCHER_VALUE_SIZE];
    int rc = get_numbered(job, "maps", number, first, ids, sizeof(ids));
    const char *at = ids;
    for (int r = first; rc == 0 && r < first + each && r < job->launcher.size; r++) {
        rc = take_id(job, r, at, &map[r]);
        at += strcspn(at, ",");
        at += *at == ',';
    }
    return rc;
}

/* Of many ranks each one would ask for the ID of each: the first of a group asks for those of the
 * group, and publishes them again in one value. */
static int take_groups(struct pinwheel_job *job, unsigned number, ptl_process_t *map)
{
    struct launcher *l = &job->launcher;
    size_t size = l->value_size < LAUNCHER_VALUE_SIZE ? l->value_size : LAUNCHER_VALUE_SIZE;
    int each = (int)((size - 1) / ID_TEXT);
    int put = l->rank % each == 0 ? put_group(job, number, each) : 0;
    int rc = pinwheel_job_barrier(job);
    rc = put != 0 ? put : rc;
    for (int r = 0; rc == 0 && r < l->size; r += each) {
        rc = take_group(job, number, r, each, map);
    }
    return rc;
}

int pinwheel_job_map(struct pinwheel_job *job, ptl_handle_ni_t ni, ptl_process_t *map)
{
    char value[64] = "-";
    struct launcher *l = &job->launcher;
    unsigned number = job->maps++;
    ptl_process_t id;
    int code = PtlGetPhysId(ni, &id);
    if (code == PTL_OK) {
        snprintf(value, sizeof(value), "%x:%x", (unsigned)id.phys.nid, (unsigned)id.phys.pid);
    }
    int rc = put_numbered(job, "map", number, value);
    if (rc == 0) {
        rc = pinwheel_job_barrier(job);
    }
    bool groups = l->size > ONE_BY_ONE && l->value_size > 2 * ID_TEXT;
    if (rc == 0 && groups) {
        rc = take_groups(job, number, map);
    }
    for (int r = 0; rc == 0 && !groups && r < l->size; r++) {
        rc = get_numbered(job, "map", number, r, value, sizeof(value));
        rc = rc == 0 ? take_id(job, r, value, &map[r]) : rc;
    }
    if (code != PTL_OK) {
        rc = launcher_fail(l, -EINVAL, "PtlGetPhysId gave %d for interface handle 0x%x", code,
                           (unsigned)ni);
    }
    return rc;
}

/* True if the interface `ni` has this logical map already. */
static int same_map(struct pinwheel_job *job, ptl_handle_ni_t ni, const ptl_process_t *map)
{
    ptl_size_t size = 0;
    ptl_process_t *present = calloc((size_t)job->launcher.size, sizeof(*present));
    if (present == NULL) {
        return launcher_fail(&job->launcher, -ENOMEM, "no memory for a map of %d ranks",
                             job->launcher.size);
    }
    int rc = 0;
    if (PtlGetMap(ni, (ptl_size_t)job->launcher.size, present, &size) != PTL_OK ||
        size != (ptl_size_t)job->launcher.size ||
        memcmp(present, map, (size_t)job->launcher.size * sizeof(*map)) != 0) {
        rc =
            launcher_fail(&job->launcher, -EEXIST,
                          "interface handle 0x%x has another map of %llu ranks; it can be set once",
                          (unsigned)ni, (unsigned long long)size);
    }
    free(present);
    return rc;
}

int pinwheel_job_set_map(struct pinwheel_job *job, ptl_handle_ni_t ni)
{
    ptl_process_t *map = calloc((size_t)job->launcher.size, sizeof(*map));
    if (map == NULL) {
        return launcher_fail(&job->launcher, -ENOMEM, "no memory for a map of %d ranks",
                             job->launcher.size);
    }
    int rc = pinwheel_job_map(job, ni, map);
    if (rc == 0) {
        int code = PtlSetMap(ni, (ptl_size_t)job->launcher.size, map);
        if (code == PTL_IGNORED) {
            rc = same_map(job, ni, map);
        } else if (code != PTL_OK) {
            rc = launcher_fail(
                &job->launcher, -EINVAL,
                "PtlSetMap gave %d for interface handle 0x%x; it takes logical interfaces", code,
                (unsigned)ni);
        }
    }
    free(map);
    return rc;
}
