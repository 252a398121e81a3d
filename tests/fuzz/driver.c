/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzz target without a fuzzing engine, so that any compiler can build it
 * and the test suite can run a fixed number of inputs:
 *
 *     fuzz_X SEED COUNT [FILE]...    COUNT inputs, numbered from SEED
 *     fuzz_X FILE...                 these files, each once
 *
 * Input number n depends on n and the files alone, so a failure at n is run
 * again by `fuzz_X n 1 FILE...`. Each is one of the files mutated a few times
 * (bits flipped, bytes set to values at the edges, pieces removed, repeated or
 * moved), two of them joined, or random bytes. A target that needs structured
 * inputs offers them with fuzz_seed().
 *
 * With libFuzzer (clang -fsanitize=fuzzer) a target is linked without this file.
 */
#include "../splitmix.h"
#include "fuzz.h"

#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { INPUT_MAX = 65536, SEEDS_MAX = 256 };

struct input {
    size_t length;
    uint8_t bytes[INPUT_MAX];
};

static struct input *seeds[SEEDS_MAX];
static size_t seed_count;
static volatile unsigned long long current;
static const char *program;

static void tell_input(int signal_number)
{
    char text[256];
    int n =
        snprintf(text, sizeof(text), "%s: signal %d at input %llu; again: %s %llu 1 [FILE]...\n",
                 program, signal_number, current, program, current);
    if (write(STDERR_FILENO, text, (size_t)n) < 0) {
        _exit(1);
    }
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void remove_piece(struct input *in, uint64_t *r)
{
    size_t at = splitmix_below(r, in->length), n = 1 + splitmix_below(r, in->length - at);
    memmove(in->bytes + at, in->bytes + at + n, in->length - at - n);
    in->length -= n;
}

/* Inserts `n` bytes taken from `from` (outside the input) at a random place. */
static void insert_piece(struct input *in, uint64_t *r, const uint8_t *from, size_t n)
{
    if (n > INPUT_MAX - in->length) {
        n = INPUT_MAX - in->length;
    }
    size_t at = splitmix_below(r, in->length + 1);
    memmove(in->bytes + at + n, in->bytes + at, in->length - at);
    memcpy(in->bytes + at, from, n);
    in->length += n;
}

static void mutate_once(struct input *in, uint64_t *r)
{
    static const uint8_t edges[] = {0, 1, 0x7f, 0x80, 0xff, '\n', ' ', '=', 'A', '0'};
    static uint8_t piece[INPUT_MAX];
    size_t at = splitmix_below(r, in->length), n;
    switch (in->length == 0 ? 4 : splitmix_below(r, 7)) {
    case 0:
        in->bytes[at] ^= (uint8_t)(1u << splitmix_below(r, 8));
        break;
    case 1:
        in->bytes[at] = edges[splitmix_below(r, sizeof(edges))];
        break;
    case 2:
        in->bytes[at] = (uint8_t)splitmix(r);
        break;
    case 3:
        remove_piece(in, r);
        break;
    case 4:
        n = 1 + splitmix_below(r, 8);
        for (size_t i = 0; i < n; i++) {
            piece[i] = (uint8_t)splitmix(r);
        }
        insert_piece(in, r, piece, n);
        break;
    case 5: /* repeat a piece of it */
        n = 1 + splitmix_below(r, in->length - at);
        memcpy(piece, in->bytes + at, n);
        insert_piece(in, r, piece, n);
        break;
    default: /* one byte many times */
        n = 1 + splitmix_below(r, splitmix_below(r, 16) == 0 ? 4096 : 64);
        memset(piece, in->bytes[at], n);
        insert_piece(in, r, piece, n);
    }
}

static void make_input(struct input *in, uint64_t number)
{
    uint64_t r = number;
    splitmix(&r);
    in->length = 0;
    if (fuzz_seed != NULL && splitmix_below(&r, 2) == 0) {
        in->length = fuzz_seed(splitmix(&r), in->bytes, INPUT_MAX);
    } else if (seed_count > 0 && splitmix_below(&r, 16) != 0) {
        const struct input *s = seeds[splitmix_below(&r, seed_count)];
        memcpy(in->bytes, s->bytes, s->length);
        in->length = s->length;
        if (splitmix_below(&r, 4) == 0) {
            s = seeds[splitmix_below(&r, seed_count)];
            insert_piece(in, &r, s->bytes, s->length);
        }
    } else {
        in->length = splitmix_below(&r, 512);
        for (size_t i = 0; i < in->length; i++) {
            in->bytes[i] = (uint8_t)splitmix(&r);
        }
    }
    for (size_t n = splitmix_below(&r, 8); n > 0; n--) {
        mutate_once(in, &r);
    }
}

/* In memory of its exact length, so that a read beyond it is seen. */
static void run(const uint8_t *bytes, size_t length)
{
    uint8_t *exact = malloc(length > 0 ? length : 1);
    if (exact == NULL) {
        fprintf(stderr, "%s: no memory\n", program);
        exit(1);
    }
    memcpy(exact, bytes, length);
    LLVMFuzzerTestOneInput(exact, length);
    free(exact);
}

static struct input *read_file(const char *path)
{
    FILE *f = fopen(path, "rb");
    struct input *in = malloc(sizeof(*in));
    if (f == NULL || in == NULL) {
        perror(path);
        exit(2);
    }
    in->length = fread(in->bytes, 1, INPUT_MAX, f);
    fclose(f);
    return in;
}

int main(int argc, char **argv)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM};
    program = argv[0];
    if (argc < 2) {
        fprintf(stderr, "usage: %s SEED COUNT [FILE]... | FILE...\n", program);
        return 2;
    }
    if (argc < 3 || !isdigit((unsigned char)argv[1][0])) {
        for (int i = 1; i < argc; i++) {
            struct input *in = read_file(argv[i]);
            run(in->bytes, in->length);
            free(in);
        }
        return 0;
    }
    unsigned long long first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    for (int i = 3; i < argc && seed_count < SEEDS_MAX; i++) {
        seeds[seed_count++] = read_file(argv[i]);
    }
    for (size_t i = 0; i < sizeof(fatal) / sizeof(fatal[0]); i++) {
        signal(fatal[i], tell_input);
    }
    static struct input in;
    for (current = first; current < first + count; current++) {
        alarm(10); /* an input that never ends is a failure as well */
        make_input(&in, current);
        run(in.bytes, in.length);
    }
    alarm(0);
    printf("%s: %llu inputs from %llu\n", program, count, first);
    for (size_t i = 0; i < seed_count; i++) {
        free(seeds[i]);
    }
    return 0;
}
