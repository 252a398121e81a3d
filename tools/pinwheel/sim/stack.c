/* SPDX-License-Identifier: BSD-3-Clause */
/* Who spins on memory, and where; see stack.h. */
#include "stack.h"

#include "base/library.h"
#include "base/sys.h"

#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* libdw, loaded when it is needed. */
static struct {
    __typeof__(dwfl_begin) *begin;
    __typeof__(dwfl_end) *end;
    __typeof__(dwfl_linux_proc_report) *report;
    __typeof__(dwfl_report_end) *report_end;
    __typeof__(dwfl_addrmodule) *module;
    __typeof__(dwfl_module_addrname) *name;
    __typeof__(dwfl_module_info) *info;
    __typeof__(dwfl_module_getsrc) *source;
    __typeof__(dwfl_lineinfo) *line;
    __typeof__(dwfl_linux_proc_find_elf) *find_elf;
    __typeof__(dwfl_standard_find_debuginfo) *find_debuginfo;
} dw;

static bool load(void)
{
    static const struct library_symbol symbols[] = {
        {"dwfl_begin", &dw.begin},
        {"dwfl_end", &dw.end},
        {"dwfl_linux_proc_report", &dw.report},
        {"dwfl_report_end", &dw.report_end},
        {"dwfl_addrmodule", &dw.module},
        {"dwfl_module_addrname", &dw.name},
        {"dwfl_module_info", &dw.info},
        {"dwfl_module_getsrc", &dw.source},
        {"dwfl_lineinfo", &dw.line},
        {"dwfl_linux_proc_find_elf", &dw.find_elf},
        {"dwfl_standard_find_debuginfo", &dw.find_debuginfo}};
    return library_load("libdw.so.1", symbols, sizeof(symbols) / sizeof(symbols[0])) == NULL;
}

static void print_frame(Dwfl *files, uint64_t pc)
{
    Dwfl_Module *m = files != NULL ? dw.module(files, pc) : NULL;
    const char *name = m != NULL ? dw.name(m, pc) : NULL;
    Dwfl_Line *row = m != NULL ? dw.source(m, pc) : NULL;
    int line = 0;
    const char *file = row != NULL ? dw.line(row, NULL, &line, NULL, NULL, NULL) : NULL;
    const char *image = m != NULL ? dw.info(m, NULL, NULL, NULL, NULL, NULL, NULL, NULL) : NULL;
    fprintf(stderr, "pinwheel sim:     0x%" PRIx64 " %s", pc, name != NULL ? name : "?");
    if (file != NULL) {
        fprintf(stderr, ", %s:%d\n", file, line);
    } else {
        fprintf(stderr, " of %s\n", image != NULL ? image : "?");
    }
}

void stack_tell(const struct coordinator *c, uint32_t place)
{
    const struct sim_rank *s = shared_of(c, place);
    uint32_t count = atomic_load(&s->frames);
    uint64_t frame[SIM_FRAMES];
    count = count < SIM_FRAMES ? count : SIM_FRAMES;
    memcpy(frame, s->frame, sizeof(frame)); /* whatever they are, they are looked up only */
    Dwfl *files = NULL;
    if (load()) {
        const Dwfl_Callbacks calls = {.find_elf = dw.find_elf, .find_debuginfo = dw.find_debuginfo};
        files = dw.begin(&calls);
        if (files != NULL && dw.report(files, (pid_t)c->players[place].process) == 0) {
            dw.report_end(files, NULL, NULL);
        }
        for (uint32_t i = 0; i < count; i++) {
            print_frame(files, frame[i]);
        }
        if (files != NULL) {
            dw.end(files);
        }
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        print_frame(NULL, frame[i]);
    }
}

/* ---- who spins ---- */

/* A process that listens, and is the rank that the launcher knows or in its group. */
static bool listens(const struct coordinator *c, uint32_t place)
{
    int rank = atomic_load(&c->players[sim_host(&c->layout, place)].pid);
    int pid = (int)c->players[place].process;
    return pid > 0 && atomic_load(&shared_of(c, place)->listens) == (uint32_t)pid &&
           (pid == rank || getpgid(pid) == rank);
}

void stack_ask(struct coordinator *c)
{
    for (uint32_t i = 0; i < c->out.count; i++) {
        uint32_t place = c->out.rank[i];
        if (listens(c, place)) {
            atomic_store(&shared_of(c, place)->spins, SIM_NOT_SAID);
            atomic_store(&shared_of(c, place)->frames, 0);
            kill((pid_t)c->players[place].process, SIGSTKFLT);
        }
    }
}

bool stack_all_spin(const struct coordinator *c)
{
    for (uint32_t i = 0; i < c->out.count; i++) {
        if (atomic_load(&shared_of(c, c->out.rank[i])->spins) != SIM_SPINS_ON_MEMORY) {
            return false;
        }
    }
    return c->out.count != 0;
}

void stack_end(struct coordinator *c)
{
    c->result.stuck = true;
    for (uint32_t i = 0; i < c->out.count; i++) {
        uint32_t place = c->out.rank[i];
        fprintf(stderr,
                "pinwheel sim: rank %u%s (process %u) spins on memory, at %.5f us of virtual time: "
                "it comes back to one place again and again, with the same registers and memory, "
                "and without a call no time passes. Call PtlSimPause() in that loop, or give "
                "--memory-waits\n",
                sim_host(&c->layout, place), place < c->setup.ranks ? "" : "'s child",
                c->players[place].process, (double)rank_of(c, place)->now / 1e6);
        stack_tell(c, place);
    }
}
