/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of protocols and fields; see fields.h. Offsets are those of a frame without tags. */
#include "raw/rules/fields.h"

#include <string.h>

/* RFC 791: version and header length in byte 14; fragment offset and "more fragments" in 20, 21. */
static const struct raw_protocol protocols[] = {
    {"arp", NULL, 1, {{12, 0xffff0000, 0x08060000}}},
    {"ipv4", NULL, 2, {{12, 0xffff0000, 0x08000000}, {14, 0xf0000000, 0x40000000}}},
    {"ipv6", NULL, 2, {{12, 0xffff0000, 0x86dd0000}, {14, 0xf0000000, 0x60000000}}},
    /* IPv4 with a header of 20 bytes, and not a fragment: only there do headers follow at 34 */
    {"ipv4-whole", "ipv4", 2, {{14, 0x0f000000, 0x05000000}, {20, 0x3fff0000, 0}}},
    {"icmp", "ipv4-whole", 1, {{23, 0xff000000, 0x01000000}}},
    {"tcp", "ipv4-whole", 1, {{23, 0xff000000, 0x06000000}}},
    {"udp", "ipv4-whole", 1, {{23, 0xff000000, 0x11000000}}},
    {"tcp6", "ipv6", 1, {{20, 0xff000000, 0x06000000}}},
    {"udp6", "ipv6", 1, {{20, 0xff000000, 0x11000000}}},
    {"icmp6", "ipv6", 1, {{20, 0xff000000, 0x3a000000}}},
    /* SLMP: docs/slmp.md */
    {"slmp", "udp", 1, {{36, 0xffff0000, 9330u << 16}}},
};

static const struct raw_field fields[] = {
    {"eth.dst", NULL, 0, 6, 0, RAW_MAC},
    {"eth.src", NULL, 6, 6, 0, RAW_MAC},
    {"eth.type", NULL, 12, 2, 0, RAW_NUMBER},
    {"arp.op", "arp", 20, 2, 0, RAW_NUMBER},
    {"arp.target", "arp", 38, 4, 0, RAW_IP4},
    {"arp.sender", "arp", 28, 4, 0, RAW_IP4},
    {"ip.header", "ipv4", 14, 1, 0x0f, RAW_NUMBER},
    {"ip.fragment", "ipv4", 20, 2, 0x3fff, RAW_NUMBER},
    {"ip.tos", "ipv4", 15, 1, 0, RAW_NUMBER},
    {"ip.length", "ipv4", 16, 2, 0, RAW_NUMBER},
    {"ip.id", "ipv4", 18, 2, 0, RAW_NUMBER},
    {"ip.ttl", "ipv4", 22, 1, 0, RAW_NUMBER},
    {"ip.proto", "ipv4", 23, 1, 0, RAW_NUMBER},
    {"ip.src", "ipv4", 26, 4, 0, RAW_IP4},
    {"ip.dst", "ipv4", 30, 4, 0, RAW_IP4},
    {"icmp.type", "icmp", 34, 1, 0, RAW_NUMBER},
    {"icmp.code", "icmp", 35, 1, 0, RAW_NUMBER},
    {"icmp.id", "icmp", 38, 2, 0, RAW_NUMBER},
    {"icmp.seq", "icmp", 40, 2, 0, RAW_NUMBER},
    {"tcp.sport", "tcp", 34, 2, 0, RAW_NUMBER},
    {"tcp.dport", "tcp", 36, 2, 0, RAW_NUMBER},
    {"tcp.flags", "tcp", 47, 1, 0, RAW_NUMBER},
    {"udp.sport", "udp", 34, 2, 0, RAW_NUMBER},
    {"udp.dport", "udp", 36, 2, 0, RAW_NUMBER},
    {"udp.length", "udp", 38, 2, 0, RAW_NUMBER},
    {"ip6.next", "ipv6", 20, 1, 0, RAW_NUMBER},
    {"ip6.hops", "ipv6", 21, 1, 0, RAW_NUMBER},
    {"ip6.src", "ipv6", 22, 16, 0, RAW_IP6},
    {"ip6.dst", "ipv6", 38, 16, 0, RAW_IP6},
    {"icmp6.type", "icmp6", 54, 1, 0, RAW_NUMBER},
    {"icmp6.code", "icmp6", 55, 1, 0, RAW_NUMBER},
    {"tcp6.sport", "tcp6", 54, 2, 0, RAW_NUMBER},
    {"tcp6.dport", "tcp6", 56, 2, 0, RAW_NUMBER},
    {"udp6.sport", "udp6", 54, 2, 0, RAW_NUMBER},
    {"udp6.dport", "udp6", 56, 2, 0, RAW_NUMBER},
    {"slmp.flags", "slmp", 42, 2, 0, RAW_NUMBER},
    {"slmp.id", "slmp", 44, 4, 0, RAW_NUMBER},
    {"slmp.offset", "slmp", 48, 4, 0, RAW_NUMBER},
};

static const struct raw_constant constants[] = {
    {"eth.type", "ipv4", 0x0800},  {"eth.type", "arp", 0x0806}, {"eth.type", "ipv6", 0x86dd},
    {"ip.proto", "icmp", 1},       {"ip.proto", "tcp", 6},      {"ip.proto", "udp", 17},
    {"ip6.next", "icmp6", 58},     {"ip6.next", "tcp", 6},      {"ip6.next", "udp", 17},
    {"arp.op", "request", 1},      {"arp.op", "reply", 2},      {"icmp.type", "echo", 8},
    {"icmp.type", "reply", 0},     {"icmp6.type", "echo", 128}, {"slmp.flags", "end", 0x8000},
    {"slmp.flags", "syn", 0x4000},
};

#define COUNT(table) (sizeof(table) / sizeof((table)[0]))

static bool is(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && memcmp(name, text, length) == 0;
}

const struct raw_protocol *raw_protocol_find(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT(protocols); i++) {
        if (is(protocols[i].name, name, length)) {
            return &protocols[i];
        }
    }
    return NULL;
}

const struct raw_field *raw_field_find(const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT(fields); i++) {
        if (is(fields[i].name, name, length)) {
            return &fields[i];
        }
    }
    return NULL;
}

const struct raw_constant *raw_constant_find(const char *field, const char *name, size_t length)
{
    for (size_t i = 0; i < COUNT(constants); i++) {
        if (strcmp(constants[i].field, field) == 0 && is(constants[i].name, name, length)) {
            return &constants[i];
        }
    }
    return NULL;
}

const char *raw_name_at(unsigned n)
{
    if (n < COUNT(protocols)) {
        return protocols[n].name;
    }
    n -= (unsigned)COUNT(protocols);
    return n < COUNT(fields) ? fields[n].name : NULL;
}
