//! Models around others, in a link.

use narrows_core::classify::Condition;
use narrows_core::model::{
    ByClass, Constant, Correlated, DelayModel, Distribution, LostWithDelay, PerByte, Sampled,
};
use narrows_core::model::{Independent, Normal};
use narrows_core::{
    DropReason, Duration, Engine, FlowKey, LinkConfig, Loss, NetworkConfig, Order, Packet, PortConfig,
    Probability, Protocol, Seed, Target, Time, Verdict,
};

/// A packet of this length and protocol.
type Sent = (u32, u8);

/// What becomes of packets that come at 10 µs of each other: the delay, or nothing for one that is lost.
fn send(link: impl FnOnce(&mut LinkConfig), packets: impl Iterator<Item = Sent>) -> Vec<Option<Duration>> {
    let mut config = NetworkConfig::new(Seed(3));
    let mut one = LinkConfig::new("l", Target::Port("out".into()));
    link(&mut one);
    config.links.push(one);
    let entry = Target::Link { name: "l".into(), lane: 0 };
    config.ports = vec![
        PortConfig { name: "in".into(), entry },
        PortConfig { name: "out".into(), entry: Target::Port("out".into()) },
    ];
    let mut engine = Engine::new(config).expect("names are unique and lead somewhere");
    let port = engine.port("in").expect("it was just configured");
    let mut delays = Vec::new();
    let drain = |engine: &mut Engine<usize>, until: Time, delays: &mut Vec<Option<Duration>>| {
        while let Some(event) = engine.poll(until) {
            let delay = event.at.since(event.arrival);
            delays[*event.body.get()] = match event.verdict {
                Verdict::Delivered { .. } => Some(delay),
                Verdict::Dropped { reason, .. } => {
                    assert!(matches!(reason, DropReason::DelayModel | DropReason::IngressLoss));
                    None
                }
            };
        }
    };
    for (body, (length, transport)) in packets.enumerate() {
        let at = Time::from_nanos(10_000 * body as u64);
        drain(&mut engine, at, &mut delays);
        delays.push(None);
        let key = FlowKey { network: Protocol::Ipv4, transport, ..FlowKey::default() };
        engine.hand_in(
            at,
            port,
            Packet { length, link_header: 14, network_header: 20, headers: Default::default(), key, body },
        );
    }
    drain(&mut engine, Time::from_nanos(u64::MAX - 1), &mut delays);
    delays
}

const fn nanos(nanos: u64) -> Duration {
    Duration::from_nanos(nanos)
}

fn percent(percent: u64) -> Probability {
    Probability::from_ratio(percent, 100).expect("in range")
}

#[test]
fn a_part_that_grows_with_the_length_is_exact_to_a_nanosecond() {
    let model = || PerByte::new(Box::new(Constant(nanos(1_000))), 8_333);
    assert_eq!(model().mean(), Some(nanos(1_000)));
    let delays = send(|link| link.delay = Box::new(model()), [(100, 17), (1, 17), (1_500, 17)].into_iter());
    // 833.3, 8.333 and 12499.5 ns
    assert_eq!(delays, [1_833, 1_008, 13_500].map(|delay| Some(nanos(delay))));
}

#[test]
fn the_first_condition_that_holds_has_the_model() {
    let short = Condition { lengths: Some(0..=200), ..Condition::default() };
    let udp = Condition { protocols: vec![17], ..Condition::default() };
    let constant = |n| Box::new(Constant(nanos(n))) as Box<dyn DelayModel>;
    let model =
        || ByClass::new(vec![(short.clone(), constant(10)), (udp.clone(), constant(20))], constant(30));
    let sent = [(100, 6), (100, 17), (300, 17), (300, 6)];
    let delays = send(
        |link| {
            link.delay = Box::new(model());
            link.settings.order = Order::Allow;
        },
        sent.into_iter(),
    );
    assert_eq!(delays, [10, 10, 20, 30].map(|delay| Some(nanos(delay))));
    assert_eq!(model().mean(), None);
    assert_eq!(ByClass::new(vec![(short, constant(30))], constant(30)).mean(), Some(nanos(30)));
}

/// A model of a class advances for that class's packets only: they have the delays that they would have alone.
#[test]
fn classes_have_states_of_their_own() {
    let model = || {
        let distribution = Distribution::normal(1e6, 1e5).unwrap();
        Box::new(Correlated::per_packet(distribution, 0.9).unwrap()) as Box<dyn DelayModel>
    };
    let allow = |link: &mut LinkConfig, model| {
        link.delay = model;
        link.settings.order = Order::Allow;
    };
    let udp = Condition { protocols: vec![17], ..Condition::default() };
    let by_class = || Box::new(ByClass::new(vec![(udp.clone(), model())], Box::new(Constant(nanos(5)))));
    let all = send(|link| allow(link, by_class()), (0..100).map(|_| (100, 17)));
    let mixed = send(|link| allow(link, by_class()), (0..200).map(|n| (100, if n < 100 { 17 } else { 6 })));
    assert_eq!(all[..], mixed[..100]);
    assert!(mixed[100..].iter().all(|&delay| delay == Some(nanos(5))));
    assert_eq!(all, send(|link| allow(link, model()), (0..100).map(|_| (100, 17))));
}

