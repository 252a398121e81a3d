/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Windows of MPI over libpinwheel-rma: what the files of the library share. A program's window is a
 * genuine handle of its MPI, of a window without memory on MPI_COMM_SELF, so that names, attributes
 * and error handlers stay the MPI's. The library finds its own struct window by that handle.
 *
 *      program ──► MPI_Put (entries_*.c) ──► handle.c: ours? ──no──► the MPI's (real.c)
 *                                               │ yes
 *                                               ▼
 *      epoch.c, lock.c ──► carry.c ──► libpinwheel-rma ◄── move.c, combine.c ◄── types.c
 *                 (sync.h)                  ▲
 *                                   job.c, create.c, dynamic.c, shared.c
 *
 * - W1 A process has one interface and one struct pw_rma for all windows (job.c). What others need
 *   of a window is in its *slot*, at the same place in each process's control region: its words of
 *   synchronisation and the key of its memory. So a window has no table of its ranks; who talks to
 *   a rank first reads that rank's slot (struct target).
 * - W2 A slot that is free holds zeros. Its window's ranks agree on it, and give it back after a
 *   fence of all, so that no message for it is under way; never after one that failed.
 * - W3 All that a window's ranks decide together, its path above all, they agree upon over the
 *   communicator that it is made of, before any of them leaves the call.
 * - W4 Locks are taken in this order: window->acquire, window->lock, job.notes_lock, job.lock.
 */
#ifndef MPI_RMA_WINDOW_H
#define MPI_RMA_WINDOW_H

#include "pinwheel_notify.h"
#include "pinwheel_rma.h"
#include "sync.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- The MPI's own calls (real.c) ---- */

#define RMA_CALLS(X)                                                                               \
    X(Accumulate)                                                                                  \
    X(Compare_and_swap)                                                                            \
    X(Fetch_and_op)                                                                                \
    X(Get)                                                                                         \
    X(Get_accumulate)                                                                              \
    X(Put)                                                                                         \
    X(Raccumulate)                                                                                 \
    X(Rget)                                                                                        \
    X(Rget_accumulate)                                                                             \
    X(Rput)                                                                                        \
    X(Win_allocate)                                                                                \
    X(Win_allocate_shared)                                                                         \
    X(Win_attach)                                                                                  \
    X(Win_complete)                                                                                \
    X(Win_create)                                                                                  \
    X(Win_create_dynamic)                                                                          \
    X(Win_detach)                                                                                  \
    X(Win_fence)                                                                                   \
    X(Win_flush)                                                                                   \
    X(Win_flush_all)                                                                               \
    X(Win_flush_local)                                                                             \
    X(Win_flush_local_all)                                                                         \
    X(Win_free)                                                                                    \
    X(Win_get_attr)                                                                                \
    X(Win_get_group)                                                                               \
    X(Win_get_info)                                                                                \
    X(Win_lock)                                                                                    \
    X(Win_lock_all)                                                                                \
    X(Win_post)                                                                                    \
    X(Win_set_info)                                                                                \
    X(Win_shared_query)                                                                            \
    X(Win_start)                                                                                   \
    X(Win_sync)                                                                                    \
    X(Win_test)                                                                                    \
    X(Win_unlock)                                                                                  \
    X(Win_unlock_all)                                                                              \
    X(Win_wait)                                                                                    \
    X(Request_get_status)                                                                          \
    X(Test)                                                                                        \
    X(Testall)                                                                                     \
    X(Testany)                                                                                     \
    X(Testsome)                                                                                    \
    X(Wait)                                                                                        \
    X(Waitall)                                                                                     \
    X(Waitany)                                                                                     \
    X(Waitsome)

#ifdef MPI_RMA_LARGE
#define RMA_CALLS_LARGE(X)                                                                         \
    X(Accumulate_c)                                                                                \
    X(Get_accumulate_c)                                                                            \
    X(Get_c)                                                                                       \
    X(Put_c)                                                                                       \
    X(Raccumulate_c)                                                                               \
    X(Rget_accumulate_c)                                                                           \
    X(Rget_c)                                                                                      \
    X(Rput_c)                                                                                      \
    X(Win_allocate_c)                                                                              \
    X(Win_allocate_shared_c)                                                                       \
    X(Win_create_c)                                                                                \
    X(Win_shared_query_c)
#else
#define RMA_CALLS_LARGE(X)
#endif

#define REAL_CALL(name) __typeof__(PMPI_##name) *name;
extern struct real {
    RMA_CALLS(REAL_CALL)
    RMA_CALLS_LARGE(REAL_CALL)
} real;

/* The program's MPI is not the one that this library is for. */
extern bool real_foreign;

/* Calls of one-sided communication that were handed to the MPI, for windows that are not ours. */
extern _Atomic uint64_t real_calls;

