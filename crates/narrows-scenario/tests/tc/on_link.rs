//! Commands at work on links that exist.

use narrows_scenario::Scenario;
use narrows_scenario::tc::Script;

const LINK: &str = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n[links.l.up]\nrate = \"5mbit\"\noverhead = \"frame\"\n";
const HTB: &str = "tc qdisc add dev d root handle 1: htb default 20\n\
     tc class add dev d parent 1: classid 1:1 htb rate 10mbit\n\
     tc class add dev d parent 1:1 classid 1:10 htb rate 2mbit ceil 10mbit prio 0\n\
     tc class add dev d parent 1:1 classid 1:20 htb rate 8mbit ceil 10mbit prio 1\n\
     tc filter add dev d parent 1: prio 1 u32 match ip dport 80 0xffff flowid 1:10\n";

/// The scenario of a script on the way up of a link.
fn of(script: &str) -> Scenario {
    let script = Script::parse(script, "x.sh").unwrap();
    Scenario::parse(&script.scenario_text(false).unwrap(), "x").unwrap()
}

fn change(scenario: &Scenario, link: &str, commands: &str) -> Result<Scenario, String> {
    let script = Script::parse(commands, "tc").map_err(|error| error.to_string())?;
    let links = script.changed_devices().into_iter().map(|name| (name.to_owned(), link.to_owned())).collect();
    let assignments = script.changes(scenario, &links).map_err(|error| error.to_string())?;
    let mut after = scenario.clone();
    after.set(&assignments).unwrap_or_else(|error| panic!("{error}\n{assignments:?}"));
    Ok(after)
}

