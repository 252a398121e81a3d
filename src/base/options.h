/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The options of Pinwheel: one table, from which the run time, `pinwheel info`,
 * the manual page and docs/options.md take name, default and meaning.
 *
 * An option is an environment variable. options_load() reads them all at
 * PtlInit; afterwards a `struct options` is read-only and may be read by any
 * thread.
 */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum option_id {
    OPT_IFACES,
    OPT_FABRIC,
    OPT_JOB_KEY_FILE,
    OPT_LOG,
    OPT_LEASE_US,
    OPT_SPIN_US,
    OPT_YIELD_US,
    OPT_CORE,
    OPT_MEMBARRIER,
    OPT_PACKET_SIZE,
    OPT_SHM_DIR,
    OPT_SHM_PEERS,
    OPT_SHM_RING,
    OPT_SHM_CELLS,
    OPT_SHM_CELLS_FIRST,
    OPT_SHM_INLINE,
    OPT_SHM_LARGE,
    OPT_SHM_VM_MIN,
    OPT_SHM_VM_FAR,
    OPT_UDP_PORT_BASE,
    OPT_UDP_OPEN,
    OPT_UDP_SILENCE_MS,
    OPT_UDP_BUFFER,
    OPT_UDP_PACKET,
    OPT_UDP_CHECKSUM,
    OPT_CONNECT_MS,
    OPT_LINGER_MS,
    OPT_SEND_QUEUE,
    OPT_HANDLER_QUEUE,
    OPT_OUTSTANDING,
    OPT_FLOWCTRL_MS,
    OPT_FASTPATH,
    OPT_HPU_PATIENCE_MS,
    OPT_HPU,
    OPT_HPU_TIMING,
    OPT_HPU_IMAGES,
    OPT_HPUS,
    OPT_HPU_PIN,
    OPT_HPU_QUEUE,
    OPT_HANDLER_BUDGET_US,
    OPT_HPU_MEMORY,
    OPT_HPU_STACK,
    OPT_COUNT
};

enum option_type { OPTION_NUMBER, OPTION_TEXT, OPTION_CHOICE };

struct option_desc {
    const char *env; /* PINWHEEL_..., the variable's name */
    enum option_type type;
    const char *unit;     /* "us", "bytes", ...; "" for none */
    const char *fallback; /* the default, as a user would write it */
    int64_t min, max;     /* numbers only, inclusive */
    const char *choices;  /* choices only: "auto|cells|vm" */
    const char *meaning;
};

extern const struct option_desc option_table[OPT_COUNT];

/* Parsed values. A choice is the index into its list of choices. */
struct options {
    int64_t number[OPT_COUNT];
    char text[OPT_COUNT][256];
};

/* options_fastpath() returns true if messages may take the fast paths. */
static inline bool options_fastpath(const struct options *o)
{
    return o->number[OPT_FASTPATH] == 0;
}

/* options_load() reads the environment into *o. It returns 0, or -1 when a
 * variable has a value outside its range; it has then written to `error` one
 * line that names the variable, the value and what would be right. */
int options_load(struct options *o, char *error, size_t error_size);

/* option_parse() parses one value for one option, as options_load() does. */
int option_parse(enum option_id id, const char *value, int64_t *number, char *error,
                 size_t error_size);

/* Environment variables that are no options, but that parts of Pinwheel read, too; NULL ends
 * them. */
extern const char *const options_beside[];

/* options_unknown() finds variables that begin with PINWHEEL_ and are neither options nor in
 * options_beside; most are misspelt. The search begins at `*at`, which the caller sets to 0 before
 * the first call. For each variable found it returns true and writes a line for the user to `text`;
 * it returns false when there are no more. */
bool options_unknown(char *const *environment, size_t *at, char *text, size_t size);

#endif
