//! `.dist` tables against what iproute2 6.x's `maketable`, compiled from its source, printed for the same numbers.

use narrows_scenario::tables::write_dist;

use crate::dist::{by_quantiles, maketable};
use crate::statistics::Sample;

const COMMENT: &str = "This is the distribution table for the experimental distribution.";

/// The first and the last line of numbers, and the hash of the file.
const TAIL: (&str, &str, u64) = (
    "-1258 -1258 -1257 -1256 -1256 -1256 -1256 -1256",
    "32767 32767 32767 32767 32767 32767 32767 32767",
    0x43525b5819803911,
);
const SPREAD: (&str, &str, u64) = (
    "-14111 -14106 -14100 -14094 -14086 -14077 -14072 -14066",
    "14213 14230 14236 14242 14244 14247 14264 32767",
    0x46984ac4f1fb5b2d,
);
const THREE: (&str, &str, u64) = (
    "-6578 -6576 -6574 -6572 -6570 -6568 -6566 -6563",
    "32646 32663 32681 32698 32715 32732 32749 32767",
    0x7a2c21c61454acac,
);

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A long tail, with equal values: 10⁶/(1 + 7919·i mod 10007), whole.
fn tail() -> Vec<f64> {
    (1..=3000_u32).map(|i| f64::from(1_000_000 / (1 + i * 7919 % 10007))).collect()
}

/// No pattern, below 5.003, written with three digits.
fn spread() -> Vec<f64> {
    (1..=5000_u32).map(|i| f64::from(i * i * 31 % 5003) / 1000.0).collect()
}

/// Three values, below zero, too.
fn three() -> Vec<f64> {
    (0..400).map(|i| [-2.5, 0.0, 10.25][i % 7 % 3]).collect()
}

#[test]
fn maketable_is_that_of_iproute2_byte_for_byte() {
    for (name, values, expected) in
        [("tail", tail(), TAIL), ("spread", spread(), SPREAD), ("three", three(), THREE)]
    {
        let table = maketable(&values).unwrap();
        let text = write_dist(COMMENT, &table.entries);
        let ends = (text.lines().nth(1).unwrap(), text.lines().last().unwrap());
        assert_eq!(ends, (expected.0, expected.1), "{name}");
        assert_eq!(hash(&text), expected.2, "{name}");
    }
    assert_eq!(maketable(&[1.0]), None);
    assert_eq!(maketable(&[3.0, 3.0]), None);
}

/// Its fault: the last entry is four standard deviations, although the sample ends at 1.73 of them.
#[test]
fn maketable_ends_at_four_standard_deviations() {
    let values: Vec<f64> = (0..1000).map(f64::from).collect();
    let table = maketable(&values).unwrap();
    assert_eq!(*table.entries.last().unwrap(), 32767);
    let sample = Sample::new(values.clone()).unwrap();
    let other = by_quantiles(|p| sample.quantile(p)).unwrap();
    assert!(other.value(*other.entries.last().unwrap()) < 1000.0);
    assert!(other.judge(&sample).wasserstein < table.judge(&sample).wasserstein);
}

/// Quantiles keep atoms, where maketable draws lines between them; mean and deviation come out as in the sample.
#[test]
fn a_table_by_quantiles_has_the_values_of_the_sample() {
    let sample = Sample::new(three()).unwrap();
    let table = by_quantiles(|p| sample.values()[(p * sample.len() as f64) as usize]).unwrap();
    let judgement = table.judge(&sample);
    // Each value is met to half a step of σ/8192, and each weight to one entry in 4096.
    assert!(judgement.wasserstein < 0.5 * table.sd / 8192.0 + 12.75 / 4096.0, "{judgement:?}");
    assert!((judgement.mean - sample.mean()).abs() < 0.005, "{judgement:?}");
    // Both of the values as they are, not of a population that they are a sample of.
    let sd = sample.sd() * libm::sqrt(399.0 / 400.0);
    assert!((judgement.sd / sd - 1.0).abs() < 0.0002, "{judgement:?}");
    let drawn = maketable(&three()).unwrap().judge(&sample);
    assert!(drawn.wasserstein > 1.0, "lines between the three: {drawn:?}");
    assert_eq!(by_quantiles(|_| 1.0), None);
}

/// Where the tail is longer than four standard deviations the table's unit is widened, so that nothing is cut.
#[test]
fn a_table_by_quantiles_keeps_a_long_tail() {
    let sample = Sample::new(tail()).unwrap();
    let table = by_quantiles(|p| sample.quantile(p)).unwrap();
    let expected = sample.quantile(4095.5 / 4096.0);
    assert!((table.value(*table.entries.last().unwrap()) / expected - 1.0).abs() < 1e-4);
    assert!(table.sd > sample.sd());
}
