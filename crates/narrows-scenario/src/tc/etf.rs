//! `etf`: it sends packets at the times that they carry, and drops those without one.
//!
//! Source: `sch_etf.c` and `sch_taprio.c` of Linux. Packets on a link carry no times of a socket (SO_TXTIME). `taprio` with
//! `flags 0x1` gives them one, by its schedule, and there `etf` is the queue in which they wait for it.

use std::ops::Range;

use super::abbreviation::in_full;
use super::managed::Managed;
use super::unit::{number, unknown};
use crate::dialect::{Word, Words};
use crate::problem::Problem;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Etf {
    span: Range<usize>,
    /// Whether it takes packets of sockets that give no times.
    takes_all: bool,
}

/// More packets than a class gets: there is no limit in the kernel.
const PLAIN: &str = "limit 1000000";

const KNOWN: &[&str] = &["offload", "deadline_mode", "delta", "clockid", "skip_sock_check"];

pub(super) fn read(name: Word<'_>, words: &mut Words<'_>) -> Result<Etf, Problem> {
    let mut takes_all = false;
    while let Some(word) = words.take() {
        match in_full(word, &KNOWN[..4]).text {
            "offload" => {}
            "deadline_mode" => {
                return Err(word
                    .problem("`deadline_mode` of `etf`: packets leave before their times")
                    .help("leave it out: then they leave when a gate opens"));
            }
            "delta" => drop(number(word, words, 0, i32::MAX.into())?),
            "clockid" => drop(words.expect(word, "a clock")?),
            "skip_sock_check" => takes_all = true,
            _ => return Err(unknown(word, "etf", KNOWN)),
        }
    }
    Ok(Etf { span: name.span(), takes_all })
}

impl Etf {
    /// The plain queue that it is where packets get their times from the discipline around it.
    pub(super) fn queue(&self, gets_times: bool) -> Result<Managed, Problem> {
        if !gets_times {
            return Err(Problem::new("`etf`: packets on a link carry no transmit times (SO_TXTIME), and without one it drops them")
                .at(&self.span)
                .help("it is understood in a class of `taprio` with `flags 0x1`, which gives packets the times at which gates open"));
        }
        if !self.takes_all {
            return Err(Problem::new(
                "`etf` without `skip_sock_check`: it drops packets of sockets that give no times",
            )
            .at(&self.span)
            .help("as in: etf skip_sock_check offload delta 200000 clockid CLOCK_TAI"));
        }
        let name = Word::new("pfifo", &self.span);
        let mut plain =
            Managed::read(name, &mut Words::new(PLAIN))?.ok_or_else(|| unknown(name, "etf", &[]))?;
        plain.remarks.push(LAUNCHED.into());
        Ok(plain)
    }
}

/// What a plain queue stands for.
pub(super) const LAUNCHED: &str = "Packets wait there for the times that `taprio` gives them: a plain queue here, whose gate opens by the schedule.";
