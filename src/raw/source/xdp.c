/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An interface by AF_XDP: the program of the rules (rules/code.h) attached by a bpf_link, and a
 * socket for each queue and context (xsk.h).
 *
 * What was attached goes with the last descriptor of the link: so whatever ends this process, the
 * interface is as before. An interface through which the default route leaves gets the program in
 * the kernel's own mode (skb), since the driver's may take the link down for a moment, and rules
 * that would take ARP or ssh from it are refused, unless the user says yes.
 */
#include "raw/source/bpf.h"
#include "raw/source/iface.h"
#include "raw/source/xsk.h"

#include "base/list.h"
#include "base/sys.h"

#include <errno.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { QUEUES = 64, MTU_MOST = 3498 };             /* what is left of a page, measured on veth */
enum { QUEUE_NAPS = 400, QUEUE_NAP_NS = 5000000 }; /* 2 s */

struct xdp {
    struct raw_source source;
    char iface[IF_NAMESIZE];
    unsigned ifindex, queues, opened, contexts, next; /* `next`: the queue to look at first */
    int link, sockets, counters, passing;
    bool native, spin;
    bool has_room; /* `room` was taken for a frame that is not sent */
    uint64_t room;
    struct raw_source_counts counts;
    struct xsk_queue queue[];
};

static struct xdp *xdp_of(struct raw_source *s)
{
    return container_of(s, struct xdp, source);
}

static uint64_t now_ns(struct raw_source *s)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- Frames ---- */

static int xdp_receive(struct raw_source *s, unsigned context, struct raw_frame *frames,
                       unsigned most)
{
    struct xdp *x = xdp_of(s);
    struct xdp_desc desc[RAW_BATCH];
    unsigned n = 0, queue = x->next;
    for (unsigned i = 0; i < x->queues && n == 0; i++) {
        queue = (x->next + i) % x->queues;
        xsk_refill(&x->queue[queue]);
        n = xsk_receive(&x->queue[queue], context, desc, most < RAW_BATCH ? most : RAW_BATCH);
    }
    x->next = (queue + 1) % x->queues;
    uint64_t time = n > 0 ? now_ns(s) : 0;
    for (unsigned i = 0; i < n; i++) {
        uint8_t *bytes = x->queue[queue].memory + desc[i].addr;
        frames[i] = (struct raw_frame){.bytes = bytes,
                                       .length = desc[i].len,
                                       .time = time,
                                       .slot = (uint64_t)queue << 48 | desc[i].addr};
        memcpy(&frames[i].verdict, bytes - RAW_META, RAW_META);
    }
    return (int)n;
}

static void xdp_done(struct raw_source *s, const struct raw_frame *frame, enum raw_fate fate,
                     uint32_t length)
{
    struct xdp *x = xdp_of(s);
    struct xsk_queue *q = &x->queue[frame->slot >> 48];
    uint64_t address = frame->slot & ((UINT64_C(1) << 48) - 1);
    if (fate == RAW_REPLY) {
        if (xsk_send(q, address, length)) {
            x->counts.sent++;
            return;
        }
        x->counts.send_full++;
    } else if (fate == RAW_PASS) {
        bool passed =
            x->native && raw_bpf_inject(x->passing, x->ifindex, frame->bytes, frame->length) >= 0;
        *(passed ? &x->counts.passed : &x->counts.pass_failed) += 1;
    }
    xsk_free(q, address);
}

static uint8_t *xdp_room(struct raw_source *s, uint32_t length)
{
    struct xdp *x = xdp_of(s);
    if (!x->has_room) {
        xsk_refill(&x->queue[0]);
        x->has_room = xsk_take(&x->queue[0], &x->room);
    }
    return x->has_room ? x->queue[0].memory + x->room : NULL;
}

