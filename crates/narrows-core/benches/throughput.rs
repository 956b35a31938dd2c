//! What a packet costs, beside the baseline, in one run: `cargo bench -p narrows-core --bench throughput`.
//!
//! The machine may be shared and noisy, so every round measures each case for a moment, and medians over rounds are
//! shown. Ratios within one run mean something where times do not.

mod common;

use std::time::Instant;

use common::{Case, Run};

const ROUNDS: usize = 31;
const PACKETS: u64 = 20_000;

/// Nanoseconds for each packet: a median of rounds in which the runs take turns.
fn medians(runs: &mut [Run]) -> Vec<f64> {
    let mut times = vec![Vec::with_capacity(ROUNDS); runs.len()];
    for _ in 0..ROUNDS {
        for (run, times) in runs.iter_mut().zip(&mut times) {
            times.push(time(run));
        }
    }
    let median = |mut times: Vec<f64>| {
        times.sort_unstable_by(f64::total_cmp);
        times[ROUNDS / 2]
    };
    times.into_iter().map(median).collect()
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures wall-clock time")]
fn time(run: &mut Run) -> f64 {
    let start = Instant::now();
    run.packets(PACKETS);
    start.elapsed().as_nanos() as f64 / PACKETS as f64
}

fn main() {
    println!("nanoseconds a packet, and the ratio to push + pop of std's BinaryHeap (24-byte entries)\n");
    println!(
        "in flight  heap, random keys  heap, growing keys  rate + delay     rate + jitter + loss  unlimited"
    );
    for in_flight in [10, 1_000, 100_000] {
        let cases = [Case::HeapRandom, Case::HeapGrowing, Case::Constant, Case::Jitter, Case::Unlimited];
        let mut runs = cases.map(|case| Run::new(case, in_flight));
        let ns = medians(&mut runs);
        let ratio = |at: usize| format!("{:.1} ({:.2}×)", ns[at], ns[at] / ns[0]);
        println!(
            "{in_flight:>9}  {:>17.1}  {:>18.1}  {:<15}  {:<20}  {:.1}",
            ns[0],
            ns[1],
            ratio(2),
            ratio(3),
            ns[4],
        );
        if in_flight == 10 {
            println!("           {:.1} million packets a second through one link", 1e3 / ns[2]);
        }
    }

    println!("\n1,000 in flight: nanoseconds a packet, and the ratio to a normal delay with order kept");
    let cases = [
        ("normal delay", Case::Normal),
        ("and Gilbert-Elliott loss", Case::GilbertElliott),
        ("and slots", Case::Slots),
        ("and a rate by a trace", Case::Trace),
        ("and opportunities", Case::Opportunities),
        ("fed delay", Case::Fed),
        ("NetEm's single queue", Case::Netem),
    ];
    let ns = medians(&mut cases.map(|(_, case)| Run::new(case, 1_000)));
    for ((name, _), each) in cases.iter().zip(&ns) {
        println!("{name:<24}  {each:.1} ({:.2}×)", each / ns[0]);
    }

    println!("\nlinks, one of them in use with 10 packets in flight: nanoseconds a packet");
    let links = [1, 10, 100, 1_000, 10_000, 100_000];
    let mut runs = links.map(|links| Run::among(links, Case::Constant, 10));
    for (links, ns) in links.iter().zip(medians(&mut runs)) {
        println!("{links:>7}  {ns:.1}");
    }
}
