#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel hpu` as its users call it. Usage: command.sh PINWHEEL FOLDER, which is tests/hpu.
# shellcheck source=tests/hpu/shell.sh
. "$(dirname "$0")/shell.sh"
pinwheel=$1 folder=$2 kernels=$2/golden/kernels.elf

# has FILE LINE...: the file has these lines
has() {
    file=$1
    shift
    for line; do
        grep -qxF -- "$line" "$file" || { cat "$file"; fail "$file misses: $line"; }
    done
}

gcc=riscv64-unknown-elf-gcc
command -v $gcc >/dev/null || fail "no $gcc: tools/packages.sh test installs it"
$gcc -march=rv32imac_zicsr -mabi=ilp32 -mno-strict-align -O1 -g -ffreestanding -nostdlib \
    -Wl,-Ttext=0x1d000000 -Wl,--build-id=none -Wl,-e,handler "$folder/handler.c" -o handler.elf

# A run: 16 words of 6, each a third, all and the first half; into HPU memory.
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do printf '\006\000\000\000'; done >packet
printf '\001\000\000\000' >state
"$pinwheel" hpu run handler.elf --function handler --packet packet --state state --state-out after >out
has out 'result        returned 0x00000031' 'core          pspin, 1000 MHz: 1010.0 ns'
printf '1\000\000\000' | cmp - after
"$pinwheel" hpu run --function k_sum32 --arg packet --arg 16 --packet packet "$kernels" >out
has out 'result        returned 0x00000060' 'instructions  70' 'cycles        101, warm instruction cache'
"$pinwheel" hpu run --function k_empty --cold --json "$kernels" >out
has out '  "cycles": 18,' '  "instructions": 1,' '  "cold": true,'
"$pinwheel" hpu run --function k_empty --timing arm "$kernels" >out
has out 'core          arm, 2500 MHz: 0.4 ns (uncalibrated)'

# Faults, with the source line.
refuse 1 'SEGV: may not load 4 bytes at 0x10014000; pc 0x' \
    "$pinwheel" hpu run --function stray handler.elf
grep -q "in stray+0x[0-9a-f]*, .*handler.c:$(awk '/beyond any packet/ { print NR }' "$folder/handler.c")\$" out || { cat out; fail 'no source line'; }
refuse 1 'SEGV: stack overflow by ' "$pinwheel" hpu run --function deep handler.elf
grep -q 'SEGV: stack overflow by [0-9]*: the stack has 4096 bytes at 0x10000000; pc 0x' out || { cat out; fail 'no bounds'; }

# A jump out of the code: from where, and who called. Lines of functions that the linker has
# discarded, which stand at 0, are nobody's.
set -- through nowhere smashed leaps leaper walks large astray writes
for f; do keep="${keep-} -Wl,-u,$f"; done
# shellcheck disable=SC2086 # options
$gcc -march=rv32imac_zicsr -mabi=ilp32 -O1 -g -ffreestanding -nostdlib -ffunction-sections -Wl,--gc-sections $keep \
    -Wl,-Ttext=0x1d000000 -Wl,--build-id=none -Wl,-e,nowhere "$folder/handler.c" -o wild.elf
line() { awk -v text="$1" 'index($0, text) { print NR }' "$folder/handler.c"; }
# wild FUNCTION PATTERN: ends so
wild() {
    refuse 1 'SEGV: ' "$pinwheel" hpu run --function "$1" wild.elf
    grep -q "^result        SEGV: $2\$" out || { cat out; fail "$1 does not end with $2"; }
}
hex='0x[0-9a-f]*'
wild nowhere "control left the code; pc 0x00000000, from $hex in through+$hex, .*handler.c:$(line 'a pointer to nowhere')"
wild smashed "control left the code; pc 0x12345678, from $hex in smashed+$hex, .*handler.c:$(line 'what an overflow leaves')"
wild leaper "control left the code; pc 0x00000000, from $hex in leaps+$hex, .*handler.c:$(line 'not coming back'), called from $hex in leaper+$hex, .*handler.c:$(line 'who called')"

