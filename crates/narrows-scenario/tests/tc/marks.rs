//! Marks and classes by iptables, and the filters that see them.

use narrows_scenario::tc::Script;

use super::{fails, keys};

const TREE: &str = "tc qdisc add dev eth0 root handle 1: htb default 30\n\
    tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
    tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n\
    tc class add dev eth0 parent 1: classid 1:30 htb rate 1mbit\n";
const FILTERS: &str = "tc filter add dev eth0 parent 1: protocol ip prio 1 handle 10 fw flowid 1:10\n\
    tc filter add dev eth0 parent 1: protocol ip prio 1 handle 0x14 fw flowid 1:20\n";

fn scheduler(more: &str) -> String {
    keys(&format!("{TREE}{more}")).remove(2)
}

/// The filters, as pairs of condition and class.
fn filters(more: &str) -> Vec<(String, String)> {
    let all = scheduler(more);
    let part = |text: &str, from: &str, to: &str| {
        let start = text.find(from).unwrap_or_else(|| panic!("{from}\n{text}")) + from.len();
        text[start..start + text[start..].find(to).unwrap()].to_owned()
    };
    match all.split_once("filters = [ ") {
        Some((_, rest)) => {
            let list = rest.split(" ], default").next().unwrap();
            list.split("}, {")
                .map(|one| (part(one, "match = ", " }"), part(one, "class = \"", "\"")))
                .collect()
        }
        None => all
            .split("{ name")
            .filter(|class| class.contains("match = "))
            .map(|class| (part(class, "match = ", " }"), part(class, " = \"", "\"")))
            .collect(),
    }
}

#[test]
fn marks_of_iptables_lead_to_classes() {
    let found = filters(&format!(
        "iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 22 -j MARK --set-mark 10\n\
         iptables -t mangle -A POSTROUTING -o eth0 -p udp -m multiport --sports 5000:5010,53 -j MARK --set-mark 20\n{FILTERS}"
    ));
    assert_eq!(
        found,
        [
            (
                "{ protocol = \"udp\", source-port = [\"5000-5010\", 53], family = \"ipv4\"".into(),
                "1:20".into()
            ),
            ("{ protocol = \"tcp\", destination-port = 22, family = \"ipv4\"".to_owned(), "1:10".to_owned()),
        ]
    );
    // The last mark counts, but for packets that return from the chain.
    let later = "-t mangle -A POSTROUTING -s 10.0.0.0/8 -j MARK --set-mark 20\n";
    let found = filters(&format!(
        "iptables -t mangle -A POSTROUTING -p tcp -j MARK --set-mark 10\n\
         iptables -t mangle -A POSTROUTING -p tcp -j RETURN\n\
         iptables {later}{FILTERS}"
    ));
    let order: Vec<&str> = found.iter().map(|(_, class)| class.as_str()).collect();
    assert_eq!(order, ["1:10", "1:20"], "{found:?}");
    let found = filters(&format!(
        "iptables -t mangle -A POSTROUTING -p tcp -j MARK --set-mark 10\niptables {later}{FILTERS}"
    ));
    let order: Vec<&str> = found.iter().map(|(_, class)| class.as_str()).collect();
    assert_eq!(order, ["1:20", "1:10"], "{found:?}");
}

/// As in the ADSL bandwidth management HOWTO: a chain of one's own.
#[test]
fn chains_are_called() {
    let found = filters(&format!(
        "iptables -t mangle -N SHAPER\n\
         iptables -t mangle -I POSTROUTING -o eth0 -j SHAPER\n\
         iptables -t mangle -A SHAPER -p icmp -j MARK --set-mark 20\n\
         iptables -t mangle -A SHAPER -p icmp -j RETURN\n\
         iptables -t mangle -A SHAPER -d 10.0.0.0/8 -j MARK --set-mark 10\n{FILTERS}"
    ));
    let conditions: Vec<&str> = found.iter().map(|(condition, _)| condition.as_str()).collect();
    assert_eq!(conditions, ["{ protocol = \"icmp\", family = \"ipv4\"", "{ destination = \"10.0.0.0/8\""]);
    // Another device, and rules that are gone.
    for other in [
        "iptables -t mangle -A POSTROUTING -o eth1 -j MARK --set-mark 10\n",
        "iptables -t mangle -A POSTROUTING -j MARK --set-mark 10\niptables -t mangle -F POSTROUTING\niptables -t mangle -vnL INPUT\n",
        "iptables -t mangle -A POSTROUTING -j MARK --set-mark 10\niptables -t mangle -D POSTROUTING -j MARK --set-mark 10\n",
        "iptables -t mangle -A POSTROUTING -j MARK --set-mark 10\niptables -t mangle -D POSTROUTING 1\n",
    ] {
        let text = format!("{TREE}{other}{FILTERS}");
        assert!(!scheduler(&format!("{other}{FILTERS}")).contains("match"), "{other}");
        let devices = Script::parse(&text, "x.sh").unwrap().devices(false).unwrap();
        let said = devices[0]
            .egress
            .notes
            .iter()
            .filter(|note| note.contains("No line of the script gives the mark"));
        assert_eq!(said.count(), 2, "{other}");
    }
}

#[test]
fn a_mark_that_no_filter_matches_leaves_packets_to_the_others() {
    let found = filters(
        "iptables -t mangle -A POSTROUTING -p tcp -j MARK --set-mark 7\n\
         iptables -t mangle -A POSTROUTING -p udp -j MARK --set-mark 0x2a/0xff\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 handle 0xa/0x0f fw flowid 1:10\n\
         tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dport 80 0xffff flowid 1:20\n",
    );
    let classes: Vec<&str> = found.iter().map(|(_, class)| class.as_str()).collect();
    assert_eq!(classes, ["1:10", "1:20", "1:30", "1:20"], "{found:?}");
    assert!(found[0].0.contains("udp") && found[1].0.contains("\"tcp\", destination-port = 80"), "{found:?}");
}

