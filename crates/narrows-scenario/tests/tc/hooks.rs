//! Filters at `ingress` and at `clsact`, actions in a row, and filters that match nothing.

use narrows_scenario::tc::Script;

use super::{fails, keys};

const INGRESS: &str = "tc qdisc add dev eth0 clsact\n";

fn ingress(filters: &str) -> Vec<String> {
    let lines: Vec<String> =
        filters.lines().map(|line| format!("tc filter add dev eth0 ingress {line}\n")).collect();
    keys(&format!("{INGRESS}{}", lines.concat()))
}

/// All remarks and explanations of a script.
pub(crate) fn said(text: &str) -> String {
    let script = Script::parse(text, "x.sh").unwrap();
    let devices = script.devices(false).unwrap();
    let notes = devices.iter().flat_map(|device| device.egress.notes.iter().chain(&device.ingress.notes));
    let explained = script.explain().unwrap().into_iter().flat_map(|explained| explained.words);
    explained.chain(notes.cloned()).collect::<Vec<_>>().join("\n")
}

#[test]
fn arriving_packets_are_dropped_or_passed() {
    assert_eq!(
        ingress("protocol ip prio 1 flower ip_proto tcp dst_port 22 action drop"),
        [
            "link.down.ingress=[{ match = { protocol = \"tcp\", destination-port = 22, family = \"ipv4\" }, action = \"drop\" }]"
        ]
    );
    // By priority; a filter behind one of all packets sees none.
    assert_eq!(
        ingress(
            "protocol ip prio 3 matchall action drop\n\
             protocol all prio 2 u32 match ip src 10.0.0.0/8 action pass\n\
             protocol all prio 4 matchall action drop\n\
             protocol all prio 5 u32 match ip src 10.1.0.0/16 action pass"
        ),
        [
            "link.down.ingress=[{ match = { source = \"10.0.0.0/8\" }, action = \"pass\" }, { match = { family = \"ipv4\" }, action = \"drop\" }, { action = \"drop\" }]"
        ]
    );
    // What passes at the end passes anyway, and to continue is to decide nothing.
    assert!(ingress("protocol all prio 1 matchall action pass").is_empty());
    assert!(ingress("protocol all prio 1 matchall action continue").is_empty());
}

#[test]
fn policers_of_arriving_packets_are_a_list() {
    let police = "action police rate 1mbit burst 10k conform-exceed";
    assert_eq!(
        ingress(&format!(
            "protocol ip prio 1 matchall {police} drop/continue\n\
             protocol ip prio 2 u32 match ip dport 53 0xffff {police} continue/ok"
        )),
        [
            "link.down.ingress=[{ match = { family = \"ipv4\" }, action = \"police\", rate = \"1mbit\", burst = \"10240 bytes\", overhead = \"ip\", conform = \"next\" }, { match = { destination-port = 53, family = \"ipv4\" }, action = \"police\", rate = \"1mbit\", burst = \"10240 bytes\", overhead = \"ip\", exceed = \"next\" }]"
        ]
    );
    // A policer whose packets go on in either case decides nothing.
    assert!(ingress(&format!("protocol ip prio 1 matchall {police} continue/continue")).is_empty());
    // One at each of both hooks.
    let both = format!(
        "{INGRESS}tc filter add dev eth0 ingress protocol all matchall {police} drop\n\
         tc filter add dev eth0 egress protocol all matchall action drop\n"
    );
    assert_eq!(
        keys(&both),
        [
            "link.up.ingress=[{ action = \"drop\" }]",
            "link.down.policer={ rate = \"1mbit\", burst = \"10240 bytes\", overhead = \"ip\" }",
        ]
    );
    fails(
        &format!("{INGRESS}tc filter add dev eth0 ingress matchall {police} ok/drop\n"),
        "a policer that drops packets below its rate",
        "matchall",
        &["packets that conform pass here"],
    );
}

