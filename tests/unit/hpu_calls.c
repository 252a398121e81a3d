/* SPDX-License-Identifier: BSD-3-Clause */
/* What handlers may call, and what ends them: DMA, atomics, puts. */
#include <errno.h>
#include <pthread.h>

#include "hpu_fixture.h"

/* ---- Host memory ---- */

static __handler int dma_round_trip(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    n->rc[0] = PtlHandlerDMAToHostB("hello", 10, 5, PTL_ME_HOST_MEM);
    n->rc[1] = PtlHandlerDMAFromHostB(10, n->bytes, 5, PTL_ME_HOST_MEM);
    ptl_dma_h a = PtlHandlerDMAToHostNB("world", 59, 5, PTL_HANDLER_HOST_MEM);
    ptl_dma_h b = PtlHandlerDMAFromHostNB(59, n->bytes + 5, 5, PTL_HANDLER_HOST_MEM);
    n->rc[2] = a != b;
    n->rc[3] = PtlHandlerDMATest(a);
    PtlHandlerDMAWait(b);
    /* Nothing at the very end is legal. */
    n->rc[4] = PtlHandlerDMAToHostB(NULL, 256, 0, PTL_ME_HOST_MEM);
    return SUCCESS;
}

static void dma_moves_bytes(void **state)
{
    (void)state;
    set_up();
    assert_int_equal(run(dma_round_trip), SUCCESS);
    assert_memory_equal(host + 10, "hello", 5);
    assert_memory_equal(host2 + 59, "world", 5);
    assert_memory_equal(notes->bytes, "helloworld", 10);
    assert_int_equal(notes->rc[0], PTL_OK);
    assert_int_equal(notes->rc[1], PTL_OK);
    assert_int_equal(notes->rc[2], 1);
    assert_int_equal(notes->rc[3], 1);
    assert_int_equal(notes->rc[4], PTL_OK);
    tear_down();
}

static __handler int dma_to(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    n->word++;
    PtlHandlerDMAToHostB(n->pointer, n->offset, n->length, n->options);
    n->word++;
    return SUCCESS;
}

static __handler int dma_from_nb(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    n->word++;
    PtlHandlerDMAFromHostNB(n->offset, n->pointer, n->length, n->options);
    n->word++;
    return SUCCESS;
}

static void assert_dma_ends(uint64_t offset, uint64_t length, unsigned options, void *local)
{
    static const ptl_payload_handler_t both[] = {dma_to, dma_from_nb};
    for (int i = 0; i < 2; i++) {
        notes->word = 0;
        notes->pointer = local;
        notes->offset = offset;
        notes->length = length;
        notes->options = options;
        assert_int_equal(run(both[i]), SEGV);
        assert_int_equal(notes->word, 1);
    }
}

static void dma_outside_its_range_is_segv(void **state)
{
    (void)state;
    set_up();
    assert_dma_ends(256, 1, PTL_ME_HOST_MEM, notes->bytes);
    assert_dma_ends(257, 0, PTL_ME_HOST_MEM, notes->bytes);
    assert_dma_ends(250, 7, PTL_ME_HOST_MEM, notes->bytes);
    assert_dma_ends(60, 5, PTL_HANDLER_HOST_MEM, notes->bytes);
    assert_dma_ends(UINT64_MAX, 2, PTL_ME_HOST_MEM, notes->bytes);
    assert_dma_ends(1, UINT64_MAX, PTL_ME_HOST_MEM, notes->bytes);
    assert_dma_ends(UINT64_MAX - 3, 8, PTL_HANDLER_HOST_MEM, notes->bytes);
    assert_dma_ends(0, 8, 0, notes->bytes);
    assert_dma_ends(0, 8, PTL_ME_HOST_MEM | PTL_HANDLER_HOST_MEM, notes->bytes);
    /* A bad address on the handler's side. */
    assert_dma_ends(0, 8, PTL_ME_HOST_MEM, NULL);
    assert_dma_ends(0, 8, PTL_ME_HOST_MEM, (uint8_t *)(notes + 1) + 64);
    assert_int_equal(run(good), SUCCESS);
    for (size_t i = 0; i < sizeof(host); i++) {
        assert_int_equal(host[i], 0);
    }
    tear_down();
}

