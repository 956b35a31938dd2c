#!/bin/sh
# Three bands: the first is limited to half a Mbit/s, the last is shared among flows.
sudo tc qdisc del dev eth0 root 2>/dev/null
sudo tc qdisc add dev eth0 root handle 1: prio
sudo tc qdisc add dev eth0 parent 1:1 handle 10: tbf rate 500kbit burst 3kb latency 50ms
sudo tc qdisc add dev eth0 parent 1:2 handle 20: pfifo limit 50
sudo tc qdisc add dev eth0 parent 1:3 handle 30: sfq
sudo tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 22 0xffff flowid 1:3
sudo tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:1
