//! What filters decide about packets.

use super::Handle;
use crate::dialect::{Word, Words};
use crate::netem::units;
use crate::problem::{Found, Problem};

/// Where packets go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum To {
    Class(Handle),
    /// To the host and the flow of CAKE that this class means.
    Flow(Handle),
    /// To a tin of CAKE, by its number from 1 on.
    Tin(u16),
    Drop,
    /// Past all classes of HTB.
    Direct,
    /// As packets that no rule matches.
    Rest,
}

/// What happens to packets that a filter matches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They go to the filter's class, or without one to the default class.
    Class,
    Drop,
    /// Later filters are tried.
    Next,
    /// The filters of another chain are tried, and if none matches there, no other.
    Goto(u32),
}

/// How it goes on after an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    /// With the next action; after the last one as [`Verdict::Class`].
    Pipe,
    Ends(Verdict),
    /// With the action of this number, from 0.
    Jump(usize),
    /// The hardware of a switch hands the packet to the host; the kernel drops it.
    Trap,
}

impl Control {
    pub(super) fn read(word: &str) -> Option<Self> {
        match word {
            "pipe" => Some(Self::Pipe),
            "pass" | "ok" => Some(Self::Ends(Verdict::Class)),
            "trap" => Some(Self::Trap),
            "drop" | "shot" => Some(Self::Ends(Verdict::Drop)),
            "continue" => Some(Self::Ends(Verdict::Next)),
            // It starts the filters again, with the same result, until the kernel gives up and drops the packet.
            "reclassify" => Some(Self::Ends(Verdict::Drop)),
            _ => None,
        }
    }

    /// Takes a control and what belongs to it.
    pub(super) fn take(words: &mut Words<'_>) -> Result<Option<Self>, Problem> {
        let mut ahead = words.clone();
        let Some(word) = ahead.take() else { return Ok(None) };
        let control = Self::from_word(word, &mut ahead)?;
        if control.is_some() {
            *words = ahead;
        }
        Ok(control)
    }

    /// The control that a word begins, which has been taken: `goto chain 2`, `jump 1`.
    pub(super) fn from_word(word: Word<'_>, words: &mut Words<'_>) -> Result<Option<Self>, Problem> {
        Ok(match word.text {
            "goto" => {
                let chain = words.expect(word, "chain")?;
                if chain.text != "chain" {
                    return Err(chain.problem(format!("found {}, expected `chain`", Found(chain.text))));
                }
                Some(Self::Ends(Verdict::Goto(chain_number(chain, words)?)))
            }
            "jump" => {
                let count = words.expect(word, "a number of actions")?;
                Some(Self::Jump(units::integer(count, "a number of actions", 0, 32)? as usize))
            }
            other => Self::read(other),
        })
    }
}

/// Parses the number of a chain.
pub(super) fn chain_number(after: Word<'_>, words: &mut Words<'_>) -> Result<u32, Problem> {
    let word = words.expect(after, "the number of a chain")?;
    Ok(units::integer(word, "the number of a chain", 0, 0x0fff_ffff)? as u32)
}
