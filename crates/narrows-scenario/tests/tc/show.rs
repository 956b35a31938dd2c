//! What is shown of a run in tc's words, and that it can be fed in again.

use std::path::Path;

use narrows_scenario::Scenario;
use narrows_scenario::tc::Script;

use crate::keys;

/// What a direction's scheduler is in tc's words, as a script that puts it there again.
fn shown(scenario: &str) -> (String, narrows_scenario::tc::CurrentConfig) {
    let scenario = Scenario::parse(scenario, "x.toml").unwrap_or_else(|error| panic!("{error}\n{scenario}"));
    let (_, up) = scenario.links[0].directions()[0].clone();
    let tree = up.tc(0x8001).expect("a tree");
    (tree.commands("eth0"), tree)
}

/// What is shown can be fed in again, and shows the same then.
#[track_caller]
pub(crate) fn comes_back(text: &str, unrepresentable: &[&str]) -> narrows_scenario::tc::CurrentConfig {
    let script = Script::parse(text, "x.sh").unwrap_or_else(|error| panic!("{error}"));
    let (again, tree) = shown(&script.scenario_text(false).unwrap());
    let wordless = tree.filters.iter().filter(|filter| filter.words.is_none());
    let wordless = wordless.map(|filter| format!("filter {} of {}", filter.pref, filter.parent));
    let said: Vec<String> = tree.unrepresentable.iter().cloned().chain(wordless).collect();
    assert_eq!(said, unrepresentable, "{again}");
    let second = Script::parse(&again, "again.sh").unwrap_or_else(|error| panic!("{error}\n{again}"));
    let second = second.scenario_text(false).unwrap_or_else(|error| panic!("{error}\n{again}"));
    let (third, same) = shown(&second);
    assert_eq!(third, again);
    if unrepresentable.is_empty() {
        assert_eq!(same, tree, "{again}");
        // Also as a scenario, but for values that the first left to their defaults.
        assert_eq!(
            second.matches("name = ").count(),
            script.scenario_text(false).unwrap().matches("name = ").count()
        );
    }
    tree
}

#[test]
fn hybrid_proportional_delay_shows_as_in_the_reference_implementation() {
    let tree = comes_back(
        "tc qdisc add dev eth0 root handle 1: hpd dscp 46 class 1 dscp 10 class 2\n\
         tc class add dev eth0 parent 1: hpd num 1 qlen 50 ddp 1 gamma 512 weight 512\n\
         tc class add dev eth0 parent 1: hpd num 2 qlen 50 ddp 4 gamma auto weight 768 ewma ewmar restart 7 cycle 1500 limit 2000\n\
         tc class add dev eth0 parent 1: hpd num 3 default qlen 60 ddp 16 ewma ewmape properr 5",
        &[],
    );
    assert_eq!(tree.qdiscs[0].options, "dscp 10 class 2 dscp 46 class 1");
    let numbers = |points: &[usize]| points.iter().map(|at| tree.qdiscs[0].points[*at]).collect::<Vec<_>>();
    assert_eq!(numbers(&[0, 10, 46, 63]), [Some(3), Some(2), Some(1), Some(3)]);
    let options: Vec<&str> = tree.classes.iter().map(|class| class.options.as_str()).collect();
    // Figure 4.10 of the thesis.
    assert_eq!(
        options[0],
        "num 1 ewma ewma limit 0 qlen 50 ddp 1 gamma 512 weight 512 restart 25 cycle 2000 properr 8"
    );
    assert_eq!(
        options[1],
        "num 2 ewma ewmar limit 2000 qlen 50 ddp 4 gamma auto weight 768 restart 7 cycle 1500 properr 8"
    );
    assert_eq!(
        options[2],
        "num 3 default ewma ewmape limit 0 qlen 60 ddp 16 gamma 512 weight 512 restart 25 cycle 2000 properr 5"
    );
}

