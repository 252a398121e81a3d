/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * handlers/raid: a block trace in the format of the Storage Performance Council is
 * written, read back and replayed by two clients at once, into units of the same
 * stripes. Then the servers' memories are compared with a plain volume, the parities with
 * those that ISA-L computes, and each way to lose as many servers as there are parities
 * is made good by ISA-L.
 *
 *      ranks 0 and 1: clients        the others: servers
 */
#include "kit.h"

#include "raid.h"

#include <isa-l/erasure_code.h>

enum { CLIENTS = 2, WRITE_BITS = 1, PARITY_BITS = 2, DONE_BITS = 3, STRIPES = 12, SLOTS = 16 };
enum { SECTOR = 512, LINES = 400 };

struct volume {
    struct kit k;
    struct raid_layout layout;
    uint8_t matrix[RAID_SERVERS * RAID_DATA]; /* the identity, then the rows of the parities */
    uint8_t tables[RAID_PARITY * RAID_DATA * RAID_TABLE];
    uint8_t *memory; /* a server's */
    struct raid_locks locks;
    struct raid_client client;
};

static struct volume v;

static void set_up(int rank, int size, uint32_t data, uint32_t parity, uint64_t unit)
{
    memset(&v, 0, sizeof(v));
    kit_open(&v.k, rank, size);
    CHECK_EQ(size, (int)(CLIENTS + data + parity));
    v.layout = (struct raid_layout){.unit = unit,
                                    .stripes = STRIPES,
                                    .write_bits = WRITE_BITS,
                                    .parity_bits = PARITY_BITS,
                                    .data = data,
                                    .parity = parity};
    for (uint32_t i = 0; i < data + parity; i++) {
        v.layout.server[i] = v.k.p.id[CLIENTS + i];
    }
    gf_gen_cauchy1_matrix(v.matrix, (int)(data + parity), (int)data);
    if (parity == 1) {
        memset(v.matrix + data * data, 1, data); /* RAID-5: the sum */
    }
    ec_init_tables((int)data, (int)parity, v.matrix + data * data, v.tables);
}

static void open_server(bool by_table)
{
    struct raid_state state;
    ptl_handlers_t h;
    size_t size = v.layout.unit * STRIPES;
    v.memory = kit_memory(size);
    OK(raid_state(&v.layout, (uint32_t)v.k.p.rank - CLIENTS, by_table ? v.tables : NULL, &state));
    raid_write_handlers(&state, &v.locks, &h);
    kit_entry(&v.k, v.memory, size, WRITE_BITS, 0, PTL_CT_NONE, &h);
    raid_parity_handlers(&state, &v.locks, &h);
    kit_entry(&v.k, v.memory, size, PARITY_BITS, 0, PTL_CT_NONE, &h);
}

static void open_client(void)
{
    struct raid_client *c = &v.client;
    *c = (struct raid_client){.layout = v.layout,
                              .self = v.k.p.id[v.k.p.rank],
                              .pt = v.k.p.pt,
                              .done_bits = DONE_BITS,
                              .ct = port_ct(&v.k.p),
                              .staging = kit_memory(SLOTS * v.k.packet),
                              .slots = SLOTS,
                              .packet = v.k.packet,
                              .timeout_ms = 20000u * (unsigned)ptest_slow()};
    c->md = port_quiet_md(&v.k.p, c->staging, SLOTS * v.k.packet, PTL_MD_EVENT_CT_ACK, c->ct);
    kit_entry(&v.k, NULL, 0, DONE_BITS, 0, c->ct, NULL);
}

/* ---- The trace ---- */

/* A line of a trace: application's storage unit, block, bytes, R or W, seconds. */
struct access {
    unsigned asu;
    uint64_t lba;
    size_t length;
    char opcode;
};

/* An ASU's own address space, of half the volume. */
static uint64_t asu_bytes(void)
{
    return v.layout.unit * STRIPES * v.layout.data / CLIENTS;
}

