/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What PtlNIInit makes of wishes: each field of ptl_ni_limits_t below, at and above what the
 * interface can hold. A wish is never refused; within the range it is granted; the other
 * limits are those of an interface without wishes.
 */
#include "suite.h"

#include <limits.h>
#include <string.h>

static const struct field {
    const char *name;
    size_t offset;
    bool is_int;
    uint64_t floor; /* of the specification; 0: a limit may be 0 */
} fields[] = {
#define INT(name_, floor_)                                                                         \
    {                                                                                              \
#name_, offsetof(ptl_ni_limits_t, name_), true, floor_                                     \
    }
#define SIZE(name_, floor_)                                                                        \
    {                                                                                              \
#name_, offsetof(ptl_ni_limits_t, name_), false, floor_                                    \
    }
    INT(max_entries, 0),
    INT(max_unexpected_headers, 0),
    INT(max_mds, 0),
    INT(max_cts, 0),
    INT(max_eqs, 0),
    INT(max_pt_index, 63),
    INT(max_iovecs, 0),
    INT(max_list_size, 0),
    INT(max_triggered_ops, 0),
    SIZE(max_msg_size, 0),
    SIZE(max_atomic_size, 0),
    SIZE(max_fetch_atomic_size, 0),
    SIZE(max_waw_ordered_size, 64),
    SIZE(max_war_ordered_size, 8),
    SIZE(max_volatile_size, 0),
};
enum { FIELDS = sizeof(fields) / sizeof(fields[0]) };

static int64_t get_int(const ptl_ni_limits_t *l, const struct field *f)
{
    int value;
    memcpy(&value, (const char *)l + f->offset, sizeof(value));
    return value;
}

static uint64_t get_size(const ptl_ni_limits_t *l, const struct field *f)
{
    ptl_size_t value;
    memcpy(&value, (const char *)l + f->offset, sizeof(value));
    return value;
}

static void set(ptl_ni_limits_t *l, const struct field *f, int64_t value)
{
    int small = (int)value;
    memcpy((char *)l + f->offset, f->is_int ? (void *)&small : (void *)&value,
           f->is_int ? sizeof(small) : sizeof(value));
}

static void open_with(unsigned options, const ptl_ni_limits_t *desired, ptl_ni_limits_t *actual,
                      ptl_handle_ni_t *ni)
{
    memset(actual, 0x5a, sizeof(*actual));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, desired, actual, ni));
}

/* The highest value of a field. What is ordered is at most one message. */
static uint64_t top_of(const struct field *f, const ptl_ni_limits_t *actual,
                       const ptl_ni_limits_t *most)
{
    uint64_t top = f->is_int ? (uint64_t)get_int(most, f) : get_size(most, f);
    bool ordered = strstr(f->name, "ordered") != NULL;
    uint64_t message = actual->max_msg_size > f->floor ? actual->max_msg_size : f->floor;
    return ordered && message < top ? message : top;
}

/* A wish within the range is granted, one above gives the highest, one below the floor. */
static void check_field(const struct field *f, const ptl_ni_limits_t *desired,
                        const ptl_ni_limits_t *actual, const ptl_ni_limits_t *most)
{
    uint64_t top = top_of(f, actual, most);
    uint64_t wish = f->is_int ? (uint64_t)get_int(desired, f) : get_size(desired, f);
    uint64_t got = f->is_int ? (uint64_t)get_int(actual, f) : get_size(actual, f);
    if (f->is_int && get_int(desired, f) < 0) {
        wish = 0;
    }
    uint64_t due = wish > top ? top : wish < f->floor ? f->floor : wish;
    uint64_t most_given = f->is_int ? (uint64_t)get_int(most, f) : get_size(most, f);
    if (got < due || got > most_given) {
        FAIL("%s: wish %llu, expected %llu to %llu, found %llu", f->name, (unsigned long long)wish,
             (unsigned long long)due, (unsigned long long)most_given, (unsigned long long)got);
    }
}

