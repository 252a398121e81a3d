/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions of all benches of the handler library; see jobs.h. */
#include "jobs.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct spin spin;

enum { PAGE = 4096 };

uint8_t *spin_pages(size_t length)
{
    uint8_t *memory = aligned_alloc(PAGE, length);
    if (memory != NULL) {
        memset(memory, 0, length);
    }
    return memory;
}

int spin_open(enum spin_way way)
{
    spin.way = way;
    spin.entry = spin.answer = PTL_INVALID_HANDLE;
    spin.from = spin_pages(SPIN_FROM);
    spin.to = spin_pages(SPIN_TO);
    if (spin.from == NULL || spin.to == NULL) {
        return turn_fail("no memory for messages: %d bytes", SPIN_FROM + SPIN_TO);
    }
    ptl_md_t md = {.start = spin.from,
                   .length = SPIN_FROM,
                   .eq_handle = PTL_EQ_NONE,
                   .ct_handle = PTL_CT_NONE};
    if (link_open() != 0 || link_counter(&spin.arrived) != 0 || link_counter(&spin.over) != 0 ||
        link_counter(&spin.answered) != 0 ||
        !link_ok(PtlMDBind(self.ni, &md, &spin.md), "PtlMDBind")) {
        return -1;
    }
    return link_memory(LINK_COUNTED, SPIN_OVER,
                       PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM | PTL_ME_EVENT_LINK_DISABLE, NULL, 0,
                       &spin.over);
}

int spin_entry(unsigned index, unsigned options, ptl_match_bits_t bits, ptl_match_bits_t ignore,
               void *start, ptl_size_t length, const struct link_count *count,
               const ptl_handlers_t *handlers, ptl_handle_me_t *handle)
{
    ptl_me_t me = {.start = start,
                   .length = length,
                   .ct_handle = count->ct,
                   .uid = PTL_UID_ANY,
                   .options = options | PTL_ME_OP_PUT | PTL_ME_EVENT_CT_COMM |
                              PTL_ME_EVENT_LINK_DISABLE | PTL_ME_EVENT_UNLINK_DISABLE,
                   .match_id.phys = {PTL_NID_ANY, PTL_PID_ANY},
                   .match_bits = bits,
                   .ignore_bits = ignore};
    int code = PtlMEAppendHandlers(self.ni, index, &me, handlers, PTL_PRIORITY_LIST, NULL, handle);
    return link_ok(code, "PtlMEAppendHandlers") ? 0 : -1;
}

int spin_take_out(ptl_handle_me_t *handle)
{
    int code = PTL_OK;
    if (*handle != PTL_INVALID_HANDLE) {
        while ((code = PtlMEUnlink(*handle)) == PTL_IN_USE) {
        }
        *handle = PTL_INVALID_HANDLE;
    }
    return link_ok(code, "PtlMEUnlink") ? 0 : -1;
}

int spin_append(unsigned index, void *start, ptl_size_t length, const ptl_handlers_t *handlers)
{
    return spin_entry(index, 0, SPIN_BITS, 0, start, length, &spin.arrived, handlers, &spin.entry);
}

int spin_append_answer(unsigned options)
{
    return spin_entry(LINK_COUNTED, options, SPIN_ANSWER, 0, spin.to, SPIN_TO, &spin.answered, NULL,
                      &spin.answer);
}

int spin_settle(struct link_count *count)
{
    ptl_ct_event_t value;
    if (!link_ok(PtlCTGet(count->ct, &value), "PtlCTGet")) {
        return -1;
    }
    count->expected = value.success;
    return 0;
}

int spin_unlink(void)
{
    bool out = spin_take_out(&spin.entry) == 0 && spin_take_out(&spin.answer) == 0;
    return out && spin_settle(&spin.arrived) == 0 && spin_settle(&spin.answered) == 0 ? 0 : -1;
}

static int serve_one(const struct turn_work *work, void (*by_cpu)(const struct turn_work *work))
{
    if (link_wait(&spin.arrived, 1) != 0) {
        return -1;
    }
    if (spin.way == WAY_CPU) {
        by_cpu(work);
    }
    return spin_say();
}

int spin_flow(const struct turn_work *work, uint64_t iterations, uint64_t length,
              void (*by_cpu)(const struct turn_work *work))
{
    int rc = 0;
    for (uint64_t i = 0; i < iterations && rc == 0; i++) {
        rc =
            turn_rank() == 1 ? serve_one(work, by_cpu) : spin_send(length) != 0 || spin_hear() != 0;
    }
    return rc == 0 ? 0 : -1;
}

int spin_hpus(unsigned hpus, bool both_cores)
{
    char pin[64], number[16];
    cpu_set_t both;
    CPU_ZERO(&both);
    CPU_SET(turn_core(0), &both);
    CPU_SET(turn_core(1), &both);
    snprintf(number, sizeof(number), "%u", hpus);
    snprintf(pin, sizeof(pin), "%d,%d", turn_core(1), turn_core(0));
    if (setenv("PINWHEEL_HPU_PIN", pin, 1) != 0 || setenv("PINWHEEL_HPUS", number, 1) != 0 ||
        (both_cores && sched_setaffinity(0, sizeof(both), &both) != 0)) {
        return turn_fail("cannot have %s HPUs on cores %s: %s", number, pin, strerror(errno));
    }
    return 0;
}
