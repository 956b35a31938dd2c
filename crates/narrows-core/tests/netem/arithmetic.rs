//! The integer arithmetic against the formulas, in wider numbers, and against answers worked out by hand.

use narrows_core::netem::{Crandom, NoTable, Rate, Share, Table, packet_nanos, table_delay};
use narrows_core::{Seed, Stream};
use proptest::collection::vec;
use proptest::prelude::*;

#[test]
fn percentages_are_quantised_as_tc_does() {
    // rint(p·(2³² − 1)): 25 % is 1073741823.75, 50 % is 2147483647.5, and a half goes to the even number.
    for (percent, raw) in [
        (0.0, 0),
        (100.0, u32::MAX),
        (50.0, 2_147_483_648),
        (25.0, 1_073_741_824),
        (1.0, 42_949_673),
        (0.3, 12_884_902),
        (0.000_000_01, 0),
        (0.000_000_02, 1),
    ] {
        assert_eq!(Share::from_percent(percent), Some(Share::from_raw(raw)), "{percent}");
    }
    assert_eq!(Share::from_percent(101.0), None);
    assert_eq!(Share::from_percent(-1.0), None);
    assert_eq!(Share::from_percent(f64::NAN), None);
    assert_eq!(Share::from_percent(30.0).map(|h| h.complement().raw()), Some(u32::MAX - 1_288_490_188));
}

#[test]
fn answers_known_beforehand() {
    // (2³² − 1)·(2³¹ − 1) / 2³², and (123456789·3221225471 + 987654321·1073741825) / 2³².
    let half = Share::from_percent(50.0).expect("a percentage");
    assert_eq!(Crandom::new(half, 0).next(u32::MAX), 2_147_483_646);
    let quarter = Share::from_percent(25.0).expect("a percentage");
    assert_eq!(Crandom::new(quarter, 987_654_321).next(123_456_789), 339_506_172);
    // Without a correlation nothing is remembered; with all of it nothing else counts.
    assert_eq!(Crandom::new(Share::ZERO, 5).next(77), 77);
    assert_eq!(Crandom::new(Share::ONE, 5).next(77), 5);

    let table = Table::new(vec![8192, -8192, 4096, -1, 1]).expect("a few values");
    let at = |random| table_delay(10_000_000, 1_000_000, random, Some(&table));
    // 1,000,000 is 122·8192 + 576: of 4096, 122·4096 + 288; of 1, 122 and 576/8192 = 0.07, which rounds to 0.
    assert_eq!([0, 1, 2, 3, 4].map(at), [11_000_000, 9_000_000, 10_500_000, 9_999_878, 10_000_122]);
    assert_eq!(at(5), 11_000_000);
    // Half of 8192 rounds away from zero.
    let table = Table::new(vec![1, -1]).expect("two");
    assert_eq!([0, 1].map(|random| table_delay(0, 4096, random, Some(&table))), [1, -1]);
    // Without a table uniform, the upper end left out.
    let flat = |random| table_delay(1_000, 100, random, None);
    assert_eq!([0, 199, 200, 100].map(flat), [900, 1_099, 900, 1_000]);

    // 1514 bytes and 10 more at 125,000 bytes a second; in cells of 48 and 5, that is 32 cells of 53 bytes.
    let rate = Rate { bytes_per_second: 125_000, packet_overhead: 10, cell_size: 0, cell_overhead: 0 };
    assert_eq!(packet_nanos(1514, rate), 12_192_000);
    assert_eq!(packet_nanos(1514, Rate { bytes_per_second: 0, ..rate }), 0);
    assert_eq!(packet_nanos(1514, Rate { cell_size: 48, cell_overhead: 5, ..rate }), 13_568_000);
    // A length below zero wraps around.
    let shrinks = Rate { packet_overhead: -100, ..rate };
    assert_eq!(packet_nanos(60, shrinks), 40u64.wrapping_neg().wrapping_mul(1_000_000_000) / 125_000);
}

