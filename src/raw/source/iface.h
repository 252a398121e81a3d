/* SPDX-License-Identifier: BSD-3-Clause */
/* What is asked of the kernel about an interface of this network namespace. */
#ifndef RAW_IFACE_H
#define RAW_IFACE_H

#include <stdbool.h>
#include <stdint.h>

/* raw_iface_queues() returns the number of receive queues, 1 if the driver does not say;
 * raw_iface_mtu() the MTU, or -errno. */
unsigned raw_iface_queues(const char *iface);
int raw_iface_mtu(const char *iface);

/* raw_iface_address() stores the interface's own address of the link. 0 or -errno. */
int raw_iface_address(const char *iface, uint8_t address[6]);

/* raw_iface_strips() is true if the interface takes VLAN tags off its frames, as it is set. */
bool raw_iface_strips(const char *iface);

/* raw_iface_gone() is true if this namespace has no interface of that index any more. For threads
 * that spin: raw_iface_gone_now_and_then() asks the kernel once in many calls. */
bool raw_iface_gone(unsigned ifindex);
bool raw_iface_gone_now_and_then(unsigned ifindex, unsigned *calls);

/* raw_iface_has_default() is true if a default route of this namespace, of IPv4 or IPv6, leaves by
 * the interface, or if that cannot be found out. */
bool raw_iface_has_default(const char *iface);

#endif
