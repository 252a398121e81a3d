/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handler state must have the same layout for the host, which fills it in, and for the cores. This
 * file compares the two by the debug information (DWARF) of two objects that were made from one
 * source (cc.h).
 *
 *   PTL_HANDLER_STATE(struct x)   ptl_handler_state_0: const pointer ─► struct x
 *   PTL_HANDLER(f)                ptl_handler_entry_f ─► f ─► variables ─► structs
 *
 * It compares the structs of the first line; if a source has none, those of the second. It walks
 * the types of both objects side by side, member by member, by name. Types that a state may not
 * have, such as long, are recognised in the RV32 object. There uint32_t is a long, too, so the walk
 * ends at a type with a fixed-width name.
 */
#include "cc.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH = 16, PATH = 256 };

struct comparison {
    const char *source;
    int found;       /* differences so far */
    int handlers;    /* registered handlers so far */
    bool named;      /* the source uses PTL_HANDLER_STATE() */
    char said[PATH]; /* the field that was reported last: the same struct comes up often */
};

/* ---- Objects ---- */

static const Dwfl_Callbacks callbacks = {.find_debuginfo = dwfl_standard_find_debuginfo,
                                         .section_address = dwfl_offline_section_address};

/* Opens the debug information of an object, with its relocations applied; NULL if it cannot be
 * read. */
static Dwarf *open_object(Dwfl **session, const char *path)
{
    Dwarf_Addr bias;
    *session = dwfl_begin(&callbacks);
    Dwfl_Module *m = *session != NULL ? dwfl_report_offline(*session, "", path, -1) : NULL;
    if (m != NULL) {
        dwfl_report_end(*session, NULL, NULL);
    }
    return m != NULL ? dwfl_module_getdwarf(m, &bias) : NULL;
}

static bool unit_of(Dwarf *dwarf, Dwarf_Die *unit)
{
    Dwarf_Off next;
    size_t header;
    return dwarf != NULL && dwarf_nextcu(dwarf, 0, &next, &header, NULL, NULL, NULL) == 0 &&
           dwarf_offdie(dwarf, header, unit) != NULL;
}

/* ---- Entries of the debug information ---- */

static const char *name_of(Dwarf_Die *die)
{
    const char *name = dwarf_diename(die);
    return name != NULL ? name : "";
}

/* Finds a definition by its name, in a unit or in a namespace of it. In C++ a namespace has the
 * declaration; the definition, in the namespace or in the unit, refers to it for its name. */
