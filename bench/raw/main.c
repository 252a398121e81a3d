/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_raw: answers by handlers on a veth pair beside a UDP socket that spins, the kernel's ICMP
 * and a bare AF_XDP socket, in interleaved rounds.
 *
 *      bench_raw latency|rate|dns|firewall|pingpong [--rounds N] [--size BYTES] [--pings N] [--ms
 * N]
 *                                 [--pinwheel PATH] [--images DIR] [--svg PATH]
 *
 * It needs the right to make network namespaces, CAP_BPF, CAP_NET_ADMIN and CAP_NET_RAW.
 */
#include "raw/raw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NATIVE, RV32, SLEEPING, SERVED, SOCKET, BARE, ICMP_NATIVE, ICMP_RV32, ICMP_KERNEL, COUNT };

static struct subject subjects[COUNT] = {
    [NATIVE] = {.name = "handler, native", .handlers = "udp_echo.so"},
    [RV32] = {.name = "handler, RV32", .handlers = "udp_echo.elf"},
    [SLEEPING] = {.name = "handler, sleeping", .handlers = "udp_echo.so", .sleeps = true},
    [SERVED] = {.name = "handler, served",
                .handlers = "udp_echo.so",
                .sleeps = true,
                .served = true},
    [SOCKET] = {.name = "UDP socket, spinning", .echo = echo_udp},
    [BARE] = {.name = "bare AF_XDP", .echo = echo_bare},
    [ICMP_NATIVE] = {.name = "ICMP handler, native", ICMP, .handlers = "icmp_echo.so"},
    [ICMP_RV32] = {.name = "ICMP handler, RV32", ICMP, .handlers = "icmp_echo.elf"},
    [ICMP_KERNEL] = {.name = "ICMP, kernel", ICMP},
};

/* A bar: `a` over `b`, or `a` less `b` in us, is at most (latency) or at least (rate) `bar`; 0: it
 * is told and not judged. */
static const struct bar {
    bool rate, minus;
    int a, b;
    double bar;
} bars[] = {
    {false, false, NATIVE, SOCKET, 0.75},
    {false, false, RV32, SOCKET, 0.85},
    {false, true, NATIVE, BARE, 0.3},
    {false, true, RV32, BARE, 0.6},
    {false, false, ICMP_NATIVE, ICMP_KERNEL, 0.9},
    {false, false, ICMP_RV32, ICMP_KERNEL, 1.0},
    {false, false, SERVED, SLEEPING, 0},
    {false, true, SERVED, SLEEPING, 0},
    {true, false, SERVED, SLEEPING, 0},
    {true, false, NATIVE, BARE, 0.9},
    {true, false, NATIVE, SOCKET, 1.5},
};

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(const double *values, unsigned n)
{
    double copy[ROUNDS];
    memcpy(copy, values, n * sizeof(*copy));
    qsort(copy, n, sizeof(*copy), compare);
    return copy[n / 2];
}

static void report(bool rate, unsigned rounds)
{
    for (int i = 0; i < COUNT; i++) {
        if (subjects[i].number > 0) {
            printf("%-24s %8.2f %s\n", subjects[i].name, median(subjects[i].value, rounds),
                   rate ? "k/s" : "us");
        }
    }
    for (size_t i = 0; i < sizeof(bars) / sizeof(bars[0]); i++) {
        const struct bar *b = &bars[i];
        const struct subject *x = &subjects[b->a], *y = &subjects[b->b];
        double value[ROUNDS];
        if (b->rate != rate || x->number == 0 || y->number == 0) {
            continue;
        }
        for (unsigned r = 0; r < rounds; r++) {
            value[r] = b->minus ? x->value[r] - y->value[r] : x->value[r] / y->value[r];
        }
        double m = median(value, rounds);
        printf("%-24s %s %-24s %6.2f", x->name, b->minus ? "-" : "/", y->name, m);
        if (b->bar > 0) {
            printf("  bar %.2f: %s", b->bar, (rate ? m >= b->bar : m <= b->bar) ? "met" : "MISSED");
        }
        printf("\n");
    }
}

