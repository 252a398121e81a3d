/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel hpu size`: prints the sizes of an image's code, data and state, and the limits. */
#include "commands.h"

#include <inttypes.h>
#include <stdio.h>

static const struct args_option size_options[] = {
    HPU_JSON_ROW,
};

static uint32_t data_bytes(const struct rv32_image *image)
{
    uint32_t sum = 0;
    for (int i = 0; i < image->data_count; i++) {
        sum += image->data[i].size;
    }
    return sum;
}

enum { STRUCTS = 16 };

static const char *kind_name(const struct rv32_image *image, uint32_t pc)
{
    static const char *const kinds[] = {"header", "payload", "completion"};
    int kind = hpu_handler_kind(image, pc);
    return kind >= 0 ? kinds[kind] : "?";
}

/* Prints the handlers and the structs that their variables point to: a state, a part of it, or a
 * packet. */
static void print_handlers(const struct hpu_image *code)
{
    struct hpu_struct structs[STRUCTS];
    if (code->table.count > 0) {
        printf("handlers, and structs that they point to; HPU memory in L1 has %d bytes\n",
               DEVICE_STATE_MAX);
    }
    for (size_t i = 0; i < code->table.count; i++) {
        const struct rv32_symbol *s = &code->table.handlers[i];
        int count = hpu_handler_structs(&code->image, s->address, structs, STRUCTS);
        printf("      %-28s %-10s", s->name, kind_name(&code->image, s->address));
        for (int k = 0; k < count; k++) {
            printf("%s %s %" PRIu64, k > 0 ? "," : "", structs[k].name, structs[k].bytes);
        }
        putchar('\n');
    }
}

static void json_handlers(const struct hpu_image *code, struct json *to)
{
    struct hpu_struct structs[STRUCTS];
    json_unsigned(to, "state_limit", DEVICE_STATE_MAX);
    json_open_array(to, "handlers");
    for (size_t i = 0; i < code->table.count; i++) {
        const struct rv32_symbol *s = &code->table.handlers[i];
        int count = hpu_handler_structs(&code->image, s->address, structs, STRUCTS);
        json_open_object(to, NULL);
        json_string(to, "name", s->name);
        json_string(to, "kind", kind_name(&code->image, s->address));
        json_open_array(to, "structs");
        for (int k = 0; k < count; k++) {
            json_open_object(to, NULL);
            json_string(to, "name", structs[k].name);
            json_unsigned(to, "bytes", structs[k].bytes);
            json_close_object(to);
        }
        json_close_array(to);
        json_close_object(to);
    }
    json_close_array(to);
}

static void print_lines(const struct hpu_image *code)
{
    const struct rv32_image *image = &code->image;
    printf("code  %7u of %7d bytes, at %08x\n", image->code.size, RV32_CODE_MAX, image->code.base);
    printf("data  %7u of %7d bytes\n", data_bytes(image), RV32_DATA_MAX);
    for (int i = 0; i < image->data_count; i++) {
        printf("      %7u at %08x, %s\n", image->data[i].size, image->data[i].base,
               image->data[i].writable ? "writable" : "read only");
    }
    print_handlers(code);
    printf("functions\n");
    for (size_t i = 0; i < image->function_count; i++) {
        printf("      %7u %s\n", image->functions[i].size, image->functions[i].name);
    }
}

static int print_json(const struct hpu_image *code)
{
    const struct rv32_image *image = &code->image;
    struct json to = {.to = stdout};
    json_open_object(&to, NULL);
    json_unsigned(&to, "code", image->code.size);
    json_unsigned(&to, "code_limit", RV32_CODE_MAX);
    json_unsigned(&to, "data", data_bytes(image));
    json_unsigned(&to, "data_limit", RV32_DATA_MAX);
    json_open_array(&to, "segments");
    for (int i = 0; i < image->data_count; i++) {
        json_open_object(&to, NULL);
        json_unsigned(&to, "address", image->data[i].base);
        json_unsigned(&to, "bytes", image->data[i].size);
        json_bool(&to, "writable", image->data[i].writable);
        json_close_object(&to);
    }
    json_close_array(&to);
    json_handlers(code, &to);
    json_open_array(&to, "functions");
    for (size_t i = 0; i < image->function_count; i++) {
        json_open_object(&to, NULL);
        json_string(&to, "name", image->functions[i].name);
        json_unsigned(&to, "address", image->functions[i].address);
        json_unsigned(&to, "bytes", image->functions[i].size);
        json_close_object(&to);
    }
    json_close_array(&to);
    json_close_object(&to);
    return json_end(&to) != 0 ? 1 : 0;
}

static int tell(struct hpu_job *j, struct args *a)
{
    if (hpu_image_open(j, "size") != 0) {
        return 1;
    }
    struct rv32_error none; /* ignored: an image may have functions and no handlers */
    (void)rv32_table_open(&j->code.table, &j->code.image, &none);
    if (j->json) {
        return print_json(&j->code);
    }
    print_lines(&j->code);
    return 0;
}

int hpu_command_size(int argc, char **argv)
{
    struct args a = {.command = "hpu size",
                     .operands = "IMAGE",
                     .summary =
                         "Says how much of the memory of the HPU cores an image for RV32 takes: "
                         "code, data, and\nthe state that its handlers work on.",
                     ARGS_OPTIONS(size_options)};
    return hpu_job_command(&a, argc, argv, tell);
}
