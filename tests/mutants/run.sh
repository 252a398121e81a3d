#!/bin/sh
# Whether tests notice errors: each *.patch here breaks one rule in one place. It is applied to a copy
# of the tree, and soak_differ must fail then, or, for rx_*.patch, fabric_machine. README.md.
#
#   run.sh SCRATCH [NAME...]      all, or some; SCRATCH is a folder for the copy, kept for the next time
#
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
    *) targets="portals soak_differ fabric_machine" ;;
    esac
    # shellcheck disable=SC2086 # several words
    cmake --build "$scratch/build" -j "$jobs" --target $targets > "$scratch/build.log" 2>&1 || {
        echo "$1: it does not build, see $scratch/build.log" >&2
        exit 2
    }
}

# Where the programs do not come to what they must: at oneself, between two processes over shared
# memory, or over UDP. A mutant that hangs does not come there either.
differ() { # FABRIC WAY...
    fabric=$1
    shift
    PINWHEEL_FABRIC=$fabric PINWHEEL_IFACES=lo PINWHEEL_LOG=error timeout 300 \
        "$scratch/build/tests/soak/soak_differ" 1 "$programs" 400 --as-is "$@" >> "$scratch/differ.log" 2>&1
}
fails_at() { # MUTANT
    : > "$scratch/differ.log"
    case $1 in
    rx_*)
        timeout 300 "$scratch/build/tests/fabric/fabric_machine" > "$scratch/differ.log" 2>&1 || echo machine
        return
        ;;
    esac
    differ auto self-on self-off || echo self
    differ auto pair-on pair-off || echo shm
    differ udp pair-on pair-off || echo udp
}

cmake -S "$scratch/tree" -B "$scratch/build" -DPINWHEEL_TESTS=ON > "$scratch/cmake.log" 2>&1 || {
    tail "$scratch/cmake.log" >&2
    exit 2
}
build "the tree"
if [ -n "$(fails_at all)$(fails_at rx_)" ]; then
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
