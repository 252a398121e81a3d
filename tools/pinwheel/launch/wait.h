/* SPDX-License-Identifier: BSD-3-Clause */
/* poll() for many entries, most of which may have no descriptor. */
#ifndef PINWHEEL_WAIT_H
#define PINWHEEL_WAIT_H

#include <poll.h>

/* wait_some() is poll() for those of `count` entries that have a descriptor: poll() itself refuses
 * more entries than RLIMIT_NOFILE. `scratch` has room for `count` entries. It returns 0 with each
 * entry's revents, which are all 0 after a signal; or -errno, with all 0, after a short sleep, so
 * that a caller in a loop does not use up a core. */
int wait_some(struct pollfd *entries, struct pollfd *scratch, nfds_t count, int timeout_ms);

#endif