static int xdp_send(struct raw_source *s, uint32_t length)
{
    struct xdp *x = xdp_of(s);
    if (!x->has_room || !xsk_send(&x->queue[0], x->room, length)) {
        x->counts.send_full++;
        return -ENOBUFS;
    }
    x->has_room = false;
    x->counts.sent++;
    return 0;
}

static void xdp_flush(struct raw_source *s)
{
    struct xdp *x = xdp_of(s);
    for (unsigned q = 0; q < x->queues; q++) {
        xsk_flush(&x->queue[q]);
    }
}

static int xdp_wait(struct raw_source *s, int milliseconds)
{
    struct xdp *x = xdp_of(s);
    struct pollfd fds[QUEUES * RAW_CONTEXTS];
    nfds_t n = 0;
    if (x->spin) {
        return 0;
    }
    for (unsigned q = 0; q < x->queues; q++) {
        for (unsigned c = 0; c < x->contexts; c++) {
            fds[n++] = (struct pollfd){.fd = x->queue[q].fd[c], .events = POLLIN};
        }
    }
    int rc = poll(fds, n, milliseconds);
    if (rc == 0) {
        char name[IF_NAMESIZE];
        return if_indextoname(x->ifindex, name) != NULL ? 0 : -ENODEV;
    }
    return rc < 0 && errno != EINTR ? -errno : 0;
}

/* ---- Rules ---- */

static int load(struct xdp *x, const struct raw_wanted *wanted, char error[RAW_ERROR])
{
    struct raw_code code;
    char log[160];
    struct raw_code_maps maps = {.sockets = x->sockets,
                                 .counters = x->counters,
                                 .contexts = x->contexts,
                                 .context = wanted->context};
    int rc = raw_code_make(&code, wanted->rules, &maps);
    if (rc != 0) {
        snprintf(error, RAW_ERROR, "the rules make no program: %s", strerror(-rc));
        return rc;
    }
    int program = raw_bpf_load(&code, 0, log, sizeof(log));
    raw_code_free(&code);
    if (program < 0) {
        snprintf(error, RAW_ERROR, "the kernel refuses the program of the rules: %s%s%s%s",
                 strerror(-program),
                 program == -EPERM ? "; it needs CAP_BPF and CAP_NET_ADMIN" : "",
                 log[0] != '\0' ? ": " : "", log);
    }
    return program;
}

static int xdp_rules(struct raw_source *s, const struct raw_wanted *wanted, char error[RAW_ERROR])
{
    struct xdp *x = xdp_of(s);
    int program = load(x, wanted, error);
    if (program < 0) {
        return program;
    }
    int rc = raw_bpf_swap(x->link, program);
    close(program);
    if (rc < 0) {
        snprintf(error, RAW_ERROR, "the kernel does not swap the rules: %s", strerror(-rc));
    }
    return rc;
}

static void xdp_counts(struct raw_source *s, struct raw_source_counts *counts)
{
    struct xdp *x = xdp_of(s);
    *counts = x->counts;
    for (unsigned set = 0; set < RAW_SETS; set++) {
        (void)raw_bpf_get(x->counters, set, &counts->matched[set]);
    }
}

static void xdp_close(struct raw_source *s)
{
    struct xdp *x = xdp_of(s);
    for (int i = 0; i < 4; i++) {
        int fd = (const int[]){x->link, x->sockets, x->counters, x->passing}[i];
        if (fd >= 0) {
            close(fd);
        }
    }
    for (unsigned q = 0; q < x->opened; q++) {
        xsk_close(&x->queue[q]);
    }
    free(x);
}

static const struct raw_source_ops ops = {
    .name = "xdp",
    .receive = xdp_receive,
    .done = xdp_done,
    .room = xdp_room,
    .send = xdp_send,
    .flush = xdp_flush,
    .wait = xdp_wait,
    .rules = xdp_rules,
    .counts = xdp_counts,
    .now = now_ns,
    .close = xdp_close,
};

/* ---- Opening ---- */

