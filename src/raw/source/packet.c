/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An interface by AF_PACKET, where AF_XDP cannot be had. A packet socket sees copies of the frames
 * that the kernel gets, so that the kernel would handle them, too:
 *
 *      interface ──► packet socket (rules in this process) ──► contexts
 *                └─► program of the rules at the ingress (tcx) ──matched──► dropped
 *                                                             └─► the kernel
 *
 * The program is the one of AF_XDP with another end. It stands behind the place where packet
 * sockets get their frames; an XDP program stands before it, so that they would get none. It goes
 * with the process, as a bpf_link. With `observe` there is no program, and the kernel handles all
 * frames as well.
 *
 * A tag comes beside the frame, and the program does not see it either: frames with tags are the
 * kernel's.
 */
#include "raw/source/bpf.h"
#include "raw/source/guard.h"
#include "raw/source/iface.h"
#include "raw/source/sorted.h"

#include "base/list.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUFFER = 8 << 20, HEAD = 18 };

struct packet {
    struct raw_sorted sorted;
    char iface[IF_NAMESIZE];
    int link, counters;
    const volatile struct raw_counter *counter;
    bool yes;
};

static struct packet *packet_of(struct raw_sorted *s)
{
    return container_of(s, struct packet, sorted);
}

/* ---- Frames ---- */

static bool tagged(struct msghdr *m)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA) {
            struct tpacket_auxdata aux;
            memcpy(&aux, CMSG_DATA(c), sizeof(aux));
            return (aux.tp_status & TP_STATUS_VLAN_VALID) != 0;
        }
    }
    return false;
}

static int packet_read(struct raw_sorted *s, uint8_t *to)
{
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
    struct iovec v = {.iov_base = to, .iov_len = SORTED_SLOT};
    struct msghdr m = {
        .msg_iov = &v, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(s->fd, &m, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0) {
        /* ENETDOWN, once: the interface is down; it may come back */
        return errno == EINTR || errno == ENETDOWN ? -EAGAIN : -errno;
    }
    if (tagged(&m)) {
        s->counts.unmatched++;
        return 0;
    }
    return (int)n;
}

static int packet_write(struct raw_sorted *s, const uint8_t *frame, uint32_t length)
{
    return send(s->fd, frame, length, MSG_DONTWAIT) == (ssize_t)length ? 0 : -errno;
}

/* ---- Rules ---- */

static int load(struct packet *p, const struct raw_wanted *wanted, char error[RAW_ERROR])
{
    struct raw_code code;
    char log[128];
    struct raw_code_maps maps = {.counters = p->counters,
                                 .counter = wanted->counter,
                                 .contexts = wanted->contexts,
                                 .tc = true};
    int rc = raw_code_make(&code, wanted->rules, &maps);
    if (rc != 0) {
        snprintf(error, RAW_ERROR, "the rules make no program: %s", strerror(-rc));
        return rc;
    }
    int program = raw_bpf_load_tc(&code, log, sizeof(log));
    raw_code_free(&code);
    if (program < 0) {
        snprintf(error, RAW_ERROR, "the kernel refuses the program of the rules: %s%s%s%s",
                 strerror(-program),
                 program == -EPERM ? "; it needs CAP_BPF and CAP_NET_ADMIN, or --observe" : "",
                 log[0] != '\0' ? ": " : "", log);
    }
    return program;
}

/* Who observes drops nothing. */
static int check_observer(const struct raw_rules *rules, char error[RAW_ERROR])
{
    for (unsigned s = 0; s < rules->count; s++) {
        if (rules->set[s].action == RAW_DISCARD) {
            snprintf(error, RAW_ERROR,
                     "set %s drops frames, but with --observe the kernel handles them all",
                     rules->set[s].name);
            return -EINVAL;
        }
    }
    return 0;
}

static int packet_rules(struct raw_sorted *s, const struct raw_wanted *wanted,
                        char error[RAW_ERROR])
{
    struct packet *p = packet_of(s);
    if (p->link < 0) {
        return check_observer(wanted->rules, error);
    }
    if (raw_guard(p->iface, wanted->rules, p->yes, error) != 0) {
        return -EPERM;
    }
    int program = load(p, wanted, error);
    if (program < 0) {
        return program;
    }
    int rc = raw_bpf_swap(p->link, program);
    close(program);
    if (rc < 0) {
        snprintf(error, RAW_ERROR, "the kernel does not swap the rules: %s", strerror(-rc));
    }
    return rc;
}

static void packet_counts(struct raw_sorted *s, struct raw_source_counts *counts)
{
    struct packet *p = packet_of(s);
    for (unsigned i = 0; i < RAW_COUNTERS; i++) {
        counts->matched[i] = (struct raw_counter){p->counter[i].frames, p->counter[i].bytes};
    }
}

static void packet_close(struct raw_sorted *s)
{
    struct packet *p = packet_of(s);
    if (p->link >= 0) {
        close(p->link);
    }
    raw_bpf_counters_close(p->counters, p->counter);
}

static const struct raw_sorted_ops steals = {.read = packet_read,
                                             .write = packet_write,
                                             .rules = packet_rules,
                                             .counts = packet_counts,
                                             .close = packet_close};
static const struct raw_sorted_ops observes = {
    .read = packet_read, .write = packet_write, .close = packet_close};

/* ---- Opening ---- */

static int open_socket(struct packet *p, char error[RAW_ERROR])
{
    const int one = 1, buffer = BUFFER;
    struct sockaddr_ll a = {.sll_family = AF_PACKET,
                            .sll_protocol = htons(ETH_P_ALL),
                            .sll_ifindex = (int)p->sorted.ifindex};
    /* protocol 0: it gets no frame before it is bound to the interface */
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
    p->sorted.fd = fd;
    if (fd < 0 || setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) != 0 ||
        bind(fd, (const struct sockaddr *)&a, sizeof(a)) != 0) {
        snprintf(error, RAW_ERROR, "%s, a packet socket: %s%s", p->iface, strerror(errno),
                 errno == EPERM ? "; it needs CAP_NET_RAW" : "");
        return -1;
    }
    /* as large as the limits allow */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) != 0) {
        (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    }
    return 0;
}

