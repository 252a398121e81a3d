/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes a NIC that errs, when it is preloaded: DEMO_SPOIL=count loses one of the
 * handlers' additions, DEMO_SPOIL=byte changes one byte of what handlers send
 * now and then. Whoever checks results must notice.
 */
#include "spin_handler.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef int put_function(const void *, ptl_size_t, ptl_ack_req_t, ptl_process_t, ptl_match_bits_t,
                         ptl_size_t, void *, ptl_hdr_data_t);

static bool spoil_count, spoil_byte;
static put_function *real_put;
static atomic_uint additions, puts;

static void __attribute__((constructor)) prepare(void)
{
    const char *what = getenv("DEMO_SPOIL");
    spoil_count = what != NULL && strcmp(what, "count") == 0;
    spoil_byte = what != NULL && strcmp(what, "byte") == 0;
    *(void **)&real_put = dlsym(RTLD_NEXT, "PtlHandlerPutFromDevice");
}

int PtlHandlerFAdd(uint64_t *value, uint64_t *before, uint64_t inc)
{
    bool lost = spoil_count && atomic_fetch_add(&additions, 1) == 10;
    uint64_t found = __atomic_fetch_add(value, lost ? 0 : inc, __ATOMIC_SEQ_CST);
    if (before != NULL) {
        *before = found;
    }
    return PTL_OK;
}

int PtlHandlerPutFromDevice(const void *local, ptl_size_t length, ptl_ack_req_t ack_req,
                            ptl_process_t target_id, ptl_match_bits_t match_bits,
                            ptl_size_t remote_offset, void *user_ptr, ptl_hdr_data_t hdr_data)
{
    if (spoil_byte && length > 0 && atomic_fetch_add(&puts, 1) % 50 == 49) {
        ((uint8_t *)(uintptr_t)local)[length / 2] ^= 1; /* a packet is the handler's to change */
    }
    return real_put(local, length, ack_req, target_id, match_bits, remote_offset, user_ptr,
                    hdr_data);
}
