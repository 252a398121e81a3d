/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table is asked without its owner: rank 0 reads a CSV file into memory, the others ask its
 * NIC for one column of the rows that meet a condition. Only the answer crosses the network.
 *
 *      rank 1 ──"name where population > 3000000"──► NIC of rank 0: scans the table
 *             ◄──Berlin, Rome, ...─────────────────
 *
 *      $ pinwheel run -n 2 ./condread
 *      $ pinwheel run -n 2 ./condread FILE.csv COLUMN 'lt|le|eq|ne|ge|gt' VALUE SELECTED
 *
 * The first line of the file names its columns. A VALUE that is a number is compared with the
 * numbers in its column (other cells there count as not a number), another one as text.
 */
#include "start.h"

#include <math.h>
#include <stddef.h>

#include "condread.h"

enum { TABLE = 1, SHAPE, ANSWER, COLUMNS = 8, TEXT = 24, MOST = 100000 };

struct cell {
    char text[TEXT];
    double number; /* NAN: it is none */
};

struct row {
    struct cell cell[COLUMNS];
};

/* What a client must know of the table; it gets it from rank 0. */
struct shape {
    uint64_t rows;
    char name[COLUMNS][TEXT];
};

static const char *const cities = "name,country,population,km2\n"
                                  "Berlin,Germany,3685000,891\nMadrid,Spain,3340000,604\n"
                                  "Rome,Italy,2749000,1285\nParis,France,2103000,105\n"
                                  "Vienna,Austria,2006000,415\nHamburg,Germany,1863000,755\n"
                                  "Warsaw,Poland,1862000,517\nBudapest,Hungary,1686000,525\n"
                                  "Barcelona,Spain,1656000,101\nMunich,Germany,1505000,311\n"
                                  "Milan,Italy,1371000,182\nPrague,Czechia,1357000,496\n";

static const char *const op_name[CONDREAD_OPS] = {"eq", "ne", "lt", "le", "gt", "ge"};

/* ---- Rank 0: the table ---- */

/* Cells of a line; what is too long is cut off. */
static int read_line(FILE *file, struct row *row)
{
    char line[COLUMNS * 256], *rest = line;
    int cells = 0;
    if (fgets(line, sizeof(line), file) == NULL) {
        return 0;
    }
    line[strcspn(line, "\r\n")] = '\0';
    for (; rest != NULL && cells < COLUMNS; cells++) {
        struct cell *cell = &row->cell[cells];
        char *text = strsep(&rest, ","), *end;
        snprintf(cell->text, TEXT, "%s", text);
        cell->number = strtod(text, &end);
        if (end == text || *end != '\0') {
            cell->number = NAN;
        }
    }
    return cells;
}

static void read_table(FILE *file, struct row *rows, struct shape *shape)
{
    struct row header = {0};
    int cells, columns = read_line(file, &header);
    for (int i = 0; i < columns; i++) {
        memcpy(shape->name[i], header.cell[i].text, TEXT);
    }
    while ((cells = read_line(file, &rows[shape->rows])) != 0) {
        if (cells != columns || ++shape->rows == MOST) {
            fail("line %llu has %d cells, not %d, or is one too many",
                 (unsigned long long)shape->rows + 2, cells, columns);
        }
    }
}

static void own(const struct start *s, struct row *rows, struct shape *shape)
{
    struct condread_state state;
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    ptl_me_t me = entry(rows, shape->rows * sizeof(*rows), TABLE, PTL_CT_NONE);
    packet_holds(s, sizeof(struct condread_request));
    packet_holds(s, sizeof(*rows));
    check(condread_handlers(sizeof(*rows), shape->rows, 1000, rank_id(0), TABLE, s->packet, &state,
                            &handlers),
          "condread_handlers");
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    me = entry(shape, sizeof(*shape), SHAPE, PTL_CT_NONE);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
}

/* ---- The others: a question ---- */

struct question {
    const char *column, *op, *value, *selected;
};

static int find(const char *what, const char *name, const char *names, size_t stride, int count)
{
    for (int i = 0; i < count; i++) {
        if (names[(size_t)i * stride] != '\0' && strcmp(name, names + (size_t)i * stride) == 0) {
            return i;
        }
    }
    fail("there is no %s \"%s\"", what, name);
}

