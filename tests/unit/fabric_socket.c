/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket of the UDP fabric, on loopback. Its connected socket (fabric/udp/connected.c) leads to
 * the peer that most packets go to, they come from the same address and port as all others, answers
 * come to the first socket, and what that does not carry leaves by that. What comes is not joined
 * while it comes one at a time, and all of it is told apart at any time.
 */
#include "fabric/udp/connected.h"
#include "fabric/udp/refusal.h"
#include "fabric/udp/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum {
    OWN,
    FIRST,
    SECOND,
    SOCKETS,
    LOOPBACK = 0x7f000001,
    NOT_A_SOURCE = 0x7f000002, /* packets to it come from LOOPBACK, where nobody has made it one */
    ENOUGH = 200,
    PATIENCE_MS = 10000,
    MANY = 1500, /* packets one at a time, more than it takes for joining to end */
    LENGTH = 600,
    PACKETS = 9
};

struct fixture {
    struct udp_socket socket[SOCKETS];
    struct slmp_address at[SOCKETS];
    struct slmp *engine; /* that of OWN */
    int64_t now;
};

static enum slmp_step begin_message(void *x, struct slmp_incoming *m, const void *p, size_t n)
{
    return SLMP_GO;
}

static enum slmp_step data(void *x, struct slmp_incoming *m, uint64_t at, const void *p, size_t n)
{
    return SLMP_GO;
}

static void open_socket(struct fixture *x, int i, uint32_t ip)
{
    struct reason why;
    assert_int_equal(udp_socket_open(&x->socket[i], ip, 0, 1 << 16, &why), 0);
    x->at[i] = (struct slmp_address){ip, udp_socket_port(&x->socket[i])};
}

static int begin(void **state)
{
    static struct fixture x;
    struct slmp_upcalls up = {.begin = begin_message, .data = data};
    struct slmp_config c = slmp_defaults();
    memset(&x, 0, sizeof(x));
    for (int i = 0; i < SOCKETS; i++) {
        open_socket(&x, i, LOOPBACK);
    }
    x.socket[OWN].adapts = true;
    c.incarnation = 1;
    assert_non_null(x.engine = slmp_open(&c, &up, &(struct reason){""}));
    *state = &x;
    return 0;
}

static int end(void **state)
{
    struct fixture *x = *state;
    for (int i = 0; i < SOCKETS; i++) {
        udp_socket_close(&x->socket[i]);
    }
    slmp_close(x->engine);
    return 0;
}

static void count(struct fixture *x, int to, int times)
{
    struct udp_socket *u = &x->socket[OWN];
    for (int i = 0; i < times; i++) {
        udp_connected_count(&u->connected, u->fd, &x->at[to]);
    }
}

/* A packet leaves, and comes where it should from whom it should. */
static void speak(struct fixture *x, int to)
{
    struct udp_failure failure;
    struct sockaddr_in from;
    socklen_t size = sizeof(from);
    struct pollfd p = {.fd = x->socket[to].fd, .events = POLLIN};
    bool any = false;
    char bytes[64];
    x->now += 1000000000;
    assert_int_equal(slmp_contact(x->engine, x->now, &x->at[to]), 0);
    assert_int_equal(udp_socket_output(&x->socket[OWN], x->engine, x->now, 0, &any, &failure), 0);
    assert_true(any);
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_true(recvfrom(p.fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &size) > 0);
    assert_int_equal(ntohl(from.sin_addr.s_addr), x->at[OWN].ip);
    assert_int_equal(ntohs(from.sin_port), x->at[OWN].port);
}

/* A packet of a peer comes to the first socket. */
static void hear(struct fixture *x, int from)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(x->at[OWN].port),
                             .sin_addr.s_addr = htonl(x->at[OWN].ip)};
    static uint8_t buffer[UDP_BUFFER];
    struct pollfd p = {.fd = x->socket[OWN].fd, .events = POLLIN};
    struct slmp_address who = {0};
    size_t each;
    uint8_t mark = (uint8_t)from;
    assert_int_equal(sendto(x->socket[from].fd, &mark, 1, 0, (struct sockaddr *)&to, sizeof(to)),
                     1);
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_int_equal(udp_socket_receive(&x->socket[OWN], buffer, &who, &each), 1);
    assert_int_equal(buffer[0], mark);
    assert_int_equal(who.ip, x->at[from].ip);
    assert_int_equal(who.port, x->at[from].port);
}

