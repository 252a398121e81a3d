#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What large jobs of `pinwheel sim` take: nic_bars.py BUILD-FOLDER [CASE...].

For each case the seconds that it took, the processor time of all its processes, and the most memory
that they had together: the sum of their proportional shares (Pss), looked at again and again. A
case misses its bar if its processor time is above, on a machine with other work on it, or its
memory is. What the ranks print is looked at, too: they check their bytes.
"""
import glob
import os
import resource
import subprocess
import sys
import tempfile
import threading
import time

build = os.path.abspath(sys.argv[1])
pinwheel, programs = f"{build}/tools/pinwheel/pinwheel", f"{build}/tests/simnic"
here = os.path.dirname(os.path.abspath(__file__))
LOOK_S = 1.0
# name, ranks, program and arguments, seconds, GB (0: no bar)
CASES = [("broadcast", 1024, [f"{programs}/simnic_scale", "broadcast", "65536"], 60, 4),
         ("wide", 4096, [f"{programs}/simnic_scale", "broadcast", "8"], 90, 6),
         ("alltoall", 64, ["MPI", "alltoall", "65536"], 60, 0),
         ("pingpong", 2, [f"{programs}/simnic_scale", "pingpong", "300000"], 60, 0)]


def share(pid):
    try:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            return next((int(line.split()[1]) for line in f if line.startswith("Pss:")), 0)
    except OSError:
        return 0


def children(pid):
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        try:
            with open(path) as f:
                found += [int(word) for word in f.read().split()]
        except OSError:
            pass
    return found


def watch(pid, over, most):
    while not over.wait(LOOK_S):
        most[0] = max(most[0], sum(share(p) for p in [pid, *children(pid)]))


def mpi_program(folder):
    """The program of tests/simnic/mpi.sh, and how Open MPI finds its components; None: it cannot."""
    work, program = f"{build}/tests/clients/work", f"{folder}/mpi"
    if not os.path.exists(f"{work}/plugins/mca_mtl_portals4.so"):
        return None
    subprocess.run(["mpicc.openmpi", "-O2", f"{here}/../../tests/simnic/mpi.c", "-o", program], check=True)
    stock = subprocess.run(["mpicc.openmpi", "--showme:libdirs"], check=True, capture_output=True,
                           text=True).stdout.split()[0]
    clients = f"{here}/../../tests/clients"
    os.environ.update(OMPI_MCA_mca_base_component_path=f"{work}/plugins:{stock}/openmpi3",
                      OMPI_MCA_mca_base_param_files=f"{clients}/portals.conf,{clients}/openmpi.conf",
                      OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return program


def run(name, ranks, command, seconds, gigabytes):
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    over, most = threading.Event(), [0]
    with subprocess.Popen([pinwheel, "sim", "-n", str(ranks), "--quiet", *command],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as job:
        watcher = threading.Thread(target=watch, args=(job.pid, over, most))
        watcher.start()
        said = job.communicate()[0]
        over.set()
        watcher.join()
    took = time.monotonic() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    memory = most[0] * 1024 / 1e9
    right = job.returncode == 0 and "WRONG" not in said
    met = right and cpu <= seconds and (gigabytes == 0 or memory <= gigabytes)
    print(f"{name:10} {ranks:6} {took:8.1f} {cpu:8.1f} {seconds:6} {memory:8.2f} "
          f"{gigabytes or '':6} {'met' if met else 'MISSED' if right else 'FAILS: ' + said[-300:]}",
          flush=True)
    return met


print(f"{'case':10} {'ranks':>6} {'seconds':>8} {'CPU s':>8} {'bar':>6} {'GB':>8} {'bar':>6}")
status = 0
with tempfile.TemporaryDirectory() as scratch:
    for case, size, words, most_s, most_gb in CASES:
        if len(sys.argv) > 2 and case not in sys.argv[2:]:
            continue
        if words[0] == "MPI":
            words = [mpi_program(scratch), *words[1:]]
            if words[0] is None:
                print(f"{case:10} not run: Open MPI's components are not there (ctest -R clients.build)")
                continue
        status |= not run(case, size, words, most_s, most_gb)
sys.exit(status)
