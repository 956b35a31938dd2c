//! A report of a small run whose figures can be worked out by hand.
#![expect(
    clippy::unwrap_used,
    reason = "tests may unwrap, and the lint does not see that helpers here are tests"
)]

use narrows_core::classify::{Classifier, Condition};
use narrows_core::sched::{Class, FlowConfig, Overload, Priority, Scheduled, Store};
use narrows_core::{
    Body, Bytes, Change, DropReason, Duration, Engine, FlowKey, LinkConfig, NetworkConfig, Packet,
    PortConfig, Protocol, Rate, Seed, Target, Time, Verdict, model, queue, service,
};
use narrows_report::{
    ClassInfo, DirectionInfo, HostReport, KernelVerdicts, Kind, LINES, LatenessBound, Look, Meter, Quantile,
    Report, RoundTrip, RunInfo, Trust,
};

/// 1 Mbit/s, 50 ms, room for 10 packets.
fn engine() -> Engine<()> {
    let mut link = LinkConfig::new("access.up", Target::Port("server.access".into()));
    link.service = Box::new(service::ConstantRate(Rate::from_bits_per_second(1_000_000)));
    link.delay = Box::new(model::Constant(Duration::from_millis(50)));
    link.queue = Box::new(queue::Fifo::new(queue::Bound::Packets(10), queue::DropAt::Tail));
    let mut config = NetworkConfig::new(Seed(7));
    config.links.push(link);
    config.memory = Bytes::new(1 << 20);
    let entry = Target::Link { name: "access.up".into(), lane: 0 };
    config.ports.push(PortConfig { name: "client.access".into(), entry });
    let entry = Target::Port("server.access".into());
    config.ports.push(PortConfig { name: "server.access".into(), entry });
    Engine::new(config).unwrap()
}

fn info(until: Time) -> RunInfo {
    RunInfo {
        title: "small.toml".into(),
        kind: Kind::Virtual,
        seed: Seed(7),
        span: (Time::ZERO, until),
        directions: vec![DirectionInfo {
            link: "access.up".into(),
            lane: 0,
            from: "client".into(),
            to: "server".into(),
            asked: "1mbit, 50ms, queue 10 packets".into(),
            rate_bps: Some(1_000_000),
            delay: Some(Duration::from_millis(50)),
            overhead: "IP packet".into(),
            rules: None,
            classes: Vec::new(),
            tree: Vec::new(),
            mask: None,
            queues: Vec::new(),
        }],
        rules: Vec::new(),
        round_trips: vec![RoundTrip {
            from: "client".into(),
            to: "server".into(),
            round_trip_ns: 100_000_000,
        }],
        notes: Vec::new(),
    }
}

/// 100 packets of 1000 bytes at 1.25 Mbit/s: one every 6.4 ms, while each takes 8 ms to send.
fn run(engine: &mut Engine<()>, meter: &mut Meter, until: Time) {
    let port = engine.port("client.access").unwrap();
    for n in 0..100 {
        let packet = Packet {
            length: 1000,
            link_header: 14,
            network_header: 20,
            headers: Default::default(),
            key: FlowKey::default(),
            body: (),
        };
        engine.hand_in(Time::from_nanos(n * 6_400_000), port, packet);
    }
    while let Some(event) = engine.poll(until) {
        meter.verdict(&event);
    }
}

#[test]
fn an_overloaded_link_reports_its_rate_exactly() {
    let (mut engine, mut meter) = (engine(), Meter::new(2));
    let end = Time::from_nanos(2_000_000_000);
    run(&mut engine, &mut meter, end);
    let report = Report::new(&info(end), &engine, &meter);
    assert_eq!(report.conservation.violations, [""; 0]);
    let up = &report.directions[0];
    assert_eq!(up.offered.packets, 100);
    assert_eq!(up.offered.rate_bps, Some(1_250_000));
    // The last comes at 633.6 ms, by when 79 have been sent; one is on the wire and ten wait.
    assert_eq!(up.delivered.packets, 90);
    assert_eq!(up.delivered.rate_bps, Some(1_000_000));
    assert_eq!(up.wire_bps, Some(1_000_000));
    assert_eq!(up.utilisation_share, Some(1.0));
    assert_eq!((up.dropped_packets, up.dropped_share), (10, 0.1));
    assert_eq!(up.drops[0].reason, DropReason::QueueFull.name());
    let pair = &report.pairs[0];
    assert_eq!(pair.delivered.rate_bps, Some(1_000_000));
    assert_eq!(pair.delay.min_ns, 58_000_000);
    // The worst: ten waiting before it, each 8 ms, and part of one on the wire.
    assert!(pair.delay.max_ns > 58_000_000 + 72_000_000 && pair.delay.max_ns <= 58_000_000 + 80_000_000);
    assert_eq!(pair.delay.max_ns, pair.queueing.max_ns + 58_000_000);
    assert_eq!(up.queueing_mean_ns, Some(pair.queueing.mean_ns));
    assert_eq!(report.lateness, None);
}

