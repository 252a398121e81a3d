/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The names of segments, and how those of dead owners are removed; see names.h.
 *
 *   pinwheel-<boot of the kernel>-<network namespace>-<NID>-<PID>
 *
 * Containers that share the folder, but not the network namespace, use different names in it.
 */
#include "fabric/shm/names.h"

#include "base/log.h"
#include "fabric/shm/owner.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define BOOT_ID "/proc/sys/kernel/random/boot_id"

/* Writes the name of this host, which is a boot of a kernel and a network namespace. The first
 * `kernel` bytes are the same for all names of this kernel. */
static int host_name(char *name, size_t size, size_t *kernel)
{
    char boot[9] = "";
    struct stat ns;
    int fd = forks_open(sys_open(BOOT_ID, O_RDONLY | O_CLOEXEC, 0));
    if (fd < 0) {
        return fd;
    }
    ssize_t n = sys_read(fd, boot, sizeof(boot) - 1);
    forks_close(fd);
    if (n < 8) {
        return n < 0 ? (int)n : -EIO;
    }
    if (stat("/proc/self/ns/net", &ns) != 0) {
        return -errno;
    }
    *kernel = (size_t)snprintf(name, size, "pinwheel-%s-", boot);
    snprintf(name + *kernel, size - *kernel, "%llx", (unsigned long long)ns.st_ino);
    return 0;
}

int segment_path(const struct options *o, uint32_t nid, uint32_t pid, char *path, size_t size,
                 struct reason *why)
{
    char host[64];
    size_t kernel;
    int rc = host_name(host, sizeof(host), &kernel);
    if (rc != 0) {
        return reason_say(why, rc, "cannot tell this host from others by %s: %s%s", BOOT_ID,
                          strerror(-rc), rc == -ENOENT ? ": mount /proc" : log_remedy(-rc));
    }
    snprintf(path, size, "%s/%s-%08x-%u", o->text[OPT_SHM_DIR], host, nid, pid);
    return 0;
}

/* Whether the owner of the file is certainly dead. If so, and no child of the owner has the lock,
 * the caller holds it now. */
static bool is_dead(int fd)
{
    struct segment_info info;
    return sys_flock(fd, LOCK_EX | LOCK_NB) == 0 ||
           (sys_pread(fd, &info, sizeof(info), 0) == sizeof(info) && info.magic == SEGMENT_MAGIC &&
            info.version == SEGMENT_VERSION && owner_gone(&info));
}

bool segment_remove_dead(const char *path, int patience)
{
    int fd = forks_open(sys_open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0));
    if (fd < 0) {
        return fd == -ENOENT;
    }
    bool freed = false;
    struct stat mine, named;
    /* A process that only checks whether the owner lives holds the lock for a moment. */
    bool alone = sys_lock_description(fd) == 0, dead = alone && is_dead(fd);
    for (int attempt = 0; attempt < patience && !dead; attempt++) {
        sys_nap(100000);
        alone = alone || sys_lock_description(fd) == 0;
        dead = alone && is_dead(fd);
    }
    if (dead && fstat(fd, &mine) == 0) {
        if (stat(path, &named) != 0) {
            freed = errno == ENOENT;
        } else if (named.st_ino == mine.st_ino && named.st_dev == mine.st_dev) {
            freed = unlink(path) == 0;
        }
    }
    forks_close(fd);
    return freed;
}

/* Reads the number of a network namespace, a NID and a PID from the rest of a name; false: it is
 * malformed. */
static bool read_name(const char *rest, uint64_t *ns, uint32_t *nid, uint32_t *pid)
{
    int end = -1;
    return sscanf(rest, "%" SCNx64 "-%8" SCNx32 "-%5" SCNu32 "%n", ns, nid, pid, &end) == 3 &&
           end >= 0 && rest[end] == '\0';
}

int segment_each(const char *directory, void (*see)(void *arg, const struct segment_name *),
                 void *arg)
{
    char host[64], path[384];
    size_t kernel = 0;
    forks_hold();
    DIR *d = opendir(directory);
    int rc = d == NULL ? -errno : host_name(host, sizeof(host), &kernel);
    uint64_t our_ns = 0, ns;
    rc = rc == 0 && sscanf(host + kernel, "%" SCNx64, &our_ns) != 1 ? -ENOENT : rc;
    for (struct dirent *e; d != NULL && rc == 0 && (e = readdir(d)) != NULL;) {
        struct segment_name name = {.path = path};
        if (strncmp(e->d_name, host, kernel) == 0 &&
            read_name(e->d_name + kernel, &ns, &name.nid, &name.pid) &&
            snprintf(path, sizeof(path), "%s/%s", directory, e->d_name) < (int)sizeof(path)) {
            name.ours = ns == our_ns;
            see(arg, &name);
        }
    }
    if (d != NULL) {
        closedir(d);
    }
    forks_release();
    return rc;
}

static void sweep_one(void *arg, const struct segment_name *n)
{
    struct stat st;
    if (stat(n->path, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid()) {
        segment_remove_dead(n->path, 0);
    }
}

void segment_sweep(const char *directory)
{
    segment_each(directory, sweep_one, NULL);
}
