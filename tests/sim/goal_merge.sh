#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel goal merge`, and `goal run --jobs`, as their users call them.
# Usage: goal_merge.sh PINWHEEL GOLDEN
# shellcheck source=tests/sim/goal_shell.sh
. "$(dirname "$0")/goal_shell.sh"

"$pinwheel" goal gen linear_alltoall --ranks 8 --size 20000 -o all.bin
"$pinwheel" goal gen dissemination --ranks 5 --size 4000 -o barrier.bin
printf 'num_ranks 2\nrank 0 {\na: send 8b to 1 tag 7\n}\nrank 1 {\na: recv 8b from -1 tag 7\nb: calc 10\nb requires a\n}\n' >pair.goal
printf 'num_ranks 1\nrank 0 {\n}\n' >idle.goal

# times_of FILE ARGUMENT...: the finish times of a run, a line each.
times_of() {
    file=$1
    shift
    "$pinwheel" goal run --ranks "$@" "$file" | sed -n 's/^rank [0-9]* *//p'
}

# One job alone is itself again; binary or text, the schedule is the same.
"$pinwheel" goal merge all.bin -o one.bin
cmp all.bin one.bin
"$pinwheel" goal compile pair.goal -o pair.bin
"$pinwheel" goal merge pair.goal -o one.bin
cmp pair.bin one.bin
"$pinwheel" goal merge all.bin barrier.bin pair.goal idle.goal --placement interleaved -o a.bin --jobs a.jobs
"$pinwheel" goal merge all.bin barrier.bin pair.goal idle.goal --placement interleaved --text |
    "$pinwheel" goal compile - -o b.bin
cmp a.bin b.bin
printf '0,4,7-13:2,14-15 name all.bin\n1,5,8-12:2 name barrier.bin\n2,6 name pair.goal\n3 name idle.goal\n' |
    cmp - a.jobs

# What merge wrote is a placement, too.
"$pinwheel" goal merge all.bin barrier.bin pair.goal idle.goal --placement a.jobs -o b.bin
cmp a.bin b.bin

# Without sharing each rank finishes when it does alone, later by its job's start.
{
    times_of all.bin
    times_of barrier.bin | awk '{ print $1 + 12345 }'
    printf '0\n0\n'
} >alone
"$pinwheel" goal merge all.bin barrier.bin --start 0,12345 --nodes 15 -o m.bin --jobs m.jobs
times_of m.bin >merged
cmp alone merged
"$pinwheel" goal run --jobs m.jobs m.bin >out
last=$(times_of barrier.bin | sort -n | tail -1)
grep -q "^job 2  *barrier.bin: 5 nodes, from 12345 to $((last + 12345)) ns, $last ns long$" out || fail "$(cat out)"
"$pinwheel" goal run --json --jobs m.jobs m.bin >out
grep -q "\"duration_ns\": $last" out || fail "$(cat out)"
"$pinwheel" goal run --model loggopsim --jobs m.jobs m.bin | grep -q '^job 1 ' || fail "loggopsim"

# A network that jobs share slows them down; one that they do not share does not.
job_times() {
    "$pinwheel" goal run --jobs jobs.txt "$@" | sed -n 's/^job .* ns, \([0-9.]*\) ns long$/\1/p'
}
"$pinwheel" goal gen random_permutation --ranks 24 --size 30000 --iterations 8 -o one.bin
"$pinwheel" goal gen random_permutation --ranks 24 --size 30000 --iterations 8 --seed 5 -o other.bin
slower_together() {
    network=$1 placement=$2
    "$pinwheel" goal merge one.bin other.bin --placement "$placement" -o m.bin --jobs jobs.txt
    job_times --network "$network" -G 0.08 -o 100 -g 0 m.bin >together
    cp jobs.txt both.jobs
    : >apart
    for i in 1 2; do
        file=$(sed -n "${i}s/.* name //p" both.jobs)
        sed -n "${i}p" both.jobs >jobs.txt
        "$pinwheel" goal merge "$file" --placement jobs.txt -o alone.bin --nodes 48
        job_times --network "$network" -G 0.08 -o 100 -g 0 alone.bin >>apart
    done
    paste apart together | awk '$2 < $1 { exit 1 } $2 > $1 { more = 1 } END { exit !more }' ||
        fail "$network, $placement: $(paste apart together)"
}
slower_together torus:7x7 interleaved
slower_together torus:7x7 random
slower_together dragonfly:a=4,h=1,p=3 interleaved
# Not interleaved: up ports follow the parity of nodes, which keeps these two jobs apart.
slower_together fattree:radix=8,oversubscription=3,levels=2 random
# Each in a leaf of its own: nothing is shared.
"$pinwheel" goal merge one.bin other.bin -o m.bin --jobs jobs.txt
job_times --network fattree:radix=48,levels=2 m.bin >together
"$pinwheel" goal run --network fattree:radix=48,levels=2 one.bin | sed -n 's/^finish *\([0-9.]*\) ns.*/\1/p' >apart
"$pinwheel" goal run --network fattree:radix=48,levels=2 other.bin | sed -n 's/^finish *\([0-9.]*\) ns.*/\1/p' >>apart
cmp apart together

