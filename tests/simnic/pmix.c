/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of PMIx, without an MPI:
 *
 *      pmix ROUNDS [VICTIM ROUND killed|exits|aborts|returns]
 *
 * In each round every rank puts a number, meets the others in a fence, and gets the next one's;
 * rank 0 says which round is over. In a round the victim ends before its fence: by SIGKILL, with
 * status 5, by PMIx_Abort with code 7, or with status 0.
 */
#include <pmix.h>

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void need(pmix_status_t status, const char *what)
{
    if (status != PMIX_SUCCESS) {
        fprintf(stderr, "%s: %d\n", what, (int)status);
        exit(8);
    }
}

static uint32_t get(const pmix_proc_t *of, const char *key)
{
    pmix_value_t *value;
    need(PMIx_Get(of, key, NULL, 0, &value), key);
    uint32_t number = value->data.uint32;
    PMIX_VALUE_RELEASE(value);
    return number;
}

static void end(const char *how)
{
    if (strcmp(how, "killed") == 0) {
        raise(SIGKILL);
    } else if (strcmp(how, "aborts") == 0) {
        PMIx_Abort(7, "as asked for", NULL, 0);
    }
    _exit(strcmp(how, "exits") == 0 ? 5 : 0);
}

int main(int argc, char **argv)
{
    pmix_proc_t me, all, next;
    pmix_info_t collect;
    bool yes = true;
    if (argc != 2 && argc != 5) {
        fprintf(stderr, "use: pmix ROUNDS [VICTIM ROUND killed|exits|aborts|returns]\n");
        return 2;
    }
    uint32_t rounds = (uint32_t)strtoul(argv[1], NULL, 10);
    need(PMIx_Init(&me, NULL, 0), "PMIx_Init");
    PMIX_LOAD_PROCID(&all, me.nspace, PMIX_RANK_WILDCARD);
    PMIX_INFO_LOAD(&collect, PMIX_COLLECT_DATA, &yes, PMIX_BOOL);
    next = all;
    next.rank = (me.rank + 1) % get(&all, PMIX_JOB_SIZE);
    for (uint32_t i = 0; i < rounds; i++) {
        char key[32];
        snprintf(key, sizeof(key), "round.%u", i % 100);
        pmix_value_t value = {.type = PMIX_UINT32, .data.uint32 = me.rank * 1000 + i % 1000};
        need(PMIx_Put(PMIX_GLOBAL, key, &value), "PMIx_Put");
        need(PMIx_Commit(), "PMIx_Commit");
        if (argc == 5 && me.rank == strtoul(argv[2], NULL, 10) && i == strtoul(argv[3], NULL, 10)) {
            end(argv[4]);
        }
        need(PMIx_Fence(&all, 1, &collect, 1), "PMIx_Fence");
        if (i < 100 && get(&next, key) != next.rank * 1000 + i) {
            printf("WRONG: round %u of rank %u\n", i, me.rank);
            return 1;
        }
        if (me.rank == 0) {
            printf("%u\n", i);
        }
    }
    need(PMIx_Finalize(NULL, 0), "PMIx_Finalize");
    return 0;
}
