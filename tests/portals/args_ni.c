/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arguments of PtlNIInit and contents of maps, where a process of its own is needed that has
 * opened nothing yet.
 */
#include "suite.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS(table_) ((int)(sizeof(table_) / sizeof((table_)[0])))

static const unsigned all_options[] = {
    PTL_NI_MATCHING | PTL_NI_LOGICAL, PTL_NI_MATCHING | PTL_NI_PHYSICAL,
    PTL_NI_NO_MATCHING | PTL_NI_LOGICAL, PTL_NI_NO_MATCHING | PTL_NI_PHYSICAL};

/* PtlNIInit gives this code and writes nothing. */
static void ni_init_refused(ptl_interface_t iface, unsigned options, ptl_pid_t pid, int expected)
{
    ptl_ni_limits_t limits;
    ptl_handle_ni_t ni = 0x5a5a5a5a;
    memset(&limits, 0x5a, sizeof(limits));
    CODE(PtlNIInit(iface, options, pid, NULL, &limits, &ni), expected);
    CHECK_EQ(ni, 0x5a5a5a5a);
    CHECK_BYTES(&limits, sizeof(limits), 0x5a);
}

static ptl_handle_ni_t open_kind(unsigned options)
{
    ptl_handle_ni_t ni;
    OK(PtlNIInit(PTL_IFACE_DEFAULT, options, PTL_PID_ANY, NULL, NULL, &ni));
    return ni;
}

/* ---- Interface, options, pid ----------------------------------------------- */

static void wrong_iface(struct scene *s)
{
    OK(PtlInit());
    ni_init_refused((ptl_interface_t)s->c->number, s->options, PTL_PID_ANY, PTL_ARG_INVALID);
    open_kind(s->options);
    ni_init_refused((ptl_interface_t)s->c->number, s->options, PTL_PID_ANY, PTL_ARG_INVALID);
    PtlFini();
}

static void wrong_pid(struct scene *s)
{
    OK(PtlInit());
    ni_init_refused(PTL_IFACE_DEFAULT, s->options, (ptl_pid_t)s->c->number, PTL_ARG_INVALID);
    open_kind(s->options);
    ni_init_refused(PTL_IFACE_DEFAULT, s->options ^ 3u, (ptl_pid_t)s->c->number, PTL_ARG_INVALID);
    PtlFini();
}

static void wrong_options(struct scene *s)
{
    OK(PtlInit());
    ni_init_refused(PTL_IFACE_DEFAULT, (unsigned)s->c->number, PTL_PID_ANY, PTL_ARG_INVALID);
    for (int i = 0; i < ROWS(all_options); i++) {
        open_kind(all_options[i]);
    }
    ni_init_refused(PTL_IFACE_DEFAULT, (unsigned)s->c->number, PTL_PID_ANY, PTL_ARG_INVALID);
    PtlFini();
}

GENERATE(ni_init_arguments)
{
    static const struct {
        const char *name;
        ptl_interface_t iface;
    } ifaces[] = {
        {"1000", 1000}, {"int_max", 0x7fffffffu}, {"default_less_1", PTL_IFACE_DEFAULT - 1}};
    static const struct {
        const char *name;
        ptl_pid_t pid;
    } pids[] = {{"zero", 0},
                {"65536", 65536},
                {"any_and_65536", PTL_PID_ANY + 65536u},
                {"int_max", 0x7fffffffu},
                {"uint_max", 0xffffffffu}};
    for (int i = 0; i < ROWS(ifaces); i++) {
        suite_add_each((struct suite_case){.rule = "3.6: an interface that does not exist gives "
                                                   "PTL_ARG_INVALID",
                                           .body = wrong_iface,
                                           .number = ifaces[i].iface},
                       ALL_KINDS, BARE, "PtlNIInit.iface.%s", ifaces[i].name);
    }
    for (int i = 0; i < ROWS(pids); i++) {
        suite_add_each((struct suite_case){.rule = "3.6: a pid out of range gives PTL_ARG_INVALID",
                                           .body = wrong_pid,
                                           .number = pids[i].pid},
                       ALL_KINDS, BARE, "PtlNIInit.pid.%s", pids[i].name);
    }
    for (unsigned o = 0; o < 16; o++) {
        bool legal = ((o & 3u) == 1 || (o & 3u) == 2) && ((o & 12u) == 4 || (o & 12u) == 8);
        if (!legal) {
            suite_add((struct suite_case){.rule = "3.6: exactly one option of each pair",
                                          .body = wrong_options,
                                          .setting = BARE,
                                          .number = o},
                      "PtlNIInit.options.pair_%x", o);
        }
    }
    for (unsigned bit = 4; bit < 32; bit++) {
        for (int k = 0; k < ROWS(all_options); k++) {
            suite_add((struct suite_case){.rule = "3.6: unknown options give PTL_ARG_INVALID",
                                          .body = wrong_options,
                                          .setting = BARE,
                                          .number = (long)(1u << bit | all_options[k])},
                      "PtlNIInit.options.bit_%u.%s", bit, suite_kind_name(1u << k));
        }
    }
}

