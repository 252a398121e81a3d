/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A value of figure 3, 7 or 8 of the Firehose paper, for `pinwheel reproduce`: in virtual time with
 * the paper's costs, and of figure 3 live, with mlock() and the user's limit of locked memory. All
 * that is pinned, replaced and missed is what the library decides.
 *
 * Usage: figure 3|3live|7|8 NODES SIZE WAY; prints "N ps", "N misses", or "fails".
 */
#include "figure.h"
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum {
    NODES = 4,
    PUT = 64 << 10,
    PUT_PAGES = PUT / PAGE,
    WARM = 16384,
    PUTS = 4000,
    UPDATES = 1 << 19
};
#define MIB UINT64_C(1048576)
#define M (400 * MIB)
#define MAXVICTIM (50 * MIB)

uint64_t figure_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void give_up(const char *what, int error)
{
    fprintf(stderr, "figure: %s: %s\n", what, strerror(-error));
    exit(1);
}

/* ---- nodes of one process, whose messages arrive in the call that sends them ---- */

struct node {
    unsigned self;
    struct pw_firehose *table;
    uint64_t time; /* virtual, ps */
};

static struct node node[NODES];
static struct node *asking; /* the node whose virtual time goes on */

static int send_now(void *client, unsigned to, const void *bytes, size_t length)
{
    asking->time += COST_MESSAGE;
    return pw_firehose_deliver(node[to].table, ((struct node *)client)->self, bytes, length);
}

static int move_virtually(void *client, const struct pw_firehose_region *unpins, size_t unpin_count,
                          struct pw_firehose_region *pins, size_t pin_count)
{
    asking->time += unpin_count > 0 ? COST_UNPIN : 0;
    asking->time += pin_count > 0 ? COST_PIN + pin_count * COST_PIN_PAGE : 0;
    return 0;
}

static void open_nodes(unsigned nodes)
{
    static const struct pw_firehose_ops ops = {.move = move_virtually, .send = send_now};
    for (unsigned i = 0; i < nodes; i++) {
        struct pw_firehose_config c = {.nodes = nodes,
                                       .self = i,
                                       .flags = PW_FIREHOSE_NO_ENV | PW_FIREHOSE_IN_HANDLER,
                                       .page = PAGE,
                                       .max_message = 16384,
                                       .max_pinnable = M + MAXVICTIM,
                                       .m = M,
                                       .maxvictim = MAXVICTIM,
                                       .ops = &ops,
                                       .client = &node[i]};
        node[i].self = i;
        int rc = pw_firehose_init(&c, &node[i].table, NULL);
        if (rc != 0) {
            give_up("no table", rc);
        }
    }
}

static void pinned(void *context, struct pw_firehose_request *request, int error, int local_hit)
{
    *(int *)context = error == 0 ? 1 : error;
}

/* Pins a range of node `to` for node `from`, and gives it back. */
static void use(unsigned from, unsigned to, uint64_t addr, uint64_t len)
{
    struct pw_firehose_request r = {0}, *one = &r;
    int done = 0;
    asking = &node[from];
    int rc = pw_firehose_remote_pin(node[from].table, to, addr, len, 0, one, NULL, pinned, &done);
    for (unsigned i = 0; rc >= 0 && done == 0 && i < 4; i++) {
        pw_firehose_poll(node[to].table);
        pw_firehose_poll(node[from].table);
    }
    if (rc < 0 || done != 1) {
        give_up("no pin", rc < 0 ? rc : done < 0 ? done : -EINPROGRESS);
    }
    pw_firehose_release(node[from].table, &one, 1);
}

/* ---- figure 3: two nodes put 64 KiB to random places of each other ---- */

/* The rendezvous that keeps what it has pinned: a page is pinned once, until there is no room. */
static bool keep(unsigned char *pages, uint64_t put, uint64_t *kept)
{
    if (!pages[put]) {
        pages[put] = 1;
        *kept += PUT;
        node[0].time += COST_PIN + PUT_PAGES * COST_PIN_PAGE;
    }
    node[0].time += 2 * COST_MESSAGE;
    return *kept <= M;
}

static int figure_3(uint64_t set, const char *way)
{
    uint64_t random = 3, places = set / PUT, warm = places + WARM, begin = 0, kept = 0;
    bool firehose = strcmp(way, "firehose") == 0, keeps = strcmp(way, "kept") == 0;
    unsigned char *pages = calloc(1, places);
    if (pages == NULL) {
        give_up("no memory", -ENOMEM);
    }
    open_nodes(2);
    for (uint64_t i = 0; i < 2 * (warm + PUTS); i++) {
        /* both touch all places before they go at random */
        uint64_t place = i < 2 * places ? i / 2 : figure_random(&random) % places;
        if (i == 2 * warm) {
            begin = node[0].time;
        }
        if (firehose) {
            use(i % 2, 1 - i % 2, place * PUT, PUT);
        } else if (i % 2 == 0 && keeps && !keep(pages, place, &kept)) {
            puts("fails");
            return 0;
        } else if (i % 2 == 0 && !keeps) {
            node[0].time += 2 * COST_MESSAGE + COST_PIN + PUT_PAGES * COST_PIN_PAGE + COST_UNPIN;
        }
        node[i % 2].time += COST_PUT;
    }
    printf("%lu ps\n", (unsigned long)((node[0].time - begin) / PUTS));
    free(pages);
    return 0;
}

