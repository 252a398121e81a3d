/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules: what their text matches, its errors, and that the reference and the instructions agree. */
#include "raw/rules/interpret.h"
#include "raw/rules/prove.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct raw_rules rules, again;
static char error[RAW_ERROR];

static void parse(const char *text)
{
    if (raw_rules_parse(&rules, "test", text, strlen(text), error) != 0) {
        fail_msg("%s", error);
    }
}

/* A frame from hexadecimal digits; blanks are skipped. */
static size_t bytes_of(const char *hex, uint8_t *frame)
{
    size_t length = 0;
    while (*hex != '\0') {
        unsigned byte;
        if (*hex == ' ') {
            hex++;
            continue;
        }
        assert_int_equal(sscanf(hex, "%2x", &byte), 1);
        frame[length++] = (uint8_t)byte;
        hex += 2;
    }
    return length;
}

#define MACS "0a0b0c0d0e0f 020304050607 "
#define IP4(proto, ihl, fragment)                                                                  \
    "0800 4" ihl "00 0020 0001 " fragment " 40 " proto " 0000 0a000001 0a090807 "
#define IP6(next)                                                                                  \
    "86dd 60000000 0010 " next                                                                     \
    " 40 fe800000000000000000000000000001 fe800000000000000000000000000002 "
#define UDP "1234 0007 000c 0000 01020304"

static const struct {
    const char *what, *text, *frame;
    bool matches;
} cases[] = {
    {"an echo request", "icmp.type = echo", MACS IP4("01", "5", "0000") "0800 0000 0001 0001",
     true},
    {"an echo reply", "icmp.type = echo", MACS IP4("01", "5", "0000") "0000 0000 0001 0001", false},
    {"options behind the IP header", "icmp.type = echo",
     MACS IP4("01", "6", "0000") "01010101 0800 0000 0001 0001", false},
    {"a header length that lies", "icmp", MACS IP4("01", "4", "0000") "0800 0000", false},
    {"the first fragment", "udp.dport = 7", MACS IP4("11", "5", "2000") UDP, false},
    {"a later fragment", "udp.dport = 7", MACS IP4("11", "5", "0010") UDP, false},
    {"do not fragment", "udp.dport = 7", MACS IP4("11", "5", "4000") UDP, true},
    {"any IPv4", "ipv4", MACS IP4("01", "6", "0010") "01010101", true},
    {"an address in a network", "ip.src = 10.0.0.0/8", MACS IP4("11", "5", "0000") UDP, true},
    {"an address outside it", "ip.src = 10.0.1.0/24", MACS IP4("11", "5", "0000") UDP, false},
    {"a range", "udp.dport = 6..8", MACS IP4("11", "5", "0000") UDP, true},
    {"beside a range", "udp.dport = 8..65535", MACS IP4("11", "5", "0000") UDP, false},
    {"alternatives", "udp.dport = 9 or udp.dport = 7", MACS IP4("11", "5", "0000") UDP, true},
    {"no alternative", "udp.dport = 9 or udp.sport = 7", MACS IP4("11", "5", "0000") UDP, false},
    {"a MAC address", "eth.src = 02:03:04:05:06:07", MACS "88b5", true},
    {"another one", "eth.src = 02:03:04:05:06:08", MACS "88b5", false},
    {"14 bytes", "eth.type = 0x88b5", MACS "88b5", true},
    {"13 bytes", "eth.type = 0x88b5", MACS "88", false},
    {"a frame that ends in its ports", "udp.dport = 7", MACS IP4("11", "5", "0000") "1234 00",
     false},
    {"untagged rules, tagged frame", "udp", MACS "8100 0005 " IP4("11", "5", "0000") UDP, false},
    {"a tagged frame", "vlan 5\nudp.dport = 7", MACS "8100 2005 " IP4("11", "5", "0000") UDP, true},
    {"another VLAN", "vlan 6\nudp.dport = 7", MACS "8100 2005 " IP4("11", "5", "0000") UDP, false},
    {"QinQ", "qinq 9\nudp.dport = 7", MACS "88a8 0001 8100 0009 " IP4("11", "5", "0000") UDP, true},
    {"QinQ under a VLAN's rules", "vlan\nudp.dport = 7",
     MACS "88a8 0001 8100 0009 " IP4("11", "5", "0000") UDP, false},
    {"IPv6", "udp6.dport = 7", MACS IP6("11") UDP, true},
    {"IPv6 with an extension header", "udp6.dport = 7", MACS IP6("00") UDP, false},
    {"an IPv6 network", "ip6.src = fe80::/10", MACS IP6("3a") "80", true},
    {"a word", "word 3 mask 0xffff0000 = 0x88b50000", MACS "88b5 0000", true},
    {"a little-endian word", "word 3 little mask 0xffff = 0xb588", MACS "88b5 0000", true},
    {"masked bits", "ip.ttl & 0xf0 = 0x40", MACS IP4("11", "5", "0000"), true},
    {"everything", "all", MACS "0000", true},
};

