//! Rule sets: by hand, and against an interpreter that is as plain as can be.

mod bounds;
mod compare;
mod generate;
mod labels;
mod manual;
mod nat;
mod oracle;
mod oracle_states;
mod random;

use compare::{Comparison, Seen};
use generate::Style;
use random::Random;

const PACKETS: u64 = 350;

fn of_seed(seed: u64) -> Comparison {
    let mut random = Random::new(seed);
    let style = match seed % 10 {
        0..6 => Style::Wild,
        6..9 => Style::Plain,
        _ => Style::Alike,
    };
    let count = match seed % 20 {
        19 => 300 + random.below(500),
        13..19 => 20 + random.below(130),
        _ => 1 + random.below(30),
    };
    Comparison::new(random, seed, style, count)
}

#[test]
fn a_million_packets_meet_thousands_of_rule_sets_as_they_do_the_oracle() {
    // Several threads, as there is much to do.
    let compare = |part: u64| (part * 750..(part + 1) * 750).map(|seed| of_seed(seed).run(PACKETS)).collect();
    let parts: Vec<_> =
        (0..4).map(|part| std::thread::spawn(move || -> Vec<Seen> { compare(part) })).collect();
    let seen = parts.into_iter().flat_map(|part| part.join().expect("they agree"));
    let sums = seen.fold([0; 11], |sums, one| std::array::from_fn(|at| sums[at] + one.counts()[at]));
    assert!(sums[0] >= 1_000_000, "{sums:?}");
    // All of it happened, and often.
    assert!(sums.iter().all(|&sum| sum > 1_000), "{sums:?}");
}
