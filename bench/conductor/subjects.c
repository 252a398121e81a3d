/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of subjects, and where their programs are; see subjects.h. */
#include "subjects.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The ranks bind themselves, and must not yield because mpirun thinks that they have
 * no core, unless they are more than there are; bench/peers/notes.md has the reasons for all
 * other words. */
#define MPIRUN_OPENMPI_OF(ranks, yield)                                                            \
    "mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", ranks,  \
        "--mca", "mpi_yield_when_idle", yield, "--mca", "pml"
#define MPIRUN_OPENMPI MPIRUN_OPENMPI_OF("2", "0")
#define OPENMPI_CREW MPIRUN_OPENMPI_OF("8", "1"), "ob1", "--mca", "btl", "vader,self"
#define OPENMPI_OB1                                                                                \
    MPIRUN_OPENMPI, "ob1", "--mca", "btl", "vader,self", "--mca", "osc", "sm,pt2pt", "@peer_openmpi"
#define OPENMPI_TCP                                                                                \
    MPIRUN_OPENMPI, "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo",        \
        "--mca", "osc", "pt2pt", "@peer_openmpi"
#define OPENMPI_UCX                                                                                \
    MPIRUN_OPENMPI, "ucx", "--mca", "osc", "ucx", "--mca", "pml_ucx_tls", "any", "--mca",          \
        "pml_ucx_devices", "any", "@peer_openmpi"
/* Nothing but Portals may carry messages and one-sided operations: what is not there
 * ends MPI_Init or MPI_Win_create. The collectives that are left out would go through
 * shared memory of Open MPI's own. */
#define OPENMPI_PORTALS                                                                            \
    MPIRUN_OPENMPI, "cm", "--mca", "mtl", "portals4", "--mca", "osc", "portals4", "--mca", "btl",  \
        "self", "--mca", "coll", "^han,adapt,sm", "@peer_openmpi", "portals4"
#define MPICH_OF(ranks) "mpirun.mpich", "-launcher", "fork", "-n", ranks, "@peer_mpich"
#define MPICH MPICH_OF("2")
#define UCX_POSIX "UCX_TLS=posix,self", "UCX_POSIX_SEG_SIZE=65472", "UCX_RNDV_THRESH=inf"

#define PACKAGES_OPENMPI "openmpi-bin libopenmpi-dev"
#define PACKAGES_MPICH "mpich libmpich-dev"
#define PACKAGES_UCX "libucx-dev"
#define PACKAGES_LIBFABRIC "libfabric-dev"