/// A device that is no intermediate one is not on the link.
#[test]
fn packets_that_leave_by_another_device_are_dropped() {
    let text = format!(
        "{INGRESS}tc filter add dev eth0 ingress protocol ip flower action mpls push protocol mpls_uc label 123 action mirred egress redirect dev eth1\n"
    );
    assert_eq!(keys(&text), ["link.down.ingress=[{ match = { family = \"ipv4\" }, action = \"drop\" }]"]);
    assert!(said(&text).contains("leave by eth1, which is not an end of this link"), "{}", said(&text));
    // Above the rate of a policer; `action` is optional.
    for word in ["action", ""] {
        assert_eq!(
            ingress(&format!(
                "matchall action police rate 1mbit burst 100k conform-exceed pipe {word} mirred egress redirect dev eth1"
            )),
            ["link.down.policer={ rate = \"1mbit\", burst = \"102400 bytes\", overhead = \"ip\" }"]
        );
    }
    // The script may say that it is an intermediate device: packets pass it and go on.
    let through = format!(
        "ip link add name eth1 type ifb\n{}",
        text.replace("mpls push protocol mpls_uc label 123 action ", "")
    );
    assert!(keys(&through).is_empty());
    // Packets that are changed and stay are not understood.
    fails(
        &text.replace("action mirred egress redirect dev eth1", ""),
        "unsupported action `mpls`",
        "mpls push",
        &["classes do not change packets"],
    );
}

#[test]
fn copies_samples_and_marks_of_connections_change_nothing() {
    for (action, note) in [
        ("mirred egress mirror dev eth1", "Copies leave by eth1"),
        ("sample rate 100 group 12", "`--pcap` records all packets"),
        ("skbedit queue 1 pipe", ""),
        ("ctinfo dscp 0xfc000000 0x01000000", "Connections have no marks here"),
    ] {
        let text = format!("{INGRESS}tc filter add dev eth0 ingress matchall action {action}\n");
        assert!(keys(&text).is_empty(), "{action}");
        assert!(said(&text).contains(note), "{}", said(&text));
        // The next action counts.
        let dropped = ingress(&format!("matchall action {action} action drop"));
        assert_eq!(dropped, ["link.down.ingress=[{ action = \"drop\" }]"], "{action}");
    }
}

#[test]
fn priorities_at_clsact_choose_classes() {
    let text = format!(
        "{INGRESS}tc qdisc add dev eth0 root handle 1: htb default 20\n\
         tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
         tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n\
         tc filter add dev eth0 egress protocol ip u32 match ip dport 7001 0xffff action skbedit priority 1:10\n"
    );
    let all = keys(&text).remove(2);
    assert!(
        all.contains("match = { destination-port = 7001, family = \"ipv4\" } }, { name = \"1:20\""),
        "{all}"
    );
    assert!(!said(&text).contains("before its filters"), "{}", said(&text));
    // At the discipline itself it comes too late.
    let late = keys(&text.replace("egress protocol", "parent 1: protocol")).remove(2);
    assert!(!late.contains("7001"), "{late}");
    let at_discipline = said(&text.replace("egress protocol", "parent 1: protocol"));
    assert!(at_discipline.contains("before its filters"), "{at_discipline}");
    let inside = "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 parent 1:1 handle 2: prio\n\
        tc filter add dev eth0 parent 1: protocol ip matchall action skbedit priority 2:1\n";
    fails(
        inside,
        "`skbedit priority` before disciplines that look at the priority",
        "tc filter",
        &["flowid 1:10"],
    );
}

