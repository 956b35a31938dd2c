//! Filters at the ingress of a link: `[{ match = { protocol = "udp" }, action = "drop" }, …]`.

use std::net::IpAddr;
use std::ops::Range;

use narrows_core::{Bytes, Duration, Exceed, GateEntry, IngressFilter, TimedGate};

use crate::keys::compound::{Group, List};
use crate::keys::kind::{Choice, Given, Or, Several};
use crate::keys::quantity::{FINITE_RATE, LEAST_SIZE, PACKET_SIZE, Time};
use crate::keys::{Keyed, Row, row};
use crate::node::Table;
use crate::problem::Problem;
use crate::value::condition::Match;
use crate::value::edit::{EDIT, EditUse};
use crate::value::overhead::OVERHEAD;
use crate::value::policer::{TokenBucket, rows_with_bucket};
use crate::value::scheduler::{BURST, MATCHES};

/// A filter at the ingress of a link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IngressUse {
    /// Conditions of which a packet must have one; empty for all packets.
    pub matches: Vec<Match>,
    /// What to do with them.
    pub action: IngressAction,
    /// The tokens of a policer.
    pub bucket: TokenBucket,
    /// Action on packets that exceed the tokens.
    pub exceed: IngressExceed,
    /// Action on packets that do not, that come to an open gate, or that are edited.
    pub conform: IngressConform,
    /// The entries of a gate's schedule.
    pub schedule: Vec<GateUse>,
    /// When the schedule begins.
    pub begin: Duration,
    /// What to write into packets.
    pub set: Option<EditUse>,
}

/// An entry of a gate's schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateUse {
    /// How long the gate is open in it.
    pub open: Option<Duration>,
    /// How long it is closed.
    pub closed: Option<Duration>,
    /// How many bytes pass while it is open.
    pub most: Option<Bytes>,
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
    /// Drop them while a gate is closed.
    Gate,
    /// Write header fields.
    Edit,
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
        ("gate", IngressAction::Gate),
        ("edit", IngressAction::Edit),
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

/// An entry of a gate.
const GATE: Group<GateUse> = Group::new(
    "GateEntry",
    "A time in which a gate is open or closed.",
    "{ open = \"200ms\", most = \"8 MB\" }",
);
const SCHEDULE: List<Group<GateUse>> = List {
    what: "a list of times, such as [{ open = \"200ms\" }, { closed = \"100ms\" }]",
    most: 1024,
    one: GATE,
};

impl Keyed for GateUse {
    const ROWS: &'static [Row<Self>] = &[
        row!("open", open, Given(Time::POSITIVE), "How long the gate is open.").default("none"),
        row!("closed", closed, Given(Time::POSITIVE), "How long the gate is closed.").default("none"),
        row!("most", most, Given(BURST), "Bytes that pass while it is open, link headers included.")
            .default("any number"),
    ];

    fn check(&self, _: &Table, place: &Range<usize>) -> Result<(), Problem> {
        match (self.open, self.closed, self.most) {
            (Some(_), None, _) | (None, Some(_), None) => Ok(()),
            (None, Some(_), Some(_)) => Err(Problem::new("`most` of a closed gate").at(place)),
            _ => Err(Problem::new("a gate is open or closed for a time")
                .at(place)
                .help("as in: [{ open = \"200ms\" }, { closed = \"100ms\" }]")),
        }
    }
}

const fn optional(row: Row<IngressUse>) -> Row<IngressUse> {
    row.default("none")
}

