/* SPDX-License-Identifier: BSD-3-Clause */
/* Limits and the environment variables that set them, the life of a table, statistics, and the
 * report of leaks. */
#include "inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Finds the unit at `end`, where a number of an environment variable ends; false if there is no
 * such unit. */
static bool unit_of(const char *end, uint64_t *unit)
{
    static const struct {
        const char *name;
        uint64_t unit;
    } units[] = {{"", 1 << 20},  {"B", 1},        {"K", 1 << 10}, {"KB", 1 << 10},
                 {"M", 1 << 20}, {"MB", 1 << 20}, {"G", 1 << 30}, {"GB", 1 << 30}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(end, units[i].name) == 0) {
            *unit = units[i].unit;
            return true;
        }
    }
    return false;
}

/* Sets *value to that of the environment variable `name` if *value is 0 and the variable is set;
 * false if the variable holds no number. */
static bool from_environment(const struct pw_firehose_config *c, const char *name, bool bytes,
                             uint64_t *value)
{
    const char *text = c->flags & PW_FIREHOSE_NO_ENV || *value != 0 ? NULL : getenv(name);
    uint64_t unit = 1;
    char *end;
    if (text == NULL || *text == '\0') {
        return true;
    }
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *text == '-' || number == 0 ||
        (bytes ? !unit_of(end, &unit) : *end != '\0') || number > UINT64_MAX / 2 / unit) {
        return false;
    }
    *value = number * unit;
    return true;
}

static uint64_t prepinned_bytes(const struct pw_firehose_config *c)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < c->prepinned_count; i++) {
        bytes += c->prepinned[i].len;
    }
    return bytes;
}

/* Sets M and MAXVICTIM where the client has not: if both are open to three quarters and one quarter
 * of `all`, else to what the other one leaves. */
static void share(uint64_t all, uint64_t *m, uint64_t *victims)
{
    if (*m == 0 && *victims == 0) {
        *m = all - all / 4;
    }
    if (*m == 0) {
        *m = all > *victims ? all - *victims : 0;
    }
    if (*victims == 0) {
        *victims = all > *m ? all - *m : 0;
    }
}

/* A configuration in which nothing is open any more, and the limits in units that follow from
 * it. */
struct limits {
    struct pw_firehose_config c;
    /* in units; `victims` without the units that were pinned before */
    uint64_t f, victims, prepinned;
    uint64_t most;
};

static bool sound(const struct pw_firehose_config *c)
{
    return c->nodes > 0 && c->self < c->nodes && c->page >= 64 && (c->page & (c->page - 1)) == 0 &&
           c->max_pinnable <= INT64_MAX && c->ops != NULL && c->ops->move != NULL &&
           (c->ops->send != NULL || c->nodes == 1) && c->max_message <= UINT32_MAX &&
           (c->prepinned_count == 0 || c->prepinned != NULL);
}

static int limits_of_pages(struct limits *l)
{
    const struct pw_firehose_config *c = &l->c;
    uint64_t before = prepinned_bytes(c), page = c->page;
    if (c->max_regions != 0 || c->max_region != 0 || before % page != 0 ||
        (c->nodes > 1 && c->m < before)) {
        return -EINVAL;
    }
    if (!(c->flags & PW_FIREHOSE_REDUCED) &&
        ((c->nodes > 1 && c->m < page * c->nodes * 32) || c->maxvictim < page * 4096)) {
        return -EINVAL;
    }
    l->f = c->nodes > 1 ? (c->m - before) / (page * (c->nodes - 1)) : 0;
    l->victims = c->maxvictim / page;
    l->prepinned = before / page;
    return 0;
}

static int limits_of_regions(struct limits *l)
{
    struct pw_firehose_config *c = &l->c;
    uint64_t r = 0, victims = 0;
    if (!from_environment(c, "GASNET_FIREHOSE_MAXREGION_SIZE", true, &c->max_region) ||
        !from_environment(c, "GASNET_FIREHOSE_R", false, &r) ||
        !from_environment(c, "GASNET_FIREHOSE_MAXVICTIM_R", false, &victims)) {
        return -EINVAL;
    }
    c->max_region = c->max_region == 0 ? 128 << 10 : c->max_region;
    c->max_region = (c->max_region + c->page - 1) & ~(uint64_t)(c->page - 1);
    for (size_t i = 0; i < c->prepinned_count; i++) {
        l->prepinned += (c->prepinned[i].len + c->max_region - 1) / c->max_region;
    }
    r = r == 0 ? c->m / c->max_region : r;
    victims = victims == 0 ? c->maxvictim / c->max_region : victims;
    if (c->max_regions > 0 && r + victims > c->max_regions) {
        r = c->max_regions * r / (r + victims);
        victims = c->max_regions - r;
    }
    if (r * c->max_region > c->m || victims * c->max_region > c->maxvictim ||
        (c->nodes > 1 && r < l->prepinned)) {
        return -EINVAL;
    }
    if (!(c->flags & PW_FIREHOSE_REDUCED) &&
        ((c->nodes > 1 && (c->m < c->page * c->nodes * 32 || r < c->nodes)) ||
         c->maxvictim < c->page * 256 || victims < 2)) {
        return -EINVAL;
    }
    l->f = c->nodes > 1 ? (r - l->prepinned) / (c->nodes - 1) : 0;
    l->victims = victims;
    return 0;
}

