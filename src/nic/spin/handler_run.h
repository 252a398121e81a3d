/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of handlers (handler_run.c). */
#ifndef NIC_SPIN_HANDLER_RUN_H
#define NIC_SPIN_HANDLER_RUN_H

#include "nic/rx.h"

#define PACKET_ALIGN 64 /* alignment of the packets that handlers get, in memory */

/* handlers_start() sets up struct handler_run for a message; false: memory is short. */
bool handlers_start(struct rx *rx);
/* handlers_go_on() runs the call that is set up, or goes on with it. It returns the handler's code,
 * or HPU_WAIT: the caller must call it again later, as the handler is suspended or no context was
 * free. */
int handlers_go_on(struct rx *rx);
/* handlers_prepare() makes the NIC ready for its first handlers: starts the watchdog. 0 or
 * -errno. */
int handlers_prepare(struct nic *nic);
/* handlers_orphan_ended() notes the end of a call whose NI was closed before. */
void handlers_orphan_ended(struct handler_run *run);

#endif
