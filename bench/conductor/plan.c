/* SPDX-License-Identifier: BSD-3-Clause */
/* The plan: benches, sizes and subjects to measure; see conductor.h. */
#include "conductor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define HALF 0.5e9 /* a round trip in seconds to half of it in ns */
#define HALF_US 0.5e6
#define CALLS (1e9 / 64)
#define BOTH TURN_TWO_CORES

/* name, title, metric, unit, subject, ours, theirs, cores, sizes, value, scale, seconds, compared
 */
const struct bench bench_table[] = {
    {"put_latency", "put, received by PtlCTWait: half round trip", "half_round_trip", "ns", "ours",
     BENCH_LATENCY, BENCH_LATENCY, BOTH, SIZE_MESSAGE, VALUE_TIME, HALF, 0, true},
    {"put_latency_eqget", "put, received by polling PtlEQGet: half round trip", "half_round_trip",
     "ns", "ours", BENCH_LATENCY_EQGET, BENCH_LATENCY, BOTH, SIZE_SMALL, VALUE_TIME, HALF, 0, true},
    {"put_latency_eqwait", "put, received by PtlEQWait: half round trip", "half_round_trip", "ns",
     "ours", BENCH_LATENCY_EQWAIT, BENCH_LATENCY, BOTH, SIZE_SMALL, VALUE_TIME, HALF, 0, true},
    {"triggered_put", "put answered by a triggered put: half round trip", "half_round_trip", "ns",
     "ours", BENCH_LATENCY_TRIGGERED, BENCH_LATENCY, BOTH, SIZE_SMALL, VALUE_TIME, HALF, 0, true},
    {"handler_latency", "put into an entry with a header handler: half round trip",
     "half_round_trip", "ns", "ours", BENCH_LATENCY_HANDLER, BENCH_LATENCY, BOTH, SIZE_SMALL,
     VALUE_TIME, HALF, 0, true},
    {"get_latency", "get, or a one-sided read: until complete", "time", "ns", "ours", BENCH_GET,
     BENCH_GET, BOTH, SIZE_MESSAGE, VALUE_TIME, 1e9, 0, true},
    {"message_rate", "messages, windows of 64", "rate", "M/s", "ours", BENCH_RATE, BENCH_RATE, BOTH,
     SIZE_WINDOW, VALUE_RATE, TURN_WINDOW_RATE / 1e6, 0, true},
    {"bandwidth", "private memory to private memory, 16 buffers", "bandwidth", "GB/s", "ours",
     BENCH_BANDWIDTH, BENCH_BANDWIDTH, BOTH, SIZE_LARGE, VALUE_BYTES, TURN_WINDOW_BANDWIDTH, 0,
     true},
    {"same_core", "both processes on one core: half round trip", "half_round_trip", "ns", "ours",
     BENCH_LATENCY, BENCH_LATENCY, TURN_ONE_CORE, SIZE_SMALL, VALUE_TIME, HALF, 0, true},
    {"wake", "a sleeping target is woken and answers", "time", "us", "ours", BENCH_WAKE, BENCH_WAKE,
     BOTH, SIZE_SMALL, VALUE_TIME, 1e6, 20e-3, true},
    {"ct_get", "PtlCTGet, nothing arrives", "time", "ns", "ours", BENCH_CTGET, BENCH_CTGET, BOTH,
     SIZE_NONE, VALUE_TIME, CALLS, 0, false},
    {"eq_get", "PtlEQGet, nothing arrives", "time", "ns", "ours", BENCH_EQGET, BENCH_EQGET, BOTH,
     SIZE_NONE, VALUE_TIME, CALLS, 0, false},
    {"match", "search alone among posted entries, one mask", "time", "ns", "ours", BENCH_MATCH,
     BENCH_MATCH, BOTH, SIZE_ENTRIES, VALUE_TIME, CALLS, 0, false},
    {"match_masks", "search alone among posted entries, 8 masks", "time", "ns", "ours",
     BENCH_MATCH_MASKS, BENCH_MATCH_MASKS, BOTH, SIZE_ENTRIES, VALUE_TIME, CALLS, 0, false},
    {"match_wild", "search alone among posted entries, any source", "time", "ns", "ours",
     BENCH_MATCH_WILD, BENCH_MATCH_WILD, BOTH, SIZE_DEPTH, VALUE_TIME, CALLS, 0, false},
    {"match_wild_2", "search alone among posted entries, known source and any", "time", "ns",
     "ours", BENCH_MATCH_WILD_2, BENCH_MATCH_WILD_2, BOTH, SIZE_DEPTH, VALUE_TIME, CALLS, 0, false},
    {"put_depth", "put into one of many entries, 8 masks: half round trip", "half_round_trip", "ns",
     "ours", BENCH_LATENCY_DEPTH, BENCH_LATENCY_DEPTH, BOTH, SIZE_DEPTH, VALUE_TIME, HALF, 0,
     false},
    {"fetch_atomic", "PtlFetchAtomic until fetched", "time", "ns", "ours", BENCH_FETCH_ADD,
     BENCH_FETCH_ADD, BOTH, SIZE_SMALL, VALUE_TIME, 1e9, 0, false},
    {"cswap", "PtlSwap, if equal, until fetched", "time", "ns", "ours", BENCH_SWAP_IF,
     BENCH_SWAP_IF, BOTH, SIZE_SMALL, VALUE_TIME, 1e9, 0, false},
    {"atomic_local", "PtlAtomic on oneself, no acknowledgement", "time", "ns", "ours",
     BENCH_ATOMIC_LOCAL, BENCH_ATOMIC_LOCAL, BOTH, SIZE_SMALL, VALUE_TIME, CALLS, 0, false},
    {"atomic_rate", "PtlFetchAtomic by one process, windows of 64", "rate", "M/s", "ours",
     BENCH_ATOMIC_RATE, BENCH_ATOMIC_RATE, BOTH, SIZE_SMALL, VALUE_RATE, 64 / 1e6, 0, false},
    {"atomic_shared", "PtlFetchAtomic by both processes on one word, windows of 64", "rate", "M/s",
     "ours", BENCH_ATOMIC_SHARED, BENCH_ATOMIC_SHARED, BOTH, SIZE_SMALL, VALUE_RATE, 64 / 1e6, 0,
     false},
    {"chain_ctinc", "1,000 PtlTriggeredCTInc in a chain, a link", "time", "ns", "ours",
     BENCH_CHAIN_INC, BENCH_CHAIN_INC, BOTH, SIZE_NONE, VALUE_TIME, 1e9, 0, false},
    {"chain_put", "1,000 PtlTriggeredPut to oneself in a chain, a link", "time", "ns", "ours",
     BENCH_CHAIN_PUT, BENCH_CHAIN_PUT, BOTH, SIZE_NONE, VALUE_TIME, 1e9, 0, false},
    {"chain_atomic", "1,000 PtlTriggeredAtomic on oneself in a chain, a link", "time", "ns", "ours",
     BENCH_CHAIN_ATOMIC, BENCH_CHAIN_ATOMIC, BOTH, SIZE_NONE, VALUE_TIME, 1e9, 0, false},
    {"expected", "entries appended, then their messages taken, a message", "time", "ns", "ours",
     BENCH_EXPECTED, BENCH_EXPECTED, BOTH, SIZE_WAITING, VALUE_TIME, 1e9, 0, false},
    {"unexpected", "messages come, then entries claim them in order, a message", "time", "ns",
     "ours", BENCH_UNEXPECTED, BENCH_UNEXPECTED, BOTH, SIZE_WAITING, VALUE_TIME, 1e9, 0, false},
    {"unexpected_reverse", "the same, claimed in reverse", "time", "ns", "ours",
     BENCH_UNEXPECTED_REVERSE, BENCH_UNEXPECTED_REVERSE, BOTH, SIZE_WAITING, VALUE_TIME, 1e9, 0,
     false},
    {"unexpected_wild", "the same, claimed with wildcards", "time", "ns", "ours",
     BENCH_UNEXPECTED_WILD, BENCH_UNEXPECTED_WILD, BOTH, SIZE_WAITING, VALUE_TIME, 1e9, 0, false},
    {"unexpected_claim", "the claims alone, in order", "time", "ns", "ours", BENCH_UNEXPECTED_CLAIM,
     BENCH_UNEXPECTED_CLAIM, BOTH, SIZE_WAITING, VALUE_TIME, 1e9, 0, false},
    {"put_latency_ack", "put with SEND and ACK awaited, full events: half round trip",
     "half_round_trip", "ns", "ours", BENCH_LATENCY_ACK, BENCH_LATENCY, BOTH, SIZE_SMALL,
     VALUE_TIME, HALF, 0, true},
    {"put_latency_append", "put, an entry appended for each, full events: half round trip",
     "half_round_trip", "ns", "ours", BENCH_LATENCY_APPEND, BENCH_LATENCY, BOTH, SIZE_SMALL,
     VALUE_TIME, HALF, 0, true},
    {"put_latency_mtl", "put as Open MPI's mtl does it: half round trip", "half_round_trip", "ns",
     "ours", BENCH_LATENCY_MTL, BENCH_LATENCY, BOTH, SIZE_SMALL, VALUE_TIME, HALF, 0, true},
    {"message_rate_mtl", "messages as Open MPI's mtl sends them, windows of 64", "rate", "M/s",
     "ours", BENCH_RATE_MTL, BENCH_RATE, BOTH, SIZE_SMALL, VALUE_RATE, TURN_WINDOW_RATE / 1e6, 0,
     true},
    {"mpi_latency", "MPI_Send, MPI_Recv over Pinwheel: half round trip", "half_round_trip", "ns",
     "openmpi-portals", BENCH_LATENCY, BENCH_LATENCY, BOTH, SIZE_MPI, VALUE_TIME, HALF, 0, true},
    {"mpi_message_rate", "MPI_Isend, MPI_Irecv over Pinwheel, windows of 64", "rate", "M/s",
     "openmpi-portals", BENCH_RATE, BENCH_RATE, BOTH, SIZE_SMALL, VALUE_RATE,
     TURN_WINDOW_RATE / 1e6, 0, true},
    {"mpi_bandwidth", "MPI_Isend, MPI_Irecv over Pinwheel, 16 buffers", "bandwidth", "GB/s",
     "openmpi-portals", BENCH_BANDWIDTH, BENCH_BANDWIDTH, BOTH, SIZE_MPI_LARGE, VALUE_BYTES,
     TURN_WINDOW_BANDWIDTH, 0, true},
    {"mpi_put", "MPI_Put and flush over Pinwheel", "time", "ns", "openmpi-portals", BENCH_PUT,
     BENCH_PUT, BOTH, SIZE_MPI, VALUE_TIME, 1e9, 0, true},
    {"mpi_get", "MPI_Get and flush over Pinwheel", "time", "ns", "openmpi-portals", BENCH_GET,
     BENCH_GET, BOTH, SIZE_MPI, VALUE_TIME, 1e9, 0, true},
    {"mpi_fetch_and_op", "MPI_Fetch_and_op and flush over Pinwheel", "time", "ns",
     "openmpi-portals", BENCH_FETCH_ADD, BENCH_FETCH_ADD, BOTH, SIZE_SMALL, VALUE_TIME, 1e9, 0,
     true},
    {"mpi_compare_and_swap", "MPI_Compare_and_swap and flush over Pinwheel", "time", "ns",
     "openmpi-portals", BENCH_SWAP_IF, BENCH_SWAP_IF, BOTH, SIZE_SMALL, VALUE_TIME, 1e9, 0, true},
    {"mpi_accumulate", "MPI_Accumulate and flush over Pinwheel", "time", "ns", "openmpi-portals",
     BENCH_ADD, BENCH_ADD, BOTH, SIZE_SMALL, VALUE_TIME, 1e9, 0, true},
    {"handler_message", "an empty header handler, more a message", "time", "ns", "ours",
     BENCH_HANDLER_MESSAGE, BENCH_HANDLER_MESSAGE, BOTH, SIZE_SMALL, VALUE_TIME, 1e9, 0, false},
    {"handler_packet", "an empty payload handler, more a packet of 64 B", "time", "ns",
     "ours-cells", BENCH_HANDLER_PACKET, BENCH_HANDLER_PACKET, BOTH, SIZE_PACKET, VALUE_TIME, 1e9,
     0, false},
    {"handler_packet_full", "the same, a packet of 4 KiB that is not copied then", "time", "ns",
     "ours", BENCH_HANDLER_PACKET, BENCH_HANDLER_PACKET, BOTH, SIZE_PACKET_FULL, VALUE_TIME, 1e9, 0,
     false},
    {"rv32_message", "an empty header handler on an RV32 core, more a message", "time", "ns",
     "rv32", BENCH_HANDLER_MESSAGE, BENCH_HANDLER_MESSAGE, BOTH, SIZE_SMALL, VALUE_TIME, 1e9, 0,
     false},
    {"udp/latency", "put over UDP, received by PtlCTWait: half round trip", "half_round_trip", "us",
     "udp", BENCH_LATENCY, BENCH_LATENCY, BOTH, SIZE_SMALL, VALUE_TIME, HALF_US, 0, true},
    {"udp/rate", "messages over UDP, windows of 64", "rate", "M/s", "udp", BENCH_RATE, BENCH_RATE,
     BOTH, SIZE_SMALL, VALUE_RATE, TURN_WINDOW_RATE / 1e6, 0, true},
    {"udp/bandwidth", "private memory to private memory over UDP, 16 buffers", "bandwidth", "GB/s",
     "udp", BENCH_BANDWIDTH, BENCH_BANDWIDTH, BOTH, SIZE_MPI_LARGE, VALUE_BYTES,
     TURN_WINDOW_BANDWIDTH, 50e-3, true},
    {"memory", "memory for one more peer", "memory", "KiB", "ours", BENCH_MEMORY, BENCH_MEMORY,
     BOTH, SIZE_NONE, VALUE_TIME, 1.0 / 1024, 0, false},
    {"first", "each of the first 1,000 messages of a connection", "time", "ns", "first",
     BENCH_FIRST, BENCH_FIRST, BOTH, SIZE_FIRST, VALUE_TIME, 1e9, 20e-3, false},
    {"first_ratio", "the first 1,000 messages of a connection / later ones", "ratio", "", "first",
     BENCH_FIRST_RATIO, BENCH_FIRST_RATIO, BOTH, SIZE_FIRST, VALUE_TIME, 1, 20e-3, false},
    {"idle", "CPU that an idle target uses", "cpu", "%", "ours", BENCH_IDLE, BENCH_IDLE, BOTH,
     SIZE_NONE, VALUE_TIME, 100, 50e-3, false},
    {"computing", "CPU that the library takes from a computing target", "cpu", "us/message", "ours",
     BENCH_COMPUTING, BENCH_COMPUTING, BOTH, SIZE_SMALL, VALUE_TIME, 1e6, 20e-3, false},
    {"spin/strided", "4 MiB unpacked into blocks with gaps as long, by block", "bandwidth", "GB/s",
     "spin", BENCH_SPIN_STRIDED, BENCH_SPIN_STRIDED, BOTH, SIZE_BLOCK, VALUE_RATE, 4194304 / 1e9, 0,
     true},
    {"spin/pingpong", "answered packet by packet: half round trip", "half_round_trip", "us", "spin",
     BENCH_SPIN_PINGPONG, BENCH_SPIN_PINGPONG, BOTH, SIZE_STREAM, VALUE_TIME, HALF_US, 0, true},
    {"spin/pingpong_stored", "answered by one put when all is there: half round trip",
     "half_round_trip", "us", "spin", BENCH_SPIN_PINGPONG_STORED, BENCH_SPIN_PINGPONG_STORED, BOTH,
     SIZE_STREAM, VALUE_TIME, HALF_US, 0, true},
    {"spin/accumulate", "doubles added to memory at the target", "bandwidth", "GB/s", "spin",
     BENCH_SPIN_ACCUMULATE, BENCH_SPIN_ACCUMULATE, BOTH, SIZE_TEXT, VALUE_BYTES, 1, 0, true},
    {"spin/copy", "message copied to memory by handlers, packet by packet", "bandwidth", "GB/s",
     "spin", BENCH_SPIN_COPY, BENCH_SPIN_COPY, BOTH, SIZE_TEXT, VALUE_BYTES, 1, 0, true},
    {"spin/aggregate", "32-bit words added up", "bandwidth", "GB/s", "spin", BENCH_SPIN_AGGREGATE,
     BENCH_SPIN_AGGREGATE, BOTH, SIZE_TEXT, VALUE_BYTES, 1, 0, true},
    {"spin/histogram", "32-bit words counted in bins", "bandwidth", "GB/s", "spin",
     BENCH_SPIN_HISTOGRAM, BENCH_SPIN_HISTOGRAM, BOTH, SIZE_TEXT, VALUE_BYTES, 1, 0, true},
    {"spin/reduce", "64-bit words added to a vector", "bandwidth", "GB/s", "spin",
     BENCH_SPIN_REDUCE, BENCH_SPIN_REDUCE, BOTH, SIZE_TEXT, VALUE_BYTES, 1, 0, true},
    {"spin/filter", "records of 16 B with one of 64 keys kept", "bandwidth", "GB/s", "spin",
     BENCH_SPIN_FILTER, BENCH_SPIN_FILTER, BOTH, SIZE_TEXT, VALUE_BYTES, 1, 0, true},
    {"spin/textscan", "bytes and words counted of a text that passes", "bandwidth", "GB/s", "spin",
     BENCH_SPIN_TEXTSCAN, BENCH_SPIN_TEXTSCAN, BOTH, SIZE_TEXT, VALUE_BYTES, 1, 0, true},
    {"spin/rendezvous", "matched by the receiver, until it is there and answered", "time", "us",
     "spin", BENCH_SPIN_RENDEZVOUS, BENCH_SPIN_RENDEZVOUS, BOTH, SIZE_TEXT, VALUE_TIME, 1e6, 0,
     true},
    {"spin/kv_get", "gets from a key-value store, windows of 16", "rate", "M/s", "spin",
     BENCH_SPIN_KV_GET, BENCH_SPIN_KV_GET, BOTH, SIZE_NONE, VALUE_RATE, 16 / 1e6, 0, true},
    {"spin/condread", "256 of 16,384 rows selected and read", "time", "us", "spin",
     BENCH_SPIN_CONDREAD, BENCH_SPIN_CONDREAD, BOTH, SIZE_NONE, VALUE_TIME, 1e6, 0, true},
    {"spin/txlog", "puts of 64 B with a log of accesses, windows of 64", "rate", "M/s", "spin",
     BENCH_SPIN_TXLOG, BENCH_SPIN_TXLOG, BOTH, SIZE_NONE, VALUE_RATE, 64 / 1e6, 0, true},
    {"spin/graph", "relaxations of a graph, messages of 256", "rate", "M/s", "spin",
     BENCH_SPIN_GRAPH, BENCH_SPIN_GRAPH, BOTH, SIZE_NONE, VALUE_RATE, 4096 / 1e6, 0, true},
    {"spin/broadcast", "broadcast to 7 ranks that compute, until the last has it", "time", "us",
     "crew", BENCH_SPIN_BROADCAST, BENCH_SPIN_BROADCAST, BOTH, SIZE_TEXT, VALUE_TIME, 1e6, 20e-3,
     true},
    {"spin/allreduce", "sum of doubles of 8 ranks, until the last has it", "time", "us", "crew",
     BENCH_SPIN_ALLREDUCE, BENCH_SPIN_ALLREDUCE, BOTH, SIZE_VECTOR, VALUE_TIME, 1e6, 20e-3, true},
    {"spin/ftbcast", "broadcast with redundancy, none dead, until the last has it", "time", "us",
     "crew", BENCH_SPIN_FTBCAST, BENCH_SPIN_FTBCAST, BOTH, SIZE_TEXT, VALUE_TIME, 1e6, 20e-3, true},
    {"spin/raid5", "write to two servers, parity at a third, until done", "time", "us", "crew",
     BENCH_SPIN_RAID5, BENCH_SPIN_RAID5, BOTH, SIZE_UNIT, VALUE_TIME, 1e6, 20e-3, true},
    {"spin/reed_solomon", "write to two servers, two with parities, until done", "time", "us",
     "crew", BENCH_SPIN_REED_SOLOMON, BENCH_SPIN_REED_SOLOMON, BOTH, SIZE_UNIT, VALUE_TIME, 1e6,
     20e-3, true},
    {"spin/invoke", "handlers started by the host, two contexts, two HPUs", "rate", "k/s", "hpus",
     BENCH_SPIN_INVOKE, BENCH_SPIN_INVOKE, BOTH, SIZE_HANDLER, VALUE_RATE, 128 / 1e3, 20e-3, true},
    {"spin/fair", "answer of a fast context beside a slow one, median", "time", "us", "hpu",
     BENCH_SPIN_FAIR, BENCH_SPIN_FAIR, BOTH, SIZE_SLOW, VALUE_TIME, 1e6, 50e-3, true},
    {"spin/fair_worst", "the same, 95 % of them", "time", "us", "hpu", BENCH_SPIN_FAIR_WORST,
     BENCH_SPIN_FAIR_WORST, BOTH, SIZE_SLOW, VALUE_TIME, 1e6, 50e-3, true},
    {"spin/overlap", "dgemm's part of the time while a message is unpacked", "ratio", "", "overlap",
     BENCH_SPIN_OVERLAP, BENCH_SPIN_OVERLAP, BOTH, SIZE_OVERLAP, VALUE_TIME, 1, 50e-3, false},
    {"spin/overlap_cost", "dgemm and unpacking together / the sum of both alone, CPU time", "ratio",
     "", "overlap", BENCH_SPIN_OVERLAP_COST, BENCH_SPIN_OVERLAP_COST, BOTH, SIZE_OVERLAP,
     VALUE_TIME, 1, 50e-3, false},
    {"spin/overlap_gemm", "dgemm while messages are unpacked / alone, time", "ratio", "", "overlap",
     BENCH_SPIN_OVERLAP_GEMM, BENCH_SPIN_OVERLAP_GEMM, BOTH, SIZE_OVERLAP, VALUE_TIME, 1, 50e-3,
     false},
};

