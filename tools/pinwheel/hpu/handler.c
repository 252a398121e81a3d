/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs one handler; see handler.h. */
#include "handler.h"

#include "base/array.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONTEXT_STACK = 1 << 18, MOST_HOST = 1 << 30, RETURNS = TIMEOUT + 1 };

static const char *const codes[RETURNS] = {
    [SUCCESS] = "SUCCESS",
    [DROP] = "DROP",
    [DROP_PENDING] = "DROP_PENDING",
    [PROCESS_DATA] = "PROCESS_DATA",
    [PROCESS_DATA_PENDING] = "PROCESS_DATA_PENDING",
    [PROCEED] = "PROCEED",
    [PROCEED_PENDING] = "PROCEED_PENDING",
    [SUCCESS_PENDING] = "SUCCESS_PENDING",
    [FAIL] = "FAIL",
    [SEGV] = "SEGV",
    [TIMEOUT] = "TIMEOUT",
};

const char *hpu_handler_code(int code)
{
    return code >= 0 && code < RETURNS ? codes[code] : "?";
}

/* ---- The host's memory ---- */

/* Allocates memory of a range, one line at least, so that an empty range has an address. */
static int make_range(struct hpu_range *r, size_t size, struct rv32_error *error)
{
    size_t room = (size + 64) & ~(size_t)63;
    r->bytes = aligned_alloc(64, room);
    r->size = size;
    if (r->bytes == NULL) {
        return rv32_fail(error, "no memory for %zu bytes of the host", size);
    }
    memset(r->bytes, 0, room);
    return 0;
}

/* Reads a whole file or pipe; NULL, with what is wrong in `error`. */
static char *read_all(FILE *f, size_t *size, struct rv32_error *error)
{
    char *bytes = NULL;
    size_t room = 0, n = 1;
    for (*size = 0; n > 0 && *size <= MOST_HOST; *size += n) {
        if (!ARRAY_ROOM(bytes, *size, room, 1 << 16)) {
            rv32_fail(error, "no memory for %zu bytes of the host", *size + 1);
            free(bytes);
            return NULL;
        }
        n = fread(bytes + *size, 1, room - *size, f);
    }
    if (ferror(f) != 0 || *size > MOST_HOST) {
        ferror(f) != 0 ? rv32_fail(error, "cannot be read: %s", strerror(errno))
                       : rv32_fail(error, "is longer than %d bytes", MOST_HOST);
        free(bytes);
        return NULL;
    }
    return bytes;
}

static int read_file(struct hpu_range *r, const char *option, const char *path,
                     struct rv32_error *error)
{
    struct rv32_error why;
    size_t size = 0;
    char *bytes = NULL;
    FILE *f = fopen(path, "rb");
    if (f == NULL) {
        rv32_fail(&why, "%s", strerror(errno));
    } else {
        bytes = read_all(f, &size, &why);
        fclose(f);
    }
    if (bytes == NULL) {
        return rv32_fail(error, "%s %s: %s", option, path, why.text);
    }
    int rc = make_range(r, size, error);
    if (rc == 0) {
        memcpy(r->bytes, bytes, size);
    }
    free(bytes);
    return rc;
}

/* Reads the host's memory from files. Memory without a file is zeroed; without a file the peers
 * have no memory. */
