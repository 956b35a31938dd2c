//! Queue management, and flows by a hash.

use crate::{fails, keys};

/// The weights are those that `tc -d qdisc show` prints as `ewma 4` and `ewma 2`; without a burst it is tc's own.
#[test]
fn red_averages_as_tc_has_it() {
    let of = |options: &str| {
        keys(&format!("tc qdisc add dev eth0 root red limit 200000 min 15000 max 45000 avpkt 1000 {options}"))
    };
    let all = of("burst 25 probability 0.3");
    let queue = all.iter().find(|key| key.starts_with("link.up.queue")).unwrap();
    for part in ["weight = 0.0625", "probability = 0.3", "by-length = false", "ecn = false"] {
        assert!(queue.contains(part), "{part}\n{queue}");
    }
    assert!(
        of("burst 16").iter().any(|key| key.contains("weight = 0.25") && key.contains("probability = 0.02"))
    );
    let flags = of("ecn nodrop harddrop");
    assert!(
        flags.iter().any(|key| key.contains("nodrop = true") && key.contains("harddrop = true")),
        "{flags:?}"
    );
    fails(
        "tc qdisc add dev eth0 root red limit 200000 min 15000 max 45000 avpkt 1000 nodrop",
        "`nodrop` without `ecn` lets every packet in",
        "tc qdisc",
        &[],
    );
    // As in the kernel: case `red-adaptive` of the oracle.
    assert_eq!(of("adaptive"), of(""));
    assert_eq!(of(""), of("burst 25"));
    fails(
        "tc qdisc add dev eth0 root red limit 200000 min 15000 max 45000 avpkt 1000 burst 14",
        "a burst of 14 packets is too short for `min`, which is 15000 bytes",
        "burst",
        &["it takes at least 15 packets of `avpkt`"],
    );
}

/// The kernel's PIE has more than the RFC's base; tc's gains are sixteenths, and its words in no order.
#[test]
fn pie_is_the_kernels() {
    let of = |words: &str| {
        let all = keys(&format!("tc qdisc add dev eth0 root {words}"));
        all.into_iter().find(|key| key.contains("pie")).unwrap()
    };
    let kernels =
        "mean-packet = \"1500 bytes\", derandomize = true, cap-drop = true, high-delay-boost = \"250ms\" }";
    assert_eq!(
        of("pie limit 500p target 20ms tupdate 30ms alpha 4 beta 32 ecn"),
        format!(
            "link.up.queue={{ type = \"pie\", bound = \"500 packets\", target = \"20ms\", update = \"30ms\", \
             alpha = 0.25, beta = 2, ecn = true, {kernels}"
        )
    );
    assert_eq!(
        of("fq_pie flows 64 quantum 1514 ecn_prob 20 memory_limit 32Mb target 5ms"),
        format!(
            "link.up.scheduler={{ type = \"fq_pie\", flows = 64, quantum = \"1514 bytes\", \
             max-ecn-threshold = \"20%\", target = \"5ms\", bound = \"10240 packets\", ecn = false, {kernels}"
        )
    );
    fails("tc qdisc add dev eth0 root pie alpha 0", "found `0`, expected a number", "0", &["1 to 32"]);
    for name in ["codel", "pie", "fq_codel", "fq_pie", "sfq", "dualpi2"] {
        let text = format!("tc qdisc add dev eth0 root {name} limit 0p\n");
        fails(&text, "found `0`, expected a limit", "0p", &["1 to"]);
    }
    assert!(of("pie bytemode dq_rate_estimator").contains("byte-mode = true, departure-rate = true"));
    assert!(
        of("fq_pie nobytemode no_dq_rate_estimator").contains("byte-mode = false, departure-rate = false")
    );
}

#[test]
fn a_full_sfq_drops_where_the_kernel_does() {
    let of = |words: &str| keys(&format!("tc qdisc add dev eth0 root sfq {words}")).remove(0);
    let key = |words: &str| format!("link.up.scheduler={{ type = \"sfq\", {words} }}");
    assert_eq!(of("limit 60 headdrop"), key("bound = \"60 packets\", drop = \"head\""));
    // A flow has 127 packets at most, whatever the limit.
    assert_eq!(
        of("limit 500 divisor 64"),
        key("bound = \"500 packets\", flows = 64, flow-limit = \"127 packets\"")
    );
    assert_eq!(of("limit 500 depth 300"), key("bound = \"500 packets\", flow-limit = \"127 packets\""));
    assert_eq!(of("depth 20"), key("flow-limit = \"20 packets\", bound = \"127 packets\""));
}

