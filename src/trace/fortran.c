/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs in Fortran. The MPIs' bindings of Fortran convert handles, statuses and constants, and
 * then call C: Open MPI's PMPI_X, MPICH's MPI_X in some places and PMPI_X in others. A binding that
 * calls PMPI_X bypasses this library. So, before the program begins, this file changes the global
 * offset tables of the bindings' libraries: the entry of PMPI_X gets the address of MPI_X, which is
 * this library's:
 *
 *     program ──► mpi_send_ ──┐  libmpi_mpifh, libmpichfort
 *     program ──► mpi_send_f08┴─► [PMPI_Send] ──► MPI_Send (here) ──► PMPI_Send
 *
 * So the recorder needs no bindings of its own. For a function that it does not wrap, MPI_X and
 * PMPI_X are the same function of the MPI, and nothing changes. Libraries that the program opens
 * later are changed in MPI_Init.
 */
#include "trace.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char *const bindings[] = {"libmpi_mpifh.so", "libmpi_usempif08.so", "libmpichfort.so"};

/* A library in memory. */
struct library {
    Elf64_Addr base;
    /* the range that the dynamic linker has made read-only after relocation */
    Elf64_Addr sealed, sealed_end;
    const char *strings;
    const Elf64_Sym *symbols;
    const Elf64_Rela *entries[2]; /* relocation entries: of data, and of functions */
    size_t count[2];
};

static bool is_binding(const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < sizeof(bindings) / sizeof(bindings[0]); i++) {
        if (strncmp(name, bindings[i], strlen(bindings[i])) == 0) {
            return true;
        }
    }
    return false;
}

/* Returns an address that the dynamic section has: in most libraries the dynamic linker has
 * replaced offsets by addresses already, in others it has not. */
static const void *address(const struct library *l, Elf64_Addr at)
{
    return (const void *)(at < l->base ? l->base + at : at);
}

static void read_dynamic(struct library *l, const Elf64_Dyn *d)
{
    for (; d->d_tag != DT_NULL; d++) {
        switch (d->d_tag) {
        case DT_STRTAB:
            l->strings = address(l, d->d_un.d_ptr);
            break;
        case DT_SYMTAB:
            l->symbols = address(l, d->d_un.d_ptr);
            break;
        case DT_RELA:
            l->entries[0] = address(l, d->d_un.d_ptr);
            break;
        case DT_RELASZ:
            l->count[0] = d->d_un.d_val / sizeof(Elf64_Rela);
            break;
        case DT_JMPREL:
            l->entries[1] = address(l, d->d_un.d_ptr);
            break;
        case DT_PLTRELSZ:
            l->count[1] = d->d_un.d_val / sizeof(Elf64_Rela);
            break;
        default:
            break;
        }
    }
}

static void set_entry(const struct library *l, Elf64_Addr at, void *function)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *start = (void *)(at & ~(page - 1));
    bool sealed = at >= l->sealed && at < l->sealed_end;
    if (!sealed || mprotect(start, page, PROT_READ | PROT_WRITE) == 0) {
        *(void **)at = function;
        if (sealed) {
            mprotect(start, page, PROT_READ);
        }
    }
}

static void redirect(const struct library *l, const Elf64_Rela *r)
{
    Elf64_Xword kind = ELF64_R_TYPE(r->r_info);
    if (kind != R_X86_64_JUMP_SLOT && kind != R_X86_64_GLOB_DAT) {
        return;
    }
    const char *name = l->strings + l->symbols[ELF64_R_SYM(r->r_info)].st_name;
    bool profiled = strncmp(name, "PMPI_", 5) == 0 || strncmp(name, "PMPIX_", 6) == 0;
    void *function = profiled ? dlsym(RTLD_DEFAULT, name + 1) : NULL;
    if (function != NULL) {
        set_entry(l, l->base + r->r_offset, function);
    }
}

static int visit(struct dl_phdr_info *info, size_t size, void *unused)
{
    struct library l = {.base = info->dlpi_addr};
    for (int i = 0; is_binding(info->dlpi_name) && i < info->dlpi_phnum; i++) {
        const Elf64_Phdr *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_DYNAMIC) {
            read_dynamic(&l, (const Elf64_Dyn *)(l.base + part->p_vaddr));
        } else if (part->p_type == PT_GNU_RELRO) {
            l.sealed = l.base + part->p_vaddr;
            l.sealed_end = l.sealed + part->p_memsz;
        }
    }
    for (size_t table = 0; table < 2 && l.strings != NULL && l.symbols != NULL; table++) {
        for (size_t i = 0; i < l.count[table]; i++) {
            redirect(&l, &l.entries[table][i]);
        }
    }
    return 0;
}

__attribute__((constructor)) void trace_fortran(void)
{
    dl_iterate_phdr(visit, NULL);
}