CASE(null_results, ALL_KINDS, BARE, "3.6: `desired` and `actual` may be null, ni_handle may not")
{
    ptl_handle_ni_t ni;
    OK(PtlInit());
    INVALID(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, NULL, NULL));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, NULL, &ni));
    INVALID(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, NULL, NULL));
    OK(PtlNIFini(ni)); /* the refused calls have not counted */
    INVALID(PtlNIFini(ni));
    PtlFini();
}

CASE(opened_twice, ALL_KINDS, BARE,
     "3.6: opening a kind again gives the same handle and limits and does not look at pid and "
     "limits")
{
    ptl_ni_limits_t first, second, desired = {.max_cts = 1};
    ptl_handle_ni_t a, b;
    ptl_uid_t uid;
    OK(PtlInit());
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, PTL_PID_ANY, NULL, &first, &a));
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, 0, &desired, &second, &b));
    CHECK_EQ(a, b);
    CHECK_EQ(memcmp(&first, &second, sizeof(first)), 0);
    OK(PtlNIFini(a));
    OK(PtlGetUid(a, &uid));
    OK(PtlNIFini(a));
    INVALID(PtlGetUid(a, &uid));
    PtlFini();
}

CASE(kinds_share_the_id, NO_KIND, BARE, "3.6: the four kinds have one physical id, and own handles")
{
    ptl_handle_ni_t ni[4];
    ptl_process_t id[4];
    OK(PtlInit());
    for (int k = 0; k < 4; k++) {
        ni[k] = open_kind(all_options[k]);
        OK(PtlGetPhysId(ni[k], &id[k]));
        CHECK_EQ(id[k].phys.nid, id[0].phys.nid);
        CHECK_EQ(id[k].phys.pid, id[0].phys.pid);
        for (int l = 0; l < k; l++) {
            CHECK(ni[k] != ni[l]);
        }
    }
    PtlFini();
}

CASE(pid_of_open_interface, NO_KIND, BARE,
     "3.6: on an open interface another pid gives PTL_ARG_INVALID, its own or PTL_PID_ANY PTL_OK")
{
    ptl_process_t id;
    ptl_handle_ni_t ni;
    OK(PtlInit());
    OK(PtlGetPhysId(open_kind(all_options[0]), &id));
    ptl_pid_t another = id.phys.pid == 1 ? 2 : id.phys.pid - 1;
    ni_init_refused(PTL_IFACE_DEFAULT, all_options[1], another, PTL_ARG_INVALID);
    OK(PtlNIInit(PTL_IFACE_DEFAULT, all_options[1], id.phys.pid, NULL, NULL, &ni));
    open_kind(all_options[2]);
    PtlFini();
}

/* A pid that is free: the first of some that no other test is likely to ask for. */
static ptl_pid_t ask_for_pid(unsigned options, ptl_handle_ni_t *ni)
{
    for (unsigned i = 0; i < 200; i++) {
        ptl_pid_t pid = 30000 + ((unsigned)getpid() * 7u + i * 13u) % 9000u;
        int code = PtlNIInit(PTL_IFACE_DEFAULT, options, pid, NULL, NULL, ni);
        if (code == PTL_OK) {
            return pid;
        }
        CODE(code, PTL_PID_IN_USE);
    }
    FAIL("none of 200 pids is free");
}

