/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads by libc's own functions; see thread.h. */
#include "base/thread.h"

#include "base/fault.h"
#include "base/mutex.h"
#include "base/sys.h"

#include <dlfcn.h>
#include <signal.h>
#include <string.h>

/* pthread functions of libc, found once. */
static struct {
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    int (*join)(pthread_t, void **);
    int (*key_create)(pthread_key_t *, void (*)(void *));
    int (*set_specific)(pthread_key_t, const void *);
    int (*set_cancel_state)(int, int *);
} libc;

static struct once found;

/* True if the program is linked with the run time of a sanitizer, though this library may not
 * be. */
static bool is_sanitized(void)
{
    return dlsym(RTLD_DEFAULT, "__tsan_init") != NULL || dlsym(RTLD_DEFAULT, "__asan_init") != NULL;
}

static void find(void)
{
    /* Before glibc 2.34 these functions were in libpthread.so.0. */
    static const char *const libraries[] = {"libc.so.6", "libpthread.so.0"};
    static const struct {
        const char *name;
        void *to;
    } wanted[] = {{"pthread_create", &libc.create},
                  {"pthread_join", &libc.join},
                  {"pthread_key_create", &libc.key_create},
                  {"pthread_setspecific", &libc.set_specific},
                  {"pthread_setcancelstate", &libc.set_cancel_state}};
    bool by_linker = SYS_BY_LIBC || is_sanitized();
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        void *function = NULL;
        for (size_t k = 0; k < 2 && function == NULL && !by_linker; k++) {
            void *library = dlopen(libraries[k], RTLD_LAZY | RTLD_NOLOAD);
            function = library != NULL ? dlsym(library, wanted[i].name) : NULL;
        }
        if (function == NULL) {
            function = dlsym(RTLD_DEFAULT, wanted[i].name);
        }
        memcpy(wanted[i].to, &function, sizeof(function));
    }
}

/* The arguments of a new thread, on the stack of the thread that makes it, which waits until the
 * new thread has read them. */
struct begin {
    void *(*function)(void *);
    void *arg;
    const cpu_set_t *cpus;
    int error;
    _Atomic uint32_t begun;
};

static void *begin_thread(void *arg)
{
    struct begin *b = arg;
    void *(*function)(void *) = b->function;
    void *own = b->arg;
    long error =
        b->cpus == NULL ? 0 : SYS_CALL(SYS_sched_setaffinity, 0, sizeof(*b->cpus), b->cpus);
    b->error = (int)-error;
    /* from here on the maker may return, and the memory of `b` be gone */
    atomic_store(&b->begun, 1);
    futex_wake(&b->begun); /* a wake-up at an address where no thread waits does nothing */
    return error == 0 ? function(own) : NULL;
}

int thread_start(pthread_t *thread, const cpu_set_t *cpus, bool may_fault,
                 void *(*function)(void *), void *arg)
{
    struct begin b = {.function = function, .arg = arg, .cpus = cpus};
    sigset_t others, before;
    once(&found, find);
    sigfillset(&others);
    if (may_fault) {
        fault_keep(&others);
    }
    sys_signal_mask(SIG_SETMASK, &others, &before);
    int rc = libc.create(thread, NULL, begin_thread, &b);
    sys_signal_mask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        return rc;
    }
    while (atomic_load(&b.begun) == 0) {
        futex_wait(&b.begun, 0, -1);
    }
    if (b.error != 0) {
        thread_join(*thread);
    }
    return b.error;
}

void thread_join(pthread_t thread)
{
    once(&found, find);
    libc.join(thread, NULL);
}

int thread_key_create(pthread_key_t *key, void (*at_end)(void *value))
{
    once(&found, find);
    return libc.key_create(key, at_end);
}

int thread_key_set(pthread_key_t key, const void *value)
{
    return libc.set_specific(key, value);
}

void thread_cancel_state(int state, int *before)
{
    once(&found, find);
    libc.set_cancel_state(state, before);
}
