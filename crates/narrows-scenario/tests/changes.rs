//! Live changes and the timeline.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use narrows_core::queue::Bound;
use narrows_core::{Change, Duration, Order, Rate, Time};
use narrows_scenario::{Files, LinkFlags, Scenario, Way};

fn flags() -> Scenario {
    let flags = LinkFlags::default().with("rate", "10mbit/1mbit").with("delay", "50ms").with("jitter", "1ms");
    Scenario::from_flags(&flags).unwrap()
}

/// The names of the links and kinds of the changes.
fn kinds(changes: &[(String, Change)]) -> Vec<String> {
    let kind =
        |change: &Change| format!("{change:?}").split(['(', ' ']).next().unwrap_or_default().to_string();
    changes.iter().map(|(link, change)| format!("{link} {}", kind(change))).collect()
}

#[test]
fn a_change_of_one_direction_or_of_both() {
    let mut scenario = flags();
    let changes = scenario.assign("link.down.rate=2mbit").unwrap();
    assert_eq!(kinds(&changes), ["link.down Service"]);
    let changes = scenario.assign("link.rate=3mbit").unwrap();
    assert_eq!(kinds(&changes), ["link.up Service", "link.down Service"]);
    assert!(scenario.assign("link.rate=3mbit").unwrap().is_empty(), "nothing is different");
    assert_eq!(
        scenario.links[0].direction(Way::Up).expect("a wire").rate,
        Rate::from_bits_per_second(3_000_000)
    );
}

#[test]
fn every_key_and_part_becomes_its_change() {
    for (text, expected) in [
        ("link.up.delay=20ms", "Delay"),
        ("link.up.delay={ uniform = { low = \"1ms\", high = \"2ms\" } }", "Delay"),
        ("link.up.jitter=2ms", "Delay"),
        ("link.up.order=allow", "Settings"),
        ("link.up.burst=3kB", "Burst"),
        ("link.up.delay.order=allow", "Settings"),
        ("link.up.queue=13 packets", "QueueBound"),
        ("link.up.queue.bound=\"64kB\"", "QueueBound"),
        ("link.up.queue.drop=head", "Queue"),
        ("link.up.overhead=ethernet", "Overhead"),
        ("link.up.loss=1%", "WireLoss"),
        ("link.up.loss.ingress=0.01", "IngressLoss"),
        ("link.up.loss.wire=2%", "WireLoss"),
        ("link.up.duplicate=1%", "Duplication"),
        ("link.up.corrupt=1%", "Corruption"),
        ("link.up.reorder=25% gap 5", "Reorder"),
        ("link.up.mtu=1400", "Settings"),
        ("link.up.line-limit=100 packets", "Settings"),
        ("link.up.outage=true", "Service"),
    ] {
        let mut scenario = flags();
        if text.contains("uniform") {
            scenario.assign("link.jitter=0ms").unwrap();
        }
        let changes = scenario.assign(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kinds(&changes), [format!("link.up {expected}")], "{text}");
    }
}

#[test]
fn a_new_delay_keeps_the_jitter_and_a_part_keeps_the_others() {
    let mut scenario = flags();
    scenario.assign_all(&["link.delay=20ms", "link.queue.bound=7 packets", "link.queue.drop=head"]).unwrap();
    let up = scenario.links[0].direction(Way::Up).expect("a wire");
    assert_eq!(up.effective_delay().to_string(), "normal, 20ms ± 1ms");
    assert_eq!(up.bound(), Bound::Packets(7));
    scenario.assign("link.queue.drop=tail").unwrap();
    assert_eq!(scenario.links[0].direction(Way::Up).expect("a wire").bound(), Bound::Packets(7));
}