#[test]
fn what_is_still_inside_is_counted() {
    let (mut engine, mut meter) = (engine(), Meter::new(2));
    let end = Time::from_nanos(640_000_000);
    run(&mut engine, &mut meter, end);
    let report = Report::new(&info(end), &engine, &meter);
    assert_eq!(report.conservation.violations, [""; 0]);
    let inside = report.conservation.inside_packets;
    assert!(inside > 10);
    assert_eq!(report.directions[0].inside_packets, inside);
    assert!(report.text().to_string().contains(&format!("{inside} packets   at the end of the run")));
}

#[test]
fn an_event_that_the_meter_missed_is_reported() {
    let (mut engine, mut meter) = (engine(), Meter::new(2));
    run(&mut engine, &mut meter, Time::ZERO);
    let end = Time::from_nanos(2_000_000_000);
    let missed = engine.poll(end).unwrap();
    assert!(matches!((missed.verdict, missed.body), (Verdict::Delivered(_), Body::Last(()))));
    while let Some(event) = engine.poll(end) {
        meter.verdict(&event);
    }
    let report = Report::new(&info(end), &engine, &meter);
    assert_eq!(
        report.conservation.violations,
        ["events: 90 packets were delivered, but 89 such events seen"]
    );
    assert!(report.text().to_string().contains("packets do not add up: events: 90"));
}

#[test]
fn lateness_and_losses_of_a_live_run_are_told() {
    let (mut engine, mut meter) = (engine(), Meter::new(2));
    let end = Time::from_nanos(2_000_000_000);
    run(&mut engine, &mut meter, end);
    let [client, server] = [engine.port("client.access").unwrap(), engine.port("server.access").unwrap()];
    for _ in 0..99 {
        meter.released(server, Time::ZERO, Duration::from_micros(2));
    }
    meter.released(server, Time::ZERO, Duration::from_micros(150));
    meter.input_lateness(client, Duration::from_micros(7));
    meter.receive_ring_dropped(client, 3);
    meter.send_failed(server, 1);
    let mut info = info(end);
    info.kind = Kind::Live;
    let report = Report::new(&info, &engine, &meter);
    let lateness = report.lateness.as_ref().unwrap();
    assert_eq!(
        (lateness.quantiles.p50_ns, lateness.quantiles.p99_ns, lateness.quantiles.max_ns),
        (2_000, 2_000, 150_000)
    );
    assert_eq!(lateness.later_than.iter().map(|s| s.share).collect::<Vec<_>>(), [0.01, 0.01, 0.0, 0.0]);
    assert_eq!(report.ports[1].lateness.as_ref(), Some(lateness));
    assert_eq!(report.input_lateness.unwrap().max_ns, 7_000);
    assert_eq!(report.losses.receive_ring_dropped_packets, 3);
    let text = report.text().to_string();
    println!("{text}");
    assert!(text.contains("1.00 % by more than 10 µs, 1.00 % by more than 100 µs\n"));
    assert!(text.contains("3 packets lost by the system before they could be read (receive overload)\n"));
}

