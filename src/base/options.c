/* SPDX-License-Identifier: BSD-3-Clause */
/* The option table and its parser; see options.h. */
#include "base/options.h"

#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER(env, unit, fallback, min, max, meaning)                                             \
    {                                                                                              \
        env, OPTION_NUMBER, unit, fallback, min, max, NULL, meaning                                \
    }
#define TEXT(env, fallback, meaning)                                                               \
    {                                                                                              \
        env, OPTION_TEXT, "", fallback, 0, 0, NULL, meaning                                        \
    }
#define CHOICE(env, fallback, choices, meaning)                                                    \
    {                                                                                              \
        env, OPTION_CHOICE, "", fallback, 0, 0, choices, meaning                                   \
    }

const struct option_desc option_table[OPT_COUNT] = {
    [OPT_IFACES] =
        TEXT("PINWHEEL_IFACES", "",
             "interfaces or their IPv4 addresses, comma separated; PTL_IFACE_DEFAULT + i "
             "is the i-th; empty: the one of the default route, else loopback"),
    [OPT_FABRIC] = CHOICE("PINWHEEL_FABRIC", "auto", "auto|shm|udp|sim",
                          "the path messages must take; auto: shared memory within the host, and "
                          "UDP to others with a job key or PINWHEEL_UDP_OPEN=1; sim: set by "
                          "`pinwheel sim`"),
    [OPT_JOB_KEY_FILE] =
        TEXT("PINWHEEL_JOB_KEY_FILE", "",
             "file with the job's key, mode 0600, 32 to 1024 bytes: over UDP only who "
             "has it is spoken to"),
    [OPT_LOG] = CHOICE("PINWHEEL_LOG", "warn", "none|error|warn|info|debug",
                       "what is written to standard error"),
    [OPT_LEASE_US] = NUMBER("PINWHEEL_LEASE_US", "us", "1000", 50, 1000000,
                            "how long the NIC thread trusts a program that polls"),
    [OPT_SPIN_US] = NUMBER("PINWHEEL_SPIN_US", "us", "20", 0, 1000000,
                           "how long a waiting call polls without giving up the core"),
    [OPT_YIELD_US] = NUMBER("PINWHEEL_YIELD_US", "us", "100", 0, 1000000,
                            "how long it then polls, yielding, before it sleeps"),
    [OPT_CORE] = NUMBER("PINWHEEL_CORE", "", "-1", -1, 1023,
                        "the core that the process's first thread stays on while it polls, set by "
                        "`pinwheel run`; -1: any"),
    [OPT_MEMBARRIER] =
        NUMBER("PINWHEEL_MEMBARRIER", "", "1", 0, 1,
               "1: sleepers pay for ordering (membarrier), 0: every send does (fence)"),
    [OPT_PACKET_SIZE] = NUMBER("PINWHEEL_PACKET_SIZE", "bytes", "4096", 64, 65536,
                               "payload of one packet, a multiple of 64"),
    [OPT_SHM_DIR] = TEXT("PINWHEEL_SHM_DIR", "/dev/shm", "where shared segments live (a tmpfs)"),
    [OPT_SHM_PEERS] = NUMBER("PINWHEEL_SHM_PEERS", "", "256", 2, 448,
                             "peers that may send to one NIC over shared memory"),
    [OPT_SHM_RING] = NUMBER("PINWHEEL_SHM_RING", "lines", "128", 2, 65536,
                            "64-byte lines of a ring, a power of two"),
    [OPT_SHM_CELLS] = NUMBER("PINWHEEL_SHM_CELLS", "", "512", 2, 65536,
                             "packet cells of a ring once large messages flow, a power of two"),
    [OPT_SHM_CELLS_FIRST] = NUMBER("PINWHEEL_SHM_CELLS_FIRST", "", "64", 2, 65536,
                                   "packet cells of a ring in the beginning, a power of two"),
    [OPT_SHM_INLINE] = NUMBER("PINWHEEL_SHM_INLINE", "bytes", "1024", 0, 4096,
                              "largest payload that travels inside the ring"),
    [OPT_SHM_LARGE] = CHOICE("PINWHEEL_SHM_LARGE", "auto", "auto|cells|vm",
                             "how larger payloads travel: through cells, by process_vm_readv, or "
                             "whichever measured faster"),
    [OPT_SHM_VM_MIN] = NUMBER("PINWHEEL_SHM_VM_MIN", "bytes", "67108864", 1, INT64_MAX,
                              "payload from which `auto` takes process_vm_readv"),
    [OPT_SHM_VM_FAR] = NUMBER("PINWHEEL_SHM_VM_FAR", "bytes", "32768", 1, INT64_MAX,
                              "the same, between cores that are far apart"),
    [OPT_UDP_PORT_BASE] =
        NUMBER("PINWHEEL_UDP_PORT_BASE", "", "10000", 1023, 64511,
               "the UDP port of a PID below 1024 is this one and the PID; others are ports "
               "themselves"),
    [OPT_UDP_OPEN] = NUMBER("PINWHEEL_UDP_OPEN", "", "0", 0, 1,
                            "1: peers beyond this host are let in, whoever they are"),
    [OPT_UDP_SILENCE_MS] = NUMBER("PINWHEEL_UDP_SILENCE_MS", "ms", "10000", 10, 3600000,
                                  "how long a peer that should answer over UDP may be silent "
                                  "before it counts as dead"),
    [OPT_UDP_BUFFER] = NUMBER("PINWHEEL_UDP_BUFFER", "bytes", "4194304", 65536, 1073741824,
                              "receive and send buffer of a UDP socket, as far as the system "
                              "allows it"),
    [OPT_UDP_PACKET] = NUMBER("PINWHEEL_UDP_PACKET", "bytes", "0", 0, 65507,
                              "longest UDP payload; 0: what the interface carries"),
    [OPT_UDP_CHECKSUM] = CHOICE("PINWHEEL_UDP_CHECKSUM", "auto", "auto|header|all",
                                "what the checksum of a packet covers; auto: on loopback the "
                                "header, elsewhere all"),
    [OPT_CONNECT_MS] = NUMBER("PINWHEEL_CONNECT_MS", "ms", "500", 0, 3600000,
                              "how long a message waits for its target process to appear"),
    [OPT_LINGER_MS] =
        NUMBER("PINWHEEL_LINGER_MS", "ms", "2000", 0, 3600000,
               "how long PtlNIFini waits for queued messages to leave and handlers to end"),
    [OPT_SEND_QUEUE] = NUMBER("PINWHEEL_SEND_QUEUE", "messages", "1024", 1, 1000000,
                              "messages of a NIC's program that may wait for room"),
    [OPT_HANDLER_QUEUE] = NUMBER("PINWHEEL_HANDLER_QUEUE", "messages", "16384", 1, 1000000,
                                 "messages of a NIC's handlers that may wait for room"),
    [OPT_OUTSTANDING] = NUMBER("PINWHEEL_OUTSTANDING", "messages", "256", 1, 65535,
                               "requests to one peer that may wait for their response"),
    [OPT_FLOWCTRL_MS] = NUMBER("PINWHEEL_FLOWCTRL_MS", "ms", "50", 0, 3600000,
                               "how long a message that flow control has no room for waits for "
                               "some before it is refused"),
    [OPT_FASTPATH] = CHOICE("PINWHEEL_FASTPATH", "on", "on|off",
                            "whether messages that need little take the fast paths; off: all go "
                            "through the general stages, to find out which of the two errs"),
    [OPT_HPU_PATIENCE_MS] =
        NUMBER("PINWHEEL_HPU_PATIENCE_MS", "ms", "1000", 1, 3600000,
               "how long a handler waits for room to send before it is refused, and a message for "
               "its handlers before it is dropped"),
    [OPT_HPU] = CHOICE("PINWHEEL_HPU", "native", "native|rv32",
                       "what runs handlers: this processor, or a model of the RV32 cores of "
                       "PsPIN (handlers compiled by `pinwheel cc`)"),
    [OPT_HPU_TIMING] = CHOICE("PINWHEEL_HPU_TIMING", "pspin", "pspin|fpspin|arm",
                              "which core the cycles of handlers are those of, with "
                              "PINWHEEL_HPU=rv32 (docs/rv32.md)"),
    [OPT_HPU_IMAGES] =
        TEXT("PINWHEEL_HPU_IMAGES", "",
             "files of images, colon separated, for handlers whose program carries none"),
    [OPT_HPUS] = NUMBER("PINWHEEL_HPUS", "threads", "0", 0, 64,
                        "threads that run handlers; 0: whoever makes progress does"),
    [OPT_HPU_PIN] = TEXT("PINWHEEL_HPU_PIN", "",
                         "processors of these threads, in turn, as \"2,3,6-7\"; empty: any"),
    [OPT_HPU_QUEUE] =
        NUMBER("PINWHEEL_HPU_QUEUE", "calls", "128", 1, 65536,
               "handler calls of one entry that may wait for such a thread, and packets "
               "that a sender may have there beside its other messages"),
    [OPT_HPU_MEMORY] = NUMBER("PINWHEEL_HPU_MEMORY", "bytes", "1073741824", 0, INT64_MAX,
                              "HPU memory of a NIC, all pieces together"),
    [OPT_HANDLER_BUDGET_US] = NUMBER("PINWHEEL_HANDLER_BUDGET_US", "us", "1000000", 0, 3600000000,
                                     "processor time after which a handler is ended; 0: never"),
    [OPT_HPU_STACK] =
        NUMBER("PINWHEEL_HPU_STACK", "bytes", "65536", 16384, 16777216, "stack of a handler"),
};

