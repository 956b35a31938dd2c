//! `police rate 1mbit burst 10k drop`: what a filter does with packets beyond a rate.

use narrows_core::{Bytes, Rate};

use super::qdisc::{missing, rate, size};
use crate::netem::words::{Word, Words};
use crate::problem::{Found, Problem};

/// A policer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Police {
    pub(super) rate: Rate,
    pub(super) burst: Bytes,
    pub(super) peakrate: Option<Rate>,
    pub(super) mtu: Option<Bytes>,
    pub(super) mpu: Option<Bytes>,
    /// Whether what is beyond passes.
    pub(super) passes: bool,
}

/// Whether packets beyond the rate pass. One that is to be classified again comes to the same policer, until the kernel has
/// had enough of that and drops it.
fn beyond(verdict: &str) -> Option<bool> {
    match verdict {
        "drop" | "shot" | "reclassify" => Some(false),
        "pass" | "ok" | "continue" | "pipe" => Some(true),
        _ => None,
    }
}

pub(super) fn read(name: Word<'_>, words: &mut Words<'_>) -> Result<Police, Problem> {
    const EXAMPLE: &str = "police rate 1mbit burst 10k drop";
    let (mut own, mut burst, mut peakrate, mut mtu, mut mpu, mut passes) =
        (None, None, None, None, None, false);
    while let Some(word) = words.peek() {
        match word.text {
            "rate" | "burst" | "buffer" | "maxburst" | "peakrate" | "mtu" | "minburst" | "mpu"
            | "overhead" | "linklayer" | "avrate" | "index" | "conform-exceed" | "action" => words.take(),
            "drop" | "shot" | "pass" | "ok" | "continue" | "pipe" | "reclassify" => {
                passes = beyond(word.text).unwrap_or_default();
                words.take();
                continue;
            }
            _ => break,
        };
        match word.text {
            "rate" => own = Some(rate(word, words)?),
            "burst" | "buffer" | "maxburst" => burst = Some((word, size(word, words)?)),
            "peakrate" => peakrate = Some(rate(word, words)?),
            "mtu" | "minburst" => mtu = Some(size(word, words)?),
            "mpu" => mpu = Some(size(word, words)?).filter(|mpu| mpu.get() > 0),
            "conform-exceed" | "action" => {
                let verdict = words.expect(word, "what becomes of packets beyond the rate")?;
                let exceed = verdict.text.split('/').next().unwrap_or_default();
                passes = beyond(exceed).ok_or_else(|| {
                    verdict
                        .problem(format!("{} is nothing that becomes of packets", Found(exceed)))
                        .help("allowed: `drop`, `pass`, `continue`, `pipe` or `reclassify`")
                })?;
            }
            _ => {
                words.expect(word, "a value")?;
            }
        }
    }
    let own = own.ok_or_else(|| missing(name, "rate", EXAMPLE))?;
    let (place, burst) = burst.ok_or_else(|| missing(name, "burst", EXAMPLE))?;
    let least = mtu.unwrap_or(Bytes::new(1500));
    if burst < least {
        return Err(place.problem(format!(
            "a burst of {burst} is less than one packet of {least}, which would never pass"
        )));
    }
    // A peak rate needs an `mtu`; without one, tc prints an `mtu` nobody asked for, which is passed over.
    Ok(Police { rate: own, burst, peakrate, mtu: mtu.filter(|_| peakrate.is_some()), mpu, passes })
}
