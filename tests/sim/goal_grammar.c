/* SPDX-License-Identifier: BSD-3-Clause */
/* GOAL text: what is legal and what it means, and what each error says. */
#include "goal_try.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

/* Compiles the lines as the one rank of a schedule and opens it; the rank's
 * memory stays until the next call. */
static struct goal_rank rank_of(const char *lines, unsigned flags)
{
    static struct bytes bin;
    static struct goal g;
    struct goal_error error;
    char text[4096];
    free(bin.at);
    int n = snprintf(text, sizeof(text), "num_ranks 1\nrank 0 {\n%s}\n", lines);
    if (try_compile(text, (size_t)n, flags, &bin, &error) != 0) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(goal_open_image(&g, bin.at, bin.length, "t.bin", &error), 0);
    return goal_rank(&g, 0);
}

static void check_node(const struct goal_node *n, enum goal_type type, uint64_t size, uint32_t peer,
                       uint32_t tag, uint8_t cpu, uint8_t nic)
{
    assert_int_equal(n->type, type);
    assert_int_equal(n->size, size);
    assert_int_equal(n->peer, peer);
    assert_int_equal(n->tag, tag);
    assert_int_equal(n->cpu, cpu);
    assert_int_equal(n->nic, nic);
}

static void attributes_have_defaults_and_one_order(void **state)
{
    struct goal_rank r = rank_of("send 10b to 0\n"
                                 "recv 11b from 0 tag 7\n"
                                 "send 12b to 0 cpu 1\n"
                                 "send 13b to 0 nic 2\n"
                                 "recv 14b from 0 tag 7 cpu 3 nic 4\n"
                                 "calc 15 cpu 5\n",
                                 0);
    assert_int_equal(r.node_count, 6);
    check_node(&r.nodes[0], GOAL_SEND, 10, 0, 0, 0, 0);
    check_node(&r.nodes[1], GOAL_RECV, 11, 0, 7, 0, 0);
    check_node(&r.nodes[2], GOAL_SEND, 12, 0, 0, 1, 0);
    check_node(&r.nodes[3], GOAL_SEND, 13, 0, 0, 0, 2);
    check_node(&r.nodes[4], GOAL_RECV, 14, 0, 7, 3, 4);
    check_node(&r.nodes[5], GOAL_CALC, 15, 0, 0, 5, 0);
}

static void blanks_are_optional(void **state)
{
    struct goal_rank r = rank_of("a:send 1bto0tag2cpu3nic4\n"
                                 "\t b : calc5cpu6 \t\n"
                                 "recv\t7 b  from  -1  tag\t-1\n"
                                 "b requiresa\n",
                                 0);
    check_node(&r.nodes[0], GOAL_SEND, 1, 0, 2, 3, 4);
    check_node(&r.nodes[1], GOAL_CALC, 5, 0, 0, 6, 0);
    check_node(&r.nodes[2], GOAL_RECV, 7, GOAL_ANY, GOAL_ANY, 0, 0);
    assert_int_equal(r.nodes[1].depends, 1);
}

static void comments_and_empty_lines_stand_where_lines_begin(void **state)
{
    rank_of("// one\n/* two\n lines */\n\n \t\r\n/**/ calc 1\n/***/// x\n", 0);
    struct bytes bin;
    struct goal_error error;
    const char text[] = "\n/* a */ // b\nnum_ranks 1 // c\n\n/**/rank 0{calc 1\n}\n// d";
    assert_int_equal(try_compile(text, sizeof(text) - 1, 0, &bin, &error), 0);
    free(bin.at);
}

static void numbers_reach_their_limits(void **state)
{
    struct goal_rank r = rank_of("send 18446744073709551615b to 0 tag 4294967295 cpu 255 nic 255\n"
                                 "calc 00000000000000000000000000007\n"
                                 "calc 0\n",
                                 0);
    check_node(&r.nodes[0], GOAL_SEND, UINT64_MAX, 0, GOAL_ANY, 255, 255);
    check_node(&r.nodes[1], GOAL_CALC, 7, 0, 0, 0, 0);
    check_node(&r.nodes[2], GOAL_CALC, 0, 0, 0, 0, 0);
}

