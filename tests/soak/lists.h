/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Both lists of a portal table entry under random traffic, against a model that knows each
 * event, byte and count beforehand.
 *
 *   lane    a thread of a process: the numbers it is drawn from, the queue and the counters of
 *           what it sends, the memory of what it fetches
 *   site    what a lane finds at one process on one kind of interface: an index of its own with
 *           queue, counters and entries; their memory is the lane's, for all kinds
 *   round   the target of the lane's choice appends and unlinks, at once or triggered, searches,
 *           opens and closes its site; then the lane sends a few messages without a pause, and one
 * that says that they have arrived; then both compare what came with what had to
 *
 * Every process draws and models every lane, and does in earnest what falls to it. Lanes run
 * side by side and share interfaces, channels and limits, but no site: so the model is exact
 * whatever the processes' speed.
 */
#ifndef LISTS_H
#define LISTS_H

#include "../ok.h"
#include "../splitmix.h"
#include "atomics.h"
#include "must.h"

#include "portals4.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROCESSES_MAX = 4,
    THREADS_MAX = 3,
    LANES_MAX = PROCESSES_MAX * THREADS_MAX,
    KINDS = 4, /* 0, 1: matching; 0, 2: logical */
    ENTRIES = 48,
    HEADERS = 512,
    MESSAGES = 10, /* of a round */
    PARTS = 4,
    SITE_CTS = 3,
    SITE_BYTES = 640 << 10,
    SOURCE_BYTES = 1 << 20,
    FETCHED_BYTES = 2 << 20,
    OWN_BYTES = 4096, /* of a message whose bytes are not the common ones */
    LAST_PT = 60,     /* where the last message of a round goes */
    NO_PT = 50,       /* not allocated */
    ANY_LIST = 255    /* of an event that is expected: either */
};

/* An event that is due; `checked` says which fields are. */
enum { CHECK_MESSAGE = 1, CHECK_START = 2, CHECK_ATOMIC = 4, CHECK_OFFSET = 8 };
struct due {
    ptl_event_t event; /* start: an offset in the lane's memory */
    unsigned checked;
};
struct due_list {
    struct due *v;
    size_t n, room;
};

struct part {
    uint32_t at, length;
};

struct entry {
    bool used, linked, used_up, told;
    ptl_list_t list;
    unsigned options, parts; /* 0: one piece */
    uint32_t start, length;
    struct part part[PARTS];
    ptl_match_bits_t bits, ignore;
    int source; /* process, or -1: any */
    bool foreign_uid, own_uid;
    uint64_t min_free, offset, age;
    unsigned ct, headers;
    void *user_ptr;
    ptl_handle_me_t handle;
};

struct header {
    struct entry *owner;
    struct due due;
};

struct site {
    bool enabled, flow_control, has_eq;
    struct entry entry[ENTRIES];
    struct header header[HEADERS];
    size_t headers;
    uint64_t age;
    uint64_t fired;   /* the count of `trigger` */
    unsigned waiting; /* triggered appends and unlinks of this round */
    struct due_list due;
    ptl_ct_event_t count[SITE_CTS];
    ptl_handle_eq_t eq; /* from here on only at the process whose it is */
    ptl_handle_ct_t ct[SITE_CTS], trigger;
};

/* One side of a message: an MD. */
struct side {
    unsigned options;
    bool eq, ct, parts;
    ptl_handle_md_t md;
};

struct message {
    enum act act;
    uint32_t length, source, fetched; /* where from and where to */
    bool own;                         /* the bytes are in `bytes`, not of the common source */
    bool lost;                        /* goes where no index is */
    uint64_t bits, offset, hdr_data;
    ptl_ack_req_t ack;
    ptl_op_t op;
    ptl_datatype_t type;
    struct side from, to; /* to: of fetches and swaps */
    void *user_ptr;
    uint8_t operand[ELEMENT_MAX], bytes[OWN_BYTES];
    uint8_t *sent; /* the copy of `bytes` that leaves */
};

