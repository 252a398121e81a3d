/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a registered handler once, as a NIC runs it: on a context, as device code on the RV32 core
 * (hpu/device.h). Its calls reach a host of its own (host.h).
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

/* Files with contents of the host's memory. */
enum hpu_handler_file {
    HPU_FILE_ENTRY,
    HPU_FILE_HANDLER,
    HPU_FILE_PEERS,
    HPU_FILE_MESSAGE,
    HPU_FILES
};

enum {
    HPU_HANDLER_FIELDS = 16,
    HPU_HANDLER_STACK = 65536, /* default of PINWHEEL_HPU_STACK */
    HPU_HANDLER_PACKET = 4096, /* default of PINWHEEL_PACKET_SIZE */
    HPU_HANDLER_HOST = 65536   /* bytes of host memory that has no file */
};

struct hpu_handler {
    /* name under which the handler is registered; NULL: a function is run instead */
    const char *name;
    const char *path[HPU_FILES];
    const char *field[HPU_HANDLER_FIELDS]; /* values of --set */
    int field_count;
    bool aloud; /* prints on stderr if a call ends the handler */

    enum hpu_call kind;
    struct hpu_host host;
    struct hpu_calls calls;
    struct hpu_device *device;
    struct hpu_pool *pool;
    struct hpu_device_code code[3]; /* by kind of handler */
    struct hpu_device_observer observer;
    struct hpu_exec exec;
    struct rv32_core *core;    /* the core that the handler ran on */
    struct rv32_result result; /* what the core reports */
    /* the return code that its end counts as; SEGV, TIMEOUT or FAIL if it did not return */
    int returned;
    char why[512]; /* why it did not return */
};

/* A runner runs the core: rv32_core_call(), or a function that looks at each instruction. */
typedef const struct rv32_result *hpu_runner(void *context, struct rv32_core *core,
                                             const struct rv32_call *call);

/* Memory of the handler's arguments, which belongs to the caller and which the handler changes. */
struct hpu_handler_memory {
    uint8_t *packet, *state;
    uint32_t packet_size, state_size;
};

/* hpu_handler_open() finds the handler in an image that is ready, and reads the memory of its host,
 * again if it is open already. Returns 0, or -1 after it has written why to *error. The caller
 * closes it in both cases; a zeroed struct is closed. */
int hpu_handler_open(struct hpu_handler *h, const struct hpu_image *image,
                     const struct rv32_timing *timing, int64_t budget, struct rv32_error *error);
void hpu_handler_close(struct hpu_handler *h);

/* hpu_handler_run() runs the handler. Returns 0, or -1 after it has written to *error why it could
 * not run. */
int hpu_handler_run(struct hpu_handler *h, const struct hpu_handler_memory *m, hpu_runner *runner,
                    void *context, struct rv32_error *error);

/* hpu_handler_code() returns the name of a return code. */
const char *hpu_handler_code(int code);

/* hpu_handler_kind() returns the enum hpu_call of the function at `pc`; HPU_KIND_NONE if it does
 * not have the type of a handler, or HPU_KIND_UNKNOWN if the image has no debug information of
 * it. */
enum { HPU_KIND_NONE = -1, HPU_KIND_UNKNOWN = -2 };
int hpu_handler_kind(const struct rv32_image *image, uint32_t pc);

/* A struct that variables of a handler point to: its state, or another one. */
struct hpu_struct {
    char name[96];
    uint64_t bytes;
};

/* hpu_handler_structs() stores these structs for the function at `pc`, each once, `most` at most,
 * and returns how many. */
int hpu_handler_structs(const struct rv32_image *image, uint32_t pc, struct hpu_struct *structs,
                        int most);

#endif
