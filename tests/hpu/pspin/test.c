/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Handlers that speak PsPIN's conventions, against what they took on PsPIN itself
 * (golden/pspin_handlers.csv), and what the conventions refuse. Usage: hpu_pspin IMAGE
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "machine.h"

enum { HEADERS = 32, IP_FROM = 12, IP_TO = 16, FROM_PORT = 20, TO_PORT = 22, UDP_LENGTH = 24 };

static struct pspin machine;

/* IPv4 and UDP headers, a word, and a payload of which each byte differs from its neighbours. */
static void make_packet(struct pspin *m, uint32_t size)
{
    for (uint32_t i = 0; i < size; i++) {
        m->packet[i] = (uint8_t)(i * 37 + 11);
    }
    m->packet[0] = 0x45;
    m->packet[UDP_LENGTH] = (uint8_t)((size - 20) >> 8);
    m->packet[UDP_LENGTH + 1] = (uint8_t)(size - 20);
    m->packet_size = size;
}

static struct pspin_outcome serve(const char *handler, uint32_t size)
{
    make_packet(&machine, size);
    struct pspin_outcome o = pspin_serve(&machine, handler);
    struct rv32_error text;
    rv32_result_text(o.result, &machine.image, NULL, &text);
    if (o.result->end != RV32_RETURNED) {
        print_message("%s: %s\n", handler, text.text);
    }
    return o;
}

/* ---- Cycles ---- */

struct row {
    char handler[32];
    unsigned bytes, cold, latency;
    double warm;
};

static bool read_row(struct row *r, const char *line)
{
    return sscanf(line, "%*[^,],%u,%31[^,],%*u,%u,%*u,%lf,%*f,%*f,%*f,%*f,%*f,%*f,%*u,%u",
                  &r->bytes, r->handler, &r->cold, &r->warm, &r->latency) == 5;
}

static bool near(double value, double measured)
{
    return fabs(value - measured) <= fmax(0.1 * measured, 2);
}

static void test_cycles(void **state)
{
    char line[256];
    int rows = 0, wrong = 0;
    FILE *f = fopen(GOLDEN "/pspin_handlers.csv", "r");
    assert_non_null(f);
    assert_non_null(fgets(line, sizeof(line), f));
    while (fgets(line, sizeof(line), f) != NULL) {
        struct row r;
        assert_true(read_row(&r, line));
        struct pspin_outcome o = serve(r.handler, r.bytes);
        assert_int_equal(o.result->end, RV32_RETURNED);
        bool empty = strcmp(r.handler, "empty_ph") == 0;
        bool fits = near((double)o.handler, r.warm) && near((double)o.latency, r.latency) &&
                    (!empty || o.latency == 30 + 2 * ((r.bytes + 63) / 64));
        print_message("%-17s %5u bytes: %4llu cycles, measured %6.1f; latency %4llu, measured "
                      "%4u%s\n",
                      r.handler, r.bytes, (unsigned long long)o.handler, r.warm,
                      (unsigned long long)o.latency, r.latency, fits ? "" : ": TOO FAR");
        wrong += !fits;
        rows++;
    }
    fclose(f);
    assert_int_equal(rows, 20);
    assert_int_equal(wrong, 0);
}

static const char *image_path;

/* The first packet of all, with nothing in the instruction cache. The histogram's code is longer
 * than the measured one's: it looks at the length that the header claims. */
static void test_first_packet(void **state)
{
    static const struct {
        const char *handler;
        unsigned measured, off;
    } rows[] = {{"empty_ph", 22, 0},
                {"copy_to_host_ph", 60, 0},
                {"pingpong_ph", 88, 3},
                {"histogram_l1_ph", 138, 19}};
    static struct pspin cold;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(pspin_open(&cold, image_path, RV32_CACHE));
        make_packet(&cold, 64);
        struct pspin_outcome o = pspin_serve(&cold, rows[i].handler);
        print_message("%-17s cold: %3llu cycles, measured %u\n", rows[i].handler,
                      (unsigned long long)o.handler, rows[i].measured);
        assert_int_equal(o.result->end, RV32_RETURNED);
        assert_in_range(o.handler, rows[i].measured - rows[i].off, rows[i].measured + rows[i].off);
        pspin_close(&cold);
    }
}

/* PsPIN's copy_from_host, which swaps headers, fetches, waits and sends, took 61 + B cycles. As
 * compiled here it takes two less, the two by which ping-pong, which swaps and sends, is less. */
static void test_wait(void **state)
{
    static const struct {
        uint32_t bytes, cycles;
    } measured[] = {{64, 62}, {256, 65}, {1024, 77}};
    for (size_t i = 0; i < sizeof(measured) / sizeof(measured[0]); i++) {
        uint32_t bytes = measured[i].bytes;
        struct pspin_outcome o = serve("copy_from_host_ph", bytes);
        print_message("copy_from_host %4u bytes: %llu cycles, measured %u\n", bytes,
                      (unsigned long long)o.handler, measured[i].cycles);
        assert_in_range(o.handler, measured[i].cycles - 2, measured[i].cycles + 2);
        assert_int_equal(o.result->end, RV32_RETURNED);
        /* The send that comes last is fed back 2 + B behind the doorbell. */
        assert_int_equal(o.latency, 20 + 2 * (bytes / 64) + o.handler + 3 + 2 + bytes / 64);
    }
    struct pspin_outcome o = serve("write_to_host_ph", 64);
    assert_int_equal(o.latency, 20 + 2 + o.handler + 3 + 4);
}

