/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether memory may be taken, before any of it is. Who takes too much of a file in memory is not
 * refused by the kernel but killed, it or another process; so the library looks first:
 *
 *      MemAvailable, and for each cgroup from this process's up: limit - usage + what can be
 * dropped
 *
 * Processes that look at the same time would all find the same room. So each looks and takes under
 * a lock of the host (flock of a folder that all have), which ends with its holder. One that is
 * held for long, since its holder is stopped, is not waited for.
 */
#include "share.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 200, TRY_MS = 10 };
enum { SPARE_SHIFT = 6, SPARE = 1 << 20 }; /* for page tables, and what others take meanwhile */

/* Finds a number behind a word at the beginning of a line; false: there is none. */
static bool number_of(const char *folder, const char *file, const char *word, uint64_t *value)
{
    char line[256], path[PATH_MAX];
    bool found = false;
    int n = snprintf(path, sizeof(path), "%s/%s", folder, file);
    FILE *f = n > 0 && n < (int)sizeof(path) ? fopen(path, "re") : NULL;
    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
        char *end, *at = line + strlen(word);
        if (strncmp(line, word, strlen(word)) == 0) {
            errno = 0;
            *value = strtoull(at, &end, 10);
            found = end != at && errno == 0;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return found;
}

/* The names of what is read, in the two kinds of cgroups. */
struct names {
    const char *folder, *limit, *usage, *cache, *shared;
};
static const struct names second = {"", "memory.max", "memory.current", "file ", "shmem "};
static const struct names first = {"/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
                                   "total_cache ", "total_shmem "};

/* The room of one cgroup; UINT64_MAX: it has no limit. */
static uint64_t room_of_group(const char *folder, const struct names *n)
{
    uint64_t limit, usage, cache = 0, shared = 0;
    if (!number_of(folder, n->limit, "", &limit) || !number_of(folder, n->usage, "", &usage)) {
        return UINT64_MAX;
    }
    if (number_of(folder, "memory.stat", n->cache, &cache) &&
        number_of(folder, "memory.stat", n->shared, &shared) && cache > shared) {
        usage = cache - shared < usage ? usage - (cache - shared) : 0;
    }
    return limit > usage ? limit - usage : 0;
}

/* The least room of a cgroup and those above it. */
static uint64_t room_of_groups(const char *cgroups, char *group, const struct names *n)
{
    char path[PATH_MAX];
    uint64_t least = UINT64_MAX;
    group[strcspn(group, "\n")] = '\0';
    for (;;) {
        if (snprintf(path, sizeof(path), "%s%s%s", cgroups, n->folder, group) < (int)sizeof(path)) {
            uint64_t room = room_of_group(path, n);
            least = room < least ? room : least;
        }
        char *slash = strrchr(group, '/');
        if (slash == NULL) {
            return least;
        }
        *slash = '\0';
    }
}

uint64_t room_in(const char *proc, const char *cgroups)
{
    char line[PATH_MAX + 64], path[PATH_MAX];
    uint64_t least = UINT64_MAX, kib;
    if (number_of(proc, "meminfo", "MemAvailable:", &kib)) {
        least = kib * 1024;
    }
    snprintf(path, sizeof(path), "%s/self/cgroup", proc);
    FILE *f = fopen(path, "re");
    while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        char *names = strchr(line, ':'), *group = names != NULL ? strchr(names + 1, ':') : NULL;
        const struct names *n = NULL;
        if (group != NULL) {
            *group++ = '\0';
            names++;
            n = *names == '\0' ? &second : strcmp(names, "memory") == 0 ? &first : NULL;
        }
        if (n != NULL) {
            uint64_t room = room_of_groups(cgroups, group, n);
            least = room < least ? room : least;
        }
    }
    if (f != NULL) {
        fclose(f);
    }
    return least;
}

int room_check(uint64_t bytes)
{
    uint64_t room = room_in("/proc", "/sys/fs/cgroup"), need;
    return __builtin_add_overflow(bytes, (bytes >> SPARE_SHIFT) + SPARE, &need) || need > room
               ? -ENOMEM
               : 0;
}

int room_enter(void)
{
    int fd = open("/dev/shm", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (int i = 0; fd >= 0 && i < TRIES && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) {
        nanosleep(&(struct timespec){0, TRY_MS * 1000000L}, NULL);
    }
    return fd;
}

void room_leave(int ticket)
{
    if (ticket >= 0) {
        close(ticket);
    }
}
