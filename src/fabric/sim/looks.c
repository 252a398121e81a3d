/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Looks of a program at nothing. Each takes time, and a rank whose time has come to its `until` has
 * to hand its turn back, so that a program that looks for long is slow to simulate. Looks that
 * nobody could tell from looks that were made are skipped:
 *
 *      looks 1,024 times in a row ── the process is as it was some looks ago, to the bit ──► a
 * round of a loop that has no way out but an answer: rounds that end before the next event, for 1
 * us at once at most, are not made; the looks after them are
 *
 * Invariants:
 *   - "As it was" is the registers of the thread, its stack, all memory that is this process's
 * alone and that it may write, but for the NIC's and the clock's own. A loop that counts is never
 * as it was, wherever it counts. Frames of this library on the stack may have old words in them: so
 *     a loop may be as it was and not be found to be.
 *   - Whatever else a program may do in a loop, and that leaves no trace there, ends the row of
 *     looks by sim_clock_break(): to let time pass, to look at a clock, to read or write a file.
 *   - There is one thread and one process that could change that, and nothing has happened at the
 *     NIC since the first of the row.
 *   - So it changes no result whether looks are skipped; it changes how many were made.
 */
#include "fabric/sim/looks.h"

#include "base/sys.h"

#include <fcntl.h>
#include <string.h>

enum {
    MEMORY_MOST = 8 << 20, /* bytes of a process whose state is taken */
    MAPS = 1 << 18,        /* bytes of its list of mappings */
    PAGES = 1 << 12,       /* that are asked for at once */
    PAGE = 4096,
    FIRST_MOST = 1 << 20,
    FIRST_LOOKS = 1024, /* in a row before the first state is taken: that takes as long as these */
    STACK_SCRUBBED = 1 << 12 /* bytes below a function that are used between two looks */
};

/* ---- the state of the process ---- */

struct span {
    uintptr_t begin, end;
};

/* What it takes to take it, which is none of it. */
static struct {
    char maps[MAPS];
    unsigned char here[PAGES];
    struct span without[3];
} taking;

/* Adds a span, or what of it is before and behind those that are left out, from the i-th on. */
static uint64_t sum_span(uint64_t sum, struct span s, unsigned i)
{
    for (; i < sizeof(taking.without) / sizeof(taking.without[0]); i++) {
        struct span w = taking.without[i];
        if (w.begin < s.end && s.begin < w.end) {
            struct span before = {s.begin, w.begin}, after = {w.end, s.end};
            sum = before.begin < before.end ? sum_span(sum, before, i + 1) : sum;
            return after.begin < after.end ? sum_span(sum, after, i + 1) : sum;
        }
    }
    return sim_sum(sum, (const void *)s.begin, s.end - s.begin);
}

/* Reads the next line of /proc/self/maps; NULL: there is none. */
static const char *next_map(const char *text, struct span *s, bool *ours)
{
    uint64_t n[2] = {0, 0};
    const char *end = strchr(text, '\n');
    if (end == NULL) {
        return NULL;
    }
    for (unsigned i = 0; i < 2; i++, text++) {
        for (; *text != '-' && *text != ' ' && text < end; text++) {
            n[i] = n[i] * 16 + (uint64_t)(*text <= '9' ? *text - '0' : *text - 'a' + 10);
        }
    }
    *s = (struct span){n[0], n[1]};
    *ours = strncmp(text, "rw", 2) == 0 && text[3] == 'p';
    return end + 1;
}

/* The mappings of the process, without malloc(), which would change its state. */
static const char *read_maps(void)
{
    char *text = taking.maps;
    size_t have = 0;
    long n = 1, fd = SYS_CALL(SYS_openat, AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && have < MAPS - 1 &&
           (n = SYS_CALL(SYS_read, fd, text + have, MAPS - 1 - have)) > 0) {
        have += (size_t)n;
    }
    if (fd >= 0) {
        SYS_CALL(SYS_close, fd);
    }
    text[have] = '\0';
    return fd >= 0 && n == 0 ? text : NULL;
}

/* Adds the pages of a span that are in memory; the others have not been touched lately. False: more
 * than MEMORY_MOST, or it cannot be found out. */
static bool sum_pages(uint64_t *sum, struct span s, size_t *bytes)
{
    unsigned char *here = taking.here;
    uintptr_t begin = s.begin / PAGE * PAGE;
    for (size_t pages; begin < s.end; begin += pages * PAGE) {
        pages = (s.end - begin + PAGE - 1) / PAGE;
        pages = pages < PAGES ? pages : PAGES;
        if (SYS_CALL(SYS_mincore, begin, pages * PAGE, here) != 0) {
            return false;
        }
        for (size_t i = 0; i < pages; i++) {
            struct span page = {begin + i * PAGE, begin + (i + 1) * PAGE};
            page.begin = page.begin < s.begin ? s.begin : page.begin;
            if ((here[i] & 1) != 0 && page.begin < page.end) {
                *bytes += PAGE;
                *sum = sum_span(sim_mix(*sum, page.begin), page, 0);
            }
        }
    }
    return *bytes <= MEMORY_MOST;
}

