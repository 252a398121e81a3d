#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# The simulated NIC: run.sh CASE PINWHEEL FOLDER-OF-PROGRAMS FOLDER-OF-EXAMPLES [KIND-OF-HPUS].
# Times are computed by hand from the table of docs/sim-nic.md.
# shellcheck disable=SC2317  # each case is a function, called by the name that it was given
set -u
case=$1 pinwheel=$2 programs=$3 examples=$4 kind=${5:-native}
# shellcheck source=tests/simnic/kit.sh
. "$(dirname "$0")/kit.sh"

# Half of a round trip in ps: o 65 ns, DMA 250 ns (integrated: 50), two cables and a switch 116.8 ns,
# 20 ps a byte after the first, match 30 ns, and at the receiver the DMA again; a triggered put has no
# o, an answer from a handler no o and no DMA before it, but the handler's 10 ns.
times() {
    pingpong() {
        same "$*" "$1" "$(sim -n 2 --quiet "${@:2}" 2>&1)"
    }
    p=$programs/simnic_pingpong
    pingpong 711940 "$p" rdma 8
    pingpong 679440 "$p" triggered 8
    pingpong 434440 "$p" spin 8
    pingpong 711800 "$p" rdma 0
    pingpong 732260 "$p" rdma 1024
    pingpong 793700 "$p" rdma 4096
    # The second of two packets, whose DMA waits until that of the first has left the engine.
    pingpong 857598 "$p" rdma 8192
    pingpong 311940 --nic integrated "$p" rdma 8
    pingpong 279440 --nic integrated "$p" triggered 8
    pingpong 234440 --nic integrated "$p" spin 8
    pingpong 439440 --handler 20ns "$p" spin 8
    pingpong 695240 --cable-latency 25050ps "$p" rdma 8
    pingpong 671940 --hop-latency 10ns "$p" rdma 8
}

