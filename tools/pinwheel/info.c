/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `pinwheel info`: what this machine lets Pinwheel do, the limits of interfaces, and the option
 * table. It gathers all of it in one struct, and then prints that as text or as JSON, so that both
 * have the same contents.
 */
#include "base/build.h"
#include "base/options.h"
#include "commands.h"
#include "fabric/fabric.h"
#include "fabric/iface.h"
#include "ni_limits.h"
#include "pinwheel/util/args.h"
#include "pinwheel/util/json.h"
#include "probe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { IFACES_MAX = 64 };

struct info {
    bool as_json;
    struct options options;
    char options_error[512]; /* "" if all variables have legal values */
    struct iface ifaces[IFACES_MAX];
    int iface_count; /* below 0: error */
    struct reason iface_error;
    struct probe_folder folder;
    struct probe membarrier, process_vm, pidfd;
    int cores;
    char core_list[256];
    struct ni_limits limits;
};

static const struct args_option info_options[] = {
    {"--json", NULL, "print JSON", ARGS_FLAG, ARGS_AT(struct info, as_json)},
};

/* Reads the options. A variable with an illegal value is reported in the list of options;
 * everything else is then computed from the defaults. */
static void load_options(struct info *info)
{
    char ignored[512];
    if (options_load(&info->options, info->options_error, sizeof(info->options_error)) == 0) {
        return;
    }
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_desc *d = &option_table[id];
        option_parse((enum option_id)id, d->fallback, &info->options.number[id], ignored,
                     sizeof(ignored));
        if (d->type == OPTION_TEXT) {
            snprintf(info->options.text[id], sizeof(info->options.text[id]), "%s", d->fallback);
        }
    }
}

static void gather(struct info *info)
{
    load_options(info);
    info->iface_count =
        iface_parse(info->options.text[OPT_IFACES], info->ifaces, IFACES_MAX, &info->iface_error);
    info->folder = probe_folder(info->options.text[OPT_SHM_DIR]);
    info->membarrier = probe_membarrier();
    info->process_vm = probe_process_vm();
    info->pidfd = probe_pidfd();
    info->cores = probe_cores(info->core_list, sizeof(info->core_list));
#ifdef PINWHEEL_WITH_PORTALS
    if (info->options_error[0] == '\0') {
        ni_limits_read(&info->limits);
    }
#endif
}

/* Asks the fabric how much memory a connection costs, for both directions. */
static struct fabric_info fabric_costs(const struct options *o)
{
    struct fabric_info info;
    fabric_shm.info(o, &info);
    return info;
}

static void nid_text(uint32_t nid, char text[16])
{
    snprintf(text, 16, "%u.%u.%u.%u", nid >> 24 & 255, nid >> 16 & 255, nid >> 8 & 255, nid & 255);
}

/* ---- Text ---- */

static const char *bytes_text(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    snprintf(text, 32, value < 10 && unit > 0 ? "%.1f %s" : "%.0f %s", value, units[unit]);
    return text;
}

static void print_probe(const char *name, const struct probe *p, const char *without)
{
    printf("    %-18s %s", name, p->works ? "yes" : "no: ");
    if (!p->works) {
        printf("%s; %s", p->why_not, without);
    }
    putchar('\n');
}

