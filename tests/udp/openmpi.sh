#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Open MPI's own components for Portals on two hosts made of network namespaces, two processes in
# each: openmpi.sh FOLDER CALLS MPIRUN, FOLDER what tests/clients/prepare.sh filled, CALLS the library
# of tests/clients/calls.c; see README.md. They know nothing of libpinwheel: the job's key is in a file.
folder=$1
calls=$2
mpirun=$3
[ ! -e "$folder/no-source" ] || { cat "$folder/no-source"; exit 77; }
# shellcheck source=tests/udp/net.sh
. "$(dirname "$0")/net.sh"
net_make 2
clients=$here/../clients
plugins=$folder/plugins:$(mpicc.openmpi --showme:libdirs | awk '{ print $1 }')/openmpi3
(umask 077; head -c 32 /dev/urandom >"$scratch/key")

# run PROGRAM PART...: with the key, if there is one; the launcher itself is on host 1
run()
{
    rm -f "$scratch/calls"
    timeout 150 "$here/enter.sh" h1 OMPI_MCA_mca_base_param_files="$clients/portals.conf" \
        OMPI_MCA_mca_base_component_path="$plugins" MALLOC_PERTURB_=255 PORTALS_CALLS="$scratch/calls" \
        "$mpirun" --allow-run-as-root --mca plm_rsh_agent "$here/enter.sh" \
        --mca oob_tcp_if_include eth0 --mca mpi_yield_when_idle 1 --bind-to none --mca orte_tmpdir_base "$scratch" \
        -x PINWHEEL_SHM_DIR -x PINWHEEL_IFACES=eth0 -x LD_PRELOAD="$calls" -x PORTALS_CALLS \
        -x MALLOC_PERTURB_ -x OMPI_MCA_mca_base_param_files -x OMPI_MCA_mca_base_component_path \
        ${key:+-x PINWHEEL_JOB_KEY_FILE="$key"} --host 10.77.0.1:2,10.77.0.2:2 -n 4 "$@" \
        >"$scratch/out" 2>&1
}

# The bytes that have left host 1.
left()
{
    net_in 1 cat /sys/class/net/eth0/statistics/tx_bytes
}

key=$scratch/key
before=$(left)
for parts in "messages blocking wildcards derived" "onesided fence lock"; do
    # shellcheck disable=SC2086
    set -- $parts
    program=$1
    shift
    run "$folder/own/$program" "$@" || fail "$program: $(cat "$scratch/out")"
    [ "$(grep -c 'mca_mtl_portals4:PtlPut' "$scratch/calls")" = 4 ] ||
        fail "$program: not all called PtlPut: $(cat "$scratch/calls")"
done
[ $(($(left) - before)) -gt 2000000 ] || fail "only $(($(left) - before)) bytes left host 1"

# Without it the other host is not reached, and it is said why.
key=''
run "$folder/own/messages" blocking && fail "without a key the other host was reached"
grep -q "PINWHEEL_JOB_KEY_FILE" "$scratch/out" || fail "nobody named the remedy: $(cat "$scratch/out")"
finish "Open MPI's components on $hosts hosts"
