/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory that the ranks of a simulated job share with the coordinator, the simulator that runs
 * them (tools/pinwheel/sim):
 *
 *      struct sim_segment, addresses │ struct sim_board │ a struct sim_rank for each place │ spans
 *      a rank may only read it       │ all write        │ its own rank's
 *
 * A rank has no access to the rest. Its struct belongs to one side at a time:
 *
 *      coordinator: grant, packets in ──turn = SIM_RUN──► rank runs, in virtual time below `until`
 *      coordinator  ◄──turn = SIM_IDLE── rank: record, packets out
 *
 * Invariants:
 *   - A rank touches its struct only between SIM_RUN and SIM_IDLE; the coordinator touches it only
 *     between SIM_IDLE and SIM_RUN. Exempt are the words before `record`, which have rules of their
 *     own.
 *   - Each side works on a copy of its own of a struct sim_record, and writes it to the segment,
 *     sealed, when it gives the turn away; the other side reads it once, and takes it only if the
 *     seal is right, and it is of this turn. So a program that writes there by mistake is found
 * out, and changes no result.
 *   - What all may write (struct sim_board) says which ranks may run. That has no say in what they
 *     do: all that `order` gives may run at once.
 *   - All packets that reach a rank before `until` are with it before it runs, and none leaves it
 *     with a time below that of an earlier one.
 *   - Times are picoseconds of virtual time from the start of the job on.
 */
#ifndef FABRIC_SIM_SEGMENT_H
#define FABRIC_SIM_SEGMENT_H

#include "base/sys.h"
#include "fabric/fabric.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SIM_VARIABLE "PINWHEEL_SIM" /* of the environment: the segment's path */
/* The last two bytes are the version, in digits: it changes with the layout. */
#define SIM_MAGIC UINT64_C(0x30316d6973777000)
#define SIM_PAGE UINT64_C(4096)
#define SIM_MEMORY_WAITS "--memory-waits" /* as `outside_of`: a rank has waited so */
#define SIM_NEVER UINT64_MAX
#define SIM_SKIP UINT64_C(1000000) /* ps that a rank which polls skips at once, at most */
#define SIM_SILENCE                                                                                \
    UINT64_C(1000000000000) /* ps of looks at nothing: it waits for what never comes */
enum { SIM_LOOKS = 64 };    /* at nothing before it skips */
enum { SIM_PACKET = 4096, SIM_PACKETS = 64, SIM_HPUS = 64, SIM_RANKS_MOST = 4096 };
enum { SIM_HANDLERS = 32, SIM_PHASES = 32, SIM_NAME = 48 };
enum { SIM_PROCESSES_MOST = 1024 }; /* that a rank may have forked and that have not ended */

/* The machine that every rank is: times in ps, of a byte in 1e-6 ps. */
struct sim_machine {
    uint64_t o;               /* of the host, to start an operation */
    uint64_t o_receive;       /* of the host, for a message that has come */
    uint64_t g;               /* between two packets, or messages, that a NIC sends */
    uint64_t byte;            /* of a byte on a cable */
    uint64_t match, cam;      /* after the last byte: of a message's first packet, of others */
    uint64_t dma, dma_byte;   /* latency; time that a byte takes the DMA engine */
    uint64_t host, host_byte; /* of host memory: latency of the program's access; of a byte */
    uint64_t look;            /* of a look of the program at nothing */
    uint64_t handler;         /* of a handler without device code */
    uint32_t hpus;
    uint32_t clock_mhz; /* of an HPU */
    uint32_t timing;    /* number of the table of rv32_timings[] that counts its cycles */
    uint32_t hpu_queue; /* calls of an entry's handlers that may wait for an HPU */
    uint32_t
        buffers; /* packets that a NIC may have that handlers or the engine are to be done with */
    uint32_t egress_queue;   /* messages of handlers that may wait for the egress port */
    uint32_t entry_messages; /* of a sender that handlers of an entry may have at a time */
    uint32_t loggops;        /* g is between messages, on both sides, as in docs/loggops-model.md */
    uint32_t no_skip;        /* looks at nothing are made one by one */
    uint32_t compute; /* ps of a ns of the program's processor time between calls; 0: declared */
    uint32_t memory_waits; /* who makes no call for long waits for memory */
};

/* SIM_NEXT: it is to run, as soon as another one is idle again (sim_next()). */
enum sim_turn { SIM_IDLE, SIM_RUN, SIM_NEXT };

