#!/bin/sh
# Instructions a packet, in and out and the harness included, by algorithm and flows, as callgrind counts them: each runs
# with N and with 2N packets, and the difference over N leaves out the start. N is a whole number of times that all flows
# fill and drain. Needs valgrind. Unlike times, the figures do not depend on how busy the machine is.
set -eu
cd "$(dirname "$0")/.."
bench=$(cargo bench -p narrows-lab --bench instructions --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"instructions".*"executable":"\([^"]*\)".*/\1/p')

count() { # algorithm, flows, packets
    LC_ALL=C valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$@" 2>&1 |
        sed -n 's/.*Collected : *//p'
}

algorithms=${*:-none fifo prio pfifo_fast drr wf2q+ qfq gfq kps sfq fq_codel fq_pie}
printf '%-8s' flows
for algorithm in $algorithms; do printf '%11s' "$algorithm"; done
echo
for flows in 1 10 100 1000 10000 100000; do
    printf '%-8s' "$flows"
    n=$((20 * flows))
    while [ "$n" -lt 100000 ]; do n=$((10 * n)); done
    for algorithm in $algorithms; do
        once=$(count "$algorithm" "$flows" "$n")
        twice=$(count "$algorithm" "$flows" "$((2 * n))")
        printf '%11s' "$(((twice - once) / n))"
    done
    echo
done
