/* SPDX-License-Identifier: BSD-3-Clause */
/* The hostile peer of the fuzz targets; see hostile.h. */
#include "hostile.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const uint64_t cookie = 0x1122334455667788;

/* A folder of our own: nobody else looks whether the owners of these segments live. */
static char directory[] = "/dev/shm/pinwheel-fuzz-XXXXXX";

static void remove_directory(void)
{
    rmdir(directory);
}

void hostile_options(void)
{
    static bool made;
    if (!made) {
        MUST(mkdtemp(directory) != NULL && atexit(remove_directory) == 0);
        made = true;
    }
    setenv("PINWHEEL_SHM_DIR", directory, 1);
    setenv("PINWHEEL_SHM_PEERS", "4", 1);
    setenv("PINWHEEL_SHM_RING", "16", 1);
    setenv("PINWHEEL_SHM_CELLS", "4", 1);
    setenv("PINWHEEL_SHM_CELLS_FIRST", "2", 1);
    setenv("PINWHEEL_PACKET_SIZE", "256", 1);
    setenv("PINWHEEL_LINGER_MS", "0", 1);
    setenv("PINWHEEL_CONNECT_MS", "0", 1);
    setenv("PINWHEEL_LOG", "none", 1);
}

/* Finds the segment of the NIC, and from its name that of any other PID. */
static bool find_segment(char *path, size_t size, ptl_process_t self, uint32_t pid)
{
    char tail[64];
    snprintf(tail, sizeof(tail), "-%08x-%u", self.phys.nid, self.phys.pid);
    DIR *d = opendir(directory);
    MUST(d != NULL);
    bool found = false;
    for (struct dirent *e; !found && (e = readdir(d)) != NULL;) {
        size_t n = strlen(e->d_name), k = strlen(tail);
        if (n > k && strncmp(e->d_name, "pinwheel-", 9) == 0 &&
            strcmp(e->d_name + n - k, tail) == 0) {
            snprintf(path, size, "%s/%.*s-%08x-%u", directory, (int)(n - k), e->d_name,
                     self.phys.nid, pid);
            found = true;
        }
    }
    closedir(d);
    return found;
}

static void map_all(struct mapping *m)
{
    struct stat st;
    MUST(fstat(m->fd, &st) == 0);
    m->bytes = (size_t)st.st_size;
    m->base = mmap(NULL, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    MUST(m->base != MAP_FAILED);
}

void hostile_open(struct mapping *m, ptl_process_t self)
{
    MUST(find_segment(m->path, sizeof(m->path), self, self.phys.pid));
    m->fd = open(m->path, O_RDWR | O_CLOEXEC);
    MUST(m->fd >= 0);
    map_all(m);
}

void hostile_make(struct mapping *m, ptl_process_t self)
{
    struct segment_info info = {
        .magic = SEGMENT_MAGIC,
        .version = SEGMENT_VERSION,
        .header_bytes = sizeof(struct segment_header),
        .incarnation = HOSTILE_INCARNATION,
        .cookie = cookie,
        .cookie_at = (uintptr_t)&cookie,
        .nid = self.phys.nid,
        .pid = HOSTILE_PID,
        .process = getpid(),
        .slots = 2,
        .ring_lines = 16,
        .cells = 4,
        .cells_first = 2,
        .cell_size = 256,
    };
    info.slot_bytes = slot_size(info.ring_lines, info.cells, info.cell_size);
    info.file_bytes = SEGMENT_SLOTS_AT + info.slots * info.slot_bytes;
    MUST(find_segment(m->path, sizeof(m->path), self, HOSTILE_PID));
    unlink(m->path);
    m->fd = open(m->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    MUST(m->fd >= 0 && flock(m->fd, LOCK_EX | LOCK_NB) == 0);
    MUST(posix_fallocate(m->fd, 0, (off_t)info.file_bytes) == 0);
    map_all(m);
    memcpy(m->base, &info, sizeof(info));
}

struct slot *hostile_claim(struct mapping *m, ptl_process_t self, unsigned *index)
{
    struct segment_header *h = (struct segment_header *)m->base;
    *index = h->info.slots - 1;
    size_t bytes = h->info.slot_bytes, at = SEGMENT_SLOTS_AT + *index * bytes;
    MUST(posix_fallocate(m->fd, (off_t)at, (off_t)bytes) == 0);
    struct slot *slot = (struct slot *)(m->base + at);
    h->owner[*index] = (uint64_t)self.phys.nid << 32 | HOSTILE_PID;
    slot->nid = self.phys.nid;
    slot->pid = HOSTILE_PID;
    slot->process = getpid();
    slot->incarnation = HOSTILE_INCARNATION;
    return slot;
}

void hostile_tell(struct mapping *m, unsigned index)
{
    struct segment_header *h = (struct segment_header *)m->base;
    atomic_fetch_or(&h->asked[index / 64], 1ull << index % 64);
    atomic_fetch_or(&h->flags, SEGMENT_ASKED);
    atomic_fetch_or(&h->bitmap[index / 64], 1ull << index % 64);
}

void hostile_unmap(struct mapping *m)
{
    munmap(m->base, m->bytes);
    close(m->fd);
}