/* What a process that holds the others up says that it does. */
enum sim_spins { SIM_NOT_SAID, SIM_COMPUTES_LONG, SIM_SPINS_ON_MEMORY };
enum { SIM_FRAMES = 16 };

/* What a rank waits for, for people. */
enum sim_wait {
    SIM_COMPUTES,
    SIM_WAITS,
    SIM_POLLS,
    SIM_IN_FENCE,
    SIM_SLEEPS,
    SIM_OUTSIDE,
    SIM_MEMORY,
    SIM_REASONS
};

/* What threads of a process wait for outside of Portals: nobody does, for what a process or thread
 * of the simulation does, or perhaps for what comes from elsewhere. */
enum sim_outside { SIM_INSIDE, SIM_FOR_OTHERS, SIM_FOR_ANYBODY };

enum sim_packet_kind { SIM_DATA, SIM_REFUSED };

/* A packet. `time` is when its first byte can leave its NIC, and then when its last byte arrives.
 */
struct sim_packet {
    uint64_t time;
    uint32_t kind, from, to, class;
    uint32_t from_life, to_life; /* the NICs of these places that are meant */
    uint64_t message;            /* its number among those of its sender */
    uint64_t number;             /* among those of its sender, class and receiver */
    uint32_t size;               /* bytes of its message's packets but the last */
    uint64_t total, offset;      /* bytes of the message's payload; of this packet's place in it */
    uint64_t lead;               /* how much sooner it would be there (lead.h) */
    uint32_t bytes;
    uint32_t status; /* enum fabric_status: not FABRIC_OK: no more of the payload comes */
    _Alignas(8) uint8_t header[FABRIC_HEADER];
    uint8_t data[SIM_PACKET];
};

/* Those who wait for a resource: in sum how long, in ps, and how many at once at most. */
struct sim_queue {
    uint64_t waited, most;
};

/* What the calls of a handler came to; times in ps. */
struct sim_handler {
    uint64_t function;     /* its address, by which its rank finds it; 0: the place is free */
    char name[SIM_NAME];   /* "": it has none */
    uint64_t calls, taken; /* calls that have begun; how long they took HPUs */
    uint64_t waited, wait; /* how long they waited for one, in sum and at most */
};

/* What took a resource of a rank, from when to when, in ps: noted only if the segment has room for
 * spans. A packet is the same where it leaves and where it comes. */
enum sim_span_what {
    SIM_SPAN_CALL,    /* of the program, that starts an operation */
    SIM_SPAN_COMPUTE, /* declared by the program */
    SIM_SPAN_OUT,     /* a packet, at the egress port */
    SIM_SPAN_IN,      /* a packet, from when its last byte has arrived until it is ready */
    SIM_SPAN_DEPOSIT, /* of the DMA engine */
    SIM_SPAN_HANDLER, /* at an HPU */
    SIM_SPAN_PHASE,   /* of the program, that it has named */
    SIM_SPANS
};

struct sim_span {
    uint64_t begin, end;
    uint64_t message, offset; /* of a packet; of a handler `message` is its place in sim_counts, of
                               * a phase that in sim_figures */
    uint32_t peer, bytes;
    uint16_t what, hpu;
};

/* What RV32 code of a rank has spent at a place: file "": its line is not known. The program adds
 * to both numbers while its handlers run; nothing seals them, and nothing but a report has them. */
enum { SIM_SPENT = 2048 }; /* places of a rank; the last one: all that have none of their own */
struct sim_spent {
    char handler[SIM_NAME], function[64], file[80];
    uint32_t line, used;
    uint64_t cycles, instructions;
};

struct sim_counts {
    uint64_t messages, packets, bytes; /* sent */
    uint64_t host, memory;             /* ps that calls and declared compute take; that host memory
                                        * was taken */
    uint64_t ahead, ahead_at;          /* of `host`, what was still to pass at a time */
    uint64_t egress, dma;              /* ps that the egress port, the DMA engine were taken */
    uint64_t handlers, hpu[SIM_HPUS];  /* calls; ps that each HPU was taken */
    uint64_t skipped;                  /* ps of looks at nothing that were not made */
    uint64_t looks;                    /* at nothing, that were */
    uint64_t shortage;                 /* ps in which a handler call waited for an HPU */
    struct sim_queue egress_queue, dma_queue, hpu_queue;
    struct sim_handler handler[SIM_HANDLERS]; /* the last place: all that have none of their own */
};

