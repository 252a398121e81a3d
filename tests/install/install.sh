#!/bin/sh
# Installs the build into a fresh prefix and uses it as a stranger would: with
# pkg-config, with CMake, and by the installed command.
# Usage: install.sh BUILD_FOLDER SOURCE_FOLDER CC
set -eu
build=$1 source=$2 cc=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >/dev/null &
first=$!

# Another install of the same build at the same time: neither sees the other's prefix.
cmake --install "$build" --prefix "$work/other" >/dev/null
wait "$first"
for p in prefix other; do
    for f in portals pinwheel pinwheel-firehose pinwheel-raw pinwheel-rma; do
        grep -qx "prefix=$work/$p" "$work/$p/lib/pkgconfig/$f.pc" ||
            { echo "$f.pc in $work/$p: $(head -1 "$work/$p/lib/pkgconfig/$f.pc")"; exit 1; }
    done
done
rm -rf "$work/other"

for f in include/portals4.h include/spin.h include/spin_handler.h include/spin_queue.h include/pinwheel_sim.h include/pinwheel.h \
         include/pinwheel_firehose.h include/firehose.h lib/libpinwheel-firehose.so \
         lib/pkgconfig/pinwheel-firehose.pc share/man/man7/pinwheel_firehose.7 \
         include/pinwheel_rma.h lib/libpinwheel-rma.so lib/pkgconfig/pinwheel-rma.pc \
         share/man/man7/pinwheel_rma.7 \
         include/pinwheel_raw.h lib/libpinwheel-raw.so share/man/man7/pinwheel_raw.7 \
         lib/libportals.so lib/pkgconfig/portals.pc lib/pkgconfig/pinwheel.pc bin/pinwheel \
         share/man/man3/PtlPut.3 share/man/man7/portals4.7 \
         share/pinwheel/examples/graph.c share/pinwheel/handlers/graph.c; do
    [ -e "$prefix/$f" ] || { echo "not installed: $f"; exit 1; }
done

# The library exports Portals and sPIN, and what the command needs of it (hpu/shared.h), nothing else.
others=$(nm -D --defined-only "$prefix/lib/libportals.so" | awk '{ print $3 }' | grep -v -e '^Ptl' -e '^pinwheel_hpu_shared$' || true)
[ -z "$others" ] || { echo "libportals.so exports more than Ptl*: $others"; exit 1; }

PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
# shellcheck disable=SC2046,SC2086  # flags are meant to be split
$cc ${CFLAGS-} "$source/tests/install/user.c" -o "$work/user" \
    $(pkg-config --cflags --libs portals) -Wl,-rpath,"$prefix/lib"
"$work/user"
# shellcheck disable=SC2046,SC2086
$cc ${CFLAGS-} "$source/tests/firehose/names.c" "$source/tests/firehose/names_other.c" -o "$work/names" \
    $(pkg-config --cflags --libs pinwheel-firehose) -Wl,-rpath,"$prefix/lib"
"$work/names"

# shellcheck disable=SC2046,SC2086
$cc ${CFLAGS-} -D_GNU_SOURCE "$source/examples/raw/ping_host.c" -o "$work/ping_host" \
    $(pkg-config --cflags --libs pinwheel-raw) -pthread -Wl,-rpath,"$prefix/lib"
"$work/ping_host" 2> "$work/text" && exit 1
grep -q "iface NAME" "$work/text"
others=$(nm -D --defined-only "$prefix/lib/libpinwheel-raw.so" | awk '{ print $3 }' | grep -v '^pw_raw_' || true)
[ -z "$others" ] || { echo "libpinwheel-raw.so exports more than pw_raw_*: $others"; exit 1; }

# The first example, as README.md says it.
# shellcheck disable=SC2046,SC2086
$cc ${CFLAGS-} "$source/examples/hello_put.c" -o "$work/hello_put" \
    $(pkg-config --cflags --libs pinwheel) -Wl,-rpath,"$(pkg-config --variable=libdir pinwheel)"
"$prefix/bin/pinwheel" run -n 2 "$work/hello_put" | grep -q 'rank 1 received'

# A program of a library on top.
# shellcheck disable=SC2046,SC2086
$cc ${CFLAGS-} -D_GNU_SOURCE "$source/examples/rma.c" -o "$work/rma" $(pkg-config --cflags --libs pinwheel-rma pinwheel) \
    -Wl,-rpath,"$prefix/lib"
