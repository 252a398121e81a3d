/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of a job that checks every call of libpinwheel, whichever launcher
 * started it. Usage: job_client [RANKS], the number of ranks that there must be
 */
#include "pinwheel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pinwheel_job *job;

#define check(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "job_client:%d: %s; %s\n", __LINE__, #condition,                       \
                    pinwheel_job_error(job));                                                      \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static void check_keys(void)
{
    char key[128], value[1100], buf[1100];
    int rank = pinwheel_job_rank(job), size = pinwheel_job_size(job);
    snprintf(key, sizeof(key), "card-%d", rank);
    snprintf(value, sizeof(value), "tcp://%d=$x;", rank);
    check(pinwheel_job_put(job, key, value) == 0);
    check(pinwheel_job_barrier(job) == 0);
    for (int r = 0; r < size; r++) {
        snprintf(key, sizeof(key), "card-%d", r);
        snprintf(value, sizeof(value), "tcp://%d=$x;", r);
        check(pinwheel_job_get(job, key, buf, sizeof(buf)) == 0);
        check(strcmp(buf, value) == 0);
        check(pinwheel_job_get(job, key, buf, strlen(value) + 1) == 0);
        strcpy(buf, "untouched");
        check(pinwheel_job_get(job, key, buf, strlen(value)) == -ERANGE);
        check(strcmp(buf, "untouched") == 0);
    }
    check(pinwheel_job_get(job, "nobody-put-this", buf, sizeof(buf)) == -ENOENT);
    check(strstr(pinwheel_job_error(job), "nobody-put-this") != NULL);
    check(pinwheel_job_put(job, "", "x") == -EINVAL);
    check(pinwheel_job_put(job, "a b", "x") == -EINVAL);
    check(pinwheel_job_put(job, "a=b", "x") == -EINVAL);
    check(pinwheel_job_put(job, "ab", "x\n") == -EINVAL);
    check(pinwheel_job_get(job, "a b", buf, sizeof(buf)) == -EINVAL);
    memset(value, 'v', sizeof(value));
    value[1099] = '\0';
    check(pinwheel_job_put(job, "too-long", value) == -ENAMETOOLONG);
    memset(key, 'k', 64);
    key[64] = '\0';
    check(pinwheel_job_put(job, key, "x") == -ENAMETOOLONG);
}

/* More than one line, answer or card of any launcher holds; ranks put different
 * numbers of pairs, some none, between their barriers. */
static void check_many_keys(void)
{
    enum { ROUNDS = 3, KEYS = 24, LONG = 1000 };
    char key[64], value[LONG + 1], buf[LONG + 1];
    int rank = pinwheel_job_rank(job), size = pinwheel_job_size(job);
    for (int round = 0; round < ROUNDS; round++) {
        for (int r = 0; r < size; r++) {
            for (int i = 0; i < (r + round) % ROUNDS * KEYS / 2; i++) {
                snprintf(key, sizeof(key), "many-%d-%d-%d", round, r, i);
                memset(value, 'a' + (r + i) % 26, LONG);
                value[LONG - i] = '\0';
                if (r == rank) {
                    check(pinwheel_job_put(job, key, value) == 0);
                }
            }
        }
        check(pinwheel_job_barrier(job) == 0);
        for (int r = size - 1; r >= 0; r--) {
            for (int i = 0; i < (r + round) % ROUNDS * KEYS / 2; i++) {
                snprintf(key, sizeof(key), "many-%d-%d-%d", round, r, i);
                memset(value, 'a' + (r + i) % 26, LONG);
                value[LONG - i] = '\0';
                check(pinwheel_job_get(job, key, buf, sizeof(buf)) == 0);
                check(strcmp(buf, value) == 0);
            }
        }
        snprintf(key, sizeof(key), "many-%d-0-%d", round, KEYS);
        check(pinwheel_job_get(job, key, buf, sizeof(buf)) == -ENOENT);
    }
}

static void check_key_of_the_job(void)
{
    const char *key = pinwheel_job_key(job);
    if (getenv("PINWHEEL_JOB_ID") != NULL) { /* under `pinwheel run` */
        check(key != NULL && strlen(key) == 32);
        check(strspn(key, "0123456789abcdef") == 32);
        int rc = pinwheel_job_put(job, "twice", "x"); /* of all ranks the first succeeds */
        check(rc == 0 || rc == -EEXIST);
        check(pinwheel_job_put(job, "twice", "x") == -EEXIST);
    }
}

