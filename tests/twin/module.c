/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each copy of a module has of TWIN; see twin.h. The module is linked with --wrap for the
 * functions below, which the harness may call, and a thread of a rank may not. A thread that a rank
 * makes is in the rank's process.
 */
#include "twin.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RANKS = 16 };

static __thread bool is_rank;

/* twin_live() is a rank's life, called on its thread in its own copy. */
TWIN_EXPORT void twin_live(int rank, void *arg);
void twin_live(int rank, void *arg)
{
    is_rank = true;
    twin_life(rank, arg);
}

static void (*lives[RANKS])(int rank, void *arg) = {twin_live};

/* ---- Copies ---------------------------------------------------------------- */

static void die(const char *what)
{
    perror(what);
    exit(2);
}

/* A file of its own, since dlopen() knows one that it has loaded already. It stays open: what
 * writes reports looks there for the names of functions. */
static void *load_copy(const char *module)
{
    char path[64];
    struct stat st;
    int from = open(module, O_RDONLY | O_CLOEXEC), to = memfd_create("twin", MFD_CLOEXEC);
    if (from < 0 || to < 0 || fstat(from, &st) != 0) {
        die(module);
    }
    for (off_t left = st.st_size; left > 0;) {
        ssize_t n = sendfile(to, from, NULL, (size_t)left);
        if (n <= 0) {
            die(module);
        }
        left -= n;
    }
    close(from);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", to);
    return dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

void twin_load(const char *module, int ranks)
{
    for (int r = 1; r < ranks && r < RANKS; r++) {
        void *copy = lives[r] == NULL ? load_copy(module) : NULL;
        if (copy != NULL) {
            *(void **)&lives[r] = dlsym(copy, "twin_live");
        }
        if (lives[r] == NULL) {
            fprintf(stderr, "%s: no copy of it for rank %d: %s\n", module, r, dlerror());
            exit(2);
        }
    }
}

/* ---- Ranks ----------------------------------------------------------------- */

/* How a thread of a rank starts. */
struct start {
    struct process *process;
    void *(*run)(void *);
    void *arg;
};

static void *enter(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    is_rank = true;
    twin_process_enter(start.process);
    return start.run(start.arg);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *arg);

static int create(pthread_t *thread, const pthread_attr_t *attributes, struct start start)
{
    struct start *copy = malloc(sizeof(*copy));
    if (copy == NULL) {
        return ENOMEM;
    }
    *copy = start;
    int rc = __real_pthread_create(thread, attributes, enter, copy);
    if (rc != 0) {
        free(copy);
    }
    return rc;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *arg)
{
    if (!is_rank) {
        return __real_pthread_create(thread, attributes, run, arg);
    }
    struct process *mine = twin_process_enter(NULL);
    twin_process_enter(mine);
    return create(thread, attributes, (struct start){mine, run, arg});
}

struct rank {
    int number;
    void *arg;
};

static void *life(void *arg)
{
    const struct rank *r = arg;
    lives[r->number](r->number, r->arg);
    return NULL;
}

void twin_spread(int ranks, void *arg)
{
    pthread_t thread[RANKS];
    struct rank rank[RANKS];
    struct process *process[RANKS];
    for (int r = 0; r < ranks; r++) {
        process[r] = twin_process_new();
        rank[r] = (struct rank){r, arg};
        if (process[r] == NULL ||
            create(&thread[r], NULL, (struct start){process[r], life, &rank[r]}) != 0) {
            die("a thread for each rank");
        }
    }
    for (int r = 0; r < ranks; r++) {
        pthread_join(thread[r], NULL);
    }
    for (int r = 0; r < ranks; r++) {
        twin_process_free(process[r]);
    }
}

/* ---- What acts on the whole process ---------------------------------------- */

#define WHOLE(type_, name_, parameters_, ...)                                                      \
    type_ __real_##name_ parameters_;                                                              \
    type_ __wrap_##name_ parameters_;                                                              \
    type_ __wrap_##name_ parameters_                                                               \
    {                                                                                              \
        if (is_rank) {                                                                             \
            twin_refuse(#name_);                                                                   \
        }                                                                                          \
        return __real_##name_(__VA_ARGS__);                                                        \
    }

WHOLE(pid_t, fork, (void))
WHOLE(int, kill, (pid_t pid, int sig), pid, sig)
WHOLE(int, raise, (int sig), sig)
WHOLE(int, setenv, (const char *name, const char *value, int replace), name, value, replace)
WHOLE(int, unsetenv, (const char *name), name)
WHOLE(int, sigaction, (int sig, const struct sigaction *new, struct sigaction *old), sig, new, old)
WHOLE(int, setrlimit, (__rlimit_resource_t what, const struct rlimit *limit), what, limit)
WHOLE(int, dup2, (int from, int to), from, to)

_Noreturn void __real_exit(int status);
_Noreturn void __wrap_exit(int status);
_Noreturn void __wrap_exit(int status)
{
    if (is_rank) {
        twin_refuse("exit");
    }
    __real_exit(status);
}