#[test]
fn classes_by_iptables_go_before_filters() {
    let found = filters(
        "iptables -t mangle -A POSTROUTING -p tcp ! --dport 1:1023 -j CLASSIFY --set-class 1:10\n\
         tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip protocol 6 0xff flowid 1:20\n",
    );
    let classes: Vec<&str> = found.iter().map(|(_, class)| class.as_str()).collect();
    assert_eq!(classes, ["1:10", "1:20"], "{found:?}");
    assert!(found[0].0.contains("destination-port = [0, \"1024-65535\"]"), "{found:?}");
}

#[test]
fn ports_have_names() {
    let of = |port: &str| {
        filters(&format!(
            "iptables -t mangle -A POSTROUTING -p tcp --dport {port} -j CLASSIFY --set-class 1:10\n"
        ))
    };
    assert_eq!(of("https"), of("443"));
    assert_eq!(of("ssh:domain"), of("22:53"));
}

#[test]
fn filters_have_marks_above_zero() {
    for mark in ["0", "0x0", "0/0xff"] {
        fails(
            &format!("{TREE}tc filter add dev eth0 parent 1: handle {mark} fw flowid 1:10\n"),
            "the mark 0 for a filter `fw`, which the kernel refuses",
            &format!("{mark} fw"),
            &["default class"],
        );
    }
}

#[test]
fn what_iptables_says_that_packets_do_not_carry() {
    for (line, title, at, says) in [
        (
            "-t mangle -A POSTROUTING -m state --state NEW -j MARK --set-mark 1",
            "the state `NEW` of connections",
            "NEW",
            "connections are not tracked",
        ),
        (
            "-t mangle -A PREROUTING -j CONNMARK --restore-mark --nfmask 0xf --ctmask 0xff",
            "two masks, of the packet's mark and of the connection's",
            "--ctmask",
            "one mask for both",
        ),
        (
            "-t mangle -A PREROUTING -j CONNMARK --rotate-mark",
            "unsupported `--rotate-mark` of `CONNMARK`",
            "--rotate-mark",
            "--save-mark",
        ),
        (
            "-t mangle -A FORWARD -p tcp --syn -j TCPMSS --set-mss 1300",
            "`TCPMSS` changes packets",
            "TCPMSS",
            "DSCP, TOS, TTL and HL",
        ),
        (
            "-t mangle -A PREROUTING -j TPROXY --on-port 80",
            "`TPROXY` of iptables has no counterpart here",
            "TPROXY",
            "understood: MARK",
        ),
        (
            "-A INPUT -p tcp -j REJECT",
            "`REJECT` of iptables, which answers that packets are not wanted",
            "REJECT",
            "`DROP` drops them",
        ),
        (
            "-t mangle -A POSTROUTING -p tcp --dport nobody -j MARK --set-mark 1",
            "`nobody` is not a number, and no range of numbers",
            "nobody",
            "names of well-known services",
        ),
    ] {
        fails(&format!("{TREE}iptables {line}\n"), title, at, &[says]);
    }
}

#[test]
fn rules_look_packets_up_in_sets() {
    let sets = "ipset create slow hash:net family inet -exist\n\
        ipset add slow 10.1.0.0/16\n\
        ipset -A slow 10.2.0.0-10.2.0.2\n\
        ipset add slow 10.9.9.9 comment x\n\
        ipset del slow 10.9.9.9\n\
        ipset -N games hash:ip,port\n\
        ipset add games 10.3.0.1,udp:5000-5010 timeout 0\n\
        ipset add games 10.3.0.2,443\n";
    let rule = |condition: &str, mark: u32| {
        format!("iptables -t mangle -A POSTROUTING -o eth0 -m set {condition} -j MARK --set-mark {mark}\n")
    };
    let slow = "{ source = [\"10.1.0.0/16\", \"10.2.0.0/31\", \"10.2.0.2\"]";
    assert_eq!(
        filters(&format!("{sets}{}{FILTERS}", rule("--match-set slow src", 10))),
        [(slow.to_owned(), "1:10".to_owned())]
    );
    assert_eq!(
        filters(&format!("{sets}{}{FILTERS}", rule("--match-set games dst,dst", 20))),
        [
            (
                "{ protocol = \"tcp\", destination = \"10.3.0.2\", destination-port = 443".into(),
                "1:20".into()
            ),
            (
                "{ protocol = \"udp\", destination = \"10.3.0.1\", destination-port = \"5000-5010\""
                    .to_owned(),
                "1:20".to_owned()
            ),
        ]
    );
    // What is not in the set has a mark; what is keeps the one that it had.
    let except =
        format!("{sets}{}{}{FILTERS}", rule("--match-set slow src", 20), rule("! --match-set slow src", 10));
    assert_eq!(
        filters(&except),
        [(slow.to_owned(), "1:20".to_owned()), ("{ family = \"ipv4\"".to_owned(), "1:10".to_owned())]
    );
    // Only packets of the rule's family.
    let ports = format!(
        "ipset destroy ports 2>/dev/null || true\nipset create ports bitmap:port range 0-65535\nipset add ports udp:53\n{}\
         ip6tables -t mangle -A POSTROUTING -j MARK --set-mark 20\n{FILTERS}{}",
        rule("! --match-set ports src", 10),
        FILTERS.replace("protocol ip", "protocol ipv6").replace("prio 1", "prio 2"),
    );
    assert_eq!(
        filters(&ports),
        [
            (
                "{ protocol = [\"tcp\", \"udp\"], source-port = 53, family = \"ipv4\"".to_owned(),
                "1:30".to_owned()
            ),
            ("{ family = \"ipv4\"".to_owned(), "1:10".to_owned()),
            ("{ family = \"ipv6\"".to_owned(), "1:20".to_owned()),
        ]
    );
    // A set counts as it is when packets come.
    let later = format!(
        "ipset create slow hash:ip\n{}ipset add slow 10.4.0.1\n{FILTERS}",
        rule("--match-set slow dst", 10)
    );
    assert_eq!(filters(&later), [("{ destination = \"10.4.0.1\"".to_owned(), "1:10".to_owned())]);
}

