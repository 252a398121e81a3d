/* SPDX-License-Identifier: BSD-3-Clause */
/* The rings of AF_XDP (Documentation/networking/af_xdp.rst of the kernel); see xsk.h. */
#include "raw/source/xsk.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- Rings ---- */

static int map_ring(struct xsk_ring *r, int fd, const struct xdp_ring_offset *o, uint32_t size,
                    size_t entry, off_t where)
{
    r->mapping_length = o->desc + size * entry;
    r->mapping =
        mmap(NULL, r->mapping_length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, where);
    if (r->mapping == MAP_FAILED) {
        r->mapping = NULL;
        return -errno;
    }
    char *base = r->mapping;
    r->producer = (void *)(base + o->producer);
    r->consumer = (void *)(base + o->consumer);
    r->flags = (void *)(base + o->flags);
    r->entries = base + o->desc;
    r->size = size;
    return 0;
}

/* Entries that this process may write to, of a ring that the kernel empties. */
static uint32_t room_of(const struct xsk_ring *r)
{
    return r->size - (r->at - atomic_load_explicit(r->consumer, memory_order_acquire));
}

/* Entries that the kernel has filled and this process has not taken. */
static uint32_t filled(const struct xsk_ring *r)
{
    return atomic_load_explicit(r->producer, memory_order_acquire) - r->at;
}

static bool needs_wakeup(const struct xsk_ring *r)
{
    return (atomic_load_explicit(r->flags, memory_order_relaxed) & XDP_RING_NEED_WAKEUP) != 0;
}

/* ---- Opening ---- */

static int set(int fd, int option, const void *value, socklen_t size)
{
    return setsockopt(fd, SOL_XDP, option, value, size) == 0 ? 0 : -errno;
}

static int make_memory(struct xsk_queue *q)
{
    q->slots = XSK_FILL + XSK_TX + RAW_BATCH + q->contexts * XSK_RX;
    q->memory_length = (size_t)q->slots * XSK_SLOT;
    void *memory =
        mmap(NULL, q->memory_length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        return -errno;
    }
    q->memory = memory;
    q->free = calloc(q->slots, sizeof(*q->free));
    if (q->free == NULL) {
        return -ENOMEM;
    }
    for (unsigned i = 0; i < q->slots; i++) {
        q->free[i] = (uint64_t)i * XSK_SLOT;
    }
    q->free_count = q->slots;
    struct xdp_umem_reg reg = {
        .addr = (uintptr_t)memory, .len = q->memory_length, .chunk_size = XSK_SLOT};
    return set(q->fd[0], XDP_UMEM_REG, &reg, sizeof(reg));
}

static int make_rings(struct xsk_queue *q)
{
    const int rx = XSK_RX, tx = XSK_TX, fill = XSK_FILL, completion = XSK_TX;
    struct xdp_mmap_offsets o;
    socklen_t length = sizeof(o);
    int rc = set(q->fd[0], XDP_UMEM_FILL_RING, &fill, sizeof(fill));
    rc = rc != 0 ? rc : set(q->fd[0], XDP_UMEM_COMPLETION_RING, &completion, sizeof(completion));
    rc = rc != 0 ? rc : set(q->fd[0], XDP_TX_RING, &tx, sizeof(tx));
    for (unsigned c = 0; c < q->contexts && rc == 0; c++) {
        rc = set(q->fd[c], XDP_RX_RING, &rx, sizeof(rx));
    }
    if (rc == 0 && getsockopt(q->fd[0], SOL_XDP, XDP_MMAP_OFFSETS, &o, &length) != 0) {
        rc = -errno;
    }
    if (rc != 0) {
        return rc;
    }
    rc = map_ring(&q->fill, q->fd[0], &o.fr, XSK_FILL, sizeof(uint64_t),
                  (off_t)XDP_UMEM_PGOFF_FILL_RING);
    rc = rc != 0 ? rc
                 : map_ring(&q->completion, q->fd[0], &o.cr, XSK_TX, sizeof(uint64_t),
                            (off_t)XDP_UMEM_PGOFF_COMPLETION_RING);
    rc = rc != 0 ? rc
                 : map_ring(&q->tx, q->fd[0], &o.tx, XSK_TX, sizeof(struct xdp_desc),
                            XDP_PGOFF_TX_RING);
    for (unsigned c = 0; c < q->contexts && rc == 0; c++) {
        rc = map_ring(&q->rx[c], q->fd[c], &o.rx, XSK_RX, sizeof(struct xdp_desc),
                      XDP_PGOFF_RX_RING);
    }
    return rc;
}

static int bind_all(struct xsk_queue *q, unsigned ifindex, unsigned queue)
{
    struct xdp_options options = {0};
    socklen_t length = sizeof(options);
    for (unsigned c = 0; c < q->contexts; c++) {
        struct sockaddr_xdp a = {.sxdp_family = AF_XDP,
                                 .sxdp_ifindex = ifindex,
                                 .sxdp_queue_id = queue,
                                 /* zero-copy if the driver can, else copies */
                                 .sxdp_flags = XDP_SHARED_UMEM,
                                 .sxdp_shared_umem_fd = (uint32_t)q->fd[0]};
        if (c == 0) {
            a.sxdp_flags = XDP_USE_NEED_WAKEUP | (q->pieces ? XDP_USE_SG : 0);
            a.sxdp_shared_umem_fd = 0;
        }
        if (bind(q->fd[c], (const struct sockaddr *)&a, sizeof(a)) != 0) {
            return -errno;
        }
    }
    if (getsockopt(q->fd[0], SOL_XDP, XDP_OPTIONS, &options, &length) == 0) {
        q->zero_copy = (options.flags & XDP_OPTIONS_ZEROCOPY) != 0;
    }
    return 0;
}

