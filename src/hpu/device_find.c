/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding the device code of a handler (device.h). The notes of each program and library in memory
 * lead to its table of registered handlers; the handler's entry in there, made by PTL_HANDLER(),
 * leads to the image. That is read and decoded when the first of its handlers is looked for.
 */
#include "hpu/device.h"
#include "hpu/device_profile.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* The head that spin_handler.h puts before an image. */
#define IMAGE_MAGIC "PTLRV32\1"
struct image_head {
    char magic[8];
    uint64_t size;
};

/* ---- Images ---- */

void hpu_image_close(struct hpu_image *i)
{
    rv32_table_close(&i->table);
    rv32_lines_close(&i->lines);
    rv32_program_free(&i->program);
    rv32_image_close(&i->image);
}

static void free_image(struct hpu_image *i)
{
    hpu_image_close(i);
    free(i);
}

/* Returns the number of the handler call of which a function is the stub (rv32/runtime/calls.S); 0:
 * it is none. */
static uint32_t stub_of(const struct rv32_image *image, const struct rv32_symbol *function)
{
    enum { RA = 1, T0 = 5, LEAST = 8, MOST = 12 };
    uint32_t pc = function->address;
    if (function->size < LEAST || function->size > MOST || pc % 2 != 0) {
        return 0;
    }
    struct rv32_insn li = rv32_program_insn(&image->code, pc);
    struct rv32_insn call = rv32_program_insn(&image->code, pc += li.length);
    struct rv32_insn ret = rv32_program_insn(&image->code, pc += call.length);
    bool is_stub = li.op == RV32_ADDI && li.rd == T0 && li.rs1 == 0 && li.imm > 0 &&
                   call.op == RV32_ECALL && ret.op == RV32_JALR && ret.rd == 0 && ret.rs1 == RA &&
                   pc + ret.length - function->address == function->size;
    return is_stub ? (uint32_t)li.imm : 0;
}

/* Refuses an image with a handler call that this library does not have, since a newer run time has
 * made it. So the program that appends its handlers learns of it, rather than those that send to
 * them. */
static int check_calls(const struct rv32_image *image, struct rv32_error *error)
{
    for (size_t f = 0; f < image->function_count; f++) {
        uint32_t number = stub_of(image, &image->functions[f]);
        if (number > hpu_device_last_call) {
            return rv32_fail(
                error,
                "%s: %s is handler call %u, and this library knows 1 to %u; compile "
                "the handlers with the `pinwheel cc` of this library, or use a library "
                "as new as the one that has compiled them",
                image->name, image->functions[f].name, number, hpu_device_last_call);
        }
    }
    return 0;
}

int hpu_image_ready(struct hpu_image *i, const struct rv32_timing *timing,
                    enum rv32_program_kind kind, struct rv32_error *error)
{
    if (rv32_table_open(&i->table, &i->image, error) != 0 || check_calls(&i->image, error) != 0) {
        return -1;
    }
    for (int k = 0; k < i->image.data_count; k++) {
        if (i->image.data[k].writable) {
            return rv32_fail(error,
                             "%s: has variables at %08x; static data of handlers is const, "
                             "what they share is in HPU memory",
                             i->image.name, i->image.data[k].base);
        }
    }
    return rv32_program_make(&i->program, &i->image, timing, kind, error);
}

/* Adds an image: the one that a program carries, called `name` in errors; or, if `head` is NULL,
 * the one in the file `name`. Errors in the image are found now, before a handler runs. */
static struct hpu_image *add_image(struct hpu_device *t, const struct image_head *head,
                                   const char *name, struct rv32_error *error)
{
    struct hpu_image *i = calloc(1, sizeof(*i));
    if (i == NULL) {
        rv32_fail(error, "no memory for an RV32 image");
        return NULL;
    }
    int rc = head != NULL ? rv32_image_parse(&i->image, name, head + 1, head->size, error)
                          : rv32_image_open(&i->image, name, error);
    if (rc != 0 || rv32_lines_open(&i->lines, &i->image, error) != 0 ||
        hpu_image_ready(i, t->timing, RV32_WARM, error) != 0) {
        free_image(i);
        return NULL;
    }
    list_push_back(&t->images, &i->link);
    return i;
}

