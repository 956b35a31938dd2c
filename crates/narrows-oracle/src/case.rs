//! A discipline, its traffic, and how near the two have to be.

use narrows_scenario::tc::Script;
use narrows_scenario::{Scenario, ScenarioError};

use crate::codel::Parameters;
use crate::traffic::Datagram;

/// A configuration in tc's words and in ours.
#[derive(Clone)]
pub struct Case {
    /// Its name: lower case and hyphens.
    pub name: &'static str,
    /// Commands for tc, without `tc`. The device is `near`, where datagrams leave, or `far`, where they arrive.
    pub tc: Vec<&'static str>,
    /// What makes ours of it.
    pub ours: Ours,
    /// What is sent.
    pub traffic: Vec<Datagram>,
    /// From when on it counts in shares, means and distributions, in nanoseconds since the first: what is before is the
    /// way there.
    pub steady_from: u64,
    /// A discipline that not every kernel and every `tc` has.
    pub needs: Option<&'static str>,
    /// What is compared, and how near it has to be.
    pub bounds: Vec<Bound>,
    /// Why the two differ by as much as they do, for people.
    pub explanation: &'static str,
}

/// How narrows is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ours {
    /// By the same commands.
    SameWords,
    /// By the same commands, NetEm being the kernel's single queue.
    ExactNetem,
    /// By keys of the direction from the client to the server.
    Keys(&'static str),
}

/// The variable with the release of Linux whose NetEm the guest kernel has; without it, that of today.
const RELEASE: &str = "NARROWS_NETEM_RELEASE";

/// How far apart the same instant may be in the kernel and here, in nanoseconds: each rounds in its own way.
pub const ROUNDING: u64 = 2;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Every datagram's delay, at most so many nanoseconds apart, but for so many datagrams.
    Delay(u64, usize),
    /// How many bytes of each flow have been delivered, at any instant: at most so many apart.
    Service(u64),
    /// How many datagrams were lost with the one and delivered with the other.
    Fates(usize),
    /// How many had another fate, or mark, with the kernel than with [`codel`](crate::codel) in its arithmetic.
    KernelsCodel(Parameters, usize),
    /// How many were lost, whichever they are.
    Losses(usize),
    /// How many came marked, whichever they are.
    MarkCount(usize),
    /// How many came marked with the one and unmarked with the other.
    Marks(usize),
    /// How many datagrams came overtaken by a different number of others.
    Order(usize),
    /// The shares that were lost, by means of batches: at most so many standard errors apart.
    LostShare,
    /// The shares of flow 0 that were lost, likewise.
    LostOfFirst,
    /// The shares that came marked.
    MarkedShare,
    /// The mean delays.
    MeanDelay,
    /// The distributions of delays, by the test of Kolmogorov and Smirnov.
    DelayDistribution,
    /// The shares that came twice.
    TwiceShare,
    /// The shares that were overtaken by a later one.
    OvertakenShare,
}

impl Case {
    /// Whether it sends TCP segments.
    pub fn is_tcp(&self) -> bool {
        self.traffic.iter().any(|datagram| datagram.segment.is_some())
    }

    /// The scenario file that does what the commands do.
    ///
    /// # Errors
    /// When narrows does not understand the commands or the keys.
    pub fn scenario(&self) -> Result<String, ScenarioError> {
        let ends = |line: &str| line.replace("dev near", "dev client").replace("dev far", "dev server");
        let script = || self.tc.iter().map(|line| format!("tc {}\n", ends(line))).collect::<String>();
        match self.ours {
            Ours::SameWords => Script::parse(&script(), self.name)?.scenario_text(false),
            Ours::ExactNetem => {
                let script = match std::env::var(RELEASE) {
                    Ok(release) => script().replace(" netem ", &format!(" netem kernel {release} ")),
                    Err(_) => script(),
                };
                Script::parse(&script, self.name)?.scenario_text(true)
            }
            Ours::Keys(keys) => {
                let text = format!(
                    "[hosts.client]\n\n[hosts.server]\n\n[links.link]\nbetween = [\"client\", \"server\"]\n\n[links.link.up]\n{keys}\n"
                );
                Scenario::parse(&text, self.name)?;
                Ok(text)
            }
        }
    }
}

impl Ours {
    /// In words.
    pub fn words(self) -> String {
        match self {
            Self::SameWords => "the same words".into(),
            Self::ExactNetem => "the same words, `--exact-netem`".into(),
            Self::Keys(keys) => format!("`{}`", keys.trim().replace('\n', "; ")),
        }
    }
}
