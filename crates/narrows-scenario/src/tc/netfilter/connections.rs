//! Marks of connections: what `CONNMARK` keeps with a connection, once packets of both directions have met the rules.
//!
//! A connection begins without a mark. Each packet of it meets the rules of its direction, which may look at the mark of the
//! connection, copy it to the packet (`--restore-mark`), and the packet's to the connection (`--save-mark`). The first packets
//! decide: here, a connection has the mark from its start on that it has when packets no longer change it.

use super::few;
use super::list::{Bits, Change, Entry, List, Number};
use crate::problem::Problem;
use crate::tc::both::both;
use crate::value::Match;

/// Connections, by what their packets in one direction match, and their numbers between packets: those of the connection alone.
#[derive(Clone, Debug, PartialEq)]
struct Settled {
    matches: Match,
    numbers: u128,
}

/// How many packets of each direction may change the mark of a connection.
const ROUNDS: usize = 4;

/// What the rules of both directions come to. `leaving` and `arriving` are lists for the two directions, the second with
/// conditions as packets of the first have them (see [`turned`]).
pub(super) struct Both<'a> {
    pub(super) leaving: &'a [Entry],
    pub(super) arriving: &'a [Entry],
    pub(super) everything: &'a Match,
}

impl Both<'_> {
    /// What becomes of a number of packets that leave.
    pub(super) fn leaving(&self, number: Number) -> Result<List, Problem> {
        let mut all = List::new();
        for known in self.settled()? {
            for entry in self.leaving.iter().filter(|entry| entry.bits.hold(known.numbers)) {
                let value = number.of(entry.change.applied(known.numbers));
                let Some(matches) = both(&known.matches, &entry.matches) else { continue };
                all.push(given(matches, number, value));
            }
            all.push(given(known.matches, number, 0));
            few(all.len())?;
        }
        Ok(all)
    }

    /// The marks of the connections of packets that arrive.
    pub(super) fn arriving(&self) -> Result<List, Problem> {
        let settled = self.settled()?.into_iter();
        let mark = |known: &Settled| Number::Connection.of(known.numbers);
        Ok(settled.map(|known| given(turned(&known.matches), Number::Mark, mark(&known))).collect())
    }

    /// All connections, whoever opens them. A connection is opened by packets that leave if a rule about their addresses or
    /// ports decides, otherwise by packets that arrive, if one about theirs does.
    fn settled(&self) -> Result<Vec<Settled>, Problem> {
        let fresh = || vec![Settled { matches: self.everything.clone(), numbers: 0 }];
        let is_directed = |known: &Settled| is_directed(&known.matches);
        let (mut all, others): (Vec<_>, Vec<_>) =
            self.passed(fresh(), self.leaving)?.into_iter().partition(is_directed);
        let arriving = self.passed(fresh(), self.arriving)?.into_iter().filter(is_directed).collect();
        all.extend(self.passed(arriving, self.leaving)?);
        all.extend(others);
        for _ in 0..ROUNDS {
            let answered = self.passed(all.clone(), self.arriving)?;
            let next = self.passed(answered.clone(), self.leaving)?;
            if next == answered && answered == all {
                return Ok(all);
            }
            all = next;
        }
        Err(Problem::new("rules of iptables with which the marks of connections change again and again")
            .help("end the chain for connections that have a mark: -m mark ! --mark 0 -j RETURN"))
    }

    /// Connections after one more packet that meets a list.
    fn passed(&self, known: Vec<Settled>, list: &[Entry]) -> Result<Vec<Settled>, Problem> {
        let mut all: Vec<Settled> = Vec::new();
        for one in known {
            let mut is_complete = false;
            for entry in list.iter().filter(|entry| entry.bits.hold(one.numbers)) {
                let Some(matches) = both(&one.matches, &entry.matches) else { continue };
                is_complete = matches == one.matches;
                let numbers = entry.change.applied(one.numbers) & Number::Connection.bits();
                add(&mut all, Settled { matches, numbers });
                if is_complete {
                    break;
                }
            }
            if !is_complete {
                add(&mut all, one);
            }
            few(all.len())?;
        }
        Ok(all)
    }
}

/// Adds connections, if their condition is not that of others before them.
fn add(all: &mut Vec<Settled>, one: Settled) {
    const NEAR: usize = 256;
    let is_within = |earlier: &Settled| both(&earlier.matches, &one.matches).as_ref() == Some(&one.matches);
    if !all.iter().rev().take(NEAR).any(is_within) {
        all.push(one);
    }
}

fn given(matches: Match, number: Number, value: u32) -> Entry {
    Entry { matches, bits: Bits::ANY, change: Change::of(number, u32::MAX, value) }
}

/// Whether it is about one direction of a connection rather than both.
fn is_directed(matches: &Match) -> bool {
    !matches.sources.is_empty()
        || !matches.destinations.is_empty()
        || !matches.source_ports.is_empty()
        || !matches.destination_ports.is_empty()
        || !matches.link_sources.is_empty()
        || !matches.link_destinations.is_empty()
}

/// The condition of packets in the other direction of the connections whose packets have this one.
pub(super) fn turned(matches: &Match) -> Match {
    let mut turned = matches.clone();
    std::mem::swap(&mut turned.sources, &mut turned.destinations);
    std::mem::swap(&mut turned.source_ports, &mut turned.destination_ports);
    std::mem::swap(&mut turned.link_sources, &mut turned.link_destinations);
    turned
}
