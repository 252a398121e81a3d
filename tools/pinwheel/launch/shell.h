/* SPDX-License-Identifier: BSD-3-Clause */
/* The remote shell of a host, and what the agent at its other end is told first. */
#ifndef PINWHEEL_SHELL_H
#define PINWHEEL_SHELL_H

#include "hosts.h"

/* host_start_shell() starts the shell of a host, or, for this one, the agent itself: 0, or -1 or
 * -errno after a line on stderr. */
int host_start_shell(struct hosts *h, struct host *host, const struct hosts_job *job,
                     struct spawn *spawn);

/* host_tell_job() queues what an agent has to know, until it greets. */
bool host_tell_job(struct host *host, const struct hosts_job *job);

#endif
