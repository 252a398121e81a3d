/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads from the debug information of an image of which kind a handler is, by the type of its first
 * parameter, and which structs it uses, by the types that its variables point to.
 *
 *      const ptl_header_t h    header      ptl_size_t dropped_bytes    completion
 *      const ptl_payload_t p   payload     struct x *s = state         struct x
 */
#include "handler.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <libelf.h>
#include <stdio.h>
#include <string.h>

/* ---- Kinds ---- */

static bool is_function_at(Dwarf_Die *die, uint32_t pc)
{
    Dwarf_Addr low;
    return dwarf_tag(die) == DW_TAG_subprogram && dwarf_lowpc(die, &low) == 0 && low == pc;
}

static bool find_function(Dwarf *dwarf, uint32_t pc, Dwarf_Die *found)
{
    Dwarf_Off at = 0, next;
    size_t header;
    for (; dwarf_nextcu(dwarf, at, &next, &header, NULL, NULL, NULL) == 0; at = next) {
        Dwarf_Die unit;
        if (dwarf_offdie(dwarf, at + header, &unit) == NULL || dwarf_child(&unit, found) != 0) {
            continue;
        }
        do {
            if (is_function_at(found, pc)) {
                return true;
            }
        } while (dwarf_siblingof(found, found) == 0);
    }
    return false;
}

static bool find_parameter(Dwarf_Die *function, Dwarf_Die *found)
{
    if (dwarf_child(function, found) != 0) {
        return false;
    }
    do {
        if (dwarf_tag(found) == DW_TAG_formal_parameter) {
            return true;
        }
    } while (dwarf_siblingof(found, found) == 0);
    return false;
}

static int kind_of(Dwarf_Die *parameter)
{
    static const struct {
        const char *type;
        enum hpu_call kind;
    } kinds[] = {{"ptl_header_t", HPU_CALL_HEADER},
                 {"ptl_payload_t", HPU_CALL_PAYLOAD},
                 {"ptl_size_t", HPU_CALL_COMPLETION}};
    Dwarf_Die type = *parameter;
    Dwarf_Attribute a;
    while (dwarf_attr_integrate(&type, DW_AT_type, &a) != NULL &&
           dwarf_formref_die(&a, &type) != NULL && dwarf_tag(&type) != DW_TAG_pointer_type) {
        const char *name = dwarf_diename(&type);
        for (size_t i = 0; name != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
            if (strcmp(name, kinds[i].type) == 0) {
                return (int)kinds[i].kind;
            }
        }
    }
    return HPU_KIND_NONE;
}

/* ---- Structs ---- */

struct search {
    struct hpu_struct *structs;
    int count, most;
};

/* Strips names and qualifiers off a type; false: there is no type. */
static bool bare_type(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute a;
    *type = *die;
    do {
        if (dwarf_attr_integrate(type, DW_AT_type, &a) == NULL ||
            dwarf_formref_die(&a, type) == NULL) {
            return false;
        }
    } while (dwarf_tag(type) == DW_TAG_typedef || dwarf_tag(type) == DW_TAG_const_type ||
             dwarf_tag(type) == DW_TAG_volatile_type);
    return true;
}

static void add_struct(struct search *s, Dwarf_Die *variable)
{
    Dwarf_Die pointer, type;
    Dwarf_Word bytes;
    if (!bare_type(variable, &pointer) || dwarf_tag(&pointer) != DW_TAG_pointer_type ||
        !bare_type(&pointer, &type) || dwarf_tag(&type) != DW_TAG_structure_type ||
        dwarf_aggregate_size(&type, &bytes) != 0) {
        return;
    }
    const char *name = dwarf_diename(&type);
    name = name != NULL ? name : "(no name)";
    for (int i = 0; i < s->count; i++) {
        if (strcmp(s->structs[i].name, name) == 0) {
            return;
        }
    }
    if (s->count < s->most) {
        struct hpu_struct *to = &s->structs[s->count++];
        snprintf(to->name, sizeof(to->name), "%s", name);
        to->bytes = bytes;
    }
}

/* Collects the structs that variables of the function's own blocks point to; blocks of inlined
 * functions are left out. */
static void search_block(struct search *s, Dwarf_Die *block, int depth)
{
    Dwarf_Die die;
    if (depth > 16 || dwarf_child(block, &die) != 0) {
        return;
    }
    do {
        if (dwarf_tag(&die) == DW_TAG_variable) {
            add_struct(s, &die);
        } else if (dwarf_tag(&die) == DW_TAG_lexical_block) {
            search_block(s, &die, depth + 1);
        }
    } while (dwarf_siblingof(&die, &die) == 0);
}

/* ---- Images ---- */

/* Calls look() with the debug information of the function at `pc`, if there is any. */
static void with_function(const struct rv32_image *image, uint32_t pc,
                          void (*look)(Dwarf_Die *function, void *context), void *context)
{
    Dwarf_Die function;
    elf_version(EV_CURRENT);
    Elf *elf = elf_memory((char *)image->file, image->file_size);
    Dwarf *dwarf = elf != NULL ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
    if (dwarf != NULL && find_function(dwarf, pc, &function)) {
        look(&function, context);
    }
    dwarf_end(dwarf);
    elf_end(elf);
}

static void look_for_kind(Dwarf_Die *function, void *context)
{
    Dwarf_Die parameter;
    int *kind = context;
    *kind = find_parameter(function, &parameter) ? kind_of(&parameter) : HPU_KIND_NONE;
}

int hpu_handler_kind(const struct rv32_image *image, uint32_t pc)
{
    int kind = HPU_KIND_UNKNOWN;
    with_function(image, pc, look_for_kind, &kind);
    return kind;
}

static void look_for_structs(Dwarf_Die *function, void *context)
{
    search_block(context, function, 0);
}

int hpu_handler_structs(const struct rv32_image *image, uint32_t pc, struct hpu_struct *structs,
                        int most)
{
    struct search s = {.structs = structs, .most = most};
    with_function(image, pc, look_for_structs, &s);
    return s.count;
}