const int bench_table_size = sizeof(bench_table) / sizeof(bench_table[0]);

/* ---- Sizes ---- */

struct sizes {
    int count;
    uint64_t size[SIZES_MAX];
};

#define KIB UINT64_C(1024)

static const struct sizes full[] = {
    [SIZE_NONE] = {1, {0}},
    [SIZE_MESSAGE] = {11,
                      {1, 8, 64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB,
                       4096 * KIB}},
    [SIZE_SMALL] = {1, {8}},
    [SIZE_WINDOW] = {3, {8, 64, KIB}},
    [SIZE_LARGE] = {5, {4 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB, 4096 * KIB}},
    [SIZE_ENTRIES] = {4, {1, 16, 256, 4096}},
    [SIZE_DEPTH] = {3, {1, 64, 4096}},
    [SIZE_WAITING] = {3, {16, KIB, 16 * KIB}},
    [SIZE_MPI] = {3, {8, KIB, 64 * KIB}},
    [SIZE_MPI_LARGE] = {2, {64 * KIB, 1024 * KIB}},
    [SIZE_PACKET] = {1, {64}},
    [SIZE_PACKET_FULL] = {1, {4 * KIB}},
    [SIZE_BLOCK] = {6, {64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB}},
    [SIZE_STREAM] = {6, {8 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, 1024 * KIB, 4096 * KIB}},
    [SIZE_TEXT] = {3, {4 * KIB, 64 * KIB, 1024 * KIB}},
    [SIZE_VECTOR] = {3, {8, KIB, 64 * KIB}},
    [SIZE_UNIT] = {2, {4 * KIB, 64 * KIB}},
    [SIZE_FIRST] = {4, {KIB + 1, 4 * KIB, 16 * KIB, 64 * KIB}},
    [SIZE_HANDLER] = {4, {1, 5, 20, 100}},
    [SIZE_SLOW] = {5, {0, 25, 50, 100, 200}},
    [SIZE_OVERLAP] = {5, {64 * KIB, 256 * KIB, 512 * KIB, 1024 * KIB, 4096 * KIB}},
};