static struct condread_request request(const struct start *s, const struct question *q,
                                       const struct shape *shape)
{
    int column = find("column", q->column, shape->name[0], TEXT, COLUMNS);
    int selected = find("column", q->selected, shape->name[0], TEXT, COLUMNS);
    struct cell cell = {0};
    char *end;
    struct condread_request r = {
        .client = rank_id(s->rank),
        .bits = ANSWER,
        .room = shape->rows * TEXT,
        .rows = shape->rows,
        .column = (uint32_t)((size_t)column * sizeof(cell) + offsetof(struct cell, text)),
        .width = TEXT,
        .type = CONDREAD_BYTES,
        .select = (uint32_t)((size_t)selected * sizeof(cell) + offsetof(struct cell, text)),
        .select_width = TEXT};
    while (r.op < CONDREAD_OPS && strcmp(q->op, op_name[r.op]) != 0) {
        r.op++;
    }
    if (r.op == CONDREAD_OPS) {
        fail("there is no comparison \"%s\": eq, ne, lt, le, gt or ge", q->op);
    }
    snprintf(cell.text, TEXT, "%s", q->value);
    cell.number = strtod(q->value, &end);
    memcpy(r.value, cell.text, TEXT);
    if (end != q->value && *end == '\0') {
        r.column += (uint32_t)(offsetof(struct cell, number) - offsetof(struct cell, text));
        r.width = sizeof(cell.number);
        r.type = PTL_DOUBLE;
        memcpy(r.value, &cell.number, sizeof(cell.number));
    }
    return r;
}

/* The same, by this program, on one row. */
static bool holds(const struct condread_request *r, const uint8_t *row)
{
    int order = memcmp(row + r->column, r->value, r->width);
    if (r->type == PTL_DOUBLE) {
        double a, b;
        memcpy(&a, row + r->column, sizeof(a));
        memcpy(&b, r->value, sizeof(b));
        if (isnan(a)) {
            return r->op == CONDREAD_NE;
        }
        order = (a > b) - (a < b);
    }
    const bool is[CONDREAD_OPS] = {order == 0, order != 0, order<0, order <= 0, order> 0,
                                   order >= 0};
    return is[r->op];
}

/* Gets the whole table, to compare: what the handlers save. */
static int compare(const struct start *s, const struct condread_request *r, const char *answer,
                   uint64_t matched)
{
    size_t length = r->rows * sizeof(struct row);
    struct row *rows = memory(length);
    ptl_handle_ct_t came = counter(s);
    uint64_t want = 0, wrong = 0;
    check(PtlGet(source(s, rows, length, came), 0, length, rank_id(0), INDEX, TABLE, 0, NULL),
          "PtlGet");
    await(came, 1);
    for (uint64_t i = 0; i < r->rows; i++) {
        const uint8_t *row = (const uint8_t *)&rows[i];
        if (holds(r, row)) {
            wrong += want >= matched || memcmp(row + r->select, answer + want * TEXT, TEXT) != 0;
            want++;
        }
    }
    printf("rank %u: %llu of %llu rows, %llu wrong; %llu bytes came instead of %zu\n", s->rank,
           (unsigned long long)matched, (unsigned long long)r->rows, (unsigned long long)wrong,
           (unsigned long long)(matched * TEXT), length);
    return want != matched || wrong != 0;
}

static int ask(const struct start *s, const struct question *q)
{
    static struct shape shape;
    ptl_handle_ct_t came = counter(s);
    ptl_handle_me_t handle;
    check(PtlGet(source(s, &shape, sizeof(shape), came), 0, sizeof(shape), rank_id(0), INDEX, SHAPE,
                 0, NULL),
          "PtlGet");
    await(came, 1);
    struct condread_request r = request(s, q, &shape);
    char *answer = memory(r.room);
    ptl_me_t me = entry(answer, r.room, ANSWER, PTL_CT_NONE);
    uint64_t bytes = 0, matched = UINT64_MAX;
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    check(PtlPut(source(s, &r, sizeof(r), PTL_CT_NONE), 0, sizeof(r), PTL_NO_ACK_REQ, rank_id(0),
                 INDEX, TABLE, 0, NULL, 0),
          "PtlPut");
    while (matched == UINT64_MAX || bytes < matched * TEXT) {
        ptl_event_t event = next_event(s);
        bytes += event.mlength;
        matched = event.hdr_data == 0 ? matched : event.hdr_data ^ condread_end(0, 0);
    }
    for (uint64_t i = 0; s->rank == 1 && i < matched && i < 20; i++) {
        printf("  %s\n", answer + i * TEXT);
    }
    return compare(s, &r, answer, matched);
}

int main(int argc, char **argv)
{
    static struct shape shape;
    struct question q = {"population", "lt", "2000000", "name"};
    struct start s;
    int status = 0;
    start(&s, 2, 0);
    if (argc != 1 && argc != 6) {
        usage(&s, "[FILE.csv COLUMN lt|le|eq|ne|ge|gt VALUE SELECTED]");
    }
    if (argc == 6) {
        q = (struct question){argv[2], argv[3], argv[4], argv[5]};
    }
    if (s.rank == 0) {
        FILE *file =
            argc == 6 ? fopen(argv[1], "r") : fmemopen((void *)cities, strlen(cities), "r");
        if (file == NULL) {
            fail("%s: %s", argc == 6 ? argv[1] : "the table", strerror(errno));
        }
        struct row *rows = memory(MOST * sizeof(*rows));
        read_table(file, rows, &shape);
        fclose(file);
        own(&s, rows, &shape);
        meet(&s); /* the entries are there */
    } else {
        meet(&s);
        status = ask(&s, &q);
    }
    return finish(&s, status);
}
