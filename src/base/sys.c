/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * System calls, and the clock, found in the vDSO: the library that the kernel maps into every
 * process. Its address is in the auxiliary vector and its functions are in its own symbol table, so
 * a function of the same name in the program is never found. Where there is no vDSO (valgrind hides
 * it) the clock is a system call.
 */
#include "base/sys.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>

typedef int sys_clock_function(clockid_t clock, struct timespec *t);

#if !SYS_BY_LIBC
static int clock_by_call(clockid_t clock, struct timespec *t)
{
    return (int)SYS_CALL(SYS_clock_gettime, clock, t);
}

/* The parts of the vDSO that its dynamic section points to. */
struct vdso {
    uintptr_t base; /* what to add to an address of the file to have that in memory */
    const ElfW(Sym) * symbols;
    const char *names;
    const uint32_t *hash, *gnu_hash;
};

static bool find_tables(const ElfW(Ehdr) * elf, struct vdso *v)
{
    const ElfW(Phdr) *part = (const void *)((const char *)elf + elf->e_phoff);
    const ElfW(Dyn) *dynamic = NULL;
    bool loaded = false;
    for (unsigned i = 0; i < elf->e_phnum; i++) {
        if (part[i].p_type == PT_LOAD && !loaded) {
            loaded = true;
            v->base = (uintptr_t)elf + part[i].p_offset - part[i].p_vaddr;
        } else if (part[i].p_type == PT_DYNAMIC) {
            dynamic = (const void *)((const char *)elf + part[i].p_offset);
        }
    }
    for (; loaded && dynamic != NULL && dynamic->d_tag != DT_NULL; dynamic++) {
        const void *at = (const void *)(v->base + dynamic->d_un.d_ptr);
        switch (dynamic->d_tag) {
        case DT_SYMTAB:
            v->symbols = at;
            break;
        case DT_STRTAB:
            v->names = at;
            break;
        case DT_HASH:
            v->hash = at;
            break;
        case DT_GNU_HASH:
            v->gnu_hash = at;
            break;
        default:
            break;
        }
    }
    return v->symbols != NULL && v->names != NULL && (v->hash != NULL || v->gnu_hash != NULL);
}

/* The number of symbols is in the older hash table (DT_HASH). Newer kernels leave that table out;
 * then it is one more than the last index of the last chain of the other one (DT_GNU_HASH). */
static uint32_t count_symbols(const struct vdso *v)
{
    if (v->hash != NULL) {
        return v->hash[1];
    }
    uint32_t buckets = v->gnu_hash[0], first = v->gnu_hash[1], words = v->gnu_hash[2], last = 0;
    const uint32_t *bucket = v->gnu_hash + 4 + words * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
    const uint32_t *chain = bucket + buckets;
    for (uint32_t i = 0; i < buckets; i++) {
        last = bucket[i] > last ? bucket[i] : last;
    }
    if (last < first) {
        return first;
    }
    while ((chain[last - first] & 1) == 0) {
        last++;
    }
    return last + 1;
}

static sys_clock_function *find_clock(void)
{
    const ElfW(Ehdr) *elf = (const void *)getauxval(AT_SYSINFO_EHDR);
    struct vdso v = {0};
    sys_clock_function *found = clock_by_call;
    int tsc = PR_TSC_ENABLE;
    SYS_CALL(SYS_prctl, PR_GET_TSC, &tsc, 0, 0, 0);
    if (tsc == PR_TSC_SIGSEGV) {
        return found; /* the vDSO reads a clock that is trapped: src/virtual/tsc.c */
    }
    if (elf == NULL || memcmp(elf->e_ident, ELFMAG, SELFMAG) != 0 || !find_tables(elf, &v)) {
        return found;
    }
    uint32_t count = count_symbols(&v);
    for (uint32_t i = 0; i < count; i++) {
        const ElfW(Sym) *s = &v.symbols[i];
        if (s->st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s->st_info) == STT_FUNC &&
            strcmp(v.names + s->st_name, "__vdso_clock_gettime") == 0) {
            void *address = (void *)(v.base + s->st_value);
            memcpy(&found, &address, sizeof(found));
        }
    }
    return found;
}
#else
static sys_clock_function *find_clock(void)
{
    return clock_gettime;
}
#endif

static int first_call(clockid_t clock, struct timespec *t);
static sys_clock_function *sys_clock = first_call;

/* The first call finds the clock's function and stores it for all later calls; several threads may
 * do so at once, with the same result. */
static int first_call(clockid_t clock, struct timespec *t)
{
    sys_clock_function *found = find_clock();
    __atomic_store_n(&sys_clock, found, __ATOMIC_RELAXED);
    return found(clock, t);
}

/* ---- System calls ---- */

void sys_yield(void)
{
    (void)SYS(sched_yield(), SYS_sched_yield);
}

void sys_nap(int64_t ns)
{
    struct timespec t = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    (void)SYS(nanosleep(&t, NULL), SYS_nanosleep, &t, NULL);
}

int sys_open(const char *path, int flags, mode_t mode)
{
    return (int)SYS(open(path, flags, mode), SYS_openat, AT_FDCWD, path, flags, mode);
}

int sys_close(int fd)
{
    return (int)SYS(close(fd), SYS_close, fd);
}

ssize_t sys_read(int fd, void *to, size_t n)
{
    return SYS(read(fd, to, n), SYS_read, fd, to, n);
}

