#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# dns.sh PINWHEEL HOST IMAGE: the DNS cache before Debian's dnsmasq. What it answers is compared
# with what the server itself answers at another address, for questions in the table, for others,
# and for what is no question; then while the server is stopped. As live.sh it needs privilege.
set -eu
pinwheel=$1 host=$2 image=$3
here=$(dirname "$0")
# shellcheck source=tests/raw/veth.sh
. "$here/veth.sh"
command -v dnsmasq > /dev/null || skip "there is no dnsmasq"
pair mtu 1500
ip -n "$tag-b" addr add 10.77.0.3/24 dev veth # of the server alone

dns()
{
    python3 "$here/dns.py" "$@"
}
others=
clean_dns()
{
    # shellcheck disable=SC2086  # several ids
    [ -z "$others" ] || kill -9 $others 2> /dev/null || true
    clean
}
trap clean_dns EXIT
dns config "$work/conf"
# not by b(): these are to be stopped and ended themselves, not a shell that waits for them
ip netns exec "$tag-b" python3 "$here/dns.py" upstream 127.0.0.9 &
others="$others $!"
ip netns exec "$tag-b" dnsmasq --keep-in-foreground --conf-file="$work/conf" --user=root --pid-file= \
    --log-facility="$work/server" &
server=$!
others="$others $server"

ip netns exec "$tag-b" "$host" -v veth 10.77.0.2 "$image" > "$work/counts" 2> "$work/log" &
running=$!
until_true grep -q "answers questions to 10.77.0.2" "$work/log"
a python3 "$here/dns.py" compare 10.77.0.2 10.77.0.3 "$work/log" "$work/answers" || fail "compare"
a python3 "$here/dns.py" hostile 10.77.0.2 10.77.0.3 || fail "hostile"
kill -STOP "$server"
a python3 "$here/dns.py" stopped 10.77.0.2 "$work/answers" "$server" || fail "stopped"
a python3 "$here/dns.py" expire 10.77.0.2 "$work/log" || fail "expire"

# emptied, it asks again
before=$(grep -c "learned host.test. type 1, 27 bytes" "$work/log")
kill -HUP "$running"
learned_again()
{
    a python3 -c 'import sys; sys.argv = ["dns.py", "config", "/dev/null"]
exec(open("'"$here"'/dns.py").read())
Asker("10.77.0.2").ask(query("host.test", A))'
    [ "$(grep -c "learned host.test. type 1, 27 bytes" "$work/log")" -gt "$before" ]
}
until_true learned_again

# a client that nobody here wrote
if command -v dnsperf > /dev/null; then
    printf 'host.test A\nalias.test A\ntext.test TXT\nturns.test A\n' > "$work/names"
    a dnsperf -s 10.77.0.2 -d "$work/names" -n 500 -t 30 -q 20 > "$work/perf" 2>&1 ||
        fail "$(cat "$work/perf")"
    has "$work/perf" "Queries completed:    2000 (100.00%)"
    has "$work/perf" "NOERROR 2000 (100.00%)"
else
    echo "left out: dnsperf, which is not there"
fi
end TERM
has "$work/counts" "failed 0"
grep -q "answered [1-9][0-9][0-9]*, passed on [1-9][0-9]" "$work/counts" || fail "counts"
cat "$work/counts"
