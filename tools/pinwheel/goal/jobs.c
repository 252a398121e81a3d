/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel goal run --jobs`: when each job of a merged schedule finishes; see run.h. */
#include "run.h"

#include <inttypes.h>

static const char *name_of(const struct goal_job *job)
{
    return job->name != NULL ? job->name : "no name";
}

bool goal_jobs_need_record(const struct goal_run *r)
{
    for (uint32_t i = 0; i < r->jobs.count; i++) {
        if (r->jobs.job[i].has_cpus) {
            return true;
        }
    }
    return false;
}

/* Returns the time at which a job starts, in ticks; the job has it in the unit of calcs. */
static uint64_t start_of(const struct goal_run *r, const struct goal_job *job)
{
    return job->start * (r->in.calc_in_ps || r->in.model == SIM_LOGGOPSIM ? 1 : 1000);
}

static int check_job(const struct goal_run *r, uint32_t i, struct goal_error *error)
{
    const struct goal_job *job = &r->jobs.job[i];
    for (uint32_t k = 0; k < job->count; k++) {
        if (job->nodes[k] >= r->goal.ranks) {
            return goal_fail(error, "%s: job %u (%s) has node %u; %s has ranks 0 to %u",
                             r->jobs_file, i + 1, name_of(job), job->nodes[k], r->file,
                             r->goal.ranks - 1);
        }
    }
    if (job->start > INT64_MAX / 1000) {
        return goal_fail(error, "%s: job %u (%s) starts at %" PRIu64 ", later than a run can last",
                         r->jobs_file, i + 1, name_of(job), job->start);
    }
    return 0;
}

int goal_jobs_open(struct goal_run *r)
{
    struct goal_error error;
    int rc = 0;
    if (r->jobs_file == NULL) {
        return 0;
    }
    rc = goal_jobs_read(&r->jobs, r->jobs_file, r->goal.ranks, &error);
    for (uint32_t i = 0; i < r->jobs.count && rc == 0; i++) {
        rc = check_job(r, i, &error);
    }
    if (rc == 0 && r->in.model == SIM_LOGGOPSIM && goal_jobs_need_record(r)) {
        rc = goal_fail(&error,
                       "%s: jobs that share nodes are told apart by a record of what "
                       "happened, which --model=loggopsim does not keep",
                       r->jobs_file);
    }
    if (rc != 0) {
        fprintf(stderr, "pinwheel goal run: --jobs %s\n", error.text);
    }
    return rc == 0 ? 0 : 1;
}

/* Returns when the last operation of a node on the job's cpus ends. */
static uint64_t finish_on(const struct goal_run *r, const struct goal_job *job, uint32_t node)
{
    struct goal_rank rank = goal_rank(&r->goal, node);
    uint64_t last = 0;
    for (uint32_t i = 0; i < rank.node_count; i++) {
        uint8_t cpu = rank.nodes[i].cpu;
        if (cpu >= job->first_cpu && cpu <= job->last_cpu) {
            uint64_t end = record_end(&r->record, record_operation(&r->record, node, i));
            last = end > last ? end : last;
        }
    }
    return last;
}

static uint64_t finish_of(const struct goal_run *r, const struct goal_job *job)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        uint32_t node = job->nodes[i];
        uint64_t finish = job->has_cpus ? finish_on(r, job, node) : r->out.finish[node];
        last = finish > last ? finish : last;
    }
    return last;
}

/* Returns how long a job takes from its start; 0 for a job without operations. */
static uint64_t duration(const struct goal_run *r, const struct goal_job *job, uint64_t finish)
{
    uint64_t start = start_of(r, job);
    return finish > start ? finish - start : 0;
}

void goal_jobs_json(struct json *j, struct goal_run *r)
{
    json_open_array(j, "jobs");
    for (uint32_t i = 0; i < r->jobs.count; i++) {
        const struct goal_job *job = &r->jobs.job[i];
        uint64_t finish = finish_of(r, job);
        json_open_object(j, NULL);
        if (job->name != NULL) {
            json_string(j, "name", job->name);
        }
        json_unsigned(j, "nodes", job->count);
        goal_json_time(j, &r->out, "start_ns", start_of(r, job));
        goal_json_time(j, &r->out, "finish_ns", finish);
        goal_json_time(j, &r->out, "duration_ns", duration(r, job, finish));
        json_close_object(j);
    }
    json_close_array(j);
}

void goal_jobs_text(struct goal_run *r)
{
    for (uint32_t i = 0; i < r->jobs.count; i++) {
        const struct goal_job *job = &r->jobs.job[i];
        uint64_t finish = finish_of(r, job);
        char start[32], end[32], length[32];
        goal_time_text(&r->out, start_of(r, job), start);
        goal_time_text(&r->out, finish, end);
        goal_time_text(&r->out, duration(r, job, finish), length);
        printf("job %-7u %s: %" PRIu32 " nodes, from %s to %s ns, %s ns long\n", i + 1,
               name_of(job), job->count, start, end, length);
    }
}