#[test]
fn packets_are_lost_with_the_probability_of_their_delay() {
    let curve = vec![(nanos(2_000_000), percent(10)), (nanos(6_000_000), percent(50))];
    let uniform = || Box::new(Sampled::new(Distribution::uniform(0.0, 10e6).unwrap()));
    let model = || LostWithDelay::new(uniform(), curve.clone()).unwrap();
    for (delay, share) in
        [(0, 0.1), (2_000_000, 0.1), (3_000_000, 0.2), (5_999_999, 0.499_999_9), (9_000_000, 0.5)]
    {
        assert!((model().probability(nanos(delay)).as_f64() - share).abs() < 1e-12, "{delay}");
    }
    let packets = 200_000;
    let of = |model: Box<dyn DelayModel>| {
        let link = |link: &mut LinkConfig| {
            link.delay = model;
            link.settings.order = Order::Allow;
        };
        send(link, (0..packets).map(|_| (100, 17)))
    };
    let (drawn, left) = (of(uniform()), of(Box::new(model())));
    // What is not lost has the delay that it drew.
    assert!(drawn.iter().zip(&left).all(|(drawn, left)| left.is_none() || drawn == left));
    for bin in 0..10 {
        let within = |delay: &Option<Duration>| delay.unwrap().nanos() / 1_000_000 == bin;
        let here: Vec<_> = drawn.iter().zip(&left).filter(|(drawn, _)| within(drawn)).collect();
        let lost = here.iter().filter(|(_, left)| left.is_none()).count() as f64;
        let p = match bin {
            0 | 1 => 0.1,
            6.. => 0.5,
            bin => 0.1 + 0.1 * (bin as f64 - 1.5),
        };
        let n = here.len() as f64;
        assert!((lost - n * p).abs() < 4.0 * (n * p * (1.0 - p)).sqrt(), "{lost} of {n} at {p}");
    }
    for wrong in [vec![], vec![(nanos(5), percent(1)), (nanos(5), percent(2))]] {
        assert!(LostWithDelay::new(uniform(), wrong).is_none());
    }
}

/// Draws belong to packets: one that is lost before shifts no other's.
#[test]
fn draws_are_keyed() {
    let link = |loss: Option<u64>| {
        move |link: &mut LinkConfig| {
            link.delay = Box::new(Sampled::new(Distribution::gamma(2.0, 1e6).unwrap()));
            link.settings.order = Order::Allow;
            link.ingress_loss = loss.map(|p| Loss::of(Independent(percent(p))));
        }
    };
    let sent = || (0..2_000).map(|_| (100, 17));
    let (all, some) = (send(link(None), sent()), send(link(Some(30)), sent()));
    assert!(some.iter().filter(|delay| delay.is_none()).count() > 400);
    assert!(all.iter().zip(&some).all(|(all, some)| some.is_none() || all == some));
}

/// A normal distribution is the same draw by draw as the model that has always been there.
#[test]
fn a_sampled_normal_is_the_plain_one() {
    let sent = || (0..20_000).map(|_| (100, 17));
    let plain = Normal { mean: nanos(3_000_000), sd: nanos(1_000_000) };
    let sampled = Sampled::new(Distribution::normal(3e6, 1e6).unwrap());
    assert_eq!(
        send(|link| link.delay = Box::new(plain), sent()),
        send(|link| link.delay = Box::new(sampled), sent())
    );
}

/// Golden: the first draws of each kind. The bits are the same on every machine, so that these never change.
#[test]
fn golden() {
    let gamma = || Distribution::gamma(2.5, 1e6).unwrap();
    let mixture = vec![(1.0, gamma()), (2.0, Distribution::weibull(0.8, 3e6).unwrap())];
    let mixture = Distribution::mixture(mixture).unwrap();
    let in_time = Correlated::in_time(gamma(), Duration::from_micros(50)).unwrap();
    let models: [Box<dyn DelayModel>; 4] = [
        Box::new(Sampled::new(gamma())),
        Box::new(Sampled::new(mixture)),
        Box::new(Correlated::per_packet(Distribution::pareto(3.0, 1e6).unwrap(), 0.5).unwrap()),
        Box::new(in_time),
    ];
    let found = models.map(|model| {
        let link = |link: &mut LinkConfig| {
            link.delay = model;
            link.settings.order = Order::Allow;
        };
        let delays = send(link, (0..1_000).map(|_| (100, 17)));
        delays.into_iter().fold(0, |hash: u64, delay| {
            (hash ^ delay.unwrap().nanos()).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(23)
        })
    });
    let known = [0xb1ad_96a5_77ff_cf93, 0xd465_28b1_3c64_c865, 0xc84b_0e17_f3f8_a8d6, 0xeb83_dd82_cd38_4bef];
    assert_eq!(found, known, "{found:#x?}");
}
