/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Segments as files; see segment.h.
 *
 * The list of own segments is the only state that belongs to the address space, not to a NIC: a
 * peer in the same process is found there, and shares the mapping. A forked child, which has none
 * of the segments, forgets it.
 */
#include "fabric/shm/segment.h"

#include "fabric/shm/names.h"
#include "fabric/shm/owner.h"

#include "base/killpoint.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define PID_MIN 1u
#define PID_MAX 65534u
#define PID_ANY_MIN 1024u
#define PAGE_BYTES UINT64_C(4096) /* page size of the layout */

/* Since Linux 5.14. */
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

static struct list own_segments = {&own_segments, &own_segments};
static struct list holes = {&holes, &holes};
static struct mutex own_lock; /* taken by forks_take() */

/* Removes the names of the segments of a program that exits without PtlFini. A child that was made
 * without libc's fork() has the parent's list, but must leave the names. */
__attribute__((destructor)) static void unlink_own(void)
{
    LIST_EACH(const struct segment, s, &own_segments, link) {
        if (owner_is_self(&s->info)) {
            unlink(s->path);
        }
    }
}

static int publish(int fd, const char *path)
{
    char self[64];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    for (int attempt = 0; attempt < 2; attempt++) {
        if (linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0) {
            return 0;
        }
        if (errno != EEXIST) {
            return -errno;
        }
        if (!segment_remove_dead(path, 10)) {
            return -EADDRINUSE;
        }
    }
    return -EADDRINUSE;
}

/* Writes that a PID is in use. The file of its name may belong to another user, or to no NIC at
 * all, so the line names the file's owner, too. */
static int refuse_taken(const struct segment *s, uint32_t pid, struct reason *why)
{
    struct stat st;
    reason_say(why, 0, "PID %u is in use: ask for another or PTL_PID_ANY", pid);
    if (lstat(s->path, &st) == 0) {
        reason_add(
            why, 0,
            ", or have %s removed, which belongs to uid %u, if no process of his has the PID",
            s->path, st.st_uid);
    }
    return -EADDRINUSE;
}

/* Finds a PID whose name is free, and links the segment there. The search for any PID begins at a
 * number that differs between processes. */
static int publish_pid(const struct options *o, struct segment *s, struct reason *why)
{
    struct segment_info *h = &s->header->info;
    uint32_t wanted = h->pid; /* NOLINT(clang-analyzer-core.NullDereference): make_file() set it */
    uint32_t span = PID_MAX - PID_ANY_MIN + 1;
    uint32_t start = (uint32_t)getpid() % span;
    for (uint32_t i = 0; i < (wanted != 0 ? 1 : span); i++) {
        h->pid = wanted != 0 ? wanted : PID_ANY_MIN + (start + i) % span;
        int rc = segment_path(o, h->nid, h->pid, s->path, sizeof(s->path), why);
        if (rc != 0) {
            return rc;
        }
        rc = publish(s->fd, s->path);
        if (rc == 0) {
            s->info = *h;
            return 0;
        }
        if (rc != -EADDRINUSE) {
            return reason_say(why, rc, "cannot create %s: %s%s", s->path, strerror(-rc),
                              log_remedy(-rc));
        }
    }
    return wanted != 0 ? refuse_taken(s, wanted, why)
                       : reason_say(why, -EADDRINUSE, "all PIDs are in use: each has a name in %s",
                                    o->text[OPT_SHM_DIR]);
}

/* Maps a part of a file; at `hole`, in place of a hole, if that is not NULL. */
static void *map_file(int fd, uint64_t offset, uint64_t bytes, void *hole)
{
    void *at = mmap(hole, bytes, PROT_READ | PROT_WRITE,
                    MAP_SHARED | (hole != NULL ? MAP_FIXED : 0), fd, (off_t)offset);
    if (at == MAP_FAILED) {
        return NULL;
    }
    madvise(at, bytes, MADV_DONTFORK);
    madvise(at, bytes, MADV_DONTDUMP);
    return at;
}

/* Returns a struct for a new own segment; if there is a hole of the right size, one with the hole's
 * addresses as header. A forked child also has the structs of its parent's holes, with header
 * NULL. */