static FILE *write_trace(void)
{
    FILE *f = tmpfile();
    uint64_t r = 5;
    double seconds = 0;
    CHECK(f != NULL);
    for (int i = 0; i < LINES; i++) {
        uint64_t blocks = asu_bytes() / SECTOR, n = 1 + splitmix(&r) % 12;
        seconds += (double)(splitmix(&r) % 1000) / 1e6;
        fprintf(f, "%u,%llu,%llu,%c,%.6f\n", (unsigned)(splitmix(&r) % CLIENTS),
                (unsigned long long)(splitmix(&r) % (blocks - n)),
                (unsigned long long)(n * SECTOR - (i % 9 == 0 ? 100 : 0)),
                splitmix(&r) % 4 == 0 ? 'R' : 'W', seconds);
    }
    CHECK(fflush(f) == 0);
    return f;
}

static bool next_access(FILE *f, struct access *a)
{
    unsigned long long lba, length;
    double seconds;
    int n = fscanf(f, "%u,%llu,%llu,%c,%lf\n", &a->asu, &lba, &length, &a->opcode, &seconds);
    CHECK(n == 5 || n == EOF);
    a->lba = lba;
    a->length = length;
    return n == 5;
}

/* Units of the two ASUs alternate in the volume, so that their stripes are the same. */
static uint64_t volume_address(unsigned asu, uint64_t address)
{
    uint64_t unit = address / v.layout.unit;
    return (unit * CLIENTS + asu) * v.layout.unit + address % v.layout.unit;
}

/* Calls `each` for the pieces of an access that lie in one unit. */
static void pieces(const struct access *a, void (*each)(uint64_t address, uint8_t *data, size_t n),
                   uint8_t *data)
{
    uint64_t at = a->lba * SECTOR;
    for (size_t done = 0, n; done < a->length; done += n, at += n) {
        n = v.layout.unit - at % v.layout.unit;
        n = n < a->length - done ? n : a->length - done;
        each(volume_address(a->asu, at), data + done, n);
    }
}

static uint8_t *plain; /* the volume as it should be */

static void plain_write(uint64_t address, uint8_t *data, size_t n)
{
    memcpy(plain + address, data, n);
}

static void volume_write(uint64_t address, uint8_t *data, size_t n)
{
    OK(raid_write(&v.client, address, data, n));
    plain_write(address, data, n);
}

static void volume_read(uint64_t address, uint8_t *data, size_t n)
{
    for (size_t done = 0, more; done < n; done += more) {
        uint32_t server;
        uint64_t offset;
        more = raid_place(&v.layout, address + done, &server, &offset);
        more = more < n - done ? more : n - done;
        kit_get_once(&v.k, data + done, more, CLIENTS + (int)server, WRITE_BITS, offset);
    }
    CHECK_SAME(data, plain + address, n);
}

static void replay(FILE *f)
{
    uint8_t *data = kit_memory(16 * SECTOR);
    struct access a;
    rewind(f);
    for (unsigned line = 0; next_access(f, &a); line++) {
        bool mine = a.asu == (unsigned)v.k.p.rank;
        ptest_fill(data, a.length, line);
        if (a.opcode == 'W') {
            pieces(&a, mine ? volume_write : plain_write, data);
        } else if (mine) {
            OK(raid_wait(&v.client)); /* a read sees what was written before */
            pieces(&a, volume_read, data);
        }
    }
    OK(raid_wait(&v.client));
}

/* ---- The servers afterwards ---- */

/* All servers' memories, and of each stripe the units in order of the members. */
static uint8_t *collect(void)
{
    uint32_t servers = v.layout.data + v.layout.parity;
    uint64_t unit = v.layout.unit;
    uint8_t *units = kit_memory(servers * STRIPES * unit), *memory = kit_memory(STRIPES * unit);
    for (uint32_t s = 0; s < servers; s++) {
        kit_get_once(&v.k, memory, STRIPES * unit, CLIENTS + (int)s, WRITE_BITS, 0);
        for (uint64_t stripe = 0; stripe < STRIPES; stripe++) {
            uint64_t member = (s + servers - stripe % servers) % servers;
            memcpy(units + (stripe * servers + member) * unit, memory + stripe * unit, unit);
        }
    }
    free(memory);
    return units;
}