static int attach(struct packet *p, const struct raw_wanted *wanted, char error[RAW_ERROR])
{
    p->counters = raw_bpf_counters(&p->counter);
    if (p->counters < 0) {
        snprintf(error, RAW_ERROR, "bpf: %s%s", strerror(-p->counters),
                 p->counters == -EPERM ? "; it needs CAP_BPF and CAP_NET_ADMIN, or --observe" : "");
        return -1;
    }
    int program = load(p, wanted, error);
    if (program < 0) {
        return -1;
    }
    p->link = raw_bpf_attach_tc(program, p->sorted.ifindex);
    close(program);
    if (p->link < 0) {
        snprintf(error, RAW_ERROR, "%s: the program cannot be attached: %s%s", p->iface,
                 strerror(-p->link),
                 p->link == -EINVAL ? "; it needs Linux 6.6, or --observe" : "");
        return -1;
    }
    return 0;
}

int raw_packet_open(struct raw_source **source, const struct raw_iface_options *o,
                    const struct raw_wanted *wanted, char said[RAW_ERROR], char error[RAW_ERROR])
{
    struct packet *p = calloc(1, sizeof(*p));
    unsigned ifindex = if_nametoindex(o->iface);
    int mtu = raw_iface_mtu(o->iface);
    if (p == NULL || ifindex == 0 || mtu < 0) {
        snprintf(error, RAW_ERROR,
                 p == NULL ? "no memory" : "there is no interface %.40s in this network namespace",
                 o->iface);
        free(p);
        return -1;
    }
    snprintf(p->iface, sizeof(p->iface), "%s", o->iface);
    p->link = p->counters = -1;
    p->yes = o->yes;
    p->sorted.ops = o->observe ? &observes : &steals;
    p->sorted.fd = -1;
    p->sorted.ifindex = ifindex;
    p->sorted.spin = o->spin;
    p->sorted.source.frame_most =
        (uint32_t)(mtu < RAW_FRAME_MOST - HEAD ? mtu + HEAD : RAW_FRAME_MOST);
    /* what handlers pass on the kernel has seen already, if it handles all */
    p->sorted.source.can_pass = o->observe;
    int rc = raw_sorted_open(&p->sorted, "packet", wanted);
    if (rc != 0) {
        snprintf(error, RAW_ERROR, "no memory");
    } else if (o->observe ? check_observer(wanted->rules, error) != 0
                          : raw_guard(o->iface, wanted->rules, o->yes, error) != 0) {
        rc = -1;
    } else {
        rc = open_socket(p, error) != 0 || (!o->observe && attach(p, wanted, error) != 0);
    }
    if (rc != 0) {
        raw_sorted_close(&p->sorted.source);
        return -1;
    }
    snprintf(said, RAW_ERROR, "%s: 1 queue, packet socket%s", p->iface,
             o->observe ? ", the kernel handles the frames as well" : "");
    *source = &p->sorted.source;
    return 0;
}
