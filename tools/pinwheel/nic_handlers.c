/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `pinwheel nic` tells of a NIC's handlers; see nic_handlers.h. All but the dump of HPU
 * memory comes from the board; that memory is the process's own and is read with
 * process_vm_readv().
 */
#include "nic_handlers.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

enum { LINE = 16, CHUNK = 4096 };

static const char *const kinds[BOARD_KINDS] = {"ml", "nl", "mp", "np"};

static uint64_t calls(const struct board_work *w)
{
    return w->calls[BOARD_HEADER] + w->calls[BOARD_PAYLOAD] + w->calls[BOARD_COMPLETION];
}

static unsigned hpus(const struct nic_board *b)
{
    return b->hpus != 0 && b->hpus <= PTL_NUM_HPUS ? b->hpus : PTL_NUM_HPUS;
}

/* ---- For people ---- */

/* What its handlers took: on RV32 the core's cycles, else those of this processor. */
static uint64_t took(const struct nic_board *b, const struct board_work *w)
{
    return b->core_mhz != 0 ? w->core_cycles : w->cycles;
}

static void print_work(const struct nic_board *b, const struct board_work *w)
{
    printf("%10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %14" PRIu64 " %8" PRIu64 " %8" PRIu64,
           w->calls[BOARD_HEADER], w->calls[BOARD_PAYLOAD], w->calls[BOARD_COMPLETION], took(b, w),
           w->faults, w->failed);
}

static void print_titles(const char *first)
{
    printf("    %s %10s %10s %10s %14s %8s %8s", first, "header", "payload", "completion", "cycles",
           "faults", "failed");
}

static void print_context(const struct nic_board *b, const struct board_context *c)
{
    printf("    %7" PRIu64 " %3s %3u %16" PRIx64 " %8" PRIu64, c->number,
           kinds[c->kind % BOARD_KINDS], c->pt_index, c->match_bits, c->messages);
    print_work(b, &c->work);
    printf(" %10" PRIu64 " %8" PRIu64 "%s\n", c->dropped_bytes, c->refused,
           c->inactive != 0 ? "  inactive" : "");
}

void nic_handlers_print(const struct nic_board *b)
{
    if (b->contexts == 0) {
        return;
    }
    printf("    %-24s%s\n", "handlers run on",
           b->hpus == 0 ? "whoever makes progress" : "threads of their own");
    if (b->core_mhz != 0) {
        printf("    %-24s%.*s, %u MHz\n", "as on RV32 cores", (int)sizeof(b->core), b->core,
               b->core_mhz);
    }
    print_titles("HPU");
    printf("\n");
    for (unsigned i = 0; i < hpus(b); i++) {
        if (b->hpus != 0 || calls(&b->hpu[i]) != 0) {
            printf("    %3u ", i);
            print_work(b, &b->hpu[i]);
            printf("\n");
        }
    }
    print_titles("context  on  pt       match bits messages");
    printf(" %10s %8s\n", "dropped B", "refused");
    for (unsigned i = 0; i < BOARD_CONTEXTS; i++) {
        if (b->context[i].number != 0) {
            print_context(b, &b->context[i]);
        }
    }
    printf("    %7s %3s %3s %16s %8" PRIu64, "others", "", "", "", b->rest.messages);
    print_work(b, &b->rest.work);
    printf(" %10" PRIu64 " %8" PRIu64 "\n", b->rest.dropped_bytes, b->rest.refused);
}

static void print_rate(const struct nic_board *board, const char *what, uint64_t number,
                       const struct board_work *a, const struct board_work *b, double seconds,
                       uint64_t cycles)
{
    uint64_t more = calls(b) - calls(a), used = b->cycles - a->cycles;
    uint64_t each = took(board, b) - took(board, a);
    if (more == 0 && used == 0) {
        return;
    }
    printf("    %-8s %6" PRIu64 " %12.0f calls/s %10.0f cycles each %6.1f %% busy %8" PRIu64
           " faults\n",
           what, number, (double)more / seconds, more != 0 ? (double)each / (double)more : 0,
           cycles != 0 ? 100.0 * (double)used / (double)cycles : 0, b->faults);
}

void nic_handlers_rates(const struct nic_board *before, const struct nic_board *now, double seconds,
                        uint64_t cycles)
{
    for (unsigned i = 0; i < hpus(now); i++) {
        print_rate(now, "HPU", i, &before->hpu[i], &now->hpu[i], seconds, cycles);
    }
    for (unsigned i = 0; i < BOARD_CONTEXTS; i++) {
        const struct board_context *c = &now->context[i], *old = &before->context[i];
        static const struct board_work nothing;
        if (c->number != 0) {
            print_rate(now, "context", c->number, old->number == c->number ? &old->work : &nothing,
                       &c->work, seconds, cycles);
        }
    }
}

void nic_handlers_text(const struct nic_board *b)
{
    for (unsigned i = 0; i < hpus(b); i++) {
        char text[PTL_SPIN_OUTPUT];
        uint64_t printed;
        size_t length = hpu_output_read(&b->outputs[i], text, sizeof(text), &printed);
        const char *at = text, *end = text + length;
        if (printed > length) { /* the first line is not whole */
            const char *first = memchr(at, '\n', length);
            at = first != NULL ? first + 1 : at;
            printf("HPU %u: ... %" PRIu64 " bytes before\n", i, printed - (uint64_t)(end - at));
        }
        while (at < end) {
            const char *line = memchr(at, '\n', (size_t)(end - at));
            line = line != NULL ? line : end;
            printf("HPU %u: ", i);
            for (; at < line; at++) {
                putchar(isprint((unsigned char)*at) || *at == '\t' ? *at : '?');
            }
            putchar('\n');
            at = line + 1;
        }
    }
}

