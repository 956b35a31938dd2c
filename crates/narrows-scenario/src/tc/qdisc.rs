//! Qdiscs and their options.

use narrows_core::queue::Bound;

use super::bands::Bands;
use super::cbs::{self, Shaper};
use super::etf::{self, Etf};
use super::ets::{self, Ets};
use super::gred::Gred;
use super::managed::{DISCIPLINES, Managed};
use super::taprio::{self, Taprio};
use super::unit::{CLASS, RATE, SIZE, missing, number, unknown, whole};
use super::{abbreviation, bucket, hfsc};
use crate::dialect::{Follows, Opt, Options, Word, Words, number_of};
use crate::netem::units;
use crate::netem::{self};
use crate::node::Table;
use crate::problem::{Found, Problem, one_of};

/// A qdisc. Tables are keys of a scheduler in a scenario.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Tbf(Table),
    Cbs(Shaper),
    Htb(Htb),
    Cbq(Table),
    /// The minor number of the class of packets that no filter matches; 0 drops them.
    Hfsc(u16),
    Prio(Bands),
    Ets(Ets),
    Taprio(Box<Taprio>),
    Hpd(Hpd),
    Drr,
    Qfq,
    /// One discipline for each transmit queue, of which a link has one.
    Mq,
    /// The same, with a queue for each class of priorities, among which the device may choose.
    Mqprio {
        /// Whether there are several classes of priorities.
        is_several: bool,
        in_hardware: bool,
    },
    /// The same, with a plain queue by default.
    Multiq,
    Gred(Box<Gred>),
    /// A single value of a link's or class's key.
    Managed(Managed),
    Netem(Box<netem::Qdisc>),
    /// In a tree, what it is there stands for it.
    Etf(Etf),
    Ingress,
}

impl Kind {
    /// Whether the kernel can change its options.
    pub(super) fn changes(&self) -> bool {
        match self {
            Self::Htb(_) | Self::Cbq(_) | Self::Drr | Self::Qfq => false,
            Self::Managed(managed) => managed.changes(),
            _ => true,
        }
    }

    /// Whether its classes are those that `tc class` adds to it.
    pub(super) fn has_classes(&self) -> bool {
        matches!(self, Self::Htb(_) | Self::Cbq(_) | Self::Hfsc(_) | Self::Hpd(_) | Self::Drr | Self::Qfq)
    }

    /// Its bands by priority, if it has bands that exist by themselves.
    pub(super) fn bands(&self) -> Option<Bands> {
        match self {
            Self::Prio(prio) => Some(*prio),
            Self::Ets(ets) => Some(ets.bands),
            Self::Taprio(taprio) => Some(taprio.bands),
            _ => None,
        }
    }

    /// Whether it has a class for each transmit queue.
    pub(super) fn is_by_queue(&self) -> bool {
        matches!(self, Self::Mq | Self::Mqprio { .. } | Self::Multiq)
    }

    /// Its name in tc.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Tbf(_) => "tbf",
            Self::Cbs(_) => "cbs",
            Self::Htb(_) => "htb",
            Self::Cbq(_) => "cbq",
            Self::Hfsc(_) => "hfsc",
            Self::Prio(_) => "prio",
            Self::Ets(_) => "ets",
            Self::Taprio(_) => "taprio",
            Self::Hpd(_) => "hpd",
            Self::Drr => "drr",
            Self::Qfq => "qfq",
            Self::Mq => "mq",
            Self::Mqprio { .. } => "mqprio",
            Self::Multiq => "multiq",
            Self::Gred(_) => "gred",
            Self::Managed(managed) => managed.of.name,
            Self::Netem(netem) => match netem.kind {
                netem::Kind::Netem(_) => "netem",
                netem::Kind::Delay(_) => "delay",
            },
            Self::Etf(_) => "etf",
            Self::Ingress => "ingress",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Htb {
    /// The minor number of the class of packets that no filter matches.
    pub(super) default: u16,
    pub(super) rate_to_quantum: u64,
}

/// Hybrid proportional delay (HPD).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hpd {
    /// The class of packets by code point.
    pub(super) dscps: Vec<(u8, u16)>,
}

impl Hpd {
    /// As in the kernel module, a change sets single entries of the table; class 0 removes an entry.
    pub(super) fn changed_from(self, before: &Self) -> Self {
        let mut dscps = before.dscps.clone();
        for (point, class) in self.dscps {
            dscps.retain(|(known, _)| *known != point);
            dscps.extend((class > 0).then_some((point, class)));
        }
        Self { dscps }
    }
}

/// Default limit of a queue or class in tc.
pub(super) const USUAL_LIMIT: Bound = Bound::Packets(1000);

/// The queue length of an intermediate device (`TX_Q_LIMIT` of drivers/net/ifb.c).
pub(super) const OF_INTERMEDIATE: u32 = 32;