ssize_t sys_pread(int fd, void *to, size_t n, off_t at)
{
    return SYS(pread(fd, to, n, at), SYS_pread64, fd, to, n, at);
}

ssize_t sys_write(int fd, const void *from, size_t n)
{
    return SYS(write(fd, from, n), SYS_write, fd, from, n);
}

int sys_flock(int fd, int operation)
{
    return (int)SYS(flock(fd, operation), SYS_flock, fd, operation);
}

int sys_lock_description(int fd)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return (int)SYS(fcntl(fd, F_OFD_SETLK, &all), SYS_fcntl, fd, F_OFD_SETLK, &all);
}

int sys_poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    return (int)SYS(poll(fds, n, timeout_ms), SYS_poll, fds, n, timeout_ms);
}

int sys_epoll_wait(int epoll, struct epoll_event *events, int most, int timeout_ms)
{
    return (int)SYS(epoll_wait(epoll, events, most, timeout_ms), SYS_epoll_wait, epoll, events,
                    most, timeout_ms);
}

int sys_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    return (int)SYS(epoll_ctl(epoll, operation, fd, event), SYS_epoll_ctl, epoll, operation, fd,
                    event);
}

ssize_t sys_recvfrom(int fd, void *to, size_t n, int flags, struct sockaddr *from,
                     socklen_t *length)
{
    return SYS(recvfrom(fd, to, n, flags, from, length), SYS_recvfrom, fd, to, n, flags, from,
               length);
}

ssize_t sys_recvmsg(int fd, struct msghdr *m, int flags)
{
    return SYS(recvmsg(fd, m, flags), SYS_recvmsg, fd, m, flags);
}

ssize_t sys_sendto(int fd, const void *from, size_t n, int flags, const struct sockaddr *to,
                   socklen_t length)
{
    return SYS(sendto(fd, from, n, flags, to, length), SYS_sendto, fd, from, n, flags, to, length);
}

ssize_t sys_sendmsg(int fd, const struct msghdr *m, int flags)
{
    return SYS(sendmsg(fd, m, flags), SYS_sendmsg, fd, m, flags);
}

int sys_connect(int fd, const struct sockaddr *to, socklen_t length)
{
    return (int)SYS(connect(fd, to, length), SYS_connect, fd, to, length);
}

ssize_t sys_process_vm_readv(pid_t process, const struct iovec *local, unsigned long locals,
                             const struct iovec *remote, unsigned long remotes)
{
    return SYS(process_vm_readv(process, local, locals, remote, remotes, 0), SYS_process_vm_readv,
               process, local, locals, remote, remotes, 0);
}

ssize_t sys_getrandom(void *to, size_t n)
{
    return SYS(getrandom(to, n, 0), SYS_getrandom, to, n, 0);
}

void sys_signal_mask(int how, const sigset_t *set, sigset_t *before)
{
#if SYS_BY_LIBC
    pthread_sigmask(how, set, before);
#else
    /* SIGSYS: src/virtual/trap.c, whose threads must not block it */
    enum { KERNEL_BYTES = 8, LIBCS_FIRST = 32, LIBCS_LAST = 33 };
    sigset_t all_but_libcs;
    if (set != NULL) {
        all_but_libcs = *set;
        ((uint64_t *)&all_but_libcs)[0] &=
            ~(UINT64_C(1) << (LIBCS_FIRST - 1) | UINT64_C(1) << (LIBCS_LAST - 1) |
              UINT64_C(1) << (SIGSYS - 1));
        set = &all_but_libcs;
    }
    SYS_CALL(SYS_rt_sigprocmask, how, set, before, KERNEL_BYTES);
#endif
}

int64_t sys_clock_ns(clockid_t clock)
{
    struct timespec t = {0};
    return __atomic_load_n(&sys_clock, __ATOMIC_RELAXED)(clock, &t) != 0
               ? -1
               : (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int64_t clock_ns(void)
{
    struct timespec t;
    __atomic_load_n(&sys_clock, __ATOMIC_RELAXED)(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns)
{
    struct timespec t = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
    SYS_CALL(SYS_futex, word, FUTEX_WAIT, value, timeout_ns < 0 ? NULL : &t, NULL, 0);
}

bool futex_wait_signal(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns)
{
    struct timespec t = {.tv_sec = timeout_ns / 1000000000, .tv_nsec = timeout_ns % 1000000000};
    return SYS_CALL(SYS_futex, word, FUTEX_WAIT, value, timeout_ns < 0 ? NULL : &t, NULL, 0) ==
           -EINTR;
}

char sys_task_state(const char *path)
{
    char text[256];
    int fd = sys_open(path, O_RDONLY | O_CLOEXEC, 0);
    ssize_t n = fd >= 0 ? sys_read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0) {
        sys_close(fd);
    }
    text[n > 0 ? n : 0] = '\0';
    const char *name_end = strrchr(text, ')');
    return name_end != NULL && name_end[1] == ' ' ? name_end[2] : '\0';
}

void futex_wake(_Atomic uint32_t *word)
{
    SYS_CALL(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

void futex_wake_one(_Atomic uint32_t *word)
{
    SYS_CALL(SYS_futex, word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

int membarrier_register(void)
{
    return (int)SYS_CALL(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
}

int membarrier_all(void)
{
    return (int)SYS_CALL(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

int membarrier_own_register(void)
{
    return (int)SYS_CALL(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0);
}

int membarrier_own(void)
{
    return (int)SYS_CALL(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}