# Without costs of the NIC a program takes the time of its schedule in `pinwheel goal run`, in the
# same network; and on one switch that of the LogGOPS model, whose L is the way through it.
zero() {
    # goal SCHEDULE BYTES RANKS OPTION...: the finish in ps
    goal() {
        "$pinwheel" goal gen --ranks "$3" --size "$2" -o "$work/goal" "$1" > /dev/null &&
            "$pinwheel" goal run --parameters spin --json "${@:4}" "$work/goal" |
            sed -n 's/.*"max_ns": *\([0-9.]*\).*/\1/p' | awk '{printf "%.0f\n", $1 * 1000}'
    }
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    for one in "binomial binomialtreebcast" "dissemination dissemination" "ring allgather_ring"; do
        program=${one% *} schedule=${one#* }
        for size in "2 8" "5 8" "16 0" "16 8" "24 8" "13 4096" "8 4097" "6 65535"; do
            ranks=${size% *} bytes=${size#* }
            wanted=$(goal "$schedule" "$bytes" "$ranks" --network=fattree:radix=36)
            same "$program $size" "${wanted:-none}" \
                "$(sim -n "$ranks" --quiet --nic zero "$programs/simnic_collectives" "$program" "$bytes" |
                    sort -n | tail -1)"
        done
        wanted=$(goal "$schedule" 8 16)
        same "$program on a switch" "${wanted:-none}" \
            "$(sim -n 16 --quiet --nic zero --network fattree:radix=16,levels=1 --hop-latency 216.8ns \
                "$programs/simnic_collectives" "$program" 8 | sort -n | tail -1)"
    done
}

# Handlers and the DMA engine, in ps from the put on. A packet of 8 B is ready after 65 ns of the
# host, 250 of DMA, 116.8 of cables and switch, 7 bytes and 30 of match: 461.94 ns; then comes what
# the handler takes, at least 10 ns; the counter shows when the engine has told the host, 250 ns
# later, or with the last write. 8 B take the engine 124.8 ps, rounded 125, and 4,096 B 63,898.
hpus() {
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    task() {
        same "task $1" "$2" "$(sim -n 2 --quiet "${@:3}" "$programs/simnic_hpus" task "$1" 2>&1)"
    }
    task none 721940
    task none 731940 --handler 20ns
    task none 321940 --nic integrated
    # 10 ns, 0.125 until the engine has it, 250
    task write 722065
    # 10 ns, 0.125, twice 250, and 250 to tell
    task read 1222065
    task add 1222065
    task cas 1222065
    task read_wait 1222065
    task read_leave 1222065
    # looks after 0, 20, ..., 520 ns
    task read_test 1241940
    # 10 ns, two transfers one behind the other, 250
    task writes 849736
    # the write, the read behind it in the engine
    task write_read 1222190
    # after a look's time it goes on
    task yield 741940
    # Three puts of 81.92 ns at the port. The egress queue has room for them; or for one, then the
    # second waits until the first begins to leave, 20 ns; the third for the second, which begins at
    # 81.92, and sees that at 100.
    task puts 721940
    printf '%s\n' 'base = "discrete"' 'egress_queue = 1' > "$work/m.toml"
    task puts 821940 --nic "$work/m.toml"
}

# Each action of the table, discrete, in ns: a put of 8 B is ready at its target after o 65, L_dma
# 250, two cables and a switch 116.8, 7 bytes 0.14 and match 30, 461.94 in all; an answer goes back
# through 116.8, its bytes and 30.
actions() {
    action() {
        same "action $1" "$2" "$(sim -n 2 --quiet "${@:3}" "$programs/simnic_actions" "$1" 2>&1)"
    }
    action put 711940      # 461.94 + L_dma
    action vector 711940
    action oneself 711940
    action zero 711800     # a byte less than 8
    action send 315000     # o + L_dma: its only packet leaves
    action atomic 711940   # a put whose DMA transfer reads and writes
    # as those, without o
    action triggered 646940
    action triggered_atomic 646940
    action triggered_get 1043740
    action triggered_count 20000 # at once; PtlCTWait takes the look that finds it
    # 711.94 + 116.8 + 30, and L_dma for the ack
    action ack 1108740
    # the request 65 + 250 + 116.8 + 30, the reply L_dma 250 later; it is back after 116.94 + 30 + 250
    action got 711800
    action get 1108740
    # the same behind a request of 8 B; what was there before comes from host memory 250 later
    action fetch 1358880
    action swap 1358880
    action late 0          # the message has come before: at once
    action search 40000    # two looks whether it is coming
    action calls 20000     # the same
    action reopen 0
    action invoke 260000   # the handler 10, L_dma to tell the host
    action put 311940 --nic integrated
    action ack 508740 --nic integrated
    action get 508740 --nic integrated
}

# Messages of one sender at one entry, native handlers of 1 us on 4 HPUs: the first is ready at 461.94
# ns, the next 65 ns behind each other. One after the other the eighth ends 8 us after that; side by
# side it begins when the fourth has left its HPU, at 461.94 + 3 * 65 + 1000, and ends 1 us later. Then
# 250 ns until it is counted.
crowd() {
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    on() {
        sim -n 2 "$@" 2>&1
    }
    p=$programs/simnic_crowd
    same "one after the other" 8711940 "$(on --quiet --handler 1us "$p" rate 8)"
    same "side by side" 2906940 "$(on --quiet --handler 1us "$p" rate 8 unordered)"
    printf '%s\n' 'base = "discrete"' 'entry_messages = 8' 'handler = "1us"' > "$work/m.toml"
    same "side by side by the machine" 2906940 "$(on --quiet --nic "$work/m.toml" "$p" rate 8)"
    # Two at a time: the eighth is the fourth of its HPU.
    printf '%s\n' 'base = "discrete"' 'entry_messages = 2' 'handler = "1us"' > "$work/m.toml"
    same "two at a time" 4776940 "$(on --quiet --nic "$work/m.toml" "$p" rate 8)"
    # The first header handler reads from the host, 510.125 ns, then come its payload handler, 10 ns,
    # and 250 ns until its event: after that, at once, come those of the three others, in order.
    same "events in order" "1232065 1 2 3 4" "$(on --quiet "$p" order)"
    # Eight packets, 81.92 ns apart, on one HPU: the fourth finds two that wait, or no buffer.
    for key in "hpu_queue = 2" "buffers = 3"; do
        printf '%s\n' 'base = "discrete"' 'hpus = 1' 'handler = "1us"' "$key" > "$work/m.toml"
        for _ in 1 2 3; do
            on --nic "$work/m.toml" --stats=json "$p" flow 8 > "$work/out"
            same "$key" "ack 3 12288;completion 1 20480 1;event PT_DISABLED 3 0;event PUT 3 12288;" \
                "$(grep -E '^(ack|event|completion)' "$work/out" | sort | tr '\n' ';')"
            same "$key, counted" "5;20480;1;" "$(grep -E '"(lost_packets|lost_bytes|disabled)"' "$work/out" |
                head -3 | tr -dc '0-9\n' | tr '\n' ';')"
        done
        on --nic "$work/m.toml" --quiet "$p" flow 3 > "$work/out"
        same "$key, three packets" "ack 0 12288" "$(grep ack "$work/out")"
    done
}

