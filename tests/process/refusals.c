/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program is told of a call that is refused: the log names the argument and its value; the
 * masks of options are what the calls accept; PtlErrorStr knows every code. */
#include "port.h"
#include "spin.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int log_file = -1, errors = -1;

static void listen_to_log(void)
{
    log_file = memfd_create("log", MFD_CLOEXEC);
    errors = dup(STDERR_FILENO);
    CHECK_EQ(dup2(log_file, STDERR_FILENO), STDERR_FILENO);
}

static void listen_no_more(void)
{
    CHECK_EQ(dup2(errors, STDERR_FILENO), STDERR_FILENO);
    close(errors);
    close(log_file);
}

/* What was said since the last look. */
static void read_log(char *text, size_t size)
{
    ssize_t n = pread(log_file, text, size - 1, 0);
    text[n < 0 ? 0 : n] = '\0';
    CHECK_EQ(ftruncate(log_file, 0), 0);
    lseek(log_file, 0, SEEK_SET);
}

/* The call had this code, and what was said since the last one has all these words. */
static void check_told(int code, int expected, const char *first, const char *second)
{
    char text[1024];
    read_log(text, sizeof(text));
    if (code != expected || strstr(text, first) == NULL || strstr(text, second) == NULL) {
        listen_no_more(); /* what comes now is for the reader of the test */
        CHECK_EQ(code, expected);
        FAIL("the log says \"%s\", neither \"%s\" nor \"%s\"", text, first, second);
    }
}

static void check_said(int code, const char *first, const char *second)
{
    check_told(code, PTL_ARG_INVALID, first, second);
}

PTEST(reasons_are_told, 1)
{
    struct port p;
    static unsigned char memory[64];
    port_open(&p, KIND_MP, rank, size);
    ptl_process_t me = p.id[0], nobody = {.phys = {me.phys.nid, 0}};
    ptl_handle_md_t md = port_quiet_md(&p, memory, sizeof(memory), 0, PTL_CT_NONE);
    ptl_handle_ct_t ct = port_ct(&p);
    listen_to_log();
#define PUT(md, at, length, ack, to, pt) PtlPut(md, at, length, ack, to, pt, 0, 0, NULL, 0)
    check_said(PUT(PTL_INVALID_HANDLE, 0, 8, PTL_NO_ACK_REQ, me, 0), "a put is refused",
               "md_handle 0xffffffff");
    check_said(PUT(md + 1, 0, 8, PTL_NO_ACK_REQ, me, 0), "md_handle", "no memory descriptor");
    check_said(PUT(md, 60, 8, PTL_NO_ACK_REQ, me, 0), "offset 60 and length 8", "64 bytes");
    check_said(PUT(md, 0, 8, 77, me, 0), "ack_req 77", "a put");
    check_said(PUT(md, 0, 8, PTL_ACK_REQ, me, 0), "PTL_ACK_REQ needs", "event queue");
    check_said(PUT(md, 0, 8, PTL_NO_ACK_REQ, me, 70000), "pt_index 70000", "a put");
    check_said(PUT(md, 0, 8, PTL_NO_ACK_REQ, nobody, 0), "pid 0", "no process");
    check_said(PtlGet(md, 60, 8, me, 0, 0, 0, NULL), "a get is refused", "offset 60");
    check_said(PtlAtomic(md, 0, 8, PTL_NO_ACK_REQ, me, 0, 0, 0, NULL, 0, PTL_BXOR, PTL_DOUBLE),
               "an atomic operation is refused", "data type");
#define ATOMIC(length, op, type)                                                                   \
    PtlAtomic(md, 0, length, PTL_NO_ACK_REQ, me, 0, 0, 0, NULL, 0, op, type)
#define SWAP(length, op, type) PtlSwap(md, 0, md, 0, length, me, 0, 0, 0, NULL, 0, memory, op, type)
    check_said(ATOMIC(12, PTL_SUM, PTL_UINT64_T), "length 12 is no multiple of 8", "PTL_UINT64_T");
    check_said(ATOMIC(8, PTL_BXOR, PTL_DOUBLE),
               "PTL_BXOR with data type PTL_DOUBLE: the one is not defined", "PTL_DOUBLE");
    check_said(ATOMIC(8, PTL_CSWAP, PTL_INT64_T),
               "operation PTL_CSWAP with data type PTL_INT64_T: PtlSwap has", "");
    check_said(ATOMIC(8, PTL_OP_LAST, PTL_INT64_T),
               "operation 18 with data type PTL_INT64_T: operations are", "PTL_MSWAP");
    check_said(ATOMIC(8, PTL_SUM, PTL_DATATYPE_LAST), "PTL_SUM with data type 14: data types are",
               "PTL_INT8_T");
    check_said(SWAP(16, PTL_CSWAP, PTL_UINT64_T),
               "length 16 must be 8, one element of data type "
               "PTL_UINT64_T",
               "PTL_CSWAP");
    check_said(SWAP(12, PTL_SWAP, PTL_INT64_T), "length 12 is no multiple of 8", "PTL_INT64_T");
    check_said(SWAP(8, PTL_SUM, PTL_INT64_T), "PTL_SUM with data type PTL_INT64_T: PtlAtomic and",
               "PtlFetchAtomic");
    check_said(PtlFetchAtomic(md, 0, md, 60, 8, me, 0, 0, 0, NULL, 0, PTL_SUM, PTL_INT64_T),
               "put_offset 60", "64 bytes");
    check_said(PtlFetchAtomic(md, 60, md, 0, 8, me, 0, 0, 0, NULL, 0, PTL_SUM, PTL_INT64_T),
               "get_offset 60", "64 bytes");
    check_said(PtlSwap(md, 0, md, 0, 8, me, 0, 0, 0, NULL, 0, NULL, PTL_CSWAP, PTL_INT64_T),
               "a fetching operation is refused", "operand");
    check_said(PtlSwap(md, 0, md, 0, 8, me, 0, 0, 0, NULL, 0, memory, PTL_SUM, PTL_INT64_T),
               "a fetching operation is refused", "operation");
    check_said(PtlTriggeredPut(md, 60, 8, PTL_NO_ACK_REQ, me, 0, 0, 0, NULL, 0, ct, 1), "offset 60",
               "64 bytes");
    listen_no_more();
    port_release(md);
    OK(PtlCTFree(ct));
    port_close(&p);
}

