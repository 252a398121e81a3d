/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The socket by which memory is handed over, and what comes over it from who is not to be trusted:
 * peers that say nothing, or anything; another user; an owner that sends files which would end the
 * process that maps them. Whatever happens operations go by messages.
 */
#include "region.h"

#include "../../lib/rma/share.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

enum { LENGTH = 5000, BOTH = PW_RMA_READ | PW_RMA_WRITE, KEY_INCARNATION = 8, KEY_TOKEN = 52 };

static uint64_t number_at(const unsigned char *bytes)
{
    uint64_t n;
    memcpy(&n, bytes, 8);
    return n;
}

static socklen_t name_of(struct sockaddr_un *name, const unsigned char *key)
{
    memset(name, 0, sizeof(*name));
    name->sun_family = AF_UNIX;
    int n = snprintf(name->sun_path + 1, sizeof(name->sun_path) - 1, "pinwheel-rma-%016llx",
                     (unsigned long long)number_at(key + KEY_INCARNATION));
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

static int call(const unsigned char *key)
{
    struct sockaddr_un name;
    socklen_t size = name_of(&name, key);
    struct timeval most = {.tv_sec = 20};
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    CHECK(s >= 0);
    CHECK_EQ(setsockopt(s, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most)), 0);
    CHECK_EQ(connect(s, (struct sockaddr *)&name, size), 0);
    return s;
}

/* What an owner says: 1, or 0 if it has hung up; the descriptors that came are closed. */
static int hear(int s, struct answer *answer, int *descriptors)
{
    unsigned char bytes[64];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct iovec part = {bytes, sizeof(bytes)};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = sizeof(control)};
    ssize_t n = recvmsg(s, &m, MSG_CMSG_CLOEXEC);
    *descriptors = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c != NULL && n > 0; c = CMSG_NXTHDR(&m, c)) {
        int fds[8];
        *descriptors = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(c), (size_t)*descriptors * sizeof(int));
        for (int i = 0; i < *descriptors; i++) {
            close(fds[i]);
        }
    }
    close(s);
    CHECK(n >= 0 || errno == ECONNRESET);
    CHECK(n <= 0 || answer_read(bytes, (size_t)n, answer));
    return n > 0;
}

static struct answer ask_for(const unsigned char *key, struct ask ask, int *descriptors)
{
    unsigned char bytes[ASK_BYTES];
    struct answer answer;
    int s = call(key);
    ask_write(bytes, &ask);
    CHECK_EQ(send(s, bytes, sizeof(bytes), MSG_NOSIGNAL), sizeof(bytes));
    CHECK_EQ(hear(s, &answer, descriptors), 1);
    return answer;
}

static void maps(struct pw_rma *rma, int owner)
{
    void *at;
    struct pw_rma_key *key = key_of(rma, owner);
    DONE(pw_rma_map(key, &at));
    pw_rma_key_close(key);
}

PTEST(strangers, 2)
{
    enum { SILENT = 30, NOISE = 300 };
    struct ends e;
    void *memory;
    ends_open(&e, KIND_ML, rank, size);
    struct pw_rma_region *region = region_shared(e.rma, LENGTH, BOTH, &memory);
    key_show(region);
    BARRIER();
    if (rank == 1) {
        unsigned char key[PW_RMA_KEY], noise[100];
        struct answer answer;
        int silent[SILENT], fds;
        uint64_t state = 5;
        key_look(0, key);
        struct ask right = {number_at(key + KEY_INCARNATION), number_at(key + KEY_TOKEN),
                            number_at(key + KEY_BITS)};
        struct ask wrong = right;
        CHECK_EQ(ask_for(key, right, &fds).length, LENGTH);
        CHECK_EQ(fds, 2);
        wrong.token ^= 1;
        CHECK_EQ((int64_t)ask_for(key, wrong, &fds).code, -EPERM);
        CHECK_EQ(fds, 0);
        wrong = right;
        wrong.bits += 16;
        CHECK_EQ((int64_t)ask_for(key, wrong, &fds).code, -ESTALE);
        CHECK_EQ(fds, 0);
        for (int i = 0; i < SILENT; i++) {
            silent[i] = call(key);
        }
        maps(e.rma, 0);
        for (int i = 0; i < NOISE; i++) {
            size_t n = splitmix(&state) % sizeof(noise);
            ask_write(noise, &right);
            for (size_t k = splitmix(&state) % 3 == 0 ? 0 : splitmix(&state) % 32; k < n; k++) {
                noise[k] = (unsigned char)splitmix(&state);
            }
            int s = call(key);
            CHECK_EQ(send(s, noise, n, MSG_NOSIGNAL), (ssize_t)n);
            if (i % 2 == 0 || n == 0) {
                close(s);
            } else if (hear(s, &answer, &fds) == 1) {
                CHECK(answer.code < 0 && fds == 0);
            }
        }
        maps(e.rma, 0);
        for (int i = 0; i < SILENT; i++) {
            close(silent[i]);
        }
    }
    BARRIER();
    region_end(region);
    ends_close(&e);
}

