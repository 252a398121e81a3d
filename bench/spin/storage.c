/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Storage with redundancy: rank 0 writes work->size bytes at a time, round and round.
 *
 *   raid5         ranks 1 to 3: two servers with data, one with parity    handlers/raid
 *   reed_solomon  ranks 1 to 4: two with data, two with parities
 *
 * By the CPU: servers that take a full event for each message; data servers put the difference
 * to the parities, which put "done" to the client. A write is over when all parities have it;
 * in the end all stripes' parities are computed from the data.
 */
#include "ranks.h"

#include "raid.h"

#include <string.h>

enum {
    UNIT = 65536,
    STRIPES = 16,
    SLOTS = 64,
    DATA_SERVERS = 2,
    TABLE_HALF = 16,
    LOWEST_POLYNOMIAL = 0x1d /* of GF(2^8), as ISA-L's */
};

static struct raid_layout layout;
static struct raid_client client;
static uint8_t tables[RAID_PARITY * DATA_SERVERS * RAID_TABLE];

static uint32_t parities(const struct turn_work *work)
{
    return work->bench == BENCH_SPIN_RAID5 ? 1 : 2;
}

static bool is_server(void)
{
    return turn_rank() > 0 && turn_rank() <= (int)(layout.data + layout.parity);
}

static uint8_t times(uint8_t a, uint8_t b)
{
    uint8_t product = 0;
    for (; b != 0; b >>= 1, a = (uint8_t)(a << 1 ^ (a & 0x80 ? LOWEST_POLYNOMIAL : 0))) {
        product ^= b & 1 ? a : 0;
    }
    return product;
}

/* Rows of a Vandermonde matrix: parity p has (d + 1)^p of data d. */
static void make_tables(uint32_t parity)
{
    for (uint32_t p = 0; p < parity; p++) {
        for (uint32_t d = 0; d < DATA_SERVERS; d++) {
            uint8_t *table = tables + (p * DATA_SERVERS + d) * RAID_TABLE;
            for (uint32_t i = 0; i < TABLE_HALF; i++) {
                uint8_t c = p == 0 ? 1 : (uint8_t)(d + 1);
                table[i] = times(c, (uint8_t)i);
                table[TABLE_HALF + i] = times(c, (uint8_t)(i << 4));
            }
        }
    }
}

static void make_layout(const struct turn_work *work)
{
    layout = (struct raid_layout){.unit = UNIT,
                                  .stripes = STRIPES,
                                  .write_bits = BITS_DATA,
                                  .parity_bits = BITS_PARITY,
                                  .data = DATA_SERVERS,
                                  .parity = parities(work)};
    for (uint32_t i = 0; i < layout.data + layout.parity; i++) {
        layout.server[i] = crew.id[1 + i];
    }
    make_tables(layout.parity);
}

static int open_server(void)
{
    static struct raid_state state;
    static struct raid_locks locks;
    ptl_handlers_t write, parity;
    int code =
        raid_state(&layout, (uint32_t)turn_rank() - 1, layout.parity > 1 ? tables : NULL, &state);
    memset(&locks, 0, sizeof(locks));
    raid_write_handlers(&state, &locks, &write);
    raid_parity_handlers(&state, &locks, &parity);
    return link_ok(code, "raid_state") &&
                   crew_append(LINK_COUNTED, BITS_DATA, crew.to, RANKS_MOST, &crew.arrived,
                               &write) == 0 &&
                   crew_append(LINK_COUNTED, BITS_PARITY, crew.to, RANKS_MOST, &crew.arrived,
                               &parity) == 0
               ? 0
               : -1;
}

/* A message to a server of the program's own lands aside, its place is in the header data. */
static int open_server_for_cpu(void)
{
    return crew_append(LINK_EVENTS, BITS_DATA, crew.aside, RANKS_MOST, &crew.arrived, NULL) != 0 ||
                   crew_append(LINK_EVENTS, BITS_PARITY, crew.aside + RANKS_MOST,
                               (ptl_size_t)DATA_SERVERS * RANKS_MOST, &crew.arrived, NULL) != 0
               ? -1
               : 0;
}

