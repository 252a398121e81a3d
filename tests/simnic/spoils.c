/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job of which one rank writes random words to the memory that it shares with `pinwheel sim`:
 *
 *      spoils ROUNDS VICTIM PART SEED [WORDS]
 *
 * Ranks compute for a random time and put to the next one, ROUNDS times; in a random round rank
 * VICTIM writes WORDS words (0: none) to the part. PART `late` has a process that is in no
 * simulation do so, some real time later. Each rank checks what has come and says when it has
 * ended, in ps.
 */
#include "../../examples/start.h"

#include "fabric/sim/segment.h"
#include "pinwheel_sim.h"

#include <sys/syscall.h>

enum { BITS = 1, MOST = 9000, REACH = 8192 };

static uint64_t seed;

static uint64_t random_word(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* Where the memory is; it begins where it may be read only. */
static struct sim_segment *find_segment(void)
{
    char line[512];
    unsigned long at = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps != NULL && at == 0 && fgets(line, sizeof(line), maps) != NULL) {
        at = strstr(line, "pinwheel-sim (deleted)") != NULL ? strtoul(line, NULL, 16) : 0;
    }
    if (maps != NULL) {
        fclose(maps);
    }
    return (struct sim_segment *)at;
}

/* A part, from where on and how long. */
struct part {
    const char *name;
    void *at;
    size_t bytes;
};

static struct part find_part(const char *name, uint32_t rank)
{
    struct sim_segment *s = find_segment();
    struct sim_rank *me = sim_place(s, rank), *other = sim_place(s, rank == 0 ? 1 : 0);
    const struct part parts[] = {
        {"layout", s, sizeof(*s) + s->ranks * sizeof(s->address[0])},
        {"board", sim_board(s), sizeof(struct sim_board) + 2 * sim_places(s) * sizeof(uint32_t)},
        {"words", me, offsetof(struct sim_rank, record)},
        {"record", &me->record, sizeof(me->record)},
        {"figures", &me->figures, sizeof(me->figures)},
        {"out", me->out, REACH},
        {"in", me->in, REACH},
        {"child", sim_place(s, sim_child(s, rank)), REACH},
        {"other", other, REACH},
        {"spans", sim_spans_of(s, rank), REACH},
    };
    size_t count = sizeof(parts) / sizeof(parts[0]);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(parts[i].name, name) == 0) {
            return parts[i];
        }
    }
    return parts[random_word() % (count - 1)]; /* any but spans, for which there may be no room */
}

static void spoil(const char *name, uint32_t rank, unsigned long words)
{
    struct part p = find_part(name, rank);
    for (unsigned long i = 0; i < words; i++) {
        volatile uint32_t *word = (volatile uint32_t *)p.at + random_word() % (p.bytes / 4);
        uint32_t bit = UINT32_C(1) << random_word() % 32;
        uint64_t kind = random_word() % 4;
        *word = kind == 0 ? *word ^ bit : kind == 1 ? 0 : (uint32_t)random_word() >> kind * 8;
    }
}

/* Has a process do that which the simulation knows nothing of. */
static void spoil_late(uint32_t rank, unsigned long words)
{
    if (syscall(SYS_clone, 0, NULL, NULL, NULL, NULL) == 0) {
        for (unsigned long i = 0; i < words; i++) {
            struct timespec t = {0, (long)(random_word() % 3000000)};
            syscall(SYS_nanosleep, &t, NULL);
            spoil("any", rank, 1);
        }
        syscall(SYS_exit_group, 0);
    }
}

static uint64_t mixed(uint64_t a, uint64_t b)
{
    return sim_mix(sim_mix(1, a), b);
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long value[5] = {0, 0, 0, 0, 1};
    start(&s, 1, 0);
    for (int i = 1; i < argc && i <= 5; i++) {
        if (i != 3 && !number(argv[i], 0, 1ul << 30, &value[i - 1])) {
            usage(&s, "ROUNDS VICTIM PART SEED [WORDS]");
        }
    }
    seed = value[3] * 2 + 1;
    for (int i = 0; i < 20; i++) {
        random_word();
    }
    uint8_t *from = memory(MOST), *to = memory(MOST);
    ptl_handle_ct_t came = counter(&s);
    ptl_handle_md_t md = source(&s, from, MOST, PTL_CT_NONE);
    ptl_me_t me = entry(to, MOST, BITS, came);
    ptl_handle_me_t handle;
    uint64_t when = random_word() % value[0];
    size_t wrong = 0;
    check(PtlMEAppend(s.ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    meet(&s);
    for (uint64_t i = 0; i < value[0]; i++) {
        size_t length = mixed(i, 7) % MOST;
        PtlSimCompute(mixed(i, s.rank) % 2000);
        if (i == when && s.rank == value[1] && argc > 3) {
            if (strcmp(argv[3], "late") == 0) {
                spoil_late(s.rank, value[4]);
            } else {
                spoil(argv[3], s.rank, value[4]);
            }
        }
        memset(from, (int)(s.rank + i), length);
        check(PtlPut(md, 0, length, PTL_NO_ACK_REQ, rank_id((s.rank + 1) % s.size), INDEX, BITS, 0,
                     NULL, 0),
              "PtlPut");
        await(came, i + 1);
        for (size_t k = 0; k < length; k++) {
            wrong += to[k] != (uint8_t)((s.rank + s.size - 1) % s.size + i);
        }
        meet(&s);
    }
    printf("%u %llu\n", s.rank, (unsigned long long)PtlSimNow());
    return finish(&s, wrong != 0);
}
