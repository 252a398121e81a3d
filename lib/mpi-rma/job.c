/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process has for all of its windows: an interface of Portals, a struct pw_rma, the control
 * region with a slot for each window, and who the other processes are.
 *
 * All of that is made at the first window, over its communicator: a host's name tells whether all
 * share memory; if they do not, the first rank draws the job's key, unless all have been given one.
 * Then each rank's card goes to all of them. Cards of a communicator are kept as an attribute of
 * it, which its duplicates have, too.
 */
#include "window.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

struct job job = {.lock = PTHREAD_MUTEX_INITIALIZER, .notes_lock = PTHREAD_MUTEX_INITIALIZER};

const char *const reason_text[REASONS] = {
    [REASON_WANTED] = "PINWHEEL_RMA_PATH is mpi",
    [REASON_HOSTS] = "its ranks are on several hosts",
    [REASON_INTERFACE] = "a rank has no interface of Portals",
    [REASON_REGION] = "the memory of a rank cannot be accessed by others",
    [REASON_SLOTS] = "there are too many windows at a time (8192)",
    [REASON_MEMORY] = "a rank has no memory left",
    [REASON_HANDLE] = "the MPI gave a rank no handle",
    [REASON_ROOM] = "the hosts of the ranks have no room for all of them",
};

/* ---- Peers ---- */

static struct peer **peers; /* by number of their process: a hash table */
static size_t peer_room, peer_count;

static size_t card_place(const struct card *c, size_t room)
{
    return (size_t)((((uint64_t)c->nid << 32 | c->pid) * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
           (room - 1);
}

static struct peer **peer_place(struct peer **table, size_t room, const struct card *c)
{
    size_t at = card_place(c, room);
    while (table[at] != NULL && memcmp(&table[at]->card, c, sizeof(*c)) != 0) {
        at = (at + 1) & (room - 1);
    }
    return &table[at];
}

/* Finds a peer, or makes it; NULL: no memory. The caller has job.lock. */
static struct peer *peer_of(const struct card *c)
{
    if (2 * (peer_count + 1) > peer_room) {
        size_t room = peer_room == 0 ? 64 : 2 * peer_room;
        struct peer **larger = calloc(room, sizeof(struct peer *));
        if (larger == NULL) {
            return NULL;
        }
        for (size_t i = 0; i < peer_room; i++) {
            if (peers[i] != NULL) {
                *peer_place(larger, room, &peers[i]->card) = peers[i];
            }
        }
        free(peers);
        peers = larger;
        peer_room = room;
    }
    struct peer **at = peer_place(peers, peer_room, c);
    if (*at == NULL && (*at = calloc(1, sizeof(**at))) != NULL) {
        (*at)->card = *c;
        peer_count++;
    }
    return *at;
}

struct pw_rma_key *peer_control(struct peer *peer)
{
    struct pw_rma_key *key = atomic_load_explicit(&peer->control, memory_order_acquire);
    if (key == NULL) {
        pthread_mutex_lock(&job.lock);
        key = atomic_load(&peer->control);
        if (key == NULL &&
            pw_rma_key_open(job.rma, peer->card.key, sizeof(peer->card.key), &key) == 0) {
            atomic_store_explicit(&peer->control, key, memory_order_release);
        }
        pthread_mutex_unlock(&job.lock);
    }
    return key;
}

static void peers_close(void)
{
    for (size_t i = 0; i < peer_room; i++) {
        struct pw_rma_key *key = peers[i] != NULL ? atomic_load(&peers[i]->control) : NULL;
        if (key != NULL) {
            pw_rma_key_close(key);
        }
    }
}

/* ---- The process's own ---- */

static enum reason opened = REASON_NONE;

/* A number that processes which share memory have in common. */
static uint64_t host_number(void)
{
    char text[256] = "";
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    size_t n = f != NULL ? fread(text, 1, sizeof(text), f) : 0;
    if (f != NULL) {
        fclose(f);
    }
    if (n == 0) {
        gethostname(text, sizeof(text) - 1);
        n = strlen(text);
    }
    uint64_t h = UINT64_C(14695981039346656037);
    for (size_t i = 0; i < n; i++) {
        h = (h ^ (unsigned char)text[i]) * UINT64_C(1099511628211);
    }
    return h;
}

/* Peers of the host map the control region, so that synchronisation is by their processors' atomic
 * instructions; where there is no room for that all of it goes by messages. */
static bool open_control(void)
{
    static struct pw_rma_region *region;
    const unsigned access = PW_RMA_READ | PW_RMA_WRITE | PW_RMA_NOTIFY;
    size_t size = SLOTS * sizeof(struct slot);
    void *memory;
    if (pw_rma_allocate(job.rma, size, access, &memory, &region) != 0) {
        memory = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED || pw_rma_register(job.rma, memory, size, access, &region) != 0) {
            return false;
        }
    }
    job.slots = memory;
    job.control = region;
    return pw_notify_open(region, NULL, PW_NOTIFY_TAG_ANY, 1, &job.notes) == 0 &&
           pw_notify_start(job.notes) == 0 &&
           pw_rma_key_pack(region, job.card.key, sizeof(job.card.key)) == 0;
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first: what is left then is closed. */
static int finish(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm, (void)keyval, (void)value, (void)state;
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        struct window *w = atomic_load(&job.windows[slot]);
        if (w != NULL) {
            MPI_Win handle = w->handle;
            handle_remove(handle);
            window_end(w);
            real.Win_free(&handle);
        }
    }
    watch_leave(NULL);
    peers_close();
    pw_notify_close(job.notes);
    window_unregister(job.control);
    pw_rma_close(job.rma);
    PtlEQFree(job.eq);
    PtlNIFini(job.ni);
    PtlFini();
    return MPI_SUCCESS;
}

static void finish_at_end(void)
{
    int keyval;
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finish, &keyval, NULL) == MPI_SUCCESS) {
        PMPI_Comm_set_attr(MPI_COMM_SELF, keyval, NULL);
    }
}