static void check_map(void)
{
    int rank = pinwheel_job_rank(job), size = pinwheel_job_size(job);
    ptl_process_t *map = calloc((size_t)size, sizeof(*map));
    ptl_process_t *set = calloc((size_t)size, sizeof(*set));
    ptl_handle_ni_t physical, logical;
    ptl_process_t me;
    ptl_size_t actual;
    check(map != NULL && set != NULL);
    check(PtlInit() == PTL_OK);
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL, PTL_PID_ANY, NULL, NULL,
                    &physical) == PTL_OK);
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, NULL,
                    &logical) == PTL_OK);
    check(PtlGetPhysId(physical, &me) == PTL_OK);

    check(pinwheel_job_map(job, physical, map) == 0);
    check(map[rank].phys.nid == me.phys.nid && map[rank].phys.pid == me.phys.pid);
    for (int r = 0; r < size; r++) {
        for (int other = 0; other < r; other++) {
            check(map[r].phys.nid != map[other].phys.nid || map[r].phys.pid != map[other].phys.pid);
        }
    }
    check(pinwheel_job_set_map(job, logical) == 0);
    check(PtlGetMap(logical, (ptl_size_t)size, set, &actual) == PTL_OK);
    check(actual == (ptl_size_t)size && memcmp(set, map, (size_t)size * sizeof(*map)) == 0);
    check(pinwheel_job_set_map(job, logical) == 0);        /* the same again */
    check(pinwheel_job_set_map(job, physical) == -EINVAL); /* takes none */

    /* One rank's bad handle is an error in all ranks, not a hang. */
    int rc = pinwheel_job_map(job, rank == size - 1 ? PTL_INVALID_HANDLE : physical, map);
    check(rc == (rank == size - 1 ? -EINVAL : -ENXIO));
    check(pinwheel_job_barrier(job) == 0);
    PtlNIFini(logical);
    PtlNIFini(physical);
    PtlFini();
    free(map);
    free(set);
}

static void check_bad_environment(void)
{
    static const struct {
        const char *fd, *rank, *size;
        int rc;
        const char *text;
    } bad[] = {
        {"x", "0", "1", -EINVAL, "PMI_FD=x: must be a whole number"},
        {"-1", "0", "1", -EINVAL, "PMI_FD=-1: must be a whole number"},
        {"777", "0", "1", -EBADF, "PMI_FD=777: no open connection"},
        {"2", "0", "1", -EBADF, "PMI_FD=2: no open connection"}, /* open, but no socket */
        {"777", NULL, "1", -EINVAL, "PMI_RANK is not"},
        {"777", "0", NULL, -EINVAL, "PMI_SIZE is not"},
        {"777", "3", "3", -EINVAL, "PMI_RANK=3: must be below PMI_SIZE=3"},
        {"777", "0", "0", -EINVAL, "PMI_SIZE=0: must be a whole number of at least 1"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const char *const names[] = {"PMI_FD", "PMI_RANK", "PMI_SIZE"};
        const char *const values[] = {bad[i].fd, bad[i].rank, bad[i].size};
        for (int v = 0; v < 3; v++) {
            if (values[v] != NULL) {
                setenv(names[v], values[v], 1);
            } else {
                unsetenv(names[v]);
            }
        }
        check(pinwheel_job_init(&job) == bad[i].rc);
        check(job == NULL);
        check(strstr(pinwheel_job_error(NULL), bad[i].text) != NULL);
    }
    unsetenv("PMI_FD");
    setenv("PMI_PORT", "host:1", 1);
    check(pinwheel_job_init(&job) == -EOPNOTSUPP);
    unsetenv("PMI_PORT");
    unsetenv("PMI_RANK");
    check(pinwheel_job_init(&job) == -EINVAL);
    check(strstr(pinwheel_job_error(NULL), "PMI_SIZE is set but PMI_FD is not") != NULL);
    unsetenv("PMI_SIZE");
    setenv("PMI_RANK", "0", 1);
    check(pinwheel_job_init(&job) == -EINVAL);
    check(strstr(pinwheel_job_error(NULL), "PMI_RANK is set but PMI_FD is not") != NULL);
    unsetenv("PMI_RANK");
    setenv("PINWHEEL_JOB_KEY", "abc", 1);
    check(pinwheel_job_init(&job) == -EINVAL);
    check(strstr(pinwheel_job_error(NULL), "PINWHEEL_JOB_KEY has 3 characters") != NULL);
    unsetenv("PINWHEEL_JOB_KEY");
}

int main(int argc, char **argv)
{
    int alone = getenv("PMI_FD") == NULL && getenv("PMIX_NAMESPACE") == NULL;
    struct pinwheel_job *second;
    if (alone) {
        check_bad_environment();
    }
    check(pinwheel_job_init(&job) == 0);
    check(pinwheel_job_rank(job) >= 0 && pinwheel_job_rank(job) < pinwheel_job_size(job));
    check(!alone || pinwheel_job_size(job) == 1);
    check(argc < 2 || pinwheel_job_size(job) == atoi(argv[1]));
    check_keys();
    check_many_keys();
    check(pinwheel_job_abort(job, 0) == -EINVAL && pinwheel_job_abort(job, 256) == -EINVAL);
    check_key_of_the_job();
    check_map();
    check(pinwheel_job_init(&second) == -EBUSY && second == NULL);
    check(pinwheel_job_finalize(job) == 0);
    job = NULL;
    check(pinwheel_job_finalize(NULL) == 0);
    check(pinwheel_job_init(&job) == -EALREADY && job == NULL);
    return 0;
}
