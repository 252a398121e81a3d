/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to preload: its versions of what blocks, yields, waits or starts threads are those of
 * a run time that knows its own threads only. Called by libportals or libpinwheel they end the
 * process with a line that names them; whoever else calls them gets the real ones. So any
 * program of tests can be run with it.
 *
 *     NAME:  (registers saved) judge(NAME, who called) ──► the real NAME, or the end
 *
 * It says on standard error that it watches: a test that cannot load it would pass in vain.
 */
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* clang-format off */
#define NAMES(X)                                                                                   \
    X(sched_yield) X(pthread_yield) X(nanosleep) X(clock_nanosleep) X(usleep) X(sleep) X(alarm)    \
    X(poll) X(ppoll) X(select) X(pselect) X(epoll_wait) X(epoll_pwait) X(epoll_pwait2)             \
    X(epoll_ctl) X(syscall) X(open) X(open64) X(openat) X(close) X(read) X(write) X(readv)         \
    X(writev) X(pread) X(pwrite) X(recv) X(recvfrom) X(recvmsg) X(recvmmsg) X(send) X(sendto)      \
    X(sendmsg) X(sendmmsg) X(connect) X(accept) X(accept4) X(flock) X(lockf)                       \
    X(process_vm_readv) X(process_vm_writev) X(eventfd_read) X(eventfd_write) X(getrandom)         \
    X(clock_gettime) X(gettimeofday) X(time) X(clock)                                              \
    X(pause) X(sigwait) X(sigwaitinfo) X(sigtimedwait) X(sigsuspend) X(sigprocmask)                \
    X(pthread_sigmask) X(wait) X(waitpid) X(waitid) X(fork) X(vfork) X(system)                     \
    X(pthread_create) X(pthread_join) X(pthread_detach) X(pthread_exit) X(pthread_once)            \
    X(pthread_key_create) X(pthread_key_delete) X(pthread_setspecific) X(pthread_getspecific)      \
    X(pthread_setcancelstate) X(pthread_setcanceltype) X(pthread_testcancel)                       \
    X(pthread_mutex_init) X(pthread_mutex_destroy) X(pthread_mutex_lock)                           \
    X(pthread_mutex_trylock) X(pthread_mutex_timedlock) X(pthread_mutex_unlock)                    \
    X(pthread_cond_init) X(pthread_cond_destroy) X(pthread_cond_wait) X(pthread_cond_timedwait)    \
    X(pthread_cond_signal) X(pthread_cond_broadcast)                                               \
    X(pthread_rwlock_rdlock) X(pthread_rwlock_wrlock) X(pthread_rwlock_unlock)                     \
    X(pthread_spin_lock) X(pthread_spin_unlock) X(pthread_barrier_wait)                            \
    X(sem_wait) X(sem_trywait) X(sem_timedwait) X(sem_post)
/* clang-format on */

enum name {
#define ENUM(name) NAME_##name,
    NAMES(ENUM) NAMES_COUNT
};

static const char *const names[] = {
#define TEXT(name) #name,
    NAMES(TEXT)};

static void *real[NAMES_COUNT];

/* Where the code of the libraries is that are watched. */
enum { RANGES_MOST = 8 };
static struct {
    uintptr_t begin, end;
} ranges[RANGES_MOST];
static unsigned range_count;

static void say(const char *text)
{
    static ssize_t (*real_write)(int, const void *, size_t);
    if (real_write == NULL) {
        void *found = dlsym(RTLD_NEXT, "write");
        memcpy(&real_write, &found, sizeof(found));
    }
    (void)!real_write(STDERR_FILENO, text, strlen(text));
}

void *hostile_judge(unsigned name, uintptr_t caller) __attribute__((visibility("hidden"), used));
void *hostile_judge(unsigned name, uintptr_t caller)
{
    for (unsigned i = 0; i < range_count; i++) {
        if (caller >= ranges[i].begin && caller < ranges[i].end) {
            say("hostile: the library calls the program's ");
            say(names[name]);
            say("()\n");
            abort();
        }
    }
    if (real[name] == NULL) {
        real[name] = dlsym(RTLD_NEXT, names[name]);
    }
    return real[name];
}

/* Keeps the registers that carry arguments; the stack is aligned for the call. */
#define STUB(name) STUB_AS(name, NAME_##name)
#define STUB_AS(name, index)                                                                       \
    void hostile_##name(void) __asm__(#name) __attribute__((naked, visibility("default")));        \
    void hostile_##name(void)                                                                      \
    {                                                                                              \
        __asm__ volatile("pushq %%rax\n\tpushq %%rdi\n\tpushq %%rsi\n\tpushq %%rdx\n\t"            \
                         "pushq %%rcx\n\tpushq %%r8\n\tpushq %%r9\n\t"                             \
                         "movl %0, %%edi\n\tmovq 56(%%rsp), %%rsi\n\t"                             \
                         "call hostile_judge\n\tmovq %%rax, %%r11\n\t"                             \
                         "popq %%r9\n\tpopq %%r8\n\tpopq %%rcx\n\tpopq %%rdx\n\t"                  \
                         "popq %%rsi\n\tpopq %%rdi\n\tpopq %%rax\n\tjmp *%%r11"                    \
                         :                                                                         \
                         : "i"(index));                                                            \
    }
NAMES(STUB)

static int note_library(struct dl_phdr_info *info, size_t size, void *arg)
{
    const char *base = strrchr(info->dlpi_name, '/');
    (void)size;
    (void)arg;
    base = base != NULL ? base + 1 : info->dlpi_name;
    if (strncmp(base, "libportals.so", 13) != 0 && strncmp(base, "libpinwheel.so", 14) != 0) {
        return 0;
    }
    for (unsigned i = 0; i < info->dlpi_phnum && range_count < RANGES_MOST; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X) != 0) {
            ranges[range_count].begin = info->dlpi_addr + p->p_vaddr;
            ranges[range_count++].end = info->dlpi_addr + p->p_vaddr + p->p_memsz;
        }
    }
    return 0;
}

__attribute__((constructor)) static void watch(void)
{
    dl_iterate_phdr(note_library, NULL);
    say(range_count != 0 ? "hostile: watches\n" : "hostile: neither library is here\n");
}
