/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What limits the number of processes, and their memory: of the user, of the machine, and of the
 * control groups that this process is in, the nearest one first. Descriptors are the launcher's to
 * check. A rank takes some 0.9 MB of its own before the program has any memory (docs/sim-nic.md).
 */
#include "room.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PATH_SIZE = 512, SPARE_PROCESSES = 8 };

/* Reads the first number of a file; false if there is none ("max", no such file). */
static bool read_number(const char *path, uint64_t *value)
{
    char text[64] = "";
    FILE *f = fopen(path, "re");
    bool read =
        f != NULL && fgets(text, sizeof(text), f) != NULL && text[0] >= '0' && text[0] <= '9';
    *value = read ? strtoull(text, NULL, 10) : 0;
    if (f != NULL) {
        fclose(f);
    }
    return read;
}

/* Reads the number behind a word of a file of lines. */
static bool read_named(const char *path, const char *name, uint64_t *value)
{
    char line[256];
    size_t length = strlen(name);
    bool found = false;
    FILE *f = fopen(path, "re");
    while (f != NULL && !found && fgets(line, sizeof(line), f) != NULL) {
        found = strncmp(line, name, length) == 0 && (line[length] == ' ' || line[length] == ':');
        *value = found ? strtoull(line + length + 1, NULL, 10) : 0;
    }
    if (f != NULL) {
        fclose(f);
    }
    return found;
}

static bool too_few(char error[ROOM_ERROR], const char *limit, uint64_t value, uint64_t used,
                    uint64_t need, const char *unit)
{
    if (used <= value && value - used >= need) {
        return false;
    }
    snprintf(error, ROOM_ERROR,
             "%.100s is %" PRIu64 "%s, of which %" PRIu64 " are taken, and the job needs %" PRIu64
             " more: raise it, or start fewer ranks",
             limit, value, unit, used, need);
    return true;
}

/* ---- control groups ---- */

/* What a kind of limit is called: the files of both versions of control groups. */
struct group_limit {
    const char *controller; /* of version 1 */
    const char *most[2], *taken[2];
    const char *unit;
    uint64_t need;
    bool cached; /* what is taken has pages of files in it that can be dropped */
};

/* Whether a group and all above it have room. `folder` is the mount's, `path` the group's. */
static bool group_short(const char *folder, const char *path, const struct group_limit *l,
                        unsigned version, char error[ROOM_ERROR])
{
    char group[PATH_SIZE], file[2 * PATH_SIZE];
    snprintf(group, sizeof(group), "%s", path);
    for (;;) {
        uint64_t most, taken = 0, cache = 0;
        snprintf(file, sizeof(file), "%s%s/%s", folder, group, l->taken[version]);
        read_number(file, &taken);
        snprintf(file, sizeof(file), "%s%s/memory.stat", folder, group);
        if (l->cached && read_named(file, "inactive_file", &cache)) {
            taken -= cache < taken ? cache : taken;
        }
        snprintf(file, sizeof(file), "%s%s/%s", folder, group, l->most[version]);
        if (read_number(file, &most) && too_few(error, file, most, taken, l->need, l->unit)) {
            return true;
        }
        char *up = strrchr(group, '/');
        if (up == NULL) {
            return false;
        }
        *up = '\0';
    }
}

/* Whether a controller is in a list of names that are separated by commas. */
static bool is_among(const char *name, const char *list)
{
    size_t length = strlen(name);
    for (const char *at = list; (at = strstr(at, name)) != NULL; at += length) {
        if ((at == list || at[-1] == ',') && (at[length] == ',' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

/* Looks at the groups of a line of /proc/self/cgroup, "number:controllers:path". */
static bool line_short(const char *root, char *line, const struct group_limit *l,
                       char error[ROOM_ERROR])
{
    static const char *const unified[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char folder[PATH_SIZE];
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) {
        return false;
    }
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (strcmp(path, "/") == 0) {
        path = "";
    }
    if (controllers[1] != '\0') {
        snprintf(folder, sizeof(folder), "%s/sys/fs/cgroup/%s", root, l->controller);
        return is_among(l->controller, controllers + 1) && group_short(folder, path, l, 0, error);
    }
    for (unsigned i = 0; i < 2; i++) {
        snprintf(folder, sizeof(folder), "%s%s", root, unified[i]);
        if (group_short(folder, path, l, 1, error)) {
            return true;
        }
    }
    return false;
}

static bool groups_short(const char *root, const struct group_limit *l, char error[ROOM_ERROR])
{
    char path[PATH_SIZE], line[PATH_SIZE];
    bool is_short = false;
    snprintf(path, sizeof(path), "%s/proc/self/cgroup", root);
    FILE *f = fopen(path, "re");
    while (f != NULL && !is_short && fgets(line, sizeof(line), f) != NULL) {
        is_short = line_short(root, line, l, error);
    }
    if (f != NULL) {
        fclose(f);
    }
    return is_short;
}

/* ---- processes and memory ---- */

static bool processes_short(const char *root, uint64_t need, char error[ROOM_ERROR])
{
    static const char *const files[] = {"kernel/pid_max", "kernel/threads-max"};
    char path[PATH_SIZE], text[128] = "";
    struct rlimit limit;
    uint64_t most, tasks = 0;
    /* The limit of a user does not hold for the superuser. */
    if (geteuid() != 0 && getrlimit(RLIMIT_NPROC, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        too_few(error, "RLIMIT_NPROC (ulimit -u)", limit.rlim_cur, 0, need, " processes")) {
        return true;
    }
    snprintf(path, sizeof(path), "%s/proc/loadavg", root);
    FILE *f = fopen(path, "re");
    const char *slash =
        f != NULL && fgets(text, sizeof(text), f) != NULL ? strchr(text, '/') : NULL;
    tasks = slash != NULL ? strtoull(slash + 1, NULL, 10) : 0;
    if (f != NULL) {
        fclose(f);
    }
    for (unsigned i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/proc/sys/%s", root, files[i]);
        if (read_number(path, &most) && too_few(error, path, most, tasks, need, " processes")) {
            return true;
        }
    }
    const struct group_limit pids = {
        "pids", {"pids.max", "pids.max"}, {"pids.current", "pids.current"}, " processes", need,
        false};
    return groups_short(root, &pids, error);
}

static bool memory_short(const char *root, uint64_t kib, char error[ROOM_ERROR])
{
    char path[PATH_SIZE];
    uint64_t available;
    snprintf(path, sizeof(path), "%s/proc/meminfo", root);
    if (read_named(path, "MemAvailable", &available) &&
        too_few(error, "available memory (MemAvailable)", available, 0, kib, " KiB")) {
        return true;
    }
    const struct group_limit memory = {"memory",
                                       {"memory.limit_in_bytes", "memory.max"},
                                       {"memory.usage_in_bytes", "memory.current"},
                                       " bytes",
                                       kib * 1024,
                                       true};
    return groups_short(root, &memory, error);
}

bool room_check(const char *root, uint32_t ranks, char error[ROOM_ERROR])
{
    return !processes_short(root, (uint64_t)ranks + SPARE_PROCESSES, error) &&
           !memory_short(root, (uint64_t)ranks * ROOM_RANK_KIB, error);
}