#[test]
fn an_outage_keeps_the_rate_in_mind() {
    let mut scenario = flags();
    let rate = scenario.links[0].direction(Way::Down).expect("a wire").rate;
    scenario.assign("link.outage=true").unwrap();
    assert_eq!(scenario.links[0].direction(Way::Down).expect("a wire").effective_rate(), Rate::DOWN);
    assert!(scenario.explain().to_string().contains("down (an outage; else 10mbit)"));
    // A new rate during the outage changes nothing yet.
    assert!(scenario.assign("link.down.rate=10mbit").unwrap().is_empty());
    scenario.assign("link.outage=false").unwrap();
    assert_eq!(scenario.links[0].direction(Way::Down).expect("a wire").effective_rate(), rate);
}

#[test]
fn a_default_bound_stays_when_the_rate_changes() {
    let mut scenario = flags();
    let before = scenario.links[0].direction(Way::Down).expect("a wire").bound();
    // 10 Mbit/s · 100 ms / (8 · 1498) = 83.4…
    assert_eq!(before, Bound::Packets(84));
    let changes = scenario.assign("link.down.rate=100mbit").unwrap();
    assert_eq!(kinds(&changes), ["link.down Service"]);
    assert_eq!(scenario.links[0].direction(Way::Down).expect("a wire").bound(), before);
}

#[test]
fn a_shared_medium_changes_as_one() {
    let text =
        "[hosts.a]\n[hosts.b]\n[links.air]\nbetween = [\"a\", \"b\"]\nshared = true\nrate = \"1mbit\"\n";
    let mut scenario = Scenario::parse(text, "t").unwrap();
    assert_eq!(kinds(&scenario.assign("air.rate=2mbit").unwrap()), ["air Service"]);
    assert!(scenario.assign("air.up.rate=2mbit").unwrap_err().to_string().contains("has no `up` of its own"));
}

#[test]
fn several_changes_are_made_together_or_not_at_all() {
    let mut scenario = flags();
    let before = scenario.clone();
    assert!(scenario.assign_all(&["link.rate=5mbit", "link.delay=oops"]).is_err());
    assert_eq!(scenario, before);
    // A jitter and a distribution do not go together, but one may replace the other in one step.
    let both =
        ["link.jitter=0ms", "link.delay={ uniform = { low = \"1ms\", high = \"9ms\" }, order = \"allow\" }"];
    let changes = scenario.assign_all(&both).unwrap();
    assert_eq!(
        kinds(&changes),
        ["link.up Delay", "link.up Settings", "link.down Delay", "link.down Settings"]
    );
    assert_eq!(scenario.links[0].direction(Way::Up).expect("a wire").settings.order, Order::Allow);
}

const TIMELINE: &str = r#"
[hosts.a]
[hosts.b]
[links.l]
between = ["a", "b"]
rate = "10mbit"

[[timeline]]
at = "5s"
every = "10s"
set.l.outage = true

[[timeline]]
at = "6s"
every = "10s"
times = 2
set = { "l.outage" = false, l.down.rate = "5mbit", "l.up.loss" = { ingress = "1%" } }

[[timeline]]
at = "500ms"
from = "first-packet"
set = { l.delay = "3ms" }

[[timeline]]
at = "5s"
set = { l.queue = "9 packets" }
"#;

#[test]
fn a_timeline_gives_its_events_in_order_and_loops_for_ever() {
    let scenario = Scenario::parse(TIMELINE, "t").unwrap();
    let mut timeline = scenario.timeline();
    assert_eq!(timeline.peek(), Some(Time::from_nanos(5_000_000_000)));
    let at = |seconds: f64| Time::from_nanos((seconds * 1e9) as u64);
    let mut take = |n: usize| -> Vec<(Time, Vec<String>)> {
        let mut all = Vec::new();
        for _ in 0..n {
            all.extend(timeline.next().map(|event| (event.at, event.changes)));
            if all.len() == 2 {
                timeline.first_packet(at(5.7));
            }
        }
        all
    };
    let events = take(6);
    let set = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let back = ["l.outage=false", "l.down.rate=5mbit", "l.up.loss={ ingress = \"1%\" }"];
    assert_eq!(
        events,
        [
            (at(5.0), set(&["l.outage=true"])), // at one instant in the order of the file
            (at(5.0), set(&["l.queue=9 packets"])),
            (at(6.0), set(&back)),
            (at(6.2), set(&["l.delay=3ms"])), // 5.7 s and 500 ms
            (at(15.0), set(&["l.outage=true"])),
            (at(16.0), set(&back)),
        ]
    );
    // The second loop is over, the first goes on.
    let hundredth =
        scenario.timeline().filter(|event| event.changes == set(&["l.outage=true"])).nth(100).unwrap();
    assert_eq!(hundredth.at, at(1005.0));
}