/// `prio_classify` looks the number of a priority up in the map, after its filters.
#[test]
fn numbers_of_priorities_choose_bands() {
    let prio = "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 clsact\n";
    let filter = |number: &str| {
        format!(
            "tc filter add dev eth0 egress protocol ip flower ip_proto tcp dst_port 6001 action skbedit priority {number}\n"
        )
    };
    let first = |text: &str| {
        let all = keys(text).remove(2);
        let rules = all.split_once("filters = [").unwrap_or_else(|| panic!("{all}")).1;
        rules.split_once(", class = ").unwrap().1[..5].to_owned()
    };
    // The map is 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1; a class of another discipline has the band of 0.
    for (number, class) in
        [("6", "1:1"), ("0x2", "1:3"), ("0:2", "1:3"), ("3", "1:3"), ("7", "1:1"), ("12", "1:3")]
    {
        assert_eq!(first(&format!("{prio}{}", filter(number))), format!("\"{class}\""), "{number}");
    }
    for number in ["0", "8", "5:1"] {
        let all = keys(&format!("{prio}{}", filter(number))).remove(2);
        assert!(all.contains("{ match = { protocol = \"tcp\", destination-port = 6001, family = \"ipv4\" }, class = \"1:2\" }"), "{all}");
    }
    let by_iptables = "tc qdisc add dev eth0 root handle 1: prio\n\
        iptables -t mangle -A POSTROUTING -p tcp --dport 22 -j CLASSIFY --set-class 0:6\n\
        tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dst 10.0.0.1 flowid 1:3\n";
    let all = keys(by_iptables).remove(2);
    let at = |what: &str| all.find(what).unwrap_or_else(|| panic!("{what} in {all}"));
    assert!(at("destination = \"10.0.0.1\" }, class = \"1:3\"") < at("destination-port = 22"), "{all}");
    assert!(at("destination-port = 22, family = \"ipv4\" }, class = \"1:1\"") < at("dscp ="), "{all}");
    for (number, shown) in [("6", "0:6"), ("0", "0:0"), ("5:1", "5:1")] {
        let said = said(&format!("{prio}{}", filter(number)));
        assert!(said.contains(&format!("get the priority {shown} ")), "{said}");
    }
    let nested = "tc qdisc add dev eth0 root handle 1: htb default 1\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 1mbit\n\
        tc qdisc add dev eth0 parent 1:1 pfifo_fast\ntc qdisc add dev eth0 clsact\n";
    fails(
        &format!("{nested}{}", filter("6")),
        "priorities of packets before `pfifo_fast`",
        "tc qdisc add dev eth0 root",
        &["`prio`"],
    );
    fails(
        &by_iptables.replace("handle 1: prio", "handle 1: pfifo_fast").replace("tc filter", "# tc filter"),
        "priorities of packets before `pfifo_fast`",
        "tc qdisc",
        &["write `prio`"],
    );
}

/// `prio_classify`, `htb_classify` and `drr_classify` of the kernel.
#[test]
fn filters_of_missing_classes_do_as_in_the_kernel() {
    let filter = |class: &str| {
        format!(
            "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dport 80 0xffff flowid {class}\n"
        )
    };
    let prio = "tc qdisc add dev eth0 root handle 1: prio priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2\n";
    for (class, band) in [("2:1", "1:1"), ("9:2", "1:2"), ("1:1", "1:1")] {
        let all = keys(&format!("{prio}{}", filter(class))).remove(2);
        assert!(
            all.contains(&format!("{{ name = \"{band}\", match"))
                || all.contains(&format!("class = \"{band}\"")),
            "{class}: {all}"
        );
    }
    // A band that is not there is that of priority 0.
    let none = keys(&format!("{prio}{}", filter("1:4"))).remove(2);
    assert!(!none.contains("destination-port"), "{none}");
    assert!(
        said(&format!("{prio}{}", filter("1:4")))
            .contains("the class 1:4, which is not there: its packets go to 1:3")
    );
    let classes = |kind: &str, more: &str| {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: {kind}\ntc class add dev eth0 parent 1: classid 1:1 {more}\n{}{}",
            filter("1:7"),
            "tc filter add dev eth0 parent 1: protocol all prio 2 matchall flowid 1:1\n"
        );
        keys(&text).remove(2)
    };
    assert!(classes("htb default 1", "htb rate 1mbit").ends_with("cburst = \"1600 bytes\" } ] }"));
    assert!(classes("drr", "drr").contains("destination-port = 80, family = \"ipv4\" }, class = \"drop\""));
    // A discipline without classes drops everything.
    for kind in ["drr", "qfq", "hfsc"] {
        let text = format!("tc qdisc add dev eth0 root handle 1: {kind}\n");
        assert!(keys(&text)[2].contains("default = \"drop\""), "{kind}");
        assert!(said(&text).contains("it drops all packets"));
    }
}