/* Calls without an entry in the conformance suite's tables, and codes that are no bad arguments. */
PTEST(states_are_told, 1)
{
    struct port p;
    static unsigned char memory[64];
    ptl_handle_ni_t other;
    ptl_handle_ct_t ct;
    ptl_handle_eq_t eq;
    ptl_pt_index_t pt;
    ptl_ni_limits_t few = {.max_cts = 1};
    port_open(&p, KIND_MP, rank, size);
    listen_to_log();
    kind = KIND_NL;
    check_said(PtlNIInit(PTL_IFACE_DEFAULT + 9, kind, PTL_PID_ANY, NULL, NULL, &other), "PtlNIInit",
               "PTL_IFACE_DEFAULT + 9");
    check_said(PtlNIInit(PTL_IFACE_DEFAULT, kind | KIND_MP, PTL_PID_ANY, NULL, NULL, &other),
               "PtlNIInit", "options 0xf");
    check_said(PtlNIInit(PTL_IFACE_DEFAULT, kind, 0, NULL, NULL, &other), "pid 0", "1 to 65534");
    check_said(PtlSetJobKey("short", 5), "PtlSetJobKey", "length 5");
    OK(PtlNIInit(PTL_IFACE_DEFAULT, kind, PTL_PID_ANY, &few, NULL, &other));
    ptl_process_t stranger = {.phys = {1, 1}};
    check_said(PtlSetMap(other, 1, &stranger), "PtlSetMap", "lacks this process");
    check_said(PtlSetMap(p.ni, 1, &stranger), "PtlSetMap", "not logical");
    stranger.phys.pid = 0;
    check_said(PtlSetMap(other, 1, &stranger), "mapping[0]", "pid 0");
    check_told(PtlGetMap(other, 0, NULL, &(ptl_size_t){0}), PTL_NO_SPACE, "no map", "PtlSetMap");
    check_said(PtlEndBundle(other), "PtlEndBundle", "PtlStartBundle");
    check_said(PtlEndBundle(77), "PtlEndBundle", "ni_handle 0x4d");
    OK(PtlCTAlloc(other, &ct));
    check_told(PtlCTAlloc(other, &ct), PTL_NO_SPACE, "PtlCTAlloc", "max_cts, 1,");
    check_said(PtlTriggeredCTInc(ct, (ptl_ct_event_t){1, 0}, p.ni, 1), "trig_ct_handle",
               "PtlCTAlloc");
    check_said(PtlTriggeredCTInc(ct, (ptl_ct_event_t){3, 4}, ct, 1), "success 3", "failure 4");
    check_told(PtlEQAlloc(other, PTL_SIZE_MAX, &eq), PTL_NO_SPACE, "PtlEQAlloc", "count 1844674");
    check_told(PtlPTAlloc(p.ni, 0, p.eq, p.pt, &pt), PTL_PT_IN_USE, "pt_index_req", "PTL_PT_ANY");
    check_told(PtlPTAlloc(p.ni, PTL_PT_FLOWCTRL, PTL_EQ_NONE, PTL_PT_ANY, &pt), PTL_PT_EQ_NEEDED,
               "PTL_PT_FLOWCTRL", "eq_handle");
    ptl_handle_md_t md = port_quiet_md(&p, memory, sizeof(memory), 0, PTL_CT_NONE);
    OK(PtlMDRelease(md));
    check_said(PtlMDRelease(md), "PtlMDRelease", "names no memory descriptor");
    listen_no_more();
    OK(PtlNIFini(other));
    port_close(&p);
}