#[test]
fn what_the_timeline_says_can_be_assigned() {
    let mut scenario = Scenario::parse(TIMELINE, "t").unwrap();
    let mut timeline = scenario.timeline();
    timeline.first_packet(Time::ZERO);
    let mut changes = 0;
    for event in timeline.take(20) {
        changes += scenario.assign_all(&event.changes).unwrap_or_else(|error| panic!("{error}")).len();
    }
    // Both ways: the delay, the bound, three outages that begin and two that end; and the loss, one way. The last
    // outages find the link down already.
    assert_eq!(changes, 2 * (1 + 1 + 3 + 2) + 1);
    assert_eq!(
        scenario.links[0].direction(Way::Down).expect("a wire").rate,
        Rate::from_bits_per_second(5_000_000)
    );
    assert_eq!(scenario.duration, None::<Duration>);
}

#[test]
fn of_one_instant_the_order_does_not_decide_what_is_right() {
    let mut scenario = flags();
    scenario.assign("link.queue=codel").unwrap();
    for texts in [
        ["link.queue.target=150ms", "link.queue.interval=1s"],
        ["link.queue.interval=100ms", "link.queue.target=5ms"],
    ] {
        let changes = scenario.assign_all(&texts).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(kinds(&changes), ["link.up Queue", "link.down Queue"]);
    }
    scenario.assign_all(&["link.queue=9 packets", "link.scheduler=dcf", "link.rate=11mbit"]).unwrap();
    scenario.assign_all(&["link.rate=10mbit", "link.scheduler=fq_codel"]).unwrap();
    // Where it does not matter to what is right, the last one counts.
    scenario.assign_all(&["link.rate=2mbit", "link.rate=1mbit"]).unwrap();
    assert_eq!(
        scenario.links[0].direction(Way::Up).expect("a wire").rate,
        Rate::from_bits_per_second(1_000_000)
    );
    let before = scenario.clone();
    let error = scenario.assign_all(&["link.queue.target=1s", "link.rate=3mbit"]).unwrap_err().to_string();
    assert!(error.contains("unknown key `target`") && error.contains("set:1:19"), "{error}");
    assert_eq!(scenario, before, "all or none");
}

/// What `link.down.KEY` is after these assignments, as it stands in a file.
fn after(texts: &[&str], key: &str) -> String {
    let mut scenario = Scenario::from_flags(&LinkFlags::default()).unwrap();
    for text in texts {
        scenario.assign(text).unwrap_or_else(|error| panic!("{error}"));
    }
    let written = scenario.to_toml();
    let line = written.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
    line.unwrap_or_else(|| panic!("{written}")).to_string()
}