static struct segment *take_hole(uint64_t bytes)
{
    struct segment *s = NULL;
    forks_take(&own_lock);
    LIST_EACH(struct segment, hole, &holes, link) {
        if (hole->mapped == bytes || hole->mapped == 0) {
            s = hole;
            list_remove(&s->link);
            *s = (struct segment){.header = s->header, .mapped = s->mapped};
            break;
        }
    }
    forks_give(&own_lock);
    return s != NULL ? s : calloc(1, sizeof(*s));
}

/* Frees the memory of an own segment but keeps its addresses, as a hole of zeros. If the kernel
 * does not allow that, the file stays mapped. */
static void leave_hole(struct segment *s)
{
    if (mmap(s->header, s->mapped, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
        MAP_FAILED) {
        madvise(s->header, s->mapped, MADV_DONTFORK);
        madvise(s->header, s->mapped, MADV_DONTDUMP);
    }
    forks_take(&own_lock);
    list_push_back(&holes, &s->link);
    forks_give(&own_lock);
}

/* Backs a part of a file with memory; 0 or an errno. A signal makes the kernel undo its work and
 * return EINTR; then it is tried again, as that does not mean that there is no room. */
static int allocate(int fd, uint64_t offset, uint64_t bytes)
{
    int rc;
    do {
        rc = posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    } while (rc == EINTR);
    return rc;
}

/* Makes the file of a segment: without a name, locked, and mapped. */
static int make_file(struct segment *s, const char *dir, const struct segment_info *wanted,
                     struct reason *why)
{
    s->fd = forks_open(sys_open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (s->fd < 0) {
        const char *remedy = log_remedy(-s->fd);
        return reason_say(why, s->fd, "cannot make a segment in %s: %s%s", dir, strerror(-s->fd),
                          *remedy != '\0' ? remedy
                                          : "; PINWHEEL_SHM_DIR must name a writable tmpfs");
    }
    int rc = fchmod(s->fd, 0600) != 0 ? -errno : sys_flock(s->fd, LOCK_EX | LOCK_NB);
    if (rc == 0 && ftruncate(s->fd, (off_t)wanted->file_bytes) != 0) {
        rc = -errno;
    }
    if (rc != 0) {
        return reason_say(why, rc, "cannot prepare a segment in %s: %s", dir, strerror(-rc));
    }
    rc = -allocate(s->fd, 0, SEGMENT_SLOTS_AT);
    if (rc != 0) {
        return reason_say(why, rc, "%s: no room for a segment (%u bytes): %s", dir,
                          SEGMENT_SLOTS_AT, strerror(-rc));
    }
    void *at = map_file(s->fd, 0, wanted->file_bytes, s->header);
    if (at == NULL) {
        return reason_say(
            why, -errno,
            "cannot map a segment of %llu MiB of addresses: %s; a process may need more (ulimit "
            "-v), or fewer peers (PINWHEEL_SHM_PEERS) and cells (PINWHEEL_SHM_CELLS)",
            (unsigned long long)wanted->file_bytes >> 20, strerror(errno));
    }
    s->header = at;
    s->mapped = wanted->file_bytes;
    s->header->info = *wanted;
    return 0;
}

int segment_create(const struct options *o, const struct segment_info *wanted,
                   struct segment **result, struct reason *why)
{
    const char *dir = o->text[OPT_SHM_DIR];
    struct segment *s = take_hole(wanted->file_bytes);
    if (s == NULL) {
        return reason_say(why, -ENOMEM, "out of memory");
    }
    segment_sweep(dir);
    s->own = true;
    s->users = 1;
    int rc = make_file(s, dir, wanted, why);
    rc = rc == 0 ? publish_pid(o, s, why) : rc;
    if (rc != 0) {
        forks_close(s->fd);
        if (s->header != NULL) {
            leave_hole(s);
        } else {
            free(s);
        }
        return rc;
    }
    KILL_POINT("segment-named");
    forks_take(&own_lock);
    list_push_back(&own_segments, &s->link);
    forks_give(&own_lock);
    *result = s;
    return 0;
}

static bool power_of_two(uint64_t v)
{
    return v != 0 && (v & (v - 1)) == 0;
}

/* Checks a foreign header before any of its numbers is used. Returns what is wrong, or NULL. */
static const char *header_fault(const struct segment_info *h, uint64_t file_bytes, uint32_t nid,
                                uint32_t pid, char *text, size_t size)
{
    if (h->magic != SEGMENT_MAGIC) {
        return "it is not a Pinwheel segment";
    }
    if (h->version != SEGMENT_VERSION) {
        snprintf(text, size,
                 "its layout is version %u, this Pinwheel's is %u: restart that process with the "
                 "same Pinwheel",
                 h->version, SEGMENT_VERSION);
        return text;
    }
    if (h->header_bytes != sizeof(struct segment_header) || h->nid != nid || h->pid != pid ||
        h->slots < 1 || h->slots > SLOTS_MAX || !power_of_two(h->ring_lines) || h->ring_lines < 2 ||
        h->ring_lines > 65536 || !power_of_two(h->cells) || h->cells < 2 || h->cells > 65536 ||
        !power_of_two(h->cells_first) || h->cells_first < 2 || h->cells_first > h->cells ||
        h->cell_size == 0 || h->cell_size % 64 != 0 || h->cell_size > 65536 ||
        h->slot_bytes != slot_size(h->ring_lines, h->cells, h->cell_size) ||
        h->file_bytes != SEGMENT_SLOTS_AT + h->slots * h->slot_bytes ||
        h->file_bytes > file_bytes) {
        return "its header is damaged";
    }
    return NULL;
}

/* Whether any process holds the lock of a file; `fd` must be of another file description than the
 * holder's. */
static bool is_held(int fd)
{
    return sys_flock(fd, LOCK_SH | LOCK_NB) != 0;
}

/* It opens a descriptor of its own, as the answer would be wrong by one that shares the lock. */
static bool is_locked(const struct segment *s)
{
    char self[64];
    snprintf(self, sizeof(self), "/proc/self/fd/%d", s->fd);
    int fd = forks_open(sys_open(self, O_RDONLY | O_CLOEXEC, 0));
    if (fd < 0) {
        /* it cannot be found out now, so it counts as held */
        return fd == -EMFILE || fd == -ENFILE || fd == -ENOMEM;
    }
    bool held = is_held(fd);
    forks_close(fd);
    return held;
}

static struct segment *find_own(const char *path)
{
    forks_take(&own_lock);
    struct segment *found = NULL;
    LIST_EACH(struct segment, s, &own_segments, link) {
        if (strcmp(s->path, path) == 0 && !segment_closed(s)) {
            s->users++;
            found = s;
            break;
        }
    }
    forks_give(&own_lock);
    return found;
}

/* Checks the file of a foreign segment, and maps its header. Returns what is wrong; NULL: nothing,
 * or, with `*dead`, its owner no longer exists. */
static const char *map_foreign(struct segment *s, uint32_t nid, uint32_t pid, char text[128],
                               bool *dead)
{
    struct stat st;
    if (fstat(s->fd, &st) != 0) {
        return strerror(errno);
    }
    if (!S_ISREG(st.st_mode)) {
        return "it is no regular file";
    }
    if (st.st_size < (off_t)SEGMENT_HEADER_BYTES) {
        return "it is too short";
    }
    if (st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
        return "it belongs to another user, or others may write to it";
    }
    *dead = !is_locked(s);
    if (*dead) {
        return NULL;
    }
    s->header = map_file(s->fd, 0, SEGMENT_HEADER_BYTES, NULL);
    if (s->header == NULL) {
        return strerror(errno);
    }
    s->mapped = SEGMENT_HEADER_BYTES;
    s->info = s->header->info;
    const char *fault = header_fault(&s->info, (uint64_t)st.st_size, nid, pid, text, 128);
    *dead = fault == NULL && (segment_closed(s) || owner_gone(&s->info));
    return fault;
}

int segment_open(const struct options *o, uint32_t nid, uint32_t pid, struct segment **result,
                 struct reason *why)
{
    char path[sizeof((*result)->path)], text[128];
    if (segment_path(o, nid, pid, path, sizeof(path), why) != 0) {
        /* this host's name cannot be told; -ENOENT would mean that the peer is gone */
        return -EINVAL;
    }
    *result = find_own(path);
    if (*result != NULL) {
        return 0;
    }
    int fd = forks_open(sys_open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0));
    if (fd < 0) {
        return reason_say(why, fd, "cannot open %s: %s%s", path, strerror(-fd), log_remedy(-fd));
    }
    struct segment *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        forks_close(fd);
        return reason_say(why, -EPROTO, "%s cannot be used: out of memory", path);
    }
    bool dead = false;
    s->fd = fd;
    s->users = 1;
    memcpy(s->path, path, sizeof(path));
    const char *fault = map_foreign(s, nid, pid, text, &dead);
    if (fault != NULL || dead) {
        segment_release(s, false);
        return dead ? -ENOENT : reason_say(why, -EPROTO, "%s cannot be used: %s", path, fault);
    }
    *result = s;
    return 0;
}

