//! Arithmetic on doubles in software, against this processor's.

use super::harness::{Harness, Random};

/// Bits of a double that is no NaN: of any size, near each other, near a whole number, or tiny.
fn double(random: &mut Random, other: u64) -> u64 {
    let any = random.below(u64::MAX);
    let bits = match random.below(8) {
        0 | 1 => any,
        2 => other ^ (1 << 63) ^ (any & 0xff),
        3 => (((any >> 40) as f64) / 2.0).to_bits(),
        4 => ((any >> (any % 60)) as f64).to_bits(),
        5 => any & ((1 << 56) - 1), // subnormal, and the least normal ones
        6 => 0x3ff << 52 | any >> 12 ^ (any & 1) << 52,
        _ => any & (1 << 63) | (1023 + any % 64 - 32) << 52 | any >> 12 & !0xfff,
    };
    if f64::from_bits(bits).is_nan() { 0 } else { bits }
}

#[test]
fn results_are_those_of_a_processor() {
    const PAIRS: usize = 300_000;
    let (mut random, mut pairs) = (Random::default(), Vec::new());
    for _ in 0..PAIRS {
        let one = double(&mut random, 0);
        pairs.push([one, double(&mut random, one)]);
    }
    for zero in [0.0, -0.0, 1.0, -1.0, f64::INFINITY, f64::MIN_POSITIVE, 5e-324, f64::MAX, 0.5, 1e300, 4.5e15]
    {
        pairs.extend(
            [0.0, -0.0, 1.0, -1.0, 3.0, f64::MAX, 5e-324].map(|other: f64| [zero.to_bits(), other.to_bits()]),
        );
    }
    let input = pairs.iter().flatten().flat_map(|bits: &u64| bits.to_ne_bytes()).collect();
    let output = Harness::new("floats").run(&["floats"], input);
    let (results, []) = output.as_chunks::<48>() else { panic!("half a result") };
    assert_eq!(results.len(), pairs.len());
    for (&[a, b], results) in pairs.iter().zip(results) {
        let result =
            |number: usize| u64::from_ne_bytes(results[8 * number..8 * number + 8].try_into().unwrap());
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let what = format!("{x:e} ({a:#x}) and {y:e} ({b:#x})");
        let same = |ours: u64, theirs: f64, how: &str| {
            assert!(
                theirs.is_nan() || ours == theirs.to_bits(),
                "{how} of {what}: {:e}, not {theirs:e}",
                f64::from_bits(ours)
            );
        };
        same(result(0), x + y, "sum");
        same(result(1), x * y, "product");
        same(result(2), x / y, "quotient");
        assert_eq!(result(3), x as u64, "whole part of {what}");
        assert_eq!(result(4) != 0, x < y, "order of {what}");
        assert_eq!(result(5), (a as f64).to_bits(), "{a} as a double");
    }
}
