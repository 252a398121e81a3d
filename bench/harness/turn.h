/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking turns: what the conductor and the processes of a subject tell each
 * other, through a shared page of that subject.
 *
 *   conductor ── work: bench, size, iterations ──► page ──► rank 0 and rank 1 of one subject
 *             ◄──────────── seconds, extra ────────  page ◄── rank 0 (and rank 1)
 *
 * A subject is a program that runs as two processes, ranks 0 and 1, or as up to
 * TURN_RANKS. Either the conductor starts it as often, with BENCH_RANK, or it starts a
 * launcher (mpirun) that does. BENCH_PAGE, the path of the page, is in the environment either way.
 *
 *     turn_join(rank)          the page is there, the process is on its core
 *     ... bring the library up; turn_exchange() swaps addresses where no launcher does ...
 *     turn_serve(duties, n)    takes turns until the plan is done
 *
 * Between turns the process sleeps in a futex on the page, outside its library,
 * so that it costs the others nothing. In a turn all ranks get the same work and
 * do exactly warm + count iterations of it; rank 0 takes the time of the last
 * `count`. All messages of a turn are over when it ends.
 *
 * Errors are told, not printed: turn_fail() keeps a text, which the conductor
 * reports with the subject. A subject may also just exit, crash or hang; the
 * conductor has a time limit for everything and goes on without it.
 */
#ifndef BENCH_TURN_H
#define BENCH_TURN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TURN_WINDOW_RATE = 64,      /* messages of an iteration of BENCH_RATE */
    TURN_WINDOW_BANDWIDTH = 16, /* and of BENCH_BANDWIDTH */
    TURN_EXCHANGE_MAX = 16384,  /* bytes of an address */
    TURN_RANKS = 8,             /* processes of a subject, at most */
    TURN_SIZE_MAX = 4 << 20     /* bytes of a message, at most */
};

/* The numbers of the benches: what an iteration does. Peers serve those before BENCH_WAKE as far as
 * their library has them; the rest is for Pinwheel's own programs. */