/* Opens what the process needs; called once. */
static enum reason open_own(void)
{
    ptl_ni_limits_t limits;
    struct pw_rma_config config = {1, &job.ni, &limits, 0};
    ptl_process_t id;
    const char *path = getenv("PINWHEEL_RMA_PATH");
    memset(job.free_slots, 0xff, sizeof(job.free_slots));
    if (path != NULL && strcmp(path, "mpi") == 0) {
        return REASON_WANTED;
    }
    if (PtlInit() != PTL_OK || PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
                                         PTL_PID_ANY, NULL, &limits, &job.ni) != PTL_OK) {
        return REASON_INTERFACE;
    }
    if (PtlEQAlloc(job.ni, 4, &job.eq) != PTL_OK || PtlGetPhysId(job.ni, &id) != PTL_OK ||
        pw_rma_open(&config, &job.rma) != 0 || !open_control()) {
        return REASON_INTERFACE;
    }
    job.card.nid = id.phys.nid;
    job.card.pid = id.phys.pid;
    finish_at_end();
    return REASON_NONE;
}

/* The job's key, for processes on several hosts. */
static void set_key(MPI_Comm comm, int rank, bool draw)
{
    char key[65] = "";
    const char *given = getenv("PINWHEEL_JOB_KEY");
    if (!draw) {
        if (given != NULL) {
            PtlSetJobKey(given, strlen(given));
        }
        return;
    }
    if (rank == 0) {
        unsigned char bytes[32];
        if (getrandom(bytes, sizeof(bytes), 0) == (ssize_t)sizeof(bytes)) {
            for (size_t i = 0; i < sizeof(bytes); i++) {
                snprintf(key + 2 * i, 3, "%02x", bytes[i]);
            }
        }
    }
    PMPI_Bcast(key, sizeof(key), MPI_CHAR, 0, comm);
    if (!job.open) {
        PtlSetJobKey(key, strlen(key));
    }
}

/* ---- Ranks of a communicator ---- */

static uint32_t process_place(const struct ranks *r, uint32_t nid, uint32_t pid)
{
    uint64_t number = ((uint64_t)nid << 32 | pid) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(number >> 32) & (r->by_process_room - 1);
}

uint32_t ranks_find(const struct ranks *r, uint32_t nid, uint32_t pid)
{
    for (uint32_t at = process_place(r, nid, pid); r->by_process[at] != 0;
         at = (at + 1) & (r->by_process_room - 1)) {
        const struct card *c = &r->peers[r->by_process[at] - 1]->card;
        if (c->nid == nid && c->pid == pid) {
            return r->by_process[at] - 1;
        }
    }
    return UINT32_MAX;
}

static struct ranks *all_ranks; /* guarded by job.lock */

static void ranks_free(struct ranks *r)
{
    free(r->by_process);
    free(r->peers);
    free(r);
}

void ranks_drop(struct ranks *r)
{
    pthread_mutex_lock(&job.lock);
    if (--r->users == 0) {
        struct ranks **at = &all_ranks;
        while (*at != r) {
            at = &(*at)->next;
        }
        *at = r->next;
        ranks_free(r);
    }
    pthread_mutex_unlock(&job.lock);
}

static struct ranks *ranks_use(struct ranks *r)
{
    pthread_mutex_lock(&job.lock);
    r->users++;
    pthread_mutex_unlock(&job.lock);
    return r;
}

/* Those that are there already, or `r`; with one user more. */
static struct ranks *ranks_once(struct ranks *r)
{
    pthread_mutex_lock(&job.lock);
    struct ranks *is = all_ranks;
    while (is != NULL && (is->size != r->size || is->rank != r->rank ||
                          memcmp(is->peers, r->peers, r->size * sizeof(struct peer *)) != 0)) {
        is = is->next;
    }
    if (is != NULL) {
        ranks_free(r);
    } else {
        r->next = all_ranks;
        all_ranks = is = r;
    }
    is->users++;
    pthread_mutex_unlock(&job.lock);
    return is;
}

