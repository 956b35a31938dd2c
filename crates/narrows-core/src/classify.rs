//! Classification: conditions that sort packets into classes, and hashes and masks that sort them into flows.
//!
//! A classifier only yields a number. A scheduler maps that number to a queue.

mod condition;
mod hash;
mod known;
mod mask;
mod priomap;

pub(crate) use condition::has_ports;
pub use condition::{Condition, Families, Fragments, HeaderCondition, Lanes, LinkPattern, Prefix, TcpFlags};
pub(crate) use hash::five_tuple;
pub use hash::{FlowHash, Identity};
pub use known::Known;
pub use mask::{Flow, FlowMask};
pub use priomap::pfifo_fast;

use alloc::boxed::Box;
use alloc::vec::Vec;

use crate::pool::{PacketRef, Pool};

/// Sorts packets into numbered classes.
#[derive(Clone, Debug)]
pub enum Classifier {
    /// All packets are in class 0.
    One,
    /// The class of the first rule that matches, otherwise the default class, if any.
    Rules {
        /// Conditions, each with its class or [`Classifier::NO_CLASS`], in the order in which they are tried.
        rules: Vec<(Condition, u32)>,
        /// The class of a packet that matches no rule.
        default: Option<u32>,
    },
    /// By the TOS or traffic class byte: one class for each value.
    TrafficClass(Box<[u8; 256]>),
    /// Each flow is hashed to one of a number of classes.
    Flows(FlowHash),
    /// By the mark set by an earlier classifier, if it is below this number of classes.
    Mark(u32),
}

impl Classifier {
    /// In a rule: its packets belong to no class.
    pub const NO_CLASS: u32 = u32::MAX;

    /// How many classes the classifier needs: one more than the greatest number that it yields.
    pub fn classes(&self) -> usize {
        let most = match self {
            Self::One => Some(0),
            Self::Rules { rules, default } => {
                let named = rules.iter().map(|(_, class)| *class).filter(|class| *class != Self::NO_CLASS);
                named.chain(*default).max()
            }
            Self::TrafficClass(classes) => classes.iter().max().map(|class| u32::from(*class)),
            Self::Flows(hash) => hash.classes().checked_sub(1),
            Self::Mark(classes) => classes.checked_sub(1),
        };
        most.map_or(0, |most| most as usize + 1)
    }

    /// Whether it looks at header fields that are not in a flow key.
    pub(crate) fn looks_at_headers(&self) -> bool {
        match self {
            Self::Rules { rules, .. } => rules.iter().any(|(condition, _)| condition.headers.is_some()),
            Self::One | Self::TrafficClass(_) | Self::Flows(_) | Self::Mark(_) => false,
        }
    }

    /// The class of a packet. `None` if it belongs to none.
    #[inline]
    pub fn class(&self, packet: PacketRef, pool: &Pool) -> Option<u32> {
        match self {
            Self::One => Some(0),
            Self::Rules { rules, default } => {
                let fulfilled = rules.iter().find(|(condition, _)| condition.holds(packet, pool));
                match fulfilled {
                    Some(&(_, Self::NO_CLASS)) => None,
                    Some(&(_, class)) => Some(class),
                    None => *default,
                }
            }
            Self::TrafficClass(classes) => {
                Some(classes[usize::from(pool.get(packet).key.traffic_class)].into())
            }
            Self::Flows(hash) => Some(hash.class(&pool.get(packet).key)),
            Self::Mark(classes) => Some(pool.get(packet).key.mark).filter(|mark| mark < classes),
        }
    }
}