static void check_parity(const uint8_t *units)
{
    uint32_t data = v.layout.data, servers = data + v.layout.parity;
    uint64_t unit = v.layout.unit;
    uint8_t *members[RAID_SERVERS], *parity[RAID_PARITY];
    for (uint32_t i = 0; i < v.layout.parity; i++) {
        parity[i] = kit_memory(unit);
    }
    for (uint64_t stripe = 0; stripe < STRIPES; stripe++) {
        for (uint32_t m = 0; m < servers; m++) {
            members[m] = (uint8_t *)units + (stripe * servers + m) * unit;
        }
        CHECK_SAME(members[0], plain + stripe * data * unit, data * unit);
        ec_encode_data((int)unit, (int)data, (int)v.layout.parity, v.tables, members, parity);
        for (uint32_t i = 0; i < v.layout.parity; i++) {
            CHECK_SAME(members[data + i], parity[i], unit);
        }
    }
}

/* Rebuilds the data of the first stripe from those members that are not in `lost`. */
static void rebuild(const uint8_t *units, unsigned lost)
{
    uint32_t data = v.layout.data, servers = data + v.layout.parity, rows = 0;
    uint64_t unit = v.layout.unit;
    uint8_t square[RAID_DATA * RAID_DATA], inverse[RAID_DATA * RAID_DATA];
    uint8_t tables[RAID_DATA * RAID_DATA * RAID_TABLE];
    uint8_t *left[RAID_DATA], *back[RAID_DATA];
    for (uint32_t m = 0; m < servers && rows < data; m++) {
        if ((lost >> m & 1) == 0) {
            memcpy(square + rows * data, v.matrix + m * data, data);
            left[rows++] = (uint8_t *)units + m * unit;
        }
    }
    CHECK_EQ(gf_invert_matrix(square, inverse, (int)data), 0);
    ec_init_tables((int)data, (int)data, inverse, tables);
    for (uint32_t i = 0; i < data; i++) {
        back[i] = kit_memory(unit);
    }
    ec_encode_data((int)unit, (int)data, (int)data, tables, left, back);
    for (uint32_t i = 0; i < data; i++) {
        CHECK_SAME(back[i], plain + i * unit, unit);
        free(back[i]);
    }
}

static void run(int rank, int size, uint32_t data, uint32_t parity, uint64_t unit, bool by_table)
{
    set_up(rank, size, data, parity, unit);
    FILE *f = write_trace();
    if (rank >= CLIENTS) {
        open_server(by_table);
        BARRIER();
        BARRIER();
    } else {
        open_client();
        plain = kit_memory(v.layout.unit * STRIPES * data);
        BARRIER();
        replay(f);
        BARRIER(); /* both have done */
        uint8_t *units = collect();
        check_parity(units);
        for (unsigned lost = 0; lost < 1u << (data + parity); lost++) {
            if ((uint32_t)__builtin_popcount(lost) == parity) {
                rebuild(units, lost);
            }
        }
    }
    fclose(f);
    kit_close(&v.k);
}

PTEST(raid5, 5)
{
    run(rank, size, 2, 1, 4096, false);
}

PTEST(raid5_by_table, 6)
{
    run(rank, size, 3, 1, 2048, true);
}

PTEST(reed_solomon, 8)
{
    run(rank, size, 4, 2, 3 * 1024 + 64, true);
}

PTEST(reed_solomon_of_three_parities, 7)
{
    run(rank, size, 2, 3, 8192, true);
}

/* Both clients write the same places: what is there at the end is one of the two, and the
 * parity is right for it. */
