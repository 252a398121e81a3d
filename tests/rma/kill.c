/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that is killed, or stopped for a while, at a labelled point of the library:
 *
 *      pinwheel run -n 3 --keep-going rma_kill kill|stop LABEL:N
 *
 * All ranks put, get, combine and notify each other's memory, and flush, round by round; some of it
 * is mapped by them. Rank 0 is the victim when it passes LABEL for the N-th time. Killed: every
 * other rank's flush of it, and its wait for a notice of it, end with -EPIPE, and all else goes on.
 * Stopped: nothing fails. Each rank that sees what it must prints a line.
 */
#include "../../examples/rma.h"

#include "pinwheel_notify.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUNDS = 80, STOPPED_MS = 400, WORDS = 1024, HALF = WORDS / 2, MAPPED = 8 * WORDS };
enum { ALL = PW_RMA_READ | PW_RMA_WRITE | PW_RMA_PAIRS | PW_RMA_NOTIFY };
enum { RANKS = 3 };

static const char *label = "";
static int at_pass, stops;

void kill_point(const char *here);

/* What the library calls at its labelled points. */
void kill_point(const char *here)
{
    static atomic_int passed;
    if (strcmp(here, label) != 0 || atomic_fetch_add(&passed, 1) + 1 != at_pass) {
        return;
    }
    if (!stops) {
        raise(SIGKILL);
    }
    pid_t victim = getpid();
    if (_Fork() == 0) { /* more than once, in case it has come here before it is stopped */
        for (int i = 0; i < 50 && getppid() == victim; i++) {
            usleep(STOPPED_MS * 1000);
            kill(victim, SIGCONT);
        }
        _exit(0);
    }
    printf("stopped\n");
    fflush(stdout);
    raise(SIGSTOP);
}

struct rank {
    struct start s;
    struct pw_rma *rma;
    struct pw_rma_region *region, *mapped;
    unsigned char keys[RANKS][PW_RMA_KEY], mapped_keys[RANKS][PW_RMA_KEY];
    /* whose pairs go by the target's library */
    struct pw_rma *asking;
    struct pw_rma_region *served;
    struct pw_rma_key *ask[RANKS];
    struct pw_rma_key *key[RANKS];
    struct pw_notify *told[RANKS];
    bool gone; /* rank 0 is */
};

static uint64_t memory_of_all[WORDS], from[HALF], to[HALF], pairs[8];

/* What a call that concerns a rank gave: 0, or that the victim has ended. */
static void take(struct rank *r, unsigned other, int code, const char *call)
{
    if (code == -EPIPE && other == 0 && !stops) {
        r->gone = true;
    } else if (code != 0) {
        fail("%s on rank %u gave %s", call, other, strerror(-code));
    }
}

static void with(struct rank *r, unsigned other, uint64_t round)
{
    struct pw_rma_request request;
    struct pw_rma_key *key = r->key[other];
    const int32_t pair[2] = {(int32_t)round, 1};
    const uint64_t one = 1;
    expect(pw_rma_put(key, from, sizeof(from), 0, NULL), "pw_rma_put");
    expect(pw_rma_get(key, to, sizeof(to), 0, &request), "pw_rma_get");
    take(r, other, pw_rma_wait(&request), "pw_rma_wait");
    expect(pw_rma_accumulate(key, &one, 1, 8 * HALF, PW_RMA_SUM, PW_RMA_UINT64, NULL),
           "pw_rma_accumulate");
    expect(pw_rma_accumulate(key, pair, 1, 8 * HALF + 8, PW_RMA_MAXLOC, PW_RMA_INT_INT, NULL),
           "pw_rma_accumulate");
    expect(pw_notify_put(key, &round, 8, 8 * (HALF + 2 + r->s.rank), 0, NULL), "pw_notify_put");
    take(r, other, pw_rma_flush(pw_rma_key_peer(key)), "pw_rma_flush");
}

