# An access line: up 1 Mbit/s with voice first and a far branch office, down policed to 8 Mbit/s.
tc qdisc add dev client root handle 1: htb default 30 r2q 5
tc class add dev client parent 1: classid 1:1 htb rate 1mbit ceil 1mbit burst 6k
tc class add dev client parent 1:1 classid 1:10 htb rate 200kbit ceil 1mbit prio 0
tc class add dev client parent 1:1 classid 1:20 htb rate 300kbit ceil 1mbit prio 1
tc class add dev client parent 1:1 classid 1:30 htb rate 500kbit ceil 1mbit prio 2
tc qdisc add dev client parent 1:20 handle 20: netem delay 80ms 5ms loss 0.1%
tc qdisc add dev client parent 1:30 handle 30: fq_codel limit 1000 target 15ms
tc filter add dev client parent 1: protocol ip prio 1 u32 match ip tos 0xb8 0xfc flowid 1:10
tc filter add dev client parent 1: protocol ip prio 1 u32 match ip dst 10.9.0.0/16 flowid 1:20
tc qdisc add dev client handle ffff: ingress
tc filter add dev client parent ffff: protocol ip prio 50 u32 match ip src 0.0.0.0/0 \
    police rate 8mbit burst 20k drop flowid :1