/* Whatever the limits: the interface does something with them. */
static void check_alive(ptl_handle_ni_t ni)
{
    ptl_handle_eq_t eq;
    ptl_handle_ct_t ct;
    ptl_pt_index_t pt;
    ptl_event_t event;
    ptl_ct_event_t value;
    OK(PtlEQAlloc(ni, 1, &eq));
    OK(PtlCTAlloc(ni, &ct));
    OK(PtlPTAlloc(ni, 0, eq, 63, &pt));
    CODE(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
    OK(PtlCTGet(ct, &value));
}

enum {
    LOWEST,
    MINUS_1,
    ZERO,
    ONE,
    UNDER_FLOOR,
    FLOOR,
    OVER_FLOOR,
    HUNDRED,
    UNDER_TOP,
    TOP,
    OVER_TOP,
    HIGHEST,
    WISHES
};
static const char *const wish_names[WISHES] = {"lowest",       "minus_1", "0",           "1",
                                               "floor_less_1", "floor",   "floor_and_1", "100",
                                               "top_less_1",   "top",     "top_and_1",   "highest"};

static int64_t wish_of(const struct field *f, const ptl_ni_limits_t *most, long wish)
{
    int64_t top = f->is_int ? get_int(most, f) : (int64_t)get_size(most, f);
    int64_t floor = (int64_t)f->floor;
    const int64_t all[WISHES] = {f->is_int ? INT_MIN : 0,
                                 -1, /* as a size the highest */
                                 0,
                                 1,
                                 floor - 1,
                                 floor,
                                 floor + 1,
                                 100,
                                 top - 1,
                                 top,
                                 top + 1,
                                 f->is_int ? INT_MAX : INT64_MAX};
    return all[wish];
}

static void one_wish(struct scene *s)
{
    const struct field *f = s->c->data;
    ptl_ni_limits_t most, desired, actual;
    ptl_handle_ni_t ni;
    OK(PtlInit());
    open_with(s->options, NULL, &most, &ni);
    OK(PtlNIFini(ni));
    desired = most;
    set(&desired, f, wish_of(f, &most, s->c->number));
    open_with(s->options, &desired, &actual, &ni);
    for (int i = 0; i < FIELDS; i++) {
        check_field(&fields[i], &desired, &actual, &most);
    }
    CHECK_EQ(actual.features, most.features);
    check_alive(ni);
    OK(PtlNIFini(ni));
    PtlFini();
}

GENERATE(wishes)
{
    for (int f = 0; f < FIELDS; f++) {
        for (int w = 0; w < WISHES; w++) {
            unsigned kind = w % 2 == 0 ? MP : NL; /* limits do not depend on the kind */
            suite_add_each((struct suite_case){.rule = "3.6: a wish is granted within what the "
                                                       "interface can hold, and never refused",
                                               .body = one_wish,
                                               .data = &fields[f],
                                               .number = w},
                           kind, BARE, "%s.wish_%s", fields[f].name, wish_names[w]);
        }
    }
}

/* All wishes at once. */
static void all_wishes(struct scene *s)
{
    ptl_ni_limits_t most, desired, actual;
    ptl_handle_ni_t ni;
    OK(PtlInit());
    open_with(s->options, NULL, &most, &ni);
    OK(PtlNIFini(ni));
    memset(&desired, (int)s->c->number, sizeof(desired));
    open_with(s->options, &desired, &actual, &ni);
    for (int i = 0; i < FIELDS; i++) {
        check_field(&fields[i], &desired, &actual, &most);
    }
    check_alive(ni);
    PtlFini();
}

GENERATE(wishes_at_once)
{
    static const int bytes[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    for (int i = 0; i < 5; i++) {
        suite_add_each((struct suite_case){.rule = "3.6: wishes of any value are brought to what "
                                                   "the interface can hold",
                                           .body = all_wishes,
                                           .number = bytes[i]},
                       ALL_KINDS, BARE, "all.wish_bytes_%02x", (unsigned)bytes[i]);
    }
}

CASE(floors, ALL_KINDS, BARE,
     "3.6: max_pt_index >= 63, max_waw_ordered_size >= 64, max_war_ordered_size >= 8")
{
    ptl_ni_limits_t most;
    ptl_handle_ni_t ni;
    OK(PtlInit());
    open_with(s->options, NULL, &most, &ni);
    CHECK(most.max_pt_index >= 63);
    CHECK(most.max_waw_ordered_size >= 64);
    CHECK(most.max_war_ordered_size >= 8);
    CHECK(most.max_waw_ordered_size <= most.max_msg_size);
    /* what the programs of this interface count on */
    CHECK(most.max_entries >= 1024 && most.max_mds >= 1024 && most.max_cts >= 1024);
    CHECK(most.max_unexpected_headers >= 1024 && most.max_triggered_ops >= 1024);
    CHECK(most.max_eqs >= 64 && most.max_list_size >= 1024 && most.max_iovecs >= 1024);
    CHECK(most.max_msg_size >= (ptl_size_t)1 << 30);
    CHECK(most.max_atomic_size >= 512 && most.max_fetch_atomic_size >= 512);
    PtlFini();
}
