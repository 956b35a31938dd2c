//! The schedulers that a scenario can name: what each is called, and what it takes.
//!
//! A new one is a variant of [`Kind`], its place in [`Kind::ALL`], a line in [`Kind::about`], and a line in
//! `Scheduler::build` (`build.rs`), which the compiler asks for.

use narrows_core::Bytes;
use narrows_core::aqm::{CodelConfig, PieConfig};

use super::{cbq, dcf, hpd, tbf};
use crate::keys::names;

/// A scheduling algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// In the order of arrival, with classes kept apart.
    Fifo,
    /// Strict priority, the first class first.
    Prio,
    /// Strict priority of three bands by the TOS byte, as Linux has it.
    PfifoFast,
    /// Deficit round robin.
    Drr,
    /// Worst-case fair weighted fair queueing.
    Wf2q,
    /// Quick fair queueing.
    Qfq,
    /// Grouped fair queueing.
    Gfq,
    /// Stochastic fairness queueing.
    Sfq,
    /// FQ-CoDel.
    FqCodel,
    /// FQ-PIE.
    FqPie,
    /// The distributed coordination function of 802.11b.
    Dcf,
    /// Hybrid proportional delay with delay bounds.
    Hpd,
    /// A token bucket.
    Tbf,
    /// A hierarchical token bucket.
    Htb,
    /// Class based queueing.
    Cbq,
}

/// What a scheduler serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Serves {
    /// Classes that the scenario names.
    Classes,
    /// Those, or flows by hash.
    ClassesOrFlows,
    /// Flows by hash.
    Flows,
    /// Three bands of its own.
    Bands,
}

/// What is to be known of a scheduler.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About {
    pub(crate) name: &'static str,
    /// For people, beginning a line.
    pub(crate) words: &'static str,
    pub(crate) serves: Serves,
    /// Whether classes have weights.
    pub(crate) weights: bool,
    /// Whether it wants to know the longest packet of a class.
    pub(crate) longest: bool,
    /// The quantum of a flow of weight 1, where there is one and none is given.
    pub(crate) quantum: Option<Bytes>,
    /// The keys of its own parameters, besides `quantum`.
    pub(crate) keys: fn() -> Vec<&'static str>,
    /// The keys of its own parameters of a class, besides `weight` and `longest`.
    pub(crate) class_keys: &'static [&'static str],
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Fifo,
        Self::Prio,
        Self::PfifoFast,
        Self::Drr,
        Self::Wf2q,
        Self::Qfq,
        Self::Gfq,
        Self::Sfq,
        Self::FqCodel,
        Self::FqPie,
        Self::Dcf,
        Self::Hpd,
        Self::Tbf,
        Self::Htb,
        Self::Cbq,
    ];

    /// Its name in a scenario.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    pub(crate) fn about(self) -> About {
        use Serves::{Bands, Classes, ClassesOrFlows, Flows};
        let about = |name, words, serves| About {
            name,
            words,
            serves,
            weights: false,
            longest: false,
            quantum: None,
            keys: Vec::new,
            class_keys: &[],
        };
        let weighted = |name, words| About { weights: true, ..about(name, words, ClassesOrFlows) };
        let quantum = |bytes, about| About { quantum: Some(Bytes::new(bytes)), ..about };
        match self {
            Self::Fifo => about("fifo", "in the order of arrival", Classes),
            Self::Prio => about("prio", "strict priority, the first class first", Classes),
            Self::PfifoFast => about("pfifo_fast", "strict priority of three bands by the TOS byte", Bands),
            Self::Drr => quantum(1500, weighted("drr", "deficit round robin")),
            Self::Wf2q => weighted("wf2q+", "worst-case fair weighted fair queueing"),
            Self::Qfq => About { longest: true, ..weighted("qfq", "quick fair queueing") },
            Self::Gfq => About { longest: true, ..weighted("gfq", "grouped fair queueing") },
            Self::Sfq => quantum(1514, about("sfq", "stochastic fairness queueing", Flows)),
            // RFC 8290, 5.2.4: one full Ethernet frame.
            Self::FqCodel => quantum(
                1514,
                About { keys: names::<CodelConfig>, ..about("fq_codel", "fair queueing with CoDel", Flows) },
            ),
            Self::FqPie => quantum(
                1514,
                About { keys: names::<PieConfig>, ..about("fq_pie", "fair queueing with PIE", Flows) },
            ),
            Self::Dcf => About {
                keys: || dcf::KEYS.to_vec(),
                ..about("dcf", "stations contend by the DCF of 802.11b", ClassesOrFlows)
            },
            Self::Hpd => About {
                keys: || hpd::KEYS.to_vec(),
                class_keys: hpd::CLASS_KEYS,
                ..about("hpd", "delays in proportion, with limits", Classes)
            },
            Self::Tbf => About { keys: || tbf::KEYS.to_vec(), ..about("tbf", "a token bucket", Classes) },
            Self::Htb => about("htb", "a tree of token buckets, which borrow from those above", Classes),
            Self::Cbq => About {
                keys: || cbq::KEYS.to_vec(),
                ..about("cbq", "a tree of classes, kept to their rates by their idle times", Classes)
            },
        }
    }

    /// What it does, for people.
    pub(crate) fn words(self) -> &'static str {
        self.about().words
    }

    /// Whether it wants to know the longest packet of a class.
    pub(crate) fn wants_longest(self) -> bool {
        self.about().longest
    }

    /// Whether it holds packets back by rates of its own.
    pub fn is_shaper(self) -> bool {
        matches!(self, Self::Tbf | Self::Htb | Self::Cbq)
    }

    /// Whether its classes must be named, as there is none that it could have by itself.
    pub(crate) fn needs_classes(self) -> bool {
        matches!(self, Self::Prio | Self::Htb | Self::Cbq)
    }

    /// The names of all.
    pub(crate) fn names() -> [&'static str; Self::ALL.len()] {
        Self::ALL.map(Self::name)
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
