/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Generated schedules: text and binary are the same schedule, every message that
 * is sent is received, what is random depends on the seed alone.
 */
#include "goal_try.h"

#include "sim/gen/goal_gen.h"
#include "sim/util/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

static struct bytes generate(const struct goal_pattern *p, struct goal_config c)
{
    struct goal_error error;
    int fd = try_memfd();
    assert_int_equal(goal_config_check(p, &c, &error), 0);
    assert_int_equal(goal_generate(p, &c, fd, &error), 0);
    struct bytes b = try_contents(fd);
    close(fd);
    return b;
}

static struct bytes generate_text(const struct goal_pattern *p, struct goal_config c)
{
    struct goal_error error;
    struct goal_stream out;
    int fd = try_memfd();
    assert_int_equal(goal_config_check(p, &c, &error), 0);
    assert_int_equal(goal_stream_append(&out, fd), 0);
    assert_int_equal(goal_generate_text(p, &c, &out, &error), 0);
    assert_int_equal(goal_stream_close(&out), 0);
    struct bytes b = try_contents(fd);
    close(fd);
    return b;
}

/* ---- Messages ---- */

struct message {
    uint32_t from, to, tag;
    uint64_t size;
};

static int compare_messages(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct message));
}

/* All sends, or all receives, sorted; with `any` sources are left out. */
static struct message *messages(const struct goal *g, enum goal_type type, bool any)
{
    uint64_t count = type == GOAL_SEND ? g->sends : g->recvs, n = 0;
    struct message *m = calloc(count + 1, sizeof(*m));
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        struct goal_rank r = goal_rank(g, rank);
        for (uint32_t i = 0; i < r.node_count; i++) {
            const struct goal_node *node = &r.nodes[i];
            if (node->type == type) {
                m[n].from = any ? 0 : type == GOAL_SEND ? rank : node->peer;
                m[n].to = type == GOAL_SEND ? node->peer : rank;
                m[n].tag = node->tag;
                m[n++].size = node->size;
            }
        }
    }
    assert_int_equal(n, count);
    qsort(m, n, sizeof(*m), compare_messages);
    return m;
}

static void check_messages(const struct goal *g, bool any)
{
    struct message *sent = messages(g, GOAL_SEND, any), *received = messages(g, GOAL_RECV, any);
    assert_int_equal(g->sends, g->recvs);
    assert_memory_equal(sent, received, g->sends * sizeof(*sent));
    free(sent);
    free(received);
}

/* Runs the dependencies alone: every operation becomes ready sometime. */
static void check_no_cycle(const struct goal *g)
{
    for (uint32_t rank = 0; rank < g->ranks; rank++) {
        struct goal_rank r = goal_rank(g, rank);
        uint32_t *left = calloc(r.node_count + 1, sizeof(*left));
        uint32_t *ready = calloc(r.node_count + 1, sizeof(*ready)), count = r.root_count;
        for (uint32_t i = 0; i < r.node_count; i++) {
            left[i] = r.nodes[i].depends;
        }
        for (uint32_t i = 0; i < count; i++) {
            ready[i] = r.roots[i];
        }
        for (uint32_t i = 0; i < count; i++) {
            const struct goal_node *n = &r.nodes[ready[i]];
            for (uint32_t k = 0; k < n->done_count + n->start_count; k++) {
                uint32_t next = goal_done(&r, n)[k];
                if (--left[next] == 0) {
                    ready[count++] = next;
                }
            }
        }
        assert_int_equal(count, r.node_count);
        free(left);
        free(ready);
    }
}

static void check_schedule(const struct goal_pattern *p, struct goal_config c)
{
    struct goal g;
    struct goal_error error;
    struct bytes bin = generate(p, c), text = generate_text(p, c), again;
    if (goal_open_image(&g, bin.at, bin.length, p->name, &error) != 0) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(g.ranks, c.ranks);
    assert_int_equal(try_compile((char *)text.at, text.length, 0, &again, &error), 0);
    assert_int_equal(again.length, bin.length);
    assert_memory_equal(again.at, bin.at, bin.length);
    check_messages(&g, c.any_source);
    check_no_cycle(&g);
    goal_close(&g);
    free(bin.at);
    free(text.at);
    free(again.at);
}

static void every_pattern_receives_what_it_sends(void **state)
{
    static const uint32_t ranks[] = {1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 60};
    for (int p = 0; p < goal_pattern_count; p++) {
        for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
            struct goal_config c = goal_config_default;
            c.ranks = ranks[i];
            c.size = 1000;
            c.segment = 300;
            check_schedule(&goal_patterns[p], c);
            c.root = ranks[i] - 1;
            c.iterations = 3;
            c.random_calc = 500;
            c.calc = 7;
            c.late = 9;
            c.open = true;
            c.order = GOAL_SHUFFLED;
            check_schedule(&goal_patterns[p], c);
            c.any_source = true;
            c.order = GOAL_REVERSE;
            c.root = ranks[i] / 2;
            check_schedule(&goal_patterns[p], c);
        }
    }
}

