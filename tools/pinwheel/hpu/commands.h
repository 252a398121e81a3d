/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The subcommands of `pinwheel hpu`, one file each, and the job that they share: a registered
 * handler of an image (handler.h), or any function of the image, and memory to run it on, as the
 * options ask for. Each is called like a subcommand of `pinwheel` (commands.h), with its own name
 * as argv[0]. A handler has the memory that a NIC gives it (hpu/device.h); a function has this
 * memory:
 *
 *   10000000  stack, 4 KiB below 10001000        10010000  state (HPU memory), up to 64 KiB
 *   10004000  packet, up to 16 KiB               and the segments of the image where it says
 */
#ifndef PINWHEEL_HPU_COMMANDS_H
#define PINWHEEL_HPU_COMMANDS_H

#include "handler.h"
#include "pinwheel/util/args.h"
#include "pinwheel/util/json.h"

int hpu_command_budget(int argc, char **argv);
int hpu_command_disas(int argc, char **argv);
int hpu_command_gdb(int argc, char **argv);
int hpu_command_profile(int argc, char **argv);
int hpu_command_run(int argc, char **argv);
int hpu_command_size(int argc, char **argv);
int hpu_command_trace(int argc, char **argv);

enum {
    HPU_STACK_BASE = 0x10000000,
    HPU_STACK_BYTES = 4096,
    HPU_PACKET_BASE = 0x10004000,
    HPU_PACKET_MAX = 16384,
    HPU_STATE_BASE = 0x10010000,
    HPU_STATE_MAX = 65536,
    HPU_PACKET_ROOM = 65536,   /* of a handler's packet */
    HPU_STATE_ROOM = 16777216, /* of a handler's state */
    HPU_ARGUMENTS_TEXT = RV32_ARGUMENTS,
    HPU_OWN = 6
};

struct hpu_job {
    const char *path, *function, *packet_path, *state_path;
    const char *arguments[HPU_ARGUMENTS_TEXT];
    int argument_count;
    const struct rv32_timing *timing;
    bool cold, json;
    const char *own[HPU_OWN]; /* values of options that only one command has */
    bool table;               /* --table */
    int64_t most;             /* --count */
    uint32_t packet_size, state_size;
    struct hpu_image code;
    struct hpu_handler handler; /* has a name: this handler is run; else the function of `call` */
    struct rv32_core core;      /* the core that runs the function */
    struct rv32_call call;
    uint8_t stack[HPU_STACK_BYTES];
    uint8_t *packet, *state; /* memory of packet and state, of the full room */
};

/* hpu_job_new() allocates a job with defaults; NULL: memory is short, and it has printed that. */
struct hpu_job *hpu_job_new(void);
void hpu_job_free(struct hpu_job *j);

/* hpu_job_command() runs a whole command: it makes a job, parses the command line (the image, and
 * options of the rows below), and calls `work`, unless help or an error ends it before. Returns the
 * exit status. */
typedef int hpu_work(struct hpu_job *j, struct args *a);
int hpu_job_command(struct args *a, int argc, char **argv, hpu_work *work);

/* Rows of options that set up a run in a struct hpu_job; rows of a command's own options follow
 * them. */
