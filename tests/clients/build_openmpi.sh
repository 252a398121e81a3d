#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Compiles Open MPI's four portals4 components, unmodified, as plug-ins for
# Debian's installed Open MPI.
#
#   build_openmpi.sh SOURCE INCLUDE LIBRARY_FOLDER PLUGINS
#
# SOURCE is Debian's unpacked openmpi source of the installed version, INCLUDE
# the folder of our portals4.h, LIBRARY_FOLDER that of libportals.so, PLUGINS
# where mca_{mtl,osc,coll}_portals4.so and mca_btl_portals4.so go. A plug-in
# that is newer than our header and this script is kept; the library is found at
# run time, so it may change.
#
# Everything but the components themselves comes from libopenmpi-dev, which has
# Open MPI's private headers in the configuration that is installed. What a
# configure with Portals would have said is said here: flow control on (its
# default), one MD spans the address space. It would also have given Portals an
# endpoint slot of its own; these take the slot of UCX, so no ucx component may
# run beside them (openmpi.conf and portals.conf see to that).
set -eu
[ $# -eq 4 ] || { echo "usage: build_openmpi.sh SOURCE INCLUDE LIBRARY_FOLDER PLUGINS" >&2; exit 2; }
mkdir -p "$4"
source=$(cd "$1" && pwd) include=$(cd "$2" && pwd) library=$(cd "$3" && pwd) plugins=$(cd "$4" && pwd)
script=$(cd "$(dirname "$0")" && pwd)/${0##*/}

mpi=$(mpicc.openmpi --showme:incdirs | awk '{ print $1 }')
lib=$(mpicc.openmpi --showme:libdirs | awk '{ print $1 }')
version() { sed -n 's/^#define OPAL_IDENT_STRING "\(.*\)"/\1/p' "$1"; }
installed=$(version "$mpi/openmpi/opal_config.h")
numbers=$(sed -n 's/^\(major\|minor\|release\)=//p' "$source/VERSION" | paste -sd.)
[ "$installed" = "$numbers" ] || {
    echo "build_openmpi.sh: the source is Open MPI $numbers, installed is ${installed:-unknown}" >&2; exit 1; }

# One include of the components names a file by where a configured source has it.
mkdir -p "$plugins/include/opal/include"
ln -sf "$mpi/openmpi/opal_config.h" "$plugins/include/opal/include/opal_config.h"

build() { # FOLDER NAME LINKER_OPTION
    out=$plugins/$2.so
    if [ -e "$out" ] && [ -z "$(find "$include/portals4.h" "$script" -newer "$out")" ]; then return; fi
    # The options are Open MPI's own (16-byte compare-and-swap among them), but that
    # assertions stay in; warnings are off, this is not our code.
    gcc -O2 -g -w -mcx16 -fno-strict-aliasing -pthread -fPIC -shared \
        -DOMPI_PROC_ENDPOINT_TAG_PORTALS4=OMPI_PROC_ENDPOINT_TAG_UCX \
        -DOMPI_MTL_PORTALS4_FLOW_CONTROL=1 -DOPAL_BTL_PORTALS4_FLOW_CONTROL=1 \
        -DOPAL_PORTALS4_MAX_MD_SIZE=0 -DOPAL_PORTALS4_MAX_VA_SIZE=0 \
        -I"$include" -I"$mpi" -I"$mpi/openmpi" -I"$plugins/include" -I"$source" -I"$source/$1" \
        "$source/$1"/*.c -o "$out.new" \
        -L"$library" -lportals -L"$lib" -lmpi -lopen-rte -lopen-pal -Wl,-rpath,"$library" "$3"
    mv "$out.new" "$out"
}
# osc and coll ask the mtl for the addresses of peers; they find it when loaded.
build ompi/mca/mtl/portals4 mca_mtl_portals4 -Wl,--no-undefined
build opal/mca/btl/portals4 mca_btl_portals4 -Wl,--no-undefined
build ompi/mca/osc/portals4 mca_osc_portals4 -Wl,--allow-shlib-undefined
build ompi/mca/coll/portals4 mca_coll_portals4 -Wl,--allow-shlib-undefined
