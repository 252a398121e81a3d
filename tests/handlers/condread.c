/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/condread: a CSV table is written, read back by its owner into rows, and asked
 * by three clients at once; each answer is compared with what a pass over the lines of
 * the file gives.
 *
 *      rank 3: the table        ranks 0 to 2: clients, with the same file
 */
#include "kit.h"

#include "condread.h"

enum { TABLE_BITS = 1, RESULT_BITS = 2, OWNER = 3, NAME = 24, DEPARTMENT = 12 };

/* Each may come in a message of its own, and the queue of a client that is late holds them all. */
enum { ROWS = PORT_EVENTS - 96 };

struct employee {
    int32_t id;
    uint16_t age;
    int16_t floor;
    double salary;
    char name[NAME], department[DEPARTMENT];
    uint32_t unused;
};

_Static_assert(sizeof(struct employee) == 56, "a row has no holes");

/* ---- The file ---- */

static FILE *write_table(uint64_t rows)
{
    static const char *const names[] = {"Ada", "Grace", "Edsger", "Barbara", "Ken", "Lynn"};
    static const char *const departments[] = {"network", "storage", "compilers", "sales"};
    FILE *f = tmpfile();
    uint64_t r = 42;
    CHECK(f != NULL);
    fprintf(f, "id,age,floor,salary,name,department\n");
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t n = splitmix(&r);
        fprintf(f, "%d,%u,%d,%.2f,%s %u,%s\n", (int)(i * 7 % 1000) - 300, (unsigned)(18 + n % 50),
                (int)(n >> 8 & 7) - 3, (double)(n >> 16 & 0xffff) / 8, names[(n >> 32) % 6],
                (unsigned)(n >> 40 & 63), departments[n >> 46 & 3]);
    }
    CHECK(fflush(f) == 0);
    return f;
}

static uint64_t read_table(FILE *f, struct employee *rows)
{
    char line[200];
    uint64_t n = 0;
    rewind(f);
    CHECK(fgets(line, sizeof(line), f) != NULL); /* the names of the columns */
    while (fgets(line, sizeof(line), f) != NULL) {
        struct employee *e = &rows[n++];
        memset(e, 0, sizeof(*e));
        CHECK_EQ(sscanf(line, "%d,%hu,%hd,%lf,%23[^,],%11[^\n]", &e->id, &e->age, &e->floor,
                        &e->salary, e->name, e->department),
                 6);
    }
    return n;
}

/* ---- Queries ---- */

#define COLUMN(field) offsetof(struct employee, field), sizeof(((struct employee *)NULL)->field)

struct query {
    uint32_t column, width, type, op, select, select_width;
    double number; /* the value compared with; of text, `text` is */
    const char *text;
};

static const struct query queries[] = {
    {COLUMN(id), PTL_INT32_T, CONDREAD_EQ, COLUMN(name), 100, NULL},
    {COLUMN(id), PTL_INT32_T, CONDREAD_LT, COLUMN(salary), 0, NULL},
    {COLUMN(age), PTL_UINT16_T, CONDREAD_GE, COLUMN(id), 60, NULL},
    {COLUMN(floor), PTL_INT16_T, CONDREAD_LE, COLUMN(department), -2, NULL},
    {COLUMN(floor), PTL_INT16_T, CONDREAD_NE, 0, sizeof(struct employee), 0, NULL},
    {COLUMN(salary), PTL_DOUBLE, CONDREAD_GT, COLUMN(name), 8000, NULL},
    {COLUMN(department), CONDREAD_BYTES, CONDREAD_EQ, COLUMN(name), 0, "storage"},
    {offsetof(struct employee, name), 3, CONDREAD_BYTES, CONDREAD_EQ, COLUMN(name), 0, "Ada"},
    {COLUMN(department), CONDREAD_BYTES, CONDREAD_LT, COLUMN(age), 0, "sales"},
    {COLUMN(age), PTL_UINT16_T, CONDREAD_GT, COLUMN(id), 1000, NULL}, /* nobody */
};
enum { QUERIES = sizeof(queries) / sizeof(queries[0]) };

