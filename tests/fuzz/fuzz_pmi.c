/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes the PMI-1 server with whatever ranks may send it. An input is lines;
 * a line that begins with "@" and a digit d turns to rank d (modulo the size of
 * the job), "@x" ends the current rank's connection, "@r" lets it read some of
 * its replies. Everything else goes to the server, in pieces of varying length.
 *
 * What must hold: replies are whole lines that begin with "cmd=" and stay within
 * their bound; a closed connection stays closed; a rank is in the barrier only
 * while another is not; an error is given exactly for connections that the
 * server closed.
 */
#include "fuzz.h"

#include "boot/pmi_server.h"

#include <stdlib.h>
#include <string.h>

enum { RANKS = 3 };

static void require(int holds)
{
    if (!holds) {
        abort();
    }
}

static void check_output(struct pmi_job *job, int rank, int *at_line_start)
{
    size_t length;
    const char *bytes = pmi_output(job, rank, &length);
    require(length <= PMI_OUTPUT_MAX);
    require(length == 0 || bytes[length - 1] == '\n');
    require(length < 4 || !*at_line_start || memcmp(bytes, "cmd=", 4) == 0);
}

static void check(struct pmi_job *job, int *at_line_start)
{
    int waiting = 0, gone, first, code;
    for (int r = 0; r < RANKS; r++) {
        check_output(job, r, &at_line_start[r]);
        waiting += pmi_state(job, r) == PMI_BARRIER;
        require(pmi_error(job, r) == NULL || pmi_state(job, r) == PMI_CLOSED);
    }
    require(waiting < RANKS);
    if (pmi_stuck(job, &gone, &first)) {
        require(waiting > 0 && pmi_state(job, gone) == PMI_CLOSED);
        require(pmi_state(job, first) == PMI_BARRIER);
    }
    if (pmi_aborted(job, &gone, &code)) {
        require(gone >= 0 && gone < RANKS && pmi_state(job, gone) == PMI_CLOSED);
    }
}

static void read_some(struct pmi_job *job, int rank, size_t wanted, int *at_line_start)
{
    size_t length;
    const char *bytes = pmi_output(job, rank, &length);
    size_t n = wanted < length ? wanted : length;
    if (n > 0) {
        at_line_start[rank] = bytes[n - 1] == '\n';
        pmi_output_sent(job, rank, n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pmi_job *job;
    int rank = 0, at_line_start[RANKS] = {1, 1, 1};
    if (pmi_job_create(&job, RANKS, "kvs", NULL) != 0) {
        return 0;
    }
    for (size_t at = 0; at < size;) {
        const uint8_t *newline = memchr(data + at, '\n', size - at);
        size_t n = newline != NULL ? (size_t)(newline - data) - at + 1 : size - at;
        if (data[at] == '@' && n > 1) {
            uint8_t what = data[at + 1];
            if (what == 'x') {
                pmi_rank_gone(job, rank);
            } else if (what == 'r') {
                read_some(job, rank, n * 7, at_line_start);
            } else {
                rank = what % RANKS;
            }
            at += n;
            continue;
        }
        enum pmi_state before = pmi_state(job, rank);
        size_t piece = 1 + (at * 31 + n) % 97;
        piece = piece < n ? piece : n;
        pmi_feed(job, rank, data + at, piece);
        require(before != PMI_CLOSED || pmi_state(job, rank) == PMI_CLOSED);
        check(job, at_line_start);
        at += piece;
    }
    pmi_job_free(job);
    return 0;
}
