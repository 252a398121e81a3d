/* SPDX-License-Identifier: BSD-3-Clause */
/* Process groups of ranks; see groups.h. */
#include "groups.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void groups_signal(const pid_t *groups, int count, int signal)
{
    for (int i = 0; i < count; i++) {
        if (groups[i] > 1) {
            kill(-groups[i], signal);
        }
    }
}

/* True if an error of open() tells nothing about the file: this process, or the system, lacks
 * descriptors or memory. */
static bool lacks_room(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* Returns the process group of process `name` (a folder of /proc) and stores its state; 0 if the
 * process is gone, or GROUPS_LATER. */
static pid_t group_of(const char *name, char *state)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return lacks_room(errno) ? GROUPS_LATER : 0;
    }
    ssize_t n = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    /* the line is "pid (name) state ppid pgrp ..."; the name may contain any character */
    const char *end = strrchr(text, ')');
    int group;
    return end != NULL && sscanf(end + 1, " %c %*d %d", state, &group) == 2 ? group : 0;
}

int groups_alive(const pid_t *groups, int count)
{
    DIR *proc = opendir("/proc");
    if (proc == NULL) {
        return lacks_room(errno) ? GROUPS_LATER : GROUPS_UNTOLD;
    }
    int found = GROUPS_NONE, seen = 0;
    struct dirent *entry;
    while (found == GROUPS_NONE && (entry = readdir(proc)) != NULL) {
        char state;
        if (!isdigit((unsigned char)entry->d_name[0])) {
            continue;
        }
        seen++;
        pid_t group = group_of(entry->d_name, &state);
        if (group == GROUPS_LATER) {
            found = GROUPS_LATER;
            break;
        }
        if (group <= 1 || state == 'Z' || state == 'X') {
            continue;
        }
        for (int i = 0; i < count && found < 0; i++) {
            found = groups[i] == group ? i : GROUPS_NONE;
        }
    }
    closedir(proc);
    return found == GROUPS_NONE && seen == 0 ? GROUPS_UNTOLD : found;
}

void groups_kill(const pid_t *groups, int count)
{
    groups_signal(groups, count, SIGKILL);
}
