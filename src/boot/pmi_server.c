/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI-1 server: connections, and the functions that the owner of a job calls. pmi_server.h has
 * the protocol and the states; pmi_commands.c answers the requests of ranks.
 */
#include "base/array.h"
#include "boot/pmi_job.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Connections ---- */

void pmi_close(struct pmi_job *job, struct pmi_rank *r)
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
    pmi_open_barrier(job);
}

void pmi_refuse(struct pmi_job *job, struct pmi_rank *r, const char *format, ...)
{
    if (r->state == PMI_CLOSED) {
        return;
    }
    va_list args;
    va_start(args, format);
    vsnprintf(r->error, sizeof(r->error), format, args);
    va_end(args);
    pmi_close(job, r);
}

static bool output_reserve(struct pmi_rank *r, size_t length)
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
    return ARRAY_HOLDS(r->output, queued + length, r->output_capacity, 512);
}

/* Queues a formatted line for a rank. A line of an answer has bounded parts only, so the buffer
 * always holds it. */
void pmi_reply(struct pmi_job *job, struct pmi_rank *r, const char *format, ...)
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
        pmi_refuse(job, r, "it does not read the replies to its requests");
        return;
    }
    if (!output_reserve(r, length)) {
        pmi_refuse(job, r, "no memory for a reply");
        return;
    }
    memcpy(r->output + r->output_end, line, length);
    r->output_end += length;
}

/* pmi_open_barrier(): an answer to a rank whose queue is full closes its connection, so the states
 * are set before the answers. */
void pmi_open_barrier(struct pmi_job *job)
{
    int missing = job->size - job->in_barrier - (job->keep_going ? job->gone : 0);
    if (job->in_barrier == 0 || missing > 0) {
        return;
    }
    bool in[PMI_RANKS_MAX];
    const int size = job->size;
    job->in_barrier = 0;
    for (int i = 0; i < size; i++) {
        in[i] = job->ranks[i].state == PMI_BARRIER;
        job->ranks[i].state = in[i] ? PMI_READY : job->ranks[i].state;
    }
    for (int i = 0; i < size; i++) {
        if (in[i]) {
            pmi_reply(job, &job->ranks[i], "cmd=barrier_out rc=0");
        }
    }
}

/* ---- Calls of the job's owner ---- */

/* Puts the pairs that a rank may get although no rank puts them: how the ranks are spread over
 * hosts, in the notation of MPICH's process managers. Without `hosts` all ranks are on one host. */
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
    struct pmi_rank *r = &job->ranks[rank];
    const char *at = bytes, *end = at + length;
    while (at < end && r->state != PMI_CLOSED) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t n = (size_t)((newline != NULL ? newline : end) - at);
        if (r->line_length + n > PMI_LINE_MAX) {
            pmi_refuse(job, r, "it sent a line longer than %d bytes", PMI_LINE_MAX);
            return;
        }
        memcpy(r->line + r->line_length, at, n);
        r->line_length += n;
        at += n;
        if (newline != NULL) {
            at++;
            pmi_take_line(job, r);
            r->line_length = 0;
        }
    }
}

void pmi_keep_going(struct pmi_job *job)
{
    job->keep_going = true;
    pmi_open_barrier(job);
}

void pmi_rank_gone(struct pmi_job *job, int rank)
{
    struct pmi_rank *r = &job->ranks[rank];
    r->torn |= r->state != PMI_CLOSED && r->state != PMI_FINALIZED;
    pmi_close(job, r);
}

bool pmi_torn(const struct pmi_job *job, int rank)
{
    return job->ranks[rank].torn;
}

const char *pmi_output(const struct pmi_job *job, int rank, size_t *length)
{
    const struct pmi_rank *r = &job->ranks[rank];
    *length = r->output_end - r->output_start;
    return *length > 0 ? r->output + r->output_start : "";
}

void pmi_output_sent(struct pmi_job *job, int rank, size_t length)
{
    struct pmi_rank *r = &job->ranks[rank];
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
    const struct pmi_rank *r = &job->ranks[rank];
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
