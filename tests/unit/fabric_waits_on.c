/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ends of two processes tell each other of the cores on which their threads wait: nothing of
 * one that sleeps, has left, or said so long ago, nor of the own process. The clock is the test's.
 */
#include "fabric_fixture.h"

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CORE = 3, OWN = 5, MS = 1000000 };
static const int64_t now = 5000 * (int64_t)MS;

/* What the other process is told to do. */
struct order {
    enum { CONNECT, WAIT_ON, SLEEP, LEAVE } what;
    int64_t value;
};

struct other {
    pid_t process;
    int to, from;
    uint32_t pid;
};

static uint64_t first_cores(const cpu_set_t *set)
{
    uint64_t cores = 0;
    for (int i = 0; i < 64; i++) {
        cores |= (uint64_t)(CPU_ISSET(i, set) != 0) << i;
    }
    assert_int_equal(CPU_COUNT(set), __builtin_popcountll(cores));
    return cores;
}

/* The cores on which others wait. */
static uint64_t wait_on(const struct end *e, int core, int64_t at)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    fabric->home->waits_on(e->fabric, core, at, &set);
    return first_cores(&set);
}

static void reach(const struct end *e, uint32_t pid)
{
    struct reason why = {""};
    assert_int_equal(fabric->connect(e->fabric, 0x7f000001, pid, &why), FABRIC_UP);
}

static uint64_t obey(const struct order *o)
{
    struct end *e = &ends[IN];
    uint32_t word;
    if (o->what == CONNECT) {
        reach(e, (uint32_t)o->value);
    } else if (o->what == WAIT_ON) {
        return wait_on(e, (int)o->value, now);
    } else if (o->what == SLEEP) {
        for (unsigned i = 0; i < idle_most && !fabric->arm(e->fabric, DOORBELL_FUTEX, &word); i++) {
            fabric->poll(e->fabric);
        }
    }
    return 0;
}

static _Noreturn void be_other(int from, int to)
{
    struct order o = {0};
    open_end(&ends[IN]);
    uint64_t answer = ends[IN].pid;
    while (write(to, &answer, sizeof(answer)) == sizeof(answer) &&
           read(from, &o, sizeof(o)) == sizeof(o) && o.what != LEAVE) {
        answer = obey(&o);
    }
    fabric->close(ends[IN].fabric);
    _exit(o.what == LEAVE ? 0 : 1);
}

static uint64_t answer_of(const struct other *p)
{
    uint64_t answer = 0;
    assert_int_equal(read(p->from, &answer, sizeof(answer)), sizeof(answer));
    return answer;
}

static uint64_t tell(const struct other *p, int what, int64_t value)
{
    struct order o = {.what = what, .value = value};
    assert_int_equal(write(p->to, &o, sizeof(o)), sizeof(o));
    return answer_of(p);
}

/* An end here, OUT, and one in another process, connected both ways. */
static void begin(struct other *p)
{
    struct reason why = {""};
    int to[2], from[2];
#ifdef __SANITIZE_THREAD__
    print_message("skipped: with ThreadSanitizer the forked process does not always live\n");
    skip();
#endif
    setenv("PINWHEEL_LOG", "none", 1);
    assert_int_equal(options_load(&options, why.text, sizeof(why.text)), 0);
    assert_true(pipe(to) == 0 && pipe(from) == 0);
    p->process = fork();
    if (p->process == 0) {
        close(to[1]);
        close(from[0]);
        be_other(to[0], from[1]);
    }
    close(to[0]);
    close(from[1]);
    p->to = to[1];
    p->from = from[0];
    p->pid = (uint32_t)answer_of(p);
    open_end(&ends[OUT]);
    reach(&ends[OUT], p->pid);
    tell(p, CONNECT, ends[OUT].pid);
}

static void end(struct other *p)
{
    int status;
    struct order o = {.what = LEAVE};
    assert_int_equal(write(p->to, &o, sizeof(o)), sizeof(o));
    assert_int_equal(waitpid(p->process, &status, 0), p->process);
    assert_int_equal(status, 0);
    fabric->close(ends[OUT].fabric);
    close(p->to);
    close(p->from);
}

static void both_are_told(void **state)
{
    struct other p;
    begin(&p);
    assert_int_equal(wait_on(&ends[OUT], OWN, now), 0);
    assert_int_equal(tell(&p, WAIT_ON, CORE), 1u << OWN);
    assert_int_equal(wait_on(&ends[OUT], OWN, now), 1u << CORE);
    tell(&p, WAIT_ON, 0);
    assert_int_equal(wait_on(&ends[OUT], -1, now), 1);
    assert_int_equal(tell(&p, WAIT_ON, -1), 0);
    assert_int_equal(wait_on(&ends[OUT], OWN, now), 0);
    end(&p);
}

static void what_is_old_does_not_count(void **state)
{
    struct other p;
    begin(&p);
    tell(&p, WAIT_ON, CORE);
    assert_int_equal(wait_on(&ends[OUT], OWN, now + 5 * MS), 1u << CORE);
    assert_int_equal(wait_on(&ends[OUT], OWN, now + 20 * MS), 0);
    assert_int_equal(wait_on(&ends[OUT], OWN, now - MS), 1u << CORE); /* read a moment before */
    assert_int_equal(wait_on(&ends[OUT], OWN, now - 20 * MS), 0);
    end(&p);
}

static void who_sleeps_waits_nowhere_until_rung(void **state)
{
    struct other p;
    struct plan plan;
    make_plan(&plan, 8, WHOLE, WHOLE);
    plans[0] = &plan; /* the other process has it, too */
    begin(&p);
    tell(&p, WAIT_ON, CORE);
    tell(&p, SLEEP, 0);
    assert_int_equal(wait_on(&ends[OUT], OWN, now), 0);
    assert_true(send_plan(FABRIC_REQUEST, 0, 0));
    assert_int_equal(wait_on(&ends[OUT], OWN, now), 1u << CORE);
    end(&p);
    free_plan(&plan);
}

static void own_ends_do_not_count(void **state)
{
    open_both("cells");
    wait_on(&ends[IN], CORE, now);
    assert_int_equal(wait_on(&ends[OUT], OWN, now), 0);
    close_both();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_are_told),
        cmocka_unit_test(what_is_old_does_not_count),
        cmocka_unit_test(who_sleeps_waits_nowhere_until_rung),
        cmocka_unit_test(own_ends_do_not_count),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