/// tc's thresholds: a quarter of the limit and a third of that; the weight is that of `ewma 4` for 8 + 1 packets above 8.
#[test]
fn red_in_the_flows_of_sfq() {
    let of = |words: &str| keys(&format!("tc qdisc add dev eth0 root sfq {words}")).remove(0);
    assert_eq!(
        of("limit 100 redflowlimit 96000 ecn"),
        "link.up.scheduler={ type = \"sfq\", bound = \"100 packets\", flow-queue = { type = \"red\", probability = 0.02, \
         ecn = true, min = \"8000 bytes\", max = \"24000 bytes\", typical-packet = \"1000 bytes\", \
         by-length = false, weight = 0.125, restart = true } }"
    );
    assert!(
        of("redflowlimit 96000 min 9000 max 30000 probability 0.1 harddrop").contains("probability = 0.1")
    );
    for (words, title, at) in [
        ("min 9000", "`sfq` without `redflowlimit`", "sfq"),
        ("redflowlimit 9000 headdrop", "both `headdrop` and `redflowlimit`", "headdrop"),
        ("redflowlimit 9000 max 9001", "`max`, 9001 bytes, is above `redflowlimit`, 9000 bytes", "max"),
    ] {
        fails(&format!("tc qdisc add dev eth0 root sfq {words}"), title, at, &[]);
    }
}

/// The thresholds that tc computes, and what CoDel takes in the kernel.
#[test]
fn thresholds_that_are_not_said_and_those_of_codel() {
    let of = |words: &str| keys(&format!("tc qdisc add dev eth0 root {words}")).remove(0);
    for (words, thresholds) in [
        ("limit 240000 avpkt 1000", "min = \"20000 bytes\", max = \"60000 bytes\""),
        ("limit 240000 min 10000 avpkt 1000", "min = \"10000 bytes\", max = \"30000 bytes\""),
        ("limit 240000 max 45000 avpkt 1000", "max = \"45000 bytes\", min = \"15000 bytes\""),
    ] {
        let red = of(&format!("red {words}"));
        let parts: Vec<&str> = thresholds.split(", ").collect();
        assert!(parts.iter().all(|part| red.contains(part)), "{red}");
    }
    // The kernel's `red_check_params`.
    let long = "red limit 8000000 avpkt 1000 min 2500000 max 7500000";
    let title = "`max` is too large for so long a burst, in the kernel, too";
    fails(&format!("tc qdisc add dev eth0 root {long}"), title, "max", &["a smaller `max`"]);
    assert!(of("red limit 80000 avpkt 1000 min 20000 max 60000 burst 900").contains("weight = 0.000030518"));
    fails("tc qdisc add dev eth0 root red limit 9000", "`red` without `avpkt`", "red", &["as in:"]);
    fails("tc qdisc add dev eth0 root red avpkt 1000", "`red` without `limit`", "red", &["as in:"]);
    assert!(of("codel target 20ms interval 20ms ce_threshold 1ms").contains("ce-threshold = \"1ms\""));
    assert!(
        of("fq_codel ce_threshold 500us ce_threshold_selector 1/0x3").contains("ce-match = \"0x01/0x03\"")
    );
    fails(
        "tc qdisc add dev eth0 root fq_codel ce_threshold_selector 1",
        "`1` has no mask",
        "1",
        &["0x1/0x3"],
    );
}

