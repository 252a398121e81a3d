/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Five small handlers on the readings of weather stations: each rank but 0 has a day's
 * readings, and puts them to rank 0 five times, to five entries.
 *
 *      copy        the readings themselves, of the first station
 *      aggregate   their sum and number: the mean
 *      histogram   how often each value came
 *      reduce      hour by hour, the sums of all stations, after the last of them
 *      filter      records {sensor, reading} of the sensors that were asked for
 *
 *      $ pinwheel run -n 4 ./pspin
 */
#include "start.h"

#include "pspin.h"

enum { COPY = 1, AGGREGATE, HISTOGRAM, REDUCE, FILTER };
enum { MINUTES = 1440, HOURS = 24, SENSORS = 16, WANTED = 7, BAR = 20, ROOM = 10000 };

struct record {
    uint64_t sensor, reading;
};

/* A day of a station. */
struct day {
    uint32_t reading[MINUTES]; /* tenths of a degree, 0 to 399 */
    uint64_t hour[HOURS];
    struct record record[MINUTES];
};

/* Cold nights and warm afternoons. */
static void measure(uint32_t station, struct day *day)
{
    uint32_t state = station;
    memset(day, 0, sizeof(*day));
    for (uint32_t minute = 0; minute < MINUTES; minute++) {
        uint32_t from_three = (minute + MINUTES - 180) % MINUTES; /* coldest at three */
        uint32_t warmth = from_three < MINUTES / 2 ? from_three : MINUTES - from_three;
        state = state * 1664525 + 1013904223;
        uint32_t r = 80 + warmth * warmth / 2400 + state / (UINT32_MAX / 60);
        day->reading[minute] = r;
        day->hour[minute / 60] += r;
        day->record[minute] = (struct record){station * SENSORS + minute % SENSORS, r};
    }
}

/* ---- Rank 0 ---- */

struct results {
    uint32_t copy[MINUTES];
    struct pspin_sum sum;
    struct pspin_histogram histogram;
    uint64_t hour[HOURS];
    struct {
        struct pspin_kept head;
        struct record record[ROOM];
    } kept;
};