#[test]
fn what_is_wrong_with_a_set_is_said() {
    let rule = "iptables -t mangle -A POSTROUTING -m set --match-set x src -j MARK --set-mark 10\n";
    let create = "ipset create x hash:ip\n";
    let wrong = |more: &str, title: &str, at: &str| fails(&format!("{TREE}{more}"), title, at, &[]);
    wrong(rule, "there is no set `x`", "iptables");
    wrong(&format!("{create}ipset -N x hash:net\n"), "there is a set `x` already", "ipset -N");
    wrong(
        &format!("{create}ipset add x 10.0.0.1,80\n"),
        "`10.0.0.1,80` is an entry of another type of set",
        "ipset add",
    );
    wrong(&format!("{create}ipset add x 10.0.0.1 timeout 5\n"), "entries of sets do not expire here", "5\n");
    wrong(&format!("{create}ipset add x 10.0.0\n"), "`10.0.0` is not an entry of a set", "10.0.0\n");
    wrong(
        &format!("{create}{rule}ipset destroy x\n"),
        "a rule looks packets up in the set `x`",
        "ipset destroy",
    );
    wrong(
        &format!("{create}ipset -exist create x hash:ip,port\n"),
        "there is a set `x` already",
        "ipset -exist",
    );
    wrong("ipset create x hash:mac\n", "unsupported type `hash:mac` of a set", "hash:mac");
    wrong("ipset restore\n", "unsupported `restore` of ipset", "restore");
    wrong(
        &format!("ipset create x hash:ip,port\n{rule}"),
        "the set `x` has 2 parts, and 1 of a packet are given",
        "iptables",
    );
}

#[test]
fn rules_may_name_the_device_where_packets_came_in() {
    let mark = |device: &str, mark: u8| {
        format!("iptables -t mangle -A PREROUTING -i {device} -j MARK --set-mark {mark}\n")
    };
    let all = |text: String| filters(&(text + FILTERS));
    // What leaves by one device came in by the other, unless there are several others.
    let found = all(mark("eth1", 10));
    assert_eq!(found, [("{ family = \"ipv4\"".to_owned(), "1:10".to_owned())]);
    assert_eq!(all(mark("eth1", 10) + &mark("eth0", 20)), found);
    assert_eq!(all(mark("eth0", 20)), []);
    assert_eq!(all("iptables -t mangle -A FORWARD ! -i eth0 -j MARK --set-mark 10\n".into()), found);
    // Nothing that leaves came in by the loopback device.
    assert_eq!(all(mark("lo", 20) + &mark("eth1", 10)), found);
    let text = format!("{TREE}{}{}{FILTERS}", mark("eth1", 10), mark("eth2", 20));
    let error = Script::parse(&text, "x.sh").unwrap().assignments(false).unwrap_err().to_string();
    assert!(error.contains("by the devices where packets came in, `eth2` and `eth1`"), "{error}");
    assert!(error.contains("-s NETWORK"), "{error}");
}

/// `xt_mark.c`: what earlier rules have given decides.
#[test]
fn rules_look_at_the_mark_that_packets_have() {
    let rule = |rule: &str| format!("iptables -t mangle -A POSTROUTING {rule}\n");
    let of = |rules: &[&str]| {
        let text: String = rules.iter().map(|text| rule(text)).collect();
        filters(&format!("{text}{FILTERS}"))
    };
    let pair = |condition: &str, class: &str| (condition.to_owned(), class.to_owned());
    let (ssh, tcp) = (
        "{ protocol = \"tcp\", destination-port = 22, family = \"ipv4\"",
        "{ protocol = \"tcp\", family = \"ipv4\"",
    );
    // The first rule that marks a packet counts.
    let first = of(&[
        "-p tcp --dport 22 -m mark --mark 0 -j MARK --set-mark 10",
        "-p tcp -m mark --mark 0 -j MARK --set-mark 20",
    ]);
    assert_eq!(first, [pair(ssh, "1:10"), pair(tcp, "1:20")]);
    let returned = ["RETURN", "ACCEPT"].map(|target| {
        of(&[
            "-p tcp --dport 22 -j MARK --set-mark 10",
            &format!("-m mark ! --mark 0 -j {target}"),
            "-p tcp -j MARK --set-mark 20",
        ])
    });
    assert_eq!(returned, [first.clone(), first.clone()]);
    assert_eq!(
        of(&[
            "-p tcp --dport 22 -j MARK --set-mark 10",
            "-p tcp -m mark ! --mark 0xa -j MARK --set-xmark 0x14"
        ]),
        first
    );
    // One mark becomes another, and another number of it.
    let again = of(&[
        "-p tcp --dport 22 -j MARK --set-mark 0x101",
        "-p tcp -m mark ! --mark 0x100/0x100 -j MARK --set-mark 20",
        "-m mark --mark 0x100/0xf00 -j MARK --set-mark 10",
    ]);
    assert_eq!(again, first);
    // The same as classes.
    let classes = filters(
        &[
            "-p tcp --dport 22 -j MARK --set-mark 5",
            "-p tcp -m mark --mark 0 -j MARK --or-mark 6",
            "-m mark --mark 5 -j CLASSIFY --set-class 1:10",
            "-m mark --mark 4/4 -m mark ! --mark 5 -j CLASSIFY --set-class 1:20",
        ]
        .map(rule)
        .concat(),
    );
    assert_eq!(classes, first);
    // Nothing has such marks.
    for condition in [
        "-m mark --mark 7",
        "-m mark --mark 5/3",
        "-m mark ! --mark 0",
        "-m mark --mark 0 -m mark ! --mark 0/1",
    ] {
        assert_eq!(of(&[&format!("{condition} -j MARK --set-mark 10")]), [], "{condition}");
    }
    let all = [pair("{ family = \"ipv4\"", "1:10")];
    for condition in ["-m mark --mark 0", "-m mark ! --mark 5/3", "-m mark ! --mark 7"] {
        assert_eq!(of(&[&format!("{condition} -j MARK --set-mark 10")]), all, "{condition}");
    }
}

