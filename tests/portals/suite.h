/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The harness of the conformance suite: many small cases, each of which checks
 * one rule of section 3 of the specification and names it.
 *
 *     CASE(empty_put, ALL_KINDS, SELF | PAIR, "3.15: a put of no bytes gives a PUT event")
 *     {
 *         if (s->target) {
 *             suite_target(s, PTL_PRIORITY_LIST, NULL, 0, PTL_ME_OP_PUT, NULL);
 *         }
 *         STEP();
 *         if (s->initiator) {
 *             ptl_handle_md_t md = suite_md(s, NULL, 0, 0);
 *             OK(PtlPut(md, 0, 0, PTL_ACK_REQ, s->to, SUITE_PT, 0, 0, NULL, 0));
 *             EXPECT(s->mdeq, PTL_EVENT_SEND);
 *             EXPECT(s->mdeq, PTL_EVENT_ACK, .mlength = IS(0));
 *         }
 *         if (s->target) {
 *             EXPECT(s->eq, PTL_EVENT_PUT, .rlength = IS(0), .mlength = IS(0));
 *         }
 *     }
 *
 * Settings. SELF: one process, which is initiator and target, on one interface.
 *   PAIR: two processes, the one the initiator, the other the target. Both run
 *   the body; STEP() keeps them in step, and does nothing in SELF. BARE: one
 *   process that has made no call of the library; the body makes all of them
 *   (`kind` and `data` are all that the scene holds). TWIN (../twin/twin.h): a PAIR whose
 *   processes are two threads, with a NIC each; it is chosen for a whole run, not by a case.
 *   A case that forks, stops its peer, or does anything else to its whole process says so:
 *   CASE(..., "3.12: ...", .own_process = "stops its peer").
 * Kinds. {matching, non-matching} x {logical, physical}: ML, MP, NL, NP. A CASE is
 *   registered once for each of its kinds and settings, as NAME.KIND.SETTING.
 * Crews. The program that runs the cases makes no call of the library. It forks
 *   a process (two for PAIR) that opens the interface and then runs cases of the same
 *   kind and setting one after another. Each case gets fresh queues and a fresh
 *   portal table entry. What the suite_ helpers make is freed behind the case,
 *   which need not tidy up. A case that fails, crashes, hangs or leaves something
 *   that cannot be freed ends its crew, and the next one starts with a new one.
 *   BARE cases and those with `alone` set have a process of their own anyway.
 * Checks. Those in capitals end the case when they fail, with the place, what was
 *   expected and what was found.
 * Usage of a program: NAME [--list | CASE...]; a CASE may be a pattern ('put.*.self').
 *   SUITE_TIMEOUT_S changes the time that a case has (20 s).
 */
#ifndef SUITE_H
#define SUITE_H

#include "portals4.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Cases ----------------------------------------------------------------- */

enum { SELF = 1, PAIR = 2, BARE = 4 };
enum { ML = 1, MP = 2, NL = 4, NP = 8 };
enum {
    NO_KIND = 0, /* for BARE: one case, no kind in its name */
    ALL_KINDS = ML | MP | NL | NP,
    MATCHING_KINDS = ML | MP,
    PLAIN_KINDS = NL | NP,
    LOGICAL_KINDS = ML | NL,
    PHYSICAL_KINDS = MP | NP
};

struct scene;

struct suite_case {
    const char *name;
    const char *rule; /* "3.12: ..." one sentence; begins with the section */
    void (*body)(struct scene *s);
    unsigned setting;    /* one of SELF, PAIR, BARE */
    unsigned kind;       /* one of ML, MP, NL, NP, or NO_KIND */
    const void *data;    /* for the body: what a generated case is about, found again in s->c */
    long number;         /* the same */
    unsigned pt_options; /* of the portal table entry SUITE_PT */
    const ptl_ni_limits_t *desired; /* of the interface, or null; must stay valid */
    unsigned event_count;           /* size of the queues, 0: SUITE_EVENTS */
    bool alone;                     /* a crew for this case only */
    const char *own_process; /* why each rank must be a process ("stops its peer"), or null */
    int index;               /* its place among all of the program */
    struct suite_case *next;
};

/* suite_add() registers one generated case; the name is formatted. The rule, and
 * what `data` points to, must stay valid. */
void suite_add(struct suite_case c, const char *name, ...) __attribute__((format(printf, 2, 3)));

/* suite_add_each() registers NAME.KIND.SETTING for every kind and setting of the
 * two masks; those of `c` are not looked at. */
