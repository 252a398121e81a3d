/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank's side of PMIx; see pmix.h.
 *
 * libpmix is loaded only in a process that a PMIx launcher has started: it brings libevent, hwloc
 * and a thread, with which other processes should not be burdened. It is loaded with RTLD_LOCAL, so
 * its symbols do not clash with the program's. A program that uses PMIx itself (an MPI) shares the
 * same copy of the library, whose PMIx_Init counts its users.
 *
 * PMIx has no key-value space for the whole job: a get must name the rank that has put the key. So
 * a rank publishes its pairs as *cards*, strings of lines, under keys that only this file uses:
 *
 *     rank r:  pinwheel.card.0 = "pw-map-0-1=7f000001:41\nhost=a\n"
 *              pinwheel.card.1 = ...         one or more per barrier with puts
 *
 * barrier() publishes the card that the rank is filling, and is a PMIx fence that collects data,
 * which copies all cards to each host. When get() does not find a key, the first time after a
 * barrier, it reads every rank's cards that it has not read yet. That costs a read of shared memory
 * for each card, and a question to the local server for each rank (0.1 ms). All pairs that were
 * read stay in `pairs`.
 */
#include "boot/pmix.h"

#include "base/library.h"
#include "boot/pmi_kvs.h"
#include "boot/pmi_server.h"

#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The library's name from PMIx 2 to 5; it was tested with 4.2. */
static const char library[] = "libpmix.so.2";

static struct {
    __typeof__(PMIx_Init) *init;
    __typeof__(PMIx_Finalize) *finalize;
    __typeof__(PMIx_Abort) *abort;
    __typeof__(PMIx_Put) *put;
    __typeof__(PMIx_Commit) *commit;
    __typeof__(PMIx_Fence) *fence;
    __typeof__(PMIx_Get) *get;
    __typeof__(PMIx_Error_string) *error_string;
} pmix;

static const struct library_symbol symbols[] = {
    {"PMIx_Init", &pmix.init},     {"PMIx_Finalize", &pmix.finalize},
    {"PMIx_Abort", &pmix.abort},   {"PMIx_Put", &pmix.put},
    {"PMIx_Commit", &pmix.commit}, {"PMIx_Fence", &pmix.fence},
    {"PMIx_Get", &pmix.get},       {"PMIx_Error_string", &pmix.error_string},
};

/* A card holds several pairs even of the longest kind; the PMIx server stores a card as one
 * value. */
enum { CARD_SIZE = 8192 };
_Static_assert(PMI_KEY_MAX + PMI_VALUE_MAX < CARD_SIZE, "any pair fits a card");

struct pmix_client {
    pmix_proc_t me;
    struct kvs pairs;    /* the pairs of this rank, and those of all cards that it has read */
    bool up_to_date;     /* true if no barrier came since this rank read the cards of all ranks */
    unsigned cards;      /* how many cards this rank has published */
    unsigned *read_from; /* by rank: how many of its cards this rank has read */
    size_t card_length;
    char card[CARD_SIZE]; /* the card that is being filled */
};

/* ---- Calls of libpmix ---- */

static int load(struct launcher *l, const char *nspace)
{
    const char *missing = library_load(library, symbols, sizeof(symbols) / sizeof(symbols[0]));
    if (missing == library) {
        return launcher_fail(
            l, -EOPNOTSUPP,
            "PMIX_NAMESPACE=%s: a PMIx launcher started this process, but PMIx's library cannot "
            "be loaded (%s); install it (Debian: libpmix2), or start with `pinwheel run`",
            nspace, dlerror());
    }
    if (missing != NULL) {
        return launcher_fail(l, -EOPNOTSUPP,
                             "PMIX_NAMESPACE=%s: %s has no %s; install PMIx 2 or later, or "
                             "start with `pinwheel run`",
                             nspace, library, missing);
    }
    return 0;
}

static int refused(struct launcher *l, pmix_status_t status, const char *doing)
{
    if (status == PMIX_ERR_UNREACH || status == PMIX_ERR_COMM_FAILURE ||
        status == PMIX_ERR_LOST_CONNECTION) {
        return launcher_fail(l, -EPIPE, "the launcher went away: PMIx gave %s (%d) for %s",
                             pmix.error_string(status), status, doing);
    }
    return launcher_fail(l, -EPROTO, "PMIx gave %s (%d) for %s", pmix.error_string(status), status,
                         doing);
}

/* Makes a directive of PMIx whose value is true. PMIx takes arrays of them in plain memory. */
static pmix_info_t directive(const char *name)
{
    pmix_info_t info;
    memset(&info, 0, sizeof(info));
    snprintf(info.key, sizeof(info.key), "%s", name);
    info.value.type = PMIX_BOOL;
    info.value.data.flag = true;
    return info;
}

/* Gets a value that this host has already, without asking other hosts. libpmix allocates the value
 * and its string with malloc(). */
