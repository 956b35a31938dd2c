#!/bin/sh
# Classes by firewall marks, and hosts by a hash table of u32: 8 Mbit/s, of which calls and a few hosts have their shares.
# narrows run --tc scenarios/tc/marks.sh -- CMD
DEV=${1:-eth0}
RATE=8

tc qdisc add dev $DEV root handle 1: htb default 40
tc class add dev $DEV parent 1: classid 1:1 htb rate ${RATE}mbit
for class in 10 20 30 40; do
  tc class add dev $DEV parent 1:1 classid 1:$class htb rate $((RATE * 1000 / 4))kbit ceil ${RATE}mbit prio $((class / 10))
done

# Calls and short answers first.
iptables -t mangle -A POSTROUTING -o $DEV -p udp -m multiport --dports 5060:5061,10000:20000 -j MARK --set-mark 1
iptables -t mangle -A POSTROUTING -o $DEV -p tcp --tcp-flags SYN,RST,ACK ACK -m length --length :64 -j MARK --set-mark 1
tc filter add dev $DEV parent 1: protocol ip prio 1 handle 1 fw flowid 1:10

# Hosts by their last octet.
tc filter add dev $DEV parent 1: protocol ip prio 2 handle 2: u32 divisor 256
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 ht 2:7: match ip dst 10.0.0.7 flowid 1:20
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 ht 2:9: match ip dst 10.0.0.9 flowid 1:30
tc filter add dev $DEV parent 1: protocol ip prio 2 u32 match ip dst 10.0.0.0/24 hashkey mask 0x000000ff at 16 link 2:
