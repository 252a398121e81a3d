/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The clock, found in the vDSO: the library that the kernel maps into every process. Its
 * address is in the auxiliary vector, its functions are in its own table of symbols, so that no
 * symbol of the program's has a say. Where there is none (valgrind hides it) the clock is a
 * system call.
 */
#include "base/sys.h"

#include <elf.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#if !SYS_BY_LIBC
static int clock_by_call(clockid_t clock, struct timespec *t)
{
    return (int)SYS_CALL(SYS_clock_gettime, clock, t);
}

/* What of the vDSO's dynamic section tells where its symbols are. */
struct vdso {
    uintptr_t base; /* what is to be added to its addresses */
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

/* The older hash table says how many symbols there are. Newer kernels leave it out; then it is
 * one more than the last one of the last chain of the other table. */
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

/* The first call finds the clock for all later ones; several threads may at once. */
static int first_call(clockid_t clock, struct timespec *t)
{
    sys_clock_function *found = find_clock();
    __atomic_store_n(&sys_clock, found, __ATOMIC_RELAXED);
    return found(clock, t);
}

sys_clock_function *sys_clock = first_call;
