#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# `pinwheel cc` as its users call it. Usage: cc.sh PINWHEEL FOLDER CC LIBPORTALS; FOLDER is tests/hpu.
# shellcheck source=tests/hpu/shell.sh
. "$(dirname "$0")/shell.sh"
pinwheel=$1 folder=$2/cc cc=$3 portals=$4
include=$2/../../include
case $cc in
*clang*) cxx=clang++ ;;
*) cxx=g++ ;;
esac

# refuse TEXT FILE...: it is not compiled, nothing is left behind, and the text says why
refuse() {
    text=$1
    shift
    if "$pinwheel" cc --cc "$cc" "$@" -o out.o >out 2>err; then
        fail "was compiled: $*"
    fi
    grep -qF -- "$text" err || { cat err; fail "no word of \"$text\": $*"; }
    [ ! -e out.o ] || fail "out.o is there: $*"
}

# says TEXT: of the same compilation
says() {
    grep -qF -- "$1" err || { cat err; fail "no word of \"$1\""; }
}

command -v riscv64-unknown-elf-gcc >/dev/null ||
    fail "no riscv64-unknown-elf-gcc: tools/packages.sh test installs it"

# One source, two targets, one program, which its user switches from one to the other.
"$pinwheel" cc --cc "$cc" -O3 -DUNUSED=1 "$folder/shout.c" --depfile shout.d
grep -q 'spin_handler.h' shout.d || fail "shout.d misses a header"
# shellcheck disable=SC2086  # flags are meant to be split
$cc ${CFLAGS-} -I"$include" "$folder/shout_main.c" shout.o -o shout "$portals" -Wl,-rpath,"$(dirname "$portals")"
export PINWHEEL_FABRIC=shm
[ "$(./shout)" = "A HANDLER IS PLAIN CODE: 19 letters, 64-bit pointers" ] || fail "natively: $(./shout)"
[ "$(PINWHEEL_HPU=rv32 ./shout)" = "A HANDLER IS PLAIN CODE: 19 letters, 32-bit pointers" ] ||
    fail "on RV32: $(PINWHEEL_HPU=rv32 ./shout)"
if PINWHEEL_HPU=arm ./shout >/dev/null 2>err; then
    fail "PINWHEEL_HPU=arm was taken"
fi
grep -qF 'native|rv32' err || { cat err; fail "PINWHEEL_HPU=arm is not explained"; }

if PINWHEEL_HPU=rv32 PINWHEEL_HPU_TIMING=m4 ./shout >/dev/null 2>err; then
    fail "PINWHEEL_HPU_TIMING=m4 was taken"
fi
grep -qF 'PINWHEEL_HPU_TIMING=m4: must be one of pspin|fpspin|arm' err ||
    { cat err; fail "PINWHEEL_HPU_TIMING=m4 is not explained"; }
for timing in pspin fpspin arm; do
    PINWHEEL_HPU=rv32 PINWHEEL_HPU_TIMING=$timing ./shout >/dev/null || fail "on $timing"
done

# With reals in registers: the same result, on cores that have F and D, and a refusal on others.
"$pinwheel" cc --cc "$cc" --reals "$folder/real.c"
# shellcheck disable=SC2086  # flags are meant to be split
$cc ${CFLAGS-} -I"$include" "$folder/shout_main.c" real.o -o real "$portals" -Wl,-rpath,"$(dirname "$portals")"
[ "$(./real)" = "A HANDLER IS PLAIN CODE: 19 letters, 64-bit pointers" ] || fail "natively: $(./real)"
[ "$(PINWHEEL_HPU=rv32 PINWHEEL_HPU_TIMING=arm ./real)" = \
    "A HANDLER IS PLAIN CODE: 19 letters, 32-bit pointers" ] || fail "with reals on RV32"
if PINWHEEL_HPU=rv32 ./real >/dev/null 2>err; then
    fail "cores of PsPIN ran instructions of F and D"
fi
grep -qF 'of the extensions F and D, and the cores of the table pspin do not' err ||
    { cat err; fail "reals on pspin are not explained"; }
"$pinwheel" cc --image --reals "$folder/real.c" -o real.elf
"$pinwheel" hpu disas real.elf >listing
grep -q "fcvt" listing || fail "--reals has no instructions of F"

# Each call of spin_handler.h is one on RV32.
for call in $(grep -o 'PtlHandler[A-Za-z]*(' "$include/spin_handler.h" | tr -d '(' | sort -u); do
    grep -q "[, :]$call\b" "$include/../src/hpu/rv32/runtime/calls.h" "$include/../src/hpu/rv32/runtime/calls.S" ||
        fail "$call has no stub"
