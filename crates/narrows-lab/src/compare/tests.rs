use narrows_scenario::SchedulerKind;

use super::*;

/// A flood and a call on 1 Mbit/s; the other way something that must not count.
const FLOOD: &str = r#"
    seed = 5
    duration = "20s"
    [hosts.client]
    [hosts.server]
    [links.access]
    between = ["client", "server"]
    rate = "1mbit"
    delay = "5ms"
    queue = "30 packets"
    [[traffic]]
    name = "flood"
    from = "server"
    to = "client"
    constant = "2mbit"
    length = "1250 bytes"
    [[traffic]]
    name = "call"
    from = "server"
    to = "client"
    constant = "1/20ms"
    length = "200 bytes"
    [[traffic]]
    name = "back"
    from = "client"
    to = "server"
    constant = "1/20ms"
    length = "200 bytes"
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml").unwrap()
}

fn options(algorithms: &[Algorithm]) -> CompareOptions {
    CompareOptions { algorithms: algorithms.to_vec(), ..CompareOptions::default() }
}

fn flow<'a>(run: &'a Run, name: &str) -> &'a FlowStats {
    run.flows.iter().find(|flow| flow.name == name).unwrap()
}

#[test]
fn a_call_beside_a_flood_gets_what_the_scheduler_lets_it() {
    let comparison = compare(
        &scenario(FLOOD),
        &options(&[Algorithm::Of(SchedulerKind::Fifo), Algorithm::Of(SchedulerKind::Drr)]),
    )
    .unwrap();
    assert_eq!(comparison.link, "access.down");
    let [fifo, drr] = [0, 1].map(|run| &comparison.runs[run]);
    assert_eq!(fifo.flows.iter().map(|flow| flow.name.as_str()).collect::<Vec<_>>(), ["flood", "call"]);
    for run in [fifo, drr] {
        let all: u64 = run.flows.iter().map(|flow| flow.delivered).sum();
        // 1 Mbit/s for 20 s, less the delay and the packet that is being sent.
        assert!((2_495_000..=2_500_000).contains(&all), "{all}");
        assert_eq!(run.span, Duration::from_secs(20));
    }
    // DRR: the call waits for one packet of the flood, 10 ms, at most for what is in front of it in the round: one more.
    let call = flow(drr, "call");
    assert_eq!((call.dropped, call.offered), (0, call.delivered));
    // 1.6 ms for itself and 5 ms of delay.
    assert!(call.delay(0.0).unwrap() >= 6_600_000);
    assert!(call.delay(1.0).unwrap() <= 6_600_000 + 20_000_000, "{:?}", call.delay(1.0));
    assert!(drr.jain.unwrap() > 0.9999, "{:?}", drr.jain);
    // FIFO: a full queue most of the time, so loss and a delay of nearly 30 packets.
    let call = flow(fifo, "call");
    assert!(call.dropped > 100);
    assert!(call.delay(0.5).unwrap() > 150_000_000, "{:?}", call.delay(0.5));
    // Jain's index, by hand: what is fair for the call is all that it offered.
    let flood = flow(fifo, "flood");
    let x = call.delivered as f64 / call.offered as f64;
    let y = flood.delivered as f64 / ((call.delivered + flood.delivered) as f64 - call.offered as f64);
    let index = (x + y) * (x + y) / (2.0 * (x * x + y * y));
    assert!((fifo.jain.unwrap() - index).abs() < 1e-12 && index < 0.99);
}

/// A transfer that is through got all that it wanted, and one that never began wanted nothing.
#[test]
fn sources_that_adapt_want_no_more_than_they_have() {
    let text = r#"
        duration = "5s"
        [hosts.client]
        [hosts.server]
        [links.access]
        between = ["client", "server"]
        rate = "5mbit"
        delay = "10ms"
        [[traffic]]
        name = "short"
        from = "client"
        to = "server"
        aimd = { size = "15 kB" }
        length = "1500 bytes"
        [[traffic]]
        name = "long"
        from = "client"
        to = "server"
        aimd = {}
        [[traffic]]
        name = "never"
        from = "client"
        to = "server"
        start = "6s"
        aimd = {}
    "#;
    let comparison = compare(&scenario(text), &options(&[Algorithm::Of(SchedulerKind::Qfq)])).unwrap();
    let run = &comparison.runs[0];
    let fair = |name: &str| run.flows.iter().find(|flow| flow.name == name).unwrap().fair;
    assert_eq!((fair("short"), fair("never")), (15_000.0, 0.0));
    assert!(run.jain.unwrap() > 0.999, "{:?}", run.jain);
}

#[test]
fn the_same_comes_out_again_and_only_the_scheduler_differs() {
    let options = options(&[Algorithm::Of(SchedulerKind::Fifo), Algorithm::Of(SchedulerKind::Fifo)]);
    let comparison = compare(&scenario(FLOOD), &options).unwrap();
    assert_eq!(comparison.runs[0], comparison.runs[1]);
    assert_eq!(compare(&scenario(FLOOD), &options).unwrap(), comparison);
}

