/* SPDX-License-Identifier: BSD-3-Clause */
/* Sending and counting by handlers (handler_send.c), as struct hpu_env offers it. */
#ifndef NIC_SPIN_HANDLER_SEND_H
#define NIC_SPIN_HANDLER_SEND_H

#include "hpu/exec.h"

extern const struct hpu_ops handler_ops;

#endif
