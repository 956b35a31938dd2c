//! What tc prints, read as the commands that make it.

use narrows_scenario::tc::Script;

use super::keys;

/// The keys of what is printed are those of the commands that tc printed it for.
#[track_caller]
fn same(printed: &str, typed: &str) {
    assert_eq!(keys(printed), keys(typed), "{printed}");
}

#[test]
fn disciplines_as_they_are_printed() {
    for (printed, typed) in [
        (
            "qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay 100ms  10ms 25% loss 5% 3% duplicate 1%",
            "netem limit 1000 delay 100ms 10ms 25% loss 5% 3% duplicate 1%",
        ),
        (
            "qdisc tbf 8011: root refcnt 2 rate 5Gbit burst 639375b lat 20.0ms ",
            "tbf rate 5gbit burst 639375b latency 20ms",
        ),
        (
            "qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64 ",
            "fq_codel limit 10240 flows 1024 quantum 1514 target 5ms interval 100ms ecn",
        ),
        (
            "qdisc sfq 8002: dev eth0 root refcnt 2 limit 127p quantum 1514b depth 127 divisor 1024 perturb 10sec",
            "sfq limit 127 quantum 1514 depth 127 divisor 1024 perturb 10",
        ),
        ("qdisc pfifo 8003: root refcnt 2 limit 50p", "pfifo limit 50"),
        (
            "qdisc codel 8004: root refcnt 2 limit 1000p target 5ms interval 100ms ecn ",
            "codel limit 1000 target 5ms interval 100ms ecn",
        ),
        (
            "qdisc cake 800c: dev eth0 root refcnt 2 bandwidth 10Mbit diffserv3 triple-isolate nonat nowash no-ack-filter split-gso rtt 10ms raw overhead 0 ",
            "cake bandwidth 10mbit diffserv3 triple-isolate nowash no-ack-filter rtt 10ms raw overhead 0",
        ),
    ] {
        same(printed, &format!("tc qdisc add dev eth0 root {typed}"));
    }
}

/// With what surrounds it where people show it: the command, statistics, another line order than that of commands.
#[test]
fn a_tree_as_it_is_printed() {
    same(
        "[root@gateway ~]# tc -s -d qdisc show dev eth0\n\
         qdisc htb 1: root refcnt 2 r2q 10 default 0x20 direct_packets_stat 0 ver 3.17 direct_qlen 1000\n\
         \x20Sent 12832 bytes 92 pkt (dropped 0, overlimits 0 requeues 0)\n\
         \x20backlog 0b 0p requeues 0\n\
         qdisc sfq 10: parent 1:10 limit 127p quantum 1514b depth 127 flows 128/1024 divisor 1024 perturb 10sec\n\
         [root@gateway ~]# tc -s -d class show dev eth0\n\
         class htb 1:10 parent 1:1 leaf 10: prio 1 quantum 12500 rate 1Mbit ceil 2Mbit burst 1600b/8 mpu 0b cburst 1600b/8 mpu 0b level 0\n\
         \x20Sent 432 bytes 8 pkts (dropped 0, overlimits 0)\n\
         \x20tokens: 5419 ctokens: 11620\n\
         class htb 1:1 root rate 2Mbit ceil 2Mbit burst 1600b cburst 1600b\n\
         class htb 1:20 parent 1:1 prio 2 rate 1Mbit ceil 2Mbit burst 1600b cburst 1600b\n\
         [root@gateway ~]# tc filter show dev eth0\n\
         filter parent 1: protocol ip pref 1 u32 chain 0\n\
         filter parent 1: protocol ip pref 1 u32 chain 0 fh 800: ht divisor 1\n\
         filter parent 1: protocol ip pref 1 u32 chain 0 fh 800::800 order 2048 key ht 800 bkt 0 flowid 1:10 not_in_hw\n\
         \x20 match 0a000001/ffffffff at 16\n",
        "tc qdisc add dev eth0 root handle 1: htb default 20 r2q 10\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 2mbit ceil 2mbit burst 1600 cburst 1600\n\
         tc class add dev eth0 parent 1:1 classid 1:20 htb prio 2 rate 1mbit ceil 2mbit burst 1600 cburst 1600\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb prio 1 quantum 12500 rate 1mbit ceil 2mbit burst 1600 cburst 1600\n\
         tc qdisc add dev eth0 parent 1:10 handle 10: sfq limit 127 quantum 1514 flows 128 divisor 1024 perturb 10\n\
         tc filter add dev eth0 parent 1: protocol ip pref 1 u32 match ip dst 10.0.0.1 flowid 1:10\n",
    );
    // Old versions do not say where a discipline is.
    same(
        "qdisc htb 1: r2q 10 default 20 direct_packets_stat 0\n\
         \x20qdisc sfq 10: quantum 1514b perturb 10sec \n\
         class htb 1:10 root leaf 10: prio 1 rate 9000Kbit ceil 9000Kbit burst 6Kb cburst 13117b \n",
        "tc qdisc add dev eth0 root handle 1: htb default 20\n\
         tc class add dev eth0 parent 1: classid 1:10 htb prio 1 rate 9mbit ceil 9mbit burst 6kb cburst 13117\n\
         tc qdisc add dev eth0 parent 1:10 handle 10: sfq quantum 1514 perturb 10\n",
    );
    // The classes alone.
    same(
        "class htb 1:10 root prio 0 rate 75000bit ceil 75000bit burst 1608b cburst 1608b\n",
        "tc qdisc add dev eth0 root handle 1: htb\n\
         tc class add dev eth0 parent 1: classid 1:10 htb rate 75000bit ceil 75000bit burst 1608b cburst 1608b\n",
    );
}