#[test]
fn long_chains_that_look_at_marks_stay_short() {
    let mark = |number: u32| {
        format!(
            "iptables -t mangle -A QOS -p tcp -m multiport --dports {number},{} -j MARK --set-mark {number}\n\
             iptables -t mangle -A QOS -m mark ! --mark 0 -j RETURN\n\
             iptables -t mangle -A QOS -s 10.0.{number}.0/24 -m mark --mark 0 -j MARK --set-mark 10\n",
            number + 1000
        )
    };
    let rules: String = (1..200).map(mark).collect();
    let classify = "iptables -t mangle -A POSTROUTING -m mark --mark 10 -j CLASSIFY --set-class 1:10\n";
    let found = filters(&format!("iptables -t mangle -A POSTROUTING -j QOS\n{rules}{classify}"));
    let all = |class: &str| found.iter().filter(|(_, own)| own == class).count();
    assert_eq!(all("1:10"), 200, "{found:?}");
}

/// A packet meets `OUTPUT`, or the chains of packets that are forwarded.
#[test]
fn rules_that_look_at_marks_are_the_same_for_own_packets() {
    let rules = |chain: &str, mark: u32| {
        format!(
            "iptables -t mangle -A {chain} -p tcp -j MARK --set-mark {mark}\n\
             iptables -t mangle -A {chain} -m mark --mark 0 -j MARK --set-mark 20\n"
        )
    };
    let found = filters(&format!("{}{}{FILTERS}", rules("PREROUTING", 10), rules("OUTPUT", 10)));
    assert_eq!(
        found,
        [
            ("{ protocol = \"tcp\", family = \"ipv4\"".to_owned(), "1:10".to_owned()),
            ("{ family = \"ipv4\"".to_owned(), "1:20".to_owned())
        ]
    );
    let text = format!("{TREE}{}{}{FILTERS}", rules("PREROUTING", 10), rules("OUTPUT", 11));
    let error = Script::parse(&text, "x.sh").unwrap().assignments(false).unwrap_err().to_string();
    assert!(error.contains("other marks in `OUTPUT` than in `PREROUTING`"), "{error}");
    assert!(error.contains("put the rules into `POSTROUTING`"), "{error}");
}

/// `cls_u32.c`: the mark, and what else a filter compares. A packet that no rule marks has the mark 0.
#[test]
fn u32_compares_a_mark_and_other_fields() {
    let marks = "iptables -t mangle -A POSTROUTING -p tcp -j MARK --set-mark 6\n";
    let filter = |filter: &str| format!("tc filter add dev eth0 parent 1: protocol ip prio 1 u32 {filter}\n");
    let found = |lines: &[&str]| {
        let lines: String = lines.iter().map(|line| filter(line)).collect();
        filters(&format!("{marks}{lines}"))
    };
    let pair = |condition: &str, class: &str| (condition.to_owned(), class.to_owned());
    let one = found(&["match ip dport 80 0xffff match mark 6 0xff flowid 1:10"]);
    let tcp = "{ protocol = \"tcp\", destination-port = 80, family = \"ipv4\"";
    assert_eq!(one, [pair(tcp, "1:10")]);
    // What has the mark and not the port comes to the next filter.
    let two = found(&[
        "match mark 6 0xff match ip dport 80 0xffff flowid 1:10",
        "match mark 6 0xff match ip sport 80 0xffff flowid 1:20",
        "match ip dst 10.0.0.0/8 flowid 1:10",
    ]);
    assert_eq!(
        two,
        [
            pair(tcp, "1:10"),
            pair("{ protocol = \"tcp\", source-port = 80, family = \"ipv4\"", "1:20"),
            pair("{ destination = \"10.0.0.0/8\"", "1:10"),
        ]
    );
    let zero = found(&["match mark 0 0xffffffff match ip dst 10.0.0.0/8 flowid 1:10"]);
    assert_eq!(
        zero,
        [
            pair("{ protocol = \"tcp\", destination = \"10.0.0.0/8\"", "1:30"),
            pair("{ destination = \"10.0.0.0/8\"", "1:10"),
        ]
    );
    // A filter of `protocol ip` sees no other packets, whatever their mark.
    let six = filters(&format!("ip6tables -t mangle -A POSTROUTING -p tcp -j MARK --set-mark 10\n{FILTERS}"));
    assert_eq!(six, []);
}

/// The networks beside one network are all others, of either family.
#[test]
fn rules_exclude_a_network() {
    let filters_of = |program: &str, protocol: &str, network: &str| {
        let line = format!("{program} -t mangle -A POSTROUTING ! -d {network} -j MARK --set-mark 10\n");
        filters(&format!("{line}{}", FILTERS.replace("protocol ip", &format!("protocol {protocol}"))))
    };
    let four = filters_of("iptables", "ip", "192.0.0.0/2");
    assert_eq!(four, [("{ destination = [\"0.0.0.0/1\", \"128.0.0.0/2\"]".to_owned(), "1:10".to_owned())]);
    // Addresses of IPv4 are in `::ffff:0:0/96` here, which is left out.
    let six = filters_of("ip6tables", "ipv6", "c000::/2");
    let (first, rest) = six[0].0.split_once(", \"").unwrap();
    assert_eq!((six.len(), first), (1, "{ destination = [\"4000::/2\""), "{six:?}");
    assert!(rest.contains("\"::1:0:0:0/80\"") && rest.contains("\"::fffe:0:0/96\""), "{six:?}");
    let host = filters_of("ip6tables", "ipv6", "2001:db8::1");
    assert_eq!(host[0].0.matches('"').count() / 2, 127 + 93, "{host:?}");
}

