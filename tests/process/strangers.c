/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 has an interface over UDP; rank 1 is a stranger with sockets and an SLMP engine and no
 * Portals, who does what no Portals process does. TEST_CHURN says how many sessions he begins.
 */
#include "lone.h"

#include "fabric/slmp/wire.h"
#include "fabric/udp/socket.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHURN = 2400, BUFFERS = 65536, MORE_MOST = 1 << 20 };

/* The put must end so. */
static void put_ends(struct lone *o, ptl_process_t to, uint64_t success, uint64_t failure)
{
    lone_put(o, to);
    ptl_ct_event_t v = lone_ended(o, success + failure);
    CHECK_EQ(v.success, success);
    CHECK_EQ(v.failure, failure);
}

/* ---- The stranger ---- */

static void on_session(void *context, struct slmp_peer *p, const struct slmp_address *a,
                       uint64_t incarnation)
{
    ++*(unsigned *)context;
}

static void on_closed(void *context, struct slmp_peer *p, const struct slmp_address *a)
{
}

/* Begins a session from a socket of its own, and is gone without a word. False: he is not let
 * in. */
static bool come_and_go(const struct slmp_address *to)
{
    static uint8_t buffer[UDP_BUFFER];
    struct udp_socket u;
    unsigned opened = 0;
    struct reason why;
    struct slmp_upcalls up = {.context = &opened, .opened = on_session, .closed = on_closed};
    struct slmp_config c = slmp_defaults();
    if (udp_socket_open(&u, to->ip, 0, BUFFERS, &why) != 0) {
        FAIL("%s", why.text);
    }
    c.mode = SLMP_OWN;
    c.rto_initial = 10000000;
    udp_socket_secrets(&c);
    struct slmp *e = slmp_open(&c, &up, &(struct reason){""});
    CHECK(e != NULL);
    int64_t until = udp_socket_now(&u) + (int64_t)LONE_MS * 1000000;
    CHECK_EQ(slmp_contact(e, udp_socket_now(&u), to), 0);
    while (opened == 0 && udp_socket_now(&u) < until) {
        struct udp_failure failure;
        struct slmp_address from;
        struct pollfd p = {.fd = u.fd, .events = POLLIN};
        size_t each;
        bool any;
        udp_socket_output(&u, e, udp_socket_now(&u), 0, &any, &failure);
        poll(&p, 1, 5);
        ssize_t length = udp_socket_receive(&u, buffer, &from, &each);
        if (length > 0) {
            slmp_input(e, udp_socket_now(&u), &from, buffer, (size_t)length);
        }
        slmp_advance(e, udp_socket_now(&u));
    }
    slmp_close(e);
    udp_socket_close(&u);
    return opened != 0;
}

/* More than an engine has places for, none with a word: they leave neither a place taken nor
 * memory behind, and rank 2, which is as it should be, is served. */
PTEST_LIMIT(thousands_come_and_go, 3, 1800)
{
    int many = lone_churn(CHURN);
    struct lone o;
    if (rank == 1) {
        BARRIER();
        ptl_process_t id = lone_look(0);
        struct slmp_address to = {id.phys.nid, (uint16_t)id.phys.pid};
        for (int half = 0; half < 2; half++) {
            for (int i = 0; i < many / 2; i++) {
                if (!come_and_go(&to)) {
                    FAIL("stranger %d is not let in", half * (many / 2) + i);
                }
            }
            BARRIER();
            BARRIER();
        }
        BARRIER();
        return;
    }
    lone_open(&o);
    lone_show(&o);
    BARRIER();
    size_t memory_then = 0;
    for (int half = 0; half < 2; half++) {
        BARRIER();
        if (rank == 0) {
            ptest_sleep_ms(1500); /* what is kept for those who may say more is given back */
            size_t now = lone_memory();
            printf("%zu bytes after %d\n", now, (half + 1) * (many / 2));
            CHECK(half == 0 || now <= memory_then + MORE_MOST);
            memory_then = now;
        }
        BARRIER();
    }
    if (rank == 2) {
        put_ends(&o, lone_look(0), 1, 0);
    }
    BARRIER();
    lone_close(&o);
}

/* ---- Half a greeting ---- */

struct half {
    int fd;
    struct slmp_address own;
    unsigned opens;
};

static void open_half(struct half *h)
{
    struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(own);
    *h = (struct half){.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
    CHECK_EQ(bind(h->fd, (struct sockaddr *)&own, size), 0);
    CHECK_EQ(getsockname(h->fd, (struct sockaddr *)&own, &size), 0);
    ptest_show(LONE_SLOT, (uint64_t)INADDR_LOOPBACK << 32 | ntohs(own.sin_port));
}

/* Answers one packet, if there is one: a hello by WELCOME, and an OPEN, too, if it is told so. */
static void answer_half(struct half *h, bool again)
{
    uint8_t bytes[SLMP_HEADER_ROOM];
    struct sockaddr_in from;
    struct slmp_wire w;
    socklen_t size = sizeof(from);
    struct pollfd p = {.fd = h->fd, .events = POLLIN};
    if (poll(&p, 1, 5) != 1) {
        return;
    }
    ssize_t length = recvfrom(h->fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size);
    CHECK(length > 0);
    CHECK_EQ(slmp_wire_parse(&w, bytes, (size_t)length), SLMP_PARSED);
    bool opens = w.kind == SLMP_KIND_OPEN;
    h->opens += opens;
    if (!opens || again) {
        struct slmp_wire welcome = {.flags = SLMP_VER | SLMP_ACK,
                                    .id = w.id,
                                    .kind = SLMP_KIND_WELCOME,
                                    .version = SLMP_VERSION,
                                    .version_max = SLMP_VERSION,
                                    .nonce = 12345 + h->opens,
                                    .incarnation = 99};
        size_t n = slmp_wire_write(&welcome, bytes);
        sendto(h->fd, bytes, n, 0, (struct sockaddr *)&from, size);
    }
}

enum { SLOT_DONE = 1 };

static void never_opens(int rank, bool again)
{
    setenv("PINWHEEL_UDP_SILENCE_MS", "500", 1);
    setenv("PINWHEEL_CONNECT_MS", "100", 1);
    if (rank == 1) {
        struct half h;
        open_half(&h);
        BARRIER();
        while (ptest_look(0, SLOT_DONE) == 0) {
            answer_half(&h, again);
        }
        CHECK(h.opens > 0);
        BARRIER();
        return;
    }
    struct lone o;
    lone_open(&o);
    BARRIER();
    put_ends(&o, lone_look(1), 0, 1);
    put_ends(&o, lone_look(1), 0, 2);
    ptest_show(SLOT_DONE, 1);
    BARRIER();
    lone_close(&o);
}

/* Who says WELCOME and never OPENED is given up, however often he says it. */
PTEST_LIMIT(who_never_opens, 2, 60)
{
    never_opens(rank, false);
}

PTEST_LIMIT(who_says_welcome_again_and_again, 2, 60)
{
    never_opens(rank, true);
}

/* Who ends between WELCOME and OPENED is not waited for: silence takes longer than the case. */
PTEST_LIMIT(who_ends_in_the_greeting, 2, 60)
{
    setenv("PINWHEEL_UDP_SILENCE_MS", "600000", 1);
    if (rank == 1) {
        struct half h;
        open_half(&h);
        BARRIER();
        while (h.opens == 0) {
            answer_half(&h, false);
        }
        close(h.fd);
        BARRIER();
        return;
    }
    struct lone o;
    lone_open(&o);
    BARRIER();
    put_ends(&o, lone_look(1), 0, 1);
    BARRIER();
    lone_close(&o);
}