/* ---- What patterns promise ---- */

static void binomial_trees_reach_all_in_log_steps(void **state)
{
    struct goal_config c = goal_config_default;
    struct goal g;
    struct goal_error error;
    c.ranks = 1000;
    c.root = 17;
    struct bytes bin = generate(goal_pattern_find("binomialtreebcast"), c);
    assert_int_equal(goal_open_image(&g, bin.at, bin.length, "b", &error), 0);
    assert_int_equal(g.sends, 999);
    assert_int_equal(g.most_nodes, 10);
    for (uint32_t rank = 0; rank < 1000; rank++) {
        struct goal_rank r = goal_rank(&g, rank);
        uint32_t recvs = 0;
        for (uint32_t i = 0; i < r.node_count; i++) {
            recvs += r.nodes[i].type == GOAL_RECV;
        }
        assert_int_equal(recvs, rank != 17);
    }
    goal_close(&g);
    free(bin.at);
}

static void rings_deal_all_bytes(void **state)
{
    struct goal_config c = goal_config_default;
    struct goal g;
    struct goal_error error;
    c.ranks = 7;
    c.size = 1000;
    struct bytes bin = generate(goal_pattern_find("allreduce_ring"), c);
    assert_int_equal(goal_open_image(&g, bin.at, bin.length, "b", &error), 0);
    uint64_t sum = 0;
    for (uint32_t rank = 0; rank < 7; rank++) {
        struct goal_rank r = goal_rank(&g, rank);
        for (uint32_t i = 0; i < r.node_count; i++) {
            sum += r.nodes[i].type == GOAL_SEND ? r.nodes[i].size : 0;
        }
    }
    assert_int_equal(sum, 2 * 6 * 1000); /* each chunk is sent 2 (n - 1) times */
    goal_close(&g);
    free(bin.at);
}

static void random_calcs_depend_on_the_seed_and_reach_both_ends(void **state)
{
    const struct goal_pattern *p = goal_pattern_find("dissemination");
    struct goal_config config = goal_config_default;
    struct goal g;
    struct goal_error error;
    unsigned seen[4] = {0};
    config.ranks = 64;
    config.random_calc = 3;
    struct bytes a = generate(p, config), b = generate(p, config);
    config.seed = 2;
    struct bytes c = generate(p, config);
    assert_memory_equal(a.at, b.at, a.length);
    assert_int_equal(a.length, c.length);
    assert_true(memcmp(a.at, c.at, a.length) != 0);
    assert_int_equal(goal_open_image(&g, a.at, a.length, "a", &error), 0);
    assert_int_equal(g.calcs, g.sends);
    for (uint32_t rank = 0; rank < g.ranks; rank++) {
        struct goal_rank r = goal_rank(&g, rank);
        for (uint32_t i = 0; i < r.node_count; i++) {
            if (r.nodes[i].type == GOAL_CALC) {
                assert_in_range(r.nodes[i].size, 0, 3);
                seen[r.nodes[i].size]++;
                assert_int_equal(r.nodes[goal_done(&r, &r.nodes[i])[0]].type, GOAL_SEND);
            }
        }
    }
    for (int i = 0; i < 4; i++) {
        assert_in_range(seen[i], 50, 150); /* 384 in all */
    }
    goal_close(&g);
    free(a.at);
    free(b.at);
    free(c.at);
}

static void permutations_have_inverses(void **state)
{
    for (uint64_t n = 1; n < 300; n++) {
        struct goal_permutation p = goal_permutation(n, 42 + n);
        bool taken[300] = {false};
        for (uint64_t i = 0; i < n; i++) {
            uint64_t to = goal_permute(&p, i);
            assert_true(to < n && !taken[to]);
            taken[to] = true;
            assert_int_equal(goal_permute_back(&p, to), i);
        }
    }
}