done

# Stripped, in a library, with unused sections left out: the handlers are found all the same.
strip -o stripped shout
[ "$(PINWHEEL_HPU=rv32 ./stripped)" = "$(PINWHEEL_HPU=rv32 ./shout)" ] || fail "stripped"
"$pinwheel" cc --cc "$cc" -fPIC -fvisibility=hidden "$folder/shout.c" -o pic.o
cat >visible.c <<'EOF'
#include "shout.h"
int (*shout_handler(void))(const ptl_payload_t, void *);
__attribute__((visibility("default"))) int (*shout_handler(void))(const ptl_payload_t, void *)
{
    return shout_payload;
}
EOF
sed 's/= shout_payload,/= shout_handler(),/; s/#include "shout.h"/&\nint (*shout_handler(void))(const ptl_payload_t, void *);/' \
    "$folder/shout_main.c" >library_main.c
# shellcheck disable=SC2086
$cc ${CFLAGS-} -fPIC -shared -fvisibility=hidden -Wl,--gc-sections -I"$include" -I"$folder" visible.c pic.o -o libshout.so
# shellcheck disable=SC2086
$cc ${CFLAGS-} -I"$include" -I"$folder" library_main.c -o library ./libshout.so "$portals" \
    -Wl,-rpath,"$(dirname "$portals")"
[ "$(PINWHEEL_HPU=rv32 ./library)" = "$(PINWHEEL_HPU=rv32 ./shout)" ] || fail "in a library"

# The whole program with link-time optimisation: files with images, and one without.
printf '#include "spin_handler.h"\n__handler static int other(const ptl_payload_t p, void *s)\n{\n    return p.length != 0;\n}\nPTL_HANDLER(other);\n' >other.c
sed 's/other/third/' other.c >third.c
lto=-flto
case $cc in *clang*) command -v ld.lld >/dev/null && lto='-flto -fuse-ld=lld' || lto='' ;; esac
"$pinwheel" cc --cc "$cc" ${lto:+-flto} "$folder/shout.c" -o shout_lto.o
"$pinwheel" cc --cc "$cc" ${lto:+-flto} other.c -o other_lto.o
# shellcheck disable=SC2086
$cc ${CFLAGS-} -O2 $lto -I"$include" "$folder/shout_main.c" shout_lto.o other_lto.o third.c -o shout_lto "$portals" \
    -Wl,-rpath,"$(dirname "$portals")"
for hpu in native rv32; do
    [ "$(PINWHEEL_HPU=$hpu ./shout_lto)" = "$(PINWHEEL_HPU=$hpu ./shout)" ] || fail "with -flto, $hpu"
done

# A handler without twin is not run natively instead.
# shellcheck disable=SC2086
$cc ${CFLAGS-} -I"$include" "$folder/shout_main.c" "$folder/shout.c" -o plain "$portals" \
    -Wl,-rpath,"$(dirname "$portals")"
[ "$(./plain)" = "$(./shout)" ] || fail "plain: $(./plain)"
PINWHEEL_HPU=rv32 ./plain >out 2>err && fail "ran natively"
grep -qF 'the handler shout_payload has no RV32 code; compile its file with' err ||
    { cat err; fail "no word of the missing twin"; }

# The image alone, for the tools, and beside the program; several files.
"$pinwheel" cc --image "$folder/shout.c"
"$pinwheel" cc --image --cc "$cc" "$folder/bad_state.c" -o none.elf 2>/dev/null && fail "bad_state.c"
"$pinwheel" cc --image other.c
for images in shout.elf other.elf:shout.elf "$work/shout.elf:"; do
    [ "$(PINWHEEL_HPU=rv32 PINWHEEL_HPU_IMAGES=$images ./plain)" = "$(PINWHEEL_HPU=rv32 ./shout)" ] ||
        fail "beside the program: $images"
done
PINWHEEL_HPU=rv32 PINWHEEL_HPU_IMAGES=other.elf ./plain 2>err && fail "ran with other.elf"
grep -qF 'the handler shout_payload has no RV32 code' err || { cat err; fail "other.elf"; }
PINWHEEL_HPU=rv32 PINWHEEL_HPU_IMAGES=other.elf:none.elf ./plain 2>err && fail "ran without an image"
grep -qF 'the handler shout_payload cannot be run: none.elf: No such file' err || { cat err; fail "none.elf"; }
"$pinwheel" hpu size shout.elf | grep -q shout_payload || fail "shout.elf has no shout_payload"
"$pinwheel" cc --cc "$cc" "$folder/shout.c" "$folder/bad_size.c" -o two.o 2>err && fail "two.o: not refused"
grep -qF 'two.o: has ' err || { cat err; fail "two.o"; }

