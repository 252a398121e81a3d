/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Interfaces of this host, as Portals numbers them: PTL_IFACE_DEFAULT + i is the
 * i-th of a list, and the IPv4 address of an interface is its NID.
 */
#ifndef FABRIC_IFACE_H
#define FABRIC_IFACE_H

#include "base/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iface {
    char name[16];
    uint32_t nid; /* the IPv4 address in host byte order: 127.0.0.1 is 0x7f000001 */
};

/* iface_parse() finds the interfaces that `ifaces` lists: names or local IPv4 addresses, separated
 * by commas; all of 127.0.0.0/8 is local. An empty list stands for the interface of the default
 * IPv4 route, or for loopback if there is none. It stores up to `max` interfaces and returns their
 * number; or writes a line that names the entry and the remedy, and returns -ENODEV: no such
 * interface, or it is down; -EADDRNOTAVAIL: no address of this host, or an interface without one;
 * -EEXIST: listed twice; -EINVAL: an empty entry; or -E2BIG: more than `max`. */
int iface_parse(const char *ifaces, struct iface *out, int max, struct reason *why)
    __attribute__((cold));

/* iface_list() is iface_parse(), and logs the line. */
int iface_list(const char *ifaces, struct iface *out, int max);

/* iface_of() finds the interface with an address; false: this host has none. */
bool iface_of(uint32_t nid, struct iface *out);

/* iface_refuse_beyond() writes why a peer with the address of another host cannot be reached. */
void iface_refuse_beyond(uint32_t nid, struct reason *why);

#endif
