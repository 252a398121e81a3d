/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The last turns of a job. Two ranks end, and the launcher says that all is over, after the
 * coordinator has looked at the first of them and before it looks at the second one: what the first
 * one has done in its turn counts all the same. shared_left() is wrapped, to stop the coordinator
 * there.
 */
#include "fabric/sim/rank.h"
#include "pinwheel/sim/state.h"

#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BYTES = 8, END_PS = 5000000 };

static _Atomic bool armed;
static sem_t stopped;

bool __real_shared_left(struct coordinator *c, uint32_t place);
bool __wrap_shared_left(struct coordinator *c, uint32_t place);
bool __wrap_shared_left(struct coordinator *c, uint32_t place)
{
    bool armed_now = place == 1;
    if (armed_now && atomic_compare_exchange_strong(&armed, &armed_now, false)) {
        sem_post(&stopped);
        while (!atomic_load(&c->stop)) {
            sched_yield();
        }
    }
    return __real_shared_left(c, place);
}

/* A rank: it sends a packet in its first turn, and ends in it when there is a byte to read. */
static void be_rank(const char *path, uint32_t rank, int running, int end)
{
    char number[16], byte = 0;
    bool again;
    snprintf(number, sizeof(number), "%u", rank);
    setenv(SIM_VARIABLE, path, 1);
    setenv("PMI_RANK", number, 1);
    struct sim_clock *c = sim_clock_make(&again);
    if (c == NULL) {
        _exit(1);
    }
    sim_clock_hand_over(c, 0, SIM_COMPUTES);
    if (write(running, &byte, 1) != 1 || read(end, &byte, 1) != 1) {
        _exit(1);
    }
    struct sim_packet *p = sim_clock_packet(c);
    p->kind = SIM_DATA;
    p->from = rank;
    p->to = 1 - rank;
    p->bytes = BYTES;
    p->total = BYTES;
    memset(p->data, 0, BYTES);
    sim_clock_sent(c, p);
    c->figures.counts.messages = 1 + rank;
    c->now += END_PS * (2 - rank); /* the first rank ends last */
    sim_clock_leave(c);
    _exit(0);
}

static void ends_together(void **state)
{
    (void)state;
    struct coordinator_setup setup = {.ranks = 2,
                                      .jobs = 2,
                                      .direct = true,
                                      .net = {.packet = SIM_PACKET,
                                              .buffer = 1 << 20,
                                              .byte = 20000000,
                                              .hop = 50000,
                                              .cable = 33400}};
    struct coordinator_result result = {.failed = false};
    char error[NET_ERROR], byte = 0;
    int running[2], end[2], status;
    pid_t rank[2];
    assert_int_equal(net_spec_parse(&setup.spec, "fattree:radix=36", error), 0);
    assert_int_equal(sem_init(&stopped, 0, 0), 0);
    assert_int_equal(pipe(running), 0);
    assert_int_equal(pipe(end), 0);
    struct coordinator *c = coordinator_start(&setup);
    assert_non_null(c);
    for (uint32_t r = 0; r < 2; r++) {
        rank[r] = fork();
        assert_true(rank[r] >= 0);
        if (rank[r] == 0) {
            be_rank(coordinator_path(c), r, running[1], end[0]);
        }
        coordinator_started(c, (int)r, rank[r]);
    }
    for (int r = 0; r < 2; r++) {
        assert_int_equal(read(running[0], &byte, 1), 1);
    }
    atomic_store(&armed, true);
    sem_wait(&stopped); /* rank 0 was looked at: it is in its turn */
    for (int r = 0; r < 2; r++) {
        assert_int_equal(write(end[1], &byte, 1), 1);
    }
    for (int r = 0; r < 2; r++) {
        assert_int_equal(waitpid(rank[r], &status, 0), rank[r]);
        assert_int_equal(status, 0);
        coordinator_exited(c, r);
    }
    coordinator_end(c, &result);
    free(result.stats);
    assert_false(result.failed);
    assert_false(result.stuck);
    assert_int_equal(result.counts.messages, 3);
    assert_int_equal(result.end, 2 * END_PS);
    /* the packets came to nobody, through the network */
    assert_int_equal(result.refused, 2);
    assert_int_equal(result.channel, BYTES * 20);
    for (int i = 0; i < 2; i++) {
        close(running[i]);
        close(end[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(ends_together)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
