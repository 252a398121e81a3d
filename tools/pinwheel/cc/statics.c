/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks for static data that handlers may not have (cc.h): data that can be written, since natively
 * there is one copy for all messages but on RV32 one for each core; and C++ objects that are
 * constructed when a program starts or a function is first called, since nothing does that on an
 * HPU.
 */
#include "cc.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <string.h>
#include <unistd.h>

/* ---- Names of variables, from the debug information ---- */

static bool is_at(Dwarf_Die *die, Dwarf_Addr address)
{
    Dwarf_Attribute a;
    Dwarf_Op *op;
    size_t ops;
    return dwarf_tag(die) == DW_TAG_variable && dwarf_attr(die, DW_AT_location, &a) != NULL &&
           dwarf_getlocation(&a, &op, &ops) == 0 && ops == 1 && op[0].atom == DW_OP_addr &&
           op[0].number == address;
}

/* Finds the variable at an address, in any function or namespace below `parent`. */
static bool find_at(Dwarf_Die *parent, Dwarf_Addr address, Dwarf_Die *found)
{
    Dwarf_Die die;
    if (dwarf_child(parent, &die) != 0) {
        return false;
    }
    do {
        if (is_at(&die, address)) {
            *found = die;
            return true;
        }
        if (find_at(&die, address, found)) {
            return true;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
    return false;
}

static bool find_variable(Dwarf *dwarf, Dwarf_Addr address, Dwarf_Die *found)
{
    Dwarf_Off at = 0, next;
    size_t header;
    Dwarf_Die unit;
    for (; dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL) == 0; at = next) {
        if (dwarf_offdie(dwarf, at + header, &unit) != NULL && find_at(&unit, address, found)) {
            return true;
        }
    }
    return false;
}

/* True if a variable, or the element of an array, is const. */
static bool is_const(Dwarf_Die *variable)
{
    Dwarf_Attribute a;
    Dwarf_Die type = *variable;
    while (dwarf_attr_integrate(&type, DW_AT_type, &a) != NULL &&
           dwarf_formref_die(&a, &type) != NULL) {
        int tag = dwarf_tag(&type);
        if (tag == DW_TAG_const_type) {
            return true;
        }
        if (tag != DW_TAG_typedef && tag != DW_TAG_array_type && tag != DW_TAG_volatile_type) {
            return false;
        }
    }
    return false;
}

/* ---- Symbols ---- */

static void say_variable(Dwarf *dwarf, const char *symbol, Dwarf_Addr address)
{
    Dwarf_Die variable;
    bool known = dwarf != NULL && find_variable(dwarf, address, &variable);
    const char *name = known ? dwarf_diename(&variable) : NULL;
    if (known && is_const(&variable)) {
        cc_say("static object %s: is const, but made when a program starts or a function is first "
               "called, and nothing does that on an HPU; a constexpr one is made by the compiler",
               name != NULL ? name : symbol);
    } else {
        cc_say("static variable %s: can be written; static data of handlers is const, "
               "what they share is in HPU memory",
               name != NULL ? name : symbol);
    }
}

/* Reports symbols of data that can be written. Symbols _ZGV..., which note whether a static object
 * of a function was constructed, are skipped: the object itself is reported. */
static int check_symbols(Elf *elf, Dwarf *dwarf, Elf_Scn *section, const GElf_Shdr *header)
{
    int found = 0;
    GElf_Shdr of;
    GElf_Sym s;
    Elf_Data *data = elf_getdata(section, NULL);
    for (int i = 0; data != NULL && gelf_getsym(data, i, &s) != NULL; i++) {
        const char *name = elf_strptr(elf, header->sh_link, s.st_name);
        int type = GELF_ST_TYPE(s.st_info);
        Elf_Scn *in = elf_getscn(elf, s.st_shndx);
        if ((type == STT_OBJECT || type == STT_TLS) && in != NULL && name != NULL &&
            gelf_getshdr(in, &of) != NULL && (of.sh_flags & SHF_WRITE) != 0 &&
            strncmp(name, "_ZGV", 4) != 0) {
            found++;
            say_variable(type == STT_OBJECT ? dwarf : NULL, name, s.st_value);
        }
    }
    return found;
}

int cc_check_variables(const char *output, const void *file, size_t size)
{
    int found = 0;
    size_t names;
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)file, size);
    Elf_Scn *section = NULL;
    if (elf == NULL || elf_getshdrstrndx(elf, &names) != 0) {
        elf_end(elf);
        return cc_say("%s: its sections cannot be read", output);
    }
    Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr h;
        if (gelf_getshdr(section, &h) != NULL && h.sh_type == SHT_SYMTAB) {
            found += check_symbols(elf, dwarf, section, &h);
        }
    }
    dwarf_end(dwarf);
    elf_end(elf);
    return found == 0 ? 0 : -1;
}

/* ---- Constructors ---- */

int cc_check_constructors(const char *source, const char *object)
{
    bool found = false;
    elf_version(EV_CURRENT);
    int fd = open(object, O_RDONLY | O_CLOEXEC);
    Elf *elf = fd >= 0 ? elf_begin(fd, ELF_C_READ, NULL) : NULL;
    Elf_Scn *section = NULL;
    if (elf == NULL) {
        int error = errno;
        if (fd >= 0) {
            close(fd);
        }
        return cc_say("%s: %s", object, fd >= 0 ? elf_errmsg(-1) : strerror(error));
    }
    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr h;
        found |= gelf_getshdr(section, &h) != NULL &&
                 (h.sh_type == SHT_INIT_ARRAY || h.sh_type == SHT_FINI_ARRAY);
    }
    elf_end(elf);
    close(fd);
    return !found ? 0
                  : cc_say("%s: has static constructors or destructors, which nothing calls on an "
                           "HPU; constexpr objects need none, and objects of the host have files "
                           "of their own",
                           source);
}
