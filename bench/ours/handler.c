/* SPDX-License-Identifier: BSD-3-Clause */
/* The time that an empty handler adds. Rank 0 sends a batch and says so beside the library; only
 * then does rank 1, whose library has stood still, take all of it out, and times that. Batches for
 * an entry with a handler alternate with batches for one without, so `extra`, of rank 1, is a
 * difference of neighbours: message 64 puts of 8 bytes; a header handler that returns PROCEED
 * packet one put of several packets through the cells; a payload handler that returns SUCCESS,
 * against the deposit of the same packets The second says what handlers cost only where the copy of
 * the deposit is small beside them: the subject `ours-cells` has packets of 64 bytes. */
#include "empty.h"
#include "link.h"

enum { BATCH = 64, PACKETS_MAX = 16, AT_ONCE = 65536 /* bytes that a put sends in one go */ };

static struct link_count plain[2], handled[2]; /* of messages, of packets */
static uint64_t batches;                       /* sent or taken so far, by both ranks */
static double extra;

static int open_entries(void)
{
    const ptl_handlers_t on_message = {
        .header_handler = empty_header, .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_length = 64};
    const ptl_handlers_t on_packet = {
        .payload_handler = empty_payload, .hpu_mem = PTL_HPU_MEM_NONE, .hpu_initial_length = 64};
    return link_entry(LINK_COUNTED, BENCH_HANDLER_MESSAGE, 0, &plain[0], NULL) != 0 ||
                   link_entry(LINK_COUNTED, LINK_HANDLED + BENCH_HANDLER_MESSAGE, 0, &handled[0],
                              &on_message) != 0 ||
                   link_entry(LINK_COUNTED, BENCH_HANDLER_PACKET, 0, &plain[1], NULL) != 0 ||
                   link_entry(LINK_COUNTED, LINK_HANDLED + BENCH_HANDLER_PACKET, 0, &handled[1],
                              &on_packet) != 0
               ? -1
               : 0;
}

static uint64_t packets(void)
{
    return self.packet * PACKETS_MAX <= AT_ONCE ? PACKETS_MAX : AT_ONCE / self.packet;
}

static int send_batch(unsigned puts, uint64_t size, ptl_match_bits_t bits)
{
    volatile uint64_t *sent = turn_line(0), *taken = turn_line(1);
    for (unsigned i = 0; i < puts; i++) {
        if (!link_ok(link_put(size, 0, LINK_COUNTED, bits), "PtlPut")) {
            return -1;
        }
    }
    *sent = ++batches;
    while (*taken != batches) {
    }
    return 0;
}

static int take_batch(unsigned puts, struct link_count *count, double *seconds)
{
    volatile uint64_t *sent = turn_line(0), *taken = turn_line(1);
    batches++;
    while (*sent != batches) {
    }
    double start = turn_now();
    int rc = link_wait(count, puts);
    *seconds += turn_now() - start;
    *taken = batches;
    return rc;
}

static int compare(uint64_t iterations, unsigned kind, unsigned puts, uint64_t size,
                   ptl_match_bits_t bits, double units)
{
    double seconds[2] = {0, 0};
    for (uint64_t i = 0; i < iterations; i++) {
        int rc = turn_rank() == 0
                     ? send_batch(puts, size, bits) || send_batch(puts, size, LINK_HANDLED + bits)
                     : take_batch(puts, &plain[kind], &seconds[0]) ||
                           take_batch(puts, &handled[kind], &seconds[1]);
        if (rc != 0) {
            return -1;
        }
    }
    extra = (seconds[1] - seconds[0]) / ((double)iterations * units);
    return 0;
}

static int messages(const struct turn_work *work, uint64_t iterations)
{
    return compare(iterations, 0, BATCH, work->size, BENCH_HANDLER_MESSAGE, BATCH);
}

static int payloads(const struct turn_work *work, uint64_t iterations)
{
    return compare(iterations, 1, 1, packets() * self.packet, BENCH_HANDLER_PACKET,
                   (double)packets());
}

static bool small(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size <= 8;
}

static bool packet_sized(const struct turn_work *work)
{
    return work->cores == TURN_TWO_CORES && work->size == self.packet;
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    result->extra = extra;
    return 0;
}

static const struct turn_duty duties[] = {
    {BENCH_HANDLER_MESSAGE, small, NULL, messages, end},
    {BENCH_HANDLER_PACKET, packet_sized, NULL, payloads, end},
};

const struct family family_handler = {open_entries, duties, sizeof(duties) / sizeof(duties[0])};
