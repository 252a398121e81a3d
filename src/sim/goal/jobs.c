/* SPDX-License-Identifier: BSD-3-Clause */
/* Files of jobs; see jobs.h. */
#include "jobs.h"

#include "base/array.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- Reading ---- */

/* The file that is read, and the line it is at, which errors name. */
struct reader {
    const char *path;
    unsigned line;
    uint32_t most; /* nodes that a job may have */
    struct goal_error *error;
};

static int no_memory(const struct reader *r)
{
    return goal_fail(r->error, "%s, line %u: no memory", r->path, r->line);
}

/* Reads a number of at most `most` at *p, and moves *p behind it. False: there is none. */
static bool read_number(char **p, uint64_t most, uint64_t *number)
{
    if (**p < '0' || **p > '9') {
        return false;
    }
    errno = 0;
    *number = strtoull(*p, p, 10);
    return errno == 0 && *number <= most;
}

/* Reads "N", "N-M" or "N-M:STEP". */
static bool read_range(char **p, uint64_t *first, uint64_t *last, uint64_t *step)
{
    const uint64_t most = GOAL_ANY - 2;
    *step = 1;
    if (!read_number(p, most, first)) {
        return false;
    }
    *last = *first;
    if (**p == '-') {
        ++*p;
        if (!read_number(p, most, last) || *last < *first) {
            return false;
        }
        if (**p == ':') {
            ++*p;
            return read_number(p, most, step) && *step > 0;
        }
    }
    return true;
}

static int add_node(const struct reader *r, struct goal_job *job, uint32_t node)
{
    if (job->count == r->most) {
        return goal_fail(r->error,
                         "%s, line %u: names more than %u nodes, of which no job here "
                         "can have more",
                         r->path, r->line, r->most);
    }
    if (!ARRAY_ROOM(job->nodes, job->count, job->room, 16)) {
        return no_memory(r);
    }
    job->nodes[job->count++] = node;
    return 0;
}

static int read_nodes(const struct reader *r, struct goal_job *job, char **p)
{
    for (;;) {
        char *item = *p;
        uint64_t first, last, step;
        if (!read_range(p, &first, &last, &step) || strchr(", \t", **p) == NULL) {
            return goal_fail(r->error,
                             "%s, line %u: \"%.40s\" must be nodes, such as 0-7,12 or 0-14:2, the "
                             "highest %u",
                             r->path, r->line, item, GOAL_ANY - 2);
        }
        for (uint64_t node = first; node <= last; node += step) {
            if (add_node(r, job, (uint32_t)node) != 0) {
                return -1;
            }
        }
        if (**p != ',') {
            return 0;
        }
        ++*p;
    }
}

static bool read_cpus(struct goal_job *job, char **p)
{
    uint64_t first, last, step;
    if (!read_range(p, &first, &last, &step) || last > UINT8_MAX || step != 1) {
        return false;
    }
    job->has_cpus = true;
    job->first_cpu = (uint32_t)first;
    job->last_cpu = (uint32_t)last;
    return true;
}