/* The sum of all above this function's frame on the stack, and of all memory. */
static __attribute__((noinline)) bool sum_memory(const struct sim_clock *c, uint64_t *sum)
{
    uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
    const char *at = read_maps();
    struct span s;
    size_t bytes = 0;
    bool ours, all = at != NULL;
    taking.without[0] = (struct span){(uintptr_t)c, (uintptr_t)c + sizeof(*c)};
    taking.without[1] = (struct span){(uintptr_t)c->nic, (uintptr_t)c->nic + c->nic_size};
    taking.without[2] = (struct span){(uintptr_t)&taking, (uintptr_t)&taking + sizeof(taking)};
    *sum = 1;
    while (all && (at = next_map(at, &s, &ours)) != NULL) {
        s.begin = s.begin <= frame && frame < s.end ? frame : s.begin;
        all = !ours || sum_pages(sum, s, &bytes);
    }
    return all;
}

/* Registers that a call keeps are on the stack, above the frame of what is called from here. */
static __attribute__((noinline)) bool take_state(const struct sim_clock *c, uint64_t *sum)
{
    __builtin_unwind_init();
    bool taken = sum_memory(c, sum);
    __asm__ volatile("" ::: "memory"); /* no tail call: this frame is to be there */
    return taken;
}

/* What functions have left on the stack below is none of the program's state, and has times in
 * it. */
static __attribute__((noinline)) void clear_stack(void)
{
    char room[STACK_SCRUBBED];
    memset(room, 0, sizeof(room));
    __asm__ volatile("" ::"r"(room) : "memory");
}

/* ---- looks ---- */

static bool may_skip(const struct sim_clock *c)
{
    bool alone = c->tasks->next == NULL && atomic_load(&c->segment->used) <= c->segment->ranks;
    return c->looks > SIM_LOOKS && !c->passing && alone && sim_machine(c)->no_skip == 0;
}

/* Whether the state at this look is to be taken: that of look number 1,024, 2,048, and so on, so
 * that it takes little beside the looks, later where that was in vain before; and those of the
 * looks behind it. */
static bool wants_state(struct sim_clock *c)
{
    struct sim_loop *l = &c->loop;
    if (!may_skip(c)) {
        l->states = l->round = 0;
    }
    return may_skip(c) && l->round == 0 && (l->states != 0 || c->looks >= l->next);
}

/* Finds out how many looks ago the process was as it is now, if nothing but looks has taken time
 * since. */
static void compare(struct sim_clock *c, bool taken, uint64_t state)
{
    struct sim_loop *l = &c->loop;
    uint64_t time = c->now + c->debt;
    if (l->states == 0) {
        l->next = 2 * c->looks;
        l->time = time;
    }
    bool looked = time - l->time == l->states * sim_machine(c)->look;
    for (unsigned i = l->states; taken && looked && l->round == 0 && i-- != 0;) {
        l->round = l->state[i] == state ? l->states - i : 0;
    }
    l->round = l->round * sim_machine(c)->look <= SIM_SKIP ? l->round : 0;
    l->state[l->states++] = state;
    if (l->round != 0) {
        l->first = FIRST_LOOKS;
    } else if (!taken || !looked || l->states == SIM_STATES) {
        l->first = l->first < FIRST_MOST ? 2 * l->first : l->first;
        l->states = 0;
    }
}

static void count_look(struct sim_clock *c)
{
    struct sim_loop *l = &c->loop;
    if (c->looks == 0) {
        unsigned first = l->first != 0 ? l->first : FIRST_LOOKS;
        *l = (struct sim_loop){
            .next = first, .first = first, .since = c->now + c->debt, .lead = c->lead};
    }
    c->looks += c->looks != UINT32_MAX;
    c->figures.counts.looks++;
}

/* Nothing that changes from look to look is in the frame of this function. */
__attribute__((noinline)) void sim_clock_look(struct sim_clock *c)
{
    uint64_t state = 0;
    count_look(c);
    if (wants_state(c)) {
        bool taken = take_state(c, &state);
        compare(c, taken, state);
    }
    c->loop.due = c->loop.round != 0;
    c->debt += sim_machine(c)->look;
}

static void hand_over(struct sim_clock *c, uint64_t next)
{
    c->me->outside = SIM_INSIDE;
    sim_clock_hand_over(c, next, SIM_POLLS);
}

/* Whether nothing can happen at all is what the coordinator knows: it is asked once. */
static void tell_silence(struct sim_clock *c)
{
    if (c->looks > SIM_LOOKS && !c->loop.told && c->now - c->last >= SIM_SILENCE) {
        c->loop.told = true;
        hand_over(c, c->now);
    }
}

/* When the last round that may be skipped now is over: before the next event, and not after the
 * coordinator is to be asked. */
static uint64_t end_of_skip(const struct sim_clock *c, uint64_t round)
{
    uint64_t event = sim_clock_first(c), end = c->now + SIM_SKIP;
    uint64_t silent = c->last + SIM_SILENCE;
    end = !c->loop.told && silent < end ? silent : end;
    end = event <= end ? event - 1 : end;
    return end > c->now ? c->now + (end - c->now) / round * round : c->now;
}

static void skip(struct sim_clock *c)
{
    uint64_t look = sim_machine(c)->look, round = c->loop.round * look, start = c->now, to = start;
    if (c->passing || c->looks == 0) {
        return;
    }
    c->passing = true;
    while (c->loop.due && c->debt == look && (to = end_of_skip(c, round)) > start &&
           to >= c->until) {
        hand_over(c, to);
    }
    c->loop.due = false;
    c->now = to > c->now ? to : c->now;
    c->figures.counts.skipped += to - start;
    c->figures.counts.looks += (to - start) / look;
    tell_silence(c);
    c->passing = false;
}

void sim_clock_pass_look(struct sim_clock *c)
{
    skip(c);
    sim_clock_settle(c);
    if (c->looks >= SIM_LOOKS && c->loop.round == 0) {
        clear_stack();
    }
}