static int measure(bool rate, unsigned rounds, unsigned pings, unsigned ms, unsigned size)
{
    for (unsigned r = 0; r < rounds; r++) {
        for (int i = 0; i < COUNT; i++) {
            struct subject *s = &subjects[(i + (int)r) % COUNT];
            if (s->number == 0) {
                continue;
            }
            stage_resume(s);
            if (client_await(s) != 0) {
                return 1;
            }
            s->value[r] = rate ? client_kilo_per_s(s, ms, size) : client_half_us(s, pings, size);
            stage_pause(s);
            if (s->value[r] <= 0) {
                fprintf(stderr, "bench_raw: %s has not answered in round %u\n", s->name, r);
                return 1;
            }
        }
    }
    report(rate, rounds);
    return 0;
}

static const char *beside(const char *program, const char *path)
{
    static char text[2][4096];
    static int n;
    const char *slash = strrchr(program, '/');
    char *to = text[n++ % 2];
    snprintf(to, sizeof(text[0]), "%.*s%s", slash != NULL ? (int)(slash - program + 1) : 0, program,
             path);
    return to;
}

static int usage(void)
{
    fprintf(stderr, "bench_raw latency|rate|dns|firewall|pingpong [--rounds N] [--size BYTES] "
                    "[--pings N] [--ms N] "
                    "[--pinwheel PATH] [--images DIR] [--svg PATH]\n");
    return 2;
}

int main(int argc, char **argv)
{
    const char *pinwheel = beside(argv[0], "../tools/pinwheel/pinwheel");
    const char *images = beside(argv[0], "../tests/raw");
    const char *svg = NULL;
    unsigned rounds = 15, size = 16, pings = 1000, ms = 100;
    if (argc < 2 || argc % 2 != 0 ||
        (strcmp(argv[1], "latency") != 0 && strcmp(argv[1], "rate") != 0 &&
         strcmp(argv[1], "dns") != 0 && strcmp(argv[1], "firewall") != 0 &&
         strcmp(argv[1], "pingpong") != 0)) {
        return usage();
    }
    for (int i = 2; i < argc; i += 2) {
        unsigned n = (unsigned)atoi(argv[i + 1]); /* NOLINT(cert-err34-c): 0 is refused */
        if (strcmp(argv[i], "--pinwheel") == 0) {
            pinwheel = argv[i + 1];
        } else if (strcmp(argv[i], "--svg") == 0) {
            svg = argv[i + 1];
        } else if (strcmp(argv[i], "--images") == 0) {
            images = argv[i + 1];
        } else if (strcmp(argv[i], "--rounds") == 0 && n > 0 && n <= ROUNDS) {
            rounds = n;
        } else if (strcmp(argv[i], "--size") == 0 && n >= 4 && n <= 1416) {
            size = n;
        } else if (strcmp(argv[i], "--pings") == 0 && n > 0) {
            pings = n;
        } else if (strcmp(argv[i], "--ms") == 0 && n > 0) {
            ms = n;
        } else {
            return usage();
        }
    }
    if (strcmp(argv[1], "dns") == 0) {
        return dns_run(images, rounds, ms);
    }
    bool rate = strcmp(argv[1], "rate") == 0;
    int status = stage_open() != 0;
    if (strcmp(argv[1], "firewall") == 0) {
        status = status != 0 || firewall(pinwheel, images, rounds, ms) != 0;
        stage_close(NULL, 0);
        return status;
    }
    if (strcmp(argv[1], "pingpong") == 0) {
        return status != 0 || pingpong(images, svg, rounds, pings) != 0;
    }
    for (unsigned i = 0; i < COUNT && status == 0; i++) {
        struct subject *s = &subjects[i];
        if (rate && s->protocol == ICMP) {
            continue;
        }
        s->number = i + 1;
        status =
            stage_start(s, pinwheel, images) != 0 || client_open(s) != 0 || client_await(s) != 0;
        stage_pause(s);
    }
    status = status != 0 ? 1 : measure(rate, rounds, pings, ms, size);
    stage_close(subjects, COUNT);
    return status;
}
