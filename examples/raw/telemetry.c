/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host's side of telemetry_nic.c: it runs the handlers on a capture file, without any
 * privilege, or on copies of an interface's frames, which needs CAP_NET_RAW and takes none of them
 * from the kernel; and prints what they have found, for people or as JSON.
 *
 *      telemetry pcap FILE|iface NAME IMAGE [--json] [--flows] [--every S] [--seconds S]
 *
 *      gcc -O2 -D_GNU_SOURCE telemetry.c -o telemetry $(pkg-config --cflags --libs pinwheel-raw)
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pinwheel_raw.h>

#include "telemetry.h"

struct wanted {
    bool json, flows;
    uint64_t every, seconds;
};

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    stopped = number;
}

static const char *const latency_name[LATENCIES] = {"tcp_handshake", "icmp_echo", "dns"};

/* ---- Flows ---- */

struct text {
    char from[INET6_ADDRSTRLEN], to[INET6_ADDRSTRLEN];
    unsigned from_port, to_port, proto;
};

static void address(char text[INET6_ADDRSTRLEN], const uint32_t word[4], bool v6)
{
    uint32_t bytes[4];
    for (int i = 0; i < 4; i++) {
        bytes[i] = htonl(word[i]);
    }
    inet_ntop(v6 ? AF_INET6 : AF_INET, bytes, text, INET6_ADDRSTRLEN);
}

static struct text text_of(const uint32_t key[KEY])
{
    bool v6 = key[9] >> 8 == 6;
    struct text t = {.from_port = key[8] >> 16, .to_port = key[8] & 0xffff, .proto = key[9] & 0xff};
    address(t.from, key, v6);
    address(t.to, key + 4, v6);
    return t;
}

/* The flow in the table, or NULL. */
static const struct flow *find(const struct telemetry *t, const uint32_t key[KEY])
{
    const struct flow *line = t->flow[telemetry_hash(key, 0) % LINES];
    for (unsigned i = 0; i < WAYS; i++) {
        if (line[i].frames > 0 && memcmp(line[i].key, key, sizeof(line[i].key)) == 0) {
            return &line[i];
        }
    }
    return NULL;
}

static int by_estimate(const void *a, const void *b)
{
    const struct top *x = a, *y = b;
    return (x->estimate < y->estimate) - (x->estimate > y->estimate);
}

/* What an estimate exceeds the truth by, at most, with a probability of 1 - e^-ROWS. */
static uint64_t bound(const struct telemetry *t)
{
    return (uint64_t)(2.718281828459045 / WIDTH * (double)(t->all.bytes - t->other.bytes));
}

/* The least time that is not below `part` of the times. */
static uint64_t quantile(const struct latency *l, double part)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        sum += l->bucket[i];
        if ((double)sum >= part * (double)l->count) {
            uint64_t end = telemetry_least(i + 1);
            return end < l->most ? end : l->most;
        }
    }
    return l->most;
}

/* ---- For people ---- */

static void print_latency(const char *name, const struct latency *l)
{
    if (l->count > 0) {
        printf("  %-14s %10" PRIu64
               " answers, us: half in %.1f, 90 %% in %.1f, 99 %% in %.1f, all in "
               "%.1f\n",
               name, l->count, (double)quantile(l, 0.5) / 1e3, (double)quantile(l, 0.9) / 1e3,
               (double)quantile(l, 0.99) / 1e3, (double)l->most / 1e3);
    }
}

static void print(const struct telemetry *t, const struct top top[TOP])
{
    unsigned flows = 0;
    for (unsigned i = 0; i < LINES * WAYS; i++) {
        flows += t->flow[i / WAYS][i % WAYS].frames > 0;
    }
    printf("%" PRIu64 " frames, %" PRIu64 " bytes in %.3f s: TCP %" PRIu64 ", UDP %" PRIu64
           ", ICMP %" PRIu64 ", not IP %" PRIu64 " frames\n",
           t->all.frames, t->all.bytes, (double)(t->last - t->first) / 1e9, t->tcp.frames,
           t->udp.frames, t->icmp.frames, t->other.frames);
    printf("%u flows in the table, %" PRIu64 " ended; %" PRIu64 " frames found no room there\n",
           flows, t->flows_ended, t->no_room.frames);
    printf("heaviest flows; estimates are at most %" PRIu64 " bytes too large, but for %.1f %% of "
           "flows\n",
           bound(t), 100 * 0.018316);
    for (unsigned i = 0; i < TOP && i < 10 && top[i].estimate > 0; i++) {
        struct text s = text_of(top[i].key);
        const struct flow *f = find(t, top[i].key);
        printf("  %12" PRIu64 " bytes  %s %u -> %s %u, protocol %u", top[i].estimate, s.from,
               s.from_port, s.to, s.to_port, s.proto);
        if (f != NULL) {
            printf("; exactly %" PRIu64 " in %" PRIu64 " frames", f->bytes, f->frames);
        }
        printf("\n");
    }
    for (unsigned i = 0; i < LATENCIES; i++) {
        print_latency(latency_name[i], &t->latency[i]);
    }
    fflush(stdout);
}

/* ---- JSON ---- */

static void json_amount(const char *name, const struct amount *a)
{
    printf("\"%s\":{\"frames\":%" PRIu64 ",\"bytes\":%" PRIu64 "},", name, a->frames, a->bytes);
}

static void json_flow(const struct telemetry *t, const uint32_t key[KEY], const struct flow *f)
{
    struct text s = text_of(key);
    printf("{\"from\":\"%s\",\"to\":\"%s\",\"from_port\":%u,\"to_port\":%u,\"protocol\":%u,"
           "\"estimate\":%" PRIu64,
           s.from, s.to, s.from_port, s.to_port, s.proto, telemetry_estimate(t, key));
    if (f != NULL) {
        printf(",\"frames\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"first_ns\":%" PRIu64
               ",\"last_ns\":%" PRIu64,
               f->frames, f->bytes, f->first, f->last);
    }
    printf("}");
}