static void print_machine(const struct info *info)
{
    char text[32], nid[16];
    printf("pinwheel %s, compiled by %s, %s\n\nmachine\n", PINWHEEL_VERSION, build_compiler(),
           build_profiled() ? "profile-guided" : "without a profile");
    printf("    %-18s %d (%s)\n", "cores allowed", info->cores, info->core_list);
    if (info->iface_count < 0) {
        printf("    %-18s none: %s\n", "interfaces", info->iface_error.text);
    }
    for (int i = 0; i < info->iface_count; i++) {
        nid_text(info->ifaces[i].nid, nid);
        snprintf(text, sizeof(text), "interface %d", i);
        printf("    %-18s %s, NID %s (%u)\n", text, info->ifaces[i].name, nid, info->ifaces[i].nid);
    }
    printf("\nfabric shm: %s%s\n",
           info->folder.usable.works ? "usable" : "not usable: ", info->folder.usable.why_not);
    printf("    %-18s %s: %s, %s, %s free\n", "folder", info->options.text[OPT_SHM_DIR],
           info->folder.tmpfs ? "tmpfs" : "no tmpfs",
           info->folder.writable ? "writable" : "not writable",
           bytes_text(info->folder.free_bytes, text));
    print_probe("membarrier", &info->membarrier, "every send pays for a fence");
    print_probe("process_vm_readv", &info->process_vm, "large payloads go through cells");
    print_probe("pidfd_open", &info->pidfd, "the death of a peer is noticed later");
    char most[32];
    struct fabric_info costs = fabric_costs(&info->options);
    printf("    %-18s %s, up to %s once large messages flow\n", "memory per peer",
           bytes_text(costs.peer_memory, text), bytes_text(costs.peer_memory_most, most));
}

static void print_limits(const struct ni_limits *limits)
{
    if (limits->error[0] != '\0') {
        printf("\nlimits: unknown: %s\n", limits->error);
        return;
    }
    if (limits->count == 0) {
        return;
    }
    printf("\nlimits of an interface\n    %-24s", "");
    for (int k = 0; k < limits->kinds; k++) {
        printf(" %20s", limits->kind_names[k]);
    }
    putchar('\n');
    for (int i = 0; i < limits->count; i++) {
        printf("    %-24s", limits->names[i]);
        for (int k = 0; k < limits->kinds; k++) {
            printf(" %20" PRIu64, limits->values[k][i]);
        }
        putchar('\n');
    }
}

static void print_options(const struct info *info)
{
    printf("\noptions (environment variables)\n");
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_desc *d = &option_table[id];
        const char *value = getenv(d->env);
        printf("    %-25s ", d->env);
        if (value != NULL && *value != '\0') {
            printf("%s (set; default %s)", value, *d->fallback ? d->fallback : "empty");
        } else {
            printf("%s", *d->fallback ? d->fallback : "(empty)");
        }
        printf("%s%s", *d->unit ? " " : "", d->unit);
        if (d->type == OPTION_NUMBER) {
            printf("  [%" PRId64 " to %" PRId64 "]", d->min, d->max);
        } else if (d->type == OPTION_CHOICE) {
            printf("  [%s]", d->choices);
        }
        printf("\n        %s\n", d->meaning);
    }
    if (info->options_error[0] != '\0') {
        printf("\nPtlInit will fail: %s\n", info->options_error);
    }
    char text[256];
    for (size_t at = 0; options_unknown(environ, &at, text, sizeof(text));) {
        printf("\nset without effect: %s\n", text);
    }
}

/* ---- As JSON ---- */

static void json_probe(struct json *j, const char *name, const struct probe *p)
{
    json_open_object(j, name);
    json_bool(j, "works", p->works);
    if (!p->works) {
        json_string(j, "why_not", p->why_not);
    }
    json_close_object(j);
}

static void json_machine(struct json *j, const struct info *info)
{
    char nid[16];
    json_string(j, "version", PINWHEEL_VERSION);
    json_string(j, "compiler", build_compiler());
    json_bool(j, "profile_guided", build_profiled());
    json_number(j, "cores_allowed", info->cores);
    json_string(j, "core_list", info->core_list);
    if (info->iface_count < 0) {
        json_string(j, "interfaces_error", info->iface_error.text);
    }
    json_open_array(j, "interfaces");
    for (int i = 0; i < info->iface_count; i++) {
        nid_text(info->ifaces[i].nid, nid);
        json_open_object(j, NULL);
        json_string(j, "name", info->ifaces[i].name);
        json_string(j, "address", nid);
        json_unsigned(j, "nid", info->ifaces[i].nid);
        json_close_object(j);
    }
    json_close_array(j);
    json_open_object(j, "fabrics");
    json_open_object(j, "shm");
    json_bool(j, "usable", info->folder.usable.works);
    if (!info->folder.usable.works) {
        json_string(j, "why_not", info->folder.usable.why_not);
    }
    json_string(j, "folder", info->options.text[OPT_SHM_DIR]);
    json_bool(j, "tmpfs", info->folder.tmpfs);
    json_bool(j, "writable", info->folder.writable);
    json_unsigned(j, "free_bytes", info->folder.free_bytes);
    json_probe(j, "membarrier", &info->membarrier);
    json_probe(j, "process_vm_readv", &info->process_vm);
    json_probe(j, "pidfd_open", &info->pidfd);
    struct fabric_info costs = fabric_costs(&info->options);
    json_unsigned(j, "memory_per_peer_bytes", costs.peer_memory);
    json_unsigned(j, "memory_per_peer_most_bytes", costs.peer_memory_most);
    json_close_object(j);
    json_close_object(j);
}

