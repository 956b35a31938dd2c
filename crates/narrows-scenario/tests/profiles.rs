//! Link profiles in scenarios: the ones that come along against the standards' timings by hand, through the engine, and the
//! keys `profile` and `burst`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::{Path, PathBuf};

use narrows_core::sched::DcfConfig;
use narrows_core::service::Overhead;
use narrows_core::{Bytes, Change, Duration, Engine, FlowKey, Packet, Rate, Time, Verdict};
use narrows_scenario::{Files, LinkFlags, Profile, Scenario, Way};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn shipped(name: &str) -> Profile {
    let file = folder().join("profiles").join(format!("{name}.profile"));
    let profile = Profile::read(name, &std::fs::read(&file).unwrap());
    profile.unwrap_or_else(|error| panic!("{error}"))
}

/// One link with these keys; files are those that come along.
fn scenario(keys: &str) -> Scenario {
    let text = format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{keys}\n");
    Scenario::parse_with(&text, "net.toml", Files::beside(folder().join("net.toml")))
        .unwrap_or_else(|error| panic!("{error}"))
}

fn refused(keys: &str) -> String {
    let text = format!("[hosts.a]\n[hosts.b]\n[links.l]\nbetween = [\"a\", \"b\"]\n{keys}\n");
    let files = Files::given([
        ("good.profile", b"bw 2Mbit/s\nprob delay\n0 1\n1 2\n".to_vec()),
        ("bad.profile", b"prob delay\n0.2 10\n0.1 20\n".to_vec()),
    ]);
    Scenario::parse_with(&text, "net.toml", files).expect_err(keys).to_string()
}

/// Packets of one length that come at once to the link's first end: when each leaves.
fn leave(scenario: &Scenario, packets: usize, length: u32, link_header: u8) -> Vec<u64> {
    let mut engine = Engine::new(scenario.network()).unwrap();
    let port = engine.port(&scenario.ports()[0].name).unwrap();
    for _ in 0..packets {
        let (headers, key) = (Default::default(), FlowKey::default());
        engine.hand_in(
            Time::ZERO,
            port,
            Packet { length, link_header, network_header: 20, headers, key, body: () },
        );
    }
    let mut left = Vec::new();
    while let Some(event) = engine.poll(Time::from_nanos(1 << 60)) {
        assert!(matches!(event.verdict, Verdict::Delivered(_)));
        left.push(event.at.nanos());
    }
    left
}

/// Nanoseconds of so many bytes at a rate in bits a second.
fn time(bytes: u64, rate: f64) -> f64 {
    bytes as f64 * 8e9 / rate
}

/// In microseconds, from IEEE 802.11-2012: tables of clause 17 (HR/DSSS) and 19 (ERP).
struct Station {
    rate: f64,
    slot: f64,
    window: u32,
    /// All but the backoff and the bits of 1,500 bytes.
    rest: f64,
}

const SIFS: f64 = 10.0;
/// Header (24), check sequence (4), LLC and SNAP (8).
const MAC: u64 = 36;
const ACK: u64 = 14;

/// A frame of 802.11b: PLCP, and the bytes in whole microseconds.
fn dsss(plcp: f64, bytes: u64, rate: f64) -> f64 {
    plcp + (time(bytes, rate) / 1e3).ceil()
}

/// A frame of 802.11g: preamble and signal, symbols of 4 µs with 16 bits of service and 6 of tail, signal extension.
fn ofdm(bytes: u64, bits_per_symbol: u64) -> f64 {
    16.0 + 4.0 + 4.0 * (16 + 8 * bytes + 6).div_ceil(bits_per_symbol) as f64 + 6.0
}

fn station_b(rate: f64, plcp: f64) -> Station {
    let data = dsss(plcp, 1_500 + MAC, rate);
    let rest = 50.0 + data + SIFS + dsss(plcp, ACK, 2e6) - time(1_500, rate) / 1e3;
    Station { rate, slot: 20.0, window: 31, rest }
}

/// 54 Mbit/s are 216 bits a symbol, the 24 Mbit/s of the acknowledgement 96.
fn station_g(slot: f64, protection: f64) -> Station {
    let exchange = ofdm(1_500 + MAC, 216) + SIFS + ofdm(ACK, 96);
    let rest = SIFS + 2.0 * slot + protection + exchange - time(1_500, 54e6) / 1e3;
    Station { rate: 54e6, slot, window: 15, rest }
}