/* What a lane sends in a round: messages of any kind; or mostly small puts and atomics, that ask
 * for no answer (QUIET), or for a full ack (ACKED). */
enum manner { ANY, QUIET, ACKED };

struct lane {
    unsigned number;
    int process, target;
    unsigned kind;
    uint64_t random, names;
    bool triggered, chained;
    enum manner manner;
    unsigned triggers; /* percent of the rounds whose messages are triggered */
    unsigned acts, messages;
    struct message message[MESSAGES];
    uint8_t *memory[PROCESSES_MAX], *open[PROCESSES_MAX]; /* models; open: the value is */
    uint8_t *fetched_model, *fetched_open, *fetched;
    struct due_list sends, answers;
    ptl_ct_event_t count[KINDS];
    uint64_t fired[KINDS], lasts[KINDS];
    ptl_handle_eq_t eq[KINDS];
    ptl_handle_ct_t ct[KINDS], trigger[KINDS], last_ct[KINDS];
    ptl_handle_md_t last_md[KINDS];
};

struct registers {
    _Atomic int value[PTL_SR_LAST];
};

/* ---- lists_open.c ---- */

/* What the processes share while they set up. */
struct meeting {
    pthread_barrier_t meet;
    ptl_process_t ids[PROCESSES_MAX];
};

extern int me; /* this process */
extern unsigned processes, threads, lanes;
extern uint64_t seed;
extern struct lane lane[LANES_MAX];
extern struct registers registers[PROCESSES_MAX][KINDS];
extern ptl_handle_ni_t ni[KINDS];
extern ptl_ni_limits_t limits[KINDS];
extern ptl_process_t ids[PROCESSES_MAX];
extern uint8_t *here, *source; /* the lanes' memory at this process; the common source */

static inline bool is_matching(unsigned kind)
{
    return kind < 2;
}
static inline bool is_logical(unsigned kind)
{
    return kind % 2 == 0;
}
struct site *site_of(const struct lane *l);
/* open_all() opens the interfaces and makes the lanes, when all processes call it. */
void open_all(struct meeting *m);

/* ---- lists.c, or differ.c ---- */

/* ---- lists_draw.c ---- */

/* How often entries and descriptors have options, in percent of what is drawn otherwise. */
extern unsigned spice;
/* Whether most sites have no queue and count instead, as programs of one-sided operations do. */
extern bool hushed;
/* act_begins() is called before each act of a lane; without `keeps_act` it is true. With it an act
 * is drawn from the seed and its number alone, and left out where keeps_act() says so. */
extern bool (*keeps_act)(unsigned lane, unsigned act);
bool act_begins(struct lane *l);
bool percent(uint64_t *state, unsigned chance);
void draw_entry(struct lane *l, struct entry *e);
/* draw_message() draws one that the model can tell the end of; *room is what is left of the
 * lane's memory for what it fetches. */
void draw_message(struct lane *l, struct message *m, uint32_t *used);

/* ---- lists_model.c ---- */

void due_add(struct due_list *list, const struct due *d);
uint32_t entry_address(const struct entry *e, uint64_t offset);
struct entry *model_find(struct lane *l, const struct message *m);
/* Each says what the call must give, and does to the model what it does to the site. */
void model_append(struct lane *l, struct entry *e);
int model_unlink(struct entry *e);
void model_search(struct lane *l, struct entry *e, ptl_search_op_t op);
void model_message(struct lane *l, struct message *m);

/* ---- lists_act.c ---- */

/* change_site() is the target's part of a round, send_messages() the lane's. */
void change_site(struct lane *l);
void send_messages(struct lane *l);

/* ---- lists_check.c ---- */

extern unsigned patience_s; /* for what is due */
void check_target(struct lane *l);
void check_initiator(struct lane *l);
void check_registers(void);

#endif