struct rival {
    unsigned options;
    ptl_pid_t pid;
};

static void ask_for_taken(void *argument)
{
    const struct rival *r = argument;
    OK(PtlInit());
    ni_init_refused(PTL_IFACE_DEFAULT, r->options, r->pid, PTL_PID_IN_USE);
    open_kind(r->options);
    PtlFini();
}

CASE(requested_pid, ALL_KINDS, BARE,
     "3.6: a requested pid that is free is granted; another process that asks for it gets "
     "PTL_PID_IN_USE")
{
    ptl_handle_ni_t ni;
    ptl_process_t id;
    struct rival rival = {.options = s->options};
    NEEDS_FORK_WITH_THREADS();
    OK(PtlInit());
    rival.pid = ask_for_pid(s->options, &ni);
    OK(PtlGetPhysId(ni, &id));
    CHECK_EQ(id.phys.pid, rival.pid);
    CHECK_EQ(suite_child(ask_for_taken, &rival), 0);
    OK(PtlNIFini(ni));
    /* given back, it is free again */
    OK(PtlNIInit(PTL_IFACE_DEFAULT, s->options, rival.pid, NULL, NULL, &ni));
    PtlFini();
}

/* ---- Maps ------------------------------------------------------------------ */

enum { MAP = 3 };

static void unset(struct scene *s, ptl_handle_ni_t ni)
{
    ptl_size_t size = 0x5a;
    ptl_process_t id;
    CODE(PtlGetMap(ni, 0, NULL, &size), PTL_NO_SPACE);
    CHECK_EQ(size, 0x5a);
    OK(PtlGetId(ni, &id));
    CHECK_EQ(id.rank, PTL_RANK_ANY);
}

/* A sound map: somebody, this process, somebody else. */
static void sound_map(ptl_handle_ni_t ni, ptl_process_t map[MAP])
{
    for (int i = 0; i < MAP; i++) {
        OK(PtlGetPhysId(ni, &map[i]));
    }
    map[0].phys.pid = map[1].phys.pid > 100 ? map[1].phys.pid - 100 : map[1].phys.pid + 100;
    map[2].phys.pid = map[0].phys.pid + 1;
}

static void pid_zero(ptl_process_t map[MAP])
{
    map[0].phys.pid = 0;
}
static void pid_any(ptl_process_t map[MAP])
{
    map[2].phys.pid = PTL_PID_ANY;
}
static void pid_large(ptl_process_t map[MAP])
{
    map[2].phys.pid = 65536;
}
static void pid_huge(ptl_process_t map[MAP])
{
    map[0].phys.pid = 0xffffffffu;
}
static void nid_any(ptl_process_t map[MAP])
{
    map[0].phys.nid = PTL_NID_ANY;
}
static void nid_any_last(ptl_process_t map[MAP])
{
    map[2].phys.nid = PTL_NID_ANY;
}
static void without_me(ptl_process_t map[MAP])
{
    map[1].phys.pid = map[0].phys.pid;
}
static void other_nid(ptl_process_t map[MAP])
{
    map[1].phys.nid ^= 0x01000000u;
}

static const struct spoiled_map {
    const char *name;
    void (*spoil)(ptl_process_t map[MAP]);
} spoiled_maps[] = {
    {"pid_zero", pid_zero},
    {"pid_any", pid_any},
    {"pid_65536", pid_large},
    {"pid_uint_max", pid_huge},
    {"nid_any", nid_any},
    {"nid_any_last", nid_any_last},
    {"without_this_process", without_me},
    {"only_pid_of_this_process", other_nid},
};

static void wrong_map(struct scene *s)
{
    const struct spoiled_map *m = s->c->data;
    ptl_process_t map[MAP], id;
    OK(PtlInit());
    ptl_handle_ni_t ni = open_kind(s->options);
    sound_map(ni, map);
    m->spoil(map);
    INVALID(PtlSetMap(ni, MAP, map));
    unset(s, ni);
    sound_map(ni, map);
    OK(PtlSetMap(ni, MAP, map));
    OK(PtlGetId(ni, &id));
    CHECK_EQ(id.rank, 1);
    PtlFini();
}