/// The text as a whole, and no line longer than 100 columns.
#[test]
fn the_text_is_for_a_person() {
    let (mut engine, mut meter) = (engine(), Meter::new(2));
    let end = Time::from_nanos(2_000_000_000);
    run(&mut engine, &mut meter, end);
    let text = Report::new(&info(end), &engine, &meter).text().to_string();
    println!("{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    assert_eq!(text, include_str!("small.txt"));
}

/// The summary of the same run.
#[test]
fn a_summary_answers_in_a_few_lines() {
    let (mut engine, mut meter) = (engine(), Meter::new(2));
    let end = Time::from_nanos(2_000_000_000);
    run(&mut engine, &mut meter, end);
    let report = Report::new(&info(end), &engine, &meter);
    assert_eq!(
        report.summary(Look::default()).to_string(),
        "small.toml: virtual time, 2 s, seed 7\n\
         link                 offered   delivered    dropped  rate\n\
         access.up                100          90         10  1.000 Mbit/s of 1.000 Mbit/s, dropped 10.00 %: queue full\n\
         one-way delay            p50         p99        max  asked\n\
         client → server     128.4 ms    138.0 ms   138.0 ms  50 ms\n\
         exact: each event has its exact instant\n"
    );
    let coloured = report.summary(Look { width: 100, colour: true }).to_string();
    assert!(coloured.ends_with("\x1b[32mexact: each event has its exact instant\x1b[0m\n"), "{coloured:?}");
}

/// However much there is to say, and however little room.
#[test]
fn a_summary_has_no_more_lines_than_it_may() {
    let (mut engine, mut meter) = (engine(), Meter::new(2));
    let end = Time::from_nanos(2_000_000_000);
    run(&mut engine, &mut meter, end);
    let one = Report::new(&info(end), &engine, &meter);
    for (links, pairs, notes) in [(1, 1, 9), (2, 40, 0), (40, 2, 1), (40, 40, 2), (4, 4, 0), (7, 0, 2)] {
        let mut report = one.clone();
        report.title = "a very long name of a scenario ".repeat(9);
        report.directions = (0..links)
            .map(|number| {
                let mut direction = one.directions[0].clone();
                direction.link = format!("link{number}.up");
                direction.offered.packets += number;
                direction
            })
            .collect();
        report.pairs = vec![one.pairs[0].clone(); pairs];
        report.notes = vec!["something went wrong that takes many words to say ".repeat(5); notes];
        report.notes.push("changed at 1ms: link.up.rate=1mbit".into());
        let text = report.summary(Look { width: 20, colour: false }).to_string();
        assert!(text.lines().count() <= LINES, "{links} {pairs} {notes}:\n{text}");
        assert!(!text.contains("changed at"), "{text}");
        if links > 20 {
            let shown = text.matches(".up").count();
            assert!(
                text.contains("link39.up") && text.contains(&format!("{} more directions", 40 - shown)),
                "{text}"
            );
        }
    }
}

/// What a line of trust says, and when.
#[test]
fn trust_goes_by_lateness_losses_and_bounds() {
    let judged =
        |late: &[u64], lost: u64, bound: Option<u64>| {
            let (mut engine, mut meter) = (engine(), Meter::new(2));
            meter.certify(bound.map(|micros| LatenessBound {
                quantile: Quantile::P99,
                at_most: Duration::from_micros(micros),
            }));
            let end = Time::from_nanos(2_000_000_000);
            run(&mut engine, &mut meter, end);
            let server = engine.port("server.access").unwrap();
            for micros in late {
                meter.released(server, Time::ZERO, Duration::from_micros(*micros));
            }
            meter.receive_ring_dropped(engine.port("client.access").unwrap(), lost);
            let mut info = info(end);
            info.kind = Kind::Live;
            let report = Report::new(&info, &engine, &meter);
            (report.trust(), report.trust_line())
        };
    let (good, one_late, all_late) = (vec![20; 200], [vec![20; 199], vec![3000]].concat(), vec![3000; 200]);
    assert_eq!(judged(&[], 0, None), (Trust::Good, "accurate: no packet was sent to a host".into()));
    assert_eq!(judged(&good, 0, None), (Trust::Good, "accurate: p99 lateness 20.00 µs, max 20.00 µs".into()));
    let (trust, line) = judged(&one_late, 0, None);
    assert_eq!(trust, Trust::Fair);
    assert_eq!(
        line,
        "mostly accurate: p99 lateness 20.01 µs, max 3.000 ms; 1 packet (0.50 %) more than 1 ms late"
    );
    assert_eq!(judged(&all_late, 0, None).0, Trust::Poor);
    let (trust, line) = judged(&good, 5, None);
    assert_eq!(trust, Trust::Poor);
    assert!(line.ends_with("; 5 packets (4.76 %) lost before they could be read (overload)"), "{line}");
    // Whoever asks for a bound says what is late.
    assert_eq!(judged(&good, 0, Some(50)).0, Trust::Good);
    assert_eq!(judged(&one_late, 0, Some(5000)).0, Trust::Good);
    let (trust, line) = judged(&good, 0, Some(10));
    assert_eq!(trust, Trust::Poor);
    assert!(
        line.starts_with("not accurate: ") && line.ends_with("; p99 exceeds its bound of 10 µs"),
        "{line}"
    );
}

#[test]
fn fields_carry_their_units() {
    let (mut engine, mut meter) = (engine(), Meter::new(2));
    let end = Time::from_nanos(2_000_000_000);
    run(&mut engine, &mut meter, end);
    let json = serde_json::to_value(Report::new(&info(end), &engine, &meter)).unwrap();
    assert_eq!(json["schema"], 3);
    assert_eq!(json["kind"], "virtual");
    assert_eq!(json["round_trips"][0]["round_trip_ns"], 100_000_000);
    assert_eq!(json["directions"][0]["wire_bps"], 1_000_000);
    assert_eq!(json["pairs"][0]["delay"]["min_ns"], 58_000_000);
    assert_eq!(json["pairs"][0]["delivered"]["rate_bps"], 1_000_000);
}

/// The same link with strict priority: port 5060 goes first, ten of all others may wait.
fn engine_with_classes() -> Engine<()> {
    let voip = Condition { destination_ports: vec![5060..=5060], ..Condition::default() };
    let rules = Classifier::Rules { rules: vec![(voip, 0)], default: Some(1) };
    let bound = queue::Bound::Packets(100);
    let mut queue = Scheduled::new(Priority::default(), rules, bound, Overload::Arriving);
    for (band, bound) in [(0, 50), (1, 10)] {
        let flow = FlowConfig { band, ..FlowConfig::default() };
        let bound = queue::Bound::Packets(bound);
        queue.add_class(Class { flow, bound, drop_at: queue::DropAt::Tail, store: Store::Plain }).unwrap();
    }
    let (mut engine, link) = (engine(), "access.up");
    let link = engine.link(link).unwrap();
    engine.change(Time::ZERO, link, Change::Queue(Box::new(queue)));
    engine
}

/// What the classes of a scheduler got, where it can be worked out by hand.
#[test]
fn classes_are_reported_beside_what_was_asked() {
    let (mut engine, mut meter) = (engine_with_classes(), Meter::new(2));
    let port = engine.port("client.access").unwrap();
    // Twenty of 1000 bytes at once: one goes on the wire for 8 ms, ten wait, nine are dropped. Two of 125 bytes, a
    // millisecond each, follow: the first waits until 8 ms, the second until 9 ms.
    let inputs = [(0, 1000, 9)].into_iter().cycle().take(20).chain([(1, 125, 5060), (2, 125, 5060)]);
    for (millis, length, destination_port) in inputs {
        let key = FlowKey { destination_port, transport: 17, network: Protocol::Ipv4, ..FlowKey::default() };
        let packet = Packet {
            length,
            link_header: 14,
            network_header: 20,
            headers: Default::default(),
            key,
            body: (),
        };
        engine.hand_in(Time::from_nanos(millis * 1_000_000), port, packet);
    }
    let report_at = |millis: u64, engine: &mut Engine<()>, meter: &mut Meter| {
        let end = Time::from_nanos(millis * 1_000_000);
        while let Some(event) = engine.poll(end) {
            meter.verdict(&event);
        }
        let mut info = info(end);
        info.directions[0].classes =
            vec![ClassInfo { name: "voip".into(), weight: Some(8), matches: "destination-port 5060".into() }];
        let report = Report::new(&info, engine, meter);
        assert_eq!(report.conservation.violations, [""; 0]);
        report
    };
    // At 17 ms the wire is busy with the second long packet: nine wait.
    let report = report_at(17, &mut engine, &mut meter);
    let [voip, rest] = &report.directions[0].classes[..] else { panic!("two classes") };
    assert_eq!((voip.name.as_str(), voip.weight), ("voip", Some(8)));
    assert_eq!((rest.name.as_str(), rest.weight), ("class 1", None), "it goes by its number");
    assert_eq!((rest.arrived_packets, rest.sent_packets, rest.dropped_packets), (20, 2, 9));
    assert_eq!((rest.backlog_packets, rest.queueing_max_ns), (9, Some(10_000_000)));
    assert_eq!((voip.sent_packets, voip.sent_bytes, voip.backlog_packets), (2, 250, 0));
    assert_eq!((voip.queueing_mean_ns, voip.queueing_max_ns), (Some(7_000_000), Some(7_000_000)));
    assert_eq!(voip.sent_share, 250.0 / 2250.0);
    let text = report.text().to_string();
    println!("{text}");
    let expected = "
  classes (weight)          sent  of bytes   dropped   backlog   wait, mean       max
    voip (8)                   2   11.11 %         0         0     7.000 ms  7.000 ms
    class 1                    2   88.89 %         9         9     5.000 ms  10.00 ms
";
    assert!(text.contains(expected), "{text}");

    let report = report_at(1000, &mut engine, &mut meter);
    let rest = &report.directions[0].classes[1];
    assert_eq!((rest.sent_packets, rest.backlog_packets), (11, 0));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["directions"][0]["classes"][0]["matches"], "destination-port 5060");
    assert_eq!(json["directions"][0]["classes"][1]["weight"], serde_json::Value::Null);
    assert_eq!(json["directions"][0]["marked_packets"], 0);
}