static void append(const struct start *s, ptl_match_bits_t bits, void *start, size_t length,
                   ptl_handle_ct_t came, const ptl_handlers_t *handlers)
{
    ptl_me_t me = entry(start, length, bits, came);
    ptl_handle_me_t handle;
    check(PtlMEAppendHandlers(s->ni, INDEX, &me, handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
}

static void receive(const struct start *s, struct results *r, ptl_handle_ct_t came)
{
    static struct pspin_filter_state set;
    struct pspin_reduce_state reduce;
    ptl_handle_hpu_mem_t hpu;
    ptl_handlers_t handlers;
    pspin_copy_handlers(&handlers);
    append(s, COPY, r->copy, sizeof(r->copy), came, &handlers);
    pspin_aggregate_handlers(&r->sum, &handlers);
    append(s, AGGREGATE, NULL, 0, came, &handlers);
    pspin_histogram_handlers(&r->histogram, &handlers);
    append(s, HISTOGRAM, NULL, 0, came, &handlers);
    check(PtlHPUAllocMem(s->ni, pspin_reduce_memory(HOURS), &hpu), "PtlHPUAllocMem");
    pspin_reduce_handlers(HOURS, s->size - 1, hpu, r->hour, &reduce, &handlers);
    append(s, REDUCE, NULL, 0, came, &handlers);
    check(pspin_filter_start(&set, sizeof(struct record)), "pspin_filter_start");
    for (uint32_t station = 1; station < s->size; station++) {
        check(pspin_filter_add(&set, station * SENSORS + WANTED), "pspin_filter_add");
    }
    pspin_filter_handlers(&set, &r->kept.head, ROOM, &handlers);
    append(s, FILTER, NULL, 0, came, &handlers);
}

static void show(const struct start *s, const struct results *r)
{
    printf("%llu readings of %u stations, %.1f degrees on average\n",
           (unsigned long long)r->sum.words, s->size - 1,
           (double)r->sum.sum / (double)r->sum.words / 10);
    for (int bin = 60; bin < 360; bin += BAR) {
        uint64_t count = 0;
        for (int i = bin; i < bin + BAR; i++) {
            count += r->histogram.bin[i];
        }
        printf("  %2d.0 to %2d.9  %5llu %.*s\n", bin / 10, (bin + BAR) / 10 - 1,
               (unsigned long long)count, (int)(count * 100 / r->sum.words),
               "##################################################");
    }
    for (int hour = 0; hour < HOURS; hour += 6) {
        printf("  at %2d o'clock %4.1f degrees\n", hour,
               (double)r->hour[hour] / 60 / (s->size - 1) / 10);
    }
    printf("  %llu readings of sensors number %d\n", (unsigned long long)r->kept.head.records,
           WANTED);
}

/* The same by this program; how many results are wrong. Records come in any order of packets:
 * they are counted and summed up. */
static int compare(const struct start *s, const struct results *r)
{
    struct day *day = memory(sizeof(*day));
    struct results *want = memory(sizeof(*want));
    uint64_t kept_sum = 0;
    int wrong;
    for (uint32_t station = 1; station < s->size; station++) {
        measure(station, day);
        for (int i = 0; i < MINUTES; i++) {
            want->copy[i] = station == 1 ? day->reading[i] : want->copy[i];
            want->sum.sum += day->reading[i];
            want->histogram.bin[day->reading[i]]++;
            if (day->record[i].sensor % SENSORS == WANTED) {
                want->kept.head.records++;
                kept_sum += day->record[i].reading;
            }
        }
        for (int i = 0; i < HOURS; i++) {
            want->hour[i] += day->hour[i];
        }
    }
    for (uint64_t i = 0; i < r->kept.head.records && i < ROOM; i++) {
        kept_sum -= r->kept.record[i].reading;
    }
    wrong = memcmp(r->copy, want->copy, sizeof(r->copy)) != 0;
    wrong += r->sum.sum != want->sum.sum || r->sum.words != MINUTES * (s->size - 1);
    wrong += memcmp(r->histogram.bin, want->histogram.bin, sizeof(r->histogram.bin)) != 0;
    wrong += memcmp(r->hour, want->hour, sizeof(r->hour)) != 0;
    wrong += r->kept.head.records != want->kept.head.records || kept_sum != 0;
    printf("%d of 5 results wrong\n", wrong);
    return wrong != 0;
}

/* ---- The stations ---- */

static void send(const struct start *s, ptl_match_bits_t bits, const void *start, size_t length)
{
    ptl_handle_ct_t acks = counter(s);
    check(PtlPut(source(s, start, length, acks), 0, length, PTL_CT_ACK_REQ, rank_id(0), INDEX, bits,
                 0, NULL, 0),
          "PtlPut");
    await(acks, 1);
}

static void report(const struct start *s)
{
    struct day *day = memory(sizeof(*day));
    measure(s->rank, day);
    if (s->rank == 1) {
        send(s, COPY, day->reading, sizeof(day->reading));
    }
    send(s, AGGREGATE, day->reading, sizeof(day->reading));
    send(s, HISTOGRAM, day->reading, sizeof(day->reading));
    send(s, REDUCE, day->hour, sizeof(day->hour));
    send(s, FILTER, day->record, sizeof(day->record));
}

int main(int argc, char **argv)
{
    struct start s;
    int status = 0;
    start(&s, 2, 0);
    if (argc != 1) {
        usage(&s, "");
    }
    if (s.rank == 0) {
        struct results *r = memory(sizeof(*r));
        ptl_handle_ct_t came = counter(&s);
        receive(&s, r, came);
        meet(&s); /* the entries are there */
        await(came, 4 * (s.size - 1) + 1);
        show(&s, r);
        status = compare(&s, r);
    } else {
        meet(&s);
        report(&s);
    }
    return finish(&s, status);
}