const struct subject subject_table[] = {
    /* clang-format off */
    {"ours", SUBJECT_OURS, LAUNCH_PAIR, 2, NULL,
     {"@bench_ours"}, {NULL},
     "Pinwheel"},
    {"ours-cells", SUBJECT_OURS, LAUNCH_PAIR, 2, NULL,
     {"@bench_ours"},
     {"PINWHEEL_SHM_LARGE=cells", "PINWHEEL_SHM_INLINE=0", "PINWHEEL_PACKET_SIZE=64"},
     "Pinwheel with packets of 64 bytes, all through cells"},
    {"rv32", SUBJECT_OURS, LAUNCH_PAIR, 2, "gcc-riscv64-unknown-elf",
     {"@bench_rv32"}, {"PINWHEEL_HPU=rv32"},
     "Pinwheel with handlers on RV32 cores"},
    {"first", SUBJECT_OURS, LAUNCH_PAIR, 2, NULL,
     {"@bench_first"}, {NULL},
     "Pinwheel, fresh processes"},
    {"spin", SUBJECT_OURS, LAUNCH_PAIR, 2, NULL,
     {"@bench_spin", "handlers"}, {"PINWHEEL_SHM_LARGE=cells"},
     "Pinwheel, the handler library"},
    {"cpu", SUBJECT_BASE, LAUNCH_PAIR, 2, NULL,
     {"@bench_spin", "cpu"}, {NULL},
     "the same jobs by the target's program over plain Portals"},
    {"hpus", SUBJECT_OURS, LAUNCH_PAIR, 2, NULL,
     {"@bench_spin", "hpus"}, {NULL},
     "Pinwheel with two HPUs, a core each"},
    {"hpu", SUBJECT_OURS, LAUNCH_PAIR, 2, NULL,
     {"@bench_spin", "hpu"}, {NULL},
     "Pinwheel with one HPU"},
    {"one-hpu", SUBJECT_BASE, LAUNCH_PAIR, 2, NULL,
     {"@bench_spin", "one"}, {NULL},
     "one HPU in the place of two"},
    {"overlap", SUBJECT_OURS, LAUNCH_PAIR, 2, "libopenblas-dev",
     {"@bench_overlap"},
     {"OPENBLAS_NUM_THREADS=1"},
     "Pinwheel with one HPU on the core of a program that computes"},
    {"crew", SUBJECT_OURS, LAUNCH_PAIR, 8, NULL,
     {"@bench_crew", "handlers"}, {NULL},
     "Pinwheel, eight ranks, the handler library"},
    {"crew-cpu", SUBJECT_BASE, LAUNCH_PAIR, 8, NULL,
     {"@bench_crew", "cpu"}, {NULL},
     "the same jobs by the ranks' programs over plain Portals"},
    {"fifo", SUBJECT_BASE, LAUNCH_PAIR, 2, NULL,
     {"@bench_spin", "fifo"}, {NULL},
     "one HPU, all messages in one queue"},
    {"contiguous", SUBJECT_BASE, LAUNCH_PAIR, 2, NULL,
     {"@bench_spin", "plain"}, {"PINWHEEL_SHM_LARGE=cells"},
     "a contiguous put in the place of the job, through cells"},

    {"raw", SUBJECT_LIMIT, LAUNCH_PAIR, 2, NULL,
     {"@bench_limits", "raw"}, {NULL},
     "ping-pong on two cache lines"},
    {"memcpy", SUBJECT_LIMIT, LAUNCH_PAIR, 2, NULL,
     {"@bench_limits", "memcpy"}, {NULL},
     "memcpy by one core"},
    {"futex", SUBJECT_LIMIT, LAUNCH_PAIR, 2, NULL,
     {"@bench_limits", "futex"}, {NULL},
     "sleeping in a futex, woken by the other"},
    {"process_vm", SUBJECT_LIMIT, LAUNCH_PAIR, 2, NULL,
     {"@bench_limits", "process_vm"}, {NULL},
     "process_vm_readv"},

    {"ucx-posix", SUBJECT_PEER, LAUNCH_PAIR, 2, PACKAGES_UCX,
     {"@peer_ucx", "tag"}, {UCX_POSIX},
     "UCX, tagged messages through shared memory"},
    {"ucx-cma", SUBJECT_PEER, LAUNCH_PAIR, 2, PACKAGES_UCX,
     {"@peer_ucx", "tag"}, {"UCX_TLS=cma,posix,self"},
     "UCX, tagged messages, large ones by process_vm_readv"},
    {"ucx-am", SUBJECT_PEER, LAUNCH_PAIR, 2, PACKAGES_UCX,
     {"@peer_ucx", "am"}, {UCX_POSIX},
     "UCX, active messages"},
    {"ucx-put", SUBJECT_PEER, LAUNCH_PAIR, 2, PACKAGES_UCX,
     {"@peer_ucx", "put"}, {UCX_POSIX},
     "UCX, puts found by polling memory, which UCX has allocated"},
    {"openmpi", SUBJECT_PEER, LAUNCH_ONCE, 2, PACKAGES_OPENMPI,
     {OPENMPI_OB1}, {NULL},
     "Open MPI, ob1 over vader"},
    {"openmpi-ucx", SUBJECT_PEER, LAUNCH_ONCE, 2, PACKAGES_OPENMPI,
     {OPENMPI_UCX}, {NULL},
     "Open MPI over UCX"},
    {"openmpi-ucx-posix", SUBJECT_PEER, LAUNCH_ONCE, 2, PACKAGES_OPENMPI,
     {OPENMPI_UCX}, {UCX_POSIX},
     "Open MPI over UCX, through shared memory"},
    {"mpich", SUBJECT_PEER, LAUNCH_ONCE, 2, PACKAGES_MPICH,
     {MPICH}, {NULL},
     "MPICH"},
    {"mpich-posix", SUBJECT_PEER, LAUNCH_ONCE, 2, PACKAGES_MPICH,
     {MPICH}, {UCX_POSIX},
     "MPICH, through shared memory"},
    {"libfabric-shm", SUBJECT_PEER, LAUNCH_PAIR, 2, PACKAGES_LIBFABRIC,
     {"@peer_fabric"}, {NULL},
     "libfabric's provider shm, tagged messages"},
    {"openmpi-allocated", SUBJECT_PEER, LAUNCH_ONCE, 2, PACKAGES_OPENMPI,
     {OPENMPI_OB1, "allocated"}, {NULL},
     "Open MPI, one-sided on windows that it has allocated"},
    {"openmpi-ucx-allocated", SUBJECT_PEER, LAUNCH_ONCE, 2, PACKAGES_OPENMPI,
     {OPENMPI_UCX, "allocated"}, {NULL},
     "the same over UCX"},
    {"mpich-allocated", SUBJECT_PEER, LAUNCH_ONCE, 2, PACKAGES_MPICH,
     {MPICH, "allocated"}, {NULL},
     "MPICH, one-sided on windows that it has allocated"},

    {"openmpi-crew", SUBJECT_PEER, LAUNCH_ONCE, 8, PACKAGES_OPENMPI,
     {OPENMPI_CREW, "@peer_openmpi", "crew"}, {NULL},
     "Open MPI, ob1 over vader, eight ranks"},
    {"mpich-crew", SUBJECT_PEER, LAUNCH_ONCE, 8, PACKAGES_MPICH,
     {MPICH_OF("8"), "crew"}, {NULL},
     "MPICH, eight ranks"},

    {"udp", SUBJECT_OURS, LAUNCH_PAIR, 2, NULL,
     {"@bench_ours"}, {"PINWHEEL_FABRIC=udp", "PINWHEEL_IFACES=lo"},
     "Pinwheel over UDP, on loopback"},
    {"udp/raw", SUBJECT_LIMIT, LAUNCH_PAIR, 2, NULL,
     {"@bench_limits", "udp"}, {NULL},
     "UDP sockets without a protocol: ping-pong; segments of 1472 bytes, cut and joined"},
    {"udp/openmpi-tcp", SUBJECT_PEER, LAUNCH_ONCE, 2, PACKAGES_OPENMPI,
     {OPENMPI_TCP}, {NULL},
     "Open MPI, ob1 over tcp"},
    {"udp/ucx-tcp", SUBJECT_PEER, LAUNCH_PAIR, 2, PACKAGES_UCX,
     {"@peer_ucx", "tag"}, {"UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"},
     "UCX, tagged messages over tcp"},
    {"udp/tcp-rxm", SUBJECT_PEER, LAUNCH_PAIR, 2, PACKAGES_LIBFABRIC,
     {"@peer_fabric", "tcp;ofi_rxm"}, {"FI_TCP_IFACE=lo"},
     "libfabric's providers tcp;ofi_rxm, tagged messages"},

    {"openmpi-portals", SUBJECT_CLIENT, LAUNCH_ONCE, 2, PACKAGES_OPENMPI,
     {OPENMPI_PORTALS}, {NULL},
     "Open MPI over Pinwheel, by its own components for Portals 4"},
    /* clang-format on */
};

