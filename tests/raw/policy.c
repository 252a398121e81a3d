/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The policy of an owner of an interface: its text and errors; whom a line is about; that rules to
 * which a line was added never match what the line does not, on random tables and frames.
 */
#include "raw/serve/policy.h"
#include "raw/rules/prove.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct policy policy;

static int parse(const char *text, char error[RAW_ERROR])
{
    return policy_parse(&policy, "p", text, strlen(text), error);
}

static void reads(void **state)
{
    char error[RAW_ERROR];
    (void)state;
    assert_int_equal(parse("# all kinds\n"
                           "allow user root contexts 2 ring 1024 share 8 priority 3 sets 4 {\n"
                           "    udp.dport = 5000..5999; ip.dst = 10.0.0.0/8\n"
                           "    send udp.sport = 5000..5999\n"
                           "}\n"
                           "allow group 77 any-source { vlan 5\n icmp.type = echo\n send all }\n"
                           "allow everyone { udp.dport = 7 }",
                           error),
                     0);
    assert_int_equal(policy.count, 3);
    const struct policy_line *a = &policy.of[0], *b = &policy.of[1], *c = &policy.of[2];
    assert_int_equal(a->who, POLICY_USER);
    assert_int_equal(a->id, 0);
    assert_int_equal(a->line, 2);
    assert_int_equal(a->contexts, 2);
    assert_int_equal(a->ring, 1024);
    assert_int_equal(a->share, 8);
    assert_int_equal(a->priority, 3);
    assert_int_equal(a->sets, 4);
    assert_true(a->sends && !a->any_source);
    assert_int_equal(b->who, POLICY_GROUP);
    assert_int_equal(b->id, 77);
    assert_int_equal(b->line, 6);
    assert_true(b->sends && b->any_source);
    assert_int_equal(c->who, POLICY_EVERYONE);
    assert_int_equal(c->contexts, 1);
    assert_int_equal(c->ring, 256);
    assert_false(c->sends);
}

/* Each error has the line, the thing, its value and what would be right. */
static void refuses(void **state)
{
    static const struct {
        const char *text, *error;
    } wrong[] = {
        {"", "p:1: nobody is allowed anything: write \"allow user NAME {\""},
        {"# nothing\n\n", "p:3: nobody is allowed anything"},
        {"\nforbid user root { all }", "p:2: \"allow user NAME {\" is expected, not \"forbid\""},
        {"allow bob { all }", "p:1: user NAME, group NAME or everyone is expected, not \"bob\""},
        {"allow user no-such-user { all }",
         "p:1: there is no user \"no-such-user\" on this machine: a name that `getent passwd`"},
        {"allow group no-such-group { all }", "p:1: there is no group \"no-such-group\""},
        {"allow user 65534 { all }", "p:1: 65534 is number 65534, which stands for all who"},
        {"allow user", "p:1: the name or number of a user is missing at the end of the text"},
        {"allow user 1 contxts 2 { all }",
         "p:1: a policy has no word \"contxts\"; did you mean contexts?"},
        {"allow user 1 contexts 0 { all }", "p:1: contexts 0: it is a number from 1 to 16"},
        {"allow user 1 contexts 17 { all }", "p:1: contexts 17 is above 16"},
        {"allow user 1\n ring 100 { all }", "p:1: { is missing at the end of the line"},
        {"allow user 1 ring 100 { all }", "p:1: ring 100: it is a power of two from 2 to 4096"},
        {"allow user 1 ring { all }", "p:1: ring is expected, not \"{\""},
        {"allow user 1 share 65 { all }", "p:1: share 65 is above 64"},
        {"allow user 1 sets 65 { all }", "p:1: sets 65 is above 64"},
        {"allow user 1 { }", "p:1: the line allows no frame"},
        {"allow user 1 { send all }", "p:1: the line allows no frame"},
        {"allow user 1 {\n udp.dprt = 7 }", "p:2: there is no protocol or field \"udp.dprt\"; did "
                                            "you mean udp.dport?"},
        {"allow user 1 {\n udp.dport = 70000 }", "p:2: udp.dport 70000 is above 65535"},
        {"allow user 1 { all", "p:1: or, the end of the line or } is missing"},
        {"allow user 1 { all\n", "p:2: "},
        {"allow user 1 { send }", "p:1: a protocol, a field, word, at or all is expected"},
        {"allow user 1 any-source { all }", "p:1: any-source is of frames that are sent"},
        {"allow user 1 { all } allow\n", "p:1: user NAME, group NAME or everyone is missing"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        char error[RAW_ERROR] = "";
        assert_int_equal(parse(wrong[i].text, error), -1);
        if (strncmp(error, wrong[i].error, strlen(wrong[i].error)) != 0) {
            fail_msg("\"%s\" gives \"%s\" instead of \"%s\"", wrong[i].text, error, wrong[i].error);
        }
    }
}

static void too_many(void **state)
{
    static char text[POLICY_LINES * 40 + 80];
    char error[RAW_ERROR];
    size_t n = 0;
    (void)state;
    for (int i = 0; i <= POLICY_LINES; i++) {
        n += (size_t)snprintf(text + n, sizeof(text) - n, "allow user %d { all }\n", i + 1);
        assert_int_equal(parse(text, error), i < POLICY_LINES ? 0 : -1);
    }
    assert_non_null(strstr(error, "p:65: there are more than 64 lines"));
}

static void finds(void **state)
{
    char error[RAW_ERROR];
    struct policy_peer alice = {.uid = 1001, .groups = 3, .group = {1001, 50, 60}};
    struct policy_peer bob = {.uid = 1002, .groups = 1, .group = {1002}};
    (void)state;
    assert_int_equal(
        parse("allow user 1001 { all }\nallow group 60 { arp }\nallow group 1001 { ip.src"
              " = 1.2.3.4 }\nallow user 60 { all }",
              error),
        0);
    assert_int_equal(policy_find(&policy, 0, &alice), 0);
    assert_int_equal(policy_find(&policy, 1, &alice), 1);
    assert_int_equal(policy_find(&policy, 2, &alice), 2);
    assert_int_equal(policy_find(&policy, 3, &alice), -1);
    assert_int_equal(policy_find(&policy, 0, &bob), -1);
}

static void outside(void **state)
{
    static struct raw_rules rules;
    char error[RAW_ERROR];
    static const struct {
        const char *rules;
        int rc;
    } tries[] = {
        {"set a { udp.dport = 5000 }", 0},
        {"set a { udp.dport = 4000..7000 }", 0},
        {"set a { udp.dport = 7 or udp.dport = 5500 }", 0},
        {"set a { all }", 0},
        {"set a { ip.dst = 10.1.0.0/16 }", 0},
        {"set a { udp.dport = 7 }", -EACCES},
        {"set a { udp.dport = 7 or udp.dport = 9 }", -EACCES},
        {"set a { tcp.dport = 5000 }", -EACCES},
        {"set a { vlan 3; udp.dport = 5000 }", -EACCES},
        {"set a { ip.dst = 11.0.0.0/8 }", -EACCES},
        {"set ok { udp.dport = 5000 }\nset b { arp }", -EACCES},
    };
    (void)state;
    assert_int_equal(parse("allow user 1 { udp.dport = 5000..5999; ip.dst = 10.0.0.0/8 }", error),
                     0);
    for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
        assert_int_equal(
            raw_rules_parse(&rules, "r", tries[i].rules, strlen(tries[i].rules), error), 0);
        int rc = policy_and(&policy.of[0], rules.set, rules.count, error);
        if (rc != tries[i].rc) {
            fail_msg("%s: %d instead of %d", tries[i].rules, rc, tries[i].rc);
        }
        assert_true(rc == 0 || strstr(error, "is outside of what line 1 of the policy") != NULL);
    }
    /* what passes or drops is not for users */
    static const char *const actions[] = {"set a pass { udp.dport = 5000 }",
                                          "set a drop { udp.dport = 5000 }"};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(raw_rules_parse(&rules, "r", actions[i], strlen(actions[i]), error), 0);
        assert_int_equal(policy_and(&policy.of[0], rules.set, rules.count, error), -EACCES);
        assert_non_null(strstr(error, "set a passes or drops"));
    }
}