#[test]
fn classes_stay_where_the_algorithm_has_classes() {
    let classes = r#"
        [links.access.down]
        scheduler = { type = "drr", classes = [
            { name = "call", weight = 1, match = { length = "..300 bytes" } },
            { name = "rest", weight = 1 },
        ] }
        [[traffic]]"#;
    let text = FLOOD.replacen("[[traffic]]", classes, 1);
    let all = [
        Algorithm::Of(SchedulerKind::Fifo),
        Algorithm::Of(SchedulerKind::Prio),
        Algorithm::Of(SchedulerKind::Qfq),
        Algorithm::Of(SchedulerKind::FqCodel),
    ];
    let comparison = compare(&scenario(&text), &options(&all)).unwrap();
    let worst = |run: &Run| flow(run, "call").delay(1.0).unwrap();
    let delays: Vec<u64> = comparison.runs.iter().map(worst).collect();
    assert!(delays[0] > 150_000_000, "{delays:?}");
    // The call is in the first band, and waits for no more than the packet on the wire: 10 ms.
    assert!(delays[1] <= 16_600_000, "{delays:?}");
    assert!(delays[2..].iter().all(|&delay| delay <= 40_000_000), "{delays:?}");
}

#[test]
fn errors_name_what_is_there() {
    let text = |result: Result<Comparison, CompareError>| result.unwrap_err().to_string();
    let wrong =
        CompareOptions { link: Some("access".into()), ..options(&[Algorithm::Of(SchedulerKind::Fifo)]) };
    let scenario = scenario(FLOOD);
    assert_eq!(
        text(compare(&scenario, &wrong)),
        "test.toml has no link `access`: there is access.down, access.up"
    );
    let traffic = FLOOD.split("[[traffic]]").next().unwrap();
    let quiet = Scenario::parse(traffic, "quiet.toml").unwrap();
    assert!(
        text(compare(&quiet, &options(&[Algorithm::Of(SchedulerKind::Fifo)])))
            .starts_with("quiet.toml has no traffic")
    );
    let down = Scenario::parse(
        &FLOOD
            .replace(r#"from = "client""#, r#"from = "server""#)
            .replace(r#"to = "server""#, r#"to = "client""#),
        "down.toml",
    )
    .unwrap();
    let up =
        CompareOptions { link: Some("access.up".into()), ..options(&[Algorithm::Of(SchedulerKind::Fifo)]) };
    assert_eq!(
        text(compare(&down, &up)),
        "no traffic of down.toml crosses `access.up`: there is some on access.down"
    );
    let weights = vec![("back".to_owned(), Weight::ONE)];
    let weighted = CompareOptions { weights, ..options(&[Algorithm::Of(SchedulerKind::Fifo)]) };
    assert_eq!(
        text(compare(&scenario, &weighted)),
        "no traffic called `back` crosses access.down, that could have a weight: there is flood, call"
    );
}

#[test]
fn quantiles_are_the_least_that_so_many_packets_keep_to() {
    let delays = (1..=10).collect();
    let flow = FlowStats {
        name: "ten".into(),
        weight: 1,
        greedy: false,
        offered: 0,
        delivered: 0,
        packets: 10,
        dropped: 30,
        fair: 0.0,
        delays,
    };
    assert_eq!([0.0, 0.1, 0.5, 0.51, 0.99, 1.0].map(|q| flow.delay(q)), [1, 1, 5, 6, 10, 10].map(Some));
    assert_eq!(flow.loss(), Some(0.75));
}

#[test]
fn table_json_and_figure_have_every_flow_of_every_run() {
    let comparison = compare(
        &scenario(FLOOD),
        &options(&[Algorithm::Of(SchedulerKind::Fifo), Algorithm::Of(SchedulerKind::FqCodel)]),
    )
    .unwrap();
    let text = comparison.text().to_string();
    assert_eq!(text.lines().filter(|line| line.contains(" call ")).count(), 2, "{text}");
    assert!(text.contains("\nfq_codel   flood"), "{text}");
    let json = serde_json::to_value(comparison.json()).unwrap();
    assert_eq!(json["algorithms"][1]["algorithm"], "fq_codel");
    assert_eq!(json["algorithms"][1]["flows"][1]["name"], "call");
    let delay = comparison.runs[1].flows[1].delay(0.5).unwrap();
    assert_eq!(json["algorithms"][1]["flows"][1]["delay"]["p50_ns"], delay);
    let figure = comparison.figure();
    assert_eq!(figure.panels.len(), 2);
    for panel in &figure.panels {
        assert_eq!(panel.lines.len(), 2);
        // A distribution begins at 0, ends at 1 and never falls.
        for line in &panel.lines {
            assert_eq!((line.points[0].1, line.points.last().unwrap().1), (0.0, 1.0));
            assert!(line.points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 <= b.1));
        }
    }
}
