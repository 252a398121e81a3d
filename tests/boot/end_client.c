/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank of a job that does not end well, for ends.c and wrong_launcher.c:
 *
 *     end_client join          "rank R of N", or why not and status 1
 *     end_client abort CODE    the last rank aborts the job, the others wait
 *     end_client lost FOLDER   rank 0 does nothing, the others wait for it; each
 *                              writes its pid to FOLDER/R, and when the wait
 *                              has ended what the calls gave to FOLDER/R.end
 */
#include "pinwheel.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A text under a name, seen whole or not at all. */
static void leave_note(const char *folder, const char *suffix, int rank, const char *text)
{
    char path[512], draft[520];
    snprintf(path, sizeof(path), "%s/%d%s", folder, rank, suffix);
    snprintf(draft, sizeof(draft), "%s.draft", path);
    FILE *f = fopen(draft, "we");
    if (f == NULL || fputs(text, f) < 0 || fclose(f) != 0 || rename(draft, path) != 0) {
        perror(path);
        exit(1);
    }
}

static int abort_job(struct pinwheel_job *job, int code)
{
    printf("%d\n", (int)getpid());
    fflush(stdout);
    if (pinwheel_job_barrier(job) != 0) {
        return 1;
    }
    if (pinwheel_job_rank(job) == pinwheel_job_size(job) - 1) {
        if (pinwheel_job_abort(job, code) != 0) {
            fprintf(stderr, "end_client: %s\n", pinwheel_job_error(job));
            return 1;
        }
        pause(); /* the launcher ends this one too */
    }
    pinwheel_job_barrier(job);
    return 1;
}

static int lose_launcher(struct pinwheel_job *job, const char *folder)
{
    char text[2048], key[16], value[64];
    int rank = pinwheel_job_rank(job);
    signal(SIGPIPE, SIG_IGN);
    snprintf(key, sizeof(key), "key-%d", rank);
    if (pinwheel_job_put(job, key, "x") != 0 || pinwheel_job_barrier(job) != 0) {
        return 1;
    }
    snprintf(text, sizeof(text), "%d", (int)getpid());
    leave_note(folder, "", rank, text);
    if (rank == 0) {
        alarm(60);
        pause();
    }
    int barrier = pinwheel_job_barrier(job);
    char why[512];
    snprintf(why, sizeof(why), "%s", pinwheel_job_error(job));
    int known = pinwheel_job_get(job, key, value, sizeof(value));
    int unknown = pinwheel_job_get(job, "nobody-put-this", value, sizeof(value));
    int left = pinwheel_job_finalize(job);
    snprintf(text, sizeof(text), "barrier %d get %d %d finalize %d: %s", barrier, known, unknown,
             left, why);
    leave_note(folder, ".end", rank, text);
    return 0;
}

int main(int argc, char **argv)
{
    struct pinwheel_job *job;
    if (argc < 2) {
        fprintf(stderr, "usage: end_client join | abort CODE | lost FOLDER\n");
        return 2;
    }
    int rc = pinwheel_job_init(&job);
    if (rc != 0) {
        fprintf(stderr, "%d %s\n", rc, pinwheel_job_error(NULL));
        return 1;
    }
    if (strcmp(argv[1], "abort") == 0 && argc == 3) {
        return abort_job(job, atoi(argv[2]));
    }
    if (strcmp(argv[1], "lost") == 0 && argc == 3) {
        return lose_launcher(job, argv[2]);
    }
    printf("rank %d of %d\n", pinwheel_job_rank(job), pinwheel_job_size(job));
    return pinwheel_job_finalize(job) == 0 ? 0 : 1;
}
