# A tree as in figures 3.3 and 3.4 of Lamminen, 2007, which give no rates, with cbq: 10 Mbit/s in two parts.
tc qdisc add dev eth0 root handle 1: cbq bandwidth 10mbit avpkt 1000 cell 8
tc class add dev eth0 parent 1:  classid 1:1  cbq bandwidth 10mbit rate 10mbit allot 1514 prio 8 avpkt 1000 bounded isolated
tc class add dev eth0 parent 1:1 classid 1:10 cbq bandwidth 10mbit rate 7mbit allot 1514 weight 700kbit prio 5 avpkt 1000 maxburst 20
tc class add dev eth0 parent 1:1 classid 1:20 cbq bandwidth 10mbit rate 3mbit allot 1514 weight 300kbit prio 5 avpkt 1000 maxburst 20 bounded
tc qdisc add dev eth0 parent 1:10 handle 100: red limit 60kb min 15kb max 45kb avpkt 1000 burst 20 probability 0.02
tc qdisc add dev eth0 parent 1:20 handle 200: pfifo_head_drop limit 40
tc filter add dev eth0 parent 1: protocol ip prio 100 u32 match ip dport 80 0xffff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 100 u32 match ip sport 80 0xffff flowid 1:10
tc filter add dev eth0 parent 1: protocol ip prio 200 u32 match u32 0 0 flowid 1:20
