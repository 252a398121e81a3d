/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The host of a handler that `pinwheel hpu` runs alone: the memory and counters that its calls
 * reach.
 *
 *      entry    the entry's memory, PTL_ME_HOST_MEM       peers    what all peers hold, in one
 *      handler  handler_host_mem, PTL_HANDLER_HOST_MEM             piece, by remote offset
 *      counts   counters of the host, by handle, made when they are first named
 *      message  the message's own memory; its header is what the handler is called with, or what
 *               --set says of it
 *
 * A put or an atomic is done at once, whatever its target and match bits are. A get or fetch from
 * beyond `peers` fails with PTL_FAIL; a put to there is lost, and its handler is not told. The host
 * has no triggered operations and no events.
 */
#ifndef PINWHEEL_HPU_HOST_H
#define PINWHEEL_HPU_HOST_H

#include "hpu/exec.h"
#include "hpu/output.h"

struct hpu_range {
    uint8_t *bytes; /* aligned to 64 bytes */
    size_t size;
};

enum { HPU_HOST_COUNTS = 16 };

struct hpu_host_count {
    ptl_handle_ct_t ct;
    ptl_ct_event_t value;
};

struct hpu_host {
    struct hpu_range entry, handler, peers, message;
    struct hpu_host_count counts[HPU_HOST_COUNTS];
    int count_count;
    uint64_t lost; /* puts and atomics that went beyond `peers` */
    struct hpu_counter counters[PTL_SPIN_COUNTERS];
    struct hpu_output output;
};

/* hpu_host_serve() makes the calls of a handler with the environment `env` reach the host, which
 * must stay as long as the handler runs. The caller sets the HPU memory in `env`. */
void hpu_host_serve(struct hpu_host *host, struct hpu_env *env, size_t max_payload);

#endif
