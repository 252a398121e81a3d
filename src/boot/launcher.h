/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests of one rank to the launcher that started it, whatever protocol that speaks.
 *
 *     job.c ──► struct launcher ──┬── pmi_client.c   PMI-1 over PMI_FD: `pinwheel run`, Hydra
 *               (ops, rank, size) ├── pmix.c         PMIx: Open MPI's mpirun, prterun, Slurm
 *                                 └── pmi_client.c   nobody: a PMI-1 server inside, one rank
 *
 * launcher_join() looks at the environment and connects. If a variable names a launcher, the
 * process must reach it: a failed connection is an error, and never makes a job of one rank,
 * because N processes that each take themselves for the whole job could not notice it.
 *
 * A process can join its launcher once in its life; launcher_claim() and launcher_release() see to
 * that for both protocols. Functions return 0 or a negative errno value and leave a line of text in
 * `error`.
 */
#ifndef BOOT_LAUNCHER_H
#define BOOT_LAUNCHER_H

#include <stdbool.h>
#include <stddef.h>

enum {
    LAUNCHER_ERROR_SIZE = 512,
    /* longest value, with its NUL; Hydra's lines are shorter than 2 KiB */
    LAUNCHER_VALUE_SIZE = 4096,
};

struct launcher;

struct launcher_ops {
    /* put() publishes a pair, which the other ranks can get after the next barrier. The caller has
     * checked that key and value are within `key_size` and `value_size` and have only characters
     * that every protocol can carry. -EEXIST: the launcher has the key already. */
    int (*put)(struct launcher *l, const char *key, const char *value);
    /* get() copies the value of `key` into value[LAUNCHER_VALUE_SIZE]. -ENOENT: no rank has put the
     * key. */
    int (*get)(struct launcher *l, const char *key, char *value);
    /* barrier() returns when all ranks have entered it. */
    int (*barrier)(struct launcher *l);
    /* abort() asks the launcher to end all ranks, and to exit with the status `code`. */
    int (*abort)(struct launcher *l, int code);
    /* leave() tells the launcher that this rank leaves the job. Only close() may follow. */
    int (*leave)(struct launcher *l);
    /* close() frees `state` and ends the connection; it may be called after any failure. */
    void (*close)(struct launcher *l);
};

struct launcher {
    const struct launcher_ops *ops; /* NULL: not joined */
    void *state;                    /* the protocol's own */
    int rank, size;
    bool spread; /* the ranks are on several hosts */
    /* longest key and value that the launcher takes, with their NULs */
    size_t key_size, value_size;
    char error[LAUNCHER_ERROR_SIZE];
};

/* launcher_join() connects to the launcher that the environment names, or makes a job of this one
 * rank if it names none. `l` is zeroed by the caller. On failure l->ops is NULL and l->error has
 * the text. */
int launcher_join(struct launcher *l);

/* launcher_fail() writes the text of an error and returns `rc`. */
int launcher_fail(struct launcher *l, int rc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* launcher_claim() reserves the one connection of this process to its launcher. -EBUSY: another job
 * has it now; -EALREADY: a job has had it and has left. */
int launcher_claim(struct launcher *l);

/* launcher_release() ends the reservation. If the connection was `used` it cannot be claimed
 * again. */
void launcher_release(bool used);

/* launcher_number() reads a whole number of at least `min`. Returns 0, or -1 if the text is
 * none. */
int launcher_number(const char *text, int min, int *number);

#endif
