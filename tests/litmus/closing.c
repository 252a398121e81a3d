/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Invariant set 7: what a call has found by a handle, and another call takes away before the first
 * one has the lock. A thread is held up at a pause point (src/base/killpoint.h) of a call, the main
 * thread closes what the handle names, and opens it again in some cases; then the call goes on.
 * It must neither touch memory that is gone nor act on what has come in its place.
 *
 *     litmus_closing [CALL]    every call against every way to close, each in a process of its own
 */
#include "closing.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LIMIT_S = 60, REACH_S = 20 };

static __thread const char *armed; /* the label at which the thread is to be held up, once */
static sem_t reached, go;

__attribute__((visibility("default"))) void pinwheel_pause(const char *label);
void pinwheel_pause(const char *label)
{
    if (armed != NULL && strcmp(armed, label) == 0) {
        armed = NULL;
        sem_post(&reached);
        sem_wait(&go);
    }
}

void scene_fail(const char *what, int got)
{
    fprintf(stderr, "%s gives %d\n", what, got);
    _exit(1);
}

static bool wait_reached(void)
{
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += REACH_S;
    return sem_timedwait(&reached, &end) == 0;
}

static struct scene scene;
static const struct act *act;
static int result;

static void *run(void *arg)
{
    (void)arg;
    if (act->before != NULL) {
        act->before(&scene);
    }
    armed = act->label;
    result = act->call(&scene);
    if (armed != NULL) {
        fprintf(stderr, "the call did not pass '%s'\n", act->label);
        _exit(1);
    }
    return NULL;
}

static bool is_allowed(int rc)
{
    if (act->needs == IS_WAIT) {
        return rc == act->may;
    }
    return rc == PTL_ARG_INVALID || rc == PTL_NO_INIT || rc == act->may;
}

static int run_one(const struct way *way)
{
    pthread_t thread;
    alarm(LIMIT_S);
    sem_init(&reached, 0, 0);
    sem_init(&go, 0, 0);
    scene_open(&scene);
    struct scene old = scene;
    if (pthread_create(&thread, NULL, run, NULL) != 0 || !wait_reached()) {
        fprintf(stderr, "'%s' was not reached\n", act->label);
        return 1;
    }
    struct scene new = scene; /* the thread has the old one */
    way->close(&new);
    sem_post(&go);
    pthread_join(thread, NULL);
    if (!is_allowed(result)) {
        fprintf(stderr, "the call gives %d\n", result);
        return 1;
    }
    if (way->again) {
        scene_check(&new, &old);
    }
    return 0;
}

static bool run_apart(const struct way *way)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        _exit(run_one(way));
    }
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        perror("fork");
        return false;
    }
    bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (WIFSIGNALED(status)) {
        printf("FAILED %s against %s: signal %d (%s)\n", act->name, way->name, WTERMSIG(status),
               WTERMSIG(status) == SIGALRM ? "it hung" : strsignal(WTERMSIG(status)));
    } else if (!good) {
        printf("FAILED %s against %s\n", act->name, way->name);
    }
    return good;
}

int main(int argc, char **argv)
{
    int runs = 0, failed = 0;
    setenv("PINWHEEL_SEND_QUEUE", "2", 1);
    setenv("PINWHEEL_LINGER_MS", "20", 1);
    for (act = acts; act->name != NULL; act++) {
        for (const struct way *way = ways; way->name != NULL; way++) {
            if ((argc > 1 && strcmp(argv[1], act->name) != 0) || (way->what & act->needs) == 0) {
                continue;
            }
            runs++;
            failed += !run_apart(way);
        }
    }
    printf("%d meetings, %d failed\n", runs, failed);
    return runs == 0 || failed != 0;
}