GENERATE(wrong_maps)
{
    for (int i = 0; i < ROWS(spoiled_maps); i++) {
        suite_add_each((struct suite_case){.rule = "3.6: a map with an id that nobody can have, or "
                                                   "without this process, gives PTL_ARG_INVALID",
                                           .body = wrong_map,
                                           .data = &spoiled_maps[i]},
                       LOGICAL_KINDS, BARE, "PtlSetMap.mapping.%s", spoiled_maps[i].name);
    }
}

CASE(map_arguments, LOGICAL_KINDS, BARE,
     "3.6: an empty map or a null one gives PTL_ARG_INVALID, and the interface stays without")
{
    ptl_process_t map[MAP];
    OK(PtlInit());
    ptl_handle_ni_t ni = open_kind(s->options);
    sound_map(ni, map);
    unset(s, ni);
    INVALID(PtlSetMap(ni, 0, map));
    INVALID(PtlSetMap(ni, 0, NULL));
    INVALID(PtlSetMap(ni, MAP, NULL));
    unset(s, ni);
    PtlFini();
}

CASE(map_of_physical, PHYSICAL_KINDS, BARE, "3.6: a physical interface has no map: PTL_ARG_INVALID")
{
    ptl_process_t map[MAP];
    ptl_size_t size = 0x5a;
    OK(PtlInit());
    ptl_handle_ni_t ni = open_kind(s->options);
    sound_map(ni, map);
    INVALID(PtlSetMap(ni, MAP, map));
    INVALID(PtlGetMap(ni, MAP, map, &size));
    INVALID(PtlGetMap(ni, 0, NULL, &size));
    CHECK_EQ(size, 0x5a);
    PtlFini();
}

CASE(second_map, LOGICAL_KINDS, BARE, "3.6: a second map gives PTL_IGNORED, the first one stays")
{
    ptl_process_t map[MAP], another[1], got[MAP];
    ptl_size_t size;
    OK(PtlInit());
    ptl_handle_ni_t ni = open_kind(s->options);
    sound_map(ni, map);
    OK(PtlSetMap(ni, MAP, map));
    another[0] = map[1];
    CODE(PtlSetMap(ni, 1, another), PTL_IGNORED);
    INVALID(PtlSetMap(ni, 0, another));
    OK(PtlGetMap(ni, MAP, got, &size));
    CHECK_EQ(size, MAP);
    CHECK_EQ(memcmp(map, got, sizeof(map)), 0);
    PtlFini();
}

CASE(map_of_reopened, LOGICAL_KINDS, BARE, "3.6: an interface opened anew has no map")
{
    ptl_process_t map[MAP];
    OK(PtlInit());
    for (int i = 0; i < 3; i++) {
        ptl_handle_ni_t ni = open_kind(s->options);
        sound_map(ni, map);
        unset(s, ni);
        OK(PtlSetMap(ni, MAP, map));
        OK(PtlNIFini(ni));
    }
    PtlFini();
}

CASE(get_part_of_map, LOGICAL_KINDS, BARE,
     "3.6: PtlGetMap copies at most map_size entries and gives the true size")
{
    ptl_process_t map[MAP], got[MAP + 1], untouched;
    OK(PtlInit());
    ptl_handle_ni_t ni = open_kind(s->options);
    sound_map(ni, map);
    OK(PtlSetMap(ni, MAP, map));
    memset(&untouched, 0x5a, sizeof(untouched));
    for (ptl_size_t n = 0; n <= MAP + 1; n++) {
        ptl_size_t size = 0, copied = n < MAP ? n : MAP;
        memset(got, 0x5a, sizeof(got));
        OK(PtlGetMap(ni, n, got, &size));
        CHECK_EQ(size, MAP);
        CHECK_EQ(memcmp(got, map, copied * sizeof(got[0])), 0);
        CHECK_EQ(memcmp(&got[copied], &untouched, sizeof(untouched)), 0);
    }
    ptl_size_t size = 0;
    OK(PtlGetMap(ni, 0, NULL, &size));
    CHECK_EQ(size, MAP);
    INVALID(PtlGetMap(ni, MAP, NULL, &size));
    INVALID(PtlGetMap(ni, MAP, got, NULL));
    PtlFini();
}