#[test]
fn radio_profiles_are_the_standards_timings() {
    let cts = |plcp| dsss(plcp, ACK, 11e6) + SIFS;
    for (name, station, throughput) in [
        ("802.11b-11-long", station_b(11e6, 192.0), 6.224),
        ("802.11b-11-short", station_b(11e6, 96.0), 6.912),
        ("802.11b-2-long", station_b(2e6, 192.0), 1.7256),
        ("802.11g-54", station_g(9.0, 0.0), 30.496),
        ("802.11g-54-protected-long", station_g(20.0, cts(192.0)), 16.878),
        ("802.11g-54-protected-short", station_g(20.0, cts(96.0)), 19.512),
    ] {
        let profile = shipped(name);
        assert_eq!(profile.rate(), Some(Rate::from_bits_per_second(station.rate as u64)), "{name}");
        let times = profile.air_time().times();
        assert_eq!(times.len() as u32, station.window + 1, "{name}: one for each number of slots");
        for (slots, time) in times.iter().enumerate() {
            let expected = (station.rest + slots as f64 * station.slot) * 1e3;
            assert!((time.nanos() as f64 - expected).abs() <= 0.5, "{name}: {time}, by hand {expected} ns");
        }

        // By hand: 1,500 bytes every rest + bits + CWmin/2 slots.
        let each =
            station.rest + time(1_500, station.rate) / 1e3 + f64::from(station.window) / 2.0 * station.slot;
        let by_hand = 12_000.0 / each;
        assert!((by_hand - throughput).abs() < 5e-4, "{name}: {by_hand}");
        let said = profile.throughput(1_500).unwrap().rate_bps / 1e6;
        assert!((said - by_hand).abs() < 1e-4, "{name}: {said}");

        // And through a link, within four standard errors: a slot number's variance is ((CW + 1)² − 1)/12.
        const PACKETS: usize = 20_000;
        let keys = format!("profile = \"profiles/{name}.profile\"\nqueue = \"{PACKETS} packets\"");
        let left = leave(&scenario(&keys), PACKETS, 1_500, 14);
        let mean = *left.last().unwrap() as f64 / PACKETS as f64 / 1e3;
        let numbers = f64::from(station.window + 1);
        let variance = (numbers * numbers - 1.0) / 12.0 * station.slot * station.slot;
        assert!(
            (mean - each).abs() < 4.0 * (variance / PACKETS as f64).sqrt() + 1e-3,
            "{name}: {mean} for {each}"
        );
    }
}

/// The formula of the scheduler that models contention, for a station that is alone.
#[test]
fn a_lone_station_of_the_dcf_is_as_fast() {
    let dcf = DcfConfig::default();
    let cycle = dcf.difs.nanos() as f64
        + 15.5 * dcf.slot.nanos() as f64
        + 2.0 * dcf.preamble.nanos() as f64
        + 1_118e3
        + dcf.sifs.nanos() as f64
        + time(ACK, dcf.basic_rate.bits_per_second() as f64);
    let profile = shipped("802.11b-11-long").throughput(1_500).unwrap();
    assert!((profile.each_ns - cycle).abs() < 1.0, "{} for {cycle}", profile.each_ns);
    let contending = scenario(
        "rate = \"11mbit\"\nscheduler = { type = \"dcf\", classes = [{ name = \"a\", match = { from = \"up\" } }, { name = \"b\" }] }\nshared = true\nqueue = \"5000 packets\"",
    );
    let left = leave(&contending, 5_000, 1_500, 14);
    let mean = (left[4_999] - left[0]) as f64 / 4_999.0;
    assert!((mean - cycle).abs() < 4.0 * 20e3 * 9.23 / 4_999f64.sqrt(), "{mean} for {cycle}");
}

/// Preamble and gap by profile, check sequence and padding by overhead: what `overhead = "ethernet"` counts in one.
#[test]
fn ethernet_profiles_are_the_overhead_of_ethernet() {
    for (name, rate) in [("ethernet-10", 10), ("ethernet-100", 100), ("ethernet-1000", 1_000)] {
        let by_profile = scenario(&format!(
            "profile = \"profiles/{name}.profile\"\noverhead = {{ base = \"frame\", bytes = 4, minimum = 64 }}"
        ));
        let by_overhead = scenario(&format!("rate = \"{rate}mbit\"\noverhead = \"ethernet\""));
        assert_eq!(
            by_overhead.links[0].direction(Way::Up).expect("a wire").effective_overhead(),
            Overhead::ETHERNET
        );
        for length in [20, 46, 47, 576, 1_500] {
            // More would not fit in the default bound.
            let ends = leave(&by_profile, 5, length, 14);
            assert_eq!(ends, leave(&by_overhead, 5, length, 14), "{name}, {length} bytes");
            let wire = u64::from(length + 18).max(64) + 20;
            assert_eq!(ends[4], 5 * wire * 8 * 1_000 / rate, "{name}, {length} bytes");
        }
    }
}