static int read_host(struct hpu_handler *h, struct rv32_error *error)
{
    struct hpu_range *ranges[HPU_FILES] = {[HPU_FILE_ENTRY] = &h->host.entry,
                                           [HPU_FILE_HANDLER] = &h->host.handler,
                                           [HPU_FILE_PEERS] = &h->host.peers,
                                           [HPU_FILE_MESSAGE] = &h->host.message};
    static const char *const options[HPU_FILES] = {[HPU_FILE_ENTRY] = "--host",
                                                   [HPU_FILE_HANDLER] = "--handler-host",
                                                   [HPU_FILE_PEERS] = "--peers",
                                                   [HPU_FILE_MESSAGE] = "--message-state"};
    static const size_t sizes[HPU_FILES] = {[HPU_FILE_ENTRY] = HPU_HANDLER_HOST,
                                            [HPU_FILE_HANDLER] = HPU_HANDLER_HOST,
                                            [HPU_FILE_MESSAGE] = PTL_SPIN_MESSAGE_STATE};
    for (int i = 0; i < HPU_FILES; i++) {
        size_t size = sizes[i];
        int rc = h->path[i] != NULL ? read_file(ranges[i], options[i], h->path[i], error)
                                    : make_range(ranges[i], size, error);
        if (rc != 0) {
            return -1;
        }
    }
    if (h->host.message.size > PTL_SPIN_MESSAGE_STATE) {
        return rv32_fail(error, "%s %s: is longer than %d bytes", options[HPU_FILE_MESSAGE],
                         h->path[HPU_FILE_MESSAGE], PTL_SPIN_MESSAGE_STATE);
    }
    return 0;
}

/* ---- The arguments of the handler ---- */

enum field_type { FIELD_NUMBER, FIELD_PROCESS, FIELD_REQUEST, FIELD_FLAG };

struct field {
    const char *name;
    enum hpu_call kind;
    enum field_type type;
    size_t at; /* offset in struct hpu_exec */
};

#define HEADER_FIELD(name, type)                                                                   \
    {                                                                                              \
#name, HPU_CALL_HEADER, type, offsetof(struct hpu_exec, arg.header.name)                   \
    }

static const struct field fields[] = {
    HEADER_FIELD(type, FIELD_REQUEST),
    HEADER_FIELD(length, FIELD_NUMBER),
    HEADER_FIELD(target_id, FIELD_PROCESS),
    HEADER_FIELD(source_id, FIELD_PROCESS),
    HEADER_FIELD(match_bits, FIELD_NUMBER),
    HEADER_FIELD(offset, FIELD_NUMBER),
    HEADER_FIELD(hdr_data, FIELD_NUMBER),
    {"offset", HPU_CALL_PAYLOAD, FIELD_NUMBER, offsetof(struct hpu_exec, arg.payload.offset)},
    {"dropped_bytes", HPU_CALL_COMPLETION, FIELD_NUMBER,
     offsetof(struct hpu_exec, arg.completion.dropped)},
    {"flow_control_triggered", HPU_CALL_COMPLETION, FIELD_FLAG,
     offsetof(struct hpu_exec, arg.completion.flow_control)},
};

enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

/* Prefix of a field of the header, which payload and completion handlers can ask for. */
#define ABOUT "header."

static bool read_number(const char *text, uint64_t most, char end, uint64_t *number, char **rest)
{
    errno = 0;
    *number = strtoull(text, rest, 0);
    return *rest != text && text[0] != '-' && errno == 0 && *number <= most && **rest == end;
}

static bool read_request(const char *text, uint64_t *value)
{
    static const char *const names[] = {"put", "get", "atomic", "fetch_atomic", "swap", "timer"};
    for (uint64_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(text, names[i]) == 0) {
            *value = i;
            return true;
        }
    }
    return false;
}

static bool set_value(void *to, enum field_type type, const char *text)
{
    uint64_t value, pid = 0;
    char *rest;
    ptl_process_t p = {.phys = {0, 0}};
    switch (type) {
    case FIELD_REQUEST:
        if (!read_request(text, &value)) {
            return false;
        }
        *(ptl_request_type_t *)to = (ptl_request_type_t)value;
        return true;
    case FIELD_PROCESS:
        if (!read_number(text, UINT32_MAX, '\0', &value, &rest) &&
            (*rest != ':' || !read_number(text, UINT32_MAX, ':', &value, &rest) ||
             !read_number(rest + 1, UINT32_MAX, '\0', &pid, &rest))) {
            return false;
        }
        p.phys.nid = (ptl_nid_t)value;
        p.phys.pid = (ptl_pid_t)pid;
        *(ptl_process_t *)to = p;
        return true;
    case FIELD_FLAG:
        if (!read_number(text, 1, '\0', &value, &rest)) {
            return false;
        }
        *(bool *)to = value != 0;
        return true;
    default:
        if (!read_number(text, UINT64_MAX, '\0', &value, &rest)) {
            return false;
        }
        *(uint64_t *)to = value;
        return true;
    }
}

