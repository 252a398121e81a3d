/* SPDX-License-Identifier: BSD-3-Clause */
/* `pinwheel goal run --nic`: the machine that each rank is; see run.h. */
#include "run.h"

#include "machine.h"

#include <inttypes.h>
#include <string.h>

int goal_nic_take(struct args *a, void *nic)
{
    struct goal_nic *n = nic;
    char error[512];
    n->name = a->value;
    return goal_machine_find(a->value, &n->machine, error, sizeof(error)) == 0
               ? ARGS_GO_ON
               : args_error(a, "--nic %s", error);
}

/* An option that was given and has no meaning with simulated NICs, or NULL. */
static const char *meaningless(const struct args *a)
{
    static const char *const none[] = {"-L",
                                       "-o",
                                       "-g",
                                       "-G",
                                       "-O",
                                       "-S",
                                       "--parameters",
                                       "--model",
                                       "--threads",
                                       "--sweep",
                                       "--critical-path",
                                       "--trace",
                                       "--timeline",
                                       "--queues",
                                       "--noise",
                                       "--packet"};
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        if (args_given(a, none[i])) {
            return none[i];
        }
    }
    return NULL;
}

int goal_nic_check(struct goal_run *r)
{
    char error[NET_ERROR];
    if (r->nic.name == NULL) {
        return args_given(&r->args, "--matching") || args_given(&r->args, "--eager") ||
                       r->nic.rendezvous
                   ? args_error(&r->args,
                                "--matching, --eager and --rendezvous are about simulated "
                                "NICs: --nic is missing")
                   : 0;
    }
    r->nic.machine.copies = r->nic.copies;
    r->nic.machine.eager = r->nic.eager;
    r->nic.machine.rendezvous = r->nic.rendezvous;
    const char *option = meaningless(&r->args);
    if (option != NULL) {
        return args_error(&r->args,
                          "%s has no meaning with --nic: the machine has the parameters, and what "
                          "it does is not recorded",
                          option);
    }
    if (r->net.text == NULL) {
        r->net.text = "fattree:radix=36";
        if (net_spec_parse(&r->net.spec, r->net.text, error) != 0) {
            return args_error(&r->args, "--network %s", error);
        }
    }
    return 0;
}

int goal_nic_open(const struct goal_run *r)
{
    char error[256];
    if (r->nic.name == NULL && r->goal.portals != 0) {
        fprintf(stderr,
                "pinwheel goal run: %s: it has %" PRIu64 " operations of Portals, which need "
                "simulated NICs: --nic discrete\n",
                r->file, r->goal.portals);
        return 1;
    }
    if (r->nic.name != NULL && sim_nic_check(&r->goal, error, sizeof(error)) != 0) {
        fprintf(stderr, "pinwheel goal run: %s: %s\n", r->file, error);
        return 1;
    }
    return 0;
}
