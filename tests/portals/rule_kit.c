/* SPDX-License-Identifier: BSD-3-Clause */
/* What the rules share; see rule_kit.h. */
#include "rule_kit.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- One process ----------------------------------------------------------- */

ptl_handle_md_t rule_md(struct scene *s, void *start, ptl_size_t length)
{
    return suite_md(s, start, length, PTL_MD_EVENT_SEND_DISABLE);
}

void rule_put(struct scene *s, ptl_handle_md_t md, ptl_size_t length, ptl_match_bits_t bits,
              ptl_ni_fail_t fail)
{
    OK(PtlPut(md, 0, length, PTL_ACK_REQ, s->to, SUITE_PT, bits, 0, NULL, bits));
    EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = fail);
}

enum { NOBODYS_PT = 60 }; /* no index that cases allocate */

void rule_meet(struct scene *s, ptl_process_t peer)
{
    static char nothing;
    ptl_handle_md_t md = rule_md(s, &nothing, 0);
    OK(PtlPut(md, 0, 0, PTL_ACK_REQ, peer, NOBODYS_PT, 0, 0, NULL, 0));
    EXPECT(s->mdeq, PTL_EVENT_ACK, .fail = PTL_NI_DROPPED);
    OK(PtlMDRelease(md));
}

void rule_nudge(struct scene *s, int ms)
{
    ptl_ct_event_t ignored;
    uint64_t end = suite_now_ms() + (uint64_t)ms;
    for (int looks = 0; looks < ms || suite_now_ms() < end; looks++) { /* not of time alone */
        OK(PtlCTGet(s->ct, &ignored));
        sched_yield();
    }
}

static bool is_stopped(int pid)
{
    char name[64], line[512], state = '?';
    snprintf(name, sizeof(name), "/proc/%d/stat", pid);
    FILE *f = fopen(name, "r");
    if (f != NULL && fgets(line, sizeof(line), f) != NULL) {
        const char *end = strrchr(line, ')');
        state = end != NULL && end[1] == ' ' ? end[2] : '?';
    }
    if (f != NULL) {
        fclose(f);
    }
    return state == 'T';
}

void rule_await_stop(struct scene *s, int pid)
{
    uint64_t end = suite_deadline();
    while (!is_stopped(pid)) {
        rule_nudge(s, 1);
        CHECK(suite_now_ms() < end);
    }
    rule_nudge(s, 30);
}

void rule_await_begin(struct scene *s, int pid, const unsigned char *memory, unsigned seed)
{
    unsigned char first[64], seen[64];
    suite_fill(first, sizeof(first), seed);
    suite_peek(seen, memory, sizeof(seen));
    for (uint64_t end = suite_deadline(); memcmp(seen, first, sizeof(first)) != 0;) {
        CHECK(kill(pid, SIGCONT) == 0);
        rule_nudge(s, 2);
        CHECK(kill(pid, SIGSTOP) == 0);
        rule_await_stop(s, pid);
        CHECK(suite_now_ms() < end);
        suite_peek(seen, memory, sizeof(seen));
    }
}

void rule_await_change(struct scene *s, const unsigned char *byte, unsigned char from)
{
    ptl_ct_event_t ignored;
    unsigned char now = from;
    for (uint64_t end = suite_deadline(); now == from; suite_peek(&now, byte, 1)) {
        OK(PtlCTGet(s->ct, &ignored));
        CHECK(suite_now_ms() < end);
    }
}

bool rule_ends_as(const unsigned char *memory, size_t length, unsigned seed)
{
    static unsigned char *whole;
    static size_t filled;
    if (filled != length) {
        whole = realloc(whole, length);
        CHECK(whole != NULL);
        suite_fill(whole, length, seed);
        filled = length;
    }
    unsigned char seen[64];
    suite_peek(seen, memory + length - sizeof(seen), sizeof(seen));
    return memcmp(seen, whole + length - sizeof(seen), sizeof(seen)) == 0;
}

ptl_ni_limits_t rule_some_limits(void)
{
    return (ptl_ni_limits_t){.max_entries = 1024,
                             .max_unexpected_headers = 1024,
                             .max_mds = 1024,
                             .max_cts = 1024,
                             .max_eqs = 1024,
                             .max_pt_index = 63,
                             .max_iovecs = 64,
                             .max_list_size = 1024,
                             .max_triggered_ops = 1024,
                             .max_msg_size = 1u << 30,
                             .max_atomic_size = 512,
                             .max_fetch_atomic_size = 512,
                             .max_waw_ordered_size = 1u << 20,
                             .max_war_ordered_size = 1u << 20,
                             .max_volatile_size = 512};
}

ptl_process_t rule_self_id(struct scene *s)
{
    ptl_process_t id;
    OK(PtlGetPhysId(s->ni, &id));
    if (s->logical) {
        OK(PtlSetMap(s->ni, 1, &id));
        memset(&id, 0, sizeof(id));
    }
    return id;
}

void rule_open(struct scene *s, const ptl_ni_limits_t *desired)
{
    ptl_pt_index_t index;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, desired, &s->limits, &s->ni));
    s->initiator = s->target = true;
    s->to = s->from = rule_self_id(s);
    OK(PtlGetUid(s->ni, &s->uid));
    OK(PtlEQAlloc(s->ni, SUITE_EVENTS, &s->eq));
    OK(PtlEQAlloc(s->ni, SUITE_EVENTS, &s->mdeq));
    OK(PtlCTAlloc(s->ni, &s->ct));
    OK(PtlCTAlloc(s->ni, &s->mdct));
    OK(PtlPTAlloc(s->ni, 0, s->eq, SUITE_PT, &index));
}