/// `ip_set_getport.c`: what has no ports has the port 0. ipset wants a port in each entry of such a set.
#[test]
fn entries_of_sets_may_be_of_protocols_without_ports() {
    let rule = "iptables -t mangle -A POSTROUTING -m set --match-set s dst,dst -j MARK --set-mark 10\n";
    let create = "ipset create s hash:ip,port\n";
    for protocol in ["gre", "47"] {
        let found = filters(&format!("{create}ipset add s 10.0.0.1,{protocol}:0\n{rule}{FILTERS}"));
        let expected = "{ protocol = \"gre\", destination = \"10.0.0.1\"";
        assert_eq!(found, [(expected.to_owned(), "1:10".to_owned())]);
    }
    for (entry, title, at) in [
        ("10.0.0.1", "`10.0.0.1` is an entry of another type of set", "ipset add"),
        ("10.0.0.1,gre:5", "`10.0.0.1,gre:5` is not an entry of a set", "10.0.0.1,gre"),
        ("10.0.0.1,icmp:8/0", "`10.0.0.1,icmp:8/0` is not an entry of a set", "10.0.0.1,icmp"),
    ] {
        fails(&format!("{TREE}{create}ipset add s {entry}\n"), title, at, &[]);
    }
}

/// A router that marks what clients open and keeps the marks with the connections.
const KEPT: &str = "iptables -t mangle -A PREROUTING -j CONNMARK --restore-mark\n\
    iptables -t mangle -A PREROUTING -m mark ! --mark 0 -j ACCEPT\n\
    iptables -t mangle -A PREROUTING -p tcp --dport 22 -j MARK --set-mark 10\n\
    iptables -t mangle -A PREROUTING -p udp -s 10.0.0.0/8 -j MARK --set-mark 20\n\
    iptables -t mangle -A POSTROUTING -j CONNMARK --save-mark\n";

#[test]
fn connections_keep_marks_for_both_directions() {
    let found = filters(&format!("{KEPT}{FILTERS}"));
    let expected = [
        ("{ protocol = \"udp\", source = \"10.0.0.0/8\"", "1:20"),
        ("{ protocol = \"tcp\", destination-port = 22, family = \"ipv4\"", "1:10"),
        ("{ protocol = \"udp\", destination = \"10.0.0.0/8\"", "1:20"),
        ("{ protocol = \"tcp\", source-port = 22, family = \"ipv4\"", "1:10"),
    ];
    assert_eq!(found, expected.map(|(packets, class)| (packets.to_owned(), class.to_owned())));
    // By the mark of the connection, without a mark of its own.
    let found = filters(&format!(
        "iptables -t mangle -A FORWARD -i eth0 -p tcp --dport 80 -j CONNMARK --set-mark 7\n\
         iptables -t mangle -A POSTROUTING -m connmark --mark 7 -j MARK --set-mark 10\n{FILTERS}"
    ));
    assert_eq!(
        found,
        [("{ protocol = \"tcp\", source-port = 80, family = \"ipv4\"".to_owned(), "1:10".to_owned())]
    );
}

/// What packets of the other direction have without a rule of their own is not what they all have.
#[test]
fn whoever_has_a_rule_opens_a_connection() {
    let found = filters(&format!(
        "{KEPT}iptables -t mangle -A PREROUTING -m mark --mark 0 -j MARK --set-mark 20\n{FILTERS}"
    ));
    let classes: Vec<&str> = found.iter().map(|(_, class)| class.as_str()).collect();
    assert_eq!(classes, ["1:20", "1:10", "1:20", "1:10", "1:20"]);
    assert!(found[3].0.contains("source-port = 22"), "{found:?}");
}

#[test]
fn arriving_packets_get_the_marks_of_their_connections() {
    let script = Script::parse(
        &format!(
            "tc qdisc add dev eth0 handle ffff: ingress\n\
             tc filter add dev eth0 parent ffff: protocol all u32 match u32 0 0 action connmark action mirred egress redirect dev ifb0\n\
             {}{KEPT}",
            TREE.replace("eth0", "ifb0").to_owned() + &FILTERS.replace("eth0", "ifb0"),
        ),
        "test",
    )
    .unwrap();
    let scenario = script.scenario_text(false).unwrap();
    for part in [
        "{ match = { protocol = \"tcp\", source-port = 22, family = \"ipv4\" }, class = \"1:10\" }",
        "{ match = { protocol = \"udp\", destination = \"10.0.0.0/8\" }, class = \"1:20\" }",
    ] {
        assert!(scenario.contains(part), "{part}\n{scenario}");
    }
}

#[test]
fn marks_of_connections_that_never_settle() {
    let text = format!("{TREE}iptables -t mangle -A POSTROUTING -j CONNMARK --xor-mark 1\n{FILTERS}");
    let error = Script::parse(&text, "x.sh").unwrap().assignments(false).unwrap_err().to_string();
    assert!(error.contains("the marks of connections change again and again"), "{error}");
    assert!(error.contains("-j RETURN"), "{error}");
}

#[test]
fn rules_about_hops_and_link_addresses() {
    let found = filters(&format!(
        "iptables -t mangle -A POSTROUTING -m ttl --ttl-lt 5 -j MARK --set-mark 10\n\
         iptables -t mangle -A PREROUTING -m mac --mac-source 02:00:00:00:00:01 -j MARK --set-mark 20\n{FILTERS}"
    ));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].0.contains("hop-limit = \"0-4\""), "{found:?}");
    assert!(found[1].0.contains("02:00:00:00:00:01"), "{found:?}");
}