/* Entries may span the whole address space; an offset is then an address. */
static void dma_to_what_is_not_there_is_segv(void **state)
{
    (void)state;
    static const uint64_t wild[] = {0, 0x1000, 0x0000800000000000, 0xffffffffffff0000};
    set_up();
    ptl_payload_t packet = {.base = host, .length = 8};
    for (size_t i = 0; i < sizeof(wild) / sizeof(wild[0]); i++) {
        struct hpu_exec exec = {.env = environment()};
        exec.env.me_base = NULL;
        exec.env.me_length = SIZE_MAX;
        notes->pointer = notes->bytes;
        notes->length = 8;
        notes->options = PTL_ME_HOST_MEM;
        notes->offset = wild[i];
        assert_int_equal(call_payload(&exec, dma_to, &packet), SEGV);
        assert_int_equal(call_payload(&exec, dma_from_nb, &packet), SEGV);
        notes->offset = (uintptr_t)host;
        notes->bytes[0] = (uint8_t)(i + 1);
        assert_int_equal(call_payload(&exec, dma_to, &packet), SUCCESS);
        assert_int_equal(host[0], i + 1);
        /* base + offset must not wrap round to something that is there. */
        exec.env.me_base = host + 1;
        notes->offset = UINT64_MAX;
        notes->length = 0;
        assert_int_equal(call_payload(&exec, dma_to, &packet), SEGV);
    }
    tear_down();
}

static __handler int host_atomics(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    uint64_t cmp = 1, before = 99;
    PtlHandlerDMACASB(8, &cmp, 5, PTL_ME_HOST_MEM);
    n->rc[0] = cmp == 0; /* failed, found 0 */
    PtlHandlerDMACASB(8, &cmp, 5, PTL_ME_HOST_MEM);
    PtlHandlerDMAWait(PtlHandlerDMAFetchAddNB(8, 3, &before, PTL_UINT64_T, PTL_ME_HOST_MEM));
    n->rc[1] = before == 5;
    PtlHandlerDMAFetchAddB(0, UINT64_MAX, NULL, PTL_INT8_T, PTL_ME_HOST_MEM);
    PtlHandlerDMAFetchAddB(0, 0, &before, PTL_INT8_T, PTL_ME_HOST_MEM);
    n->rc[2] = before == UINT64_MAX;
    PtlHandlerDMAFetchAddB(0, 0, &before, PTL_UINT8_T, PTL_ME_HOST_MEM);
    n->rc[3] = before == 255;
    PtlHandlerDMAFetchAddB(4, 0x80000000, &before, PTL_INT32_T, PTL_HANDLER_HOST_MEM);
    PtlHandlerDMAFetchAddB(4, 0, &before, PTL_INT32_T, PTL_HANDLER_HOST_MEM);
    n->rc[4] = before == 0xffffffff80000000;
    PtlHandlerDMAFetchAddB(4, 0, &before, PTL_UINT32_T, PTL_HANDLER_HOST_MEM);
    n->rc[5] = before == 0x80000000;
    cmp = 8;
    PtlHandlerDMAWait(PtlHandlerDMACASNB(8, &cmp, 1000, PTL_ME_HOST_MEM));
    PtlHandlerDMAFetchAddB(10, 1, &before, PTL_INT16_T, PTL_ME_HOST_MEM);
    n->rc[6] = before == 0;
    return SUCCESS;
}

static void host_atomics_work(void **state)
{
    (void)state;
    set_up();
    assert_int_equal(run(host_atomics), SUCCESS);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(notes->rc[i], 1);
    }
    uint64_t word;
    memcpy(&word, host + 8, 8);
    assert_int_equal(word, 1000 + 65536);
    tear_down();
}