/* Memory that is mapped anew in each round, by one key whole and by the other in buckets. */
static void mapped(struct rank *r, unsigned other, uint64_t round)
{
    struct pw_rma_key *keys[2];
    const uint64_t one = 1;
    for (int i = 0; i < 2; i++) {
        expect(pw_rma_key_open(r->rma, r->mapped_keys[other], PW_RMA_KEY, &keys[i]),
               "pw_rma_key_open");
        expect(pw_rma_put(keys[i], &round, 8, 8 * (1 + r->s.rank), NULL), "pw_rma_put");
        expect(pw_rma_accumulate(keys[i], &one, 1, 0, PW_RMA_SUM, PW_RMA_UINT64, NULL),
               "pw_rma_accumulate");
        take(r, other, pw_rma_flush(pw_rma_key_peer(keys[i])), "pw_rma_flush");
    }
    pw_rma_key_close(keys[0]);
    pw_rma_key_close(keys[1]);
}

/* Pairs that the other rank's library does. */
static void asked(struct rank *r, unsigned other, uint64_t round)
{
    const int32_t pair[2] = {(int32_t)round, 1};
    int32_t old[2];
    struct pw_rma_request request;
    struct pw_rma_key *key = r->ask[other];
    expect(pw_rma_accumulate(key, pair, 1, 0, PW_RMA_MAXLOC, PW_RMA_INT_INT, NULL),
           "pw_rma_accumulate");
    expect(pw_rma_fetch_op(key, pair, old, 8, PW_RMA_MINLOC, PW_RMA_INT_INT, &request),
           "pw_rma_fetch_op");
    take(r, other, pw_rma_wait(&request), "pw_rma_wait");
    take(r, other, pw_rma_flush(pw_rma_key_peer(key)), "pw_rma_flush");
}

static void open_asking(struct rank *r)
{
    ptl_ni_limits_t limits;
    check(PtlNIInit(PTL_IFACE_DEFAULT, PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_PID_ANY, NULL, &limits,
                    &r->s.ni),
          "PtlNIInit");
    struct pw_rma_config config = {1, &r->s.ni, &limits, 0};
    setenv("PINWHEEL_RMA_PATH", "two-sided", 1);
    expect(pw_rma_open(&config, &r->asking), "pw_rma_open");
    unsetenv("PINWHEEL_RMA_PATH");
    expect(pw_rma_register(r->asking, pairs, sizeof(pairs), ALL, &r->served), "pw_rma_register");
    expect(pw_rma_key_pack(r->served, memory_of_all + 64, PW_RMA_KEY), "pw_rma_key_pack");
}

/* The others' notices of this round, which also keep the ranks together. */
static void hear(struct rank *r, unsigned other)
{
    expect(pw_notify_start(r->told[other]), "pw_notify_start");
    take(r, other, pw_notify_wait(r->told[other], NULL), "pw_notify_wait");
}

/* Objects that come and go, so that their points are passed, too. */
static void passing(struct rank *r, unsigned other)
{
    struct pw_rma_region *region;
    struct pw_rma_key *key;
    void *start;
    expect(pw_rma_register(r->rma, from, sizeof(from), ALL, &region), "pw_rma_register");
    expect(pw_rma_key_open(r->rma, r->keys[other], PW_RMA_KEY, &key), "pw_rma_key_open");
    pw_rma_key_close(key);
    expect(pw_rma_unregister(region), "pw_rma_unregister");
    expect(pw_rma_allocate(r->rma, MAPPED, ALL, &start, &region), "pw_rma_allocate");
    expect(pw_rma_unregister(region), "pw_rma_unregister");
}