# Device code on several HPUs: a lock waits, and additions without it are lost, alike in each run.
spins() {
    on() {
        PINWHEEL_HPU=rv32 "$pinwheel" sim --timeout 100 -n 2 --quiet --hpus "$1" \
            "$programs/simnic_hpus" "$2"
    }
    for hpus in 1 2 8; do
        read -r time count most spins < <(on "$hpus" lock)
        same "lock on $hpus: count, most" "8 1" "$count $most"
        same "lock on $hpus: waits" $((hpus > 1)) $((spins > 0))
        same "lock on $hpus, again" "$time $count $most $spins" "$(on "$hpus" lock)"
        read -r time count most spins < <(on "$hpus" lose)
        same "lose on $hpus: nothing lost" $((hpus == 1)) $((count == 8))
        same "lose on $hpus, again" "$time $count $most $spins" "$(on "$hpus" lose)"
    done
}

# The handler examples check their own results.
examples() {
    for ranks in 2 4; do
        for e in accumulate allreduce chain condread ftbcast graph hello_broadcast pspin \
                 rendezvous strided; do
            sim -n "$ranks" --quiet "$examples/$e" > /dev/null || { echo "$e on $ranks" >&2; status=1; }
        done
    done
    for e in pingpong textscan hello_handler kvstore; do
        sim -n 2 --quiet "$examples/$e" > /dev/null || { echo "$e" >&2; status=1; }
    done
    for ranks in 3 5; do
        [ ! -x "$examples/raid" ] || sim -n "$ranks" --quiet "$examples/raid" > /dev/null ||
            { echo "raid on $ranks" >&2; status=1; }
        sim -n "$ranks" --quiet "$examples/txlog" > /dev/null || { echo "txlog on $ranks" >&2; status=1; }
    done
    for e in accumulate allreduce strided kvstore; do # device code, if there is any
        PINWHEEL_HPU=$kind sim -n 2 --quiet "$examples/$e" > /dev/null || { echo "$e, $kind" >&2; status=1; }
    done
}

# What a job came to is the same whenever it is run, beside a busy process too, and with more in the
# environment.
again() {
    for e in raid chain; do
        [ -x "$examples/$e" ] || continue
        first=$(sim -n 4 --json "$examples/$e" 2>&1 | tail -2)
        ( exec timeout 60 sh -c 'while :; do :; done' ) &
        busy=$!
        for i in 1 2; do
            same "$e, run $i" "$first" "$(MORE=$(printf '%0100d' 0) sim -n 4 --json "$examples/$e" 2>&1 | tail -2)"
        done
        kill "$busy"
        wait "$busy" 2> /dev/null
    done
}

# Output, times, traces and statistics of programs with several threads and processes are the same in
# every run: of one rank at a time or two, beside a busy process, with more in the environment.
alike() {
    work=$(mktemp -d) || exit 1
    ( exec timeout 250 sh -c 'while :; do :; done' ) &
    busy=$!
    # alike_of RANKS PROGRAM [ARGUMENT]...
    alike_of() {
        for ((i = 0; i < ${RUNS:-4}; i++)); do
            more=$(printf '%0*d' $((i % 2 * 100)) 0)
            MORE=$more sim -j $((i / 2 % 2 + 1)) -n "$1" --json --stats="$work/stats.json" --trace "$work/trace.json" \
                "${@:2}" > "$work/said" 2>&1 || same "${*:2}, status" 0 "$?"
            sums=$(cd "$work" && cksum said stats.json trace.json)
            [ "$i" = 0 ] && first=$sums
            same "${*:2}, run $i" "$first" "$sums"
        done
    }
    for scene in puts mutex calls condition killed signal; do
        alike_of 1 "$programs/simnic_programs" "$scene"
    done
    alike_of 2 "$programs/simnic_programs" puts
    alike_of 5 "$programs/simnic_scale" alltoall 20000
    alike_of 2 "$programs/simnic_loops" two 5000
    alike_of 4 "$examples/accumulate"
    kill "$busy"
    wait "$busy" 2> /dev/null
    rm -r "$work"
}

