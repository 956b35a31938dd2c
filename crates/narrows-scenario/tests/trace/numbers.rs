//! Resampled traces, and what traces come to.

use narrows_core::queue::Bound;
use narrows_core::{Duration, Rate};
use proptest::prelude::*;

use crate::{at, mbit, ms, rates, read};

#[test]
fn steps_have_means_and_the_last_one_may_be_shorter() {
    let text = "time_ms,rate_mbit,delay_ms,loss,queue_packets\n0,8,10,0,5\n50,4,30,1,9\n120,unlimited,,0.5,7\n170,2,,,\n250\n";
    let trace = read("x.csv", text).resample(ms(100)).unwrap();
    assert_eq!(trace.length(), ms(250));
    assert_eq!(rates(&trace), [(0, mbit(6)), (100, Rate::UNLIMITED), (200, mbit(2))]);
    assert_eq!(trace.delay().unwrap(), &[(at(0), ms(20)), (at(100), ms(30)), (at(200), ms(30))]);
    let losses: Vec<f64> = trace.loss().unwrap().iter().map(|point| point.1.as_f64()).collect();
    // From 100 to 120 ms all, then half.
    assert!((losses[0] - 0.5).abs() < 1e-12 && (losses[1] - 0.6).abs() < 1e-12 && losses[2] == 0.5);
    let bounds: Vec<Bound> = trace.bound().unwrap().iter().map(|point| point.1).collect();
    assert_eq!(bounds, [5, 9, 7].map(Bound::Packets));
    assert!(trace.resample(Duration::ZERO).is_none());
    assert!(trace.resample(Duration::from_nanos(1)).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// As many bits can go as before, but for half a bit a second in each step.
    #[test]
    fn resampling_keeps_the_bits(steps in prop::collection::vec((1..2_000_000u64, 0..1_000_000_000u64), 1..40), step in 1_000..3_000_000u64) {
        let mut text = "time_ns,rate_bit\n".to_owned();
        let (mut end, mut bits) = (0u64, 0u128);
        for (lasts, rate) in &steps {
            text += &format!("{end},{rate}\n");
            end += lasts;
            bits += u128::from(*lasts) * u128::from(*rate);
        }
        let trace = read("x.csv", &format!("{text}{end}\n")).resample(Duration::from_nanos(step)).unwrap();
        let mut again = 0u128;
        for (number, point) in trace.rate().unwrap().iter().enumerate() {
            prop_assert_eq!(point.0.nanos(), number as u64 * step);
            let lasts = step.min(end - point.0.nanos());
            again += u128::from(lasts) * u128::from(point.1.bits_per_second());
        }
        prop_assert!(again.abs_diff(bits) <= u128::from(end), "{} {}", again, bits);
    }

    /// No opportunity is lost or won, wherever the steps are.
    #[test]
    fn resampling_keeps_the_opportunities(millis in prop::collection::vec(0..500u64, 1..100), step in 1..700u64) {
        let mut millis = millis;
        millis.push(500);
        millis.sort_unstable();
        let text: String = millis.iter().map(|milli| format!("{milli}\n")).collect();
        let trace = read("x", &text).resample(ms(step)).unwrap();
        prop_assert!(trace.opportunities().is_none());
        let bits: f64 = rates(&trace).iter().map(|(start, rate)| rate.bits_per_second() as f64 * step.min(500 - start) as f64 / 1e3).sum();
        // Half a bit a second in each step, for half a second in all.
        prop_assert!((bits - millis.len() as f64 * 12_032.0).abs() <= 0.3, "{}", bits);
    }
}

/// At an opportunity something is sent: the gaps before and behind it are two.
#[test]
fn an_opportunity_ends_an_outage() {
    // Milliseconds, the last of which is the length.
    let trace = read("x", "1\n1501\n3201\n3202\n");
    let outages: Vec<_> =
        trace.info().outages.iter().map(|outage| (outage.start_ns, outage.length_ns)).collect();
    assert_eq!(outages, [(1_000_000, 1_500_000_000), (1_501_000_000, 1_700_000_000)]);
}

#[test]
fn info_has_means_over_time_and_outages() {
    let info =
        read("x.csv", "time_s,rate_mbit,loss\n0,10,0\n1,0,0\n1.5,down,1\n2,unlimited,0\n3,2,1\n5,4,0\n6\n")
            .info();
    assert_eq!((info.format, info.then, info.length_ns, info.points), ("csv", "hold", 6_000_000_000, 12));
    let rate = &info.columns[0];
    // 10, 0, 2, 2 and 4 Mbit/s over five of six seconds.
    assert_eq!((rate.min, rate.max), (Some(0.0), Some(10e6)));
    assert!((rate.mean.unwrap() - 18e6 / 5.0).abs() < 1e-6 && (rate.unlimited - 1.0 / 6.0).abs() < 1e-12);
    let loss = &info.columns[1];
    assert!((loss.mean.unwrap() - 2.5 / 6.0).abs() < 1e-12);
    let outages: Vec<_> = info.outages.iter().map(|outage| (outage.start_ns, outage.length_ns)).collect();
    // The loss of all from 1.5 to 2 s is in the time without a rate.
    assert_eq!(outages, [(1_000_000_000, 1_000_000_000), (3_000_000_000, 2_000_000_000)]);
    let text = info.to_string();
    for part in [
        "csv trace of 6 s",
        "12 points",
        "holds its last values",
        "3.6 Mbit/s",
        "unlimited for 16.67%",
        "2 outages, 3 s in all, the longest 2 s",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn info_of_opportunities_has_the_rate_that_they_come_to() {
    let text: String = (1..=1000).chain([3000]).map(|milli| format!("{milli}\n")).collect();
    let info = read("x", &text).info();
    let column = &info.columns[0];
    assert_eq!((column.name, column.points), ("opportunities", 1001));
    assert!((column.mean.unwrap() - 1001.0 * 12_032.0 / 3.0).abs() < 1e-6);
    assert_eq!((column.min, column.max), (Some(0.0), Some(12_032_000.0)));
    assert_eq!(info.outages.len(), 1);
    assert_eq!((info.outages[0].start_ns, info.outages[0].length_ns), (1_000_000_000, 2_000_000_000));
    assert!(info.to_string().contains("begins again"));
}