static void each_case(void **state)
{
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t frame[200];
        char text[200];
        size_t length = bytes_of(cases[i].frame, frame);
        snprintf(text, sizeof(text), "set s {\n%s\n}", cases[i].text);
        parse(text);
        if (raw_match(&rules, frame, length) != (cases[i].matches ? 1 : RAW_NONE)) {
            fail_msg("%s", cases[i].what);
        }
    }
}

/* Each error names the line and what is wrong. */
static void each_error(void **state)
{
    static const struct {
        const char *text, *error;
    } wrong[] = {
        {"", "test:1: there is no set"},
        {"set", "test:1: the name of a set is missing"},
        {"set a {\n}", "test:2: set a has no condition"},
        {"set a {\n udq.dport = 1\n}", "did you mean udp.dport?"},
        {"set a {\n udp.dport = 65536\n}", "test:2: udp.dport 65536 is above 65535"},
        {"set a {\n udp.dport = 9..8\n}", "test:2: the range 9..8 is empty"},
        {"set a {\n udp.dport & 0xf0 = 1\n}", "never true"},
        {"set a {\n udp.dport = 1 2\n}", "or, the end of the line or } is expected, not \"2\""},
        {"set a {\n udp.dport = 1 or tcp.dport = 1\n}", "one protocol"},
        {"set a {\n udp or tcp\n}", "has no alternatives"},
        {"set a {\n eth.src = 1\n}", "aa:bb:cc:dd:ee:ff"},
        {"set a {\n ip.src = 10.0.0.0/33\n}", "10.0.0.0/8"},
        {"set a {\n udp\n vlan\n}", "test:3: the tags stand first"},
        {"set a {\n word 64 = 1\n}", "the number of a word 64 is above 63"},
        {"set a {\n udp\n end tcp.flags = 1\n}", "write a line \"tcp\""},
        {"set a {\n udp\n message slmp.id\n}", "write a line \"slmp\""},
        {"set a {\n udp\n message udp.sport\n}", "not where it ends"},
        {"set a { all }\nset a { all }", "test:2: set a is on line 1 already"},
        {"set a priority 70000 { all }", "above 65535"},
        {"set a { all", "missing at the end of the text"},
        {"set a { all } \x01", "character 0x01"},
        {"set aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa { all }", "more than 31 letters"},
        {"set a pass context b { all }", "set a has a context"},
        {"set a drop {\n udp\n end udp.length = 9\n}", "set a passes or drops frames"},
        {"set a {\n ip.header = 16\n}", "ip.header 16 is above 15"},
    };
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        const char *text = wrong[i].text;
        assert_int_equal(raw_rules_parse(&rules, "test", text, strlen(text), error), -1);
        if (strstr(error, wrong[i].error) == NULL) {
            fail_msg("%s: %s", text, error);
        }
    }
}

static void too_many_sets(void **state)
{
    enum { TEXT = 4096 };
    char text[TEXT] = "";
    for (int i = 0; i <= RAW_SETS; i++) {
        snprintf(text + strlen(text), TEXT - strlen(text), "set s%d { all }\n", i);
    }
    assert_int_equal(raw_rules_parse(&rules, "test", text, strlen(text), error), -1);
    assert_non_null(strstr(error, "test:65: there are more than 64 sets"));
}

/* The lowest priority wins, then the place in the text. */
static void priorities(void **state)
{
    uint8_t frame[14] = {0};
    parse("set c priority 2 { all }\nset a { eth.type = 1 }\nset b { all }\nset d { all }");
    assert_string_equal(rules.set[raw_match(&rules, frame, 14) >> 1].name, "b");
    frame[13] = 1;
    assert_string_equal(rules.set[raw_match(&rules, frame, 14) >> 1].name, "a");
}

