/* SPDX-License-Identifier: BSD-3-Clause */
/* Who asks: a socket that spins. The median of a round leaves the moments out in which one of both
 * sides had no core. */
#include "raw/raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip_icmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

enum { WINDOW = 64, MOST = 1500, IP = 20 };
static const int64_t PATIENCE = 10000000000; /* ns */

static int64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int client_open(struct subject *s)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(7)};
    int buffer = 4 << 20;
    to.sin_addr.s_addr = htonl(10u << 24 | 88u << 16 | s->number << 8 | 2);
    s->fd = s->protocol == UDP ? socket(AF_INET, SOCK_DGRAM, 0)
                               : socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
    if (s->fd < 0 || connect(s->fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        perror("bench_raw: client");
        return -1;
    }
    setsockopt(s->fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer));
    return 0;
}

static uint16_t checksum(const uint8_t *data, size_t length)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < length; i++) {
        sum += (uint32_t)data[i] << (i % 2 == 0 ? 8 : 0);
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return htons((uint16_t) ~(sum + (sum >> 16)));
}

/* Makes request `sequence`, with `size` bytes behind its header, and returns its length. */
static size_t make(const struct subject *s, uint8_t *data, uint32_t sequence, unsigned size)
{
    memset(data, 0x5a, MOST);
    if (s->protocol == UDP) {
        memcpy(data, &sequence, sizeof(sequence));
        return size;
    }
    struct icmphdr h = {.type = ICMP_ECHO};
    h.un.echo.sequence = (uint16_t)sequence;
    memcpy(data, &h, sizeof(h));
    h.checksum = checksum(data, sizeof(h) + size);
    memcpy(data, &h, sizeof(h));
    return sizeof(h) + size;
}

static bool answers(const struct subject *s, const uint8_t *data, ssize_t n, uint32_t sequence)
{
    if (s->protocol == UDP) {
        return n >= 4 && memcmp(data, &sequence, 4) == 0;
    }
    struct icmphdr h;
    memcpy(&h, data + IP, sizeof(h));
    return n >= IP + 8 && h.type == ICMP_ECHOREPLY && h.un.echo.sequence == (uint16_t)sequence;
}

/* The time of one ping in ns; -1: it was not answered for so long. */
static int64_t ping(struct subject *s, uint32_t sequence, unsigned size, int64_t patience)
{
    uint8_t data[MOST];
    size_t length = make(s, data, sequence, size);
    int64_t begun = now_ns(), now = begun;
    if (send(s->fd, data, length, 0) < 0) {
        return -1;
    }
    while (now - begun < patience) {
        ssize_t n = recv(s->fd, data, sizeof(data), MSG_DONTWAIT);
        now = now_ns();
        if (n > 0 && answers(s, data, n, sequence)) {
            return now - begun;
        }
    }
    return -1;
}

int client_await(struct subject *s)
{
    for (uint32_t i = 0; i < 200; i++) {
        if (ping(s, 1000000 + i, 16, 100000000) >= 0) {
            return 0;
        }
    }
    fprintf(stderr, "bench_raw: %s does not answer\n", s->name);
    return -1;
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

double client_half_us(struct subject *s, unsigned pings, unsigned size)
{
    int64_t *time = calloc(pings, sizeof(*time));
    unsigned n = 0;
    for (unsigned i = 0; i < pings && time != NULL; i++) {
        int64_t t = ping(s, i, size, 1000000000);
        if (t >= 0) {
            time[n++] = t;
        }
    }
    double median = -1;
    if (n > 0) {
        qsort(time, n, sizeof(*time), compare);
        median = (double)time[n / 2] / 2000;
    }
    free(time);
    return median;
}

double client_kilo_per_s(struct subject *s, unsigned milliseconds, unsigned size)
{
    static uint8_t out[WINDOW][MOST], in[WINDOW][MOST];
    struct mmsghdr send[WINDOW] = {0}, got[WINDOW] = {0};
    struct iovec vout[WINDOW], vin[WINDOW];
    for (unsigned i = 0; i < WINDOW; i++) {
        vout[i] = (struct iovec){out[i], make(s, out[i], i, size)};
        vin[i] = (struct iovec){in[i], MOST};
        send[i].msg_hdr = (struct msghdr){.msg_iov = &vout[i], .msg_iovlen = 1};
        got[i].msg_hdr = (struct msghdr){.msg_iov = &vin[i], .msg_iovlen = 1};
    }
    int64_t begun = now_ns(), now = begun, last = begun;
    uint64_t answered = 0;
    int away = 0;
    /* a server that has got no core yet has answered nothing: it is waited for */
    while (now - begun < (int64_t)milliseconds * 1000000 ||
           (answered == 0 && now - begun < PATIENCE)) {
        /* refilled by halves, so that both sides have batches */
        if (away <= WINDOW / 2) {
            int n = sendmmsg(s->fd, send, (unsigned)(WINDOW - away), 0);
            away += n > 0 ? n : 0;
        }
        int n = recvmmsg(s->fd, got, WINDOW, MSG_DONTWAIT, NULL);
        now = now_ns();
        if (n > 0) {
            answered += (unsigned)n;
            away = away > n ? away - n : 0;
            last = now;
        } else if (now - last > 20000000) {
            away = 0; /* lost */
            last = now;
        }
    }
    return (double)answered * 1e6 / (double)(now - begun);
}