static void lists_keep_the_order_of_lines(void **state)
{
    struct goal_rank r = rank_of("a: calc 1\nb: calc 2\nc: calc 3\n"
                                 "c requires a\nb irequires a\nb requires a\nc requires a\n"
                                 "c irequires b\nb requires c\n",
                                 0);
    const struct goal_node *a = &r.nodes[0], *b = &r.nodes[1], *c = &r.nodes[2];
    assert_int_equal(a->done_count, 3); /* c, b, c: the repeated line counts */
    assert_int_equal(goal_done(&r, a)[0], 2);
    assert_int_equal(goal_done(&r, a)[1], 1);
    assert_int_equal(goal_done(&r, a)[2], 2);
    assert_int_equal(a->start_count, 1);
    assert_int_equal(goal_start(&r, a)[0], 1);
    assert_int_equal(a->start_first, a->done_first + 3);
    assert_int_equal(b->start_count, 1);
    assert_int_equal(c->done_count, 1);
    assert_int_equal(c->depends, 3);
    assert_int_equal(b->depends, 3);
    assert_int_equal(r.root_count, 1);
}

static void compat_keeps_the_first_label(void **state)
{
    struct goal_rank r = rank_of("a: calc 1\na: calc 2\nb: calc 3\nb requires a\n", GOAL_COMPAT);
    assert_int_equal(r.nodes[0].done_count, 1);
    assert_int_equal(r.nodes[1].done_count, 0);
}

static void words_of_operations_may_be_labels_of_others(void **state)
{
    struct goal_rank r =
        rank_of("test: calc 1\nput: calc 2\nput requires test\nto: calc 3\nb: calc 4\n", 0);
    assert_int_equal(r.nodes[1].depends, 1);
}

static void many_labels_are_found(void **state)
{
    enum { LABELS = 5000 };
    char *text = malloc(LABELS * 64);
    int n = sprintf(text, "num_ranks 2\nrank 0 {\n");
    for (int i = 0; i < LABELS; i++) {
        n += sprintf(text + n, "label_%d: calc %d\n", i, i);
    }
    for (int i = LABELS - 1; i > 0; i--) {
        n += sprintf(text + n, "label_%d requires label_%d\n", i, i / 2);
    }
    n += sprintf(text + n, "}\nrank 1 {\nlabel_9: calc 1\n}\n");
    struct bytes bin;
    struct goal_error error;
    struct goal g;
    assert_int_equal(try_compile(text, (size_t)n, 0, &bin, &error), 0);
    assert_int_equal(goal_open_image(&g, bin.at, bin.length, "t.bin", &error), 0);
    struct goal_rank r = goal_rank(&g, 0);
    for (int i = 1; i < LABELS; i++) {
        const struct goal_node *on = &r.nodes[i / 2];
        bool found = false;
        for (uint32_t k = 0; k < on->done_count; k++) {
            found |= goal_done(&r, on)[k] == (uint32_t)i;
        }
        assert_true(found);
    }
    assert_int_equal(g.nodes, LABELS + 1);
    assert_int_equal(g.successors, LABELS - 1);
    free(bin.at);
    free(text);
}

/* ---- Errors ---- */

struct mistake {
    const char *text;
    const char *where; /* "line:column: " */
    const char *says;
};

static void check_mistake(const struct mistake *m)
{
    struct bytes bin;
    struct goal_error error = {""};
    char begins[64];
    snprintf(begins, sizeof(begins), "t.goal:%s: ", m->where);
    if (try_compile(m->text, strlen(m->text), 0, &bin, &error) == 0) {
        fail_msg("accepted: %s", m->text);
    }
    if (strncmp(error.text, begins, strlen(begins)) != 0 || strstr(error.text, m->says) == NULL) {
        fail_msg("%s\ngave: %s\nbut should say %s%s", m->text, error.text, begins, m->says);
    }
}

#define RANK "num_ranks 2\nrank 0 {\n"

