/* SPDX-License-Identifier: BSD-3-Clause */
/* Starts the agent of a host; see shell.h. */
#include "shell.h"

#include "launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { WORDS_MAX = 64 };

/* Beginnings of the names of the launcher's variables that ranks on other hosts get, besides those
 * of --env. */
static const char *const passed[] = {"PINWHEEL_", "LD_LIBRARY_PATH="};

extern char **environ;

/* True if the name is that of this host, which no shell is needed to reach. */
static bool is_here(const char *name)
{
    char own[256] = "";
    gethostname(own, sizeof(own) - 1);
    return strcasecmp(name, "localhost") == 0 || strcasecmp(name, own) == 0;
}

/* The words of the command that starts an agent, and memory for them. */
struct shell {
    char *argv[WORDS_MAX + 4];
    char words[4096], agent[PATH_MAX + 64];
};

static char *word(const char *constant)
{
    return (char *)(uintptr_t)constant; /* exec does not write to it, so it may be constant */
}

static int make_shell(struct shell *s, const struct hosts_job *job, const char *host,
                      const char *there)
{
    int n = 0;
    if (is_here(host)) {
        char *own[] = {word("/proc/self/exe"), word("run"), word("--agent"), NULL};
        memcpy(s->argv, own, sizeof(own));
        return 0;
    }
    if (strchr(there, '\'') != NULL) {
        fprintf(stderr, "pinwheel run: %s: a quote in the path of the command\n", there);
        return -1;
    }
    const char *words = job->shell != NULL ? job->shell
                                           : "ssh -T -x -o BatchMode=yes -o ConnectTimeout=15 "
                                             "-o ServerAliveInterval=15 -o ServerAliveCountMax=3";
    if (strlen(words) >= sizeof(s->words)) {
        fprintf(stderr, "pinwheel run: --ssh: more than %zu bytes\n", sizeof(s->words) - 1);
        return -1;
    }
    snprintf(s->words, sizeof(s->words), "%s", words);
    snprintf(s->agent, sizeof(s->agent), "exec '%s' run --agent", there);
    char *rest;
    for (char *w = strtok_r(s->words, " ", &rest); w != NULL && n < WORDS_MAX;
         w = strtok_r(NULL, " ", &rest)) {
        s->argv[n++] = w;
    }
    if (n == 0 || n == WORDS_MAX) {
        fprintf(stderr, "pinwheel run: --ssh \"%s\": a command of 1 to %d words\n", words,
                WORDS_MAX - 1);
        return -1;
    }
    s->argv[n++] = word(host);
    s->argv[n++] = s->agent;
    s->argv[n] = NULL;
    return 0;
}

int host_start_shell(struct hosts *h, struct host *host, const struct hosts_job *job,
                     struct spawn *spawn)
{
    static struct shell shell; /* static because it is large */
    int in[2] = {-1, -1}, out[2] = {-1, -1};
    const char *what = "making its pipes";
    int rc = make_shell(&shell, job, host->name, h->command);
    if (rc != 0) {
        return rc;
    }
    spawn->argv = shell.argv;
    rc = pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0 ? -errno : 0;
    struct spawn_ends ends = {.in = in[0], .out = out[1], .err = -1, .pmi = -1};
    if (rc == 0) {
        rc = children_start(&h->shells, spawn, 0, &ends, &what);
    }
    host->to = in[1];
    host->from = out[0];
    host->since = now_ms();
    fcntl(host->to, F_SETFL, O_NONBLOCK);
    fcntl(host->from, F_SETFL, O_NONBLOCK);
    if (in[0] >= 0) {
        close(in[0]);
    }
    if (out[1] >= 0) {
        close(out[1]);
    }
    if (rc != 0) {
        fprintf(stderr, "pinwheel run: host %s: cannot start %s: %s: %s%s\n", host->name,
                shell.argv[0], what, strerror(-rc),
                rc == -ENOENT ? "; install it (Debian: openssh-client), or name another with --ssh"
                              : "");
    }
    return rc;
}

static bool put_text(struct host *host, enum frame_type type, const char *text)
{
    size_t length = strlen(text);
    if (length > FRAME_MAX) {
        fprintf(stderr, "pinwheel run: \"%.40s...\" has %zu bytes; no word may have more than %d\n",
                text, length, FRAME_MAX);
        return false;
    }
    return frames_put(&host->out, type, 0, text, length);
}

static bool is_passed(const char *assignment)
{
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
        if (strncmp(assignment, passed[i], strlen(passed[i])) == 0) {
            return true;
        }
    }
    return false;
}

bool host_tell_job(struct host *host, const struct hosts_job *job)
{
    char folder[PATH_MAX];
    bool ok = put_text(host, FRAME_KEY, job->key) && put_text(host, FRAME_ID, job->id);
    for (char **e = environ; ok && *e != NULL; e++) {
        ok = !is_passed(*e) || put_text(host, FRAME_ENVIRONMENT, *e);
    }
    for (int i = 0; ok && i < job->environment_count; i++) {
        ok = put_text(host, FRAME_ENVIRONMENT, job->environment[i]);
    }
    for (char **a = job->argv; ok && *a != NULL; a++) {
        ok = put_text(host, FRAME_ARGUMENT, *a);
    }
    if (ok && getcwd(folder, sizeof(folder)) != NULL) {
        ok = put_text(host, FRAME_FOLDER, folder);
    }
    uint32_t size = (uint32_t)job->list->ranks;
    uint32_t flags = (uint32_t)host->count | (job->bind == LAUNCH_BIND_CORE   ? FRAME_BIND_CORES
                                              : job->bind == LAUNCH_BIND_HOME ? FRAME_BIND_HOMES
                                                                              : 0);
    return ok && frames_put_numbers(&host->out, FRAME_START, host->first, size, flags, 2);
}
