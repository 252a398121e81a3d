/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packed message of 4 MiB is unpacked into blocks of work->size bytes with gaps as long:
 *
 *   handlers   handlers/strided, packet by packet
 *   cpu        a put to memory aside, then a copy a block
 *   plain      a put, and no more: the bound
 *
 * One message at a time; rank 1 answers when its data is in place.
 */
#include "jobs.h"

#include "strided.h"

#include <string.h>

static uint8_t *const *const packed = &spin.from; /* at rank 0 */

static uint8_t *aside(void)
{
    return spin.to + (size_t)2 * SPIN_MESSAGE;
}

static int append_strided(uint64_t length, uint64_t block)
{
    static struct strided_state layout;
    ptl_handlers_t handlers;
    layout = (struct strided_state){
        .stride = (int64_t)(2 * block), .block = block, .blocks = length / block};
    int code = strided_handlers(&layout, 2 * length, &handlers);
    return link_ok(code, "strided_handlers")
               ? spin_append(LINK_COUNTED, spin.to, 2 * length, &handlers)
               : -1;
}

int spin_layout_begin(uint64_t length, uint64_t block)
{
    int rc = 0;
    if (turn_rank() == 0) {
        turn_fill(*packed, length, length + block);
    } else {
        memset(spin.to, 0, SPIN_TO);
        rc = spin.way == WAY_CPU || spin.way == WAY_PLAIN
                 ? spin_append(LINK_COUNTED, aside(), length, NULL)
                 : append_strided(length, block);
    }
    return rc != 0 ? rc : spin_ready();
}

static int begin(const struct turn_work *work)
{
    return spin_layout_begin(SPIN_MESSAGE, work->size);
}

static void unpack(const struct turn_work *work)
{
    uint8_t *to = spin.to;
    const uint8_t *from = aside();
    uint64_t block = work->size;
    for (uint64_t i = 0; i < SPIN_MESSAGE / block; i++, to += 2 * block, from += block) {
        memcpy(to, from, block);
    }
}

static int run(const struct turn_work *work, uint64_t iterations)
{
    return spin_flow(work, iterations, SPIN_MESSAGE, unpack);
}

int spin_layout_check(uint64_t length, uint64_t block)
{
    static uint8_t found[SPIN_MESSAGE];
    if (spin.way == WAY_PLAIN) {
        return turn_check(aside(), length, length + block);
    }
    for (uint64_t i = 0; i < length / block; i++) {
        memcpy(found + i * block, spin.to + 2 * i * block, block);
    }
    return turn_check(found, length, length + block);
}

static int end(const struct turn_work *work, struct turn_result *result)
{
    int rc = turn_rank() == 1 && work->check ? spin_layout_check(SPIN_MESSAGE, work->size) : 0;
    return spin_unlink() != 0 ? -1 : rc;
}

static bool whole(const struct turn_work *work)
{
    return spin_on(work) && work->size > 0 && SPIN_MESSAGE % work->size == 0;
}

static const struct turn_duty duties[] = {{BENCH_SPIN_STRIDED, whole, begin, run, end}};

const struct spin_family spin_layout = {duties, 1,
                                        1u << WAY_HANDLERS | 1u << WAY_CPU | 1u << WAY_PLAIN};
