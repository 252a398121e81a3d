#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2016 # the ranks expand it
# `pinwheel run --hosts` on hosts made of network namespaces, two to four with two processes
# each: run.sh PINWHEEL HELLO_PUT JOB_CLIENT END_CLIENT; see README.md.
pinwheel=$1
hello=$2
job_client=$3
# shellcheck source=tests/udp/net.sh
. "$(dirname "$0")/net.sh"
net_make 4
export PINWHEEL_SSH="$here/enter.sh"
export PINWHEEL_IFACES=eth0

# run OPTION...: `pinwheel run` with these, its status in $status, what it says in two files.
run()
{
    status=0
    timeout 60 "$pinwheel" run "$@" >"$scratch/out" 2>"$scratch/err" || status=$?
}

# expect STATUS WHAT: of the run before
expect()
{
    [ "$status" = "$1" ] || fail "$2: status $status, not $1: $(cat "$scratch/err")"
}

# says FILE TEXT WHAT
says()
{
    grep -qF -e "$2" "$scratch/$1" || fail "$3: \"$2\" is not in: $(cat "$scratch/$1")"
}

# The job is whole: ranks in order of the list, all calls of libpinwheel, puts in a ring.
run --hosts h1:2,h2:2 sh -c 'echo $PMI_RANK $(hostname) $(pwd)'
expect 0 "where ranks are"
[ "$(sort "$scratch/out")" = "$(for r in 0 1 2 3; do echo "$r h$((r / 2 + 1)) $(pwd)"; done)" ] ||
    fail "ranks are elsewhere: $(cat "$scratch/out")"
run --hosts h1:2,h2:2 "$job_client" 4
expect 0 "libpinwheel on two hosts"
for n in 2 3 4; do
    run --hosts "$(seq -f h%g:2 -s, "$n")" "$hello"
    expect 0 "hello_put on $n hosts"
    [ "$(wc -l <"$scratch/out")" = $((2 * n)) ] || fail "hello_put on $n hosts: $(cat "$scratch/out")"
done

# Messages between hosts went over the network, and bore proofs; nothing had to be opened.
echo "h1:2 # two
h2 slots=2" >"$scratch/hosts"
run --hostfile "$scratch/hosts" --label -n 3 "$hello"
expect 0 "a file of hosts"
says out '[2] rank 2 received "hello from rank 1 of 3"' "labels"
PINWHEEL_FABRIC=shm run --hosts h1,h2 timeout -s KILL 1 "$hello"
expect 137 "without UDP nobody is reached"

# Input, output, environment.
seq 200000 >"$scratch/numbers"
run --hosts h2,h1 --env COLOUR=green sh -c '[ $PMI_RANK = 1 ] && echo $COLOUR || md5sum' \
    <"$scratch/numbers"
expect 0 "input for rank 0"
says out "$(md5sum <"$scratch/numbers")" "input for rank 0"
says out green "--env"
run --hosts h1:2,h2:2 sh -c 'seq -f "$PMI_RANK %g" 20000; echo "$PMI_RANK done" >&2'
expect 0 "much output"
[ "$(sort "$scratch/out" | uniq | wc -l)" = 80000 ] || fail "lines of output are lost or mixed"
[ "$(sort "$scratch/err" | tr '\n' ' ')" = "0 done 1 done 2 done 3 done " ] || fail "standard error"

# How ranks end is how the job ends, and nothing stays.
run --hosts h1:2,h2:2 sh -c '[ $PMI_RANK = 3 ] && exit 9; exec sleep 1001'
expect 9 "an exit status"
says err 'pinwheel run: rank 3 exited with status 9' "an exit status"
run --hosts h1:2,h2:2 sh -c '[ $PMI_RANK = 2 ] && kill -SEGV $$; exec sleep 1001'
expect 139 "a signal"
says err 'rank 2 was ended by signal 11' "a signal"
run --hosts h1:2,h2:2 sh -c '[ $PMI_RANK = 1 ] || trap "" TERM; [ $PMI_RANK = 1 ] && sleep .3 &&
    exit 5; while :; do sleep 1001; done'
expect 5 "a rank that ignores SIGTERM"
run --hosts h1:2,h2:2 sh -c 'sleep 1001 & exit 0'
expect 0 "processes left behind"
says err "has left processes behind" "processes left behind"
run --hosts h1:2,h2:2 --timeout 1 sleep 1001
expect 124 "--timeout"
run --hosts h1:2,h2:2 "$4" abort 7
expect 7 "an abort"
lives 'sleep 1001' && fail "processes of jobs that have ended live on"

# Signals to the launcher, of which it ends or which it passes on.
for signal in USR1 TERM INT; do
    env --default-signal=INT "$pinwheel" run --timeout 60 --hosts h1:2,h2:2 \
        sh -c 'trap "echo got it; exit 3" USR1; echo up; while :; do sleep 0.05; done' \
        >"$scratch/out" 2>"$scratch/err" &
    for _ in $(seq 200); do
        [ "$(grep -c up "$scratch/out")" = 4 ] && break
        sleep 0.05
    done
    kill -s "$signal" $!
    status=0
    wait $! || status=$?
    case $signal in
    USR1) expect 3 "SIGUSR1"; says out "got it" "SIGUSR1" ;;
    TERM) expect 143 "SIGTERM" ;;
    INT) expect 130 "SIGINT" ;;
    esac
done

# One side dies: the other one ends. First the launcher, then what connects it to a host.
for victim in launcher agent; do
    "$pinwheel" run --timeout 150 --hosts h1:2,h2:2 sh -c 'echo up; exec sleep 1002' \
        >"$scratch/out" 2>"$scratch/err" &
    for _ in $(seq 1200); do
        [ "$(grep -c up "$scratch/out")" = 4 ] && break
        sleep 0.05
    done
    if [ "$victim" = launcher ]; then
        kill -KILL $!
    else
        for pid in $(ip netns pids "$tag-2"); do
            tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q -e "run --agent" && kill -KILL "$pid" && break
        done
    fi
    status=0
    wait $! || status=$?
    [ "$victim" = launcher ] && expect 137 "the launcher was killed"
    [ "$victim" = agent ] && expect 1 "a connection was lost" &&
        says err "host h2: the connection was lost" "a connection was lost"
    lives 'sleep 1002' && fail "processes live on after the $victim was killed"
done

# What cannot be done, with its remedy.
run --hosts h1,h9 true
expect 1 "a host that is not there"
says err "host h9: cannot be reached" "a host that is not there"
says err "--ssh" "a host that is not there"
run --hosts h1,h2 --remote /no/such/pinwheel true
expect 1 "no pinwheel there"
says err "there is no /no/such/pinwheel" "no pinwheel there"
run --hosts h1,h2 /no/such/program
expect 127 "no such program"
run --hosts h1,h2 --ssh "$scratch/none" true
expect 1 "no such shell"
run --hosts h1:2,h2:2 -n 5 true
expect 2 "too many ranks"
says err "room for 4" "too many ranks"
for bad in "" "a,,b" "a:0" "a:x" "a,a" "-oProxyCommand=x" "a:1:2" "a:5000"; do
    run --hosts "$bad" true
    expect 2 "--hosts $bad"
done
echo "h1 slots 2" >"$scratch/hosts"
run --hostfile "$scratch/hosts" true
expect 2 "a bad file of hosts"
says err "line 1" "a bad file of hosts"
PINWHEEL_IFACES=lo run --hosts h1,h2 "$hello"
expect 1 "loopback addresses"
says err "PINWHEEL_IFACES" "loopback addresses"

finish "pinwheel run on $hosts hosts"
