#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel hpu run --handler` and its relatives as their users call them, on the handlers of
# tests/handlers, which make all kinds of calls and mistakes. Usage: handlers.sh PINWHEEL FOLDER CC;
# FOLDER is tests/hpu.
# shellcheck source=tests/hpu/shell.sh
. "$(dirname "$0")/shell.sh"
pinwheel=$1 folder=$2/../handlers cc=$3

# has TEXT...: each is in a line of its own of `out`
has() {
    for text; do
        grep -qF -- "$text" out || { cat out; fail "no word of: $text"; }
    done
}

# words NUMBER...: 32 bits each
words() {
    for word; do
        printf '%b' "$(printf '\\%03o\\%03o\\%03o\\%03o' $((word & 255)) $((word >> 8 & 255)) \
            $((word >> 16 & 255)) $((word >> 24 & 255)))"
    done
}

"$pinwheel" cc --image --cc "$cc" "$folder/calls_handlers.c" -o calls.elf
"$pinwheel" cc --image --cc "$cc" "$folder/twins_handlers.c" -o twins.elf
run() { "$pinwheel" hpu run "$@"; }

# Text: what was printed stands in the list of calls, and costs 4 cycles a byte.
printf 'header\0' >user
run --handler printing_header --packet user --set length=7 calls.elf >out
has 'result        returned DROP' 'calls         10,' \
    'PtlHandlerPrintf("-1 2 3 abc ABC 10|   42|42   |00042|+42|0xff\n") = 0' \
    'PtlHandlerPrintf("1 2 3 4 5 6 7 8 9 10.000000\n") = 0' \
    'PtlHandlerPrintf("constant|   stack|stack   |sta|st|header|%\n") = 0'
grep -q ' 16  PtlHandlerPrintf("end\\n") = 0  *printing_header+0x[0-9a-f]* calls_handlers.c:' out ||
    { cat out; fail 'no cycles of a line'; }
[ "$(grep -c 'PtlHandlerPrintf(data+[0-9]*) = 1' out)" -eq 2 ] || { cat out; fail 'lost lines'; }

# Counters of the host; what the peers hold is got, added to, and left as it is then.
words 5 6 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 9 0 0 0 >state
words 100 0 1000 0 0 0 >peers
run --handler asking_payload --state state --state-out after --peers peers --peers-out peers_after twins.elf >out
has 'result        returned SUCCESS' 'counter       0x00000005: 7 successes, 1 failures' \
    'PtlHandlerCTGet(5, stack+' 'PtlHandlerFetchAtomicFromDevice(state+48, stack+' ', 8, rank 0, 6, 0, 0, 2, 8) = 0'
words 105 0 1005 0 0 0 | cmp - peers_after
od -A n -t u8 -j 48 -N 8 after | grep -qx ' *100' || fail 'what was fetched'
refuse 0 'PtlHandlerGetToDeviceEx(stack+' run --handler asking_payload --state state twins.elf
has ') = 5 '

# What strays in a call.
words 9 104 0 0 >state
refuse 1 'result        SEGV: in PtlHandlerDMAToHostB: argument 1, 0x00000020, is no pointer into its memory: 8 bytes; pc 0x' \
    run --handler faulty_payload --state state twins.elf
has 'PtlHandlerDMAToHostB(0x00000020, 0, 8, 1) has not returned'
words 8 104 0 0 >state
refuse 1 'result        TIMEOUT: used 500' run --handler faulty_payload --state state --budget 5000 twins.elf

# As JSON; and fields of a header.
head -c 104 /dev/zero >state
run --handler telling_header --packet user --state state --state-out after --json --set type=swap --set length=12345678901 \
    --set match_bits=0xfedcba9876543210 --set offset=3 --set hdr_data=77 --set source_id=10:20 --set target_id=5 twins.elf >out
python3 - out after <<'PYTHON'
import json
import struct
import sys
with open(sys.argv[1], encoding="ascii") as file:
    r = json.load(file)
assert r["handler"] == "telling_header" and r["result"] == "returned PROCESS_DATA", r
assert r["returned"] and r["value"] == 3 and r["calls"] == [], r
with open(sys.argv[2], "rb") as file:
    got = struct.unpack_from("<10Q16s", file.read(), 8)
assert got[:7] == (12345678901, 0xfedcba9876543210, 3, 77, 7, 10 << 32 | 5, 4), got
assert got[10][:7] == b"header\0", got
PYTHON
run --handler telling_completion --state state --state-out after --set dropped_bytes=6000000000 \
    --set flow_control_triggered=1 twins.elf >out
od -A n -t u8 -j 72 -N 16 after | grep -qx ' *6000000000  *1' || fail 'completion'
run --handler telling_payload --json --set offset=64 twins.elf >out
python3 -c '
import json
with open("out", encoding="ascii") as file:
    r = json.load(file)
call, = r["calls"]
assert r["call_cycles"] == call["cycles"] == 12 and call["result"] == 0, r
assert call["name"] == "PtlHandlerFAdd" and call["call"] == "PtlHandlerFAdd(state+64, NULL, 0) = 0", r'

# What calls of the host cost on PsPIN: both ways the same, 26 cycles and one a beat of 64 bytes; a
# transfer that is begun and waited for takes no more than its whole.
head -c 640 /dev/zero >packet
run --handler timing_payload --packet packet --json twins.elf >out
python3 -c '
import json
with open("out", encoding="ascii") as file:
    calls = json.load(file)["calls"]
