#!/bin/sh
# Whether tests notice errors: each *.patch here breaks one rule in one place. It is applied to a copy
# of the tree, and soak_differ must fail then; for flow_*.patch portals_rule_flow, for rx_*.patch
# fabric_machine. README.md.
#
#   run.sh SCRATCH [NAME...]      all, or some; SCRATCH is a folder for the copy, kept for the next time
#
# Tells of each mutant where it dies: self (to oneself), shm and udp (to another process), triggered.
# 0: all die; 1: one lives; 2: one cannot be tried.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "$here/../.." && pwd)
if [ $# -lt 1 ]; then
    echo "usage: run.sh SCRATCH [NAME...]" >&2
    exit 2
fi
mkdir -p "$1"
scratch=$(cd "$1" && pwd)
shift
if [ $# -eq 0 ]; then
    for patch in "$here"/*.patch; do
        set -- "$@" "$(basename "$patch" .patch)"
    done
fi
jobs=${JOBS:-$(nproc)}
programs=${MUTANT_PROGRAMS:-6}
rounds=${MUTANT_ROUNDS:-400}

# Files that have not changed keep their times, and are not built again.
(cd "$tree" && git ls-files -z | tar --null -T - -cf - 2> /dev/null) | (cd "$scratch" && mkdir -p new && tar xf - -C new)
mkdir -p "$scratch/tree"
(cd "$scratch/new" && find . -type f -o -type l) | while read -r file; do
    if ! cmp -s "$scratch/new/$file" "$scratch/tree/$file"; then
        mkdir -p "$scratch/tree/$(dirname "$file")"
        cp -P "$scratch/new/$file" "$scratch/tree/$file"
    fi
done
rm -rf "$scratch/new"

build() {
    case $1 in
    rx_*) targets=fabric_machine ;;
    flow_*) targets="portals portals_rule_flow" ;;
    *) targets="portals soak_differ" ;;
    esac
    # shellcheck disable=SC2086 # several words
    cmake --build "$scratch/build" -j "$jobs" --target $targets > "$scratch/build.log" 2>&1 || {
        echo "$1: it does not build, see $scratch/build.log" >&2
        exit 2
    }
}

# Whether the programs come to what they must, with fast paths and without. A mutant that hangs does
# not come there either.
differ() { # FABRIC WAY...
    fabric=$1
    shift
    PINWHEEL_FABRIC=$fabric PINWHEEL_IFACES=lo PINWHEEL_LOG=error timeout 300 \
        "$scratch/build/tests/soak/soak_differ" 1 "$programs" "$rounds" --as-is "$@" >> "$scratch/differ.log" 2>&1
}
flow() { # FABRIC CASE...
    fabric=$1
    shift
    PINWHEEL_FABRIC=$fabric PINWHEEL_IFACES=lo PINWHEEL_LOG=error PINWHEEL_FLOWCTRL_MS=10 timeout 300 \
        "$scratch/build/tests/portals/portals_rule_flow" "$@" >> "$scratch/differ.log" 2>&1
}
fails_at() { # MUTANT
    : > "$scratch/differ.log"
    case $1 in
    flow_*)
        flow shm 'flow_queue_full.*.self' || echo self
        flow shm 'flow_queue_full.*.pair' || echo shm
        flow udp 'flow_queue_full.*.pair' || echo udp
        flow shm 'flow_queue_full_triggered.*' || echo triggered
        return
        ;;
    rx_*)
        timeout 300 "$scratch/build/tests/fabric/fabric_machine" > "$scratch/differ.log" 2>&1 || echo machine
        return
        ;;
    esac
    differ shm direct-on direct-off || echo self
    differ shm apart-on apart-off || echo shm
    differ udp apart-on apart-off || echo udp
    differ shm triggered-on triggered-off || echo triggered
}

# What is built for one run of some seconds is compiled in a hurry.
cmake -S "$scratch/tree" -B "$scratch/build" -DPINWHEEL_TESTS=ON -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_C_FLAGS=-O1 > "$scratch/cmake.log" 2>&1 || {
    tail "$scratch/cmake.log" >&2
    exit 2
}
build "the tree"
build rx_
build flow_
if [ -n "$(fails_at all)$(fails_at flow_)$(fails_at rx_)" ]; then
    cat "$scratch/differ.log" >&2
    echo "the tree itself fails" >&2
    exit 2
fi
bad=0
for name in "$@"; do
    patch -s -d "$scratch/tree" -p1 < "$here/$name.patch" || {
        echo "$name: the patch does not fit the tree any more: make it anew" >&2
        exit 2
    }
    build "$name"
    where=$(fails_at "$name" | tr '\n' ' ')
    if [ -z "$where" ]; then
        echo "$name lives"
        bad=1
    else
        echo "$name dies at: $where"
    fi
    patch -s -R -d "$scratch/tree" -p1 < "$here/$name.patch"
done
exit $bad
