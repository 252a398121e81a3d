/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet network of `pinwheel goal run --network`; see run.h. */
#include "run.h"

#include "sim/net/place.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void goal_net_begin(struct goal_run *r)
{
    r->net.placement = "linear";
    r->net.config = (struct net_config){
        .packet = 4096, .buffer = 65536, .hop = 50000, .cable = 33400, .seed = 1};
}

/* ---- Options ---- */

int goal_net_take(struct args *a, void *net)
{
    struct goal_net *n = net;
    char error[NET_ERROR];
    n->text = a->value;
    return net_spec_parse(&n->spec, a->value, error) == 0 ? ARGS_GO_ON
                                                          : args_error(a, "--network %s", error);
}

int goal_net_take_time(struct args *a, void *ps)
{
    char error[256];
    return sim_time_parse(ps, a->option->name, a->value, error, sizeof(error)) == 0
               ? ARGS_GO_ON
               : args_error(a, "%s", error);
}

int goal_net_take_rate(struct args *a, void *byte)
{
    char error[256];
    return sim_rate_parse(byte, a->option->name, a->value, error, sizeof(error)) == 0
               ? ARGS_GO_ON
               : args_error(a, "%s", error);
}

/* Returns an option that was given but has no effect without --network, or NULL. */
static const char *of_network(const struct args *a)
{
    for (int i = 0; i < a->count; i++) {
        if (a->options[i].group == GOAL_NET && (a->given >> i & 1) != 0) {
            return a->options[i].name;
        }
    }
    return NULL;
}

int goal_net_check(struct goal_run *r)
{
    struct goal_net *n = &r->net;
    /* --noise uses the seed, too. */
    if (args_given(&r->args, "--seed") && n->text == NULL && r->noise_text == NULL) {
        return args_error(&r->args, "--seed: nothing is drawn by lot without --network or --noise");
    }
    if (n->text == NULL) {
        const char *option = of_network(&r->args);
        return option == NULL
                   ? 0
                   : args_error(&r->args, "%s is about packets in a network: --network is missing",
                                option);
    }
    if (r->text[SIM_L] != NULL || (r->sweep.values > 0 && r->sweep.which == SIM_L)) {
        return args_error(&r->args, "-L: with --network the way through it takes its place; "
                                    "--hop-latency and --cable-latency say how long it is");
    }
    if (n->config.buffer < n->config.packet) {
        return args_error(&r->args, "--buffer %" PRIu64 ": has no room for a packet of %u bytes",
                          n->config.buffer, n->config.packet);
    }
    n->network = (struct sim_network){&n->graph, &n->config, NULL};
    r->in.network = &n->network;
    return 0;
}

int goal_net_open(struct goal_run *r)
{
    struct goal_net *n = &r->net;
    char error[NET_ERROR];
    if (n->text == NULL) {
        return 0;
    }
    if (net_graph_open(&n->graph, &n->spec, r->goal.ranks, error) != 0) {
        fprintf(stderr, "pinwheel goal run: --network %s\n", error);
        return 1;
    }
    n->host = calloc(r->goal.ranks, sizeof(*n->host));
    if (n->host == NULL) {
        fprintf(stderr, "pinwheel goal run: not enough memory for the places of ranks\n");
    } else if (net_place(n->placement, &n->graph, r->goal.ranks, n->config.seed, n->host, error) !=
               0) {
        fprintf(stderr, "pinwheel goal run: --placement %s\n", error);
    } else {
        n->network.host = n->host;
        return 0;
    }
    goal_net_close(r);
    return 1;
}

void goal_net_close(struct goal_run *r)
{
    if (r->net.text != NULL) {
        free(r->net.host);
        net_graph_close(&r->net.graph);
    }
}

/* ---- Results ---- */

/* How much of the time up to the last finish channels were busy, as a fraction. */
struct use {
    double most, mean; /* of the busiest channel; mean of all channels that were used */
};

static struct use find_use(const struct goal_run *r)
{
    const struct sim_traffic *t = &r->out.traffic;
    double all = (double)goal_summarise(&r->goal, &r->out).most;
    if (all == 0 || t->channels == 0) {
        return (struct use){0, 0};
    }
    return (struct use){(double)t->busiest_busy / all, (double)t->busy / all / t->channels};
}

