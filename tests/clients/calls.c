/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A library to be preloaded: counts who calls which function of Portals, so that
 * a test can tell that Open MPI went through the plug-in it was meant to go
 * through. At the end of the process it appends to the file $PORTALS_CALLS a
 * line for each pair:
 *
 *   mca_mtl_portals4:PtlPut 1234
 *
 * Each function here stands before that of libportals.so, which it calls in
 * turn; this library is linked with libportals.so, so RTLD_NEXT finds it. Only
 * functions that tell something are here: those that move data, and some that
 * show that a rare path was taken.
 *
 * Callers are told apart by the file they were loaded from, which is asked for
 * at a place's first call: at the end plug-ins are gone.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <portals4.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SITES = 512, NAME = 96 };

/* A place in the code that calls. A slot belongs to who sets its address; `name`
 * is read only at the end of the process. */
struct site {
    _Atomic(void *) address;
    _Atomic unsigned long count;
    char name[NAME]; /* CALLER:FUNCTION */
};

static struct site sites[SITES];

static void name_site(struct site *site, void *address, const char *function)
{
    Dl_info info;
    const char *path = dladdr(address, &info) && info.dli_fname ? info.dli_fname : "unknown";
    const char *slash = strrchr(path, '/'), *file = slash ? slash + 1 : path;
    snprintf(site->name, sizeof(site->name), "%.*s:%s", (int)strcspn(file, "."), file, function);
}

static void count_call(void *address, const char *function)
{
    size_t at = (size_t)address % SITES;
    for (int i = 0; i < SITES; i++, at = (at + 1) % SITES) {
        struct site *site = &sites[at];
        void *there = atomic_load(&site->address);
        if (there == NULL && atomic_compare_exchange_strong(&site->address, &there, address)) {
            name_site(site, address, function);
            there = address;
        }
        if (there == address) {
            atomic_fetch_add(&site->count, 1);
            return;
        }
    }
}

static void *real_function(const char *function)
{
    void *found = dlsym(RTLD_NEXT, function);
    if (found == NULL) {
        fprintf(stderr, "calls: libportals.so has no %s\n", function);
        abort();
    }
    return found;
}

/* One line a pair, though several places of a plug-in may call the function. */
__attribute__((destructor)) static void report(void)
{
    const char *path = getenv("PORTALS_CALLS");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (file < 0)
        return;
    for (int i = 0; i < SITES; i++) {
        unsigned long sum = 0;
        bool first = sites[i].name[0] != '\0';
        for (int j = 0; j < SITES && first; j++)
            if (strcmp(sites[j].name, sites[i].name) == 0) {
                first = j >= i;
                sum += atomic_load(&sites[j].count);
            }
        char line[NAME + 32];
        int length = snprintf(line, sizeof(line), "%s %lu\n", sites[i].name, sum);
        if (first && write(file, line, (size_t)length) != length)
            fprintf(stderr, "calls: cannot write %s\n", path);
    }
    close(file);
}

/* A function of Portals, its parameters, and the same as arguments. The types
 * differ from one to the next, so this is a macro. */
#define WATCH(function, parameters, arguments)                                                     \
    int function parameters                                                                        \
    {                                                                                              \
        static int(*real) parameters;                                                              \
        if (real == NULL)                                                                          \
            real = (int(*) parameters)real_function(#function);                                    \
        count_call(__builtin_return_address(0), #function);                                        \
        return real arguments;                                                                     \
    }

WATCH(PtlPut,
      (ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack,
       ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_size_t remote,
       void *user, ptl_hdr_data_t data),
      (md, offset, length, ack, target, pt, bits, remote, user, data))

WATCH(PtlGet,
      (ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, ptl_process_t target,
       ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_size_t remote, void *user),
      (md, offset, length, target, pt, bits, remote, user))

WATCH(PtlAtomic,
      (ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack,
       ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_size_t remote,
       void *user, ptl_hdr_data_t data, ptl_op_t op, ptl_datatype_t type),
      (md, offset, length, ack, target, pt, bits, remote, user, data, op, type))

WATCH(PtlFetchAtomic,
      (ptl_handle_md_t get, ptl_size_t get_offset, ptl_handle_md_t put, ptl_size_t put_offset,
       ptl_size_t length, ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t bits,
       ptl_size_t remote, void *user, ptl_hdr_data_t data, ptl_op_t op, ptl_datatype_t type),
      (get, get_offset, put, put_offset, length, target, pt, bits, remote, user, data, op, type))

WATCH(PtlSwap,
      (ptl_handle_md_t get, ptl_size_t get_offset, ptl_handle_md_t put, ptl_size_t put_offset,
       ptl_size_t length, ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t bits,
       ptl_size_t remote, void *user, ptl_hdr_data_t data, const void *operand, ptl_op_t op,
       ptl_datatype_t type),
      (get, get_offset, put, put_offset, length, target, pt, bits, remote, user, data, operand, op,
       type))

WATCH(PtlTriggeredPut,
      (ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack,
       ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_size_t remote,
       void *user, ptl_hdr_data_t data, ptl_handle_ct_t trigger, ptl_size_t threshold),
      (md, offset, length, ack, target, pt, bits, remote, user, data, trigger, threshold))

WATCH(PtlTriggeredAtomic,
      (ptl_handle_md_t md, ptl_size_t offset, ptl_size_t length, ptl_ack_req_t ack,
       ptl_process_t target, ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_size_t remote,
       void *user, ptl_hdr_data_t data, ptl_op_t op, ptl_datatype_t type, ptl_handle_ct_t trigger,
       ptl_size_t threshold),
      (md, offset, length, ack, target, pt, bits, remote, user, data, op, type, trigger, threshold))

WATCH(PtlTriggeredCTInc,
      (ptl_handle_ct_t ct, ptl_ct_event_t increment, ptl_handle_ct_t trigger, ptl_size_t threshold),
      (ct, increment, trigger, threshold))

WATCH(PtlMESearch,
      (ptl_handle_ni_t ni, ptl_pt_index_t pt, const ptl_me_t *me, ptl_search_op_t op, void *user),
      (ni, pt, me, op, user))

WATCH(PtlPTEnable, (ptl_handle_ni_t ni, ptl_pt_index_t pt), (ni, pt))
