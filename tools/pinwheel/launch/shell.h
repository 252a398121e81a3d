/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the remote shell of a host, and tells the agent at its other end about the job. */
#ifndef PINWHEEL_SHELL_H
#define PINWHEEL_SHELL_H

#include "hosts.h"

/* host_start_shell() starts the shell of a host or, if that is this host, the agent itself. Returns
 * 0, or -1 or -errno after a line on stderr. */
int host_start_shell(struct hosts *h, struct host *host, const struct hosts_job *job,
                     struct spawn *spawn);

/* host_tell_job() queues the frames that tell an agent about its job, which are sent when it has
 * greeted. */
bool host_tell_job(struct host *host, const struct hosts_job *job);

#endif