# Jobs on the same nodes: cpus and tags of their own, one nic.
printf '0-1\n0-1\n' >same
"$pinwheel" goal merge pair.goal pair.goal --placement same --share -o m.bin --jobs jobs.txt
printf '0-1 cpus 0-0 name pair.goal\n0-1 cpus 1-1 name pair.goal\n' | cmp - jobs.txt
"$pinwheel" goal show m.bin >out
grep -q 'recv 8b from -1 tag 15 cpu 1' out || fail "$(cat out)"
"$pinwheel" goal run --json --jobs jobs.txt m.bin >out
grep -c '"finish_ns": ' out | grep -qx 3 || fail "$(cat out)"
"$pinwheel" goal run --noise uniform:period=3us,low=0,high=2us --jobs jobs.txt m.bin | grep -q '^job 2 ' || fail "noise"
refuse 1 'only with --share' "$pinwheel" goal merge pair.goal pair.goal --placement same -o x
refuse_run 1 'told apart by a record' --jobs jobs.txt --model loggopsim m.bin
printf 'num_ranks 2\nrank 0 {\na: send 8b to 1\n}\nrank 1 {\na: recv 8b from 0 tag -1\n}\n' >open.goal
refuse 1 'job 2 (open.goal): rank 1, operation 0: a recv with any tag at node 1' \
    "$pinwheel" goal merge pair.goal open.goal --placement same --share -o x
sed 's/8b to 1/8b to 1 tag 4294967290/; s/tag -1/tag 4294967290/' open.goal >high.goal
refuse 1 'do not fit behind those' "$pinwheel" goal merge pair.goal high.goal --placement same --share -o x
sed 's/tag 7/tag 7 cpu 128/' pair.goal >wide.goal
refuse 1 'a node can have 256' "$pinwheel" goal merge wide.goal wide.goal --placement same --share -o x

# Labels and lines of the jobs survive, so that what waits for ever is named as it was written:
# on nodes of their own, on shared ones, behind a start, of a schedule that was compiled or merged before.
printf 'num_ranks 2\nrank 0 {\nmine: send 8b to 1\n}\nrank 1 {\nmine: recv 8b from 0\nnever: recv 8b from 0 tag 4\nlast: calc 5\nlast requires never\n}\n' >stuck.goal
"$pinwheel" goal compile -g stuck.goal -o stuck.bin
"$pinwheel" goal merge -g pair.goal stuck.goal stuck.bin -o m.bin
refuse_run 1 'rank 3, operation 1 (never, line 7 of stuck.goal)' m.bin
grep -qF 'rank 5, operation 1 (never, line 7 of stuck.goal)' err || fail "$(cat err)"
"$pinwheel" goal merge -g all.bin m.bin -o n.bin
ranks=$("$pinwheel" goal show --stats --json all.bin | sed -n 's/^ *"ranks": \([0-9]*\),*/\1/p')
refuse_run 1 "rank $((ranks + 3)), operation 1 (never, line 7 of stuck.goal)" n.bin
printf '0-1\n0-1 start 100\n' >late
"$pinwheel" goal merge -g stuck.goal pair.goal --placement late --share -o m.bin
refuse_run 1 'rank 1, operation 1 (job1_never, line 7 of stuck.goal)' m.bin
"$pinwheel" goal show m.bin >out
grep -q '^job2: calc 100 cpu 1$' out || fail "$(cat out)"
"$pinwheel" goal compile out -o again.bin
cmp m.bin again.bin
"$pinwheel" goal merge stuck.goal stuck.goal -o plain.bin
[ ! -e plain.bin.labels ] || fail "labels nobody asked for"
refuse 2 '--text has none' "$pinwheel" goal merge -g --text stuck.goal -o x