/// As tc prints them; a scenario's weights are quanta, and its class for the rest has a filter.
#[test]
fn turns_show_as_in_tc() {
    let tree = comes_back(
        "tc qdisc add dev eth0 root handle 1: drr\n\
         tc class add dev eth0 parent 1: classid 1:1 drr quantum 3000\n\
         tc class add dev eth0 parent 1: classid 1:2 drr\n\
         tc qdisc add dev eth0 parent 1:2 handle 2: qfq\n\
         tc class add dev eth0 parent 2: classid 2:1 qfq weight 3\n\
         tc filter add dev eth0 parent 2: protocol ip prio 1 flower ip_proto udp classid 2:1\n\
         tc filter add dev eth0 parent 1: protocol ipv6 prio 1 flower ip_proto tcp dst_port 80 classid 1:1\n\
         tc filter add dev eth0 parent 1: prio 2 matchall classid 1:2",
        &[],
    );
    let lines: Vec<String> =
        tree.classes.iter().map(|class| format!("{} {}", class.handle, class.options)).collect();
    assert_eq!(lines, ["1:1 quantum 3000b", "1:2 quantum 1514b", "2:1 weight 3 maxpkt 1500"]);
    let (_, weights) = shown(
        "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n\
         overhead = \"frame\"\nup.scheduler = { type = \"drr\", classes = [{ name = \"x\", weight = 2, match = { port = 1 } }, { name = \"y\" }] }",
    );
    assert_eq!(weights.classes[0].options, "quantum 3000b");
    assert!(weights.unrepresentable.is_empty(), "{:?}", weights.unrepresentable);
    assert_eq!(weights.filters.len(), 2);
}

/// `ets` as tc prints it: all quanta, and a `priomap` whose other entries are the last band.
#[test]
fn ets_shows_as_in_tc() {
    let tree = comes_back(
        "tc qdisc add dev eth0 root handle 1: ets bands 3 strict 1 quanta 4500 priomap 1 1 1 2 2 1 0 1\n\
         tc qdisc add dev eth0 parent 1:3 handle 3: fq maxrate 5mbit flow_limit 200 weights 65536 65536 20000",
        &[],
    );
    assert_eq!(
        tree.qdiscs[0].options,
        "bands 3 strict 1 quanta 4500 1514 priomap 1 2 1 2 2 2 0 2 2 2 2 2 2 2 2 2"
    );
    let lines: Vec<&str> = tree.classes.iter().map(|class| class.options.as_str()).collect();
    assert_eq!(lines, ["", "quantum 4500", "quantum 1514"]);
    assert_eq!(tree.qdiscs[1].options, "flow_limit 200p weights 65536 65536 20000 maxrate 5Mbit");
}

#[test]
fn cake_shows_as_in_tc() {
    let words =
        "bandwidth 20Mbit diffserv4 dual-srchost wash ingress rtt 50ms ptm overhead 34 mpu 64 memlimit 8Mb";
    let netem =
        "tc qdisc add dev eth0 root handle 1: netem delay 5ms\ntc qdisc add dev eth0 parent 1:1 handle 2:";
    for (before, at) in [("tc qdisc add dev eth0 root handle 2:", 0), (netem, 1)] {
        let tree = comes_back(&format!("{before} cake {words}"), &[]);
        assert_eq!((tree.qdiscs[at].kind.as_str(), tree.qdiscs[at].options.as_str()), ("cake", words));
        assert!(tree.classes.is_empty());
        assert_eq!(
            comes_back(&format!("{before} cake unlimited internet diffserv3"), &[]).qdiscs[at].options,
            ""
        );
    }
}

#[test]
fn sfb_and_hhf_show_as_in_tc() {
    let sfb = "limit 60p max 7p target 9p increment 0.00100 penalty_rate 4 rehash 5000 db 100";
    let hhf = "limit 50p quantum 3000 hh_limit 9 reset_timeout 100ms admit_bytes 5000 evict_timeout 500ms non_hh_weight 4";
    let tree = comes_back(
        &format!(
            "tc qdisc add dev eth0 root handle 1: prio\n\
             tc qdisc add dev eth0 parent 1:1 handle 2: sfb {sfb}\n\
             tc qdisc add dev eth0 parent 1:2 handle 3: hhf {hhf}\n\
             tc qdisc add dev eth0 parent 1:3 handle 4: sfb rehash 0"
        ),
        &[],
    );
    let shown: Vec<(&str, &str)> =
        tree.qdiscs[1..].iter().map(|qdisc| (qdisc.kind.as_str(), qdisc.options.as_str())).collect();
    assert_eq!(shown, [("sfb", sfb), ("hhf", hhf), ("sfb", "rehash 0")]);
}

