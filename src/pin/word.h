/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The word of an entry. Threads exchange it atomically to take a unit (a hit), to give it back (a
 * release) and to evict it, without a lock.
 *
 *     63          33   32   31           0
 *     | generation | HIT | uses          |
 *
 * While HIT is set, any thread may add a use (word_take) or give one back (word_drop), and the
 * holder of the lock may clear HIT if there is no use (word_seize) or in spite of uses (word_shut).
 * While HIT is clear only the holder of the lock changes the word. The holder raises the
 * generation, with HIT clear, when the entry gets another identity (node and range): so a thread
 * whose word_take() succeeds has read the identity that belongs to the word that it exchanged.
 *
 * README.md has the proof. A test replaces the PIN_ macros and runs this file on a model of memory,
 * so every access to memory that threads share must go through these macros.
 */
#ifndef PIN_WORD_H
#define PIN_WORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef PIN_LOAD
#define PIN_LOAD(at, order) atomic_load_explicit(at, memory_order_##order)
#define PIN_STORE(at, value, order) atomic_store_explicit(at, value, memory_order_##order)
/* PIN_CAS() replaces *at by `value` if it equals *seen, else it stores *at in *seen. `order` is the
 * memory order of success. */
#define PIN_CAS(at, seen, value, order)                                                            \
    atomic_compare_exchange_strong_explicit(at, seen, value, memory_order_##order,                 \
                                            memory_order_relaxed)
#endif

#define WORD_USES UINT64_C(0xffffffff)
#define WORD_HIT (UINT64_C(1) << 32)
#define WORD_GENERATION (UINT64_C(1) << 33)

/* The identity of an entry (node and range), its word, and the time at which it was last given
 * back. Threads may read all of it at any time. */
struct pin_word {
    _Atomic uint64_t word;
    _Atomic uint64_t addr, len;
    _Atomic uint64_t stamp; /* the epoch in which a thread last gave the entry back */
    _Atomic uint32_t node;
};

enum word_drop { WORD_DROPPED, WORD_SLOW, WORD_STALE };

static inline uint32_t word_uses(uint64_t word)
{
    return (uint32_t)(word & WORD_USES);
}

static inline uint32_t word_generation(uint64_t word)
{
    return (uint32_t)(word >> 33);
}

/* word_take() adds a use if HIT is set and the entry covers the range on `node`. It stores the
 * generation, which the release must name. False: the caller tries another entry, or takes the
 * lock. */
static inline bool word_take(struct pin_word *e, uint32_t node, uint64_t addr, uint64_t len,
                             uint32_t *generation)
{
    for (;;) {
        uint64_t seen = PIN_LOAD(&e->word, acquire);
        if (!(seen & WORD_HIT) || word_uses(seen) == WORD_USES) {
            return false;
        }
        uint64_t at = PIN_LOAD(&e->addr, relaxed), have = PIN_LOAD(&e->len, relaxed);
        if (PIN_LOAD(&e->node, relaxed) != node || addr < at || addr - at > have ||
            len > have - (addr - at)) {
            return false;
        }
        uint64_t want = seen + 1;
        if (PIN_CAS(&e->word, &seen, want, acq_rel)) {
            *generation = word_generation(want);
            return true;
        }
    }
}

/* word_drop() gives back a use that was taken in `generation`. If it was the last use the stamp
 * becomes *epoch. WORD_SLOW: HIT is clear, so the caller must take the lock; WORD_STALE: the entry
 * has no use of that generation. */
static inline enum word_drop word_drop(struct pin_word *e, uint32_t generation,
                                       _Atomic uint64_t *epoch)
{
    uint64_t seen = PIN_LOAD(&e->word, relaxed);
    for (;;) {
        if (word_generation(seen) != generation || word_uses(seen) == 0) {
            return WORD_STALE;
        }
        if (!(seen & WORD_HIT)) {
            return WORD_SLOW;
        }
        if (word_uses(seen) == 1) {
            PIN_STORE(&e->stamp, PIN_LOAD(epoch, relaxed), relaxed);
        }
        if (PIN_CAS(&e->word, &seen, seen - 1, release)) {
            return WORD_DROPPED;
        }
    }
}

/* word_seize() clears HIT if there is no use: from then on only the holder of the lock changes the
 * entry. False: there is a use, or HIT is clear. */
static inline bool word_seize(struct pin_word *e)
{
    uint64_t seen = PIN_LOAD(&e->word, relaxed);
    while ((seen & WORD_HIT) && word_uses(seen) == 0) {
        if (PIN_CAS(&e->word, &seen, seen & ~WORD_HIT, acquire)) {
            return true;
        }
    }
    return false;
}

/* word_shut() clears HIT and returns how many uses there are. Their releases need the lock. */
static inline uint32_t word_shut(struct pin_word *e)
{
    uint64_t seen = PIN_LOAD(&e->word, relaxed);
    while (!PIN_CAS(&e->word, &seen, seen & ~WORD_HIT, acquire)) {
    }
    return word_uses(seen);
}

/* word_open() sets HIT, after which all threads may use the unit without the lock; the caller holds
 * the lock, and the unit is pinned. */
static inline void word_open(struct pin_word *e)
{
    PIN_STORE(&e->word, PIN_LOAD(&e->word, relaxed) | WORD_HIT, release);
}

/* word_use() adds a use, or gives one back, and returns how many there are then. The caller holds
 * the lock; HIT may be set or clear. The lock orders the call with all changes of what is pinned,
 * so the exchange needs no order of its own. */
static inline uint32_t word_use(struct pin_word *e, int by)
{
    uint64_t seen = PIN_LOAD(&e->word, relaxed);
    while (!PIN_CAS(&e->word, &seen, by > 0 ? seen + 1 : seen - 1, relaxed)) {
    }
    return word_uses(seen) + (uint32_t)by;
}

/* word_name() gives an entry without uses, whose HIT is clear, another identity. The caller holds
 * the lock. */
static inline void word_name(struct pin_word *e, uint32_t node, uint64_t addr, uint64_t len)
{
    uint64_t seen = PIN_LOAD(&e->word, relaxed);
    PIN_STORE(&e->word, (seen & ~(WORD_USES | WORD_HIT)) + WORD_GENERATION, relaxed);
    PIN_STORE(&e->addr, addr, relaxed);
    PIN_STORE(&e->len, len, relaxed);
    PIN_STORE(&e->node, node, relaxed);
}

#endif
