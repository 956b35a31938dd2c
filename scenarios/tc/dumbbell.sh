#!/bin/sh
# Two senders and two receivers, and a slow line between their routers, of network namespaces. The scenario has these hosts, routers and
# links, with the script's addresses:
#
#   narrows run --tc scenarios/tc/dumbbell.sh --on rcv1 'iperf3 -s' -- iperf3 -t 5 -c '$NARROWS_HOST_RCV1'
#
# It also works as it is, as root, and leaves the namespaces: `ip netns exec snd1 iperf3 -c 10.2.1.2`.
for router in left right; do
  ip netns add $router
  ip netns exec $router sysctl -qw net.ipv4.ip_forward=1
done
ip link add line netns left type veth peer name line netns right
ip -n left addr add 10.9.0.1/30 dev line
ip -n right addr add 10.9.0.2/30 dev line
ip -n left link set line up
ip -n right link set line up
ip -n left route add 10.2.0.0/16 via 10.9.0.2
ip -n right route add 10.1.0.0/16 via 10.9.0.1

# A host NAME at a router, in the network NET.
host() {
  name=$1 router=$2 net=$3
  ip netns add $name
  ip link add $name netns $name type veth peer name to-$name netns $router
  ip -n $name addr add $net.2/24 dev $name
  ip -n $router addr add $net.1/24 dev to-$name
  ip -n $name link set $name up
  ip -n $router link set to-$name up
  ip -n $name route add default via $net.1
}
for i in 1 2; do
  host snd$i left 10.1.$i
  host rcv$i right 10.2.$i
  # The second pair is farther apart.
  tc -n rcv$i qdisc add dev rcv$i root netem delay $((10 * i))ms
done

# The line: 10 Mbit/s there, with a fair queue for what the first sender sends, and a FIFO for all else.
tc -n left qdisc add dev line root handle 1: htb default 20
tc -n left class add dev line parent 1: classid 1:1 htb rate 10mbit
tc -n left class add dev line parent 1:1 classid 1:10 htb rate 5mbit ceil 10mbit
tc -n left class add dev line parent 1:1 classid 1:20 htb rate 5mbit ceil 10mbit
tc -n left qdisc add dev line parent 1:10 fq_codel
tc -n left qdisc add dev line parent 1:20 pfifo limit 50
tc -n left filter add dev line parent 1: protocol ip u32 match ip src 10.1.1.0/24 classid 1:10