/* ---- JSON ---- */

static void json_work(struct json *j, const struct board_work *w)
{
    json_unsigned(j, "headers", w->calls[BOARD_HEADER]);
    json_unsigned(j, "packets", w->calls[BOARD_PAYLOAD]);
    json_unsigned(j, "completions", w->calls[BOARD_COMPLETION]);
    json_unsigned(j, "cycles", w->cycles);
    json_unsigned(j, "core_cycles", w->core_cycles);
    json_unsigned(j, "faults", w->faults);
    json_unsigned(j, "failed", w->failed);
}

static void json_context(struct json *j, const struct board_context *c)
{
    json_open_object(j, NULL);
    json_unsigned(j, "number", c->number);
    json_string(j, "kind", kinds[c->kind % BOARD_KINDS]);
    json_unsigned(j, "pt_index", c->pt_index);
    json_unsigned(j, "match_bits", c->match_bits);
    json_unsigned(j, "ignore_bits", c->ignore_bits);
    json_unsigned(j, "hpu_mask", c->hpu_mask);
    json_unsigned(j, "memory", c->memory_length);
    json_unsigned(j, "inactive", c->inactive);
    json_unsigned(j, "messages", c->messages);
    json_unsigned(j, "dropped_bytes", c->dropped_bytes);
    json_unsigned(j, "refused", c->refused);
    json_work(j, &c->work);
    json_close_object(j);
}

void nic_handlers_json(struct json *j, const struct nic_board *b)
{
    json_unsigned(j, "hpu_threads", b->hpus);
    if (b->core_mhz != 0) {
        char core[sizeof(b->core) + 1] = "";
        memcpy(core, b->core, sizeof(b->core));
        json_string(j, "core", core);
        json_unsigned(j, "core_mhz", b->core_mhz);
    }
    json_open_array(j, "hpus");
    for (unsigned i = 0; i < hpus(b); i++) {
        uint64_t printed;
        char text[PTL_SPIN_OUTPUT + 1];
        size_t length = hpu_output_read(&b->outputs[i], text, PTL_SPIN_OUTPUT, &printed);
        text[length] = '\0';
        for (size_t k = 0; k < length; k++) {
            text[k] = text[k] == '\n' || isprint((unsigned char)text[k]) ? text[k] : '?';
        }
        json_open_object(j, NULL);
        json_work(j, &b->hpu[i]);
        json_unsigned(j, "printed", printed);
        json_string(j, "output", text);
        json_close_object(j);
    }
    json_close_array(j);
    json_unsigned(j, "contexts_ever", b->contexts);
    json_open_array(j, "contexts");
    for (unsigned i = 0; i < BOARD_CONTEXTS; i++) {
        if (b->context[i].number != 0) {
            json_context(j, &b->context[i]);
        }
    }
    json_context(j, &b->rest); /* number 0: of all others */
    json_close_array(j);
}

/* ---- HPU memory ---- */

static void dump_line(uint64_t at, const uint8_t *bytes, size_t n)
{
    printf("%08" PRIx64 " ", at);
    for (size_t i = 0; i < LINE; i++) {
        if (i < n) {
            printf(" %02x", bytes[i]);
        } else {
            printf("   ");
        }
    }
    printf("  |");
    for (size_t i = 0; i < n; i++) {
        putchar(isprint(bytes[i]) ? bytes[i] : '.');
    }
    printf("|\n");
}

/* Lines as the one before are left out, as `*`. */
struct dump {
    uint8_t last[LINE];
    bool repeated, any;
};

static void dump_chunk(struct dump *d, uint64_t at, const uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i += LINE) {
        size_t length = n - i < LINE ? n - i : LINE;
        bool same = d->any && length == LINE && memcmp(d->last, bytes + i, LINE) == 0;
        if (!same) {
            dump_line(at + i, bytes + i, length);
        } else if (!d->repeated) {
            printf("*\n");
        }
        d->repeated = same;
        d->any = true;
        memcpy(d->last, bytes + i, length);
    }
}

static int read_error(int32_t process, uint64_t context)
{
    int error = errno;
    fprintf(stderr,
            "pinwheel nic: cannot read the HPU memory of context %" PRIu64 " in process %d: %s%s\n",
            context, process, strerror(error),
            error == EPERM ? "; /proc/sys/kernel/yama/ptrace_scope must be 0, or the caller root"
                           : "");
    return 1;
}

int nic_handlers_memory(int32_t process, const struct nic_board *b, uint64_t context)
{
    const struct board_context *c = NULL;
    for (unsigned i = 0; i < BOARD_CONTEXTS && context != 0; i++) {
        c = b->context[i].number == context ? &b->context[i] : c;
    }
    if (c == NULL) {
        fprintf(stderr,
                "pinwheel nic: process %d has no execution context %" PRIu64
                "; `pinwheel nic %d` lists those that it has\n",
                process, context, process);
        return 1;
    }
    struct dump d = {.any = false};
    for (uint64_t at = 0; at < c->memory_length;) {
        uint8_t bytes[CHUNK];
        uint64_t rest = c->memory_length - at;
        size_t n = rest < CHUNK ? rest : CHUNK;
        struct iovec local = {bytes, n}, remote = {(void *)(uintptr_t)(c->memory + at), n};
        ssize_t got = process_vm_readv(process, &local, 1, &remote, 1, 0);
        if (got <= 0) {
            return read_error(process, context);
        }
        dump_chunk(&d, at, bytes, (size_t)got);
        at += (uint64_t)got;
    }
    printf("%08" PRIx64 "\n", c->memory_length);
    return 0;
}
