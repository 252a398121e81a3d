/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of handlers (handler_run.c). */
#ifndef NIC_SPIN_HANDLER_RUN_H
#define NIC_SPIN_HANDLER_RUN_H

#include "nic/rx.h"

#define PACKET_ALIGN 64 /* of the packets of handlers, in memory */

/* handlers_start() makes the message ready for its handlers; false: memory is short. */
bool handlers_start(struct rx *rx);
/* handlers_go_on() goes on with the call that is set up: its return code, or HPU_WAIT: it is to be
 * gone on with later, if only because no context was free. */
int handlers_go_on(struct rx *rx);
/* handlers_prepare() makes the NIC ready to run handlers: the first ones' need of a watchdog. 0
 * or -errno. */
int handlers_prepare(struct nic *nic);
/* handlers_orphan_ended() notes the end of a call whose NI was closed before. */
void handlers_orphan_ended(struct handler_run *run);

#endif
