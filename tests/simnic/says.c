/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program says to its simulated NIC; one a scene, times in ps:
 *
 *      touch           how long 3,000 B of memory take, read; 1,000 written and 2,000 read; none
 *      touch two       the same of two threads at once, which share the memory
 *      pause           rank 0 looks at memory until a put of rank 1, 5 us later, has changed it:
 *                      when that was; then looks that a thread ends: how many
 *      queue           of a spin_queue.h that is empty: how long a look takes
 *      phases          what the record of the rank has of its phases: name, begun, time
 */
#include "../../examples/start.h"

#include "fabric/sim/mark.h"
#include "pinwheel_sim.h"
#include "spin_queue.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BITS = 1 };

static volatile uint64_t word;

static uint64_t took(void (*what)(void))
{
    uint64_t begin = PtlSimNow();
    what();
    return PtlSimNow() - begin;
}

static void reads(void)
{
    PtlSimTouch(3000, 0);
}

static void copies(void)
{
    PtlSimTouch(2000, 1000);
}

static void nothing(void)
{
    PtlSimTouch(0, 0);
}

static void print(uint64_t ps)
{
    printf("%llu\n", (unsigned long long)ps);
}

static void *beside(void *ps)
{
    *(uint64_t *)ps = took(reads);
    return NULL;
}

static void touch(bool two)
{
    pthread_t thread;
    uint64_t other;
    if (two) {
        pthread_create(&thread, NULL, beside, &other);
        uint64_t own = took(reads);
        pthread_join(thread, NULL);
        print(own);
        print(other);
    } else {
        print(took(reads));
        print(took(copies));
        print(took(nothing));
    }
}

static void *sets(void *arg)
{
    nanosleep(&(struct timespec){0, 3000}, NULL);
    word = 2;
    return NULL;
}

static void pauses(struct start *s)
{
    pthread_t thread;
    static uint64_t one = 1;
    ptl_handle_me_t handle;
    ptl_me_t me = entry((void *)&word, sizeof(word), BITS, PTL_CT_NONE);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    meet(s);
    uint64_t begin = PtlSimNow();
    if (s->rank == 1) {
        PtlSimCompute(5000);
        check(PtlPut(source(s, &one, sizeof(one), PTL_CT_NONE), 0, sizeof(one), PTL_NO_ACK_REQ,
                     rank_id(0), INDEX, BITS, 0, NULL, 0),
              "PtlPut");
        return;
    }
    while (word == 0) {
        PtlSimPause();
    }
    print(PtlSimNow() - begin);
    pthread_create(&thread, NULL, sets, NULL);
    uint64_t looks = 0;
    while (word == 1) {
        PtlSimPause();
        looks++;
    }
    pthread_join(thread, NULL);
    print(looks);
}

static struct spin_queue queue;

static void take(void)
{
    struct spin_queue_request r;
    if (spin_queue_take(&queue, &r)) {
        exit(1);
    }
}

static void empty(void)
{
    static uint64_t memory[64];
    check(spin_queue_open(&queue, memory, sizeof(memory), 2, 64), "spin_queue_open");
    print(took(take));
}

static const struct sim_figures *figures(uint32_t rank)
{
    const char *path = getenv(SIM_VARIABLE);
    int fd = path != NULL ? open(path, O_RDONLY) : -1;
    struct stat s;
    if (fd < 0 || fstat(fd, &s) != 0) {
        return NULL;
    }
    const struct sim_segment *at = mmap(NULL, (size_t)s.st_size, PROT_READ, MAP_SHARED, fd, 0);
    return at != MAP_FAILED ? &sim_place(at, rank)->figures : NULL;
}

static void phases(struct start *s)
{
    const struct sim_figures *f = figures(s->rank);
    if (f == NULL) {
        exit(1);
    }
    PtlSimCompute(1);
    for (int i = 0; i < 3; i++) {
        PtlSimMark("compute");
        PtlSimCompute(10);
        PtlSimMark("exchange");
        check(PtlPut(source(s, (void *)&word, 8, PTL_CT_NONE), 0, 8, PTL_NO_ACK_REQ, rank_id(0),
                     INDEX, BITS, 0, NULL, 0),
              "PtlPut");
        PtlSimCompute(1000);
        PtlSimMark(i == 1 ? "" : NULL);
        PtlSimCompute(7);
    }
    for (int i = 0; i < 40; i++) {
        char name[80];
        snprintf(name, sizeof(name), "phase %d of a name that is longer than a record has room for",
                 i);
        PtlSimMark(name);
        PtlSimCompute(1);
    }
    PtlSimMark(NULL);
    PtlSimFence(); /* what it has counted is shown when its turn is over */
    for (uint32_t i = 0; i < f->phases; i++) {
        struct sim_taken t = sim_phase_taken(f, 0, i);
        if (i < 3 || i >= f->phases - 2) {
            printf("%s: %llu %llu %llu\n", f->phase[i].name, (unsigned long long)f->phase[i].begun,
                   (unsigned long long)t.time, (unsigned long long)t.messages);
        }
    }
}

int main(int argc, char **argv)
{
    struct start s;
    const char *scene = argc > 1 ? argv[1] : "";
    start(&s, 1, 0);
    if (strcmp(scene, "touch") == 0) {
        touch(argc > 2);
    } else if (strcmp(scene, "pause") == 0) {
        pauses(&s);
    } else if (strcmp(scene, "queue") == 0) {
        empty();
    } else if (strcmp(scene, "phases") == 0) {
        phases(&s);
    } else {
        usage(&s, "touch [two]|pause|queue|phases");
    }
    return finish(&s, 0);
}
