/* SPDX-License-Identifier: BSD-3-Clause */
/* Running programs (core.h): the rarer steps of the interpreter, and its loops (core_run.h). */
#include "core.h"
#include "divide.h"
#include "real.h"

#include <string.h>

enum { RA = 1, SP = 2, A0 = 10 }; /* registers */

static inline uint32_t rotate_right(uint32_t value, unsigned by)
{
    return by == 0 ? value : value >> by | value << (32 - by);
}

/* ---- Memory ---- */

static struct rv32_region *find_region(struct rv32_core *core, uint32_t address, uint32_t bytes,
                                       unsigned access)
{
    for (int i = 1; i <= core->region_count; i++) {
        struct rv32_region *r = &core->region[i];
        uint32_t offset = address - r->base;
        if (offset < r->size && bytes <= r->size - offset) {
            return (r->rights & access) == access ? r : NULL;
        }
    }
    return NULL;
}

/* find_region() without devices. */
static struct rv32_region *find_memory(struct rv32_core *core, uint32_t address, uint32_t bytes,
                                       unsigned access)
{
    struct rv32_region *r = find_region(core, address, bytes, access);
    return r != NULL && r->device == NULL ? r : NULL;
}

/* find_memory() for a word; it tries first the region that the base register last pointed to. */
static struct rv32_region *find_word(struct rv32_core *core, unsigned base, uint32_t address,
                                     unsigned rights)
{
    struct rv32_region *r = core->hint[base];
    uint32_t word = rotate_right(address - r->base, 2);
    if (word < r->read[2] && ((rights & RV32_WRITE) == 0 || word < r->write[2])) {
        return r;
    }
    r = find_memory(core, address, 4, rights);
    if (r != NULL) {
        core->hint[base] = r;
    }
    return r;
}

void *rv32_core_reach(struct rv32_core *core, uint32_t address, uint32_t bytes,
                      enum rv32_access access)
{
    const struct rv32_region *r = find_memory(core, address, bytes, access);
    return r != NULL ? r->host + (address - r->base) : NULL;
}

/* Returns the cell of the instruction that follows in the code. */
static const struct rv32_cell *behind(const struct rv32_cell *ip)
{
    for (ip++; ip->op == RV32_CELL_GOTO;) {
        ip += ip->imm;
    }
    return ip;
}

/* Returns how much longer the core waits. A wait hides the time by which the next instruction is
 * fetched late (rv32_cost_late()), which was charged already. */
static unsigned hide_late(const struct rv32_cell *ip, unsigned waits)
{
    unsigned late = ip[1].op == RV32_CELL_GOTO ? (unsigned)ip[1].cycles : 0;
    return waits - (waits < late ? waits : late);
}

static void *deny(struct rv32_core *core, const struct rv32_cell *ip, enum rv32_end end,
                  uint32_t address, uint32_t bytes)
{
    core->result.end = ip->rs1 == SP ? RV32_FAULT_STACK : end;
    core->result.address = address;
    core->result.bytes = bytes;
    return NULL;
}

/* Returns the cycles used when control is at `ip`: those charged, less those that lie ahead. */
static uint64_t cycles_at(const struct rv32_core *core, const struct rv32_cell *ip)
{
    return (uint64_t)(core->budget - core->left -
                      core->program->rest[ip - core->program->cells].cycles);
}

/* Accesses a device; the word to read or write is in core->device_word. */
static void *visit(struct rv32_core *core, const struct rv32_cell *ip, const struct rv32_region *r,
                   enum rv32_access access, uint32_t address, uint32_t bytes)
{
    const struct rv32_device *d = r->device;
    bool whole = bytes == 4 && address % 4 == 0;
    int64_t waits = whole ? d->access(d->context, access, address - r->base, cycles_at(core, ip),
                                      &core->device_word)
                          : -1;
    if (waits < 0) {
        return deny(core, ip, access == RV32_READ ? RV32_FAULT_LOAD : RV32_FAULT_STORE, address,
                    bytes);
    }
    core->waited = hide_late(ip, (uint32_t)waits);
    return &core->device_word;
}

static const void *reach_load(struct rv32_core *core, const struct rv32_cell *ip, uint32_t bytes)
{
    uint32_t address = core->x[ip->rs1] + (uint32_t)ip->imm;
    struct rv32_region *r = find_region(core, address, bytes, RV32_READ);
    if (r == NULL) {
        return deny(core, ip, RV32_FAULT_LOAD, address, bytes);
    }
    if (r->device != NULL) {
        return visit(core, ip, r, RV32_READ, address, bytes);
    }
    core->hint[ip->rs1] = r;
    core->waited = hide_late(
        ip, rv32_cost_access(core->program->timing, RV32_CLASS_LOAD, r->area, address, bytes));
    return r->host + (address - r->base);
}