static void check_half(int code, const char *half)
{
    char text[1024];
    read_log(text, sizeof(text));
    const char *found = strstr(text, half);
    bool whole = found != NULL && strstr(text, " or ") == NULL && strchr(found, '(') == NULL;
    if (code != PTL_ARG_INVALID || !whole) {
        listen_no_more();
        FAIL("code %d, the log says \"%s\", not just \"%s\"", code, text, half);
    }
}

/* Of the conditions that an argument has failed, the one is told. */
PTEST(the_condition_that_fails_is_told, 1)
{
    struct port p, logical;
    static unsigned char memory[64];
    ptl_handle_any_t h;
    ptl_event_t event;
    ptl_ct_event_t value;
    ptl_sr_value_t status;
    ptl_size_t n = 1;
    unsigned which;
    char text[8];
    ptl_pt_index_t pt;
    ptl_md_t good = {memory, sizeof(memory), 0, PTL_EQ_NONE, PTL_CT_NONE};
    ptl_md_t bad = {memory, sizeof(memory), ~0u, PTL_EQ_NONE, PTL_CT_NONE};
    port_open(&p, KIND_MP, rank, size);
    port_open(&logical, KIND_NL, rank, size);
    ptl_handle_ni_t ni = p.ni;
    listen_to_log();
    check_half(PtlEQAlloc(ni, 0, &h), "PtlEQAlloc is refused: count is 0, and must be");
    check_half(PtlEQAlloc(ni, 8, NULL), "PtlEQAlloc is refused: eq_handle is NULL\n");
    check_half(PtlEQPoll(&p.eq, 0, 0, &event, &which), "PtlEQPoll is refused: size is 0");
    check_half(PtlEQPoll(&p.eq, 1, 0, NULL, &which), "PtlEQPoll is refused: event is NULL\n");
    check_half(PtlCTPoll(&h, &n, 0, 0, &value, &which), "PtlCTPoll is refused: size is 0");
    check_half(PtlCTPoll(&h, NULL, 1, 0, &value, &which), "PtlCTPoll is refused: tests is NULL\n");
    check_half(PtlMDBind(ni, &good, NULL), "PtlMDBind is refused: md_handle is NULL\n");
    check_half(PtlMDBind(ni, NULL, &h), "PtlMDBind is refused: md is NULL\n");
    check_half(PtlMDBind(ni, &bad, &h), "PtlMDBind is refused: options 0xffffffff has one beyond");
    check_half(PtlPTAlloc(ni, 0, p.eq, PTL_PT_ANY, NULL), "refused: pt_index is NULL\n");
    check_half(PtlPTAlloc(ni, ~0u, p.eq, PTL_PT_ANY, &pt), "refused: options 0xffffffff has one");
    check_half(PtlMEAppend(ni, p.pt, NULL, PTL_PRIORITY_LIST, NULL, &h), "refused: me is NULL\n");
    check_half(PtlMESearch(ni, p.pt, NULL, PTL_SEARCH_ONLY, NULL), "refused: me is NULL\n");
    check_half(PtlNIStatus(ni, PTL_SR_DROP_COUNT, NULL), "refused: status is NULL\n");
    check_half(PtlNIStatus(ni, 99, &status), "refused: status_register 99 is not 0 to");
    check_half(PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, NULL),
               "PtlNIInit is refused: ni_handle is NULL\n");
    check_half(PtlNIInit(77, KIND_MP, PTL_PID_ANY, NULL, NULL, &h), "is more than + ");
    check_half(PtlSetMap(logical.ni, 0, p.phys), "PtlSetMap is refused: map_size 0 is not 1 to");
    check_half(PtlSetMap(logical.ni, 1, NULL), "PtlSetMap is refused: mapping is NULL\n");
    check_half(PtlGetMap(logical.ni, 1, p.phys, NULL), "refused: actual_map_size is NULL\n");
    check_half(PtlGetMap(ni, 1, p.phys, &n), "is of an interface that is not logical");
    check_half(PtlHPUAllocMem(ni, 0, &h), "PtlHPUAllocMem is refused: length 0 is not 1 to");
    check_half(PtlHPUAllocMem(ni, 8, NULL), "PtlHPUAllocMem is refused: hpu_mem is NULL\n");
    check_half(PtlSpinCounter(ni, 0, NULL), "PtlSpinCounter is refused: counter is NULL\n");
    check_half(PtlSpinOutput(ni, 0, text, 0, &n), "PtlSpinOutput is refused: size is 0");
    check_half(PtlSpinOutput(ni, 0, text, sizeof(text), NULL), "refused: printed is NULL\n");
    check_half(PtlSetJobKey(NULL, 40), "PtlSetJobKey is refused: key is NULL\n");
    listen_no_more();
    port_close(&logical);
    port_close(&p);
}