bool segment_left(const struct options *o, uint32_t nid, uint32_t pid, const uint64_t *incarnation)
{
    char path[384];
    struct reason why;
    struct segment_info info;
    if (segment_path(o, nid, pid, path, sizeof(path), &why) != 0) {
        return false;
    }
    int fd = forks_open(sys_open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0));
    if (fd < 0) {
        return fd == -ENOENT;
    }
    bool left = sys_pread(fd, &info, sizeof(info), 0) == sizeof(info) &&
                ((incarnation != NULL && info.incarnation != *incarnation) || !is_held(fd) ||
                 (info.version == SEGMENT_VERSION && owner_gone(&info)));
    forks_close(fd);
    return left;
}

int segment_back_cells(struct segment *s, unsigned index, unsigned class)
{
    uint64_t offset =
        SEGMENT_SLOTS_AT + index * s->info.slot_bytes + more_cells_offset(class, &s->info);
    return allocate(s->fd, offset, more_cells_bytes(&s->info));
}

void segment_touch(void *cells, uint64_t bytes, bool write)
{
    uint64_t first = (uint64_t)(uintptr_t)cells & ~(PAGE_BYTES - 1);
    uint64_t end = ((uint64_t)(uintptr_t)cells + bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
    int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    long rc = SYS_CALL(SYS_madvise, first, end - first, advice);
    if (rc != 0) {
        log_line(LOG_INFO, "cells of a connection are mapped one by one, not at once: %s",
                 strerror((int)-rc));
    }
}

struct slot *segment_slot(struct segment *s, unsigned index)
{
    uint64_t bytes = s->info.slot_bytes;
    uint64_t offset = SEGMENT_SLOTS_AT + index * bytes;
    int rc = allocate(s->fd, offset, slot_first(&s->info));
    if (rc != 0) {
        errno = rc;
        return NULL;
    }
    return s->own ? (struct slot *)((char *)s->header + offset)
                  : map_file(s->fd, offset, bytes, NULL);
}

void segment_slot_unmap(struct segment *s, struct slot *slot)
{
    if (!s->own) {
        munmap(slot, s->info.slot_bytes);
    }
}

bool segment_alive(struct segment *s)
{
    return s->own ? !segment_closed(s) : is_locked(s) && !owner_gone(&s->info);
}

void segment_release(struct segment *s, bool owner)
{
    bool last = true;
    if (s->own) {
        forks_take(&own_lock);
        if (owner) {
            atomic_fetch_or(&s->header->flags, SEGMENT_CLOSED);
            unlink(s->path);
        }
        last = --s->users == 0;
        if (last) {
            list_remove(&s->link);
        }
        forks_give(&own_lock);
    }
    if (last) {
        forks_close(s->fd);
    }
    if (last && s->own) {
        leave_hole(s);
    } else if (last) {
        munmap(s->header, s->mapped);
        free(s);
    }
}

void segment_forget(void)
{
    list_init(&own_segments);
    LIST_EACH(struct segment, hole, &holes, link) {
        hole->header = NULL; /* not mapped in the child */
        hole->mapped = 0;
    }
}
