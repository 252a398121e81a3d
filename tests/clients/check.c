/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See check.h.
 */
#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int world_rank, world_size;

static int64_t failures;

enum { PRINTED = 10, GUARD = 64, GUARD_BYTE = 0xa5 };

bool expect(bool good, const char *format, ...)
{
    if (good)
        return true;
    if (++failures <= PRINTED) {
        char text[512];
        va_list arguments;
        va_start(arguments, format);
        vsnprintf(text, sizeof(text), format, arguments);
        va_end(arguments);
        fprintf(stderr, "rank %d: %s\n", world_rank, text);
    }
    return false;
}

/* The guard follows the buffer, the length precedes it. */
void *check_alloc(size_t length)
{
    char *block = malloc(GUARD + length + GUARD);
    if (block == NULL) {
        fprintf(stderr, "rank %d: no memory for %zu bytes\n", world_rank, length);
        MPI_Abort(MPI_COMM_WORLD, 1);
        exit(1);
    }
    memcpy(block, &length, sizeof(length));
    memset(block + GUARD + length, GUARD_BYTE, GUARD);
    return block + GUARD;
}

void check_free(void *buffer, const char *what)
{
    char *block = (char *)buffer - GUARD;
    size_t length;
    memcpy(&length, block, sizeof(length));
    const unsigned char *guard = (const unsigned char *)buffer + length;
    for (int i = 0; i < GUARD; i++)
        if (!expect(guard[i] == GUARD_BYTE, "%s: byte %d behind a buffer of %zu was overwritten",
                    what, i, length))
            break;
    free(block);
}

/* A step of a multiplicative generator: neighbouring seeds give unlike bytes. */
static uint64_t next(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    return x * 0x94d049bb133111ebU + 1;
}

/* The eight bytes at place 8 * i. */
static uint64_t word_at(uint64_t seed, size_t i)
{
    return next(seed * 0x9e3779b97f4a7c15U + i + 1);
}

void fill(void *buffer, size_t length, uint64_t seed)
{
    char *out = buffer;
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = word_at(seed, i / 8);
        memcpy(out + i, &word, length - i < 8 ? length - i : 8);
    }
}

bool filled(const void *buffer, size_t length, uint64_t seed, const char *what)
{
    const unsigned char *in = buffer;
    for (size_t i = 0; i < length; i += 8) {
        uint64_t word = word_at(seed, i / 8);
        size_t n = length - i < 8 ? length - i : 8;
        if (memcmp(in + i, &word, n) != 0)
            return expect(false, "%s: wrong data in bytes %zu to %zu of %zu (first is %#x)", what,
                          i, i + n - 1, length, in[i]);
    }
    return true;
}

void unfill(void *buffer, size_t length)
{
    memset(buffer, 0xee, length);
}

#define AROUND(n) (n) - 1, (n), (n) + 1
const size_t all_sizes[] = {
    0,
    1,
    2,
    3,
    4,
    5,
    AROUND(8),
    13,
    AROUND(16),
    AROUND(32),
    57,
    AROUND(64),
    100,
    AROUND(128),
    AROUND(256),
    AROUND(512),
    1000,
    AROUND(1024),
    AROUND(2048),
    3333,
    AROUND(4096),
    AROUND(8192),
    12345,
    AROUND(16384),
    AROUND(32768),
    AROUND(65536),
    100003,
    AROUND(131072),
    AROUND(262144),
    AROUND(524288),
    1000003,
    AROUND(1048576),
    AROUND(2097152),
    3000017,
    LARGEST - 1,
    LARGEST,
    SIZE_MAX,
};

void pause_ms(int milliseconds)
{
    struct timespec t = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    nanosleep(&t, NULL);
}

static bool wanted(int argc, char **argv, const char *name)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return true;
    return argc == 1;
}

static void run_part(const struct part *part)
{
    double start = MPI_Wtime();
    int64_t before = failures, sum = 0;
    part->run();
    int64_t mine = failures - before;
    MPI_Allreduce(&mine, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (world_rank == 0) {
        printf("%-14s %s, %.2f s\n", part->name, sum == 0 ? "all right" : "WRONG",
               MPI_Wtime() - start);
        fflush(stdout);
    }
}

/* known says whether every name is one of a part; a misspelt one must not pass. */
static bool known(int argc, char **argv, const struct part *parts, int count)
{
    for (int i = 1; i < argc; i++) {
        int j = 0;
        while (j < count && strcmp(argv[i], parts[j].name) != 0)
            j++;
        if (j == count) {
            fprintf(stderr, "%s: no part is called %s\n", argv[0], argv[i]);
            return false;
        }
    }
    return true;
}

int check_main(int argc, char **argv, const struct part *parts, int count)
{
    if (!known(argc, argv, parts, count))
        return 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &world_size);
    for (int i = 0; i < count; i++)
        if (wanted(argc, argv, parts[i].name))
            run_part(&parts[i]);
    int64_t sum = 0;
    MPI_Allreduce(&failures, &sum, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return sum != 0;
}