# What strays from memory says from which: the stack, by how much, also through a pointer.
wild walks "may not store 4 bytes at 0x0ffffffc, a stack overflow by 4: the stack has 4096 bytes at 0x10000000; pc $hex in walks.*"
wild large "may not store 4 bytes at $hex, a stack overflow by [0-9]*: the stack has 4096 bytes at 0x10000000; pc $hex in large.*"
wild astray "the stack pointer is 0x00001000, outside the stack of 4096 bytes at 0x10000000; pc $hex in astray.*"
refuse 1 ', which is only read; pc' "$pinwheel" hpu run --function writes --arg 0x1d000000 wild.elf
refuse 1 'may not store 4 bytes at 0x10004040, 0 bytes behind the packet, 64 bytes at 0x10004000; pc' \
    "$pinwheel" hpu run --function writes --arg 0x10004040 wild.elf
refuse 1 'may not store 4 bytes at 0x10003ffc, 4 bytes below the packet, 64 bytes at 0x10004000; pc' \
    "$pinwheel" hpu run --function writes --arg 0x10003ffc wild.elf
refuse 1 'may not store 4 bytes at 0x1000403e, beyond the end of the packet, 64 bytes at 0x10004000; pc' \
    "$pinwheel" hpu run --function writes --arg 0x1000403e wild.elf
refuse 1 'may not store 4 bytes at 0x00000000; pc' "$pinwheel" hpu run --function writes --arg 0 wild.elf
refuse 1 'TIMEOUT: used 10' "$pinwheel" hpu run --function spin --budget 1000 handler.elf

# A profile adds up to the run, by function and by line.
"$pinwheel" hpu profile --function handler --packet packet --json handler.elf --flame flame.svg >out
python3 - out flame.svg <<'PYTHON'
import json
import sys
import xml.etree.ElementTree
with open(sys.argv[1], encoding="ascii") as file:
    p = json.load(file)
for part in ("functions", "lines"):
    assert sum(row["cycles"] for row in p[part]) == p["cycles"], part
    assert sum(row["instructions"] for row in p[part]) == p["instructions"], part
assert [row["name"] for row in p["functions"]] == ["sum", "both", "handler"], p["functions"]
hints = [e.text for e in xml.etree.ElementTree.parse(sys.argv[2]).iter() if e.tag.endswith("title")]
widths = [h for h in hints if h.startswith(("sum:", "both:", "handler:"))]
assert len(widths) == 4, hints
assert f"handler: {p['cycles']} cycles" in hints[0], hints
PYTHON

# A trace: one line an instruction, then the result.
"$pinwheel" hpu trace --function k_sum32 --arg packet --arg 1 "$kernels" >out
[ "$(grep -c 'k_sum32+' out)" -eq 10 ] || { cat out; fail 'not ten instructions'; }
grep -q '^       5  1d0002ca  4398  *c.lw	a4,0(a5)  *k_sum32+0xc  \[10004000\]$' out || { cat out; fail 'no load'; }
"$pinwheel" hpu trace --count 2 --json --function k_sum32 --arg packet --arg 1 "$kernels" >out
[ "$(grep -c '"cycle"' out)" -eq 2 ] || fail 'more than two'

"$pinwheel" hpu disas --function k_empty "$kernels" >out
printf '\n1d0002bc <k_empty>:\n1d0002bc:\t8082    \tc.jr\tra\n' | cmp - out
"$pinwheel" hpu size "$kernels" >out
has out 'code     1840 of   32768 bytes, at 1d000000' '           50 k_fnv'
"$pinwheel" hpu size --json handler.elf | grep -q '"code_limit": 32768' || fail 'size as JSON'

# The sPIN paper's figures: 8 HPUs, 400 Gbit/s, 150 million packets a second.
"$pinwheel" hpu budget --hpus 8 --bytes 64 >out
has out 'may take      53.0 cycles on each of 8 HPUs at 1000 MHz: 53.6 ns'
"$pinwheel" hpu budget --hpus 8 --bytes 4096 --timing arm >out
has out 'may take      1638.0 cycles on each of 8 HPUs at 2500 MHz: 655.4 ns'
"$pinwheel" hpu budget --hpus 8 --bytes 64 --function k_sum32 --arg packet --arg 4 "$kernels" >out
# 29 cycles, and the 3 that the run time takes from one handler to the next.
has out 'cycles        29, warm instruction cache' 'busy          32.0 cycles of an HPU a packet: the handler, and 3 around it' \
    'fits          yes, needs 4.78 HPUs'
"$pinwheel" hpu budget --hpus 8 --bytes 64 --function k_sum32 --arg packet --arg 4 --json "$kernels" >out
has out '  "cycles": 29,' '  "cycles_around": 3,' '  "fits": true,'
"$pinwheel" hpu budget --hpus 8 --bytes 64 --function k_sum32 --arg packet --arg 4 --timing arm "$kernels" >out
has out 'busy          22.0 cycles of an HPU a packet: the handler, and 0 around it'
refuse 1 'fits          no, needs' \
    "$pinwheel" hpu budget --hpus 8 --bytes 64 --function k_sum32 --arg packet --arg 16 "$kernels"

