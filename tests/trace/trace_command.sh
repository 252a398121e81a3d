#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel goal trace` and `record` as their users call them: recordings made by hand
# become the schedules beside them; damaged ones are refused with a word on what and where.
# Usage: trace_command.sh PINWHEEL GOLDEN
# shellcheck source=tests/sim/goal_shell.sh
. "$(dirname "$0")/../sim/goal_shell.sh"

trace() {
    "$pinwheel" goal trace "$@"
}

# ---- Schedules that are known ----

for name in messages communicators persistent allprof; do
    trace --text "$golden/$name" >text 2>err
    diff "$golden/$name.goal" text || fail "$name: another schedule"
    trace "$golden/$name" -o x.bin >out 2>err
    "$pinwheel" goal compile "$golden/$name.goal" -o y.bin
    cmp x.bin y.bin
    for model in pinwheel loggopsim; do
        "$pinwheel" goal run --model "$model" x.bin >out || fail "$name does not end in $model"
    done
done

# What is not understood is named.
trace "$golden/messages" -o x.bin >out 2>err
says 'calls of MPI_Put that are not understood, not in the schedule: 1'
says 'calls of MPI_Send that failed, not in the schedule: 1'
trace "$golden/allprof" -o x.bin >out 2>err
says 'calls of MPI_Waitany that are not understood, not in the schedule: 1'
trace --json "$golden/messages" -o x.bin 2>err | grep -q '"MPI_Put": 1' || fail "not in the JSON"

# Gaps: none, or scaled.
trace --no-gaps --text "$golden/messages" 2>err | grep 'calc [1-9]' && fail "a gap with --no-gaps"
trace --gap-scale 2.5 --text "$golden/messages" 2>err | grep -q '^l1: calc 250$' ||
    fail "gaps are not scaled"
trace --gap-scale 0.001 --text "$golden/messages" 2>err | grep 'calc [1-9]' && fail "gaps remain"

# Algorithms: by collective, for all that have it, and which there are.
trace --collectives allreduce=ring,linear --json "$golden/communicators" -o x.bin >out
"$pinwheel" goal run x.bin >out || fail "ring and linear do not end"
trace --list >out
grep -q '^Alltoall  *pairwise, linear, bruck$' out || fail "$(cat out)"
grep -q '^Allreduce .* swing-bandwidth, tree$' out || fail "$(cat out)"
# Each of them ends, on grown communicators too.
mv out list
: >tried
sed -n 's/^\([A-Z][a-z_]*\)  *\([a-z, -]*\)$/\1 \2/p' list | tr -d , | while read -r collective algorithms; do
    for algorithm in $algorithms; do
        for ranks in 3 12; do
            trace --collectives "$collective=$algorithm" --ranks "$ranks" "$golden/communicators" -o x.bin >out
            for model in pinwheel loggopsim; do
                "$pinwheel" goal run --model "$model" x.bin >out || fail "$collective=$algorithm does not end"
            done
        done
        echo "$collective=$algorithm" >>tried
    done
done || exit 1
[ "$(wc -l <tried)" -ge 40 ] || fail "$(cat tried)"
refuse 2 'must be COLLECTIVE=ALGORITHM' "$pinwheel" goal trace --collectives bcast=bruck . -o x
refuse 2 'must be COLLECTIVE=ALGORITHM' "$pinwheel" goal trace --collectives '' . -o x

# Extrapolation: messages stay in their block, collectives of all ranks grow.
trace --ranks 6 --text --collectives alltoallv=linear "$golden/communicators" >text 2>err
grep -q '^num_ranks 6$' text || fail "not 6 ranks"
sed -n '/^rank 3 {/,/^}/p' text >block
grep -q 'send 7b to 4 tag 7$' block || fail "a message left its block"
grep -q 'send 2b to 5 tag 1$' block || fail "the Alltoallv did not repeat"
grep -q 'send 2b to 2 tag 1$' block || fail "the Alltoallv did not grow"
for ranks in 3 6 30; do
    trace --ranks "$ranks" "$golden/communicators" -o x.bin >out
    for model in pinwheel loggopsim; do
        "$pinwheel" goal run --model "$model" x.bin >out || fail "$ranks ranks do not end in $model"
    done
