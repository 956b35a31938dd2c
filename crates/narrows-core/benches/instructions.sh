#!/bin/sh
# Instructions a packet, by case and packets in flight, as callgrind counts them: each case runs with N and with 2N
# packets, and the difference over N leaves out the start. Needs valgrind. Unlike times, the figures do not depend on
# how busy the machine is. IN_FLIGHT=1000 counts with so many packets in flight only.
set -eu
cd "$(dirname "$0")/.."
bench=$(cargo bench -p narrows-core --bench instructions --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"instructions".*"executable":"\([^"]*\)".*/\1/p')

count() { # case, in flight, packets
    LC_ALL=C valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$@" 2>&1 |
        sed -n 's/.*Collected : *//p'
}

n=20000
cases='heap-random heap-growing constant jitter normal gilbert-elliott slots netem fed trace opportunities unlimited 100000-links'
printf '%-14s' 'in flight'
for case in $cases; do printf '%16s' "$case"; done
echo
for flying in ${IN_FLIGHT:-10 1000 100000}; do
    printf '%-14s' "$flying"
    for case in $cases; do
        once=$(count "$case" "$flying" "$n")
        twice=$(count "$case" "$flying" "$((2 * n))")
        printf '%16s' "$(((twice - once) / n))"
    done
    echo
done
