/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens the UDP fabric, with an engine configured by the options, and closes it. */
#include "fabric/udp/open.h"

#include "base/log.h"
#include "fabric/iface.h"
#include "fabric/udp/peer.h"
#include "fabric/udp/send.h"
#include "fabric/udp/stage.h"
#include "fabric/udp/trust.h"

#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#define PORT_TRIES 64 /* ports tried that the system offers but that cannot be used */
#define RTO_FIRST_NS 10000000

enum checksum { CHECKSUM_AUTO, CHECKSUM_HEADER, CHECKSUM_ALL };

/* Returns the longest packet that the interface of an address carries whole. */
static uint32_t longest_packet(uint32_t nid, int fd)
{
    struct iface face;
    struct ifreq request = {0};
    if (!iface_of(nid, &face)) {
        return SLMP_PACKET_MIN;
    }
    memcpy(request.ifr_name, face.name, sizeof(face.name));
    if (ioctl(fd, SIOCGIFMTU, &request) != 0 || request.ifr_mtu <= UDP_IP_HEADERS) {
        return 1472; /* that of Ethernet */
    }
    uint32_t most = (uint32_t)request.ifr_mtu - UDP_IP_HEADERS;
    return most < SLMP_PACKET_MAX ? most : SLMP_PACKET_MAX;
}

/* Sets the buffer sizes: the packets of a full window of one peer fit into the socket's buffer,
 * where the kernel counts twice the length of each. */
static void set_sizes(struct udp_fabric *f)
{
    const int64_t *o = f->setup.options->number;
    struct slmp_config *c = &f->config;
    uint32_t most = longest_packet(f->setup.nid, f->socket.fd);
    uint32_t wanted = (uint32_t)o[OPT_UDP_PACKET];
    uint32_t fair = (uint32_t)f->socket.receive / 64;
    fair = fair < 1472 ? 1472 : fair;
    c->packet_size = wanted != 0 && wanted < most ? wanted : most < fair ? most : fair;
    c->packet_size = c->packet_size < SLMP_PACKET_MIN ? SLMP_PACKET_MIN : c->packet_size;
    c->window = 16;
    while (c->window < 256 &&
           4 * (uint64_t)c->window * c->packet_size <= (uint64_t)f->socket.receive) {
        c->window *= 2;
    }
    c->plain_window = 16;
}

static void set_config(struct udp_fabric *f, uint64_t incarnation)
{
    struct slmp_config *c = &f->config;
    *c = slmp_defaults();
    c->mode = SLMP_OWN;
    c->ordered = true;
    c->incarnation = incarnation;
    udp_socket_secrets(c);
    c->rto_initial = RTO_FIRST_NS;
    c->ack_delay = UDP_ACK_NS;
    c->silence = f->setup.options->number[OPT_UDP_SILENCE_MS] * 1000000;
    /* Packets that do not leave the host are as safe as memory, and need no checksum of the
     * payload. */
    int64_t checksum = f->setup.options->number[OPT_UDP_CHECKSUM];
    c->cover = checksum == CHECKSUM_ALL || (checksum == CHECKSUM_AUTO && f->setup.nid >> 24 != 127);
    set_sizes(f);
}

/* Reads the job key: from the file of PINWHEEL_JOB_KEY_FILE, else the one that the launcher has
 * given; without either the function leaves the fabric as it is. With a key each packet carries a
 * code that only who has the key can make, and the fabric takes packets from whoever has it. */
static int take_key(struct udp_fabric *f, const struct slmp_key *given, struct slmp_key *key,
                    struct reason *why)
{
    const char *path = f->setup.options->text[OPT_JOB_KEY_FILE];
    if (path[0] != '\0') {
        struct reason wrong;
        if (slmp_key_read(key, path, &wrong) != 0) {
            return reason_say(why, -EACCES, "%s=%s", option_table[OPT_JOB_KEY_FILE].env,
                              wrong.text);
        }
    } else if (given == NULL) {
        return 0;
    } else {
        *key = *given;
    }
    f->config.key = key;
    f->config.self = (struct slmp_address){f->setup.nid, udp_socket_port(&f->socket)};
    f->keyed = f->open_to_all = true;
    return 0;
}

static int start_engine(struct udp_fabric *f, const struct slmp_key *given, struct reason *why)
{
    struct slmp_upcalls up = {.context = f,
                              .opened = udp_opened,
                              .closed = udp_closed,
                              .begin = udp_begin,
                              .data = udp_data,
                              .done = udp_done,
                              .sent = udp_sent,
                              .version = udp_other_version,
                              .whose = udp_whose,
                              .busy = udp_busy};
    struct slmp_key key;
    int rc = take_key(f, given, &key, why);
    if (rc == 0) {
        f->careful = f->config.cover || f->keyed || UDP_ALWAYS_CAREFUL;
        struct reason wrong;
        f->engine = slmp_open(&f->config, &up, &wrong);
        f->config.key = NULL; /* the engine has a copy */
        if (f->engine == NULL) {
            rc = reason_say(why, -ELIBACC, "cannot begin with UDP: %s", wrong.text);
        }
    }
    explicit_bzero(&key, sizeof(key));
    return rc;
}