enum turn_bench {
    BENCH_LATENCY,   /* a ping-pong of `size` bytes, received by waiting or polling as the
                        library's users do: a round trip */
    BENCH_GET,       /* a one-sided read of `size` bytes by rank 0, complete there; rank 1 makes
                        progress as its library needs it */
    BENCH_RATE,      /* 64 messages of `size` bytes from rank 0, then one small answer */
    BENCH_BANDWIDTH, /* 16 messages of `size` bytes, from 16 buffers of private memory (malloc) into
                        16 others; then one small answer */
    BENCH_PUT,       /* a one-sided write of `size` bytes by rank 0, complete at rank 1 */
    BENCH_FETCH_ADD, /* 8 bytes of rank 1 get 1 added, rank 0 has what they were */
    BENCH_SWAP_IF,   /* likewise 8 bytes are replaced if they are what rank 0 expects */
    BENCH_ADD,       /* likewise 1 is added, nothing comes back; complete at rank 1 */
    BENCH_WAKE,      /* rank 1 sleeps; a message wakes it, it answers. extra: seconds, median */
    BENCH_LATENCY_EQGET,     /* as BENCH_LATENCY, by polling full events */
    BENCH_LATENCY_EQWAIT,    /* the same, by waiting for full events */
    BENCH_LATENCY_TRIGGERED, /* the same, answered by triggered puts */
    BENCH_LATENCY_HANDLER,   /* the same, into an entry with an empty header handler */
    BENCH_LATENCY_ACK,       /* the same, with an acknowledgement as a full event */
    BENCH_LATENCY_APPEND,    /* the same, with a use-once entry appended for each message */
    BENCH_LATENCY_MTL,       /* the same, as Open MPI's mtl/portals4 does it: ours/mtl.c */
    BENCH_RATE_MTL,          /* as BENCH_RATE, likewise */
    BENCH_LATENCY_DEPTH,     /* 8 bytes into an entry that `size` - 1 others stand before */
    BENCH_ATOMIC_LOCAL,      /* 64 atomics by rank 0 on its own memory */
    BENCH_ATOMIC_RATE,       /* 64 fetching atomics of rank 0, all complete */
    BENCH_ATOMIC_SHARED,     /* likewise by both ranks, on one word. extra: of rank 1, iterations */
    BENCH_CHAIN_INC,         /* see ours/chain.c. extra: seconds a link */
    BENCH_CHAIN_PUT,         /* likewise */
    BENCH_CHAIN_ATOMIC,      /* likewise */
    BENCH_EXPECTED,          /* see ours/unexpected.c. extra: of rank 1, seconds a message */
    BENCH_UNEXPECTED,        /* likewise */
    BENCH_UNEXPECTED_REVERSE, /* likewise */
    BENCH_UNEXPECTED_WILD,    /* likewise */
    BENCH_UNEXPECTED_CLAIM,   /* likewise */
    BENCH_CTGET,              /* 64 calls of PtlCTGet by rank 0, nothing arrives */
    BENCH_EQGET,              /* likewise PtlEQGet of an empty queue */
    BENCH_MATCH,              /* 64 searches among `size` entries, one mask; see ours/match.c */
    BENCH_MATCH_MASKS,        /* likewise with 8 masks */
    BENCH_MATCH_WILD,         /* likewise with one, any source */
    BENCH_MATCH_WILD_2,       /* likewise with two, a known source and any */
    BENCH_HANDLER_MESSAGE,    /* see ours/handler.c. extra: seconds more a message */
    BENCH_HANDLER_PACKET,     /* likewise. extra: seconds more a packet */
    BENCH_MEMORY,             /* extra: bytes of memory for one more peer */
    BENCH_FIRST,              /* see first/first.c. extra: seconds a message of the first 1,000 */
    BENCH_FIRST_RATIO,        /* likewise, over those of later ones */
    BENCH_IDLE,               /* 1 ms of waiting for nothing. extra: CPU seconds a second, rank 1 */
    BENCH_COMPUTING, /* 1 ms of computing by rank 1, a message every 100 us. extra: CPU seconds
                        that the library took a message */
    /* The handler library's: bench/spin. MPIs serve those that say how. */
    BENCH_SPIN_STRIDED,  /* 4 MiB into blocks of `size` bytes, gaps as long: MPI_Type_vector */
    BENCH_SPIN_PINGPONG, /* streamed; a ping-pong of `size` bytes, a round trip */
    BENCH_SPIN_PINGPONG_STORED, /* likewise, stored */
    BENCH_SPIN_ACCUMULATE,      /* `size` bytes of doubles are added: MPI_Accumulate and flush */
    BENCH_SPIN_COPY,            /* see spin/words.c: messages of `size` bytes */
    BENCH_SPIN_AGGREGATE,       /* likewise */
    BENCH_SPIN_HISTOGRAM,       /* likewise */
    BENCH_SPIN_REDUCE,          /* likewise */
    BENCH_SPIN_FILTER,          /* likewise */
    BENCH_SPIN_TEXTSCAN,        /* see spin/scan.c: texts of `size` bytes */
    BENCH_SPIN_RENDEZVOUS,   /* a message of `size` bytes into a posted receive, then an answer */
    BENCH_SPIN_KV_GET,       /* see spin/requests.c: 16 gets */
    BENCH_SPIN_CONDREAD,     /* likewise: one request */
    BENCH_SPIN_TXLOG,        /* likewise: 64 puts */
    BENCH_SPIN_GRAPH,        /* likewise: 4,096 relaxations */
    BENCH_SPIN_INVOKE,       /* see spin/hpus.c: 128 handlers of `size` microseconds */
    BENCH_SPIN_FAIR,         /* likewise. extra: seconds until the answer, the median */
    BENCH_SPIN_FAIR_WORST,   /* likewise, the 95th percentile */
    BENCH_SPIN_BROADCAST,    /* see spin/crew.c: `size` bytes; MPI_Bcast. extra: seconds */
    BENCH_SPIN_ALLREDUCE,    /* likewise; MPI_Allreduce */
    BENCH_SPIN_FTBCAST,      /* see spin/redundant.c: likewise */
    BENCH_SPIN_RAID5,        /* likewise: a write */
    BENCH_SPIN_REED_SOLOMON, /* likewise */
    BENCH_SPIN_OVERLAP,      /* see spin/overlap.c. extra, of rank 1 */
    BENCH_SPIN_OVERLAP_COST, /* likewise */
    BENCH_SPIN_OVERLAP_GEMM, /* likewise */
    BENCH_COUNT
};