/// Commands on a link that a script has made do what they do at the end of the script.
#[test]
fn on_a_run_is_as_in_the_script() {
    let prio = "tc qdisc add dev d root handle 2: prio bands 4\n";
    let marked = "tc qdisc add dev d root handle 2: prio\ntc filter add dev d parent 2: prio 1 u32 match ip dport 80 0xffff flowid 2:3\n";
    let own =
        &format!("{marked}tc filter add dev d parent 2: prio 2 u32 match ip dsfield 0xb8 0xfc flowid 2:1\n");
    let ets = &marked.replace("prio\n", "ets bands 3 strict 3 priomap 2 1 0 0 2 1 1 0\n");
    let hpd = "tc qdisc add dev d root handle 1: hpd dscp 46 class 1\n\
         tc class add dev d parent 1: hpd num 1 qlen 50 ddp 1\n\
         tc class add dev d parent 1: hpd num 2 default qlen 60 ddp 4 weight 256\n";
    let hfsc = "tc qdisc add dev d root handle 1: hfsc default 20\n\
         tc class add dev d parent 1: classid 1:10 hfsc sc m1 2mbit d 10ms m2 1mbit ul m2 4mbit\n\
         tc class add dev d parent 1: classid 1:20 hfsc ls m2 1mbit\n\
         tc filter add dev d parent 1: prio 1 u32 match ip dport 80 0xffff flowid 1:10\n";
    let fed = "tc qdisc add dev d root handle 1: netem delay 10ms\ntc qdisc add dev d parent 1:1 handle 2: htb default 1\n\
         tc class add dev d parent 2: classid 2:1 htb rate 1mbit\n";
    let drr = "tc qdisc add dev d root handle 1: drr\ntc class add dev d parent 1: classid 1:1 drr quantum 3000\n\
         tc class add dev d parent 1: classid 1:2 drr\n\
         tc filter add dev d parent 1: prio 1 u32 match ip dport 80 0xffff flowid 1:1\n\
         tc filter add dev d parent 1: prio 2 u32 match ip dport 90 0xffff flowid 1:2\n";
    let qfq = &drr.replace("drr quantum 3000", "qfq weight 3 maxpkt 1000").replace("drr", "qfq");
    let counted = &HTB.replace("1: htb", "1: stab overhead 20 mpu 64 linklayer atm htb");
    for (script, more) in [
        (HTB, "tc class change dev d classid 1:10 htb rate 1mbit ceil 3mbit prio 2\n"),
        (counted, "tc class change dev d classid 1:10 htb rate 1mbit ceil 3mbit prio 2\n"),
        (
            HTB,
            "tc class add dev d parent 1:1 classid 1:30 htb rate 1mbit\ntc filter add dev d parent 1: protocol ip prio 2 flower ip_proto udp flowid 1:30\n",
        ),
        (HTB, "tc filter del dev d parent 1: prio 1\n"),
        (HTB, "tc filter add dev d parent 1: u32 match ip sport 22 0xffff flowid 1:20\n"),
        (HTB, "tc qdisc add dev d parent 1:20 fq_codel target 7ms\n"),
        (
            HTB,
            "tc qdisc add dev d parent 1:20 handle 5: prio\ntc qdisc add dev d parent 5:1 netem delay 5ms\n",
        ),
        (HTB, "tc filter del dev d parent 1: prio 1\ntc class del dev d classid 1:10\n"),
        (HTB, "tc qdisc del dev d root\n"),
        (HTB, "tc qdisc replace dev d root handle 2: prio\n"),
        (prio, "tc filter add dev d parent 2: prio 1 u32 match ip dport 5060 0xffff flowid 2:4\n"),
        (prio, "tc qdisc change dev d root prio bands 3 priomap 0 1 2 0 1 2 0 1 2 0 1 2 0 1 2 0\n"),
        // The bands by priority are no filters.
        (marked, "tc filter del dev d parent 2:\n"),
        (marked, "tc filter add dev d parent 2: prio 10 u32 match ip protocol 1 0xff flowid 2:3\n"),
        (own, "tc filter del dev d parent 2: prio 2\n"),
        (own, "tc filter add dev d parent 2: prio 7 u32 match ip protocol 1 0xff flowid 2:2\n"),
        (ets, "tc filter del dev d parent 2:\n"),
        (ets, "tc filter add dev d parent 2: prio 10 u32 match ip protocol 1 0xff flowid 2:1\n"),
        (hpd, "tc qdisc change dev d root hpd dscp 34 class 1\n"),
        (hpd, "tc qdisc change dev d root hpd dscp 46 class 0\n"),
        (
            hpd,
            "tc class add dev d parent 1: hpd num 3 ddp 16\ntc qdisc change dev d root hpd dscp 8 class 3\n",
        ),
        (hpd, "tc class change dev d classid 1:2 hpd num 2 default qlen 60 ddp 8\n"),
        (drr, "tc class change dev d classid 1:2 drr quantum 5000\ntc class change dev d classid 1:1 drr\n"),
        (
            drr,
            "tc class add dev d parent 1: classid 1:3 drr\ntc filter add dev d parent 1: protocol ip flower ip_proto tcp flowid 1:3\n",
        ),
        (drr, "tc filter add dev d parent 1: prio 9 matchall flowid 1:2\n"),
        (drr, "tc filter del dev d parent 1: prio 1\ntc class del dev d classid 1:1\n"),
        (drr, "tc qdisc add dev d parent 1:2 sfq\n"),
        (qfq, "tc class change dev d classid 1:1 qfq weight 9\n"),
        (fed, "tc qdisc change dev d root netem delay 30ms\n"),
        (hfsc, "tc class change dev d classid 1:10 hfsc ls m2 3mbit\n"),
        (hfsc, "tc qdisc change dev d root handle 1: hfsc default 10\n"),
        (fed, "tc class change dev d classid 2:1 htb rate 3mbit\n"),
        (
            "tc qdisc add dev d root cake bandwidth 9mbit docsis dual-srchost memlimit 1Mb\n",
            "tc qdisc change dev d root cake bandwidth 7mbit besteffort raw\n",
        ),
        (HTB, "tc qdisc add dev d parent 1:20 cake rtt 30ms besteffort wash\n"),
        (
            "tc qdisc add dev d root netem delay 1ms\n",
            "tc qdisc replace dev d root handle 2: tbf rate 1mbit burst 5kb latency 70ms\n",
        ),
    ] {
        let changed =
            change(&of(script), "link.up", more).unwrap_or_else(|error| panic!("{error}\n{script}{more}"));
        let whole = of(&format!("{script}{more}"));
        let said = |scenario: &Scenario| scenario.links[0].directions()[0].1.clone();
        let (changed, whole) = (said(&changed), said(&whole));
        // A tree without one of NetEm's is compared as it is shown: a scenario may say it in more than one way.
        assert_eq!(changed.tc(0x8001), whole.tc(0x8001), "{script}{more}");
        assert_eq!(changed.netem().qdisc, whole.netem().qdisc, "{script}{more}");
        assert_eq!(changed.scheduler.is_some(), whole.scheduler.is_some(), "{script}{more}");
    }
}