static bool definition_named(Dwarf_Die *parent, int tag, const char *name, Dwarf_Die *found)
{
    Dwarf_Die die;
    if (dwarf_child(parent, &die) != 0) {
        return false;
    }
    do {
        if (dwarf_tag(&die) == tag && !dwarf_hasattr(&die, DW_AT_declaration) &&
            strcmp(name_of(&die), name) == 0) {
            *found = die;
            return true;
        }
        if (dwarf_tag(&die) == DW_TAG_namespace && definition_named(&die, tag, name, found)) {
            return true;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
    return false;
}

static bool type_of(Dwarf_Die *die, Dwarf_Die *type)
{
    Dwarf_Attribute a;
    return dwarf_attr_integrate(die, DW_AT_type, &a) != NULL && dwarf_formref_die(&a, type) != NULL;
}

static Dwarf_Word number_of(Dwarf_Die *die, unsigned attribute, Dwarf_Word otherwise)
{
    Dwarf_Attribute a;
    Dwarf_Word value;
    return dwarf_attr(die, attribute, &a) != NULL && dwarf_formudata(&a, &value) == 0 ? value
                                                                                      : otherwise;
}

static Dwarf_Word size_of(Dwarf_Die *type)
{
    Dwarf_Word size;
    return dwarf_aggregate_size(type, &size) == 0 ? size : 0;
}

static bool fixed_width(const char *name)
{
    int bits = 0;
    char end = 0;
    const char *at = name + (name[0] == 'u');
    return sscanf(at, "int%d_t%c", &bits, &end) == 1 &&
           (bits == 8 || bits == 16 || bits == 32 || bits == 64);
}

static bool of_the_machine(const char *name)
{
    static const char *const names[] = {"size_t", "ssize_t", "ptrdiff_t", "intptr_t", "uintptr_t"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Strips const, volatile and type names that do not decide. True if it comes to a name that does (a
 * fixed-width type), which is in *name then. */
static bool peel(Dwarf_Die *type, const char **name)
{
    for (;;) {
        int tag = dwarf_tag(type);
        *name = name_of(type);
        if (tag == DW_TAG_typedef && (fixed_width(*name) || of_the_machine(*name))) {
            return true;
        }
        if ((tag != DW_TAG_typedef && tag != DW_TAG_const_type && tag != DW_TAG_volatile_type &&
             tag != DW_TAG_atomic_type) ||
            !type_of(type, type)) {
            return false;
        }
    }
}

static bool is_aggregate(Dwarf_Die *type)
{
    int tag = dwarf_tag(type);
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

/* ---- Comparing ---- */

static void complain(struct comparison *c, Dwarf_Die *at, const char *path, const char *what)
{
    int line = 0;
    if (strcmp(c->said, path) != 0) {
        const char *file = at != NULL ? dwarf_decl_file(at) : NULL;
        (void)(at != NULL && dwarf_decl_line(at, &line) == 0);
        fprintf(stderr, "%s:%d: %s: %s\n", file != NULL ? file : c->source, line, path, what);
        snprintf(c->said, sizeof(c->said), "%s", path);
    }
    c->found++;
}

static void compare_types(struct comparison *c, Dwarf_Die *at, const char *path, Dwarf_Die native,
                          Dwarf_Die rv32, int depth);

static void compare_member(struct comparison *c, const char *path, Dwarf_Die *native,
                           Dwarf_Die *rv32, int depth)
{
    static const unsigned places[] = {DW_AT_data_member_location, DW_AT_data_bit_offset,
                                      DW_AT_bit_offset, DW_AT_bit_size};
    char here[PATH], what[PATH];
    Dwarf_Die type[2];
    bool typed = type_of(native, &type[0]) && type_of(rv32, &type[1]);
    bool base = typed && dwarf_tag(native) == DW_TAG_inheritance;
    snprintf(here, sizeof(here), "%s.%s", path, name_of(base ? &type[0] : native));
    if (typed) {
        compare_types(c, base ? &type[0] : native, here, type[0], type[1], depth + 1);
    }
    /* After a reported field all later offsets differ because of it, and are not reported. */
    for (size_t i = 0; c->found == 0 && i < sizeof(places) / sizeof(places[0]); i++) {
        Dwarf_Word a = number_of(native, places[i], 0), b = number_of(rv32, places[i], 0);
        if (a != b) {
            snprintf(what, sizeof(what), "is at offset %llu here and %llu on RV32",
                     (unsigned long long)a, (unsigned long long)b);
            complain(c, native, here, what);
        }
    }
}

/* True for a data member of each object (not a static one), or a base class. */
static bool is_member(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);
    return (tag == DW_TAG_member && !dwarf_hasattr(die, DW_AT_external)) ||
           tag == DW_TAG_inheritance;
}

/* Moves `die` on to the next member, past other entries that compilers put in between. */
static bool next_member(Dwarf_Die *die, bool more)
{
    while (more && !is_member(die)) {
        more = dwarf_siblingof(die, die) == 0;
    }
    return more;
}

/* True if objects of the type have a pointer to a table of virtual functions of their own, not of a
 * base class. */
static bool has_virtual(Dwarf_Die *type)
{
    Dwarf_Die die;
    bool more = next_member(&die, dwarf_child(type, &die) == 0);
    while (more && strncmp(name_of(&die), "_vptr", 5) != 0) {
        more = next_member(&die, dwarf_siblingof(&die, &die) == 0);
    }
    return more;
}

static void compare_members(struct comparison *c, Dwarf_Die *at, const char *path,
                            Dwarf_Die *native, Dwarf_Die *rv32, int depth)
{
    Dwarf_Die a, b;
    if (has_virtual(rv32)) {
        complain(c, at, path,
                 "has virtual functions or bases, which objects find by a pointer of the machine "
                 "that made them; handler state has none");
        return;
    }
    bool more = next_member(&a, dwarf_child(native, &a) == 0);
    bool other = next_member(&b, dwarf_child(rv32, &b) == 0);
    while (more && other && strcmp(name_of(&a), name_of(&b)) == 0) {
        compare_member(c, path, &a, &b, depth);
        more = next_member(&a, dwarf_siblingof(&a, &a) == 0);
        other = next_member(&b, dwarf_siblingof(&b, &b) == 0);
    }
    if (more || other) {
        complain(c, at, path, "has other members on RV32");
    }
}

static void refuse(struct comparison *c, Dwarf_Die *at, const char *path, const char *type)
{
    char what[PATH];
    snprintf(what, sizeof(what),
             "is of type %s; handler state has types of fixed width only, as uint32_t and uint64_t",
             type);
    complain(c, at, path, what);
}

/* Reports types that a state may not have; true if this is one. A long whose size is the same on
 * both sides is allowed: C++ makes that of uint32_t as the argument of a template. */
static bool refused(struct comparison *c, Dwarf_Die *at, const char *path, Dwarf_Die *native,
                    Dwarf_Die *type, const char *name)
{
    int tag = dwarf_tag(type);
    if (tag == DW_TAG_typedef && of_the_machine(name)) {
        refuse(c, at, path, name);
    } else if (tag == DW_TAG_pointer_type) {
        refuse(c, at, path, "pointer");
    } else if (tag == DW_TAG_reference_type || tag == DW_TAG_rvalue_reference_type) {
        refuse(c, at, path, "reference");
    } else if (tag == DW_TAG_ptr_to_member_type) {
        refuse(c, at, path, "pointer to member");
    } else if (tag == DW_TAG_base_type && size_of(type) != size_of(native) &&
               (strcmp(name, "long int") == 0 || strcmp(name, "long unsigned int") == 0)) {
        refuse(c, at, path, name[5] == 'u' ? "unsigned long" : "long");
    } else if (tag == DW_TAG_base_type && strcmp(name, "long double") == 0) {
        refuse(c, at, path, "long double");
    } else {
        return false;
    }
    return true;
}

static void compare_types(struct comparison *c, Dwarf_Die *at, const char *path, Dwarf_Die native,
                          Dwarf_Die rv32, int depth)
{
    const char *name, *ignored;
    char what[PATH];
    bool decided = peel(&rv32, &name);
    (void)peel(&native, &ignored);
    if (depth > DEPTH || refused(c, at, path, &native, &rv32, name)) {
        return;
    }
    int found = c->found;
    if (!decided && dwarf_tag(&rv32) == DW_TAG_array_type &&
        dwarf_tag(&native) == DW_TAG_array_type) {
        Dwarf_Die of[2];
        if (type_of(&native, &of[0]) && type_of(&rv32, &of[1])) {
            compare_types(c, at, path, of[0], of[1], depth + 1);
        }
    } else if (!decided && is_aggregate(&rv32) && is_aggregate(&native)) {
        compare_members(c, at, path, &native, &rv32, depth);
    }
    Dwarf_Word a = size_of(&native), b = size_of(&rv32);
    if (c->found == found && a != b) {
        snprintf(what, sizeof(what), "has %llu bytes here and %llu on RV32", (unsigned long long)a,
                 (unsigned long long)b);
        complain(c, at, path, what);
    }
}

static bool is_pointer(Dwarf_Die *type)
{
    int tag = dwarf_tag(type);
    return tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
           tag == DW_TAG_rvalue_reference_type;
}

/* Compares the types that two pointers or references point to, if these are structs with a
 * definition. */
static void compare_pointees(struct comparison *c, Dwarf_Die *native, Dwarf_Die *rv32)
{
    Dwarf_Die type[2];
    const char *names[2];
    char path[PATH];
    Dwarf_Die *side[2] = {native, rv32};
    for (int i = 0; i < 2; i++) {
        if (!type_of(side[i], &type[i]) || peel(&type[i], &names[i]) || !is_pointer(&type[i]) ||
            !type_of(&type[i], &type[i])) {
            return;
        }
        names[i] = name_of(&type[i]);
        const char *unused;
        if (peel(&type[i], &unused) || !is_aggregate(&type[i])) {
            return;
        }
    }
    bool declared[2] = {dwarf_hasattr(&type[0], DW_AT_declaration) != 0,
                        dwarf_hasattr(&type[1], DW_AT_declaration) != 0};
    if (declared[0] && declared[1]) {
        return;
    }
    const char *tag = name_of(&type[0]);
    bool is_union = dwarf_tag(&type[0]) == DW_TAG_union_type;
    if (strcmp(tag, "ptl_header") == 0 || strcmp(tag, "ptl_payload") == 0) {
        return; /* the library makes these for the cores in the cores' layout */
    }
    snprintf(path, sizeof(path), "%s%s",
             tag[0] == '\0' ? ""
             : is_union     ? "union "
                            : "struct ",
             tag[0] != '\0' ? tag : names[0]);
    if (declared[0] || declared[1]) {
        complain(c, &type[0], path,
                 declared[0] ? "is defined on RV32 only" : "is not defined on RV32");
        return;
    }
    compare_types(c, &type[0], path, type[0], type[1], 0);
}

/* ---- Which structs are compared ---- */

/* True for a variable that the source names; a range-based loop has others. */
static bool is_variable(Dwarf_Die *die)
{
    int tag = dwarf_tag(die);
    return (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter) &&
           !dwarf_hasattr(die, DW_AT_artificial);
}

/* Finds the variable with a name that is declared in a line, in any block of the function. */
static bool find_variable(Dwarf_Die *block, const char *name, int line, Dwarf_Die *found, int depth)
{
    Dwarf_Die die;
    if (depth > DEPTH || dwarf_child(block, &die) != 0) {
        return false;
    }
    do {
        int at = 0;
        if (is_variable(&die) && strcmp(name_of(&die), name) == 0 &&
            dwarf_decl_line(&die, &at) == 0 && at == line) {
            *found = die;
            return true;
        }
        if (dwarf_tag(&die) == DW_TAG_lexical_block &&
            find_variable(&die, name, line, found, depth + 1)) {
            return true;
        }
    } while (dwarf_siblingof(&die, &die) == 0);
    return false;
}

/* Compares all variables of a function, in all its blocks. */
static void compare_variables(struct comparison *c, Dwarf_Die *native, Dwarf_Die *rv32, int depth)
{
    Dwarf_Die die, other;
    int line;
    if (depth > DEPTH || dwarf_child(native, &die) != 0) {
        return;
    }
    do {
        if (is_variable(&die) && dwarf_decl_line(&die, &line) == 0 &&
            find_variable(rv32, name_of(&die), line, &other, 0)) {
            compare_pointees(c, &die, &other);
        } else if (dwarf_tag(&die) == DW_TAG_lexical_block) {
            compare_variables(c, &die, rv32, depth + 1);
        }
    } while (dwarf_siblingof(&die, &die) == 0);
}

static const char *behind(const char *name, const char *prefix)
{
    size_t n = strlen(prefix);
    return strncmp(name, prefix, n) == 0 ? name + n : NULL;
}

static void compare_entry(struct comparison *c, Dwarf_Die *units, Dwarf_Die *variable)
{
    Dwarf_Die other, function[2];
    const char *name = name_of(variable), *handler = behind(name, "ptl_handler_entry_");
    if (behind(name, "ptl_handler_state_") != NULL) {
        if (definition_named(&units[1], DW_TAG_variable, name, &other)) {
            compare_pointees(c, variable, &other);
        }
    } else if (!c->named && handler != NULL &&
               definition_named(&units[0], DW_TAG_subprogram, handler, &function[0]) &&
               definition_named(&units[1], DW_TAG_subprogram, handler, &function[1])) {
        compare_variables(c, &function[0], &function[1], 0);
    }
}

static void count_entry(struct comparison *c, Dwarf_Die *units, Dwarf_Die *variable)
{
    (void)units;
    c->named |= behind(name_of(variable), "ptl_handler_state_") != NULL;
    c->handlers += behind(name_of(variable), "ptl_handler_entry_") != NULL;
}

/* Calls `f` for each variable that a unit, or a namespace of it, defines outside of functions. */
static void each_variable(struct comparison *c, Dwarf_Die *units, Dwarf_Die *parent,
                          void (*f)(struct comparison *, Dwarf_Die *, Dwarf_Die *))
{
    Dwarf_Die die;
    if (dwarf_child(parent, &die) != 0) {
        return;
    }
    do {
        if (dwarf_tag(&die) == DW_TAG_namespace) {
            each_variable(c, units, &die, f);
        } else if (dwarf_tag(&die) == DW_TAG_variable && !dwarf_hasattr(&die, DW_AT_declaration)) {
            f(c, units, &die);
        }
    } while (dwarf_siblingof(&die, &die) == 0);
}

static void compare_units(struct comparison *c, Dwarf_Die *units)
{
    each_variable(c, units, &units[0], count_entry);
    each_variable(c, units, &units[0], compare_entry);
}

int cc_compare(const char *source, const char *native, const char *rv32, int *handlers)
{
    struct comparison c = {.source = source};
    Dwfl *session[2];
    Dwarf_Die units[2];
    Dwarf *dwarf[2] = {open_object(&session[0], native), open_object(&session[1], rv32)};
    int rc = 0;
    if (unit_of(dwarf[0], &units[0]) && unit_of(dwarf[1], &units[1])) {
        compare_units(&c, units);
        rc = c.found;
        if (c.found != 0 && !c.named) {
            cc_say("%s: structs that are no state are not looked at in a file that says which ones "
                   "are: PTL_HANDLER_STATE(struct NAME);",
                   source);
        }
        *handlers += c.handlers;
    } else {
        rc = cc_say("%s: the compilers' debug information cannot be read: %s", source,
                    dwfl_errmsg(-1));
    }
    dwfl_end(session[0]);
    dwfl_end(session[1]);
    return rc;
}
