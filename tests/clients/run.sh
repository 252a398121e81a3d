#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs an MPI program with Open MPI over one of the transports of this folder.
#
#   run.sh [OPTION]... TRANSPORT PROCESSES PROGRAM [ARGUMENT]...
#
#   TRANSPORT    the name of a .conf of this folder: stock, portals, btl
#   -p PLUGINS   the folder of our plug-ins (build_openmpi.sh)
#   -m KEY=VALUE one more MCA parameter; may be repeated
#   -t SECONDS   time limit, 120 if not given; then status 124
#   -w LIBRARY   watch the calls of Portals with this library (calls.c)
#   -u CALLER:FUNCTION
#                every process must have called this function of Portals from this
#                plug-in; may be repeated, needs -w
#   -a CALLER:FUNCTION
#                the same, of at least one process
set -eu
usage() { sed -n 's/^# \{0,1\}//; 4,17p' "$0" >&2; exit 2; }
plugins='' seconds=120 watch='' every='' some=''
while getopts p:m:t:w:u:a: option; do
    case $option in
    p) plugins=$(cd "$OPTARG" && pwd) ;;
    m) export "OMPI_MCA_${OPTARG?}" ;;
    t) seconds=$OPTARG ;;
    w) watch=$OPTARG ;;
    u) every="$every $OPTARG" ;;
    a) some="$some $OPTARG" ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -ge 3 ] || usage
transport=$1 processes=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd)
[ -e "$here/$transport.conf" ] || { echo "run.sh: no $transport.conf in $here" >&2; exit 2; }

scratch=$(mktemp -d "${TMPDIR:-/tmp}/pw-mpi-XXXXXX")
trap 'rm -rf "$scratch"' EXIT
# Only our parameter files are read. A container's root may run programs.
export OMPI_MCA_mca_base_param_files="$here/$transport.conf,$here/openmpi.conf"
installed=$(mpicc.openmpi --showme:libdirs | awk '{ print $1 }')/openmpi3
export OMPI_MCA_mca_base_component_path="${plugins:+$plugins:}$installed"
export OMPI_MCA_orte_tmpdir_base="$scratch"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
export MALLOC_PERTURB_=255 # README.md, defects of Open MPI

status=0
timeout -k 10 "$seconds" mpirun.openmpi -n "$processes" \
    ${watch:+-x LD_PRELOAD="$watch" -x PORTALS_CALLS="$scratch/calls"} "$@" || status=$?
[ "$status" -ne 124 ] || echo "run.sh: $1 over $transport took more than $seconds s" >&2

# A line a process, caller and function: CALLER:FUNCTION COUNT
touch "$scratch/calls"
for used in $every $some; do
    seen=$(awk -v used="$used" '$1 == used { n++ } END { print n + 0 }' "$scratch/calls")
    needed=$processes
    case " $some " in *" $used "*) needed=1 ;; esac
    if [ "$seen" -lt "$needed" ]; then
        echo "run.sh: $used was called in $seen processes of $processes, not in $needed" >&2
        status=1
    fi
done
if [ -n "$watch" ]; then
    awk '{ n[$1] += $2 } END { for (c in n) print "  " c, n[c] }' "$scratch/calls" | sort
fi
exit "$status"
