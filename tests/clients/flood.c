/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * More messages than a receiver is ready for: it does not look for a while, so
 * they are all unexpected, fill what is set aside for them, and the transport's
 * flow control has to hold the senders back. Nothing may be lost, doubled or
 * overtaken. Any number of processes from 2.
 *
 * A message is an array of 64-bit words: sender << 40 | number, then data.
 */
#include "check.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* How many messages all senders have handed to MPI: in memory that the processes share, since rank
 * 0 looks at it without a call of MPI. */
static atomic_long *poured;

static void share_poured(void)
{
    char name[] = "/dev/shm/pw-flood-XXXXXX";
    int file = world_rank == 0 ? mkstemp(name) : -1;
    bool good = world_rank != 0 || (file != -1 && ftruncate(file, sizeof(*poured)) == 0);
    MPI_Bcast(name, sizeof(name), MPI_CHAR, 0, MPI_COMM_WORLD);
    if (world_rank != 0)
        file = open(name, O_RDWR | O_CLOEXEC);
    if (good && file != -1)
        poured = mmap(NULL, sizeof(*poured), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (!good || file == -1 || (void *)poured == MAP_FAILED) {
        fprintf(stderr, "flood: %s cannot be shared: %m\n", name);
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    close(file);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0)
        unlink(name);
}

/* Sleeps until the senders are held back, or done: until they have sent nothing for `asleep_ms`.
 * Senders that the machine gives no core to have sent less than `begun` messages. */
static void sleep_until_full(long begun, int asleep_ms)
{
    long before = -1, now = 0;
    for (int waits = 0; (now != before || now < begun) && waits < 50; waits++) {
        before = now;
        pause_ms(asleep_ms);
        now = atomic_load(poured);
    }
}

static uint64_t label(int from, int number)
{
    return (uint64_t)from << 40 | (uint64_t)number;
}

static void compose(uint64_t *message, int words, int from, int number)
{
    message[0] = label(from, number);
    fill(message + 1, (size_t)(words - 1) * 8, message[0]);
}

static bool composed(const uint64_t *message, int words, int from, int number, const char *what)
{
    return expect(message[0] == label(from, number), "%s: message %d of %d has label %#lx", what,
                  number, from, (unsigned long)message[0]) &&
           filled(message + 1, (size_t)(words - 1) * 8, message[0], what);
}

/* Rank 0 takes `count` messages of each other process as they come. */
static void drain(int count, int words, const char *what)
{
    uint64_t *message = check_alloc((size_t)words * 8);
    int *next = calloc((size_t)world_size, sizeof(*next));
    bool good = true;
    for (int i = 0; i < count * (world_size - 1) && good; i++) {
        MPI_Status status;
        MPI_Recv(message, words, MPI_UINT64_T, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD,
                 &status);
        int from = status.MPI_SOURCE;
        good = composed(message, words, from, next[from]++, what);
    }
    if (!good)
        MPI_Abort(MPI_COMM_WORLD, 1); /* the rest has no meaning, and may never come */
    free(next);
    check_free(message, what);
}

/* Everybody but rank 0 sends, with up to `window` sends under way. */
static void pour(int count, int words, int window)
{
    uint64_t *messages = check_alloc((size_t)words * 8 * (size_t)window);
    MPI_Request *requests = malloc((size_t)window * sizeof(*requests));
    for (int i = 0; i < window; i++)
        requests[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < count; i++) {
        int slot = i % window;
        uint64_t *message = messages + (size_t)slot * (size_t)words;
        MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
        compose(message, words, world_rank, i);
        MPI_Isend(message, words, MPI_UINT64_T, 0, i % 5, MPI_COMM_WORLD, &requests[slot]);
        atomic_fetch_add(poured, 1);
    }
    MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
    free(requests);
    check_free(messages, "pour");
}

static void flood(const char *what, int count, int words, int window, int asleep_ms)
{
    if (poured == NULL)
        share_poured();
    if (world_rank == 0)
        atomic_store(poured, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (world_rank == 0) {
        sleep_until_full(count < 1000 ? window : 1000, asleep_ms);
        drain(count, words, what);
    } else {
        pour(count, words, window);
    }
    MPI_Barrier(MPI_COMM_WORLD);
}

static void small(void)
{
    flood("small", 50000, 1, 64, 500);
}

static void wide(void)
{
    flood("wide", 20000, 8, 4000, 300); /* more under way than an event queue holds */
}

static void medium(void)
{
    /* Nearly as large as eager messages may be. These are 80 MB, more than the 64 MiB that Open
     * MPI's mtl sets aside for unexpected ones. */
    flood("medium", 40000, 250, 16, 300);
}

static void large(void)
{
    flood("large", 100, 1 << 16, 8, 300);
}

static void blocking(void)
{
    flood("blocking", 20000, 4, 1, 200);
}

/* All send to all, and receive only when their own sends are started. */
static void crossing(void)
{
    enum { MESSAGES = 3000, WORDS = 16 };
    size_t all = (size_t)world_size * MESSAGES;
    uint64_t *out = check_alloc(all * WORDS * 8), *in = check_alloc(WORDS * 8);
    MPI_Request *requests = malloc(all * sizeof(*requests));
    size_t k = 0;
    for (int i = 0; i < MESSAGES; i++)
        for (int to = 0; to < world_size; to++, k++) {
            compose(out + k * WORDS, WORDS, world_rank, i);
            MPI_Isend(out + k * WORDS, WORDS, MPI_UINT64_T, to, 1, MPI_COMM_WORLD, &requests[k]);
        }
    for (int from = world_size - 1; from >= 0; from--)
        for (int i = 0; i < MESSAGES; i++) {
            MPI_Recv(in, WORDS, MPI_UINT64_T, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!composed(in, WORDS, from, i, "crossing"))
                MPI_Abort(MPI_COMM_WORLD, 1);
        }
    MPI_Waitall((int)all, requests, MPI_STATUSES_IGNORE);
    free(requests);
    check_free(out, "crossing, sent");
    check_free(in, "crossing, received");
}

/* Rank 0 has receives posted for half of what comes, in no order that helps. */
static void half_posted(void)
{
    enum { MESSAGES = 4000 };
    int senders = world_size - 1;
    if (world_rank > 0) {
        for (int i = 0; i < MESSAGES; i++) {
            uint64_t word = label(world_rank, i);
            MPI_Send(&word, 1, MPI_UINT64_T, 0, i, MPI_COMM_WORLD);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        return;
    }
    uint64_t *words = malloc((size_t)senders * MESSAGES * sizeof(*words));
    MPI_Request *requests = malloc((size_t)senders * MESSAGES * sizeof(*requests));
    for (int pass = 1; pass >= 0; pass--) {
        for (int i = MESSAGES - 2 + pass; i >= 0; i -= 2)
            for (int s = 0; s < senders; s++)
                MPI_Irecv(&words[i * senders + s], 1, MPI_UINT64_T, s + 1, i, MPI_COMM_WORLD,
                          &requests[i * senders + s]);
        pause_ms(100);
    }
    MPI_Waitall(senders * MESSAGES, requests, MPI_STATUSES_IGNORE);
    for (int i = 0; i < senders * MESSAGES; i++)
        if (!expect(words[i] == label(i % senders + 1, i / senders),
                    "half_posted: tag %d of %d has %#lx", i / senders, i % senders + 1,
                    (unsigned long)words[i]))
            break;
    free(words);
    free(requests);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    static const struct part parts[] = {
        {"small", small},
        {"wide", wide},
        {"medium", medium},
        {"large", large},
        {"blocking", blocking},
        {"crossing", crossing},
        {"half_posted", half_posted},
    };
    return check_main(argc, argv, parts, sizeof(parts) / sizeof(parts[0]));
}