static void json_limits(struct json *j, const struct ni_limits *limits)
{
    if (limits->error[0] != '\0') {
        json_string(j, "limits_error", limits->error);
    }
    if (limits->count == 0) {
        json_null(j, "limits");
        return;
    }
    json_open_object(j, "limits");
    for (int k = 0; k < limits->kinds; k++) {
        json_open_object(j, limits->kind_names[k]);
        for (int i = 0; i < limits->count; i++) {
            json_unsigned(j, limits->names[i], limits->values[k][i]);
        }
        json_close_object(j);
    }
    json_close_object(j);
}

static void json_options(struct json *j, const struct info *info)
{
    static const char *const types[] = {"number", "text", "choice"};
    json_open_array(j, "options");
    for (int id = 0; id < OPT_COUNT; id++) {
        const struct option_desc *d = &option_table[id];
        const char *value = getenv(d->env);
        json_open_object(j, NULL);
        json_string(j, "variable", d->env);
        json_string(j, "type", types[d->type]);
        json_string(j, "default", d->fallback);
        if (value != NULL && *value != '\0') {
            json_string(j, "set_to", value);
        } else {
            json_null(j, "set_to");
        }
        json_string(j, "unit", d->unit);
        if (d->type == OPTION_NUMBER) {
            json_number(j, "min", d->min);
            json_number(j, "max", d->max);
        } else if (d->type == OPTION_CHOICE) {
            json_string(j, "choices", d->choices);
        }
        json_string(j, "meaning", d->meaning);
        json_close_object(j);
    }
    json_close_array(j);
    if (info->options_error[0] != '\0') {
        json_string(j, "options_error", info->options_error);
    }
    char text[256];
    json_open_array(j, "options_unknown");
    for (size_t at = 0; options_unknown(environ, &at, text, sizeof(text));) {
        json_string(j, NULL, text);
    }
    json_close_array(j);
}

static int print_json(const struct info *info)
{
    struct json j = {.to = stdout};
    json_open_object(&j, NULL);
    json_machine(&j, info);
    json_limits(&j, &info->limits);
    json_options(&j, info);
    json_close_object(&j);
    return json_end(&j);
}

static int print_text(const struct info *info)
{
    print_machine(info);
    print_limits(&info->limits);
    print_options(info);
    return fflush(stdout) != 0 || ferror(stdout) ? -1 : 0;
}

int command_info(int argc, char **argv)
{
    struct args a = {.command = "info",
                     .operands = "",
                     .summary = "Prints what this machine offers Pinwheel: interfaces, fabrics, "
                                "limits, and\nthe options with their environment variables.",
                     ARGS_OPTIONS(info_options)};
    static struct info info;
    int status = args_parse(&a, argc, argv, &info);
    if (status != ARGS_GO_ON) {
        return status;
    }
    if (a.next < argc) {
        return args_error(&a, "%s: takes no operand, only --json", argv[a.next]);
    }
    gather(&info);
    if ((info.as_json ? print_json(&info) : print_text(&info)) != 0) {
        perror("pinwheel info: cannot write");
        return 1;
    }
    return 0;
}
