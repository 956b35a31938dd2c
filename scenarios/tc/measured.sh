#!/bin/sh
# A link whose rate was measured every two seconds, and a second without loss afterwards.
#
#   narrows run --tc scenarios/tc/measured.sh -- iperf3 -t 10 -c '$NARROWS_SERVER'
#
# It also works as it is, as root, with the device as its argument.
DEV=${1:-eth0}

tc qdisc add dev $DEV root handle 1: tbf rate 5mbit burst 5kb latency 100ms
tc qdisc add dev $DEV parent 1:1 handle 10: netem delay 20ms loss 1% limit 100
for rate in 4 1 3; do
  sleep 2
  tc qdisc change dev $DEV handle 1: root tbf rate ${rate}mbit burst 5kb latency 100ms
done
sleep 1
tc qdisc change dev $DEV handle 10: parent 1:1 netem delay 20ms loss 0% limit 100
sleep 1
tc qdisc del dev $DEV root
