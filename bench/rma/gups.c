/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random access to another rank's memory through libpinwheel-rma: GUPS, which is get, xor and put
 * of 8 bytes at random places. Five ways take turns of some milliseconds:
 *
 *      whole      the memory is mapped
 *      buckets    in buckets, each miss maps
 *      library    in buckets, a miss maps if it is worth it: what the library does by itself
 *      messages   by the other rank's interface
 *      kernel     process_vm_readv(), process_vm_writev()
 *
 * A hit rate of h: so many places are in a part of the memory that the buckets hold, the rest is
 * anywhere. For each rate the medians of the turns' ratios to the kernel's are printed, and what
 * share of the accesses did find their bucket. With -p rank 1 polls, instead of sleeping.
 *
 *      pinwheel run -n 2 bench_rma_gups [-p] [-b BUCKET_KIB] [-m MAPPED_MIB] [-w WINDOW_MIB] [-t
 * MS]
 */
#include "times.h"

#include "../../examples/rma.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ROUNDS = 15, RATES = 8, MIB = 1 << 20 };
enum way { WHOLE, BUCKETS, LIBRARY, MESSAGES, KERNEL, WAYS };

static const char *const names[WAYS] = {"whole", "buckets", "library", "messages", "kernel"};
static const double rates[RATES] = {0.0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 1.0};

struct bench {
    struct start s;
    ptl_ni_limits_t limits;
    size_t bucket, lazy, window;
    unsigned milliseconds;
    bool polls; /* rank 1 looks for messages all the time */
    struct pw_rma *rma[WAYS];
    struct pw_rma_key *keys[WAYS];
    pid_t pid;
    uint64_t address, random;
};

static uint64_t next_random(struct bench *b)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    return b->random ^= b->random << 17;
}

static void set(const char *name, size_t value)
{
    char text[32];
    snprintf(text, sizeof(text), "%zu", value);
    setenv(name, text, 1);
}

/* Opens the library as each way wants it. */
static void open_ways(struct bench *b)
{
    struct pw_rma_config config = {1, &b->s.ni, &b->limits, 0};
    unsigned char bytes[PW_RMA_KEY];
    char text[64];
    look_up(&b->s, 1, bytes);
    check_job(pinwheel_job_get(b->s.job, "gups", text, sizeof(text)), b->s.job);
    unsigned long long pid, address;
    if (sscanf(text, "%llu-%llu", &pid, &address) != 2) {
        fail("rank 1 has published no address");
    }
    b->pid = (pid_t)pid;
    b->address = address;
    set("PINWHEEL_RMA_BUCKET", b->bucket);
    set("PINWHEEL_RMA_LAZY", b->lazy);
    for (int w = 0; w < KERNEL; w++) {
        set("PINWHEEL_RMA_MAP", w == WHOLE ? b->window * 2 : 0);
        if (w == BUCKETS) {
            set("PINWHEEL_RMA_LAZY_HITS", 0);
        } else {
            unsetenv("PINWHEEL_RMA_LAZY_HITS");
        }
        expect(pw_rma_open(&config, &b->rma[w]), "pw_rma_open");
        expect(pw_rma_key_open(b->rma[w], bytes, sizeof(bytes), &b->keys[w]), "pw_rma_key_open");
        expect(pw_rma_key_limit(b->keys[w], w == MESSAGES ? PW_RMA_NATIVE : PW_RMA_DIRECT),
               "pw_rma_key_limit");
        if ((pw_rma_path(b->keys[w], PW_RMA_GET, PW_RMA_UINT8) == PW_RMA_DIRECT) !=
            (w != MESSAGES)) {
            fail("the way %s is not there", names[w]);
        }
    }
}

static void one(struct bench *b, enum way w, uint64_t offset)
{
    uint64_t word = 0;
    if (w == KERNEL) {
        struct iovec here = {&word, 8}, there = {(void *)(uintptr_t)(b->address + offset), 8};
        if (process_vm_readv(b->pid, &here, 1, &there, 1, 0) != 8) {
            fail("process_vm_readv: %s", strerror(errno));
        }
        word ^= offset;
        if (process_vm_writev(b->pid, &here, 1, &there, 1, 0) != 8) {
            fail("process_vm_writev: %s", strerror(errno));
        }
        return;
    }
    struct pw_rma_peer *peer = pw_rma_key_peer(b->keys[w]);
    expect(pw_rma_get(b->keys[w], &word, 8, offset, NULL), "pw_rma_get");
    expect(pw_rma_flush(peer), "pw_rma_flush");
    word ^= offset;
    expect(pw_rma_put(b->keys[w], &word, 8, offset, NULL), "pw_rma_put");
    expect(pw_rma_flush(peer), "pw_rma_flush");
}

/* Nanoseconds of an update, in a turn. */
static double turn(struct bench *b, enum way w, double rate)
{
    size_t hot = b->lazy / 2;
    double begin = now(), end = begin + 1e-3 * b->milliseconds, t;
    uint64_t n = 0;
    do {
        for (int i = 0; i < 64; i++, n++) {
            bool hit = (double)(next_random(b) >> 11) * 0x1p-53 < rate;
            uint64_t at = next_random(b) % (hit ? hot : b->window) / 8 * 8;
            one(b, w, at);
        }
        t = now();
    } while (t < end);
    return (t - begin) / (double)n * 1e9;
}

