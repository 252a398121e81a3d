/* SPDX-License-Identifier: BSD-3-Clause */
/* The packet network of `pinwheel goal run --network`; see run.h. */
#include "run.h"

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

static int take_network(struct goal_run *r)
{
    char error[NET_ERROR];
    if (net_spec_parse(&r->net.spec, r->args.value, error) != 0) {
        return args_error(&r->args, "--network %s", error);
    }
    r->net.text = r->args.value;
    return 0;
}

/* One of two words: 0 or 1 in *which. */
static int take_word(struct goal_run *r, const char *option, const char *zero, const char *one,
                     int *which)
{
    *which = strcmp(r->args.value, one) == 0;
    if (!*which && strcmp(r->args.value, zero) != 0) {
        return args_error(&r->args, "%s %s: must be %s or %s", option, r->args.value, zero, one);
    }
    return 0;
}

static int take_time(struct goal_run *r, const char *option, uint64_t *ps)
{
    char error[256];
    return sim_time_parse(ps, option, r->args.value, error, sizeof(error)) == 0
               ? 0
               : args_error(&r->args, "%s", error);
}

static int take_rate(struct goal_run *r)
{
    char error[256];
    return sim_rate_parse(&r->net.config.byte, "--link-rate", r->args.value, error,
                          sizeof(error)) == 0
               ? 0
               : args_error(&r->args, "%s", error);
}

static int take_number(struct goal_run *r, const char *option, long least, long most, long *number)
{
    return args_number(&r->args, option, least, most, number) == 0 ? 0 : 2;
}

int goal_net_take(struct goal_run *r, enum goal_net_option option)
{
    struct net_config *c = &r->net.config;
    long number = 0;
    int which = 0, status = 0;
    switch (option) {
    case GOAL_NET_NETWORK:
        return take_network(r);
    case GOAL_NET_ROUTING:
        r->net.option = "--routing";
        status = take_word(r, "--routing", "static", "adaptive", &which);
        c->routing = which != 0 ? NET_ADAPTIVE : NET_STATIC;
        return status;
    case GOAL_NET_SWITCHING:
        r->net.option = "--switching";
        status = take_word(r, "--switching", "cut-through", "store-and-forward", &which);
        c->store_and_forward = which != 0;
        return status;
    case GOAL_NET_PACKET:
        r->net.option = "--packet";
        status = take_number(r, "--packet", 1, NET_PACKET_MOST, &number);
        c->packet = (uint32_t)number;
        return status;
    case GOAL_NET_BUFFER:
        r->net.option = "--buffer";
        status = take_number(r, "--buffer", 1, (long)NET_BUFFER_MOST, &number);
        c->buffer = (uint64_t)number;
        return status;
    case GOAL_NET_LINK_RATE:
        r->net.option = "--link-rate";
        return take_rate(r);
    case GOAL_NET_HOP_LATENCY:
        r->net.option = "--hop-latency";
        return take_time(r, "--hop-latency", &c->hop);
    case GOAL_NET_CABLE_LATENCY:
        r->net.option = "--cable-latency";
        return take_time(r, "--cable-latency", &c->cable);
    case GOAL_NET_PLACEMENT:
        r->net.option = "--placement";
        r->net.placement = r->args.value;
        return 0;
    default: /* --noise has a use for it, too */
        r->net.seeded = true;
        status = take_number(r, "--seed", 0, INT64_MAX, &number);
        c->seed = (uint64_t)number;
        return status;
    }
}

int goal_net_check(struct goal_run *r)
{
    struct goal_net *n = &r->net;
    if (n->seeded && n->text == NULL && r->noise_text == NULL) {
        return args_error(&r->args, "--seed: nothing is drawn by lot without --network or --noise");
    }
    if (n->text == NULL) {
        return n->option == NULL ? 0
                                 : args_error(&r->args,
                                              "%s is about packets in a network: --network is "
                                              "missing",
                                              n->option);
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

/* Parts of the time up to the last finish that channels were taken. */
struct use {
    double most, mean; /* mean of those that were used */
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
    json_unsigned(j, "virtual_channels", net_lanes(&r->net.graph, c->routing));
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
