//! Queueing disciplines and their options.

mod classless;
mod dualpi2;

use narrows_core::queue::Bound;
use narrows_core::{Bytes, Duration, Rate};

use crate::netem::units;
use crate::netem::words::{Word, Words};
use crate::netem::{self};
use crate::node::suggest;
use crate::problem::{Found, Problem, one_of};
use classless::{codel, fifo, fq_codel, fq_pie, pie, red, sfq};
use dualpi2::dualpi2;

/// A discipline.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Kind {
    Tbf(Tbf),
    Htb(Htb),
    Cbq(Cbq),
    Prio(Prio),
    Hpd(Hpd),
    /// `pfifo`, `bfifo`, `pfifo_head_drop`.
    Fifo(Fifo),
    /// What a key of a link, or of a class, says as a whole.
    Whole(Whole),
    Netem(Box<netem::Qdisc>),
    Ingress,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tbf {
    pub(super) rate: Rate,
    pub(super) burst: Bytes,
    pub(super) room: Room,
    pub(super) peakrate: Option<Rate>,
    pub(super) mtu: Option<Bytes>,
    pub(super) mpu: Option<Bytes>,
}

/// How much may wait in a token bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Room {
    Limit(Bytes),
    Latency(Duration),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Htb {
    /// The minor number of the class for packets that no filter takes.
    pub(super) default: u16,
    pub(super) rate_to_quantum: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cbq {
    pub(super) bandwidth: Rate,
    pub(super) average_packet: Bytes,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prio {
    pub(super) bands: u8,
    pub(super) map: [u8; 16],
}

impl Prio {
    /// tc's.
    pub(super) const MAP: [u8; 16] = [1, 2, 2, 2, 1, 2, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1];
    /// The priority, a place of the map, that the kernel gives packets by the bits of their code points for low delay and
    /// high throughput (`ip_tos2prio` in net/ipv4/route.c).
    pub(super) const OF_POINTS: [(u8, usize); 4] = [(0b000, 0), (0b010, 2), (0b100, 6), (0b110, 4)];

    /// The code points that have these bits for low delay and high throughput.
    pub(super) fn points(bits: u8) -> impl Iterator<Item = u8> {
        (0..64).filter(move |point| point & 0b110 == bits)
    }
}

/// Hybrid proportional delay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Hpd {
    /// Which class packets of a code point are in.
    pub(super) dscps: Vec<(u8, u16)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fifo {
    pub(super) name: &'static str,
    pub(super) limit: Option<Bound>,
    pub(super) head: bool,
}

/// What tc lets wait in a queue or class that says nothing else.
pub(super) const USUAL_LIMIT: Bound = Bound::Packets(1000);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Whole {
    pub(super) name: &'static str,
    /// `queue` or `scheduler`.
    pub(super) key: &'static str,
    /// Its value as it stands in a file.
    pub(super) value: String,
}

/// The names of the disciplines that are understood.
pub(super) const NAMES: &[&str] = &[
    "tbf",
    "htb",
    "cbq",
    "prio",
    "hpd",
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "pfifo_fast",
    "red",
    "fq_codel",
    "fq_pie",
    "codel",
    "pie",
    "dualpi2",
    "sfq",
    "netem",
    "delay",
    "ingress",
];

/// What does the work of the others.
const INSTEAD: &[(&str, &str)] = &[
    ("hfsc", "htb, for rates; hpd, for delays"),
    ("drr", "the key `scheduler` of a link, of type `drr`"),
    ("qfq", "the key `scheduler` of a link, of type `qfq`"),
    ("fq", "fq_codel; pacing is the sender's matter"),
    ("cake", "fq_codel below tbf or htb"),
    ("mq", "a link has one queue: leave it out"),
    ("mqprio", "prio"),
    ("multiq", "prio"),
    ("choke", "red"),
    ("gred", "red, in each class of a scheduler"),
    ("sfb", "fq_codel"),
    ("dsmark", "the classes of a scheduler match `dscp` themselves"),
    ("clsact", "ingress"),
    ("etf", "netem's `slot`"),
    ("taprio", "netem's `slot`, or a trace"),
    ("cbs", "tbf"),
    ("plug", "the key `outage` of a link"),
    ("noqueue", "nothing: a link has what no discipline has"),
];

/// Reads the name of a discipline, and its options up to the end of the command.
pub(super) fn read(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let word = words.peek().expect("the caller looked");
    match word.text {
        "netem" | "delay" => return netem::kind(words).map(|qdisc| Kind::Netem(Box::new(qdisc))),
        _ => words.take(),
    };
    let kind = match word.text {
        "tbf" => tbf(word, words)?,
        "htb" => htb(words)?,
        "cbq" => cbq(word, words)?,
        "prio" => prio(words)?,
        "hpd" => hpd(words)?,
        "pfifo" => fifo("pfifo", words)?,
        "bfifo" => fifo("bfifo", words)?,
        "pfifo_head_drop" => fifo("pfifo_head_drop", words)?,
        "pfifo_fast" => {
            // As tc prints it.
            if words.take_if("bands") {
                while words.take_number(false).is_some() || words.take_if("priomap") {}
            }
            whole("pfifo_fast", "scheduler", "\"pfifo_fast\"".into())
        }
        "red" => red(word, words)?,
        "fq_codel" => fq_codel(words)?,
        "fq_pie" => fq_pie(words)?,
        "codel" => codel(words)?,
        "pie" => pie(words)?,
        "dualpi2" => dualpi2(words)?,
        "sfq" => sfq(words)?,
        "ingress" => {
            words.take_if("----------------");
            Kind::Ingress
        }
        other => {
            let problem =
                word.problem(format!("{} is not understood as a queueing discipline", Found(other)));
            return Err(match INSTEAD.iter().find(|(name, _)| *name == other) {
                Some((_, instead)) => problem.help(format!("what does its work: {instead}")),
                None => problem.did_you_mean(other, NAMES.iter().copied()),
            }
            .help(format!("understood: {}", one_of(NAMES))));
        }
    };
    match words.peek() {
        None => Ok(kind),
        Some(extra) => Err(unknown(extra, word.text, &[])),
    }
}

/// A word that is no option of this.
pub(super) fn unknown(word: Word<'_>, of: &str, known: &[&str]) -> Problem {
    let problem = word.problem(format!("{} is no option of `{of}`", Found(word.text)));
    if known.is_empty() { problem } else { suggest(problem, word.text, known) }
}

fn whole(name: &'static str, key: &'static str, value: String) -> Kind {
    Kind::Whole(Whole { name, key, value })
}

pub(super) fn rate(after: Word<'_>, words: &mut Words<'_>) -> Result<Rate, Problem> {
    let word = words.expect(after, "a rate")?;
    match units::rate(word)?.value {
        rate if rate.bits_per_second() == 0 => Err(word.problem("a rate of zero lets nothing through")),
        rate => Ok(rate),
    }
}

/// A size, perhaps with a cell behind a slash as in `burst 5kb/8`, which is no matter here.
pub(super) fn size(after: Word<'_>, words: &mut Words<'_>) -> Result<Bytes, Problem> {
    let mut word = words.expect(after, "a size")?;
    word.text = word.text.split_once('/').map_or(word.text, |(size, _)| size);
    Ok(Bytes::new(units::size(word, "a size", "bytes")?.value.into()))
}

pub(super) fn number(after: Word<'_>, words: &mut Words<'_>, low: i64, high: i64) -> Result<i64, Problem> {
    let word = words.expect(after, "a number")?;
    units::integer(word, "a number", low, high)
}

/// A limit of packets; tc prints `limit 100p`.
pub(super) fn packets(after: Word<'_>, words: &mut Words<'_>) -> Result<Bound, Problem> {
    let mut word = words.expect(after, "a number of packets")?;
    word.text = word.text.trim_end_matches('p');
    Ok(Bound::Packets(units::integer(word, "a limit", 1, 1 << 30)? as u64))
}

pub(super) fn time(after: Word<'_>, words: &mut Words<'_>) -> Result<Duration, Problem> {
    Ok(units::time_in_micros(words.expect(after, "a time")?)?.value)
}

pub(super) fn missing(word: Word<'_>, what: &str, example: &str) -> Problem {
    word.problem(format!("`{}` without `{what}`", word.text)).help(format!("as in: {example}"))
}

fn tbf(name: Word<'_>, words: &mut Words<'_>) -> Result<Kind, Problem> {
    const EXAMPLE: &str = "tbf rate 1mbit burst 5kb latency 70ms";
    let known = ["rate", "burst", "limit", "latency", "peakrate", "mtu", "mpu"];
    let (mut own, mut burst, mut room, mut peakrate, mut mtu, mut mpu) = (None, None, None, None, None, None);
    while let Some(word) = words.take() {
        match word.text {
            "rate" => own = Some(rate(word, words)?),
            "burst" | "buffer" | "maxburst" => burst = Some((word, size(word, words)?)),
            "limit" | "latency" if room.is_some() => {
                return Err(word.problem("both `limit` and `latency`").help("each says the other: keep one"));
            }
            "limit" => room = Some(Room::Limit(size(word, words)?)),
            "latency" | "lat" => room = Some(Room::Latency(time(word, words)?)),
            "peakrate" => peakrate = Some((word, rate(word, words)?)),
            "mtu" | "minburst" => mtu = Some(size(word, words)?),
            "mpu" => mpu = Some(size(word, words)?).filter(|mpu| mpu.get() > 0),
            "overhead" | "linklayer" => {
                words.expect(word, "a value")?;
            }
            _ => return Err(unknown(word, "tbf", &known)),
        }
    }
    let own = own.ok_or_else(|| missing(name, "rate", EXAMPLE))?;
    let (place, burst) = burst.ok_or_else(|| missing(name, "burst", EXAMPLE))?;
    let room = room.ok_or_else(|| missing(name, "latency", EXAMPLE).help("or `limit`, in bytes"))?;
    let least = mtu.unwrap_or(Bytes::new(1500));
    if burst < least {
        return Err(place.problem(format!(
            "a burst of {burst} is less than one packet of {least}, which would never go"
        )));
    }
    match peakrate {
        Some((place, peak)) if peak <= own => {
            return Err(place.problem(format!("the peak rate, {peak}, is not above the rate, {own}")));
        }
        Some((place, _)) if mtu.is_none() => {
            return Err(missing(place, "mtu", "peakrate 2mbit mtu 1540"));
        }
        _ => {}
    }
    Ok(Kind::Tbf(Tbf {
        rate: own,
        burst,
        room,
        peakrate: peakrate.map(|(_, peak)| peak),
        mtu: mtu.filter(|_| peakrate.is_some()),
        mpu,
    }))
}

fn htb(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut htb = Htb { default: 0, rate_to_quantum: 10 };
    while let Some(word) = words.take() {
        match word.text {
            "default" => {
                let class = words.expect(word, "the number of a class")?;
                let handle = super::Handle::read(class)?;
                htb.default = if class.text.contains(':') { handle.minor } else { handle.major };
            }
            "r2q" => htb.rate_to_quantum = number(word, words, 1, 1 << 20)? as u64,
            // As tc prints them, or of no meaning here.
            "direct_packets_stat" | "ver" | "direct_qlen" | "debug" => {
                words.expect(word, "a number")?;
            }
            "offload" => {}
            _ => return Err(unknown(word, "htb", &["default", "r2q"])),
        }
    }
    Ok(Kind::Htb(htb))
}

fn cbq(name: Word<'_>, words: &mut Words<'_>) -> Result<Kind, Problem> {
    const EXAMPLE: &str = "cbq bandwidth 10mbit avpkt 1000";
    let (mut bandwidth, mut average_packet) = (None, None);
    while let Some(word) = words.take() {
        match word.text {
            "bandwidth" | "rate" => bandwidth = Some(rate(word, words)?),
            "avpkt" => average_packet = Some(size(word, words)?),
            // The granularity of a table that there is none of; the averages of classes have their own `ewma`.
            "cell" | "mpu" | "ewma" | "allot" => {
                words.expect(word, "a number")?;
            }
            _ => return Err(unknown(word, "cbq", &["bandwidth", "avpkt", "cell", "mpu", "ewma"])),
        }
    }
    Ok(Kind::Cbq(Cbq {
        bandwidth: bandwidth.ok_or_else(|| missing(name, "bandwidth", EXAMPLE))?,
        average_packet: average_packet.ok_or_else(|| missing(name, "avpkt", EXAMPLE))?,
    }))
}

fn prio(words: &mut Words<'_>) -> Result<Kind, Problem> {
    let mut prio = Prio { bands: 3, map: Prio::MAP };
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
        // Fewer bands than tc's map has.
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
