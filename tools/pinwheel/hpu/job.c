/* SPDX-License-Identifier: BSD-3-Clause */
/* A handler or function with memory to run it on; see commands.h. */
#include "commands.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct hpu_job *hpu_job_new(void)
{
    struct hpu_job *j = calloc(1, sizeof(*j));
    if (j != NULL) {
        j->packet = calloc(1, HPU_PACKET_ROOM);
        j->state = calloc(1, HPU_STATE_ROOM);
    }
    if (j == NULL || j->packet == NULL || j->state == NULL) {
        fprintf(stderr, "pinwheel hpu: no memory\n");
        hpu_job_free(j);
        return NULL;
    }
    j->timing = &rv32_timings[0];
    j->packet_size = 64;
    j->state_size = 4096;
    j->call.budget = 100000000;
    j->most = INT64_MAX;
    return j;
}

void hpu_job_free(struct hpu_job *j)
{
    if (j != NULL) {
        hpu_handler_close(&j->handler);
        hpu_image_close(&j->code);
        free(j->packet);
        free(j->state);
        free(j);
    }
}

int hpu_take_timing(struct args *a, void *job)
{
    struct hpu_job *j = job;
    j->timing = rv32_timing_find(a->value);
    if (j->timing != NULL) {
        return ARGS_GO_ON;
    }
    char known[128] = "";
    for (int i = 0; i < rv32_timing_count; i++) {
        size_t n = strlen(known);
        snprintf(known + n, sizeof(known) - n, "%s%s", i > 0 ? ", " : "", rv32_timings[i].name);
    }
    return args_bad(a, "must be one of %s", known);
}

int hpu_take_field(struct args *a, void *job)
{
    struct hpu_handler *h = &((struct hpu_job *)job)->handler;
    if (h->field_count == HPU_HANDLER_FIELDS) {
        return args_bad(a, "at most %d of them", HPU_HANDLER_FIELDS);
    }
    h->field[h->field_count++] = a->value;
    return ARGS_GO_ON;
}

int hpu_take_argument(struct args *a, void *job)
{
    struct hpu_job *j = job;
    if (j->argument_count == RV32_ARGUMENTS) {
        return args_bad(a, "a function takes at most %d here", RV32_ARGUMENTS);
    }
    j->arguments[j->argument_count++] = a->value;
    return ARGS_GO_ON;
}

int hpu_job_command(struct args *a, int argc, char **argv, hpu_work *work)
{
    struct hpu_job *j = hpu_job_new();
    if (j == NULL) {
        return 1;
    }
    a->operand = &j->path;
    int status = args_parse(a, argc, argv, j);
    status = status == ARGS_GO_ON ? work(j, a) : status;
    hpu_job_free(j);
    return status;
}

static int fail(const char *command, const char *text)
{
    fprintf(stderr, "pinwheel hpu %s: %s\n", command, text);
    return -1;
}

static int read_memory(const char *command, const char *path, uint8_t *bytes, uint32_t most,
                       uint32_t *size)
{
    struct rv32_error error = {""};
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        rv32_fail(&error, "%s: %s", path, strerror(errno));
        return fail(command, error.text);
    }
    size_t n = fread(bytes, 1, most, f);
    bool more = n == most && fgetc(f) != EOF, bad = ferror(f) != 0;
    fclose(f);
    if (bad || more) {
        rv32_fail(&error, more ? "%s: is longer than %u bytes" : "%s: cannot be read", path, most);
        return fail(command, error.text);
    }
    *size = (uint32_t)n;
    return 0;
}

static bool read_argument(const struct hpu_job *j, const char *text, uint32_t *value)
{
    const struct {
        const char *name;
        uint32_t value;
    } names[] = {{"packet", HPU_PACKET_BASE},
                 {"packet-size", j->packet_size},
                 {"state", HPU_STATE_BASE},
                 {"state-size", j->state_size}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i].name) == 0) {
            *value = names[i].value;
            return true;
        }
    }
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 0);
    *value = (uint32_t)number;
    return end != text && *end == '\0' && errno == 0 && number >= INT32_MIN && number <= UINT32_MAX;
}

static int set_arguments(struct hpu_job *j, const char *command)
{
    static const char *const usual[] = {"packet", "packet-size", "state", "state-size"};
    struct rv32_error error = {""};
    int count = j->argument_count;
    for (int i = 0; i < (count > 0 ? count : 4); i++) {
        const char *text = count > 0 ? j->arguments[i] : usual[i];
        if (!read_argument(j, text, &j->call.arguments[i])) {
            rv32_fail(&error,
                      "--arg %s: must be a number of 32 bits, packet, packet-size, state or "
                      "state-size",
                      text);
            return fail(command, error.text);
        }
    }
    return 0;
}

int hpu_image_open(struct hpu_job *j, const char *command)
{
    struct rv32_error error = {""};
    if (j->path == NULL) {
        return fail(command, "which IMAGE? an ELF file for rv32imac");
    }
    if (rv32_image_open(&j->code.image, j->path, &error) != 0 ||
        rv32_lines_open(&j->code.lines, &j->code.image, &error) != 0) {
        return fail(command, error.text);
    }
    return 0;
}

