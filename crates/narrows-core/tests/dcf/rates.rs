//! Stations with rates of their own.
//!
//! M. Heusse, F. Rousseau, G. Berger-Sabbatel, A. Duda, "Performance anomaly of 802.11b", IEEE INFOCOM 2003: stations have
//! the same chance to send whatever their rates, so one slow station pulls all to the same throughput,
//! `X = s / (T_s + (N − 1)·T_f + N·P_c·t_jam)` with the time T of a fast or slow frame, `T = t_tr + t_ov + t_cont(N)`,
//! `t_cont(N) = SLOT·(1 + P_c)/(2·N)·CWmin/2`, `P_c = 1 − (1 − 1/CWmin)^(N − 1)` and
//! `t_jam = 2/N·T_s + (1 − 2/N)·T_f`.

use libm::pow;
use narrows_core::sched::{ClassSettings, DcfConfig, FlowId, HpdClass, Refused};
use narrows_core::{Rate, Time};

use crate::air::{Air, Done, ELEVEN, What, micros, stream};

const ONE: Rate = Rate::from_bits_per_second(1_000_000);

/// Saturated stations, the first of which has this rate.
fn saturated(stations: u32, first: Rate, seconds: u64) -> Air {
    let mut air = Air::new(DcfConfig::default(), ELEVEN, stations, 3);
    air.set_rate(0, first);
    air.refill = true;
    (0..2).flat_map(|_| 0..stations).for_each(|station| air.arrive(Time::ZERO, station, 1500));
    air.run_until(micros(seconds * 1_000_000));
    air
}

/// Bits a second of a station.
fn throughput(done: &[Done], station: u32, seconds: u64) -> f64 {
    let sent = done.iter().filter(|done| done.station == station && done.what != What::GivesUp).count();
    sent as f64 * 1500.0 * 8.0 / seconds as f64
}

/// The formula, in bits a second, with the times of [`DcfConfig::default`] in µs. The paper's CWmin is 32.
fn anomaly(stations: f64, slow: f64) -> f64 {
    let p_c = 1.0 - pow(1.0 - 1.0 / 32.0, stations - 1.0);
    let t_cont = 20.0 * (1.0 + p_c) / (2.0 * stations) * 32.0 / 2.0;
    let time = |rate: f64| {
        let ack = 192.0 + 112.0 / rate.min(2.0);
        50.0 + 192.0 + 1536.0 * 8.0 / rate + 10.0 + ack + t_cont
    };
    let (fast, slow) = (time(11.0), time(slow));
    let t_jam = 2.0 / stations * slow + (1.0 - 2.0 / stations) * fast;
    1500.0 * 8.0 * 1e6 / (slow + (stations - 1.0) * fast + stations * p_c * t_jam)
}

/// The formula is within 6 % of the DCF with and without a slow station, and every station has the same throughput.
#[test]
fn a_slow_station_pulls_all_to_its_throughput() {
    let seconds = 100;
    for stations in [2, 3, 5, 10] {
        for (first, rate) in [(ONE, 1.0), (ELEVEN, 11.0)] {
            let air = saturated(stations, first, seconds);
            let each: Vec<f64> =
                (0..stations).map(|station| throughput(&air.done, station, seconds)).collect();
            let mean = each.iter().sum::<f64>() / f64::from(stations);
            let formula = anomaly(stations.into(), rate);
            assert!((mean / formula - 1.0).abs() < 0.06, "{stations}: {mean} {formula}");
            assert!(each.iter().all(|one| (one / mean - 1.0).abs() < 0.1), "{stations}: {each:?}");
        }
    }
}

/// A packet leaves at the end of its PSDU, and the ACK is not faster than it.
#[test]
fn a_station_with_a_rate_of_its_own_sends_in_exact_cycles() {
    for (rate, psdu, ack) in
        [(1_000_000, 8_800, 112), (2_000_000, 4_400, 56), (5_500_000, 1_600, 56), (11_000_000, 800, 56)]
    {
        let mut air = Air::new(DcfConfig::default(), ELEVEN, 1, 3);
        air.set_rate(0, Rate::from_bits_per_second(rate));
        (0..2).for_each(|_| air.arrive(Time::ZERO, 0, 1064));
        air.run_until(micros(100_000));
        let backoff = 20 * stream(3).nth(0).below(32);
        let first = 192 + psdu;
        let second = first + 10 + 192 + ack + 50 + backoff + 192 + psdu;
        let ends: Vec<Time> = air.done.iter().map(|done| done.at).collect();
        assert_eq!(ends, [first, second].map(micros), "{rate}");
    }
}

#[test]
fn a_collision_lasts_as_long_as_its_slowest_frame() {
    let config = DcfConfig { window_min: 0, window_max: 0, retry_limit: 1, ..DcfConfig::default() };
    let mut air = Air::new(config, ELEVEN, 2, 1);
    air.set_rate(1, ONE);
    air.arrive(Time::ZERO, 0, 1064);
    air.arrive(Time::ZERO, 1, 1064);
    air.run_until(micros(100_000));
    assert_eq!(air.done[0].at, micros(192 + 8_800 + 314));
}

/// A rate above the wire's counts as the wire's, and other settings are refused.
#[test]
fn rates_are_limited_by_the_wire() {
    let mut air = Air::new(DcfConfig::default(), ONE, 1, 3);
    air.set_rate(0, ELEVEN);
    air.arrive(Time::ZERO, 0, 1064);
    air.run_until(micros(100_000));
    assert_eq!(air.done[0].at, micros(192 + 8_800));
    let other = ClassSettings::Delay(HpdClass::default());
    assert_eq!(air.server.set_class(Time::ZERO, FlowId::new(0), other), Err(Refused::NoSettings));
}
