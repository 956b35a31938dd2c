//! How many packets a second virtual time takes through one link on one core.
//!
//! `cargo bench -p narrows-sim --bench packets` prints, for a few links, packets a second of wall-clock time for a whole
//! run: generated traffic, the engine, the meter and the report; and the same with a record written for each packet.
//! The best of three, because other work on the machine only ever makes a run slower.

use narrows_scenario::Scenario;
use narrows_sim::{Destination, SimOptions, simulate};

fn main() {
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
}

fn scenario(link: &str, pace: &str, packets: u64) -> Scenario {
    let text = format!(
        "[hosts.client]\n[hosts.server]\n[links.access]\nbetween = [\"client\", \"server\"]\n{link}\n\
         [[traffic]]\nfrom = \"client\"\nto = \"server\"\nconstant = \"{pace}\"\nlength = \"1000 bytes\"\n\
         packets = {packets}\n"
    );
    Scenario::parse(&text, "bench").unwrap_or_else(|error| panic!("{error}"))
}

#[expect(clippy::disallowed_methods, reason = "a bench measures wall-clock time")]
fn best(scenario: &Scenario, options: &SimOptions, packets: u64) -> f64 {
    let once = || {
        let start = std::time::Instant::now();
        let report = simulate(scenario, options).expect("the scenario is right").report;
        assert_eq!(report.conservation.in_packets, packets);
        packets as f64 / start.elapsed().as_secs_f64()
    };
    (0..3).map(|_| once()).fold(0.0, f64::max)
}