impl Keyed for IngressUse {
    const ROWS: &'static [Row<Self>] = rows_with_bucket!(bucket, optional, [
        row!("match", matches, MATCHES, "[Packets](#classes) that it is for.").default("every packet"),
        row!("action", action, ACTION, "What to do with them: drop, pass, police to a rate, let them through a gate at times, or edit their headers.").required(),
    ], [
        row!(
            "exceed",
            exceed,
            EXCEED,
            "Packets that exceed the rate: drop; mark as a [policer](#policer) does; pass; or let the next filter decide."
        ),
        row!(
            "conform",
            conform,
            CONFORM,
            "Other packets, those that pass a gate, and edited ones: pass, or let the next filter decide."
        ),
        row!(
            "schedule",
            schedule,
            SCHEDULE,
            "For `\"gate\"`: [times](#gates) in which it is open or closed, one after the other without end."
        )
        .default("none"),
        row!("begin", begin, Time::ANY, "When the schedule begins; before that, packets pass."),
        row!("set", set, Given(EDIT), "For `\"edit\"`: [header fields to write](#edits).").default("none"),
    ]);

    fn check(&self, table: &Table, place: &Range<usize>) -> Result<(), Problem> {
        let at = |key: &str, problem: Problem| match table.get(key) {
            Some(node) => problem.at(&node.span).inside(key),
            None => problem.at(place),
        };
        const OF_POLICERS: &[&str] = &["rate", "burst", "peakrate", "mtu", "mpu", "overhead", "exceed"];
        const OF_GATES: &[&str] = &["schedule", "begin"];
        for (action, name, keys) in [
            (IngressAction::Police, "police", OF_POLICERS),
            (IngressAction::Gate, "gate", OF_GATES),
            (IngressAction::Edit, "edit", &["set"]),
        ] {
            if let Some(key) = keys.iter().find(|key| self.action != action && table.get(key).is_some()) {
                return Err(at(key, Problem::new(format!("`{key}` without `action = \"{name}\"`"))));
            }
        }
        let missing = |key: &str, example: &str| {
            let problem = Problem::new(format!("{} without `{key}`", self.action_noun()));
            Err(problem.at(place).help(format!("as in: {example}")))
        };
        match self.action {
            IngressAction::Drop | IngressAction::Pass if table.get("conform").is_some() => {
                let problem = Problem::new("`conform` without a policer, a gate or an edit");
                return Err(at("conform", problem));
            }
            IngressAction::Drop | IngressAction::Pass => return Ok(()),
            IngressAction::Gate if self.schedule.is_empty() => {
                return missing(
                    "schedule",
                    "{ action = \"gate\", schedule = [{ open = \"200ms\" }, { closed = \"100ms\" }] }",
                );
            }
            IngressAction::Edit if self.set.is_none() => {
                return missing("set", "{ action = \"edit\", set = { dscp = \"ef\" } }");
            }
            IngressAction::Gate | IngressAction::Edit => return Ok(()),
            IngressAction::Police => {}
        }
        if let Some(key) = ["rate", "burst"].iter().find(|key| table.get(key).is_none()) {
            return Err(Problem::new(format!("a policer without `{key}`"))
                .at(place)
                .help("as in: { action = \"police\", rate = \"10mbit\", burst = \"20kB\" }"));
        }
        self.bucket.check(table, place)
    }
}

impl IngressUse {
    const fn action_noun(&self) -> &'static str {
        match self.action {
            IngressAction::Gate => "a gate",
            IngressAction::Edit => "an edit",
            IngressAction::Drop | IngressAction::Pass | IngressAction::Police => "a filter",
        }
    }

    /// The engine's filter.
    pub(crate) fn build(&self, addresses: &dyn Fn(&str) -> Vec<IpAddr>) -> IngressFilter {
        let only = self.matches.iter().map(|one| one.condition(addresses)).collect();
        match self.action {
            IngressAction::Drop => IngressFilter::Drop(only),
            IngressAction::Pass => IngressFilter::Pass(only),
            IngressAction::Gate => {
                let entries = self.schedule.iter().map(|entry| GateEntry {
                    lasts: entry.open.or(entry.closed).unwrap_or(Duration::ZERO),
                    is_open: entry.open.is_some(),
                    most: entry.most,
                });
                let gate = TimedGate::new(only, narrows_core::Time::ZERO + self.begin, entries.collect())
                    .expect("schedules with entries that last are read");
                IngressFilter::Gate { gate, goes_on: self.conform == IngressConform::Next }
            }
            IngressAction::Edit => IngressFilter::Edit {
                only,
                change: self.set.as_ref().map(EditUse::build).unwrap_or_default(),
                goes_on: self.conform == IngressConform::Next,
            },
            IngressAction::Police => {
                let policer = self.bucket.build(match self.exceed {
                    IngressExceed::Drop => Exceed::Drop,
                    IngressExceed::Mark => Exceed::Mark,
                    IngressExceed::Pass => Exceed::Pass,
                    IngressExceed::Next => Exceed::Next,
                });
                let policer = policer.only(only);
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
        let (Some(rate), Some(burst)) = (self.bucket.rate, self.bucket.burst) else {
            return match self.action {
                IngressAction::Pass => format!("{which}: passed"),
                IngressAction::Gate => {
                    let entries = self.schedule.iter().map(|entry| match (entry.open, entry.closed) {
                        (Some(time), _) => format!("open for {time}"),
                        (None, time) => format!("closed for {}", time.unwrap_or(Duration::ZERO)),
                    });
                    format!("{which}: by a gate, {}", entries.collect::<Vec<_>>().join(", "))
                }
                IngressAction::Edit => {
                    format!("{which}: {}", self.set.as_ref().map(EditUse::words).unwrap_or_default())
                }
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