#[test]
fn trees_show_as_in_tc() {
    let tree = comes_back(
        "tc qdisc add dev eth0 root handle 1: htb default 20\n\
         tc class add dev eth0 parent 1: classid 1:1 htb rate 10mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 0 burst 5kb quantum 3000\n\
         tc class add dev eth0 parent 1:1 classid 1:20 htb rate 8001kbit ceil 10mbit prio 1\n\
         tc qdisc add dev eth0 parent 1:10 handle 10: pfifo limit 30\n\
         tc qdisc add dev eth0 parent 1:20 handle 20: prio bands 4\n\
         tc qdisc add dev eth0 parent 20:1 bfifo limit 3000\n\
         tc qdisc add dev eth0 parent 20:2 netem delay 5ms loss 1%\n\
         tc qdisc add dev eth0 parent 20:3 fq_codel\n\
         tc qdisc add dev eth0 parent 20:4 delay limit 50 reorder true",
        // The class 1:10 gets nothing without a filter.
        &[],
    );
    let lines: Vec<String> =
        tree.classes.iter().map(|class| format!("{} {}", class.handle, class.options)).collect();
    assert_eq!(lines[0], "1:1 rate 10Mbit ceil 10Mbit burst 1600b cburst 1600b");
    assert_eq!(lines[1], "1:10 prio 0 quantum 3000 rate 2Mbit ceil 10Mbit burst 5Kb cburst 1600b");
    assert_eq!(lines[2], "1:20 prio 1 rate 8001Kbit ceil 10Mbit burst 1600b cburst 1600b");
    assert_eq!(tree.qdiscs[0].options, "r2q 10 default 0x20");
    let inner = tree.qdiscs.iter().find(|qdisc| qdisc.kind == "prio").unwrap();
    assert_eq!(inner.parent.as_deref(), Some("1:20"));
    assert_eq!(inner.options, "bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1");
    let inside = |kind: &str| tree.qdiscs.iter().find(|qdisc| qdisc.kind == kind).unwrap().options.clone();
    assert_eq!(inside("bfifo"), "limit 3000b");
    assert_eq!(inside("netem"), "delay 5ms loss 1%");
    assert_eq!(inside("delay"), "limit 50 reorder true");
    assert_eq!(inside("fq_codel"), "");
}

#[test]
fn service_curves_show_as_in_tc() {
    let tree = comes_back(
        "tc qdisc add dev eth0 root handle 1: hfsc default 20\n\
         tc class add dev eth0 parent 1: classid 1:1 hfsc ls m2 10mbit ul m2 10mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:10 hfsc rt umax 250b dmax 5ms rate 200kbit ls d 5ms m2 1mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:20 hfsc sc m1 5mbit d 10ms m2 1mbit\n\
         tc filter add dev eth0 parent 1: u32 match ip dport 80 0xffff flowid 1:10",
        &[],
    );
    assert_eq!(tree.qdiscs[0].options, "default 20");
    let options: Vec<&str> = tree.classes.iter().map(|class| class.options.as_str()).collect();
    assert_eq!(
        options,
        [
            "ls m1 0bit d 0us m2 10Mbit ul m1 0bit d 0us m2 10Mbit",
            "rt m1 400Kbit d 5ms m2 200Kbit ls m1 0bit d 5ms m2 1Mbit",
            "sc m1 5Mbit d 10ms m2 1Mbit",
        ]
    );
}