/* Frames of a message carry its id, and the last one its end. */
static void messages(void **state)
{
    uint8_t frame[200];
    size_t length = bytes_of(MACS IP4("11", "5", "0000") "1234 2472 0020 0000 "
                                                         "4000 0a0b0c0d 00000010",
                             frame);
    assert_int_equal(raw_rules_load(&rules, "slmp", error), 0);
    assert_int_equal(raw_match(&rules, frame, length), raw_verdict(0, false));
    frame[42] |= 0x80;
    assert_int_equal(raw_match(&rules, frame, length), raw_verdict(0, true));
    assert_int_equal(rules.set[0].ids, 3);
    assert_int_equal(raw_word_of(&rules.set[0].id[2], frame, length), 0x0a0b0c0d);
    assert_int_equal(raw_word_of(&rules.set[0].id[2], frame, 46), 0x0a0b0000);
}

/* What raw_rules_print() writes is read as the same table. */
static void printed(void **state)
{
    enum { TEXT = 1 << 16 };
    static char text[TEXT];
    struct raw_dice d = {.key = 3};
    for (int i = 0; i < 200; i++) {
        raw_random_table(&d, &rules, 10);
        size_t length = raw_rules_print(&rules, text, TEXT);
        assert_true(length < TEXT);
        assert_int_equal(raw_rules_parse(&again, "test", text, length, error), 0);
        assert_int_equal(again.count, rules.count);
        for (unsigned s = 0; s < rules.count; s++) {
            again.set[s].line = rules.set[s].line;
            struct raw_set *a = &again.set[s], *b = &rules.set[s];
            assert_memory_equal(a->name, b->name, RAW_NAME);
            assert_int_equal(a->action, b->action);
            assert_int_equal(a->count, b->count);
            assert_int_equal(a->ends, b->ends);
            for (unsigned c = 0; c < a->count; c++) {
                assert_int_equal(a->clause[c].count, b->clause[c].count);
                for (unsigned k = 0; k < a->clause[c].count; k++) {
                    struct raw_rule *x = &a->clause[c].rule[k], *y = &b->clause[c].rule[k];
                    assert_true(x->offset == y->offset && x->little == y->little &&
                                x->mask == y->mask && x->start == y->start && x->end == y->end);
                }
            }
        }
    }
}

static void agree(void **state)
{
    struct raw_dice d = {.key = 1};
    struct raw_proof p = {.counts = true};
    struct raw_code_maps maps = {.contexts = 1};
    for (int table = 0; table < 400; table++) {
        struct raw_code code;
        raw_random_table(&d, &rules, 8);
        assert_int_equal(raw_code_make(&code, &rules, &maps), 0);
        if (raw_prove(&p, &rules, &code, &d, 100) != 0) {
            fail_msg("table %d: %s", table, p.difference);
        }
        raw_code_free(&code);
    }
    /* the frames are worth something: many match, many do not, some end a message and some not */
    assert_in_range(p.matched, p.frames / 10, p.frames * 9 / 10);
    assert_in_range(p.ended, p.matched / 10, p.matched * 9 / 10);
}

/* A comparison that the compiler got wrong is found: each with another number. */
static void wrong_code_is_found(void **state)
{
    struct raw_code code;
    struct raw_code_maps maps = {.counters = -1, .contexts = 1};
    unsigned found = 0, tried = 0;
    parse("set s { udp.dport = 5..9 or udp.sport = 7\n ip.src = 10.0.0.0/8\n"
          "end udp.length & 1 = 1 }");
    assert_int_equal(raw_code_make(&code, &rules, &maps), 0);
    for (size_t i = 0; i < code.count; i++) {
        struct bpf_insn good = code.insn[i];
        if (BPF_CLASS(good.code) != BPF_JMP32) {
            continue;
        }
        struct raw_dice d = {.key = i};
        struct raw_proof p = {0};
        code.insn[i].imm += 0x10000; /* the lowest bit of a port */
        found += raw_prove(&p, &rules, &code, &d, 20000) == 1;
        tried++;
        code.insn[i] = good;
    }
    raw_code_free(&code);
    assert_true(tried >= 8);
    assert_int_equal(found, tried);
}

/* Each instruction replaced by garbage ends the interpreter, or the frame's way does not meet it.
 */
