/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random access to memory of another process, in buckets that Firehose has pinned, against
 * process_vm_readv() and process_vm_writev(): GUPS (get, xor, put of 8 bytes) and random puts. What
 * a pin is can be chosen (enum pin). Both ways take turns of some milliseconds; of the turns'
 * ratios the median is printed.
 *
 * Usage: gups [options], see usage().
 */
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { ROUNDS_MOST = 101, RATES = 8, KIB = 1024, MIB = 1024 * KIB };

static const double rates[RATES] = {0.0, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0};

enum pin {
    /* The peer's memory is mapped here as one piece; a pinned bucket is one that may have entries
     * in the page tables, which an unpin removes. */
    PIN_TABLES,
    PIN_MAPPING, /* a bucket is a mapping of its own */
    PIN_LOCK,    /* mlock() at the peer, for which a miss sends a message */
    PINS
};

static const char *const pin_name[PINS] = {"tables", "mapping", "mlock"};

struct bench {
    struct peer peer;
    size_t bucket, bytes; /* of a bucket; of a put, 0: GUPS */
    enum pin pin;
    bool populate; /* a pin takes all page faults of its bucket */
    bool huge;     /* the peer's memory is huge pages */
    unsigned rounds, milliseconds;
    size_t window;
    struct pw_firehose *table; /* whose pins are mappings */
    char *slots;               /* where the buckets are mapped */
    uint32_t *free_slots, free_count;
    uint64_t random;
    char *from; /* the bytes of a put */
};

/* ---- pins here: a table of one node, whose addresses are offsets in the file ---- */

static int move_tables(void *client, const struct pw_firehose_region *unpins, size_t unpin_count,
                       struct pw_firehose_region *pins, size_t pin_count)
{
    struct bench *b = client;
    int rc = 0;
    for (size_t i = 0; i < unpin_count && rc == 0; i++) {
        rc = madvise(b->peer.memory + unpins[i].addr, unpins[i].len, MADV_DONTNEED);
    }
    for (size_t i = 0; i < pin_count && rc == 0 && b->populate; i++) {
        rc = madvise(b->peer.memory + pins[i].addr, pins[i].len, MADV_POPULATE_WRITE);
    }
    return rc == 0 ? 0 : -errno;
}

static int move_mappings(void *client, const struct pw_firehose_region *unpins, size_t unpin_count,
                         struct pw_firehose_region *pins, size_t pin_count)
{
    struct bench *b = client;
    for (size_t i = 0; i < unpin_count; i++) {
        uint32_t slot;
        memcpy(&slot, unpins[i].handle, sizeof(slot));
        b->free_slots[b->free_count++] = slot;
    }
    for (size_t i = 0; i < pin_count; i++) {
        uint32_t slot = b->free_slots[b->free_count - 1];
        void *at = mmap(b->slots + slot * b->bucket, b->bucket, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_FIXED | (b->populate ? MAP_POPULATE : 0), b->peer.file,
                        (off_t)pins[i].addr);
        if (at == MAP_FAILED) {
            return -errno;
        }
        b->free_count--;
        memcpy(pins[i].handle, &slot, sizeof(slot));
    }
    return 0;
}