done
refuse 1 'must be a multiple of the 3 ranks' "$pinwheel" goal trace --ranks 4 "$golden/communicators" -o x
refuse 2 '--ranks and --partial exclude' "$pinwheel" goal trace --ranks 6 --partial . -o x

# ---- Recordings that are damaged ----

# damage RANK SCRIPT [RECORDING]: a recording, that of messages unless named, one file changed by sed
damage() {
    rm -rf d
    cp -r "$golden/${3:-messages}" d
    chmod -R u+w d
    sed -i "$2" "d/rank-$1.trace"
}

# wrong RANK SCRIPT TEXT [RECORDING]: is refused, saying that, and leaves no file
wrong() {
    damage "$1" "$2" "${4-}"
    rm -f x
    refuse 1 "$3" "$pinwheel" goal trace d -o x
    [ ! -e x ] || fail "a file although: $3"
}

wrong 0 '1s/1/2/' 'rank-0.trace:1: is of version 2'
wrong 0 '1s/ 0 / x /' 'is not "pinwheel-mpi-trace 1 RANK RANKS"'
wrong 0 '1s/ 0 2/ 1 2/' 'd: rank 0 is missing'
wrong 1 '1s/ 1 2/ 0 2/' 'is of rank 0, as d/rank-'
wrong 0 '1s/ 0 2/ 0 3/' 'of a run of'
wrong 0 '3s/Irecv/Irecvd/' 'rank-0.trace:3: must be the name of a call, not "Irecvd"'
wrong 0 '3s/ 64//' 'rank-0.trace:3: Irecv has 4 numbers, not 5'
wrong 0 '3s/64/-64/' 'rank-0.trace:3: -64 bytes'
wrong 0 '3s/64/6e4/' 'must be a whole number, not "6e4"'
wrong 0 '3s/64/99999999999999999999/' 'must be a whole number'
wrong 0 '3s/64 0/64 5/' 'rank-0.trace:3: communicator 5 does not exist'
wrong 0 '3s/64 0/64 -2/' 'uses a communicator that no recorded call has made'
wrong 0 '3s/ 0 -1/ 99 -1/' 'request 99'
wrong 0 '4s/ 1 -1/ 0 -1/' 'request 0 begins, but has not ended'
wrong 0 '5s/1 1 6/1 7 6/' 'rank 7 of a communicator of 2'
wrong 0 '5s/1 1 6/7 1 6/' 'request 7 ends, but has not begun'
wrong 0 '5s/1150/1105/' 'starts at 1105, before the call before it ended at 1120'
wrong 0 '5s/ 16$/ 16 0/' 'Waitany has 5 numbers'
wrong 0 '6s/Send/Send\/256/' 'thread 256: a schedule has room for 256'
wrong 0 '6s/ 1 9/ 1 -9/' 'tag -9: must be from 0 to'
wrong 0 '15s/ 1 8 10$/ 1 9 10/' 'asked rank 1, tag 8 and got rank 1, tag 9'
wrong 0 '6d' '0 messages are sent and 1 received'
wrong 0 '/Finalize/d' 'rank-0.trace: ends before MPI_Finalize; --partial'
wrong 1 '/Finalize/d' 'rank-1.trace: ends before MPI_Finalize; --partial'
rm d/rank-1.trace
refuse 1 'rank 1 is missing, of 2' "$pinwheel" goal trace d -o x
cp "$golden/allprof/trace-rank-1.txt" d/rank-1.trace
refuse 1 'recordings of Pinwheel and of liballprof' "$pinwheel" goal trace d -o x
echo hello >d/rank-1.trace
refuse 1 'rank-1.trace: is no recording' "$pinwheel" goal trace d -o x
mkdir empty
refuse 1 'empty: has no recording. Did the program' "$pinwheel" goal trace empty -o x
refuse 1 'missing: No such file' "$pinwheel" goal trace missing -o x

