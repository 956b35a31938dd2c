//! Fixed answers of a run: a shaped access link with classes, a plain one that is down one way, a shared medium.

use std::sync::Arc;

use narrows_live::control::{CurrentDirection, CurrentPort, CurrentScenario, KnownRun, Liveness, Stats};
use narrows_live::group::{GroupLink, KnownGroup};
use narrows_live::run_record::{About, RunKind};
use narrows_report::{LinkNow, Now, RecentRates, Report};
use serde_json::{Value, json};

use super::super::app::App;
use super::super::group::GroupAnswer;
use super::super::source::Event;

/// The wall clock of the pictures: 754 seconds after the run began.
pub(super) const NOW: u64 = 1_754_000_000_000;

/// `top` after so many answers, one a second.
pub(super) fn app(answers: u64) -> App {
    let mut app = App::new(About {
        name: Some("dsl".parse().unwrap()),
        kind: RunKind::Up,
        since_ns: 1_000_000_000_000,
        hosts: 4,
        links: 3,
        ..About::default()
    });
    for at in 1..=answers {
        app.take(Event::Answer(Box::new(stats(at)), Arc::new(settings())));
    }
    app
}

/// What makes later seconds differ from one another.
fn uneven(at: u64) -> u64 {
    if at > 30 { at * at % 29 } else { 0 }
}

/// A direction's counters after `at` seconds: bytes and drops a second, and what waits.
fn direction(link: &str, lane: u8, ends: [&str; 2], at: u64, bytes: u64, full: u64, waiting: u64) -> Value {
    let full = if full == 0 { 0 } else { full * at + uneven(at) };
    let drops = match full {
        0 => json!([]),
        full => json!([
            { "reason": "queue full", "packets": full * 3 / 4, "bytes": 0, "share": 0.0 },
            { "reason": "wire loss", "packets": full / 4, "bytes": 0, "share": 0.0 }
        ]),
    };
    let throughput = |bytes: u64| json!({ "packets": bytes / 1000, "bytes": bytes, "rate_bps": null });
    json!({
        "link": link, "lane": lane, "rules": null, "from": ends[0], "to": ends[1], "asked": "", "asked_rate_bps": null,
        "asked_delay_ns": null, "overhead": "IP packets", "offered": throughput(bytes * at), "delivered": throughput(bytes * at),
        "dropped_packets": full, "dropped_share": 0.0, "drops": drops, "duplicated_packets": 0, "corrupted_packets": 0,
        "marked_packets": 0, "reordered_packets": 0, "delayed_to_keep_order_packets": 0, "fragmented_packets": 0, "fragment_packets": 0,
        "wire_bits": bytes * at * 25 / 3, "wire_bps": null, "utilisation_share": null, "queueing_mean_ns": null,
        "inside_packets": waiting, "backlog_packets": waiting, "backlog_bytes": waiting * 1200, "in_flight_packets": 0,
        "classes": [], "shaped": [], "scheduler_failure": null, "per_flow": false, "flows": null
    })
}

fn class(name: &str, weight: u32, at: u64, bytes: u64, dropped: u64, waiting: u64) -> Value {
    json!({
        "name": name, "weight": weight, "matches": "", "arrived_packets": 0, "arrived_bytes": 0, "sent_packets": 0,
        "sent_bytes": bytes * at, "sent_share": 0.0, "dropped_packets": dropped * at, "dropped_bytes": 0, "marked_packets": 0,
        "backlog_packets": waiting, "backlog_bytes": 0, "queueing_mean_ns": null, "queueing_max_ns": null, "delay": null,
        "queue": null, "flows": null
    })
}

fn port(name: &str, at: u64, bytes: u64, steps: Value) -> Value {
    let quantiles = json!({
        "packets": 1000 * at, "min_ns": 1, "p50_ns": 20_000, "p90_ns": 30_000, "p99_ns": 34_000, "p999_ns": 90_000,
        "max_ns": 1_212_000, "mean_ns": 21_000, "later_than": [], "histogram": steps
    });
    json!({
        "name": name, "arrived_packets": 0, "arrived_bytes": 0, "delivered_packets": 0, "delivered_bytes": bytes * at,
        "refused_packets": 0, "receive_ring_dropped_packets": 0, "send_failed_packets": 0, "lateness": quantiles,
        "input_lateness": null
    })
}

