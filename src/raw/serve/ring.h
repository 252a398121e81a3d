/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings by which the owner of an interface hands frames to one user and takes his: memory that
 * these two share, and nobody else.
 *
 *      owner ──frames──► down: slot, slot ... ──► user      the owner counts `filled`, the user
 * `taken` ◄──frames── up:   slot, slot ... ◄──           the user counts `given`, the owner `sent`
 *
 * The memory is a memfd whose size is sealed, so that no access of the owner can fault. All of it
 * can be written by the user, so the owner believes nothing in it:
 *
 *  - Where the owner is in each ring, where slots are and how long they are, he keeps for himself.
 *    What he writes into the memory he never reads again.
 *  - He reads a count of the user once, and takes a distance that cannot be for "full" or "empty":
 *    the user loses frames of his own.
 *  - He reads a length once, bounds it, copies the bytes out, and checks the copy.
 *
 * The user trusts the owner, but for lengths.
 */
#ifndef RAW_SERVE_RING_H
#define RAW_SERVE_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RING_PAGE = 4096, RING_SLOT_HEAD = 16 };

/* The first two pages: who writes what. */
struct ring_shared {
    /* the owner */
    _Alignas(64) _Atomic uint32_t filled;
    _Atomic uint64_t lost; /* frames for the user that found no room, here or in the kernel */
    _Alignas(64) _Atomic uint32_t sent;
    _Atomic uint32_t owner_sleeps; /* the user clears it, and rings */
    /* the user */
    _Alignas(RING_PAGE) _Atomic uint32_t taken;
    _Atomic uint32_t user_sleeps; /* the owner clears it, and rings */
    _Alignas(64) _Atomic uint32_t given;
};

struct ring_slot {
    uint32_t length;
    int32_t verdict; /* down: the set and whether it ends, as rules.h */
    uint64_t time;
    uint8_t bytes[];
};

/* One side's view. */
struct ring {
    int fd;
    struct ring_shared *shared;
    uint8_t *down, *up;
    size_t length;          /* of the memory */
    uint32_t slots, stride; /* a power of two; bytes from slot to slot */
    uint32_t most;          /* bytes of the longest frame */
    uint32_t at_down, at_up;
    uint32_t seen; /* owner: what the user last had taken; user: frames received and not done */
};

/* ring_length() returns the bytes of the memory, 0 if the values cannot be. */
size_t ring_length(uint32_t slots, uint32_t most);

/* ring_make() makes the memory; ring_map() maps that of a descriptor, which becomes the ring's, if
 * it has the length that it must have. 0 or -errno. ring_close() ends both. */
int ring_make(struct ring *r, uint32_t slots, uint32_t most);
int ring_map(struct ring *r, int fd, uint32_t slots, uint32_t most);
void ring_close(struct ring *r);

/* ---- The owner's side ---- */

/* ring_put() copies a frame for the user; false: there is no room. ring_wakes() says whether the
 * user sleeps and is to be rung. */
bool ring_put(struct ring *r, const uint8_t *frame, uint32_t length, int verdict, uint64_t time);
bool ring_wakes(struct ring *r);

/* ring_waiting() returns how many frames the user has not taken, up to all slots; *moved: he has
 * taken some since the last call. *nonsense: his count cannot be. */
uint32_t ring_waiting(struct ring *r, bool *moved, bool *nonsense);

/* ring_tell() tells the user how many frames of his were lost. */
void ring_tell(struct ring *r, uint64_t lost);

/* ring_get() copies a frame of the user to memory of `most` bytes and returns its length; 0: none
 * is there; -EPROTO: his count cannot be; -EMSGSIZE: the length cannot be, and the frame is
 * gone. */
int ring_get(struct ring *r, uint8_t *to);
bool ring_has(struct ring *r); /* whether ring_get() would not return 0 */
void ring_owner_sleeps(struct ring *r, bool sleeps);

/* ---- The user's side ---- */

/* ring_next() returns the n-th slot that was received and is not done, NULL: it is not there yet.
 * ring_done() gives the first of them back. */
struct ring_slot *ring_next(struct ring *r, uint32_t n);
void ring_done(struct ring *r);

/* ring_room() returns the slot for a frame that ring_give() gives to the owner; NULL: full.
 * ring_rings() says whether he sleeps and is to be rung. */
struct ring_slot *ring_room(struct ring *r);
void ring_give(struct ring *r, uint32_t length);
bool ring_rings(struct ring *r);
void ring_user_sleeps(struct ring *r, bool sleeps);
uint64_t ring_lost(const struct ring *r);

#endif