# Collectives that do not agree, communicators that lie.
wrong 1 's/Allreduce 200 10 2 16/Scan 200 10 2 16/' 'of its communicator is Scan, root -2, 16 bytes; rank 0 has Allreduce' communicators
wrong 1 's/Allreduce 200 10 2 16/Allreduce 200 10 2 17/' 'is Allreduce, root -2, 17 bytes; rank 0 has' communicators
wrong 1 's/Bcast 230 10 3 1/Bcast 230 10 3 3/' 'root 3 of a communicator of 3' communicators
wrong 1 '/Bcast/d' 'one has 2 collectives, one 1' communicators
wrong 1 's/Comm 120 10 3 2 1 0/Comm 120 10 3 2 1 1/' 'member 1: must be one of the 3 ranks, once' communicators
wrong 1 's/Comm 120 10 3 2 1 0/Comm 120 10 3 2 1 9/' 'member 9: must be one of the 3 ranks' communicators
wrong 1 's/Comm 120 10 3 2 1 0/Comm 120 10 3 2 1 0 3 4/' '5 members of 3 ranks' communicators
wrong 1 's/Comm 120 10 3 2 1 0/Comm 120 10 3 0 2/' 'rank 1 is no member' communicators
wrong 1 's/Comm 110 10 2 0 1/Comm 110 10 0 0 1/' 'communicator 0 is made a second time' communicators
wrong 1 's/Gatherv 300 10 0 1 0 1 2 3/Gatherv 300 10 0 1 0 1 2/' 'Gatherv has 5 numbers, not 6' communicators

# Persistent collectives: the k-th that a rank makes is the k-th of all; each is started equally often.
wrong 1 '/^Start 200/,/^Waitall 210/d' 'rank 0 starts its Alltoallv_init (persistent collective 2) 2 times, one 1' persistent
wrong 1 's/Bcast_init/Ibcast_init/' 'rank-1.trace:3: must be the name of a call, not "Ibcast_init"' persistent
wrong 1 's/Allreduce 110 10 0 8/Allreduce_init 110 10 9 0 8/' 'is Allreduce_init, root -2, 8 bytes; rank 0 has Allreduce, root -2, 8' persistent
wrong 1 's/Bcast_init 100 5 2 0 0 40/Bcast_init 100 5 2 0 0 41/' 'is Bcast_init, root 0, 41 bytes; rank 0 has' persistent
wrong 1 's/Bcast_init 100 5 2/Bcast_init 100 5 99/' 'request 99' persistent
wrong 1 's/Bcast_init 100 5 2/Bcast_init 100 5 3/' 'request 3' persistent
wrong 1 's/^Start 220 5 3/Start 220 5 3 3/' 'request 3 begins, but has not ended' persistent
wrong 1 's/^Start 220 5 3/Start 220 5 6/' 'request 6 begins, and is not persistent' persistent

# A last line that was being written is no error of its own.
damage 0 '/Finalize/d'
printf 'Fina' >>d/rank-0.trace
refuse 1 'ends before MPI_Finalize' "$pinwheel" goal trace d -o x
trace --partial d -o x >out 2>err || fail "a partial recording: $(cat err)"
"$pinwheel" goal run x >out || fail "a partial schedule does not end"

# What all have of it: everything after line 9 of rank 0 is lost.
damage 0 "10,\$d"
trace --partial d -o x >out 2>err || fail "a partial recording: $(cat err)"
says 'without their other half, not in the schedule'
for model in pinwheel loggopsim; do
    "$pinwheel" goal run --model "$model" x >out || fail "a partial schedule does not end in $model"
done

# liballprof: what it does not say.
allprof() {
    rm -rf d
    cp -r "$golden/allprof" d
    chmod -R u+w d
    sed -i "$1" d/trace-rank-0.txt
    refuse 1 "$2" "$pinwheel" goal trace d -o x
}
allprof 's/MPI_Send:1000098/MPI_Send:abc/' 'field 2 must be a time in microseconds, not "abc"'
allprof 's/:1:4:6575616,0,2:/:1:4:6575616,0:/' 'numbers with commas'
allprof 's/:1:4:6575616,0,2:/:1:4:6575616,1,2:/' 'one in another order is not understood'
allprof 's/:1:8:6575616/:1:-1:6575616/' 'any tag and some with one'
allprof 's/^MPI_Init/Init/' 'must be MPI_FUNCTION:START:ARGUMENTS:END'

# ---- Recording ----

refuse 2 '-o FOLDER is needed' "$pinwheel" goal record true
refuse 2 'which COMMAND' "$pinwheel" goal record -o new
mkdir full
touch full/file
refuse 2 'full: is not empty' "$pinwheel" goal record -o full true
refuse 2 'no word of the command is a program that needs' "$pinwheel" goal record -o new true
