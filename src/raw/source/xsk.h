/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * AF_XDP for one queue of an interface: memory for frames in slots, four kinds of rings that this
 * process and the kernel share, a socket for each execution context.
 *
 *      free slots ──fill──► kernel ──rx of a context──► frames ──► free slots, or
 *                                                             └──tx──► kernel ──completion──► free
 *
 * Invariant: a slot is in exactly one place: free, in the fill ring, in an rx ring, with the
 * caller, in the tx ring, in the completion ring. There are more slots than the rings of receivers
 * hold, so that a context whose ring is full takes no slot from the fill ring of the others.
 */
#ifndef RAW_XSK_H
#define RAW_XSK_H

#include <linux/if_xdp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raw/source/source.h"

enum { XSK_SLOT = 4096, XSK_RX = 512, XSK_TX = 512, XSK_FILL = 1024 };
enum { XSK_PIECES = RAW_BATCH + 32 }; /* descriptors at once; no frame has more than 18 */

/* Younger than the headers of Debian 12. */
#ifndef XDP_USE_SG
#define XDP_USE_SG (1 << 4)
#endif
#ifndef XDP_PKT_CONTD
#define XDP_PKT_CONTD (1 << 0)
#endif

struct xsk_ring {
    _Atomic uint32_t *producer, *consumer, *flags;
    void *entries;
    uint32_t size, at; /* `at`: the next entry of this process */
    void *mapping;
    size_t mapping_length;
};

struct xsk_queue {
    int fd[RAW_CONTEXTS]; /* the first has the memory, the fill and completion rings and sends */
    struct xsk_ring rx[RAW_CONTEXTS], tx, fill, completion;
    unsigned contexts;
    bool zero_copy, pieces; /* pieces: a frame may take several slots */
    uint8_t *memory;
    size_t memory_length;
    uint64_t *free;
    unsigned free_count, slots;
    unsigned unsent; /* frames in the tx ring that the kernel was not told of */
};

/* xsk_open() opens the sockets and binds them; with `pieces`, frames that are longer than a slot
 * come in several. -errno, and xsk_close() is to be called all the same. */
int xsk_open(struct xsk_queue *q, unsigned ifindex, unsigned queue, unsigned contexts, bool pieces);
void xsk_close(struct xsk_queue *q);

/* xsk_receive() takes up to `most` whole frames of a context and returns the number of their
 * pieces; all but the last piece of a frame have XDP_PKT_CONTD. xsk_free() gives a slot back. */
unsigned xsk_receive(struct xsk_queue *q, unsigned context, struct xdp_desc pieces[XSK_PIECES],
                     unsigned most);
void xsk_free(struct xsk_queue *q, uint64_t address);

/* xsk_take() takes a free slot and returns an address in it; false: none is free. xsk_send() sends
 * what is in a slot, which then is the kernel's; false: the ring is full, and the slot stays the
 * caller's. */
bool xsk_take(struct xsk_queue *q, uint64_t *address);
bool xsk_send(struct xsk_queue *q, uint64_t address, uint32_t length);

/* xsk_send_copy() sends a copy of a frame, in as many slots as it needs; false: they are not there.
 */
bool xsk_send_copy(struct xsk_queue *q, const uint8_t *frame, uint32_t length);

/* xsk_lost() returns how many frames of a context the kernel found no room for. */
uint64_t xsk_lost(const struct xsk_queue *q, unsigned context);

/* xsk_refill() takes back what was sent and gives the kernel free slots; xsk_flush() tells it to
 * send. */
void xsk_refill(struct xsk_queue *q);
void xsk_flush(struct xsk_queue *q);

#endif