/* What was taken since the start, in ps where no number of things: all HPUs in sum. */
struct sim_taken {
    uint64_t time, messages, packets, bytes, egress, dma, handlers, hpu, shortage, looks, skipped;
};

/* A phase that the program has named: how often it has begun, when first, and what was taken in it;
 * that of the open phase is added by sim_phase_taken() (mark.h). */
struct sim_phase {
    char name[SIM_NAME];
    uint64_t begun, first;
    struct sim_taken taken;
};

/* The NIC of a place. */
struct sim_address {
    uint64_t opened, closed; /* since when until when it can be reached; SIM_NEVER: never */
    uint64_t incarnation;
    uint32_t life; /* how often a NIC was opened here */
    uint32_t nid, pid, uid;
};

/* What passes between a rank and the coordinator with the turn. */
struct sim_record {
    uint64_t serial;        /* of the turn */
    uint64_t until;         /* the rank may not pass this time */
    uint64_t now, next;     /* how far it is; when it wants to run next */
    uint64_t lead;          /* how much sooner it would be there (lead.h) */
    uint64_t fence, fences; /* when it came to the fence that it is in (SIM_NEVER: it is in none);
                             * fences that are over */
    uint64_t fence_over;    /* when the last one was */
    uint64_t fence_lead;    /* with which it came to that, and then the one with which it is over */
    uint64_t not_before;    /* it goes on no sooner, since it was stopped until then */
    /* Processes of one rank run one at a time. One that does what another may wait for outside of
     * Portals (it writes to a pipe, it ends) counts that in `stirs`. The coordinator then has the
     * others look again, at `look_at` (SIM_NEVER: they are not to); `look_outside` says that nobody
     * of the simulation was the cause, but that real time has passed. */
    uint64_t stirred, look_at;
    uint32_t stirs, look_outside;
    uint64_t finds;   /* looks that found something */
    uint64_t silence; /* how long it has looked at nothing */
    uint32_t waits;   /* enum sim_wait */
    uint32_t outside; /* enum sim_outside */
    uint32_t forks;   /* of this process: a child has a place */
    uint32_t in_count, out_count;
    uint32_t said; /* it has written to its standard output or error (said.h), at `now` */
    uint64_t in_sum, out_sum;      /* of these packets, sim_sum_packet() */
    uint64_t figures_sum;          /* sim_sum_figures() */
    struct fabric_waits waits_for; /* of SIM_WAITS */
    char outside_of[32];           /* what one of `look_outside` has found first */
    struct sim_address address;    /* the NIC that it opened last */
    uint64_t seal;                 /* sim_seal() of all before */
};

/* What a rank has counted. It is written with the record, but read when all is over. */
struct sim_figures {
    /* Of the NIC that it opened last: requests that came; that no entry took; packets, and bytes,
     * for handlers that found no room; portal table entries that flow control has disabled. */
    uint64_t requests, dropped, lost, lost_bytes, disabled;
    uint64_t buffers_most;        /* packet buffers that were taken at once */
    uint64_t spans, spans_missed; /* that it has noted; for which there was no room */
    uint64_t spans_sum;           /* of those noted, sim_sum_span() */
    uint32_t phases, phase_open;  /* how many; 1 and the place of the open one, 0: there is none */
    struct sim_taken phase_began; /* when that was */
    struct sim_counts counts;
    struct sim_phase phase[SIM_PHASES]; /* the last place: all that have none of their own */
};

struct sim_rank {
    _Alignas(4096) _Atomic uint32_t pid; /* 0: it has not come */
    _Atomic uint32_t left;               /* SIM_LEFT: it has ended, or is about to */
    _Atomic uint32_t taken;              /* by a process; that of a rank always is */
    /* Another process of the rank has stopped it, or it did so itself: it gets no turn. */
    _Atomic uint32_t stopped;
    _Atomic uint32_t signal; /* that another process of the rank has sent to it; 0: none */
    /* Of a rank: the coordinator has read of what it writes since this was last 0 (said.h); the
     * numbers of the pipes for its standard output and error, 0: it has none. */
    _Atomic uint32_t heard;
    uint64_t pipes[2];
    _Atomic uint64_t at; /* the time at which its program goes on, or has last */
    /* A process that says what it does when it is asked by a signal: its number, 0: it does not;
     * enum sim_spins, and the addresses where it is, from the inside (src/virtual/spins.c). */
    _Atomic uint32_t listens, spins, frames;
    uint64_t frame[SIM_FRAMES];
    struct sim_record record;
    struct sim_figures figures;
    struct sim_packet out[SIM_PACKETS], in[SIM_PACKETS];
};

