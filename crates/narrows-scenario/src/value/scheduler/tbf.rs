//! Token bucket filter (TBF): `{ type = "tbf", rate = "1mbit", burst = "5kB", latency = "70ms", peakrate =
//! "2mbit", mtu = "1540 bytes" }`.

use std::ops::Range;

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Rate};

use super::bucket::{BURST, below_one_packet};
use super::own::OwnParameters;
use crate::keys::kind::Given;
use crate::keys::quantity::{FINITE_RATE, LEAST_SIZE, PACKET_SIZE, Time};
use crate::keys::{Keyed, Row, row};
use crate::node::Table;
use crate::problem::Problem;

/// Parameters of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tbf {
    /// Token rate.
    pub rate: Rate,
    /// Bucket size in bytes.
    pub burst: Bytes,
    /// Maximum wait for tokens, from which the queue bound is computed; `None` if the bound itself is
    /// given, or neither.
    pub latency: Option<Duration>,
    /// Peak rate, which limits the rate of bursts.
    pub peakrate: Option<Rate>,
    /// Maximum packet length; the size of the peak-rate bucket.
    pub mtu: Bytes,
    /// Minimum packet length that is charged.
    pub mpu: Bytes,
}

impl Default for Tbf {
    /// Has no rate and burst, which are required.
    fn default() -> Self {
        Self {
            rate: Rate::UNLIMITED,
            burst: Bytes::new(0),
            latency: None,
            peakrate: None,
            mtu: Bytes::new(1500),
            mpu: Bytes::new(0),
        }
    }
}

impl Keyed for Tbf {
    const ROWS: &'static [Row<Self>] = &[
        row!("rate", rate, FINITE_RATE, "Token rate.").required(),
        row!("burst", burst, BURST, "Bucket size in bytes, at least `mtu`: the burst after idle time.").required(),
        row!("latency", latency, Given(Time::POSITIVE), "Maximum wait for tokens, instead of `bound`: the bound is `rate · latency + burst` bytes, or `peakrate · latency + mtu` if that is less.").default("none"),
        row!("peakrate", peakrate, Given(FINITE_RATE), "Peak rate of bursts; above `rate`.").default("none"),
        row!("mtu", mtu, PACKET_SIZE, "Maximum packet length: size of the peak-rate bucket."),
        row!("mpu", mpu, LEAST_SIZE, "Minimum length a packet counts."),
    ];

    fn check(&self, table: &Table, _: &Range<usize>) -> Result<(), Problem> {
        if let (Some(latency), Some(bound)) = (table.key("latency"), table.key("bound")) {
            return Err(Problem::new("both `latency` and `bound`")
                .at(&latency.span)
                .also(&bound.span, "the bound")
                .help("the maximum wait determines the bound: use one of the two"));
        }
        let at = |key: &str, problem: Problem| match table.get(key) {
            Some(node) => problem.at(&node.span).inside(key),
            None => problem,
        };
        if self.burst < self.mtu {
            return Err(at("burst", below_one_packet(self.burst, self.mtu)));
        }
        match self.peakrate {
            Some(peak) if peak <= self.rate => Err(at(
                "peakrate",
                Problem::new(format!("`peakrate`, {peak}, is not above `rate`, {}", self.rate))
                    .help("it limits the rate of bursts; remove it for bursts at line rate"),
            )),
            _ => Ok(()),
        }
    }
}

impl Tbf {
    /// The queue bound from `latency`, if given: the bytes of the rate in that time plus the bucket; with a
    /// peak rate, at most the bytes of the peak rate in that time plus its bucket.
    pub(crate) fn bound(&self) -> Option<Bound> {
        let latency = u128::from(self.latency?.nanos());
        let within = |rate: Rate, bucket: Bytes| {
            let bytes =
                u128::from(rate.bits_per_second()) * latency / 8_000_000_000 + u128::from(bucket.get());
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let own = within(self.rate, self.burst);
        let bytes = self.peakrate.map_or(own, |peak| own.min(within(peak, self.mtu)));
        Some(Bound::Bytes(Bytes::new(bytes)))
    }
}

impl OwnParameters for Tbf {
    fn effective(&self) -> String {
        let mut words = format!(", {}, burst {}", self.rate, self.burst);
        if let Some(peak) = self.peakrate {
            words += &format!(", at most {peak} over more than {}", self.mtu);
        }
        if self.mpu.get() > 0 {
            words += &format!(", a packet counts at least {}", self.mpu);
        }
        words
    }

    fn missing(&self) -> Option<Problem> {
        (self.rate == Rate::UNLIMITED).then(|| {
            Problem::new("`tbf` has no rate and burst")
                .help("write all of it: { type = \"tbf\", rate = \"1mbit\", burst = \"5kB\" }")
        })
    }
}
