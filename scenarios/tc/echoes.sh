#!/bin/sh
# Echo requests of IPv4 go through a class of their own, with 100 ms, at each device of a host but the loopback device.
#
#   narrows run --tc scenarios/tc/echoes.sh -- ping -c 5 '$NARROWS_SERVER'
#
# It also works as it is, as root.
for dev in $(ls /sys/class/net); do
  [ "$dev" = lo ] && continue
  tc qdisc add dev "$dev" root handle 1: htb default 20
  tc class add dev "$dev" parent 1: classid 1:10 htb rate 1mbit
  tc class add dev "$dev" parent 1: classid 1:20 htb rate 10mbit
  tc qdisc add dev "$dev" parent 1:10 netem delay 100ms
  tc filter add dev "$dev" parent 1: protocol ip prio 1 flower ip_proto icmp type 8 classid 1:10
done
