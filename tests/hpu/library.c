/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every handler of the library (library.h), run natively on the host of `pinwheel hpu` and by
 * `pinwheel hpu run` on the image that this program carries: what it returns, its packet, its
 * state, the host's memory and what its peers hold must be the same; and a profile and a trace
 * take the cycles of the run. Usage: hpu_library PINWHEEL FOLDER, which is emptied.
 */
#include "library.h"

#include "base/fault.h"
#include "pinwheel/hpu/host.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The handlers that are linked in (spin_handler.h), and the images in front of them. */
extern const struct ptl_handler_entry __start_pinwheel_handlers[], __stop_pinwheel_handlers[];
struct image {
    char magic[8];
    uint64_t size;
    uint8_t bytes[];
};

enum { ENTRIES = 128, LINE = 256 };

static const char *pinwheel;
static struct hpu_pool *pool;
static bool covered[ENTRIES];
static int failures;

static void fail(const struct message *m, const char *what, const char *detail)
{
    fprintf(stderr, "%s: %s%s%s\n", m->name, what, detail[0] != '\0' ? ": " : "", detail);
    failures++;
}

static size_t entry_count(void)
{
    return (size_t)(__stop_pinwheel_handlers - __start_pinwheel_handlers);
}

void (*library_address(const char *name))(void)
{
    for (size_t i = 0; i < entry_count(); i++) {
        if (strcmp(__start_pinwheel_handlers[i].name, name) == 0) {
            return __start_pinwheel_handlers[i].address;
        }
    }
    fprintf(stderr, "no handler %s\n", name);
    exit(1);
}

static const struct ptl_handler_entry *entry_of(void (*address)(void))
{
    for (size_t i = 0; i < entry_count(); i++) {
        if (__start_pinwheel_handlers[i].address == address) {
            covered[i] = true;
            return &__start_pinwheel_handlers[i];
        }
    }
    return NULL;
}

/* ---- Files ---- */

static void put_file(const char *name, const void *bytes, size_t size)
{
    FILE *f = fopen(name, "wb");
    if (f == NULL || fwrite(bytes, 1, size, f) != size || fclose(f) != 0) {
        fprintf(stderr, "%s: %s\n", name, strerror(errno));
        exit(1);
    }
}

/* Of the file's `size` bytes the first `told` count. */
static void compare_file(const struct message *m, const char *name, const uint8_t *want,
                         size_t size, size_t told)
{
    static uint8_t got[MEMORY + 1];
    char detail[64];
    FILE *f = fopen(name, "rb");
    size_t n = f != NULL ? fread(got, 1, sizeof(got), f) : 0;
    if (f != NULL) {
        fclose(f);
    }
    if (f == NULL || n != size) {
        fail(m, "no such bytes", name);
        return;
    }
    for (size_t i = 0; i < told; i++) {
        if (got[i] != want[i]) {
            snprintf(detail, sizeof(detail), "%s, byte %zu: %d, natively %d", name, i, got[i],
                     want[i]);
            fail(m, "other bytes", detail);
            return;
        }
    }
}

/* ---- Natively ---- */

static int run_native(struct message *m, enum hpu_call kind, size_t packet)
{
    static struct hpu_host host;
    struct hpu_exec exec = {0};
    const ptl_payload_t payload = {.length = packet, .base = m->packet};
    host = (struct hpu_host){.entry = {m->entry, MEMORY},
                             .handler = {m->handler_host, MEMORY},
                             .peers = {m->peers, MEMORY}};
    hpu_host_serve(&host, &exec.env, PACKET);
    exec.env.state = m->state;
    exec.env.state_length = m->state_size;
    m->header.user_hdr = packet != 0 ? m->packet : NULL;
    m->header.user_hdr_length = packet;
    m->header.source_id = (ptl_process_t){.phys = {0, 0}};
    m->header.source_id.rank = 1;
    exec.arg.header = m->header; /* what the others ask for */
    exec.arg.header.user_hdr = NULL;
    exec.arg.header.user_hdr_length = 0;
    if (kind == HPU_CALL_HEADER) {
        hpu_exec_header(pool, &exec, m->handlers.header_handler, &m->header);
    } else if (kind == HPU_CALL_PAYLOAD) {
        hpu_exec_payload(pool, &exec, m->handlers.payload_handler, &payload);
    } else {
        hpu_exec_completion(pool, &exec, m->handlers.completion_handler, 0, false);
    }
    int result;
    hpu_exec_take(&exec);
    while ((result = hpu_exec_run(&exec)) == HPU_WAIT) {
    }
    hpu_exec_give(&exec);
    return result;
}

/* ---- By the command ---- */

/* Runs `pinwheel hpu COMMAND` and gives the rest of the line that begins so. */
static void ask(const struct message *m, const char *command, const char *options,
                const char *begins, char *answer)
{
    char line[2 * LINE + 512];
    answer[0] = '\0';
    snprintf(line, sizeof(line),
             "'%s' hpu %s image --state state --host host --handler-host handler_host "
             "--peers peers %s",
             pinwheel, command, options);
    FILE *f = popen(line, "r");
    while (f != NULL && fgets(line, LINE, f) != NULL) {
        if (strncmp(line, begins, strlen(begins)) == 0) {
            snprintf(answer, LINE, "%s", line + strlen(begins));
            answer[strcspn(answer, "\n")] = '\0';
        }
    }
    if (f == NULL || pclose(f) != 0) {
        fail(m, "fails: pinwheel hpu", command);
    }
}

