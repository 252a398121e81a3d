/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Bad weather between processes: stands in the way of send(), sendto() and sendmsg() in a test
 * program, and of the library in it that is preloaded, whose system calls are libc's
 * (tests/kill/CMakeLists.txt), where
 *
 *     TEST_WEATHER=LOST,TWICE,LATE,SPOILT,SEED
 *
 * is set: of 100 packets of UDP so many are lost, sent twice, kept until OVERTAKE others have
 * left, have a bit turned. Packets are those of the wire: what the system would cut is cut here
 * first. The seed and the order of packets decide which; each process has one sequence. A program
 * whose processes have sent no packet this way has tested nothing: it fails.
 */
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

enum { PACKET_MOST = 65536, OVERTAKE = 2, LOST = 0, TWICE, LATE, SPOILT, CHANCES };

struct packet {
    size_t length; /* 0: none */
    struct sockaddr_in to;
    uint8_t bytes[PACKET_MOST];
};

static struct {
    pthread_mutex_t lock;
    pthread_once_t once;
    bool bad;
    unsigned chance[CHANCES];
    uint64_t state;
    struct packet now, kept;
    unsigned overtaken; /* so many have left since `kept` was */
} weather = {.lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static void look(void)
{
    const char *text = getenv("TEST_WEATHER");
    unsigned *c = weather.chance, seed = 0;
    if (text == NULL) {
        return;
    }
    if (sscanf(text, "%u,%u,%u,%u,%u", &c[LOST], &c[TWICE], &c[LATE], &c[SPOILT], &seed) != 5) {
        fprintf(stderr, "TEST_WEATHER=%s: is not LOST,TWICE,LATE,SPOILT,SEED\n", text);
        exit(1);
    }
    weather.state = seed * 0x9e3779b97f4a7c15u | 1;
    weather.bad = true;
}

/* Packets that came by, of all processes of the program. */
static uint64_t *passed;
static pid_t first;

__attribute__((constructor)) static void begin(void)
{
    void *shared =
        mmap(NULL, sizeof(*passed), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    passed = shared != MAP_FAILED ? shared : NULL;
    first = getpid();
}

__attribute__((destructor)) static void end(void)
{
    if (getenv("TEST_WEATHER") != NULL && getpid() == first &&
        (passed == NULL || __atomic_load_n(passed, __ATOMIC_RELAXED) == 0)) {
        fprintf(stderr, "TEST_WEATHER is set and no packet came by: is the library preloaded whose "
                        "system calls are libc's?\n");
        _exit(1);
    }
}

static uint64_t below(uint64_t n)
{
    weather.state ^= weather.state << 13;
    weather.state ^= weather.state >> 7;
    weather.state ^= weather.state << 17;
    return weather.state % n;
}

static bool happens(unsigned what)
{
    return below(100) < weather.chance[what];
}

static ssize_t straight(int fd, const struct msghdr *m, int flags)
{
    return syscall(SYS_sendmsg, fd, m, flags);
}

static ssize_t put(int fd, const struct packet *p, int flags)
{
    struct iovec part = {(void *)(uintptr_t)p->bytes, p->length};
    struct msghdr m = {.msg_name = (void *)(uintptr_t)&p->to,
                       .msg_namelen = sizeof(p->to),
                       .msg_iov = &part,
                       .msg_iovlen = 1};
    return straight(fd, &m, flags);
}

/* The packet that was kept goes when enough have overtaken it. */
static void release_kept(int fd, int flags)
{
    if (weather.kept.length != 0 && ++weather.overtaken > OVERTAKE) {
        put(fd, &weather.kept, flags);
        weather.kept.length = 0;
    }
}

static ssize_t send_one(int fd, int flags)
{
    struct packet *p = &weather.now;
    if (happens(LOST)) {
        return 0;
    }
    if (happens(SPOILT)) {
        uint64_t at = below(8 * p->length);
        p->bytes[at / 8] ^= (uint8_t)(1u << at % 8);
    }
    if (happens(LATE) && weather.kept.length == 0) {
        weather.kept = *p;
        weather.overtaken = 0;
        return 0;
    }
    ssize_t sent = put(fd, p, flags);
    return sent >= 0 && happens(TWICE) ? put(fd, p, flags) : sent;
}

/* The length at which the system would cut. */
static size_t segment_of(const struct msghdr *m, size_t all)
{
    uint16_t each = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR((struct msghdr *)m, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT) {
            memcpy(&each, CMSG_DATA(c), sizeof(each));
        }
    }
    return each != 0 ? each : all;
}

/* The bytes [from, from + length) of a message. */
static void gather(const struct msghdr *m, size_t from, size_t length, uint8_t *to)
{
    for (size_t i = 0; i < m->msg_iovlen && length > 0; i++) {
        const struct iovec *part = &m->msg_iov[i];
        if (from >= part->iov_len) {
            from -= part->iov_len;
            continue;
        }
        size_t n = part->iov_len - from < length ? part->iov_len - from : length;
        memcpy(to, (const uint8_t *)part->iov_base + from, n);
        to += n;
        length -= n;
        from = 0;
    }
}

static bool is_udp(int fd)
{
    int type = 0, family = 0;
    socklen_t size = sizeof(type);
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_DGRAM &&
           getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_INET;
}

/* Where a message goes: a packet that is kept may leave by another socket. */
static void find_way(int fd, const struct msghdr *m, struct sockaddr_in *to)
{
    socklen_t size = sizeof(*to);
    memset(to, 0, sizeof(*to));
    if (m->msg_namelen == sizeof(*to)) {
        memcpy(to, m->msg_name, sizeof(*to));
    } else {
        getpeername(fd, (struct sockaddr *)to, &size);
    }
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    pthread_once(&weather.once, look);
    if (!weather.bad || !is_udp(fd)) {
        return straight(fd, m, flags);
    }
    size_t all = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++) {
        all += m->msg_iov[i].iov_len;
    }
    size_t each = segment_of(m, all);
    ssize_t rc = 0;
    pthread_mutex_lock(&weather.lock);
    for (size_t at = 0; at < all && rc >= 0; at += each) {
        struct packet *p = &weather.now;
        if (passed != NULL) {
            __atomic_fetch_add(passed, 1, __ATOMIC_RELAXED);
        }
        p->length = all - at < each ? all - at : each;
        find_way(fd, m, &p->to);
        gather(m, at, p->length, p->bytes);
        release_kept(fd, flags);
        rc = send_one(fd, flags);
    }
    pthread_mutex_unlock(&weather.lock);
    return rc < 0 ? -1 : (ssize_t)all;
}

__attribute__((visibility("default"))) ssize_t
sendto(int fd, const void *bytes, size_t n, int flags, const struct sockaddr *to, socklen_t length)
{
    struct iovec part = {(void *)(uintptr_t)bytes, n};
    struct msghdr m = {.msg_name = (void *)(uintptr_t)to,
                       .msg_namelen = to != NULL ? length : 0,
                       .msg_iov = &part,
                       .msg_iovlen = 1};
    return sendmsg(fd, &m, flags);
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *bytes, size_t n, int flags)
{
    return sendto(fd, bytes, n, flags, NULL, 0);
}
