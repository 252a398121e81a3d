/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A registered handler, run once as a NIC runs it: on a context, as device code on the RV32 core
 * (hpu/device.h), with a host of its own (host.h) that its calls reach.
 *
 *      --packet            a payload handler's packet, or a header handler's user header
 *      --set FIELD=VALUE   what else it is called with
 *      --state             HPU memory
 *      --message-state     the message's own memory
 *      --host, --handler-host, --peers    the host's memory
 */
#ifndef PINWHEEL_HPU_HANDLER_H
#define PINWHEEL_HPU_HANDLER_H

#include "calls.h"
#include "host.h"

#include "hpu/device.h"

/* Files of the host's memory. */
enum hpu_handler_file {
    HPU_FILE_ENTRY,
    HPU_FILE_HANDLER,
    HPU_FILE_PEERS,
    HPU_FILE_MESSAGE,
    HPU_FILES
};

enum {
    HPU_HANDLER_FIELDS = 16,
    HPU_HANDLER_STACK = 65536, /* as PINWHEEL_HPU_STACK has it by default */
    HPU_HANDLER_PACKET = 4096, /* as PINWHEEL_PACKET_SIZE */
    HPU_HANDLER_HOST = 65536   /* of host memory, without a file */
};

struct hpu_handler {
    const char *name; /* as registered; NULL: a function is run */
    const char *path[HPU_FILES];
    const char *field[HPU_HANDLER_FIELDS]; /* of --set */
    int field_count;
    bool aloud; /* says on stderr when a call ends it */

    enum hpu_call kind;
    struct hpu_host host;
    struct hpu_calls calls;
    struct hpu_device *device;
    struct hpu_pool *pool;
    struct hpu_device_code code[3]; /* by kind */
    struct hpu_device_observer observer;
    struct hpu_exec exec;
    struct rv32_core *core;    /* that it ran on */
    struct rv32_result result; /* of the core */
    int returned;              /* the code that its return counts as, or SEGV, TIMEOUT, FAIL */
    char why[512];             /* it did not return */
};

/* The function that runs the core: rv32_core_call(), or something that looks at each instruction.
 */
typedef const struct rv32_result *hpu_runner(void *context, struct rv32_core *core,
                                             const struct rv32_call *call);

/* The arguments of the handler: bytes that stay where they are, and change. */
struct hpu_handler_memory {
    uint8_t *packet, *state;
    uint32_t packet_size, state_size;
};

/* hpu_handler_open() finds the handler in an image that is ready, and reads its host's memory,
 * anew if it is open; -1: it has said why into *error. Close it in any case; zeros are closed. */
int hpu_handler_open(struct hpu_handler *h, const struct hpu_image *image,
                     const struct rv32_timing *timing, int64_t budget, struct rv32_error *error);
void hpu_handler_close(struct hpu_handler *h);

/* hpu_handler_run() runs it; -1: it could not, and has said why into *error. */
int hpu_handler_run(struct hpu_handler *h, const struct hpu_handler_memory *m, hpu_runner *runner,
                    void *context, struct rv32_error *error);

/* hpu_handler_code() is the name of a return code. */
const char *hpu_handler_code(int code);

/* hpu_handler_kind() gives the enum hpu_call of the function at `pc`, HPU_KIND_NONE when
 * that has the type of no kind, or HPU_KIND_UNKNOWN when the image has no debug information of it.
 */
enum { HPU_KIND_NONE = -1, HPU_KIND_UNKNOWN = -2 };
int hpu_handler_kind(const struct rv32_image *image, uint32_t pc);

/* A struct that a variable of a handler points to: its state, and what else it looks at. */
struct hpu_struct {
    char name[96];
    uint64_t bytes;
};

/* hpu_handler_structs() gives those of the function at `pc`, each once, `most` at most. */
int hpu_handler_structs(const struct rv32_image *image, uint32_t pc, struct hpu_struct *structs,
                        int most);

#endif