static pmix_status_t get_value(struct launcher *l, pmix_rank_t rank, const char *key,
                               pmix_value_t **value)
{
    pmix_proc_t whose = ((struct pmix_client *)l->state)->me;
    pmix_info_t immediate = directive(PMIX_IMMEDIATE);
    whose.rank = rank;
    *value = NULL;
    pmix_status_t status = pmix.get(&whose, key, &immediate, 1, value);
    return status == PMIX_SUCCESS && *value == NULL ? PMIX_ERR_NOT_FOUND : status;
}

/* ---- Cards ---- */

static int publish_card(struct launcher *l)
{
    struct pmix_client *c = l->state;
    char key[32];
    if (c->card_length == 0) {
        return 0;
    }
    snprintf(key, sizeof(key), "pinwheel.card.%u", c->cards);
    pmix_value_t value;
    memset(&value, 0, sizeof(value));
    value.type = PMIX_STRING;
    value.data.string = c->card;
    pmix_status_t status = pmix.put(PMIX_GLOBAL, key, &value);
    if (status != PMIX_SUCCESS) {
        return refused(l, status, "PMIx_Put");
    }
    c->cards++;
    c->card_length = 0;
    return 0;
}

/* Stores the pairs of a card, and cuts the card's text up for that. A program should not put a key
 * twice; if it does, the first value stays. */
static int take_card(struct launcher *l, int rank, char *card)
{
    struct pmix_client *c = l->state;
    char *line;
    while ((line = strsep(&card, "\n")) != NULL && *line != '\0') {
        char *value = strchr(line, '=');
        if (value == NULL) {
            return launcher_fail(l, -EPROTO, "rank %d published \"%.200s\", no pair", rank, line);
        }
        *value++ = '\0';
        int rc = strlen(value) < LAUNCHER_VALUE_SIZE ? kvs_put(&c->pairs, line, value) : -EPROTO;
        if (rc != 0 && rc != -EEXIST) {
            return launcher_fail(l, rc, "key \"%.63s\" of rank %d cannot be stored: %s", line, rank,
                                 strerror(-rc));
        }
    }
    return 0;
}

/* Reads the cards of `rank` that this rank has not read yet. */
static int read_cards(struct launcher *l, int rank)
{
    struct pmix_client *c = l->state;
    for (;;) {
        char key[32];
        pmix_value_t *value;
        snprintf(key, sizeof(key), "pinwheel.card.%u", c->read_from[rank]);
        pmix_status_t status = get_value(l, (pmix_rank_t)rank, key, &value);
        if (status == PMIX_ERR_NOT_FOUND) {
            return 0;
        }
        if (status != PMIX_SUCCESS) {
            return refused(l, status, "PMIx_Get");
        }
        int rc = 0;
        if (value->type == PMIX_STRING) {
            rc = take_card(l, rank, value->data.string);
            free(value->data.string);
        } else {
            rc = launcher_fail(l, -EPROTO, "PMIx says that %s of rank %d has type %d, no string",
                               key, rank, (int)value->type);
        }
        free(value);
        if (rc != 0) {
            return rc;
        }
        c->read_from[rank]++;
    }
}

static int read_all_cards(struct launcher *l)
{
    struct pmix_client *c = l->state;
    for (int r = 0; r < l->size; r++) {
        int rc = r != l->rank ? read_cards(l, r) : 0;
        if (rc != 0) {
            return rc;
        }
    }
    /* PMIx returns "not found" also when the server is gone. A fence of this rank alone tells the
     * two apart. */
    pmix_status_t status = pmix.fence(&c->me, 1, NULL, 0);
    if (status != PMIX_SUCCESS) {
        return refused(l, status, "PMIx_Get");
    }
    c->up_to_date = true;
    return 0;
}

/* ---- The requests of a rank ---- */

static int client_put(struct launcher *l, const char *key, const char *value)
{
    struct pmix_client *c = l->state;
    size_t length = strlen(key) + strlen(value) + 2; /* '=' and newline */
    int rc = c->card_length + length >= sizeof(c->card) ? publish_card(l) : 0;
    if (rc != 0) {
        return rc;
    }
    rc = kvs_put(&c->pairs, key, value);
    if (rc != 0) {
        return launcher_fail(l, rc, "key \"%s\" cannot be put: %s", key,
                             rc == -EEXIST ? "it was put before" : strerror(-rc));
    }
    snprintf(c->card + c->card_length, sizeof(c->card) - c->card_length, "%s=%s\n", key, value);
    c->card_length += length;
    return 0;
}

static int client_get(struct launcher *l, const char *key, char *value)
{
    struct pmix_client *c = l->state;
    const char *found = kvs_get(&c->pairs, key);
    if (found == NULL && !c->up_to_date) {
        int rc = read_all_cards(l);
        if (rc != 0) {
            return rc;
        }
        found = kvs_get(&c->pairs, key);
    }
    if (found == NULL) {
        return launcher_fail(l, -ENOENT, "no rank has put key \"%s\"", key);
    }
    memcpy(value, found, strlen(found) + 1);
    return 0;
}