const int subject_table_size = sizeof(subject_table) / sizeof(subject_table[0]);

/* From the folder of the command `pinwheel`: the build tree, an installation. */
static const char *const folders[] = {"../../bench", "../libexec/pinwheel"};
static const char plugin_folder[] = "../../tests/clients/work/plugins";

/* The folder of the command `pinwheel`. */
static int command_folder(char *here, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", here, size - 1);
    if (length < 0) {
        return -1;
    }
    here[length] = '\0';
    *strrchr(here, '/') = '\0';
    return 0;
}

int subject_program(const char *name, char *path, size_t size)
{
    char here[4096];
    if (command_folder(here, sizeof(here)) != 0) {
        return -1;
    }
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        int n = snprintf(path, size, "%s/%s/%s", here, folders[i], name);
        if (n > 0 && (size_t)n < size && access(path, X_OK) == 0) {
            return 0;
        }
    }
    return -1;
}

/* ---- Open MPI's plug-ins ---- */

static const char *plugins_given;

void subject_use_plugins(const char *folder)
{
    plugins_given = folder;
}

int subject_plugins(char *path, size_t size)
{
    static const char *const needed[] = {"mca_mtl_portals4.so", "mca_osc_portals4.so"};
    char here[4096], folder[8192], file[8300];
    if (plugins_given == NULL && command_folder(here, sizeof(here)) != 0) {
        return -1;
    }
    if (plugins_given != NULL) {
        snprintf(folder, sizeof(folder), "%s", plugins_given);
    } else {
        snprintf(folder, sizeof(folder), "%s/%s", here, plugin_folder);
    }
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        snprintf(file, sizeof(file), "%s/%s", folder, needed[i]);
        if (access(file, R_OK) != 0) {
            return -1;
        }
    }
    int n = snprintf(path, size, "%s:SYS_DEFAULT", folder);
    return n > 0 && (size_t)n < size ? 0 : -1;
}

/* ---- What is missing ---- */

static int on_path(const char *program)
{
    const char *at = getenv("PATH");
    char path[4096];
    if (strchr(program, '/') != NULL) {
        return access(program, X_OK) == 0;
    }
    for (; at != NULL && *at != '\0'; at += *at == ':') {
        size_t length = strcspn(at, ":");
        snprintf(path, sizeof(path), "%.*s/%s", (int)length, at, program);
        if (access(path, X_OK) == 0) {
            return 1;
        }
        at += length;
    }
    return 0;
}

int subject_missing(const struct subject *s, char *why, size_t size)
{
    char path[4096];
    if (s->kind == SUBJECT_CLIENT && subject_plugins(path, sizeof(path)) != 0) {
        snprintf(why, size,
                 "no mca_mtl_portals4.so and mca_osc_portals4.so in %s; build them with "
                 "tests/clients/build_openmpi.sh and name their folder with --openmpi-plugins",
                 plugins_given != NULL ? plugins_given
                                       : "tests/clients/work/plugins of the build tree");
        return -1;
    }
    if (s->command[0][0] != '@' && !on_path(s->command[0])) {
        snprintf(why, size, "%s is not installed%s%s", s->command[0],
                 s->packages != NULL ? "; Debian packages: " : "",
                 s->packages != NULL ? s->packages : "");
        return -1;
    }
    for (int i = 0; i < SUBJECT_WORDS && s->command[i] != NULL; i++) {
        if (s->command[i][0] == '@' && subject_program(s->command[i] + 1, path, sizeof(path))) {
            snprintf(why, size, "its program %s was not built%s%s%s", s->command[i] + 1,
                     s->packages != NULL ? "; build with -DPINWHEEL_BENCH=ON and the packages "
                                         : "",
                     s->packages != NULL ? s->packages : "", "");
            return -1;
        }
    }
    return 0;
}
