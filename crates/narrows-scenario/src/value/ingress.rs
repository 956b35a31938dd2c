//! Filters at the ingress of a link: `[{ match = { protocol = "udp" }, action = "drop" }, …]`.

use std::net::IpAddr;
use std::ops::Range;

use narrows_core::sched::Peak;
use narrows_core::service::Overhead;
use narrows_core::{Bytes, Exceed, IngressFilter, Policer, PolicerConfig, Rate};

use crate::keys::compound::Group;
use crate::keys::kind::{Choice, Given, Or, Several};
use crate::keys::quantity::{FINITE_RATE, LEAST_SIZE, PACKET_SIZE};
use crate::keys::{Keyed, Row, row};
use crate::node::Table;
use crate::problem::Problem;
use crate::value::condition::Match;
use crate::value::overhead::OVERHEAD;
use crate::value::scheduler::{BURST, MATCHES, below_one_packet};

/// A filter at the ingress of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngressUse {
    /// Conditions of which a packet must have one; empty for all packets.
    pub matches: Vec<Match>,
    /// What to do with them.
    pub action: IngressAction,
    /// Token rate of a policer.
    pub rate: Option<Rate>,
    /// Its bucket size in bytes.
    pub burst: Option<Bytes>,
    /// Rate of a second bucket that holds one packet.
    pub peakrate: Option<Rate>,
    /// Maximum packet length.
    pub mtu: Bytes,
    /// Minimum packet length that is charged.
    pub mpu: Bytes,
    /// Framing overhead charged per packet; `None` uses the link's.
    pub overhead: Option<Overhead>,
    /// Action on packets that exceed the tokens.
    pub exceed: IngressExceed,
    /// Action on packets that do not.
    pub conform: IngressConform,
}

/// What a filter does with its packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IngressAction {
    /// Drop them.
    #[default]
    Drop,
    /// Pass them, past the filters behind.
    Pass,
    /// Police them to a rate.
    Police,
}

/// Action on packets that exceed the tokens of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IngressExceed {
    /// Drop them.
    #[default]
    Drop,
    /// Mark ECN-capable packets with "congestion experienced"; drop the others.
    Mark,
    /// Pass them.
    Pass,
    /// Let the next filter decide.
    Next,
}

/// Action on packets within the tokens of a filter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IngressConform {
    /// Pass them.
    #[default]
    Pass,
    /// Let the next filter decide.
    Next,
}

const ACTION: Choice<IngressAction> = Choice {
    what: "action of a filter",
    choices: &[
        ("drop", IngressAction::Drop),
        ("pass", IngressAction::Pass),
        ("police", IngressAction::Police),
    ],
};

const EXCEED: Choice<IngressExceed> = Choice {
    what: "way to treat excess packets",
    choices: &[
        ("drop", IngressExceed::Drop),
        ("mark", IngressExceed::Mark),
        ("pass", IngressExceed::Pass),
        ("next", IngressExceed::Next),
    ],
};

const CONFORM: Choice<IngressConform> = Choice {
    what: "way to treat other packets",
    choices: &[("pass", IngressConform::Pass), ("next", IngressConform::Next)],
};

/// One filter.
pub(crate) const FILTER: Group<IngressUse> = Group::new(
    "IngressFilter",
    "A filter of arriving packets: the first that decides counts; without a decision, a packet passes.",
    "{ match = { protocol = \"udp\" }, action = \"drop\" }",
);
pub(crate) const INGRESS: Or<Several<Group<IngressUse>>> = Or("none", Several(FILTER));

impl Default for IngressUse {
    fn default() -> Self {
        Self {
            matches: Vec::new(),
            action: IngressAction::Drop,
            rate: None,
            burst: None,
            peakrate: None,
            mtu: Bytes::new(1500),
            mpu: Bytes::new(0),
            overhead: None,
            exceed: IngressExceed::Drop,
            conform: IngressConform::Pass,
        }
    }
}

