//! `etf`: it sends packets at the times that they carry, and drops those without one.
//!
//! Source: `sch_etf.c` and `sch_taprio.c` of Linux. Packets on a link carry no times of a socket (SO_TXTIME). `taprio` with
//! `flags 0x1` gives them one, by its schedule, and there `etf` is the queue in which they wait for it.

use std::ops::Range;

use super::abbreviation::in_full;
use super::command::{Command, Parent};
use super::managed::Managed;
use super::qdisc::Kind;
use super::tree::Tree;
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

impl Tree {
    /// The plain queue that it is in a class of `taprio`.
    pub(super) fn launched(&self, etf: &Etf, command: &Command) -> Result<Kind, Problem> {
        let around = match command.parent {
            Some(Parent::Of(class)) => self.qdisc(class).map(|qdisc| &qdisc.kind),
            _ => None,
        };
        if !matches!(around, Some(Kind::Taprio(taprio)) if taprio.gives_times) {
            return Err(Problem::new("`etf`: packets on a link carry no transmit times (SO_TXTIME), and without one it drops them")
                .at(&etf.span)
                .help("it is understood in a class of `taprio` with `flags 0x1`, which gives packets the times at which gates open"));
        }
        if !etf.takes_all {
            return Err(Problem::new(
                "`etf` without `skip_sock_check`: it drops packets of sockets that give no times",
            )
            .at(&etf.span)
            .help("as in: etf skip_sock_check offload delta 200000 clockid CLOCK_TAI"));
        }
        let name = Word::new("pfifo", &etf.span);
        let mut plain =
            Managed::read(name, &mut Words::new(PLAIN))?.ok_or_else(|| unknown(name, "etf", &[]))?;
        plain.remarks.push(LAUNCHED.into());
        Ok(Kind::Managed(plain))
    }
}

/// What a plain queue stands for.
pub(super) const LAUNCHED: &str = "Packets wait there for the times that `taprio` gives them: a plain queue here, whose gate opens by the schedule.";
