/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TESTS_DEMO_SVG_CHECK_H
#define TESTS_DEMO_SVG_CHECK_H

/* svg_check() returns NULL if `text` is well-formed XML, as far as Pinwheel
 * writes it (elements, quoted attributes, text, the five entities), with <svg>
 * as its root; or the place where it stops being that. */
const char *svg_check(const char *text);

#endif
