/* SPDX-License-Identifier: BSD-3-Clause */
/* Brings UCX up between the two ranks; see peer_ucx.h. */
#include <stdlib.h>
#include <string.h>

#include "peer_ucx.h"

/* The message by which a rank tells the other of its region. */
struct ticket {
    uint64_t address;
    uint64_t key_length;
    char key[1024];
};

int ucx_failed(const char *what, ucs_status_t status)
{
    return turn_fail("%s: %s", what, ucs_status_string(status));
}

static int open_worker(void)
{
    ucp_config_t *config;
    ucs_status_t status = ucp_config_read(NULL, NULL, &config);
    if (status != UCS_OK) {
        return ucx_failed("ucp_config_read", status);
    }
    ucp_params_t params = {.field_mask = UCP_PARAM_FIELD_FEATURES,
                           .features = UCP_FEATURE_TAG | UCP_FEATURE_AM | UCP_FEATURE_RMA};
    status = ucp_init(&params, config, &ucx.context);
    ucp_config_release(config);
    if (status != UCS_OK) {
        return ucx_failed("ucp_init", status);
    }
    ucp_worker_params_t worker = {.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
                                  .thread_mode = UCS_THREAD_MODE_SINGLE};
    status = ucp_worker_create(ucx.context, &worker, &ucx.worker);
    return status == UCS_OK ? 0 : ucx_failed("ucp_worker_create", status);
}

static int connect_ranks(void)
{
    ucp_address_t *mine;
    size_t length;
    static char theirs[TURN_EXCHANGE_MAX];
    ucs_status_t status = ucp_worker_get_address(ucx.worker, &mine, &length);
    if (status != UCS_OK) {
        return ucx_failed("ucp_worker_get_address", status);
    }
    long got = turn_exchange(mine, length, theirs, sizeof(theirs));
    ucp_worker_release_address(ucx.worker, mine);
    if (got < 0) {
        return -1;
    }
    ucp_ep_params_t params = {.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS,
                              .address = (const ucp_address_t *)theirs};
    status = ucp_ep_create(ucx.worker, &params, &ucx.endpoint);
    return status == UCS_OK ? 0 : ucx_failed("ucp_ep_create", status);
}

/* Registers slots.from, or lets UCX allocate. */
static int open_region(size_t allocate)
{
    ucp_mem_map_params_t map = {.field_mask = UCP_MEM_MAP_PARAM_FIELD_ADDRESS |
                                              UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                                              UCP_MEM_MAP_PARAM_FIELD_FLAGS,
                                .address = allocate > 0 ? NULL : ucx.slots.from,
                                .length = allocate > 0 ? allocate : SLOTS_SPACE,
                                .flags = allocate > 0 ? UCP_MEM_MAP_ALLOCATE : 0};
    ucs_status_t status = ucp_mem_map(ucx.context, &map, &ucx.exposed);
    if (status != UCS_OK) {
        return ucx_failed("ucp_mem_map", status);
    }
    ucp_mem_attr_t attr = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};
    status = ucp_mem_query(ucx.exposed, &attr);
    ucx.region = attr.address;
    return status == UCS_OK ? 0 : ucx_failed("ucp_mem_query", status);
}

static int swap_tickets(void)
{
    struct ticket mine = {.address = (uint64_t)(uintptr_t)ucx.region}, theirs;
    void *packed;
    size_t length;
    ucs_status_t status = ucp_rkey_pack(ucx.context, ucx.exposed, &packed, &length);
    if (status != UCS_OK) {
        return ucx_failed("ucp_rkey_pack", status);
    }
    if (length > sizeof(mine.key)) {
        ucp_rkey_buffer_release(packed);
        return turn_fail("a key of %zu bytes; there is room for %zu", length, sizeof(mine.key));
    }
    memcpy(mine.key, packed, length);
    mine.key_length = length;
    ucp_rkey_buffer_release(packed);
    if (turn_exchange(&mine, sizeof(mine), &theirs, sizeof(theirs)) < 0) {
        return -1;
    }
    ucx.remote = theirs.address;
    status = ucp_ep_rkey_unpack(ucx.endpoint, theirs.key, &ucx.key);
    return status == UCS_OK ? 0 : ucx_failed("ucp_ep_rkey_unpack", status);
}

int ucx_open(const struct ucx_way *way)
{
    if (slots_new(&ucx.slots) != 0 || open_worker() != 0 || connect_ranks() != 0 ||
        open_region(way->allocate) != 0 || swap_tickets() != 0) {
        return -1;
    }
    return way->open != NULL ? way->open() : 0;
}

/* Both ranks are here; an endpoint that is flushed as it closes needs the other. */
void ucx_close(void)
{
    ucp_request_param_t force = {.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
                                 .flags = UCP_EP_CLOSE_FLAG_FORCE};
    ucp_rkey_destroy(ucx.key);
    ucx_finish("ucp_ep_close_nbx", ucp_ep_close_nbx(ucx.endpoint, &force));
    ucp_mem_unmap(ucx.context, ucx.exposed);
    ucp_worker_destroy(ucx.worker);
    ucp_cleanup(ucx.context);
}