/* Returns the image at `head`, which it loads unless one with the same bytes is loaded. The address
 * does not tell, since another library may have been loaded in the place of one. */
static struct hpu_image *load_image(struct hpu_device *t, const struct image_head *head,
                                    struct rv32_error *error)
{
    if (memcmp(head->magic, IMAGE_MAGIC, sizeof(head->magic)) != 0) {
        rv32_fail(error, "RV32 image: does not begin as one; was it compiled with another "
                         "spin_handler.h?");
        return NULL;
    }
    for (struct list *l = t->images.next; l != &t->images; l = l->next) {
        struct hpu_image *i = container_of(l, struct hpu_image, link);
        if (i->image.file_size == head->size && memcmp(i->image.file, head + 1, head->size) == 0) {
            return i;
        }
    }
    return add_image(t, head, "RV32 image", error);
}

/* ---- Beside the program ---- */

static struct hpu_image *open_image(struct hpu_device *t, const char *path,
                                    struct rv32_error *error)
{
    for (struct list *l = t->images.next; l != &t->images; l = l->next) {
        struct hpu_image *i = container_of(l, struct hpu_image, link);
        if (strcmp(i->image.name, path) == 0) {
            return i;
        }
    }
    return add_image(t, NULL, path, error);
}

/* Returns the first image beside the program that has a handler of that name. NULL: none has; if
 * one of the images cannot be read, the error says so. */
static struct hpu_image *find_beside(struct hpu_device *t, const char *name,
                                     struct rv32_error *error)
{
    const char *at = t->beside != NULL ? t->beside : "";
    while (*at != '\0') {
        const char *end = strchrnul(at, ':');
        char *path = strndup(at, (size_t)(end - at));
        struct hpu_image *i = path != NULL ? open_image(t, path, error) : NULL;
        free(path);
        if (i == NULL || rv32_table_find(&i->table, name) != NULL) {
            return i;
        }
        at = *end == ':' ? end + 1 : end;
    }
    return NULL;
}

/* ---- Registered handlers ---- */

struct search {
    void (*handler)(void);
    const struct ptl_handler_entry *found;
};

/* Searches one table of handlers. A note has two distances, each from its own place: to the start
 * and to the end of the table. */
static void search_table(struct search *s, const int32_t *note)
{
    const struct ptl_handler_entry *e = (const void *)((const char *)&note[0] + note[0]);
    const struct ptl_handler_entry *end = (const void *)((const char *)&note[1] + note[1]);
    for (; e < end && s->found == NULL; e++) {
        s->found = e->address == s->handler ? e : NULL;
    }
}

static void search_notes(struct search *s, const char *at, size_t size)
{
    while (size >= sizeof(ElfW(Nhdr)) && s->found == NULL) {
        const ElfW(Nhdr) *n = (const void *)at;
        size_t name = (n->n_namesz + 3u) & ~(size_t)3, text = (n->n_descsz + 3u) & ~(size_t)3;
        size_t whole = sizeof(*n) + name + text;
        if (whole > size) {
            return;
        }
        if (n->n_type == 1 && n->n_namesz == 9 && n->n_descsz == 8 &&
            memcmp(n + 1, "Pinwheel", 9) == 0) {
            search_table(s, (const void *)(at + sizeof(*n) + name));
        }
        at += whole;
        size -= whole;
    }
}

static int search_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct search *s = context;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &info->dlpi_phdr[i];
        if (p->p_type == PT_NOTE && p->p_align <= 4) {
            search_notes(s, (const char *)info->dlpi_addr + p->p_vaddr, p->p_memsz);
        }
    }
    return s->found != NULL;
}

