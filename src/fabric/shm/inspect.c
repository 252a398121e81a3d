/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments from outside; see inspect.h. */
#include "fabric/shm/inspect.h"

#include "fabric/shm/names.h"
#include "fabric/shm/segment.h"

#include <stdlib.h>
#include <sys/mman.h>

struct name {
    uint32_t nid, pid;
};

struct names {
    struct name *of;
    size_t count, room;
    int rc;
};

static void note_name(void *arg, const char *path, uint32_t nid, uint32_t pid)
{
    struct names *n = arg;
    if (n->count == n->room) {
        size_t room = n->room == 0 ? 16 : 2 * n->room;
        struct name *more = reallocarray(n->of, room, sizeof(*more));
        if (more == NULL) {
            n->rc = -ENOMEM;
            return;
        }
        n->of = more;
        n->room = room;
    }
    n->of[n->count++] = (struct name){nid, pid};
}

static int by_address(const void *a, const void *b)
{
    const struct name *x = a, *y = b;
    return x->nid != y->nid ? (x->nid > y->nid) - (x->nid < y->nid)
                            : (x->pid > y->pid) - (x->pid < y->pid);
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
    void *board = mmap(NULL, FABRIC_BOARD, PROT_READ, MAP_SHARED, s->fd, SEGMENT_HEADER_BYTES);
    if (board == MAP_FAILED) {
        return false;
    }
    see(arg, &(struct segment_view){.nid = s->info.nid,
                                    .pid = s->info.pid,
                                    .process = s->info.process,
                                    .incarnation = s->info.incarnation,
                                    .senders = count_senders(s),
                                    .most = s->info.slots,
                                    .board = board});
    munmap(board, FABRIC_BOARD);
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
        int opened = segment_open(o, names.of[i].nid, names.of[i].pid, &s, &why);
        if (opened == 0) {
            if (!look(s, see, arg)) {
                skipped(arg, "its board cannot be mapped");
            }
            segment_release(s, false);
        } else if (opened != -ENOENT) { /* that one has ended */
            skipped(arg, why.text);
        }
    }
    free(names.of);
    return rc;
}
