/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel slmp send`: sends one file to one peer. In a session a few parts of the file are in
 * flight at once; a part is read when an earlier one was acknowledged. To a plain peer the file is
 * sent as one message, and read into memory as a whole.
 */
#include "commands.h"

#include "base/sys.h"
#include "fabric/slmp/wire.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PARTS = 4, PACKET_MOST = 1472 };

struct part {
    struct slmp_message message;
    struct sending *sending;
    bool busy;
    uint8_t head[FILE_HEAD];
    uint8_t *bytes;
};

struct sending {
    struct args args;
    const char *path;
    const char *key_file;
    struct slmp_address to;
    struct slmp_config config;
    struct slmp_key key;
    bool plain, as_json, unacked;
    int64_t gap; /* us */

    int fd;
    uint64_t size, read, acked;
    uint32_t checksum;
    struct slmp *engine;
    struct slmp_udp udp;
    struct part part[PARTS], begin, end;
    bool begun, ended, answered, right, failed;
    uint32_t answer; /* the receiver's checksum of the file */
    struct slmp_progress progress;
};

static int complain(const struct sending *s, const char *what)
{
    fprintf(stderr, "pinwheel slmp send: %s: %s\n", s->path, what);
    return -1;
}

/* ---- Upcalls ---- */

static void on_opened(void *context, struct slmp_peer *p, const struct slmp_address *a,
                      uint64_t incarnation)
{
}

static void on_closed(void *context, struct slmp_peer *p, const struct slmp_address *a)
{
    struct sending *s = context;
    s->failed = s->failed || !s->answered;
}

/* Takes the answer of the receiver, the only message that a receiver sends; it is one packet. */
static enum slmp_step on_begin(void *context, struct slmp_incoming *in, const void *first,
                               size_t length)
{
    struct sending *s = context;
    struct file_head h;
    if (length == FILE_HEAD && in->length == FILE_HEAD) {
        file_head_read(&h, first);
        s->answered = h.kind == FILE_ANSWER;
        s->right = h.number == 1;
        s->answer = h.checksum;
    }
    return SLMP_GO;
}

static enum slmp_step on_data(void *context, struct slmp_incoming *in, uint64_t offset,
                              const void *bytes, size_t length)
{
    return SLMP_GO;
}

static void on_done(void *context, struct slmp_incoming *in, enum slmp_status status)
{
}

static void on_sent(void *context, struct slmp_message *m, enum slmp_status status)
{
    struct sending *s = context;
    struct part *p = container_of(m, struct part, message);
    p->busy = false;
    s->failed = s->failed || status != SLMP_OK;
    s->acked += m->body_length;
    s->ended = s->ended || p == &s->end;
}

/* ---- The file, part by part ---- */

static int read_exactly(struct sending *s, uint8_t *to, size_t length)
{
    for (size_t at = 0; at < length;) {
        ssize_t n = pread(s->fd, to + at, length - at, (off_t)(s->read + at));
        if (n <= 0 && errno != EINTR) {
            return complain(s, n == 0 ? "became shorter while it was sent" : strerror(errno));
        }
        at += n > 0 ? (size_t)n : 0;
    }
    s->checksum = slmp_crc(s->checksum, to, length);
    s->read += length;
    return 0;
}

static int submit(struct sending *s, struct part *p, enum file_kind kind, uint64_t number,
                  size_t length)
{
    struct file_head h = {.kind = kind, .checksum = s->checksum, .number = number};
    p->message = (struct slmp_message){.to = s->to,
                                       .way = s->unacked ? SLMP_UNACKED : SLMP_RELIABLE,
                                       .gap = s->gap * 1000,
                                       .head = p->head,
                                       .head_length = s->plain ? 0 : FILE_HEAD,
                                       .body = p->bytes,
                                       .body_length = length};
    file_head_write(&h, p->head);
    p->busy = true;
    int r = slmp_send(s->engine, clock_ns(), &p->message);
    return r == 0 ? 0 : complain(s, strerror(-r));
}

static int feed_session(struct sending *s)
{
    if (!s->begun) {
        s->begun = true;
        if (submit(s, &s->begin, FILE_BEGIN, s->size, 0) != 0) {
            return -1;
        }
    }
    for (unsigned i = 0; i < PARTS && s->read < s->size; i++) {
        struct part *p = &s->part[i];
        uint64_t at = s->read, left = s->size - at;
        size_t length = left < PART ? (size_t)left : PART;
        if (!p->busy &&
            (read_exactly(s, p->bytes, length) != 0 || submit(s, p, FILE_PART, at, length) != 0)) {
            return -1;
        }
    }
    if (s->read == s->size && !s->end.busy && !s->ended) {
        return submit(s, &s->end, FILE_END, s->size, 0);
    }
    return 0;
}

static int feed_plain(struct sending *s)
{
    if (s->begun) {
        return 0;
    }
    s->begun = true;
    if (read_exactly(s, s->end.bytes, s->size) != 0) {
        return -1;
    }
    return submit(s, &s->end, FILE_PART, 0, s->size);
}

/* ---- The transfer ---- */

static int no_answer(struct sending *s)
{
    char peer[32], text[160];
    const struct slmp_counters *c = slmp_counters(s->engine);
    slmp_peer_text(&s->to, peer);
    slmp_progress_end(&s->progress);
    if (s->udp.socket.refused > 0) {
        snprintf(text, sizeof(text),
                 "nobody listens at %s (its host says so); start `pinwheel slmp recv%s FILE` there",
                 peer, s->to.ip >> 24 == 127 ? "" : " --address 0.0.0.0");
    } else if (c->forged > 0) {
        snprintf(text, sizeof(text), "%s has another job key, or none", peer);
    } else if (c->refused > 0 || c->version > 0) {
        snprintf(text, sizeof(text), "%s speaks %s; use --plain", peer,
                 c->version > 0 ? "another version of our SLMP" : "plain SLMP only");
    } else if (s->udp.socket.error != 0 && c->packets_in == 0) {
        snprintf(text, sizeof(text), "packets to %s cannot leave: %s", peer,
                 strerror(s->udp.socket.error));
    } else if (c->packets_in == 0) {
        snprintf(text, sizeof(text), "no answer from %s within %.3g s%s", peer,
                 (double)s->config.silence / 1e9,
                 s->config.key != NULL ? "; who has another job key, or none, gives none" : "");
    } else {
        snprintf(text, sizeof(text), "%s went away or gave up; the file has not arrived", peer);
    }
    return complain(s, text);
}

static bool waits(const struct sending *s)
{
    return s->plain ? !s->ended : !s->answered;
}

static int transfer(struct sending *s)
{
    struct reason why;
    int64_t heard = clock_ns();
    while (waits(s)) {
        bool refused = s->udp.socket.refused > 0 && slmp_counters(s->engine)->packets_in == 0;
        bool other = !s->plain && slmp_counters(s->engine)->refused > 0 && s->acked == 0;
        if (s->failed || (refused && !s->unacked) || other) {
            return no_answer(s);
        }
        if ((s->plain ? feed_plain(s) : feed_session(s)) != 0) {
            return -1;
        }
        if (slmp_udp_turn(&s->udp, s->engine, 100000000, &why) != 0) {
            return complain(s, why.text);
        }
        heard = s->ended ? heard : clock_ns();
        /* Before it answers the receiver reads its file again; 10 ns a byte (100 MB/s) are allowed
         * for that. */
        if (s->ended && clock_ns() - heard > s->config.silence + (int64_t)s->size * 10) {
            return no_answer(s);
        }
        slmp_progress(&s->progress, "sending", s->acked, s->size);
    }
    slmp_progress_end(&s->progress);
    return 0;
}

/* Acknowledges the answer, and again if the receiver sends it again because it did not get the
 * acknowledgement. */
static void say_goodbye(struct sending *s)
{
    enum { QUIET = 50000000, LONGEST = 1000000000 };
    struct reason why;
    int64_t begun = clock_ns(), heard = begun;
    uint64_t packets = slmp_counters(s->engine)->packets_in;
    slmp_flush(s->engine);
    while (clock_ns() - heard < QUIET && clock_ns() - begun < LONGEST &&
           slmp_udp_turn(&s->udp, s->engine, QUIET / 4, &why) == 0) {
        heard = slmp_counters(s->engine)->packets_in != packets ? clock_ns() : heard;
        packets = slmp_counters(s->engine)->packets_in;
    }
}

static int finish(struct sending *s, double seconds)
{
    struct slmp_report r = {.verb = "sent",
                            .file = s->path,
                            .bytes = s->size,
                            .seconds = seconds,
                            .checksum = s->checksum,
                            .plain = s->plain,
                            .verified = !s->plain && s->right && s->answer == s->checksum};
    char text[128];
    slmp_peer_text(&s->to, r.peer);
    if (!s->plain && !r.verified) {
        snprintf(text, sizeof(text),
                 "the receiver has not the same bytes: its CRC-32C is %08x, ours %08x", s->answer,
                 s->checksum);
        return complain(s, text);
    }
    return slmp_report(&r, s->engine, &s->udp, s->as_json) == 0 ? 0 : -1;
}

/* ---- Set-up ---- */

static int open_file(struct sending *s)
{
    struct stat st;
    s->fd = open(s->path, O_RDONLY | O_CLOEXEC);
    if (s->fd < 0 || fstat(s->fd, &st) != 0) {
        return complain(s, strerror(errno));
    }
    if (!S_ISREG(st.st_mode)) {
        return complain(s, "is no regular file, whose size is known");
    }
    s->size = (uint64_t)st.st_size;
    if (s->plain && s->size > SLMP_LENGTH_MAX) {
        return complain(s, "is longer than 4 GiB, which plain SLMP cannot send; leave out --plain");
    }
    return 0;
}

static int allocate(struct sending *s)
{
    size_t each = s->size < PART ? (size_t)s->size + 1 : PART;
    bool good = true;
    for (unsigned i = 0; i < PARTS && !s->plain; i++) {
        good = (s->part[i].bytes = malloc(each)) != NULL && good;
    }
    if (s->plain) {
        good = (s->end.bytes = malloc((size_t)s->size + 1)) != NULL;
    }
    return good ? 0 : complain(s, "not enough memory to read it");
}

static int start(struct sending *s)
{
    struct slmp_upcalls up = {.context = s,
                              .opened = on_opened,
                              .closed = on_closed,
                              .begin = on_begin,
                              .data = on_data,
                              .done = on_done,
                              .sent = on_sent};
    struct reason why;
    if (slmp_job_key("slmp send", s->key_file, s->plain, &s->key, &s->config) != 0 ||
        open_file(s) != 0 || allocate(s) != 0) {
        return -1;
    }
    if (slmp_udp_open(&s->udp, 0, 0, &s->to, &why) != 0) {
        return complain(s, why.text);
    }
    if (s->config.packet_size == 0) {
        s->config.packet_size =
            s->udp.socket.longest < PACKET_MOST ? s->udp.socket.longest : PACKET_MOST;
    }
    s->config.mode = s->plain ? SLMP_PLAIN : SLMP_OWN;
    s->config.window = 1024;
    /* Here the network is often this machine, whose queueing delay is that of its scheduler: a low
     * target would slow the transfer down. */
    s->config.target = 10000000;
    udp_socket_secrets(&s->config);
    s->engine = slmp_start("slmp send", &s->config, &up);
    return s->engine != NULL ? 0 : -1;
}

#define AT(member) ARGS_AT(struct sending, member)

static const struct args_option send_options[] = {
    {"--port", "N", "UDP port of the receiver (default 9330)", ARGS_NUMBER, AT(to.port), 1, 65535},
    {"--plain", NULL, "plain SLMP: the file is one message, up to 4 GiB", ARGS_FLAG, AT(plain)},
    {"--window", "N", "plain: packets under way at once (default 32)", ARGS_NUMBER,
     AT(config.plain_window), 1, 1024},
    {"--gap", "US", "plain, without acknowledgements: a packet every US microseconds", ARGS_NUMBER,
     AT(gap), 0, 1000000},
    {"--packet", "BYTES", "longest UDP payload (default: what the route carries, 1472 at most)",
     ARGS_NUMBER, AT(config.packet_size), SLMP_PACKET_MIN, SLMP_PACKET_MAX},
    {"--silence", "SECONDS", "give up after so long without answer (default 10)", 0,
     AT(config.silence), .take = slmp_seconds},
    {"--key-file", "FILE",
     "job key, mode 0600: who has not got it is not spoken to (default: $PINWHEEL_JOB_KEY_FILE)",
     ARGS_TEXT, AT(key_file)},
    {"--json", NULL, "print the result as JSON", ARGS_FLAG, AT(as_json)},
};

/* Parses the command line; returns ARGS_GO_ON, or the exit status. */
static int parse(struct sending *s, int argc, char **argv)
{
    struct reason why;
    int status = args_parse(&s->args, argc, argv, s);
    if (status != ARGS_GO_ON) {
        return status;
    }
    s->unacked = args_given(&s->args, "--gap");
    if (s->args.argc - s->args.next != 2) {
        return args_error(&s->args, "takes a host and a file, after the options: %s",
                          s->args.operands);
    }
    if (s->unacked && !s->plain) {
        return args_error(&s->args, "--gap: is for --plain; sessions are always acknowledged");
    }
    s->path = s->args.argv[s->args.next + 1];
    if (slmp_udp_find(s->args.argv[s->args.next], &s->to.ip, &why) != 0) {
        fprintf(stderr, "pinwheel slmp send: %s\n", why.text);
        return 1;
    }
    return ARGS_GO_ON;
}

int slmp_command_send(int argc, char **argv)
{
    static struct sending s;
    s.args = (struct args){.command = "slmp send",
                           .operands = "HOST FILE",
                           .summary = "Sends a file to the host where `pinwheel slmp recv` waits.",
                           ARGS_OPTIONS(send_options)};
    s.config = slmp_defaults();
    s.config.packet_size = 0;
    s.to.port = SLMP_PORT;
    s.fd = s.udp.socket.fd = -1;
    int r = parse(&s, argc, argv);
    if (r != ARGS_GO_ON) {
        return r;
    }
    r = start(&s);
    int64_t begun = clock_ns();
    if (r == 0 && (r = transfer(&s)) == 0) {
        double seconds = (double)(clock_ns() - begun) / 1e9;
        if (!s.plain) {
            say_goodbye(&s);
        }
        r = finish(&s, seconds);
    }
    if (s.engine != NULL) {
        slmp_close(s.engine);
    }
    slmp_udp_close(&s.udp);
    for (unsigned i = 0; i < PARTS; i++) {
        free(s.part[i].bytes);
    }
    free(s.end.bytes);
    return r == 0 ? 0 : 1;
}