/* A call of the MPI's: real.NAME, counted. */
#define REAL(name, ...) (atomic_fetch_add(&real_calls, 1), real.name(__VA_ARGS__))

/* Defines MPI_NAME as the PMPI_NAME that precedes it in the file. */
#define ALSO_MPI(name)                                                                             \
    extern __typeof__(PMPI_##name) MPI_##name __attribute__((alias("PMPI_" #name)))

/* Labelled points, at which the kill tests end or stop a rank (tests/mpi_windows/kill.c). */
#ifdef PINWHEEL_KILL_POINTS
void kill_point(const char *label);
#define KILL_POINT(label) kill_point(label)
#else
#define KILL_POINT(label) ((void)0)
#endif

/* ---- The process's part in all windows (job.c) ---- */

enum { SLOT_BITS = 13, SLOTS = 1 << SLOT_BITS, SLOT_MASK = SLOTS / 64 };

/* Why windows are the MPI's. The largest number of a window's ranks is told. */
enum reason {
    REASON_NONE,
    REASON_WANTED,    /* PINWHEEL_RMA_PATH=mpi */
    REASON_HOSTS,     /* shared memory, and ranks on several hosts */
    REASON_INTERFACE, /* no interface of Portals */
    REASON_REGION,    /* memory was not taken */
    REASON_SLOTS,     /* too many windows */
    REASON_MEMORY,
    REASON_HANDLE, /* the MPI gave no handle */
    REASON_ROOM,   /* memory for an allocated window: nobody can make that */
    REASONS
};
extern const char *const reason_text[REASONS];

/* What others must know of a process: sent to all as it is. */
struct card {
    uint32_t nid, pid;
    uint64_t host; /* processes with the same one share memory */
    uint32_t reason;
    unsigned char key[PW_RMA_KEY]; /* of its control region */
};

struct peer {
    struct card card;
    struct pw_rma_key *_Atomic control; /* NULL until it is used */
};

/* The ranks of a communicator; all communicators of the same ranks share it. */
struct ranks {
    unsigned users; /* windows and communicators */
    struct ranks *next;
    uint32_t size, rank;
    enum reason reason; /* REASON_NONE: all can take part */
    bool one_host;
    struct peer **peers; /* of each rank */
    /* ranks by the number of their process: a hash table of 1 + rank, 0 is free */
    uint32_t *by_process, by_process_room;
};

/* What other ranks read and change of a rank's window; the same in all processes. */
struct slot {
    uint64_t shared[SYNC_SHARED];
    uint64_t came[SYNC_ROUNDS]; /* creation: not zero when the words of the round are there */
    uint64_t words[SYNC_ROUNDS][SYNC_WORDS];
    uint64_t base, length, disp_unit;
    uint64_t version; /* of a dynamic window's list; odd while it changes */
    uint64_t regions;
    unsigned char key[PW_RMA_KEY]; /* of the memory; of a dynamic window of its list */
};

extern struct job {
    bool open;
    ptl_handle_ni_t ni;
    ptl_handle_eq_t eq; /* without events: asking it makes progress */
    struct pw_rma *rma;
    struct card card;
    struct slot *slots;
    struct pw_rma_region *control;
    struct pw_notify *notes;
    struct window *_Atomic windows[SLOTS];
    uint64_t free_slots[SLOT_MASK];
    pthread_mutex_t lock;
    pthread_mutex_t notes_lock; /* of `notes` and of the lists of all engines (pscw.c) */
} job;

/* job_ranks() gives the ranks of a communicator, after its processes have opened what they need:
 * collective over it. A class of errors of MPI. */
int job_ranks(MPI_Comm comm, struct ranks **ranks);
void ranks_drop(struct ranks *r);

/* The rank of a process; UINT32_MAX: it has none. */
uint32_t ranks_find(const struct ranks *r, uint32_t nid, uint32_t pid);

/* peer_control() opens the key of a peer's control region; NULL: no memory. */
struct pw_rma_key *peer_control(struct peer *peer);

/* slot_agree() takes a slot that is free in all processes of a communicator, which also agree on
 * the largest reason. Collective. A class of errors of MPI. */
int slot_agree(MPI_Comm comm, enum reason *reason, uint32_t *slot);
void slot_give_back(uint32_t slot);

/* A wait that goes on: makes progress here and in the MPI, and yields the core after a while. */
struct idle {
    uint32_t turns;
};
void job_idle(struct idle *i);

/* Who waits for a call of the engine, and since when it asks (watch.c). */
struct watch {
    uint32_t turns, next; /* of those that are waited for */
    int64_t ask_ms;       /* when it asks again; 0: it has not begun */
};

/* The tag of a note (sync.h) to a window's slot. */
static inline uint32_t note_tag(uint32_t slot, enum sync_note note)
{
    return slot | (uint32_t)note << SLOT_BITS;
}

/* Takes notes of any window to the lists of its engines. */
void job_take_notes(void);

/* ---- Windows ---- */

enum lock_kind { UNLOCKED, LOCK_SHARED, LOCK_EXCLUSIVE, LOCK_NOCHECK };

/* A rank that this process talks to, or has locked. */
struct target {
    uint32_t rank;
    enum lock_kind locked;
    bool started; /* it is in the group of the access epoch */
    struct pw_rma_key *key;
    struct pw_rma_peer *peer;
    uint64_t length, disp_unit;
    /* of a dynamic window: its regions when this process looked last */
    uint64_t version;
    struct piece {
        uint64_t base, length;
        struct pw_rma_key *key;
    } * pieces;
    uint32_t piece_count;
};

struct targets {
    uint32_t room; /* power of two */
    struct targets *older;
    struct target *_Atomic at[];
};

struct window {
    MPI_Win handle;
    int unit; /* disp_unit, as the attribute has it */
    int flavor, model;
    enum pw_rma_path limit; /* the best path that operations may take */
    struct ranks *ranks;
    uint32_t slot_number;
    struct slot *slot;
    void *base;
    MPI_Aint size;
    MPI_Aint disp_unit;
    struct targets *_Atomic targets;
    pthread_mutex_t lock;    /* of the targets and what is below */
    pthread_mutex_t acquire; /* held while a call of `sync` is in progress */
    struct sync sync;        /* fence, start, complete, locks */
    struct sync exposure;    /* post, wait, test: another thread may make these meanwhile */
    bool starting;    /* `sync` goes through the list of posts, which job.notes_lock guards */
    uint32_t suspect; /* 0, or 1 + a rank that has posted unchecked (watch.c); by job.lock */
    bool answered;
    uint64_t answer;     /* of the operation that `sync` has asked for */
    uint64_t pause;      /* turns that `sync` wants to wait for */
    struct watch tested; /* of calls of MPI_Win_test() that found the exposure epoch open */
    /* epochs */
    bool fenced, fence_used;          /* a fence has begun an epoch; with an operation */
    bool all_locked, all_checked;     /* all_checked: without MPI_MODE_NOCHECK */
    uint32_t *started, started_count; /* the group of the access epoch, NULL: there is none */
    bool exposed;
    uint32_t *exposed_to; /* the group of the exposure epoch */
    uint32_t locks;       /* targets that are locked */
    uint32_t exclusives;
    /* of the program's */
    MPI_Group group;
    MPI_Info info;
    /* memory of ours */
    struct pw_rma_region *region;
    struct shared *shared;
    struct dynamic *dynamic;
    /* counted for PINWHEEL_RMA_STATS */
    _Atomic uint64_t puts, gets, atomics;
};

/* handle.c */
struct window *window_of(MPI_Win handle);
int handle_add(MPI_Win handle, struct window *w);
void handle_remove(MPI_Win handle);

/* window_target() finds a target, or makes it by reading its slot; 0 or a class of errors. */
int window_target(struct window *w, uint32_t rank, struct target **target);
/* The same without its memory: for locks. */
struct target *target_made(struct window *w, uint32_t rank);
struct target *target_find(struct window *w, uint32_t rank);

/* create.c. window_register() lets others access memory in all ways that they can;
 * window_unregister() waits until nobody does, and takes NULL. window_end() frees what a window has
 * in this process. */
int window_register(void *start, size_t length, struct pw_rma_region **region);
void window_unregister(struct pw_rma_region *region);
void window_end(struct window *w);

/* carry.c: what the engine asks for, over libpinwheel-rma. carry_wait() waits until the call in
 * progress is over; 0 or a negative errno. */
extern const struct sync_ops carry_ops;
int carry_wait(struct window *w, struct sync *s);

/* watch.c: a turn of a call that waits: now and then those that it waits for are asked whether they
 * still are. watch_ended() notes that a rank has ended (S5) in all windows of its process;
 * watch_rank() gives it, or UINT32_MAX. watch_flush() flushes to a rank, and notes if that finds
 * that it has ended. watch_leave() forgets a window, and with NULL frees all that is over. */
void watch_turn(struct window *w, const struct sync *s, struct watch *t);
void watch_ended(const struct window *w, uint32_t rank);
int watch_flush(const struct window *w, struct pw_rma_peer *peer, uint32_t rank);
uint32_t watch_rank(const struct window *w);
void watch_leave(const struct window *w);

/* Where a word is in a rank's control region. */
uint64_t place_of_word(const struct window *w, enum sync_word word);

/* error.c: an error of a call on a window; through the window's error handler. Returns the class.
 */
int window_error(struct window *w, int class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int comm_error(MPI_Comm comm, int class, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* What a negative errno of libpinwheel-rma means. */
int class_of(int code);

/* epoch.c: 0, or a class of errors that was told: no epoch lets this process access the rank. */
int epoch_check(struct window *w, const char *call, int rank);

#endif