#[test]
fn cake_is_as_tc_has_it() {
    let all = |words: &str| keys(&format!("tc qdisc add dev eth0 root cake {words}\n"));
    let of = |words: &str| {
        assert_eq!(all(words).len(), 1);
        all(words).remove(0)
    };
    let key = |words: &str| format!("link.up.scheduler={{ type = \"cake\", {words} }}");
    assert_eq!(of(""), "link.up.scheduler=\"cake\"");
    assert_eq!(
        of("nonat nowash egress no-ack-filter split-gso via-ethernet"),
        key("wash = false, ingress = false, ack-filter = \"off\"")
    );
    assert_eq!(
        of("bandwidth 20mbit diffserv4 dual-srchost wash ingress rtt 50ms overhead 18 mpu 64 memlimit 8Mb"),
        key(
            "bandwidth = \"20mbit\", tins = \"diffserv4\", isolation = \"dual-srchost\", wash = true, ingress = true, \
             rtt = \"50ms\", overhead = 18, mpu = \"64 bytes\", bound = \"8388608 bytes\""
        )
    );
    // What link layers add is counted together, as in tc; a number and `conservative` count alone.
    for (words, expected) in [
        ("pppoe-ptm ether-vlan", "cells = \"ptm\", overhead = 34"),
        ("ether-vlan ether-vlan ethernet", "overhead = 46, mpu = \"84 bytes\""),
        ("docsis", "cells = \"none\", overhead = 18, mpu = \"64 bytes\""),
        ("bridged-llcsnap", "cells = \"atm\", overhead = 32"),
        ("pppoa-llc overhead -4", "cells = \"atm\", overhead = -4"),
        ("ethernet conservative", "overhead = 48, mpu = \"84 bytes\", cells = \"atm\""),
        ("ethernet raw", "overhead = \"raw\", mpu = \"84 bytes\", cells = \"none\""),
        ("rtt 0 mpu 0 satellite", "rtt = \"1s\""),
        ("ack-filter", "ack-filter = \"on\""),
        ("ack-filter no-ack-filter ack-filter-aggressive", "ack-filter = \"aggressive\""),
        ("autorate-ingress", "autorate = true"),
        ("bandwidth 1mbit unlimited diffserv", "bandwidth = \"unlimited\", tins = \"diffserv4\""),
    ] {
        assert_eq!(of(words), key(expected), "{words}");
    }
    for (words, title, at, says) in [
        ("fwmark 0x100000000", "`0x100000000` is not a mask of marks", "0x100000000", "fwmark 0xff"),
        ("overhead 257", "found `257`, expected a number", "257", "-64 to 256"),
        ("mpu 257", "found `257`, expected a number of bytes", "257", "0 to 256"),
        ("diffserv5", "`diffserv5` is not an option of `cake`", "diffserv5", "`diffserv"),
        ("flow 5", "`flow` is not an option of `cake`", "flow", "`flows`"),
    ] {
        fails(&format!("tc qdisc add dev eth0 root cake {words}\n"), title, at, &[says]);
    }
}