/* Binds the socket to the port of a PID; or, for any PID, to a port that the system picks and that
 * belongs to one. */
static int open_socket(struct udp_fabric *f, uint32_t wanted, struct reason *why)
{
    int buffers = (int)f->setup.options->number[OPT_UDP_BUFFER];
    uint32_t base = (uint32_t)f->setup.options->number[OPT_UDP_PORT_BASE];
    if (wanted > base && wanted < base + 1024) {
        return reason_say(why, -EADDRINUSE,
                          "PID %u is not free over UDP: its port is that of PID %u, see "
                          "PINWHEEL_UDP_PORT_BASE=%u",
                          wanted, wanted - base, base);
    }
    for (int i = 0; i < PORT_TRIES; i++) {
        int rc = udp_socket_open(&f->socket, f->setup.nid, udp_port_of(f->setup.options, wanted),
                                 buffers, why);
        if (rc == -EADDRINUSE) {
            return reason_add(why, rc, ": ask for another PID than %u or PTL_PID_ANY", wanted);
        }
        if (rc != 0) {
            return rc;
        }
        uint16_t port = udp_socket_port(&f->socket);
        f->pid = udp_pid_of(f->setup.options, port);
        if (f->pid >= 1024 || wanted != 0) {
            return 0;
        }
        udp_socket_close(&f->socket);
    }
    return reason_say(why, -EADDRINUSE,
                      "the system gives UDP ports that are those of PIDs below 1024: change "
                      "PINWHEEL_UDP_PORT_BASE=%u",
                      base);
}

static int open_epoll(struct udp_fabric *f)
{
    struct epoll_event event = {.events = EPOLLONESHOT};
    f->epoll_fd = forks_open(epoll_create1(EPOLL_CLOEXEC));
    return f->epoll_fd < 0 ? -errno
                           : sys_epoll_ctl(f->epoll_fd, EPOLL_CTL_ADD, f->socket.fd, &event);
}

static struct keep fabrics;

/* Frees a fabric. A thread that reads it without the lock finds nothing from now on, until another
 * fabric has the memory. */
static void free_fabric(struct udp_fabric *f, bool leaked)
{
    udp_socket_close(&f->socket);
    forks_close(f->epoll_fd);
    udp_spare_free(f);
    udp_memories_free(f);
    atomic_store_explicit(&f->hot, false, memory_order_relaxed);
    atomic_store_explicit(&f->attention, false, memory_order_relaxed);
    if (!leaked) {
        keep_put(&fabrics, f);
    }
}

static struct udp_fabric *new_fabric(const struct fabric_setup *setup)
{
    struct udp_fabric *f = keep_take(&fabrics, sizeof(*f));
    if (f == NULL) {
        return NULL;
    }
    memset(f, 0, offsetof(struct udp_fabric, hot));
    size_t after = offsetof(struct udp_fabric, armed);
    memset((char *)f + after, 0, sizeof(*f) - after);
    f->setup = *setup;
    f->inline_max = (size_t)setup->options->number[OPT_SHM_INLINE];
    f->epoll_fd = f->socket.fd = -1;
    f->open_to_all = setup->options->number[OPT_UDP_OPEN] != 0;
    list_init(&f->peers);
    list_init(&f->ready);
    list_init(&f->spare[0]);
    list_init(&f->spare[1]);
    list_init(&f->free_buffers);
    list_init(&f->free_pieces);
    return f;
}

int udp_open(const struct fabric_setup *setup, struct fabric **result, uint32_t *pid,
             struct reason *why)
{
    struct udp_fabric *f = new_fabric(setup);
    if (f == NULL) {
        return reason_say(why, -ENOMEM, "out of memory");
    }
    int rc = open_socket(f, setup->pid, why);
    if (rc == 0 && (rc = open_epoll(f)) != 0) {
        reason_say(why, rc, "cannot watch the UDP socket: %s%s", strerror(-rc), log_remedy(-rc));
    }
    if (rc != 0) {
        free_fabric(f, false);
        return rc;
    }
    f->socket.adapts = true;
    set_config(f, setup->incarnation);
    udp_learn_locals(f);
    rc = start_engine(f, setup->key, why);
    if (rc != 0) {
        free_fabric(f, false);
        return rc;
    }
    f->deadline = SLMP_NEVER;
    atomic_store_explicit(&f->hot, true, memory_order_relaxed);
    *pid = f->pid;
    *result = (struct fabric *)f;
    return 0;
}

void udp_close(struct fabric *fabric)
{
    struct udp_fabric *f = udp_of(fabric);
    int64_t now = udp_socket_now(&f->socket);
    slmp_flush(f->engine);
    udp_flush(f, now);
    LIST_EACH(struct udp_peer, p, &f->peers, link) {
        if (p->session != NULL) {
            slmp_leave(f->engine, p->session);
        }
    }
    udp_flush(f, now);
    slmp_close(f->engine);
    bool leaked = false;
    for (struct udp_peer *p; (p = LIST_FIRST(struct udp_peer, &f->peers, link)) != NULL;) {
        if (!udp_tear_down(p)) {
            /* a handler never ended: its peer is leaked, since the handler may use it */
            list_remove(&p->link);
            list_remove(&p->ready);
            leaked = true;
        }
    }
    free_fabric(f, leaked);
}
