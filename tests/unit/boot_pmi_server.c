/* SPDX-License-Identifier: BSD-3-Clause */
/* The PMI-1 server as a state machine: requests in, replies out, no sockets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "boot/pmi_kvs.h"
#include "boot/pmi_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct pmi_job *new_job(int size)
{
    struct pmi_job *job;
    assert_int_equal(pmi_job_create(&job, size, "kvs_0", NULL), 0);
    return job;
}

static void say(struct pmi_job *job, int rank, const char *text)
{
    pmi_feed(job, rank, text, strlen(text));
}

/* Takes all replies queued for `rank` and compares them. */
static void expect(struct pmi_job *job, int rank, const char *replies)
{
    size_t length;
    const char *bytes = pmi_output(job, rank, &length);
    char *copy = strndup(bytes, length);
    assert_string_equal(copy, replies);
    free(copy);
    pmi_output_sent(job, rank, length);
}

static void begin(struct pmi_job *job, int rank)
{
    say(job, rank, "cmd=init pmi_version=1 pmi_subversion=1\n");
    expect(job, rank, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n");
}

static void repeat(char *to, char c, size_t n)
{
    memset(to, c, n);
    to[n] = '\0';
}

static void creation_checks_its_arguments(void **state)
{
    struct pmi_job *job;
    char name[PMI_NAME_MAX + 1];
    assert_int_equal(pmi_job_create(&job, 0, "k", NULL), -EINVAL);
    assert_null(job);
    assert_int_equal(pmi_job_create(&job, -1, "k", NULL), -EINVAL);
    assert_int_equal(pmi_job_create(&job, PMI_RANKS_MAX + 1, "k", NULL), -EINVAL);
    assert_int_equal(pmi_job_create(&job, 1, "", NULL), -EINVAL);
    assert_int_equal(pmi_job_create(&job, 1, "a b", NULL), -EINVAL);
    repeat(name, 'k', PMI_NAME_MAX);
    assert_int_equal(pmi_job_create(&job, 1, name, NULL), -EINVAL);
    name[PMI_NAME_MAX - 1] = '\0';
    assert_int_equal(pmi_job_create(&job, PMI_RANKS_MAX, name, NULL), 0);
    pmi_job_free(job);
    pmi_job_free(NULL);
}

static void a_session_from_init_to_finalize(void **state)
{
    struct pmi_job *job = new_job(1);
    assert_int_equal(pmi_state(job, 0), PMI_NEW);
    begin(job, 0);
    assert_int_equal(pmi_state(job, 0), PMI_READY);
    say(job, 0, "cmd=get_maxes\ncmd=get_universe_size\ncmd=get_appnum\ncmd=get_my_kvsname\n");
    expect(job, 0,
           "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024\n"
           "cmd=universe_size size=1\n"
           "cmd=appnum appnum=0\n"
           "cmd=my_kvsname kvsname=kvs_0\n");
    say(job, 0, "cmd=put kvsname=kvs_0 key=a value=x=y=\ncmd=get kvsname=kvs_0 key=a\n");
    expect(job, 0, "cmd=put_result rc=0 msg=success\ncmd=get_result rc=0 msg=success value=x=y=\n");
    say(job, 0, "cmd=barrier_in\n");
    expect(job, 0, "cmd=barrier_out rc=0\n");
    say(job, 0, "cmd=finalize\n");
    expect(job, 0, "cmd=finalize_ack rc=0\n");
    assert_int_equal(pmi_state(job, 0), PMI_FINALIZED);
    say(job, 0, "cmd=get_maxes\n");
    expect(job, 0, "cmd=maxes rc=-1 msg=init_must_come_first\n");
    begin(job, 0); /* a second program in the same rank */
    pmi_rank_gone(job, 0);
    assert_int_equal(pmi_state(job, 0), PMI_CLOSED);
    assert_null(pmi_error(job, 0));
    pmi_job_free(job);
}

static void bytes_may_be_cut_anywhere(void **state)
{
    const char *text = "cmd=init pmi_version=1 pmi_subversion=1\n"
                       "cmd=put kvsname=kvs_0 key=k value=v\n"
                       "cmd=get kvsname=kvs_0 key=k\n";
    size_t length = strlen(text);
    for (size_t cut = 1; cut < length; cut++) {
        struct pmi_job *job = new_job(1);
        for (size_t at = 0; at < length; at += cut) {
            pmi_feed(job, 0, text + at, length - at < cut ? length - at : cut);
        }
        expect(job, 0,
               "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\n"
               "cmd=put_result rc=0 msg=success\n"
               "cmd=get_result rc=0 msg=success value=v\n");
        pmi_job_free(job);
    }
}

static void only_version_1_is_spoken(void **state)
{
    struct pmi_job *job = new_job(1);
    say(job, 0, "cmd=init pmi_version=2 pmi_subversion=0\n");
    expect(job, 0,
           "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1 "
           "msg=this_server_speaks_version_1\n");
    assert_int_equal(pmi_state(job, 0), PMI_NEW);
    say(job, 0, "cmd=init\n");
    expect(job, 0,
           "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1 "
           "msg=this_server_speaks_version_1\n");
    begin(job, 0);
    pmi_job_free(job);
}

static void init_comes_first(void **state)
{
    struct pmi_job *job = new_job(2);
    say(job, 0, "cmd=barrier_in\ncmd=put kvsname=kvs_0 key=a value=b\n");
    expect(job, 0,
           "cmd=barrier_out rc=-1 msg=init_must_come_first\n"
           "cmd=put_result rc=-1 msg=init_must_come_first\n");
    assert_int_equal(pmi_state(job, 0), PMI_NEW);
    pmi_job_free(job);
}

static void the_second_put_of_a_key_is_refused(void **state)
{
    struct pmi_job *job = new_job(2);
    begin(job, 0);
    begin(job, 1);
    say(job, 0, "cmd=put kvsname=kvs_0 key=same value=first\n");
    expect(job, 0, "cmd=put_result rc=0 msg=success\n");
    say(job, 1, "cmd=put kvsname=kvs_0 key=same value=second\n");
    expect(job, 1, "cmd=put_result rc=-1 msg=duplicate_key\n");
    say(job, 1, "cmd=get kvsname=kvs_0 key=same\n");
    expect(job, 1, "cmd=get_result rc=0 msg=success value=first\n");
    pmi_job_free(job);
}

static void wrong_requests_are_answered(void **state)
{
    struct pmi_job *job = new_job(1);
    begin(job, 0);
    say(job, 0,
        "cmd=put kvsname=other key=a value=b\n"
        "cmd=put key=a value=b\n"
        "cmd=put kvsname=kvs_0 value=b\n"
        "cmd=put kvsname=kvs_0 key= value=b\n"
        "cmd=put kvsname=kvs_0 key=a\n"
        "cmd=get kvsname=kvs_0\n"
        "cmd=get kvsname=kvs_0 key=a\n"
        "cmd=frobnicate\n"
        "cmd=spawn nprocs=2\n"
        "cmd=publish_name service=a port=b\n"
        "cmd=getbyidx kvsname=kvs_0 idx=x\n");
    expect(job, 0,
           "cmd=put_result rc=-1 msg=unknown_kvsname\n"
           "cmd=put_result rc=-1 msg=kvsname_missing\n"
           "cmd=put_result rc=-1 msg=key_missing\n"
           "cmd=put_result rc=-1 msg=key_missing\n"
           "cmd=put_result rc=-1 msg=value_missing\n"
           "cmd=get_result rc=-1 msg=key_missing value=unknown\n"
           "cmd=get_result rc=-1 msg=key_a_not_found value=unknown\n"
           "cmd=error rc=-1 msg=unknown_command\n"
           "cmd=spawn_result rc=-1 msg=not_supported_by_pinwheel_run\n"
           "cmd=publish_result rc=-1 msg=not_supported_by_pinwheel_run\n"
           "cmd=getbyidx_results rc=-1 reason=no_more_keyvals\n");
    assert_int_equal(pmi_state(job, 0), PMI_READY);
    pmi_job_free(job);
}

static void lengths_are_limited(void **state)
{
    struct pmi_job *job = new_job(1);
    char key[PMI_KEY_MAX + 1], value[PMI_VALUE_MAX + 1], line[2 * PMI_LINE_MAX];
    begin(job, 0);
    repeat(key, 'k', PMI_KEY_MAX);
    snprintf(line, sizeof(line), "cmd=put kvsname=kvs_0 key=%s value=v\n", key);
    say(job, 0, line);
    expect(job, 0, "cmd=put_result rc=-1 msg=key_too_long\n");
    repeat(value, 'v', PMI_VALUE_MAX);
    snprintf(line, sizeof(line), "cmd=put kvsname=kvs_0 key=k value=%s\n", value);
    say(job, 0, line);
    expect(job, 0, "cmd=put_result rc=-1 msg=value_too_long\n");

    key[PMI_KEY_MAX - 1] = '\0';
    value[PMI_VALUE_MAX - 1] = '\0';
    snprintf(line, sizeof(line), "cmd=put kvsname=kvs_0 key=%s value=%s\n", key, value);
    say(job, 0, line);
    expect(job, 0, "cmd=put_result rc=0 msg=success\n");
    snprintf(line, sizeof(line), "cmd=get kvsname=kvs_0 key=%s\n", key);
    say(job, 0, line);
    snprintf(line, sizeof(line), "cmd=get_result rc=0 msg=success value=%s\n", value);
    expect(job, 0, line);
    pmi_job_free(job);
}

static void a_line_that_never_ends_closes_the_connection(void **state)
{
    struct pmi_job *job = new_job(2);
    begin(job, 0);
    begin(job, 1);
    for (int i = 0; i < PMI_LINE_MAX; i++) {
        say(job, 0, "x");
    }
    assert_int_equal(pmi_state(job, 0), PMI_READY);
    say(job, 0, "x");
    assert_int_equal(pmi_state(job, 0), PMI_CLOSED);
    assert_string_equal(pmi_error(job, 0), "it sent a line longer than 2048 bytes");
    say(job, 0, "\ncmd=get_maxes\n");
    expect(job, 0, "");
    say(job, 1, "cmd=get_appnum\n"); /* the others go on */
    expect(job, 1, "cmd=appnum appnum=0\n");
    pmi_job_free(job);
}

static void what_is_no_line_of_fields_closes_the_connection(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
        const char *error;
    } bad[] = {
        {"\n", 1, "its line \"\" is not made of at most 16 name=value fields"},
        {"hello\n", 6, "its line \"hello\" is not made of at most 16 name=value fields"},
        {"=x\n", 3, "its line \"=x\" is not made of at most 16 name=value fields"},
        {"key=x\n", 6, "its line \"key=x\" has no field cmd="},
        {"cmd=ge\0t\n", 9, "its line 8 bytes long has byte 0x00 at 6"},
        {"cmd=\xff\n", 6, "its line 5 bytes long has byte 0xff at 4"},
        {"cmd=get\r\n", 9, "its line 8 bytes long has byte 0x0d at 7"},
        {"cmd=a a=1 b=2 c=3 d=4 e=5 f=6 g=7 h=8 i=9 j=0 k=1 l=2 m=3 n=4 o=5 p=6\n", 70,
         "its line \"cmd=a a=1 b=2 c=3 d=4 e=5 f=6 g=...\" is not made of at most 16 name=value "
         "fields"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct pmi_job *job = new_job(1);
        pmi_feed(job, 0, bad[i].bytes, bad[i].length);
        assert_int_equal(pmi_state(job, 0), PMI_CLOSED);
        assert_non_null(pmi_error(job, 0));
        assert_string_equal(pmi_error(job, 0), bad[i].error);
        expect(job, 0, "");
        pmi_job_free(job);
    }
}

static void a_barrier_opens_when_all_are_in(void **state)
{
    struct pmi_job *job = new_job(3);
    for (int r = 0; r < 3; r++) {
        begin(job, r);
    }
    for (int round = 0; round < 3; round++) {
        int gone, waiting;
        say(job, 2, "cmd=barrier_in\n");
        say(job, 0, "cmd=barrier_in\n");
        for (int r = 0; r < 3; r++) {
            expect(job, r, "");
        }
        assert_int_equal(pmi_state(job, 0), PMI_BARRIER);
        assert_false(pmi_stuck(job, &gone, &waiting));
        say(job, 1, "cmd=barrier_in\n");
        for (int r = 0; r < 3; r++) {
            expect(job, r, "cmd=barrier_out rc=0\n");
            assert_int_equal(pmi_state(job, r), PMI_READY);
        }
    }
    pmi_job_free(job);
}

static void a_rank_is_in_a_barrier_once(void **state)
{
    struct pmi_job *job = new_job(2);
    int gone, waiting;
    begin(job, 0);
    begin(job, 1);
    say(job, 0, "cmd=barrier_in\ncmd=barrier_in\n");
    assert_int_equal(pmi_state(job, 0), PMI_CLOSED);
    say(job, 1, "cmd=barrier_in\n");
    expect(job, 1, "");
    assert_true(pmi_stuck(job, &gone, &waiting));
    assert_int_equal(gone, 0);
    assert_int_equal(waiting, 1);
    pmi_job_free(job);
}

static void a_rank_that_left_makes_a_barrier_stuck(void **state)
{
    struct pmi_job *job = new_job(4);
    int gone, waiting;
    for (int r = 0; r < 4; r++) {
        begin(job, r);
    }
    pmi_rank_gone(job, 2);
    assert_false(pmi_stuck(job, &gone, &waiting)); /* nobody waits yet */
    say(job, 1, "cmd=barrier_in\n");
    assert_true(pmi_stuck(job, &gone, &waiting));
    assert_int_equal(gone, 2);
    assert_int_equal(waiting, 1);
    pmi_rank_gone(job, 1); /* the one that waits leaves as well */
    assert_false(pmi_stuck(job, &gone, &waiting));
    pmi_job_free(job);
}

static void a_job_that_keeps_going_meets_without_who_is_gone(void **state)
{
    struct pmi_job *job = new_job(4);
    int gone, waiting;
    for (int r = 0; r < 4; r++) {
        begin(job, r);
    }
    pmi_keep_going(job);
    say(job, 0, "cmd=barrier_in\n");
    say(job, 1, "cmd=barrier_in\n");
    pmi_rank_gone(job, 1); /* while it waits */
    expect(job, 0, "");
    assert_true(pmi_torn(job, 1));
    pmi_rank_gone(job, 2); /* before it came */
    assert_false(pmi_stuck(job, &gone, &waiting));
    say(job, 3, "cmd=barrier_in\n"); /* and nobody is missing any more */
    expect(job, 0, "cmd=barrier_out rc=0\n");
    expect(job, 3, "cmd=barrier_out rc=0\n");
    say(job, 3, "cmd=barrier_in\n");
    expect(job, 3, "");
    say(job, 0, "cmd=finalize\n");
    expect(job, 0, "cmd=finalize_ack rc=0\n");
    expect(job, 3, ""); /* it may run init again */
    pmi_rank_gone(job, 0);
    assert_false(pmi_torn(job, 0));
    expect(job, 3, "cmd=barrier_out rc=0\n"); /* the last meets itself */
    pmi_job_free(job);
}

static void a_finalized_rank_does_not_hold_up_others_yet(void **state)
{
    struct pmi_job *job = new_job(2);
    int gone, waiting;
    begin(job, 0);
    begin(job, 1);
    say(job, 0, "cmd=finalize\n");
    say(job, 1, "cmd=barrier_in\n");
    assert_false(pmi_stuck(job, &gone, &waiting)); /* it may run init again */
    pmi_rank_gone(job, 0);
    assert_true(pmi_stuck(job, &gone, &waiting));
    assert_int_equal(gone, 0);
    pmi_job_free(job);
}

static void an_abort_is_remembered(void **state)
{
    struct pmi_job *job = new_job(3);
    int rank, code;
    begin(job, 0);
    assert_false(pmi_aborted(job, &rank, &code));
    say(job, 2, "cmd=abort exitcode=42 message=out of cheese\n");
    say(job, 0, "cmd=abort exitcode=7\n");
    assert_true(pmi_aborted(job, &rank, &code));
    assert_int_equal(rank, 2);
    assert_int_equal(code, 42);
    assert_int_equal(pmi_state(job, 2), PMI_CLOSED);
    assert_null(pmi_error(job, 2));
    pmi_job_free(job);
    job = new_job(1);
    say(job, 0, "cmd=abort\n");
    assert_true(pmi_aborted(job, &rank, &code));
    assert_int_equal(code, 1);
    pmi_job_free(job);
}

static void spawn_is_refused_once_per_request(void **state)
{
    struct pmi_job *job = new_job(1);
    begin(job, 0);
    say(job, 0,
        "mcmd=spawn\nnprocs=2\nexecname=./a.out\ntotspawns=2\nspawnssofar=1\n"
        "arg1=with blanks\nendcmd\n");
    expect(job, 0, "");
    say(job, 0, "mcmd=spawn\nnprocs=1\nexecname=./b.out\ntotspawns=2\nspawnssofar=2\nendcmd\n");
    expect(job, 0,
           "cmd=spawn_result rc=-1 errcodes=-1 "
           "errmsg=spawn_is_not_supported_by_pinwheel_run\n");
    say(job, 0, "cmd=get_appnum\n");
    expect(job, 0, "cmd=appnum appnum=0\n");
    pmi_job_free(job);
}

static void pairs_can_be_listed(void **state)
{
    struct pmi_job *job = new_job(3);
    begin(job, 0);
    say(job, 0, "cmd=put kvsname=kvs_0 key=a value=1\n");
    expect(job, 0, "cmd=put_result rc=0 msg=success\n");
    say(job, 0,
        "cmd=getbyidx kvsname=kvs_0 idx=0\ncmd=getbyidx kvsname=kvs_0 idx=1\n"
        "cmd=getbyidx kvsname=kvs_0 idx=2\n");
    expect(job, 0,
           "cmd=getbyidx_results rc=0 nextidx=1 key=PMI_process_mapping val=(vector,(0,1,3))\n"
           "cmd=getbyidx_results rc=0 nextidx=2 key=a val=1\n"
           "cmd=getbyidx_results rc=-1 reason=no_more_keyvals\n");
    pmi_job_free(job);
}

static void the_number_of_keys_is_limited(void **state)
{
    struct pmi_job *job = new_job(1);
    char line[128];
    begin(job, 0);
    for (int i = 1; i < KVS_PAIRS_MAX; i++) { /* one is there from the start */
        snprintf(line, sizeof(line), "cmd=put kvsname=kvs_0 key=k%d value=%d\n", i, -i);
        say(job, 0, line);
        expect(job, 0, "cmd=put_result rc=0 msg=success\n");
    }
    say(job, 0, "cmd=put kvsname=kvs_0 key=last value=straw\n");
    expect(job, 0, "cmd=put_result rc=-1 msg=too_many_keys\n");
    for (int i = 1; i < KVS_PAIRS_MAX; i += 1111) {
        char answer[128];
        snprintf(line, sizeof(line), "cmd=get kvsname=kvs_0 key=k%d\n", i);
        snprintf(answer, sizeof(answer), "cmd=get_result rc=0 msg=success value=%d\n", -i);
        say(job, 0, line);
        expect(job, 0, answer);
    }
    pmi_job_free(job);
}

static void replies_that_are_not_read_are_limited(void **state)
{
    struct pmi_job *job = new_job(1);
    size_t length, most = 0;
    begin(job, 0);
    while (pmi_state(job, 0) != PMI_CLOSED) {
        say(job, 0, "cmd=get_my_kvsname\n");
        pmi_output(job, 0, &length);
        assert_true(length <= PMI_OUTPUT_MAX && length >= most);
        most = length;
    }
    assert_true(most > PMI_OUTPUT_MAX - 100);
    assert_string_equal(pmi_error(job, 0), "it does not read the replies to its requests");
    pmi_job_free(job);
}

static void replies_are_taken_in_pieces(void **state)
{
    struct pmi_job *job = new_job(1);
    char all[64 * 32] = "";
    size_t length;
    begin(job, 0);
    for (int i = 0; i < 64; i++) {
        say(job, 0, "cmd=get_appnum\n");
        const char *bytes = pmi_output(job, 0, &length);
        size_t some = length < 17 ? length : 17;
        strncat(all, bytes, some);
        pmi_output_sent(job, 0, some);
    }
    const char *rest = pmi_output(job, 0, &length);
    strncat(all, rest, length);
    const char *line = "cmd=appnum appnum=0\n";
    assert_int_equal(strlen(all), 64 * strlen(line));
    for (int i = 0; i < 64; i++) {
        assert_memory_equal(all + (size_t)i * strlen(line), line, strlen(line));
    }
    pmi_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creation_checks_its_arguments),
        cmocka_unit_test(a_session_from_init_to_finalize),
        cmocka_unit_test(bytes_may_be_cut_anywhere),
        cmocka_unit_test(only_version_1_is_spoken),
        cmocka_unit_test(init_comes_first),
        cmocka_unit_test(the_second_put_of_a_key_is_refused),
        cmocka_unit_test(wrong_requests_are_answered),
        cmocka_unit_test(lengths_are_limited),
        cmocka_unit_test(a_line_that_never_ends_closes_the_connection),
        cmocka_unit_test(what_is_no_line_of_fields_closes_the_connection),
        cmocka_unit_test(a_barrier_opens_when_all_are_in),
        cmocka_unit_test(a_rank_is_in_a_barrier_once),
        cmocka_unit_test(a_job_that_keeps_going_meets_without_who_is_gone),
        cmocka_unit_test(a_rank_that_left_makes_a_barrier_stuck),
        cmocka_unit_test(a_finalized_rank_does_not_hold_up_others_yet),
        cmocka_unit_test(an_abort_is_remembered),
        cmocka_unit_test(spawn_is_refused_once_per_request),
        cmocka_unit_test(pairs_can_be_listed),
        cmocka_unit_test(the_number_of_keys_is_limited),
        cmocka_unit_test(replies_that_are_not_read_are_limited),
        cmocka_unit_test(replies_are_taken_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