static bool ranks_fill(struct ranks *r, const struct card *cards)
{
    bool all = true;
    r->by_process_room = 4;
    while (r->by_process_room < 2 * r->size) {
        r->by_process_room *= 2;
    }
    r->peers = calloc(r->size, sizeof(struct peer *));
    r->by_process = calloc(r->by_process_room, sizeof(uint32_t));
    if (r->peers == NULL || r->by_process == NULL) {
        return false;
    }
    r->one_host = true;
    pthread_mutex_lock(&job.lock);
    for (uint32_t i = 0; i < r->size; i++) {
        r->reason = cards[i].reason > r->reason ? cards[i].reason : r->reason;
        r->one_host &= cards[i].host == cards[0].host;
        r->peers[i] = peer_of(&cards[i]);
        all &= r->peers[i] != NULL;
        uint32_t at = process_place(r, cards[i].nid, cards[i].pid);
        while (r->by_process[at] != 0) {
            at = (at + 1) & (r->by_process_room - 1);
        }
        r->by_process[at] = i + 1;
    }
    pthread_mutex_unlock(&job.lock);
    return all;
}

/* Opens this process's part, which other ranks of the communicator may have done already. */
static void open_with(MPI_Comm comm, int rank)
{
    uint64_t host = host_number(), most[3];
    uint64_t mine[3] = {host, ~host, getenv("PINWHEEL_JOB_KEY") == NULL};
    PMPI_Allreduce(mine, most, 3, MPI_UINT64_T, MPI_MAX, comm);
    bool one_host = most[0] == ~most[1];
    set_key(comm, rank, !one_host && most[2] != 0);
    pthread_mutex_lock(&job.lock);
    if (!job.open) {
        opened = open_own();
        job.card.host = host;
        job.card.reason = opened;
        job.open = true;
    }
    pthread_mutex_unlock(&job.lock);
}

static int ranks_make(MPI_Comm comm, struct ranks **ranks)
{
    struct ranks *r = calloc(1, sizeof(*r));
    int rank = 0, size = 1;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    struct card *cards = calloc((size_t)size, sizeof(*cards));
    open_with(comm, rank);
    struct card mine = job.card;
    if (r == NULL || cards == NULL) {
        free(r);
        free(cards);
        return MPI_ERR_NO_MEM; /* the others wait in vain: there is no memory to tell them */
    }
    PMPI_Allgather(&mine, sizeof(mine), MPI_BYTE, cards, sizeof(mine), MPI_BYTE, comm);
    r->rank = (uint32_t)rank;
    r->size = (uint32_t)size;
    int rc = ranks_fill(r, cards) ? MPI_SUCCESS : MPI_ERR_NO_MEM;
    if (rc == MPI_SUCCESS) {
        *ranks = ranks_once(r);
    } else {
        ranks_free(r);
    }
    free(cards);
    return rc;
}

static int delete_ranks(MPI_Comm comm, int keyval, void *value, void *state)
{
    (void)comm, (void)keyval, (void)state;
    ranks_drop(value);
    return MPI_SUCCESS;
}

int job_ranks(MPI_Comm comm, struct ranks **ranks)
{
    static int keyval = MPI_KEYVAL_INVALID;
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    int there = 0;
    pthread_mutex_lock(&once);
    if (keyval == MPI_KEYVAL_INVALID) {
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_ranks, &keyval, NULL);
    }
    pthread_mutex_unlock(&once);
    PMPI_Comm_get_attr(comm, keyval, ranks, &there);
    if (!there) {
        int rc = ranks_make(comm, ranks);
        if (rc == MPI_SUCCESS) {
            rc = PMPI_Comm_set_attr(comm, keyval, *ranks);
        }
        if (rc != MPI_SUCCESS) {
            return rc;
        }
    }
    ranks_use(*ranks);
    return MPI_SUCCESS;
}

/* ---- Progress ---- */

void job_idle(struct idle *i)
{
    enum { SPINS = 64, YIELDS = 4096, EVERY = 16, NAP_NS = 20000 };
    ptl_event_t none;
    uint32_t turn = i->turns++;
    PtlEQGet(job.eq, &none);
    if (turn < SPINS) {
        return;
    }
    if (turn % EVERY == 0) {
        int flag; /* others may wait for messages that this process has begun */
        PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
    }
    if (turn < YIELDS) {
        sched_yield();
    } else {
        struct timespec nap = {0, NAP_NS};
        nanosleep(&nap, NULL);
    }
}

void job_take_notes(void)
{
    struct pw_notice notice;
    bool over = true;
    pthread_mutex_lock(&job.notes_lock);
    while (pw_notify_test(job.notes, &over, &notice) == 0 && over) {
        struct window *w = atomic_load(&job.windows[notice.tag % SLOTS]);
        uint32_t rank = w == NULL
                            ? UINT32_MAX
                            : ranks_find(w->ranks, notice.source.phys.nid, notice.source.phys.pid);
        if (rank != UINT32_MAX && notice.tag >> SLOT_BITS <= SYNC_REFUSED) {
            enum sync_note note = (enum sync_note)(notice.tag >> SLOT_BITS);
            sync_noted(note == SYNC_WANT ? &w->exposure : &w->sync, rank, note,
                       (uint32_t)notice.offset);
        }
        pw_notify_start(job.notes);
    }
    pthread_mutex_unlock(&job.notes_lock);
}
