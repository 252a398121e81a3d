#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel goal compile`, `show` and `gen` as their users call them.
# Usage: goal_command.sh PINWHEEL GOLDEN
# shellcheck source=tests/sim/goal_shell.sh
. "$(dirname "$0")/goal_shell.sh"

# Text to binary and back, with the operand before and after the options.
"$pinwheel" goal compile "$golden/micro/01_pingpong.goal" -o a.bin
cmp a.bin "$golden/bin/01_pingpong.bin"
"$pinwheel" goal show a.bin | "$pinwheel" goal compile -o b.bin -
cmp a.bin b.bin
[ ! -e a.bin.labels ] || fail "a side file nobody asked for"

# With labels: they come back, and are in the JSON with their lines.
"$pinwheel" goal compile -g "$golden/micro/17_unsorted_ops.goal" -o c.bin
"$pinwheel" goal show c.bin | grep -qx 'a requires b' || fail "labels are lost"
"$pinwheel" goal show --json c.bin | grep -q '"line": 7' || fail "lines are lost"
"$pinwheel" goal show c.bin >c.goal
"$pinwheel" goal compile c.goal -o d.bin
cmp c.bin d.bin

# Statistics, of text as of binary.
"$pinwheel" goal show --stats "$golden/goal/dissemination_16_1.goal" >stats
grep -q '^operations    128, at most 8 a rank, 80 ready at the start$' stats || fail "$(cat stats)"
grep -q '^  sends       64, 64 bytes in all, 1 to 1 each$' stats || fail "$(cat stats)"
"$pinwheel" goal show --stats --json "$golden/bin/dissemination_16_1.bin" | grep -q '"requires": 48' ||
    fail "statistics as JSON"

# A failure leaves no file, and does not harm the old one.
printf 'num_ranks 1\nrank 0 {\nl: calc 1\nl: calc 2\n}\n' >twice.goal
refuse 1 'twice.goal:4:1: label "l" of rank 0 stands at line 3 already' \
    "$pinwheel" goal compile twice.goal -o a.bin
cmp a.bin "$golden/bin/01_pingpong.bin"
refuse 1 'line 3 already' "$pinwheel" goal compile twice.goal -g -o new.bin
[ "$(echo new.bin*)" = 'new.bin*' ] || fail "left behind: $(echo new.bin*)"
"$pinwheel" goal compile --compat twice.goal -o new.bin
refuse 1 'is the input' "$pinwheel" goal compile c.goal -o ./c.goal
refuse 1 'No space left' "$pinwheel" goal compile c.goal -o /dev/full
refuse 1 'must go to a file' "$pinwheel" goal gen incast -o -
refuse 1 'No such file' "$pinwheel" goal compile missing -o x
head -c 100 a.bin >cut.bin
refuse 1 'cut.bin: rank 0: end is' "$pinwheel" goal show cut.bin

# Usage.
refuse 2 '-o FILE is needed' "$pinwheel" goal compile c.goal
refuse 2 'takes one operand' "$pinwheel" goal compile c.goal d.goal -o x
refuse 2 'unknown subcommand' "$pinwheel" goal frobnicate
# What is not known is answered with the nearest that is, if there is one.
refuse 2 'did you mean compile?' "$pinwheel" goal cmpile
refuse 2 'did you mean goal?' "$pinwheel" gaol
refuse 2 'did you mean --ranks?' "$pinwheel" goal gen --rnaks=4 dissemination
refuse 2 'did you mean dissemination?' "$pinwheel" goal gen --ranks 4 --text disemination
"$pinwheel" goal frobnicate 2>&1 | grep -q 'did you mean' && fail "goal frobnicate: is like nothing, and gets a proposal"
refuse 2 'no such pattern' "$pinwheel" goal gen nonsense -o x
refuse 2 'no such pattern; --list prints them; there is allgather_recdoub, allreduce_recdoub' "$pinwheel" goal gen recdoub -o x
refuse 2 'no such pattern; --list prints them; did you mean allreduce_ring?' "$pinwheel" goal gen alreduce_ring -o x
refuse 2 'does not take --extent' "$pinwheel" goal gen incast --extent 4x4 -o x
refuse 2 'must be like 8x4' "$pinwheel" goal gen stencil_2d --extent 4x -o x
refuse 2 'root 16 does not exist' "$pinwheel" goal gen incast --root 16 -o x
refuse 2 'must be a whole number' "$pinwheel" goal gen incast --size -1 -o x
refuse 2 '--segment 0: must be 1 or more' "$pinwheel" goal gen bcast_binary --segment 0 -o x
refuse 2 '--reduce-rate 1.2345678: must be a number' "$pinwheel" goal gen allreduce_ring --reduce-rate 1.2345678 -o x
refuse 2 'radix 1: alltoall_bruck needs 2 or more' "$pinwheel" goal gen alltoall_bruck --radix 1 -o x
refuse 2 'must be ring, recdoub' "$pinwheel" goal gen training --allreduce best -o x
refuse 2 'must be gpipe or 1f1b' "$pinwheel" goal gen training --schedule zero -o x
refuse 2 'training does not take --size' "$pinwheel" goal gen training --size 8 -o x
refuse 2 'incast does not take --dp' "$pinwheel" goal gen incast --dp 8 -o x
refuse 2 'dp x tp x pp = 3 x 2 x 2: must be the 16 ranks' "$pinwheel" goal gen training --dp 3 --tp 2 --pp 2 -o x

# Generators: text on standard output is the same schedule as the binary.
for pattern in $("$pinwheel" goal gen --list | sed -n 's/^\([a-z][a-z_0-9]*\) .*/\1/p'); do
    "$pinwheel" goal gen "$pattern" --ranks 12 --random-calc 9 --seed 3 -o p.bin
    "$pinwheel" goal gen "$pattern" --ranks 12 --random-calc 9 --seed 3 --text |
        "$pinwheel" goal compile - -o q.bin
    cmp p.bin q.bin
done
cmp p.bin q.bin || fail "no pattern was listed"
"$pinwheel" goal gen binomialtreebcast --ranks 1000000 -o big.bin
[ "$("$pinwheel" goal show --stats big.bin | sed -n 's/^  sends  *\([0-9]*\),.*/\1/p')" -eq 999999 ] ||
    fail "a broadcast to 1000000 ranks"
