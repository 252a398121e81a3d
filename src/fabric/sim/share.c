/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process of a rank shares with the coordinator (segment.h). It can write there only to what
 * is its rank's own, and works on copies, so that what a stray pointer of the program changes is
 * found out.
 */
#include "fabric/sim/share.h"

#include "base/log.h"
#include "base/sys.h"

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

void sim_share_spoiled(const struct sim_segment *s, uint32_t place, const char *what)
{
    log_line(LOG_ERROR,
             "rank %u has written over the memory that it shares with pinwheel sim: %s; look for a "
             "stray pointer; the process ends",
             sim_host(s, place), what);
    SYS_CALL(SYS_exit_group, 1);
    __builtin_unreachable();
}

bool sim_share_read(const struct sim_rank *from, struct sim_record *to)
{
    memcpy(to, &from->record, sizeof(*to));
    return sim_sealed(to);
}

void sim_share_write(struct sim_rank *to, struct sim_record *r)
{
    r->seal = sim_seal(r);
    memcpy(&to->record, r, sizeof(*r));
}

/* What threads compute is counted when they begin with it: a job may end before that is over. */
static void count_ahead(struct sim_clock *c)
{
    struct sim_counts *counts = &c->figures.counts;
    counts->ahead = 0;
    counts->ahead_at = c->now;
    for (const struct sim_task *t = c->tasks; t != NULL; t = t->next) {
        counts->ahead += t->busy > c->now ? t->busy - c->now : 0;
    }
}

void sim_share_show(struct sim_clock *c)
{
    count_ahead(c);
    if (c->tally != NULL) {
        c->tally(c->taker, &c->figures);
    }
    memcpy(&c->shared->figures, &c->figures, sim_figures_bytes(&c->figures));
    memcpy(c->shared->figures.phase, c->figures.phase, sim_phases_bytes(&c->figures));
    c->me->figures_sum = sim_sum_figures(&c->figures);
    sim_share_write(c->shared, c->me);
}

/* how long a process waits for its parent to say which place it has */
enum { PARENT_NAPS = 20000, NAP_NS = 100000 };

/* ---- mapped ---- */

/* By what a job is found, and which memory that was. */
static struct {
    char path[64];
    struct stat is;
} joined;

void sim_share_outlived(const struct sim_segment *s)
{
    struct stat now;
    if (joined.path[0] != '\0' &&
        (SYS_CALL(SYS_stat, joined.path, &now) != 0 || now.st_ino != joined.is.st_ino ||
         now.st_dev != joined.is.st_dev)) {
        SYS_CALL(SYS_kill, (pid_t)SYS_CALL(SYS_getpid), SIGKILL);
    }
}

/* Memory of the job of another version of Pinwheel begins alike, but for the version. */
static void tell_stranger(const char *path, uint64_t magic)
{
    char theirs[3] = {(char)(magic >> 48), (char)(magic >> 56), '\0'};
    char ours[3] = {(char)(SIM_MAGIC >> 48), (char)(SIM_MAGIC >> 56), '\0'};
    bool other = (magic ^ SIM_MAGIC) << 16 == 0;
    if (other && magic != SIM_MAGIC) {
        log_line(LOG_ERROR,
                 "cannot join the simulated job of " SIM_VARIABLE "=%s: `pinwheel sim` shares "
                 "memory of version %s, and this program's library is of version %s: use the "
                 "`pinwheel` and the library of one installation",
                 path, theirs, ours);
        return;
    }
    log_line(LOG_ERROR,
             "cannot join the simulated job of " SIM_VARIABLE "=%s: it is over: start the program "
             "by `pinwheel sim`",
             path);
}

static bool allow(const void *from, uint64_t size, int access)
{
    return size == 0 || mprotect((void *)from, (size_t)size, access) == 0;
}

/* A rank can write to the board and to what is its own, and read what the coordinator tells all: a
 * stray pointer that leads anywhere else here is a fault of its own. */
static bool open_own(const struct sim_segment *s, uint32_t rank)
{
    const int writes = PROT_READ | PROT_WRITE;
    return allow(sim_board(s), s->ranks_at - s->board_at, writes) &&
           allow(sim_place(s, rank), sizeof(struct sim_rank), writes) &&
           allow(sim_place(s, sim_child(s, rank)), s->processes * sizeof(struct sim_rank),
                 writes) &&
           allow(sim_spans_of(s, rank), sim_spans_bytes(s), writes) &&
           allow(sim_port_of(s, sim_node(s, rank)), sim_port_bytes(s), writes) &&
           allow(sim_spent_of(s, rank), sim_spent_bytes(s), writes);
}

struct sim_segment *sim_share_map(const char *path, unsigned long rank)
{
    int fd = sys_open(path, O_RDWR | O_CLOEXEC, 0);
    struct sim_segment s = {.magic = 0};
    bool whole = fd >= 0 && sys_read(fd, &s, sizeof(s)) == (ssize_t)sizeof(s);
    void *at = MAP_FAILED;
    if (whole && s.magic == SIM_MAGIC && rank < s.ranks) {
        at = mmap(NULL, (size_t)s.size, PROT_NONE, MAP_SHARED, fd, 0);
    }
    if (at != MAP_FAILED && strlen(path) < sizeof(joined.path) &&
        SYS_CALL(SYS_fstat, fd, &joined.is) == 0) {
        memcpy(joined.path, path, strlen(path) + 1);
    }
    if (fd >= 0) {
        sys_close(fd);
    }
    if (whole && s.magic == SIM_MAGIC && rank >= s.ranks) {
        log_line(LOG_ERROR, "PMI_RANK=%lu is no rank of the simulated job, which has %u", rank,
                 s.ranks);
        return NULL;
    }
    if (at != MAP_FAILED && allow(at, s.board_at, PROT_READ) && open_own(at, (uint32_t)rank)) {
        return at;
    }
    tell_stranger(path, s.magic);
    return NULL;
}

/* ---- whose a place is ---- */

/* The place of a process that another one of its rank has forked, or started. A parent that starts
 * a program takes the place first and says afterwards whose it is. UINT32_MAX: there is none. */
static uint32_t child_place(const struct sim_segment *s, uint32_t child, uint32_t pid)
{
    for (int naps = 0; naps < PARENT_NAPS; naps++) {
        bool open = false;
        for (uint32_t i = child; i < child + s->processes; i++) {
            uint32_t whose = atomic_load(&sim_place(s, i)->pid);
            if (atomic_load(&sim_place(s, i)->taken) != 0 && whose == pid) {
                return i;
            }
            open |= atomic_load(&sim_place(s, i)->taken) != 0 && whose == 0;
        }
        if (!open) {
            break;
        }
        sys_nap(NAP_NS);
    }
    return UINT32_MAX;
}

uint32_t sim_share_place(struct sim_segment *s, uint32_t rank, uint32_t pid, bool *again)
{
    uint32_t nobody = 0, child = sim_child(s, rank);
    *again = !atomic_compare_exchange_strong(&sim_place(s, rank)->pid, &nobody, pid);
    if (!*again || nobody == pid) {
        return rank;
    }
    return child_place(s, child, pid);
}

void sim_share_await(const struct sim_segment *s, uint32_t place)
{
    _Atomic uint32_t *word = &sim_board(s)->turn[place];
    for (uint32_t turn = atomic_load(word); turn != SIM_RUN; turn = atomic_load(word)) {
        futex_wait(word, turn, SIM_SHARE_LOOK_NS);
        sim_share_outlived(s);
    }
}
