/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs whose ranks are on other hosts: starts them, and handles what hosts.h reports. */
#include "job.h"

#include "boot/pmi_server.h"

#include <stdio.h>
#include <string.h>

/* Takes output of a rank. If the launcher cannot write its queue, output of a running job is still
 * queued, and that of a job that ends is dropped. */
static void take_output(void *arg, int rank, bool error, const void *bytes, size_t length)
{
    struct job *j = arg;
    struct relay *relay = error ? &j->err : &j->out;
    if (j->phase == RUNNING || !relay_full(relay)) {
        struct process *p = &j->processes[rank];
        relay_take(relay, error ? &p->err : &p->out, bytes, length);
    }
}

static void take_failure(void *arg, int rank, int error, const char *step)
{
    job_fail_start(arg, rank, error, step);
}

static void take_exit(void *arg, int rank, int code, int status)
{
    job_take_exit(arg, rank, code, status);
}

static void take_left(void *arg, int rank, bool stays)
{
    struct job *j = arg;
    if (stays || j->phase == RUNNING) {
        job_say_left(rank, stays);
    }
}

static void take_loss(void *arg, const char *text)
{
    job_fail(arg, 1, "%s", text);
}

/* Writes the placement of ranks as PMI-1 of MPICH has it: blocks of (first host, hosts, ranks of
 * each). */
void job_describe_hosts(const struct host_list *l, char *text)
{
    size_t length = (size_t)snprintf(text, PMI_VALUE_MAX, "(vector");
    for (int i = 0, n; i < l->count && length < PMI_VALUE_MAX; i += n) {
        for (n = 1; i + n < l->count && l->at[i + n].ranks == l->at[i].ranks; n++) {
        }
        length += (size_t)snprintf(text + length, PMI_VALUE_MAX - length, ",(%d,%d,%d)", i, n,
                                   l->at[i].ranks);
    }
    if (length + 1 < PMI_VALUE_MAX) {
        snprintf(text + length, PMI_VALUE_MAX - length, ")");
    } else { /* as if each rank had a host of its own */
        snprintf(text, PMI_VALUE_MAX, "(vector,(0,%d,1))", l->ranks);
    }
}

int job_start_away(struct job *j, const char *key, const char *id)
{
    const struct launch *l = j->launch;
    const struct hosts_job away = {.list = l->hosts,
                                   .shell = l->shell,
                                   .command = l->remote,
                                   .argv = l->argv,
                                   .environment = l->environment,
                                   .environment_count = l->environment_count,
                                   .key = key,
                                   .id = id,
                                   .bind = l->bind};
    j->hosts = (struct hosts){
        .pmi = &j->pmi, .up = {j, take_output, take_failure, take_exit, take_left, take_loss}};
    for (int r = 0; r < l->size; r++) {
        j->processes[r].out = j->processes[r].err = (struct relay_source){.fd = -1, .rank = r};
    }
    j->shown = l->size;
    j->out.plain = j->err.plain = !l->label;
    return hosts_open(&j->hosts, &away);
}
