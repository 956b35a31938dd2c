//! Classes and their options.

use narrows_core::sched::{ErrorWidth, Estimator};
use narrows_core::{Bytes, Duration, Rate};

use super::qdisc::{missing, number, rate, size, time, unknown};
use crate::netem::words::{Word, Words};
use crate::problem::{Found, Problem, one_of};

/// A class, as its discipline has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Htb(Htb),
    Cbq(Cbq),
    Hpd(Hpd),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Htb {
    pub(super) rate: Rate,
    pub(super) ceil: Option<Rate>,
    pub(super) burst: Option<Bytes>,
    pub(super) cburst: Option<Bytes>,
    pub(super) prio: u8,
    pub(super) quantum: Option<Bytes>,
    pub(super) mpu: Option<Bytes>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cbq {
    pub(super) rate: Option<Rate>,
    pub(super) prio: Option<u8>,
    pub(super) allot: Option<Bytes>,
    pub(super) average_packet: Option<Bytes>,
    pub(super) weight: Option<u32>,
    pub(super) bounded: bool,
    pub(super) isolated: bool,
    pub(super) exempt: bool,
    pub(super) maxburst: Option<u32>,
    pub(super) minburst: Option<u32>,
    pub(super) minidle: Option<Duration>,
    pub(super) ewma: Option<u8>,
    pub(super) mpu: Option<Bytes>,
}

/// Of hybrid proportional delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hpd {
    pub(super) num: Option<u16>,
    pub(super) is_default: bool,
    pub(super) ewma: Ewma,
    pub(super) limit: Duration,
    pub(super) queue: Option<u64>,
    pub(super) ddp: u32,
    /// In 1024ths; nothing for one that goes by the backlog.
    pub(super) gamma: Option<u32>,
    /// In 1024ths.
    pub(super) weight: u32,
    pub(super) restart: u32,
    pub(super) cycle: Duration,
    pub(super) properr: u32,
}

/// How averages are estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ewma {
    Plain,
    Restart,
    ProportionalError,
}

/// Their names, those of tc first.
pub(super) const EWMAS: &[(&str, Ewma)] = &[
    ("ewma", Ewma::Plain),
    ("ewmar", Ewma::Restart),
    ("ewmape", Ewma::ProportionalError),
    ("ewma-r", Ewma::Restart),
    ("ewma-pe", Ewma::ProportionalError),
];

/// The disciplines that have classes of their own.
pub(super) const NAMES: &[&str] = &["htb", "cbq", "hpd"];

pub(super) fn read(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let word = words.take().expect("the caller looked");
    match word.text {
        "htb" => htb(word, words).map(Kind::Htb),
        "cbq" => cbq(words).map(Kind::Cbq),
        "hpd" => hpd(words).map(Kind::Hpd),
        "prio" => Err(word
            .problem("the classes of `prio` are there by themselves: its bands")
            .help("the first is 1:1, where the discipline is 1:")),
        other => Err(word
            .problem(format!("{} has no classes that are understood", Found(other)))
            .did_you_mean(other, NAMES.iter().copied())
            .help(format!("understood: {}", one_of(NAMES)))),
    }
}

fn htb(name: Word<'_>, words: &mut Words<'_>) -> Result<Htb, Problem> {
    let known = ["rate", "ceil", "burst", "cburst", "prio", "quantum", "mtu", "mpu"];
    let mut own = None;
    let (mut ceil, mut burst, mut cburst, mut quantum, mut mpu, mut prio) = (None, None, None, None, None, 0);
    while let Some(word) = words.take() {
        match word.text {
            "rate" => own = Some(rate(word, words)?),
            "ceil" => ceil = Some((word, rate(word, words)?)),
            "burst" | "buffer" => burst = Some((word, size(word, words)?)),
            "cburst" | "cbuffer" => cburst = Some((word, size(word, words)?)),
            "prio" => prio = number(word, words, 0, 7)? as u8,
            "quantum" => quantum = Some(size(word, words)?),
            "mpu" => mpu = Some(size(word, words)?).filter(|mpu| mpu.get() > 0),
            "mtu" | "overhead" | "linklayer" => {
                words.expect(word, "a value")?;
            }
            // As tc prints it.
            "level" => {
                words.expect(word, "a number")?;
            }
            _ => return Err(unknown(word, "htb", &known)),
        }
    }
    let own = own.ok_or_else(|| missing(name, "rate", "htb rate 1mbit ceil 2mbit"))?;
    if let Some((place, ceil)) = ceil.filter(|(_, ceil)| *ceil < own) {
        return Err(place.problem(format!("`ceil` is {ceil}, below `rate`, which is {own}")));
    }
    // Below a packet the kernel lets a class into debt; so a burst as small as tc makes one by itself is a packet's.
    let burst = burst.map(|(_, burst)| burst.max(Bytes::new(1500)));
    let cburst = cburst.map(|(_, burst)| burst.max(Bytes::new(1500)));
    Ok(Htb { rate: own, ceil: ceil.map(|(_, ceil)| ceil), burst, cburst, prio, quantum, mpu })
}