/// How much of `loss 20% 40%` is lost, against the distribution that the formula has in the long run: its density is
/// `f(x) = (F(x/ρ) − F((x − 1 + ρ)/ρ))/(1 − ρ)`, F being its integral, and is found by putting it into itself.
#[test]
fn a_correlation_makes_rare_what_is_rare() {
    let (rho, steps) = (0.4, 2_000usize);
    let mut integral: Vec<f64> = (0..=steps).map(|n| n as f64 / steps as f64).collect();
    let at = |integral: &[f64], x: f64| {
        let place = x.clamp(0.0, 1.0) * steps as f64;
        let below = (place as usize).min(steps - 1);
        integral[below] + (integral[below + 1] - integral[below]) * (place - below as f64)
    };
    for _ in 0..30 {
        let density = |n: usize| {
            let x = n as f64 / steps as f64;
            (at(&integral, x / rho) - at(&integral, (x - 1.0 + rho) / rho)) / (1.0 - rho)
        };
        let mut sum = 0.0;
        let mut next = vec![0.0];
        for n in 0..steps {
            sum += (density(n) + density(n + 1)) / 2.0;
            next.push(sum);
        }
        integral = next.iter().map(|part| part / sum).collect();
    }
    let expected = at(&integral, 0.2);
    assert!((expected - 0.05317).abs() < 1e-4, "{expected}");

    let percent = |percent| Share::from_percent(percent).expect("a percentage");
    let mut crandom = Crandom::new(percent(40.0), u32::MAX / 2);
    let stream = Stream::new(Seed(8), "link", "netem loss");
    let lost: Vec<bool> = (0..400_000)
        .map(|n| crandom.next((stream.nth(n).bits() >> 32) as u32) <= percent(20.0).raw())
        .collect();
    // Means of batches of 4,000, beyond any dependence, for the standard error.
    let batches: Vec<f64> =
        lost.chunks(4_000).map(|batch| batch.iter().filter(|&&lost| lost).count() as f64 / 4_000.0).collect();
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let error = (batches.iter().map(|b| libm::pow(b - mean, 2.0)).sum::<f64>() / (n - 1.0) / n).sqrt();
    assert!((mean - expected).abs() < 4.0 * error, "{mean} for {expected}, standard error {error}");
}

#[test]
fn tables_have_as_many_values_as_the_kernel_takes() {
    assert_eq!(Table::new(vec![]).unwrap_err(), NoTable { values: 0 });
    assert!(Table::new(vec![0; 16_384]).is_ok());
    let error = Table::new(vec![0; 16_385]).unwrap_err();
    assert_eq!(error.to_string(), "a table of 16385 values: NetEm takes 1 to 16384");
}

proptest! {
    #[test]
    fn correlated_numbers(rho: u32, last: u32, values in vec(any::<u32>(), 1..20)) {
        let mut crandom = Crandom::new(Share::from_raw(rho), last);
        let mut last = last;
        for value in values {
            let answer = if rho == 0 {
                value
            } else {
                let (rho, all) = (u128::from(rho) + 1, 1u128 << 32);
                ((u128::from(value) * (all - rho) + u128::from(last) * rho) / all) as u32
            };
            last = answer;
            prop_assert_eq!(crandom.next(value), answer);
        }
    }

    /// `mu + (sigma/8192)·t + round((sigma % 8192)·t/8192)`, the rounding in doubles, which are exact here: the numbers are
    /// below 2²⁸ and the divisor a power of two.
    #[test]
    fn delays_of_a_table(
        mu in -1i64 << 40..1 << 40,
        sigma in 1i32..,
        random: u32,
        values in vec(any::<i16>(), 1..100),
    ) {
        let t = i64::from(values[random as usize % values.len()]);
        let table = Table::new(values).unwrap();
        let rounded = ((i64::from(sigma % 8192) * t) as f64 / 8192.0).round() as i64;
        let expected = mu + i64::from(sigma / 8192) * t + rounded;
        prop_assert_eq!(table_delay(mu, sigma, random, Some(&table)), expected);
        let uniform = i64::from(random) % (2 * i64::from(sigma)) - i64::from(sigma) + mu;
        prop_assert_eq!(table_delay(mu, sigma, random, None), uniform);
    }

    #[test]
    fn times_on_the_wire(
        length in 60u64..65_535,
        bytes_per_second in 1u64..2_000_000_000,
        packet_overhead in -60i32..200,
        cell_size in 1u32..2_000,
        cell_overhead in 0i32..20,
    ) {
        let plain = Rate { bytes_per_second, packet_overhead, cell_size: 0, cell_overhead: 0 };
        let length_then = i128::from(length) + i128::from(packet_overhead);
        let nanos = |bytes: i128| (bytes * 1_000_000_000 / i128::from(bytes_per_second)) as u64;
        prop_assert_eq!(packet_nanos(length, plain), nanos(length_then));
        let cell = i128::from(cell_size);
        let cells = (length_then + cell - 1) / cell * (cell + i128::from(cell_overhead));
        prop_assert_eq!(packet_nanos(length, Rate { cell_size, cell_overhead, ..plain }), nanos(cells));
    }
}

#[test]
fn a_delay_without_a_spread_is_its_mean() {
    let table = Table::new(vec![-8192, 0, 8192]).unwrap();
    for table in [None, Some(&table)] {
        assert_eq!(table_delay(7, 0, 12_345, table), 7);
    }
}