/// The names of the supported qdiscs.
pub(super) fn names() -> Vec<&'static str> {
    let managed = DISCIPLINES.iter().map(|of| of.name);
    [
        "tbf", "cbs", "htb", "cbq", "hfsc", "prio", "ets", "taprio", "hpd", "drr", "qfq", "mq", "mqprio",
        "multiq", "gred",
    ]
    .into_iter()
    .chain(managed)
    .chain(["netem", "delay", "ingress", "clsact"])
    .collect()
}

/// Replacements for the unsupported ones.
const INSTEAD: &[(&str, &str)] = &[
    ("dsmark", "the classes of a scheduler match `dscp` themselves"),
    ("plug", "the key `outage` of a link"),
    ("noqueue", "nothing: a link has what no discipline has"),
];

/// Parses the name of a qdisc, and its options up to the end of the command.
pub(super) fn read(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let word = words.peek().expect("the caller looked");
    match word.text {
        "netem" | "delay" => return netem::kind(words).map(|qdisc| Kind::Netem(Box::new(qdisc))),
        _ => words.take(),
    };
    let kind = match word.text {
        "tbf" => Kind::Tbf(bucket::tbf(word, words)?),
        "cbs" => Kind::Cbs(cbs::read(word, words)?),
        "htb" => htb(words)?,
        "cbq" => cbq(word, words)?,
        "hfsc" => Kind::Hfsc(hfsc::qdisc(words)?),
        "prio" => prio(words)?,
        "ets" => Kind::Ets(ets::read(word, words)?),
        "etf" => Kind::Etf(etf::read(word, words)?),
        "taprio" => Kind::Taprio(Box::new(taprio::read(word, words)?)),
        "hpd" => hpd(words)?,
        "drr" => Kind::Drr,
        "qfq" => Kind::Qfq,
        "mq" => Kind::Mq,
        // A `cake` for each transmit queue, of which a link has one; they share its bandwidth.
        "cake_mq" => match Managed::read(Word::new("cake", &word.span()), words)? {
            Some(cake) => Kind::Managed(cake),
            None => return Err(unknown(word, "cake", &[])),
        },
        "mqprio" => mqprio(words)?,
        "multiq" => Kind::Multiq,
        "gred" => Kind::Gred(Box::new(Gred::read(word, words)?)),
        // Of the two hooks of `clsact`, the one for arriving packets.
        "ingress" | "clsact" => {
            words.take_if("----------------");
            Kind::Ingress
        }
        // The kernel's bundle of devices, teql0, teql1 and so on: what leaves by one of them waits in a plain queue.
        bundle if bundle.strip_prefix("teql").is_some_and(|digits| digits.parse::<u8>().is_ok()) => {
            let plain = Managed::read(Word::new("pfifo", &word.span()), words)?;
            let mut plain = plain.ok_or_else(|| unknown(word, "teql", &[]))?;
            plain.remarks.push(format!(
                "Packets that the device itself sends wait in a plain queue, as in the kernel. Those of the bundle {bundle} are not on this link: a link stands for one device."
            ));
            Kind::Managed(plain)
        }
        other => match Managed::read(word, words)? {
            Some(managed) => Kind::Managed(managed),
            None => {
                let names = names();
                let problem = word.problem(format!("unknown queueing discipline {}", Found(other)));
                return Err(match INSTEAD.iter().find(|(name, _)| *name == other) {
                    Some((_, instead)) => problem.help(format!("what does its work: {instead}")),
                    None => problem.did_you_mean(other, names.iter().copied()),
                }
                .help(format!("understood: {}", one_of(&names))));
            }
        },
    };
    match words.peek() {
        None => Ok(kind),
        Some(extra) => Err(unknown(extra, word.text, &[])),
    }
}

/// `mqprio num_tc 3 map 2 2 1 0 queues 1@0 1@1 2@2 hw 0`: each class of priorities has transmit queues of its own. Without
/// `hw 0`, the device chooses among them.
fn mqprio(words: &mut Words<'_>) -> Result<Kind, Problem> {
    const HARDWARE: &[&str] = &["mode", "shaper"];
    // There are eight classes unless `num_tc` says another number.
    let (mut in_hardware, mut is_several) = (true, true);
    while let Some(word) = words.take() {
        match word.text {
            "num_tc" => is_several = number(word, words, 0, 16)? > 1,
            "map" => while words.take_number(false).is_some() {},
            "queues" => {
                while words.peek().is_some_and(|word| word.text.contains('@')) {
                    words.take();
                }
            }
            "hw" => in_hardware = number(word, words, 0, 255)? > 0,
            name if HARDWARE.contains(&name) => {
                if !in_hardware {
                    return Err(word
                        .problem(format!("{} of `mqprio` is for hardware, which `hw 0` forgoes", Found(name)))
                        .help("leave it out"));
                }
                let value = words.expect(word, "a word")?;
                let allowed: &[&str] =
                    if name == "mode" { &["dcb", "channel"] } else { &["dcb", "bw_rlimit"] };
                if !allowed.iter().any(|known| known.starts_with(value.text)) {
                    return Err(value
                        .problem(format!("{} is not a `{name}` of `mqprio`", Found(value.text)))
                        .help(format!("allowed: {}", one_of(allowed))));
                }
            }
            "min_rate" | "max_rate" => {
                return Err(word
                    .problem(format!(
                        "{} of `mqprio`: the device shapes its queues, and a link has one",
                        Found(word.text)
                    ))
                    .help("shape classes with `htb`, as in: htb rate 100mbit ceil 200mbit"));
            }
            "fp" => {
                return Err(word
                    .problem("`fp` of `mqprio`: frames are not interrupted here")
                    .help("leave it out"));
            }
            _ => return Err(unknown(word, "mqprio", &["num_tc", "map", "queues", "hw", "mode", "shaper"])),
        }
    }
    Ok(Kind::Mqprio { in_hardware, is_several })
}

