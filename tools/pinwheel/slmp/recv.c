/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel slmp recv`: waits for one file and writes it. It writes the bytes of each packet, as
 * they come, to a temporary file. At the end it reads the file again, compares the checksum with
 * the sender's, and renames the file. A second sender that comes meanwhile is ignored.
 */
#include "commands.h"
#include "file.h"

#include "base/sys.h"
#include "fabric/slmp/wire.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_LONGEST = 2000000000, PLAIN_LINGER = 300000000 };

/* A message of the transfer; `base` is the offset in the file at which the message's byte 0, the
 * first of its head, would belong. */
struct message {
    uint32_t kind;
    int64_t base;
};

struct receiving {
    struct args args;
    const char *key_file;
    struct slmp_config config;
    struct slmp_key key;
    uint32_t address;
    uint16_t port;
    int64_t wait;
    bool only_plain, as_json;

    struct slmp_file file;
    struct slmp *engine;
    struct slmp_udp udp;

    bool begun, plain, ended, torn, lost, answer_sent;
    struct slmp_address from;
    int64_t begun_at, ended_at;
    uint64_t size;
    uint32_t checksum; /* the sender's checksum of the file */
    const char *wrong; /* how the sender broke the rules of the transfer; NULL: it did not */

    struct slmp_message answer;
    uint8_t answer_bytes[FILE_HEAD];
    struct slmp_progress progress;
};

/* ---- Upcalls ---- */

static void on_opened(void *context, struct slmp_peer *p, const struct slmp_address *a,
                      uint64_t incarnation)
{
}

static void on_closed(void *context, struct slmp_peer *p, const struct slmp_address *a)
{
    struct receiving *r = context;
    bool ours = r->begun && r->from.ip == a->ip && r->from.port == a->port;
    r->lost = r->lost || ours;
}

/* Begins the transfer if the message is the first of one; its sender is then the only one whose
 * messages are taken. */
static bool accept_first(struct receiving *r, const struct slmp_incoming *in,
                         const struct file_head *h)
{
    if (!in->plain && h->kind != FILE_BEGIN) {
        return false;
    }
    r->begun = true;
    r->plain = in->plain;
    r->from = in->from;
    r->size = in->plain ? SLMP_UNKNOWN : h->number;
    r->begun_at = clock_ns();
    if (!in->plain && h->number > INT64_MAX) {
        r->wrong = "the sender says it has more bytes than a file can have";
    }
    return true;
}

static enum slmp_step on_begin(void *context, struct slmp_incoming *in, const void *first,
                               size_t length)
{
    struct receiving *r = context;
    struct file_head h = {0};
    if (!in->plain && length >= FILE_HEAD) {
        file_head_read(&h, first);
    }
    bool ours = r->begun && !r->ended && in->from.ip == r->from.ip &&
                in->from.port == r->from.port && in->plain == r->plain && !in->plain;
    bool new = !r->begun &&accept_first(r, in, &h);
    if (!ours && !new) {
        return SLMP_GO; /* a message of another sender: its bytes are dropped */
    }
    struct message *m = calloc(1, sizeof(*m));
    if (m == NULL) {
        return SLMP_LATER;
    }
    m->kind = in->plain ? FILE_PART : h.kind;
    m->base = in->plain ? 0 : (int64_t)h.number - FILE_HEAD;
    if (h.kind == FILE_END) {
        r->checksum = h.checksum;
    } else if (h.kind == FILE_PART && (h.number > r->size || in->length < FILE_HEAD ||
                                       in->length - FILE_HEAD > r->size - h.number)) {
        r->wrong = "the sender sends bytes beyond the end that it has announced";
        m->kind = 0;
    }
    in->user = m;
    return SLMP_GO;
}

static enum slmp_step on_data(void *context, struct slmp_incoming *in, uint64_t offset,
                              const void *bytes, size_t length)
{
    struct receiving *r = context;
    const struct message *m = in->user;
    const uint8_t *from = bytes;
    if (m == NULL || m->kind != FILE_PART || r->wrong != NULL) {
        return SLMP_GO;
    }
    if (!in->plain && offset < FILE_HEAD) {
        size_t skip = FILE_HEAD - (size_t)offset < length ? FILE_HEAD - (size_t)offset : length;
        offset += skip;
        from += skip;
        length -= skip;
    }
    slmp_file_write(&r->file, (uint64_t)(m->base + (int64_t)offset), from, length);
    return SLMP_GO;
}

static void on_done(void *context, struct slmp_incoming *in, enum slmp_status status)
{
    struct receiving *r = context;
    struct message *m = in->user;
    if (m == NULL) {
        return;
    }
    r->torn = r->torn || status != SLMP_OK;
    if (in->plain && status == SLMP_OK) {
        r->size = in->length;
    }
    r->ended = r->ended || m->kind == FILE_END || in->plain;
    free(m);
}

static void on_sent(void *context, struct slmp_message *m, enum slmp_status status)
{
    ((struct receiving *)context)->answer_sent = true;
}

/* ---- The transfer ---- */

static int turn(struct receiving *r)
{
    struct reason why;
    if (slmp_udp_turn(&r->udp, r->engine, 100000000, &why) != 0) {
        return slmp_file_complain(&r->file, why.text);
    }
    return 0;
}

/* True if the sender has been silent for so long that it must be gone. The engine itself reports
 * that only while it waits for an answer, or for the rest of a plain message. Packets of other
 * peers do not count. */
static bool silent(const struct receiving *r)
{
    struct slmp_peer_info from = slmp_peer_info(r->engine, &r->from);
    return r->begun && from.session && clock_ns() - from.heard > r->config.silence;
}

static int transfer(struct receiving *r)
{
    int64_t begin = clock_ns();
    char peer[32], text[160];
    while (!(r->ended && r->file.got == r->size)) {
        if (turn(r) != 0) {
            return -1;
        }
        if (!r->begun && r->wait > 0 && clock_ns() - begin > r->wait) {
            snprintf(text, sizeof(text), "no sender came within %.3g s", (double)r->wait / 1e9);
            return slmp_file_complain(&r->file, text);
        }
        if (r->wrong != NULL || r->file.error != 0) {
            slmp_progress_end(&r->progress);
            return slmp_file_complain(&r->file,
                                      r->wrong != NULL ? r->wrong : strerror(r->file.error));
        }
        if (r->torn || r->lost || silent(r)) {
            slmp_peer_text(&r->from, peer);
            slmp_progress_end(&r->progress);
            snprintf(text, sizeof(text), "%s went away or gave up after %" PRIu64 " bytes", peer,
                     r->file.got);
            return slmp_file_complain(&r->file, text);
        }
        if (r->begun) {
            slmp_progress(&r->progress, "receiving", r->file.got, r->size);
        }
    }
    r->ended_at = clock_ns();
    slmp_progress_end(&r->progress);
    return 0;
}

/* Sends the checksum of the file to the sender and waits until the sender has acknowledged it. A
 * plain sender gets no checksum, but may need the last acknowledgements again, so the receiver
 * stays for a while. */
static int answer(struct receiving *r, bool right, uint32_t checksum)
{
    struct file_head h = {.kind = FILE_ANSWER, .checksum = checksum, .number = right};
    int64_t longest = r->config.silence < ANSWER_LONGEST ? r->config.silence : ANSWER_LONGEST;
    int64_t until = clock_ns() + (r->plain ? PLAIN_LINGER : longest);
    if (!r->plain) {
        file_head_write(&h, r->answer_bytes);
        r->answer =
            (struct slmp_message){.to = r->from, .head = r->answer_bytes, .head_length = FILE_HEAD};
        if (slmp_send(r->engine, clock_ns(), &r->answer) != 0) {
            return slmp_file_complain(&r->file, "no memory to answer the sender");
        }
    }
    while (!r->answer_sent && clock_ns() < until) {
        if (turn(r) != 0) {
            return -1;
        }
    }
    return 0;
}

static int finish(struct receiving *r)
{
    struct slmp_report report = {.verb = "received",
                                 .file = r->file.path,
                                 .bytes = r->size,
                                 .seconds = (double)(r->ended_at - r->begun_at) / 1e9,
                                 .plain = r->plain};
    char text[160];
    if (slmp_file_read_back(&r->file, r->size, &report.checksum) != 0) {
        return -1;
    }
    bool right = r->plain || report.checksum == r->checksum;
    if (right && rename(r->file.temporary, r->file.path) != 0) {
        return slmp_file_complain(&r->file, strerror(errno));
    }
    r->file.temporary[0] = right ? '\0' : r->file.temporary[0];
    if (answer(r, right, report.checksum) != 0) {
        return -1;
    }
    if (!right) {
        snprintf(text, sizeof(text), "the bytes differ from the sender's: CRC-32C %08x, not %08x",
                 report.checksum, r->checksum);
        return slmp_file_complain(&r->file, text);
    }
    report.verified = !r->plain;
    slmp_peer_text(&r->from, report.peer);
    return slmp_report(&report, r->engine, &r->udp, r->as_json) == 0 ? 0 : -1;
}

/* ---- Set-up ---- */

/* Returns a window in packets: as many as the socket's receive buffer can hold while the receiver
 * writes to the file, at 4 KiB of the buffer for each. */
static uint32_t window_of(int receive)
{
    uint32_t window = 16;
    while (window < 1024 && window * 2 * 4096 <= (uint32_t)receive) {
        window *= 2;
    }
    return window;
}

/* Prints at which address the receiver listens, and to which senders: by default only to those on
 * this host. */
static void say_where(const struct slmp_address *self)
{
    char text[32];
    slmp_peer_text(self, text);
    fprintf(stderr, "listening at %s, %s\n", text,
            self->ip == 0           ? "all interfaces"
            : self->ip >> 24 == 127 ? "this host only; --address 0.0.0.0 for all interfaces"
                                    : "this interface only");
}

static int start(struct receiving *r)
{
    struct slmp_upcalls up = {.context = r,
                              .opened = on_opened,
                              .closed = on_closed,
                              .begin = on_begin,
                              .data = on_data,
                              .done = on_done,
                              .sent = on_sent};
    struct reason why;
    if (slmp_job_key("slmp recv", r->key_file, r->config.mode == SLMP_PLAIN, &r->key, &r->config) !=
        0) {
        return -1;
    }
    if ((r->file.gather = malloc(GATHER)) == NULL) {
        return slmp_file_complain(&r->file, "not enough memory to receive it");
    }
    if (slmp_file_create(&r->file) != 0) {
        return -1;
    }
    if (slmp_udp_open(&r->udp, r->address, r->port, NULL, &why) != 0) {
        return slmp_file_complain(&r->file, why.text);
    }
    r->config.packet_size = SLMP_PACKET_MAX;
    r->config.window = window_of(r->udp.socket.receive);
    r->config.plain_window = 16;
    r->config.ordered = true;
    udp_socket_secrets(&r->config);
    r->config.self = (struct slmp_address){r->address, udp_socket_port(&r->udp.socket)};
    r->engine = slmp_start("slmp recv", &r->config, &up);
    if (r->engine == NULL) {
        return -1;
    }
    say_where(&r->config.self);
    return 0;
}

static int take_address(struct args *a, void *address)
{
    struct reason why;
    return slmp_udp_find(a->value, address, &why) == 0 ? ARGS_GO_ON
                                                       : args_error(a, "--address %s", why.text);
}

#define AT(member) ARGS_AT(struct receiving, member)

static const struct args_option recv_options[] = {
    {"--port", "N", "UDP port to listen at, 0: any (default 9330)", ARGS_NUMBER, AT(port), 0,
     65535},
    {"--address", "ADDRESS", "listen at this interface only (default: 127.0.0.1); 0.0.0.0: all", 0,
     AT(address), .take = take_address},
    {"--plain", NULL, "be a plain SLMP peer, also towards our own kind", ARGS_FLAG, AT(only_plain)},
    {"--wait", "SECONDS", "give up if no file has begun by then (default: never)", 0, AT(wait),
     .take = slmp_seconds},
    {"--silence", "SECONDS", "give up a sender silent for so long (default 10)", 0,
     AT(config.silence), .take = slmp_seconds},
    {"--key-file", "FILE",
     "job key, mode 0600: who has not got it is not listened to (default: $PINWHEEL_JOB_KEY_FILE)",
     ARGS_TEXT, AT(key_file)},
    {"--json", NULL, "print the result as JSON", ARGS_FLAG, AT(as_json)},
};

/* Parses the command line; returns ARGS_GO_ON, or the exit status. */
static int parse(struct receiving *r, int argc, char **argv)
{
    int status = args_parse(&r->args, argc, argv, r);
    if (status != ARGS_GO_ON) {
        return status;
    }
    r->config.mode = r->only_plain ? SLMP_PLAIN : r->config.mode;
    if (r->args.argc - r->args.next != 1) {
        return args_error(&r->args, "takes one file to write, after the options");
    }
    r->file.path = r->args.argv[r->args.next];
    return ARGS_GO_ON;
}

int slmp_command_recv(int argc, char **argv)
{
    static struct receiving r;
    r.args = (struct args){.command = "slmp recv",
                           .operands = "FILE",
                           .summary = "Waits for `pinwheel slmp send`, or a plain SLMP peer, and "
                                      "writes\nthe file that it sends.",
                           ARGS_OPTIONS(recv_options)};
    r.config = slmp_defaults();
    r.address = 0x7f000001;
    r.port = SLMP_PORT;
    r.file.fd = r.udp.socket.fd = -1;
    int status = parse(&r, argc, argv);
    if (status != ARGS_GO_ON) {
        return status;
    }
    bool good = start(&r) == 0 && transfer(&r) == 0 && finish(&r) == 0;
    if (r.engine != NULL) {
        slmp_close(r.engine);
    }
    slmp_udp_close(&r.udp);
    if (r.file.temporary[0] != '\0') {
        unlink(r.file.temporary);
    }
    if (r.file.fd >= 0) {
        close(r.file.fd);
    }
    free(r.file.gather);
    return good ? 0 : 1;
}