enum { SIM_LEFT = 0x7466656c };

/* An HPU that fails. */
struct sim_hpu_fault {
    uint32_t rank, hpu;
    uint64_t time;
};
enum { SIM_HPU_FAULTS = 64 };

/* Places: one for each rank, in their order, and behind them `processes` for each one's children,
 * which its processes take, and the coordinator gives back. */
struct sim_segment {
    uint64_t magic, size;
    uint32_t ranks, processes;
    _Atomic uint32_t used; /* no place from this one on was ever taken */
    uint32_t packet;       /* bytes of the longest payload of a packet */
    uint64_t lookahead;
    uint32_t per_host;  /* ranks that share a host's NIC */
    uint32_t scattered; /* packets of a sender may come in any order */
    struct sim_machine machine;
    uint32_t profiled;   /* there is a struct sim_spent[SIM_SPENT] for each rank */
    uint32_t debugged;   /* 1 and the rank that a debugger is to attach to; 0: none is */
    uint32_t hpu_faults; /* how many HPUs fail */
    struct sim_hpu_fault hpu_fault[SIM_HPU_FAULTS];
    uint64_t spans; /* room for spans of a rank; 0: none are noted */
    uint64_t board_at, ranks_at, spans_at, spent_at,
        ports_at;                 /* in bytes from here; pages begin there */
    struct sim_address address[]; /* by place, as of when the present turns began */
};

/* Who may run. */
struct sim_board {
    _Atomic uint32_t came; /* bumped by a rank that is idle, and sees no other to run; a futex */
    /* Ranks that may run: `ordered` of them, the first `started` of which do, or did. */
    _Atomic uint32_t ordered, started;
    /* By place: enum sim_turn, a futex; behind these the order of those that may run. */
    _Atomic uint32_t turn[];
};

static inline uint64_t sim_hpus_taken(const struct sim_counts *c)
{
    uint64_t sum = 0;
    for (unsigned k = 0; k < SIM_HPUS; k++) {
        sum += c->hpu[k];
    }
    return sum;
}

static inline uint32_t sim_places(const struct sim_segment *s)
{
    return s->ranks + s->ranks * s->processes;
}

/* sim_host() is the rank of a place, sim_node() its host, which ranks may share, and sim_first()
 * the first rank there. sim_child() is the first place of a rank's children. */
static inline uint32_t sim_host(const struct sim_segment *s, uint32_t place)
{
    return place < s->ranks ? place : (place - s->ranks) / s->processes;
}
static inline uint32_t sim_node(const struct sim_segment *s, uint32_t place)
{
    return sim_host(s, place) / s->per_host;
}
static inline uint32_t sim_nodes(const struct sim_segment *s)
{
    return (s->ranks + s->per_host - 1) / s->per_host;
}
static inline uint32_t sim_first(const struct sim_segment *s, uint32_t place)
{
    return sim_node(s, place) * s->per_host;
}
static inline uint32_t sim_child(const struct sim_segment *s, uint32_t rank)
{
    return s->ranks + rank * s->processes;
}

static inline struct sim_rank *sim_place(const struct sim_segment *s, uint32_t place)
{
    return (struct sim_rank *)((uintptr_t)s + s->ranks_at) + place;
}

static inline struct sim_board *sim_board(const struct sim_segment *s)
{
    return (struct sim_board *)((uintptr_t)s + s->board_at);
}