# What cannot be, and files that lie.
refuse 1 'have 13 ranks together and do not fit 12 nodes' "$pinwheel" goal merge all.bin barrier.bin --nodes 12 -o x
printf '0-1\n2-4\n' >long
refuse 1 'names more than 2 nodes' "$pinwheel" goal merge pair.goal pair.goal --placement long -o x
printf '0-1\n2\n' >short
refuse 1 'job 2 (pair.goal) has 2 ranks, and 1 nodes' "$pinwheel" goal merge pair.goal pair.goal --placement short -o x
printf '# two\n\n0-1\n' >few
refuse 1 'has nodes for 1 jobs; there are 2' "$pinwheel" goal merge pair.goal pair.goal --placement few -o x
printf '0-1\n5,5\n' >twice
refuse 1 'twice, line 2: node 5 is named twice' "$pinwheel" goal merge pair.goal pair.goal --placement twice -o x
printf '0-1\n7-8\n' >far
refuse 1 'rank 1 is on node 8; there are 0 to 7' "$pinwheel" goal merge pair.goal pair.goal --placement far --nodes 8 -o x
for line in 'x' '1-' '3-1' '0-4:0' '4294967294' '0-1 cpus 256' '0-1 start soon' '0-1 name' '0-1 color red'; do
    printf '0-1\n%s\n' "$line" >bad
    refuse 1 'bad, line 2: "' "$pinwheel" goal merge pair.goal pair.goal --placement bad -o x
done
printf '0-1\n2\0003\n' >bad
refuse 1 'is no text' "$pinwheel" goal merge pair.goal pair.goal --placement bad -o x
: >empty
refuse 1 'names no job' "$pinwheel" goal merge pair.goal --placement empty -o x
refuse 1 'No such file' "$pinwheel" goal merge pair.goal --placement nowhere -o x
refuse 1 'missing.goal: cannot open' "$pinwheel" goal merge pair.goal missing.goal -o x
head -c 100 pair.bin >cut.bin
refuse 1 'cut.bin: rank 1: end is' "$pinwheel" goal merge pair.goal cut.bin -o x
refuse 1 'must be whole numbers' "$pinwheel" goal merge pair.goal --start 1us -o x
refuse 1 'there are only 1 jobs' "$pinwheel" goal merge pair.goal --start 1,2 -o x
refuse 1 'No space left' "$pinwheel" goal merge pair.goal -o /dev/full
[ ! -e x ] || fail "a failure left a file"
printf '0-14\n' >jobs.txt
refuse_run 1 'names more than 2 nodes' --jobs jobs.txt pair.goal
printf '5\n' >jobs.txt
refuse_run 1 'has node 5; pair.goal has ranks 0 to 1' --jobs jobs.txt pair.goal
printf '0 start 18446744073709551615\n' >jobs.txt
refuse_run 1 'later than a run can last' --jobs jobs.txt pair.goal
refuse_run 1 'No such file' --jobs nowhere pair.goal
refuse_run 2 '--jobs: --sweep prints' --jobs jobs.txt --sweep L=1:2:2 pair.goal

# Usage.
refuse 2 'which schedules?' "$pinwheel" goal merge -o x
refuse 2 '-o FILE is needed' "$pinwheel" goal merge pair.goal
refuse 2 'nothing is drawn by lot' "$pinwheel" goal merge pair.goal --seed 3 -o x
refuse 2 'gives each job nodes of its own' "$pinwheel" goal merge pair.goal --share -o x
refuse 2 'is the file of the schedule' "$pinwheel" goal merge pair.goal -o x --jobs x
refuse 2 'must be a whole number' "$pinwheel" goal merge pair.goal --nodes -1 -o x

# Many ranks, straight to binary.
"$pinwheel" goal gen binomialtreebcast --ranks 300000 -o big.bin
"$pinwheel" goal merge big.bin big.bin --placement random -o m.bin --jobs jobs.txt
"$pinwheel" goal run --jobs jobs.txt m.bin >out
[ "$(sed -n 's/^job .*, \([0-9.]*\) ns long$/\1/p' out | sort -u | wc -l)" -eq 1 ] || fail "$(cat out)"
