#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# freestanding.sh LIBRARY: what the handler library needs from outside is what handlers and
# their host side may call: Portals and sPIN, and products of complex numbers from the
# compiler's own library. In particular no libc, which handlers on another HPU do not have.
set -eu
library=$1
nm -o "$library" | awk '
    $(NF - 1) == "U" { needed[$NF] = $1 }
    $(NF - 1) ~ /^[TDRB]$/ { defined[$NF] = 1 }
    END {
        for (name in needed) {
            if (!(name in defined) && name !~ /^Ptl/ && name !~ /^__mul[sdx]c3$/ &&
                name !~ /^__(start|stop)_pinwheel_handlers$/ && name != "_GLOBAL_OFFSET_TABLE_") {
                print "freestanding.sh: " needed[name] " " name " is not for handlers"
                bad = 1
            }
        }
        if (!("PtlHandlerFAdd" in needed)) {
            print "freestanding.sh: no handlers found in the library"
            bad = 1
        }
        exit bad
    }'