void rule_close(struct scene *s)
{
    OK(PtlNIFini(s->ni));
    PtlFini();
}

/* ---- Crowds ---------------------------------------------------------------- */

struct page {
    atomic_int arrived, generation, living;
    struct {
        _Atomic uint64_t nid, pid, system_pid;
        _Atomic uint64_t word[CROWD_WORDS];
        atomic_bool killed;
    } member[CROWD];
};

struct crowd crowd;
static struct page *page;

struct start {
    const struct scene *s;
    int rank, size;
    unsigned pt_options;
    ptl_size_t events;
    const ptl_ni_limits_t *desired;
    void (*member)(struct scene *s);
};

void crowd_show(int slot, uint64_t value)
{
    atomic_store(&page->member[crowd.rank].word[slot], value);
}

uint64_t crowd_look(int rank, int slot)
{
    return atomic_load(&page->member[rank].word[slot]);
}

static void pass_time(struct scene *s, int turn)
{
    ptl_ct_event_t ignored;
    PtlCTGet(s->ct, &ignored);
    sched_yield();
    if (turn > 2000) {
        suite_sleep_ms(1);
    }
}

void crowd_await(struct scene *s, int rank, int slot, uint64_t value)
{
    for (int i = 0; crowd_look(rank, slot) != value; i++) {
        pass_time(s, i);
    }
}

void crowd_step(struct scene *s)
{
    int generation = atomic_load(&page->generation);
    atomic_fetch_add(&page->arrived, 1);
    for (int i = 0; atomic_load(&page->generation) == generation; i++) {
        int all = atomic_load(&page->living);
        if (atomic_compare_exchange_strong(&page->arrived, &all, 0)) {
            atomic_fetch_add(&page->generation, 1);
            return;
        }
        pass_time(s, i);
    }
}

void crowd_kill(int rank)
{
    atomic_store(&page->member[rank].killed, true);
    CHECK(kill(crowd.pid[rank], SIGKILL) == 0);
    atomic_fetch_sub(&page->living, 1);
}

static void learn_ids(struct scene *s)
{
    ptl_process_t mine;
    OK(PtlGetPhysId(s->ni, &mine));
    atomic_store(&page->member[crowd.rank].nid, mine.phys.nid);
    atomic_store(&page->member[crowd.rank].pid, mine.phys.pid);
    atomic_store(&page->member[crowd.rank].system_pid, (uint64_t)getpid());
    crowd_step(s);
    for (int r = 0; r < crowd.size; r++) {
        crowd.phys[r].phys.nid = (ptl_nid_t)page->member[r].nid;
        crowd.phys[r].phys.pid = (ptl_pid_t)page->member[r].pid;
        crowd.pid[r] = (int)page->member[r].system_pid;
        crowd.id[r] = crowd.phys[r];
        if (s->logical) {
            memset(&crowd.id[r], 0, sizeof(crowd.id[r]));
            crowd.id[r].rank = (ptl_rank_t)r;
        }
    }
    if (s->logical) {
        OK(PtlSetMap(s->ni, (ptl_size_t)crowd.size, crowd.phys));
    }
}

static void life(void *argument)
{
    const struct start *start = argument;
    struct scene scene = *start->s, *s = &scene;
    crowd.rank = start->rank;
    crowd.size = start->size;
    s->rank = start->rank;
    s->size = 1; /* STEP() is for pairs */
    s->target = start->rank == 0;
    s->initiator = !s->target;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, start->desired, &s->limits, &s->ni));
    OK(PtlGetUid(s->ni, &s->uid));
    s->ct = suite_ct(s);
    s->mdct = suite_ct(s);
    s->eq = suite_eq(s, start->events != 0 ? start->events : SUITE_EVENTS);
    s->mdeq = suite_eq(s, SUITE_EVENTS);
    suite_pt(s, start->pt_options, s->eq, SUITE_PT);
    learn_ids(s);
    s->to = crowd.id[0];
    s->from = crowd.id[crowd.rank];
    crowd_step(s);
    start->member(s);
    crowd_step(s);
    OK(PtlNIFini(s->ni));
    PtlFini();
}

static int rank_of(int pid, const int *pids, int size)
{
    for (int r = 0; r < size; r++) {
        if (pids[r] == pid) {
            return r;
        }
    }
    return -1;
}

void crowd_run(struct scene *s, int size, unsigned pt_options, ptl_size_t events,
               const ptl_ni_limits_t *desired, void (*member)(struct scene *s))
{
    page = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    atomic_store(&page->living, size);
    struct start start = {s, 0, size, pt_options, events, desired, member};
    int pids[CROWD];
    for (int r = 0; r < size; r++) {
        start.rank = r;
        pids[r] = suite_fork(life, &start);
    }
    for (int left = size; left > 0;) {
        int status, pid = waitpid(-1, &status, 0);
        if (pid < 0 && errno == EINTR) {
            continue;
        }
        int r = rank_of(pid, pids, size);
        if (r < 0) {
            continue;
        }
        left--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 1) {
            _exit(1); /* its message is there */
        }
        if (status != 0 && !atomic_load(&page->member[r].killed)) {
            FAIL("member %d of the crowd ended with wait status 0x%x", r, status);
        }
    }
    munmap(page, sizeof(*page));
}
