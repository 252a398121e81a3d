/* SPDX-License-Identifier: BSD-3-Clause */
/* The passes over a recording that make its schedule; see goal.h. */
#include "goal.h"

#include "sim/goal/print.h"

int mpi_balance(struct mpi_trace *t, const struct mpi_config *c, struct mpi_channels **channels,
                struct goal_error *error)
{
    struct goal_builder b = {0};
    /* What is said of blocks is true of all if it is of one; on a grid it is seen of each rank. */
    struct mpi_config once = *c;
    int rc = 0;
    once.blocks = 1;
    uint32_t ranks = mpi_ranks(t, &once);
    *channels = mpi_channels_make();
    if (*channels == NULL) {
        return goal_fail(error, "no memory");
    }
    for (uint32_t rank = 0; rank < ranks && rc == 0; rank++) {
        struct mpi_rank r;
        rc = mpi_load(t, mpi_recorded(t, &once, rank), &r, error);
        rc = rc == 0 ? mpi_make_rank(t, &once, &r, rank, &b, error) : rc;
        rc = rc == 0 ? mpi_count_rank(*channels, rank, &b, error) : rc;
        goal_builder_clear(&b);
        mpi_unload(&r);
    }
    goal_builder_free(&b);
    return rc == 0 && !c->partial ? mpi_channels_check(*channels, error) : rc;
}

struct output {
    struct goal_writer writer; /* binary; text uses the printer */
    struct goal_printer printer;
    bool text;
};

static int write_rank(struct output *o, uint32_t rank, struct goal_builder *b,
                      struct goal_error *error)
{
    struct goal_rank r;
    if (!o->text) {
        return goal_writer_rank(&o->writer, b, error);
    }
    if (goal_lay_out(b, &r) != 0 ||
        goal_print_rank(&o->printer, rank, &r, b->done.count + b->start.count) != 0) {
        return goal_fail(error, "rank %u does not fit memory", rank);
    }
    goal_builder_clear(b);
    return 0;
}

static int make(struct mpi_trace *t, const struct mpi_config *c, struct mpi_channels *channels,
                uint32_t rank, struct output *o, struct goal_builder *b, struct mpi_summary *s,
                struct goal_error *error)
{
    struct mpi_rank r;
    int rc = mpi_load(t, mpi_recorded(t, c, rank), &r, error);
    rc = rc == 0 ? mpi_make_rank(t, c, &r, rank, b, error) : rc;
    mpi_unload(&r);
    if (rc != 0) {
        return rc;
    }
    s->cut += c->partial ? mpi_cut_rank(channels, rank, b) : 0;
    s->operations += b->count;
    for (uint64_t i = 0; i < b->count; i++) {
        const struct goal_node *n = &b->nodes[i];
        s->gaps_ns += n->type == GOAL_CALC ? n->size : 0;
    }
    return write_rank(o, rank, b, error);
}

int mpi_schedule(struct mpi_trace *t, const struct mpi_config *c, struct mpi_channels *channels,
                 struct mpi_summary *s, int fd, struct goal_stream *text, struct goal_error *error)
{
    struct output o = {.text = text != NULL, .printer = {.out = text}};
    struct goal_builder b = {0};
    struct goal_error ignored;
    uint32_t ranks = mpi_ranks(t, c);
    if (o.text) {
        goal_print_head(&o.printer, ranks);
    } else if (goal_writer_open(&o.writer, fd, ranks, error) != 0) {
        return -1;
    }
    int rc = 0;
    for (uint32_t rank = 0; rank < ranks && rc == 0; rank++) {
        rc = make(t, c, channels, rank, &o, &b, s, error);
    }
    goal_builder_free(&b);
    if (o.text) {
        goal_printer_free(&o.printer);
        return rc;
    }
    return goal_writer_close(&o.writer, rc == 0 ? error : &ignored) != 0 ? -1 : rc;
}
