/* SPDX-License-Identifier: BSD-3-Clause */
/* Waiting for many descriptors, most of which may be absent. */
#ifndef PINWHEEL_WAIT_H
#define PINWHEEL_WAIT_H

#include <poll.h>

/* wait_some() is poll() for those of `count` entries that have a descriptor: poll() itself refuses
 * more entries than RLIMIT_NOFILE, even where most have none. `scratch` has room for as many
 * entries. 0 with each entry's revents, all 0 after a signal; or -errno, with all 0 and after a
 * short nap, so that a caller in a loop does not burn its core. */
int wait_some(struct pollfd *entries, struct pollfd *scratch, nfds_t count, int timeout_ms);

#endif