const HTB: Options = Options(&[&[
    Opt::value(&["default"], "default", CLASS),
    Opt::value(&["r2q"], "r2q", whole::<1, { 1 << 20 }>()),
    // As in tc's output, or without effect here.
    Opt::nothing(&["direct_packets_stat", "ver", "direct_qlen", "debug"], Follows::One("a number")),
    Opt::nothing(&["offload"], Follows::Nothing),
]]);

fn htb(words: &mut Words<'_>) -> Result<Kind, Problem> {
    const SHORT: &[&str] = &["r2q", "default", "debug", "direct_qlen", "offload"];
    let keys = abbreviation::read_all(HTB, SHORT, "htb", words)?;
    let default = number_of(&keys, "default").unwrap_or(0);
    Ok(Kind::Htb(Htb { default, rate_to_quantum: number_of(&keys, "r2q").unwrap_or(10) }))
}

pub(super) const CBQ: Options = Options(&[&[
    Opt::value(&["bandwidth", "rate"], "bandwidth", RATE),
    Opt::value(&["avpkt"], "avpkt", SIZE),
    // The resolution of a rate table that does not exist here; the class averages have their own `ewma`.
    Opt::nothing(&["cell", "mpu", "ewma", "allot"], Follows::One("a number")),
]]);

fn cbq(name: Word<'_>, words: &mut Words<'_>) -> Result<Kind, Problem> {
    let keys = CBQ.read_all("cbq", words)?;
    match ["bandwidth", "avpkt"].into_iter().find(|key| keys.get(key).is_none()) {
        Some(key) => Err(missing(name, key, "cbq bandwidth 10mbit avpkt 1000")),
        None => Ok(Kind::Cbq(CBQ.arranged(&keys))),
    }
}

fn prio(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut prio = Bands { bands: 3, map: Bands::MAP };
    let mut place = None;
    while let Some(word) = words.take() {
        match word.text {
            "bands" => prio.bands = number(word, words, 2, 16)? as u8,
            "priomap" => {
                place = Some(word);
                for at in 0..16 {
                    match words.take_number(false) {
                        Some(band) => prio.map[at] = units::integer(band, "a band", 0, 15)? as u8,
                        None if at == 0 => return Err(words.missing(word, "the bands of 16 priorities")),
                        None => break,
                    }
                }
                let mut last = None;
                let mut more = 0;
                while let Some(band) = words.take_number(false) {
                    last = Some(band);
                    more += 1;
                }
                if let Some(band) = last {
                    return Err(band
                        .problem(format!("`priomap` has {} numbers", 16 + more))
                        .help("16 are allowed, one for each priority from 0 to 15"));
                }
            }
            "multiqueue:" | "multiqueue" => {
                words.take_if("on");
                words.take_if("off");
            }
            _ => return Err(unknown(word, "prio", &["bands", "priomap"])),
        }
    }
    match (prio.map.iter().find(|band| **band >= prio.bands), place) {
        (Some(band), Some(place)) => Err(place
            .problem(format!("the band {band} is none of {}", prio.bands))
            .help("bands count from 0")),
        // Fewer bands than tc's default map uses.
        (Some(_), None) => {
            prio.map = prio.map.map(|band| band.min(prio.bands - 1));
            Ok(Kind::Prio(prio))
        }
        (None, _) => Ok(Kind::Prio(prio)),
    }
}

fn hpd(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut hpd = Hpd::default();
    while let Some(word) = words.take() {
        match word.text {
            "dscp" => {
                let point = number(word, words, 0, 63)? as u8;
                let class = words.expect(word, "`class` and its number")?;
                if class.text != "class" {
                    return Err(class.problem(format!("found {}, expected `class`", Found(class.text))));
                }
                hpd.dscps.push((point, number(class, words, 0, 0xffff)? as u16));
            }
            _ => return Err(unknown(word, "hpd", &["dscp"])),
        }
    }
    Ok(Kind::Hpd(hpd))
}
