/* SPDX-License-Identifier: BSD-3-Clause */
/* The placement of ranks on hosts; see place.h. */
#include "place.h"

#include "sim/util/random.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const struct net_graph *g, const char *word, uint32_t *host)
{
    for (uint32_t i = 0; g->kind == NET_FILE && i < g->hosts; i++) {
        if (strcmp(g->file.names[i], word) == 0) {
            *host = i;
            return 0;
        }
    }
    size_t digits = strspn(word, "0123456789");
    unsigned long number = digits > 0 && digits < 10 ? strtoul(word, NULL, 10) : g->hosts;
    *host = (uint32_t)number;
    return word[digits] == '\0' && number < g->hosts ? 0 : -1;
}

static int read_hosts(FILE *f, const char *path, const struct net_graph *g, uint32_t ranks,
                      uint32_t *host, uint32_t *taken, char error[NET_ERROR])
{
    char line[256];
    uint32_t rank = 0, number = 0;
    while (rank < ranks && fgets(line, sizeof(line), f) != NULL) {
        number++;
        line[strcspn(line, "#\r\n")] = '\0';
        char *save, *word = strtok_r(line, " \t", &save);
        for (; word != NULL && rank < ranks; word = strtok_r(NULL, " \t", &save)) {
            if (by_name(g, word, &host[rank]) != 0) {
                snprintf(error, NET_ERROR,
                         "%.200s, line %u: \"%.60s\" is no host of the network, which has %u", path,
                         number, word, g->hosts);
                return -1;
            }
            uint32_t other = taken[host[rank]]; /* the rank that has this host already, + 1 */
            if (other != 0) {
                snprintf(error, NET_ERROR,
                         "%.200s, line %u: host %.60s has rank %u already, and cannot have rank %u",
                         path, number, word, other - 1, rank);
                return -1;
            }
            taken[host[rank]] = rank + 1;
            rank++;
        }
    }
    if (rank < ranks) {
        snprintf(error, NET_ERROR, "%.200s: has hosts for %u ranks; there are %u", path, rank,
                 ranks);
        return -1;
    }
    return 0;
}

static int place_by_file(const char *path, const struct net_graph *g, uint32_t ranks,
                         uint32_t *host, char error[NET_ERROR])
{
    FILE *f = fopen(path, "r");
    if (f == NULL) {
        snprintf(error, NET_ERROR, "%.300s: %s; a placement is linear, random or a file", path,
                 strerror(errno));
        return -1;
    }
    uint32_t *taken = calloc(g->hosts, sizeof(*taken));
    int status = -1;
    if (taken == NULL) {
        snprintf(error, NET_ERROR, "%.300s: not enough memory", path);
    } else {
        status = read_hosts(f, path, g, ranks, host, taken, error);
    }
    free(taken);
    fclose(f);
    return status;
}

int net_place(const char *how, const struct net_graph *g, uint32_t ranks, uint64_t seed,
              uint32_t *host, char error[NET_ERROR])
{
    if (strcmp(how, "linear") == 0) {
        for (uint32_t i = 0; i < ranks; i++) {
            host[i] = i;
        }
        return 0;
    }
    if (strcmp(how, "random") == 0) {
        struct goal_permutation p = goal_permutation(g->hosts, seed);
        for (uint32_t i = 0; i < ranks; i++) {
            host[i] = (uint32_t)goal_permute(&p, i);
        }
        return 0;
    }
    return place_by_file(how, g, ranks, host, error);
}
