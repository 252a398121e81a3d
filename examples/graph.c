/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way on a road map: the vertices of a graph are dealt out to the ranks, and their NICs
 * relax the edges that the others send. Twice: the fewest roads (breadth-first search), and the
 * shortest way.
 *
 *      rank of "Frankfurt" ──"Kassel in 173 km by Frankfurt"──► NIC of the rank of "Kassel":
 *                                                               is that shorter? noted, if so
 *
 *      $ pinwheel run -n 4 ./graph                      German cities, from Frankfurt
 *      $ pinwheel run -n 4 ./graph FILE START
 *
 * A line of the file is an edge, FROM TO [LENGTH], and may be gone both ways; names are any text
 * without blanks. Lines that begin with # are comments.
 */
#include "start.h"

#include "graph.h"

enum { NAME = 32, MOST = 1 << 15, SHOWN = 20 };

static const char *const roads =
    "Frankfurt Mannheim 85\nFrankfurt Kassel 173\nFrankfurt Wuerzburg 217\n"
    "Mannheim Karlsruhe 80\nKarlsruhe Augsburg 250\nAugsburg Munich 84\nWuerzburg Erfurt 186\n"
    "Wuerzburg Nuremberg 103\nNuremberg Stuttgart 183\nNuremberg Munich 167\nKassel Munich 502\n";

struct edge {
    uint32_t from, to, length;
};

/* All ranks read the whole map. */
struct map {
    char (*name)[NAME];
    struct edge *edge; /* each way one */
    uint32_t vertices, edges;
};

static uint32_t vertex(struct map *m, const char *name)
{
    uint32_t v = 0;
    while (v < m->vertices && strcmp(m->name[v], name) != 0) {
        v++;
    }
    if (v == MOST) {
        fail("more than %d vertices", MOST);
    }
    if (v == m->vertices) {
        snprintf(m->name[m->vertices++], NAME, "%s", name);
    }
    return v;
}

static void read_map(struct map *m, FILE *file)
{
    char line[128], from[NAME], to[NAME];
    m->name = memory(MOST * sizeof(*m->name));
    m->edge = memory(2 * MOST * sizeof(*m->edge));
    while (fgets(line, sizeof(line), file) != NULL) {
        uint32_t length = 1;
        int fields = sscanf(line, "%31s %31s %u", from, to, &length);
        if (fields <= 0 || from[0] == '#') {
            continue;
        }
        if (fields == 1 || length > 1000000 || m->edges == 2 * MOST) {
            fail("not an edge, or one too many: %.*s", (int)strcspn(line, "\n"), line);
        }
        uint32_t a = vertex(m, from), b = vertex(m, to);
        m->edge[m->edges++] = (struct edge){a, b, length};
        m->edge[m->edges++] = (struct edge){b, a, length};
    }
}

/* ---- A search ---- */

enum { BOARD = 10 };

struct search {
    const struct start *s;
    const struct map *m;
    bool by_length;
    uint32_t block, first, mine; /* vertices of a rank; this one's */
    uint64_t *word;              /* of these: distance and parent */
    void *frontier;
    ptl_match_bits_t bits;
    struct graph_record *out;
    uint64_t
        *board; /* how many vertices each rank has in its frontier; last, what this one tells */
    ptl_handle_md_t md, board_md;
    ptl_handle_ct_t acks;
    uint64_t sent;
};

