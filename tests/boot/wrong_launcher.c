/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A launcher's variables without the launcher: always an error that names the
 * variable and the remedy, never a job of one rank.
 * Usage: wrong_launcher CLIENT CLIENT_WITHOUT_PMIX; CLIENT is "" in a build that
 * has no PMIx.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "outcome.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *client, *without_pmix;
static struct outcome o;

/* Joins with these variables, of which those that are NULL are not set. */
static void join(const char *program, const char *nspace, const char *rank, const char *uri)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_URI4",
                                        "PMIX_SERVER_URI41"};
    const char *const values[] = {nspace, rank, uri, uri};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (values[i] != NULL) {
            setenv(names[i], values[i], 1);
        } else {
            unsetenv(names[i]);
        }
    }
    const char *const argv[] = {program, "join", NULL};
    outcome_start(&o, argv);
    outcome_end(&o);
}

static void assert_error(int rc, const char *begin, const char *remedy)
{
    char expected[600];
    snprintf(expected, sizeof(expected), "%d %s", rc, begin);
    assert_int_equal(o.status, 1);
    assert_string_equal(o.out, "");
    /* libpmix may have written lines of its own before. */
    const char *line = strstr(o.err, expected);
    if (line == NULL || strstr(line, remedy) == NULL) {
        fail_msg("\"%s\" has no \"%s\" with \"%s\"", o.err, expected, remedy);
    }
}

static void no_variables_are_a_job_of_one(void **state)
{
    for (int i = 0; i < 2; i++) {
        const char *program = i == 0 ? client : without_pmix;
        if (*program == '\0') {
            continue;
        }
        join(program, NULL, NULL, NULL);
        assert_int_equal(o.status, 0);
        assert_string_equal(o.out, "rank 0 of 1\n");
    }
}

static void half_of_pmix_is_named(void **state)
{
    join(client, "job", NULL, NULL);
    assert_error(-EINVAL, "PMIX_NAMESPACE is set but PMIX_RANK is not", "unset both");
    join(client, NULL, "0", NULL);
    assert_error(-EINVAL, "PMIX_RANK is set but PMIX_NAMESPACE is not", "unset both");
    join(client, "job", "one", NULL);
    assert_error(-EINVAL, "PMIX_RANK=one: must be a whole number", "at least 0");
}

static void a_server_that_does_not_answer_is_named(void **state)
{
    join(client, "job", "0", NULL);
    assert_error(-ECONNREFUSED, "PMIX_NAMESPACE=job: no PMIx server answers", "to run alone");
    join(client, "job", "0", "job.0;tcp4://127.0.0.1:9");
    assert_error(-ECONNREFUSED, "PMIX_NAMESPACE=job: no PMIx server answers", "to run alone");
    join(client, "job", "0", "nonsense");
    assert_error(-ECONNREFUSED, "PMIX_NAMESPACE=job: no PMIx server answers", "to run alone");
}

static void a_library_that_does_not_load_is_named(void **state)
{
    char folder[] = "/tmp/pinwheel-pmix-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/libpmix.so.2", folder);
    int fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "no library\n", 11), 11);
    close(fd);
    setenv("LD_LIBRARY_PATH", folder, 1);
    join(client, "job", "0", NULL);
    unsetenv("LD_LIBRARY_PATH");
    unlink(path);
    rmdir(folder);
    assert_error(-EOPNOTSUPP, "PMIX_NAMESPACE=job: a PMIx launcher started this process",
                 "install it (Debian: libpmix2)");
    assert_non_null(strstr(o.err, path));
}

static void a_build_without_pmix_says_so(void **state)
{
    join(without_pmix, "job", "0", NULL);
    assert_error(-EOPNOTSUPP, "PMIX_NAMESPACE is set", "Debian: libpmix-dev");
    join(without_pmix, NULL, "0", NULL);
    assert_error(-EOPNOTSUPP, "PMIX_RANK is set", "Debian: libpmix-dev");
}

static void pmi_1_goes_before_pmix(void **state)
{
    setenv("PMI_FD", "777", 1);
    setenv("PMI_RANK", "0", 1);
    setenv("PMI_SIZE", "2", 1);
    join(without_pmix, "job", "0", NULL);
    assert_error(-EBADF, "PMI_FD=777: no open connection", "unset it to run alone");

    /* A launcher that has ended: its end of the connection is closed. */
    int ends[2];
    char number[16];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    close(ends[1]);
    snprintf(number, sizeof(number), "%d", ends[0]);
    setenv("PMI_FD", number, 1);
    join(without_pmix, "job", "0", NULL);
    assert_error(-EPIPE, "the launcher went away", "");
    close(ends[0]);
    unsetenv("PMI_FD");
    unsetenv("PMI_RANK");
    unsetenv("PMI_SIZE");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest common[] = {
        cmocka_unit_test(no_variables_are_a_job_of_one),
        cmocka_unit_test(a_build_without_pmix_says_so),
        cmocka_unit_test(pmi_1_goes_before_pmix),
    };
    const struct CMUnitTest with_pmix[] = {
        cmocka_unit_test(half_of_pmix_is_named),
        cmocka_unit_test(a_server_that_does_not_answer_is_named),
        cmocka_unit_test(a_library_that_does_not_load_is_named),
    };
    if (argc != 3) {
        fprintf(stderr, "usage: wrong_launcher CLIENT CLIENT_WITHOUT_PMIX\n");
        return 2;
    }
    client = argv[1];
    without_pmix = argv[2];
    int failed = cmocka_run_group_tests(common, NULL, NULL);
    return failed + (*client != '\0' ? cmocka_run_group_tests(with_pmix, NULL, NULL) : 0);
}
