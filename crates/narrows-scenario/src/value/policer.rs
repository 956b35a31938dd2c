//! Policer at the ingress of a link: `{ rate = "10mbit", burst = "20kB", exceed = "drop" }`.

use std::net::IpAddr;
use std::ops::Range;

use narrows_core::sched::Peak;
use narrows_core::service::Overhead;
use narrows_core::{Bytes, Exceed, Policer, PolicerConfig, Rate};

use crate::keys::compound::Group;
use crate::keys::kind::{Choice, Given, Or};
use crate::keys::quantity::{FINITE_RATE, LEAST_SIZE, PACKET_SIZE};
use crate::keys::{Keyed, Row, row};
use crate::node::Table;
use crate::problem::Problem;
use crate::value::condition::Match;
use crate::value::overhead::OVERHEAD;
use crate::value::scheduler::{BURST, MATCHES, below_one_packet};

/// A token-bucket policer of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicerUse {
    /// Conditions of which a packet must have one; empty for all packets.
    pub matches: Vec<Match>,
    /// The tokens.
    pub bucket: TokenBucket,
    /// Action on packets that exceed the tokens.
    pub exceed: PolicerExceed,
}

/// The token bucket of a policer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    /// Token rate; `None` only before it is read, and without a policer.
    pub rate: Option<Rate>,
    /// Bucket size in bytes, likewise.
    pub burst: Option<Bytes>,
    /// Rate of a second bucket that holds one packet.
    pub peakrate: Option<Rate>,
    /// Maximum packet length.
    pub mtu: Bytes,
    /// Minimum packet length that is charged.
    pub mpu: Bytes,
    /// Framing overhead charged per packet; `None` uses the link's.
    pub overhead: Option<Overhead>,
}

/// Action on packets that exceed a policer's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicerExceed {
    /// Drop them.
    #[default]
    Drop,
    /// Mark ECN-capable packets with "congestion experienced"; drop the others.
    Mark,
    /// Pass and count them.
    Pass,
}

const EXCEED: Choice<PolicerExceed> = Choice {
    what: "way to treat excess packets",
    choices: &[("drop", PolicerExceed::Drop), ("mark", PolicerExceed::Mark), ("pass", PolicerExceed::Pass)],
};

pub(crate) const POLICER: Or<Group<PolicerUse>> = Or(
    "none",
    Group::new(
        "PolicerParts",
        "A policer: packets for which a bucket has no tokens are dropped, marked, or counted.",
        "{ rate = \"10mbit\", burst = \"20kB\" }",
    ),
);

impl Default for TokenBucket {
    fn default() -> Self {
        Self {
            rate: None,
            burst: None,
            peakrate: None,
            mtu: Bytes::new(1500),
            mpu: Bytes::new(0),
            overhead: None,
        }
    }
}

/// Makes the rows of a policer: those of its token bucket, which is in a field, between others. `$given` makes the rate
/// and the burst required, or not.
macro_rules! rows_with_bucket {
    ($bucket:ident, $given:expr, [$($before:expr),+ $(,)?], [$($after:expr),+ $(,)?]) => {
        &[
            $($before,)+
            $given(row!("rate", $bucket.rate, Given(FINITE_RATE), "Token rate of a policer.")),
            $given(row!("burst", $bucket.burst, Given(BURST), "Bucket size in bytes, at least `mtu`.")),
            row!(
                "peakrate",
                $bucket.peakrate,
                Given(FINITE_RATE),
                "Rate of a second bucket that holds one packet; above `rate`."
            )
            .default("none"),
            row!("mtu", $bucket.mtu, PACKET_SIZE, "Maximum packet length."),
            row!("mpu", $bucket.mpu, LEAST_SIZE, "Minimum length a packet counts."),
            row!("overhead", $bucket.overhead, Given(OVERHEAD), "[Length of a packet](#overhead).")
                .default("the link's"),
            $($after,)+
        ]
    };
}
pub(super) use rows_with_bucket;

impl Keyed for PolicerUse {
    const ROWS: &'static [Row<Self>] = rows_with_bucket!(
        bucket,
        Row::required,
        [row!("match", matches, MATCHES, "[Packets](#classes) that it polices.").default("every packet")],
        [row!(
            "exceed",
            exceed,
            EXCEED,
            "What to do with packets that exceed the rate: drop; mark with \"congestion experienced\" if ECN-capable, else drop; or pass and count."
        )]
    );

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        self.bucket.check(table, place)
    }
}

impl TokenBucket {
    /// Checks what has a rate and a burst.
    pub(super) fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let at = |key: &str, problem: Problem| match table.get(key) {
            Some(node) => problem.at(&node.span).inside(key),
            None => problem.at(place),
        };
        if let Some(burst) = self.burst.filter(|burst| *burst < self.mtu) {
            return Err(at("burst", below_one_packet(burst, self.mtu)));
        }
        match (self.peakrate, self.rate) {
            (Some(peak), Some(rate)) if peak <= rate => {
                Err(at("peakrate", Problem::new(format!("`peakrate`, {peak}, is not above `rate`, {rate}"))))
            }
            _ => Ok(()),
        }
    }

    /// The engine's policer, for all packets.
    pub(super) fn build(&self, exceed: Exceed) -> Policer {
        let Self { rate, burst, peakrate, mtu, mpu, overhead } = *self;
        let peak = peakrate.map(|rate| Peak { rate, mtu });
        let (rate, burst) = (rate.unwrap_or(Rate::UNLIMITED), burst.unwrap_or(mtu));
        Policer::new(PolicerConfig { rate, burst, peak, mpu, overhead, exceed })
            .expect("rates and bursts above zero are read, and a peak rate above the rate")
    }
}

impl PolicerUse {
    /// The engine's policer.
    pub(crate) fn build(&self, addresses: &dyn Fn(&str) -> Vec<IpAddr>) -> Policer {
        let exceed = match self.exceed {
            PolicerExceed::Drop => Exceed::Drop,
            PolicerExceed::Mark => Exceed::Mark,
            PolicerExceed::Pass => Exceed::Pass,
        };
        let only = self.matches.iter().map(|one| one.condition(addresses)).collect();
        self.bucket.build(exceed).only(only)
    }

    /// For display.
    pub(crate) fn words(&self) -> String {
        let bucket = &self.bucket;
        let rate = bucket.rate.unwrap_or(Rate::UNLIMITED);
        let burst = bucket.burst.unwrap_or(bucket.mtu);
        let peak = bucket.peakrate.map_or(String::new(), |peak| format!(", at most {peak}"));
        let exceed = match self.exceed {
            PolicerExceed::Drop => "excess packets are dropped",
            PolicerExceed::Mark => "excess packets are marked if ECN-capable, else dropped",
            PolicerExceed::Pass => "excess packets pass",
        };
        let which: Vec<String> = self.matches.iter().map(Match::to_string).collect();
        let which = if which.is_empty() { String::new() } else { format!(" (only {})", which.join("; or ")) };
        format!("{rate}, burst {burst}{peak}: {exceed}{which}")
    }
}