# How many ranks run at once changes nothing of what the job came to.
jobs() {
    for e in accumulate allreduce chain condread ftbcast graph hello_broadcast kvstore pingpong pspin raid \
             rendezvous strided textscan txlog; do
        [ -x "$examples/$e" ] || continue
        ranks=4
        case $e in
        kvstore | pingpong | textscan) ranks=2 ;;
        txlog) ranks=3 ;;
        esac
        same "$e" "$(sim -j 1 -n "$ranks" --json "$examples/$e" | tail -2)" \
             "$(sim -j 2 -n "$ranks" --json "$examples/$e" | tail -2)"
    done
    for j in 1 2 33; do
        same "alltoall, -j $j" 14117380 "$(sim -j "$j" -n 33 --quiet "$programs/simnic_scale" alltoall 20000)"
    done
    # So many ranks that their map comes in groups.
    same "130 ranks" "$(sim -j 1 -n 130 --json "$programs/simnic_scale" broadcast 8 | tail -3)" \
         "$(sim -j 9 -n 130 --json "$programs/simnic_scale" broadcast 8 | tail -3)"
    # A rank that waits outside of Portals for one that has no place yet takes none itself.
    fifo=$(mktemp -u)
    mkfifo "$fifo"
    same "a pipe" "1 1" "$(sim -j 1 -n 2 --quiet "$programs/simnic_scenes" pipe "$fifo" | xargs)"
    rm -f "$fifo"
}

# A program that looks at nothing finds what comes at the same time, whether or not its looks are
# made one by one.
looks() {
    for ns in 0 1 19 20 21 500 1300 1301 100000 1234567; do
        one=$(sim -n 2 --quiet --no-skip "$programs/simnic_scenes" polls "$ns")
        [ "${one:-0}" -ge $((ns * 1000)) ] || same "polls $ns" "a time" "$one"
        same "polls $ns" "$one" "$(sim -n 2 --quiet "$programs/simnic_scenes" polls "$ns")"
    done
}

# Loops of every kind, as if each look was made: a put that is made after TIME shows 711.94 ns later,
# at the end of a look of 20 ns that can see it.
loops() {
    # loop NAME TIME WANTED SKIPS: with `yes` looks are skipped, with `no` they may not be
    loop() {
        command=(sim -n 2 --stats=json "$programs/simnic_loops" "$1" "$2")
        each=$("${command[@]:0:3}" --no-skip "${command[@]:3}" 2>&1)
        said=$("${command[@]}" 2>&1)
        same "$1 $2, each look made" "$3" "$(head -1 <<< "$each")"
        same "$1 $2" "$3" "$(head -1 <<< "$said")"
        same "$1 $2, statistics" "" "$(diff <(grep -v skipped <<< "$each") <(grep -v skipped <<< "$said"))"
        skipped=$(grep -c '"skipped_ps": [1-9]' <<< "$said")
        same "$1 $2, skips" "$4" "$([ "$skipped" = 0 ] && echo no || echo yes)"
        same "$1 $2, --no-skip skips" 0 "$(grep -c '"skipped_ps": [1-9]' <<< "$each")"
    }
    loop pure 100000 "100720000 0" yes
    loop local 100000 "100720000 5036" no
    loop global 100000 "100720000 5036" no
    loop heap 100000 "100720000 5036" no
    # 500 looks, o, and then looks from 10,065 ns on
    loop bounded 100000 "100725000 500" yes
    loop compute 100000 "100730000 0" no # 20 + 27 n
    loop touch 100000 "100773154 0" no   # 20 + (20 + 51.053) n
    loop now 100000 "100720000 30000000" yes
    loop clock 100000 "100720000 30020" yes
    # the second one has it at once, when the look at the first one has taken its time
    loop two 100000 "100720000 0" yes
    loop two 100020 "100740000 0" yes
    loop three 100000 "100720000 0" yes
    # a round of four looks
    loop four 100000 "100720000 0" yes
    loop four 100020 "100740000 0" yes
    loop four 100040 "100760000 0" yes
    loop memory 100000 "100720000 0" yes
    loop writes 100000 "100720000 5036" no
}

scenes() {
    s=$programs/simnic_scenes
    same gone "1 1" "$(sim -n 2 --quiet "$s" gone)"
    same "a fence, beside a thread that sleeps" "1 1" "$(sim -n 2 --quiet "$s" meets | paste -sd ' ')"
    same oneself 1 "$(sim -n 1 --quiet "$s" oneself)"
    same vector 1 "$(sim -n 3 --quiet "$s" vector)"
    same "outside of a simulation" 1 "$("$pinwheel" run -n 2 "$s" polls 1 | grep -c '^[0-9]*$')"
    # shellcheck disable=SC2016  # the rank's shell is to expand it
    sim -n 3 --quiet sh -c '[ $PMI_RANK != 1 ] || kill -9 $$; exec "$0" polls 5' "$s" > /dev/null 2>&1
    same "a rank is killed" 137 $?
}

