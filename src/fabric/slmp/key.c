/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the file of a job key; see key.h. */
#include "key.h"
#include "base/forks.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Checks that no other user can have read or written the file; writes why if one can. */
static int check(const struct stat *st, const char *path, struct reason *why)
{
    if (!S_ISREG(st->st_mode)) {
        return reason_say(why, -1, "%s: is no regular file; a job key is one", path);
    }
    if (st->st_uid != geteuid() && st->st_uid != 0) {
        return reason_say(why, -1, "%s: belongs to uid %u, which knows the key; it must be yours",
                          path, st->st_uid);
    }
    if ((st->st_mode & 077) != 0) {
        return reason_say(
            why, -1, "%s: has mode %04o, so that others know the key; make another, with mode 0600",
            path, st->st_mode & 07777);
    }
    if (st->st_size < SLMP_KEY_MIN || st->st_size > SLMP_KEY_MAX) {
        return reason_say(
            why, -1,
            "%s: has %lld bytes; a job key has %d to %d, as `head -c 32 /dev/urandom` gives", path,
            (long long)st->st_size, SLMP_KEY_MIN, SLMP_KEY_MAX);
    }
    return 0;
}

int slmp_key_take(struct slmp_key *key, const void *bytes, size_t length)
{
    if (length < SLMP_KEY_MIN || length > SLMP_KEY_MAX) {
        return -1;
    }
    memcpy(key->bytes, bytes, length);
    key->length = length;
    return 0;
}

int slmp_key_read(struct slmp_key *key, const char *path, struct reason *why)
{
    struct stat st;
    int fd = forks_open(sys_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0));
    int rc = fd < 0 ? fd : fstat(fd, &st) != 0 ? -errno : 0;
    if (rc != 0) {
        forks_close(fd);
        return reason_say(why, -1, "%s: the job key cannot be read: %s", path, strerror(-rc));
    }
    int r = check(&st, path, why);
    ssize_t length = r == 0 ? sys_read(fd, key->bytes, sizeof(key->bytes)) : 0;
    if (r == 0 && length != st.st_size) {
        r = reason_say(why, -1, "%s: the job key cannot be read: %s", path,
                       length < 0 ? strerror((int)-length) : "it changes meanwhile");
    }
    key->length = r == 0 ? (size_t)length : 0;
    forks_close(fd);
    return r;
}
