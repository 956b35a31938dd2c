#!/bin/sh
# A link that loses everything for three seconds in each half minute, for ever.
#
#   narrows run --tc scenarios/tc/flapping.sh -- ping -c 60 '$NARROWS_SERVER'
#
# It also works as it is, as root, with the device as its argument.
DEV=${1:-eth0}

tc qdisc add dev $DEV root netem delay 20ms
while true; do
  sleep 27
  tc qdisc change dev $DEV root netem delay 20ms loss 100%
  sleep 3
  tc qdisc change dev $DEV root netem delay 20ms
done