/// The answer after so many seconds.
pub(super) fn stats(at: u64) -> Stats {
    let waiting = 20 + at * 7 % 30;
    let mut down = direction("access.down", 0, ["server", "client"], at, 1_200_000, 40, waiting);
    down["delivered"]["bytes"] = json!(1_200_000 * at - 6_000 * uneven(at));
    down["wire_bits"] = json!(10_000_000 * at);
    down["classes"] =
        json!([class("voip", 4, at, 800_000, 0, 2), class("rest", 1, at, 400_000, 30, waiting - 2)]);
    let air = 3_000_000 + at % 5 * 100;
    let directions = vec![
        down,
        direction("access.up", 0, ["client", "server"], at, 30_000, 0, 0),
        direction("core.up", 0, ["server", "far"], at, 0, 0, 3),
        direction("core.down", 0, ["far", "server"], at, 1_250_000_000, 0, 0),
        direction("air", 0, ["far", "phone"], at, air, 0, 7),
        direction("air", 1, ["phone", "far"], at, 100_000, 4, 0),
    ];
    let steps = |late: u64| {
        json!([{ "up_to_ns": 50_000, "packets": 980 * at }, { "up_to_ns": late, "packets": 20 * at },
            { "up_to_ns": late * 5, "packets": if at > 30 { at / 7 * 30 } else { 0 } }])
    };
    let ports = vec![
        port("client", at, 1_200_000, steps(100_000)),
        port("server", at, 30_000, steps(200_000)),
        port("phone", at, air, steps(5_000_000)),
    ];
    Stats { generation: 3, report: report(at, directions, ports), now: Some(present()), text: String::new() }
}

fn report(at: u64, directions: Vec<Value>, ports: Vec<Value>) -> Report {
    let late = json!([{ "bound_ns": 1_000_000, "packets": 3, "share": 0.0002, "intervals": [] }]);
    let lateness = ports.first().map(|port| port["lateness"].clone());
    serde_json::from_value(json!({
        "schema": 1, "title": "net.toml", "kind": "live", "seed": 1, "start_ns": 0, "end_ns": at * 1_000_000_000,
        "round_trips": [], "directions": directions, "rules": [], "routers": [], "pairs": [], "feeds": [], "probes": [],
        "applications": [], "ports": ports, "lateness": lateness, "sent_lateness": null, "input_lateness": null,
        "straggler_lateness": null, "certificates": [], "lateness_violations": late, "capture": null, "host": null, "trains": null,
        "losses": {
            "straggler_inputs": 0, "implausible_stamp_packets": 0, "receive_ring_dropped_packets": 0, "send_failed_packets": 0,
            "refused_packets": 0
        },
        "conservation": {
            "in_packets": 0, "duplicated_packets": 0, "delivered_packets": 0, "dropped_packets": 0, "inside_packets": 57,
            "violations": []
        },
        "notes": []
    }))
    .unwrap()
}

fn present() -> Now {
    let access = LinkNow {
        link: "access.down".into(),
        lane: 0,
        from: "server".into(),
        to: "client".into(),
        delivered: RecentRates { one_second_bps: 9_000_000, ten_seconds_bps: 8_000_000 },
        dropped_packets: 4,
        backlog_packets: 5,
        backlog_bytes: 6_000,
        configured: String::new(),
    };
    Now { links: vec![access], ..Now::default() }
}

