//! A token bucket: `{ type = "tbf", rate = "1mbit", burst = "5kB", latency = "70ms", peakrate = "2mbit", mtu = "1540 bytes" }`.

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Rate};

use super::tree;
use crate::node::{Node, Table};
use crate::problem::Problem;
use crate::units;
use crate::value::inline::Inline;

/// The parameters of a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tbf {
    /// Tokens come at this rate.
    pub rate: Rate,
    /// How many bytes of them the bucket holds.
    pub burst: Bytes,
    /// How long a packet may wait for tokens, of which the bound follows; nothing where that is given, or neither.
    pub latency: Option<Duration>,
    /// No burst is faster than this.
    pub peakrate: Option<Rate>,
    /// The longest packet, which the bucket of the peak rate holds; nothing for 1500 bytes.
    pub mtu: Option<Bytes>,
    /// What the shortest packet counts.
    pub mpu: Bytes,
}

pub(crate) const KEYS: &[&str] = &["rate", "burst", "latency", "peakrate", "mtu", "mpu"];

/// The longest packet where none is given.
const MTU: Bytes = Bytes::new(1500);

impl Tbf {
    pub(crate) fn read(node: &Node, table: &Table) -> Result<Self, Problem> {
        if let (Some(latency), Some(bound)) = (table.key("latency"), table.key("bound")) {
            return Err(Problem::new("both `latency` and `bound`")
                .at(&latency.span)
                .also(&bound.span, "the bound")
                .help("how long a packet may wait says how much may wait: keep one of the two"));
        }
        let tbf = Self {
            rate: table.required("rate", &node.span, tree::rate)?,
            burst: table.required("burst", &node.span, tree::burst)?,
            latency: table.optional("latency", units::positive_time)?,
            peakrate: table.optional("peakrate", tree::rate)?,
            mtu: table.optional("mtu", units::packet_size)?,
            mpu: table.optional("mpu", units::packet_size)?.unwrap_or_default(),
        };
        tbf.check(table)?;
        Ok(tbf)
    }

    fn check(&self, table: &Table) -> Result<(), Problem> {
        let at = |key: &str, problem: Problem| match table.get(key) {
            Some(node) => problem.at(&node.span).inside(key),
            None => problem,
        };
        if self.burst < self.mtu() {
            return Err(at("burst", tree::below_one_packet(self.burst, self.mtu())));
        }
        match self.peakrate {
            Some(peak) if peak <= self.rate => Err(at(
                "peakrate",
                Problem::new(format!(
                    "`peakrate` is {peak}, which is not above `rate`, which is {}",
                    self.rate
                ))
                .help("it says how fast a burst may be; leave it out for bursts at once"),
            )),
            _ => Ok(()),
        }
    }

    /// The longest packet in force.
    pub fn mtu(&self) -> Bytes {
        self.mtu.unwrap_or(MTU)
    }

    /// How much may wait where `latency` says it: what the bucket lets through in that time and the bucket itself, or with a
    /// peak rate what that lets through, if it is less.
    pub(crate) fn bound(&self) -> Option<Bound> {
        let latency = u128::from(self.latency?.nanos());
        let within = |rate: Rate, bucket: Bytes| {
            let bytes =
                u128::from(rate.bits_per_second()) * latency / 8_000_000_000 + u128::from(bucket.get());
            u64::try_from(bytes).unwrap_or(u64::MAX)
        };
        let own = within(self.rate, self.burst);
        let bytes = self.peakrate.map_or(own, |peak| own.min(within(peak, self.mtu())));
        Some(Bound::Bytes(Bytes::new(bytes)))
    }

    pub(crate) fn write(&self, table: &mut Inline) {
        table.quoted("rate", Some(self.rate));
        table.quoted("burst", Some(self.burst));
        table.quoted("latency", self.latency);
        table.quoted("peakrate", self.peakrate);
        table.quoted("mtu", self.mtu);
        table.quoted("mpu", Some(self.mpu).filter(|mpu| mpu.get() > 0));
    }

    pub(crate) fn words(&self) -> String {
        let mut words = format!("{}, burst {}", self.rate, self.burst);
        if let Some(peak) = self.peakrate {
            words += &format!(", at most {peak} over more than {}", self.mtu());
        }
        if self.mpu.get() > 0 {
            words += &format!(", a packet counts at least {}", self.mpu);
        }
        words
    }
}
