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
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void groups_signal(const pid_t *groups, int count, int signal)
{
    for (int i = 0; i < count; i++) {
        if (groups[i] > 1) {
            kill(-groups[i], signal);
        }
    }
}

/* Whether it says nothing of a file that it cannot be opened: who asks has no room for it. */
static bool lacks_room(int error)
{
    return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* The group and state of process `name` (a folder of /proc); 0 if it is gone, or GROUPS_LATER. */
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
    /* pid (name, which may hold anything) state ppid pgrp */
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

static void __attribute__((noreturn)) keep(int from)
{
    pid_t *groups = NULL, group;
    int count = 0;
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    setpgid(0, 0);
    /* Holding nothing but the pipe, the keeper keeps nobody waiting. */
    if (dup2(from, 0) == 0) {
        close_range(1, ~0U, 0);
    }
    while (read(0, &group, sizeof(group)) == (ssize_t)sizeof(group)) {
        if (group == 0) {
            _exit(0);
        }
        pid_t *more = realloc(groups, ((size_t)count + 1) * sizeof(*groups));
        if (more != NULL) {
            groups = more;
            groups[count++] = group;
        }
    }
    groups_signal(groups, count, SIGKILL);
    _exit(1);
}

int groups_keeper(pid_t *keeper)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -errno;
    }
    *keeper = fork();
    if (*keeper == 0) {
        keep(ends[0]);
    }
    int error = errno;
    close(ends[0]);
    if (*keeper < 0) {
        close(ends[1]);
        return -error;
    }
    return ends[1];
}

void groups_keep(int keeper_fd, pid_t group)
{
    if (write(keeper_fd, &group, sizeof(group)) < 0) {
        return; /* the keeper was killed; the ranks still die with the launcher */
    }
}

void groups_dismiss(int keeper_fd, pid_t keeper)
{
    groups_keep(keeper_fd, 0);
    close(keeper_fd);
    waitpid(keeper, NULL, 0);
}