/* Whether rules take frames without which one cannot log in to a host: ARP, or TCP from or to port
 * 22. Each set is asked for a frame made for it, so addresses in rules do not hide that. */
static const char *takes_login(const struct raw_rules *rules)
{
    static const struct {
        const char *what, *name;
        uint8_t type[2], proto;
        uint16_t sport, dport;
    } frames[] = {{"ARP", "arp", {0x08, 0x06}, 0, 0, 0},
                  {"ssh", "tcp", {0x08, 0x00}, 6, 50000, 22},
                  {"ssh", "tcp", {0x08, 0x00}, 6, 22, 50000}};
    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        uint8_t f[100] = {[12] = frames[i].type[0], [13] = frames[i].type[1], [14] = 0x45};
        f[23] = frames[i].proto;
        f[34] = (uint8_t)(frames[i].sport >> 8);
        f[35] = (uint8_t)frames[i].sport;
        f[36] = (uint8_t)(frames[i].dport >> 8);
        f[37] = (uint8_t)frames[i].dport;
        if (raw_match(rules, f, sizeof(f)) != RAW_NONE) {
            return frames[i].what;
        }
    }
    return NULL;
}

static int check_default(const struct raw_xdp_options *o, const struct raw_rules *rules, bool *skb,
                         char error[RAW_ERROR])
{
    *skb = o->mode == RAW_MODE_SKB;
    if (!raw_iface_has_default(o->iface) || o->yes) {
        return 0;
    }
    const char *takes = takes_login(rules);
    if (takes != NULL) {
        snprintf(error, RAW_ERROR,
                 "%s has the default route, and the rules take %s from it: with --yes, if nobody "
                 "is logged in that way",
                 o->iface, takes);
        return -1;
    }
    if (o->mode == RAW_MODE_NATIVE) {
        snprintf(error, RAW_ERROR,
                 "%s has the default route, and --mode native may take its link down for a moment: "
                 "--mode skb, or --yes",
                 o->iface);
        return -1;
    }
    *skb = true;
    return 0;
}

/* The kernel gives a queue back some time after the process that had it has gone. */
static int open_queue(struct xsk_queue *queue, unsigned ifindex, unsigned number, unsigned contexts)
{
    int rc = xsk_open(queue, ifindex, number, contexts);
    for (unsigned naps = 0; rc == -EBUSY && naps < QUEUE_NAPS; naps++) {
        xsk_close(queue);
        sys_nap(QUEUE_NAP_NS);
        rc = xsk_open(queue, ifindex, number, contexts);
    }
    return rc;
}

static int open_queues(struct xdp *x, char error[RAW_ERROR])
{
    for (unsigned q = 0; q < x->queues; q++) {
        x->opened = q + 1;
        int rc = open_queue(&x->queue[q], x->ifindex, q, x->contexts);
        for (unsigned c = 0; c < x->contexts && rc == 0; c++) {
            rc = raw_bpf_set(x->sockets, q * x->contexts + c, &x->queue[q].fd[c]);
        }
        if (rc != 0) {
            snprintf(error, RAW_ERROR, "%s, queue %u: %s%s", x->iface, q, strerror(-rc),
                     rc == -EPERM     ? "; it needs CAP_NET_RAW"
                     : rc == -EBUSY   ? "; another process has this queue"
                     : rc == -ENOBUFS ? "; the limit of locked memory (ulimit -l) is too low"
                                      : "");
            return -1;
        }
    }
    return 0;
}