static int bad_field(const struct hpu_handler *h, const char *text, struct rv32_error *error)
{
    static const char *const kinds[] = {"header", "payload", "completion"};
    static const char *const values[] = {"a number", "RANK or NID:PID",
                                         "put, get, atomic, fetch_atomic, swap or timer", "0 or 1"};
    rv32_fail(error, "--set %s: a %s handler is called with", text, kinds[h->kind]);
    int messages = h->kind == HPU_CALL_HEADER ? 1 : 2;
    for (int about = 0; about < messages; about++) {
        enum hpu_call kind = about ? HPU_CALL_HEADER : h->kind;
        for (int i = 0; i < FIELDS; i++) {
            size_t n = strlen(error->text);
            if (fields[i].kind == kind) {
                snprintf(error->text + n, sizeof(error->text) - n, " %s%s=(%s)", about ? ABOUT : "",
                         fields[i].name, values[fields[i].type]);
            }
        }
    }
    return -1;
}

static int set_field(struct hpu_handler *h, const char *text, struct rv32_error *error)
{
    bool about = h->kind != HPU_CALL_HEADER && strncmp(text, ABOUT, strlen(ABOUT)) == 0;
    const char *name = about ? text + strlen(ABOUT) : text, *equals = strchrnul(name, '=');
    enum hpu_call kind = about ? HPU_CALL_HEADER : h->kind;
    size_t length = (size_t)(equals - name);
    for (int i = 0; i < FIELDS && *equals == '='; i++) {
        const struct field *f = &fields[i];
        if (f->kind == kind && strlen(f->name) == length && memcmp(f->name, name, length) == 0 &&
            set_value((char *)&h->exec + f->at, f->type, equals + 1)) {
            return 0;
        }
    }
    return bad_field(h, text, error);
}

/* Sets up the execution. Fields that the user does not set describe a put, with this user header,
 * of rank 1 to rank 0, its first packet, and no error. */
static int set_up(struct hpu_handler *h, const struct hpu_handler_memory *m,
                  struct rv32_error *error)
{
    const ptl_header_t header = {.length = m->packet_size,
                                 .source_id = {.rank = 1},
                                 .user_hdr = m->packet_size != 0 ? m->packet : NULL,
                                 .user_hdr_length = m->packet_size};
    const ptl_payload_t payload = {.length = m->packet_size, .base = m->packet};
    uint32_t packet = m->packet_size > HPU_HANDLER_PACKET ? m->packet_size : HPU_HANDLER_PACKET;
    h->exec = (struct hpu_exec){0};
    h->exec.arg.header = (ptl_header_t){.length = m->packet_size, .source_id = {.rank = 1}};
    hpu_host_serve(&h->host, &h->exec.env, packet);
    h->exec.env.state = m->state;
    h->exec.env.state_length = m->state_size;
    h->exec.env.code = h->code;
    switch (h->kind) {
    case HPU_CALL_HEADER:
        hpu_exec_header(h->pool, &h->exec, NULL, &header);
        break;
    case HPU_CALL_PAYLOAD:
        hpu_exec_payload(h->pool, &h->exec, NULL, &payload);
        break;
    default:
        hpu_exec_completion(h->pool, &h->exec, NULL, 0, false);
    }
    for (int i = 0; i < h->field_count; i++) {
        if (set_field(h, h->field[i], error) != 0) {
            return -1;
        }
    }
    return 0;
}

/* ---- Running ---- */

struct run {
    struct hpu_handler *handler;
    hpu_runner *runner;
    void *context;
    bool running; /* the core runs the handler now */
};