#[test]
fn parts_of_delays_losses_and_others() {
    let normal = "link.delay={ normal = { mean = \"10ms\", sd = \"2ms\" } }";
    assert_eq!(
        after(&[normal, "link.delay.correlation=20ms", "link.delay.normal.sd=3ms"], "delay"),
        "{ normal = { mean = \"10ms\", sd = \"3ms\" }, correlation = \"20ms\" }"
    );
    // A jitter is a part of the delay from then on.
    assert_eq!(
        after(&["link.delay=10ms", "link.jitter=1ms", "link.delay.maximum=15ms"], "delay"),
        "{ normal = { mean = \"10ms\", sd = \"1ms\" }, maximum = \"15ms\" }"
    );
    let bursts = "link.loss={ gilbert-elliott = { p = 0.01, r = 0.3 } }";
    assert_eq!(
        after(&[bursts, "link.loss.gilbert-elliott.p=5%", "link.loss.ecn=true"], "loss"),
        "{ gilbert-elliott = { p = \"5%\", r = \"30%\" }, ecn = true }"
    );
    assert_eq!(
        after(&["link.loss=1%", "link.loss.correlation=25%", "link.loss.ingress=2%"], "loss"),
        "{ ingress = \"2%\", wire = { rate = \"1%\", correlation = \"25%\" } }"
    );
    assert_eq!(
        after(&["link.corrupt=1%", "link.corrupt.correlation=5%"], "corrupt"),
        "{ rate = \"1%\", correlation = \"5%\" }"
    );
    assert_eq!(
        after(&["link.slots={ gap = \"1ms\" }", "link.slots.packets=4"], "slots"),
        "{ gap = \"1ms\", packets = 4 }"
    );
    assert_eq!(
        after(&["link.delay={ feed = \"a\" }", "link.delay.on-empty=last"], "delay"),
        "{ feed = \"a\", on-empty = \"last\" }"
    );

    assert_eq!(
        after(&["link.mtu=1400", "link.mtu.policy=answer"], "mtu"),
        "{ bytes = 1400, policy = \"answer\" }"
    );
    assert_eq!(
        after(&["link.overhead=frame", "link.overhead.bytes=4"], "overhead"),
        "{ base = \"frame\", bytes = 4 }"
    );
    assert_eq!(
        after(&["link.reorder=25% gap 5", "link.reorder.rate=30%"], "reorder"),
        "{ probability = \"30%\", gap = 5 }"
    );
    assert_eq!(
        after(
            &[
                "link.slots={ gap = { uniform = { low = \"1ms\", high = \"2ms\" } } }",
                "link.slots.gap.uniform.low=0ms"
            ],
            "slots"
        ),
        "{ gap = { uniform = { low = \"0s\", high = \"2ms\" } } }"
    );

    let mut scenario = Scenario::from_flags(&LinkFlags::default()).unwrap();
    let error = scenario.assign("link.slots.packets=4").unwrap_err().to_string();
    assert!(error.contains("there is no `slots` to change a part of"), "{error}");
    let error = scenario.assign("link.delay.corelation=4").unwrap_err().to_string();
    assert!(error.contains("did you mean `delay.correlation`?"), "{error}");
}

#[test]
fn a_link_whose_delay_was_set_to_zero_can_follow_a_trace_of_delays() {
    let text = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\ndelay = \"10ms\"\n";
    let files = Files::given([("d.csv", b"time_s,delay_ms\n0,20\n1,40\n".to_vec())]);
    let mut scenario = Scenario::parse_with(text, "net.toml", files).unwrap();
    let error = scenario.assign("l.up.trace=d.csv").unwrap_err().to_string();
    assert!(error.contains("`delay` set the delay"), "{error}");
    scenario.assign_at(Time::ZERO, &["l.up.delay=0ms", "l.up.trace=d.csv"]).unwrap();
    assert_eq!(
        scenario.links[0].direction(Way::Up).expect("a wire").mean_delay(),
        Some(Duration::from_millis(30))
    );
}