PTEST_OWN(another_user, 2, "changes its user")
{
    struct ends e;
    void *memory;
    if (geteuid() != 0) {
        ptest_skip("only root can become another user");
    }
    ends_open(&e, KIND_ML, rank, size);
    struct pw_rma_region *region = region_shared(e.rma, LENGTH, BOTH, &memory);
    key_show(region);
    BARRIER();
    if (rank == 1) {
        unsigned char bytes[PW_RMA_KEY], ask[ASK_BYTES];
        struct answer answer;
        void *at;
        int fds;
        key_look(0, bytes);
        struct pw_rma_key *key = key_of(e.rma, 0);
        uint64_t word = 1;
        CHECK_EQ(seteuid(65534), 0);
        int s = call(bytes);
        ask_write(ask, &(struct ask){number_at(bytes + KEY_INCARNATION),
                                     number_at(bytes + KEY_TOKEN), number_at(bytes + KEY_BITS)});
        send(s, ask, sizeof(ask), MSG_NOSIGNAL);
        CHECK_EQ(hear(s, &answer, &fds), 0);
        CHECK_EQ(fds, 0);
        REFUSED(pw_rma_map(key, &at), EPERM);
        CHECK_EQ(seteuid(0), 0);
        DONE(pw_rma_put(key, &word, 8, 0, NULL));
        DONE(pw_rma_flush(pw_rma_key_peer(key)));
        pw_rma_key_close(key);
    }
    BARRIER();
    CHECK(rank == 1 || *(uint64_t *)memory == 1);
    region_end(region);
    ends_close(&e);
}

/* ---- An owner that is played here ---- */

enum trick {
    UNSEALED,
    SHORT,
    NO_LIFE_SEAL,
    LENGTH_OTHER,
    RIGHTS_OTHER,
    ONE,
    MANY,
    NOISE,
    HANGS_UP,
    TRICKS
};

static int file_of(size_t size, bool sealed)
{
    int fd = memfd_create("trick", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    CHECK(fd >= 0);
    CHECK_EQ(ftruncate(fd, (off_t)size), 0);
    CHECK(!sealed || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
    return fd;
}

static void answer_with(int s, enum trick trick)
{
    unsigned char bytes[ANSWER_BYTES + 8] = {0};
    struct answer a = {0, trick == RIGHTS_OTHER ? PW_RMA_READ : BOTH,
                       trick == LENGTH_OTHER ? LENGTH - 1 : LENGTH};
    int count = trick == ONE ? 1 : trick == MANY ? 6 : 2, fds[6];
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(6 * sizeof(int))];
    } control;
    struct iovec part = {bytes, ANSWER_BYTES};
    struct msghdr m = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = &control,
                       .msg_controllen = CMSG_SPACE((size_t)count * sizeof(int))};
    answer_write(bytes, &a);
    if (trick == NOISE) {
        memset(bytes, 0xa5, sizeof(bytes));
    }
    for (int i = 0; i < count; i++) {
        fds[i] = i == 0 ? file_of(trick == SHORT ? 4096 : 4 * 4096, trick != UNSEALED)
                        : file_of(4096, trick != NO_LIFE_SEAL);
    }
    memset(&control, 0, sizeof(control));
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
    memcpy(CMSG_DATA(c), fds, (size_t)count * sizeof(int));
    CHECK_EQ(sendmsg(s, &m, MSG_NOSIGNAL), ANSWER_BYTES);
    for (int i = 0; i < count; i++) {
        close(fds[i]);
    }
}

static void *play_owner(void *listening)
{
    for (int trick = 0; trick < TRICKS; trick++) {
        unsigned char ask[64];
        int s = accept4(*(int *)listening, NULL, NULL, SOCK_CLOEXEC);
        CHECK(s >= 0);
        CHECK_EQ(recv(s, ask, sizeof(ask), 0), ASK_BYTES);
        if (trick != HANGS_UP) {
            answer_with(s, (enum trick)trick);
        }
        close(s);
    }
    return NULL;
}

static int descriptors_open(void)
{
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    CHECK(d != NULL);
    while (readdir(d) != NULL) {
        n++;
    }
    closedir(d);
    return n;
}

PTEST(tricks, 2)
{
    struct ends e;
    uint64_t *memory;
    ends_open(&e, KIND_ML, rank, size);
    struct pw_rma_region *region = region_shared(e.rma, LENGTH, BOTH, &memory);
    key_show(region);
    BARRIER();
    if (rank == 1) {
        unsigned char bytes[PW_RMA_KEY];
        struct sockaddr_un name;
        pthread_t owner;
        void *at;
        key_look(0, bytes);
        bytes[KEY_INCARNATION] ^= 1; /* so that the name is another one */
        key_forge(bytes);
        socklen_t length = name_of(&name, bytes);
        int listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        CHECK_EQ(bind(listening, (struct sockaddr *)&name, length), 0);
        CHECK_EQ(listen(listening, 8), 0);
        CHECK_EQ(pthread_create(&owner, NULL, play_owner, &listening), 0);
        int before = 0;
        for (int trick = 0; trick < TRICKS; trick++) {
            struct pw_rma_key *key;
            uint64_t word = 100 + (uint64_t)trick;
            DONE(pw_rma_key_open(e.rma, bytes, sizeof(bytes), &key));
            int rc = pw_rma_map(key, &at);
            CHECK(rc == -EPROTO || rc == -EMFILE || rc == -ECONNRESET);
            DONE(pw_rma_put(key, &word, 8, 8 * (uint64_t)trick, NULL));
            DONE(pw_rma_flush(pw_rma_key_peer(key)));
            pw_rma_key_close(key);
            before = trick == 0 ? descriptors_open() : before;
        }
        CHECK_EQ(pthread_join(owner, NULL), 0);
        CHECK(descriptors_open() <= before);
        close(listening);
    }
    BARRIER();
    for (int trick = 0; trick < TRICKS && rank == 0; trick++) {
        CHECK_EQ(memory[trick], 100 + (uint64_t)trick);
    }
    region_end(region);
    ends_close(&e);
}