int xsk_open(struct xsk_queue *q, unsigned ifindex, unsigned queue, unsigned contexts, bool pieces)
{
    *q = (struct xsk_queue){.contexts = contexts, .pieces = pieces};
    for (unsigned c = 0; c < RAW_CONTEXTS; c++) {
        q->fd[c] = -1;
    }
    for (unsigned c = 0; c < contexts; c++) {
        q->fd[c] = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
        if (q->fd[c] < 0) {
            return -errno;
        }
    }
    int rc = make_memory(q);
    rc = rc != 0 ? rc : make_rings(q);
    if (rc == 0) {
        xsk_refill(q);
        rc = bind_all(q, ifindex, queue);
    }
    return rc;
}

static void unmap(struct xsk_ring *r)
{
    if (r->mapping != NULL) {
        munmap(r->mapping, r->mapping_length);
    }
}

void xsk_close(struct xsk_queue *q)
{
    unmap(&q->fill);
    unmap(&q->completion);
    unmap(&q->tx);
    for (unsigned c = 0; c < q->contexts; c++) {
        unmap(&q->rx[c]);
        if (q->fd[c] >= 0) {
            close(q->fd[c]);
        }
    }
    if (q->memory != NULL) {
        munmap(q->memory, q->memory_length);
    }
    free(q->free);
}

/* ---- Frames ---- */

void xsk_free(struct xsk_queue *q, uint64_t address)
{
    q->free[q->free_count++] = address & ~(uint64_t)(XSK_SLOT - 1);
}

bool xsk_take(struct xsk_queue *q, uint64_t *address)
{
    if (q->free_count == 0) {
        return false;
    }
    *address = q->free[--q->free_count];
    return true;
}

unsigned xsk_receive(struct xsk_queue *q, unsigned context, struct xdp_desc pieces[XSK_PIECES],
                     unsigned most)
{
    struct xsk_ring *r = &q->rx[context];
    uint32_t there = filled(r), n = 0;
    const struct xdp_desc *entries = r->entries;
    for (uint32_t i = 0; i < there && i < XSK_PIECES && most > 0; i++) {
        pieces[i] = entries[(r->at + i) & (r->size - 1)];
        if ((pieces[i].options & XDP_PKT_CONTD) == 0) {
            n = i + 1;
            most--;
        }
    }
    if (n > 0) {
        r->at += n;
        atomic_store_explicit(r->consumer, r->at, memory_order_release);
    }
    return n;
}

static void put(struct xsk_queue *q, uint64_t address, uint32_t length, uint32_t options)
{
    struct xsk_ring *r = &q->tx;
    struct xdp_desc *entries = r->entries;
    entries[r->at & (r->size - 1)] =
        (struct xdp_desc){.addr = address, .len = length, .options = options};
    r->at++;
    q->unsent++;
}

bool xsk_send(struct xsk_queue *q, uint64_t address, uint32_t length)
{
    if (room_of(&q->tx) == 0) {
        return false;
    }
    put(q, address, length, 0);
    return true;
}

bool xsk_send_copy(struct xsk_queue *q, const uint8_t *frame, uint32_t length)
{
    unsigned n = (length + XSK_SLOT - 1) / XSK_SLOT;
    if (room_of(&q->tx) < n || q->free_count < n || (n > 1 && !q->pieces)) {
        return false;
    }
    while (length > 0) {
        uint32_t piece = length < XSK_SLOT ? length : XSK_SLOT;
        uint64_t address = q->free[--q->free_count];
        memcpy(q->memory + address, frame, piece);
        frame += piece;
        length -= piece;
        put(q, address, piece, length > 0 ? XDP_PKT_CONTD : 0);
    }
    return true;
}

uint64_t xsk_lost(const struct xsk_queue *q, unsigned context)
{
    struct xdp_statistics s = {0};
    socklen_t length = sizeof(s);
    (void)getsockopt(q->fd[context], SOL_XDP, XDP_STATISTICS, &s, &length);
    return s.rx_dropped + s.rx_ring_full;
}

void xsk_refill(struct xsk_queue *q)
{
    struct xsk_ring *done = &q->completion, *fill = &q->fill;
    const uint64_t *sent = done->entries;
    uint64_t *empty = fill->entries;
    uint32_t n = filled(done);
    for (uint32_t i = 0; i < n; i++) {
        xsk_free(q, sent[(done->at + i) & (done->size - 1)]);
    }
    if (n > 0) {
        done->at += n;
        atomic_store_explicit(done->consumer, done->at, memory_order_release);
    }
    /* a batch stays free, for frames of handlers */
    uint32_t room = room_of(fill);
    for (n = 0; n < room && q->free_count > RAW_BATCH; n++) {
        empty[(fill->at + n) & (fill->size - 1)] = q->free[--q->free_count];
    }
    if (n > 0) {
        fill->at += n;
        atomic_store_explicit(fill->producer, fill->at, memory_order_release);
    }
}

/* A call sends some frames of the ring, 32 in Linux 6; the ring is empty when all were taken. */
void xsk_flush(struct xsk_queue *q)
{
    struct xsk_ring *r = &q->tx;
    if (q->unsent > 0) {
        atomic_store_explicit(r->producer, r->at, memory_order_release);
        q->unsent = 0;
    }
    uint32_t left = r->size + 1, now;
    while (needs_wakeup(r) &&
           (now = r->at - atomic_load_explicit(r->consumer, memory_order_acquire)) > 0 &&
           now < left) {
        left = now;
        (void)!sendto(q->fd[0], NULL, 0, MSG_DONTWAIT, NULL, 0);
    }
}
