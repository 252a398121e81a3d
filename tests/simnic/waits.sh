#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# What a program says to its simulated NIC, and how it waits beside it: waits.sh CASE PINWHEEL
# FOLDER-OF-PROGRAMS. Times are computed by hand from the table of docs/sim-nic.md.
# shellcheck disable=SC2317  # each case is a function, called by the name that it was given
set -u
case=$1 pinwheel=$2 programs=$3
# shellcheck source=tests/simnic/kit.sh
. "$(dirname "$0")/kit.sh"

# says WANTED ARGUMENT...: what a scene of simnic_says prints; OPTIONS are of `pinwheel sim`
says() {
    # shellcheck disable=SC2086  # several options
    same "says ${*:2} ${OPTIONS:-}" "$1" \
        "$(sim ${OPTIONS:-} --quiet "$programs/simnic_says" "${@:2}" 2>&1 | tr '\n' ';')"
}

# Memory of discrete and integrated: 51 ns, and 6.667 ps a byte, 20.001 ns for 3,000 B.
touch_memory() {
    for OPTIONS in "" "--nic integrated"; do
        says "71001;71001;0;" touch
    done
    # The second thread's bytes come behind those of the first one.
    OPTIONS="" says "71001;91002;" touch two
    OPTIONS="--nic zero" says "0;0;0;" touch
}

# The put is in memory after 5 us, o 65, L_dma 250, cables and switch 116.8, 7 bytes 0.14, match 30 and
# L_dma 250, 5,711.94 ns in all: the next look of 20 ns ends at 5,720. The thread sets the word 3 us
# later, and begins at once: 150 looks, of which the last one ends at that time and comes before it.
pauses() {
    for OPTIONS in "-n 2" "-n 2 --no-skip"; do
        says "5720000;151;" pause
    done
    OPTIONS="" says "20000;" queue
}

# 3 times 10 ns; the puts take o, 65 ns, each, and then 1,000 ns. Phases with names of their own: 31.
marks() {
    cut="phase 0 of a name that is longer than a record "
    OPTIONS="-n 1" says "compute: 3 30000 0;exchange: 3 3195000 3;${cut:0:47}: 1 1000 0;\
${cut:0:6}28 of a name that is longer than a record: 1 1000 0;(others): 11 11000 0;" phases
    same "out of a simulation" "0;" "$("$pinwheel" run "$programs/simnic_says" touch 2>&1 | wc -l | sed 's/3/0;/')"
}

# What programs block in: who waits goes on when another one has paused for as long as it says.
blocks() {
    scene() {
        for jobs in 1 2 2; do
            same "$1, -j $jobs" "$2" \
                "$(sim -j "$jobs" --quiet "$programs/simnic_blocks" "$1" 2>&1 | tr '\n' ';')"
        done
    }
    scene first "20 70;"               # joined at its end; then 50
    scene pause "-1 1 25 125;"
    scene suspend "0 40 -1 1 40 125;"  # taken when it is let in
    scene sigwait "1 10 0 1 30 130;"
    scene ends "100 15 1 200 45;"      # 15; 30 more, though a child ends after 10
    scene handler "1 43;"              # 20 + 5 + 7 + 11
    scene fifo "30 40 reader 60;writer 60;"
    scene locks "40 80 85;"
    scene sockets "2 40 1 60;"
    scene splice "0 15 4 35;"
    scene queues "1 10 0 30 8 60;"
    case $(sim --quiet "$programs/simnic_blocks" posix 2>&1) in
    none) ;; # a kernel without such queues
    *) scene posix "70 2 70 1 95;" ;;
    esac
    scene spin "45;"
    scene futex "1 5 0 20 1 1;"
    scene alarm "100 3000000 400 3000070 30 0;" # 3 s; 10 us, 30, 30
    scene timers "7 15 7 35 1 55 20 3 90 1 95;"
    scene spawn "5 40 3 2 0 3;"
    # the first reader has the stream until its line is whole, at 50; the second one's is at 60
    scene stdio "4 50 4 60 0 65 0 65 1 1 72 6 1000172 0;"
    scene blocked "3 30 1 0;"
}

# has WHAT TEXT SAID: a part of what was said
has() {
    case $3 in
    *"$2"*) ;;
    *) same "$1" "$2" "$3" ;;
    esac
}

