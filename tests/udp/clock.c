/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded: once the file CLOCK_JUMP exists, the wall clock is two days behind and the
 * monotonic one, as on a machine that was suspended, an hour ahead. The first call of the
 * library's after that makes the file CLOCK_JUMP.library: it must have noticed.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void note_library(const void *caller, const char *mark)
{
    static _Atomic bool noted;
    Dl_info info;
    char path[4096];
    if (atomic_load(&noted) || dladdr(caller, &info) == 0 || info.dli_fname == NULL ||
        strstr(info.dli_fname, "libportals") == NULL) {
        return;
    }
    atomic_store(&noted, true);
    snprintf(path, sizeof(path), "%s.library", mark);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{
    static _Atomic(int (*)(clockid_t, struct timespec *)) real;
    static _Atomic unsigned calls;
    static _Atomic bool jumped;
    int (*function)(clockid_t, struct timespec *) = atomic_load(&real);
    if (function == NULL) {
        function = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
        atomic_store(&real, function);
    }
    const char *mark = getenv("CLOCK_JUMP");
    if (!atomic_load(&jumped) && mark != NULL && atomic_fetch_add(&calls, 1) % 1024 == 0 &&
        access(mark, F_OK) == 0) {
        atomic_store(&jumped, true);
    }
    int rc = function(clock, t);
    if (rc == 0 && atomic_load(&jumped)) {
        note_library(__builtin_return_address(0), mark);
        t->tv_sec += clock == CLOCK_MONOTONIC ? 3600 : clock == CLOCK_REALTIME ? -172800 : 0;
    }
    return rc;
}