/* For random sets, lines and frames: in the sum if and only if in both. */
static void sum(void **state)
{
    static struct raw_rules his, line, both;
    struct raw_dice d = {.key = 22};
    char error[RAW_ERROR];
    uint8_t frame[300];
    unsigned in_both = 0, in_one = 0, refused = 0, large = 0;
    (void)state;
    for (int round = 0; round < 3000; round++) {
        raw_random_table(&d, &his, 1);
        his.set[0].action = RAW_HANDLERS; /* the only ones that users may have */
        if (raw_dice_below(&d, 2) == 0) {
            raw_random_table(&d, &line, 1);
        } else { /* a line that has something to do with his set */
            line = his;
            line.set[0].count = 1 + raw_dice_below(&d, line.set[0].count);
            struct raw_clause *c = &line.set[0].clause[0];
            if (raw_dice_below(&d, 3) == 0 && c->rule[0].end < UINT32_MAX) {
                c->count = 1; /* what his first condition leaves out */
                c->rule[0].start = c->rule[0].end + 1;
                c->rule[0].end = UINT32_MAX;
            }
        }
        struct policy_line l = {.take = line.set[0]};
        both = his;
        int rc = policy_and(&l, both.set, both.count, error);
        refused += rc == -EACCES;
        large += rc == -E2BIG;
        for (int n = 0; n < 20 && rc != -E2BIG; n++) {
            size_t length = raw_random_frame(&d, n % 2 == 0 ? &his : &line, frame, sizeof(frame));
            bool a = raw_match(&his, frame, length) != RAW_NONE;
            bool b = raw_match(&line, frame, length) != RAW_NONE;
            if (rc == 0) {
                assert_int_equal(raw_match(&both, frame, length) != RAW_NONE, a && b);
            } else {
                assert_false(a && b);
            }
            in_both += a && b;
            in_one += a != b;
        }
    }
    print_message("in both %u, in one %u; refused %u, too large %u\n", in_both, in_one, refused,
                  large);
    assert_true(in_both > 1000 && in_one > 1000 && refused > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads), cmocka_unit_test(refuses), cmocka_unit_test(too_many),
        cmocka_unit_test(finds), cmocka_unit_test(outside), cmocka_unit_test(sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