fn cbq(words: &mut Words<'_>) -> Result<Cbq, Problem> {
    let known = [
        "bandwidth",
        "rate",
        "allot",
        "prio",
        "weight",
        "maxburst",
        "minburst",
        "minidle",
        "avpkt",
        "bounded",
        "isolated",
        "exempt",
        "ewma",
        "cell",
        "mpu",
    ];
    let mut class = Cbq::default();
    while let Some(word) = words.take() {
        match word.text {
            "rate" => class.rate = Some(rate(word, words)?),
            "allot" => class.allot = Some(size(word, words)?),
            "prio" => class.prio = Some(number(word, words, 1, 8)? as u8),
            "weight" => {
                // A rate to tc: bytes a second.
                let bytes = rate(word, words)?.bits_per_second() / 8;
                class.weight = Some(u32::try_from(bytes.max(1)).unwrap_or(u32::MAX));
            }
            "maxburst" => {
                class.maxburst = Some(number(word, words, 0, 1 << 20)? as u32).filter(|burst| *burst > 0)
            }
            "minburst" => {
                class.minburst = Some(number(word, words, 0, 1 << 20)? as u32).filter(|burst| *burst > 0)
            }
            "minidle" => class.minidle = Some(time(word, words)?),
            "avpkt" => class.average_packet = Some(size(word, words)?),
            "ewma" => class.ewma = Some(number(word, words, 0, 31)? as u8),
            "mpu" => class.mpu = Some(size(word, words)?).filter(|mpu| mpu.get() > 0),
            "bounded" | "sharing" | "borrow" => class.bounded = word.text == "bounded",
            "isolated" => class.isolated = true,
            "exempt" => class.exempt = true,
            // Of the wire, which the discipline says; the granularity of a table that there is none of.
            "bandwidth" | "cell" | "split" | "defmap" | "estimator" => {
                words.expect(word, "a value")?;
            }
            _ => return Err(unknown(word, "cbq", &known)),
        }
    }
    Ok(class)
}

fn hpd(words: &mut Words<'_>) -> Result<Hpd, Problem> {
    let known =
        ["num", "default", "ewma", "limit", "qlen", "ddp", "gamma", "weight", "restart", "cycle", "properr"];
    let mut class = Hpd {
        num: None,
        is_default: false,
        ewma: Ewma::Plain,
        limit: Duration::ZERO,
        queue: None,
        ddp: 1,
        gamma: Some(512),
        weight: 512,
        restart: Estimator::THRESHOLD,
        cycle: Estimator::CYCLE,
        properr: ErrorWidth::Eighth.steps().into(),
    };
    let share = |word: Word<'_>, words: &mut Words<'_>| {
        number(word, words, 0, 1024)
            .map(|share| share as u32)
            .map_err(|problem| problem.help("in 1024ths: 512 is a half"))
    };
    while let Some(word) = words.take() {
        match word.text {
            "num" => class.num = Some(number(word, words, 1, 32)? as u16),
            "default" => class.is_default = true,
            "ewma" => {
                let name = words.expect(word, "an estimator")?;
                class.ewma =
                    EWMAS.iter().find(|(known, _)| *known == name.text).map(|(_, ewma)| *ewma).ok_or_else(
                        || {
                            let names: Vec<&str> = EWMAS.iter().map(|(name, _)| *name).collect();
                            name.problem(format!("{} is no estimator", Found(name.text)))
                                .did_you_mean(name.text, names.iter().copied())
                                .help(format!("allowed: {}", one_of(&names)))
                        },
                    )?;
            }
            "limit" => class.limit = time(word, words)?,
            "qlen" => class.queue = Some(number(word, words, 1, 1 << 30)? as u64),
            "ddp" => class.ddp = number(word, words, 1, u32::MAX.into())? as u32,
            "gamma" if words.take_if("auto") => class.gamma = None,
            "gamma" => class.gamma = Some(share(word, words)?),
            "weight" => class.weight = share(word, words)?,
            "restart" => class.restart = number(word, words, 0, u32::MAX.into())? as u32,
            "cycle" => class.cycle = time(word, words)?,
            "properr" => class.properr = number(word, words, 1, 255)? as u32,
            _ => return Err(unknown(word, "hpd", &known)),
        }
    }
    Ok(class)
}
