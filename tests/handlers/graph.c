/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/graph: an edge list is written and read back, its vertices dealt out to the
 * ranks in blocks; breadth-first search and shortest paths from several sources are
 * compared, distances and parents, with a plain search over the whole graph.
 */
#include "kit.h"

#include "graph.h"

enum { BITS = 1 };

struct edge {
    uint32_t from, to, weight;
};

struct graph {
    uint32_t vertices;
    size_t edges;
    struct edge *edge;
};

/* ---- The file ---- */

/* Ends are drawn so that low numbers have many edges, as in a social network. */
static FILE *write_edges(uint32_t vertices, size_t edges)
{
    FILE *f = tmpfile();
    uint64_t r = 77;
    CHECK(f != NULL);
    fprintf(f, "# %u vertices: from to weight\n", vertices);
    for (size_t i = 0; i < edges; i++) {
        uint64_t a = splitmix(&r) % vertices, b = splitmix(&r) % vertices;
        fprintf(f, "%u %u %u\n", (unsigned)(a * (splitmix(&r) % vertices) / vertices), (unsigned)b,
                1 + (unsigned)(splitmix(&r) % 20));
    }
    CHECK(fflush(f) == 0);
    return f;
}

static struct graph read_edges(FILE *f)
{
    struct graph g = {0};
    struct edge e;
    char line[100];
    size_t room = 0;
    rewind(f);
    while (fgets(line, sizeof(line), f) != NULL) {
        if (sscanf(line, "# %u vertices", &g.vertices) == 1) {
            continue;
        }
        CHECK_EQ(sscanf(line, "%u %u %u", &e.from, &e.to, &e.weight), 3);
        if (g.edges == room) {
            room = 2 * room + 100;
            g.edge = realloc(g.edge, room * sizeof(e));
            CHECK(g.edge != NULL);
        }
        g.edge[g.edges++] = e;
    }
    return g;
}

/* ---- The plain search: relax all edges until nothing changes ---- */

static uint64_t *plain_search(const struct graph *g, uint32_t source, bool weights)
{
    uint64_t *word = kit_memory(g->vertices * sizeof(*word));
    for (uint32_t v = 0; v < g->vertices; v++) {
        word[v] = GRAPH_FAR;
    }
    word[source] = source;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < g->edges; i++) {
            const struct edge *e = &g->edge[i];
            if (word[e->from] == GRAPH_FAR) {
                continue;
            }
            uint64_t d = (word[e->from] >> 32) + (weights ? e->weight : 1);
            uint64_t better = d << 32 | e->from;
            if (better < word[e->to]) {
                word[e->to] = better;
                changed = true;
            }
        }
    }
    return word;
}

/* ---- By handlers ---- */

struct search {
    struct kit k;
    struct graph g;
    uint32_t block, first, mine; /* vertices a rank; here */
    uint64_t *word;
    void *frontier;
    uint32_t *active;
    struct graph_record *out; /* for each rank, as many as there are edges */
    struct kit_sender sender;
};

static void open_search(struct search *s)
{
    struct graph_state state;
    ptl_handlers_t h;
    s->block = (s->g.vertices + (uint32_t)s->k.p.size - 1) / (uint32_t)s->k.p.size;
    s->first = s->block * (uint32_t)s->k.p.rank;
    s->mine = s->first >= s->g.vertices             ? 0
              : s->g.vertices - s->first < s->block ? s->g.vertices - s->first
                                                    : s->block;
    s->word = kit_memory(s->mine * sizeof(*s->word));
    s->frontier = kit_memory(graph_frontier_size(s->mine));
    s->active = kit_memory(s->mine * sizeof(*s->active));
    size_t out = (size_t)s->k.p.size * s->g.edges * sizeof(*s->out);
    s->out = kit_memory(out);
    s->sender = kit_sender(&s->k, s->out, out);
    OK(graph_handlers(s->first, s->mine, s->frontier, &state, &h));
    kit_entry(&s->k, s->word, s->mine * sizeof(*s->word), BITS, 0, PTL_CT_NONE, &h);
}

/* Puts the records of this round, in messages of several lengths. */
static void send_records(struct search *s, const size_t *count)
{
    for (int to = 0; to < s->k.p.size; to++) {
        size_t start = (size_t)to * s->g.edges;
        for (size_t at = 0, n; at < count[to]; at += n) {
            n = at % 3 == 0 ? 1000 : 7;
            n = n < count[to] - at ? n : count[to] - at;
            kit_put(&s->sender, (start + at) * sizeof(*s->out), n * sizeof(*s->out), to, BITS, 0,
                    0);
        }
    }
    kit_flush(&s->sender);
}

