/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of processes that have frames; see page.h. */
#include "raw/source/page.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "pinwheel-raw-"

static void path_of(char path[512], const char *folder)
{
    struct stat s = {0};
    (void)stat("/proc/self/ns/pid", &s); /* in which the number is the process's alone */
    snprintf(path, 512, "%s/" PREFIX "%llx-%d", folder, (unsigned long long)s.st_ino,
             (int)getpid());
}

/* The file gets its name when the lock is held. Its descriptor stays open, since the lock is of it.
 */
static int make_file(const char *folder, const char *path)
{
    char self[64];
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -errno;
    }
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    (void)unlink(path); /* of a process of this number that has ended */
    if (ftruncate(fd, sizeof(struct raw_page)) != 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 ||
        linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) != 0) {
        int rc = -errno;
        close(fd);
        return rc;
    }
    return fd;
}

void raw_page_hide(struct raw_page *page, const char *folder)
{
    char path[512];
    if (page != NULL) {
        path_of(path, folder);
        (void)unlink(path);
        munmap(page, sizeof(*page));
    }
}

/* 1: `page` is that of a living process; 0: it is none. */
static int look(const char *path, struct raw_page *page)
{
    struct stat s;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        return 0;
    }
    int found = fstat(fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() &&
                (size_t)s.st_size == sizeof(*page);
    if (found && flock(fd, LOCK_SH | LOCK_NB) == 0) {
        (void)unlink(path);
        found = 0;
    }
    found = found && pread(fd, page, sizeof(*page), 0) == (ssize_t)sizeof(*page) &&
            page->version == RAW_PAGE_VERSION && page->contexts <= RAW_CONTEXTS;
    close(fd);
    if (found) {
        page->command[sizeof(page->command) - 1] = '\0';
        page->source[sizeof(page->source) - 1] = '\0';
        for (unsigned i = 0; i < RAW_CONTEXTS; i++) {
            page->context[i].name[RAW_NAME - 1] = '\0';
        }
    }
    return found;
}

int raw_page_each(const char *folder, void (*see)(void *arg, const struct raw_page *page),
                  void *arg)
{
    DIR *d = opendir(folder);
    struct dirent *e;
    if (d == NULL) {
        return -errno;
    }
    while ((e = readdir(d)) != NULL) {
        char path[512];
        struct raw_page page;
        if (strncmp(e->d_name, PREFIX, strlen(PREFIX)) == 0 &&
            (size_t)snprintf(path, sizeof(path), "%s/%s", folder, e->d_name) < sizeof(path) &&
            look(path, &page) == 1) {
            see(arg, &page);
        }
    }
    closedir(d);
    return 0;
}

static void nobody(void *arg, const struct raw_page *page)
{
}

struct raw_page *raw_page_show(const char *folder, const char *command, const char *source,
                               char error[RAW_ERROR])
{
    char path[512];
    (void)raw_page_each(folder, nobody, NULL); /* those of processes that were killed go */
    path_of(path, folder);
    int fd = make_file(folder, path);
    struct raw_page *p =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*p), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        snprintf(error, RAW_ERROR, "`pinwheel nic` will not see this process: %.120s: %s", path,
                 strerror(fd < 0 ? -fd : errno));
        return NULL;
    }
    snprintf(p->command, sizeof(p->command), "%s", command);
    snprintf(p->source, sizeof(p->source), "%.63s", source);
    p->process = (int32_t)getpid();
    p->opened = (int64_t)time(NULL);
    __atomic_store_n(&p->version, RAW_PAGE_VERSION, __ATOMIC_RELEASE);
    return p;
}
