/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is a user of `pinwheel raw serve`: served SOCKET IMAGE RULES. It says each error
 * with its number, and asks for its context again until it is ended by a signal.
 */
#include "pinwheel_raw.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static volatile sig_atomic_t stopped;

static void stop(int number)
{
    (void)number;
    stopped = 1;
}

static int complain(const struct pw_raw *raw, const char *what, int rc)
{
    fprintf(stderr, "served: %s: %d (%s): %s\n", what, rc, strerror(-rc), pw_raw_error(raw));
    return rc;
}

int main(int argc, char **argv)
{
    struct pw_raw *raw;
    if (argc != 4 || pw_raw_new(&raw) != 0) {
        return 2;
    }
    struct pw_raw_context context = {.image = argv[2], .share = 8};
    struct pw_raw_source source = {.serve = argv[1]};
    struct pw_raw_counts counts;
    struct sigaction action = {.sa_handler = stop};
    sigaction(SIGTERM, &action, NULL);
    int rc = pw_raw_again(raw);
    if (rc != -EINVAL) { /* there is nothing to open again */
        return 2;
    }
    rc = pw_raw_context(raw, &context);
    rc = rc == 0 ? pw_raw_rules(raw, argv[3]) : rc;
    rc = rc == 0 ? pw_raw_open(raw, &source) : rc;
    if (rc != 0) {
        complain(raw, "open", rc);
        return 1;
    }
    fprintf(stderr, "served: a queue of its own\n");
    while (!stopped) {
        rc = pw_raw_turn(raw);
        rc = rc == 0 ? pw_raw_wait(raw, 100) : rc;
        if (rc < 0) {
            complain(raw, "turn", rc);
            while (!stopped && (rc = pw_raw_again(raw)) != 0) {
                (void)poll(NULL, 0, 50);
            }
            fprintf(stderr, "served: a queue of its own\n");
        }
    }
    if (pw_raw_counts(raw, 0, &counts) == 0) {
        printf("answered %llu\n", (unsigned long long)counts.answered);
    }
    pw_raw_close(raw);
    return 0;
}
