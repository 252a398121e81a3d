/* SPDX-License-Identifier: BSD-3-Clause */
/* Merged schedules; see merge.h. It needs 12 bytes for each rank, and memory for one rank's
 * operations. */
#include "merge.h"
#include "operations.h"

#include "base/array.h"
#include "print.h"
#include "sim/util/random.h"
#include "write.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CPUS_MOST = 256 };

static int no_memory(struct goal_error *error)
{
    return goal_fail(error, "no memory for the nodes of the jobs");
}

static const char *name_of(const struct goal_merge *m, uint32_t job)
{
    return m->jobs.job[job].name != NULL ? m->jobs.job[job].name : "no name";
}

/* ---- Nodes for jobs ---- */

static void pack(struct goal_merge *m)
{
    uint32_t node = 0;
    for (uint32_t i = 0; i < m->jobs.count; i++) {
        for (uint32_t rank = 0; rank < m->jobs.job[i].count; rank++) {
            m->jobs.job[i].nodes[rank] = node++;
        }
    }
}

static void interleave(struct goal_merge *m, uint32_t most)
{
    uint32_t node = 0;
    for (uint32_t rank = 0; rank < most; rank++) {
        for (uint32_t i = 0; i < m->jobs.count; i++) {
            if (rank < m->jobs.job[i].count) {
                m->jobs.job[i].nodes[rank] = node++;
            }
        }
    }
}

static void scatter(struct goal_merge *m, uint64_t seed)
{
    struct goal_permutation p = goal_permutation(m->nodes, seed);
    uint64_t drawn = 0;
    for (uint32_t i = 0; i < m->jobs.count; i++) {
        for (uint32_t rank = 0; rank < m->jobs.job[i].count; rank++) {
            m->jobs.job[i].nodes[rank] = (uint32_t)goal_permute(&p, drawn++);
        }
    }
}

int goal_merge_spread(struct goal_merge *m, uint32_t count, enum goal_spread how, uint64_t seed,
                      struct goal_error *error)
{
    uint64_t needed = 0;
    uint32_t most = 0;
    m->jobs.job = calloc(count, sizeof(*m->jobs.job));
    if (m->jobs.job == NULL) {
        return no_memory(error);
    }
    for (m->jobs.count = 0; m->jobs.count < count; m->jobs.count++) {
        struct goal_job *job = &m->jobs.job[m->jobs.count];
        job->count = m->parts[m->jobs.count].ranks;
        job->nodes = malloc(job->count * sizeof(*job->nodes));
        if (job->nodes == NULL) {
            return no_memory(error);
        }
        needed += job->count;
        most = job->count > most ? job->count : most;
    }
    uint64_t nodes = m->nodes > 0 ? m->nodes : needed;
    if (nodes < needed || nodes >= GOAL_ANY) {
        return goal_fail(error,
                         "the jobs have %" PRIu64 " ranks together and do not fit %" PRIu64
                         " nodes; there can be up to %u",
                         needed, nodes, GOAL_ANY - 1);
    }
    m->nodes = (uint32_t)nodes;
    if (how == GOAL_PACKED) {
        pack(m);
    } else if (how == GOAL_INTERLEAVED) {
        interleave(m, most);
    } else {
        scatter(m, seed);
    }
    return 0;
}

/* ---- Which ranks are at which node ---- */

/* Returns the job of a place: places number the ranks of all jobs, job by job. */
static uint32_t job_of(const struct goal_merge *m, uint64_t place)
{
    return (uint32_t)ARRAY_FIRST(i, m->jobs.count, m->first[i] > place) - 1;
}

static bool is_shared(const struct goal_merge *m, uint32_t node)
{
    return m->head[node] != 0 && m->next[m->head[node] - 1] != 0;
}

static bool job_shares(const struct goal_merge *m, const struct goal_job *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        if (is_shared(m, job->nodes[i])) {
            return true;
        }
    }
    return false;
}