static void it_leads_to_the_favourite(void **state)
{
    struct fixture *x = *state;
    struct udp_connected *l = &x->socket[OWN].connected;
    count(x, FIRST, 10);
    assert_false(l->on);
    count(x, FIRST, ENOUGH);
    assert_true(udp_connected_leads_to(l, &x->at[FIRST]));
    count(x, SECOND, 3);
    assert_true(udp_connected_leads_to(l, &x->at[FIRST]));
    count(x, SECOND, ENOUGH);
    assert_true(udp_connected_leads_to(l, &x->at[SECOND]));
    assert_false(udp_connected_leads_to(l, &x->at[FIRST]));
}

static void two_that_take_turns_do_not_move_it(void **state)
{
    struct fixture *x = *state;
    count(x, FIRST, ENOUGH);
    for (int i = 0; i < ENOUGH; i++) {
        count(x, SECOND, 1);
        count(x, FIRST, 1);
        assert_true(udp_connected_leads_to(&x->socket[OWN].connected, &x->at[FIRST]));
    }
}

static void both_ways_are_open(void **state)
{
    struct fixture *x = *state;
    for (int turn = 0; turn < 4; turn++) {
        for (int i = FIRST; i < SOCKETS; i++) {
            hear(x, i);
            speak(x, i);
        }
        count(x, turn % 2 == 0 ? FIRST : SECOND, ENOUGH);
    }
    assert_true(x->socket[OWN].connected.on);
}

static void nobody_gets_the_port(void **state)
{
    struct fixture *x = *state;
    struct udp_socket other;
    struct reason why;
    count(x, FIRST, ENOUGH);
    assert_true(x->socket[OWN].connected.on);
    for (uint32_t ip = 0; ip <= LOOPBACK; ip += LOOPBACK) {
        assert_int_equal(udp_socket_open(&other, ip, x->at[OWN].port, 1 << 16, &why), -EADDRINUSE);
    }
}

/* Another address with the same port has a connected socket of its own. */
static void one_port_may_have_two_lines(void **state)
{
    struct fixture *x = *state;
    int other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in group = {.sin_family = AF_INET,
                                .sin_port = htons(x->at[OWN].port),
                                .sin_addr.s_addr = htonl(224u << 24)};
    assert_int_equal(setsockopt(other, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)), 0);
    assert_int_equal(bind(other, (struct sockaddr *)&group, sizeof(group)), 0);
    count(x, FIRST, ENOUGH);
    assert_true(udp_connected_leads_to(&x->socket[OWN].connected, &x->at[FIRST]));
    speak(x, FIRST);
    hear(x, FIRST);
    close(other);
}

static void refusals_come_to_the_first(void **state)
{
    struct fixture *x = *state;
    struct slmp_address who = {0};
    struct pollfd p = {.fd = x->socket[OWN].fd, .events = POLLIN};
    count(x, FIRST, ENOUGH);
    close(x->socket[FIRST].fd);
    x->socket[FIRST].fd = -1;
    assert_int_equal(send(x->socket[OWN].connected.fd, "a", 1, 0), 1);
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    assert_true(udp_socket_refusal(&x->socket[OWN], &who));
    assert_int_equal(who.ip, x->at[FIRST].ip);
    assert_int_equal(who.port, x->at[FIRST].port);
}

static uint16_t internet_sum(const uint8_t *p, size_t length)
{
    uint32_t sum = 0;
    for (size_t i = 0; i < length; i += 2) {
        sum += (uint32_t)p[i] << 8 | p[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t) ~(sum + (sum >> 16));
}

/* ICMP's word for "nobody listens at `at`", to OWN from somebody. */
static void make_refusal(const struct fixture *x, int at, uint8_t bytes[36])
{
    const struct slmp_address *end[] = {&x->at[OWN], &x->at[at]};
    memset(bytes, 0, 36);
    bytes[0] = bytes[1] = 3; /* a destination, a port that is not there; then what was sent there */
    uint8_t *ip = bytes + 8, *udp = ip + 20;
    ip[0] = 0x45;
    ip[3] = 36;
    ip[9] = IPPROTO_UDP;
    udp[5] = 16;
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 4; k++) {
            ip[12 + 4 * i + k] = (uint8_t)(end[i]->ip >> (24 - 8 * k));
        }
        udp[2 * i] = (uint8_t)(end[i]->port >> 8);
        udp[2 * i + 1] = (uint8_t)end[i]->port;
    }
    uint16_t sum = internet_sum(bytes, 36);
    bytes[2] = (uint8_t)(sum >> 8);
    bytes[3] = (uint8_t)sum;
}