/* Once in a process, whoever calls PtlInit again. */
PTEST(variables_without_effect_are_told, 1)
{
    char text[4096], again[4096];
    setenv("PINWHEEL_FABRC", "udp", 1);
    setenv("PINWHEEL_NO_SUCH_THING_AT_ALL", "1", 1);
    setenv("PINWHEEL_TRACE", "/tmp", 1);
    setenv("PINWHEEL_CORE", "1023", 1);
    listen_to_log();
    OK(PtlInit());
    read_log(text, sizeof(text));
    PtlFini();
    OK(PtlInit());
    read_log(again, sizeof(again));
    PtlFini();
    listen_no_more();
    CHECK(again[0] == '\0');
    CHECK(strstr(text, "PINWHEEL_FABRC is no option; did you mean PINWHEEL_FABRIC?\n") != NULL);
    CHECK(strstr(text, "PINWHEEL_NO_SUCH_THING_AT_ALL is no option; `pinwheel info`") != NULL);
    CHECK(strstr(text, "PINWHEEL_CORE=1023 has no effect") != NULL);
    CHECK(strstr(text, "TRACE") == NULL);
}

/* The file that a variable names is told with the variable. */
PTEST(a_job_key_that_cannot_be_is_told, 1)
{
    char text[4096];
    ptl_handle_ni_t ni;
    setenv("PINWHEEL_FABRIC", "udp", 1);
    setenv("PINWHEEL_IFACES", "lo", 1);
    setenv("PINWHEEL_JOB_KEY_FILE", "/no/such/key", 1);
    OK(PtlInit());
    listen_to_log();
    int code = PtlNIInit(PTL_IFACE_DEFAULT, KIND_MP, PTL_PID_ANY, NULL, NULL, &ni);
    read_log(text, sizeof(text));
    listen_no_more();
    PtlFini();
    CHECK(code != PTL_OK);
    CHECK(strstr(text, "PINWHEEL_JOB_KEY_FILE=/no/such/key: ") != NULL);
}

