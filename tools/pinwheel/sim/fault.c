/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * --fault. A text has clauses, which semicolons separate:
 *
 *      rank R dies at TIME     the process is killed when virtual time gets there
 *      hpu H of rank R faults at TIME
 *                              an HPU ends the handler that it runs, and runs none any more
 *      link A-B down T1..T2    it carries nothing meanwhile, in either direction
 *      drop P [seed S]         a host's cable loses each packet with probability P, and its link
 *                              sends it again
 */
#include "fault.h"

#include "base/array.h"
#include "base/number.h"
#include "sim/util/parameters.h"
#include "sim/util/random.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DROP_MOST 0.5 /* more, and a packet may be sent again for ever */
enum { WORD = 64, LOSSES_MOST = 1000 };

/* The text, and the word of it that is looked at. */
struct words {
    const char *text, *at;
    char word[WORD]; /* "": the clause is over */
    size_t place;    /* of the word, from 1 on */
    char *error;
};

static void next(struct words *w)
{
    size_t n = 0;
    while (isspace((unsigned char)*w->at)) {
        w->at++;
    }
    w->place = (size_t)(w->at - w->text) + 1;
    while (*w->at != '\0' && *w->at != ';' && !isspace((unsigned char)*w->at)) {
        if (n < WORD - 1) {
            w->word[n++] = *w->at;
        }
        w->at++;
    }
    w->word[n] = '\0';
}

static int wrong(const struct words *w, const char *allowed)
{
    if (w->word[0] == '\0') {
        snprintf(w->error, FAULT_ERROR, "something is missing at character %zu: allowed is %s",
                 w->place, allowed);
    } else {
        snprintf(w->error, FAULT_ERROR, "\"%s\" at character %zu: allowed is %s", w->word, w->place,
                 allowed);
    }
    return -1;
}

static int take_word(struct words *w, const char *word)
{
    char allowed[WORD];
    snprintf(allowed, sizeof(allowed), "\"%s\"", word);
    if (strcmp(w->word, word) != 0) {
        return wrong(w, allowed);
    }
    next(w);
    return 0;
}

static int take_number(struct words *w, uint64_t most, const char *allowed, uint64_t *number)
{
    if (!number_read_unsigned(w->word, most, number)) {
        return wrong(w, allowed);
    }
    next(w);
    return 0;
}

static int take_time(struct words *w, uint64_t *ps)
{
    char why[128];
    if (!isdigit((unsigned char)w->word[0]) ||
        sim_time_parse(ps, "--fault", w->word, why, sizeof(why)) != 0) {
        return wrong(w, "a time, such as 10us, 1500ns or 20ps");
    }
    next(w);
    return 0;
}

static int take_death(struct words *w, struct fault_plan *plan)
{
    uint64_t rank, time;
    next(w);
    struct words at_rank = *w;
    if (take_number(w, UINT32_MAX - 1, "the number of a rank", &rank) != 0 ||
        take_word(w, "dies") != 0 || take_word(w, "at") != 0 || take_time(w, &time) != 0) {
        return -1;
    }
    for (size_t i = 0; i < plan->deaths; i++) {
        if (plan->death[i].rank == rank) {
            return wrong(&at_rank, "a rank that does not die before; it dies once");
        }
    }
    if (!ARRAY_ROOM(plan->death, plan->deaths, plan->capacity, 8)) {
        snprintf(w->error, FAULT_ERROR, "no memory");
        return -1;
    }
    plan->death[plan->deaths++] = (struct fault_death){(uint32_t)rank, time};
    return 0;
}

static int take_drop(struct words *w, struct fault_plan *plan)
{
    char *end;
    next(w);
    plan->drop = strtod(w->word, &end);
    if (!isdigit((unsigned char)w->word[0]) || *end != '\0' ||
        !(plan->drop >= 0 && plan->drop <= DROP_MOST)) {
        return wrong(w, "a probability from 0 to 0.5, such as 1e-5");
    }
    next(w);
    plan->seed = 1;
    if (w->word[0] == '\0') {
        return 0;
    }
    return take_word(w, "seed") != 0 ? -1
                                     : take_number(w, UINT64_MAX, "a whole number", &plan->seed);
}

