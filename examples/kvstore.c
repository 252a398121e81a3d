/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A phone book on several network interfaces: rank 0 reads names and numbers, and stores each
 * at the rank that the hash of its name says. The NICs of the others insert, look up,
 * change and delete; their programs only do what the NICs hand over, as a chain that is long.
 *
 *      rank 0 ──insert "Ada"──► NIC of rank 1, 2 or 3
 *             ──get "Ada"─────► the same   ──"+44 20 ..."──► rank 0
 *
 *      $ pinwheel run -n 4 ./kvstore [FILE.csv]      lines of NAME,NUMBER, each name once
 */
#include "start.h"

#include <sched.h>

#include "kvstore.h"

enum { STORE = 1, REPLY, END, KEY = 32, VALUE = 32, BUCKETS = 64, NODES = 4096, STEPS = 6 };

/* ---- Ranks 1 and up: a store, and what its NIC hands over ---- */

static void serve(const struct start *s, const struct kvstore_state *shape, void *store,
                  void *queue, ptl_handle_ct_t end)
{
    static struct kvstore_reply reply;
    ptl_handle_ct_t acks = counter(s);
    ptl_handle_md_t md = source(s, reply.value, sizeof(reply.value), acks);
    ptl_ct_event_t ended;
    uint64_t replies = 0, done, handed_over;
    do {
        if (kvstore_serve(shape, store, queue, &reply)) {
            check(PtlPut(md, 0, reply.length, PTL_CT_ACK_REQ, reply.client, INDEX, reply.bits,
                         reply.offset, NULL, reply.hdr_data),
                  "PtlPut");
            await(acks, ++replies);
        } else {
            sched_yield();
        }
        check(PtlCTGet(end, &ended), "PtlCTGet");
    } while (ended.success == 0);
    kvstore_counts(queue, &done, &handed_over);
    printf("rank %u: the NIC answered %llu requests, and handed %llu over\n", s->rank,
           (unsigned long long)done, (unsigned long long)handed_over);
}

static void open_store(const struct start *s, struct kvstore_state *shape, void **store,
                       void **queue)
{
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    packet_holds(s, sizeof(struct kvstore_request) + KEY + VALUE);
    check(kvstore_shape(shape, BUCKETS, NODES, KEY, VALUE, STEPS, 16, s->packet), "kvstore_shape");
    *store = memory(shape->memory);
    *queue = memory(shape->queue);
    kvstore_format(shape, *store, *queue);
    kvstore_handlers(shape, *queue, &handlers);
    ptl_me_t me = entry(*store, shape->memory, STORE, PTL_CT_NONE);
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
}

/* ---- Rank 0: the client ---- */

struct client {
    const struct start *s;
    uint8_t packet[KV_PACKET];
    char value[VALUE + 1]; /* that came with the last reply */
    ptl_handle_md_t md;
};

static void open_client(const struct start *s, struct client *c)
{
    ptl_handle_me_t handle;
    ptl_me_t me = entry(c->value, VALUE, REPLY, PTL_CT_NONE); /* events have a reply's hdr_data */
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    c->s = s;
    c->md = source(s, c->packet, sizeof(c->packet), PTL_CT_NONE);
}

/* ask() sends a request and waits for its reply. */
static enum kvstore_status ask(struct client *c, enum kvstore_op op, const char *name,
                               const char *text)
{
    uint64_t length = strlen(name), hash = kvstore_hash(name, length);
    uint32_t store = 1 + (uint32_t)((hash >> 32) % (c->s->size - 1));
    struct kvstore_request r = {.client.rank = 0,
                                .bits = REPLY,
                                .key_length = (uint16_t)length,
                                .value_length = (uint16_t)(text == NULL ? 0 : strlen(text)),
                                .op = op};
    memset(c->value, 0, sizeof(c->value));
    check(PtlPut(c->md, 0, kvstore_request(c->packet, &r, name, text), PTL_NO_ACK_REQ,
                 rank_id(store), INDEX, STORE, 0, NULL, 0),
          "PtlPut");
    return (enum kvstore_status)(next_event(c->s).hdr_data & 0xff);
}

/* One line of the book at a time: in, out, changed, and every third one deleted again. */
static int keep_book(struct client *c, FILE *file)
{
    char line[128], name[KEY + 1], text[VALUE + 1], now[VALUE + 1];
    int lines = 0, wrong = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "%32[^,\n],%31[^,\n]", name, text) != 2) {
            fail("line %d is not NAME,NUMBER of at most %d and %d characters", lines + 1, KEY,
                 VALUE - 1);
        }
        wrong += ask(c, KV_INSERT, name, text) != KV_DONE;
        wrong += ask(c, KV_INSERT, name, text) != KV_EXISTS;
        lines++;
    }
    rewind(file);
    for (int i = 0; fgets(line, sizeof(line), file) != NULL; i++) {
        sscanf(line, "%32[^,\n],%31[^,\n]", name, text);
        wrong += ask(c, KV_GET, name, NULL) != KV_DONE || strcmp(c->value, text) != 0;
        if (i % 100 == 0) {
            printf("%-24s %s\n", name, c->value);
        }
        snprintf(now, sizeof(now), "0%.30s", text);
        wrong += ask(c, KV_UPDATE, name, now) != KV_DONE;
        wrong += ask(c, KV_GET, name, NULL) != KV_DONE || strcmp(c->value, now) != 0;
        if (i % 3 == 0) {
            wrong += ask(c, KV_DELETE, name, NULL) != KV_DONE;
            wrong += ask(c, KV_GET, name, NULL) != KV_MISSING;
        }
    }
    printf("%d names, %d wrong answers\n", lines, wrong);
    return wrong != 0;
}

static FILE *write_book(void)
{
    FILE *file = tmpfile();
    for (int i = 0; file != NULL && i < 1000; i++) {
        fprintf(file, "Subscriber %04d,+49 30 %07d\n", i, i * 7919 % 10000000);
    }
    return file;
}

/* Tells the stores that no more requests come. */
static void end_stores(const struct start *s)
{
    ptl_handle_ct_t acks = counter(s);
    ptl_handle_md_t md = source(s, NULL, 0, acks);
    for (uint32_t rank = 1; rank < s->size; rank++) {
        check(PtlPut(md, 0, 0, PTL_CT_ACK_REQ, rank_id(rank), INDEX, END, 0, NULL, 0), "PtlPut");
    }
    await(acks, s->size - 1);
}

static int be_client(const struct start *s, const char *path)
{
    static struct client c;
    FILE *book = path != NULL ? fopen(path, "r") : write_book();
    if (book == NULL) {
        fail("%s: %s", path != NULL ? path : "a temporary file", strerror(errno));
    }
    open_client(s, &c);
    meet(s); /* the stores are there */
    rewind(book);
    int status = keep_book(&c, book);
    fclose(book);
    end_stores(s);
    return status;
}

static int be_store(const struct start *s)
{
    struct kvstore_state shape;
    void *store, *queue;
    ptl_handle_me_t handle;
    ptl_handle_ct_t end = counter(s);
    ptl_me_t me = entry(NULL, 0, END, end);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    open_store(s, &shape, &store, &queue);
    meet(s);
    serve(s, &shape, store, queue, end);
    return 0;
}

int main(int argc, char **argv)
{
    struct start s;
    start(&s, 2, 0);
    if (argc > 2) {
        usage(&s, "[FILE.csv]");
    }
    return finish(&s, s.rank == 0 ? be_client(&s, argv[1]) : be_store(&s));
}