static void open_search(struct search *g)
{
    struct graph_state state;
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    size_t board = g->s->size * sizeof(*g->board), out = g->m->edges * sizeof(*g->out);
    g->block = (g->m->vertices + g->s->size - 1) / g->s->size;
    g->first = g->block * g->s->rank;
    g->mine = g->first >= g->m->vertices ? 0 : g->m->vertices - g->first;
    g->mine = g->mine < g->block ? g->mine : g->block;
    g->word = memory(g->mine * sizeof(*g->word));
    memset(g->word, 0xff, g->mine * sizeof(*g->word)); /* GRAPH_FAR */
    g->frontier = memory(graph_frontier_size(g->mine));
    g->board = memory(board + sizeof(*g->board));
    g->out = memory(out + sizeof(*g->out));
    g->acks = counter(g->s);
    g->md = source(g->s, g->out, out + sizeof(*g->out), g->acks);
    g->board_md = source(g->s, g->board + g->s->size, sizeof(*g->board), g->acks);
    check(graph_handlers(g->first, g->mine, g->frontier, &state, &handlers), "graph_handlers");
    ptl_handle_ct_t ignored = counter(g->s);
    ptl_me_t me = entry(g->word, g->mine * sizeof(*g->word), g->bits, ignored);
    check(PtlMEAppendHandlers(g->s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    me = entry(g->board, board, BOARD + g->bits, ignored);
    check(PtlMEAppend(g->s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    meet(g->s); /* the entries are there */
}

/* Puts records from `out`; when they are acknowledged, they are applied. */
static void put_records(struct search *g, uint32_t begin, uint32_t end, uint32_t to)
{
    if (begin != end) {
        check(PtlPut(g->md, begin * sizeof(*g->out), (end - begin) * sizeof(*g->out),
                     PTL_CT_ACK_REQ, rank_id(to), INDEX, g->bits, 0, NULL, 0),
              "PtlPut");
        g->sent++;
    }
}

/* Edges of the vertices whose distance became shorter, to the owners of their ends. */
static void relax(struct search *g, const bool *active)
{
    uint32_t begin = 0, n = 0;
    for (uint32_t to = 0; to < g->s->size; to++, begin = n) {
        for (const struct edge *e = g->m->edge; e != g->m->edge + g->m->edges; e++) {
            if (e->to / g->block == to && e->from - g->first < g->mine && active[e->from]) {
                uint32_t so_far = graph_distance(graph_word(&g->word[e->from - g->first]));
                g->out[n++] =
                    (struct graph_record){e->to, e->from, so_far + (g->by_length ? e->length : 1)};
            }
        }
        put_records(g, begin, n, to);
    }
    await(g->acks, g->sent);
}

/* Whether any rank has a vertex in its frontier. */
static bool goes_on(struct search *g, uint64_t mine)
{
    uint64_t all = 0;
    g->board[g->s->size] = mine;
    for (uint32_t to = 0; to < g->s->size; to++, g->sent++) {
        check(PtlPut(g->board_md, 0, sizeof(mine), PTL_CT_ACK_REQ, rank_id(to), INDEX,
                     BOARD + g->bits, g->s->rank * sizeof(mine), NULL, 0),
              "PtlPut");
    }
    await(g->acks, g->sent);
    meet(g->s);
    for (uint32_t rank = 0; rank < g->s->size; rank++) {
        all += g->board[rank];
    }
    return all != 0;
}

static void search(struct search *g, uint32_t from)
{
    uint32_t *taken = memory(g->mine * sizeof(*taken));
    bool *active = memory(g->m->vertices);
    uint64_t n;
    if (g->s->rank == 0) {
        g->out[0] = (struct graph_record){from, from, 0};
        put_records(g, 0, 1, from / g->block);
        await(g->acks, g->sent);
    }
    do {
        meet(g->s); /* all records of the last round are applied */
        n = graph_take(g->frontier, g->mine, taken);
        memset(active, 0, g->m->vertices);
        for (uint64_t i = 0; i < n; i++) {
            active[g->first + taken[i]] = true;
        }
        relax(g, active);
    } while (goes_on(g, n));
}

/* ---- Rank 0: what came out ---- */

/* The same by the plain way: all edges, until nothing becomes shorter. */
static uint64_t *plain(const struct search *g, uint32_t from)
{
    uint64_t *word = memory(g->m->vertices * sizeof(*word));
    bool shorter = true;
    memset(word, 0xff, g->m->vertices * sizeof(*word));
    word[from] = from;
    while (shorter) {
        shorter = false;
        for (const struct edge *e = g->m->edge; e != g->m->edge + g->m->edges; e++) {
            uint64_t way = (word[e->from] >> 32) + (g->by_length ? e->length : 1);
            if (word[e->from] != GRAPH_FAR && (way << 32 | e->from) < word[e->to]) {
                word[e->to] = way << 32 | e->from;
                shorter = true;
            }
        }
    }
    return word;
}

static int compare(struct search *g, uint32_t from)
{
    uint64_t *word = memory(g->block * g->s->size * sizeof(*word)), *want = plain(g, from);
    ptl_handle_ct_t came = counter(g->s);
    ptl_handle_md_t md = source(g->s, word, g->block * g->s->size * sizeof(*word), came);
    uint32_t wrong = 0, reached = 0;
    for (uint32_t rank = 0; rank < g->s->size; rank++) {
        size_t bytes = g->block * sizeof(*word);
        check(PtlGet(md, rank * bytes, bytes, rank_id(rank), INDEX, g->bits, 0, NULL), "PtlGet");
    }
    await(came, g->s->size);
    printf("%s from %s\n", g->by_length ? "Shortest ways" : "Fewest steps", g->m->name[from]);
    for (uint32_t v = 0; v < g->m->vertices; v++) {
        wrong += word[v] != want[v];
        reached += word[v] != GRAPH_FAR;
        if (v < SHOWN && word[v] != GRAPH_FAR) {
            printf("  %-16s %6u by %s\n", g->m->name[v], graph_distance(word[v]),
                   g->m->name[graph_parent(word[v])]);
        }
    }
    printf("  %u of %u vertices reached, %u wrong\n", reached, g->m->vertices, wrong);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    struct start s;
    struct map m = {0};
    int status = 0;
    start(&s, 1, 0);
    if (argc != 1 && argc != 3) {
        usage(&s, "[FILE START]");
    }
    FILE *file = argc == 3 ? fopen(argv[1], "r") : fmemopen((void *)roads, strlen(roads), "r");
    if (file == NULL) {
        fail("%s: %s", argc == 3 ? argv[1] : "the map", strerror(errno));
    }
    read_map(&m, file);
    fclose(file);
    const char *name = argc == 3 ? argv[2] : "Frankfurt";
    uint32_t vertices = m.vertices, from = vertex(&m, name);
    if (m.vertices != vertices) {
        fail("no edge leads from or to \"%s\"", name);
    }
    for (int by_length = 0; by_length <= 1; by_length++) {
        struct search g = {
            .s = &s, .m = &m, .by_length = by_length, .bits = 1 + (ptl_match_bits_t)by_length};
        open_search(&g);
        search(&g, from);
        status |= s.rank == 0 ? compare(&g, from) : 0;
        meet(&s);
    }
    return finish(&s, status);
}