#[test]
fn filters_that_match_nothing_are_explained() {
    for (filter, why) in [
        ("protocol ip route to 10 flowid 1:1", "routes of hosts here have no realms"),
        ("protocol ip cgroup flowid 1:1", "no control group"),
        ("protocol mpls_uc flower mpls_label 5 flowid 1:1", "no packets of this protocol"),
        ("protocol ip flower enc_key_id 11 flowid 1:1", "do not come out of a tunnel device"),
        ("protocol ip u32 match u32 0x0c 0xffff at 0 flowid 1:1", "such a packet does not exist"),
        ("protocol ip u32 match ip dst 10.0.0.1", "has no effect"),
        ("protocol ip u32", "the root table of u32"),
        ("protocol ip basic match 'meta(priority eq 3)' flowid 1:1", "such a packet does not exist"),
    ] {
        let text = format!(
            "tc qdisc add dev eth0 root handle 1: prio priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2\ntc filter add dev eth0 parent 1: {filter}\n"
        );
        assert!(!keys(&text)[2].contains("match"), "{filter}: {}", keys(&text)[2]);
        assert!(said(&text).contains(why), "{filter}: {}", said(&text));
    }
}

/// tc knows protocols by names and by any number of an Ethernet type.
#[test]
fn protocols_that_no_host_sends_match_nothing() {
    for protocol in ["0x88f7", "lldp", "LLDP", "ethercat", "0x22f0", "35063", "profinet"] {
        let text = format!(
            "{INGRESS}tc filter add dev eth0 ingress protocol {protocol} prio 1 matchall action drop\n"
        );
        assert!(keys(&text).is_empty(), "{protocol}");
        assert!(said(&text).contains("hosts here send no packets of this protocol"), "{}", said(&text));
    }
    for (protocol, family) in [("IP", "ipv4"), ("2048", "ipv4"), ("0x86DD", "ipv6")] {
        let all = ingress(&format!("protocol {protocol} prio 1 matchall action drop"));
        assert!(all[0].contains(family), "{all:?}");
    }
    let within = "protocol 802.1Q prio 1 flower vlan_id 5 vlan_ethtype 0x88f7 action drop";
    assert!(ingress(within).is_empty());
    // The number that such a handle begins with.
    let basic = |handle: &str| {
        format!(
            "protocol ip prio 1 handle {handle} basic match 'cmp(u8 at 9 layer network eq 6)' action drop"
        )
    };
    for handle in ["ffff:1", "10:1", "0x77", "010"] {
        assert_eq!(ingress(&basic(handle)), ingress(&basic("5")), "{handle}");
    }
    let text = format!("{INGRESS}tc filter add dev eth0 ingress {}\n", basic("7:9"));
    let deleted = |handle: &str| {
        keys(&format!("{text}tc filter del dev eth0 ingress protocol ip prio 1 handle {handle} basic\n"))
            .is_empty()
    };
    assert!(deleted("7") && deleted("7:1") && deleted("ffff:1") && !deleted("8"));
}

#[test]
fn extended_matches_and_masks_with_gaps() {
    let prio = "tc qdisc add dev eth0 root handle 1: prio priomap 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2 2\ntc filter add dev eth0 parent 1: protocol ip";
    let of = |filter: &str| keys(&format!("{prio} {filter} flowid 1:1\n")).remove(2);
    let interactive = of("basic match 'meta(priority eq 6)'");
    assert!(interactive.contains("dscp = [4, 5, \"af12\","), "{interactive}");
    let bytes = of("basic match 'u32(u8 6 0xff at 9) and u32(u16 80 0xffff at 22)'");
    assert!(bytes.contains("{ protocol = \"tcp\", destination-port = 80"), "{bytes}");
    // Each bit without meaning doubles the networks.
    let gaps = of("u32 match u32 0x0a000100 0xfffeff00 at 12");
    assert!(gaps.contains("source = [\"10.0.1.0/24\", \"10.1.1.0/24\"]"), "{gaps}");
    fails(
        &format!("{prio} basic match 'meta(tcindex eq 6)' flowid 1:1\n"),
        "`meta(tcindex eq 6)` is not understood",
        "meta(",
        &["meta(priority eq N)"],
    );
}