void goal_net_channel(const struct goal_run *r, uint32_t channel, char *text, size_t size)
{
    char from[128], to[128];
    const struct net_graph *g = &r->net.graph;
    net_node_name(g, g->links[channel].from, from, sizeof(from));
    net_node_name(g, g->links[channel].to, to, sizeof(to));
    snprintf(text, size, "%s to %s", from, to);
}

static double mean_hops(const struct net_counts *c)
{
    return c->packets > 0 ? (double)c->hops / (double)c->packets : 0;
}

static double mean_wait(const struct goal_run *r)
{
    const struct net_counts *c = &r->out.traffic.counts;
    return c->packets > 0 ? (double)c->waited / (double)c->packets / (double)r->out.ticks_per_ns
                          : 0;
}

void goal_net_json(struct json *j, struct goal_run *r)
{
    const struct sim_traffic *t = &r->out.traffic;
    const struct net_config *c = &r->net.config;
    struct use use = find_use(r);
    char text[300];
    json_open_object(j, "network");
    json_string(j, "topology", r->net.text);
    json_unsigned(j, "hosts", r->net.graph.hosts);
    json_unsigned(j, "switches", r->net.graph.switches);
    json_string(j, "routing", c->routing == NET_STATIC ? "static" : "adaptive");
    json_string(j, "switching", c->store_and_forward ? "store-and-forward" : "cut-through");
    json_unsigned(j, "virtual_channels", net_vcs(&r->net.graph, c->routing));
    json_unsigned(j, "packet", c->packet);
    json_unsigned(j, "buffer", c->buffer);
    goal_json_time(j, &r->out, "hop_latency_ns", c->hop);
    goal_json_time(j, &r->out, "cable_latency_ns", c->cable);
    json_string(j, "placement", r->net.placement);
    json_unsigned(j, "seed", c->seed);
    json_unsigned(j, "messages", t->counts.messages);
    json_unsigned(j, "packets", t->counts.packets);
    json_unsigned(j, "bytes", t->counts.bytes);
    json_unsigned(j, "channel_hops", t->counts.hops);
    json_real(j, "mean_hops", mean_hops(&t->counts));
    json_unsigned(j, "channels_used", t->channels);
    json_real(j, "max_utilisation", use.most);
    json_real(j, "mean_utilisation", use.mean);
    if (t->channels > 0) {
        goal_net_channel(r, t->busiest, text, sizeof(text));
        json_string(j, "busiest_channel", text);
    }
    json_unsigned(j, "waits", t->counts.waits);
    goal_json_time(j, &r->out, "wait_ns", t->counts.waited);
    json_real(j, "mean_wait_ns", mean_wait(r));
    goal_json_time(j, &r->out, "max_wait_ns", t->counts.longest);
    json_unsigned(j, "most_packets", t->counts.most_packets);
    json_close_object(j);
}

void goal_net_text(struct goal_run *r)
{
    const struct sim_traffic *t = &r->out.traffic;
    const struct net_config *c = &r->net.config;
    struct use use = find_use(r);
    char text[300];
    printf("network     %s: %" PRIu32 " hosts, %" PRIu32 " switches, %s, %s\n", r->net.text,
           r->net.graph.hosts, r->net.graph.switches,
           c->routing == NET_STATIC ? "static" : "adaptive",
           c->store_and_forward ? "store-and-forward" : "cut-through");
    printf("            %" PRIu64 " packets, %.2f hops each, at most %" PRIu64 " at a time\n",
           t->counts.packets, mean_hops(&t->counts), t->counts.most_packets);
    if (t->channels > 0) {
        goal_net_channel(r, t->busiest, text, sizeof(text));
        printf("            %" PRIu32 " channels used, %.1f %% of the time; most, %.1f %%, %s\n",
               t->channels, 100 * use.mean, 100 * use.most, text);
    }
    goal_time_text(&r->out, t->counts.longest, text);
    printf("            a packet waited %.1f ns on its way, at most %s ns at one place\n",
           mean_wait(r), text);
}
