/* SPDX-License-Identifier: BSD-3-Clause */
/* The file that `pinwheel slmp recv` writes; see file.h. */
#include "file.h"

#include "fabric/slmp/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int slmp_file_complain(const struct slmp_file *f, const char *what)
{
    fprintf(stderr, "pinwheel slmp recv: %s: %s\n", f->path, what);
    return -1;
}

static void flush_gathered(struct slmp_file *f)
{
    for (size_t at = 0; at < f->gathered && f->error == 0;) {
        ssize_t n = pwrite(f->fd, f->gather + at, f->gathered - at, (off_t)(f->gather_at + at));
        if (n < 0 && errno != EINTR) {
            f->error = errno;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    f->gathered = 0;
}

void slmp_file_write(struct slmp_file *f, uint64_t at, const uint8_t *bytes, size_t length)
{
    if (at != f->gather_at + f->gathered || length > GATHER - f->gathered) {
        flush_gathered(f);
        f->gather_at = at;
    }
    memcpy(f->gather + f->gathered, bytes, length);
    f->gathered += length;
    f->got += length;
}

int slmp_file_read_back(struct slmp_file *f, uint64_t size, uint32_t *checksum)
{
    *checksum = 0;
    flush_gathered(f);
    for (uint64_t at = 0; at < size && f->error == 0;) {
        ssize_t n = pread(f->fd, f->gather, GATHER, (off_t)at);
        if (n <= 0 && errno != EINTR) {
            f->error = n == 0 ? EIO : errno;
        } else if (n > 0) {
            *checksum = slmp_crc(*checksum, f->gather, (size_t)n);
            at += (uint64_t)n;
        }
    }
    return f->error == 0 ? 0 : slmp_file_complain(f, strerror(f->error));
}

int slmp_file_create(struct slmp_file *f)
{
    mode_t mask = umask(0);
    umask(mask);
    int n = snprintf(f->temporary, sizeof(f->temporary), "%s.XXXXXX", f->path);
    if (n < 0 || (size_t)n >= sizeof(f->temporary)) {
        f->temporary[0] = '\0';
        return slmp_file_complain(f, "cannot be written: the name is too long");
    }
    struct stat st;
    if (stat(f->path, &st) == 0 && !S_ISREG(st.st_mode)) {
        f->temporary[0] = '\0';
        return slmp_file_complain(f, "cannot be written: exists and is no regular file");
    }
    f->fd = mkostemp(f->temporary, O_CLOEXEC);
    if (f->fd < 0) {
        char text[160];
        snprintf(text, sizeof(text), "cannot be written: %s; its folder must exist and be writable",
                 strerror(errno));
        f->temporary[0] = '\0';
        return slmp_file_complain(f, text);
    }
    fchmod(f->fd, 0666 & ~mask);
    return 0;
}
