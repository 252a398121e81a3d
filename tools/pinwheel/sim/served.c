/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is told of the ends of ranks, and whether there is a PMIx server; see served.h. */
#include "served.h"

#include "pinwheel/util/program.h"
#include "pmix.h"

#include <limits.h>
#include <stdio.h>

static void tell_exit(void *served, int rank, bool well)
{
    struct served *s = served;
    coordinator_exited(s->coordinator, rank);
    if (s->pmix != NULL) {
        sim_pmix_exited(s->pmix, rank, well, coordinator_killed(s->coordinator, rank));
    }
}

static int ask_pmix(void *served, char *why, size_t size)
{
    struct served *s = served;
    return s->pmix != NULL ? sim_pmix_verdict(s->pmix, why, size) : -1;
}

/* Whether the program is linked with an MPI that finds its ranks by PMIx. */
static bool needs_pmix(const char *program)
{
    static const char *const libraries[] = {"libmpi.so.40", "libpmix.so.2"};
    char path[PATH_MAX];
    return program_find(program, path, sizeof(path)) && program_needs(path, libraries, 2) >= 0;
}

static void tell_start(void *served, int rank, int pid)
{
    const struct served *s = served;
    coordinator_started(s->coordinator, rank, pid);
}

static int take_pipes(void *served, int rank, int out, int err)
{
    const struct served *s = served;
    return coordinator_piped(s->coordinator, rank, out, err);
}

static bool was_killed(void *served, int rank)
{
    const struct served *s = served;
    return coordinator_killed(s->coordinator, rank);
}

bool served_begin(struct served *s, struct launch *launch, bool wanted)
{
    *s = (struct served){.pmix = NULL};
    launch->rank_environment = NULL;
    if (!wanted && !needs_pmix(launch->argv[0])) {
        return true;
    }
    s->pmix = sim_pmix_start(launch->size);
    launch->rank_environment = s->pmix != NULL ? sim_pmix_environment(s->pmix) : NULL;
    return s->pmix != NULL;
}

void served_tell(struct served *s, struct launch *launch, struct coordinator *c, bool direct)
{
    s->coordinator = c;
    launch->piped = direct ? NULL : take_pipes;
    launch->started = tell_start;
    launch->exited = tell_exit;
    launch->excused = was_killed;
    launch->verdict = ask_pmix;
    launch->context = s;
}

void served_end(struct served *s, bool nics)
{
    if (s->pmix == NULL) {
        return;
    }
    if (sim_pmix_used(s->pmix) && !nics) {
        fprintf(stderr,
                "pinwheel sim: no rank has opened a simulated NIC: the MPI's messages went another "
                "way, in real time; Open MPI takes its components for Portals by OMPI_MCA_pml=cm "
                "OMPI_MCA_mtl=portals4\n");
    }
    sim_pmix_end(s->pmix);
}