static int client_barrier(struct launcher *l)
{
    struct pmix_client *c = l->state;
    int rc = publish_card(l);
    if (rc != 0) {
        return rc;
    }
    pmix_status_t status = pmix.commit();
    if (status != PMIX_SUCCESS) {
        return refused(l, status, "PMIx_Commit");
    }
    pmix_info_t collect = directive(PMIX_COLLECT_DATA);
    status = pmix.fence(NULL, 0, &collect, 1);
    if (status != PMIX_SUCCESS) {
        return refused(l, status, "PMIx_Fence");
    }
    c->up_to_date = false;
    return 0;
}

static int client_abort(struct launcher *l, int code)
{
    pmix_status_t status = pmix.abort(code, "pinwheel_job_abort()", NULL, 0);
    return status != PMIX_SUCCESS ? refused(l, status, "PMIx_Abort") : 0;
}

/* PMIx_Finalize() succeeds although the server is gone; a fence of this rank alone fails then. */
static int client_leave(struct launcher *l)
{
    struct pmix_client *c = l->state;
    pmix_status_t gone = pmix.fence(&c->me, 1, NULL, 0);
    return gone != PMIX_SUCCESS ? refused(l, gone, "PMIx_Finalize") : 0;
}

static void client_close(struct launcher *l)
{
    struct pmix_client *c = l->state;
    pmix.finalize(NULL, 0);
    launcher_release(true);
    kvs_clear(&c->pairs);
    free(c->read_from);
    free(c);
}

static const struct launcher_ops client_ops = {.put = client_put,
                                               .get = client_get,
                                               .barrier = client_barrier,
                                               .abort = client_abort,
                                               .leave = client_leave,
                                               .close = client_close};

/* ---- Joining ---- */

static int connect_to_server(struct launcher *l, const char *nspace)
{
    struct pmix_client *c = l->state;
    pmix_status_t status = pmix.init(&c->me, NULL, 0);
    if (status != PMIX_SUCCESS) {
        return launcher_fail(
            l, -ECONNREFUSED,
            "PMIX_NAMESPACE=%s: no PMIx server answers (PMIx_Init gave %s); the launcher has "
            "ended, or the PMIX_ variables were inherited from another program (unset "
            "PMIX_NAMESPACE and PMIX_RANK to run alone)",
            nspace, pmix.error_string(status));
    }
    if (strcmp(c->me.nspace, nspace) != 0) {
        launcher_fail(l, -EPROTO, "PMIX_NAMESPACE=%s: PMIx_Init joined \"%.200s\" instead", nspace,
                      c->me.nspace);
        pmix.finalize(NULL, 0);
        return -EPROTO;
    }
    return 0;
}

/* Learns how many ranks the job has, which one this is, and whether they are on several hosts. */
static int learn_job(struct launcher *l)
{
    struct pmix_client *c = l->state;
    pmix_value_t *value;
    pmix_status_t status = get_value(l, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, &value);
    if (status != PMIX_SUCCESS) {
        return refused(l, status, "PMIx_Get of " PMIX_JOB_SIZE);
    }
    uint32_t size = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
    free(value);
    if (size < 1 || size > INT32_MAX || c->me.rank >= size) {
        return launcher_fail(l, -EPROTO, "PMIx says rank %u of a job of %u ranks",
                             (unsigned)c->me.rank, (unsigned)size);
    }
    l->rank = (int)c->me.rank;
    l->size = (int)size;
    status = get_value(l, PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, &value);
    l->spread = status == PMIX_SUCCESS && value->type == PMIX_UINT32 && value->data.uint32 < size;
    free(value);
    /* PMIx takes longer ones, but a program that runs under PMIx should run under PMI-1 as well. */
    l->key_size = PMI_KEY_MAX;
    l->value_size = PMI_VALUE_MAX;
    c->read_from = calloc(size, sizeof(*c->read_from));
    return c->read_from != NULL ? 0 : launcher_fail(l, -ENOMEM, "no memory for %u ranks", size);
}

int pmix_join(struct launcher *l)
{
    const char *nspace = getenv("PMIX_NAMESPACE"), *rank = getenv("PMIX_RANK");
    int number;
    if (nspace == NULL || rank == NULL) {
        return launcher_fail(l, -EINVAL,
                             "%s is set but %s is not: a PMIx launcher sets both; to run alone, "
                             "unset both",
                             nspace != NULL ? "PMIX_NAMESPACE" : "PMIX_RANK",
                             nspace != NULL ? "PMIX_RANK" : "PMIX_NAMESPACE");
    }
    if (launcher_number(rank, 0, &number) != 0) {
        return launcher_fail(l, -EINVAL, "PMIX_RANK=%s: must be a whole number of at least 0",
                             rank);
    }
    int rc = launcher_claim(l);
    if (rc != 0) {
        return rc;
    }
    rc = load(l, nspace);
    if (rc == 0 && (l->state = calloc(1, sizeof(struct pmix_client))) == NULL) {
        rc = launcher_fail(l, -ENOMEM, "no memory");
    }
    if (rc == 0) {
        rc = connect_to_server(l, nspace);
    }
    if (rc != 0) {
        free(l->state);
        launcher_release(false);
        return rc;
    }
    rc = learn_job(l);
    if (rc != 0) {
        client_close(l);
        return rc;
    }
    l->ops = &client_ops;
    return 0;
}
