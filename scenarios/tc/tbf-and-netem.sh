# A. G. Moe, "Implementing Rate Control in NetEm", 2013, section 3.2: TBF sets the rate in front of NetEm's delay, as was usual before NetEm had `rate`.
tc qdisc add dev eth0 root handle 1:0 tbf rate 1mbit \
    burst 1540 limit 15400
tc qdisc add dev eth0 parent 1:1 handle 10: netem delay 100ms