static int open_client(void)
{
    client = (struct raid_client){.layout = layout,
                                  .self = self.me,
                                  .pt = LINK_COUNTED,
                                  .done_bits = BITS_DONE,
                                  .ct = crew.result.ct,
                                  .staging = crew.aside,
                                  .slots = SLOTS,
                                  .packet = self.packet,
                                  .timeout_ms = 10000,
                                  .counted = crew.result.expected};
    ptl_md_t md = {.start = crew.aside,
                   .length = SLOTS * self.packet,
                   .options = PTL_MD_EVENT_CT_ACK,
                   .eq_handle = PTL_EQ_NONE,
                   .ct_handle = crew.result.ct};
    return link_ok(PtlMDBind(self.ni, &md, &client.md), "PtlMDBind")
               ? crew_append(LINK_COUNTED, BITS_DONE, NULL, 0, &crew.result, NULL)
               : -1;
}

static int begin_raid(const struct turn_work *work)
{
    int rc = 0;
    make_layout(work);
    memset(crew.to, 0, RANKS_MOST);
    if (turn_rank() == 0) {
        turn_fill(crew.from, work->size, work->size);
        rc = open_client();
    } else if (is_server()) {
        rc = crew.by_cpu ? open_server_for_cpu() : open_server();
        rc = rc != 0 ? rc : crew_append(LINK_EVENTS, BITS_OVER, NULL, 0, &crew.result, NULL);
    }
    return rc != 0 ? rc : turn_gather(NULL, 0, NULL);
}

/* One message a unit's part and server, as the server's program wants it. */
static int write_for_cpu(uint64_t address, uint64_t length)
{
    for (uint64_t done = 0, n; done < length; done += n) {
        uint32_t server;
        uint64_t offset;
        n = raid_place(&layout, address + done, &server, &offset);
        n = n < length - done ? n : length - done;
        int code = PtlPut(crew.md, done, n, PTL_NO_ACK_REQ, layout.server[server], LINK_EVENTS,
                          BITS_DATA, offset, NULL, (address + done) / UNIT % DATA_SERVERS);
        if (!link_ok(code, "PtlPut") || link_wait(&crew.result, layout.parity) != 0) {
            return -1;
        }
    }
    return 0;
}

static int write_all(uint64_t size, uint64_t iterations)
{
    uint64_t volume = (uint64_t)UNIT * STRIPES * DATA_SERVERS;
    int rc = 0;
    for (uint64_t i = 0; i < iterations && rc == 0; i++) {
        uint64_t address = i * size % volume;
        double start = turn_now();
        rc = crew.by_cpu ? write_for_cpu(address, size)
             : link_ok(raid_write(&client, address, crew.from, size), "raid_write") &&
                     link_ok(raid_wait(&client), "raid_wait")
                 ? 0
                 : -1;
        crew.time.total += turn_now() - start;
    }
    for (uint32_t s = 0; s < layout.data + layout.parity && rc == 0; s++) {
        rc = crew_put(crew.md, 0, layout.server[s], LINK_EVENTS, BITS_OVER, 0, 0);
    }
    return rc;
}

/* Returns the server that has member `member` of the stripe with the byte at `offset`. */
static uint32_t member_server(uint64_t offset, uint32_t member)
{
    uint64_t servers = layout.data + layout.parity;
    return (uint32_t)((offset / UNIT + member) % servers);
}

/* At a data server: the difference goes to the parities. */
static int take_data(const ptl_event_t *event)
{
    uint64_t offset = event->remote_offset, length = event->mlength;
    uint8_t *old = crew.to + offset, *new = event->start;
    uint8_t *difference = crew.from;
    for (uint64_t i = 0; i < length; i++) {
        difference[i] = old[i] ^ new[i];
        old[i] = new[i];
    }
    int rc = 0;
    for (uint32_t p = 0; p < layout.parity && rc == 0; p++) {
        rc = crew_put(crew.md, length, layout.server[member_server(offset, layout.data + p)],
                      LINK_EVENTS, BITS_PARITY, event->hdr_data * RANKS_MOST + offset, p);
    }
    return rc;
}