programs() {
    p=$programs/simnic_programs
    scene() {
        for i in 1 2 3; do
            same "$1, run $i" "$2" "$(MORE=$(printf '%0*d' $((i * 33)) 0) sim --quiet "$p" "$1" 2>&1 | tr '\n' ';')"
        done
    }
    scene pipe "30;1030;"
    scene wait "1 40;"
    scene join "50;"
    scene condition "1 60;0 130;"
    scene mutex "000111222333 120;"
    scene puts "1 1;1 1;"
    scene killed "1 20;"
    scene signal "1 25;"
    scene polls "100 5000;1 0 3100;"
    scene calls "30;"
    same "many" "2 50" "$(sim --processes 2 --quiet "$p" many 2> /dev/null)"
    case $(sim --processes 2 --quiet "$p" many 2>&1) in
    *"give \`pinwheel sim\` a larger --processes"*) ;;
    *) same "many" "a line" "none" ;;
    esac
    folder=$(mktemp -d)
    mkfifo "$folder/fifo"
    # Lines come one by one after it has said so; it waits for some of them.
    # shellcheck disable=SC2016  # of the shell that is started
    sim sh -c 'exec "$0" outside < "$1"' "$p" "$folder/fifo" > "$folder/said" 2>&1 &
    exec 5> "$folder/fifo"
    until grep -q reads "$folder/said"; do sleep 0.05; done
    for i in {1..20}; do echo >&5; sleep 0.02; done
    exec 5>&-
    wait $!
    said=$(< "$folder/said")
    rm -r "$folder"
    case $said in
    *"irreproducible: rank 0 went on for a pipe from outside of the job"*) ;;
    *) same "outside" "irreproducible" "$said" ;;
    esac
    said=$(sim "$p" pipe 2>&1)
    case $said in
    *irreproducible*) same "pipe" "reproducible" "$said" ;;
    esac
    said=$(sim "$p" stuck 2>&1)
    same "stuck, status" 3 $?
    case $said in
    *"rank 0 waits outside of Portals since"*) ;;
    *) same "stuck" "who waits" "$said" ;;
    esac
    # What is executed stays in the simulation.
    # shellcheck disable=SC2016  # of the shell that is started
    same "executes" "5" "$(sim --quiet sh -c 'a=$(date +%s); sleep 5; b=$(date +%s); echo $((b - a))')"
}

