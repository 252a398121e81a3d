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
#include "raw/source/checksum.h"
#include "raw/source/guard.h"
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
#include <unistd.h>

/* what is left of a page, measured on veth; beyond it frames come in pieces */
enum { QUEUES = 64, MTU_ONE = 3498, MTU_MOST = 9000 };
enum { HEAD = 18, JOINED_SIZE = 9216 };            /* header and a tag beside the MTU */
enum { QUEUE_NAPS = 400, QUEUE_NAP_NS = 5000000 }; /* 2 s */

struct xdp {
    struct raw_source source;
    char iface[IF_NAMESIZE];
    unsigned ifindex, queues, opened, contexts, next; /* `next`: the queue to look at first */
    int link, sockets, counters, passing;
    const volatile struct raw_counter *counter;
    bool native, spin, yes;
    bool has_room; /* `room` was taken for a frame that is not sent */
    uint64_t room;
    unsigned idle;   /* how often wait() was called that spins */
    uint8_t *joined; /* with pieces: room for a batch of frames that were put together, and for
                        one that is to be sent */
    struct raw_source_counts counts;
    struct xsk_queue queue[];
};

static struct xdp *xdp_of(struct raw_source *s)
{
    return container_of(s, struct xdp, source);
}

static uint64_t now_ns(struct raw_source *s)
{
    (void)s;
    return (uint64_t)clock_ns();
}

/* ---- Frames ---- */

/* The slot of a frame: its queue and its address there, or that it was put together. */
enum { SLOT_QUEUE = 48 };
#define SLOT_JOINED (UINT64_C(1) << 63)

/* Puts the pieces of a frame together, whose first is desc[0], and frees them. Returns their
 * number. */
static unsigned join(struct xsk_queue *q, const struct xdp_desc *desc, uint8_t *to,
                     struct raw_frame *frame)
{
    unsigned n = 0;
    bool more;
    frame->length = 0;
    memcpy(&frame->verdict, q->memory + desc[0].addr - RAW_META, RAW_META);
    do {
        if (frame->length + desc[n].len <= RAW_FRAME_MOST) {
            memcpy(to + frame->length, q->memory + desc[n].addr, desc[n].len);
        }
        frame->length += desc[n].len;
        more = (desc[n].options & XDP_PKT_CONTD) != 0;
        xsk_free(q, desc[n++].addr);
    } while (more);
    frame->bytes = to;
    frame->slot |= SLOT_JOINED;
    return n;
}

static int xdp_receive(struct raw_source *s, unsigned context, struct raw_frame *frames,
                       unsigned most)
{
    struct xdp *x = xdp_of(s);
    struct xdp_desc desc[XSK_PIECES];
    unsigned n = 0, count = 0, queue = x->next;
    if (x->contexts == 0) {
        return 0;
    }
    for (unsigned i = 0; i < x->queues && n == 0; i++) {
        queue = (x->next + i) % x->queues;
        xsk_refill(&x->queue[queue]);
        n = xsk_receive(&x->queue[queue], context, desc, most < RAW_BATCH ? most : RAW_BATCH);
    }
    x->next = (queue + 1) % x->queues;
    uint64_t time = n > 0 ? now_ns(s) : 0;
    struct xsk_queue *q = &x->queue[queue];
    for (unsigned i = 0; i < n;) {
        struct raw_frame *f = &frames[count];
        *f = (struct raw_frame){.time = time, .slot = (uint64_t)queue << SLOT_QUEUE};
        if ((desc[i].options & XDP_PKT_CONTD) != 0) {
            i += join(q, &desc[i], x->joined + (size_t)count * JOINED_SIZE, f);
            if (f->length > RAW_FRAME_MOST) {
                x->counts.too_long++;
                continue;
            }
        } else {
            f->bytes = q->memory + desc[i].addr;
            f->length = desc[i].len;
            f->slot |= desc[i++].addr;
            memcpy(&f->verdict, f->bytes - RAW_META, RAW_META);
        }
        count++;
    }
    return (int)count;
}

static void xdp_done(struct raw_source *s, const struct raw_frame *frame, enum raw_fate fate,
                     uint32_t length)
{
    struct xdp *x = xdp_of(s);
    bool joined = (frame->slot & SLOT_JOINED) != 0;
    struct xsk_queue *q = &x->queue[(frame->slot & ~SLOT_JOINED) >> SLOT_QUEUE];
    uint64_t address = frame->slot & ((UINT64_C(1) << SLOT_QUEUE) - 1);
    if (fate == RAW_REPLY) {
        if (joined ? xsk_send_copy(q, frame->bytes, length) : xsk_send(q, address, length)) {
            x->counts.sent++;
            return;
        }
        x->counts.send_full++;
    } else if (fate == RAW_PASS) {
        (void)raw_checksum_finish(frame->bytes, frame->length);
        bool passed =
            x->native && raw_bpf_inject(x->passing, x->ifindex, frame->bytes, frame->length) >= 0;
        *(passed ? &x->counts.passed : &x->counts.pass_failed) += 1;
    }
    if (!joined) {
        xsk_free(q, address);
    }
}