/* ---- figure 7: GUPS by four threads, one on each of four nodes or two on each of two ---- */

static int figure_7(uint64_t table, const char *way)
{
    unsigned nodes = strcmp(way, "4x1") == 0 ? 4 : 2, each = 4 / nodes;
    uint64_t random[4] = {1, 2, 3, 4}, part = table / nodes, misses = 0;
    struct pw_firehose_stats s;
    open_nodes(nodes);
    for (uint64_t i = 0; i < UPDATES; i++) {
        for (unsigned t = 0; t < 4; t++) {
            uint64_t at = figure_random(&random[t]) % (table / 8) * 8;
            if (at / part != t / each) {
                use(t / each, (unsigned)(at / part), at % part, 8);
            }
        }
    }
    for (unsigned i = 0; i < nodes; i++) {
        pw_firehose_stats(node[i].table, &s);
        misses += s.remote.miss;
    }
    printf("%lu misses\n", (unsigned long)(misses / nodes));
    return 0;
}

/* ---- figure 3, live: a peer process that may lock as much memory as the user's limit ---- */

static void put_live(struct peer *p, const char *way, uint64_t place, int *error)
{
    static const char from[PUT];
    char *to = p->memory + place * PUT;
    if (strcmp(way, "firehose") == 0) {
        struct pw_firehose_request r = {0}, *one = &r;
        if ((*error = peer_pin(p, (uintptr_t)to, PUT, one)) == 0) {
            memcpy(to, from, PUT);
            pw_firehose_release(p->table, &one, 1);
        }
        return;
    }
    if ((*error = peer_ask(p, PEER_PIN, (uintptr_t)to, PUT)) == 0) {
        memcpy(to, from, PUT);
        if (strcmp(way, "unpinned") == 0) {
            *error = peer_ask(p, PEER_UNPIN, (uintptr_t)to, PUT);
        }
    }
}

static int figure_3_live(uint64_t percent, const char *way)
{
    struct rlimit limit;
    struct peer p;
    uint64_t random = 3, best = UINT64_MAX;
    int error = 0;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    uint64_t room = limit.rlim_cur < 64 * MIB ? limit.rlim_cur : 64 * MIB;
    uint64_t m = room / 10 * 8 / PUT * PUT, victims = m / 8 / PUT * PUT;
    uint64_t places = m * percent / 100 / PUT;
    struct pw_firehose_config c = {.flags = PW_FIREHOSE_REDUCED | PW_FIREHOSE_NO_ENV,
                                   .page = PAGE,
                                   .max_pinnable = m + victims,
                                   .m = m,
                                   .maxvictim = victims};
    if (places == 0 || peer_start(&p, places * PUT, &c, PEER_LIMITED) != 0) {
        fprintf(stderr, "figure: the limit of locked memory is %lu bytes: too little\n",
                (unsigned long)room);
        return 1;
    }
    for (uint64_t i = 0; i < 6 * places && error == 0; i++) {
        put_live(&p, way, i < places ? i : figure_random(&random) % places, &error);
    }
    for (unsigned turn = 0; turn < 9 && error == 0; turn++) {
        uint64_t begin = nanoseconds();
        for (unsigned i = 0; i < 128 && error == 0; i++) {
            put_live(&p, way, figure_random(&random) % places, &error);
        }
        uint64_t took = (nanoseconds() - begin) * 1000 / 128;
        best = took < best ? took : best;
    }
    if (error != 0) {
        puts("fails"); /* mlock() has refused: the user's limit */
    } else {
        printf("%lu ps\n", (unsigned long)best);
    }
    peer_stop(&p);
    return error == 0 || error == -ENOMEM ? 0 : 1;
}

int main(int argc, char **argv)
{
    uint64_t nodes = argc == 5 ? strtoul(argv[2], NULL, 10) : 0;
    uint64_t size = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
    if (size == 0 || nodes == 0) {
        fprintf(stderr, "usage: bench_firehose_figure 3|3live|7|8 NODES SIZE WAY\n");
        return 2;
    }
    return strcmp(argv[1], "3") == 0       ? figure_3(size * MIB, argv[4])
           : strcmp(argv[1], "3live") == 0 ? figure_3_live(size, argv[4])
           : strcmp(argv[1], "7") == 0     ? figure_7(size * MIB, argv[4])
                                           : figure_8((unsigned)size, argv[4]);
}
