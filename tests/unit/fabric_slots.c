/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Slots of a segment whose senders broke the rules, closed, died or began anew under their address:
 * each is given back, and none while somebody may still write to it.
 */
#define ENDS 4
#include "fabric_folder.h"

#include "fabric/shm/segment.h"
#include "fabric/shm/shm.h"
#include "fabric/shm/slots.h"
#include "fabric/shm/teardown.h"

enum { NID = 0x7f000001, SECOND = IN + 1, THIRD };

static unsigned slots_taken(void)
{
    unsigned n = 0;
    const struct segment *s = shm_of(ends[IN].fabric)->segment;
    for (unsigned i = 0; i < s->info.slots; i++) {
        n += atomic_load(&s->header->owner[i]) != 0;
    }
    return n;
}

/* The log has one line, which names the word. */
static void check_told_once(int log, const char *word)
{
    char text[2048];
    ssize_t n = pread(log, text, sizeof(text) - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    close(log);
    const char *end = strchr(text, '\n');
    assert_true(end != NULL && end[1] == '\0');
    assert_non_null(strstr(text, word));
}

/* The slot of one that broke the rules is nobody's as long as it may write there, and then
 * another's. */
static void banned_slots_come_back(void **state)
{
    struct reason why;
    setenv("PINWHEEL_SHM_PEERS", "2", 1);
    open_both("cells");
    peer_lost(shm_peer_of(ends[IN].peer), "the test says so");
    for (unsigned i = 0; i < 1000 && ends[IN].peer != NULL; i++) {
        fabric->poll(ends[IN].fabric);
    }
    assert_null(ends[IN].peer);
    assert_int_equal(slots_taken(), 1);
    open_end(&ends[SECOND]);
    connect_end(&ends[SECOND]);
    open_end(&ends[THIRD]);
    int log = memfd_create("log", MFD_CLOEXEC), errors = dup(STDERR_FILENO);
    assert_true(log >= 0 && errors >= 0 && dup2(log, STDERR_FILENO) == STDERR_FILENO);
    enum fabric_connect found = FABRIC_LATER;
    for (unsigned i = 0; i < 10 && found == FABRIC_LATER; i++) {
        found = fabric->connect(ends[THIRD].fabric, NID, ends[IN].pid, &why);
        fabric->poll(ends[IN].fabric);
    }
    dup2(errors, STDERR_FILENO);
    close(errors);
    check_told_once(log, "PINWHEEL_SHM_PEERS");
    assert_int_equal(found, FABRIC_LATER);
    fabric->close(ends[OUT].fabric);
    found = FABRIC_LATER;
    for (unsigned i = 0; i < 10 && found == FABRIC_LATER; i++) {
        found = fabric->connect(ends[THIRD].fabric, NID, ends[IN].pid, &why);
        fabric->poll(ends[IN].fabric);
    }
    assert_int_equal(found, FABRIC_UP);
    assert_int_equal(slots_taken(), 2);
    fabric->close(ends[SECOND].fabric);
    fabric->close(ends[THIRD].fabric);
    fabric->close(ends[IN].fabric);
    fault_remove();
    unsetenv("PINWHEEL_SHM_PEERS");
}

static void open_two(void)
{
    open_end(&ends[IN]);
    open_end(&ends[OUT]);
}

static uint64_t address_of(const struct end *e)
{
    return (uint64_t)NID << 32 | e->pid;
}

static _Atomic uint64_t *owner_word(unsigned index)
{
    return &shm_of(ends[IN].fabric)->segment->header->owner[index];
}

static void close_two(void)
{
    fabric->close(ends[OUT].fabric);
    fabric->close(ends[IN].fabric);
    fault_remove();
}

/* Called whenever memory is allocated, as it is while a sender looks whether a slot is left over.
 */
static void (*at_allocation)(void);
int __real_posix_fallocate(int fd, off_t offset, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t offset, off_t bytes);
int __wrap_posix_fallocate(int fd, off_t offset, off_t bytes)
{
    void (*now)(void) = at_allocation;
    at_allocation = NULL;
    if (now != NULL) {
        now();
    }
    return __real_posix_fallocate(fd, offset, bytes);
}

static void tear_down_the_first(void)
{
    for (unsigned i = 0; i < 1000 && shm_of(ends[IN].fabric)->by_slot[0] != NULL; i++) {
        fabric->poll(ends[IN].fabric);
    }
    assert_null(shm_of(ends[IN].fabric)->by_slot[0]);
}

/* A NIC is closed and opened again under its address; when it connects, the slot that it had is
 * about to be given back. It must not count it as one that it takes over. */
static void a_slot_that_is_freed_is_not_taken_over(void **state)
{
    struct reason why;
    open_both("cells");
    uint64_t address = address_of(&ends[OUT]);
    assert_int_equal(atomic_load(owner_word(0)), address);
    fabric->close(ends[OUT].fabric);
    open_end_at(&ends[OUT], (uint32_t)address);
    at_allocation = tear_down_the_first;
    assert_int_equal(fabric->connect(ends[OUT].fabric, NID, ends[IN].pid, &why), FABRIC_UP);
    assert_null(at_allocation);
    assert_int_equal(atomic_load(owner_word(shm_peer_of(ends[OUT].peer)->out_index)), address);
    assert_int_equal(slots_taken(), 1);
    close_two();
}

/* Called when the text of an error is wanted, as it is when no segment has the address that is
 * asked for. */
static void (*at_error)(void);
char *__real_strerror(int error);
char *__wrap_strerror(int error);
char *__wrap_strerror(int error)
{
    void (*now)(void) = at_error;
    at_error = NULL;
    if (now != NULL) {
        now();
    }
    return __real_strerror(error);
}

static uint32_t pid_of_the_dead;

static void restart_the_dead(void)
{
    open_end_at(&ends[OUT], pid_of_the_dead);
}

/* The claimant of a slot died before it was ready; when the receiver has seen that, a process under
 * the same address takes the slot over, and is about to fill it. */
static void a_slot_taken_over_is_not_swept(void **state)
{
    open_two();
    uint64_t address = address_of(&ends[OUT]);
    pid_of_the_dead = ends[OUT].pid;
    fabric->close(ends[OUT].fabric);
    atomic_store(owner_word(0), address);
    at_error = restart_the_dead;
    sweep_slots(shm_of(ends[IN].fabric));
    assert_null(at_error);
    assert_int_equal(atomic_load(owner_word(0)), address);
    fabric->close(ends[OUT].fabric);
    sweep_slots(shm_of(ends[IN].fabric));
    assert_int_equal(slots_taken(), 0);
    open_end(&ends[OUT]);
    close_two();
}

/* Called when a receiver asks whether who may have a slot has left. */
static void (*at_question)(void);
bool __real_segment_left(const struct options *o, uint32_t nid, uint32_t pid, const uint64_t *inc);
bool __wrap_segment_left(const struct options *o, uint32_t nid, uint32_t pid, const uint64_t *inc);
bool __wrap_segment_left(const struct options *o, uint32_t nid, uint32_t pid, const uint64_t *inc)
{
    void (*now)(void) = at_question;
    at_question = NULL;
    if (now != NULL) {
        now();
    }
    return __real_segment_left(o, nid, pid, inc);
}

static struct plan asked;

/* A process under the same address takes the slot over, and has not quite filled it yet. */
static void take_over(void)
{
    struct reason why;
    restart_the_dead();
    assert_int_equal(fabric->connect(ends[OUT].fabric, NID, ends[IN].pid, &why), FABRIC_UP);
    atomic_store(&shm_peer_of(ends[OUT].peer)->out->ready, SLOT_UNREADY);
}

/* By now that process has filled it, and waits for its message to be taken: so it probes. */
static void fill_and_probe(void)
{
    atomic_store(&shm_peer_of(ends[OUT].peer)->out->ready, SLOT_READY);
    make_plan(&asked, 8, WHOLE, WHOLE);
    plans[0] = &asked;
    arrived[FABRIC_REQUEST] = 0;
    assert_true(send_plan(FABRIC_REQUEST, 0, 0));
    assert_true(peer_is_probed(shm_peer_of(ends[OUT].peer)));
    peers_probe(shm_of(ends[OUT].fabric));
    assert_false(shm_peer_of(ends[OUT].peer)->dying);
}

/* Whoever takes a slot over is not told that the connection has ended, just because it looks while
 * its receiver makes sure that nobody has the slot. */
static void a_slot_asked_about_is_not_lost(void **state)
{
    open_two();
    uint64_t address = address_of(&ends[OUT]);
    pid_of_the_dead = ends[OUT].pid;
    fabric->close(ends[OUT].fabric);
    atomic_store(owner_word(0), address);
    at_error = take_over;
    at_question = fill_and_probe;
    sweep_slots(shm_of(ends[IN].fabric));
    assert_true(at_error == NULL && at_question == NULL);
    finish(&asked);
    check_plan(&asked);
    free_plan(&asked);
    close_two();
}

/* One that is closing has claimed a slot, to reach back, and not filled it yet. */
static void who_is_closing_may_still_fill_its_slot(void **state)
{
    open_two();
    atomic_store(owner_word(0), address_of(&ends[OUT]));
    atomic_fetch_or(&shm_of(ends[OUT].fabric)->segment->header->flags, SEGMENT_CLOSED);
    sweep_slots(shm_of(ends[IN].fabric));
    assert_int_equal(atomic_load(owner_word(0)), address_of(&ends[OUT]));
    fabric->close(ends[OUT].fabric);
    sweep_slots(shm_of(ends[IN].fabric));
    assert_int_equal(slots_taken(), 0);
    open_end(&ends[OUT]);
    close_two();
}

/* One that is closing has not left its slot yet when its peer has noticed: it writes there that it
 * leaves, and no other sender may have the slot by then. */
static void who_is_closing_may_still_leave_its_slot(void **state)
{
    open_both("cells");
    peer_lost(shm_peer_of(ends[IN].peer), NULL);
    tear_down_the_first();
    assert_int_equal(slots_taken(), 1);
    assert_false(slot_is_claimed(atomic_load(owner_word(0))));
    fabric->close(ends[OUT].fabric);
    sweep_slots(shm_of(ends[IN].fabric));
    assert_int_equal(slots_taken(), 0);
    open_end(&ends[OUT]);
    close_two();
}

static void give_up(const char *why)
{
    peer_lost(shm_peer_of(ends[IN].peer), why);
    tear_down_the_first();
    assert_null(ends[IN].peer);
}

/* A message the other way. */
static void carry_back(void)
{
    struct plan plan;
    make_plan(&plan, 700, WHOLE, WHOLE);
    plans[0] = &plan;
    assert_true(send_plan_from(&ends[IN], FABRIC_REQUEST, 0, arrived[FABRIC_REQUEST]));
    finish(&plan);
    check_plan(&plan);
    free_plan(&plan);
}

/* A NIC that gives a connection up, and lives, says so: it may begin anew, even before the other
 * one has looked. */
static void who_gives_up_begins_anew(void **state)
{
    static const char *const reasons[] = {NULL, "the test says so"};
    for (unsigned i = 0; i < 2; i++) {
        struct reason why;
        open_both("cells");
        carry_back();
        give_up(reasons[i]);
        assert_int_equal(fabric->connect(ends[IN].fabric, NID, ends[OUT].pid, &why), FABRIC_UP);
        carry_back();
        close_two();
    }
}

/* And the other one may, when it has. What it has left is given back then, unless it had broken the
 * rules. */
static void who_was_given_up_begins_anew(void **state)
{
    static const char *const why[] = {NULL, "the test says so"};
    for (unsigned i = 0; i < 2; i++) {
        open_both("cells");
        give_up(why[i]);
        assert_int_equal(slots_taken(), 1);
        for (unsigned n = 0; n < 1000 && ends[OUT].peer != NULL; n++) {
            fabric->poll(ends[OUT].fabric);
        }
        assert_null(ends[OUT].peer);
        sweep_slots(shm_of(ends[IN].fabric));
        assert_int_equal(slots_taken(), why[i] != NULL);
        connect_end(&ends[OUT]);
        carry_sound_ones();
        close_two();
    }
}

/* A NIC whose slots are all taken can be told nothing: the one that it sends to refuses it, and it
 * sees that when it probes. It leaves the slot, which is another's then. */
static void who_cannot_be_answered_is_refused(void **state)
{
    setenv("PINWHEEL_SHM_PEERS", "2", 1);
    setenv("PINWHEEL_CONNECT_MS", "0", 1);
    open_ends("cells");
    for (unsigned i = 0; i < 2; i++) {
        atomic_store(&shm_of(ends[OUT].fabric)->segment->header->owner[i], OWNER_BANNED);
        shm_of(ends[OUT].fabric)->withheld[i] =
            (struct fabric_address){.nid = NID,
                                    .pid = ends[IN].pid,
                                    .incarnation = shm_of(ends[IN].fabric)->setup.incarnation};
    }
    struct plan plan;
    make_plan(&plan, 8, WHOLE, WHOLE);
    plans[0] = &plan;
    for (unsigned i = 0; i < 4; i++) {
        connect_end(&ends[OUT]);
        assert_true(send_plan_from(&ends[OUT], FABRIC_REQUEST, 0, 0));
        poll_both();
        assert_null(ends[IN].peer);
        peers_probe(shm_of(ends[OUT].fabric));
        for (unsigned n = 0; n < 1000 && ends[OUT].peer != NULL; n++) {
            fabric->poll(ends[OUT].fabric);
        }
        assert_null(ends[OUT].peer);
    }
    assert_false(plan.is_done);
    free_plan(&plan);
    sweep_slots(shm_of(ends[IN].fabric));
    assert_int_equal(slots_taken(), 0);
    for (unsigned i = 0; i < 2; i++) {
        atomic_store(&shm_of(ends[OUT].fabric)->segment->header->owner[i], 0);
    }
    connect_end(&ends[OUT]);
    carry_sound_ones();
    close_two();
    unsetenv("PINWHEEL_SHM_PEERS");
    unsetenv("PINWHEEL_CONNECT_MS");
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        cmocka_set_test_filter(argv[1]);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(banned_slots_come_back),
        cmocka_unit_test(a_slot_that_is_freed_is_not_taken_over),
        cmocka_unit_test(a_slot_taken_over_is_not_swept),
        cmocka_unit_test(a_slot_asked_about_is_not_lost),
        cmocka_unit_test(who_is_closing_may_still_fill_its_slot),
        cmocka_unit_test(who_is_closing_may_still_leave_its_slot),
        cmocka_unit_test(who_gives_up_begins_anew),
        cmocka_unit_test(who_was_given_up_begins_anew),
        cmocka_unit_test(who_cannot_be_answered_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up_folder, tear_down_folder);
}