static void measure(struct bench *b)
{
    printf(
        "window %zu MiB, buckets of %zu KiB, %zu of them; times as fast as the kernel (medians of "
        "%d turns)\n  rate  kernel ns",
        b->window / MIB, b->bucket / 1024, b->lazy / b->bucket, ROUNDS);
    for (int w = 0; w < KERNEL; w++) {
        printf("  %8s", names[w]);
    }
    printf("  hits   mapped\n");
    for (int r = 0; r < RATES; r++) {
        double ratio[WAYS][ROUNDS], kernel[ROUNDS];
        struct pw_rma_statistics before, after;
        for (int w = 0; w < KERNEL; w++) { /* to the state that it will have */
            turn(b, (enum way)w, rates[r]);
        }
        pw_rma_statistics(b->rma[BUCKETS], &before);
        for (int i = 0; i < ROUNDS; i++) {
            kernel[i] = turn(b, KERNEL, rates[r]);
            for (int w = 0; w < KERNEL; w++) {
                ratio[w][i] = kernel[i] / turn(b, (enum way)w, rates[r]);
            }
        }
        pw_rma_statistics(b->rma[BUCKETS], &after);
        double hits = (double)(after.bucket_hits - before.bucket_hits);
        double maps = (double)(after.bucket_maps - before.bucket_maps);
        printf("  %4.2f  %9.0f", rates[r], median(kernel, ROUNDS));
        for (int w = 0; w < KERNEL; w++) {
            printf("  %8.2f", median(ratio[w], ROUNDS));
        }
        printf("  %.3f\n", hits / (hits + maps));
        fflush(stdout);
    }
}

/* Polls until rank 0 is through, which puts a one behind the window. */
static void poll_until(const struct bench *b, const volatile uint64_t *over)
{
    ptl_handle_eq_t eq;
    ptl_event_t event;
    check(PtlEQAlloc(b->s.ni, 8, &eq), "PtlEQAlloc");
    while (*over == 0) {
        PtlEQGet(eq, &event);
    }
    check(PtlEQFree(eq), "PtlEQFree");
}

static void close_ways(struct bench *b)
{
    for (int w = 0; w < KERNEL; w++) {
        pw_rma_key_close(b->keys[w]);
        expect(pw_rma_close(b->rma[w]), "pw_rma_close");
    }
}

int main(int argc, char **argv)
{
    static struct bench b = {.bucket = 64 << 10,
                             .lazy = 16 * MIB,
                             .window = 256 * MIB,
                             .milliseconds = 8,
                             .random = 88172645463325252u};
    int option;
    while ((option = getopt(argc, argv, "b:m:w:t:p")) != -1) {
        size_t value = strtoull(optarg != NULL ? optarg : "", NULL, 10);
        switch (option) {
        case 'b':
            b.bucket = value << 10;
            break;
        case 'm':
            b.lazy = value * MIB;
            break;
        case 'w':
            b.window = value * MIB;
            break;
        case 't':
            b.milliseconds = (unsigned)value;
            break;
        case 'p':
            b.polls = true;
            break;
        default:
            fprintf(stderr,
                    "usage: gups [-p] [-b BUCKET_KIB] [-m MAPPED_MIB] [-w WINDOW_MIB] [-t MS]\n");
            return 2;
        }
    }
    struct pw_rma *rma;
    struct pw_rma_region *region = NULL;
    uint64_t *over = NULL;
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    rma_start(&b.s, &rma);
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL,
                    &b.limits, &b.s.ni),
          "PtlNIInit");
    if (b.s.rank == 1) {
        unsigned char bytes[PW_RMA_KEY];
        char text[64];
        void *memory;
        expect(pw_rma_allocate(rma, b.window + 8, PW_RMA_READ | PW_RMA_WRITE, &memory, &region),
               "pw_rma_allocate");
        expect(pw_rma_key_pack(region, bytes, sizeof(bytes)), "pw_rma_key_pack");
        publish(&b.s, bytes);
        over = (void *)((char *)memory + b.window);
        snprintf(text, sizeof(text), "%llu-%llu", (unsigned long long)getpid(),
                 (unsigned long long)(uintptr_t)memory);
        check_job(pinwheel_job_put(b.s.job, "gups", text), b.s.job);
    }
    meet(&b.s);
    if (b.s.rank == 0) {
        open_ways(&b);
        measure(&b);
        const uint64_t one_word = 1;
        expect(pw_rma_put(b.keys[WHOLE], &one_word, 8, b.window, NULL), "pw_rma_put");
        close_ways(&b);
    } else if (b.polls && over != NULL) {
        poll_until(&b, over);
    }
    meet(&b.s);
    if (region != NULL) {
        expect(pw_rma_unregister(region), "pw_rma_unregister");
    }
    PtlNIFini(b.s.ni);
    rma_finish(&b.s, rma);
    return finish(&b.s, 0);
}
