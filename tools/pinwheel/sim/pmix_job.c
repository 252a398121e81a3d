/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the PMIx server tells ranks of their job. Each rank is alone on a host of its own, as in the
 * simulated network, so that no MPI passes the NIC by through memory of this machine.
 */
#include "pmix_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { JOB_INFOS = 16, RANK_INFOS = 12 };

/* Infos are filled from the first on; `strings` are freed with them. */
struct infos {
    pmix_info_t *info;
    size_t count;
};

static pmix_value_t *add(struct infos *a, const char *key, pmix_data_type_t type)
{
    pmix_info_t *i = &a->info[a->count++];
    snprintf(i->key, sizeof(i->key), "%s", key);
    i->value.type = type;
    return &i->value;
}

static void add_number(struct infos *a, const char *key, uint32_t n)
{
    add(a, key, PMIX_UINT32)->data.uint32 = n;
}

static void add_small(struct infos *a, const char *key, uint16_t n)
{
    add(a, key, PMIX_UINT16)->data.uint16 = n;
}

static void add_rank(struct infos *a, const char *key, pmix_rank_t rank)
{
    add(a, key, PMIX_PROC_RANK)->data.rank = rank;
}

static void add_text(struct infos *a, const char *key, char *text)
{
    add(a, key, PMIX_STRING)->data.string = text;
}

/* What a job of `ranks` takes to tell. */
struct telling {
    struct infos job;
    pmix_data_array_t *rank;
    char (*host)[16];
    char *hosts, *places, *host_map, *place_map;
};

static void free_telling(struct telling *t)
{
    for (size_t i = 0; t->rank != NULL && t->host != NULL && i < t->job.count; i++) {
        if (t->job.info[i].value.type == PMIX_DATA_ARRAY) {
            free(t->job.info[i].value.data.darray->array);
        }
    }
    free(t->job.info);
    free(t->rank);
    free(t->host);
    free(t->hosts);
    free(t->places);
    free(t->host_map);
    free(t->place_map);
}

/* "sim0,sim1,..." and "0;1;...": hosts, and which rank is on each. */
static bool name_hosts(struct telling *t, int ranks)
{
    char *h = t->hosts = malloc((size_t)ranks * 16), *p = t->places = malloc((size_t)ranks * 16);
    t->host = calloc((size_t)ranks, sizeof(*t->host));
    if (h == NULL || p == NULL || t->host == NULL) {
        return false;
    }
    for (int r = 0; r < ranks; r++) {
        snprintf(t->host[r], sizeof(t->host[r]), "sim%d", r);
        h += sprintf(h, "%s%s", r > 0 ? "," : "", t->host[r]);
        p += sprintf(p, "%s%d", r > 0 ? ";" : "", r);
    }
    return true;
}

static void tell_of_job(struct telling *t, int ranks)
{
    struct infos *a = &t->job;
    uint32_t n = (uint32_t)ranks;
    add_text(a, PMIX_JOBID, (char *)SIM_PMIX_JOB);
    add_text(a, PMIX_NODE_MAP, t->host_map);
    add_text(a, PMIX_PROC_MAP, t->place_map);
    add_number(a, PMIX_UNIV_SIZE, n);
    add_number(a, PMIX_MAX_PROCS, n);
    add_number(a, PMIX_JOB_SIZE, n);
    add_number(a, PMIX_JOB_NUM_APPS, 1);
    add_number(a, PMIX_NUM_NODES, n);
    add_number(a, PMIX_LOCAL_SIZE, 1);
    add_number(a, PMIX_NODE_SIZE, 1);
    add(a, PMIX_SPAWNED, PMIX_BOOL)->data.flag = false;
}

static bool tell_of_rank(struct telling *t, int rank)
{
    struct infos a = {calloc(RANK_INFOS, sizeof(*a.info)), 0};
    if (a.info == NULL) {
        return false;
    }
    add_rank(&a, PMIX_RANK, (pmix_rank_t)rank);
    add_rank(&a, PMIX_GLOBAL_RANK, (pmix_rank_t)rank);
    add_rank(&a, PMIX_APP_RANK, (pmix_rank_t)rank);
    add_rank(&a, PMIX_APPLDR, 0);
    add_rank(&a, PMIX_LOCALLDR, (pmix_rank_t)rank);
    add_number(&a, PMIX_APPNUM, 0);
    add_number(&a, PMIX_NODEID, (uint32_t)rank);
    add_small(&a, PMIX_LOCAL_RANK, 0);
    add_small(&a, PMIX_NODE_RANK, 0);
    add_text(&a, PMIX_HOSTNAME, t->host[rank]);
    t->rank[rank] = (pmix_data_array_t){PMIX_INFO, a.count, a.info};
    add(&t->job, PMIX_PROC_INFO_ARRAY, PMIX_DATA_ARRAY)->data.darray = &t->rank[rank];
    return true;
}

static pmix_status_t prepare(struct telling *t, int ranks)
{
    size_t n = (size_t)ranks;
    t->job.info = calloc(JOB_INFOS + n, sizeof(*t->job.info));
    t->rank = calloc(n, sizeof(*t->rank));
    if (t->job.info == NULL || t->rank == NULL || !name_hosts(t, ranks)) {
        return PMIX_ERR_NOMEM;
    }
    pmix_status_t status = sim_pmix_library.regex(t->hosts, &t->host_map);
    if (status == PMIX_SUCCESS) {
        status = sim_pmix_library.ppn(t->places, &t->place_map);
    }
    if (status != PMIX_SUCCESS) {
        return status;
    }
    tell_of_job(t, ranks);
    for (int r = 0; r < ranks; r++) {
        if (!tell_of_rank(t, r)) {
            return PMIX_ERR_NOMEM;
        }
    }
    return PMIX_SUCCESS;
}

pmix_status_t sim_pmix_tell_job(const struct sim_pmix *p)
{
    struct telling t = {0};
    pmix_status_t status = prepare(&t, p->ranks);
    if (status == PMIX_SUCCESS) {
        struct sim_pmix_wait w = {0};
        status =
            sim_pmix_await(&w, sim_pmix_library.register_nspace(sim_pmix_job, p->ranks, t.job.info,
                                                                t.job.count, sim_pmix_done, &w));
    }
    for (int r = 0; status == PMIX_SUCCESS && r < p->ranks; r++) {
        pmix_proc_t proc = {SIM_PMIX_JOB, (pmix_rank_t)r};
        struct sim_pmix_wait w = {0};
        status = sim_pmix_await(&w, sim_pmix_library.register_client(&proc, geteuid(), getegid(),
                                                                     NULL, sim_pmix_done, &w));
    }
    free_telling(&t);
    return status;
}
