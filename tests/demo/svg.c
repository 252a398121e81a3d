/* SPDX-License-Identifier: BSD-3-Clause */
/* The SVG writer, and the checker that the other tests look at pictures with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pinwheel/util/svg.h"
#include "svg_check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void the_checker_tells_svg_from_other_text(void **state)
{
    static const char *const good[] = {
        "<svg/>",
        "<?xml version=\"1.0\"?>\n<svg a=\"1\" b-c=\"&amp;\"><g>x &lt; y</g><p /></svg>\n"};
    static const char *const bad[] = {"",
                                      "x",
                                      "<g/>",
                                      "<svg>",
                                      "<svg></g>",
                                      "<svg/><svg/>",
                                      "<svg a=1/>",
                                      "<svg a=\"<\"/>",
                                      "<svg>&</svg>",
                                      "</svg>",
                                      "<svg>&nbsp;</svg>",
                                      "<svg><g></svg></g>",
                                      "<svg a/>",
                                      "<svg>\x01</svg>",
                                      "<svg/>x",
                                      "<svg",
                                      "<svg a=\"1"};
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_null(svg_check(good[i]));
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (svg_check(bad[i]) == NULL) {
            fail_msg("\"%s\" is taken for SVG", bad[i]);
        }
    }
}

static void any_text_makes_legal_svg(void **state)
{
    static char text[65536];
    char path[] = "demo-svg-XXXXXX";
    struct svg s;
    const struct svg_point points[] = {{1, 2}, {3, 4}, {5, -6}};
    const char *nasty = "a<b>&\"c'\x01\x7f\xff\xc3\xa9 ]]>";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_int_equal(svg_open(&s, path, 100, 50, nasty, nasty, ".a { fill: red }\n"), 0);
    svg_text(&s, "a", points[0], "%s", nasty);
    svg_text_up(&s, "a b", points[1], nasty);
    svg_hint(&s, "a", 1, 2, 3, 4, nasty);
    svg_rect(&s, "a", 1, 2, 3, 4);
    svg_line(&s, "a", points[0], points[1]);
    svg_polyline(&s, "a", points, 3);
    svg_polygon(&s, "a", points, 3);
    svg_circle(&s, "a", points[2], 7);
    assert_int_equal(svg_close(&s), 0);
    FILE *f = fopen(path, "re");
    assert_non_null(f);
    text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
    fclose(f);
    unlink(path);
    const char *wrong = svg_check(text);
    if (wrong != NULL) {
        fail_msg("no SVG from \"%.40s\" on", wrong);
    }
    assert_non_null(strstr(text, ">a&lt;b&gt;&amp;&quot;c'\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"
                                 "\xc3\xa9 ]]&gt;</text>"));
}

static void failures_to_write_are_told(void **state)
{
    struct svg s;
    assert_int_equal(svg_open(&s, "no/such/folder/a.svg", 1, 1, "", "", ""), -1);
    assert_int_equal(errno, ENOENT);
    if (access("/dev/full", W_OK) == 0) {
        assert_int_equal(svg_open(&s, "/dev/full", 1, 1, "", "", ""), 0);
        assert_int_equal(svg_close(&s), -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_checker_tells_svg_from_other_text),
        cmocka_unit_test(any_text_makes_legal_svg),
        cmocka_unit_test(failures_to_write_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