/* Whoever can send packets can send this one: only the host that is meant is believed. */
static void refusals_by_somebody_else_are_not_believed(void **state)
{
    struct fixture *x = *state;
    struct slmp_address who = {0};
    static const uint32_t by[] = {NOT_A_SOURCE, LOOPBACK};
    uint8_t bytes[36];
    int raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
    if (raw < 0) {
        skip(); /* CAP_NET_RAW is needed */
    }
    close(raw);
    make_refusal(x, FIRST, bytes);
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(by[i])};
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(x->at[OWN].ip)};
        struct pollfd p = {.fd = x->socket[OWN].fd, .events = POLLIN};
        raw = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
        assert_int_equal(bind(raw, (struct sockaddr *)&own, sizeof(own)), 0);
        assert_int_equal(sendto(raw, bytes, sizeof(bytes), 0, (struct sockaddr *)&to, sizeof(to)),
                         sizeof(bytes));
        assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
        assert_int_equal(udp_socket_refusal(&x->socket[OWN], &who), by[i] == LOOPBACK);
        close(raw);
    }
}

static void what_it_does_not_carry_leaves_by_the_first(void **state)
{
    struct fixture *x = *state;
    struct udp_connected *l = &x->socket[OWN].connected;
    count(x, FIRST, ENOUGH);
    assert_int_equal(shutdown(l->fd, SHUT_WR), 0);
    speak(x, FIRST);
    assert_false(l->on);
    count(x, FIRST, ENOUGH);
    assert_false(l->on); /* not soon */
    count(x, SECOND, ENOUGH);
    assert_true(udp_connected_leads_to(l, &x->at[SECOND]));
    speak(x, SECOND);
}

/* Packets of a connected socket would come from elsewhere: there is none, or the system knows
 * better. */
static void an_address_that_is_no_source_is_kept(void **state)
{
    struct fixture *x = *state;
    udp_socket_close(&x->socket[OWN]);
    open_socket(x, OWN, NOT_A_SOURCE);
    x->socket[OWN].adapts = true;
    count(x, FIRST, ENOUGH);
    speak(x, FIRST);
    hear(x, FIRST);
}

/* ---- what comes ---- */

/* Bytes that look like a packet of a session: the end of its message, or not. */
static void make_packet(uint8_t *p, size_t length, bool ends, uint8_t mark)
{
    memset(p, mark, length);
    p[0] = ends ? 0xd0 : 0x50;
    p[13] = 0;
}

/* Sends `count` packets of a length in one call; the system cuts them. */
static void send_to_own(struct fixture *x, int from, size_t length, unsigned count, bool ends)
{
    static uint8_t bytes[PACKETS * LENGTH];
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control = {0};
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons(x->at[OWN].port),
                             .sin_addr.s_addr = htonl(x->at[OWN].ip)};
    struct iovec part = {bytes, count * length};
    struct msghdr m = {.msg_name = &to,
                       .msg_namelen = sizeof(to),
                       .msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    uint16_t each = (uint16_t)length;
    for (unsigned i = 0; i < count; i++) {
        make_packet(bytes + i * length, length, ends, (uint8_t)i);
    }
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    *c = (struct cmsghdr){CMSG_LEN(sizeof(each)), IPPROTO_UDP, 103 /* UDP_SEGMENT */};
    memcpy(CMSG_DATA(c), &each, sizeof(each));
    assert_int_equal(sendmsg(x->socket[from].fd, &m, 0), count * length);
}

static ssize_t look(struct fixture *x, size_t *each)
{
    static uint8_t buffer[UDP_BUFFER];
    struct slmp_address who;
    return udp_socket_receive(&x->socket[OWN], buffer, &who, each);
}

static ssize_t wait_and_look(struct fixture *x, size_t *each)
{
    struct pollfd p = {.fd = x->socket[OWN].fd, .events = POLLIN};
    assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
    return look(x, each);
}

/* Packets come, each after a look that found nothing. */
static void come_alone(struct fixture *x, unsigned count, size_t length, bool ends)
{
    size_t each;
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(look(x, &each), -1);
        send_to_own(x, FIRST, length, 1, ends);
        assert_int_equal(wait_and_look(x, &each), length);
        assert_int_equal(each, length);
    }
}

/* All packets of some calls come, joined or not. */
static void come_together(struct fixture *x, unsigned calls)
{
    size_t each, expected = calls * PACKETS * LENGTH;
    for (unsigned i = 0; i < calls; i++) {
        send_to_own(x, FIRST, LENGTH, PACKETS, true);
    }
    while (expected > 0) {
        ssize_t length = wait_and_look(x, &each);
        assert_true(length > 0 && (size_t)length <= expected);
        assert_int_equal(each, LENGTH);
        expected -= (size_t)length;
    }
    assert_int_equal(look(x, &each), -1);
}