static void open_all(struct rank *r)
{
    void *start;
    rma_start(&r->s, &r->rma);
    expect(pw_rma_register(r->rma, memory_of_all, sizeof(memory_of_all), ALL, &r->region),
           "pw_rma_register");
    expect(pw_rma_key_pack(r->region, r->keys[r->s.rank], PW_RMA_KEY), "pw_rma_key_pack");
    publish(&r->s, r->keys[r->s.rank]);
    expect(pw_rma_allocate(r->rma, MAPPED, ALL, &start, &r->mapped), "pw_rma_allocate");
    expect(pw_rma_key_pack(r->mapped, memory_of_all, PW_RMA_KEY), "pw_rma_key_pack");
    open_asking(r);
    meet(&r->s);
    for (unsigned i = 0; i < r->s.size; i++) {
        ptl_process_t id = {.rank = i};
        look_up(&r->s, i, r->keys[i]);
        expect(pw_rma_key_open(r->rma, r->keys[i], PW_RMA_KEY, &r->key[i]), "pw_rma_key_open");
        unsigned char bytes[PW_RMA_KEY];
        expect(pw_rma_get(r->key[i], r->mapped_keys[i], PW_RMA_KEY, 0, NULL), "pw_rma_get");
        expect(pw_rma_get(r->key[i], bytes, PW_RMA_KEY, 512, NULL), "pw_rma_get");
        expect(pw_rma_flush(pw_rma_key_peer(r->key[i])), "pw_rma_flush");
        expect(pw_rma_key_open(r->asking, bytes, PW_RMA_KEY, &r->ask[i]), "pw_rma_key_open");
        expect(pw_notify_open(r->region, &id, 0, 1, &r->told[i]), "pw_notify_open");
    }
    meet(&r->s);
}

int main(int argc, char **argv)
{
    static struct rank r;
    char *colon = argc == 3 ? strchr(argv[2], ':') : NULL;
    if (colon == NULL) {
        fprintf(stderr, "usage: pinwheel run -n 3 --keep-going rma_kill kill|stop LABEL:N\n");
        return 2;
    }
    stops = strcmp(argv[1], "stop") == 0;
    setenv("PINWHEEL_RMA_MAP", "20000", 1); /* one region of MAPPED whole */
    open_all(&r);
    if (r.s.size > RANKS) {
        fail("more than %d ranks", RANKS);
    }
    if (r.s.rank == 0) {
        at_pass = atoi(colon + 1);
        *colon = '\0';
        label = argv[2];
    }
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (unsigned i = 1; i <= r.s.size; i++) {
            unsigned other = (r.s.rank + i) % r.s.size;
            if (other != 0 || !r.gone) {
                with(&r, other, round);
            }
            if (other != 0 || !r.gone) {
                mapped(&r, other, round);
            }
            if (other != 0 || !r.gone) {
                asked(&r, other, round);
            }
        }
        passing(&r, (unsigned)round % r.s.size);
        for (unsigned i = r.gone ? 1 : 0; i < r.s.size; i++) {
            hear(&r, i);
        }
    }
    if (r.gone) { /* it stays so, for flushes and waits */
        int code = pw_rma_put(r.key[0], from, 8, 0, NULL);
        expect(code, "pw_rma_put");
        if (pw_rma_flush(pw_rma_key_peer(r.key[0])) != -EPIPE) {
            fail("a flush of the rank that was killed gave no -EPIPE");
        }
        while ((code = (pw_notify_start(r.told[0]), pw_notify_wait(r.told[0], NULL))) == 0) {
        }
        if (code != -EPIPE) {
            fail("a wait for the rank that was killed gave %s", strerror(-code));
        }
    }
    printf("rank %u: %s\n", r.s.rank, r.gone ? "the victim is gone" : "all rounds");
    meet(&r.s);
    for (unsigned i = 0; i < r.s.size; i++) {
        pw_notify_close(r.told[i]);
        pw_rma_key_close(r.key[i]);
        pw_rma_key_close(r.ask[i]);
    }
    while (pw_rma_unregister(r.region) == -EBUSY) {
    }
    while (pw_rma_unregister(r.mapped) == -EBUSY) {
    }
    expect(pw_rma_unregister(r.served), "pw_rma_unregister");
    expect(pw_rma_close(r.asking), "pw_rma_close");
    PtlNIFini(r.s.ni);
    rma_finish(&r.s, r.rma);
    return finish(&r.s, 0);
}
