/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames between the owner of an interface and one user; see ring.h. */
#include "raw/serve/ring.h"

#include "raw/rules/rules.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS_LEAST = 2, SLOTS_MOST = 4096 };

_Static_assert(sizeof(struct ring_shared) == 2 * (size_t)RING_PAGE, "two pages, one of each side");
_Static_assert(sizeof(struct ring_slot) == RING_SLOT_HEAD, "the head of a slot");

static uint32_t stride_of(uint32_t most)
{
    return (RING_SLOT_HEAD + most + 63) & ~63u;
}

size_t ring_length(uint32_t slots, uint32_t most)
{
    if (slots < SLOTS_LEAST || slots > SLOTS_MOST || (slots & (slots - 1)) != 0 ||
        most < RAW_FRAME_LEAST || most > RAW_FRAME_MOST) {
        return 0;
    }
    return sizeof(struct ring_shared) + 2 * (size_t)slots * stride_of(most);
}

static struct ring_slot *slot_at(uint8_t *ring, const struct ring *r, uint32_t at)
{
    return (struct ring_slot *)(void *)(ring + (size_t)(at & (r->slots - 1)) * r->stride);
}

/* ---- Making ---- */

static int map(struct ring *r, int fd, uint32_t slots, uint32_t most, int flags)
{
    size_t length = ring_length(slots, most);
    void *memory = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED | flags, fd, 0);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    *r = (struct ring){.fd = fd,
                       .shared = memory,
                       .down = (uint8_t *)memory + sizeof(struct ring_shared),
                       .length = length,
                       .slots = slots,
                       .stride = stride_of(most),
                       .most = most};
    r->up = r->down + (size_t)slots * r->stride;
    return 0;
}

int ring_make(struct ring *r, uint32_t slots, uint32_t most)
{
    size_t length = ring_length(slots, most);
    *r = (struct ring){.fd = -1};
    if (length == 0) {
        return -EINVAL;
    }
    int fd = memfd_create("pinwheel-raw", MFD_CLOEXEC | MFD_ALLOW_SEALING), rc = 0;
    if (fd < 0) {
        return -errno;
    }
    if (ftruncate(fd, (off_t)length) != 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        rc = -errno;
    }
    rc = rc != 0 ? rc : map(r, fd, slots, most, MAP_POPULATE);
    if (rc != 0) {
        close(fd);
    }
    return rc;
}

int ring_map(struct ring *r, int fd, uint32_t slots, uint32_t most)
{
    size_t length = ring_length(slots, most);
    struct stat s;
    if (length == 0 || fstat(fd, &s) != 0 || (size_t)s.st_size != length) {
        return -EPROTO;
    }
    return map(r, fd, slots, most, 0);
}

void ring_close(struct ring *r)
{
    if (r->shared != NULL) {
        munmap(r->shared, r->length);
        close(r->fd);
    }
    *r = (struct ring){.fd = -1};
}

/* ---- The owner's side ---- */

/* How many slots of the ring down are full, by the user's count, read once. A count that cannot be
 * stands for all. */
static uint32_t used(struct ring *r, bool *nonsense)
{
    uint32_t taken = atomic_load_explicit(&r->shared->taken, memory_order_acquire);
    uint32_t n = r->at_down - taken;
    *nonsense = n > r->slots;
    return *nonsense ? r->slots : n;
}

bool ring_put(struct ring *r, const uint8_t *frame, uint32_t length, int verdict, uint64_t time)
{
    bool nonsense;
    if (length > r->most || used(r, &nonsense) == r->slots) {
        return false;
    }
    struct ring_slot *s = slot_at(r->down, r, r->at_down);
    s->length = length;
    s->verdict = verdict;
    s->time = time;
    memcpy(s->bytes, frame, length);
    atomic_store_explicit(&r->shared->filled, ++r->at_down, memory_order_release);
    return true;
}

bool ring_wakes(struct ring *r)
{
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&r->shared->user_sleeps, memory_order_relaxed) != 0 &&
           atomic_exchange_explicit(&r->shared->user_sleeps, 0, memory_order_relaxed) != 0;
}

uint32_t ring_waiting(struct ring *r, bool *moved, bool *nonsense)
{
    uint32_t n = used(r, nonsense);
    *moved = !*nonsense && r->at_down - n != r->seen;
    r->seen = *moved ? r->at_down - n : r->seen;
    return n;
}

void ring_tell(struct ring *r, uint64_t lost)
{
    atomic_store_explicit(&r->shared->lost, lost, memory_order_relaxed);
}

/* How many frames the user has given, by his count, read once; -EPROTO. */
static int given(const struct ring *r)
{
    uint32_t n = atomic_load_explicit(&r->shared->given, memory_order_acquire) - r->at_up;
    return n > r->slots ? -EPROTO : (int)n;
}

bool ring_has(struct ring *r)
{
    return given(r) > 0;
}

int ring_get(struct ring *r, uint8_t *to)
{
    int n = given(r);
    if (n <= 0) {
        return n;
    }
    struct ring_slot *s = slot_at(r->up, r, r->at_up);
    /* once: the user may write another one meanwhile */
    uint32_t length = *(volatile uint32_t *)&s->length;
    bool fits = length >= RAW_FRAME_LEAST && length <= r->most;
    if (fits) {
        memcpy(to, s->bytes, length);
    }
    atomic_store_explicit(&r->shared->sent, ++r->at_up, memory_order_release);
    return fits ? (int)length : -EMSGSIZE;
}

void ring_owner_sleeps(struct ring *r, bool sleeps)
{
    atomic_store_explicit(&r->shared->owner_sleeps, sleeps, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

/* ---- The user's side ---- */

struct ring_slot *ring_next(struct ring *r, uint32_t n)
{
    uint32_t there = atomic_load_explicit(&r->shared->filled, memory_order_acquire) - r->at_down;
    return n < there && there <= r->slots ? slot_at(r->down, r, r->at_down + n) : NULL;
}

void ring_done(struct ring *r)
{
    atomic_store_explicit(&r->shared->taken, ++r->at_down, memory_order_release);
}

struct ring_slot *ring_room(struct ring *r)
{
    uint32_t sent = atomic_load_explicit(&r->shared->sent, memory_order_acquire);
    return r->at_up - sent < r->slots ? slot_at(r->up, r, r->at_up) : NULL;
}

void ring_give(struct ring *r, uint32_t length)
{
    slot_at(r->up, r, r->at_up)->length = length;
    atomic_store_explicit(&r->shared->given, ++r->at_up, memory_order_release);
}

bool ring_rings(struct ring *r)
{
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&r->shared->owner_sleeps, memory_order_relaxed) != 0 &&
           atomic_exchange_explicit(&r->shared->owner_sleeps, 0, memory_order_relaxed) != 0;
}

void ring_user_sleeps(struct ring *r, bool sleeps)
{
    atomic_store_explicit(&r->shared->user_sleeps, sleeps, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
}

uint64_t ring_lost(const struct ring *r)
{
    return atomic_load_explicit(&r->shared->lost, memory_order_relaxed);
}