static int make_slots(struct bench *b, uint64_t buckets)
{
    b->free_slots = calloc(buckets, sizeof(*b->free_slots));
    b->slots = mmap(NULL, (buckets + 1) * b->bucket, PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (b->free_slots == NULL || b->slots == MAP_FAILED) {
        return -1;
    }
    b->slots += b->bucket - (uintptr_t)b->slots % b->bucket;
    for (b->free_count = 0; b->free_count < buckets; b->free_count++) {
        b->free_slots[b->free_count] = b->free_count;
    }
    return 0;
}

static int open_all(struct bench *b, uint64_t buckets)
{
    static const struct pw_firehose_ops ops[] = {{.move = move_tables}, {.move = move_mappings}};
    bool here = b->pin != PIN_LOCK;
    struct pw_firehose_config c = {.flags = PW_FIREHOSE_REDUCED | PW_FIREHOSE_NO_ENV,
                                   .page = b->bucket,
                                   .max_pinnable = (buckets + !here) * b->bucket,
                                   .m = here ? 0 : buckets * b->bucket,
                                   .maxvictim = here ? 0 : b->bucket,
                                   .client = b};
    if (b->pin == PIN_MAPPING && make_slots(b, buckets) != 0) {
        fprintf(stderr, "bench: no %lu mappings: %s\n", (unsigned long)buckets, strerror(errno));
        return -1;
    }
    if (peer_start(&b->peer, b->window, here ? NULL : &c, b->huge ? PEER_HUGE : 0) != 0) {
        return -1;
    }
    b->table = b->peer.table;
    if (here) {
        c.flags |= PW_FIREHOSE_LOCAL_ONLY;
        c.nodes = 1;
        c.ops = &ops[b->pin];
        if (pw_firehose_init(&c, &b->table, NULL) != 0) {
            fprintf(stderr, "bench: no table of %lu buckets\n", (unsigned long)buckets);
            return -1;
        }
        /* what the peer's start has left in the page tables */
        madvise(b->peer.memory, b->window, MADV_DONTNEED);
    }
    return 0;
}

static void close_all(struct bench *b, uint64_t buckets)
{
    if (b->pin != PIN_LOCK) {
        pw_firehose_fini(b->table);
    }
    if (b->pin == PIN_MAPPING) {
        munmap(b->slots - b->bucket, (buckets + 1) * b->bucket);
        free(b->free_slots);
    }
    peer_stop(&b->peer);
}

/* ---- one access ---- */

static uint64_t random_number(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    return *state ^= *state << 17;
}

static uint64_t place(struct bench *b)
{
    size_t unit = b->bytes > 0 ? b->bytes : 8;
    return random_number(&b->random) % (b->window / unit) * unit;
}

static void change(struct bench *b, char *at)
{
    if (b->bytes > 0) {
        memcpy(at, b->from, b->bytes);
    } else {
        *(volatile uint64_t *)(void *)at ^= b->random;
    }
}

static void by_firehose(struct bench *b, uint64_t offset)
{
    struct pw_firehose_request r = {0}, *one = &r;
    size_t n = b->bytes > 0 ? b->bytes : 8;
    uint64_t addr = b->pin == PIN_LOCK ? (uintptr_t)b->peer.memory + offset : offset;
    int rc = b->pin == PIN_LOCK ? peer_pin(&b->peer, addr, n, one)
                                : pw_firehose_local_pin(b->table, addr, n, one);
    if (rc == 0 && b->pin == PIN_MAPPING) {
        uint32_t slot;
        memcpy(&slot, r.handle, sizeof(slot));
        change(b, b->slots + slot * b->bucket + offset % b->bucket);
    } else if (rc == 0) {
        change(b, b->peer.memory + offset);
    }
    if (rc != 0 || (rc = pw_firehose_release(b->table, &one, 1)) != 0) {
        fprintf(stderr, "bench: no pin of %zu bytes: %s\n", n, strerror(-rc));
        exit(1);
    }
}

static void by_process_vm(struct bench *b, uint64_t offset)
{
    uint64_t value = b->random;
    size_t n = b->bytes > 0 ? b->bytes : 8;
    struct iovec here = {b->bytes > 0 ? b->from : (char *)&value, n};
    struct iovec there = {b->peer.memory + offset, n};
    ssize_t got = (ssize_t)n;
    if (b->bytes == 0) {
        got = process_vm_readv(b->peer.pid, &here, 1, &there, 1, 0);
        value ^= b->random;
    }
    if (got != (ssize_t)n || process_vm_writev(b->peer.pid, &here, 1, &there, 1, 0) != (ssize_t)n) {
        fprintf(stderr, "bench: process_vm: %s\n", strerror(errno));
        exit(1);
    }
}

/* Nanoseconds of one access, over a turn. */
static double turn(struct bench *b, void (*access)(struct bench *b, uint64_t offset))
{
    uint64_t begin = nanoseconds(), end, count = 0;
    do {
        for (unsigned i = 0; i < 64; i++) {
            access(b, place(b));
        }
        count += 64;
        end = nanoseconds();
    } while (end - begin < b->milliseconds * UINT64_C(1000000));
    return (double)(end - begin) / (double)count;
}

/* ---- a point of the curve ---- */

struct point {
    double hits, ours, vm, ratio;
};

static void counted(struct bench *b, uint64_t *pins, uint64_t *hits)
{
    struct pw_firehose_stats s;
    pw_firehose_stats(b->table, &s);
    *pins = s.remote.pin + s.local.pin;
    *hits = s.remote.hit + s.local.hit;
}

/* The table has as many buckets as the hit rate wants: accesses are random, so the rate is their
 * part of all. */
static int measure(struct bench *b, double rate, struct point *p)
{
    uint64_t all = b->window / b->bucket, buckets = (uint64_t)(rate * (double)all + 0.5);
    uint64_t pins, hits, pins_before, hits_before;
    double ours[ROUNDS_MOST], vm[ROUNDS_MOST], ratio[ROUNDS_MOST];
    buckets = buckets < 1 ? 1 : buckets;
    if (open_all(b, buckets) != 0) {
        return -1;
    }
    for (uint64_t i = 0; i < buckets; i++) {
        by_firehose(b, i * b->bucket);
    }
    turn(b, by_firehose);
    counted(b, &pins_before, &hits_before);
    for (unsigned i = 0; i < b->rounds; i++) {
        ours[i] = turn(b, by_firehose);
        vm[i] = turn(b, by_process_vm);
        ratio[i] = vm[i] / ours[i];
    }
    counted(b, &pins, &hits);
    qsort(ours, b->rounds, sizeof(double), compare_reals);
    qsort(vm, b->rounds, sizeof(double), compare_reals);
    qsort(ratio, b->rounds, sizeof(double), compare_reals);
    *p = (struct point){(double)(hits - hits_before) / (double)(pins - pins_before),
                        ours[b->rounds / 2], vm[b->rounds / 2], ratio[b->rounds / 2]};
    close_all(b, buckets);
    return 0;
}

/* Between the points of which one is slower than process_vm and one faster the time is linear. */
static double break_even(const struct point *p)
{
    for (unsigned i = 0; i + 1 < RATES; i++) {
        double low = p[i].ours - p[i].vm, high = p[i + 1].ours - p[i + 1].vm;
        if (low > 0 && high <= 0) {
            return p[i].hits + (p[i + 1].hits - p[i].hits) * low / (low - high);
        }
    }
    return p[0].ours <= p[0].vm ? 0 : 1;
}

static int curve(struct bench *b)
{
    struct point p[RATES];
    printf("%s, %zu bytes, pin: %s%s, buckets of %zu KiB%s\n  hit rate  ns by Firehose  ns by "
           "process_vm  times as fast\n",
           b->bytes > 0 ? "random puts" : "GUPS", b->bytes > 0 ? b->bytes : 8, pin_name[b->pin],
           b->populate ? ", populated" : "", b->bucket / KIB, b->huge ? ", huge pages" : "");
    for (unsigned i = 0; i < RATES; i++) {
        if (measure(b, rates[i], &p[i]) != 0) {
            return 1;
        }
        printf("  %8.4f %15.0f %17.0f %14.2f\n", p[i].hits, p[i].ours, p[i].vm, p[i].ratio);
        fflush(stdout);
    }
    printf("  break-even at a hit rate of %.3f\n", break_even(p));
    return 0;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: bench_firehose_gups [-a tables|mapping|mlock] [-b BUCKET_KIB] [-p] [-g] "
            "[-s PUT_BYTES] [-w WINDOW_MIB] [-r ROUNDS] [-t MILLISECONDS]\n"
            "  -a what a pin is [tables]; -p a pin takes all page faults of its bucket;\n"
            "  -g the memory is huge pages; -s random puts of so many bytes, not GUPS\n");
    return 2;
}

