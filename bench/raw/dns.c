/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The DNS cache (examples/raw/dns_cache.c) beside Debian's dnsmasq, which it is put before: answers
 * a second to a client that asks for a thousand names in turn, 64 on their way. Each answer is
 * compared with that of the server, but for its id and its TTL. While the cache has its turns the
 * server is stopped, so that no answer is the server's.
 */
#include "raw/raw.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { NAMES = 1000, WINDOW = 64, MOST = 128, QUERY = 31, ANSWER = QUERY + 16, TTL_AT = QUERY + 6 };
enum { CACHE, CACHE_RV32, SERVER, SIDES };

static struct subject sides[SIDES];
static const char *images;
static uint8_t query[NAMES][MOST], expected[NAMES][MOST];

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- Who answers ---- */

static int run_cache(unsigned number, const char *image)
{
    char host[4096], file[4096], iface[16], address[32];
    snprintf(host, sizeof(host), "%s/raw_dns_cache_host", images);
    snprintf(file, sizeof(file), "%s/%s", images, image);
    snprintf(iface, sizeof(iface), "s%u", number);
    snprintf(address, sizeof(address), "10.88.%u.2", number);
    execl(host, host, "-s", iface, address, file, (char *)NULL);
    perror(host);
    return 1;
}

static int cache_native(unsigned number)
{
    return run_cache(number, "dns_cache.so");
}

static int cache_rv32(unsigned number)
{
    return run_cache(number, "dns_cache.elf");
}

/* The server listens on the addresses of all sides; the last side's are its own. */
static int server(unsigned number)
{
    char listen[128], path[64];
    snprintf(listen, sizeof(listen), "--listen-address=10.88.1.2,10.88.2.2,10.88.%u.2", number);
    /* by which the cache asks */
    if (system("ip link set lo up") != 0) { /* NOLINT(cert-env33-c): with nothing from outside */
        return 1;
    }
    /* its data come by a file without a name */
    FILE *conf = tmpfile();
    if (conf == NULL) {
        return 1;
    }
    for (int i = 0; i < NAMES; i++) {
        fprintf(conf, "host-record=name%04d.test,10.1.%d.%d,86400\n", i, i / 256, i % 256);
    }
    fflush(conf);
    snprintf(path, sizeof(path), "--conf-file=/proc/self/fd/%d", fileno(conf));
    execlp("dnsmasq", "dnsmasq", "--keep-in-foreground", path, listen, "--bind-dynamic",
           "--no-resolv", "--no-hosts", "--user=root", "--pid-file=", (char *)NULL);
    perror("bench_raw: dnsmasq");
    return 1;
}

/* ---- Who asks ---- */

static void make_queries(void)
{
    for (int i = 0; i < NAMES; i++) {
        static const uint8_t head[] = {0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 8};
        static const uint8_t tail[] = {4, 't', 'e', 's', 't', 0, 0, 1, 0, 1};
        uint8_t *q = query[i];
        char name[9];
        memcpy(q, head, sizeof(head));
        q[0] = (uint8_t)(i >> 8);
        q[1] = (uint8_t)i;
        snprintf(name, sizeof(name), "name%04d", i);
        memcpy(q + sizeof(head), name, 8);
        memcpy(q + sizeof(head) + 8, tail, sizeof(tail));
    }
}

/* An answer is that of the server to the same question, but for its id and TTL. */
static bool equal(const uint8_t *m, const uint8_t *server)
{
    return memcmp(m + 2, server + 2, TTL_AT - 2) == 0 &&
           memcmp(m + TTL_AT + 4, server + TTL_AT + 4, ANSWER - TTL_AT - 4) == 0;
}

/* Asks for names in turn for so long, or for so many answers; returns the answers. With `learn` the
 * answers are what later ones are compared with; else *wrong counts those that differ. */
static uint64_t ask(struct subject *s, int64_t ns, uint64_t most, bool learn, uint64_t *wrong)
{
    static uint8_t in[WINDOW][MOST];
    static unsigned next;
    struct mmsghdr send[WINDOW] = {0}, got[WINDOW] = {0};
    struct iovec vout[WINDOW], vin[WINDOW];
    int64_t begun = now_ns(), now = begun, last = begun;
    uint64_t answered = 0;
    int away = 0;
    for (unsigned i = 0; i < WINDOW; i++) {
        vin[i] = (struct iovec){in[i], MOST};
        send[i].msg_hdr = (struct msghdr){.msg_iov = &vout[i], .msg_iovlen = 1};
        got[i].msg_hdr = (struct msghdr){.msg_iov = &vin[i], .msg_iovlen = 1};
    }
    while (now - begun < ns && answered < most) {
        if (away <= WINDOW / 2) {
            int n = WINDOW - away;
            for (int i = 0; i < n; i++) {
                vout[i] = (struct iovec){query[(next + (unsigned)i) % NAMES], QUERY};
            }
            n = sendmmsg(s->fd, send, (unsigned)n, 0);
            next += n > 0 ? (unsigned)n : 0;
            away += n > 0 ? n : 0;
        }
        int n = recvmmsg(s->fd, got, WINDOW, MSG_DONTWAIT, NULL);
        now = now_ns();
        for (int i = 0; i < n; i++) {
            unsigned name = ((unsigned)in[i][0] << 8 | in[i][1]) % NAMES;
            bool whole = got[i].msg_len == ANSWER;
            if (learn && whole) {
                memcpy(expected[name], in[i], ANSWER);
            } else if (!whole || !equal(in[i], expected[name])) {
                ++*wrong;
            }
        }
        if (n > 0) {
            answered += (unsigned)n;
            away = away > n ? away - n : 0;
            last = now;
        } else if (now - last > 20000000) {
            away = 0; /* lost */
            last = now;
        }
    }
    return answered;
}

