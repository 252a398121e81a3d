/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages over shared memory, by each of the calls that send them: a record that follows
 * others of its kind leaves without a question, and must be what it would have been with all of
 * them. Rings of all sizes, records of all lengths between the short ones, full rings, and
 * sources that cannot be read.
 */
#define PIPELINE 512
#include "fabric_fixture.h"

#include "fabric/shm/shm.h"

enum way { BY_LINE, BY_SHORT, BY_SEND, WAYS };

static struct plan under_way[PIPELINE];
static uint64_t begun, ended;

static struct tx_channel *channel(void)
{
    return &shm_peer_of(ends[OUT].peer)->tx[FABRIC_REQUEST];
}

static bool is_sent(struct plan *plan, enum fabric_short outcome)
{
    plan->is_sent = outcome != SHORT_FULL;
    plan->sent = outcome == SHORT_SENT ? FABRIC_OK : FABRIC_SEGV;
    return plan->is_sent;
}

/* Sends the next message; false if there is no room for it. */
static bool send_next(enum way way, size_t length, bool bad)
{
    uint64_t index = begun % PIPELINE;
    struct plan *plan = plans[index] = &under_way[index];
    struct fabric_line line;
    make_plan(plan, length, WHOLE, WHOLE);
    plan->headed = below(2) == 0;
    plan->bad_source = bad;
    plan->tx.base = bad ? forbidden + below(4096) : plan->from.base;
    memcpy(plan->tx.header, &index, sizeof(index));
    memcpy(plan->tx.header + 8, &begun, sizeof(begun));
    bool done;
    switch (way) {
    case BY_LINE:
        memcpy(line.header, plan->tx.header, sizeof(line.header));
        memcpy(&line.payload, plan->payload, length);
        done = is_sent(plan, fabric->send_line(ends[OUT].peer, FABRIC_REQUEST, &line, length));
        break;
    case BY_SHORT:
        done = is_sent(plan, fabric->send_short(ends[OUT].peer, FABRIC_REQUEST, plan->tx.header,
                                                plan->tx.base, length));
        break;
    default:
        done = send_plan(FABRIC_REQUEST, index, begun);
    }
    if (!done) {
        assert_int_equal(channel()->run, 0);
        free_plan(plan);
        return false;
    }
    begun++;
    return true;
}

/* Takes messages out until no more than so many are under way, and looks what became of them. */
static void take_out(uint64_t most)
{
    for (unsigned idle = 0; begun - ended > most; idle++) {
        idle = poll_both() ? 0 : idle;
        assert_true(idle < idle_most);
        for (struct plan *p; ended < begun && (p = plans[ended % PIPELINE])->is_sent && p->is_done;
             ended++) {
            check_plan(p);
            free_plan(p);
        }
    }
}

static void open_ring(const char *lines)
{
    setenv("PINWHEEL_SHM_RING", lines, 1);
    open_both("auto");
    memset(arrived, 0, sizeof(arrived));
    begun = ended = 0;
}

static void close_ring(void)
{
    take_out(0);
    close_both();
    unsetenv("PINWHEEL_SHM_RING");
}

static const char *const rings[] = {"2", "4", "32", "64", "128", "256"};
#define RINGS (sizeof(rings) / sizeof(rings[0]))

static size_t length_for(enum way way)
{
    size_t most = channel()->inline_max < 200 ? channel()->inline_max : 200;
    return way == BY_LINE || below(4) != 0 ? below(9) : below(most + 1);
}

static void all_arrive_in_order(void **state)
{
    for (size_t i = 0; i < RINGS; i++) {
        open_ring(rings[i]);
        for (unsigned n = 0; n < 6000; n++) {
            enum way way = (enum way)below(below(8) == 0 ? WAYS : BY_SHORT + 1);
            size_t length = length_for(way);
            bool bad = way != BY_LINE && length != 0 && below(10) == 0;
            if (!send_next(way, length, bad) || begun - ended == PIPELINE || below(40) == 0) {
                take_out(below((size_t)(begun - ended) + 1));
            }
        }
        close_ring();
    }
}

/* Those of one line that follow each other ask nothing, but once in a word of lines. */
static void alike_make_a_run(void **state)
{
    open_ring("128");
    unsigned asked = 0;
    for (unsigned n = 0; n < 1280; n++) {
        asked += channel()->run == 0;
        assert_true(send_next(n % 2 == 0 ? BY_LINE : BY_SHORT, n % 9, false));
        take_out(100);
    }
    assert_in_range(asked, 20, 60);
    close_ring();
}

/* A ring is filled to its last line but one, by runs as by others, and no further. */
static void full_is_full(void **state)
{
    open_ring("64");
    for (unsigned round = 0; round < 200; round++) {
        while (send_next(BY_LINE, 8, false)) {
        }
        assert_int_equal(begun - ended, 63);
        take_out(below(40));
        while (begun - ended < 40) {
            assert_true(send_next(BY_SHORT, below(9), false));
        }
        take_out(0);
    }
    close_ring();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_arrive_in_order),
        cmocka_unit_test(alike_make_a_run),
        cmocka_unit_test(full_is_full),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