static int take_hpu(struct words *w, struct fault_plan *plan)
{
    uint64_t hpu, rank, time;
    next(w);
    if (take_number(w, SIM_HPUS - 1, "the number of an HPU", &hpu) != 0 ||
        take_word(w, "of") != 0 || take_word(w, "rank") != 0 ||
        take_number(w, UINT32_MAX - 1, "the number of a rank", &rank) != 0 ||
        take_word(w, "faults") != 0 || take_word(w, "at") != 0 || take_time(w, &time) != 0) {
        return -1;
    }
    if (plan->hpus == SIM_HPU_FAULTS) {
        snprintf(w->error, FAULT_ERROR, "more than %d HPUs fail: leave some out", SIM_HPU_FAULTS);
        return -1;
    }
    plan->hpu[plan->hpus++] = (struct sim_hpu_fault){(uint32_t)rank, (uint32_t)hpu, time};
    return 0;
}

/* T1..T2, the first of which comes first. */
static int take_times(struct words *w, uint64_t *from, uint64_t *until)
{
    char why[128], *dots = strstr(w->word, "..");
    if (dots != NULL) {
        *dots = '\0';
        bool both = isdigit((unsigned char)w->word[0]) && isdigit((unsigned char)dots[2]) &&
                    sim_time_parse(from, "--fault", w->word, why, sizeof(why)) == 0 &&
                    sim_time_parse(until, "--fault", dots + 2, why, sizeof(why)) == 0;
        *dots = '.';
        if (both && *from < *until) {
            next(w);
            return 0;
        }
    }
    return wrong(w, "from when until when, such as 20us..40us");
}

static int take_link(struct words *w, struct fault_plan *plan)
{
    struct fault_link l = {.from = 0};
    next(w);
    l.place = w->place;
    snprintf(l.name, sizeof(l.name), "%s", w->word);
    if (strchr(l.name, '-') == NULL) {
        return wrong(w, "a link, NODE-NODE, such as leaf0-spine2");
    }
    next(w);
    if (take_word(w, "down") != 0 || take_times(w, &l.from, &l.until) != 0) {
        return -1;
    }
    if (!ARRAY_ROOM(plan->link, plan->links, plan->links_capacity, 8)) {
        snprintf(w->error, FAULT_ERROR, "no memory");
        return -1;
    }
    plan->link[plan->links++] = l;
    return 0;
}

int fault_parse(struct fault_plan *plan, const char *text, char error[FAULT_ERROR])
{
    struct words w = {.text = text, .at = text, .error = error};
    for (;;) {
        int rc = 0;
        next(&w);
        if (strcmp(w.word, "rank") == 0) {
            rc = take_death(&w, plan);
        } else if (strcmp(w.word, "drop") == 0) {
            rc = take_drop(&w, plan);
        } else if (strcmp(w.word, "hpu") == 0) {
            rc = take_hpu(&w, plan);
        } else if (strcmp(w.word, "link") == 0) {
            rc = take_link(&w, plan);
        } else {
            rc =
                wrong(&w, "\"rank R dies at TIME\", \"hpu H of rank R faults at TIME\", \"link A-B "
                          "down T1..T2\" or \"drop P seed S\"");
        }
        if (rc == 0 && w.word[0] != '\0') {
            rc = wrong(&w, "\";\", or the end");
        }
        if (rc != 0 || *w.at == '\0') {
            return rc;
        }
        w.at++;
    }
}

int fault_check(const struct fault_plan *plan, uint32_t ranks, uint32_t hpus,
                char error[FAULT_ERROR])
{
    for (uint32_t i = 0; i < plan->hpus; i++) {
        if (plan->hpu[i].rank >= ranks || plan->hpu[i].hpu >= hpus) {
            snprintf(error, FAULT_ERROR,
                     "HPU %u of rank %u is none of the job: allowed are HPUs 0 to %u of ranks 0 to "
                     "%u",
                     plan->hpu[i].hpu, plan->hpu[i].rank, hpus - 1, ranks - 1);
            return -1;
        }
    }
    for (size_t i = 0; i < plan->deaths; i++) {
        if (plan->death[i].rank >= ranks) {
            snprintf(error, FAULT_ERROR, "rank %u is none of the job: allowed is 0 to %u",
                     plan->death[i].rank, ranks - 1);
            return -1;
        }
    }
    return 0;
}

void fault_free(struct fault_plan *plan)
{
    free(plan->death);
    free(plan->link);
    *plan = (struct fault_plan){.death = NULL};
}

uint64_t fault_losses(const struct fault_plan *plan, uint32_t rank, uint64_t number)
{
    uint64_t losses = 0, key = goal_random(goal_random(plan->seed, rank), number);
    while (losses < LOSSES_MOST &&
           (double)(goal_random(key, losses) >> 11) * 0x1p-53 < plan->drop) {
        losses++;
    }
    return losses;
}
