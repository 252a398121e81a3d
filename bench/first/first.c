/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the first messages of a connection cost against later ones. Each iteration is a pair of
 * fresh processes, a child of either rank, which meet and then put messages of `size` to each
 * other, windows of WINDOW in turns. Memory of their own is touched beforehand: what is new is the
 * connection.
 *
 *     child of rank 0 ── 1,000 there, 1,000 back ── LATER ── 1,000 there, 1,000 back ──►
 *                        the first ones                      the later ones
 */
#include "link.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FIRST = 1000, LATER = 4000, WINDOW = 20, BITS = 77 };

/* The message of the child to its parent. */
struct told {
    double first, later; /* seconds a message */
    bool done;
};
static struct told *told;
static double sum_first, sum_ratio;
static uint64_t runs;

static int send_window(uint64_t size)
{
    for (unsigned i = 0; i < WINDOW; i++) {
        if (!link_ok(link_put(size, i, LINK_COUNTED, BITS), "PtlPut")) {
            return -1;
        }
    }
    return 0;
}

static int messages(struct link_count *counted, uint64_t size, unsigned count, double *each)
{
    double start = turn_now();
    for (unsigned i = 0; i < count; i += WINDOW) {
        bool first = turn_rank() == 0;
        if ((first && send_window(size) != 0) || link_wait(counted, WINDOW) != 0 ||
            (!first && send_window(size) != 0)) {
            return -1;
        }
    }
    *each = (turn_now() - start) / (2.0 * count);
    return 0;
}

static int live(const struct turn_work *work)
{
    struct link_count counted;
    double between;
    if (link_open() != 0 || link_entry(LINK_COUNTED, BITS, 0, &counted, NULL) != 0) {
        return -1;
    }
    memset(self.out, 1, WINDOW * link_stride(work->size));
    memset(self.in, 1, WINDOW * link_stride(work->size));
    if (link_connect() != 0 || messages(&counted, work->size, FIRST, &told->first) != 0 ||
        messages(&counted, work->size, LATER, &between) != 0 ||
        messages(&counted, work->size, FIRST, &told->later) != 0) {
        return -1;
    }
    char byte = 0;
    if (turn_exchange(&byte, 1, &byte, 1) != 1) { /* both have what the other sent */
        return -1;
    }
    PtlNIFini(self.ni);
    PtlFini();
    told->done = true;
    return 0;
}

static int begin(const struct turn_work *work)
{
    sum_first = sum_ratio = 0;
    runs = 0;
    return 0;
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    for (uint64_t i = 0; i < iterations; i++) {
        *told = (struct told){0};
        pid_t child = fork();
        if (child == 0) {
            _exit(live(work) == 0 ? 0 : 1);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || !told->done) {
            return turn_fail("a fresh process did not finish its messages");
        }
        sum_first += told->first;
        sum_ratio += told->first / told->later;
        runs++;
    }
    return 0;
}

static int end_first(const struct turn_work *work, struct turn_result *result)
{
    result->extra = sum_first / (double)runs;
    return 0;
}

static int end_ratio(const struct turn_work *work, struct turn_result *result)
{
    result->extra = sum_ratio / (double)runs;
    return 0;
}

static bool supports(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && WINDOW * link_stride(work->size) <= LINK_BUFFERS;
}

int main(void)
{
    static const struct turn_duty duties[] = {
        {BENCH_FIRST, supports, begin, run, end_first},
        {BENCH_FIRST_RATIO, supports, begin, run, end_ratio},
    };
    told = mmap(NULL, sizeof(*told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (told == MAP_FAILED || turn_join(-1) < 0) {
        return 1;
    }
    return turn_serve(duties, sizeof(duties) / sizeof(duties[0])) == 0 ? 0 : 1;
}
