#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2016 # the inner shell expands it
# In place of ssh, for launchers under test: enter.sh [-OPTION]... HOST COMMAND... runs the
# command line in the network namespace of HOST, 10.77.0.H or hH (net.sh), under a host name
# of its own, where no name server is asked for names. A host that there is not fails as ssh does.
while case ${1-} in -*) ;; *) false ;; esac; do
    shift
done
number=${1#10.77.0.}
number=${number#h}
shift
if [ ! -e "/run/netns/$PINWHEEL_TEST_TAG-$number" ]; then
    echo "enter.sh: there is no host $number" >&2
    exit 255
fi
exec ip netns exec "$PINWHEEL_TEST_TAG-$number" unshare --uts \
    sh -c 'hostname "h$0"; mount --bind /dev/null /etc/resolv.conf; exec sh -c "$1"' "$number" "$*"