static void write_files(const struct message *m, const struct ptl_handler_entry *e, size_t packet)
{
    const struct image *image = e->image;
    put_file("image", image->bytes, image->size);
    put_file("packet", m->packet, packet);
    put_file("state", m->state, m->state_size);
    put_file("host", m->entry, MEMORY);
    put_file("handler_host", m->handler_host, MEMORY);
    put_file("peers", m->peers, MEMORY);
}

static void compare_cycles(const struct message *m, const char *options)
{
    char run[LINE], other[LINE];
    ask(m, "run", options, "cycles        ", run);
    ask(m, "profile", options, "cycles        ", other);
    if (run[0] == '\0' || strcmp(run, other) != 0) {
        fail(m, "a profile has other cycles", other);
    }
    ask(m, "trace", options, "cycles        ", other);
    if (strcmp(run, other) != 0) {
        fail(m, "a trace has other cycles", other);
    }
}

static void run_both(struct message *m, enum hpu_call kind, void (*handler)(void), size_t packet,
                     int want)
{
    const struct ptl_handler_entry *e = entry_of(handler);
    char options[LINE], more[2 * LINE], answer[LINE], expected[LINE];
    if (e == NULL || e->image == NULL) {
        fail(m, "its handler is not registered, or has no image", "");
        return;
    }
    write_files(m, e, packet);
    int n = snprintf(options, sizeof(options), "--handler %s --packet packet", e->name);
    const char *of = kind == HPU_CALL_HEADER ? "" : "header.";
    snprintf(options + n, sizeof(options) - (size_t)n,
             " --set %slength=%llu --set %soffset=%llu --set %shdr_data=%llu "
             "--set %smatch_bits=%llu",
             of, (unsigned long long)m->header.length, of, (unsigned long long)m->header.offset, of,
             (unsigned long long)m->header.hdr_data, of, (unsigned long long)m->header.match_bits);
    compare_cycles(m, options);
    snprintf(more, sizeof(more),
             "%s --packet-out packet_out --state-out state_out --host-out host_out "
             "--handler-host-out handler_out --peers-out peers_out",
             options);
    ask(m, "run", more, "result        ", answer);
    int result = run_native(m, kind, packet);
    static const char *const codes[] = {"SUCCESS", "DROP", "", "PROCESS_DATA", "", "PROCEED"};
    snprintf(expected, sizeof(expected), "returned %s", codes[want]);
    if (result != want || strcmp(answer, expected) != 0) {
        snprintf(more, sizeof(more), "%d, %.200s", result, answer);
        fail(m, "gives something else, natively and here", more);
    }
    compare_file(m, "packet_out", m->packet, packet, packet);
    compare_file(m, "state_out", m->state, m->state_size, m->state_size);
    compare_file(m, "host_out", m->entry, MEMORY, MEMORY);
    compare_file(m, "handler_out", m->handler_host, MEMORY, m->told != 0 ? m->told : MEMORY);
    compare_file(m, "peers_out", m->peers, MEMORY, MEMORY);
}

static void run_case(library_case *make)
{
    static struct message m;
    uint32_t x = 12345;
    m = (struct message){.header_gives = PROCESS_DATA};
    for (size_t i = 0; i < MEMORY; i++) {
        x = x * 1664525 + 1013904223;
        m.entry[i] = (uint8_t)(x >> 24);
        m.packet[i % PACKET] = (uint8_t)(x >> 16);
        m.peers[i] = (uint8_t)(x >> 8);
    }
    make(&m);
    const ptl_handlers_t *h = &m.handlers;
    if (h->header_handler != NULL) {
        run_both(&m, HPU_CALL_HEADER, (void (*)(void))h->header_handler, m.user, m.header_gives);
    }
    if (h->payload_handler != NULL) {
        run_both(&m, HPU_CALL_PAYLOAD, (void (*)(void))h->payload_handler, m.packet_size,
                 m.payload_gives);
    }
    if (h->completion_handler != NULL) {
        run_both(&m, HPU_CALL_COMPLETION, (void (*)(void))h->completion_handler, 0,
                 m.completion_gives);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3 || (mkdir(argv[2], 0777) != 0 && errno != EEXIST) || chdir(argv[2]) != 0) {
        fprintf(stderr, "usage: hpu_library PINWHEEL FOLDER\n");
        return 2;
    }
    pinwheel = argv[1];
    pool = hpu_pool_create(1, 1 << 18);
    if (pool == NULL || fault_install() != 0 || entry_count() > ENTRIES) {
        fprintf(stderr, "cannot run handlers\n");
        return 1;
    }
    int cases = 0;
    for (; library_cases[cases] != NULL; cases++) {
        run_case(library_cases[cases]);
    }
    for (size_t i = 0; i < entry_count(); i++) {
        if (!covered[i]) {
            fprintf(stderr, "no case runs %s\n", __start_pinwheel_handlers[i].name);
            failures++;
        }
    }
    hpu_pool_destroy(pool);
    printf("%d messages, %zu handlers, %d failures\n", cases, entry_count(), failures);
    return failures != 0;
}