/// Commands beside it count, and what they have made is shown already.
#[test]
fn commands_with_what_they_print() {
    same(
        "# tc qdisc add dev eth0 root netem delay 100ms\n\
         # tc -s qdisc show dev eth0\n\
         qdisc netem 8001: root refcnt 2 limit 1000 delay 100ms\n\
         \x20Sent 0 bytes 0 pkt (dropped 0, overlimits 0 requeues 0)\n",
        "tc qdisc add dev eth0 root netem delay 100ms",
    );
}

/// Those of a batch, too.
#[test]
fn lines_of_a_batch_are_commands() {
    same(
        "qdisc add dev eth0 root netem delay 100ms\nqdisc netem 8001: dev eth0 root refcnt 2 limit 1000 loss 1%\n",
        "tc qdisc add dev eth0 root netem delay 100ms",
    );
}

#[test]
fn what_devices_have_anyway() {
    let error = Script::parse("qdisc noqueue 0: dev lo root refcnt 2 \n", "x").unwrap_err().to_string();
    assert!(error.contains("there is no command of tc"), "{error}");
}

#[test]
fn wrong_words_are_shown_where_they_stand() {
    let error = Script::parse("qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 delay soon\n", "x.txt");
    let error = error.unwrap_err().to_string();
    assert!(error.contains("`soon` is not a time") && error.contains("x.txt:1:59"), "{error}");
}

/// A command among what tc prints is one in its short form, too: what is printed is then the answer.
#[test]
fn short_commands_are_commands() {
    let printed = "qdisc netem 8003: dev eth0 root refcnt 2 limit 1000 delay 77ms\n";
    for command in
        ["$ tc qd a dev eth0 root netem delay 2ms", "tc -s qdisc repl dev eth0 root netem delay 2ms"]
    {
        assert_eq!(keys(&format!("{command}\n{printed}")), ["link.up.delay=\"2ms\""], "{command}");
    }
    let changes = format!("[root@a ~]# tc qdisc chang dev eth0 root netem delay 2ms\n{printed}");
    let error = Script::parse(&changes, "x.sh").unwrap().assignments(false).unwrap_err();
    assert!(error.to_string().contains("nothing to change there"), "{error}");
}