# Its figure 4: HPUs needed by packet size and time; a function is run for each size.
"$pinwheel" hpu budget --table --hpus 8 >out
has out '    64     6.70         53       2       8      15      30      75     150' \
    '  4096    81.92        655       1       1       2       3       7      13'
"$pinwheel" hpu budget --table --hpus 8 --function k_sum32 --arg packet --arg 4 --timing arm --json "$kernels" >out
has out '  "label": "uncalibrated",' '      "bytes": 16384,'
"$pinwheel" hpu run --function handler --packet packet --state state handler.elf >once
cycles=$(awk '$1 == "cycles" { sub(",", "", $2); print $2 }' once)
"$pinwheel" hpu budget --table --function handler --packet packet --state state handler.elf >out
awk -v cycles="$cycles" '$1 == 64 && $(NF - 1) == cycles { found = 1 } END { exit !found }' out ||
    { cat out; fail "a packet of 64 bytes does not take $cycles cycles in the table"; }
refuse 1 'stray, packet of 16 bytes: SEGV' "$pinwheel" hpu budget --table --function stray handler.elf

# What is wrong is named.
refuse 2 'it is one of run' "$pinwheel" hpu fly
refuse 2 '--timing z80: must be one of pspin' "$pinwheel" hpu run --timing z80 "$kernels"
refuse 2 '--hpus none: must be a number' "$pinwheel" hpu budget --hpus none
refuse 2 '--budget -1: must be a whole number' "$pinwheel" hpu run --budget -1 "$kernels"
refuse 1 'which IMAGE?' "$pinwheel" hpu size
refuse 1 'is not an ELF file' "$pinwheel" hpu size packet
refuse 1 'is a 64-bit image' "$pinwheel" hpu size /bin/sh
refuse 1 '--function NAME is needed' "$pinwheel" hpu run "$kernels"
refuse 1 'has no function k_absent; it has k_empty' "$pinwheel" hpu run --function k_absent "$kernels"
refuse 1 'has no function k_absent' "$pinwheel" hpu disas --function k_absent "$kernels"
refuse 1 '--arg pocket: must be' "$pinwheel" hpu run --function k_sum32 --arg pocket "$kernels"
refuse 1 'No such file' "$pinwheel" hpu run --function k_sum32 --packet nowhere "$kernels"
refuse 1 'is longer than 16384 bytes' "$pinwheel" hpu run --function k_sum32 --packet /dev/zero "$kernels"
refuse 1 'No space left' "$pinwheel" hpu profile --function k_empty --flame /dev/full "$kernels"
$gcc -march=rv32imafc -mabi=ilp32f -ffreestanding -nostdlib -Wl,-Ttext=0x1d000000 -Wl,-e,handler \
    "$folder/handler.c" -o float.elf
refuse 1 'passes floating-point values in registers' "$pinwheel" hpu size float.elf

# What a linker makes when it is asked for the wrong thing.
rv32="$gcc -march=rv32imac_zicsr -mabi=ilp32 -ffreestanding -nostdlib"
$rv32 -c "$folder/handler.c" -o bad.elf
refuse 1 'is an object file with relocations; link it first' "$pinwheel" hpu size bad.elf
# $1...: options of the linker
link() { $rv32 -Wl,-Ttext=0x1d000000 -Wl,-e,handler "$@" "$folder/handler.c" -o bad.elf 2>link.err || { cat link.err; fail "cannot link: $*"; }; }
link -Wl,-q
refuse 1 'has relocations that nobody would apply' "$pinwheel" hpu size bad.elf
link -Wl,--omagic
refuse 1 'is code that can be written' "$pinwheel" hpu size bad.elf
link -s
refuse 1 'has no symbols of functions; do not strip it' "$pinwheel" hpu size bad.elf
link -Wl,-e,0x1e000000
refuse 1 'its entry point 1e000000 is not in the code' "$pinwheel" hpu size bad.elf
echo '.text; .space 40000' >large.s
link large.s
refuse 1 'bytes of code; the program memory holds 32768' "$pinwheel" hpu size bad.elf
link
head -c 5000 bad.elf >cut.elf
refuse 1 'is truncated' "$pinwheel" hpu size cut.elf
