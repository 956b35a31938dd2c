#!/bin/sh
# A router at home: the line to the provider, a cable, and a radio that loses some packets. Three devices are three links of a
# router: narrows run --tc scenarios/tc/router.sh -- sh
WAN=eth0 LAN=eth1 RADIO=wlan0

# What leaves for the provider: interactive packets (DSCP EF) first, and no more than the line carries.
tc qdisc add dev $WAN root handle 1: htb default 20
tc class add dev $WAN parent 1: classid 1:1 htb rate 10mbit
tc class add dev $WAN parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 0
tc class add dev $WAN parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit prio 1
tc qdisc add dev $WAN parent 1:20 fq_codel
tc filter add dev $WAN parent 1: protocol ip u32 match ip dsfield 0xb8 0xfc classid 1:10

# What comes from there: above 50 Mbit/s it is dropped.
tc qdisc add dev $WAN ingress
tc filter add dev $WAN ingress matchall action police rate 50mbit burst 64k drop

tc qdisc add dev $LAN root tbf rate 1gbit burst 128k latency 20ms
tc qdisc add dev $RADIO root netem delay 3ms 1ms loss 0.5% rate 60mbit
