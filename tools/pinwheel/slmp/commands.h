/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel slmp send` and `pinwheel slmp recv`, and functions that both use.
 *
 * In a session a file is sent as messages of one channel:
 *
 *     FILE_BEGIN  size                the first
 *     FILE_PART   offset  bytes       PART bytes, the last one fewer
 *     FILE_END    size, checksum      CRC-32C of all bytes
 *     FILE_ANSWER right, checksum     from the receiver, of what is in its file
 *
 * each with a struct file_head, in network byte order. To a plain peer the file is a single message
 * without head, as in the demo of the FPsPIN prototype.
 */
#ifndef PINWHEEL_SLMP_COMMANDS_H
#define PINWHEEL_SLMP_COMMANDS_H

#include "fabric/slmp/key.h"
#include "pinwheel/util/args.h"
#include "udp.h"

#include <stdint.h>
#include <sys/types.h>

int slmp_command_send(int argc, char **argv);
int slmp_command_recv(int argc, char **argv);

enum file_kind { FILE_BEGIN = 0x70770001, FILE_PART, FILE_END, FILE_ANSWER };
enum { FILE_HEAD = 16, PART = 4 << 20 };

struct file_head {
    uint32_t kind, checksum;
    uint64_t number; /* size, offset, or 1 if the file is right */
};
void file_head_write(const struct file_head *, uint8_t to[FILE_HEAD]);
void file_head_read(struct file_head *, const uint8_t from[FILE_HEAD]);

/* slmp_seconds() reads the value of an option, in seconds with a fraction, and stores nanoseconds
 * (int64_t). */
int slmp_seconds(struct args *, void *ns);

/* slmp_job_key() reads the job key from the file `path` or, if that is NULL, from the file that the
 * environment names, and sets it in the configuration. With a key `plain` is refused. Returns 0,
 * with or without a key, or -1 after it has printed what is wrong. */
int slmp_job_key(const char *command, const char *path, bool plain, struct slmp_key *,
                 struct slmp_config *);

/* slmp_start() opens the engine, with an upcall that reports peers with another version of the
 * protocol. NULL after it has printed what is wrong. */
struct slmp *slmp_start(const char *command, const struct slmp_config *,
                        const struct slmp_upcalls *);

/* A progress bar on standard error, if that is a terminal, updated a few times a second. */
struct slmp_progress {
    int64_t begun, next;
    bool shown;
};
void slmp_progress(struct slmp_progress *, const char *what, uint64_t done, uint64_t of);
void slmp_progress_end(struct slmp_progress *);

/* What is printed at the end of a transfer. */
struct slmp_report {
    const char *verb; /* "sent", "received" */
    const char *file;
    char peer[32];
    uint64_t bytes;
    double seconds;
    uint32_t checksum;
    bool plain;
    bool verified; /* the receiver has read the bytes back, and they are right */
};
int slmp_report(const struct slmp_report *, const struct slmp *, const struct slmp_udp *,
                bool as_json);
void slmp_peer_text(const struct slmp_address *, char text[32]);

#endif
