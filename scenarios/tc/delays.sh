# Lamminen, 2007, figure 4.10: three classes of hybrid proportional delay, selected by code point.
tc qdisc add dev eth3 root handle 8001: hpd dscp 46 class 1 dscp 18 class 2 dscp 10 class 3
tc class add dev eth3 parent 8001: classid 8001:1 hpd num 1 ewma ewma limit 0 qlen 50 ddp 1 gamma 512 weight 512 restart 25 cycle 2000 properr 8
tc class add dev eth3 parent 8001: classid 8001:2 hpd num 2 ewma ewma limit 0 qlen 50 ddp 4 gamma 256 weight 768 restart 25 cycle 2000 properr 8
tc class add dev eth3 parent 8001: classid 8001:3 hpd num 3 default ewma ewma limit 0 qlen 50 ddp 16 gamma 768 weight 256 restart 25 cycle 2000 properr 8