# A rank that dies: whenever that is, the others hear all of the broadcast, and at the same times
# whenever it is run.
faults() {
    p=$programs/simnic_scale step=${STEP:-331} runs=${RUNS:-4}
    for rank in 1 2 3; do
        for ((ns = 234; ns < 2100; ns += step)); do
            said=$(sim -n 4 --quiet --fault "rank $rank dies at ${ns}ns" "$p" survive 9000 2>&1)
            same "rank $rank dies at $ns ns, status" 0 $?
            heard=$(grep -cv "^$rank " <<< "$said")
            same "rank $rank dies at $ns ns, others that hear" 3 "$heard"
        done
    done
    whole() { sim -n 4 --json --fault "$1" "$p" "${@:2}" 2>&1 | sort; }
    for fault in "rank 2 dies at 1us" "rank 1 dies at 700ns; rank 3 dies at 1300ns" "drop 0.05 seed 3"; do
        first=$(whole "$fault" survive 9000)
        for ((i = 1; i < runs; i++)); do
            same "$fault, run $i" "$first" "$(whole "$fault" survive 9000)"
        done
    done
    # Each packet that is lost comes later by its own 160 ps and twice the cable's 33.4 ns.
    said=$(sim -n 2 --json --fault "drop 0.1 seed 7" "$p" pingpong 100)
    lost=$(sed -n 's/.*"resent": \([0-9]*\).*/\1/p' <<< "$said")
    [ "${lost:-0}" -gt 5 ] || same "drop" "packets that are lost" "$lost"
    same "drop" $((142388000 + lost * (160 + 66800))) "$(head -1 <<< "$said")"
    [ "$(sim -n 2 --quiet --fault "drop 0.1 seed 8" "$p" pingpong 100)" != "$(head -1 <<< "$said")" ] ||
        same "another seed" "another time" "the same"
    # Messages begin at HPUs 0 to 3 at 695.54 ns, 233.6 of two barriers and 461.94, and 65 ns behind each
    # other, for 1 us; 250 ns later they are told. HPU 1 fails at 1 us: the second, in its order, has
    # failed; the fifth, at 955.54, goes to HPU 0 at 1695.54.
    crowd=$programs/simnic_crowd
    handlers() { sim -n 2 --quiet --handler 1us --fault "$1" "${@:2}" 2> /dev/null | tr '\n' ';'; }
    wanted="1 0 1945540;2 34 1945540;3 0 2075540;4 0 2140540;5 0 2945540;"
    for ((i = 0; i < runs; i++)); do
        same "an HPU that fails" "$wanted" "$(handlers "hpu 1 of rank 1 faults at 1us" "$crowd" hpus 5)"
    done
    # The only one: what runs there, what waits, whose ends take the DMA engine 16 ps each, and what
    # comes later has failed.
    same "the last HPU" "1 34 1250000;2 34 1250016;3 34 1250032;4 34 1250048;5 34 1250064;6 34 1270540;7 34 1335540;8 34 1400540;" \
        "$(handlers "hpu 0 of rank 1 faults at 1us" --hpus 1 "$crowd" hpus 8)"
    # The fourth of ten round trips of 1423.88 ns waits at its link to the switch until that is up.
    whole=$(sim -n 2 --quiet "$p" pingpong 10)
    for link in host0-leaf0 leaf0-host0 leaf0-host1; do
        late=$(sim -n 2 --quiet --fault "link $link down 5us..25us" "$p" pingpong 10)
        same "$link is down" "$late" "$(sim -n 2 --quiet --fault "link $link down 5us..9us; link $link down 8us..25us" "$p" pingpong 10)"
        # shellcheck disable=SC2015  # what comes behind may run then, too
        [ "$((late - whole))" -gt 18000000 ] && [ "$((late - whole))" -lt 20000000 ] ||
            same "$link is down" "18 to 20 us more than $whole" "$late"
    done
    same "a link that is down later" "$whole" "$(sim -n 2 --quiet --fault "link host0-leaf0 down 25us..26us" "$p" pingpong 10)"
    wrongs() {
        said=$("$pinwheel" sim -n 4 --fault "$1" true 2>&1)
        same "--fault \"$1\", status" 2 $?
        case $said in
        *"$2"*) ;;
        *) same "--fault \"$1\"" "$2" "$said" ;;
        esac
    }
    wrongs "rank 3 dies" 'something is missing at character 12: allowed is "at"'
    wrongs "rank 3 sleeps at 1us" '"sleeps" at character 8: allowed is "dies"'
    wrongs "rank 1 dies at 1us; rank 1 dies at 2us" '"1" at character 26: allowed is a rank that does'
    wrongs "drop 0.7" '"0.7" at character 6: allowed is a probability from 0 to 0.5'
    wrongs "rank 1 dies at soon" '"soon" at character 16: allowed is a time'
    wrongs "flood" '"flood" at character 1: allowed is "rank R dies at TIME", "hpu H of rank'
    wrongs "hpu 2 of rank 1 fails at 1us" '"fails" at character 17: allowed is "faults"'
    wrongs "hpu 4 of rank 1 faults at 1us" "HPU 4 of rank 1 is none of the job: allowed are HPUs 0 to 3 of"
    wrongs "link leaf0 down 1us..2us" '"leaf0" at character 6: allowed is a link, NODE-NODE'
    wrongs "link host0-leaf0 down 2us..1us" '"2us..1us" at character 23: allowed is from when until when'
    refuses '"leaf0-spine2" at character 6: is no link of the network; some of its links are host0-leaf0' 1 \
        "$pinwheel" sim -n 4 --fault "link leaf0-spine2 down 1us..2us" true
    wrongs "rank 4 dies at 1us" "rank 4 is none of the job: allowed is 0 to 3"
}

# Who waits for what never comes is told.
stuck() {
    said=$(sim -n 2 --quiet "$programs/simnic_scenes" forgets 2>&1)
    same "forgets, status" 3 $?
    case $said in
    *"rank 0 waits for an event or a counter since"*": counter 0x"*", which has counted 0 of 1"*"rank 1 is in a barrier since"*) ;;
    *) same "forgets" "who waits" "$said" ;;
    esac
    said=$(sim -n 2 --quiet "$programs/simnic_scenes" mistaken 2>&1)
    same "mistaken, status" 3 $?
    case $said in
    *"counted 0 of 2; a message of rank 1 that nothing has matched is at portal table index 4, match bits 0x77"*) ;;
    *) same "mistaken" "what came" "$said" ;;
    esac
    said=$(sim -n 2 --quiet "$programs/simnic_scenes" forgets polls 2>&1)
    same "forgets polls, status" 3 $?
    case $said in
    *"rank 0 polls since"*) ;;
    *) same "forgets polls" "who polls" "$said" ;;
    esac
}

