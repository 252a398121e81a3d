/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A volume on several servers that survives the loss of some: rank 0 replays a block trace, the
 * NICs of the others store data and parity. Then the first servers are taken for lost, and
 * ISA-L makes their data anew from what the others have.
 *
 *      rank 0 ──write──► NIC of a data server ──difference──► NICs of the parity servers
 *             ◄──done──────────────────────────────────────────────────┘
 *
 *      $ pinwheel run -n 5 ./raid                     RAID-5: parity on one of four servers
 *      $ pinwheel run -n 6 ./raid 2                   Reed-Solomon: two parities, two may be lost
 *      $ pinwheel run -n 6 ./raid 2 TRACE
 *
 * A line of the trace is an access in the format of the Storage Performance Council: unit, block of
 * 512 bytes, bytes, R or W, seconds. It goes to that place of the volume, round and round.
 */
#include "start.h"

#include <isa-l/erasure_code.h>

#include "raid.h"

enum { WRITES = 1, PARITIES, DONE, UNIT = 4096, STRIPES = 64, SLOTS = 16, SECTOR = 512 };
enum { LINES = 500, MOST = 1 << 16 };

struct volume {
    const struct start *s;
    struct raid_layout layout;
    uint8_t matrix[RAID_SERVERS * RAID_DATA]; /* the identity, then the rows of the parities */
    uint8_t tables[RAID_PARITY * RAID_DATA * RAID_TABLE];
    uint8_t *plain; /* what it should hold */
    size_t bytes;
};

static void lay_out(struct volume *v, uint32_t parity)
{
    uint32_t data = v->s->size - 1 - parity;
    v->layout = (struct raid_layout){.unit = UNIT,
                                     .stripes = STRIPES,
                                     .write_bits = WRITES,
                                     .parity_bits = PARITIES,
                                     .data = data,
                                     .parity = parity};
    for (uint32_t i = 0; i < data + parity; i++) {
        v->layout.server[i] = rank_id(i + 1);
    }
    gf_gen_cauchy1_matrix(v->matrix, (int)(data + parity), (int)data);
    if (parity == 1) {
        memset(v->matrix + data * data, 1, data); /* RAID-5: the sum */
    }
    ec_init_tables((int)data, (int)parity, v->matrix + data * data, v->tables);
    v->bytes = (size_t)UNIT * STRIPES * data;
    v->plain = memory(v->bytes);
}