static int open_maps(struct xdp *x, char error[RAW_ERROR])
{
    static const struct bpf_insn pass[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K, .imm = XDP_PASS},
                                           {.code = BPF_JMP | BPF_EXIT}};
    struct raw_code code = {.insn = (struct bpf_insn *)pass, .count = 2};
    x->sockets = raw_bpf_map(BPF_MAP_TYPE_XSKMAP, "sockets", 4, x->queues * x->contexts);
    x->counters = raw_bpf_map(BPF_MAP_TYPE_ARRAY, "counters", 8, RAW_SETS);
    x->passing = raw_bpf_load(&code, 0, NULL, 0);
    int rc = x->sockets < 0 ? x->sockets : x->counters < 0 ? x->counters : x->passing;
    if (rc < 0) {
        snprintf(error, RAW_ERROR, "bpf: %s%s", strerror(-rc),
                 rc == -EPERM ? "; it needs CAP_BPF and CAP_NET_ADMIN" : "");
    }
    return rc < 0 ? -1 : 0;
}

static int attach(struct xdp *x, const struct raw_xdp_options *o, bool skb,
                  const struct raw_wanted *wanted, char error[RAW_ERROR])
{
    int program = load(x, wanted, error);
    if (program < 0) {
        return -1;
    }
    x->link = skb ? -EOPNOTSUPP : raw_bpf_attach(program, x->ifindex, XDP_FLAGS_DRV_MODE);
    x->native = x->link >= 0;
    if (x->link < 0 && (skb || (x->link == -EOPNOTSUPP && o->mode == RAW_MODE_AUTO))) {
        x->link = raw_bpf_attach(program, x->ifindex, XDP_FLAGS_SKB_MODE);
    }
    close(program);
    if (x->link < 0) {
        snprintf(error, RAW_ERROR, "%s: the program cannot be attached: %s%s", x->iface,
                 strerror(-x->link),
                 x->link == -EBUSY || x->link == -EEXIST
                     ? "; another XDP program is there (`ip link show`)"
                     : "");
        return -1;
    }
    return 0;
}

int raw_xdp_open(struct raw_source **source, const struct raw_xdp_options *o,
                 const struct raw_wanted *wanted, char said[RAW_ERROR], char error[RAW_ERROR])
{
    bool skb;
    unsigned ifindex = if_nametoindex(o->iface), queues;
    int mtu = raw_iface_mtu(o->iface);
    if (ifindex == 0 || mtu < 0) {
        snprintf(error, RAW_ERROR, "there is no interface %.40s in this network namespace",
                 o->iface);
        return -1;
    }
    if (mtu > MTU_MOST) {
        snprintf(error, RAW_ERROR,
                 "%s has an MTU of %d; frames in several pieces are not taken, so "
                 "%d is the most",
                 o->iface, mtu, MTU_MOST);
        return -1;
    }
    if (check_default(o, wanted->rules, &skb, error) != 0) {
        return -1;
    }
    queues = raw_iface_queues(o->iface);
    if (queues > QUEUES) {
        snprintf(error, RAW_ERROR, "%s has %u queues, more than %d: ethtool -L makes them fewer",
                 o->iface, queues, QUEUES);
        return -1;
    }
    struct xdp *x = calloc(1, sizeof(*x) + queues * sizeof(x->queue[0]));
    if (x == NULL) {
        snprintf(error, RAW_ERROR, "no memory");
        return -1;
    }
    /* header and a tag beside the MTU */
    x->source = (struct raw_source){.ops = &ops, .frame_most = (uint32_t)mtu + 18};
    snprintf(x->iface, sizeof(x->iface), "%s", o->iface);
    x->ifindex = ifindex;
    x->queues = queues;
    x->contexts = wanted->contexts;
    x->spin = o->spin;
    x->link = x->sockets = x->counters = x->passing = -1;
    if (open_maps(x, error) != 0 || open_queues(x, error) != 0 ||
        attach(x, o, skb, wanted, error) != 0) {
        xdp_close(&x->source);
        return -1;
    }
    x->source.can_pass = x->native;
    snprintf(said, RAW_ERROR, "%s: %u queue%s, %s, %s", x->iface, queues, queues > 1 ? "s" : "",
             x->native ? "native" : "skb", x->queue[0].zero_copy ? "zero-copy" : "copy");
    *source = &x->source;
    return 0;
}