/// As `cake_classify` of the kernel: a class is a host and a flow, a priority of the discipline's own a tin.
#[test]
fn filters_of_cake_choose_tins_hosts_and_flows() {
    let of = |kind: &str, filters: &[&str]| {
        let mut script = format!("tc qdisc add dev eth0 root handle 1: {kind}\n");
        for (number, filter) in filters.iter().enumerate() {
            script += &format!("tc filter add dev eth0 parent 1: protocol ip prio {} {filter}\n", number + 1);
        }
        keys(&script).remove(0).replace("[ {", "[{").replace("} ]", "}]")
    };
    let assign = |list: &str| format!("link.up.scheduler={{ type = \"cake\", assign = [{list}] }}");
    let ssh = "u32 match ip dport 22 0xffff";
    let match_ssh = "match = { destination-port = 22, family = \"ipv4\" }";
    for (kind, filter, says) in [
        ("cake", "classid 0:5", "flow = 5"),
        ("cake", "flowid 3:0", "host = 3"),
        ("cake", "flowid 1:400", "host = 1, flow = 1024"),
        ("cake", "action skbedit priority 1:1", "tin = \"bulk\""),
        ("cake", "action skbedit priority 1:2", "tin = \"best-effort\""),
        ("cake", "action skbedit priority 1:3", "tin = \"voice\""),
        ("cake", "action drop", "drop = true"),
    ] {
        assert_eq!(
            of(kind, &[&format!("{ssh} {filter}")]),
            assign(&format!("{{ {match_ssh}, {says} }}")),
            "{filter}"
        );
    }
    // Numbers beyond the queues, and priorities of others or of no tin, say nothing.
    for filter in ["flowid 1025:1025", "action skbedit priority 2:1", "action skbedit priority 1:4"] {
        assert_eq!(of("cake", &[&format!("{ssh} {filter}")]), "link.up.scheduler=\"cake\"", "{filter}");
    }
    let four = of("cake diffserv4", &[&format!("{ssh} action skbedit priority 1:4")]);
    assert!(four.contains("tin = \"voice\"") && four.contains("diffserv4"), "{four}");
    // The first that matches decides; one without a class keeps packets from those behind.
    let all = of("cake", &[&format!("{ssh} action pass"), "matchall classid 0:7"]);
    assert_eq!(all, assign(&format!("{{ {match_ssh} }}, {{ match = {{ family = \"ipv4\" }}, flow = 7 }}")));
    fails(
        "tc qdisc add dev eth0 root handle 1: cake\n\
         tc filter add dev eth0 parent 1: matchall flowid 0:1 action skbedit priority 1:1\n",
        "a class and a priority in one filter of `cake`",
        "tc filter",
        &["leave one of them out"],
    );
    // Lines of iptables give priorities, too.
    let marked = "iptables -t mangle -A POSTROUTING -o eth0 -p udp -j CLASSIFY --set-class 1:3\n";
    let keys = keys(&format!("tc qdisc add dev eth0 root handle 1: cake\n{marked}"));
    assert!(keys[0].contains("tin = \"voice\"") && keys[0].contains("udp"), "{keys:?}");
    fails(
        &format!(
            "tc qdisc add dev eth0 root handle 1: cake\n{marked}tc filter add dev eth0 parent 1: matchall flowid 0:1\n"
        ),
        "filters of `cake`, and priorities or marks that choose its tins before them",
        "tc filter",
        &["skbedit priority"],
    );
    // Marks come first, under a mask and shifted down; those of no tin say nothing.
    let mark = |port: u16, mark: &str| {
        format!("iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport {port} -j MARK --set-mark {mark}\n")
    };
    let by_marks = |cake: &str, marks: &str| {
        super::keys(&format!("tc qdisc add dev eth0 root handle 1: {cake}\n{marks}"))
    };
    let all =
        by_marks("cake fwmark 0xf0", &(mark(22, "0x3f") + &mark(25, "0x1f") + &mark(80, "0xf0") + marked));
    let tcp = |port: u16| {
        format!("{{ match = {{ protocol = \"tcp\", destination-port = {port}, family = \"ipv4\" }}")
    };
    let [scheduler] = &all[..] else { panic!("{all:?}") };
    // Of several marks the last one counts, so its line comes first.
    let places =
        [format!("{}, tin = \"bulk\"", tcp(25)), format!("{}, tin = \"voice\"", tcp(22)), "udp".into()];
    let places = places.map(|part| scheduler.find(&part).unwrap_or_else(|| panic!("{part} in {scheduler}")));
    assert!(places.is_sorted() && !scheduler.contains("fwmark"), "{scheduler}");
    assert_eq!(scheduler.matches("tin =").count(), 3, "{scheduler}");
    for (cake, marks) in
        [("cake fwmark 0", mark(22, "3")), ("cake", mark(22, "3")), ("cake fwmark 0xff", mark(22, "9"))]
    {
        assert_eq!(by_marks(cake, &marks), ["link.up.scheduler=\"cake\""], "{cake} {marks}");
    }
    let eighth = by_marks("cake diffserv8 fwmark 255", &mark(22, "8"));
    assert!(eighth[0].contains("tin = \"tin-7\""), "{eighth:?}");
    // A filter of a discipline around it is not affected.
    let inside = super::keys(
        "tc qdisc add dev eth0 root handle 1: htb default 10\n\
         tc class add dev eth0 parent 1: classid 1:10 htb rate 5mbit\n\
         tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n\
         tc qdisc add dev eth0 parent 1:10 handle 10: cake\n\
         tc filter add dev eth0 parent 10: matchall flowid 1:20\n",
    );
    assert!(inside.iter().any(|key| key.contains("host = 1, flow = 32")), "{inside:?}");
}