static void mistakes_are_named(void **state)
{
    static const struct mistake mistakes[] = {
        /* the file */
        {"", "1:1", "expected \"num_ranks\", found the end of the file"},
        {"ranks 2\n", "1:1", "expected \"num_ranks\", found \"ranks\""},
        {"num_ranks x\n", "1:11", "expected a number of ranks, found \"x\""},
        {"num_ranks 0\n", "1:11", "at least one rank"},
        {"num_ranks 4294967295\n", "1:11", "too large for a number of ranks: at most 4294967294"},
        {"num_ranks 2\nrank 0 {\n}\n", "4:1", "expected \"rank 1\" (num_ranks is 2)"},
        {"num_ranks 2\nrank 1 {\n}\n", "2:6", "expected rank 0, found rank 1"},
        {"num_ranks 3\nrank 0 {\n}\nrank 0 {\n}\n", "4:6", "expected rank 1, found rank 0"},
        {"num_ranks 1\nrank 0 {\n}\nrank 1 {\n}\n", "4:1", "the end of the file after rank 0"},
        {"num_ranks 1\nrank 0\n{\n}\n", "2:7", "expected \"{\", found the end of the line"},
        {"num_ranks 1\nrank 0 {\ncalc 1\n", "4:1", "or \"}\" at the end of rank 0, found the end"},
        {"num_ranks 1\nrank 0 {\n/* x\n}\n", "3:1", "never ends"},
        {"num_ranks 1\nrank 0 {\n/ x\n}\n", "3:1", "expected \"//\" or \"/*\""},
        {RANK "calc 1\nrank 1 {\n}\n", "4:1", "expected \"}\" at the end of rank 0"},
        /* operations */
        {RANK "send 5b too 1\n}\n", "3:9", "expected \"to\", found \"too\""},
        {RANK "send 5b from 1\n}\n", "3:9", "expected \"to\", found \"from\""},
        {RANK "recv 5b to 1\n}\n", "3:9", "expected \"from\", found \"to\""},
        {RANK "send 5 to 1\n}\n", "3:8", "expected \"b\", found \"to\""},
        {RANK "send b to 1\n}\n", "3:6", "expected a number of bytes, found \"b\""},
        {RANK "send 5b to 2\n}\n", "3:12", "rank 2 does not exist: ranks are 0 to 1"},
        {RANK "send 5b to -1\n}\n", "3:12", "expected a rank, found \"-\""},
        {RANK "recv 5b from 4294967295\n}\n", "3:14", "rank 4294967295 does not exist"},
        {RANK "calc -5\n}\n", "3:6", "expected a time, found \"-\""},
        {RANK "calc 18446744073709551616\n}\n", "3:6",
         "too large for a time: at most 1844674407370"},
        {RANK "calc 99999999999999999999999999\n}\n", "3:6", "too large for a time"},
        {RANK "send 5b to 1 tag 4294967296\n}\n", "3:18",
         "too large for a tag: at most 4294967295"},
        {RANK "send 5b to 1 cpu 256\n}\n", "3:18", "256 is too large for cpu: at most 255"},
        {RANK "send 5b to 1 nic 256\n}\n", "3:18", "256 is too large for nic: at most 255"},
        {RANK "send 5b to 1 nic 1 cpu 1\n}\n", "3:20", "\"nic\" (in that order)"},
        {RANK "send 5b to 1 cpu 1 tag 1\n}\n", "3:20", "\"nic\" (in that order)"},
        {RANK "calc 5 nic 1\n}\n", "3:8", "expected \"cpu\" or the end of the line"},
        {RANK "calc 5 // x\n}\n", "3:8", "expected \"cpu\" or the end of the line, found \"/\""},
        {RANK "calc 5 }\n", "3:8", "found \"}\""},
        {RANK "a: calk 5\n}\n", "3:4",
         "expected \"send\", \"recv\", \"calc\" or an operation of Portals, found \"calk\""},
        {RANK "calk 5\n}\n", "3:6", "expected \":\", \"requires\" or \"irequires\""},
        {RANK "5: calc 5\n}\n", "3:1", "an operation, a dependency, or \"}\""},
        {RANK "\x01\n}\n", "3:1", "found byte 0x01"},
        /* labels */
        {RANK "a: calc 1\nb: calc 2\na: calc 3\n}\n", "5:1",
         "label \"a\" of rank 0 stands at line 3 already"},
        {RANK "a: calc 1\na requires b\n}\n", "4:12", "rank 0 has no label \"b\" above"},
        {RANK "a: calc 1\nb requires a\nb: calc 1\n}\n", "4:1", "rank 0 has no label \"b\" above"},
        {RANK "a: calc 1\n}\nrank 1 {\nb: calc 1\nb requires a\n}\n", "7:12",
         "rank 1 has no label \"a\""},
        {RANK "a: calc 1\na requires\n}\n", "4:11", "expected a label"},
        {RANK "a: calc 1\na requires a b\n}\n", "4:14", "expected the end of the line"},
        {RANK "send: calc 1\n}\n", "3:5", "expected a number of bytes"},
        {RANK "rank: calc 1\n}\n", "3:1", "\"rank\" cannot be a label"},
        /* operations of Portals */
        {RANK "tappend 1b overflow_list allowed 1 when ct 1 reaches 2\n}\n", "3:1", "\"tappend\""},
        {RANK "calcgem5 1 64b\n}\n", "3:1", "\"calcgem5\""},
        {RANK "append 5b to overflow_list allowed 1\n}\n", "3:14", "no overflow list"},
        {RANK "put 5b arg1 3 to 1\n}\n", "3:8", "without memory or arguments"},
        {RANK "append 5b hh 0 ph 1 allowed 1\n}\n", "3:16", "no number of LogGOPSim's"},
        {RANK "append 5b ph 1ns hh 1ns allowed 1\n}\n", "3:18", "in the order hh, ph, ch"},
        {RANK "append 5b ph 1ns ph 1ns allowed 1\n}\n", "3:18", "each once"},
        {RANK "append 5b ph 1ns+1c/4b allowed 1\n}\n", "3:18", "do not add up"},
        {RANK "append 5b ph 1ns+1ns/0b allowed 1\n}\n", "3:22", "1 to 4294967295 bytes"},
        {RANK "append 5b ph 1ns put 0b to 1 allowed 1\n}\n", "3:22", "at least 1 byte"},
        {RANK "append 5b hh 1ns put to 1 allowed 1\n}\n", "3:22", "expected a number of bytes"},
        {RANK "append 5b ph 1ns put to 9 allowed 1\n}\n", "3:25", "rank 9 does not exist"},
        {RANK "append 5b\n}\n", "3:10", "expected \"allowed\""},
        {RANK "put 5b at 1\n}\n", "3:8", "found \"at\""},
        {RANK "put 5b to 2\n}\n", "3:11", "rank 2 does not exist"},
        {RANK "put 5b to 1 tag -1\n}\n", "3:17", "expected a tag"},
        {RANK "put 5b to 1 to 1\n}\n", "3:13", "stands here twice"},
        {RANK "put 5b to 1 when 1 reaches 2\n}\n", "3:13", "found \"when\""},
        {RANK "put 5b tag 1\n}\n", "3:13", "expected \"to\""},
        {RANK "swap 5b tag 1\n}\n", "3:14", "expected \"with\""},
        {RANK "tput 5b to 1\n}\n", "3:13", "expected \"when\""},
        {RANK "test 1\n}\n", "3:7", "expected \"for\""},
        {RANK "test 1 for x\n}\n", "3:12", "expected what a counter reaches"},
        {RANK "count 1 by\n}\n", "3:11", "expected an increment"},
        {RANK "get 5 from 1\n}\n", "3:7", "expected \"b\""},
    };
    for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++) {
        check_mistake(&mistakes[i]);
    }
}

