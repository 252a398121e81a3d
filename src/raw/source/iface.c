/* SPDX-License-Identifier: BSD-3-Clause */
/* Questions about an interface; see iface.h. */
#include "raw/source/iface.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int ask(const char *iface, unsigned long what, struct ifreq *r)
{
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return -errno;
    }
    snprintf(r->ifr_name, sizeof(r->ifr_name), "%s", iface);
    int rc = ioctl(fd, what, r) == 0 ? 0 : -errno;
    close(fd);
    return rc;
}

unsigned raw_iface_queues(const char *iface)
{
    struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
    struct ifreq r = {.ifr_data = (void *)&channels};
    unsigned queues =
        ask(iface, SIOCETHTOOL, &r) == 0 ? channels.rx_count + channels.combined_count : 1;
    return queues > 0 ? queues : 1;
}

int raw_iface_mtu(const char *iface)
{
    struct ifreq r = {0};
    int rc = ask(iface, SIOCGIFMTU, &r);
    return rc == 0 ? r.ifr_mtu : rc;
}

int raw_iface_address(const char *iface, uint8_t address[6])
{
    struct ifreq r = {0};
    int rc = ask(iface, SIOCGIFHWADDR, &r);
    if (rc == 0) {
        memcpy(address, r.ifr_hwaddr.sa_data, 6);
    }
    return rc;
}

bool raw_iface_strips(const char *iface)
{
    struct ethtool_value flags = {.cmd = ETHTOOL_GFLAGS};
    struct ifreq r = {.ifr_data = (void *)&flags};
    return ask(iface, SIOCETHTOOL, &r) == 0 && (flags.data & ETH_FLAG_RXVLAN) != 0;
}

bool raw_iface_gone(unsigned ifindex)
{
    char name[IF_NAMESIZE];
    return if_indextoname(ifindex, name) == NULL && (errno == ENXIO || errno == ENODEV);
}

bool raw_iface_gone_now_and_then(unsigned ifindex, unsigned *calls)
{
    enum { MANY = 1 << 16 };
    return ++*calls % MANY == 0 && raw_iface_gone(ifindex);
}

/* A line of /proc/net/route: interface, destination, gateway, flags, three counts, mask. */
static bool default_4(const char *line, const char *iface)
{
    char name[64];
    unsigned destination, mask;
    return sscanf(line, "%63s %x %*x %*x %*d %*d %*d %x", name, &destination, &mask) == 3 &&
           destination == 0 && mask == 0 && strcmp(name, iface) == 0;
}

/* A line of /proc/net/ipv6_route: destination and length first, the interface last. */
static bool default_6(const char *line, const char *iface)
{
    static const char any[] = "00000000000000000000000000000000 00 ";
    char name[64];
    return strncmp(line, any, sizeof(any) - 1) == 0 &&
           sscanf(line, "%*s %*s %*s %*s %*s %*s %*s %*s %*s %63s", name) == 1 &&
           strcmp(name, iface) == 0;
}

static bool any_line(const char *path, const char *iface, bool (*is)(const char *, const char *),
                     bool otherwise)
{
    char line[512];
    FILE *file = fopen(path, "re");
    bool found = false;
    if (file == NULL) {
        return otherwise;
    }
    while (!found && fgets(line, sizeof(line), file) != NULL) {
        found = is(line, iface);
    }
    fclose(file);
    return found;
}

bool raw_iface_has_default(const char *iface)
{
    /* a kernel without IPv6 has no such file */
    return any_line("/proc/net/route", iface, default_4, true) ||
           any_line("/proc/net/ipv6_route", iface, default_6, false);
}
