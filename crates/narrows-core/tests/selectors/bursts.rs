//! Models of bursts: the share lost, the mean lengths of bursts and gaps and their distributions, against the closed forms
//! and against a chain worked through state by state.

use narrows_core::model::selector::{
    Conditional, FourState, GilbertElliott, Selector, SelectorError, Transitions,
};
use narrows_core::{Probability, Seed, Stream};

use crate::chain::Chain;
use crate::sample::{Estimate, assert_lengths, ratio, runs, select};

const PACKETS: u64 = 300_000;

fn percent(percent: u64) -> Probability {
    ratio(percent, 100)
}

/// What a model says of itself, what it does, and what the chain says.
fn check<const N: usize>(name: &str, model: impl Selector, chain: &Chain<N>) {
    let rate = chain.rate();
    let (bursts, gaps) = (chain.runs(true, 5_000), chain.runs(false, 5_000));
    let mean = |lengths: &[f64]| (1..).zip(lengths).map(|(length, p)| f64::from(length) * p).sum::<f64>();
    let close = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-6, "{name}: {a} for {b}");
    close(model.mean(), rate);
    close(model.mean_burst().expect("it is known"), mean(&bursts));

    let row = select(model, 11, PACKETS);
    let lost: Vec<f64> = row.iter().map(|&lost| f64::from(u8::from(lost))).collect();
    Estimate::of_dependent(&lost).assert_is(rate, &format!("{name}: share lost"));
    for (which, lengths, expected) in [("burst", runs(&row, true), bursts), ("gap", runs(&row, false), gaps)]
    {
        let measured: Vec<f64> = lengths.iter().map(|&length| length as f64).collect();
        let what = format!("{name}: {which}");
        Estimate::of_dependent(&measured).assert_is(mean(&expected), &what);
        assert_lengths(&lengths, |length| expected.get(length - 1).copied().unwrap_or(0.0), &what);
    }
}

#[test]
fn gilbert_and_elliott() {
    for (name, [p, r, bad, good]) in [
        ("simple Gilbert", [percent(1), percent(25), percent(100), percent(0)]),
        ("Gilbert", [percent(2), percent(10), percent(70), percent(0)]),
        ("Gilbert-Elliott", [percent(5), percent(20), percent(60), percent(3)]),
        ("quick", [percent(60), percent(90), percent(100), percent(0)]),
    ] {
        let model = GilbertElliott::new(p, r, bad, good);
        let [p, r, bad, good] = [p, r, bad, good].map(Probability::as_f64);
        let chain = Chain { moves: [[1.0 - p, p], [r, 1.0 - r]], loses: [good, bad] };
        check(name, model, &chain);
    }
}

#[test]
fn four_states() {
    let of = |p13, p31, p32, p23, p14| {
        let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(percent);
        Transitions { p13, p31, p32, p23, p14 }
    };
    for (name, transitions) in [
        ("all", of(2, 30, 20, 60, 1)),
        ("tc's defaults", of(10, 90, 0, 100, 0)),
        ("single losses only", of(0, 0, 0, 0, 5)),
        ("no single losses", of(3, 10, 40, 30, 0)),
        ("nothing stays", of(80, 60, 40, 100, 20)),
    ] {
        let model = FourState::new(transitions).expect("no sum is above 1");
        let Transitions { p13, p31, p32, p23, p14 } = transitions;
        let [p13, p31, p32, p23, p14] = [p13, p31, p32, p23, p14].map(Probability::as_f64);
        let moves = [
            [1.0 - p13 - p14, 0.0, p13, p14],
            [0.0, 1.0 - p23, p23, 0.0],
            [p31, p32, 1.0 - p31 - p32, 0.0],
            [1.0, 0.0, 0.0, 0.0],
        ];
        check(name, model, &Chain { moves, loses: [0.0, 0.0, 1.0, 1.0] });
    }
    assert_eq!(
        FourState::new(of(60, 10, 0, 0, 50)).unwrap_err(),
        SelectorError::Leaves { state: 1, sum: 1.1 }
    );
}

#[test]
fn conditional() {
    let model = Conditional::new([percent(5), percent(30), percent(60)]).expect("there are some");
    let moves = [[0.95, 0.05, 0.0], [0.7, 0.0, 0.3], [0.4, 0.0, 0.6]];
    // The state is how many were lost before; a packet is lost with the probability of its state, and so the next state
    // follows from its fate: three states more, in which the packet is lost.
    let states: [[f64; 6]; 6] = std::array::from_fn(|from| {
        std::array::from_fn(|to| {
            let (count, lost) = (from % 3, from >= 3);
            let next = if lost { (count + 1).min(2) } else { 0 };
            let p = moves[next][0];
            match to {
                to if to % 3 != next => 0.0,
                to if to >= 3 => 1.0 - p,
                _ => p,
            }
        })
    });
    let chain = Chain { moves: states, loses: [0.0, 0.0, 0.0, 1.0, 1.0, 1.0] };
    check("conditional", model, &chain);
    assert_eq!(Conditional::new([]).unwrap_err(), SelectorError::NoProbabilities);
    assert_eq!(Conditional::new([percent(0), percent(50)]).expect("two").mean(), 0.0);
    assert_eq!(Conditional::new([percent(10), percent(100)]).expect("two").mean(), 1.0);
}

/// However short the run: over many seeds the first packets have the share of the long run.
#[test]
fn the_first_packets_are_like_all_others() {
    let starts = 20_000;
    let first = |of: &dyn Fn() -> Box<dyn Selector>| {
        let lost = (0..starts).filter(|&seed| {
            let mut stand = narrows_core::queue::Stand::new(Seed(1));
            let packet = stand.insert(narrows_core::Time::ZERO, narrows_core::FlowKey::default(), 100);
            let mut draw = Stream::new(Seed(seed), "link", "loss").nth(0);
            of().selects(narrows_core::Time::ZERO, stand.pool().get(packet), &mut draw)
        });
        let share = lost.count() as f64 / starts as f64;
        let expected = of().mean();
        let error = (expected * (1.0 - expected) / starts as f64).sqrt();
        Estimate { mean: share, error }.assert_is(expected, "the first packet");
    };
    first(&|| Box::new(GilbertElliott::new(percent(1), percent(2), percent(90), percent(1))));
    let [p13, p31, p32, p23, p14] = [2, 10, 20, 30, 5].map(percent);
    let transitions = Transitions { p13, p31, p32, p23, p14 };
    first(&|| Box::new(FourState::new(transitions).expect("no sum is above 1")));
}

/// A state that is never left is found from the good one on, after a geometric time.
#[test]
fn a_state_without_return_is_reached_in_time() {
    let [p13, none] = [ratio(1, 1000), percent(0)];
    let gilbert = || GilbertElliott::new(ratio(1, 1000), none, percent(100), none);
    let four = || {
        FourState::new(Transitions { p13, p31: none, p32: none, p23: none, p14: none })
            .expect("no sum above 1")
    };
    for (name, row) in [("gilbert", select(gilbert(), 5, 20_000)), ("four", select(four(), 5, 20_000))] {
        let first = row.iter().position(|&lost| lost).expect("sometime");
        assert!(first > 0 && row[first..].iter().all(|&lost| lost), "{name}: {first}");
    }
    assert_eq!((gilbert().mean(), four().mean()), (1.0, 1.0));
}