# Copies of unknown alignment go by words.
printf '#include "spin_handler.h"\n__handler static int copying(const ptl_payload_t p, void *s)\n{\n    __builtin_memcpy(s, p.base + 1, 16);\n    return SUCCESS;\n}\nPTL_HANDLER(copying);\n' >copying.c
"$pinwheel" cc --image --cc "$cc" copying.c
"$pinwheel" hpu disas --function copying copying.elf >out
grep -q 'lbu' out && { cat out; fail "copies byte by byte"; }

# C++, of which a file in C may be a part: the same program, natively and on RV32, linked by the C
# compiler, with the same bytes as from C.
"$pinwheel" cc --cc "$cc" --cxx "$cxx" -std=c++17 -std=c17 "$folder/loud.cc" "$folder/loud_count.c" \
    --depfile loud.d -o loud.o
grep -q 'loud_count.c' loud.d || fail "loud.d misses a source"
# shellcheck disable=SC2086
$cc ${CFLAGS-} -I"$include" "$folder/shout_main.c" loud.o -o loud "$portals" -Wl,-rpath,"$(dirname "$portals")"
for hpu in native rv32; do
    [ "$(PINWHEEL_HPU=$hpu ./loud)" = "$(PINWHEEL_HPU=$hpu ./shout)" ] ||
        fail "C++, $hpu: $(PINWHEEL_HPU=$hpu ./loud)"
done
cp "$folder/loud.cc" loud.cpp
cp "$folder/loud_count.c" loud_count.cxx
"$pinwheel" cc --image --cc "$cc" --cxx "$cxx" -I"$folder" loud.cpp loud_count.cxx
"$pinwheel" hpu size loud.elf | grep -q watch_payload || fail "loud.elf: watch_payload is missing"

# What is not for handlers in C++ is refused by its name.
for case in \
    'THROW:exceptions (throw, try, catch) are not for handlers' \
    'TRY:exceptions (throw, try, catch) are not for handlers' \
    'DYNAMIC_CAST:type information (dynamic_cast, typeid) is not for handlers' \
    'TYPO:bad_cxx.cc: is not compiled' \
    'HEADER:neither libc nor libstdc++' \
    'CONSTRUCTOR:static object made: is const, but made when a program starts' \
    'LOCAL_STATIC:static object kept: is const, but made when a program starts' \
    'UNUSED_CONSTRUCTOR:bad_cxx.cc: has static constructors' \
    'DESTRUCTOR:bad_cxx.cc: has static constructors' \
    'LOCAL_DESTRUCTOR:destructors of static objects: nothing calls them' \
    'DELETE:delete: nothing is allocated on an HPU; a virtual destructor brings' \
    'NEW:new and delete: nothing is allocated on an HPU' \
    'VIRTUAL:struct child: has virtual functions' \
    'BASE:struct child.parent.length: is of type size_t' \
    'REFERENCE:struct state.first: is of type reference' \
    'MEMBER:struct state.second: is of type pointer to member' \
    'TEMPLATE:struct state.deep.value: is of type long'; do
    refuse "${case#*:}" --cxx "$cxx" "-D${case%%:*}" "$folder/bad_cxx.cc"
done
"$pinwheel" cc --image --cc "$cc" --cxx "$cxx" -O0 -DPURE "$folder/bad_cxx.cc" -o pure.elf
"$pinwheel" hpu run --handler bad_payload pure.elf | grep -q 'returned SUCCESS' || fail "pure virtual"
"$pinwheel" cc --image --cc "$cc" --cxx "$cxx" "$folder/bad_cxx.cc" -o good.elf ||
    fail "bad_cxx.cc, which nothing is wrong with"
refuse "bad_cxx.cc: structs that are no state are not looked at" --cxx "$cxx" -DREFERENCE "$folder/bad_cxx.cc"
refuse "c++-none: No such file" --cxx c++-none "$folder/bad_cxx.cc"