/// On a run a device is a link, whatever its name.
#[test]
fn names_of_links_are_no_intermediate_devices() {
    let text = LINK.replace("links.l", "links.wifb");
    let scenario = Scenario::parse(&text, "x").unwrap();
    let script = Script::parse(
        "tc qdisc replace dev wifb.up root pfifo limit 7\ntc qdisc replace dev l root pfifo limit 8\n",
        "tc",
    )
    .unwrap();
    let links =
        [("wifb.up", "wifb.up"), ("l", "wifb.down")].map(|(name, link)| (name.to_owned(), link.to_owned()));
    assert_eq!(script.changed_devices(), ["wifb.up", "l"]);
    let changes = script.changes(&scenario, &links.into()).unwrap();
    assert!(changes.iter().any(|change| change.starts_with("wifb.up.queue=")), "{changes:?}");
}

/// The order of filters is kept, and so are those that tc has no words for; classes keep their names.
#[test]
fn names_and_conditions_of_a_scenario_are_kept() {
    let scheduler = "scheduler = { type = \"htb\", classes = [\
         { name = \"voice\", rate = \"1mbit\", match = [{ dscp = [\"ef\", \"cs5\"], length = \"..300 bytes\" }, { protocol = \"udp\" }] }, \
         { name = \"rest\", rate = \"4mbit\" }] }\n";
    let scenario = Scenario::parse(&format!("{LINK}{scheduler}"), "x").unwrap();
    let tree = |scenario: &Scenario| scenario.links[0].directions()[0].1.tc(0x8001).unwrap();
    let shown = tree(&scenario);
    assert_eq!(
        (shown.filters[0].words.as_deref(), shown.filters[1].words.as_deref()),
        (None, Some("flower ip_proto udp"))
    );
    let (voice, rest) = (&shown.classes[0].handle, &shown.classes[1].handle);
    let root = &shown.qdiscs[1].handle;
    let commands = format!(
        "class change dev l.up classid {rest} htb rate 3mbit\nfilter add dev l.up parent {root} prio 9 u32 match ip dport 53 0xffff flowid {voice}"
    );
    let after = change(&scenario, "l.up", &commands).unwrap();
    let new = tree(&after);
    let names: Vec<&str> = new.classes.iter().map(|class| class.name.as_str()).collect();
    assert_eq!(names, ["voice", "rest"]);
    let conditions: Vec<&str> = new.filters.iter().map(|filter| filter.condition.as_str()).collect();
    assert_eq!(
        conditions[..2],
        shown.filters.iter().map(|filter| filter.condition.as_str()).collect::<Vec<_>>()[..]
    );
    assert_eq!(new.filters[2].words.as_deref(), Some("u32 match ip dport 53 0xffff"));
    // The rate of the link and its other way are as they were.
    let kept = |scenario: &Scenario| {
        let directions = scenario.links[0].directions();
        (directions[0].1.rate, directions[1].1.clone())
    };
    assert_eq!(kept(&after), kept(&scenario));
}

#[test]
fn what_cannot_be_is_said_in_the_commands_own_text() {
    let htb = of(HTB);
    let fails = |scenario: &Scenario, commands: &str, says: &[&str]| {
        let error = change(scenario, "link.up", commands).expect_err(commands);
        for one in says {
            assert!(error.contains(one), "{one:?} is missing in\n{error}");
        }
    };
    fails(
        &htb,
        "class add dev d parent 1: classid 1:10 htb rate 1mbit",
        &["the class 1:10 already exists", "--> tc:1:1"],
    );
    fails(&htb, "class del dev d classid 1:10", &["a filter sends packets to the class 1:10"]);
    fails(
        &htb,
        "class del dev d classid 1:20",
        &["the default class of 1:, 1:20, does not exist", "--batch"],
    );
    fails(&htb, "class del dev d classid 1:7", &["there is no class 1:7"]);
    fails(
        &htb,
        "filter del dev d parent 1: prio 3",
        &["there is no filter of the priority 3", "there is `1`"],
    );
    fails(&htb, "qdisc add dev d root prio", &["a discipline already exists there"]);
    fails(&htb, "qdisc replace dev d root handle 1: hpd", &["`hpd` without a class", "--batch"]);
    fails(&htb, "qdisc del dev d parent 1:10", &["there is nothing to delete"]);
    fails(
        &htb,
        "filter add dev d parent ffff: u32 match u32 0 0 police rate 1mbit burst 10k drop",
        &["policer"],
    );
    let wf2q = "scheduler = { type = \"wf2q+\", classes = [{ name = \"x\", match = { protocol = \"udp\" } }, { name = \"y\" }] }\n";
    let wf2q = Scenario::parse(&format!("{LINK}{wf2q}"), "x").unwrap();
    let error = change(&wf2q, "l.up", "qdisc replace dev d root prio").expect_err("no words");
    assert!(
        error.contains("settings that tc cannot express: scheduler")
            && error.contains("narrows set l.up.scheduler"),
        "{error}"
    );
}