/* Reads the rest of a job's line, behind its nodes. */
static int read_rest(const struct reader *r, struct goal_job *job, char *p)
{
    for (;;) {
        p += strspn(p, " \t");
        if (*p == '\0') {
            return 0;
        }
        char *word = p;
        size_t length = strcspn(p, " \t");
        p += length;
        p += strspn(p, " \t");
        bool right = false;
        if (length == 4 && memcmp(word, "name", 4) == 0 && *p != '\0') {
            job->name = strdup(p);
            return job->name != NULL ? 0 : goal_fail(r->error, "%s: no memory", r->path);
        }
        if (length == 4 && memcmp(word, "cpus", 4) == 0) {
            right = read_cpus(job, &p);
        } else if (length == 5 && memcmp(word, "start", 5) == 0) {
            right = job->has_start = read_number(&p, UINT64_MAX, &job->start);
        }
        if (!right || strchr(" \t", *p) == NULL) {
            return goal_fail(r->error,
                             "%s, line %u: \"%.40s\" must be \"cpus 0-1\" (up to 255), \"start "
                             "TIME\" (a whole number) or \"name TEXT\"",
                             r->path, r->line, word);
        }
    }
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

/* Checks that no node appears twice in a job. The nodes are in the order of the job's ranks, so a
 * sorted copy is needed. */
static int check_once(const struct reader *r, const struct goal_job *job)
{
    /* NOLINTNEXTLINE(clang-analyzer-optin.portability.UnixAPI): a job has a node */
    uint32_t *sorted = malloc(job->count * sizeof(*sorted));
    int rc = 0;
    if (sorted == NULL) {
        return goal_fail(r->error, "%s, line %u: no memory", r->path, r->line);
    }
    memcpy(sorted, job->nodes, job->count * sizeof(*sorted));
    qsort(sorted, job->count, sizeof(*sorted), compare);
    for (uint32_t i = 1; i < job->count && rc == 0; i++) {
        if (sorted[i] == sorted[i - 1]) {
            rc = goal_fail(r->error, "%s, line %u: node %u is named twice; a job has a node once",
                           r->path, r->line, sorted[i]);
        }
    }
    free(sorted);
    return rc;
}

static int read_line(const struct reader *r, struct goal_jobs *jobs, char *line)
{
    line[strcspn(line, "\r\n")] = '\0';
    line += strspn(line, " \t");
    if (*line == '\0' || *line == '#') {
        return 0;
    }
    if (jobs->count == GOAL_ANY - 1 || !ARRAY_ROOM(jobs->job, jobs->count, jobs->room, 16)) {
        return no_memory(r);
    }
    struct goal_job *job = &jobs->job[jobs->count++];
    *job = (struct goal_job){.name = NULL};
    return read_nodes(r, job, &line) == 0 && read_rest(r, job, line) == 0 && check_once(r, job) == 0
               ? 0
               : -1;
}

int goal_jobs_read(struct goal_jobs *jobs, const char *path, uint32_t most,
                   struct goal_error *error)
{
    struct reader r = {.path = path, .most = most, .error = error};
    char *line = NULL;
    size_t room = 0;
    ssize_t length = 0;
    int rc = 0;
    *jobs = (struct goal_jobs){.job = NULL};
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        return goal_fail(error, "%s: %s", path, strerror(errno));
    }
    errno = 0;
    while (rc == 0 && (length = getline(&line, &room, f)) > 0) {
        r.line++;
        rc = memchr(line, '\0', (size_t)length) == NULL
                 ? read_line(&r, jobs, line)
                 : goal_fail(error, "%s, line %u: is no text", path, r.line);
    }
    if (rc == 0 && (ferror(f) || !feof(f))) {
        rc = goal_fail(error, "%s: %s", path, strerror(errno));
    }
    if (rc == 0 && jobs->count == 0) {
        rc = goal_fail(error, "%s: names no job", path);
    }
    free(line);
    fclose(f);
    return rc;
}

/* ---- Writing ---- */

/* Writes a job's nodes as ranges with steps, as few as possible. */
static void write_nodes(const struct goal_job *job, struct goal_stream *out)
{
    char text[64];
    for (uint32_t i = 0, next; i < job->count; i = next) {
        const uint32_t *n = &job->nodes[i];
        uint32_t left = job->count - i, run = 1;
        uint32_t step = left > 1 && n[1] > n[0] ? n[1] - n[0] : 0;
        while (step > 0 && run < left && n[run] > n[run - 1] && n[run] - n[run - 1] == step) {
            run++;
        }
        run = run < 3 && step != 1 ? 1 : run;
        int length = snprintf(text, sizeof(text), "%s%" PRIu32, i > 0 ? "," : "", n[0]);
        if (run > 1) {
            length +=
                snprintf(text + length, sizeof(text) - (size_t)length, "-%" PRIu32, n[run - 1]);
        }
        if (run > 1 && step > 1) {
            length += snprintf(text + length, sizeof(text) - (size_t)length, ":%" PRIu32, step);
        }
        goal_stream_put(out, text, (size_t)length);
        next = i + run;
    }
}

void goal_jobs_write(const struct goal_jobs *jobs, struct goal_stream *out)
{
    char text[64];
    for (uint32_t i = 0; i < jobs->count; i++) {
        const struct goal_job *job = &jobs->job[i];
        int length = 0;
        write_nodes(job, out);
        if (job->has_cpus) {
            length = snprintf(text, sizeof(text), " cpus %" PRIu32 "-%" PRIu32, job->first_cpu,
                              job->last_cpu);
            goal_stream_put(out, text, (size_t)length);
        }
        if (job->start > 0) {
            length = snprintf(text, sizeof(text), " start %" PRIu64, job->start);
            goal_stream_put(out, text, (size_t)length);
        }
        if (job->name != NULL) {
            goal_stream_put(out, " name ", 6);
            goal_stream_put(out, job->name, strlen(job->name));
        }
        goal_stream_put(out, "\n", 1);
    }
}

uint32_t goal_jobs_highest(const struct goal_jobs *jobs)
{
    uint32_t highest = 0;
    for (uint32_t i = 0; i < jobs->count; i++) {
        for (uint32_t k = 0; k < jobs->job[i].count; k++) {
            highest = jobs->job[i].nodes[k] > highest ? jobs->job[i].nodes[k] : highest;
        }
    }
    return highest;
}

void goal_jobs_free(struct goal_jobs *jobs)
{
    for (uint32_t i = 0; i < jobs->count; i++) {
        free(jobs->job[i].name);
        free(jobs->job[i].nodes);
    }
    free(jobs->job);
    *jobs = (struct goal_jobs){.job = NULL};
}
