#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel goal run` as its users call it: results, refusals, schedules that cannot
# finish, threads. Times are held by check_golden.py and fuzz_schedules.py.
# Usage: engine_run.sh PINWHEEL GOLDEN
# shellcheck source=tests/sim/goal_shell.sh
. "$(dirname "$0")/goal_shell.sh"

pingpong=$golden/micro/01_pingpong.goal

# Results for people and for programs.
"$pinwheel" goal run --ranks "$pingpong" >out
grep -q '^finish  *12188 ns, rank 0 is the last$' out || fail "$(cat out)"
grep -q '^rank 1  *7594$' out || fail "$(cat out)"
"$pinwheel" goal run "$pingpong" --json -L 2.5us -G 0.0005 >out
tr -d ' \n' <out | grep -qF '"finish_ns":[11000.1,7000.05]' || fail "$(cat out)"
"$pinwheel" goal run --parameters spin -o 0 "$pingpong" >out
grep -qF 'L 283.6 ns, o 0 ns, g 6.7 ns, G 20 ps/B' out || fail "$(cat out)"

# Bad usage.
refuse_run 2 'which schedule?'
refuse_run 2 'takes one operand' "$pingpong" "$pingpong"
refuse_run 2 'no such set; there are loggopsim, spin' --parameters sping "$pingpong"
refuse_run 2 'must be pinwheel or loggopsim' --model lgs "$pingpong"
refuse_run 2 'must be ns or ps' --calc-unit us "$pingpong"
refuse_run 2 'smallest step is 1 ps' -L 0.0001 "$pingpong"
refuse_run 2 'whole nanoseconds' --model loggopsim -G 0.5 "$pingpong"
refuse_run 2 'whole nanoseconds' --model loggopsim --calc-unit ps "$pingpong"
refuse_run 2 'one thread' --model loggopsim --threads 2 "$pingpong"
refuse_run 1 'No such file' nowhere.goal

# A cycle of messages, with labels and lines, and without.
cat >cycle.goal <<'END'
num_ranks 2
rank 0 {
get: recv 8b from 1 tag 1
put: send 8b to 1 tag 2
put requires get
}
rank 1 {
get: recv 8b from 0 tag 2
put: send 8b to 0 tag 1
put requires get
}
END
for model in pinwheel loggopsim; do
    refuse_run 1 '4 of 4 operations wait' --model $model cycle.goal
    says 'a cycle'
    says 'rank 0, operation 0 (get, line 3 of cycle.goal): recv of 8 bytes from rank 1, tag 1'
    says 'rank 1, operation 1 (put, line 9 of cycle.goal): send of 8 bytes to rank 0, tag 1'
    says 'rank 1, operation 0 (get, line 8 of cycle.goal): recv of 8 bytes from rank 0, tag 2'
    says 'rank 0, operation 1 (put, line 4 of cycle.goal): send of 8 bytes to rank 1, tag 2'
done
"$pinwheel" goal compile cycle.goal -o cycle.bin
refuse_run 1 'rank 1, operation 1: send of 8 bytes to rank 0, tag 1' cycle.bin

# Two rendezvous that wait for each other; eager ones do not.
cat >rendezvous.goal <<'END'
num_ranks 2
rank 0 {
a: send 100b to 1
b: recv 100b from 1
b requires a
}
rank 1 {
a: send 100b to 0
b: recv 100b from 0
b requires a
}
END
refuse_run 1 'a cycle' -S 99 rendezvous.goal
says 'rank 0, operation 0 (a, line 3 of rendezvous.goal): send of 100 bytes to rank 1, tag 0, started'
says 'rank 1, operation 1 (b, line 9 of rendezvous.goal): recv'
"$pinwheel" goal run -S 100 rendezvous.goal >out

# No partner: a recv, a rendezvous, a message; a cycle of dependencies.
cat >alone.goal <<'END'
num_ranks 3
rank 0 {
a: send 8b to 1 tag 1
b: recv 8b from -1 tag 7
c: calc 1
c requires b
}
rank 1 {
d: recv 8b from 0 tag 2
e: send 70000b to 2
}
rank 2 {
x: calc 5
y: calc 6
x requires y
y requires x
}
END
refuse_run 1 '6 of 7 operations wait' alone.goal
says 'without a partner: rank 0, operation 1 (b, line 4 of alone.goal): recv of 8 bytes from any rank, tag 7; no send'
says 'without a partner: rank 1, operation 0 (d, line 9 of alone.goal): recv of 8 bytes from rank 0, tag 2; no send'
says 'without a partner: rank 1, operation 1 (e, line 10 of alone.goal): send of 70000 bytes to rank 2, tag 0; no recv'
says 'never received: rank 0, operation 0 (a, line 3 of alone.goal): send of 8 bytes to rank 1, tag 1'
says 'rank 2, operation 1 (y, line 14 of alone.goal): calc'

# Messages that nobody takes, although all operations end.
printf 'num_ranks 2\nrank 0 {\nsend 8b to 1\n}\nrank 1 {\n}\n' >extra.goal
refuse_run 1 'all operations end, but messages are left' extra.goal
says 'never received: rank 0, operation 0 (line 3 of extra.goal)'

# A time too late names its operation.
printf 'num_ranks 1\nrank 0 {\na: calc 5\nb: calc 9223372036854775\nb requires a\n}\n' >late.goal
refuse_run 1 'rank 0, operation 1 (b, line 4 of late.goal)' late.goal
says '106 days'
printf 'num_ranks 2\nrank 0 {\nsend 18446744073709551615b to 1\n}\nrank 1 {\nrecv 1b from 0\n}\n' >huge.goal
refuse_run 1 'rank 0, operation 0 (line 3 of huge.goal)' -S 18446744073709551615 huge.goal
refuse_run 1 'rank 0, operation 0 (line 3 of huge.goal)' huge.goal

# Threads change nothing, with long lists of recvs and with times that coincide.
for pattern in "dissemination --ranks 1000 --random-calc 500" "linear_alltoall --ranks 150 --order shuffled" \
    "incast --ranks 3000 --any-source --order shuffled" "stencil_2d --ranks 900 --iterations 3 --size 70000"; do
    # shellcheck disable=SC2086
    "$pinwheel" goal gen $pattern -o big.bin
    for threads in 1 2 5; do
        "$pinwheel" goal run --json --threads $threads big.bin | sed -n '/finish_ns/,$p' >finish.$threads
    done
    cmp finish.1 finish.2
    cmp finish.1 finish.5
done
