/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The registration cache of a fabric whose network moves only memory that was registered with it.
 * The fabric brings a table of its provider's functions; before a transfer it takes the memory, and
 * gives it back when the transfer has ended. What was registered stays so while there is room
 * (Firehose, for local memory: src/pin); what gives way is what was given back first.
 *
 * Any thread may call. Taking memory that is registered, and giving it back, takes no lock. The
 * provider's functions are called with a lock held, one at a time.
 */
#ifndef FABRIC_REGISTRATION_H
#define FABRIC_REGISTRATION_H

#include "pin/pin.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct registration_provider {
    /* add() registers memory, so that the network may move it, and writes its handle, which is not
     * 0, and the key that transfers name; 0 or a negative errno. Ranges may overlap. */
    int (*add)(void *provider, void *start, size_t length, uint64_t *handle, uint64_t *key);
    void (*remove)(void *provider, uint64_t handle);
};

struct registration_limits {
    size_t page;    /* a power of two */
    size_t longest; /* bytes of one registration, a multiple of the page */
    unsigned most;  /* registrations at a time */
};

/* Memory that was taken. The fabric reads the first three fields; `internal` stays where it is. */
struct registration_use {
    uint64_t key, handle;
    char *start; /* of the registered range, to which a provider's offsets are relative */
    struct {
        struct pin_entry *entry; /* NULL: `request` has it */
        uint32_t generation;
        struct pin_request request;
    } internal;
};

struct registrations;

int registrations_open(const struct registration_limits *limits,
                       const struct registration_provider *provider, void *context,
                       struct registrations **registrations);
/* registrations_close() removes all registrations; none may be in use. */
void registrations_close(struct registrations *r);

/* registration_take() makes sure that a range is registered.
 *   -EAGAIN    all registrations are in use, or one of this range is that must go first: try again
 *              after a transfer has ended; -EMSGSIZE  longer than a registration: cut the transfer;
 *   -EINVAL    the range is empty or wraps; -ENOMEM, or what the provider's add() gave */
int registration_take(struct registrations *r, const void *start, size_t length,
                      struct registration_use *use);
void registration_give(struct registrations *r, struct registration_use *use);

/* registration_forget() notes that memory is gone, or about to go: what was registered of it is
 * used for no transfer that begins later, and removed when the last one that uses it has ended. */
int registration_forget(struct registrations *r, const void *start, size_t length);

#endif