/* A call that is refused in a loop does not fill a disk. */
PTEST(loops_are_told_now_and_then, 1)
{
    enum { CALLS = 10000, SECOND = 1000 };
    struct port p;
    static char text[65536];
    port_open(&p, KIND_MP, rank, size);
    listen_to_log();
    uint64_t begin = ptest_now_ms();
    for (int i = 0; i < CALLS; i++) {
        ptl_event_t event;
        CHECK_EQ(PtlEQGet(PTL_INVALID_HANDLE, &event), PTL_ARG_INVALID);
        CHECK_EQ(PtlPut(PTL_INVALID_HANDLE, 0, 8, PTL_NO_ACK_REQ, p.id[0], 0, 0, 0, NULL, 0),
                 PTL_ARG_INVALID);
    }
    uint64_t seconds = (ptest_now_ms() - begin) / SECOND + 1;
    read_log(text, sizeof(text));
    unsigned lines = 0;
    for (const char *c = text; (c = strchr(c, '\n')) != NULL; c++) {
        lines++;
    }
    listen_no_more();
    CHECK(lines >= 20);
    CHECK(lines <= 20 + 2 * seconds);
    port_close(&p);
}

/* An option is accepted alone just if it is in the mask. */
PTEST(masks_are_what_calls_accept, 1)
{
    static unsigned char memory[64];
    for (unsigned kind = 0; kind < 2; kind++) {
        struct port p;
        bool matching = kind == 0;
        port_open(&p, matching ? KIND_MP : KIND_NP, rank, size);
        ptl_handle_eq_t eq;
        ptl_handle_ct_t ct = port_ct(&p);
        ptl_pt_index_t pt;
        OK(PtlEQAlloc(p.ni, 64, &eq));
        OK(PtlPTAlloc(p.ni, 0, eq, PTL_PT_ANY, &pt));
        listen_to_log();
        for (unsigned bit = 0; bit < 32; bit++) {
            unsigned option = 1u << bit;
            ptl_iovec_t part = {memory, sizeof(memory)};
            void *start = option == PTL_IOVEC ? (void *)&part : memory;
            ptl_size_t length = option == PTL_IOVEC ? 1 : sizeof(memory);
            ptl_md_t m = {start, length, option, eq, ct};
            ptl_handle_md_t md;
            int code = PtlMDBind(p.ni, &m, &md);
            CHECK_EQ(code, (PTL_MD_OPTIONS_MASK & option) != 0 ? PTL_OK : PTL_ARG_INVALID);
            if (code == PTL_OK) {
                OK(PtlMDRelease(md));
            }
            ptl_handle_me_t entry;
            ptl_me_t me = {.start = start,
                           .length = length,
                           .ct_handle = ct,
                           .uid = PTL_UID_ANY,
                           .options = option};
            me.match_id.phys.nid = PTL_NID_ANY;
            me.match_id.phys.pid = PTL_PID_ANY;
            ptl_le_t le = {start, length, ct, PTL_UID_ANY, option};
            code = matching ? PtlMEAppend(p.ni, pt, &me, PTL_PRIORITY_LIST, NULL, &entry)
                            : PtlLEAppend(p.ni, pt, &le, PTL_PRIORITY_LIST, NULL, &entry);
            unsigned mask = matching ? PTL_ME_APPEND_OPTIONS_MASK : PTL_LE_APPEND_OPTIONS_MASK;
            CHECK_EQ(code, (mask & option) != 0 ? PTL_OK : PTL_ARG_INVALID);
            if (code == PTL_OK) {
                OK(matching ? PtlMEUnlink(entry) : PtlLEUnlink(entry));
            }
        }
        listen_no_more();
        OK(PtlPTFree(p.ni, pt));
        OK(PtlEQFree(eq));
        OK(PtlCTFree(ct));
        port_close(&p);
    }
}

