/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What handlers are held against: a UDP socket that spins, and an AF_XDP socket with nothing
 * between its rings but the exchange of addresses. Both answer datagrams to port 7.
 */
#include "raw/raw.h"

#include "raw/source/bpf.h"
#include "raw/source/xsk.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static int fail(const char *what, int rc)
{
    fprintf(stderr, "bench_raw: %s: %s\n", what, strerror(-rc));
    return 1;
}

int echo_udp(unsigned number)
{
    struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(7)}, from;
    uint8_t data[2048];
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    (void)number;
    if (fd < 0 || bind(fd, (struct sockaddr *)&any, sizeof(any)) != 0) {
        perror("bench_raw: udp echo");
        return 1;
    }
    for (;;) {
        socklen_t length = sizeof(from);
        ssize_t n =
            recvfrom(fd, data, sizeof(data), MSG_DONTWAIT, (struct sockaddr *)&from, &length);
        if (n >= 0) {
            (void)!sendto(fd, data, (size_t)n, 0, (struct sockaddr *)&from, length);
        }
    }
}

static void swap_bytes(uint8_t *a, uint8_t *b, size_t n)
{
    uint8_t t[6];
    memcpy(t, a, n);
    memcpy(a, b, n);
    memcpy(b, t, n);
}

static void answer(struct xsk_queue *q)
{
    struct xdp_desc desc[XSK_PIECES];
    xsk_refill(q);
    unsigned n = xsk_receive(q, 0, desc, RAW_BATCH);
    for (unsigned i = 0; i < n; i++) {
        uint8_t *f = q->memory + desc[i].addr;
        swap_bytes(f, f + 6, 6);
        swap_bytes(f + 26, f + 30, 4);
        swap_bytes(f + 34, f + 36, 2);
        f[40] = f[41] = 0;
        if (!xsk_send(q, desc[i].addr, desc[i].len)) {
            xsk_free(q, desc[i].addr);
        }
    }
    if (n > 0) {
        xsk_flush(q);
    }
}

int echo_bare(unsigned number)
{
    static struct raw_rules rules;
    static struct xsk_queue queue;
    char name[16], error[RAW_ERROR] = "";
    struct raw_code code;
    snprintf(name, sizeof(name), "s%u", number);
    unsigned ifindex = if_nametoindex(name);
    struct raw_code_maps maps = {.counters = -1, .contexts = 1};
    maps.sockets = raw_bpf_map(BPF_MAP_TYPE_XSKMAP, "sockets", 4, 1);
    if (maps.sockets < 0 || raw_rules_load(&rules, "udp-echo", error) != 0 ||
        raw_code_make(&code, &rules, &maps) != 0) {
        return fail("bare echo, rules", maps.sockets);
    }
    int program = raw_bpf_load(&code, 0, error, sizeof(error));
    int rc = program < 0 ? program : xsk_open(&queue, ifindex, 0, 1, false);
    rc = rc < 0 ? rc : raw_bpf_set(maps.sockets, 0, &queue.fd[0]);
    rc = rc < 0 ? rc : raw_bpf_attach(program, ifindex, XDP_FLAGS_DRV_MODE);
    if (rc < 0) {
        return fail("bare echo", rc);
    }
    for (;;) {
        answer(&queue);
    }
}