/* A rank's spans begin on a page of their own. */
static inline uint64_t sim_spans_bytes(const struct sim_segment *s)
{
    return (s->spans * sizeof(struct sim_span) + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE;
}
static inline struct sim_span *sim_spans_of(const struct sim_segment *s, uint32_t rank)
{
    return (struct sim_span *)((uintptr_t)s + s->spans_at + rank * sim_spans_bytes(s));
}

static inline uint64_t sim_spent_bytes(const struct sim_segment *s)
{
    return s->profiled == 0
               ? 0
               : (SIM_SPENT * sizeof(struct sim_spent) + SIM_PAGE - 1) / SIM_PAGE * SIM_PAGE;
}
static inline struct sim_spent *sim_spent_of(const struct sim_segment *s, uint32_t rank)
{
    return (struct sim_spent *)((uintptr_t)s + s->spent_at + rank * sim_spent_bytes(s));
}
static inline bool sim_spent_same(const struct sim_spent *a, const struct sim_spent *b)
{
    return a->line == b->line && __builtin_strcmp(a->handler, b->handler) == 0 &&
           __builtin_strcmp(a->function, b->function) == 0 &&
           __builtin_strcmp(a->file, b->file) == 0;
}

/* sim_start() lets a rank run that is to run next; sim_next() does so with the next one of the
 * order, and is false if there is none. Whatever is written to the board, only who is to run next
 * is let run. */
static inline bool sim_start(struct sim_board *b, uint32_t place)
{
    uint32_t next = SIM_NEXT;
    bool starts = atomic_compare_exchange_strong(&b->turn[place], &next, SIM_RUN);
    if (starts) {
        futex_wake(&b->turn[place]);
    }
    return starts;
}

static inline bool sim_next(struct sim_board *b, uint32_t places)
{
    for (;;) {
        uint32_t i = atomic_load(&b->started), n = atomic_load(&b->ordered);
        if (i >= n || n > places) {
            return false;
        }
        if (atomic_compare_exchange_strong(&b->started, &i, i + 1)) {
            uint32_t place = atomic_load(&b->turn[places + i]);
            if (place < places && sim_start(b, place)) {
                return true;
            }
        }
    }
}

/* ---- seals: sums that no mistake makes by chance ---- */

static inline uint64_t sim_mix(uint64_t sum, uint64_t word)
{
    sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    return sum ^ sum >> 29;
}

static inline uint64_t sim_sum(uint64_t sum, const void *bytes, size_t size)
{
    const char *at = bytes;
    uint64_t w[4], s[4] = {sum, sum + 1, sum + 2, sum + 3};
    for (; size >= sizeof(w); size -= sizeof(w), at += sizeof(w)) {
        __builtin_memcpy(w, at, sizeof(w));
        for (unsigned i = 0; i < 4; i++) {
            s[i] = sim_mix(s[i], w[i]);
        }
    }
    __builtin_memset(w, 0, sizeof(w));
    __builtin_memcpy(w, at, size);
    for (unsigned i = 0; i < 4; i++) {
        s[i] = sim_mix(s[i], w[i]);
    }
    return sim_mix(sim_mix(sim_mix(s[0], s[1]), s[2]), s[3]);
}

static inline uint64_t sim_sum_packet(uint64_t sum, const struct sim_packet *p)
{
    return sim_sum(sum, p, offsetof(struct sim_packet, data) + p->bytes);
}

static inline uint64_t sim_sum_span(uint64_t sum, const struct sim_span *s)
{
    return sim_sum(sum, s, sizeof(*s));
}

/* How many bytes of figures there is something in, and of phases behind them: handlers and phases
 * take their places one after the other. */
static inline size_t sim_figures_bytes(const struct sim_figures *f)
{
    unsigned i = 0;
    while (i < SIM_HANDLERS && f->counts.handler[i].function != 0) {
        i++;
    }
    return offsetof(struct sim_figures, counts.handler) + i * sizeof(struct sim_handler);
}

static inline size_t sim_phases_bytes(const struct sim_figures *f)
{
    return (f->phases < SIM_PHASES ? f->phases : SIM_PHASES) * sizeof(struct sim_phase);
}

static inline uint64_t sim_sum_figures(const struct sim_figures *f)
{
    return sim_sum(sim_sum(0, f, sim_figures_bytes(f)), f->phase, sim_phases_bytes(f));
}

static inline uint64_t sim_seal(const struct sim_record *r)
{
    return sim_sum(SIM_MAGIC, r, offsetof(struct sim_record, seal));
}

/* Whether a record is whole; that of a place that nobody ever took has nothing in it. */
static inline bool sim_sealed(const struct sim_record *r)
{
    static const struct sim_record nothing;
    return r->seal == sim_seal(r) || __builtin_memcmp(r, &nothing, sizeof(nothing)) == 0;
}

/* The time of bytes, rounded to the nearest picosecond, a half to the even one
 * (docs/network-model.md). */
static inline uint64_t sim_bytes_ps(uint64_t bytes, uint64_t byte)
{
    unsigned __int128 product = (unsigned __int128)bytes * byte;
    uint64_t ps = (uint64_t)(product / 1000000), rest = (uint64_t)(product % 1000000);
    return ps + (rest > 500000 || (rest == 500000 && ps % 2 == 1));
}

#endif