#[test]
fn the_links_rate_holds_where_it_has_one_and_else_that_of_the_profile() {
    let rate =
        |keys: &str| scenario(keys).links[0].direction(Way::Up).expect("a wire").effective_rate().to_string();
    const PROFILE: &str = "profile = \"profiles/802.11b-2-long.profile\"\n";
    assert_eq!(rate(PROFILE), "2mbit");
    assert_eq!(rate(&format!("{PROFILE}rate = \"1mbit\"")), "1mbit");
    assert_eq!(rate(&format!("{PROFILE}outage = true")), "down");
    let said = |keys: &str| scenario(keys).explain().to_string();
    assert!(said(PROFILE).contains("rate      2mbit, by the profile\n"));
    assert!(said(PROFILE).contains(
        "adds 644us to 1.264ms of air time for each packet, 954us on average (profiles/802.11b-2-long.profile)"
    ));
    // 1,500 bytes are 6 ms, and 954 µs of air time.
    assert!(said(PROFILE).contains("6.954ms for 1500 bytes"), "{}", said(PROFILE));
    assert!(said(PROFILE).contains("at most   144 packets of 1500 bytes a second"), "{}", said(PROFILE));
    let own = said(&format!("{PROFILE}rate = \"1mbit\""));
    assert!(own.contains("the profile's rate, 2mbit, is ignored: the link has its own"), "{own}");
    let burst = said("rate = \"1mbit\"\nburst = \"10kB\"");
    assert!(burst.contains("passes up to 10000 bytes at once after idle time"), "{burst}");
}

#[test]
fn both_are_written_back_changed_and_taken_as_flags() {
    let keys = "up = { profile = \"profiles/ethernet-10.profile\", burst = \"1.5kB\" }";
    let text = scenario(keys).to_toml();
    assert!(
        text.contains("profile = \"profiles/ethernet-10.profile\"")
            && text.contains("burst = \"1500 bytes\""),
        "{text}"
    );

    let mut scenario = scenario("rate = \"1mbit\"");
    let kinds = |changes: Vec<(String, Change)>| -> Vec<String> {
        let kind =
            |change: &Change| format!("{change:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
        changes.iter().map(|(link, change)| format!("{link} {}", kind(change))).collect()
    };
    let changes = scenario.assign("l.up.profile=profiles/802.11g-54.profile").unwrap();
    assert_eq!(kinds(changes), ["l.up AirTime"]);
    assert_eq!(kinds(scenario.assign("l.burst=10kB").unwrap()), ["l.up Burst", "l.down Burst"]);
    // Without a rate of its own it has the profile's.
    assert_eq!(kinds(scenario.assign("l.up.rate=unlimited").unwrap()), ["l.up Service"]);
    assert_eq!(scenario.links[0].direction(Way::Up).expect("a wire").effective_rate().to_string(), "54mbit");
    assert_eq!(kinds(scenario.assign("l.up.profile=none").unwrap()), ["l.up Service", "l.up AirTime"]);
    assert_eq!(kinds(scenario.assign("l.up.burst=0 bytes").unwrap()), ["l.up Burst"]);

    let file = folder().join("profiles/ethernet-10.profile").display().to_string();
    let flags = LinkFlags::default().with("profile", file).with("burst", "2kB/0 bytes");
    let scenario = Scenario::from_flags(&flags).unwrap_or_else(|error| panic!("{error}"));
    let [up, down] = [Way::Up, Way::Down].map(|way| scenario.links[0].direction(way).expect("a wire"));
    assert_eq!((up.burst, down.burst), (Bytes::new(0), Bytes::new(2_000)));
    assert_eq!(up.profile.as_ref().unwrap().mean(), Duration::from_micros(16));
    assert_eq!(down.effective_rate().to_string(), "10mbit");
}

#[test]
fn what_is_wrong_is_shown_in_both_files() {
    let error = refused("profile = \"bad.profile\"");
    for part in [
        "the probability decreases, from 0.2 to 0.1, while the time increases, from 10ms to 20ms",
        "bad.profile:3",
        "net.toml:5:11",
        "in `links.l.profile`",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    for (keys, part) in [
        ("profile = \"no.profile\"", "the file `no.profile` cannot be read"),
        ("profile = 3", "found `3`, expected the name of a file"),
        ("burst = \"10\"", "`10` has no unit"),
        ("burst = \"10kbit\"", "`kbit` is not a unit of a size"),
        ("exact-netem = \"delay 1ms\"\nprofile = \"good.profile\"", "`profile` with `exact-netem`"),
        ("exact-netem = \"delay 1ms\"\nburst = \"1kB\"", "`burst` with `exact-netem`"),
        (
            "rate = \"11mbit\"\nprofile = \"good.profile\"\nscheduler = { type = \"dcf\", classes = [{ name = \"a\", match = { from = \"up\" } }, { name = \"b\" }] }\nshared = true",
            "the profile good.profile with `dcf`, which computes the air time itself",
        ),
    ] {
        let error = refused(keys);
        assert!(error.contains(part), "{part}: {error}");
    }
}