#define HPU_AT(member) ARGS_AT(struct hpu_job, member)
#define HPU_SETUP_OPTION_ROWS                                                                      \
    {"--handler", "NAME", "the handler to run, as PTL_HANDLER() registers it", ARGS_TEXT,          \
     HPU_AT(handler.name)},                                                                        \
        {"--set", "FIELD=VALUE",                                                                   \
         "what a handler is called with: of a header type, length, target_id, source_id, "         \
         "match_bits, "                                                                            \
         "offset, hdr_data; of a payload offset; of a completion dropped_bytes, "                  \
         "flow_control_triggered; of the message that these two ask about header.type, ..., "      \
         "header.hdr_data",                                                                        \
         .take = hpu_take_field},                                                                  \
        {"--host", "FILE", "what the entry's memory holds; default: 65536 zeros", ARGS_TEXT,       \
         HPU_AT(handler.path[HPU_FILE_ENTRY])},                                                    \
        {"--handler-host", "FILE", "what handler_host_mem holds; default: 65536 zeros", ARGS_TEXT, \
         HPU_AT(handler.path[HPU_FILE_HANDLER])},                                                  \
        {"--peers", "FILE",                                                                        \
         "what those hold to whom the handler sends, by remote offset; default: nothing",          \
         ARGS_TEXT, HPU_AT(handler.path[HPU_FILE_PEERS])},                                         \
        {"--message-state", "FILE", "what the message's own memory holds; default: 4096 zeros",    \
         ARGS_TEXT, HPU_AT(handler.path[HPU_FILE_MESSAGE])},                                       \
        {"--function", "NAME", "a function to run instead, which makes no calls", ARGS_TEXT,       \
         HPU_AT(function)},                                                                        \
        {"--arg", "VALUE",                                                                         \
         "one argument of the function after another: a number, packet, packet-size, state, "      \
         "state-size; without any, these four",                                                    \
         .take = hpu_take_argument},                                                               \
        {"--packet", "FILE",                                                                       \
         "what the packet, or the user header, holds; default: 64 zeros, or none", ARGS_TEXT,      \
         HPU_AT(packet_path)},                                                                     \
        {"--state", "FILE", "what HPU memory holds; default: 4096 zeros", ARGS_TEXT,               \
         HPU_AT(state_path)},                                                                      \
        {"--timing", "NAME", "the core: pspin (default), fpspin or arm", .take = hpu_take_timing}, \
        {"--budget",                                                                               \
         "CYCLES",                                                                                 \
         "end it after so many; default 100000000",                                                \
         ARGS_UNSIGNED,                                                                            \
         HPU_AT(call.budget),                                                                      \
         0,                                                                                        \
         1000000000000},                                                                           \
    {                                                                                              \
        "--cold", NULL, "begin with an empty instruction cache", ARGS_FLAG, HPU_AT(cold)           \
    }
#define HPU_JSON_ROW                                                                               \
    {                                                                                              \
        "--json", NULL, "print JSON", ARGS_FLAG, HPU_AT(json)                                      \
    }

/* Functions for options whose value is more than a text or a number. */
int hpu_take_field(struct args *a, void *job);
int hpu_take_argument(struct args *a, void *job);
int hpu_take_timing(struct args *a, void *job);

/* hpu_job_open() loads the image and makes it ready to run. Returns 0, or -1 after it has printed
 * why on stderr. */
int hpu_job_open(struct hpu_job *j, const char *command);

/* hpu_job_run() runs the handler or function; NULL: it could not, and has printed why on stderr. */
const struct rv32_result *hpu_job_run(struct hpu_job *j, const char *command, hpu_runner *runner,
                                      void *context);

/* hpu_run_core() is the runner that lets the core run without looking at it. */
const struct rv32_result *hpu_run_core(void *context, struct rv32_core *core,
                                       const struct rv32_call *call);

/* hpu_job_name() returns the name of the handler or function. */
const char *hpu_job_name(const struct hpu_job *j);

/* hpu_job_text() writes in one line how the run ended. */
void hpu_job_text(const struct hpu_job *j, const struct rv32_result *r, struct rv32_error *text);

/* hpu_job_resize() makes the packet `packet_size` bytes long; the bytes that are there stay. */
int hpu_job_resize(struct hpu_job *j, const char *command, uint32_t packet_size);

/* hpu_image_open() only loads the image and its table of source lines. */
int hpu_image_open(struct hpu_job *j, const char *command);

/* hpu_result_print() prints how the run ended, what it took and which calls it made, in lines;
 * hpu_result_json() puts that into an open JSON object. Both return the exit status: 0 if the
 * handler or function returned. */
int hpu_result_print(const struct hpu_job *j, const struct rv32_result *r);
int hpu_result_json(const struct hpu_job *j, const struct rv32_result *r, struct json *to);

/* hpu_where() writes "function+0x10 file:12" for an address in the code. */
void hpu_where(const struct hpu_job *j, uint32_t pc, char *text, size_t size);

#endif
