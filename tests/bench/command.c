/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel bench` as its users see it, with subjects that misbehave. Nothing here
 * asserts a time. Usage: command PINWHEEL FAKE, FAKE being the program of fake.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json_check.h"
#include "outcome.h"
#include "svg_check.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *pinwheel, *fake;
static struct outcome o;
static char folder[] = "bench-command-XXXXXX"; /* the tests' working directory */

/* The words that every process of a test carries, to find those that are left. */
static char token[64];

/* ---- Running ---- */

static void start(const char *const *words)
{
    const char *argv[64] = {pinwheel, "bench"};
    int count = 2;
    for (; *words != NULL && count < 63; words++) {
        argv[count++] = *words;
    }
    outcome_start(&o, argv);
}

static void bench(const char *const *words)
{
    start(words);
    outcome_end(&o);
}

#define BENCH(...) bench((const char *const[]){__VA_ARGS__, NULL})

/* NAME=FAKE WAY TOKEN */
static const char *subject(const char *name, const char *way)
{
    static char text[8][4400];
    static int next;
    char *to = text[next++ % 8];
    snprintf(to, sizeof(text[0]), "%s=%s %s %s", name, fake, way, token);
    return to;
}

static bool carries_token(const char *pid)
{
    char path[64], line[8192];
    snprintf(path, sizeof(path), "/proc/%.20s/cmdline", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, line, sizeof(line) - 1) : 0;
    if (fd >= 0) {
        close(fd);
    }
    return n > 0 && memmem(line, (size_t)n, token, strlen(token)) != NULL;
}

/* How many processes carry the token. */
static int left_over(void)
{
    DIR *proc = opendir("/proc");
    int count = 0;
    assert_non_null(proc);
    for (struct dirent *e; (e = readdir(proc)) != NULL;) {
        count += isdigit((unsigned char)e->d_name[0]) && carries_token(e->d_name);
    }
    closedir(proc);
    return count;
}

static bool becomes(int (*number)(void), int low, int high)
{
    for (int ms = 0; ms < 10000; ms += 20) {
        int n = number();
        if (n >= low && n <= high) {
            return true;
        }
        usleep(20000);
    }
    return false;
}

/* ---- Looking ---- */

static void assert_contains(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("\"%s\" is not in \"%s\"", part, text);
    }
}

static void assert_status(int status)
{
    if (o.status != status) {
        fail_msg("the status is %d, not %d: %s%s", o.status, status, o.err, o.out);
    }
}

static void assert_json(void)
{
    const char *wrong = json_check(o.out);
    if (wrong != NULL) {
        fail_msg("no JSON from \"%.60s\" on", wrong);
    }
}

static void assert_svg(const char *path)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        fail_msg("%s was not written", path);
    }
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    const char *wrong = svg_check(text);
    if (wrong != NULL) {
        fail_msg("%s: no SVG from \"%.60s\" on", path, wrong);
    }
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf\""));
}

/* The member of a row, which ends where the next row begins. */
static const char *member(const char *row, const char *name)
{
    char mark[64];
    const char *end = strchr(row, '}');
    snprintf(mark, sizeof(mark), "\"%s\": ", name);
    const char *at = strstr(row, mark);
    if (at == NULL || at > end) {
        fail_msg("no %s in the row \"%.200s\"", name, row);
    }
    return at + strlen(mark);
}

/* Finds a row, or NULL. */
static const char *find_row(const char *bench_name, long size, const char *peer)
{
    char wanted[64];
    snprintf(wanted, sizeof(wanted), "\"bench\": \"%s\"", bench_name);
    for (const char *at = o.out; (at = strstr(at, wanted)) != NULL; at++) {
        const char *value = member(at, "peer");
        bool same = peer == NULL ? strncmp(value, "null", 4) == 0
                                 : value[0] == '"' && strncmp(value + 1, peer, strlen(peer)) == 0 &&
                                       value[1 + strlen(peer)] == '"';
        if (same && (size < 0 || strtol(member(at, "size"), NULL, 10) == size)) {
            return at;
        }
    }
    return NULL;
}

static void assert_row(const char *bench_name, long size, const char *peer)
{
    const char *row = find_row(bench_name, size, peer);
    if (row == NULL) {
        fail_msg("no row %s, size %ld, peer %s", bench_name, size, peer != NULL ? peer : "none");
    }
    double ours = strtod(member(row, "ours"), NULL);
    const char *mode = member(row, "mode");
    assert_true(strncmp(mode, "\"near\"", 6) == 0 || strncmp(mode, "\"far\"", 5) == 0);
    assert_true(*member(row, "metric") == '"' && *member(row, "unit") == '"');
    if (peer != NULL) {
        double theirs = strtod(member(row, "peer_value"), NULL);
        double ratio = strtod(member(row, "ratio"), NULL);
        assert_true(ours > 0 && theirs > 0);
        assert_true(fabs(ratio - ours / theirs) <= 1e-4 * ratio); /* six digits are printed */
    }
}

static int count_of(const char *text)
{
    int count = 0;
    for (const char *at = o.out; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static bool two_cores(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) >= 2;
}

/* ---- It works ---- */

static void a_quick_run_has_all_rows(void **state)
{
    static const char *const alone[] = {"ct_get",          "eq_get",
                                        "match",           "match_masks",
                                        "match_wild",      "match_wild_2",
                                        "put_depth",       "fetch_atomic",
                                        "cswap",           "atomic_local",
                                        "atomic_rate",     "atomic_shared",
                                        "chain_ctinc",     "chain_put",
                                        "chain_atomic",    "expected",
                                        "unexpected",      "unexpected_reverse",
                                        "unexpected_wild", "unexpected_claim",
                                        "handler_packet",  "handler_message",
                                        "memory",          "idle",
                                        "computing",       "handler_packet_full"};
    static const char *const by_cpu[] = {
        "spin/strided", "spin/pingpong",   "spin/pingpong_stored", "spin/accumulate",
        "spin/copy",    "spin/filter",     "spin/aggregate",       "spin/histogram",
        "spin/reduce",  "spin/kv_get",     "spin/condread",        "spin/txlog",
        "spin/graph",   "spin/rendezvous", "spin/textscan",
    };
    static const char *const by_crew[] = {"spin/broadcast", "spin/allreduce", "spin/raid5",
                                          "spin/reed_solomon", "spin/ftbcast"};
    if (!two_cores()) {
        skip();
    }
    BENCH("--quick", "--rounds", "1", "--json", "--peers", "none");
    assert_status(0);
    assert_json();
    assert_string_equal(o.err, ""); /* no progress where there is no terminal */
    assert_row("put_latency", 8, "raw");
    assert_row("put_latency_eqget", 8, "raw");
    assert_row("put_latency_eqwait", 8, "raw");
    assert_row("triggered_put", 8, "futex");
    assert_row("handler_latency", 8, "raw");
    assert_row("put_latency_ack", 8, "raw");
    assert_row("put_latency_append", 8, "raw");
    assert_row("put_latency_mtl", 8, "raw");
    assert_row("get_latency", 8, "process_vm");
    assert_row("get_latency", 65536, "process_vm");
    assert_row("message_rate", 8, NULL);
    assert_row("message_rate_mtl", 8, NULL);
    assert_row("bandwidth", 65536, "memcpy");
    assert_row("bandwidth", 1048576, "memcpy");
    assert_row("first", 4096, NULL);
    assert_row("first_ratio", 4096, NULL);
    assert_row("same_core", 8, "futex");
    assert_row("wake", 8, "futex");
    for (size_t i = 0; i < sizeof(alone) / sizeof(alone[0]); i++) {
        assert_row(alone[i], -1, NULL);
    }
    for (size_t i = 0; i < sizeof(by_cpu) / sizeof(by_cpu[0]); i++) {
        assert_row(by_cpu[i], -1, "cpu");
    }
    for (size_t i = 0; i < sizeof(by_crew) / sizeof(by_crew[0]); i++) {
        assert_row(by_crew[i], -1, "crew-cpu");
    }
    assert_row("udp/latency", 8, "udp/raw");
    assert_row("udp/rate", 8, NULL);
    assert_row("udp/bandwidth", 1048576, "udp/raw");
    assert_null(find_row("put_latency", 8, "udp/raw")); /* of the network, of the host: apart */
    assert_null(find_row("udp/latency", 8, "raw"));
    assert_row("spin/strided", 256, "contiguous");
    assert_row("spin/invoke", 20, "one-hpu");
    assert_row("spin/fair", 0, "fifo");
    assert_row("spin/fair_worst", 100, "fifo");
    assert_null(find_row("put_latency", 65536, "raw")); /* a line is no 64 KiB */
    bool overlap = find_row("spin/overlap", 524288, NULL) != NULL;
    bool rv32 = find_row("rv32_message", 8, NULL) != NULL;
    assert_int_equal(rv32, HAS_RV32);
    assert_int_equal(count_of("\"subject\": "), !overlap + !rv32);
    if (!overlap) {
        assert_contains(o.out, "\"subject\": \"overlap\"");
        assert_contains(o.out, "its program bench_overlap was not built; build with "
                               "-DPINWHEEL_BENCH=ON and the packages libopenblas-dev");
    }
    assert_int_equal(count_of("\"met\": "), 59);
    /* Those that compare with peers, and of sizes that a quick run leaves out. */
    assert_int_equal(count_of("\"met\": null"), 39 - 2 * overlap + !rv32);
    assert_svg("bench-out/bench.svg");
}

/* What others see of the machine is not changed unasked, also for root. */
static void priority_is_asked_for(void **state)
{
    BENCH("--quick", "--json", "--peers", "none", "--bench", "ct_get");
    assert_status(0);
    assert_contains(o.out, "\"preferred\": false");
    BENCH("--quick", "--json", "--peers", "none", "--bench", "ct_get", "--prefer");
    assert_status(0);
    int group = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);
    bool may = geteuid() == 0 && group >= 0;
    assert_contains(may ? o.out : o.err, may ? "\"preferred\": true" : "--prefer");
    close(group);
}

static void tables_name_targets_and_what_is_not_measured(void **state)
{
    if (!two_cores()) {
        skip();
    }
    BENCH("--quick", "--peers", "none", "--bench", "put_latency,match", "--out", "tables");
    assert_status(0);
    assert_contains(o.out, "put_latency: put, received by PtlCTWait: half round trip, ns (");
    assert_contains(o.out, "match: search alone");
    assert_contains(o.out, "Raw ping-pong: ");
    assert_contains(o.out, "8 B put, half round trip / raw ping-pong");
    assert_contains(o.out, "not measured");
    assert_contains(o.out, "Drawn: tables/bench.svg");
    assert_null(strstr(o.out, "message_rate:"));
    assert_svg("tables/bench.svg");
}

static void a_folder_of_benches_is_all_of_them(void **state)
{
    if (!two_cores()) {
        skip();
    }
    BENCH("--quick", "--rounds", "1", "--peers", "none", "--bench", "spin,ct_get", "--out", "spin");
    assert_status(0);
    assert_contains(o.out, "spin/strided: ");
    assert_contains(o.out, "spin/raid5: ");
    assert_contains(o.out, "ct_get: ");
    assert_null(strstr(o.out, "put_latency: "));
    assert_svg("spin/bench.svg");
}

static void sizes_and_rounds_are_those_asked_for(void **state)
{
    if (!two_cores()) {
        skip();
    }
    BENCH("--quick", "--json", "--peers", "none", "--bench", "put_latency,bandwidth", "--sizes",
          "3,5000", "--rounds", "2");
    assert_status(0);
    assert_contains(o.out, "\"rounds\": 2,");
    assert_row("put_latency", 3, "raw");
    assert_row("put_latency", 5000, NULL);
    assert_row("bandwidth", 3, "memcpy");
    assert_row("bandwidth", 5000, "memcpy");
    assert_null(strstr(o.out, "\"size\": 8,"));
}

static void one_core_leaves_out_what_needs_two(void **state)
{
    cpu_set_t set, one;
    assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; i++) {
        if (CPU_ISSET(i, &set)) {
            CPU_SET(i, &one);
        }
    }
    assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
    BENCH("--quick", "--peers", "none", "--bench", "same_core,put_latency");
    assert_status(0);
    assert_contains(o.out, "one core only: everything between two cores is left out");
    assert_contains(o.out, "same_core: ");
    assert_null(strstr(o.out, "put_latency: "));
    BENCH("--quick", "--json", "--peers", "none", "--bench", "same_core,put_latency");
    assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
    assert_status(0);
    assert_json();
    assert_row("same_core", 8, "futex");
    assert_svg("bench-out/bench.svg");
}

/* ---- Subjects that misbehave ---- */

#define FEW "--quick", "--json", "--peers", "none", "--bench", "put_latency,bandwidth"

static void a_subject_of_the_command_line_is_a_peer(void **state)
{
    if (!two_cores()) {
        skip();
    }
    BENCH(FEW, "--subject", subject("good", "well"));
    assert_status(0);
    assert_json();
    assert_row("put_latency", 8, "good");
    assert_row("bandwidth", 65536, "good");
    assert_null(find_row("put_latency", 65536, "good")); /* it cannot do that */
    assert_true(becomes(left_over, 0, 0));
}

static void failures_are_reported_and_all_else_goes_on(void **state)
{
    if (!two_cores()) {
        skip();
    }
    BENCH(FEW, "--limit", "10", "--subject", subject("hanging", "hang"), "--subject",
          subject("crashing", "crash"), "--subject", subject("leaving", "leave"), "--subject",
          subject("failing", "error"), "--subject", subject("spoiling", "wrong"), "--subject",
          subject("good", "well"));
    assert_status(0); /* Pinwheel did not fail */
    assert_json();
    assert_contains(o.out, "\"subject\": \"hanging\"");
    assert_contains(o.out, "rank 1 hangs: no answer within ");
    assert_contains(o.out, "was killed by signal 6 (Aborted)");
    assert_contains(o.out, "exited with status 7; last line: fake: these are its last words");
    assert_contains(o.out, "rank 1: an error as ordered");
    assert_contains(o.out, "rank 0: wrong data: of 32 bytes those at 16");
    assert_contains(o.out, "\"work\": \"put_latency, 8 B\"");
    /* what they can do is measured all the same */
    assert_row("bandwidth", 65536, "hanging");
    assert_row("bandwidth", 65536, "crashing");
    assert_row("bandwidth", 65536, "leaving");
    assert_row("put_latency", 8, "good");
    assert_row("put_latency", 8, "raw");
    assert_null(find_row("put_latency", 8, "hanging"));
    assert_null(find_row("put_latency", 8, "spoiling"));
    assert_true(becomes(left_over, 0, 0));
}

static void those_that_do_not_start_are_left_out(void **state)
{
    if (!two_cores()) {
        skip();
    }
    BENCH(FEW, "--limit", "2", "--subject", subject("mute", "mute"), "--subject",
          subject("gone", "exit"), "--subject", subject("refusing", "refuse"), "--subject",
          "absent=no-such-program-anywhere");
    assert_status(0);
    assert_json();
    assert_contains(o.out, "does not start: rank 0 hangs: no answer within 2 s");
    assert_contains(o.out, "does not start: exited with status 3");
    assert_contains(o.out, "does not feel like it");
    assert_contains(o.out, "no-such-program-anywhere is not installed");
    assert_row("put_latency", 8, "raw");
    assert_true(becomes(left_over, 0, 0));
}

static void a_peer_that_is_missing_is_named_with_its_package(void **state)
{
    if (!two_cores()) {
        skip();
    }
    char path[8192];
    const char *before = getenv("PATH");
    snprintf(path, sizeof(path), "%s", before);
    setenv("PATH", "/no/such/folder", 1); /* and so without mpirun */
    BENCH("--quick", "--bench", "match", "--peers", "mpich");
    assert_status(0);
    BENCH("--quick", "--bench", "put_latency", "--peers", "mpich");
    setenv("PATH", path, 1);
    assert_status(0);
    assert_contains(o.out,
                    "Left out\n  mpich: mpirun.mpich is not installed; Debian packages: mpich");
}

static void without_plugins_mpi_over_pinwheel_is_not_measured(void **state)
{
    char folder_of_none[4096];
    if (!two_cores()) {
        skip();
    }
    assert_non_null(getcwd(folder_of_none, sizeof(folder_of_none)));
    BENCH("--quick", "--bench", "ct_get,mpi_latency,mpi_put", "--peers", "openmpi-portals",
          "--openmpi-plugins", folder_of_none);
    assert_status(0);
    assert_contains(o.out, "not measured: no mca_mtl_portals4.so and mca_osc_portals4.so in ");
    assert_contains(o.out, "build them with tests/clients/build_openmpi.sh");
    assert_int_equal(count_of("  openmpi-portals: no mca_mtl_portals4.so"), 1);
    assert_contains(o.out, "ct_get: ");
    assert_null(strstr(o.out, "mpi_latency: "));
}

static void a_killed_conductor_leaves_nothing_behind(void **state)
{
    if (!two_cores()) {
        skip();
    }
    start((const char *const[]){FEW, "--limit", "600", "--subject", subject("hanging", "hang"),
                                NULL});
    /* the command, its child, the keeper, two ranks, the child of one */
    assert_true(becomes(left_over, 6, 6));
    usleep(100000);
    kill(o.pid, SIGKILL);
    outcome_end(&o);
    assert_true(becomes(left_over, 0, 0));
}

/* ---- Bad input ---- */

static void bad_values_are_named_with_what_would_be_right(void **state)
{
    static const char *const cases[][3] = {
        {"--rounds", "0", "--rounds 0: must be a whole number from 1 to 1000"},
        {"--bench", "put_latency,nonsense",
         "--bench put_latency,nonsense: there is no \"nonsense\""},
        {"--bench", "spin/", "--bench spin/: there is no \"spin/\""},
        {"--bench", "", "--bench : there is no \"\""},
        {"--peers", "ours", "--peers ours: there is no \"ours\""},
        {"--sizes", "8,", "--sizes 8,: must be whole numbers from 1 to 4194304"},
        {"--sizes", "0", "--sizes 0: must be whole numbers"},
        {"--sizes", "4194305", "--sizes 4194305: must be whole numbers"},
        {"--sizes", "-8", "--sizes -8: must be whole numbers"},
        {"--limit", "0", "--limit 0: must be a whole number from 1 to 3600"},
        {"--subject", "name", "--subject name: must be NAME=COMMAND"},
        {"--subject", "=command", "--subject =command: must be NAME=COMMAND"},
        {"--subject", "name= ", "--subject name= : has no command"},
        {"--subject", "raw=true", "--subject raw=true: there is a subject of that name already"},
        {"--openmpi-plugins", "plugins", "--openmpi-plugins plugins: must begin with /"},
        {"--openmpi-plugins", "/no/such/folder", "--openmpi-plugins /no/such/folder: is no folder"},
        {"--out", "/dev/null", "--out /dev/null: is no folder"},
        {"--out", "no/such/folder", "--out no/such/folder: No such file"},
        {"--nonsense", "", "unknown option --nonsense"},
        {"operand", "", "operand: takes no operand"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        BENCH(cases[i][0], cases[i][1]);
        assert_string_equal(o.out, "");
        assert_contains(o.err, "pinwheel bench: ");
        assert_contains(o.err, cases[i][2]);
        assert_status(2);
    }
}

static void a_full_disk_is_told(void **state)
{
    if (access("/dev/full", W_OK) != 0) {
        skip();
    }
    assert_int_equal(mkdir("full", 0700), 0);
    assert_int_equal(symlink("/dev/full", "full/bench.svg"), 0);
    BENCH("--quick", "--peers", "none", "--bench", "same_core", "--out", "full");
    assert_status(1);
    assert_contains(o.err, "--out: full/bench.svg: No space left on device");
}

static void the_list_names_benches_and_subjects(void **state)
{
    BENCH("--list");
    assert_status(0);
    assert_contains(o.out, "put_latency ");
    assert_contains(o.out, "ucx-posix ");
    BENCH("--help");
    assert_status(0);
    assert_contains(o.out, "--rounds N");
}

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *where)
{
    return remove(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quick_run_has_all_rows),
        cmocka_unit_test(priority_is_asked_for),
        cmocka_unit_test(tables_name_targets_and_what_is_not_measured),
        cmocka_unit_test(a_folder_of_benches_is_all_of_them),
        cmocka_unit_test(sizes_and_rounds_are_those_asked_for),
        cmocka_unit_test(one_core_leaves_out_what_needs_two),
        cmocka_unit_test(a_subject_of_the_command_line_is_a_peer),
        cmocka_unit_test(failures_are_reported_and_all_else_goes_on),
        cmocka_unit_test(those_that_do_not_start_are_left_out),
        cmocka_unit_test(a_peer_that_is_missing_is_named_with_its_package),
        cmocka_unit_test(without_plugins_mpi_over_pinwheel_is_not_measured),
        cmocka_unit_test(a_killed_conductor_leaves_nothing_behind),
        cmocka_unit_test(bad_values_are_named_with_what_would_be_right),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(the_list_names_benches_and_subjects),
    };
    if (argc != 3 || mkdtemp(folder) == NULL || chdir(folder) != 0) {
        fprintf(stderr, "usage: command PINWHEEL FAKE, both absolute, in a folder that is "
                        "writable\n");
        return 2;
    }
    pinwheel = argv[1];
    fake = argv[2];
    snprintf(token, sizeof(token), "bench-token-%d", getpid());
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chdir("..") == 0) {
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
    return failed;
}