/// Of a kernel since 6.7.
#[test]
fn a_discipline_without_a_handle_replaces_another() {
    let text = "tc qdisc add dev eth0 root handle 1: prio\ntc qdisc add dev eth0 root pfifo limit 7\n";
    assert_eq!(keys(text), ["link.up.queue=\"7 packets\""]);
    assert!(said(text).contains("It replaces the `prio` there"));
    let alike = text.replace("handle 1: prio", "pfifo limit 5");
    fails(&alike, "a discipline already exists there", "tc qdisc", &["use `replace`"]);
    // So does `change`, without a handle.
    let text = "tc qdisc add dev eth0 root netem delay 9ms\ntc qdisc change dev eth0 root pfifo limit 7\n";
    assert_eq!(keys(text), ["link.up.queue=\"7 packets\""]);
    assert!(said(text).contains("It replaces the `netem` there"));
}

/// As sqm-scripts write it: the inner class counts an overhead, the leaves do not.
#[test]
fn classes_of_htb_may_count_differently() {
    let text = "tc qdisc add dev eth0 root handle 1: htb default 12\n\
        tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit overhead 22\n\
        tc class add dev eth0 parent 1:1 classid 1:11 htb rate 128kbit ceil 3mbit prio 20\n\
        tc class add dev eth0 parent 1:1 classid 1:12 htb rate 1mbit ceil 9mbit\n";
    let all = keys(text);
    assert_eq!(all[0], "link.up.overhead=\"frame\"");
    assert_eq!(all[2].matches("overhead = { base = \"frame\", bytes = 22 }").count(), 1, "{}", all[2]);
    assert!(all[2].contains("{ name = \"1:1\", rate = \"10mbit\""), "{}", all[2]);
    // The kernel has priorities from 0 to 7.
    assert!(all[2].contains("priority = 7"), "{}", all[2]);
    let sized = text.replace("root handle", "root stab overhead 10 linklayer ethernet handle");
    fails(&sized, "both `stab` and an overhead of some classes", "stab", &["all of it in `stab`"]);
}

#[test]
fn queues_of_intermediate_devices_and_of_bundles() {
    let text = "tc qdisc add dev eth0 ingress\n\
        tc qdisc add dev ifb0 root handle 1: htb default 1\n\
        tc class add dev ifb0 parent 1: classid 1:1 htb rate 1mbit\n\
        tc filter add dev eth0 parent ffff: protocol all matchall action mirred egress redirect dev ifb0\n";
    assert_eq!(keys(text)[1], "link.down.queue=\"32 packets\"");
    assert_eq!(keys("tc qdisc add dev eth0 root teql0\n"), ["link.up.queue=\"1000 packets\""]);
    assert!(said("tc qdisc add dev eth0 root teql0\n").contains("a link stands for one device"));
}

/// As tcconfig writes it.
#[test]
fn netem_in_a_class_may_contain_another_discipline() {
    let text = "tc qdisc add dev eth0 root handle 1: prio\n\
        tc qdisc add dev eth0 parent 1:1 handle 2: netem delay 100ms\n\
        tc qdisc add dev eth0 parent 2:1 handle 20: tbf rate 1mbit buffer 1600 limit 10000\n";
    let all = keys(text).remove(2);
    assert!(
        all.contains(
            "{ name = \"1:1\", netem = \"delay 100ms\", scheduler = { type = \"tbf\", rate = \"1mbit\""
        ),
        "{all}"
    );
    for (inside, key) in
        [("pfifo limit 5", "queue = \"5 packets\""), ("netem loss 1%", "netem = \"loss 1%\"")]
    {
        let all = keys(&text.replace("tbf rate 1mbit buffer 1600 limit 10000", inside)).remove(2);
        let inner = format!("scheduler = {{ type = \"prio\", classes = [{{ name = \"20:1\", {key} }}] }}");
        assert!(all.contains(&inner), "{inner}: {all}");
    }
    // And a scheduler in the inner one.
    let more = "tc qdisc add dev eth0 parent 20:1 handle 30: htb default 1\n\
        tc class add dev eth0 parent 30: classid 30:1 htb rate 2mbit\n";
    let all =
        keys(&(text.replace("tbf rate 1mbit buffer 1600 limit 10000", "netem loss 1%") + more)).remove(2);
    assert!(all.contains("netem = \"loss 1%\", scheduler = { type = \"htb\""), "{all}");
}

