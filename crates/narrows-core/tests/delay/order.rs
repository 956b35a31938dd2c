//! Correlated delays through a link that keeps the order.

use narrows_core::model::{Correlated, Distribution};
use narrows_core::{
    Change, Duration, Engine, FlowKey, LinkConfig, NetworkConfig, Order, Packet, PortConfig, Seed, Target,
    Time,
};

use crate::statistics::distance;

/// The delays of packets that come at this gap, in the order in which they came, and how many were held back.
fn send(model: Correlated, order: Order, packets: u64, gap: u64) -> (Vec<f64>, u64) {
    let mut link = LinkConfig::new("l", Target::Port("out".into()));
    link.delay = Box::new(model);
    link.settings.order = order;
    let mut engine = engine(link);
    let port = engine.port("in").expect("it was just configured");
    let mut delays = vec![f64::NAN; packets as usize];
    let mut drain = |engine: &mut Engine<u64>, until| {
        while let Some(event) = engine.poll(until) {
            delays[*event.body.get() as usize] = event.at.since(event.arrival).nanos() as f64;
        }
    };
    for n in 0..packets {
        let at = Time::from_nanos(n * gap);
        drain(&mut engine, at);
        engine.hand_in(at, port, packet(100, n));
    }
    drain(&mut engine, Time::from_nanos(u64::MAX - 1));
    let link = engine.links().next().expect("there is one");
    let held_back = engine.view(link).counters()[0].delayed_to_keep_order;
    (delays, held_back)
}

pub(crate) fn engine(link: LinkConfig) -> Engine<u64> {
    let mut config = NetworkConfig::new(Seed(17));
    let entry = Target::Link { name: link.name.clone(), lane: 0 };
    config.links.push(link);
    let out = Target::Port("out".into());
    config.ports =
        vec![PortConfig { name: "in".into(), entry }, PortConfig { name: "out".into(), entry: out }];
    Engine::new(config).expect("names are unique and lead somewhere")
}

pub(crate) fn packet(length: u32, body: u64) -> Packet<u64> {
    Packet {
        length,
        link_header: 14,
        network_header: 20,
        headers: Default::default(),
        key: FlowKey::default(),
        body,
    }
}

/// The shortest length, to 1 %, at which it is predicted that fewer than 1 % are held back.
fn shortest(distribution: &Distribution) -> u64 {
    let (mut low, mut high) = (1_000.0, 1e13);
    while high / low > 1.01_f64 {
        let middle = (low * high).sqrt();
        let length = Duration::from_nanos(middle as u64);
        let predicted =
            Correlated::in_time(distribution.clone(), length).expect("in range").delayed_to_keep_order();
        if predicted.expect("in range") < 0.01 { high = middle } else { low = middle }
    }
    high as u64
}

fn distributions() -> Vec<Distribution> {
    let normal = |mean, sd| Distribution::normal(mean, sd).expect("in range");
    let modes = vec![(3.0, normal(5e6, 2e5)), (1.0, normal(9e6, 3e5))];
    let samples = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5].map(Duration::from_millis);
    vec![
        normal(10e6, 2e6),
        Distribution::exponential(4e6).expect("in range"),
        Distribution::log_normal(5e6, 5e6).expect("in range"),
        Distribution::uniform(0.0, 10e6).expect("in range"),
        Distribution::mixture(modes).expect("in range"),
        Distribution::samples(samples.to_vec()).expect("in range"),
        normal(1e6, 1e6),
    ]
}

/// Also at the shortest length for which fewer than 1 % are predicted, where it is most difficult.
#[test]
fn what_leaves_has_the_distribution_where_few_are_held_back() {
    let cases = [(1, 2, 100_000), (2, 1, 50_000), (20, 1, 50_000)];
    for (distribution, (longer, per_length, packets)) in
        distributions().into_iter().flat_map(|distribution| cases.map(|case| (distribution.clone(), case)))
    {
        let length = longer * shortest(&distribution);
        let model = Correlated::in_time(distribution.clone(), Duration::from_nanos(length)).unwrap();
        assert!(model.delayed_to_keep_order().unwrap() < 0.01);
        // A length is worth less than half an independent sample: 20,000 of these, whose distance is 0.006 on average
        // without any held back, with a standard error of 0.002.
        let gap = length / per_length;
        let (delays, _) = send(model, Order::Keep, packets, gap);
        let places = (1..200).map(|i| distribution.quantile(f64::from(i) / 200.0));
        let places: Vec<_> = places.map(|x| (x + 0.5, distribution.cdf(x + 0.5))).collect();
        let apart = distance(&delays, &places);
        assert!(apart < 0.02, "{distribution} at {gap} ns: {apart}");
    }
}