static uint8_t *xdp_room(struct raw_source *s, uint32_t length)
{
    struct xdp *x = xdp_of(s);
    if (length > XSK_SLOT) {
        return x->joined != NULL ? x->joined + (size_t)RAW_BATCH * JOINED_SIZE : NULL;
    }
    if (!x->has_room) {
        xsk_refill(&x->queue[0]);
        x->has_room = xsk_take(&x->queue[0], &x->room);
    }
    return x->has_room ? x->queue[0].memory + x->room : NULL;
}

static int xdp_send(struct raw_source *s, uint32_t length)
{
    struct xdp *x = xdp_of(s);
    struct xsk_queue *q = &x->queue[0];
    bool large = length > XSK_SLOT;
    if (large ? x->joined == NULL ||
                    !xsk_send_copy(q, x->joined + (size_t)RAW_BATCH * JOINED_SIZE, length)
              : !x->has_room || !xsk_send(q, x->room, length)) {
        x->counts.send_full++;
        return -ENOBUFS;
    }
    x->has_room = x->has_room && large;
    x->counts.sent++;
    return 0;
}

static void xdp_flush(struct raw_source *s)
{
    struct xdp *x = xdp_of(s);
    for (unsigned q = 0; q < x->opened; q++) {
        xsk_flush(&x->queue[q]);
    }
}

static unsigned xdp_fds(struct raw_source *s, int *fds, unsigned most)
{
    struct xdp *x = xdp_of(s);
    unsigned n = 0;
    for (unsigned i = 0; i < x->queues * x->contexts && n < most; i++) {
        fds[n++] = x->queue[i / x->contexts].fd[i % x->contexts];
    }
    return n;
}

static int xdp_wait(struct raw_source *s, int milliseconds)
{
    struct xdp *x = xdp_of(s);
    struct pollfd polled[QUEUES * RAW_CONTEXTS];
    int fds[QUEUES * RAW_CONTEXTS];
    xdp_flush(s); /* what found no room in the kernel before */
    if (x->spin) {
        return raw_iface_gone_now_and_then(x->ifindex, &x->idle) ? -ENODEV : 0;
    }
    unsigned n = xdp_fds(s, fds, QUEUES * RAW_CONTEXTS);
    for (unsigned i = 0; i < n; i++) {
        polled[i] = (struct pollfd){.fd = fds[i], .events = POLLIN};
    }
    int rc = poll(polled, n, milliseconds);
    if (rc == 0) {
        return raw_iface_gone(x->ifindex) ? -ENODEV : 0;
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
                                 .counter = wanted->counter,
                                 .contexts = x->contexts,
                                 .context = wanted->context};
    int rc = raw_code_make(&code, wanted->rules, &maps);
    if (rc != 0) {
        snprintf(error, RAW_ERROR, "the rules make no program: %s", strerror(-rc));
        return rc;
    }
    int program =
        raw_bpf_load(&code, x->joined != NULL ? BPF_F_XDP_HAS_FRAGS : 0, log, sizeof(log));
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
    int program = -EPERM;
    if (raw_guard(x->iface, wanted->rules, x->yes, error) == 0) {
        program = load(x, wanted, error);
    }
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
    for (unsigned i = 0; i < RAW_COUNTERS; i++) {
        counts->matched[i] = (struct raw_counter){x->counter[i].frames, x->counter[i].bytes};
    }
}

static uint64_t xdp_lost(struct raw_source *s, unsigned context)
{
    struct xdp *x = xdp_of(s);
    uint64_t lost = 0;
    for (unsigned q = 0; q < x->queues; q++) {
        lost += xsk_lost(&x->queue[q], context);
    }
    return lost;
}

static void xdp_close(struct raw_source *s)
{
    struct xdp *x = xdp_of(s);
    for (int i = 0; i < 3; i++) {
        int fd = (const int[]){x->link, x->sockets, x->passing}[i];
        if (fd >= 0) {
            close(fd);
        }
    }
    raw_bpf_counters_close(x->counters, x->counter);
    for (unsigned q = 0; q < x->opened; q++) {
        xsk_close(&x->queue[q]);
    }
    free(x->joined);
    free(x);
}

static const struct raw_source_ops ops = {
    .receive = xdp_receive,
    .done = xdp_done,
    .room = xdp_room,
    .send = xdp_send,
    .flush = xdp_flush,
    .wait = xdp_wait,
    .rules = xdp_rules,
    .counts = xdp_counts,
    .fds = xdp_fds,
    .lost = xdp_lost,
    .now = now_ns,
    .close = xdp_close,
};

