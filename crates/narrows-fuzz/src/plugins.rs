//! Schedulers as WebAssembly modules.

use narrows_core::{Duration, Engine, Time, Verdict};
use narrows_frame::LinkLayer;
use narrows_frame::parse::parse;
use narrows_scenario::{Files, Scenario};

use crate::odd;

const SCENARIO: &str = r#"
[hosts.a]
[hosts.b]
[links.l]
between = ["a", "b"]
rate = "10mbit"
queue = "10 packets"
up.scheduler = { plugin = "m.wasm", fuel = 2000, classes = [{ name = "x", match = { protocol = "udp" } }, { name = "y", weight = 2 }] }
down.scheduler = { plugin = "m.wasm", fuel = 2000 }
"#;

/// A module: refused, or it serves packets, whatever it does.
///
/// # Panics
/// When a packet is lost or there twice.
pub fn module(bytes: &[u8]) {
    let files = Files::given([("m.wasm", bytes.to_vec())]);
    let Ok(scenario) = Scenario::parse_with(SCENARIO, "fuzz.toml", files) else { return };
    let Ok(mut engine) = Engine::<()>::new(scenario.network()) else { return };
    let ports: Vec<_> = engine.ports().collect();
    let (mut delivered, mut dropped) = (0, 0);
    for number in 0..60 {
        let at = Time::ZERO + Duration::from_micros(400 * number);
        let frame = odd::datagram(number % 3 == 0, &[1; 400]);
        engine.hand_in(at, ports[(number % 2) as usize], parse(LinkLayer::Ethernet, &frame).with(()));
        while let Some(event) = engine.poll(at) {
            count(event.verdict, &mut delivered, &mut dropped);
        }
    }
    // A module may hold packets back for ever.
    let end = Time::ZERO + Duration::from_secs(5);
    while let Some(event) = engine.poll(end) {
        count(event.verdict, &mut delivered, &mut dropped);
    }
    assert_eq!(delivered + dropped + engine.inside(), 60);
}

fn count(verdict: Verdict, delivered: &mut u64, dropped: &mut u64) {
    match verdict {
        Verdict::Delivered(_) => *delivered += 1,
        _ => *dropped += 1,
    }
}

/// The examples.
pub fn modules() -> Vec<Vec<u8>> {
    vec![
        include_bytes!("../../../examples/scheduler-c/alternate.wasm").to_vec(),
        include_bytes!("../../../examples/scheduler-rust/drr.wasm").to_vec(),
    ]
}