static const struct sizes quick[] = {
    [SIZE_NONE] = {1, {0}},
    [SIZE_MESSAGE] = {2, {8, 64 * KIB}},
    [SIZE_SMALL] = {1, {8}},
    [SIZE_WINDOW] = {1, {8}},
    [SIZE_LARGE] = {2, {64 * KIB, 1024 * KIB}},
    [SIZE_ENTRIES] = {2, {1, 4096}},
    [SIZE_DEPTH] = {2, {1, 4096}},
    [SIZE_WAITING] = {2, {16, KIB}},
    [SIZE_MPI] = {1, {8}},
    [SIZE_MPI_LARGE] = {1, {1024 * KIB}},
    [SIZE_PACKET] = {1, {64}},
    [SIZE_PACKET_FULL] = {1, {4 * KIB}},
    [SIZE_BLOCK] = {1, {256}},
    [SIZE_STREAM] = {1, {64 * KIB}},
    [SIZE_TEXT] = {1, {64 * KIB}},
    [SIZE_VECTOR] = {1, {KIB}},
    [SIZE_UNIT] = {1, {4 * KIB}},
    [SIZE_FIRST] = {1, {4 * KIB}},
    [SIZE_HANDLER] = {1, {20}},
    [SIZE_SLOW] = {2, {0, 100}},
    [SIZE_OVERLAP] = {1, {512 * KIB}},
};

