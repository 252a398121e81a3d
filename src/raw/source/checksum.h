/* SPDX-License-Identifier: BSD-3-Clause */
/* Checksums that a sender on this machine has left to its card. */
#ifndef RAW_CHECKSUM_H
#define RAW_CHECKSUM_H

#include <stdbool.h>
#include <stdint.h>

/* raw_checksum_finish() completes the checksum of a UDP datagram or TCP segment whose sender has
 * left it open: that it holds the sum of the pseudo header says so. All other frames stay as they
 * are. Returns whether it has. */
bool raw_checksum_finish(uint8_t *frame, uint32_t length);

#endif
