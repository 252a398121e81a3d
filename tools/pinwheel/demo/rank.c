/* SPDX-License-Identifier: BSD-3-Clause */
/* The two ranks of the demo: rank 0 sends commands, measures and reports; rank 1 carries the
 * commands out. */
#include "base/options.h"
#include "demo.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void demo_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO)) {
        return;
    }
    fputs("\r\033[K", stderr);
    if (format != NULL) {
        va_list args;
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
    }
    fflush(stderr);
}

/* ---- Rank 1 ---- */

static int serve(struct demo_link *l, const struct demo_options *o, struct demo_pinged *p)
{
    struct demo_command c;
    while (link_receive(l, &c, sizeof(c)) == 0) {
        switch (c.kind) {
        case DEMO_PING:
            if (demo_pinged_serve(l, p, &c) != 0) {
                return -1;
            }
            break;
        case DEMO_SCAN:
            if (demo_scan_serve(l, &o->filter, &c) != 0) {
                return -1;
            }
            break;
        case DEMO_END:
            c = (struct demo_command){.kind = DEMO_READY, .wrong = p->wrong};
            return link_send(l, &c, sizeof(c));
        default:
            return link_say(l, "command %d is not one that it knows", (int)c.kind);
        }
    }
    return -1;
}

static int rank_1(struct demo_link *l, const struct demo_options *o)
{
    struct demo_pinged p;
    if (demo_pinged_open(l, o->largest, &p) != 0 || serve(l, o, &p) != 0) {
        return 1; /* the launcher ends the other rank */
    }
    link_close(l);
    demo_pinged_close(&p);
    return 0;
}

/* ---- Rank 0 ---- */

/* Describes, from the library's options, how payloads get to the other process. */
static void describe(struct demo_report *r, const struct demo_link *l)
{
    static const char *const large[] = {"larger ones through packet cells",
                                        "larger ones through packet cells",
                                        "larger ones read from the sender's memory"};
    static char path[128];
    static struct options options;
    char ignored[512];
    /* cannot fail, since PtlInit() has accepted the options */
    options_load(&options, ignored, sizeof(ignored));
    r->packet = l->packet;
    r->fabric = "shm";
    snprintf(path, sizeof(path), "payloads to %" PRId64 " bytes in the ring, %s",
             options.number[OPT_SHM_INLINE], large[options.number[OPT_SHM_LARGE] % 3]);
    r->path = path;
    snprintf(r->machine, sizeof(r->machine),
             "2 processes, %d core%s (%.40s), packets of %" PRIu64 " bytes, fabric %s: %s",
             r->options->cores, r->options->cores == 1 ? "" : "s", r->options->core_list, r->packet,
             r->fabric, r->path);
}

static int conduct(struct demo_link *l, struct demo_report *r)
{
    struct demo_command c = {.kind = DEMO_END};
    if (demo_pingpong(l, r->options, &r->pingpong) != 0 ||
        demo_scan(l, r->options, &r->scan) != 0 || link_send(l, &c, sizeof(c)) != 0 ||
        link_receive(l, &c, sizeof(c)) != 0) {
        return -1;
    }
    r->pingpong.wrong += c.wrong;
    if (c.wrong != 0 && r->pingpong.first_wrong[0] == '\0') {
        snprintf(r->pingpong.first_wrong, sizeof(r->pingpong.first_wrong),
                 "%" PRIu64 " bytes in the memory of rank 1", c.wrong);
    }
    return 0;
}

static int rank_0(struct demo_link *l, const struct demo_options *o)
{
    static struct demo_report r;
    r.options = o;
    snprintf(r.pingpong_svg, sizeof(r.pingpong_svg), "%s/pingpong.svg", o->out);
    snprintf(r.histogram_svg, sizeof(r.histogram_svg), "%s/histogram.svg", o->out);
    describe(&r, l);
    if (conduct(l, &r) != 0) {
        return 1;
    }
    link_close(l);
    if (demo_plot(&r) != 0 || demo_histogram(&r) != 0 ||
        (o->json ? demo_report_json(&r) : demo_report_text(&r)) != 0) {
        return 1;
    }
    return demo_all_right(&r) ? 0 : 1;
}

int demo_rank(const struct demo_options *o)
{
    static struct demo_link link;
    if (link_open(&link) != 0) {
        return 1;
    }
    return link.rank == 0 ? rank_0(&link, o) : rank_1(&link, o);
}
