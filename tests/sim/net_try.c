/* SPDX-License-Identifier: BSD-3-Clause */
/* Drives a packet network; see net_try.h. */
#include "net_try.h"

#include "../splitmix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

const struct net_config try_config = {.packet = TRY_PACKET,
                                      .buffer = 16 * TRY_PACKET,
                                      .byte = 20000000,
                                      .hop = 50000,
                                      .cable = 33400,
                                      .seed = 1};

static void stop(const char *what)
{
    fprintf(stderr, "%s\n", what);
    exit(1);
}

static void *need(void *p)
{
    if (p == NULL) {
        stop("no memory");
    }
    return p;
}

uint64_t try_draw(struct try_net *t)
{
    return splitmix(&t->random);
}

static void left(void *context, uint32_t ref, uint64_t time, uint64_t waited)
{
    (void)context;
    (void)ref;
    (void)time;
    (void)waited;
}

static void deliver(void *context, uint32_t ref, const struct net_arrival *a, uint64_t now)
{
    struct try_net *t = context;
    t->first = a->first;
    t->way = a->last_way;
    t->last = now;
    t->came++;
    if (now >= t->begin && now < t->end) {
        t->delivered[ref]++;
    }
}

void try_open(struct try_net *t, const char *text, const struct net_config *c)
{
    char error[NET_ERROR];
    struct net_spec spec;
    *t = (struct try_net){.c = *c, .random = 7};
    if (net_spec_parse(&spec, text, error) != 0 || net_graph_open(&t->g, &spec, 2, error) != 0) {
        stop(error);
    }
    struct net_hooks hooks = {left, deliver, NULL, t};
    t->n = need(net_open(&t->g, &t->c, &hooks));
    t->next = need(calloc(t->g.hosts, sizeof(*t->next)));
    t->delivered = need(calloc(t->g.hosts, sizeof(*t->delivered)));
}

void try_close(struct try_net *t)
{
    net_close(t->n);
    net_graph_close(&t->g);
    free(t->next);
    free(t->delivered);
}

static void run_until(struct try_net *t, uint64_t end)
{
    uint64_t time;
    while (net_next(t->n, &time) && time < end) {
        if (net_step(t->n) != 0) {
            stop("the network failed");
        }
    }
}

void try_drain(struct try_net *t)
{
    enum { CHECKS = 200000 };
    char error[NET_ERROR];
    uint64_t time;
    for (uint64_t i = 0; net_next(t->n, &time); i++) {
        if (net_step(t->n) != 0) {
            stop("the network failed");
        }
        if (i % CHECKS == 0 && net_check(t->n, error) != 0) {
            stop(error);
        }
    }
    if (net_check(t->n, error) != 0) {
        stop(error);
    }
    const struct net_counts *c = net_counts(t->n);
    if (c->delivered != c->packets || t->came != c->messages) {
        fprintf(stderr, "%llu of %llu packets, %llu of %llu messages came\n",
                (unsigned long long)c->delivered, (unsigned long long)c->packets,
                (unsigned long long)t->came, (unsigned long long)c->messages);
        stop("locked up");
    }
}

static double gap(struct try_net *t, double mean, bool random)
{
    double u = (double)(try_draw(t) >> 11) / 9007199254740992.0;
    return random ? -mean * log(1 - u) : mean;
}

/* Sends what a host sends before `end`. */
static void send_until(struct try_net *t, uint32_t host, try_pattern *pattern,
                       const void *parameter, double mean, bool random, uint64_t end)
{
    while (t->next[host] < end) {
        uint32_t to = pattern(t, host, parameter);
        if (to == TRY_SILENT) {
            t->next[host] = UINT64_MAX;
            return;
        }
        struct net_message m = {.from = host,
                                .to = to,
                                .bytes = TRY_PACKET,
                                .time = t->next[host],
                                .pace = t->c.byte,
                                .ordered = true,
                                .ref = host};
        if (net_send(t->n, &m) != 0) {
            stop("cannot send");
        }
        t->next[host] += (uint64_t)gap(t, mean, random);
    }
}

double try_load(struct try_net *t, try_pattern *pattern, const void *parameter, double load,
                bool random, uint64_t packets)
{
    uint64_t packet = t->c.byte * TRY_PACKET / 1000000, step = 8 * packet;
    t->end = packets * packet;
    t->begin = t->end / 2;
    for (uint64_t now = 0; now < t->end; now += step) {
        for (uint32_t h = 0; h < t->g.hosts; h++) {
            send_until(t, h, pattern, parameter, (double)packet / load, random, now + step);
        }
        run_until(t, now + step);
    }
    uint64_t sum = 0;
    uint32_t senders = 0;
    for (uint32_t h = 0; h < t->g.hosts; h++) {
        sum += t->delivered[h];
        senders += t->next[h] != UINT64_MAX;
    }
    return (double)sum * (double)packet / (double)(t->end - t->begin) / senders;
}

uint64_t try_one(struct try_net *t, uint32_t from, uint32_t to, uint64_t bytes, uint64_t pace)
{
    uint64_t time, came = t->came;
    struct net_message m = {
        .from = from, .to = to, .bytes = bytes, .time = t->last, .pace = pace, .ref = from};
    uint64_t begin = t->last;
    if (net_send(t->n, &m) != 0) {
        stop("cannot send");
    }
    while (net_next(t->n, &time)) {
        if (net_step(t->n) != 0) {
            stop("the network failed");
        }
    }
    if (t->came != came + 1) {
        stop("the message did not come");
    }
    return t->last - begin;
}