static const struct rv32_result *run_core(void *context, struct rv32_core *core,
                                          const struct rv32_call *call)
{
    struct run *r = context;
    r->handler->core = core;
    r->running = true;
    const struct rv32_result *result = r->runner(r->context, core, call);
    r->running = false;
    return result;
}

static void called(void *context, const struct hpu_device_call *call)
{
    struct run *r = context;
    hpu_calls_begin(&r->handler->calls, call);
}

static void returned(void *context, const struct hpu_device_call *call)
{
    struct run *r = context;
    hpu_calls_end(&r->handler->calls, call);
}

static void ended(void *context, int result, const char *text)
{
    struct run *r = context;
    snprintf(r->handler->why, sizeof(r->handler->why), "%s: %s", hpu_handler_code(result), text);
    if (r->running && r->handler->aloud) {
        fprintf(stderr, "%s\n", r->handler->why);
    }
}

static int find(struct hpu_handler *h, const struct hpu_image *image, struct rv32_error *error)
{
    const struct rv32_symbol *s = rv32_table_find(&image->table, h->name);
    if (s == NULL) {
        rv32_fail(error, "%s: registers no handler %s; it has", image->image.name, h->name);
        for (size_t i = 0; i < image->table.count; i++) {
            size_t n = strlen(error->text);
            snprintf(error->text + n, sizeof(error->text) - n, " %s",
                     image->table.handlers[i].name);
        }
        return -1;
    }
    int kind = hpu_handler_kind(&image->image, s->address);
    if (kind == HPU_KIND_NONE) {
        return rv32_fail(error,
                         "%s: %s has the type of none of the three kinds of handlers: its first "
                         "parameter is a ptl_header_t, a ptl_payload_t or a ptl_size_t",
                         image->image.name, h->name);
    }
    if (kind < 0) {
        return rv32_fail(error,
                         "%s: does not tell what kind of handler %s is, for want of debug "
                         "information; `pinwheel cc --image` leaves it in",
                         image->image.name, h->name);
    }
    h->kind = (enum hpu_call)kind;
    h->code[kind] = (struct hpu_device_code){h->device, image, s->name, s->address};
    return 0;
}

int hpu_handler_open(struct hpu_handler *h, const struct hpu_image *image,
                     const struct rv32_timing *timing, int64_t budget, struct rv32_error *error)
{
    hpu_handler_close(h);
    h->device = hpu_device_create(HPU_HANDLER_STACK, timing, 0);
    h->pool = hpu_pool_create(1, CONTEXT_STACK);
    if (h->device == NULL || h->pool == NULL) {
        return rv32_fail(error, "no memory for a core");
    }
    h->device->budget = budget;
    h->device->observer = &h->observer;
    h->calls.output = &h->host.output;
    return find(h, image, error) == 0 ? read_host(h, error) : -1;
}

int hpu_handler_run(struct hpu_handler *h, const struct hpu_handler_memory *m, hpu_runner *runner,
                    void *context, struct rv32_error *error)
{
    struct run r = {.handler = h, .runner = runner, .context = context};
    h->observer = (struct hpu_device_observer){run_core, called, returned, ended, &r};
    h->why[0] = '\0';
    if (set_up(h, m, error) != 0) {
        return -1;
    }
    hpu_exec_take(&h->exec);
    do {
        h->returned = hpu_exec_run(&h->exec);
    } while (h->returned == HPU_WAIT);
    hpu_exec_give(&h->exec);
    if (h->core == NULL) {
        return rv32_fail(error, "no memory for a core");
    }
    h->result = h->core->result;
    return 0;
}

void hpu_handler_close(struct hpu_handler *h)
{
    hpu_calls_free(&h->calls);
    hpu_device_destroy(h->device);
    hpu_pool_destroy(h->pool);
    free(h->host.entry.bytes);
    free(h->host.handler.bytes);
    free(h->host.peers.bytes);
    free(h->host.message.bytes);
    h->host = (struct hpu_host){0};
    h->device = NULL;
    h->pool = NULL;
    h->core = NULL;
}
