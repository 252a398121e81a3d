/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_raw pingpong: round trips of pings and datagrams over their size, answered by handlers
 * alone (NIC), by handlers and the host (its part is the checksum), by the host alone, and by the
 * kernel or a socket of the kernel's. Medians of interleaved rounds, as a picture (SVG) and its
 * data (CSV).
 */
#include "raw/raw.h"

#include "pinwheel/util/plot.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SIZES = 6, WAYS = 4, PANELS = 2 };

static const unsigned sizes[SIZES] = {16, 64, 256, 512, 1024, 1416};
static const char *const ways[WAYS] = {"nic", "both", "host", NULL};

struct way {
    struct subject subject;
    double value[SIZES][ROUNDS], median[SIZES];
};

static struct way subjects[PANELS][WAYS] = {
    {{.subject = {.name = "UDP: NIC"}},
     {.subject = {.name = "UDP: NIC and host"}},
     {.subject = {.name = "UDP: host"}},
     {.subject = {.name = "UDP: socket", .echo = echo_udp}}},
    {{.subject = {.name = "ICMP: NIC", ICMP}},
     {.subject = {.name = "ICMP: NIC and host", ICMP}},
     {.subject = {.name = "ICMP: host", ICMP}},
     {.subject = {.name = "ICMP: kernel", ICMP}}},
};

static int start(struct subject *s, const char *way, const char *images)
{
    char program[4096], image[4096], iface[16];
    if (way == NULL) {
        return stage_start(s, "", "");
    }
    snprintf(program, sizeof(program), "%s/raw_pingpong_host", images);
    snprintf(image, sizeof(image), "%s/pingpong.so", images);
    snprintf(iface, sizeof(iface), "s%u", s->number);
    const char *argv[] = {program, "iface", iface, way, image, NULL};
    if (stage_pair(s->number) != 0) {
        return -1;
    }
    s->pid = stage_spawn(argv, STDERR_FILENO);
    return s->pid > 0 ? 0 : -1;
}

static int start_all(const char *images)
{
    for (unsigned i = 0; i < PANELS * WAYS; i++) {
        struct subject *s = &subjects[i / WAYS][i % WAYS].subject;
        s->number = i + 1;
        if (start(s, ways[i % WAYS], images) != 0 || client_open(s) != 0 || client_await(s) != 0) {
            return -1;
        }
        stage_pause(s);
    }
    return 0;
}

static int measure(unsigned rounds, unsigned pings)
{
    for (unsigned r = 0; r < rounds; r++) {
        for (unsigned i = 0; i < PANELS * WAYS; i++) {
            unsigned n = (i + r) % (PANELS * WAYS);
            struct way *w = &subjects[n / WAYS][n % WAYS];
            stage_resume(&w->subject);
            if (client_await(&w->subject) != 0) {
                return -1;
            }
            for (unsigned size = 0; size < SIZES; size++) {
                w->value[size][r] = 2 * client_half_us(&w->subject, pings, sizes[size]);
                if (w->value[size][r] <= 0) {
                    fprintf(stderr, "bench_raw: %s has not answered\n", w->subject.name);
                    return -1;
                }
            }
            stage_pause(&w->subject);
        }
    }
    return 0;
}

static double print(unsigned rounds)
{
    double most = 0;
    printf("%-20s", "round trip, us");
    for (unsigned size = 0; size < SIZES; size++) {
        printf("%8u B", sizes[size]);
    }
    for (unsigned i = 0; i < PANELS * WAYS; i++) {
        struct way *w = &subjects[i / WAYS][i % WAYS];
        printf("\n%-20s", w->subject.name);
        for (unsigned size = 0; size < SIZES; size++) {
            w->median[size] = median(w->value[size], rounds);
            most = w->median[size] > most ? w->median[size] : most;
            printf("%10.2f", w->median[size]);
        }
    }
    printf("\n");
    return most;
}

static int draw(const char *path, double most)
{
    static const char *const class[WAYS] = {"c0", "c1", "c2", "c3"};
    struct plot p;
    double x[SIZES];
    if (plot_open(&p, path, 1000, 460, "Ping-pong by handlers, host and kernel",
                  "Round trips over the size of the data, UDP and ICMP", "") != 0) {
        perror(path);
        return -1;
    }
    plot_data(&p, "who,bytes,round trip (us)");
    for (unsigned i = 0; i < PANELS; i++) {
        double left = 80 + 480.0 * i, right = left + 400;
        struct plot_panel panel = {
            left,
            right,
            60,
            400,
            {.high = sizes[SIZES - 1], .at_low = left, .at_high = right, .unit = "B", .scale = 1},
            {.high = most * 1.1, .at_low = 400, .at_high = 60, .unit = "us", .scale = 1}};
        plot_panel(&p, &panel);
        plot_ticks_x(&p, &panel);
        plot_ticks_y(&p, &panel);
        plot_name_x(&p, &panel, i == 0 ? "UDP, bytes" : "ICMP, bytes");
        plot_name_y(&p, &panel, "round trip (us)");
        for (unsigned w = 0; w < WAYS; w++) {
            const struct way *s = &subjects[i][w];
            for (unsigned n = 0; n < SIZES; n++) {
                x[n] = sizes[n];
                plot_name(&p, s->subject.name);
                plot_data(&p, "%u,%.3f", sizes[n], s->median[n]);
            }
            plot_line(&p, &panel, class[w], x, s -> median, SIZES);
            plot_key(
                &p, class [w], (struct svg_point) { left + 10 + 190 * (w % 2), 24 + 18 * (w / 2) },
                s->subject.name);
        }
    }
    return plot_close(&p);
}

/* The paper's order, at each size: NIC, NIC and host, host. */
static void report_order(void)
{
    for (unsigned i = 0; i < PANELS; i++) {
        unsigned right = 0;
        for (unsigned n = 0; n < SIZES; n++) {
            right += subjects[i][0].median[n] < subjects[i][1].median[n] &&
                     subjects[i][1].median[n] < subjects[i][2].median[n];
        }
        printf("%s: NIC < NIC and host < host at %u of %d sizes%s\n", i == 0 ? "UDP" : "ICMP",
               right, SIZES,
               i == 1           ? ""
               : right == SIZES ? ": as in the paper"
                                : ": MISSED");
    }
}

int pingpong(const char *images, const char *path, unsigned rounds, unsigned pings)
{
    int rc = start_all(images);
    rc = rc == 0 ? measure(rounds, pings) : rc;
    if (rc == 0) {
        double most = print(rounds);
        report_order();
        rc = path != NULL ? draw(path, most) : 0;
    }
    for (unsigned i = 0; i < PANELS * WAYS; i++) {
        stage_close(&subjects[i / WAYS][i % WAYS].subject, 1);
    }
    return rc != 0;
}
