#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs the programs of this folder over Open MPI's portals4 components.
#
#   openmpi.sh [-l | -s] FOLDER CALLS
#
# FOLDER is what prepare.sh filled, CALLS the library of calls.c. With -l each
# runs with 2, 3 and 4 processes, several times, and once over the stock
# transport, which shows that it asks for nothing that MPI does not have. With -s
# some parts of each run, with 2 processes: for another fabric (PINWHEEL_FABRIC).
#
# Exit: 0 all right; 77 prepare.sh found no source; 1 something went wrong.
set -eu
times=1 sizes='2 4' long='' some=''
case ${1:-} in
-l) times=3 sizes='2 3 4' long=yes; shift ;;
-s) times=0 some=yes; shift ;;
esac
[ $# -eq 2 ] || { echo "usage: openmpi.sh [-l | -s] FOLDER CALLS" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd) folder=$1 calls=$2
[ ! -e "$folder/no-source" ] || { cat "$folder/no-source" >&2; exit 77; }

failed=0
# over TRANSPORT PROCESSES "CHECKS" PROGRAM [PART]...
over() {
    transport=$1 processes=$2 checks=$3 program=$4
    shift 4
    echo "== $program over $transport, $processes processes"
    # shellcheck disable=SC2086  # checks are options and their words
    "$here/run.sh" -t 150 -p "$folder/plugins" -w "$calls" $checks \
        "$transport" "$processes" "$folder/own/$program" "$@" || {
        echo "openmpi.sh: $program over $transport with $processes processes went wrong" >&2
        failed=$((failed + 1))
    }
}

mtl='-u mca_mtl_portals4:PtlPut -u mca_mtl_portals4:PtlGet'
osc='-u mca_osc_portals4:PtlPut -u mca_osc_portals4:PtlGet'
atomics='-u mca_osc_portals4:PtlAtomic -a mca_osc_portals4:PtlFetchAtomic -a mca_osc_portals4:PtlSwap'
coll='-u mca_coll_portals4:PtlTriggeredPut -a mca_coll_portals4:PtlTriggeredAtomic'
coll="$coll -a mca_coll_portals4:PtlTriggeredCTInc"
btl='-u mca_btl_portals4:PtlPut -u mca_btl_portals4:PtlGet'
run=0
while [ $run -lt $times ]; do
    for n in $sizes; do
        over portals "$n" "$mtl -u mca_mtl_portals4:PtlMESearch" messages
        over portals "$n" '-a mca_mtl_portals4:PtlPTEnable' flood
        over portals "$n" "$osc" onesided
        over portals "$n" "$atomics" accumulate
        over collectives "$n" "$coll" collectives
        over btl "$n" "$btl" messages ring sizes blocking derived
    done
    run=$((run + 1))
done
if [ -n "$some" ]; then
    over portals 2 "$mtl" messages blocking self outstanding wildcards truncation derived
    over portals 2 "$osc" onesided fence pscw lock requests
    over portals 2 "-u mca_osc_portals4:PtlFetchAtomic" accumulate fetching compare_swap
    over collectives 2 '-u mca_coll_portals4:PtlTriggeredPut' collectives bcast gather_scatter
    over btl 2 "$btl" messages blocking derived
fi
# Parts in which Open MPI's own transport goes wrong are left out (README.md).
if [ -n "$long" ]; then
    over stock 3 '' messages ring sizes blocking self outstanding wildcards probes cancelling derived
    over stock 3 '' flood
    over stock 3 '' onesided
    over stock 3 '' accumulate large compare_swap tickets strided
    over stock 3 '' collectives
fi
[ $failed -eq 0 ] || { echo "openmpi.sh: $failed runs went wrong" >&2; exit 1; }