static void set_value(const struct query *q, uint8_t *value)
{
    int32_t i32 = (int32_t)q->number;
    int16_t i16 = (int16_t)q->number;
    const void *from = q->type == PTL_INT32_T  ? (const void *)&i32
                       : q->type == PTL_DOUBLE ? (const void *)&q->number
                       : q->text != NULL       ? q->text
                                               : (const void *)&i16;
    memset(value, 0, CONDREAD_VALUE);
    memcpy(value, from, q->text != NULL ? strlen(q->text) : q->width);
}

/* By column names and strings, not as the handlers do it. */
static bool holds(const struct query *q, const struct employee *e)
{
    double difference;
    if (q->text != NULL) {
        const char *field = (const char *)e + q->column;
        int order = q->width == 3 ? strncmp(field, q->text, 3) : strcmp(field, q->text);
        difference = order;
    } else {
        double field = q->column == offsetof(struct employee, id)      ? e->id
                       : q->column == offsetof(struct employee, age)   ? e->age
                       : q->column == offsetof(struct employee, floor) ? e->floor
                                                                       : e->salary;
        difference = field - q->number;
    }
    return q->op == CONDREAD_EQ   ? difference == 0
           : q->op == CONDREAD_NE ? difference != 0
           : q->op == CONDREAD_LT ? difference < 0
           : q->op == CONDREAD_LE ? difference <= 0
           : q->op == CONDREAD_GT ? difference > 0
                                  : difference >= 0;
}

/* Waits for a result and returns the rows that matched. */
static uint64_t collect(struct kit *k, uint64_t tag, uint64_t width, uint64_t room)
{
    uint64_t bytes = 0, matched = 0;
    bool ended = false;
    while (!ended || bytes < (matched * width < room / width * width ? matched * width
                                                                     : room / width * width)) {
        ptl_event_t e = EVENT(k->p.eq, PTL_EVENT_PUT);
        bytes += e.mlength;
        if (e.hdr_data != 0) {
            CHECK(!ended);
            ended = true;
            matched = e.hdr_data & ((UINT64_C(1) << 48) - 1);
            CHECK_EQ(e.hdr_data, condread_end(tag, matched));
        }
    }
    return matched;
}

static void ask(struct kit *k, const struct query *q, const struct employee *rows, uint64_t first,
                uint64_t count, unsigned char *result, uint64_t room, uint64_t tag)
{
    struct condread_request r = {.client = k->p.id[k->p.rank],
                                 .bits = RESULT_BITS,
                                 .room = room,
                                 .tag = tag,
                                 .first = first,
                                 .rows = count,
                                 .column = q->column,
                                 .width = q->width,
                                 .type = q->type,
                                 .op = q->op,
                                 .select = q->select,
                                 .select_width = q->select_width};
    unsigned char *want = kit_memory(room);
    uint64_t matched = 0, used = 0;
    set_value(q, r.value);
    for (uint64_t i = first; i < first + count; i++) {
        if (holds(q, &rows[i])) {
            matched++;
            if (used + q->select_width <= room) {
                memcpy(want + used, (const char *)&rows[i] + q->select, q->select_width);
                used += q->select_width;
            }
        }
    }
    memset(result, 0, room);
    kit_put_once(k, &r, sizeof(r), OWNER, TABLE_BITS, 0, 0, PTL_NI_OK);
    CHECK_EQ(collect(k, tag, q->select_width, room), matched);
    CHECK_SAME(result, want, room);
    free(want);
}

static unsigned char *open_client(struct kit *k, size_t room)
{
    unsigned char *result = kit_memory(room);
    ptl_me_t me = port_entry(&k->p, result, room, PTL_ME_OP_PUT | PTL_ME_EVENT_LINK_DISABLE);
    me.match_bits = RESULT_BITS;
    me.ignore_bits = 0;
    port_append(&k->p, &me, NULL);
    return result;
}