static int count_places(struct goal_merge *m, struct goal_error *error)
{
    const struct goal_jobs *jobs = &m->jobs;
    m->first = calloc(jobs->count + (size_t)1, sizeof(*m->first));
    m->tags = calloc(jobs->count, sizeof(*m->tags));
    if (m->first == NULL || m->tags == NULL) {
        return no_memory(error);
    }
    for (uint32_t i = 0; i < jobs->count; i++) {
        if (jobs->job[i].count != m->parts[i].ranks) {
            return goal_fail(error, "job %u (%s) has %u ranks, and %u nodes", i + 1, name_of(m, i),
                             m->parts[i].ranks, jobs->job[i].count);
        }
        m->first[i + 1] = m->first[i] + jobs->job[i].count;
    }
    if (m->first[jobs->count] >= GOAL_ANY) {
        return goal_fail(error, "the jobs have %" PRIu64 " ranks together; there can be up to %u",
                         m->first[jobs->count], GOAL_ANY - 1);
    }
    m->head = calloc(m->nodes, sizeof(*m->head));
    m->next = calloc(m->first[jobs->count], sizeof(*m->next));
    return m->head != NULL && m->next != NULL ? 0 : no_memory(error);
}

/* Chains the places at each node, those of the first job first. */
static int chain_places(struct goal_merge *m, struct goal_error *error)
{
    for (uint32_t i = m->jobs.count; i-- > 0;) {
        const struct goal_job *job = &m->jobs.job[i];
        for (uint32_t rank = 0; rank < job->count; rank++) {
            uint32_t node = job->nodes[rank];
            if (node >= m->nodes) {
                return goal_fail(error, "job %u (%s): rank %u is on node %u; there are 0 to %u",
                                 i + 1, name_of(m, i), rank, node, m->nodes - 1);
            }
            if (m->head[node] != 0 && !m->share) {
                uint32_t other = job_of(m, m->head[node] - (uint64_t)1);
                return goal_fail(error,
                                 "node %u is of job %u (%s) and of job %u (%s); only with --share "
                                 "may jobs share a node",
                                 node, i + 1, name_of(m, i), other + 1, name_of(m, other));
            }
            uint32_t place = (uint32_t)(m->first[i] + rank);
            m->next[place] = m->head[node];
            m->head[node] = place + 1;
        }
    }
    return 0;
}

/* ---- Cpus and tags of jobs that share nodes ---- */

/* Gives each job its cpus: they follow those that the jobs before it have at any of its nodes. */
static int give_cpus(struct goal_merge *m, struct goal_error *error)
{
    uint16_t *used = calloc(m->nodes, sizeof(*used));
    int rc = used != NULL ? 0 : no_memory(error);
    for (uint32_t i = 0; i < m->jobs.count && rc == 0; i++) {
        struct goal_job *job = &m->jobs.job[i];
        uint32_t first = 0;
        for (uint32_t k = 0; k < job->count; k++) {
            /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): without it rc is not 0 */
            first = used[job->nodes[k]] > first ? used[job->nodes[k]] : first;
        }
        uint32_t end = first + m->parts[i].cpus;
        if (end > CPUS_MOST) {
            rc = goal_fail(error,
                           "job %u (%s): the jobs at its nodes have %u cpus before it, it has %u; "
                           "a node can have %d",
                           i + 1, name_of(m, i), first, m->parts[i].cpus, CPUS_MOST);
        }
        job->first_cpu = first;
        job->last_cpu = end - 1;
        job->has_cpus = job_shares(m, job);
        for (uint32_t k = 0; k < job->count && rc == 0; k++) {
            used[job->nodes[k]] = (uint16_t)end;
        }
    }
    free(used);
    return rc;
}

/* Finds the highest tag of a job. It fails if an operation of the job has any tag at a shared node,
 * and so might match one of another job. */
