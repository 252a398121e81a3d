/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sort by all ranks, with sends and receives as in MPI: rank 0 sends each rank a share of
 * numbers, they sort and send them back, rank 0 takes the answers as they come, from anybody,
 * and merges them. Shares are long: the NICs agree on them and bring them, while programs sort.
 *
 *      rank 0 ──"I have n bytes"──► rank 1: the receive matches
 *             ◄──"here is room"──── its NIC
 *      its NIC ──data──►            and then the data goes from NIC to NIC
 *
 *      $ pinwheel run -n 4 ./rendezvous [NUMBERS]
 */
#include "start.h"

#include "rendezvous.h"

enum { DATA = 5, EAGER = 4096, EARLY = 1 << 20, SHARE = 1, SORTED = 2, MOST = 10000000 };

/* One end of all messages; everything that happens to them comes out of one event queue. */
struct end {
    struct start s;
    struct rendezvous r;
};

static void open_end(struct end *e)
{
    ptl_pt_index_t data;
    check(PtlPTAlloc(e->s.ni, 0, e->s.eq, DATA, &data), "PtlPTAlloc");
    check(rendezvous_open(&e->r, e->s.ni, INDEX, data, e->s.eq, rank_id(PTL_RANK_ANY), EAGER,
                          memory(EARLY), EARLY),
          "rendezvous_open");
    meet(&e->s);
}

static void wait_for(struct end *e, struct rendezvous_request *request)
{
    while (!request->done) {
        ptl_event_t event;
        check(PtlEQWait(e->s.eq, &event), "PtlEQWait");
        check(rendezvous_event(&e->r, &event), "rendezvous_event");
    }
    if (request->fail != PTL_NI_OK) {
        fail("a message failed: %d", request->fail);
    }
}

static int by_value(const void *a, const void *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof(x));
    memcpy(&y, b, sizeof(y));
    return (x > y) - (x < y);
}

/* Ranks 1 and up. */
static void sort(struct end *e, uint32_t *number, size_t most)
{
    struct rendezvous_request in, out;
    check(rendezvous_receive(&e->r, &in, number, most * sizeof(*number), rank_id(0), SHARE, 0),
          "rendezvous_receive");
    wait_for(e, &in);
    qsort(number, in.length / sizeof(*number), sizeof(*number), by_value);
    check(rendezvous_send(&e->r, &out, number, in.length, rank_id(0), SORTED), "rendezvous_send");
    wait_for(e, &out);
}

/* Merges `more` into the first `n` of `all`. */
static void merge(uint32_t *all, size_t n, const uint32_t *more, size_t count)
{
    while (count != 0) {
        bool from_all = n != 0 && all[n - 1] > more[count - 1];
        all[n + count - 1] = from_all ? all[n - 1] : more[count - 1];
        n -= from_all;
        count -= !from_all;
    }
}

/* Rank 0: where share `i` of the numbers begins. */
static size_t begin(const struct end *e, size_t numbers, uint32_t i)
{
    return numbers * i / (e->s.size - 1);
}

static int lead(struct end *e, size_t numbers)
{
    uint32_t *number = memory(numbers * sizeof(*number)), *all = memory(numbers * sizeof(*all));
    uint32_t *share = memory(numbers * sizeof(*share)), state = 1;
    struct rendezvous_request *out = memory(e->s.size * sizeof(*out)), in;
    size_t n = 0, wrong = 0;
    for (size_t i = 0; i < numbers; i++) {
        number[i] = state = state * 1664525 + 1013904223;
    }
    for (uint32_t i = 0; i < e->s.size - 1; i++) {
        size_t at = begin(e, numbers, i), length = begin(e, numbers, i + 1) - at;
        check(rendezvous_send(&e->r, &out[i], number + at, length * sizeof(*number), rank_id(i + 1),
                              SHARE),
              "rendezvous_send");
    }
    for (uint32_t i = 0; i < e->s.size - 1; i++) {
        check(rendezvous_receive(&e->r, &in, share, numbers * sizeof(*share), rank_id(PTL_RANK_ANY),
                                 SORTED, 0),
              "rendezvous_receive");
        wait_for(e, &in);
        printf("%zu sorted numbers from rank %u\n", (size_t)in.length / sizeof(*share),
               in.source.rank);
        merge(all, n, share, in.length / sizeof(*share));
        n += in.length / sizeof(*share);
    }
    for (uint32_t i = 0; i < e->s.size - 1; i++) {
        wait_for(e, &out[i]);
    }
    qsort(number, numbers, sizeof(*number), by_value);
    for (size_t i = 0; i < numbers; i++) {
        wrong += i >= n || number[i] != all[i];
    }
    printf("%zu numbers from %u to %u, %zu in the wrong place\n", n, all[0], all[n - 1], wrong);
    return n != numbers || wrong != 0;
}

int main(int argc, char **argv)
{
    static struct end e;
    unsigned long numbers = 100000;
    int status = 0;
    start(&e.s, 2, 0);
    if (argc > 2 || (argc == 2 && !number(argv[1], 1, MOST, &numbers))) {
        usage(&e.s, "[NUMBERS]    1 to 10000000");
    }
    open_end(&e);
    if (e.s.rank == 0) {
        status = lead(&e, numbers);
    } else {
        sort(&e, memory(numbers * sizeof(uint32_t)), numbers);
    }
    return finish(&e.s, status);
}