PTEST(same_places, 5)
{
    set_up(rank, size, 2, 1, 1024);
    if (rank >= CLIENTS) {
        open_server(false);
        BARRIER();
        BARRIER();
    } else {
        size_t bytes = 2 * 1024 * STRIPES;
        uint8_t *data = kit_memory(bytes);
        uint64_t r = (uint64_t)rank;
        open_client();
        memset(data, 1 + rank, bytes);
        BARRIER();
        for (int i = 0; i < 200; i++) {
            uint64_t at = splitmix(&r) % bytes;
            OK(raid_write(&v.client, at, data, splitmix(&r) % (bytes - at) % 3000));
        }
        OK(raid_write(&v.client, 0, data, bytes));
        OK(raid_wait(&v.client));
        BARRIER();
        uint8_t *units = collect();
        for (size_t stripe = 0; stripe < STRIPES; stripe++) {
            uint8_t *unit = units + stripe * 3 * 1024;
            for (size_t i = 0; i < 1024; i++) {
                CHECK(unit[i] == 1 || unit[i] == 2);
                CHECK(unit[1024 + i] == 1 || unit[1024 + i] == 2);
                CHECK_EQ(unit[2048 + i], unit[i] ^ unit[1024 + i]);
            }
        }
    }
    kit_close(&v.k);
}

/* What a client is told: a server refused, or did not answer in time. */
PTEST(client_is_told, 5)
{
    uint8_t data[100] = {0};
    set_up(rank, size, 2, 1, 1024);
    if (rank >= CLIENTS && rank != 4) { /* server 2, the parity of stripe 0, is not there */
        open_server(false);
    }
    if (rank == 0) {
        open_client();
    }
    BARRIER();
    if (rank == 0) {
        OK(raid_write(&v.client, 0, data, 0)); /* nothing */
        OK(raid_wait(&v.client));
        v.client.timeout_ms = 100;
        OK(raid_write(&v.client, 0, data, 100));
        CHECK_CODE(raid_wait(&v.client), PTL_CT_NONE_REACHED);
        OK(raid_write(&v.client, v.layout.unit * 2 * STRIPES, data, 100)); /* behind the last */
        v.client.timeout_ms = 20000u * (unsigned)ptest_slow();
        CHECK_CODE(raid_wait(&v.client), PTL_FAIL);
    }
    BARRIER();
    if (rank == 2) {
        EVENT_FAIL(v.k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
    }
    kit_close(&v.k);
}

PTEST(refused, 5)
{
    struct raid_state state;
    set_up(rank, size, 2, 1, 1024);
    struct raid_layout bad[6];
    for (int i = 0; i < 6; i++) {
        bad[i] = v.layout;
    }
    bad[0].data = 0;
    bad[1].data = RAID_DATA + 1;
    bad[2].parity = 0;
    bad[3].parity = 2; /* without tables */
    bad[4].unit = 1000;
    bad[5].stripes = UINT64_MAX;
    for (int i = 0; i < 6; i++) {
        INVALID(raid_state(&bad[i], 0, NULL, &state));
    }
    INVALID(raid_state(&v.layout, 3, NULL, &state));
    if (rank >= CLIENTS) {
        open_server(false);
    }
    BARRIER();
    if (rank == 0) {
        /* offset, client, done_bits, member */
        const uint64_t messages[][4] = {{STRIPES * 1024}, {~0ull}, {1024 - 95}};
        uint8_t packet[128] = {0};
        for (int i = 0; i < 3; i++) {
            memcpy(packet, messages[i], sizeof(messages[i]));
            kit_put_once(&v.k, packet, 128, 2, WRITE_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
            kit_put_once(&v.k, packet, 128, 4, PARITY_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
        }
        memset(packet, 0, sizeof(packet)); /* stripe 0: server 2 has parity, server 0 data */
        kit_put_once(&v.k, packet, 128, 4, WRITE_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
        kit_put_once(&v.k, packet, 128, 2, PARITY_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
        kit_put_once(&v.k, packet, 31, 2, WRITE_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
        packet[24] = 2; /* a member that has no data */
        kit_put_once(&v.k, packet, 128, 4, PARITY_BITS, 0, 0, PTL_NI_HANDLER_FAIL);
    }
    BARRIER();
    for (int i = 0; i < (rank == 2 || rank == 4 ? 5 : 0); i++) {
        EVENT_FAIL(v.k.p.eq, PTL_EVENT_PUT, PTL_NI_HANDLER_FAIL);
        CHECK_BYTES(v.memory, STRIPES * 1024, 0);
    }
    kit_close(&v.k);
}