/// `filter` is behind `mangle` at the same place; what only accepts matters if it is before rules that give marks.
#[test]
fn rules_of_the_table_filter() {
    let of = |rules: &[&str]| {
        let lines: String = rules.iter().map(|rule| format!("iptables {rule}\n")).collect();
        filters(&format!("{lines}{FILTERS}"))
    };
    let tcp = [("{ protocol = \"tcp\", family = \"ipv4\"".to_owned(), "1:10".to_owned())];
    let gives = "-A OUTPUT -p tcp -j MARK --set-mark 10";
    assert_eq!(of(&[gives]), tcp);
    assert_eq!(of(&["-A FORWARD -j mine", "-A mine -p tcp -j MARK --set-mark 10"]), tcp);
    // Those of `mangle` come first, wherever the line stands, and `POSTROUTING` last.
    assert_eq!(of(&[gives, "-t mangle -A OUTPUT -p tcp -j MARK --set-mark 20"]), tcp);
    assert_eq!(of(&[gives, "-t mangle -A POSTROUTING -p tcp -j MARK --set-mark 20"])[0].1, "1:20");
    // `ACCEPT` ends the chains of its table alone.
    let accepted = of(&["-A OUTPUT -p tcp --dport 22 -j ACCEPT", gives]);
    assert!(accepted[0].0.contains("destination-port = 22") && accepted[0].1 == "1:30", "{accepted:?}");
    let both = of(&["-t mangle -A OUTPUT -p tcp --dport 22 -j ACCEPT", gives]);
    assert!(both.iter().all(|(_, class)| class == "1:10"), "{both:?}");
    let state = "-A OUTPUT -m state --state NEW -j ACCEPT";
    assert_eq!(of(&[gives, state]), tcp);
    fails(
        &format!("{TREE}iptables {state}\niptables {gives}\n{FILTERS}"),
        "the state `NEW` of connections, before rules that give packets marks",
        "NEW",
        &[],
    );
    // `-F` is of one table.
    let of_mangle = "-t mangle -A POSTROUTING -p tcp -j MARK --set-mark 10";
    assert_eq!(of(&[of_mangle, gives, "-F"]), of(&[of_mangle]));
    assert_eq!(of(&[gives, of_mangle, "-t mangle -F"]), of(&[gives]));
}

/// All packets of a connection but the first.
#[test]
fn rules_about_established_connections() {
    let of = |state: &str| {
        format!("iptables -t mangle -A POSTROUTING -p tcp {state} -j MARK --set-mark 10\n{FILTERS}")
    };
    for state in [
        "-m state --state ESTABLISHED,RELATED",
        "-m conntrack --ctstate NEW,ESTABLISHED",
        "-m conntrack ! --ctstate NEW",
    ] {
        assert_eq!(filters(&of(state)), filters(&of("")), "{state}");
        assert!(
            crate::hooks::said(&format!("{TREE}{}", of(state))).contains("The first packet of a connection")
        );
    }
    for (state, at) in
        [("-m state --state NEW", "NEW"), ("-m conntrack ! --ctstate ESTABLISHED", "ESTABLISHED")]
    {
        let title = format!("the state `{at}` of connections");
        fails(&format!("{TREE}{}", of(state)), &title, at, &["states with ESTABLISHED"]);
    }
}

#[test]
fn rules_about_types_of_icmp() {
    let of = |tool: &str, which: &str| {
        filters(&format!(
            "{tool} -t mangle -A POSTROUTING -o eth0 {which} -j MARK --set-mark 10\n{}",
            FILTERS.replace("protocol ip", "protocol all")
        ))
        .swap_remove(0)
        .0
    };
    for (which, types) in [
        ("-p icmp --icmp-type echo-request", "icmp-type = 8, family"),
        ("-p icmp -m icmp --icmp-type 3/4", "icmp-type = \"3/4\", family"),
        ("-p icmp --icmp-type source-q", "icmp-type = 4, family"),
        ("-p icmp ! --icmp-type fragmentation-needed", "[\"0-2\", \"3/0-3\", \"3/5-255\", \"4-255\"]"),
        // Later fragments have type 0 and code 0, but match no rule.
        ("-p icmp --icmp-type 0", "icmp-type = 0, family = \"ipv4\", fragment = [\"none\", \"first\"]"),
    ] {
        let found = of("iptables", which);
        assert!(found.starts_with("{ protocol = \"icmp\"") && found.contains(types), "{which}: {found}");
    }
    let found = of("ip6tables", "-p ipv6-icmp -m icmp6 --icmpv6-type neighbour-solicitation");
    assert_eq!(found, "{ protocol = \"icmpv6\", icmp-type = 135, family = \"ipv6\"");
    for (name, title, help) in [
        ("time", "`time` is not a type of ICMP", "time-exceeded"),
        ("8/256", "`8/256` is not a type of ICMP", "such as 3/4"),
        ("any", "no type of ICMP is left", ""),
    ] {
        let rule = format!(
            "{TREE}iptables -t mangle -A POSTROUTING -p icmp ! --icmp-type {name} -j MARK --set-mark 1\n"
        );
        fails(&rule, title, name, &[help]);
    }
}

#[test]
fn rules_about_ranges_of_addresses() {
    let of = |range: &str| {
        filters(&format!(
            "iptables -t mangle -A POSTROUTING -m iprange {range} -j MARK --set-mark 10\n{FILTERS}"
        ))
    };
    assert_eq!(of("--src-range 10.0.0.2-10.0.0.5")[0].0, "{ source = [\"10.0.0.2/31\", \"10.0.0.4/31\"]");
    let others = of("! --dst-range 0.0.0.0-191.255.255.255");
    assert_eq!(others[0].0, "{ destination = \"192.0.0.0/2\"");
    fails(
        &format!(
            "{TREE}iptables -t mangle -A POSTROUTING -m iprange ! --src-range 0.0.0.0-255.255.255.255 -j ACCEPT\n"
        ),
        "no address is left",
        "0.0.0.0-",
        &[],
    );
}

