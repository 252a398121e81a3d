/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps rules from cutting off who is logged in by the network; see guard.h. */
#include "raw/source/guard.h"

#include "raw/source/iface.h"

#include <stdio.h>

/* A frame without which one cannot log in to a host, and which of its bytes make it one. */
enum { FRAME = RAW_REACH };
struct login {
    const char *what;
    uint8_t bytes[FRAME];
    bool fixed[FRAME];
};

static void fix(struct login *l, unsigned at, uint8_t byte)
{
    l->bytes[at] = byte;
    l->fixed[at] = true;
}

/* ARP, or TCP over IPv4 from or to port 22. */
static void make(struct login *l, unsigned kind)
{
    enum { ARP, TO_SSH };
    *l = (struct login){.what = kind == ARP ? "ARP" : "ssh"};
    fix(l, 12, 0x08);
    fix(l, 13, kind == ARP ? 0x06 : 0x00);
    if (kind != ARP) {
        unsigned port = kind == TO_SSH ? 36 : 34;
        fix(l, 14, 0x45);
        fix(l, 20, 0);
        fix(l, 21, 0);
        fix(l, 23, 6);
        fix(l, port, 0);
        fix(l, port + 1, 22);
    }
}

/* Writes the least value that a rule takes to the bytes that may be any. */
static void bend(struct login *l, const struct raw_rule *r)
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned shift = r->little ? 8 * i : 24 - 8 * i, at = r->offset + i;
        uint8_t mask = (uint8_t)(r->mask >> shift);
        if (mask != 0 && at < FRAME && !l->fixed[at]) {
            l->bytes[at] = (uint8_t)((l->bytes[at] & ~mask) | ((r->start >> shift) & mask));
        }
    }
}

/* Makes the frame one that the set matches, if it can: of each clause the first rule that it can
 * be made to fit. */
static void bend_to_set(struct login *l, const struct raw_set *set)
{
    for (unsigned c = 0; c < set->count; c++) {
        bool fits = false;
        for (unsigned r = 0; r < set->clause[c].count && !fits; r++) {
            struct login bent = *l;
            bend(&bent, &set->clause[c].rule[r]);
            fits = raw_rule_true(&set->clause[c].rule[r], bent.bytes, FRAME);
            *l = fits ? bent : *l;
        }
    }
}

/* Whether rules take such a frame from the kernel; what it is. Each set is asked for a frame made
 * for it, so addresses in rules do not hide that. */
static const char *takes_login(const struct raw_rules *rules)
{
    for (unsigned kind = 0; kind < 3; kind++) {
        for (unsigned s = 0; s < rules->count; s++) {
            struct login l;
            make(&l, kind);
            bend_to_set(&l, &rules->set[s]);
            if (raw_action(rules, raw_match(rules, l.bytes, FRAME)) != RAW_TO_KERNEL) {
                return l.what;
            }
        }
    }
    return NULL;
}

int raw_guard(const char *iface, const struct raw_rules *rules, bool yes, char error[RAW_ERROR])
{
    const char *takes = takes_login(rules);
    if (yes || takes == NULL || !raw_iface_has_default(iface)) {
        return 0;
    }
    snprintf(error, RAW_ERROR,
             "%s has the default route, and the rules take %s from it: with --yes, if nobody is "
             "logged in that way",
             iface, takes);
    return -1;
}

bool raw_guard_tags(const char *iface, const struct raw_rules *rules)
{
    enum { TYPE = 12 };
    for (unsigned s = 0; s < rules->count; s++) {
        for (unsigned c = 0; c < rules->set[s].count; c++) {
            const struct raw_rule *r = &rules->set[s].clause[c].rule[0];
            uint32_t type = r->start >> 16;
            if (r->offset == TYPE && !r->little && (type == 0x8100 || type == 0x88a8)) {
                return raw_iface_strips(iface);
            }
        }
    }
    return false;
}
