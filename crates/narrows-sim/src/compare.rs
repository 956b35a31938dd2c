//! Compares recorded verdicts with replayed ones.

use std::collections::BTreeMap;
use std::fmt;

use narrows_core::{Element, Event};
use narrows_frame::log::{Decided, Outcome, PacketNumber};

use crate::names::Names;
use narrows_traffic::Body;

/// The maximum number of differences kept for display; all are counted.
const SHOWN: usize = 10;

/// Identifies a verdict: a packet and its copy.
type Which = (PacketNumber, u16);

/// Pairs verdicts as they arrive from either side. Both sides produce them in nearly the same order, so that few are
/// pending.
#[derive(Debug, Default)]
pub(crate) struct Comparison {
    recorded: BTreeMap<Which, Decided>,
    replayed: BTreeMap<Which, Decided>,
    pub(crate) same: u64,
    pub(crate) different: u64,
    first: Vec<Difference>,
}

/// A packet whose verdicts differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    recorded: Option<Decided>,
    replayed: Option<Decided>,
}

impl Comparison {
    /// Adds a verdict of the log.
    pub(crate) fn recorded(&mut self, decided: Decided) {
        match self.replayed.remove(&(decided.packet, decided.copy)) {
            Some(replayed) => self.compare(decided, replayed),
            None => drop(self.recorded.insert((decided.packet, decided.copy), decided)),
        }
    }

    /// Adds a verdict of the replay.
    pub(crate) fn replayed(&mut self, event: &Event<'_, Body>) {
        let decided = Decided::of(event);
        match self.recorded.remove(&(decided.packet, decided.copy)) {
            Some(recorded) => self.compare(recorded, decided),
            None => drop(self.replayed.insert((decided.packet, decided.copy), decided)),
        }
    }

    fn compare(&mut self, recorded: Decided, replayed: Decided) {
        if recorded == replayed {
            self.same += 1;
        } else {
            self.differ(Difference { recorded: Some(recorded), replayed: Some(replayed) });
        }
    }

    fn differ(&mut self, difference: Difference) {
        self.different += 1;
        if self.first.len() < SHOWN {
            self.first.push(difference);
        }
    }

    /// Both sides are complete: verdicts on one side only are differences. If the log was `cut_short`, the replay may
    /// have verdicts that the log lacks; their number is returned.
    pub(crate) fn close(&mut self, cut_short: bool) -> u64 {
        for recorded in std::mem::take(&mut self.recorded).into_values() {
            self.differ(Difference { recorded: Some(recorded), replayed: None });
        }
        let replayed = std::mem::take(&mut self.replayed);
        if cut_short {
            return replayed.len() as u64;
        }
        for replayed in replayed.into_values() {
            self.differ(Difference { recorded: None, replayed: Some(replayed) });
        }
        0
    }

    /// The first differences, as text.
    pub(crate) fn first(&self, names: &Names) -> Vec<String> {
        self.first.iter().map(|difference| difference.text(names)).collect()
    }
}

impl Difference {
    fn text(&self, names: &Names) -> String {
        let Some(Decided { packet, copy, .. }) = self.recorded.or(self.replayed) else {
            return String::new();
        };
        let port = names.ports().get(usize::from(packet.port.0)).map_or("?", String::as_str);
        let copy = if copy == 0 { String::new() } else { format!(" copy {copy}") };
        let side = |decided: Option<Decided>| match decided {
            Some(decided) => Verdict(decided, names).to_string(),
            None => "no verdict".into(),
        };
        format!(
            "packet {} of {port}{copy}: recorded {}, replayed {}",
            packet.number,
            side(self.recorded),
            side(self.replayed)
        )
    }
}

/// A verdict as text, with the full instant: differences may be as small as a nanosecond.
struct Verdict<'a>(Decided, &'a Names);

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Decided { at, outcome, .. }, names) = self;
        let (seconds, nanos) = (at.nanos() / 1_000_000_000, at.nanos() % 1_000_000_000);
        match outcome {
            Outcome::Delivered(port) => {
                let port = names.ports().get(usize::from(port.0)).map_or("?", String::as_str);
                write!(f, "delivered at {port}")?;
            }
            Outcome::Dropped { at: None, reason } => write!(f, "dropped: {}", reason.name())?,
            Outcome::Dropped { at: Some(at), reason } => {
                let link = names.element(Element::from_number(at.0));
                write!(f, "dropped at {link}: {}", reason.name())?;
            }
        }
        write!(f, " ({seconds}.{nanos:09} s)")
    }
}
