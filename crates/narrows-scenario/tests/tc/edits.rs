//! Actions that change packets or gate them: at the hooks of a device, and at its root.

use narrows_scenario::tc::Script;

use super::hooks::said;
use super::{fails, keys};

const ICMP: &str = "u32 match ip protocol 1 0xff";

fn arriving(filter: &str) -> String {
    format!(
        "tc qdisc add dev eth0 ingress\ntc filter add dev eth0 parent ffff: protocol ip prio 1 {filter}\n"
    )
}

fn leaving(filter: &str) -> String {
    format!(
        "tc qdisc add dev eth0 root handle 1: prio\ntc filter add dev eth0 parent 1: protocol ip prio 1 {filter}\n"
    )
}

#[test]
fn fields_that_are_written() {
    for (action, set) in [
        ("skbmod set dmac 2:15:15:15:15:15 pipe", "link-destination = \"02:15:15:15:15:15\""),
        (
            "skbmod set etype 0xBEEF set dmac 02:12:13:14:15:16 set smac 02:22:23:24:25:26",
            "ether-type = 48879, link-destination = \"02:12:13:14:15:16\", link-source = \"02:22:23:24:25:26\"",
        ),
        ("skbmod swap mac", "swap-link-addresses = true"),
        ("skbmod ecn", "mark = true"),
        ("vlan push id 123", "vlan = 123"),
        ("vlan pop", "vlan = 0"),
        ("pedit ex munge eth src set 02:00:00:00:00:07", "link-source = \"02:00:00:00:00:07\""),
        (
            "pedit munge offset -14 u16 set 0x0215 munge offset -12 u32 set 0x15151516",
            "link-destination = \"02:15:15:15:15:16\"",
        ),
        ("pedit ex munge ip6 hoplimit set 7", "hop-limit = 7"),
        ("pedit ex munge ip6 traffic_class set 0xb8 retain 0xfc", "dscp = 46"),
        ("pedit ex munge ip dsfield set 0x29 pipe csum ip", "dscp = 10, ecn = \"ect1\""),
        ("pedit ex munge ip tos set 0 retain 0x3 pipe csum ip", "ecn = \"not-ect\""),
        ("pedit ex munge ip dst set 10.0.0.9 pipe csum ip and udp", "destination = \"10.0.0.9\""),
        ("pedit ex munge ip ttl set 9 pipe action csum ip4h", "hop-limit = 9"),
        // The later one counts, and several actions are one edit.
        (
            "pedit ex munge tcp dport set 80 munge tcp dport set 81 pipe action vlan push id 5",
            "destination-port = 81, vlan = 5",
        ),
    ] {
        let filter = format!("{ICMP} action {action}");
        let expected = format!(
            "{{ match = {{ protocol = \"icmp\", family = \"ipv4\" }}, action = \"edit\", set = {{ {set} }} }}"
        );
        let all = keys(&arriving(&filter));
        assert!(all[0].starts_with("link.down.ingress=") && all[0].contains(&expected), "{action}: {all:?}");
        let all = keys(&leaving(&format!("{filter} flowid 1:2")));
        let ingress = all.iter().find(|key| key.starts_with("link.up.ingress=")).unwrap();
        assert!(ingress.contains(&expected), "{action}: {all:?}");
    }
}

/// A filter that has decided is the last; after `continue`, the others see what it wrote.
#[test]
fn filters_around_an_edit() {
    let text = arriving(&format!("{ICMP} action skbmod ecn continue"))
        + "tc filter add dev eth0 parent ffff: protocol ip prio 2 u32 match ip src 10.0.0.1 action drop\n";
    let all = keys(&text).remove(0);
    assert!(all.contains("set = { mark = true }, conform = \"next\" }"), "{all}");
    assert!(all.contains("action = \"drop\""), "{all}");
    // At the root, filters before the last edit keep their packets from it.
    let text = leaving("u32 match ip src 10.0.0.1 flowid 1:1")
        + "tc filter add dev eth0 parent 1: protocol ip prio 2 u32 match ip protocol 1 0xff flowid 1:2 action skbmod swap mac\n";
    let all = keys(&text);
    let ingress = all.iter().find(|key| key.starts_with("link.up.ingress=")).unwrap();
    assert!(ingress.contains("{ match = { source = \"10.0.0.1\" }, action = \"pass\" }"), "{ingress}");
}

