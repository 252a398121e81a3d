/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * News that gets through: rank 0 broadcasts a text while some ranks are dead. The NICs of those
 * that live pass the first copy on to all their neighbours, and drop the others; nobody has to
 * find out who is dead.
 *
 *      neighbours of a rank: ±1, ±2, ±4, ... away
 *
 *      $ pinwheel run -n 8 ./ftbcast                ranks 1 to 4 are dead
 *      $ pinwheel run -n 8 ./ftbcast RANK...        these are
 */
#include "start.h"

#include "broadcast.h"
#include "ftbcast.h"

enum { BITS = 1, LENGTH = 200000 };

static char want(size_t i)
{
    return "all is well, pass it on. "[i % 25];
}

/* Attaches the handlers to an entry over the text; the counter counts first copies only. */
static ptl_handle_ct_t listen(const struct start *s, char *text)
{
    struct tree_group group = {s->rank, s->size, NULL};
    struct ftbcast_state state;
    ptl_handle_hpu_mem_t hpu;
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    ptl_handle_ct_t came = counter(s);
    check(PtlHPUAllocMem(s->ni, ftbcast_memory(LENGTH, s->packet), &hpu), "PtlHPUAllocMem");
    check(ftbcast_handlers(&group, 0, LENGTH, BITS, s->packet, hpu, &state, &handlers),
          "ftbcast_handlers");
    ptl_me_t me = entry(text, LENGTH, BITS, came);
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    return came;
}

static int hear(const struct start *s, const char *text, ptl_handle_ct_t came)
{
    uint64_t chunks = broadcast_messages(LENGTH, s->packet);
    int wrong = 0;
    await(came, chunks);
    for (size_t i = 0; i < LENGTH; i++) {
        wrong += text[i] != want(i);
    }
    printf("rank %u has heard it: \"%.24s\", %d of %d bytes wrong\n", s->rank, text, wrong, LENGTH);
    return wrong != 0;
}

/* The ranks that are named; true if this one is among them. */
static bool is_dead(const struct start *s, int argc, char **argv)
{
    unsigned long rank;
    bool dead = false;
    for (int i = 1; i < argc; i++) {
        if (!number(argv[i], 1, s->size - 1, &rank)) {
            usage(s, "[RANK...]    that are dead; not 0, which speaks");
        }
        dead |= rank == s->rank;
    }
    if ((uint32_t)argc > ftbcast_degree(s->size)) { /* one less, with the program's name */
        fail("of %u ranks at most %u may be dead, or some that live might not be reached", s->size,
             ftbcast_degree(s->size) - 1);
    }
    return dead;
}

int main(int argc, char **argv)
{
    static char text[LENGTH];
    char *usual[] = {argv[0], "1", "2", "3", "4"};
    struct start s;
    int status = 0;
    start(&s, 2, 0);
    uint32_t most = ftbcast_degree(s.size);
    bool dead = argc > 1 ? is_dead(&s, argc, argv) : is_dead(&s, most < 5 ? (int)most : 5, usual);
    ptl_handle_ct_t came = dead ? PTL_CT_NONE : listen(&s, text);
    if (dead) {
        PtlNIFini(s.ni); /* whatever is sent to it finds nobody */
    }
    meet(&s);
    if (s.rank == 0) {
        for (size_t i = 0; i < LENGTH; i++) {
            text[i] = want(i);
        }
        check(broadcast_start(source(&s, NULL, 0, PTL_CT_NONE), rank_id(0), INDEX, BITS, LENGTH,
                              s.packet),
              "broadcast_start");
    }
    if (dead) {
        printf("rank %u is dead\n", s.rank);
    } else {
        status = hear(&s, text, came);
    }
    return finish(&s, status);
}