/* Operations of Portals in all their parts, and as `goal show` prints them. */
static void operations_of_portals_are_printed_back(void **state)
{
    static const char text[] =
        "num_ranks 2\nrank 0 {\n"
        "a: append 64b to priority_list hh 10ns ph 40c+1c/4b put to 1 as 7 write put 5b to self "
        "count 3 by 1 ch 250ps hostput 64b to 1 allowed -1 use_once tag -1 ct 1\n"
        "tput 7b to self tag 3 when ct 2 reaches 1 ct 4\n"
        "b: test 1 for 2\nb requires a\ntcount 3 by 4 when 2 reaches 9\n"
        "}\nrank 1 {\nget 8b from 0\ncas 8b tag 2 with 0\n}\n";
    static const char printed[] =
        "num_ranks 2\n\nrank 0 {\n"
        "l1: append 64b priority_list allowed -1 tag -1 hh 10ns ph 40c+1c/4b put to 1 as 7 write "
        "put "
        "5b to 0 as 0 count 3 by 1 ch 250ps hostput 64b to 1 as 0 ct 1 use_once\n"
        "l12: tput 7b to 0 tag 3 when 2 reaches 1 ct 4\n"
        "l15: test 1 for 2\nl15 requires l1\n"
        "l16: tcount 3 by 4 when 2 reaches 9\n}\n\nrank 1 {\n"
        "l1: get 8b from 0 tag 0\nl2: cas 8b with 0 tag 2\n}\n";
    struct bytes bin, again;
    struct goal_error error;
    struct goal g;
    assert_int_equal(try_compile(text, sizeof(text) - 1, 0, &bin, &error), 0);
    assert_int_equal(goal_open_image(&g, bin.at, bin.length, "t", &error), 0);
    assert_int_equal(g.portals, 6);
    assert_int_equal(g.parts, 13);
    struct goal_rank r = goal_rank(&g, 0);
    assert_int_equal(r.root_count, 3);
    assert_int_equal(goal_part_count(&r, 0), 10);
    goal_close(&g);
    struct bytes shown = try_print(&bin);
    assert_int_equal(shown.length, sizeof(printed) - 1);
    assert_memory_equal(shown.at, printed, shown.length);
    assert_int_equal(try_compile((char *)shown.at, shown.length, 0, &again, &error), 0);
    assert_int_equal(again.length, bin.length);
    assert_memory_equal(again.at, bin.at, bin.length);
    free(bin.at);
    free(again.at);
    free(shown.at);
}

