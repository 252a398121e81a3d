/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tickets sold by several agents at once: the seats are in the memory of rank 0, agents get a
 * seat to see whether it is free, and put their number into it. The NIC of rank 0 logs both.
 * To keep the seat an agent asks rank 0's program, which reads in the log whether somebody
 * else has been at it: then the one who asks first has lost, and tries again.
 *
 *      agent ──get seat, put number──► NIC of rank 0: log, then memory
 *            ──"may I keep it?"──────► program of rank 0: reads the log
 *            ◄──yes, no──────────────
 *
 *      $ pinwheel run -n 4 ./txlog [SEATS]
 */
#include "start.h"

#include <unistd.h>

#include "txlog.h"

enum { SEATS_BITS = 1, REQUEST, ANSWER, RECORDS = 100000, MOST_SEATS = 2000, ROW = 40 };

/* What an agent asks. */
struct request {
    uint32_t transaction;
    uint32_t seat; /* MOST_SEATS: there is none left, `transaction` were kept */
    uint32_t put;  /* whether it has put its number there */
};

enum answer { AGAIN, KEPT, SOLD };

/* ---- Rank 0 ---- */

struct office {
    uint64_t *seat; /* whose each is, for all to see: 0 free, else the agent's rank */
    uint64_t *sold; /* the same, as decided here */
    void *log;
    struct request *in; /* one from each agent */
    uint64_t conflicts;
};

static void open_office(const struct start *s, struct office *o, uint32_t seats)
{
    struct txlog_state state;
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    o->seat = memory(seats * sizeof(*o->seat));
    o->sold = memory(seats * sizeof(*o->sold));
    o->log = memory(txlog_size(RECORDS));
    o->in = memory(s->size * sizeof(*o->in));
    ptl_handle_ct_t ignored = counter(s);
    ptl_me_t me = entry(o->seat, seats * sizeof(*o->seat), SEATS_BITS, ignored);
    me.ignore_bits = TXLOG_IGNORE;
    txlog_handlers(RECORDS, o->log, &state, &handlers);
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    me = entry(o->in, s->size * sizeof(*o->in), REQUEST, PTL_CT_NONE);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
}

/* Whether an agent may keep a seat. Then the seat says what was decided so far. */
static enum answer decide(struct office *o, uint32_t agent, const struct request *r)
{
    uint32_t with;
    enum answer answer = AGAIN;
    enum txlog_verdict verdict = txlog_judge(o->log, RECORDS, r->transaction, &with);
    if (verdict == TXLOG_OVERFLOWED) {
        fail("%d records are too few", RECORDS);
    }
    if (o->sold[r->seat] != 0) {
        answer = SOLD;
    } else if (verdict == TXLOG_CONFLICT) {
        o->conflicts++;
    } else if (r->put) {
        answer = KEPT;
        o->sold[r->seat] = agent;
    }
    __atomic_store_n(&o->seat[r->seat], o->sold[r->seat], __ATOMIC_RELEASE);
    txlog_forget(o->log, RECORDS, r->transaction);
    return answer;
}

/* Answers until all agents have what they could get; their counts come with the last word. */
static int sell(const struct start *s, struct office *o, uint32_t seats)
{
    ptl_handle_md_t md = source(s, NULL, 0, PTL_CT_NONE);
    uint64_t kept = 0, sold = 0, wrong = 0;
    for (uint32_t ended = 0; ended < s->size - 1;) {
        ptl_event_t event = next_event(s);
        uint32_t agent = event.initiator.rank;
        const struct request *r = &o->in[agent];
        if (r->seat == MOST_SEATS) {
            printf("agent %u keeps %u seats\n", agent, r->transaction);
            kept += r->transaction;
            ended++;
            continue;
        }
        check(PtlPut(md, 0, 0, PTL_NO_ACK_REQ, event.initiator, INDEX, ANSWER, 0, NULL,
                     decide(o, agent, r)),
              "PtlPut");
    }
    for (uint32_t i = 0; i < seats; i++) {
        sold += o->sold[i] != 0;
        wrong += o->sold[i] != o->seat[i];
        printf("%llu%s", (unsigned long long)o->sold[i] % 10,
               i % ROW == ROW - 1 || i == seats - 1 ? "\n" : "");
    }
    printf("%llu of %u seats sold, %llu kept by agents; %llu conflicts\n", (unsigned long long)sold,
           seats, (unsigned long long)kept, (unsigned long long)o->conflicts);
    return sold != seats || kept != seats || wrong != 0;
}

/* ---- The agents ---- */

/* Sends the request that is in the memory of its MD. */
static void tell(const struct start *s, ptl_handle_md_t request)
{
    check(PtlPut(request, 0, sizeof(struct request), PTL_NO_ACK_REQ, rank_id(0), INDEX, REQUEST,
                 s->rank * sizeof(struct request), NULL, 0),
          "PtlPut");
}

static int be_agent(const struct start *s, uint32_t seats)
{
    ptl_handle_ct_t done = counter(s);
    uint64_t *word = memory(2 * sizeof(*word)); /* what a seat says, and what it shall say */
    ptl_handle_md_t md = source(s, word, 2 * sizeof(*word), done);
    struct request *r = memory(sizeof(*r));
    ptl_handle_md_t request = source(s, r, sizeof(*r), PTL_CT_NONE);
    uint32_t kept = 0, tries = 0;
    uint64_t operations = 0;
    ptl_handle_me_t handle;
    ptl_me_t me = entry(NULL, 0, ANSWER, PTL_CT_NONE);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    meet(s); /* the office is open */
    word[1] = s->rank;
    for (uint32_t seat = 0; seat < seats;) {
        *r = (struct request){++tries * s->size + s->rank, seat, 0};
        ptl_match_bits_t bits = txlog_bits(r->transaction, SEATS_BITS);
        check(PtlGet(md, 0, 8, rank_id(0), INDEX, bits, seat * 8, NULL), "PtlGet");
        await(done, ++operations);
        r->put = word[0] == 0;
        if (r->put) {
            check(PtlPut(md, 8, 8, PTL_CT_ACK_REQ, rank_id(0), INDEX, bits, seat * 8, NULL, 0),
                  "PtlPut");
            await(done, ++operations);
        }
        tell(s, request);
        enum answer answer = (enum answer)next_event(s).hdr_data;
        kept += answer == KEPT;
        seat += answer != AGAIN;
        if (answer == AGAIN) {
            usleep(20 * s->rank); /* not all at once again */
        }
    }
    *r = (struct request){kept, MOST_SEATS, 0};
    tell(s, request);
    return 0;
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long seats = 120;
    start(&s, 2, 0);
    if (argc > 2 || (argc == 2 && !number(argv[1], 1, MOST_SEATS, &seats))) {
        usage(&s, "[SEATS]    1 to 2000");
    }
    if (s.rank != 0) {
        return finish(&s, be_agent(&s, (uint32_t)seats));
    }
    struct office office = {0};
    open_office(&s, &office, (uint32_t)seats);
    meet(&s);
    return finish(&s, sell(&s, &office, (uint32_t)seats));
}
