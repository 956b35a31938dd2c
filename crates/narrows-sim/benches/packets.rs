//! How many packets a second virtual time takes through links.
//!
//! `cargo bench -p narrows-sim --bench packets` prints, for a few links, packets a second of wall-clock time for a whole
//! run: generated traffic, the engine, the meter and the report; and the same with a record written for each packet.
//! Then the links that packets cross a second in a leaf and spine of 64 hosts, each of which sends to another by TCP; and
//! by several threads, with 64 and 1000 hosts: the ratio to one thread, and the one that even work of the threads would
//! allow if their meetings took no time.
//! The best of three, because other work on the machine only ever makes a run slower. With `fabric MILLISECONDS` as
//! arguments that network runs once for so long, for a profile.

use narrows_scenario::{NetworkPlan, NetworkShape, Scenario};
use narrows_sim::{Destination, SimOptions, simulate};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    if let [case, milliseconds] = arguments.as_slice()
        && case == "fabric"
    {
        let milliseconds: u64 = milliseconds.parse().expect("a number");
        println!("{} links crossed", crossed(&fabric(8, 4, 64, "", &format!("{milliseconds}ms")), 1));
        return;
    }
    // Without this argument it is a test that the bench still works.
    let packets = if std::env::args().any(|argument| argument == "--bench") { 2_000_000 } else { 2_000 };
    let cases = [
        ("unlimited, no delay", "", "100000/s"),
        (
            "rate and constant delay",
            "rate = \"1gbit\"\ndelay = \"10ms\"\nqueue = \"1000 packets\"",
            "100000/s",
        ),
        (
            "the same at 120 % of the rate",
            "rate = \"666mbit\"\ndelay = \"10ms\"\nqueue = \"1000 packets\"",
            "100000/s",
        ),
        (
            "rate, normal delay with reordering, loss",
            "rate = \"1gbit\"\ndelay = \"10ms\"\njitter = \"2ms\"\norder = \"allow\"\nloss = \"1%\"",
            "100000/s",
        ),
    ];
    println!("{:<42} {:>14} {:>14}", "one link, 1000-byte packets", "packets/s", "with records");
    for (name, link, pace) in cases {
        let scenario = scenario(link, pace, packets);
        let plain = best(&scenario, &SimOptions::default(), packets);
        let records =
            SimOptions { packets: Some(Destination::File("/dev/null".into())), ..SimOptions::default() };
        println!("{name:<42} {plain:>14.0} {:>14.0}", best(&scenario, &records, packets));
    }
    let (small, name) =
        (fabric(8, 4, 64, "", &format!("{}us", packets / 4)), "64 hosts by TCP: links crossed a second");
    println!("{name:<42} {:>14.0}", best_of_three(|| crossed(&small, 1)));
    on_threads(packets);
}

/// The same on several threads, where links to hosts have delays, too. The links that packets cross are the same.
fn on_threads(packets: u64) {
    println!(
        "\n{:<42} {:>12} {:>8} {:>8} {:>10}",
        "by TCP, on threads", "links/s", "ratio", "at most", "set-up"
    );
    for (hosts, leaves, spines, microseconds) in [(64, 8, 4, packets / 8), (1000, 25, 16, packets / 80)] {
        let fabric = |length: u64| fabric(leaves, spines, hosts, "5us", &format!("{length}us"));
        let (whole, none) = (fabric(microseconds), fabric(1));
        let links = crossed(&whole, 1) as f64;
        // Seconds without and for what comes before the first packet: shares of a large network take as long as a short run.
        let time = |threads| {
            let set_up = seconds(|| crossed(&none, threads));
            ((seconds(|| crossed(&whole, threads)) - set_up).max(1e-9), set_up)
        };
        let (one, set_up) = time(1);
        println!("{:<42} {:>12.0} {:>27.2} s", format!("{hosts} hosts, 1 thread"), links / one, set_up);
        // More threads than processors say nothing about speed; how even their work is does not depend on them.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        for threads in [2, 4, 8] {
            let options = SimOptions { threads, ..SimOptions::default() };
            let result = simulate(&whole, &options).expect("the scenario is right");
            let most = result.parallelism;
            let label = format!("{hosts} hosts, {} threads", result.threads);
            if threads > processors {
                println!("{label:<42} {:>12} {:>8} {most:>8.2}", "-", "-");
            } else {
                let (several, set_up) = time(threads);
                println!(
                    "{label:<42} {:>12.0} {:>8.2} {most:>8.2} {set_up:>8.2} s",
                    links / several,
                    one / several
                );
            }
        }
    }
}

/// Leaves and spines, 1 Gbit/s and 5 µs each, with a delay of links to hosts or none; every host sends to another all the time.
fn fabric(leaves: usize, spines: usize, hosts: usize, edge: &str, duration: &str) -> Scenario {
    let mut plan = NetworkPlan {
        size: Some((leaves, Some(spines))),
        hosts: Some(hosts),
        ..NetworkPlan::new(NetworkShape::LeafSpine)
    };
    (plan.values.rate, plan.values.delay) = (Some("1gbit".into()), Some("5us".into()));
    if !edge.is_empty() {
        (plan.values.edge_rate, plan.values.edge_delay) = (Some("1gbit".into()), Some(edge.into()));
    }
    let mut text = plan.scenario().expect("the plan is right");
    text = format!("duration = \"{duration}\"\n{text}");
    for host in 0..hosts {
        let (from, to) = (host + 1, (host * 7 + 9) % hosts + 1);
        text += &format!(
            "[[traffic]]\nname = \"t{host}\"\nfrom = \"h{from}\"\nto = \"h{to}\"\n\
             file = {{ size = \"10 GB\", transactions = 1 }}\n"
        );
    }
    Scenario::parse(&text, "fabric").unwrap_or_else(|error| panic!("{error}"))
}

/// How many links packets have reached.
fn crossed(scenario: &Scenario, threads: usize) -> u64 {
    let options = SimOptions { threads, ..SimOptions::default() };
    let report = simulate(scenario, &options).expect("the scenario is right").report;
    report.directions.iter().map(|direction| direction.offered.packets).sum()
}

fn scenario(link: &str, pace: &str, packets: u64) -> Scenario {
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n{link}\n\
         [[traffic]]\nfrom = \"client\"\nto = \"server\"\nconstant = \"{pace}\"\nlength = \"1000 bytes\"\n\
         packets = {packets}\n"
    );
    Scenario::parse(&text, "bench").unwrap_or_else(|error| panic!("{error}"))
}

fn best(scenario: &Scenario, options: &SimOptions, packets: u64) -> f64 {
    best_of_three(|| {
        let report = simulate(scenario, options).expect("the scenario is right").report;
        assert_eq!(report.conservation.in_packets, packets);
        packets
    })
}

/// What a run returns, a second of its time.
fn best_of_three(run: impl Fn() -> u64) -> f64 {
    let returned = std::cell::Cell::new(0);
    let seconds = seconds(|| returned.set(run()));
    returned.get() as f64 / seconds
}

/// The shortest time of three runs.
#[expect(clippy::disallowed_methods, reason = "a bench measures wall-clock time")]
fn seconds<T>(run: impl Fn() -> T) -> f64 {
    let once = || {
        let start = std::time::Instant::now();
        run();
        start.elapsed().as_secs_f64()
    };
    (0..3).map(|_| once()).fold(f64::INFINITY, f64::min)
}