static __handler int cas_misaligned(const ptl_payload_t p, void *state)
{
    uint64_t cmp = 0;
    PtlHandlerDMACASB(4, &cmp, 1, PTL_ME_HOST_MEM);
    return SUCCESS;
}

static __handler int cas_outside(const ptl_payload_t p, void *state)
{
    uint64_t cmp = 0;
    PtlHandlerDMACASB(256, &cmp, 1, PTL_ME_HOST_MEM);
    return SUCCESS;
}

static __handler int cas_null(const ptl_payload_t p, void *state)
{
    PtlHandlerDMACASB(0, NULL, 1, PTL_ME_HOST_MEM);
    return SUCCESS;
}

static __handler int add_misaligned(const ptl_payload_t p, void *state)
{
    PtlHandlerDMAFetchAddB(1, 1, NULL, PTL_INT16_T, PTL_ME_HOST_MEM);
    return SUCCESS;
}

static __handler int add_bad_before(const ptl_payload_t p, void *state)
{
    PtlHandlerDMAFetchAddB(0, 1, (uint64_t *)8, PTL_INT16_T, PTL_ME_HOST_MEM);
    return SUCCESS;
}

static __handler int add_float(const ptl_payload_t p, void *state)
{
    PtlHandlerDMAFetchAddB(0, 1, NULL, PTL_FLOAT, PTL_ME_HOST_MEM);
    return SUCCESS;
}

static __handler int wait_for_nothing(const ptl_payload_t p, void *state)
{
    ptl_dma_h handle = PtlHandlerDMAToHostNB(NULL, 0, 0, PTL_ME_HOST_MEM);
    PtlHandlerDMAWait(handle + 1);
    return SUCCESS;
}

static __handler int test_nothing(const ptl_payload_t p, void *state)
{
    return PtlHandlerDMATest(0) ? SUCCESS : DROP;
}

static void bad_atomics_and_handles_end_the_handler(void **state)
{
    (void)state;
    set_up();
    assert_int_equal(run(cas_misaligned), SEGV);
    assert_int_equal(run(cas_outside), SEGV);
    assert_int_equal(run(cas_null), SEGV);
    assert_int_equal(run(add_misaligned), SEGV);
    assert_int_equal(run(add_bad_before), SEGV);
    assert_int_equal(run(add_float), FAIL);
    assert_int_equal(run(wait_for_nothing), FAIL);
    assert_int_equal(run(test_nothing), FAIL);
    assert_int_equal(run(good), SUCCESS);
    tear_down();
}

/* ---- HPU memory ---- */

static __handler int count_in_parallel(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    uint64_t before, seen = 0;
    PtlHandlerFAdd(&n->word, &before, 2);
    while (!PtlHandlerCAS(&n->other, seen, seen + 1)) {
        seen = __atomic_load_n(&n->other, __ATOMIC_RELAXED);
    }
    return SUCCESS;
}

static void *run_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < 5000; i++) {
        if (run(count_in_parallel) != SUCCESS) {
            return arg;
        }
    }
    return NULL;
}

static void hpu_memory_is_shared_atomically(void **state)
{
    (void)state;
    pthread_t threads[3];
    set_up();
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, run_many, host), 0);
    }
    for (int i = 0; i < 3; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(notes->word, 30000);
    assert_int_equal(notes->other, 15000);
    tear_down();
}

static __handler int cas_on_odd_address(const ptl_payload_t p, void *state)
{
    return PtlHandlerCAS((uint64_t *)((uintptr_t)state + 1), 0, 1) ? SUCCESS : DROP;
}

static __handler int add_to_null(const ptl_payload_t p, void *state)
{
    return PtlHandlerFAdd(NULL, NULL, 1) == PTL_OK ? SUCCESS : DROP;
}

static void bad_hpu_memory_is_segv(void **state)
{
    (void)state;
    set_up();
    assert_int_equal(run(cas_on_odd_address), SEGV);
    assert_int_equal(run(add_to_null), SEGV);
    assert_int_equal(run(good), SUCCESS);
    tear_down();
}