PTEST(codes_have_names, 1)
{
    CHECK(strncmp(PtlErrorStr(PTL_OK), "PTL_OK: ", 8) == 0);
    CHECK(strncmp(PtlErrorStr(PTL_ABORTED), "PTL_ABORTED: ", 13) == 0);
    for (unsigned code = 0; code <= PTL_INTERRUPTED; code++) {
        CHECK(strncmp(PtlErrorStr(code), "PTL_", 4) == 0);
    }
    CHECK(strncmp(PtlErrorStr(PTL_INTERRUPTED + 1), "PTL_", 4) != 0);
    CHECK(strncmp(PtlErrorStr(~0u), "PTL_", 4) != 0);
}

PTEST(reasons_of_interfaces_are_told, 1)
{
    ptl_handle_ni_t ni;
    ptl_process_t id;
    OK(PtlInit());
    listen_to_log();
#define OPEN(more, kind, pid, ni) PtlNIInit(PTL_IFACE_DEFAULT + (more), kind, pid, NULL, NULL, ni)
    check_said(OPEN(0, KIND_MP, PTL_PID_ANY, NULL), "PtlNIInit", "is NULL");
    check_said(OPEN(0, 0, PTL_PID_ANY, &ni), "options 0x0", "PTL_NI_MATCHING");
    check_said(OPEN(0, KIND_MP | KIND_NL, PTL_PID_ANY, &ni), "PtlNIInit", "PTL_NI_LOGICAL");
    check_said(OPEN(0, KIND_MP, 0, &ni), "pid 0", "1 to 65534");
    check_said(OPEN(0, KIND_MP, 65536, &ni), "pid 65536", "1 to 65534");
    check_said(OPEN(3, KIND_MP, PTL_PID_ANY, &ni), "PTL_IFACE_DEFAULT + 3", "PINWHEEL_IFACES");
    check_said(OPEN(4000, KIND_MP, PTL_PID_ANY, &ni), "PTL_IFACE_DEFAULT + 4000", "iface");
    OK(OPEN(0, KIND_MP, PTL_PID_ANY, &ni));
    OK(PtlGetPhysId(ni, &id));
    check_said(OPEN(0, KIND_NP, id.phys.pid + 1, &ni), "PtlNIInit is refused", "PTL_PID_ANY");
    listen_no_more();
    PtlFini();
}

/* The one name in a folder of segments. */
static void find_name(const char *directory, char *path, size_t size)
{
    DIR *d = opendir(directory);
    CHECK(d != NULL);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.') {
            snprintf(path, size, "%s/%s", directory, e->d_name);
        }
    }
    closedir(d);
}

/* Somebody else has a file where the segment of a PID would be: of another user, if this one may
 * be several; else it is a folder, which is no segment either. */
PTEST(squatters_are_named, 1)
{
    enum { PID = 4711, OTHER = 12345 };
    char directory[] = "/dev/shm/pinwheel-test-XXXXXX", path[512] = "", uid[32];
    uid_t squatter = geteuid();
    ptl_handle_ni_t ni;
    CHECK(mkdtemp(directory) != NULL);
    CHECK_EQ(chmod(directory, 01777), 0);
    setenv("PINWHEEL_SHM_DIR", directory, 1);
    OK(PtlInit());
    OK(OPEN(0, KIND_MP, PID, &ni));
    find_name(directory, path, sizeof(path));
    OK(PtlNIFini(ni));
    CHECK(path[0] != '\0');
    if (squatter == 0) {
        int fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0600);
        CHECK(fd >= 0);
        close(fd);
        CHECK_EQ(seteuid(OTHER), 0);
    } else {
        CHECK_EQ(mkdir(path, 0700), 0);
    }
    snprintf(uid, sizeof(uid), "belongs to uid %u", squatter);
    listen_to_log();
    check_told(OPEN(0, KIND_MP, PID, &ni), PTL_PID_IN_USE, path, uid);
    check_told(OPEN(0, KIND_MP, PID, &ni), PTL_PID_IN_USE, "PID 4711", "PTL_PID_ANY");
    listen_no_more();
    OK(OPEN(0, KIND_MP, PTL_PID_ANY, &ni));
    PtlFini();
    CHECK_EQ(seteuid(squatter), 0);
    CHECK_EQ(remove(path), 0);
    CHECK_EQ(rmdir(directory), 0);
}