static int find_function(struct hpu_job *j, const char *command)
{
    struct rv32_error error = {""};
    if (j->function == NULL) {
        return fail(command, "--handler NAME or --function NAME is needed: what to run");
    }
    const struct rv32_symbol *s = rv32_image_find(&j->code.image, j->function);
    if (s != NULL) {
        j->call.pc = s->address;
        return 0;
    }
    rv32_fail(&error, "%s: has no function %s; it has", j->path, j->function);
    for (size_t i = 0; i < j->code.image.function_count; i++) {
        size_t n = strlen(error.text);
        snprintf(error.text + n, sizeof(error.text) - n, " %s", j->code.image.functions[i].name);
    }
    return fail(command, error.text);
}

static int map_memory(struct hpu_job *j, struct rv32_error *error)
{
    struct rv32_core *c = &j->core;
    unsigned both = RV32_READ | RV32_WRITE;
    if (rv32_core_map_image(c, &j->code.image, error) != 0 ||
        rv32_core_map(c, "stack", HPU_STACK_BASE, HPU_STACK_BYTES, j->stack, both, RV32_AREA_L1,
                      error) != 0 ||
        rv32_core_map(c, "packet", HPU_PACKET_BASE, j->packet_size, j->packet, both, RV32_AREA_L1,
                      error) != 0) {
        return -1;
    }
    return rv32_core_map(c, "state", HPU_STATE_BASE, j->state_size, j->state, both, RV32_AREA_L1,
                         error);
}

static int read_memories(struct hpu_job *j, const char *command)
{
    bool handler = j->handler.name != NULL;
    uint32_t packet = handler ? HPU_PACKET_ROOM : HPU_PACKET_MAX;
    uint32_t state = handler ? HPU_STATE_ROOM : HPU_STATE_MAX;
    return (j->packet_path == NULL ||
            read_memory(command, j->packet_path, j->packet, packet, &j->packet_size) == 0) &&
                   (j->state_path == NULL ||
                    read_memory(command, j->state_path, j->state, state, &j->state_size) == 0)
               ? 0
               : -1;
}

static int open_function(struct hpu_job *j, const char *command)
{
    struct rv32_error error = {""};
    if (find_function(j, command) != 0) {
        return -1;
    }
    if (rv32_program_make(&j->code.program, &j->code.image, j->timing,
                          j->cold ? RV32_CACHE : RV32_WARM, &error) != 0) {
        return fail(command, error.text);
    }
    j->call.stack = HPU_STACK_BASE + HPU_STACK_BYTES;
    return 0;
}

static int open_handler(struct hpu_job *j, const char *command)
{
    struct rv32_error error = {""};
    if (j->function != NULL || j->argument_count > 0) {
        return fail(command, "--handler NAME: --function and --arg are for functions; --set says "
                             "what a handler is called with");
    }
    return hpu_image_ready(&j->code, j->timing, j->cold ? RV32_CACHE : RV32_WARM, &error) == 0
               ? 0
               : fail(command, error.text);
}

static int check_options(const struct hpu_job *j, const char *command)
{
    const struct hpu_handler *h = &j->handler;
    bool host = h->field_count > 0;
    for (int i = 0; i < HPU_FILES; i++) {
        host |= h->path[i] != NULL;
    }
    return h->name != NULL || !host ? 0
                                    : fail(command, "--set, --host, --handler-host, --peers and "
                                                    "--message-state are for --handler NAME");
}

int hpu_job_open(struct hpu_job *j, const char *command)
{
    if (check_options(j, command) != 0 || hpu_image_open(j, command) != 0 ||
        (j->handler.name != NULL ? open_handler(j, command) : open_function(j, command)) != 0 ||
        read_memories(j, command) != 0) {
        return -1;
    }
    return hpu_job_resize(j, command, j->packet_size);
}

/* Opens the handler again, so that its host's memory is as at first. */
static int resize_handler(struct hpu_job *j, const char *command)
{
    struct rv32_error error = {""};
    if (hpu_handler_open(&j->handler, &j->code, j->timing, j->call.budget, &error) != 0) {
        return fail(command, error.text);
    }
    if (j->packet_path == NULL && j->handler.kind == HPU_CALL_HEADER) {
        j->packet_size = 0;
    }
    return 0;
}

int hpu_job_resize(struct hpu_job *j, const char *command, uint32_t packet_size)
{
    struct rv32_error error = {""};
    j->packet_size = packet_size;
    if (j->handler.name != NULL) {
        return resize_handler(j, command);
    }
    rv32_core_init(&j->core, &j->code.program);
    if (set_arguments(j, command) != 0) {
        return -1;
    }
    return map_memory(j, &error) == 0 ? 0 : fail(command, error.text);
}

/* ---- Running ---- */

const struct rv32_result *hpu_run_core(void *context, struct rv32_core *core,
                                       const struct rv32_call *call)
{
    return rv32_core_call(core, call);
}

const struct rv32_result *hpu_job_run(struct hpu_job *j, const char *command, hpu_runner *runner,
                                      void *context)
{
    struct rv32_error error = {""};
    struct hpu_handler_memory m = {j->packet, j->state, j->packet_size, j->state_size};
    if (j->handler.name == NULL) {
        return runner(context, &j->core, &j->call);
    }
    if (hpu_handler_run(&j->handler, &m, runner, context, &error) != 0) {
        fail(command, error.text);
        return NULL;
    }
    return &j->handler.result;
}
