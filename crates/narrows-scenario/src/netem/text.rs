//! Options as tc takes them.

use std::fmt::{self, Write};

use narrows_core::{Duration, Rate};

use super::options::{Chance, LossOption, Netem, SlotGap};
use super::{FedDelay, Kind, Qdisc};

impl Qdisc {
    /// The options as tc takes them, in the order in which tc shows them. Read again it is equal to this.
    pub fn text(&self) -> String {
        match &self.kind {
            Kind::Netem(netem) => netem.text(),
            Kind::Delay(delay) => format!("root {delay}"),
        }
    }
}

impl Netem {
    /// The options as tc takes them, in the order in which tc shows them, without `limit` where that is the default.
    pub fn text(&self) -> String {
        let mut text = String::new();
        if let Some(limit) = self.limit {
            text += &format!(" limit {limit}");
        }
        text += &self.text_after_limit();
        text.trim_start().into()
    }

    /// All but the limit, each option with a space before it.
    pub(super) fn text_after_limit(&self) -> String {
        let mut text = String::new();
        self.write(&mut text).expect("writing to a string does not fail");
        text
    }

    fn write(&self, text: &mut String) -> fmt::Result {
        if self.delay > Duration::ZERO || self.jitter > Duration::ZERO {
            write!(text, " delay {}", self.delay)?;
            if self.jitter > Duration::ZERO {
                write!(text, " {}", self.jitter)?;
                if !self.delay_correlation.is_zero() {
                    write!(text, " {}", self.delay_correlation)?;
                }
                if let Some(shape) = &self.distribution {
                    write!(text, " distribution {}", shape.word())?;
                }
            }
        }
        match self.loss {
            None => {}
            Some(LossOption::Random(chance)) => write!(text, " loss{}", Words(chance))?,
            Some(LossOption::State { p13, p31, p32, p23, p14 }) => {
                write!(text, " loss state {p13} {p31} {p32} {p23} {p14}")?;
            }
            Some(LossOption::GilbertElliott { p, r, loss_bad, loss_good }) => {
                write!(text, " loss gemodel {p} {r} {loss_bad} {loss_good}")?;
            }
        }
        for (name, chance) in
            [("duplicate", self.duplicate), ("reorder", self.reorder), ("corrupt", self.corrupt)]
        {
            if !chance.share.is_zero() {
                write!(text, " {name}{}", Words(chance))?;
            }
        }
        if let Some(seed) = self.seed {
            write!(text, " seed {seed}")?;
        }
        if let Some(rate) = self.rate {
            write!(text, " rate {}", rate_word(rate.rate))?;
            let numbers = [i64::from(rate.packet_overhead), rate.cell_size.into(), rate.cell_overhead.into()];
            let said = numbers.iter().rposition(|number| *number != 0).map_or(0, |last| last + 1);
            numbers[..said].iter().try_for_each(|number| write!(text, " {number}"))?;
        }
        if let Some(slot) = &self.slot {
            match &slot.gap {
                SlotGap::Between { low, high } => write!(text, " slot {low} {high}")?,
                SlotGap::Distribution { shape, delay, jitter } => {
                    write!(text, " slot distribution {} {delay} {jitter}", shape.word())?;
                }
            }
            for (name, most) in [("packets", slot.packets), ("bytes", slot.bytes)] {
                if most > 0 {
                    write!(text, " {name} {most}")?;
                }
            }
        }
        if self.ecn {
            write!(text, " ecn")?;
        }
        if let Some(gap) = self.gap {
            write!(text, " gap {gap}")?;
        }
        Ok(())
    }
}

/// A rate with a unit that tc knows.
pub(super) fn rate_word(rate: Rate) -> String {
    // A scenario's units are tc's, too; it has two words besides.
    match rate {
        Rate::DOWN => "0bit".into(),
        rate => rate.to_string(),
    }
}

struct Words(Chance);

impl fmt::Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " {}", self.0.share)?;
        if self.0.correlation.is_zero() { Ok(()) } else { write!(f, " {}", self.0.correlation) }
    }
}

impl fmt::Display for FedDelay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "delay limit {} reorder {}", self.limit, self.reorder)
    }
}