static int take_difference(const ptl_event_t *event)
{
    uint64_t data = event->remote_offset / RANKS_MOST, offset = event->remote_offset % RANKS_MOST;
    const uint8_t *difference = event->start;
    const uint8_t *table = tables + (event->hdr_data * DATA_SERVERS + data) * RAID_TABLE;
    uint8_t *parity = crew.to + offset;
    bool plain = event->hdr_data == 0;
    for (uint64_t i = 0; i < event->mlength; i++) {
        uint8_t d = difference[i];
        parity[i] ^= plain ? d : (uint8_t)(table[d & 15] ^ table[TABLE_HALF + (d >> 4)]);
    }
    return crew_put(crew.md, 0, crew.id[0], LINK_COUNTED, BITS_DONE, 0, 0);
}

static int serve(void)
{
    ptl_event_t event;
    for (;;) {
        int code = PtlEQWait(self.eq, &event), rc = 0;
        if (code != PTL_OK || event.ni_fail_type != PTL_NI_OK) {
            return turn_fail("PtlEQWait gave %d, failure %d", code, (int)event.ni_fail_type);
        }
        if (event.match_bits == BITS_OVER) {
            return 0;
        }
        rc = event.match_bits == BITS_DATA ? take_data(&event) : take_difference(&event);
        if (rc != 0) {
            return rc;
        }
    }
}

static int run_raid(const struct turn_work *work, uint64_t iterations)
{
    crew.time.total = 0;
    int rc = turn_rank() == 0 ? write_all(work->size, iterations) : is_server() ? serve() : 0;
    return rc != 0 ? rc : turn_gather(NULL, 0, NULL);
}

/* The parities of every stripe, of all servers' memory. */
static int check_raid(void)
{
    static uint8_t piece[TURN_RANKS * 1024];
    enum { PIECE = 1024 };
    for (uint64_t at = 0; at < (uint64_t)UNIT * STRIPES; at += PIECE) {
        if (turn_gather(crew.to + at, PIECE, piece) != 0) {
            return -1;
        }
        for (uint32_t p = 0; turn_rank() == 0 && p < layout.parity; p++) {
            const uint8_t *parity =
                piece + (1 + member_server(at, layout.data + p)) * (size_t)PIECE;
            for (int i = 0; i < PIECE; i++) {
                uint8_t wanted = 0;
                for (uint32_t d = 0; d < layout.data; d++) {
                    uint8_t c = p == 0 ? 1 : (uint8_t)(d + 1);
                    wanted ^= times(c, piece[(1 + member_server(at, d)) * (size_t)PIECE + i]);
                }
                if (parity[i] != wanted) {
                    return turn_fail("parity %u at %lu is wrong", p, (unsigned long)at + i);
                }
            }
        }
    }
    return 0;
}

static int end_raid(const struct turn_work *work, struct turn_result *result)
{
    int rc = work->check ? check_raid() : 0;
    if (turn_rank() == 0 && !link_ok(PtlMDRelease(client.md), "PtlMDRelease")) {
        return -1;
    }
    return crew_finish(work, result) != 0 ? -1 : rc;
}

static bool fits_unit(const struct turn_work *work)
{
    return crew_fits(work) && work->size <= UNIT && UNIT % work->size == 0;
}

const struct turn_duty storage_duties[] = {
    {BENCH_SPIN_RAID5, fits_unit, begin_raid, run_raid, end_raid},
    {BENCH_SPIN_REED_SOLOMON, fits_unit, begin_raid, run_raid, end_raid},
};
const int storage_duty_count = sizeof(storage_duties) / sizeof(storage_duties[0]);