#[test]
fn gates() {
    let all = keys(&arriving(
        "flower src_ip 192.168.0.20 action gate index 2 clockid CLOCK_TAI base-time 200000000070ns sched-entry open 200000000ns -1 8000000b sched-entry close 100ms",
    ));
    let schedule = "action = \"gate\", schedule = [{ open = \"200ms\", most = \"8000000 bytes\" }, { closed = \"100ms\" }]";
    // 200 s and 70 ns are 666 cycles of 300 ms, and 200.00007 ms.
    assert!(all[0].contains(schedule) && all[0].contains("begin = \"200.00007ms\""), "{all:?}");
    fails(
        &arriving("matchall action gate index 1"),
        "there is no action `gate` with the index 1",
        "index 1",
        &["tc actions add action gate"],
    );
    fails(
        &arriving("matchall action gate sched-entry open 5ms 3"),
        "a gate that gives packets a priority",
        "3",
        &["-1"],
    );
    fails(
        &arriving("matchall action gate cycle-time 7ms sched-entry open 5ms"),
        "the entries last 5ms, `cycle-time` is 7ms",
        "7ms",
        &[],
    );
}

/// What is not translated passes, too.
#[test]
fn single_addresses_are_translated() {
    let edit = "action = \"edit\", set = { destination = \"192.168.0.2\" }";
    let nat = "action nat ingress 91.245.77.1 192.168.0.2";
    let all = arriving(&format!("flower ip_proto tcp dst_ip 91.245.77.1 {nat}"));
    let matches = "{ protocol = \"tcp\", destination = \"91.245.77.1\" }";
    assert_eq!(keys(&all), [format!("link.down.ingress=[{{ match = {matches}, {edit} }}]")]);
    let some = format!("match = {{ destination = \"91.245.77.1\" }}, {edit}");
    let text = arriving(&format!("matchall {nat}/32"))
        + &arriving("matchall action drop")[30..].replace("prio 1", "prio 2");
    let drop = "{ match = { family = \"ipv4\" }, action = \"drop\" }";
    assert_eq!(
        keys(&text),
        [format!(
            "link.down.ingress=[{{ {some} }}, {{ match = {{ family = \"ipv4\" }}, action = \"pass\" }}, {drop}]"
        )]
    );
    assert_eq!(
        keys(&text.replace("192.168.0.2/32", "192.168.0.2 continue")),
        [format!("link.down.ingress=[{{ {some}, conform = \"next\" }}, {drop}]")]
    );
    // At a discipline, of the source.
    let root = keys(&leaving("matchall action nat egress 10.0.0.1 192.0.2.1 flowid 1:1"));
    let ingress = root.iter().find(|key| key.starts_with("link.up.ingress=")).unwrap();
    assert_eq!(
        ingress,
        "link.up.ingress=[{ match = { source = \"10.0.0.1\" }, action = \"edit\", set = { source = \"192.0.2.1\" } }, { match = { family = \"ipv4\" }, action = \"pass\" }]"
    );
    // Of no bits, none are taken.
    for any in ["any", "0.0.0.0/0"] {
        let text = arriving(&format!("matchall action nat ingress {any} 10.0.0.1 pipe action drop"));
        assert_eq!(keys(&text), [format!("link.down.ingress=[{drop}]")]);
        assert!(said(&text).contains("of any address changes nothing"), "{}", said(&text));
    }
    for (action, title, at) in [
        ("nat ingress 10.0.0.0/24 192.0.2.0", "`nat` of a network, `10.0.0.0/24`", "10.0.0.0/24"),
        ("nat ingress 10.0.0.300 1.1.1.1", "`10.0.0.300` is not an address of IPv4", "10.0.0.300"),
        (
            "nat both 10.0.0.1 1.1.1.1",
            "found `both`, expected `ingress`, which changes the destination, or `egress`, for the source",
            "both",
        ),
        (
            "nat ingress 10.0.0.1 1.1.1.1 pipe action vlan push id 5",
            "`nat`, and another change of packets in one filter",
            "matchall",
        ),
        (
            "skbedit mark 5 action nat ingress 10.0.0.1 1.1.1.1",
            "`nat`, and a mark or a priority in one filter",
            "matchall",
        ),
    ] {
        fails(&arriving(&format!("matchall action {action}")), title, at, &[]);
    }
}

/// Without a word, tc lets `pedit`, `csum` and `nat` end with `ok`, other changes go on.
#[test]
fn actions_behind_a_change_need_pipe() {
    let change = "action pedit ex munge tcp dport set 80";
    for (actions, is_dropped) in [
        (format!("{change} action drop"), false),
        (format!("{change} pipe action drop"), true),
        ("action csum tcp action drop".into(), false),
        ("action vlan push id 5 action drop".into(), true),
    ] {
        let text = arriving(&format!("matchall {actions}"));
        let dropped = keys(&text).concat().contains("\"drop\"");
        assert_eq!(dropped, is_dropped, "{actions}");
        assert_eq!(said(&text).contains("`drop` is not executed"), !is_dropped, "{actions}");
    }
}

