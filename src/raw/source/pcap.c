/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Frames of a capture file (pcap or pcapng, libpcap reads both) and answers to another one. The
 * clock is that of the file, so that equal files give equal results. Rules are those of the
 * reference, since no kernel looks at the frames.
 */
#include "raw/source/source.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"

struct file {
    struct raw_source source;
    pcap_t *in;
    pcap_t *format; /* what the file of answers is like */
    pcap_dumper_t *out;
    struct raw_wanted wanted;
    struct raw_rules rules;
    struct raw_source_counts counts;
    uint64_t now;
    bool held; /* `frame` was read and belongs to `context` */
    bool over;
    unsigned context;
    int verdict;
    uint32_t length;
    uint8_t frame[RAW_FRAME_MOST], answer[RAW_FRAME_MOST];
};

static struct file *file_of(struct raw_source *s)
{
    return container_of(s, struct file, source);
}

/* Reads up to the next frame that a set matches. */
static int read_next(struct file *f)
{
    struct pcap_pkthdr *head;
    const u_char *bytes;
    int rc;
    while ((rc = pcap_next_ex(f->in, &head, &bytes)) == 1) {
        uint64_t time = (uint64_t)head->ts.tv_sec * 1000000000u + (uint64_t)head->ts.tv_usec;
        f->now = time > f->now ? time : f->now;
        if (head->caplen != head->len || head->caplen > RAW_FRAME_MOST ||
            head->caplen < RAW_FRAME_LEAST) {
            f->counts.too_long++;
            continue;
        }
        f->verdict = raw_match(f->wanted.rules, bytes, head->caplen);
        if (f->verdict == RAW_NONE) {
            f->counts.unmatched++;
            continue;
        }
        raw_source_count(&f->counts, &f->wanted, f->verdict, head->caplen);
        if (raw_action(f->wanted.rules, f->verdict) != RAW_HANDLERS) {
            continue;
        }
        memcpy(f->frame, bytes, head->caplen);
        f->length = head->caplen;
        f->context = f->wanted.context[f->verdict >> 1];
        f->held = true;
        return 0;
    }
    f->over = true;
    return rc == PCAP_ERROR_BREAK ? -ENODATA : -EIO;
}

static int file_receive(struct raw_source *s, unsigned context, struct raw_frame *frames,
                        unsigned most)
{
    struct file *f = file_of(s);
    int rc = f->over ? -ENODATA : f->held || most == 0 ? 0 : read_next(f);
    if (rc < 0 || !f->held || f->context != context || most == 0) {
        return rc;
    }
    frames[0] = (struct raw_frame){
        .bytes = f->frame, .length = f->length, .verdict = f->verdict, .time = f->now};
    return 1;
}

static void write_frame(struct file *f, const uint8_t *bytes, uint32_t length)
{
    struct pcap_pkthdr head = {.caplen = length, .len = length};
    head.ts.tv_sec = (time_t)(f->now / 1000000000u);
    head.ts.tv_usec = (suseconds_t)(f->now % 1000000000u);
    if (f->out != NULL) {
        pcap_dump((u_char *)f->out, &head, bytes);
    }
    f->counts.sent++;
}

static void file_done(struct raw_source *s, const struct raw_frame *frame, enum raw_fate fate,
                      uint32_t length)
{
    struct file *f = file_of(s);
    f->held = false;
    if (fate == RAW_REPLY) {
        write_frame(f, frame->bytes, length);
    } else if (fate == RAW_PASS) {
        f->counts.passed++;
    }
}

static uint8_t *file_room(struct raw_source *s, uint32_t length)
{
    return file_of(s)->answer;
}

static int file_send(struct raw_source *s, uint32_t length)
{
    write_frame(file_of(s), file_of(s)->answer, length);
    return 0;
}

static void file_flush(struct raw_source *s)
{
}

static int file_wait(struct raw_source *s, int milliseconds)
{
    return 0;
}

static void set_rules(struct file *f, const struct raw_wanted *wanted)
{
    f->rules = *wanted->rules;
    f->wanted = *wanted;
    f->wanted.rules = &f->rules;
}

static int file_rules(struct raw_source *s, const struct raw_wanted *wanted, char error[RAW_ERROR])
{
    set_rules(file_of(s), wanted);
    return 0;
}

static void file_counts(struct raw_source *s, struct raw_source_counts *counts)
{
    *counts = file_of(s)->counts;
}

static uint64_t file_now(struct raw_source *s)
{
    return file_of(s)->now;
}

static void file_close(struct raw_source *s)
{
    struct file *f = file_of(s);
    if (f->out != NULL) {
        pcap_dump_close(f->out);
    }
    if (f->format != NULL) {
        pcap_close(f->format);
    }
    pcap_close(f->in);
    free(f);
}

static const struct raw_source_ops ops = {
    .receive = file_receive,
    .done = file_done,
    .room = file_room,
    .send = file_send,
    .flush = file_flush,
    .wait = file_wait,
    .rules = file_rules,
    .counts = file_counts,
    .now = file_now,
    .close = file_close,
};

int raw_pcap_open(struct raw_source **source, const char *in, const char *out,
                  const struct raw_wanted *wanted, char error[RAW_ERROR])
{
    char why[PCAP_ERRBUF_SIZE] = "";
    struct file *f = calloc(1, sizeof(*f));
    if (f == NULL) {
        snprintf(error, RAW_ERROR, "no memory");
        return -1;
    }
    f->source = (struct raw_source){&ops, "pcap", RAW_FRAME_MOST, true};
    set_rules(f, wanted);
    f->in = pcap_open_offline_with_tstamp_precision(in, PCAP_TSTAMP_PRECISION_NANO, why);
    if (f->in == NULL) {
        snprintf(error, RAW_ERROR, "--pcap %.80s: %.150s", in, why);
        free(f);
        return -1;
    }
    if (pcap_datalink(f->in) != DLT_EN10MB) {
        snprintf(error, RAW_ERROR, "--pcap %.80s: its frames are not Ethernet's but %s", in,
                 pcap_datalink_val_to_name(pcap_datalink(f->in)));
        file_close(&f->source);
        return -1;
    }
    if (out != NULL) {
        f->format = pcap_open_dead_with_tstamp_precision(DLT_EN10MB, RAW_FRAME_MOST,
                                                         PCAP_TSTAMP_PRECISION_NANO);
        f->out = f->format != NULL ? pcap_dump_open(f->format, out) : NULL;
        if (f->out == NULL) {
            snprintf(error, RAW_ERROR, "--out %.80s: %.150s", out,
                     f->format != NULL ? pcap_geterr(f->format) : "no memory");
            file_close(&f->source);
            return -1;
        }
    }
    *source = &f->source;
    return 0;
}