cost = [(c["name"].removeprefix("PtlHandlerDMA"), c["cycles"]) for c in calls]
assert cost[:3] == [("FromHostB", 27), ("FromHostB", 36), ("FromHostNB", 7)], cost
assert cost[3][0] == "Wait" and 0 < cost[3][1] <= 36 - 7, cost'

# A profile and a flame graph have the calls in them; the budget takes handlers, too.
"$pinwheel" hpu profile --handler timing_payload --packet packet twins.elf --flame flame.svg >out
has '  PtlHandlerDMAFromHostB' '  timing_payload' '(PtlHandlerDMAFromHostB)'
grep -q ' ?$' out && { cat out; fail 'cycles of nowhere'; }
grep -q PtlHandlerDMAFromHostB flame.svg || fail 'no call in the flame graph'
"$pinwheel" hpu budget --handler telling_payload --table twins.elf >out
[ "$(grep -c '^ *[0-9]* .* [0-9]* *[0-9]*$' out)" -ge 11 ] || { cat out; fail 'a table'; }
"$pinwheel" hpu trace --handler yielding_payload --state state --cold --timing arm twins.elf >out
has 'PtlHandlerYield()' 'cold instruction cache' '(uncalibrated)'

# What an image and the state of its handlers take.
"$pinwheel" hpu size twins.elf >out
has 'HPU memory in L1 has 965632 bytes'
grep -Eq '^ +telling_header +header +twins_state 104$' out || { cat out; fail 'a state'; }
"$pinwheel" hpu size --json twins.elf >out
python3 -c '
import json
with open("out", encoding="ascii") as file:
    r = json.load(file)
kinds = {h["name"]: (h["kind"], h["structs"]) for h in r["handlers"]}
assert len(kinds) == 8 and r["state_limit"] == 965632, r
assert kinds["telling_completion"] == ("completion", [{"name": "twins_state", "bytes": 104}]), r'

# GDB: a handler that a call ends has a signal, and says why.
if command -v gdb-multiarch >/dev/null; then
    words 9 104 0 0 >state
    cat >commands <<END
set remotetimeout 300
target remote | $pinwheel hpu gdb --handler faulty_payload --state state twins.elf
continue
backtrace
kill
END
    gdb-multiarch -nx -batch -x commands twins.elf >out 2>&1 || { cat out; fail 'gdb'; }
    has 'SEGV: in PtlHandlerDMAToHostB: argument 1, 0x00000020' 'received signal SIGSEGV' ' stray_in_call ('
fi

# A pipe is a file, too, for each of the host's memories.
head -c 70000 /dev/urandom >user
for file in host handler-host peers; do
    # shellcheck disable=SC2002,SC2094 # a pipe is meant
    cat user | run --handler telling_payload "--$file" /dev/stdin "--$file-out" user_after twins.elf >out
    cmp user user_after
    refuse 1 "--$file missing: No such file" run --handler telling_payload "--$file" missing twins.elf
done

# What handlers ask about their message: its header by --set, memory of its own from a file.
"$pinwheel" cc --image --cc "$cc" "$folder/identity_handlers.c" -o identity.elf
words 56 0 0 0 >state
words 1 0 64 0 0 0 3 0 1280 0 7 0 0 0 >message
head -c 64 /dev/zero >packet
run --handler identity_payload --packet packet --state state --message-state message --message-state-out message_after \
    --set header.offset=3 --set header.hdr_data=1280 identity.elf >out
has 'result        returned SUCCESS' 'PtlHandlerHeader(stack+' 'PtlHandlerMessageState() = ' \
    'PtlHandlerFAdd(message state+40, NULL, 64) = 0'
words 1 0 64 0 0 0 3 0 1280 0 71 0 0 0 | cmp - message_after

# What is refused.
refuse 1 'twins.elf: registers no handler none; it has asking_payload yielding_payload' run --handler none twins.elf
refuse 1 'registers no handler; PTL_HANDLER(name) does' run --handler none "$2/golden/kernels.elf"
refuse 1 '--handler NAME or --function NAME is needed' run twins.elf
refuse 1 '--function and --arg are for functions' run --handler telling_header --function deep twins.elf
refuse 1 '--set, --host, --handler-host, --peers and --message-state are for --handler' run --function deep --host user twins.elf
head -c 4097 /dev/zero >message
refuse 1 '--message-state message: is longer than 4096 bytes' run --handler telling_payload --message-state message twins.elf
refuse 2 '--peers-out: is for --handler' run --function deep --peers-out x twins.elf
refuse 1 '--set length=x: a header handler is called with type=(put, get, atomic, fetch_atomic, swap or timer) length=(a number)' \
    run --handler telling_header --set length=x twins.elf
refuse 1 '--set length=5: a payload handler is called with offset=(a number)' run --handler telling_payload --set length=5 twins.elf
for wrong in type=8 source_id=1:2:3 source_id=x hdr_data=-1 hdr_data=; do
    refuse 1 "--set $wrong: a header handler is called with" run --handler telling_header --set "$wrong" twins.elf
done
refuse 1 '--set flow_control_triggered=2' run --handler telling_completion --set flow_control_triggered=2 twins.elf
head -c 65537 /dev/zero >long
refuse 1 'long: is longer than 65536 bytes' run --handler telling_payload --packet long twins.elf
riscv64-unknown-elf-objcopy --strip-debug twins.elf bare.elf
refuse 1 'does not tell what kind of handler telling_payload is' run --handler telling_payload bare.elf
echo "handlers ran alone, with their calls; refused what is wrong"