# refuses LINE STATUS COMMAND...
refuses() {
    said=$("${@:3}" 2>&1)
    same "$1, status" "$2" $?
    case $said in
    *"$1"*) ;;
    *) same "$1" "$1" "$said" ;;
    esac
}

# Machines of files: the same as by name, and what is wrong in them.
machines() {
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    # machine LINE...: writes the file
    machine() {
        printf '%s\n' "$@" > "$work/m.toml"
    }
    pingpong() {
        same "$1" "$2" "$(sim -n 2 --quiet --nic "$work/m.toml" "$programs/simnic_pingpong" rdma 8 2>&1)"
    }
    wrong() {
        machine "${@:2}"
        refuses "$1" 2 "$pinwheel" sim --nic "$work/m.toml" true
    }
    all=('o = "65ns"' 'o_receive = 0' 'g = 6.7' "G = '20ps/B'" 'model = "packets"' 'match = "30ns"'
         'cam = "2ns"' 'dma_latency = "0.25us" # PCIe' 'dma_byte = "15.6ps"' 'look = "20ns"'
         'host_latency = 51' 'host_byte = "6.667ps"' 'handler = "10ns"'
         'hpu_queue = 64' 'buffers = 64' 'egress_queue = 64' 'entry_messages = 1' 'hpus = 4' 'clock = "2.5GHz"' 'timing = "arm"')
    machine '# all of it' '' "${all[@]}"
    pingpong "a file with all keys" 711940
    machine 'base = "discrete"' 'dma_latency = 50'
    pingpong "a file with a base" 311940
    machine 'base = "discrete"' 'G = "400Gbit/s"' $'o = 1_065\r'
    pingpong "a rate, underscores" 1711940
    for i in "${!all[@]}"; do
        key=${all[$i]%% *}
        wrong "m.toml: $key is missing: add a line such as $key = " "${all[@]:0:$i}" "${all[@]:$((i + 1))}"
        wrong "m.toml:2: $key = nonsense: must be" 'base = "zero"' "$key = \"nonsense\""
        wrong "m.toml:3: $key = " 'base = "zero"' "${all[$i]}" "${all[$i]}"
    done
    wrong 'm.toml:2: HPUs = 4: unknown key; keys are base, o, o_receive, g' 'base = "zero"' 'HPUs = 4'
    wrong 'm.toml:2: hpus = 0: must be a number of 1 to 64' 'base = "zero"' 'hpus = 0'
    wrong 'm.toml:2: hpus = 65: must be' 'base = "zero"' 'hpus = 65'
    wrong 'm.toml:2: look = 0.999: must be a time of 1000 ps' 'base = "zero"' 'look = 0.999'
    wrong 'm.toml:2: G = 0: must be the time of a byte, more than 0' 'base = "zero"' 'G = 0'
    wrong 'm.toml:2: o = 2s: must be' 'base = "zero"' 'o = "2s"'
    wrong 'm.toml:2: clock = 0GHz: must be a clock' 'base = "zero"' 'clock = "0GHz"'
    wrong 'm.toml:2: clock = 2.5: must be a clock' 'base = "zero"' 'clock = 2.5'
    wrong 'm.toml:2: base = "zero": must be the first' 'o = 1' 'base = "zero"'
    wrong 'm.toml:1: base = "toy": must be the first' 'base = "toy"'
    wrong 'm.toml:1: tables are not read' '[nic]'
    wrong "m.toml:1: '=' is missing" 'o 65'
    wrong 'm.toml:1: the value is missing' 'o ='
    wrong 'm.toml:1: the string has no closing' 'o = "65'
    wrong 'm.toml:1: something stands behind' 'o = 65 ns'
    wrong 'm.toml:1: escapes are not read' 'o = "6\5"'
    wrong 'm.toml:1: a value is a number' 'o = [1]'
    wrong 'm.toml:1: an underscore' 'o = 1__0'
    wrong 'm.toml:1: a line is KEY = VALUE' '= 65'
    refuses "$work/none.toml: cannot be read" 2 "$pinwheel" sim --nic "$work/none.toml" true
    refuses "--nic toy: must be discrete, integrated, zero or pspin" 2 "$pinwheel" sim --nic toy true
}

