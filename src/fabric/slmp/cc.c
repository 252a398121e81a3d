/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Congestion control: how long a channel waits for acknowledgements, and how fast it sends.
 *
 * Retransmission timeout: RFC 6298, with a configured minimum, since the RFC's of one
 * second would be a million round trips of a fast network.
 *
 * Congestion window: by delay first, as in Swift (Kumar et al., SIGCOMM 2020), because
 * queues show in the round trip before they overflow, and because a window that halves at
 * each loss (RFC 5681) gives 1.2 / sqrt(0.01) = 12 packets where one packet in a hundred is
 * lost for reasons other than load. Once a round trip:
 *
 *   delay <= smallest round trip * 1.25 + target     one packet more; before the first
 *                                                    congestion, twice as many
 *   delay above                                      less in proportion, at most by half;
 *                                                    never below WINDOW_FIRST
 *   the line's loss + 2 % of the packets lost        0.7 of it (the 2 % are BBRv2's)
 *   second timeout in a row                          two packets; slow start to a half
 *
 * Loss for other reasons than load does not end when the window shrinks. So after each cut for loss
 * the next WATCH packets are an experiment: if about the same share of them is lost as before, and
 * no more than LINE_MOST, this share is the line's loss. Then the window grows back as fast as in
 * slow start, and that share no longer counts against it. Where a queue overflows, a cut helps.
 * Rounds that lose less lower the line's loss; only an experiment raises it, so that loss which
 * grows slowly with the window is not taken for the line's.
 *
 * Delay alone never makes the window smaller than WINDOW_FIRST. A long round trip often means that
 * the peer gets no processor, rather than a queue, and a smaller window would need hundreds of such
 * round trips for a megabyte. If windows of this size overflow a queue, packets are lost.
 *
 * The smallest round trip is that of the last 5 to 10 seconds, so that a route that became
 * longer does not look like a queue for ever. Packets are spaced over it, too (twice as dense in
 * slow start), in bursts of 16 to 64, which one system call sends; a short packet counts for less.
 * (If they were spaced over the smoothed round trip, a peer that sleeps between bursts would make
 * that long, and so keep the packets too far apart.)
 */
#include "cc.h"

enum {
    WINDOW_FIRST = 16,
    WINDOW_LEAST = 4,
    BURST = 16,
    BURST_MOST = 64,
    ROUND_LEAST = 200,
    WATCH = 500,
    FEW = 3
};

#define PERIOD 5000000000LL
#define LOSS_TOLERATED 0.02
#define LOSS_FACTOR 0.7
#define LINE_MOST 0.2
#define HELPED 0.75
#define DELAY_GAIN 0.8
#define BURST_TIME 100000.0

void slmp_cc_reset(struct slmp_cc *c, const struct slmp_config *config, bool plain)
{
    uint32_t most = plain ? config->plain_window : config->window;
    *c = (struct slmp_cc){.rto = config->rto_initial,
                          .min_now = SLMP_NEVER,
                          .min_before = SLMP_NEVER,
                          .most = most,
                          .threshold = most,
                          .window = plain || most < WINDOW_FIRST ? most : WINDOW_FIRST};
}

int64_t slmp_cc_min(const struct slmp_cc *c)
{
    int64_t least = slmp_earlier(c->min_now, c->min_before);
    return least == SLMP_NEVER ? 0 : least;
}

void slmp_cc_sample(struct slmp_cc *c, const struct slmp_config *config, int64_t rtt, int64_t now)
{
    int64_t off = rtt > c->srtt ? rtt - c->srtt : c->srtt - rtt;
    if (c->srtt == 0) {
        c->srtt = rtt;
        c->rttvar = rtt / 2;
    } else {
        c->rttvar += (off - c->rttvar) / 4;
        c->srtt += (rtt - c->srtt) / 8;
    }
    c->rto = c->srtt + 4 * c->rttvar + config->ack_delay;
    c->rto = c->rto < config->rto_min ? config->rto_min : c->rto;
    c->rto = c->rto > config->rto_max ? config->rto_max : c->rto;
    c->backoff = 0;
    if (now >= c->period_end) {
        c->period_end = now + PERIOD;
        c->min_before = c->min_now;
        c->min_now = rtt;
    }
    c->min_now = slmp_earlier(c->min_now, rtt);
}

int64_t slmp_cc_rto(const struct slmp_cc *c, const struct slmp_config *config)
{
    int64_t rto = c->rto;
    for (unsigned i = 0; i < c->backoff && rto < config->rto_max; i++) {
        rto *= 2;
    }
    return rto < config->rto_max ? rto : config->rto_max;
}

static void shrink(struct slmp_cc *c, double factor, double least)
{
    least = c->window < least ? c->window : least;
    c->window *= factor;
    c->window = c->window < least ? least : c->window;
    c->threshold = c->window;
}

/* Whether a round has lost more than the line does. For so few packets the number lost varies by
 * twice the square root of its mean; the squared comparison saves the root. */
