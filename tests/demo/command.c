/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel demo` as its users see it. Usage: command PINWHEEL [SPOIL], SPOIL
 * being the library that makes results wrong (spoil.c).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "json_check.h"
#include "outcome.h"
#include "svg_check.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *pinwheel, *spoil;
static struct outcome o;
static char folder[] = "demo-command-XXXXXX"; /* the tests' working directory */

/* Runs `pinwheel demo` with words separated by blanks; the commands here need no
 * quoting. */
static void demo(const char *options)
{
    char words[1024];
    const char *argv[32] = {pinwheel, "demo"};
    int count = 2;
    snprintf(words, sizeof(words), "%s", options);
    for (char *word = strtok(words, " "); word != NULL && count < 31; word = strtok(NULL, " ")) {
        argv[count++] = strcmp(word, "''") == 0 ? "" : word;
    }
    outcome_start(&o, argv);
    outcome_end(&o);
}

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
        fail_msg("no JSON from \"%.40s\" on", wrong);
    }
}

static char *read_text(const char *path)
{
    static char text[1 << 20];
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        fail_msg("%s was not written", path);
    }
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    return text;
}

static void assert_svg(const char *path)
{
    char *text = read_text(path);
    const char *wrong = svg_check(text);
    if (wrong != NULL) {
        fail_msg("%s: no SVG from \"%.40s\" on", path, wrong);
    }
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "\"inf"));
    char data[256];
    snprintf(data, sizeof(data), "%.*s.csv", (int)(strlen(path) - strlen(".svg")), path);
    const char *head = strchr(read_text(data), '\n'); /* its numbers: a head, and lines behind it */
    assert_non_null(head);
    assert_true(strlen(head) > 1);
}

/* The number behind `name`, behind `mark` in the output. */
static uint64_t number_behind(const char *mark, const char *name)
{
    const char *at = strstr(o.out, mark);
    at = at != NULL ? strstr(at, name) : NULL;
    if (at == NULL) {
        fail_msg("no %s behind %s in %s", name, mark, o.out);
    }
    return strtoull(at + strlen(name), NULL, 10);
}

/* ---- It works ---- */

static void a_quick_run_is_verified(void **state)
{
    demo("--quick --json");
    assert_status(0);
    assert_json();
    assert_contains(o.out, "\"verified\": true");
    assert_contains(o.out, "\"equal\": true");
    assert_contains(o.out, "\"fabric\": \"shm\"");
    assert_contains(o.out, "\"way\": \"streamed\"");
    assert_int_equal(number_behind("\"pingpong\"", "\"bytes_wrong\": "), 0);
    /* 8 bytes to 256 KiB, four ways, one ping before the 60 that are timed */
    assert_int_equal(number_behind("\"pingpong\"", "\"bytes_checked\": "),
                     (2 * 262144 - 8) * 4 * 61);
    assert_svg("demo-out/pingpong.svg");
    assert_svg("demo-out/histogram.svg");
    assert_string_equal(o.err, ""); /* no progress where there is no terminal */
}

static void tables_say_the_same(void **state)
{
    demo("--iterations 2 --sizes 1:10000 --out tables");
    assert_status(0);
    assert_contains(o.out, "packets of 4096 bytes, fabric shm");
    assert_contains(o.out, "10000 B");
    assert_contains(o.out, "all right.");
    assert_contains(o.out, "Histogram and words are those of a plain count on the host.");
    assert_contains(o.out, "Drawn: tables/pingpong.svg, tables/histogram.svg");
    assert_svg("tables/pingpong.svg");
    assert_svg("tables/histogram.svg");
}

static void other_packets_and_paths_do_too(void **state)
{
    static const char *const settings[][2] = {{"PINWHEEL_PACKET_SIZE", "64"},
                                              {"PINWHEEL_PACKET_SIZE", "65536"},
                                              {"PINWHEEL_SHM_LARGE", "vm"},
                                              {"PINWHEEL_SHM_CELLS", "2"}};
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        setenv(settings[i][0], settings[i][1], 1);
        demo("--iterations 4 --sizes 8:100000 --json");
        assert_status(0);
        assert_contains(o.out, "\"verified\": true");
        unsetenv(settings[i][0]);
    }
}

static void a_size_alone_is_a_plot_too(void **state)
{
    demo("--iterations 1 --sizes 64:64");
    assert_status(0);
    assert_svg("demo-out/pingpong.svg");
}

/* ---- Files ---- */

/* Bytes that are no text, and a word over each multiple of 4096, cut after
 * another letter each time. */
static void make_file(const char *path, size_t length, uint8_t *bytes)
{
    uint64_t x = length + 1;
    for (size_t i = 0; i < length; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        uint8_t c = (uint8_t)(x >> 56);
        bytes[i] = c < 128 ? c : 0; /* bytes beyond ASCII would be part of words */
    }
    for (size_t edge = 4096, cut = 0; edge + 10 < length; edge += 4096, cut = (cut + 1) % 9) {
        memcpy(bytes + edge - cut - 1, ".Boundary.", 10);
    }
    FILE *f = fopen(path, "we");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, length, f), length);
    assert_int_equal(fclose(f), 0);
}

static bool is_word_byte(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static uint64_t count_word(const uint8_t *bytes, size_t length, const char *word)
{
    size_t n = strlen(word);
    uint64_t found = 0;
    for (size_t at = 0; at + n <= length; at++) {
        found += strncasecmp((const char *)bytes + at, word, n) == 0 &&
                 (at == 0 || !is_word_byte(bytes[at - 1])) &&
                 (at + n == length || !is_word_byte(bytes[at + n]));
    }
    return found;
}

static void check_counts(const uint8_t *bytes, size_t length)
{
    static const char *const words[] = {"boundary", "a", "Z"};
    uint64_t histogram[256] = {0};
    char mark[64];
    for (size_t i = 0; i < length; i++) {
        histogram[bytes[i]]++;
    }
    for (int i = 0; i < 256; i++) {
        snprintf(mark, sizeof(mark), "\"byte\": %d,", i);
        if (histogram[i] != 0) {
            assert_int_equal(number_behind(mark, "\"by_handlers\": "), histogram[i]);
            assert_int_equal(number_behind(mark, "\"on_host\": "), histogram[i]);
        } else {
            assert_null(strstr(o.out, mark));
        }
    }
    for (size_t w = 0; w < 3; w++) {
        uint64_t n = count_word(bytes, length, words[w]);
        snprintf(mark, sizeof(mark), "\"word\": \"%s\"", words[w]);
        assert_int_equal(number_behind(mark, "\"by_handlers\": "), n);
        assert_int_equal(number_behind(mark, "\"on_host\": "), n);
    }
    assert_int_equal(number_behind("\"text\"", "\"bytes\": "), length);
}

static void files_of_all_lengths_are_counted(void **state)
{
    static const size_t lengths[] = {0,     1,     4095,    4096,    4097,
                                     32768, 32769, 1 << 20, 1048577, 3000000};
    uint8_t *bytes = malloc(3000001);
    assert_non_null(bytes);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        make_file("file", lengths[i], bytes);
        demo("--iterations 1 --sizes 8:8 --file file --words boundary,a,Z --json");
        assert_status(0);
        assert_json();
        assert_contains(o.out, "\"equal\": true");
        check_counts(bytes, lengths[i]);
        assert_svg("demo-out/histogram.svg");
    }
    free(bytes);
}

static void words_may_be_no_ascii(void **state)
{
    FILE *f = fopen("umlaut", "we");
    fputs("Gr\xc3\xb6\xc3\x9f"
          "e gr\xc3\xb6\xc3\x9f"
          "e gr\xc3\xb6\xc3\x9f"
          "er <a&b>",
          f);
    fclose(f);
    demo("--iterations 1 --sizes 8:8 --file umlaut --words gr\xc3\xb6\xc3\x9f"
         "e,a --json");
    assert_status(0);
    assert_json();
    assert_int_equal(number_behind("\"gr\xc3\xb6\xc3\x9f"
                                   "e\"",
                                   "\"by_handlers\": "),
                     2);
    assert_svg("demo-out/histogram.svg");
}

/* ---- It finds what is wrong ---- */

static void wrong_bytes_and_counts_are_found(void **state)
{
    if (spoil == NULL) {
        skip();
    }
    setenv("LD_PRELOAD", spoil, 1);
    setenv("DEMO_SPOIL", "nothing", 1);
    demo("--quick --json");
    assert_status(0);
    setenv("DEMO_SPOIL", "byte", 1);
    demo("--quick --json");
    assert_status(1);
    assert_json();
    assert_contains(o.out, "\"verified\": false");
    assert_contains(o.out, "\"equal\": true");
    assert_true(number_behind("\"pingpong\"", "\"bytes_wrong\": ") > 0);
    demo("--quick");
    assert_status(1);
    assert_contains(o.out, "WRONG, first 1 of the ");
    setenv("DEMO_SPOIL", "count", 1);
    demo("--quick --json");
    assert_status(1);
    assert_contains(o.out, "\"verified\": false");
    assert_contains(o.out, "\"equal\": false");
    assert_int_equal(number_behind("\"pingpong\"", "\"bytes_wrong\": "), 0);
    demo("--quick");
    assert_status(1);
    assert_contains(o.out, "WRONG: 1 of 256 byte counts differ");
    assert_svg("demo-out/histogram.svg");
    unsetenv("LD_PRELOAD");
    unsetenv("DEMO_SPOIL");
}

/* ---- Bad input ---- */

static void bad_values_are_named_with_what_would_be_right(void **state)
{
    static const char *const cases[][2] = {
        {"--file no/such/file", "--file no/such/file: No such file or directory; must be a file"},
        {"--file .", "--file .: is a directory; must be a regular file"},
        {"--file pipe", "--file pipe: is no regular file; must be a regular file"},
        {"--file ''", "--file : No such file"},
        {"--words ''", "--words \"\": has an empty word; must be words with a comma"},
        {"--words a,,b", "--words \"a,,b\": has an empty word"},
        {"--words a,b,", "--words \"a,b,\": has an empty word"},
        {"--words a,c-d", "--words a,c-d: \"c-d\" is no word; a word has letters and digits"},
        {"--words abcdefghijklmnopqrstuvwxyz123456", "has 32 bytes; at most 31"},
        {"--words Free,free", "the word \"free\" is listed twice"},
        {"--words a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", "more than 16 words"},
        {"--sizes 8", "--sizes 8: must be MIN:MAX, for instance 8:262144"},
        {"--sizes 8:", "--sizes 8:: must be MIN:MAX, two whole numbers from 1 to 4194304"},
        {"--sizes :8", "--sizes :8: must be MIN:MAX, two whole numbers"},
        {"--sizes 0:8", "--sizes 0:8: must be MIN:MAX, two whole numbers"},
        {"--sizes 8:4194305", "--sizes 8:4194305: must be MIN:MAX, two whole numbers"},
        {"--sizes -8:8", "--sizes -8:8: must be MIN:MAX, two whole numbers"},
        {"--sizes 8:1k", "--sizes 8:1k: must be MIN:MAX, two whole numbers"},
        {"--sizes 16:8", "--sizes 16:8: MIN must not be larger than MAX; 8:16 would be right"},
        {"--iterations 0", "--iterations 0: must be a whole number from 1 to 1000000"},
        {"--iterations x", "--iterations x: must be a whole number from 1 to 1000000"},
        {"--out /dev/null", "--out /dev/null: is no folder; must be a folder"},
        {"--out no/such/folder", "--out no/such/folder: cannot be made: No such file"},
        {"--nonsense", "unknown option --nonsense; it takes --file PATH,"},
        {"--json=yes", "--json takes no value"},
        {"--sizes", "--sizes needs a value: --sizes MIN:MAX"},
        {"operand", "operand: takes no operand, only options"},
        {"rank 2 0-1", "rank: takes no operand, only options"},
    };
    assert_int_equal(mkfifo("pipe", 0600), 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        demo(cases[i][0]);
        assert_string_equal(o.out, "");
        assert_contains(o.err, "pinwheel demo: ");
        assert_contains(o.err, cases[i][1]);
        assert_status(2);
    }
}

static void a_full_disk_is_told(void **state)
{
    if (access("/dev/full", W_OK) != 0) {
        skip();
    }
    assert_int_equal(mkdir("full", 0700), 0);
    assert_int_equal(symlink("/dev/full", "full/pingpong.svg"), 0);
    demo("--iterations 1 --sizes 8:8 --out full");
    assert_status(1);
    assert_contains(o.err, "--out: full/pingpong.svg: No space left on device");
}

static void help_tells_the_options(void **state)
{
    demo("--help");
    assert_status(0);
    assert_contains(o.out, "--sizes MIN:MAX");
    assert_contains(o.out, "GPL-3");
}

static int remove_entry(const char *path, const struct stat *s, int type, struct FTW *where)
{
    return remove(path);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_quick_run_is_verified),
        cmocka_unit_test(tables_say_the_same),
        cmocka_unit_test(other_packets_and_paths_do_too),
        cmocka_unit_test(a_size_alone_is_a_plot_too),
        cmocka_unit_test(files_of_all_lengths_are_counted),
        cmocka_unit_test(words_may_be_no_ascii),
        cmocka_unit_test(wrong_bytes_and_counts_are_found),
        cmocka_unit_test(bad_values_are_named_with_what_would_be_right),
        cmocka_unit_test(a_full_disk_is_told),
        cmocka_unit_test(help_tells_the_options),
    };
    if (argc < 2 || mkdtemp(folder) == NULL || chdir(folder) != 0) {
        fprintf(stderr,
                "usage: command PINWHEEL [SPOIL], both absolute, in a folder that is writable\n");
        return 2;
    }
    pinwheel = argv[1];
    spoil = argc > 2 ? argv[2] : NULL;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    if (chdir("..") == 0) {
        nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    }
    return failed;
}
