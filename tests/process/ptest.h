/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A harness for tests that need several processes.
 *
 *     PTEST(hello, 2)                      a case named `hello` for two processes
 *     {
 *         if (rank == 0) ...
 *         BARRIER();
 *         CHECK_EQ(found, 42);
 *     }
 *
 * The test program forks the processes of each case afresh, before any call of
 * the library under test, and makes none itself. They share one page for
 * barriers and for the exchange of a few words, so no launcher is needed. A case
 * passes if all its processes return from the body. When one fails a check,
 * dies, or the time limit passes, the others are killed and the case fails; the
 * harness says where each of those still running was seen last.
 *
 * TWIN (../twin/twin.h) runs the cases of several processes as threads of one, with a NIC each. A
 * case that does something to its whole process is one of PTEST_OWN(id, nprocs, "forks").
 *
 * Usage of a test program: NAME [CASE...]; `-l` lists the cases. PTEST_SLOWDOWN=N
 * multiplies all time limits, for machines or tools that are slow.
 */
#ifndef PTEST_H
#define PTEST_H

#include "../splitmix.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PTEST_RANKS 16 /* processes of a case, at most */
#define PTEST_SLOTS 64 /* words each process may show to the others */
#define PTEST_LIMIT_S 30

struct ptest_case {
    const char *name;
    int nprocs;
    int limit_s;
    unsigned kind; /* passed to the body */
    void (*body)(int rank, int size, unsigned kind);
    const char *own_process; /* why each rank must be a process ("forks"), or NULL */
    struct ptest_case *next;
};

void ptest_register(struct ptest_case *c);

#define PTEST_UNUSED_ __attribute__((unused))
#define PTEST_ROW_(id_, body_, nprocs_, limit_, kind_, why_)                                       \
    static struct ptest_case ptest_case_##id_ = {#id_, nprocs_, limit_, kind_, body_, why_, NULL}; \
    static void __attribute__((constructor)) ptest_add_##id_(void)                                 \
    {                                                                                              \
        ptest_register(&ptest_case_##id_);                                                         \
    }
#define PTEST_CASE_(id_, body_, nprocs_, limit_, kind_)                                            \
    PTEST_ROW_(id_, body_, nprocs_, limit_, kind_, NULL)
#define PTEST_BODY_(id_)                                                                           \
    static void id_(int rank PTEST_UNUSED_, int size PTEST_UNUSED_, unsigned kind PTEST_UNUSED_)

/* One case, with the usual or its own time limit in seconds. */
#define PTEST_LIMIT(id_, nprocs_, limit_)                                                          \
    PTEST_BODY_(id_);                                                                              \
    PTEST_CASE_(id_, id_, nprocs_, limit_, 0)                                                      \
    PTEST_BODY_(id_)
#define PTEST(id_, nprocs_) PTEST_LIMIT(id_, nprocs_, PTEST_LIMIT_S)

#define PTEST_OWN(id_, nprocs_, why_)                                                              \
    PTEST_BODY_(id_);                                                                              \
    PTEST_ROW_(id_, id_, nprocs_, PTEST_LIMIT_S, 0, why_)                                          \
    PTEST_BODY_(id_)

/* ptest_run() is the program; with `spread`, which is twin_spread(), in TWIN. ptest_life() is what
 * a rank does there. */
struct ptest_life;
int ptest_run(int argc, char **argv, void (*spread)(int ranks, void *life));
void ptest_life(const struct ptest_life *life, int rank);
_Noreturn void ptest_refuse(const char *function);

/* Cases end here: the process leaves with a message and the case fails. */
_Noreturn void ptest_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ptest_seen() notes where this process is, for the report of a hang. */
void ptest_seen(const char *file, int line);

void ptest_check_eq(uint64_t got, uint64_t want, const char *got_text, const char *want_text,
                    const char *file, int line);
void ptest_check_code(int got, int want, const char *text, const char *file, int line);

#define FAIL(...) ptest_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond)                                                                                \
    do {                                                                                           \
        ptest_seen(__FILE__, __LINE__);                                                            \
        if (!(cond)) {                                                                             \
            FAIL("CHECK(%s)", #cond);                                                              \
        }                                                                                          \
    } while (0)
/* For integers and pointers: prints both values. */
#define CHECK_EQ(got, want)                                                                        \
    (ptest_seen(__FILE__, __LINE__),                                                               \
     ptest_check_eq((uint64_t)(got), (uint64_t)(want), #got, #want, __FILE__, __LINE__))
/* For calls that return a PTL_ code: prints its name. */
#define CHECK_CODE(call, want)                                                                     \
    (ptest_seen(__FILE__, __LINE__), ptest_check_code(call, want, #call, __FILE__, __LINE__))
#define OK(call) CHECK_CODE(call, PTL_OK)
#define INVALID(call) CHECK_CODE(call, PTL_ARG_INVALID)

/* Waits for all processes of the case; fails if one of them has ended. */
#define BARRIER() ptest_barrier(__FILE__, __LINE__)
void ptest_barrier(const char *file, int line);

/* Called on both sides of every barrier, if set: a tool that sees one process
 * only does not know that a barrier orders this process's threads, too. */
extern void (*ptest_fence)(void);

/* Words that every process of the case can read and write at any time. */
void ptest_show(int slot, uint64_t value);
uint64_t ptest_look(int rank, int slot);

void ptest_sleep_ms(int ms);
uint64_t ptest_now_ms(void);

/* ptest_slow() is the factor by which time limits grow. */
int ptest_slow(void);

/* Ends the case as skipped, in this process; all others must do so too. */
_Noreturn void ptest_skip(const char *why);

/* A reproducible pattern; different seeds give different bytes. */
void ptest_fill(void *buffer, size_t length, unsigned seed);
#define CHECK_FILL(buffer, length, seed)                                                           \
    ptest_check_fill(buffer, length, seed, #buffer, __FILE__, __LINE__)
void ptest_check_fill(const void *buffer, size_t length, unsigned seed, const char *text,
                      const char *file, int line);
#define CHECK_BYTES(buffer, length, value)                                                         \
    ptest_check_bytes(buffer, length, value, #buffer, __FILE__, __LINE__)
void ptest_check_bytes(const void *buffer, size_t length, unsigned char value, const char *text,
                       const char *file, int line);

#if defined(__SANITIZE_THREAD__)
#define PTEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PTEST_TSAN 1
#endif
#endif
#ifndef PTEST_TSAN
#define PTEST_TSAN 0
#endif

#endif
