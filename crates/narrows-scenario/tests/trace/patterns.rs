//! Patterns: read, written, made; what the engine makes of them.

use narrows_core::model::{DelayModel, Selector};
use narrows_core::{Duration, Rate};
use narrows_scenario::pattern::{About, CannotMake, Pattern, Per, Random};
use narrows_scenario::{Share, typed};
use proptest::prelude::*;

use crate::ms;

fn pattern(text: &str) -> Pattern {
    Pattern::read("x.pattern", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

/// The first and the last place of each range that is hit, as they stand in a file.
fn hits(pattern: &Pattern) -> Vec<(u64, u64)> {
    pattern.hits().expect("it has hits").iter().map(|range| (range.start + 1, range.end)).collect()
}

fn share(percent: &str) -> Share {
    typed::share(percent).expect("a share")
}

#[test]
fn a_file_says_what_where_and_is_written_as_it_is_read() {
    let text = "pattern loss\nper packet\nlength 1000\n11-15\n400\n";
    let loss = pattern(text);
    assert_eq!((loss.about(), loss.per(), loss.length()), (About::Loss, Per::Packet, 1000));
    assert_eq!(hits(&loss), [(11, 15), (400, 400)]);
    assert_eq!(loss.text(), text);
    let same = pattern("# a\n per packet \nlength 1000\n\npattern loss\n11,12 13-15\n");
    assert_eq!(hits(&same), [(11, 15)]);
    let selector = loss.selector().unwrap();
    assert_eq!((selector.mean(), selector.mean_burst()), (0.006, Some(3.0)));
    assert!(loss.bits().is_none() && loss.delays().is_none() && loss.rate_changes().is_none());

    let delay = pattern("pattern delay\nper packet\nlength 100\n1 10ms\n91 30ms\n");
    assert_eq!(delay.delay_changes().unwrap(), [(0, ms(10)), (90, ms(30))]);
    assert_eq!(delay.delays().unwrap().mean(), Some(ms(12)));
    assert!(delay.selector().is_none());

    let bits = pattern("pattern bit-errors\nper bit\nlength 1000000\n8000\n");
    assert_eq!(bits.bits().unwrap().mean(), 1e-6);
    assert!(bits.selector().is_none());
    let packets = pattern("pattern bit-errors\nper ms\nlength 10\n2\n");
    assert!(packets.bits().is_none() && packets.selector().unwrap().mean() == 0.1);

    let rate = pattern("pattern rate\nper millisecond\nlength 10\n1 1.5mbit\n3 down\n5 unlimited\n");
    let bits = |bits| Rate::from_bits_per_second(bits);
    assert_eq!(rate.rate_changes().unwrap(), [(0, bits(1_500_000)), (2, Rate::DOWN), (4, Rate::UNLIMITED)]);
    assert_eq!(pattern(&rate.text()), rate);
}

#[test]
fn patterns_are_made_of_places_runs_and_lists() {
    let at = Pattern::at(About::Loss, Per::Packet, 1000, "11-15, 400").unwrap();
    assert_eq!(at, pattern("pattern loss\nper packet\nlength 1000\n11-15\n400\n"));
    let runs = Pattern::runs(About::Loss, Per::Packet, "10 pass, 5 lose, 0 pass, 1 hit, 4 pass").unwrap();
    assert_eq!((runs.length(), hits(&runs)), (20, vec![(11, 16)]));
    let runs = Pattern::runs(About::Delay, Per::Millisecond, "50 10ms, 25 10ms, 25 30ms").unwrap();
    assert_eq!(runs, pattern("pattern delay\nper ms\nlength 100\n1 10ms\n76 30ms\n"));
    let list =
        Pattern::list(About::Rate, Per::Millisecond, "list", b"# rates\n1mbit\n1mbit\n\n2mbit\n").unwrap();
    assert_eq!(list, pattern("pattern rate\nper ms\nlength 3\n1 1mbit\n3 2mbit\n"));
    let list = Pattern::list(About::BitErrors, Per::Packet, "list", b"0\n1\n1\n0\n").unwrap();
    assert_eq!(hits(&list), [(2, 3)]);

    let error = Pattern::list(About::Loss, Per::Packet, "list", b"0\n2\n").unwrap_err().to_string();
    assert!(error.contains("list:2") && error.contains("`pass` or `hit`"), "{error}");
    let error = Pattern::runs(About::Delay, Per::Packet, "50 10").unwrap_err().to_string();
    assert!(error.contains("no unit"), "{error}");
    assert!(matches!(Pattern::runs(About::Loss, Per::Bit, "1 hit"), Err(CannotMake::Places { .. })));
    assert!(matches!(Pattern::runs(About::Loss, Per::Packet, "0 hit"), Err(CannotMake::Length(0))));
    assert!(Pattern::list(About::Loss, Per::Packet, "list", b"").unwrap_err().to_string().contains("empty"));
}

#[test]
fn random_places_have_the_rate_and_the_bursts_asked_for() {
    const LENGTH: u64 = 500_000;
    let make = |rate: &str, burst, seed| {
        Pattern::random(About::Loss, Per::Packet, LENGTH, &Random { rate: share(rate), burst, seed })
    };
    // Independent: bursts of 1/(1 − r) in the mean.
    for (rate, burst, expected) in [("5%", None, 1.0 / 0.95), ("5%", Some(4.0), 4.0), ("40%", Some(1.0), 1.0)]
    {
        let info = make(rate, burst, 11).unwrap().info().hits.unwrap();
        let r = share(rate).as_f64();
        // The variance of the mean of a two-state chain with eigenvalue λ = 1 − enter − leave is r(1 − r)/n·(1 + λ)/(1 − λ).
        let (leave, enter) = (1.0 / expected, r / (expected * (1.0 - r)));
        let eigenvalue: f64 = 1.0 - leave - enter;
        let variance: f64 = r * (1.0 - r) / LENGTH as f64 * (1.0 + eigenvalue) / (1.0 - eigenvalue);
        assert!((info.share - r).abs() < 4.0 * variance.sqrt(), "{rate} {burst:?}: {}", info.share);
        // Geometric bursts: standard deviation √(1 − leave)/leave.
        let error: f64 = (1.0 - leave).max(0.0).sqrt() / leave / (info.bursts as f64).sqrt();
        assert!(
            (info.mean_burst.unwrap() - expected).abs() <= 4.0 * error + 1e-9,
            "{rate} {burst:?}: {info:?}"
        );
    }
    assert_eq!(make("1%", None, 1).unwrap(), make("1%", None, 1).unwrap());
    assert_ne!(make("1%", None, 1).unwrap(), make("1%", None, 2).unwrap());
    assert!(make("0%", None, 1).unwrap().hits().unwrap().is_empty());
    let error = make("60%", Some(1.2), 1).unwrap_err().to_string();
    assert!(error.contains("at least 1.5"), "{error}");
    assert!(matches!(make("100%", None, 1), Err(CannotMake::Burst { .. })));
    let none =
        Pattern::random(About::Delay, Per::Packet, 10, &Random { rate: share("1%"), burst: None, seed: 1 });
    assert!(matches!(none, Err(CannotMake::NoHits(About::Delay))));
}

#[test]
fn info_has_bursts_gaps_and_means() {
    let info = pattern("pattern loss\nper packet\nlength 100\n11-15\n40\n").info();
    let hits = info.hits.unwrap();
    assert_eq!((hits.places, hits.bursts, hits.mean_burst), (6, 2, Some(3.0)));
    assert_eq!((hits.longest_burst, hits.longest_gap), (5, 60));
    assert!(info.to_string().contains("6 hit, 6.0000 % of them, in 2 bursts"), "{info}");
    let info = pattern("pattern delay\nper packet\nlength 100\n1 10ms\n91 30ms\n").info();
    assert!(info.to_string().contains("2 values from 10ms to 30ms, mean 12ms"), "{info}");
    let info = pattern("pattern rate\nper ms\nlength 10\n1 1.5mbit\n3 unlimited\n").info();
    assert!(info.to_string().contains("from 1.5mbit to unlimited, mean unlimited"), "{info}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_again(spans in prop::collection::vec((1..50u64, any::<bool>()), 1..40)) {
        let runs: Vec<String> = spans.iter().map(|(count, hit)| format!("{count} {}", if *hit { "hit" } else { "pass" })).collect();
        let made = Pattern::runs(About::Loss, Per::Packet, &runs.join(",")).unwrap();
        prop_assert_eq!(made.length(), spans.iter().map(|span| span.0).sum::<u64>());
        let hit: u64 = spans.iter().filter(|span| span.1).map(|span| span.0).sum();
        prop_assert_eq!(made.info().hits.unwrap().places, hit);
        prop_assert_eq!(&pattern(&made.text()), &made);
        let delays: Vec<String> = spans.iter().map(|(count, hit)| format!("{count} {}us", if *hit { *count } else { 7 })).collect();
        let made = Pattern::runs(About::Delay, Per::Packet, &delays.join(",")).unwrap();
        let sum: u64 = spans.iter().map(|(count, hit)| count * 1_000 * if *hit { *count } else { 7 }).sum();
        prop_assert_eq!(made.delays().unwrap().mean(), Some(Duration::from_nanos(sum / made.length())));
        prop_assert_eq!(&pattern(&made.text()), &made);
    }
}