/// What leaves by another device has the addresses that the hosts behind this one know.
#[test]
fn translation_at_another_device_does_not_matter() {
    let by_address =
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.1 flowid 1:10\n";
    let of = |device: &str| {
        format!("{TREE}{by_address}iptables -t nat -A POSTROUTING -o {device} -j MASQUERADE\n")
    };
    assert!(keys(&of("eth1")).concat().contains("10.0.0.1"));
    fails(
        &of("eth0"),
        "a filter by addresses or ports, which iptables translates before it sees them",
        "tc filter",
        &["leave out the translation"],
    );
}

#[test]
fn rules_write_into_headers() {
    let netem = "tc qdisc add dev eth0 root netem delay 3ms\n";
    let write = |rest: &str, set: &str| {
        format!("{{ match = {{ {rest} }}, action = \"edit\", set = {{ {set} }}, conform = \"next\" }}")
    };
    let [web, all] = ["protocol = \"tcp\", destination-port = 80, family = \"ipv4\"", "family = \"ipv4\""];
    let six = "family = \"ipv6\"";
    let up = |list: &[String]| format!("link.up.ingress = [{}]", list.join(", "));
    let down = |list: &[String]| up(list).replace("up", "down");
    let found = |rules: &str| {
        let mut all = keys(&format!("{netem}{rules}"));
        all.retain(|line| !line.contains("delay"));
        all
    };
    let out = "iptables -t mangle -A POSTROUTING";
    for (rules, expected) in [
        (
            format!("{out} -p tcp --dport 80 -j DSCP --set-dscp-class EF"),
            vec![up(&[write(web, "dscp = 46")])],
        ),
        (format!("{out} -p tcp --dport 80 -j DSCP --set-dscp 0x2e"), vec![up(&[write(web, "dscp = 46")])]),
        (
            format!("{out} -j TOS --set-tos Minimize-Delay"),
            vec![up(&[write(all, "dscp = 4, ecn = \"not-ect\"")])],
        ),
        (format!("{out} -j TOS --set-tos 0xb8/0xfc"), vec![up(&[write(all, "dscp = 46")])]),
        (format!("{out} -j TTL --ttl-set 65"), vec![up(&[write(all, "hop-limit = 65")])]),
        (
            "ip6tables -t mangle -A POSTROUTING -j HL --hl-set 65".into(),
            vec![up(&[write(six, "hop-limit = 65")])],
        ),
        (
            "iptables -t mangle -A INPUT -i eth0 -j DSCP --set-dscp 0".into(),
            vec![down(&[write(all, "dscp = 0")])],
        ),
        // The last rule counts: its filter comes last, or is the only one.
        (
            format!("{out} -j DSCP --set-dscp 8\n{out} -p tcp --dport 80 -j DSCP --set-dscp 46"),
            vec![up(&[write(all, "dscp = 8"), write(web, "dscp = 46")])],
        ),
        (
            format!("{out} -p tcp --dport 80 -j DSCP --set-dscp 46\n{out} -j DSCP --set-dscp 8"),
            vec![up(&[write(all, "dscp = 8"), write(web, "dscp = 8")])],
        ),
        // Several fields of one packet.
        (
            format!("{out} -j TTL --ttl-set 9\n{out} -p tcp --dport 80 -j DSCP --set-dscp 46"),
            vec![up(&[write(all, "hop-limit = 9"), write(web, "dscp = 46, hop-limit = 9")])],
        ),
        // Before those that drop.
        (
            format!("{out} -p tcp --dport 80 -j DROP\n{out} -p tcp --dport 80 -j DSCP --set-dscp 46"),
            vec![up(&[write(web, "dscp = 46"), format!("{{ match = {{ {web} }}, action = \"drop\" }}")])],
        ),
        (format!("{out} -o eth1 -j DSCP --set-dscp 46"), vec![]),
    ] {
        let plain = |all: Vec<String>| all.into_iter().map(|line| line.replace(' ', "")).collect::<Vec<_>>();
        assert_eq!(plain(found(&rules)), plain(expected), "{rules}");
    }
    // Filters of tc see what was written, and marks do not depend on it.
    let rules = format!(
        "{out} -p tcp --dport 80 -j DSCP --set-dscp 46\n{out} -p tcp --dport 80 -j MARK --set-mark 10\n"
    );
    let tos =
        "tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip dsfield 0xb8 0xfc flowid 1:20\n";
    let all = keys(&format!("{TREE}{FILTERS}{tos}{rules}"));
    assert!(all.iter().any(|line| line.contains("link.up.ingress") && line.contains("dscp = 46")), "{all:?}");
    for (text, title, at) in [
        (
            format!("{out} -s 10.0.0.1 -j ACCEPT\n{out} -j DSCP --set-dscp 8\n{netem}"),
            "rules of iptables that change packets, from which others are excepted before",
            "-A POSTROUTING -j",
        ),
        (
            format!("{out} -m dscp --dscp 8 -j MARK --set-mark 1\n{out} -j DSCP --set-dscp 8\n{netem}"),
            "a rule of iptables that looks at a code point or hop limit, beside rules that write them",
            "-A POSTROUTING -m",
        ),
        (
            format!("{out} -j TOS --set-tos 0x10/0x1c\n{netem}"),
            "`0x10/0x1c` changes a part of the code point",
            "0x10",
        ),
        (format!("{out} -j TTL --ttl-inc 1\n{netem}"), "unsupported `--ttl-inc` of `TTL`", "--ttl-inc"),
        (
            format!("{out} -j DSCP --set-dscp 64\n{netem}"),
            "found `64`, expected a code point from 0 to 63",
            "64",
        ),
        (
            format!("tc qdisc add dev eth0 root prio\n{out} -j DSCP --set-dscp 46\n"),
            "`prio` by the priorities of packets, which Linux takes from the code points that they have before iptables writes others",
            "tc qdisc",
        ),
    ] {
        fails(&text, title, at, &[]);
    }
}