# What is refused. Only what this machine's compiler takes lacks what the cores lack.
printf '#include <spin_handler.h>\n__handler int h(const ptl_header_t header, void *state) { return PROCED; }\nPTL_HANDLER(h);\n' >typo.c
refuse "typo.c: is not compiled" typo.c
grep -q libc err && { cat err; fail "a typo is put down to libc"; }
printf '#include <stdlib.h>\n#include <spin_handler.h>\n__handler int h(const ptl_header_t header, void *state) { return PROCEED; }\nPTL_HANDLER(h);\n' >hosted.c
refuse "hosted.c: is compiled for this machine, but not for RV32, which has 32 bits and no libc" hosted.c
refuse "struct bad_state.length: is of type size_t" "$folder/bad_state.c"
says "struct bad_state.inner.deep: is of type long"
says "struct bad_state.text: is of type pointer"
says "struct bad_state.bits: is of type unsigned long"
says "struct bad_state.real: is of type long double"
says "struct bad_state.call: is of type pointer"
grep -qF 'bad_state.c:12: ' err || fail "no line of a field"
grep -qF 'also_fine' err && fail "also_fine is complained about"
refuse "struct packed_here: has other members on RV32" "$folder/bad_layout.c"
says "struct other_here.words: has 32 bytes here and 16 on RV32"
grep -qF 'struct cursor' err && fail "struct cursor is no state"
refuse "static variable seen: can be written" "$folder/bad_static.c"
says "static variable mine: can be written"
refuse "undefined reference to \`PtlEQFree'" "$folder/bad_call.c"
# What the run time lacks: the file, the line, and what to do.
printf '#include "spin_handler.h"\nstruct pair {\n    uint64_t a, b;\n};\n__handler static int wide(const ptl_payload_t p, void *state)\n{\n    struct pair found, *s = state;\n    __atomic_load(s, &found, __ATOMIC_RELAXED);\n    return found.a != 0;\n}\nPTL_HANDLER(wide);\n' >wide.c
refuse "wide.c:8: undefined reference to \`__atomic_load'" "$PWD/wide.c"
says "atomics: of objects of 1, 2, 4 or 8 bytes; what is larger"
refuse "registers no handler" "$folder/bad_table.c"
refuse "bytes of code; the program memory holds 32768" "$folder/bad_size.c"
printf '#include "spin_handler.h"\n__handler static int again(const ptl_payload_t p, void *s)\n{\n    return p.length != 0;\n}\nPTL_HANDLER(again);\n' >one.c
cp one.c two.c
refuse "handler again is registered twice" one.c two.c
refuse "cannot be read" missing.c
refuse "ends with .c" shout.o
refuse "unknown option --fast" --fast "$folder/shout.c"
refuse "unknown option --imge; see \`pinwheel cc --help\`; did you mean --image?" --imge "$folder/shout.c"
refuse "riscv-none: No such file" --cross-cc riscv-none "$folder/shout.c"
[ "$(wc -l <err)" -eq 1 ] || { cat err; fail "the source is blamed for a compiler that is missing"; }
printf '#!/bin/sh\nkill -SEGV $$\n' >crashing && chmod +x crashing
refuse "./crashing: was ended by signal 11" --cross-cc ./crashing "$folder/shout.c"
[ "$(wc -l <err)" -eq 1 ] || { cat err; fail "the source is blamed for a compiler that crashes"; }

# Handlers of no kind, in C and in C++; and where that is not noticed, `pinwheel hpu` does.
for parameters in 'int p' 'const ptl_payload_t *p' 'const ptl_header_t h, int n'; do
    printf '#include "spin_handler.h"\n__handler static int h(%s, void *s)\n{\n    return SUCCESS;\n}\nPTL_HANDLER(h);\n' \
        "$parameters" >kind.c
    cp kind.c kind.cc
    refuse "h has the type of none of the three kinds of handlers" kind.c
    refuse "h has the type of none of the three kinds of handlers" --cxx "$cxx" kind.cc
done
printf '#include "spin_handler.h"\n#undef PTL_HANDLER_ASSERT\n#define PTL_HANDLER_ASSERT(is, text) _Static_assert(1, text)\n__handler static int h(const ptl_payload_t *p, void *s)\n{\n    return SUCCESS;\n}\nPTL_HANDLER(h);\n' >kind.c
"$pinwheel" cc --image --cc "$cc" kind.c -o kind.elf
"$pinwheel" hpu run --handler h kind.elf >out 2>err && fail "a handler of no kind is run"
says "kind.elf: h has the type of none of the three kinds of handlers"
refuse "which FILE.c" -O2
echo "compiled, linked, ran on both; refused what is wrong"
