/* SPDX-License-Identifier: BSD-3-Clause */
/* Sessions of subjects; see sessions.h. */
#include "sessions.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { KILL_TRIES = 100, KILL_PAUSE_US = 10000 };

/* The session and state of process `name` (a folder of /proc); 0 if it is gone. */
static pid_t session_of(const char *name, char *state)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        close(fd);
    }
    if (n <= 0) {
        return 0;
    }
    text[n] = '\0';
    const char *end = strrchr(text, ')'); /* pid (name) state ppid pgrp session */
    int session;
    return end != NULL && sscanf(end + 1, " %c %*d %*d %d", state, &session) == 2 ? session : 0;
}

static int listed(pid_t session, const pid_t *sessions, int count)
{
    for (int i = 0; i < count; i++) {
        if (session > 1 && session == sessions[i]) {
            return 1;
        }
    }
    return 0;
}

int sessions_signal(const pid_t *sessions, int count, int signal)
{
    DIR *proc = opendir("/proc");
    int alive = 0;
    if (proc == NULL) {
        return 0;
    }
    for (struct dirent *entry; (entry = readdir(proc)) != NULL;) {
        char state = 'X';
        if (!isdigit((unsigned char)entry->d_name[0]) ||
            !listed(session_of(entry->d_name, &state), sessions, count) || state == 'Z' ||
            state == 'X') {
            continue;
        }
        alive++;
        kill((pid_t)atol(entry->d_name), signal);
    }
    closedir(proc);
    return alive;
}

void sessions_kill(const pid_t *sessions, int count)
{
    for (int i = 0; i < KILL_TRIES && sessions_signal(sessions, count, SIGKILL) > 0; i++) {
        usleep(KILL_PAUSE_US);
    }
}
