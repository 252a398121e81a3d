/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sources of frames: an interface, or a file. A source brings frames that rules have matched, sends
 * frames, and gives to the kernel what handlers pass on.
 *
 *      raw_source_ops      xdp: an interface, by AF_XDP        pcap: a file, by libpcap
 *                          packet: the same, by AF_PACKET      tap: the kernel, without a card
 *
 *      receive() ──► frames: memory of the source, until ──► done() with what becomes of it:
 *                                                               RAW_DROP, RAW_REPLY, RAW_PASS
 *
 * Frames of one execution context come by a queue of their own where the source has one, so that a
 * flood for one context takes nothing from the others.
 *
 * A source belongs to one thread. Calls return 0 or a count, or a negative errno.
 */
#ifndef RAW_SOURCE_H
#define RAW_SOURCE_H

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "raw/rules/rules.h"

enum { RAW_CONTEXTS = 16, RAW_BATCH = 64 };

struct raw_frame {
    uint8_t *bytes;
    uint32_t length;
    int verdict;   /* rules.h; never RAW_NONE */
    uint64_t time; /* nanoseconds, of a clock that never goes back */
    uint64_t slot; /* of the source */
};

enum raw_fate { RAW_DROP, RAW_REPLY, RAW_PASS };

/* Which frames a source is to bring: those that match a set of the rules. Each set belongs to one
 * of the execution contexts. */
struct raw_wanted {
    const struct raw_rules *rules;
    unsigned contexts;          /* 0: no set is for handlers */
    uint8_t context[RAW_SETS];  /* the context of each set that is for handlers */
    uint16_t counter[RAW_SETS]; /* the counter of each set */
};

/* What a source counts; kernel counts are 0 where it has none. */
struct raw_source_counts {
    uint64_t unmatched;    /* frames that no set matched, as far as the source sees them */
    uint64_t sent, passed; /* frames that left, and that the kernel got */
    uint64_t send_full;    /* frames that found no room to leave */
    uint64_t pass_failed;  /* frames that the kernel did not take */
    uint64_t too_long;     /* frames of the source beyond RAW_FRAME_MOST, or below 14 bytes */
    /* by the sets' counters, in the kernel, with those that were dropped there */
    struct raw_counter matched[RAW_COUNTERS];
};

/* raw_source_count() counts a frame for the set that has matched it. */
static inline void raw_source_count(struct raw_source_counts *counts,
                                    const struct raw_wanted *wanted, int verdict, uint32_t length)
{
    struct raw_counter *c = &counts->matched[wanted->counter[(unsigned)verdict >> 1]];
    c->frames++;
    c->bytes += length;
}

struct raw_source;

struct raw_source_ops {
    /* receive() brings up to `most` frames of a context (of context 0 none, if there are none: then
     * it only reads on); 0: none is there now; -ENODATA: there will be none any more. Other errors
     * end the source. */
    int (*receive)(struct raw_source *s, unsigned context, struct raw_frame *frames, unsigned most);
    /* done() ends a frame; RAW_REPLY sends its first `length` bytes. */
    void (*done)(struct raw_source *s, const struct raw_frame *frame, enum raw_fate fate,
                 uint32_t length);
    /* room() returns memory for a frame that is to be sent, which send() sends; NULL: none is free.
     * What has been taken and is not sent stays for the next room(). */
    uint8_t *(*room)(struct raw_source *s, uint32_t length);
    int (*send)(struct raw_source *s, uint32_t length);
    /* flush() makes the kernel begin with what was sent. */
    void (*flush)(struct raw_source *s);
    /* wait() sleeps until frames are there, or for so long. */
    int (*wait)(struct raw_source *s, int milliseconds);
    /* rules() puts other rules in place of those there are; frames meet the one or the other. */
    int (*rules)(struct raw_source *s, const struct raw_wanted *wanted, char error[RAW_ERROR]);
    void (*counts)(struct raw_source *s, struct raw_source_counts *counts);
    /* fds() stores the descriptors that are readable when frames are there, at most `most`, and
     * returns their number; lost() returns how many frames of a context found no room. NULL: only
     * those of interfaces and taps have them. */
    unsigned (*fds)(struct raw_source *s, int *fds, unsigned most);
    uint64_t (*lost)(struct raw_source *s, unsigned context);
    uint64_t (*now)(struct raw_source *s); /* the clock of its frames */
    void (*close)(struct raw_source *s);
};

struct raw_source {
    const struct raw_source_ops *ops;
    const char *name;    /* of its kind */
    uint32_t frame_most; /* bytes of the longest frame it sends */
    bool can_pass;       /* the kernel can be given frames */
};

/* raw_pcap_open() reads frames from a file and writes those that are sent to another, unless `out`
 * is NULL. 0; -1 with the error set. */
int raw_pcap_open(struct raw_source **source, const char *in, const char *out,
                  const struct raw_wanted *wanted, char error[RAW_ERROR]);

enum raw_mode { RAW_MODE_AUTO, RAW_MODE_NATIVE, RAW_MODE_SKB };

struct raw_iface_options {
    const char *iface;
    enum raw_mode mode; /* of AF_XDP */
    bool yes;           /* also what may cut off the default route */
    bool spin;          /* wait() does not sleep */
    bool observe;       /* AF_PACKET: the kernel handles all frames as well */
};

/* These open an interface; `said` gets a line that says how. -1 with the error set. */
int raw_xdp_open(struct raw_source **source, const struct raw_iface_options *options,
                 const struct raw_wanted *wanted, char said[RAW_ERROR], char error[RAW_ERROR]);
int raw_packet_open(struct raw_source **source, const struct raw_iface_options *options,
                    const struct raw_wanted *wanted, char said[RAW_ERROR], char error[RAW_ERROR]);
/* raw_tap_open() makes the interface, if it is not there, which goes with the process. */
int raw_tap_open(struct raw_source **source, const struct raw_iface_options *options,
                 const struct raw_wanted *wanted, char said[RAW_ERROR], char error[RAW_ERROR]);

#endif