/// From here on: `eth0` sends what it redirects by an intermediate device first.
const REDIRECT: &str = "action mirred egress redirect dev ifb0\n";

#[test]
fn outgoing_packets_pass_an_intermediate_device() {
    let netem = "tc qdisc add dev ifb0 root netem delay 100ms\n";
    let prio = "tc qdisc add dev eth0 root handle 1: prio\n";
    // All of them: the device's own discipline holds none.
    let all = format!("{prio}{netem}tc filter add dev eth0 parent 1: matchall {REDIRECT}");
    assert_eq!(keys(&all), keys("tc qdisc add dev eth0 root netem delay 100ms\n"));
    assert!(said(&all).contains("Packets pass ifb0 first"), "{}", said(&all));
    let hook = format!("{INGRESS}{netem}tc filter add dev eth0 egress matchall {REDIRECT}");
    assert_eq!(keys(&hook), keys(&all));
    // Without disciplines, packets pass through it.
    assert!(keys(&hook.replace(netem, "")).is_empty());
    // Some of them, in a class of their own.
    let some = all.replace("matchall", "protocol ip u32 match ip dport 80 0xffff");
    let scheduler = keys(&some).pop().unwrap();
    assert!(
        scheduler.contains("{ name = \"beside\" }, { name = \"ifb0\", netem = \"delay 100ms\" }")
            && scheduler
                .contains("{ match = { destination-port = 80, family = \"ipv4\" }, class = \"ifb0\" }"),
        "{scheduler}"
    );
    // What the device itself does applies to the others.
    let beside = format!("{some}tc qdisc add dev eth0 parent 1:3 tbf rate 1mbit burst 5kb latency 70ms\n");
    let beside = beside.replace("0xffff action", "0xffff flowid 1:1 action");
    let scheduler = keys(&beside).pop().unwrap();
    assert!(scheduler.contains("{ name = \"beside\", scheduler = { type = \"prio\""), "{scheduler}");
    // A device that is no intermediate one is not on the link.
    let away = some.replace("ifb0", "eth1").replace("tc qdisc add dev eth1 root netem delay 100ms\n", "");
    let scheduler = keys(&away).pop().unwrap();
    assert!(scheduler.contains("class = \"drop\"") || scheduler.contains("\"drop\""), "{scheduler}");
    fails(
        &some.replace("ifb0", "eth1"),
        "outgoing packets leave by eth1, which this script configures",
        "tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 80 0xffff action mirred egress redirect dev eth1",
        &["name an intermediate one"],
    );
}

#[test]
fn two_disciplines_in_a_row_need_netem() {
    let htb = "tc qdisc add dev eth0 root handle 1: htb default 20\n\
        tc class add dev eth0 parent 1: classid 1:10 htb rate 1mbit\n\
        tc class add dev eth0 parent 1: classid 1:20 htb rate 1mbit\n";
    let filter =
        format!("tc filter add dev eth0 parent 1: protocol ip u32 match u32 0 0 flowid 1:10 {REDIRECT}");
    let netem = "tc qdisc add dev ifb0 root netem delay 100ms\n";
    let both = keys(&format!("{htb}{netem}{filter}")).join("\n");
    assert!(both.contains("link.up.delay=\"100ms\"") && both.contains("type = \"htb\""), "{both}");
    // Packets of a class have netem in it.
    let one = filter.replace("match u32 0 0", "match ip dport 80 0xffff");
    let class = keys(&format!("{htb}{netem}{one}")).join("\n");
    assert!(
        class.contains("{ name = \"1:10\", rate = \"1mbit\"") && class.contains("netem = \"delay 100ms\""),
        "{class}"
    );
    // Two that both hold packets are too many.
    let bucket = netem.replace("netem delay 100ms", "tbf rate 1mbit burst 5kb latency 70ms");
    fails(
        &format!("{htb}{bucket}{filter}"),
        "redirected packets wait in the disciplines of ifb0, and then in those of the device itself",
        filter.trim_end(),
        &["keep one of the two"],
    );
}