static void *reach_store(struct rv32_core *core, const struct rv32_cell *ip, uint32_t bytes)
{
    const struct rv32_timing *t = core->program->timing;
    uint32_t address = core->x[ip->rs1] + (uint32_t)ip->imm;
    struct rv32_region *r = find_region(core, address, bytes, RV32_WRITE);
    if (r == NULL) {
        return deny(core, ip, RV32_FAULT_STORE, address, bytes);
    }
    if (r->device != NULL) {
        core->device_word = ip->op == RV32_FSW ? (uint32_t)core->f[ip->rs2] : core->x[ip->rs2];
        return visit(core, ip, r, RV32_WRITE, address, bytes);
    }
    core->hint[ip->rs1] = r;
    unsigned more = rv32_cost_access(t, RV32_CLASS_STORE, r->area, address, bytes);
    if (more > 0 && behind(ip)->op == RV32_JALR) {
        more -= t->waited_jalr;
    }
    core->waited = hide_late(ip, more);
    return r->host + (address - r->base);
}

/* ---- Atomics ---- */

/* Returns the cycles for which an atomic in L1 keeps the bank from the next instruction. The atomic
 * is charged with them, since it is the rarer one. */
static unsigned bank_wait(struct rv32_core *core, const struct rv32_cell *ip, uint32_t address)
{
    const struct rv32_timing *t = core->program->timing;
    const struct rv32_cell *next = behind(ip);
    const struct rv32_traits *traits = next->op < RV32_OPS ? &rv32_traits[next->op] : NULL;
    if (traits == NULL || traits->bytes == 0) {
        return 0;
    }
    bool uses = (traits->reads1 && next->rs1 == ip->rd) || (traits->reads2 && next->rs2 == ip->rd);
    uint32_t follows =
        core->x[next->rs1] + (traits->class == RV32_CLASS_AMO ? 0 : (uint32_t)next->imm);
    if (uses || !rv32_same_bank(t, address, follows)) {
        return 0;
    }
    const struct rv32_region *r = find_memory(core, follows, traits->bytes, RV32_READ);
    if (r == NULL || r->area != RV32_AREA_L1) {
        return 0;
    }
    /* A JALR behind that access has its target by then, and waits less. */
    bool hidden = traits->class != RV32_CLASS_LOAD && behind(next)->op == RV32_JALR &&
                  rv32_cost_access(t, traits->class, r->area, follows, traits->bytes) == 0;
    return t->amo_busy - (hidden ? t->waited_jalr : 0);
}

static bool store_conditional(struct rv32_core *core, uint32_t *word, uint32_t address,
                              uint32_t value)
{
    uint32_t expected = core->reserved_value;
    bool mine = core->reserved && core->reservation == address;
    core->reserved = false;
    return mine && __atomic_compare_exchange_n(word, &expected, value, false, __ATOMIC_SEQ_CST,
                                               __ATOMIC_SEQ_CST);
}

static uint32_t extreme(uint8_t op, uint32_t a, uint32_t b)
{
    switch (op) {
    case RV32_AMOMIN:
        return (int32_t)a < (int32_t)b ? a : b;
    case RV32_AMOMAX:
        return (int32_t)a > (int32_t)b ? a : b;
    case RV32_AMOMINU:
        return a < b ? a : b;
    default:
        return a > b ? a : b;
    }
}

