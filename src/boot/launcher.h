/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of one rank to the launcher that started it, whatever protocol that speaks.
 *
 *     job.c ──► struct launcher ──┬── pmi_client.c   PMI-1 over PMI_FD: `pinwheel run`, Hydra
 *               (ops, rank, size) ├── pmix.c         PMIx: Open MPI's mpirun, prterun, Slurm
 *                                 └── pmi_client.c   nobody: a PMI-1 server inside, one rank
 *
 * launcher_join() looks at the environment and connects. A variable that names
 * a launcher is believed: when the connection fails that is an error, never a
 * job of one rank, because N processes that each take themselves for the whole
 * job look alike from within.
 *
 * A connection can be joined once per process; launcher_claim() and
 * launcher_release() keep count for both protocols. Functions return 0 or a
 * negative errno value and leave a line of text in `error`.
 */
#ifndef BOOT_LAUNCHER_H
#define BOOT_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

enum {
    LAUNCHER_ERROR_SIZE = 512,
    LAUNCHER_VALUE_SIZE = 4096, /* counts the NUL; Hydra's lines are below 2 KiB */
};

struct launcher;

struct launcher_ops {
    /* put() publishes a pair, seen by the others after the next barrier; key and
     * value are within the sizes below and of characters that every protocol
     * can carry. -EEXIST: refused. */
    int (*put)(struct launcher *l, const char *key, const char *value);
    /* get() copies the value of `key` into value[LAUNCHER_VALUE_SIZE]. -ENOENT:
     * no rank put it. */
    int (*get)(struct launcher *l, const char *key, char *value);
    /* barrier() returns when all ranks are in it. */
    int (*barrier)(struct launcher *l);
    /* abort() asks for the end of all ranks, with this exit status. */
    int (*abort)(struct launcher *l, int code);
    /* leave() says good-bye. It is the last call but close(). */
    int (*leave)(struct launcher *l);
    /* close() frees `state` and ends the connection; legal after any failure. */
    void (*close)(struct launcher *l);
};

struct launcher {
    const struct launcher_ops *ops; /* NULL: not joined */
    void *state;                    /* the protocol's own */
    int rank, size;
    bool spread;                 /* the ranks are on several hosts */
    size_t key_size, value_size; /* longest that the launcher takes, counting the NUL */
    char error[LAUNCHER_ERROR_SIZE];
};

/* launcher_join() connects to the launcher that the environment names, or to
 * nobody as the only rank. `l` is all zero. On failure l->ops is NULL and
 * l->error has the text. */
int launcher_join(struct launcher *l);

/* launcher_fail() writes the text of an error and returns `rc`. */
int launcher_fail(struct launcher *l, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* launcher_claim() takes this process's one connection to its launcher: -EBUSY
 * while a job has it, -EALREADY after one had. */
int launcher_claim(struct launcher *l);

/* launcher_release() gives it back: for good when it was `used`. */
void launcher_release(bool used);

/* launcher_number() parses a whole number of at least `min`; 0 or -1. */
int launcher_number(const char *text, int min, int *number);

#endif