static struct sizes sizes_of(const struct options_bench *o, enum size_kind kind)
{
    bool messages = kind == SIZE_MESSAGE || kind == SIZE_WINDOW || kind == SIZE_LARGE ||
                    kind == SIZE_BLOCK || kind == SIZE_STREAM || kind == SIZE_TEXT ||
                    kind == SIZE_FIRST;
    if (messages && o->size_count > 0) {
        struct sizes s = {.count = o->size_count};
        memcpy(s.size, o->sizes, sizeof(s.size));
        return s;
    }
    return o->quick ? quick[kind] : full[kind];
}

/* ---- Lists of names ---- */

bool plan_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = list; at != NULL && *at != '\0'; at += *at == ',') {
        size_t n = strcspn(at, ",");
        if (n != 0 && n <= length && memcmp(at, name, n) == 0 &&
            (name[n] == '\0' || name[n] == '/')) {
            return true;
        }
        at += n;
    }
    return false;
}

/* ---- Subjects ---- */

static int subject_index(const struct run *r, const char *name)
{
    for (int i = 0; i < r->subjects; i++) {
        if (strcmp(r->stages[i].subject->name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* NAME=COMMAND, its words separated by blanks, as a peer that is started twice. */
static int add_extra(struct run *r, int i)
{
    struct subject *s = &r->extra[i];
    char *text = strdup(r->options->extra[i]), *save = NULL;
    if (text == NULL) {
        perror("pinwheel bench");
        return 1;
    }
    char *command = strchr(text, '='); /* the options were checked: there is one */
    *command++ = '\0';
    *s = (struct subject){.name = text,
                          .kind = SUBJECT_PEER,
                          .launch = LAUNCH_PAIR,
                          .ranks = 2,
                          .meaning = "as given"};
    int words = 0;
    for (char *word = strtok_r(command, " ", &save); word != NULL && words < SUBJECT_WORDS - 1;
         word = strtok_r(NULL, " ", &save)) {
        s->command[words++] = word;
    }
    if (words == 0 || subject_index(r, text) >= 0) {
        fprintf(stderr, "pinwheel bench: --subject %s: %s\n", r->options->extra[i],
                words == 0 ? "has no command" : "there is a subject of that name already");
        return 2;
    }
    r->stages[r->subjects++].subject = s;
    return 0;
}

static int choose_subjects(struct run *r)
{
    const char *peers = r->options->peers;
    for (int i = 0; i < subject_table_size; i++) {
        const struct subject *s = &subject_table[i];
        bool chosen = s->kind == SUBJECT_PEER || s->kind == SUBJECT_CLIENT;
        if (!chosen || peers == NULL || plan_listed(peers, s->name)) {
            r->stages[r->subjects++].subject = s;
        }
    }
    for (int i = 0; i < r->options->extra_count; i++) {
        int rc = add_extra(r, i);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

/* ---- Works and cases ---- */

static int add_work(struct run *r, const struct turn_work *work, double seconds)
{
    for (int i = 0; i < r->work_count; i++) {
        const struct turn_work *w = &r->works[i].work;
        if (w->bench == work->bench && w->size == work->size && w->cores == work->cores) {
            return i;
        }
    }
    if (r->work_count == WORKS_MAX) {
        return -1;
    }
    r->works[r->work_count] = (struct work_item){.work = *work, .seconds = seconds};
    return r->work_count++;
}

static int add_samples(struct run *r, int work, int subject)
{
    struct work_item *w = &r->works[work];
    w->wanted[subject] = true;
    if (w->samples[subject] == NULL) {
        w->samples[subject] = calloc((size_t)r->options->rounds, sizeof(*w->samples[subject]));
    }
    return w->samples[subject] != NULL ? 0 : -1;
}

/* A client that is not chosen, or not there, has no cases: its peers would be measured
 * for nobody. Nor has one of ours that needs packages and was not built. */
static bool measurable(struct run *r, int subject)
{
    char why[STAGE_WHY];
    if (subject < 0) {
        return false;
    }
    const struct subject *s = r->stages[subject].subject;
    bool optional = s->kind == SUBJECT_CLIENT || s->packages != NULL;
    if (!optional || subject_missing(s, why, sizeof(why)) == 0) {
        return true;
    }
    bool said = false;
    for (int i = 0; i < r->complaint_count; i++) {
        said |= r->complaints[i].subject == s;
    }
    if (!said) {
        run_complain(r, s, "", why);
    }
    return false;
}

static int add_case(struct run *r, const struct bench *b, uint64_t size)
{
    struct turn_work work = {.bench = b->ours, .cores = b->cores, .size = size};
    double seconds = b->seconds > 0 ? b->seconds : r->options->turn_seconds;
    int subject = subject_index(r, b->subject);
    if (!measurable(r, subject)) {
        return 0;
    }
    struct bench_case c = {b, size, add_work(r, &work, seconds), -1, subject};
    work.bench = b->theirs;
    c.theirs = b->compared ? add_work(r, &work, seconds) : -1;
    if (r->case_count == CASES_MAX || c.ours < 0 || (b->compared && c.theirs < 0) ||
        add_samples(r, c.ours, c.subject) != 0) {
        return -1;
    }
    for (int s = 0; b->compared && s < r->subjects; s++) {
        if (bench_compares(b, r->stages[s].subject) && add_samples(r, c.theirs, s) != 0) {
            return -1;
        }
    }
    r->cases[r->case_count++] = c;
    return 0;
}

int plan_make(struct run *r)
{
    const struct options_bench *o = r->options;
    int rc = choose_subjects(r);
    if (rc != 0) {
        return rc;
    }
    for (int i = 0; i < bench_table_size; i++) {
        const struct bench *b = &bench_table[i];
        bool possible = r->two_cores || b->cores == TURN_ONE_CORE;
        if (!possible || (o->benches != NULL && !plan_listed(o->benches, b->name))) {
            continue;
        }
        struct sizes sizes = sizes_of(o, b->sizes);
        for (int k = 0; k < sizes.count; k++) {
            if (add_case(r, b, sizes.size[k]) != 0) {
                fprintf(stderr, "pinwheel bench: no room for so many benches and sizes\n");
                return 1;
            }
        }
    }
    return 0;
}

void plan_free(struct run *r)
{
    for (int w = 0; w < r->work_count; w++) {
        for (int s = 0; s < r->subjects; s++) {
            free(r->works[w].samples[s]);
        }
    }
    for (int i = 0; i < r->options->extra_count; i++) {
        free((char *)(uintptr_t)r->extra[i].name);
    }
}
