//! Rules of ipfw: the engine's compiled and indexed rules against the interpreter of the engine's own tests, which tries
//! one rule after the other.

#[path = "../../narrows-core/tests/rules/compare.rs"]
mod compare;
#[path = "../../narrows-core/tests/rules/generate.rs"]
mod generate;
#[path = "../../narrows-core/tests/rules/oracle.rs"]
mod oracle;
#[path = "../../narrows-core/tests/rules/oracle_states.rs"]
mod oracle_states;
mod random;

use compare::Comparison;
use generate::Style;
use random::Random;

/// Packets of one comparison.
const PACKETS: u64 = 24;

/// Rules, packets and changes that these bytes draw: decisions, counters, tables, tags and dynamic rules agree. The first
/// byte says what the rules are like, the second how many there are: 1 to 82.
///
/// # Panics
/// When they do not.
pub fn rules(bytes: &[u8]) {
    let Some((&[style, count], rest)) = bytes.split_first_chunk::<2>() else { return };
    let style = [Style::Wild, Style::Plain, Style::Alike][usize::from(style % 3)];
    let random = Random::over(rest);
    // Mostly few, which are quick.
    let count = u64::from(count % 10);
    let seen = Comparison::new(random, 7, style, 1 + count * count).run(PACKETS);
    assert!(seen.counts()[0] >= PACKETS);
}

/// Few rules and many, of each style.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut drawn = crate::mutate::Mutations::new(5);
    let styles = (0..3).flat_map(|style| [1, 4, 9].map(|count| [style, count]));
    styles.map(|head| [&head[..], &drawn.bytes(3000)].concat()).collect()
}