static int parse_choice(const struct option_desc *d, const char *value, int64_t *number)
{
    size_t length = strlen(value);
    const char *at = d->choices;
    for (int64_t index = 0;; index++) {
        const char *bar = strchrnul(at, '|');
        if ((size_t)(bar - at) == length && memcmp(at, value, length) == 0) {
            *number = index;
            return 0;
        }
        if (*bar == '\0') {
            return -1;
        }
        at = bar + 1;
    }
}

/* Rings and cells are indexed by masking, so their sizes must be powers of two; packets are cut in
 * units of 64 bytes. Returns what the number should be, or NULL if it is right. */
static const char *shape_error(enum option_id id, int64_t number)
{
    if ((id == OPT_SHM_RING || id == OPT_SHM_CELLS || id == OPT_SHM_CELLS_FIRST) &&
        (number & (number - 1)) != 0) {
        return "a power of two";
    }
    if (id == OPT_PACKET_SIZE && number % 64 != 0) {
        return "a multiple of 64";
    }
    return NULL;
}

int option_parse(enum option_id id, const char *value, int64_t *number, char *error,
                 size_t error_size)
{
    const struct option_desc *d = &option_table[id];
    *number = 0;
    switch (d->type) {
    case OPTION_TEXT:
        if (strlen(value) >= sizeof(((struct options *)0)->text[0])) {
            snprintf(error, error_size, "%s: the value is longer than 255 characters", d->env);
            return -1;
        }
        return 0;
    case OPTION_CHOICE:
        if (parse_choice(d, value, number) != 0) {
            snprintf(error, error_size, "%s=%s: must be one of %s", d->env, value, d->choices);
            return -1;
        }
        return 0;
    case OPTION_NUMBER:
        break;
    }
    if (!number_read(value, d->min, d->max, number)) {
        snprintf(error, error_size, "%s=%s: must be a whole number from %lld to %lld%s%s", d->env,
                 value, (long long)d->min, (long long)d->max, *d->unit ? " " : "", d->unit);
        return -1;
    }
    const char *shape = shape_error(id, *number);
    if (shape != NULL) {
        snprintf(error, error_size, "%s=%s: must be %s", d->env, value, shape);
        return -1;
    }
    return 0;
}

int options_load(struct options *o, char *error, size_t error_size)
{
    memset(o, 0, sizeof(*o));
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_desc *d = &option_table[id];
        const char *value = getenv(d->env);
        if (value == NULL || *value == '\0') {
            value = d->fallback;
        }
        if (option_parse((enum option_id)id, value, &o->number[id], error, error_size) != 0) {
            return -1;
        }
        if (d->type == OPTION_TEXT) {
            snprintf(o->text[id], sizeof(o->text[id]), "%s", value);
        }
    }
    return 0;
}
