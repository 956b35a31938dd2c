//! Instructions that delay models take, in a link: see `delays.sh`.

use std::hint::black_box;

use narrows_core::model::{Correlated, DelayModel, Distribution, Normal, Sampled};
use narrows_core::{
    Duration, Engine, FlowKey, LinkConfig, NetworkConfig, Order, Packet, PortConfig, Seed, Target, Time,
};

/// Mean delay; at a packet each 10 µs there are about 100 in flight.
const MEAN: f64 = 1e6;
const GAP: u64 = 10_000;
const SD: f64 = 2e5;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let [model, order, packets] = arguments.as_slice() else {
        println!("to count instructions a packet, run crates/narrows-core/benches/delays.sh");
        return;
    };
    let order = match order.as_str() {
        "keep" => Order::Keep,
        _ => Order::Allow,
    };
    run(delay(model), order, model.ends_with("uneven"), packets.parse().expect("a number"));
}

fn delay(name: &str) -> Box<dyn DelayModel> {
    let made = |made: Result<Distribution, _>| made.expect("the parameters are in range");
    let normal = || made(Distribution::normal(MEAN, SD));
    let gamma = || made(Distribution::gamma_mean(MEAN, SD));
    let log_normal = || made(Distribution::log_normal(MEAN, SD));
    let length = Duration::from_nanos(20 * SD as u64);
    let sampled = |distribution| Box::new(Sampled::new(distribution));
    let per_packet = |distribution| Box::new(Correlated::per_packet(distribution, 0.5).expect("in range"));
    let in_time = |distribution| Box::new(Correlated::in_time(distribution, length).expect("not zero"));
    match name {
        "normal" => {
            Box::new(Normal { mean: Duration::from_nanos(MEAN as u64), sd: Duration::from_nanos(SD as u64) })
        }
        "sampled-normal" => sampled(normal()),
        "uniform" => sampled(made(Distribution::uniform(MEAN - SD, MEAN + SD))),
        "log-normal" => sampled(log_normal()),
        "exponential" => sampled(made(Distribution::exponential(MEAN))),
        "gamma" => sampled(gamma()),
        "weibull" => sampled(made(Distribution::weibull(1.5, MEAN))),
        "pareto" => sampled(made(Distribution::pareto(3.0, MEAN))),
        "pareto-normal" => sampled(made(Distribution::pareto_normal(MEAN, SD))),
        "mixture" => sampled(made(Distribution::mixture(vec![(3.0, normal()), (1.0, gamma())]))),
        "samples" => sampled(made(Distribution::samples(samples()))),
        "histogram" => sampled(made(Distribution::histogram(bins()))),
        "per-packet-normal" => per_packet(normal()),
        "per-packet-gamma" => per_packet(gamma()),
        "per-packet-samples" => per_packet(made(Distribution::samples(samples()))),
        "in-time-normal" | "in-time-normal-uneven" => in_time(normal()),
        "in-time-gamma" | "in-time-gamma-uneven" => in_time(gamma()),
        "in-time-log-normal" => in_time(log_normal()),
        "in-time-samples" => in_time(made(Distribution::samples(samples()))),
        other => panic!("no model `{other}`"),
    }
}

fn samples() -> Vec<Duration> {
    (0..10_000).map(|n| Duration::from_nanos(n * n % 7_919 * 100)).collect()
}

fn bins() -> Vec<(Duration, Duration, f64)> {
    let bin = |n: u64| (Duration::from_micros(n), Duration::from_micros(n + 1), (n % 7) as f64);
    (0..1_000).map(bin).collect()
}

fn run(delay: Box<dyn DelayModel>, order: Order, uneven: bool, packets: u64) {
    let mut config = NetworkConfig::new(Seed(1));
    let out = || Target::Port("out".into());
    let mut link = LinkConfig::new("l", out());
    (link.delay, link.settings.order) = (delay, order);
    config.links.push(link);
    let entry = Target::Link { name: "l".into(), lane: 0 };
    config.ports =
        vec![PortConfig { name: "in".into(), entry }, PortConfig { name: "out".into(), entry: out() }];
    let mut engine = Engine::new(config).expect("names are unique and lead somewhere");
    let port = engine.port("in").expect("it was just configured");
    let packet = Packet {
        length: 1_000,
        link_header: 14,
        network_header: 20,
        headers: Default::default(),
        key: FlowKey::default(),
        body: 7u32,
    };
    let mut at = 0;
    for n in 0..packets {
        at += if uneven { GAP / 2 + n * 7_919 % GAP } else { GAP };
        let now = Time::from_nanos(at);
        while let Some(event) = &engine.poll(now) {
            black_box(event);
        }
        engine.hand_in(now, port, black_box(&packet).clone());
    }
}