#[test]
fn other_trees_show_as_in_tc() {
    let tree = comes_back(
        "tc qdisc add dev eth0 root handle 1: cbq bandwidth 10mbit avpkt 1000\n\
         tc class add dev eth0 parent 1: classid 1:1 cbq rate 5mbit bounded prio 3 allot 1514 weight 1mbit\n\
         tc class add dev eth0 parent 1:1 classid 1:2 cbq rate 1mbit isolated maxburst 7 minburst 2 ewma 4 avpkt 500",
        &[],
    );
    let options: Vec<&str> = tree.classes.iter().map(|class| class.options.as_str()).collect();
    assert_eq!(
        options,
        [
            "rate 5Mbit prio 3 allot 1514b weight 1000000bit bounded",
            "rate 1Mbit avpkt 500b maxburst 7 minburst 2 ewma 4 isolated"
        ]
    );
    // No filter and no default: what is left goes unshaped, and is no class of tc's.
    let tree = comes_back(
        "tc qdisc add dev eth0 root handle 1: htb\n\
         tc class add dev eth0 parent 1: classid 1:5 htb rate 1mbit\n\
         tc filter add dev eth0 parent 1: u32 match ip dport 80 0xffff flowid 1:5",
        &[],
    );
    assert_eq!((tree.classes.len(), tree.qdiscs[0].options.as_str()), (1, "r2q 10 default 0x0"));
    assert_eq!(tree.filters[0].words.as_deref(), Some("u32 match ip dport 80 0xffff"));
    for latency in ["lat 50ms", "limit 15000b"] {
        let tree = comes_back(
            &format!(
                "tc qdisc add dev eth0 root handle 1: tbf rate 1mbit burst 5kb {latency}\ntc qdisc add dev eth0 parent 1:1 handle 10: netem delay 20ms"
            ),
            &[],
        );
        let shown: Vec<String> =
            tree.qdiscs.iter().map(|qdisc| format!("{} {}", qdisc.kind, qdisc.options)).collect();
        // Its own limit is of no effect, and not known any more: what is shown is what netem holds, in frames.
        assert_eq!(shown, ["tbf rate 1Mbit burst 5Kb limit 1514000b", "netem delay 20ms"]);
        assert_eq!(tree.qdiscs[1].parent.as_deref(), Some("8001:1"));
    }
}

#[test]
fn classes_with_names_show_with_numbers() {
    let link = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n[links.l.up]\nrate = \"5mbit\"\nqueue = \"80 packets\"\noverhead = \"frame\"\n";
    let (script, tree) = shown(&format!(
        "{link}scheduler = {{ type = \"hpd\", bound-order = \"earliest-deadline\", classes = [\
         {{ name = \"voice\", ddp = 1, limit = \"1500ns\", match = {{ dscp = \"ef\" }} }}, {{ name = \"1:1\", ddp = 8 }}] }}\n"
    ));
    assert_eq!(tree.unrepresentable, ["bound-order of 1:"], "{script}");
    let classes: Vec<(&str, &str)> =
        tree.classes.iter().map(|class| (class.handle.as_str(), class.name.as_str())).collect();
    assert_eq!(classes, [("1:2", "voice"), ("1:1", "1:1")]);
    assert!(tree.classes[0].options.starts_with("num 2 ewma ewma limit 1500ns qlen 80 ddp 1 gamma auto"));
    assert_eq!(tree.qdiscs[0].options, "limit 80 rate 5mbit");
    assert_eq!(keys(&script)[0], "link.up.rate=\"5mbit\"");
    // What a person's words cannot say is named.
    let (_, tree) = shown(&format!(
        "{link}scheduler = {{ type = \"prio\", classes = [{{ name = \"x\", match = {{ protocol = \"udp\" }} }}, {{ name = \"y\" }}] }}\n"
    ));
    assert_eq!(tree.qdiscs[1].options, "bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1");
    let filter = &tree.filters[0];
    assert_eq!((filter.words.as_deref(), filter.class.as_str()), (Some("flower ip_proto udp"), "8002:1"));
    let none = Scenario::parse(&format!("{link}scheduler = \"fq_codel\"\n"), "x").unwrap();
    assert_eq!(none.links[0].directions()[0].1.tc(0x8001), None);
}

/// What the examples come to can be shown and fed in again, too.
#[test]
fn examples_come_back() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/tc");
    let mut seen = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let script = Script::load(entry.unwrap().path()).unwrap();
        let scenario = script.scenario_text(false).unwrap();
        let parsed = Scenario::parse(&scenario, "x.toml").unwrap();
        if parsed.links[0].directions()[0].1.tc(0x8001).is_none() {
            continue;
        }
        let (again, tree) = shown(&scenario);
        let second = Script::parse(&again, "again.sh").unwrap_or_else(|error| panic!("{error}\n{again}"));
        let (_, same) = shown(&second.scenario_text(false).unwrap());
        assert_eq!(same.classes, tree.classes, "{again}");
        // Filters are not shown, and without them the map of `prio` is another.
        for (same, qdisc) in same.qdiscs.iter().zip(&tree.qdiscs) {
            assert_eq!((&same.kind, &same.handle, &same.parent), (&qdisc.kind, &qdisc.handle, &qdisc.parent));
            assert!(same.options.starts_with(&qdisc.options), "{again}");
        }
        assert_eq!(same.qdiscs.len(), tree.qdiscs.len(), "{again}");
        seen += 1;
    }
    assert!(seen >= 4, "only {seen}");
}