/* ---- Messages ---- */

static __handler int put_device_ex(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    n->rc[0] = PtlHandlerPutFromDeviceEx(n->bytes, 4, PTL_NO_ACK_REQ, peer, 6, 11, 12, host, 13);
    return SUCCESS;
}

static __handler int put_host(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    n->rc[0] = PtlHandlerPutFromHost(n->offset, n->length, PTL_CT_ACK_REQ, peer, 11, 12, host, 13);
    return SUCCESS;
}

static __handler int put_host_ex(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    n->rc[0] = PtlHandlerPutFromHostEx(7, 9, PTL_OC_ACK_REQ, peer, 8, 11, 12, host, 13);
    return SUCCESS;
}

static void assert_put(int from_host, size_t length, ptl_ack_req_t ack, int pt_index)
{
    assert_ptr_equal(put_owner, host);
    assert_int_equal(last_put.from_host, from_host);
    assert_int_equal(last_put.length, length);
    assert_int_equal(last_put.ack, ack);
    assert_int_equal(last_put.target.phys.nid, 3);
    assert_int_equal(last_put.target.phys.pid, 4);
    assert_int_equal(last_put.pt_inherited, pt_index < 0);
    assert_true(pt_index < 0 || last_put.pt_index == (ptl_pt_index_t)pt_index);
    assert_int_equal(last_put.match_bits, 11);
    assert_int_equal(last_put.remote_offset, 12);
    assert_ptr_equal(last_put.user_ptr, host);
    assert_int_equal(last_put.hdr_data, 13);
}

static void puts_reach_the_nic(void **state)
{
    (void)state;
    set_up();
    notes->length = MAX_PAYLOAD;
    assert_int_equal(run(put_device), SUCCESS);
    assert_int_equal(notes->rc[0], PTL_OK);
    assert_put(0, MAX_PAYLOAD, PTL_ACK_REQ, -1);
    assert_ptr_equal(last_put.local, notes->bytes);
    assert_int_equal(run(put_device_ex), SUCCESS);
    assert_put(0, 4, PTL_NO_ACK_REQ, 6);
    notes->offset = 56;
    notes->length = 200;
    put_result = PTL_NO_SPACE;
    assert_int_equal(run(put_host), SUCCESS);
    assert_put(1, 200, PTL_CT_ACK_REQ, -1);
    assert_int_equal(last_put.host_offset, 56);
    assert_int_equal(notes->rc[0], PTL_NO_SPACE);
    assert_int_equal(run(put_host_ex), SUCCESS);
    assert_put(1, 9, PTL_OC_ACK_REQ, 8);
    assert_int_equal(last_put.host_offset, 7);
    tear_down();
}

static void bad_puts(void **state)
{
    (void)state;
    set_up();
    put_owner = NULL;
    notes->length = MAX_PAYLOAD + 1;
    assert_int_equal(run(put_device), SUCCESS);
    assert_int_equal(notes->rc[0], PTL_ARG_INVALID);
    notes->offset = 57;
    notes->length = 200;
    assert_int_equal(run(put_host), SEGV);
    notes->offset = UINT64_MAX;
    assert_int_equal(run(put_host), SEGV);
    assert_null(put_owner);
    notes->rc[1] = 0;
    notes->length = 1;
    put_result = -EFAULT;
    assert_int_equal(run(put_device), SEGV);
    assert_int_equal(notes->rc[1], 0);
    tear_down();
}

/* ---- The message ---- */

static __handler int ask(const ptl_payload_t p, void *state)
{
    struct notes *n = state;
    ptl_header_t h;
    n->rc[0] = PtlHandlerHeader(&h);
    n->word = h.hdr_data;
    return PtlHandlerMessageState() == fake_state ? SUCCESS : DROP;
}

static __handler int ask_into_nothing(const ptl_payload_t p, void *state)
{
    PtlHandlerHeader((ptl_header_t *)sizeof(ptl_header_t));
    return SUCCESS;
}