static void add_record(struct search *s, size_t *count, uint64_t vertex, uint32_t parent,
                       uint32_t distance)
{
    size_t to = vertex / s->block;
    s->out[to * s->g.edges + count[to]++] = (struct graph_record){vertex, parent, distance};
}

/* Relaxes the edges of the frontier; false when no rank has one. */
static bool next_round(struct search *s, bool weights)
{
    size_t count[PTEST_RANKS] = {0};
    static bool active[1 << 16];
    uint64_t n = graph_take(s->frontier, s->mine, s->active), all = 0;
    ptest_show(5, n);
    BARRIER();
    for (int r = 0; r < s->k.p.size; r++) {
        all += ptest_look(r, 5);
    }
    memset(active, 0, sizeof(active));
    for (uint64_t i = 0; i < n; i++) {
        CHECK(!active[s->active[i]]); /* once a round */
        active[s->active[i]] = true;
    }
    for (size_t i = 0; i < s->g.edges; i++) {
        const struct edge *e = &s->g.edge[i];
        if (e->from - s->first < s->mine && active[e->from - s->first]) {
            uint32_t d = graph_distance(graph_word(&s->word[e->from - s->first]));
            add_record(s, count, e->to, e->from, d + (weights ? e->weight : 1));
        }
    }
    send_records(s, count);
    BARRIER(); /* all are acknowledged, hence applied */
    return all != 0;
}

static void search_from(struct search *s, uint32_t source, bool weights)
{
    size_t count[PTEST_RANKS] = {0};
    memset(s->word, 0xff, s->mine * sizeof(*s->word));
    BARRIER();
    if (s->k.p.rank == 1) {
        add_record(s, count, source, source, 0);
        send_records(s, count);
    }
    BARRIER();
    while (next_round(s, weights)) {
    }
    uint64_t *want = plain_search(&s->g, source, weights);
    CHECK_SAME(s->word, want + s->first, s->mine * sizeof(*s->word));
    free(want);
}

static void run(int rank, int size, uint32_t vertices, size_t edges)
{
    static struct search s;
    FILE *f = write_edges(vertices, edges);
    memset(&s, 0, sizeof(s));
    s.g = read_edges(f);
    fclose(f);
    CHECK_EQ(s.g.vertices, vertices);
    CHECK_EQ(s.g.edges, edges);
    kit_open(&s.k, rank, size);
    open_search(&s);
    for (uint32_t i = 0; i < 3; i++) {
        uint32_t source = i * (vertices - 1) / 2;
        search_from(&s, source, false);
        search_from(&s, source, true);
    }
    kit_close(&s.k);
}

PTEST(sparse, 4)
{
    run(rank, size, 3000, 5000);
}

PTEST(dense, 3)
{
    run(rank, size, 100, 5000);
}

PTEST(many_edges, 2)
{
    run(rank, size, 5000, 40000);
}

PTEST(fewer_vertices_than_ranks, 4)
{
    run(rank, size, 3, 4);
}

PTEST(refused, 2)
{
    struct kit k;
    kit_open(&k, rank, size);
    struct graph_state state;
    ptl_handlers_t h;
    uint64_t word[2] = {GRAPH_FAR, GRAPH_FAR};
    void *frontier = kit_memory(graph_frontier_size(2));
    INVALID(graph_handlers(0, UINT64_C(1) << 32, frontier, &state, &h));
    INVALID(graph_handlers(UINT64_MAX, 1, frontier, &state, &h));
    OK(graph_handlers(10, 2, frontier, &state, &h));
    if (rank == 1) {
        kit_entry(&k, word, sizeof(word), BITS, 0, PTL_CT_NONE, &h);
    }
    BARRIER();
    if (rank == 0) {
        struct graph_record records[] = {{9, 1, 1}, {12, 1, 1}, {10, 1, UINT32_MAX}, {11, 4, 5}};
        kit_put_once(&k, records, sizeof(records), 1, BITS, 0, 0, PTL_NI_HANDLER_FAIL);
        kit_put_once(&k, &records[3], 15, 1, BITS, 0, 0, PTL_NI_HANDLER_FAIL);
        kit_put_once(&k, records, 0, 1, BITS, 0, 0, PTL_NI_OK);
    }
    BARRIER();
    if (rank == 1) {
        uint32_t taken[2];
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        CHECK_EQ(word[0], GRAPH_FAR);
        CHECK_EQ(graph_distance(word[1]), 5);
        CHECK_EQ(graph_parent(word[1]), 4);
        CHECK_EQ(graph_take(frontier, 2, taken), 1);
        CHECK_EQ(taken[0], 1);
        CHECK_EQ(graph_take(frontier, 2, taken), 0);
    }
    kit_close(&k);
}