# Who spins on memory is named, with the function and the line, and ended; who computes is not.
memory() {
    p=$programs/simnic_memory
    for scene in spins thread; do
        said=$(sim -n 2 "$p" "$scene" 2>&1)
        same "$scene, status" 3 $?
        has "$scene" "spins on memory, at 0.00000 us of virtual time" "$said"
        has "$scene" "await_flag, " "$said"
        has "$scene" "memory.c:" "$said"
        has "$scene" "of_$scene" "$said"
    done
    same "computes" "1 20" "$("$pinwheel" sim --quiet "$p" computes 2> /dev/null)"
    # One that counts is not told from one that computes: it is named, and goes on.
    said=$("$pinwheel" sim --timeout 13 "$p" counts 2>&1)
    same "counts, status" 124 $?
    has "counts" "computes, or waits outside of Portals, since 10 s" "$said"
    has "counts" "of_counts, " "$said"
    # With the option a thread that spins has others run, and who waits for ever is found out.
    said=$(sim --memory-waits "$p" thread 2>&1)
    same "waits, status" 0 $?
    has "waits" "irreproducible: rank 0 has waited for memory (--memory-waits)" "$said"
    said=$(sim --memory-waits "$p" spins 2>&1)
    same "waits for ever, status" 3 $?
    has "waits for ever" "rank 0 waits for memory (--memory-waits) since" "$said"
    # Some seconds of the processor, of which a thousandth and all of it count.
    said=$(sim --compute measured:0.001 "$p" computes 30000000 2>&1)
    has "measured" "irreproducible: --compute measured counts real time" "$said"
    little=$(sed -n 's/^1 //p' <<< "$said")
    much=$(sim --compute measured "$p" computes 30000000 2>&1 | sed -n 's/^1 //p')
    # shellcheck disable=SC2015  # what comes behind may run then, too
    [ "${much:-0}" -gt $((100 * ${little:-0})) ] && [ "${little:-0}" -gt 1000 ] ||
        same "measured" "a thousand times as much" "$little, $much"
}

# A rank that somebody stops holds the others up, and is named; when it goes on all is as ever. One
# that is killed ends the job.
held() {
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    # The rank says who it is and reads a FIFO: it is stopped, or killed, while it waits in that.
    # shellcheck disable=SC2016  # of the shell that is started
    script='echo $$ > "$0/pid"; read -r line < "$0/fifo"; exec "$1" rests'
    for signal in STOP KILL; do
        rm -f "$work"/*
        mkfifo "$work/fifo"
        sim sh -c "$script" "$work" "$programs/simnic_memory" > "$work/said" 2>&1 &
        job=$!
        exec 5> "$work/fifo" # which waits until it is read
        rank=$(< "$work/pid")
        kill "-$signal" "$rank"
        if [ "$signal" = STOP ]; then
            until grep -q "is stopped by a signal" "$work/said"; do sleep 0.2; done
            kill -CONT "$rank"
            echo >&5
        fi
        exec 5>&-
        wait "$job"
        code=$?
        same "$signal, status" "$([ "$signal" = STOP ] && echo 0 || echo 137)" "$code"
        said=$(< "$work/said")
        case $signal in
        STOP) has "$signal" "1020" "$said" ;;
        KILL) has "$signal" "signal 9" "$said" ;;
        esac
    done
}

# The processor's clock counts nanoseconds of virtual time, from 1,000 s on; each read is a look, 20 ns.
tsc() {
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    # tsc_of WANTED RANKS CASE
    tsc_of() {
        for _ in 1 2 3; do
            same "tsc $3" "$1" "$(sim -n "$2" --quiet "$programs/simnic_tsc" "$3" 2>&1 | xargs)"
        done
    }
    tsc_of "1020 1020 0 20 1000000010020" 1 reads
    tsc_of 4999 1 spins
    # The put shows 711.94 ns later, in the look until 720.
    tsc_of 720 2 flag
    tsc_of "1020 1020 1020 1020 0 1020" 1 threads
    tsc_of "2 1 1 2040" 1 faults
    for action in dies none; do
        sim -n 1 --quiet "$programs/simnic_tsc" "$action" > "$work/out" 2> /dev/null
        ended=$?
        same "tsc $action: status" "$([ "$action" = dies ] && echo 139 || echo 0)" "$ended"
        same "tsc $action" 1020 "$(cat "$work/out")"
    done
    # Outside of a simulation it is the processor's.
    same "outside" 0 "$("$programs/simnic_tsc" none > /dev/null; echo $?)"
}

$case
exit $status