static void the_line_is_shown_with_a_caret(void **state)
{
    struct bytes bin;
    struct goal_error error;
    const char text[] = RANK "\ta: send 5b\tto 9\r\n}\n";
    assert_int_equal(try_compile(text, sizeof(text) - 1, 0, &bin, &error), -1);
    assert_string_equal(error.text, "t.goal:3:16: rank 9 does not exist: ranks are 0 to 1\n"
                                    "    \ta: send 5b\tto 9\n"
                                    "    \t          \t   ^");
}

static void long_lines_are_shown_in_part(void **state)
{
    struct bytes bin;
    struct goal_error error;
    char text[2000];
    int n = sprintf(text, RANK "%1500s: calc x\n}\n", "a");
    assert_int_equal(try_compile(text, (size_t)n, 0, &bin, &error), -1);
    assert_non_null(strstr(error.text, "t.goal:3:1508: expected a time"));
    assert_true(strlen(error.text) < 300);
    assert_non_null(strstr(error.text, "a: calc x\n"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attributes_have_defaults_and_one_order),
        cmocka_unit_test(blanks_are_optional),
        cmocka_unit_test(comments_and_empty_lines_stand_where_lines_begin),
        cmocka_unit_test(numbers_reach_their_limits),
        cmocka_unit_test(lists_keep_the_order_of_lines),
        cmocka_unit_test(compat_keeps_the_first_label),
        cmocka_unit_test(words_of_operations_may_be_labels_of_others),
        cmocka_unit_test(many_labels_are_found),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(operations_of_portals_are_printed_back),
        cmocka_unit_test(the_line_is_shown_with_a_caret),
        cmocka_unit_test(long_lines_are_shown_in_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