static int limits_of(const struct pw_firehose_config *config, struct limits *l)
{
    memset(l, 0, sizeof(*l));
    l->c = *config;
    struct pw_firehose_config *c = &l->c;
    c->page = c->page == 0 ? (size_t)sysconf(_SC_PAGESIZE) : c->page;
    c->max_message = c->max_message == 0 ? 4096 : c->max_message;
    c->da_limit = c->da_limit == 0 ? 30 : c->da_limit;
    if (c->flags & PW_FIREHOSE_LOCAL_ONLY) {
        c->nodes = 1;
        c->self = 0;
    }
    if (!sound(c) || !from_environment(c, "GASNET_FIREHOSE_M", true, &c->m) ||
        !from_environment(c, "GASNET_FIREHOSE_MAXVICTIM_M", true, &c->maxvictim)) {
        return -EINVAL;
    }
    if (c->nodes == 1) {
        c->m = prepinned_bytes(c);
        c->maxvictim =
            c->maxvictim == 0 && c->max_pinnable > c->m ? c->max_pinnable - c->m : c->maxvictim;
    } else {
        share(c->max_pinnable, &c->m, &c->maxvictim);
    }
    if (c->m > c->max_pinnable || c->maxvictim > c->max_pinnable - c->m) {
        return -EINVAL;
    }
    int rc = c->flags & PW_FIREHOSE_REGIONS ? limits_of_regions(l) : limits_of_pages(l);
    size_t fixed = PW_FIREHOSE_HEADER + PW_FIREHOSE_ARGS, unit = 16 + PW_FIREHOSE_HANDLE;
    if (rc != 0 || l->victims == 0) {
        return -EINVAL;
    }
    if (c->nodes > 1) {
        if (c->max_message < fixed + unit || l->f == 0) {
            return -EINVAL;
        }
        uint64_t fit = (c->max_message - fixed) / unit;
        l->most = c->flags & PW_FIREHOSE_REGIONS ? 1 : fit < l->f ? fit : l->f;
    }
    return 0;
}

static void tell(const struct limits *l, struct pw_firehose_info *info)
{
    const struct pw_firehose_config *c = &l->c;
    bool regions = (c->flags & PW_FIREHOSE_REGIONS) != 0;
    uint64_t unit = regions ? c->max_region : c->page;
    *info = (struct pw_firehose_info){.m = c->m,
                                      .maxvictim = c->maxvictim,
                                      .firehoses = l->f,
                                      .max_local_pin = (regions ? 1 : l->victims) * unit,
                                      .max_remote_pin = l->most * unit,
                                      .max_local_regions = regions ? l->victims : 0,
                                      .max_remote_regions = regions ? l->f : 0};
}

int pw_firehose_limits(const struct pw_firehose_config *config, struct pw_firehose_info *info)
{
    struct limits l;
    int rc = limits_of(config, &l);
    if (rc == 0) {
        tell(&l, info);
    }
    return rc;
}

static int prepin(struct pw_firehose *f)
{
    const struct pw_firehose_config *c = &f->config;
    bool regions = (c->flags & PW_FIREHOSE_REGIONS) != 0;
    int rc = 0;
    for (size_t i = 0; i < c->prepinned_count && rc == 0; i++) {
        const struct pw_firehose_region *r = &c->prepinned[i];
        uint64_t most = regions ? c->max_region : r->len;
        for (uint64_t done = 0; done < r->len && rc == 0; done += most) {
            uint64_t n = r->len - done < most ? r->len - done : most;
            rc = pin_prepin(f->pin, r->addr + done, n, r->handle);
        }
    }
    return rc;
}

int pw_firehose_init(const struct pw_firehose_config *config, struct pw_firehose **out,
                     struct pw_firehose_info *info)
{
    struct limits l;
    *out = NULL;
    int rc = limits_of(config, &l);
    if (rc != 0) {
        return rc;
    }
    struct pw_firehose *f = aligned_alloc(64, sizeof(*f));
    if (f == NULL) {
        return -ENOMEM;
    }
    memset(f, 0, sizeof(*f));
    struct pw_firehose_info limits;
    tell(&l, &limits);
    f->config = l.c;
    f->ops = *l.c.ops;
    f->units_most = (uint32_t)l.most;
    f->max_local_pin = limits.max_local_pin;
    list_init(&f->alive);
    list_init(&f->due);
    list_init(&f->asked);
    list_init(&f->callbacks);
    list_init(&f->giving);
    list_init(&f->restarts);
    list_init(&f->forgets);
    const char *verbose = l.c.flags & PW_FIREHOSE_NO_ENV ? NULL : getenv("GASNET_FIREHOSE_VERBOSE");
    f->verbose = verbose != NULL && strcmp(verbose, "1") == 0;
    struct pin_config engine = {.nodes = l.c.nodes,
                                .self = l.c.self,
                                .regions = (l.c.flags & PW_FIREHOSE_REGIONS) != 0,
                                .page = l.c.page,
                                .region_most = l.c.max_region,
                                .remote = l.f * (l.c.nodes - 1),
                                .victims = l.victims + l.prepinned,
                                .f = l.f,
                                .most = (uint32_t)l.most,
                                .da_limit = l.c.da_limit};
    rc = pin_open(&engine, &f->pin);
    rc = rc == 0 ? prepin(f) : rc;
    f->config.prepinned = NULL; /* the array belongs to the caller */
    f->config.ops = NULL;
    if (rc != 0) {
        pin_close(f->pin);
        free(f);
        return rc;
    }
    if (f->config.flags & PW_FIREHOSE_WATCH) {
        limits.watched = firehose_watch_open(f);
    }
    if (info != NULL) {
        *info = limits;
    }
    *out = f;
    return 0;
}

