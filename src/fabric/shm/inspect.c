/* SPDX-License-Identifier: BSD-3-Clause */
/* Inspects segments without being a peer; see inspect.h. */
#include "fabric/shm/inspect.h"

#include "base/array.h"
#include "fabric/shm/names.h"
#include "fabric/shm/segment.h"

#include <stdlib.h>
#include <sys/mman.h>

struct names {
    uint64_t *of; /* NID << 32 | PID */
    size_t count, room;
    int rc;
};

static void note_name(void *arg, const struct segment_name *name)
{
    struct names *n = arg;
    if (!name->ours) {
        return;
    }
    if (!ARRAY_ROOM(n->of, n->count, n->room, 16)) {
        n->rc = -ENOMEM;
        return;
    }
    n->of[n->count++] = address_word(name->nid, name->pid);
}

static int by_address(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static unsigned count_senders(struct segment *s)
{
    unsigned n = 0;
    for (unsigned i = 0; i < s->info.slots; i++) {
        n += atomic_load_explicit(&s->header->owner[i], memory_order_relaxed) != 0;
    }
    return n;
}

static bool look(struct segment *s, void (*see)(void *, const struct segment_view *), void *arg)
{
    void *stats = mmap(NULL, FABRIC_STATS, PROT_READ, MAP_SHARED, s->fd, SEGMENT_HEADER_BYTES);
    if (stats == MAP_FAILED) {
        return false;
    }
    see(arg, &(struct segment_view){.nid = s->info.nid,
                                    .pid = s->info.pid,
                                    .process = s->info.process,
                                    .incarnation = s->info.incarnation,
                                    .senders = count_senders(s),
                                    .most = s->info.slots,
                                    .stats = stats});
    munmap(stats, FABRIC_STATS);
    return true;
}

int inspect_segments(const struct options *o,
                     void (*see)(void *arg, const struct segment_view *view),
                     void (*skipped)(void *arg, const char *why), void *arg)
{
    struct names names = {0};
    int rc = segment_each(o->text[OPT_SHM_DIR], note_name, &names);
    rc = rc == 0 ? names.rc : rc;
    if (names.count != 0) {
        qsort(names.of, names.count, sizeof(*names.of), by_address);
    }
    for (size_t i = 0; i < names.count && rc == 0; i++) {
        struct segment *s;
        struct reason why;
        int opened =
            segment_open(o, (uint32_t)(names.of[i] >> 32), (uint32_t)names.of[i], &s, &why);
        if (opened == 0) {
            if (!look(s, see, arg)) {
                skipped(arg, "its stats page cannot be mapped");
            }
            segment_release(s, false);
        } else if (opened != -ENOENT) { /* no error: that NIC was closed meanwhile */
            skipped(arg, why.text);
        }
    }
    free(names.of);
    return rc;
}
