#!/bin/sh
# Counts the instructions of each row under callgrind and holds them against a file. README.md.
#
#   count.sh [--percent P] [--rows NAME,NAME...] [--expected FILE] [--update REASON] BUILD
#
# --update writes the rows that it counts to the file.
#
# 0: no row is more than P percent (2) above its value in the file; 1: one is; 2: no count.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
expected=$here/expected
percent=2
only=
reason=
usage() {
    echo "usage: count.sh [--percent P] [--rows NAME,...] [--expected FILE] [--update REASON] BUILD" >&2
    exit 2
}
fail() {
    echo "count.sh: $*" >&2
    exit 2
}
while [ $# -gt 1 ]; do
    case $1 in
    --percent) percent=$2 ;;
    --rows) only=$2 ;;
    --expected) expected=$2 ;;
    --update) reason=$2 ;;
    *) usage ;;
    esac
    [ -n "$2" ] || usage
    shift 2
done
[ $# -eq 1 ] || usage
build=$1
case $build in -*) usage ;; esac
echo "$percent" | grep -Eqx '[0-9]+(\.[0-9]+)?' || fail "--percent $percent: not a number"
for program in count_shm count_udp; do
    [ -x "$build/bench/$program" ] || fail "$build/bench/$program is not there: make count builds it"
done
[ -n "$reason" ] || [ -f "$expected" ] || fail "$expected is not there: --update REASON writes it"
portals=$(readlink -f "$build"/src/portals/libportals.so)
pinwheel=$(readlink -f "$build"/src/boot/libpinwheel.so)

# Segments lie in a folder of our own, so that fixed PIDs are free; it is a tmpfs like /dev/shm.
scratch=$(mktemp -d /dev/shm/pinwheel-count.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 2' HUP INT TERM

# What the rows depend on beside our sources.
made_by() {
    gcc --version | sed -n '1s/^/made by /p'
    getconf GNU_LIBC_VERSION | sed 's/^/with /'
    riscv64-unknown-elf-gcc --version | sed -n '1s/^/handlers by /p'
}

plain_libc=-AVX,-AVX2,-AVX512F,-AVX512VL,-AVX512BW,-AVX_Fast_Unaligned_Load,-ERMS,-FSRM,-SSSE3,-RTM

# One row: NAME OPERATIONS INSTRUCTIONS L1-MISSES BRANCHES. libc takes its plainest functions and
# callgrind a cache of its own invention, whatever the processor is. The program has a file written
# for each piece of the row (count.c).
count_row() { # PROGRAM NAME
    rc=0
    rm -f "$scratch"/out*
    env -i PATH="$PATH" PINWHEEL_SHM_DIR="$scratch" GLIBC_TUNABLES="glibc.cpu.hwcaps=$plain_libc" \
        timeout 300 valgrind --tool=callgrind --collect-atstart=no --cache-sim=yes \
        --branch-sim=yes --I1=32768,8,64 --D1=32768,8,64 --LL=8388608,16,64 \
        --callgrind-out-file="$scratch/out" \
        "$build/bench/$1" "$2" >"$scratch/operations" 2>"$scratch/log" || rc=$?
    [ $rc -eq 0 ] || {
        cat "$scratch/log" >&2
        fail "the row $2 could not be counted"
    }
    awk -v name="$2" -v operations="$(cat "$scratch/operations")" '
        /^events:/ { for (i = 2; i <= NF; i++) column[$i] = i }
        /^totals:/ {
            instructions += $(column["Ir"])
            misses += $(column["I1mr"])
            branches += $(column["Bc"]) + $(column["Bi"])
        }
        END { if (instructions) print name, operations, instructions, misses, branches }' \
        "$scratch"/out* >"$scratch/row"
    [ -s "$scratch/row" ] || fail "callgrind counted nothing of the row $2"
    cat "$scratch/row"
}

text_row() { # NAME FILE
    size -A "$2" | awk -v name="$1" '$1 == ".text" { print name, 1, $2, "-", "-" }'
}

wanted() {
    case ,$only, in ,, | *",$1,"*) return 0 ;; esac
    return 1
}

# The programs name their rows themselves.
rows_of() {
    "$build/bench/$1" 2>&1 | sed -n 's/^usage: .* one of: //p'
}

for program in count_shm count_udp; do
    for row in $(rows_of $program); do
        ! wanted "$row" || count_row $program "$row" >>"$scratch/counted"
    done
done
! wanted text || text_row text "$portals" >>"$scratch/counted"
! wanted text_pinwheel || text_row text_pinwheel "$pinwheel" >>"$scratch/counted"
[ -s "$scratch/counted" ] || fail "no row is named $only; there are: $(rows_of count_shm) $(rows_of count_udp) text text_pinwheel"

made_by >"$scratch/made_by"
made_alike() {
    sed -n '/^made by \|^with \|^handlers by /p' "$expected" | cmp -s - "$scratch/made_by"
}

if [ -n "$reason" ]; then
    [ -z "$only" ] || { [ -f "$expected" ] && made_alike; } ||
        fail "$expected was made with other compilers or another libc, or is not there: leave --rows out"
    {
        [ ! -f "$expected" ] || sed -n '/^#/p' "$expected"
        echo "# $(date +%Y-%m-%d): $reason"
        cat "$scratch/made_by"
        [ -z "$only" ] || sed '/^#/d; /^made by /d; /^with /d; /^handlers by /d' "$expected"
        awk '{ printf "%s %.2f\n", $1, $3 / $2 }' "$scratch/counted"
    } | awk '/^#|^made by |^with |^handlers by / { print; next }
             !($1 in value) { order[++rows] = $1 }
             { value[$1] = $2 }
             END { for (i = 1; i <= rows; i++) print order[i], value[order[i]] }' >"$scratch/expected"
    cat "$scratch/expected" >"$expected"
fi
made_alike || {
    echo "Attention: the file was not made with these compilers and this libc, so ratios tell less:"
    sed 's/^/    /' "$scratch/made_by"
}
awk -v percent="$percent" -v file="$expected" '
    FILENAME == file {
        if (NF == 2 && $1 !~ /^(#|with)/) value[$1] = $2
        next
    }
    FNR == 1 {
        printf "%-14s %12s %10s %7s %6s %10s %9s\n", "row", "instructions", "file", "ratio", "",
               "I1 misses", "branches"
    }
    {
        each = $3 / $2
        seen[$1] = 1
        known = $1 in value
        verdict = !known ? "not in the file" : each > value[$1] * (1 + percent / 100) ? "over" : "ok"
        if (verdict != "ok") bad++
        printf "%-14s %12.1f %10s %7s %6s %10s %9s\n", $1, each,
               known ? sprintf("%.1f", value[$1]) : "-",
               known ? sprintf("%.4f", each / value[$1]) : "-", verdict,
               $4 == "-" ? "-" : sprintf("%.2f", $4 / $2), $5 == "-" ? "-" : sprintf("%.1f", $5 / $2)
    }
    END {
        for (name in value) if (!(name in seen) && all) { print name ": in the file, and no row"; bad++ }
        exit bad != 0
    }' all="$([ -n "$only" ] && echo 0 || echo 1)" "$expected" "$scratch/counted" || {
    echo "More than $percent % above $expected: find out why, or say why in it (bench/count/README.md)."
    exit 1
}
