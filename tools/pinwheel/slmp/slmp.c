/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel slmp`: sends files over UDP with SLMP. This file finds the subcommand, and has
 * functions that both use: heads of records, progress, the report.
 */
#include "commands.h"

#include "base/options.h"
#include "base/sys.h"
#include "pinwheel/commands.h"
#include "pinwheel/util/family.h"
#include "pinwheel/util/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct family_member members[] = {
    {"send", slmp_command_send,
     "a file to a host where `pinwheel slmp recv` or a plain peer waits"},
    {"recv", slmp_command_recv, "waits for a file and writes it"},
};

int command_slmp(int argc, char **argv)
{
    static const struct family family = {
        .name = "slmp",
        .summary = "Files over UDP with SLMP, the message protocol of Pinwheel's network fabric.",
        .members = members,
        .count = sizeof(members) / sizeof(members[0]),
    };
    return family_run(&family, argc, argv);
}

/* ---- Records ---- */

void file_head_write(const struct file_head *h, uint8_t to[FILE_HEAD])
{
    for (int i = 0; i < 4; i++) {
        to[i] = (uint8_t)(h->kind >> (24 - 8 * i));
        to[4 + i] = (uint8_t)(h->checksum >> (24 - 8 * i));
    }
    for (int i = 0; i < 8; i++) {
        to[8 + i] = (uint8_t)(h->number >> (56 - 8 * i));
    }
}

void file_head_read(struct file_head *h, const uint8_t from[FILE_HEAD])
{
    *h = (struct file_head){0};
    for (int i = 0; i < 4; i++) {
        h->kind = h->kind << 8 | from[i];
        h->checksum = h->checksum << 8 | from[4 + i];
    }
    for (int i = 0; i < 8; i++) {
        h->number = h->number << 8 | from[8 + i];
    }
}

int slmp_seconds(struct args *a, void *ns)
{
    char *end;
    double s = strtod(a->value, &end);
    if (end == a->value || *end != '\0' || !(s >= 0.001 && s <= 1e6)) {
        return args_bad(a, "must be seconds from 0.001 to 1000000");
    }
    *(int64_t *)ns = (int64_t)(s * 1e9);
    return ARGS_GO_ON;
}

/* ---- The engine ---- */

int slmp_job_key(const char *command, const char *path, bool plain, struct slmp_key *key,
                 struct slmp_config *config)
{
    const char *variable = option_table[OPT_JOB_KEY_FILE].env, *named = getenv(variable);
    bool from_environment = path == NULL && named != NULL && *named != '\0';
    struct reason why;
    /* warns of misspelt variables: without a key the peer is not authenticated */
    args_environment(command, environ);
    path = from_environment ? named : path;
    if (path == NULL) {
        return 0;
    }
    if (plain) {
        fprintf(stderr, "pinwheel %s: --plain: plain SLMP knows no job key; leave out %s\n",
                command, from_environment ? variable : "--key-file");
        return -1;
    }
    if (slmp_key_read(key, path, &why) != 0) {
        fprintf(stderr, "pinwheel %s: %s%s%s\n", command, from_environment ? variable : "",
                from_environment ? "=" : "", why.text);
        return -1;
    }
    config->mode = SLMP_OWN;
    config->key = key;
    return 0;
}

static const char *begun; /* name of the command that has begun to use SLMP */

/* Prints, once, that a peer has another version of the protocol. */
static void other_version(void *context, const struct slmp_address *from, unsigned theirs,
                          unsigned ours)
{
    static bool told;
    if (!told) {
        told = true;
        fprintf(stderr, "pinwheel %s: %s\n", begun, slmp_version_text(from, theirs, ours).text);
    }
}

struct slmp *slmp_start(const char *command, const struct slmp_config *config,
                        const struct slmp_upcalls *up)
{
    struct slmp_upcalls all = *up;
    begun = command;
    all.version = other_version;
    struct reason why;
    struct slmp *e = slmp_open(config, &all, &why);
    if (e == NULL) {
        fprintf(stderr, "pinwheel %s: cannot start SLMP: %s\n", command, why.text);
    }
    return e;
}

/* ---- Progress ---- */

static void rate_text(double bytes_per_second, char text[32])
{
    static const char *const units[] = {"B/s", "kB/s", "MB/s", "GB/s"};
    unsigned unit = 0;
    for (; bytes_per_second >= 1000 && unit < 3; unit++) {
        bytes_per_second /= 1000;
    }
    snprintf(text, 32, "%.1f %s", bytes_per_second, units[unit]);
}

void slmp_progress(struct slmp_progress *p, const char *what, uint64_t done, uint64_t of)
{
    enum { WIDTH = 30 };
    static const char full[] = "##############################";
    int64_t now = clock_ns();
    char rate[32];
    if (p->begun == 0) {
        p->begun = now;
        p->next = now + 200000000;
    }
    if (now < p->next || !isatty(STDERR_FILENO)) {
        return;
    }
    p->next = now + 200000000;
    p->shown = true;
    rate_text((double)done * 1e9 / (double)(now - p->begun), rate);
    if (of != SLMP_UNKNOWN && of > 0) {
        int part = (int)(done * WIDTH / of);
        fprintf(stderr, "\r\033[K%s [%.*s%*s] %3u %%  %s", what, part, full, WIDTH - part, "",
                (unsigned)(done * 100 / of), rate);
    } else {
        fprintf(stderr, "\r\033[K%s %" PRIu64 " bytes  %s", what, done, rate);
    }
}

void slmp_progress_end(struct slmp_progress *p)
{
    if (p->shown) {
        fputs("\r\033[K", stderr);
        p->shown = false;
    }
}

/* ---- The report ---- */

void slmp_peer_text(const struct slmp_address *a, char text[32])
{
    snprintf(text, 32, "%u.%u.%u.%u:%u", a->ip >> 24, a->ip >> 16 & 255, a->ip >> 8 & 255,
             a->ip & 255, a->port);
}

static int report_json(const struct slmp_report *r, const struct slmp_counters *c,
                       const struct slmp_udp *u)
{
    char checksum[16];
    struct json j = {.to = stdout};
    snprintf(checksum, sizeof(checksum), "%08x", r->checksum);
    json_open_object(&j, NULL);
    json_string(&j, "action", r->verb);
    json_string(&j, "file", r->file);
    json_string(&j, "peer", r->peer);
    json_bool(&j, "plain", r->plain);
    json_unsigned(&j, "bytes", r->bytes);
    json_real(&j, "seconds", r->seconds);
    json_string(&j, "crc32c", checksum);
    json_bool(&j, "verified", r->verified);
    json_unsigned(&j, "packets_out", c->packets_out);
    json_unsigned(&j, "packets_in", c->packets_in);
    json_unsigned(&j, "retransmitted", c->retransmitted);
    json_unsigned(&j, "timeouts", c->timeouts);
    json_unsigned(&j, "duplicates", c->duplicates);
    json_unsigned(&j, "corrupt", c->corrupt);
    json_unsigned(&j, "forged", c->forged);
    json_unsigned(&j, "replayed", c->replayed);
    json_unsigned(&j, "shortened", c->shortened);
    json_unsigned(&j, "narrowed", u->socket.narrowed);
    json_unsigned(&j, "unsent", u->socket.dropped);
    json_unsigned(&j, "send_calls", u->socket.calls_out);
    json_unsigned(&j, "receive_calls", u->socket.calls_in);
    json_bool(&j, "udp_segment", u->socket.segments);
    json_bool(&j, "udp_gro", u->socket.joins);
    json_close_object(&j);
    return json_end(&j);
}

int slmp_report(const struct slmp_report *r, const struct slmp *e, const struct slmp_udp *u,
                bool as_json)
{
    const struct slmp_counters *c = slmp_counters(e);
    char rate[32];
    int failed = 0;
    if (as_json) {
        failed = report_json(r, c, u);
    } else {
        rate_text(r->seconds > 0 ? (double)r->bytes / r->seconds : 0, rate);
        printf("%s %s: %" PRIu64 " bytes, %s, %.3f s, %s; %" PRIu64
               " packets sent again; CRC-32C %08x%s\n",
               r->verb, r->file, r->bytes, r->peer, r->seconds, rate, c->retransmitted, r->checksum,
               r->verified ? ", the same at both ends" : "");
    }
    if (failed != 0 || fflush(stdout) != 0 || ferror(stdout)) {
        perror("pinwheel slmp: cannot write to standard output");
        return 1;
    }
    return 0;
}