/* ---- Opening ---- */

static int check_default(const struct raw_iface_options *o, const struct raw_rules *rules,
                         bool *skb, char error[RAW_ERROR])
{
    *skb = o->mode == RAW_MODE_SKB;
    if (!raw_iface_has_default(o->iface) || o->yes) {
        return 0;
    }
    if (raw_guard(o->iface, rules, false, error) != 0) {
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
static int open_queue(struct xdp *x, unsigned number)
{
    struct xsk_queue *queue = &x->queue[number];
    bool pieces = x->joined != NULL;
    int rc = xsk_open(queue, x->ifindex, number, x->contexts, pieces);
    for (unsigned naps = 0; rc == -EBUSY && naps < QUEUE_NAPS; naps++) {
        xsk_close(queue);
        sys_nap(QUEUE_NAP_NS);
        rc = xsk_open(queue, x->ifindex, number, x->contexts, pieces);
    }
    return rc;
}

static int open_queues(struct xdp *x, char error[RAW_ERROR])
{
    for (unsigned q = 0; q < x->queues && x->contexts > 0; q++) {
        x->opened = q + 1;
        int rc = open_queue(x, q);
        for (unsigned c = 0; c < x->contexts && rc == 0; c++) {
            rc = raw_bpf_set(x->sockets, q * x->contexts + c, &x->queue[q].fd[c]);
        }
        if (rc != 0) {
            snprintf(error, RAW_ERROR, "%s, queue %u: %s%s", x->iface, q, strerror(-rc),
                     rc == -EPERM   ? "; it needs CAP_NET_RAW"
                     : rc == -EBUSY ? "; another process has this queue"
                     : rc == -EINVAL && x->joined != NULL
                         ? "; the kernel is older than 6.6, or the driver takes no frames in "
                           "several pieces: an MTU of 3498 at most"
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
    /* without contexts there are no sockets, but there is no empty map either */
    unsigned sockets = x->contexts > 0 ? x->queues * x->contexts : 1;
    x->sockets = raw_bpf_map(BPF_MAP_TYPE_XSKMAP, "sockets", 4, sockets);
    x->counters = raw_bpf_counters(&x->counter);
    x->passing = raw_bpf_load(&code, 0, NULL, 0);
    int rc = x->sockets < 0 ? x->sockets : x->counters < 0 ? x->counters : x->passing;
    if (rc < 0) {
        snprintf(error, RAW_ERROR, "bpf: %s%s", strerror(-rc),
                 rc == -EPERM ? "; it needs CAP_BPF and CAP_NET_ADMIN" : "");
    }
    return rc < 0 ? -1 : 0;
}

static int attach(struct xdp *x, const struct raw_iface_options *o, bool skb,
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

int raw_xdp_open(struct raw_source **source, const struct raw_iface_options *o,
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
        snprintf(error, RAW_ERROR, "%s has an MTU of %d; %d is the most (`ip link set %s mtu %d`)",
                 o->iface, mtu, MTU_MOST, o->iface, MTU_MOST);
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
    x->source = (struct raw_source){.ops = &ops, .name = "xdp", .frame_most = (uint32_t)mtu + HEAD};
    snprintf(x->iface, sizeof(x->iface), "%s", o->iface);
    x->ifindex = ifindex;
    x->queues = queues;
    x->contexts = wanted->contexts;
    x->spin = o->spin;
    x->yes = o->yes;
    x->link = x->sockets = x->counters = x->passing = -1;
    if (mtu > MTU_ONE && (x->joined = calloc(RAW_BATCH + 1, JOINED_SIZE)) == NULL) {
        snprintf(error, RAW_ERROR, "no memory");
        free(x);
        return -1;
    }
    if (open_maps(x, error) != 0 || open_queues(x, error) != 0 ||
        attach(x, o, skb, wanted, error) != 0) {
        xdp_close(&x->source);
        return -1;
    }
    x->source.can_pass = x->native;
    int n = snprintf(said, RAW_ERROR, "%s: %u queue%s, %s, %s%s", x->iface, queues,
                     queues > 1 ? "s" : "", x->native ? "native" : "skb",
                     x->contexts == 0        ? "no handlers"
                     : x->queue[0].zero_copy ? "zero-copy"
                                             : "copy",
                     x->joined != NULL ? ", in pieces" : "");
    if (raw_guard_tags(x->iface, wanted->rules)) {
        snprintf(said + n, RAW_ERROR - (size_t)n,
                 "; a tag that %s takes off a frame is not seen (ethtool -K %s rxvlan off)",
                 x->iface, x->iface);
    }
    *source = &x->source;
    return 0;
}