#[test]
fn edits_that_are_refused() {
    for (action, title, at, says) in [
        (
            "pedit ex munge tcp flags set 1",
            "unsupported field `flags` of `tcp`",
            "flags",
            "understood: eth src",
        ),
        ("pedit munge offset 20 u8 set 1", "unsupported bytes at `20` of `pedit`", "20", "with `ex`"),
        (
            "pedit munge offset -14 u8 set 1",
            "a part of the destination MAC address is written: the byte at -13 is not",
            "pedit",
            "whole fields",
        ),
        ("vlan push id 5000", "`5000` is not a VLAN", "5000", "from 0 to 4094"),
        ("vlan push id 5 priority 3", "a priority of a tag", "3", "priority 0"),
        ("vlan modify id 5", "unsupported `modify` of `vlan`", "modify", "push id"),
        ("skbmod set dmac 1:2:3", "`1:2:3` is not a MAC address", "1:2:3", ""),
        (
            "skbmod ecn pipe action police rate 1mbit burst 10k",
            "an edit of packets that are then policed or gated",
            "u32",
            "two filters",
        ),
    ] {
        fails(&arriving(&format!("{ICMP} action {action}")), title, at, &[says]);
    }
    // Receivers drop packets with a wrong checksum.
    let wrong = keys(&arriving(&format!("{ICMP} action pedit ex munge ip src set 10.0.0.1")));
    assert!(wrong[0].contains("action = \"drop\""), "{wrong:?}");
    // A packet that is dropped anyway may be changed by whatever means.
    assert!(
        keys(&arriving(&format!("{ICMP} action pedit munge offset 20 u8 set 1 drop")))[0]
            .contains("\"drop\"")
    );
    let inside = leaving("matchall flowid 1:1")
        + "tc qdisc add dev eth0 parent 1:1 handle 2: prio\ntc filter add dev eth0 parent 2: protocol ip prio 1 u32 match ip protocol 1 0xff action skbmod ecn\n";
    fails(
        &inside,
        "packets are changed or gated within a class",
        "tc filter add dev eth0 parent 2:",
        &["at the root"],
    );
    let chosen = leaving("u32 match ip dport 23 0xffff flowid 1:1 action pedit ex munge ip dport set 22");
    fails(&chosen, "a class is chosen by a field that a filter changes", "tc filter", &["after the change"]);
}

#[test]
fn queues_of_an_intermediate_device_without_a_limit() {
    let redirected = arriving("matchall action mirred egress redirect dev ifb0");
    for (queue, expected) in
        [("pfifo", "32 packets"), ("bfifo", "48448 bytes"), ("pfifo limit 1000", "1000 packets")]
    {
        let all = keys(&format!("{redirected}tc qdisc add dev ifb0 root {queue}\n"));
        assert_eq!(all, [format!("link.down.queue=\"{expected}\"")]);
    }
}

/// In the kernel, the checksums of TCP and UDP are wrong after a change of addresses, unless `csum` names them.
#[test]
fn checksums_that_the_kernel_leaves_wrong_are_told() {
    let told = |action: &str| {
        let text = arriving(&format!("{ICMP} action {action}"));
        let explained = Script::parse(&text, "x.sh").unwrap().explain().unwrap();
        let words = explained.into_iter().flat_map(|explained| explained.words);
        words.filter(|words| words.starts_with("`csum` does not name")).collect::<Vec<_>>().join("\n")
    };
    let to = "pedit ex munge ip dst set 10.0.0.9 pipe";
    for (action, named) in [
        (format!("{to} csum ip"), "name tcp and udp:"),
        (format!("{to} csum ip and udp"), "name tcp:"),
        (format!("{to} csum ip and tcp"), "name udp:"),
        ("pedit ex munge ip6 src set fd00::9".into(), "name tcp and udp:"),
    ] {
        assert!(told(&action).contains(named), "{action}: {}", told(&action));
    }
    for action in [
        format!("{to} csum ip and tcp and udp"),
        format!("{to} csum ip pipe action csum tcp and udp"),
        "pedit ex munge ip ttl set 9 pipe csum ip".into(),
        "pedit ex munge tcp dport set 80".into(),
    ] {
        assert_eq!(told(&action), "", "{action}");
    }
}
