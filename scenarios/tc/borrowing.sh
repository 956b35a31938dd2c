# A. G. Moe, "Implementing Rate Control in NetEm", 2013, figures 2.7 to 2.9: A has 10 Mbit/s, B and C borrow from A, D and E from B.
tc qdisc add dev eth0 root handle 1: htb default 3
tc class add dev eth0 parent 1:  classid 1:1 htb rate 10mbit ceil 10mbit        # A
tc class add dev eth0 parent 1:1 classid 1:2 htb rate 6mbit ceil 10mbit         # B
tc class add dev eth0 parent 1:1 classid 1:3 htb rate 4mbit ceil 10mbit         # C
tc class add dev eth0 parent 1:2 classid 1:4 htb rate 2mbit ceil 10mbit         # D
tc class add dev eth0 parent 1:2 classid 1:5 htb rate 4mbit ceil 10mbit         # E
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:4
tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid 1:5