static bool read_option(struct bench *b, int option, const char *argument)
{
    unsigned long n = argument != NULL ? strtoul(argument, NULL, 10) : 0;
    switch (option) {
    case 'a':
        for (b->pin = 0; b->pin < PINS && strcmp(pin_name[b->pin], argument) != 0; b->pin++) {
        }
        return b->pin < PINS;
    case 'b':
        b->bucket = n * KIB;
        return b->bucket >= 4 * KIB && (b->bucket & (b->bucket - 1)) == 0;
    case 'p':
        return b->populate = true;
    case 'g':
        return b->huge = true;
    case 's':
        b->bytes = n;
        return true;
    case 'w':
        b->window = n * MIB;
        return n > 0;
    case 'r':
        b->rounds = (unsigned)n;
        return n >= 1 && n <= ROUNDS_MOST;
    case 't':
        b->milliseconds = (unsigned)n;
        return n >= 1;
    default:
        return false;
    }
}

int main(int argc, char **argv)
{
    struct bench b = {
        .bucket = 4 * KIB, .rounds = 9, .milliseconds = 10, .window = 64 * MIB, .random = 88172645};
    for (int o; (o = getopt(argc, argv, "a:b:pgs:w:r:t:")) != -1;) {
        if (!read_option(&b, o, optarg)) {
            return usage();
        }
    }
    if (b.window % b.bucket != 0 || b.bytes > b.bucket ||
        (b.bytes > 0 && b.bucket % b.bytes != 0) || optind < argc) {
        return usage();
    }
    b.from = calloc(1, b.bucket);
    return b.from == NULL ? 1 : curve(&b);
}