#[test]
fn values_that_are_absurd_and_feeds_that_nobody_fills_are_told() {
    let mut config = model::FeedConfig::new("radio");
    config.on_empty = model::OnEmpty::Last;
    let mut link = LinkConfig::new("access.up", Target::Port("server.access".into()));
    link.delay = Box::new(model::Fed::new(config));
    let mut network = NetworkConfig::new(Seed(7));
    network.links.push(link);
    network.memory = Bytes::new(1 << 20);
    let entry = Target::Link { name: "access.up".into(), lane: 0 };
    network.ports.push(PortConfig { name: "client.access".into(), entry });
    let entry = Target::Port("server.access".into());
    network.ports.push(PortConfig { name: "server.access".into(), entry });
    let mut engine = Engine::<()>::new(network).unwrap();
    let link = engine.links().next().unwrap();
    const HOUR: i64 = 3_600_000_000_000;
    assert_eq!(engine.feed(Time::ZERO, link, "radio", &[HOUR, HOUR + 1, i64::MAX]), 3);
    let text = |kind| {
        let info = RunInfo { kind, ..info(Time::from_nanos(1)) };
        Report::new(&info, &engine, &Meter::new(2)).text().to_string()
    };
    let absurd =
        "access.up/radio: 2 of the values were longer than an hour and count as one: is the unit right?";
    let unfed = "feeds have no writers in virtual time; replay a recorded run to use its values";
    for (kind, nobody_writes) in [(Kind::Live, false), (Kind::Virtual, true), (Kind::Replay, false)] {
        let text = text(kind);
        assert!(text.contains(absurd), "{text}");
        assert_eq!(text.contains(unfed), nobody_writes, "{text}");
    }
}

