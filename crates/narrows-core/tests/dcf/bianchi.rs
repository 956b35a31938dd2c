//! Saturated stations against Bianchi's model.
//!
//! G. Bianchi, "Performance analysis of the IEEE 802.11 distributed coordination function", IEEE JSAC 18(3), 2000: each of
//! n stations sends in a slot with a constant probability τ, and collides with p = 1 − (1 − τ)ⁿ⁻¹. With R attempts,
//! τ = Σ pⁱ / Σ pⁱ·(1 + CWᵢ/2), sums over i < R (Bianchi and Tinnirello, "Remarks on IEEE 802.11 DCF performance
//! analysis", IEEE Communications Letters 9(8), 2005); without a limit that is the first paper's equation 7.
//!
//! The model's own error has two parts. That p is constant and that stations are independent is worst for few stations:
//! with two, p is 6 % higher than the model's. And in the model a backoff counts down in a busy slot too, where the
//! standard freezes it, so that the first slot after an exchange belongs to the station that has just sent alone: it takes
//! it with the probability 1/(CWmin + 1) of drawing no slots. The refined model below puts that right as the same authors
//! do (with Xiao, "Refinements on IEEE 802.11 DCF modeling approaches", IEEE Trans. Vehicular Technology 59(3), 2010).

use libm::pow;
use narrows_core::sched::DcfConfig;

use crate::air::{Air, Done, ELEVEN, What, stream};
use crate::slow_model::{Arrival, SlowModel};

const STATIONS: [u32; 7] = [1, 2, 5, 10, 20, 50, 100];

struct Model<'a> {
    config: &'a DcfConfig,
    stations: f64,
    refined: bool,
    tau: f64,
    p: f64,
}

impl<'a> Model<'a> {
    fn new(stations: u32, config: &'a DcfConfig, refined: bool) -> Self {
        let p = |tau: f64| 1.0 - pow(1.0 - tau, f64::from(stations - 1));
        // The chance to send falls with p, and p rises with it: one solution, found by halving.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let tau = (low + high) / 2.0;
            if attempt(p(tau), config, refined) > tau { low = tau } else { high = tau }
        }
        Self { config, stations: stations.into(), refined, tau: low, p: p(low) }
    }

    /// The probability that a frame collides, counting those that take the first slot after their predecessor.
    fn collides(&self) -> f64 {
        let again = self.again();
        self.p / (1.0 + (1.0 - self.p) * again / (1.0 - again))
    }

    /// Bits a second in packets of `length` bytes.
    fn throughput(&self, length: u32) -> f64 {
        let nobody = pow(1.0 - self.tau, self.stations);
        let one = self.stations * self.tau * pow(1.0 - self.tau, self.stations - 1.0);
        let several = 1.0 - nobody - one;
        // In µs: long preambles, 11 Mbit/s, control frames at 2 Mbit/s; EIFS is 364.
        let psdu = (f64::from(length + 36) * 8.0 / 11.0).ceil();
        let (rts, cts) = (192.0 + 80.0, 192.0 + 56.0);
        let exchange = 192.0 + psdu + 10.0 + 248.0 + 50.0;
        let (exchange, collision) = match self.config.rts_threshold {
            None => (exchange, 192.0 + psdu + 364.0),
            Some(_) => (rts + 10.0 + cts + 10.0 + exchange, rts + 364.0),
        };
        let packets = one / (1.0 - self.again());
        let slot_after = if self.refined { 20.0 } else { 0.0 };
        let mean = nobody * 20.0 + packets * exchange + one * slot_after + several * (collision + slot_after);
        packets * f64::from(length) * 8e6 / mean
    }

    /// That a station sends again in the first slot.
    fn again(&self) -> f64 {
        if self.refined { 1.0 / f64::from(self.config.window_min + 1) } else { 0.0 }
    }
}

/// τ as a function of p. Refined, the slot after a busy period is not among those that are counted.
fn attempt(p: f64, config: &DcfConfig, refined: bool) -> f64 {
    let (mut attempts, mut slots) = (0.0, 0.0);
    for retry in (0..config.retry_limit).map(f64::from) {
        let window =
            (f64::from(config.window_min + 1) * pow(2.0, retry)).min(f64::from(config.window_max + 1));
        let first = if refined { 1.0 } else { 0.0 };
        attempts += pow(p, retry);
        slots += pow(p, retry) * (1.0 + (window - 1.0 - first) / 2.0);
    }
    attempts / slots
}

/// A mean over 20 parts of a run, and its standard error from how they differ.
fn batches(of: impl Fn(usize) -> f64) -> (f64, f64) {
    let parts: Vec<f64> = (0..20).map(of).collect();
    let mean = parts.iter().sum::<f64>() / 20.0;
    let variance = parts.iter().map(|part| (part - mean) * (part - mean)).sum::<f64>() / 19.0;
    (mean, (variance / 20.0).sqrt())
}

