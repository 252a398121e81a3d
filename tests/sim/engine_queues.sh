#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel goal run --queues` and `--noise`: what is counted by hand, what changes the
# times and what does not.
# Usage: engine_queues.sh PINWHEEL GOLDEN
# shellcheck source=tests/sim/goal_shell.sh
. "$(dirname "$0")/goal_shell.sh"

finish() {
    "$pinwheel" goal run --json "$@" | sed -n '/"finish_ns"/,/]/p' | tr -d ','
}

# Nine messages come before their recvs, which take the last one first; or after them.
"$pinwheel" goal gen incast --ranks 10 --order reverse --late 100000 -o late.bin
"$pinwheel" goal gen incast --ranks 10 -o early.bin
"$pinwheel" goal run --queues late.bin >out
grep -q '^queues  *posted: at most 0, at rank 0; 9 searches, 0 found one, 0.00 long' out || fail "$(cat out)"
grep -q 'unexpected: at most 9, at rank 0; 9 searches, 9 found one, 5.00 long' out || fail "$(cat out)"
"$pinwheel" goal run --queues early.bin >out
grep -q 'posted: at most 9, at rank 0; 9 searches, 9 found one, 5.00 long' out || fail "$(cat out)"
grep -q 'unexpected: at most 0, at rank 0; 9 searches, 0 found one, 0.00 long' out || fail "$(cat out)"

# Counting changes no times; threads change no counts.
"$pinwheel" goal gen linear_alltoall --ranks 100 --order shuffled --random-calc 3000 -o all.bin
for schedule in all.bin late.bin "$golden"/micro/*.goal; do
    finish "$schedule" >plain
    finish --queues "$schedule" >counted
    cmp plain counted
done
for threads in 1 3; do
    "$pinwheel" goal run --json --queues --threads $threads all.bin | grep -v seconds >out.$threads
done
cmp out.1 out.3
grep -q '"searches": 9900' out.1 || fail "$(cat out.1)"

# Noise only ever adds, is the same in all threads, another with another seed, and none at all
# where no cpu works.
"$pinwheel" goal gen dissemination --ranks 200 -o d.bin
noise=exponential:period=20us,mean=1us
finish d.bin >plain
finish --noise $noise d.bin >noisy
finish --noise $noise --threads 3 d.bin | cmp - noisy
finish --noise $noise --seed 2 d.bin >other
! cmp -s noisy other || fail "the seed changes nothing"
paste plain noisy | awk '$1 ~ /^[0-9]/ { if ($2 < $1) exit 1; sum += $2 > $1 } END { exit !(sum > 100) }' ||
    fail "noise takes time away"
finish --noise uniform:period=1ns,low=0,high=0 d.bin | cmp - plain
finish -o 0 --noise $noise d.bin >noisy
finish -o 0 d.bin | cmp - noisy
# A calc of 1 ms, of which the detours of a trace are a tenth of the time.
printf '0 10\n90 0\n100 0\n' >tenth
printf 'num_ranks 1\nrank 0 {\ncalc 900000\n}\n' >calc.goal
"$pinwheel" goal run --noise tenth calc.goal >out
awk '/^finish/ { exit !($2 > 999980 && $2 < 1000020) }' out || fail "$(cat out)"
grep -q '^noise  *tenth, seed 1' out || fail "$(cat out)"

refuse_run 2 '--sweep prints the last finish' --queues --sweep L=1:2:2 d.bin
refuse_run 2 'does not count them' --queues --model loggopsim d.bin
refuse_run 2 'must be uniform:' --noise uniform:period=3 d.bin
refuse_run 2 'has none' --noise $noise --model loggopsim d.bin
refuse_run 2 'nothing is drawn by lot' --seed 3 d.bin
