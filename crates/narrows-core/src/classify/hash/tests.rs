use super::*;
use alloc::vec;
use alloc::vec::Vec;

fn hash(seed: u64, classes: u32, identity: Identity) -> FlowHash {
    FlowHash::new(Seed(seed), "wire", classes, identity)
}

fn address(last: u32) -> [u8; 16] {
    (0xffff_0a00_0000_u128 + u128::from(last)).to_be_bytes()
}

fn flow(source: u32, destination: u32, source_port: u16, destination_port: u16, transport: u8) -> FlowKey {
    let (source, destination) = (address(source), address(destination));
    FlowKey { source, destination, source_port, destination_port, transport, ..FlowKey::default() }
}

/// Populations as they come in tests and attacks on hashes: neighbours in one field.
fn populations() -> Vec<(&'static str, Vec<FlowKey>)> {
    let of = |make: &dyn Fn(u32) -> FlowKey| (0..40_960).map(make).collect();
    vec![
        ("source ports", of(&|n| flow(1, 2, n as u16, 443, 6))),
        ("both ports", of(&|n| flow(1, 2, n as u16, n as u16, 17))),
        ("sources", of(&|n| flow(n, 2, 5000, 443, 6))),
        ("destinations", of(&|n| flow(1, n, 5000, 443, 6))),
        ("pairs", of(&|n| flow(n, n + 1, 5000, 443, 6))),
        (
            "networks",
            of(&|n| {
                let source = (u128::from(n) << 64).to_be_bytes();
                FlowKey { source, ..flow(0, 2, 5000, 443, 6) }
            }),
        ),
    ]
}

/// With 40 flows to a class, the sum of (seen − 40)²/40 over 1024 classes is distributed as χ² with 1023 degrees of
/// freedom: 1023 on average, with a standard deviation of √2046 = 45. Within five of these.
#[test]
fn flows_are_spread_evenly() {
    let hash = hash(1, 1024, Identity::FiveTuple);
    for (name, flows) in populations() {
        let mut seen = vec![0_i64; 1024];
        for key in &flows {
            seen[hash.class(key) as usize] += 1;
        }
        let spread: i64 = seen.iter().map(|count| (count - 40) * (count - 40)).sum();
        let chi_square = spread as f64 / 40.0;
        assert!((chi_square - 1023.0).abs() < 5.0 * 45.2, "{name}: {chi_square}");
    }
}

/// Two flows of one class are not together under another seed, but for one pair in 64. Of some n pairs that is n/64, with
/// a standard error of √(n/64).
#[test]
fn who_meets_whom_is_the_seeds_choice() {
    let (one, other) = (hash(1, 64, Identity::FiveTuple), hash(2, 64, Identity::FiveTuple));
    for (name, flows) in populations() {
        let flows = &flows[..2_000];
        let class = |hash: &FlowHash| flows.iter().map(|key| hash.class(key)).collect::<Vec<_>>();
        let (first, second) = (class(&one), class(&other));
        let (mut pairs, mut again) = (0.0, 0.0);
        for i in 0..flows.len() {
            for j in (0..i).filter(|&j| first[i] == first[j]) {
                pairs += 1.0;
                again += f64::from(u8::from(second[i] == second[j]));
            }
        }
        let expected = pairs / 64.0;
        assert!((again - expected).abs() < 5.0 * libm::sqrt(expected), "{name}: {again} of {pairs}");
    }
}

#[test]
fn what_makes_a_flow_is_what_was_asked_for() {
    let key = flow(1, 2, 5000, 443, 6);
    let changed = [
        FlowKey { source: address(9), ..key },
        FlowKey { destination: address(9), ..key },
        FlowKey { source_port: 5001, ..key },
        FlowKey { destination_port: 444, ..key },
        FlowKey { transport: 17, ..key },
        FlowKey { traffic_class: 0xb8, mark: 7, ..key },
    ];
    for (identity, counts) in [
        (Identity::FiveTuple, [true, true, true, true, true, false]),
        (Identity::Source, [true, false, false, false, false, false]),
        (Identity::Destination, [false, true, false, false, false, false]),
        (Identity::Addresses, [true, true, false, false, false, false]),
    ] {
        // So many classes that two flows in one are not to be expected.
        let hash = hash(1, u32::MAX, identity);
        let differs = changed.map(|other| hash.class(&other) != hash.class(&key));
        assert_eq!(differs, counts, "{identity:?}");
    }
    let [there, back] = [flow(1, 2, 5000, 443, 6), flow(2, 1, 443, 5000, 6)];
    let hash = hash(1, u32::MAX, Identity::FiveTuple);
    assert_ne!(hash.class(&there), hash.class(&back), "directions are flows of their own");
}

#[test]
fn classes_are_as_many_as_asked_for() {
    for classes in [0, 1, 2, 3, 1000] {
        let hash = hash(1, classes, Identity::FiveTuple);
        let seen: Vec<_> = (0..20_000).map(|n| hash.class(&flow(n, 2, 3, 4, 5))).collect();
        let most = classes.max(1) - 1;
        assert_eq!((hash.classes(), seen.iter().min(), seen.iter().max()), (most + 1, Some(&0), Some(&most)));
    }
    let named = |name| FlowHash::new(Seed(1), name, u32::MAX, Identity::Source).class(&flow(1, 2, 3, 4, 5));
    assert_ne!(named("a"), named("b"), "each scheduler has its own");
}
