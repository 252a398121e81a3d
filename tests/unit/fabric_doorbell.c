/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The doorbell: who sleeps is rung once for each sleep, and again where the system did not let the
 * sender ring, for as long as the sender wants something of the sleeper. And who wants to sleep
 * takes what has come first, though nobody has told of it.
 */
#include "fabric_fixture.h"

#include "fabric/shm/shm.h"

#include <poll.h>

static bool is_rung(void)
{
    struct pollfd at = {.fd = shm_of(ends[IN].fabric)->doorbell_fd, .events = POLLIN};
    return poll(&at, 1, 0) == 1;
}

static void sleep_in(void)
{
    uint32_t word;
    while (!fabric->arm(ends[IN].fabric, DOORBELL_FD, &word)) {
        fabric->poll(ends[IN].fabric);
    }
    assert_false(is_rung());
}

static struct plan *send_one(struct plan *plan)
{
    make_plan(plan, 8, WHOLE, WHOLE);
    plans[0] = plan;
    assert_true(send_plan(FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
    return plan;
}

/* The sender looks for its peers, as it does four times a second. */
static void probe(void)
{
    shm_of(ends[OUT].fabric)->next_probe = 0;
    fabric->next_deadline(ends[OUT].fabric);
}

static void a_doorbell_that_could_not_be_rung_is_rung_later(void **state)
{
    struct plan plan;
    open_both("auto");
    shm_peer_of(ends[OUT].peer)->same_process = false; /* so it is asked whether it is there */
    sleep_in();
    int ring = shm_of(ends[OUT].fabric)->ring_fd;
    shm_of(ends[OUT].fabric)->ring_fd = -1;
    send_one(&plan);
    probe();
    assert_false(is_rung());
    shm_of(ends[OUT].fabric)->ring_fd = ring;
    probe();
    assert_true(is_rung());
    fabric->disarm(ends[IN].fabric, true);
    finish(&plan);
    check_plan(&plan);
    free_plan(&plan);
    close_both();
}

/* The sender of an ask is stopped between its record and the word of it: the receiver, which looks
 * at the rings of asks when it is told, finds it before it sleeps, and sleeps then. */
static void an_ask_that_was_not_told_of_is_taken(void **state)
{
    struct plan plan;
    uint32_t word;
    bool asleep = false;
    open_both("auto");
    const struct shm_fabric *in = (const struct shm_fabric *)ends[IN].fabric;
    struct segment_header *h = in->segment->header;
    sleep_in();
    fabric->disarm(ends[IN].fabric, true);
    make_plan(&plan, 8, WHOLE, WHOLE);
    plans[0] = &plan;
    assert_true(send_plan(FABRIC_ASK, 0, arrived[FABRIC_ASK]));
    assert_true((atomic_load(&h->flags) & SEGMENT_ASKED) != 0);
    for (unsigned w = 0; w < in->words; w++) {
        atomic_store(&h->asked[w], 0);
    }
    atomic_fetch_and(&h->flags, ~SEGMENT_ASKED);
    for (int i = 0; i < 10 && !asleep; i++) {
        fabric->poll(ends[IN].fabric);
        asleep = fabric->arm(ends[IN].fabric, DOORBELL_FD, &word);
    }
    assert_true(plan.is_done);
    assert_true(asleep);
    fabric->disarm(ends[IN].fabric, true);
    finish(&plan);
    check_plan(&plan);
    free_plan(&plan);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_doorbell_that_could_not_be_rung_is_rung_later),
        cmocka_unit_test(an_ask_that_was_not_told_of_is_taken),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