static int scan_tags(const struct goal_merge *m, uint32_t i, uint32_t *highest,
                     struct goal_error *error)
{
    const struct goal_job *job = &m->jobs.job[i];
    *highest = 0;
    if (m->parts[i].portals != 0) {
        return goal_fail(error,
                         "job %u (%s) has operations of Portals: a simulated NIC is one job's, and "
                         "none of its nodes can be shared",
                         i + 1, name_of(m, i));
    }
    for (uint32_t rank = 0; rank < job->count; rank++) {
        struct goal_rank r = goal_rank(&m->parts[i], rank);
        for (uint32_t k = 0; k < r.node_count; k++) {
            const struct goal_node *n = &r.nodes[k];
            if (n->tag != GOAL_ANY) {
                *highest = n->tag > *highest ? n->tag : *highest;
                continue;
            }
            uint32_t where = job->nodes[n->type == GOAL_SEND ? n->peer : rank];
            if (is_shared(m, where)) {
                return goal_fail(error,
                                 "job %u (%s): rank %u, operation %u: a %s with any tag at node "
                                 "%u, which jobs share, could meet the %s of another job; it "
                                 "needs a tag",
                                 i + 1, name_of(m, i), rank, k,
                                 n->type == GOAL_SEND ? "message" : "recv", where,
                                 n->type == GOAL_SEND ? "recvs" : "messages");
            }
        }
    }
    return 0;
}

/* Gives the jobs that share nodes disjoint ranges of tags, one after the other. */
static int give_tags(struct goal_merge *m, struct goal_error *error)
{
    uint64_t next = 0;
    for (uint32_t i = 0; i < m->jobs.count; i++) {
        uint32_t highest;
        if (!m->jobs.job[i].has_cpus) {
            continue;
        }
        if (scan_tags(m, i, &highest, error) != 0) {
            return -1;
        }
        m->tags[i] = (uint32_t)next;
        next += highest + (uint64_t)1;
        if (next > GOAL_ANY) {
            return goal_fail(error,
                             "job %u (%s): its tags up to %u do not fit behind those of the jobs "
                             "before it: tags end at %u",
                             i + 1, name_of(m, i), highest, GOAL_ANY - 1);
        }
    }
    return 0;
}

int goal_merge_check(struct goal_merge *m, struct goal_error *error)
{
    if (count_places(m, error) != 0 || chain_places(m, error) != 0) {
        return -1;
    }
    return m->share && (give_cpus(m, error) != 0 || give_tags(m, error) != 0) ? -1 : 0;
}

/* ---- The schedule ---- */

/* Adds the operations of a job's rank to the node's, behind those of the jobs before. */
static void add_rank(const struct goal_merge *m, uint32_t i, uint32_t rank, struct goal_builder *b)
{
    const struct goal_job *job = &m->jobs.job[i];
    struct goal_rank r = goal_rank(&m->parts[i], rank);
    uint32_t late = GOAL_ANY;
    if (job->start > 0 && r.node_count > 0) {
        late = goal_add(b, GOAL_CALC, job->start, 0, 0, (uint8_t)job->first_cpu, 0);
    }
    uint32_t base = (uint32_t)b->count;
    for (uint32_t k = 0; k < r.node_count; k++) {
        const struct goal_node *n = &r.nodes[k];
        unsigned has = goal_kind_of(n->type)->has;
        bool peer = (has & GOAL_HAS_PEER) != 0 && n->peer != GOAL_ANY;
        uint32_t to = peer ? job->nodes[n->peer] : n->peer;
        if (goal_is_part(n)) {
            goal_add_part(b, (enum goal_type)n->type, n->size, to, n->tag, n->cpu != 0);
            continue;
        }
        bool tag = (has & GOAL_HAS_TAG) != 0 && n->tag != GOAL_ANY;
        goal_add(b, (enum goal_type)n->type, n->size, to, tag ? n->tag + m->tags[i] : n->tag,
                 (uint8_t)(n->cpu + job->first_cpu), n->nic);
    }
    for (uint32_t k = 0; k < r.root_count && late != GOAL_ANY; k++) {
        goal_requires(b, base + r.roots[k], late);
    }
    for (uint32_t k = 0; k < r.node_count; k++) {
        const struct goal_node *n = &r.nodes[k];
        const goal_u32 *done = goal_done(&r, n), *start = goal_start(&r, n);
        for (uint32_t s = 0; s < n->done_count; s++) {
            goal_requires(b, base + done[s], base + k);
        }
        for (uint32_t s = 0; s < n->start_count; s++) {
            goal_irequires(b, base + start[s], base + k);
        }
    }
}