/// Many packets come in a length, and few lengths pass: what leaves is compared with what the same packets drew, as they
/// leave a link that lets them overtake.
#[test]
fn so_it_has_where_many_packets_come_in_a_length() {
    for distribution in distributions() {
        let length = shortest(&distribution);
        let model = Correlated::in_time(distribution.clone(), Duration::from_nanos(length)).unwrap();
        for (per_length, packets) in [(20, 20_000), (300, 60_000)] {
            let gap = length / per_length;
            let (mut drawn, none) = send(model.clone(), Order::Allow, packets, gap);
            let (kept, held_back) = send(model.clone(), Order::Keep, packets, gap);
            let later = drawn.iter().zip(&kept).filter(|(drawn, kept)| drawn != kept).count() as u64;
            assert_eq!((none, later), (0, held_back));
            drawn.sort_unstable_by(f64::total_cmp);
            let mut places: Vec<_> =
                (1..=packets).zip(&drawn).map(|(n, &x)| (x, n as f64 / packets as f64)).collect();
            // Of equal ones the last has what lies up to there.
            places.reverse();
            places.dedup_by_key(|(x, _)| *x);
            places.reverse();
            let apart = distance(&kept, &places);
            assert!(apart < 0.02, "{distribution} at {gap} ns: {apart}");
        }
    }
}

/// The prediction is for packets that come at once; so close is 1/100 of a length.
#[test]
fn the_prediction_is_near_what_happens() {
    for distribution in distributions() {
        // More than in the tests above, to count them: 1.5 % to 9 %.
        let length = shortest(&distribution) * 2 / 3;
        let model = Correlated::in_time(distribution.clone(), Duration::from_nanos(length)).unwrap();
        let predicted = model.delayed_to_keep_order().unwrap();
        let (packets, per_length) = (100_000, 100);
        let (_, held_back) = send(model, Order::Keep, packets, length / per_length);
        let share = held_back as f64 / packets as f64;
        assert!((0.5..1.3).contains(&(share / predicted)), "{distribution}: {share}, predicted {predicted}");
    }
}

#[test]
fn the_normal_prediction_is_twice_the_published_share_and_what_is_lost() {
    // Φ(−u) + what falls, φ(u)/u − Φ(−u), of u = ℓ/(√3·σ).
    for ratio in [3.0, 4.0, 6.0] {
        let u = ratio / 3f64.sqrt();
        let falls = narrows_core::model::cumulative(-u);
        let lost = narrows_core::model::density(u) / u - falls;
        let length = Duration::from_nanos((ratio * 2e6) as u64);
        let distribution = Distribution::normal(1e9, 2e6).unwrap();
        let found = Correlated::in_time(distribution, length).unwrap().delayed_to_keep_order().unwrap();
        assert!((found / (2.0 * falls + lost) - 1.0).abs() < 1e-6, "{found}");
    }
    // Two values 4 ms apart: the process goes down through zero √3/(2π·ℓ) times in a unit of time.
    let both = [10, 14].map(Duration::from_millis).to_vec();
    let model = Correlated::in_time(Distribution::samples(both).unwrap(), Duration::from_secs(1)).unwrap();
    let wanted = 4e6 * 3f64.sqrt() / core::f64::consts::TAU / 1e9;
    assert!((model.delayed_to_keep_order().unwrap() / wanted - 1.0).abs() < 0.01);
    assert_eq!(
        Correlated::per_packet(Distribution::normal(1e6, 1e5).unwrap(), 0.5).unwrap().delayed_to_keep_order(),
        None
    );
}

/// Another model in mid-run: what is in flight keeps its instants, and the new one begins with its own distribution.
#[test]
fn a_change_in_mid_run() {
    let normal = |mean: f64| Distribution::normal(mean, mean / 20.0).unwrap();
    let model = |mean| Correlated::in_time(normal(mean), Duration::from_millis(100)).unwrap();
    let mut link = LinkConfig::new("l", Target::Port("out".into()));
    link.delay = Box::new(model(10e6));
    let mut engine = engine(link);
    let port = engine.port("in").expect("it was just configured");
    let id = engine.link("l").expect("it was just configured");
    let mut delays = Vec::new();
    for n in 0..2_000 {
        let at = Time::from_nanos(n * 100_000);
        while let Some(event) = engine.poll(at) {
            delays.push(event.at.since(event.arrival).nanos());
        }
        if n == 1_000 {
            engine.change(at, id, Change::Delay(Box::new(model(30e6))));
        }
        engine.hand_in(at, port, packet(100, n));
    }
    while let Some(event) = engine.poll(Time::from_nanos(u64::MAX - 1)) {
        delays.push(event.at.since(event.arrival).nanos());
    }
    // Order is kept, and both are within six standard deviations of their means.
    assert_eq!(delays.len(), 2_000);
    assert!(delays[..1_000].iter().all(|delay| delay.abs_diff(10_000_000) < 3_000_000));
    assert!(delays[1_000..].iter().all(|delay| delay.abs_diff(30_000_000) < 9_000_000));
}
