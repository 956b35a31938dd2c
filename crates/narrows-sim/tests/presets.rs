//! Every preset in virtual time delivers what it says: its rates under more traffic than fits, its round trip when idle.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use narrows_report::Pair;
use narrows_scenario::{Preset, Scenario};
use narrows_sim::{SimOptions, simulate};

/// What crossed the link each way, up first, of this traffic in both directions.
fn run(preset: &str, seconds: f64, traffic: [&str; 2]) -> [Pair; 2] {
    let mut text = format!(
        "seed = 11\nduration = \"{seconds}s\"\n[hosts.client]\n[hosts.server]\n[links.link]\n\
         between = [\"client\", \"server\"]\npreset = \"{preset}\"\n"
    );
    for ((from, to), traffic) in [("client", "server"), ("server", "client")].into_iter().zip(traffic) {
        text += &format!("[[traffic]]\nname = \"{from}\"\nfrom = \"{from}\"\nto = \"{to}\"\n{traffic}\n");
    }
    let scenario = Scenario::parse(&text, "preset.toml").unwrap_or_else(|error| panic!("{text}\n{error}"));
    let report = simulate(&scenario, &SimOptions::default()).unwrap().report;
    assert_eq!(report.conservation.violations, [""; 0], "{preset}");
    ["client", "server"].map(|from| {
        let is_from = |pair: &&Pair| pair.from_port.starts_with(from);
        report.pairs.iter().find(is_from).unwrap().clone()
    })
}

/// The share by which one figure is off another.
fn off(found: f64, right: f64) -> f64 {
    (found / right - 1.0).abs()
}

#[test]
fn every_preset_carries_its_rates() {
    let mut seen = 0;
    for name in Preset::names() {
        let figures = Preset::named(name).unwrap().figures;
        let (Some(down), Some(up)) = (figures.down, figures.up) else { continue };
        let idle = figures.round_trip.map_or(0, |time| time.nanos() / 1_000_000 + 5);
        // One way after the other, so that the slower one has its own time.
        for (rate, index) in [(up, 0), (down, 1)] {
            let rate = rate.bits_per_second();
            // A train's rates are those of its minute, and Wi-Fi's delays move up to half a second of it; the others are
            // steady, but for the losses at handovers.
            let (milliseconds, within) = match name {
                "train" => (60_000, 0.01),
                "wifi" | "wifi-crowded" => (20_000, 0.03),
                "leo-satellite" => (15_000, 0.01),
                // About 3,000 packets, and the delay before the first one.
                _ => (3000 * 12_000_000 / rate + idle, 0.001),
            };
            let seconds = f64::from(u32::try_from(milliseconds).unwrap()) / 1e3;
            let offered = format!("constant = \"{}bit\"\nlength = \"1500 bytes\"", rate * 2);
            let ping = "constant = \"1/s\"\nlength = \"64 bytes\"".to_string();
            let mut traffic = [ping.clone(), ping];
            traffic[index] = offered;
            let [up, down] = run(name, seconds, traffic.each_ref().map(String::as_str));
            let delivered = if index == 0 { up } else { down }.delivered;
            let found = match name {
                // It stands still within the time.
                "train" => delivered.bytes as f64 * 8.0 / seconds,
                _ => delivered.rate_bps.unwrap() as f64,
            };
            assert!(off(found, rate as f64) < within, "{name}: {found} for {rate}");
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen}");
}

#[test]
fn every_preset_has_its_round_trip_when_idle() {
    for name in Preset::names() {
        let right = Preset::named(name).unwrap().figures.round_trip.unwrap().seconds();
        // Wi-Fi is slow or fast for a second or so: that takes many of them to be right on average.
        let (seconds, within) = if name.starts_with("wifi") { (20_000.0, 0.05) } else { (240.0, 0.03) };
        let ping = "constant = \"2/s\"\nlength = \"64 bytes\"";
        let [up, down] = run(name, seconds, [ping, ping]);
        let found = (up.delay.p50_ns + down.delay.p50_ns) as f64 / 1e9;
        assert!(off(found, right) < within, "{name}: {found} for {right}");
    }
}

/// Percentiles of 133,333 draws that are all but independent: above the 90th and the 99th the distribution is so thin that
/// four standard errors of the share are some milliseconds.
#[test]
fn wifi_has_the_tail_that_was_measured() {
    let ping = "constant = \"1/3s\"\nlength = \"64 bytes\"";
    for (name, p90, p99) in [("wifi", 19.8..28.5, 247.0..278.0), ("wifi-crowded", 99.0..105.0, 233.0..237.0)]
    {
        let [_, down] = run(name, 400_000.0, [ping, ping]);
        let ms = |nanos: u64| nanos as f64 / 1e6;
        assert!(p90.contains(&ms(down.delay.p90_ns)), "{name}: {:?}", down.delay);
        assert!(p99.contains(&ms(down.delay.p99_ns)), "{name}: {:?}", down.delay);
    }
}

/// Under load a modem without queue management adds the delay that was measured: a quarter of a second.
#[test]
fn cable_has_its_bufferbloat() {
    let load = "constant = \"30mbit\"\nlength = \"1500 bytes\"";
    let [up, down] = run("cable", 10.0, [load, "constant = \"10/s\"\nlength = \"64 bytes\""]);
    let round_trip = (up.delay.p50_ns + down.delay.p50_ns) as f64 / 1e6;
    assert!(off(round_trip, 250.0) < 0.01, "{round_trip} ms");
}

/// The loss that handovers bring, and a train's seconds without a link.
#[test]
fn handovers_and_outages_happen() {
    let flow = "constant = \"1000/s\"\nlength = \"100 bytes\"";
    let [up, _] = run("leo-satellite", 60.0, [flow, flow]);
    // Half of four times a tenth of a second, of sixty: binomial, with 400 draws.
    let lost = 60_000.0 - up.delivered.packets as f64;
    assert!((lost - 200.0).abs() < 4.0 * 10.0 + 60.0, "{lost}");
    assert!(up.delay.max_ns > 43_000_000 && up.delay.p90_ns < 27_000_000, "{:?}", up.delay);
    let slow = "constant = \"10/s\"\nlength = \"100 bytes\"";
    let [up, _] = run("train", 60.0, [slow, slow]);
    assert!((1_000_000_000..1_100_000_000).contains(&up.delay.max_ns), "{:?}", up.delay);
}
