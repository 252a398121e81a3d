/* SPDX-License-Identifier: BSD-3-Clause */
/* Portals 4, section 3.5: initialisation. */
#include "base/cancel.h"
#include "portals/api.h"

#include <inttypes.h>

int PtlInit(void)
{
    ERRNO_KEPT;
    int cancel = cancel_off();
    int rc = process_init();
    cancel_back(cancel);
    return rc;
}

void PtlFini(void)
{
    ERRNO_KEPT;
    int cancel = cancel_off();
    process_fini();
    cancel_back(cancel);
}

int PtlSetJobKey(const void *key, ptl_size_t length)
{
    struct process *p = process_current();
    if (p == NULL || p->users == 0) {
        return PTL_NO_INIT;
    }
    int rc = length != 0 && key == NULL ? PTL_ARG_INVALID : process_set_key(p, key, length);
    return rc == PTL_OK ? rc
           : key == NULL && length != 0
               ? api_refuse_null(__func__, "key", key)
               : api_refuse_call("PtlSetJobKey is refused: length %" PRIu64
                                 " is not %d to %d bytes (0: none)",
                                 (uint64_t)length, SLMP_KEY_MIN, SLMP_KEY_MAX);
}

void PtlAbort(void)
{
    struct process *p = process_current();
    if (p != NULL && p->users != 0) {
        process_abort(p);
    }
}