#[test]
fn dualpi2_is_as_tc_has_it() {
    let of = |words: &str| {
        let all = keys(&format!("tc qdisc add dev eth0 root dualpi2 {words}\n"));
        assert_eq!(all.len(), 1);
        all[0].clone()
    };
    let key = |words: &str| format!("link.up.queue={{ type = \"dualpi2\", {words} }}");
    let usual = "bound = \"10000 packets\", step = \"1ms\", weights = { low = 90, classic = 10 }, step-min-backlog = \"0 packets\"";
    assert_eq!(of(""), key(usual));
    assert_eq!(
        of("l4s_ect drop_on_overload drop_dequeue split_gso memlimit 90000000"),
        key(&usual.replace("step-min", "any-ect = false, overflow = false, on-arrival = false, step-min"))
    );
    assert_eq!(
        of("any_ect overflow drop_enqueue step_thresh 5p classic_protection 0"),
        key(
            "bound = \"10000 packets\", step = \"5 packets\", weights = { low = 100, classic = 0 }, any-ect = true, \
             overflow = true, on-arrival = true, step-min-backlog = \"0 packets\""
        )
    );
    // Of the two limits the one that holds fewer packets of 1500 bytes; 0 packets are tc's default.
    assert!(of("limit 100 memlimit 90000").contains("bound = \"90000 bytes\""));
    assert!(of("limit 60 memlimit 90000").contains("bound = \"60 packets\""));
    assert!(of("step_thresh 0pkts").contains("step = \"1ms\""));
    assert!(of("step_thresh 0").contains("step = \"0s\""), "{}", of("step_thresh 0"));
    assert_eq!(
        of("limit 500p target 20ms tupdate 10ms alpha 0.16 beta 3.2 coupling_factor 3 step_thresh 800us \
            min_qlen_step 2 classic_protection 25%"),
        key("bound = \"500 packets\", coupling = 3, target = \"20ms\", update = \"10ms\", alpha = 0.15625, \
            beta = 3.19921875, step = \"800us\", step-min-arrival = \"2 packets\", weights = { low = 75, classic = 25 }, step-min-backlog = \"0 packets\"")
    );
    // tc says: target=16.7ms tupdate=16.7ms alpha=0.166660 beta=3.000000, of which 42 and 768 256ths are left.
    let by_round_trip = usual.replace(
        "step = ",
        "target = \"16.666ms\", update = \"16.666ms\", alpha = 0.1640625, beta = 3, step = ",
    );
    assert_eq!(of("max_rtt 100ms"), key(&by_round_trip));
    assert_eq!(of("target 1ms max_rtt 100ms typical_rtt 16666us"), key(&by_round_trip));
    for (words, title, at, says) in [
        ("classic_protection 101", "`101` is not a share of the link", "101\n", "from 0% to 100%"),
        ("tupdate 100us", "`tupdate` is 100us", "tupdate", "from 1ms"),
        ("alpha 0.005", "`0.005` is not a gain in hertz", "0.005", "from 0.01"),
        ("typical_rtt 2ms max_rtt 1ms", "`typical_rtt` is above `max_rtt`", "max_rtt", ""),
        (
            "max_rtt 2ms",
            "target 333us, tupdate 333us, alpha 8.32421875 and beta 150 follow",
            "max_rtt",
            "at least 1ms",
        ),
        ("coupling 2", "`coupling` is not an option of `dualpi2`", "coupling", ""),
    ] {
        fails(&format!("tc qdisc add dev eth0 root dualpi2 {words}\n"), title, at, &[says]);
    }
}

/// tc-fq(8). Defaults are the scheduler's own; bytes are those of frames.
#[test]
fn fq_is_the_kernels() {
    let all = |words: &str| keys(&format!("tc qdisc add dev eth0 root fq {words}"));
    assert_eq!(
        all(""),
        ["link.up.scheduler={ type = \"fq\", bound = \"10000 packets\" }", "link.up.overhead=\"frame\""]
    );
    let of = |words: &str| all(words).remove(0);
    assert_eq!(
        of(
            "limit 500p flow_limit 50 quantum 1514 initial_quantum 3028 maxrate 5mbit low_rate_threshold 1mbit \
            refill_delay 10ms orphan_mask 255 ce_threshold 5ms timer_slack 1us buckets 64 horizon 2s pacing"
        ),
        "link.up.scheduler={ type = \"fq\", bound = \"500 packets\", flow-limit = \"50 packets\", quantum = \"1514 bytes\", \
         initial-quantum = \"3028 bytes\", max-rate = \"5mbit\", low-rate-threshold = \"1mbit\", refill-delay = \"10ms\", \
         flows = 256, ce-threshold = \"5ms\" }"
    );
    assert!(!of("maxrate 5mbit nopacing").contains("max-rate"));
    let changed = keys(
        "tc qdisc add dev eth0 root fq maxrate 5mbit nopacing flow_limit 50\ntc qdisc change dev eth0 root fq pacing orphan_mask 0xff",
    );
    for part in ["max-rate = \"5mbit\"", "flow-limit = \"50 packets\"", "flows = 256"] {
        assert!(changed[0].contains(part), "{part}\n{changed:?}");
    }
    let bands = of("bands 3 priomap 2 2 2 2 2 2 0 0 1 1 1 1 1 1 1 1 weights 65536 65536 16384");
    assert!(bands.contains("priomap = [2, 2, 2, 2, 2, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1]"), "{bands}");
    assert!(bands.contains("weights = [65536, 65536, 16384]"), "{bands}");
    for (words, title, at) in [
        ("orphan_mask 1000", "`1000` is not a mask of flows", "1000"),
        ("weights 65536 16383 65536", "found `16383`, expected number 2 of 3", "16383"),
        ("priomap 0 1 3", "found `3`, expected number 3 of 16", "3"),
        ("maxrate 0", "a rate of zero passes nothing", "0"),
        ("flow_limits 3", "`flow_limits` is not an option of `fq`", "flow_limits"),
    ] {
        fails(&format!("tc qdisc add dev eth0 root fq {words}"), title, at, &[]);
    }
}

