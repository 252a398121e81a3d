/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A tap: an interface of the kernel whose other end is this process, without any card. Frames that
 * the kernel sends out of it come here, frames of handlers come in on it. Nothing is behind it, so
 * frames that no rule matches end here, and none can be passed on.
 */
#include "raw/source/sorted.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

unsigned if_nametoindex(const char *name); /* net/if.h defines what linux/if.h does */

static int tap_read(struct raw_sorted *s, uint8_t *to)
{
    ssize_t n = read(s->fd, to, SORTED_SLOT);
    /* EIO: the interface is down; it may come back */
    return n >= 0 ? (int)n : errno == EINTR || errno == EIO ? -EAGAIN : -errno;
}

static int tap_write(struct raw_sorted *s, const uint8_t *frame, uint32_t length)
{
    return write(s->fd, frame, length) == (ssize_t)length ? 0 : -errno;
}

static int open_tap(const char *name)
{
    struct ifreq r = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    snprintf(r.ifr_name, sizeof(r.ifr_name), "%s", name);
    if (ioctl(fd, TUNSETIFF, &r) != 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

int raw_tap_open(struct raw_source **source, const struct raw_iface_options *o,
                 const struct raw_wanted *wanted, char said[RAW_ERROR], char error[RAW_ERROR])
{
    static const struct raw_sorted_ops ops = {.read = tap_read, .write = tap_write};
    struct raw_sorted *s = calloc(1, sizeof(*s));
    if (strlen(o->iface) >= IFNAMSIZ) {
        snprintf(error, RAW_ERROR, "--tap %.40s: a name has %d letters at most", o->iface,
                 IFNAMSIZ - 1);
        free(s);
        return -1;
    }
    int fd = s == NULL ? -ENOMEM : open_tap(o->iface);
    if (fd < 0) {
        snprintf(error, RAW_ERROR, "--tap %.40s: %s%s", o->iface, strerror(-fd),
                 fd == -EPERM    ? "; it needs CAP_NET_ADMIN"
                 : fd == -EBUSY  ? "; another process has it"
                 : fd == -EACCES ? "; /dev/net/tun must be readable and writable"
                 : fd == -ENOENT ? "; the kernel has no module tun"
                 : fd == -EINVAL ? "; there is an interface of this name that is no tap"
                                 : "");
        free(s);
        return -1;
    }
    s->ops = &ops;
    s->fd = fd;
    s->ifindex = if_nametoindex(o->iface);
    s->spin = o->spin;
    s->source.frame_most = RAW_FRAME_MOST;
    if (raw_sorted_open(s, "tap", wanted) != 0) {
        snprintf(error, RAW_ERROR, "no memory");
        raw_sorted_close(&s->source);
        return -1;
    }
    snprintf(said, RAW_ERROR, "%s: 1 queue, tap", o->iface);
    *source = &s->source;
    return 0;
}