#[test]
fn rules_drop_packets() {
    let netem = "tc qdisc add dev eth0 root netem delay 3ms\n";
    let drop = |rest: &str| format!("{{ match = {{ {rest} }}, action = \"drop\" }}");
    let pass = |rest: &str| drop(rest).replace("drop", "pass");
    let web = drop("protocol = \"tcp\", destination-port = 80, family = \"ipv4\"");
    let names = drop("protocol = \"udp\", source-port = 53, family = \"ipv4\"");
    let up = |list: &str| format!("link.up.ingress=[{list}]");
    let down = |list: &str| format!("link.down.ingress=[{list}]");
    let found = |rules: &str| {
        let mut all = keys(&format!("{netem}{rules}"));
        all.retain(|line| !line.contains("delay"));
        all.into_iter().map(|line| line.replace(" = [", "=[")).collect::<Vec<_>>()
    };
    for (rules, expected) in [
        ("iptables -A OUTPUT -p tcp --dport 80 -j DROP", vec![up(&web)]),
        ("iptables -t mangle -A POSTROUTING -o eth0 -p tcp --dport 80 -j DROP", vec![up(&web)]),
        ("iptables -A INPUT -i eth0 -p udp --sport 53 -j DROP", vec![down(&names)]),
        // At another device, and of a chain that is not called.
        (
            "iptables -A INPUT -i eth1 -j DROP; iptables -A OUTPUT -o eth1 -j DROP; iptables -A x -j DROP",
            vec![],
        ),
        // Forwarded in either direction.
        ("iptables -A FORWARD -p tcp --dport 80 -j DROP", vec![up(&web), down(&web)]),
        ("iptables -A FORWARD -i eth0 -o eth1 -p udp --sport 53 -j DROP", vec![down(&names)]),
        ("iptables -A FORWARD -i eth1 -o eth0 -p tcp --dport 80 -j DROP", vec![up(&web)]),
        // The first rule that decides counts, in chains of the script, too.
        (
            "iptables -A INPUT -j own; iptables -A own -s 10.0.0.1 -j RETURN; iptables -A own -p udp --sport 53 -j DROP; iptables -A INPUT -s 10.0.0.1 -j DROP",
            vec![down(&format!("{},{names}", drop("source = \"10.0.0.1\"")))],
        ),
        (
            "iptables -A OUTPUT -d 10.0.0.1 -j ACCEPT; iptables -A OUTPUT -p tcp --dport 80 -j DROP",
            vec![up(&format!("{},{web}", pass("destination = \"10.0.0.1\"")))],
        ),
        // Taken away again.
        ("iptables -A OUTPUT -j DROP; iptables -D OUTPUT -j DROP", vec![]),
        ("iptables -A OUTPUT -j DROP; iptables -F", vec![]),
        ("iptables -A OUTPUT -j DROP; iptables -R OUTPUT 1 -p tcp --dport 80 -j DROP", vec![up(&web)]),
    ] {
        let plain = |all: Vec<String>| all.into_iter().map(|line| line.replace(' ', "")).collect::<Vec<_>>();
        assert_eq!(plain(found(rules)), plain(expected), "{rules}");
    }
    // By marks that packets have there.
    let marked = "iptables -t mangle -A OUTPUT -p tcp --dport 80 -j MARK --set-mark 5; iptables -A OUTPUT -m mark --mark 5 -j DROP";
    let all = found(marked);
    assert_eq!(all.len(), 1, "{all:?}");
    assert!(all[0].contains("destination-port = 80") && all[0].ends_with("action = \"drop\" }]"), "{all:?}");
    // Before the filters of the device where packets leave, and behind them where they arrive.
    let hooks = "tc qdisc add dev eth0 clsact\ntc filter add dev eth0 egress protocol ip matchall action drop\n\
                 tc filter add dev eth0 ingress protocol ip u32 match ip protocol 1 0xff action drop\n";
    let rules = "iptables -A OUTPUT -p tcp --dport 80 -j DROP\niptables -A INPUT -p udp --sport 53 -j DROP\n";
    let all = keys(&format!("{hooks}{rules}"));
    let at = |line: &String, part: &str| line.find(part).unwrap_or_else(|| panic!("{part}: {line}"));
    assert!(at(&all[0], "tcp") < at(&all[0], "{ match = { family = \"ipv4\" }"), "{all:?}");
    assert!(at(&all[1], "icmp") < at(&all[1], "udp"), "{all:?}");
    for (text, title, at) in [
        (
            format!("{netem}iptables -A INPUT -m state --state ESTABLISHED -j ACCEPT\niptables -A INPUT -j DROP\n"),
            "a rule of iptables for packets of established connections, before rules that drop packets",
            "-A INPUT -m",
        ),
        (
            format!("{netem}sleep 5\niptables -A INPUT -j DROP\n"),
            "a rule of the firewall after `sleep`",
            "iptables -A",
        ),
        (
            format!("{netem}iptables -A INPUT -j DROP\nsleep 5\niptables -D INPUT -j DROP\n"),
            "a rule of the firewall after `sleep`",
            "iptables -D",
        ),
        (
            format!("{netem}iptables -A INPUT -m statistic --mode random --probability 0.1 -j DROP\n"),
            "the match `statistic` of iptables",
            "statistic",
        ),
        (
            "tc qdisc add dev eth0 clsact\niptables -A INPUT -s 10.0.0.1 -j DROP\n\
             tc filter add dev eth0 ingress protocol ip u32 match ip dport 80 0xffff action pass\n"
                .into(),
            "filters of tc that pass packets, and rules of iptables that drop or change packets",
            "tc filter",
        ),
        (
            "tc qdisc add dev eth0 ingress\ntc qdisc add dev ifb0 root tbf rate 1mbit burst 5k latency 9ms\niptables -A INPUT -s 10.0.0.1 -j DROP\n\
             tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0\n"
                .into(),
            "packets are redirected, and then dropped by iptables",
            "tc filter",
        ),
    ] {
        fails(&text, title, at, &[]);
    }
}