/// As `sfq_classify` and `fq_codel_classify` of the kernel: the class of a filter is the number of the queue.
#[test]
fn a_flow_filter_takes_the_place_of_a_disciplines_hash() {
    let script = |qdisc: &str, filter: &str| {
        format!(
            "tc qdisc add dev eth0 root handle 1: {qdisc}\ntc filter add dev eth0 parent 1: prio 1 handle 1 {filter}\n"
        )
    };
    for (hashed, by) in [
        ("keys src", "source"),
        ("key nfct-dst", "destination"),
        ("keys dst,src", "addresses"),
        ("keys src,dst,proto,proto-src,proto-dst perturb 30", "5-tuple"),
    ] {
        let of = |qdisc| keys(&script(qdisc, &format!("protocol all flow hash {hashed} divisor 256")));
        for (qdisc, all) in [("sfq", of("sfq")), ("fq_codel", of("fq_codel limit 500"))] {
            let expected = format!("by = \"{by}\", flows = 256");
            assert!(all[0].contains(&expected) && all[0].contains(qdisc), "{expected} in {all:?}");
        }
    }
    for (qdisc, filter, title, says) in [
        (
            "sfq",
            "protocol ip flow hash keys src divisor 256",
            "`flow` for packets of one protocol",
            "protocol all",
        ),
        ("sfq", "flow hash keys src", "`flow` of `sfq` without a `divisor`", "divisor 1024"),
        (
            "sfq divisor 64",
            "flow hash keys src divisor 128",
            "`flow` of `sfq` without a `divisor`",
            "divisor 64",
        ),
        ("sfq", "flow hash keys sk-uid divisor 64", "`flow` of `sfq` by other fields", "keys src, dst"),
        ("sfq", "flow map key dst divisor 64", "`flow` of `sfq` by other fields", "keys src, dst"),
        ("sfq", "flow keys dst divisor 64", "`flow` of `sfq` by other fields", "keys src, dst"),
        ("sfq", "flow hash keys who divisor 64", "`who` is not a key of `flow`", "proto-src"),
        ("sfq", "flow hash keys src divisor 64 flowid 1:1", "`flow` with a class of its own", "divisor 1024"),
        ("prio", "flow hash keys src divisor 3", "`flow` computes classes, which only", "by = \"source\""),
    ] {
        let read = narrows_scenario::tc::Script::parse(&script(qdisc, filter), "x.sh");
        let error = read.and_then(|script| script.assignments(false)).expect_err(filter).to_string();
        assert!(error.contains(title) && error.contains(says), "{qdisc}, {filter}: {error}");
    }
    // At a hook there are no classes: its packets pass, and meet no later filter.
    let hook = "tc qdisc add dev eth0 ingress\n\
                tc filter add dev eth0 parent ffff: prio 1 handle 1 protocol ip flow map key dst and 0xff\n\
                tc filter add dev eth0 parent ffff: prio 2 matchall action drop\n";
    let all = keys(hook).concat();
    assert!(all.contains("pass") && all.contains("drop"), "{all}");
}

