/* SPDX-License-Identifier: BSD-3-Clause */
/* Keeps rules from cutting off who is logged in by the network; see guard.h. */
#include "raw/source/guard.h"

#include "raw/source/iface.h"

#include <stdio.h>

/* Whether rules take frames from the kernel without which one cannot log in to a host: ARP, or TCP
 * from or to port 22. Each set is asked for a frame made for it, so addresses in rules do not hide
 * that. */
static const char *takes_login(const struct raw_rules *rules)
{
    static const struct {
        const char *what;
        uint8_t type[2], proto;
        uint16_t sport, dport;
    } frames[] = {{"ARP", {0x08, 0x06}, 0, 0, 0},
                  {"ssh", {0x08, 0x00}, 6, 50000, 22},
                  {"ssh", {0x08, 0x00}, 6, 22, 50000}};
    for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++) {
        uint8_t f[100] = {[12] = frames[i].type[0], [13] = frames[i].type[1], [14] = 0x45};
        f[23] = frames[i].proto;
        f[34] = (uint8_t)(frames[i].sport >> 8);
        f[35] = (uint8_t)frames[i].sport;
        f[36] = (uint8_t)(frames[i].dport >> 8);
        f[37] = (uint8_t)frames[i].dport;
        if (raw_action(rules, raw_match(rules, f, sizeof(f))) != RAW_TO_KERNEL) {
            return frames[i].what;
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
