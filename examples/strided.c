/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pictures into a picture: every rank puts its small picture, one packed message, to rank 0,
 * whose NIC places it line by line on a large canvas.
 *
 *      message   | line 0 | line 1 | line 2 |
 *                     │        └────┐
 *      canvas    ....| line 0 |.....│........
 *                ....| line 1 |◄────┘........       the next line is `WIDTH` further on
 *
 *      $ pinwheel run -n 4 ./strided [FILE]       FILE: another text to be placed
 */
#include "start.h"

#include "strided.h"

enum { WIDTH = 72, HEIGHT = 24, LARGEST = WIDTH * HEIGHT };

struct picture {
    size_t width, height;
    char dot[LARGEST]; /* packed: width dots a line */
};

static const char *const pinwheel = "   /|  \n"
                                    " _/ |_ \n"
                                    "|_ O _|\n"
                                    "  | /  \n"
                                    "  |/   \n"
                                    "   |   \n";

static struct picture read_picture(FILE *file)
{
    struct picture p = {0};
    char line[WIDTH + 2], all[HEIGHT][WIDTH + 2];
    for (; fgets(line, sizeof(line), file) != NULL; p.height++) {
        size_t length = strcspn(line, "\n");
        if (p.height == HEIGHT || length > WIDTH) {
            fail("the picture has more than %d lines or %d characters in one", HEIGHT, WIDTH);
        }
        snprintf(all[p.height], sizeof(all[0]), "%-*.*s", WIDTH, (int)length, line);
        p.width = length > p.width ? length : p.width;
    }
    for (size_t y = 0; y < p.height; y++) {
        memcpy(p.dot + y * p.width, all[y], p.width);
    }
    return p;
}

/* Where the picture of a rank goes. */
static size_t place(uint32_t rank, const struct picture *p)
{
    size_t columns = WIDTH - p->width + 1, rows = HEIGHT - p->height + 1;
    return rank * 5 % rows * WIDTH + rank * 17 % columns;
}

/* Rank 0: an entry over all of the canvas for each rank, with the layout of its picture. */
static void receive(const struct start *s, char *canvas, const struct picture *p,
                    ptl_handle_ct_t came)
{
    memset(canvas, '.', LARGEST);
    for (uint32_t rank = 0; rank < s->size; rank++) {
        struct strided_state layout = {
            .start = place(rank, p), .stride = WIDTH, .block = p->width, .blocks = p->height};
        ptl_handlers_t handlers;
        ptl_handle_me_t handle;
        ptl_me_t me = entry(canvas, LARGEST, rank, came);
        check(strided_handlers(&layout, LARGEST, &handlers), "strided_handlers");
        check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
              "PtlMEAppendHandlers");
    }
}

/* One rank after the other, so that the later is above where two overlap. */
static void send(const struct start *s, const struct picture *p)
{
    ptl_handle_ct_t acks = counter(s);
    size_t length = p->width * p->height;
    ptl_handle_md_t md = source(s, p->dot, length, acks);
    for (uint32_t turn = 0; turn < s->size; turn++) {
        if (turn == s->rank) {
            check(PtlPut(md, 0, length, PTL_CT_ACK_REQ, rank_id(0), INDEX, s->rank, 0, NULL, 0),
                  "PtlPut");
            await(acks, 1);
        }
        meet(s);
    }
}

static int compare(const struct start *s, const char *canvas, const struct picture *p)
{
    char want[LARGEST];
    int wrong = 0;
    memset(want, '.', sizeof(want));
    for (uint32_t rank = 0; rank < s->size; rank++) {
        for (size_t y = 0; y < p->height; y++) {
            memcpy(want + place(rank, p) + y * WIDTH, p->dot + y * p->width, p->width);
        }
    }
    for (int i = 0; i < LARGEST; i++) {
        wrong += canvas[i] != want[i];
    }
    for (int y = 0; y < HEIGHT; y++) {
        printf("%.*s\n", WIDTH, canvas + y * WIDTH);
    }
    printf("%u pictures of %zu x %zu placed, %d dots wrong\n", s->size, p->width, p->height, wrong);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    static char canvas[LARGEST];
    struct start s;
    start(&s, 1, 0);
    if (argc > 2) {
        usage(&s, "[FILE]");
    }
    FILE *file =
        argc == 2 ? fopen(argv[1], "r") : fmemopen((void *)pinwheel, strlen(pinwheel), "r");
    if (file == NULL) {
        fail("%s: %s", argc == 2 ? argv[1] : "the picture", strerror(errno));
    }
    struct picture p = read_picture(file);
    fclose(file);
    if (p.width == 0) {
        fail("there is nothing in the picture");
    }
    ptl_handle_ct_t came = counter(&s);
    if (s.rank == 0) {
        receive(&s, canvas, &p, came);
    }
    meet(&s); /* the entries are there */
    send(&s, &p);
    return finish(&s, s.rank == 0 ? compare(&s, canvas, &p) : 0);
}
