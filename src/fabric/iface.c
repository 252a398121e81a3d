/* SPDX-License-Identifier: BSD-3-Clause */
/* Interfaces of this host; see iface.h. */
#include "fabric/iface.h"

#include "base/forks.h"
#include "base/ip.h"
#include "base/log.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <net/route.h>
#include <stdio.h>
#include <string.h>

struct request {
    const struct ifaddrs *present;
    struct reason *why;
};

static bool has_ipv4(const struct ifaddrs *a)
{
    return a->ifa_addr != NULL && a->ifa_addr->sa_family == AF_INET;
}

static void set(struct iface *out, const char *name, uint32_t nid)
{
    snprintf(out->name, sizeof(out->name), "%s", name);
    out->nid = nid;
}

static int by_name(const struct request *q, const char *name, struct iface *out)
{
    const struct ifaddrs *any = NULL;
    for (const struct ifaddrs *a = q->present; a != NULL; a = a->ifa_next) {
        if (strcmp(a->ifa_name, name) != 0) {
            continue;
        }
        any = a;
        if (has_ipv4(a) && (a->ifa_flags & IFF_UP) != 0) {
            set(out, name, ip_of(a->ifa_addr));
            return 0;
        }
    }
    if (any == NULL) {
        return reason_say(q->why, -ENODEV,
                          "interface %s: this host has none of that name (`ip addr` lists "
                          "names and addresses)",
                          name);
    }
    if ((any->ifa_flags & IFF_UP) == 0) {
        return reason_say(q->why, -ENODEV, "interface %s: is down (`ip link set %s up`)", name,
                          name);
    }
    return reason_say(q->why, -EADDRNOTAVAIL,
                      "interface %s: has no IPv4 address, which would be its NID", name);
}

static int by_address(const struct request *q, const char *text, uint32_t nid, struct iface *out)
{
    for (const struct ifaddrs *a = q->present; a != NULL; a = a->ifa_next) {
        if (has_ipv4(a) && ip_of(a->ifa_addr) == nid && (a->ifa_flags & IFF_UP) != 0) {
            set(out, a->ifa_name, nid);
            return 0;
        }
    }
    if (nid >> 24 == 127 && nid != 0x7f000000u && nid != 0x7fffffffu) {
        set(out, "lo", nid);
        return 0;
    }
    return reason_say(q->why, -EADDRNOTAVAIL,
                      "address %s: not one of this host's (`ip addr` lists them)", text);
}

/* Finds the interface of the IPv4 default route with the smallest metric: 1; 0 if there is none, or
 * the system has no list of routes; or -errno. */
static int default_route(char name[16])
{
    FILE *f = fopen("/proc/net/route", "re");
    if (f == NULL) {
        return errno == ENOENT ? 0 : -errno;
    }
    char line[256], device[64];
    unsigned destination, flags, mask, metric, best = UINT_MAX;
    bool found = false;
    while (fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "%63s %x %*x %x %*u %*u %u %x", device, &destination, &flags, &metric,
                   &mask) == 5 &&
            destination == 0 && mask == 0 && (flags & RTF_UP) != 0 && (!found || metric < best) &&
            strlen(device) < 16) {
            memcpy(name, device, strlen(device) + 1);
            best = metric;
            found = true;
        }
    }
    fclose(f);
    return found;
}

static int the_default(const struct request *q, struct iface *out)
{
    char name[16];
    int rc = default_route(name);
    if (rc < 0) {
        return reason_say(q->why, rc, "cannot read /proc/net/route: %s%s", strerror(-rc),
                          log_remedy(-rc));
    }
    if (rc > 0 && by_name(q, name, out) == 0) {
        return 1;
    }
    set(out, "lo", 0x7f000001u);
    return 1;
}

static int one_entry(const struct request *q, const char *entry, size_t length, struct iface *out)
{
    char text[64];
    struct in_addr address;
    if (length == 0) {
        return reason_say(q->why, -EINVAL,
                          "the list of interfaces has an empty entry: separate names or "
                          "addresses by single commas");
    }
    if (length >= sizeof(text)) {
        return reason_say(q->why, -ENODEV, "interface %.20s...: names have at most 15 characters",
                          entry);
    }
    memcpy(text, entry, length);
    text[length] = '\0';
    return inet_pton(AF_INET, text, &address) == 1 ? by_address(q, text, ntohl(address.s_addr), out)
                                                   : by_name(q, text, out);
}

static int parse_list(const struct request *q, const char *ifaces, struct iface *out, int max)
{
    int count = 0;
    for (const char *at = ifaces;; at++) {
        size_t length = strcspn(at, ",");
        struct iface found = {0};
        int rc = one_entry(q, at, length, &found);
        if (rc != 0) {
            return rc;
        }
        for (int i = 0; i < count; i++) {
            if (out[i].nid == found.nid) {
                return reason_say(q->why, -EEXIST,
                                  "interface %.*s: address %s is listed twice; "
                                  "each needs one of its own (of 127.0.0.0/8 any will do)",
                                  (int)length, at, ip_text(found.nid).text);
            }
        }
        if (count == max) {
            return reason_say(q->why, -E2BIG, "more than %d interfaces are listed", max);
        }
        out[count++] = found;
        at += length;
        if (*at == '\0') {
            return count;
        }
    }
}

int iface_parse(const char *ifaces, struct iface *out, int max, struct reason *why)
{
    struct ifaddrs *present;
    struct request q = {NULL, why};
    if (max < 1) {
        return reason_say(why, -E2BIG, "there is no room for an interface");
    }
    int rc;
    forks_hold(); /* a child would keep the open descriptors */
    if (getifaddrs(&present) != 0) {
        rc = reason_say(why, -errno, "the system does not list its interfaces: %s%s",
                        strerror(errno), log_remedy(errno));
    } else {
        q.present = present;
        rc = *ifaces == '\0' ? the_default(&q, out) : parse_list(&q, ifaces, out, max);
        freeifaddrs(present);
    }
    forks_release();
    return rc;
}

int iface_list(const char *ifaces, struct iface *out, int max)
{
    struct reason why;
    int rc = iface_parse(ifaces, out, max, &why);
    if (rc < 0) {
        log_line(LOG_ERROR, "PINWHEEL_IFACES=%s: %s", ifaces, why.text);
    }
    return rc;
}

bool iface_of(uint32_t nid, struct iface *out)
{
    struct reason why;
    return iface_parse(ip_text(nid).text, out, 1, &why) == 1;
}

void iface_refuse_beyond(uint32_t nid, struct reason *why)
{
    reason_say(why, 0,
               "NID %s is beyond this host: messages go there, and come from there, with "
               "PINWHEEL_FABRIC=auto or udp and PINWHEEL_JOB_KEY_FILE or PINWHEEL_UDP_OPEN=1 only",
               ip_text(nid).text);
}