"$prefix/bin/pinwheel" run -n 2 "$work/rma" | grep -q 'rank 1 has "a line of rank 0"'

# C++ takes the headers too, each alone.
for header in "$prefix"/include/*.h; do
    clang -x c++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -include "$header" /dev/null
done

cat > "$work/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(user C)
find_package(Pinwheel 0.1 REQUIRED)
add_executable(user ${SOURCE}/tests/install/user.c)
target_link_libraries(user Pinwheel::portals Pinwheel::pinwheel Pinwheel::firehose Pinwheel::rma)
EOF
cmake -S "$work" -B "$work/b" -DSOURCE="$source" -DCMAKE_PREFIX_PATH="$prefix" \
      -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="${CFLAGS-}" >/dev/null
cmake --build "$work/b" >/dev/null
"$work/b/user"
"$prefix/bin/pinwheel" run -n 2 "$work/b/user"

# Handlers, for this machine and for the RV32 cores.
if command -v riscv64-unknown-elf-gcc >/dev/null; then
    cat > "$work/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(shout C)
find_package(Pinwheel 0.1 REQUIRED)
add_executable(shout ${SOURCE}/tests/hpu/cc/shout_main.c)
target_link_libraries(shout Pinwheel::portals)
pinwheel_add_handlers(shout ${SOURCE}/tests/hpu/cc/shout.c)
EOF
    cmake -S "$work" -B "$work/c" -DSOURCE="$source" -DCMAKE_PREFIX_PATH="$prefix" \
          -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="${CFLAGS-}" >/dev/null
    cmake --build "$work/c" >/dev/null
    "$work/c/shout" | grep -q '64-bit pointers'
    PINWHEEL_HPU=rv32 "$work/c/shout" | grep -q '32-bit pointers'

    # The installed examples, by their own CMakeLists.txt: the first two programs.
    cmake -S "$prefix/share/pinwheel/examples" -B "$work/e" -DCMAKE_PREFIX_PATH="$prefix" \
          -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="${CFLAGS-}" >/dev/null
    cmake --build "$work/e" --target hello_put hello_handler >/dev/null
    "$prefix/bin/pinwheel" run -n 2 "$work/e/hello_put" | grep -q 'rank 1 received'
    for hpu in native rv32; do
        PINWHEEL_HPU=$hpu "$prefix/bin/pinwheel" run -n 2 "$work/e/hello_handler" | grep -q '2000 lines'
    done

    # In C++, with a file in C; a project without C++ is told so.
    cat > "$work/CMakeLists.txt" <<'EOF'
cmake_minimum_required(VERSION 3.22)
project(loud LANGUAGES ${LANGUAGES})
find_package(Pinwheel 0.1 REQUIRED)
add_executable(loud ${SOURCE}/tests/hpu/cc/shout_main.c)
set_target_properties(loud PROPERTIES CXX_STANDARD 20)
target_compile_definitions(loud PRIVATE LOUD_STANDARD=202002L)
target_link_libraries(loud Pinwheel::portals)
pinwheel_add_handlers(loud ${SOURCE}/tests/hpu/cc/loud.cc SUPPORT ${SOURCE}/tests/hpu/cc/loud_count.c)
EOF
    case $cc in
    *clang*) cxx=clang++ ;;
    *) cxx=g++ ;;
    esac
    set -- -S "$work" -B "$work/d" -DSOURCE="$source" -DCMAKE_PREFIX_PATH="$prefix" \
        -DCMAKE_C_COMPILER="$cc" -DCMAKE_C_FLAGS="${CFLAGS-}"
    if cmake "$@" -DLANGUAGES=C >/dev/null 2>"$work/err"; then
        echo "C++ handlers in a project without C++"
        exit 1
    fi
    tr '\n' ' ' <"$work/err" | grep -q 'loud.cc: *C++' || { cat "$work/err"; exit 1; }
    cmake "$@" -DLANGUAGES="C;CXX" -DCMAKE_CXX_COMPILER=$cxx -DCMAKE_CXX_FLAGS="${CFLAGS-}" >/dev/null
    cmake --build "$work/d" >/dev/null
    "$work/d/loud" | grep -q 'CODE: 19 letters, 64-bit pointers'
    PINWHEEL_HPU=rv32 "$work/d/loud" | grep -q 'CODE: 19 letters, 32-bit pointers'
fi
echo "installed, compiled with pkg-config and CMake, ran"