const struct ptl_handler_entry *hpu_registered(void (*handler)(void))
{
    struct search s = {.handler = handler};
    dl_iterate_phdr(search_object, &s);
    return s.found;
}

static int no_entry(void (*handler)(void), struct rv32_error *error)
{
    Dl_info info = {0};
    const void *address = (const void *)(uintptr_t)handler;
    (void)dladdr(address, &info);
    return rv32_fail(error,
                     "PINWHEEL_HPU=rv32: the handler %s at %p of %s is not registered; put "
                     "PTL_HANDLER(its name); behind it and compile its file with `pinwheel cc`",
                     info.dli_sname != NULL ? info.dli_sname : "function", address,
                     info.dli_fname != NULL ? info.dli_fname : "this program");
}

int hpu_device_find(struct hpu_device *t, void (*handler)(void), struct hpu_device_code *code,
                    struct rv32_error *error)
{
    const struct ptl_handler_entry *found = hpu_registered(handler);
    struct rv32_error why = {""};
    if (found == NULL) {
        return no_entry(handler, error);
    }
    struct hpu_image *i = found->image != NULL ? load_image(t, found->image, &why)
                                               : find_beside(t, found->name, &why);
    if (i == NULL && why.text[0] == '\0') {
        return rv32_fail(error,
                         "PINWHEEL_HPU=rv32: the handler %s has no RV32 code; compile its file "
                         "with `pinwheel cc` (CMake: pinwheel_add_handlers), name an image in "
                         "PINWHEEL_HPU_IMAGES, or set PINWHEEL_HPU=native",
                         found->name);
    }
    if (i == NULL) {
        return rv32_fail(error, "PINWHEEL_HPU=rv32: the handler %s cannot be run: %s", found->name,
                         why.text);
    }
    const struct rv32_symbol *symbol = rv32_table_find(&i->table, found->name);
    if (symbol == NULL) {
        return rv32_fail(error,
                         "PINWHEEL_HPU=rv32: the handler %s is not in the RV32 image of its file; "
                         "is PTL_HANDLER(%s) there for native code only?",
                         found->name, found->name);
    }
    *code = (struct hpu_device_code){t, i, symbol->name, symbol->address};
    return 0;
}

int hpu_device_open(struct hpu_device *t, const char *path, const char *const names[3],
                    struct hpu_device_code code[3], struct rv32_error *error)
{
    const struct hpu_image *i = open_image(t, path, error);
    int found = 0;
    for (int k = 0; i != NULL && k < 3; k++) {
        const struct rv32_symbol *s = rv32_table_find(&i->table, names[k]);
        code[k] = s != NULL ? (struct hpu_device_code){t, i, s->name, s->address}
                            : (struct hpu_device_code){.device = t};
        found += s != NULL;
    }
    if (i != NULL && found == 0) {
        return rv32_fail(error, "%s: registers none of the handlers %s, %s, %s", path, names[0],
                         names[1], names[2]);
    }
    return i != NULL ? 0 : -1;
}

/* ---- The device ---- */

struct hpu_device *hpu_device_create(size_t stack_size, const struct rv32_timing *timing,
                                     int64_t budget_us)
{
    struct hpu_device *t = calloc(1, sizeof(*t));
    if (t != NULL) {
        list_init(&t->images);
        t->timing = timing;
        t->stack_size = (uint32_t)stack_size & ~15u;
        t->budget = budget_us != 0 ? budget_us * t->timing->clock_mhz : INT64_MAX / 2;
    }
    return t;
}

void hpu_device_destroy(struct hpu_device *t)
{
    if (t == NULL) {
        return;
    }
    while (!list_empty(&t->images)) {
        struct hpu_image *i = container_of(t->images.next, struct hpu_image, link);
        list_remove(&i->link);
        free_image(i);
    }
    for (int i = 0; i < PTL_NUM_HPUS; i++) {
        free(t->cores[i]);
    }
    hpu_device_forget(t);
    free(t);
}