/// What is in force.
pub(super) fn settings() -> CurrentScenario {
    let all = [
        (
            "access.down",
            0,
            "server",
            "client",
            Some(10_000_000),
            20,
            "10mbit, drr of voip, rest, delay 20ms, loss 0.1%",
        ),
        ("access.up", 0, "client", "server", Some(2_000_000), 20, "2mbit, queue 50 packets, delay 20ms"),
        ("core.up", 0, "server", "far", Some(0), 5, "down, queue 64kB, delay 5ms"),
        ("core.down", 0, "far", "server", None, 5, "unlimited rate, delay 5ms"),
        ("air", 0, "far", "phone", Some(54_000_000), 0, "54mbit, dcf of far, phone"),
        ("air", 1, "phone", "far", Some(54_000_000), 0, "54mbit, dcf of far, phone"),
    ];
    let directions = all.map(|(link, lane, from, to, rate_bps, delay, configured)| CurrentDirection {
        link: link.into(),
        lane,
        from: from.into(),
        to: to.into(),
        rate_bps,
        delay_ns: Some(delay * 1_000_000),
        bound_packets: (rate_bps != Some(0)).then_some(50),
        bound_bytes: (rate_bps == Some(0)).then_some(64_000),
        outage: rate_bps == Some(0),
        configured: configured.into(),
    });
    let port = |port: &str, link: &str| CurrentPort {
        port: port.into(),
        host: port.into(),
        link: link.into(),
        interface: String::new(),
    };
    CurrentScenario {
        generation: 3,
        toml: String::new(),
        links: Vec::new(),
        ports: vec![port("client", "access.up"), port("server", "access.down"), port("phone", "air")],
        directions: directions.into(),
    }
}

/// `top` of a lab: a ring of four nodes, two of whose links are runs, after so many answers of each.
pub(super) fn lab(answers: u64) -> App {
    let mut app = App::new(About::default());
    for at in 1..=answers {
        app.take(Event::Group(Box::new(lab_answer(at))));
    }
    app
}

pub(super) fn lab_answer(at: u64) -> GroupAnswer {
    let run = |name: &str| KnownRun {
        number: 7,
        about: About { name: Some(name.parse().unwrap()), ..About::default() },
        liveness: Liveness::GoingOn,
        socket: "7.sock".into(),
    };
    let link = |from: &str, to: &str, name: Option<&str>| GroupLink {
        ends: [from.into(), to.into()],
        run: name.map(run),
    };
    let links = vec![
        link("a:eth1", "b:eth1", Some("clab-ring-a-eth1")),
        link("b:eth2", "c:eth1", None),
        link("c:eth2", "d:eth1", Some("clab-ring-c-eth2")),
        link("d:eth2", "a:eth2", None),
    ];
    let nodes = ["a", "b", "c", "d"].map(str::to_owned).into();
    let answer = |at: u64| {
        let (mut stats, mut settings) = (stats(at), settings());
        stats.report.directions.truncate(2);
        settings.directions.truncate(2);
        (Box::new(stats), Arc::new(settings))
    };
    let runs = [("clab-ring-a-eth1", at), ("clab-ring-c-eth2", 2 * at)];
    let answers = runs.map(|(run, at)| (run.to_owned(), answer(at))).into();
    GroupAnswer { name: "ring".into(), group: KnownGroup { nodes, links }, answers }
}

/// `top` of a run of so many links, the last of which is the fastest.
pub(super) fn many(links: u64) -> App {
    let answer = |at: u64| {
        let ways = |number: u64| {
            let name = |way: &str| format!("l{number:04}.{way}");
            let host = format!("h{number}");
            [
                direction(&name("up"), 0, [&host, "hub"], at, 1_000 * number + 500, 0, 0),
                direction(&name("down"), 0, ["hub", &host], at, 0, 0, 0),
            ]
        };
        let report = report(at, (0..links).flat_map(ways).collect(), Vec::new());
        Stats { generation: 0, report, now: None, text: String::new() }
    };
    let mut app = App::new(About::default());
    for at in 1..=2 {
        app.take(Event::Answer(
            Box::new(answer(at)),
            Arc::new(CurrentScenario {
                generation: 0,
                toml: String::new(),
                links: Vec::new(),
                ports: Vec::new(),
                directions: Vec::new(),
            }),
        ));
    }
    app
}
