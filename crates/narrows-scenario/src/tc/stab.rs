//! Size tables: `stab overhead 20 mpu 64 linklayer atm`, what a packet counts in the tree of a root qdisc.
//!
//! tc computes a table of sizes in steps of 2ⁿ bytes, the smallest step with which `tsize` entries cover `mtu`
//! (`tc_calc_size_table` of iproute2). The kernel adds `overhead` and looks the sum up
//! (`qdisc_calculate_pkt_len`):
//!
//! ```text
//! counted = cells(max(mpu, frame + overhead, rounded up to the step))
//! ```
//!
//! Without `mpu` and cells there is no table. A link's `overhead` rounds up last, to cells or steps. That is the same if
//! the step divides the payload of a cell, or without cells `mpu`, which is checked. Packets longer than the table are counted in
//! parts by the kernel.

use std::ops::Range;

use narrows_core::service::{Cells, Overhead};

use super::bucket::LAYER;
use super::unit::whole;
use crate::dialect::{Opt, Options, Word, Words, number, number_of, text_of};
use crate::keys::kind::text;
use crate::node::{Table, Value};
use crate::problem::Problem;

/// What a packet counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stab {
    overhead: i64,
    mpu: i64,
    /// The step of the table; 1 if there is none.
    step: i64,
    atm: bool,
    pub(super) span: Range<usize>,
}

const OPTIONS: Options = Options(&[&[
    Opt::value(&["mtu"], "mtu", whole::<0, { u32::MAX as i64 }>()),
    Opt::value(&["mpu"], "mpu", whole::<0, 65_535>()),
    Opt::value(&["overhead"], "overhead", whole::<{ -65_535 }, 65_535>()),
    // As many as fit in a message to the kernel.
    Opt::value(&["tsize"], "tsize", whole::<0, 32_000>()),
    Opt::value(&["linklayer"], "layer", LAYER),
]]);

/// tc's defaults.
const MTU: i64 = 2047;
const ENTRIES: i64 = 512;
const ATM: Cells = Cells { payload: 48, size: 53 };

impl Stab {
    /// Parses the options after the word `stab`.
    pub(super) fn read(word: Word<'_>, words: &mut Words<'_>) -> Result<Self, Problem> {
        let keys = OPTIONS.read_some(words, &mut Vec::new())?;
        let of = |key: &str, usual: i64| number_of(&keys, key).filter(|number| *number != 0).unwrap_or(usual);
        let (overhead, mpu) = (of("overhead", 0), of("mpu", 0));
        let atm = text_of(&keys, "layer") == "atm";
        if overhead == 0 && mpu == 0 && keys.get("layer").is_none() {
            return Err(word
                .problem("`stab` without `overhead`, `mpu` or `linklayer`")
                .help("as in: stab overhead 20 linklayer atm"));
        }
        let place = |key: &str| keys.key(key).map_or(word.span(), |key| key.span.clone());
        let (mtu, entries) = (of("mtu", MTU), of("tsize", ENTRIES));
        let has_table = atm || mpu > 0;
        let step = (0..32).map(|log| 1i64 << log).find(|step| mtu / step < entries).unwrap_or(1 << 32);
        let longest = entries * step;
        let longest = if atm { (longest + 47) / 48 * 53 } else { longest };
        if has_table && longest > i64::from(u16::MAX) {
            return Err(Problem::new(format!("a size table up to {longest} bytes, which the kernel rounds"))
                .at(&place(if keys.get("mtu").is_some() { "mtu" } else { "tsize" }))
                .help("a size has 16 bits: choose an `mtu` of at most 50000"));
        }
        if has_table && (atm && 48 % step > 0 || !atm && mpu % step > 0) {
            let divided = if atm { "the 48 bytes of a cell".into() } else { format!("`mpu`, {mpu}") };
            return Err(Problem::new(format!(
                "a size table in steps of {step} bytes, which do not divide {divided}"
            ))
            .at(&place(if atm { "mtu" } else { "mpu" }))
            .help(format!("steps of one byte are exact: tsize {}", mtu + 1)));
        }
        let step = if has_table { step } else { 1 };
        Ok(Self { overhead, mpu, step, atm, span: word.span() })
    }

    /// The value of a link's `overhead`.
    pub(super) fn value(&self) -> Value {
        let mut parts = Table::default();
        parts.put("base", text("frame"));
        parts.put("bytes", number(self.overhead));
        if self.mpu > 0 {
            parts.put("minimum", number(self.mpu));
        }
        match (self.atm, self.step) {
            (true, _) => parts.put("cells", text("atm")),
            (false, 1) => {}
            (false, step) => {
                let mut cells = Table::default();
                cells.put("payload", number(step));
                cells.put("size", number(step));
                parts.put("cells", Value::Table(cells));
            }
        }
        if self.overhead == 0 && parts.iter().count() == 2 { text("frame") } else { Value::Table(parts) }
    }

    /// What it does, for display.
    pub(super) fn words(&self) -> String {
        let mut words = String::from("A packet counts as its frame");
        if self.overhead != 0 {
            let sign = if self.overhead < 0 { "less" } else { "and" };
            words += &format!(" {sign} {} bytes", self.overhead.unsigned_abs());
        }
        if self.mpu > 0 {
            words += &format!(", at least {} bytes", self.mpu);
        }
        match (self.atm, self.step) {
            (true, _) => words += ", in ATM cells of 48 bytes that take 53",
            (false, 1) => {}
            (false, step) => words += &format!(", rounded up to a multiple of {step}"),
        }
        words + "."
    }

    /// The words of tc for what counts as a packet's length on a link; `None` if there are none, or none are needed.
    pub(super) fn shown(overhead: Overhead) -> Option<String> {
        let Overhead { link_header, extra, minimum, cells } = overhead;
        if !link_header || overhead == Overhead::FRAME {
            return None;
        }
        let mut words = format!("stab overhead {extra}");
        if minimum > 0 {
            words += &format!(" mpu {minimum}");
        }
        match cells {
            Some(ATM) => words += " linklayer atm",
            None if minimum > 0 => words += &format!(" tsize {}", MTU + 1),
            None => {}
            Some(Cells { payload: 4, size: 4 }) if minimum > 0 => {}
            Some(_) => return None,
        }
        Some(words)
    }
}