enum turn_cores {
    TURN_TWO_CORES, /* each rank on a core of its own */
    TURN_ONE_CORE   /* both on the first: only for libraries that give the core away */
};

struct turn_work {
    uint32_t bench;       /* enum turn_bench */
    uint32_t cores;       /* enum turn_cores */
    uint64_t size;        /* bytes, or what the bench counts */
    uint64_t warm, count; /* iterations */
    uint32_t check;       /* compare the data received, outside of the timed part */
};

struct turn_result {
    double seconds;     /* of `count` iterations, by rank 0 */
    double cpu_seconds; /* user and system, of this process, in the same time */
    double extra;       /* a figure of the bench's own */
    int32_t error;      /* the turn failed; then why */
    char why[160];
};

/* turn_join() maps the page, binds all threads of the process to the core of
 * `rank` (even ranks have one, odd ones the other) and arranges that the process dies with its
 * parent. `rank` is -1 for the one of BENCH_RANK. Gives the rank, or -1 after a line on stderr. */
int turn_join(int rank);

/* turn_exchange() gives `length` bytes to the other rank of 0 and 1 and receives its, at
 * most `room`; blocks until the other has come, or 20 s. Gives their length, or -1.
 * May be called any number of times, by both. */
long turn_exchange(const void *mine, size_t length, void *theirs, size_t room);

/* turn_gather() does so among all ranks: `theirs` has `length` bytes of each. With a length
 * of 0 it is a barrier. 0, or -1. */
int turn_gather(const void *mine, size_t length, void *theirs);

/* One kind of work that a subject can do. Functions but run() may be NULL; those
 * that give an int give 0, or -1 after turn_fail(). */
struct turn_duty {
    uint32_t bench;
    bool (*supports)(const struct turn_work *work); /* sizes, cores; NULL: one core not, all else */
    int (*begin)(const struct turn_work *work);     /* before the turn, not timed */
    int (*run)(const struct turn_work *work, uint64_t iterations); /* called for warm, then count */
    /* after the turn, not timed: compare data if work->check; result->extra */
    int (*end)(const struct turn_work *work, struct turn_result *result);
};

/* turn_serve() tells the conductor that the rank is ready and takes turns until
 * the plan is done: 0, or -1 when the conductor is gone. */
int turn_serve(const struct turn_duty *duties, int count);

/* turn_fail() keeps the reason why this turn, or the start, fails; gives -1. */
int turn_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* turn_rank() is this process's rank, of turn_ranks(); turn_core() is one of the two cores. */
int turn_rank(void);
int turn_ranks(void);
int turn_core(int index);

/* turn_now() is a time in seconds (CLOCK_MONOTONIC), turn_cpu() the CPU time that
 * this process has used. */
double turn_now(void);
double turn_cpu(void);

/* turn_fill() writes a pattern that depends on `seed`; turn_check() gives 0 if it
 * is there, or -1 after turn_fail(). */
void turn_fill(void *memory, size_t length, uint64_t seed);
int turn_check(const void *memory, size_t length, uint64_t seed);

/* turn_line() is one of 8 cache lines that both ranks share, zero at the start:
 * for limits and for telling the other rank something beside the library. */
volatile uint64_t *turn_line(int index);

#endif