/// tc's `choke_parse_opt`: thresholds of a quarter of the limit and a third of that, the burst of both; the weight is that of the
/// least `ewma` for which 139 packets above 83 fit.
#[test]
fn choke_is_as_tc_has_it() {
    let of = |words: &str| keys(&format!("tc qdisc add dev eth0 root choke {words}")).remove(0);
    let key = |words: &str| format!("link.up.queue={{ type = \"choke\", {words} }}");
    assert_eq!(
        of("limit 1000 bandwidth 10mbit"),
        key(
            "bound = \"1000 packets\", probability = 0.02, ecn = false, min = \"83 packets\", max = \"250 packets\", \
             typical-packet = \"1000 bytes\", weight = 0.015625"
        )
    );
    let all = of("limit 100 bandwidth 10mbit min 10 max 40 burst 20 avpkt 500 probability 0.1 ecn");
    for part in
        ["min = \"10 packets\"", "max = \"40 packets\"", "probability = 0.1", "ecn = true", "\"500 bytes\""]
    {
        assert!(all.contains(part), "{all}");
    }
    // Of weights with more digits, nine are left.
    assert!(of("limit 40 min 30 max 40 burst 5000 bandwidth 10mbit").contains("weight = 0.000001907"));
    // Zero is tc's word for the default.
    assert_eq!(of("limit 1000 bandwidth 10mbit min 0 max 0 burst 0"), of("limit 1000 bandwidth 10mbit"));
    for (words, title, at) in [
        ("limit 100", "`choke` without `bandwidth`", "choke"),
        ("bandwidth 1mbit", "`choke` without `limit`", "choke"),
        ("limit 0 bandwidth 1mbit", "`choke` without `limit`", "choke"),
        ("limit 131072 bandwidth 1mbit", "`limit`, 131072 packets, is above 131071", "limit"),
        ("limit 9 max 10 bandwidth 1mbit", "`max`, 10 packets, is above `limit`, 9", "max"),
        ("limit 90 min 30 max 30 bandwidth 1mbit", "`min`, 30 packets, is not below `max`, 30", "min"),
        ("limit 90 max 2 bandwidth 1mbit", "`max`, 2 packets, leaves no room for a lower threshold", "max"),
        (
            "limit 90 min 20 burst 10 bandwidth 1mbit",
            "a burst of 10 packets is too short for `min`, which is 20 packets",
            "burst",
        ),
        (
            "limit 100000 min 20000 max 60000 burst 100000 bandwidth 1mbit",
            "`max` is too large for so long a burst, in the kernel, too",
            "max",
        ),
        ("limit 90 harddrop", "`harddrop` is not an option of `choke`", "harddrop"),
    ] {
        fails(&format!("tc qdisc add dev eth0 root choke {words}"), title, at, &[]);
    }
}

/// tc's `sfb_parse_opt`: of `max` and `target`, one follows from the other.
#[test]
fn sfb_is_as_tc_has_it() {
    let of = |words: &str| keys(&format!("tc qdisc add dev eth0 root sfb {words}")).remove(0);
    let key = |words: &str| format!("link.up.queue={{ type = \"sfb\", {words} }}");
    assert_eq!(of(""), "link.up.queue={ type = \"sfb\", bound = \"1000 packets\" }");
    assert_eq!(
        of("limit 60 target 30"),
        key("bound = \"60 packets\", bin-target = \"30 packets\", bin-max = \"38 packets\"")
    );
    assert!(of("target 100").contains("bin-max = \"125 packets\""));
    assert!(of("max 100").contains("bin-target = \"80 packets\""));
    assert!(of("max 7 target 9").contains("bin-max = \"7 packets\", bin-target = \"9 packets\""));
    assert!(of("max 0 target 0").ends_with("sfb\", bound = \"1000 packets\" }"));
    assert_eq!(
        of("increment 0.1 decrement 0 penalty_rate 0 penalty_burst 7 rehash 0 db 100 limit 0"),
        key("increment = 0.1, decrement = \"0%\", penalty-rate = 0, penalty-burst = 7, rehash = \"never\", \
             warmup = \"100ms\", bound = \"1000 packets\"")
    );
    fails("tc qdisc add dev eth0 root sfb increment 2", "`2` is not a probability", "2", &["from 0 to 1"]);
}

/// The kernel's `hhf_change`: what is zero or not given keeps its default, and a change keeps what it does not name.
#[test]
fn hhf_is_as_the_kernel_has_it() {
    let of = |words: &str| keys(&format!("tc qdisc add dev eth0 root hhf {words}")).remove(0);
    let key = |words: &str| format!("link.up.scheduler={{ type = \"hhf\", {words} }}");
    assert_eq!(of(""), "link.up.scheduler={ type = \"hhf\", bound = \"1000 packets\" }");
    assert_eq!(
        of(
            "limit 60 quantum 3000 hh_limit 9 reset_timeout 100ms admit_bytes 5000 evict_timeout 0.5s non_hh_weight 4"
        ),
        key("bound = \"60 packets\", quantum = \"3000 bytes\", heavy-limit = 9, reset = \"100ms\", \
             admit = \"5000 bytes\", evict = \"500ms\", weight = 4")
    );
    assert_eq!(of("limit 0 quantum 0 hh_limit 0 admit_bytes 0 non_hh_weight 0"), of(""));
    assert!(of("quantum 100").contains("quantum = \"256 bytes\""));
    let changed =
        keys("tc qdisc add dev eth0 root hhf admit_bytes 9000\ntc qdisc change dev eth0 root hhf limit 50\n");
    assert_eq!(changed, [key("admit = \"9000 bytes\", bound = \"50 packets\"")]);
    fails(
        "tc qdisc add dev eth0 root hhf quantum 2000000",
        "a quantum of 2000000 bytes is above 1048576 bytes",
        "quantum",
        &[],
    );
}