impl Keyed for IngressUse {
    const ROWS: &'static [Row<Self>] = &[
        row!("match", matches, MATCHES, "[Packets](#classes) that it is for.").default("every packet"),
        row!("action", action, ACTION, "What to do with them: drop, pass, or police to a rate.").required(),
        row!("rate", rate, Given(FINITE_RATE), "Token rate, for `\"police\"`.").default("none"),
        row!("burst", burst, Given(BURST), "Bucket size in bytes, at least `mtu`.").default("none"),
        row!(
            "peakrate",
            peakrate,
            Given(FINITE_RATE),
            "Rate of a second bucket that holds one packet; above `rate`."
        )
        .default("none"),
        row!("mtu", mtu, PACKET_SIZE, "Maximum packet length."),
        row!("mpu", mpu, LEAST_SIZE, "Minimum length a packet counts."),
        row!("overhead", overhead, Given(OVERHEAD), "[Length of a packet](#overhead).").default("the link's"),
        row!(
            "exceed",
            exceed,
            EXCEED,
            "Packets that exceed the rate: drop; mark as a [policer](#policer) does; pass; or let the next filter decide."
        ),
        row!("conform", conform, CONFORM, "Other packets: pass, or let the next filter decide."),
    ];

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let at = |key: &str, problem: Problem| match table.get(key) {
            Some(node) => problem.at(&node.span).inside(key),
            None => problem.at(place),
        };
        const OF_POLICERS: [&str; 8] =
            ["rate", "burst", "peakrate", "mtu", "mpu", "overhead", "exceed", "conform"];
        if self.action != IngressAction::Police {
            return match OF_POLICERS.into_iter().find(|key| table.get(key).is_some()) {
                Some(key) => Err(at(key, Problem::new(format!("`{key}` without `action = \"police\"`")))),
                None => Ok(()),
            };
        }
        let (Some(rate), Some(burst)) = (self.rate, self.burst) else {
            let key = if self.rate.is_none() { "rate" } else { "burst" };
            return Err(Problem::new(format!("a policer without `{key}`"))
                .at(place)
                .help("as in: { action = \"police\", rate = \"10mbit\", burst = \"20kB\" }"));
        };
        if burst < self.mtu {
            return Err(at("burst", below_one_packet(burst, self.mtu)));
        }
        match self.peakrate {
            Some(peak) if peak <= rate => {
                Err(at("peakrate", Problem::new(format!("`peakrate`, {peak}, is not above `rate`, {rate}"))))
            }
            _ => Ok(()),
        }
    }
}

impl IngressUse {
    /// The engine's filter.
    pub(crate) fn build(&self, addresses: &dyn Fn(&str) -> Vec<IpAddr>) -> IngressFilter {
        let only = self.matches.iter().map(|one| one.condition(addresses)).collect();
        match self.action {
            IngressAction::Drop => IngressFilter::Drop(only),
            IngressAction::Pass => IngressFilter::Pass(only),
            IngressAction::Police => {
                let Self { mtu, mpu, overhead, .. } = *self;
                let config = PolicerConfig {
                    rate: self.rate.unwrap_or(Rate::UNLIMITED),
                    burst: self.burst.unwrap_or(mtu),
                    peak: self.peakrate.map(|rate| Peak { rate, mtu }),
                    mpu,
                    overhead,
                    exceed: match self.exceed {
                        IngressExceed::Drop => Exceed::Drop,
                        IngressExceed::Mark => Exceed::Mark,
                        IngressExceed::Pass => Exceed::Pass,
                        IngressExceed::Next => Exceed::Next,
                    },
                };
                let policer = Policer::new(config)
                    .expect("rates and bursts above zero are read, and a peak rate above the rate")
                    .only(only);
                IngressFilter::Police(match self.conform {
                    IngressConform::Pass => policer,
                    IngressConform::Next => policer.and_goes_on(),
                })
            }
        }
    }

    /// For display.
    pub(crate) fn words(&self) -> String {
        let which: Vec<String> = self.matches.iter().map(Match::to_string).collect();
        let which = if which.is_empty() { "every packet".to_owned() } else { which.join("; or ") };
        let (Some(rate), Some(burst)) = (self.rate, self.burst) else {
            return match self.action {
                IngressAction::Pass => format!("{which}: passed"),
                _ => format!("{which}: dropped"),
            };
        };
        let exceed = match self.exceed {
            IngressExceed::Drop => "excess packets are dropped",
            IngressExceed::Mark => "excess packets are marked if ECN-capable, else dropped",
            IngressExceed::Pass => "excess packets pass",
            IngressExceed::Next => "excess packets go on to the next filter",
        };
        format!("{which}: policed to {rate}, burst {burst}; {exceed}")
    }
}
