/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loops that look for a put of rank 1, which comes TIME ns after the start (run.sh has it by hand):
 *
 *      loops LOOP TIME
 *
 * Rank 0 prints when it has found it, in picoseconds from the start, and what the loop has counted.
 *
 *      pure      looks, and does nothing else
 *      local, global, heap      count their looks in a variable of their own
 *      bounded   gives up after 500 looks, puts to rank 1, and then goes on
 *      compute   compute between two looks
 *      touch     read memory between two looks
 *      now, clock      look at PtlSimNow(), at the clock, and count only what they see there
 *      two       looks at two event queues in turn; the put's is the second one
 *      three     looks at three of them at once
 *      four      looks at a counter, and then at two queues and the counter
 *      memory    looks at the memory that the put writes to
 *      writes    writes a byte to a file between two looks; counts them there
 */
#include "../../examples/start.h"

#include "pinwheel_sim.h"

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

enum { BITS = 1, BOUND = 500 };

static struct start s;
static ptl_handle_ct_t came;
static ptl_handle_eq_t queue[3];
static uint64_t from = 1;
static volatile uint64_t to;
static volatile long global;

static bool has_come(void)
{
    ptl_ct_event_t value;
    check(PtlCTGet(came, &value), "PtlCTGet");
    return value.success != 0;
}

static bool is_in(unsigned i)
{
    ptl_event_t event;
    int rc = PtlEQGet(queue[i], &event);
    check(rc == PTL_EQ_EMPTY ? PTL_OK : rc, "PtlEQGet");
    return rc == PTL_OK;
}

static bool is_in_any(void)
{
    ptl_event_t event;
    unsigned which;
    int rc = PtlEQPoll(queue, 3, 0, &event, &which);
    check(rc == PTL_EQ_EMPTY ? PTL_OK : rc, "PtlEQPoll");
    return rc == PTL_OK;
}

static void put_to(uint32_t rank)
{
    ptl_handle_md_t md = source(&s, &from, 8, PTL_CT_NONE);
    check(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, rank_id(rank), INDEX, BITS, 0, NULL, 0), "PtlPut");
}

static long pure(void)
{
    while (!has_come()) {
    }
    return 0;
}

static long local(void)
{
    long n = 1;
    while (!has_come()) {
        n++;
    }
    return n;
}

static long in_global(void)
{
    for (global = 1; !has_come(); global++) {
    }
    return global;
}

static long heap(void)
{
    volatile long *n = calloc(1, sizeof(*n));
    while (!has_come()) {
        (*n)++;
    }
    return *n + 1;
}

static long bounded(void)
{
    unsigned n = 0;
    while (n < BOUND && !has_come()) {
        n++;
    }
    if (n == BOUND) {
        put_to(1);
    }
    while (!has_come()) {
    }
    return n;
}

static long compute(void)
{
    while (!has_come()) {
        PtlSimCompute(7);
    }
    return 0;
}

static long touch(void)
{
    while (!has_come()) {
        PtlSimTouch(8, 0);
    }
    return 0;
}

static long sees_now(void)
{
    uint64_t begin = PtlSimNow();
    while (!has_come() && PtlSimNow() - begin < 30000000) {
    }
    uint64_t seen = PtlSimNow() - begin;
    while (!has_come()) {
    }
    return (long)seen;
}

static long sees_clock(void)
{
    struct timespec begin, now;
    long passed;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
        passed = (now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec;
    } while (!has_come() && passed < 30000);
    while (!has_come()) {
    }
    return passed;
}

static long two(void)
{
    while (!is_in(0) && !is_in(1)) {
    }
    return 0;
}

static long three(void)
{
    while (!is_in_any()) {
    }
    return 0;
}

static long four(void)
{
    while (!has_come() && !is_in(0) && !is_in(1) && !has_come()) {
    }
    return 0;
}

static long in_memory(void)
{
    while (to == 0) {
        PtlSimPause();
    }
    return 0;
}

static long writes(void)
{
    int fd = open("/tmp", O_TMPFILE | O_WRONLY, 0600);
    while (!has_come()) {
        if (write(fd, "", 1) != 1) {
            return -1;
        }
    }
    return lseek(fd, 0, SEEK_CUR) + 1;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        long (*loop)(void);
    } loops[] = {{"pure", pure},        {"local", local},     {"global", in_global},
                 {"heap", heap},        {"bounded", bounded}, {"compute", compute},
                 {"touch", touch},      {"now", sees_now},    {"clock", sees_clock},
                 {"two", two},          {"three", three},     {"four", four},
                 {"memory", in_memory}, {"writes", writes}};
    ptl_handle_me_t handle;
    start(&s, 1, 0);
    came = counter(&s);
    for (unsigned i = 0; i < 3; i++) {
        check(PtlEQAlloc(s.ni, 64, &queue[i]), "PtlEQAlloc");
    }
    ptl_pt_index_t index;
    check(PtlPTAlloc(s.ni, 0, queue[1], PTL_PT_ANY, &index), "PtlPTAlloc");
    ptl_me_t me = entry((void *)&to, sizeof(to), BITS, came);
    me.options &= ~PTL_ME_EVENT_SUCCESS_DISABLE;
    check(PtlMEAppend(s.ni, index, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    check(PtlMEAppend(s.ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    meet(&s);
    uint64_t begin = PtlSimNow();
    if (s.rank == 1 && argc == 3) {
        ptl_handle_md_t md = source(&s, &from, 8, PTL_CT_NONE);
        PtlSimCompute(strtoul(argv[2], NULL, 10));
        check(PtlPut(md, 0, 8, PTL_NO_ACK_REQ, rank_id(0), index, BITS, 0, NULL, 0), "PtlPut");
    }
    for (size_t i = 0; s.rank == 0 && argc == 3 && i < sizeof(loops) / sizeof(loops[0]); i++) {
        if (strcmp(argv[1], loops[i].name) == 0) {
            long counted = loops[i].loop();
            printf("%llu %ld\n", (unsigned long long)(PtlSimNow() - begin), counted);
        }
    }
    return finish(&s, 0);
}