# Where things are written to, and read from, before a rank starts.
outputs() {
    work=$(mktemp -d) || exit 1
    trap 'rm -rf "$work"' EXIT
    # not LINE OPTION...: the job does not start
    not() {
        refuses "$1" 1 "$pinwheel" sim --quiet "${@:2}" touch "$work/ran"
        [ ! -e "$work/ran" ] || same "$1" "no run" "a run"
        rm -f "$work/ran"
    }
    not "--timeline $work/no/t.svg: No such file" --timeline "$work/no/t.svg"
    not "--trace $work: Is a directory" --trace "$work"
    not "--stats $work/no/s.json: No such file" --stats="$work/no/s.json"
    not "--svg $work/no/s.svg: No such file" --sweep hpus=1,2 --svg "$work/no/s.svg"
    mkdir "$work/t.csv"
    not "--timeline $work/t.csv: Is a directory" --timeline "$work/t.svg"
    for options in --json --stats=json "--sweep hpus=1,2" "--json --sweep hpus=1,2"; do
        # shellcheck disable=SC2086  # they are words
        said=$("$pinwheel" sim $options true 2>&1 > /dev/full)
        same "$options > /dev/full, status" 1 $?
        case $said in
        *"standard output cannot be written: No space left"*) ;;
        *) same "$options > /dev/full" "a line" "$said" ;;
        esac
    done
    mkfifo "$work/m.toml"
    refuses "m.toml: cannot be read: it is no regular file" 2 "$pinwheel" sim --nic "$work/m.toml" true
    refuses "cannot start another one" 1 "$pinwheel" sim --quiet "$pinwheel" sim true
    refuses "abc values: must be a number from 2" 2 "$pinwheel" sim --sweep hpus=1:16:abc true
    refuses "1 values: must be a number from 2" 2 "$pinwheel" sim --sweep hpus=1:16:1 true
    refuses "two values of one parameter" 2 "$pinwheel" sim --hpus 2 --sweep hpus=1:4 true
    # shellcheck disable=SC2016  # the rank's shell is to expand it
    refuses "rank 0 is stopped since" 3 "$pinwheel" sim --quiet sh -c 'kill -STOP $$'
}

refused() {
    refuses "no PROGRAM given" 2 "$pinwheel" sim -n 2
    refuses "--cable-latency 0" 2 "$pinwheel" sim --cable-latency 0 true
    refuses "--network" 2 "$pinwheel" sim --network nonsense true
    refuses "-n 5000" 2 "$pinwheel" sim -n 5000 true
    refuses "for programs that \`pinwheel sim\` has started" 1 env PINWHEEL_FABRIC=sim \
        "$programs/simnic_scenes" oneself
    refuses "cannot join the simulated job" 1 "$pinwheel" run --env PINWHEEL_FABRIC=sim \
        --env PINWHEEL_SIM=/nowhere "$programs/simnic_scenes" oneself
    # Memory of the job of an older version: the same name, another number.
    old=$(mktemp)
    { printf '\0pwsim03'; head -c 4096 /dev/zero; } > "$old"
    refuses "shares memory of version 03, and this program's library is of version" 1 "$pinwheel" run \
        --env PINWHEEL_FABRIC=sim --env "PINWHEEL_SIM=$old" "$programs/simnic_scenes" oneself
    rm -f "$old"
    # What schedules may not ask of the model of NICs.
    goal=$(mktemp)
    printf 'num_ranks 2\nrank 0 {\nappend 8b allowed -1 tag 1 %s\n}\nrank 1 {\n%s 0 tag 1\n}\n' \
        "ph 10ns write" "get 8b from" > "$goal"
    refuses "an atomic operation finds an entry with handlers" 1 "$pinwheel" goal run --nic discrete "$goal"
    printf 'num_ranks 2\nrank 0 {\nappend 8b allowed -1 tag 1 %s\n}\nrank 1 {\n%s 0 tag 1\n}\n' \
        "use_once ph 10ns write" "put 8b to" > "$goal"
    refuses "\"use_once\" has handlers" 1 "$pinwheel" goal run --nic discrete "$goal"
    rm -f "$goal"
    refuses "is longer than a packet of the simulated network" 1 env PINWHEEL_PACKET_SIZE=8192 \
        "$pinwheel" sim --quiet "$programs/simnic_scenes" oneself
}

$case
exit $status
