/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that processes of one host map. Its owner hands it over, its peers load from it and store
 * to it.
 *
 *      owner                                            peer
 *      memory_take(): room, sealed memfd                first operation with the key
 *      host_open(): socket, thread, life                  │
 *           ◄──────── {token, match bits} ────────────────┘   both look at the other's uid
 *           ───────── memory, life (SCM_RIGHTS) ─────────►    mapped, both descriptors closed
 *
 * - H1 A memfd is sealed against shrinking before it is handed over, and all of its pages are
 *   taken: no access to it can fail.
 * - H2 `registered` is cleared before the region's entries are unlinked, and never set again: a
 *   peer that finds it clear asks the NIC, which knows.
 * - H3 The life's word is the owner's thread while its process is there. The kernel changes it when
 *   that thread dies, however it does (robust futexes); closing clears it.
 * - H4 Nothing of all this has a name in a file system: sockets, memory and life end with the last
 *   process that has them.
 * - H5 (order) An atomic operation is direct only if all those that went to the same region by
 *   messages are over: `away` counts these, after `issued` was raised.
 */
#ifndef RMA_SHARE_H
#define RMA_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHARE_PAGE = 4096 };
enum { HAND_OVER_MS = 1000 }; /* an owner that does not answer by then is not asked again */

/* The last page of a region's memfd. */
struct control {
    _Atomic uint32_t registered;
};

/* A page of its own for each struct pw_rma that has such memory. */
struct life {
    _Atomic uint32_t thread;
};

/* ---- memory.c ---- */

struct memory {
    char *start;
    size_t length;           /* that was asked for */
    size_t mapped;           /* bytes of the mapping */
    struct control *control; /* NULL: no peer can map it */
    int fd;                  /* -1: the same */
};

/* memory_take() takes memory, zeroed, all of its pages. 0 or -ENOMEM. */
int memory_take(struct memory *m, size_t length);
void memory_free(struct memory *m);
size_t memory_size(size_t length); /* bytes of a memfd that holds so many */

/* ---- room.c ---- */

/* room_check() finds out whether so many bytes may be taken: MemAvailable, and what each cgroup
 * over this process has left. 0 or -ENOMEM. room_enter() keeps other processes of the host from
 * looking until room_leave() is called with what it returned. */
int room_check(uint64_t bytes);
int room_enter(void);
void room_leave(int ticket);

/* What they read, under other folders than "/proc" and "/sys/fs/cgroup". */
uint64_t room_in(const char *proc, const char *cgroups);

/* ---- handed.c: what goes over the socket ---- */

enum { ASK_BYTES = 32, ANSWER_BYTES = 24 };

struct ask {
    uint64_t incarnation, token, bits;
};

struct answer {
    int32_t code; /* 0 or a negative errno; with 0 two descriptors come: memory and life */
    uint32_t access;
    uint64_t length;
};

void ask_write(unsigned char *bytes, const struct ask *ask);
void answer_write(unsigned char *bytes, const struct answer *answer);
bool ask_read(const unsigned char *bytes, size_t size, struct ask *ask);
bool answer_read(const unsigned char *bytes, size_t size, struct answer *answer);

/* ---- host.c, meet.c ---- */

struct pw_rma;
struct pw_rma_key;

/* host_open() begins to hand memory over, if this has not happened; 0 or a negative errno. The
 * caller has rma->lock. host_close() ends it. */
struct host;
int host_open(struct pw_rma *rma);
void host_close(struct pw_rma *rma);

/* The name of the socket of an incarnation, and its length. */
struct sockaddr_un;
uint32_t host_name(struct sockaddr_un *name, uint64_t incarnation);

/* meet_owner() asks a key's owner for its memory, and maps it: 0, or a negative errno that says why
 * operations go by messages. meet_leave() ends that; the caller has rma->lock. */
int meet_owner(struct pw_rma_key *key);
void meet_leave(struct pw_rma_key *key);

/* meet_whole() maps all of a region that is mapped in buckets, for the user to have: `handed`. */
int meet_whole(struct pw_rma_key *key);

/* Ends what all keys of a peer share. */
struct pw_rma_peer;
void meet_end(struct pw_rma_peer *peer);

#endif
