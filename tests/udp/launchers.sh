#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Other launchers on two hosts made of network namespaces, two processes in each:
# launchers.sh HELLO_PUT JOB_CLIENT [HYDRA [MPIRUN]]; see README.md.
hello=$1
job_client=$2
hydra=${3-}
mpirun=${4-}
# shellcheck source=tests/udp/net.sh
. "$(dirname "$0")/net.sh"
net_make 2
list=10.77.0.1:2,10.77.0.2:2
expected=$(for r in 0 1 2 3; do echo "rank $r received \"hello from rank $(((r + 3) % 4)) of 4\""; done)

# check NAME COMMAND...: the ring of puts, and all calls of libpinwheel
check()
{
    name=$1
    shift
    timeout 60 "$@" "$hello" >"$scratch/out" 2>"$scratch/err"
    code=$?
    if [ $code != 0 ] || [ "$(sort "$scratch/out")" != "$expected" ]; then
        fail "$name: status $code, $(cat "$scratch/out" "$scratch/err")"
    fi
    timeout 60 "$@" "$job_client" 4 >"$scratch/out" 2>"$scratch/err" ||
        fail "$name, all calls: $(cat "$scratch/out" "$scratch/err")"
}

# The launcher itself runs on host 1. No key is given: it comes from the job.
[ -z "$hydra" ] || check hydra "$here/enter.sh" h1 PINWHEEL_IFACES=eth0 "$hydra" \
    -launcher ssh -launcher-exec "$here/enter.sh" -iface eth0 -hosts "$list" -n 4
[ -z "$mpirun" ] || check mpirun "$here/enter.sh" h1 "$mpirun" --allow-run-as-root \
    --mca plm_rsh_agent "$here/enter.sh" --mca oob_tcp_if_include eth0 --bind-to none \
    --mca orte_tmpdir_base "$scratch" -x PINWHEEL_IFACES=eth0 -x PINWHEEL_SHM_DIR \
    --host "$list" -n 4
finish "other launchers on $hosts hosts"