/* ---- Rounds ---- */

static int fail(const char *why)
{
    fprintf(stderr, "bench_raw dns: %s\n", why);
    return 1;
}

static int start(int side, const char *name, int (*echo)(unsigned))
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(53)};
    struct subject *s = &sides[side];
    int buffer = 4 << 20;
    *s = (struct subject){.name = name, .echo = echo, .number = (unsigned)side + 1};
    to.sin_addr.s_addr = htonl(10u << 24 | 88u << 16 | s->number << 8 | 2);
    if (stage_start(s, NULL, NULL) != 0) {
        return -1;
    }
    s->fd = socket(AF_INET, SOCK_DGRAM, 0);
    setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
    return connect(s->fd, (struct sockaddr *)&to, sizeof(to));
}

/* Asks a side for all names until it has answered each while the server was stopped. */
static int warm(struct subject *s)
{
    static const int64_t second = 1000000000;
    for (int i = 0; i < 120; i++) {
        uint64_t wrong = 0;
        stage_resume(&sides[SERVER]);
        stage_resume(s);
        (void)ask(s, second / 4, UINT64_MAX, s == &sides[SERVER], &wrong);
        if (s == &sides[SERVER]) {
            bool all = true;
            for (int n = 0; n < NAMES; n++) {
                all &= expected[n][3] != 0;
            }
            if (all) {
                return 0;
            }
            continue;
        }
        stage_pause(&sides[SERVER]);
        uint8_t was[MOST];
        int answered = 0;
        for (int n = 0; n < NAMES; n++) {
            int64_t begun = now_ns();
            ssize_t got = -1;
            while (recv(s->fd, was, MOST, MSG_DONTWAIT) > 0) {
            }
            (void)!send(s->fd, query[n], QUERY, 0);
            while (got < 0 && now_ns() - begun < second / 5) {
                got = recv(s->fd, was, MOST, MSG_DONTWAIT);
            }
            answered += got == ANSWER && equal(was, expected[n]);
            if (answered < n - 5) {
                break;
            }
        }
        if (answered == NAMES) {
            return 0;
        }
    }
    return -1;
}

static int measure(unsigned rounds, unsigned milliseconds)
{
    uint64_t wrong = 0, answers = 0;
    for (unsigned r = 0; r < rounds; r++) {
        for (int i = 0; i < SIDES; i++) {
            struct subject *s = &sides[(i + (int)r) % SIDES];
            if (s->number == 0) {
                continue;
            }
            stage_resume(s);
            (void)ask(s, 10000000000, WINDOW, false, &wrong); /* it has a core */
            int64_t begun = now_ns();
            uint64_t n = ask(s, (int64_t)milliseconds * 1000000, UINT64_MAX, false, &wrong);
            s->value[r] = (double)n * 1e6 / (double)(now_ns() - begun);
            stage_pause(s);
            answers += n;
        }
    }
    for (int i = 0; i < SIDES; i++) {
        if (sides[i].number > 0) {
            printf("%-24s %8.2f k/s\n", sides[i].name, median(sides[i].value, rounds));
        }
    }
    printf("%llu answers compared with the server's, but for id and TTL: %llu differ\n",
           (unsigned long long)answers, (unsigned long long)wrong);
    for (int i = 0; i < SERVER; i++) {
        double ratio[ROUNDS];
        for (unsigned r = 0; r < rounds && sides[i].number > 0; r++) {
            ratio[r] = sides[i].value[r] / sides[SERVER].value[r];
        }
        if (sides[i].number > 0) {
            double m = median(ratio, rounds);
            printf("%-24s / %-24s %6.2f%s\n", sides[i].name, sides[SERVER].name, m,
                   i == CACHE_RV32 ? ""
                   : m >= 2.0      ? "  bar 2.00: met"
                                   : "  bar 2.00: MISSED");
        }
    }
    return wrong == 0 ? 0 : 1;
}

int dns_run(const char *folder, unsigned rounds, unsigned milliseconds)
{
    char elf[4096];
    images = folder;
    snprintf(elf, sizeof(elf), "%s/dns_cache.elf", images);
    make_queries();
    int status = stage_open() != 0;
    if (status == 0 &&
        (start(CACHE, "DNS cache, native", cache_native) != 0 ||
         (access(elf, R_OK) == 0 && start(CACHE_RV32, "DNS cache, RV32", cache_rv32) != 0) ||
         start(SERVER, "dnsmasq", server) != 0)) {
        status = fail("the servers cannot be started");
    }
    for (int i = 0; i < SERVER && status == 0; i++) {
        if (sides[i].number > 0) {
            stage_pause(&sides[i]);
        }
    }
    for (int i = SERVER; i >= 0 && status == 0; i--) {
        if (sides[i].number > 0 && warm(&sides[i]) != 0) {
            status = fail(i == SERVER ? "dnsmasq does not answer" : "the cache does not answer");
        }
        stage_pause(&sides[i]);
    }
    status = status != 0 ? status : measure(rounds, milliseconds);
    stage_close(sides, SIDES);
    return status;
}
