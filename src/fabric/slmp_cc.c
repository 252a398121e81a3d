/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long to wait and how fast to send.
 *
 * Retransmission timeout: RFC 6298, with a smallest value that is configured (its one
 * second would be a million round trips of a fast network).
 *
 * Congestion window: by delay first, as in Swift (Kumar et al., SIGCOMM 2020), because
 * queues show in the round trip before they overflow, and because a window that halves at
 * each loss (RFC 5681) gives 1.2 / sqrt(0.01) = 12 packets where one in a hundred is lost
 * for reasons that have nothing to do with load. Once a round trip:
 *
 *   delay <= smallest round trip * 1.25 + target     one packet more; before the first
 *                                                    congestion, twice as many
 *   delay above                                      less in proportion, at most by half
 *   more than 2 % of the packets lost                0.7 of it (the threshold of BBRv2)
 *   second timeout in a row                          two packets; slow start to a half
 *
 * The smallest round trip is that of the last 5 to 10 seconds, so that a route that became
 * longer is not taken for a queue for ever. Packets are spaced over it as well (twice as
 * dense in slow start), in bursts of 16 to 64, which one system call sends; a short packet
 * counts for less. (Over the smoothed one they would be too far apart for good where a
 * peer that sleeps between our bursts is why it is long.)
 */
#include "slmp_engine.h"

enum { WINDOW_FIRST = 16, WINDOW_LEAST = 4, BURST = 16, BURST_MOST = 64, ROUND_LEAST = 200 };

#define PERIOD 5000000000LL
#define LOSS_TOLERATED 0.02
#define LOSS_FACTOR 0.7
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

static void shrink(struct slmp_cc *c, double factor)
{
    c->window *= factor;
    c->window = c->window < WINDOW_LEAST ? WINDOW_LEAST : c->window;
    c->threshold = c->window;
}

/* A round ends: too much was lost in it? Few packets say nothing, so rounds are joined. */
static void end_round(struct slmp_cc *c, int64_t now)
{
    uint32_t all = c->round_acked + c->round_lost;
    c->round_end = now + c->srtt;
    if (all < ROUND_LEAST) {
        return;
    }
    if (c->round_lost > all * LOSS_TOLERATED + 1) {
        shrink(c, LOSS_FACTOR);
    }
    c->round_acked = 0;
    c->round_lost = 0;
}

void slmp_cc_acked(struct slmp_cc *c, const struct slmp_config *config, uint32_t packets,
                   int64_t rtt, uint32_t in_flight, int64_t now)
{
    int64_t allowed = slmp_cc_min(c) * 5 / 4 + config->target;
    c->round_acked += packets;
    if (now >= c->round_end) {
        end_round(c, now);
    }
    if (rtt > allowed) {
        if (now >= c->backed_off + c->srtt) {
            double over = (double)(rtt - allowed) / (double)rtt;
            shrink(c, 1 - (DELAY_GAIN * over < 0.5 ? DELAY_GAIN * over : 0.5));
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
}

void slmp_cc_timeout(struct slmp_cc *c, const struct slmp_config *config)
{
    c->threshold = c->window / 2 > WINDOW_LEAST ? c->window / 2 : WINDOW_LEAST;
    c->window = c->most < 2 ? 1 : 2;
    if (slmp_cc_rto(c, config) < config->rto_max) {
        c->backoff++;
    }
}

/* How many packets leave at once: what the rate gives in BURST_TIME, so that few bursts a
 * second are enough for a fast network and a slow one sees no long ones. */
static double burst_of(const struct slmp_cc *c, double rate)
{
    double size = rate * BURST_TIME;
    size = size < BURST ? BURST : size > BURST_MOST ? BURST_MOST : size;
    return size < c->window / 4 ? size : c->window / 4;
}

/* A whole burst leaves, then nothing until its share of the round trip is over: packet by
 * packet, each would take a system call of its own. `part` of a full packet has left. */
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
