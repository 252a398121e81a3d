/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.5: initialisation. */
#include "nic/nic.h"

int PtlInit(void)
{
    return process_init();
}

void PtlFini(void)
{
    process_fini();
}

void PtlAbort(void)
{
    struct process *p = process_current();
    if (p != NULL && p->users != 0) {
        process_abort(p);
    }
}