/// What a live run says of its bounds, for a person and for a program.
#[test]
fn broken_bounds_and_when_they_were_are_told() {
    let (mut engine, mut meter) = (engine(), Meter::new(2));
    let end = Time::from_nanos(2_000_000_000);
    let bound = |quantile, micros| LatenessBound { quantile, at_most: Duration::from_micros(micros) };
    meter.certify([bound(Quantile::Median, 10), bound(Quantile::P99, 50)]);
    run(&mut engine, &mut meter, end);
    let server = engine.port("server.access").unwrap();
    for n in 0..100 {
        let lateness = if (50..53).contains(&n) { 1_500 } else { 4 };
        meter.released(server, Time::from_nanos(n * 10_000_000), Duration::from_micros(lateness));
    }
    let mut info = info(end);
    info.kind = Kind::Live;
    let mut report = Report::new(&info, &engine, &meter);
    report.host = Some(HostReport {
        capabilities: Vec::new(),
        steal_share: Some(0.021),
        steal_ns: Some(80_000_000),
        backend: "af_packet".into(),
        run_queue_wait_ns: Some(30_000_000),
        wait: "hybrid".into(),
        timer_slack_ns: Some(1),
        processor: Some(1),
        priority: "real-time".into(),
        max_processor_share: None,
        confined: true,
        throttle_pause_ns: 56_600_000,
        gather_ns: 1_200_000_000,
        loop_processor_ns: 120_000_000,
        loop_processor_share: 0.06,
        threads: Vec::new(),
        kernel_verdicts: None,
    });
    let interval = &mut report.lateness_violations[0].intervals[0];
    (interval.steal_ns, interval.run_queue_wait_ns) = (Some(20_000_000), Some(999_999));
    assert_eq!(report.certificates.iter().map(|c| c.met).collect::<Vec<_>>(), [true, false]);
    let text = report.text().to_string();
    println!("{text}");
    let expected = "
  released late: 3.00 % by more than 10 µs, 3.00 % by more than 100 µs, 3.00 % by more than 1 ms
  up to    5 µs 97.00 %, 10 µs 0 %, 20 µs 0 %, 50 µs 0 %, 100 µs 0 %, 200 µs 0 %, 500 µs 0 %,
           1 ms 0 %, 2 ms 3.00 %
  p50 at most 10 µs, met: 4.001 µs; 3 packets (3.00 %) were later or lost
  p99 at most 50 µs, VIOLATED: 1.500 ms; 3 packets (3.00 %) were later or lost
  later than 10 µs, 3 packets:
    at 500.0 ms for 21.50 ms 3 packets by up to 1.500 ms (20.00 ms CPU steal around that time)
  later than 50 µs, 3 packets:
    at 500.0 ms for 21.50 ms 3 packets by up to 1.500 ms
  packet I/O: af_packet
  packet thread (hybrid): 120 ms CPU time, 6.00 % of the run
  it ran on processor 1, with real-time priority
  paused for 56.60 ms to stay below the kernel's real-time limit
  gathered packets for 1.200 s, 0.1 ms at a time: other programs wanted its processor
  run-queue wait: 30.00 ms
  CPU steal: 80.00 ms, 2.10 % of the processors
";
    assert!(text.contains(expected), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    let of_kernel = KernelVerdicts { compared_packets: 100, differing_packets: 2 };
    report.host.as_mut().unwrap().kernel_verdicts = Some(of_kernel);
    let line = report.trust_line();
    assert!(line.contains("; the kernel's verdict on 2 packets was not the engine's"), "{line}");
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["host"]["kernel_verdicts"]["differing_packets"], 2);
    assert_eq!(json["certificates"][1]["quantile"], "p99");
    assert_eq!(json["certificates"][1]["met"], false);
    assert_eq!(json["certificates"][1]["bound_ns"], 50_000);
    assert_eq!(json["lateness_violations"][1]["intervals"][0]["packets"], 3);
    // Reports of schemas 2 and 1, with the names of their time, read as the same; one of a schema to come does not.
    let mut old = json.clone();
    let renamed = |object: &mut serde_json::Value, from: &str, to: &str| {
        let value = object.as_object_mut().unwrap().remove(from).unwrap();
        object[to] = value;
    };
    old["schema"] = 2.into();
    for (from, to) in [
        ("steal_ns", "stolen_ns"),
        ("steal_share", "stolen_share"),
        ("run_queue_wait_ns", "waited_ns"),
        ("throttle_pause_ns", "rested_ns"),
    ] {
        renamed(&mut old["host"], from, to);
    }
    for direction in old["directions"].as_array_mut().unwrap() {
        for (from, to) in [
            ("in_flight_packets", "flying_packets"),
            ("backlog_packets", "waiting_packets"),
            ("backlog_bytes", "waiting_bytes"),
            ("fragment_packets", "pieces_packets"),
        ] {
            renamed(direction, from, to);
        }
    }
    for certificate in old["certificates"].as_array_mut().unwrap() {
        renamed(certificate, "met", "kept");
    }
    assert_eq!(serde_json::from_value::<Report>(old.clone()).unwrap(), report);
    old["schema"] = 1.into();
    old["lateness_violations"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .flat_map(|violation| violation["intervals"].as_array_mut().unwrap())
        .for_each(|interval| renamed(interval, "max_ns", "most_ns"));
    renamed(&mut old, "lateness_violations", "untrue");
    for direction in old["directions"].as_array_mut().unwrap() {
        renamed(direction, "delayed_to_keep_order_packets", "held_back_packets");
    }
    assert_eq!(serde_json::from_value::<Report>(old.clone()).unwrap(), report);
    assert_eq!(old["certificates"][0]["quantile"], "p50");
    old["certificates"][0]["quantile"] = "median".into();
    assert_eq!(serde_json::from_value::<Report>(old.clone()).unwrap(), report);
    old["schema"] = 4.into();
    let refused = serde_json::from_value::<Report>(old).unwrap_err().to_string();
    assert_eq!(refused, "a report of schema 4, expected schema 1 to 3");
    assert_eq!(json["lateness"]["histogram"][0], serde_json::json!({ "up_to_ns": 5_000, "packets": 97 }));
    assert_eq!(json["host"]["steal_ns"], 80_000_000);
    let packets = json["lateness"]["histogram"].as_array().unwrap().iter().map(|s| s["packets"].as_u64());
    assert_eq!(packets.map(Option::unwrap).sum::<u64>(), 100);
}
