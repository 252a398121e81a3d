/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzes capture files and the frames in them, as far as handlers: libpcap reads the file, rules
 * sort its frames to two contexts, and each frame is ended once, in one of the ways there are. The
 * input is a file behind a byte that is odd, or behind one that is even frames, each behind two
 * bytes with its length: of those a fuzzing engine need not find out what a file looks like.
 */
#include "fuzz.h"

#include "raw/source/checksum.h"
#include "raw/source/source.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const char text[] = "set a context one { udp; udp.dport = 1..9330 }\n"
                           "set b context two { slmp\n end slmp.flags & end = end\n"
                           "                    message ip.src, slmp.id }\n"
                           "set c context two { vlan 5 }\n"
                           "set d context two { qinq; tcp }\n"
                           "set e context one { arp }\n"
                           "set f context one { all }\n";

static struct raw_rules rules;
static struct raw_wanted wanted = {.rules = &rules, .contexts = 2};

static void setup(void)
{
    char error[RAW_ERROR];
    MUST(raw_rules_parse(&rules, "rules", text, strlen(text), error) == 0);
    for (unsigned s = 0; s < rules.count; s++) {
        wanted.context[s] = rules.set[s].context[0] == 't';
    }
}

static uint64_t turn(struct raw_source *s, unsigned context, int *rc)
{
    struct raw_frame frames[RAW_BATCH];
    *rc = s->ops->receive(s, context, frames, RAW_BATCH);
    for (int i = 0; i < *rc; i++) {
        struct raw_frame *f = &frames[i];
        enum raw_fate fate = (enum raw_fate)(f->length % 3);
        MUST(f->length >= RAW_FRAME_LEAST && f->length <= RAW_FRAME_MOST);
        MUST(f->verdict == raw_match(&rules, f->bytes, f->length));
        MUST(wanted.context[f->verdict >> 1] == context);
        bool open = raw_checksum_finish(f->bytes, f->length);
        MUST(!open || !raw_checksum_finish(f->bytes, f->length));
        s->ops->done(s, f, fate, f->length);
    }
    return *rc > 0 ? (uint64_t)*rc : 0;
}

static const uint8_t file_head[] = {0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0,
                                    0,    0,    0,    0,    0, 0, 1, 0, 1, 0, 0, 0};

static void put_32(uint8_t *at, size_t value)
{
    for (int i = 0; i < 4; i++) {
        at[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Writes the input as a file, and returns its descriptor. */
static int make_file(const uint8_t *data, size_t size)
{
    int fd = memfd_create("frames", MFD_CLOEXEC);
    MUST(fd >= 0);
    if (size > 0 && (data[0] & 1) != 0) {
        MUST(write(fd, data + 1, size - 1) == (ssize_t)(size - 1));
        return fd;
    }
    MUST(write(fd, file_head, sizeof(file_head)) == (ssize_t)sizeof(file_head));
    for (size_t at = 1; at + 2 < size;) {
        size_t n = (size_t)data[at] << 8 | data[at + 1];
        uint8_t head[16];
        at += 2;
        n = n < size - at ? n : size - at;
        put_32(head, at);
        put_32(head + 4, at);
        put_32(head + 8, n);
        put_32(head + 12, n);
        MUST(write(fd, head, sizeof(head)) == (ssize_t)sizeof(head));
        MUST(write(fd, data + at, n) == (ssize_t)n);
        at += n;
    }
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct raw_source *s = NULL;
    struct raw_source_counts counts;
    char path[64], error[RAW_ERROR] = "";
    if (rules.count == 0) {
        setup();
    }
    int fd = make_file(data, size);
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (raw_pcap_open(&s, path, NULL, &wanted, error) != 0) {
        MUST(error[0] != '\0');
        close(fd);
        return 0;
    }
    uint64_t frames = 0, matched = 0, now = 0;
    int rc[2] = {0, 0};
    while (rc[0] >= 0 || rc[1] >= 0) {
        for (unsigned c = 0; c < 2; c++) {
            frames += turn(s, c, &rc[c]);
            MUST(s->ops->now(s) >= now);
            now = s->ops->now(s);
        }
    }
    MUST(rc[0] == -ENODATA || rc[0] == -EIO);
    s->ops->counts(s, &counts);
    for (size_t i = 0; i < sizeof(counts.matched) / sizeof(counts.matched[0]); i++) {
        matched += counts.matched[i].frames;
    }
    MUST(matched == frames && counts.sent + counts.passed <= frames);
    s->ops->close(s);
    close(fd);
    return 0;
}

/* Some frames that rules know, and every other time as a file. */
size_t fuzz_seed(uint64_t number, uint8_t *data, size_t max)
{
    enum { HEAD = 16, FRAME = 64, COUNT = 4 };
    bool file = number % 2 != 0;
    size_t before = file ? HEAD : 2, at = 1;
    if (max < 1 + sizeof(file_head) + COUNT * (HEAD + FRAME)) {
        return 0;
    }
    data[0] = file;
    if (file) {
        memcpy(data + at, file_head, sizeof(file_head));
        at += sizeof(file_head);
    }
    for (unsigned i = 0; i < COUNT; i++, at += before + FRAME) {
        uint8_t *f = data + at + before;
        memset(data + at, 0, before + FRAME);
        data[at + 1] = FRAME; /* of a frame alone */
        if (file) {
            put_32(data + at, i);
            put_32(data + at + 8, FRAME);
            put_32(data + at + 12, FRAME);
        }
        f[12] = 8;
        f[14] = 0x45;
        f[17] = FRAME - 14;
        f[23] = (number / 2 + i) % 2 == 0 ? 17 : 6;
        f[36] = 0x24;
        f[37] = 0x72;
        f[39] = FRAME - 34;
    }
    return at;
}