static void open_table(struct kit *k, struct employee *rows, uint64_t count, uint64_t steps)
{
    struct condread_state state;
    ptl_handlers_t h;
    OK(condread_handlers(sizeof(*rows), count, steps, k->p.id[k->p.rank], TABLE_BITS, k->packet,
                         &state, &h));
    kit_entry(k, rows, count * sizeof(*rows), TABLE_BITS, 0, PTL_CT_NONE, &h);
}

static void run(int rank, int size, uint64_t count, uint64_t steps)
{
    struct kit k;
    struct employee *rows = kit_memory(count * sizeof(*rows));
    FILE *f = write_table(count);
    CHECK_EQ(read_table(f, rows), count);
    fclose(f);
    kit_open(&k, rank, size);
    if (k.p.rank == OWNER) {
        open_table(&k, rows, count, steps);
        BARRIER();
    } else {
        size_t room = count * sizeof(*rows);
        unsigned char *result = open_client(&k, room);
        uint64_t r = (uint64_t)k.p.rank;
        BARRIER();
        for (int i = 0; i < 3 * QUERIES; i++) {
            const struct query *q = &queries[(i + k.p.rank) % QUERIES];
            uint64_t first = i < QUERIES ? 0 : splitmix(&r) % (count + 1);
            uint64_t n = i < QUERIES ? count : splitmix(&r) % (count + 1 - first);
            ask(&k, q, rows, first, n, result, i % 3 == 2 ? room / 17 : room, (uint64_t)i);
        }
    }
    kit_close(&k);
}

PTEST(large_table, 4)
{
    run(rank, size, ROWS, 1000);
}

PTEST(row_by_row, 4)
{
    run(rank, size, 200, 1);
}

PTEST(one_row, 4)
{
    run(rank, size, 1, 10);
}

PTEST(refused, 4)
{
    struct kit k;
    kit_open(&k, rank, size);
    struct condread_state state;
    ptl_handlers_t h;
    struct employee rows[3];
    ptl_process_t self = k.p.id[rank];
    INVALID(condread_handlers(0, 1, 1, self, 1, k.packet, &state, &h));
    INVALID(condread_handlers(CONDREAD_ROW + 1, 1, 1, self, 1, 4096, &state, &h));
    INVALID(condread_handlers(8, 1, 0, self, 1, k.packet, &state, &h));
    INVALID(condread_handlers(8, UINT64_C(1) << 48, 1, self, 1, k.packet, &state, &h));
    INVALID(condread_handlers(8, 1, 1, self, 1, 64, &state, &h));
    memset(rows, 0, sizeof(rows));
    if (rank == OWNER) {
        open_table(&k, rows, 3, 2);
    }
    BARRIER();
    if (rank == 0) {
        const struct condread_request good = {.rows = 3, .width = 4, .type = PTL_INT32_T};
        struct condread_request bad[9];
        for (int i = 0; i < 9; i++) {
            bad[i] = good;
        }
        bad[0].rows = 4;
        bad[1].first = ~0ull;
        bad[2].op = CONDREAD_OPS;
        bad[3].width = 8;
        bad[4].type = PTL_FLOAT_COMPLEX;
        bad[5].column = sizeof(rows[0]) - 3;
        bad[6].select_width = sizeof(rows[0]) + 1;
        bad[7].type = CONDREAD_BYTES;
        bad[7].width = CONDREAD_VALUE + 1;
        bad[8].type = PTL_LONG_DOUBLE;
        for (int i = 0; i < 9; i++) {
            kit_put_once(&k, &bad[i], sizeof(bad[i]), OWNER, TABLE_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
        }
        kit_put_once(&k, &good, sizeof(good) - 1, OWNER, TABLE_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
    }
    BARRIER();
    for (int i = 0; rank == OWNER && i < 10; i++) {
        EVENT_FAIL(k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
    }
    kit_close(&k);
}