static void json_latency(const char *name, const struct latency *l)
{
    const char *comma = "";
    printf("\"%s\":{\"count\":%" PRIu64 ",\"most_ns\":%" PRIu64 ",\"given_up\":%" PRIu64
           ",\"buckets\":[",
           name, l->count, l->most, l->given_up);
    for (unsigned i = 0; i < BUCKETS; i++) {
        if (l->bucket[i] > 0) {
            printf("%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", comma, telemetry_least(i),
                   telemetry_least(i + 1), l->bucket[i]);
            comma = ",";
        }
    }
    printf("]}");
}

static void json(const struct telemetry *t, const struct top top[TOP], bool flows)
{
    printf("{");
    json_amount("all", &t->all);
    json_amount("tcp", &t->tcp);
    json_amount("udp", &t->udp);
    json_amount("icmp", &t->icmp);
    json_amount("other", &t->other);
    json_amount("ended", &t->ended);
    json_amount("no_room", &t->no_room);
    printf("\"flows_ended\":%" PRIu64 ",\"sketch\":{\"rows\":%d,\"width\":%d,\"bound\":%" PRIu64
           "},\"top\":[",
           t->flows_ended, ROWS, WIDTH, bound(t));
    for (unsigned i = 0; i < TOP && top[i].estimate > 0; i++) {
        printf("%s", i > 0 ? "," : "");
        json_flow(t, top[i].key, find(t, top[i].key));
    }
    printf("],\"flows\":[");
    for (unsigned i = 0, n = 0; i < LINES * WAYS && flows; i++) {
        const struct flow *f = &t->flow[i / WAYS][i % WAYS];
        if (f->frames > 0) {
            printf("%s", n++ > 0 ? "," : "");
            json_flow(t, f->key, f);
        }
    }
    printf("],\"latency\":{");
    for (unsigned i = 0; i < LATENCIES; i++) {
        printf("%s", i > 0 ? "," : "");
        json_latency(latency_name[i], &t->latency[i]);
    }
    printf("}}\n");
    fflush(stdout);
}

static void report(const struct telemetry *t, const struct wanted *w)
{
    struct top top[TOP];
    memcpy(top, t->top, sizeof(top));
    qsort(top, TOP, sizeof(top[0]), by_estimate);
    if (w->json) {
        json(t, top, w->flows);
    } else {
        print(t, top);
    }
}

/* ---- Running ---- */

static uint64_t seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec;
}

static int run(struct pw_raw *raw, const struct pw_raw_source *source, const char *image,
               const struct wanted *w)
{
    struct pw_raw_context context = {.image = image, .state = sizeof(struct telemetry)};
    struct pw_raw_counts counts;
    size_t length;
    int n = 0;
    if (pw_raw_context(raw, &context) < 0 || pw_raw_rules(raw, "all") != 0 ||
        pw_raw_open(raw, source) != 0) {
        fprintf(stderr, "telemetry: %s\n", pw_raw_error(raw));
        return 1;
    }
    const struct telemetry *t = pw_raw_state(raw, 0, &length);
    uint64_t begun = seconds_now(), said = begun;
    while (n >= 0 && stopped == 0 && (w->seconds == 0 || seconds_now() - begun < w->seconds)) {
        n = pw_raw_turn(raw);
        if (n == 0) {
            n = pw_raw_wait(raw, 100);
        }
        if (w->every > 0 && seconds_now() - said >= w->every) {
            said = seconds_now();
            report(t, w);
        }
    }
    if (n < 0 && n != -ENODATA) {
        fprintf(stderr, "telemetry: %s\n", pw_raw_error(raw));
        return 1;
    }
    report(t, w);
    pw_raw_counts(raw, 0, &counts);
    if (counts.frames != t->all.frames || counts.kept != counts.frames) {
        fprintf(stderr, "telemetry: handlers have ended %" PRIu64 " of %" PRIu64 " frames\n",
                counts.kept, counts.frames);
        return 1;
    }
    return 0;
}

static int usage(void)
{
    fprintf(stderr, "telemetry pcap FILE|iface NAME IMAGE [--json] [--flows] [--every S] "
                    "[--seconds S]\n");
    return 2;
}

int main(int argc, char **argv)
{
    struct pw_raw_source source = {0};
    struct wanted w = {0};
    struct pw_raw *raw;
    if (argc < 4) {
        return usage();
    }
    for (int i = 4; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            w.json = true;
        } else if (strcmp(argv[i], "--flows") == 0) {
            w.flows = true;
        } else if (strcmp(argv[i], "--every") == 0 && i + 1 < argc) {
            w.every = strtoull(argv[++i], NULL, 10);
        } else if (strcmp(argv[i], "--seconds") == 0 && i + 1 < argc) {
            w.seconds = strtoull(argv[++i], NULL, 10);
        } else {
            return usage();
        }
    }
    if (strcmp(argv[1], "pcap") == 0) {
        source.pcap = argv[2];
    } else if (strcmp(argv[1], "iface") == 0) {
        source.iface = argv[2];
        source.flags = PW_RAW_PACKET | PW_RAW_OBSERVE;
    } else {
        return usage();
    }
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    if (pw_raw_new(&raw) != 0) {
        fprintf(stderr, "telemetry: no memory\n");
        return 1;
    }
    int status = run(raw, &source, argv[3], &w);
    pw_raw_close(raw);
    return status;
}
