/* SPDX-License-Identifier: BSD-3-Clause */
/* The registration cache: the lock and the provider round the engine of src/pin. A registration is
 * a region of a table of one node; its handle in the engine is what the provider gave. */
#include "fabric/registration/registration.h"

#include "base/mutex.h"

#include <stdlib.h>
#include <string.h>

struct registrations {
    struct registration_provider provider;
    void *context;
    struct pin *pin;
    struct mutex lock;
};

/* What the engine keeps with a region. */
struct registered {
    uint64_t handle, key;
};
_Static_assert(sizeof(struct registered) <= PIN_HANDLE, "a registration is a handle");

int registrations_open(const struct registration_limits *limits,
                       const struct registration_provider *provider, void *context,
                       struct registrations **registrations)
{
    struct pin_config config = {.nodes = 1,
                                .regions = true,
                                .page = limits->page,
                                .region_most = limits->longest,
                                .victims = limits->most,
                                .da_limit = 1};
    struct registrations *r = calloc(1, sizeof(*r));
    if (r == NULL) {
        return -ENOMEM;
    }
    r->provider = *provider;
    r->context = context;
    int rc = pin_open(&config, &r->pin);
    if (rc != 0) {
        free(r);
        return rc;
    }
    *registrations = r;
    return 0;
}

static void remove_range(struct registrations *r, const struct pin_range *range)
{
    struct registered is;
    memcpy(&is, range->handle, sizeof(is));
    r->provider.remove(r->context, is.handle);
}

void registrations_close(struct registrations *r)
{
    struct pin_range range;
    while (pin_drain(r->pin, &range)) {
        remove_range(r, &range);
    }
    pin_close(r->pin);
    free(r);
}

/* Removes registrations of memory that is gone and that nobody uses any more. The caller has the
 * lock. */
static void remove_gone(struct registrations *r)
{
    struct pin_range range;
    struct pin_entry *unit;
    while ((unit = pin_gone_next(r->pin, &range)) != NULL) {
        remove_range(r, &range);
        pin_gone(r->pin, unit);
    }
}

/* Does what the engine has decided: removes what gives way, then adds. The caller has the lock. */
static int exchange(struct registrations *r, struct pin_request *request)
{
    struct pin_range ranges[2], *pins; /* in the region variant a request is one region */
    struct list ended;
    int rc = 0;
    list_init(&ended);
    uint32_t unpins = pin_unpins(request, ranges);
    for (uint32_t i = 0; i < unpins; i++) {
        remove_range(r, &ranges[i]);
    }
    pins = &ranges[unpins];
    uint32_t count = pin_pins(request, pins);
    if (count > 0) {
        struct registered is = {0};
        rc = r->provider.add(r->context, (void *)(uintptr_t)pins->addr, pins->len, &is.handle,
                             &is.key);
        memcpy(pins->handle, &is, sizeof(is));
    }
    pin_finish(r->pin, 0, request->token, rc, pins, count, &ended);
    return rc;
}

static void tell(struct registration_use *use, const struct pin_entry *entry)
{
    struct pin_range range;
    struct registered is;
    pin_entry_range(entry, &range);
    memcpy(&is, range.handle, sizeof(is));
    use->key = is.key;
    use->handle = is.handle;
    use->start = (char *)(uintptr_t)range.addr;
}

int registration_take(struct registrations *r, const void *start, size_t length,
                      struct registration_use *use)
{
    struct pin_request *request = &use->internal.request;
    uint64_t addr = (uintptr_t)start;
    use->internal.entry =
        length > 0 ? pin_take(r->pin, 0, addr, length, &use->internal.generation) : NULL;
    if (use->internal.entry != NULL) {
        tell(use, use->internal.entry);
        return 0;
    }
    mutex_take(&r->lock);
    remove_gone(r);
    int rc = pin_begin(r->pin, request, 0, addr, length);
    if (rc == PIN_SENT) {
        rc = exchange(r, request);
    } else if (rc > PIN_DONE) {
        /* a registration changes with the lock held, so nothing is under way that would end by
         * itself: only the end of a transfer helps */
        pin_cancel(r->pin, request);
        rc = -EAGAIN;
    }
    if (rc == 0) {
        tell(use, request->uses[0].entry);
    }
    mutex_give(&r->lock);
    return rc;
}

void registration_give(struct registrations *r, struct registration_use *use)
{
    struct pin_entry *entry = use->internal.entry;
    int error;
    if (entry != NULL && pin_drop(r->pin, entry, use->internal.generation, &error)) {
        return;
    }
    mutex_take(&r->lock);
    if (entry != NULL) {
        pin_drop_locked(r->pin, entry, use->internal.generation);
    } else {
        pin_release(r->pin, &use->internal.request);
    }
    remove_gone(r);
    mutex_give(&r->lock);
}

int registration_forget(struct registrations *r, const void *start, size_t length)
{
    uint64_t when;
    mutex_take(&r->lock);
    int rc = pin_forget(r->pin, (uintptr_t)start, length, false, &when);
    remove_gone(r);
    mutex_give(&r->lock);
    return rc;
}