/* Ranks 1 and up: two entries over the server's memory. */
static void serve(const struct volume *v)
{
    struct raid_locks *locks = memory(sizeof(*locks));
    uint8_t *store = memory(UNIT * STRIPES);
    struct raid_state state;
    ptl_handlers_t handlers;
    ptl_handle_me_t handle;
    ptl_handle_ct_t ignored = counter(v->s);
    ptl_me_t me = entry(store, UNIT * STRIPES, WRITES, ignored);
    check(raid_state(&v->layout, v->s->rank - 1, v->layout.parity == 1 ? NULL : v->tables, &state),
          "raid_state");
    raid_write_handlers(&state, locks, &handlers);
    check(PtlMEAppendHandlers(v->s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
    me.match_bits = PARITIES;
    raid_parity_handlers(&state, locks, &handlers);
    check(PtlMEAppendHandlers(v->s->ni, INDEX, &me, &handlers, PTL_PRIORITY_LIST, NULL, &handle),
          "PtlMEAppendHandlers");
}

/* ---- Rank 0 ---- */

static FILE *write_trace(void)
{
    FILE *file = tmpfile();
    uint32_t state = 5;
    for (int i = 0; file != NULL && i < LINES; i++) {
        state = state * 1664525 + 1013904223;
        fprintf(file, "0,%u,%u,%c,%.6f\n", state >> 12, SECTOR * (1 + (state >> 8) % 24),
                i % 4 == 3 ? 'R' : 'W', i * 0.0007);
    }
    if (file != NULL) {
        rewind(file);
    }
    return file;
}

static struct raid_client open_client(const struct volume *v)
{
    struct raid_client c = {.layout = v->layout,
                            .self = rank_id(0),
                            .pt = INDEX,
                            .done_bits = DONE,
                            .ct = counter(v->s),
                            .staging = memory(SLOTS * v->s->packet),
                            .slots = SLOTS,
                            .packet = v->s->packet,
                            .timeout_ms = 30000};
    ptl_handle_me_t handle;
    ptl_me_t me = entry(NULL, 0, DONE, c.ct);
    check(PtlMEAppend(v->s->ni, INDEX, &me, PTL_PRIORITY_LIST, NULL, &handle), "PtlMEAppend");
    c.md = source(v->s, c.staging, SLOTS * v->s->packet, c.ct);
    return c;
}

static void read_volume(const struct volume *v, uint64_t address, uint8_t *to, size_t length)
{
    ptl_handle_ct_t came = counter(v->s);
    ptl_handle_md_t md = source(v->s, to, length, came);
    uint64_t gets = 0;
    for (size_t done = 0, n; done < length; done += n) {
        uint32_t server;
        uint64_t offset;
        n = raid_place(&v->layout, address + done, &server, &offset);
        n = n < length - done ? n : length - done;
        check(PtlGet(md, done, n, v->layout.server[server], INDEX, WRITES, offset, NULL), "PtlGet");
        gets++;
    }
    await(came, gets);
    check(PtlMDRelease(md), "PtlMDRelease");
    check(PtlCTFree(came), "PtlCTFree");
}

/* Returns how many reads gave other bytes than were written. */
static int replay(const struct volume *v, struct raid_client *c, FILE *file)
{
    uint8_t *data = memory(MOST);
    unsigned long long unit, block, bytes;
    int lines = 0, writes = 0, wrong = 0, fields;
    double seconds;
    char kind;
    while ((fields = fscanf(file, "%llu,%llu,%llu,%c,%lf\n", &unit, &block, &bytes, &kind,
                            &seconds)) == 5) {
        if (bytes > MOST || bytes > v->bytes) {
            fail("line %d: more than %d bytes", lines + 1, MOST);
        }
        uint64_t at = (unit * 7919 + block) * SECTOR % (v->bytes - bytes + 1);
        lines++;
        if (kind == 'W' || kind == 'w') {
            for (size_t i = 0; i < bytes; i++) {
                data[i] = (uint8_t)(i * 31 + i / 256 + (size_t)lines);
            }
            check(raid_write(c, at, data, bytes), "raid_write");
            memcpy(v->plain + at, data, bytes);
            writes++;
        } else {
            check(raid_wait(c), "raid_wait"); /* a read sees what was written before */
            read_volume(v, at, data, bytes);
            wrong += memcmp(data, v->plain + at, bytes) != 0;
        }
    }
    if (fields != EOF) {
        fail("line %d of the trace is not UNIT,BLOCK,BYTES,R or W,SECONDS", lines + 1);
    }
    check(raid_wait(c), "raid_wait");
    printf("%d writes, %d reads, %d of them wrong\n", writes, lines - writes, wrong);
    return wrong;
}

/* Without the first servers: all data from those that are left. Returns bytes that are wrong. */
static size_t rebuild(const struct volume *v)
{
    uint32_t data = v->layout.data, lost = v->layout.parity, servers = data + lost;
    uint8_t square[RAID_DATA * RAID_DATA], inverse[RAID_DATA * RAID_DATA];
    uint8_t tables[RAID_DATA * RAID_DATA * RAID_TABLE], *left[RAID_DATA], *back[RAID_DATA];
    uint8_t *units = memory(servers * UNIT), *result = memory(data * UNIT);
    ptl_handle_ct_t came = counter(v->s);
    ptl_handle_md_t md = source(v->s, units, servers * UNIT, came);
    size_t wrong = 0;
    for (uint32_t stripe = 0; stripe < STRIPES; stripe++) {
        uint32_t rows = 0;
        for (uint32_t server = lost; server < servers; server++) {
            check(PtlGet(md, server * UNIT, UNIT, rank_id(server + 1), INDEX, WRITES, stripe * UNIT,
                         NULL),
                  "PtlGet");
        }
        await(came, (stripe + 1) * data);
        for (uint32_t member = 0; member < servers; member++) {
            uint32_t server = (member + stripe) % servers; /* members move by one each stripe */
            if (server >= lost) {
                memcpy(square + rows * data, v->matrix + member * data, data);
                left[rows++] = units + server * UNIT;
            }
        }
        if (gf_invert_matrix(square, inverse, (int)data) != 0) {
            fail("the matrix of what is left has no inverse");
        }
        ec_init_tables((int)data, (int)data, inverse, tables);
        for (uint32_t i = 0; i < data; i++) {
            back[i] = result + i * UNIT;
        }
        ec_encode_data(UNIT, (int)data, (int)data, tables, left, back);
        for (size_t i = 0; i < (size_t)data * UNIT; i++) {
            wrong += result[i] != v->plain[stripe * data * UNIT + i];
        }
    }
    printf("%u of %u servers lost: %zu bytes made anew from the others, %zu wrong\n", lost, servers,
           v->bytes, wrong);
    return wrong;
}

int main(int argc, char **argv)
{
    static struct volume v;
    struct start s;
    unsigned long parity = 1;
    int status = 0;
    start(&s, 3, 1 + RAID_DATA + 1);
    if (argc > 3 ||
        (argc > 1 &&
         !number(argv[1], 1, s.size - 2 < RAID_PARITY ? s.size - 2 : RAID_PARITY, &parity))) {
        usage(&s, "[PARITIES [TRACE]]    PARITIES: 1 to 4, and fewer than there are servers");
    }
    v.s = &s;
    lay_out(&v, (uint32_t)parity);
    if (s.rank != 0) {
        serve(&v);
        meet(&s); /* the servers are there, and the client */
    } else {
        FILE *trace = argc == 3 ? fopen(argv[2], "r") : write_trace();
        if (trace == NULL) {
            fail("%s: %s", argc == 3 ? argv[2] : "a temporary file", strerror(errno));
        }
        struct raid_client client = open_client(&v);
        meet(&s);
        status = replay(&v, &client, trace) != 0;
        status |= rebuild(&v) != 0;
        fclose(trace);
    }
    return finish(&s, status);
}