/// `fifo_init`, `htb_init` and others take the queue length that the device has then.
#[test]
fn queues_without_a_limit_have_the_length_of_the_device() {
    let set = "ip link set dev eth0 txqueuelen 200\n";
    for (command, key) in [
        ("root pfifo", "link.up.queue=\"200 packets\""),
        ("root bfifo", "link.up.queue=\"302800 bytes\""),
        ("root pfifo limit 7", "link.up.queue=\"7 packets\""),
        ("root codel", "link.up.queue={ type = \"codel\", bound = \"1000 packets\", ecn = false }"),
    ] {
        let found = keys(&format!("{set}tc qdisc add dev eth0 {command}\n"));
        assert!(found.iter().any(|found| found == key), "{command}: {found:?}");
    }
    let class = "tc qdisc add dev eth0 root handle 1: htb default 1\ntc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n";
    assert!(keys(&format!("{set}{class}")).contains(&"link.up.queue=\"200 packets\"".to_owned()));
    // What is there keeps its length.
    assert!(keys(&format!("{class}{set}")).contains(&"link.up.queue=\"1000 packets\"".to_owned()));
    // What is made later has the length that the device has then, and is explained so.
    let later = |discipline: &str| {
        let text = format!(
            "{set}{class}ip link set dev eth0 qlen 100\ntc qdisc add dev eth0 parent 1:1 {discipline}\n"
        );
        let said = narrows_scenario::tc::Script::parse(&text, "x.sh").unwrap().explain().unwrap();
        let words: Vec<String> = said.into_iter().flat_map(|one| one.words).collect();
        (keys(&text).concat(), words.concat())
    };
    for (discipline, queue, words) in [
        ("pfifo", "100 packets", "100 packets may wait"),
        ("bfifo", "151400 bytes", "151400 bytes may wait"),
        ("pfifo limit 7", "7 packets", "7 packets may wait"),
    ] {
        let (found, said) = later(discipline);
        assert!(found.contains(&format!("queue = \"{queue}\"")), "{found}");
        assert!(found.contains("link.up.queue=\"200 packets\""), "{found}");
        assert!(said.contains(words), "{said}");
    }
    assert!(later("codel").0.contains("bound = \"1000 packets\""), "{}", later("codel").0);
    // An intermediate device has 32 of its own.
    let redirected = "tc qdisc add dev eth0 ingress\n\
        tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0\n";
    for (length, packets) in [("", 32), ("ifconfig ifb0 txqueuelen 500\n", 500)] {
        let found = keys(&format!("{length}{}{redirected}", class.replace("eth0", "ifb0")));
        assert!(found.contains(&format!("link.down.queue=\"{packets} packets\"")), "{found:?}");
    }
    super::fails(
        "ip link set eth0 txqueuelen 0\n",
        "found `0`, expected a queue length from 1 to 10000000 packets",
        "0\n",
        &[],
    );
}

/// `tc_htb_parse_class_opt` of iproute2: a burst that is not said is the `mtu` and what comes in a tick.
#[test]
fn a_class_of_htb_has_its_mtu_as_its_burst() {
    let of = |options: &str| {
        keys(&format!(
            "tc qdisc add dev eth0 root handle 1: htb\ntc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit {options}\n"
        ))
        .concat()
    };
    assert!(
        of("mtu 12000").contains("burst = \"12000 bytes\", cburst = \"12000 bytes\""),
        "{}",
        of("mtu 12000")
    );
    assert!(of("mtu 12000 burst 3k").contains("burst = \"3072 bytes\", cburst = \"12000 bytes\""));
    assert_eq!(of("mtu 1600"), of(""));
}