#[test]
fn a_trace_begins_when_it_is_set_and_its_file_is_read_once() {
    let folder = std::env::temp_dir().join(format!("narrows-changes-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("path.csv");
    std::fs::write(&file, "time_s,rate_mbit,delay_ms\n0,10,20\n1,5,40\n3,,\n").unwrap();
    let text = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n";
    let name = folder.join("net.toml").display().to_string();
    let mut scenario = Scenario::parse(text, &name).unwrap();
    assert!(scenario.files().is_empty());
    let at = Time::from_nanos(5_000_000_000);
    let changes = scenario.assign_at(at, &["l.down.trace=path.csv"]).unwrap();
    assert_eq!(kinds(&changes), ["l.down Service", "l.down Delay"]);
    let Change::Service(service) = &changes[0].1 else { panic!("{changes:?}") };
    let rate = |seconds: u64| service.rate(Time::from_nanos(seconds * 1_000_000_000)).to_string();
    assert_eq!([5, 6, 9].map(rate), ["10mbit", "5mbit", "5mbit"], "it counts from 5 s on");
    assert_eq!(scenario.files()[0].name.as_ref(), "path.csv");

    // It is not made of the file again: that may take longer than a running link can wait.
    let trace = |scenario: &Scenario, way| {
        scenario.links[0].direction(way).expect("a wire").trace.clone().unwrap().trace
    };
    scenario.assign_at(at, &["l.up.trace.file=path.csv"]).unwrap_err();
    scenario.assign_at(at, &["l.up.trace=path.csv"]).unwrap();
    assert!(Arc::ptr_eq(&trace(&scenario, Way::Up), &trace(&scenario, Way::Down)));

    // The name means what it meant, for a change of a part and for good.
    std::fs::write(&file, "nonsense").unwrap();
    let changes = scenario.assign_at(Time::from_nanos(7_000_000_000), &["l.down.trace.then=loop"]).unwrap();
    let Change::Service(service) = &changes[0].1 else { panic!("{changes:?}") };
    assert_eq!(
        service.rate(Time::from_nanos(10_500_000_000)).to_string(),
        "10mbit",
        "7 s + 3 s is a new round"
    );
    std::fs::remove_file(&file).unwrap();
    let changes = scenario.assign_at(Time::from_nanos(8_000_000_000), &["l.down.trace=none"]).unwrap();
    assert_eq!(kinds(&changes), ["l.down Service", "l.down Delay"]);
    let error = scenario.assign("l.up.trace=path2.csv").unwrap_err().to_string();
    assert!(error.contains("the file `path2.csv` cannot be read: no such file: "), "{error}");
    std::fs::remove_dir(&folder).unwrap();
}

#[test]
fn netem_words_are_the_keys_that_they_mean() {
    let mut scenario = Scenario::from_flags(&LinkFlags::default()).unwrap();
    scenario.assign("link.down.netem=delay 100ms 10ms loss gemodel 1% 30% rate 1mbit limit 50").unwrap();
    let down = scenario.links[0].direction(Way::Down).expect("a wire");
    assert_eq!(down.rate.to_string(), "1mbit");
    assert_eq!(down.bound(), Bound::Packets(50));
    let loss = down.loss.ingress.as_ref().unwrap();
    assert!(
        (loss.mean() - 1.0 / 31.0).abs() < 1e-12 && (loss.mean_burst().unwrap() - 1.0 / 0.3).abs() < 1e-9
    );
    let changes = scenario.assign("link.up.exact-netem=delay 10ms loss 1%").unwrap();
    assert_eq!(kinds(&changes), ["link.up Netem"]);
    let error = scenario.assign("link.up.loss=1%").unwrap_err().to_string();
    assert!(error.contains("with `exact-netem`"), "{error}");
    let changes = scenario.assign("link.up.exact-netem=none").unwrap();
    assert_eq!(
        kinds(&changes),
        ["link.up Netem", "link.up Queue"],
        "a plain link again, with a queue of its own"
    );
}

/// As in a file, where it is between quotes.
#[test]
fn numbers_with_underscores_may_have_a_unit() {
    let text = "[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n";
    let mut scenario = Scenario::parse(text, "x").unwrap();
    for assignment in ["l.rate=1_000kbit", "l.rate=1_000.5kbit", "l.queue.bound=1_000 packets"] {
        scenario.assign(assignment).unwrap_or_else(|error| panic!("{error}"));
    }
    assert!(scenario.to_toml().contains("rate = \"1.0005mbit\""), "{}", scenario.to_toml());
    let error = scenario.assign("l.rate=1_000").unwrap_err().to_string();
    assert!(error.contains("has no unit"), "{error}");
}
