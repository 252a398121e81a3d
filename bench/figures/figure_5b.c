/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figure 5b of the sPIN paper: rank 0 sends at the beginning, while rank 1 computes for 10 us. Its
 * receive was posted before (early), or is then (late). Until the data are in the receive's buffer.
 *
 *      rdma-*   short messages come into a buffer of the library, from where the program copies
 *               them; it gets long ones, of which it is told. Nothing but the program answers
 *      spin-*   sends and receives of handlers/rendezvous.c
 *
 * A watcher, a thread of its own, sees what the NICs do while the program computes; it does nothing
 * for them. How often the program has copied the data is printed, too.
 */
#include "figure.h"

#include "rendezvous.h"

#include <pthread.h>

enum way { RDMA_EARLY, RDMA_LATE, SPIN_EARLY, SPIN_LATE };

static const char *const ways[] = {"rdma-early", "rdma-late", "spin-early", "spin-late", NULL};

enum { MESSAGES = 1, SOURCE = 2, EAGER = 4096, BUSY = 10000 /* ns */, DATA = INDEX + 1 };

struct message {
    const struct start *start;
    struct rendezvous end;
    struct rendezvous_request request;
    uint8_t *data;
    unsigned long bytes;
    uint64_t begin, done; /* when rank 0 sent, when the data were there: ps */
    int copies;
};

static uint8_t byte_at(size_t i)
{
    return (uint8_t)(i * 7 + i / 256 + 1);
}

static void prepare(struct message *m)
{
    ptl_pt_index_t index;
    enum { BUFFERS = 4 * 2 * EAGER };
    check(PtlPTAlloc(m->start->ni, 0, m->start->eq, DATA, &index), "PtlPTAlloc");
    check(rendezvous_open(&m->end, m->start->ni, INDEX, DATA, m->start->eq,
                          (ptl_process_t){.rank = PTL_RANK_ANY}, EAGER, memory(BUFFERS), BUFFERS),
          "rendezvous_open");
}

/* Takes events until the request is done. The program copies what waited in an overflow buffer. */
static void *complete(void *argument)
{
    struct message *m = argument;
    while (!m->request.done) {
        ptl_event_t e = next_event(m->start);
        check(rendezvous_event(&m->end, &e), "rendezvous_event");
        if (e.type == PTL_EVENT_PUT_OVERFLOW && m->request.done) {
            m->copies++;
            PtlSimTouch(m->bytes, 0);
        }
    }
    m->done = PtlSimNow();
    return NULL;
}

static void post(struct message *m)
{
    check(rendezvous_receive(&m->end, &m->request, m->data, m->bytes, rank_id(0), MESSAGES, 0),
          "rendezvous_receive");
}

static void receive_by_handlers(struct message *m, bool early)
{
    pthread_t watcher;
    prepare(m);
    if (early) {
        post(m);
    }
    meet(m->start);
    m->begin = PtlSimNow();
    if (early && pthread_create(&watcher, NULL, complete, m) != 0) {
        fail("no thread for the watcher");
    }
    PtlSimCompute(BUSY);
    if (early) {
        pthread_join(watcher, NULL);
    } else {
        post(m);
        complete(m);
    }
}

/* Nothing but the program: early or late, it finds the message, or what tells of it. */
static void receive_by_program(struct message *m)
{
    bool longer = m->bytes > EAGER;
    uint8_t *buffer = memory(longer ? sizeof(uint64_t[2]) : m->bytes);
    ptl_handle_ct_t came = counter(m->start), got = counter(m->start);
    ptl_handle_md_t md = source(m->start, m->data, m->bytes, got);
    ptl_me_t me = entry(buffer, longer ? sizeof(uint64_t[2]) : m->bytes, MESSAGES, came);
    figure_expose(m->start, &me);
    meet(m->start);
    m->begin = PtlSimNow();
    PtlSimCompute(BUSY);
    await(came, 1);
    if (longer) {
        check(PtlGet(md, 0, m->bytes, rank_id(0), INDEX, SOURCE, 0, NULL), "PtlGet");
        await(got, 1);
    } else {
        memcpy(m->data, buffer, m->bytes);
        m->copies++;
        PtlSimTouch(m->bytes, 0);
    }
    m->done = PtlSimNow();
}

static void send(struct message *m, enum way way)
{
    for (size_t i = 0; i < m->bytes; i++) {
        m->data[i] = byte_at(i);
    }
    if (way >= SPIN_EARLY) {
        prepare(m);
        meet(m->start);
        check(rendezvous_send(&m->end, &m->request, m->data, m->bytes, rank_id(1), MESSAGES),
              "rendezvous_send");
        complete(m);
        return;
    }
    bool longer = m->bytes > EAGER;
    uint64_t *announcement = memory(sizeof(uint64_t[2]));
    ptl_handle_md_t md = longer ? source(m->start, announcement, sizeof(uint64_t[2]), PTL_CT_NONE)
                                : source(m->start, m->data, m->bytes, PTL_CT_NONE);
    ptl_me_t me = entry(m->data, m->bytes, SOURCE, PTL_CT_NONE);
    figure_expose(m->start, &me);
    meet(m->start);
    figure_put(md, longer ? sizeof(uint64_t[2]) : m->bytes, 1, MESSAGES);
}

int main(int argc, char **argv)
{
    struct start s;
    struct message m = {.start = &s};
    size_t wrong = 0;
    enum way way = (enum way)figure_start(&s, 2, argc, argv, ways, &m.bytes);
    m.data = memory(m.bytes);
    if (s.rank == 0) {
        send(&m, way);
        return finish(&s, 0);
    }
    if (way >= SPIN_EARLY) {
        receive_by_handlers(&m, way == SPIN_EARLY);
    } else {
        receive_by_program(&m);
    }
    for (size_t i = 0; i < m.bytes; i++) {
        wrong += m.data[i] != byte_at(i);
    }
    if (wrong != 0) {
        fprintf(stderr, "%zu bytes are wrong\n", wrong);
    }
    printf("%d copies\n", m.copies);
    figure_says(m.bytes, ways[way], m.done - m.begin);
    return finish(&s, wrong != 0);
}