void suite_add_each(struct suite_case c, unsigned kinds, unsigned settings, const char *name, ...)
    __attribute__((format(printf, 4, 5)));

/* suite_kind_name() gives "ml" and so on; suite_ni_options() the PTL_NI_ options. */
const char *suite_kind_name(unsigned kind);
unsigned suite_ni_options(unsigned kind);

/* Behind the rule other fields of the case may stand: .desired = &limits */
#define CASE(id_, kinds_, settings_, ...)                                                          \
    static void id_(struct scene *s);                                                              \
    static void __attribute__((constructor)) suite_add_##id_(void)                                 \
    {                                                                                              \
        suite_add_each((struct suite_case){.body = id_, .rule = __VA_ARGS__}, kinds_, settings_,   \
                       "%s", #id_);                                                                \
    }                                                                                              \
    static void id_(struct scene *s __attribute__((unused)))

/* A function that registers cases, called once before any runs. */
#define GENERATE(id_) static void __attribute__((constructor)) id_(void)

/* ---- Scenes ---------------------------------------------------------------- */

enum {
    SUITE_PT = 4,       /* the portal table index that every SELF or PAIR case finds */
    SUITE_EVENTS = 512, /* size of the queues */
    SUITE_WORDS = 64,   /* words each process may show to the other */
    SUITE_MADE = 4096   /* objects of one case that the helpers remember */
};

/* What a crew and a fresh case have already, for cases that count against limits. */
enum { SUITE_OWN_MDS = 1, SUITE_OWN_CTS = 3, SUITE_OWN_EQS = 2, SUITE_OWN_ENTRIES = 1 };

/* What a body is given. In SELF both roles are this process and to == from. */
struct scene {
    const struct suite_case *c;
    bool initiator, target; /* roles of this process */
    bool matching, logical; /* the kind */
    unsigned options;       /* the PTL_NI_ options */
    int rank;               /* 0 the initiator, 1 the target; SELF 0 */
    int size;               /* processes */
    ptl_handle_ni_t ni;
    ptl_ni_limits_t limits;
    ptl_process_t to, from; /* target and initiator as this interface names them */
    ptl_process_t phys[3];  /* physical ids by rank; behind the last one the bystander's */
    ptl_size_t map_size;    /* entries of the map of a logical interface: size + 1 */
    ptl_uid_t uid;
    ptl_handle_eq_t eq;   /* of SUITE_PT, where messages arrive */
    ptl_handle_eq_t mdeq; /* of MDs, from which messages leave */
    ptl_handle_ct_t ct;   /* a counter at 0, used by nothing, for entries */
    ptl_handle_ct_t mdct; /* another, for MDs */
    bool closed;          /* set by a body (of a case `alone`) that has closed the interface */
};

/* STEP(): both processes of a PAIR have come here. The interface makes progress
 * meanwhile. Messages sent before need not have arrived behind it. */
#define STEP() suite_step(s, __FILE__, __LINE__)
void suite_step(struct scene *s, const char *file, int line);

/* suite_show() shows a word to the other process, suite_look() reads one of `rank`. A
 * STEP() must be between. */
void suite_show(struct scene *s, int slot, uint64_t value);
uint64_t suite_look(struct scene *s, int rank, int slot);

/* suite_bystander() is a process id that a message may be sent to or matched with,
 * but that no process has: for entries that must not match. */
ptl_process_t suite_bystander(struct scene *s);

/* ---- Objects; freed behind the case ---------------------------------------- */

/* suite_md() binds an MD with the queue mdeq, and the counter mdct if an
 * EVENT_CT_ option is given. suite_md_with() takes any queue and counter. */
ptl_handle_md_t suite_md(struct scene *s, void *start, ptl_size_t length, unsigned options);
ptl_handle_md_t suite_md_with(struct scene *s, void *start, ptl_size_t length, unsigned options,
                              ptl_handle_eq_t eq, ptl_handle_ct_t ct);

ptl_handle_ct_t suite_ct(struct scene *s);
ptl_handle_eq_t suite_eq(struct scene *s, ptl_size_t count);

/* suite_pt() allocates the index `request` or any; it is freed behind the case. */
ptl_pt_index_t suite_pt(struct scene *s, unsigned options, ptl_handle_eq_t eq,
                        ptl_pt_index_t request);

/* suite_entry() fills an entry for SUITE_PT that takes everything from everybody; its
 * counter is s->ct if an EVENT_CT_ option is given. */
ptl_me_t suite_entry(struct scene *s, void *start, ptl_size_t length, unsigned options);

/* These act on an ME, or on a non-matching interface on the LE that it begins with.
 * suite_append() must succeed and swallows no event; the _code ones return what the call
 * gave. suite_target() fills and appends an entry without LINK event. */
ptl_handle_me_t suite_append(struct scene *s, ptl_list_t list, const ptl_me_t *me, void *user_ptr);
int suite_append_code(struct scene *s, ptl_pt_index_t pt, ptl_list_t list, const ptl_me_t *me,
                      void *user_ptr, ptl_handle_me_t *handle);
ptl_handle_me_t suite_target(struct scene *s, ptl_list_t list, void *start, ptl_size_t length,
                             unsigned options, void *user_ptr);
int suite_search_code(struct scene *s, ptl_pt_index_t pt, ptl_search_op_t op, const ptl_me_t *me,
                      void *user_ptr);
int suite_unlink_code(struct scene *s, ptl_handle_me_t handle);

/* suite_unlink() and suite_release() try again while the object is in use. */
void suite_unlink(struct scene *s, ptl_handle_me_t handle);
void suite_release(struct scene *s, ptl_handle_md_t md);

/* suite_own() has an object, made without a helper, freed behind the case. */
enum suite_made { MADE_MD, MADE_ENTRY, MADE_CT, MADE_EQ, MADE_PT };
void suite_own(struct scene *s, enum suite_made what, uint32_t handle_or_index);

/* ---- Data movement, any call ----------------------------------------------- */

enum suite_call { CALL_PUT, CALL_GET, CALL_ATOMIC, CALL_FETCH, CALL_SWAP, CALL_COUNT };
extern const char *const suite_call_name[CALL_COUNT]; /* "put" ... */

/* The parameters of all of them; a call takes those that it has. */
struct suite_move {
    enum suite_call call;
    bool triggered;         /* the PtlTriggered... call */
    ptl_handle_md_t md;     /* the put side; of a get the only one */
    ptl_size_t offset;      /* of md */
    ptl_handle_md_t get_md; /* fetch and swap */
    ptl_size_t get_offset;  /* of get_md */
    ptl_size_t length;
    ptl_ack_req_t ack;
    ptl_process_t to;
    ptl_pt_index_t pt;
    ptl_match_bits_t bits;
    ptl_size_t remote_offset;
    void *user_ptr;
    ptl_hdr_data_t hdr_data;
    const void *operand; /* swap */
    ptl_op_t op;
    ptl_datatype_t type;
    ptl_handle_ct_t trigger;
    ptl_size_t threshold;
};

/* suite_move() makes the call and returns its code. suite_move_to() fills one with the
 * target, SUITE_PT and PTL_NO_ACK_REQ. */
int suite_move(const struct suite_move *m);
struct suite_move suite_move_to(struct scene *s, enum suite_call call);

/* Bytes of one element; whether the call allows this operation on this type (3.15). */
size_t suite_type_size(ptl_datatype_t type);
bool suite_legal(enum suite_call call, ptl_op_t op, ptl_datatype_t type);
extern const char *const suite_op_name[PTL_OP_LAST];         /* "min" ... */
extern const char *const suite_type_name[PTL_DATATYPE_LAST]; /* "int8" ... */

/* ---- Checks ---------------------------------------------------------------- */

_Noreturn void suite_fail(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void suite_seen(const char *file, int line); /* for the report of a hang or crash */

/* Ends the case as not applicable here, in every process of it. */
_Noreturn void suite_skip(const char *why);

#define FAIL(...) suite_fail(__FILE__, __LINE__, __VA_ARGS__)
#define CHECK(cond)                                                                                \
    do {                                                                                           \
        suite_seen(__FILE__, __LINE__);                                                            \
        if (!(cond)) {                                                                             \
            FAIL("expected %s", #cond);                                                            \
        }                                                                                          \
    } while (0)
/* Integers or pointers. */
#define CHECK_EQ(found, expected)                                                                  \
    (suite_seen(__FILE__, __LINE__),                                                               \
     suite_check_eq((uint64_t)(found), (uint64_t)(expected), #found, __FILE__, __LINE__))
void suite_check_eq(uint64_t found, uint64_t expected, const char *text, const char *file,
                    int line);
/* A call that returns a PTL_ code. */
#define CODE(call, expected)                                                                       \
    (suite_seen(__FILE__, __LINE__), suite_check_code(call, expected, #call, __FILE__, __LINE__))
void suite_check_code(int found, int expected, const char *text, const char *file, int line);
#define OK(call) CODE(call, PTL_OK)
#define INVALID(call) CODE(call, PTL_ARG_INVALID)

/* A field of an event that is looked at; the others are not. */
struct suite_is {
    bool looked_at;
    uint64_t value;
};
#define IS(value_)                                                                                 \
    (struct suite_is)                                                                              \
    {                                                                                              \
        true, (uint64_t)(value_)                                                                   \
    }
struct suite_event {
    int type;
    int fail; /* ni_fail_type; PTL_NI_OK if not given */
    struct suite_is start, user_ptr, hdr_data, match_bits, rlength, mlength, remote_offset, uid,
        pt_index, list, op, datatype;
    const ptl_process_t *initiator; /* compared as the interface names processes */
};

/* The next event of a queue, within ten seconds, is exactly this one. */
#define EXPECT(eq_, type_, ...)                                                                    \
    suite_expect(s, eq_, &(struct suite_event){.type = (type_), ##__VA_ARGS__}, __FILE__, __LINE__)
ptl_event_t suite_expect(struct scene *s, ptl_handle_eq_t eq, const struct suite_event *e,
                         const char *file, int line);

/* The same for an event that was taken otherwise. */
#define EVENT_IS(event_, type_, ...)                                                               \
    suite_event_is(s, &(event_), &(struct suite_event){.type = (type_), ##__VA_ARGS__}, __FILE__,  \
                   __LINE__)
void suite_event_is(struct scene *s, const ptl_event_t *found, const struct suite_event *e,
                    const char *file, int line);

/* No event is there, nor comes while the queue is polled some hundred times. */
#define NO_EVENT(eq_) suite_no_event(eq_, __FILE__, __LINE__)
void suite_no_event(ptl_handle_eq_t eq, const char *file, int line);

/* The counter comes to exactly this value, within ten seconds, and stays there while it is
 * polled some hundred times. */
#define EXPECT_CT(ct_, success_, failure_)                                                         \
    suite_expect_ct(ct_, success_, failure_, __FILE__, __LINE__)
void suite_expect_ct(ptl_handle_ct_t ct, ptl_size_t success, ptl_size_t failure, const char *file,
                     int line);

/* A status register comes to this value, within ten seconds. */
#define EXPECT_STATUS(index_, value_) suite_expect_status(s, index_, value_, __FILE__, __LINE__)
void suite_expect_status(struct scene *s, ptl_sr_index_t index, int value, const char *file,
                         int line);
int suite_status(struct scene *s, ptl_sr_index_t index);

/* A reproducible pattern; different seeds give different bytes. */
void suite_fill(void *buffer, size_t length, unsigned seed);
#define CHECK_FILL(buffer, length, seed)                                                           \
    suite_check_fill(buffer, length, seed, #buffer, __FILE__, __LINE__)
void suite_check_fill(const void *buffer, size_t length, unsigned seed, const char *text,
                      const char *file, int line);
#define CHECK_BYTES(buffer, length, value)                                                         \
    suite_check_bytes(buffer, length, value, #buffer, __FILE__, __LINE__)
void suite_check_bytes(const void *buffer, size_t length, unsigned char value, const char *text,
                       const char *file, int line);

/* suite_peek() copies memory that the NIC may be writing to, for cases that look there although no
 * event says that they may; ThreadSanitizer is not told. */
void suite_peek(void *to, const void *from, size_t length);

/* ---- Time and processes ---------------------------------------------------- */

uint64_t suite_now_ms(void);
void suite_sleep_ms(int ms);

/* suite_deadline() is the time, in ms of suite_now_ms(), until which a check waits. */
uint64_t suite_deadline(void);

/* Under AddressSanitizer a process with threads, those of the library included, cannot be
 * forked: its allocator may be locked in the child for ever. Cases that do so ask this. */
#if defined(__SANITIZE_ADDRESS__)
#define SUITE_FORKS_THREADS 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SUITE_FORKS_THREADS 0
#endif
#endif
#ifndef SUITE_FORKS_THREADS
#define SUITE_FORKS_THREADS 1
#endif
#define NEEDS_FORK_WITH_THREADS()                                                                  \
    do {                                                                                           \
        if (!SUITE_FORKS_THREADS) {                                                                \
            suite_skip("AddressSanitizer does not survive a fork of a process with threads");      \
        }                                                                                          \
    } while (0)

/* suite_child() runs a function in a forked child, waits for it and returns its wait status.
 * Checks that fail there fail the case. */
int suite_child(void (*run)(void *), void *argument);

/* The same in two halves, for what goes on meanwhile. */
int suite_fork(void (*run)(void *), void *argument);
int suite_wait(int pid);

const char *suite_code_name(int code);
const char *suite_event_name(int type);

#endif