static void interpreter_is_strict(void **state)
{
    static const struct bpf_insn bad[] = {
        {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 1, .src_reg = 7, .off = 100},
        {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 1, .src_reg = 7, .off = -4},
        {.code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = 1, .src_reg = 10, .off = -8},
        {.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = 1, .src_reg = 8},
        {.code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = 7, .src_reg = 9},
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 0, .src_reg = 5},
        {.code = BPF_ALU64 | BPF_MUL | BPF_X, .dst_reg = 7, .src_reg = 7},
        {.code = BPF_JMP | BPF_JA, .off = -2},
        {.code = BPF_JMP | BPF_CALL, .imm = 6},
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 12},
        {.code = 0xff},
    };
    uint8_t frame[60] = {0};
    struct raw_code code;
    struct raw_code_maps maps = {.counters = -1, .contexts = 1};
    parse("set s { all }");
    assert_int_equal(raw_code_make(&code, &rules, &maps), 0);
    struct raw_interpreted run = {.frame = frame, .length = sizeof(frame), .sockets = 1};
    assert_int_equal(raw_interpret(&code, &run), 0);
    assert_int_equal(run.action, XDP_REDIRECT);
    struct bpf_insn good = code.insn[3];
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        code.insn[3] = bad[i];
        if (raw_interpret(&code, &run) != RAW_BROKEN || run.broken != 3) {
            fail_msg("%zu", i);
        }
    }
    code.insn[3] = good;
    size_t whole = code.count;
    code.count = 4; /* no exit */
    assert_int_equal(raw_interpret(&code, &run), RAW_BROKEN);
    code.count = whole;
    raw_code_free(&code);
}

/* Sets that pass and drop are carried out where the rules are executed, and count bytes. */
static void actions(void **state)
{
    uint8_t frame[60] = {0};
    static struct raw_counter counters[RAW_COUNTERS];
    static const uint16_t counter[] = {7, RAW_COUNTERS - 1, 0};
    static const int wanted[] = {XDP_PASS, XDP_DROP, XDP_REDIRECT};
    struct raw_code code;
    struct raw_code_maps maps = {.sockets = 5, .counters = 6, .contexts = 1, .counter = counter};
    parse("set a pass { eth.type = 1 }\nset b drop { eth.type = 2 }\nset c { eth.type = 3 }");
    assert_int_equal(raw_code_make(&code, &rules, &maps), 0);
    for (int i = 0; i < 3; i++) {
        frame[13] = (uint8_t)(i + 1);
        struct raw_interpreted run = {
            .frame = frame, .length = 20 + (size_t)i, .sockets = 1, .counters = counters};
        assert_int_equal(raw_interpret(&code, &run), 0);
        assert_int_equal(run.action, wanted[i]);
        assert_int_equal(run.verdict, i == 2 ? raw_verdict(2, true) : RAW_NONE);
        assert_true(counters[counter[i]].frames == 1 && counters[counter[i]].bytes == 20u + i);
    }
    raw_code_free(&code);
}

/* Sockets by queue and context, counters, and what happens where one is missing. */
static void where_frames_go(void **state)
{
    uint8_t frame[60] = {0};
    static struct raw_counter counters[RAW_COUNTERS];
    uint8_t contexts[] = {2, 0};
    struct raw_code code;
    struct raw_code_maps maps = {.sockets = 5, .counters = 6, .contexts = 3, .context = contexts};
    parse("set a { eth.type = 1 }\nset b { all }");
    assert_int_equal(raw_code_make(&code, &rules, &maps), 0);
    struct raw_interpreted run = {.frame = frame,
                                  .length = sizeof(frame),
                                  .queue = 4,
                                  .sockets = UINT64_C(1) << 12,
                                  .counters = counters};
    assert_int_equal(raw_interpret(&code, &run), 0);
    assert_true(run.action == XDP_REDIRECT && run.socket == 12 && run.verdict == 3);
    frame[13] = 1;
    assert_int_equal(raw_interpret(&code, &run), 0);
    assert_true(run.action == XDP_PASS && run.socket == 14 && run.verdict == 1);
    assert_true(counters[0].frames == 1 && counters[1].frames == 1);
    run.no_meta = true; /* nobody could tell the set: the kernel keeps the frame */
    assert_int_equal(raw_interpret(&code, &run), 0);
    assert_true(run.action == XDP_PASS && run.verdict == RAW_NONE);
    raw_code_free(&code);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case),
        cmocka_unit_test(each_error),
        cmocka_unit_test(too_many_sets),
        cmocka_unit_test(priorities),
        cmocka_unit_test(messages),
        cmocka_unit_test(printed),
        cmocka_unit_test(agree),
        cmocka_unit_test(wrong_code_is_found),
        cmocka_unit_test(interpreter_is_strict),
        cmocka_unit_test(actions),
        cmocka_unit_test(where_frames_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
