#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# Open MPI's programs on simulated NICs, by its portals4 components and without mpirun:
#
#   mpi.sh CASE PINWHEEL FOLDER CLIENTS
#
# FOLDER is for what is compiled here, CLIENTS what tests/clients/prepare.sh has filled.
# shellcheck disable=SC2317  # each case is a function, called by the name that it was given
set -u
case=$1 pinwheel=$2 folder=$3 clients=$4
# shellcheck source=tests/simnic/kit.sh
. "$(dirname "$0")/kit.sh"
here=$(cd "$(dirname "$0")" && pwd)
if [ ! -x "$clients/own/messages" ] || [ ! -e "$clients/plugins/mca_mtl_portals4.so" ]; then
    echo "mpi.sh: skipped, Open MPI's portals4 components are not built: $(cat "$clients/no-source" 2>&1)" >&2
    exit 77
fi
program=$folder/simnic_mpi
mpicc.openmpi -std=gnu17 -O2 -Wall -Wextra -Werror "$here/mpi.c" -o "$program.$case" || exit 1
program=$program.$case

# What tests/clients/run.sh gives to mpirun.
stock=$(mpicc.openmpi --showme:libdirs | awk '{ print $1 }')/openmpi3
export OMPI_MCA_mca_base_component_path="$clients/plugins:$stock"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 MALLOC_PERTURB_=255

# over TRANSPORT: the parameters of Open MPI
over() {
    export OMPI_MCA_mca_base_param_files="$here/../clients/$1.conf,$here/../clients/openmpi.conf"
}

# has WHAT TEXT SAID
has() {
    case $3 in
    *"$2"*) ;;
    *) same "$1" "...$2..." "$3" ;;
    esac
}

# twice TRANSPORT RANKS PROGRAM [PART]...: all is right, some messages were sent, and the second run
# is the same to the picosecond.
twice() {
    over "$1"
    first=$(sim -n "$2" --json "${@:3}" 2>&1) || { echo "$*: $first" >&2; status=1; return; }
    second=$(MORE=$(printf '%0100d' 0) sim -n "$2" --json "${@:3}" 2>&1)
    case $first in
    *WRONG*|*'"messages": 0,'*) same "$*" "right, with messages" "$first" ;;
    esac
    same "$*, once more" "$(echo "$first" | grep -A 9 time_ps)" "$(echo "$second" | grep -A 9 time_ps)"
}

programs() {
    own=$clients/own
    twice portals 4 "$own/messages" ring outstanding truncation
    twice portals 3 "$own/onesided" pscw requests
    twice portals 3 "$own/accumulate" compare_swap
    twice collectives 4 "$own/collectives" bcast all_to_all
    twice btl 2 "$own/messages" ring
    twice portals 5 -j 1 "$program" alltoall 20000
    twice portals 3 "$program" clock
    twice portals 3 "$program" late 100
    over portals
    same alone "0 " "$(sim -n 1 --quiet "$program" clock | cut -c 1-2)"
}

# says STATUS TEXT COMMAND...
says() {
    said=$("${@:3}" 2>&1)
    same "${*:4}, status" "$1" $?
    has "${*:4}" "$2" "$said"
}

refused() {
    over portals
    says 5 "rank 1 exited with status 5" sim -n 3 --quiet "$program" dies 5
    says 137 "rank 1 was ended by signal 9" sim -n 3 --quiet "$program" killed
    says 0 "rank 0 asks for more processes (MPI_Comm_spawn)" sim -n 2 --quiet "$program" spawn
    says 0 "no MPI program" sim --pmix -n 2 --quiet echo "no MPI program"
    over stock
    OMPI_MCA_btl=self,tcp OMPI_MCA_btl_tcp_if_include=lo says 0 "no rank has opened a simulated NIC" \
        sim -n 2 "$program" alltoall 8
    mkdir -p "$folder/no_pmix"
    : > "$folder/no_pmix/libpmix.so.2"
    says 1 "PMIx's library cannot be loaded" env LD_LIBRARY_PATH="$folder/no_pmix" "$pinwheel" sim \
        "$program" clock
    left=$(find /tmp -maxdepth 2 -path '*pinwheel-sim*' \
        \( -path '/tmp/ompi.*/pid.*' -o -path '/tmp/pmix*' -o -path '/tmp/*/pmix_dstor*' \) 2> /dev/null)
    same "left behind" "" "$left"
}

$case
exit $status