static uint64_t sum(struct pw_firehose *f, unsigned what, bool remote)
{
    uint64_t all = 0;
    for (unsigned i = 0; i <= LOCK_SLOTS; i++) {
        all += atomic_load_explicit(&f->stripes[i].count[what][remote], memory_order_relaxed);
    }
    return all;
}

/* The engine's counts, and those of hits and releases without the lock. */
static struct pw_firehose_counts counts(struct pw_firehose *f, const struct pin_counts *c,
                                        bool remote)
{
    uint64_t hits = sum(f, COUNT_PIN, remote);
    return (struct pw_firehose_counts){
        .pin = c->pin + hits,
        .hit = c->hit + hits,
        .pending = c->pending,
        .miss = c->miss,
        .try_hit = c->try_hit + sum(f, COUNT_TRY, remote),
        .try_miss = c->try_miss,
        .partial_hit = c->partial_hit + sum(f, COUNT_PARTIAL, remote),
        .partial_miss = c->partial_miss,
        .release = c->release + sum(f, COUNT_RELEASE, remote),
    };
}

void pw_firehose_stats(struct pw_firehose *f, struct pw_firehose_stats *stats)
{
    mutex_take(&f->lock);
    struct pin_stats s = *pin_stats(f->pin);
    *stats = (struct pw_firehose_stats){.local = counts(f, &s.local, false),
                                        .remote = counts(f, &s.remote, true),
                                        .request_alloc = f->request_alloc,
                                        .moves = s.moved,
                                        .served = s.served,
                                        .evicted = s.evicted,
                                        .deadlocks_avoided = s.avoided,
                                        .rollbacks = s.rollbacks,
                                        .failed = s.failed,
                                        .refused = s.refused,
                                        .forgotten = s.forgotten,
                                        .revoked = s.revoked,
                                        .restarted = s.restarted,
                                        .pinned = pin_load(f->pin, f->config.self).pinned};
    mutex_give(&f->lock);
}

/* Reports requests that were not released: one by one those for which the library has allocated
 * memory, and the number of the others. */
static int leaks(struct pw_firehose *f)
{
    uint64_t n = 0;
    for (unsigned remote = 0; remote < 2; remote++) {
        n += sum(f, COUNT_PIN, remote) + sum(f, COUNT_TRY, remote) + sum(f, COUNT_PARTIAL, remote) -
             sum(f, COUNT_RELEASE, remote);
    }
    if (f->verbose && n > 0) {
        fprintf(stderr, "firehose: node %u: %llu hits were not released\n", f->config.self,
                (unsigned long long)n);
    }
    struct list *at;
    while ((at = list_pop_front(&f->alive)) != NULL) {
        struct call *c = container_of(at, struct call, alive);
        n++;
        if (f->verbose) {
            fprintf(stderr, "firehose: node %u: not released: %#llx, %llu bytes of node %u\n",
                    f->config.self, (unsigned long long)c->engine.addr,
                    (unsigned long long)c->engine.len, c->engine.node);
        }
        if (c->engine.uses != NULL && c->engine.uses != &c->engine.one) {
            free(c->engine.uses);
        }
        free(c);
    }
    return n > INT32_MAX ? INT32_MAX : (int)n;
}

int pw_firehose_fini(struct pw_firehose *f)
{
    struct pin_range range;
    struct pin_serve *s;
    struct list *at;
    if (f == NULL) {
        return 0;
    }
    firehose_watch_close(f);
    while (pin_drain(f->pin, &range)) {
        struct pw_firehose_region region = {.addr = range.addr, .len = range.len};
        memcpy(region.handle, range.handle, sizeof(region.handle));
        firehose_move(f, &region, 1, NULL, 0);
    }
    while ((at = list_pop_front(&f->callbacks)) != NULL) {
        free(container_of(at, struct served, link));
    }
    while ((s = pin_forsake(f->pin)) != NULL) {
        free(s->client);
        pin_serve_free(s);
    }
    firehose_forget_free(f);
    int n = leaks(f);
    pin_close(f->pin);
    free(f);
    return n;
}