static void the_message_is_asked_about(void **state)
{
    (void)state;
    set_up();
    fake_about.hdr_data = 77;
    assert_int_equal(run(ask), SUCCESS);
    assert_int_equal(notes->rc[0], PTL_OK);
    assert_int_equal(notes->word, 77);
    assert_int_equal(run(ask_into_nothing), SEGV);
    assert_int_equal(run(good), SUCCESS);
    tear_down();
}

/* ---- Not in a handler ---- */

static void calls_outside_a_handler_do_nothing(void **state)
{
    (void)state;
    uint64_t word = 1, before = 0;
    ptl_header_t header;
    assert_int_equal(PtlHandlerDMAToHostB(&word, 0, 8, PTL_ME_HOST_MEM), PTL_FAIL);
    assert_int_equal(PtlHandlerDMAFromHostB(0, &word, 8, PTL_ME_HOST_MEM), PTL_FAIL);
    assert_int_equal(PtlHandlerDMAToHostNB(&word, 0, 8, PTL_ME_HOST_MEM), 0);
    assert_int_equal(PtlHandlerDMAFromHostNB(0, &word, 8, PTL_ME_HOST_MEM), 0);
    assert_int_equal(PtlHandlerDMACASB(0, &word, 8, PTL_ME_HOST_MEM), PTL_FAIL);
    assert_int_equal(PtlHandlerDMACASNB(0, &word, 8, PTL_ME_HOST_MEM), 0);
    assert_int_equal(PtlHandlerDMAFetchAddB(0, 1, &word, PTL_INT64_T, PTL_ME_HOST_MEM), PTL_FAIL);
    assert_int_equal(PtlHandlerDMAFetchAddNB(0, 1, &word, PTL_INT64_T, PTL_ME_HOST_MEM), 0);
    assert_false(PtlHandlerDMATest(1));
    PtlHandlerDMAWait(1);
    PtlHandlerYield();
    assert_int_equal(PTL_MY_HPU, 0);
    assert_int_equal(PtlHandlerHeader(&header), PTL_FAIL);
    assert_null(PtlHandlerMessageState());
    assert_int_equal(PtlHandlerPutFromDevice(&word, 8, PTL_ACK_REQ, peer, 0, 0, NULL, 0), PTL_FAIL);
    assert_int_equal(PtlHandlerPutFromDeviceEx(&word, 8, PTL_ACK_REQ, peer, 0, 0, 0, NULL, 0),
                     PTL_FAIL);
    assert_int_equal(PtlHandlerPutFromHost(0, 8, PTL_ACK_REQ, peer, 0, 0, NULL, 0), PTL_FAIL);
    assert_int_equal(PtlHandlerPutFromHostEx(0, 8, PTL_ACK_REQ, peer, 0, 0, 0, NULL, 0), PTL_FAIL);
    assert_int_equal(PtlHandlerFAdd(&word, &before, 2), PTL_OK);
    assert_true(PtlHandlerCAS(&word, 3, 4));
    assert_false(PtlHandlerCAS(&word, 3, 5));
    assert_int_equal(word, 4);
    assert_int_equal(before, 1);
    assert_int_equal(PtlHandlerFAdd((uint64_t *)((uintptr_t)&word + 1), NULL, 2), PTL_FAIL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dma_moves_bytes),
        cmocka_unit_test(dma_outside_its_range_is_segv),
        cmocka_unit_test(dma_to_what_is_not_there_is_segv),
        cmocka_unit_test(host_atomics_work),
        cmocka_unit_test(bad_atomics_and_handles_end_the_handler),
        cmocka_unit_test(hpu_memory_is_shared_atomically),
        cmocka_unit_test(bad_hpu_memory_is_segv),
        cmocka_unit_test(puts_reach_the_nic),
        cmocka_unit_test(bad_puts),
        cmocka_unit_test(the_message_is_asked_about),
        cmocka_unit_test(calls_outside_a_handler_do_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
