/* SPDX-License-Identifier: BSD-3-Clause */
/* The time that it takes on the host to start a handler: an empty payload handler, natively and as
 * its device code on an RV32 core, from the call's set-up to its result, on a context of its own.
 * The two take turns ROUNDS times; printed are the medians. */
#include "start_handlers.h"

#include "hpu/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ROUNDS = 9, CALLS = 200000 };

struct bench {
    struct hpu_pool *pool;
    struct hpu_exec exec;
    struct hpu_device_code code[3];
    _Alignas(64) uint8_t packet[64], state[64];
};

static double call_time(struct bench *b)
{
    const ptl_payload_t packet = {sizeof(b->packet), 0, b->packet};
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    for (int i = 0; i < CALLS; i++) {
        hpu_exec_payload(b->pool, &b->exec, start_empty, &packet);
        if (!hpu_exec_take(&b->exec) || hpu_exec_run(&b->exec) != SUCCESS) {
            fprintf(stderr, "start_bench: the handler did not succeed\n");
            exit(1);
        }
        hpu_exec_give(&b->exec);
    }
    clock_gettime(CLOCK_MONOTONIC, &to);
    return ((double)(to.tv_sec - from.tv_sec) * 1e9 + (double)(to.tv_nsec - from.tv_nsec)) / CALLS;
}

static int by_value(const void *a, const void *b)
{
    return *(const double *)a < *(const double *)b ? -1 : 1;
}

int main(void)
{
    static struct bench b;
    struct rv32_error error = {""};
    double native[ROUNDS], rv32[ROUNDS];
    struct hpu_device *t = hpu_device_create(65536, &rv32_timings[0], 1000000);
    b.pool = hpu_pool_create(1, 65536);
    if (b.pool == NULL || t == NULL) {
        fprintf(stderr, "start_bench: no memory\n");
        return 1;
    }
    if (hpu_device_find(t, (void (*)(void))start_empty, &b.code[HPU_CALL_PAYLOAD], &error) != 0) {
        fprintf(stderr, "start_bench: %s\n", error.text);
        return 1;
    }
    b.exec.env.state = b.state;
    b.exec.env.state_length = sizeof(b.state);
    for (int i = 0; i < ROUNDS; i++) {
        b.exec.env.code = NULL;
        native[i] = call_time(&b);
        b.exec.env.code = b.code;
        rv32[i] = call_time(&b);
    }
    qsort(native, ROUNDS, sizeof(native[0]), by_value);
    qsort(rv32, ROUNDS, sizeof(rv32[0]), by_value);
    printf("native  %.1f ns a call\nrv32    %.1f ns a call, %.1f more (target 80)\n",
           native[ROUNDS / 2], rv32[ROUNDS / 2], rv32[ROUNDS / 2] - native[ROUNDS / 2]);
    hpu_pool_destroy(b.pool);
    hpu_device_destroy(t);
    return 0;
}
