#!/bin/sh
# Instructions a packet, by delay model, where order is kept and where it is not, as callgrind counts them: see
# `instructions.sh`. Arguments are the models to count, all of them if there are none.
set -eu
cd "$(dirname "$0")/.."
bench=$(cargo bench -p narrows-core --bench delays --no-run --message-format=json 2>/dev/null |
    sed -n 's/.*"name":"delays".*"executable":"\([^"]*\)".*/\1/p')

count() { # model, order, packets
    LC_ALL=C valgrind --tool=callgrind --callgrind-out-file=/dev/null "$bench" "$@" 2>&1 |
        sed -n 's/.*Collected : *//p'
}

n=20000
models="${*:-normal sampled-normal uniform log-normal exponential gamma weibull pareto pareto-normal mixture samples histogram
    per-packet-normal per-packet-gamma per-packet-samples in-time-normal in-time-normal-uneven in-time-gamma
    in-time-gamma-uneven in-time-log-normal in-time-samples}"
printf '%-24s%10s%10s\n' 'order' 'keep' 'allow'
for model in $models; do
    printf '%-24s' "$model"
    for order in keep allow; do
        once=$(count "$model" "$order" "$n")
        twice=$(count "$model" "$order" "$((2 * n))")
        printf '%10s' "$(((twice - once) / n))"
    done
    echo
done
