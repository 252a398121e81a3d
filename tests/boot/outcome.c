/* SPDX-License-Identifier: BSD-3-Clause */
/* Running a command and looking at what it did; see outcome.h. */
#include "outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void make_pipe(int ends[2])
{
    if (pipe2(ends, O_CLOEXEC) != 0) {
        perror("pipe2");
        exit(1);
    }
}

void outcome_start(struct outcome *o, const char *const *argv)
{
    int in[2], out[2], err[2];
    make_pipe(in);
    make_pipe(out);
    make_pipe(err);
    memset(o, 0, offsetof(struct outcome, out));
    o->out[0] = '\0';
    o->err[0] = '\0';
    o->pid = fork();
    if (o->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM); /* should the test be killed */
        dup2(in[0], 0);
        dup2(out[1], 1);
        dup2(err[1], 2);
        execvp(argv[0], (char *const *)(size_t)argv);
        perror(argv[0]);
        _exit(98);
    }
    close(in[0]);
    close(out[1]);
    close(err[1]);
    o->to_in = in[1];
    o->from_out = out[0];
    o->from_err = err[0];
}

/* One read; closes the descriptor at its end. */
static void take(int *fd, char *text, size_t *length)
{
    char waste[4096];
    bool full = *length + 1 >= OUTCOME_TEXT;
    ssize_t n =
        read(*fd, full ? waste : text + *length, full ? sizeof(waste) : OUTCOME_TEXT - 1 - *length);
    if (n > 0 && !full) {
        *length += (size_t)n;
        text[*length] = '\0';
    } else if (n == 0 || (n < 0 && errno != EINTR)) {
        close(*fd);
        *fd = -1;
    }
}

/* Reads something; false when both outputs have ended. */
static bool take_some(struct outcome *o)
{
    struct pollfd p[] = {{.fd = o->from_out, .events = POLLIN},
                         {.fd = o->from_err, .events = POLLIN}};
    if (o->from_out < 0 && o->from_err < 0) {
        return false;
    }
    if (poll(p, 2, -1) > 0) {
        if (p[0].revents != 0) {
            take(&o->from_out, o->out, &o->out_length);
        }
        if (p[1].revents != 0) {
            take(&o->from_err, o->err, &o->err_length);
        }
    }
    return true;
}

static int count(const char *in, const char *text)
{
    int n = 0;
    for (const char *at = in; (at = strstr(at, text)) != NULL; at += strlen(text)) {
        n++;
    }
    return n;
}

bool outcome_await(struct outcome *o, const char *text, int times)
{
    while (count(o->out, text) < times) {
        if (!take_some(o)) {
            return false;
        }
    }
    return true;
}

void outcome_end(struct outcome *o)
{
    int status;
    if (o->to_in >= 0) {
        close(o->to_in);
        o->to_in = -1;
    }
    while (take_some(o)) {
    }
    while (waitpid(o->pid, &status, 0) < 0 && errno == EINTR) {
    }
    o->status = WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

bool process_ended(pid_t pid)
{
    char path[64], state;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    for (int i = 0; i < 1000; i++) {
        FILE *f = fopen(path, "re");
        if (f == NULL) {
            return true;
        }
        int n = fscanf(f, "%*d (%*[^)]) %c", &state);
        fclose(f);
        if (n == 1 && (state == 'Z' || state == 'X')) {
            return true;
        }
        usleep(10000);
    }
    return false;
}