static void bad_configurations_are_refused(void **state)
{
    struct goal_error error;
    struct goal_config c = goal_config_default;
    c.ranks = 0;
    assert_int_equal(goal_config_check(goal_pattern_find("incast"), &c, &error), -1);
    c = goal_config_default;
    c.root = 16;
    assert_int_equal(goal_config_check(goal_pattern_find("incast"), &c, &error), -1);
    assert_non_null(strstr(error.text, "root 16 does not exist: ranks are 0 to 15"));
    c = goal_config_default;
    c.extent[0] = 3;
    c.extent[1] = 5;
    assert_int_equal(goal_config_check(goal_pattern_find("stencil_2d"), &c, &error), -1);
    assert_string_equal(error.text, "extent 3x5: must multiply to the 16 ranks");
    c = goal_config_default;
    c.extent[0] = c.extent[1] = 4;
    assert_int_equal(goal_config_check(goal_pattern_find("stencil_3d"), &c, &error), -1);
    assert_string_equal(error.text, "stencil_3d has 3 dimensions, extent 4x4 has 2");
    c = goal_config_default;
    c.ranks = 18;
    c.extent[0] = 3;
    c.extent[1] = 6;
    assert_int_equal(goal_config_check(goal_pattern_find("allreduce_swing_latency"), &c, &error),
                     -1);
    assert_non_null(strstr(error.text, "needs powers of two"));
    c = goal_config_default;
    c.radix = 1;
    assert_int_equal(goal_config_check(goal_pattern_find("bcast_knomial"), &c, &error), -1);
    assert_int_equal(goal_config_check(goal_pattern_find("bcast_chains"), &c, &error), 0);
    assert_null(goal_pattern_find("nonsense"));
}

static void sizes_that_do_not_fit_are_refused(void **state)
{
    struct goal_error error;
    struct goal_config c = goal_config_default;
    c.size = UINT64_MAX / 16;
    assert_int_equal(goal_config_check(goal_pattern_find("gather_binomial"), &c, &error), 0);
    c.size++;
    assert_int_equal(goal_config_check(goal_pattern_find("gather_binomial"), &c, &error), -1);
    assert_non_null(strstr(error.text, "size can be 1152921504606846975"));
    assert_int_equal(goal_config_check(goal_pattern_find("gather_linear"), &c, &error), 0);
    c.reduce_rate = 16000000;
    assert_int_equal(goal_config_check(goal_pattern_find("allreduce_ring"), &c, &error), -1);
    c.reduce_rate = 15000000;
    assert_int_equal(goal_config_check(goal_pattern_find("allreduce_ring"), &c, &error), 0);
    c.segment = 1;
    assert_int_equal(goal_config_check(goal_pattern_find("pipelinedring"), &c, &error), -1);
    assert_non_null(strstr(error.text, "in segments of 1 are"));
}

static void check_training(struct goal_config c, const char *text)
{
    struct goal_error error = {.text = ""};
    int rc = goal_config_check(goal_pattern_find("training"), &c, &error);
    assert_int_equal(rc, text != NULL ? -1 : 0);
    if (text != NULL && strstr(error.text, text) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", text, error.text);
    }
}

static void training_that_does_not_fit_is_refused(void **state)
{
    struct goal_config c = goal_config_default;
    check_training(c, NULL);
    c.training.tensor = 3;
    check_training(c, "16 ranks: must be a multiple of tp x pp = 3 x 1 = 3");
    c.training.tensor = 2;
    c.training.data = 4;
    check_training(c, "dp x tp x pp = 4 x 2 x 1: must be the 16 ranks");
    c.training.data = 8;
    c.training.expert = 3;
    check_training(c, "--ep 3: must divide dp = 8");
    c.training.expert = 1;
    c.training.expert_gradients = 5;
    check_training(c, "no experts without --ep");
    c.training.expert_gradients = GOAL_DERIVED;
    c.training.layers = 0;
    check_training(c, "--layers 0");
    c.training.layers = 9;
    check_training(c, NULL);
    c.training.pipeline = 2;
    c.training.data = 4;
    check_training(c, "--layers 9: must be a multiple of --pp 2");
    c.training.layers = 8;
    c.training.hidden = UINT64_MAX / 2;
    check_training(c, "gradients of 8 layers are 2^64 bytes or more");
    c.training.gradients = 1;
    check_training(c, "activations of a microbatch are 2^64 bytes or more");
    c.training.activations = UINT64_MAX - 1;
    check_training(c, NULL);
    c.reduce_rate = 2000000;
    check_training(c, "--reduce-rate or --bucket must be less");
    c.reduce_rate = 0;
    c.training.microbatches = UINT32_MAX - 1;
    check_training(c, "2^31 collectives");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pattern_receives_what_it_sends),
        cmocka_unit_test(binomial_trees_reach_all_in_log_steps),
        cmocka_unit_test(rings_deal_all_bytes),
        cmocka_unit_test(random_calcs_depend_on_the_seed_and_reach_both_ends),
        cmocka_unit_test(permutations_have_inverses),
        cmocka_unit_test(bad_configurations_are_refused),
        cmocka_unit_test(sizes_that_do_not_fit_are_refused),
        cmocka_unit_test(training_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