void goal_merge_at(const struct goal_merge *m, uint32_t at, uint32_t *job, uint32_t *rank)
{
    *job = job_of(m, at - (uint64_t)1);
    *rank = (uint32_t)(at - 1 - m->first[*job]);
}

static void make_node(const struct goal_merge *m, uint32_t node, struct goal_builder *b)
{
    for (uint32_t at = m->head[node]; at != 0; at = m->next[at - 1]) {
        uint32_t job, rank;
        goal_merge_at(m, at, &job, &rank);
        add_rank(m, job, rank, b);
    }
}

/* Writes the binary schedule, and, unless `side` is NULL, its side file. */
static int write_binary(struct goal_merge *m, int fd, struct goal_merge_side *side,
                        struct goal_builder *b, struct goal_error *error)
{
    struct goal_writer writer;
    struct goal_error ignored;
    int rc = 0;
    if (goal_writer_open(&writer, fd, m->nodes, error) != 0) {
        return -1;
    }
    for (uint32_t node = 0; node < m->nodes && rc == 0; node++) {
        make_node(m, node, b);
        rc = goal_writer_rank(&writer, b, error);
        rc = rc == 0 && side != NULL ? goal_merge_label_node(side, m, node, error) : rc;
    }
    return goal_writer_close(&writer, rc == 0 ? error : &ignored) != 0 ? -1 : rc;
}

static int write_labelled(struct goal_merge *m, int fd, int side_fd, struct goal_builder *b,
                          struct goal_error *error)
{
    struct goal_merge_side side = {.origins = NULL};
    uint32_t source;
    if (goal_side_open(&side.writer, side_fd, m->nodes, error) != 0) {
        return -1;
    }
    /* an operation without a line still needs a source: the first job's schedule */
    int rc = goal_side_source(&side.writer, name_of(m, 0), &source, error);
    rc = rc == 0 ? write_binary(m, fd, &side, b, error) : rc;
    if (rc == 0) {
        rc = goal_side_finish(&side.writer, fd, error);
    } else {
        goal_side_discard(&side.writer);
    }
    goal_merge_side_free(&side);
    return rc;
}

static int write_text(struct goal_merge *m, struct goal_stream *out, struct goal_builder *b,
                      struct goal_error *error)
{
    struct goal_printer printer = {.out = out};
    int rc = 0;
    goal_print_head(&printer, m->nodes);
    for (uint32_t node = 0; node < m->nodes && rc == 0 && out->failed == 0; node++) {
        struct goal_rank r;
        make_node(m, node, b);
        if (goal_lay_out(b, &r) != 0 ||
            goal_print_rank(&printer, node, &r, b->done.count + b->start.count) != 0) {
            rc = goal_fail(error, "node %u does not fit memory: %" PRIu64 " operations", node,
                           b->count);
        }
        goal_builder_clear(b);
    }
    goal_printer_free(&printer);
    return rc;
}

int goal_merge_write(struct goal_merge *m, int fd, int side_fd, struct goal_stream *text,
                     struct goal_error *error)
{
    struct goal_builder b = {0};
    int rc = text != NULL   ? write_text(m, text, &b, error)
             : side_fd >= 0 ? write_labelled(m, fd, side_fd, &b, error)
                            : write_binary(m, fd, NULL, &b, error);
    goal_builder_free(&b);
    return rc;
}

void goal_merge_free(struct goal_merge *m)
{
    goal_jobs_free(&m->jobs);
    free(m->first);
    free(m->head);
    free(m->next);
    free(m->tags);
    m->first = NULL;
    m->head = m->next = m->tags = NULL;
}