static uint32_t do_atomic(struct rv32_core *core, uint8_t op, uint32_t *word, uint32_t address,
                          uint32_t operand)
{
    uint32_t old;
    switch (op) {
    case RV32_LR:
        old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
        core->reserved = true;
        core->reservation = address;
        core->reserved_value = old;
        return old;
    case RV32_SC:
        return !store_conditional(core, word, address, operand);
    case RV32_AMOSWAP:
        return __atomic_exchange_n(word, operand, __ATOMIC_SEQ_CST);
    case RV32_AMOADD:
        return __atomic_fetch_add(word, operand, __ATOMIC_SEQ_CST);
    case RV32_AMOXOR:
        return __atomic_fetch_xor(word, operand, __ATOMIC_SEQ_CST);
    case RV32_AMOAND:
        return __atomic_fetch_and(word, operand, __ATOMIC_SEQ_CST);
    case RV32_AMOOR:
        return __atomic_fetch_or(word, operand, __ATOMIC_SEQ_CST);
    default:
        old = __atomic_load_n(word, __ATOMIC_SEQ_CST);
        while (!__atomic_compare_exchange_n(word, &old, extreme(op, old, operand), false,
                                            __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        }
        return old;
    }
}

static bool run_atomic(struct rv32_core *core, const struct rv32_cell *ip)
{
    const struct rv32_timing *t = core->program->timing;
    uint32_t address = core->x[ip->rs1], operand = core->x[ip->rs2];
    unsigned rights = ip->op == RV32_LR ? RV32_READ : RV32_READ | RV32_WRITE;
    struct rv32_region *r = find_word(core, ip->rs1, address, rights);
    if (r == NULL || address % 4 != 0) {
        deny(core, ip, RV32_FAULT_ATOMIC, address, 4);
        return false;
    }
    unsigned more = rv32_cost_access(t, RV32_CLASS_AMO, r->area, address, 4);
    if (more > 0 && behind(ip)->op == RV32_JALR) {
        more -= t->waited_jalr;
    }
    void *word = r->host + (address - r->base);
    core->x[ip->rd] = do_atomic(core, ip->op, word, address, operand);
    if (r->area == RV32_AREA_L1) {
        core->fetch.bank_wait = bank_wait(core, ip, address);
        more += core->fetch.bank_wait;
    }
    core->waited = hide_late(ip, more);
    return true;
}

/* ---- Other rare operations ---- */

static uint32_t counter(const struct rv32_core *core, const struct rv32_cell *ip, int64_t left,
                        int64_t instructions)
{
    const struct rv32_sum *rest = &core->program->rest[ip - core->program->cells];
    uint64_t cycles = (uint64_t)(core->budget - left - rest->cycles);
    uint64_t retired = (uint64_t)(instructions - rest->instructions);
    switch (ip->imm) {
    case RV32_CSR_INSTRET:
        return (uint32_t)retired;
    case RV32_CSR_INSTRETH:
        return (uint32_t)(retired >> 32);
    case RV32_CSR_CYCLEH:
    case RV32_CSR_TIMEH:
        return (uint32_t)(cycles >> 32);
    default:
        return (uint32_t)cycles;
    }
}

/* Serves an ecall; returns whether the host ends the program. */
static bool call_host(struct rv32_core *core, const struct rv32_cell *ip)
{
    core->result.pc = core->program->pcs[ip - core->program->cells];
    int stop = core->ecall(core, core->ecall_context);
    if (stop == 0) {
        return false;
    }
    const struct rv32_sum *after = &core->program->rest[ip + 1 - core->program->cells];
    core->result.end = RV32_STOPPED;
    core->result.value = (uint32_t)stop;
    core->left += after->cycles;
    core->instructions -= after->instructions;
    return true;
}

/* Whether the program may go on when its budget seems used up: of the cycles charged, `unused` ones
 * lie ahead. */
static bool has_time(struct rv32_core *core, int64_t unused)
{
    while (core->left + unused < 0) {
        if (core->late == NULL || !core->late(core, core->ecall_context)) {
            return false;
        }
    }
    return true;
}

/* Returns how many cycles the instruction at `ip` waits for its fetch. The number is negative where
 * that wait hides cycles that were charged already. */
static int64_t fetch(struct rv32_core *core, const struct rv32_cell *ip, int64_t left)
{
    const struct rv32_program *p = core->program;
    const uint32_t cell = (uint32_t)(ip - p->cells);
    int64_t cycle = core->budget - left - p->rest[cell].cycles;
    return rv32_fetch_next(&core->fetch, p, p->pcs[cell], ip->op, cycle) - cycle;
}

/* fetch() for an address outside the program. */
static int64_t fetch_outside(struct rv32_core *core, uint32_t pc, int64_t left)
{
    int64_t cycle = core->budget - left;
    return rv32_fetch_next(&core->fetch, core->program, pc, RV32_ILLEGAL, cycle) - cycle;
}

static inline const struct rv32_cell *enter(struct rv32_core *core, uint32_t cell)
{
    const struct rv32_program *p = core->program;
    core->left -= p->rest[cell].cycles;
    core->instructions += p->rest[cell].instructions;
    return &p->cells[cell];
}

/* redirect() where the core counts fetches. */
static __attribute__((noinline)) const struct rv32_cell *redirect_fetch(struct rv32_core *core,
                                                                        uint32_t pc, uint32_t cell)
{
    rv32_fetch_begin(&core->fetch, core->program, pc, core->budget - core->left);
    return enter(core, cell);
}

/* Leads control to `pc`; returns the cell there, NULL if that is not in the code. */
static const struct rv32_cell *redirect(struct rv32_core *core, uint32_t pc)
{
    const struct rv32_program *p = core->program;
    uint32_t offset = pc - p->base;
    if (offset >= p->size - 1 || offset % 2 != 0) {
        core->result.end = RV32_FAULT_JUMP;
        core->result.pc = pc;
        core->result.from = pc;
        return NULL;
    }
    uint32_t cell = p->at[offset / 2];
    return p->lengths != NULL ? redirect_fetch(core, pc, cell) : enter(core, cell);
}

/* Fetches the instruction at `ip`, if the core counts fetches, and shows it to watch(), unless that
 * is NULL. If watch() leads control elsewhere (RV32_GO_TO), the instruction there is shown, too.
 * Returns where control goes on; NULL if the program has ended. */
static const struct rv32_cell *show(struct rv32_core *core, const struct rv32_cell *ip,
                                    rv32_watch *watch, void *context)
{
    const struct rv32_program *p = core->program;
    enum rv32_turn turn = RV32_GO_TO;
    while (ip != NULL && ip->op < RV32_CELL_GOTO && turn == RV32_GO_TO) {
        uint32_t cell = (uint32_t)(ip - p->cells);
        if (p->lengths != NULL) {
            core->left -= fetch(core, ip, core->left);
        }
        turn = watch != NULL ? watch(context, core, p->pcs[cell], cycles_at(core, ip)) : RV32_GO_ON;
        if (turn == RV32_GO_ON) {
            break;
        }
        core->left += p->rest[cell].cycles;
        core->instructions -= p->rest[cell].instructions;
        if (turn == RV32_HALT) {
            core->result.end = RV32_STOPPED;
            core->result.pc = p->pcs[cell];
            return NULL;
        }
        ip = redirect(core, core->go_to);
    }
    return ip;
}

/* ---- The loops ---- */

#define RUN_NAME run_warm
#define RUN_CHECKED 1
#define RUN_WATCHED 0
#include "core_run.h"

#define RUN_NAME run_watched
#define RUN_CHECKED 1
#define RUN_WATCHED 1
#include "core_run.h"

#ifdef RV32_UNCHECKED
#define RUN_NAME run_unchecked
#define RUN_CHECKED 0
#define RUN_WATCHED 0
#include "core_run.h"
#endif

/* ---- Calls ---- */

/* Sets the core up for a call. Returns the first cell, or NULL if the call cannot begin. */
static const struct rv32_cell *begin(struct rv32_core *core, const struct rv32_call *call)
{
    memset(core->x, 0, sizeof(core->x));
    memcpy(&core->x[A0], call->arguments, sizeof(call->arguments));
    core->x[RA] = RV32_RETURN;
    core->x[SP] = call->stack;
    if (core->program->reals) {
        memset(core->f, 0, sizeof(core->f));
        core->fcsr = 0;
    }
    core->reserved = false;
    core->budget = call->budget;
    core->left = call->budget;
    core->instructions = 0;
    /* `near` and the registers of the result are left: only faults use them, and write them. */
    core->result.end = RV32_RETURNED;
    core->result.value = 0;
    core->result.pc = call->pc;
    core->result.address = 0;
    core->result.bytes = 0;
    return redirect(core, call->pc);
}

static const struct rv32_result *finish(struct rv32_core *core)
{
    core->result.cycles = (uint64_t)(core->budget - core->left);
    core->result.instructions = (uint64_t)core->instructions;
    if (core->result.end == RV32_RETURNED) {
        core->result.value = core->x[A0];
    } else {
        core->result.ra = core->x[RA];
        core->result.sp = core->x[SP];
        rv32_result_near(core);
    }
    return &core->result;
}

const struct rv32_result *rv32_core_call(struct rv32_core *core, const struct rv32_call *call)
{
    const struct rv32_cell *ip = begin(core, call);
    if (ip != NULL && core->program->lengths != NULL) {
        run_watched(core, ip, NULL, NULL, NULL);
    } else if (ip != NULL) {
        run_warm(core, ip, NULL, NULL, NULL);
    }
    return finish(core);
}

const struct rv32_result *rv32_core_trace(struct rv32_core *core, const struct rv32_call *call,
                                          rv32_watch *watch, void *context)
{
    const struct rv32_cell *ip = begin(core, call);
    if (ip != NULL) {
        run_watched(core, ip, watch, context, NULL);
    }
    return finish(core);
}

const struct rv32_result *rv32_core_resume(struct rv32_core *core, uint32_t pc, rv32_watch *watch,
                                           void *context)
{
    core->result = (struct rv32_result){.pc = pc};
    const struct rv32_cell *ip = redirect(core, pc);
    if (ip != NULL) {
        run_watched(core, ip, watch, context, NULL);
    }
    return finish(core);
}

#ifdef RV32_UNCHECKED
const struct rv32_result *rv32_core_call_unchecked(struct rv32_core *core,
                                                   const struct rv32_call *call, uint8_t *arena)
{
    const struct rv32_cell *ip = begin(core, call);
    if (ip != NULL) {
        run_unchecked(core, ip, NULL, NULL, arena);
    }
    return finish(core);
}
#endif