static bool lost_too_much(const struct slmp_cc *c, uint32_t lost, uint32_t all)
{
    double over = lost - all * (c->line + LOSS_TOLERATED) - 1;
    return over > 0 && over * over > 4 * c->line * all;
}

/* Ends the experiment. If the smaller window has lost as much as the one before, the cut was not
 * needed. */
static void end_watch(struct slmp_cc *c)
{
    double lost = (double)c->watch_lost / (c->watch_acked + c->watch_lost);
    c->watching = false;
    if (lost > c->lost_before * HELPED && lost <= LINE_MOST) {
        c->line = lost;
        c->threshold = c->window_before > c->threshold ? c->window_before : c->threshold;
    }
}

/* Ends a round, and makes the window smaller if too much was lost in it. A round of few packets
 * continues in the next one, as it tells too little. */
static void end_round(struct slmp_cc *c, int64_t now)
{
    uint32_t all = c->round_acked + c->round_lost;
    double lost = (double)c->round_lost / (all > 0 ? all : 1);
    c->round_end = now + c->srtt;
    if (all < ROUND_LEAST) {
        return;
    }
    if (lost < c->line) {
        c->line += (lost - c->line) / 8;
    } else if (lost_too_much(c, c->round_lost, all) && (!c->watching || lost > 2 * LINE_MOST)) {
        c->window_before = c->window;
        c->lost_before = lost;
        shrink(c, LOSS_FACTOR, WINDOW_LEAST);
        c->watching = true;
        c->watch_acked = c->watch_lost = 0;
    }
    c->round_acked = 0;
    c->round_lost = 0;
}

/* Handles the first acknowledgement after a timeout has cut the window. If its packet had left
 * before the timeout, that came too early (RFC 4015), and the cut is undone. */
static void end_collapse(struct slmp_cc *c, int64_t rtt, int64_t now)
{
    if (rtt > 0 && now - rtt < c->collapsed_at) {
        c->window = c->threshold = c->window_collapsed;
    }
    c->collapsed_at = 0;
}

static void count_acked(struct slmp_cc *c, uint32_t packets, int64_t now)
{
    c->round_acked += packets;
    c->watch_acked += packets;
    if (c->watching && c->watch_acked + c->watch_lost >= WATCH) {
        end_watch(c);
    }
    if (now >= c->round_end) {
        end_round(c, now);
    }
}

void slmp_cc_acked(struct slmp_cc *c, const struct slmp_config *config, uint32_t packets,
                   int64_t rtt, uint32_t in_flight, int64_t now)
{
    int64_t allowed = slmp_cc_min(c) * 5 / 4 + config->target;
    if (c->collapsed_at != 0) {
        end_collapse(c, rtt, now);
    }
    count_acked(c, packets, now);
    if (rtt > allowed) {
        if (now >= c->backed_off + c->srtt) {
            double over = (double)(rtt - allowed) / (double)rtt;
            shrink(c, 1 - (DELAY_GAIN * over < 0.5 ? DELAY_GAIN * over : 0.5), WINDOW_FIRST);
            c->backed_off = now;
        }
    } else if (in_flight + packets >= c->window / 2) {
        c->window += c->window < c->threshold ? packets : packets / c->window;
    }
    c->window = c->window > c->most ? c->most : c->window;
}

void slmp_cc_lost(struct slmp_cc *c, uint32_t packets)
{
    c->round_lost += packets;
    c->watch_lost += packets;
}

/* A few packets at the end of a message are often lost together, which says nothing about how many
 * more may be in flight: so the window is cut only if more than FEW are lost. */
void slmp_cc_timeout(struct slmp_cc *c, const struct slmp_config *config, uint32_t lost,
                     int64_t now)
{
    if (lost > FEW) {
        c->collapsed_at = now;
        c->window_collapsed = c->window;
        c->threshold = c->window / 2 > WINDOW_LEAST ? c->window / 2 : WINDOW_LEAST;
        c->window = c->most < 2 ? 1 : 2;
    }
    if (slmp_cc_rto(c, config) < config->rto_max) {
        c->backoff++;
    }
}

/* Returns how many packets leave at once: those of BURST_TIME at the given rate. So a fast network
 * needs few bursts a second, and a slow one gets no long ones. */
static double burst_of(const struct slmp_cc *c, double rate)
{
    double size = rate * BURST_TIME;
    size = size < BURST ? BURST : size > BURST_MOST ? BURST_MOST : size;
    return size < c->window / 4 ? size : c->window / 4;
}

/* Counts a packet, `part` of a full one. A whole burst leaves, then none until its share of the
 * round trip is over: packet by packet, each would take a system call of its own. */
void slmp_cc_sent(struct slmp_cc *c, double part, int64_t now)
{
    double dense = c->window < c->threshold ? 2 : 1.25;
    int64_t trip = slmp_cc_min(c);
    double rate = trip > 0 ? c->window * dense / (double)trip : 1;
    if (c->burst == 0) {
        c->burst_begun = now > c->next ? now : c->next;
    }
    c->burst += part;
    if (c->burst >= burst_of(c, rate)) {
        c->next = c->burst_begun + (int64_t)(c->burst / rate);
        c->burst = 0;
    }
}
