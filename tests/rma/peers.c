/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that end, or stop, while operations are under way. */
#include "region.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LENGTH = 100000, PUTS = 1600 };

static unsigned char memory[LENGTH], buffer[LENGTH];

/* A process with a region, whose key it writes to a pipe. */
struct target {
    pid_t pid;
    unsigned char key[PW_RMA_KEY];
};

static void be_target(int pipe)
{
    struct port p;
    unsigned char key[PW_RMA_KEY];
    memset(&p, 0, sizeof(p));
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, &p.limits, &p.ni));
    struct pw_rma_region *region =
        region_of(rma_open(&p), memory, LENGTH, PW_RMA_READ | PW_RMA_WRITE);
    DONE(pw_rma_key_pack(region, key, sizeof(key)));
    CHECK_EQ(write(pipe, key, sizeof(key)), sizeof(key));
    for (;;) {
        pause();
    }
}

static struct target start_target(void)
{
    struct target t;
    int pipes[2];
    CHECK_EQ(pipe(pipes), 0);
    t.pid = fork();
    CHECK(t.pid >= 0);
    if (t.pid == 0) {
        be_target(pipes[1]);
    }
    CHECK_EQ(read(pipes[0], t.key, sizeof(t.key)), sizeof(t.key));
    close(pipes[0]);
    close(pipes[1]);
    return t;
}

static void end_target(const struct target *t)
{
    kill(t->pid, SIGKILL);
    CHECK_EQ(waitpid(t->pid, NULL, 0), t->pid);
}

static struct pw_rma_key *open_key(struct pw_rma *rma, const struct target *t)
{
    struct pw_rma_key *key;
    DONE(pw_rma_key_open(rma, t->key, sizeof(t->key), &key));
    return key;
}

/* Ended before, and while, operations were under way; others are not touched by it. */
PTEST_OWN(killed, 1, "forks")
{
    enum { ROUNDS = 6 };
    static struct pw_rma_request requests[PUTS];
    struct ends e;
    struct target stays = start_target();
    struct target targets[ROUNDS];
    for (int i = 0; i < ROUNDS; i++) {
        targets[i] = start_target();
    }
    ends_open(&e, KIND_MP, rank, size);
    struct pw_rma_key *alive = open_key(e.rma, &stays);
    for (int i = 0; i < ROUNDS; i++) {
        struct pw_rma_key *key = open_key(e.rma, &targets[i]);
        struct pw_rma_peer *peer = pw_rma_key_peer(key);
        DONE(pw_rma_put(key, buffer, LENGTH, 0, NULL));
        DONE(pw_rma_flush(peer));
        if (i % 2 == 0) {
            end_target(&targets[i]);
        }
        int n = 0;
        for (; n < PUTS; n++) {
            DONE(pw_rma_put(key, buffer, 8 + (size_t)n * 7, 0, n % 2 == 0 ? &requests[n] : NULL));
            DONE(pw_rma_put(alive, buffer, 8, 0, NULL));
            if (i % 2 == 1 && n == PUTS / 2) {
                kill(targets[i].pid, SIGKILL);
            }
        }
        REFUSED(pw_rma_flush(peer), EPIPE);
        DONE(pw_rma_flush(pw_rma_key_peer(alive)));
        REFUSED(pw_rma_wait(&requests[PUTS - 2]), EPIPE);
        for (n = 0; n < PUTS; n += 2) {
            int rc = pw_rma_wait(&requests[n]);
            CHECK(rc == -EPIPE || (rc == 0 && i % 2 == 1));
        }
        if (i % 2 == 1) {
            CHECK_EQ(waitpid(targets[i].pid, NULL, 0), targets[i].pid);
        }
        REFUSED(pw_rma_flush_all(e.rma), EPIPE);
        pw_rma_key_close(key);
    }
    DONE(pw_rma_flush(pw_rma_key_peer(alive)));
    pw_rma_key_close(alive);
    ends_close(&e);
    end_target(&stays);
}

/* Keys are closed with operations under way, to the dead and to the living. */
PTEST_OWN(closed_early, 1, "forks")
{
    struct ends e;
    struct target targets[2] = {start_target(), start_target()};
    ends_open(&e, KIND_MP, rank, size);
    end_target(&targets[0]);
    for (int i = 0; i < 200; i++) {
        struct pw_rma_key *key = open_key(e.rma, &targets[i % 2]);
        DONE(pw_rma_put(key, buffer, LENGTH, 0, NULL));
        pw_rma_key_close(key);
    }
    REFUSED(pw_rma_flush_all(e.rma), EPIPE);
    ends_close(&e);
    end_target(&targets[1]);
}

/* A stopped peer is waited for. */
PTEST_OWN(stopped, 1, "forks")
{
    struct ends e;
    struct pw_rma_request request;
    struct target t = start_target();
    bool over = true;
    ends_open(&e, KIND_MP, rank, size);
    struct pw_rma_key *key = open_key(e.rma, &t);
    DONE(pw_rma_get(key, buffer, LENGTH, 0, NULL));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    kill(t.pid, SIGSTOP);
    CHECK_EQ(waitpid(t.pid, NULL, WUNTRACED), t.pid);
    DONE(pw_rma_get(key, buffer, LENGTH, 0, &request));
    for (int i = 0; i < 20; i++) {
        DONE(pw_rma_test(&request, &over));
        CHECK(!over);
        ptest_sleep_ms(10);
    }
    kill(t.pid, SIGCONT);
    DONE(pw_rma_wait(&request));
    DONE(pw_rma_flush(pw_rma_key_peer(key)));
    pw_rma_key_close(key);
    ends_close(&e);
    end_target(&t);
}
