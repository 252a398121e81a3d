/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A sieve whose lists lie in all ranks: each rank finds the smallest prime factor of its share of
 * the numbers, and appends each number to the list of that factor. The NICs tie the lists
 * together, all ranks at once; then each rank has its own NIC read some of the lists, item by item
 * from whichever rank has it.
 *
 *      list of 5:  head at rank 1 ──► 35 at rank 2 ──► 5 at rank 2 ──► 25 at rank 1
 *
 *      $ pinwheel run -n 4 ./chain           the numbers up to 100
 *      $ pinwheel run -n 4 ./chain 5000
 */
#include "start.h"

#include "chain.h"

enum { REQUESTS = 1, TABLE, ANSWERS };
enum { LISTS = 32, SHOWN = 13, MOST = 100000 };

/* A list is that of a prime; those beyond the last list share it. */
static unsigned long list_of(unsigned long factor)
{
    return factor < LISTS ? factor : LISTS - 1;
}

static unsigned long smallest_factor(unsigned long n)
{
    for (unsigned long f = 2; f * f <= n; f++) {
        if (n % f == 0) {
            return f;
        }
    }
    return n;
}

/* What a rank needs to read lists. */
struct reader {
    const struct start *s;
    ptl_handle_ct_t acks, came;
    ptl_size_t asked;
    ptl_handle_md_t md;
    struct chain_request *request;
    struct chain_answer *answer;
};

static void append_entry(const struct start *s, ptl_me_t me, const ptl_handlers_t *handlers)
{
    ptl_handle_me_t handle;
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
}

/* Each rank: an entry for requests, one over its table, one for answers. */
static struct reader open_chain(const struct start *s, unsigned long most)
{
    struct chain_state state = {.table_bits = TABLE,
                                .answer_bits = ANSWERS,
                                .lists = LISTS,
                                .room = (uint32_t)(most / s->size + 1),
                                .rank = s->rank,
                                .ranks = s->size};
    struct chain_table *table = memory(chain_size(&state));
    struct reader r = {.s = s,
                       .acks = counter(s),
                       .came = counter(s),
                       .request = memory(sizeof(*r.request)),
                       .answer = memory(sizeof(*r.answer))};
    ptl_handle_ct_t quiet = counter(s);
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    r.md = source(s, r.request, sizeof(*r.request), r.acks);
    check(chain_handlers(&state, table, &handlers), "chain_handlers");
    append_entry(s, entry(NULL, 0, REQUESTS, quiet), &handlers);
    ptl_me_t me = entry(table, chain_size(&state), TABLE, quiet);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    me = entry(r.answer, sizeof(*r.answer), ANSWERS, r.came);
    check(PtlMEAppend(s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    return r;
}

/* Sends this rank's numbers to its own NIC, all of them at once. */
static void sieve(const struct start *s, unsigned long most)
{
    struct chain_request *request = memory((most / s->size + 1) * sizeof(*request));
    ptl_handle_ct_t acks = counter(s);
    size_t count = 0;
    for (unsigned long n = 2; n <= most; n++) {
        if (n % s->size == s->rank) {
            request[count++] = (struct chain_request){CHAIN_APPEND, list_of(smallest_factor(n)), n};
        }
    }
    ptl_handle_md_t md = source(s, request, count * sizeof(*request), acks);
    for (size_t i = 0; i < count; i++) {
        check(PtlPut(md, i * sizeof(*request), sizeof(*request), PTL_CT_ACK_REQ, rank_id(s->rank),
                     INDEX, REQUESTS, 0, NULL, 0),
              "PtlPut");
    }
    await(acks, count);
}

/* Fills in r->answer. */
static void ask(struct reader *r, uint64_t list, uint64_t from)
{
    *r->request = (struct chain_request){CHAIN_READ, list, from};
    check(PtlPut(r->md, 0, sizeof(*r->request), PTL_CT_ACK_REQ, rank_id(r->s->rank), INDEX,
                 REQUESTS, 0, NULL, 0),
          "PtlPut");
    r->asked++;
    await(r->acks, r->asked);
    await(r->came, r->asked);
}

/* Reads a list, and tells whether it is what a plain computation says: so many numbers, this sum,
 * each item's number once. */
static bool list_is_right(struct reader *r, uint64_t list, unsigned long most)
{
    uint64_t count = 0, sum = 0, numbers = 0, want_count = 0, want_sum = 0, from = CHAIN_END;
    bool right = true;
    do {
        ask(r, list, from);
        for (uint64_t i = 0; i < r->answer->items; i++) {
            uint64_t n = r->answer->item[i].value;
            right = right && n >= 2 && n <= most && list_of(smallest_factor(n)) == list;
            count++;
            sum += n;
            numbers += r->answer->item[i].number;
        }
        from = r->answer->next;
    } while (from != CHAIN_END && from != CHAIN_LOST);
    for (unsigned long n = 2; n <= most; n++) {
        bool of_list = list_of(smallest_factor(n)) == list;
        want_count += of_list;
        want_sum += of_list ? n : 0;
    }
    if (count != 0 && list <= SHOWN) {
        printf("rank %u: %llu is the smallest factor of %llu numbers, their sum is %llu\n",
               r->s->rank, (unsigned long long)list, (unsigned long long)count,
               (unsigned long long)sum);
    }
    return right && from == CHAIN_END && count == want_count && sum == want_sum &&
           (count == 0 || numbers == count * (count - 1) / 2);
}

int main(int argc, char **argv)
{
    struct start s;
    unsigned long most = 100;
    int lists = 0, wrong = 0;
    start(&s, 1, 0);
    if (argc > 2 || (argc == 2 && !number(argv[1], 2, MOST, &most))) {
        usage(&s, "[MOST (2 to 100000)]");
    }
    packet_holds(&s, sizeof(struct chain_answer));
    struct reader r = open_chain(&s, most);
    meet(&s); /* the entries are there */
    sieve(&s, most);
    meet(&s); /* the lists are complete */
    for (uint64_t list = s.rank; list < LISTS; list += s.size, lists++) {
        wrong += !list_is_right(&r, list + 1 < LISTS ? list + 1 : 0, most);
    }
    printf("rank %u: %d lists read, %d of them wrong\n", s.rank, lists, wrong);
    return finish(&s, wrong != 0);
}