/* ---- What they do ---- */

static void test_pingpong(void **state)
{
    uint8_t expected[PSPIN_PACKET_MAX];
    machine.sent_count = 0;
    make_packet(&machine, 256);
    memcpy(expected, machine.packet, 256);
    memcpy(expected + IP_FROM, machine.packet + IP_TO, 4);
    memcpy(expected + IP_TO, machine.packet + IP_FROM, 4);
    memcpy(expected + FROM_PORT, machine.packet + TO_PORT, 2);
    memcpy(expected + TO_PORT, machine.packet + FROM_PORT, 2);
    assert_int_equal(pspin_serve(&machine, "pingpong_ph").result->end, RV32_RETURNED);
    assert_int_equal(machine.sent_count, 1);
    assert_int_equal(machine.sent_size, 256);
    assert_memory_equal(machine.sent, expected, 256);
}

static void test_host(void **state)
{
    memset(machine.host, 0, sizeof(machine.host));
    serve("copy_to_host_ph", 512);
    assert_memory_equal(machine.host, machine.packet, 512);
    assert_int_equal(machine.host[512], 0);
    memset(machine.host, 0x5a, 512);
    serve("fetch_ph", 512);
    assert_memory_equal(machine.host, machine.packet, 512);
    machine.sent_count = 0;
    serve("copy_from_host_ph", 512);
    assert_int_equal(machine.sent_count, 1);
    assert_memory_equal(machine.sent, machine.host, 512);
    static const uint8_t value[] = {0xef, 0xcd, 0xab, 0x89, 0x67, 0x45, 0x23, 0x01, 0x5a};
    serve("write_to_host_ph", 64);
    assert_memory_equal(machine.host, value, sizeof(value));
}

static void test_histogram(void **state)
{
    uint32_t bins[256] = {0};
    memset(machine.scratchpad, 0, sizeof(machine.scratchpad));
    serve("histogram_l1_ph", 1024);
    for (uint32_t at = HEADERS; at < 1024; at += 4) {
        uint32_t word;
        memcpy(&word, machine.packet + at, 4);
        bins[word >> 2 & 255]++;
    }
    assert_memory_equal(machine.scratchpad, bins, sizeof(bins));
    /* A header that claims more than came. */
    memset(machine.scratchpad, 0, sizeof(machine.scratchpad));
    memset(bins, 0, sizeof(bins));
    make_packet(&machine, 128);
    machine.packet[UDP_LENGTH] = 4;
    assert_int_equal(pspin_serve(&machine, "histogram_l1_ph").result->end, RV32_RETURNED);
    assert_memory_equal(machine.scratchpad, bins, sizeof(bins));
}

/* Four commands begin at once, two wait for them: 21 cycles each from the issue. */
static void test_many(void **state)
{
    memset(machine.host, 0, sizeof(machine.host));
    struct pspin_outcome o = serve("many_commands_ph", 64);
    assert_int_equal(o.result->end, RV32_RETURNED);
    for (int i = 0; i < 6; i++) {
        assert_memory_equal(machine.host + 64 * i, machine.packet, 64);
    }
    assert_in_range(o.latency, 22 + 2 * 21, 22 + 150);
}

/* ---- What is refused ---- */

static void refused(const char *handler, enum rv32_end end, uint32_t address)
{
    make_packet(&machine, 64);
    struct pspin_outcome o = pspin_serve(&machine, handler);
    assert_int_equal(o.result->end, end);
    assert_int_equal(o.result->address, address);
    const struct rv32_symbol *s = rv32_image_function(&machine.image, o.result->pc);
    assert_non_null(s);
    assert_string_equal(s->name, handler);
}

static void test_refused(void **state)
{
    /* A byte more than the packet has; sent is nothing. */
    machine.sent_count = 0;
    refused("send_too_much_ph", RV32_FAULT_LOAD, PSPIN_DRIVER + 0x80);
    assert_int_equal(machine.sent_count, 0);
    /* Registers are words. */
    refused("byte_of_window_ph", RV32_FAULT_LOAD, PSPIN_DRIVER + 0x10);
    refused("wrong_register_ph", RV32_FAULT_STORE, PSPIN_DRIVER + 0x58);
    refused("atomic_register_ph", RV32_FAULT_ATOMIC, PSPIN_DRIVER + 0x90);
}

int main(int argc, char **argv)
{
    if (argc != 2 || !pspin_open(&machine, argv[1], RV32_WARM)) {
        fprintf(stderr, "usage: hpu_pspin IMAGE\n");
        return 2;
    }
    image_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cycles), cmocka_unit_test(test_first_packet),
        cmocka_unit_test(test_wait),   cmocka_unit_test(test_pingpong),
        cmocka_unit_test(test_host),   cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_many),   cmocka_unit_test(test_refused)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    pspin_close(&machine);
    return failed;
}