static void what_comes_alone_is_not_joined(void **state)
{
    struct fixture *x = *state;
    assert_true(x->socket[OWN].joins);
    assert_true(x->socket[OWN].joining);
    come_alone(x, MANY, 100, false);
    assert_false(x->socket[OWN].joining);
    come_together(x, 2);
    assert_true(x->socket[OWN].joining);
    come_together(x, 2);
    come_alone(x, MANY, LENGTH, true);
    assert_false(x->socket[OWN].joining);
}

/* Waits until so many bytes wait at the first socket. */
static void wait_for(struct fixture *x, uint32_t bytes)
{
    uint32_t memory[SK_MEMINFO_VARS] = {0};
    socklen_t size = sizeof(memory);
    for (int i = 0; i < PATIENCE_MS && memory[SK_MEMINFO_RMEM_ALLOC] < bytes; i++) {
        assert_int_equal(getsockopt(x->socket[OWN].fd, SOL_SOCKET, SO_MEMINFO, memory, &size), 0);
        poll(NULL, 0, i > 100);
    }
    assert_true(memory[SK_MEMINFO_RMEM_ALLOC] >= bytes);
}

static void what_waits_may_be_joined(void **state)
{
    struct fixture *x = *state;
    size_t each;
    unsigned turns = 0;
    for (; turns < MANY && x->socket[OWN].joining; turns++) {
        come_together(x, 0);
        send_to_own(x, FIRST, 100, 1, true);
        wait_for(x, 100);
        send_to_own(x, SECOND, LENGTH, PACKETS, true);
        wait_for(x, PACKETS * LENGTH);
        assert_int_equal(wait_and_look(x, &each), 100);
        assert_int_equal(wait_and_look(x, &each), PACKETS * LENGTH);
        assert_int_equal(each, LENGTH);
        x->socket[OWN].alone = 999; /* as if many had come */
    }
    assert_int_equal(turns, MANY);
}

/* Soon after joining has ended, a packet that might be several is not believed. */
static void what_may_be_several_is_lost_at_first(void **state)
{
    struct fixture *x = *state;
    size_t each;
    come_alone(x, MANY, 100, true);
    assert_false(x->socket[OWN].joining);
    x->socket[OWN].parted -= 2000000000;
    come_alone(x, 10, LENGTH, false);
    x->socket[OWN].parted = udp_socket_now(&x->socket[OWN]);
    come_alone(x, 10, LENGTH, true);
    assert_int_equal(x->socket[OWN].dropped, 0);
    x->socket[OWN].parted = udp_socket_now(&x->socket[OWN]) + 1000000000000;
    send_to_own(x, FIRST, LENGTH, 1, false);
    assert_int_equal(wait_and_look(x, &each), 0);
    assert_int_equal(x->socket[OWN].dropped, 1);
    assert_true(x->socket[OWN].joining);
    come_alone(x, 10, LENGTH, false);
}

static void others_always_join(void **state)
{
    struct fixture *x = *state;
    x->socket[OWN].adapts = false;
    come_alone(x, MANY, 100, true);
    assert_true(x->socket[OWN].joining);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_leads_to_the_favourite, begin, end),
        cmocka_unit_test_setup_teardown(two_that_take_turns_do_not_move_it, begin, end),
        cmocka_unit_test_setup_teardown(both_ways_are_open, begin, end),
        cmocka_unit_test_setup_teardown(nobody_gets_the_port, begin, end),
        cmocka_unit_test_setup_teardown(one_port_may_have_two_lines, begin, end),
        cmocka_unit_test_setup_teardown(refusals_come_to_the_first, begin, end),
        cmocka_unit_test_setup_teardown(refusals_by_somebody_else_are_not_believed, begin, end),
        cmocka_unit_test_setup_teardown(what_it_does_not_carry_leaves_by_the_first, begin, end),
        cmocka_unit_test_setup_teardown(an_address_that_is_no_source_is_kept, begin, end),
        cmocka_unit_test_setup_teardown(what_comes_alone_is_not_joined, begin, end),
        cmocka_unit_test_setup_teardown(what_waits_may_be_joined, begin, end),
        cmocka_unit_test_setup_teardown(what_may_be_several_is_lost_at_first, begin, end),
        cmocka_unit_test_setup_teardown(others_always_join, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