/// Bits a second and its standard error.
fn throughput(done: &[Done], length: u32) -> (f64, f64) {
    let size = done.len() / 20 - 1;
    batches(|part| {
        let (first, last) = (part * size, (part + 1) * size);
        let sent = done[first..last].iter().filter(|done| done.what != What::GivesUp).count();
        let span = done[last].at.since(done[first].at).seconds();
        sent as f64 * f64::from(length) * 8.0 / span
    })
}

fn saturate(config: DcfConfig, stations: u32, length: u32, frames: usize) -> Air {
    let mut air = Air::saturated(config, stations, length, 99);
    air.run_until_done(frames);
    air
}

/// Throughput within 3 % of the first paper's model and within 1 % of the refined one; the standard error is below 0.5 %.
#[test]
fn throughput_and_collisions_are_those_of_the_model() {
    for config in [DcfConfig::default(), DcfConfig { rts_threshold: Some(0), ..DcfConfig::default() }] {
        for (stations, length) in
            STATIONS.into_iter().flat_map(|stations| [(stations, 1500), (stations, 100)])
        {
            let air = saturate(config, stations, length, 20_000);
            let (measured, error) = throughput(&air.done, length);
            assert!(error / measured < 0.005, "{error}");
            for (refined, tolerance) in [(false, 0.03), (true, 0.01)] {
                let model = Model::new(stations, &config, refined);
                let relative = measured / model.throughput(length) - 1.0;
                assert!(relative.abs() < tolerance, "{stations} stations, {length} bytes: {relative}");
            }

            let counters = air.server.scheduler().counters();
            let attempts = (counters.collided + counters.exchanges) as f64;
            let collides = counters.collided as f64 / attempts;
            for refined in [false, true] {
                let model = Model::new(stations, &config, refined).collides();
                // Binomial: a standard error of 3 % of p for two stations, and below 1.4 % for more.
                let error = (model * (1.0 - model) / attempts).sqrt();
                let tolerance = if stations == 2 { 0.08 } else { 0.03 } * model + 3.0 * error;
                assert!((collides - model).abs() <= tolerance, "{stations}: {collides} {model}");
            }
        }
    }
}

/// Without a retry limit τ(p) is equation 7 of the first paper, and the throughput is that model's.
#[test]
fn without_a_limit_the_first_papers_equation_holds() {
    let config = DcfConfig { retry_limit: u8::MAX, ..DcfConfig::default() };
    for p in [0.01, 0.2, 0.45, 0.6] {
        let (w, m) = (32.0, 5.0);
        let equation_7 =
            2.0 * (1.0 - 2.0 * p) / ((1.0 - 2.0 * p) * (w + 1.0) + p * w * (1.0 - pow(2.0 * p, m)));
        assert!((attempt(p, &config, false) / equation_7 - 1.0).abs() < 1e-9);
    }
    for stations in [10, 50] {
        let air = saturate(config, stations, 1500, 20_000);
        let (measured, error) = throughput(&air.done, 1500);
        let model = Model::new(stations, &config, false).throughput(1500);
        assert!((measured / model - 1.0).abs() < 0.03, "{measured} ± {error}, {model}");
        assert!(air.done.iter().all(|done| done.what != What::GivesUp));
    }
}

/// A packet collides k times with probability pᵏ, and is given up with p⁷. The slow model, which gives the same frames at
/// the same instants, says after how many retries each was sent.
#[test]
fn retries_are_geometric() {
    let stations = 20;
    let mut slow = SlowModel::new(DcfConfig::default(), ELEVEN, stream(99), stations);
    let all = (0..2).flat_map(|_| 0..stations);
    let arrivals: Vec<_> = all.map(|station| Arrival { at: 0, station, length: 100 }).collect();
    slow.run(&arrivals, true, 30_000);
    let total = slow.done.len() as f64;
    let given_up = slow.done.iter().filter(|done| done.what == What::GivesUp).count() as f64;
    let p = Model::new(20, &DcfConfig::default(), true).collides();
    for retries in 0..8u8 {
        let (share, expected) = match retries {
            7 => (given_up / total, pow(p, 7.0)),
            _ => (slow.sent_after[usize::from(retries)] as f64 / total, pow(p, retries.into()) * (1.0 - p)),
        };
        let error = (expected * (1.0 - expected) / total).sqrt();
        assert!((share - expected).abs() < 4.0 * error, "{retries}: {share} ± {error}, {expected}");
    }
}

/// Over 100,000 frames all stations have the same share, each with a standard error of about 0.2 % of the whole.
#[test]
fn stations_share_alike_in_the_long_run() {
    let stations = 10;
    let air = saturate(DcfConfig::default(), stations, 500, 100_000);
    let size = air.done.len() / 20;
    for station in 0..stations {
        let (share, error) = batches(|part| {
            let sent = air.done[part * size..(part + 1) * size].iter();
            sent.filter(|done| done.station == station && done.what != What::GivesUp).count() as f64
                / size as f64
        });
        assert!(error < 0.003 && (share - 0.1).abs() < 4.0 * error, "{station}: {share} ± {error}");
    }
}
