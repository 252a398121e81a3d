#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# Runs MPICH's test suite in the folder that prepare.sh filled.
#
#   mpich.sh FOLDER PYTHON [OPTION OF mpich_suite.py]...
#
# FOLDER/outcomes.tsv gets the outcome of every test, FOLDER/outputs what the
# failing ones printed; with --resume both are added to.
#
# Exit: that of mpich_suite.py; 77 prepare.sh found no source.
set -eu
[ $# -ge 2 ] || { echo "usage: mpich.sh FOLDER PYTHON [OPTION]..." >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd) folder=$1 python=$2
shift 2
[ ! -e "$folder/no-source" ] || { cat "$folder/no-source" >&2; exit 77; }
case " $* " in *" --resume "*) ;; *) rm -rf "$folder/outputs" ;; esac
exec "$python" "$here/mpich_suite.py" "$folder/source/mpich" "$folder/mpich" "$folder/plugins" \
    --table "$folder/outcomes.tsv" --outputs "$folder/outputs" "$@"
